//! A table as aligned text, for people at a terminal. CSV has all digits; here four are enough.

use super::Table;
use crate::results::cells;
use serde_json::Value;

/// The table with its name above; numbers to the right, columns in which no row has anything left out.
pub fn print(table: &Table) -> String {
    let filled: Vec<usize> = (0..table.header.len())
        .filter(|&at| table.rows.iter().any(|row| !shown(&row[at]).is_empty()))
        .collect();
    let mut text = format!("{}\n", table.name);
    let widths: Vec<usize> = filled
        .iter()
        .map(|&at| {
            let cells = table.rows.iter().map(|row| shown(&row[at]).chars().count());
            cells
                .max()
                .unwrap_or(0)
                .max(table.header[at].chars().count())
        })
        .collect();
    let numeric: Vec<bool> = filled
        .iter()
        .map(|&at| {
            table
                .rows
                .iter()
                .all(|row| row[at].is_number() || row[at].is_null())
        })
        .collect();
    let mut line = |cells: Vec<String>| {
        let padded: Vec<String> = cells
            .into_iter()
            .enumerate()
            .map(|(at, cell)| match numeric[at] {
                true => format!("{cell:>width$}", width = widths[at]),
                false => format!("{cell:<width$}", width = widths[at]),
            })
            .collect();
        text.push_str("  ");
        text.push_str(padded.join("  ").trim_end());
        text.push('\n');
    };
    line(filled.iter().map(|&at| table.header[at].clone()).collect());
    line(widths.iter().map(|&width| "-".repeat(width)).collect());
    for row in &table.rows {
        line(filled.iter().map(|&at| shown(&row[at])).collect());
    }
    for note in &table.notes {
        text.push_str(&format!("  note: {note}\n"));
    }
    text
}

fn shown(value: &Value) -> String {
    let text = match value.as_f64().filter(|_| value.is_f64()) {
        Some(number) => four_digits(number),
        None => cells::value(value),
    };
    text.replace(['\n', '\r', '\t'], " ")
}

fn four_digits(number: f64) -> String {
    let decimals = match number.abs() {
        n if n >= 1000.0 || n == 0.0 => 0,
        n if n >= 100.0 => 1,
        n if n >= 10.0 => 2,
        n if n >= 1.0 => 3,
        n => 4 - (n.log10().floor() as i32 + 1).min(0).max(-9) + 0,
    };
    format!("{number:.*}", decimals.max(0) as usize)
}
