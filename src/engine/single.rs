//! One operation by itself, outside of any phase: what prepares and cleans up, and what reads a probe. Nothing is measured.

use crate::driver::spec::Endpoint;
use crate::driver::{Driver, Session, Worker};
use crate::op::{ErrorClass, Failure, Operation, Outcome, Reply};
use crate::units::format_duration;
use std::time::Duration;

/// Opens a session, executes the operation, returns the first value of the answer. A success without a value is `None`.
pub fn execute<D: Driver>(
    driver: &D,
    endpoints: &[Endpoint],
    operation: &Operation,
    limit: Duration,
) -> Result<Option<String>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(ErrorClass::Client, error.to_string()))?;
    let worker = {
        let _inside = runtime.enter();
        driver.worker()?
    };
    let mut reply = Reply {
        wants_text: true,
        ..Reply::default()
    };
    let outcome = runtime.block_on(async {
        let all = async {
            let mut session = worker.session(endpoints).await?;
            Ok(session.execute(operation, &mut reply).await)
        };
        match tokio::time::timeout(limit, all).await {
            Ok(result) => result,
            Err(_) => Ok(Outcome::TimedOut),
        }
    })?;
    match outcome {
        Outcome::Found | Outcome::Missing | Outcome::Done => Ok(reply.text.map(String::from)),
        Outcome::Failed(failure) => Err(*failure),
        Outcome::TimedOut | Outcome::Late => Err(Failure::new(
            ErrorClass::Timeout,
            format!("no answer within {}", format_duration(limit)),
        )),
        Outcome::WrongValue => Err(Failure::new(
            ErrorClass::WrongValue,
            "the value is not what was written",
        )),
    }
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;
    use crate::driver::spec::{Options, Transport};
    use crate::driver::sqlite::Sqlite;
    use crate::driver::{CustomOperation, Target};
    use crate::op::Verb;
    use serde_json::json;

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
}
