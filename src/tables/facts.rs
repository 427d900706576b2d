//! What an expression can read of a run: the rows of its phases, whole or window by window, as a tree of names.
//!
//! `phase.column`, `phase.group.column`, `phase.operation.column`, `phase.group.operation.column`, `phase.errors.CLASS`.

use super::histograms::{Histograms, Source};
use super::merge::{How, Piece, merge};
use crate::op::ErrorClass;
use crate::results::columns::COUNTS;
use crate::results::read::{Results, Rows, RunSoFar};
use crate::results::{cells, hlog, layout};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

const ERROR_CLASSES: [ErrorClass; 11] = [
    ErrorClass::Connect,
    ErrorClass::NoLocalPort,
    ErrorClass::Reset,
    ErrorClass::Protocol,
    ErrorClass::Server,
    ErrorClass::UnexpectedReply,
    ErrorClass::Missing,
    ErrorClass::WrongValue,
    ErrorClass::Timeout,
    ErrorClass::Rejected,
    ErrorClass::Client,
];

/// The rows of one run directory, read once.
#[derive(Debug, Default)]
pub struct Files {
    operations: Rows,
    errors: Rows,
    windows: Rows,
    probes: Rows,
}

impl Files {
    /// `windows`: whether any table has a row per window; the file is large.
    pub fn read(results: &Results, windows: bool) -> Result<Files, crate::results::ResultsError> {
        Ok(Files {
            operations: results.rows(layout::OPERATIONS)?,
            errors: results.rows(layout::ERRORS)?,
            windows: match windows {
                true => results.rows(layout::WINDOWS)?,
                false => Rows::default(),
            },
            probes: results.rows(layout::PROBES)?,
        })
    }

    /// Of one run that is not finished.
    pub fn so_far(run: RunSoFar) -> Files {
        Files {
            operations: run.operations,
            errors: run.errors,
            windows: Rows::default(),
            probes: run.probes,
        }
    }

    /// The values of a run's probes, by name.
    pub fn probes(&self, run: usize) -> Value {
        let cell = |row, column| self.probes.cell(row, column);
        let rows = self.probes.of(run).iter();
        let named = rows.map(|row| (cell(row, "probe").to_owned(), value(cell(row, "value"))));
        Value::Object(named.collect())
    }
}

/// A phase, as far as an expression can read it.
#[derive(Clone, Debug, Default)]
pub struct Phase {
    pub name: String,
    pub operations: Vec<(OperationKey, Piece)>,
    /// By class; empty where they are not counted (in windows).
    pub errors: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OperationKey {
    pub group: String,
    pub operation: String,
}

/// The phases of a whole run.
pub fn whole(log: &Path, files: &Files, run: usize) -> Vec<Phase> {
    let mut phases: Vec<Phase> = Vec::new();
    for row in files.operations.of(run) {
        let cell = |column: &str| files.operations.cell(row, column);
        let key = OperationKey {
            group: cell("group").to_owned(),
            operation: cell("operation").to_owned(),
        };
        let source = Source {
            log: log.to_owned(),
            tag: hlog::tag_of(cell("phase"), &key.group, &key.operation),
            start: None,
        };
        let elapsed: f64 = cell("elapsed_seconds").parse().unwrap_or_default();
        let passes: f64 = cell("passes").parse().unwrap_or(1.0);
        let piece = piece(&files.operations, row, &key, elapsed * passes, source);
        phase_of(&mut phases, cell("phase"))
            .operations
            .push((key, piece));
    }
    for phase in &mut phases {
        phase.errors = errors(files, run, &phase.name);
    }
    phases
}

/// Every class, so that one that did not occur is 0.
fn errors(files: &Files, run: usize, phase: &str) -> BTreeMap<String, u64> {
    let classes = ERROR_CLASSES.map(|class| (class.name().to_owned(), 0));
    let mut errors = BTreeMap::from(classes);
    for row in files.errors.of(run) {
        let cell = |column: &str| files.errors.cell(row, column);
        if cell("phase") == phase {
            let count: u64 = cell("count").parse().unwrap_or_default();
            *errors.entry(cell("class").to_owned()).or_default() += count;
        }
    }
    errors
}

fn phase_of<'p>(phases: &'p mut Vec<Phase>, name: &str) -> &'p mut Phase {
    let at = phases.iter().position(|phase| phase.name == name);
    let at = at.unwrap_or_else(|| {
        phases.push(Phase {
            name: name.to_owned(),
            ..Phase::default()
        });
        phases.len() - 1
    });
    &mut phases[at]
}

fn piece(
    rows: &Rows,
    row: &csv::StringRecord,
    key: &OperationKey,
    seconds: f64,
    source: Source,
) -> Piece {
    let about_the_run = |column: &str| {
        matches!(
            column,
            "run" | "phase" | "group" | "operation" | "stage" | "faults"
        ) || column.starts_with("label_")
            || column.starts_with("sweep_")
    };
    let columns = rows.columns().filter(|column| !about_the_run(column));
    Piece {
        group: key.group.clone(),
        cells: columns
            .map(|column| (column.to_owned(), value(rows.cell(row, column))))
            .collect(),
        seconds,
        sources: vec![source],
    }
}

/// A cell as a value: whole numbers as integers, empty as null.
fn value(cell: &str) -> Value {
    if let Ok(integer) = cell.parse::<i64>() {
        return json!(integer);
    }
    if let Ok(integer) = cell.parse::<u64>() {
        return json!(integer);
    }
    match cell {
        "" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ if cell.starts_with(|c: char| c.is_ascii_digit() || c == '-') => cell
            .parse::<f64>()
            .map_or_else(|_| json!(cells::plain(cell)), |number| json!(number)),
        _ => json!(cells::plain(cell)),
    }
}

/// The phases of a run window by window, `every_ns` wide (as recorded, where that is wider): nanoseconds from the start of
/// the phase, and what ended then. Only windows of the measured time; one in which nothing ended has counts of 0.
pub fn by_window(
    results: &Results,
    files: &Files,
    run: usize,
    every_ns: u64,
    wanted: &BTreeSet<String>,
    histograms: &mut Histograms,
) -> BTreeMap<u64, Vec<Phase>> {
    let step_ns = results.plan.client.window_ns.max(1);
    let shape = &results.plan.shapes[results.plan.runs[run].shape as usize];
    let mut windows: BTreeMap<u64, Vec<Phase>> = BTreeMap::new();
    let phases = whole(&results.hlog(run), files, run).into_iter();
    for phase in phases.filter(|phase| wanted.contains(&phase.name)) {
        let planned = shape.phases.iter().find(|p| p.name == phase.name);
        let grid = Grid {
            begin_ns: planned.map_or(0, |phase| phase.warmup_ns),
            step_ns,
            every_ns: every_ns.max(step_ns),
        };
        for (key, whole) in &phase.operations {
            let recorded = recorded(results, files, run, &phase.name, key, whole);
            for (start_ns, pieces) in grid.gather(recorded, whole) {
                let merged = merge(&pieces, How::After, histograms);
                phase_of(windows.entry(start_ns).or_default(), &phase.name)
                    .operations
                    .push((key.clone(), merged));
            }
        }
    }
    windows
}

/// The measured windows of one operation of a run, by their start in nanoseconds.
fn recorded(
    results: &Results,
    files: &Files,
    run: usize,
    phase: &str,
    key: &OperationKey,
    whole: &Piece,
) -> BTreeMap<u64, Piece> {
    let started = whole.cells.get("started_at").and_then(Value::as_str);
    let started = started.and_then(|text| text.parse::<jiff::Timestamp>().ok());
    let started_ms = started.map_or(0, |time| time.as_millisecond()).max(0) as u64;
    let rows = files.windows.of(run).iter().filter_map(|row| {
        let cell = |column: &str| files.windows.cell(row, column);
        let ours = cell("phase") == phase
            && cell("group") == key.group
            && cell("operation") == key.operation
            && cell("stage") == "measured";
        if !ours {
            return None;
        }
        let start_ns = nanoseconds(cell("window_start_seconds"))?;
        let source = Source {
            log: results.hlog(run),
            tag: hlog::tag_of(phase, &key.group, &key.operation),
            start: Some(Duration::from_millis(started_ms) + Duration::from_nanos(start_ns)),
        };
        let seconds: f64 = cell("window_seconds").parse().ok()?;
        Some((start_ns, piece(&files.windows, row, key, seconds, source)))
    });
    rows.collect()
}

/// `1.500000000` in nanoseconds, exactly.
fn nanoseconds(seconds: &str) -> Option<u64> {
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let fraction: u64 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    Some(whole.parse::<u64>().ok()? * 1_000_000_000 + fraction)
}

/// Where windows lie: nanoseconds from the phase's start.
struct Grid {
    /// The end of the warm-up.
    begin_ns: u64,
    step_ns: u64,
    every_ns: u64,
}

impl Grid {
    /// Windows in which nothing ended have no row: they get one of zeros, or a stall would not be seen. Then all are
    /// gathered by `every_ns`.
    fn gather(&self, recorded: BTreeMap<u64, Piece>, whole: &Piece) -> BTreeMap<u64, Vec<Piece>> {
        let template = recorded.values().next().unwrap_or(whole);
        let empty = zero(template, self.step_ns);
        let measured_ns = (whole.seconds * 1e9).round() as u64;
        let mut steps: BTreeMap<u64, Vec<Piece>> = (0..measured_ns.div_ceil(self.step_ns))
            .map(|step| (step, Vec::new()))
            .collect();
        for (start_ns, piece) in recorded {
            // Rounded: the recorder may begin a window a little late.
            let from_begin = start_ns.saturating_sub(self.begin_ns) + self.step_ns / 2;
            let step = from_begin / self.step_ns;
            steps.entry(step).or_default().push(piece);
        }
        let mut gathered: BTreeMap<u64, Vec<Piece>> = BTreeMap::new();
        for (step, mut pieces) in steps {
            if pieces.is_empty() {
                pieces.push(empty.clone());
            }
            let bucket = step * self.step_ns / self.every_ns;
            gathered
                .entry(self.begin_ns + bucket * self.every_ns)
                .or_default()
                .extend(pieces);
        }
        gathered
    }
}

fn zero(template: &Piece, step_ns: u64) -> Piece {
    let seconds = step_ns as f64 / 1e9;
    let cells = template.cells.keys().map(|column| {
        let is_count = COUNTS.iter().any(|(name, _)| name == column);
        let value = match column.as_str() {
            "window_seconds" => json!(seconds),
            "bytes_sent" | "bytes_received" => json!(0),
            "throughput_per_second" | "attempted_per_second" => json!(0),
            _ if is_count => json!(0),
            _ => Value::Null,
        };
        (column.clone(), value)
    });
    Piece {
        group: template.group.clone(),
        cells: cells.collect(),
        seconds,
        sources: Vec::new(),
    }
}

/// The same phases of several runs (or windows), one after another: `repeats = "merged"`.
pub fn together(runs: &[Vec<Phase>], histograms: &mut Histograms) -> Vec<Phase> {
    let mut gathered: Vec<Phase> = Vec::new();
    let mut pieces: BTreeMap<(String, OperationKey), Vec<Piece>> = BTreeMap::new();
    for phase in runs.iter().flatten() {
        let merged = phase_of(&mut gathered, &phase.name);
        for (class, count) in &phase.errors {
            *merged.errors.entry(class.clone()).or_default() += count;
        }
        for (key, piece) in &phase.operations {
            let same = pieces.entry((phase.name.clone(), key.clone())).or_default();
            same.push(piece.clone());
            if same.len() == 1 {
                merged.operations.push((key.clone(), Piece::default()));
            }
        }
    }
    for phase in &mut gathered {
        for (key, piece) in &mut phase.operations {
            let same = &pieces[&(phase.name.clone(), key.clone())];
            *piece = merge(same, How::After, histograms);
        }
    }
    gathered
}

/// The tree of names of these phases.
pub fn names(phases: &[Phase], histograms: &mut Histograms) -> Map<String, Value> {
    phases
        .iter()
        .map(|phase| (phase.name.clone(), tree(phase, histograms)))
        .collect()
}

fn tree(phase: &Phase, histograms: &mut Histograms) -> Value {
    let mut merged = |wanted: &dyn Fn(&OperationKey) -> bool| {
        let pieces: Vec<Piece> = phase
            .operations
            .iter()
            .filter(|(key, _)| wanted(key))
            .map(|(_, piece)| piece.clone())
            .collect();
        merge(&pieces, How::Beside, histograms).cells
    };
    let mut node = merged(&|_| true);
    for (key, _) in &phase.operations {
        if !node.contains_key(&key.operation) {
            let of_operation = merged(&|other| other.operation == key.operation);
            node.insert(key.operation.clone(), Value::Object(of_operation));
        }
        if key.group.is_empty() {
            continue;
        }
        if !node.contains_key(&key.group) {
            let of_group = merged(&|other| other.group == key.group);
            node.insert(key.group.clone(), Value::Object(of_group));
        }
        let of_both = merged(&|other| other == key);
        if let Some(Value::Object(group)) = node.get_mut(&key.group) {
            group.insert(key.operation.clone(), Value::Object(of_both));
        }
    }
    if !phase.errors.is_empty() {
        node.insert("errors".to_owned(), json!(phase.errors));
    }
    Value::Object(node)
}
