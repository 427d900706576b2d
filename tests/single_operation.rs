//! One operation by itself, outside of any phase: its first value, and why it failed.

#![cfg(feature = "sqlite")]

use dbbench::driver::Driver;
use dbbench::driver::spec::{Endpoint, Options, Transport};
use dbbench::driver::sqlite::Sqlite;
use dbbench::driver::{CustomOperation, Target};
use dbbench::engine::single::execute;
use dbbench::op::Verb;
use dbbench::op::{Failure, Operation};
use serde_json::json;
use std::time::Duration;

fn run(statements: &[&str]) -> Result<Option<String>, Failure> {
    let directory = tempfile::tempdir().expect("a directory");
    let table = json!({ "statements": statements });
    let operation = CustomOperation {
        name: "own".to_owned(),
        table: table.as_object().expect("a table").clone(),
    };
    let endpoint = Endpoint {
        text: String::new(),
        label: "embedded".to_owned(),
        transport: Transport::Directory {
            path: directory.path().to_owned(),
        },
    };
    let driver = Sqlite::open(Target {
        name: "sqlite".to_owned(),
        endpoints: vec![endpoint.clone()],
        options: Options::new(Sqlite::spec().options, serde_json::Map::new()),
        operations: vec![Some(operation)],
        directory: directory.path().to_owned(),
        connect_timeout: Duration::from_secs(5),
    })?;
    let operation = Operation {
        verb: Verb::Custom(0),
        ..Operation::default()
    };
    execute(&driver, &[endpoint], &operation, Duration::from_secs(5))
}

#[test]
fn the_first_value_of_the_answer_is_returned() {
    let value = run(&[
        "CREATE TABLE t (a, b)",
        "INSERT INTO t VALUES (42, 1), (43, 2)",
        "SELECT a, b FROM t ORDER BY a",
    ]);
    assert_eq!(value, Ok(Some("42".to_owned())));
}

#[test]
fn what_gives_no_row_has_no_value_and_what_fails_says_why() {
    assert_eq!(run(&["CREATE TABLE t (a)"]), Ok(None));
    let failure = run(&["SELECT nothing FROM nowhere"]).expect_err("no such table");
    assert!(failure.message.contains("nowhere"), "{failure}");
}
