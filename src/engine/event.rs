//! What coordinator and workers tell each other, as plain data: it could as well come over a wire.
//!
//! A worker gets its `Seat`s once, opens their sessions, then works pass by pass: `Order::Go` starts one at an agreed
//! moment, `Event::PassDone` ends it. Windows come as they close; totals are made of them by the coordinator.

use crate::driver::spec::Endpoint;
use crate::measure::record::{ErrorRecord, Latencies, Stage};
use crate::measure::recorder::{RowName, WorkerWindow};
use crate::op::Failure;
use crate::plan::Share;
use crate::workload::generator::Prepared;
use crate::workload::spec::Stream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

/// All that a worker needs for one phase.
pub struct WorkerJob {
    pub worker: usize,
    pub seats: Vec<SeatPlan>,
    /// CPU to run on.
    pub cpu: Option<u32>,
    /// Every (group, operation) of the phase, groups one after another.
    pub rows: Arc<Vec<RowName>>,
    pub window: Duration,
    pub connect_timeout: Duration,
    /// Set when no further operation may start.
    pub stop: Arc<AtomicBool>,
    pub orders: Receiver<Order>,
    pub events: Sender<Event>,
}

/// One client thread: which part of whose operations, on which endpoints.
#[derive(Clone)]
pub struct SeatPlan {
    /// Index into the phase's groups.
    pub group: usize,
    /// Position of the group's first operation in `WorkerJob::rows`.
    pub first_row: usize,
    /// Thread t of T of its group.
    pub thread: u32,
    pub threads: u32,
    /// Of one pass of the group; None = by duration.
    pub operations: Option<u64>,
    pub share: Share,
    pub timeout: Duration,
    pub pipeline: u32,
    pub endpoints: Vec<Endpoint>,
    pub workload: Arc<Prepared>,
    /// Whose stream of operations; a warm-up pass takes its own.
    pub stream: Stream,
    /// Sessions are opened no earlier than this after the phase began to open them.
    pub connect_after: Duration,
    /// The driver's calls block: an operation over its limit has ended all the same.
    pub blocking: bool,
}

pub enum Order {
    Go(Pass),
    End,
}

/// One stretch of work between two common moments.
#[derive(Clone, Debug)]
pub struct Pass {
    pub stage: Stage,
    /// The moment at which every session starts.
    pub at: Instant,
    /// No operation starts after it; None = by count.
    pub until: Option<Instant>,
    /// Where the window grid of this stage begins.
    pub grid: Instant,
    /// The first measured pass: what seats counted before is forgotten.
    pub resets: bool,
}

pub enum Event {
    /// All sessions of this worker are open.
    Open {
        worker: usize,
        peers: Vec<SeatPeer>,
    },
    /// One could not be opened: the phase cannot start.
    NotOpen {
        worker: usize,
        failure: Failure,
    },
    /// A worker panicked; nothing more comes from it.
    Lost {
        reason: String,
    },
    Window {
        worker: usize,
        window: WorkerWindow,
    },
    PassDone(PassReport),
    /// The last one of a worker.
    Ended {
        worker: usize,
        errors: Vec<ErrorRecord>,
        seats: Vec<SeatReport>,
    },
}

/// What a seat is connected to.
pub struct SeatPeer {
    /// Index into the phase's groups.
    pub group: usize,
    pub label: String,
    pub connections: u32,
}

pub struct PassReport {
    pub worker: usize,
    /// When its last operation ended; the pass's start where there was none.
    pub last_end: Instant,
    /// User and system CPU of the worker's thread during the pass.
    pub cpu: Duration,
    /// How long it was away from its event loop at a time.
    pub turns: Latencies,
}

pub struct SeatReport {
    pub group: usize,
    /// What it was connected to.
    pub label: String,
    pub operations: u64,
    pub reconnections: u64,
    pub reconnecting: Duration,
}
