//! A small plan and its records, for tests of results and tables.

use super::layout::RunDirectory;
use super::manifest::{Manifest, SourceFile};
use super::writer::{ResultsWriter, RunWriter};
use crate::measure::record::*;
use crate::op::ErrorClass;
use crate::plan::*;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub fn started() -> Timestamp {
    "2026-11-30T20:15:00.123Z".parse().unwrap()
}

pub fn group(name: &str, operations: &[&str], threads: u32) -> GroupPlan {
    let mix: Vec<Value> = operations
        .iter()
        .map(|operation| json!({ "operation": operation, "weight": 1.0 }))
        .collect();
    serde_json::from_value(json!({
        "name": name,
        "mix": mix,
        "threads": threads,
        "operations": 100,
        "share": "blocks",
        "timeout_ns": 1_000_000_000,
        "pipeline": 1,
        "verify": false,
        "endpoints": "",
        "keys": {
            "format": "k%d",
            "digest": "none",
            "count": null,
            "uses_per_key": 1,
            "distribution": { "kind": "sequential" },
        },
        "values": {
            "size": { "kind": "fixed", "bytes": 10 },
            "content": { "kind": "random" },
            "compressible": 0.0,
        },
    }))
    .unwrap()
}

pub fn phase(name: &str, ordinal: u32, groups: Vec<GroupPlan>) -> PhasePlan {
    PhasePlan {
        prepare: Vec::new(),
        cleanup: Vec::new(),
        prepare_timeout_ns: 0,
        restart_servers: Vec::new(),
        faults: Vec::new(),
        name: name.into(),
        ordinal,
        measured: true,
        duration_ns: None,
        warmup_ns: 0,
        at_least_ns: 0,
        groups,
    }
}

pub fn target(name: &str, stand_in_for: &str) -> Arc<TargetPlan> {
    Arc::new(TargetPlan {
        name: name.into(),
        label: String::new(),
        driver: "null".into(),
        endpoints: Vec::new(),
        options: BTreeMap::new(),
        operations: Vec::new(),
        stand_in_for: stand_in_for.into(),
        copies: 1,
        held_in: None,
        must_exist: false,
        allow_reset: false,
        connect_timeout_ns: 1_000_000_000,
        durability: None,
    })
}

/// Axes and their values, in order; `runs` = all points, last axis fastest, in passes of `repeats`. The axis `target`
/// chooses the target. Two phases: `load` (one `set`), and `mixed` with the groups `read` (get) and `write` (set, delete).
pub fn plan_of(axes: &[(&str, &[Value])], repeats: u32) -> Plan {
    let axes: Vec<Axis> = axes
        .iter()
        .map(|(name, values)| Axis {
            name: (*name).into(),
            values: values.to_vec(),
        })
        .collect();
    let targets = axes.iter().position(|axis| axis.name == "target");
    let names: Vec<String> = match targets {
        Some(at) => axes[at].values.iter().map(super::cells::value).collect(),
        None => vec!["store".into()],
    };
    let phases = vec![
        Arc::new(phase("load", 0, vec![group("", &["set"], 2)])),
        Arc::new(phase(
            "mixed",
            1,
            vec![
                group("read", &["get"], 4),
                group("write", &["set", "delete"], 1),
            ],
        )),
    ];
    let shapes = names
        .iter()
        .map(|name| Shape {
            dataset: None,
            probes: Vec::new(),
            target: target(name, if name == "valkey" { "MemSQL" } else { "" }),
            servers: Vec::new(),
            phases: phases.clone(),
            left_out: vec!["extra".into()],
            vars: Arc::new(BTreeMap::from([("value_size".to_owned(), json!(10))])),
            estimate: Estimate::default(),
            stand_in: None,
        })
        .collect();
    Plan {
        conditions: Vec::new(),
        format: PLAN_FORMAT,
        hash: "abc".into(),
        scenario: ScenarioInfo {
            name: "fixture".into(),
            ..ScenarioInfo::default()
        },
        runs: runs(&axes, targets, repeats),
        axes,
        repeats,
        seed: 1,
        pause_ns: 0,
        run_timeout_ns: 0,
        stop_on_failure: false,
        client: ClientPlan {
            workers: None,
            cpus: Vec::new(),
            window_ns: 1_000_000_000,
            connect_rate_per_second: 0.0,
        },
        outputs: Outputs::default(),
        shapes,
        labels: BTreeMap::new(),
        tables: Vec::new(),
        notes: Vec::new(),
    }
}

fn runs(axes: &[Axis], target: Option<usize>, repeats: u32) -> Vec<RunPlan> {
    let mut points = vec![Vec::new()];
    for axis in axes {
        points = points
            .into_iter()
            .flat_map(|point: Vec<u32>| {
                (0..axis.values.len() as u32)
                    .map(move |index| [point.clone(), vec![index]].concat())
            })
            .collect();
    }
    (1..=repeats)
        .flat_map(|repeat| {
            points.iter().map(move |point| RunPlan {
                point: point.clone().into_boxed_slice(),
                repeat,
                shape: target.map_or(0, |at| point[at]),
            })
        })
        .collect()
}

/// `target` = redis, redb; `threads` = 1, 4; two repeats; a label.
pub fn plan() -> Plan {
    let mut plan = plan_of(
        &[
            ("target", &[json!("redis"), json!("redb")]),
            ("threads", &[json!(1), json!(4)]),
        ],
        2,
    );
    plan.labels.insert("kernel".into(), json!("=ULE, 7"));
    plan
}

pub fn manifest(plan: &Plan) -> Manifest {
    Manifest::new(
        plan,
        vec![SourceFile::new("fixture.toml", "schema = 1\n")],
        started(),
    )
}

pub fn open<'p>(path: &Path, plan: &'p Plan) -> ResultsWriter<'p> {
    let directory = RunDirectory::create_at(path).unwrap();
    ResultsWriter::open(directory, plan, manifest(plan)).unwrap()
}

/// Latencies of `count` operations: `first_ns`, then 1 us more each.
pub fn latencies(count: u64, first_ns: u64) -> Latencies {
    let mut latencies = Latencies::new();
    (0..count).for_each(|i| latencies.record(first_ns + i * 1000));
    latencies
}

pub fn counts(succeeded: u64, timed_out: u64) -> Counts {
    Counts {
        operations: succeeded + timed_out,
        succeeded,
        found: succeeded,
        timed_out,
        unknown: timed_out,
        bytes_sent: 10 * succeeded,
        bytes_received: 20 * succeeded,
        ..Counts::default()
    }
}

/// What one operation of a run does: successes, timeouts, and the time of the first success.
#[derive(Clone, Copy)]
pub struct Load {
    pub succeeded: u64,
    pub timed_out: u64,
    pub first_ns: u64,
}

fn timeouts(load: Load) -> Latencies {
    let mut latencies = Latencies::new();
    (0..load.timed_out).for_each(|_| latencies.record(1_000_000_000));
    latencies
}

fn operation(name: &str, load: Load) -> OperationRecord {
    OperationRecord {
        extra: None,
        operation: name.into(),
        counts: counts(load.succeeded, load.timed_out),
        succeeded_inside: load.succeeded,
        ended_inside: load.succeeded + load.timed_out,
        succeeded: latencies(load.succeeded, load.first_ns),
        unsuccessful: timeouts(load),
    }
}

/// The record of a phase in which every operation of every group has this load.
pub fn phase_record(plan: &PhasePlan, load: Load, measured: Duration) -> PhaseRecord {
    let groups: Vec<GroupRecord> = plan
        .groups
        .iter()
        .map(|group| GroupRecord {
            name: group.name.clone(),
            threads: group.threads,
            workers: 1,
            connections: group.threads,
            endpoints: vec![("127.0.0.1:7001".into(), load.succeeded + load.timed_out)],
            reconnections: load.timed_out,
            reconnecting: Duration::from_millis(3) * load.timed_out as u32,
            client_cpu: Duration::from_millis(10),
            client_turn: latencies(30, 500),
            operations: group
                .mix
                .iter()
                .map(|entry| operation(&entry.operation, load))
                .collect(),
        })
        .collect();
    PhaseRecord {
        name: plan.name.clone(),
        measured: plan.measured,
        started_at: started(),
        measured_time: measured,
        passes: 1,
        errors: errors(&groups, load),
        groups,
        cut_short: None,
        worker_busy: vec![0.5],
    }
}

fn errors(groups: &[GroupRecord], load: Load) -> Vec<ErrorRecord> {
    if load.timed_out == 0 {
        return Vec::new();
    }
    groups
        .iter()
        .flat_map(|group| {
            group.operations.iter().map(|operation| ErrorRecord {
                group: group.name.clone(),
                operation: operation.operation.clone(),
                class: ErrorClass::Timeout,
                code: String::new(),
                count: load.timed_out,
                first_at: Duration::from_millis(1500),
                first_message: "=no answer\nwithin \"1s\"".into(),
            })
        })
        .collect()
}

/// The load, spread over one window per second of the measured time (the first takes what is left over).
pub fn windows(plan: &PhasePlan, load: Load, measured: Duration) -> Vec<WindowRecord> {
    let seconds = measured.as_secs().max(1);
    (0..seconds)
        .map(|second| {
            let first = (load.succeeded / seconds) * second;
            let last = match second + 1 == seconds {
                true => load.succeeded,
                false => first + load.succeeded / seconds,
            };
            let timed_out = if second == 0 { load.timed_out } else { 0 };
            let part = Load {
                succeeded: last - first,
                timed_out,
                first_ns: load.first_ns + first * 1000,
            };
            let slots = plan.groups.iter().enumerate().flat_map(|(group, g)| {
                (0..g.mix.len()).map(move |slot| WindowOperation {
                    extra: None,
                    group,
                    slot,
                    counts: counts(part.succeeded, part.timed_out),
                    succeeded: latencies(part.succeeded, part.first_ns),
                    unsuccessful: timeouts(part),
                })
            });
            WindowRecord {
                start: Duration::from_secs(second),
                length: Duration::from_secs(1),
                stage: Stage::Measured,
                operations: slots.collect(),
            }
        })
        .collect()
}

pub fn run_record(status: Status, reason: &str) -> RunRecord {
    RunRecord {
        status,
        reason: reason.into(),
        doubts: Vec::new(),
        started_at: started(),
        elapsed: Duration::from_millis(2500),
        server_version: "null 1".into(),
    }
}

/// Windows, phases and one sample of a run, all but its end.
pub fn write_phases(run: &mut RunWriter<'_, '_>, phases: &[Arc<PhasePlan>], load: Load) {
    let measured = Duration::from_secs(2);
    for phase in phases {
        for window in windows(phase, load, measured) {
            run.window(phase, &window).unwrap();
        }
        run.phase(phase, &phase_record(phase, load, measured))
            .unwrap();
    }
    run.sample(&Sample {
        process: "client".into(),
        at: Duration::from_millis(1),
        cpu: Some(Duration::from_millis(20)),
        rss_bytes: Some(4096),
        read_bytes: None,
        written_bytes: None,
        threads: Some(3),
        time_wait_sockets: None,
        load: None,
    })
    .unwrap();
}

/// A whole valid run.
pub fn write_run(results: &mut ResultsWriter<'_>, plan: &Plan, run: usize, load: Load) {
    let shape = &plan.shapes[plan.runs[run].shape as usize];
    let mut writer = results.begin(run).unwrap();
    write_phases(&mut writer, &shape.phases, load);
    writer.finish(run_record(Status::Valid, "")).unwrap();
}
