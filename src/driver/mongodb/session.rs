//! A session: one operation in flight, through the client of its own or the one that its thread shares.
//!
//! The crate hands out no wire lengths, so bytes are those of key and value, and of the user's own command and the
//! documents that it found.

use super::answer::{bytes_of, count, first_document, first_field, first_value, refusal, stored};
use super::command::{Commands, Concerns};
use super::connect::Link;
use super::custom::Custom;
use super::fault::{DUPLICATE_KEY, failure};
use crate::driver::spec::Options;
use crate::op::{ErrorClass, Failure, Operation, Outcome, Reply, Verb, no_statements};
use mongodb::bson::{Bson, Document, RawDocumentBuf};
use std::net::SocketAddr;
use std::sync::Arc;

/// What all sessions of a run share.
pub struct Shared {
    pub commands: Commands,
    operations: Vec<Option<Custom>>,
}

impl Shared {
    pub fn new(
        options: &Options,
        concerns: Concerns,
        operations: Vec<Option<Custom>>,
    ) -> Result<Shared, Failure> {
        Ok(Shared {
            commands: Commands {
                collection: options.text("collection").unwrap_or_default(),
                concerns,
                scan_count: options.integer("scan_count").unwrap_or(10),
            },
            operations,
        })
    }
}

pub struct Session {
    link: Link,
    shared: Arc<Shared>,
    peer: Option<SocketAddr>,
    connections: u32,
}

impl Session {
    pub fn new(
        link: Link,
        shared: Arc<Shared>,
        peer: Option<SocketAddr>,
        connections: u32,
    ) -> Session {
        Session {
            link,
            shared,
            peer,
            connections,
        }
    }

    async fn built_in(
        &self,
        verb: Verb,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let commands = &self.shared.commands;
        match verb {
            Verb::Get => self.get(operation, reply).await,
            Verb::Scan => self.scan(operation, reply).await,
            Verb::Set => {
                self.write(commands.replace(operation), operation, reply)
                    .await?;
                Ok(Outcome::Done)
            }
            Verb::Insert => self.insert(operation, reply).await,
            Verb::Update => {
                let answer = self.write(commands.update(operation), operation, reply);
                Ok(met(&answer.await?))
            }
            Verb::Delete => {
                let answer = self.write(commands.delete(operation), operation, reply);
                Ok(met(&answer.await?))
            }
            Verb::Increment => {
                self.write(commands.increment(operation), operation, reply)
                    .await?;
                Ok(Outcome::Done)
            }
            Verb::ReadModifyWrite => self.read_then_write(operation, reply).await,
            Verb::Custom(number) => self.custom(number, operation, reply).await,
            Verb::Statement => Err(no_statements("mongodb")),
        }
    }

    async fn get(&self, operation: &Operation, reply: &mut Reply) -> Result<Outcome, Failure> {
        reply.bytes_sent += operation.key.len() as u64;
        let command = self
            .link
            .database
            .run_raw_command(self.shared.commands.find(operation));
        let answer = match &self.shared.commands.concerns.preference {
            Some(preference) => command.selection_criteria(preference.clone()).await,
            None => command.await,
        };
        let answer = answer.map_err(|error| failure(&error))?;
        let Some(document) = first_document(&answer)? else {
            return Ok(Outcome::Missing);
        };
        let value = stored(document)?;
        reply.bytes_received += value.len() as u64;
        Ok(reply.found(operation, &value))
    }

    async fn scan(&self, operation: &Operation, reply: &mut Reply) -> Result<Outcome, Failure> {
        reply.bytes_sent += operation.key.len() as u64;
        let command = self.shared.commands.scan(operation);
        self.documents(command, reply).await.map(|_| Outcome::Done)
    }

    /// Sends a write of one document; a refusal inside its answer is a failure.
    async fn write(
        &self,
        command: RawDocumentBuf,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Document, Failure> {
        reply.bytes_sent += (operation.key.len() + operation.value.len()) as u64;
        self.run(command).await
    }

    async fn run(&self, command: RawDocumentBuf) -> Result<Document, Failure> {
        let answer = self.link.database.run_raw_command(command).await;
        let answer = answer.map_err(|error| failure(&error))?;
        match refusal(&answer) {
            Some(failure) => Err(failure),
            None => Ok(answer),
        }
    }

    async fn insert(&self, operation: &Operation, reply: &mut Reply) -> Result<Outcome, Failure> {
        let command = self.shared.commands.insert(operation);
        match self.write(command, operation, reply).await {
            Ok(_) => Ok(Outcome::Done),
            Err(failure) if failure.code == DUPLICATE_KEY.to_string() => Err(Failure {
                class: ErrorClass::Rejected,
                ..failure
            }),
            Err(failure) => Err(failure),
        }
    }

    async fn read_then_write(
        &self,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let read = self.get(operation, reply).await?;
        let command = self.shared.commands.replace(operation);
        self.write(command, operation, reply).await?;
        // The write is part of the operation, so that it ends later than the read says.
        reply.ended = None;
        Ok(read)
    }

    /// Reads all documents of a command that gives a cursor, batch after batch; the first field of the first one.
    async fn documents(
        &self,
        command: RawDocumentBuf,
        reply: &mut Reply,
    ) -> Result<Option<Bson>, Failure> {
        let later = batch_size(&command);
        let command = self.link.database.run_raw_cursor_command(command);
        let command = command.batch_size(later);
        let cursor = match &self.shared.commands.concerns.preference {
            Some(preference) => command.selection_criteria(preference.clone()).await,
            None => command.await,
        };
        let mut cursor = cursor.map_err(|error| failure(&error))?;
        let (mut first, mut documents) = (None, 0_u64);
        while cursor.advance().await.map_err(|error| failure(&error))? {
            let document = cursor.current();
            reply.bytes_received += document.as_bytes().len() as u64;
            if documents == 0 {
                first = first_field(document);
            }
            documents += 1;
        }
        Ok(first)
    }

    async fn custom(
        &self,
        number: u16,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let custom = self.shared.operations.get(usize::from(number));
        let custom = custom.and_then(Option::as_ref).ok_or_else(|| {
            let message = format!("the mongodb driver has no operation number {number}");
            Failure::new(ErrorClass::Client, message)
        })?;
        let command = custom.command(operation);
        reply.bytes_sent += command.as_bytes().len() as u64;
        if custom.gives_cursor() {
            let first = self.documents(command, reply).await?;
            return custom.judge(first.as_ref(), true, operation, reply);
        }
        let answer = self.run(command).await?;
        let first = first_value(custom.name(), &answer);
        custom.judge(first, custom.finds(), operation, reply)
    }

    /// Runs any command; the first value of its answer as text.
    pub async fn statement(&self, custom: &Custom) -> Result<String, Failure> {
        let command = custom.command(&Operation::default());
        let text = |value: &Bson| String::from_utf8_lossy(&bytes_of(value)).into_owned();
        if custom.gives_cursor() {
            let first = self.documents(command, &mut Reply::default()).await?;
            return Ok(first.as_ref().map(text).unwrap_or_default());
        }
        let answer = self.run(command).await?;
        Ok(first_value(custom.name(), &answer)
            .map(text)
            .unwrap_or_default())
    }

    /// Runs a command of the cold side on this database; its whole answer.
    pub async fn query(&self, command: Document) -> Result<Document, Failure> {
        let answer = self.link.database.run_command(command).await;
        answer.map_err(|error| failure(&error))
    }

    /// Drops the collection where there is one: not every server answers well about one that is missing.
    pub async fn drop_collection(&self) -> Result<(), Failure> {
        let name = &self.shared.commands.collection;
        let names = self.link.database.list_collection_names().await;
        let names = names.map_err(|error| failure(&error))?;
        if !names.contains(name) {
            return Ok(());
        }
        let collection = self.link.database.collection::<Document>(name);
        collection.drop().await.map_err(|error| failure(&error))
    }
}

impl crate::driver::Session for Session {
    async fn execute(&mut self, operation: &Operation, reply: &mut Reply) -> Outcome {
        let result = self.built_in(operation.verb, operation, reply).await;
        result.unwrap_or_else(Outcome::from)
    }

    /// One after another; once the connection broke, the rest are not tried: the client would wait for the server.
    async fn execute_batch(
        &mut self,
        operations: &[Operation],
        replies: &mut [Reply],
        outcomes: &mut Vec<Outcome>,
    ) {
        let whole = outcomes.len() + operations.len();
        for (operation, reply) in operations.iter().zip(replies) {
            let outcome = self.execute(operation, reply).await;
            let breaks = outcome.breaks_session();
            outcomes.push(outcome.clone());
            if breaks {
                return outcomes.resize(whole, outcome);
            }
        }
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    fn connections(&self) -> u32 {
        self.connections
    }
}

/// Documents of each further batch: as many as the command says for the first, else as many as fit into a message. Said
/// aloud because mongo-java-server refuses to go on where nothing is said.
fn batch_size(command: &RawDocumentBuf) -> u32 {
    const AS_MANY_AS_FIT: u32 = 1_000_000;
    let said = command.get_i32("batchSize").or_else(|_| {
        let cursor = command.get_document("cursor");
        cursor.and_then(|cursor| cursor.get_i32("batchSize"))
    });
    let said = said.ok().and_then(|number| u32::try_from(number).ok());
    said.filter(|number| *number > 0).unwrap_or(AS_MANY_AS_FIT)
}

/// Where the server does not say how many documents it met, the write is all that is known.
fn met(answer: &Document) -> Outcome {
    match count(answer) {
        Some(0) => Outcome::Missing,
        _ => Outcome::Done,
    }
}
