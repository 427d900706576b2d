//! The HTTP interface: one connection, one request in flight. Values are sent from and compared where they lie.
//!
//! A connection that the node ends in an orderly way is replaced by the next operation, inside its time.

use super::fault::{Asked, of_status};
use super::messages::{Part, Put};
use super::path::{Method, Paths};
use super::properties::Properties;
use super::settings::{Settings, milliseconds};
use super::siblings;
use super::spec::QUORUMS;
use crate::driver::net::connection::GATHER_FROM;
use crate::driver::net::http::{Framing, Head, read_body, read_head};
use crate::driver::net::{self, Connection, malformed, push_decimal};
use crate::driver::spec::Endpoint;
use crate::op::{ErrorClass, Failure, Operation, Outcome, Reply};
use serde_json::{Map, Value, json};
use std::net::SocketAddr;
use std::time::Duration;

/// No body is longer: a node takes objects of 50 MB, and of siblings a hundred.
const LONGEST: usize = 256 << 20;

/// Deletions that are sent before the first answer is read.
const PIPELINED: usize = 64;

/// What a 404 of the store itself says; one of the web server, before the store is there, is a page.
const NOT_FOUND: &[u8] = b"not found";

pub struct Http {
    paths: Paths,
    endpoint: Endpoint,
    connection: Option<Connection>,
    peer: Option<SocketAddr>,
    request: Vec<u8>,
    /// A body that lies in pieces on the wire.
    pieces: Vec<u8>,
    /// Of the last read that was to keep it, in its base64; empty where it found none.
    vclock: Vec<u8>,
}

/// An answer whose body is received and not taken off.
struct Answer {
    head: Head,
    /// Received bytes of the body; those of a chunked one are in `pieces`.
    length: usize,
}

impl Http {
    pub async fn open(settings: &Settings, endpoint: &Endpoint) -> Result<Http, Failure> {
        let connection = net::connect(endpoint).await?;
        Ok(Http {
            paths: Paths::of(settings, &endpoint.label),
            endpoint: endpoint.clone(),
            peer: connection.peer(),
            connection: Some(connection),
            request: Vec::new(),
            pieces: Vec::new(),
            vclock: Vec::new(),
        })
    }

    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    pub async fn get(
        &mut self,
        operation: &Operation,
        part: Part,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let method = match part {
            Part::Clock => Method::Head,
            Part::Value | Part::ValueAndClock => Method::Get,
        };
        self.begin(method, &operation.key)?;
        self.request.extend_from_slice(b"\r\n");
        let keeps_clock = part != Part::Value;
        let answer = self.exchange(method, b"", keeps_clock, reply).await?;
        let body = self.body(&answer)?;
        let outcome = match answer.head.status {
            200 if part == Part::Clock => Ok(Outcome::Found),
            200 => Ok(reply.found(operation, body)),
            300 => {
                reply.warnings += 1;
                match part {
                    Part::Clock => Ok(Outcome::Found),
                    _ => of_siblings(operation, body, reply),
                }
            }
            404 if part == Part::Clock || body.starts_with(NOT_FOUND) => Ok(Outcome::Missing),
            status => Err(of_status(status, body, Asked::Read)),
        };
        self.let_go(&answer);
        outcome
    }

    pub async fn put(
        &mut self,
        operation: &Operation,
        put: Put,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        self.begin(Method::Put, &operation.key)?;
        let out = &mut self.request;
        match put {
            Put::Insert => out.extend_from_slice(b"If-None-Match: *\r\n"),
            Put::Carrying if !self.vclock.is_empty() => {
                out.extend_from_slice(b"X-Riak-Vclock: ");
                out.extend_from_slice(&self.vclock);
                out.extend_from_slice(b"\r\n");
            }
            Put::Plain | Put::Carrying => {}
        }
        out.extend_from_slice(b"Content-Length: ");
        push_decimal(out, operation.value.len() as u64);
        out.extend_from_slice(b"\r\n\r\n");
        // A large one is gathered from where it lies.
        let value = match operation.value.len() >= GATHER_FROM {
            true => operation.value.as_slice(),
            false => {
                out.extend_from_slice(&operation.value);
                b""
            }
        };
        let answer = self.exchange(Method::Put, value, false, reply).await?;
        let outcome = match answer.head.status {
            200 | 201 | 204 => Ok(Outcome::Done),
            300 => {
                reply.warnings += 1;
                Ok(Outcome::Done)
            }
            status => Err(of_status(status, self.body(&answer)?, Asked::Write)),
        };
        self.let_go(&answer);
        outcome
    }

    pub async fn delete(
        &mut self,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        self.begin(Method::Delete, &operation.key)?;
        self.request.extend_from_slice(b"\r\n");
        let answer = self.exchange(Method::Delete, b"", false, reply).await?;
        let outcome = self.deleted(&answer);
        self.let_go(&answer);
        outcome
    }

    fn deleted(&self, answer: &Answer) -> Result<Outcome, Failure> {
        let body = self.body(answer)?;
        match answer.head.status {
            200 | 204 => Ok(Outcome::Done),
            404 if body.starts_with(NOT_FOUND) => Ok(Outcome::Missing),
            status => Err(of_status(status, body, Asked::Write)),
        }
    }

    fn begin(&mut self, method: Method, key: &[u8]) -> Result<(), Failure> {
        // Without one the path is that of the bucket.
        if key.is_empty() {
            let message = "a key has at least one byte";
            return Err(Failure::new(ErrorClass::Rejected, message));
        }
        self.request.clear();
        self.paths.push(&mut self.request, method, key);
        Ok(())
    }

    /// Sends the request, with `value` behind it, and receives the answer whole. On an error the connection is gone.
    async fn exchange(
        &mut self,
        method: Method,
        value: &[u8],
        keeps_clock: bool,
        reply: &mut Reply,
    ) -> Result<Answer, Failure> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => net::connect(&self.endpoint).await?,
        };
        self.peer = connection.peer();
        if !connection.received().is_empty() {
            return Err(malformed("it came unasked", connection.received()));
        }
        reply.bytes_sent += (self.request.len() + value.len()) as u64;
        let sent = connection.send(&self.request, value, b"").await;
        sent.map_err(|error| net::lost(&error))?;
        if keeps_clock {
            self.vclock.clear();
        }
        let answer = self
            .receive(&mut connection, method, keeps_clock, reply)
            .await?;
        self.connection = Some(connection);
        Ok(answer)
    }

    async fn receive(
        &mut self,
        connection: &mut Connection,
        method: Method,
        keeps_clock: bool,
        reply: &mut Reply,
    ) -> Result<Answer, Failure> {
        let vclock = &mut self.vclock;
        let hear = |name: &str, said: &[u8]| {
            if keeps_clock && name.eq_ignore_ascii_case("x-riak-vclock") {
                vclock.clear();
                vclock.extend_from_slice(said);
            }
        };
        let bytes = &mut reply.bytes_received;
        let head = read_head(connection, method == Method::Head, hear, bytes).await?;
        let length = read_body(connection, &head, LONGEST, &mut self.pieces, bytes).await?;
        Ok(Answer { head, length })
    }

    fn body(&self, answer: &Answer) -> Result<&[u8], Failure> {
        match (&answer.head.framing, &self.connection) {
            (Framing::Chunked, _) => Ok(&self.pieces),
            (_, Some(connection)) => Ok(&connection.received()[..answer.length]),
            (_, None) => Err(Failure::new(ErrorClass::Client, "the connection is gone")),
        }
    }

    /// The answer was read: the connection is kept where the node keeps it.
    fn let_go(&mut self, answer: &Answer) {
        match &mut self.connection {
            Some(connection) if answer.head.stays_open => connection.consume(answer.length),
            _ => self.connection = None,
        }
    }
}

/// Of siblings the wanted one is found, else the first.
fn of_siblings(operation: &Operation, body: &[u8], reply: &mut Reply) -> Result<Outcome, Failure> {
    let wanted = operation.verify.then_some(operation.value.as_slice());
    match siblings::pick(body, wanted) {
        Some(Some(value)) => Ok(reply.found(operation, value)),
        Some(None) => Ok(Outcome::Missing),
        None => {
            let message = "siblings that do not come in parts";
            Err(Failure::new(ErrorClass::UnexpectedReply, message).with_code("300"))
        }
    }
}

/// The cold side.
impl Http {
    /// One request with a body of JSON, if any. A status below 300 is the body, any other a failure.
    async fn ask(
        &mut self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Vec<u8>, Failure> {
        let body = body.map(Value::to_string);
        let length = match &body {
            Some(body) => format!(
                "Content-Type: application/json\r\nContent-Length: {}\r\n",
                body.len()
            ),
            None => String::new(),
        };
        let head = format!("{method} {path}{}{length}\r\n", self.paths.line_end);
        self.request.clear();
        self.request.extend_from_slice(head.as_bytes());
        let body = body.unwrap_or_default();
        let answer = self
            .exchange(Method::Get, body.as_bytes(), false, &mut Reply::default())
            .await?;
        let text = self.body(&answer)?.to_vec();
        self.let_go(&answer);
        match answer.head.status {
            200..=299 => Ok(text),
            status => Err(of_status(status, &text, Asked::Read)),
        }
    }

    async fn ask_json(&mut self, path: &str) -> Result<Map<String, Value>, Failure> {
        let text = self.ask("GET", path, None).await?;
        let table = serde_json::from_slice(&text);
        table.map_err(|error| {
            let message = format!("the answer to GET {path} is no JSON: {error}");
            Failure::new(ErrorClass::UnexpectedReply, message)
        })
    }

    pub async fn ping(&mut self) -> Result<(), Failure> {
        self.ask("GET", "/ping", None).await.map(drop)
    }

    /// Any path of the node: its body.
    pub async fn page(&mut self, path: &str) -> Result<String, Failure> {
        let text = self.ask("GET", path, None).await?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    pub async fn statistics(&mut self) -> Result<Map<String, Value>, Failure> {
        self.ask_json("/stats").await
    }

    pub async fn properties(&mut self) -> Result<Properties, Failure> {
        let path = format!("{}/props", self.paths.bucket);
        let said = self.ask_json(&path).await?;
        let said = said.get("props").and_then(Value::as_object);
        let said = said.cloned().unwrap_or_default();
        let copies = said.get("n_val").and_then(Value::as_u64);
        Ok(Properties {
            n_val: copies.and_then(|copies| u32::try_from(copies).ok()),
            allow_mult: said.get("allow_mult").and_then(Value::as_bool),
            quorums: QUORUMS.map(|name| match said.get(name) {
                Some(Value::String(word)) => Some(word.clone()),
                Some(number) => Some(number.to_string()),
                None => None,
            }),
        })
    }

    pub async fn set_properties(&mut self, wanted: &Properties) -> Result<(), Failure> {
        let mut table = Map::new();
        table.extend(wanted.n_val.map(|copies| ("n_val".into(), copies.into())));
        table.extend(
            wanted
                .allow_mult
                .map(|allow| ("allow_mult".into(), allow.into())),
        );
        let path = format!("{}/props", self.paths.bucket);
        let body = json!({ "props": table });
        self.ask("PUT", &path, Some(&body)).await.map(drop)
    }

    /// All keys of the bucket, as the nodes list them within the limit. One that is not done in time answers 200 as well.
    pub async fn keys(&mut self, limit: Duration) -> Result<Vec<Vec<u8>>, Failure> {
        let limit = milliseconds(limit);
        let path = format!("{}/keys?keys=true&timeout={limit}", self.paths.bucket);
        let said = self.ask_json(&path).await?;
        if let Some(error) = said.get("error") {
            let error = error
                .as_str()
                .map_or_else(|| error.to_string(), str::to_owned);
            let message = format!("listing the keys: {error}");
            return Err(Failure::new(ErrorClass::Server, message).with_code(error));
        }
        let Some(Value::Array(keys)) = said.get("keys") else {
            let message = "the answer lists no keys";
            return Err(Failure::new(ErrorClass::UnexpectedReply, message));
        };
        let texts = keys.iter().filter_map(Value::as_str);
        Ok(texts.map(|key| key.as_bytes().to_vec()).collect())
    }

    /// Deletes these keys, many at a time.
    pub async fn delete_all(&mut self, keys: &[Vec<u8>]) -> Result<(), Failure> {
        for keys in keys.chunks(PIPELINED) {
            self.request.clear();
            for key in keys {
                self.paths.push(&mut self.request, Method::Delete, key);
                self.request.extend_from_slice(b"\r\n");
            }
            let mut connection = match self.connection.take() {
                Some(connection) => connection,
                None => net::connect(&self.endpoint).await?,
            };
            let sent = connection.send_batch(&self.request).await;
            sent.map_err(|error| net::lost(&error))?;
            for _ in keys {
                let mut bytes = 0;
                let pieces = &mut self.pieces;
                let head = read_head(&mut connection, false, |_, _| (), &mut bytes).await?;
                let length = read_body(&mut connection, &head, LONGEST, pieces, &mut bytes).await?;
                let body = match head.framing {
                    Framing::Chunked => pieces.as_slice(),
                    _ => &connection.received()[..length],
                };
                match head.status {
                    200 | 204 | 404 => {}
                    status => return Err(of_status(status, body, Asked::Write)),
                }
                connection.consume(length);
            }
            self.connection = Some(connection);
        }
        Ok(())
    }
}
