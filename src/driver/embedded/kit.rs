//! The test kit of embedded stores: what happens to their files, on a real store in a private directory: closing and
//! opening again, a kill, a full disk. What every driver must do is in the conformance suite (`tests/conformance.rs`).
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
