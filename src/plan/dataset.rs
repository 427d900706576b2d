//! `[datasets.NAME]` into the plan.

use super::extract::{Extract, hex};
use super::input::Merged;
use super::phase::{self, ResolvedPhase};
use super::scope::Scope;
use super::scope::{At, Mask};
use super::server::ResolvedServer;
use super::suit::phase_suits;
use super::target::ResolvedTarget;
use super::{DatasetPlan, Restore};
use crate::diag::{Diagnostic, Span, did_you_mean};
use crate::scenario::check::Place;
use crate::scenario::model::DATASET;
use crate::scenario::read::Reader;
use crate::scenario::tree::Node;
use crate::template::Text;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Phases of datasets are numbered from here, so that none has the operations of a measured one.
const FIRST_ORDINAL: u32 = 1 << 20;

/// A dataset of the plan, and what is checked once the run is known.
pub struct ResolvedDataset {
    name: String,
    servers: Option<Vec<(String, Span)>>,
    phases: Vec<ResolvedPhase>,
    artifacts: BTreeMap<String, Text>,
    restore: Restore,
    keep: bool,
}

pub fn extract(ex: &mut Extract<'_, '_>, name: &str, number: u32) -> Option<ResolvedDataset> {
    let datasets = Place::TOP.table("datasets");
    let node = ex.fit(&datasets.table(name), &ex.evaluation.node, DATASET)?;
    let reader = Reader::new(&node)?;
    let nodes = reader.list("phases").unwrap_or(&[]).to_vec();
    if nodes.is_empty() {
        let message = format!("nothing fills the dataset `{name}`");
        let help = format!("add a `[[datasets.{name}.phases]]`");
        let fault = Diagnostic::error("empty", reader.span_of("phases"), message);
        return ex.refuse(fault.help(help));
    }
    let mut phases = Vec::new();
    for (position, node) in nodes.iter().enumerate() {
        let ordinal = FIRST_ORDINAL + number * 1_000 + position as u32;
        phases.push(phase::extract_node(ex, node, ordinal));
        if let Some(said) = Reader::new(node).filter(|said| said.has("faults")) {
            let message = "a dataset is filled without faults";
            let fault = Diagnostic::error("fault-in-dataset", said.span_of("faults"), message);
            ex.report(fault.help("do them in one of the scenario's own [[phases]]"));
            phases.push(None);
        }
    }
    let phases = phases.into_iter().collect::<Option<Vec<_>>>()?;
    let servers = reader.list("servers").map(|nodes| {
        let named = nodes.iter();
        let named = named.filter_map(|node| Some((node.string()?.to_owned(), node.span)));
        named.collect()
    });
    let artifacts = reader.table("artifacts");
    let artifacts = artifacts.map(|table| table.table.entries.as_slice());
    let artifacts = artifacts.unwrap_or_default().iter();
    let resolved = ResolvedDataset {
        name: name.to_owned(),
        servers,
        phases,
        artifacts: artifacts
            .map(|entry| (entry.key.clone(), ex.text(&entry.node)))
            .collect(),
        restore: match reader.text("restore") {
            Some("in_place") => Restore::InPlace,
            _ => Restore::Copy,
        },
        keep: reader.bool("keep").unwrap_or(false),
    };
    ex.all_used().then_some(resolved)
}

/// The sections of all datasets, their phases merged as those of the top level are.
pub fn sections(
    merged: &Merged<'_>,
    datasets: &[crate::scenario::tree::Entry],
) -> Vec<(String, Node)> {
    datasets
        .iter()
        .map(|entry| {
            let mut node = entry.node.clone();
            if let Some(table) = node.table_mut()
                && let Some(phases) = table.get_mut("phases")
                && let Some(items) = phases.array_mut()
            {
                for item in items.iter_mut() {
                    *item = merged.phase(item);
                }
            }
            (entry.key.clone(), node)
        })
        .collect()
}

/// What a run of this target uses of it; None where there is a fault, which is reported. `mask` are the axes that choose
/// and change the target.
pub fn of_run(
    scope: &mut Scope<'_>,
    dataset: &ResolvedDataset,
    target: &ResolvedTarget,
    servers: &[(usize, u32, Rc<ResolvedServer>)],
    seed: u64,
    mask: Mask,
    at: At<'_>,
) -> Option<DatasetPlan> {
    let mut good = true;
    for phase in &dataset.phases {
        good &= phase_suits(scope, target, phase, mask, at);
    }
    let of_target = |name: &String| target.servers.iter().any(|(server, _)| server == name);
    for (name, span) in dataset.servers.iter().flatten() {
        if !of_target(name) {
            let known = target.servers.iter().map(|(server, _)| server.as_str());
            let help = match did_you_mean(name, known) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("add to the target: `servers = [\"{name}\"]`"),
            };
            let message = format!(
                "the dataset `{}` is held by `{name}`, which the target `{}` does not start",
                dataset.name, target.plan.name
            );
            let fault = Diagnostic::error("server-not-in-run", *span, message).help(help);
            scope.report(fault, mask, at);
            good = false;
        }
    }
    if !good {
        return None;
    }
    let holds = |server: &ResolvedServer| match &dataset.servers {
        None => true,
        Some(named) => named.iter().any(|(name, _)| *name == server.plan.name),
    };
    let held_by = servers.iter().map(|(_, _, server)| server);
    let held_by: Vec<_> = held_by.filter(|server| holds(server)).collect();
    let phases: Vec<_> = dataset
        .phases
        .iter()
        .filter_map(|phase| phase.plan.clone())
        .collect();
    let mut plan = DatasetPlan {
        name: dataset.name.clone(),
        identity: String::new(),
        servers: held_by
            .iter()
            .map(|server| server.plan.name.clone())
            .collect(),
        phases,
        artifacts: dataset.artifacts.clone(),
        restore: dataset.restore,
        keep: dataset.keep,
    };
    let servers: Vec<_> = held_by.iter().map(|server| &*server.plan).collect();
    plan.identity = identity(&plan, target, &servers, seed);
    Some(plan)
}

/// The same for two runs that can share one: over all that filling it reads.
fn identity(
    plan: &DatasetPlan,
    target: &ResolvedTarget,
    servers: &[&super::ServerPlan],
    seed: u64,
) -> String {
    let used = |name: &String| {
        plan.phases.iter().any(|phase| {
            let groups = phase.groups.iter();
            let mut mixed = groups.flat_map(|group| &group.mix);
            mixed.any(|entry| entry.operation == *name)
                || phase.prepare.contains(name)
                || phase.cleanup.contains(name)
        })
    };
    let operations = target.plan.operations.iter();
    let operations: Vec<_> = operations.filter(|own| used(&own.name)).collect();
    let read = serde_json::json!({
        "driver": target.plan.driver,
        "endpoints": target.plan.endpoints,
        "options": target.plan.options,
        "operations": operations,
        "servers": servers,
        "phases": plan.phases,
        "artifacts": plan.artifacts,
        "seed": seed,
    });
    hex(&Sha256::digest(read.to_string().as_bytes())[..12])
}
