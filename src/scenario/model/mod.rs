//! The rows of the language, version 1: every key that a scenario may hold, in the order of the documentation.
//!
//! Only data. Defaults stand in `scenario/defaults.toml`, so that each is said once and with its reason. A key that is not
//! built has no row: a key that does nothing does not exist.

mod datasets;
mod phases;
mod probes;
mod servers;
mod sweep;
mod tables;
mod targets;
mod top;
mod workload;

pub use datasets::DATASET;
pub use phases::{GROUP, PHASE};
pub use probes::{CONDITION, PROBE};
pub use servers::{MOST_INSTANCES, SERVER};
pub use sweep::{AXIS, CLIENT, OUTPUTS, RUNS, SWEEP};
pub use tables::TABLE;
pub use targets::TARGET;
pub use top::{NOT_IN_QUICK, TOP};
pub use workload::{KEYS, VALUES, WORKLOAD};

use crate::rows::Kind;

/// Any count that something would happen for.
const COUNT: Kind = Kind::Integer {
    min: 1,
    max: 1_000_000_000_000_000,
};
const TEXTS: Kind = Kind::List(&Kind::Text);
const DURATION: Kind = Kind::Duration { zero: false };
const DURATION_OR_ZERO: Kind = Kind::Duration { zero: true };
/// A string, number or boolean.
const SCALAR: Kind = Kind::OneOf(&[
    Kind::Text,
    Kind::Integer {
        min: i64::MIN,
        max: i64::MAX,
    },
    Kind::Number {
        min: f64::MIN,
        max: f64::MAX,
    },
    Kind::Bool,
]);
