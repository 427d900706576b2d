//! The tables of the scenarios against the published ones in `scenarios/published/`: each scenario's own plan, with made-up
//! records that hold the published figures, must give the published header first, the published rows in their order, and
//! the published figures. Where the publication miscalculated a ratio the right one stands here.

use dbbench::measure::record::{
    Counts, GroupRecord, Latencies, OperationRecord, PhaseRecord, RunRecord, Status,
};
use dbbench::plan::{self, PhasePlan, Plan, RunPlan};
use dbbench::registry;
use dbbench::results::manifest::SourceFile;
use dbbench::results::{Manifest, ResultsWriter, RunDirectory};
use dbbench::scenario::{self, Overrides};
use dbbench::tables::{self, Table};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a measured phase of a run did, and the probes that were read.
#[derive(Default)]
struct MadeUp {
    succeeded: u64,
    failed: u64,
    measured: Duration,
    probes: Vec<(&'static str, Value)>,
}

impl MadeUp {
    /// Two decimals are exact: counts of 100 seconds.
    fn rate(per_second: f64) -> MadeUp {
        MadeUp {
            succeeded: (per_second * 100.0).round() as u64,
            measured: Duration::from_secs(100),
            ..MadeUp::default()
        }
    }
}

/// A published table: header and rows.
struct Published {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Published {
    fn read(name: &str) -> Published {
        let path = format!("scenarios/published/{name}.csv");
        let mut reader = csv::Reader::from_path(&path).expect("a published table");
        let cells = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect();
        Published {
            header: cells(reader.headers().expect("a header")),
            rows: reader
                .records()
                .map(|row| cells(&row.expect("a row")))
                .collect(),
        }
    }

    /// The number in this column of the row whose first cells are these.
    fn number(&self, keys: &[&str], column: &str) -> f64 {
        let at = self.header.iter().position(|name| name == column);
        let at = at.unwrap_or_else(|| panic!("no column {column}"));
        let begins = |row: &&Vec<String>| row.iter().zip(keys).all(|(cell, key)| cell == key);
        let row = self.rows.iter().find(begins);
        let row = row.unwrap_or_else(|| panic!("no row {keys:?}"));
        row[at].parse().expect("a number")
    }
}

fn plan_of(scenario: &str) -> Plan {
    let path = PathBuf::from(format!("scenarios/{scenario}.toml"));
    let specs = &registry::specs();
    let loaded = scenario::load(&path, &Overrides::default(), specs);
    let scenario = loaded.scenario.expect("a scenario without faults");
    let made = plan::make(&scenario.root, &loaded.sources, specs, &[]);
    made.unwrap_or_else(|faults| {
        panic!("{}", dbbench::diag::render(&loaded.sources, &faults, false))
    })
    .plan
}

/// The value of an axis at a run, as a table would show it.
fn at(plan: &Plan, run: &RunPlan, axis: &str) -> String {
    let place = plan.axes.iter().position(|known| known.name == axis);
    let place = place.unwrap_or_else(|| panic!("no axis {axis}"));
    match &plan.axes[place].values[run.point[place] as usize] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn record(phase: &PhasePlan, made_up: &MadeUp) -> PhaseRecord {
    let operation = |name: &str| OperationRecord {
        operation: name.to_owned(),
        counts: Counts {
            operations: made_up.succeeded + made_up.failed,
            succeeded: made_up.succeeded,
            found: made_up.succeeded,
            failed: made_up.failed,
            ..Counts::default()
        },
        succeeded_inside: made_up.succeeded,
        ended_inside: made_up.succeeded + made_up.failed,
        succeeded: Latencies::new(),
        unsuccessful: Latencies::new(),
        extra: None,
    };
    let groups = phase.groups.iter().map(|group| GroupRecord {
        name: group.name.clone(),
        threads: group.threads,
        workers: 1,
        connections: group.threads,
        endpoints: Vec::new(),
        reconnections: 0,
        reconnecting: Duration::ZERO,
        client_cpu: Duration::ZERO,
        client_turn: Latencies::new(),
        operations: group
            .mix
            .iter()
            .map(|entry| operation(&entry.operation))
            .collect(),
    });
    PhaseRecord {
        name: phase.name.clone(),
        measured: phase.measured,
        started_at: "2026-11-30T20:15:00Z".parse().expect("a time"),
        measured_time: made_up.measured,
        passes: 1,
        groups: groups.collect(),
        errors: Vec::new(),
        cut_short: None,
        worker_busy: Vec::new(),
    }
}

/// A run directory in which every run did what `made_up` says of it.
fn directory(path: &Path, plan: &Plan, made_up: impl Fn(&RunPlan) -> MadeUp) -> PathBuf {
    let started = "2026-11-30T20:15:00Z".parse().expect("a time");
    let manifest = Manifest::new(plan, vec![SourceFile::new("s.toml", "")], started);
    let place = RunDirectory::create_at(path).expect("a new directory");
    let mut results = ResultsWriter::open(place, plan, manifest).expect("opened");
    for (index, run) in plan.runs.iter().enumerate() {
        let made_up = made_up(run);
        let mut writer = results.begin(index).expect("begun");
        for phase in &plan.shapes[run.shape as usize].phases {
            writer
                .phase(phase, &record(phase, &made_up))
                .expect("written");
        }
        for (name, value) in &made_up.probes {
            writer.probe(name, value, "");
        }
        let ended = RunRecord {
            status: Status::Valid,
            reason: String::new(),
            doubts: Vec::new(),
            started_at: started,
            elapsed: made_up.measured,
            server_version: String::new(),
        };
        writer.finish(ended).expect("finished");
    }
    results.finish(started, 0).expect("closed");
    path.to_owned()
}

fn table(directories: &[PathBuf], name: &str) -> Table {
    let made = tables::make(directories, None).expect("tables");
    let known: Vec<String> = made.iter().map(|table| table.name.clone()).collect();
    let found = made.into_iter().find(|table| table.name == name);
    found.unwrap_or_else(|| panic!("no table {name} among {known:?}"))
}

/// Header first, rows in their order, every cell: numbers to the published decimals, `corrected` (row, column, right) where
/// the publication is wrong.
fn assert_mirrors(made: &Table, published: &Published, corrected: &[(usize, &str, &str)]) {
    let width = published.header.len();
    assert_eq!(
        made.header[..width],
        published.header[..],
        "header of {}",
        made.name
    );
    let shown = |cell: &Value, like: &str| match cell {
        Value::Number(number) => {
            let decimals = like
                .split_once('.')
                .map_or(0, |(_, decimals)| decimals.len());
            format!("{:.decimals$}", number.as_f64().expect("a number"))
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let expected: Vec<Vec<String>> = published
        .rows
        .iter()
        .enumerate()
        .map(|(row, cells)| {
            let right = |column: &String, cell: &String| {
                let place = corrected
                    .iter()
                    .find(|(at, name, _)| *at == row && name == column);
                place.map_or(cell.clone(), |(_, _, right)| (*right).to_owned())
            };
            published
                .header
                .iter()
                .zip(cells)
                .map(|(column, cell)| right(column, cell))
                .collect()
        })
        .collect();
    let got: Vec<Vec<String>> = made
        .rows
        .iter()
        .enumerate()
        .map(|(row, cells)| {
            let like = |at: usize| expected.get(row).map_or("", |cells| cells[at].as_str());
            cells[..width]
                .iter()
                .enumerate()
                .map(|(at, cell)| shown(cell, like(at)))
                .collect()
        })
        .collect();
    assert_eq!(got, expected, "{}", made.name);
}

/// A scenario whose one published table is made from rates.
fn mirrors_by_rate(scenario: &str, rate: impl Fn(&Published, &Plan, &RunPlan) -> f64) {
    let published = Published::read(scenario);
    let plan = plan_of(scenario);
    let place = tempfile::tempdir().expect("a directory");
    let path = directory(&place.path().join("run"), &plan, |run| {
        MadeUp::rate(rate(&published, &plan, run))
    });
    assert_mirrors(&table(&[path], scenario), &published, &[]);
}

#[test]
fn http_counter_has_the_published_shape() {
    mirrors_by_rate("http-counter", |published, plan, run| {
        published.number(&[&at(plan, run, "concurrency")], &at(plan, run, "target"))
    });
}

#[test]
fn http_counter_pooling_has_the_published_shape() {
    mirrors_by_rate("http-counter-pooling", |published, plan, run| {
        published.number(&[&at(plan, run, "pooling")], "requests_per_second")
    });
}

/// The published rate counts failures, too.
#[test]
fn http_counter_soak_has_the_published_shape() {
    let published = Published::read("http-counter-soak");
    let plan = plan_of("http-counter-soak");
    let place = tempfile::tempdir().expect("a directory");
    let path = directory(&place.path().join("run"), &plan, |run| {
        let target = at(&plan, run, "target");
        let rate = published.number(&[&target], "requests_per_second");
        let failed = published.number(&[&target], "failed_percent");
        let attempted = (rate * 100.0).round();
        let failed = (attempted * failed / 100.0).round();
        MadeUp {
            succeeded: (attempted - failed) as u64,
            failed: failed as u64,
            ..MadeUp::rate(rate)
        }
    });
    let made = table(&[path], "http-counter-soak");
    assert_mirrors(&made, &published, &[]);
    // Beside it stands what was good: 80.3 % of 642.98 in a second.
    let good = made
        .header
        .iter()
        .position(|name| name == "succeeded_per_second");
    let good = made.rows[1][good.expect("the column")]
        .as_f64()
        .expect("a number");
    assert!((good - 642.98 * 0.803).abs() < 0.01, "{good}");
}

#[test]
fn access_log_gives_the_ratios_that_its_publication_misprinted() {
    let rates = Published::read("access-log-throughput");
    let sizes = Published::read("access-log-size");
    let plan = plan_of("access-log");
    let place = tempfile::tempdir().expect("a directory");
    let path = directory(&place.path().join("run"), &plan, |run| {
        let case = at(&plan, run, "case");
        let bytes = 1024.0 * sizes.number(&[&case], "kilobytes");
        let probe = if case == "1" || case == "2" {
            "file_bytes"
        } else {
            "table_bytes"
        };
        MadeUp {
            probes: vec![(probe, json!(bytes as u64))],
            ..MadeUp::rate(rates.number(&[&case], "requests_per_second"))
        }
    });
    let directories = [path];
    let throughput = table(&directories, "access-log-throughput");
    assert_mirrors(&throughput, &rates, &[(2, "percent_of_case_1", "57.1")]);
    assert_mirrors(&table(&directories, "access-log-size"), &sizes, &[]);
}

#[test]
fn access_log_select_gives_the_ratio_that_its_publication_misprinted() {
    let published = Published::read("access-log-select");
    let plan = plan_of("access-log-select");
    let place = tempfile::tempdir().expect("a directory");
    let path = directory(&place.path().join("run"), &plan, |run| {
        let keys = [at(&plan, run, "query"), at(&plan, run, "engine")];
        let seconds = published.number(&[&keys[0], &keys[1]], "seconds");
        MadeUp {
            succeeded: 1,
            measured: Duration::from_micros((seconds * 1e6).round() as u64),
            ..MadeUp::default()
        }
    });
    let made = table(&[path], "access-log-select");
    assert_mirrors(&made, &published, &[(1, "percent_of_myisam", "572.2")]);
}

/// One run directory per configuration: three boots join in one table, in the order of the directories.
#[test]
fn myisam_innodb_joins_boots_in_the_published_shape() {
    let place = tempfile::tempdir().expect("a directory");
    let published =
        ["bench1", "bench2"].map(|bench| Published::read(&format!("myisam-innodb-{bench}")));
    let configurations = [
        "FreeBSD 6.2, libthr",
        "FreeBSD 7-current, SCHED_4BSD",
        "FreeBSD 7-current, SCHED_ULE",
    ];
    let directories: Vec<PathBuf> = configurations
        .iter()
        .enumerate()
        .map(|(index, configuration)| {
            let mut plan = plan_of("myisam-innodb");
            plan.labels
                .insert("configuration".to_owned(), json!(configuration));
            directory(&place.path().join(index.to_string()), &plan, |run| {
                let bench = usize::from(at(&plan, run, "bench") == "bench2");
                let keys = [at(&plan, run, "clients"), (*configuration).to_owned()];
                MadeUp::rate(
                    published[bench].number(&[&keys[0], &keys[1]], &at(&plan, run, "target")),
                )
            })
        })
        .collect();
    for (bench, published) in published.iter().enumerate() {
        let name = format!("myisam-innodb-bench{}", bench + 1);
        assert_mirrors(&table(&directories, &name), published, &[]);
    }
}
