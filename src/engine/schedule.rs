//! Schedules: which operation a session does next, and when it was meant to start. Here the closed loop, by count and by
//! duration; an open loop and a recorded replay are further variants, and operations already carry an intended start.

use super::event::{Pass, SeatPlan};
use crate::plan::Share;
use std::time::{Duration, Instant};

/// The next operation of a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Next {
    pub index: u64,
    /// None in a closed loop, where an operation starts when the one before it has ended.
    pub intended_start: Option<Instant>,
}

/// A closed loop: indices `next`, `next + step`, ... below `end`, as long as the pass is open.
#[derive(Clone, Debug)]
pub struct Schedule {
    next: u64,
    step: u64,
    end: u64,
    until: Option<Instant>,
}

impl Schedule {
    pub fn closed(seat: &SeatPlan, pass: &Pass) -> Schedule {
        let (thread, threads) = (u64::from(seat.thread), u64::from(seat.threads));
        let interleaved = |end| Schedule {
            next: thread,
            step: threads,
            end,
            until: pass.until,
        };
        match (pass.until, seat.operations) {
            (Some(_), _) | (None, None) => interleaved(u64::MAX),
            (None, Some(operations)) => match seat.share {
                Share::Interleaved => interleaved(operations),
                Share::Blocks => {
                    let (start, end) = block(operations, thread, threads);
                    Schedule {
                        next: start,
                        step: 1,
                        end,
                        until: None,
                    }
                }
            },
        }
    }

    #[inline]
    pub fn next(&mut self) -> Option<Next> {
        if self.next >= self.end {
            return None;
        }
        let index = self.next;
        self.next += self.step;
        Some(Next {
            index,
            intended_start: None,
        })
    }

    /// Whether an operation may still start at this moment.
    #[inline]
    pub fn is_open(&self, at: Instant) -> bool {
        self.until.is_none_or(|until| at < until)
    }
}

impl Schedule {
    /// How much of `limit` is left to the pass.
    pub fn left(&self, at: Instant, limit: Duration) -> Duration {
        let left = |until: Instant| until.saturating_duration_since(at).min(limit);
        self.until.map_or(limit, left)
    }
}

/// First and one-past-last index of thread t of T: floor(N/T) in a row, the first N mod T threads one more.
fn block(operations: u64, thread: u64, threads: u64) -> (u64, u64) {
    let (each, more) = (operations / threads, operations % threads);
    let start = thread * each + thread.min(more);
    (start, start + each + u64::from(thread < more))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_every_operation_once_and_differ_by_at_most_one() {
        for threads in 1..=17u64 {
            let mut expected = 0;
            for thread in 0..threads {
                let (start, end) = block(100, thread, threads);
                assert_eq!(start, expected);
                assert!(end - start == 100 / threads || end - start == 100 / threads + 1);
                expected = end;
            }
            assert_eq!(expected, 100);
        }
    }

    #[test]
    fn fewer_operations_than_threads_leave_some_threads_idle() {
        assert_eq!(block(2, 0, 4), (0, 1));
        assert_eq!(block(2, 3, 4), (2, 2));
    }
}
