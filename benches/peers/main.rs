//! dbbench against the tools of the trade, in one run: redis-benchmark, memcaslap, a bare epoll loop, wrk, oha, ab,
//! sysbench, mysqlslap, pgbench, latte.
//!
//! `cargo bench --bench peers` (filters as arguments: `redis`, `memcached`, `mongodb`, `http`, `mysql`, `replay`,
//! `postgres`, `querylog`, `cassandra`, `rediscluster`, `kyototycoon`, `riak`). The server has one core, each client
//! another, the order alternates, medians of the rounds; only ratios mean anything on a shared machine. "server busy" is
//! the share of its core that the server used while dbbench drove it: where it is near 1, the server limits both, and the
//! client's CPU per operation decides.

#[path = "../bare/mod.rs"]
mod bare;
#[cfg(feature = "cassandra")]
mod cassandra;
#[path = "../common/mod.rs"]
#[allow(dead_code, reason = "shared with the engine's bench")]
mod common;
#[cfg(all(feature = "http", feature = "kyototycoon"))]
mod kyototycoon;
#[cfg(all(feature = "http", feature = "kyototycoon"))]
#[path = "../../tests/support/kyototycoon.rs"]
mod kyototycoon_server;
mod logs;
mod rediscluster;
#[cfg(all(feature = "http", feature = "riak"))]
mod riak;
#[cfg(all(feature = "http", feature = "riak"))]
#[path = "../../tests/support/riak.rs"]
mod riak_stand_in;
mod scenario;
mod sql;
#[path = "../../tests/support/mod.rs"]
mod support;
mod web;

use common::{Median, client_on, drive, kvs_phase, open};
use dbbench::engine::entry::{DriverEntry, OpenDriver};
use dbbench::plan::PhasePlan;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const CONNECTIONS: u32 = 50;
const ROUNDS: usize = 5;
const SERVER_CPU: &str = "0";
const CLIENT_CPU: u32 = 1;

/// A figure of one client in one round.
#[derive(Clone, Copy)]
struct Figure {
    per_second: f64,
    cpu_us: f64,
}

struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(program: &str, arguments: impl Fn(u16) -> Vec<String>) -> Option<Server> {
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|socket| socket.local_addr())
            .ok()?
            .port();
        let child = Command::new("taskset")
            .args(["-c", SERVER_CPU, program])
            .args(arguments(port))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let server = Server { child, port };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if began.elapsed() > Duration::from_secs(5) {
                return None;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(server)
    }

    /// CPU seconds it has used.
    fn cpu_seconds(&self) -> f64 {
        let text =
            std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        let fields: Vec<&str> = text
            .rsplit(')')
            .next()
            .unwrap_or("")
            .split_whitespace()
            .collect();
        let ticks = |at: usize| {
            fields
                .get(at)
                .and_then(|field| field.parse::<f64>().ok())
                .unwrap_or(0.0)
        };
        (ticks(11) + ticks(12)) / 100.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The share of the server's core that was in use meanwhile, by whomever.
fn busy_while<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let before = core_ticks();
    let done = work();
    let after = core_ticks();
    (done, (after.0 - before.0) / (after.1 - before.1).max(1.0))
}

/// (busy, all) ticks of the server's core since the start.
fn core_ticks() -> (f64, f64) {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let name = format!("cpu{SERVER_CPU} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&name));
    let fields: Vec<f64> = line
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|field| field.parse().ok())
        .collect();
    let all: f64 = fields.iter().take(8).sum();
    let idle: f64 = fields.iter().skip(3).take(2).sum();
    (all - idle, all)
}

/// Runs a peer on the client's core; its output and the CPU seconds it took.
fn peer(program: &str, arguments: &[String]) -> Option<(String, f64)> {
    let before = children_cpu();
    let output = Command::new("taskset")
        .args(["-c", &CLIENT_CPU.to_string(), program])
        .args(arguments)
        .stderr(Stdio::null())
        .output()
        .ok()?;
    Some((
        String::from_utf8_lossy(&output.stdout).into_owned(),
        children_cpu() - before,
    ))
}

fn children_cpu() -> f64 {
    use nix::sys::resource::{UsageWho, getrusage};
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else {
        return 0.0;
    };
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

fn redis_benchmark(port: u16, operations: u64, bytes: u64, operation: &str) -> Option<Figure> {
    let arguments = [
        "-p",
        &port.to_string(),
        "-c",
        &CONNECTIONS.to_string(),
        "-n",
        &operations.to_string(),
        "-d",
        &bytes.to_string(),
        "-r",
        "1000",
        "-t",
        operation,
        "--csv",
    ]
    .map(str::to_owned);
    let (text, cpu) = peer("redis-benchmark", &arguments)?;
    let line = text.lines().last()?;
    let per_second: f64 = line.split(',').nth(1)?.trim_matches('"').parse().ok()?;
    Some(Figure {
        per_second,
        cpu_us: cpu * 1e6 / operations as f64,
    })
}

fn memcaslap(port: u16, operations: u64, bytes: u64, operation: &str) -> Option<Figure> {
    // It knows only what it wrote itself, so with gets alone every get would miss.
    let (sets, gets) = if operation == "set" {
        ("1.0", "0.0")
    } else {
        ("0.1", "0.9")
    };
    let text = format!(
        "key\n32 32 1\nvalue\n{bytes} {bytes} 1\ncmd\n0 {}\n1 {}\n",
        sets, gets
    );
    let file = tempfile::NamedTempFile::new().ok()?;
    std::fs::write(file.path(), text).ok()?;
    let arguments = [
        "-s",
        &format!("127.0.0.1:{port}"),
        "-T",
        "1",
        "-c",
        &CONNECTIONS.to_string(),
        "-x",
        &operations.to_string(),
        "-w",
        "1k",
        "-F",
        &file.path().display().to_string(),
    ]
    .map(str::to_owned);
    let (text, cpu) = peer("memcaslap", &arguments)?;
    let tps = text.lines().rev().find(|line| line.contains("TPS:"))?;
    let per_second: f64 = tps
        .split("TPS:")
        .nth(1)?
        .split_whitespace()
        .next()?
        .parse()
        .ok()?;
    Some(Figure {
        per_second,
        cpu_us: cpu * 1e6 / operations as f64,
    })
}

/// dbbench's own phase; also the share of its core that the server used.
fn ours(
    driver: &dyn OpenDriver,
    endpoint: &common::Endpoint,
    phase: &PhasePlan,
    server: &Server,
) -> (Figure, f64) {
    let before = server.cpu_seconds();
    let record = drive(driver, endpoint, phase, &client_on(Some(CLIENT_CPU)));
    let group = &record.groups[0];
    let mut counts = dbbench::measure::record::Counts::default();
    group
        .operations
        .iter()
        .for_each(|operation| counts.add(&operation.counts));
    let missing = counts.operations - counts.succeeded + counts.missing;
    assert_eq!(missing, 0, "all is there: {:?}", record.errors);
    let seconds = record.measured_time.as_secs_f64();
    let figure = Figure {
        per_second: counts.operations as f64 / seconds,
        cpu_us: group.client_cpu.as_secs_f64() * 1e6 / counts.operations as f64,
    };
    (figure, (server.cpu_seconds() - before) / seconds)
}

fn bare_loop(port: u16, operations: u64, bytes: u64, set: bool) -> Figure {
    let work = move || {
        use nix::sched::{CpuSet, sched_setaffinity};
        let mut cpus = CpuSet::new();
        cpus.set(CLIENT_CPU as usize)
            .expect("the client's core is there");
        sched_setaffinity(nix::unistd::Pid::from_raw(0), &cpus).expect("the bare loop is pinned");
        let report = bare::bare(port, CONNECTIONS as usize, operations, bytes as usize, set);
        let report = report.expect("the bare loop runs");
        Figure {
            per_second: report.per_second(),
            cpu_us: report.cpu_us(),
        }
    };
    std::thread::spawn(work).join().expect("the bare loop ends")
}

fn row(name: &str, bytes: u64, operation: &str, cells: &[(&str, f64)]) {
    let cells: Vec<String> = cells
        .iter()
        .map(|(what, value)| format!("{what} {value:.2}"))
        .collect();
    println!(
        "{name:<10} {operation:<5} {bytes:>6} B   {}",
        cells.join("   ")
    );
}

fn redis() {
    let directory = tempfile::tempdir().expect("a directory for the server");
    let path = directory.path().display().to_string();
    let arguments = |port: u16| {
        let port = port.to_string();
        [
            "--port",
            &port,
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
            &path,
        ]
        .map(str::to_owned)
        .to_vec()
    };
    let Some(server) = Server::start("redis-server", arguments) else {
        return println!("redis-server is not installed: skipped");
    };
    let (driver, endpoint) = open(
        &DriverEntry::of::<dbbench::driver::redis::Redis>(),
        &format!("redis://127.0.0.1:{}", server.port),
    );
    for (bytes, operations) in [(2_560, 200_000), (41_960, 60_000)] {
        for operation in ["set", "get"] {
            let phase = kvs_phase(operation, CONNECTIONS, operations, bytes);
            drive(
                &*driver,
                &endpoint,
                &kvs_phase("set", CONNECTIONS, operations, bytes),
                &client_on(None),
            );
            let (mut throughput, mut cpu, mut bare_cpu, mut busy) = Default::default();
            rounds(|first| {
                let mine = || ours(&*driver, &endpoint, &phase, &server);
                let theirs = || redis_benchmark(server.port, operations, bytes, operation);
                let ((mine, share), theirs) = both(first, mine, theirs);
                let bare = bare_loop(server.port, operations, bytes, operation == "set");
                add(
                    &mut throughput,
                    theirs.map(|theirs| mine.per_second / theirs.per_second),
                );
                add(&mut cpu, theirs.map(|theirs| mine.cpu_us / theirs.cpu_us));
                add(&mut bare_cpu, Some(mine.cpu_us / bare.cpu_us));
                add(&mut busy, Some(share));
            });
            row(
                "redis",
                bytes,
                operation,
                &[
                    ("throughput/redis-benchmark", throughput.value()),
                    ("CPU/redis-benchmark", cpu.value()),
                    ("CPU/bare loop", bare_cpu.value()),
                    ("server busy", busy.value()),
                ],
            );
        }
    }
}

fn memcached() {
    let arguments = |port: u16| {
        let port = port.to_string();
        [
            "-t",
            "1",
            "-m",
            "4096",
            "-I",
            "2m",
            "-c",
            "1024",
            "-U",
            "0",
            "-u",
            "nobody",
            "-l",
            "127.0.0.1",
            "-p",
            &port,
        ]
        .map(str::to_owned)
        .to_vec()
    };
    let Some(server) = Server::start("memcached", arguments) else {
        return println!("memcached is not installed: skipped");
    };
    let (driver, endpoint) = open(
        &DriverEntry::of::<dbbench::driver::memcached::Memcached>(),
        &format!("memcached://127.0.0.1:{}", server.port),
    );
    for (bytes, operations) in [(2_560, 200_000), (41_960, 60_000)] {
        for operation in ["set", "mixed"] {
            let phase = kvs_phase(operation, CONNECTIONS, operations, bytes);
            let (mut throughput, mut cpu, mut busy) = Default::default();
            rounds(|first| {
                // The peer's own sets may push dbbench's values out.
                drive(
                    &*driver,
                    &endpoint,
                    &kvs_phase("set", CONNECTIONS, operations, bytes),
                    &client_on(None),
                );
                let mine = || ours(&*driver, &endpoint, &phase, &server);
                let theirs = || memcaslap(server.port, operations, bytes, operation);
                let ((mine, share), theirs) = both(first, mine, theirs);
                add(
                    &mut throughput,
                    theirs.map(|theirs| mine.per_second / theirs.per_second),
                );
                add(&mut cpu, theirs.map(|theirs| mine.cpu_us / theirs.cpu_us));
                add(&mut busy, Some(share));
            });
            row(
                "memcached",
                bytes,
                operation,
                &[
                    ("throughput/memcaslap", throughput.value()),
                    ("CPU/memcaslap", cpu.value()),
                    ("server busy", busy.value()),
                ],
            );
        }
    }
}

/// The jars as the fragment's own script keeps them; None where there is neither Java nor Maven.
fn mongo_java_jars() -> Option<String> {
    let directory = tempfile::tempdir().ok()?;
    let from = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/servers/mongo-java");
    for name in ["build.sh", "pom.xml", "Srv.java"] {
        std::fs::copy(format!("{from}/{name}"), directory.path().join(name)).ok()?;
    }
    let script = directory.path().join("build.sh");
    let built = Command::new("sh").arg(script).status().ok()?;
    let lib = directory.path().join("lib").canonicalize().ok()?;
    built.success().then(|| format!("{0}/*:{0}", lib.display()))
}

/// What the mongodb crate's client costs: there is no peer that is one process and speaks this protocol.
fn mongodb() {
    let Some(jars) = mongo_java_jars() else {
        return println!("mongo-java-server cannot be built: skipped");
    };
    let arguments = |port: u16| {
        let port = port.to_string();
        [
            "-Xmx512m",
            "-XX:+UseSerialGC",
            "-cp",
            &jars,
            "Srv",
            "127.0.0.1",
            &port,
        ]
        .map(str::to_owned)
        .to_vec()
    };
    let Some(server) = Server::start("java", arguments) else {
        return println!("java is not installed: skipped");
    };
    let (driver, endpoint) = open(
        &DriverEntry::of::<dbbench::driver::mongodb::MongoDb>(),
        &format!("mongodb://127.0.0.1:{}/dbbench", server.port),
    );
    for (bytes, operations) in [(100, 20_000), (2_560, 20_000)] {
        for operation in ["set", "get"] {
            let phase = kvs_phase(operation, CONNECTIONS, operations, bytes);
            let fill = kvs_phase("set", CONNECTIONS, operations, bytes);
            drive(&*driver, &endpoint, &fill, &client_on(None));
            let (mut throughput, mut cpu, mut busy) = Default::default();
            rounds(|_| {
                let (mine, share) = ours(&*driver, &endpoint, &phase, &server);
                add(&mut throughput, Some(mine.per_second));
                add(&mut cpu, Some(mine.cpu_us));
                add(&mut busy, Some(share));
            });
            row(
                "mongodb",
                bytes,
                operation,
                &[
                    ("operations/s", throughput.value()),
                    ("client CPU us/operation", cpu.value()),
                    ("server busy", busy.value()),
                ],
            );
        }
    }
}

/// Calls `round` with whether dbbench goes first, in turn.
fn rounds(mut round: impl FnMut(bool)) {
    for number in 0..ROUNDS {
        round(number % 2 == 0);
    }
}

fn both<A, B>(first: bool, mine: impl FnOnce() -> A, theirs: impl FnOnce() -> B) -> (A, B) {
    if first {
        let mine = mine();
        (mine, theirs())
    } else {
        let theirs = theirs();
        (mine(), theirs)
    }
}

fn add(median: &mut Median, value: Option<f64>) {
    median.add(value.unwrap_or(f64::NAN));
}

fn main() {
    let filter = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    let wanted = |name: &str| filter.as_deref().is_none_or(|filter| name.contains(filter));
    if wanted("redis") {
        redis();
    }
    if wanted("rediscluster") {
        rediscluster::rediscluster();
    }
    if wanted("memcached") {
        memcached();
    }
    if wanted("mongodb") {
        mongodb();
    }
    if wanted("http") {
        web::http();
    }
    if wanted("mysql") {
        sql::mysql();
    }
    if wanted("replay") {
        sql::replay();
    }
    if wanted("postgres") {
        sql::postgres();
    }
    if wanted("querylog") {
        logs::querylog();
    }
    #[cfg(feature = "cassandra")]
    if wanted("cassandra") {
        cassandra::cassandra();
    }
    #[cfg(all(feature = "http", feature = "kyototycoon"))]
    if wanted("kyototycoon") {
        kyototycoon::kyototycoon();
    }
    #[cfg(all(feature = "http", feature = "riak"))]
    if wanted("riak") {
        riak::riak();
    }
}
