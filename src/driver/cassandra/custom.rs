//! Operations of the scenario's own: CQL statements, prepared, their arguments bound.

use crate::driver::CustomOperation;
use crate::driver::spec::OptionFault;
use crate::driver::sql::{self, Custom, Dialect};
use crate::op::{ErrorClass, Failure};
use crate::rows::{Kind, Row};
use serde_json::{Map, Value, json};

/// The rows of `[operations.NAME] cassandra = { ... }`.
pub const OPERATION: &[Row] = &[
    Row::new(
        "cql",
        Kind::List(&Kind::Text),
        "CQL statements, prepared, executed in order, each answered whole before the next. `$key`, `$value` and their \
         like are bound as values of the column's type. SELECTs have `read_consistency`, all others `write_consistency`.",
    )
    .required(),
    Row::new(
        "idempotent",
        Kind::Bool,
        "Whether the statements may be executed twice without harm; only then are they repeated after an attempt whose \
         end is not known.",
    )
    .default("false"),
    Row::new(
        "expect",
        Kind::Regex,
        "What the first column of the first row of the last statement that gives rows must match.",
    ),
];

const DIALECT: Dialect = Dialect {
    marker: |_| "?".to_owned(),
    literal: None,
};

/// A compiled operation, shared by all sessions.
pub struct Own {
    pub custom: Custom,
    pub idempotent: bool,
}

pub fn check(table: &Map<String, Value>) -> Result<(), OptionFault> {
    compile("own", table).map(drop)
}

/// All operations of a target that have an entry for this driver.
pub fn compile_all(operations: &[Option<CustomOperation>]) -> Result<Vec<Option<Own>>, Failure> {
    let compiled = operations.iter().map(|operation| {
        let Some(operation) = operation else {
            return Ok(None);
        };
        let compiled = compile(&operation.name, &operation.table).map_err(|fault| {
            let message = format!("operation `{}`: {}", operation.name, fault.message);
            Failure::new(ErrorClass::Client, message)
        });
        compiled.map(Some)
    });
    compiled.collect()
}

fn compile(name: &str, table: &Map<String, Value>) -> Result<Own, OptionFault> {
    let mut statements = Map::new();
    let cql = table.get("cql").cloned().unwrap_or_else(|| json!([]));
    statements.insert("statements".to_owned(), cql);
    if let Some(expect) = table.get("expect") {
        statements.insert("expect".to_owned(), expect.clone());
    }
    let custom = sql::compile(name, &statements, &DIALECT).map_err(own_words)?;
    Ok(Own {
        custom,
        idempotent: table.get("idempotent").and_then(Value::as_bool) == Some(true),
    })
}

/// A fault of the statements as one of `cql`.
fn own_words(fault: OptionFault) -> OptionFault {
    if fault.key != "statements" {
        return fault;
    }
    let help = fault.help.replace(
        "statements = [\"SELECT count(*) FROM t\"]",
        "cql = [\"SELECT v FROM t WHERE k = $key\"]",
    );
    OptionFault {
        key: "cql".to_owned(),
        help,
        ..fault
    }
}

/// Whether a statement only reads.
pub fn reads(cql: &str) -> bool {
    let word = cql.trim_start().get(..6);
    word.is_some_and(|word| word.eq_ignore_ascii_case("select"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compiled(table: Value) -> Result<Own, OptionFault> {
        compile("own", table.as_object().expect("a table"))
    }

    #[test]
    fn arguments_become_markers_of_prepared_statements() {
        let table = json!({ "cql": ["UPDATE t SET n = n + 1 WHERE k = $key", "SELECT n FROM t"] });
        let own = compiled(table).expect("right");
        let texts: Vec<&str> = own
            .custom
            .statements
            .iter()
            .map(|s| s.sql.as_str())
            .collect();
        assert_eq!(
            texts,
            ["UPDATE t SET n = n + 1 WHERE k = ?", "SELECT n FROM t"]
        );
        assert_eq!([reads(texts[0]), reads(texts[1])], [false, true]);
        assert!(own.custom.prepared && !own.custom.transaction && !own.idempotent);
    }

    #[test]
    fn faults_are_those_of_cql() {
        let fault = |table| compiled(table).err().expect("a fault");
        assert_eq!(fault(json!({ "cql": [] })).key, "cql");
        let inside = fault(json!({ "cql": ["SELECT 1 FROM t$mod(26)"] }));
        assert_eq!(inside.key, "cql");
        assert!(!inside.help.contains("prepared"), "{}", inside.help);
        let expect = fault(json!({ "cql": ["SELECT 1"], "expect": "(" }));
        assert_eq!(expect.key, "expect");
    }
}
