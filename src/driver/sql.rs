//! What drivers of SQL servers share: operations of the scenario's own as statements, compiled once, and the answer that
//! is held against `expect`. Which marker a parameter has, and how a value is quoted, is the driver's.

use crate::arguments::{Argument, ArgumentFault, ArgumentTemplate};
use crate::driver::CustomOperation;
use crate::driver::spec::OptionFault;
use crate::op::{ErrorClass, Failure, Operation, Outcome, Reply};
use crate::rows::{Kind, Row};
use regex::bytes::Regex;
use serde_json::{Map, Value};

/// The rows of `[operations.NAME]` of a SQL server.
pub const OPERATION: &[Row] = &[
    Row::new(
        "statements",
        Kind::List(&Kind::Text),
        "SQL statements, executed in order, each answered whole before the next. `$key`, `$value` and their like are \
         bound as parameters.",
    )
    .required(),
    Row::new(
        "transaction",
        Kind::Bool,
        "Whether the statements are one transaction; a failure undoes it.",
    )
    .default("false"),
    Row::new(
        "prepared",
        Kind::Bool,
        "Whether the statements are prepared once per connection. Without, each goes as text, its arguments quoted into \
         it: for statements that cannot be prepared, and where an argument is part of a name (`t$mod(26)`).",
    )
    .default("true"),
    Row::new(
        "expect",
        Kind::Regex,
        "What the first column of the first row of the last statement that gives rows must match.",
    ),
];

/// Appends bytes as a literal of the text protocol.
pub type WriteLiteral = fn(&[u8], &mut Vec<u8>);

/// A driver's way of writing SQL.
pub struct Dialect {
    /// The marker of parameter n, from 0: `?` or `$1`.
    pub marker: fn(usize) -> String,
    /// None where all statements are prepared.
    pub literal: Option<WriteLiteral>,
}

/// A compiled operation, shared by all sessions.
pub struct Custom {
    pub name: String,
    pub transaction: bool,
    pub prepared: bool,
    pub statements: Vec<Statement>,
    expect: Option<Regex>,
}

pub struct Statement {
    /// With the driver's markers.
    pub sql: String,
    pub arguments: Vec<ArgumentTemplate>,
    /// What stands between the arguments; one more than there are of them.
    pieces: Vec<String>,
}

/// What the last statement that gives rows gave.
#[derive(Default)]
pub struct Answer {
    pub has_columns: bool,
    pub rows: u64,
    /// First column of the first row; None for NULL.
    pub first: Option<Vec<u8>>,
}

/// Stands for a parameter while a statement is cut at them; no statement holds it.
const CUT: &str = "\u{1}";

pub fn compile(
    name: &str,
    table: &Map<String, Value>,
    dialect: &Dialect,
) -> Result<Custom, OptionFault> {
    let list = table.get("statements").and_then(Value::as_array);
    let list = list.map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
    if texts.iter().all(|text| text.trim().is_empty()) {
        return Err(OptionFault::new(
            "statements",
            "an operation needs at least one statement",
            "statements = [\"SELECT count(*) FROM t\"]",
        ));
    }
    let prepared = table.get("prepared").and_then(Value::as_bool) != Some(false);
    let templates = ArgumentTemplate::parse_all(texts.iter().copied())
        .map_err(|(_, fault)| statement_fault(fault))?;
    let statements = templates
        .iter()
        .map(|template| statement(template, prepared, dialect))
        .collect::<Result<_, _>>()?;
    Ok(Custom {
        name: name.to_owned(),
        transaction: table.get("transaction").and_then(Value::as_bool) == Some(true),
        prepared,
        statements,
        expect: expect(table)?,
    })
}

/// All operations of a target that have an entry for this driver.
pub fn compile_all(
    operations: &[Option<CustomOperation>],
    dialect: &Dialect,
) -> Result<Vec<Option<Custom>>, Failure> {
    let compiled = operations.iter().map(|operation| match operation {
        None => Ok(None),
        Some(operation) => compile(&operation.name, &operation.table, dialect)
            .map(Some)
            .map_err(|fault| {
                let message = format!("operation `{}`: {}", operation.name, fault.message);
                Failure::new(ErrorClass::Client, message)
            }),
    });
    compiled.collect()
}

fn statement(
    template: &ArgumentTemplate,
    prepared: bool,
    dialect: &Dialect,
) -> Result<Statement, OptionFault> {
    let (cut, arguments) = template
        .split_placeholders_as(|_| CUT.to_owned())
        .map_err(statement_fault)?;
    let pieces: Vec<String> = cut.split(CUT).map(str::to_owned).collect();
    let inside_a_name = |piece: &String| {
        piece.ends_with(|last: char| last.is_alphanumeric() || last == '_' || last == '`')
    };
    if prepared && pieces[..arguments.len()].iter().any(inside_a_name) {
        return Err(OptionFault::new(
            "statements",
            "an argument that is part of a name cannot be bound",
            match dialect.literal {
                Some(_) => "say `prepared = false`",
                None => "name the table whole, and bind values only",
            },
        ));
    }
    let (sql, _) = template
        .split_placeholders_as(dialect.marker)
        .map_err(statement_fault)?;
    Ok(Statement {
        sql,
        arguments,
        pieces,
    })
}

fn expect(table: &Map<String, Value>) -> Result<Option<Regex>, OptionFault> {
    let Some(text) = table.get("expect").and_then(Value::as_str) else {
        return Ok(None);
    };
    Regex::new(text).map(Some).map_err(|error| {
        OptionFault::new(
            "expect",
            format!("this is no regular expression: {error}"),
            "expect = '^\\d+$'",
        )
    })
}

fn statement_fault(fault: ArgumentFault) -> OptionFault {
    OptionFault::new("statements", fault.message, fault.help)
}

impl Statement {
    /// The statement as text, its arguments quoted into it.
    pub fn write(&self, operation: &Operation, dialect: &Dialect, out: &mut Vec<u8>) {
        for (position, piece) in self.pieces.iter().enumerate() {
            out.extend_from_slice(piece.as_bytes());
            match self
                .arguments
                .get(position)
                .map(|argument| argument.evaluate(operation))
            {
                Some(Argument::Integer(number)) => {
                    out.extend_from_slice(number.to_string().as_bytes());
                }
                Some(Argument::Bytes(bytes)) => {
                    if let Some(literal) = dialect.literal {
                        literal(&bytes, out);
                    }
                }
                None => {}
            }
        }
    }
}

impl Answer {
    /// A row of the answer, by its first column; `wanted`: whether anybody reads it.
    pub fn row(&mut self, first: Option<&[u8]>, wanted: bool) {
        if self.rows == 0 && wanted {
            self.first = first.map(<[u8]>::to_vec);
        }
        self.rows += 1;
    }
}

impl Custom {
    /// Whether the first value of the answer is read at all.
    pub fn wants_first(&self, reply: &Reply) -> bool {
        self.expect.is_some() || reply.wants_text
    }

    /// What came of the operation, all its statements answered.
    pub fn judge(&self, answer: &Answer, reply: &mut Reply) -> Result<Outcome, Failure> {
        if let Some(expect) = &self.expect {
            let said = match &answer.first {
                Some(text) if expect.is_match(text) => None,
                Some(text) => Some(format!("`{}`", text[..text.len().min(100)].escape_ascii())),
                None if answer.rows > 0 => Some("NULL".to_owned()),
                None => Some("no row".to_owned()),
            };
            if let Some(said) = said {
                let message = format!("operation `{}` gave {said}, expected `{expect}`", self.name);
                return Err(Failure::new(ErrorClass::UnexpectedReply, message));
            }
        }
        if let Some(first) = &answer.first {
            reply.keep_text(first);
        }
        Ok(match (answer.has_columns, answer.rows) {
            (false, _) => Outcome::Done,
            (true, 0) => Outcome::Missing,
            (true, _) => Outcome::Found,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const DIALECT: Dialect = Dialect {
        marker: |number| format!("${}", number + 1),
        literal: Some(|bytes, out| {
            out.push(b'\'');
            out.extend_from_slice(bytes);
            out.push(b'\'');
        }),
    };

    fn compiled(table: Value) -> Result<Custom, OptionFault> {
        compile("own", table.as_object().expect("a table"), &DIALECT)
    }

    #[test]
    fn arguments_are_bound_in_prepared_statements_and_quoted_in_text() {
        let table = json!({ "statements": ["SELECT * FROM t WHERE k = $key AND n < $mod(10)"] });
        let custom = compiled(table).expect("right");
        let statement = &custom.statements[0];
        assert_eq!(statement.sql, "SELECT * FROM t WHERE k = $1 AND n < $2");
        let operation = Operation {
            key: b"a".to_vec(),
            index: 13,
            ..Operation::default()
        };
        let mut text = Vec::new();
        statement.write(&operation, &DIALECT, &mut text);
        assert_eq!(text, b"SELECT * FROM t WHERE k = 'a' AND n < 3");
    }

    #[test]
    fn an_argument_inside_a_name_needs_the_text_protocol() {
        let fault = compiled(json!({ "statements": ["SELECT 1 FROM t$mod(26)"] })).err();
        assert!(fault.expect("a fault").help.contains("prepared = false"));
        let text =
            compiled(json!({ "statements": ["SELECT 1 FROM t$mod(26)"], "prepared": false }));
        let mut out = Vec::new();
        text.expect("right").statements[0].write(&Operation::default(), &DIALECT, &mut out);
        assert_eq!(out, b"SELECT 1 FROM t0");
    }

    #[test]
    fn the_first_value_must_be_as_expected() {
        let custom = compiled(json!({ "statements": ["SELECT 1"], "expect": "^\\d+$" }));
        let custom = custom.expect("right");
        let mut reply = Reply::default();
        let mut answer = Answer {
            has_columns: true,
            ..Answer::default()
        };
        assert!(custom.judge(&answer, &mut reply).is_err());
        answer.row(Some(b"12"), custom.wants_first(&reply));
        assert_eq!(custom.judge(&answer, &mut reply), Ok(Outcome::Found));
        answer.first = Some(b"x".to_vec());
        let failure = custom.judge(&answer, &mut reply).expect_err("no number");
        assert_eq!(failure.class, ErrorClass::UnexpectedReply);
    }
}
