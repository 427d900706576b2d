//! Numbers that templates gave where a text belongs: `["-t", "{{ threads }}"]` means the text `4`.
//!
//! Only what a template gave is changed; a bare number of the user's stays the fault that it is.

use crate::diag::Span;
use crate::rows::{Kind, Row};
use crate::scenario::tree::{Entry, Node, Table, Value};

/// The table with scalars that templates gave as text, where its rows want text.
pub fn to_text(node: &Node, rows: &[Row], from_template: &impl Fn(Span) -> bool) -> Node {
    match node.table() {
        Some(table) => Node {
            span: node.span,
            value: Value::Table(in_table(table, rows, from_template)),
        },
        None => node.clone(),
    }
}

fn in_table(table: &Table, rows: &[Row], from_template: &impl Fn(Span) -> bool) -> Table {
    let entries = table.entries.iter().map(|entry| {
        let row = rows.iter().find(|row| row.name == entry.key);
        let node = match row {
            Some(row) => in_value(&entry.node, &row.kind, from_template),
            None => entry.node.clone(),
        };
        Entry {
            node,
            ..entry.clone()
        }
    });
    Table {
        entries: entries.collect(),
    }
}

fn in_value(node: &Node, kind: &Kind, from_template: &impl Fn(Span) -> bool) -> Node {
    let span = node.span;
    match (kind, &node.value) {
        (
            Kind::Text | Kind::Regex | Kind::Path | Kind::Name(_),
            Value::Integer(_) | Value::Float(_) | Value::Bool(_),
        ) if from_template(span) => Node {
            span,
            value: Value::String(super::extract::plain(node)),
        },
        (Kind::List(inner), Value::Array(items)) => {
            let items = items
                .iter()
                .map(|item| in_value(item, inner, from_template));
            Node {
                span,
                value: Value::Array(items.collect()),
            }
        }
        (Kind::Table(rows), Value::Table(_)) => to_text(node, rows, from_template),
        (Kind::Map(_, inner), Value::Table(table)) => {
            let entries = table.entries.iter().map(|entry| Entry {
                node: in_value(&entry.node, inner, from_template),
                ..entry.clone()
            });
            Node {
                span,
                value: Value::Table(Table {
                    entries: entries.collect(),
                }),
            }
        }
        (Kind::OneOf(kinds), _) => match kinds.iter().find(|kind| suits(node, kind)) {
            Some(kind) => in_value(node, kind, from_template),
            None => match kinds.iter().find(|kind| matches!(kind, Kind::Text)) {
                Some(text) => in_value(node, text, from_template),
                None => node.clone(),
            },
        },
        _ => node.clone(),
    }
}

/// Whether a value is of a kind, by its TOML type and, for a table, its first key.
fn suits(node: &Node, kind: &Kind) -> bool {
    match (kind, &node.value) {
        (Kind::List(_), Value::Array(_))
        | (Kind::Map(..), Value::Table(_))
        | (Kind::Bool, Value::Bool(_)) => true,
        (Kind::Table(rows), Value::Table(table)) => {
            let first = table.entries.first();
            first.is_none_or(|entry| rows.iter().any(|row| row.name == entry.key))
        }
        (Kind::Integer { .. } | Kind::Size { .. }, Value::Integer(_)) => true,
        (Kind::Number { .. }, Value::Integer(_) | Value::Float(_)) => true,
        _ => false,
    }
}
