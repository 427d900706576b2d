//! The cold side of SQLite, on a connection of its own: version, effective settings, emptying, single statements.

use super::connection::{Config, bytes_of, failure};
use super::spec::durability_of;
use crate::driver::Control;
use crate::driver::spec::Durability;
use crate::op::Failure;
use rusqlite::Connection;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Asked from a connection that is set as the sessions' are, so that the results say what is and not what was wanted.
const SETTINGS: [&str; 7] = [
    "journal_mode",
    "synchronous",
    "page_size",
    "cache_size",
    "mmap_size",
    "busy_timeout",
    "wal_autocheckpoint",
];

pub struct SqliteControl {
    config: Arc<Config>,
    connection: Connection,
}

impl SqliteControl {
    pub fn open(config: &Arc<Config>) -> Result<SqliteControl, Failure> {
        Ok(SqliteControl {
            connection: config.open()?,
            config: Arc::clone(config),
        })
    }

    fn pragma(&self, name: &str) -> Result<String, Failure> {
        let text = self.first(&format!("PRAGMA {name}"))?;
        Ok(match (name, text.as_str()) {
            ("synchronous", "0") => "off".to_owned(),
            ("synchronous", "1") => "normal".to_owned(),
            ("synchronous", "2") => "full".to_owned(),
            ("synchronous", "3") => "extra".to_owned(),
            _ => text,
        })
    }

    /// First column of the first row as text; empty where there is none. All rows are read.
    fn first(&self, sql: &str) -> Result<String, Failure> {
        let mut statement = self.connection.prepare(sql).map_err(failure)?;
        let has_columns = statement.column_count() > 0;
        let mut rows = statement.query([]).map_err(failure)?;
        let mut first = None;
        while let Some(row) = rows.next().map_err(failure)? {
            if has_columns && first.is_none() {
                let bytes = bytes_of(row.get_ref(0).map_err(failure)?);
                first = Some(String::from_utf8_lossy(&bytes).into_owned());
            }
        }
        Ok(first.unwrap_or_default())
    }

    /// Does `work`, which is interrupted after `limit`.
    fn within<T>(
        &self,
        limit: Duration,
        work: impl FnOnce(&Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.connection.busy_timeout(limit).map_err(failure)?;
        let interrupt = self.connection.get_interrupt_handle();
        let (done, waits) = channel::<()>();
        let result = std::thread::scope(|scope| {
            scope.spawn(move || {
                if waits.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                    interrupt.interrupt();
                }
            });
            let result = work(self);
            drop(done);
            result
        });
        let timeout = self.config.busy_timeout;
        self.connection.busy_timeout(timeout).map_err(failure)?;
        result
    }

    fn drop_everything(&self) -> Result<(), Failure> {
        let list = "SELECT 'DROP ' || type || ' \"' || replace(name, '\"', '\"\"') || '\"' FROM sqlite_schema \
            WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
        let mut statement = self.connection.prepare(list).map_err(failure)?;
        let drops: Vec<String> = statement
            .query_map([], |row| row.get(0))
            .and_then(Iterator::collect)
            .map_err(failure)?;
        let batch = format!("BEGIN IMMEDIATE; {}; COMMIT", drops.join("; "));
        let dropped = self.connection.execute_batch(&batch).map_err(failure);
        if !self.connection.is_autocommit() {
            self.connection.execute_batch("ROLLBACK").map_err(failure)?;
        }
        dropped
    }
}

impl Control for SqliteControl {
    fn ready(&mut self, limit: Duration) -> Result<(), Failure> {
        self.round_trip(limit).map(|_| ())
    }

    fn version(&mut self, _: Duration) -> Result<String, Failure> {
        Ok(format!("SQLite {}", rusqlite::version()))
    }

    fn settings(&mut self, _: Duration) -> Result<Vec<(String, String)>, Failure> {
        let setting = |name: &&str| Ok(((*name).to_owned(), self.pragma(name)?));
        let mut settings: Vec<(String, String)> = SETTINGS
            .iter()
            .map(setting)
            .collect::<Result<_, Failure>>()?;
        let table = self.first("SELECT sql FROM sqlite_schema WHERE name = 'dbbench'")?;
        settings.push(("table".to_owned(), table));
        Ok(settings)
    }

    fn durability(&mut self, _: Duration) -> Result<Option<Durability>, Failure> {
        let journal_mode = self.pragma("journal_mode")?;
        let synchronous = self.pragma("synchronous")?;
        Ok(Some(durability_of(&journal_mode, &synchronous)))
    }

    fn reset(&mut self, limit: Duration) -> Result<(), Failure> {
        self.within(limit, |control| {
            control.drop_everything()?;
            control.config.make_table(&control.connection)
        })
    }

    fn statement(&mut self, statement: &str, limit: Duration) -> Result<String, Failure> {
        self.within(limit, |control| control.first(statement))
    }

    fn round_trip(&mut self, limit: Duration) -> Result<Duration, Failure> {
        let start = Instant::now();
        self.within(limit, |control| {
            control.first("SELECT 1 FROM dbbench WHERE key = x''")
        })?;
        Ok(start.elapsed())
    }
}
