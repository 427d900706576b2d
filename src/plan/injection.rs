//! `faults` of a phase into the plan: what is done to which instance, and when; and whether the run has that instance.

use super::extract::Extract;
use super::scope::{At, Mask, Scope};
use super::server::ResolvedServer;
use super::{FaultAction, FaultPlan, PhasePlan, suit};
use crate::diag::{Diagnostic, Span, did_you_mean};
use crate::scenario::read::Reader;
use crate::units::format_duration;
use std::rc::Rc;
use std::time::Duration;

/// Where a fault says what.
pub struct FaultPlaces {
    server: Span,
    instance: Span,
}

/// In the order of their time; those of the same time as they are said.
pub fn extract(
    ex: &mut Extract<'_, '_>,
    phase: &Reader<'_>,
    duration_ns: Option<u64>,
) -> Option<Vec<(FaultPlan, FaultPlaces)>> {
    let mut faults = Vec::new();
    for said in phase.tables("faults") {
        let at_ns = said.nanoseconds("at").unwrap_or(0);
        if let Some(fault) = untimely(&said, at_ns, duration_ns) {
            // The rest is looked at all the same, so that every fault is told.
            ex.report(fault);
        }
        let plan = FaultPlan {
            at_ns,
            server: said.text("server").unwrap_or_default().to_owned(),
            instance: said.count("instance").map(|instance| instance as u32),
            action: said.text("action").and_then(FaultAction::parse)?,
        };
        let places = FaultPlaces {
            server: said.span_of("server"),
            instance: said.span_of("instance"),
        };
        faults.push((plan, places));
    }
    faults.sort_by_key(|(plan, _)| plan.at_ns);
    Some(faults)
}

fn untimely(said: &Reader<'_>, at_ns: u64, duration_ns: Option<u64>) -> Option<Diagnostic> {
    let span = said.span_of("at");
    let Some(duration_ns) = duration_ns else {
        let message = "a fault has its second, and this phase ends by a count, nobody knows when";
        let fault = Diagnostic::error("fault-without-duration", span, message);
        return Some(fault.help("give the phase a `duration` instead of its count"));
    };
    (at_ns >= duration_ns).then(|| {
        let text = |ns| format_duration(Duration::from_nanos(ns));
        let message = format!(
            "this would be at {}, and the phase ends after {}",
            text(at_ns),
            text(duration_ns)
        );
        let help = "`at` counts from the start of the measured time; make it less than `duration`";
        Diagnostic::error("out-of-range", span, message).help(help)
    })
}

/// Reports faults of servers or instances that the run has not. `mask` are the axes that choose and change the target.
pub fn check(
    scope: &mut Scope<'_>,
    phase: &PhasePlan,
    places: &[FaultPlaces],
    servers: &[(usize, u32, Rc<ResolvedServer>)],
    mask: Mask,
    at: At<'_>,
) -> bool {
    let mut good = true;
    for (fault, places) in phase.faults.iter().zip(places) {
        let server = servers.iter().map(|(_, _, server)| &server.plan);
        let server = server.into_iter().find(|plan| plan.name == fault.server);
        let (found, mask) = match server {
            None => (Some(unknown(scope, phase, fault, places)), mask),
            Some(server) => {
                let instances = scope.instances.get(&fault.server);
                let more = instances.map_or(0, |instances| instances.mask);
                let found = out_of_range(fault, server.instances, places);
                (found, mask | more)
            }
        };
        if let Some(diagnostic) = found {
            let mask = mask | scope.mask_at(diagnostic.span);
            scope.report(diagnostic, mask, at);
            good = false;
        }
    }
    good
}

fn unknown(
    scope: &Scope<'_>,
    phase: &PhasePlan,
    fault: &FaultPlan,
    places: &FaultPlaces,
) -> Diagnostic {
    let known = scope.server_names();
    if known.contains(&fault.server) {
        let what = format!("the phase `{}`", phase.name);
        return suit::server_fault(&what, &fault.server, places.server);
    }
    let help = match did_you_mean(&fault.server, known.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "faults are done to servers that dbbench starts: see [servers]".to_owned(),
    };
    let message = format!("there is no server `{}`", fault.server);
    Diagnostic::error("unknown-server", places.server, message).help(help)
}

fn out_of_range(fault: &FaultPlan, instances: u32, places: &FaultPlaces) -> Option<Diagnostic> {
    let server = &fault.server;
    match fault.instance {
        Some(instance) if instance > instances => {
            let message = match instances {
                1 => format!("`{server}` has one instance, and no number {instance}"),
                _ => format!("`{server}` has {instances} instances, and no number {instance}"),
            };
            Some(Diagnostic::error(
                "unknown-instance",
                places.instance,
                message,
            ))
        }
        None if instances > 1 => {
            let message = format!("`{server}` has {instances} instances; which one is not said");
            let fault = Diagnostic::error("unknown-instance", places.server, message);
            Some(fault.help("add `instance = 1`"))
        }
        _ => None,
    }
}
