//! Rows of `[[tables]]`.

use super::{DURATION, SCALAR, TEXTS};
use crate::rows::{Kind, NameKind, Row};

pub const TABLE: &[Row] = &[
    Row::new(
        "name",
        Kind::Name(NameKind::Scenario),
        "The file is `tables/<name>.csv`.",
    )
    .required(),
    Row::new(
        "where",
        Kind::Expression,
        "Which runs: `\"{{ threads <= 8 }}\"`.",
    ),
    Row::new(
        "rows",
        TEXTS,
        "Axes, labels, or `window` (a row per window): one row per combination.",
    )
    .required(),
    Row::new(
        "columns",
        Kind::Text,
        "An axis: one column per value, in its order; with several `values`, `<axis value>_<name>`.",
    ),
    Row::new(
        "values",
        Kind::Map(NameKind::Variable, &Kind::Expression),
        "Columns and their expressions: `get_seconds = \"{{ get.elapsed_seconds }}\"`.",
    )
    .required(),
    Row::new(
        "repeats",
        Kind::Choice(&["median", "mean", "min", "max", "merged", "all"]),
        "How repeats are combined.",
    ),
    Row::new(
        "ratio_to",
        Kind::Map(NameKind::Variable, &SCALAR),
        "In percent of the row that has these axis values and is otherwise the same.",
    ),
    Row::new(
        "ratio_name",
        Kind::Text,
        "Column of the ratio; only with one value.",
    ),
    Row::new(
        "headers",
        Kind::Map(NameKind::Free, &Kind::Text),
        "Other names for columns.",
    ),
    Row::new(
        "invalid",
        Kind::Choice(&["empty", "show"]),
        "Cells of invalid runs.",
    ),
    Row::new(
        "every",
        DURATION,
        "Width of a row of `window`; as recorded where it is not said.",
    ),
];
