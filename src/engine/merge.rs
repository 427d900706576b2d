//! Makes one of what many workers hand over: windows in order, totals of a phase, errors. Only the windows that are still
//! open are held, so memory does not grow with the length of a phase.

use super::event::{SeatPeer, SeatReport};
use crate::measure::record::{
    Counts, ErrorRecord, Extra, GroupRecord, Latencies, OperationRecord, PhaseRecord, Stage,
    WindowOperation, WindowRecord, add_extra,
};
use crate::measure::recorder::{Cells, RowName, WorkerWindow};
use crate::plan::PhasePlan;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::{Duration, Instant};

/// Totals of one (group, operation): all that started inside the measured time.
#[derive(Default)]
pub struct Total {
    counts: Counts,
    succeeded_inside: u64,
    ended_inside: u64,
    succeeded: Latencies,
    unsuccessful: Latencies,
    extra: Option<Box<Extra>>,
}

pub struct Merge {
    rows: Vec<RowName>,
    window: Duration,
    totals: Vec<Total>,
    /// Windows of the current stage that may still get more: row -> cells.
    open: BTreeMap<u64, BTreeMap<usize, Cells>>,
    drain: BTreeMap<usize, Cells>,
    /// Per worker, the window it has handed over last.
    reached: Vec<Option<u64>>,
    stage: Stage,
    /// Start of the first stage, of the current one, and the end of what was measured in it.
    origin: Option<Instant>,
    grid: Instant,
    until: Option<Instant>,
    last_end: Instant,
}

impl Merge {
    pub fn new(rows: Vec<RowName>, workers: usize, window: Duration) -> Merge {
        let now = Instant::now();
        Merge {
            totals: rows.iter().map(|_| Total::default()).collect(),
            rows,
            window,
            open: BTreeMap::new(),
            drain: BTreeMap::new(),
            reached: vec![None; workers],
            stage: Stage::Measured,
            origin: None,
            grid: now,
            until: None,
            last_end: now,
        }
    }

    pub fn begin(&mut self, stage: Stage, grid: Instant, until: Option<Instant>) {
        self.origin.get_or_insert(grid);
        self.reached.fill(None);
        (self.stage, self.grid, self.until, self.last_end) = (stage, grid, until, grid);
    }

    /// Takes a worker's window; returns those that are now complete.
    pub fn take(&mut self, worker: usize, window: WorkerWindow) -> Vec<WindowRecord> {
        for (row, cells) in window.rows {
            if self.stage == Stage::Measured {
                self.totals[row].add(&cells, window.stage);
            }
            let held = match window.stage {
                Stage::Drain => &mut self.drain,
                _ => self.open.entry(window.index).or_default(),
            };
            match held.entry(row) {
                Entry::Vacant(place) => drop(place.insert(cells)),
                Entry::Occupied(mut held) => add_cells(held.get_mut(), &cells),
            }
        }
        if window.stage != Stage::Drain {
            self.reached[worker] = Some(window.index);
        }
        self.complete()
    }

    /// A worker hands over nothing more in this pass: the others do not wait for it. (A later pass may go on in the window
    /// in which this one ends, so nothing is complete once all are done.)
    pub fn worker_done(&mut self, worker: usize) -> Vec<WindowRecord> {
        self.reached[worker] = Some(u64::MAX);
        match self
            .reached
            .iter()
            .all(|reached| *reached == Some(u64::MAX))
        {
            true => Vec::new(),
            false => self.complete(),
        }
    }

    /// Windows that no worker will add to: those before the one that the slowest worker has handed over last.
    fn complete(&mut self) -> Vec<WindowRecord> {
        let slowest = self.reached.iter().copied().min().flatten().unwrap_or(0);
        let later = self.open.split_off(&slowest);
        let complete = std::mem::replace(&mut self.open, later);
        complete
            .into_iter()
            .map(|(index, rows)| self.record(index, rows))
            .collect()
    }

    /// A pass has ended at `last_end`; where the stage is over with it, its last windows and its drain are returned.
    pub fn end_pass(&mut self, last_end: Instant, stage_is_over: bool) -> Vec<WindowRecord> {
        self.last_end = self.last_end.max(last_end);
        match stage_is_over {
            true => self.end_stage(),
            false => Vec::new(),
        }
    }

    /// The stage is over: everything that is still held.
    pub fn end_stage(&mut self) -> Vec<WindowRecord> {
        let open = std::mem::take(&mut self.open);
        let mut windows: Vec<_> = open
            .into_iter()
            .map(|(index, rows)| self.record(index, rows))
            .collect();
        let drain = std::mem::take(&mut self.drain);
        if let Some(until) = self.until
            && !drain.is_empty()
        {
            windows.push(WindowRecord {
                start: self.since_origin(until),
                length: self.last_end.saturating_duration_since(until),
                // What a warm-up leaves in flight is no part of the figures either.
                stage: match self.stage {
                    Stage::Warmup => Stage::Warmup,
                    _ => Stage::Drain,
                },
                operations: self.operations(drain),
            });
        }
        windows
    }

    fn record(&self, index: u64, rows: BTreeMap<usize, Cells>) -> WindowRecord {
        let offset = |windows: u64| Duration::from_nanos(self.window.as_nanos() as u64 * windows);
        let start = self.grid + offset(index);
        let end = self.grid + offset(index + 1);
        // By count, the last window ends with the last operation; by duration, with the measured time.
        let end = match self.until {
            Some(until) => end.min(until),
            None if self.last_end > start => end.min(self.last_end),
            None => end,
        };
        WindowRecord {
            start: self.since_origin(start),
            length: end - start,
            stage: self.stage,
            operations: self.operations(rows),
        }
    }

    fn since_origin(&self, moment: Instant) -> Duration {
        let origin = self.origin.unwrap_or(self.grid);
        moment.saturating_duration_since(origin)
    }

    fn operations(&self, rows: BTreeMap<usize, Cells>) -> Vec<WindowOperation> {
        let operation = |(row, cells): (usize, Cells)| {
            let (group, slot) = self.rows[row].position;
            WindowOperation {
                group,
                slot,
                counts: cells.counts,
                succeeded: cells.succeeded,
                unsuccessful: cells.unsuccessful,
                extra: cells.extra,
            }
        };
        rows.into_iter().map(operation).collect()
    }

    pub fn into_totals(self) -> Vec<Total> {
        self.totals
    }
}

impl Total {
    fn add(&mut self, cells: &Cells, stage: Stage) {
        self.counts.add(&cells.counts);
        if stage == Stage::Measured {
            self.succeeded_inside += cells.counts.succeeded;
            self.ended_inside += cells.counts.operations;
        }
        self.succeeded.add(&cells.succeeded);
        self.unsuccessful.add(&cells.unsuccessful);
        add_extra(&mut self.extra, cells.extra.as_deref());
    }
}

fn add_cells(held: &mut Cells, cells: &Cells) {
    held.counts.add(&cells.counts);
    held.succeeded.add(&cells.succeeded);
    held.unsuccessful.add(&cells.unsuccessful);
    add_extra(&mut held.extra, cells.extra.as_deref());
}

/// What a phase's record is made of.
pub struct Parts<'a> {
    pub phase: &'a PhasePlan,
    pub totals: Vec<Total>,
    pub peers: Vec<SeatPeer>,
    pub seats: Vec<SeatReport>,
    pub errors: Vec<ErrorRecord>,
    pub workers: usize,
    pub cpu: Duration,
    pub turns: Latencies,
    pub worker_busy: Vec<f64>,
    pub started_at: Timestamp,
    pub measured_time: Duration,
    pub passes: u64,
    pub cut_short: Option<String>,
}

pub fn phase_record(parts: Parts<'_>) -> PhaseRecord {
    let mut totals = parts.totals.into_iter();
    let all: u64 = parts.seats.iter().map(|seat| seat.operations).sum();
    let mut groups = Vec::new();
    for (position, group) in parts.phase.groups.iter().enumerate() {
        let seats = || parts.seats.iter().filter(|seat| seat.group == position);
        let done: u64 = seats().map(|seat| seat.operations).sum();
        let operation =
            |(entry, total): (&crate::workload::spec::MixEntry, Total)| OperationRecord {
                operation: entry.operation.clone(),
                counts: total.counts,
                succeeded_inside: total.succeeded_inside,
                ended_inside: total.ended_inside,
                succeeded: total.succeeded,
                unsuccessful: total.unsuccessful,
                extra: total.extra,
            };
        let peers = parts.peers.iter().filter(|peer| peer.group == position);
        groups.push(GroupRecord {
            name: group.name.clone(),
            threads: group.threads,
            workers: parts.workers as u32,
            connections: peers.map(|peer| peer.connections).sum(),
            endpoints: endpoints(seats()),
            reconnections: seats().map(|seat| seat.reconnections).sum(),
            reconnecting: seats().map(|seat| seat.reconnecting).sum(),
            client_cpu: parts.cpu.mul_f64(if all == 0 {
                0.0
            } else {
                done as f64 / all as f64
            }),
            client_turn: parts.turns.clone(),
            operations: group
                .mix
                .iter()
                .zip(totals.by_ref())
                .map(operation)
                .collect(),
        });
    }
    PhaseRecord {
        name: parts.phase.name.clone(),
        measured: parts.phase.measured,
        started_at: parts.started_at,
        measured_time: parts.measured_time,
        passes: parts.passes,
        groups,
        errors: joined(parts.errors),
        cut_short: parts.cut_short,
        worker_busy: parts.worker_busy,
    }
}

/// Operations per endpoint, in the order of the labels.
fn endpoints<'a>(seats: impl Iterator<Item = &'a SeatReport>) -> Vec<(String, u64)> {
    let mut operations: BTreeMap<&str, u64> = BTreeMap::new();
    for seat in seats {
        *operations.entry(&seat.label).or_default() += seat.operations;
    }
    operations
        .into_iter()
        .map(|(label, count)| (label.to_owned(), count))
        .collect()
}

/// The same error of several workers is one row; the first message is the earliest.
fn joined(errors: Vec<ErrorRecord>) -> Vec<ErrorRecord> {
    let mut rows: BTreeMap<_, ErrorRecord> = BTreeMap::new();
    for error in errors {
        let key = (
            error.group.clone(),
            error.operation.clone(),
            error.class,
            error.code.clone(),
        );
        match rows.get_mut(&key) {
            None => {
                rows.insert(key, error);
            }
            Some(row) => {
                row.count += error.count;
                if error.first_at < row.first_at {
                    row.first_at = error.first_at;
                    row.first_message = error.first_message;
                }
            }
        }
    }
    rows.into_values().collect()
}

#[cfg(test)]
mod tests;
