//! The `riak` driver: Riak KV by HTTP or by protocol buffers, one connection per session, pinned to its node.
//!
//! `session` says what an operation asks of a node, `link` by which interface: `http` (with `path` for its requests and
//! `siblings` for answers of several values) or `pb` (with `messages`). `properties` sets those of the bucket, `fault`
//! names refusals, `control` is the cold side, `settings` holds the options, `spec` the rows.

mod control;
mod fault;
mod http;
mod link;
mod messages;
mod path;
mod pb;
mod properties;
mod session;
mod settings;
mod siblings;
mod spec;

use super::spec::{DriverSpec, Endpoint};
use super::{Control, Driver, Target, Worker};
use crate::op::{ErrorClass, Failure};
use link::Link;
use messages::Fixed;
use properties::{Prepared, Properties};
use session::RiakSession;
use settings::Settings;
use std::sync::Arc;

pub struct Riak {
    shared: Arc<Shared>,
}

/// The same for all sessions.
pub struct Shared {
    settings: Arc<Settings>,
    fixed: Arc<Fixed>,
    prepared: Prepared,
    /// What the bucket must be like.
    wanted: Option<Properties>,
}

impl Driver for Riak {
    type Worker = RiakWorker;

    fn spec() -> &'static DriverSpec {
        &spec::SPEC
    }

    fn open(target: Target) -> Result<Riak, Failure> {
        let settings = Settings::of(&target);
        Ok(Riak {
            shared: Arc::new(Shared {
                fixed: Arc::new(Fixed::of(&settings)),
                wanted: Properties::wanted(&settings),
                prepared: Prepared::default(),
                settings: Arc::new(settings),
            }),
        })
    }

    fn worker(&self) -> Result<RiakWorker, Failure> {
        Ok(RiakWorker {
            shared: Arc::clone(&self.shared),
        })
    }

    fn control(&self, endpoint: &Endpoint) -> Result<Box<dyn Control>, Failure> {
        let shared = Arc::clone(&self.shared);
        Ok(Box::new(control::RiakControl::new(
            endpoint.clone(),
            shared,
        )?))
    }
}

/// Sessions of one thread share nothing but what all share.
pub struct RiakWorker {
    shared: Arc<Shared>,
}

impl Worker for RiakWorker {
    type Session = RiakSession;

    async fn session(&self, endpoints: &[Endpoint]) -> Result<RiakSession, Failure> {
        let endpoint = endpoints.first().ok_or_else(|| {
            Failure::new(ErrorClass::Connect, "there is no endpoint to connect to")
        })?;
        let shared = &self.shared;
        let mut link = Link::open(shared, endpoint).await?;
        if let Some(wanted) = &shared.wanted {
            let prepared = &shared.prepared;
            prepared
                .prepare(wanted, &mut link, &endpoint.label)
                .await
                .map_err(refused)?;
        }
        Ok(RiakSession::new(link, shared.settings.vclock))
    }
}

/// Whatever is in the way of the bucket's properties, there is no session.
fn refused(failure: Failure) -> Failure {
    Failure {
        broken: true,
        unanswered: false,
        ..failure
    }
}
