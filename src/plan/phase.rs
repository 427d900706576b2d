//! `[[phases]]` into the plan: what each group of threads does, with which keys and values.
//!
//! Knows nothing of drivers; whether the run's driver can do it is checked in `suit`, once the run is known.

use super::extract::Extract;
use super::injection::{self, FaultPlaces};
use super::workload;
use super::{GroupPlan, PhasePlan, ReplayPlan, Share};
use crate::diag::{Diagnostic, Span};
use crate::op::Verb;
use crate::scenario::check::Place;
use crate::scenario::model::PHASE;
use crate::scenario::read::Reader;
use crate::scenario::tree::Node;
use crate::workload::querylog::Format;
use crate::workload::querylog::filter::parse_from;
use crate::workload::querylog::spool::PerThread;
use crate::workload::spec::MixEntry;
use std::sync::Arc;

/// A phase of the plan, with the places that later checks point at. `plan` is None where `when` left it out.
pub struct ResolvedPhase {
    pub name: String,
    pub plan: Option<Arc<PhasePlan>>,
    pub groups: Vec<GroupPlaces>,
    /// Of the operations of `prepare`, then of `cleanup`.
    pub once: Vec<Span>,
    /// Of `restart_servers`.
    pub restarts: Vec<Span>,
    /// Of `faults`, in the plan's order.
    pub faults: Vec<FaultPlaces>,
}

/// Where a group says what.
pub struct GroupPlaces {
    /// One per entry of the mix.
    pub operations: Vec<Span>,
    pub pipeline: Span,
    pub endpoints: Span,
    pub keys: Span,
}

pub fn extract(ex: &mut Extract<'_, '_>, ordinal: u32) -> Option<ResolvedPhase> {
    let resolved = extract_node(ex, &ex.evaluation.node, ordinal)?;
    ex.all_used().then_some(resolved)
}

/// A phase that may be a part of the evaluated section.
pub fn extract_node(ex: &mut Extract<'_, '_>, said: &Node, ordinal: u32) -> Option<ResolvedPhase> {
    let node = ex.fit(&Place::TOP.list("phases"), said, PHASE)?;
    let reader = Reader::new(&node)?;
    let name = reader.text("name")?.to_owned();
    if reader.bool("when") == Some(false) {
        return Some(ResolvedPhase {
            name,
            plan: None,
            groups: Vec::new(),
            once: Vec::new(),
            restarts: Vec::new(),
            faults: Vec::new(),
        });
    }
    let duration_ns = reader.nanoseconds("duration");
    let mut groups = Vec::new();
    let mut places = Vec::new();
    let mut good = true;
    for group in own_groups(&reader) {
        match extract_group(ex, &reader, &group, duration_ns) {
            Some((plan, place)) => {
                groups.push(plan);
                places.push(place);
            }
            None => good = false,
        }
    }
    let at_least_ns = reader.nanoseconds("at_least").unwrap_or(0);
    if duration_ns.is_some() && at_least_ns > 0 {
        let message = "`at_least` repeats a phase by count, and this one has a `duration`";
        return ex.refuse(Diagnostic::error(
            "conflicting-keys",
            reader.span_of("at_least"),
            message,
        ));
    }
    let (faults, fault_places) = injection::extract(ex, &reader, duration_ns)?
        .into_iter()
        .unzip();
    let plan = PhasePlan {
        name: name.clone(),
        ordinal,
        measured: reader.bool("measured").unwrap_or(true),
        duration_ns,
        warmup_ns: reader.nanoseconds("warmup").unwrap_or(0),
        at_least_ns,
        groups,
        prepare: owned(&reader, "prepare"),
        cleanup: owned(&reader, "cleanup"),
        prepare_timeout_ns: reader
            .nanoseconds("prepare_timeout")
            .unwrap_or(60_000_000_000),
        restart_servers: owned(&reader, "restart_servers"),
        faults,
    };
    good.then(|| ResolvedPhase {
        name,
        once: once(&reader),
        restarts: spans(&reader, "restart_servers"),
        faults: fault_places,
        plan: Some(plan.into()),
        groups: places,
    })
}

fn owned(reader: &Reader<'_>, key: &str) -> Vec<String> {
    reader.texts(key).into_iter().map(str::to_owned).collect()
}

fn spans(reader: &Reader<'_>, key: &str) -> Vec<Span> {
    let nodes = reader.list(key).unwrap_or(&[]).iter();
    nodes.map(|node| node.span).collect()
}

/// Where the operations of `prepare` and `cleanup` stand, in the order of `PhasePlan::once`.
fn once(reader: &Reader<'_>) -> Vec<Span> {
    [spans(reader, "prepare"), spans(reader, "cleanup")].concat()
}

/// The groups that the phase says, or the phase itself as its one group.
fn own_groups<'t>(phase: &Reader<'t>) -> Vec<Reader<'t>> {
    let groups = phase.tables("groups");
    match groups.is_empty() {
        true => vec![*phase],
        false => groups,
    }
}

fn extract_group(
    ex: &mut Extract<'_, '_>,
    phase: &Reader<'_>,
    group: &Reader<'_>,
    duration_ns: Option<u64>,
) -> Option<(GroupPlan, GroupPlaces)> {
    let is_phase = std::ptr::eq(phase.table, group.table);
    let replay = match group.table("replay") {
        Some(said) => Some(replay(ex, group, &said)?),
        None => None,
    };
    let threads = group.count("threads").unwrap_or(1) as u32;
    let (mix, operations_at, operations) = match &replay {
        Some(_) => {
            let statement = MixEntry {
                operation: Verb::Statement.name().to_owned(),
                weight: 1.0,
            };
            (vec![statement], vec![group.span_of("replay")], None)
        }
        None => {
            let (mix, spans) = mix(ex, group)?;
            (mix, spans, count(ex, group, threads, duration_ns)?)
        }
    };
    let verify = group.bool("verify").unwrap_or(false);
    if verify {
        reads_something(ex, group, &mix)?;
    }
    let keys_at = group.span_of("keys");
    let keys = workload::keys(ex, group.table("keys"), keys_at);
    let needs_values = verify || mix.iter().any(|entry| writes(&entry.operation));
    let values = workload::values(
        ex,
        group.table("values"),
        needs_values,
        group.span_of("values"),
    );
    let (keys, values) = (keys?, values?);
    let plan = GroupPlan {
        name: match is_phase {
            true => String::new(),
            false => group.text("name").unwrap_or_default().to_owned(),
        },
        mix,
        replay,
        threads,
        operations,
        share: match group.text("share") {
            Some("interleaved") => Share::Interleaved,
            _ => Share::Blocks,
        },
        timeout_ns: group.nanoseconds("timeout").unwrap_or(10_000_000_000),
        pipeline: group.count("pipeline").unwrap_or(1) as u32,
        verify,
        endpoints: group.text("endpoints").unwrap_or_default().to_owned(),
        keys,
        values,
    };
    let places = GroupPlaces {
        operations: operations_at,
        pipeline: group.span_of("pipeline"),
        endpoints: group.span_of("endpoints"),
        keys: keys_at,
    };
    Some((plan, places))
}

fn replay(ex: &mut Extract<'_, '_>, group: &Reader<'_>, said: &Reader<'_>) -> Option<ReplayPlan> {
    for key in ["operation", "mix", "operations", "operations_per_thread"] {
        if group.has(key) {
            let message =
                format!("`replay` says what the threads do and how often, and so does `{key}`");
            let help = match key {
                "operation" | "mix" => "keep one of them",
                _ => "say `first = n` in the replay, or a `duration`",
            };
            let fault = Diagnostic::error("conflicting-keys", group.span_of(key), message);
            return ex.refuse(fault.related(said.span, "the replay").help(help));
        }
    }
    let from = said.text("from").unwrap_or_default();
    if !from.is_empty() && parse_from(from).is_none() {
        let message = format!("`{from}` is no time");
        let help = "from = \"2026-11-30 20:41:15\", or from = \"+10min\"";
        let fault = Diagnostic::error("wrong-time", said.span_of("from"), message).help(help);
        return ex.refuse(fault);
    }
    let owned = |key: &str| said.text(key).unwrap_or_default().to_owned();
    Some(ReplayPlan {
        file: ex.text_of(said, "file")?,
        beside: ex.resolve("", said.span_of("file")),
        format: said
            .text("format")
            .and_then(Format::parse)
            .unwrap_or(Format::Auto),
        per_thread: match said.text("per_thread") {
            Some("share") => PerThread::Share,
            Some("connection") => PerThread::Connection,
            _ => PerThread::Whole,
        },
        speed: match said.text("timing") {
            Some("recorded") => Some(said.number("speed").unwrap_or(1.0)),
            _ if said.has("speed") => {
                let message = "`speed` is that of recorded times, and this replay has none";
                let fault = Diagnostic::error("conflicting-keys", said.span_of("speed"), message);
                return ex.refuse(fault.help("say `timing = \"recorded\"`"));
            }
            _ => None,
        },
        only: said.texts("only").into_iter().map(str::to_owned).collect(),
        user: owned("user"),
        database: owned("database"),
        matching: owned("match"),
        first: said.count("first"),
        from: from.to_owned(),
        allow_writes: said.bool("allow_writes").unwrap_or(false),
    })
}

/// Whether a built-in operation writes a value. The scenario's own may use `$value`.
pub fn writes(operation: &str) -> bool {
    match Verb::built_in(operation) {
        Some(verb) => matches!(
            verb,
            Verb::Set | Verb::Insert | Verb::Update | Verb::ReadModifyWrite
        ),
        None => false,
    }
}

fn mix(ex: &mut Extract<'_, '_>, group: &Reader<'_>) -> Option<(Vec<MixEntry>, Vec<Span>)> {
    let span = group.span_of("operation");
    match (group.text("operation"), group.table("mix")) {
        (Some(_), Some(mix)) => {
            let message = "`operation` and `mix` both say what the threads do";
            ex.refuse(
                Diagnostic::error("conflicting-keys", span, message).related(mix.span, "the mix"),
            )
        }
        (Some(operation), None) => {
            let entry = MixEntry {
                operation: operation.to_owned(),
                weight: 1.0,
            };
            Some((vec![entry], vec![span]))
        }
        (None, Some(mix)) => {
            let weights = mix.table.entries.iter();
            let weights = weights.filter_map(|entry| Some((entry, entry.node.number()?)));
            let (entries, spans): (Vec<_>, Vec<_>) = weights
                .filter(|(_, weight)| *weight > 0.0)
                .map(|(entry, weight)| {
                    (
                        MixEntry {
                            operation: entry.key.clone(),
                            weight,
                        },
                        entry.key_span,
                    )
                })
                .unzip();
            match entries.is_empty() {
                true => ex.refuse(Diagnostic::error(
                    "empty-mix",
                    mix.span,
                    "no operation of this mix has a weight above 0",
                )),
                false => Some((entries, spans)),
            }
        }
        (None, None) => {
            let message = "what the threads do is not said";
            let help = "add `operation = \"get\"` or `mix = { get = 95, set = 5 }`";
            ex.refuse(Diagnostic::error("no-operation", group.span, message).help(help))
        }
    }
}

/// Operations of one pass; None inside where the phase ends by its duration.
fn count(
    ex: &mut Extract<'_, '_>,
    group: &Reader<'_>,
    threads: u32,
    duration_ns: Option<u64>,
) -> Option<Option<u64>> {
    let total = group.count("operations");
    let per_thread = group.count("operations_per_thread");
    let said = group.span_of(if total.is_some() {
        "operations"
    } else {
        "operations_per_thread"
    });
    match (total, per_thread, duration_ns) {
        (None, None, Some(_)) => Some(None),
        (_, _, Some(_)) => {
            let message = "a phase ends by its `duration` or by a count, not both";
            ex.refuse(Diagnostic::error("conflicting-keys", said, message))
        }
        (Some(_), Some(_), None) => {
            let message = "`operations` and `operations_per_thread` both say how many";
            ex.refuse(Diagnostic::error("conflicting-keys", said, message))
        }
        (Some(total), None, None) => Some(Some(total)),
        (None, Some(each), None) => Some(Some(each.saturating_mul(u64::from(threads)))),
        (None, None, None) => {
            let message = "how long this lasts is not said";
            let help = "add `operations = 1000`, `operations_per_thread = 100` or, to the phase, `duration = \"10s\"`";
            ex.refuse(Diagnostic::error("no-length", group.span, message).help(help))
        }
    }
}

fn reads_something(ex: &mut Extract<'_, '_>, group: &Reader<'_>, mix: &[MixEntry]) -> Option<()> {
    let reads = |operation: &str| {
        matches!(
            Verb::built_in(operation),
            Some(Verb::Get | Verb::ReadModifyWrite)
        )
    };
    if mix.iter().any(|entry| reads(&entry.operation)) {
        return Some(());
    }
    let names: Vec<&str> = mix.iter().map(|entry| entry.operation.as_str()).collect();
    let message = format!(
        "`verify` compares what is read, and `{}` reads no value",
        names.join("`, `")
    );
    let help = "only `get` and `read_modify_write` are verified; leave `verify` out";
    ex.refuse(Diagnostic::error("nothing-to-verify", group.span_of("verify"), message).help(help))
}
