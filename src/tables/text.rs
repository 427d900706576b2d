//! A table as aligned text, for people at a terminal. CSV has all digits and columns; here four digits are enough, the
//! spread of repeats is left out, and notes stand below, each once.

use super::Table;
use crate::results::cells;
use serde_json::Value;

/// The table with its name above and numbers to the right. Columns without a single filled cell are not shown.
pub fn print(table: &Table) -> String {
    if table.rows.is_empty() {
        return format!("{}\n  (no rows)\n", table.name);
    }
    let mut notes = Notes::default();
    let columns = columns(table);
    let rows: Vec<Vec<String>> = table
        .rows
        .iter()
        .map(|row| {
            columns
                .iter()
                .map(|&at| notes.cell(table, row, at))
                .collect()
        })
        .collect();
    let numeric = |at: usize| {
        let mut cells = table.rows.iter().map(|row| &row[at]);
        cells.all(|cell| cell.is_number() || cell.is_null())
    };
    let right: Vec<bool> = columns.iter().map(|&at| numeric(at)).collect();
    let header: Vec<String> = columns.iter().map(|&at| table.header[at].clone()).collect();
    let width = |column: usize| {
        let cells = rows.iter().chain([&header]);
        cells
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let rule: Vec<String> = widths.iter().map(|&width| "-".repeat(width)).collect();
    let mut text = format!("{}\n", table.name);
    for row in [&header, &rule].into_iter().chain(&rows) {
        text.push_str(&line(row, &widths, &right));
    }
    for (number, note) in notes.list.iter().enumerate() {
        text.push_str(&format!("  {}: {note}\n", number + 1));
    }
    for note in &table.notes {
        text.push_str(&format!("  note: {note}\n"));
    }
    text
}

/// Positions of the columns that are shown.
fn columns(table: &Table) -> Vec<usize> {
    let filled = |at: &usize| table.rows.iter().any(|row| !shown(&row[*at]).is_empty());
    let columns = 0..table.header.len();
    columns
        .filter(|at| filled(at) && !is_spread(table, *at))
        .collect()
}

/// Whether a column is the smallest, the largest or the count of another's repeats.
fn is_spread(table: &Table, at: usize) -> bool {
    let name = &table.header[at];
    let suffixes = ["_min", "_max", "_n"];
    let bases = suffixes
        .iter()
        .filter_map(|suffix| name.strip_suffix(suffix));
    let whole = |base: &str| {
        // All three stand there, or the column has such a name by itself.
        let is_there = |name: &str| table.header.iter().any(|other| other == name);
        is_there(base)
            && suffixes
                .iter()
                .all(|suffix| is_there(&format!("{base}{suffix}")))
    };
    bases.into_iter().any(whole)
}

/// What stands in the column of notes, each text once, in the order in which they come.
#[derive(Default)]
struct Notes {
    list: Vec<String>,
}

impl Notes {
    /// A cell as it is shown; in the column of notes, the number under which its text stands below.
    fn cell(&mut self, table: &Table, row: &[Value], at: usize) -> String {
        let text = shown(&row[at]);
        if table.header[at] != "notes" || text.is_empty() {
            return text;
        }
        self.number(&text).to_string()
    }

    fn number(&mut self, note: &str) -> usize {
        let known = self.list.iter().position(|other| other == note);
        known.map_or_else(
            || {
                self.list.push(note.to_owned());
                self.list.len()
            },
            |at| at + 1,
        )
    }
}

fn line(cells: &[String], widths: &[usize], right: &[bool]) -> String {
    let padded = cells
        .iter()
        .zip(widths)
        .zip(right)
        .map(|((cell, &width), right)| match right {
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        });
    let padded: Vec<String> = padded.collect();
    format!("  {}\n", padded.join("  ").trim_end())
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

    #[test]
    fn a_table_without_rows_says_so() {
        let table = Table {
            name: "t".into(),
            header: vec!["target".into()],
            rows: Vec::new(),
            notes: Vec::new(),
        };
        assert_eq!(print(&table), "t\n  (no rows)\n");
    }

    #[test]
    fn the_spread_of_repeats_is_left_out_and_a_note_stands_once_below() {
        let header = ["target", "s", "s_min", "s_max", "s_n", "queue_n", "notes"];
        let row = |name: &str, notes: &str| {
            let numbers = [json!(1), json!(1), json!(2), json!(3), json!(7)];
            [vec![json!(name)], numbers.to_vec(), vec![json!(notes)]].concat()
        };
        let table = Table {
            name: "t".into(),
            header: header.map(str::to_owned).to_vec(),
            rows: vec![
                row("a", "x: slow; y"),
                row("b", ""),
                row("c", "z"),
                row("d", "x: slow; y"),
            ],
            notes: Vec::new(),
        };
        assert_eq!(
            print(&table),
            "t\n  target  s  queue_n  notes\n  ------  -  -------  -----\n  a       1        7  1\n  \
             b       1        7\n  c       1        7  2\n  d       1        7  1\n  1: x: slow; y\n  2: z\n"
        );
    }
}
