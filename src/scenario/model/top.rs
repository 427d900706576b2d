//! Rows of the top level.

use super::{
    CLIENT, CONDITION, DATASET, OUTPUTS, PHASE, PROBE, RUNS, SCALAR, SERVER, SWEEP, TABLE, TARGET,
    TEXTS, WORKLOAD,
};
use crate::rows::{Kind, NameKind, Row};

/// Keys of the top level that `[quick]` may not change.
pub const NOT_IN_QUICK: &[&str] = &["schema", "name", "extends", "quick"];

pub const TOP: &[Row] = &[
    Row::new(
        "schema",
        Kind::Integer { min: 1, max: 1 },
        "Version of the language; this is `schema = 1`.",
    )
    .required(),
    Row::new(
        "name",
        Kind::Name(NameKind::Scenario),
        "Name of the scenario, such as `name = \"kvs-40k\"`; its results go to `results/<name>/`.",
    )
    .required(),
    Row::new("title", Kind::Text, "One line for reports."),
    Row::new(
        "description",
        Kind::Text,
        "What is measured and why, for reports.",
    ),
    Row::new(
        "source",
        Kind::Text,
        "Citation of the experiment that this repeats.",
    ),
    Row::new(
        "extends",
        TEXTS,
        "Files merged underneath, left to right, relative to this file. Tables merge; everything else replaces, and so do a `mix`, a `size` and a `distribution` as a whole.",
    ),
    Row::new(
        "hardware",
        Kind::Map(NameKind::Free, &NOTE),
        "Free notes on machines and network, for the manifest and reports: strings, numbers, lists.",
    ),
    Row::new(
        "labels",
        Kind::Map(NameKind::Variable, &SCALAR),
        "What distinguishes this invocation from others; also `--label name=value`. A column `label_<name>` of the results.",
    ),
    Row::new(
        "vars",
        Kind::Map(NameKind::Variable, &Kind::Any),
        "Values for templates; `--set name=value` replaces one.",
    ),
    Row::new(
        "sweep",
        SWEEP,
        "The axes; the runs are their product, in this order.",
    ),
    Row::new(
        "runs",
        Kind::Table(RUNS),
        "How often and in what order the runs are done.",
    ),
    Row::new(
        "client",
        Kind::Table(CLIENT),
        "The client: worker threads, CPUs, windows.",
    ),
    Row::new(
        "outputs",
        Kind::Table(OUTPUTS),
        "Further files of the run directory.",
    ),
    Row::new(
        "servers",
        Kind::Map(NameKind::Server, &Kind::Table(SERVER)),
        "Servers that dbbench starts, samples and stops.",
    ),
    Row::new(
        "targets",
        Kind::Map(NameKind::Server, &Kind::Table(TARGET)),
        "What is measured.",
    ),
    Row::new(
        "datasets",
        Kind::Map(NameKind::Server, &Kind::Table(DATASET)),
        "What is loaded once and used by many runs; a target names its `dataset`.",
    ),
    Row::new(
        "workload",
        Kind::Table(WORKLOAD),
        "The data: keys and values.",
    ),
    Row::new(
        "operations",
        Kind::Map(
            NameKind::Variable,
            &Kind::Map(NameKind::Free, &Kind::Map(NameKind::Free, &Kind::Any)),
        ),
        "Operations of the scenario's own, each given per driver: `increment = { redis = { command = [\"INCR\", \"counter\"] } }`.",
    ),
    Row::new(
        "phases",
        Kind::List(&Kind::Table(PHASE)),
        "What happens in a run, in order: each a `[[phases]]`.",
    )
    .required(),
    Row::new(
        "probes",
        Kind::List(&Kind::Table(PROBE)),
        "Single values that are read on the way: each a `[[probes]]`.",
    ),
    Row::new(
        "conditions",
        Kind::List(&Kind::Table(CONDITION)),
        "What must hold of a run, or it is invalid: each a `[[conditions]]`.",
    ),
    Row::new(
        "tables",
        Kind::List(&Kind::Table(TABLE)),
        "CSV tables made of the results.",
    ),
    Row::new(
        "quick",
        Kind::Map(NameKind::Free, &Kind::Any),
        "Merged over the scenario by `--quick`: fewer operations, fewer values, so that it can be tried in seconds.",
    ),
];

const NOTE: Kind = Kind::OneOf(&[
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
    Kind::List(&SCALAR),
]);
