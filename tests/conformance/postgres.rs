//! The postgres driver's harness, on a private PostgreSQL; and what only it must do.

use crate::client::*;
use crate::support::{Ready, TestServer, installed};
use dbbench::driver::CustomOperation;
use dbbench::driver::postgres::Postgres;
use dbbench::driver::spec::Durability;
use dbbench::op::{ErrorClass, Operation, Outcome, Verb};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const BIN: &str = "/usr/lib/postgresql/15/bin";

fn options(value: Value) -> Map<String, Value> {
    value.as_object().expect("a table").clone()
}

/// PostgreSQL refuses root, so there it runs as nobody.
fn as_nobody() -> Vec<String> {
    let words = [
        "setpriv",
        "--reuid=nobody",
        "--regid=nogroup",
        "--clear-groups",
    ];
    match nix::unistd::Uid::effective().is_root() {
        true => words.map(str::to_owned).to_vec(),
        false => vec!["env".to_owned()],
    }
}

fn make(directory: &Path) {
    if nix::unistd::Uid::effective().is_root() {
        let given = Command::new("chown")
            .args(["nobody"])
            .arg(directory)
            .status();
        assert!(given.expect("chown runs").success());
    }
    let words = as_nobody();
    let output = Command::new(&words[0])
        .args(&words[1..])
        .arg(format!("{BIN}/initdb"))
        .args([
            "-A",
            "trust",
            "-U",
            "u",
            "--no-sync",
            "-E",
            "UTF8",
            "--locale=C",
            "-D",
        ])
        .arg(directory.join("data"))
        .current_dir(directory)
        .output()
        .expect("initdb runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
}

fn postgres(more: &[&str]) -> Option<TestServer> {
    if !installed(&format!("{BIN}/postgres")) {
        return None;
    }
    let words = as_nobody();
    let server = TestServer::start(&words[0].clone(), Ready::Port, |port, directory| {
        make(directory);
        let mut all = words[1..].to_vec();
        let place = directory.display();
        all.extend([
            format!("{BIN}/postgres"),
            "-D".to_owned(),
            format!("{place}/data"),
            "-p".to_owned(),
            port.to_string(),
            "-k".to_owned(),
            place.to_string(),
        ]);
        for setting in [
            "listen_addresses=127.0.0.1",
            "fsync=off",
            "max_connections=300",
        ] {
            all.extend(["-c".to_owned(), setting.to_owned()]);
        }
        all.extend(more.iter().map(|word| (*word).to_owned()));
        all
    })?;
    // It accepts connections before it is up.
    let client: Client<Postgres> =
        Client::open(&[at(&server)], Map::new(), Vec::new()).expect("the driver opens");
    let deadline = Instant::now() + LIMIT;
    while client.control().ready(LIMIT).is_err() {
        assert!(Instant::now() < deadline, "it does not get ready");
        std::thread::sleep(Duration::from_millis(10));
    }
    Some(server)
}

fn at(server: &TestServer) -> String {
    format!("postgres://u@127.0.0.1:{}/postgres", server.port)
}

pub struct Tcp(TestServer);

impl Harness for Tcp {
    type Driver = Postgres;

    fn start() -> Option<Self> {
        postgres(&[]).map(Tcp)
    }

    fn endpoint(&self) -> Option<String> {
        Some(at(&self.0))
    }
}

fn open(endpoint: String, table: Value, operation: Value) -> Client<Postgres> {
    let own = vec![Some(CustomOperation {
        name: "own".to_owned(),
        table: operation.as_object().expect("a table").clone(),
    })];
    Client::open(&[endpoint], options(table), own).expect("the driver opens")
}

fn custom() -> Operation {
    operation(Verb::Custom(0), b"k", b"v")
}

fn statement(text: &str) -> Operation {
    operation(Verb::Statement, b"", text.as_bytes())
}

#[test]
fn own_operations_are_prepared_or_text_and_transactions_are_whole() {
    let Some(server) = postgres(&[]) else { return };
    let client = open(
        at(&server),
        json!({}),
        json!({ "statements": ["SELECT 1"] }),
    );
    let mut session = client.session();
    for text in [
        "CREATE TABLE incr (number int)",
        "INSERT INTO incr VALUES (5)",
    ] {
        assert_eq!(
            client.execute(&mut session, &statement(text)).0,
            Outcome::Done
        );
    }
    let add = [
        "UPDATE incr SET number = number + 1",
        "SELECT number FROM incr",
    ];
    for prepared in [true, false] {
        let table = json!({ "transaction": true, "prepared": prepared, "statements": add, "expect": "^\\d+$" });
        let client = open(at(&server), json!({}), table);
        let mut session = client.session();
        assert_eq!(client.execute(&mut session, &custom()).0, Outcome::Found);
        assert_eq!(client.execute(&mut session, &custom()).0, Outcome::Found);
    }
    let undone = json!({ "transaction": true, "statements": ["UPDATE incr SET number = 100", "SELECT * FROM nowhere"] });
    let client = open(at(&server), json!({}), undone);
    let mut session = client.session();
    let refused = failure(client.execute(&mut session, &custom()).0);
    assert_eq!(
        (refused.class, refused.code.as_str()),
        (ErrorClass::Server, "42P01")
    );
    assert!(!refused.broken);
    let nine = json!({ "statements": ["SELECT number, $index::int, $key, $value FROM incr"], "expect": "^9$" });
    for prepared in [true, false] {
        let mut table = nine.clone();
        table["prepared"] = json!(prepared);
        let client = open(at(&server), json!({}), table);
        let mut session = client.session();
        let outcome = client.execute(&mut session, &custom()).0;
        assert_eq!(outcome, Outcome::Found, "prepared: {prepared}");
    }
}

#[test]
fn warnings_are_counted_and_failures_have_their_code() {
    let Some(server) = postgres(&[]) else { return };
    let client = open(
        at(&server),
        json!({}),
        json!({ "statements": ["SELECT 1/0"] }),
    );
    let mut session = client.session();
    let divided = failure(client.execute(&mut session, &custom()).0);
    assert_eq!(
        (divided.class, divided.code.as_str()),
        (ErrorClass::Server, "22012")
    );
    let warns = statement("DO $$ BEGIN RAISE WARNING 'careful'; END $$");
    let (outcome, reply) = client.execute(&mut session, &warns);
    assert_eq!((outcome, reply.warnings), (Outcome::Done, 1));
    let rows = statement("SELECT repeat('x', 1000) FROM generate_series(1, 5000)");
    let (outcome, reply) = client.execute(&mut session, &rows);
    assert_eq!(outcome, Outcome::Found);
    assert!(reply.bytes_received >= 5_000_000, "{reply:?}");
    let ended = failure(
        client
            .execute(
                &mut session,
                &statement("SELECT pg_terminate_backend(pg_backend_pid())"),
            )
            .0,
    );
    assert!(ended.broken, "{ended:?}");
}

#[test]
fn too_many_connections_are_told_with_the_fix() {
    let Some(server) = postgres(&[
        "-c",
        "max_connections=6",
        "-c",
        "superuser_reserved_connections=1",
    ]) else {
        return;
    };
    let client = open(
        at(&server),
        json!({}),
        json!({ "statements": ["SELECT 1"] }),
    );
    let mut sessions = Vec::new();
    let failure = loop {
        match client.try_session() {
            Ok(session) => sessions.push(session),
            Err(failure) => break failure,
        }
        assert!(sessions.len() < 20, "there is a limit of 6");
    };
    assert_eq!(
        (failure.class, failure.code.as_str()),
        (ErrorClass::Connect, "53300")
    );
    assert!(
        failure.message.contains("raise max_connections"),
        "{failure}"
    );
}

#[test]
fn a_table_of_somebody_elses_is_left_alone() {
    let Some(server) = postgres(&[]) else { return };
    let client = open(
        at(&server),
        json!({}),
        json!({ "statements": ["SELECT 1"] }),
    );
    let mut session = client.session();
    for text in [
        "CREATE TABLE dbbench (a int)",
        "INSERT INTO dbbench VALUES (7)",
    ] {
        client.execute(&mut session, &statement(text));
    }
    let refused = failure(client.execute(&mut session, &set("k", b"v")).0);
    assert_eq!(refused.class, ErrorClass::Rejected);
    let mut control = client.control();
    assert!(control.reset(LIMIT).is_err());
    assert_eq!(
        control.statement("SELECT a FROM dbbench", LIMIT),
        Ok("7".to_owned())
    );
}

#[test]
fn unix_sockets_and_the_cold_side_work() {
    let Some(server) = postgres(&[]) else { return };
    let endpoint = format!(
        "postgres://u@localhost:{}/postgres?host={}",
        server.port,
        server.directory().display()
    );
    let client = open(endpoint, json!({}), json!({ "statements": ["SELECT 1"] }));
    let mut session = client.session();
    assert_eq!(client.execute(&mut session, &custom()).0, Outcome::Found);
    let mut control = client.control();
    assert!(
        control
            .version(LIMIT)
            .expect("a version")
            .starts_with("PostgreSQL 15")
    );
    let settings = control.settings(LIMIT).expect("settings");
    assert!(
        settings.contains(&("fsync".to_owned(), "off".to_owned())),
        "{settings:?}"
    );
    assert_eq!(control.durability(LIMIT), Ok(Some(Durability::Os)));
    assert!(control.round_trip(LIMIT).expect("a time") < LIMIT);
}

#[test]
fn a_wrong_login_is_a_failure_to_connect() {
    let Some(server) = postgres(&[]) else { return };
    let endpoint = format!(
        "postgres://nobody_at_all:hidden@127.0.0.1:{}/postgres",
        server.port
    );
    let client = open(endpoint, json!({}), json!({ "statements": ["SELECT 1"] }));
    let failure = client.try_session().err().expect("it is not let in");
    assert_eq!(
        (failure.class, failure.code.as_str()),
        (ErrorClass::Connect, "28000")
    );
    assert!(!format!("{failure:?}").contains("hidden"));
}
