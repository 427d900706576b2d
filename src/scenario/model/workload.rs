//! Rows of `[workload]`.

use super::COUNT;
use crate::rows::{Kind, Row};

pub const WORKLOAD: &[Row] = &[
    Row::new(
        "keys",
        Kind::Table(KEYS),
        "Which keys there are and how they are chosen.",
    ),
    Row::new("values", Kind::Table(VALUES), "The bytes that are stored."),
];

pub const KEYS: &[Row] = &[
    Row::new(
        "format",
        Kind::Text,
        "With exactly one `%d`, `%Nd` or `%0Nd`, filled with the key's number: `user%010d`.",
    ),
    Row::new(
        "digest",
        Kind::Choice(&["none", "md5", "fnv1a"]),
        "What the formatted key is replaced by: `md5` (32 hex digits), `fnv1a` (64 bits, 16 hex digits).",
    ),
    Row::new(
        "count",
        COUNT,
        "How many keys there are; in sequence as many as there are operations where it is not said.",
    ),
    Row::new(
        "uses_per_key",
        COUNT,
        "Operations in a row that use the same key: number = index / uses_per_key.",
    ),
    Row::new(
        "distribution",
        Kind::OneOf(DISTRIBUTION),
        "How keys are chosen: a name, or a table with its parameters: `{ name = \"zipfian\", theta = 0.99 }`.",
    ),
];

const NAMES: &[&str] = &[
    "sequential",
    "uniform",
    "zipfian",
    "hotspot",
    "latest",
    "exponential",
];

const DISTRIBUTION: &[Kind] = &[Kind::Choice(NAMES), Kind::Table(PARAMETERS)];

const SHARE: Kind = Kind::Number { min: 0.0, max: 1.0 };

const PARAMETERS: &[Row] = &[
    Row::new("name", Kind::Choice(NAMES), "Which distribution.").required(),
    Row::new(
        "theta",
        Kind::Number {
            min: 0.0,
            max: 10.0,
        },
        "Of `zipfian` and `latest`: rank r is chosen in proportion to 1 / r^theta; 0.99 where it is not said.",
    ),
    Row::new(
        "scrambled",
        Kind::Bool,
        "Of `zipfian`: whether the ranks are spread over the keys; true where it is not said.",
    ),
    Row::new(
        "hot_keys",
        SHARE,
        "Of `hotspot`: share of the keys that is hot, in [0, 1]; 0.2 where it is not said.",
    ),
    Row::new(
        "hot_operations",
        SHARE,
        "Of `hotspot`: share of the operations that goes to them, in [0, 1]; 0.8 where it is not said.",
    ),
    Row::new(
        "share",
        SHARE,
        "Of `exponential`: share of the keys that 95 % of the operations go to, in [0, 1]; 0.8571428571 where it is not said.",
    ),
];

pub const VALUES: &[Row] = &[
    Row::new(
        "size",
        Kind::OneOf(SIZE),
        "Bytes of a value: `\"1KiB\"`, `2560`, `{ distribution = \"uniform\", from = 100, to = \"1KiB\" }` or `{ choices = [{ size, weight }] }`.",
    ),
    Row::new(
        "content",
        Kind::Choice(&["repeat-index", "random", "text", "file"]),
        "`repeat-index`: `%010d` of the key's number, repeated; `random`: bytes; `text`: words of ASCII; `file`: cut from `file`.",
    ),
    Row::new(
        "file",
        Kind::Path,
        "For `content = \"file\"`: the file, relative to this scenario file.",
    ),
    Row::new(
        "compressible",
        Kind::Number {
            min: 0.0,
            max: 0.999,
        },
        "Share of each value, in [0, 1), that a compressor should save.",
    ),
];

const SIZE: &[Kind] = &[
    Kind::Size { zero: true },
    Kind::Table(UNIFORM),
    Kind::Table(CHOICES),
];

const UNIFORM: &[Row] = &[
    Row::new(
        "distribution",
        Kind::Choice(&["uniform"]),
        "Sizes equally likely from `from` to `to`.",
    )
    .required(),
    Row::new(
        "from",
        Kind::Size { zero: true },
        "Smallest, in bytes or with a unit.",
    )
    .required(),
    Row::new(
        "to",
        Kind::Size { zero: true },
        "Largest, in bytes or with a unit.",
    )
    .required(),
];

const CHOICES: &[Row] = &[Row::new(
    "choices",
    Kind::List(&Kind::Table(CHOICE)),
    "Sizes with their weights.",
)
.required()];

const CHOICE: &[Row] = &[
    Row::new(
        "size",
        Kind::Size { zero: true },
        "In bytes or with a unit.",
    )
    .required(),
    Row::new(
        "weight",
        Kind::Number {
            min: 1e-9,
            max: 1e9,
        },
        "Relative to the sum of all weights.",
    )
    .required(),
];
