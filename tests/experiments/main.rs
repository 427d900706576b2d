//! The experiments that the scenarios repeat, each in its `--quick` form on the real servers: the tables have the published
//! shape, and their figures follow from each other. Speed is never judged.

mod counters;
#[path = "../support/guarded.rs"]
mod guarded;
#[path = "../campaign/kit.rs"]
mod kit;
mod logs;
mod ports;
#[path = "../support/mod.rs"]
mod support;
mod timeouts;

use kit::{Ended, Place, Row};
use std::path::{Path, PathBuf};

/// A scenario of the repository, run once in a place of its own.
pub struct Experiment {
    pub place: Place,
    pub ended: Ended,
}

/// None where a program is missing: a visible skip for a user, a failure where servers are required.
pub fn quick(scenario: &str, programs: &[&str], more: &[&str]) -> Option<Experiment> {
    if !programs.iter().all(|program| support::installed(program)) {
        return None;
    }
    let place = Place::new();
    let file = scenario_file(scenario).display().to_string();
    let arguments = ["scenario", &file, "--quick", "--out", "out"];
    let ended = place.run(&[&arguments, more].concat());
    Some(Experiment { place, ended })
}

pub fn scenario_file(name: &str) -> PathBuf {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    scenarios.join(format!("{name}.toml"))
}

impl Experiment {
    /// It ended with this code; else the test fails with all that it said.
    #[track_caller]
    pub fn expect(mut self, code: i32) -> Experiment {
        self.ended = self.ended.expect(code);
        self
    }

    /// The rows of `tables/<name>.csv`, whose header begins as the published one.
    #[track_caller]
    pub fn table(&self, name: &str) -> Vec<Row> {
        let text = self.place.text(&format!("tables/{name}.csv"));
        let header = text.lines().next().expect("a header");
        if let Some(published) = published_header(name) {
            assert!(
                header.starts_with(published),
                "`{header}` does not begin with `{published}`"
            );
        }
        self.place.rows(&format!("tables/{name}.csv"))
    }

    /// The measured rows of operations.csv.
    pub fn operations(&self, phase: &str) -> Vec<Row> {
        let mut rows = self.place.rows("operations.csv");
        rows.retain(|row| row["phase"] == phase);
        rows
    }

    /// The value of a probe in a run.
    #[track_caller]
    pub fn probe(&self, run: &str, name: &str) -> f64 {
        let rows = self.place.rows("probes.csv");
        let row = rows
            .iter()
            .find(|row| row["run"] == run && row["probe"] == name);
        number(
            row.unwrap_or_else(|| panic!("no probe {name} of {run}")),
            "value",
        )
    }
}

/// The published tables, transcribed: their first line is the header that the scenario's own begins with.
fn published_header(table: &str) -> Option<&'static str> {
    let header = match table {
        "http-counter" => "concurrency,static,memsql,mysql,redis,mongodb",
        "http-counter-soak" => "target,requests_per_second,failed_percent",
        "http-counter-pooling" => "pooling,requests_per_second",
        "myisam-innodb-bench1" | "myisam-innodb-bench2" => "clients,configuration,myisam,innodb",
        "access-log-throughput" => "case,requests_per_second,percent_of_case_1",
        "access-log-size" => "case,kilobytes,percent_of_case_1",
        "access-log-select" => "query,engine,seconds,percent_of_myisam",
        _ => return None,
    };
    Some(header)
}

#[track_caller]
pub fn number(row: &Row, column: &str) -> f64 {
    let cell = row
        .get(column)
        .unwrap_or_else(|| panic!("no column {column} in {row:?}"));
    cell.parse()
        .unwrap_or_else(|_| panic!("{column} is `{cell}` in {row:?}"))
}

#[track_caller]
pub fn count(row: &Row, column: &str) -> u64 {
    let cell = row
        .get(column)
        .unwrap_or_else(|| panic!("no column {column} in {row:?}"));
    cell.parse()
        .unwrap_or_else(|_| panic!("{column} is `{cell}` in {row:?}"))
}

/// Every operation stands in exactly one column.
pub fn assert_counts(rows: &[Row]) {
    assert!(!rows.is_empty(), "no rows");
    for row in rows {
        let of = |column: &str| count(row, column);
        let all = of("succeeded") + of("failed") + of("timed_out") + of("wrong_value");
        assert_eq!(of("operations"), all, "{row:?}");
        assert!(of("found") + of("missing") <= of("succeeded"), "{row:?}");
    }
}

/// Every operation stands in exactly one column, and where operations end a phase, rates follow from counts.
pub fn assert_consistent(rows: &[Row]) {
    assert_counts(rows);
    for row in rows {
        let of = |column: &str| count(row, column);
        let passes = of("passes").max(1) as f64;
        let seconds = number(row, "elapsed_seconds") * passes;
        let rate = number(row, "throughput_per_second");
        let expected = of("succeeded") as f64 / seconds;
        assert!((rate - expected).abs() <= expected * 1e-6 + 1e-6, "{row:?}");
    }
}
