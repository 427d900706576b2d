//! Templates: strings with `{{ }}`, their four stages, and what is kept of one until its stage comes.
//!
//! Knows minijinja and the names a stage allows; nothing of runs, servers or tables. A string of the run stage becomes
//! `Text::Deferred` and is rendered by whoever implements `RunContext`. `scan` looks at a string without evaluating it,
//! `engine` evaluates, `deferred` renders what waited for ports and directories, `result` evaluates a table's expression.

mod deferred;
mod engine;
mod result;
mod scan;

pub use deferred::render_json;
pub use engine::{Engine, Fault, Names, from_json, to_json};
pub use result::evaluate;
pub use scan::{
    Scan, find_word, is_template, names_of_expression, nested_names, scan, whole_expression,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Names that only a running run knows. `port`, `address`, `dir`, `env` and `secret` are functions, the rest values.
pub const RUN_NAMES: [&str; 8] = [
    "port",
    "address",
    "dir",
    "instance",
    "dataset_file",
    "env",
    "secret",
    "run_dir",
];

/// Functions that every stage has; `file` reads relative to the file that says it.
pub const FUNCTIONS: [&str; 4] = ["file", "range", "kib", "mib"];

/// A string of `[servers]`, `[targets]` or `[operations]`: final, or waiting for ports and directories.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Text {
    Plain(String),
    Deferred(Deferred),
}

/// A run-stage template: its source, and the plan-stage values it reads. Both are hashed with the plan, so the plan is
/// the same on every machine and holds no secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Deferred {
    pub template: String,
    pub values: BTreeMap<String, serde_json::Value>,
}

/// What run-stage templates may ask for. Errors are sentences that read after the template's place.
pub trait RunContext {
    /// The reserved port of a server, by the name of the port (`main` where none is said).
    fn port(&self, server: &str, name: &str) -> Result<u16, String>;
    fn address(&self, server: &str, instance: Option<u32>) -> Result<String, String>;
    fn directory(&self, server: &str, instance: Option<u32>) -> Result<String, String>;
    /// The instance being started, from 1.
    fn instance(&self) -> Option<u32>;
    /// Where an artifact of a dataset is.
    fn dataset_file(&self, dataset: &str, file: &str) -> Result<String, String>;
    fn run_directory(&self) -> Result<String, String>;
    /// A variable of the environment; its value goes into the manifest.
    fn environment(&self, name: &str) -> Result<String, String>;
    /// A variable of the environment that is redacted wherever it would be shown or stored.
    fn secret(&self, name: &str) -> Result<String, String>;
}

/// Which of a server's `count` instances a template means by `address('x', i)` or `dir('x', i)`: the one it names, else the
/// server's `own` whose strings are rendered, else the only one. `function` is its name, for the sentence that refuses.
pub fn which_instance(
    server: &str,
    named: Option<u32>,
    own: Option<u32>,
    count: u32,
    function: &str,
) -> Result<u32, String> {
    match named.or(own) {
        Some(instance) if (1..=count).contains(&instance) => Ok(instance),
        Some(other) if count == 1 => Err(format!(
            "the server `{server}` has one instance, and no number {other}"
        )),
        Some(other) => Err(format!(
            "the server `{server}` has {count} instances, and no number {other}"
        )),
        None if count == 1 => Ok(1),
        None => Err(format!(
            "the server `{server}` has {count} instances; say which: `{function}('{server}', 1)`"
        )),
    }
}
