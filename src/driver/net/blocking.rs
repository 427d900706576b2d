//! Runs a connection's futures where there is no event loop: `driver::Control` is blocking and keeps to a limit.
//!
//! Must not be called from inside a runtime; the cold side never is.

use crate::op::{ErrorClass, Failure};
use std::future::Future;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

pub struct Blocking {
    runtime: Runtime,
}

impl Blocking {
    /// Errors: `client`, where the system has no file descriptor left for an event loop.
    pub fn new() -> Result<Blocking, Failure> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| {
                Failure::new(
                    ErrorClass::Client,
                    format!("cannot make an event loop: {error}"),
                )
            })?;
        Ok(Blocking { runtime })
    }

    /// Drives the future to its end, or to a `timeout` failure after `limit`. `what` says what was waited for.
    pub fn run<T>(
        &self,
        limit: Duration,
        what: &str,
        future: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let limited = async { tokio::time::timeout(limit, future).await };
        self.runtime.block_on(limited).unwrap_or_else(|_| {
            let mut failure = Failure::new(
                ErrorClass::Timeout,
                format!("no answer to {what} within {limit:?}"),
            );
            failure.unanswered = true;
            failure.broken = true;
            Err(failure)
        })
    }
}
