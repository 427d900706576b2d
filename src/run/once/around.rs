//! What comes before and after a phase, outside of its time: servers started again, operations that prepare and clean up,
//! and probes.

use super::{Fault, Once, Start, facts};
use crate::driver::spec::{DriverSpec, Store};
use crate::engine::entry::OpenDriver;
use crate::plan::{Moment, PhasePlan, ProbePlan};
use crate::run::context::Context;
use crate::run::probe::{self, Single};
use crate::run::target::Resolved;
use std::sync::Arc;
use std::time::Duration;

impl Once<'_, '_, '_> {
    /// A phase with what comes before and after it.
    pub(super) fn around(
        &mut self,
        spec: &DriverSpec,
        driver: &Arc<dyn OpenDriver>,
        resolved: &Resolved,
        phase: &PhasePlan,
        context: &mut Context<'_>,
    ) -> Result<(), Fault> {
        if !phase.restart_servers.is_empty() {
            self.restart(spec, driver, resolved, &phase.restart_servers, context)?;
        }
        let single = |once: &mut Self, names: &[String], what: &str, context: &Context<'_>| {
            once.operations(&**driver, resolved, phase, names, what, context)
        };
        single(self, &phase.prepare, "prepare", context)?;
        let across = |moment: &Moment| *moment == Moment::Across(phase.name.clone());
        let before = self.read(&**driver, resolved, Some(phase), context, across)?;
        let faults = self.injector(spec, driver, resolved, phase, context)?;
        self.phase(spec, &**driver, resolved, phase, context, faults)?;
        let after = self.read(&**driver, resolved, Some(phase), context, across)?;
        for ((probe, before), (_, after)) in before.iter().zip(&after) {
            let value = probe::difference(before, after)
                .map_err(|fault| Fault::Run(format!("probe `{}`: {fault}", probe.name)))?;
            self.writer.probe(&probe.name, &value, &probe.unit);
        }
        let is_after = |moment: &Moment| *moment == Moment::After(phase.name.clone());
        let read = self.read(&**driver, resolved, Some(phase), context, is_after)?;
        self.keep(&read);
        single(self, &phase.cleanup, "cleanup", context)
    }

    /// Probes that are read when the servers have ended.
    pub(super) fn after_stop(
        &mut self,
        driver: &dyn OpenDriver,
        resolved: &Resolved,
        context: &Context<'_>,
    ) -> Result<(), Fault> {
        let at_stop = |moment: &Moment| *moment == Moment::Stop;
        if !self.shape.probes.iter().any(|probe| at_stop(&probe.moment)) {
            return Ok(());
        }
        self.watcher.step("stopping servers");
        self.sampler.sample_now();
        self.write_samples().map_err(Fault::Results)?;
        self.fleet.stop_run();
        let read = self.read(driver, resolved, None, context, at_stop)?;
        self.keep(&read);
        Ok(())
    }

    /// The probes of a moment, each with its value now.
    fn read(
        &mut self,
        driver: &dyn OpenDriver,
        resolved: &Resolved,
        phase: Option<&PhasePlan>,
        context: &Context<'_>,
        moment: impl Fn(&Moment) -> bool,
    ) -> Result<Vec<(Arc<ProbePlan>, serde_json::Value)>, Fault> {
        let mut values = Vec::new();
        let shape = self.shape;
        for probe in shape.probes.iter().filter(|probe| moment(&probe.moment)) {
            self.watcher.step(&format!("reading {}", probe.name));
            let value = self.single(driver, resolved, context).read(probe, phase);
            facts::write_asked(self.writer, context.asked());
            let value =
                value.map_err(|fault| self.because(format!("probe `{}`: {fault}", probe.name)))?;
            values.push((Arc::clone(probe), value));
        }
        Ok(values)
    }

    fn keep(&mut self, read: &[(Arc<ProbePlan>, serde_json::Value)]) {
        for (probe, value) in read {
            self.writer.probe(&probe.name, value, &probe.unit);
        }
    }

    /// Operations that are executed once, one after another.
    fn operations(
        &mut self,
        driver: &dyn OpenDriver,
        resolved: &Resolved,
        phase: &PhasePlan,
        names: &[String],
        what: &str,
        context: &Context<'_>,
    ) -> Result<(), Fault> {
        let limit = Duration::from_nanos(phase.prepare_timeout_ns);
        for name in names {
            self.watcher.step(&format!("{}: {what} {name}", phase.name));
            let done = self.single(driver, resolved, context);
            done.operation(name, phase, limit).map_err(|fault| {
                let phase = &phase.name;
                self.because(format!(
                    "phase `{phase}`: {what}: operation `{name}`: {fault}"
                ))
            })?;
        }
        Ok(())
    }

    fn single<'s, 'c>(
        &'s self,
        driver: &'s dyn OpenDriver,
        resolved: &'s Resolved,
        context: &'s Context<'c>,
    ) -> Single<'s, 'c> {
        Single {
            target: &self.shape.target,
            resolved,
            driver,
            drivers: self.surroundings.drivers,
            context,
            fleet: self.fleet,
            interrupted: self.surroundings.interrupted,
            seed: self.surroundings.plan.seed,
            repeat: self.run.repeat,
        }
    }

    fn restart(
        &mut self,
        spec: &DriverSpec,
        driver: &Arc<dyn OpenDriver>,
        resolved: &Resolved,
        names: &[String],
        context: &mut Context<'_>,
    ) -> Result<(), Fault> {
        let logs = self.logs()?;
        let watcher = &mut *self.watcher;
        let mut step = |what: &str| watcher.step(what);
        let of_servers = matches!(spec.store, Store::Server { .. });
        self.fleet.restart(
            names,
            &mut Start {
                shape: self.shape,
                context,
                drivers: self.surroundings.drivers,
                driver: of_servers.then(|| Arc::clone(driver)),
                target: &resolved.target,
                logs: &logs,
                interrupted: self.surroundings.interrupted,
                sampler: &self.sampler,
                step: &mut step,
            },
        )?;
        Ok(())
    }
}
