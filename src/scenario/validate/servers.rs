//! `[servers]`: commands, ports, readiness, what they wait for.

use super::{Context, literal, unknown};
use crate::diag::{Diagnostic, Diagnostics};
use crate::scenario::read::Reader;
use crate::scenario::tree::{Entry, Node};

pub(super) fn validate(scenario: &Context, diagnostics: &mut Diagnostics) {
    for entry in scenario.entries("servers") {
        if let Some(server) = Reader::new(&entry.node) {
            command(&server, diagnostics);
            ready(&server, diagnostics);
            after(scenario, entry, &server, diagnostics);
            files(&server, diagnostics);
        }
    }
}

fn command(server: &Reader, diagnostics: &mut Diagnostics) {
    if server.list("command").is_some_and(<[Node]>::is_empty) {
        let span = server.span_of("command");
        diagnostics.push(
            Diagnostic::error("empty", span, "`command` names no program")
                .help("a list: the program, then its arguments"),
        );
    }
}

/// Names of the ports: of a list or a table.
fn ports<'c>(server: &Reader<'c>) -> Option<Vec<&'c str>> {
    let node = server.node("ports")?;
    if let Some(table) = node.table() {
        return Some(table.keys().collect());
    }
    Some(node.array()?.iter().filter_map(Node::string).collect())
}

fn ready(server: &Reader, diagnostics: &mut Diagnostics) {
    let Some(ready) = server.table("ready") else {
        return;
    };
    let known = ports(server).unwrap_or_default();
    if let Some(node) = ready.node("tcp")
        && let Some(port) = literal(node)
        && !known.contains(&port)
    {
        diagnostics.push(unknown("unknown-port", "port", node, &known));
    }
    if ready.bool("driver") == Some(false) {
        let message = "`driver = false` says nothing of when the server is ready";
        diagnostics.push(
            Diagnostic::error("out-of-range", ready.span_of("driver"), message)
                .help("leave `ready` out, or say `{ tcp = \"main\" }`"),
        );
    }
}

fn after(scenario: &Context, entry: &Entry, server: &Reader, diagnostics: &mut Diagnostics) {
    let known = scenario.names("servers");
    for node in server.list("after").unwrap_or(&[]) {
        match literal(node) {
            Some(name) if name == entry.key => {
                let message = format!("`{name}` cannot wait for itself");
                diagnostics.push(Diagnostic::error("circular-after", node.span, message));
            }
            Some(name) if !known.contains(&name) => {
                diagnostics.push(unknown("unknown-server", "server", node, &known));
            }
            _ => {}
        }
    }
    if let Some(circle) = circle(scenario, &entry.key) {
        let message = format!("servers wait for each other: {}", circle.join(" -> "));
        diagnostics.push(Diagnostic::error(
            "circular-after",
            server.span_of("after"),
            message,
        ));
    }
}

/// The way from a server back to itself through `after`, told once, for the first server of the circle.
fn circle<'c>(scenario: &Context<'c>, start: &'c str) -> Option<Vec<&'c str>> {
    let mut way = vec![start];
    while way.len() <= scenario.entries("servers").len() {
        let here = way[way.len() - 1];
        let entry = scenario
            .entries("servers")
            .iter()
            .find(|entry| entry.key == here)?;
        let server = Reader::new(&entry.node)?;
        let next = server
            .texts("after")
            .into_iter()
            .find(|name| scenario.names("servers").contains(name))?;
        way.push(next);
        if next == start {
            let first = way.iter().min() == Some(&start);
            return (first && way.len() > 2).then_some(way);
        }
    }
    None
}

fn files(server: &Reader, diagnostics: &mut Diagnostics) {
    let Some(files) = server.table("files") else {
        return;
    };
    for entry in &files.table.entries {
        let outside = entry.key.starts_with('/') || entry.key.split('/').any(|part| part == "..");
        if outside {
            let message = format!("`{}` lies outside the server's directory", entry.key);
            diagnostics.push(
                Diagnostic::error("bad-path", entry.key_span, message).help(
                    "files are written into the server's own directory; give a path inside it",
                ),
            );
        }
    }
}
