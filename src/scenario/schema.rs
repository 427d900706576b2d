//! The language as a JSON Schema (draft-07, which editors' tools understand), printed from the rows that read it.
//!
//! It is for completion and hints while typing; `check` is the judge. Since a file may be a fragment, or extend another,
//! a key is only required where tables are replaced as a whole: inside lists. A template may stand where `check` lets one.

use super::model;
use super::tree::{Node, Table};
use super::{check, merge, read};
use crate::diag::SourceMap;
use crate::driver::spec::DriverSpec;
use crate::rows::{Kind, NameKind, Row};
use serde_json::{Map, Value, json};

/// The schema of scenario files for a build with these drivers.
pub fn schema(drivers: &[&'static DriverSpec]) -> Value {
    let defaults = merge::defaults(&mut SourceMap::default());
    let empty = Table::default();
    let defaults = defaults.table().unwrap_or(&empty);
    let mut properties = Map::new();
    for row in model::TOP {
        let mut property = of_row(row, defaults.get(row.name), false);
        match row.name {
            "targets" => per_driver_options(&mut property, drivers),
            "operations" => per_driver_operations(&mut property, drivers),
            "quick" => property = quick(row.doc),
            _ => {}
        }
        properties.insert(row.name.to_owned(), property);
    }
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "dbbench scenario",
        "description": "A scenario of dbbench, or a fragment that scenarios extend. `dbbench check FILE` finds more than an editor can.",
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
        "definitions": {
            "template": {
                "description": "A template: `{{ expression }}`.",
                "type": "string",
                "pattern": "\\{\\{|\\{%",
            },
        },
    })
}

/// As it is printed and stored.
pub fn schema_text(drivers: &[&'static DriverSpec]) -> String {
    let text = serde_json::to_string_pretty(&schema(drivers)).expect("a schema is plain JSON");
    format!("{text}\n")
}

fn of_row(row: &Row, default: Option<&Node>, in_list: bool) -> Value {
    let mut schema = of(&row.kind, default, in_list);
    let Some(object) = schema.as_object_mut() else {
        return schema;
    };
    let mut documented = Map::new();
    documented.insert("description".to_owned(), row.doc.into());
    let default = match row.default {
        "" => default.filter(|node| is_plain(node)).map(read::to_json),
        said => serde_json::from_str(said).ok(),
    };
    if let Some(default) = default {
        documented.insert("default".to_owned(), default);
    }
    documented.append(object);
    Value::Object(documented)
}

/// Whether a default is the value itself, not a pattern for each of the user's entries.
fn is_plain(node: &Node) -> bool {
    let pattern = |table: &Table| {
        table
            .entries
            .iter()
            .any(|entry| entry.node.table().is_some())
    };
    match (node.table(), node.array()) {
        (Some(table), _) => !pattern(table) && table.entries.len() <= 2,
        (_, Some(items)) => items.iter().all(|item| item.table().is_none()),
        _ => true,
    }
}

fn of(kind: &Kind, default: Option<&Node>, in_list: bool) -> Value {
    let plain = plain(kind, default, in_list);
    match kind {
        // A plain string takes templates as it is.
        Kind::Text | Kind::Path | Kind::Regex | Kind::Any | Kind::OneOf(_) => plain,
        _ if check::takes_templates(kind) => json!({ "anyOf": [plain, template()] }),
        _ => plain,
    }
}

fn template() -> Value {
    json!({ "$ref": "#/definitions/template" })
}

fn plain(kind: &Kind, default: Option<&Node>, in_list: bool) -> Value {
    match kind {
        Kind::Any => json!({}),
        Kind::Bool => json!({ "type": "boolean" }),
        Kind::Integer { min, max } => bounded(
            "integer",
            (*min > i64::MIN).then(|| json!(min)),
            (*max < i64::MAX).then(|| json!(max)),
        ),
        Kind::Number { min, max } => bounded(
            "number",
            (*min > f64::MIN).then(|| json!(min)),
            (*max < f64::MAX).then(|| json!(max)),
        ),
        Kind::Text | Kind::Path => json!({ "type": "string" }),
        Kind::Regex => json!({ "type": "string", "format": "regex" }),
        Kind::Duration { .. } => {
            json!({ "type": "string", "pattern": "^\\s*[0-9][0-9._]*\\s*(ns|us|µs|ms|s|min|h)\\s*$" })
        }
        Kind::Size { zero } => json!({ "anyOf": [
            { "type": "integer", "minimum": if *zero { 0 } else { 1 } },
            { "type": "string", "pattern": "^\\s*[0-9][0-9._]*\\s*(B|KiB|MiB|GiB|TiB|KB|kB|MB|GB|TB)\\s*$" },
        ] }),
        Kind::Rate => {
            json!({ "type": "string", "pattern": "^\\s*[0-9][0-9._]*\\s*[kMG]?\\s*/\\s*(s|min|h)\\s*$" })
        }
        Kind::Choice(choices) => json!({ "enum": choices }),
        Kind::Name(names) => {
            json!({ "type": "string", "pattern": format!("^{}$", names.pattern()) })
        }
        Kind::Expression => {
            json!({ "type": "string", "pattern": "^\\s*\\{\\{[\\s\\S]*\\}\\}\\s*$" })
        }
        Kind::List(element) => {
            let default = default.and_then(Node::array).and_then(<[Node]>::first);
            json!({ "type": "array", "items": of(element, default.filter(|node| node.table().is_some()), true) })
        }
        Kind::Table(rows) => object(rows, default, in_list),
        Kind::Map(names, other) => map(&[], *names, other, default, in_list),
        Kind::Open { rows, names, other } => map(rows, *names, other, default, in_list),
        Kind::OneOf(kinds) => one_of(kinds, default, in_list),
    }
}

/// Alternatives, with one place for a template among them.
fn one_of(kinds: &[Kind], default: Option<&Node>, in_list: bool) -> Value {
    let mut alternatives: Vec<Value> = kinds
        .iter()
        .map(|kind| plain(kind, default, in_list))
        .collect();
    // A plain string takes templates as it is.
    let text = kinds.iter().any(|kind| matches!(kind, Kind::Text));
    if !text && kinds.iter().any(check::takes_templates) {
        alternatives.push(template());
    }
    json!({ "anyOf": alternatives })
}

fn bounded(kind: &str, min: Option<Value>, max: Option<Value>) -> Value {
    let mut schema = Map::new();
    schema.insert("type".to_owned(), kind.into());
    schema.extend(min.map(|min| ("minimum".to_owned(), min)));
    schema.extend(max.map(|max| ("maximum".to_owned(), max)));
    Value::Object(schema)
}

fn object(rows: &[Row], default: Option<&Node>, in_list: bool) -> Value {
    let defaults = default.and_then(Node::table);
    let mut properties = Map::new();
    for row in rows {
        let default = defaults.and_then(|table| table.get(row.name));
        properties.insert(row.name.to_owned(), of_row(row, default, in_list));
    }
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("additionalProperties".to_owned(), false.into());
    let required: Vec<&str> = rows
        .iter()
        .filter(|row| row.required)
        .map(|row| row.name)
        .collect();
    if in_list && !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema.insert("properties".to_owned(), properties.into());
    Value::Object(schema)
}

fn map(
    rows: &[Row],
    names: NameKind,
    other: &Kind,
    default: Option<&Node>,
    in_list: bool,
) -> Value {
    let every = default
        .and_then(Node::table)
        .and_then(|table| table.get("*"));
    let mut properties = Map::new();
    for row in rows {
        properties.insert(row.name.to_owned(), of_row(row, None, in_list));
    }
    let other = of(other, every, in_list);
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    if !properties.is_empty() {
        schema.insert("properties".to_owned(), properties.into());
    }
    match names {
        NameKind::Free => {
            schema.insert("additionalProperties".to_owned(), other);
        }
        _ => {
            let pattern = format!("^{}$", names.pattern());
            schema.insert("patternProperties".to_owned(), json!({ pattern: other }));
            schema.insert("additionalProperties".to_owned(), false.into());
        }
    }
    Value::Object(schema)
}

/// `[quick]`: the same keys, but those that it cannot change.
fn quick(doc: &str) -> Value {
    let mut properties = Map::new();
    for row in model::TOP
        .iter()
        .filter(|row| !model::NOT_IN_QUICK.contains(&row.name))
    {
        // The description and default stand at the key of the same name above.
        properties.insert(
            row.name.to_owned(),
            json!({ "$ref": format!("#/properties/{}", row.name) }),
        );
    }
    json!({ "description": doc, "type": "object", "additionalProperties": false, "properties": properties })
}

/// The rows of a driver's options hold where the target says that driver.
fn per_driver_options(targets: &mut Value, drivers: &[&'static DriverSpec]) {
    let pattern = format!("^{}$", NameKind::Server.pattern());
    let Some(target) = targets
        .pointer_mut("/patternProperties")
        .and_then(|all| all.get_mut(&pattern))
    else {
        return;
    };
    if drivers.is_empty() {
        return;
    }
    let names: Vec<&str> = drivers.iter().map(|spec| spec.name).collect();
    let description = target["properties"]["driver"]["description"].take();
    target["properties"]["driver"] =
        json!({ "description": description, "anyOf": [{ "enum": names }, template()] });
    let cases: Vec<Value> = drivers
        .iter()
        .map(|spec| {
            json!({
                "if": { "properties": { "driver": { "const": spec.name } }, "required": ["driver"] },
                "then": { "properties": { "options": object(spec.options, None, true) } },
            })
        })
        .collect();
    target["allOf"] = cases.into();
}

/// `[operations.NAME]` is keyed by the driver's name.
fn per_driver_operations(operations: &mut Value, drivers: &[&'static DriverSpec]) {
    let pattern = format!("^{}$", NameKind::Variable.pattern());
    let Some(operation) = operations
        .pointer_mut("/patternProperties")
        .and_then(|all| all.get_mut(&pattern))
    else {
        return;
    };
    if drivers.is_empty() {
        return;
    }
    let own = drivers.iter().filter(|spec| !spec.operation.is_empty());
    let properties: Map<String, Value> = own
        .map(|spec| (spec.name.to_owned(), object(spec.operation, None, true)))
        .collect();
    *operation =
        json!({ "type": "object", "additionalProperties": false, "properties": properties });
}
