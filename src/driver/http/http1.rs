//! HTTP/1.0 and 1.1 on a connection of the house: one request, one answer read to its last byte.
//!
//! A connection that the server ends in an orderly way (`Connection: close`) is replaced by the next operation, inside
//! its time; one that it ends without a word while an answer is due is the failure `reset`: nothing is sent twice.

use super::{Request, Settings, Version, spec};
use crate::driver::net::http::{Framing, Head, read_body, read_head};
use crate::driver::net::{Connection, lost, malformed};
use crate::driver::spec::Endpoint;
use crate::op::{ErrorClass, Failure, Operation, Outcome, Reply, Verb};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a server may take to end a connection that carries one request only.
const FAREWELL: Duration = Duration::from_secs(1);

/// What a head says beside the framing, where anyone wants to know.
#[derive(Debug, Default)]
pub struct Said {
    /// Where it redirects to.
    location: Option<String>,
    pub server: Option<String>,
}

impl Said {
    fn hear(&mut self, name: &str, value: &[u8]) {
        let text = || Some(String::from_utf8_lossy(value).into_owned());
        if name.eq_ignore_ascii_case("location") {
            self.location = text();
        } else if name.eq_ignore_ascii_case("server") {
            self.server = text();
        }
    }
}

pub struct Http1 {
    settings: Arc<Settings>,
    endpoint: Endpoint,
    base_path: String,
    /// ` HTTP/1.1\r\nHost: 127.0.0.1:80\r\n`
    line_end: Vec<u8>,
    connection: Option<Connection>,
    peer: Option<SocketAddr>,
    /// The input buffer of the connection before, for the next one.
    buffer: Vec<u8>,
    /// Scratch, reused.
    request: Vec<u8>,
    scratch: Vec<u8>,
    path: Vec<u8>,
    /// A body that lies in pieces on the wire.
    body: Vec<u8>,
}

impl Http1 {
    pub async fn open(settings: Arc<Settings>, endpoint: &Endpoint) -> Result<Http1, Failure> {
        let version = match settings.version {
            Version::Http10 => "HTTP/1.0",
            _ => "HTTP/1.1",
        };
        let host = spec::host(endpoint);
        // Without keep-alive every operation opens its own.
        let connection = match settings.keep_alive {
            true => Some(settings.connect(endpoint).await?),
            false => None,
        };
        Ok(Http1 {
            peer: connection.as_ref().and_then(Connection::peer),
            connection,
            base_path: spec::base_path(endpoint),
            line_end: format!(" {version}\r\nHost: {host}\r\n").into_bytes(),
            endpoint: endpoint.clone(),
            settings,
            buffer: Vec::new(),
            request: Vec::new(),
            scratch: Vec::new(),
            path: Vec::new(),
            body: Vec::new(),
        })
    }

    pub fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    pub async fn execute(
        &mut self,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let settings = Arc::clone(&self.settings);
        let request = settings.requests.of(operation.verb)?;
        self.path.clear();
        self.path.extend_from_slice(self.base_path.as_bytes());
        request.write_path(operation, &mut self.scratch, &mut self.path);
        let mut redirects = settings.redirects;
        loop {
            let (head, said) = self.exchange(request, operation, reply).await?;
            match said.location.as_deref().and_then(|to| self.same_server(to)) {
                Some(path) if redirects > 0 && (300..400).contains(&head.status) => {
                    redirects -= 1;
                    self.path = path;
                    self.finish(&head, reply).await?;
                }
                _ => return self.conclude(&head, request, operation, reply).await,
            }
        }
    }

    /// Any request, for the cold side: what its head said, and the body as text or what its status says.
    pub async fn ask(
        &mut self,
        request: &Request,
    ) -> Result<(Said, Result<String, Failure>), Failure> {
        // No key that may be missing: a status says what it says.
        let operation = Operation {
            verb: Verb::Custom(0),
            ..Operation::default()
        };
        let mut reply = Reply {
            wants_text: true,
            ..Reply::default()
        };
        self.path.clear();
        self.path.extend_from_slice(self.base_path.as_bytes());
        request.write_path(&operation, &mut self.scratch, &mut self.path);
        let (head, said) = self.exchange(request, &operation, &mut reply).await?;
        let outcome = self.conclude(&head, request, &operation, &mut reply).await;
        let body = outcome.map(|_| reply.text.map(String::from).unwrap_or_default());
        match body {
            Err(failure) if failure.broken => Err(failure),
            body => Ok((said, body)),
        }
    }

    /// Sends the request and reads the head of its answer, and of its body what cannot be read where it lies.
    async fn exchange(
        &mut self,
        request: &Request,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<(Head, Said), Failure> {
        let started = Instant::now();
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let mut connection = self.settings.connect(&self.endpoint).await?;
                connection.reuse(std::mem::take(&mut self.buffer));
                reply.connect_time += started.elapsed();
                self.peer = connection.peer();
                connection
            }
        };
        if !connection.received().is_empty() {
            return Err(malformed("it came unasked", connection.received()));
        }
        let body = request.body(operation, &mut self.scratch);
        let out = &mut self.request;
        out.clear();
        out.extend_from_slice(request.method.as_bytes());
        out.push(b' ');
        out.extend_from_slice(&self.path);
        out.extend_from_slice(&self.line_end);
        request.write_headers(operation, body.len(), out);
        out.extend_from_slice(b"\r\n");
        reply.bytes_sent += (out.len() + body.len()) as u64;
        let sent = connection.send(out, body, &[]).await;
        sent.map_err(|error| lost(&error))?;
        let received = connection.receive().await;
        received.map_err(|error| lost(&error))?;
        if reply.first_byte_time.is_zero() {
            reply.first_byte_time = started.elapsed();
        }
        let wants_more = self.settings.redirects > 0 || reply.wants_text;
        let mut said = Said::default();
        let hear = |name: &str, value: &[u8]| {
            if wants_more {
                said.hear(name, value);
            }
        };
        let to_head = request.method == "HEAD";
        let head = read_head(&mut connection, to_head, hear, &mut reply.bytes_received).await?;
        self.connection = Some(connection);
        Ok((head, said))
    }

    /// Reads the body and says what came of the operation.
    async fn conclude(
        &mut self,
        head: &Head,
        request: &Request,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let length = self.read_body(head, reply).await?;
        let Some(connection) = &self.connection else {
            return Err(Failure::new(ErrorClass::Client, "the connection is gone"));
        };
        let body = match head.framing {
            Framing::Chunked => self.body.as_slice(),
            _ => &connection.received()[..length],
        };
        let status = head.status;
        let outcome = request.judge(status, body, operation, reply);
        // What follows is none of the operation's time.
        reply.ended.get_or_insert_with(Instant::now);
        reply.value_length = Some(body.len() as u64);
        self.let_go(head, length).await;
        outcome
    }

    /// Reads the body of an answer that is not the last one.
    async fn finish(&mut self, head: &Head, reply: &mut Reply) -> Result<(), Failure> {
        let length = self.read_body(head, reply).await?;
        self.let_go(head, length).await;
        Ok(())
    }

    /// Returns how many received bytes are the body; those of a chunked one are in `self.body`.
    async fn read_body(&mut self, head: &Head, reply: &mut Reply) -> Result<usize, Failure> {
        let Some(connection) = &mut self.connection else {
            return Err(Failure::new(ErrorClass::Client, "the connection is gone"));
        };
        let (limit, bytes) = (self.settings.max_body, &mut reply.bytes_received);
        read_body(connection, head, limit, &mut self.body, bytes).await
    }

    /// The answer was read: the connection is kept, or its end is awaited, so that the server and not the client has it
    /// in TIME_WAIT.
    async fn let_go(&mut self, head: &Head, body: usize) {
        let Some(connection) = &mut self.connection else {
            return;
        };
        connection.consume(body);
        if head.stays_open && self.settings.keep_alive {
            return;
        }
        if head.framing != Framing::Close {
            // Whatever comes instead of the end, the connection is not used again.
            let _ = tokio::time::timeout(FAREWELL, connection.receive()).await;
        }
        let ended = self.connection.take();
        self.buffer = ended.map(Connection::into_buffer).unwrap_or_default();
    }

    /// The path of a redirection to the same server.
    fn same_server(&self, location: &str) -> Option<Vec<u8>> {
        if location.starts_with('/') && !location.starts_with("//") {
            return Some(location.as_bytes().to_vec());
        }
        let (scheme, rest) = location.split_once("://")?;
        let same_scheme = self.endpoint.text.starts_with(&format!("{scheme}://"));
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let same_host = host == self.endpoint.label
            || self.endpoint.label.strip_suffix(":80") == Some(host)
            || self.endpoint.label.strip_suffix(":443") == Some(host);
        let path = if path.is_empty() { "/" } else { path };
        (same_scheme && same_host).then(|| path.as_bytes().to_vec())
    }
}
