//! From a checked scenario to its plan: the order of the steps, and nothing else.
//!
//! `sweep` reads the axes, `expand` orders the runs, `resolve` says what each does, `tables`, `warnings`, `estimate` and
//! `hash` complete the plan.

use super::expand::{Order, Point, Sweep, order_runs};
use super::only::Filter;
use super::resolve::Resolver;
use super::scope::{At, REPEAT, Scope, Stage};
use super::section::Section;
use super::sweep::{axis_names, read_sweep};
use super::{
    Axis, ClientPlan, Outputs, PLAN_FORMAT, Plan, RunPlan, ScenarioInfo, hash, restart, tables,
    warnings,
};
use crate::diag::{Diagnostic, Diagnostics, SourceMap, Span, did_you_mean};
use crate::driver::spec::DriverSpec;
use crate::scenario::read::{Reader, to_json};
use crate::scenario::tree::{Node, Table};
use crate::units;
use std::collections::BTreeMap;

/// More runs than this are refused: at a second each they take a week.
const MOST_RUNS: usize = 1_000_000;

/// A plan, and what should be said about it.
#[derive(Debug)]
pub struct Made {
    pub plan: Plan,
    pub warnings: Vec<Diagnostic>,
    /// How many templates were evaluated: grows with the combinations of axes that templates read, not with the runs.
    pub evaluations: u64,
    /// `interleaved`, `sequential` or `shuffled`.
    pub order: &'static str,
}

/// Makes the plan of a scenario: `root` is its whole tree, checked, with defaults filled in; `only` are filters of
/// `--only`. Either the plan or every fault there is. Reads files that the scenario names; otherwise pure.
pub fn make(
    root: &Node,
    sources: &SourceMap,
    drivers: &[&'static DriverSpec],
    only: &[String],
) -> Result<Made, Diagnostics> {
    let empty = Table::default();
    let table = root.table().unwrap_or(&empty);
    let section = |name: &str| table.get(name).and_then(Node::table);
    let names = axis_names(section("sweep")).into_iter();
    let axes = names.map(|name| Axis {
        name,
        values: Vec::new(),
    });
    let mut scope = Scope::new(sources, axes.collect(), section("vars"), section("servers"));
    let sweep = read_sweep(&mut scope, section("sweep"));
    let settings = Settings::read(&mut scope, table);
    let info = info(&mut scope, table);
    let labels = labels(&mut scope, table);
    let known = sweep.clone().unwrap_or_default();
    if sweep.is_some() {
        scope.set_sweep(
            &known,
            settings.as_ref().map_or(0, |settings| settings.seed),
        );
    }
    let mut resolver = Resolver::new(&mut scope, table, drivers);
    let mut exclude = exclude_sections(&mut scope, section("sweep"));
    let (Some(sweep), Some(settings)) = (sweep, settings) else {
        return Err(scope.faults.finish(&[], &[], 1));
    };
    let mut points = Vec::new();
    let mut runs = Vec::new();
    if size_is_fine(&mut scope, &sweep, settings.repeats, table) {
        points = wanted_points(&mut scope, &sweep, &mut exclude);
        let order = settings.order_of(&mut scope, &sweep.axes);
        let filters = filters(&mut scope, only, &sweep.axes, settings.repeats);
        if points.is_empty() && !scope.faults.any() {
            let message = "`exclude` leaves out every point, so there are no runs";
            scope.faults.add_plain(Diagnostic::error(
                "no-runs",
                section_span(table, "sweep"),
                message,
            ));
        }
        let ordered = order_runs(&points, settings.repeats, order.0, &order.1, settings.seed);
        runs = ordered
            .into_iter()
            .map(|(point, repeat)| (points[point as usize].clone(), repeat))
            .filter(|(point, repeat)| {
                filters.is_empty() || filters.iter().any(|f| f.wants(point, *repeat))
            })
            .collect();
        if runs.is_empty() && !scope.faults.any() {
            scope.faults.add_plain(Diagnostic::error(
                "no-runs",
                Span::NONE,
                "`--only` leaves out every run",
            ));
        }
    }
    let mut planned = Vec::with_capacity(runs.len());
    for (point, repeat) in runs {
        let at = At {
            point: &point,
            repeat,
        };
        if let Some(shape) = resolver.shape(&mut scope, at) {
            planned.push(RunPlan {
                point,
                repeat,
                shape,
            });
        }
    }
    restart::check(&mut scope, &resolver, &planned);
    let (tables, conditions) =
        tables::extract(&mut scope, table, &resolver, &planned, &sweep, &labels);
    let warnings = match scope.faults.any() {
        true => return Err(scope.faults.finish(&sweep.axes, &points, settings.repeats)),
        false => warnings::find(&scope, &resolver, table, &planned),
    };
    let mut plan = Plan {
        format: PLAN_FORMAT,
        hash: String::new(),
        scenario: info,
        axes: sweep.axes,
        repeats: settings.repeats,
        seed: settings.seed,
        pause_ns: settings.pause_ns,
        run_timeout_ns: settings.run_timeout_ns,
        stop_on_failure: settings.stop_on_failure,
        client: settings.client,
        outputs: settings.outputs,
        shapes: resolver.into_shapes(),
        runs: planned,
        labels,
        tables,
        conditions,
        notes: warnings
            .iter()
            .map(|warning| warning.message.clone())
            .collect(),
    };
    plan.hash = hash::hash(&plan);
    let order = settings.order.name();
    Ok(Made {
        plan,
        warnings,
        evaluations: scope.evaluations,
        order,
    })
}

fn section_span(table: &Table, name: &str) -> Span {
    table.entry(name).map_or(Span::NONE, |entry| entry.key_span)
}

/// `[runs]` and `[client]`: the same for all runs.
struct Settings {
    repeats: u32,
    order: Order,
    keep_together: Vec<(String, Span)>,
    seed: u64,
    pause_ns: u64,
    run_timeout_ns: u64,
    stop_on_failure: bool,
    client: ClientPlan,
    outputs: Outputs,
}

impl Settings {
    fn read(scope: &mut Scope<'_>, root: &Table) -> Option<Settings> {
        let runs = load_section(scope, root, "runs", crate::scenario::model::RUNS);
        let client = load_section(scope, root, "client", crate::scenario::model::CLIENT);
        let outputs = load_section(scope, root, "outputs", crate::scenario::model::OUTPUTS);
        let (runs, client, outputs) = (runs?, client?, outputs?);
        let runs = Reader::new(&runs)?;
        let keep = runs.list("keep_together").unwrap_or(&[]).iter();
        Some(Settings {
            repeats: runs.count("repeats").unwrap_or(1) as u32,
            order: match runs.text("order") {
                Some("sequential") => Order::Sequential,
                Some("shuffled") => Order::Shuffled,
                _ => Order::Interleaved,
            },
            keep_together: keep
                .filter_map(|node| Some((node.string()?.to_owned(), node.span)))
                .collect(),
            seed: runs.count("seed").unwrap_or(1),
            pause_ns: runs.nanoseconds("pause").unwrap_or(0),
            run_timeout_ns: runs.nanoseconds("timeout").unwrap_or(0),
            stop_on_failure: runs.text("on_failure") == Some("stop"),
            client: client_plan(scope, &Reader::new(&client)?)?,
            outputs: Outputs {
                basho_bench: Reader::new(&outputs)?.bool("basho_bench").unwrap_or(false),
            },
        })
    }

    fn order_of(&self, scope: &mut Scope<'_>, axes: &[Axis]) -> (Order, Vec<usize>) {
        let mut together = Vec::new();
        for (name, span) in &self.keep_together {
            match axes.iter().position(|axis| axis.name == *name) {
                Some(position) => together.push(position),
                None => {
                    let meant = did_you_mean(name, axes.iter().map(|axis| axis.name.as_str()));
                    let help = meant
                        .map(|meant| format!("did you mean `{meant}`?"))
                        .unwrap_or_default();
                    let message =
                        format!("`keep_together` names the axes of [sweep], and none is `{name}`");
                    scope
                        .faults
                        .add_plain(Diagnostic::error("unknown-axis", *span, message).help(help));
                }
            }
        }
        (self.order, together)
    }
}

fn client_plan(scope: &mut Scope<'_>, client: &Reader<'_>) -> Option<ClientPlan> {
    let cpus = client
        .node("cpus")
        .map(super::extract::plain)
        .unwrap_or_default();
    let cpus = match units::parse_cpus(&cpus) {
        Ok(cpus) => cpus,
        Err(message) => {
            scope.faults.add_plain(Diagnostic::error(
                "wrong-cpus",
                client.span_of("cpus"),
                message,
            ));
            return None;
        }
    };
    Some(ClientPlan {
        workers: client.count("workers").map(|workers| workers as u32),
        cpus,
        window_ns: client.nanoseconds("window").unwrap_or(1_000_000_000),
        connect_rate_per_second: client.rate("connect_rate").unwrap_or(0.0),
    })
}

/// A section that is the same for all runs, evaluated and checked; an empty table where it is not said.
fn load_section(
    scope: &mut Scope<'_>,
    root: &Table,
    name: &str,
    rows: &[crate::rows::Row],
) -> Option<Node> {
    use crate::scenario::check::{Place, Templates, check_table};
    let Some(said) = root.get(name) else {
        let value = crate::scenario::tree::Value::Table(Table::default());
        return Some(Node {
            span: Span::NONE,
            value,
        });
    };
    let node = scope.evaluate_load(said)?;
    let mut diagnostics = Diagnostics::default();
    check_table(
        &Place::TOP.table(name),
        node.table()?,
        node.span,
        rows,
        Templates::None,
        &mut diagnostics,
    );
    let fits = !diagnostics.has_errors();
    diagnostics
        .list
        .into_iter()
        .for_each(|fault| scope.faults.add_plain(fault));
    fits.then_some(node)
}

fn info(scope: &mut Scope<'_>, root: &Table) -> ScenarioInfo {
    let mut text = |key: &str| match root.get(key).and_then(|node| scope.evaluate_load(node)) {
        Some(node) => super::extract::plain(&node),
        None => String::new(),
    };
    ScenarioInfo {
        name: text("name"),
        title: text("title"),
        description: text("description"),
        source: text("source"),
        hardware: scalars(scope, root, "hardware"),
    }
}

fn labels(scope: &mut Scope<'_>, root: &Table) -> BTreeMap<String, serde_json::Value> {
    scalars(scope, root, "labels")
}

fn scalars(scope: &mut Scope<'_>, root: &Table, name: &str) -> BTreeMap<String, serde_json::Value> {
    let node = root.get(name).and_then(|node| scope.evaluate_load(node));
    let entries = node
        .as_ref()
        .and_then(Node::table)
        .map(|table| table.entries.as_slice());
    let entries = entries.unwrap_or_default().iter();
    entries
        .map(|entry| (entry.key.clone(), to_json(&entry.node)))
        .collect()
}

fn exclude_sections(scope: &mut Scope<'_>, sweep: Option<&Table>) -> Vec<Section<bool>> {
    let nodes = sweep
        .and_then(|sweep| sweep.get("exclude"))
        .and_then(Node::array);
    let nodes = nodes.unwrap_or(&[]).iter();
    let mut sections = Vec::new();
    for node in nodes {
        let section = Section::new(scope, node.clone(), Stage::Plan, 0);
        if section.mask & REPEAT != 0 {
            let message = "`exclude` leaves out points, with all their repeats, so it cannot ask for `repeat`";
            scope
                .faults
                .add_plain(Diagnostic::error("template-stage", node.span, message));
        }
        sections.push(section);
    }
    sections
}

/// The points that no `exclude` leaves out.
fn wanted_points(
    scope: &mut Scope<'_>,
    sweep: &Sweep,
    exclude: &mut [Section<bool>],
) -> Vec<Point> {
    let mut points = sweep.points();
    points.retain(|point| {
        let at = At { point, repeat: 1 };
        !exclude
            .iter_mut()
            .any(|section| excludes(scope, section, at))
    });
    points
}

fn excludes(scope: &mut Scope<'_>, section: &mut Section<bool>, at: At<'_>) -> bool {
    let found = section.get(scope, at, None, |scope, evaluation| {
        let node = &evaluation.node;
        if let Some(value) = node.bool() {
            return Some(value);
        }
        let message = format!("`exclude` says true or false, and this is {}", node.kind());
        let help = "compare: `\"{{ threads > 4 }}\"`";
        scope.report_here(
            Diagnostic::error("exclude-not-bool", node.span, message).help(help),
            at,
        );
        None
    });
    found.is_some_and(|(_, value)| *value)
}

fn size_is_fine(scope: &mut Scope<'_>, sweep: &Sweep, repeats: u32, root: &Table) -> bool {
    let size = sweep
        .size()
        .and_then(|size| size.checked_mul(repeats as usize));
    if size.is_some_and(|size| size <= MOST_RUNS) {
        return true;
    }
    let factors: Vec<String> = sweep.axes[..sweep.crossed]
        .iter()
        .map(|axis| format!("{} {}", axis.values.len(), axis.name))
        .collect();
    let message = format!(
        "more than {MOST_RUNS} runs: {} x {repeats} repeats",
        factors.join(" x ")
    );
    scope.faults.add_plain(Diagnostic::error(
        "too-many-runs",
        section_span(root, "sweep"),
        message,
    ));
    false
}

fn filters(scope: &mut Scope<'_>, only: &[String], axes: &[Axis], repeats: u32) -> Vec<Filter> {
    let mut filters = Vec::new();
    for text in only {
        match Filter::parse(text, axes, repeats) {
            Ok(filter) => filters.push(filter),
            Err(message) => {
                let message = format!("--only: {message}");
                scope
                    .faults
                    .add_plain(Diagnostic::error("wrong-filter", Span::NONE, message));
            }
        }
    }
    filters
}
