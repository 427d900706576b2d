//! http-counter and its kin, and the counter without a web server.

use super::{Experiment, assert_consistent, count, number, quick};
use crate::kit::Row;
use std::collections::BTreeMap;

const WEB: &[&str] = &[
    "apache2",
    "/usr/lib/apache2/modules/libphp8.2.so",
    "mariadbd",
    "redis-server",
    "java",
    "mvn",
];

/// What was answered is what the counter grew by, in every run that has a counter.
fn assert_counted(experiment: &Experiment) {
    let mut counters = 0;
    for row in experiment.operations("requests") {
        if row["target"] == "static" {
            continue;
        }
        let counted = experiment.probe(&row["run"], "counted");
        assert_eq!(counted, count(&row, "succeeded") as f64, "{row:?}");
        counters += 1;
    }
    assert!(counters > 0, "no run has a counter");
}

/// Stand-ins are named wherever their figures stand.
fn assert_stand_ins_are_named(experiment: &Experiment) {
    let stand_ins: BTreeMap<String, String> = experiment
        .operations("requests")
        .into_iter()
        .map(|row| (row["target"].clone(), row["stand_in_for"].clone()))
        .collect();
    let of = |target: &str| stand_ins.get(target).map(String::as_str);
    assert_eq!(of("mysql").unwrap_or(""), "");
    for (target, original) in [("memsql", "MemSQL"), ("mongodb", "MongoDB")] {
        if let Some(named) = of(target) {
            assert_eq!(named, original);
        }
    }
}

#[test]
fn http_counter_has_the_published_shape_and_counts_what_it_answers() {
    let Some(experiment) = quick("http-counter", WEB, &["--strict"]) else {
        return;
    };
    let experiment = experiment.expect(0);
    let rows = experiment.table("http-counter");
    let concurrency: Vec<&str> = rows.iter().map(|row| row["concurrency"].as_str()).collect();
    assert_eq!(concurrency, ["1", "10"]);
    for row in &rows {
        for target in ["static", "memsql", "mysql", "redis", "mongodb"] {
            assert!(number(row, target) > 0.0, "{target}: {row:?}");
        }
        assert!(row["stand_in_for"].contains("MemSQL"), "{row:?}");
        assert!(row["stand_in_for"].contains("MongoDB"), "{row:?}");
    }
    let requests = experiment.operations("requests");
    assert_eq!(requests.len(), 10);
    assert_consistent(&requests);
    for row in &requests {
        assert_eq!(row["succeeded"], row["operations"], "{row:?}");
        // A new connection for every request: its opening is seen, and before the first byte.
        assert!(
            number(row, "connect_time_p50_us") < number(row, "first_byte_time_p50_us"),
            "{row:?}"
        );
    }
    assert_counted(&experiment);
    assert_stand_ins_are_named(&experiment);
}

#[test]
fn the_long_run_tells_failures_as_ab_counts_them_and_as_they_are() {
    let Some(experiment) = quick("http-counter-soak", WEB, &["--strict"]) else {
        return;
    };
    let experiment = experiment.expect(0);
    let rows = experiment.table("http-counter-soak");
    let targets: Vec<&str> = rows.iter().map(|row| row["target"].as_str()).collect();
    assert_eq!(targets, ["static", "memsql", "mysql", "redis", "mongodb"]);
    let requests = experiment.operations("requests");
    assert_consistent(&requests);
    for (row, operations) in rows.iter().zip(&requests) {
        assert_eq!(number(row, "failed_percent"), 0.0, "{row:?}");
        // The Redis counter starts at 999,832 and gains a digit after 168 requests: ab would call all that follow failed.
        let changed = count(operations, "length_changed") as f64;
        let as_ab = 100.0 * changed / number(operations, "operations");
        assert!((number(row, "failed_percent_as_ab") - as_ab).abs() < 1e-9);
        match row["target"].as_str() {
            "redis" => assert!(as_ab > 50.0, "{row:?}"),
            "static" => assert_eq!(as_ab, 0.0),
            _ => {}
        }
        let attempted = number(row, "requests_per_second");
        assert!(attempted >= number(row, "succeeded_per_second"), "{row:?}");
    }
    assert_counted(&experiment);
}

#[test]
fn persistent_connections_are_off_and_on() {
    let Some(experiment) = quick("http-counter-pooling", &WEB[..3], &["--strict"]) else {
        return;
    };
    let experiment = experiment.expect(0);
    let rows = experiment.table("http-counter-pooling");
    let pooling: Vec<&str> = rows.iter().map(|row| row["pooling"].as_str()).collect();
    assert_eq!(pooling, ["off", "on"]);
    assert!(
        rows.iter()
            .all(|row| number(row, "requests_per_second") > 0.0)
    );
    assert_counted(&experiment);
    // MariaDB counts its connections: one per request without persistent ones, at most one per worker with them.
    for row in experiment.operations("requests") {
        let connections = experiment.probe(&row["run"], "connections");
        let requests = count(&row, "operations") as f64;
        match row["sweep_pooling"].as_str() {
            "off" => assert!(connections >= requests, "{connections}: {row:?}"),
            _ => assert!(connections < requests / 2.0, "{connections}: {row:?}"),
        }
    }
}

#[test]
fn lost_increments_are_found_where_they_are_lost_and_nowhere_else() {
    let programs = [
        "mariadbd",
        "redis-server",
        "java",
        "mvn",
        "go",
        "/usr/lib/postgresql/15/bin/postgres",
    ];
    let Some(experiment) = quick("counter-direct", &programs, &[]) else {
        return;
    };
    // FerretDB's runs are invalid, and that is what the exit code says.
    let experiment = experiment.expect(3);
    let rows = experiment.table("counter-direct");
    assert_eq!(rows.len(), 16, "8 targets with 1 and 20 connections");
    assert_consistent(&experiment.operations("increments"));
    let runs = experiment.place.rows("runs.csv");
    for row in &rows {
        let (acknowledged, unknown) = (count(row, "acknowledged"), count(row, "unknown"));
        let (counted, lost) = (count(row, "counted"), count(row, "lost"));
        assert_eq!(lost, acknowledged.saturating_sub(counted), "{row:?}");
        assert!(counted <= acknowledged + unknown, "{row:?}");
        let run = run_of(&runs, row);
        if row["target"] == "ferretdb" && row["connections"] == "20" {
            assert!(lost > 0, "{row:?}");
            assert_eq!(run["status"], "invalid", "{run:?}");
            let sentence = format!("{lost} of {acknowledged} acknowledged increments are lost");
            assert!(run["reason"].contains(&sentence), "{run:?}");
            assert!(row["notes"].contains(&sentence), "{row:?}");
        } else {
            assert_eq!(lost, 0, "{row:?}");
            assert_eq!(acknowledged, 1_000, "{row:?}");
            assert_eq!(run["status"], "valid", "{run:?}");
        }
    }
}

fn run_of<'r>(runs: &'r [Row], row: &Row) -> &'r Row {
    let same = |run: &&Row| {
        run["target"] == row["target"] && run["sweep_connections"] == row["connections"]
    };
    runs.iter().find(same).expect("a run of the row")
}
