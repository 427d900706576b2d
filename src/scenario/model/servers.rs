//! Rows of `[servers.NAME]`.

use super::{DURATION, TEXTS};
use crate::rows::{Kind, NameKind, Row};

/// Instance i has the address 127.0.0.i; the last address of the network is for broadcasts.
pub const MOST_INSTANCES: i64 = 254;

pub const SERVER: &[Row] = &[
    Row::new("command", TEXTS, "Program and arguments; no shell.").required(),
    Row::new(
        "files",
        Kind::Map(
            NameKind::Free,
            &Kind::OneOf(&[Kind::Text, Kind::Table(FILE)]),
        ),
        "Files written into the server's directory before `setup` and before every start: text, or `{ from = \"path\" }`, a file or folder copied as it is.",
    ),
    Row::new(
        "setup",
        Kind::List(&TEXTS),
        "Commands run once per fresh directory of each instance, before the first start.",
    ),
    Row::new(
        "setup_timeout",
        DURATION,
        "Limit of each command of `setup`, and of `after_ready`.",
    ),
    Row::new(
        "after_ready",
        Kind::OneOf(&[Kind::Table(COMMAND), Kind::Table(STATEMENTS)]),
        "Run once the server is ready, all of its instances, after a start that followed a `setup`: `{ command = [...] }` or `{ driver, endpoint, statements }`.",
    ),
    Row::new(
        "env",
        Kind::Map(NameKind::Free, &Kind::Text),
        "Variables of its environment.",
    ),
    Row::new(
        "user",
        Kind::Text,
        "User it runs as, where dbbench is root; the directory is then that user's.",
    ),
    Row::new(
        "cpus",
        Kind::Text,
        "CPUs it is pinned to, as `taskset -c` takes them: `0`.",
    ),
    Row::new(
        "working_directory",
        Kind::Text,
        "Where it is started; relative to its own directory, which is the default.",
    ),
    Row::new(
        "ports",
        Kind::OneOf(&[
            Kind::List(&Kind::Name(NameKind::Variable)),
            Kind::Map(
                NameKind::Variable,
                &Kind::Integer {
                    min: 1,
                    max: 65_535,
                },
            ),
        ]),
        "Names of free ports to reserve, or a table of names and fixed ports: `{ main = 11211 }`.",
    ),
    Row::new(
        "instances",
        Kind::Integer {
            min: 1,
            max: MOST_INSTANCES,
        },
        "How many of it run, counted from 1: each with a directory and an address of its own (`dir('NAME', i)`, `address('NAME', i)`), the same ports on all. Its own strings may read `instance`.",
    ),
    Row::new(
        "after",
        TEXTS,
        "Servers that must be ready first; those that are not in the run are ignored.",
    ),
    Row::new(
        "ready",
        Kind::OneOf(READY),
        "When it is ready: `{ tcp = \"main\" }`, `{ http = \"/ping\" }`, `{ log = \"regex\" }`, `{ command = [...] }` or `{ driver = true }`. Where it is not said, the target's driver says so if an endpoint of the target names this server, else `tcp`.",
    ),
    Row::new("ready_timeout", DURATION, "Limit of its start."),
    Row::new(
        "stop",
        Kind::Table(STOP),
        "How it is ended; then KILL, to all its descendants.",
    ),
    Row::new(
        "restart",
        Kind::Choice(&["run", "target", "never"]),
        "`run`: a fresh directory and process for every run; `target`: until the next run has another target; `never`: one for the scenario.",
    ),
    Row::new(
        "keep_data",
        Kind::Bool,
        "Whether a restart keeps the directory.",
    ),
    Row::new(
        "memory",
        Kind::Size { zero: false },
        "What each instance needs of memory beside the data. A plan that needs more than the machine has free is refused.",
    ),
    Row::new("requires", TEXTS, "Other programs and files that it needs."),
    Row::new(
        "install",
        Kind::Text,
        "The hint shown when its program, or one that it requires, is missing.",
    ),
];

const FILE: &[Row] = &[Row::new(
    "from",
    Kind::Path,
    "File or folder, relative to this scenario file.",
)
.required()];

const COMMAND: &[Row] =
    &[Row::new("command", TEXTS, "Program and arguments; no shell.").required()];

const STATEMENTS: &[Row] = &[
    Row::new("driver", Kind::Text, "Driver that executes the statements.").required(),
    Row::new("endpoint", Kind::Text, "Where it connects.").required(),
    Row::new("statements", TEXTS, "In order.").required(),
];

const READY: &[Kind] = &[
    Kind::Table(&[Row::new(
        "tcp",
        Kind::Text,
        "Name of the port that accepts connections.",
    )
    .required()]),
    Kind::Table(&[Row::new(
        "http",
        Kind::Text,
        "Path that answers with a status below 400, on the port `main`.",
    )
    .required()]),
    Kind::Table(&[Row::new(
        "log",
        Kind::Regex,
        "Regular expression that a line of its output matches.",
    )
    .required()]),
    Kind::Table(&[Row::new("command", TEXTS, "Command that ends with 0.").required()]),
    Kind::Table(&[Row::new("driver", Kind::Bool, "The target's driver says so.").required()]),
];

const STOP: &[Row] = &[
    Row::new(
        "signal",
        Kind::Choice(&[
            "TERM", "INT", "QUIT", "HUP", "USR1", "USR2", "WINCH", "KILL",
        ]),
        "Sent first.",
    ),
    Row::new("timeout", DURATION, "Until KILL."),
];
