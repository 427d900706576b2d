//! What a worker fills: one recorder per worker, nothing shared. Each operation enters the window in which it ended, in one
//! of two histograms; a window that is over is handed over whole, so a long run holds no more than a short one.

use super::record::{Counts, ErrorRecord, Extra, Latencies, Stage};
use crate::op::{ErrorClass, Outcome, Reply};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// One worker's part of a window.
#[derive(Debug)]
pub struct WorkerWindow {
    pub stage: Stage,
    /// Position on the stage's grid, from 0.
    pub index: u64,
    /// One per (group, operation) that ended anything in it: (row, cells).
    pub rows: Vec<(usize, Cells)>,
}

/// What one (group, operation) did in one window.
#[derive(Debug, Default)]
pub struct Cells {
    pub counts: Counts,
    pub succeeded: Latencies,
    pub unsuccessful: Latencies,
    pub extra: Option<Box<Extra>>,
}

/// Different errors that a worker tells apart at most; the rest are counted under the last one's place as `other`.
const MOST_ERRORS: usize = 1_000;

type ErrorKey = (usize, ErrorClass, String);

/// Where windows go when they are over.
pub type WindowSink = Box<dyn FnMut(WorkerWindow)>;

/// A (group, operation) of a phase, as all its workers know it.
#[derive(Clone, Debug)]
pub struct RowName {
    /// Position of the group in the phase and of the operation in the group's mix.
    pub position: (usize, usize),
    pub group: String,
    pub operation: String,
    pub first_length: Arc<OnceLock<u64>>,
}

impl RowName {
    pub fn new(position: (usize, usize), group: &str, operation: &str) -> RowName {
        RowName {
            position,
            group: group.to_owned(),
            operation: operation.to_owned(),
            first_length: Arc::default(),
        }
    }
}

pub struct Recorder {
    rows: Vec<Row>,
    window: Duration,
    sink: WindowSink,
    /// Start of the phase: errors are dated from here.
    origin: Instant,
    stage: Stage,
    /// Start of the stage's grid.
    grid: Instant,
    index: u64,
    /// End of the current window.
    window_end: Instant,
    /// End of the measured time of a pass by duration: what ends later is drained.
    until: Option<Instant>,
    last_end: Instant,
    errors: HashMap<ErrorKey, ErrorRecord>,
}

struct Row {
    group: String,
    operation: String,
    cells: Cells,
    touched: bool,
    /// Length of the first reply that succeeded; all workers of a phase share it.
    first_length: Arc<OnceLock<u64>>,
}

impl Recorder {
    /// `record` is given positions in `rows`.
    pub fn new(rows: &[RowName], window: Duration, sink: WindowSink) -> Recorder {
        let now = Instant::now();
        let row = |name: &RowName| Row {
            group: name.group.clone(),
            operation: name.operation.clone(),
            cells: Cells::default(),
            touched: false,
            first_length: Arc::clone(&name.first_length),
        };
        Recorder {
            rows: rows.iter().map(row).collect(),
            window,
            sink,
            origin: now,
            stage: Stage::Measured,
            grid: now,
            index: 0,
            window_end: now + window,
            until: None,
            last_end: now,
            errors: HashMap::new(),
        }
    }

    /// Dates errors from this moment; called once, at the phase's start.
    pub fn set_origin(&mut self, origin: Instant) {
        self.origin = origin;
    }

    /// A pass begins: `grid` is where its stage's windows are counted from, which is earlier for later passes.
    pub fn begin(&mut self, stage: Stage, grid: Instant, at: Instant, until: Option<Instant>) {
        self.stage = stage;
        self.grid = grid;
        self.until = until;
        self.last_end = at;
        self.move_to(at);
    }

    /// One operation has ended, `service` after its start; its class decides the histogram.
    #[inline]
    pub fn record(
        &mut self,
        row: usize,
        service: Duration,
        ended: Instant,
        outcome: &Outcome,
        reply: &Reply,
    ) {
        if ended >= self.window_end {
            self.roll(ended);
        }
        self.last_end = self.last_end.max(ended);
        let ns = nanoseconds(service);
        let row_of = &mut self.rows[row];
        row_of.touched = true;
        let cells = &mut row_of.cells;
        cells.counts.operations += 1;
        cells.counts.bytes_sent += reply.bytes_sent;
        cells.counts.bytes_received += reply.bytes_received;
        if has_extra(reply) {
            record_extra(cells, ns, outcome, reply);
        }
        match outcome {
            Outcome::Found => cells.counts.found += 1,
            Outcome::Missing => cells.counts.missing += 1,
            Outcome::Done => {}
            _ => return self.record_unsuccessful(row, ns, ended, outcome),
        }
        cells.counts.succeeded += 1;
        cells.succeeded.record(ns);
        if let Some(length) = reply.value_length {
            let first = *row_of.first_length.get_or_init(|| length);
            cells.counts.length_changed += u64::from(length != first);
        }
    }

    #[cold]
    fn record_unsuccessful(&mut self, row: usize, ns: u64, ended: Instant, outcome: &Outcome) {
        let counts = &mut self.rows[row].cells.counts;
        let (class, code, message) = match outcome {
            Outcome::Failed(failure) => {
                counts.failed += 1;
                counts.unknown += u64::from(failure.unanswered);
                (failure.class, failure.code.clone(), failure.message.clone())
            }
            Outcome::WrongValue => {
                counts.wrong_value += 1;
                let message = "the value read is not the one written".to_owned();
                (ErrorClass::WrongValue, String::new(), message)
            }
            _ => {
                counts.timed_out += 1;
                counts.unknown += u64::from(*outcome == Outcome::TimedOut);
                (
                    ErrorClass::Timeout,
                    String::new(),
                    "not answered in time".to_owned(),
                )
            }
        };
        self.rows[row].cells.unsuccessful.record(ns);
        self.record_error(row, class, code, message, ended);
    }

    fn record_error(
        &mut self,
        row: usize,
        class: ErrorClass,
        code: String,
        message: String,
        at: Instant,
    ) {
        let full = self.errors.len() >= MOST_ERRORS;
        let key = (row, class, code);
        let key = match full && !self.errors.contains_key(&key) {
            true => (row, class, "other".to_owned()),
            false => key,
        };
        let (group, operation) = (&self.rows[row].group, &self.rows[row].operation);
        let first_at = at.saturating_duration_since(self.origin);
        let code = key.2.clone();
        let error = self.errors.entry(key).or_insert_with(|| ErrorRecord {
            group: group.clone(),
            operation: operation.clone(),
            class,
            code,
            count: 0,
            first_at,
            first_message: message,
        });
        error.count += 1;
    }

    /// The pass is over: hands the open window over. Returns when the last operation ended.
    pub fn end_pass(&mut self) -> Instant {
        self.hand_over();
        self.last_end
    }

    pub fn take_errors(&mut self) -> Vec<ErrorRecord> {
        self.errors.drain().map(|(_, error)| error).collect()
    }

    #[cold]
    fn roll(&mut self, ended: Instant) {
        self.hand_over();
        self.move_to(ended);
    }

    /// Makes the window that holds `moment` the current one.
    fn move_to(&mut self, moment: Instant) {
        if let Some(until) = self.until
            && moment >= until
        {
            self.stage = Stage::Drain;
            self.index = 0;
            self.window_end = moment + Duration::from_secs(365 * 86_400);
            return;
        }
        let offset = moment.saturating_duration_since(self.grid);
        let index = offset.as_nanos() / self.window.as_nanos();
        self.index = index as u64;
        let end = self.grid + Duration::from_nanos(((index + 1) * self.window.as_nanos()) as u64);
        self.window_end = self.until.map_or(end, |until| end.min(until));
    }

    fn hand_over(&mut self) {
        let taken = |(position, row): (usize, &mut Row)| {
            let touched = std::mem::take(&mut row.touched);
            touched.then(|| (position, std::mem::take(&mut row.cells)))
        };
        let rows: Vec<_> = self.rows.iter_mut().enumerate().filter_map(taken).collect();
        (self.sink)(WorkerWindow {
            stage: self.stage,
            index: self.index,
            rows,
        });
    }
}

#[inline]
fn nanoseconds(duration: Duration) -> u64 {
    duration.as_secs() * 1_000_000_000 + u64::from(duration.subsec_nanos())
}

/// Whether an answer carried what only some do.
#[inline]
fn has_extra(reply: &Reply) -> bool {
    reply.warnings != 0
        || !reply.first_byte_time.is_zero()
        || !reply.connect_time.is_zero()
        || reply.start_lag.is_some()
}

fn record_extra(cells: &mut Cells, service_ns: u64, outcome: &Outcome, reply: &Reply) {
    let extra = cells.extra.get_or_insert_with(Box::default);
    extra.warnings += u64::from(reply.warnings);
    if !reply.connect_time.is_zero() {
        extra.connect.record(nanoseconds(reply.connect_time));
    }
    if !reply.first_byte_time.is_zero() {
        extra.first_byte.record(nanoseconds(reply.first_byte_time));
    }
    if let Some(lag) = reply.start_lag {
        let lag = nanoseconds(lag);
        extra.lag.record(lag);
        if outcome.succeeded() {
            extra.response.record(lag.saturating_add(service_ns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Failure;
    use std::cell::RefCell;
    use std::rc::Rc;

    const SECOND: Duration = Duration::from_secs(1);

    fn recorder() -> (Recorder, Rc<RefCell<Vec<WorkerWindow>>>) {
        let windows = Rc::new(RefCell::new(Vec::new()));
        let kept = Rc::clone(&windows);
        let rows = [RowName::new((0, 0), "", "get")];
        let sink = Box::new(move |window| kept.borrow_mut().push(window));
        (Recorder::new(&rows, SECOND, sink), windows)
    }

    #[test]
    fn an_operation_belongs_to_the_window_in_which_it_ended() {
        let (mut recorder, windows) = recorder();
        let start = Instant::now();
        recorder.begin(Stage::Measured, start, start, None);
        let reply = Reply::default();
        recorder.record(0, SECOND / 2, start + SECOND / 2, &Outcome::Found, &reply);
        recorder.record(
            0,
            3 * SECOND,
            start + 3 * SECOND + SECOND / 2,
            &Outcome::Found,
            &reply,
        );
        assert_eq!(recorder.end_pass(), start + 3 * SECOND + SECOND / 2);
        let windows = windows.borrow();
        let seen: Vec<_> = windows.iter().map(|w| (w.index, w.rows.len())).collect();
        assert_eq!(seen, [(0, 1), (3, 1)]);
        assert_eq!(windows[1].rows[0].1.succeeded.max_ns, 3_000_000_000);
    }

    #[test]
    fn what_ends_after_the_measured_time_is_drained() {
        let (mut recorder, windows) = recorder();
        let start = Instant::now();
        recorder.begin(Stage::Measured, start, start, Some(start + SECOND));
        let reply = Reply::default();
        recorder.record(0, SECOND / 2, start + SECOND / 2, &Outcome::Found, &reply);
        recorder.record(0, SECOND, start + SECOND, &Outcome::Found, &reply);
        recorder.end_pass();
        let stages: Vec<_> = windows.borrow().iter().map(|w| w.stage).collect();
        assert_eq!(stages, [Stage::Measured, Stage::Drain]);
    }

    #[test]
    fn failures_are_counted_once_and_by_cause() {
        let (mut recorder, windows) = recorder();
        let start = Instant::now();
        recorder.set_origin(start);
        recorder.begin(Stage::Measured, start, start, None);
        let reply = Reply::default();
        let reset = Outcome::from(Failure::new(ErrorClass::Reset, "gone"));
        for outcome in [
            &reset,
            &reset,
            &Outcome::Late,
            &Outcome::TimedOut,
            &Outcome::WrongValue,
            &Outcome::Missing,
        ] {
            recorder.record(0, SECOND / 4, start + SECOND / 4, outcome, &reply);
        }
        recorder.end_pass();
        let windows = windows.borrow();
        let counts = &windows[0].rows[0].1.counts;
        assert_eq!(
            (counts.operations, counts.succeeded, counts.missing),
            (6, 1, 1)
        );
        assert_eq!(
            (counts.failed, counts.timed_out, counts.wrong_value),
            (2, 2, 1)
        );
        assert_eq!(counts.unknown, 3);
        let mut errors: Vec<_> = recorder
            .take_errors()
            .into_iter()
            .map(|e| (e.class.name(), e.count))
            .collect();
        errors.sort();
        assert_eq!(errors, [("reset", 2), ("timeout", 2), ("wrong_value", 1)]);
    }

    #[test]
    fn a_reply_of_another_length_than_the_first_is_remarked() {
        let (mut recorder, windows) = recorder();
        let start = Instant::now();
        recorder.begin(Stage::Measured, start, start, None);
        for length in [10, 10, 11] {
            let reply = Reply {
                value_length: Some(length),
                ..Reply::default()
            };
            recorder.record(0, SECOND / 4, start + SECOND / 4, &Outcome::Found, &reply);
        }
        recorder.end_pass();
        assert_eq!(windows.borrow()[0].rows[0].1.counts.length_changed, 1);
    }
}
