//! A session: one operation in flight, on the link that its thread shares.
//!
//! The crate hands out no wire lengths, so bytes are those of keys, values, arguments and rows.

use super::Shared;
use super::fault::failure;
use super::link::Link;
use super::policy::Attempts;
use super::table::{DELETE, GET, INSERT, SET, STATEMENTS, UPDATE};
use super::value::{Bound, first_of, unreadable};
use crate::driver::sql::Answer;
use crate::op::{ErrorClass, Failure, Operation, Outcome, Reply, Verb, no_statements};
use scylla::observability::history::HistoryListener;
use scylla::response::query_result::QueryResult;
use scylla::statement::prepared::PreparedStatement;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

pub struct CassandraSession {
    link: Arc<Link>,
    shared: Arc<Shared>,
    built_in: Option<[PreparedStatement; STATEMENTS]>,
    /// By operation and position in it.
    own: HashMap<(u16, usize), PreparedStatement>,
    attempts: Option<Arc<Attempts>>,
    /// Requests that were begun since attempts were taken last.
    requests: u32,
    connections: u32,
    /// Whom the last answer of the operation came from, and operations by it; where the crate chooses the node.
    coordinator: Option<SocketAddr>,
    answered: Vec<(SocketAddr, u64)>,
}

impl CassandraSession {
    pub fn new(link: Arc<Link>, shared: Arc<Shared>) -> CassandraSession {
        CassandraSession {
            connections: link.take_connections(),
            attempts: shared.settings.repeats().then(Arc::default),
            link,
            shared,
            built_in: None,
            own: HashMap::new(),
            requests: 0,
            coordinator: None,
            answered: Vec::new(),
        }
    }

    async fn run(&mut self, operation: &Operation, reply: &mut Reply) -> Result<Outcome, Failure> {
        match operation.verb {
            Verb::Custom(number) => self.custom(number, operation, reply).await,
            Verb::Statement => Err(no_statements("cassandra")),
            Verb::Scan | Verb::Increment => Err(Failure::new(
                ErrorClass::Client,
                "cassandra neither scans nor increments; `[operations]` may",
            )),
            _ => {
                if self.built_in.is_none() {
                    let statements = self.link.built_in().await?;
                    let statements = statements.each_ref();
                    self.built_in = Some(statements.map(|statement| self.counted(statement)));
                }
                self.keys_and_values(operation, reply).await
            }
        }
    }

    /// A statement of this session's own, whose attempts are counted where there may be more than one.
    fn counted(&self, statement: &PreparedStatement) -> PreparedStatement {
        let mut statement = statement.clone();
        if let Some(attempts) = &self.attempts {
            let listener: Arc<dyn HistoryListener> = Arc::<Attempts>::clone(attempts);
            statement.set_history_listener(listener);
        }
        statement
    }

    async fn keys_and_values(
        &mut self,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let key = operation.key.as_slice();
        let value = operation.value.as_slice();
        match operation.verb {
            Verb::Get => self.get(operation, reply).await,
            Verb::Set => {
                self.built_in(SET, &[key, value], reply).await?;
                Ok(Outcome::Done)
            }
            // A plain delete reads nothing, so that it does not know what was there.
            Verb::Delete => {
                self.built_in(DELETE, &[key], reply).await?;
                Ok(Outcome::Done)
            }
            Verb::Insert => match self.applied(INSERT, [key, value], reply).await? {
                true => Ok(Outcome::Done),
                false => Err(Failure::new(
                    ErrorClass::Rejected,
                    "insert: the key exists already",
                )),
            },
            Verb::Update => match self.applied(UPDATE, [value, key], reply).await? {
                true => Ok(Outcome::Done),
                false => Ok(Outcome::Missing),
            },
            _ => self.read_then_write(operation, reply).await,
        }
    }

    /// The value is compared where it lies in the frame.
    async fn get(&mut self, operation: &Operation, reply: &mut Reply) -> Result<Outcome, Failure> {
        let answer = self.built_in(GET, &[&operation.key], reply).await?;
        let rows = answer.into_rows_result().map_err(unreadable)?;
        let first = rows.maybe_first_row::<(Option<&[u8]>,)>();
        Ok(match first.map_err(unreadable)? {
            // A row has a key; its value may be null in a table that others write.
            Some((value,)) => {
                let value = value.unwrap_or_default();
                reply.bytes_received += value.len() as u64;
                reply.found(operation, value)
            }
            None => Outcome::Missing,
        })
    }

    /// Whether a conditional write was done.
    async fn applied(
        &mut self,
        statement: usize,
        values: [&[u8]; 2],
        reply: &mut Reply,
    ) -> Result<bool, Failure> {
        let answer = self.built_in(statement, &values, reply).await?;
        let rows = first_of(answer, 1)?;
        reply.bytes_received += rows.bytes;
        Ok(matches!(rows.cells.first(), Some(Some(said)) if said == b"true"))
    }

    async fn read_then_write(
        &mut self,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let read = self.get(operation, reply).await?;
        let values = [operation.key.as_slice(), &operation.value];
        self.built_in(SET, &values, reply).await?;
        // The write is part of the operation, so that it ends later than the read says.
        reply.ended = None;
        Ok(read)
    }

    async fn built_in(
        &mut self,
        statement: usize,
        values: &[&[u8]],
        reply: &mut Reply,
    ) -> Result<QueryResult, Failure> {
        self.requests += 1;
        let sent: usize = values.iter().map(|value| value.len()).sum();
        reply.bytes_sent += sent as u64;
        let statements = self.built_in.as_ref();
        let statement =
            &statements.expect("they were prepared before the first operation")[statement];
        let answer = self.link.cql.execute_unpaged(statement, values).await;
        let answer = answer.map_err(|error| failure(&error))?;
        self.note(&answer, reply);
        Ok(answer)
    }

    fn note(&mut self, answer: &QueryResult, reply: &mut Reply) {
        reply.warnings += answer.warnings().count() as u32;
        if self.link.peer.is_none() {
            self.coordinator = Some(answer.request_coordinator().connection_address());
        }
    }

    fn count_coordinator(&mut self) {
        let Some(node) = self.coordinator.take() else {
            return;
        };
        match self.answered.iter_mut().find(|(known, _)| *known == node) {
            Some((_, count)) => *count += 1,
            None => self.answered.push((node, 1)),
        }
    }

    async fn custom(
        &mut self,
        number: u16,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let shared = Arc::clone(&self.shared);
        let own = shared.operations.get(usize::from(number));
        let own = own.and_then(Option::as_ref).ok_or_else(|| {
            let message = "this operation has no entry for cassandra";
            Failure::new(ErrorClass::Client, message)
        })?;
        let wanted = usize::from(own.custom.wants_first(reply));
        let mut last = Answer::default();
        for (position, statement) in own.custom.statements.iter().enumerate() {
            if !self.own.contains_key(&(number, position)) {
                let prepared = self
                    .link
                    .own(number, position, &statement.sql, own.idempotent);
                let prepared = self.counted(&prepared.await?);
                self.own.insert((number, position), prepared);
            }
            let values: Vec<Bound> = statement
                .arguments
                .iter()
                .map(|argument| Bound(argument.evaluate(operation)))
                .collect();
            let sent: usize = values.iter().map(Bound::length).sum();
            reply.bytes_sent += sent as u64;
            self.requests += 1;
            let prepared = &self.own[&(number, position)];
            let answer = self.link.cql.execute_unpaged(prepared, &values).await;
            let answer = answer.map_err(|error| failure(&error))?;
            self.note(&answer, reply);
            let rows = first_of(answer, wanted)?;
            reply.bytes_received += rows.bytes;
            if rows.has_columns {
                reply.value_length = rows.length;
                last = Answer {
                    has_columns: true,
                    rows: rows.count as u64,
                    first: rows.cells.into_iter().next().flatten(),
                };
            }
        }
        own.custom.judge(&last, reply)
    }
}

impl crate::driver::Session for CassandraSession {
    async fn execute(&mut self, operation: &Operation, reply: &mut Reply) -> Outcome {
        // Of an operation that was given up.
        self.coordinator = None;
        let result = self.run(operation, reply).await;
        if let Some(attempts) = &self.attempts {
            let requests = std::mem::take(&mut self.requests);
            reply.warnings += attempts.take().saturating_sub(requests);
        }
        self.count_coordinator();
        result.unwrap_or_else(Outcome::from)
    }

    fn take_answered(&mut self) -> Vec<(SocketAddr, u64)> {
        std::mem::take(&mut self.answered)
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.link.peer
    }

    /// A stream's number is not used again before its late answer came, and that answer goes to nobody.
    fn survives_timeout(&self) -> bool {
        true
    }

    fn connections(&self) -> u32 {
        self.connections
    }
}
