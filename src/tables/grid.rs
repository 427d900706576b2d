//! One table: the values of every cell, combined over repeats, put into rows and columns, with ratios and notes.

use super::facts::{self, Files, Phase};
use super::histograms::Histograms;
use super::repeats::{Combined, combine};
use super::select::{Orders, Run, cells_of};
use super::value::{Outcome, evaluate_values, mentioned};
use super::{Table, TablesError};
use crate::results::cells;
use crate::results::read::{RepeatRule, Results, TablePlan};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The name that `rows` has for a row per window, and the column it becomes.
const WINDOW: &str = "window";
const WINDOW_COLUMN: &str = "window_start_seconds";

/// Rows sort by the order of their values; a window by its start.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RowKey {
    values: Vec<u64>,
    repeat: u32,
}

#[derive(Debug, Default)]
struct Row {
    shown: Vec<Value>,
    /// By the order of the column's value.
    cells: BTreeMap<usize, Cell>,
}

#[derive(Clone, Debug, Default)]
struct Cell {
    /// One per value of the table.
    values: Vec<Combined>,
    notes: Vec<String>,
    stand_in_for: String,
}

/// Everything that stays the same while a table is made.
struct Maker<'a> {
    definition: &'a TablePlan,
    all: &'a [Results],
    files: &'a [Files],
    /// Phases that the expressions read.
    phases: BTreeSet<String>,
    histograms: Histograms,
}

pub(super) fn build(
    definition: &TablePlan,
    all: &[Results],
    files: &[Files],
) -> Result<Table, TablesError> {
    let orders = Orders::new(all);
    let cells = cells_of(definition, all, &orders)?;
    let percentiles = definition.values.iter().any(|(_, e)| e.contains("_time_p"));
    let mut maker = Maker {
        definition,
        all,
        files,
        phases: mentioned(definition),
        histograms: Histograms::new(percentiles),
    };
    let mut columns: BTreeMap<usize, String> = BTreeMap::new();
    let mut rows: BTreeMap<RowKey, Row> = BTreeMap::new();
    let mut several = false;
    for (place, runs) in &cells {
        let first = &runs[0];
        several |= runs.len() > 1;
        let shown = cells::value(&first.shown(&definition.columns));
        columns.entry(place.column).or_insert_with(|| shown.clone());
        for ((window, repeat), mut cell) in maker.cell(runs) {
            if !shown.is_empty() {
                let with_column = |note: &String| format!("{shown}: {note}");
                cell.notes = cell.notes.iter().map(with_column).collect();
            }
            let row = rows
                .entry(maker.row_key(&place.row, window, repeat))
                .or_default();
            row.shown = maker.row_values(first, window, repeat);
            row.cells.insert(place.column, cell);
        }
    }
    let ratios = Ratios::of(definition, &orders);
    let layout = Layout {
        definition,
        columns: &columns,
        spread: several && !matches!(definition.repeats, RepeatRule::All | RepeatRule::Merged),
    };
    let mut notes = maker.histograms.faults;
    notes.dedup();
    Ok(Table {
        name: definition.name.clone(),
        header: layout.header(),
        rows: rows
            .keys()
            .map(|key| layout.row(key, &rows, &ratios))
            .collect(),
        notes,
    })
}

impl Maker<'_> {
    /// What a cell's runs give, by window (0 where the table has none) and repeat (0 where they are combined).
    fn cell(&mut self, runs: &[Run<'_>]) -> BTreeMap<(u64, u32), Cell> {
        if self.definition.repeats == RepeatRule::All {
            return runs
                .iter()
                .flat_map(|run| {
                    let cells = self.combined(std::slice::from_ref(run));
                    cells
                        .into_iter()
                        .map(|(window, cell)| ((window, run.repeat), cell))
                })
                .collect();
        }
        let cells = self.combined(runs).into_iter();
        cells.map(|(window, cell)| ((window, 0), cell)).collect()
    }

    /// The runs of a cell as one, by window.
    fn combined(&mut self, runs: &[Run<'_>]) -> BTreeMap<u64, Cell> {
        let mut usable: Vec<&Run<'_>> = runs.iter().filter(|run| run.is_valid()).collect();
        if usable.is_empty() && self.definition.show_invalid {
            usable = runs.iter().filter(|run| run.is_invalid()).collect();
        }
        let about = about_runs(runs, &usable);
        let stand_in_for = runs[0].shape.target.stand_in_for.clone();
        let mut cells: BTreeMap<u64, Cell> = BTreeMap::new();
        for (window, readings) in self.readings(&usable) {
            let (values, notes) = combine_readings(&readings, self.definition);
            let notes = about.iter().cloned().chain(notes).collect();
            let cell = Cell {
                values,
                notes: unique(notes),
                stand_in_for: stand_in_for.clone(),
            };
            cells.insert(window, cell);
        }
        if cells.is_empty() {
            let cell = Cell {
                values: vec![Combined::default(); self.definition.values.len()],
                notes: about,
                stand_in_for,
            };
            cells.insert(0, cell);
        }
        cells
    }

    /// What each run gives for each value, by window; one reading of all together where they are merged.
    fn readings(&mut self, usable: &[&Run<'_>]) -> BTreeMap<u64, Vec<Vec<Outcome>>> {
        let mut by_window: BTreeMap<u64, Vec<(usize, Vec<Phase>)>> = BTreeMap::new();
        for (at, run) in usable.iter().enumerate() {
            for (window, phases) in self.phases_of(run) {
                by_window.entry(window).or_default().push((at, phases));
            }
        }
        let merged = self.definition.repeats == RepeatRule::Merged;
        let mut readings = BTreeMap::new();
        for (window, mut runs) in by_window {
            if merged && runs.len() > 1 {
                let first = runs[0].0;
                let all: Vec<Vec<Phase>> = runs.into_iter().map(|(_, phases)| phases).collect();
                runs = vec![(first, facts::together(&all, &mut self.histograms))];
            }
            let values = runs.iter().map(|(at, phases)| {
                let mut tree = facts::names(phases, &mut self.histograms);
                if !(merged && usable.len() > 1) {
                    let run = usable[*at];
                    let probes = self.files[run.directory].probes(run.run);
                    tree.insert("probe".to_owned(), probes);
                }
                evaluate_values(self.definition, usable[*at], tree)
            });
            readings.insert(window, values.collect());
        }
        readings
    }

    fn phases_of(&mut self, run: &Run<'_>) -> BTreeMap<u64, Vec<Phase>> {
        let (results, files) = (&self.all[run.directory], &self.files[run.directory]);
        let mut by_window = match self.definition.rows.iter().any(|row| row == WINDOW) {
            false => {
                let log = results.hlog(run.run);
                BTreeMap::from([(0, facts::whole(&log, files, run.run))])
            }
            true => facts::by_window(
                results,
                files,
                run.run,
                self.definition.every_ns,
                &self.phases,
                &mut self.histograms,
            ),
        };
        for phases in by_window.values_mut() {
            phases.retain(|phase| self.phases.contains(&phase.name));
        }
        by_window
    }

    fn row_key(&self, orders: &[usize], window: u64, repeat: u32) -> RowKey {
        let names = self.definition.rows.iter().zip(orders);
        RowKey {
            values: names
                .map(|(name, &order)| if name == WINDOW { window } else { order as u64 })
                .collect(),
            repeat,
        }
    }

    fn row_values(&self, run: &Run<'_>, window: u64, repeat: u32) -> Vec<Value> {
        let names = self.definition.rows.iter();
        let mut values: Vec<Value> = names
            .map(|name| match name.as_str() {
                WINDOW => json!(window as f64 / 1e9),
                name => run.shown(name),
            })
            .collect();
        if self.definition.repeats == RepeatRule::All {
            values.push(json!(repeat));
        }
        values
    }
}

/// What must be known of a cell's runs beside their values: those that do not count, doubts, stand-ins.
fn about_runs(runs: &[Run<'_>], usable: &[&Run<'_>]) -> Vec<String> {
    let mut by_text: Vec<(String, Vec<u32>)> = Vec::new();
    let mut say =
        |text: String, repeat: u32| match by_text.iter_mut().find(|(known, _)| *known == text) {
            Some((_, repeats)) => repeats.push(repeat),
            None => by_text.push((text, vec![repeat])),
        };
    for run in runs {
        match run.row {
            None => say("not run".to_owned(), run.repeat),
            Some(row) if row.status != "valid" => {
                say(format!("{}: {}", row.status, row.reason), run.repeat);
            }
            Some(_) => {}
        }
    }
    for run in usable {
        for doubt in run.row.iter().flat_map(|row| &row.doubts) {
            say(format!("doubt: {doubt}"), run.repeat);
        }
    }
    let target = &runs[0].shape.target;
    let stand_in = Some(format!(
        "{} stands in for {}",
        target.name, target.stand_in_for
    ));
    let notes = by_text.into_iter().map(|(text, repeats)| {
        if repeats.len() == runs.len() {
            return text;
        }
        let repeats: Vec<String> = repeats.iter().map(u32::to_string).collect();
        format!("repeat {} {text}", repeats.join(", "))
    });
    let stand_in = stand_in.filter(|_| !target.stand_in_for.is_empty());
    notes.chain(stand_in).collect()
}

fn combine_readings(
    readings: &[Vec<Outcome>],
    definition: &TablePlan,
) -> (Vec<Combined>, Vec<String>) {
    let mut notes = Vec::new();
    let names = definition.values.iter().enumerate();
    let values = names.map(|(at, (name, _))| {
        let mut known = Vec::new();
        for reading in readings {
            match &reading[at] {
                Ok(value) => known.push(value.clone()),
                Err(reason) => notes.push(format!("{name}: {reason}")),
            }
        }
        combine(&known, definition.repeats).unwrap_or_else(|reason| {
            notes.push(format!("{name}: {reason}"));
            Combined::default()
        })
    });
    (values.collect(), notes)
}

fn unique(mut notes: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    notes.retain(|note| seen.insert(note.clone()));
    notes
}

/// `ratio_to`: where the base of a cell is.
struct Ratios {
    /// Position in `rows`, and the order of the base's value.
    rows: Vec<(usize, u64)>,
    column: Option<usize>,
}

impl Ratios {
    fn of(definition: &TablePlan, orders: &Orders<'_>) -> Ratios {
        let rows = definition.rows.iter().enumerate().filter_map(|(at, name)| {
            let order = orders.find(name, definition.ratio_to.get(name)?)?;
            Some((at, order as u64))
        });
        let column = definition.ratio_to.get(&definition.columns);
        Ratios {
            rows: rows.collect(),
            column: column.and_then(|value| orders.find(&definition.columns, value)),
        }
    }

    /// The cell in percent of its base, or why that is not known.
    fn percent(
        &self,
        key: &RowKey,
        column: usize,
        value: usize,
        rows: &BTreeMap<RowKey, Row>,
    ) -> Result<Value, String> {
        let number = |key: &RowKey, column: usize| {
            let cell = rows.get(key)?.cells.get(&column)?;
            cell.values.get(value)?.value.as_f64()
        };
        let Some(own) = number(key, column) else {
            return Ok(Value::Null); // The cell's own note says why.
        };
        let mut base_key = key.clone();
        for &(at, order) in &self.rows {
            base_key.values[at] = order;
        }
        match number(&base_key, self.column.unwrap_or(column)) {
            Some(0.0) => Err("the base of the ratio is 0".to_owned()),
            // In this order the base itself is exactly 100.
            Some(base) => Ok(json!(own / base * 100.0)),
            None => Err("the base of the ratio is not known".to_owned()),
        }
    }
}

/// The columns of a table and their order: rows, values, ratios, `_min`, `_max`, `_n`, `stand_in_for`, `notes`.
struct Layout<'a> {
    definition: &'a TablePlan,
    /// The pivot's values by their order; one empty text without a pivot.
    columns: &'a BTreeMap<usize, String>,
    /// Whether the spread of the repeats is shown.
    spread: bool,
}

impl Layout<'_> {
    /// Every pair of a pivot column and a value, in order, with the name of its column.
    fn values(&self) -> Vec<(usize, usize, String)> {
        let pivot = !self.definition.columns.is_empty();
        let single = self.definition.values.len() == 1;
        let mut all = Vec::new();
        for (&column, shown) in self.columns {
            for (value, (name, _)) in self.definition.values.iter().enumerate() {
                let title = match (pivot, single) {
                    (false, _) => name.clone(),
                    (true, true) => shown.clone(),
                    (true, false) => format!("{shown}_{name}"),
                };
                all.push((column, value, title));
            }
        }
        all
    }

    fn ratio_title(&self, column: usize, title: &str) -> String {
        let name = &self.definition.ratio_name;
        match (name.is_empty(), self.definition.columns.is_empty()) {
            (true, _) => format!("{title}_percent"),
            (false, true) => name.clone(),
            (false, false) => format!("{}_{name}", self.columns[&column]),
        }
    }

    fn header(&self) -> Vec<String> {
        let rows = self.definition.rows.iter();
        let mut header: Vec<String> = rows
            .map(|name| match name.as_str() {
                // A header of the scenario's own is asked for by the name in `rows`.
                WINDOW if !self.definition.headers.contains_key(WINDOW) => WINDOW_COLUMN.to_owned(),
                name => name.to_owned(),
            })
            .collect();
        if self.definition.repeats == RepeatRule::All {
            header.push("repeat".to_owned());
        }
        let values = self.values();
        header.extend(values.iter().map(|(_, _, title)| title.clone()));
        if !self.definition.ratio_to.is_empty() {
            let titles = values.iter();
            header.extend(titles.map(|(column, _, title)| self.ratio_title(*column, title)));
        }
        if self.spread {
            for suffix in ["min", "max", "n"] {
                header.extend(values.iter().map(|(_, _, t)| format!("{t}_{suffix}")));
            }
        }
        header.extend(["stand_in_for", "notes"].map(str::to_owned));
        for name in &mut header {
            if let Some(other) = self.definition.headers.get(name) {
                *name = other.clone();
            }
        }
        header
    }

    fn row(&self, key: &RowKey, rows: &BTreeMap<RowKey, Row>, ratios: &Ratios) -> Vec<Value> {
        let row = &rows[key];
        let nothing = Combined::default();
        let values = self.values();
        let combined = |column: usize, value: usize| {
            let cell = row.cells.get(&column);
            cell.and_then(|cell| cell.values.get(value))
                .unwrap_or(&nothing)
        };
        let mut notes: Vec<String> = row.cells.values().flat_map(|c| c.notes.clone()).collect();
        let mut cells = row.shown.clone();
        let each = || values.iter().map(|(c, v, _)| combined(*c, *v));
        cells.extend(each().map(|combined| combined.value.clone()));
        if !self.definition.ratio_to.is_empty() {
            for (column, value, title) in &values {
                cells.push(
                    ratios
                        .percent(key, *column, *value, rows)
                        .unwrap_or_else(|reason| {
                            notes.push(format!("{}: {reason}", self.ratio_title(*column, title)));
                            Value::Null
                        }),
                );
            }
        }
        if self.spread {
            cells.extend(each().map(|combined| combined.min.clone()));
            cells.extend(each().map(|combined| combined.max.clone()));
            cells.extend(each().map(|combined| json!(combined.count)));
        }
        cells.push(json!(self.stand_ins(row)));
        cells.push(json!(unique(notes).join("; ")));
        cells
    }

    fn stand_ins(&self, row: &Row) -> String {
        let pivot = !self.definition.columns.is_empty();
        let cells = row.cells.iter();
        let stand_ins = cells.filter(|(_, cell)| !cell.stand_in_for.is_empty());
        let texts: Vec<String> = stand_ins
            .map(|(column, cell)| match pivot {
                true => format!("{}: {}", self.columns[column], cell.stand_in_for),
                false => cell.stand_in_for.clone(),
            })
            .collect();
        unique(texts).join("; ")
    }
}
