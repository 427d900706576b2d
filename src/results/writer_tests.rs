//! What a run directory holds, byte by byte, and what becomes of it when dbbench is killed.

use super::fixture::{self, Load};
use super::layout::{self, RunDirectory};
use super::writer::ResultsWriter;
use super::{ResultsError, hlog};
use crate::measure::record::Status;
use crate::plan::Plan;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const LOAD: Load = Load {
    succeeded: 40,
    timed_out: 2,
    first_ns: 100_000,
};

const CSV: [&str; 5] = [
    layout::RUNS,
    layout::OPERATIONS,
    layout::WINDOWS,
    layout::ERRORS,
    layout::SERVERS,
];

/// In memory where there is such a place: thousands of syncs to a disk take minutes.
fn temporary() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

fn text(path: &Path, name: &str) -> String {
    fs::read_to_string(path.join(name)).unwrap()
}

#[test]
fn the_first_rows_of_every_file_are_exactly_these() {
    let temporary = temporary();
    let path = temporary.path().join("out");
    let plan = fixture::plan();
    let mut results = fixture::open(&path, &plan);
    fixture::write_run(&mut results, &plan, 0, LOAD);

    assert_eq!(
        text(&path, layout::RUNS),
        "run,label_kernel,sweep_target,sweep_threads,repeat,target,driver,stand_in_for,status,reason,doubts,started_at,elapsed_seconds,server_version\n\
         \"target=redis,threads=1#1\",\"'=ULE, 7\",redis,1,1,redis,null,,valid,,,2026-11-30T20:15:00.123Z,2.500000000,null 1\n"
    );
    let operations = text(&path, layout::OPERATIONS);
    let mut lines = operations.lines();
    assert_eq!(
        lines.next().unwrap(),
        "run,label_kernel,sweep_target,sweep_threads,repeat,target,driver,stand_in_for,phase,group,operation,measured,load_model,threads,workers,connections,endpoints,started_at,elapsed_seconds,passes,\
         operations,succeeded,found,missing,failed,timed_out,wrong_value,unknown,dropped,length_changed,success_percent,throughput_per_second,attempted_per_second,bytes_sent,bytes_received,\
         service_time_p50_us,service_time_p90_us,service_time_p95_us,service_time_p99_us,service_time_p99_9_us,service_time_p99_99_us,\
         succeeded_service_time_min_us,succeeded_service_time_mean_us,succeeded_service_time_p50_us,succeeded_service_time_p90_us,succeeded_service_time_p95_us,succeeded_service_time_p99_us,succeeded_service_time_p99_9_us,succeeded_service_time_p99_99_us,succeeded_service_time_max_us,\
         response_time_p50_us,response_time_p90_us,response_time_p95_us,response_time_p99_us,response_time_p99_9_us,response_time_p99_99_us,\
         succeeded_response_time_min_us,succeeded_response_time_mean_us,succeeded_response_time_p50_us,succeeded_response_time_p90_us,succeeded_response_time_p95_us,succeeded_response_time_p99_us,succeeded_response_time_p99_9_us,succeeded_response_time_p99_99_us,succeeded_response_time_max_us,\
         start_lag_p50_us,start_lag_p99_us,start_lag_max_us,intended_rate_per_second,\
         reconnections,reconnecting_seconds,client_cpu_seconds,client_cpu_us_per_operation,client_turn_p50_us,client_turn_p99_us,client_turn_max_us,\
         warnings,connect_time_p50_us,connect_time_p99_us,connect_time_max_us,first_byte_time_p50_us,first_byte_time_p99_us,first_byte_time_max_us"
    );
    assert_eq!(
        lines.next().unwrap(),
        "\"target=redis,threads=1#1\",\"'=ULE, 7\",redis,1,1,redis,null,,load,,set,true,closed,2,1,2,127.0.0.1:7001=42,2026-11-30T20:15:00.123Z,2.000000000,1,\
         42,40,40,0,0,2,0,2,0,0,95.23809523809524,20,21,400,800,\
         120.063,,,,,,100.000,119.500,119.039,,,,,,139.000,\
         ,,,,,,,,,,,,,,,,,,,2,0.006000000,0.010000000,238.0952380952381,14.503,,29.500,0,,,,,,"
    );
    let mut reader = csv::Reader::from_reader(operations.as_bytes());
    assert!(
        reader.records().all(|row| row.is_ok()),
        "rows as long as the header"
    );
    assert_eq!(operations.lines().count(), 1 + 4);
    assert_eq!(
        text(&path, layout::ERRORS)
            .lines()
            .take(3)
            .collect::<Vec<_>>(),
        [
            "run,phase,group,operation,class,code,count,first_at,first_message",
            "\"target=redis,threads=1#1\",load,,set,timeout,,2,2026-11-30T20:15:01.623Z,\"'=no answer",
            "within \"\"1s\"\"\"",
        ]
    );
    assert_eq!(
        text(&path, layout::SERVERS),
        "run,process,at_seconds,cpu_seconds,rss_bytes,read_bytes,written_bytes,threads,time_wait_sockets,load\n\
         \"target=redis,threads=1#1\",client,0.001000000,0.020000000,4096,,,3,,\n"
    );
    let windows = text(&path, layout::WINDOWS);
    assert!(windows.starts_with(
        "run,phase,group,operation,stage,window_start_seconds,window_seconds,operations,succeeded,"
    ));
    assert_eq!(windows.lines().count(), 1 + 2 * 4);
    let second = windows.lines().nth(2).unwrap();
    assert!(
        second.starts_with(
            "\"target=redis,threads=1#1\",load,,set,measured,1.000000000,1.000000000,20,20,"
        ),
        "{second}"
    );
}

#[test]
fn percentiles_are_empty_where_failures_or_too_few_operations_hide_them() {
    let temporary = temporary();
    let path = temporary.path().join("out");
    let plan = fixture::plan();
    let mut results = fixture::open(&path, &plan);
    let load = Load {
        succeeded: 980,
        timed_out: 40,
        first_ns: 1000,
    };
    fixture::write_run(&mut results, &plan, 0, load);
    let mut reader = csv::Reader::from_path(path.join(layout::OPERATIONS)).unwrap();
    let header = reader.headers().unwrap().clone();
    let row = reader.records().next().unwrap().unwrap();
    let cell = |name: &str| {
        let at = header.iter().position(|column| column == name).unwrap();
        row.get(at).unwrap().to_owned()
    };
    // 1020 operations support p99, but 4 % of them failed: p95 is known, p99 is not.
    assert!(!cell("service_time_p95_us").is_empty());
    assert_eq!(cell("service_time_p99_us"), "");
    // 980 successes do not support p99 either.
    assert_eq!(cell("succeeded_service_time_p99_us"), "");
    assert_eq!(cell("succeeded_service_time_max_us"), "980.000");
}

/// All files of a directory by their relative names.
fn snapshot(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for folder in ["", layout::HLOG] {
        for entry in fs::read_dir(path.join(folder)).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_file() {
                let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
                files.insert(name, fs::read(entry.path()).unwrap());
            }
        }
    }
    files.remove("/manifest.json");
    files
}

fn restore(path: &Path, files: &BTreeMap<String, Vec<u8>>) {
    for (name, content) in files {
        fs::write(path.join(name.trim_start_matches('/')), content).unwrap();
    }
}

fn resume<'p>(
    path: &Path,
    plan: &'p Plan,
) -> Result<(ResultsWriter<'p>, Vec<usize>), ResultsError> {
    ResultsWriter::resume(RunDirectory::open(path).unwrap(), plan, fixture::started())
}

#[test]
fn a_kill_at_any_byte_loses_only_the_run_it_was_in() {
    let temporary = temporary();
    let path = temporary.path().join("out");
    let plan = fixture::plan();
    let mut results = fixture::open(&path, &plan);
    fixture::write_run(&mut results, &plan, 0, LOAD);
    let one = snapshot(&path);
    write_small_run(&mut results, &plan, 1);
    let two = snapshot(&path);
    drop(results);

    // In the middle of the second run: any file may end anywhere after the first run's rows.
    for name in CSV {
        let name = format!("/{name}");
        let (short, long) = (one[&name].len(), two[&name].len());
        for length in short..long {
            restore(&path, &two);
            let last = one["/runs.csv"].len();
            fs::write(path.join(layout::RUNS), &two["/runs.csv"][..last]).unwrap();
            fs::write(path.join(&name[1..]), &two[&name][..length]).unwrap();
            let (writer, done) = resume(&path, &plan).unwrap();
            drop(writer);
            assert_eq!(done, [0], "{name} cut at {length}");
            assert_eq!(snapshot(&path), one, "{name} cut at {length}");
        }
    }
    // And what is resumed becomes what it would have been.
    let (mut writer, done) = resume(&path, &plan).unwrap();
    assert_eq!(done, [0]);
    write_small_run(&mut writer, &plan, 1);
    assert_eq!(snapshot(&path), two);
}

/// One phase is enough where every byte is tried.
fn write_small_run(results: &mut ResultsWriter<'_>, plan: &Plan, run: usize) {
    let mut writer = results.begin(run).unwrap();
    fixture::write_phases(&mut writer, &plan.shapes[0].phases[..1], LOAD);
    writer
        .finish(fixture::run_record(Status::Valid, ""))
        .unwrap();
}

/// Set for the child of the test below: the directory that it writes until it is killed.
const CHILD: &str = "DBBENCH_TEST_WRITES_TO";

fn long_plan() -> Plan {
    let values: Vec<serde_json::Value> = (0..500).map(Into::into).collect();
    fixture::plan_of(&[("n", &values)], 1)
}

#[test]
fn child_that_writes_until_it_is_killed() {
    let Some(path) = std::env::var_os(CHILD) else {
        return;
    };
    let path = Path::new(&path);
    let plan = long_plan();
    let (mut results, done) = match path.exists() {
        true => resume(path, &plan).unwrap(),
        false => (fixture::open(path, &plan), Vec::new()),
    };
    for run in done.len()..plan.runs.len() {
        println!("begins");
        fixture::write_run(&mut results, &plan, run, LOAD);
    }
}

#[test]
fn a_writer_killed_at_any_moment_is_resumed_without_a_gap() {
    let temporary = temporary();
    let path = temporary.path().join("out");
    let plan = long_plan();
    let mut finished = 0;
    for round in 0..20_u64 {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture"])
            .arg("results::writer_tests::child_that_writes_until_it_is_killed")
            .env(CHILD, &path)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines =
            std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
        // In the first, second or third run that it begins, a little later each time.
        for _ in 0..=round % 3 {
            assert!(lines.any(|line| line.unwrap().contains("begins")));
        }
        std::thread::sleep(std::time::Duration::from_micros(700 * round));
        child.kill().unwrap();
        child.wait().unwrap();

        let (writer, done) = resume(&path, &plan).unwrap();
        drop(writer);
        assert_eq!(done, (0..done.len()).collect::<Vec<_>>());
        assert!(done.len() >= finished, "{} after {finished}", done.len());
        finished = done.len();
        let results = super::read::Results::open(&path).unwrap();
        for file in [layout::OPERATIONS, layout::WINDOWS, layout::SERVERS] {
            let rows = results.rows(file).unwrap();
            let expected = [4, 8, 1][CSV[1..]
                .iter()
                .position(|name| *name == file)
                .unwrap()
                .min(2)];
            assert!(
                done.iter().all(|&run| rows.of(run).len() == expected),
                "{file}"
            );
        }
    }
    assert!(finished >= 19, "{finished}");
}

#[test]
fn a_kill_before_the_first_run_leaves_headers_only() {
    let temporary = temporary();
    let path = temporary.path().join("out");
    let plan = fixture::plan();
    drop(fixture::open(&path, &plan));
    let empty = snapshot(&path);
    for name in CSV {
        let name = format!("/{name}");
        for length in 0..empty[&name].len() {
            restore(&path, &empty);
            fs::write(path.join(&name[1..]), &empty[&name][..length]).unwrap();
            let (writer, done) = resume(&path, &plan).unwrap();
            drop(writer);
            assert!(done.is_empty());
            assert_eq!(snapshot(&path), empty, "{name} cut at {length}");
        }
    }
}

#[test]
fn a_run_that_was_dropped_leaves_nothing() {
    let temporary = temporary();
    let path = temporary.path().join("out");
    let plan = fixture::plan();
    let mut results = fixture::open(&path, &plan);
    let mut run = results.begin(0).unwrap();
    let phases = &plan.shapes[0].phases;
    fixture::write_phases(&mut run, phases, LOAD);
    drop(run);
    fixture::write_run(&mut results, &plan, 1, LOAD);
    results.finish(fixture::started(), 3).unwrap();
    for name in CSV {
        assert!(
            !text(&path, name).contains("target=redis,threads=1#1"),
            "{name}"
        );
        assert!(
            text(&path, name).contains("target=redis,threads=4#1"),
            "{name}"
        );
    }
    let manifest = super::Manifest::read(&path.join(layout::MANIFEST)).unwrap();
    assert_eq!(manifest.exit_code, Some(3));
    assert_eq!(manifest.ended_at, "2026-11-30T20:15:00.123Z");
}

#[test]
fn rows_that_runs_csv_promises_but_are_gone_are_told() {
    let temporary = temporary();
    let path = temporary.path().join("out");
    let plan = fixture::plan();
    let mut results = fixture::open(&path, &plan);
    fixture::write_run(&mut results, &plan, 0, LOAD);
    drop(results);
    let content = fs::read(path.join(layout::OPERATIONS)).unwrap();
    let header = content.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    fs::write(path.join(layout::OPERATIONS), &content[..header + 20]).unwrap();
    let error = resume(&path, &plan).unwrap_err().to_string();
    assert!(
        error.contains("operations.csv") && error.contains("target=redis,threads=1#1"),
        "{error}"
    );
}

#[test]
fn another_plan_or_another_dbbench_is_refused() {
    let temporary = temporary();
    let path = temporary.path().join("out");
    let plan = fixture::plan();
    let results = fixture::open(&path, &plan);
    let error = resume(&path, &plan).unwrap_err().to_string();
    assert!(error.contains("another dbbench"), "{error}");
    drop(results);
    let mut changed = fixture::plan();
    changed.hash = "def".into();
    let error = resume(&path, &changed).unwrap_err().to_string();
    assert!(
        error.contains("another plan") && error.contains("--resume"),
        "{error}"
    );
    let mut labelled = fixture::plan();
    labelled.labels.insert("os".into(), "FreeBSD".into());
    assert!(
        resume(&path, &labelled)
            .unwrap_err()
            .to_string()
            .contains("--label")
    );
}

#[test]
fn leftovers_of_unfinished_runs_are_removed_and_those_of_finished_runs_stay() {
    let temporary = temporary();
    let path = temporary.path().join("out");
    let plan = fixture::plan();
    let mut results = fixture::open(&path, &plan);
    fixture::write_run(&mut results, &plan, 0, LOAD);
    let directory = results.directory().clone();
    let slugs = [0, 1].map(|run| layout::slug(&layout::run_id(&plan, run)));
    for slug in &slugs {
        fs::create_dir_all(directory.server_logs(slug)).unwrap();
        fs::write(directory.server_logs(slug).join("redis.log"), "x").unwrap();
    }
    fs::write(directory.hlog(&slugs[1]), "#half").unwrap();
    drop(results);
    drop(resume(&path, &plan).unwrap());
    assert!(directory.hlog(&slugs[0]).is_file());
    assert!(directory.server_logs(&slugs[0]).join("redis.log").is_file());
    assert!(!directory.hlog(&slugs[1]).exists());
    assert!(!directory.server_logs(&slugs[1]).exists());
}

#[test]
fn a_skipped_run_is_a_row_with_its_reason_and_no_log() {
    let temporary = temporary();
    let path = temporary.path().join("out");
    let plan = fixture::plan();
    let mut results = fixture::open(&path, &plan);
    results.hide(["s3cret".to_owned()]);
    let mut run = results.begin(2).unwrap();
    run.manifest().note("s3cret was asked for");
    let log = run.directory().hlog(run.slug());
    run.finish(fixture::run_record(
        Status::Skipped,
        "=no s3cret, install it",
    ))
    .unwrap();
    assert!(text(&path, layout::RUNS).contains("skipped,\"'=no ***, install it\""));
    assert!(!log.exists());
    assert!(text(&path, layout::MANIFEST).contains("*** was asked for"));
}

#[test]
fn the_log_holds_every_window_and_adds_up_to_the_phase() {
    let temporary = temporary();
    let path = temporary.path().join("out");
    let plan = fixture::plan();
    let mut results = fixture::open(&path, &plan);
    fixture::write_run(&mut results, &plan, 0, LOAD);
    let log = results
        .directory()
        .hlog(&layout::slug(&layout::run_id(&plan, 0)));
    let content = fs::read_to_string(&log).unwrap();
    assert!(content.contains("#[StartTime: 1796069700.123 (seconds since epoch)]\n"));
    assert_eq!(content.matches("#[BaseTime: 1796069700.123").count(), 1);
    assert!(content.contains("\nTag=mixed.write.delete.succeeded_service,1.000,1.000,0.139,HISTF"));

    let merged = hlog::read(&log).unwrap();
    let tags: Vec<&str> = merged.keys().map(String::as_str).collect();
    assert_eq!(
        tags,
        [
            "load.set.service",
            "load.set.succeeded_service",
            "mixed.read.get.service",
            "mixed.read.get.succeeded_service",
            "mixed.write.delete.service",
            "mixed.write.delete.succeeded_service",
            "mixed.write.set.service",
            "mixed.write.set.succeeded_service",
        ]
    );
    assert_eq!(merged["load.set.service"].len(), 42);
    let expected = fixture::latencies(LOAD.succeeded, LOAD.first_ns);
    assert_eq!(
        merged["load.set.succeeded_service"].histogram,
        expected.histogram
    );
    let mut starts = Vec::new();
    hlog::read_intervals(
        &log,
        |tag| tag == "load.set.service",
        |line| starts.push(line.start),
    )
    .unwrap();
    let base = std::time::Duration::from_millis(1_796_069_700_123);
    assert_eq!(starts, [base, base + std::time::Duration::from_secs(1)]);
}

/// Puts a file system of 256 KiB at `path`, for this thread alone; it goes with the thread.
fn mount_small_disk(path: &Path) -> Result<(), std::io::Error> {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS)?;
    let mount = |source: &std::ffi::CStr, at: &Path, flags, data: &std::ffi::CStr| {
        let at = CString::new(at.as_os_str().as_bytes())?;
        let data = data.as_ptr().cast();
        // SAFETY: all strings end in zero and live until the call has returned.
        match unsafe { libc::mount(source.as_ptr(), at.as_ptr(), source.as_ptr(), flags, data) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    mount(
        c"none",
        Path::new("/"),
        libc::MS_REC | libc::MS_PRIVATE,
        c"",
    )?;
    mount(c"tmpfs", path, 0, c"size=256k")
}

#[test]
fn a_full_disk_is_named_and_costs_only_the_run_it_came_in() {
    let test = || {
        let temporary = tempfile::tempdir().unwrap();
        if let Err(error) = mount_small_disk(temporary.path()) {
            eprintln!("SKIPPED: no small file system can be mounted here: {error}");
            return;
        }
        let path = temporary.path().join("out");
        let plan = fixture::plan_of(&[("n", &(0..100).map(Into::into).collect::<Vec<_>>())], 1);
        let mut results = fixture::open(&path, &plan);
        let (failed, error) = (0..plan.runs.len())
            .find_map(|run| {
                write(&mut results, &plan, run)
                    .err()
                    .map(|error| (run, error))
            })
            .expect("100 runs do not fit into 256 KiB");
        assert!(failed > 1, "{failed}");
        assert!(error.to_string().contains("the disk is full"), "{error}");
        assert!(error.to_string().contains("/out/"), "{error}");
        drop(results);
        let (mut results, done) = {
            // Room again.
            fs::remove_file(path.join("hlog").join("n-0_1.hlog")).unwrap();
            resume(&path, &plan).unwrap()
        };
        assert_eq!(done, (0..failed).collect::<Vec<_>>());
        results
            .begin(failed)
            .unwrap()
            .finish(fixture::run_record(Status::Failed, "x"))
            .unwrap();
        let runs = text(&path, layout::RUNS);
        assert_eq!(runs.lines().count(), 1 + failed + 1);
    };
    std::thread::spawn(test).join().unwrap();
}

fn write(results: &mut ResultsWriter<'_>, plan: &Plan, run: usize) -> Result<(), ResultsError> {
    let phases = &plan.shapes[0].phases;
    let mut writer = results.begin(run)?;
    for phase in phases {
        let measured = std::time::Duration::from_secs(2);
        for window in fixture::windows(phase, LOAD, measured) {
            writer.window(phase, &window)?;
        }
        writer.phase(phase, &fixture::phase_record(phase, LOAD, measured))?;
    }
    writer.finish(fixture::run_record(Status::Valid, ""))
}
