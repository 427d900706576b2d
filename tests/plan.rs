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
}

#[test]
fn a_run_holds_what_its_templates_say() {
    let plan = make(KVS);
    let shape = |id: &str| {
        let run = plan
            .runs
            .iter()
            .find(|run| plan.run_id(run) == id)
            .expect("a run");
        &plan.shapes[run.shape as usize]
    };
    let two = shape("target=redis,threads=2#1");
    assert_eq!(two.target.driver, "redis");
    assert_eq!(two.phases[1].groups[0].threads, 2);
    assert_eq!(two.phases[1].groups[0].operations, Some(1_000));
    assert_eq!(two.servers.len(), 1);
    assert!(
        matches!(two.servers[0].ready, plan::Ready::Driver),
        "the endpoint names the server"
    );
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
    assert!(
        only("threads=2,target=redb")
            .unwrap_err()
            .contains("leaves out every run")
    );
    assert!(
        only("thread=2")
            .unwrap_err()
            .contains("did you mean `threads`?")
    );
}

#[test]
fn a_fault_of_one_run_among_many_names_its_axis_values() {
    let text = KVS.replace(
        "{{ operations // threads }}",
        "{{ operations // (threads - 2) }}",
    );
    let text = faults(&text);
    assert!(text.contains("division by zero"), "{text}");
    assert!(text.contains("threads=2"), "{text}");
    assert!(!text.contains("target="), "{text}");
}

#[test]
fn a_value_is_checked_after_its_template_was_evaluated() {
    let text = faults(&KVS.replace(
        "{{ threads }}\"\noperations = ",
        "{{ threads ~ 'x' }}\"\noperations = ",
    ));
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
    assert_ne!(
        make(&KVS.replace("verify = true", "verify = true\ntimeout = \"9s\"")).hash,
        hash
    );
    assert_ne!(make(&KVS.replace("seed = 42", "seed = 43")).hash, hash);
    assert_ne!(
        make(&KVS.replace(
            "port('redis') }}\"]\nfiles",
            "port('redis') + 0 }}\"]\nfiles"
        ))
        .hash,
        hash
    );
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
        .replace(
            "[sweep]\n",
            "[sweep]\na = { from = 1, to = 50 }\nb = { from = 1, to = 40 }\n",
        )
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

#[test]
fn every_scenario_of_the_repository_has_a_plan() {
    let mut plans = 0;
    for entry in std::fs::read_dir("scenarios").expect("scenarios") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        for quick in [false, true] {
            let overrides = Overrides {
                quick,
                ..Overrides::default()
            };
            let loaded = scenario::load(&path, &overrides, &dbbench::registry::specs());
            let scenario = loaded.scenario.expect("a scenario");
            let made = plan::make(
                &scenario.root,
                &loaded.sources,
                &dbbench::registry::specs(),
                &[],
            );
            let made = made.unwrap_or_else(|faults| {
                panic!("{}", diag::render(&loaded.sources, &faults, false))
            });
            assert!(!made.plan.runs.is_empty(), "{}", path.display());
            let ids: std::collections::BTreeSet<String> = ids(&made.plan).into_iter().collect();
            assert_eq!(ids.len(), made.plan.runs.len(), "{}", path.display());
            let text = plan::describe::describe(&made);
            assert!(text.contains(&made.plan.hash), "{text}");
            plans += 1;
        }
    }
    assert!(plans >= 8, "only {plans} plans");
}

#[test]
fn the_schema_of_plans_is_the_one_in_the_repository() {
    let text = plan::file::schema_text();
    let path = "schemas/plan.schema.json";
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &text).expect("written");
    }
    let known = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        known == text,
        "{path} is not what the types say; UPDATE=1 writes it anew"
    );
    let schema = serde_json::from_str(&text).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let plan = serde_json::to_value(make(KVS)).expect("JSON");
    let faults: Vec<String> = validator
        .iter_errors(&plan)
        .map(|fault| fault.to_string())
        .collect();
    assert!(faults.is_empty(), "{faults:?}");
}

#[test]
fn the_hash_of_a_plan_is_the_same_on_every_machine() {
    let golden = "b094c53f777b12d985f87ac0fa0e15cac122758e1e9d326badabfe54f99b032b";
    assert_eq!(
        make(KVS).hash,
        golden,
        "raise PLAN_FORMAT if the plan of a scenario has changed"
    );
}

#[test]
fn what_a_machine_cannot_hold_is_refused_with_the_sum() {
    let text = KVS
        .replace("operations = 1_000", "operations = 1_200_000")
        .replace("\"1KiB\"", "80_000")
        .replace("driver = \"redis\"\n", "driver = \"redis\"\ncopies = 3\n");
    let plan = make(&text);
    assert_eq!(plan::fits(&plan, 40_000_000_000, 40_000_000_000), Ok(()));
    let refusal = plan::fits(&plan, 8_000_000_000, 40_000_000_000).unwrap_err();
    assert_eq!(
        refusal.message,
        "120,000 keys x (14 + 80,000) bytes x 3 copies = 28.8 GB in memory; this machine has 8.0 GB free \
         (target=redis,threads=1#1)"
    );
    let refusal = plan::fits(&plan, 40_000_000_000, 1_000_000).unwrap_err();
    assert!(refusal.message.contains("9.6 GB on disk"), "{refusal}");
}

#[test]
fn memory_of_all_instances_of_a_server_is_needed_beside_the_data() {
    let text = KVS
        .replace("operations = 1_000", "operations = 1_200_000")
        .replace("\"1KiB\"", "80_000")
        .replace(
            "[servers.redis]\n",
            "[servers.redis]\ninstances = 3\nmemory = \"600MB\"\n",
        )
        .replace("port('redis')", "port('redis', 'main')")
        .replace("address('redis')", "address('redis', 1)")
        .replace("dir('redis')", "dir('redis', 1)");
    let plan = make(&text);
    assert_eq!(plan::fits(&plan, 12_000_000_000, 40_000_000_000), Ok(()));
    let refusal = plan::fits(&plan, 10_000_000_000, 40_000_000_000).unwrap_err();
    assert_eq!(
        refusal.message,
        "120,000 keys x (14 + 80,000) bytes + redis 3 x 600.0 MB = 11.4 GB in memory; this machine has 10.0 GB free \
         (target=redis,threads=1#1)"
    );
}

#[test]
fn a_plan_of_many_different_runs_grows_linearly() {
    let text = |runs: u32| {
        KVS.replace("operations = 1_000", "operations = 1_000_000")
            .replace(
                "threads = { from = 1, to = 3 }",
                &format!("threads = {{ from = 1, to = {runs} }}"),
            )
            .replace("target = [\"redis\", \"redb\"]", "target = [\"redis\"]")
            .replace("repeats = 2", "repeats = 1")
            .replace("and threads == 2", "and false")
    };
    let time = |runs: u32| {
        let started = std::time::Instant::now();
        let made = make_with(&text(runs), &Overrides::default(), &[]).expect("a plan");
        assert_eq!(made.plan.runs.len(), runs as usize);
        assert_eq!(made.plan.shapes.len(), runs as usize);
        assert!(
            made.evaluations < u64::from(runs) * 8,
            "{} evaluations",
            made.evaluations
        );
        println!("{runs} runs: {:?}", started.elapsed());
        started.elapsed().as_secs_f64()
    };
    let (small, large) = (time(1_000), time(8_000));
    assert!(
        large < small * 24.0 + 0.5,
        "{small} s for 1,000, {large} s for 8,000 runs"
    );
}

#[test]
fn a_number_of_a_template_is_text_where_text_belongs() {
    let plan = make(&KVS.replace(
        "\"--port\", ",
        "\"--io-threads\", \"{{ threads }}\", \"--port\", ",
    ));
    let server = &plan.shapes[0].servers[0];
    assert_eq!(server.command[2], Text::Plain("1".to_owned()));
}

#[test]
fn groups_inherit_from_their_phase_and_say_otherwise() {
    let text = r#"
schema = 1
name = "groups"
[targets.redis]
driver = "redis"
endpoints = { primary = ["redis://127.0.0.1:7001"], replicas = ["redis://127.0.0.1:7002", "redis://127.0.0.1:7003"] }
[workload.keys]
count = 100
[workload.values]
size = 64
[[phases]]
name = "steady"
duration = "5s"
warmup = "1s"
timeout = "200ms"
operation = "get"
endpoints = "replicas"
keys = { distribution = { name = "zipfian", theta = 0.8 } }
[[phases.groups]]
name = "read"
threads = 50
[[phases.groups]]
name = "write"
mix = { set = 9, delete = 1 }
endpoints = "primary"
timeout = "1s"
keys = { distribution = "uniform" }
"#;
    let plan = make(text);
    let phase = &plan.shapes[0].phases[0];
    assert_eq!(
        (phase.duration_ns, phase.warmup_ns),
        (Some(5_000_000_000), 1_000_000_000)
    );
    let [read, write] = phase.groups.as_slice() else {
        panic!("two groups")
    };
    assert_eq!(
        (read.threads, read.timeout_ns, read.endpoints.as_str()),
        (50, 200_000_000, "replicas")
    );
    assert_eq!(read.mix[0].operation, "get");
    assert_eq!(read.keys.count, Some(100));
    use dbbench::workload::spec::KeyDistribution;
    assert_eq!(
        read.keys.distribution,
        KeyDistribution::Zipfian {
            theta: 0.8,
            scrambled: true
        }
    );
    assert_eq!(
        (write.threads, write.timeout_ns, write.endpoints.as_str()),
        (1, 1_000_000_000, "primary")
    );
    let mix: Vec<(&str, f64)> = write
        .mix
        .iter()
        .map(|entry| (entry.operation.as_str(), entry.weight))
        .collect();
    assert_eq!(mix, [("set", 9.0), ("delete", 1.0)]);
    assert_eq!(write.keys.distribution, KeyDistribution::Uniform);
    assert_eq!(plan.shapes[0].estimate.seconds, 6.0);
    assert_eq!(plan.shapes[0].estimate.keys, 100);
}

#[test]
fn ranges_are_written_out_as_a_list_would_have_been() {
    let axes = |sweep: &str| {
        let text = format!(
            "schema = 1\nname = \"s\"\n[sweep]\n{sweep}\n[targets.null]\ndriver = \"null\"\n\
             [[phases]]\nname = \"get\"\noperation = \"get\"\noperations = 1\n"
        );
        let plan = make(&text);
        let values = plan
            .axes
            .into_iter()
            .map(|axis| serde_json::Value::from(axis.values).to_string());
        values.collect::<Vec<_>>()
    };
    assert_eq!(axes("a = { from = 1, to = 4 }"), ["[1,2,3,4]"]);
    assert_eq!(axes("a = { from = 1, to = 6, step = 2 }"), ["[1,3,5]"]);
    assert_eq!(
        axes("a = { from = 0.1, to = 0.5, step = 0.2 }"),
        ["[0.1,0.3,0.5]"]
    );
    assert_eq!(
        axes("a = { from = \"1KiB\", to = \"1MiB\", factor = 32 }"),
        [r#"["1KiB","32KiB","1MiB"]"#]
    );
    assert_eq!(
        axes("a = { from = \"500ms\", to = \"2s\", step = \"500ms\" }"),
        [r#"["500ms","1s","1500ms","2s"]"#]
    );
    assert_eq!(
        axes("a = { from = 1, to = 16, factor = 2 }"),
        ["[1,2,4,8,16]"]
    );
    assert_eq!(
        axes("a = [1, 2]\ncases = [{ k = \"x\", s = 1 }, { k = \"y\", s = 1 }]"),
        ["[1,2]", r#"["x","y"]"#, "[1]"]
    );
}

#[test]
fn files_that_are_copied_enter_the_hash_by_content() {
    let directory = tempfile::tempdir().expect("a directory");
    let app = directory.path().join("app");
    std::fs::create_dir(&app).expect("made");
    let path = directory.path().join("s.toml");
    let text = KVS.replace("files = {", "files = { \"app/\" = { from = \"app\" },");
    std::fs::write(&path, text).expect("written");
    let hash = |content: &str| {
        std::fs::write(app.join("a.txt"), content).expect("written");
        make_file(&path, &Overrides::default(), &[])
            .expect("a plan")
            .plan
            .hash
    };
    let first = hash("one");
    assert_ne!(hash("two"), first);
    assert_eq!(hash("one"), first);
}

#[test]
fn a_plan_is_described_for_people() {
    let made = make_with(KVS, &Overrides::default(), &[]).expect("a plan");
    let text = plan::describe::describe(&made);
    println!("{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "kvs: Stores");
    for expected in [
        "axes        target: redis, redb",
        "            threads: 1, 2, 3",
        "runs        10 (interleaved, 2 repeats), seed 42",
        "target      redis (driver redis): redis://{{ address('redis') }}:{{ port('redis') }}",
        "            starts redis: redis-server --port {{ port('redis') }}",
        "target      redb (driver redb): in the client",
        "tables      seconds",
        "first runs  target=redis,threads=1#1",
        "            ... and 5 more (--runs lists all)",
    ] {
        assert!(lines.contains(&expected), "no line `{expected}` in\n{text}");
    }
    let set = lines
        .iter()
        .find(|line| line.trim_start().starts_with("set "))
        .expect("a row of `set`");
    for cell in [
        "1, 2, 3",
        "1,000 operations",
        "10s",
        "100 in sequence",
        "1,024 B random",
    ] {
        assert!(set.contains(cell), "no `{cell}` in {set}");
    }
    assert_eq!(plan::describe::run_ids(&made.plan).lines().count(), 10);
}

/// Large, so that it is asked for: `cargo test --release --test plan -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn a_plan_of_100_000_runs_takes_two_seconds() {
    let text = KVS
        .replace(
            "[sweep]\n",
            "[sweep]\nsize = { from = 1, to = 20 }\ntimeout = { from = 1, to = 20 }\na = { from = 1, to = 25 }\n",
        )
        .replace("size = \"1KiB\"", "size = \"{{ size * 100 }}\"")
        .replace("verify = true", "verify = true\ntimeout = \"{{ timeout }}s\"")
        .replace(
            "rows = [\"target\"",
            "rows = [\"size\", \"timeout\", \"a\", \"target\"",
        );
    let started = std::time::Instant::now();
    let made = make_with(&text, &Overrides::default(), &[]).expect("a plan");
    println!(
        "{} runs, {} shapes, {} evaluations: {:?}",
        made.plan.runs.len(),
        made.plan.shapes.len(),
        made.evaluations,
        started.elapsed()
    );
    assert_eq!(made.plan.runs.len(), 100_000);
    assert!(started.elapsed().as_secs_f64() < 4.0);
}
