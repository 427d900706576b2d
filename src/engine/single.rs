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
