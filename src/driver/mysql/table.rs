//! The table `dbbench` of the built-in operations: its statements, and that it is ours before anything is written.

use super::failure;
use crate::driver::spec::Options;
use crate::op::{ErrorClass, Failure};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Value};
use std::sync::atomic::{AtomicBool, Ordering};

/// Marks a table as one that dbbench has made.
const COMMENT: &str = "made by dbbench";

pub const GET: &str = "SELECT `value` FROM dbbench WHERE `key` = ?";
pub const GET_FOR_UPDATE: &str = "SELECT `value` FROM dbbench WHERE `key` = ? FOR UPDATE";
pub const SET: &str = "INSERT INTO dbbench (`key`, `value`) VALUES (?, ?) \
    ON DUPLICATE KEY UPDATE `value` = VALUES(`value`)";
pub const INSERT: &str = "INSERT INTO dbbench (`key`, `value`) VALUES (?, ?)";
pub const UPDATE: &str = "UPDATE dbbench SET `value` = ? WHERE `key` = ?";
pub const DELETE: &str = "DELETE FROM dbbench WHERE `key` = ?";
/// Counters are decimal text, as in the other stores. What is none makes the comparison fail: a subquery of two rows.
pub const INCREMENT: &str = "INSERT INTO dbbench (`key`, `value`) VALUES (?, '1') \
    ON DUPLICATE KEY UPDATE `value` = IF(`value` REGEXP '^(0|-?[1-9][0-9]{0,18})$', \
    CAST(CAST(`value` AS CHAR) AS SIGNED) + 1, (SELECT 1 UNION SELECT 2))";

pub struct Table {
    engine: String,
    pub scan: String,
    /// It is there, and ours.
    made: AtomicBool,
}

impl Table {
    pub fn new(options: &Options) -> Table {
        let limit = options.integer("scan_limit").unwrap_or(100);
        Table {
            engine: options.text("engine").unwrap_or_default(),
            scan: format!(
                "SELECT `key`, `value` FROM dbbench WHERE `key` >= ? ORDER BY `key` LIMIT {limit}"
            ),
            made: AtomicBool::new(false),
        }
    }

    pub fn engine(&self) -> &str {
        &self.engine
    }

    #[inline]
    pub fn is_made(&self) -> bool {
        self.made.load(Ordering::Relaxed)
    }

    /// Makes the table where there is none. One that somebody else has made is a failure.
    pub async fn make(&self, connection: &mut Conn) -> Result<(), Failure> {
        if !is_there(connection).await? {
            let engine = match self.engine.as_str() {
                "" => String::new(),
                engine => format!(" ENGINE={engine}"),
            };
            let statement = format!(
                "CREATE TABLE IF NOT EXISTS dbbench (`key` VARBINARY(512) NOT NULL PRIMARY KEY, \
                 `value` LONGBLOB NOT NULL){engine} COMMENT='{COMMENT}'"
            );
            let made = connection.query_drop(statement).await;
            made.map_err(|error| failure(&error))?;
        }
        self.made.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Drops the table where it is ours.
    pub async fn drop(&self, connection: &mut Conn) -> Result<(), Failure> {
        self.made.store(false, Ordering::Relaxed);
        if is_there(connection).await? {
            let dropped = connection.query_drop("DROP TABLE dbbench").await;
            dropped.map_err(|error| failure(&error))?;
        }
        Ok(())
    }
}

async fn is_there(connection: &mut Conn) -> Result<bool, Failure> {
    let comment = "SELECT table_comment FROM information_schema.tables \
        WHERE table_schema = DATABASE() AND table_name = 'dbbench'";
    let found: Result<Option<Value>, _> = connection.query_first(comment).await;
    match found.map_err(|error| failure(&error))? {
        None => Ok(false),
        Some(Value::Bytes(comment)) if comment == COMMENT.as_bytes() => Ok(true),
        Some(_) => Err(Failure::new(
            ErrorClass::Rejected,
            "there is a table `dbbench` that dbbench has not made, and it is left alone; name another database in the \
             endpoint, or drop the table yourself",
        )),
    }
}
