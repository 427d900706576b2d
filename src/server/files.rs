//! Files of a server: those that the scenario gives it, and the end of its log.
//!
//! Knows paths and contents, not what a server is.

use super::spec::{FileContent, FileSpec};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

/// Lines of a log shown in a message, and how far back they are looked for.
const LAST_LINES: usize = 8;
const LAST_BYTES: u64 = 4096;

/// Writes the files into the directory, over what is there.
pub fn write_all(directory: &Path, files: &[FileSpec]) -> Result<(), (PathBuf, io::Error)> {
    for file in files {
        let path = inside(directory, &file.path).map_err(|error| (file.path.clone(), error))?;
        write(&path, &file.content).map_err(|error| (path, error))?;
    }
    Ok(())
}

/// The full path; only one inside the directory is allowed.
fn inside(directory: &Path, relative: &Path) -> io::Result<PathBuf> {
    let plain = relative
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    match plain {
        true => Ok(directory.join(relative)),
        false => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a file of a server must be inside its directory",
        )),
    }
}

fn write(path: &Path, content: &FileContent) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match content {
        FileContent::Text(text) => std::fs::write(path, text),
        FileContent::Copy(from) if from.is_dir() => copy_folder(from, path),
        // `app/ = { from = "one.conf" }` puts the file into the folder.
        FileContent::Copy(from) if ends_with_slash(path) || path.is_dir() => {
            std::fs::create_dir_all(path)?;
            let name = from
                .file_name()
                .ok_or_else(|| io::Error::other("the file to copy has no name"))?;
            copy_file(from, &path.join(name))
        }
        FileContent::Copy(from) => copy_file(from, path),
    }
}

fn ends_with_slash(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::copy(from, to).map(|_| ()).map_err(|error| {
        io::Error::new(error.kind(), format!("copying {}: {error}", from.display()))
    })
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in from.read_dir()? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        // Links are followed: what they point at may not be there where the server runs.
        match entry.path().is_dir() {
            true => copy_folder(&entry.path(), &target)?,
            false => copy_file(&entry.path(), &target)?,
        }
    }
    Ok(())
}

/// The last lines of a file after `from` bytes; empty where there is none.
pub fn last_lines(path: &Path, from: u64) -> Vec<String> {
    let Ok(bytes) = tail(path, from) else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect();
    let first = lines.len().saturating_sub(LAST_LINES);
    lines[first..].iter().map(|line| line.to_string()).collect()
}

fn tail(path: &Path, from: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let end = file.metadata()?.len();
    // A server that opens its log anew may cut it.
    let from = if from > end { 0 } else { from };
    file.seek(SeekFrom::Start(from.max(end.saturating_sub(LAST_BYTES))))?;
    let mut bytes = Vec::new();
    file.take(LAST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Length of a file; 0 where there is none.
pub fn length(path: &Path) -> u64 {
    path.metadata().map_or(0, |metadata| metadata.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &str, text: &str) -> FileSpec {
        FileSpec {
            path: path.into(),
            content: FileContent::Text(text.to_owned()),
        }
    }

    #[test]
    fn texts_are_written_and_folders_copied_as_they_are() {
        let source = tempfile::tempdir().unwrap();
        std::fs::create_dir(source.path().join("inner")).unwrap();
        std::fs::write(source.path().join("inner/a.php"), "<?php").unwrap();
        std::fs::write(source.path().join("b"), "b").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let copy = |path: &str, from: PathBuf| FileSpec {
            path: path.into(),
            content: FileContent::Copy(from),
        };
        let files = [
            text("conf/httpd.conf", "Listen 1\n"),
            copy("app/", source.path().to_owned()),
            copy("single/", source.path().join("b")),
            copy("renamed", source.path().join("b")),
        ];
        write_all(directory.path(), &files).unwrap();
        write_all(directory.path(), &files).unwrap();
        let read = |path: &str| std::fs::read_to_string(directory.path().join(path)).unwrap();
        assert_eq!(read("conf/httpd.conf"), "Listen 1\n");
        assert_eq!(read("app/inner/a.php"), "<?php");
        assert_eq!(read("single/b"), "b");
        assert_eq!(read("renamed"), "b");
    }

    #[test]
    fn a_file_outside_the_directory_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        assert!(write_all(directory.path(), &[text("../x", "")]).is_err());
        assert!(write_all(directory.path(), &[text("/x", "")]).is_err());
    }

    #[test]
    fn the_end_of_a_log_is_of_this_start_only() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        std::fs::write(&log, "old\n").unwrap();
        let from = length(&log);
        assert!(last_lines(&log, from).is_empty());
        let new: String = (0..20).map(|i| format!("line {i}\n\n")).collect();
        std::fs::write(&log, format!("old\n{new}")).unwrap();
        let lines = last_lines(&log, from);
        assert_eq!(lines.len(), LAST_LINES);
        assert_eq!(lines.last().unwrap(), "line 19");
    }
}
