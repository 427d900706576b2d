//! Rows of `[[phases]]` and their groups.

use super::{COUNT, DURATION, DURATION_OR_ZERO, KEYS, TEXTS, VALUES};
use crate::rows::{Kind, NameKind, Row};

pub const PHASE: &[Row] = &[
    NAME,
    OPERATION,
    MIX,
    THREADS,
    OPERATIONS,
    OPERATIONS_PER_THREAD,
    Row::new(
        "duration",
        DURATION,
        "How long it lasts: no operation starts after its end.",
    ),
    SHARE,
    PHASE_KEYS,
    PHASE_VALUES,
    Row::new(
        "at_least",
        DURATION_OR_ZERO,
        "A phase by count is repeated as whole passes until then; seconds are those of one pass (mean).",
    ),
    TIMEOUT,
    PIPELINE,
    ENDPOINTS,
    VERIFY,
    Row::new(
        "warmup",
        DURATION_OR_ZERO,
        "First part, not in the rows; a phase by duration lasts that much longer.",
    ),
    Row::new(
        "measured",
        Kind::Bool,
        "False: marked as not measured, left out of reports.",
    ),
    Row::new(
        "groups",
        Kind::List(&Kind::Table(GROUP)),
        "Groups of threads that run at the same time.",
    ),
    Row::new(
        "prepare",
        TEXTS,
        "Operations executed once, in order, by one session before the phase; not measured.",
    ),
    Row::new(
        "cleanup",
        TEXTS,
        "Operations executed once, in order, by one session after the phase; not measured.",
    ),
    Row::new(
        "prepare_timeout",
        DURATION,
        "Limit of each operation of `prepare` and `cleanup`.",
    ),
    Row::new(
        "restart_servers",
        TEXTS,
        "Servers that are stopped and started again, on their data, before the phase.",
    ),
    Row::new(
        "when",
        Kind::Bool,
        "False: the phase is left out of the run; its cells are empty.",
    ),
];

/// What a group does not say, its phase does.
pub const GROUP: &[Row] = &[
    NAME,
    OPERATION,
    MIX,
    THREADS,
    OPERATIONS,
    OPERATIONS_PER_THREAD,
    SHARE,
    PHASE_KEYS,
    PHASE_VALUES,
    TIMEOUT,
    PIPELINE,
    ENDPOINTS,
    VERIFY,
];

const NAME: Row = Row::new(
    "name",
    Kind::Name(NameKind::Variable),
    "Unique; results and tables use it.",
)
.required();
const OPERATION: Row = Row::new(
    "operation",
    Kind::Text,
    "What each thread does: a built-in operation of the driver or one of `[operations]`.",
);
const MIX: Row = Row::new(
    "mix",
    Kind::Map(NameKind::Variable, &Kind::Number { min: 0.0, max: 1e9 }),
    "Operations with their weights, relative to the sum: `{ get = 95, set = 5 }`.",
);
const THREADS: Row = Row::new(
    "threads",
    Kind::Integer {
        min: 1,
        max: 1_000_000,
    },
    "Client threads: each has a session of its own with one operation in flight.",
);
const OPERATIONS: Row = Row::new(
    "operations",
    COUNT,
    "How many operations, of all threads together.",
);
const OPERATIONS_PER_THREAD: Row = Row::new(
    "operations_per_thread",
    COUNT,
    "How many operations of each thread.",
);
const SHARE: Row = Row::new(
    "share",
    Kind::Choice(&["blocks", "interleaved"]),
    "How a count is dealt to T threads: floor(N/T) in a row, the first N mod T threads one more; or every T-th.",
);
const PHASE_KEYS: Row = Row::new("keys", Kind::Table(KEYS), "Merged over `[workload.keys]`.");
const PHASE_VALUES: Row = Row::new(
    "values",
    Kind::Table(VALUES),
    "Merged over `[workload.values]`.",
);
const TIMEOUT: Row = Row::new(
    "timeout",
    DURATION,
    "Limit of each operation; then it failed, and the connection is replaced.",
);
const PIPELINE: Row = Row::new(
    "pipeline",
    Kind::Integer {
        min: 1,
        max: 65_535,
    },
    "Operations that a thread sends before the first answer.",
);
const ENDPOINTS: Row = Row::new(
    "endpoints",
    Kind::Text,
    "Which of the target's named lists of endpoints is used.",
);
const VERIFY: Row = Row::new(
    "verify",
    Kind::Bool,
    "What is read must be what was written, byte for byte; a missing key is then a failure.",
);
