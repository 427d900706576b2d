//! The cold side: readiness, version, settings, reset, single commands. Opens a client of its own and keeps it.

use super::connect::Settings;
use super::custom::Custom;
use super::session::{Session, Shared};
use crate::driver::Control;
use crate::driver::net::blocking::Blocking;
use crate::driver::spec::{Durability, Endpoint};
use crate::op::{ErrorClass, Failure};
use mongodb::bson::{Document, doc};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub struct MongoDbControl {
    endpoint: Endpoint,
    settings: Arc<Settings>,
    shared: Arc<Shared>,
    session: Option<Session>,
    // After the session, whose client lives in it.
    blocking: Blocking,
}

impl MongoDbControl {
    pub fn new(
        endpoint: Endpoint,
        settings: Arc<Settings>,
        shared: Arc<Shared>,
    ) -> Result<MongoDbControl, Failure> {
        Ok(MongoDbControl {
            endpoint,
            settings,
            shared,
            session: None,
            blocking: Blocking::new()?,
        })
    }

    /// Runs `work` on the session; it is opened where there is none, and kept unless it broke.
    fn with<T>(
        &mut self,
        limit: Duration,
        work: impl AsyncFnOnce(&Session) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let what = format!("a command to {}", self.endpoint.label);
        let open = self.session.take();
        let (answer, session) = self.blocking.run(limit, &what, async {
            let session = match open {
                Some(session) => session,
                None => {
                    let link = self.settings.link(&self.endpoint, 1).await?;
                    link.ping(&self.endpoint.label).await?;
                    let peer = self.settings.peer(&self.endpoint);
                    Session::new(link, Arc::clone(&self.shared), peer, 1)
                }
            };
            Ok((work(&session).await, session))
        })?;
        if !answer.as_ref().is_err_and(|failure| failure.broken) {
            self.session = Some(session);
        }
        answer
    }

    fn query(&mut self, command: Document, limit: Duration) -> Result<Document, Failure> {
        self.with(limit, async |session| session.query(command).await)
    }
}

impl Control for MongoDbControl {
    fn ready(&mut self, limit: Duration) -> Result<(), Failure> {
        self.query(doc! { "ping": 1 }, limit).map(|_| ())
    }

    fn version(&mut self, limit: Duration) -> Result<String, Failure> {
        let answer = self.query(doc! { "buildInfo": 1 }, limit)?;
        version_of(&answer)
            .ok_or_else(|| Failure::new(ErrorClass::UnexpectedReply, "buildInfo names no version"))
    }

    /// What is asked of the server, and what it says of itself; empty where it does not.
    fn settings(&mut self, limit: Duration) -> Result<Vec<(String, String)>, Failure> {
        let deadline = Instant::now() + limit;
        let hello = self.query(doc! { "isMaster": 1 }, limit)?;
        let left = deadline.saturating_duration_since(Instant::now());
        let engine = match self.query(doc! { "serverStatus": 1 }, left) {
            Ok(status) => status
                .get_document("storageEngine")
                .and_then(|engine| engine.get_str("name"))
                .unwrap_or_default()
                .to_owned(),
            Err(failure) if failure.class == ErrorClass::Server => String::new(),
            Err(failure) => return Err(failure),
        };
        let said = |name: &str| hello.get(name).map(super::answer::text_of);
        let commands = &self.shared.commands;
        let asked = |concern: &Option<mongodb::bson::RawDocumentBuf>| {
            let document = concern
                .as_ref()
                .and_then(|raw| Document::try_from(raw).ok());
            document.map_or_else(String::new, |document| document.to_string())
        };
        Ok([
            ("collection", commands.collection.clone()),
            ("write_concern", asked(&commands.concerns.write)),
            ("read_concern", asked(&commands.concerns.read)),
            ("storageEngine", engine),
            ("maxWireVersion", said("maxWireVersion").unwrap_or_default()),
            ("setName", said("setName").unwrap_or_default()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec())
    }

    /// No command tells what an acknowledged write survives on every server of this protocol.
    fn durability(&mut self, _: Duration) -> Result<Option<Durability>, Failure> {
        let write = self.shared.commands.concerns.write.as_ref();
        let unacknowledged = write.is_some_and(|concern| matches!(concern.get_i32("w"), Ok(0)));
        Ok(unacknowledged.then_some(Durability::Unacknowledged))
    }

    /// Drops the driver's collection and no other.
    fn reset(&mut self, limit: Duration) -> Result<(), Failure> {
        self.with(limit, async |session| session.drop_collection().await)
    }

    /// The statement is a command as JSON.
    fn statement(&mut self, statement: &str, limit: Duration) -> Result<String, Failure> {
        let custom = Custom::statement(statement)?;
        self.with(limit, async |session| session.statement(&custom).await)
    }

    fn round_trip(&mut self, limit: Duration) -> Result<Duration, Failure> {
        let deadline = Instant::now() + limit;
        self.ready(limit)?;
        let left = deadline.saturating_duration_since(Instant::now());
        let start = Instant::now();
        self.ready(left)?;
        Ok(start.elapsed())
    }
}

/// `MongoDB 7.0.5`, or `FerretDB 1.24.2 (MongoDB 7.0.42)` where the server says that it is one.
fn version_of(information: &Document) -> Option<String> {
    let version = information.get_str("version").ok()?;
    let ferret = information
        .get_document("ferretdb")
        .and_then(|ferret| ferret.get_str("version"))
        .or_else(|_| information.get_str("ferretdbVersion"));
    Some(match ferret {
        Ok(own) => {
            // A server that was built as a part of another program does not know its own.
            match own.trim_start_matches('v') {
                "" | "unknown" => format!("FerretDB (MongoDB {version})"),
                own => format!("FerretDB {own} (MongoDB {version})"),
            }
        }
        Err(_) => format!("MongoDB {version}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_says_what_it_is_is_named() {
        let plain = doc! { "version": "7.0.5" };
        assert_eq!(version_of(&plain).as_deref(), Some("MongoDB 7.0.5"));
        let ferret = doc! { "version": "7.0.42", "ferretdb": { "version": "v1.24.2" } };
        let expected = Some("FerretDB 1.24.2 (MongoDB 7.0.42)");
        assert_eq!(version_of(&ferret).as_deref(), expected);
        let part = doc! { "version": "7.0.42", "ferretdb": { "version": "unknown" } };
        let expected = Some("FerretDB (MongoDB 7.0.42)");
        assert_eq!(version_of(&part).as_deref(), expected);
        assert_eq!(version_of(&doc! {}), None);
    }
}
