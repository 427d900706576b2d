//! The `http` driver: HTTP/1.0 and 1.1 with and without keep-alive, HTTP/2, TLS, unix sockets.
//!
//! `http1` is the hot path, on a socket of the house with httparse (hyper's parser): hyper's own client costs a multiple
//! of what a lean load generator does per request. `http2` is hyper's. `request` compiles operations and judges answers,
//! `net::http` reads answers, `control` is the cold side, `spec` the rows.

mod control;
mod http1;
mod http2;
mod request;
mod spec;

use super::net::{self, Connection, tls};
use super::spec::{DriverSpec, Endpoint, Transport};
use super::{Control, Driver, Target, Worker};
use crate::op::{ErrorClass, Failure, Operation, Outcome, Reply};
use http1::Http1;
use http2::Http2;
use request::{Request, Requests};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

pub struct Http {
    settings: Arc<Settings>,
}

/// The same for all sessions.
pub struct Settings {
    version: Version,
    keep_alive: bool,
    /// Requests that are redirected are followed this often.
    redirects: u32,
    /// Bytes of a body, at most.
    max_body: usize,
    /// Nothing is sent but the operations.
    quiet: bool,
    requests: Requests,
    tls: Option<Arc<rustls::ClientConfig>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    Http10,
    Http11,
    Http2,
}

impl Driver for Http {
    type Worker = HttpWorker;

    fn spec() -> &'static DriverSpec {
        &spec::SPEC
    }

    fn open(target: Target) -> Result<Http, Failure> {
        Ok(Http {
            settings: Arc::new(Settings::of(&target)?),
        })
    }

    fn worker(&self) -> Result<HttpWorker, Failure> {
        Ok(HttpWorker {
            settings: Arc::clone(&self.settings),
        })
    }

    fn control(&self, endpoint: &Endpoint) -> Result<Box<dyn Control>, Failure> {
        let control = control::HttpControl::new(endpoint.clone(), Arc::clone(&self.settings))?;
        Ok(Box::new(control))
    }
}

impl Settings {
    fn of(target: &Target) -> Result<Settings, Failure> {
        let options = &target.options;
        let version = match options.text("http").as_deref() {
            Some("1.0") => Version::Http10,
            Some("2") => Version::Http2,
            _ => Version::Http11,
        };
        let authority = options.text("tls_ca").map(PathBuf::from);
        let wants_tls = target.endpoints.iter().any(is_tls);
        let keep_alive = options.bool("keep_alive");
        Ok(Settings {
            version,
            keep_alive,
            redirects: options.integer("redirects").unwrap_or(0) as u32,
            max_body: options.size("max_body").unwrap_or(u64::MAX) as usize,
            quiet: options.bool("quiet"),
            requests: Requests::compile(target, version, keep_alive)?,
            tls: match wants_tls {
                true => Some(tls_config(
                    authority.as_deref(),
                    options.bool("tls_insecure"),
                    version,
                )?),
                false => None,
            },
        })
    }

    /// A new connection, its TLS handshake done.
    async fn connect(&self, endpoint: &Endpoint) -> Result<Connection, Failure> {
        let connection = net::connect(endpoint).await?;
        match (&endpoint.transport, is_tls(endpoint)) {
            (Transport::Tcp { host, .. }, true) => {
                let config = match &self.tls {
                    Some(config) => Arc::clone(config),
                    None => tls_config(None, false, self.version)?,
                };
                tls::handshake(connection, config, host).await
            }
            _ => Ok(connection),
        }
    }
}

/// Offers HTTP/2 where it is wanted: servers choose it only then.
fn tls_config(
    authority: Option<&std::path::Path>,
    insecure: bool,
    version: Version,
) -> Result<Arc<rustls::ClientConfig>, Failure> {
    let config = tls::client(authority, insecure)?;
    if version != Version::Http2 {
        return Ok(config);
    }
    let mut config = rustls::ClientConfig::clone(&config);
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(Arc::new(config))
}

fn is_tls(endpoint: &Endpoint) -> bool {
    endpoint.text.starts_with("https://")
}

/// Sessions of one thread share nothing but what all share.
pub struct HttpWorker {
    settings: Arc<Settings>,
}

impl Worker for HttpWorker {
    type Session = Session;

    async fn session(&self, endpoints: &[Endpoint]) -> Result<Session, Failure> {
        let endpoint = endpoints.first().ok_or_else(|| {
            Failure::new(ErrorClass::Connect, "there is no endpoint to connect to")
        })?;
        let settings = Arc::clone(&self.settings);
        Ok(match settings.version {
            Version::Http2 => Session::Two(Box::new(Http2::open(settings, endpoint).await?)),
            _ => Session::One(Box::new(Http1::open(settings, endpoint).await?)),
        })
    }
}

pub enum Session {
    One(Box<Http1>),
    Two(Box<Http2>),
}

impl super::Session for Session {
    async fn execute(&mut self, operation: &Operation, reply: &mut Reply) -> Outcome {
        let result = match self {
            Session::One(session) => session.execute(operation, reply).await,
            // Boxed, so that the future of the hot path stays small.
            Session::Two(session) => Box::pin(session.execute(operation, reply)).await,
        };
        result.unwrap_or_else(Outcome::from)
    }

    fn peer(&self) -> Option<SocketAddr> {
        match self {
            Session::One(session) => session.peer(),
            Session::Two(session) => session.peer(),
        }
    }
}
