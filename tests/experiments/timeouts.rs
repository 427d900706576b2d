//! nosql-timeouts on real servers of several nodes: everything loaded is read before the clock starts, and operations go
//! to the nodes that the groups name, in the number that the results say.

use super::{Experiment, assert_counts, count, number, quick};
use crate::kit::Row;

/// `127.0.0.1:7001=120 127.0.0.2:7001=118` as numbers.
fn by_node(cell: &str) -> Vec<u64> {
    let counted = cell
        .split_whitespace()
        .map(|node| node.rsplit_once('=').expect("a node and its count").1);
    counted
        .map(|count| count.parse().expect("a count"))
        .collect()
}

fn group<'a>(rows: &'a [Row], run: &str, name: &str) -> &'a Row {
    let found = rows
        .iter()
        .find(|row| row["run"] == run && row["group"] == name);
    found.unwrap_or_else(|| panic!("no group {name} of {run}"))
}

fn assert_nodes(experiment: &Experiment, readers: usize) {
    let check = experiment.operations("check");
    assert_eq!(check.len(), 2, "a run for each timeout");
    for row in &check {
        assert_eq!(count(row, "found"), 1_000, "{row:?}");
        assert_eq!(count(row, "wrong_value"), 0, "{row:?}");
    }
    let steady = experiment.operations("steady");
    assert_counts(&steady);
    for run in check.iter().map(|row| &row["run"]) {
        for (name, nodes) in [("read", readers), ("write", 1)] {
            let row = group(&steady, run, name);
            let counts = by_node(&row["endpoints"]);
            assert_eq!(counts.len(), nodes, "{row:?}");
            assert_eq!(counts.iter().sum::<u64>(), count(row, "operations"));
            assert!(counts.iter().all(|count| *count > 0), "{row:?}");
        }
    }
}

/// Each percentile at least the one before. One that too few operations support is not known, and none after it is.
fn assert_ordered(row: &Row, kind: &str) {
    let columns =
        ["median", "p95", "p99", "p99_9"].map(|name| format!("{kind}_{name}_succeeded_us"));
    let known: Vec<&String> = columns
        .iter()
        .take_while(|column| !row[*column].is_empty())
        .collect();
    assert!(!known.is_empty(), "{row:?}");
    assert!(
        columns[known.len()..]
            .iter()
            .all(|column| row[column].is_empty()),
        "{row:?}"
    );
    let mut figures: Vec<f64> = known.iter().map(|column| number(row, column)).collect();
    figures.push(number(row, &format!("{kind}_max_succeeded_us")));
    assert!(figures.is_sorted(), "{row:?}");
}

fn assert_tables(experiment: &Experiment) {
    let rows = experiment.table("nosql-timeouts");
    let timeouts: Vec<&str> = rows.iter().map(|row| row["timeout_ms"].as_str()).collect();
    assert_eq!(timeouts, ["500", "5000"]);
    for row in &rows {
        for kind in ["read", "write"] {
            let of = |column: &str| number(row, &format!("{kind}_{column}"));
            assert!(of("per_second") > 0.0, "{row:?}");
            assert_ordered(row, kind);
            // A success is within its limit, but for the instant in which its end is seen.
            let limit = number(row, "timeout_ms") * 1_000.0;
            assert!(of("max_succeeded_us") < limit + 100_000.0, "{row:?}");
        }
    }
    let windows = experiment.table("nosql-timeouts-over-time");
    assert!(windows.len() >= 16, "{} windows", windows.len());
}

#[test]
fn redis_is_written_at_its_primary_and_read_at_both_replicas() {
    let only = ["--only", "target=redis"];
    let Some(experiment) = quick("nosql-timeouts", &["redis-server"], &only) else {
        return;
    };
    let experiment = experiment.expect(0);
    assert_nodes(&experiment, 2);
    assert_tables(&experiment);
}

#[test]
fn cassandra_is_written_at_one_coordinator_and_read_at_all_three() {
    let only = ["--only", "target=cassandra"];
    let Some(experiment) = quick("nosql-timeouts", &["java", "mvn"], &only) else {
        return;
    };
    let experiment = experiment.expect(0);
    assert_nodes(&experiment, 3);
    assert_tables(&experiment);
}
