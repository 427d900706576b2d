//! Rows of `[[phases]]` and their groups.

use super::servers::MOST_INSTANCES;
use super::{COUNT, DURATION, DURATION_OR_ZERO, KEYS, TEXTS, VALUES};
use crate::rows::{Kind, NameKind, Row};
use crate::workload::querylog::Format;
use crate::workload::querylog::statement::Kind as Logged;

pub const PHASE: &[Row] = &[
    NAME,
    OPERATION,
    MIX,
    REPLAY,
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
        "faults",
        Kind::List(&Kind::Table(FAULT)),
        "What is done to instances of servers at its second of the measured time: `{ at = \"20s\", server = \"cassandra\", instance = 1, action = \"kill\" }`. Needs a `duration`; marked in windows.csv.",
    ),
    Row::new(
        "when",
        Kind::Bool,
        "False: the phase is left out of the run; its cells are empty.",
    ),
];

const FAULT: &[Row] = &[
    Row::new(
        "at",
        DURATION_OR_ZERO,
        "When, after the start of the measured time.",
    )
    .required(),
    Row::new("server", Kind::Text, "Which server of the run.").required(),
    Row::new(
        "instance",
        Kind::Integer {
            min: 1,
            max: MOST_INSTANCES,
        },
        "Which instance of it, where it has several.",
    ),
    Row::new(
        "action",
        Kind::Choice(&["kill", "stop", "continue", "restart"]),
        "`kill`: KILL to it and its descendants; `stop`: frozen until `continue` or the end of the run; `restart`: stopped as it asks to be, where it runs, and started again on its data.",
    )
    .required(),
];

/// What a group does not say, its phase does.
pub const GROUP: &[Row] = &[
    NAME,
    OPERATION,
    MIX,
    REPLAY,
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
const REPLAY: Row = Row::new(
    "replay",
    Kind::Table(REPLAY_ROWS),
    "The statements of a log, in its order: `{ file = \"queries.log\", per_thread = \"whole\", only = [\"select\"] }`. \
     Ends with the log; with a `duration` the log is begun again.",
);

const REPLAY_ROWS: &[Row] = &[
    Row::new(
        "file",
        Kind::Text,
        "The log: relative to this scenario file, or else to where dbbench is started.",
    )
    .required(),
    Row::new(
        "format",
        Kind::Choice(&Format::NAMES),
        "How it is written: a general or slow log of MySQL or MariaDB, PostgreSQL's log (stderr or csvlog), SQL with `;`, \
         or a statement per line; told by its first lines where it is not said.",
    ),
    Row::new(
        "per_thread",
        Kind::Choice(&["whole", "share", "connection"]),
        "`whole`: every thread replays all of it; `share`: every T-th statement; `connection`: logged connections are dealt \
         to the threads. `whole` where it is not said.",
    ),
    Row::new(
        "timing",
        Kind::Choice(&["closed", "recorded"]),
        "`closed`: a statement when the thread's one before has ended; `recorded`: at its time in the log, response times \
         counted from there. `closed` where it is not said.",
    ),
    Row::new(
        "speed",
        Kind::Number {
            min: 1e-6,
            max: 1e6,
        },
        "Of `recorded`: how much faster than the log; 1 where it is not said.",
    ),
    Row::new(
        "only",
        Kind::List(&Kind::Choice(&LOGGED)),
        "Kinds of statements that are replayed; all where it is not said.",
    ),
    Row::new("user", Kind::Text, "Only statements of this user."),
    Row::new(
        "database",
        Kind::Text,
        "Only statements in this database. They are replayed in the endpoint's.",
    ),
    Row::new(
        "match",
        Kind::Regex,
        "Only statements that this regular expression matches.",
    ),
    Row::new("first", COUNT, "Only as many, from the first."),
    Row::new(
        "from",
        Kind::Text,
        "Only statements from a time on: `2026-11-30 20:41:15`, or `+10min` after the log's first.",
    ),
    Row::new(
        "allow_writes",
        Kind::Bool,
        "Whether statements that may write are replayed; else they are left out and counted. False where it is not said.",
    ),
];

const LOGGED: [&str; 11] = Logged::NAMES;

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
