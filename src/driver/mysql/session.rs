//! A session: its own connection, one of the worker's pool, or a new one for each operation.

use super::table::{DELETE, GET, GET_FOR_UPDATE, INCREMENT, INSERT, SET, UPDATE};
use super::{Shared, failure, spec};
use crate::arguments::Argument;
use crate::driver::spec::Endpoint;
use crate::driver::sql::{Answer, Custom};
use crate::op::{ErrorClass, Failure, Operation, Outcome, Reply, Verb};
use mysql_async::prelude::{Protocol, Queryable};
use mysql_async::{Conn, Params, Pool, QueryResult, Row, Value};
use std::sync::Arc;
use std::time::Instant;

pub struct MysqlSession {
    shared: Arc<Shared>,
    endpoint: Endpoint,
    source: Source,
    /// Text of a statement, reused.
    text: Vec<u8>,
}

enum Source {
    Own(Conn),
    Pool(Pool),
    New,
}

impl MysqlSession {
    pub async fn open(shared: Arc<Shared>, endpoint: &Endpoint) -> Result<MysqlSession, Failure> {
        let source = match shared.settings.reconnect_each {
            true => Source::New,
            false => Source::Own(shared.settings.connect(endpoint).await?),
        };
        Ok(MysqlSession::of(shared, endpoint, source))
    }

    /// Its first connection is opened here, so that the server is known to take it.
    pub async fn pooled(
        shared: Arc<Shared>,
        endpoint: &Endpoint,
        pool: Pool,
    ) -> Result<MysqlSession, Failure> {
        let connection = pool.get_conn().await;
        drop(connection.map_err(|error| super::refused(&error, &endpoint.label))?);
        Ok(MysqlSession::of(shared, endpoint, Source::Pool(pool)))
    }

    fn of(shared: Arc<Shared>, endpoint: &Endpoint, source: Source) -> MysqlSession {
        MysqlSession {
            shared,
            endpoint: endpoint.clone(),
            source,
            text: Vec::new(),
        }
    }
}

impl crate::driver::Session for MysqlSession {
    async fn execute(&mut self, operation: &Operation, reply: &mut Reply) -> Outcome {
        let result = self.run(operation, reply).await;
        result.unwrap_or_else(Outcome::from)
    }

    fn connections(&self) -> u32 {
        match self.source {
            Source::Own(_) => 1,
            Source::Pool(_) | Source::New => 0,
        }
    }
}

impl MysqlSession {
    async fn run(&mut self, operation: &Operation, reply: &mut Reply) -> Result<Outcome, Failure> {
        let started = Instant::now();
        let (shared, text) = (&*self.shared, &mut self.text);
        match &mut self.source {
            Source::Own(connection) => {
                On {
                    shared,
                    connection,
                    text,
                }
                .run(operation, reply)
                .await
            }
            Source::Pool(pool) => {
                let taken = pool.get_conn().await;
                let mut taken =
                    taken.map_err(|error| super::refused(&error, &self.endpoint.label))?;
                let connection = &mut taken;
                On {
                    shared,
                    connection,
                    text,
                }
                .run(operation, reply)
                .await
            }
            Source::New => {
                let mut opened = shared.settings.connect(&self.endpoint).await?;
                reply.connect_time = started.elapsed();
                let connection = &mut opened;
                let outcome = On {
                    shared,
                    connection,
                    text,
                }
                .run(operation, reply)
                .await;
                reply.ended.get_or_insert_with(Instant::now);
                // What the server says to the farewell changes nothing.
                let _ = opened.disconnect().await;
                outcome
            }
        }
    }
}

/// Operations on a connection.
struct On<'a> {
    shared: &'a Shared,
    connection: &'a mut Conn,
    text: &'a mut Vec<u8>,
}

impl On<'_> {
    async fn run(mut self, operation: &Operation, reply: &mut Reply) -> Result<Outcome, Failure> {
        match operation.verb {
            Verb::Custom(number) => {
                let shared = self.shared;
                let custom = shared.operations.get(usize::from(number));
                let custom = custom.and_then(Option::as_ref).ok_or_else(|| {
                    let message = "this operation has no entry for mysql";
                    Failure::new(ErrorClass::Client, message)
                })?;
                self.custom(custom, operation, reply).await
            }
            Verb::Statement => {
                reply.bytes_sent += operation.value.len() as u64;
                let answer = self.connection.query_iter(operation.value.as_slice()).await;
                let answer = read_all(answer, reply, false).await?;
                Ok(outcome_of(&answer))
            }
            _ => {
                if !self.shared.table.is_made() {
                    self.shared.table.make(self.connection).await?;
                }
                self.built_in(operation, reply).await
            }
        }
    }

    async fn built_in(
        &mut self,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let key = || Value::Bytes(operation.key.clone());
        let value = || Value::Bytes(operation.value.clone());
        reply.bytes_sent += operation.key.len() as u64;
        match operation.verb {
            Verb::Get => self.get(GET, operation, reply).await,
            Verb::Set => {
                reply.bytes_sent += operation.value.len() as u64;
                self.change(SET, vec![key(), value()], reply).await?;
                Ok(Outcome::Done)
            }
            Verb::Insert => {
                reply.bytes_sent += operation.value.len() as u64;
                match self.change(INSERT, vec![key(), value()], reply).await {
                    Err(failure) if failure.code == "1062" => Err(Failure::new(
                        ErrorClass::Rejected,
                        "insert: the key exists already",
                    )),
                    result => result.map(|_| Outcome::Done),
                }
            }
            Verb::Update => {
                reply.bytes_sent += operation.value.len() as u64;
                let rows = self.change(UPDATE, vec![value(), key()], reply).await?;
                Ok(done_or_missing(rows))
            }
            Verb::Delete => {
                let rows = self.change(DELETE, vec![key()], reply).await?;
                Ok(done_or_missing(rows))
            }
            Verb::Increment => match self.change(INCREMENT, vec![key()], reply).await {
                Err(failure) if ["1242", "1690"].contains(&failure.code.as_str()) => {
                    let message = "the value is no integer that has a next one";
                    Err(Failure::new(ErrorClass::Rejected, message))
                }
                result => result.map(|_| Outcome::Done),
            },
            Verb::Scan => {
                let answer = self
                    .connection
                    .exec_iter(&self.shared.table.scan, vec![key()]);
                let answer = read_all(answer.await, reply, false).await?;
                Ok(match answer.rows {
                    0 => Outcome::Missing,
                    _ => Outcome::Found,
                })
            }
            _ => self.read_modify_write(operation, reply).await,
        }
    }

    /// The value is compared where it lies in the row.
    async fn get(
        &mut self,
        statement: &str,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let key = vec![Value::Bytes(operation.key.clone())];
        let answer = self.connection.exec_iter(statement, key).await;
        let mut answer = answer.map_err(|error| failure(&error))?;
        let mut outcome = Outcome::Missing;
        while let Some(row) = answer.next().await.map_err(|error| failure(&error))? {
            if let Some(Value::Bytes(value)) = row.as_ref(0) {
                reply.bytes_received += value.len() as u64;
                outcome = reply.found(operation, value);
            }
        }
        Ok(outcome)
    }

    /// Returns how many rows it found.
    async fn change(
        &mut self,
        statement: &str,
        parameters: Vec<Value>,
        reply: &mut Reply,
    ) -> Result<u64, Failure> {
        let done = self.connection.exec_drop(statement, parameters).await;
        done.map_err(|error| failure(&error))?;
        reply.warnings += u32::from(self.connection.get_warnings());
        Ok(self.connection.affected_rows())
    }

    async fn read_modify_write(
        &mut self,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        self.plain("START TRANSACTION").await?;
        let result = self.read_then_write(operation, reply).await;
        self.end_transaction(result).await
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
        let both = vec![
            Value::Bytes(operation.key.clone()),
            Value::Bytes(operation.value.clone()),
        ];
        reply.bytes_sent += operation.value.len() as u64;
        self.change(SET, both, reply).await?;
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
                self.plain("COMMIT").await?;
                Ok(outcome)
            }
            Err(failure) if failure.broken => Err(failure),
            Err(failure) => {
                self.plain("ROLLBACK").await?;
                Err(failure)
            }
        }
    }

    async fn plain(&mut self, statement: &str) -> Result<(), Failure> {
        let done = self.connection.query_drop(statement).await;
        done.map_err(|error| failure(&error))
    }

    async fn custom(
        &mut self,
        custom: &Custom,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        if !custom.transaction {
            return self.statements(custom, operation, reply).await;
        }
        self.plain("START TRANSACTION").await?;
        let result = self.statements(custom, operation, reply).await;
        self.end_transaction(result).await
    }

    async fn statements(
        &mut self,
        custom: &Custom,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let mut last = Answer::default();
        let wanted = custom.wants_first(reply);
        for statement in &custom.statements {
            let answer = if custom.prepared {
                let parameters = statement.arguments.iter();
                let parameters: Vec<Value> = parameters
                    .map(|argument| match argument.evaluate(operation) {
                        Argument::Integer(number) => Value::Int(number),
                        Argument::Bytes(bytes) => {
                            reply.bytes_sent += bytes.len() as u64;
                            Value::Bytes(bytes.into_owned())
                        }
                    })
                    .collect();
                let parameters = match parameters.is_empty() {
                    true => Params::Empty,
                    false => Params::Positional(parameters),
                };
                let sent = self.connection.exec_iter(&statement.sql, parameters).await;
                read_all(sent, reply, wanted).await?
            } else {
                self.text.clear();
                statement.write(operation, &spec::DIALECT, self.text);
                reply.bytes_sent += self.text.len() as u64;
                let sent = self.connection.query_iter(self.text.as_slice()).await;
                read_all(sent, reply, wanted).await?
            };
            if answer.has_columns {
                last = answer;
            }
        }
        custom.judge(&last, reply)
    }
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

/// Reads every row of every result. `wanted`: whether the first value is kept.
async fn read_all<P: Protocol>(
    result: Result<QueryResult<'_, '_, P>, mysql_async::Error>,
    reply: &mut Reply,
    wanted: bool,
) -> Result<Answer, Failure> {
    let mut result = result.map_err(|error| failure(&error))?;
    let mut answer = Answer::default();
    loop {
        if !result.columns_ref().is_empty() {
            answer = Answer {
                has_columns: true,
                ..Answer::default()
            };
        }
        while let Some(row) = result.next().await.map_err(|error| failure(&error))? {
            reply.bytes_received += bytes_of(&row);
            match row.as_ref(0) {
                Some(Value::Bytes(first)) => {
                    reply.value_length = Some(first.len() as u64);
                    answer.row(Some(first), wanted);
                }
                Some(Value::NULL) | None => answer.row(None, wanted),
                Some(other) if wanted && answer.rows == 0 => {
                    answer.row(Some(text_of(other).as_bytes()), true);
                }
                Some(_) => answer.row(None, false),
            }
        }
        if result.is_empty() {
            break;
        }
    }
    reply.warnings += u32::from(result.warnings());
    Ok(answer)
}

/// Bytes of the values of a row; numbers count as their binary form.
fn bytes_of(row: &Row) -> u64 {
    let values = (0..row.len()).filter_map(|column| row.as_ref(column));
    values
        .map(|value| match value {
            Value::Bytes(bytes) => bytes.len() as u64,
            Value::NULL => 0,
            _ => 8,
        })
        .sum()
}

/// A value as the text protocol would have it.
pub fn text_of(value: &Value) -> String {
    match value {
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::NULL => String::new(),
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        other => other.as_sql(true).trim_matches('\'').to_owned(),
    }
}
