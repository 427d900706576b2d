//! Redis Cluster against `redis-benchmark --cluster`: three primaries on the server's core, each client on another.

use super::{CONNECTIONS, Figure, Server, add, both, busy_while, ours, peer, rounds, row};
use crate::common::{Median, client_on, drive, kvs_phase};
use dbbench::driver::Target;
use dbbench::driver::redis::Redis;
use dbbench::driver::spec::{Endpoint, Options};
use dbbench::engine::entry::{DriverEntry, OpenDriver};
use serde_json::json;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const PRIMARIES: usize = 3;

/// What a cluster takes at most to be one.
const JOINED: Duration = Duration::from_secs(30);

pub fn rediscluster() {
    let directory = tempfile::tempdir().expect("a directory for the servers");
    let Some(nodes) = cluster(&directory) else {
        return println!("redis-server or redis-cli is not installed: rediscluster skipped");
    };
    let (driver, endpoint) = open(nodes[0].port);
    for (bytes, operations) in [(100, 400_000), (2_560, 200_000), (41_960, 60_000)] {
        for operation in ["set", "get"] {
            let phase = kvs_phase(operation, CONNECTIONS, operations, bytes);
            let fill = kvs_phase("set", CONNECTIONS, operations, bytes);
            drive(&*driver, &endpoint, &fill, &client_on(None));
            let mut throughput = Median::default();
            let (mut ratio, mut cpu, mut busy) = Default::default();
            rounds(|first| {
                let mine = || busy_while(|| ours(&*driver, &endpoint, &phase, &nodes[0]).0);
                let theirs = || redis_benchmark(nodes[0].port, operations, bytes, operation);
                let ((mine, share), theirs) = both(first, mine, theirs);
                add(&mut throughput, Some(mine.per_second));
                add(
                    &mut ratio,
                    theirs.map(|theirs| mine.per_second / theirs.per_second),
                );
                add(&mut cpu, theirs.map(|theirs| mine.cpu_us / theirs.cpu_us));
                add(&mut busy, Some(share));
            });
            row(
                "rediscluster",
                bytes,
                operation,
                &[
                    ("operations/s", throughput.value()),
                    ("/redis-benchmark --cluster", Median::value(&ratio)),
                    ("CPU/redis-benchmark --cluster", Median::value(&cpu)),
                    ("server busy", Median::value(&busy)),
                ],
            );
        }
    }
}

/// Primaries that have joined and serve all slots; None where a program is missing.
fn cluster(directory: &tempfile::TempDir) -> Option<Vec<Server>> {
    let node = |number: usize| {
        let own = directory.path().join(number.to_string());
        std::fs::create_dir(&own).ok()?;
        let bus = TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?;
        let (own, bus) = (own.display().to_string(), bus.port().to_string());
        Server::start("redis-server", |port| {
            let port = port.to_string();
            let arguments = [
                ["--port", &port],
                ["--bind", "127.0.0.1"],
                ["--save", ""],
                ["--appendonly", "no"],
                ["--dir", &own],
                ["--cluster-enabled", "yes"],
                ["--cluster-port", &bus],
            ];
            arguments.concat().into_iter().map(str::to_owned).collect()
        })
    };
    let nodes: Vec<Server> = (0..PRIMARIES).map(node).collect::<Option<_>>()?;
    let addresses = nodes.iter().map(|node| format!("127.0.0.1:{}", node.port));
    let created = Command::new("redis-cli")
        .args(["--cluster", "create"])
        .args(addresses)
        .args(["--cluster-replicas", "0", "--cluster-yes"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .ok()?;
    assert!(created.success(), "redis-cli makes the cluster");
    let began = Instant::now();
    while !nodes.iter().all(|node| serves_all(node.port)) {
        assert!(began.elapsed() < JOINED, "the nodes do not join");
        std::thread::sleep(Duration::from_millis(100));
    }
    Some(nodes)
}

fn serves_all(port: u16) -> bool {
    let told = Command::new("redis-cli")
        .args(["-p", &port.to_string(), "cluster", "info"])
        .output();
    told.is_ok_and(|told| String::from_utf8_lossy(&told.stdout).contains("cluster_state:ok"))
}

/// One node is named; it tells of the others.
fn open(port: u16) -> (Arc<dyn OpenDriver>, Endpoint) {
    let entry = DriverEntry::of::<Redis>();
    let spec = (entry.spec)();
    let text = format!("redis://127.0.0.1:{port}");
    let dbbench::driver::spec::Store::Server { parse, .. } = spec.store else {
        unreachable!("Redis is a server");
    };
    let endpoint = parse(&text).expect("an endpoint");
    let options = json!({ "cluster": true });
    let target = Target {
        name: spec.name.to_owned(),
        endpoints: vec![endpoint.clone()],
        options: Options::new(
            spec.options,
            options.as_object().cloned().unwrap_or_default(),
        ),
        operations: Vec::new(),
        directory: std::env::temp_dir(),
        connect_timeout: Duration::from_secs(5),
    };
    ((entry.open)(target).expect("the driver opens"), endpoint)
}

/// The peer's keys are random within each node's slots, as many as ours.
fn redis_benchmark(port: u16, operations: u64, bytes: u64, operation: &str) -> Option<Figure> {
    let (port, connections) = (port.to_string(), CONNECTIONS.to_string());
    let (count, bytes) = (operations.to_string(), bytes.to_string());
    let arguments = [
        "--cluster",
        "-p",
        &port,
        "-c",
        &connections,
        "-n",
        &count,
        "-d",
        &bytes,
        "-r",
        "1000",
        "-t",
        operation,
        "--csv",
    ];
    let (text, cpu) = peer("redis-benchmark", &arguments.map(str::to_owned))?;
    // Before its table it lists the nodes.
    let own = format!("\"{}\"", operation.to_uppercase());
    let line = text.lines().rfind(|line| line.starts_with(&own))?;
    let per_second: f64 = line.split(',').nth(1)?.trim_matches('"').parse().ok()?;
    Some(Figure {
        per_second,
        cpu_us: cpu * 1e6 / operations as f64,
    })
}
