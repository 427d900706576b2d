//! A session: a connection to every server, one operation or batch in flight. The hot path of the driver.
//!
//! Nothing is allocated per operation and no value is copied on its way in; `wire` knows the bytes, `ketama` which
//! server has a key, `batch` how many operations go out together.

use super::batch::{OpenGet, Place};
use super::ketama::Ring;
use super::wire::{self, Line, Protocol};
use crate::driver::net::connection::GATHER_FROM;
use crate::driver::net::{Connection, lost, malformed};
use crate::op::{ErrorClass, Failure, Operation, Outcome, Reply, Verb};

/// Times that an increment may find its counter gone or made by another before it gives up.
const ATTEMPTS: u32 = 8;

pub struct Session {
    pub(super) servers: Vec<Server>,
    /// None for one server.
    ring: Option<Ring>,
    pub(super) protocol: Protocol,
    pub(super) multi_get: bool,
    /// Scratch of `batch`.
    pub(super) places: Vec<Place>,
    pub(super) open_gets: Vec<Option<OpenGet>>,
}

/// One server's connection.
pub(super) struct Server {
    pub(super) connection: Connection,
    pub(super) request: Vec<u8>,
}

impl Session {
    /// `connections` in the order of the ring's servers.
    pub fn new(
        connections: Vec<Connection>,
        ring: Option<Ring>,
        protocol: Protocol,
        multi_get: bool,
    ) -> Session {
        let servers = connections.into_iter().map(|connection| Server {
            connection,
            request: Vec::new(),
        });
        Session {
            servers: servers.collect(),
            ring,
            protocol,
            multi_get,
            places: Vec::new(),
            open_gets: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn server_of(&self, key: &[u8]) -> usize {
        self.ring.as_ref().map_or(0, |ring| ring.server(key))
    }

    async fn perform(
        &mut self,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        if let Some(refusal) = wire::refusal(operation) {
            return Err(refusal);
        }
        let protocol = self.protocol;
        let position = self.server_of(&operation.key);
        let server = &mut self.servers[position];
        match operation.verb {
            Verb::ReadModifyWrite => {
                let read = server
                    .round_trip(protocol, Verb::Get, operation, reply)
                    .await?;
                let written = server
                    .round_trip(protocol, Verb::Set, operation, reply)
                    .await?;
                // The write is part of the operation, so that it ends later than the read says.
                reply.ended = None;
                Ok(read.and_written(written))
            }
            Verb::Increment => server.increment(protocol, operation, reply).await,
            verb => server.round_trip(protocol, verb, operation, reply).await,
        }
    }

    /// The part of an increment that follows when its counter was not there.
    pub(super) async fn increment_again(
        &mut self,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let position = self.server_of(&operation.key);
        let server = &mut self.servers[position];
        server.increment(self.protocol, operation, reply).await
    }
}

impl Server {
    /// An answer that nobody asked for would be taken for that of the next request.
    pub(super) fn check_idle(&self) -> Result<(), Failure> {
        match self.connection.received() {
            b"" => Ok(()),
            stray => Err(malformed("it came unasked", stray)),
        }
    }

    async fn round_trip(
        &mut self,
        protocol: Protocol,
        verb: Verb,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        self.check_idle()?;
        self.request.clear();
        let (body, tail) = self.encode(protocol, verb, operation);
        reply.bytes_sent += (self.request.len() + body.len() + tail.len()) as u64;
        let sent = self.connection.send(&self.request, body, tail).await;
        sent.map_err(|error| lost(&error))?;
        self.answer(protocol, verb, operation, reply).await
    }

    /// Makes the request; a large value and its line's end are returned, to be gathered behind it.
    fn encode<'o>(
        &mut self,
        protocol: Protocol,
        verb: Verb,
        operation: &'o Operation,
    ) -> (&'o [u8], &'static [u8]) {
        let gather = operation.value.len() >= GATHER_FROM;
        match is_storage(verb) && gather {
            true => {
                let length = operation.value.len();
                wire::push_storage(&mut self.request, protocol, verb, &operation.key, length);
                (&operation.value, b"\r\n")
            }
            false => {
                self.push(protocol, verb, operation);
                (b"", b"")
            }
        }
    }

    /// Appends a whole request.
    pub(super) fn push(&mut self, protocol: Protocol, verb: Verb, operation: &Operation) {
        let (out, key) = (&mut self.request, &operation.key);
        if is_storage(verb) {
            wire::push_storage(out, protocol, verb, key, operation.value.len());
            out.extend_from_slice(&operation.value);
            out.extend_from_slice(b"\r\n");
        } else {
            wire::push_command(out, protocol, verb, key);
        }
    }

    /// A counter that is not there is made as 1. The text protocol takes up to three requests for that.
    async fn increment(
        &mut self,
        protocol: Protocol,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        for _ in 0..ATTEMPTS {
            let done = self
                .round_trip(protocol, Verb::Increment, operation, reply)
                .await?;
            if done != Outcome::Missing {
                return Ok(done);
            }
            if self.make_counter(operation, reply).await? {
                return Ok(Outcome::Done);
            }
        }
        let message = "the counter came and went under every attempt";
        Err(Failure::new(ErrorClass::Server, message))
    }

    /// Whether it was made; else another was faster.
    async fn make_counter(
        &mut self,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<bool, Failure> {
        self.request.clear();
        let (out, key) = (&mut self.request, &operation.key);
        wire::push_storage(out, Protocol::Text, Verb::Insert, key, 1);
        out.extend_from_slice(b"1\r\n");
        reply.bytes_sent += out.len() as u64;
        let sent = self.connection.send(&self.request, b"", b"").await;
        sent.map_err(|error| lost(&error))?;
        let added = self
            .answer(Protocol::Text, Verb::Insert, operation, reply)
            .await;
        match added {
            Ok(_) => Ok(true),
            Err(failure) if failure.class == ErrorClass::Rejected => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Reads the answer to one request.
    pub(super) async fn answer(
        &mut self,
        protocol: Protocol,
        verb: Verb,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        if verb == Verb::Get {
            return self.only_value(protocol, operation, reply).await;
        }
        let length = self.line().await?;
        let received = &self.connection.received()[..length];
        let outcome = match (wire::read_line(protocol, received), verb) {
            (Some(Line::Error { code, message }), _) => {
                Err(wire::failure_of(code, message, is_storage(verb)))
            }
            (Some(Line::Stored), Verb::Set | Verb::Insert | Verb::Update) => Ok(Outcome::Done),
            (Some(Line::NotStored), Verb::Insert) => {
                let message = "insert: the key exists already";
                Err(Failure::new(ErrorClass::Rejected, message))
            }
            (Some(Line::NotStored), Verb::Update) => Ok(Outcome::Missing),
            (Some(Line::Deleted), Verb::Delete) => Ok(Outcome::Done),
            (Some(Line::NotFound), Verb::Delete | Verb::Increment) => Ok(Outcome::Missing),
            (Some(Line::Number), Verb::Increment) => Ok(Outcome::Done),
            (Some(Line::Stored), Verb::Delete | Verb::Increment) if protocol == Protocol::Meta => {
                Ok(Outcome::Done)
            }
            _ => Err(malformed("it is not of the kind that was due", received)),
        };
        self.take(length, reply);
        outcome
    }

    /// Reads the answer to a get of one key.
    async fn only_value(
        &mut self,
        protocol: Protocol,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let outcome = self.next_value(protocol, operation, reply).await?;
        match outcome {
            None => {
                let line = self.line().await?;
                self.take(line, reply);
                Ok(Outcome::Missing)
            }
            Some(found) => {
                if protocol == Protocol::Text {
                    self.end_of_values(reply).await?;
                }
                Ok(found)
            }
        }
    }

    /// Reads the next value, if it is the operation's. None where the next line ends the values or begins that of
    /// another key: then it is left where it is.
    pub(super) async fn next_value(
        &mut self,
        protocol: Protocol,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Option<Outcome>, Failure> {
        let line = self.line().await?;
        let received = &self.connection.received()[..line];
        let length = match wire::read_line(protocol, received) {
            Some(Line::Value { key, length }) => match key {
                Some(key) if key != operation.key.as_slice() => return Ok(None),
                _ => length,
            },
            Some(Line::End) => return Ok(None),
            Some(Line::Error { code, message }) => {
                let failure = wire::failure_of(code, message, false);
                self.take(line, reply);
                return Err(failure);
            }
            _ => return Err(malformed("it is not of the kind that was due", received)),
        };
        let total = line + length + 2;
        let arrived = self.connection.receive_total(total).await;
        arrived.map_err(|error| lost(&error))?;
        let (value, end) = self.connection.received()[line..total].split_at(length);
        if end != b"\r\n" {
            return Err(malformed("a value without its end", end));
        }
        let outcome = reply.found(operation, value);
        self.take(total, reply);
        Ok(Some(outcome))
    }

    /// Reads the line behind the last value.
    pub(super) async fn end_of_values(&mut self, reply: &mut Reply) -> Result<(), Failure> {
        let line = self.line().await?;
        match &self.connection.received()[..line] {
            b"END\r\n" => {
                self.take(line, reply);
                Ok(())
            }
            other => Err(malformed("a value that was not asked for", other)),
        }
    }

    /// Waits for a line; what cannot begin one is told at once.
    #[inline]
    pub(super) async fn line(&mut self) -> Result<usize, Failure> {
        if self.connection.received().is_empty() {
            let arrived = self.connection.receive().await;
            arrived.map_err(|error| lost(&error))?;
        }
        let received = self.connection.received();
        if !(received[0].is_ascii_uppercase() || received[0].is_ascii_digit()) {
            return Err(malformed("it begins with no word", received));
        }
        let line = self.connection.receive_line(wire::LONGEST_LINE).await;
        line.map_err(|error| lost(&error))
    }

    #[inline]
    pub(super) fn take(&mut self, count: usize, reply: &mut Reply) {
        reply.bytes_received += count as u64;
        self.connection.consume(count);
    }
}

#[inline]
fn is_storage(verb: Verb) -> bool {
    matches!(verb, Verb::Set | Verb::Insert | Verb::Update)
}

impl crate::driver::Session for Session {
    async fn execute(&mut self, operation: &Operation, reply: &mut Reply) -> Outcome {
        let outcome = self.perform(operation, reply).await;
        outcome.unwrap_or_else(Outcome::from)
    }

    async fn execute_batch(
        &mut self,
        operations: &[Operation],
        replies: &mut [Reply],
        outcomes: &mut Vec<Outcome>,
    ) {
        let whole = outcomes.len() + operations.len();
        if let Err(failure) = self.batch(operations, replies, outcomes).await {
            outcomes.resize(whole, Outcome::from(failure));
        }
    }

    /// The address of the only server; several have none in common.
    fn peer(&self) -> Option<std::net::SocketAddr> {
        match self.servers.as_slice() {
            [one] => one.connection.peer(),
            _ => None,
        }
    }

    fn connections(&self) -> u32 {
        u32::try_from(self.servers.len()).unwrap_or(u32::MAX)
    }
}
