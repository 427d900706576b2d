//! The managed servers of a campaign, over its runs: which live on, which are started anew, which end. The server module
//! starts and stops; here stand the restart policy, ports and directories, and what happens when a start is complete.

use super::context::{Context, Place};
use super::snapshot::Snapshot;
use super::specs::{server_spec, texts};
use crate::driver::Target;
use crate::driver::spec::{Options, Store};
use crate::engine::entry::{DriverEntry, OpenDriver};
use crate::op::Failure;
use crate::plan::{AfterReady, Restart, ServerPlan, Shape};
use crate::server::{CommandSpec, Guard, PortLease, PrivateRoot, Sampler, ServerSpec, StartFault};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

mod datasets;
mod faults;
mod nodes;
mod ready;

pub use faults::Injection;

use nodes::Node;
use ready::driver_ready;

/// All servers that dbbench has started and their places.
pub struct Fleet {
    guard: Arc<Guard>,
    stations: BTreeMap<String, Station>,
    made: u32,
    /// Datasets that were loaded, by identity, or why one could not be.
    pub datasets: BTreeMap<String, Result<Snapshot, String>>,
}

/// A server's place, and its instances where they run.
struct Station {
    plan: Arc<ServerPlan>,
    /// The target of the runs it was started for.
    target: String,
    place: Place,
    /// Held as long as the place.
    _leases: Vec<PortLease>,
    /// Grows with each place made: servers are made in the order of their start.
    order: u32,
    /// Of each instance of the place.
    nodes: Vec<Arc<Node>>,
    /// `setup` and `after_ready` were done in this place.
    set_up: bool,
    /// Of the dataset that it holds; empty for none.
    dataset: String,
    /// Its dataset was filled here and is used here.
    in_place: bool,
}

impl Station {
    /// Any of its instances was started and not stopped.
    fn is_started(&self) -> bool {
        self.nodes.iter().any(|node| node.is_started())
    }

    /// Why it does not run as it should.
    fn fault(&self) -> Option<String> {
        nodes::fault(&self.plan.name, self.nodes.iter().map(Arc::as_ref))
    }

    /// Stops all its instances.
    fn stop(&self) {
        nodes::stop_all(self.nodes.iter().filter_map(|node| node.take()).collect());
    }

    fn remove_directories(&self) {
        self.place
            .directories
            .iter()
            .for_each(|directory| remove(directory));
    }
}

/// Why a run's servers are not up.
#[derive(Debug)]
pub enum NotUp {
    Interrupted,
    Fault(String),
}

impl From<String> for NotUp {
    fn from(fault: String) -> NotUp {
        NotUp::Fault(fault)
    }
}

impl Fleet {
    pub fn new() -> Result<Fleet, String> {
        let guard = Guard::start(PrivateRoot::new()).map_err(|fault| fault.to_string())?;
        Ok(Fleet {
            guard: Arc::new(guard),
            stations: BTreeMap::new(),
            made: 0,
            datasets: BTreeMap::new(),
        })
    }

    /// A fresh private directory, for an embedded store.
    pub fn directory(&mut self, name: &str) -> Result<PathBuf, String> {
        self.made += 1;
        self.guard
            .private_root()
            .subdirectory(&format!("{name}-{}", self.made), None)
            .map_err(|error| format!("cannot make a private directory: {error}"))
    }

    /// Ends the servers that do not live on into a run of this shape.
    pub fn retire_for(&mut self, shape: &Shape) {
        // One that has ended by itself is started anew, whatever its policy.
        let ended = |station: &Station| station.fault().is_some();
        let wanted = |station: &Station| {
            let dataset = shape.dataset.as_ref();
            let dataset = dataset.filter(|dataset| dataset.servers.contains(&station.plan.name));
            dataset.map_or("", |dataset| dataset.identity.as_str())
        };
        let stays = |station: &Station| match station.plan.restart {
            _ if ended(station) || station.dataset != wanted(station) => false,
            _ if station.in_place => true,
            Restart::Run => false,
            Restart::Target => station.target == shape.target.name,
            Restart::Never => true,
        };
        let goes = |name: &str| {
            let station = &self.stations[name];
            let same_plan = shape
                .servers
                .iter()
                .all(|plan| plan.name != name || *plan == station.plan);
            !(stays(station) && same_plan)
        };
        let mut going = self.in_stop_order();
        going.retain(|name| goes(name));
        for name in going {
            self.retire(&name);
        }
    }

    /// Names of all, the one started last first: others may need those that were started before them.
    fn in_stop_order(&self) -> Vec<String> {
        let mut names: Vec<String> = self.stations.keys().cloned().collect();
        names.sort_by_key(|name| std::cmp::Reverse(self.stations[name].order));
        names
    }

    /// Stops a server; its place stays only where its data is to be kept.
    fn retire(&mut self, name: &str) {
        let Some(station) = self.stations.get(name) else {
            return;
        };
        station.stop();
        if !station.plan.keep_data
            && let Some(station) = self.stations.remove(name)
        {
            station.remove_directories();
        }
    }

    /// After a run: what lives for one run only has ended, and what its faults did is undone as far as it lives.
    pub fn end_run(&mut self) {
        let nodes = self.stations.values().flat_map(|station| &station.nodes);
        nodes.for_each(|node| node.recover());
        for name in self.in_stop_order() {
            let station = &self.stations[&name];
            if station.plan.restart == Restart::Run && !station.in_place {
                self.retire(&name);
            }
        }
    }

    /// Stops what lives for one run only; its directories stay until the run has ended.
    pub fn stop_run(&mut self) {
        for name in self.in_stop_order() {
            if let Some(station) = self.stations.get(&name)
                && station.plan.restart == Restart::Run
            {
                station.stop();
            }
        }
    }

    /// Stops these servers and starts them again, each on its data, in the order of their start.
    pub fn restart(&mut self, names: &[String], start: &mut Start<'_, '_>) -> Result<(), NotUp> {
        for name in self.in_stop_order() {
            if names.contains(&name)
                && let Some(station) = self.stations.get(&name)
            {
                (start.step)(&format!("stopping {name}"));
                station.stop();
            }
        }
        for plan in &start.shape.servers {
            if names.contains(&plan.name) {
                self.start_one(plan, start)?;
            }
        }
        Ok(())
    }

    /// Runs a command in the private root; returns what it prints.
    pub fn command(
        &self,
        argv: &[String],
        limit: Duration,
        interrupted: &AtomicBool,
    ) -> Result<String, String> {
        let spec = CommandSpec {
            argv,
            environment: &[],
            directory: self.guard.private_root().path(),
            user: None,
            limit,
        };
        let printed = self.guard.run_command(&spec, interrupted);
        printed.map_err(|fault| fault.to_string())
    }

    /// Stops everything.
    pub fn end(&mut self) {
        for name in self.in_stop_order() {
            if let Some(station) = self.stations.remove(&name) {
                station.stop();
            }
        }
    }

    /// Reserves ports and directories of the run's servers that have none yet. A kept place with other ports than the plan
    /// names is none.
    pub fn reserve(
        &mut self,
        shape: &Shape,
        interrupted: &AtomicBool,
    ) -> Result<BTreeMap<String, Place>, NotUp> {
        for plan in &shape.servers {
            let snapshot = self.snapshot_of(shape, &plan.name);
            match self.stations.get_mut(&plan.name) {
                Some(station) if station.is_started() => {}
                Some(station)
                    if station.plan.ports == plan.ports
                        && station.plan.instances == plan.instances
                        && snapshot.is_none() =>
                {
                    station.plan = Arc::clone(plan);
                    station.target.clone_from(&shape.target.name);
                }
                _ => {
                    self.discard(&plan.name);
                    let ports = snapshot
                        .as_ref()
                        .and_then(|(_, snapshot)| snapshot.ports.get(&plan.name).cloned());
                    let mut station =
                        self.station(plan, &shape.target.name, &ports.unwrap_or_default())?;
                    if let Some((identity, snapshot)) = snapshot {
                        station.dataset = identity;
                        datasets::restore(&snapshot, &station, interrupted)?;
                        station.set_up = true;
                    }
                    self.stations.insert(plan.name.clone(), station);
                }
            }
        }
        let place = |plan: &Arc<ServerPlan>| {
            let station = self.stations.get(&plan.name)?;
            Some((plan.name.clone(), station.place.clone()))
        };
        Ok(shape.servers.iter().filter_map(place).collect())
    }

    /// `ports` are wanted, where they are free: by name.
    fn station(
        &mut self,
        plan: &Arc<ServerPlan>,
        target: &str,
        wanted: &BTreeMap<String, u16>,
    ) -> Result<Station, String> {
        self.made += 1;
        let directories = self.directories(plan)?;
        let mut ports = BTreeMap::new();
        let mut leases = Vec::new();
        for port in &plan.ports {
            let again = wanted.get(&port.name).filter(|_| port.fixed.is_none());
            let reserve = |port| PortLease::reserve_for(port, plan.instances);
            let again = again.and_then(|port| reserve(Some(*port)).ok());
            let lease = again
                .map_or_else(|| reserve(port.fixed), Ok)
                .map_err(|fault| format!("server `{}`: {fault}", plan.name))?;
            ports.insert(port.name.clone(), lease.port());
            leases.push(lease);
        }
        Ok(Station {
            plan: Arc::clone(plan),
            target: target.to_owned(),
            nodes: nodes_of(plan),
            place: Place { directories, ports },
            _leases: leases,
            order: self.made,
            set_up: false,
            dataset: String::new(),
            in_place: false,
        })
    }

    /// A fresh directory for each instance.
    fn directories(&self, plan: &ServerPlan) -> Result<Vec<PathBuf>, String> {
        let user = Some(plan.user.as_str()).filter(|user| !user.is_empty());
        let name = |instance| match plan.instances {
            1 => format!("{}-{}", plan.name, self.made),
            _ => format!("{}-{}.{instance}", plan.name, self.made),
        };
        (1..=plan.instances)
            .map(|instance| {
                let root = self.guard.private_root();
                root.subdirectory(&name(instance), user).map_err(|error| {
                    format!("server `{}`: cannot make its directory: {error}", plan.name)
                })
            })
            .collect()
    }

    /// Starts what does not run yet, in order, each ready before the next. On failure nothing that is only half set up
    /// stays for a later run.
    pub fn start(&mut self, start: &mut Start<'_, '_>) -> Result<(), NotUp> {
        let result = self.start_all(start);
        for plan in &start.shape.servers {
            match self.stations.get_mut(&plan.name) {
                Some(station) if result.is_ok() => station.set_up = true,
                Some(station) if !station.set_up => self.discard(&plan.name),
                _ => {}
            }
        }
        result
    }

    fn start_all(&mut self, start: &mut Start<'_, '_>) -> Result<(), NotUp> {
        let mut fresh = Vec::new();
        for plan in &start.shape.servers {
            if self.start_one(plan, start)? {
                fresh.push(Arc::clone(plan));
            }
        }
        for plan in fresh {
            start.context.enter(&plan.name, 1);
            self.after_ready(&plan, start)?;
        }
        Ok(())
    }

    /// Stops a server and forgets its place, whatever is to be kept.
    fn discard(&mut self, name: &str) {
        let Some(station) = self.stations.remove(name) else {
            return;
        };
        station.stop();
        station.remove_directories();
    }

    /// Starts those of its instances that do not run. Returns whether any directory was fresh.
    fn start_one(
        &mut self,
        plan: &Arc<ServerPlan>,
        start: &mut Start<'_, '_>,
    ) -> Result<bool, NotUp> {
        let Some(station) = self.stations.get(&plan.name) else {
            return Err(NotUp::Fault(format!("server `{}` has no place", plan.name)));
        };
        let place = &station.place;
        let mut starting = Vec::new();
        for (instance, node) in (1..).zip(&station.nodes) {
            if !node.is_started() {
                let spec = server_spec(plan, instance, place, start.context, start.logs)?;
                starting.push((spec, node));
            }
        }
        if starting.is_empty() {
            return Ok(false);
        }
        (start.step)(&format!("starting {}", plan.name));
        let (specs, nodes): (Vec<ServerSpec>, Vec<_>) = starting.into_iter().unzip();
        let driver = start.driver.clone();
        let mut driver_ready = |spec: &ServerSpec, limit: Duration| {
            driver_ready(driver.as_deref(), start.target, place, spec.instance, limit)
        };
        let started = self
            .guard
            .start_servers(&specs, &mut driver_ready, start.interrupted);
        match started {
            Ok(started) => {
                let fresh = started.iter().any(|running| running.was_fresh());
                for (running, node) in started.into_iter().zip(nodes) {
                    start.sampler.watch(&running);
                    node.is_up(running);
                }
                Ok(fresh)
            }
            Err(StartFault::Interrupted) => Err(NotUp::Interrupted),
            Err(fault) => Err(NotUp::Fault(fault.to_string())),
        }
    }

    fn after_ready(&mut self, plan: &ServerPlan, start: &Start<'_, '_>) -> Result<(), NotUp> {
        let limit = Duration::from_nanos(plan.setup_timeout_ns);
        let place = &self.stations[&plan.name].place;
        let named =
            |fault: String| NotUp::Fault(format!("server `{}`: after_ready: {fault}", plan.name));
        match &plan.after_ready {
            None => Ok(()),
            Some(AfterReady::Command(command)) => {
                let argv = texts(command, start.context)?;
                let spec = CommandSpec {
                    argv: &argv,
                    environment: &[],
                    directory: place.directory(1),
                    user: Some(plan.user.as_str()).filter(|user| !user.is_empty()),
                    limit,
                };
                let result = self.guard.run_command(&spec, start.interrupted);
                result.map(drop).map_err(|fault| named(fault.to_string()))
            }
            Some(AfterReady::Statements {
                driver,
                endpoint,
                statements,
            }) => {
                let endpoint = endpoint.render(start.context)?;
                let statements = texts(statements, start.context)?;
                let said = self::statements(start.drivers, driver, &endpoint, &statements, limit);
                said.map(drop).map_err(named)
            }
        }
    }

    /// Samples of the servers that live on into another run come to its sampler, too.
    pub fn watch(&self, sampler: &Sampler) {
        for node in self.stations.values().flat_map(|station| &station.nodes) {
            node.with(|running| sampler.watch(running));
        }
    }

    /// What is wrong with the first server of these that does not run as it should, as a sentence.
    pub fn dead(&self, shape: &Shape) -> Option<String> {
        let stations = shape.servers.iter();
        let mut stations = stations.filter_map(|plan| self.stations.get(&plan.name));
        stations.find_map(Station::fault)
    }
}

impl Fleet {
    /// What the faults of earlier phases have left of these servers: `redis/2 was killed by a fault`; may be empty.
    pub fn suffering(&self, shape: &Shape) -> String {
        let stations = shape.servers.iter();
        let stations = stations.filter_map(|plan| self.stations.get(&plan.name));
        let nodes = stations.flat_map(|station| &station.nodes);
        let told: Vec<String> = nodes
            .filter_map(|node| Some(format!("{} {}", node.label(), node.suffers()?)))
            .collect();
        told.join(", ")
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.end();
    }
}

/// What a start of servers needs to know.
pub struct Start<'a, 'c> {
    pub shape: &'a Shape,
    pub context: &'a mut Context<'c>,
    pub drivers: &'a [DriverEntry],
    /// The target's driver, where it is one for servers.
    pub driver: Option<Arc<dyn OpenDriver>>,
    pub target: &'a Target,
    /// Where logs go.
    pub logs: &'a Path,
    pub interrupted: &'a AtomicBool,
    pub sampler: &'a Sampler,
    pub step: &'a mut dyn FnMut(&str),
}

fn nodes_of(plan: &ServerPlan) -> Vec<Arc<Node>> {
    let label = |instance| match plan.instances {
        1 => plan.name.clone(),
        _ => format!("{}/{instance}", plan.name),
    };
    (1..=plan.instances)
        .map(|instance| Arc::new(Node::new(label(instance))))
        .collect()
}

/// Executes statements by a driver of their own; returns the first value of the last one's answer.
pub fn statements(
    drivers: &[DriverEntry],
    name: &str,
    endpoint: &str,
    statements: &[String],
    limit: Duration,
) -> Result<String, String> {
    let entry = drivers
        .iter()
        .find(|entry| (entry.spec)().name == name)
        .ok_or_else(|| format!("there is no driver `{name}`"))?;
    let spec = (entry.spec)();
    let Store::Server { parse, .. } = spec.store else {
        return Err(format!("driver `{name}` has no endpoints"));
    };
    let endpoint = parse(endpoint).map_err(|fault| format!("endpoint: {}", fault.message))?;
    let target = Target {
        name: name.to_owned(),
        endpoints: vec![endpoint.clone()],
        options: Options::new(spec.options, serde_json::Map::new()),
        operations: Vec::new(),
        directory: PathBuf::new(),
        connect_timeout: limit,
    };
    let sentence = |failure: Failure| failure.message;
    let driver = (entry.open)(target).map_err(sentence)?;
    let mut control = driver.control(&endpoint).map_err(sentence)?;
    let mut value = String::new();
    for statement in statements {
        let said = control.statement(statement, limit);
        value = said.map_err(|failure| format!("`{statement}`: {}", failure.message))?;
    }
    Ok(value)
}

/// A private directory that is not needed any more; what cannot be removed now goes with the private root at the end.
pub fn remove(directory: &Path) {
    let _ = std::fs::remove_dir_all(directory);
}
