//! The values of one run: each expression of a table evaluated, or the reason why it has no value.

use super::expression::{evaluate, paths};
use super::select::Run;
use crate::diag::did_you_mean;
use crate::results::columns::operation_columns;
use crate::results::read::TablePlan;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// A value, or the reason why there is none.
pub type Outcome = Result<Value, String>;

/// First parts of all paths in a table's values: the phases that it reads are among them.
pub fn mentioned(definition: &TablePlan) -> BTreeSet<String> {
    let expressions = definition.values.iter();
    expressions
        .flat_map(|(_, expression)| paths(expression))
        .map(|path| root(&path).to_owned())
        .collect()
}

fn root(path: &str) -> &str {
    path.split('.').next().unwrap_or(path)
}

/// Evaluates every expression of the table over the run's names and its phases.
pub fn evaluate_values(
    definition: &TablePlan,
    run: &Run<'_>,
    phases: Map<String, Value>,
) -> Vec<Outcome> {
    let mut names = run.names();
    names.extend(phases);
    let names = Value::Object(names);
    let expressions = definition.values.iter();
    expressions
        .map(|(_, expression)| match evaluate(expression, &names) {
            Ok(Value::Null) => Err(reason(expression, &names, run, "it has no value")),
            Ok(value) => Ok(value),
            Err(error) => Err(reason(expression, &names, run, &error)),
        })
        .collect()
}

/// Why an expression has no value: what one of its paths lacks, else the error itself.
fn reason(expression: &str, names: &Value, run: &Run<'_>, error: &str) -> String {
    for path in paths(expression) {
        let first = root(&path);
        let left_out = |name: &str| run.shape.left_out.iter().any(|other| other == name);
        if left_out(first) {
            return format!("phase {first} was left out");
        }
        if left_out(&path) {
            return format!("{path} was left out");
        }
        match lookup(names, &path) {
            Some(Value::Null) if path.contains("_time_p") => {
                return format!(
                    "{path} is not known (it falls among failures, or too few operations support it)"
                );
            }
            Some(Value::Null) => return format!("{path} is not known"),
            Some(_) => {}
            None => return missing(&path, names, run),
        }
    }
    error.to_owned()
}

fn lookup<'v>(names: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.')
        .try_fold(names, |value, part| value.get(part))
}

fn missing(path: &str, names: &Value, run: &Run<'_>) -> String {
    let first = root(path);
    if first == "probe" {
        return format!("{path} was not read");
    }
    if names.get(first).is_none() && run.shape.phases.iter().any(|phase| phase.name == first) {
        return format!("phase {first} has no results");
    }
    let last = path.rsplit('.').next().unwrap_or(path);
    let columns = operation_columns();
    let others = columns.iter().map(String::as_str);
    match did_you_mean(last, others.filter(|column| *column != last)) {
        Some(column) => format!("there is no {path}; did you mean {column}?"),
        None => format!("there is no {path}"),
    }
}
