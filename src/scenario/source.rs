//! Reading files into the source map: the size limit, the check that they are UTF-8, and what is said when there is none.
//!
//! Knows the file system as far as reading goes; parsing is `parse`'s, joining is `merge`'s.

use crate::diag::{Diagnostic, SourceMap, Span};
use std::io::Read;
use std::path::Path;

/// A scenario is written by hand; what is larger was given by mistake.
pub const SIZE_LIMIT: u64 = 16 << 20;

/// Reads a file into the map and returns its base. `said_at` is where another file names it (`Span::NONE` on the command
/// line); faults of opening point there.
pub fn read(
    path: &Path,
    shown: &str,
    said_at: Span,
    sources: &mut SourceMap,
) -> Result<u32, Box<Diagnostic>> {
    let fault = |error: std::io::Error| {
        let message = format!("cannot read `{shown}`: {}", reason(&error));
        Box::new(Diagnostic::error("cannot-read", said_at, message))
    };
    let file = std::fs::File::open(path).map_err(fault)?;
    let metadata = file.metadata().map_err(fault)?;
    if metadata.is_dir() {
        let message = format!("`{shown}` is a directory, not a scenario");
        return Err(Box::new(Diagnostic::error("cannot-read", said_at, message)));
    }
    if metadata.len() > SIZE_LIMIT {
        return Err(too_large(shown, said_at));
    }
    let mut bytes = Vec::new();
    file.take(SIZE_LIMIT + 1)
        .read_to_end(&mut bytes)
        .map_err(fault)?;
    if bytes.len() as u64 > SIZE_LIMIT {
        return Err(too_large(shown, said_at));
    }
    add(bytes, path, shown, sources)
}

fn add(
    bytes: Vec<u8>,
    path: &Path,
    shown: &str,
    sources: &mut SourceMap,
) -> Result<u32, Box<Diagnostic>> {
    let directory = path.parent().unwrap_or(Path::new(""));
    match String::from_utf8(bytes) {
        Ok(text) => Ok(sources.add(shown, directory, text)),
        Err(error) => {
            // Up to the bad byte the text is as it was, so the place is right in the mended text too.
            let at = error.utf8_error().valid_up_to();
            let byte = error.as_bytes()[at];
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            let start = sources.add(shown, directory, text) as usize + at;
            let span = Span::new(start, start + '\u{fffd}'.len_utf8());
            let message = format!("not UTF-8: byte 0x{byte:02x} at offset {at}");
            let help =
                "TOML is UTF-8; convert the file, for instance with `iconv -f latin1 -t utf8`";
            Err(Box::new(
                Diagnostic::error("not-utf8", span, message).help(help),
            ))
        }
    }
}

fn too_large(shown: &str, said_at: Span) -> Box<Diagnostic> {
    let limit = crate::units::format_size(SIZE_LIMIT);
    let message = format!("`{shown}` is larger than {limit}, so it is no scenario");
    Box::new(Diagnostic::error("file-too-large", said_at, message))
}

/// The cause in words that are the same on every system.
fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bad_byte_of_a_file_that_is_not_utf8_is_pointed_at() {
        let mut sources = SourceMap::default();
        let fault = add(
            b"title = \"caf\xe9\"\n".to_vec(),
            Path::new("a.toml"),
            "a.toml",
            &mut sources,
        );
        let fault = fault.expect_err("latin 1");
        assert_eq!(fault.code, "not-utf8");
        assert_eq!(sources.text(fault.span), "\u{fffd}");
        assert!(fault.message.contains("0xe9 at offset 12"));
    }

    #[test]
    fn a_file_of_50_mb_is_refused_without_reading_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("large.toml");
        let file = std::fs::File::create(&path).expect("a file");
        file.set_len(50_000_000).expect("room");
        let mut sources = SourceMap::default();
        let fault = read(&path, "large.toml", Span::NONE, &mut sources).expect_err("large");
        assert_eq!(fault.code, "file-too-large");
        assert!(sources.sources.is_empty());
    }
}
