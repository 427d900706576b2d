//! The sections of a scenario as the plan evaluates them: phases with what they inherit merged in.

use crate::diag::Span;
use crate::scenario::tree::{Entry, Node, Table, Value};

/// What a group says for itself alone; its phase is not asked.
const OF_PHASE_ALONE: [&str; 12] = [
    "name",
    "duration",
    "warmup",
    "at_least",
    "measured",
    "when",
    "groups",
    "prepare",
    "cleanup",
    "prepare_timeout",
    "restart_servers",
    "faults",
];
/// What a group's own `operation` or count replaces.
const WORK: [&str; 3] = ["operation", "mix", "replay"];
const COUNTS: [&str; 2] = ["operations", "operations_per_thread"];

/// Phases with `[workload]` and, in groups, what the phase says merged underneath.
pub fn phases(root: &Table) -> Vec<Node> {
    let merged = Merged::of(root);
    let phases = root.get("phases").and_then(Node::array).unwrap_or(&[]);
    phases.iter().map(|phase| merged.phase(phase)).collect()
}

/// What phases inherit.
pub struct Merged<'r> {
    workload: Option<&'r Table>,
}

impl<'r> Merged<'r> {
    pub fn of(root: &'r Table) -> Merged<'r> {
        Merged {
            workload: root.get("workload").and_then(Node::table),
        }
    }

    /// A phase with what it inherits.
    pub fn phase(&self, phase: &Node) -> Node {
        merged_phase(self.workload, phase)
    }
}

fn merged_phase(workload: Option<&Table>, phase: &Node) -> Node {
    let Some(table) = phase.table() else {
        return phase.clone();
    };
    let mut table = table.clone();
    for key in ["keys", "values"] {
        let below = workload.and_then(|workload| workload.get(key));
        if let Some(merged) = overlay(below, table.get(key)) {
            set(&mut table, key, merged);
        }
    }
    let groups = table
        .get("groups")
        .and_then(Node::array)
        .map(<[Node]>::to_vec);
    let Some(groups) = groups.filter(|groups| !groups.is_empty()) else {
        return Node {
            span: phase.span,
            value: Value::Table(table),
        };
    };
    let groups = groups
        .iter()
        .map(|group| merged_group(&table, group))
        .collect();
    let span = table.get("groups").map_or(phase.span, |node| node.span);
    table
        .entries
        .retain(|entry| OF_PHASE_ALONE.contains(&entry.key.as_str()));
    set(
        &mut table,
        "groups",
        Node {
            span,
            value: Value::Array(groups),
        },
    );
    Node {
        span: phase.span,
        value: Value::Table(table),
    }
}

fn merged_group(phase: &Table, group: &Node) -> Node {
    let Some(own) = group.table() else {
        return group.clone();
    };
    let says = |keys: &[&str]| keys.iter().any(|key| own.get(key).is_some());
    let mut table = phase.clone();
    table.entries.retain(|entry| {
        let key = entry.key.as_str();
        !(OF_PHASE_ALONE.contains(&key)
            || WORK.contains(&key) && says(&WORK)
            || COUNTS.contains(&key) && says(&COUNTS))
    });
    for entry in &own.entries {
        let merged = match entry.key.as_str() {
            key @ ("keys" | "values") => overlay(phase.get(key), Some(&entry.node)),
            _ => None,
        };
        let node = merged.unwrap_or_else(|| entry.node.clone());
        set_entry(
            &mut table,
            Entry {
                node,
                ..entry.clone()
            },
        );
    }
    Node {
        span: group.span,
        value: Value::Table(table),
    }
}

/// Key by key: a `size` or a `distribution` is replaced as a whole.
fn overlay(below: Option<&Node>, above: Option<&Node>) -> Option<Node> {
    let (Some(lower), Some(upper)) = (below.and_then(Node::table), above.and_then(Node::table))
    else {
        return above.or(below).cloned();
    };
    let mut table = lower.clone();
    for entry in &upper.entries {
        set_entry(&mut table, entry.clone());
    }
    let span = above.map_or(Span::NONE, |node| node.span);
    Some(Node {
        span,
        value: Value::Table(table),
    })
}

fn set(table: &mut Table, key: &str, node: Node) {
    let key_span = node.span;
    set_entry(
        table,
        Entry {
            key: key.to_owned(),
            key_span,
            node,
        },
    );
}

fn set_entry(table: &mut Table, entry: Entry) {
    match table.entries.iter_mut().find(|old| old.key == entry.key) {
        Some(old) => old.node = entry.node,
        None => table.entries.push(entry),
    }
}
