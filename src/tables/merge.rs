//! Several rows of operations.csv or windows.csv as one: operations that ran beside each other, or one after another.
//!
//! Counts add up and percentiles come from merged histograms, never from other percentiles. What cannot be merged is not
//! known (null).

use super::histograms::{Histograms, Source};
use crate::results::columns::{COUNTS, success_percent};
use crate::results::read::{PERCENTILES, percentile_ns};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// One row, or several merged.
#[derive(Clone, Debug, Default)]
pub struct Piece {
    pub group: String,
    /// By the names of the columns; null = not known.
    pub cells: Map<String, Value>,
    /// The measured time of all passes, or the length of the window.
    pub seconds: f64,
    pub sources: Vec<Source>,
}

/// How the pieces lie in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// At the same time: rates add up.
    Beside,
    /// One after another (repeats, windows): rates are those of the time together.
    After,
}

/// One piece of all. With one it is that one, exactly as it stands in the file.
pub fn merge(pieces: &[Piece], how: How, histograms: &mut Histograms) -> Piece {
    let [first, _, ..] = pieces else {
        return pieces.first().cloned().unwrap_or_default();
    };
    let seconds: Vec<f64> = pieces.iter().map(|piece| piece.seconds).collect();
    let mut merged = Piece {
        group: first.group.clone(),
        cells: Map::new(),
        seconds: match how {
            How::Beside => seconds.iter().copied().fold(0.0, f64::max),
            How::After => seconds.iter().sum(),
        },
        sources: pieces.iter().flat_map(|p| p.sources.clone()).collect(),
    };
    for column in first.cells.keys() {
        merged
            .cells
            .insert(column.clone(), simple(column, pieces, how));
    }
    derived(&mut merged, pieces, how);
    percentiles(&mut merged, histograms);
    merged
}

/// Columns that can be merged by themselves.
fn simple(column: &str, pieces: &[Piece], how: How) -> Value {
    let is_count = COUNTS.iter().any(|(name, _)| *name == column);
    match column {
        _ if is_count => sum(column, pieces),
        "bytes_sent" | "bytes_received" | "client_cpu_seconds" | "warnings" => sum(column, pieces),
        "throughput_per_second" | "attempted_per_second" | "intended_rate_per_second" => {
            rate(column, pieces, how)
        }
        "reconnections" | "reconnecting_seconds" => match how {
            How::Beside => per_group(column, pieces),
            How::After => sum(column, pieces),
        },
        "threads" | "connections" => match how {
            How::Beside => per_group(column, pieces),
            How::After => extreme(column, pieces, f64::max),
        },
        "passes" | "window_seconds" => match how {
            How::Beside => extreme(column, pieces, f64::max),
            How::After => sum(column, pieces),
        },
        "workers" | "elapsed_seconds" => extreme(column, pieces, f64::max),
        "endpoints" => endpoints(pieces, how),
        "started_at" => earliest(pieces),
        "window_start_seconds" => extreme(column, pieces, f64::min),
        _ if column.ends_with("_min_us") => extreme(column, pieces, f64::min),
        _ if column.ends_with("_max_us") => extreme(column, pieces, f64::max),
        _ if column.ends_with("_mean_us") => mean(column, pieces),
        _ => same(column, pieces),
    }
}

/// Columns that follow from others.
fn derived(merged: &mut Piece, pieces: &[Piece], how: How) {
    let (succeeded, operations) = (count(merged, "succeeded"), count(merged, "operations"));
    let percent = success_percent(succeeded, operations);
    set(merged, "success_percent", json!(percent));
    let cpu = number(merged, "client_cpu_seconds");
    let per_operation = cpu
        .filter(|_| operations > 0)
        .map(|seconds| seconds * 1e6 / operations as f64);
    set(merged, "client_cpu_us_per_operation", json!(per_operation));
    if how == How::After {
        let passes: f64 = pieces.iter().filter_map(|p| number(p, "passes")).sum();
        if passes > 0.0 {
            let elapsed = merged.seconds / passes;
            set(merged, "elapsed_seconds", json!(elapsed));
        }
    }
}

/// Percentiles of the merged histograms; all are null where these are not known.
fn percentiles(merged: &mut Piece, histograms: &mut Histograms) {
    let succeeded = count(merged, "succeeded");
    let unsuccessful = count(merged, "operations").saturating_sub(succeeded);
    let known = histograms.merged(&merged.sources);
    let mut latencies = known.filter(|known| !known.is_empty() || succeeded == 0);
    let exact = number(merged, "succeeded_service_time_max_us");
    if let (Some(latencies), Some(exact)) = (&mut latencies, exact) {
        // The histogram's own is the end of a bucket.
        latencies.max_ns = (exact * 1000.0).round() as u64;
    }
    for (name, q) in PERCENTILES {
        let of = |unsuccessful: u64| {
            let ns = percentile_ns(latencies.as_ref()?, unsuccessful, q)?;
            Some(ns as f64 / 1000.0)
        };
        let all = json!(of(unsuccessful));
        let good = json!(of(0));
        set(merged, &format!("service_time_{name}_us"), all);
        set(merged, &format!("succeeded_service_time_{name}_us"), good);
        for column in [
            format!("response_time_{name}_us"),
            format!("succeeded_response_time_{name}_us"),
        ] {
            set(merged, &column, Value::Null);
        }
    }
}

/// Replaces a column that is there.
fn set(piece: &mut Piece, column: &str, value: Value) {
    if let Some(cell) = piece.cells.get_mut(column) {
        *cell = value;
    }
}

fn number(piece: &Piece, column: &str) -> Option<f64> {
    piece.cells.get(column).and_then(Value::as_f64)
}

fn count(piece: &Piece, column: &str) -> u64 {
    let cell = piece.cells.get(column);
    cell.and_then(Value::as_u64).unwrap_or_default()
}

/// Integers as such; null where one is not known.
fn sum(column: &str, pieces: &[Piece]) -> Value {
    let cells = || pieces.iter().map(|piece| piece.cells.get(column));
    let integers: Option<u64> = cells().map(|cell| cell.and_then(Value::as_u64)).sum();
    if let Some(sum) = integers {
        return json!(sum);
    }
    let numbers: Option<f64> = cells().map(|cell| cell.and_then(Value::as_f64)).sum();
    json!(numbers)
}

/// A column that is the group's and stands in each of its rows.
fn per_group(column: &str, pieces: &[Piece]) -> Value {
    let mut seen = BTreeSet::new();
    let firsts: Vec<Piece> = pieces
        .iter()
        .filter(|piece| seen.insert(piece.group.clone()))
        .cloned()
        .collect();
    sum(column, &firsts)
}

fn rate(column: &str, pieces: &[Piece], how: How) -> Value {
    if how == How::Beside {
        return sum(column, pieces);
    }
    let total: f64 = pieces.iter().map(|piece| piece.seconds).sum();
    let operations: Option<f64> = pieces
        .iter()
        .map(|piece| Some(number(piece, column)? * piece.seconds))
        .sum();
    json!(operations.filter(|_| total > 0.0).map(|sum| sum / total))
}

/// Of those that are known.
fn extreme(column: &str, pieces: &[Piece], pick: fn(f64, f64) -> f64) -> Value {
    let numbers = pieces.iter().filter_map(|piece| number(piece, column));
    let Some(found) = numbers.reduce(pick) else {
        return Value::Null;
    };
    let as_it_stands = pieces
        .iter()
        .find(|piece| number(piece, column) == Some(found))
        .and_then(|piece| piece.cells.get(column));
    as_it_stands.cloned().unwrap_or_default()
}

/// Weighted by the operations that succeeded.
fn mean(column: &str, pieces: &[Piece]) -> Value {
    let known = || {
        pieces
            .iter()
            .filter_map(|piece| Some((number(piece, column)?, count(piece, "succeeded"))))
    };
    let total: u64 = known().map(|(_, succeeded)| succeeded).sum();
    let sum: f64 = known()
        .map(|(mean, succeeded)| mean * succeeded as f64)
        .sum();
    json!((total > 0).then(|| sum / total as f64))
}

fn same(column: &str, pieces: &[Piece]) -> Value {
    let first = pieces[0].cells.get(column).cloned().unwrap_or_default();
    let all = pieces
        .iter()
        .all(|piece| piece.cells.get(column) == Some(&first));
    if all { first } else { Value::Null }
}

fn earliest(pieces: &[Piece]) -> Value {
    let texts = pieces.iter().filter_map(|p| p.cells.get("started_at"));
    // RFC 3339 in UTC sorts as text.
    json!(texts.filter_map(Value::as_str).min())
}

/// `host:port=operations` of all rows: beside each other, each row of a group has all of the group's, which count once.
fn endpoints(pieces: &[Piece], how: How) -> Value {
    let mut seen = BTreeSet::new();
    let mut operations: BTreeMap<&str, u64> = BTreeMap::new();
    for piece in pieces {
        let text = piece.cells.get("endpoints").and_then(Value::as_str);
        let text = text.unwrap_or_default();
        if !seen.insert((&piece.group, text)) && how == How::Beside {
            continue;
        }
        for (label, count) in text.split(' ').filter_map(|each| each.rsplit_once('=')) {
            *operations.entry(label).or_default() += count.parse::<u64>().unwrap_or_default();
        }
    }
    let each: Vec<String> = operations
        .iter()
        .map(|(label, count)| format!("{label}={count}"))
        .collect();
    json!(each.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(group: &str, seconds: f64, cells: Value) -> Piece {
        Piece {
            group: group.into(),
            cells: cells.as_object().unwrap().clone(),
            seconds,
            sources: Vec::new(),
        }
    }

    fn pair(passes: (u64, u64), groups: (&str, &str)) -> [Piece; 2] {
        let make = |group: &str, seconds: f64, rate: f64, ok: u64, mean: f64, passes: u64| {
            piece(
                group,
                seconds,
                json!({
                    "operations": 100, "succeeded": ok, "throughput_per_second": rate, "threads": 4,
                    "elapsed_seconds": seconds / passes as f64, "passes": passes, "success_percent": ok,
                    "succeeded_service_time_mean_us": mean, "succeeded_service_time_min_us": mean - 1.0,
                    "succeeded_service_time_p50_us": mean, "endpoints": "a:1=10 b:2=5", "load_model": "closed",
                }),
            )
        };
        [
            make(groups.0, 1.0, 100.0, 100, 10.0, passes.0),
            make(groups.1, 3.0, 20.0, 60, 20.0, passes.1),
        ]
    }

    #[test]
    fn beside_each_other_rates_add_up_and_the_longest_time_counts() {
        let histograms = &mut Histograms::new(false);
        let merged = merge(&pair((1, 1), ("read", "write")), How::Beside, histograms).cells;
        assert_eq!(merged["operations"], json!(200));
        assert_eq!(merged["success_percent"], json!(80.0));
        assert_eq!(merged["throughput_per_second"], json!(120.0));
        assert_eq!(merged["elapsed_seconds"], json!(3.0));
        assert_eq!(merged["threads"], json!(8));
        assert_eq!(merged["succeeded_service_time_min_us"], json!(9.0));
        assert_eq!(merged["succeeded_service_time_mean_us"], json!(13.75));
        // Percentiles are never made of percentiles.
        assert_eq!(merged["succeeded_service_time_p50_us"], Value::Null);
        assert_eq!(merged["endpoints"], json!("a:1=20 b:2=10"));
        assert_eq!(merged["load_model"], json!("closed"));
    }

    #[test]
    fn what_belongs_to_a_group_counts_once_in_a_mix() {
        let histograms = &mut Histograms::new(false);
        let merged = merge(&pair((1, 1), ("", "")), How::Beside, histograms).cells;
        assert_eq!(merged["threads"], json!(4));
        assert_eq!(merged["endpoints"], json!("a:1=10 b:2=5"));
    }

    #[test]
    fn after_one_another_rates_are_those_of_the_time_together() {
        let histograms = &mut Histograms::new(false);
        let merged = merge(&pair((1, 3), ("", "")), How::After, histograms).cells;
        assert_eq!(merged["throughput_per_second"], json!(40.0));
        assert_eq!(merged["passes"], json!(4));
        assert_eq!(merged["elapsed_seconds"], json!(1.0));
        assert_eq!(merged["threads"], json!(4));
    }
}
