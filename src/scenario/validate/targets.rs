//! `[targets]` and the target axis: drivers, their options, endpoints, servers.

use super::{Context, holds_template, literal, unknown};
use crate::diag::{Diagnostic, Diagnostics, Span, list_of};
use crate::driver::spec::{DriverSpec, EndpointFault, OptionFault, Options, Store};
use crate::scenario::check::{Place, Templates, check_table};
use crate::scenario::read::{Reader, to_json};
use crate::scenario::tree::{Entry, Node};
use serde_json::{Map, Value};

pub(super) fn validate(scenario: &Context, diagnostics: &mut Diagnostics) {
    axis(scenario, diagnostics);
    for entry in scenario.entries("targets") {
        if let Some(target) = Reader::new(&entry.node) {
            servers(scenario, &target, diagnostics);
            driver(scenario, entry, &target, diagnostics);
        }
    }
}

/// The target of a run: the axis, or the only target there is.
fn axis(scenario: &Context, diagnostics: &mut Diagnostics) {
    let known = scenario.names("targets");
    if known.is_empty() {
        let message = "the scenario has no [targets.NAME], so there is nothing to measure";
        diagnostics.push(Diagnostic::error(
            "no-target",
            scenario.top.span_of("targets"),
            message,
        ));
        return;
    }
    let named = scenario.axes().iter().any(|(name, _)| *name == "target");
    if !named && known.len() > 1 {
        let names: Vec<String> = known.iter().map(|name| format!("\"{name}\"")).collect();
        let message = format!(
            "there are {} targets, and nothing says which to run",
            known.len()
        );
        let help = format!("in [sweep]: target = [{}]", names.join(", "));
        let span = scenario.entries("targets")[1].key_span;
        diagnostics.push(Diagnostic::error("no-target", span, message).help(help));
    }
    let sweep = scenario.top.table("sweep");
    let axis = sweep.and_then(|sweep| sweep.list("target")).unwrap_or(&[]);
    for node in axis {
        if literal(node).is_some_and(|name| !known.contains(&name)) {
            diagnostics.push(unknown("unknown-target", "target", node, &known));
        }
    }
}

fn servers(scenario: &Context, target: &Reader, diagnostics: &mut Diagnostics) {
    let known = scenario.names("servers");
    for node in target.list("servers").unwrap_or(&[]) {
        if literal(node).is_some_and(|name| !known.contains(&name)) {
            diagnostics.push(unknown("unknown-server", "server", node, &known));
        }
    }
}

fn driver(scenario: &Context, entry: &Entry, target: &Reader, diagnostics: &mut Diagnostics) {
    let Some(node) = target.node("driver") else {
        return;
    };
    let Some(name) = literal(node) else {
        return;
    };
    let Some(spec) = scenario.driver(name) else {
        diagnostics.push(unknown_driver(scenario, node));
        return;
    };
    options(entry, target, spec, diagnostics);
    endpoints(scenario, target, spec, diagnostics);
}

fn unknown_driver(scenario: &Context, node: &Node) -> Diagnostic {
    unknown("unknown-driver", "driver", node, &scenario.driver_names())
}

fn options(entry: &Entry, target: &Reader, spec: &DriverSpec, diagnostics: &mut Diagnostics) {
    let Some(options) = target.table("options") else {
        return;
    };
    let (top, targets) = (Place::TOP, "targets");
    let (section, name) = (top.table(targets), entry.key.as_str());
    let section = section.table(name);
    let place = section.table("options");
    let before = diagnostics.list.len();
    check_table(
        &place,
        options.table,
        options.span,
        spec.options,
        Templates::Allowed,
        diagnostics,
    );
    let whole = target
        .node("options")
        .is_some_and(|node| !holds_template(node));
    if whole && diagnostics.list.len() == before {
        let said = Options::new(spec.options, object(&options));
        if let Err(fault) = (spec.check_options)(&said) {
            diagnostics.push(option_fault(&options, fault));
        }
    }
}

pub(super) fn object(reader: &Reader) -> Map<String, Value> {
    let entries = reader.table.entries.iter();
    entries
        .map(|entry| (entry.key.clone(), to_json(&entry.node)))
        .collect()
}

/// A driver's own fault, at the value of the key that it names.
pub(super) fn option_fault(table: &Reader, fault: OptionFault) -> Diagnostic {
    Diagnostic::error("bad-option", table.span_of(&fault.key), fault.message).help(fault.help)
}

fn endpoints(
    scenario: &Context,
    target: &Reader,
    spec: &DriverSpec,
    diagnostics: &mut Diagnostics,
) {
    let node = target.node("endpoints");
    let Store::Server { parse, example, .. } = spec.store else {
        if let Some(entry) = target.table.entry("endpoints") {
            let message = format!(
                "driver `{}` has no endpoints: {}",
                spec.name,
                place_of(spec)
            );
            diagnostics.push(
                Diagnostic::error("endpoints-not-used", entry.key_span, message)
                    .help("remove the key"),
            );
        }
        return;
    };
    let Some(node) = node else {
        let message = format!("driver `{}` needs `endpoints`", spec.name);
        let help = format!("for instance endpoints = [\"{example}\"]");
        diagnostics
            .push(Diagnostic::error("no-endpoint", target.span_of("driver"), message).help(help));
        return;
    };
    for list in endpoint_lists(node) {
        if list.array().is_some_and(<[Node]>::is_empty) {
            let help = format!("for instance [\"{example}\"]");
            diagnostics.push(
                Diagnostic::error("no-endpoint", list.span, "there is no endpoint here").help(help),
            );
        }
        for endpoint in list.array().unwrap_or(&[]) {
            if let Some(text) = literal(endpoint)
                && let Err(fault) = parse(text)
            {
                diagnostics.push(endpoint_fault(scenario, endpoint, text, fault, example));
            }
        }
    }
}

fn place_of(spec: &DriverSpec) -> &'static str {
    match spec.store {
        Store::Embedded => "it runs inside the client, in a private directory",
        _ => "there is no store behind it",
    }
}

/// The one list, or each of the named ones.
fn endpoint_lists(node: &Node) -> Vec<&Node> {
    match node.table() {
        Some(table) => table.entries.iter().map(|entry| &entry.node).collect(),
        None => vec![node],
    }
}

fn endpoint_fault(
    scenario: &Context,
    node: &Node,
    text: &str,
    fault: EndpointFault,
    example: &str,
) -> Diagnostic {
    let span = within(scenario, node, text, fault.start, fault.end);
    let help = match fault.help.is_empty() {
        true => format!("an endpoint looks like \"{example}\""),
        false => fault.help,
    };
    Diagnostic::error("bad-endpoint", span, fault.message).help(help)
}

/// A range of a string's value as a place in the source; the whole string where escapes shift it.
fn within(scenario: &Context, node: &Node, text: &str, start: usize, end: usize) -> Span {
    let said = scenario.sources.text(node.span);
    match said.find(text) {
        Some(offset) if !text.is_empty() && start < end && end <= text.len() => {
            let base = node.span.start as usize + offset;
            Span::new(base + start, base + end)
        }
        _ => node.span,
    }
}

/// `[operations.NAME]`: each entry belongs to a driver that takes operations of the user's own.
pub(super) fn operation_entry(
    scenario: &Context,
    operation: &Entry,
    entry: &Entry,
    diagnostics: &mut Diagnostics,
) {
    let Some(spec) = scenario.driver(&entry.key) else {
        let known = scenario.driver_names();
        let near = crate::diag::did_you_mean(&entry.key, known.iter().copied());
        let message = format!("there is no driver `{}`", entry.key);
        let fault = Diagnostic::error("unknown-driver", entry.key_span, message);
        diagnostics.push(match near {
            Some(near) => fault
                .help(format!("did you mean `{near}`?"))
                .fix(entry.key_span, near),
            None => fault.help(format!(
                "an operation is given per driver; there are {}",
                list_of(known)
            )),
        });
        return;
    };
    let Some(table) = Reader::new(&entry.node) else {
        return;
    };
    if spec.operation.is_empty() {
        let message = format!("driver `{}` takes no operations of your own", spec.name);
        let help = format!("it can {}", abilities(spec));
        diagnostics
            .push(Diagnostic::error("unsupported-operation", entry.key_span, message).help(help));
        return;
    }
    let (top, operations) = (Place::TOP, "operations");
    let section = top.table(operations);
    let section = section.table(&operation.key);
    let place = section.table(&entry.key);
    let before = diagnostics.list.len();
    check_table(
        &place,
        table.table,
        table.span,
        spec.operation,
        Templates::Allowed,
        diagnostics,
    );
    if diagnostics.list.len() == before
        && !holds_template(&entry.node)
        && let Err(fault) = (spec.check_operation)(&object(&table))
    {
        diagnostics.push(option_fault(&table, fault));
    }
}

/// What a driver can do, for messages.
pub(super) fn abilities(spec: &DriverSpec) -> String {
    let verbs = list_of(spec.verbs.iter().map(|verb| verb.name()));
    match spec.operation.is_empty() {
        true => verbs,
        false => format!("{verbs}, or one of [operations]"),
    }
}
