//! The table `dbbench` of the built-in operations: its statements, and that it is ours before anything is written.

use super::wire::Wire;
use crate::driver::spec::Options;
use crate::op::{ErrorClass, Failure};
use std::sync::atomic::{AtomicBool, Ordering};

/// Marks a table as one that dbbench has made.
const COMMENT: &str = "made by dbbench";

/// Statements by their position in a session's cache.
pub const GET: usize = 0;
pub const GET_FOR_UPDATE: usize = 1;
pub const SET: usize = 2;
pub const INSERT: usize = 3;
pub const UPDATE: usize = 4;
pub const DELETE: usize = 5;
pub const INCREMENT: usize = 6;
pub const SCAN: usize = 7;
pub const STATEMENTS: usize = 8;

pub struct Table {
    options: String,
    texts: [String; STATEMENTS],
    /// It is there, and ours.
    made: AtomicBool,
}

impl Table {
    pub fn new(options: &Options) -> Table {
        let limit = options.integer("scan_limit").unwrap_or(100);
        Table {
            options: options.text("table_options").unwrap_or_default(),
            texts: [
                "SELECT value FROM dbbench WHERE key = $1".to_owned(),
                "SELECT value FROM dbbench WHERE key = $1 FOR UPDATE".to_owned(),
                "INSERT INTO dbbench (key, value) VALUES ($1, $2) \
                 ON CONFLICT (key) DO UPDATE SET value = EXCLUDED.value"
                    .to_owned(),
                "INSERT INTO dbbench (key, value) VALUES ($1, $2)".to_owned(),
                "UPDATE dbbench SET value = $2 WHERE key = $1".to_owned(),
                "DELETE FROM dbbench WHERE key = $1".to_owned(),
                // Counters are decimal text, as in the other stores.
                "INSERT INTO dbbench (key, value) VALUES ($1, '1') ON CONFLICT (key) DO UPDATE \
                 SET value = convert_to((convert_from(dbbench.value, 'UTF8')::bigint + 1)::text, 'UTF8')"
                    .to_owned(),
                format!("SELECT key, value FROM dbbench WHERE key >= $1 ORDER BY key LIMIT {limit}"),
            ],
            made: AtomicBool::new(false),
        }
    }

    pub fn text(&self, statement: usize) -> &str {
        &self.texts[statement]
    }

    #[inline]
    pub fn is_made(&self) -> bool {
        self.made.load(Ordering::Relaxed)
    }

    /// Makes the table where there is none. One that somebody else has made is a failure.
    pub async fn make(&self, wire: &mut Wire) -> Result<(), Failure> {
        if !is_there(wire).await? {
            // Two sessions at once: IF NOT EXISTS alone may fail on the catalogue's own keys.
            let statements = format!(
                "BEGIN; SELECT pg_advisory_xact_lock(56446); \
                 CREATE TABLE IF NOT EXISTS dbbench (key bytea PRIMARY KEY, value bytea NOT NULL) {}; \
                 COMMENT ON TABLE dbbench IS '{COMMENT}'; COMMIT",
                self.options
            );
            if let Err(failure) = wire.plain(&statements).await {
                if !failure.broken {
                    wire.plain("ROLLBACK").await?;
                }
                return Err(failure);
            }
        }
        self.made.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Drops the table where it is ours.
    pub async fn drop(&self, wire: &mut Wire) -> Result<(), Failure> {
        self.made.store(false, Ordering::Relaxed);
        if is_there(wire).await? {
            wire.plain("DROP TABLE dbbench").await?;
        }
        Ok(())
    }
}

async fn is_there(wire: &mut Wire) -> Result<bool, Failure> {
    let question = "SELECT coalesce(obj_description(to_regclass('dbbench')::oid, 'pg_class'), '') \
        WHERE to_regclass('dbbench') IS NOT NULL";
    let rows = wire.wait(|client| client.query(question, &[])).await?;
    match rows.first().map(|row| row.get::<_, String>(0)) {
        None => Ok(false),
        Some(comment) if comment == COMMENT => Ok(true),
        Some(_) => Err(Failure::new(
            ErrorClass::Rejected,
            "there is a table `dbbench` that dbbench has not made, and it is left alone; name another database in the \
             endpoint, or drop the table yourself",
        )),
    }
}
