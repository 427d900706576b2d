//! Progress of a campaign on standard error: one live line on a terminal, plain lines elsewhere.

use crate::measure::latency::percentile_ns;
use crate::measure::record::{Latencies, PhaseRecord, RunRecord, Stage, Status, WindowRecord};
use crate::plan::PhasePlan;
use crate::run::watch::Watcher;
use crate::units::{format_duration, format_rate};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Watches a campaign and tells the user.
pub struct Progress {
    /// None: not on a terminal.
    bar: Option<ProgressBar>,
    began: Instant,
    total: usize,
    /// Resumed ones included.
    done: usize,
    measured_here: usize,
    id: String,
    phase: String,
    /// What the phases of the current run showed.
    figures: Vec<String>,
}

impl Progress {
    pub fn new() -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr_with_hz(8));
            let style = ProgressStyle::with_template(
                "{spinner} [{elapsed_precise}] {wide_bar} {pos}/{len}\n  {msg}",
            );
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Progress {
            bar,
            began: Instant::now(),
            total: 0,
            done: 0,
            measured_here: 0,
            id: String::new(),
            phase: String::new(),
            figures: Vec::new(),
        }
    }

    /// A line that stays.
    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => eprintln!("{text}"),
        }
    }

    fn show(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{} {what}{}", self.id, self.time_left()));
            bar.tick();
        }
    }

    /// From the mean of the runs measured so far.
    fn time_left(&self) -> String {
        if self.measured_here == 0 {
            return String::new();
        }
        let left = self.total.saturating_sub(self.done) as u32;
        let each = self.began.elapsed() / self.measured_here as u32;
        format!("  about {} left", format_duration(round(each * left)))
    }

    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Default for Progress {
    fn default() -> Self {
        Progress::new()
    }
}

/// Whole seconds: an estimate is no more exact.
fn round(duration: Duration) -> Duration {
    Duration::from_secs(duration.as_secs_f64().round() as u64)
}

impl Watcher for Progress {
    fn campaign(&mut self, total: usize, done: usize) {
        (self.total, self.done) = (total, done);
        if let Some(bar) = &self.bar {
            bar.set_length(total as u64);
            bar.set_position(done as u64);
        }
        if done > 0 {
            self.line(&format!("{done} of {total} runs are done already"));
        }
    }

    fn run_started(&mut self, id: &str) {
        id.clone_into(&mut self.id);
        self.figures.clear();
        self.show("");
    }

    fn step(&mut self, what: &str) {
        self.show(what);
    }

    fn phase_started(&mut self, phase: &PhasePlan, stage: Stage) {
        self.phase = match stage {
            Stage::Warmup => format!("{} (warm-up)", phase.name),
            _ => phase.name.clone(),
        };
        let phase = self.phase.clone();
        self.show(&phase);
    }

    fn window(&mut self, window: &WindowRecord) {
        if self.bar.is_none() || window.length.is_zero() {
            return;
        }
        let mut succeeded = Latencies::new();
        let mut unsuccessful = 0;
        for operation in &window.operations {
            succeeded.add(&operation.succeeded);
            unsuccessful += operation.counts.unsuccessful();
        }
        let rate = format_rate(succeeded.len() as f64 / window.length.as_secs_f64());
        let p99 = percentile_ns(&succeeded, unsuccessful, 99.0).map_or(String::new(), |ns| {
            format!("  p99 {}", format_duration(Duration::from_nanos(ns)))
        });
        let failing = if unsuccessful > 0 {
            format!("  {unsuccessful} failed")
        } else {
            String::new()
        };
        self.show(&format!("{}  {rate}{p99}{failing}", self.phase));
    }

    fn phase_ended(&mut self, phase: &PhaseRecord) {
        let operations = || phase.groups.iter().flat_map(|group| &group.operations);
        let inside: u64 = operations()
            .map(|operation| operation.succeeded_inside)
            .sum();
        let failed: u64 = operations()
            .map(|operation| operation.counts.unsuccessful())
            .sum();
        let rate = inside as f64 / phase.measured_time.as_secs_f64().max(f64::MIN_POSITIVE);
        let failed = if failed > 0 {
            format!(" ({failed} failed)")
        } else {
            String::new()
        };
        self.figures
            .push(format!("{} {}{failed}", phase.name, format_rate(rate)));
    }

    fn run_ended(&mut self, id: &str, record: &RunRecord) {
        self.done += 1;
        if record.status != Status::Skipped {
            self.measured_here += 1;
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.done as u64);
        }
        let mut text = format!(
            "[{}/{}] {id}: {}",
            self.done,
            self.total,
            record.status.name()
        );
        if !record.reason.is_empty() {
            text += &format!(": {}", record.reason);
        }
        if !self.figures.is_empty() {
            text += &format!("  {}", self.figures.join("  "));
        }
        if !record.doubts.is_empty() {
            text += &format!("  doubts: {}", record.doubts.join(", "));
        }
        self.line(&text);
    }

    fn tick(&mut self) {
        if let Some(bar) = &self.bar {
            bar.tick();
        }
    }

    fn note(&mut self, text: &str) {
        self.line(text);
    }
}
