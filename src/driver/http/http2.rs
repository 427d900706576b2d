//! HTTP/2 by hyper: one connection per session, one request in flight on it.

use super::{Request, Settings, spec};
use crate::driver::net::Stream;
use crate::driver::spec::{Endpoint, Transport};
use crate::op::{ErrorClass, Failure, Operation, Outcome, Reply};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes};
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;

pub struct Http2 {
    settings: Arc<Settings>,
    base_path: String,
    /// `https://127.0.0.1:443`
    origin: String,
    sender: SendRequest<Full<Bytes>>,
    /// Drives the connection; ended with the session.
    driver: JoinHandle<()>,
    peer: Option<SocketAddr>,
    path: Vec<u8>,
    scratch: Vec<u8>,
    headers: Vec<u8>,
}

trait Both: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Both for T {}

impl Http2 {
    pub async fn open(settings: Arc<Settings>, endpoint: &Endpoint) -> Result<Http2, Failure> {
        let connection = settings.connect(endpoint).await?;
        let peer = connection.peer();
        let stream: Box<dyn Both> = match connection.into_stream() {
            Stream::Tcp(stream) => Box::new(stream),
            Stream::Unix(stream) => Box::new(stream),
            Stream::Tls(stream) => stream,
        };
        let refused = |error: hyper::Error| {
            let message = format!(
                "cannot connect to {}: HTTP/2: {}",
                endpoint.label,
                told(&error)
            );
            Failure::new(ErrorClass::Connect, message)
        };
        let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
        builder.adaptive_window(true);
        let (sender, driving) = builder
            .handshake(TokioIo::new(stream))
            .await
            .map_err(refused)?;
        let driver = tokio::spawn(async move {
            // Its fault is told by the request that was under way.
            let _ = driving.await;
        });
        let scheme = match endpoint.transport {
            Transport::Tcp { .. } if super::is_tls(endpoint) => "https",
            _ => "http",
        };
        Ok(Http2 {
            base_path: spec::base_path(endpoint),
            origin: format!("{scheme}://{}", spec::host(endpoint)),
            settings,
            sender,
            driver,
            peer,
            path: Vec::new(),
            scratch: Vec::new(),
            headers: Vec::new(),
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
        let started = Instant::now();
        let message = self.message(request, operation, reply)?;
        let ready = self.sender.ready().await;
        ready.map_err(|error| lost(&error))?;
        let answer = self.sender.send_request(message).await;
        let answer = answer.map_err(|error| lost(&error))?;
        reply.first_byte_time = started.elapsed();
        let status = answer.status().as_u16();
        let too_long = || Failure::new(ErrorClass::Protocol, "the body is longer than `max_body`");
        if answer.body().size_hint().lower() > settings.max_body as u64 {
            return Err(too_long());
        }
        let mut body = answer.into_body();
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| lost(&error))?;
            if let Some(data) = frame.data_ref() {
                bytes.extend_from_slice(data);
                if bytes.len() > settings.max_body {
                    return Err(too_long());
                }
            }
        }
        reply.bytes_received += bytes.len() as u64;
        let outcome = request.judge(status, &bytes, operation, reply);
        reply.value_length = Some(bytes.len() as u64);
        outcome
    }

    fn message(
        &mut self,
        request: &Request,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<hyper::Request<Full<Bytes>>, Failure> {
        self.path.clear();
        self.path.extend_from_slice(self.base_path.as_bytes());
        request.write_path(operation, &mut self.scratch, &mut self.path);
        let uri = format!("{}{}", self.origin, String::from_utf8_lossy(&self.path));
        let body = Bytes::copy_from_slice(request.body(operation, &mut self.scratch));
        self.headers.clear();
        request.write_headers(operation, body.len(), &mut self.headers);
        reply.bytes_sent += (uri.len() + self.headers.len() + body.len()) as u64;
        let mut message = hyper::Request::builder().method(request.method).uri(uri);
        for line in self.headers.split(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if let Some(colon) = line.iter().position(|byte| *byte == b':') {
                message = message.header(&line[..colon], line[colon + 1..].trim_ascii());
            }
        }
        let message = message.body(Full::new(body));
        message.map_err(|error| Failure::new(ErrorClass::Client, error.to_string()))
    }
}

impl Drop for Http2 {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A connection or stream that broke while an answer was due.
fn lost(error: &hyper::Error) -> Failure {
    let class = match error.is_parse() {
        true => ErrorClass::Protocol,
        false => ErrorClass::Reset,
    };
    Failure::new(class, format!("connection lost: {}", told(error)))
}

/// An error with its causes.
fn told(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
