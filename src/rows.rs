//! Rows: the one description of a key that a scenario or a driver's options may hold, from which reading, errors,
//! `--help`, `dbbench drivers NAME` and the JSON Schema are made.
//!
//! Only data. `scenario::check` reads a tree through rows, `scenario::schema` prints them.

/// One key of a table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub name: &'static str,
    pub kind: Kind,
    pub required: bool,
    /// The default as a scenario would write it (a TOML value: `true`, `"10s"`), or empty where there is none.
    pub default: &'static str,
    /// A sentence or two, with the unit.
    pub doc: &'static str,
}

/// What a key's value may be. Wherever a number, bool, size, duration, rate or choice stands, a template string may stand.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Bool,
    /// Both ends in.
    Integer {
        min: i64,
        max: i64,
    },
    /// Both ends in.
    Number {
        min: f64,
        max: f64,
    },
    Text,
    /// A string with its unit: `"1.5s"`.
    Duration {
        zero: bool,
    },
    /// A string with its unit (`"40KiB"`) or a bare integer of bytes.
    Size {
        zero: bool,
    },
    /// A string with its unit: `"20k/s"`.
    Rate,
    Choice(&'static [&'static str]),
    /// A name of one of the kinds the language has.
    Name(NameKind),
    Regex,
    /// Path relative to the file that says it.
    Path,
    List(&'static Kind),
    Table(&'static [Row]),
    /// Names of the user's own, each with a value of this kind.
    Map(NameKind, &'static Kind),
    /// Rows of the language, and beside them names of the user's own.
    Open {
        rows: &'static [Row],
        names: NameKind,
        other: &'static Kind,
    },
    /// The first that fits decides; told apart by TOML type (and for tables by their first key).
    OneOf(&'static [Kind]),
    /// A result-stage expression of `[[tables]]`.
    Expression,
    Any,
}

/// Which names are allowed: `Scenario` `[a-z0-9][a-z0-9._-]*`, `Server` (targets too) `[a-z][a-z0-9_-]*`,
/// `Variable` (all that an expression uses) `[a-z][a-z0-9_]*`, `Free` anything but empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameKind {
    Scenario,
    Server,
    Variable,
    Free,
}

impl Row {
    pub const fn new(name: &'static str, kind: Kind, doc: &'static str) -> Row {
        Row {
            name,
            kind,
            required: false,
            default: "",
            doc,
        }
    }

    pub const fn required(self) -> Row {
        Row {
            required: true,
            ..self
        }
    }

    pub const fn default(self, default: &'static str) -> Row {
        Row { default, ..self }
    }
}

impl NameKind {
    /// The pattern, without anchors.
    pub const fn pattern(self) -> &'static str {
        match self {
            NameKind::Scenario => "[a-z0-9][a-z0-9._-]*",
            NameKind::Server => "[a-z][a-z0-9_-]*",
            NameKind::Variable => "[a-z][a-z0-9_]*",
            NameKind::Free => ".+",
        }
    }

    pub fn allows(self, name: &str) -> bool {
        let digit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let Some(first) = name.chars().next() else {
            return false;
        };
        match self {
            NameKind::Scenario => {
                digit(first) && name.chars().all(|c| digit(c) || "._-".contains(c))
            }
            NameKind::Server => {
                first.is_ascii_lowercase() && name.chars().all(|c| digit(c) || "_-".contains(c))
            }
            NameKind::Variable => {
                first.is_ascii_lowercase() && name.chars().all(|c| digit(c) || c == '_')
            }
            NameKind::Free => true,
        }
    }
}
