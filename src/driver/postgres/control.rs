//! The cold side: readiness, version, settings, durability, reset, single statements.

use super::Shared;
use super::wire::Wire;
use crate::driver::Control;
use crate::driver::net::blocking::Blocking;
use crate::driver::spec::{Durability, Endpoint};
use crate::op::Failure;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_postgres::SimpleQueryMessage;

/// What a reader of the results wants to know, in this order.
const SETTINGS: [&str; 11] = [
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "wal_level",
    "shared_buffers",
    "work_mem",
    "max_wal_size",
    "wal_buffers",
    "effective_cache_size",
    "max_connections",
    "default_transaction_isolation",
];

pub struct PostgresControl {
    endpoint: Endpoint,
    shared: Arc<Shared>,
    blocking: Blocking,
    wire: Option<Wire>,
}

impl PostgresControl {
    pub fn new(endpoint: Endpoint, shared: Arc<Shared>) -> Result<PostgresControl, Failure> {
        Ok(PostgresControl {
            endpoint,
            shared,
            blocking: Blocking::new()?,
            wire: None,
        })
    }

    /// Uses the connection, made where there is none, and keeps it unless it broke.
    fn with<T>(
        &mut self,
        limit: Duration,
        what: &str,
        work: impl AsyncFnOnce(&mut Wire) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let what = format!("{what} to {}", self.endpoint.label);
        let (shared, endpoint) = (&self.shared, &self.endpoint);
        let kept = self.wire.take();
        let (result, wire) = self.blocking.run(limit, &what, async {
            let mut wire = match kept {
                Some(wire) => wire,
                None => shared.settings.connect(endpoint).await?,
            };
            let result = work(&mut wire).await;
            Ok((result, wire))
        })?;
        if !result.as_ref().is_err_and(|failure| failure.broken) {
            self.wire = Some(wire);
        }
        result
    }

    /// The first value of the first row; empty where there is none.
    fn first(&mut self, statement: &str, limit: Duration) -> Result<String, Failure> {
        self.with(limit, "a statement", async |wire| {
            let messages = wire.wait(|client| client.simple_query(statement)).await?;
            let mut rows = messages.iter().filter_map(|message| match message {
                SimpleQueryMessage::Row(row) if !row.is_empty() => Some(row.get(0)),
                _ => None,
            });
            Ok(rows.next().flatten().unwrap_or_default().to_owned())
        })
    }
}

impl Control for PostgresControl {
    fn ready(&mut self, limit: Duration) -> Result<(), Failure> {
        self.first("SELECT 1", limit).map(drop)
    }

    /// `PostgreSQL 15.20`.
    fn version(&mut self, limit: Duration) -> Result<String, Failure> {
        let version = self.first("SHOW server_version", limit)?;
        let number = version.split_whitespace().next().unwrap_or_default();
        Ok(format!("PostgreSQL {number}"))
    }

    fn settings(&mut self, limit: Duration) -> Result<Vec<(String, String)>, Failure> {
        let mut settings = Vec::new();
        for name in SETTINGS {
            // NULL for what this server does not know.
            let statement = format!("SELECT current_setting('{name}', true)");
            let value = self.first(&statement, limit)?;
            settings.push((name.to_owned(), value));
        }
        Ok(settings)
    }

    fn durability(&mut self, limit: Duration) -> Result<Option<Durability>, Failure> {
        let fsync = self.first("SHOW fsync", limit)?;
        let commit = self.first("SHOW synchronous_commit", limit)?;
        Ok(Some(match (fsync.as_str(), commit.as_str()) {
            // What is not written yet dies with the server.
            (_, "off") => Durability::Memory,
            ("on", _) => Durability::Fsync,
            _ => Durability::Os,
        }))
    }

    /// Drops the table of ours; others stay.
    fn reset(&mut self, limit: Duration) -> Result<(), Failure> {
        let shared = Arc::clone(&self.shared);
        self.with(limit, "a reset", async |wire| shared.table.drop(wire).await)
    }

    fn statement(&mut self, statement: &str, limit: Duration) -> Result<String, Failure> {
        self.first(statement, limit)
    }

    fn round_trip(&mut self, limit: Duration) -> Result<Duration, Failure> {
        self.with(limit, "a question", async |wire| {
            let start = Instant::now();
            wire.plain("").await?;
            Ok(start.elapsed())
        })
    }
}
