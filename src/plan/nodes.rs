//! Small walks over the tree that several steps of planning need.

use crate::diag::Span;
use crate::scenario::tree::{Entry, Node, Table, Value as TreeValue};
use crate::template;
use std::collections::BTreeMap;

/// Visits every string under a node with its place.
pub fn for_each_string(node: &Node, visit: &mut impl FnMut(&str, Span)) {
    match &node.value {
        TreeValue::String(text) => visit(text, node.span),
        TreeValue::Array(items) => items.iter().for_each(|item| for_each_string(item, visit)),
        TreeValue::Table(table) => table
            .entries
            .iter()
            .for_each(|entry| for_each_string(&entry.node, visit)),
        _ => {}
    }
}

/// Names of the ports of every server; None where they are templates.
pub fn ports_by_server(servers: &Table) -> BTreeMap<String, Option<Vec<String>>> {
    let named = servers.entries.iter();
    named
        .map(|entry| (entry.key.clone(), ports_of(&entry.node)))
        .collect()
}

/// What servers say of how many instances they have; those that say nothing have one.
pub fn instances_by_server(servers: &Table) -> Vec<(String, Node)> {
    let said = |entry: &Entry| {
        let node = entry.node.table()?.get("instances")?.clone();
        Some((entry.key.clone(), node))
    };
    servers.entries.iter().filter_map(said).collect()
}

fn ports_of(server: &Node) -> Option<Vec<String>> {
    let main = || Some(vec!["main".to_owned()]);
    match server
        .table()
        .and_then(|table| table.get("ports"))
        .map(|node| &node.value)
    {
        None => main(),
        Some(TreeValue::Array(items)) => items
            .iter()
            .map(|item| {
                item.string()
                    .filter(|text| !template::is_template(text))
                    .map(str::to_owned)
            })
            .collect(),
        Some(TreeValue::Table(table)) => {
            Some(table.entries.iter().map(|e| e.key.clone()).collect())
        }
        Some(_) => None,
    }
}

/// A template's value as a node of the tree, at the place of the template.
pub fn json_to_node(json: serde_json::Value, span: Span) -> Result<Node, String> {
    let value = match json {
        serde_json::Value::Null => return Err("this gives no value (none)".to_owned()),
        serde_json::Value::Bool(value) => TreeValue::Bool(value),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => TreeValue::Integer(integer),
            (None, Some(float)) if number.is_f64() => TreeValue::Float(float),
            _ => return Err(format!("the number {number} is too large")),
        },
        serde_json::Value::String(text) => TreeValue::String(text),
        serde_json::Value::Array(items) => {
            let items = items.into_iter().map(|item| json_to_node(item, span));
            TreeValue::Array(items.collect::<Result<_, _>>()?)
        }
        serde_json::Value::Object(entries) => {
            let entries = entries.into_iter().map(|(key, item)| {
                let node = json_to_node(item, span)?;
                Ok(Entry {
                    key,
                    key_span: span,
                    node,
                })
            });
            TreeValue::Table(Table {
                entries: entries.collect::<Result<_, String>>()?,
            })
        }
    };
    Ok(Node { span, value })
}
