//! A table as aligned text, for people at a terminal. CSV has all digits; here four are enough.

use super::Table;
use crate::results::cells;
use serde_json::Value;

/// The table with its name above and numbers to the right. Columns without a single filled cell are not shown.
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
    let whole_digits = match number.abs() {
        0.0 => 4,
        n => n.log10().floor() as i32 + 1,
    };
    let decimals = (4 - whole_digits).clamp(0, 12) as usize;
    format!("{number:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn people_see_four_digits_and_no_empty_columns() {
        let table = Table {
            name: "seconds".into(),
            header: ["target", "s", "notes"].map(str::to_owned).to_vec(),
            rows: vec![
                vec![json!("redis"), json!(1.23456), json!("")],
                vec![json!("sqlite"), Value::Null, Value::Null],
                vec![json!("redb"), json!(12345.6), Value::Null],
                vec![json!("fjall"), json!(0.00012345), Value::Null],
            ],
            notes: vec!["a log is damaged".into()],
        };
        assert_eq!(
            print(&table),
            "seconds\n  target          s\n  ------  ---------\n  redis       1.235\n  sqlite\n  \
             redb        12346\n  fjall   0.0001234\n  note: a log is damaged\n"
        );
    }
}
