//! The `redb` driver: an embedded store with one database for all sessions.
//!
//! A write is a transaction of its own, so that what is measured is a commit; a read is a read transaction, so that it
//! sees the latest commit. Values are compared where they lie in the page, without a copy.

mod control;
mod spec;

use crate::driver::embedded::{incremented, io_failure, key_exists, make_directory};
use crate::driver::spec::{DriverSpec, Endpoint};
use crate::driver::{Control, Driver, Session, Target, Worker};
use crate::op::{ErrorClass, Failure, Operation, Outcome, Reply, Verb, no_statements};
use redb::{Database, Durability, ReadableDatabase, ReadableTable, Table, TableDefinition};
use std::sync::Arc;

const TABLE: TableDefinition<&[u8], &[u8]> = TableDefinition::new("dbbench");
const FILE: &str = "dbbench.redb";

/// One open database and how it is used.
pub struct Store {
    database: Database,
    durability: Durability,
    scan_limit: usize,
}

pub struct Redb {
    store: Arc<Store>,
    settings: Vec<(String, String)>,
    claimed: crate::driver::spec::Durability,
}

impl Driver for Redb {
    type Worker = RedbWorker;

    fn spec() -> &'static DriverSpec {
        &spec::SPEC
    }

    fn open(target: Target) -> Result<Self, Failure> {
        make_directory(&target.directory)?;
        let options = &target.options;
        let claimed = spec::durability(options);
        let mut builder = Database::builder();
        if let Some(bytes) = options.size("cache_size") {
            builder.set_cache_size(usize::try_from(bytes).unwrap_or(usize::MAX));
        }
        let store = Store {
            database: builder
                .create(target.directory.join(FILE))
                .map_err(failure)?,
            durability: match claimed {
                crate::driver::spec::Durability::Memory => Durability::None,
                _ => Durability::Immediate,
            },
            scan_limit: options.integer("scan_limit").unwrap_or(100) as usize,
        };
        store.make_table()?;
        Ok(Redb {
            store: Arc::new(store),
            settings: control::settings(options),
            claimed,
        })
    }

    fn worker(&self) -> Result<RedbWorker, Failure> {
        Ok(RedbWorker {
            store: Arc::clone(&self.store),
        })
    }

    fn control(&self, _: &Endpoint) -> Result<Box<dyn Control>, Failure> {
        Ok(Box::new(control::RedbControl {
            store: Arc::clone(&self.store),
            settings: self.settings.clone(),
            durability: self.claimed,
        }))
    }
}

pub struct RedbWorker {
    store: Arc<Store>,
}

impl Worker for RedbWorker {
    type Session = RedbSession;

    async fn session(&self, _: &[Endpoint]) -> Result<RedbSession, Failure> {
        Ok(RedbSession {
            store: Arc::clone(&self.store),
        })
    }
}

pub struct RedbSession {
    store: Arc<Store>,
}

impl Session for RedbSession {
    async fn execute(&mut self, operation: &Operation, reply: &mut Reply) -> Outcome {
        self.store
            .execute(operation, reply)
            .unwrap_or_else(Outcome::from)
    }

    fn connections(&self) -> u32 {
        0
    }
}

impl Store {
    fn execute(&self, operation: &Operation, reply: &mut Reply) -> Result<Outcome, Failure> {
        let key = operation.key.as_slice();
        let value = operation.value.as_slice();
        match operation.verb {
            Verb::Get => self.get(operation, reply),
            Verb::Scan => self.scan(key, reply),
            Verb::Set => self.write(|table| put(table, key, value, reply)),
            Verb::Insert => self.write(|table| match contains(table, key)? {
                true => Err(key_exists()),
                false => put(table, key, value, reply),
            }),
            Verb::Update => self.write(|table| match contains(table, key)? {
                true => put(table, key, value, reply),
                false => Ok(Outcome::Missing),
            }),
            Verb::Delete => self.write(|table| {
                reply.bytes_sent = key.len() as u64;
                match table.remove(key).map_err(failure)? {
                    Some(_) => Ok(Outcome::Done),
                    None => Ok(Outcome::Missing),
                }
            }),
            Verb::Increment => self.write(|table| {
                let next = {
                    let guard = table.get(key).map_err(failure)?;
                    incremented(guard.as_ref().map(|guard| guard.value()))?
                };
                put(table, key, next.as_bytes(), reply)
            }),
            Verb::ReadModifyWrite => self.write(|table| {
                if let Some(guard) = table.get(key).map_err(failure)? {
                    reply.bytes_received = guard.value().len() as u64;
                    reply.value_length = Some(reply.bytes_received);
                }
                put(table, key, value, reply)
            }),
            Verb::Custom(_) => Err(Failure::new(
                ErrorClass::Client,
                "redb takes no operations of the user's own",
            )),
            Verb::Statement => Err(no_statements("redb")),
        }
    }

    fn get(&self, operation: &Operation, reply: &mut Reply) -> Result<Outcome, Failure> {
        reply.bytes_sent = operation.key.len() as u64;
        let transaction = self.database.begin_read().map_err(failure)?;
        let table = transaction.open_table(TABLE).map_err(failure)?;
        match table.get(operation.key.as_slice()).map_err(failure)? {
            Some(guard) => {
                reply.bytes_received = guard.value().len() as u64;
                Ok(reply.found(operation, guard.value()))
            }
            None => Ok(Outcome::Missing),
        }
    }

    fn scan(&self, from: &[u8], reply: &mut Reply) -> Result<Outcome, Failure> {
        reply.bytes_sent = from.len() as u64;
        let transaction = self.database.begin_read().map_err(failure)?;
        let table = transaction.open_table(TABLE).map_err(failure)?;
        let mut outcome = Outcome::Missing;
        for entry in table.range(from..).map_err(failure)?.take(self.scan_limit) {
            let (key, value) = entry.map_err(failure)?;
            reply.bytes_received += (key.value().len() + value.value().len()) as u64;
            outcome = Outcome::Found;
        }
        Ok(outcome)
    }

    /// One write transaction around `change`; it is committed where that wrote something, else undone.
    fn write(
        &self,
        change: impl FnOnce(&mut Table<&'static [u8], &'static [u8]>) -> Result<Outcome, Failure>,
    ) -> Result<Outcome, Failure> {
        let mut transaction = self.database.begin_write().map_err(failure)?;
        transaction
            .set_durability(self.durability)
            .map_err(failure)?;
        let outcome = {
            let mut table = transaction.open_table(TABLE).map_err(failure)?;
            change(&mut table)?
        };
        match outcome {
            Outcome::Missing => transaction.abort().map_err(failure)?,
            _ => transaction.commit().map_err(failure)?,
        }
        Ok(outcome)
    }

    /// Readers need the table to be there.
    fn make_table(&self) -> Result<(), Failure> {
        let transaction = self.database.begin_write().map_err(failure)?;
        transaction.open_table(TABLE).map_err(failure)?;
        transaction.commit().map_err(failure)
    }
}

fn contains(table: &Table<&'static [u8], &'static [u8]>, key: &[u8]) -> Result<bool, Failure> {
    Ok(table.get(key).map_err(failure)?.is_some())
}

fn put(
    table: &mut Table<&'static [u8], &'static [u8]>,
    key: &[u8],
    value: &[u8],
    reply: &mut Reply,
) -> Result<Outcome, Failure> {
    reply.bytes_sent = (key.len() + value.len()) as u64;
    table.insert(key, value).map_err(failure)?;
    Ok(Outcome::Done)
}

fn failure(error: impl Into<redb::Error>) -> Failure {
    match error.into() {
        redb::Error::Io(error) => io_failure(&error, "redb failed"),
        redb::Error::ValueTooLarge(bytes) => Failure::new(
            ErrorClass::Rejected,
            format!("redb takes no value or key of {bytes} bytes"),
        )
        .with_code("VALUE_TOO_LARGE"),
        other => Failure::new(ErrorClass::Client, format!("redb failed: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::embedded::kit::{self, Kit};

    #[test]
    fn a_clean_close_keeps_everything_whatever_the_durability() {
        Kit::<Redb>::new(&[("durability", "none")]).reopens();
        Kit::<Redb>::new(&[]).reopens();
    }

    #[test]
    fn an_acknowledged_write_survives_a_kill_where_fsync_is_claimed() {
        kit::survives_a_kill::<Redb>(
            "driver::redb::tests::an_acknowledged_write_survives_a_kill_where_fsync_is_claimed",
            &[],
        );
    }

    #[test]
    fn a_full_disk_is_a_failure_with_its_code() {
        kit::tells_a_full_disk::<Redb>(
            "driver::redb::tests::a_full_disk_is_a_failure_with_its_code",
            &[("cache_size", "1MiB")],
        );
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_a_client_failure() {
        kit::refuses_a_file_for_a_directory::<Redb>();
    }
}
