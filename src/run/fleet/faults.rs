//! The fleet's side of a phase's faults: what each does to which node, ready to be done by another thread.

use super::nodes::Node;
use super::{Fleet, NotUp, Start, driver_ready};
use crate::plan::{FaultAction, FaultPlan};
use crate::run::specs::server_spec;
use crate::server::{Running, ServerSpec};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// One fault with all that it needs.
pub struct Injection {
    /// After the start of the measured time.
    pub at: Duration,
    /// `kill redis/2`.
    pub text: String,
    node: Arc<Node>,
    action: Action,
}

type Starter = Box<dyn FnOnce() -> Result<Running, String> + Send>;

enum Action {
    Kill,
    Stop,
    Continue,
    Restart(Starter),
}

impl Injection {
    /// Whether it lasts: a server that starts again is waited for until it is ready.
    pub fn lasts(&self) -> bool {
        matches!(self.action, Action::Restart(_))
    }

    /// What it is done to.
    pub fn node(&self) -> Arc<Node> {
        Arc::clone(&self.node)
    }

    /// Does it, to its end. The error is a sentence; a server that does not start again is a fault of its node instead.
    pub fn inject(self) -> Result<(), String> {
        match self.action {
            Action::Kill => self.node.kill(),
            Action::Stop => self.node.freeze(),
            Action::Continue => self.node.thaw(),
            Action::Restart(start) => {
                let again = format!(
                    "fault `{}` came while {} was still being started",
                    self.text,
                    self.node.label()
                );
                return self.node.restart(start).ok_or(again);
            }
        }
        Ok(())
    }
}

impl Fleet {
    /// Faults of a phase, ready to be done in the order of their time.
    pub fn injections(
        &self,
        faults: &[FaultPlan],
        start: &mut Start<'_, '_>,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Vec<Injection>, NotUp> {
        faults
            .iter()
            .map(|fault| self.injection(fault, start, interrupted))
            .collect()
    }

    fn injection(
        &self,
        fault: &FaultPlan,
        start: &mut Start<'_, '_>,
        interrupted: &Arc<AtomicBool>,
    ) -> Result<Injection, NotUp> {
        let instance = fault.instance.unwrap_or(1);
        let missing = || NotUp::Fault(format!("`{}`: it is not in this run", fault.text()));
        let station = self.stations.get(&fault.server).ok_or_else(missing)?;
        let position = instance.saturating_sub(1) as usize;
        let node = station.nodes.get(position).ok_or_else(missing)?;
        let action = match fault.action {
            FaultAction::Kill => Action::Kill,
            FaultAction::Stop => Action::Stop,
            FaultAction::Continue => Action::Continue,
            FaultAction::Restart => {
                let (plan, place) = (&station.plan, &station.place);
                let spec = server_spec(plan, instance, place, start.context, start.logs)?;
                Action::Restart(self.starter(spec, station.place.clone(), start, interrupted))
            }
        };
        Ok(Injection {
            at: Duration::from_nanos(fault.at_ns),
            text: fault.text(),
            node: Arc::clone(node),
            action,
        })
    }

    /// Starts one instance, on whatever thread.
    fn starter(
        &self,
        spec: ServerSpec,
        place: crate::run::context::Place,
        start: &Start<'_, '_>,
        interrupted: &Arc<AtomicBool>,
    ) -> Starter {
        let (guard, interrupted) = (Arc::clone(&self.guard), Arc::clone(interrupted));
        let (driver, target) = (start.driver.clone(), start.target.clone());
        let watch = start.sampler.watch_handle();
        Box::new(move || {
            let mut ready =
                |limit| driver_ready(driver.as_deref(), &target, &place, spec.instance, limit);
            let started = guard.start_server(&spec, &mut ready, &interrupted);
            let running = started.map_err(|fault| format!("started again, {fault}"))?;
            watch.watch(&running);
            Ok(running)
        })
    }
}
