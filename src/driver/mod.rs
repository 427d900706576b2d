//! The boundary to data stores: three traits and the data (`spec`) that describes who implements them.
//!
//! A driver is a folder here with `mod.rs` (the traits), `spec.rs` (the rows) and what it needs beside; it never sees
//! another driver, the plan or the engine. `engine::entry` pairs it with the operation loop; `registry` lists it.

pub mod embedded;
pub mod net;
pub mod spec;

#[cfg(feature = "cassandra")]
pub mod cassandra;
#[cfg(feature = "fjall")]
pub mod fjall;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "kyototycoon")]
pub mod kyototycoon;
#[cfg(feature = "memcached")]
pub mod memcached;
#[cfg(feature = "mongodb")]
pub mod mongodb;
#[cfg(feature = "mysql")]
pub mod mysql;
pub mod null;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "redb")]
pub mod redb;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "riak")]
pub mod riak;
pub mod scripted;
pub mod sql;
#[cfg(feature = "sqlite")]
pub mod sqlite;

use crate::op::{Failure, Operation, Outcome, Reply};
use spec::{DriverSpec, Durability, Endpoint, Options};
use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

/// What a driver is opened on: the run's target, all templates rendered, all names resolved.
#[derive(Clone, Debug)]
pub struct Target {
    pub name: String,
    pub endpoints: Vec<Endpoint>,
    pub options: Options,
    /// The scenario's own operations in the order of `Verb::Custom(n)`: (name, this driver's table). An operation
    /// that this run does not use, or that has no entry for this driver, is `None`.
    pub operations: Vec<Option<CustomOperation>>,
    /// Private to the run; embedded stores live here.
    pub directory: PathBuf,
    pub connect_timeout: Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CustomOperation {
    pub name: String,
    pub table: serde_json::Map<String, serde_json::Value>,
}

/// One per target and run. Opened once, when the target's servers are ready, before any worker exists; shared by all
/// workers. What is the same for all sessions (parsed options, compiled operations, an embedded database) belongs here.
pub trait Driver: Send + Sync + Sized + 'static {
    type Worker: Worker;

    fn spec() -> &'static DriverSpec;

    /// Reads options (already checked against the rows) and compiles the operations. Opens no connection to a server;
    /// an embedded store opens or makes its database in `target.directory`.
    fn open(target: Target) -> Result<Self, Failure>;

    /// Called on each worker's thread, inside its runtime, once per phase.
    fn worker(&self) -> Result<Self::Worker, Failure>;

    /// The cold side, for one endpoint (`Transport::Directory` or `Nothing` for stores without).
    fn control(&self, endpoint: &Endpoint) -> Result<Box<dyn Control>, Failure>;
}

/// One per OS thread: what the sessions of one thread share (a pooled client), or nothing. Never leaves its thread.
pub trait Worker {
    type Session: Session;

    /// Opens a session: before the phase's common start, and again after one broke. `endpoints` is the one dealt to
    /// this session (all of the group's where the spec says `takes_all`; one `Directory` or `Nothing` for stores without).
    /// The engine limits it by the target's connect timeout.
    fn session(
        &self,
        endpoints: &[Endpoint],
    ) -> impl Future<Output = Result<Self::Session, Failure>>;
}

/// One per client thread, with one operation in flight. The future of `execute` may be dropped at its timeout; the
/// session is then dropped too and never used again, so a late reply cannot be read as the next one's answer (but see
/// `survives_timeout`).
pub trait Session {
    /// Executes one operation to its end, its answer read fully. Values read go through `reply.found`, which also verifies.
    fn execute(
        &mut self,
        operation: &Operation,
        reply: &mut Reply,
    ) -> impl Future<Output = Outcome>;

    /// Executes `pipeline` operations: all sent before the first answer is read, where the spec says `pipeline`.
    /// Pushes one outcome per operation, in order; where the connection breaks, the rest get the same failure.
    fn execute_batch(
        &mut self,
        operations: &[Operation],
        replies: &mut [Reply],
        outcomes: &mut Vec<Outcome>,
    ) -> impl Future<Output = ()> {
        async move {
            for (operation, reply) in operations.iter().zip(replies) {
                let outcome = self.execute(operation, reply).await;
                outcomes.push(outcome);
            }
        }
    }

    /// The address that this session is connected to, where a name had several.
    fn peer(&self) -> Option<std::net::SocketAddr> {
        None
    }

    /// Operations answered since the last call, by the server that answered: where a session chooses among servers
    /// itself. Empty where all were `peer`'s.
    fn take_answered(&mut self) -> Vec<(std::net::SocketAddr, u64)> {
        Vec::new()
    }

    /// Whether it may be used after a future of `execute` was dropped: where its protocol gives every request a number
    /// that its answer carries, and the client throws away the answer of one that was given up.
    fn survives_timeout(&self) -> bool {
        false
    }

    /// Connections that it lost and replaced by itself since the last call.
    fn take_replaced(&mut self) -> u64 {
        0
    }

    /// Connections that this session holds of its own.
    fn connections(&self) -> u32 {
        1
    }
}

/// The cold side of a store, object-safe and blocking: readiness, version, settings, reset, single statements.
/// Every call keeps to `limit` and returns a `connect` or `timeout` failure after it.
pub trait Control: Send {
    /// The store answers and can do operations.
    fn ready(&mut self, limit: Duration) -> Result<(), Failure>;

    /// The version as the store reports it: `Redis 7.0.15`.
    fn version(&mut self, limit: Duration) -> Result<String, Failure>;

    /// Effective settings that matter to a reader of the results, in a fixed order.
    fn settings(&mut self, limit: Duration) -> Result<Vec<(String, String)>, Failure>;

    /// The durability that the store really has, where it can be asked.
    fn durability(&mut self, limit: Duration) -> Result<Option<Durability>, Failure>;

    /// Empties the store. Called only for servers that dbbench started or where the target says `allow_reset`.
    fn reset(&mut self, limit: Duration) -> Result<(), Failure>;

    /// Runs one statement or command of the store's own language, returns the first value of its answer as text.
    fn statement(&mut self, statement: &str, limit: Duration) -> Result<String, Failure>;

    /// One minimal round trip (PING), for the manifest.
    fn round_trip(&mut self, limit: Duration) -> Result<Duration, Failure>;
}
