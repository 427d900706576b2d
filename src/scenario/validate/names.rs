//! Names that expressions use: unlike each other, and unlike the words that expressions have already.

use super::Context;
use crate::diag::{Diagnostic, Diagnostics, Span};
use crate::op::Verb;

/// Functions of templates, and names that mean something of their own.
const RESERVED: &[&str] = &[
    "file",
    "range",
    "kib",
    "mib",
    "port",
    "address",
    "dir",
    "instance",
    "dataset_file",
    "env",
    "secret",
    "run_dir",
    "seed",
    "repeat",
    "probe",
    "dict",
    "namespace",
    "debug",
    "cases",
    "exclude",
    "window",
    "every",
];

/// Words of the expression language itself.
const KEYWORDS: &[&str] = &[
    "and", "or", "not", "in", "is", "if", "else", "for", "true", "false", "none", "loop", "self",
    "super",
];

pub(super) fn validate(scenario: &Context, diagnostics: &mut Diagnostics) {
    let mut taken: Vec<(&str, Span, &str)> = Vec::new();
    let mut named = |name, span, what: &'static str, diagnostics: &mut Diagnostics| {
        if let Some(fault) = reserved(name, span, what) {
            return diagnostics.push(fault);
        }
        match taken.iter().find(|(other, _, _)| *other == name) {
            Some((_, first, other)) => diagnostics.push(twice(name, span, what, *first, other)),
            None => taken.push((name, span, what)),
        }
    };
    for entry in scenario.entries("vars") {
        named(&entry.key, entry.key_span, "var", diagnostics);
    }
    for (name, span) in scenario.axes() {
        named(name, span, "axis", diagnostics);
    }
    for entry in scenario.entries("labels") {
        named(&entry.key, entry.key_span, "label", diagnostics);
    }
    for phase in scenario.phases() {
        if let Some(name) = phase.text("name") {
            named(name, phase.span_of("name"), "phase", diagnostics);
        }
    }
    operations(scenario, diagnostics);
    tables(scenario, diagnostics);
}

fn reserved(name: &str, span: Span, what: &str) -> Option<Diagnostic> {
    let why = match name {
        _ if KEYWORDS.contains(&name) => "is a word of expressions",
        "target" if what != "axis" => "is the run's target",
        _ if RESERVED.contains(&name) => "means something else in templates",
        _ => return None,
    };
    let message = format!("`{name}` cannot name {} {what}: it {why}", article(what));
    Some(Diagnostic::error("reserved-name", span, message).help("choose another name"))
}

fn article(what: &str) -> &'static str {
    match what.starts_with(['a', 'o']) {
        true => "an",
        false => "a",
    }
}

fn twice(name: &str, span: Span, what: &str, first: Span, other: &str) -> Diagnostic {
    let message = match what == other {
        true => format!("two {what}s are named `{name}`"),
        false => format!(
            "{} {what} and {} {other} are both named `{name}`",
            article(what),
            article(other)
        ),
    };
    Diagnostic::error("duplicate-name", span, message)
        .related(first, format!("the {other}"))
        .help("rename one of them: templates could not tell them apart")
}

fn operations(scenario: &Context, diagnostics: &mut Diagnostics) {
    for entry in scenario.entries("operations") {
        if Verb::built_in(&entry.key).is_some() {
            let message = format!(
                "`{}` is built in, so an operation of your own needs another name",
                entry.key
            );
            diagnostics.push(Diagnostic::error("reserved-name", entry.key_span, message));
        }
    }
}

fn tables(scenario: &Context, diagnostics: &mut Diagnostics) {
    let mut taken: Vec<(&str, Span)> = Vec::new();
    for table in scenario.top.tables("tables") {
        let Some(name) = table.text("name") else {
            continue;
        };
        let span = table.span_of("name");
        match taken.iter().find(|(other, _)| *other == name) {
            Some((_, first)) => diagnostics.push(
                Diagnostic::error(
                    "duplicate-name",
                    span,
                    format!("two tables are named `{name}`"),
                )
                .related(*first, "the first one")
                .help("each is a file of its own, so each needs a name of its own"),
            ),
            None => taken.push((name, span)),
        }
    }
}
