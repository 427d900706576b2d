//! A session: one connection, one operation or batch in flight. The hot path of the driver.
//!
//! Nothing is allocated per operation, and a large value goes out from where it lies and is looked at where it came in,
//! unless its spelling in a procedure's body forces a copy. A connection that the server ends with an answer, as it says
//! there, is replaced by the next operation, inside its time; nothing is sent twice.

use super::rpc;
use super::tsv::Encoding;
use super::{LARGEST, Protocol, Settings, binary, line_end, rest};
use crate::driver::net::connection::GATHER_FROM;
use crate::driver::net::http::{Framing, read_body, read_head};
use crate::driver::net::{self, Connection, lost, malformed};
use crate::driver::spec::Endpoint;
use crate::op::{ErrorClass, Failure, Operation, Outcome, Reply, Verb, no_statements};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// Bytes of an answer's body at most: the largest value, spelled.
const LONGEST_BODY: usize = 4 * LARGEST;

pub struct Session {
    pub(super) settings: Arc<Settings>,
    endpoint: Endpoint,
    line_end: Vec<u8>,
    /// None after the server ended it in an orderly way.
    connection: Option<Connection>,
    peer: Option<SocketAddr>,
    /// The input buffer of the connection before, for the next one.
    buffer: Vec<u8>,
    /// Scratch, reused.
    pub(super) request: Vec<u8>,
    columns: Vec<u8>,
    decoded: Vec<u8>,
    pieces: Vec<u8>,
    error: Vec<u8>,
}

impl Session {
    pub(super) async fn open(
        settings: Arc<Settings>,
        endpoint: &Endpoint,
    ) -> Result<Session, Failure> {
        let connection = net::connect(endpoint).await?;
        Ok(Session {
            settings,
            line_end: line_end(endpoint),
            endpoint: endpoint.clone(),
            peer: connection.peer(),
            connection: Some(connection),
            buffer: Vec::new(),
            request: Vec::new(),
            columns: Vec::new(),
            decoded: Vec::new(),
            pieces: Vec::new(),
            error: Vec::new(),
        })
    }

    /// Why an operation is not sent at all.
    pub(super) fn refusal(&self, operation: &Operation) -> Option<Failure> {
        let verb = operation.verb;
        match verb {
            Verb::Statement => return Some(no_statements("kyototycoon")),
            Verb::Scan | Verb::Custom(_) => {
                let message = format!("kyototycoon cannot {}", verb.name());
                return Some(Failure::new(ErrorClass::Client, message));
            }
            _ => {}
        }
        let protocol = self.settings.protocol.of(verb);
        let message = if self.too_large(protocol, operation) {
            format!("no value is larger than {LARGEST} bytes as it is sent")
        } else if protocol == Protocol::Rest && !rest::fits(&self.settings.database, &operation.key)
        {
            format!(
                "the first line of a request has less than {} bytes, key included",
                rest::LONGEST_LINE
            )
        } else {
            return None;
        };
        Some(Failure::new(ErrorClass::Rejected, message))
    }

    fn too_large(&self, protocol: Protocol, operation: &Operation) -> bool {
        // No spelling makes it more than three times as long.
        if (operation.key.len() + operation.value.len()) * 3 + 1024 < LARGEST {
            return false;
        }
        match protocol {
            Protocol::Rpc => rpc::body_length(&self.settings, operation) > LARGEST,
            _ => operation.value.len().max(operation.key.len()) > LARGEST,
        }
    }

    async fn perform(
        &mut self,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        if let Some(refusal) = self.refusal(operation) {
            return Err(refusal);
        }
        match operation.verb {
            Verb::ReadModifyWrite => {
                let read = self.round_trip(Verb::Get, operation, reply).await?;
                let written = self.round_trip(Verb::Set, operation, reply).await?;
                // The write is part of the operation, so that it ends later than the read says.
                reply.ended = None;
                Ok(read.and_written(written))
            }
            verb => self.round_trip(verb, operation, reply).await,
        }
    }

    async fn round_trip(
        &mut self,
        verb: Verb,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        self.be_connected(reply).await?;
        self.request.clear();
        let gather = operation.value.len() >= GATHER_FROM;
        let (body, tail) = self.push(verb, operation, gather);
        reply.bytes_sent += (self.request.len() + body.len() + tail.len()) as u64;
        let connection = open(&mut self.connection)?;
        let sent = connection.send(&self.request, body, tail).await;
        sent.map_err(|error| lost(&error))?;
        self.answer(verb, operation, reply).await
    }

    /// A connection without an answer in it: one that nobody asked for would be taken for that of the next request.
    pub(super) async fn be_connected(&mut self, reply: &mut Reply) -> Result<(), Failure> {
        match &self.connection {
            Some(connection) if connection.received().is_empty() => Ok(()),
            Some(connection) => Err(malformed("it came unasked", connection.received())),
            None => {
                let started = Instant::now();
                let mut connection = net::connect(&self.endpoint).await?;
                connection.reuse(std::mem::take(&mut self.buffer));
                reply.connect_time += started.elapsed();
                self.peer = connection.peer();
                self.connection = Some(connection);
                Ok(())
            }
        }
    }

    /// Appends a request to `self.request`. With `gather` its value may be left out: then it is returned, with what follows.
    pub(super) fn push<'o>(
        &mut self,
        verb: Verb,
        operation: &'o Operation,
        gather: bool,
    ) -> (&'o [u8], &'static [u8]) {
        let (settings, line_end) = (&*self.settings, &self.line_end);
        let out = &mut self.request;
        match settings.protocol.of(verb) {
            Protocol::Rpc => rpc::push(
                settings,
                line_end,
                verb,
                operation,
                gather,
                &mut self.columns,
                out,
            ),
            Protocol::Rest => {
                let value = rest::push(settings, line_end, verb, operation, gather, out);
                (value, b"")
            }
            Protocol::Binary => {
                binary::push_head(magic(verb), 1, out);
                let value = self.push_record(verb, operation, gather);
                (value, b"")
            }
        }
    }

    /// Appends what the binary protocol says of one record; the value as above.
    pub(super) fn push_record<'o>(
        &mut self,
        verb: Verb,
        operation: &'o Operation,
        gather: bool,
    ) -> &'o [u8] {
        let (database, out) = (self.settings.database.number, &mut self.request);
        let (key, value) = (&operation.key, &operation.value);
        if verb != Verb::Set {
            binary::push_name(database, key, out);
            return b"";
        }
        binary::push_record(database, key, value.len(), out);
        if gather {
            return value;
        }
        out.extend_from_slice(value);
        b""
    }

    pub(super) async fn send_batch(&mut self) -> Result<(), Failure> {
        let connection = open(&mut self.connection)?;
        let sent = connection.send_batch(&self.request).await;
        sent.map_err(|error| lost(&error))
    }

    /// Reads the answer to one request.
    pub(super) async fn answer(
        &mut self,
        verb: Verb,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let protocol = self.settings.protocol.of(verb);
        if protocol != Protocol::Binary {
            return self.answer_by_http(protocol, verb, operation, reply).await;
        }
        let mut hits = self.bulk_head(magic(verb), 1, reply).await?;
        match verb {
            Verb::Get => {
                let outcome = self.next_record(&mut hits, operation, reply).await?;
                self.bulk_end(hits)?;
                Ok(outcome)
            }
            Verb::Delete if hits == 0 => Ok(Outcome::Missing),
            Verb::Delete => Ok(Outcome::Done),
            _ => self.all_stored(hits, 1),
        }
    }

    async fn answer_by_http(
        &mut self,
        protocol: Protocol,
        verb: Verb,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let connection = open(&mut self.connection)?;
        let (mut encoding, error) = (None, &mut self.error);
        error.clear();
        let hear = |name: &str, value: &[u8]| match name.len() {
            12 if name.eq_ignore_ascii_case("content-type") => {
                encoding = Encoding::of_content_type(value);
            }
            10 if name.eq_ignore_ascii_case("x-kt-error") => error.extend_from_slice(value),
            _ => {}
        };
        let bytes = &mut reply.bytes_received;
        let head = read_head(connection, false, hear, bytes).await?;
        let length = read_body(connection, &head, LONGEST_BODY, &mut self.pieces, bytes).await?;
        let body = match head.framing {
            Framing::Chunked => self.pieces.as_slice(),
            _ => &connection.received()[..length],
        };
        let status = head.status;
        let outcome = if protocol == Protocol::Rest {
            rest::judge(status, &self.error, body, verb, operation, reply)
        } else {
            let answer = rpc::Answer {
                status,
                encoding,
                body,
            };
            rpc::judge(answer, verb, operation, reply, &mut self.decoded)
        };
        connection.consume(length);
        if !head.stays_open {
            let ended = self.connection.take();
            self.buffer = ended.map(Connection::into_buffer).unwrap_or_default();
        }
        outcome
    }

    /// Reads what stands before the records of an answer: how many of `asked` were stored, removed or found.
    pub(super) async fn bulk_head(
        &mut self,
        magic: u8,
        asked: usize,
        reply: &mut Reply,
    ) -> Result<usize, Failure> {
        let connection = open(&mut self.connection)?;
        if connection.received().is_empty() {
            let arrived = connection.receive().await;
            arrived.map_err(|error| lost(&error))?;
        }
        binary::check_first(magic, connection.received())?;
        let arrived = connection.receive_total(binary::HEAD).await;
        arrived.map_err(|error| lost(&error))?;
        let hits = binary::hits(connection.received(), asked)?;
        connection.consume(binary::HEAD);
        reply.bytes_received += binary::HEAD as u64;
        Ok(hits)
    }

    /// Reads the next of `hits` records, if it is the operation's; another one's is left where it is.
    pub(super) async fn next_record(
        &mut self,
        hits: &mut usize,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        if *hits == 0 {
            return Ok(Outcome::Missing);
        }
        let connection = open(&mut self.connection)?;
        let arrived = connection.receive_total(binary::RECORD_HEAD).await;
        arrived.map_err(|error| lost(&error))?;
        let received = connection.received();
        let head = binary::record_head(received)
            .filter(|head| head.value <= LARGEST)
            .filter(|head| head.database == self.settings.database.number)
            .ok_or_else(|| malformed("a record that was not asked for", received))?;
        if head.key != operation.key.len() {
            return Ok(Outcome::Missing);
        }
        let key_end = binary::RECORD_HEAD + head.key;
        let total = key_end + head.value;
        let arrived = connection.receive_total(key_end).await;
        arrived.map_err(|error| lost(&error))?;
        if connection.received()[binary::RECORD_HEAD..key_end] != operation.key {
            return Ok(Outcome::Missing);
        }
        let arrived = connection.receive_total(total).await;
        arrived.map_err(|error| lost(&error))?;
        let outcome = reply.found(operation, &connection.received()[key_end..total]);
        connection.consume(total);
        reply.bytes_received += total as u64;
        *hits -= 1;
        Ok(outcome)
    }

    /// After the last record that was asked for: none may be left.
    pub(super) fn bulk_end(&self, hits: usize) -> Result<(), Failure> {
        match (hits, &self.connection) {
            (0, _) => Ok(()),
            (_, Some(connection)) => Err(malformed(
                "a record that was not asked for",
                connection.received(),
            )),
            (_, None) => Err(ended()),
        }
    }

    /// What came of records that were to be stored: the answer does not say which were not.
    pub(super) fn all_stored(&self, stored: usize, asked: usize) -> Result<Outcome, Failure> {
        if stored == asked {
            return Ok(Outcome::Done);
        }
        let database = self.settings.database.number;
        let message = format!("{stored} of {asked} records were stored in database {database}");
        Err(Failure::new(ErrorClass::Server, message).with_code("set_bulk"))
    }
}

/// The request of the binary protocol.
pub(super) fn magic(verb: Verb) -> u8 {
    match verb {
        Verb::Get => binary::GET,
        Verb::Delete => binary::REMOVE,
        _ => binary::SET,
    }
}

fn open(connection: &mut Option<Connection>) -> Result<&mut Connection, Failure> {
    connection.as_mut().ok_or_else(ended)
}

fn ended() -> Failure {
    Failure::new(ErrorClass::Reset, "the server ended the connection")
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

    fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }
}
