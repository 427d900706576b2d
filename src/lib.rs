//! dbbench: a declarative benchmark engine for data stores.
//!
//! The pipeline, and a type for each stage:
//!
//! ```text
//! text --parse--> Document --expand--> Plan (runs) --execute--> Records --write--> run directory --read--> tables
//! scenario/       scenario/            plan/        engine/       results/                      tables/
//! ```
//!
//! The vocabulary, one idea one word: a *scenario* is a TOML file; its *sweep* is a product of *axes*, whose points, times
//! the *repeats*, are the *runs*. A run drives one *target* (a store, by one *driver*) through *phases*; a phase has
//! *groups* of client *threads*, each with a *session* of its own; a *worker* is an OS thread that carries sessions.
//! Results come in *windows* of time. `tests/architecture` holds who may import whom.

pub mod arguments;
pub mod cli;
pub mod clock;
pub mod diag;
pub mod driver;
pub mod engine;
pub mod measure;
pub mod op;
pub mod plan;
pub mod random;
pub mod registry;
pub mod report;
pub mod results;
pub mod rows;
pub mod run;
pub mod scenario;
pub mod server;
pub mod tables;
pub mod template;
pub mod units;
pub mod workload;
