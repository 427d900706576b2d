//! The rules of `restart`: what stays up over several runs must not depend on an axis that changes between them.

use super::nodes::for_each_string;
use super::resolve::Resolver;
use super::scope::{At, Key, Mask, Scope, axis_names};
use super::{Restart, RunPlan};
use crate::diag::Diagnostic;
use std::collections::HashSet;

/// Reports strings of servers that would change while their server stays up.
pub fn check(scope: &mut Scope<'_>, resolver: &Resolver<'_>, runs: &[RunPlan]) {
    for server in &resolver.servers {
        let restarts = restarts_of(resolver, &server.name);
        let allowed = match restarts {
            Some(Restart::Never) => 0,
            Some(Restart::Target) => scope.axis("target").map_or(0, |axis| 1 << axis),
            _ => continue,
        };
        let mut faults = Vec::new();
        for_each_string(&server.section.node, &mut |_, span| {
            let mask = scope.mask_at(span) & !allowed;
            if mask != 0 && changes(mask, &server.name, resolver, runs) {
                faults.push((span, mask));
            }
        });
        for (span, mask) in faults {
            let policy = if restarts == Some(Restart::Never) {
                "never"
            } else {
                "target"
            };
            let message = format!(
                "`{}` stays up (`restart = \"{policy}\"`), and this changes with {}",
                server.name,
                axis_names(&scope.axes, mask)
            );
            let help = "say `restart = \"run\"`, or do not use the axis here";
            scope
                .faults
                .add_plain(Diagnostic::error("restart-axis", span, message).help(help));
        }
    }
}

fn restarts_of(resolver: &Resolver<'_>, name: &str) -> Option<Restart> {
    let servers = resolver.shapes.iter().flat_map(|shape| &shape.servers);
    servers
        .into_iter()
        .find(|server| server.name == name)
        .map(|server| server.restart)
}

/// Whether the runs that have the server differ in the axes of the mask.
fn changes(mask: Mask, name: &str, resolver: &Resolver<'_>, runs: &[RunPlan]) -> bool {
    let mut first: HashSet<Key> = HashSet::new();
    runs.iter()
        .filter(|run| {
            resolver.shapes[run.shape as usize]
                .servers
                .iter()
                .any(|server| server.name == name)
        })
        .any(|run| {
            let at = At {
                point: &run.point,
                repeat: run.repeat,
            };
            first.insert(at.key(mask)) && first.len() > 1
        })
}
