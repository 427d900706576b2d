//! Whole campaigns: the real program on real servers and stores, interrupted, killed, starved of disk, refused, and what
//! stands in its run directory afterwards. Known latencies are in `known_truth`.

mod around;
mod datasets;
#[path = "../support/guarded.rs"]
mod guarded;
mod interrupted;
mod kit;
mod late;
mod lines;
mod memory;
mod misfortune;
mod replay;
mod servers;
#[path = "../support/mod.rs"]
mod support;
mod texts;
