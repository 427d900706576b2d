//! A session: one connection, its prepared statements, one operation at a time.

use super::table::{DELETE, GET, GET_FOR_UPDATE, INCREMENT, INSERT, SCAN, SET, STATEMENTS, UPDATE};
use super::value::{Parameter, Raw, text_of};
use super::wire::Wire;
use super::{Shared, spec};
use crate::driver::spec::Endpoint;
use crate::driver::sql::{Answer, Custom};
use crate::op::{ErrorClass, Failure, Operation, Outcome, Reply, Verb};
use futures_util::TryStreamExt;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use tokio_postgres::{Row, SimpleQueryMessage, Statement};

pub struct PostgresSession {
    shared: Arc<Shared>,
    wire: Wire,
    built_in: [Option<Statement>; STATEMENTS],
    /// By operation and position in it.
    own: HashMap<(u16, usize), Statement>,
    /// Text of a statement, reused.
    text: Vec<u8>,
}

impl PostgresSession {
    pub async fn open(
        shared: Arc<Shared>,
        endpoint: &Endpoint,
    ) -> Result<PostgresSession, Failure> {
        Ok(PostgresSession {
            wire: shared.settings.connect(endpoint).await?,
            shared,
            built_in: Default::default(),
            own: HashMap::new(),
            text: Vec::new(),
        })
    }

    async fn run(&mut self, operation: &Operation, reply: &mut Reply) -> Result<Outcome, Failure> {
        match operation.verb {
            Verb::Custom(number) => self.custom(number, operation, reply).await,
            Verb::Statement => {
                let answer = self.as_text(&operation.value, reply, false).await?;
                Ok(outcome_of(&answer))
            }
            _ => {
                if !self.shared.table.is_made() {
                    let shared = Arc::clone(&self.shared);
                    shared.table.make(&mut self.wire).await?;
                }
                self.keys_and_values(operation, reply).await
            }
        }
    }

    async fn keys_and_values(
        &mut self,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let key = operation.key.as_slice();
        let value = operation.value.as_slice();
        let rejected = |message: &str| Err(Failure::new(ErrorClass::Rejected, message));
        match operation.verb {
            Verb::Get => self.get(GET, operation, reply).await,
            Verb::Set => {
                self.change(SET, &[key, value], reply).await?;
                Ok(Outcome::Done)
            }
            Verb::Insert => match self.change(INSERT, &[key, value], reply).await {
                Err(failure) if failure.code == "23505" => {
                    rejected("insert: the key exists already")
                }
                result => result.map(|_| Outcome::Done),
            },
            Verb::Update => {
                let rows = self.change(UPDATE, &[key, value], reply).await?;
                Ok(done_or_missing(rows))
            }
            Verb::Delete => {
                let rows = self.change(DELETE, &[key], reply).await?;
                Ok(done_or_missing(rows))
            }
            Verb::Increment => match self.change(INCREMENT, &[key], reply).await {
                // No text of an integer, no text at all, or too large.
                Err(failure) if ["22P02", "22021", "22003"].contains(&failure.code.as_str()) => {
                    rejected("the value is no integer that has a next one")
                }
                result => result.map(|_| Outcome::Done),
            },
            Verb::Scan => {
                let statement = self.prepared(SCAN).await?;
                reply.bytes_sent += key.len() as u64;
                let key = [Parameter::Bytes(key)];
                let answer = execute(&mut self.wire, &statement, &key, reply, false).await?;
                Ok(match answer.rows {
                    0 => Outcome::Missing,
                    _ => Outcome::Found,
                })
            }
            _ => {
                self.wire.plain("BEGIN").await?;
                let result = self.read_then_write(operation, reply).await;
                self.end_transaction(result).await
            }
        }
    }

    async fn prepared(&mut self, number: usize) -> Result<Statement, Failure> {
        if let Some(statement) = &self.built_in[number] {
            return Ok(statement.clone());
        }
        let shared = Arc::clone(&self.shared);
        let text = shared.table.text(number);
        let statement = self.wire.wait(|client| client.prepare(text)).await?;
        Ok(self.built_in[number].insert(statement).clone())
    }

    /// The value is compared where it lies in the row.
    async fn get(
        &mut self,
        statement: usize,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let statement = self.prepared(statement).await?;
        reply.bytes_sent += operation.key.len() as u64;
        let key = [Parameter::Bytes(&operation.key)];
        let row = self.wire.wait(|client| async move {
            let mut rows = pin!(client.query_raw(&statement, &key).await?);
            let first = rows.try_next().await?;
            // A stream that has ended must not be asked again.
            while first.is_some() && rows.try_next().await?.is_some() {}
            Ok(first)
        });
        let row = row.await?;
        Ok(match row.as_ref().and_then(first_of) {
            Some(value) => {
                reply.bytes_received += value.len() as u64;
                reply.found(operation, value)
            }
            None => Outcome::Missing,
        })
    }

    /// Returns how many rows it changed.
    async fn change(
        &mut self,
        statement: usize,
        parameters: &[&[u8]],
        reply: &mut Reply,
    ) -> Result<u64, Failure> {
        let statement = self.prepared(statement).await?;
        let sent: usize = parameters.iter().map(|bytes| bytes.len()).sum();
        reply.bytes_sent += sent as u64;
        let parameters: Vec<Parameter> = parameters
            .iter()
            .map(|bytes| Parameter::Bytes(bytes))
            .collect();
        self.wire
            .wait(|client| async move { client.execute_raw(&statement, &parameters).await })
            .await
    }

    async fn read_then_write(
        &mut self,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let read = self.get(GET_FOR_UPDATE, operation, reply).await?;
        if read == Outcome::WrongValue {
            return Ok(read);
        }
        self.change(SET, &[&operation.key, &operation.value], reply)
            .await?;
        Ok(match operation.verify {
            true => read,
            false => Outcome::Done,
        })
    }

    /// Commits what went well, and undoes what did not.
    async fn end_transaction(
        &mut self,
        result: Result<Outcome, Failure>,
    ) -> Result<Outcome, Failure> {
        match result {
            Ok(outcome) => {
                self.wire.plain("COMMIT").await?;
                Ok(outcome)
            }
            Err(failure) if failure.broken => Err(failure),
            Err(failure) => {
                self.wire.plain("ROLLBACK").await?;
                Err(failure)
            }
        }
    }

    async fn custom(
        &mut self,
        number: u16,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let shared = Arc::clone(&self.shared);
        let custom = shared.operations.get(usize::from(number));
        let custom = custom.and_then(Option::as_ref).ok_or_else(|| {
            Failure::new(
                ErrorClass::Client,
                "this operation has no entry for postgres",
            )
        })?;
        if !custom.transaction {
            return self.statements(number, custom, operation, reply).await;
        }
        self.wire.plain("BEGIN").await?;
        let result = self.statements(number, custom, operation, reply).await;
        self.end_transaction(result).await
    }

    async fn statements(
        &mut self,
        number: u16,
        custom: &Custom,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let mut last = Answer::default();
        let wanted = custom.wants_first(reply);
        for (position, statement) in custom.statements.iter().enumerate() {
            let answer = if custom.prepared {
                let prepared = match self.own.get(&(number, position)) {
                    Some(prepared) => prepared.clone(),
                    None => {
                        let sql = &statement.sql;
                        let prepared = self.wire.wait(|client| client.prepare(sql)).await?;
                        self.own.insert((number, position), prepared.clone());
                        prepared
                    }
                };
                let arguments = statement.arguments.iter();
                let parameters: Vec<Parameter> = arguments
                    .map(|argument| argument.evaluate(operation).into())
                    .collect();
                let sent: usize = parameters.iter().map(Parameter::length).sum();
                reply.bytes_sent += sent as u64;
                execute(&mut self.wire, &prepared, &parameters, reply, wanted).await?
            } else {
                let mut text = std::mem::take(&mut self.text);
                text.clear();
                statement.write(operation, &spec::DIALECT, &mut text);
                let answer = self.as_text(&text, reply, wanted).await;
                self.text = text;
                answer?
            };
            if answer.has_columns {
                last = answer;
            }
        }
        custom.judge(&last, reply)
    }

    /// A statement by the simple protocol, every row of its answer read.
    async fn as_text(
        &mut self,
        text: &[u8],
        reply: &mut Reply,
        wanted: bool,
    ) -> Result<Answer, Failure> {
        let text = std::str::from_utf8(text).map_err(|_| {
            Failure::new(
                ErrorClass::Rejected,
                "PostgreSQL takes statements in UTF-8 only",
            )
        })?;
        reply.bytes_sent += text.len() as u64;
        let (answer, received) = self
            .wire
            .wait(|client| async move {
                let mut messages = pin!(client.simple_query_raw(text).await?);
                let mut answer = Answer::default();
                let mut received = 0;
                while let Some(message) = messages.try_next().await? {
                    match message {
                        SimpleQueryMessage::RowDescription(_) => {
                            answer = Answer {
                                has_columns: true,
                                ..Answer::default()
                            };
                        }
                        SimpleQueryMessage::Row(row) => {
                            let cells = (0..row.len()).filter_map(|column| row.get(column));
                            received += cells.map(|cell| cell.len() as u64).sum::<u64>();
                            let first = if row.is_empty() { None } else { row.get(0) };
                            answer.row(first.map(str::as_bytes), wanted);
                        }
                        _ => {}
                    }
                }
                Ok((answer, received))
            })
            .await?;
        reply.bytes_received += received;
        Ok(answer)
    }
}

/// A prepared statement, every row of its answer read.
async fn execute(
    wire: &mut Wire,
    statement: &Statement,
    parameters: &[Parameter<'_>],
    reply: &mut Reply,
    wanted: bool,
) -> Result<Answer, Failure> {
    let has_columns = !statement.columns().is_empty();
    let (answer, received, length) = wire
        .wait(|client| async move {
            let mut rows = pin!(client.query_raw(statement, parameters).await?);
            let mut answer = Answer {
                has_columns,
                ..Answer::default()
            };
            let (mut received, mut length) = (0, None);
            while let Some(row) = rows.try_next().await? {
                received += row.raw_size_bytes() as u64;
                let first = first_of(&row);
                if answer.rows == 0 {
                    length = first.map(|first| first.len() as u64);
                }
                let text = match (wanted && answer.rows == 0, first) {
                    (true, Some(raw)) => Some(text_of(row.columns()[0].type_(), raw)),
                    _ => None,
                };
                answer.row(text.as_deref(), wanted);
            }
            Ok((answer, received, length))
        })
        .await?;
    reply.bytes_received += received;
    reply.value_length = length.or(reply.value_length);
    Ok(answer)
}

/// The first column as it came; None for NULL and where there is no column.
fn first_of(row: &Row) -> Option<&[u8]> {
    let first: Option<Raw<'_>> = match row.is_empty() {
        true => None,
        false => row.try_get(0).ok().flatten(),
    };
    first.map(|raw| raw.0)
}

fn done_or_missing(rows: u64) -> Outcome {
    match rows {
        0 => Outcome::Missing,
        _ => Outcome::Done,
    }
}

fn outcome_of(answer: &Answer) -> Outcome {
    match (answer.has_columns, answer.rows) {
        (false, _) => Outcome::Done,
        (true, 0) => Outcome::Missing,
        (true, _) => Outcome::Found,
    }
}

impl crate::driver::Session for PostgresSession {
    async fn execute(&mut self, operation: &Operation, reply: &mut Reply) -> Outcome {
        let result = self.run(operation, reply).await;
        reply.warnings += self.wire.take_warnings();
        result.unwrap_or_else(Outcome::from)
    }

    fn peer(&self) -> Option<SocketAddr> {
        self.wire.peer
    }
}
