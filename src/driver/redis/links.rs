//! What a cluster's sessions keep of its nodes: the slots as a thread knows them, and a session's connection to each node.

use super::session::Session;
use super::slots::Slots;
use crate::driver::spec::Endpoint;
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

/// The slots are asked at most so often by one thread.
const ASKED_EVERY: Duration = Duration::from_millis(50);

/// Pauses before a node that did not let the session in is tried again grow up to this.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// What the sessions of one thread know of the cluster.
pub struct Map {
    /// The target's endpoints: nodes that know the others.
    pub seeds: Vec<Endpoint>,
    pub slots: RefCell<Slots>,
    /// A node said, or was found, to be no owner any more.
    pub stale: Cell<bool>,
    pub asked: Cell<Option<Instant>>,
}

impl Map {
    pub fn new(seeds: Vec<Endpoint>) -> Map {
        Map {
            seeds,
            slots: RefCell::new(Slots::new()),
            stale: Cell::new(true),
            asked: Cell::new(None),
        }
    }

    pub fn is_due(&self) -> bool {
        self.stale.get()
            && self
                .asked
                .get()
                .is_none_or(|at| at.elapsed() >= ASKED_EVERY)
    }
}

/// The connection to one node.
#[derive(Default)]
pub struct Link {
    pub session: Option<Session>,
    /// It had a connection before.
    pub was_open: bool,
    /// An answer is due. If it still is when the session is next used, the operation was given up.
    pub busy: bool,
    /// Operations answered since the engine last asked.
    pub answered: u64,
    /// Connections in a row that got no answer.
    pub misses: u32,
    /// Not connected again before.
    pub retry_at: Option<Instant>,
}

impl Link {
    /// Lets go of the connection; the next one is made after a pause that grows while nothing is answered.
    pub fn lose(&mut self) {
        self.session = None;
        self.busy = false;
        let pause = Duration::from_millis(1) * (1 << self.misses.min(7)) / 2;
        self.misses += 1;
        // The first loss after an answer costs no pause.
        let pause = if self.misses == 1 {
            Duration::ZERO
        } else {
            pause.min(LONGEST_PAUSE)
        };
        self.retry_at = Some(Instant::now() + pause);
    }

    pub fn got_answer(&mut self) {
        self.busy = false;
        self.misses = 0;
        self.answered += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_until_something_is_answered() {
        let mut link = Link::default();
        let mut pause = || {
            let now = Instant::now();
            link.lose();
            link.retry_at
                .map_or(Duration::ZERO, |at| at.saturating_duration_since(now))
        };
        assert!(pause() < Duration::from_micros(900));
        assert!(pause() >= Duration::from_millis(1));
        for _ in 0..10 {
            pause();
        }
        assert!(pause() >= LONGEST_PAUSE);
        assert!(pause() < LONGEST_PAUSE * 2);
        link.got_answer();
        let now = Instant::now();
        link.lose();
        assert!(
            link.retry_at
                .is_some_and(|at| at < now + Duration::from_millis(1))
        );
    }
}
