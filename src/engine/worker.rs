//! THE HOT PATH: an OS thread that carries seats. `drive` is the loop that issues operations, one per seat; it moves and
//! counts, everything else stays out of it. One instance per driver, so nothing in it is dispatched at run time.

use super::event::{Event, Order, Pass, PassReport, WorkerJob};
use super::seat::Seat;
use crate::driver::{Driver, Worker};
use crate::measure::record::Latencies;
use crate::measure::recorder::Recorder;
use crate::op::{ErrorClass, Failure};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

/// Operations that were ready at once, after which a seat lets the others of its worker go first.
const READY_IN_A_ROW: u32 = 128;

/// How long operations in flight are waited for once the phase is stopped; then their sessions are dropped.
pub const GRACE: Duration = Duration::from_millis(500);

/// The operation loop of one seat in one pass.
async fn drive<W: Worker>(
    worker: &W,
    seat: &mut Seat<W::Session>,
    pass: &Pass,
    recorder: &RefCell<Recorder>,
    stop: &AtomicBool,
    connect: Duration,
) {
    let mut schedule = seat.begin(pass);
    let mut ready = 0;
    loop {
        let batch = seat.prepare(&mut schedule);
        if batch == 0 || stop.load(Ordering::Relaxed) {
            return;
        }
        let intended = seat.intended().map(|offset| pass.at + offset);
        if let Some(at) = intended {
            // What would start after the end is not waited for.
            if !schedule.is_open(at) {
                return;
            }
            tokio::time::sleep_until(at.into()).await;
        }
        let started = Instant::now();
        if !schedule.is_open(started) {
            return;
        }
        if let Some(at) = intended {
            seat.started_late(started.saturating_duration_since(at));
        }
        let waited = seat.issue(worker, batch, started, connect).await;
        let ended = Instant::now();
        seat.record(batch, started, ended, &mut recorder.borrow_mut());
        if seat.is_broken() {
            // A pass that is over waits for no connection.
            seat.reconnect(worker, schedule.left(ended, connect)).await;
        }
        ready = if waited { 0 } else { ready + 1 };
        if ready == READY_IN_A_ROW {
            ready = 0;
            tokio::task::yield_now().await;
        }
    }
}

/// A worker's life in one phase: open, work pass by pass as ordered, report. Called on a thread of its own.
pub fn run<D: Driver>(driver: &D, job: WorkerJob) {
    let worker = job.worker;
    let events = job.events.clone();
    // A panic in a driver must end its run, not leave the coordinator waiting.
    let ended = catch_unwind(AssertUnwindSafe(|| work(driver, job)));
    // The coordinator may be gone already (its run was given up); then there is nobody to tell.
    let _ = match ended {
        Ok(Ok(())) => return,
        Ok(Err(failure)) => events.send(Event::NotOpen { worker, failure }),
        Err(panic) => events.send(Event::Lost {
            reason: panic_message(&*panic),
        }),
    };
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a worker panicked: {}", text.unwrap_or("no message"))
}

fn work<D: Driver>(driver: &D, job: WorkerJob) -> Result<(), Failure> {
    pin_to(job.cpu)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // One look at the event loop per turn over the seats: all of them are one task to the runtime.
        .event_interval(1)
        .build()
        .map_err(|error| {
            Failure::new(
                ErrorClass::Client,
                format!("cannot start a worker: {error}"),
            )
        })?;
    let shared = {
        let _inside = runtime.enter();
        driver.worker()?
    };
    let mut seats = runtime.block_on(open(&shared, &job))?;
    let peers = seats.iter().map(Seat::peer).collect();
    let _ = job.events.send(Event::Open {
        worker: job.worker,
        peers,
    });
    let recorder = RefCell::new(recorder(&job));
    let mut first = true;
    while let Ok(Order::Go(pass)) = job.orders.recv() {
        if std::mem::take(&mut first) {
            recorder.borrow_mut().set_origin(pass.at);
        }
        if pass.resets {
            seats.iter_mut().for_each(Seat::forget);
            recorder.borrow_mut().take_errors();
        }
        let report = runtime.block_on(one_pass(&shared, &mut seats, &pass, &recorder, &job));
        let _ = job.events.send(Event::PassDone(report));
    }
    let errors = recorder.borrow_mut().take_errors();
    let seats = seats.iter_mut().flat_map(Seat::reports).collect();
    let _ = job.events.send(Event::Ended {
        worker: job.worker,
        errors,
        seats,
    });
    Ok(())
}

fn recorder(job: &WorkerJob) -> Recorder {
    let (worker, events) = (job.worker, job.events.clone());
    let sink = Box::new(move |window| {
        let _ = events.send(Event::Window { worker, window });
    });
    Recorder::new(&job.rows, job.window, sink)
}

async fn open<W: Worker>(worker: &W, job: &WorkerJob) -> Result<Vec<Seat<W::Session>>, Failure> {
    let began = Instant::now();
    let mut seats = Vec::with_capacity(job.seats.len());
    for plan in &job.seats {
        tokio::time::sleep_until((began + plan.connect_after).into()).await;
        if job.stop.load(Ordering::Relaxed) {
            return Err(Failure::new(ErrorClass::Client, "stopped while connecting"));
        }
        seats.push(Seat::open(worker, plan.clone(), job.connect_timeout).await?);
    }
    Ok(seats)
}

async fn one_pass<W: Worker>(
    worker: &W,
    seats: &mut [Seat<W::Session>],
    pass: &Pass,
    recorder: &RefCell<Recorder>,
    job: &WorkerJob,
) -> PassReport {
    recorder
        .borrow_mut()
        .begin(pass.stage, pass.grid, pass.at, pass.until);
    let mut turns = Latencies::new();
    // Nothing is in flight, so the thread may sleep; the runtime's timer would be up to a millisecond late.
    std::thread::sleep(pass.at.saturating_duration_since(Instant::now()));
    let cpu = thread_cpu();
    {
        let connect = job.connect_timeout;
        let driving = |seat| drive(worker, seat, pass, recorder, &job.stop, connect);
        let all: FuturesUnordered<_> = seats.iter_mut().map(driving).collect();
        // The runtime's budget per task would cut a turn short; seats yield by themselves.
        let all = timed_turns(tokio::task::unconstrained(all.collect::<()>()), &mut turns);
        tokio::select! {
            biased;
            () = all => {}
            () = abandoned(&job.stop) => {}
        }
    }
    PassReport {
        worker: job.worker,
        last_end: recorder.borrow_mut().end_pass(),
        cpu: thread_cpu().saturating_sub(cpu),
        turns,
    }
}

/// Ends when the phase was stopped and its operations in flight had their time.
async fn abandoned(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    tokio::time::sleep(GRACE).await;
}

/// Measures how long the thread is away from its event loop at a time: the length of each poll.
async fn timed_turns<T>(future: impl Future<Output = T>, turns: &mut Latencies) -> T {
    let mut future = pin!(future);
    poll_fn(|context| {
        let began = Instant::now();
        let poll = future.as_mut().poll(context);
        turns.record(began.elapsed().as_nanos() as u64);
        match poll {
            Poll::Ready(value) => Poll::Ready(value),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// User and system time of this thread.
fn thread_cpu() -> Duration {
    use nix::sys::resource::{UsageWho, getrusage};
    let Ok(usage) = getrusage(UsageWho::RUSAGE_THREAD) else {
        return Duration::ZERO;
    };
    let microseconds = |time: nix::sys::time::TimeVal| time.tv_sec() * 1_000_000 + time.tv_usec();
    Duration::from_micros(
        (microseconds(usage.user_time()) + microseconds(usage.system_time())) as u64,
    )
}

fn pin_to(cpu: Option<u32>) -> Result<(), Failure> {
    use nix::sched::{CpuSet, sched_setaffinity};
    let Some(cpu) = cpu else { return Ok(()) };
    let mut set = CpuSet::new();
    set.set(cpu as usize)
        .and_then(|()| sched_setaffinity(nix::unistd::Pid::from_raw(0), &set))
        .map_err(|error| {
            Failure::new(
                ErrorClass::Client,
                format!("cannot pin a worker to CPU {cpu}: {error}"),
            )
        })
}
