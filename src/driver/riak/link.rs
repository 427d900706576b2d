//! One connection to one node, by either interface.

use super::Shared;
use super::http::Http;
use super::messages::{Part, Put};
use super::pb::Pb;
use super::properties::Properties;
use crate::driver::spec::Endpoint;
use crate::op::{Failure, Operation, Outcome, Reply};
use std::net::SocketAddr;
use std::time::Duration;

pub enum Link {
    Http(Box<Http>),
    Pb(Box<Pb>),
}

impl Link {
    pub async fn open(shared: &Shared, endpoint: &Endpoint) -> Result<Link, Failure> {
        let settings = &shared.settings;
        Ok(match settings.protocol_buffers {
            true => Link::Pb(Box::new(Pb::open(settings, &shared.fixed, endpoint).await?)),
            false => Link::Http(Box::new(Http::open(settings, endpoint).await?)),
        })
    }

    pub fn peer(&self) -> Option<SocketAddr> {
        match self {
            Link::Http(http) => http.peer(),
            Link::Pb(pb) => pb.peer(),
        }
    }

    #[inline]
    pub async fn get(
        &mut self,
        operation: &Operation,
        part: Part,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        match self {
            Link::Http(http) => http.get(operation, part, reply).await,
            Link::Pb(pb) => pb.get(operation, part, reply).await,
        }
    }

    #[inline]
    pub async fn put(
        &mut self,
        operation: &Operation,
        put: Put,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        match self {
            Link::Http(http) => http.put(operation, put, reply).await,
            Link::Pb(pb) => pb.put(operation, put, reply).await,
        }
    }

    pub async fn delete(
        &mut self,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        match self {
            Link::Http(http) => http.delete(operation, reply).await,
            Link::Pb(pb) => pb.delete(operation, reply).await,
        }
    }

    pub async fn ping(&mut self) -> Result<(), Failure> {
        match self {
            Link::Http(http) => http.ping().await,
            Link::Pb(pb) => pb.ping().await,
        }
    }

    pub async fn properties(&mut self) -> Result<Properties, Failure> {
        match self {
            Link::Http(http) => http.properties().await,
            Link::Pb(pb) => pb.properties().await,
        }
    }

    pub async fn set_properties(&mut self, wanted: &Properties) -> Result<(), Failure> {
        match self {
            Link::Http(http) => http.set_properties(wanted).await,
            Link::Pb(pb) => pb.set_properties(wanted).await,
        }
    }

    pub async fn keys(&mut self, limit: Duration) -> Result<Vec<Vec<u8>>, Failure> {
        match self {
            Link::Http(http) => http.keys(limit).await,
            Link::Pb(pb) => pb.keys(limit).await,
        }
    }

    pub async fn delete_all(&mut self, keys: &[Vec<u8>]) -> Result<(), Failure> {
        match self {
            Link::Http(http) => http.delete_all(keys).await,
            Link::Pb(pb) => pb.delete_all(keys).await,
        }
    }
}
