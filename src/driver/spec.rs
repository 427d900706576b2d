//! What a driver is, as data: its name, options, operations, endpoints and durability, without any of its code.
//!
//! `scenario` and `plan` know drivers only through this, so a driver that is asked for something it cannot do is a
//! diagnostic before anything runs. The traits that do the work are in `driver`.

use crate::op::Verb;
use crate::rows::{Kind, Row};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// All that is known of a driver before one is opened. One static per driver folder, in its `spec.rs`.
#[derive(Debug)]
pub struct DriverSpec {
    pub name: &'static str,
    /// One sentence for `dbbench drivers`.
    pub summary: &'static str,
    /// The rows of `[targets.NAME] options`.
    pub options: &'static [Row],
    /// A fault of options that each row alone cannot show: (option, sentence, what to write instead).
    pub check_options: fn(&Options) -> Result<(), OptionFault>,
    /// Built-in operations that it can do.
    pub verbs: &'static [Verb],
    /// The rows of `[operations.NAME] <driver> = { ... }`; empty where it takes none of the user's own.
    pub operation: &'static [Row],
    pub check_operation: fn(&Map<String, Value>) -> Result<(), OptionFault>,
    /// Whether `pipeline = n` sends n operations before the first answer.
    pub pipeline: bool,
    /// Whether it executes the statements of a log (`Verb::Statement`).
    pub replay: bool,
    pub store: Store,
    /// How sessions map to connections, in words for the results: `one connection per session`.
    pub sessions: &'static str,
    /// What durability these options really give, where the client can know; servers are asked through `Control`.
    pub durability: fn(&Options) -> Option<Durability>,
    pub held_in: HeldIn,
    /// The client crate and its version, for the manifest; empty where there is none.
    pub library: &'static str,
}

/// Where the store is.
#[derive(Clone, Copy, Debug)]
pub enum Store {
    /// Reached at endpoints; `parse` says what one means or where its fault is.
    Server {
        parse: fn(&str) -> Result<Endpoint, EndpointFault>,
        /// An example endpoint, for errors and help.
        example: &'static str,
        /// Whether one session uses all endpoints of its group (consistent hashing) instead of one dealt in turn.
        takes_all: bool,
    },
    /// Inside the client, in a private directory. Its calls block, so every client thread is an OS thread.
    Embedded,
    /// Nothing there at all (`null`): neither endpoint nor directory.
    Nothing,
}

impl DriverSpec {
    pub fn blocking(&self) -> bool {
        matches!(self.store, Store::Embedded)
    }

    pub fn can(&self, verb: Verb) -> bool {
        match verb {
            Verb::Custom(_) => !self.operation.is_empty(),
            Verb::Statement => self.replay,
            built_in => self.verbs.contains(&built_in),
        }
    }
}

/// A fault in a driver's table: the key it belongs to (empty for the table), a sentence, and the correction.
#[derive(Clone, Debug, PartialEq)]
pub struct OptionFault {
    pub key: String,
    pub message: String,
    pub help: String,
}

impl OptionFault {
    pub fn new(key: &str, message: impl Into<String>, help: impl Into<String>) -> Self {
        OptionFault {
            key: key.to_owned(),
            message: message.into(),
            help: help.into(),
        }
    }
}

/// A fault in an endpoint: byte range in its text, a sentence, and the correction.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointFault {
    pub start: usize,
    pub end: usize,
    pub message: String,
    pub help: String,
}

/// An endpoint as its driver reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct Endpoint {
    /// As the scenario says it, rendered; may hold a password, never printed.
    pub text: String,
    /// What the results call it: `127.0.0.1:7001` or a socket's path; no secrets.
    pub label: String,
    pub transport: Transport,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Transport {
    /// `addresses` is empty until the name was resolved, which the engine does once, before the phase.
    Tcp {
        host: String,
        port: u16,
        addresses: Vec<std::net::SocketAddr>,
    },
    Unix {
        path: std::path::PathBuf,
    },
    /// Embedded: the private directory.
    Directory {
        path: std::path::PathBuf,
    },
    Nothing,
}

/// What an acknowledged write survives.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// Not even acknowledged.
    Unacknowledged,
    /// Lost with the process.
    Memory,
    /// In the operating system's cache: survives the process, not a power cut.
    Os,
    /// Forced to disk now and then, together with others.
    Group,
    /// Forced to disk before the acknowledgement.
    Fsync,
}

impl Durability {
    pub const NAMES: [&'static str; 5] = ["memory", "unacknowledged", "os", "group", "fsync"];

    pub fn name(self) -> &'static str {
        match self {
            Durability::Memory => "memory",
            Durability::Unacknowledged => "unacknowledged",
            Durability::Os => "os",
            Durability::Group => "group",
            Durability::Fsync => "fsync",
        }
    }
}

/// Where a store keeps what it holds; for the estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HeldIn {
    Memory,
    Disk,
}

/// A driver's options: what the scenario says, and the rows' defaults for the rest. The values were checked against the
/// rows, so the accessors do not fail; asking for a name without a row panics (a test of each driver reads them all).
#[derive(Clone, Debug)]
pub struct Options {
    rows: &'static [Row],
    values: Map<String, Value>,
}

impl Options {
    pub fn new(rows: &'static [Row], values: Map<String, Value>) -> Options {
        Options { rows, values }
    }

    pub fn is_set(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// The value as said, else the row's default, else null.
    pub fn value(&self, name: &str) -> Value {
        let row = self
            .rows
            .iter()
            .find(|row| row.name == name)
            .unwrap_or_else(|| panic!("no option row `{name}`"));
        match self.values.get(name) {
            Some(value) => value.clone(),
            None if row.default.is_empty() => Value::Null,
            None => default_value(row),
        }
    }

    pub fn bool(&self, name: &str) -> bool {
        self.value(name).as_bool().unwrap_or(false)
    }

    pub fn integer(&self, name: &str) -> Option<i64> {
        self.value(name).as_i64()
    }

    pub fn number(&self, name: &str) -> Option<f64> {
        self.value(name).as_f64()
    }

    pub fn text(&self, name: &str) -> Option<String> {
        self.value(name).as_str().map(str::to_owned)
    }

    pub fn duration(&self, name: &str) -> Option<std::time::Duration> {
        self.value(name)
            .as_str()
            .and_then(|text| crate::units::parse_duration(text).ok())
    }

    /// Bytes.
    pub fn size(&self, name: &str) -> Option<u64> {
        match self.value(name) {
            Value::String(text) => crate::units::parse_size(&text).ok(),
            Value::Number(number) => number.as_u64(),
            _ => None,
        }
    }
}

/// Defaults are written as TOML values; all but strings read alike in JSON, and so do simple strings.
fn default_value(row: &Row) -> Value {
    serde_json::from_str(row.default)
        .unwrap_or_else(|_| panic!("the default of `{}` is no value: {}", row.name, row.default))
}

/// For drivers whose options and operations have no fault that a row cannot show.
pub fn no_fault(_: &Options) -> Result<(), OptionFault> {
    Ok(())
}

pub fn no_operation_fault(_: &Map<String, Value>) -> Result<(), OptionFault> {
    Ok(())
}

/// For drivers that take no user operations, and as shorthand in tests.
pub const NO_ROWS: &[Row] = &[];
pub const TEXT: Kind = Kind::Text;
