//! `[outputs] basho_bench = true`: windows once more, in the files and columns of Basho Bench, so that its plots go on working.
//!
//! `basho/<run>/<phase>/` holds `summary.csv` and a `<operation>_latencies.csv` per operation (`<group>-<operation>` where
//! there are groups): a row per measured window, latencies in microseconds and of successes only, as that tool has them. Knows
//! nothing of the other files; counts and figures are those of windows.csv.

use super::ResultsError;
use crate::measure::record::{Counts, Latencies, Stage, WindowOperation, WindowRecord};
use crate::plan::PhasePlan;
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SUMMARY: &str = "elapsed, window, total, successful, failed";
const LATENCIES: &str = "elapsed, window, n, min, mean, median, 95th, 99th, 99_9th, max, errors";

/// The files of one run.
#[derive(Debug)]
pub struct BashoFiles {
    directory: PathBuf,
    /// Files of this run that have their header.
    begun: BTreeSet<PathBuf>,
    /// Start of the measured time of the current phase.
    phase: String,
    from: Duration,
}

impl BashoFiles {
    /// `directory` is the run's own; nothing is made before the first window.
    pub fn new(directory: PathBuf) -> BashoFiles {
        BashoFiles {
            directory,
            begun: BTreeSet::new(),
            phase: String::new(),
            from: Duration::ZERO,
        }
    }

    /// Appends a window's rows. Warm-up and drain are not in these files.
    pub fn window(&mut self, phase: &PhasePlan, window: &WindowRecord) -> Result<(), ResultsError> {
        if window.stage != Stage::Measured {
            return Ok(());
        }
        if self.phase != phase.name {
            self.phase.clone_from(&phase.name);
            self.from = window.start;
        }
        let elapsed = window.start.saturating_sub(self.from) + window.length;
        let times = format!("{}, {}", seconds(elapsed), seconds(window.length));
        let mut all = Counts::default();
        for measures in &window.operations {
            all.add(&measures.counts);
            if let Some(label) = label(phase, measures) {
                let row = format!("{times}, {}", latencies(measures));
                self.append(&format!("{label}_latencies.csv"), LATENCIES, &row)?;
            }
        }
        let counts = format!(
            "{times}, {}, {}, {}",
            all.operations,
            all.succeeded,
            all.unsuccessful()
        );
        self.append("summary.csv", SUMMARY, &counts)
    }

    fn append(&mut self, name: &str, header: &str, row: &str) -> Result<(), ResultsError> {
        let path = self.directory.join(&self.phase).join(name);
        let new = self.begun.insert(path.clone());
        write(&path, new, header, row).map_err(ResultsError::write(&path))
    }
}

/// A new file replaces what an unfinished run may have left.
fn write(path: &Path, new: bool, header: &str, row: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    if !new {
        return writeln!(options.append(true).open(path)?, "{row}");
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut file = options.create(true).write(true).truncate(true).open(path)?;
    write!(file, "{header}\n{row}\n")
}

/// Everything that is no letter or digit becomes `-`.
fn label(phase: &PhasePlan, measures: &WindowOperation) -> Option<String> {
    let group = phase.groups.get(measures.group)?;
    let operation = &group.mix.get(measures.slot)?.operation;
    let name = match group.name.is_empty() {
        true => operation.clone(),
        false => format!("{}-{operation}", group.name),
    };
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    Some(name.chars().map(plain).collect())
}

fn seconds(duration: Duration) -> String {
    format!("{:.6}", duration.as_secs_f64())
}

/// From `n` on: eight zeros where nothing succeeded, then the errors.
fn latencies(measures: &WindowOperation) -> String {
    let errors = measures.counts.unsuccessful();
    let of: &Latencies = &measures.succeeded;
    let Some(mean) = of.mean_ns() else {
        return format!("0, 0, 0, 0, 0, 0, 0, 0, {errors}");
    };
    let us = super::cells::microseconds;
    let at = |quantile: f64| us(of.histogram.value_at_quantile(quantile).min(of.max_ns));
    format!(
        "{}, {}, {:.3}, {}, {}, {}, {}, {}, {errors}",
        of.len(),
        us(of.min_ns),
        mean / 1_000.0,
        at(0.5),
        at(0.95),
        at(0.99),
        at(0.999),
        us(of.max_ns),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fixture;

    #[test]
    fn windows_are_written_in_the_columns_of_basho_bench() {
        let directory = tempfile::tempdir().unwrap();
        let phase = &fixture::plan().shapes[0].phases[0].clone();
        let mut succeeded = Latencies::new();
        (1..=4).for_each(|n| succeeded.record(n * 1_000_000));
        let counts = Counts {
            operations: 5,
            succeeded: 4,
            timed_out: 1,
            ..Counts::default()
        };
        let window = |start: u64, stage| WindowRecord {
            start: Duration::from_secs(start),
            length: Duration::from_secs(1),
            stage,
            operations: vec![WindowOperation {
                extra: None,
                group: 0,
                slot: 0,
                counts: counts.clone(),
                succeeded: succeeded.clone(),
                unsuccessful: Latencies::new(),
            }],
        };
        let mut files = BashoFiles::new(directory.path().join("run"));
        for (start, stage) in [
            (0, Stage::Warmup),
            (1, Stage::Measured),
            (2, Stage::Measured),
        ] {
            files.window(phase, &window(start, stage)).unwrap();
        }
        let folder = directory.path().join("run").join(&phase.name);
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(
            read("summary.csv"),
            "elapsed, window, total, successful, failed\n\
             1.000000, 1.000000, 5, 4, 1\n\
             2.000000, 1.000000, 5, 4, 1\n"
        );
        let label = label(phase, &window(0, Stage::Measured).operations[0]).unwrap();
        let text = read(&format!("{label}_latencies.csv"));
        assert_eq!(text.lines().next(), Some(LATENCIES));
        let row = text.lines().nth(1).unwrap();
        assert!(
            row.starts_with("1.000000, 1.000000, 4, 1000.000, 2500.000, "),
            "{row}"
        );
        assert!(row.ends_with(", 4000.000, 1"), "{row}");
    }
}
