//! The private root: one directory per dbbench process, of which every server and embedded store gets a part.
//!
//! It lies in the directory for temporary files under a short name, since the path of a unix socket has 107 bytes at most.
//! The guard makes it, so that whatever happens to dbbench someone alive knows of it, and removes it after the last server.

use super::messages::Account;
use super::spec::account;
use std::collections::hash_map::RandomState;
use std::fs::{DirBuilder, Permissions};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Every user may pass through it: a server may run as one that is not dbbench's.
const MODE: u32 = 0o755;

/// The path of a private root. Exists from `Guard::start` on, until the guard is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivateRoot {
    path: PathBuf,
}

impl PrivateRoot {
    /// A new name in the directory for temporary files ($TMPDIR); nothing is made yet.
    pub fn new() -> PrivateRoot {
        PrivateRoot::in_directory(&std::env::temp_dir())
    }

    /// The same in a directory of the caller's choice.
    pub fn in_directory(directory: &Path) -> PrivateRoot {
        let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
        let number = random_number();
        PrivateRoot {
            path: directory.join(format!("dbb-{}", base36(number, 8))),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a directory inside; it belongs to `user` where dbbench is root. Fails where that user cannot reach it.
    pub fn subdirectory(&self, name: &str, user: Option<&str>) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        let account = account(user).map_err(io::Error::other)?;
        prepare(&path, account.as_ref())?;
        Ok(path)
    }
}

impl Default for PrivateRoot {
    fn default() -> Self {
        PrivateRoot::new()
    }
}

/// Unlike those of other processes: the standard library seeds its hash maps from the system's randomness.
pub(super) fn random_number() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn base36(mut number: u64, digits: usize) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut text = String::new();
    for _ in 0..digits {
        text.push(DIGITS[(number % 36) as usize].into());
        number /= 36;
    }
    text
}

/// Makes the root; fails where the name is taken.
pub(super) fn make(root: &Path) -> io::Result<()> {
    DirBuilder::new().mode(MODE).create(root)?;
    // The mode of creation is cut by the umask.
    std::fs::set_permissions(root, Permissions::from_mode(MODE))
}

/// Makes a directory, and those above it that are missing, and gives it with all its contents to the account.
pub(super) fn prepare(path: &Path, account: Option<&Account>) -> io::Result<()> {
    DirBuilder::new().mode(MODE).recursive(true).create(path)?;
    if let Some(account) = account {
        give(path, account)?;
        reachable(path, account)?;
    }
    Ok(())
}

/// Changes the owner of `path` and of all below it; links are not followed.
pub(super) fn give(path: &Path, account: &Account) -> io::Result<()> {
    let metadata = path.symlink_metadata()?;
    if (metadata.uid(), metadata.gid()) != (account.uid, account.gid) {
        std::os::unix::fs::lchown(path, Some(account.uid), Some(account.gid))?;
    }
    if metadata.is_dir() {
        for entry in path.read_dir()? {
            give(&entry?.path(), account)?;
        }
    }
    Ok(())
}

/// Whether the account may pass through all directories above `path`.
fn reachable(path: &Path, account: &Account) -> io::Result<()> {
    if account.uid == 0 {
        return Ok(());
    }
    for above in path.ancestors().skip(1) {
        let metadata = above.metadata()?;
        let passable = match metadata.uid() == account.uid {
            true => 0o100,
            false if account.groups.contains(&metadata.gid()) => 0o010,
            false => 0o001,
        };
        if metadata.mode() & passable == 0 {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!(
                    "the user with uid {} cannot reach it: {} has mode {:04o}; set TMPDIR to a directory that everybody may pass",
                    account.uid,
                    above.display(),
                    metadata.mode() & 0o7777
                ),
            ));
        }
    }
    Ok(())
}

/// Removes the root with all its contents; what a server has made unreadable is made readable first. Tries a few times,
/// since the last writes of killed processes may still come.
pub(super) fn remove(root: &Path) {
    for _ in 0..5 {
        match std::fs::remove_dir_all(root) {
            Ok(()) => return,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !root.exists() => return,
            Err(_) => unlock(root),
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

fn unlock(directory: &Path) {
    let _ = std::fs::set_permissions(directory, Permissions::from_mode(0o700));
    for entry in directory.read_dir().into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            unlock(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_short_traversable_and_removed_with_what_was_made_unreadable() {
        let base = tempfile::tempdir().unwrap();
        let root = PrivateRoot::in_directory(base.path());
        assert_eq!(root.path().file_name().unwrap().len(), 12);
        make(root.path()).unwrap();
        assert_eq!(root.path().metadata().unwrap().mode() & 0o777, 0o755);
        assert!(make(root.path()).is_err(), "a name is used once");
        let inner = root.subdirectory("redis", None).unwrap();
        std::fs::write(inner.join("dump"), b"x").unwrap();
        std::fs::set_permissions(&inner, Permissions::from_mode(0o000)).unwrap();
        remove(root.path());
        assert!(!root.path().exists());
    }

    #[test]
    fn a_directory_that_its_user_cannot_reach_is_refused_with_the_reason() {
        if !nix::unistd::geteuid().is_root() {
            return;
        }
        let base = tempfile::tempdir().unwrap();
        std::fs::set_permissions(base.path(), Permissions::from_mode(0o700)).unwrap();
        let root = PrivateRoot::in_directory(base.path());
        make(root.path()).unwrap();
        let fault = root.subdirectory("redis", Some("nobody")).unwrap_err();
        assert!(fault.to_string().contains("mode 0700"), "{fault}");
        std::fs::set_permissions(base.path(), Permissions::from_mode(0o755)).unwrap();
        let inner = root.subdirectory("redis", Some("nobody")).unwrap();
        let nobody = nix::unistd::User::from_name("nobody").unwrap().unwrap();
        assert_eq!(inner.metadata().unwrap().uid(), nobody.uid.as_raw());
    }
}
