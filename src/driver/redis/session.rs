//! A session: one connection, one operation or batch in flight. The hot path of the driver.
//!
//! Built-in operations are written and read here without an allocation; everything else goes through the redis crate's
//! encoder and parser. `wire` knows the bytes, `login` what happens when a connection is new.

use super::custom::{Custom, first_text, text_of};
use super::wait::{self, Wait};
use super::wire::{self, Frame, Progress, push_argument, push_length};
use crate::driver::net::connection::GATHER_FROM;
use crate::driver::net::{Connection, lost, malformed};
use crate::op::{ErrorClass, Failure, Operation, Outcome, Reply, Verb, no_statements};
use redis::{Cmd, Value};
use std::sync::Arc;

/// Sent before a request for a slot that is on its way to the node asked.
const ASKING: &[u8] = b"*1\r\n$6\r\nASKING\r\n";

/// What all sessions of a run share.
#[derive(Debug)]
pub struct Shared {
    pub operations: Vec<Option<Custom>>,
    pub scan_count: u64,
    /// What every built-in write waits for, where it waits.
    pub wait: Option<Wait>,
}

pub struct Session {
    connection: Connection,
    shared: Arc<Shared>,
    request: Vec<u8>,
    /// Where the last scan ended, in decimal.
    cursor: Vec<u8>,
    /// Scratch of custom operations.
    command: Cmd,
    argument: Vec<u8>,
    /// The next requests are for a slot that is moving here: `ASKING` goes before each.
    asking: bool,
}

impl Session {
    pub fn new(connection: Connection, shared: Arc<Shared>) -> Session {
        Session {
            connection,
            shared,
            request: Vec::new(),
            cursor: b"0".to_vec(),
            command: Cmd::new(),
            argument: Vec::new(),
            asking: false,
        }
    }

    /// As `execute`, where the node is asked for a slot that it does not own yet.
    pub async fn execute_asking(&mut self, operation: &Operation, reply: &mut Reply) -> Outcome {
        self.asking = true;
        let outcome = crate::driver::Session::execute(self, operation, reply).await;
        self.asking = false;
        outcome
    }

    /// Whether the last scan has come to the end of this node's keys.
    pub fn scanned_all(&self) -> bool {
        self.cursor == b"0"
    }

    async fn round_trip(
        &mut self,
        verb: Verb,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        self.check_idle()?;
        self.request.clear();
        if self.asking {
            self.request.extend_from_slice(ASKING);
        }
        let gather = operation.value.len() >= GATHER_FROM;
        let gathered = self.encode(verb, operation, gather)?;
        let (body, tail): (&[u8], &[u8]) = match (gathered, &self.shared.wait) {
            (false, _) => (b"", b""),
            (true, None) => (&operation.value, b"\r\n"),
            (true, Some(wait)) => (&operation.value, wait.after_value()),
        };
        reply.bytes_sent += (self.request.len() + body.len() + tail.len()) as u64;
        let sent = self.connection.send(&self.request, body, tail).await;
        sent.map_err(|error| lost(&error))?;
        if self.asking {
            let (_, line) = self.first_line().await?;
            self.take(line, reply);
        }
        self.answer(verb, operation, reply).await
    }

    async fn read_then_write(
        &mut self,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let read = self.round_trip(Verb::Get, operation, reply).await?;
        let written = self.round_trip(Verb::Set, operation, reply).await?;
        // The write is part of the operation, so that it ends later than the read says.
        reply.ended = None;
        Ok(read.and_written(written))
    }

    /// An answer that nobody asked for would be taken for that of the next request.
    fn check_idle(&self) -> Result<(), Failure> {
        match self.connection.received() {
            b"" => Ok(()),
            stray => Err(malformed("it came unasked", stray)),
        }
    }

    /// Appends the request, and behind a write what it waits for. Returns whether the value and all after it are left
    /// out, to be gathered behind it.
    fn encode(&mut self, verb: Verb, operation: &Operation, gather: bool) -> Result<bool, Failure> {
        let gathered = self.encode_alone(verb, operation, gather)?;
        if let Some(wait) = &self.shared.wait
            && !gathered
            && wait::follows(verb)
        {
            self.request.extend_from_slice(wait.request());
        }
        Ok(gathered)
    }

    fn encode_alone(
        &mut self,
        verb: Verb,
        operation: &Operation,
        gather: bool,
    ) -> Result<bool, Failure> {
        let out = &mut self.request;
        let key = operation.key.as_slice();
        match verb {
            Verb::Get => {
                out.extend_from_slice(b"*2\r\n$3\r\nGET\r\n");
                push_argument(out, key);
            }
            Verb::Set => {
                out.extend_from_slice(b"*3\r\n$3\r\nSET\r\n");
                push_argument(out, key);
                return Ok(push_value(out, &operation.value, gather));
            }
            // The value stands last only in a plain SET, so it is copied here.
            Verb::Insert | Verb::Update => {
                out.extend_from_slice(b"*4\r\n$3\r\nSET\r\n");
                push_argument(out, key);
                push_argument(out, &operation.value);
                let condition: &[u8] = if verb == Verb::Insert { b"NX" } else { b"XX" };
                push_argument(out, condition);
            }
            Verb::Delete => {
                out.extend_from_slice(b"*2\r\n$3\r\nDEL\r\n");
                push_argument(out, key);
            }
            Verb::Increment => {
                out.extend_from_slice(b"*2\r\n$4\r\nINCR\r\n");
                push_argument(out, key);
            }
            Verb::Scan => {
                out.extend_from_slice(b"*4\r\n$4\r\nSCAN\r\n");
                push_argument(out, &self.cursor);
                push_argument(out, b"COUNT");
                self.argument.clear();
                crate::driver::net::push_decimal(&mut self.argument, self.shared.scan_count);
                push_argument(out, &self.argument);
            }
            Verb::ReadModifyWrite => {
                let gathered = self.encode(Verb::Get, operation, false)?;
                debug_assert!(!gathered);
                return self.encode(Verb::Set, operation, gather);
            }
            Verb::Custom(number) => {
                let custom = custom(&self.shared, number)?;
                custom.write(operation, &mut self.command, &mut self.argument, out);
            }
            Verb::Statement => return Err(no_statements("redis")),
        }
        Ok(false)
    }

    /// Reads the answer to one request, and to the wait behind it.
    async fn answer(
        &mut self,
        verb: Verb,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let result = self.answer_alone(verb, operation, reply).await;
        if self.shared.wait.is_none() || !wait::follows(verb) {
            return result;
        }
        let written = settled(result)?;
        let (kind, line) = self.first_line().await?;
        let acknowledged = match kind {
            b'-' => Err(self.server_error(line, reply)),
            _ => {
                let acknowledged = wait::acknowledged(&self.connection.received()[..line])?;
                self.take(line, reply);
                Ok(acknowledged)
            }
        };
        match (&self.shared.wait, written) {
            (Some(wait), Outcome::Done) => wait.judge(acknowledged?),
            (_, other) => Ok(other),
        }
    }

    async fn answer_alone(
        &mut self,
        verb: Verb,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let (kind, line) = self.first_line().await?;
        match (kind, verb) {
            (b'-', _) => Err(self.server_error(line, reply)),
            (b'$', Verb::Get | Verb::Custom(_)) => self.value(line, verb, operation, reply).await,
            (b'+', Verb::Set | Verb::Insert | Verb::Update) => {
                self.take(line, reply);
                Ok(Outcome::Done)
            }
            (b'_', Verb::Get) => {
                self.take(line, reply);
                Ok(Outcome::Missing)
            }
            (b'$' | b'_', Verb::Insert | Verb::Update) => {
                self.nothing_done(line)?;
                self.take(line, reply);
                not_written(verb)
            }
            (b':', Verb::Delete) => {
                let missing = self.connection.received().starts_with(b":0\r");
                self.take(line, reply);
                Ok(if missing {
                    Outcome::Missing
                } else {
                    Outcome::Done
                })
            }
            (b':', Verb::Increment) => {
                self.take(line, reply);
                Ok(Outcome::Done)
            }
            (b'*', Verb::Scan) => {
                let answer = self.whole_answer(reply).await?;
                self.scanned(answer)
            }
            (_, Verb::Custom(number)) => {
                let answer = self.whole_answer(reply).await?;
                custom_answer(custom(&self.shared, number)?, &answer, reply)
            }
            _ => Err(malformed(
                "it is not of the kind that was due",
                &self.connection.received()[..line],
            )),
        }
    }

    /// Waits for the first line of an answer; returns its first byte and its length.
    #[inline]
    async fn first_line(&mut self) -> Result<(u8, usize), Failure> {
        if self.connection.received().is_empty() {
            let received = self.connection.receive().await;
            received.map_err(|error| lost(&error))?;
        }
        let kind = self.connection.received()[0];
        if !wire::is_type(kind) {
            let received = self.connection.received();
            return Err(malformed("it begins with no type", received));
        }
        let line = self.connection.receive_line(wire::LONGEST_LINE).await;
        let line = line.map_err(|error| lost(&error))?;
        match self.connection.received()[..line].ends_with(b"\r\n") {
            true => Ok((kind, line)),
            false => Err(malformed("a line", &self.connection.received()[..line])),
        }
    }

    /// Reads a value and hands it over where it lies.
    async fn value(
        &mut self,
        line: usize,
        verb: Verb,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let header = &self.connection.received()[..line];
        let length = wire::bulk_length(header).map_err(|()| malformed("a length", header))?;
        let total = line + length.map_or(0, |length| length + 2);
        let received = self.connection.receive_total(total).await;
        received.map_err(|error| lost(&error))?;
        let value = match length {
            None => None,
            Some(length) => {
                let (value, end) = self.connection.received()[line..total].split_at(length);
                if end != b"\r\n" {
                    return Err(malformed("a value without its end", end));
                }
                Some(value)
            }
        };
        let result = match (verb, value) {
            (Verb::Custom(number), value) => {
                custom(&self.shared, number)?.read(value, operation, reply)
            }
            (_, Some(value)) => Ok(reply.found(operation, value)),
            (_, None) => Ok(Outcome::Missing),
        };
        self.take(total, reply);
        result
    }

    /// Reads an answer of any kind through the crate's parser.
    pub async fn whole_answer(&mut self, reply: &mut Reply) -> Result<Value, Failure> {
        let mut frame = Frame::new();
        loop {
            let received = self.connection.received();
            match frame.advance(received) {
                Err(()) => return Err(malformed("not of the protocol", received)),
                Ok(Progress::Needs(total)) => {
                    let received = self.connection.receive_total(total).await;
                    received.map_err(|error| lost(&error))?;
                }
                Ok(Progress::Whole(length)) => {
                    let answer = redis::parse_redis_value(&received[..length])
                        .map_err(|error| malformed(&error.to_string(), received))?;
                    self.take(length, reply);
                    return Ok(answer);
                }
            }
        }
    }

    /// Sends a request made by the crate and returns its answer; a server's error is a failure.
    pub async fn query(&mut self, command: &Cmd) -> Result<Value, Failure> {
        self.check_idle()?;
        let sent = self
            .connection
            .send(&command.get_packed_command(), b"", b"")
            .await;
        sent.map_err(|error| lost(&error))?;
        let answer = self.whole_answer(&mut Reply::default()).await?;
        error_of(&answer).map_or(Ok(answer), Err)
    }

    #[inline]
    fn take(&mut self, count: usize, reply: &mut Reply) {
        reply.bytes_received += count as u64;
        self.connection.consume(count);
    }

    fn server_error(&mut self, line: usize, reply: &mut Reply) -> Failure {
        let text = &self.connection.received()[1..line];
        let text = String::from_utf8_lossy(text).trim_end().to_owned();
        self.take(line, reply);
        let code = text.split(' ').next().unwrap_or_default().to_owned();
        Failure::new(ErrorClass::Server, text).with_code(code)
    }

    /// Under SET with a condition only `$-1` says that nothing was written.
    fn nothing_done(&self, line: usize) -> Result<(), Failure> {
        let received = &self.connection.received()[..line];
        match received {
            b"$-1\r\n" | b"_\r\n" => Ok(()),
            other => Err(malformed("it is not of the kind that was due", other)),
        }
    }

    fn scanned(&mut self, answer: Value) -> Result<Outcome, Failure> {
        let Value::Array(parts) = &answer else {
            return Err(malformed("a scan", b"*"));
        };
        let Some(Value::BulkString(cursor)) = parts.first() else {
            return Err(malformed("a scan without a cursor", b"*"));
        };
        self.cursor.clone_from(cursor);
        Ok(Outcome::Done)
    }

    /// Sends those of the operations that are at the positions `which`, all before the first answer is read.
    pub async fn send_batch(
        &mut self,
        operations: &[Operation],
        which: impl Iterator<Item = usize>,
        replies: &mut [Reply],
    ) -> Result<(), Failure> {
        self.check_idle()?;
        self.request.clear();
        for position in which {
            let before = self.request.len();
            let operation = &operations[position];
            self.encode(operation.verb, operation, false)?;
            replies[position].bytes_sent += (self.request.len() - before) as u64;
        }
        let sent = self.connection.send_batch(&self.request).await;
        sent.map_err(|error| lost(&error))
    }

    /// Reads the answers to what `send_batch` has sent, and hands each over. On failure the rest have none.
    pub async fn read_batch(
        &mut self,
        operations: &[Operation],
        which: impl Iterator<Item = usize>,
        replies: &mut [Reply],
        mut give: impl FnMut(usize, Outcome),
    ) -> Result<(), Failure> {
        for position in which {
            let (operation, reply) = (&operations[position], &mut replies[position]);
            let outcome = match operation.verb {
                Verb::ReadModifyWrite => {
                    let read = settled(self.answer(Verb::Get, operation, reply).await)?;
                    let written = settled(self.answer(Verb::Set, operation, reply).await)?;
                    reply.ended = None;
                    read.and_written(written)
                }
                verb => settled(self.answer(verb, operation, reply).await)?,
            };
            give(position, outcome);
        }
        Ok(())
    }

    async fn batch(
        &mut self,
        operations: &[Operation],
        replies: &mut [Reply],
        outcomes: &mut Vec<Outcome>,
    ) -> Result<(), Failure> {
        let all = 0..operations.len();
        self.send_batch(operations, all.clone(), replies).await?;
        let give = |_, outcome| outcomes.push(outcome);
        self.read_batch(operations, all, replies, give).await
    }
}

impl crate::driver::Session for Session {
    async fn execute(&mut self, operation: &Operation, reply: &mut Reply) -> Outcome {
        let result = match operation.verb {
            Verb::ReadModifyWrite => self.read_then_write(operation, reply).await,
            verb => self.round_trip(verb, operation, reply).await,
        };
        result.unwrap_or_else(Outcome::from)
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

    fn peer(&self) -> Option<std::net::SocketAddr> {
        self.connection.peer()
    }
}

/// Returns whether the value is left to be gathered.
#[inline]
fn push_value(out: &mut Vec<u8>, value: &[u8], gather: bool) -> bool {
    if gather {
        push_length(out, value.len());
    } else {
        push_argument(out, value);
    }
    gather
}

fn custom(shared: &Shared, number: u16) -> Result<&Custom, Failure> {
    let custom = shared.operations.get(usize::from(number));
    custom.and_then(Option::as_ref).ok_or_else(|| {
        let message = format!("the redis driver has no operation number {number}");
        Failure::new(ErrorClass::Client, message)
    })
}

/// A failure that leaves the connection usable is an outcome; others end the batch.
fn settled(result: Result<Outcome, Failure>) -> Result<Outcome, Failure> {
    match result {
        Err(failure) if !failure.broken => Ok(Outcome::from(failure)),
        other => other,
    }
}

fn not_written(verb: Verb) -> Result<Outcome, Failure> {
    match verb {
        Verb::Insert => {
            let message = "insert: the key exists already";
            Err(Failure::new(ErrorClass::Rejected, message))
        }
        _ => Ok(Outcome::Missing),
    }
}

fn error_of(answer: &Value) -> Option<Failure> {
    match answer {
        Value::ServerError(error) => {
            let message = format!("{} {}", error.code(), error.details().unwrap_or_default());
            let failure = Failure::new(ErrorClass::Server, message.trim_end());
            Some(failure.with_code(error.code()))
        }
        Value::Attribute { data, .. } => error_of(data),
        _ => None,
    }
}

fn custom_answer(custom: &Custom, answer: &Value, reply: &mut Reply) -> Result<Outcome, Failure> {
    if let Some(failure) = error_of(answer) {
        return Err(failure);
    }
    if custom.expects() {
        custom.check(&text_of(answer))?;
    }
    if reply.wants_text {
        reply.keep_text(first_text(answer).as_bytes());
    }
    Ok(match answer {
        Value::Nil => Outcome::Missing,
        _ => Outcome::Done,
    })
}
