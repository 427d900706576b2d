//! What is allowed and probably not meant.

use super::estimate::{in_sequence, keys_of};
use super::phase::writes;
use super::resolve::Resolver;
use super::scope::{Mask, Scope};
use super::{GroupPlan, PhasePlan, RunPlan};
use crate::diag::{Diagnostic, Diagnostics, Span};
use crate::op::Verb;
use crate::scenario::tree::{Node, Table};

/// All warnings of a plan without faults.
pub fn find(
    scope: &Scope<'_>,
    resolver: &Resolver<'_>,
    root: &Table,
    runs: &[RunPlan],
) -> Vec<Diagnostic> {
    let mut warnings = Diagnostics::default();
    for parts in &resolver.parts {
        for (span, endpoint) in &parts.target.doubles {
            let message = format!(
                "the endpoint \"{endpoint}\" is listed twice, so it gets twice the threads"
            );
            warn(
                &mut warnings,
                Diagnostic::warning("double-endpoint", *span, message),
            );
        }
        let mut loaded: Option<&GroupPlan> = None;
        for phase in &parts.phases {
            let Some(plan) = &phase.plan else { continue };
            for (group, places) in plan.groups.iter().zip(&phase.groups) {
                if is_load(plan, group) && !in_sequence(group) {
                    let message = "this load chooses its keys at random: some are written more than once, others never";
                    let help = "load with `distribution = \"sequential\"`, read at random";
                    warn(
                        &mut warnings,
                        Diagnostic::warning("load-with-gaps", places.keys, message).help(help),
                    );
                }
                match loaded {
                    Some(load) => few_keys(load, group, places.keys, &mut warnings),
                    None if is_load(plan, group) => loaded = Some(group),
                    None => {}
                }
            }
        }
    }
    idle_axes(scope, resolver, root, runs, &mut warnings);
    warnings.list
}

/// One warning of a kind per place: the numbers in it may differ from run to run, and then the first run's stand.
fn warn(warnings: &mut Diagnostics, warning: Diagnostic) {
    let mut known = warnings.list.iter();
    if !known.any(|other| other.code == warning.code && other.span == warning.span) {
        warnings.push(warning);
    }
}

/// A phase by count that only writes, before others read.
fn is_load(phase: &PhasePlan, group: &GroupPlan) -> bool {
    phase.duration_ns.is_none()
        && group
            .mix
            .iter()
            .all(|entry| writes(&entry.operation) && !reads(&entry.operation))
}

fn reads(operation: &str) -> bool {
    matches!(
        Verb::built_in(operation),
        Some(Verb::Get | Verb::Scan | Verb::ReadModifyWrite)
    )
}

/// Reads that touch less than a tenth of what was loaded, by their count alone.
fn few_keys(load: &GroupPlan, group: &GroupPlan, span: Span, warnings: &mut Diagnostics) {
    let same_keys = load.keys.format == group.keys.format && load.keys.digest == group.keys.digest;
    let only_reads = group.mix.iter().all(|entry| reads(&entry.operation));
    let (stored, used) = (keys_of(load), keys_of(group));
    if same_keys && only_reads && used > 0 && used.saturating_mul(10) < stored {
        let message = format!("at most {used} of the {stored} loaded keys are used");
        warn(
            warnings,
            Diagnostic::warning("few-keys-used", span, message)
                .help("raise `count` or `operations`, or load fewer keys"),
        );
    }
}

/// Axes that no section reads: their runs would be repeats by another name.
fn idle_axes(
    scope: &Scope<'_>,
    resolver: &Resolver<'_>,
    root: &Table,
    runs: &[RunPlan],
    warnings: &mut Diagnostics,
) {
    let target: Mask = scope.axis("target").map_or(0, |axis| 1 << axis);
    let targets = resolver.targets.iter().map(|target| target.section.mask);
    let servers = resolver.servers.iter().map(|server| server.section.mask);
    let phases = resolver.phases.iter().map(|phase| phase.mask);
    let read = targets
        .chain(servers)
        .chain(phases)
        .fold(target, |all, mask| all | mask);
    let sweep = root.get("sweep").and_then(Node::table);
    for (position, axis) in scope.axes.iter().enumerate() {
        let several = runs
            .iter()
            .any(|run| run.point[position] != runs[0].point[position]);
        if read & (1 << position) != 0 || !several {
            continue;
        }
        let span = sweep.and_then(|sweep| sweep.entry(&axis.name).or_else(|| sweep.entry("cases")));
        let span = span.map_or(Span::NONE, |entry| entry.key_span);
        let message = format!(
            "the axis `{}` changes nothing: no target, server or phase reads it",
            axis.name
        );
        let help = format!(
            "use `{{{{ {} }}}}` somewhere; to repeat runs say `repeats`",
            axis.name
        );
        warn(
            warnings,
            Diagnostic::warning("idle-axis", span, message).help(help),
        );
    }
}
