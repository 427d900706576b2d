//! The names that templates of a scenario may read, and their evaluation at a point of the sweep.
//!
//! A template is first inspected (which axes does it read, through vars too?), once; then evaluated once per combination
//! of those axes, which is what keeps 100,000 runs cheap. Knows stages and spans; not what a section means.

use super::expand::Sweep;
use super::faults::Faults;
use super::nodes::{instances_by_server, json_to_node, ports_by_server};
use super::placeholder::Placeholders;
use super::{Axis, ids};
use crate::diag::{Diagnostic, SourceMap, Span};
use crate::scenario::model::MOST_INSTANCES;
use crate::scenario::read::to_json as node_to_json;
use crate::scenario::tree::{Entry, Node, Table, Value as TreeValue};
use crate::template::{self, Deferred, Engine, Fault, Names, Scan};
use minijinja::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

/// Which axes something reads: bit i for axis i, the highest for `repeat`.
pub type Mask = u64;

pub const REPEAT: Mask = 1 << 63;

/// More axes than anybody sweeps; a bit each must fit beside `repeat`.
pub const MOST_AXES: usize = 60;

/// A run as templates see it.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    pub point: &'a [u32],
    pub repeat: u32,
}

/// What identifies a combination of the axes in a mask.
pub type Key = Box<[u32]>;

impl At<'_> {
    pub fn key(&self, mask: Mask) -> Key {
        let mut key = Vec::with_capacity(mask.count_ones() as usize);
        let mut rest = mask & !REPEAT;
        while rest != 0 {
            key.push(self.point[rest.trailing_zeros() as usize]);
            rest &= rest - 1;
        }
        if mask & REPEAT != 0 {
            key.push(self.repeat);
        }
        key.into()
    }
}

/// When a string is evaluated: what it may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The same for all runs: vars that use no axis.
    Load,
    /// Axes, `repeat`, `seed`.
    Plan,
    /// And ports, directories, secrets: kept as `Deferred`.
    Run,
}

/// A section evaluated at a point. Strings of the run stage are rendered with placeholders in `node`, so that it can be
/// checked; what the plan keeps of them is in `deferred`, by the span of the string.
#[derive(Clone, Debug)]
pub struct Evaluation {
    pub node: Node,
    pub deferred: HashMap<Span, Deferred>,
    /// Servers that deferred strings ask for, and where.
    pub asked: Vec<(Span, String)>,
}

pub(super) struct Var {
    pub node: Node,
    pub mask: Mask,
    /// `seed` is known only once [runs] was read.
    pub reads_seed: bool,
    memo: HashMap<Key, Option<Value>>,
}

impl Var {
    pub fn new(node: Node) -> Var {
        Var {
            node,
            mask: 0,
            reads_seed: false,
            memo: HashMap::new(),
        }
    }
}

pub struct Scope<'s> {
    pub sources: &'s SourceMap,
    pub axes: Vec<Axis>,
    pub faults: Faults,
    /// How many templates were evaluated; for tests of the cost.
    pub evaluations: u64,
    engine: Engine,
    axis_values: Vec<Vec<Value>>,
    pub(super) vars: BTreeMap<String, Var>,
    seed: u64,
    pub(super) scans: HashMap<String, Rc<Scan>>,
    pub(super) masks: HashMap<Span, Mask>,
    /// Strings that inspection found at fault: reported once, never evaluated.
    pub(super) broken: HashSet<Span>,
    /// Ports by server, for placeholders; None where the names are templates.
    servers: BTreeMap<String, Option<Vec<String>>>,
    /// How many instances servers have, where they say it.
    pub(super) instances: BTreeMap<String, Var>,
    /// The server whose section is evaluated.
    pub current_server: Option<String>,
}

impl<'s> Scope<'s> {
    /// `axes` have names and no values yet: those come from templates, too.
    pub fn new(
        sources: &'s SourceMap,
        axes: Vec<Axis>,
        vars: Option<&Table>,
        servers: Option<&Table>,
    ) -> Self {
        let mut scope = Scope {
            sources,
            axes,
            faults: Faults::default(),
            evaluations: 0,
            engine: Engine::new(),
            axis_values: Vec::new(),
            vars: BTreeMap::new(),
            seed: 0,
            scans: HashMap::new(),
            masks: HashMap::new(),
            broken: HashSet::new(),
            servers: servers.map(ports_by_server).unwrap_or_default(),
            instances: BTreeMap::new(),
            current_server: None,
        };
        if let Some(vars) = vars {
            scope.add_vars(vars);
        }
        for (server, node) in servers.map(instances_by_server).unwrap_or_default() {
            let mut var = Var::new(node);
            var.mask = scope.inspect(&var.node, Stage::Plan);
            scope.instances.insert(server, var);
        }
        scope
    }

    pub fn set_sweep(&mut self, sweep: &Sweep, seed: u64) {
        self.axes.clone_from(&sweep.axes);
        let values = sweep.axes.iter();
        self.axis_values = values
            .map(|axis| axis.values.iter().map(template::from_json).collect())
            .collect();
        self.seed = seed;
    }

    pub fn axis(&self, name: &str) -> Option<usize> {
        self.axes.iter().position(|axis| axis.name == name)
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    pub fn var_mask(&self, name: &str) -> Option<Mask> {
        self.vars.get(name).map(|var| var.mask)
    }

    pub fn server_names(&self) -> Vec<String> {
        self.servers.keys().cloned().collect()
    }

    pub fn var_names(&self) -> Vec<String> {
        self.vars.keys().cloned().collect()
    }

    /// Axes that the string at a span reads.
    pub fn mask_at(&self, span: Span) -> Mask {
        self.masks.get(&span).copied().unwrap_or(0)
    }

    /// Whether what stands at a place came of a template.
    pub fn is_template(&self, span: Span) -> bool {
        self.masks.contains_key(&span)
    }

    /// Reports a fault found at a place in a run; the message names the axis values if not all runs have it.
    pub fn report(&mut self, diagnostic: Diagnostic, mask: Mask, at: At<'_>) {
        self.faults.add(diagnostic, mask, at);
    }

    /// Reports a fault of an evaluated value: the axes are those that the string at its place reads.
    pub fn report_here(&mut self, mut diagnostic: Diagnostic, at: At<'_>) {
        // A template gave the value: the correction of a value is none of the template.
        if self.is_template(diagnostic.span) {
            diagnostic.fix = None;
        }
        let mask = self.mask_at(diagnostic.span);
        self.faults.add(diagnostic, mask, at);
    }

    pub(super) fn diagnostic(
        &self,
        code: &'static str,
        span: Span,
        text: &str,
        fault: Fault,
    ) -> Diagnostic {
        Diagnostic::error(code, self.narrow(span, text, fault.range), fault.message)
            .help(fault.help)
    }

    /// The part of a string that is meant, where its bytes stand in the file as they are in the value.
    pub fn narrow(&self, span: Span, text: &str, range: Option<std::ops::Range<usize>>) -> Span {
        let Some(range) = range else {
            return span;
        };
        match self.sources.text(span).find(text) {
            Some(at) if range.start < range.end => {
                let start = span.start as usize + at + range.start;
                Span::new(start, start + range.len())
            }
            _ => span,
        }
    }

    /// Evaluates all templates under a node. None where one has no value; that is reported.
    pub fn evaluate(&mut self, node: &Node, stage: Stage, at: At<'_>) -> Option<Evaluation> {
        let mut evaluation = Evaluation {
            node: Node {
                span: node.span,
                value: TreeValue::Bool(false),
            },
            deferred: HashMap::new(),
            asked: Vec::new(),
        };
        evaluation.node = self.evaluate_node(node, stage, at, &mut evaluation)?;
        Some(evaluation)
    }

    fn evaluate_node(
        &mut self,
        node: &Node,
        stage: Stage,
        at: At<'_>,
        out: &mut Evaluation,
    ) -> Option<Node> {
        let value = match &node.value {
            TreeValue::String(text) if template::is_template(text) => {
                return self.evaluate_string(text, node.span, stage, at, out);
            }
            TreeValue::Array(items) => {
                TreeValue::Array(self.evaluate_items(items, stage, at, out)?)
            }
            TreeValue::Table(table) => {
                let mut entries = Vec::with_capacity(table.entries.len());
                for entry in &table.entries {
                    let evaluated = self.evaluate_node(&entry.node, stage, at, out);
                    entries.push(evaluated.map(|node| Entry {
                        node,
                        ..entry.clone()
                    }));
                }
                let entries = entries.into_iter().collect::<Option<Vec<_>>>()?;
                TreeValue::Table(Table { entries })
            }
            other => other.clone(),
        };
        Some(Node {
            span: node.span,
            value,
        })
    }

    /// A whole expression that gives a list is spliced into the list it stands in.
    fn evaluate_items(
        &mut self,
        items: &[Node],
        stage: Stage,
        at: At<'_>,
        out: &mut Evaluation,
    ) -> Option<Vec<Node>> {
        let mut all = Some(Vec::with_capacity(items.len()));
        for item in items {
            let evaluated = self.evaluate_node(item, stage, at, out);
            let spliced = item.string().is_some_and(template::is_template);
            match (evaluated, &mut all) {
                (
                    Some(Node {
                        value: TreeValue::Array(inner),
                        ..
                    }),
                    Some(list),
                ) if spliced => list.extend(inner),
                (Some(node), Some(list)) => list.push(node),
                (Some(_), None) => {}
                (None, _) => all = None,
            }
        }
        all
    }

    fn evaluate_string(
        &mut self,
        text: &str,
        span: Span,
        stage: Stage,
        at: At<'_>,
        out: &mut Evaluation,
    ) -> Option<Node> {
        if self.broken.contains(&span) {
            return None;
        }
        let scan = self.scan(text).ok()?;
        let names = self.names(&scan, at)?;
        if stage == Stage::Run && scan.names.iter().any(|name| is_run_name(name)) {
            return self.defer(text, span, names, at, out);
        }
        self.evaluations += 1;
        let source = self.sources.find(span);
        let directory = source
            .filter(|_| scan.names.contains("file"))
            .map(|source| source.directory.clone());
        let value = self
            .engine
            .evaluate(text, names, directory)
            .and_then(|value| {
                let json = template::to_json(&value);
                json.and_then(|json| json_to_node(json, span))
                    .map_err(|message| Fault {
                        message,
                        help: String::new(),
                        range: None,
                    })
            });
        match value {
            Ok(node) => Some(node),
            Err(fault) => {
                let mask = self.mask_at(span);
                let diagnostic = self.diagnostic("template-value", span, text, fault);
                self.faults.add(diagnostic, mask, at);
                None
            }
        }
    }

    /// Keeps a string for the run, with the values it reads, and puts what it is with placeholders into the tree.
    fn defer(
        &mut self,
        text: &str,
        span: Span,
        names: Names,
        at: At<'_>,
        out: &mut Evaluation,
    ) -> Option<Node> {
        self.evaluations += 1;
        let values = names
            .iter()
            .map(|(name, value)| Some((name.clone(), template::to_json(value).ok()?)))
            .collect::<Option<BTreeMap<_, _>>>()?;
        let deferred = Deferred {
            template: text.to_owned(),
            values,
        };
        let instances = self.instances_at(at);
        let current = self.current_server.as_deref();
        let placeholders = Placeholders::new(&self.servers, instances, current);
        let result = deferred.evaluate(&placeholders);
        let result = result
            .and_then(|json| json_to_node(json, span))
            .and_then(|node| match node.value {
                TreeValue::Array(_) | TreeValue::Table(_) => Err(
                    "what waits for the run is a text or a number, no list and no table".to_owned(),
                ),
                _ => Ok(node),
            });
        let asked = placeholders.asked();
        match result {
            Ok(node) => {
                out.asked
                    .extend(asked.into_iter().map(|server| (span, server)));
                out.deferred.insert(span, deferred);
                Some(node)
            }
            Err(message) => {
                let fault = Fault {
                    message,
                    help: String::new(),
                    range: None,
                };
                let diagnostic = self.diagnostic("template-value", span, text, fault);
                let mask = self.mask_at(span);
                self.faults.add(diagnostic, mask, at);
                None
            }
        }
    }

    fn names(&mut self, scan: &Scan, at: At<'_>) -> Option<Names> {
        let mut names = Names::new();
        for name in &scan.names {
            let value = match (self.axis(name), name.as_str()) {
                (Some(position), _) => {
                    self.axis_values[position][at.point[position] as usize].clone()
                }
                (None, "repeat") => Value::from(at.repeat),
                (None, "seed") => Value::from(self.seed),
                (None, name) if self.vars.contains_key(name) => self.var(name, at)?,
                _ => continue,
            };
            names.insert(name.clone(), value);
        }
        Some(names)
    }

    /// The value of a var in a run; None where it has none, which is reported.
    pub fn var(&mut self, name: &str, at: At<'_>) -> Option<Value> {
        let var = self.vars.get(name)?;
        let key = at.key(var.mask);
        if let Some(known) = var.memo.get(&key) {
            return known.clone();
        }
        let node = var.node.clone();
        let value = self
            .evaluate(&node, Stage::Plan, at)
            .map(|evaluation| template::from_json(&node_to_json(&evaluation.node)));
        if let Some(var) = self.vars.get_mut(name) {
            var.memo.insert(key, value.clone());
        }
        value
    }

    /// How many instances servers have in a run, where they say it; None where it cannot be told.
    fn instances_at(&mut self, at: At<'_>) -> BTreeMap<String, Option<u32>> {
        let mut all = BTreeMap::new();
        for server in self.instances.keys().cloned().collect::<Vec<_>>() {
            all.insert(server.clone(), self.instances_of(&server, at));
        }
        all
    }

    fn instances_of(&mut self, server: &str, at: At<'_>) -> Option<u32> {
        let var = self.instances.get(server)?;
        let key = at.key(var.mask);
        let known = match var.memo.get(&key) {
            Some(known) => known.clone(),
            None => {
                let node = var.node.clone();
                let value = self.evaluate(&node, Stage::Plan, at);
                let value = value.map(|made| template::from_json(&node_to_json(&made.node)));
                if let Some(var) = self.instances.get_mut(server) {
                    var.memo.insert(key, value.clone());
                }
                value
            }
        };
        // What is out of its range is reported where the server's section is read.
        let number = u32::try_from(known?).ok()?;
        (1..=MOST_INSTANCES)
            .contains(&i64::from(number))
            .then_some(number)
    }

    /// Evaluates a section that is the same for all runs.
    pub fn evaluate_load(&mut self, node: &Node) -> Option<Node> {
        self.inspect(node, Stage::Load);
        let at = At {
            point: &[],
            repeat: 1,
        };
        self.evaluate(node, Stage::Load, at)
            .map(|evaluation| evaluation.node)
    }
}

pub(super) fn is_run_name(name: &str) -> bool {
    template::RUN_NAMES.contains(&name)
}

fn ids_of_mask(axes: &[Axis], mask: Mask) -> String {
    let named = axes.iter().enumerate();
    let mut names: Vec<String> = named
        .filter(|(position, _)| mask & (1 << position) != 0)
        .map(|(_, axis)| format!("`{}`", axis.name))
        .collect();
    if mask & REPEAT != 0 {
        names.push("`repeat`".to_owned());
    }
    names.join(", ")
}

/// The axes of a mask, for messages: `` `target`, `threads` ``.
pub fn axis_names(axes: &[Axis], mask: Mask) -> String {
    ids_of_mask(axes, mask)
}

/// Axis values of a run, of those in the mask: `threads=4`.
pub fn run_text(axes: &[Axis], mask: Mask, point: &[u32], repeat: u32) -> String {
    let text = ids::point_text(axes, point, mask & !REPEAT);
    match mask & REPEAT != 0 {
        true => format!("{text}#{repeat}"),
        false => text,
    }
}
