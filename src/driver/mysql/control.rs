//! The cold side: readiness, version, settings, durability, reset, single statements.

use super::session::text_of;
use super::{Shared, failure};
use crate::driver::Control;
use crate::driver::net::blocking::Blocking;
use crate::driver::spec::{Durability, Endpoint};
use crate::op::Failure;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a reader of the results wants to know, in this order; a server that lacks one says nothing of it.
const SETTINGS: [&str; 14] = [
    "version_comment",
    "default_storage_engine",
    "innodb_flush_log_at_trx_commit",
    "sync_binlog",
    "log_bin",
    "innodb_doublewrite",
    "innodb_buffer_pool_size",
    "innodb_log_file_size",
    "innodb_flush_method",
    "key_buffer_size",
    "query_cache_type",
    "max_connections",
    "transaction_isolation",
    "sql_mode",
];

pub struct MysqlControl {
    endpoint: Endpoint,
    shared: Arc<Shared>,
    blocking: Blocking,
    connection: Option<Conn>,
}

impl MysqlControl {
    pub fn new(endpoint: Endpoint, shared: Arc<Shared>) -> Result<MysqlControl, Failure> {
        Ok(MysqlControl {
            endpoint,
            shared,
            blocking: Blocking::new()?,
            connection: None,
        })
    }

    /// Uses the connection, made where there is none, and keeps it unless it broke.
    fn with<T>(
        &mut self,
        limit: Duration,
        what: &str,
        work: impl AsyncFnOnce(&mut Conn) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let what = format!("{what} to {}", self.endpoint.label);
        let (shared, endpoint) = (&self.shared, &self.endpoint);
        let kept = self.connection.take();
        let (result, connection) = self.blocking.run(limit, &what, async {
            let mut connection = match kept {
                Some(connection) => connection,
                None => shared.settings.connect(endpoint).await?,
            };
            let result = work(&mut connection).await;
            Ok((result, connection))
        })?;
        if !result.as_ref().is_err_and(|failure| failure.broken) {
            self.connection = Some(connection);
        }
        result
    }

    /// The first value of the first row; empty where there is none.
    fn first(&mut self, statement: &str, limit: Duration) -> Result<String, Failure> {
        self.with(limit, "a statement", async |connection| {
            let row: Result<Option<Row>, _> = connection.query_first(statement).await;
            let row = row.map_err(|error| failure(&error))?;
            let value = row.as_ref().and_then(|row| row.as_ref(0)).map(text_of);
            Ok(value.unwrap_or_default())
        })
    }

    fn variables(&mut self, limit: Duration) -> Result<Vec<(String, String)>, Failure> {
        let names: Vec<String> = SETTINGS.iter().map(|name| format!("'{name}'")).collect();
        let statement = format!(
            "SHOW GLOBAL VARIABLES WHERE Variable_name IN ({})",
            names.join(", ")
        );
        let found = self.with(limit, "a question", async |connection| {
            let rows: Result<Vec<(String, String)>, _> = connection.query(statement).await;
            rows.map_err(|error| failure(&error))
        })?;
        let value = |name: &&str| {
            let mut found = found.iter();
            found.find(|(known, _)| known.eq_ignore_ascii_case(name))
        };
        let known = SETTINGS.iter().filter_map(value);
        Ok(known.cloned().collect())
    }
}

impl Control for MysqlControl {
    fn ready(&mut self, limit: Duration) -> Result<(), Failure> {
        self.first("SELECT 1", limit).map(drop)
    }

    /// `MariaDB 10.11.19`, `MySQL 8.0.40`.
    fn version(&mut self, limit: Duration) -> Result<String, Failure> {
        let version = self.first("SELECT VERSION()", limit)?;
        let number = version.split('-').next().unwrap_or_default();
        Ok(match version.contains("MariaDB") {
            true => format!("MariaDB {number}"),
            false => format!("MySQL {number}"),
        })
    }

    fn settings(&mut self, limit: Duration) -> Result<Vec<(String, String)>, Failure> {
        self.variables(limit)
    }

    /// That of InnoDB, where it is the engine of new tables; other engines promise less, each in its way, so it is not
    /// known of them.
    fn durability(&mut self, limit: Duration) -> Result<Option<Durability>, Failure> {
        let variables = self.variables(limit)?;
        let value = |name: &str| {
            let found = variables.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.as_str()).unwrap_or_default()
        };
        let said = self.shared.table.engine();
        let engine = match said {
            "" => value("default_storage_engine"),
            said => said,
        };
        Ok(durability(engine, value("innodb_flush_log_at_trx_commit")))
    }

    /// Drops the table of ours; others stay.
    fn reset(&mut self, limit: Duration) -> Result<(), Failure> {
        let shared = Arc::clone(&self.shared);
        self.with(limit, "a reset", async |connection| {
            shared.table.drop(connection).await
        })
    }

    fn statement(&mut self, statement: &str, limit: Duration) -> Result<String, Failure> {
        self.first(statement, limit)
    }

    fn round_trip(&mut self, limit: Duration) -> Result<Duration, Failure> {
        self.with(limit, "a ping", async |connection| {
            let start = Instant::now();
            connection.ping().await.map_err(|error| failure(&error))?;
            Ok(start.elapsed())
        })
    }
}

fn durability(engine: &str, flush: &str) -> Option<Durability> {
    match (engine.to_ascii_lowercase().as_str(), flush) {
        ("innodb", "1" | "3") => Some(Durability::Fsync),
        ("innodb", "2") => Some(Durability::Os),
        // Written once a second; a killed server loses what is not.
        ("innodb", "0") => Some(Durability::Memory),
        ("myisam" | "archive" | "csv" | "aria", _) => Some(Durability::Os),
        ("memory", _) => Some(Durability::Memory),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durability_is_never_more_than_the_engine_promises() {
        assert_eq!(durability("InnoDB", "1"), Some(Durability::Fsync));
        assert_eq!(durability("InnoDB", "2"), Some(Durability::Os));
        assert_eq!(durability("InnoDB", "0"), Some(Durability::Memory));
        assert_eq!(durability("MyISAM", "1"), Some(Durability::Os));
        assert_eq!(durability("MEMORY", "1"), Some(Durability::Memory));
        assert_eq!(durability("ROCKSDB", "1"), None);
    }
}
