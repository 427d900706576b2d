//! `[[probes]]` into the plan.

use super::extract::{Extract, plain};
use super::phase::ResolvedPhase;
use super::scope::{At, Mask, Scope};
use super::server::ResolvedServer;
use super::suit::{operation_fault, server_fault};
use super::target::ResolvedTarget;
use super::{Moment, ProbePlan, Reading, Restart};
use crate::diag::{Diagnostic, Span, did_you_mean};
use crate::driver::spec::Store;
use crate::scenario::check::Place;
use crate::scenario::model::PROBE;
use crate::scenario::read::Reader;
use crate::template::Text;
use std::rc::Rc;
use std::sync::Arc;

const KINDS: [&str; 4] = ["operation", "file_size", "command", "statement"];

/// A probe of the plan, with the places that later checks point at. `plan` is None where `when` left it out.
pub struct ResolvedProbe {
    pub name: String,
    pub plan: Option<Arc<ProbePlan>>,
    moment: Span,
    reading: Span,
    /// Servers that its strings ask for, and where.
    asked: Vec<(Span, String)>,
}

impl ResolvedProbe {
    /// Whether the run reads it: neither it nor its phase was left out.
    pub fn is_read(&self, phases: &[(u32, Rc<ResolvedPhase>)]) -> bool {
        let Some(plan) = &self.plan else { return false };
        let there = |name: &String| {
            let mut phases = phases.iter();
            phases.any(|(_, phase)| phase.name == *name && phase.plan.is_some())
        };
        match &plan.moment {
            Moment::After(phase) | Moment::Across(phase) => there(phase),
            Moment::Stop => true,
        }
    }
}

pub fn extract(ex: &mut Extract<'_, '_>) -> Option<ResolvedProbe> {
    let node = ex.fit(&Place::TOP.list("probes"), &ex.evaluation.node, PROBE)?;
    let reader = Reader::new(&node)?;
    let name = reader.text("name")?.to_owned();
    if reader.bool("when") == Some(false) {
        return Some(ResolvedProbe {
            name,
            plan: None,
            moment: node.span,
            reading: node.span,
            asked: Vec::new(),
        });
    }
    let (moment, moment_at) = moment(ex, &reader)?;
    let (reading, reading_at) = reading(ex, &reader)?;
    let plan = ProbePlan {
        name: name.clone(),
        moment,
        reading,
        unit: reader.text("unit").unwrap_or_default().to_owned(),
        timeout_ns: reader.nanoseconds("timeout").unwrap_or(60_000_000_000),
    };
    ex.all_used().then(|| ResolvedProbe {
        name,
        plan: Some(plan.into()),
        moment: moment_at,
        reading: reading_at,
        asked: ex.evaluation.asked.clone(),
    })
}

fn moment(ex: &mut Extract<'_, '_>, reader: &Reader<'_>) -> Option<(Moment, Span)> {
    match (reader.text("after"), reader.text("across")) {
        (Some("stop"), None) => Some((Moment::Stop, reader.span_of("after"))),
        (Some(phase), None) => Some((Moment::After(phase.to_owned()), reader.span_of("after"))),
        (None, Some(phase)) => Some((Moment::Across(phase.to_owned()), reader.span_of("across"))),
        (Some(_), Some(_)) => {
            let message = "`after` and `across` both say when the probe is read";
            let fault = Diagnostic::error("conflicting-keys", reader.span_of("across"), message);
            ex.refuse(fault.help("keep one of them"))
        }
        (None, None) => {
            let message = "when the probe is read is not said";
            let help = "add `after = \"PHASE\"`, `after = \"stop\"` or `across = \"PHASE\"`";
            ex.refuse(Diagnostic::error("no-moment", reader.span, message).help(help))
        }
    }
}

fn reading(ex: &mut Extract<'_, '_>, reader: &Reader<'_>) -> Option<(Reading, Span)> {
    let said: Vec<&str> = KINDS.into_iter().filter(|key| reader.has(key)).collect();
    let [kind] = said[..] else {
        let message = match said.len() {
            0 => "what the probe reads is not said".to_owned(),
            _ => format!(
                "a probe reads one thing, and this says `{}`",
                said.join("`, `")
            ),
        };
        let help = "say one of `operation`, `file_size`, `command`, or `driver` with `endpoint` and `statement`";
        return ex.refuse(Diagnostic::error("probe-kind", reader.span, message).help(help));
    };
    let span = reader.span_of(kind);
    for key in ["driver", "endpoint"] {
        if kind != "statement" && reader.has(key) {
            let message = format!("`{key}` belongs to a `statement`, and this probe has none");
            let fault = Diagnostic::error("probe-kind", reader.key_span_of(key), message);
            return ex.refuse(fault.help("leave it out"));
        }
    }
    let text = |ex: &Extract<'_, '_>, key: &str| {
        ex.text_of(reader, key)
            .unwrap_or(Text::Plain(String::new()))
    };
    let reading = match kind {
        "operation" => Reading::Operation(reader.text("operation")?.to_owned()),
        "file_size" => Reading::FileSize(text(ex, "file_size")),
        "command" => {
            let command = ex.texts_of(reader, "command");
            if command.is_empty() {
                let message = "a command has at least its program";
                return ex.refuse(Diagnostic::error("empty", span, message));
            }
            Reading::Command(command)
        }
        _ => {
            check_endpoint(ex, reader)?;
            Reading::Statement {
                driver: reader.text("driver")?.to_owned(),
                endpoint: text(ex, "endpoint"),
                statement: text(ex, "statement"),
            }
        }
    };
    Some((reading, span))
}

/// The driver is there, is one with endpoints, and can read this one.
fn check_endpoint(ex: &mut Extract<'_, '_>, reader: &Reader<'_>) -> Option<()> {
    for key in ["driver", "endpoint"] {
        if !reader.has(key) {
            let article = if key == "endpoint" { "an" } else { "a" };
            let message = format!("a `statement` needs {article} `{key}`");
            let help = "driver = \"mysql\", endpoint = \"mysql://...\", statement = \"SELECT count(*) FROM t\"";
            let fault = Diagnostic::error("probe-kind", reader.key_span_of("statement"), message);
            return ex.refuse(fault.help(help));
        }
    }
    let span = reader.span_of("driver");
    let driver = ex.driver(reader.text("driver")?, span)?;
    let Store::Server { parse, example, .. } = driver.store else {
        let message = format!("the driver `{}` has no endpoints", driver.name);
        let help = "read a store inside the client by `operation`";
        return ex.refuse(Diagnostic::error("probe-kind", span, message).help(help));
    };
    let rendered = reader.node("endpoint").map(plain).unwrap_or_default();
    match parse(&rendered) {
        Ok(_) => Some(()),
        Err(fault) => {
            let help = match fault.help.as_str() {
                "" => format!("such as \"{example}\""),
                help => help.to_owned(),
            };
            let fault =
                Diagnostic::error("bad-endpoint", reader.span_of("endpoint"), fault.message)
                    .label(format!("this is \"{rendered}\""))
                    .help(help);
            ex.refuse(fault)
        }
    }
}

/// What the probes of a run can ask of it. `mask` are the axes that choose and change the target.
pub fn check(
    scope: &mut Scope<'_>,
    target: &ResolvedTarget,
    servers: &[(usize, u32, Rc<ResolvedServer>)],
    all_phases: &[(u32, Rc<ResolvedPhase>)],
    probe: &ResolvedProbe,
    mask: Mask,
    at: At<'_>,
) -> bool {
    let Some(plan) = &probe.plan else { return true };
    let mut faults = Vec::new();
    if let Moment::After(name) | Moment::Across(name) = &plan.moment {
        faults.extend(phase_fault(all_phases, name, probe.moment));
    }
    if let Reading::Operation(operation) = &plan.reading {
        faults.extend(operation_fault(target, operation, probe.reading));
    }
    if plan.moment == Moment::Stop {
        faults.extend(stop_fault(plan, probe, servers));
    }
    if probe.is_read(all_phases) {
        let in_run = |name: &String| target.servers.iter().any(|(server, _)| server == name);
        let missing = probe.asked.iter().filter(|(_, name)| !in_run(name));
        let what = format!("the probe `{}`", probe.name);
        faults.extend(missing.map(|(span, name)| server_fault(&what, name, *span)));
    }
    let good = faults.is_empty();
    for fault in faults {
        let mask = mask | scope.mask_at(fault.span);
        scope.report(fault, mask, at);
    }
    good
}

fn phase_fault(phases: &[(u32, Rc<ResolvedPhase>)], name: &str, span: Span) -> Option<Diagnostic> {
    let known: Vec<&str> = phases
        .iter()
        .map(|(_, phase)| phase.name.as_str())
        .collect();
    if known.contains(&name) {
        return None;
    }
    let help = match did_you_mean(name, known.iter().copied().chain(["stop"])) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("there are: {}, stop", known.join(", ")),
    };
    let message = format!("there is no phase `{name}`");
    Some(Diagnostic::error("unknown-phase", span, message).help(help))
}

/// Once the servers have ended only files and commands can be read, and servers that live on do not end.
fn stop_fault(
    plan: &ProbePlan,
    probe: &ResolvedProbe,
    servers: &[(usize, u32, Rc<ResolvedServer>)],
) -> Option<Diagnostic> {
    if !matches!(plan.reading, Reading::FileSize(_) | Reading::Command(_)) {
        let message = "when the servers have ended, only `file_size` and `command` can be read";
        return Some(
            Diagnostic::error("probe-after-stop", probe.reading, message)
                .help("read it after the last phase: `after = \"PHASE\"`"),
        );
    }
    let asked = |server: &ResolvedServer| {
        let mut asked = probe.asked.iter();
        asked.any(|(_, name)| *name == server.plan.name)
    };
    let lives_on = |server: &ResolvedServer| server.plan.restart != Restart::Run;
    let mut named = servers.iter().map(|(_, _, server)| server);
    let server = named.find(|server| asked(server) && lives_on(server))?;
    let message = format!(
        "the server `{}` lives on when the run ends, so it has not flushed",
        server.plan.name
    );
    Some(
        Diagnostic::error("probe-after-stop", probe.moment, message)
            .help("say `restart = \"run\"` of the server, or read it after the last phase"),
    )
}
