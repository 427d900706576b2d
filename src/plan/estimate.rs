//! What a run will need: keys, bytes, operations, seconds; and whether a machine can hold it.
//!
//! Knows only what the plan knows: keys and values of built-in operations that write. What a store adds to each entry is
//! its own.

use super::phase::writes;
use super::workload::key_width;
use super::{Estimate, GroupPlan, PhasePlan, Plan, Shape};
use crate::driver::spec::HeldIn;
use crate::workload::spec::{Digest, KeyDistribution, SizeSpec};
use std::sync::Arc;

/// One set of keys that phases write, as far as it goes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stored {
    keys: u64,
    key_bytes: u64,
    /// On average.
    value_bytes: f64,
}

impl Stored {
    fn bytes(&self) -> u64 {
        (self.keys as f64 * (self.key_bytes as f64 + self.value_bytes)).round() as u64
    }
}

pub fn estimate(phases: &[Arc<PhasePlan>], copies: u32, held_in: HeldIn) -> Estimate {
    let stored = stored(phases);
    let keys = stored.iter().map(|set| set.keys).sum();
    let data_bytes = stored
        .iter()
        .fold(0u64, |sum, set| sum.saturating_add(set.bytes()));
    let held = data_bytes.saturating_mul(u64::from(copies));
    let groups = phases.iter().flat_map(|phase| &phase.groups);
    Estimate {
        keys,
        data_bytes,
        memory_bytes: if held_in == HeldIn::Memory { held } else { 0 },
        disk_bytes: if held_in == HeldIn::Disk { held } else { 0 },
        operations: groups
            .filter_map(|group| group.operations)
            .fold(0, u64::saturating_add),
        seconds: phases.iter().map(|phase| seconds(phase)).sum(),
    }
}

fn seconds(phase: &PhasePlan) -> f64 {
    let main = phase.duration_ns.unwrap_or(phase.at_least_ns);
    (main + phase.warmup_ns) as f64 / 1e9
}

/// The sets of keys, one per format: phases that write the same keys write over each other.
fn stored(phases: &[Arc<PhasePlan>]) -> Vec<Stored> {
    let mut sets: Vec<((&str, Digest), Stored)> = Vec::new();
    for group in phases.iter().flat_map(|phase| &phase.groups) {
        if !group.mix.iter().any(|entry| writes(&entry.operation)) {
            continue;
        }
        let keys = keys_of(group);
        let stored = Stored {
            keys,
            key_bytes: key_bytes(group, keys),
            value_bytes: mean_size(&group.values.size),
        };
        let name = (group.keys.format.as_str(), group.keys.digest);
        match sets.iter_mut().find(|(other, _)| *other == name) {
            Some((_, known)) => {
                known.keys = known.keys.max(stored.keys);
                known.key_bytes = known.key_bytes.max(stored.key_bytes);
                known.value_bytes = known.value_bytes.max(stored.value_bytes);
            }
            None => sets.push((name, stored)),
        }
    }
    sets.into_iter().map(|(_, set)| set).collect()
}

/// Different keys that a group touches at most; 0 where that depends on its speed.
pub fn keys_of(group: &GroupPlan) -> u64 {
    let touched = group
        .operations
        .map(|operations| operations.div_ceil(group.keys.uses_per_key));
    match (group.keys.count, touched) {
        (Some(count), Some(touched)) => count.min(touched),
        (Some(count), None) => count,
        (None, Some(touched)) => touched,
        (None, None) => 0,
    }
}

/// Whether a group goes through its keys one after another.
pub fn in_sequence(group: &GroupPlan) -> bool {
    group.keys.distribution == KeyDistribution::Sequential
}

/// Bytes of one key, the longest.
fn key_bytes(group: &GroupPlan, keys: u64) -> u64 {
    match group.keys.digest {
        Digest::Md5 => 32,
        Digest::Fnv1a => 16,
        Digest::None => {
            let format = &group.keys.format;
            let placeholder = format
                .find('%')
                .and_then(|at| format[at..].find('d').map(|end| end + 1));
            let digits = keys.saturating_sub(1).max(1).ilog10() as usize + 1;
            let number = key_width(format).unwrap_or(0).max(digits);
            (format.len() - placeholder.unwrap_or(0) + number) as u64
        }
    }
}

fn mean_size(size: &SizeSpec) -> f64 {
    match size {
        SizeSpec::Fixed { bytes } => *bytes as f64,
        SizeSpec::Uniform {
            from_bytes,
            to_bytes,
        } => (*from_bytes as f64 + *to_bytes as f64) / 2.0,
        SizeSpec::Choices { choices } => {
            let weights: f64 = choices.iter().map(|choice| choice.weight).sum();
            let sum: f64 = choices
                .iter()
                .map(|choice| choice.weight * choice.bytes as f64)
                .sum();
            sum / weights
        }
    }
}

/// Why a machine cannot hold what a plan stores.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// A sentence with the sum.
    pub message: String,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

/// Whether this machine can hold what the largest run stores.
pub fn fits(
    plan: &Plan,
    memory_bytes_available: u64,
    disk_bytes_available: u64,
) -> Result<(), Refusal> {
    type Needs = fn(&Shape) -> u64;
    type Terms = fn(&Shape) -> String;
    let places: [(Needs, Terms, &str, u64); 2] = [
        (
            memory_needed,
            memory_sum,
            "in memory",
            memory_bytes_available,
        ),
        (
            |shape| shape.estimate.disk_bytes,
            sum,
            "on disk",
            disk_bytes_available,
        ),
    ];
    for (needs, terms, place, available) in places {
        // Of equals the first: `max_by_key` takes the last.
        let largest = plan.shapes.iter().rev().max_by_key(|shape| needs(shape));
        if let Some(shape) = largest.filter(|shape| needs(shape) > available) {
            let terms = terms(shape);
            return Err(refusal(plan, shape, &terms, needs(shape), place, available));
        }
    }
    Ok(())
}

/// Of the data, where it is held in memory, and of the servers, where they say what they need.
fn memory_needed(shape: &Shape) -> u64 {
    let of_servers = shape.servers.iter();
    let of_servers = of_servers.map(|server| server.memory_bytes * u64::from(server.instances));
    of_servers.fold(shape.estimate.memory_bytes, u64::saturating_add)
}

/// `120,000 keys x (13 + 80,000) bytes + cassandra 3 x 600.0 MB`.
fn memory_sum(shape: &Shape) -> String {
    let data = match shape.estimate.memory_bytes {
        0 => None,
        _ => Some(sum(shape)),
    };
    let saying = shape
        .servers
        .iter()
        .filter(|server| server.memory_bytes > 0);
    let of_servers = saying.map(|server| {
        let times = match server.instances {
            1 => String::new(),
            instances => format!("{instances} x "),
        };
        format!("{} {times}{}", server.name, decimal(server.memory_bytes))
    });
    let terms: Vec<String> = data.into_iter().chain(of_servers).collect();
    terms.join(" + ")
}

fn refusal(
    plan: &Plan,
    shape: &Shape,
    terms: &str,
    needed: u64,
    place: &str,
    available: u64,
) -> Refusal {
    let number = plan
        .shapes
        .iter()
        .position(|other| std::ptr::eq(other, shape))
        .unwrap_or(0);
    let run = plan.runs.iter().find(|run| run.shape as usize == number);
    let run = run.map_or_else(String::new, |run| format!(" ({})", plan.run_id(run)));
    let message = format!(
        "{terms} = {} {place}; this machine has {} free{run}",
        decimal(needed),
        decimal(available)
    );
    Refusal { message }
}

/// `120,000 keys x (13 + 80,000) bytes x 3 copies`.
pub fn sum(shape: &Shape) -> String {
    let loaded = shape.dataset.iter().flat_map(|dataset| &dataset.phases);
    let phases: Vec<_> = loaded.chain(&shape.phases).cloned().collect();
    let sets = stored(&phases);
    let terms: Vec<String> = sets
        .iter()
        .map(|set| {
            let value = grouped(set.value_bytes.round() as u64);
            format!(
                "{} keys x ({} + {value}) bytes",
                grouped(set.keys),
                grouped(set.key_bytes)
            )
        })
        .collect();
    let copies = shape.target.copies;
    match (terms.len(), copies) {
        (_, 1) => terms.join(" + "),
        (1, copies) => format!("{} x {copies} copies", terms[0]),
        (_, copies) => format!("({}) x {copies} copies", terms.join(" + ")),
    }
}

/// `120,000`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `28.8 GB`: powers of ten, as the sum before it is read.
fn decimal(bytes: u64) -> String {
    let units = [("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)];
    let found = units.iter().find(|(_, size)| bytes as f64 >= *size);
    match found {
        Some((unit, size)) => format!("{:.1} {unit}", bytes as f64 / size),
        None => format!("{bytes} bytes"),
    }
}
