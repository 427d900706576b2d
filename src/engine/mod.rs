//! The engine: drives one phase of a run with workers, sessions and schedules, and hands over what was measured.
//!
//! `worker` is the hot path; `entry` pairs it with a driver; `schedule` says which operation is next and when; `phase` deals
//! sessions to workers, starts them together and joins their results; `event` is what workers and coordinator tell each other.

pub mod entry;
pub mod event;
mod limit;
mod merge;
pub mod phase;
mod schedule;
mod seat;
pub mod single;
pub mod worker;
