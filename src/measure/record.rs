//! Frozen results, as the engine hands them over and `results` writes them. Durations are `Duration`s or nanoseconds in
//! histograms; times are wall clock of the start and offsets from it.

use crate::op::ErrorClass;
use hdrhistogram::Histogram;
use jiff::Timestamp;
use std::time::Duration;

/// Counts of operations; `operations = succeeded + failed + timed_out + wrong_value`, each operation in one of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub operations: u64,
    pub succeeded: u64,
    /// Kinds of `succeeded`.
    pub found: u64,
    pub missing: u64,
    pub failed: u64,
    pub timed_out: u64,
    pub wrong_value: u64,
    /// Those of failed and timed_out that were sent and never answered.
    pub unknown: u64,
    /// Never started (open loop).
    pub dropped: u64,
    /// Succeeded replies whose length is not the first reply's.
    pub length_changed: u64,
    pub bytes_sent: u64,
    pub bytes_received: u64,
}

impl Counts {
    pub fn add(&mut self, other: &Counts) {
        self.operations += other.operations;
        self.succeeded += other.succeeded;
        self.found += other.found;
        self.missing += other.missing;
        self.failed += other.failed;
        self.timed_out += other.timed_out;
        self.wrong_value += other.wrong_value;
        self.unknown += other.unknown;
        self.dropped += other.dropped;
        self.length_changed += other.length_changed;
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
    }

    /// Operations of any class that did not succeed: they rank above every success.
    pub fn unsuccessful(&self) -> u64 {
        self.failed + self.timed_out + self.wrong_value
    }
}

/// What a histogram holds before it has to grow for the first time. One that held an hour from the start would have to be
/// zeroed and added up over a quarter of a megabyte for every window and operation.
const FIRST_REACH_NS: u64 = 1 << 20;

/// A latency distribution with its exact ends and sum: the histogram alone would round them. Nanoseconds.
#[derive(Clone, Debug)]
pub struct Latencies {
    /// 3 significant digits; it grows with the values it gets, an hour and further.
    pub histogram: Histogram<u64>,
    /// u64::MAX where empty.
    pub min_ns: u64,
    /// 0 where empty.
    pub max_ns: u64,
    pub sum_ns: u128,
}

impl Latencies {
    pub fn new() -> Latencies {
        let mut histogram = Histogram::new_with_bounds(1, FIRST_REACH_NS, 3)
            .expect("the bounds of the latency histogram are valid");
        histogram.auto(true);
        Latencies {
            histogram,
            min_ns: u64::MAX,
            max_ns: 0,
            sum_ns: 0,
        }
    }

    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.histogram
            .record(ns)
            .expect("the histogram grows as it needs");
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        self.sum_ns += u128::from(ns);
    }

    pub fn len(&self) -> u64 {
        self.histogram.len()
    }

    pub fn is_empty(&self) -> bool {
        self.histogram.is_empty()
    }

    pub fn mean_ns(&self) -> Option<f64> {
        let count = self.len();
        (count > 0).then(|| self.sum_ns as f64 / count as f64)
    }

    pub fn add(&mut self, other: &Latencies) {
        // Most windows have no failure at all.
        if other.is_empty() {
            return;
        }
        self.histogram
            .add(&other.histogram)
            .expect("the histogram grows as it needs");
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.sum_ns += other.sum_ns;
    }

    pub fn reset(&mut self) {
        self.histogram.reset();
        self.min_ns = u64::MAX;
        self.max_ns = 0;
        self.sum_ns = 0;
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Latencies::new()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    Warmup,
    Measured,
    /// Ended after the measured time of a phase by duration.
    Drain,
}

impl Stage {
    pub fn name(self) -> &'static str {
        match self {
            Stage::Warmup => "warmup",
            Stage::Measured => "measured",
            Stage::Drain => "drain",
        }
    }
}

/// What only some operations have: made when the first of them ends.
#[derive(Clone, Debug)]
pub struct Extra {
    /// Warnings that servers gave with their answers.
    pub warnings: u64,
    /// Time to open a connection, of operations that opened one.
    pub connect: Latencies,
    /// Time until the first byte of the answer, where the driver knows it.
    pub first_byte: Latencies,
    /// Response times of successes that had an intended start.
    pub response: Latencies,
    /// How late all of these were started.
    pub lag: Latencies,
}

impl Extra {
    pub fn new() -> Extra {
        Extra {
            warnings: 0,
            connect: Latencies::new(),
            first_byte: Latencies::new(),
            response: Latencies::new(),
            lag: Latencies::new(),
        }
    }

    pub fn add(&mut self, other: &Extra) {
        self.warnings += other.warnings;
        self.connect.add(&other.connect);
        self.first_byte.add(&other.first_byte);
        self.response.add(&other.response);
        self.lag.add(&other.lag);
    }
}

impl Default for Extra {
    fn default() -> Self {
        Extra::new()
    }
}

/// Adds what is there to what is there.
pub fn add_extra(held: &mut Option<Box<Extra>>, other: Option<&Extra>) {
    if let Some(other) = other {
        held.get_or_insert_with(Box::default).add(other);
    }
}

/// What ended within one window of a phase, all workers together.
#[derive(Clone, Debug)]
pub struct WindowRecord {
    /// Offset from the phase's common start.
    pub start: Duration,
    /// The last of a stage may be shorter than the others.
    pub length: Duration,
    pub stage: Stage,
    /// One per group and operation of it that ended anything in this window, in the order of the plan.
    pub operations: Vec<WindowOperation>,
}

#[derive(Clone, Debug)]
pub struct WindowOperation {
    /// Index into `PhasePlan::groups`.
    pub group: usize,
    /// Index into `GroupPlan::mix`.
    pub slot: usize,
    pub counts: Counts,
    /// Service times of successes, and of all the others (with the time they took).
    pub succeeded: Latencies,
    pub unsuccessful: Latencies,
    pub extra: Option<Box<Extra>>,
}

/// A phase that has ended.
#[derive(Clone, Debug)]
pub struct PhaseRecord {
    pub name: String,
    pub measured: bool,
    /// The first common start, of the warm-up where there is one: windows and errors are offsets from it.
    pub started_at: Timestamp,
    /// The measured time of all passes together, warm-up and drain not in it.
    pub measured_time: Duration,
    pub passes: u64,
    pub groups: Vec<GroupRecord>,
    pub errors: Vec<ErrorRecord>,
    /// Ended before its time (ctrl-C, the run's timeout, no session left).
    pub cut_short: Option<String>,
    /// Shares of the worker threads' time spent on CPU, in [0, 1], one per worker; for the doubt `client_limited`.
    pub worker_busy: Vec<f64>,
}

#[derive(Clone, Debug)]
pub struct GroupRecord {
    pub name: String,
    pub threads: u32,
    pub workers: u32,
    pub connections: u32,
    /// (label, operations it got).
    pub endpoints: Vec<(String, u64)>,
    pub reconnections: u64,
    pub reconnecting: Duration,
    /// CPU of the worker threads during the measured time; shared by groups in proportion to their operations.
    pub client_cpu: Duration,
    /// How long workers were away from their event loops at a time; empty for blocking drivers.
    pub client_turn: Latencies,
    /// One per entry of the mix.
    pub operations: Vec<OperationRecord>,
}

#[derive(Clone, Debug)]
pub struct OperationRecord {
    pub operation: String,
    /// Operations started inside the measured time (those of the drain too).
    pub counts: Counts,
    /// Of `counts`, those that succeeded and ended inside the measured time: the throughput.
    pub succeeded_inside: u64,
    /// Of `counts`, all that ended inside it.
    pub ended_inside: u64,
    pub succeeded: Latencies,
    pub unsuccessful: Latencies,
    pub extra: Option<Box<Extra>>,
}

/// One row of errors.csv.
#[derive(Clone, Debug)]
pub struct ErrorRecord {
    pub group: String,
    pub operation: String,
    pub class: ErrorClass,
    pub code: String,
    pub count: u64,
    /// Offset from the phase's common start.
    pub first_at: Duration,
    pub first_message: String,
}

/// One row of servers.csv: a process, the client, or the host at a moment. None = not known for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// `redis`, `mariadb/2` (instance), `client`, `host`.
    pub process: String,
    /// Offset from the start of the run.
    pub at: Duration,
    /// User and system, of the process and all its descendants, since its start.
    pub cpu: Option<Duration>,
    pub rss_bytes: Option<u64>,
    pub read_bytes: Option<u64>,
    pub written_bytes: Option<u64>,
    pub threads: Option<u64>,
    pub time_wait_sockets: Option<u64>,
    /// 1-minute load average.
    pub load: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Valid,
    Invalid,
    Failed,
    Skipped,
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Status::Valid => "valid",
            Status::Invalid => "invalid",
            Status::Failed => "failed",
            Status::Skipped => "skipped",
        }
    }
}

/// The row of runs.csv, known when the run has ended.
#[derive(Clone, Debug)]
pub struct RunRecord {
    pub status: Status,
    /// A sentence; empty for valid.
    pub reason: String,
    /// `client_limited` and its like.
    pub doubts: Vec<String>,
    pub started_at: Timestamp,
    pub elapsed: Duration,
    pub server_version: String,
}
