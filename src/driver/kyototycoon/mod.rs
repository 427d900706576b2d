//! The `kyototycoon` driver: Kyoto Tycoon's own three protocols, all of them on one port, one connection per session. Its
//! memcached plug-in is driven by the memcached driver.
//!
//! `session` and `batch` are the operation loop's side, `control` the cold one; `rpc`, `rest` and `binary` know the bytes of
//! one protocol each, `tsv` those of a procedure's body; `spec` has the rows. Answers by HTTP are read by `net::http`.

mod batch;
mod binary;
mod control;
mod rest;
mod rpc;
mod session;
mod spec;
mod tsv;

use super::spec::{DriverSpec, Endpoint};
use super::{Control, Driver, Target, Worker};
use crate::op::{ErrorClass, Failure, Verb};
use session::Session;
use std::sync::Arc;
use tsv::Encoding;

/// Bytes of a value, or of a procedure's body, at most; the server's own limit.
const LARGEST: usize = 1 << 28;

pub struct KyotoTycoon {
    settings: Arc<Settings>,
}

/// What all sessions of a run share.
#[derive(Debug)]
struct Settings {
    protocol: Protocol,
    database: Database,
    /// None: as they are where that can be, else base64.
    encoding: Option<Encoding>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Rpc,
    Rest,
    Binary,
}

impl Protocol {
    /// The protocol that has a request for the operation: procedures do everything.
    #[inline]
    fn of(self, verb: Verb) -> Protocol {
        match (self, verb) {
            (Protocol::Rest, Verb::Increment) => Protocol::Rpc,
            (Protocol::Binary, Verb::Increment | Verb::Insert | Verb::Update) => Protocol::Rpc,
            (protocol, _) => protocol,
        }
    }
}

/// One of the server's databases.
#[derive(Clone, Debug, PartialEq)]
struct Database {
    /// As a procedure or a path names it; None for the first one, which is meant where none is named.
    name: Option<String>,
    /// As the binary protocol names it.
    number: u16,
}

impl Database {
    fn numbered(number: u16) -> Database {
        Database {
            name: (number > 0).then(|| number.to_string()),
            number,
        }
    }

    /// The options allow none for the binary protocol.
    fn named(name: &str) -> Database {
        Database {
            name: Some(name.to_owned()),
            number: 0,
        }
    }
}

impl Settings {
    fn of(target: &Target) -> Settings {
        let options = &target.options;
        let number = match options.text("database") {
            Some(text) => text.parse().ok(),
            None => options.integer("database"),
        };
        let number = number.and_then(|number| u16::try_from(number).ok());
        Settings {
            protocol: match options.text("protocol").as_deref() {
                Some("rest") => Protocol::Rest,
                Some("binary") => Protocol::Binary,
                _ => Protocol::Rpc,
            },
            database: match (number, options.text("database")) {
                (None, Some(name)) => Database::named(&name),
                (number, _) => Database::numbered(number.unwrap_or(0)),
            },
            encoding: match options.text("encoding").as_deref() {
                Some("base64") => Some(Encoding::Base64),
                Some("url") => Some(Encoding::Url),
                Some("quoted") => Some(Encoding::Quoted),
                _ => None,
            },
        }
    }
}

/// ` HTTP/1.1\r\nHost: 127.0.0.1:1978\r\n`: what stands behind every path.
fn line_end(endpoint: &Endpoint) -> Vec<u8> {
    format!(" HTTP/1.1\r\nHost: {}\r\n", endpoint.label).into_bytes()
}

impl Driver for KyotoTycoon {
    type Worker = KyotoTycoonWorker;

    fn spec() -> &'static DriverSpec {
        &spec::SPEC
    }

    fn open(target: Target) -> Result<KyotoTycoon, Failure> {
        Ok(KyotoTycoon {
            settings: Arc::new(Settings::of(&target)),
        })
    }

    fn worker(&self) -> Result<KyotoTycoonWorker, Failure> {
        Ok(KyotoTycoonWorker {
            settings: Arc::clone(&self.settings),
        })
    }

    fn control(&self, endpoint: &Endpoint) -> Result<Box<dyn Control>, Failure> {
        let database = self.settings.database.clone();
        let control = control::KyotoTycoonControl::new(endpoint.clone(), database)?;
        Ok(Box::new(control))
    }
}

/// Sessions of one thread share nothing but settings.
pub struct KyotoTycoonWorker {
    settings: Arc<Settings>,
}

impl Worker for KyotoTycoonWorker {
    type Session = Session;

    async fn session(&self, endpoints: &[Endpoint]) -> Result<Session, Failure> {
        let endpoint = endpoints.first().ok_or_else(|| {
            Failure::new(ErrorClass::Connect, "there is no endpoint to connect to")
        })?;
        Session::open(Arc::clone(&self.settings), endpoint).await
    }
}
