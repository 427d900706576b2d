//! Our windows added up to Basho Bench's: counts from windows.csv, distributions from the histogram log.
//!
//! Rows of windows.csv and lines of the log come in one order for each operation, a line for each row with a success, so
//! they are read side by side; a line that does not hold as many values as its row has successes is damage. Minimum, mean
//! and maximum are exact (from the rows), percentiles those of the added histograms.

use crate::results::ResultsError;
use crate::results::hlog::{self, LogInterval};
use crate::results::layout;
use crate::results::read::{Latencies, PhasePlan, Results, Rows};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// More windows than this are no measurement but damage.
const MOST_WINDOWS: u64 = 10_000_000;

/// A phase of a run, in windows as long as was asked.
#[derive(Debug)]
pub struct Gathered {
    pub run: String,
    pub phase: String,
    /// As long as every window but the last.
    pub window: Duration,
    /// End of each window, from the start of the measured time.
    pub ends: Vec<Duration>,
    pub operations: Vec<Operation>,
    /// Of the whole phase, its drain too, without its warm-up.
    pub errors: Vec<Errors>,
}

/// One operation of one group.
#[derive(Debug)]
pub struct Operation {
    /// Empty where the phase has no groups.
    pub group: String,
    pub name: String,
    /// What its file is called: letters, digits and `-`; never that of another operation.
    pub label: String,
    /// One per window.
    pub windows: Vec<Cell>,
}

#[derive(Clone, Debug, Default)]
pub struct Cell {
    pub succeeded: u64,
    pub failed: u64,
    /// Of successes; None without any.
    pub figures: Option<Figures>,
}

/// Nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    pub min: f64,
    pub mean: f64,
    pub median: f64,
    pub p95: f64,
    pub p99: f64,
    pub p99_9: f64,
    pub max: f64,
}

/// Failures of one kind.
#[derive(Debug)]
pub struct Errors {
    pub label: String,
    pub operation: String,
    pub class: String,
    /// Empty where the class has none.
    pub code: String,
    pub count: u64,
}

impl Gathered {
    /// Length of each window; the last may be shorter.
    pub fn length(&self, at: usize) -> Duration {
        let before = at.checked_sub(1).map_or(Duration::ZERO, |at| self.ends[at]);
        self.ends[at].saturating_sub(before)
    }

    /// (succeeded, failed) of all operations in a window.
    pub fn counts(&self, at: usize) -> (u64, u64) {
        let cells = self
            .operations
            .iter()
            .map(|operation| &operation.windows[at]);
        cells.fold((0, 0), |(succeeded, failed), cell| {
            (succeeded + cell.succeeded, failed + cell.failed)
        })
    }
}

/// The files of a run directory that windows are gathered from.
pub struct Sources<'r> {
    results: &'r Results,
    windows: Rows,
    operations: Rows,
    errors: Rows,
}

/// A row of windows.csv.
struct Row {
    measured: bool,
    start: Duration,
    length: Duration,
    succeeded: u64,
    failed: u64,
    min: f64,
    mean: f64,
    max: f64,
}

impl<'r> Sources<'r> {
    pub fn read(results: &'r Results) -> Result<Sources<'r>, ResultsError> {
        Ok(Sources {
            results,
            windows: results.rows(layout::WINDOWS)?,
            operations: results.rows(layout::OPERATIONS)?,
            errors: results.rows(layout::ERRORS)?,
        })
    }

    /// None where the phase did not end or measured nothing.
    pub fn gather(
        &self,
        run: usize,
        phase: &PhasePlan,
        window: Duration,
    ) -> Result<Option<Gathered>, ResultsError> {
        let Some(measured) = self.measured_time(run, &phase.name)? else {
            return Ok(None);
        };
        let mut tracks = self.tracks(run, phase)?;
        let rows = || tracks.iter().flat_map(|track| &track.rows);
        let first = rows().filter(|row| row.measured).map(|row| row.start).min();
        let Some(first) = first else { return Ok(None) };
        // Windows in which nothing ended have no row, the first ones neither.
        let from = first.min(Duration::from_nanos(phase.warmup_ns));
        let end = |row: &Row| (row.start + row.length).saturating_sub(from);
        let last = rows().filter(|row| row.measured).map(end).max();
        let ends = ends(measured.max(last.unwrap_or_default()), window);
        let Some(ends) = ends else {
            return Err(self.damaged(layout::WINDOWS, "its windows are too many".to_owned()));
        };
        for track in &mut tracks {
            track.place(from, window, ends.len());
        }
        self.add_histograms(run, &mut tracks)?;
        let operations: Vec<Operation> = tracks.into_iter().map(Track::finish).collect();
        Ok(Some(Gathered {
            run: self.results.run_id(run),
            phase: phase.name.clone(),
            window,
            ends,
            errors: self.errors(run, &phase.name, &operations)?,
            operations,
        }))
    }

    /// Of all passes together; None where the phase did not end.
    fn measured_time(&self, run: usize, phase: &str) -> Result<Option<Duration>, ResultsError> {
        let of_phase = |row: &&csv::StringRecord| self.operations.cell(row, "phase") == phase;
        let Some(row) = self.operations.of(run).iter().find(of_phase) else {
            return Ok(None);
        };
        let cells = Cells {
            sources: self,
            file: layout::OPERATIONS,
            rows: &self.operations,
            row,
        };
        let passes = cells.count("passes")?.max(1);
        let seconds = cells.number("elapsed_seconds")? * passes as f64;
        Ok(Some(cells.duration("elapsed_seconds", seconds)?))
    }

    fn tracks(&self, run: usize, phase: &PhasePlan) -> Result<Vec<Track>, ResultsError> {
        let mut tracks: Vec<Track> = Vec::new();
        let mut positions = HashMap::new();
        for group in &phase.groups {
            for entry in &group.mix {
                let taken = |label: &str| tracks.iter().any(|track| track.label == label);
                let label = free_label(&group.name, &entry.operation, taken);
                positions.insert(
                    (group.name.as_str(), entry.operation.as_str()),
                    tracks.len(),
                );
                tracks.push(Track {
                    group: group.name.clone(),
                    name: entry.operation.clone(),
                    label,
                    tag: format!(
                        "{}.succeeded_service",
                        hlog::tag_of(&phase.name, &group.name, &entry.operation)
                    ),
                    ..Track::default()
                });
            }
        }
        for row in self.windows.of(run) {
            let cell = |name: &str| self.windows.cell(row, name);
            let stage = cell("stage");
            if cell("phase") != phase.name || stage == "warmup" {
                continue;
            }
            let Some(&at) = positions.get(&(cell("group"), cell("operation"))) else {
                return Err(self.damaged(
                    layout::WINDOWS,
                    format!("the plan has no operation {} there", cell("operation")),
                ));
            };
            tracks[at].rows.push(self.row(row, stage == "measured")?);
        }
        Ok(tracks)
    }

    fn row(&self, row: &csv::StringRecord, measured: bool) -> Result<Row, ResultsError> {
        let cells = Cells {
            sources: self,
            file: layout::WINDOWS,
            rows: &self.windows,
            row,
        };
        let seconds = |name: &str| cells.duration(name, cells.number(name)?);
        let succeeded = cells.count("succeeded")?;
        let ns = |figure: &str| match succeeded {
            0 => Ok(0.0),
            _ => Ok(cells.number(&format!("succeeded_service_time_{figure}_us"))? * 1000.0),
        };
        Ok(Row {
            measured,
            start: seconds("window_start_seconds")?,
            length: seconds("window_seconds")?,
            succeeded,
            failed: cells.count("failed")?
                + cells.count("timed_out")?
                + cells.count("wrong_value")?,
            min: ns("min")?,
            mean: ns("mean")?,
            max: ns("max")?,
        })
    }

    fn add_histograms(&self, run: usize, tracks: &mut [Track]) -> Result<(), ResultsError> {
        let tags = tracks.iter().enumerate();
        let tags: HashMap<String, usize> =
            tags.map(|(at, track)| (track.tag.clone(), at)).collect();
        let mut fault = None;
        if tracks.iter().any(|track| track.next_line().is_some()) {
            let path = self.results.hlog(run);
            let wanted = |tag: &str| tags.contains_key(tag);
            hlog::read_intervals(&path, wanted, |line| {
                let track = tags.get(&line.tag).and_then(|&at| tracks.get_mut(at));
                let added = track.is_none_or(|track| track.add(&line));
                if !added && fault.is_none() {
                    fault = Some(line.tag);
                }
            })?;
        }
        let short = || tracks.iter().find(|track| track.next_line().is_some());
        match fault.or_else(|| short().map(|track| track.tag.clone())) {
            Some(tag) => Err(ResultsError::Refused {
                path: self.results.hlog(run),
                reason: format!("is damaged: its histograms {tag} are not those of windows.csv"),
            }),
            None => Ok(()),
        }
    }

    fn errors(
        &self,
        run: usize,
        phase: &str,
        operations: &[Operation],
    ) -> Result<Vec<Errors>, ResultsError> {
        let mut sums: BTreeMap<[String; 4], u64> = BTreeMap::new();
        for row in self.errors.of(run) {
            let cells = Cells {
                sources: self,
                file: layout::ERRORS,
                rows: &self.errors,
                row,
            };
            let cell = |name: &str| self.errors.cell(row, name);
            if cell("phase") != phase {
                continue;
            }
            let of = |operation: &&Operation| {
                operation.group == cell("group") && operation.name == cell("operation")
            };
            let label = operations.iter().find(of).map(|found| found.label.clone());
            let operation = cell("operation").to_owned();
            let code = crate::results::cells::plain(cell("code")).to_owned();
            let key = [
                label.unwrap_or_else(|| operation.clone()),
                operation,
                cell("class").to_owned(),
                code,
            ];
            *sums.entry(key).or_default() += cells.count("count")?;
        }
        let errors = sums
            .into_iter()
            .map(|([label, operation, class, code], count)| Errors {
                label,
                operation,
                class,
                code,
                count,
            });
        Ok(errors.collect())
    }

    fn damaged(&self, file: &str, what: String) -> ResultsError {
        ResultsError::Refused {
            path: self.results.directory.file(file),
            reason: format!("is damaged: {what}"),
        }
    }
}

/// The ends of windows of this length in a measured time; the last is what is left. None for far too many.
fn ends(measured: Duration, window: Duration) -> Option<Vec<Duration>> {
    let (measured, window) = (measured.as_nanos(), window.as_nanos().max(1));
    let count = u64::try_from(measured.div_ceil(window).max(1)).ok()?;
    if count > MOST_WINDOWS {
        return None;
    }
    let end = |at: u64| (u128::from(at) * window).min(measured.max(1));
    let ends = (1..=count).map(|at| Duration::from_nanos(end(at) as u64));
    Some(ends.collect())
}

/// `<group>-<operation>` or `<operation>`: everything that is no letter or digit becomes `-`.
fn free_label(group: &str, operation: &str, taken: impl Fn(&str) -> bool) -> String {
    let name = match group {
        "" => operation.to_owned(),
        _ => format!("{group}-{operation}"),
    };
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let label: String = name.chars().map(plain).collect();
    let mut free = label.clone();
    let mut next = 2;
    while taken(&free) {
        free = format!("{label}-{next}");
        next += 1;
    }
    free
}

/// Numbers of a row; what is none is damage, named.
struct Cells<'a> {
    sources: &'a Sources<'a>,
    file: &'static str,
    rows: &'a Rows,
    row: &'a csv::StringRecord,
}

impl Cells<'_> {
    fn number(&self, column: &str) -> Result<f64, ResultsError> {
        let cell = self.rows.cell(self.row, column);
        let number = cell.parse().ok().filter(|number: &f64| number.is_finite());
        number.ok_or_else(|| self.fault(column))
    }

    fn count(&self, column: &str) -> Result<u64, ResultsError> {
        let cell = self.rows.cell(self.row, column);
        cell.parse().map_err(|_| self.fault(column))
    }

    fn duration(&self, column: &str, seconds: f64) -> Result<Duration, ResultsError> {
        Duration::try_from_secs_f64(seconds)
            .ok()
            .filter(|duration| duration.as_secs() < 1 << 32)
            .ok_or_else(|| self.fault(column))
    }

    fn fault(&self, column: &str) -> ResultsError {
        let cell = self.rows.cell(self.row, column);
        let run = self.rows.cell(self.row, "run");
        let what = format!("{column} of a row of run {run} is `{cell}`");
        self.sources.damaged(self.file, what)
    }
}

/// An operation while it is gathered.
#[derive(Default)]
struct Track {
    group: String,
    name: String,
    label: String,
    tag: String,
    rows: Vec<Row>,
    /// The window that each row belongs to; None for the drain.
    places: Vec<Option<usize>>,
    windows: Vec<Cell>,
    /// Min, sum and max of each window, in nanoseconds.
    exact: Vec<(f64, f64, f64)>,
    /// The row that the next line of the log belongs to.
    next: usize,
    /// The window whose histogram is being added up.
    open: Option<(usize, Latencies)>,
}

impl Track {
    /// Puts the counts of each row into its window.
    fn place(&mut self, from: Duration, window: Duration, count: usize) {
        self.windows = vec![Cell::default(); count];
        self.exact = vec![(f64::INFINITY, 0.0, 0.0); count];
        for row in &self.rows {
            if !row.measured {
                self.places.push(None);
                continue;
            }
            let at = row.start.saturating_sub(from).as_nanos() / window.as_nanos().max(1);
            let at = usize::try_from(at).unwrap_or(usize::MAX).min(count - 1);
            self.places.push(Some(at));
            self.windows[at].succeeded += row.succeeded;
            self.windows[at].failed += row.failed;
            if row.succeeded > 0 {
                let (min, sum, max) = &mut self.exact[at];
                *min = min.min(row.min);
                *sum += row.mean * row.succeeded as f64;
                *max = max.max(row.max);
            }
        }
    }

    fn next_line(&self) -> Option<usize> {
        (self.next..self.rows.len()).find(|&at| self.rows[at].succeeded > 0)
    }

    /// Whether the line is that of the next row with a success.
    fn add(&mut self, line: &LogInterval) -> bool {
        let Some(at) = self.next_line() else {
            return false;
        };
        self.next = at + 1;
        let count: u64 = line.recorded.iter().map(|(_, count)| count).sum();
        if count != self.rows[at].succeeded {
            return false;
        }
        let Some(window) = self.places[at] else {
            return true;
        };
        if self.open.as_ref().is_none_or(|(open, _)| *open != window) {
            self.close();
            self.open = Some((window, Latencies::new()));
        }
        if let Some((_, latencies)) = &mut self.open {
            hlog::add(latencies, &line.recorded);
        }
        true
    }

    fn close(&mut self) {
        let Some((at, latencies)) = self.open.take() else {
            return;
        };
        let (min, sum, max) = self.exact[at];
        let quantile =
            |q: f64| (latencies.histogram.value_at_quantile(q) as f64).clamp(min, max.max(min));
        self.windows[at].figures = Some(Figures {
            min,
            mean: sum / latencies.len().max(1) as f64,
            median: quantile(0.5),
            p95: quantile(0.95),
            p99: quantile(0.99),
            p99_9: quantile(0.999),
            max,
        });
    }

    fn finish(mut self) -> Operation {
        self.close();
        Operation {
            group: self.group,
            name: self.name,
            label: self.label,
            windows: self.windows,
        }
    }
}
