//! The tables that a scenario asks for, made from run directories alone.
//!
//! `select` says which run stands in which cell, `facts` what an expression can read of it (with `merge` and `histograms`
//! where several rows become one), `value` evaluates, `repeats` combines, `grid` puts it all into rows and columns, `text`
//! prints it. A cell that cannot be computed is empty, and the notes of its row say why.

pub mod condition;
pub mod expression;
mod facts;
mod grid;
mod histograms;
mod merge;
mod repeats;
mod select;
mod text;
mod value;

pub use text::print;

use crate::results::csv_file::encode;
use crate::results::read::{Results, TablePlan};
use crate::results::{ResultsError, cells, layout};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A table, complete.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub name: String,
    pub header: Vec<String>,
    /// As long as the header; null = an empty cell.
    pub rows: Vec<Vec<Value>>,
    /// About the table as a whole: a histogram log that could not be read.
    pub notes: Vec<String>,
}

/// Why tables could not be made.
#[derive(Debug, thiserror::Error)]
pub enum TablesError {
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// The definition does not fit the runs; a fault of the scenario.
    #[error("table `{table}`: {reason}")]
    Definition { table: String, reason: String },
}

impl TablesError {
    fn definition(definition: &TablePlan, reason: impl Into<String>) -> TablesError {
        TablesError::Definition {
            table: definition.name.clone(),
            reason: reason.into(),
        }
    }
}

/// Makes the tables of one or several run directories together; by the definitions given, else by those that the first
/// directory's plan holds.
pub fn make(
    directories: &[PathBuf],
    definitions: Option<Vec<TablePlan>>,
) -> Result<Vec<Table>, TablesError> {
    let opened: Result<Vec<Results>, ResultsError> =
        directories.iter().map(|path| Results::open(path)).collect();
    let all = opened?;
    let definitions = definitions.unwrap_or_else(|| {
        let first = all.first();
        first.map_or_else(Vec::new, |results| results.plan.tables.clone())
    });
    let windows = definitions
        .iter()
        .any(|definition| definition.rows.iter().any(|row| row == "window"));
    let files: Result<Vec<facts::Files>, ResultsError> = all
        .iter()
        .map(|results| facts::Files::read(results, windows))
        .collect();
    let files = files?;
    definitions
        .iter()
        .map(|definition| grid::build(definition, &all, &files))
        .collect()
}

/// Writes `<directory>/<name>.csv` for each table, and returns where they are.
pub fn write(tables: &[Table], directory: &Path) -> Result<Vec<PathBuf>, ResultsError> {
    std::fs::create_dir_all(directory).map_err(ResultsError::write(directory))?;
    tables
        .iter()
        .map(|table| {
            let path = directory.join(format!("{}.csv", table.name));
            crate::results::writer::replace(&path, csv(table).as_bytes())
                .map_err(ResultsError::write(&path))?;
            Ok(path)
        })
        .collect()
}

/// The place of the tables in a run directory.
pub fn directory_of(run_directory: &Path) -> PathBuf {
    run_directory.join(layout::TABLES)
}

/// The table as its CSV file has it.
pub fn csv(table: &Table) -> String {
    let mut bytes = Vec::new();
    let header: Vec<String> = table.header.iter().map(|name| cells::text(name)).collect();
    encode(&header, &mut bytes);
    for row in &table.rows {
        let row: Vec<String> = row.iter().map(cell).collect();
        encode(&row, &mut bytes);
    }
    String::from_utf8(bytes).expect("cells are text")
}

/// Integers as they are, other numbers by the shortest text that reads back the same, texts escaped.
fn cell(value: &Value) -> String {
    match value {
        Value::Number(number) if number.is_f64() => cells::number(number.as_f64()),
        other => cells::value_cell(other),
    }
}

#[cfg(test)]
mod tests;
