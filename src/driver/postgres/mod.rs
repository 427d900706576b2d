//! The `postgres` driver: PostgreSQL and what speaks its protocol, by TCP, TLS or unix socket.
//!
//! `session` executes operations, `wire` opens connections and drives them where they are used, `value` is what goes in
//! and out of a statement, `table` makes the key/value table, `control` is the cold side, `spec` the rows. The protocol
//! is tokio-postgres's.

mod control;
mod session;
mod spec;
mod table;
mod value;
mod wire;

use super::spec::{DriverSpec, Endpoint};
use super::sql::{self, Custom};
use super::{Control, Driver, Target, Worker};
use crate::op::{ErrorClass, Failure};
use session::PostgresSession;
use std::sync::Arc;
use table::Table;
use wire::Settings;

pub struct Postgres {
    shared: Arc<Shared>,
}

/// The same for all sessions.
pub struct Shared {
    settings: Settings,
    operations: Vec<Option<Custom>>,
    table: Table,
}

impl Driver for Postgres {
    type Worker = PostgresWorker;

    fn spec() -> &'static DriverSpec {
        &spec::SPEC
    }

    fn open(target: Target) -> Result<Postgres, Failure> {
        Ok(Postgres {
            shared: Arc::new(Shared {
                settings: Settings::of(&target)?,
                operations: sql::compile_all(&target.operations, &spec::DIALECT)?,
                table: Table::new(&target.options),
            }),
        })
    }

    fn worker(&self) -> Result<PostgresWorker, Failure> {
        Ok(PostgresWorker {
            shared: Arc::clone(&self.shared),
        })
    }

    fn control(&self, endpoint: &Endpoint) -> Result<Box<dyn Control>, Failure> {
        let shared = Arc::clone(&self.shared);
        Ok(Box::new(control::PostgresControl::new(
            endpoint.clone(),
            shared,
        )?))
    }
}

/// Sessions of one thread share nothing but what all share.
pub struct PostgresWorker {
    shared: Arc<Shared>,
}

impl Worker for PostgresWorker {
    type Session = PostgresSession;

    async fn session(&self, endpoints: &[Endpoint]) -> Result<PostgresSession, Failure> {
        let endpoint = endpoints.first().ok_or_else(|| {
            Failure::new(ErrorClass::Connect, "there is no endpoint to connect to")
        })?;
        PostgresSession::open(Arc::clone(&self.shared), endpoint).await
    }
}

/// Too many connections.
const TOO_MANY: &str = "53300";

/// A connection that was not made. Never shows a password.
fn refused(error: &tokio_postgres::Error, label: &str) -> Failure {
    let connect = |reason: &str| {
        Failure::new(
            ErrorClass::Connect,
            format!("cannot connect to {label}: {reason}"),
        )
    };
    match error.as_db_error() {
        Some(said) if said.code().code() == TOO_MANY => connect(&format!(
            "{}; raise max_connections, or use fewer threads",
            said.message()
        ))
        .with_code(TOO_MANY),
        Some(said) => connect(said.message()).with_code(said.code().code()),
        None => connect(&told(error)),
    }
}

/// A failure of an operation on an open connection.
fn failure(error: &tokio_postgres::Error) -> Failure {
    let Some(said) = error.as_db_error() else {
        let io = std::error::Error::source(error).and_then(|source| source.downcast_ref());
        return match io {
            Some(error) => super::net::lost(error),
            None if error.is_closed() => Failure::new(
                ErrorClass::Reset,
                "connection lost: the server closed the connection",
            ),
            None => Failure::new(
                ErrorClass::Client,
                format!("the statement cannot be executed: {}", told(error)),
            ),
        };
    };
    let mut failure =
        Failure::new(ErrorClass::Server, said.message()).with_code(said.code().code());
    // After a fatal one the server ends the connection.
    failure.broken = matches!(said.severity(), "FATAL" | "PANIC");
    failure.unanswered = failure.broken;
    failure
}

/// An error with its causes.
fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
