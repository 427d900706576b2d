//! Writing: one run at a time, and a run is there when its row of runs.csv is.
//!
//! ```text
//! open or resume, then per run: begin, window.., phase.., sample.., finish; at the end: finish
//! ```
//!
//! Nothing grows with the length of a run but files: windows are written as they come, histograms wait in an unnamed
//! file until their phase has ended. `finish` syncs all other files before it appends to runs.csv, so a kill at any moment
//! leaves at most rows of a run that runs.csv does not know, and those are cut off by the next `begin` or `resume`.

use super::columns::{self, OperationFacts, RunCells, WindowFacts};
use super::csv_file::CsvFile;
use super::hlog::HistogramLog;
use super::layout::{self, RunDirectory};
use super::manifest::Manifest;
use super::read::{Rows, RunSoFar};
use super::{ResultsError, resume};
use crate::measure::record::{PhaseRecord, RunRecord, Sample, WindowRecord};
use crate::plan::{PhasePlan, Plan};
use jiff::Timestamp;
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// A run directory that is being written.
#[derive(Debug)]
pub struct ResultsWriter<'p> {
    directory: RunDirectory,
    plan: &'p Plan,
    manifest: Manifest,
    /// Whether manifest.json is older than `manifest`.
    manifest_changed: bool,
    secrets: Vec<String>,
    /// Let go when the writer is dropped.
    _lock: File,
    runs: CsvFile,
    operations: CsvFile,
    windows: CsvFile,
    errors: CsvFile,
    servers: CsvFile,
    probes: CsvFile,
}

impl<'p> ResultsWriter<'p> {
    /// Starts a new run directory: plan and manifest, and the headers of the CSV files.
    pub fn open(
        directory: RunDirectory,
        plan: &'p Plan,
        manifest: Manifest,
    ) -> Result<ResultsWriter<'p>, ResultsError> {
        write_json(&directory.file(layout::PLAN), plan)?;
        let lock = directory.lock()?;
        write_json(&directory.file(layout::MANIFEST), &manifest)?;
        ResultsWriter::with_files(directory, plan, manifest, &resume::Kept::default(), lock)
    }

    /// Goes on with a run directory whose plan has the same hash. Cuts off what an unfinished run left behind, and
    /// returns the positions in the plan of the runs that are done, whatever their status.
    pub fn resume(
        directory: RunDirectory,
        plan: &'p Plan,
        now: Timestamp,
    ) -> Result<(ResultsWriter<'p>, Vec<usize>), ResultsError> {
        let lock = directory.lock()?;
        let (mut manifest, kept) = resume::check(&directory, plan)?;
        manifest.resumed(now);
        let writer = ResultsWriter::with_files(directory, plan, manifest, &kept, lock)?;
        resume::remove_leftovers(&writer.directory, plan, &kept.done)?;
        writer.save_manifest()?;
        Ok((writer, kept.done))
    }

    fn with_files(
        directory: RunDirectory,
        plan: &'p Plan,
        manifest: Manifest,
        kept: &resume::Kept,
        lock: File,
    ) -> Result<ResultsWriter<'p>, ResultsError> {
        let open = |name: &str, keep: u64, header: Vec<String>| {
            CsvFile::open(&directory.file(name), keep, &header)
        };
        Ok(ResultsWriter {
            runs: open(layout::RUNS, kept.runs, columns::runs_header(plan))?,
            operations: open(
                layout::OPERATIONS,
                kept.operations,
                columns::operations_header(plan),
            )?,
            windows: open(layout::WINDOWS, kept.windows, columns::windows_header())?,
            errors: open(layout::ERRORS, kept.errors, columns::errors_header())?,
            servers: open(layout::SERVERS, kept.servers, columns::servers_header())?,
            probes: open(layout::PROBES, kept.probes, columns::probes_header(plan))?,
            _lock: lock,
            directory,
            plan,
            manifest,
            manifest_changed: false,
            secrets: Vec::new(),
        })
    }

    pub fn directory(&self) -> &RunDirectory {
        &self.directory
    }

    /// Texts that must never be written: replaced by `***` in messages, reasons and the manifest.
    pub fn hide(&mut self, secrets: impl IntoIterator<Item = String>) {
        for secret in secrets {
            if !secret.is_empty() && !self.secrets.contains(&secret) {
                self.secrets.push(secret);
            }
        }
    }

    /// What is learned on the way (versions, settings, round trips) goes in here; written when the run is finished.
    pub fn manifest(&mut self) -> &mut Manifest {
        self.manifest_changed = true;
        &mut self.manifest
    }

    /// Replaces manifest.json as a whole, so that a kill leaves the old or the new one.
    pub fn save_manifest(&self) -> Result<(), ResultsError> {
        let path = self.directory.file(layout::MANIFEST);
        write_json(&path, &self.manifest.without(&self.secrets))
    }

    /// Starts run `run` of the plan; whatever a run that was not finished has left is cut off first.
    pub fn begin(&mut self, run: usize) -> Result<RunWriter<'_, 'p>, ResultsError> {
        for file in self.files() {
            file.cut_back()?;
        }
        let id = layout::run_id(self.plan, run);
        let slug = layout::slug(&id);
        let histograms = HistogramLog::create(&self.directory.hlog(&slug))?;
        Ok(RunWriter {
            cells: columns::run_cells(self.plan, run, &id),
            id,
            slug,
            histograms,
            phases: Vec::new(),
            probes: Vec::new(),
            run,
            results: self,
        })
    }

    fn files(&mut self) -> [&mut CsvFile; 6] {
        [
            &mut self.runs,
            &mut self.operations,
            &mut self.windows,
            &mut self.errors,
            &mut self.servers,
            &mut self.probes,
        ]
    }

    /// Ends the invocation: its end and exit code go into the manifest.
    pub fn finish(mut self, ended: Timestamp, exit_code: i32) -> Result<(), ResultsError> {
        for file in self.files() {
            file.cut_back()?;
        }
        if !self.secrets.is_empty() {
            hide_in_logs(&self.directory.file(layout::SERVER_LOGS), &self.secrets);
        }
        self.manifest.ended(ended, exit_code);
        self.save_manifest()
    }

    fn hidden(&self, text: &str) -> String {
        super::manifest::hide(text, &self.secrets)
    }
}

/// Covers every secret in the logs below `path` with asterisks, in place: a server may still have its log open.
fn hide_in_logs(path: &Path, secrets: &[String]) {
    // A secret that the server itself wrote cannot be kept out of its log before; what cannot be read now holds nothing.
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => hide_in_logs(&entry.path(), secrets),
            Ok(kind) if kind.is_file() => drop(hide_in_log(&entry.path(), secrets)),
            _ => {}
        }
    }
}

fn hide_in_log(path: &Path, secrets: &[String]) -> std::io::Result<()> {
    use std::os::unix::fs::FileExt;
    let text = std::fs::read(path)?;
    for secret in secrets.iter().map(String::as_bytes) {
        let places = text
            .windows(secret.len())
            .enumerate()
            .filter(|(_, window)| *window == secret);
        for (position, _) in places {
            let file = File::options().write(true).open(path)?;
            file.write_all_at(&vec![b'*'; secret.len()], position as u64)?;
        }
    }
    Ok(())
}

/// The run that is being measured. Dropped without `finish`, it leaves nothing behind that counts.
#[derive(Debug)]
pub struct RunWriter<'w, 'p> {
    results: &'w mut ResultsWriter<'p>,
    id: String,
    slug: String,
    cells: RunCells,
    histograms: HistogramLog,
    /// Rows of operations.csv and errors.csv: a handful per phase.
    phases: Vec<PhaseRows>,
    /// Rows of probes.csv.
    probes: Vec<Vec<String>>,
    /// Position in the plan.
    run: usize,
}

#[derive(Debug, Default)]
struct PhaseRows {
    operations: Vec<Vec<String>>,
    errors: Vec<Vec<String>>,
}

impl RunWriter<'_, '_> {
    /// The text without any secret.
    pub fn hidden(&self, text: &str) -> String {
        self.results.hidden(text)
    }

    /// Covers secrets in the logs of the run's servers; for when these have ended.
    pub fn hide_in_logs(&self) {
        if !self.results.secrets.is_empty() {
            let logs = self.results.directory.server_logs(&self.slug);
            hide_in_logs(&logs, &self.results.secrets);
        }
    }

    /// `target=redis,threads=4#2`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The id as a file name; server logs of this run belong into `directory().server_logs(slug)`.
    pub fn slug(&self) -> &str {
        &self.slug
    }

    pub fn directory(&self) -> &RunDirectory {
        &self.results.directory
    }

    /// See `ResultsWriter::manifest`.
    pub fn manifest(&mut self) -> &mut Manifest {
        self.results.manifest()
    }

    /// See `ResultsWriter::hide`.
    pub fn hide(&mut self, secrets: impl IntoIterator<Item = String>) {
        self.results.hide(secrets);
    }

    /// A window of the phase that is running: rows of windows.csv, and its histograms for later.
    pub fn window(&mut self, phase: &PhasePlan, window: &WindowRecord) -> Result<(), ResultsError> {
        self.window_with(phase, window, "")
    }

    /// The same with what was done to servers meanwhile: `kill redis/2`.
    pub fn window_with(
        &mut self,
        phase: &PhasePlan,
        window: &WindowRecord,
        faults: &str,
    ) -> Result<(), ResultsError> {
        for measures in &window.operations {
            let Some(group) = phase.groups.get(measures.group) else {
                continue;
            };
            let Some(entry) = group.mix.get(measures.slot) else {
                continue;
            };
            let facts = WindowFacts {
                phase: &phase.name,
                group: &group.name,
                operation: &entry.operation,
                window,
                measures,
                faults,
            };
            let row = columns::window_row(&self.cells, &facts);
            self.results.windows.append(&row)?;
        }
        self.histograms.spool(phase, window)
    }

    /// A phase has ended: its rows are kept until the run is finished, its histograms are encoded now.
    pub fn phase(&mut self, plan: &PhasePlan, record: &PhaseRecord) -> Result<(), ResultsError> {
        let mut rows = PhaseRows::default();
        for group in &record.groups {
            for operation in &group.operations {
                let facts = OperationFacts {
                    phase: record,
                    group,
                    operation,
                };
                let row = columns::operation_row(&self.cells, &facts);
                rows.operations.push(row);
            }
        }
        for error in &record.errors {
            let mut error = error.clone();
            error.first_message = self.results.hidden(&error.first_message);
            rows.errors
                .push(columns::error_row(&self.cells, record, &error));
        }
        self.phases.push(rows);
        self.histograms.encode(plan, record.started_at)
    }

    /// A probe was read.
    pub fn probe(&mut self, name: &str, value: &serde_json::Value, unit: &str) {
        let value = match value {
            serde_json::Value::String(text) => self.results.hidden(text).into(),
            other => other.clone(),
        };
        let row = columns::probe_row(self.results.plan, &self.cells, name, &value, unit);
        self.probes.push(row);
    }

    /// What the run has given until now, as it will be read back: for what must be known before it is finished.
    pub fn so_far(&self) -> RunSoFar {
        let plan = self.results.plan;
        let of_phases = |rows: fn(&PhaseRows) -> &Vec<Vec<String>>| {
            let rows = self.phases.iter().flat_map(rows);
            rows.cloned().collect::<Vec<_>>()
        };
        RunSoFar {
            run: self.run,
            operations: Rows::of_run(
                &columns::operations_header(plan),
                self.run,
                of_phases(|rows| &rows.operations),
            ),
            errors: Rows::of_run(
                &columns::errors_header(),
                self.run,
                of_phases(|rows| &rows.errors),
            ),
            probes: Rows::of_run(&columns::probes_header(plan), self.run, self.probes.clone()),
            hlog: self.directory().hlog(&self.slug),
        }
    }

    /// A process, the client or the host at a moment: a row of servers.csv.
    pub fn sample(&mut self, sample: &Sample) -> Result<(), ResultsError> {
        let row = columns::sample_row(&self.cells, sample);
        self.results.servers.append(&row)
    }

    /// Ends the run: every other file is on disk before runs.csv has the row that says so.
    pub fn finish(self, mut record: RunRecord) -> Result<(), ResultsError> {
        let results = self.results;
        for phase in &self.phases {
            for row in &phase.operations {
                results.operations.append(row)?;
            }
            for row in &phase.errors {
                results.errors.append(row)?;
            }
        }
        for row in &self.probes {
            results.probes.append(row)?;
        }
        self.histograms.finish()?;
        if std::mem::take(&mut results.manifest_changed) {
            results.save_manifest()?;
        }
        for file in [
            &mut results.windows,
            &mut results.operations,
            &mut results.errors,
            &mut results.servers,
            &mut results.probes,
        ] {
            file.sync()?;
        }
        record.reason = results.hidden(&record.reason);
        results
            .runs
            .append(&columns::run_row(&self.cells, &record))?;
        results.runs.sync()?;
        for file in results.files() {
            file.commit()?;
        }
        Ok(())
    }
}

/// Writes a whole file beside `path`, syncs it and moves it there.
pub(super) fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<(), ResultsError> {
    let mut text = serde_json::to_vec_pretty(value)
        .map_err(|error| ResultsError::refused(path, error.to_string()))?;
    text.push(b'\n');
    replace(path, &text).map_err(ResultsError::write(path))
}

pub(crate) fn replace(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(layout::UNFINISHED)
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(directory)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    File::open(directory)?.sync_all()
}
