//! Tells the crate's errors apart, as errors.csv names them. Its messages hold no passwords.

use crate::op::{ErrorClass, Failure};
use scylla::errors::{
    BrokenConnectionError, BrokenConnectionErrorKind, ConnectionError, ConnectionPoolError,
    ConnectionSetupRequestErrorKind, DbError, ExecutionError, MetadataError, NewSessionError,
    PrepareError, RequestAttemptError, UseKeyspaceError,
};
use scylla::frame::frame_errors::FrameHeaderParseError;
use std::io;

/// The failure of an operation on a session that was open.
pub fn failure(error: &ExecutionError) -> Failure {
    match error {
        ExecutionError::LastAttemptError(attempt) => attempted(attempt),
        ExecutionError::ConnectionPoolError(pool) => unconnected(pool),
        ExecutionError::EmptyPlan => Failure::new(
            ErrorClass::Connect,
            "no node of the cluster has the address of the endpoint",
        ),
        ExecutionError::PrepareError(error) => prepared(error),
        ExecutionError::UseKeyspaceError(error) => keyspace(error),
        ExecutionError::RequestTimeout(_) => {
            let mut failure = Failure::new(ErrorClass::Timeout, error.to_string());
            failure.unanswered = true;
            failure
        }
        ExecutionError::SchemaAgreementError(error) => {
            Failure::new(ErrorClass::Server, error.to_string()).with_code("schema_disagreement")
        }
        _ => Failure::new(ErrorClass::Client, error.to_string()),
    }
}

/// The failure to prepare a statement.
pub fn prepared(error: &PrepareError) -> Failure {
    match error {
        PrepareError::ConnectionPoolError(pool) => unconnected(pool),
        PrepareError::AllAttemptsFailed { first_attempt, .. } => attempted(first_attempt),
        _ => Failure::new(ErrorClass::Client, error.to_string()),
    }
}

/// The failure to make a keyspace the one of unqualified names.
pub fn keyspace(error: &UseKeyspaceError) -> Failure {
    match error {
        UseKeyspaceError::RequestError(attempt) => attempted(attempt),
        _ => Failure::new(ErrorClass::Client, error.to_string()),
    }
}

/// The failure of a session that was not opened: whatever the cause, there is no connection.
pub fn refused(error: &NewSessionError, label: &str) -> Failure {
    let cause = match error {
        NewSessionError::MetadataError(MetadataError::ConnectionPoolError(
            ConnectionPoolError::Broken {
                last_connection_error,
                ..
            },
        )) => last_connection_error,
        _ => return not_connected(&error.to_string(), label),
    };
    let mut failure = not_connected(&cause.to_string(), label);
    failure.class = unconnected_class(cause);
    if let ConnectionError::ConnectionSetupRequestError(setup) = cause
        && let ConnectionSetupRequestErrorKind::DbError(said, _) = &setup.error
    {
        failure.code = code_of(said).to_owned();
    }
    failure
}

/// A failure to connect, by its sentence alone.
pub fn not_connected(reason: &str, label: &str) -> Failure {
    Failure::new(
        ErrorClass::Connect,
        format!("cannot connect to {label}: {reason}"),
    )
}

/// No connection was there to send it on.
fn unconnected(error: &ConnectionPoolError) -> Failure {
    match error {
        ConnectionPoolError::Broken {
            last_connection_error,
            ..
        } => {
            let message = format!("no connection: {last_connection_error}");
            Failure {
                broken: true,
                ..Failure::new(unconnected_class(last_connection_error), message)
            }
        }
        _ => Failure::new(ErrorClass::Connect, format!("no connection: {error}")),
    }
}

fn unconnected_class(error: &ConnectionError) -> ErrorClass {
    let code = match error {
        ConnectionError::IoError(error) => error.raw_os_error(),
        _ => None,
    };
    match code {
        Some(libc::EADDRNOTAVAIL) => ErrorClass::NoLocalPort,
        Some(libc::EMFILE | libc::ENFILE) => ErrorClass::Client,
        _ => ErrorClass::Connect,
    }
}

fn attempted(error: &RequestAttemptError) -> Failure {
    match error {
        RequestAttemptError::DbError(said, words) => refusal(said, words),
        RequestAttemptError::BrokenConnectionError(broken) => lost(broken),
        RequestAttemptError::SerializationError(_)
        | RequestAttemptError::CqlRequestSerialization(_) => Failure::new(
            ErrorClass::Client,
            format!("the statement cannot be executed: {error}"),
        ),
        RequestAttemptError::UnableToAllocStreamId => Failure::new(
            ErrorClass::Client,
            "32768 operations are in flight on the connection: raise `connections`",
        ),
        // The frame came whole, so that the connection is still good; what is in it makes no sense.
        _ => Failure {
            broken: false,
            ..Failure::new(ErrorClass::Protocol, format!("malformed answer: {error}"))
        },
    }
}

/// The server said no. What it did in part before it gave up (`write_timeout`) it may still finish.
fn refusal(said: &DbError, words: &str) -> Failure {
    let message = match words {
        "" => said.to_string(),
        words => words.to_owned(),
    };
    let mut failure = Failure::new(ErrorClass::Server, message).with_code(code_of(said));
    failure.unanswered = matches!(
        said,
        DbError::WriteTimeout { .. } | DbError::WriteFailure { .. }
    );
    failure
}

/// As the protocol's own words have it, in lower case.
fn code_of(said: &DbError) -> &'static str {
    match said {
        DbError::SyntaxError => "syntax_error",
        DbError::Invalid => "invalid",
        DbError::AlreadyExists { .. } => "already_exists",
        DbError::FunctionFailure { .. } => "function_failure",
        DbError::AuthenticationError => "bad_credentials",
        DbError::Unauthorized => "unauthorized",
        DbError::ConfigError => "config_error",
        DbError::Unavailable { .. } => "unavailable",
        DbError::Overloaded => "overloaded",
        DbError::IsBootstrapping => "is_bootstrapping",
        DbError::TruncateError => "truncate_error",
        DbError::ReadTimeout { .. } => "read_timeout",
        DbError::WriteTimeout { .. } => "write_timeout",
        DbError::ReadFailure { .. } => "read_failure",
        DbError::WriteFailure { .. } => "write_failure",
        DbError::Unprepared { .. } => "unprepared",
        DbError::ServerError => "server_error",
        DbError::ProtocolError => "protocol_error",
        DbError::RateLimitReached { .. } => "rate_limit_reached",
        _ => "other",
    }
}

/// The connection ended under the operation.
fn lost(error: &BrokenConnectionError) -> Failure {
    use BrokenConnectionErrorKind::{
        CqlEventHandlingError, FrameHeaderParseError as Header, UnexpectedStreamId,
    };
    match error.downcast_ref::<BrokenConnectionErrorKind>() {
        Some(Header(FrameHeaderParseError::HeaderIoError(error))) => lost_by(error),
        Some(Header(FrameHeaderParseError::BodyChunkIoError(_, error))) => lost_by(error),
        Some(Header(FrameHeaderParseError::ConnectionClosed(..))) => Failure::new(
            ErrorClass::Reset,
            "connection lost: it was closed within an answer",
        ),
        Some(Header(_) | UnexpectedStreamId(_) | CqlEventHandlingError(_)) => {
            Failure::new(ErrorClass::Protocol, format!("malformed answer: {error}"))
        }
        _ => Failure::new(ErrorClass::Reset, format!("connection lost: {error}")),
    }
}

fn lost_by(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Failure::new(
            ErrorClass::Reset,
            "connection lost: the server closed the connection",
        ),
        _ => Failure::io(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn told(kind: BrokenConnectionErrorKind) -> Failure {
        failure(&ExecutionError::LastAttemptError(
            RequestAttemptError::BrokenConnectionError(kind.into()),
        ))
    }

    #[test]
    fn what_a_server_refuses_is_told_by_its_code() {
        let said = RequestAttemptError::DbError(DbError::Overloaded, "too much".to_owned());
        let overloaded = failure(&ExecutionError::LastAttemptError(said));
        assert_eq!(overloaded.class, ErrorClass::Server);
        assert_eq!(
            (overloaded.code.as_str(), overloaded.message.as_str()),
            ("overloaded", "too much")
        );
        assert!(!overloaded.broken && !overloaded.unanswered);
    }

    #[test]
    fn lost_and_senseless_connections_are_told_apart() {
        let closed = io::Error::from(io::ErrorKind::UnexpectedEof);
        let lost = told(BrokenConnectionErrorKind::FrameHeaderParseError(
            FrameHeaderParseError::HeaderIoError(closed),
        ));
        assert_eq!(lost.class, ErrorClass::Reset);
        assert!(lost.broken && lost.unanswered);
        let senseless = told(BrokenConnectionErrorKind::UnexpectedStreamId(7));
        assert_eq!(senseless.class, ErrorClass::Protocol);
        assert!(senseless.broken);
    }

    #[test]
    fn causes_of_a_connection_not_made_are_told_apart() {
        let class = |code| {
            let error = Arc::new(io::Error::from_raw_os_error(code));
            let pool = ConnectionPoolError::Broken {
                last_connection_error: ConnectionError::IoError(error),
            };
            let failure = failure(&ExecutionError::ConnectionPoolError(pool));
            assert!(failure.broken && !failure.unanswered);
            failure.class
        };
        assert_eq!(class(libc::ECONNREFUSED), ErrorClass::Connect);
        assert_eq!(class(libc::EADDRNOTAVAIL), ErrorClass::NoLocalPort);
        assert_eq!(class(libc::EMFILE), ErrorClass::Client);
    }
}
