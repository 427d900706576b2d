//! `[[tables]]` into the plan, with every name that they use checked against what the results will have.
//!
//! Knows the columns of operations.csv by name. `tables/` makes the tables; it trusts what is checked here.

use super::columns::{COLUMNS, ERROR_CLASSES};
use super::expand::Sweep;
use super::resolve::Resolver;
use super::scope::{At, Key, Mask, Scope, Stage, axis_names};
use super::section::Section;
use super::{ConditionPlan, GroupPlan, PhasePlan, RepeatRule, RunPlan, TablePlan};
use crate::diag::{Diagnostic, Span, did_you_mean};
use crate::scenario::read::{Reader, to_json};
use crate::scenario::tree::{Node, Table};
use crate::template::{self, find_word, whole_expression};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Every top-level name that expressions of the tables read; faulty ones read none here.
pub fn names_read(root: &Table) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for table in tables_of(root) {
        let values = table
            .table("values")
            .map(|values| values.table.entries.as_slice());
        let values = values.unwrap_or_default().iter().map(|entry| &entry.node);
        for text in values.chain(table.node("where")).filter_map(Node::string) {
            if let Some(range) = whole_expression(text) {
                names.extend(template::names_of_expression(&text[range]).unwrap_or_default());
            }
        }
    }
    for condition in conditions_of(root) {
        let texts = ["require", "message"].map(|key| condition.text(key));
        for scan in texts.into_iter().flatten().map(template::scan) {
            names.extend(scan.map(|scan| scan.names).unwrap_or_default());
        }
    }
    names
}

fn conditions_of(root: &Table) -> Vec<Reader<'_>> {
    let conditions = root.get("conditions").and_then(Node::array).unwrap_or(&[]);
    conditions.iter().filter_map(Reader::new).collect()
}

fn tables_of(root: &Table) -> Vec<Reader<'_>> {
    let tables = root.get("tables").and_then(Node::array).unwrap_or(&[]);
    tables.iter().filter_map(Reader::new).collect()
}

/// What a table may name.
struct World<'w> {
    axes: Vec<String>,
    labels: Vec<String>,
    vars: Vec<String>,
    /// By name: groups, and operations of each.
    /// By name, each different set of groups and operations once: an axis may change what a phase does.
    phases: BTreeMap<String, Vec<Arc<PhasePlan>>>,
    probes: Vec<String>,
    sweep: &'w Sweep,
}

pub fn extract(
    scope: &mut Scope<'_>,
    root: &Table,
    resolver: &Resolver<'_>,
    runs: &[RunPlan],
    sweep: &Sweep,
    labels: &BTreeMap<String, serde_json::Value>,
) -> (Vec<TablePlan>, Vec<ConditionPlan>) {
    let phases = resolver.shapes.iter().flat_map(|shape| &shape.phases);
    let mut world = World {
        axes: sweep.axes.iter().map(|axis| axis.name.clone()).collect(),
        labels: labels.keys().cloned().collect(),
        vars: scope.var_names(),
        phases: BTreeMap::new(),
        probes: probe_names(root),
        sweep,
    };
    for phase in phases {
        let known = world.phases.entry(phase.name.clone()).or_default();
        if !known.iter().any(|other| same_work(other, phase)) {
            known.push(phase.clone());
        }
    }
    // Phases that every run leaves out have no groups here; their names are known all the same.
    let mut plans = Vec::new();
    for table in tables_of(root) {
        let plan = table_plan(scope, &table);
        if !resolver.shapes.is_empty() && world.phases.len() == resolver.phases.len() {
            check_names(scope, &table, &plan, &world);
        }
        check_cells(scope, &table, &plan, &world, runs);
        plans.push(plan);
    }
    let all_known = !resolver.shapes.is_empty() && world.phases.len() == resolver.phases.len();
    let conditions = conditions_of(root);
    let conditions = conditions
        .iter()
        .map(|condition| condition_plan(scope, condition, all_known.then_some(&world)))
        .collect();
    (plans, conditions)
}

fn probe_names(root: &Table) -> Vec<String> {
    let probes = root.get("probes").and_then(Node::array).unwrap_or(&[]);
    let probes = probes.iter().filter_map(Reader::new);
    probes
        .filter_map(|probe| probe.text("name").map(str::to_owned))
        .collect()
}

fn condition_plan(
    scope: &mut Scope<'_>,
    condition: &Reader<'_>,
    world: Option<&World<'_>>,
) -> ConditionPlan {
    let node = condition.node("require");
    let require = node.and_then(|node| expression(scope, node));
    let message = condition.text("message").unwrap_or_default();
    if let Err(fault) = template::scan(message) {
        let span = condition.span_of("message");
        let fault = Diagnostic::error("template-syntax", span, fault.message).help(fault.help);
        scope.faults.add_plain(fault);
    }
    if let Some(world) = world {
        if let Some(node) = node {
            check_expression(scope, node, world, true);
        }
        if let Some(node) = condition.node("message") {
            for part in expressions_of(message) {
                check_part(scope, node, part, world, true);
            }
        }
    }
    ConditionPlan {
        require: require.unwrap_or_default(),
        message: message.to_owned(),
    }
}

/// What stands between the double braces of a text.
fn expressions_of(text: &str) -> impl Iterator<Item = &str> {
    text.split("{{")
        .skip(1)
        .filter_map(|part| part.split_once("}}"))
        .map(|(expression, _)| expression)
}

/// Whether two phases have the same groups with the same operations.
fn same_work(one: &PhasePlan, other: &PhasePlan) -> bool {
    let same_operations = |(one, other): (&GroupPlan, &GroupPlan)| {
        let names = |group: &GroupPlan| {
            Vec::from_iter(group.mix.iter().map(|entry| entry.operation.clone()))
        };
        one.name == other.name && names(one) == names(other)
    };
    one.groups.len() == other.groups.len()
        && one.groups.iter().zip(&other.groups).all(same_operations)
}

fn table_plan(scope: &mut Scope<'_>, table: &Reader<'_>) -> TablePlan {
    let owned = |key: &str| table.text(key).unwrap_or_default().to_owned();
    let mut values = Vec::new();
    for entry in table
        .table("values")
        .iter()
        .flat_map(|values| &values.table.entries)
    {
        if let Some(expression) = expression(scope, &entry.node) {
            values.push((entry.key.clone(), expression));
        }
    }
    let where_ = table.node("where").and_then(|node| expression(scope, node));
    let map = |key: &str| {
        table
            .table(key)
            .map(|map| map.table.entries.as_slice())
            .unwrap_or_default()
    };
    TablePlan {
        name: owned("name"),
        where_: where_.unwrap_or_default(),
        rows: table.texts("rows").into_iter().map(str::to_owned).collect(),
        columns: owned("columns"),
        values,
        repeats: match table.text("repeats") {
            Some("mean") => RepeatRule::Mean,
            Some("min") => RepeatRule::Min,
            Some("max") => RepeatRule::Max,
            Some("merged") => RepeatRule::Merged,
            Some("all") => RepeatRule::All,
            _ => RepeatRule::Median,
        },
        ratio_to: map("ratio_to")
            .iter()
            .map(|entry| (entry.key.clone(), to_json(&entry.node)))
            .collect(),
        ratio_name: owned("ratio_name"),
        headers: map("headers")
            .iter()
            .filter_map(|entry| Some((entry.key.clone(), entry.node.string()?.to_owned())))
            .collect(),
        show_invalid: table.text("invalid") == Some("show"),
        every_ns: table.nanoseconds("every").unwrap_or(0),
    }
}

/// An expression without its braces; anything else is reported.
fn expression(scope: &mut Scope<'_>, node: &Node) -> Option<String> {
    let text = node.string()?;
    let fault = match whole_expression(text).map(|range| text[range].to_owned()) {
        Some(expression) => match template::names_of_expression(&expression) {
            Ok(_) => return Some(expression),
            Err(fault) => {
                Diagnostic::error("template-syntax", node.span, fault.message).help(fault.help)
            }
        },
        None => {
            let message = "a table's value is one whole expression";
            Diagnostic::error("not-an-expression", node.span, message)
                .help(format!("write `\"{{{{ {} }}}}\"`", text.trim()))
        }
    };
    scope.faults.add_plain(fault);
    None
}

fn check_names(scope: &mut Scope<'_>, table: &Reader<'_>, plan: &TablePlan, world: &World<'_>) {
    for node in table.list("rows").unwrap_or(&[]) {
        let name = node.string().unwrap_or_default();
        let known = world
            .axes
            .iter()
            .chain(&world.labels)
            .map(String::as_str)
            .chain(["window"]);
        unknown(
            scope,
            "rows",
            "an axis, a label or `window`",
            name,
            node.span,
            known.collect(),
        );
    }
    if !plan.columns.is_empty() {
        let known = world.axes.iter().map(String::as_str).collect();
        unknown(
            scope,
            "columns",
            "an axis",
            &plan.columns,
            table.span_of("columns"),
            known,
        );
    }
    for entry in table
        .table("ratio_to")
        .iter()
        .flat_map(|map| &map.table.entries)
    {
        check_ratio(
            scope,
            &entry.key,
            &to_json(&entry.node),
            (entry.key_span, entry.node.span),
            world,
        );
    }
    if !plan.ratio_name.is_empty() && plan.values.len() != 1 {
        let message = format!(
            "`ratio_name` names the one ratio, and there are {} values",
            plan.values.len()
        );
        let fault = Diagnostic::error("ratio-name", table.span_of("ratio_name"), message)
            .help("leave it out: the columns are then `<name>_percent`");
        scope.faults.add_plain(fault);
    }
    for entry in table
        .table("values")
        .iter()
        .flat_map(|values| &values.table.entries)
    {
        check_expression(scope, &entry.node, world, true);
    }
    if let Some(node) = table.node("where") {
        check_expression(scope, node, world, false);
    }
}

fn unknown(scope: &mut Scope<'_>, key: &str, what: &str, name: &str, span: Span, known: Vec<&str>) {
    if known.contains(&name) {
        return;
    }
    let help = match did_you_mean(name, known.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("there are: {}", known.join(", ")),
    };
    let message = format!("`{name}` is no axis that `{key}` could name; it takes {what}");
    scope
        .faults
        .add_plain(Diagnostic::error("unknown-axis", span, message).help(help));
}

fn check_ratio(
    scope: &mut Scope<'_>,
    name: &str,
    value: &serde_json::Value,
    spans: (Span, Span),
    world: &World<'_>,
) {
    let Some(axis) = world.sweep.axes.iter().find(|axis| axis.name == name) else {
        let known = world.axes.iter().map(String::as_str).collect();
        return unknown(
            scope,
            "ratio_to",
            "an axis and its value",
            name,
            spans.0,
            known,
        );
    };
    let text = super::ids::value_text(value);
    let known: Vec<String> = axis.values.iter().map(super::ids::value_text).collect();
    if known.contains(&text) {
        return;
    }
    let help = match did_you_mean(&text, known.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("there are: {}", known.join(", ")),
    };
    let message = format!("the axis `{name}` has no value `{text}`");
    scope
        .faults
        .add_plain(Diagnostic::error("unknown-value", spans.1, message).help(help));
}

/// Reports names and columns that the results will not have.
fn check_expression(scope: &mut Scope<'_>, node: &Node, world: &World<'_>, results: bool) {
    let text = node.string().unwrap_or_default();
    if let Some(range) = whole_expression(text) {
        check_part(scope, node, &text[range], world, results);
    }
}

/// The same of one expression of the text.
fn check_part(
    scope: &mut Scope<'_>,
    node: &Node,
    expression: &str,
    world: &World<'_>,
    results: bool,
) {
    let text = node.string().unwrap_or_default();
    for path in template::nested_names(expression).unwrap_or_default() {
        let parts: Vec<&str> = path.split('.').collect();
        let fault = match (world.phases.get(parts[0]), results) {
            _ if parts[0] == "probe" && results => probe_fault(world, &parts),
            (Some(phases), true) => {
                let mut faults = phases.iter().map(|phase| path_fault(phase, &parts));
                let first = faults.next().flatten();
                first.filter(|_| faults.all(|fault| fault.is_some()))
            }
            (Some(_), false) => Some((
                "`where` chooses runs before their results are read".to_owned(),
                String::new(),
                parts[0],
            )),
            (None, _) => name_fault(world, parts[0]),
        };
        if let Some((message, help, word)) = fault {
            let span = scope.narrow(node.span, text, find_word(text, word));
            scope
                .faults
                .add_plain(Diagnostic::error("unknown-result", span, message).help(help));
        }
    }
}

/// A path is `probe.NAME`.
fn probe_fault<'p>(world: &World<'_>, parts: &[&'p str]) -> Option<NameFault<'p>> {
    let name = parts.get(1).copied().unwrap_or("");
    if world.probes.iter().any(|probe| probe == name) {
        return None;
    }
    let known = world.probes.iter().map(String::as_str);
    let help = match did_you_mean(name, known.clone()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None if world.probes.is_empty() => "the scenario has no `[[probes]]`".to_owned(),
        None => format!("there are: {}", Vec::from_iter(known).join(", ")),
    };
    let word = parts.last().copied().unwrap_or("probe");
    Some((format!("there is no probe `{name}`"), help, word))
}

type NameFault<'p> = (String, String, &'p str);

fn name_fault<'p>(world: &World<'_>, name: &'p str) -> Option<NameFault<'p>> {
    let axes = world
        .axes
        .iter()
        .chain(&world.labels)
        .chain(&world.vars)
        .chain(world.phases.keys());
    let known: Vec<&str> = axes
        .map(String::as_str)
        .chain(["repeat"])
        .chain(template::FUNCTIONS)
        .collect();
    if known.contains(&name) {
        return None;
    }
    let help =
        did_you_mean(name, known.iter().copied()).map(|meant| format!("did you mean `{meant}`?"));
    let message = format!("unknown name `{name}`: no phase, axis, label or var");
    Some((message, help.unwrap_or_default(), name))
}

/// A path is `phase[.group][.operation].column`, or `phase.errors.class`.
fn path_fault<'p>(phase: &PhasePlan, parts: &[&'p str]) -> Option<NameFault<'p>> {
    let last = *parts.last()?;
    if parts.len() == 1 {
        let message = format!("`{last}` is a phase, and this reads none of its columns");
        return Some((
            message,
            format!("write `{last}.elapsed_seconds`, for instance"),
            last,
        ));
    }
    if parts[1] == "errors" {
        let class = parts.get(2)?;
        let known = ERROR_CLASSES.contains(class);
        return (!known).then(|| no_column(class, "class of errors", &ERROR_CLASSES));
    }
    let mut groups: Vec<_> = phase.groups.iter().collect();
    let mut operation_said = false;
    for (position, part) in parts[1..].iter().enumerate() {
        let is_last = position + 2 == parts.len();
        if groups
            .iter()
            .any(|group| !group.name.is_empty() && group.name == *part)
            && !operation_said
        {
            groups.retain(|group| group.name == *part);
        } else if !operation_said
            && groups
                .iter()
                .any(|group| group.mix.iter().any(|entry| entry.operation == *part))
        {
            operation_said = true;
        } else if is_last || COLUMNS.contains(part) {
            let known = COLUMNS.contains(part);
            return (!known).then(|| no_column(part, "column of operations.csv", COLUMNS));
        } else {
            let message = format!(
                "the phase `{}` has no group or operation `{part}`",
                phase.name
            );
            let groups = phase.groups.iter().map(|group| group.name.as_str());
            let operations = phase
                .groups
                .iter()
                .flat_map(|group| &group.mix)
                .map(|entry| entry.operation.as_str());
            let help = did_you_mean(part, groups.chain(operations))
                .map(|meant| format!("did you mean `{meant}`?"));
            return Some((message, help.unwrap_or_default(), part));
        }
    }
    Some((
        format!("`{}` names no column", parts.join(".")),
        "add one, such as `.elapsed_seconds`".to_owned(),
        last,
    ))
}

fn no_column<'p>(part: &'p str, what: &str, known: &[&'static str]) -> NameFault<'p> {
    let help = match did_you_mean(part, known.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None if known.len() < 16 => format!("there are: {}", known.join(", ")),
        None => String::new(),
    };
    (format!("no {what} is `{part}`"), help, part)
}

/// An axis that is neither row nor column has one value per cell, else runs would be mixed silently.
fn check_cells(
    scope: &mut Scope<'_>,
    table: &Reader<'_>,
    plan: &TablePlan,
    world: &World<'_>,
    runs: &[RunPlan],
) {
    let position = |name: &str| world.axes.iter().position(|axis| axis == name);
    let shown = plan
        .rows
        .iter()
        .chain([&plan.columns])
        .filter_map(|name| position(name));
    let shown: Mask = shown.fold(0, |all, axis| all | 1 << axis);
    let all: Mask = (0..world.axes.len()).fold(0, |all, axis| all | 1 << axis);
    if shown == all || runs.is_empty() || scope.faults.any() {
        return;
    }
    let mut wanted = where_section(scope, table, plan, world);
    let mut cells: HashMap<Key, Box<[u32]>> = HashMap::new();
    let mut mixed: Mask = 0;
    for run in runs {
        let point = &run.point;
        let at = At { point, repeat: 1 };
        let is_wanted = wanted
            .as_mut()
            .is_none_or(|wanted| is_wanted(scope, wanted, at));
        if !is_wanted {
            continue;
        }
        let first = cells.entry(at.key(shown)).or_insert_with(|| point.clone());
        let differs = first
            .iter()
            .zip(point.iter())
            .enumerate()
            .filter(|(_, (one, other))| one != other);
        mixed |= differs.fold(0, |all, (axis, _)| all | 1 << axis) & !shown;
    }
    if mixed != 0 {
        let names = axis_names(&scope.axes, mixed);
        let message =
            format!("a cell of this table would mix runs with different values of {names}");
        let help = format!("add {names} to `rows`, or choose one value by `where`");
        scope
            .faults
            .add_plain(Diagnostic::error("mixed-cells", table.span_of("rows"), message).help(help));
    }
}

/// The `where` of a table, evaluated once per combination of axes that it reads; None where it wants every run, as one
/// that reads labels is taken to do.
fn where_section(
    scope: &mut Scope<'_>,
    table: &Reader<'_>,
    plan: &TablePlan,
    world: &World<'_>,
) -> Option<Section<bool>> {
    let node = table.node("where").filter(|_| !plan.where_.is_empty())?;
    let names = template::names_of_expression(&plan.where_).unwrap_or_default();
    let by_label = names.iter().any(|name| world.labels.contains(name));
    (!by_label).then(|| Section::new(scope, node.clone(), Stage::Plan, 0))
}

fn is_wanted(scope: &mut Scope<'_>, wanted: &mut Section<bool>, at: At<'_>) -> bool {
    let found = wanted.get(scope, at, None, |scope, evaluation| {
        let node = &evaluation.node;
        if let Some(wanted) = node.bool() {
            return Some(wanted);
        }
        let message = format!(
            "`where` says true or false for a run, and this is {}",
            node.kind()
        );
        scope.report_here(Diagnostic::error("where-not-bool", node.span, message), at);
        None
    });
    found.is_some_and(|(_, wanted)| *wanted)
}
