//! The words of `check`: what is expected, the same value as it should be written, which key was meant.

use super::Place;
use crate::diag::{Diagnostic, Span, did_you_mean, list_of};
use crate::rows::{Kind, NameKind, Row};
use crate::scenario::model;
use crate::scenario::tree::{Node, Value};

pub(super) fn called(key: &str) -> String {
    match key {
        "" => "this".to_owned(),
        _ => format!("`{key}`"),
    }
}

pub(super) fn bare(key: &str) -> String {
    match key {
        "" => "choice here".to_owned(),
        _ => format!("`{key}`"),
    }
}

/// What a kind is, with its article.
pub fn expected(kind: &Kind) -> String {
    match kind {
        Kind::Bool => "true or false".to_owned(),
        Kind::Integer { .. } => "an integer".to_owned(),
        Kind::Number { .. } => "a number".to_owned(),
        Kind::Duration { .. } => "a duration such as \"10s\"".to_owned(),
        Kind::Size { .. } => "a size such as \"4KiB\" or 4096".to_owned(),
        Kind::Rate => "a rate such as \"1000/s\"".to_owned(),
        Kind::Choice(choices) => format!("one of {}", list_of(choices.iter().copied())),
        Kind::Path => "a string, the path of a file".to_owned(),
        Kind::Text | Kind::Name(_) | Kind::Regex => "a string".to_owned(),
        Kind::Expression => "a string with one whole `{{ expression }}`".to_owned(),
        Kind::List(_) => "an array".to_owned(),
        Kind::Table(_) | Kind::Map(..) | Kind::Open { .. } => "a table".to_owned(),
        Kind::Any => "a value".to_owned(),
        Kind::OneOf(kinds) => {
            let mut words: Vec<String> = kinds.iter().map(expected).collect();
            words.dedup();
            words.join(" or ")
        }
    }
}

pub(super) fn integer_range(min: i64, max: i64) -> String {
    match (min, max) {
        _ if min == max => format!("{min}"),
        _ if max >= 1_000_000_000_000_000 => format!("at least {min}"),
        _ => format!("from {min} to {max}"),
    }
}

pub(super) fn number_range(min: f64, max: f64) -> String {
    match (min, max) {
        _ if max >= 1e9 && min == f64::MIN => "a finite number".to_owned(),
        _ if max >= 1e9 => format!("at least {min}"),
        _ => format!("from {min} to {max}"),
    }
}

/// The same value as the kind would have it: (what to do, TOML text).
pub(super) fn retyped(node: &Node, kind: &Kind) -> Option<(&'static str, String)> {
    let quotes = "without the quotes";
    match (kind, &node.value) {
        (Kind::Integer { .. }, Value::String(text)) => {
            let plain = text.trim().replace(['_', ','], "");
            plain
                .parse::<i64>()
                .ok()
                .map(|number| (quotes, number.to_string()))
        }
        (Kind::Number { .. }, Value::String(text)) => {
            let plain = text.trim().to_owned();
            plain.parse::<f64>().ok().map(|_| (quotes, plain))
        }
        (Kind::Bool, Value::String(text)) => match text.trim().to_lowercase().as_str() {
            "true" | "yes" | "on" => Some((quotes, "true".to_owned())),
            "false" | "no" | "off" => Some((quotes, "false".to_owned())),
            _ => None,
        },
        (Kind::Text | Kind::Name(_), Value::Integer(number)) => {
            Some(("with quotes", format!("\"{number}\"")))
        }
        (Kind::Text | Kind::Name(_), Value::Float(number)) => {
            Some(("with quotes", format!("\"{number}\"")))
        }
        (Kind::Text | Kind::Name(_), Value::Bool(value)) => {
            Some(("with quotes", format!("\"{value}\"")))
        }
        (Kind::List(_), value) => {
            scalar(value).map(|text| ("put it into brackets", format!("[{text}]")))
        }
        (Kind::OneOf(kinds), _) => kinds.iter().find_map(|kind| retyped(node, kind)),
        _ => None,
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(format!("{text:?}")),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

/// A name that is not of its kind; `quoted` where it stands as a string.
pub fn name_fault(name: &str, span: Span, names: NameKind, quoted: bool) -> Option<Diagnostic> {
    if names.allows(name) {
        return None;
    }
    let message = match name {
        "" => "a name must not be empty".to_owned(),
        _ => format!("`{name}` cannot be a name here"),
    };
    let mut fault = Diagnostic::error("bad-name", span, message).help(rule(names));
    let right = mended(name, names);
    if names.allows(&right) {
        let replacement = if quoted {
            format!("\"{right}\"")
        } else {
            right
        };
        fault = fault.fix(span, replacement);
    }
    Some(fault)
}

fn rule(names: NameKind) -> &'static str {
    match names {
        NameKind::Scenario => {
            "lower-case letters, digits, `.`, `_` and `-`, beginning with a letter or digit"
        }
        NameKind::Server => "lower-case letters, digits, `_` and `-`, beginning with a letter",
        NameKind::Variable => {
            "lower-case letters, digits and `_`, beginning with a letter, since expressions use it"
        }
        NameKind::Free => "at least one character",
    }
}

fn mended(name: &str, names: NameKind) -> String {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let keep = match names {
        NameKind::Scenario => "._-",
        NameKind::Server => "_-",
        _ => "_",
    };
    let lower = name.to_lowercase();
    lower
        .chars()
        .map(|c| {
            if allowed(c) || keep.contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect()
}

/// An unknown key, with the one that was meant, the table where it belongs, or the list of those there are.
pub fn unknown_key(place: &Place, key: &str, span: Span, known: &[&str]) -> Diagnostic {
    let within = if place.parent.is_none() { "at" } else { "in" };
    let message = format!("unknown key `{key}` {within} {place}");
    let fault = Diagnostic::error("unknown-key", span, message);
    if let Some(near) = did_you_mean(key, known.iter().copied()) {
        return fault
            .help(format!("did you mean `{near}`?"))
            .fix(span, near);
    }
    if let Some(home) = home_of(key) {
        return fault.help(format!("`{key}` belongs in {home}"));
    }
    fault.help(format!("known here: {}", list_of(known.iter().copied())))
}

/// The table of the language where a key stands, when there is exactly one. In TOML a key belongs to the last header above
/// it, so a right key in the wrong table is a common mistake.
fn home_of(key: &str) -> Option<&'static str> {
    const HOMES: &[(&str, &[Row])] = &[
        ("`[runs]`", model::RUNS),
        ("`[client]`", model::CLIENT),
        ("`[workload.keys]`", model::KEYS),
        ("`[workload.values]`", model::VALUES),
        ("`[[phases]]`", model::PHASE),
        ("`[servers.NAME]`", model::SERVER),
        ("`[targets.NAME]`", model::TARGET),
        ("`[[tables]]`", model::TABLE),
        ("the top level, above the first `[table]`", model::TOP),
    ];
    let mut homes = HOMES
        .iter()
        .filter(|(_, rows)| rows.iter().any(|row| row.name == key));
    match (homes.next(), homes.next()) {
        (Some((home, _)), None) => Some(home),
        _ => None,
    }
}
