//! The data and the operations of a workload: which keys, which values, in which mix, as functions of an index.
//!
//! Operation i is a function of (seed, repeat, phase, group, i), so any number of threads gives the same set of
//! operations. Knows nothing of threads, drivers or time. `generator` is what the engine calls.

pub mod distribution;
pub mod generator;
pub mod keys;
pub mod mix;
pub mod querylog;
pub mod spec;
pub mod values;
