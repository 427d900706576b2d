//! Rows of `[sweep]`, `[runs]` and `[client]`.

use super::{DURATION, DURATION_OR_ZERO, SCALAR, TEXTS};
use crate::rows::{Kind, NameKind, Row};

/// Every key but `cases` and `exclude` is an axis.
pub const SWEEP: Kind = Kind::Open {
    rows: SWEEP_ROWS,
    names: NameKind::Variable,
    other: &AXIS,
};

const SWEEP_ROWS: &[Row] = &[
    Row::new(
        "cases",
        Kind::List(&Kind::Map(NameKind::Variable, &Kind::Any)),
        "Tables of axis values that belong together: no product; crossed with the axes; their keys are axes, after the others.",
    ),
    Row::new(
        "exclude",
        Kind::List(&Kind::Bool),
        "Templates of axis values; a point for which one is true is left out.",
    ),
];

/// A list of values, or a range.
pub const AXIS: Kind = Kind::OneOf(&[Kind::List(&Kind::Any), Kind::Table(RANGE)]);

const RANGE: &[Row] = &[
    Row::new(
        "from",
        SCALAR,
        "First value: a number, or a size or duration with its unit.",
    )
    .required(),
    Row::new(
        "to",
        SCALAR,
        "Last value, included where the range meets it.",
    )
    .required(),
    Row::new(
        "step",
        SCALAR,
        "What is added for the next value; 1 where neither `step` nor `factor` is said.",
    ),
    Row::new(
        "factor",
        Kind::Number {
            min: 1.0,
            max: 1e18,
        },
        "What the last value is multiplied by for the next; above 1.",
    ),
];

pub const RUNS: &[Row] = &[
    Row::new(
        "repeats",
        Kind::Integer {
            min: 1,
            max: 100_000,
        },
        "How often each point of the sweep is run.",
    ),
    Row::new(
        "order",
        Kind::Choice(&["interleaved", "sequential", "shuffled"]),
        "`interleaved`: each repeat is one pass over all points; `sequential`: all repeats of a point one after another; `shuffled`: as interleaved, each pass shuffled by the seed.",
    ),
    Row::new(
        "keep_together",
        TEXTS,
        "Axes whose equal values stay together, with their repeats.",
    ),
    Row::new(
        "seed",
        Kind::Integer {
            min: 0,
            max: i64::MAX,
        },
        "Seed of keys, values, mixes and order.",
    ),
    Row::new("pause", DURATION_OR_ZERO, "Time between runs."),
    Row::new(
        "timeout",
        DURATION,
        "Limit of one whole run, servers' start included; none where it is not said.",
    ),
    Row::new(
        "on_failure",
        Kind::Choice(&["continue", "stop"]),
        "Whether the next run is done after one failed.",
    ),
];

/// `[outputs]`.
pub const OUTPUTS: &[Row] = &[Row::new(
    "basho_bench",
    Kind::Bool,
    "Writes windows of 10 s once more as Basho Bench does, with its picture: `basho/<run>/<phase>/summary.csv`, `<operation>_latencies.csv`, `errors.csv`, `summary.png`, `summary.svg`.",
)];

pub const CLIENT: &[Row] = &[
    Row::new(
        "workers",
        Kind::OneOf(&[Kind::Choice(&["auto"]), Kind::Integer { min: 1, max: 1024 }]),
        "Threads of the operating system that carry the client threads' sessions, or `auto`.",
    ),
    Row::new(
        "cpus",
        Kind::Text,
        "CPUs the workers are pinned to, as `taskset -c` takes them: `1-3`.",
    ),
    Row::new("window", DURATION, "Width of the windows of windows.csv."),
    Row::new(
        "connect_rate",
        Kind::Rate,
        "Connections per second that a phase opens at most; no limit where it is not said.",
    ),
];
