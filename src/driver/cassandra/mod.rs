//! The `cassandra` driver: Apache Cassandra and ScyllaDB by CQL, through the scylla crate's own client.
//!
//! `link` makes the crate's sessions, which a thread's sessions share, `policy` says where operations go and what is
//! repeated, `session` is the operation loop's side, `table` makes the key/value table, `custom` holds the user's own
//! statements, `value` is what goes in and out of one, `control` is the cold side, `fault` tells the crate's errors apart,
//! `spec` is the rows.

mod control;
mod custom;
mod fault;
mod link;
mod policy;
mod session;
mod spec;
mod table;
mod value;

use super::spec::{DriverSpec, Endpoint};
use super::{Control, Driver, Target, Worker};
use crate::op::{ErrorClass, Failure};
use custom::Own;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared as SharedFuture};
use link::{Link, Settings};
use session::CassandraSession;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use table::Table;

/// Between two attempts to open a link: the crate's own connections get a chance to recover, and a node that is down is
/// not asked a thousand times a second.
const PAUSE: Duration = Duration::from_millis(200);

pub struct Cassandra {
    shared: Arc<Shared>,
}

/// The same for all sessions.
pub struct Shared {
    settings: Settings,
    operations: Vec<Option<Own>>,
    table: Table,
}

impl Driver for Cassandra {
    type Worker = CassandraWorker;

    fn spec() -> &'static DriverSpec {
        &spec::SPEC
    }

    fn open(target: Target) -> Result<Cassandra, Failure> {
        Ok(Cassandra {
            shared: Arc::new(Shared {
                settings: Settings::of(&target)?,
                operations: custom::compile_all(&target.operations)?,
                table: Table::new(&target.options),
            }),
        })
    }

    fn worker(&self) -> Result<CassandraWorker, Failure> {
        Ok(CassandraWorker {
            shared: Arc::clone(&self.shared),
            slots: RefCell::default(),
        })
    }

    fn control(&self, endpoint: &Endpoint) -> Result<Box<dyn Control>, Failure> {
        let shared = Arc::clone(&self.shared);
        let control = control::CassandraControl::new(endpoint.clone(), shared)?;
        Ok(Box::new(control))
    }
}

/// Sessions of one thread share a link: one of each endpoint where operations are pinned to it, else one.
pub struct CassandraWorker {
    shared: Arc<Shared>,
    slots: RefCell<HashMap<String, Slot>>,
}

/// A link that is being opened, or is open, or could not be.
type Opening = SharedFuture<BoxFuture<'static, Result<Arc<Link>, Failure>>>;

struct Slot {
    opening: Opening,
    began: Instant,
    /// Since when the link is known to have lost its connections.
    lost: Option<Instant>,
}

impl Worker for CassandraWorker {
    type Session = CassandraSession;

    async fn session(&self, endpoints: &[Endpoint]) -> Result<CassandraSession, Failure> {
        let endpoint = endpoints.first().ok_or_else(|| {
            Failure::new(ErrorClass::Connect, "there is no endpoint to connect to")
        })?;
        let link = self.opening(endpoint).await?;
        if !link.is_connected() {
            return Err(link.disconnected().await);
        }
        Ok(CassandraSession::new(link, Arc::clone(&self.shared)))
    }
}

impl CassandraWorker {
    /// The thread's link to this endpoint, opened where there is none that works. However short the limits of those who
    /// wait for it, it goes on opening.
    fn opening(&self, endpoint: &Endpoint) -> Opening {
        let mut slots = self.slots.borrow_mut();
        let key = self.shared.settings.key(endpoint);
        if let Some(slot) = slots.get_mut(&key)
            && !slot.is_spent()
        {
            return slot.opening.clone();
        }
        let opening = Link::for_sessions(Arc::clone(&self.shared), endpoint.clone());
        // On the runtime: whoever waits may be given up at any time.
        let task = tokio::spawn(opening);
        let opening = async move {
            match task.await {
                Ok(link) => link.map(Arc::new),
                Err(error) => Err(Failure::new(ErrorClass::Client, error.to_string())),
            }
        };
        let slot = Slot {
            opening: opening.boxed().shared(),
            began: Instant::now(),
            lost: None,
        };
        slots.entry(key).insert_entry(slot).get().opening.clone()
    }
}

impl Slot {
    /// Whether there is nothing left to wait for or to work on, and the time for another attempt has come.
    fn is_spent(&mut self) -> bool {
        match self.opening.peek() {
            None => false,
            Some(Err(_)) => self.began.elapsed() >= PAUSE,
            Some(Ok(link)) if link.is_connected() => {
                self.lost = None;
                false
            }
            Some(Ok(_)) => {
                let since = *self.lost.get_or_insert_with(Instant::now);
                since.elapsed() >= PAUSE
            }
        }
    }
}
