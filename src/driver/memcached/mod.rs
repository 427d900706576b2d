//! The `memcached` driver: text and meta protocol, by TCP or unix socket, one connection per session and server.
//!
//! `session` and `batch` are the operation loop's side, `control` the cold one, `wire` the bytes of both, `ketama` the
//! choice among several servers, `spec` the rows.

mod batch;
mod control;
mod ketama;
mod session;
mod spec;
mod wire;

use super::net;
use super::spec::{DriverSpec, Endpoint};
use super::{Control, Driver, Target, Worker};
use crate::op::{ErrorClass, Failure};
use ketama::Ring;
use session::Session;
use wire::Protocol;

pub struct Memcached {
    settings: Settings,
}

/// What all sessions of a run share.
#[derive(Clone, Copy)]
struct Settings {
    protocol: Protocol,
    multi_get: bool,
}

impl Driver for Memcached {
    type Worker = MemcachedWorker;

    fn spec() -> &'static DriverSpec {
        &spec::SPEC
    }

    fn open(target: Target) -> Result<Memcached, Failure> {
        let protocol = match target.options.text("protocol").as_deref() {
            Some("meta") => Protocol::Meta,
            _ => Protocol::Text,
        };
        let multi_get = target.options.bool("multi_get");
        Ok(Memcached {
            settings: Settings {
                protocol,
                multi_get,
            },
        })
    }

    fn worker(&self) -> Result<MemcachedWorker, Failure> {
        Ok(MemcachedWorker {
            settings: self.settings,
        })
    }

    fn control(&self, endpoint: &Endpoint) -> Result<Box<dyn Control>, Failure> {
        Ok(Box::new(control::MemcachedControl::new(endpoint.clone())?))
    }
}

/// Sessions of one thread share nothing but settings.
pub struct MemcachedWorker {
    settings: Settings,
}

impl Worker for MemcachedWorker {
    type Session = Session;

    async fn session(&self, endpoints: &[Endpoint]) -> Result<Session, Failure> {
        if endpoints.is_empty() {
            let message = "there is no endpoint to connect to";
            return Err(Failure::new(ErrorClass::Connect, message));
        }
        let mut connections = Vec::with_capacity(endpoints.len());
        for endpoint in endpoints {
            connections.push(net::connect(endpoint).await?);
        }
        let ring = (endpoints.len() > 1).then(|| Ring::of(endpoints));
        let Settings {
            protocol,
            multi_get,
        } = self.settings;
        Ok(Session::new(connections, ring, protocol, multi_get))
    }
}
