//! What one server instance is, as plain data: all templates rendered, all paths known. And what can be said of it before
//! anything starts: whether its programs are there, whether its user exists.

use super::messages::Account;
use nix::sys::signal::Signal;
use nix::unistd::{User, geteuid, getgrouplist};
use regex::Regex;
use std::ffi::{CString, OsString};
use std::fmt;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One instance of a server.
#[derive(Clone, Debug)]
pub struct ServerSpec {
    pub name: String,
    /// From 1.
    pub instance: u32,
    /// How many there are of it; with one, its number is not shown.
    pub instances: u32,
    /// Program and arguments; no shell is between.
    pub command: Vec<String>,
    /// Written before `setup` and before every start.
    pub files: Vec<FileSpec>,
    /// Commands run once in a fresh (missing or empty) directory.
    pub setup: Vec<Vec<String>>,
    pub environment: Vec<(String, String)>,
    /// Counts where dbbench is root.
    pub user: Option<String>,
    /// Empty = not pinned.
    pub cpus: Vec<usize>,
    /// None = its directory.
    pub working_directory: Option<PathBuf>,
    /// Its own; made where it is missing.
    pub directory: PathBuf,
    /// Standard output and errors are appended to it; its folder must exist.
    pub log: PathBuf,
    pub ready: ReadySpec,
    pub ready_timeout: Duration,
    /// Of each command of `setup`.
    pub setup_timeout: Duration,
    pub stop_signal: StopSignal,
    pub stop_timeout: Duration,
    /// The hint shown when a program is missing.
    pub install: String,
    /// Other programs (names) and files (paths) that it needs.
    pub requires: Vec<String>,
}

impl ServerSpec {
    /// `redis`, or `redis/2` where there are several.
    pub fn label(&self) -> String {
        match self.instances {
            0 | 1 => self.name.clone(),
            _ => format!("{}/{}", self.name, self.instance),
        }
    }
}

#[derive(Clone, Debug)]
pub struct FileSpec {
    /// Relative to the server's directory, and inside it.
    pub path: PathBuf,
    pub content: FileContent,
}

#[derive(Clone, Debug)]
pub enum FileContent {
    Text(String),
    /// A file or folder, copied as it is.
    Copy(PathBuf),
}

/// How it is known that a server is ready.
#[derive(Clone, Debug)]
pub enum ReadySpec {
    /// It takes connections.
    Tcp(SocketAddr),
    /// It answers GET with a status below 400.
    Http { address: SocketAddr, path: String },
    /// A line of its output matches.
    Log(Regex),
    /// The command ends with status 0; run as the server's user, in its directory.
    Command(Vec<String>),
    /// The target's driver says so.
    Driver,
}

/// The signal that asks a server to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopSignal(pub(super) Signal);

impl StopSignal {
    pub const TERM: StopSignal = StopSignal(Signal::SIGTERM);

    /// `TERM`, `SIGINT`, `QUIT`; the error is a sentence.
    pub fn parse(name: &str) -> Result<StopSignal, String> {
        let full = match name.starts_with("SIG") {
            true => name.to_owned(),
            false => format!("SIG{name}"),
        };
        full.parse()
            .map(StopSignal)
            .map_err(|_| format!("`{name}` is no signal; use TERM, INT, QUIT, HUP, USR1 or USR2"))
    }
}

/// A program or file that a server needs and that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingProgram {
    pub program: String,
    /// How to get it; may be empty.
    pub install: String,
}

impl fmt::Display for MissingProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not installed", self.program)?;
        match self.install.is_empty() {
            true => Ok(()),
            false => write!(f, "; {}", self.install),
        }
    }
}

/// The first program or file of the server that is not there. A relative path with a slash is looked for in the
/// working directory only when the server starts, since `files` may bring it.
pub fn missing_program(spec: &ServerSpec) -> Option<MissingProgram> {
    let path = spec
        .environment
        .iter()
        .find(|(name, _)| name == "PATH")
        .map(|(_, value)| OsString::from(value))
        .or_else(|| std::env::var_os("PATH"))
        .unwrap_or_default();
    let programs = spec
        .command
        .first()
        .into_iter()
        .chain(spec.setup.iter().filter_map(|command| command.first()));
    let missing_command = programs
        .filter(|program| Path::new(program).is_absolute() || !program.contains('/'))
        .find(|program| !is_program(program, &path));
    let missing_other = || {
        spec.requires
            .iter()
            .find(|needed| match needed.contains('/') {
                true => !Path::new(needed).exists(),
                false => !is_program(needed, &path),
            })
    };
    missing_command
        .or_else(missing_other)
        .map(|program| MissingProgram {
            program: program.clone(),
            install: spec.install.clone(),
        })
}

/// Whether it can be executed: an absolute path, or a name in one of the directories of `path`.
fn is_program(program: &str, path: &std::ffi::OsStr) -> bool {
    let executable = |file: &Path| {
        file.metadata()
            .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    match program.contains('/') {
        true => executable(Path::new(program)),
        false => std::env::split_paths(path).any(|directory| executable(&directory.join(program))),
    }
}

/// Numbers of a user; None where none is asked for or dbbench is not root. The error is a sentence.
pub(super) fn account(user: Option<&str>) -> Result<Option<Account>, String> {
    let Some(name) = user.filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    if !geteuid().is_root() {
        return Ok(None);
    }
    let user = match User::from_name(name) {
        Ok(Some(user)) => user,
        Ok(None) => return Err(format!("there is no user `{name}` on this machine")),
        Err(error) => return Err(format!("cannot look up the user `{name}`: {error}")),
    };
    let groups = CString::new(name)
        .ok()
        .and_then(|name| getgrouplist(&name, user.gid).ok())
        .unwrap_or_else(|| vec![user.gid]);
    Ok(Some(Account {
        uid: user.uid.as_raw(),
        gid: user.gid.as_raw(),
        groups: groups.into_iter().map(|group| group.as_raw()).collect(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_by_name_or_by_path_and_must_be_executable() {
        let path = OsString::from("/nowhere:/usr/bin:/bin");
        assert!(is_program("sh", &path));
        assert!(is_program("/bin/sh", &OsString::new()));
        assert!(!is_program("sh", &OsString::from("/nowhere")));
        assert!(!is_program("/etc/passwd", &path), "not executable");
        assert!(!is_program("/bin", &path), "a directory");
    }

    #[test]
    fn signals_are_read_with_and_without_their_prefix() {
        assert_eq!(StopSignal::parse("TERM"), Ok(StopSignal::TERM));
        assert_eq!(StopSignal::parse("SIGTERM"), Ok(StopSignal::TERM));
        assert!(StopSignal::parse("STOPP").unwrap_err().contains("TERM"));
    }

    #[test]
    fn an_unknown_user_is_named() {
        if geteuid().is_root() {
            let fault = account(Some("no-such-user")).unwrap_err();
            assert!(fault.contains("no-such-user"));
            assert_eq!(account(Some("root")).unwrap().unwrap().uid, 0);
        }
        assert_eq!(account(None), Ok(None));
    }
}
