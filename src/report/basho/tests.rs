//! Exports of run directories written as the engine's records would be.

use super::*;
use crate::measure::record::{Counts, Stage, WindowOperation, WindowRecord};
use crate::plan::{PhasePlan, Plan};
use crate::results::fixture::{self, Load};
use crate::results::layout;
use crate::results::read::{Latencies, Status};
use std::sync::Arc;

const LOAD: Load = Load {
    succeeded: 2500,
    timed_out: 3,
    first_ns: 100_000,
};

fn one_run() -> Plan {
    fixture::plan_of(&[("threads", &[serde_json::json!(4)])], 1)
}

/// A run of 25 seconds: 100 successes in each for every operation, 3 timeouts in the first.
fn run_directory(path: &Path) {
    let plan = one_run();
    let mut results = fixture::open(path, &plan);
    let mut run = results.begin(0).unwrap();
    let measured = Duration::from_secs(25);
    for phase in &plan.shapes[0].phases {
        for window in fixture::windows(phase, LOAD, measured) {
            run.window(phase, &window).unwrap();
        }
        let record = fixture::phase_record(phase, LOAD, measured);
        run.phase(phase, &record).unwrap();
    }
    run.finish(fixture::run_record(Status::Valid, "")).unwrap();
}

struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let directory = tempfile::tempdir().unwrap();
        run_directory(&directory.path().join("run"));
        Place { directory }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn export(&self, request: &Request<'_>) -> Result<Exported, String> {
        export(&self.path("run"), &self.path("out"), request).map_err(|error| error.to_string())
    }

    fn read(&self, name: &str) -> String {
        let path = self.path("out").join("threads-4_1").join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"))
    }

    /// Replaces text in a file of the run directory.
    fn damage(&self, file: &str, what: &str, by: &str) {
        let path = self.path("run").join(file);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.contains(what), "{text}");
        fs::write(&path, text.replacen(what, by, 1)).unwrap();
    }
}

fn numbers(row: &str) -> Vec<f64> {
    row.split(", ").map(|cell| cell.parse().unwrap()).collect()
}

#[test]
fn windows_are_added_to_those_of_basho_bench() {
    let place = Place::new();
    let exported = place.export(&Request::default()).unwrap();
    assert_eq!(exported.directories.len(), 2);
    assert_eq!(
        place.read("load/summary.csv"),
        "elapsed, window, total, successful, failed\n\
         10.000000, 10.000000, 1003, 1000, 3\n\
         20.000000, 10.000000, 1000, 1000, 0\n\
         25.000000, 5.000000, 500, 500, 0\n"
    );
    let text = place.read("load/set_latencies.csv");
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some("elapsed, window, n, min, mean, median, 95th, 99th, 99_9th, max, errors")
    );
    let rows: Vec<Vec<f64>> = lines.map(numbers).collect();
    assert_eq!(rows.len(), 3);
    // 100 us and 1 us more with each operation, 1000 of them in a window.
    assert_eq!(rows[0][..5], [10.0, 10.0, 1000.0, 100.0, 599.5]);
    assert_eq!(rows[0][9..], [1099.0, 3.0]);
    let percentiles = [(5, 599.0), (6, 1049.0), (7, 1089.0), (8, 1098.0)];
    for (column, true_us) in percentiles {
        let error = (rows[0][column] / true_us - 1.0).abs();
        assert!(error < 0.002, "column {column}: {}", rows[0][column]);
    }
    assert_eq!(rows[2][..4], [25.0, 5.0, 500.0, 2100.0]);
}

#[test]
fn each_operation_of_a_group_has_its_file_and_errors_their_rows() {
    let place = Place::new();
    place.export(&Request::default()).unwrap();
    let mut names: Vec<String> = fs::read_dir(place.path("out").join("threads-4_1/mixed"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "README.txt",
            "errors.csv",
            "read-get_latencies.csv",
            "summary.csv",
            "summary.png",
            "summary.svg",
            "write-delete_latencies.csv",
            "write-set_latencies.csv",
        ]
    );
    assert_eq!(
        place.read("mixed/errors.csv"),
        "\"error\",\"count\"\n\
         \"{{'read-get',get},timeout}\",\"3\"\n\
         \"{{'write-delete',delete},timeout}\",\"3\"\n\
         \"{{'write-set',set},timeout}\",\"3\"\n"
    );
    let note = place.read("mixed/README.txt");
    for said in [
        "of successful operations only",
        "windows of 10s",
        "threads=4#1",
    ] {
        assert!(note.contains(said), "{note}");
    }
    let picture = place.read("mixed/summary.svg");
    for said in [
        "operations/s",
        "errors/s",
        "latency, ms",
        "99.9th",
        "Latency of read-get (read)",
    ] {
        assert!(picture.contains(said), "no {said}");
    }
}

fn window_of(start: u64, stage: Stage, successes: &[u64]) -> WindowRecord {
    let mut succeeded = Latencies::new();
    successes.iter().for_each(|ns| succeeded.record(*ns));
    let count = successes.len() as u64;
    WindowRecord {
        start: Duration::from_secs(start),
        length: Duration::from_secs(1),
        stage,
        operations: vec![WindowOperation {
            group: 0,
            slot: 0,
            counts: Counts {
                operations: count + 1,
                succeeded: count,
                failed: 1,
                ..Counts::default()
            },
            succeeded,
            unsuccessful: fixture::latencies(1, 5),
            extra: Default::default(),
        }],
    }
}

#[test]
fn warm_up_and_drain_are_left_out_and_a_silent_window_has_zeros() {
    let place = Place {
        directory: tempfile::tempdir().unwrap(),
    };
    let mut plan = one_run();
    let mut phase: PhasePlan = (*plan.shapes[0].phases[0]).clone();
    phase.warmup_ns = 2_000_000_000;
    phase.duration_ns = Some(4_000_000_000);
    plan.shapes[0].phases = vec![Arc::new(phase.clone())];
    let run_path = place.path("run");
    let mut results = fixture::open(&run_path, &plan);
    let mut run = results.begin(0).unwrap();
    // Nothing at all ends in the first measured second, the fourth has failures alone.
    for (start, stage, successes) in [
        (0, Stage::Warmup, &[9_000_000][..]),
        (3, Stage::Measured, &[1_000_000, 3_000_000]),
        (4, Stage::Measured, &[5_000_000]),
        (5, Stage::Measured, &[]),
        (6, Stage::Drain, &[7_000_000]),
    ] {
        let window = window_of(start, stage, successes);
        run.window(&phase, &window).unwrap();
    }
    let record = fixture::phase_record(&phase, LOAD, Duration::from_secs(4));
    run.phase(&phase, &record).unwrap();
    run.finish(fixture::run_record(Status::Valid, "")).unwrap();
    let request = Request {
        window: Some(Duration::from_secs(1)),
        ..Request::default()
    };
    place.export(&request).unwrap();
    let text = place.read("load/set_latencies.csv");
    let rows: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(rows[0], "1.000000, 1.000000, 0, 0, 0, 0, 0, 0, 0, 0, 0");
    assert!(
        rows[1].starts_with("2.000000, 1.000000, 2, 1000.000, 2000.000, "),
        "{text}"
    );
    assert!(rows[2].starts_with("3.000000, 1.000000, 1, 5000.000, 5000.000, 5000.000, "));
    assert_eq!(rows[3], "4.000000, 1.000000, 0, 0, 0, 0, 0, 0, 0, 0, 1");
    assert_eq!(rows.len(), 4);
}

#[test]
fn one_run_and_one_phase_can_be_asked_for_by_name() {
    let place = Place::new();
    let request = Request {
        run: Some("threads=4#1"),
        phase: Some("load"),
        ..Request::default()
    };
    let exported = place.export(&request).unwrap();
    assert_eq!(exported.directories, [place.path("out/threads-4_1/load")]);
    for (run, phase, said) in [
        (Some("threads=5#1"), None, "such as 'threads=4#1'"),
        (None, Some("lod"), "it has load, mixed"),
    ] {
        let request = Request {
            run,
            phase,
            ..Request::default()
        };
        let error = place.export(&request).unwrap_err();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn windows_that_ours_do_not_add_up_to_are_refused() {
    let place = Place::new();
    for (ms, said) in [(1500, "say 2s"), (0, "say 1s")] {
        let window = Some(Duration::from_millis(ms));
        let error = place
            .export(&Request {
                window,
                ..Request::default()
            })
            .unwrap_err();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn an_older_export_is_replaced_only_where_that_is_wanted() {
    let place = Place::new();
    place.export(&Request::default()).unwrap();
    let error = place.export(&Request::default()).unwrap_err();
    assert!(error.contains("exists already"), "{error}");
    let stray = place.path("out/threads-4_1/load/old_latencies.csv");
    fs::write(&stray, "").unwrap();
    let request = Request {
        replace: true,
        ..Request::default()
    };
    place.export(&request).unwrap();
    assert!(!stray.exists());
    let left = fs::read_dir(place.path("out/threads-4_1")).unwrap().count();
    assert_eq!(left, 2, "unfinished directories stay behind");
}

#[test]
fn damage_is_named_with_its_file() {
    for (file, what, by, said) in [
        (layout::WINDOWS, ",100,100,", ",x,100,", "is `x`"),
        (
            layout::WINDOWS,
            ",100,100,",
            ",99,99,",
            "are not those of windows.csv",
        ),
        (
            layout::WINDOWS,
            ",load,,set,",
            ",load,,sot,",
            "no operation sot",
        ),
        (
            layout::WINDOWS,
            "0.000000000,1.000000000",
            "0.000000000,1e300",
            "is `1e300`",
        ),
        (layout::PLAN, "{", "", "is no plan.json"),
    ] {
        let place = Place::new();
        place.damage(file, what, by);
        let error = place.export(&Request::default()).unwrap_err();
        assert!(
            error.contains(said) && error.contains(&*place.path("run").to_string_lossy()),
            "{error}"
        );
        assert!(!place.path("out/threads-4_1/load").exists());
    }
}

#[test]
fn a_histogram_log_that_is_cut_off_or_gone_is_damage() {
    let place = Place::new();
    let log = place.path("run/hlog/threads-4_1.hlog");
    let text = fs::read_to_string(&log).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    fs::write(&log, lines[..lines.len() / 2].join("\n") + "\n").unwrap();
    let error = place.export(&Request::default()).unwrap_err();
    assert!(error.contains("threads-4_1.hlog: is damaged"), "{error}");
    fs::remove_file(&log).unwrap();
    let error = place
        .export(&Request {
            replace: true,
            ..Request::default()
        })
        .unwrap_err();
    assert!(
        error.contains("cannot read") && error.contains("hlog"),
        "{error}"
    );
}

#[test]
fn what_is_not_finished_is_said() {
    let place = Place {
        directory: tempfile::tempdir().unwrap(),
    };
    let error = place.export(&Request::default()).unwrap_err();
    assert!(error.contains("is no run directory"), "{error}");
    let plan = fixture::plan_of(&[("threads", &[serde_json::json!(4)])], 3);
    let run_path = place.path("run");
    let mut results = fixture::open(&run_path, &plan);
    let mut unfinished = results.begin(0).unwrap();
    fixture::write_phases(&mut unfinished, &plan.shapes[0].phases, LOAD);
    drop(unfinished);
    let error = place.export(&Request::default()).unwrap_err();
    assert!(
        error.contains("no finished run") && error.contains("--resume"),
        "{error}"
    );
    let skipped = results.begin(1).unwrap();
    skipped
        .finish(fixture::run_record(Status::Skipped, "no program"))
        .unwrap();
    let error = place.export(&Request::default()).unwrap_err();
    assert!(error.contains("run threads=4#2 was skipped"), "{error}");
    let asked = Request {
        run: Some("threads=4#1"),
        ..Request::default()
    };
    let error = place.export(&asked).unwrap_err();
    assert!(
        error.contains("threads=4#1") && error.contains("is not finished"),
        "{error}"
    );
    // A run that failed in its second phase: the first is there.
    let mut failed = results.begin(2).unwrap();
    fixture::write_phases(&mut failed, &plan.shapes[0].phases[..1], LOAD);
    let window = &fixture::windows(&plan.shapes[0].phases[1], LOAD, Duration::from_secs(1))[0];
    failed.window(&plan.shapes[0].phases[1], window).unwrap();
    failed
        .finish(fixture::run_record(Status::Failed, "died"))
        .unwrap();
    let exported = place.export(&Request::default()).unwrap();
    assert_eq!(exported.directories, [place.path("out/threads-4_3/load")]);
    assert!(
        exported
            .notes
            .iter()
            .any(|note| note.contains("phase mixed")),
        "{:?}",
        exported.notes
    );
}

#[test]
fn names_of_files_lead_nowhere_else() {
    assert_eq!(folder("get"), "get");
    assert_eq!(folder(".."), "_..");
    assert_eq!(folder("a/../b"), "a_.._b");
}
