//! Whole tables from whole run directories.

use super::*;
use crate::results::ResultsWriter;
use crate::results::fixture::{self, Load};
use crate::results::read::{Plan, RepeatRule, Status};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

fn load(succeeded: u64, timed_out: u64) -> Load {
    Load {
        succeeded,
        timed_out,
        first_ns: 100_000,
    }
}

fn table(rows: &[&str], values: &[(&str, &str)]) -> TablePlan {
    let text = |text: &&str| (*text).to_owned();
    TablePlan {
        name: "t".into(),
        where_: String::new(),
        rows: rows.iter().map(text).collect(),
        columns: String::new(),
        values: values.iter().map(|(n, e)| (text(n), text(e))).collect(),
        repeats: RepeatRule::Median,
        ratio_to: BTreeMap::new(),
        ratio_name: String::new(),
        headers: BTreeMap::new(),
        show_invalid: false,
        every_ns: 0,
    }
}

/// Runs the plan with one load per run, makes one table of it.
fn made(plan: &Plan, loads: &[Load], definition: TablePlan) -> Result<String, TablesError> {
    made_by(plan, definition, |results| {
        for (run, load) in loads.iter().enumerate() {
            fixture::write_run(results, plan, run, *load);
        }
    })
}

fn made_by(
    plan: &Plan,
    definition: TablePlan,
    write: impl FnOnce(&mut ResultsWriter<'_>),
) -> Result<String, TablesError> {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("out");
    let mut results = fixture::open(&path, plan);
    write(&mut results);
    results.finish(fixture::started(), 0).unwrap();
    Ok(csv(&make(&[path], Some(vec![definition]))?[0]))
}

fn axes(repeats: u32) -> Plan {
    fixture::plan_of(
        &[
            ("target", &[json!("redis"), json!("valkey")]),
            ("threads", &[json!(4), json!(16)]),
        ],
        repeats,
    )
}

#[test]
fn rows_stand_in_the_order_of_the_sweep_and_numbers_keep_their_kind() {
    let loads = [load(40, 0), load(50, 0), load(60, 0), load(70, 10)];
    let values = [
        ("seconds", "load.elapsed_seconds + mixed.elapsed_seconds"),
        ("tries", "load.operations // load.passes"),
        ("percent", "load.success_percent"),
        (
            "megabytes",
            "load.throughput_per_second * value_size / 1000000",
        ),
    ];
    assert_eq!(
        made(&axes(1), &loads, table(&["threads", "target"], &values)).unwrap(),
        "threads,target,seconds,tries,percent,megabytes,stand_in_for,notes\n\
         4,redis,4,40,100,0.0002,,\n\
         4,valkey,4,60,100,0.0003,MemSQL,valkey stands in for MemSQL\n\
         16,redis,4,50,100,0.00025,,\n\
         16,valkey,4,80,87.5,0.00035,MemSQL,valkey stands in for MemSQL\n"
    );
}

#[test]
fn a_pivot_has_a_column_per_value_of_its_axis() {
    let loads = [load(40, 0), load(50, 0), load(60, 0), load(70, 0)];
    let mut definition = table(&["threads"], &[("rate", "load.throughput_per_second")]);
    definition.columns = "target".into();
    definition
        .headers
        .insert("threads".into(), "clients".into());
    assert_eq!(
        made(&axes(1), &loads, definition.clone()).unwrap(),
        "clients,redis,valkey,stand_in_for,notes\n\
         4,20,30,valkey: MemSQL,valkey: valkey stands in for MemSQL\n\
         16,25,35,valkey: MemSQL,valkey: valkey stands in for MemSQL\n"
    );
    definition
        .values
        .push(("n".into(), "load.operations".into()));
    definition.where_ = "threads > 4 and value_size == 10".into();
    let text = made(&axes(1), &loads, definition).unwrap();
    assert!(
        text.starts_with("clients,redis_rate,redis_n,valkey_rate,valkey_n,"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 2);
}

#[test]
fn several_operations_add_up_and_their_histograms_are_merged() {
    let plan = axes(1);
    let loads = [load(40, 0), load(40, 0), load(40, 0), load(40, 2)];
    let values = [
        ("all", "mixed.operations"),
        ("write", "mixed.write.throughput_per_second"),
        ("set", "mixed.set.operations"),
        ("delete", "mixed.write.delete.operations"),
        ("threads_of_write", "mixed.write.threads"),
        ("timeouts", "mixed.errors.timeout"),
        ("resets", "mixed.errors.reset"),
        ("p50", "mixed.succeeded_service_time_p50_us"),
        ("max", "mixed.succeeded_service_time_max_us"),
        ("endpoints", "mixed.endpoints"),
    ];
    let mut definition = table(&["target", "threads"], &values);
    definition.where_ = "threads == 16".into();
    // Three times 40 operations from 100 us to 139 us: the median is 119 us, to the histogram's three digits.
    assert_eq!(
        made(&plan, &loads, definition).unwrap(),
        "target,threads,all,write,set,delete,threads_of_write,timeouts,resets,p50,max,endpoints,stand_in_for,notes\n\
         redis,16,120,40,40,40,1,0,0,119.039,139,127.0.0.1:7001=80,,\n\
         valkey,16,126,40,42,42,1,6,0,119.039,139,127.0.0.1:7001=84,MemSQL,valkey stands in for MemSQL\n"
    );
}

#[test]
fn repeats_are_combined_and_their_spread_is_shown() {
    let plan = fixture::plan_of(&[("target", &[json!("redis")])], 3);
    let loads = [load(40, 0), load(20, 0), load(90, 0)];
    let definition = table(&["target"], &[("rate", "load.throughput_per_second")]);
    let text = |rule: RepeatRule| {
        let definition = TablePlan {
            repeats: rule,
            ..definition.clone()
        };
        made(&plan, &loads, definition).unwrap()
    };
    assert_eq!(
        text(RepeatRule::Median),
        "target,rate,rate_min,rate_max,rate_n,stand_in_for,notes\nredis,20,10,45,3,,\n"
    );
    assert!(text(RepeatRule::Mean).contains("\nredis,25,10,45,3,"));
    assert!(text(RepeatRule::Min).contains("\nredis,10,10,45,3,"));
    assert!(text(RepeatRule::Max).contains("\nredis,45,10,45,3,"));
    assert_eq!(
        text(RepeatRule::All),
        "target,repeat,rate,stand_in_for,notes\nredis,1,20,,\nredis,2,10,,\nredis,3,45,,\n"
    );
    // 150 operations in 6 seconds.
    assert_eq!(
        text(RepeatRule::Merged),
        "target,rate,stand_in_for,notes\nredis,25,,\n"
    );
}

#[test]
fn merged_repeats_support_percentiles_that_one_does_not() {
    let plan = fixture::plan_of(&[("target", &[json!("redis")])], 2);
    let loads = [load(60, 0), load(60, 0)];
    let values = [
        ("p90", "load.service_time_p90_us"),
        ("p50", "load.service_time_p50_us"),
    ];
    let mut definition = table(&["target"], &values);
    let text = made(&plan, &loads, definition.clone()).unwrap();
    assert!(
        text.contains("\nredis,,129.023,,129.023,,129.023,0,2,,\"p90: load.service_time_p90_us is not known (it falls among failures, or too few operations support it)\"\n"),
        "{text}"
    );
    definition.repeats = RepeatRule::Merged;
    let text = made(&plan, &loads, definition).unwrap();
    assert_eq!(
        text,
        "target,p90,p50,stand_in_for,notes\nredis,153.087,129.023,,\n"
    );
}

#[test]
fn the_base_of_a_ratio_is_exactly_100_percent() {
    let plan = fixture::plan_of(&[("case", &[json!(1)])], 1);
    for base in [0.8598345041415322, 0.6737996885089753, 0.6626844681715202] {
        assert_ne!(100.0 * base / base, 100.0, "rounding shows on this one");
        let value = format!("{base} + 0 * load.operations");
        let mut definition = table(&["case"], &[("rate", &value)]);
        definition.ratio_to.insert("case".into(), json!(1));
        definition.ratio_name = "percent".into();
        let text = made(&plan, &[load(20, 0)], definition).unwrap();
        assert!(text.ends_with(&format!("1,{base},100,,\n")), "{text}");
    }
}

#[test]
fn ratios_are_those_of_the_published_access_logs() {
    // experiments: requests per second by case, and seconds of a full scan by engine.
    let plan = fixture::plan_of(&[("case", &[json!(1), json!(2), json!(3), json!(4)])], 1);
    let values = [(
        "rate",
        "[7598.81, 8670.88, 4340.90, 3119.29][case - 1] + 0 * load.operations",
    )];
    let mut definition = table(&["case"], &values);
    definition.ratio_to.insert("case".into(), json!(1));
    definition.ratio_name = "percent_of_case_1".into();
    let text = made(&plan, &[load(20, 0); 4], definition).unwrap();
    assert!(text.starts_with("case,rate,percent_of_case_1,"), "{text}");
    assert_eq!(rounded(&text, 2), ["100.0", "114.1", "57.1", "41.0"]);

    let plan = fixture::plan_of(
        &[
            ("query", &[json!("full_scan"), json!("time_range")]),
            ("engine", &[json!("myisam"), json!("archive")]),
        ],
        1,
    );
    let seconds = "{'full_scan': {'myisam': 0.72, 'archive': 4.12}, 'time_range': {'myisam': 0.59, 'archive': 3.87}}[query][engine] + 0 * load.operations";
    let mut definition = table(&["query", "engine"], &[("seconds", seconds)]);
    definition.ratio_to.insert("engine".into(), json!("myisam"));
    let text = made(&plan, &[load(20, 0); 4], definition.clone()).unwrap();
    assert!(
        text.starts_with("query,engine,seconds,seconds_percent,"),
        "{text}"
    );
    assert_eq!(rounded(&text, 3), ["100.0", "572.2", "100.0", "655.9"]);

    // The base may be a column, too.
    definition.rows = vec!["query".into()];
    definition.columns = "engine".into();
    let text = made(&plan, &[load(20, 0); 4], definition).unwrap();
    assert!(
        text.starts_with("query,myisam,archive,myisam_percent,archive_percent,"),
        "{text}"
    );
    assert_eq!(rounded(&text, 4), ["572.2", "655.9"]);
}

fn rounded(csv: &str, column: usize) -> Vec<String> {
    let cells = csv
        .lines()
        .skip(1)
        .map(|line| line.split(',').nth(column).unwrap());
    cells
        .map(|cell| format!("{:.1}", cell.parse::<f64>().unwrap()))
        .collect()
}

#[test]
fn a_cell_that_cannot_be_computed_is_empty_and_the_notes_say_why() {
    let plan = fixture::plan_of(
        &[("target", &["a", "b", "c", "d", "e"].map(|t| json!(t)))],
        1,
    );
    let values = [
        ("rate", "load.throughput_per_second"),
        ("per_error", "load.operations / load.errors.timeout"),
        ("extra", "extra.operations"),
        ("typo", "load.succeded"),
    ];
    let mut definition = table(&["target"], &values);
    definition.ratio_to.insert("target".into(), json!("b"));
    let write = |results: &mut ResultsWriter<'_>| {
        fixture::write_run(results, &plan, 0, load(40, 0));
        let skip = |run, status, reason: &str, results: &mut ResultsWriter<'_>| {
            let writer = results.begin(run).unwrap();
            writer.finish(fixture::run_record(status, reason)).unwrap();
        };
        skip(1, Status::Skipped, "b is not installed", results);
        skip(2, Status::Failed, "the server died", results);
        let mut invalid = results.begin(3).unwrap();
        fixture::write_phases(&mut invalid, &plan.shapes[3].phases, load(30, 0));
        invalid
            .finish(fixture::run_record(Status::Invalid, "lost an update"))
            .unwrap();
    };
    let text = made_by(&plan, definition.clone(), write).unwrap();
    let rows: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(
        rows[0],
        "a,20,,,,,,,,,per_error: it divides by zero; extra: phase extra was left out; \
         typo: there is no load.succeded; did you mean succeeded?; \
         rate_percent: the base of the ratio is not known"
    );
    assert_eq!(rows[1], "b,,,,,,,,,,skipped: b is not installed");
    assert_eq!(rows[2], "c,,,,,,,,,,failed: the server died");
    assert_eq!(rows[3], "d,,,,,,,,,,invalid: lost an update");
    assert_eq!(rows[4], "e,,,,,,,,,,not run");
    definition.show_invalid = true;
    definition.ratio_to.clear();
    definition.values.truncate(1);
    let text = made_by(&plan, definition, write).unwrap();
    assert!(text.contains("\nd,15,,invalid: lost an update\n"), "{text}");
    assert!(text.contains("\nc,,,failed: the server died\n"), "{text}");
}

#[test]
fn doubts_empty_no_cell_and_a_bad_repeat_is_told_and_left_out() {
    let plan = fixture::plan_of(&[("target", &[json!("redis")])], 3);
    let definition = table(&["target"], &[("rate", "load.throughput_per_second")]);
    let text = made_by(&plan, definition, |results| {
        fixture::write_run(results, &plan, 0, load(40, 0));
        let mut doubtful = results.begin(1).unwrap();
        fixture::write_phases(&mut doubtful, &plan.shapes[0].phases, load(60, 0));
        let mut record = fixture::run_record(Status::Valid, "");
        record.doubts = vec!["client_limited".into()];
        doubtful.finish(record).unwrap();
        let failed = results.begin(2).unwrap();
        failed
            .finish(fixture::run_record(Status::Failed, "no answer"))
            .unwrap();
    });
    assert_eq!(
        text.unwrap(),
        "target,rate,rate_min,rate_max,rate_n,stand_in_for,notes\n\
         redis,25,20,30,2,,repeat 3 failed: no answer; repeat 2 doubt: client_limited\n"
    );
}

#[test]
fn an_axis_with_several_values_in_one_cell_is_refused() {
    let definition = table(&["target"], &[("rate", "load.operations")]);
    let error = made(&axes(1), &[load(20, 0); 4], definition)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("table `t`: `threads` has several values in one cell (4 and 16)"),
        "{error}"
    );
    let definition = table(&["treads"], &[("rate", "load.operations")]);
    let error = made(&axes(1), &[load(20, 0); 4], definition)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("`treads` is neither an axis nor a label"),
        "{error}"
    );
}

#[test]
fn a_row_per_window_shows_stalls_and_can_be_wider() {
    let plan = fixture::plan_of(&[("target", &[json!("redis")])], 1);
    let phase = &plan.shapes[0].phases[0];
    let (all, measured) = (load(120, 0), Duration::from_secs(4));
    let write = |results: &mut ResultsWriter<'_>| {
        let mut run = results.begin(0).unwrap();
        for (second, window) in fixture::windows(phase, all, measured).iter().enumerate() {
            // Nothing ended in the third second.
            if second != 2 {
                run.window(phase, window).unwrap();
            }
        }
        run.phase(phase, &fixture::phase_record(phase, all, measured))
            .unwrap();
        run.finish(fixture::run_record(Status::Valid, "")).unwrap();
    };
    let values = [
        ("rate", "load.throughput_per_second"),
        ("n", "load.succeeded"),
        ("p50", "load.succeeded_service_time_p50_us"),
    ];
    let mut definition = table(&["target", "window"], &values);
    let unknown = "p50: load.succeeded_service_time_p50_us is not known (it falls among failures, or too few operations support it)";
    assert_eq!(
        made_by(&plan, definition.clone(), write).unwrap(),
        format!(
            "target,window_start_seconds,rate,n,p50,stand_in_for,notes\n\
             redis,0,30,30,114.047,,\nredis,1,30,30,144.127,,\n\
             redis,2,0,0,,,\"{unknown}\"\nredis,3,30,30,204.031,,\n"
        )
    );
    definition.every_ns = 2_000_000_000;
    assert_eq!(
        made_by(&plan, definition, write).unwrap(),
        "target,window_start_seconds,rate,n,p50,stand_in_for,notes\n\
         redis,0,30,60,129.023,,\nredis,2,15,30,204.031,,\n"
    );
}

#[test]
fn labels_tell_several_directories_apart() {
    let temporary = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for (kernel, succeeded) in [("ULE", 40), ("4BSD", 20)] {
        let mut plan = fixture::plan_of(&[("target", &[json!("redis")])], 1);
        plan.labels.insert("kernel".into(), json!(kernel));
        let path = temporary.path().join(kernel);
        let mut results = fixture::open(&path, &plan);
        fixture::write_run(&mut results, &plan, 0, load(succeeded, 0));
        results.finish(fixture::started(), 0).unwrap();
        paths.push(path);
    }
    let mut definition = table(
        &["kernel", "target"],
        &[("rate", "load.throughput_per_second")],
    );
    let tables = make(&paths, Some(vec![definition.clone()])).unwrap();
    assert_eq!(
        csv(&tables[0]),
        "kernel,target,rate,stand_in_for,notes\nULE,redis,20,,\n4BSD,redis,10,,\n"
    );
    definition.rows = vec!["target".into()];
    let error = make(&paths, Some(vec![definition]))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("`kernel` has several values in one cell (ULE and 4BSD)"),
        "{error}"
    );
}

#[test]
fn texts_that_look_like_formulas_are_escaped_and_files_written() {
    let plan = fixture::plan_of(&[("target", &[json!("=1+1")]), ("n", &[json!(-1)])], 1);
    let definition = table(
        &["target", "n"],
        &[("rate", "0 - load.throughput_per_second")],
    );
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("out");
    let mut results = fixture::open(&path, &plan);
    fixture::write_run(&mut results, &plan, 0, load(40, 0));
    let tables = make(std::slice::from_ref(&path), Some(vec![definition])).unwrap();
    let written = write(&tables, &directory_of(&path)).unwrap();
    assert_eq!(written, [path.join("tables/t.csv")]);
    assert_eq!(
        std::fs::read_to_string(&written[0]).unwrap(),
        "target,n,rate,stand_in_for,notes\n'=1+1,-1,-20,,\n"
    );
    assert_eq!(
        print(&tables[0]),
        "t\n  target   n  rate\n  ------  --  ----\n  =1+1    -1   -20\n"
    );
}
