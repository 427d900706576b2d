//! `[servers.NAME]` into the plan.

use super::extract::{Extract, plain};
use super::{AfterReady, FileContent, FilePlan, PortPlan, Ready, Restart, ServerPlan};
use crate::diag::{Diagnostic, Span};
use crate::scenario::check::Place;
use crate::scenario::model::SERVER;
use crate::scenario::read::Reader;
use crate::scenario::tree::{Node, Value as TreeValue};
use crate::template::Text;
use std::collections::BTreeMap;

/// A server of the plan, and what is checked once the run is known.
pub struct ResolvedServer {
    pub plan: std::sync::Arc<ServerPlan>,
    /// Servers that its strings ask for, and where.
    pub asked: Vec<(Span, String)>,
}

/// `driver_is_ready`: an endpoint of the target names this server, so where `ready` is not said the driver says so.
pub fn extract(
    ex: &mut Extract<'_, '_>,
    name: &str,
    driver_is_ready: bool,
) -> Option<ResolvedServer> {
    let servers = Place::TOP.table("servers");
    let node = ex.fit(&servers.table(name), &ex.evaluation.node, SERVER)?;
    let reader = Reader::new(&node)?;
    let command = ex.texts_of(&reader, "command");
    if command.is_empty() {
        let fault = Diagnostic::error(
            "empty",
            reader.span_of("command"),
            "a command has at least its program",
        );
        return ex.refuse(fault);
    }
    let ports = ports(&reader);
    let ready = match reader.table("ready") {
        Some(said) => ready(ex, &said, &ports)?,
        None if driver_is_ready => Ready::Driver,
        None => match ports.first() {
            Some(port) => Ready::Tcp(port.name.clone()),
            None => {
                let message =
                    format!("how dbbench sees that `{name}` is ready is not said: it has no port");
                let help = "add `ready = { log = \"...\" }` or `ready = { command = [...] }`";
                return ex.refuse(Diagnostic::error("no-ready", node.span, message).help(help));
            }
        },
    };
    let stop = reader.table("stop");
    let plan = ServerPlan {
        name: name.to_owned(),
        instances: reader.count("instances").unwrap_or(1) as u32,
        command,
        files: files(ex, &reader)?,
        setup: commands(ex, &reader, "setup"),
        after_ready: match reader.table("after_ready") {
            Some(said) => Some(after_ready(ex, &said)?),
            None => None,
        },
        environment: environment(ex, &reader),
        user: reader.text("user").unwrap_or_default().to_owned(),
        cpus: cpus(ex, &reader)?,
        working_directory: ex.text_of(&reader, "working_directory"),
        ports,
        after: owned(reader.texts("after")),
        ready,
        ready_timeout_ns: reader
            .nanoseconds("ready_timeout")
            .unwrap_or(60_000_000_000),
        stop_signal: stop
            .and_then(|stop| stop.text("signal"))
            .unwrap_or("TERM")
            .to_owned(),
        stop_timeout_ns: stop
            .and_then(|stop| stop.nanoseconds("timeout"))
            .unwrap_or(10_000_000_000),
        restart: match reader.text("restart") {
            Some("target") => Restart::Target,
            Some("never") => Restart::Never,
            _ => Restart::Run,
        },
        keep_data: reader.bool("keep_data").unwrap_or(false),
        memory_bytes: reader.size("memory").unwrap_or(0),
        requires: owned(reader.texts("requires")),
        install: reader.text("install").unwrap_or_default().to_owned(),
        setup_timeout_ns: reader
            .nanoseconds("setup_timeout")
            .unwrap_or(60_000_000_000),
    };
    ex.all_used().then(|| ResolvedServer {
        plan: plan.into(),
        asked: ex.evaluation.asked.clone(),
    })
}

fn owned(texts: Vec<&str>) -> Vec<String> {
    texts.into_iter().map(str::to_owned).collect()
}

fn ports(reader: &Reader<'_>) -> Vec<PortPlan> {
    match reader.node("ports").map(|node| &node.value) {
        Some(TreeValue::Array(names)) => names
            .iter()
            .filter_map(Node::string)
            .map(|name| PortPlan {
                name: name.to_owned(),
                fixed: None,
            })
            .collect(),
        Some(TreeValue::Table(table)) => table
            .entries
            .iter()
            .map(|entry| PortPlan {
                name: entry.key.clone(),
                fixed: entry
                    .node
                    .integer()
                    .and_then(|port| u16::try_from(port).ok()),
            })
            .collect(),
        _ => vec![PortPlan {
            name: "main".to_owned(),
            fixed: None,
        }],
    }
}

fn ready(ex: &mut Extract<'_, '_>, said: &Reader<'_>, ports: &[PortPlan]) -> Option<Ready> {
    if let Some(port) = said.text("tcp") {
        has_port(ex, ports, port, said.span_of("tcp"))?;
        return Some(Ready::Tcp(port.to_owned()));
    }
    if let Some(path) = said.text("http") {
        has_port(ex, ports, "main", said.span_of("http"))?;
        return Some(Ready::Http(path.to_owned()));
    }
    if let Some(log) = said.text("log") {
        return Some(Ready::Log(log.to_owned()));
    }
    if said.has("command") {
        return Some(Ready::Command(ex.texts_of(said, "command")));
    }
    match said.bool("driver") {
        Some(true) => Some(Ready::Driver),
        _ => {
            let message = "`driver = false` does not say when the server is ready";
            ex.refuse(Diagnostic::error(
                "no-ready",
                said.span_of("driver"),
                message,
            ))
        }
    }
}

fn has_port(ex: &mut Extract<'_, '_>, ports: &[PortPlan], name: &str, span: Span) -> Option<()> {
    if ports.iter().any(|port| port.name == name) {
        return Some(());
    }
    let known: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
    let message = format!(
        "the server has no port `{name}`; it has: {}",
        known.join(", ")
    );
    ex.refuse(Diagnostic::error("unknown-port", span, message))
}

fn files(ex: &mut Extract<'_, '_>, reader: &Reader<'_>) -> Option<Vec<FilePlan>> {
    let mut files = Vec::new();
    let entries = reader
        .table("files")
        .map(|files| files.table.entries.as_slice());
    for entry in entries.unwrap_or_default() {
        if !stays_inside(&entry.key) {
            let message = format!("\"{}\" leads out of the server's directory", entry.key);
            ex.report(Diagnostic::error("bad-path", entry.key_span, message));
            continue;
        }
        let content = match Reader::new(&entry.node) {
            Some(copy) => {
                let from = copy.text("from").unwrap_or_default();
                let (absolute, sha256) = ex.hash_of(from, copy.span_of("from"))?;
                FileContent::Copy {
                    from: from.to_owned(),
                    sha256,
                    absolute,
                }
            }
            None => FileContent::Text(ex.text(&entry.node)),
        };
        files.push(FilePlan {
            path: entry.key.clone(),
            content,
        });
    }
    Some(files)
}

fn stays_inside(path: &str) -> bool {
    use std::path::Component;
    std::path::Path::new(path)
        .components()
        .all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

fn commands(ex: &Extract<'_, '_>, reader: &Reader<'_>, key: &str) -> Vec<Vec<Text>> {
    let commands = reader.list(key).unwrap_or(&[]);
    commands
        .iter()
        .filter_map(Node::array)
        .map(|command| ex.texts(command))
        .collect()
}

fn after_ready(ex: &mut Extract<'_, '_>, said: &Reader<'_>) -> Option<AfterReady> {
    if said.has("command") {
        return Some(AfterReady::Command(ex.texts_of(said, "command")));
    }
    let driver = said.text("driver").unwrap_or_default();
    ex.driver(driver, said.span_of("driver"))?;
    Some(AfterReady::Statements {
        driver: driver.to_owned(),
        endpoint: ex
            .text_of(said, "endpoint")
            .unwrap_or(Text::Plain(String::new())),
        statements: ex.texts_of(said, "statements"),
    })
}

fn environment(ex: &Extract<'_, '_>, reader: &Reader<'_>) -> BTreeMap<String, Text> {
    let entries = reader.table("env").map(|env| env.table.entries.as_slice());
    let entries = entries.unwrap_or_default().iter();
    entries
        .map(|entry| (entry.key.clone(), ex.text(&entry.node)))
        .collect()
}

fn cpus(ex: &mut Extract<'_, '_>, reader: &Reader<'_>) -> Option<String> {
    let text = reader.node("cpus").map(plain).unwrap_or_default();
    match crate::units::parse_cpus(&text) {
        Ok(_) => Some(text),
        Err(message) => ex.refuse(Diagnostic::error(
            "wrong-cpus",
            reader.span_of("cpus"),
            message,
        )),
    }
}
