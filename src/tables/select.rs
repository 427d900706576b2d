//! Which runs a table shows, and in which row and column each stands.
//!
//! Knows axes, labels and `where`; nothing of values.

use super::TablesError;
use super::expression::evaluate;
use crate::results::cells;
use crate::results::read::{Plan, Results, RunRow, Shape, TablePlan};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A run of one of the directories, with what a table knows of it before its values.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// Index of its run directory.
    pub directory: usize,
    /// Position in that directory's plan.
    pub run: usize,
    pub repeat: u32,
    pub shape: &'a Shape,
    /// None: it was not run (yet).
    pub row: Option<&'a RunRow>,
    /// Axes and labels by name.
    pub keys: BTreeMap<&'a str, &'a Value>,
}

impl<'a> Run<'a> {
    /// `row`: what runs.csv says of it.
    pub fn new(directory: usize, plan: &'a Plan, run: usize, row: Option<&'a RunRow>) -> Run<'a> {
        let planned = &plan.runs[run];
        let axes = plan.axes.iter().zip(&planned.point);
        let axes = axes.map(|(axis, &at)| (axis.name.as_str(), &axis.values[at as usize]));
        let labels = plan.labels.iter().map(|(k, v)| (k.as_str(), v));
        Run {
            directory,
            run,
            repeat: planned.repeat,
            shape: &plan.shapes[planned.shape as usize],
            row,
            keys: labels.chain(axes).collect(),
        }
    }

    pub fn is_valid(&self) -> bool {
        self.row.is_some_and(|row| row.status == "valid")
    }

    pub fn is_invalid(&self) -> bool {
        self.row.is_some_and(|row| row.status == "invalid")
    }

    /// Vars, axes, labels, `repeat` and `target`, as expressions read them.
    pub fn names(&self) -> Map<String, Value> {
        let mut names = Map::new();
        names.insert("target".to_owned(), json!(self.shape.target.name));
        for (name, value) in self.shape.vars.iter() {
            names.insert(name.clone(), value.clone());
        }
        for (name, value) in &self.keys {
            names.insert((*name).to_owned(), (*value).clone());
        }
        names.insert("repeat".to_owned(), json!(self.repeat));
        names
    }

    /// How a value of an axis or label is shown: a target by its label, where it has one.
    pub fn shown(&self, name: &str) -> Value {
        let target = &self.shape.target;
        if name == "target" && !target.label.is_empty() {
            return json!(target.label);
        }
        self.keys.get(name).map_or(Value::Null, |v| (*v).clone())
    }
}

/// Every value of every axis and label, in the order of the sweeps and of the directories.
pub struct Orders<'a>(BTreeMap<&'a str, Vec<&'a Value>>);

impl<'a> Orders<'a> {
    pub fn new(all: &'a [Results]) -> Orders<'a> {
        let mut orders: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        for results in all {
            let axes = results.plan.axes.iter();
            let axes = axes.flat_map(|axis| axis.values.iter().map(|v| (axis.name.as_str(), v)));
            let labels = results.plan.labels.iter().map(|(k, v)| (k.as_str(), v));
            for (name, value) in labels.chain(axes) {
                let known = orders.entry(name).or_default();
                if !known.contains(&value) {
                    known.push(value);
                }
            }
        }
        Orders(orders)
    }

    pub fn knows(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().copied()
    }

    /// Position of a value among those of its axis; 0 where there is none.
    pub fn of(&self, name: &str, value: Option<&Value>) -> usize {
        let Some(values) = self.0.get(name) else {
            return 0;
        };
        let at = value.and_then(|value| values.iter().position(|known| same(known, value)));
        at.unwrap_or_default()
    }

    /// Position of a value that a scenario names; None where the axis has no such value.
    pub fn find(&self, name: &str, value: &Value) -> Option<usize> {
        let values = self.0.get(name)?;
        values.iter().position(|known| same(known, value))
    }
}

/// 1 and 1.0 are the same value.
fn same(a: &Value, b: &Value) -> bool {
    a == b || matches!((a.as_f64(), b.as_f64()), (Some(a), Some(b)) if a == b)
}

/// The cell of a table: its position by the order of the row's values, and the column's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// One per name in `rows`; `window` is 0 here.
    pub row: Vec<usize>,
    /// 0 where there is no pivot.
    pub column: usize,
}

/// The runs of a table by the cell in which they stand, in the table's order.
pub fn cells_of<'a>(
    definition: &TablePlan,
    all: &'a [Results],
    orders: &Orders<'a>,
) -> Result<BTreeMap<Place, Vec<Run<'a>>>, TablesError> {
    check_names(definition, orders)?;
    let mut cells: BTreeMap<Place, Vec<Run<'a>>> = BTreeMap::new();
    for (directory, results) in all.iter().enumerate() {
        for run in 0..results.plan.runs.len() {
            let run = Run::new(directory, &results.plan, run, results.runs.get(&run));
            if !selected(definition, &run)? {
                continue;
            }
            let order = |name: &str| orders.of(name, run.keys.get(name).copied());
            let place = Place {
                row: definition.rows.iter().map(|name| order(name)).collect(),
                column: order(&definition.columns),
            };
            cells.entry(place).or_default().push(run);
        }
    }
    for runs in cells.values() {
        check_one_value(definition, runs)?;
    }
    Ok(cells)
}

fn selected(definition: &TablePlan, run: &Run<'_>) -> Result<bool, TablesError> {
    if definition.where_.is_empty() {
        return Ok(true);
    }
    match evaluate(&definition.where_, &Value::Object(run.names())) {
        Ok(Value::Bool(selected)) => Ok(selected),
        Ok(other) => Err(TablesError::definition(
            definition,
            format!(
                "where = \"{}\" gives {other}, which is neither true nor false",
                definition.where_
            ),
        )),
        Err(error) => Err(TablesError::definition(
            definition,
            format!(
                "where = \"{}\" cannot be computed: {error}",
                definition.where_
            ),
        )),
    }
}

fn check_names(definition: &TablePlan, orders: &Orders<'_>) -> Result<(), TablesError> {
    let rows = definition.rows.iter().filter(|name| *name != "window");
    let columns = Some(&definition.columns).filter(|name| !name.is_empty());
    for name in rows.chain(columns) {
        if !orders.knows(name) {
            let known: Vec<&str> = orders.names().collect();
            return Err(TablesError::definition(
                definition,
                format!(
                    "`{name}` is neither an axis nor a label; there are {}",
                    known.join(", ")
                ),
            ));
        }
    }
    for (name, value) in &definition.ratio_to {
        if !definition.rows.contains(name) && definition.columns != *name {
            return Err(TablesError::definition(
                definition,
                format!("ratio_to names `{name}`, which is neither in rows nor in columns"),
            ));
        }
        if orders.find(name, value).is_none() {
            return Err(TablesError::definition(
                definition,
                format!("ratio_to: `{name}` is never {value}"),
            ));
        }
    }
    Ok(())
}

/// An axis that is neither row nor column must not differ within a cell, or its runs would pass for repeats.
fn check_one_value(definition: &TablePlan, runs: &[Run<'_>]) -> Result<(), TablesError> {
    let Some((first, others)) = runs.split_first() else {
        return Ok(());
    };
    for (name, value) in &first.keys {
        if definition.rows.iter().any(|row| row == name) || definition.columns == *name {
            continue;
        }
        let other = others.iter().find_map(|run| {
            let other = run.keys.get(name).copied();
            (other != Some(*value)).then_some(other)
        });
        if let Some(other) = other {
            return Err(TablesError::definition(
                definition,
                format!(
                    "`{name}` has several values in one cell ({} and {}); put it into rows or columns, or choose one by where",
                    cells::value(value),
                    other.map(cells::value).unwrap_or_else(|| "none".to_owned())
                ),
            ));
        }
    }
    Ok(())
}
