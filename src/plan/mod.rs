//! The plan: every run of a scenario, fully decided, before anything starts.
//!
//! Pure and deterministic: the same scenario gives the same plan and the same hash on every machine. What all runs share is
//! kept once, what differs per run is small, so 100,000 runs are cheap. `model` is the data, `expand` makes the runs,
//! `resolve` evaluates what each needs, `estimate` says what it will cost, `describe` prints it.

mod coerce;
mod columns;
mod dataset;
pub mod describe;
pub mod estimate;
pub mod expand;
mod extract;
mod faults;
pub mod file;
pub mod hash;
pub mod ids;
mod injection;
mod input;
mod inspect;
mod make;
pub mod model;
mod nodes;
pub mod only;
mod phase;
mod placeholder;
mod probe;
mod resolve;
mod restart;
mod scope;
mod section;
mod server;
mod suit;
mod sweep;
mod tables;
mod target;
mod warnings;
mod workload;

pub use estimate::{Refusal, fits};
pub use make::{Made, make};
pub use model::*;
