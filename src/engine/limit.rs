//! The limit of an operation: one timer per session, armed only when an operation is not ready at once.
//!
//! Arming a timer per operation would cost as much as measuring it. So the timer is left where an earlier operation set
//! it; when it fires early, it is moved to the limit of the operation in flight.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::time::{Instant as TokioInstant, Sleep, sleep_until};

/// A reusable timer.
pub struct Limit {
    sleep: Option<Pin<Box<Sleep>>>,
    /// Whether the timer is known to wake this session.
    registered: bool,
}

/// How an operation ended: its value, and whether it had to wait.
pub struct Ended<T> {
    /// None: over the limit.
    pub value: Option<T>,
    pub waited: bool,
}

impl Limit {
    pub fn new() -> Limit {
        Limit {
            sleep: None,
            registered: false,
        }
    }

    /// Runs `future` to its end or until `timeout` after `started`; then it must not be polled again.
    pub async fn until<T>(
        &mut self,
        started: Instant,
        timeout: Duration,
        mut future: impl Future<Output = T> + Unpin,
    ) -> Ended<T> {
        let mut waited = false;
        poll_fn(|context| {
            if let Poll::Ready(value) = Pin::new(&mut future).poll(context) {
                return Poll::Ready(Ended {
                    value: Some(value),
                    waited,
                });
            }
            waited = true;
            match self.is_over(started + timeout, context) {
                true => Poll::Ready(Ended {
                    value: None,
                    waited,
                }),
                false => Poll::Pending,
            }
        })
        .await
    }

    fn is_over(&mut self, deadline: Instant, context: &mut Context<'_>) -> bool {
        let at = TokioInstant::from_std(deadline);
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(at)));
        // An earlier operation's timer may be set beyond this one's limit only where limits differ; then move it.
        if sleep.deadline() > at {
            sleep.as_mut().reset(at);
            self.registered = false;
        }
        loop {
            if self.registered && !sleep.is_elapsed() {
                return false;
            }
            if sleep.as_mut().poll(context).is_pending() {
                self.registered = true;
                return false;
            }
            if Instant::now() >= deadline {
                return true;
            }
            sleep.as_mut().reset(at);
            self.registered = false;
        }
    }
}

impl Default for Limit {
    fn default() -> Self {
        Limit::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime for the test")
            .block_on(future)
    }

    #[test]
    fn what_is_ready_at_once_arms_no_timer() {
        let mut limit = Limit::new();
        let ended = run(limit.until(Instant::now(), Duration::ZERO, pin!(async { 7 })));
        assert_eq!((ended.value, ended.waited), (Some(7), false));
        assert!(limit.sleep.is_none());
    }

    /// An early timer left by one operation must end a later operation neither early nor never.
    #[test]
    fn a_reused_timer_keeps_to_the_limit_of_the_operation_in_flight() {
        run(async {
            let mut limit = Limit::new();
            for milliseconds in [20, 60, 30] {
                let quick = pin!(tokio::time::sleep(Duration::from_millis(5)));
                let ended = limit
                    .until(Instant::now(), Duration::from_millis(milliseconds), quick)
                    .await;
                assert!(ended.value.is_some() && ended.waited);
                let started = Instant::now();
                let timeout = Duration::from_millis(milliseconds);
                let ended = limit
                    .until(started, timeout, std::future::pending::<()>())
                    .await;
                assert!(ended.value.is_none());
                assert!(started.elapsed() >= timeout);
            }
        });
    }
}
