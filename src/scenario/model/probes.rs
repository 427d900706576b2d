//! Rows of `[[probes]]` and `[[conditions]]`.

use super::{DURATION, TEXTS};
use crate::rows::{Kind, NameKind, Row};

pub const PROBE: &[Row] = &[
    Row::new(
        "name",
        Kind::Name(NameKind::Variable),
        "Unique; tables and conditions read it as `probe.NAME`.",
    )
    .required(),
    Row::new(
        "after",
        Kind::Text,
        "The phase after which it is read, or `stop`: when the run's servers have ended and flushed.",
    ),
    Row::new(
        "across",
        Kind::Text,
        "The phase before and after which it is read: the value is the difference.",
    ),
    Row::new(
        "when",
        Kind::Bool,
        "False: the probe is left out of the run; its cells are empty.",
    ),
    Row::new(
        "unit",
        Kind::Text,
        "What the value counts: `rows`, `bytes`.",
    ),
    Row::new("timeout", DURATION, "Limit of one reading."),
    Row::new(
        "operation",
        Kind::Text,
        "Operation that is executed once on the run's target: the value is the first column of the first row.",
    ),
    Row::new(
        "file_size",
        Kind::Text,
        "File whose size in bytes is the value.",
    ),
    Row::new(
        "command",
        TEXTS,
        "Program and arguments, no shell: the value is what it prints.",
    ),
    Row::new(
        "driver",
        Kind::Text,
        "Driver that executes `statement` at `endpoint`.",
    ),
    Row::new("endpoint", Kind::Text, "Where `driver` connects."),
    Row::new(
        "statement",
        Kind::Text,
        "Statement or command of the store's own: the value is the first one of its answer.",
    ),
];

pub const CONDITION: &[Row] = &[
    Row::new(
        "require",
        Kind::Expression,
        "What must be true at the end of a run, or the run is invalid: `\"{{ get.success_percent == 100 }}\"`.",
    )
    .required(),
    Row::new(
        "message",
        Kind::Text,
        "Why the run is invalid then; may hold expressions over its results.",
    ),
];
