//! Reads the axes of `[sweep]`: lists, ranges and cases.
//!
//! Knows how a range is written out and which are refused; `expand` makes points of the axes.

use super::Axis;
use super::expand::{Sweep, double_value};
use super::ids::value_text;
use super::scope::{MOST_AXES, Scope};
use crate::diag::{Diagnostic, Diagnostics, Span};
use crate::scenario::check::{Templates, check};
use crate::scenario::model::AXIS;
use crate::scenario::read::to_json;
use crate::scenario::tree::{Entry, Node, Table, Value as TreeValue};
use crate::units;
use serde_json::Value;

/// Keys of `[sweep]` that are no axes.
const NO_AXES: [&str; 2] = ["cases", "exclude"];
/// A range with more values than this is a slip of the pen.
const MOST_VALUES: usize = 100_000;

/// Names of the axes, before any template is evaluated: of the product, then of the cases.
pub fn axis_names(sweep: Option<&Table>) -> Vec<String> {
    let Some(sweep) = sweep else {
        return Vec::new();
    };
    let mut names: Vec<String> = sweep
        .entries
        .iter()
        .map(|entry| entry.key.clone())
        .filter(|key| !NO_AXES.contains(&key.as_str()))
        .collect();
    for case in sweep.get("cases").and_then(Node::array).unwrap_or(&[]) {
        for entry in case.table().iter().flat_map(|table| &table.entries) {
            if !names.contains(&entry.key) {
                names.push(entry.key.clone());
            }
        }
    }
    names
}

/// The axes with their values; None where one has a fault, which is reported.
pub fn read_sweep(scope: &mut Scope<'_>, table: Option<&Table>) -> Option<Sweep> {
    let mut sweep = Sweep::default();
    let Some(table) = table else {
        return Some(sweep);
    };
    let before = scope.faults.count();
    for entry in &table.entries {
        if NO_AXES.contains(&entry.key.as_str()) {
            continue;
        }
        if let Some(values) = read_axis(scope, entry) {
            sweep.axes.push(Axis {
                name: entry.key.clone(),
                values,
            });
        }
    }
    sweep.crossed = sweep.axes.len();
    if let Some(cases) = table.entry("cases") {
        read_cases(scope, cases, &mut sweep);
    }
    if sweep.axes.len() > MOST_AXES {
        let message = format!(
            "{} axes are more than the {MOST_AXES} there may be",
            sweep.axes.len()
        );
        scope.faults.add_plain(Diagnostic::error(
            "too-many-axes",
            table.entries[0].key_span,
            message,
        ));
    }
    (scope.faults.count() == before).then_some(sweep)
}

fn read_axis(scope: &mut Scope<'_>, entry: &Entry) -> Option<Vec<Value>> {
    let node = scope.evaluate_load(&entry.node)?;
    let mut diagnostics = Diagnostics::default();
    check(&node, &AXIS, Templates::None, &mut diagnostics);
    if diagnostics.has_errors() {
        diagnostics
            .list
            .into_iter()
            .for_each(|fault| scope.faults.add_plain(fault));
        return None;
    }
    let values = match &node.value {
        TreeValue::Array(items) => items.iter().map(to_json).collect(),
        TreeValue::Table(range) => match range_values(range, node.span) {
            Ok(values) => values,
            Err(fault) => {
                scope.faults.add_plain(*fault);
                return None;
            }
        },
        _ => return None,
    };
    let axis = Axis {
        name: entry.key.clone(),
        values,
    };
    if let Some(fault) = axis_fault(&axis, &node) {
        scope.faults.add_plain(fault);
        return None;
    }
    Some(axis.values)
}

fn axis_fault(axis: &Axis, node: &Node) -> Option<Diagnostic> {
    let name = &axis.name;
    if axis.values.is_empty() {
        let message = format!("the axis `{name}` has no values, so there would be no runs");
        return Some(
            Diagnostic::error("empty-axis", node.span, message)
                .help("give it a value, or leave the axis out"),
        );
    }
    let double = double_value(axis)?;
    let span = node
        .array()
        .and_then(|items| items.get(double))
        .map_or(node.span, |item| item.span);
    let text = value_text(&axis.values[double]);
    let message = format!("`{text}` stands twice in the axis `{name}`");
    Some(
        Diagnostic::error("double-value", span, message)
            .help("to run a point several times say `repeats` in [runs]"),
    )
}

/// Every case has the same keys; a value gets the place of its first mention.
fn read_cases(scope: &mut Scope<'_>, entry: &Entry, sweep: &mut Sweep) -> Option<()> {
    let node = scope.evaluate_load(&entry.node)?;
    let cases: Vec<(&Table, Span)> = node
        .array()?
        .iter()
        .filter_map(|case| Some((case.table()?, case.span)))
        .collect();
    let (first, _) = cases.first()?;
    let names: Vec<&str> = first
        .entries
        .iter()
        .map(|entry| entry.key.as_str())
        .collect();
    for name in &names {
        if let Some(axis) = first
            .entry(name)
            .filter(|_| sweep.axes.iter().any(|axis| axis.name == *name))
        {
            let message = format!("`{name}` is an axis of its own and one of the cases");
            scope
                .faults
                .add_plain(Diagnostic::error("duplicate-name", axis.key_span, message));
        }
        sweep.axes.push(Axis {
            name: (*name).to_owned(),
            values: Vec::new(),
        });
    }
    for (case, span) in &cases {
        if let Some(fault) = case_fault(case, &names, *span) {
            scope.faults.add_plain(fault);
            continue;
        }
        let indices = names.iter().enumerate().map(|(position, name)| {
            let value = case.get(name).map(to_json).unwrap_or_default();
            let values = &mut sweep.axes[sweep.crossed + position].values;
            let known = values.iter().position(|other| *other == value);
            known.unwrap_or_else(|| {
                values.push(value);
                values.len() - 1
            }) as u32
        });
        let indices: Vec<u32> = indices.collect();
        if sweep.cases.contains(&indices) {
            scope.faults.add_plain(Diagnostic::error(
                "double-value",
                *span,
                "this case stands twice",
            ));
        }
        sweep.cases.push(indices);
    }
    Some(())
}

fn case_fault(case: &Table, names: &[&str], span: Span) -> Option<Diagnostic> {
    let missing = names.iter().find(|name| case.get(name).is_none());
    if let Some(name) = missing {
        let message = format!("this case has no `{name}`: all cases have the same keys");
        return Some(Diagnostic::error("uneven-cases", span, message));
    }
    let more = case
        .entries
        .iter()
        .find(|entry| !names.contains(&entry.key.as_str()))?;
    let message = format!(
        "the first case has no `{}`: all cases have the same keys",
        more.key
    );
    Some(Diagnostic::error("uneven-cases", more.key_span, message))
}

/// In what a range counts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Unit {
    Integers,
    Numbers,
    Bytes,
    Nanoseconds,
}

fn range_values(range: &Table, span: Span) -> Result<Vec<Value>, Box<Diagnostic>> {
    let fault =
        |span: Span, message: String| Box::new(Diagnostic::error("wrong-range", span, message));
    let node = |key: &str| range.get(key);
    let (Some(from), Some(to)) = (node("from"), node("to")) else {
        return Err(fault(span, "a range has `from` and `to`".to_owned()));
    };
    if let (Some(step), Some(_)) = (node("step"), node("factor")) {
        return Err(fault(
            step.span,
            "a range has a `step` or a `factor`, not both".to_owned(),
        ));
    }
    let mut unit = unit_of(from).ok_or_else(|| no_value(from))?;
    let others = [Some(to), node("step")].into_iter().flatten();
    for other in others {
        let its = unit_of(other).ok_or_else(|| no_value(other))?;
        unit = common(unit, its)
            .ok_or_else(|| fault(other.span, "this is of another kind than `from`".to_owned()))?;
    }
    let (low, high) = (amount(from), amount(to));
    if low > high {
        return Err(fault(to.span, "the range ends before it begins".to_owned()));
    }
    let numbers = match node("factor") {
        Some(factor) => geometric(low, high, factor, from)?,
        None => arithmetic(low, high, node("step"), unit, span)?,
    };
    let numbers = match (unit, node("factor").and_then(Node::number)) {
        (Unit::Integers, Some(factor)) if factor.fract() != 0.0 => (numbers, Unit::Numbers),
        _ => (numbers, unit),
    };
    Ok(numbers
        .0
        .into_iter()
        .map(|number| write(number, numbers.1))
        .collect())
}

fn arithmetic(
    low: f64,
    high: f64,
    step: Option<&Node>,
    unit: Unit,
    span: Span,
) -> Result<Vec<f64>, Box<Diagnostic>> {
    let step = match step {
        Some(node) if amount(node) > 0.0 => amount(node),
        Some(node) => {
            return Err(endless(
                node.span,
                "a step of 0 or less never reaches the end",
            ));
        }
        None if matches!(unit, Unit::Bytes | Unit::Nanoseconds) => {
            let message = "a range of sizes or durations says its `step` or `factor`";
            return Err(Box::new(Diagnostic::error("wrong-range", span, message)));
        }
        None => 1.0,
    };
    let count = ((high - low) / step + 1e-9).floor() + 1.0;
    if count > MOST_VALUES as f64 {
        return Err(endless(
            span,
            &format!("this range has more than {MOST_VALUES} values"),
        ));
    }
    Ok((0..count as usize).map(|i| low + i as f64 * step).collect())
}

fn geometric(low: f64, high: f64, factor: &Node, from: &Node) -> Result<Vec<f64>, Box<Diagnostic>> {
    let times = factor.number().unwrap_or(1.0);
    if times <= 1.0 {
        return Err(endless(
            factor.span,
            "a factor of 1 or less never reaches the end",
        ));
    }
    if low <= 0.0 {
        return Err(endless(
            from.span,
            "a geometric range that begins at 0 or below never reaches its end",
        ));
    }
    let mut numbers = Vec::new();
    let mut number = low;
    while number <= high * (1.0 + 1e-9) {
        numbers.push(number);
        if numbers.len() > MOST_VALUES {
            return Err(endless(
                factor.span,
                &format!("this range has more than {MOST_VALUES} values"),
            ));
        }
        number *= times;
    }
    Ok(numbers)
}

fn endless(span: Span, message: &str) -> Box<Diagnostic> {
    Box::new(Diagnostic::error("endless-range", span, message))
}

fn no_value(node: &Node) -> Box<Diagnostic> {
    let message = "a range goes over numbers, sizes (\"1KiB\") or durations (\"10ms\")";
    Box::new(Diagnostic::error("wrong-range", node.span, message))
}

fn unit_of(node: &Node) -> Option<Unit> {
    match &node.value {
        TreeValue::Integer(_) => Some(Unit::Integers),
        TreeValue::Float(_) => Some(Unit::Numbers),
        TreeValue::String(text) if units::parse_size(text).is_ok() => Some(Unit::Bytes),
        TreeValue::String(text) if units::parse_duration(text).is_ok() => Some(Unit::Nanoseconds),
        _ => None,
    }
}

fn common(one: Unit, other: Unit) -> Option<Unit> {
    match (one, other) {
        _ if one == other => Some(one),
        (Unit::Integers, Unit::Numbers) | (Unit::Numbers, Unit::Integers) => Some(Unit::Numbers),
        _ => None,
    }
}

fn amount(node: &Node) -> f64 {
    match &node.value {
        TreeValue::String(text) => units::parse_size(text)
            .map(|bytes| bytes as f64)
            .or_else(|_| units::parse_duration(text).map(|time| time.as_nanos() as f64))
            .unwrap_or(0.0),
        _ => node.number().unwrap_or(0.0),
    }
}

/// As a scenario would have written it in a list.
fn write(number: f64, unit: Unit) -> Value {
    match unit {
        Unit::Integers => Value::from(number.round() as i64),
        // Sums of steps like 0.1 would show their rounding.
        Unit::Numbers => Value::from((number * 1e12).round() / 1e12),
        Unit::Bytes => Value::from(in_units(
            number.round() as u64,
            &[
                ("TiB", 1 << 40),
                ("GiB", 1 << 30),
                ("MiB", 1 << 20),
                ("KiB", 1 << 10),
                ("B", 1),
            ],
        )),
        Unit::Nanoseconds => Value::from(in_units(
            number.round() as u64,
            &[
                ("h", 3_600_000_000_000),
                ("min", 60_000_000_000),
                ("s", 1_000_000_000),
                ("ms", 1_000_000),
                ("us", 1_000),
                ("ns", 1),
            ],
        )),
    }
}

/// In the largest unit that leaves a whole number.
fn in_units(amount: u64, units: &[(&str, u64)]) -> String {
    let found = units
        .iter()
        .find(|(_, size)| amount >= *size && amount.is_multiple_of(*size));
    match (found, units.last()) {
        (Some((unit, size)), _) => format!("{}{unit}", amount / size),
        (None, Some((unit, _))) => format!("{amount}{unit}"),
        (None, None) => amount.to_string(),
    }
}
