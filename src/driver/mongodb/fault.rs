//! Tells the crate's errors apart, as errors.csv names them.

use crate::op::{ErrorClass, Failure};
use mongodb::error::{Error, ErrorKind};
use std::io;

/// A key that exists already, in a unique index; `_id` has one.
pub const DUPLICATE_KEY: i32 = 11_000;

/// The failure of an operation on a session that was open.
pub fn failure(error: &Error) -> Failure {
    match &*error.kind {
        ErrorKind::Command(refusal) => Failure::new(ErrorClass::Server, refusal.message.clone())
            .with_code(refusal.code.to_string()),
        ErrorKind::Io(error) if never_sent(error) => unconnected(error),
        ErrorKind::Io(error) => Failure::io(error),
        ErrorKind::ConnectionPoolCleared { message, .. } => Failure {
            // It was not sent: another operation found the server gone.
            unanswered: false,
            ..Failure::new(ErrorClass::Reset, format!("connection lost: {message}"))
        },
        // A refusal whose answer names no code (mongo-java-server): whole, so that the connection is good.
        ErrorKind::InvalidResponse { message, .. } if message.contains("missing field `code`") => {
            let message = "the server refused the command, and its answer has no code";
            Failure::new(ErrorClass::Server, message)
        }
        ErrorKind::InvalidResponse { .. } | ErrorKind::Bson(_) => {
            Failure::new(ErrorClass::Protocol, format!("malformed answer: {error}"))
        }
        ErrorKind::ServerSelection { message, .. } => unselected(message),
        ErrorKind::Authentication { .. } | ErrorKind::DnsResolve { .. } => {
            Failure::new(ErrorClass::Connect, error.to_string())
        }
        _ => Failure::new(ErrorClass::Client, error.to_string()),
    }
}

/// The failure of a session that was not opened: whatever the cause, there is no connection.
pub fn refused(error: &Error, label: &str) -> Failure {
    let inner = failure(error);
    let class = match inner.class {
        ErrorClass::NoLocalPort | ErrorClass::Client => inner.class,
        _ => ErrorClass::Connect,
    };
    let message = format!("cannot connect to {label}: {}", inner.message);
    Failure {
        broken: true,
        ..Failure::new(class, message).with_code(inner.code)
    }
}

/// The crate opens connections when an operation wants one, so that this may be an operation's error, too.
fn never_sent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::AddrNotAvailable
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
    ) || out_of_files(error.raw_os_error())
}

fn out_of_files(code: Option<i32>) -> bool {
    matches!(code, Some(libc::EMFILE | libc::ENFILE))
}

fn unconnected(error: &io::Error) -> Failure {
    let failure = Failure::connecting(error, "the server");
    match out_of_files(error.raw_os_error()) {
        true => Failure {
            class: ErrorClass::Client,
            ..failure
        },
        false => failure,
    }
}

/// The crate tells the cause only in words here.
fn unselected(message: &str) -> Failure {
    let has = |code: i32| message.contains(&format!("os error {code})"));
    let class = if has(libc::EADDRNOTAVAIL) {
        ErrorClass::NoLocalPort
    } else if has(libc::EMFILE) || has(libc::ENFILE) {
        ErrorClass::Client
    } else {
        ErrorClass::Connect
    };
    Failure {
        broken: true,
        ..Failure::new(class, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io_error(code: i32) -> Error {
        io::Error::from_raw_os_error(code).into()
    }

    #[test]
    fn connections_lost_and_never_made_are_told_apart() {
        let lost = failure(&io_error(libc::ECONNRESET));
        assert_eq!(lost.class, ErrorClass::Reset);
        assert!(lost.unanswered && lost.broken);
        let refused = failure(&io_error(libc::ECONNREFUSED));
        assert_eq!(refused.class, ErrorClass::Connect);
        assert!(!refused.unanswered);
        let ports = failure(&io_error(libc::EADDRNOTAVAIL));
        assert_eq!(ports.class, ErrorClass::NoLocalPort);
        assert_eq!(failure(&io_error(libc::EMFILE)).class, ErrorClass::Client);
    }

    #[test]
    fn the_cause_of_a_server_not_selected_is_read_from_its_words() {
        let text = "Server selection timeout: ... Cannot assign requested address (os error 99)";
        assert_eq!(unselected(text).class, ErrorClass::NoLocalPort);
        assert_eq!(unselected("no server").class, ErrorClass::Connect);
        assert!(unselected("no server").broken);
    }

    #[test]
    fn a_session_not_opened_is_not_connected() {
        let failure = refused(&io_error(libc::ECONNRESET), "here:1");
        assert_eq!(failure.class, ErrorClass::Connect);
        assert!(failure.broken && !failure.unanswered);
        assert!(failure.message.contains("here:1"));
    }
}
