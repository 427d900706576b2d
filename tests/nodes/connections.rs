//! The client against itself: many connections from one process, within its limits and at their pace.

use crate::kit::{Place, Row};
use crate::number;
use crate::support::installed;
use std::os::unix::process::CommandExt;
use std::time::{Duration, Instant};

/// One run of as many connections, each of which works.
fn scenario(threads: u32, operations: u32, client: &str) -> String {
    format!(
        r#"schema = 1
name = "connections"
[client]
{client}
[servers.redis]
command = ["redis-server", "--port", "{{{{ port('redis') }}}}", "--bind", "127.0.0.1", "--save", "", "--maxclients", "10100"]
[targets.redis]
driver = "redis"
servers = ["redis"]
endpoints = ["redis://127.0.0.1:{{{{ port('redis') }}}}"]
[workload.keys]
count = 1000
[workload.values]
size = 100
[[phases]]
name = "set"
operation = "set"
threads = {threads}
operations = {operations}
timeout = "60s"
"#
    )
}

/// Resident memory of the client at its largest, in bytes.
fn client_memory(place: &Place) -> f64 {
    let samples = place.rows("servers.csv");
    let client = samples.iter().filter(|row| row["process"] == "client");
    client
        .map(|row| number(row, "rss_bytes"))
        .fold(0.0, f64::max)
}

#[test]
fn ten_thousand_connections_need_at_most_20_kb_of_client_memory_each() {
    if !installed("redis-server") {
        return;
    }
    let of = |threads: u32| {
        let place = Place::with(&scenario(threads, 40_000, "workers = 1"));
        place.scenario(&[]).expect(0);
        let row: Row = place.rows("operations.csv").remove(0);
        assert_eq!(row["connections"], threads.to_string());
        assert_eq!(row["succeeded"], "40000");
        client_memory(&place)
    };
    let (few, many) = (of(10), of(10_000));
    let each = (many - few) / 9_990.0;
    println!("{each:.0} bytes per connection ({few:.0} with 10, {many:.0} with 10,000)");
    assert!(each <= 20_000.0, "{each} bytes per connection");
}

#[test]
fn connections_are_opened_at_the_pace_that_is_asked() {
    if !installed("redis-server") {
        return;
    }
    let client = "connect_rate = \"100/s\"\nworkers = 1";
    let place = Place::with(&scenario(300, 300, client));
    let began = Instant::now();
    place.scenario(&[]).expect(0);
    assert!(
        began.elapsed() > Duration::from_millis(2_900),
        "{:?}",
        began.elapsed()
    );
    // Opening them is no part of the phase.
    let row = &place.rows("operations.csv")[0];
    assert!(number(row, "elapsed_seconds") < 2.9, "{row:?}");
}

#[test]
fn more_connections_than_files_may_be_open_are_refused_before_anything_starts() {
    let place = Place::with(&scenario(10_000, 40_000, ""));
    let mut command = place.command(&["scenario", "s.toml", "--out", "out"]);
    // SAFETY: between fork and exec, a system call and nothing else.
    unsafe {
        command.pre_exec(|| {
            use nix::sys::resource::{Resource, setrlimit};
            setrlimit(Resource::RLIMIT_NOFILE, 512, 4_096)?;
            Ok(())
        });
    }
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains(
            "phase `set` opens 10000 connections, and this process may have 4096 files open"
        ),
        "{said}"
    );
    assert!(!place.out().exists());
}
