//! Columns: one list per CSV file, from which its header and its rows come.
//!
//! Run-wide columns (`run`, labels, axes, ...) are `run_header` and `run_cells`; the rest are lists of a name and the cell
//! it makes of the records. Tables and plans take the names from here for their suggestions.

use super::cells;
use crate::clock;
use crate::measure::latency::{PERCENTILES, percentile_ns};
use crate::measure::record::{
    Counts, ErrorRecord, Extra, GroupRecord, Latencies, OperationRecord, PhaseRecord, RunRecord,
    Sample, Stage, WindowOperation, WindowRecord,
};
use crate::plan::{Plan, RunPlan};
use std::sync::LazyLock;
use std::time::Duration;

/// The cells that say which run a row belongs to, as far as the plan knows them.
#[derive(Debug)]
pub struct RunCells {
    pub run: String,
    /// `label_...`, `sweep_...`, `repeat`, `target`, `driver`, `stand_in_for`.
    pub facts: Vec<String>,
}

/// `run, label_..., sweep_..., repeat, target, driver, stand_in_for`.
pub fn run_header(plan: &Plan) -> Vec<String> {
    let labels = plan.labels.keys().map(|name| format!("label_{name}"));
    let axes = plan.axes.iter().map(|axis| format!("sweep_{}", axis.name));
    let facts = ["repeat", "target", "driver", "stand_in_for"].map(str::to_owned);
    std::iter::once("run".to_owned())
        .chain(labels)
        .chain(axes)
        .chain(facts)
        .collect()
}

pub fn run_cells(plan: &Plan, run: usize, id: &str) -> RunCells {
    let planned: &RunPlan = &plan.runs[run];
    let target = &plan.shapes[planned.shape as usize].target;
    let mut facts: Vec<String> = plan.labels.values().map(cells::value_cell).collect();
    for (axis, &index) in plan.axes.iter().zip(&planned.point) {
        facts.push(cells::value_cell(&axis.values[index as usize]));
    }
    facts.push(planned.repeat.to_string());
    facts.push(cells::text(&target.name));
    facts.push(target.driver.clone());
    facts.push(cells::text(&target.stand_in_for));
    RunCells {
        run: cells::text(id),
        facts,
    }
}

type RunCell = fn(&RunRecord) -> String;

/// runs.csv after the run-wide columns.
pub const RUN: [(&str, RunCell); 6] = [
    ("status", |run| run.status.name().to_owned()),
    ("reason", |run| cells::text(&run.reason)),
    ("doubts", |run| run.doubts.join(" ")),
    ("started_at", |run| {
        clock::rfc3339_milliseconds(run.started_at)
    }),
    ("elapsed_seconds", |run| cells::seconds(run.elapsed)),
    ("server_version", |run| cells::text(&run.server_version)),
];

/// One row of operations.csv.
pub struct OperationFacts<'a> {
    pub phase: &'a PhaseRecord,
    pub group: &'a GroupRecord,
    pub operation: &'a OperationRecord,
}

impl OperationFacts<'_> {
    /// The operations of all of the group's mix.
    fn group_operations(&self) -> u64 {
        let operations = self.group.operations.iter();
        operations
            .map(|operation| operation.counts.operations)
            .sum()
    }

    /// This operation's share of the group's client CPU, by its share of the group's operations.
    fn client_cpu(&self) -> Duration {
        let all = self.group_operations();
        if all == 0 {
            return Duration::ZERO;
        }
        let ns = self.group.client_cpu.as_nanos() * u128::from(self.operation.counts.operations)
            / u128::from(all);
        Duration::from_nanos(ns as u64)
    }

    fn client_cpu_us_per_operation(&self) -> Option<f64> {
        let all = self.group_operations();
        (all > 0).then(|| self.group.client_cpu.as_nanos() as f64 / 1000.0 / all as f64)
    }
}

type OperationCell = fn(&OperationFacts<'_>) -> String;

/// operations.csv after the run-wide columns, before the measures.
const OPERATION_HEAD: [(&str, OperationCell); 12] = [
    ("phase", |row| row.phase.name.clone()),
    ("group", |row| row.group.name.clone()),
    ("operation", |row| row.operation.operation.clone()),
    ("measured", |row| row.phase.measured.to_string()),
    ("load_model", |row| {
        let extra = row.operation.extra.as_ref();
        let recorded = extra.is_some_and(|extra| !extra.lag.is_empty());
        if recorded { "recorded" } else { "closed" }.to_owned()
    }),
    ("threads", |row| row.group.threads.to_string()),
    ("workers", |row| row.group.workers.to_string()),
    ("connections", |row| row.group.connections.to_string()),
    ("endpoints", |row| endpoints(row.group)),
    ("started_at", |row| {
        clock::rfc3339_milliseconds(row.phase.started_at)
    }),
    ("elapsed_seconds", |row| {
        cells::seconds(per_pass(row.phase.measured_time, row.phase.passes))
    }),
    ("passes", |row| row.phase.passes.to_string()),
];

/// operations.csv after the measures.
const OPERATION_TAIL: [(&str, OperationCell); 15] = [
    ("intended_rate_per_second", |_| String::new()),
    ("reconnections", |row| row.group.reconnections.to_string()),
    ("reconnecting_seconds", |row| {
        cells::seconds(row.group.reconnecting)
    }),
    ("client_cpu_seconds", |row| cells::seconds(row.client_cpu())),
    ("client_cpu_us_per_operation", |row| {
        cells::number(row.client_cpu_us_per_operation())
    }),
    ("client_turn_p50_us", |row| turn(row.group, 50.0)),
    ("client_turn_p99_us", |row| turn(row.group, 99.0)),
    ("client_turn_max_us", |row| maximum(&row.group.client_turn)),
    ("warnings", |row| {
        let extra = row.operation.extra.as_ref();
        extra.map_or(0, |extra| extra.warnings).to_string()
    }),
    ("connect_time_p50_us", |row| {
        of_extra(row.extra(), |extra| at(&extra.connect, 50.0))
    }),
    ("connect_time_p99_us", |row| {
        of_extra(row.extra(), |extra| at(&extra.connect, 99.0))
    }),
    ("connect_time_max_us", |row| {
        of_extra(row.extra(), |extra| maximum(&extra.connect))
    }),
    ("first_byte_time_p50_us", |row| {
        of_extra(row.extra(), |extra| at(&extra.first_byte, 50.0))
    }),
    ("first_byte_time_p99_us", |row| {
        of_extra(row.extra(), |extra| at(&extra.first_byte, 99.0))
    }),
    ("first_byte_time_max_us", |row| {
        of_extra(row.extra(), |extra| maximum(&extra.first_byte))
    }),
];

/// A cell of what only some operations have; empty where none had it.
fn of_extra(extra: Option<&Extra>, cell: impl Fn(&Extra) -> String) -> String {
    extra.map(cell).unwrap_or_default()
}

fn at(latencies: &Latencies, q: f64) -> String {
    cells::optional_microseconds(percentile_ns(latencies, 0, q))
}

/// `127.0.0.1:7001=5000 127.0.0.1:7002=5000`.
fn endpoints(group: &GroupRecord) -> String {
    let each: Vec<String> = group
        .endpoints
        .iter()
        .map(|(label, operations)| format!("{label}={operations}"))
        .collect();
    cells::text(&each.join(" "))
}

fn per_pass(measured: Duration, passes: u64) -> Duration {
    let ns = measured.as_nanos() / u128::from(passes.max(1));
    Duration::from_nanos(ns as u64)
}

fn turn(group: &GroupRecord, q: f64) -> String {
    cells::optional_microseconds(percentile_ns(&group.client_turn, 0, q))
}

/// What operations.csv and windows.csv have in common.
pub trait Measured {
    fn counts(&self) -> &Counts;
    fn succeeded(&self) -> &Latencies;
    /// Operations that succeeded and ended inside the measured time.
    fn succeeded_inside(&self) -> u64;
    /// All operations that ended inside it.
    fn ended_inside(&self) -> u64;
    fn measured_time(&self) -> Duration;
    fn extra(&self) -> Option<&Extra>;
}

impl Measured for OperationFacts<'_> {
    fn counts(&self) -> &Counts {
        &self.operation.counts
    }
    fn succeeded(&self) -> &Latencies {
        &self.operation.succeeded
    }
    fn succeeded_inside(&self) -> u64 {
        self.operation.succeeded_inside
    }
    fn ended_inside(&self) -> u64 {
        self.operation.ended_inside
    }
    fn measured_time(&self) -> Duration {
        self.phase.measured_time
    }
    fn extra(&self) -> Option<&Extra> {
        self.operation.extra.as_deref()
    }
}

type MeasureCell = Box<dyn Fn(&dyn Measured) -> String + Send + Sync>;

/// Counts, rates and latencies.
static MEASURES: LazyLock<Vec<(String, MeasureCell)>> = LazyLock::new(|| {
    let mut columns = Vec::new();
    count_columns(&mut columns);
    latency_columns(&mut columns);
    columns
});

type Count = fn(&Counts) -> u64;

/// A count of `Counts` by its column; the sum of several rows is the count of all.
pub const COUNTS: [(&str, Count); 10] = [
    ("operations", |counts| counts.operations),
    ("succeeded", |counts| counts.succeeded),
    ("found", |counts| counts.found),
    ("missing", |counts| counts.missing),
    ("failed", |counts| counts.failed),
    ("timed_out", |counts| counts.timed_out),
    ("wrong_value", |counts| counts.wrong_value),
    ("unknown", |counts| counts.unknown),
    ("dropped", |counts| counts.dropped),
    ("length_changed", |counts| counts.length_changed),
];

fn count_columns(columns: &mut Vec<(String, MeasureCell)>) {
    for (name, count) in COUNTS {
        add(columns, name, move |row| count(row.counts()).to_string());
    }
    add(columns, "success_percent", |row| {
        cells::number(success_percent(
            row.counts().succeeded,
            row.counts().operations,
        ))
    });
    add(columns, "throughput_per_second", |row| {
        cells::number(rate(row.succeeded_inside(), row.measured_time()))
    });
    add(columns, "attempted_per_second", |row| {
        cells::number(rate(row.ended_inside(), row.measured_time()))
    });
    add(columns, "bytes_sent", |row| {
        row.counts().bytes_sent.to_string()
    });
    add(columns, "bytes_received", |row| {
        row.counts().bytes_received.to_string()
    });
}

fn latency_columns(columns: &mut Vec<(String, MeasureCell)>) {
    for (name, q) in PERCENTILES {
        add(columns, &format!("service_time_{name}_us"), move |row| {
            let unsuccessful = row.counts().unsuccessful();
            cells::optional_microseconds(percentile_ns(row.succeeded(), unsuccessful, q))
        });
    }
    add(columns, "succeeded_service_time_min_us", |row| {
        let latencies = row.succeeded();
        cells::optional_microseconds((!latencies.is_empty()).then_some(latencies.min_ns))
    });
    add(columns, "succeeded_service_time_mean_us", |row| {
        cells::mean_microseconds(row.succeeded())
    });
    for (name, q) in PERCENTILES {
        add(
            columns,
            &format!("succeeded_service_time_{name}_us"),
            move |row| cells::optional_microseconds(percentile_ns(row.succeeded(), 0, q)),
        );
    }
    add(columns, "succeeded_service_time_max_us", |row| {
        maximum(row.succeeded())
    });
    intended_columns(columns);
}

/// Latencies from the intended start; a closed loop has none, so they are empty there.
fn intended_columns(columns: &mut Vec<(String, MeasureCell)>) {
    for (name, q) in PERCENTILES {
        add(columns, &format!("response_time_{name}_us"), move |row| {
            let unsuccessful = row.counts().unsuccessful();
            of_intended(row, |extra| {
                cells::optional_microseconds(percentile_ns(&extra.response, unsuccessful, q))
            })
        });
    }
    add(columns, "succeeded_response_time_min_us", |row| {
        of_intended(row, |extra| {
            let latencies = &extra.response;
            cells::optional_microseconds((!latencies.is_empty()).then_some(latencies.min_ns))
        })
    });
    add(columns, "succeeded_response_time_mean_us", |row| {
        of_intended(row, |extra| cells::mean_microseconds(&extra.response))
    });
    for (name, q) in PERCENTILES {
        let name = format!("succeeded_response_time_{name}_us");
        add(columns, &name, move |row| {
            of_intended(row, |extra| at(&extra.response, q))
        });
    }
    add(columns, "succeeded_response_time_max_us", |row| {
        of_intended(row, |extra| maximum(&extra.response))
    });
    for (name, q) in [("p50", 50.0), ("p99", 99.0)] {
        add(columns, &format!("start_lag_{name}_us"), move |row| {
            of_intended(row, |extra| at(&extra.lag, q))
        });
    }
    add(columns, "start_lag_max_us", |row| {
        of_intended(row, |extra| maximum(&extra.lag))
    });
}

fn of_intended(row: &dyn Measured, cell: impl Fn(&Extra) -> String) -> String {
    of_extra(row.extra().filter(|extra| !extra.lag.is_empty()), cell)
}

fn add(
    columns: &mut Vec<(String, MeasureCell)>,
    name: &str,
    cell: impl Fn(&dyn Measured) -> String + Send + Sync + 'static,
) {
    columns.push((name.to_owned(), Box::new(cell)));
}

fn maximum(latencies: &Latencies) -> String {
    cells::optional_microseconds((!latencies.is_empty()).then_some(latencies.max_ns))
}

/// In percent; not known where there were no operations.
pub fn success_percent(succeeded: u64, operations: u64) -> Option<f64> {
    (operations > 0).then(|| 100.0 * succeeded as f64 / operations as f64)
}

fn rate(count: u64, time: Duration) -> Option<f64> {
    (!time.is_zero()).then(|| count as f64 / time.as_secs_f64())
}

/// The columns of operations.csv that do not depend on the scenario's axes and labels, in their order: what a table's
/// expression may name.
pub fn operation_columns() -> Vec<String> {
    let head = OPERATION_HEAD.iter().map(|(name, _)| (*name).to_owned());
    let measures = MEASURES.iter().map(|(name, _)| name.clone());
    let tail = OPERATION_TAIL.iter().map(|(name, _)| (*name).to_owned());
    head.chain(measures).chain(tail).collect()
}

pub fn operations_header(plan: &Plan) -> Vec<String> {
    let mut header = run_header(plan);
    header.extend(operation_columns());
    header
}

pub fn operation_row(run: &RunCells, facts: &OperationFacts<'_>) -> Vec<String> {
    let mut row = vec![run.run.clone()];
    row.extend(run.facts.iter().cloned());
    row.extend(OPERATION_HEAD.iter().map(|(_, cell)| cell(facts)));
    row.extend(MEASURES.iter().map(|(_, cell)| cell(facts)));
    row.extend(OPERATION_TAIL.iter().map(|(_, cell)| cell(facts)));
    row
}

pub fn runs_header(plan: &Plan) -> Vec<String> {
    let mut header = run_header(plan);
    header.extend(RUN.iter().map(|(name, _)| (*name).to_owned()));
    header
}

pub fn run_row(run: &RunCells, record: &RunRecord) -> Vec<String> {
    let mut row = vec![run.run.clone()];
    row.extend(run.facts.iter().cloned());
    row.extend(RUN.iter().map(|(_, cell)| cell(record)));
    row
}

/// One row of windows.csv.
pub struct WindowFacts<'a> {
    pub phase: &'a str,
    pub group: &'a str,
    pub operation: &'a str,
    pub window: &'a WindowRecord,
    pub measures: &'a WindowOperation,
    /// What was done to servers meanwhile; may be empty.
    pub faults: &'a str,
}

impl Measured for WindowFacts<'_> {
    fn counts(&self) -> &Counts {
        &self.measures.counts
    }
    fn succeeded(&self) -> &Latencies {
        &self.measures.succeeded
    }
    fn succeeded_inside(&self) -> u64 {
        self.measures.counts.succeeded
    }
    fn ended_inside(&self) -> u64 {
        self.measures.counts.operations
    }
    fn measured_time(&self) -> Duration {
        self.window.length
    }
    fn extra(&self) -> Option<&Extra> {
        self.measures.extra.as_deref()
    }
}

type WindowCell = fn(&WindowFacts<'_>) -> String;

const WINDOW_HEAD: [(&str, WindowCell); 6] = [
    ("phase", |row| row.phase.to_owned()),
    ("group", |row| row.group.to_owned()),
    ("operation", |row| row.operation.to_owned()),
    ("stage", |row| row.window.stage.name().to_owned()),
    ("window_start_seconds", |row| {
        cells::seconds(row.window.start)
    }),
    ("window_seconds", |row| cells::seconds(row.window.length)),
];

pub fn windows_header() -> Vec<String> {
    let head = WINDOW_HEAD.iter().map(|(name, _)| (*name).to_owned());
    let measures = MEASURES.iter().map(|(name, _)| name.clone());
    std::iter::once("run".to_owned())
        .chain(head)
        .chain(measures)
        .chain(std::iter::once("faults".to_owned()))
        .collect()
}

pub fn window_row(run: &RunCells, facts: &WindowFacts<'_>) -> Vec<String> {
    let mut row = vec![run.run.clone()];
    row.extend(WINDOW_HEAD.iter().map(|(_, cell)| cell(facts)));
    row.extend(MEASURES.iter().map(|(_, cell)| cell(facts)));
    row.push(facts.faults.to_owned());
    row
}

type ErrorCell = fn(&PhaseRecord, &ErrorRecord) -> String;

const ERROR: [(&str, ErrorCell); 8] = [
    ("phase", |phase, _| phase.name.clone()),
    ("group", |_, error| error.group.clone()),
    ("operation", |_, error| error.operation.clone()),
    ("class", |_, error| error.class.name().to_owned()),
    ("code", |_, error| cells::text(&error.code)),
    ("count", |_, error| error.count.to_string()),
    ("first_at", |phase, error| {
        let offset = jiff::SignedDuration::try_from(error.first_at).unwrap_or_default();
        let at = phase.started_at.saturating_add(offset);
        clock::rfc3339_milliseconds(at.unwrap_or(phase.started_at))
    }),
    ("first_message", |_, error| {
        cells::text(&error.first_message)
    }),
];

pub fn errors_header() -> Vec<String> {
    let columns = ERROR.iter().map(|(name, _)| (*name).to_owned());
    std::iter::once("run".to_owned()).chain(columns).collect()
}

pub fn error_row(run: &RunCells, phase: &PhaseRecord, error: &ErrorRecord) -> Vec<String> {
    let cells = ERROR.iter().map(|(_, cell)| cell(phase, error));
    std::iter::once(run.run.clone()).chain(cells).collect()
}

type SampleCell = fn(&Sample) -> String;

const SAMPLE: [(&str, SampleCell); 9] = [
    ("process", |sample| cells::text(&sample.process)),
    ("at_seconds", |sample| cells::seconds(sample.at)),
    ("cpu_seconds", |sample| {
        sample.cpu.map(cells::seconds).unwrap_or_default()
    }),
    ("rss_bytes", |sample| cells::integer(sample.rss_bytes)),
    ("read_bytes", |sample| cells::integer(sample.read_bytes)),
    ("written_bytes", |sample| {
        cells::integer(sample.written_bytes)
    }),
    ("threads", |sample| cells::integer(sample.threads)),
    ("time_wait_sockets", |sample| {
        cells::integer(sample.time_wait_sockets)
    }),
    ("load", |sample| cells::number(sample.load)),
];

pub fn servers_header() -> Vec<String> {
    let columns = SAMPLE.iter().map(|(name, _)| (*name).to_owned());
    std::iter::once("run".to_owned()).chain(columns).collect()
}

pub fn sample_row(run: &RunCells, sample: &Sample) -> Vec<String> {
    let cells = SAMPLE.iter().map(|(_, cell)| cell(sample));
    std::iter::once(run.run.clone()).chain(cells).collect()
}

pub fn probes_header(plan: &Plan) -> Vec<String> {
    let axes = plan.axes.iter().map(|axis| format!("sweep_{}", axis.name));
    std::iter::once("run".to_owned())
        .chain(axes)
        .chain(["repeat", "probe", "value", "unit"].map(str::to_owned))
        .collect()
}

/// A probe's value: a number as it is, a text escaped.
pub fn probe_row(
    plan: &Plan,
    run: &RunCells,
    probe: &str,
    value: &serde_json::Value,
    unit: &str,
) -> Vec<String> {
    let header = run_header(plan);
    let kept = |name: &String| name.starts_with("sweep_") || name == "repeat";
    let facts = header.iter().skip(1).zip(&run.facts);
    let facts = facts.filter(|(name, _)| kept(name));
    std::iter::once(run.run.clone())
        .chain(facts.map(|(_, cell)| cell.clone()))
        .chain([
            probe.to_owned(),
            cells::value_cell(value),
            cells::text(unit),
        ])
        .collect()
}

/// Whether operations that ended in this stage belong to the phase's figures.
pub fn counts_in_figures(stage: Stage) -> bool {
    stage != Stage::Warmup
}
