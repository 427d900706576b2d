//! The plan of whole scenarios: runs and their order, what each does, faults of some runs, hashes, cost.

#[path = "support/specs.rs"]
mod specs;

use dbbench::plan::{self, Made, Plan};
use dbbench::scenario::{self, Overrides};
use dbbench::{diag, template::Text};
use std::path::Path;

/// Makes the plan of a text; faults come back drawn.
fn make_with(text: &str, overrides: &Overrides, only: &[&str]) -> Result<Made, String> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("s.toml");
    std::fs::write(&path, text).expect("written");
    make_file(&path, overrides, only)
}

fn make_file(path: &Path, overrides: &Overrides, only: &[&str]) -> Result<Made, String> {
    let loaded = scenario::load(path, overrides, specs::ALL);
    let drawn = |diagnostics| diag::render(&loaded.sources, &diagnostics, false);
    let Some(scenario) = loaded.scenario else {
        return Err(drawn(loaded.diagnostics));
    };
    let only: Vec<String> = only.iter().map(|text| (*text).to_owned()).collect();
    plan::make(&scenario.root, &loaded.sources, specs::ALL, &only).map_err(drawn)
}

fn make(text: &str) -> Plan {
    match make_with(text, &Overrides::default(), &[]) {
        Ok(made) => made.plan,
        Err(text) => panic!("{text}"),
    }
}

fn faults(text: &str) -> String {
    match make_with(text, &Overrides::default(), &[]) {
        Ok(made) => panic!("no fault, and {} runs", made.plan.runs.len()),
        Err(text) => text,
    }
}

fn ids(plan: &Plan) -> Vec<String> {
    plan.runs.iter().map(|run| plan.run_id(run)).collect()
}

const KVS: &str = r#"
schema = 1
name = "kvs"
title = "Stores"
[vars]
operations = 1_000
embedded = ["redb"]
per_thread = "{{ operations // threads }}"
[sweep]
target = ["redis", "redb"]
threads = { from = 1, to = 3 }
exclude = ["{{ target in embedded and threads == 2 }}"]
[runs]
repeats = 2
seed = 42
[servers.redis]
command = ["redis-server", "--port", "{{ port('redis') }}"]
files = { "redis.conf" = "dir {{ dir('redis') }}\n" }
[targets.redis]
driver = "redis"
servers = ["redis"]
endpoints = ["redis://{{ address('redis') }}:{{ port('redis') }}"]
[targets.redb]
driver = "redb"
[workload.keys]
format = "user%010d"
uses_per_key = 10
[workload.values]
size = "1KiB"
[[phases]]
name = "set"
operation = "set"
threads = "{{ threads }}"
operations = "{{ operations }}"
[[phases]]
name = "get"
operation = "get"
threads = "{{ threads }}"
operations_per_thread = "{{ per_thread }}"
verify = true
when = "{{ threads != 3 }}"
[[tables]]
name = "seconds"
rows = ["target", "threads"]
values = { set_seconds = "{{ set.elapsed_seconds * operations }}", each = "{{ set.set.throughput_per_second }}" }
"#;

#[test]
fn runs_are_points_times_repeats_without_those_excluded() {
    let plan = make(KVS);
    assert_eq!(
        ids(&plan),
        [
            "target=redis,threads=1#1",
            "target=redis,threads=2#1",
            "target=redis,threads=3#1",
            "target=redb,threads=1#1",
            "target=redb,threads=3#1",
            "target=redis,threads=1#2",
            "target=redis,threads=2#2",
            "target=redis,threads=3#2",
            "target=redb,threads=1#2",
            "target=redb,threads=3#2",
        ]
    );
    assert_eq!(plan.shapes.len(), 5, "repeats share their shape");
    assert_eq!(plan.slug(&plan.runs[0]), "target-redis_threads-1_1");
}

#[test]
fn a_run_holds_what_its_templates_say() {
    let plan = make(KVS);
    let shape = |id: &str| {
        let run = plan.runs.iter().find(|run| plan.run_id(run) == id).expect("a run");
        &plan.shapes[run.shape as usize]
    };
    let two = shape("target=redis,threads=2#1");
    assert_eq!(two.target.driver, "redis");
    assert_eq!(two.phases[1].groups[0].threads, 2);
    assert_eq!(two.phases[1].groups[0].operations, Some(1_000));
    assert_eq!(two.servers.len(), 1);
    assert!(matches!(two.servers[0].ready, plan::Ready::Driver), "the endpoint names the server");
    let Text::Deferred(port) = &two.servers[0].command[2] else {
        panic!("a port is known only in the run")
    };
    assert_eq!(port.template, "{{ port('redis') }}");
    let three = shape("target=redb,threads=3#1");
    assert_eq!(three.left_out, ["get"]);
    assert_eq!(three.phases.len(), 1);
    assert!(three.servers.is_empty());
    assert_eq!(three.vars["operations"], 1_000);
    assert_eq!(three.estimate.keys, 100);
    assert_eq!(three.estimate.data_bytes, 100 * (14 + 1024));
    assert_eq!(three.estimate.disk_bytes, 100 * (14 + 1024));
    assert_eq!(three.estimate.memory_bytes, 0);
}

#[test]
fn only_keeps_the_runs_that_it_names() {
    let only = |filter: &str| make_with(KVS, &Overrides::default(), &[filter]);
    let made = only("target=redb,threads=1|3").expect("a plan");
    assert_eq!(made.plan.runs.len(), 4);
    let made = only("target=redis,threads=2#2").expect("a plan");
    assert_eq!(ids(&made.plan), ["target=redis,threads=2#2"]);
    assert!(only("threads=2,target=redb").unwrap_err().contains("leaves out every run"));
    assert!(only("thread=2").unwrap_err().contains("did you mean `threads`?"));
}

#[test]
fn a_fault_of_one_run_among_many_names_its_axis_values() {
    let text = KVS.replace("{{ operations // threads }}", "{{ operations // (threads - 2) }}");
    let text = faults(&text);
    assert!(text.contains("division by zero"), "{text}");
    assert!(text.contains("threads=2"), "{text}");
    assert!(!text.contains("target="), "{text}");
}

#[test]
fn a_value_is_checked_after_its_template_was_evaluated() {
    let text = faults(&KVS.replace("{{ threads }}\"\noperations = ", "{{ threads ~ 'x' }}\"\noperations = "));
    assert!(text.contains("wrong-type"), "{text}");
    let text = faults(&KVS.replace("\"{{ operations }}\"", "\"{{ operations - 1000 }}\""));
    assert!(text.contains("out-of-range"), "{text}");
}

#[test]
fn titles_and_tables_do_not_change_the_hash_and_a_timeout_does() {
    let hash = make(KVS).hash;
    assert_eq!(make(KVS).hash, hash);
    assert_eq!(make(&KVS.replace("Stores", "Other stores")).hash, hash);
    assert_eq!(make(&KVS.replace("each = ", "other = ")).hash, hash);
    assert_ne!(make(&KVS.replace("verify = true", "verify = true\ntimeout = \"9s\"")).hash, hash);
    assert_ne!(make(&KVS.replace("seed = 42", "seed = 43")).hash, hash);
    assert_ne!(make(&KVS.replace("port('redis') }}\"]\nfiles", "port('redis') + 0 }}\"]\nfiles")).hash, hash);
}

#[test]
fn a_plan_is_read_back_as_it_was_written() {
    let plan = make(KVS);
    let written = serde_json::to_string(&plan).expect("written");
    let read: Plan = serde_json::from_str(&written).expect("read");
    assert_eq!(serde_json::to_string(&read).expect("written"), written);
    assert_eq!(plan::hash::hash(&read), plan.hash);
}

#[test]
fn templates_are_evaluated_once_per_combination_that_they_read() {
    let text = KVS
        .replace("[sweep]\n", "[sweep]\na = { from = 1, to = 50 }\nb = { from = 1, to = 40 }\n")
        .replace("rows = [\"target\"", "rows = [\"a\", \"b\", \"target\"");
    let started = std::time::Instant::now();
    let made = make_with(&text, &Overrides::default(), &[]).expect("a plan");
    assert_eq!(made.plan.runs.len(), 20_000);
    assert_eq!(made.plan.shapes.len(), 5);
    assert!(made.evaluations < 60, "{} evaluations", made.evaluations);
    let warnings: Vec<&str> = made.warnings.iter().map(|warning| warning.code).collect();
    assert_eq!(warnings, ["idle-axis", "idle-axis"]);
    assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
}
