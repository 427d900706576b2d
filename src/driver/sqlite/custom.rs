//! The user's own operations: SQL statements with bound arguments, as one transaction or one after another.

use super::connection::{bytes_of, failure};
use crate::arguments::{Argument, ArgumentFault, ArgumentKind, ArgumentTemplate};
use crate::driver::CustomOperation;
use crate::driver::spec::OptionFault;
use crate::op::{ErrorClass, Failure, Operation, Outcome, Reply};
use regex::Regex;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection};
use serde_json::{Map, Value};

/// An operation compiled once, shared by all sessions.
pub struct Custom {
    name: String,
    transaction: bool,
    statements: Vec<Statement>,
    expect: Option<Regex>,
}

struct Statement {
    sql: String,
    arguments: Vec<ArgumentTemplate>,
}

/// What the last statement that gives rows gave.
#[derive(Default)]
struct Answer {
    has_columns: bool,
    rows: u64,
    /// First column of the first row, where `expect` wants to see it.
    text: Option<String>,
}

/// The faults that the rows alone do not show.
pub fn check(table: &Map<String, Value>) -> Result<(), OptionFault> {
    compile("", table).map(|_| ())
}

pub fn compile(name: &str, table: &Map<String, Value>) -> Result<Custom, OptionFault> {
    let texts = statements_of(table);
    if texts.iter().all(|text| text.trim().is_empty()) {
        return Err(OptionFault {
            key: "statements".to_owned(),
            message: "an operation needs at least one statement".to_owned(),
            help: "statements = [\"SELECT count(*) FROM dbbench\"]".to_owned(),
        });
    }
    let templates = ArgumentTemplate::parse_all(texts.iter().copied())
        .map_err(|(_, fault)| statement_fault(fault))?;
    let statements = templates
        .iter()
        .map(|template| {
            let (sql, arguments) = template.split_placeholders()?;
            Ok(Statement { sql, arguments })
        })
        .collect::<Result<_, ArgumentFault>>()
        .map_err(statement_fault)?;
    Ok(Custom {
        name: name.to_owned(),
        transaction: table.get("transaction").and_then(Value::as_bool) == Some(true),
        statements,
        expect: expect_of(table)?,
    })
}

pub fn compile_all(operations: &[Option<CustomOperation>]) -> Result<Vec<Option<Custom>>, Failure> {
    let compiled = operations.iter().map(|operation| match operation {
        None => Ok(None),
        Some(operation) => compile(&operation.name, &operation.table)
            .map(Some)
            .map_err(|fault| {
                let message = format!("operation `{}`: {}", operation.name, fault.message);
                Failure::new(ErrorClass::Client, message)
            }),
    });
    compiled.collect()
}

fn statements_of(table: &Map<String, Value>) -> Vec<&str> {
    let list = table.get("statements").and_then(Value::as_array);
    let list = list.map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(Value::as_str).collect()
}

fn expect_of(table: &Map<String, Value>) -> Result<Option<Regex>, OptionFault> {
    let Some(text) = table.get("expect").and_then(Value::as_str) else {
        return Ok(None);
    };
    Regex::new(text).map(Some).map_err(|error| OptionFault {
        key: "expect".to_owned(),
        message: format!("this is no regular expression: {error}"),
        help: "expect = '^\\d+$'".to_owned(),
    })
}

fn statement_fault(fault: ArgumentFault) -> OptionFault {
    OptionFault {
        key: "statements".to_owned(),
        message: fault.message,
        help: fault.help,
    }
}

impl Custom {
    /// Executes all statements. After a failure nothing of a transaction stays.
    pub fn execute(
        &self,
        connection: &Connection,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let result = self.statements(connection, operation, reply);
        if connection.is_autocommit() {
            return result;
        }
        // A failed statement may have left the transaction open; so may the user's own BEGIN.
        connection.execute_batch("ROLLBACK").map_err(failure)?;
        result.and_then(|_| {
            Err(Failure::new(
                ErrorClass::Client,
                format!(
                    "operation `{}` left a transaction open; it was undone",
                    self.name
                ),
            ))
        })
    }

    fn statements(
        &self,
        connection: &Connection,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        if self.transaction {
            run(connection, self.begin(connection))?;
        }
        let mut last = Answer::default();
        for statement in &self.statements {
            let answer = self.statement(statement, connection, operation, reply)?;
            if answer.has_columns {
                last = answer;
            }
        }
        // An answer that is not what was expected undoes the transaction as any other failure does.
        self.check_answer(&last)?;
        if self.transaction {
            run(connection, "COMMIT")?;
        }
        Ok(match (last.has_columns, last.rows) {
            (false, _) => Outcome::Done,
            (true, 0) => Outcome::Missing,
            (true, _) => Outcome::Found,
        })
    }

    /// A transaction that will write takes its lock at once: one that read first would fail with SQLITE_BUSY, without
    /// waiting, where another has written meanwhile.
    fn begin(&self, connection: &Connection) -> &'static str {
        let reads_only = self.statements.iter().all(|statement| {
            connection
                .prepare_cached(&statement.sql)
                .is_ok_and(|prepared| prepared.readonly())
        });
        match reads_only {
            true => "BEGIN",
            false => "BEGIN IMMEDIATE",
        }
    }

    fn statement(
        &self,
        statement: &Statement,
        connection: &Connection,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Answer, Failure> {
        let mut prepared = connection.prepare_cached(&statement.sql).map_err(failure)?;
        self.bind(statement, &mut prepared, operation, reply)?;
        let columns = prepared.column_count();
        let mut answer = Answer {
            has_columns: columns > 0,
            ..Answer::default()
        };
        let mut rows = prepared.raw_query();
        while let Some(row) = rows.next().map_err(failure)? {
            for column in 0..columns {
                let value = row.get_ref(column).map_err(failure)?;
                let bytes = bytes_of(value);
                reply.bytes_received += bytes.len() as u64;
                if answer.rows == 0 && column == 0 {
                    reply.value_length = Some(bytes.len() as u64);
                    reply.keep_text(&bytes);
                    answer.text = self
                        .expect
                        .is_some()
                        .then(|| String::from_utf8_lossy(&bytes).into_owned());
                }
            }
            answer.rows += 1;
        }
        Ok(answer)
    }

    fn bind(
        &self,
        statement: &Statement,
        prepared: &mut CachedStatement<'_>,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<(), Failure> {
        // SQLite takes `$name`, `:name` and `?` as parameters of its own and would set them to NULL.
        if prepared.parameter_count() != statement.arguments.len() {
            return Err(Failure::new(
                ErrorClass::Client,
                format!(
                    "operation `{}`: `{}` has parameters that are none of dbbench's",
                    self.name, statement.sql
                ),
            ));
        }
        for (position, argument) in statement.arguments.iter().enumerate() {
            let value = argument.evaluate(operation);
            let bound = match &value {
                Argument::Integer(number) => ValueRef::Integer(*number),
                Argument::Bytes(bytes) => {
                    reply.bytes_sent += bytes.len() as u64;
                    // A key is a BLOB, as it is in the table of the built-in operations.
                    match argument.kind() == ArgumentKind::Text && !argument.uses_key() {
                        true => ValueRef::Text(bytes),
                        false => ValueRef::Blob(bytes),
                    }
                }
            };
            prepared
                .raw_bind_parameter(position + 1, ToSqlOutput::Borrowed(bound))
                .map_err(failure)?;
        }
        Ok(())
    }

    fn check_answer(&self, answer: &Answer) -> Result<(), Failure> {
        let Some(expect) = &self.expect else {
            return Ok(());
        };
        let said = match &answer.text {
            Some(text) if expect.is_match(text) => return Ok(()),
            Some(text) => format!("`{}`", text.chars().take(100).collect::<String>()),
            None => "no row".to_owned(),
        };
        Err(Failure::new(
            ErrorClass::UnexpectedReply,
            format!("operation `{}` gave {said}, expected `{expect}`", self.name),
        ))
    }
}

/// A statement of a log, as it stands there.
pub fn statement(
    connection: &Connection,
    text: &[u8],
    reply: &mut Reply,
) -> Result<Outcome, Failure> {
    reply.bytes_sent = text.len() as u64;
    let sql = std::str::from_utf8(text).map_err(|_| {
        Failure::new(
            ErrorClass::Rejected,
            "SQLite takes statements in UTF-8 only",
        )
    })?;
    let mut prepared = connection.prepare(sql).map_err(failure)?;
    let columns = prepared.column_count();
    let mut outcome = match columns {
        0 => Outcome::Done,
        _ => Outcome::Missing,
    };
    let mut rows = prepared.raw_query();
    while let Some(row) = rows.next().map_err(failure)? {
        for column in 0..columns {
            reply.bytes_received += bytes_of(row.get_ref(column).map_err(failure)?).len() as u64;
        }
        outcome = Outcome::Found;
    }
    Ok(outcome)
}

/// A statement without arguments or answer.
pub fn run(connection: &Connection, sql: &str) -> Result<(), Failure> {
    let mut prepared = connection.prepare_cached(sql).map_err(failure)?;
    prepared.execute([]).map_err(failure)?;
    Ok(())
}
