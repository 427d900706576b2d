//! How connections to the file are opened and set, and what SQLite's errors mean.

use super::spec;
use crate::driver::embedded::key_exists;
use crate::driver::spec::Options;
use crate::op::{ErrorClass, Failure};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, ffi};
use std::borrow::Cow;
use std::path::PathBuf;
use std::time::Duration;

/// All that a connection needs to know; made once from the options.
pub struct Config {
    pub file: PathBuf,
    pub busy_timeout: Duration,
    pub scan_limit: i64,
    table: &'static str,
    /// In the order in which they are set: the size of pages cannot change once there is a log.
    pragmas: Vec<String>,
}

impl Config {
    pub fn new(file: PathBuf, options: &Options) -> Config {
        let text = |name: &str| options.text(name).unwrap_or_default();
        let page_size = options.size("page_size").unwrap_or(4096);
        let mut pragmas = vec![
            format!("page_size = {page_size}"),
            format!("journal_mode = {}", text("journal_mode")),
            format!("synchronous = {}", text("synchronous")),
        ];
        if let Some(bytes) = options.size("cache_size") {
            // Negative numbers are KiB.
            pragmas.push(format!("cache_size = -{}", bytes.div_ceil(1024)));
        }
        if let Some(bytes) = options.size("mmap_size") {
            pragmas.push(format!("mmap_size = {bytes}"));
        }
        pragmas.extend(spec::pragmas(options));
        let table = match options.bool("without_rowid") {
            true => " WITHOUT ROWID",
            false => "",
        };
        Config {
            file,
            busy_timeout: options.duration("busy_timeout").unwrap_or_default(),
            scan_limit: options.integer("scan_limit").unwrap_or(100),
            table,
            pragmas,
        }
    }

    pub fn open(&self) -> Result<Connection, Failure> {
        let connection = Connection::open(&self.file).map_err(failure)?;
        connection
            .busy_timeout(self.busy_timeout)
            .map_err(failure)?;
        connection.set_prepared_statement_cache_capacity(64);
        for pragma in &self.pragmas {
            connection
                .execute_batch(&format!("PRAGMA {pragma}"))
                .map_err(failure)?;
        }
        Ok(connection)
    }

    pub fn make_table(&self, connection: &Connection) -> Result<(), Failure> {
        let statement = format!(
            "CREATE TABLE IF NOT EXISTS dbbench (key BLOB NOT NULL PRIMARY KEY, value BLOB NOT NULL){}",
            self.table
        );
        connection.execute_batch(&statement).map_err(failure)
    }
}

/// SQLite's errors by what they mean for an operation. The code is SQLite's own name where there is a usual one, else
/// its extended number.
pub fn failure(error: rusqlite::Error) -> Failure {
    let rusqlite::Error::SqliteFailure(cause, _) = &error else {
        return Failure::new(ErrorClass::Client, format!("SQLite failed: {error}"));
    };
    let (class, code) = match cause.code {
        ErrorCode::DatabaseBusy => (ErrorClass::Server, "SQLITE_BUSY".to_owned()),
        ErrorCode::DatabaseLocked => (ErrorClass::Server, "SQLITE_LOCKED".to_owned()),
        ErrorCode::DiskFull => (ErrorClass::Client, "ENOSPC".to_owned()),
        ErrorCode::ConstraintViolation => (ErrorClass::Rejected, "SQLITE_CONSTRAINT".to_owned()),
        ErrorCode::TooBig => (ErrorClass::Rejected, "SQLITE_TOOBIG".to_owned()),
        ErrorCode::OperationInterrupted => (ErrorClass::Timeout, "SQLITE_INTERRUPT".to_owned()),
        _ => (ErrorClass::Client, cause.extended_code.to_string()),
    };
    Failure::new(class, format!("SQLite failed: {error}")).with_code(code)
}

/// The failure of `insert`: a key that is there is refused alike by all embedded stores.
pub fn insert_failure(error: rusqlite::Error) -> Failure {
    match &error {
        rusqlite::Error::SqliteFailure(cause, _)
            if cause.extended_code == ffi::SQLITE_CONSTRAINT_PRIMARYKEY =>
        {
            key_exists()
        }
        _ => failure(error),
    }
}

/// A value's bytes where they lie, or a number's text.
pub fn bytes_of(value: ValueRef<'_>) -> Cow<'_, [u8]> {
    match value {
        ValueRef::Null => Cow::Borrowed(b""),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Cow::Borrowed(bytes),
        ValueRef::Integer(number) => Cow::Owned(number.to_string().into_bytes()),
        ValueRef::Real(number) => Cow::Owned(number.to_string().into_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: std::os::raw::c_int) -> Failure {
        failure(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None))
    }

    #[test]
    fn errors_are_told_apart_by_what_they_mean() {
        let busy = of(ffi::SQLITE_BUSY);
        assert_eq!(
            (busy.class, busy.code.as_str()),
            (ErrorClass::Server, "SQLITE_BUSY")
        );
        let full = of(ffi::SQLITE_FULL);
        assert_eq!(
            (full.class, full.code.as_str()),
            (ErrorClass::Client, "ENOSPC")
        );
        assert_eq!(of(ffi::SQLITE_CORRUPT).class, ErrorClass::Client);
        assert_eq!(
            of(ffi::SQLITE_CONSTRAINT_UNIQUE).class,
            ErrorClass::Rejected
        );
        assert!(!of(ffi::SQLITE_IOERR).broken);
    }
}
