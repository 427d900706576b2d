//! The `mongodb` driver: MongoDB and what speaks its protocol, through the mongodb crate's own client.
//!
//! `connect` makes clients and opens sessions, `session` is the operation loop's side, `command` builds what it sends,
//! `answer` reads what comes back, `custom` holds the user's own commands, `control` is the cold side, `fault` tells the
//! crate's errors apart, `spec` is the rows. One endpoint is one server, talked to directly: no failover, no retries.

mod answer;
mod command;
mod connect;
mod control;
mod custom;
mod fault;
mod session;
mod spec;

use super::spec::{DriverSpec, Endpoint};
use super::{Control, Driver, Target, Worker};
use crate::op::{ErrorClass, Failure};
use connect::{Link, Settings};
use custom::Custom;
use session::{Session, Shared};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

pub struct MongoDb {
    settings: Arc<Settings>,
    shared: Arc<Shared>,
}

impl Driver for MongoDb {
    type Worker = MongoDbWorker;

    fn spec() -> &'static DriverSpec {
        &spec::SPEC
    }

    fn open(target: Target) -> Result<MongoDb, Failure> {
        let settings = Settings::of(&target)?;
        let concerns = settings.concerns.clone();
        let operations = target
            .operations
            .iter()
            .map(|operation| {
                let operation = operation.as_ref();
                operation
                    .map(|operation| Custom::compile(operation, &concerns))
                    .transpose()
            })
            .collect::<Result<_, _>>()?;
        Ok(MongoDb {
            shared: Arc::new(Shared::new(&target.options, concerns, operations)?),
            settings: Arc::new(settings),
        })
    }

    fn worker(&self) -> Result<MongoDbWorker, Failure> {
        Ok(MongoDbWorker {
            settings: Arc::clone(&self.settings),
            shared: Arc::clone(&self.shared),
            pooled: RefCell::default(),
        })
    }

    fn control(&self, endpoint: &Endpoint) -> Result<Box<dyn Control>, Failure> {
        let control = control::MongoDbControl::new(
            endpoint.clone(),
            Arc::clone(&self.settings),
            Arc::clone(&self.shared),
        )?;
        Ok(Box::new(control))
    }
}

/// Sessions of one thread share a client of each endpoint where the options say so, else nothing.
pub struct MongoDbWorker {
    settings: Arc<Settings>,
    shared: Arc<Shared>,
    /// By endpoint: the client, and how many sessions were opened on it.
    pooled: RefCell<HashMap<String, (Link, u32)>>,
}

impl Worker for MongoDbWorker {
    type Session = Session;

    async fn session(&self, endpoints: &[Endpoint]) -> Result<Session, Failure> {
        let endpoint = endpoints.first().ok_or_else(|| {
            Failure::new(ErrorClass::Connect, "there is no endpoint to connect to")
        })?;
        let (link, connections) = match self.settings.pool_size {
            None => (self.settings.link(endpoint, 1).await?, 1),
            Some(size) => self.pooled_link(endpoint, size).await?,
        };
        let peer = self.settings.peer(endpoint);
        link.ping(&endpoint.label).await?;
        Ok(Session::new(
            link,
            Arc::clone(&self.shared),
            peer,
            connections,
        ))
    }
}

impl MongoDbWorker {
    /// The thread's client of this endpoint, and how many of its connections are counted with this session.
    async fn pooled_link(&self, endpoint: &Endpoint, size: u32) -> Result<(Link, u32), Failure> {
        let known = self.pooled.borrow().contains_key(&endpoint.text);
        if !known {
            let link = self.settings.link(endpoint, size).await?;
            let mut pooled = self.pooled.borrow_mut();
            pooled.entry(endpoint.text.clone()).or_insert((link, 0));
        }
        let mut pooled = self.pooled.borrow_mut();
        let (link, sessions) = pooled
            .get_mut(&endpoint.text)
            .expect("it was put there just now");
        *sessions += 1;
        Ok((link.clone(), u32::from(*sessions <= size)))
    }
}
