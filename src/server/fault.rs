//! What can go wrong with the guard, a command, and a server; each with what a user can act on, the end of the log first
//! of all. Lowercase fragments; `run` puts the server's name before them where they do not have it.

use super::spec::MissingProgram;
use crate::units::format_duration;
use nix::sys::signal::Signal;
use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;
use thiserror::Error;

#[derive(Clone, Debug, Error)]
pub enum GuardFault {
    #[error("cannot start the guard of the servers: {0}")]
    Start(String),
    /// All servers are ended by then.
    #[error("the guard of the servers is gone ({0}); all servers were ended")]
    Lost(String),
    #[error("the guard of the servers does not answer")]
    Silent,
}

#[derive(Debug, Error)]
pub enum StartFault {
    #[error("{0}")]
    Missing(MissingProgram),
    #[error("{server}: {reason}")]
    User { server: String, reason: String },
    #[error("{server}: cannot prepare {}: {source}", path.display())]
    Directory {
        server: String,
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{server}: setup failed: {fault}")]
    Setup { server: String, fault: CommandFault },
    #[error("{server}: {reason}")]
    Spawn { server: String, reason: String },
    #[error("{server} {} after {}{}", ending(*status), format_duration(*after), quoted(last_lines))]
    Died {
        server: String,
        status: ExitStatus,
        after: Duration,
        last_lines: Vec<String>,
    },
    #[error("{server} was not ready within {}: {last_answer}{}", format_duration(*within), quoted(last_lines))]
    NotReady {
        server: String,
        within: Duration,
        last_answer: String,
        last_lines: Vec<String>,
    },
    #[error("interrupted")]
    Interrupted,
    #[error("{0}")]
    Guard(#[from] GuardFault),
}

#[derive(Debug, Error)]
pub enum CommandFault {
    #[error("`{command}`: {reason}")]
    Spawn { command: String, reason: String },
    #[error("`{command}` {}{}", ending(*status), printed(last_lines))]
    Failed {
        command: String,
        status: ExitStatus,
        last_lines: Vec<String>,
    },
    #[error("`{command}` did not end within {}{}", format_duration(*within), printed(last_lines))]
    TooLong {
        command: String,
        within: Duration,
        last_lines: Vec<String>,
    },
    #[error("`{command}`: cannot read its output: {source}")]
    Output {
        command: String,
        source: std::io::Error,
    },
    #[error("interrupted")]
    Interrupted,
    #[error("{0}")]
    Guard(#[from] GuardFault),
}

/// A server that should run does not.
#[derive(Clone, Debug, Error)]
pub enum ExitFault {
    #[error("{server} {}{}", ending(*status), quoted(last_lines))]
    Exited {
        server: String,
        status: ExitStatus,
        last_lines: Vec<String>,
    },
    #[error("{0}")]
    Guard(#[from] GuardFault),
}

/// `exited with status 1`, `was killed by SIGKILL`.
pub(super) fn ending(status: ExitStatus) -> impl fmt::Display {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with status {code}"),
        (None, Some(number)) => match Signal::try_from(number) {
            Ok(signal) => format!("was killed by {signal}"),
            Err(_) => format!("was killed by signal {number}"),
        },
        (None, None) => "ended".to_owned(),
    }
}

fn printed(lines: &[String]) -> impl fmt::Display {
    match lines.is_empty() {
        true => "; it printed nothing".to_owned(),
        false => format!("; it printed:\n    {}", lines.join("\n    ")),
    }
}

fn quoted(lines: &[String]) -> impl fmt::Display {
    match lines.is_empty() {
        true => "; its log is empty".to_owned(),
        false => format!("; last lines of its log:\n    {}", lines.join("\n    ")),
    }
}
