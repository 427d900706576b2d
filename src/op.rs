//! The words that workload, driver and measurement share: what is asked of a store (`Operation`), what came of it
//! (`Outcome`, `Failure`) and what the answer carried (`Reply`).
//!
//! Knows nothing of generators, drivers or histograms. Read `workload::generator` for how operations are made,
//! `driver` for who executes them and `engine::worker` for the loop between the two.

use std::time::{Duration, Instant};

/// What an operation does. Built-in verbs are understood by drivers; `Custom(n)` is the n-th operation of the
/// scenario's `[operations]` as handed to `driver::Driver::open`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verb {
    Get,
    Set,
    /// Fails as `rejected` where the key exists and the store can tell.
    Insert,
    /// Fails as `missing` (`Outcome::Missing`) where the key does not exist and the store can tell.
    Update,
    Delete,
    Increment,
    Scan,
    /// One read, then one write of the same key; its latency is that of both.
    ReadModifyWrite,
    Custom(u16),
    /// A statement of a log, which `Operation::value` holds in the store's own language. Only for replays.
    Statement,
}

impl Verb {
    pub const BUILT_IN: [Verb; 8] = [
        Verb::Get,
        Verb::Set,
        Verb::Insert,
        Verb::Update,
        Verb::Delete,
        Verb::Increment,
        Verb::Scan,
        Verb::ReadModifyWrite,
    ];

    /// The name as a scenario writes it; `custom` for the user's own.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::Set => "set",
            Verb::Insert => "insert",
            Verb::Update => "update",
            Verb::Delete => "delete",
            Verb::Increment => "increment",
            Verb::Scan => "scan",
            Verb::ReadModifyWrite => "read_modify_write",
            Verb::Custom(_) => "custom",
            Verb::Statement => "statement",
        }
    }

    pub fn built_in(name: &str) -> Option<Verb> {
        Verb::BUILT_IN.into_iter().find(|verb| verb.name() == name)
    }
}

/// One operation, complete: a driver needs nothing else. Owned and reused by the worker; `workload::generator`
/// fills it in place, so that a key or value that is the last one's is not made anew.
#[derive(Clone, Debug)]
pub struct Operation {
    pub verb: Verb,
    /// Which of the group's operations this is (position in its mix); the recorder's row.
    pub slot: u16,
    /// Position in the group's stream of operations, from 0; `$index`.
    pub index: u64,
    /// Number of the key, from 0.
    pub key_index: u64,
    /// A random word of this operation, a function of (seed, repeat, phase, group, index); source of `$random` and its like.
    pub random: u64,
    /// Whether the value read must equal `value`, byte for byte.
    pub verify: bool,
    pub key: Vec<u8>,
    /// The bytes to write, or those expected where `verify`; empty where neither is needed.
    pub value: Vec<u8>,
}

impl Default for Operation {
    fn default() -> Self {
        Operation {
            verb: Verb::Get,
            slot: 0,
            index: 0,
            key_index: u64::MAX,
            random: 0,
            verify: false,
            key: Vec::new(),
            value: Vec::new(),
        }
    }
}

/// What came of an operation, as the driver saw it. A timeout is the engine's to say, since it drops the future;
/// a driver never returns `TimedOut` of its own accord except for one the server reports as such.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Read, and there.
    Found,
    /// Read (or deleted, updated), and not there: a kind of success, a failure under `verify`.
    Missing,
    /// Written, or done.
    Done,
    Failed(Box<Failure>),
    /// Given up at its limit, unanswered.
    TimedOut,
    /// Answered whole, but after its limit: timed out as well, but nothing about it is unknown.
    Late,
    WrongValue,
}

impl Outcome {
    pub fn succeeded(&self) -> bool {
        matches!(self, Outcome::Found | Outcome::Missing | Outcome::Done)
    }

    /// The outcome of a read that a write of the same key followed: the first that did not go well, else the read's.
    pub fn and_written(self, written: Outcome) -> Outcome {
        match (self, written) {
            (read, Outcome::Done) => read,
            (read, written) if read.succeeded() => written,
            (read, _) => read,
        }
    }

    /// Whether the session's connection must be replaced before the next operation.
    pub fn breaks_session(&self) -> bool {
        match self {
            Outcome::TimedOut => true,
            Outcome::Failed(failure) => failure.broken,
            _ => false,
        }
    }
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        Outcome::Failed(Box::new(failure))
    }
}

/// Causes of failure, as errors.csv names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorClass {
    /// No connection: refused, unreachable, not in time, name not resolved, TLS or login refused.
    Connect,
    /// EADDRNOTAVAIL: the client's host has no local port left.
    NoLocalPort,
    /// The connection ended while an answer was due.
    Reset,
    /// The answer is not of the protocol.
    Protocol,
    /// The server said no; with its code.
    Server,
    /// The answer is not what `expect` says.
    UnexpectedReply,
    /// Under `verify`: the key is not there.
    Missing,
    WrongValue,
    Timeout,
    /// The store refused to do it, as a condition of the operation says (`insert` of a key that exists, too large a value).
    Rejected,
    /// The client itself failed (out of files, an embedded store's error).
    Client,
}

impl ErrorClass {
    pub fn name(self) -> &'static str {
        match self {
            ErrorClass::Connect => "connect",
            ErrorClass::NoLocalPort => "no_local_port",
            ErrorClass::Reset => "reset",
            ErrorClass::Protocol => "protocol",
            ErrorClass::Server => "server",
            ErrorClass::UnexpectedReply => "unexpected_reply",
            ErrorClass::Missing => "missing",
            ErrorClass::WrongValue => "wrong_value",
            ErrorClass::Timeout => "timeout",
            ErrorClass::Rejected => "rejected",
            ErrorClass::Client => "client",
        }
    }
}

/// One failure with all that errors.csv tells of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    pub class: ErrorClass,
    /// The server's own code (`1213`, `WRONGTYPE`), or empty.
    pub code: String,
    /// A sentence for people; without secrets.
    pub message: String,
    /// The request was (or may have been) sent and never answered, so the server may have done it.
    pub unanswered: bool,
    /// The connection cannot be used any more.
    pub broken: bool,
}

impl Failure {
    pub fn new(class: ErrorClass, message: impl Into<String>) -> Failure {
        let unanswered = matches!(class, ErrorClass::Reset | ErrorClass::Protocol);
        let broken = matches!(
            class,
            ErrorClass::Connect
                | ErrorClass::NoLocalPort
                | ErrorClass::Reset
                | ErrorClass::Protocol
        );
        Failure {
            class,
            code: String::new(),
            message: message.into(),
            unanswered,
            broken,
        }
    }

    pub fn with_code(mut self, code: impl Into<String>) -> Failure {
        self.code = code.into();
        self
    }

    /// A failure to connect, told apart by its cause.
    pub fn connecting(error: &std::io::Error, what: &str) -> Failure {
        let class = match error.kind() {
            std::io::ErrorKind::AddrNotAvailable => ErrorClass::NoLocalPort,
            _ => ErrorClass::Connect,
        };
        Failure::new(class, format!("cannot connect to {what}: {error}"))
    }

    /// A failure of an open connection while an answer was due.
    pub fn io(error: &std::io::Error) -> Failure {
        Failure::new(ErrorClass::Reset, format!("connection lost: {error}"))
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.message)
    }
}

impl std::error::Error for Failure {}

/// For drivers that execute no statements of a log; their specification says so, so this is never seen.
pub fn no_statements(driver: &str) -> Failure {
    Failure::new(
        ErrorClass::Client,
        format!("{driver} executes no statements of a log"),
    )
}

/// What an answer carried; reused, cleared by the worker before each operation.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// Bytes of the request: on the wire where the driver knows them, else of key and value.
    pub bytes_sent: u64,
    /// Bytes of the answer, likewise.
    pub bytes_received: u64,
    /// Length of the value or body read, where there is one; `length_changed` comes from it.
    pub value_length: Option<u64>,
    /// When the value was in hand, if that is not when the driver returns: set before verifying, so that the
    /// comparison is in the phase's time but not in the service time.
    pub ended: Option<Instant>,
    /// Warnings that the server gave with the answer.
    pub warnings: u32,
    /// From the operation's start until its connection was open; zero where it opened none.
    pub connect_time: Duration,
    /// From the operation's start until the first byte of the answer; zero where it is not known.
    pub first_byte_time: Duration,
    /// How long after its intended start the operation was started, where it had one.
    pub start_lag: Option<Duration>,
    /// Whether `text` is wanted: set by whoever executes a single operation, never in a phase.
    pub wants_text: bool,
    /// The first value of the answer (first column of the first row), where it is wanted and there is one.
    pub text: Option<Box<str>>,
}

impl Reply {
    pub fn clear(&mut self) {
        *self = Reply::default();
    }

    /// To be called by a driver with the value it read, borrowed from wherever it lies: counts its length and compares it
    /// where the operation wants that. Returns `Found` or `WrongValue`.
    pub fn found(&mut self, operation: &Operation, value: &[u8]) -> Outcome {
        self.value_length = Some(value.len() as u64);
        self.keep_text(value);
        if !operation.verify {
            return Outcome::Found;
        }
        self.ended = Some(Instant::now());
        if value == operation.value.as_slice() {
            Outcome::Found
        } else {
            Outcome::WrongValue
        }
    }

    /// To be called by a driver with the first value of an answer that does not go through `found`.
    #[inline]
    pub fn keep_text(&mut self, value: &[u8]) {
        if self.wants_text {
            self.text = Some(String::from_utf8_lossy(value).into());
        }
    }
}
