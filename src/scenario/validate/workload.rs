//! `[workload]` and what phases and groups change of it: key formats, distributions, sizes, contents.

use super::{Context, literal};
use crate::diag::{Diagnostic, Diagnostics, list_of};
use crate::op::Verb;
use crate::scenario::read::{self, Reader};
use crate::scenario::tree::Node;

pub(super) fn validate(scenario: &Context, diagnostics: &mut Diagnostics) {
    let workload = scenario.top.table("workload");
    let base_keys = workload.and_then(|workload| workload.table("keys"));
    let base_values = workload.and_then(|workload| workload.table("values"));
    let mut keys: Vec<Reader> = base_keys.into_iter().collect();
    let mut values: Vec<Reader> = base_values.into_iter().collect();
    for part in parts(scenario) {
        keys.extend(part.table("keys"));
        values.extend(part.table("values"));
    }
    for keys in &keys {
        key_format(keys, diagnostics);
        distribution(keys, base_keys.as_ref(), diagnostics);
    }
    for values in &values {
        content(values, base_values.as_ref(), diagnostics);
        size(values, diagnostics);
    }
    size_is_said(scenario, base_values.as_ref(), diagnostics);
}

fn parts<'c>(scenario: &Context<'c>) -> Vec<Reader<'c>> {
    let mut parts = Vec::new();
    for phase in scenario.phases() {
        parts.push(phase);
        parts.extend(phase.tables("groups"));
    }
    parts
}

/// Whether a format has exactly one `%d`, `%Nd` or `%0Nd` and no other `%`.
pub fn key_format_is_valid(format: &str) -> bool {
    let Some((_, rest)) = format.split_once('%') else {
        return false;
    };
    let digits = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let width = &rest[..rest.len() - digits.len()];
    digits.starts_with('d') && width.len() <= 3 && !digits.contains('%')
}

fn key_format(keys: &Reader, diagnostics: &mut Diagnostics) {
    let Some(node) = keys.node("format") else {
        return;
    };
    if let Some(format) = literal(node)
        && !key_format_is_valid(format)
    {
        let message = "a key's format needs exactly one place for its number";
        diagnostics.push(
            Diagnostic::error("bad-key-format", node.span, message)
                .help("`%d`, or `%010d` for ten digits with leading zeros: \"user%010d\""),
        );
    }
}

/// Parameters that a distribution has.
pub fn distribution_parameters(name: &str) -> &'static [&'static str] {
    match name {
        "zipfian" => &["theta", "scrambled"],
        "latest" => &["theta"],
        "hotspot" => &["hot_keys", "hot_operations"],
        "exponential" => &["share"],
        _ => &[],
    }
}

fn distribution(keys: &Reader, base: Option<&Reader>, diagnostics: &mut Diagnostics) {
    let Some(node) = keys.node("distribution") else {
        return;
    };
    let table = Reader::new(node);
    let named = table.and_then(|table| table.node("name")).unwrap_or(node);
    let Some(name) = literal(named) else {
        return;
    };
    if let Some(table) = table {
        let allowed = distribution_parameters(name);
        for entry in &table.table.entries {
            let key = entry.key.as_str();
            if key != "name" && !allowed.contains(&key) && is_parameter(key) {
                let message = format!("`{name}` has no parameter `{key}`");
                let help = format!("its parameters: {}", list_of(allowed.iter().copied()));
                diagnostics
                    .push(Diagnostic::error("wrong-parameter", entry.key_span, message).help(help));
            }
        }
    }
    let counted = keys.has("count") || base.is_some_and(|base| base.has("count"));
    if name != "sequential" && !counted {
        let message = format!("keys chosen by `{name}` need to know how many there are");
        diagnostics.push(
            Diagnostic::error("no-key-count", named.span, message)
                .help("count = 100_000 beside it"),
        );
    }
}

fn is_parameter(key: &str) -> bool {
    ["theta", "scrambled", "hot_keys", "hot_operations", "share"].contains(&key)
}

fn content(values: &Reader, base: Option<&Reader>, diagnostics: &mut Diagnostics) {
    let file = values.has("file") || base.is_some_and(|base| base.has("file"));
    if values.text("content") == Some("file") && !file {
        let message = "`content = \"file\"` needs to know which";
        diagnostics.push(
            Diagnostic::error("missing-key", values.span_of("content"), message)
                .help("file = \"corpus.txt\" beside it"),
        );
    }
    let content = values
        .text("content")
        .or(base.and_then(|base| base.text("content")));
    if let Some(entry) = values.table.entry("file")
        && content.is_some_and(|content| content != "file")
        && !values.node("content").is_some_and(Node::is_template)
    {
        let message = "`file` is only read where `content = \"file\"`";
        diagnostics.push(
            Diagnostic::error("conflicting-keys", entry.key_span, message)
                .help("content = \"file\" beside it"),
        );
    }
}

fn size(values: &Reader, diagnostics: &mut Diagnostics) {
    let Some(table) = values.table("size") else {
        return;
    };
    if table.list("choices").is_some_and(<[Node]>::is_empty) {
        diagnostics.push(Diagnostic::error(
            "empty",
            table.span_of("choices"),
            "`choices` has no size",
        ));
    }
    let bytes = |key: &str| table.node(key).and_then(read::size);
    if let (Some(from), Some(to)) = (bytes("from"), bytes("to"))
        && from > to
    {
        let message = format!("sizes from {from} to {to} bytes are none");
        diagnostics.push(
            Diagnostic::error("empty-range", table.span_of("to"), message)
                .related(table.span_of("from"), "larger than `to`")
                .help("`from` is the smallest, `to` the largest"),
        );
    }
}

/// A built-in operation that writes or compares needs values, whose size has no sensible default.
fn size_is_said(scenario: &Context, base: Option<&Reader>, diagnostics: &mut Diagnostics) {
    if base.is_some_and(|base| base.has("size")) {
        return;
    }
    for phase in scenario.phases() {
        let mut parts = vec![phase];
        parts.extend(phase.tables("groups"));
        let said = |part: &Reader| {
            part.table("values")
                .is_some_and(|values| values.has("size"))
        };
        for part in &parts {
            if said(part) || said(&phase) {
                continue;
            }
            if let Some((name, span)) = writes(part) {
                let message =
                    format!("`{name}` writes values, and nothing says how large they are");
                diagnostics.push(
                    Diagnostic::error("no-value-size", span, message)
                        .help("in [workload.values]: size = \"1KiB\""),
                );
                return;
            }
        }
    }
}

fn writes<'c>(part: &Reader<'c>) -> Option<(&'c str, crate::diag::Span)> {
    let writing = |name: &str| {
        matches!(
            Verb::built_in(name),
            Some(Verb::Set | Verb::Insert | Verb::Update | Verb::ReadModifyWrite)
        )
    };
    let single = part
        .node("operation")
        .and_then(|node| Some((literal(node)?, node.span)));
    let mixed = part
        .table("mix")
        .map(|mix| mix.table.entries.as_slice())
        .unwrap_or(&[]);
    single
        .into_iter()
        .chain(
            mixed
                .iter()
                .map(|entry| (entry.key.as_str(), entry.key_span)),
        )
        .find(|(name, _)| writing(name))
}
