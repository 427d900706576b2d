//! The `sqlite` driver: one file, a connection per session, prepared statements.
//!
//! The built-in operations work on the table `dbbench (key BLOB, value BLOB)`, each as a transaction of its own;
//! `custom` holds the user's. Values are compared where SQLite holds them, without a copy.

mod connection;
mod control;
mod custom;
mod spec;

use crate::driver::embedded::{make_directory, not_an_integer};
use crate::driver::spec::{DriverSpec, Endpoint};
use crate::driver::sql::{self, Custom};
use crate::driver::{Control, Driver, Session, Target, Worker};
use crate::op::{ErrorClass, Failure, Operation, Outcome, Reply, Verb};
use connection::{Config, bytes_of, failure, insert_failure};
use rusqlite::{Connection, ToSql, params};
use std::sync::{Arc, Mutex};

const GET: &str = "SELECT value FROM dbbench WHERE key = ?1";
const SET: &str = "INSERT INTO dbbench (key, value) VALUES (?1, ?2) \
    ON CONFLICT (key) DO UPDATE SET value = excluded.value";
const INSERT: &str = "INSERT INTO dbbench (key, value) VALUES (?1, ?2)";
const UPDATE: &str = "UPDATE dbbench SET value = ?2 WHERE key = ?1";
const DELETE: &str = "DELETE FROM dbbench WHERE key = ?1";
const SCAN: &str = "SELECT key, value FROM dbbench WHERE key >= ?1 ORDER BY key LIMIT ?2";
/// Counters are decimal text, as in the other stores. One that is no plain integer, or the largest, is left as it is:
/// no row changes then.
const INCREMENT: &str = "INSERT INTO dbbench (key, value) VALUES (?1, CAST('1' AS BLOB)) \
    ON CONFLICT (key) DO UPDATE SET value = CAST(CAST(CAST(value AS TEXT) AS INTEGER) + 1 AS BLOB) \
    WHERE CAST(CAST(CAST(value AS TEXT) AS INTEGER) AS TEXT) = CAST(value AS TEXT) \
    AND CAST(CAST(value AS TEXT) AS INTEGER) < 9223372036854775807";

pub struct Sqlite {
    config: Arc<Config>,
    operations: Arc<Vec<Option<Custom>>>,
    /// Keeps the write-ahead log while sessions come and go: the last connection to close empties and removes it.
    _keeper: Mutex<Connection>,
}

impl Driver for Sqlite {
    type Worker = SqliteWorker;

    fn spec() -> &'static DriverSpec {
        &spec::SPEC
    }

    fn open(target: Target) -> Result<Self, Failure> {
        make_directory(&target.directory)?;
        let operations = sql::compile_all(&target.operations, &custom::DIALECT)?;
        let config = Config::new(target.directory.join("dbbench.sqlite"), &target.options);
        let keeper = config.open()?;
        config.make_table(&keeper)?;
        Ok(Sqlite {
            config: Arc::new(config),
            operations: Arc::new(operations),
            _keeper: Mutex::new(keeper),
        })
    }

    fn worker(&self) -> Result<SqliteWorker, Failure> {
        Ok(SqliteWorker {
            config: Arc::clone(&self.config),
            operations: Arc::clone(&self.operations),
        })
    }

    fn control(&self, _: &Endpoint) -> Result<Box<dyn Control>, Failure> {
        Ok(Box::new(control::SqliteControl::open(&self.config)?))
    }
}

pub struct SqliteWorker {
    config: Arc<Config>,
    operations: Arc<Vec<Option<Custom>>>,
}

impl Worker for SqliteWorker {
    type Session = SqliteSession;

    async fn session(&self, _: &[Endpoint]) -> Result<SqliteSession, Failure> {
        Ok(SqliteSession {
            connection: self.config.open()?,
            scan_limit: self.config.scan_limit,
            operations: Arc::clone(&self.operations),
        })
    }
}

pub struct SqliteSession {
    connection: Connection,
    scan_limit: i64,
    operations: Arc<Vec<Option<Custom>>>,
}

impl Session for SqliteSession {
    async fn execute(&mut self, operation: &Operation, reply: &mut Reply) -> Outcome {
        self.run(operation, reply).unwrap_or_else(Outcome::from)
    }
}

impl SqliteSession {
    fn run(&self, operation: &Operation, reply: &mut Reply) -> Result<Outcome, Failure> {
        let key = operation.key.as_slice();
        let both = params![key, operation.value];
        match operation.verb {
            Verb::Get => self.get(operation, reply),
            Verb::Scan => self.scan(key, reply),
            Verb::Set => {
                self.write(SET, both, operation, reply).map_err(failure)?;
                Ok(Outcome::Done)
            }
            Verb::Insert => {
                let inserted = self.write(INSERT, both, operation, reply);
                inserted.map_err(insert_failure)?;
                Ok(Outcome::Done)
            }
            Verb::Update => {
                let changed = self.write(UPDATE, both, operation, reply);
                Ok(done_or_missing(changed.map_err(failure)?))
            }
            Verb::Delete => {
                let changed = self.change(DELETE, params![key]).map_err(failure)?;
                reply.bytes_sent = key.len() as u64;
                Ok(done_or_missing(changed))
            }
            Verb::Increment => {
                let changed = self.change(INCREMENT, params![key]).map_err(failure)?;
                reply.bytes_sent = key.len() as u64;
                match changed {
                    0 => Err(not_an_integer()),
                    _ => Ok(Outcome::Done),
                }
            }
            Verb::ReadModifyWrite => self.read_modify_write(operation, reply),
            Verb::Custom(number) => self.custom(number, operation, reply),
            Verb::Statement => custom::statement(&self.connection, &operation.value, reply),
        }
    }

    fn get(&self, operation: &Operation, reply: &mut Reply) -> Result<Outcome, Failure> {
        reply.bytes_sent = operation.key.len() as u64;
        let mut statement = self.connection.prepare_cached(GET).map_err(failure)?;
        let mut rows = statement
            .query([operation.key.as_slice()])
            .map_err(failure)?;
        match rows.next().map_err(failure)? {
            Some(row) => {
                let value = bytes_of(row.get_ref(0).map_err(failure)?);
                reply.bytes_received = value.len() as u64;
                Ok(reply.found(operation, &value))
            }
            None => Ok(Outcome::Missing),
        }
    }

    fn scan(&self, from: &[u8], reply: &mut Reply) -> Result<Outcome, Failure> {
        reply.bytes_sent = from.len() as u64;
        let mut statement = self.connection.prepare_cached(SCAN).map_err(failure)?;
        let mut rows = statement
            .query(params![from, self.scan_limit])
            .map_err(failure)?;
        let mut outcome = Outcome::Missing;
        while let Some(row) = rows.next().map_err(failure)? {
            let key = bytes_of(row.get_ref(0).map_err(failure)?);
            let value = bytes_of(row.get_ref(1).map_err(failure)?);
            reply.bytes_received += (key.len() + value.len()) as u64;
            outcome = Outcome::Found;
        }
        Ok(outcome)
    }

    /// The lock for writing is taken before the read, so that nobody writes between the two.
    fn read_modify_write(
        &self,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        custom::run(&self.connection, "BEGIN IMMEDIATE")?;
        let result = self.read_then_write(operation, reply);
        if result.is_err() && !self.connection.is_autocommit() {
            custom::run(&self.connection, "ROLLBACK")?;
        }
        result
    }

    fn read_then_write(
        &self,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let mut statement = self.connection.prepare_cached(GET).map_err(failure)?;
        let mut rows = statement
            .query([operation.key.as_slice()])
            .map_err(failure)?;
        if let Some(row) = rows.next().map_err(failure)? {
            let value = bytes_of(row.get_ref(0).map_err(failure)?);
            reply.bytes_received = value.len() as u64;
            reply.value_length = Some(reply.bytes_received);
        }
        drop(rows);
        let both = params![operation.key, operation.value];
        self.write(SET, both, operation, reply).map_err(failure)?;
        custom::run(&self.connection, "COMMIT")?;
        Ok(Outcome::Done)
    }

    fn custom(
        &self,
        number: u16,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        match self.operations.get(usize::from(number)) {
            Some(Some(custom)) => custom::execute(custom, &self.connection, operation, reply),
            _ => Err(Failure::new(
                ErrorClass::Client,
                "this operation has no entry for sqlite",
            )),
        }
    }

    /// A change that carries key and value; gives the number of rows.
    fn write(
        &self,
        sql: &str,
        parameters: &[&dyn ToSql],
        operation: &Operation,
        reply: &mut Reply,
    ) -> rusqlite::Result<usize> {
        reply.bytes_sent = (operation.key.len() + operation.value.len()) as u64;
        self.change(sql, parameters)
    }

    fn change(&self, sql: &str, parameters: &[&dyn ToSql]) -> rusqlite::Result<usize> {
        self.connection.prepare_cached(sql)?.execute(parameters)
    }
}

fn done_or_missing(rows: usize) -> Outcome {
    match rows {
        0 => Outcome::Missing,
        _ => Outcome::Done,
    }
}

#[cfg(test)]
mod tests;
