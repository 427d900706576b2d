//! A seat: one client thread of a scenario, on whichever worker it was dealt to. It owns its session, the buffers of the
//! operations in flight and their limit; it replaces the session when one broke. The loop over operations is `worker`'s.

use super::event::{Pass, SeatPlan, SeatReport};
use super::limit::Limit;
use super::schedule::Schedule;
use crate::driver::{Session, Worker};
use crate::measure::record::Stage;
use crate::measure::recorder::Recorder;
use crate::op::{ErrorClass, Failure, Operation, Outcome, Reply};
use crate::workload::generator::Generator;
use crate::workload::spec::Stream;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::{Duration, Instant};

/// Pauses between attempts to reconnect grow up to this, so that a dead server is not asked a million times a second.
const LONGEST_PAUSE: Duration = Duration::from_millis(10);

/// From a connection on which nothing is answered to the next one it takes at most this, so that with timeouts shorter than
/// the server's answers not every operation costs a connection. Longer timeouts are no longer for it.
const LONGEST_INTERVAL: Duration = Duration::from_millis(100);

/// Whose operations got no answer, where sessions choose the server.
const UNANSWERED: &str = "unanswered";

pub struct Seat<S> {
    plan: SeatPlan,
    session: Option<S>,
    generator: Generator,
    /// As long as the pipeline; only the first `batch` of each are in use.
    operations: Vec<Operation>,
    replies: Vec<Reply>,
    outcomes: Vec<Outcome>,
    limit: Limit,
    /// Sessions and attempts in a row that came to nothing.
    misses: u32,
    opened: Instant,
    /// Not reconnected before.
    retry_at: Instant,
    done: u64,
    /// By the server that answered, where sessions choose it.
    answered: BTreeMap<SocketAddr, u64>,
    reconnections: u64,
    reconnecting: Duration,
}

impl<S: Session> Seat<S> {
    /// Opens the seat's session.
    pub async fn open<W: Worker<Session = S>>(
        worker: &W,
        plan: SeatPlan,
        connect_timeout: Duration,
    ) -> Result<Seat<S>, Failure> {
        let session = connect(worker, &plan, connect_timeout).await?;
        let opened = Instant::now();
        let pipeline = plan.pipeline.max(1) as usize;
        Ok(Seat {
            generator: Generator::of(&plan.workload, plan.stream),
            session: Some(session),
            operations: vec![Operation::default(); pipeline],
            replies: vec![Reply::default(); pipeline],
            outcomes: Vec::with_capacity(pipeline),
            limit: Limit::new(),
            misses: 0,
            opened,
            retry_at: opened,
            done: 0,
            answered: BTreeMap::new(),
            reconnections: 0,
            reconnecting: Duration::ZERO,
            plan,
        })
    }

    /// Makes ready for a pass: its stream of operations, and which of them are this seat's.
    pub fn begin(&mut self, pass: &Pass) -> Schedule {
        let warmup = pass.stage == Stage::Warmup;
        let stream = Stream {
            warmup,
            ..self.plan.stream
        };
        let generator = Generator::of(&self.plan.workload, stream);
        self.generator = generator.for_thread(self.plan.thread, pass.until.is_some());
        Schedule::closed(&self.plan, pass)
    }

    /// When the operation that was filled last is meant to start, after the start of its pass.
    #[inline]
    pub fn intended(&self) -> Option<Duration> {
        self.generator.intended()
    }

    /// Marks the operation as started so long after it was meant to be.
    pub fn started_late(&mut self, lag: Duration) {
        self.replies[0].start_lag = Some(lag);
    }

    /// Fills the next operations, as many as the pipeline takes. Returns how many; 0 when there are none left.
    #[inline]
    pub fn prepare(&mut self, schedule: &mut Schedule) -> usize {
        let mut batch = 0;
        while batch < self.operations.len() {
            let Some(next) = schedule.next() else { break };
            if !self.generator.fill(next.index, &mut self.operations[batch]) {
                break;
            }
            self.replies[batch].clear();
            batch += 1;
        }
        batch
    }

    /// Executes the first `batch` operations, within their limit. Returns whether it had to wait for anything.
    #[inline]
    pub async fn issue<W: Worker<Session = S>>(
        &mut self,
        worker: &W,
        batch: usize,
        started: Instant,
        connect: Duration,
    ) -> bool {
        self.outcomes.clear();
        // Here connecting is part of the operation, and within its limit.
        let connect = connect.min(self.plan.timeout);
        if self.session.is_none() && !self.reconnect(worker, connect).await {
            return true;
        }
        let Some(session) = self.session.as_mut() else {
            return true;
        };
        let (operations, replies) = (&self.operations[..batch], &mut self.replies[..batch]);
        let outcomes = &mut self.outcomes;
        let ended = {
            // Pinned here, so that only a pointer to it is handed on.
            let mut future = pin!(async {
                match batch {
                    1 => outcomes.push(session.execute(&operations[0], &mut replies[0]).await),
                    _ => session.execute_batch(operations, replies, outcomes).await,
                }
            });
            if self.plan.blocking {
                future.await;
                return false;
            }
            let timeout = self.plan.timeout;
            self.limit.until(started, timeout, future.as_mut()).await
        };
        if ended.value.is_none() {
            self.outcomes.resize(batch, Outcome::TimedOut);
            if !self.session.as_ref().is_some_and(Session::survives_timeout) {
                self.leave_session();
            }
        }
        ended.waited
    }

    /// Hands what came of the batch to the recorder. An answer that came after the limit counts as timed out, whoever
    /// noticed it; where the answer was read whole, the session stays.
    #[inline]
    pub fn record(
        &mut self,
        batch: usize,
        started: Instant,
        returned: Instant,
        recorder: &mut Recorder,
    ) {
        let mut broken = false;
        for position in 0..batch {
            let reply = &self.replies[position];
            let ended = reply.ended.unwrap_or(returned);
            let row = self.plan.first_row + usize::from(self.operations[position].slot);
            let outcome = &mut self.outcomes[position];
            let service = ended - started;
            if outcome.succeeded() && service > self.plan.timeout {
                *outcome = Outcome::Late;
            } else if *outcome == Outcome::Missing && self.operations[position].verify {
                *outcome = Failure::new(ErrorClass::Missing, "the key is not there").into();
            } else if let Outcome::Failed(failure) = outcome
                && failure.broken
            {
                broken = true;
            }
            recorder.record(row, service, ended, outcome, reply);
        }
        self.done += batch as u64;
        if broken {
            self.leave_session();
        } else if self.session.is_some() {
            self.misses = 0;
        }
    }

    /// The first session that is lost after an answer is replaced at once.
    fn leave_session(&mut self) {
        self.note_answered();
        if self.session.take().is_some() {
            self.retry_at = self.opened + pause_after(self.misses).min(LONGEST_INTERVAL);
            self.misses += 1;
        }
    }

    fn note_answered(&mut self) {
        let Some(session) = self.session.as_mut() else {
            return;
        };
        for (server, count) in session.take_answered() {
            *self.answered.entry(server).or_default() += count;
        }
        self.reconnections += session.take_replaced();
    }

    /// Whether the session must be replaced.
    #[inline]
    pub fn is_broken(&self) -> bool {
        self.session.is_none()
    }

    /// Replaces a broken session, outside of any operation's time. On failure the next operation tries again, and fails
    /// with it; the outcomes of a batch under way are filled with that failure.
    pub async fn reconnect<W: Worker<Session = S>>(&mut self, worker: &W, limit: Duration) -> bool {
        let began = Instant::now();
        let pause = self.retry_at.saturating_duration_since(began);
        tokio::time::sleep(pause.min(limit)).await;
        let result = match limit.checked_sub(pause) {
            Some(left) => connect(worker, &self.plan, left).await,
            None => Err(paused(&self.plan)),
        };
        self.reconnecting += began.elapsed();
        match result {
            Ok(session) => {
                self.session = Some(session);
                self.opened = Instant::now();
                self.reconnections += 1;
                true
            }
            Err(failure) => {
                if pause <= limit {
                    self.misses += 1;
                    self.retry_at =
                        Instant::now() + pause_after(self.misses - 1).min(LONGEST_PAUSE);
                }
                self.outcomes
                    .resize(self.operations.len(), Outcome::from(failure));
                false
            }
        }
    }

    pub fn peer(&self) -> super::event::SeatPeer {
        let session = self.session.as_ref();
        let label = match session.and_then(Session::peer) {
            Some(address) => address.to_string(),
            None => endpoint_label(&self.plan),
        };
        super::event::SeatPeer {
            group: self.plan.group,
            label,
            connections: session.map_or(0, Session::connections),
        }
    }

    /// What it did, by the server that answered: one report, unless its sessions choose the server.
    pub fn reports(&mut self) -> Vec<SeatReport> {
        self.note_answered();
        let whole = SeatReport {
            group: self.plan.group,
            label: self.peer().label,
            operations: self.done,
            reconnections: self.reconnections,
            reconnecting: self.reconnecting,
        };
        if self.answered.is_empty() {
            return vec![whole];
        }
        let of_server = |(server, count): (&SocketAddr, &u64)| SeatReport {
            label: server.to_string(),
            operations: *count,
            reconnections: 0,
            reconnecting: Duration::ZERO,
            ..whole
        };
        let mut reports: Vec<SeatReport> = self.answered.iter().map(of_server).collect();
        let answered: u64 = self.answered.values().sum();
        let rest = SeatReport {
            label: UNANSWERED.to_owned(),
            operations: self.done.saturating_sub(answered),
            ..whole
        };
        reports.extend(Some(rest).filter(|rest| rest.operations > 0 || rest.reconnections > 0));
        reports
    }

    /// Operations of a warm-up are not counted in the report.
    pub fn forget(&mut self) {
        self.done = 0;
        self.note_answered();
        self.answered.clear();
        self.reconnections = 0;
        self.reconnecting = Duration::ZERO;
    }
}

/// Nothing, a millisecond, and twice as long each time.
fn pause_after(misses: u32) -> Duration {
    match misses {
        0 => Duration::ZERO,
        more => Duration::from_millis(1 << (more - 1).min(10)),
    }
}

/// What the results call the endpoints of a session that has no peer of its own.
fn endpoint_label(plan: &SeatPlan) -> String {
    let labels: Vec<&str> = plan
        .endpoints
        .iter()
        .map(|endpoint| endpoint.label.as_str())
        .collect();
    labels.join(",")
}

fn paused(plan: &SeatPlan) -> Failure {
    let label = endpoint_label(plan);
    let message = format!(
        "no connection to {label}: nothing came of the last ones, and there is a pause before the next"
    );
    Failure::new(ErrorClass::Connect, message)
}

async fn connect<W: Worker>(
    worker: &W,
    plan: &SeatPlan,
    limit: Duration,
) -> Result<W::Session, Failure> {
    match tokio::time::timeout(limit, worker.session(&plan.endpoints)).await {
        Ok(result) => result,
        Err(_) => {
            let limit = crate::units::format_duration(limit);
            let message = format!("no connection to {} within {limit}", endpoint_label(plan));
            Err(Failure::new(ErrorClass::Connect, message))
        }
    }
}
