//! A session: one link, one operation in flight. What an operation asks of a node, whatever the interface.

use super::link::Link;
use super::messages::{Part, Put};
use super::settings::Vclock;
use crate::op::{ErrorClass, Failure, Operation, Outcome, Reply, Verb};
use std::net::SocketAddr;

pub struct RiakSession {
    link: Link,
    vclock: Vclock,
}

impl RiakSession {
    pub fn new(link: Link, vclock: Vclock) -> RiakSession {
        RiakSession { link, vclock }
    }

    async fn perform(
        &mut self,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let link = &mut self.link;
        match operation.verb {
            Verb::Get => link.get(operation, Part::Value, reply).await,
            Verb::Set if self.vclock == Vclock::Always => {
                link.get(operation, Part::Clock, reply).await?;
                link.put(operation, Put::Carrying, reply).await
            }
            Verb::Set => link.put(operation, Put::Plain, reply).await,
            Verb::Insert => link.put(operation, Put::Insert, reply).await,
            Verb::Update => match link.get(operation, Part::Clock, reply).await? {
                Outcome::Missing => Ok(Outcome::Missing),
                _ => self.write_after_read(operation, reply).await,
            },
            Verb::ReadModifyWrite => {
                let read = link.get(operation, Part::ValueAndClock, reply).await?;
                self.write_after_read(operation, reply).await?;
                // The write is part of the operation, so that it ends later than the read says.
                reply.ended = None;
                Ok(read)
            }
            Verb::Delete => link.delete(operation, reply).await,
            other => Err(Failure::new(
                ErrorClass::Client,
                format!("riak cannot do `{}`", other.name()),
            )),
        }
    }

    async fn write_after_read(
        &mut self,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let put = match self.vclock {
            Vclock::Never => Put::Plain,
            Vclock::Update | Vclock::Always => Put::Carrying,
        };
        self.link.put(operation, put, reply).await
    }
}

impl crate::driver::Session for RiakSession {
    async fn execute(&mut self, operation: &Operation, reply: &mut Reply) -> Outcome {
        let result = self.perform(operation, reply).await;
        result.unwrap_or_else(Outcome::from)
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.link.peer()
    }
}
