//! Point selects and replayed logs: MariaDB against sysbench and mysqlslap, PostgreSQL against pgbench.

use super::support::{Ready, TestServer};
use super::{Figure, SERVER_CPU, add, both, busy_while, peer, rounds, row, scenario};
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const THREADS: u32 = 16;
const ROWS: u64 = 10_000;
const SELECTS: u64 = 100_000;
const LOGGED: u64 = 20_000;
const POSTGRES: &str = "/usr/lib/postgresql/15/bin";

fn quietly(program: &str, arguments: &[&str]) -> bool {
    let status = Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

fn is_root() -> bool {
    nix::unistd::Uid::effective().is_root()
}

fn mariadb() -> Option<TestServer> {
    let server = TestServer::start("taskset", Ready::Both, |port, directory| {
        let place = directory.display().to_string();
        let data = format!("--datadir={place}/data");
        let install = [
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            &data,
        ];
        let user: &[&str] = if is_root() { &["--user=root"] } else { &[] };
        assert!(
            quietly("mariadb-install-db", &[&install, user].concat()),
            "a data directory"
        );
        let fixed = [
            "-c",
            SERVER_CPU,
            "mariadbd",
            "--no-defaults",
            &data,
            &format!("--tmpdir={place}"),
            &format!("--socket={place}/server.sock"),
            &format!("--port={port}"),
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            "--max-connections=300",
            "--innodb-flush-log-at-trx-commit=0",
        ];
        fixed
            .iter()
            .chain(user)
            .map(|word| (*word).to_owned())
            .collect()
    })?;
    let socket = server.socket().display().to_string();
    let made = quietly(
        "mariadb",
        &[
            "--no-defaults",
            "-S",
            &socket,
            "-u",
            "root",
            "-e",
            "CREATE DATABASE d",
        ],
    );
    made.then_some(server)
}

fn endpoint(server: &TestServer) -> String {
    format!(
        "mysql://root@localhost/d?socket={}",
        server.socket().display()
    )
}

fn sysbench(server: &TestServer, command: &str) -> Option<Figure> {
    let arguments = [
        "oltp_point_select".to_owned(),
        "--db-driver=mysql".to_owned(),
        format!("--mysql-socket={}", server.socket().display()),
        "--mysql-user=root".to_owned(),
        "--mysql-db=d".to_owned(),
        "--tables=1".to_owned(),
        format!("--table-size={ROWS}"),
        format!("--threads={THREADS}"),
        "--time=4".to_owned(),
        "--rand-type=uniform".to_owned(),
        command.to_owned(),
    ];
    let (text, cpu) = peer("sysbench", &arguments)?;
    if command == "prepare" {
        return None;
    }
    let line = text.lines().find(|line| line.contains("transactions:"))?;
    let mut words = line.split_whitespace().skip(1);
    let all: f64 = words.next()?.parse().ok()?;
    let per_second = words.next()?.trim_start_matches('(').parse().ok()?;
    Some(Figure {
        per_second,
        cpu_us: cpu * 1e6 / all,
    })
}

pub fn mysql() {
    let Some(server) = mariadb() else {
        return println!("mysql: mariadbd is not installed: skipped");
    };
    sysbench(&server, "prepare");
    let (mut throughput, mut cpu, mut busy) = Default::default();
    let text = format!(
        "[targets.mariadb]\ndriver = \"mysql\"\nendpoints = [\"{}\"]\n\
         [operations.point_select]\nmysql = {{ statements = [\"SELECT c FROM sbtest1 WHERE id = $random(1, {ROWS})\"] }}\n\
         [[phases]]\nname = \"select\"\noperation = \"point_select\"\nthreads = {THREADS}\noperations = {SELECTS}\n",
        endpoint(&server)
    );
    rounds(|first| {
        let mine = || busy_while(|| scenario::run(&text));
        let ((mine, share), theirs) = both(first, mine, || sysbench(&server, "run"));
        add(
            &mut throughput,
            theirs.map(|theirs| mine.per_second / theirs.per_second),
        );
        add(&mut cpu, theirs.map(|theirs| mine.cpu_us / theirs.cpu_us));
        add(&mut busy, Some(share));
    });
    let cells = [
        ("throughput/sysbench", throughput.value()),
        ("CPU/sysbench", cpu.value()),
        ("server's core busy", busy.value()),
    ];
    row("mysql", 120, "select", &cells);
}

/// Every client runs the whole file, in both.
pub fn replay() {
    let Some(server) = mariadb() else {
        return println!("replay: mariadbd is not installed: skipped");
    };
    sysbench(&server, "prepare");
    let place = tempfile::tempdir().expect("a directory for the log");
    let file = place.path().join("selects.sql");
    let mut text = String::new();
    for number in 0..LOGGED {
        let id = number * 7919 % ROWS + 1;
        writeln!(text, "SELECT c FROM sbtest1 WHERE id = {id};").expect("a string grows");
    }
    std::fs::write(&file, text).expect("the log is written");
    for threads in [4, 16] {
        replayed(&server, &file, threads);
    }
}

fn replayed(server: &TestServer, file: &Path, threads: u64) {
    let text = format!(
        "[targets.mariadb]\ndriver = \"mysql\"\nendpoints = [\"{}\"]\n[[phases]]\nname = \"queries\"\n\
         replay = {{ file = \"{}\", format = \"sql\", per_thread = \"whole\" }}\nthreads = {threads}\n",
        endpoint(server),
        file.display()
    );
    let (mut throughput, mut cpu, mut busy) = Default::default();
    rounds(|first| {
        let mine = || busy_while(|| scenario::run(&text));
        let ((mine, share), theirs) = both(first, mine, || mysqlslap(server, file, threads));
        add(
            &mut throughput,
            theirs.map(|theirs| mine.per_second / theirs.per_second),
        );
        add(&mut cpu, theirs.map(|theirs| mine.cpu_us / theirs.cpu_us));
        add(&mut busy, Some(share));
    });
    let cells = [
        ("throughput/mysqlslap", throughput.value()),
        ("CPU/mysqlslap", cpu.value()),
        ("server's core busy", busy.value()),
    ];
    row("replay", 120, &format!("x{threads}"), &cells);
}

fn mysqlslap(server: &TestServer, file: &Path, threads: u64) -> Option<Figure> {
    let arguments = [
        "--no-defaults".to_owned(),
        format!("--socket={}", server.socket().display()),
        "--user=root".to_owned(),
        "--create-schema=d".to_owned(),
        "--no-drop".to_owned(),
        format!("--query={}", file.display()),
        "--delimiter=;".to_owned(),
        format!("--concurrency={threads}"),
        "--iterations=1".to_owned(),
    ];
    let (text, cpu) = peer("mysqlslap", &arguments)?;
    let line = text
        .lines()
        .find(|line| line.contains("Average number of seconds"))?;
    let seconds: f64 = line
        .split(':')
        .nth(1)?
        .split_whitespace()
        .next()?
        .parse()
        .ok()?;
    let all = (LOGGED * threads) as f64;
    Some(Figure {
        per_second: all / seconds,
        cpu_us: cpu * 1e6 / all,
    })
}

/// PostgreSQL refuses root, so there it runs as nobody.
fn as_nobody() -> Vec<String> {
    let words = [
        "setpriv",
        "--reuid=nobody",
        "--regid=nogroup",
        "--clear-groups",
    ];
    match is_root() {
        true => words.map(str::to_owned).to_vec(),
        false => vec!["env".to_owned()],
    }
}

fn postgresql() -> Option<TestServer> {
    if !Path::new(POSTGRES).exists() {
        return None;
    }
    let user = as_nobody();
    TestServer::start("taskset", Ready::Port, |port, directory| {
        let place = directory.display().to_string();
        if is_root() {
            assert!(
                quietly("chown", &["nobody", &place]),
                "the directory is nobody's"
            );
        }
        let (initdb, data) = (format!("{POSTGRES}/initdb"), format!("{place}/data"));
        let made = [
            "-A",
            "trust",
            "-U",
            "u",
            "--no-sync",
            "-E",
            "UTF8",
            "--locale=C",
            "-D",
            &data,
        ];
        let words: Vec<&str> = user[1..]
            .iter()
            .map(String::as_str)
            .chain([&*initdb])
            .chain(made)
            .collect();
        assert!(quietly(&user[0], &words), "a data directory");
        let pinned = ["-c", SERVER_CPU].map(str::to_owned).into_iter();
        let server = [
            &format!("{POSTGRES}/postgres"),
            "-D",
            &data,
            "-p",
            &port.to_string(),
            "-k",
            &place,
            "-c",
            "listen_addresses=127.0.0.1",
            "-c",
            "fsync=off",
        ];
        pinned
            .chain(user.clone())
            .chain(server.map(str::to_owned))
            .collect()
    })
}

fn pgbench(server: &TestServer, more: &[&str]) -> Option<(String, f64)> {
    let port = server.port.to_string();
    let fixed = ["-h", "127.0.0.1", "-p", &port, "-U", "u"];
    let words: Vec<String> = fixed
        .iter()
        .chain(more)
        .chain(&["postgres"])
        .map(|word| (*word).to_owned())
        .collect();
    peer("pgbench", &words)
}

pub fn postgres() {
    let Some(server) = postgresql() else {
        return println!("postgres: PostgreSQL 15 is not installed: skipped");
    };
    // It accepts connections before it is up.
    let began = Instant::now();
    while !pgbench(&server, &["-i", "-q", "-s", "1"]).is_some_and(|_| true)
        || !has_accounts(&server)
    {
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "pgbench makes its tables"
        );
    }
    let text = format!(
        "[targets.postgresql]\ndriver = \"postgres\"\nendpoints = [\"postgres://u@127.0.0.1:{}/postgres\"]\n\
         [operations.point_select]\npostgres = {{ statements = [\"SELECT abalance FROM pgbench_accounts WHERE aid = $random(1, 100000)\"] }}\n\
         [[phases]]\nname = \"select\"\noperation = \"point_select\"\nthreads = {THREADS}\noperations = {SELECTS}\n",
        server.port
    );
    let (mut throughput, mut cpu, mut busy) = Default::default();
    rounds(|first| {
        let mine = || busy_while(|| scenario::run(&text));
        let theirs = || {
            let (text, cpu) = pgbench(
                &server,
                &[
                    "-S",
                    "-M",
                    "prepared",
                    "-c",
                    &THREADS.to_string(),
                    "-j",
                    "1",
                    "-T",
                    "4",
                    "-n",
                ],
            )?;
            let number = |start: &str| {
                let line = text.lines().find_map(|line| line.strip_prefix(start))?;
                line.split_whitespace().next()?.parse::<f64>().ok()
            };
            Some(Figure {
                per_second: number("tps = ")?,
                cpu_us: cpu * 1e6 / number("number of transactions actually processed: ")?,
            })
        };
        let ((mine, share), theirs) = both(first, mine, theirs);
        add(
            &mut throughput,
            theirs.map(|theirs| mine.per_second / theirs.per_second),
        );
        add(&mut cpu, theirs.map(|theirs| theirs.cpu_us / mine.cpu_us));
        add(&mut busy, Some(share));
    });
    let cells = [
        ("throughput/pgbench", throughput.value()),
        ("operations per client CPU second/pgbench", cpu.value()),
        ("server's core busy", busy.value()),
    ];
    row("postgres", 4, "select", &cells);
}

fn has_accounts(server: &TestServer) -> bool {
    let port = server.port.to_string();
    quietly(
        "psql",
        &[
            "-h",
            "127.0.0.1",
            "-p",
            &port,
            "-U",
            "u",
            "-c",
            "SELECT 1 FROM pgbench_accounts LIMIT 1",
            "postgres",
        ],
    )
}
