//! A campaign: all runs of a plan, one after another, each as `once` tells it. Here stand the order, what is skipped, what
//! a failure means for the rest, and how it all ends.

mod context;
mod doubts;
mod facts;
mod fleet;
pub mod limits;
pub mod once;
mod probe;
mod snapshot;
mod specs;
mod target;
pub mod watch;

use crate::engine::entry::DriverEntry;
use crate::measure::record::{RunRecord, Status};
use crate::plan::Plan;
use crate::results::ResultsWriter;
use fleet::Fleet;
use jiff::Timestamp;
use once::{End, Surroundings};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use watch::Watcher;

/// How a campaign ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    pub valid: usize,
    pub invalid: usize,
    pub failed: usize,
    pub skipped: usize,
    pub interrupted: bool,
    /// Why nothing more could be done.
    pub fault: Option<String>,
}

/// The plan as this machine can run it: where a program of a target's servers is missing and its stand-in has all of its
/// own, the stand-in's runs; a sentence for each such target.
pub fn with_stand_ins(plan: &Plan) -> (Plan, Vec<String>) {
    let missing = |number: u32| specs::missing_program(&plan.shapes[number as usize].servers);
    let mut taken: BTreeMap<u32, u32> = BTreeMap::new();
    let mut notes = Vec::new();
    for (number, shape) in plan.shapes.iter().enumerate() {
        let Some(stand_in) = shape.stand_in else {
            continue;
        };
        let Some(program) = missing(number as u32) else {
            continue;
        };
        if missing(stand_in).is_some() {
            continue;
        }
        taken.insert(number as u32, stand_in);
        let names: Vec<&str> = plan.shapes[stand_in as usize]
            .servers
            .iter()
            .map(|server| server.name.as_str())
            .collect();
        let note = format!(
            "target `{}` is a stand-in ({}): `{}` is not installed",
            shape.target.name,
            names.join(", "),
            program.program
        );
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    let mut plan = plan.clone();
    for run in &mut plan.runs {
        run.shape = taken.get(&run.shape).copied().unwrap_or(run.shape);
    }
    (plan, notes)
}

/// Targets that cannot run here: name -> why, with the hint how to get what is missing.
pub fn unavailable(plan: &Plan) -> BTreeMap<String, String> {
    let mut missing = BTreeMap::new();
    let used: HashSet<u32> = plan.runs.iter().map(|run| run.shape).collect();
    for number in used {
        let shape = &plan.shapes[number as usize];
        if let Some(program) = specs::missing_program(&shape.servers) {
            missing
                .entry(shape.target.name.clone())
                .or_insert_with(|| program.to_string());
        }
    }
    missing
}

/// Runs every run of the plan that is not in `done`, and writes it.
pub fn campaign(
    plan: &Plan,
    drivers: &[DriverEntry],
    results: &mut ResultsWriter<'_>,
    done: &HashSet<usize>,
    interrupted: &Arc<AtomicBool>,
    watcher: &mut dyn Watcher,
) -> Summary {
    let mut summary = Summary::default();
    let mut fleet = match Fleet::new() {
        Ok(fleet) => fleet,
        Err(fault) => {
            return Summary {
                fault: Some(fault),
                ..summary
            };
        }
    };
    let surroundings = Surroundings {
        plan,
        drivers,
        interrupted,
    };
    let missing = unavailable(plan);
    watcher.campaign(plan.runs.len(), done.len());
    let mut first = true;
    for (position, run) in plan.runs.iter().enumerate() {
        if done.contains(&position) {
            continue;
        }
        let target = &plan.shapes[run.shape as usize].target.name;
        let skipped = missing.get(target).cloned();
        if skipped.is_none() && !std::mem::take(&mut first) {
            pause(Duration::from_nanos(plan.pause_ns), interrupted);
        }
        if interrupted.load(Ordering::Relaxed) {
            summary.interrupted = true;
            break;
        }
        let ended = one(
            &surroundings,
            position,
            skipped,
            &mut fleet,
            results,
            watcher,
        );
        match ended {
            Ok(Some(status)) => summary.count(status),
            Ok(None) => summary.interrupted = true,
            Err(fault) => summary.fault = Some(fault),
        }
        let give_up = plan.stop_on_failure && summary.failed > 0;
        if summary.interrupted || summary.fault.is_some() || give_up {
            break;
        }
    }
    fleet.end();
    summary
}

/// One run, written. None: interrupted. Err: the results cannot be written.
fn one(
    surroundings: &Surroundings<'_>,
    position: usize,
    skipped: Option<String>,
    fleet: &mut Fleet,
    results: &mut ResultsWriter<'_>,
    watcher: &mut dyn Watcher,
) -> Result<Option<Status>, String> {
    let mut writer = results.begin(position).map_err(|fault| fault.to_string())?;
    let id = writer.id().to_owned();
    watcher.run_started(&id);
    let record = match skipped {
        Some(reason) => skipped_run(reason),
        None => {
            let run = &surroundings.plan.runs[position];
            match once::run(surroundings, run, fleet, &mut writer, watcher) {
                End::Done(mut record) => {
                    record.reason = writer.hidden(&record.reason);
                    record
                }
                End::Interrupted => return Ok(None),
                End::Unwritable(fault) => return Err(fault),
            }
        }
    };
    watcher.run_ended(&id, &record);
    let status = record.status;
    writer.finish(record).map_err(|fault| fault.to_string())?;
    results.save_manifest().map_err(|fault| fault.to_string())?;
    Ok(Some(status))
}

fn skipped_run(reason: String) -> RunRecord {
    RunRecord {
        status: Status::Skipped,
        reason,
        doubts: Vec::new(),
        started_at: Timestamp::now(),
        elapsed: Duration::ZERO,
        server_version: String::new(),
    }
}

fn pause(length: Duration, interrupted: &AtomicBool) {
    let until = Instant::now() + length;
    while Instant::now() < until && !interrupted.load(Ordering::Relaxed) {
        std::thread::sleep(
            Duration::from_millis(20).min(until.saturating_duration_since(Instant::now())),
        );
    }
}

impl Summary {
    /// Runs that have a row, whatever became of them.
    pub fn all(&self) -> usize {
        self.valid + self.invalid + self.failed + self.skipped
    }

    /// The same with the status as runs.csv has it.
    pub fn count_named(&mut self, status: &str) {
        let known = [
            Status::Valid,
            Status::Invalid,
            Status::Failed,
            Status::Skipped,
        ];
        if let Some(status) = known.into_iter().find(|known| known.name() == status) {
            self.count(status);
        }
    }

    fn count(&mut self, status: Status) {
        match status {
            Status::Valid => self.valid += 1,
            Status::Invalid => self.invalid += 1,
            Status::Failed => self.failed += 1,
            Status::Skipped => self.skipped += 1,
        }
    }
}
