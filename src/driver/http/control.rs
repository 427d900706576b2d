//! The cold side: readiness, version, single requests. A web server has no settings that can be asked.

use super::http1::Http1;
use super::{Settings, Version};
use crate::driver::Control;
use crate::driver::net::blocking::Blocking;
use crate::driver::spec::{Durability, Endpoint};
use crate::op::{ErrorClass, Failure};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub struct HttpControl {
    endpoint: Endpoint,
    settings: Arc<Settings>,
    blocking: Blocking,
}

impl HttpControl {
    pub fn new(endpoint: Endpoint, settings: Arc<Settings>) -> Result<HttpControl, Failure> {
        Ok(HttpControl {
            endpoint,
            settings,
            blocking: Blocking::new()?,
        })
    }

    fn connect(&self, limit: Duration) -> Result<Duration, Failure> {
        let what = format!("a connection to {}", self.endpoint.label);
        let started = Instant::now();
        self.blocking.run(limit, &what, async {
            self.settings.connect(&self.endpoint).await.map(drop)
        })?;
        Ok(started.elapsed())
    }

    /// One request on a connection of its own: the header `Server`, and the body.
    fn ask(
        &self,
        method: &str,
        path: &str,
        limit: Duration,
    ) -> Result<(Option<String>, Result<String, Failure>), Failure> {
        if self.settings.version == Version::Http2 {
            let message = "single requests go by HTTP/1.1, and this target speaks HTTP/2";
            return Err(Failure::new(ErrorClass::Client, message));
        }
        let request = self.settings.requests.plain(method, path)?;
        let what = format!("{method} {path}");
        self.blocking.run(limit, &what, async {
            let mut session = Http1::open(Arc::clone(&self.settings), &self.endpoint).await?;
            let (said, body) = session.ask(&request).await?;
            Ok((said.server, body))
        })
    }
}

impl Control for HttpControl {
    /// It accepts connections. A request would stand in its access log.
    fn ready(&mut self, limit: Duration) -> Result<(), Failure> {
        self.connect(limit).map(drop)
    }

    /// The header `Server` of an answer to HEAD; empty where nothing may be asked.
    fn version(&mut self, limit: Duration) -> Result<String, Failure> {
        if self.settings.quiet || self.settings.version == Version::Http2 {
            return Ok(String::new());
        }
        // Whatever its status, it has answered.
        let (server, _) = self.ask("HEAD", "/", limit)?;
        Ok(server.unwrap_or_default())
    }

    fn settings(&mut self, _: Duration) -> Result<Vec<(String, String)>, Failure> {
        Ok(Vec::new())
    }

    fn durability(&mut self, _: Duration) -> Result<Option<Durability>, Failure> {
        Ok(None)
    }

    /// What is behind a web server cannot be emptied through it.
    fn reset(&mut self, _: Duration) -> Result<(), Failure> {
        Ok(())
    }

    /// `GET /path`, or a path alone: the body.
    fn statement(&mut self, statement: &str, limit: Duration) -> Result<String, Failure> {
        let (method, path) = statement.split_once(' ').unwrap_or(("GET", statement));
        let (_, body) = self.ask(method, path.trim(), limit)?;
        Ok(body?.trim().to_owned())
    }

    /// The time to connect: the least that a web server can be asked.
    fn round_trip(&mut self, limit: Duration) -> Result<Duration, Failure> {
        self.connect(limit)
    }
}
