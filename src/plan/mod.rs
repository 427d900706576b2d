//! The plan: every run of a scenario, fully decided, before anything starts.
//!
//! Pure and deterministic: the same scenario gives the same plan and the same hash on every machine. What all runs share is
//! kept once, what differs per run is small, so 100,000 runs are cheap. `model` is the data, `expand` makes the runs,
//! `resolve` evaluates what each needs, `estimate` says what it will cost, `describe` prints it.

pub mod model;

pub use model::*;
