//! Whether a run is valid: the scenario's conditions, judged over what the run has given, with the names of tables.

use super::expression::{evaluate, paths, render};
use super::facts::{self, Files};
use super::histograms::Histograms;
use super::select::Run;
use crate::results::read::{ConditionPlan, Plan, RunSoFar};
use serde_json::Value;

/// The first condition that the run breaks, as a sentence; None where it keeps all. A condition on something that `when`
/// left out of the run does not apply.
pub fn broken(plan: &Plan, so_far: RunSoFar) -> Option<String> {
    if plan.conditions.is_empty() {
        return None;
    }
    let (position, log) = (so_far.run, so_far.hlog.clone());
    let files = Files::so_far(so_far);
    let run = Run::new(0, plan, position, None);
    let mut histograms = Histograms::new(true);
    let mut names = run.names();
    names.extend(facts::names(
        &facts::whole(&log, &files, position),
        &mut histograms,
    ));
    names.insert("probe".to_owned(), files.probes(position));
    let names = Value::Object(names);
    let mut conditions = plan.conditions.iter();
    conditions.find_map(|condition| judge(condition, &run, &names))
}

fn judge(condition: &ConditionPlan, run: &Run<'_>, names: &Value) -> Option<String> {
    let require = &condition.require;
    match evaluate(require, names) {
        Ok(Value::Bool(true)) => None,
        Ok(Value::Bool(false)) => Some(sentence(condition, names)),
        Ok(other) => Some(format!(
            "the condition `{require}` gives {other}, which is neither true nor false"
        )),
        Err(_) if reads_left_out(require, run) => None,
        Err(error) => Some(format!(
            "the condition `{require}` cannot be judged: {error}"
        )),
    }
}

fn reads_left_out(expression: &str, run: &Run<'_>) -> bool {
    let left_out = |name: &str| run.shape.left_out.iter().any(|other| other == name);
    paths(expression)
        .iter()
        .any(|path| left_out(path) || path.split('.').next().is_some_and(left_out))
}

fn sentence(condition: &ConditionPlan, names: &Value) -> String {
    let require = &condition.require;
    if condition.message.is_empty() {
        return format!("`{require}` does not hold");
    }
    render(&condition.message, names)
        .unwrap_or_else(|error| format!("`{require}` does not hold (its message: {error})"))
}
