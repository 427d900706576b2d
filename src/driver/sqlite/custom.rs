//! The user's own operations: SQL statements with bound arguments, as one transaction or one after another. How they are
//! written is `sql`'s.

use super::connection::{bytes_of, failure};
use crate::arguments::{Argument, ArgumentKind};
use crate::driver::spec::OptionFault;
use crate::driver::sql::{self, Answer, Custom, Dialect, Statement};
use crate::op::{ErrorClass, Failure, Operation, Outcome, Reply};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection};
use serde_json::{Map, Value};

pub const DIALECT: Dialect = Dialect {
    marker: |_| "?".to_owned(),
    literal: None,
};

/// The faults that the rows alone do not show.
pub fn check(table: &Map<String, Value>) -> Result<(), OptionFault> {
    sql::compile("", table, &DIALECT).map(drop)
}

/// Executes all statements. After a failure nothing of a transaction stays.
pub fn execute(
    custom: &Custom,
    connection: &Connection,
    operation: &Operation,
    reply: &mut Reply,
) -> Result<Outcome, Failure> {
    let result = statements(custom, connection, operation, reply);
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
                custom.name
            ),
        ))
    })
}

fn statements(
    custom: &Custom,
    connection: &Connection,
    operation: &Operation,
    reply: &mut Reply,
) -> Result<Outcome, Failure> {
    if custom.transaction {
        run(connection, begin(custom, connection))?;
    }
    let mut last = Answer::default();
    for statement in &custom.statements {
        let answer = statement_of(custom, statement, connection, operation, reply)?;
        if answer.has_columns {
            last = answer;
        }
    }
    // An answer that is not what was expected undoes the transaction as any other failure does.
    let outcome = custom.judge(&last, reply)?;
    if custom.transaction {
        run(connection, "COMMIT")?;
    }
    Ok(outcome)
}

/// A transaction that will write takes its lock at once: one that read first would fail with SQLITE_BUSY, without
/// waiting, where another has written meanwhile.
fn begin(custom: &Custom, connection: &Connection) -> &'static str {
    let reads_only = custom.statements.iter().all(|statement| {
        connection
            .prepare_cached(&statement.sql)
            .is_ok_and(|prepared| prepared.readonly())
    });
    match reads_only {
        true => "BEGIN",
        false => "BEGIN IMMEDIATE",
    }
}

fn statement_of(
    custom: &Custom,
    statement: &Statement,
    connection: &Connection,
    operation: &Operation,
    reply: &mut Reply,
) -> Result<Answer, Failure> {
    let mut prepared = connection.prepare_cached(&statement.sql).map_err(failure)?;
    bind(custom, statement, &mut prepared, operation, reply)?;
    let columns = prepared.column_count();
    let mut answer = Answer {
        has_columns: columns > 0,
        ..Answer::default()
    };
    let wanted = custom.wants_first(reply);
    let mut rows = prepared.raw_query();
    while let Some(row) = rows.next().map_err(failure)? {
        for column in 0..columns {
            let value = row.get_ref(column).map_err(failure)?;
            let bytes = bytes_of(value);
            reply.bytes_received += bytes.len() as u64;
            if column == 0 {
                if answer.rows == 0 {
                    reply.value_length = Some(bytes.len() as u64);
                }
                let first = (value != ValueRef::Null).then_some(&*bytes);
                answer.row(first, wanted);
            }
        }
    }
    Ok(answer)
}

fn bind(
    custom: &Custom,
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
                custom.name, statement.sql
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
