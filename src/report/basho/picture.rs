//! The picture of a phase: throughput and errors above, latencies of each operation below, reads first.

use super::gather::{Figures, Gathered, Operation};
use crate::report::chart::{Line, Panel, Picture, Row, Scale};
use crate::units::format_duration;

/// More lines than this hide each other.
const MOST_LINES: usize = 6;
/// What operations that only read are called.
const READS: [&str; 5] = ["get", "read", "exists", "scan", "select"];

type Figure = (&'static str, fn(&Figures) -> f64);

const FIGURES: [Figure; 6] = [
    ("mean", |of| of.mean),
    ("median", |of| of.median),
    ("95th", |of| of.p95),
    ("99th", |of| of.p99),
    ("99.9th", |of| of.p99_9),
    ("max", |of| of.max),
];

pub fn picture(scenario: &str, gathered: &Gathered) -> Picture {
    let mut rows = vec![
        Row {
            height: 300,
            panels: vec![throughput(gathered)],
        },
        Row {
            height: 210,
            panels: vec![errors(gathered)],
        },
    ];
    let mut operations: Vec<&Operation> = gathered.operations.iter().collect();
    operations.sort_by_key(|operation| !reads(operation));
    for pair in operations.chunks(2) {
        rows.push(Row {
            height: 340,
            panels: pair.iter().map(|of| latencies(gathered, of)).collect(),
        });
    }
    let windows = match drawn(gathered) {
        1 => "1 window".to_owned(),
        n => format!("{n} windows"),
    };
    Picture {
        title: format!("{scenario}: {}", gathered.phase),
        subtitle: format!(
            "{windows} of {}; latencies of successes only; run {}",
            format_duration(gathered.window),
            gathered.run
        ),
        rows,
    }
}

fn reads(operation: &Operation) -> bool {
    let verb = operation.name.split(['_', '-']).next();
    verb.is_some_and(|verb| READS.contains(&verb.to_ascii_lowercase().as_str()))
}

/// How many windows are drawn. A last one of less than a tenth of the others holds too little to stand beside them.
fn drawn(gathered: &Gathered) -> usize {
    let last = gathered.ends.len() - 1;
    let rest = last > 0 && gathered.length(last) * 10 < gathered.window;
    if rest { last } else { last + 1 }
}

/// A line of what `of` says of each window; at the window's end, as Basho Bench has it.
fn line(gathered: &Gathered, name: &str, of: impl Fn(usize) -> Option<f64>) -> Line {
    let ends = gathered.ends.iter().take(drawn(gathered)).enumerate();
    let mut points: Vec<_> = ends.map(|(at, end)| (end.as_secs_f64(), of(at))).collect();
    // One window alone is a level, not a point at its end.
    if let [(_, value)] = points[..] {
        points.insert(0, (0.0, value));
    }
    Line {
        name: name.to_owned(),
        points,
    }
}

fn per_second(gathered: &Gathered, at: usize, count: u64) -> Option<f64> {
    let seconds = gathered.length(at).as_secs_f64();
    (seconds > 0.0).then(|| count as f64 / seconds)
}

/// All operations in one line, and each in its own where there are a few.
fn rates(gathered: &Gathered, pick: fn((u64, u64)) -> u64) -> Vec<Line> {
    let all = |at| per_second(gathered, at, pick(gathered.counts(at)));
    let mut lines = vec![line(gathered, "all operations", all)];
    if (2..=MOST_LINES).contains(&gathered.operations.len()) {
        lines.extend(gathered.operations.iter().map(|operation| {
            line(gathered, &operation.label, |at| {
                let cell = &operation.windows[at];
                per_second(gathered, at, pick((cell.succeeded, cell.failed)))
            })
        }));
    }
    lines
}

fn throughput(gathered: &Gathered) -> Panel {
    Panel {
        title: "Throughput (successes)".to_owned(),
        x: "elapsed, s".to_owned(),
        y: "operations/s".to_owned(),
        scale: Scale::Linear,
        lines: rates(gathered, |(succeeded, _)| succeeded),
        without: String::new(),
    }
}

fn errors(gathered: &Gathered) -> Panel {
    Panel {
        title: "Errors (failed, timed out, wrong answers)".to_owned(),
        x: "elapsed, s".to_owned(),
        y: "errors/s".to_owned(),
        scale: Scale::Linear,
        lines: rates(gathered, |(_, failed)| failed),
        without: String::new(),
    }
}

fn latencies(gathered: &Gathered, operation: &Operation) -> Panel {
    let lines = FIGURES.iter().map(|(name, figure)| {
        line(gathered, name, |at| {
            let figures = operation.windows[at].figures.as_ref()?;
            Some(figure(figures) / 1e6)
        })
    });
    let kind = if reads(operation) { " (read)" } else { "" };
    Panel {
        title: format!("Latency of {}{kind}", operation.label),
        x: "elapsed, s".to_owned(),
        y: "latency, ms".to_owned(),
        scale: Scale::Logarithmic,
        lines: lines.collect(),
        without: "no operation succeeded".to_owned(),
    }
}
