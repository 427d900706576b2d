//! A plan in words and tables, for people.
//!
//! Shows of each setting the values that it takes over the runs; the JSON of the plan has every one.

use super::estimate::{grouped, sum};
use super::ids::value_text;
use super::make::Made;
use super::{Axis, GroupPlan, PhasePlan, Plan, ServerPlan, Shape};
use crate::template::Text;
use crate::units::{format_duration, format_size};
use crate::workload::spec::{Content, KeyDistribution, SizeSpec};
use comfy_table::{Table, presets};
use std::time::Duration;

/// Ids shown of many runs.
const FIRST_RUNS: usize = 5;

/// Everything that a person wants to know before the plan is run.
pub fn describe(made: &Made) -> String {
    let plan = &made.plan;
    let mut text = head(plan, made.order);
    text.push_str(&targets(plan));
    text.push_str(&format!("\n{}\n", phases(plan)));
    text.push_str(&estimates(plan));
    if !plan.tables.is_empty() {
        let names: Vec<&str> = plan
            .tables
            .iter()
            .map(|table| table.name.as_str())
            .collect();
        text.push_str(&line("tables", &names.join(", ")));
    }
    let ids: Vec<String> = plan
        .runs
        .iter()
        .take(FIRST_RUNS)
        .map(|run| plan.run_id(run))
        .collect();
    for (position, id) in ids.iter().enumerate() {
        text.push_str(&line(if position == 0 { "first runs" } else { "" }, id));
    }
    if plan.runs.len() > FIRST_RUNS {
        let more = plan.runs.len() - FIRST_RUNS;
        text.push_str(&line(
            "",
            &format!("... and {more} more (--runs lists all)"),
        ));
    }
    text
}

/// The id of every run, a line each.
pub fn run_ids(plan: &Plan) -> String {
    plan.runs
        .iter()
        .map(|run| plan.run_id(run) + "\n")
        .collect()
}

fn line(name: &str, value: &str) -> String {
    format!("{name:<12}{value}\n")
}

fn head(plan: &Plan, order: &str) -> String {
    let info = &plan.scenario;
    let mut text = match info.title.is_empty() {
        true => format!("{}\n", info.name),
        false => format!("{}: {}\n", info.name, info.title),
    };
    text.push_str(&line("plan", &plan.hash));
    for (position, axis) in plan.axes.iter().enumerate() {
        text.push_str(&line(
            if position == 0 { "axes" } else { "" },
            &axis_line(axis),
        ));
    }
    let runs = plan.runs.len();
    let repeats = match plan.repeats {
        1 => String::new(),
        repeats => format!(", {repeats} repeats"),
    };
    text.push_str(&line(
        "runs",
        &format!(
            "{} ({order}{repeats}), seed {}",
            grouped(runs as u64),
            plan.seed
        ),
    ));
    text
}

fn axis_line(axis: &Axis) -> String {
    let values: Vec<String> = axis.values.iter().map(value_text).collect();
    format!("{}: {}", axis.name, several(&values))
}

/// A few values as they are, of many the ends.
fn several(values: &[String]) -> String {
    match values {
        [first, .., last] if values.len() > 8 => {
            format!("{first} ... {last} ({} values)", values.len())
        }
        _ => values.join(", "),
    }
}

fn targets(plan: &Plan) -> String {
    let mut text = String::new();
    let mut seen: Vec<&str> = Vec::new();
    for shape in &plan.shapes {
        let target = &shape.target;
        if seen.contains(&target.name.as_str()) {
            continue;
        }
        seen.push(&target.name);
        let endpoints = target
            .endpoints
            .iter()
            .flat_map(|group| &group.endpoints)
            .map(Text::source);
        let endpoints: Vec<&str> = endpoints.collect();
        let place = match endpoints.is_empty() {
            true => "in the client".to_owned(),
            false => endpoints.join(" "),
        };
        let stand_in = match target.stand_in_for.as_str() {
            "" => String::new(),
            other => format!(", stands in for {other}"),
        };
        text.push_str(&line(
            "target",
            &format!(
                "{} (driver {}{stand_in}): {place}",
                target.name, target.driver
            ),
        ));
        for server in &shape.servers {
            text.push_str(&line(
                "",
                &format!("starts {}: {}", named(server), command(server)),
            ));
        }
        let stand_in = shape.stand_in.map(|number| &plan.shapes[number as usize]);
        for server in stand_in.iter().flat_map(|shape| &shape.servers) {
            text.push_str(&line(
                "",
                &format!(
                    "or, where that is not installed, {}: {}",
                    server.name,
                    command(server)
                ),
            ));
        }
    }
    text
}

fn named(server: &ServerPlan) -> String {
    match server.instances {
        1 => server.name.clone(),
        instances => format!("{instances} instances of {}", server.name),
    }
}

fn command(server: &ServerPlan) -> String {
    let words: Vec<&str> = server.command.iter().map(Text::source).collect();
    words.join(" ")
}

fn phases(plan: &Plan) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header([
        "phase", "does", "threads", "length", "timeout", "keys", "values",
    ]);
    let mut rows: Vec<(String, String)> = Vec::new();
    let all = || plan.shapes.iter().flat_map(|shape| &shape.phases);
    for phase in all() {
        for group in &phase.groups {
            let name = (phase.name.clone(), group.name.clone());
            if !rows.contains(&name) {
                rows.push(name);
            }
        }
    }
    for (phase, group) in rows {
        let of_row = || {
            let phases = all().filter(|other| other.name == phase);
            let groups =
                phases.flat_map(|phase| phase.groups.iter().map(move |group| (phase, group)));
            groups.filter(|(_, other)| other.name == group)
        };
        let cell = |show: &dyn Fn(&PhasePlan, &GroupPlan) -> String| {
            distinct(of_row().map(|(p, g)| show(p, g)))
        };
        let name = match group.is_empty() {
            true => phase.clone(),
            false => format!("{phase}.{group}"),
        };
        table.add_row([
            name,
            cell(&|_, group| work(group)),
            cell(&|_, group| group.threads.to_string()),
            cell(&length),
            cell(&|_, group| duration(group.timeout_ns)),
            cell(&|_, group| keys(group)),
            cell(&|_, group| values(group)),
        ]);
    }
    table
}

fn distinct(values: impl Iterator<Item = String>) -> String {
    let mut kept: Vec<String> = Vec::new();
    for value in values {
        if !kept.contains(&value) {
            kept.push(value);
        }
    }
    several(&kept)
}

fn work(group: &GroupPlan) -> String {
    let mut text = match group.mix.as_slice() {
        [only] => only.operation.clone(),
        mix => mix
            .iter()
            .map(|entry| format!("{} {}", entry.weight, entry.operation))
            .collect::<Vec<_>>()
            .join(", "),
    };
    if group.verify {
        text.push_str(", verified");
    }
    if group.pipeline > 1 {
        text.push_str(&format!(", {} at a time", group.pipeline));
    }
    text
}

fn length(phase: &PhasePlan, group: &GroupPlan) -> String {
    let mut text = match (group.operations, phase.duration_ns) {
        (Some(operations), _) => format!("{} operations", grouped(operations)),
        (None, Some(ns)) => duration(ns),
        (None, None) => String::new(),
    };
    if phase.at_least_ns > 0 {
        text.push_str(&format!(", at least {}", duration(phase.at_least_ns)));
    }
    if phase.warmup_ns > 0 {
        text.push_str(&format!(", after {} of warm-up", duration(phase.warmup_ns)));
    }
    for fault in &phase.faults {
        text.push_str(&format!(", {} at {}", fault.text(), duration(fault.at_ns)));
    }
    text
}

fn keys(group: &GroupPlan) -> String {
    let distribution = match &group.keys.distribution {
        KeyDistribution::Sequential => "in sequence".to_owned(),
        KeyDistribution::Uniform => "uniform".to_owned(),
        KeyDistribution::Zipfian { theta, .. } => format!("zipfian {theta}"),
        KeyDistribution::Hotspot {
            hot_keys,
            hot_operations,
        } => format!("hotspot {hot_operations} on {hot_keys}"),
        KeyDistribution::Latest { theta } => format!("latest {theta}"),
        KeyDistribution::Exponential { share } => format!("exponential {share}"),
    };
    match super::estimate::keys_of(group) {
        0 => distribution,
        keys => format!("{} {distribution}", grouped(keys)),
    }
}

fn values(group: &GroupPlan) -> String {
    let size = match &group.values.size {
        SizeSpec::Fixed { bytes: 0 } => return "none".to_owned(),
        SizeSpec::Fixed { bytes } => format!("{} B", grouped(*bytes)),
        SizeSpec::Uniform {
            from_bytes,
            to_bytes,
        } => format!("{} to {} B", grouped(*from_bytes), grouped(*to_bytes)),
        SizeSpec::Choices { choices } => format!("{} sizes", choices.len()),
    };
    let content = match group.values.content {
        Content::RepeatIndex => "repeat-index",
        Content::Random => "random",
        Content::Text => "text",
        Content::File { .. } => "file",
    };
    format!("{size} {content}")
}

fn duration(ns: u64) -> String {
    format_duration(Duration::from_nanos(ns))
}

fn estimates(plan: &Plan) -> String {
    type Needs = fn(&Shape) -> u64;
    let mut text = String::new();
    let largest = |needs: Needs| plan.shapes.iter().max_by_key(|shape| needs(shape));
    let places: [(&str, Needs); 2] = [
        ("memory", |shape| shape.estimate.memory_bytes),
        ("disk", |shape| shape.estimate.disk_bytes),
    ];
    for (place, needs) in places {
        if let Some(shape) = largest(needs).filter(|shape| needs(shape) > 0) {
            let sum = format!(
                "{} at most, beside what the store adds: {}",
                format_size(needs(shape)),
                sum(shape)
            );
            text.push_str(&line(place, &sum));
        }
    }
    let per_run = |run: &super::RunPlan| &plan.shapes[run.shape as usize].estimate;
    let operations: u64 = plan.runs.iter().map(|run| per_run(run).operations).sum();
    if operations > 0 {
        text.push_str(&line(
            "operations",
            &format!("{} by count, of one pass each", grouped(operations)),
        ));
    }
    let pauses = plan.pause_ns as f64 / 1e9 * plan.runs.len().saturating_sub(1) as f64;
    let seconds: f64 = plan
        .runs
        .iter()
        .map(|run| per_run(run).seconds)
        .sum::<f64>()
        + pauses;
    if seconds > 0.0 {
        let time = format_duration(Duration::from_secs_f64(seconds));
        text.push_str(&line(
            "time",
            &format!("at least {time}, beside starting servers and phases by count"),
        ));
    }
    text
}
