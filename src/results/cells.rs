//! Cells: how numbers, times and texts stand in CSV, and how a text is kept from being executed by a spreadsheet.
//!
//! No number is rounded away: seconds have nanoseconds, latencies three decimals of a microsecond, other numbers the
//! shortest form that reads back the same. What is not known is an empty cell.

use crate::measure::record::Latencies;
use serde_json::Value;
use std::time::Duration;

/// `1.500000000`.
pub fn seconds(duration: Duration) -> String {
    format!("{}.{:09}", duration.as_secs(), duration.subsec_nanos())
}

/// Microseconds with three decimals, exact.
pub fn microseconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

pub fn optional_microseconds(ns: Option<u64>) -> String {
    ns.map(microseconds).unwrap_or_default()
}

/// The mean, in microseconds with three decimals.
pub fn mean_microseconds(latencies: &Latencies) -> String {
    latencies
        .mean_ns()
        .map(|ns| format!("{:.3}", ns / 1000.0))
        .unwrap_or_default()
}

/// The shortest decimal number that reads back as the same; empty for none and for what is no number.
pub fn number(value: Option<f64>) -> String {
    match value {
        Some(value) if value.is_finite() => format!("{value}"),
        _ => String::new(),
    }
}

pub fn integer(value: Option<u64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// A value of the scenario (axis, label) as its cell shows it: strings bare, tables and lists as JSON.
pub fn value(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A text that came from a user, a file or a server: where a spreadsheet would take it for a formula, `'` precedes it.
pub fn text(text: &str) -> String {
    if is_formula(text) {
        format!("'{text}")
    } else {
        text.to_owned()
    }
}

/// The text that `text` made a cell of.
pub fn plain(cell: &str) -> &str {
    match cell.strip_prefix('\'') {
        Some(rest) if is_formula(rest) => rest,
        _ => cell,
    }
}

/// Texts that were escaped already count, so that `plain` always gives back what `text` was given.
fn is_formula(text: &str) -> bool {
    text.trim_start_matches('\'')
        .starts_with(['=', '+', '-', '@', '\t', '\r'])
}

/// An axis or label in a cell: numbers as they are (a negative one is no formula), texts escaped.
pub fn value_cell(cell: &Value) -> String {
    match cell {
        Value::String(string) => text(string),
        other => value(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_formula_is_escaped_and_read_back() {
        for formula in ["=1+1", "+x", "-x", "@x", "\tx", "'=x", "''-x"] {
            let cell = text(formula);
            assert_eq!(cell, format!("'{formula}"));
            assert_eq!(plain(&cell), formula);
        }
        for harmless in ["", "a=b", "'quoted'", "it's"] {
            assert_eq!(text(harmless), harmless);
            assert_eq!(plain(harmless), harmless);
        }
        assert_eq!(value_cell(&Value::from(-5)), "-5");
    }

    #[test]
    fn no_number_is_rounded_away() {
        assert_eq!(seconds(Duration::from_nanos(1_000_000_001)), "1.000000001");
        assert_eq!(microseconds(1_234_567), "1234.567");
        assert_eq!(number(Some(0.1 + 0.2)), "0.30000000000000004");
        assert_eq!(number(Some(20_000.0)), "20000");
        assert_eq!(number(Some(f64::NAN)), "");
    }
}
