//! Servers of several instances on real Redis: each with an address, a directory and files of its own; killed, hung,
//! continued and started again by the faults of a phase, or by nobody's plan.

mod connections;
#[path = "../support/guarded.rs"]
mod guarded;
#[path = "../campaign/kit.rs"]
mod kit;
mod redis_cluster;
mod redis_replicas;
#[cfg(feature = "riak")]
mod riak;
#[cfg(feature = "riak")]
#[path = "../support/riak.rs"]
mod riak_stand_in;
#[path = "../support/mod.rs"]
mod support;

use guarded::within;
use kit::{Place, Row};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::time::Duration;
use support::installed;

/// Three instances, each with its own configuration, and all of them as endpoints. `more` goes into the server's table,
/// `runs` before it.
fn three(runs: &str, more: &str, phases: &str) -> String {
    let head = format!("schema = 1\nname = \"three\"\n{runs}\n[vars]\nnodes = 3\n");
    let server = format!(
        r#"
[servers.redis]
instances = "{{{{ nodes }}}}"
command = ["redis-server", "redis.conf"]
{more}
[servers.redis.files]
who = "{{{{ instance }}}} of {{{{ nodes }}}}"
"redis.conf" = """
bind {{{{ address('redis', instance) }}}}
port {{{{ port('redis') }}}}
dir {{{{ dir('redis') }}}}
save ""
appendonly yes
"""
"#
    );
    let endpoints: Vec<String> = (1..=3)
        .map(|i| format!("\"redis://{{{{ address('redis', {i}) }}}}:{{{{ port('redis') }}}}\""))
        .collect();
    let target = format!(
        "[targets.redis]\ndriver = \"redis\"\nconnect_timeout = \"300ms\"\nservers = [\"redis\"]\nendpoints = [{}]\n[workload.keys]\ncount = 100\n\
         [workload.values]\nsize = 100\n",
        endpoints.join(", ")
    );
    [&head, &server, &target, phases].concat()
}

const STEADY: &str = r#"
[[phases]]
name = "steady"
operation = "set"
threads = 3
timeout = "200ms"
"#;

fn steady(duration: &str, faults: &str) -> String {
    format!("{STEADY}duration = \"{duration}\"\nfaults = [{faults}]\n")
}

/// Windows of the measured time, by their second.
fn windows(place: &Place) -> Vec<Row> {
    let rows = place.rows("windows.csv").into_iter();
    rows.filter(|row| row["stage"] == "measured").collect()
}

fn number(row: &Row, column: &str) -> f64 {
    let text = &row[column];
    text.parse()
        .unwrap_or_else(|_| panic!("{column}: `{text}`"))
}

fn unsuccessful(row: &Row) -> f64 {
    number(row, "failed") + number(row, "timed_out")
}

/// The process of an instance: Redis shows its address.
fn process_of(place: &Place, instance: u32) -> i32 {
    let mark = format!("127.0.0.{instance}:");
    let shows = |pid: &i32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&mark)
    };
    let mut found = place.servers().into_iter().filter(shows);
    found.next().expect("the instance runs")
}

#[test]
fn each_instance_has_an_address_a_directory_files_and_samples_of_its_own() {
    if !installed("redis-server") {
        return;
    }
    let phases = r#"
[[phases]]
name = "set"
operation = "set"
threads = 3
operations = 300
[[probes]]
name = "second"
after = "set"
command = ["cat", "{{ dir('redis', 2) }}/who"]
[[probes]]
name = "third"
after = "set"
command = ["cat", "{{ dir('redis', 3) }}/who"]
"#;
    let place = Place::with(&three("", "", phases));
    place.scenario(&[]).expect(0);
    let row = &place.rows("operations.csv")[0];
    let endpoints: Vec<&str> = row["endpoints"].split(' ').collect();
    assert_eq!(endpoints.len(), 3, "{endpoints:?}");
    for (endpoint, address) in endpoints
        .iter()
        .zip(["127.0.0.1", "127.0.0.2", "127.0.0.3"])
    {
        assert!(endpoint.starts_with(&format!("{address}:")), "{endpoint}");
        assert!(endpoint.ends_with("=100"), "{endpoint}");
    }
    let ports: std::collections::BTreeSet<&str> = endpoints
        .iter()
        .filter_map(|endpoint| endpoint.split([':', '=']).nth(1))
        .collect();
    assert_eq!(ports.len(), 1, "the same port on all: {endpoints:?}");
    let probes: Vec<String> = place
        .rows("probes.csv")
        .iter()
        .map(|row| row["value"].clone())
        .collect();
    assert_eq!(probes, ["2 of 3", "3 of 3"]);
    let sampled = place.rows("servers.csv");
    for process in ["redis/1", "redis/2", "redis/3"] {
        let of_it = sampled.iter().filter(|row| row["process"] == process);
        assert!(of_it.count() >= 2, "{process}");
    }
    let mut logs: Vec<String> = std::fs::read_dir(place.out().join("servers"))
        .unwrap()
        .flatten()
        .flat_map(|run| std::fs::read_dir(run.path()).unwrap().flatten())
        .map(|log| log.file_name().to_string_lossy().into_owned())
        .collect();
    logs.sort();
    assert_eq!(logs, ["redis.1.log", "redis.2.log", "redis.3.log"]);
    place.assert_nothing_left();
}

#[test]
fn an_instance_killed_and_started_again_by_faults_is_marked_and_is_no_fault_of_the_run() {
    if !installed("redis-server") {
        return;
    }
    let faults = r#"{ at = "4s", server = "redis", instance = 2, action = "restart" },
        { at = "2s", server = "redis", instance = 2, action = "kill" }"#;
    let place = Place::with(&three("", "", &steady("7s", &faults.replace('\n', " "))));
    place.scenario(&[]).expect(0);
    let windows = windows(&place);
    assert_eq!(windows.len(), 7);
    let marks: Vec<&str> = windows.iter().map(|row| row["faults"].as_str()).collect();
    assert_eq!(marks[2], "kill redis/2");
    assert!(marks[4].starts_with("restart redis/2"), "{marks:?}");
    let all = marks.join("|");
    assert_eq!(all.matches("ready redis/2").count(), 1, "{marks:?}");
    // Before it nothing fails; while it is down its sessions do and the others work; then all work again.
    assert_eq!(unsuccessful(&windows[1]), 0.0);
    for second in [2, 3] {
        assert!(unsuccessful(&windows[second]) > 0.0, "{second}");
        assert!(number(&windows[second], "succeeded") > 0.0, "{second}");
    }
    assert_eq!(unsuccessful(&windows[6]), 0.0);
    let samples = place.rows("servers.csv");
    let at: Vec<f64> = samples
        .iter()
        .filter(|row| row["process"] == "redis/2")
        .map(|row| number(row, "at_seconds"))
        .collect();
    let gap = at.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(
        gap.fold(0.0, f64::max) > 1.5,
        "no sample of what is not there: {at:?}"
    );
    let row = &place.rows("operations.csv")[0];
    assert!(number(row, "reconnections") >= 1.0);
    place.assert_nothing_left();
}

#[test]
fn an_instance_that_hangs_times_out_until_it_continues() {
    if !installed("redis-server") {
        return;
    }
    let faults = r#"{ at = "1s", server = "redis", instance = 3, action = "stop" }, { at = "3s", server = "redis", instance = 3, action = "continue" }"#;
    let place = Place::with(&three("", "", &steady("5s", faults)));
    place.scenario(&[]).expect(0);
    let windows = windows(&place);
    let marks: Vec<&str> = windows.iter().map(|row| row["faults"].as_str()).collect();
    assert_eq!(marks, ["", "stop redis/3", "", "continue redis/3", ""],);
    assert_eq!(unsuccessful(&windows[0]), 0.0);
    // One session waits in turn for an answer and for a connection.
    let stalled = unsuccessful(&windows[2]);
    assert!((1.0..=6.0).contains(&stalled), "{:?}", windows[2]);
    assert!(number(&windows[2], "succeeded") > 0.0);
    assert_eq!(unsuccessful(&windows[4]), 0.0);
    place.assert_nothing_left();
}

#[test]
fn what_faults_left_killed_or_stopped_runs_again_in_the_next_run() {
    if !installed("redis-server") {
        return;
    }
    let faults = r#"{ at = "1s", server = "redis", instance = 1, action = "kill" }, { at = "1s", server = "redis", instance = 2, action = "stop" }"#;
    let place = Place::with(&three(
        "[runs]\nrepeats = 2",
        "restart = \"never\"",
        &steady("2s", faults),
    ));
    place.scenario(&[]).expect(0);
    let rows = windows(&place);
    for run in ["#1", "#2"] {
        let of_run: Vec<&Row> = rows.iter().filter(|row| row["run"] == run).collect();
        assert_eq!(unsuccessful(of_run[0]), 0.0, "{run}");
        assert!(unsuccessful(of_run[1]) > 0.0, "{run}");
    }
    // The third was never touched, so it is the same process.
    let samples = place.rows("servers.csv");
    let cpu = |run: &str, process: &str| {
        let mut of_it = samples.iter().filter(|row| row["run"] == run);
        of_it
            .find(|row| row["process"] == process)
            .map(|row| number(row, "cpu_seconds"))
            .unwrap()
    };
    assert!(cpu("#2", "redis/3") > cpu("#1", "redis/3"));
    place.assert_nothing_left();
}

/// A run that would last ten minutes and one that lasts a moment; the first is given to `what` once it works.
fn disturbed(what: impl Fn(&Place)) -> (Place, String) {
    let long = format!("{STEADY}duration = \"10min\"\nwhen = \"{{{{ n == 1 }}}}\"\n");
    let short = STEADY.replace("steady", "short");
    let phases = format!("{long}{short}operations = 300\n");
    let place = Place::with(&three("[sweep]\nn = [1, 2]", "", &phases));
    let going = place.start(&[]);
    assert!(within(Duration::from_secs(30), || place.servers().len() == 3));
    std::thread::sleep(Duration::from_millis(1_000));
    what(&place);
    going.wait().expect(3);
    let statuses: Vec<_> = place.statuses().into_values().collect();
    assert_eq!(statuses, ["failed", "valid"]);
    place.assert_nothing_left();
    let reason = place.reason();
    (place, reason)
}

#[test]
fn the_death_of_one_instance_that_nobody_planned_is_told_apart_from_that_of_all() {
    if !installed("redis-server") {
        return;
    }
    let (_, reason) = disturbed(|place| {
        kill(Pid::from_raw(process_of(place, 2)), Signal::SIGKILL).unwrap();
    });
    let told = "1 of the 3 instances of redis gone: redis/2 was killed by SIGKILL";
    assert!(reason.contains(told), "{reason}");
    assert!(reason.contains("last lines of its log"), "{reason}");
    let (_, reason) = disturbed(|place| {
        for pid in place.servers() {
            kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
        }
    });
    assert!(
        reason.contains("all 3 instances of redis are gone"),
        "{reason}"
    );
    for instance in 1..=3 {
        let told = format!("redis/{instance} was killed by SIGKILL");
        assert!(reason.contains(&told), "{reason}");
    }
}

#[test]
fn an_instance_that_dies_at_its_start_is_named_and_none_of_the_others_stays() {
    if !installed("redis-server") {
        return;
    }
    let scenario = three("", "ready_timeout = \"20s\"", &steady("2s", "")).replace(
        r#"["redis-server", "redis.conf"]"#,
        r#"["sh", "-c", "test {{ instance }} = 2 && echo no licence >&2 && exit 7; exec redis-server redis.conf"]"#,
    );
    let place = Place::with(&scenario);
    let began = std::time::Instant::now();
    place.scenario(&[]).expect(3);
    assert!(
        began.elapsed() < Duration::from_secs(15),
        "it waits for nobody"
    );
    let reason = place.reason();
    assert!(reason.contains("redis/2 exited with status 7"), "{reason}");
    assert!(reason.contains("no licence"), "{reason}");
    place.assert_nothing_left();
}

#[test]
fn a_restart_that_fails_fails_the_run_with_what_the_instance_said() {
    if !installed("redis-server") {
        return;
    }
    let faults = r#"{ at = "1s", server = "redis", instance = 2, action = "restart" }"#;
    let scenario = three("", "", &steady("10s", faults)).replace(
        r#"["redis-server", "redis.conf"]"#,
        r#"["sh", "-c", "test -e begun && echo once only >&2 && exit 9; touch begun; exec redis-server redis.conf"]"#,
    );
    let place = Place::with(&scenario);
    place.scenario(&[]).expect(3);
    let reason = place.reason();
    assert!(
        reason.contains("1 of the 3 instances of redis gone"),
        "{reason}"
    );
    assert!(reason.contains("redis/2 exited with status 9"), "{reason}");
    assert!(reason.contains("once only"), "{reason}");
    // The phase was ended, and what it did until then stands.
    let elapsed = number(&place.rows("operations.csv")[0], "elapsed_seconds");
    assert!((1.0..8.0).contains(&elapsed), "{elapsed}");
    place.assert_nothing_left();
}

#[test]
fn a_phase_after_all_were_killed_by_faults_fails_and_says_by_what() {
    if !installed("redis-server") {
        return;
    }
    let faults: Vec<String> = (1..=3)
        .map(|i| {
            format!(r#"{{ at = "500ms", server = "redis", instance = {i}, action = "kill" }}"#)
        })
        .collect();
    let after = format!("{}operations = 30\n", STEADY.replace("steady", "after"));
    let phases = [&steady("2s", &faults.join(", ")), after.as_str()].concat();
    let place = Place::with(&three("", "", &phases));
    place.scenario(&[]).expect(3);
    let reason = place.reason();
    assert!(reason.contains("phase `after` could not start"), "{reason}");
    assert!(reason.contains("redis/3 was killed by a fault"), "{reason}");
    // The phase of the faults itself was what it was meant to be.
    let steady = &place.rows("operations.csv")[0];
    assert_eq!(steady["phase"], "steady");
    assert!(number(steady, "succeeded") > 0.0 && number(steady, "failed") > 0.0);
    place.assert_nothing_left();
}

#[test]
fn a_dataset_in_memory_is_loaded_again_after_a_fault_has_ended_a_server_that_held_it() {
    if !installed("redis-server") {
        return;
    }
    let faults = r#"{ at = "500ms", server = "redis", instance = 1, action = "kill" }"#;
    let dataset = r#"
[datasets.keys]
restore = "in_place"
[[datasets.keys.phases]]
name = "load"
operation = "set"
threads = 3
operations = 300
keys = { distribution = "sequential" }
[[phases]]
name = "check"
operation = "get"
operations = 100
verify = true
keys = { distribution = "sequential" }
"#;
    // One endpoint holds all keys, and keeps nothing on disk.
    let scenario = three(
        "[runs]\nrepeats = 2",
        "",
        &[dataset, &steady("1s", faults)].concat(),
    )
    .replace("appendonly yes", "appendonly no")
    .replace(
        "servers = [\"redis\"]",
        "servers = [\"redis\"]\ndataset = \"keys\"",
    );
    let first = scenario.find("\"redis://{{ address('redis', 2)").unwrap();
    let end = first + scenario[first..].find(']').unwrap();
    let scenario = format!("{}{}", &scenario[..first], &scenario[end..]);
    let place = Place::with(&scenario);
    place.scenario(&[]).expect(0);
    let rows = place.rows("operations.csv");
    let checks: Vec<&Row> = rows.iter().filter(|row| row["phase"] == "check").collect();
    assert_eq!(checks.len(), 2);
    for row in checks {
        assert_eq!(
            (row["found"].as_str(), row["failed"].as_str()),
            ("100", "0")
        );
    }
    place.assert_nothing_left();
}
