//! Managed servers that fail in every way that servers fail, and those that live over many runs.

use crate::guarded::within;
use crate::kit::{Ended, Place};
use crate::support::{free_port, installed};
use crate::texts;
use dbbench::driver::scripted::{Framing, ScriptedServer, Step};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

/// A scenario of two runs, whose server is a shell script, and only where `n` is 1.
fn with_script(script: &str, more: &str) -> String {
    let server = format!(
        "[servers.odd]\ncommand = ['sh', '-c', '''\nif test {{{{ n }}}} = 1\nthen\n{script}\nfi\nexec redis-server \
         --port {{{{ port('odd') }}}} --bind 127.0.0.1 --save ''\n''']\nready = {{ driver = true }}\n{more}\n\
         [targets.odd]\ndriver = \"redis\"\nservers = [\"odd\"]\nendpoints = [\"redis://127.0.0.1:{{{{ port('odd') }}}}\"]\n"
    );
    let head = "schema = 1\nname = \"odd\"\n[sweep]\nn = [1, 2]\n";
    [head, &server, texts::DATA, texts::SET].concat()
}

#[track_caller]
fn first_fails_second_runs(place: &Place, ended: Ended) -> String {
    ended.expect(3);
    let statuses: Vec<_> = place.statuses().into_values().collect();
    assert_eq!(statuses, ["failed", "valid"]);
    place.assert_nothing_left();
    place.reason()
}

#[test]
fn a_server_that_dies_at_start_fails_its_run_with_the_end_of_its_log() {
    if !installed("redis-server") {
        return;
    }
    let place = Place::with(&with_script("echo no licence found >&2; exit 7", ""));
    let ended = place.scenario(&[]);
    let reason = first_fails_second_runs(&place, ended);
    assert!(reason.contains("odd exited with status 7"), "{reason}");
    assert!(reason.contains("no licence found"), "{reason}");
}

#[test]
fn a_server_that_never_gets_ready_fails_its_run_after_its_ready_timeout() {
    if !installed("redis-server") {
        return;
    }
    let place = Place::with(&with_script("exec sleep 600", "ready_timeout = \"500ms\""));
    let began = Instant::now();
    let ended = place.scenario(&[]);
    assert!(began.elapsed() < Duration::from_secs(20));
    let reason = first_fails_second_runs(&place, ended);
    assert!(
        reason.contains("odd was not ready within 500ms"),
        "{reason}"
    );
}

/// One run in a long phase, the other in a short one; the server of the first is given to `what` when it works.
fn while_it_works(second: &str, restart: &str, what: impl Fn(&Place, i32)) -> (Place, Ended) {
    let long = texts::LONG
        .replace("name = \"set\"", "name = \"long\"\nwhen = \"{{ n == 1 }}\"")
        .replace("threads = 2", "threads = 2\ntimeout = \"100ms\"");
    let server = format!("[servers.redis]\nrestart = \"{restart}\"");
    let scenario = texts::swept("[1, 2]", "", &[&long, second].concat());
    let place = Place::with(&scenario.replace("[servers.redis]", &server));
    let going = place.start(&[]);
    assert!(within(Duration::from_secs(20), || !place
        .servers()
        .is_empty()));
    // The phase has begun when samples of it are there; the client's are written now and then.
    std::thread::sleep(Duration::from_millis(700));
    let pid = place.servers()[0];
    what(&place, pid);
    let ended = going.wait();
    (place, ended)
}

#[test]
fn a_server_killed_in_a_phase_fails_its_run_and_the_next_has_a_new_one() {
    if !installed("redis-server") {
        return;
    }
    for restart in ["run", "never"] {
        let (place, ended) = while_it_works(texts::SET, restart, |_, pid| {
            kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
        });
        let reason = first_fails_second_runs(&place, ended);
        assert!(reason.contains("redis was killed by SIGKILL"), "{reason}");
        // What the phase did before stands there, over the time that it really took.
        let rows = place.rows("operations.csv");
        let long = rows.iter().find(|row| row["phase"] == "long").unwrap();
        let elapsed: f64 = long["elapsed_seconds"].parse().unwrap();
        assert!(elapsed < 30.0, "{elapsed}");
        assert_ne!(long["succeeded"], "0");
    }
}

#[test]
fn a_server_that_hangs_times_operations_out_and_the_run_ends_by_its_own_duration() {
    if !installed("redis-server") {
        return;
    }
    let scenario = texts::on_redis(&texts::LONG.replace(
        "duration = \"10min\"",
        "duration = \"3s\"\ntimeout = \"100ms\"",
    ));
    let place = Place::with(&scenario);
    let going = place.start(&[]);
    assert!(within(Duration::from_secs(20), || !place
        .servers()
        .is_empty()));
    std::thread::sleep(Duration::from_millis(1_000));
    kill(Pid::from_raw(place.servers()[0]), Signal::SIGSTOP).unwrap();
    let began = Instant::now();
    going.wait().expect(0);
    // Three seconds, then ten at most until the stopped server is killed.
    assert!(
        began.elapsed() < Duration::from_secs(16),
        "{:?}",
        began.elapsed()
    );
    let row = &place.rows("operations.csv")[0];
    let count = |name: &str| row[name].parse::<u64>().unwrap();
    assert!(count("timed_out") >= 2, "{row:?}");
    assert!(count("succeeded") > 0, "{row:?}");
    let parts = count("succeeded") + count("failed") + count("timed_out") + count("wrong_value");
    assert_eq!(count("operations"), parts);
    let elapsed: f64 = row["elapsed_seconds"].parse().unwrap();
    assert!((2.99..3.01).contains(&elapsed), "{elapsed}");
    place.assert_nothing_left();
}

#[test]
fn a_server_that_answers_garbage_fails_the_run_with_a_sentence() {
    let server = ScriptedServer::start(Framing::Resp, |_, _| {
        vec![Step::send("HTTP/1.1 400 Bad Request\r\n\r\n")]
    })
    .unwrap();
    let scenario = format!(
        "schema = 1\nname = \"odd\"\n[targets.odd]\ndriver = \"redis\"\nendpoints = [\"redis://127.0.0.1:{}\"]\n{}{}",
        server.port(),
        texts::DATA,
        texts::SET
    );
    let place = Place::with(&scenario);
    place.scenario(&[]).expect(3);
    let reason = place.reason();
    assert!(
        reason.contains(&format!("127.0.0.1:{}", server.port())),
        "{reason}"
    );
    // A closed port is a sentence, too.
    drop(server);
    let place = Place::with(&scenario);
    place.scenario(&[]).expect(3);
    let reason = place.reason();
    assert!(reason.to_lowercase().contains("refused"), "{reason}");
}

#[test]
fn a_fixed_port_that_is_taken_is_refused_with_the_name_of_its_holder() {
    if !installed("redis-server") {
        return;
    }
    let port = free_port();
    let _holder = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    let fixed = format!("[servers.redis]\nports = {{ main = {port} }}");
    let place = Place::with(&texts::on_redis(texts::SET).replace("[servers.redis]", &fixed));
    place.scenario(&[]).expect(3);
    let expected = format!(
        "server `redis`: port {port} is taken by pid {} (",
        std::process::id()
    );
    let reason = place.reason();
    assert!(reason.starts_with(&expected), "{reason}");
}

#[test]
fn a_server_lives_as_long_as_its_restart_policy_says() {
    if !installed("redis-server") {
        return;
    }
    let head = |restart: &str| {
        format!(
            "schema = 1\nname = \"lives\"\n[sweep]\ntarget = [\"redis\", \"other\"]\nn = [1, 2]\n\
             [targets.other]\ndriver = \"redis\"\nservers = [\"redis\"]\n\
             endpoints = [\"redis://127.0.0.1:{{{{ port('redis') }}}}\"]\n{}",
            texts::REDIS.replace(
                "[servers.redis]",
                &format!("[servers.redis]\nrestart = \"{restart}\"")
            )
        )
    };
    // A fresh process has a data set of its own: what an earlier run has set is there only where it lives on.
    let phases = r#"
[[phases]]
name = "look"
operation = "get"
operations = 100
"#;
    for (restart, found) in [
        ("run", ["0", "0", "0", "0"]),
        ("target", ["0", "100", "0", "100"]),
        ("never", ["0", "100", "100", "100"]),
    ] {
        let place = Place::with(&[&head(restart), texts::DATA, phases, texts::SET].concat());
        place.scenario(&[]).expect(0);
        let rows = place.rows("operations.csv");
        let looks: Vec<_> = rows
            .iter()
            .filter(|row| row["phase"] == "look")
            .map(|row| row["found"].clone())
            .collect();
        assert_eq!(looks, found, "{restart}");
        place.assert_nothing_left();
    }
}

#[test]
fn kept_data_outlives_its_server() {
    if !installed("redis-server") {
        return;
    }
    let server =
        "[servers.redis]\nkeep_data = true\nstop = { signal = \"TERM\", timeout = \"10s\" }";
    let scenario = texts::swept(
        "[1, 2]",
        "",
        "[[phases]]\nname = \"look\"\noperation = \"get\"\noperations = 100\n[[phases]]\nname = \"set\"\noperation = \"set\"\noperations = 100\n",
    );
    // Saves at every end.
    let scenario = scenario
        .replace("[servers.redis]", server)
        .replace("\"--save\", \"\"", "\"--save\", \"3600 1\"");
    let place = Place::with(&scenario);
    place.scenario(&[]).expect(0);
    let rows = place.rows("operations.csv");
    let looks: Vec<_> = rows
        .iter()
        .filter(|row| row["phase"] == "look")
        .map(|row| row["found"].as_str())
        .collect();
    assert_eq!(looks, ["0", "100"]);
    place.assert_nothing_left();
}

#[test]
fn what_stands_under_after_ready_is_done_before_the_first_phase() {
    if !installed("redis-server") {
        return;
    }
    let command = "after_ready = { command = [\"redis-cli\", \"-p\", \"{{ port('redis') }}\", \"set\", \"mark\", \"1\"] }";
    let statements = "after_ready = { driver = \"redis\", endpoint = \"redis://127.0.0.1:{{ port('redis') }}\", statements = [\"SET mark 1\", \"INCR mark\"] }";
    for (after_ready, expected) in [(command, "^1$"), (statements, "^2$")] {
        let phases = format!(
            "[operations.mark]\nredis = {{ command = [\"GET\", \"mark\"], expect = \"{expected}\" }}\n\
             [[phases]]\nname = \"read\"\noperation = \"mark\"\noperations = 3\n"
        );
        let server = format!("[servers.redis]\nsetup = [[\"true\"]]\n{after_ready}");
        let place = Place::with(&texts::on_redis(&phases).replace("[servers.redis]", &server));
        place.scenario(&[]).expect(0);
        assert_eq!(
            place.rows("operations.csv")[0]["succeeded"],
            "3",
            "{after_ready}"
        );
    }
    let server =
        "[servers.redis]\nafter_ready = { command = [\"sh\", \"-c\", \"echo will not; exit 3\"] }";
    let place = Place::with(&texts::on_redis(texts::SET).replace("[servers.redis]", server));
    place.scenario(&[]).expect(3);
    let reason = place.reason();
    assert!(
        reason.contains("after_ready") && reason.contains("will not"),
        "{reason}"
    );
    place.assert_nothing_left();
}

#[test]
fn on_failure_stop_leaves_the_rest_for_later() {
    if !installed("redis-server") {
        return;
    }
    let scenario =
        with_script("exit 1", "").replace("[sweep]", "[runs]\non_failure = \"stop\"\n[sweep]");
    let place = Place::with(&scenario);
    place.scenario(&[]).expect(3);
    assert_eq!(place.statuses().len(), 1);
    // The failure of the first part is not forgotten when the rest is done.
    place
        .run(&["scenario", "s.toml", "--resume", "out"])
        .expect(3);
    assert_eq!(place.statuses().len(), 2);
    place.assert_nothing_left();
}

#[test]
fn a_run_that_is_longer_than_its_timeout_fails() {
    let place = Place::with(&texts::on_redb(texts::LONG).replace(
        "[targets.redb]",
        "[runs]\ntimeout = \"700ms\"\n[targets.redb]",
    ));
    let began = Instant::now();
    place.scenario(&[]).expect(3);
    assert!(began.elapsed() < Duration::from_secs(10));
    let reason = place.reason();
    assert!(reason.contains("timeout"), "{reason}");
    place.assert_nothing_left();
}

/// The real program is nowhere, so its stand-in runs, under the same name and marked; where both are nowhere the run is
/// skipped for want of the real one.
#[test]
fn a_stand_in_takes_the_place_of_a_program_that_is_missing() {
    let scenario = |stand_in: &str| {
        format!(
            "schema = 1\nname = \"stand-in\"\n[sweep]\ntarget = [\"real\", \"plain\"]\n{}
[servers.nowhere]
command = [\"no-such-program\"]
install = \"buy it\"
[servers.nowhere_either]
command = [\"no-such-stand-in\"]
[targets.real]
driver = \"sqlite\"
servers = [\"nowhere\"]
stand_in = \"{stand_in}\"
[targets.lacking]
driver = \"redb\"
servers = [\"nowhere_either\"]
[targets.embedded]
driver = \"redb\"
[targets.plain]
driver = \"redb\"
[[tables]]
name = \"sets\"
rows = [\"target\"]
values = {{ succeeded = \"{{{{ set.succeeded }}}}\" }}
{}",
            texts::DATA,
            texts::SET
        )
    };
    let place = Place::with(&scenario("embedded"));
    place.run(&["plan", "s.toml"]).expect(0);
    place
        .scenario(&[])
        .expect(0)
        .says("target `real` is a stand-in");
    let facts: Vec<_> = place
        .rows("operations.csv")
        .iter()
        .map(|row| [&row["target"], &row["driver"], &row["stand_in_for"]].map(String::clone))
        .collect();
    assert_eq!(facts, [["real", "redb", "real"], ["plain", "redb", ""]]);
    let table = place.text("tables/sets.csv");
    assert!(table.contains("real,200,real"), "{table}");
    assert!(
        place
            .text("manifest.json")
            .contains("`no-such-program` is not installed")
    );
    // Resumed it is the same plan.
    place
        .run(&["scenario", "s.toml", "--resume", "out"])
        .expect(0)
        .says("are done already");
    let place = Place::with(&scenario("lacking"));
    place.scenario(&[]).expect(0);
    assert!(
        place
            .reason()
            .contains("`no-such-program` is not installed")
    );
}
