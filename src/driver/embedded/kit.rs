//! The test kit of embedded stores: facts that hold for each of them, on a real store in a private directory.
//!
//! A driver's tests name the options; what is asserted is here, once for all.

use crate::driver::spec::{DriverSpec, Endpoint, Options, Transport};
use crate::driver::{Control, Driver, Session, Target, Worker};
use crate::op::{ErrorClass, Failure, Operation, Outcome, Reply, Verb};
use serde_json::{Map, Value};
use std::future::Future;
use std::io::{BufRead, BufReader, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(5);
const CHILD: &str = "DBBENCH_TEST_CHILD_DIRECTORY";

/// Options as a scenario would say them, all as text; numbers and booleans are read as such.
pub fn options(spec: &'static DriverSpec, said: &[(&str, &str)]) -> Options {
    let values = said.iter().map(|(name, text)| {
        let value = match *text {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            text => match text.parse::<i64>() {
                Ok(number) => Value::from(number),
                Err(_) => Value::from(text),
            },
        };
        ((*name).to_owned(), value)
    });
    Options::new(spec.options, values.collect())
}

/// The version of a crate that this build uses.
pub fn locked_version(name: &str) -> String {
    let lock: toml::Table = include_str!("../../../Cargo.lock")
        .parse()
        .expect("the lock file is TOML");
    let packages = lock["package"].as_array().expect("a list of packages");
    packages
        .iter()
        .find(|package| package["name"].as_str() == Some(name))
        .and_then(|package| package["version"].as_str())
        .expect("the crate is in the lock file")
        .to_owned()
}

pub fn target<D: Driver>(directory: &Path, said: &[(&str, &str)]) -> Target {
    Target {
        name: "store".to_owned(),
        endpoints: Vec::new(),
        options: options(D::spec(), said),
        operations: Vec::new(),
        directory: directory.to_owned(),
        connect_timeout: LIMIT,
    }
}

pub fn endpoint(directory: &Path) -> Endpoint {
    Endpoint {
        text: String::new(),
        label: String::new(),
        transport: Transport::Directory {
            path: directory.to_owned(),
        },
    }
}

/// The result of a future without await points; that it has none is part of the fact.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    let future = pin!(future);
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("an embedded store must not wait asynchronously"),
    }
}

pub fn session<D: Driver>(driver: &D) -> <D::Worker as Worker>::Session {
    let worker = driver.worker().expect("a worker");
    now(worker.session(&[])).expect("a session")
}

pub fn operation(verb: Verb, key: &[u8], value: &[u8]) -> Operation {
    Operation {
        verb,
        key: key.to_vec(),
        value: value.to_vec(),
        ..Operation::default()
    }
}

pub fn run(session: &mut impl Session, verb: Verb, key: &[u8], value: &[u8]) -> Outcome {
    now(session.execute(&operation(verb, key, value), &mut Reply::default()))
}

/// A read that must give exactly these bytes.
pub fn holds(session: &mut impl Session, key: &[u8], value: &[u8]) {
    let mut reply = Reply::default();
    let mut get = operation(Verb::Get, key, value);
    get.verify = true;
    let outcome = now(session.execute(&get, &mut reply));
    let shown = String::from_utf8_lossy(key);
    assert_eq!(outcome, Outcome::Found, "key {shown}");
    assert_eq!(reply.value_length, Some(value.len() as u64), "key {shown}");
    assert_eq!(reply.bytes_received, value.len() as u64, "key {shown}");
}

pub fn failed(outcome: Outcome) -> Failure {
    match outcome {
        Outcome::Failed(failure) => *failure,
        other => panic!("expected a failure, got {other:?}"),
    }
}

/// One driver with some options on a directory of its own, which goes with the kit.
pub struct Kit<D> {
    directory: TempDir,
    said: Vec<(String, String)>,
    driver: PhantomData<D>,
}

impl<D: Driver> Kit<D> {
    pub fn new(said: &[(&str, &str)]) -> Kit<D> {
        Kit {
            directory: tempfile::tempdir().expect("a private directory"),
            said: said
                .iter()
                .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
                .collect(),
            driver: PhantomData,
        }
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("store")
    }

    pub fn target(&self) -> Target {
        let said: Vec<(&str, &str)> = self
            .said
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .collect();
        target::<D>(&self.path(), &said)
    }

    pub fn open(&self) -> D {
        D::open(self.target()).expect("the store opens")
    }

    pub fn control(&self, driver: &D) -> Box<dyn Control> {
        driver.control(&endpoint(&self.path())).expect("a control")
    }

    /// Every fact that one session can show.
    pub fn all(&self) {
        let driver = self.open();
        let mut control = self.control(&driver);
        control.ready(LIMIT).expect("the store is ready");
        values_come_back_as_they_were(&mut session(&driver));
        conditions_hold(&mut session(&driver));
        counters_count(&mut session(&driver));
        control.reset(LIMIT).expect("the store can be emptied");
        scans_are_in_order(&mut session(&driver));
        self.the_cold_side(&driver);
        control.reset(LIMIT).expect("the store can be emptied");
        let mut session = session(&driver);
        assert_eq!(run(&mut session, Verb::Get, b"a", b""), Outcome::Missing);
        assert_eq!(run(&mut session, Verb::Set, b"a", b"1"), Outcome::Done);
        holds(&mut session, b"a", b"1");
    }

    fn the_cold_side(&self, driver: &D) {
        let mut control = self.control(driver);
        let version = control.version(LIMIT).expect("a version");
        assert!(
            version
                .split(' ')
                .next_back()
                .is_some_and(|number| number.split('.').all(|part| part.parse::<u32>().is_ok())),
            "{version}"
        );
        let settings = control.settings(LIMIT).expect("settings");
        assert!(!settings.is_empty());
        assert!(
            settings
                .iter()
                .all(|(name, value)| !name.is_empty() && !value.is_empty())
        );
        let durability = control.durability(LIMIT).expect("a durability");
        assert_eq!(durability, (D::spec().durability)(&self.target().options));
        assert!(control.round_trip(LIMIT).expect("a round trip") < LIMIT);
        let nonsense = control.statement("no such statement", LIMIT);
        assert_eq!(nonsense.expect_err("nonsense").class, ErrorClass::Client);
        assert!(D::spec().blocking());
    }

    /// What was written is there after the store was closed and opened again.
    pub fn reopens(&self) {
        let large = vec![7; 1 << 20];
        {
            let driver = self.open();
            let mut session = session(&driver);
            run(&mut session, Verb::Set, b"large", &large);
            for i in 0..100u32 {
                let outcome = run(&mut session, Verb::Set, &i.to_be_bytes(), b"value");
                assert_eq!(outcome, Outcome::Done);
            }
            run(&mut session, Verb::Delete, &3u32.to_be_bytes(), b"");
        }
        let driver = self.open();
        let mut session = session(&driver);
        holds(&mut session, b"large", &large);
        for i in (0..100u32).filter(|i| *i != 3) {
            holds(&mut session, &i.to_be_bytes(), b"value");
        }
        let deleted = run(&mut session, Verb::Get, &3u32.to_be_bytes(), b"");
        assert_eq!(deleted, Outcome::Missing);
    }

    /// Eight sessions write keys of their own and one counter together; nothing is lost, torn or refused.
    pub fn eight_threads(&self) {
        const THREADS: u32 = 8;
        const EACH: u32 = 100;
        let driver = self.open();
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let driver = &driver;
                scope.spawn(move || {
                    let mut session = session(driver);
                    for i in 0..EACH {
                        let key = format!("{thread}-{i}");
                        let value = key.repeat(100);
                        let set = run(&mut session, Verb::Set, key.as_bytes(), value.as_bytes());
                        assert_eq!(set, Outcome::Done);
                        holds(&mut session, key.as_bytes(), value.as_bytes());
                        let counted = run(&mut session, Verb::Increment, b"counter", b"");
                        assert_eq!(counted, Outcome::Done);
                    }
                });
            }
        });
        let mut session = session(&driver);
        let total = (THREADS * EACH).to_string();
        holds(&mut session, b"counter", total.as_bytes());
        for (thread, i) in (0..THREADS).flat_map(|t| (0..EACH).map(move |i| (t, i))) {
            let key = format!("{thread}-{i}");
            holds(&mut session, key.as_bytes(), key.repeat(100).as_bytes());
        }
    }
}

fn values_come_back_as_they_were(session: &mut impl Session) {
    assert_eq!(run(session, Verb::Get, b"absent", b""), Outcome::Missing);
    let large: Vec<u8> = (0..1u32 << 20).map(|i| (i * 31 % 251) as u8).collect();
    let binary: Vec<u8> = (0..=255).collect();
    let cases: [(&[u8], &[u8]); 6] = [
        (b"plain", b"value"),
        (b"empty", b""),
        (b"large", &large),
        (&binary, &binary),
        (b"\0", b"a key of one zero byte"),
        (b"quote'\"; --\n\xff\xfe", b"a key that is no text"),
    ];
    for (key, value) in cases {
        assert_eq!(run(session, Verb::Set, key, value), Outcome::Done);
    }
    for (key, value) in cases {
        holds(session, key, value);
    }
    run(session, Verb::Set, b"plain", b"another, and longer");
    holds(session, b"plain", b"another, and longer");
    let mut wrong = operation(Verb::Get, b"plain", b"not this");
    wrong.verify = true;
    let outcome = now(session.execute(&wrong, &mut Reply::default()));
    assert_eq!(outcome, Outcome::WrongValue);
    assert_eq!(run(session, Verb::Delete, b"plain", b""), Outcome::Done);
    assert_eq!(run(session, Verb::Delete, b"plain", b""), Outcome::Missing);
    assert_eq!(run(session, Verb::Get, b"plain", b""), Outcome::Missing);
}

fn conditions_hold(session: &mut impl Session) {
    assert_eq!(run(session, Verb::Update, b"new", b"x"), Outcome::Missing);
    assert_eq!(run(session, Verb::Get, b"new", b""), Outcome::Missing);
    assert_eq!(run(session, Verb::Insert, b"new", b"first"), Outcome::Done);
    let refused = failed(run(session, Verb::Insert, b"new", b"second"));
    assert_eq!(refused.class, ErrorClass::Rejected);
    assert!(!refused.broken && !refused.unanswered);
    holds(session, b"new", b"first");
    assert_eq!(run(session, Verb::Update, b"new", b"third"), Outcome::Done);
    holds(session, b"new", b"third");

    let mut reply = Reply::default();
    let both = operation(Verb::ReadModifyWrite, b"new", b"fourth!");
    assert_eq!(now(session.execute(&both, &mut reply)), Outcome::Done);
    assert_eq!(reply.value_length, Some(5));
    assert_eq!((reply.bytes_sent, reply.bytes_received), (10, 5));
    holds(session, b"new", b"fourth!");
}

fn counters_count(session: &mut impl Session) {
    for expected in [b"1".as_slice(), b"2", b"3"] {
        assert_eq!(run(session, Verb::Increment, b"n", b""), Outcome::Done);
        holds(session, b"n", expected);
    }
    for value in [
        b"text".as_slice(),
        b"",
        b"9223372036854775807",
        b"1.5",
        b"\xff",
    ] {
        run(session, Verb::Set, b"n", value);
        let refused = failed(run(session, Verb::Increment, b"n", b""));
        assert_eq!(refused.class, ErrorClass::Rejected, "{value:?}");
        assert_eq!(refused.code, "NOT_AN_INTEGER", "{value:?}");
        holds(session, b"n", value);
    }
    run(session, Verb::Set, b"n", b"-8");
    assert_eq!(run(session, Verb::Increment, b"n", b""), Outcome::Done);
    holds(session, b"n", b"-7");
}

/// The store is empty, and reads at most `scan_limit` = 100 entries.
fn scans_are_in_order(session: &mut impl Session) {
    for i in (0..150u32).rev() {
        run(session, Verb::Set, format!("key{i:03}").as_bytes(), b"0123");
    }
    for (from, entries) in [
        ("key000", 100),
        ("key149", 1),
        ("key0495", 100),
        ("key100", 50),
    ] {
        let mut reply = Reply::default();
        let scan = operation(Verb::Scan, from.as_bytes(), b"");
        assert_eq!(now(session.execute(&scan, &mut reply)), Outcome::Found);
        assert_eq!(reply.bytes_received, entries * (6 + 4), "from {from}");
    }
    assert_eq!(run(session, Verb::Scan, b"key2", b""), Outcome::Missing);
}

/// Goal: a write that was acknowledged under a durability of at least `os` is there after `kill -9`. Method: the test
/// starts itself again as a child that writes and says each acknowledged key; it is killed in the middle of its writing.
pub fn survives_a_kill<D: Driver>(test: &str, said: &[(&str, &str)]) {
    if let Ok(directory) = std::env::var(CHILD) {
        write_until_killed::<D>(Path::new(&directory), said);
    }
    let private = tempfile::tempdir().expect("a private directory");
    let directory = private.path().join("store");
    let mut child = std::process::Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", test, "--nocapture"])
        .env(CHILD, &directory)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("the child starts");
    let output = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut acknowledged = Vec::new();
    for line in output.lines() {
        let line = line.expect("text");
        if let Some(key) = line.strip_prefix("acknowledged ") {
            acknowledged.push(key.to_owned());
        }
        if acknowledged.len() == 50 {
            child.kill().expect("the child can be killed");
        }
    }
    child.wait().expect("the child ends");
    assert!(acknowledged.len() >= 50, "{} writes", acknowledged.len());
    let driver = D::open(target::<D>(&directory, said)).expect("the store opens again");
    let mut session = session(&driver);
    for key in &acknowledged {
        holds(&mut session, key.as_bytes(), key.repeat(200).as_bytes());
    }
}

fn write_until_killed<D: Driver>(directory: &Path, said: &[(&str, &str)]) -> ! {
    let driver = D::open(target::<D>(directory, said)).expect("the store opens");
    let mut session = session(&driver);
    let mut out = std::io::stdout();
    writeln!(out).expect("a pipe");
    for i in 0..1_000_000 {
        let key = format!("key{i}");
        let value = key.repeat(200);
        let outcome = run(&mut session, Verb::Set, key.as_bytes(), value.as_bytes());
        assert_eq!(outcome, Outcome::Done);
        writeln!(out, "acknowledged {key}").expect("a pipe");
    }
    panic!("the parent should have killed this process");
}

/// Goal: a full disk is a failure with the code `ENOSPC`, and no panic. Method: the test starts itself again in a mount
/// namespace of its own, on a file system of 8 MiB that goes with the namespace. Where the machine allows no
/// namespaces this says so and shows nothing.
pub fn tells_a_full_disk<D: Driver>(test: &str, said: &[(&str, &str)]) {
    if let Ok(directory) = std::env::var(CHILD) {
        write_until_full::<D>(&Path::new(&directory).join("store"), said);
        return;
    }
    let private = tempfile::tempdir().expect("a private directory");
    let script = "mount -t tmpfs -o size=8m none \"$1\" && echo mounted && exec \"$2\" --exact \"$3\" --nocapture";
    let output = std::process::Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script, "sh"])
        .arg(private.path())
        .arg(std::env::current_exe().expect("this test"))
        .arg(test)
        .env(CHILD, private.path())
        .output();
    let Ok(output) = output else {
        eprintln!("SKIPPED: there is no program `unshare`");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    if !text.contains("mounted") {
        eprintln!("SKIPPED: no file system can be mounted here");
        return;
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("the disk is full"),
        "{text}{errors}"
    );
}

fn write_until_full<D: Driver>(directory: &Path, said: &[(&str, &str)]) {
    let driver = D::open(target::<D>(directory, said)).expect("the store opens");
    let mut session = session(&driver);
    // Nothing that a store could compress.
    let value: Vec<u8> = (0..50_000u64)
        .map(|i| {
            (i.wrapping_mul(0x9E37_79B9_7F4A_7C15)
                .rotate_left(29)
                .wrapping_mul(i)
                >> 56) as u8
        })
        .collect();
    let written = (0..1_000u32)
        .map(|i| run(&mut session, Verb::Set, &i.to_be_bytes(), &value))
        .find(|outcome| *outcome != Outcome::Done);
    let failure = failed(written.expect("50 MB do not fit"));
    assert_eq!(failure.class, ErrorClass::Client, "{failure}");
    assert_eq!(failure.code, "ENOSPC", "{failure}");
    assert!(!failure.broken);
    println!("the disk is full");
}

/// Opening on a path where a file stands fails as the client's fault, without a panic.
pub fn refuses_a_file_for_a_directory<D: Driver>() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let Err(failure) = D::open(target::<D>(file.path(), &[])) else {
        panic!("a file was taken for a directory");
    };
    assert_eq!(failure.class, ErrorClass::Client);
    assert!(
        failure.message.contains("cannot make the directory"),
        "{failure}"
    );
}

/// A map for `Target::operations`.
pub fn table(json: Value) -> Map<String, Value> {
    json.as_object().expect("an object").clone()
}
