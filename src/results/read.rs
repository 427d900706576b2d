//! Reading a run directory back: plan, manifest, and the CSV files by the names of their columns.
//!
//! Columns that this version does not know are ignored, and so are rows of runs that were not finished. Tables and reports
//! work on this alone; they get the plan's and the records' types from here.

use super::csv_file::row_ends;
use super::layout::{self, RunDirectory};
use super::manifest::Manifest;
use super::{ResultsError, cells};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

pub use crate::measure::latency::{PERCENTILES, percentile_ns};
pub use crate::measure::record::{Latencies, Status};
pub use crate::plan::{Axis, ConditionPlan, PhasePlan, Plan, RepeatRule, Shape, TablePlan};

/// A run directory, read.
#[derive(Debug)]
pub struct Results {
    pub directory: RunDirectory,
    pub plan: Plan,
    pub manifest: Manifest,
    /// The finished runs, by their positions in the plan.
    pub runs: BTreeMap<usize, RunRow>,
    positions: HashMap<String, usize>,
}

/// A row of runs.csv.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunRow {
    /// `valid`, `invalid`, `failed` or `skipped`.
    pub status: String,
    pub reason: String,
    pub doubts: Vec<String>,
    pub started_at: String,
    pub elapsed_seconds: String,
    pub server_version: String,
}

impl Results {
    pub fn open(path: &Path) -> Result<Results, ResultsError> {
        let directory = RunDirectory::open(path)?;
        let file = directory.file(layout::PLAN);
        let text = fs::read(&file).map_err(ResultsError::read(&file))?;
        let plan: Plan = serde_json::from_slice(&text).map_err(|error| {
            ResultsError::refused(&file, format!("is no {}: {error}", layout::PLAN))
        })?;
        let manifest = Manifest::read(&directory.file(layout::MANIFEST))?;
        let positions = (0..plan.runs.len())
            .map(|run| (cells::text(&layout::run_id(&plan, run)), run))
            .collect();
        let mut results = Results {
            directory,
            plan,
            manifest,
            runs: BTreeMap::new(),
            positions,
        };
        results.runs = results.read_runs()?;
        Ok(results)
    }

    fn read_runs(&self) -> Result<BTreeMap<usize, RunRow>, ResultsError> {
        let rows = self.read_rows(layout::RUNS, |_| true)?;
        let runs = rows.by_run.iter().filter_map(|(run, found)| {
            let row = found.first()?;
            let text = |name: &str| cells::plain(rows.cell(row, name)).to_owned();
            let run_row = RunRow {
                status: text("status"),
                reason: text("reason"),
                doubts: text("doubts")
                    .split_whitespace()
                    .map(str::to_owned)
                    .collect(),
                started_at: text("started_at"),
                elapsed_seconds: text("elapsed_seconds"),
                server_version: text("server_version"),
            };
            Some((*run, run_row))
        });
        Ok(runs.collect())
    }

    /// A run's id, as the files have it.
    pub fn run_id(&self, run: usize) -> String {
        layout::run_id(&self.plan, run)
    }

    /// The histograms of a run.
    pub fn hlog(&self, run: usize) -> std::path::PathBuf {
        self.directory.hlog(&layout::slug(&self.run_id(run)))
    }

    /// The rows of a CSV file that belong to finished runs; none where the file is not there.
    pub fn rows(&self, file: &str) -> Result<Rows, ResultsError> {
        self.read_rows(file, |run| self.runs.contains_key(&run))
    }

    fn read_rows(&self, file: &str, wanted: impl Fn(usize) -> bool) -> Result<Rows, ResultsError> {
        let path = self.directory.file(file);
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            bytes => bytes.map_err(ResultsError::read(&path))?,
        };
        // A row that is being written, or was when dbbench was killed, is not there yet.
        let whole = row_ends(&bytes).last().unwrap_or(0);
        let mut reader = csv::ReaderBuilder::new()
            .flexible(true)
            .from_reader(&bytes[..whole]);
        let damaged =
            |error: csv::Error| ResultsError::refused(&path, format!("is damaged: {error}"));
        let header = reader.headers().map_err(damaged)?.iter().enumerate();
        let mut rows = Rows {
            columns: header.map(|(at, name)| (name.to_owned(), at)).collect(),
            by_run: HashMap::new(),
        };
        for record in reader.records() {
            let record = record.map_err(damaged)?;
            let run = self.positions.get(rows.cell(&record, "run")).copied();
            if let Some(run) = run.filter(|run| wanted(*run)) {
                rows.by_run.entry(run).or_default().push(record);
            }
        }
        Ok(rows)
    }
}

/// Rows of one CSV file, by run.
#[derive(Debug, Default)]
pub struct Rows {
    columns: HashMap<String, usize>,
    by_run: HashMap<usize, Vec<csv::StringRecord>>,
}

/// What a run that is not finished has given until now.
#[derive(Debug)]
pub struct RunSoFar {
    /// Position in the plan.
    pub run: usize,
    pub operations: Rows,
    pub errors: Rows,
    pub probes: Rows,
    pub hlog: std::path::PathBuf,
}

impl Rows {
    /// Rows of one run that are not in a file yet.
    pub fn of_run(header: &[String], run: usize, rows: Vec<Vec<String>>) -> Rows {
        let columns = header.iter().cloned().zip(0..).collect();
        let records = rows.into_iter().map(csv::StringRecord::from).collect();
        Rows {
            columns,
            by_run: HashMap::from([(run, records)]),
        }
    }

    pub fn of(&self, run: usize) -> &[csv::StringRecord] {
        self.by_run.get(&run).map_or(&[], Vec::as_slice)
    }

    /// The cell as the file has it; empty where there is no such column.
    pub fn cell<'r>(&self, row: &'r csv::StringRecord, column: &str) -> &'r str {
        let at = self.columns.get(column);
        at.and_then(|&at| row.get(at)).unwrap_or_default()
    }

    /// Names of the columns, in no order.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{self, Load};
    use super::*;

    const LOAD: Load = Load {
        succeeded: 40,
        timed_out: 2,
        first_ns: 100_000,
    };

    #[test]
    fn what_was_written_is_read_back() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("out");
        let plan = fixture::plan();
        let mut writer = fixture::open(&path, &plan);
        fixture::write_run(&mut writer, &plan, 0, LOAD);
        let run = writer.begin(1).unwrap();
        run.finish(fixture::run_record(Status::Failed, "=it broke, twice"))
            .unwrap();
        let mut unfinished = writer.begin(2).unwrap();
        fixture::write_phases(&mut unfinished, &plan.shapes[0].phases, LOAD);
        drop(unfinished);

        let results = Results::open(&path).unwrap();
        assert_eq!(results.plan.runs.len(), plan.runs.len());
        assert_eq!(results.manifest.plan_hash, "abc");
        assert_eq!(results.runs.keys().copied().collect::<Vec<_>>(), [0, 1]);
        assert_eq!(results.runs[&1].reason, "=it broke, twice");
        let operations = results.rows(layout::OPERATIONS).unwrap();
        assert_eq!(operations.of(0).len(), 4);
        assert_eq!(operations.cell(&operations.of(0)[1], "group"), "read");
        assert!(operations.of(2).is_empty());
    }

    #[test]
    fn columns_of_a_later_version_do_no_harm_and_half_rows_are_not_there() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("out");
        let plan = fixture::plan();
        let mut writer = fixture::open(&path, &plan);
        fixture::write_run(&mut writer, &plan, 0, LOAD);
        fs::write(
            path.join(layout::ERRORS),
            "new,run,count\nx,\"target=redis,threads=1#1\",7\nx,\"target=redis,thre",
        )
        .unwrap();
        let errors = Results::open(&path).unwrap().rows(layout::ERRORS).unwrap();
        assert_eq!(errors.of(0).len(), 1);
        assert_eq!(errors.cell(&errors.of(0)[0], "count"), "7");
    }
}
