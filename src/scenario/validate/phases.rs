//! `[[phases]]` and `[operations]`: what each thread does, how long, and whether the targets' drivers can.

use super::{Context, literal, targets, unknown};
use crate::diag::{Diagnostic, Diagnostics, Span, did_you_mean, there_are};
use crate::op::Verb;
use crate::scenario::read::Reader;
use crate::scenario::tree::{Entry, Node};

/// Keys that say how long by count.
const COUNTS: [&str; 2] = ["operations", "operations_per_thread"];

pub(super) fn validate(scenario: &Context, diagnostics: &mut Diagnostics) {
    for operation in scenario.entries("operations") {
        for entry in operation
            .node
            .table()
            .map_or(&[][..], |table| &table.entries)
        {
            targets::operation_entry(scenario, operation, entry, diagnostics);
        }
    }
    if scenario.top.list("phases").is_some_and(<[Node]>::is_empty) {
        let message = "a scenario needs at least one phase";
        diagnostics.push(Diagnostic::error(
            "empty",
            scenario.top.span_of("phases"),
            message,
        ));
    }
    for phase in scenario.phases() {
        what(&phase, diagnostics);
        how_long(&phase, diagnostics);
        group_names(&phase, diagnostics);
        for part in parts(&phase) {
            operations(scenario, &phase, &part, diagnostics);
            endpoints(scenario, &phase, &part, diagnostics);
            pipeline(scenario, &phase, &part, diagnostics);
            beside_a_replay(&part, diagnostics);
        }
    }
}

/// The phase and its groups: each may say the same.
fn parts<'c>(phase: &Reader<'c>) -> Vec<Reader<'c>> {
    let mut parts = vec![*phase];
    parts.extend(phase.tables("groups"));
    parts
}

fn name_of(part: &Reader) -> String {
    part.text("name")
        .map_or("this".to_owned(), |name| format!("`{name}`"))
}

fn conflict(part: &Reader, keys: &[&str], why: &str) -> Diagnostic {
    let (first, second) = (keys[0], keys[1]);
    let message = format!(
        "{} says both `{first}` and `{second}`: {why}",
        name_of(part)
    );
    Diagnostic::error("conflicting-keys", part.key_span_of(second), message)
        .related(part.key_span_of(first), "the other one")
        .help("keep one of them")
}

/// `operation` or `mix`, of its own or the phase's.
fn what(phase: &Reader, diagnostics: &mut Diagnostics) {
    let says = |part: &Reader| part.has("operation") || part.has("mix") || part.has("replay");
    for part in parts(phase) {
        if part.has("operation") && part.has("mix") {
            diagnostics.push(conflict(
                &part,
                &["operation", "mix"],
                "a thread does one or the other",
            ));
        }
        empty_mix(&part, diagnostics);
    }
    let groups = phase.tables("groups");
    let lacking: Vec<Reader> = match groups.is_empty() {
        true => vec![*phase],
        false => groups,
    };
    for part in lacking.iter().filter(|part| !says(part) && !says(phase)) {
        let message = format!("nothing says what {} does", name_of(part));
        diagnostics.push(
            Diagnostic::error("no-operation", part.span, message)
                .help("operation = \"get\", or mix = { get = 95, set = 5 }"),
        );
    }
}

fn empty_mix(part: &Reader, diagnostics: &mut Diagnostics) {
    let Some(mix) = part.table("mix") else {
        return;
    };
    let weights = mix.table.entries.iter().map(|entry| entry.node.number());
    if weights.clone().all(|weight| weight == Some(0.0)) {
        let message = "the weights of this `mix` sum to zero, so nothing would happen";
        diagnostics.push(Diagnostic::error("empty-mix", part.span_of("mix"), message));
    }
}

/// Exactly one of a count and a duration; a count belongs to the phase or to its groups.
fn how_long(phase: &Reader, diagnostics: &mut Diagnostics) {
    for part in parts(phase) {
        if COUNTS.iter().all(|key| part.has(key)) {
            diagnostics.push(conflict(&part, &COUNTS, "one count is enough"));
        }
    }
    let count = COUNTS.into_iter().find(|key| phase.has(key));
    if let Some(count) = count
        && phase.has("duration")
    {
        let keys = [count, "duration"];
        diagnostics.push(conflict(phase, &keys, "a phase ends by count or by time"));
    }
    let groups = phase.tables("groups");
    let counted: Vec<(&Reader, &str)> = groups
        .iter()
        .filter_map(|group| Some((group, COUNTS.into_iter().find(|key| group.has(key))?)))
        .collect();
    if let Some((outer, (group, inner))) = count
        .or(phase.has("duration").then_some("duration"))
        .zip(counted.first())
    {
        let message = format!(
            "{} has `{outer}`, and its group {} has `{inner}`",
            name_of(phase),
            name_of(group)
        );
        diagnostics.push(
            Diagnostic::error("conflicting-keys", group.key_span_of(inner), message)
                .related(phase.key_span_of(outer), "the phase's")
                .help(
                    "a count belongs to the phase or to its groups; a phase by duration has none",
                ),
        );
        return;
    }
    let replays = |part: &Reader| part.has("replay");
    let all_replay = match groups.is_empty() {
        true => replays(phase),
        false => groups
            .iter()
            .all(|group| replays(group) || COUNTS.iter().any(|key| group.has(key))),
    };
    let timed = count.is_some() || phase.has("duration") || all_replay;
    let endless = !timed && (groups.is_empty() || counted.len() < groups.len());
    if endless {
        let lacking = groups
            .iter()
            .find(|group| !COUNTS.iter().any(|key| group.has(key)));
        let part = lacking.unwrap_or(phase);
        let message = format!("nothing says how long {} lasts", name_of(part));
        diagnostics.push(
            Diagnostic::error("no-length", part.span, message).help(
                "one of operations = 10_000, operations_per_thread = 1_000, duration = \"10s\"",
            ),
        );
    }
    at_least(phase, diagnostics);
}

fn at_least(phase: &Reader, diagnostics: &mut Diagnostics) {
    let said = phase
        .duration("at_least")
        .is_some_and(|least| !least.is_zero());
    if said && phase.has("duration") {
        let keys = ["duration", "at_least"];
        diagnostics.push(conflict(
            phase,
            &keys,
            "only a phase by count is repeated as whole passes",
        ));
    }
}

/// Groups and operations of a phase are told apart by name in tables.
fn group_names(phase: &Reader, diagnostics: &mut Diagnostics) {
    let mut taken: Vec<(&str, Span)> = Vec::new();
    let used: Vec<&str> = parts(phase)
        .iter()
        .flat_map(operations_of)
        .map(|(name, _)| name)
        .collect();
    for group in phase.tables("groups") {
        let Some(name) = group.text("name") else {
            continue;
        };
        let span = group.span_of("name");
        if let Some((_, first)) = taken.iter().find(|(other, _)| *other == name) {
            diagnostics.push(
                Diagnostic::error(
                    "duplicate-name",
                    span,
                    format!("two groups of {} are named `{name}`", name_of(phase)),
                )
                .related(*first, "the first one")
                .help("rename one of them"),
            );
        } else if used.contains(&name) {
            let message = format!(
                "a group and an operation of {} are both named `{name}`",
                name_of(phase)
            );
            let help = format!(
                "rename the group, for instance \"{name}_threads\": tables could not tell them apart"
            );
            diagnostics.push(Diagnostic::error("duplicate-name", span, message).help(help));
        } else {
            taken.push((name, span));
        }
    }
}

/// Operations written out in a phase or group, with their places.
fn operations_of<'c>(part: &Reader<'c>) -> Vec<(&'c str, Span)> {
    let mut operations = Vec::new();
    if let Some(node) = part.node("operation") {
        operations.extend(literal(node).map(|name| (name, node.span)));
    }
    if let Some(mix) = part.table("mix") {
        operations.extend(
            mix.table
                .entries
                .iter()
                .map(|entry| (entry.key.as_str(), entry.key_span)),
        );
    }
    operations
}

fn operations(scenario: &Context, phase: &Reader, part: &Reader, diagnostics: &mut Diagnostics) {
    for (name, span) in operations_of(part) {
        let own = scenario
            .entries("operations")
            .iter()
            .find(|entry| entry.key == name);
        if own.is_none() && Verb::built_in(name).is_none() {
            diagnostics.push(unknown_operation(scenario, name, span));
            continue;
        }
        // A phase with `when` may be left out for just those targets that cannot; `plan` knows.
        if phase.has("when") {
            continue;
        }
        for target in scenario.used_targets() {
            if let Some(fault) = unsupported(scenario, target, name, span, own) {
                diagnostics.push(fault);
                break;
            }
        }
    }
}

fn unknown_operation(scenario: &Context, name: &str, span: Span) -> Diagnostic {
    let mut known: Vec<&str> = Verb::BUILT_IN.iter().map(|verb| verb.name()).collect();
    known.extend(scenario.names("operations"));
    let fault = Diagnostic::error(
        "unknown-operation",
        span,
        format!("there is no operation `{name}`"),
    );
    match did_you_mean(name, known.iter().copied()) {
        Some(near) if scenario.sources.text(span).starts_with(['"', '\'']) => fault
            .help(format!("did you mean `{near}`?"))
            .fix(span, format!("\"{near}\"")),
        Some(near) => fault
            .help(format!("did you mean `{near}`?"))
            .fix(span, near),
        None => fault.help(there_are(known)),
    }
}

/// A target whose driver cannot do the operation.
fn unsupported(
    scenario: &Context,
    target: &Entry,
    name: &str,
    span: Span,
    own: Option<&Entry>,
) -> Option<Diagnostic> {
    let reader = Reader::new(&target.node)?;
    let driver = reader.node("driver")?;
    let spec = scenario.driver(literal(driver)?)?;
    let used_by = format!("the driver of target `{}`", target.key);
    match own {
        Some(own) => {
            let table = own.node.table()?;
            if table.get(spec.name).is_some() {
                return None;
            }
            let message = format!(
                "operation `{name}` is not written for driver `{}`",
                spec.name
            );
            let help = match spec.operation.is_empty() {
                true => format!("`{}` can {}", spec.name, targets::abilities(spec)),
                false => format!("in [operations.{name}]: {} = {{ ... }}", spec.name),
            };
            Some(
                Diagnostic::error("unsupported-operation", span, message)
                    .related(driver.span, used_by)
                    .help(help),
            )
        }
        None if Verb::built_in(name).is_some_and(|verb| spec.can(verb)) => None,
        None => {
            let message = format!("driver `{}` cannot do `{name}`", spec.name);
            let help = format!("it can {}", targets::abilities(spec));
            Some(
                Diagnostic::error("unsupported-operation", span, message)
                    .related(driver.span, used_by)
                    .help(help),
            )
        }
    }
}

/// `endpoints = "replicas"` must be a name that the targets have.
fn endpoints(scenario: &Context, phase: &Reader, part: &Reader, diagnostics: &mut Diagnostics) {
    let Some(node) = part.node("endpoints") else {
        return;
    };
    let Some(name) = literal(node) else {
        return;
    };
    if phase.has("when") {
        return;
    }
    for target in scenario.used_targets() {
        let Some(lists) = Reader::new(&target.node).and_then(|target| target.node("endpoints"))
        else {
            continue;
        };
        if lists.is_template() {
            continue;
        }
        let known: Vec<&str> = lists
            .table()
            .map(|table| table.keys().collect())
            .unwrap_or_default();
        if !known.contains(&name) {
            let fault = unknown("unknown-endpoints", "list of endpoints", node, &known);
            let what = format!("the endpoints of target `{}`", target.key);
            diagnostics.push(fault.related(lists.span, what));
            return;
        }
    }
}

fn pipeline(scenario: &Context, phase: &Reader, part: &Reader, diagnostics: &mut Diagnostics) {
    let Some(node) = part
        .node("pipeline")
        .filter(|node| node.integer() > Some(1))
    else {
        return;
    };
    if phase.has("when") {
        return;
    }
    for target in scenario.used_targets() {
        let driver = Reader::new(&target.node).and_then(|target| target.node("driver"));
        let spec = driver
            .and_then(literal)
            .and_then(|name| scenario.driver(name));
        if let (Some(spec), Some(driver)) = (spec, driver)
            && !spec.pipeline
        {
            let message = format!(
                "driver `{}` cannot send several operations before the first answer",
                spec.name
            );
            diagnostics.push(
                Diagnostic::error("no-pipeline", node.span, message)
                    .related(
                        driver.span,
                        format!("the driver of target `{}`", target.key),
                    )
                    .help("pipeline = 1"),
            );
            return;
        }
    }
}

/// What a log does not leave open is not said beside it.
fn beside_a_replay(part: &Reader, diagnostics: &mut Diagnostics) {
    const NOT_USED: [(&str, &str); 5] = [
        ("keys", "the statements of a log have keys of their own"),
        ("values", "the statements of a log have values of their own"),
        (
            "verify",
            "nobody knows what the statements of a log should read",
        ),
        ("share", "`per_thread` of the replay says how it is dealt"),
        ("pipeline", "the statements of a log are sent one at a time"),
    ];
    if !part.has("replay") {
        return;
    }
    // The defaults say some of them, as what they are without being said.
    let is_said = |key: &str| match key {
        "verify" => part.bool(key) == Some(true),
        "share" => part.text(key) == Some("interleaved"),
        "pipeline" => part.count(key).is_some_and(|count| count > 1),
        _ => part.has(key),
    };
    for (key, why) in NOT_USED.into_iter().filter(|(key, _)| is_said(key)) {
        let message = format!("{} says both `replay` and `{key}`: {why}", name_of(part));
        diagnostics.push(
            Diagnostic::error("conflicting-keys", part.key_span_of(key), message)
                .related(part.key_span_of("replay"), "the replay")
                .help(format!("leave `{key}` out")),
        );
    }
}
