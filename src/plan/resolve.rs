//! What each run does: sections resolved and put together to shapes, each different one once.

use super::dataset::{self, ResolvedDataset};
use super::estimate::estimate;
use super::extract::Extract;
use super::nodes::json_to_node;
use super::phase::{self, ResolvedPhase};
use super::probe::{self, ResolvedProbe};
use super::scope::{At, Mask, Scope, Stage};
use super::section::Section;
use super::server::{self, ResolvedServer};
use super::target::{self, ResolvedTarget};
use super::{DatasetPlan, Shape, TargetPlan, injection, input, suit};
use crate::diag::{Diagnostic, Span, did_you_mean};
use crate::driver::spec::DriverSpec;
use crate::scenario::tree::{Node, Table};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

/// Stands in a shape's key for a phase that `when` left out.
const LEFT_OUT: u32 = u32::MAX;

/// Vars that tables read, shared by all shapes in which they are the same.
type Vars = Arc<BTreeMap<String, serde_json::Value>>;

pub struct Resolver<'r> {
    drivers: &'r [&'static DriverSpec],
    operations: Option<&'r Table>,
    pub targets: Vec<Named<ResolvedTarget>>,
    pub servers: Vec<Named<ResolvedServer>>,
    pub phases: Vec<Section<ResolvedPhase>>,
    pub probes: Vec<Section<ResolvedProbe>>,
    datasets: Vec<Named<ResolvedDataset>>,
    /// Those of runs, each different one once.
    known_datasets: HashMap<String, Arc<DatasetPlan>>,
    /// Vars that tables read.
    vars: Section<Vars>,
    target_axis: Option<usize>,
    pub shapes: Vec<Shape>,
    /// What the shapes are made of, for warnings and checks of tables.
    pub parts: Vec<Parts>,
    known: HashMap<Box<[u32]>, Option<u32>>,
    checked: HashSet<(u32, u32, u32, u32)>,
    root: &'r Table,
}

pub struct Named<T> {
    pub name: String,
    pub section: Section<T>,
}

/// The resolved sections of a shape.
pub struct Parts {
    pub target: Rc<ResolvedTarget>,
    pub phases: Vec<Rc<ResolvedPhase>>,
}

impl<'r> Resolver<'r> {
    /// Inspects every section of the scenario.
    pub fn new(
        scope: &mut Scope<'_>,
        root: &'r Table,
        drivers: &'r [&'static DriverSpec],
    ) -> Resolver<'r> {
        let section = |name: &str| root.get(name).and_then(Node::table);
        let operations = section("operations");
        let operations_mask = match root.get("operations") {
            Some(node) => scope.inspect(node, Stage::Run),
            None => 0,
        };
        let targets = named(scope, section("targets"), operations_mask);
        let servers = named(scope, section("servers"), 0);
        let phases = input::phases(root).into_iter();
        let phases = phases
            .map(|node| Section::new(scope, node, Stage::Run, 0))
            .collect();
        let probes = root.get("probes").and_then(Node::array).unwrap_or(&[]);
        let probes = probes
            .iter()
            .map(|node| Section::new(scope, node.clone(), Stage::Run, 0))
            .collect();
        let entries = section("datasets").map(|table| table.entries.as_slice());
        let merged = input::Merged::of(root);
        let datasets = dataset::sections(&merged, entries.unwrap_or_default());
        let datasets = datasets.into_iter().map(|(name, node)| Named {
            name,
            section: Section::new(scope, node, Stage::Run, 0),
        });
        let datasets = datasets.collect();
        let vars = vars_of_tables(scope, root);
        Resolver {
            drivers,
            operations,
            targets,
            servers,
            phases,
            probes,
            datasets,
            known_datasets: HashMap::new(),
            vars,
            target_axis: scope.axis("target"),
            shapes: Vec::new(),
            parts: Vec::new(),
            known: HashMap::new(),
            checked: HashSet::new(),
            root,
        }
    }

    pub fn into_shapes(self) -> Vec<Shape> {
        self.shapes
    }

    /// The number of the shape of a run; None where there is a fault, which is reported.
    pub fn shape(&mut self, scope: &mut Scope<'_>, at: At<'_>) -> Option<u32> {
        let target = self.target_of(scope, at)?;
        let number = self.shape_of(scope, target, None, at)?;
        let resolved = self.parts[number as usize].target.clone();
        if let Some((name, span)) = &resolved.stand_in {
            let other = self.stand_in_of(scope, target, name, *span, at)?;
            let stand_in = self.shape_of(scope, other, Some(target), at)?;
            self.shapes[number as usize].stand_in = Some(stand_in);
        }
        Some(number)
    }

    /// Position of the target that stands in for another.
    fn stand_in_of(
        &self,
        scope: &mut Scope<'_>,
        target: usize,
        name: &str,
        span: Span,
        at: At<'_>,
    ) -> Option<usize> {
        let found = self.targets.iter().position(|known| known.name == name);
        let (message, help) = match found {
            Some(other) if other != target => return found,
            Some(_) => (
                format!("`{name}` cannot stand in for itself"),
                "name another target, or leave `stand_in` out".to_owned(),
            ),
            None => {
                let known = self.targets.iter().map(|target| target.name.as_str());
                let help = match did_you_mean(name, known) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("add `[targets.{name}]` with its `driver`"),
                };
                (format!("there is no target `{name}`"), help)
            }
        };
        let fault = Diagnostic::error("unknown-target", span, message).help(help);
        scope.report_here(fault, at);
        None
    }

    /// The shape of a run on this target, under the name of the one whose place it takes.
    fn shape_of(
        &mut self,
        scope: &mut Scope<'_>,
        target: usize,
        in_place_of: Option<usize>,
        at: At<'_>,
    ) -> Option<u32> {
        let resolved = self.resolve_target(scope, target, at);
        let phases = self.resolve_phases(scope, at);
        let probes = self.resolve_probes(scope, at);
        let dataset = resolved
            .as_ref()
            .map(|(_, target)| self.resolve_dataset(scope, target, at));
        let vars = self.resolve_vars(scope, at);
        let (target_number, resolved) = resolved?;
        let servers = self.resolve_servers(scope, &resolved, at);
        let (servers, phases, probes) = (servers?, phases?, probes?);
        let (vars_number, vars) = vars?;
        let dataset = dataset.flatten()?;
        let under = in_place_of.unwrap_or(target) as u32;
        let mut key = vec![target as u32, under, target_number, vars_number];
        key.extend(
            servers
                .iter()
                .flat_map(|(server, number, _)| [*server as u32, *number]),
        );
        key.extend(phases.iter().map(|(number, phase)| match phase.plan {
            Some(_) => *number,
            None => LEFT_OUT,
        }));
        key.extend(probes.iter().map(|(number, probe)| match probe.plan {
            Some(_) => *number,
            None => LEFT_OUT,
        }));
        key.extend(
            dataset
                .iter()
                .flat_map(|(name, number, _)| [*name, *number]),
        );
        let key: Box<[u32]> = key.into();
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let mut fits = self.check_phases(scope, target, target_number, &resolved, &phases, at);
        let mask = self.target_mask(target);
        for (_, phase) in &phases {
            if let Some(plan) = &phase.plan {
                let mask = self.target_mask(target);
                fits &= injection::check(scope, plan, &phase.faults, &servers, mask, at);
            }
        }
        for (_, probe) in &probes {
            fits &= probe::check(scope, &resolved, &servers, &phases, probe, mask, at);
        }
        let dataset = match &dataset {
            None => None,
            Some((_, _, dataset)) => {
                let seed = scope.seed();
                let plan = dataset::of_run(scope, dataset, &resolved, &servers, seed, mask, at);
                fits &= plan.is_some();
                plan.map(|plan| self.shared_dataset(plan))
            }
        };
        let number = fits.then_some(self.shapes.len() as u32);
        if fits {
            let mut shape = shape(&resolved, &servers, &phases, dataset, &probes, &vars);
            if let Some(place) = in_place_of {
                shape.target = Arc::new(standing_in(&resolved.plan, &self.targets[place].name));
            }
            self.shapes.push(shape);
            let phases = phases.into_iter().map(|(_, phase)| phase).collect();
            self.parts.push(Parts {
                target: resolved,
                phases,
            });
        }
        self.known.insert(key, number);
        number
    }

    /// Position of the run's target.
    fn target_of(&self, scope: &mut Scope<'_>, at: At<'_>) -> Option<usize> {
        let span = |key: &str| {
            self.root
                .entry(key)
                .map_or(Span::NONE, |entry| entry.key_span)
        };
        let Some(axis) = self.target_axis else {
            return match self.targets.len() {
                1 => Some(0),
                0 => {
                    let message = "the scenario has no target: nothing is measured";
                    let help = "add `[targets.redis]` with its `driver`";
                    scope.faults.add_plain(
                        Diagnostic::error("no-target", span("targets"), message).help(help),
                    );
                    None
                }
                count => {
                    let names: Vec<String> = self
                        .targets
                        .iter()
                        .map(|target| format!("\"{}\"", target.name))
                        .collect();
                    let message =
                        format!("there are {count} targets, and no axis `target` chooses one");
                    let help = format!("add to [sweep]: `target = [{}]`", names.join(", "));
                    scope.faults.add_plain(
                        Diagnostic::error("no-target", span("targets"), message).help(help),
                    );
                    None
                }
            };
        };
        let value = scope.axes[axis].values[at.point[axis] as usize].clone();
        let name = super::ids::value_text(&value);
        if let Some(position) = self.targets.iter().position(|target| target.name == name) {
            return Some(position);
        }
        let place = self.target_place(&name, at.point[axis] as usize);
        let help = match did_you_mean(
            &name,
            self.targets.iter().map(|target| target.name.as_str()),
        ) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("add `[targets.{name}]` with its `driver`"),
        };
        scope.faults.add_plain(
            Diagnostic::error(
                "unknown-target",
                place,
                format!("there is no target `{name}`"),
            )
            .help(help),
        );
        None
    }

    /// Where the axis `target` says a value: the element where it is a plain list.
    fn target_place(&self, name: &str, position: usize) -> Span {
        let node = self
            .root
            .get("sweep")
            .and_then(Node::table)
            .and_then(|sweep| sweep.get("target"));
        let Some(node) = node else {
            return Span::NONE;
        };
        let item = node.array().and_then(|items| items.get(position));
        item.filter(|item| item.string() == Some(name))
            .map_or(node.span, |item| item.span)
    }

    fn resolve_target(
        &mut self,
        scope: &mut Scope<'_>,
        target: usize,
        at: At<'_>,
    ) -> Option<(u32, Rc<ResolvedTarget>)> {
        let (drivers, operations) = (self.drivers, self.operations);
        let Named { name, section, .. } = &mut self.targets[target];
        section.get(scope, at, None, |scope, evaluation| {
            let mut ex = Extract::new(scope, evaluation, at, drivers);
            let resolved = target::extract(&mut ex, name, operations)?;
            suit::servers_are_there(&mut ex, &resolved).then_some(resolved)
        })
    }

    fn resolve_phases(
        &mut self,
        scope: &mut Scope<'_>,
        at: At<'_>,
    ) -> Option<Vec<(u32, Rc<ResolvedPhase>)>> {
        let drivers = self.drivers;
        let mut all = Some(Vec::with_capacity(self.phases.len()));
        for (ordinal, section) in self.phases.iter_mut().enumerate() {
            let phase = section.get(scope, at, None, |scope, evaluation| {
                phase::extract(
                    &mut Extract::new(scope, evaluation, at, drivers),
                    ordinal as u32,
                )
            });
            match (phase, &mut all) {
                (Some(phase), Some(list)) => list.push(phase),
                (Some(_), None) => {}
                (None, _) => all = None,
            }
        }
        all
    }

    fn resolve_probes(
        &mut self,
        scope: &mut Scope<'_>,
        at: At<'_>,
    ) -> Option<Vec<(u32, Rc<ResolvedProbe>)>> {
        let drivers = self.drivers;
        let mut all = Some(Vec::with_capacity(self.probes.len()));
        for section in &mut self.probes {
            let probe = section.get(scope, at, None, |scope, evaluation| {
                probe::extract(&mut Extract::new(scope, evaluation, at, drivers))
            });
            match (probe, &mut all) {
                (Some(probe), Some(list)) => list.push(probe),
                (Some(_), None) => {}
                (None, _) => all = None,
            }
        }
        all
    }

    /// None inside where the target has none: (position, number among its different ones, dataset).
    #[allow(clippy::type_complexity)]
    fn resolve_dataset(
        &mut self,
        scope: &mut Scope<'_>,
        target: &ResolvedTarget,
        at: At<'_>,
    ) -> Option<Option<(u32, u32, Rc<ResolvedDataset>)>> {
        let Some((name, span)) = &target.dataset else {
            return Some(None);
        };
        let drivers = self.drivers;
        let Some(position) = self.datasets.iter().position(|known| known.name == *name) else {
            let known = self.datasets.iter().map(|known| known.name.as_str());
            let help = match did_you_mean(name, known) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("add `[datasets.{name}]` with its phases"),
            };
            let message = format!("there is no dataset `{name}`");
            let fault = Diagnostic::error("unknown-dataset", *span, message).help(help);
            scope.report_here(fault, at);
            return None;
        };
        let section = &mut self.datasets[position].section;
        let resolved = section.get(scope, at, None, |scope, evaluation| {
            let mut ex = Extract::new(scope, evaluation, at, drivers);
            dataset::extract(&mut ex, name, position as u32)
        });
        let (number, dataset) = resolved?;
        Some(Some((position as u32, number, dataset)))
    }

    fn shared_dataset(&mut self, plan: DatasetPlan) -> Arc<DatasetPlan> {
        let key = format!("{} {}", plan.name, plan.identity);
        let known = self.known_datasets.entry(key);
        Arc::clone(known.or_insert_with(|| Arc::new(plan)))
    }

    /// The axes that choose and change a target.
    fn target_mask(&self, target: usize) -> Mask {
        self.targets[target].section.mask | self.target_axis.map_or(0, |axis| 1 << axis)
    }

    fn resolve_vars(&mut self, scope: &mut Scope<'_>, at: At<'_>) -> Option<(u32, Rc<Vars>)> {
        let names = self.vars.node.array().unwrap_or(&[]).to_vec();
        self.vars.get(scope, at, None, |scope, _| {
            let mut vars = BTreeMap::new();
            for name in names.iter().filter_map(Node::string) {
                let value = scope.var(name, at)?;
                vars.insert(name.to_owned(), crate::template::to_json(&value).ok()?);
            }
            Some(Arc::new(vars))
        })
    }

    /// (position, number among its different ones, server), in the order in which they are started.
    #[allow(clippy::type_complexity)]
    fn resolve_servers(
        &mut self,
        scope: &mut Scope<'_>,
        target: &ResolvedTarget,
        at: At<'_>,
    ) -> Option<Vec<(usize, u32, Rc<ResolvedServer>)>> {
        let drivers = self.drivers;
        let mut all = Some(Vec::new());
        for (name, _) in &target.servers {
            let position = self
                .servers
                .iter()
                .position(|server| server.name == *name)?;
            let driver_is_ready = target.named_by_endpoints.contains(name);
            let section = &mut self.servers[position].section;
            scope.current_server = Some(name.clone());
            let server = section.get(
                scope,
                at,
                Some(u32::from(driver_is_ready)),
                |scope, evaluation| {
                    server::extract(
                        &mut Extract::new(scope, evaluation, at, drivers),
                        name,
                        driver_is_ready,
                    )
                },
            );
            scope.current_server = None;
            match (server, &mut all) {
                (Some((number, server)), Some(list)) => list.push((position, number, server)),
                (Some(_), None) => {}
                (None, _) => all = None,
            }
        }
        suit::start_order(scope, all?, &target.servers, &self.servers, at)
    }

    fn check_phases(
        &mut self,
        scope: &mut Scope<'_>,
        target: usize,
        target_number: u32,
        resolved: &ResolvedTarget,
        phases: &[(u32, Rc<ResolvedPhase>)],
        at: At<'_>,
    ) -> bool {
        let mut good = true;
        for (ordinal, (number, phase)) in phases.iter().enumerate() {
            // A check that failed for this pair was reported, and so is not remembered as done.
            if !self
                .checked
                .contains(&(target as u32, target_number, ordinal as u32, *number))
            {
                let mask = self.target_mask(target);
                if suit::phase_suits(scope, resolved, phase, mask, at) {
                    self.checked
                        .insert((target as u32, target_number, ordinal as u32, *number));
                } else {
                    good = false;
                }
            }
        }
        good
    }
}

fn named<T>(scope: &mut Scope<'_>, table: Option<&Table>, more: Mask) -> Vec<Named<T>> {
    let entries = table
        .map(|table| table.entries.as_slice())
        .unwrap_or_default();
    let sections = entries.iter().map(|entry| Named {
        name: entry.key.clone(),
        section: Section::new(scope, entry.node.clone(), Stage::Run, more),
    });
    sections.collect()
}

/// The vars that expressions of `[[tables]]` read, as a section whose node is the list of their names.
fn vars_of_tables(scope: &mut Scope<'_>, root: &Table) -> Section<Vars> {
    let read = super::tables::names_read(root);
    let names: Vec<String> = scope
        .var_names()
        .into_iter()
        .filter(|name| read.contains(name))
        .collect();
    let mask = names
        .iter()
        .filter_map(|name| scope.var_mask(name))
        .fold(0, |all, mask| all | mask);
    let node =
        json_to_node(serde_json::json!(names), Span::NONE).expect("a list of names is a node");
    Section::new(scope, node, Stage::Plan, mask)
}

/// A target under the name of the one whose place it takes.
fn standing_in(target: &TargetPlan, name: &str) -> TargetPlan {
    let stand_in_for = match target.stand_in_for.as_str() {
        "" => name.to_owned(),
        said => said.to_owned(),
    };
    TargetPlan {
        name: name.to_owned(),
        stand_in_for,
        ..target.clone()
    }
}

fn shape(
    target: &ResolvedTarget,
    servers: &[(usize, u32, Rc<ResolvedServer>)],
    phases: &[(u32, Rc<ResolvedPhase>)],
    dataset: Option<Arc<DatasetPlan>>,
    probes: &[(u32, Rc<ResolvedProbe>)],
    vars: &Vars,
) -> Shape {
    let read = |probe: &&(u32, Rc<ResolvedProbe>)| probe.1.is_read(phases);
    let not_read = probes.iter().filter(|probe| !read(probe));
    let not_read = not_read.map(|(_, probe)| format!("probe.{}", probe.name));
    let read_probes = probes.iter().filter(read);
    let read_probes = read_probes.filter_map(|(_, probe)| probe.plan.clone());
    let read_probes = read_probes.collect();
    let left_out = phases.iter().filter(|(_, phase)| phase.plan.is_none());
    let left_out = left_out.map(|(_, phase)| phase.name.clone());
    let left_out = left_out.chain(not_read).collect();
    let phases: Vec<_> = phases
        .iter()
        .filter_map(|(_, phase)| phase.plan.clone())
        .collect();
    let held_in = target.plan.held_in.unwrap_or(target.driver.held_in);
    let loaded = dataset.iter().flat_map(|dataset| &dataset.phases);
    let all: Vec<_> = loaded.chain(&phases).cloned().collect();
    let mut estimate = estimate(&all, target.plan.copies, held_in);
    let loading = super::estimate::estimate(&phases, 1, held_in);
    // Filling it is no part of each run.
    (estimate.operations, estimate.seconds) = (loading.operations, loading.seconds);
    Shape {
        estimate,
        target: target.plan.clone(),
        servers: servers
            .iter()
            .map(|(_, _, server)| server.plan.clone())
            .collect(),
        phases,
        dataset,
        probes: read_probes,
        left_out,
        vars: vars.clone(),
        stand_in: None,
    }
}
