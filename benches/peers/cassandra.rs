//! The cassandra driver against `latte` (`cargo install latte-cli`), which stands on the same client crate: one connection,
//! fifty requests at a time, the same table of one node on one core.

use super::{CONNECTIONS, Figure, SERVER_CPU, Server, add, both, ours, peer, rounds, row};
use crate::common::{Median, client_on, drive, kvs_phase, open};
use dbbench::driver::spec::Endpoint;
use dbbench::engine::entry::{DriverEntry, OpenDriver};
use serde_json::Value;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Of the phases of `kvs_phase`, and those that latte loads and goes through again and again.
const OUR_KEYS: u64 = 1_000;
const LATTE_KEYS: u64 = 1_000;

/// A node's memory does not hold larger values while it counts them.
const COUNTED: u64 = 2_560;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/servers/cassandra");

/// A node has one core here, and its first look for jars may ask Maven.
const START: Duration = Duration::from_secs(180);

pub fn cassandra() {
    let directory = tempfile::tempdir().expect("a private directory");
    let Some(server) = node(directory.path()) else {
        return println!("cassandra does not start (Java and Maven are needed): skipped");
    };
    let entry = DriverEntry::of::<dbbench::driver::cassandra::Cassandra>();
    let endpoint = format!("cassandra://127.0.0.1:{}/dbbench", server.port);
    let (driver, endpoint) = open(&entry, &endpoint);
    warm(&server, &|phase| {
        drive(&*driver, &endpoint, phase, &client_on(None));
    });
    for (bytes, operations) in [(100, 40_000), (2_560, 30_000), (80_000, 3_000)] {
        for operation in ["set", "get"] {
            let phase = kvs_phase(operation, CONNECTIONS, operations, bytes);
            // Rows written again and again lie in more places: both find theirs written once.
            empty(&*driver, &endpoint);
            let mut fill = kvs_phase("set", CONNECTIONS, OUR_KEYS, bytes);
            fill.groups[0].keys.uses_per_key = 1;
            drive(&*driver, &endpoint, &fill, &client_on(None));
            let latte = Latte::new(directory.path(), server.port, operation, bytes);
            latte.load();
            if bytes <= COUNTED {
                let rows = count(&*driver, &endpoint);
                if rows != OUR_KEYS + LATTE_KEYS {
                    println!("cassandra: {rows} rows: latte did not load its keys");
                }
            }
            let (mut throughput, mut cpu) = (Median::default(), Median::default());
            let (mut busy, mut ratio, mut saved) = Default::default();
            rounds(|first| {
                let ((mine, share), theirs) = both(
                    first,
                    || ours(&*driver, &endpoint, &phase, &server),
                    || latte.run(operations),
                );
                add(&mut throughput, Some(mine.per_second));
                add(&mut cpu, Some(mine.cpu_us));
                add(&mut busy, Some(share));
                add(
                    &mut ratio,
                    theirs.map(|theirs| mine.per_second / theirs.per_second),
                );
                add(&mut saved, theirs.map(|theirs| mine.cpu_us / theirs.cpu_us));
            });
            row(
                "cassandra",
                bytes,
                operation,
                &[
                    ("operations/s", throughput.value()),
                    ("/latte", Median::value(&ratio)),
                    ("client CPU us/operation", cpu.value()),
                    ("/latte", Median::value(&saved)),
                    ("server busy", Median::value(&busy)),
                ],
            );
        }
    }
}

fn empty(driver: &dyn OpenDriver, endpoint: &Endpoint) {
    let mut control = driver.control(endpoint).expect("a control connection");
    control.reset(START).expect("an empty table");
}

/// Gets of rows that are not there would be quick.
fn count(driver: &dyn OpenDriver, endpoint: &Endpoint) -> u64 {
    let mut control = driver.control(endpoint).expect("a control connection");
    let counted = control.statement("SELECT count(*) FROM dbbench.kv", START);
    counted.expect("a count").parse().expect("a number")
}

/// One node on the server's core.
fn node(directory: &Path) -> Option<Server> {
    let app = directory.join("app");
    std::fs::create_dir(&app).ok()?;
    for entry in std::fs::read_dir(FOLDER).ok()?.flatten() {
        std::fs::copy(entry.path(), app.join(entry.file_name())).ok()?;
    }
    let (port, storage) = (free_port()?, free_port()?);
    let child = Command::new("taskset")
        .args(["-c", SERVER_CPU, "sh", "app/node.sh", "1", "1", "127.0.0.1"])
        .args([port.to_string(), storage.to_string()])
        .arg(format!("127.0.0.1:{storage}"))
        .env("HEAP", "1g")
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut server = Server { child, port };
    let began = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if began.elapsed() > START || server.child.try_wait().ok()?.is_some() {
            return None;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    // The port is open a little before the node is ready.
    std::thread::sleep(Duration::from_secs(2));
    Some(server)
}

fn free_port() -> Option<u16> {
    let socket = TcpListener::bind("127.0.0.1:0").ok()?;
    socket.local_addr().ok().map(|address| address.port())
}

/// Java compiles what is used often: without this the first figures are those of its compiler.
fn warm(server: &Server, drive: &dyn Fn(&dbbench::plan::PhasePlan)) {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(60) {
        for operation in ["set", "get"] {
            drive(&kvs_phase(operation, CONNECTIONS, 10_000, 1_000));
        }
    }
    println!("cassandra: warm after {:.0} s of CPU", server.cpu_seconds());
}

/// latte with one workload file.
struct Latte {
    workload: String,
    report: String,
    logs: String,
    address: String,
}

impl Latte {
    fn new(directory: &Path, port: u16, operation: &str, bytes: u64) -> Latte {
        let statement = match operation {
            "set" => "SET, [key, db.data.value]",
            _ => "GET, [key]",
        };
        let text = format!(
            r#"
const SET = "set";
const GET = "get";
pub async fn schema(db) {{}}
pub async fn erase(db) {{}}
pub async fn prepare(db) {{
    db.prepare(SET, "INSERT INTO dbbench.kv (key, value) VALUES (:key, :value)").await?;
    db.prepare(GET, "SELECT value FROM dbbench.kv WHERE key = :key").await?;
    db.load_cycle_count = {LATTE_KEYS};
    db.data.value = latte::text(0, {bytes}).into_bytes();
}}
pub async fn load(db, i) {{
    let key = latte::text(i, 32).into_bytes();
    db.execute_prepared(SET, [key, latte::text(i, {bytes}).into_bytes()]).await?
}}
pub async fn run(db, i) {{
    let key = latte::text(i % {LATTE_KEYS}, 32).into_bytes();
    db.execute_prepared({statement}).await?
}}
"#
        );
        let path = directory.join(format!("{operation}-{bytes}.rn"));
        std::fs::write(&path, text).expect("a workload file");
        Latte {
            workload: path.display().to_string(),
            report: directory.join("report.json").display().to_string(),
            logs: directory.display().to_string(),
            address: format!("127.0.0.1:{port}"),
        }
    }

    fn load(&self) {
        self.call(&["load", &self.workload, &self.address]);
    }

    /// None where it is not installed, or failed.
    fn run(&self, operations: u64) -> Option<Figure> {
        let _ = std::fs::remove_file(&self.report);
        let (operations, concurrency) = (operations.to_string(), CONNECTIONS.to_string());
        let cpu = self.call(&[
            "run",
            "--duration",
            &operations,
            "--warmup",
            "1",
            "--threads",
            "1",
            "--connections",
            "1",
            "--concurrency",
            &concurrency,
            "--consistency",
            "ONE",
            "--output",
            &self.report,
            &self.workload,
            &self.address,
        ])?;
        let report = std::fs::read_to_string(&self.report).ok()?;
        let report: Value = serde_json::from_str(&report).ok()?;
        let count = number(&report, "cycle_count")?;
        Some(Figure {
            per_second: count / number(&report, "elapsed_time_s")?,
            cpu_us: cpu * 1e6 / count,
        })
    }

    /// CPU seconds that it took, on the client's core. Newer versions want to be told which database it is.
    fn call(&self, arguments: &[&str]) -> Option<f64> {
        // It writes a log each time, by itself where it was started.
        let all = ["--log-dir", &self.logs]
            .into_iter()
            .chain(arguments.iter().copied());
        let all: Vec<String> = all.map(str::to_owned).collect();
        let told = [&all[..], &["--db".to_owned(), "scylla".to_owned()]].concat();
        let (_, cpu) = match needs_database() {
            true => peer("latte", &told)?,
            false => peer("latte", &all)?,
        };
        Some(cpu)
    }
}

fn needs_database() -> bool {
    let help = Command::new("latte").args(["run", "--help"]).output();
    help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains("--db "))
}

/// The first number of that name, wherever it stands in the report.
fn number(report: &Value, name: &str) -> Option<f64> {
    match report {
        Value::Object(map) => {
            let here = map.get(name).and_then(Value::as_f64);
            here.or_else(|| map.values().find_map(|value| number(value, name)))
        }
        Value::Array(list) => list.iter().find_map(|value| number(value, name)),
        _ => None,
    }
}
