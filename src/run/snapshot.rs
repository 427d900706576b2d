//! What a dataset left behind when it was filled: the directories of its servers, and its artifacts. Copied file by
//! file, sharing blocks where the file system can.
//!
//! ```text
//! <snapshot>/servers/<server>/    a server's directory, owners and modes kept; <server>.2 is that of its second instance
//! <snapshot>/store/               an embedded store's
//! <snapshot>/artifacts/<name>
//! <snapshot>/complete             written last: without it nothing here counts
//! ```

use crate::results::layout;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// FICLONE of linux/fs.h: the target shares the blocks of the source.
const FICLONE: libc::c_ulong = 0x4004_9409;

const COMPLETE: &str = "complete";

/// A dataset that is loaded.
#[derive(Clone, Debug)]
pub struct Snapshot {
    pub directory: PathBuf,
    /// Ports that its servers had, by server and name: what they wrote may hold them.
    pub ports: BTreeMap<String, BTreeMap<String, u16>>,
}

impl Snapshot {
    /// Of one instance, counted from 1. No server's name has a dot.
    pub fn server(&self, name: &str, instance: u32) -> PathBuf {
        let servers = self.directory.join("servers");
        match instance {
            1 => servers.join(name),
            _ => servers.join(format!("{name}.{instance}")),
        }
    }

    pub fn store(&self) -> PathBuf {
        self.directory.join("store")
    }

    pub fn artifacts(&self) -> PathBuf {
        self.directory.join("artifacts")
    }

    /// The same somewhere else.
    pub fn at(&self, directory: PathBuf) -> Snapshot {
        Snapshot {
            directory,
            ports: self.ports.clone(),
        }
    }

    /// From now on it counts.
    pub fn seal(&self) -> io::Result<()> {
        let ports = serde_json::to_vec(&self.ports).map_err(io::Error::other)?;
        fs::write(self.directory.join(COMPLETE), ports)
    }

    /// One that was kept by another invocation; None where there is none that is whole.
    pub fn find(directory: PathBuf) -> Option<Snapshot> {
        let text = fs::read(directory.join(COMPLETE)).ok()?;
        Some(Snapshot {
            ports: serde_json::from_slice(&text).ok()?,
            directory,
        })
    }

    /// Copies it to where later invocations find it; the name is taken when all is there.
    pub fn keep(&self, identity: &str, interrupted: &AtomicBool) -> io::Result<Snapshot> {
        let place = kept(identity);
        let parent = place.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(parent)?;
        let unfinished = parent.join(format!(
            "{}{identity}-{}",
            layout::UNFINISHED,
            std::process::id()
        ));
        let copied = copy_tree(&self.directory, &unfinished, interrupted);
        let moved = copied.and_then(|()| fs::rename(&unfinished, &place));
        if let Err(error) = moved {
            let _ = fs::remove_dir_all(&unfinished);
            // Another invocation may have been faster.
            return Snapshot::find(place).ok_or(error);
        }
        Ok(self.at(place))
    }
}

/// Where a dataset is kept.
pub fn kept(identity: &str) -> PathBuf {
    Path::new(layout::ROOT).join("datasets").join(identity)
}

/// Copies a file or a folder with all below it; owners and modes stay, sockets are left out. Stops when interrupted.
pub fn copy_tree(from: &Path, to: &Path, interrupted: &AtomicBool) -> io::Result<()> {
    if interrupted.load(Ordering::Relaxed) {
        return Err(io::ErrorKind::Interrupted.into());
    }
    let metadata = fs::symlink_metadata(from)?;
    let kind = metadata.file_type();
    if kind.is_symlink() {
        symlink(fs::read_link(from)?, to)?;
    } else if kind.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy_tree(&entry.path(), &to.join(entry.file_name()), interrupted)?;
        }
        fs::set_permissions(to, metadata.permissions())?;
    } else if kind.is_file() {
        copy_file(from, to)?;
    } else {
        return Ok(());
    }
    let now = fs::symlink_metadata(to)?;
    if (now.uid(), now.gid()) != (metadata.uid(), metadata.gid()) {
        lchown(to, Some(metadata.uid()), Some(metadata.gid()))?;
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let source = fs::File::open(from)?;
    let target = fs::File::create(to)?;
    // SAFETY: both descriptors are open for the call, which reads nothing of this process's memory.
    let cloned = unsafe { libc::ioctl(target.as_raw_fd(), FICLONE, source.as_raw_fd()) };
    if cloned == 0 {
        return target.set_permissions(source.metadata()?.permissions());
    }
    drop((source, target));
    fs::copy(from, to).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_tree_is_copied_with_modes_and_links_and_nothing_half_counts() {
        let directory = tempfile::tempdir().expect("a directory");
        let from = directory.path().join("from");
        fs::create_dir_all(from.join("servers/a/deep")).expect("made");
        fs::write(from.join("servers/a/deep/data"), b"x".repeat(100_000)).expect("written");
        fs::set_permissions(
            from.join("servers/a/deep"),
            fs::Permissions::from_mode(0o700),
        )
        .expect("set");
        symlink("deep/data", from.join("servers/a/link")).expect("linked");
        let _socket =
            std::os::unix::net::UnixListener::bind(from.join("servers/a/s")).expect("bound");
        let snapshot = Snapshot {
            directory: from.clone(),
            ports: BTreeMap::new(),
        };
        assert!(Snapshot::find(from.clone()).is_none());
        snapshot.seal().expect("sealed");
        assert!(Snapshot::find(from.clone()).is_some());
        let to = directory.path().join("to");
        copy_tree(&from, &to, &AtomicBool::new(false)).expect("copied");
        let copy = Snapshot::find(to).expect("whole").server("a", 1);
        assert_eq!(fs::read(copy.join("link")).expect("read").len(), 100_000);
        let mode = fs::metadata(copy.join("deep")).expect("there").mode();
        assert_eq!(mode & 0o777, 0o700);
        assert!(!copy.join("s").exists());
        let stopped = copy_tree(&from, &directory.path().join("no"), &AtomicBool::new(true));
        assert_eq!(stopped.unwrap_err().kind(), io::ErrorKind::Interrupted);
    }
}
