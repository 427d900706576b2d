//! The `null` driver: every operation succeeds at once, or after a given time. What a run on it shows is the cost of
//! dbbench itself, and a phase of it with a delay has latencies that are known beforehand.
//!
//! Under `verify` it gives back the value that was expected.

mod control;
mod spec;

use crate::driver::spec::{DriverSpec, Endpoint};
use crate::driver::{Control, Driver, Session, Target, Worker};
use crate::op::{ErrorClass, Failure, Operation, Outcome, Reply, Verb, no_statements};
use std::time::Duration;

pub struct Null {
    delay: Duration,
}

impl Driver for Null {
    type Worker = NullWorker;

    fn spec() -> &'static DriverSpec {
        &spec::SPEC
    }

    fn open(target: Target) -> Result<Self, Failure> {
        let delay = target.options.duration("delay").unwrap_or_default();
        Ok(Null { delay })
    }

    fn worker(&self) -> Result<NullWorker, Failure> {
        Ok(NullWorker { delay: self.delay })
    }

    fn control(&self, _: &Endpoint) -> Result<Box<dyn Control>, Failure> {
        Ok(Box::new(control::NullControl { delay: self.delay }))
    }
}

pub struct NullWorker {
    delay: Duration,
}

impl Worker for NullWorker {
    type Session = NullSession;

    async fn session(&self, _: &[Endpoint]) -> Result<NullSession, Failure> {
        Ok(NullSession { delay: self.delay })
    }
}

pub struct NullSession {
    delay: Duration,
}

impl Session for NullSession {
    async fn execute(&mut self, operation: &Operation, reply: &mut Reply) -> Outcome {
        // Without a delay the future is ready when first polled, and no timer is touched.
        if !self.delay.is_zero() {
            // Boxed, so that the future of an operation without a delay stays small.
            Box::pin(tokio::time::sleep(self.delay)).await;
        }
        match operation.verb {
            Verb::Get => reply.found(operation, &operation.value),
            Verb::Scan => Outcome::Found,
            Verb::Custom(_) => Outcome::from(Failure::new(
                ErrorClass::Client,
                "null takes no operations of the user's own",
            )),
            Verb::Statement => Outcome::from(no_statements("null")),
            _ => Outcome::Done,
        }
    }

    fn connections(&self) -> u32 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::spec::{Options, Transport};
    use serde_json::{Map, Value};
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};
    use std::time::Instant;

    fn session(delay: &str) -> NullSession {
        let mut values = Map::new();
        values.insert("delay".to_owned(), Value::from(delay));
        let driver = Null::open(Target {
            name: "null".to_owned(),
            endpoints: Vec::new(),
            options: Options::new(spec::SPEC.options, values),
            operations: Vec::new(),
            directory: std::path::PathBuf::new(),
            connect_timeout: Duration::from_secs(1),
        })
        .expect("null opens");
        let endpoint = Endpoint {
            text: String::new(),
            label: String::new(),
            transport: Transport::Nothing,
        };
        let mut control = driver.control(&endpoint).expect("null has a control");
        control.ready(Duration::ZERO).expect("null is ready");
        NullSession {
            delay: driver.worker().expect("null has workers").delay,
        }
    }

    #[test]
    fn without_a_delay_the_first_poll_is_the_last() {
        let mut session = session("0s");
        for verb in Verb::BUILT_IN {
            let operation = Operation {
                verb,
                ..Operation::default()
            };
            let mut reply = Reply::default();
            let future = pin!(session.execute(&operation, &mut reply));
            let polled = future.poll(&mut Context::from_waker(Waker::noop()));
            let Poll::Ready(outcome) = polled else {
                panic!("{verb:?} was pending");
            };
            assert!(outcome.succeeded(), "{verb:?}: {outcome:?}");
        }
    }

    #[test]
    fn a_delay_lets_other_sessions_of_the_thread_go_on() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime can be made");
        let (mut one, mut two) = (session("40ms"), session("40ms"));
        let operation = Operation::default();
        let (mut first, mut second) = (Reply::default(), Reply::default());
        let start = Instant::now();
        runtime.block_on(async {
            tokio::join!(
                one.execute(&operation, &mut first),
                two.execute(&operation, &mut second)
            )
        });
        let elapsed = start.elapsed();
        assert!(elapsed >= Duration::from_millis(40), "{elapsed:?}");
        assert!(elapsed < Duration::from_millis(75), "{elapsed:?}");
    }

    #[test]
    fn the_expected_value_comes_back() {
        let mut session = session("0s");
        let operation = Operation {
            verify: true,
            value: b"expected".to_vec(),
            ..Operation::default()
        };
        let mut reply = Reply::default();
        let polled = {
            let future = pin!(session.execute(&operation, &mut reply));
            future.poll(&mut Context::from_waker(Waker::noop()))
        };
        assert_eq!(polled, Poll::Ready(Outcome::Found));
        assert_eq!(reply.value_length, Some(8));
    }
}
