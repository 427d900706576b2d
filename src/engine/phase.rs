//! One phase: deals seats to workers, has all sessions opened, starts every pass at one moment, and makes one record of
//! what the workers hand over. The workers do the rest; run it from a thread that has nothing else to do.

use super::entry::OpenDriver;
use super::event::{Event, Order, Pass, PassReport, SeatPeer, SeatPlan, SeatReport, WorkerJob};
use super::merge::Merge;
use crate::driver::spec::{Endpoint, Transport};
use crate::measure::record::{ErrorRecord, Latencies, PhaseRecord, Stage, WindowRecord};
use crate::measure::recorder::RowName;
use crate::op::{ErrorClass, Failure};
use crate::plan::{ClientPlan, PhasePlan};
use crate::workload::generator::Prepared;
use crate::workload::spec::Stream;
use jiff::Timestamp;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// From the order to the common start: long enough for every worker to have read the order.
const LEAD: Duration = Duration::from_millis(5);

/// How often the coordinator looks at the world: ctrl-C, dead servers, the run's timeout.
const LOOK: Duration = Duration::from_millis(100);

/// Asked for by whoever must end a phase early: ctrl-C, a dead server, the run's timeout.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    flag: Arc<AtomicBool>,
    reason: Arc<Mutex<String>>,
}

impl Stop {
    /// The first reason stands.
    pub fn ask(&self, reason: &str) {
        if let Ok(mut kept) = self.reason.lock()
            && kept.is_empty()
        {
            reason.clone_into(&mut kept);
        }
        self.flag.store(true, Ordering::Relaxed);
    }

    pub fn asked(&self) -> Option<String> {
        let asked = self.flag.load(Ordering::Relaxed);
        asked.then(|| {
            self.reason
                .lock()
                .map(|reason| reason.clone())
                .unwrap_or_default()
        })
    }
}

/// Everything a phase needs.
pub struct PhaseRun<'a> {
    pub phase: &'a PhasePlan,
    pub driver: &'a dyn OpenDriver,
    /// Per group of the phase: its endpoints, or the one `Directory` or `Nothing`.
    pub endpoints: &'a [Vec<Endpoint>],
    /// One workload per group.
    pub workloads: &'a [Arc<Prepared>],
    pub blocking: bool,
    /// Whether a session takes all endpoints of its group.
    pub takes_all: bool,
    pub client: &'a ClientPlan,
    pub connect_timeout: Duration,
    pub seed: u64,
    pub repeat: u32,
    /// No pass starts after it.
    pub deadline: Option<Instant>,
    pub stop: &'a Stop,
}

/// Hears of a phase while it runs.
pub trait Listener {
    /// A window that is complete, in order within its stage.
    fn window(&mut self, window: &WindowRecord) -> Result<(), String>;
    /// All sessions are open and a pass starts at this moment.
    fn started(&mut self, _stage: Stage, _at: Instant) {}
    /// A few times a second; may ask to stop.
    fn tick(&mut self) {}
}

/// Runs the phase to its end. Err: it could not start (a session could not be opened).
pub fn run(run: &PhaseRun<'_>, listener: &mut dyn Listener) -> Result<PhaseRecord, Failure> {
    let seats = resolve(deal(run))?;
    let workers = worker_count(run, seats.len());
    std::thread::scope(|scope| {
        let (events, heard) = channel();
        let mut orders = Vec::new();
        let rows = Arc::new(rows(run.phase));
        for (worker, seats) in hands(seats, workers).into_iter().enumerate() {
            let (order, ordered) = channel();
            orders.push(order);
            let job = job(run, worker, seats, &rows, ordered, events.clone());
            std::thread::Builder::new()
                .name(format!("worker-{worker}"))
                .spawn_scoped(scope, move || run.driver.run_worker(job))
                .map_err(|error| {
                    Failure::new(
                        ErrorClass::Client,
                        format!("cannot start a worker: {error}"),
                    )
                })?;
        }
        drop(events);
        Conductor::new(run, workers, orders, heard, listener).conduct()
    })
}

/// The seats of all groups, each with its share of the operations and its endpoint.
fn deal(run: &PhaseRun<'_>) -> Vec<SeatPlan> {
    let mut seats = Vec::new();
    let mut first_row = 0;
    for (position, group) in run.phase.groups.iter().enumerate() {
        for thread in 0..group.threads {
            let endpoints = &run.endpoints[position];
            let endpoints = match run.takes_all {
                true => endpoints.clone(),
                false => endpoints
                    .get(thread as usize % endpoints.len().max(1))
                    .cloned()
                    .into_iter()
                    .collect(),
            };
            seats.push(SeatPlan {
                group: position,
                first_row,
                thread,
                threads: group.threads,
                operations: group.operations,
                share: group.share,
                timeout: Duration::from_nanos(group.timeout_ns),
                pipeline: group.pipeline,
                endpoints,
                workload: Arc::clone(&run.workloads[position]),
                stream: Stream {
                    seed: run.seed,
                    repeat: run.repeat,
                    phase: run.phase.ordinal,
                    group: position as u32,
                    warmup: false,
                },
                connect_after: connect_after(run.client, seats.len()),
                blocking: run.blocking,
            });
        }
        first_row += group.mix.len();
    }
    seats
}

fn connect_after(client: &ClientPlan, seat: usize) -> Duration {
    match client.connect_rate_per_second {
        rate if rate > 0.0 => Duration::from_secs_f64(seat as f64 / rate),
        _ => Duration::ZERO,
    }
}

/// Names are resolved once, before the phase.
fn resolve(mut seats: Vec<SeatPlan>) -> Result<Vec<SeatPlan>, Failure> {
    use std::collections::HashMap;
    use std::net::{SocketAddr, ToSocketAddrs};
    let mut known: HashMap<(String, u16), Vec<SocketAddr>> = HashMap::new();
    for endpoint in seats.iter_mut().flat_map(|seat| &mut seat.endpoints) {
        let Transport::Tcp {
            host,
            port,
            addresses,
        } = &mut endpoint.transport
        else {
            continue;
        };
        let name = (host.clone(), *port);
        if let Some(found) = known.get(&name) {
            addresses.clone_from(found);
            continue;
        }
        let found: Vec<SocketAddr> = (host.as_str(), *port)
            .to_socket_addrs()
            .map_err(|error| {
                Failure::new(
                    ErrorClass::Connect,
                    format!("cannot resolve {host}: {error}"),
                )
            })?
            .collect();
        addresses.clone_from(&found);
        known.insert(name, found);
    }
    Ok(seats)
}

/// "auto": as many as half of the CPUs, since the servers may be on this machine; a thread per seat where calls block.
fn worker_count(run: &PhaseRun<'_>, seats: usize) -> usize {
    if run.blocking {
        return seats;
    }
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let wanted = run
        .client
        .workers
        .map_or((cpus / 2).max(1), |workers| workers as usize);
    wanted.clamp(1, seats.max(1))
}

/// Seats in turn, so that every group is spread over all workers.
fn hands(seats: Vec<SeatPlan>, workers: usize) -> Vec<Vec<SeatPlan>> {
    let mut hands: Vec<Vec<SeatPlan>> = (0..workers).map(|_| Vec::new()).collect();
    for (position, seat) in seats.into_iter().enumerate() {
        hands[position % workers].push(seat);
    }
    hands
}

fn job(
    run: &PhaseRun<'_>,
    worker: usize,
    seats: Vec<SeatPlan>,
    rows: &Arc<Vec<RowName>>,
    orders: Receiver<Order>,
    events: Sender<Event>,
) -> WorkerJob {
    let cpus = &run.client.cpus;
    WorkerJob {
        worker,
        seats,
        cpu: cpus.get(worker % cpus.len().max(1)).copied(),
        rows: Arc::clone(rows),
        window: Duration::from_nanos(run.client.window_ns),
        connect_timeout: run.connect_timeout,
        stop: Arc::clone(&run.stop.flag),
        orders,
        events,
    }
}

/// Every (group, operation) of a phase, groups one after another.
pub fn rows(phase: &PhasePlan) -> Vec<RowName> {
    let of_group = |(group, plan): (usize, &crate::plan::GroupPlan)| {
        let name = |(slot, entry): (usize, &crate::workload::spec::MixEntry)| {
            RowName::new((group, slot), &plan.name, &entry.operation)
        };
        plan.mix.iter().enumerate().map(name).collect::<Vec<_>>()
    };
    phase.groups.iter().enumerate().flat_map(of_group).collect()
}

/// The coordinator of one phase: gives orders, hears events.
struct Conductor<'a, 'b> {
    run: &'a PhaseRun<'a>,
    workers: usize,
    orders: Vec<Sender<Order>>,
    heard: Receiver<Event>,
    listener: &'b mut dyn Listener,
    merge: Merge,
    peers: Vec<SeatPeer>,
    seats: Vec<SeatReport>,
    errors: Vec<ErrorRecord>,
    /// Per worker, of the measured passes.
    cpu: Vec<Duration>,
    turns: Latencies,
    fault: Option<String>,
    /// When it last looked at the world.
    looked: Instant,
}

impl<'a, 'b> Conductor<'a, 'b> {
    fn new(
        run: &'a PhaseRun<'a>,
        workers: usize,
        orders: Vec<Sender<Order>>,
        heard: Receiver<Event>,
        listener: &'b mut dyn Listener,
    ) -> Conductor<'a, 'b> {
        Conductor {
            run,
            workers,
            orders,
            heard,
            listener,
            merge: Merge::new(
                rows(run.phase),
                workers,
                Duration::from_nanos(run.client.window_ns),
            ),
            peers: Vec::new(),
            seats: Vec::new(),
            errors: Vec::new(),
            cpu: vec![Duration::ZERO; workers],
            turns: Latencies::new(),
            fault: None,
            looked: Instant::now(),
        }
    }

    fn conduct(mut self) -> Result<PhaseRecord, Failure> {
        self.await_open()?;
        let phase = self.run.phase;
        // Windows and errors are dated from the first common start, which is the warm-up's where there is one.
        let started_at = Timestamp::now() + LEAD;
        if phase.warmup_ns > 0 {
            let warmup = Duration::from_nanos(phase.warmup_ns);
            self.pass(Stage::Warmup, Some(warmup), None);
        }
        let duration = phase.duration_ns.map(Duration::from_nanos);
        let at_least = Duration::from_nanos(phase.at_least_ns);
        let (mut measured, mut passes, mut grid) = (Duration::ZERO, 0, None);
        loop {
            let (at, last_end) = self.pass(Stage::Measured, duration, grid);
            // What was cut short was not measured to its planned end.
            measured += match duration {
                Some(duration) if !self.must_end() => duration,
                Some(duration) => duration.min(last_end - at),
                None => last_end - at,
            };
            passes += 1;
            grid = grid.or(Some(at));
            if duration.is_some() || measured >= at_least || self.must_end() {
                break;
            }
        }
        self.end();
        Ok(self.record(started_at, measured, passes))
    }

    fn must_end(&self) -> bool {
        self.run.stop.asked().is_some() || self.fault.is_some()
    }

    /// The next event, with a look at the world several times a second however many events come. None: all workers are gone.
    fn hear(&mut self) -> Option<Event> {
        loop {
            if self.looked.elapsed() >= LOOK {
                self.tick();
                self.looked = Instant::now();
            }
            match self.heard.recv_timeout(LOOK) {
                Ok(event) => return Some(event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    fn await_open(&mut self) -> Result<(), Failure> {
        let mut open = 0;
        while open < self.workers {
            match self.hear() {
                Some(Event::Open { peers, .. }) => {
                    self.peers.extend(peers);
                    open += 1;
                }
                Some(Event::NotOpen { failure, .. }) => {
                    let asked = self.run.stop.asked();
                    // The other workers need not go on; the run has failed with this phase.
                    self.run.stop.flag.store(true, Ordering::Relaxed);
                    // A worker that was stopped knows less than who stopped it.
                    return Err(match asked {
                        Some(reason) if !reason.is_empty() => {
                            Failure::new(ErrorClass::Client, reason)
                        }
                        _ => failure,
                    });
                }
                Some(Event::Lost { reason }) => {
                    self.run.stop.flag.store(true, Ordering::Relaxed);
                    return Err(Failure::new(ErrorClass::Client, reason));
                }
                Some(_) => {}
                None => {
                    return Err(Failure::new(
                        ErrorClass::Client,
                        "a worker ended before its sessions were open",
                    ));
                }
            }
        }
        Ok(())
    }

    fn tick(&mut self) {
        if self
            .run
            .deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
        {
            self.run.stop.ask("the run's timeout was over");
        }
        self.listener.tick();
    }

    /// A worker is gone by a fault of ours; the phase ends, and says so.
    fn lose(&mut self, reason: String) {
        self.workers -= 1;
        self.run.stop.ask(&reason);
        self.fault.get_or_insert(reason);
    }

    /// One pass from the common start to the last end.
    fn pass(
        &mut self,
        stage: Stage,
        length: Option<Duration>,
        grid: Option<Instant>,
    ) -> (Instant, Instant) {
        let at = Instant::now() + LEAD;
        let until = length.map(|length| at + length);
        let grid_at = grid.unwrap_or(at);
        self.merge.begin(stage, grid_at, until);
        self.listener.started(stage, at);
        let resets = stage == Stage::Measured && grid.is_none();
        for order in &self.orders {
            let _ = order.send(Order::Go(Pass {
                stage,
                at,
                until,
                grid: grid_at,
                resets,
            }));
        }
        let mut last_end = at;
        let mut done = 0;
        while done < self.workers {
            match self.hear() {
                Some(Event::PassDone(report)) => {
                    last_end = last_end.max(report.last_end);
                    self.take(stage, &report);
                    let complete = self.merge.worker_done(report.worker);
                    self.emit(complete);
                    done += 1;
                }
                Some(Event::Lost { reason }) => self.lose(reason),
                Some(Event::Window { worker, window }) => {
                    let complete = self.merge.take(worker, window);
                    self.emit(complete);
                }
                Some(_) => {}
                None => {
                    self.fault = Some("a worker ended early".to_owned());
                    break;
                }
            }
        }
        let stage_is_over = length.is_some();
        let rest = self.merge.end_pass(last_end, stage_is_over);
        self.emit(rest);
        (at, last_end)
    }

    fn take(&mut self, stage: Stage, report: &PassReport) {
        if stage == Stage::Measured {
            self.cpu[report.worker] += report.cpu;
            self.turns.add(&report.turns);
        }
    }

    fn emit(&mut self, windows: Vec<WindowRecord>) {
        for window in windows {
            if let Err(fault) = self.listener.window(&window)
                && self.fault.is_none()
            {
                self.run.stop.ask(&fault);
                self.fault = Some(fault);
            }
        }
    }

    fn end(&mut self) {
        let rest = self.merge.end_stage();
        self.emit(rest);
        for order in &self.orders {
            let _ = order.send(Order::End);
        }
        let mut ended = 0;
        while ended < self.workers {
            match self.heard.recv() {
                Ok(Event::Ended { errors, seats, .. }) => {
                    self.errors.extend(errors);
                    self.seats.extend(seats);
                    ended += 1;
                }
                Ok(Event::Lost { reason }) => self.lose(reason),
                Ok(_) => {}
                Err(_) => break,
            }
        }
    }

    fn record(self, started_at: Timestamp, measured: Duration, passes: u64) -> PhaseRecord {
        let cut_short = self.fault.or_else(|| self.run.stop.asked());
        let busy =
            |cpu: &Duration| cpu.as_secs_f64() / measured.as_secs_f64().max(f64::MIN_POSITIVE);
        super::merge::phase_record(super::merge::Parts {
            phase: self.run.phase,
            totals: self.merge.into_totals(),
            peers: self.peers,
            seats: self.seats,
            errors: self.errors,
            workers: self.workers,
            cpu: self.cpu.iter().sum(),
            turns: match self.run.blocking {
                true => Latencies::new(),
                false => self.turns,
            },
            worker_busy: self.cpu.iter().map(busy).collect(),
            started_at,
            measured_time: measured,
            passes,
            cut_short,
        })
    }
}

#[cfg(test)]
mod tests;
