//! One run as a script to read: reserve, open, start, ask, warm up, measure, write, stop.

use super::context::Context;
use super::doubts;
use super::facts;
use super::fleet::{Fleet, NotUp, Start};
use super::target::{self, Resolved};
use super::watch::Watcher;
use crate::driver::spec::{DriverSpec, Durability, Store};
use crate::engine::entry::{DriverEntry, OpenDriver};
use crate::engine::phase::{self, Listener, PhaseRun, Stop};
use crate::measure::record::{PhaseRecord, RunRecord, Sample, Stage, Status, WindowRecord};
use crate::op::{ErrorClass, Failure, Verb};
use crate::plan::{GroupPlan, PhasePlan, Plan, RunPlan, Shape, TargetPlan};
use crate::results::RunWriter;
use crate::server::Sampler;
use crate::tables::condition;
use crate::workload::generator::{GroupWorkload, Prepared};
use crate::workload::querylog::spool::Spool;
use jiff::Timestamp;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

mod around;
mod dataset;
mod faults;
mod replay;

use faults::Injector;

/// Limit of a question to a store between phases.
const QUESTION: Duration = Duration::from_secs(10);

/// How long the end of a server may take to become known, where an operation has failed because of it.
const NEWS: Duration = Duration::from_millis(300);

/// How a run ended.
pub enum End {
    Done(RunRecord),
    /// Ctrl-C: the run does not count.
    Interrupted,
    /// The results cannot be written: nothing more can be done.
    Unwritable(String),
}

/// What stands still while runs come and go.
pub struct Surroundings<'a> {
    pub plan: &'a Plan,
    pub drivers: &'a [DriverEntry],
    pub interrupted: &'a Arc<AtomicBool>,
}

/// What a run tells of its target, for the manifest.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub version: String,
    pub settings: Vec<(String, String)>,
    pub durability: Option<Durability>,
    /// (endpoint's label, nanoseconds).
    pub round_trips: Vec<(String, u64)>,
}

/// Runs one run of the plan, from the first port to the last server's end.
pub fn run(
    surroundings: &Surroundings<'_>,
    run: &RunPlan,
    fleet: &mut Fleet,
    writer: &mut RunWriter<'_, '_>,
    watcher: &mut dyn Watcher,
) -> End {
    let began = Instant::now();
    let started_at = Timestamp::now();
    let shape = &surroundings.plan.shapes[run.shape as usize];
    let (sender, samples) = channel();
    let sampler = match Sampler::start(began, sender) {
        Ok(sampler) => sampler,
        Err(error) => return End::Unwritable(format!("cannot start the sampler: {error}")),
    };
    let mut once = Once {
        surroundings,
        run,
        shape,
        fleet,
        writer,
        watcher,
        sampler,
        samples,
        stop: Stop::default(),
        began,
        doubts: Vec::new(),
        version: String::new(),
        unwritten: None,
        spools: HashMap::new(),
        loads: false,
    };
    let result = once.all();
    let (doubts, version) = (
        std::mem::take(&mut once.doubts),
        std::mem::take(&mut once.version),
    );
    let unwritten = once.write_samples().err();
    once.fleet.end_run();
    once.writer.hide_in_logs();
    let (status, reason) = match result {
        Ok(()) => judged(surroundings.plan, writer),
        Err(Fault::Run(reason)) => (Status::Failed, reason),
        Err(Fault::Interrupted) => return End::Interrupted,
        Err(Fault::Results(fault)) => return End::Unwritable(fault),
    };
    match unwritten {
        Some(fault) => End::Unwritable(fault),
        None => End::Done(RunRecord {
            status,
            reason,
            doubts,
            started_at,
            elapsed: began.elapsed(),
            server_version: version,
        }),
    }
}

/// A run that was done to its end is valid if it keeps every condition.
fn judged(plan: &Plan, writer: &RunWriter<'_, '_>) -> (Status, String) {
    match condition::broken(plan, writer.so_far()) {
        None => (Status::Valid, String::new()),
        Some(reason) => (Status::Invalid, reason),
    }
}

enum Fault {
    /// The run failed; the next one may not.
    Run(String),
    Interrupted,
    Results(String),
}

impl From<NotUp> for Fault {
    fn from(fault: NotUp) -> Fault {
        match fault {
            NotUp::Interrupted => Fault::Interrupted,
            NotUp::Fault(fault) => Fault::Run(fault),
        }
    }
}

struct Once<'a, 'w, 'p> {
    surroundings: &'a Surroundings<'a>,
    run: &'a RunPlan,
    shape: &'a Shape,
    fleet: &'a mut Fleet,
    writer: &'a mut RunWriter<'w, 'p>,
    watcher: &'a mut dyn Watcher,
    sampler: Sampler,
    samples: Receiver<Sample>,
    stop: Stop,
    began: Instant,
    doubts: Vec<String>,
    version: String,
    /// Why results could not be written while a phase ran.
    unwritten: Option<String>,
    /// Logs that are ready to be replayed.
    spools: HashMap<String, Spool>,
    /// It fills a dataset: nothing of it is recorded.
    loads: bool,
}

impl<'a> Once<'a, '_, '_> {
    fn all(&mut self) -> Result<(), Fault> {
        let entry = self.entry()?;
        let spec = (entry.spec)();
        let held_in = self.shape.target.held_in.unwrap_or(spec.held_in);
        self.fleet.drop_lost_datasets(held_in);
        self.fleet.retire_for(self.shape);
        self.dataset(entry)?;
        if self.shape.dataset.is_some() {
            self.watcher.step("restoring the dataset");
        }
        let interrupted = self.surroundings.interrupted;
        let places = self.fleet.reserve(self.shape, interrupted)?;
        self.fleet.watch(&self.sampler);
        let directory = self.fleet.store(self.shape, interrupted)?;
        let run_directory = self.writer.directory().path().to_owned();
        let mut context = Context::new(places, &run_directory);
        if let Some((name, snapshot)) = self.fleet.dataset_of(self.shape) {
            context.has_dataset(name, snapshot.artifacts());
        }
        let result = self.measured(entry, spec, &directory, &mut context);
        self.fleet.release_store(self.shape, &directory);
        result
    }

    /// Everything that happens to the open driver, which is closed at the end.
    fn measured(
        &mut self,
        entry: &DriverEntry,
        spec: &'static DriverSpec,
        directory: &Path,
        context: &mut Context<'_>,
    ) -> Result<(), Fault> {
        let resolved =
            target::resolve(&self.shape.target, spec, directory, context).map_err(Fault::Run);
        let started = resolved.and_then(|resolved| {
            let driver = self.start(entry, spec, &resolved, context)?;
            Ok((resolved, driver))
        });
        // Before any fault is told: the last lines of a server's log may hold a secret.
        facts::write_asked(self.writer, context.asked());
        let (resolved, driver) = started?;
        self.ask(spec, &*driver, &resolved)?;
        for phase in self.shape.phases.clone() {
            self.around(spec, &driver, &resolved, &phase, context)?;
        }
        self.after_stop(&*driver, &resolved, context)
    }

    fn entry(&self) -> Result<&'a DriverEntry, Fault> {
        let name = &self.shape.target.driver;
        find(self.surroundings.drivers, name)
            .ok_or_else(|| Fault::Run(format!("this build has no driver `{name}`")))
    }

    /// Servers are up and the driver is open. A driver of servers opens first, since it says when they are ready.
    fn start(
        &mut self,
        entry: &DriverEntry,
        spec: &DriverSpec,
        resolved: &Resolved,
        context: &mut Context<'_>,
    ) -> Result<Arc<dyn OpenDriver>, Fault> {
        let open =
            || (entry.open)(resolved.target.clone()).map_err(|failure| Fault::Run(failure.message));
        let early = match spec.store {
            Store::Server { .. } => Some(open()?),
            _ => None,
        };
        let logs = self.logs()?;
        let watcher = &mut *self.watcher;
        let mut step = |what: &str| watcher.step(what);
        self.fleet.start(&mut Start {
            shape: self.shape,
            context,
            drivers: self.surroundings.drivers,
            driver: early.clone(),
            target: &resolved.target,
            logs: &logs,
            interrupted: self.surroundings.interrupted,
            sampler: &self.sampler,
            step: &mut step,
        })?;
        match early {
            Some(driver) => Ok(driver),
            None => {
                self.watcher.step(&format!("opening {}", spec.name));
                open()
            }
        }
    }

    /// Where the logs of the run's servers go.
    fn logs(&self) -> Result<PathBuf, Fault> {
        let logs = self.writer.directory().server_logs(self.writer.slug());
        if !self.shape.servers.is_empty() {
            let unwritable =
                |error| Fault::Results(format!("cannot make {}: {error}", logs.display()));
            std::fs::create_dir_all(&logs).map_err(unwritable)?;
        }
        Ok(logs)
    }

    /// What the store says of itself. A store that does not answer here would not answer an operation.
    fn ask(
        &mut self,
        spec: &DriverSpec,
        driver: &dyn OpenDriver,
        resolved: &Resolved,
    ) -> Result<(), Fault> {
        let facts = self
            .answers(spec, driver, resolved)
            .map_err(|failure| self.because(failure.message))?;
        if doubts::durability_weaker(self.shape.target.durability, facts.durability) {
            doubts::add(&mut self.doubts, "durability_weaker");
        }
        self.version.clone_from(&facts.version);
        facts::write(self.writer, &self.shape.target, spec, facts);
        Ok(())
    }

    fn answers(
        &self,
        spec: &DriverSpec,
        driver: &dyn OpenDriver,
        resolved: &Resolved,
    ) -> Result<Facts, Failure> {
        let mut facts = Facts::default();
        for endpoint in &resolved.target.endpoints {
            let mut control = driver.control(endpoint)?;
            control.ready(QUESTION)?;
            let trip = control.round_trip(QUESTION)?;
            facts
                .round_trips
                .push((endpoint.label.clone(), trip.as_nanos() as u64));
            if facts.version.is_empty() {
                facts.version = control.version(QUESTION)?;
                facts.settings = control.settings(QUESTION)?;
                facts.durability = control.durability(QUESTION)?;
            }
        }
        facts.durability = facts
            .durability
            .or_else(|| (spec.durability)(&resolved.target.options));
        Ok(facts)
    }

    fn phase(
        &mut self,
        spec: &DriverSpec,
        driver: &dyn OpenDriver,
        resolved: &Resolved,
        phase: &PhasePlan,
        context: &Context<'_>,
        faults: Injector,
    ) -> Result<(), Fault> {
        if self
            .deadline()
            .is_some_and(|deadline| Instant::now() >= deadline)
        {
            let sentence = format!("the run's timeout was over before phase `{}`", phase.name);
            return Err(Fault::Run(sentence));
        }
        let endpoints: Vec<_> = phase
            .groups
            .iter()
            .map(|group| resolved.endpoints_of(group))
            .collect();
        let workloads = phase
            .groups
            .iter()
            .map(|group| {
                let workload = group_workload(&self.shape.target, phase, group)?;
                match &group.replay {
                    None => prepared(&self.shape.target, &workload),
                    Some(replay) => {
                        let spool = self.spool(phase, replay, group.threads, context)?;
                        Prepared::replay(&workload, spool, replay.speed)
                    }
                }
            })
            .collect::<Result<Vec<_>, _>>()
            .map_err(|fault| match self.interrupted() {
                true => Fault::Interrupted,
                false => Fault::Run(fault),
            })?;
        let plan = self.surroundings.plan;
        let stop = self.stop.clone();
        let run = PhaseRun {
            phase,
            driver,
            endpoints: &endpoints,
            workloads: &workloads,
            blocking: spec.blocking(),
            takes_all: matches!(
                spec.store,
                Store::Server {
                    takes_all: true,
                    ..
                }
            ),
            client: &plan.client,
            connect_timeout: Duration::from_nanos(self.shape.target.connect_timeout_ns),
            seed: plan.seed,
            repeat: self.run.repeat,
            deadline: self.deadline(),
            stop: &stop,
        };
        let mut ear = Ear {
            once: self,
            phase,
            faults,
        };
        let record = phase::run(&run, &mut ear);
        let injected = ear.faults.end();
        let record = record.map_err(|failure| self.not_started(phase, &failure))?;
        self.ended(spec, phase, &record)?;
        injected.map_err(Fault::Run)
    }

    fn not_started(&self, phase: &PhasePlan, failure: &Failure) -> Fault {
        self.because(format!(
            "phase `{}` could not start: {}",
            phase.name, failure.message
        ))
    }

    /// Why something failed: whoever asked it to, a server that has ended, or else what is said of it.
    fn because(&self, sentence: String) -> Fault {
        if self.interrupted() {
            return Fault::Interrupted;
        }
        let until = Instant::now() + NEWS;
        loop {
            match self.fleet.dead(self.shape) {
                Some(dead) if sentence.contains(&dead) => return Fault::Run(sentence),
                Some(dead) => return Fault::Run(format!("{sentence}; {dead}")),
                None if self.shape.servers.is_empty() || Instant::now() >= until => {
                    return Fault::Run(match self.fleet.suffering(self.shape) {
                        suffering if suffering.is_empty() => sentence,
                        suffering => format!("{sentence}; {suffering}"),
                    });
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        }
    }

    fn ended(
        &mut self,
        spec: &DriverSpec,
        phase: &PhasePlan,
        record: &PhaseRecord,
    ) -> Result<(), Fault> {
        self.sampler.sample_now();
        self.write_samples().map_err(Fault::Results)?;
        if !self.loads {
            let written = self.writer.phase(phase, record);
            written.map_err(|fault| Fault::Results(fault.to_string()))?;
        }
        self.watcher.phase_ended(record);
        if doubts::client_limited(&spec.store, record) {
            doubts::add(&mut self.doubts, "client_limited");
        }
        if let Some(fault) = self.unwritten.take() {
            return Err(Fault::Results(fault));
        }
        match &record.cut_short {
            _ if self.interrupted() => Err(Fault::Interrupted),
            Some(reason) => {
                // Others may have ended since the first of them was noticed.
                let reason = self.fleet.dead(self.shape).unwrap_or(reason.clone());
                let phase = &phase.name;
                Err(Fault::Run(format!(
                    "phase `{phase}` was cut short: {reason}"
                )))
            }
            None => self.survived(phase, record),
        }?;
        match self.loads {
            true => Once::loaded(phase, record),
            false => Ok(()),
        }
    }

    /// A server may have ended so shortly before its phase that nobody had looked yet.
    fn survived(&self, phase: &PhasePlan, record: &PhaseRecord) -> Result<(), Fault> {
        let lost = |error: &crate::measure::record::ErrorRecord| {
            matches!(error.class, ErrorClass::Connect | ErrorClass::Reset)
        };
        let until = match record.errors.iter().any(lost) && !self.shape.servers.is_empty() {
            true => Instant::now() + NEWS,
            false => Instant::now(),
        };
        loop {
            if let Some(dead) = self.fleet.dead(self.shape) {
                return Err(Fault::Run(format!(
                    "phase `{}` lost its server: {dead}",
                    phase.name
                )));
            }
            if Instant::now() >= until {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn deadline(&self) -> Option<Instant> {
        match self.surroundings.plan.run_timeout_ns {
            0 => None,
            limit => Some(self.began + Duration::from_nanos(limit)),
        }
    }

    fn interrupted(&self) -> bool {
        self.surroundings.interrupted.load(Ordering::Relaxed)
    }

    fn write_samples(&mut self) -> Result<(), String> {
        for sample in self.samples.try_iter().filter(|_| !self.loads) {
            self.writer
                .sample(&sample)
                .map_err(|fault| fault.to_string())?;
        }
        Ok(())
    }
}

/// Hears a phase: writes its windows, tells the watcher, and asks to stop when it must end.
struct Ear<'a, 'b, 'w, 'p> {
    once: &'a mut Once<'b, 'w, 'p>,
    phase: &'a PhasePlan,
    faults: Injector,
}

impl Listener for Ear<'_, '_, '_, '_> {
    fn window(&mut self, window: &WindowRecord) -> Result<(), String> {
        self.once.watcher.window(window);
        if self.once.loads {
            return Ok(());
        }
        let faults = self.faults.in_window(window);
        let written = self
            .once
            .writer
            .window_with(self.phase, window, &faults)
            .map_err(|fault| fault.to_string());
        written.inspect_err(|fault| self.once.unwritten = Some(fault.clone()))
    }

    fn started(&mut self, stage: Stage, at: Instant) {
        self.faults.pass(stage == Stage::Measured, at);
        self.once.sampler.sample_now();
        self.once.watcher.phase_started(self.phase, stage);
    }

    fn tick(&mut self) {
        if self.once.interrupted() {
            self.once.stop.ask("interrupted");
        }
        if let Some(dead) = self.once.fleet.dead(self.once.shape) {
            self.once.stop.ask(&dead);
        }
        if let Err(fault) = self.once.write_samples() {
            self.once.stop.ask(&fault);
            self.once.unwritten = Some(fault);
        }
        for news in self.faults.news() {
            self.once.watcher.note(&news);
        }
        self.once.watcher.tick();
    }
}

pub fn find<'a>(drivers: &'a [DriverEntry], name: &str) -> Option<&'a DriverEntry> {
    drivers.iter().find(|entry| (entry.spec)().name == name)
}

/// The workload of a group: names of operations become verbs.
pub fn group_workload(
    target: &TargetPlan,
    phase: &PhasePlan,
    group: &GroupPlan,
) -> Result<GroupWorkload, String> {
    let verb = |name: &str| {
        let own = target
            .operations
            .iter()
            .position(|operation| operation.name == name);
        let logged = (group.replay.is_some()).then_some(Verb::Statement);
        own.map(|position| Verb::Custom(position as u16))
            .or(logged)
            .or_else(|| Verb::built_in(name))
            .ok_or_else(|| format!("phase `{}`: there is no operation `{name}`", phase.name))
    };
    let mix = group
        .mix
        .iter()
        .map(|entry| Ok((verb(&entry.operation)?, entry.weight)));
    let per_key = group.keys.uses_per_key.max(1);
    let unlimited = group
        .operations
        .map_or(u64::MAX, |operations| operations.div_ceil(per_key));
    Ok(GroupWorkload {
        keys: group.keys.clone(),
        values: group.values.clone(),
        mix: mix.collect::<Result<_, String>>()?,
        verify: group.verify,
        keys_total: group.keys.count.unwrap_or(unlimited).max(1),
    })
}

/// Ready to be generated; values are made only for operations that send them.
pub fn prepared(target: &TargetPlan, workload: &GroupWorkload) -> Result<Arc<Prepared>, String> {
    Prepared::with_custom(workload, |position| {
        let own = target.operations.get(usize::from(position));
        own.is_some_and(|operation| operation.table.to_string().contains("$value"))
    })
}
