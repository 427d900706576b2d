//! The `fjall` driver: an embedded log-structured merge-tree with one database for all sessions.
//!
//! fjall's plain writes are blind. Operations that depend on what is there (`insert`, `update`, `delete`, `increment`)
//! read first, under one of a number of locks that every write of the same key takes, so that none is lost between the
//! two. The locks are held for the write to the journal, which has a lock of its own, but not while the disk is waited for.

mod control;
mod spec;

use crate::driver::embedded::{incremented, io_failure, key_exists, make_directory};
use crate::driver::spec::{DriverSpec, Durability, Endpoint, Options};
use crate::driver::{Control, Driver, Session, Target, Worker};
use crate::op::{ErrorClass, Failure, Operation, Outcome, Reply, Verb, no_statements};
use fjall::config::CompressionPolicy;
use fjall::{
    CompressionType, Database, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode,
};
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const KEYSPACE: &str = "dbbench";
const LOCKS: usize = 256;
/// fjall panics beyond these.
const MAX_KEY: usize = 65_535;
const MAX_VALUE: usize = u32::MAX as usize;

/// One open database and how it is used.
pub struct Store {
    keyspace: Keyspace,
    database: Database,
    /// What each write is followed by; None where the write itself does what is asked.
    sync: Option<PersistMode>,
    scan_limit: usize,
    locks: Vec<Mutex<()>>,
}

pub struct Fjall {
    store: Arc<Store>,
    settings: Vec<(String, String)>,
    durability: Durability,
}

impl Driver for Fjall {
    type Worker = FjallWorker;

    fn spec() -> &'static DriverSpec {
        &spec::SPEC
    }

    fn open(target: Target) -> Result<Self, Failure> {
        make_directory(&target.directory)?;
        let options = &target.options;
        let database = open_database(&target.directory, options)?;
        let keyspace = database
            .keyspace(KEYSPACE, || keyspace_options(options))
            .map_err(failure)?;
        let store = Store {
            keyspace,
            database,
            sync: sync_of(options),
            scan_limit: options.integer("scan_limit").unwrap_or(100) as usize,
            locks: (0..LOCKS).map(|_| Mutex::new(())).collect(),
        };
        Ok(Fjall {
            store: Arc::new(store),
            settings: control::settings(options),
            durability: spec::durability(options),
        })
    }

    fn worker(&self) -> Result<FjallWorker, Failure> {
        Ok(FjallWorker {
            store: Arc::clone(&self.store),
        })
    }

    fn control(&self, _: &Endpoint) -> Result<Box<dyn Control>, Failure> {
        Ok(Box::new(control::FjallControl {
            store: Arc::clone(&self.store),
            settings: self.settings.clone(),
            durability: self.durability,
        }))
    }
}

fn open_database(directory: &Path, options: &Options) -> Result<Database, Failure> {
    let mut builder = Database::builder(directory.join("dbbench.fjall"))
        .cache_size(options.size("cache_size").unwrap_or_default());
    if let Some(compression) = compression_of(options) {
        builder = builder.journal_compression(compression);
    }
    builder.open().map_err(failure)
}

/// None = fjall's own choice.
fn compression_of(options: &Options) -> Option<CompressionType> {
    match options.text("compression").as_deref() {
        Some("lz4") => Some(CompressionType::Lz4),
        Some("none") => Some(CompressionType::None),
        _ => None,
    }
}

fn keyspace_options(options: &Options) -> KeyspaceCreateOptions {
    let compression = compression_of(options);
    let mut created = KeyspaceCreateOptions::default()
        .manual_journal_persist(options.text("persist").as_deref() == Some("none"));
    if let Some(compression) = compression {
        created = created.data_block_compression_policy(CompressionPolicy::all(compression));
    }
    if options.bool("separate_values") {
        let separation = KvSeparationOptions::default();
        created = created.with_kv_separation(Some(match compression {
            Some(compression) => separation.compression(compression),
            None => separation,
        }));
    }
    created
}

fn sync_of(options: &Options) -> Option<PersistMode> {
    match options.text("persist").as_deref() {
        Some("fdatasync") => Some(PersistMode::SyncData),
        Some("fsync") => Some(PersistMode::SyncAll),
        _ => None,
    }
}

pub struct FjallWorker {
    store: Arc<Store>,
}

impl Worker for FjallWorker {
    type Session = FjallSession;

    async fn session(&self, _: &[Endpoint]) -> Result<FjallSession, Failure> {
        Ok(FjallSession {
            store: Arc::clone(&self.store),
        })
    }
}

pub struct FjallSession {
    store: Arc<Store>,
}

impl Session for FjallSession {
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
        reply.bytes_sent = key.len() as u64;
        check_lengths(key, value)?;
        match operation.verb {
            Verb::Get => self.get(operation, reply),
            Verb::Scan => self.scan(key, reply),
            Verb::Custom(_) => Err(Failure::new(
                ErrorClass::Client,
                "fjall takes no operations of the user's own",
            )),
            Verb::Statement => Err(no_statements("fjall")),
            _ => {
                let outcome = self.write(operation, reply)?;
                if let (Outcome::Done, Some(mode)) = (&outcome, self.sync) {
                    self.database.persist(mode).map_err(failure)?;
                }
                Ok(outcome)
            }
        }
    }

    fn get(&self, operation: &Operation, reply: &mut Reply) -> Result<Outcome, Failure> {
        match self.keyspace.get(&operation.key).map_err(failure)? {
            Some(value) => {
                reply.bytes_received = value.len() as u64;
                Ok(reply.found(operation, &value))
            }
            None => Ok(Outcome::Missing),
        }
    }

    fn scan(&self, from: &[u8], reply: &mut Reply) -> Result<Outcome, Failure> {
        let mut outcome = Outcome::Missing;
        for entry in self.keyspace.range(from..).take(self.scan_limit) {
            let (key, value) = entry.into_inner().map_err(failure)?;
            reply.bytes_received += (key.len() + value.len()) as u64;
            outcome = Outcome::Found;
        }
        Ok(outcome)
    }

    fn write(&self, operation: &Operation, reply: &mut Reply) -> Result<Outcome, Failure> {
        let key = operation.key.as_slice();
        let value = operation.value.as_slice();
        let _lock = self.lock(key);
        match operation.verb {
            Verb::Insert if self.contains(key)? => return Err(key_exists()),
            Verb::Update | Verb::Delete if !self.contains(key)? => return Ok(Outcome::Missing),
            Verb::Delete => {
                self.keyspace.remove(key).map_err(failure)?;
                return Ok(Outcome::Done);
            }
            Verb::Increment => {
                let old = self.keyspace.get(key).map_err(failure)?;
                let next = incremented(old.as_deref())?;
                return self.put(key, next.as_bytes(), reply);
            }
            Verb::ReadModifyWrite => {
                if let Some(old) = self.keyspace.get(key).map_err(failure)? {
                    reply.bytes_received = old.len() as u64;
                    reply.value_length = Some(reply.bytes_received);
                }
            }
            _ => {}
        }
        self.put(key, value, reply)
    }

    fn put(&self, key: &[u8], value: &[u8], reply: &mut Reply) -> Result<Outcome, Failure> {
        reply.bytes_sent = (key.len() + value.len()) as u64;
        self.keyspace.insert(key, value).map_err(failure)?;
        Ok(Outcome::Done)
    }

    fn contains(&self, key: &[u8]) -> Result<bool, Failure> {
        self.keyspace.contains_key(key).map_err(failure)
    }

    /// Excludes other writes of this key (and of a few others).
    fn lock(&self, key: &[u8]) -> MutexGuard<'_, ()> {
        let mut hasher = fnv::FnvHasher::default();
        key.hash(&mut hasher);
        self.locks[hasher.finish() as usize % LOCKS]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // What `persist = "none"` left in the journal's buffer. An error has nobody left to tell; the writes that it
        // concerns were never promised.
        let _ = self.database.persist(PersistMode::Buffer);
    }
}

fn check_lengths(key: &[u8], value: &[u8]) -> Result<(), Failure> {
    if key.is_empty() || key.len() > MAX_KEY || value.len() > MAX_VALUE {
        return Err(Failure::new(
            ErrorClass::Rejected,
            format!("fjall takes keys of 1 to {MAX_KEY} bytes and values of up to {MAX_VALUE}"),
        )
        .with_code("LENGTH"));
    }
    Ok(())
}

fn failure(error: fjall::Error) -> Failure {
    match error {
        fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error)) => {
            io_failure(&error, "fjall failed")
        }
        fjall::Error::Poisoned => Failure::new(
            ErrorClass::Client,
            "fjall refuses to write after an earlier write to the disk failed",
        )
        .with_code("POISONED"),
        other => Failure::new(ErrorClass::Client, format!("fjall failed: {other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::embedded::kit::{self, Kit};

    #[test]
    fn a_clean_close_keeps_everything_however_it_persists() {
        Kit::<Fjall>::new(&[("persist", "none")]).reopens();
        Kit::<Fjall>::new(&[("persist", "fsync")]).reopens();
        Kit::<Fjall>::new(&[("separate_values", "true")]).reopens();
    }

    #[test]
    fn an_acknowledged_write_survives_a_kill_where_os_is_claimed() {
        kit::survives_a_kill::<Fjall>(
            "driver::fjall::tests::an_acknowledged_write_survives_a_kill_where_os_is_claimed",
            &[("persist", "os")],
        );
    }

    #[test]
    fn a_full_disk_is_a_failure_with_its_code() {
        kit::tells_a_full_disk::<Fjall>(
            "driver::fjall::tests::a_full_disk_is_a_failure_with_its_code",
            &[],
        );
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_a_client_failure() {
        kit::refuses_a_file_for_a_directory::<Fjall>();
    }

    #[test]
    fn a_key_that_fjall_would_panic_at_is_rejected() {
        let kit = Kit::<Fjall>::new(&[]);
        let driver = kit.open();
        let mut session = kit::session(&driver);
        for key in [Vec::new(), vec![b'k'; MAX_KEY + 1]] {
            let refused = kit::failed(kit::run(&mut session, Verb::Set, &key, b"value"));
            assert_eq!(refused.class, ErrorClass::Rejected);
        }
        let longest = vec![b'k'; MAX_KEY];
        let outcome = kit::run(&mut session, Verb::Set, &longest, b"value");
        assert_eq!(outcome, Outcome::Done);
        kit::holds(&mut session, &longest, b"value");
    }
}
