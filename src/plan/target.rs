//! `[targets.NAME]` into the plan, with the operations of its driver and all that its driver says about them.

use super::extract::{Extract, plain};
use super::scope::{Evaluation, Stage};
use super::{EndpointGroup, OperationPlan, TargetPlan};
use crate::diag::{Diagnostic, Span};
use crate::driver::spec::{DriverSpec, Durability, HeldIn, OptionFault, Options, Store};
use crate::scenario::check::Place;
use crate::scenario::model::TARGET;
use crate::scenario::read::{Reader, to_json};
use crate::scenario::tree::{Node, Table, Value as TreeValue};
use std::sync::Arc;

/// A target of the plan, and what is checked once the whole run is known.
pub struct ResolvedTarget {
    pub plan: Arc<TargetPlan>,
    pub driver: &'static DriverSpec,
    pub servers: Vec<(String, Span)>,
    pub dataset: Option<(String, Span)>,
    /// Servers that any of its strings asks for.
    pub asked: Vec<(Span, String)>,
    /// Servers that its endpoints ask for.
    pub named_by_endpoints: Vec<String>,
    /// (named twice, what).
    pub doubles: Vec<(Span, String)>,
}

/// `operations` are the scenario's own, of all drivers.
pub fn extract(
    ex: &mut Extract<'_, '_>,
    name: &str,
    operations: Option<&Table>,
) -> Option<ResolvedTarget> {
    let targets = Place::TOP.table("targets");
    let node = ex.fit(&targets.table(name), &ex.evaluation.node, TARGET)?;
    let reader = Reader::new(&node)?;
    let driver = ex.driver(reader.text("driver")?, reader.span_of("driver"))?;
    let options = options(ex, name, &reader, driver);
    let endpoints = endpoints(ex, name, &reader, driver);
    let operations = own_operations(ex, operations, driver);
    let (options, endpoints, (operations, asked_by_operations)) =
        (options?, endpoints?, operations?);
    let endpoint_spans: Vec<Span> = endpoint_nodes(&reader)
        .iter()
        .map(|(_, node)| node.span)
        .collect();
    let named = ex
        .evaluation
        .asked
        .iter()
        .filter(|(span, _)| endpoint_spans.contains(span));
    let named_by_endpoints = named.map(|(_, server)| server.clone()).collect();
    let plan = TargetPlan {
        name: name.to_owned(),
        label: reader.text("label").unwrap_or_default().to_owned(),
        driver: driver.name.to_owned(),
        endpoints,
        options,
        operations,
        stand_in_for: reader.text("stand_in_for").unwrap_or_default().to_owned(),
        copies: reader.count("copies").unwrap_or(1) as u32,
        held_in: reader.text("held_in").map(|place| match place {
            "memory" => HeldIn::Memory,
            _ => HeldIn::Disk,
        }),
        must_exist: reader.text("unavailable") == Some("fail"),
        allow_reset: reader.bool("allow_reset").unwrap_or(false),
        connect_timeout_ns: reader
            .nanoseconds("connect_timeout")
            .unwrap_or(10_000_000_000),
        durability: reader.text("durability").and_then(durability),
    };
    if !ex.all_used() {
        return None;
    }
    let mut asked = ex.evaluation.asked.clone();
    asked.extend(asked_by_operations);
    let servers = reader.list("servers").unwrap_or(&[]).iter();
    Some(ResolvedTarget {
        plan: plan.into(),
        driver,
        servers: servers.map(|server| (plain(server), server.span)).collect(),
        dataset: reader
            .text("dataset")
            .map(|name| (name.to_owned(), reader.span_of("dataset"))),
        asked,
        named_by_endpoints,
        doubles: doubles(&reader),
    })
}

fn durability(name: &str) -> Option<Durability> {
    use Durability::{Fsync, Group, Memory, Os, Unacknowledged};
    [Unacknowledged, Memory, Os, Group, Fsync]
        .into_iter()
        .find(|durability| durability.name() == name)
}

fn options(
    ex: &mut Extract<'_, '_>,
    target: &str,
    reader: &Reader<'_>,
    driver: &'static DriverSpec,
) -> Option<std::collections::BTreeMap<String, serde_json::Value>> {
    let Some(said) = reader.node("options") else {
        return Some(Default::default());
    };
    let targets = Place::TOP.table("targets");
    let place = targets.table(target);
    let said = &ex.fit(&place.table("options"), said, driver.options)?;
    let values = to_json(said).as_object().cloned().unwrap_or_default();
    if let Err(fault) = (driver.check_options)(&Options::new(driver.options, values)) {
        return ex.refuse(option_fault("bad-option", said, &fault));
    }
    let kept = ex.json(said).as_object().cloned().unwrap_or_default();
    Some(kept.into_iter().collect())
}

fn option_fault(code: &'static str, table: &Node, fault: &OptionFault) -> Diagnostic {
    let span = table
        .table()
        .and_then(|table| table.get(&fault.key))
        .map_or(table.span, |node| node.span);
    Diagnostic::error(code, span, fault.message.clone()).help(fault.help.clone())
}

/// (name of the list, endpoint), in order.
fn endpoint_nodes<'t>(reader: &Reader<'t>) -> Vec<(&'t str, &'t Node)> {
    match reader.node("endpoints").map(|node| &node.value) {
        Some(TreeValue::Array(items)) => items.iter().map(|item| ("", item)).collect(),
        Some(TreeValue::Table(table)) => {
            let lists = table.entries.iter();
            let lists = lists.filter_map(|entry| Some((entry.key.as_str(), entry.node.array()?)));
            lists
                .flat_map(|(name, items)| items.iter().map(move |item| (name, item)))
                .collect()
        }
        _ => Vec::new(),
    }
}

fn endpoints(
    ex: &mut Extract<'_, '_>,
    target: &str,
    reader: &Reader<'_>,
    driver: &'static DriverSpec,
) -> Option<Vec<EndpointGroup>> {
    let nodes = endpoint_nodes(reader);
    let Store::Server { parse, example, .. } = driver.store else {
        let Some((_, first)) = nodes.first() else {
            return Some(Vec::new());
        };
        let message = format!(
            "the driver `{}` has no endpoints: its store is inside the client",
            driver.name
        );
        return ex.refuse(
            Diagnostic::error("endpoints-not-used", first.span, message)
                .help("leave `endpoints` out"),
        );
    };
    if nodes.is_empty() {
        let message = format!(
            "the target `{target}` has no endpoint, and the driver `{}` needs one",
            driver.name
        );
        let help = format!("add `endpoints = [\"{example}\"]`");
        return ex.refuse(
            Diagnostic::error("no-endpoint", reader.span_of("endpoints"), message).help(help),
        );
    }
    let mut groups: Vec<EndpointGroup> = Vec::new();
    let mut good = true;
    for (name, node) in nodes {
        let rendered = plain(node);
        if let Err(fault) = parse(&rendered) {
            let range = Some(fault.start..fault.end);
            let span = ex.scope.narrow(node.span, &rendered, range);
            let mut diagnostic =
                Diagnostic::error("bad-endpoint", span, fault.message).help(fault.help);
            if span == node.span {
                diagnostic = diagnostic.label(format!("this is \"{rendered}\""));
            }
            let mask = ex.scope.mask_at(node.span);
            ex.scope.report(diagnostic, mask, ex.at);
            good = false;
        }
        let text = ex.text(node);
        match groups.iter_mut().find(|group| group.name == name) {
            Some(group) => group.endpoints.push(text),
            None => groups.push(EndpointGroup {
                name: name.to_owned(),
                endpoints: vec![text],
            }),
        }
    }
    good.then_some(groups)
}

/// Endpoints that stand twice in one list.
fn doubles(reader: &Reader<'_>) -> Vec<(Span, String)> {
    let mut seen = std::collections::HashSet::new();
    let nodes = endpoint_nodes(reader).into_iter();
    nodes
        .filter(|(name, node)| !seen.insert((*name, plain(node))))
        .map(|(_, node)| (node.span, plain(node)))
        .collect()
}

type Asked = Vec<(Span, String)>;

/// The scenario's own operations that have an entry for this driver, in order.
fn own_operations(
    ex: &mut Extract<'_, '_>,
    operations: Option<&Table>,
    driver: &'static DriverSpec,
) -> Option<(Vec<OperationPlan>, Asked)> {
    let mut plans = Some(Vec::new());
    let mut asked = Vec::new();
    for operation in operations.iter().flat_map(|table| &table.entries) {
        let Some(entry) = operation
            .node
            .table()
            .and_then(|drivers| drivers.entry(driver.name))
        else {
            continue;
        };
        if driver.operation.is_empty() {
            let message = format!(
                "the driver `{}` takes no operations of the scenario's own",
                driver.name
            );
            ex.report(Diagnostic::error(
                "unsupported-operation",
                entry.key_span,
                message,
            ));
            plans = None;
            continue;
        }
        match own_operation(ex, &operation.key, &entry.node, driver) {
            Some((plan, more)) => {
                asked.extend(more);
                plans.iter_mut().for_each(|plans| plans.push(plan.clone()));
            }
            None => plans = None,
        }
    }
    plans.map(|plans| (plans, asked))
}

fn own_operation(
    ex: &mut Extract<'_, '_>,
    name: &str,
    node: &Node,
    driver: &'static DriverSpec,
) -> Option<(OperationPlan, Asked)> {
    let evaluation: Evaluation = ex.scope.evaluate(node, Stage::Run, ex.at)?;
    let mut inner = Extract::new(&mut *ex.scope, &evaluation, ex.at, ex.drivers);
    let operations = Place::TOP.table("operations");
    let place = operations.table(name);
    let fitted = inner.fit(
        &place.table(driver.name),
        &evaluation.node,
        driver.operation,
    )?;
    let values = to_json(&fitted).as_object().cloned().unwrap_or_default();
    if let Err(fault) = (driver.check_operation)(&values) {
        return inner.refuse(option_fault("bad-option", &fitted, &fault));
    }
    let table = inner.json(&fitted);
    Some((
        OperationPlan {
            name: name.to_owned(),
            table,
        },
        evaluation.asked,
    ))
}
