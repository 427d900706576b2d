//! Whether the parts of a run suit each other: servers that are asked for are there and can be started in an order, and
//! the driver can do what the phases ask.

use super::extract::Extract;
use super::phase::ResolvedPhase;
use super::resolve::Named;
use super::scope::{At, Mask, Scope};
use super::server::ResolvedServer;
use super::target::ResolvedTarget;
use crate::diag::{Diagnostic, Span, did_you_mean};
use crate::op::Verb;
use crate::scenario::tree::Node;
use std::rc::Rc;

/// Reports servers of a target, or asked for by its strings, that are not there.
pub fn servers_are_there(ex: &mut Extract<'_, '_>, target: &ResolvedTarget) -> bool {
    let known: Vec<String> = ex.scope.server_names();
    let mut good = true;
    for (name, span) in &target.servers {
        if !known.contains(name) {
            let help = match did_you_mean(name, known.iter().map(String::as_str)) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("add `[servers.{name}]` with its `command`"),
            };
            ex.report(
                Diagnostic::error(
                    "unknown-server",
                    *span,
                    format!("there is no server `{name}`"),
                )
                .help(help),
            );
            good = false;
        }
    }
    for (span, name) in &target.asked {
        if !target.servers.iter().any(|(server, _)| server == name) {
            let message = format!(
                "the target `{}` asks for the server `{name}`, and does not start it",
                target.plan.name
            );
            let help = format!("add to the target: `servers = [\"{name}\"]`");
            ex.report(Diagnostic::error("server-not-in-run", *span, message).help(help));
            good = false;
        }
    }
    good
}

type Started = (usize, u32, Rc<ResolvedServer>);

/// Servers in the order in which they are started: as the target says, those that must be ready first before.
pub fn start_order(
    scope: &mut Scope<'_>,
    mut waiting: Vec<Started>,
    of_run: &[(String, Span)],
    all: &[Named<ResolvedServer>],
    at: At<'_>,
) -> Option<Vec<Started>> {
    let in_run = |name: &String| of_run.iter().any(|(server, _)| server == name);
    let mut good = true;
    for (position, _, server) in &waiting {
        for (span, asked) in server.asked.iter().filter(|(_, asked)| !in_run(asked)) {
            let fault = server_fault(&format!("`{}`", server.plan.name), asked, *span);
            let mask = all[*position].section.mask;
            scope.report(fault, mask, at);
            good = false;
        }
        for name in server
            .plan
            .after
            .iter()
            .filter(|name| !all.iter().any(|server| server.name == **name))
        {
            let span = place_in_list(&all[*position].section.node, "after", name);
            scope.faults.add_plain(Diagnostic::error(
                "unknown-server",
                span,
                format!("there is no server `{name}`"),
            ));
            good = false;
        }
    }
    let mut started: Vec<Started> = Vec::new();
    while !waiting.is_empty() {
        let ready = |server: &ResolvedServer| {
            let mut needed = server.plan.after.iter().filter(|name| in_run(name));
            needed.all(|name| started.iter().any(|(_, _, done)| done.plan.name == *name))
        };
        let Some(next) = waiting.iter().position(|(_, _, server)| ready(server)) else {
            let names: Vec<&str> = waiting
                .iter()
                .map(|(_, _, server)| server.plan.name.as_str())
                .collect();
            let message = format!(
                "these servers wait for each other: `{}`",
                names.join("`, `")
            );
            let span = place_in_list(&all[waiting[0].0].section.node, "after", "");
            scope
                .faults
                .add_plain(Diagnostic::error("circular-after", span, message));
            return None;
        };
        started.push(waiting.remove(next));
    }
    good.then_some(started)
}

/// What asks for a server that the run does not start.
pub fn server_fault(what: &str, server: &str, span: Span) -> Diagnostic {
    let message = format!("{what} asks for the server `{server}`, which is not in this run");
    Diagnostic::error("server-not-in-run", span, message)
}

fn place_in_list(node: &Node, key: &str, item: &str) -> Span {
    let Some(list) = node.table().and_then(|table| table.get(key)) else {
        return node.span;
    };
    let found = list
        .array()
        .and_then(|items| items.iter().find(|node| node.string() == Some(item)));
    found.map_or(list.span, |node| node.span)
}

/// Reports what a phase asks and the run's target cannot do. `mask` are the axes that choose and change the target.
pub fn phase_suits(
    scope: &mut Scope<'_>,
    target: &ResolvedTarget,
    phase: &ResolvedPhase,
    mask: Mask,
    at: At<'_>,
) -> bool {
    let Some(plan) = &phase.plan else {
        return true;
    };
    let before = scope.faults.count();
    let mut good = true;
    for (group, places) in plan.groups.iter().zip(&phase.groups) {
        let mut report = |span: Span, diagnostic: Diagnostic| {
            let mask = mask | scope.mask_at(span);
            scope.report(diagnostic, mask, at);
            good = false;
        };
        if group.replay.is_some() && !target.driver.replay {
            let message = format!(
                "the driver `{}` executes no statements of a log",
                target.driver.name
            );
            let fault = Diagnostic::error("no-replay", places.operations[0], message)
                .help("replay into mysql, postgres or sqlite");
            report(places.operations[0], fault);
        }
        let made = group.mix.iter().zip(&places.operations);
        for (entry, span) in made.filter(|_| group.replay.is_none()) {
            if let Some(fault) = operation_fault(target, &entry.operation, *span) {
                report(*span, fault);
            }
        }
        if group.pipeline > 1 && !target.driver.pipeline {
            let message = format!("the driver `{}` has no `pipeline`", target.driver.name);
            let fault = Diagnostic::error("no-pipeline", places.pipeline, message)
                .help("leave `pipeline` out, or make it 1");
            report(places.pipeline, fault);
        }
        if let Some(fault) = endpoints_fault(target, &group.endpoints, places.endpoints) {
            report(places.endpoints, fault);
        }
    }
    let once = plan.prepare.iter().chain(&plan.cleanup).zip(&phase.once);
    let once = once.filter_map(|(operation, span)| operation_fault(target, operation, *span));
    let restarts = plan.restart_servers.iter().zip(&phase.restarts);
    let restarts = restarts.filter_map(|(server, span)| {
        let in_run = target.servers.iter().any(|(name, _)| name == server);
        (!in_run).then(|| server_fault(&format!("the phase `{}`", phase.name), server, *span))
    });
    for fault in once.chain(restarts).collect::<Vec<_>>() {
        let mask = mask | scope.mask_at(fault.span);
        scope.report(fault, mask, at);
        good = false;
    }
    good && scope.faults.count() == before
}

pub fn operation_fault(target: &ResolvedTarget, operation: &str, span: Span) -> Option<Diagnostic> {
    let driver = target.driver;
    if target
        .plan
        .operations
        .iter()
        .any(|own| own.name == operation)
    {
        return None;
    }
    let can: Vec<&str> = driver.verbs.iter().map(|verb| verb.name()).collect();
    if let Some(verb) = Verb::built_in(operation) {
        if driver.can(verb) {
            return None;
        }
        let message = format!("the driver `{}` cannot do `{operation}`", driver.name);
        let help = format!("it can do: {}", can.join(", "));
        return Some(Diagnostic::error("unsupported-operation", span, message).help(help));
    }
    let own = target.plan.operations.iter().map(|own| own.name.as_str());
    let help = match did_you_mean(operation, own.chain(can.iter().copied())) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!(
            "add `[operations.{operation}]` with an entry `{}`",
            driver.name
        ),
    };
    let message = format!(
        "the target `{}` has no operation `{operation}`",
        target.plan.name
    );
    Some(Diagnostic::error("unknown-operation", span, message).help(help))
}

fn endpoints_fault(target: &ResolvedTarget, wanted: &str, span: Span) -> Option<Diagnostic> {
    let groups = &target.plan.endpoints;
    if groups.is_empty() && wanted.is_empty() || groups.iter().any(|group| group.name == wanted) {
        return None;
    }
    let names: Vec<&str> = groups
        .iter()
        .map(|group| group.name.as_str())
        .filter(|name| !name.is_empty())
        .collect();
    let fault = |message: String| Diagnostic::error("unknown-endpoints", span, message);
    if names.is_empty() {
        return Some(
            fault(format!(
                "the target `{}` has no named endpoints",
                target.plan.name
            ))
            .help("leave `endpoints` out"),
        );
    }
    let help = match did_you_mean(wanted, names.iter().copied()).filter(|_| !wanted.is_empty()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!(
            "say `endpoints = \"{}\"`; there are: {}",
            names[0],
            names.join(", ")
        ),
    };
    Some(
        fault(match wanted {
            "" => format!(
                "the endpoints of `{}` have names, and none is chosen here",
                target.plan.name
            ),
            _ => format!(
                "the target `{}` has no endpoints `{wanted}`",
                target.plan.name
            ),
        })
        .help(help),
    )
}
