//! Histograms for merging, read from the logs of run directories when they are asked for.
//!
//! One log is kept at a time, as sparse counts: rows come in the order of runs.

use crate::results::hlog::{self, LogInterval};
use crate::results::read::Latencies;
use std::path::PathBuf;
use std::time::Duration;

/// Where the histogram of a row is.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    pub log: PathBuf,
    /// `phase.group.operation`.
    pub tag: String,
    /// Wall clock of the window's start; None = all of them.
    pub start: Option<Duration>,
}

/// The log rounds starts to milliseconds, on both sides of a difference.
const TOLERANCE: Duration = Duration::from_millis(2);

#[derive(Debug)]
pub struct Histograms {
    wanted: bool,
    log: PathBuf,
    intervals: Vec<LogInterval>,
    /// What could not be read, once per log.
    pub faults: Vec<String>,
}

impl Histograms {
    /// `wanted`: whether any expression reads a percentile; else no log is ever read.
    pub fn new(wanted: bool) -> Histograms {
        Histograms {
            wanted,
            log: PathBuf::new(),
            intervals: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// The latencies of successes of all sources together; None where they are not wanted or not there.
    pub fn merged(&mut self, sources: &[Source]) -> Option<Latencies> {
        if !self.wanted || sources.is_empty() {
            return None;
        }
        let mut merged = Latencies::new();
        for source in sources {
            self.load(source);
            let tag = format!("{}.succeeded_service", source.tag);
            let first = match source.start {
                None => 0,
                Some(start) => self
                    .intervals
                    .partition_point(|interval| interval.start + TOLERANCE < start),
            };
            let after = |interval: &&LogInterval| match source.start {
                None => true,
                Some(start) => interval.start <= start + TOLERANCE,
            };
            for interval in self.intervals[first..].iter().take_while(after) {
                if interval.tag == tag {
                    hlog::add(&mut merged, &interval.recorded);
                }
            }
        }
        Some(merged)
    }

    fn load(&mut self, source: &Source) {
        if self.log == source.log {
            return;
        }
        self.log = source.log.clone();
        self.intervals.clear();
        let intervals = &mut self.intervals;
        let wanted = |tag: &str| tag.ends_with(".succeeded_service");
        let read = hlog::read_intervals(&source.log, wanted, |interval| intervals.push(interval));
        if let Err(error) = read {
            self.intervals.clear();
            self.faults.push(error.to_string());
        }
        self.intervals.sort_by_key(|interval| interval.start);
    }
}
