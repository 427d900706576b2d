//! The faults of a phase while it runs: done by a thread of their own, each at its second of the measured time, so that
//! neither the operations nor who looks on is delayed. What was done is kept with its moment, for the windows.

use super::{Fault, Once, Start};
use crate::driver::spec::{DriverSpec, Store};
use crate::engine::entry::OpenDriver;
use crate::measure::record::WindowRecord;
use crate::plan::PhasePlan;
use crate::run::context::Context;
use crate::run::fleet::Injection;
use crate::run::target::Resolved;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

/// What was done, and when.
#[derive(Clone, Debug)]
struct Mark {
    moment: Instant,
    text: String,
}

/// What the thread tells.
#[derive(Default)]
struct Told {
    marks: Vec<Mark>,
    faults: Vec<String>,
}

type Shared = Arc<Mutex<Told>>;

fn tell(shared: &Shared, tell: impl FnOnce(&mut Told)) {
    tell(&mut shared.lock().unwrap_or_else(PoisonError::into_inner));
}

/// Faults that wait for their phase, or are being done.
pub(super) struct Injector {
    waiting: Vec<Injection>,
    told: Shared,
    /// The common start from which windows are dated.
    origin: Option<Instant>,
    /// Its end is dropped when the phase is over.
    thread: Option<(Sender<()>, JoinHandle<()>)>,
    /// Marks that stand in a window already, and those that were shown.
    written: usize,
    shown: usize,
}

impl Injector {
    pub fn of(waiting: Vec<Injection>) -> Injector {
        Injector {
            waiting,
            told: Shared::default(),
            origin: None,
            thread: None,
            written: 0,
            shown: 0,
        }
    }

    /// A pass starts at this moment; from the first measured one the faults are dated.
    pub fn pass(&mut self, measured: bool, at: Instant) {
        self.origin.get_or_insert(at);
        if !measured || self.waiting.is_empty() {
            return;
        }
        let waiting = std::mem::take(&mut self.waiting);
        let (over, is_over) = channel();
        let told = Arc::clone(&self.told);
        let thread = std::thread::Builder::new()
            .name("faults".to_owned())
            .spawn(move || inject_all(waiting, at, &is_over, &told));
        match thread {
            Ok(thread) => self.thread = Some((over, thread)),
            Err(error) => tell(&self.told, |told| {
                let fault = format!("cannot start the thread of the faults: {error}");
                told.faults.push(fault);
            }),
        }
    }

    /// What was done up to the end of this window and stands in none before: `kill redis/2; stop redis/1`. A window in which
    /// nothing ended has no row, so its faults are told in the next one.
    pub fn in_window(&mut self, window: &WindowRecord) -> String {
        let Some(origin) = self.origin else {
            return String::new();
        };
        if window.operations.is_empty() {
            return String::new();
        }
        let end = origin + window.start + window.length;
        let mut texts = Vec::new();
        tell(&self.told, |told| {
            let new = told.marks.iter().skip(self.written);
            texts.extend(
                new.take_while(|mark| mark.moment < end)
                    .map(|mark| mark.text.clone()),
            );
        });
        self.written += texts.len();
        texts.join("; ")
    }

    /// What was done since the last call.
    pub fn news(&mut self) -> Vec<String> {
        let mut news = Vec::new();
        tell(&self.told, |told| {
            let new = told.marks.iter().skip(self.shown);
            news.extend(new.map(|mark| mark.text.clone()));
        });
        self.shown += news.len();
        news
    }

    /// The phase is over: what is being done is waited for, and what is left is not done. Errors are sentences.
    pub fn end(mut self) -> Result<(), String> {
        if let Some((over, thread)) = self.thread.take() {
            drop(over);
            if thread.join().is_err() {
                return Err("the thread of the faults panicked".to_owned());
            }
        }
        let mut faults = Vec::new();
        tell(&self.told, |told| faults = std::mem::take(&mut told.faults));
        match faults.into_iter().next() {
            Some(fault) => Err(fault),
            None => Ok(()),
        }
    }
}

fn inject_all(waiting: Vec<Injection>, start: Instant, over: &Receiver<()>, told: &Shared) {
    let mut lasting = Vec::new();
    for injection in waiting {
        let wait = (start + injection.at).saturating_duration_since(Instant::now());
        if over.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
            break;
        }
        mark(told, injection.text.clone());
        match injection.lasts() {
            false => inject(injection, told),
            true => {
                let told = Arc::clone(told);
                lasting.push(std::thread::spawn(move || {
                    let node = injection.node();
                    inject(injection, &told);
                    if node.fault().is_none() {
                        mark(&told, format!("ready {}", node.label()));
                    }
                }));
            }
        }
    }
    for thread in lasting {
        if thread.join().is_err() {
            let panic = "the thread of a fault panicked".to_owned();
            tell(told, |told| told.faults.push(panic));
        }
    }
}

fn mark(told: &Shared, text: String) {
    tell(told, |told| {
        // The moment is taken under the lock, so that marks stand in their order.
        let moment = Instant::now();
        told.marks.push(Mark { moment, text });
    });
}

fn inject(injection: Injection, told: &Shared) {
    if let Err(fault) = injection.inject() {
        tell(told, |told| told.faults.push(fault));
    }
}

impl Once<'_, '_, '_> {
    /// The phase's faults, ready.
    pub(super) fn injector(
        &mut self,
        spec: &DriverSpec,
        driver: &Arc<dyn OpenDriver>,
        resolved: &Resolved,
        phase: &PhasePlan,
        context: &mut Context<'_>,
    ) -> Result<Injector, Fault> {
        if phase.faults.is_empty() {
            return Ok(Injector::of(Vec::new()));
        }
        let logs = self.logs()?;
        let watcher = &mut *self.watcher;
        let mut step = |what: &str| watcher.step(what);
        let of_servers = matches!(spec.store, Store::Server { .. });
        let mut start = Start {
            shape: self.shape,
            context,
            drivers: self.surroundings.drivers,
            driver: of_servers.then(|| Arc::clone(driver)),
            target: &resolved.target,
            logs: &logs,
            interrupted: self.surroundings.interrupted,
            sampler: &self.sampler,
            step: &mut step,
        };
        let interrupted = self.surroundings.interrupted;
        let ready = self
            .fleet
            .injections(&phase.faults, &mut start, interrupted);
        Ok(Injector::of(ready?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::record::Stage;
    use std::time::Duration;

    fn window(start: u64, rows: bool) -> WindowRecord {
        let operation = crate::measure::record::WindowOperation {
            group: 0,
            slot: 0,
            counts: Default::default(),
            succeeded: crate::measure::record::Latencies::new(),
            unsuccessful: crate::measure::record::Latencies::new(),
            extra: None,
        };
        WindowRecord {
            start: Duration::from_secs(start),
            length: Duration::from_secs(1),
            stage: Stage::Measured,
            operations: if rows { vec![operation] } else { Vec::new() },
        }
    }

    #[test]
    fn a_fault_stands_in_its_window_once_or_in_the_next_that_has_rows() {
        let mut injector = Injector::of(Vec::new());
        let origin = Instant::now();
        injector.pass(false, origin);
        for (second, text) in [(1.5, "kill a/1"), (1.9, "stop a/2"), (3.2, "continue a/2")] {
            let moment = origin + Duration::from_secs_f64(second);
            let text = text.to_owned();
            tell(&injector.told, |told| {
                told.marks.push(Mark { moment, text })
            });
        }
        let told: Vec<String> = (0..6)
            .map(|second| injector.in_window(&window(second, second != 3)))
            .collect();
        assert_eq!(told, ["", "kill a/1; stop a/2", "", "", "continue a/2", ""]);
        assert_eq!(injector.news().len(), 3);
        assert!(injector.news().is_empty());
    }
}
