//! The mysql driver's harnesses, on a private MariaDB; and what only it must do.

use crate::client::*;
use crate::support::{Ready, TestServer, installed};
use dbbench::driver::CustomOperation;
use dbbench::driver::mysql::Mysql;
use dbbench::driver::spec::Durability;
use dbbench::op::{ErrorClass, Failure, Operation, Outcome, Verb};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use tempfile::TempDir;

fn options(value: Value) -> Map<String, Value> {
    value.as_object().expect("a table").clone()
}

/// A data directory as a fresh installation has it, made once per test process: that takes seconds.
fn installation() -> &'static Path {
    static MADE: OnceLock<TempDir> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a directory");
        let output = Command::new("mariadb-install-db")
            .args([
                "--no-defaults",
                "--auth-root-authentication-method=normal",
                "--skip-test-db",
            ])
            .arg(format!("--datadir={}/data", directory.path().display()))
            .args(as_root())
            .output()
            .expect("mariadb-install-db runs");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{told}");
        directory
    });
    made.path()
}

fn as_root() -> Option<String> {
    nix::unistd::Uid::effective()
        .is_root()
        .then(|| "--user=root".to_owned())
}

/// MariaDB with the database `d`, and the user `u` with password `secret word`.
pub fn mariadb(more: &[&str]) -> Option<TestServer> {
    if !installed("mariadbd") {
        return None;
    }
    let server = TestServer::start("mariadbd", Ready::Both, |port, directory| {
        let place = directory.display();
        let copied = Command::new("cp")
            .arg("-a")
            .arg(installation().join("data"))
            .arg(directory.join("data"))
            .status();
        assert!(copied.expect("cp runs").success());
        let mut words = vec![
            "--no-defaults".to_owned(),
            format!("--datadir={place}/data"),
            format!("--tmpdir={place}"),
            format!("--socket={place}/server.sock"),
            format!("--pid-file={place}/pid"),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--port={port}"),
            "--skip-name-resolve".to_owned(),
            "--innodb-flush-log-at-trx-commit=0".to_owned(),
            "--innodb-buffer-pool-size=64M".to_owned(),
            "--max-connections=300".to_owned(),
        ];
        words.extend(as_root());
        words.extend(
            more.iter()
                .map(|word| word.replace("DIRECTORY", &place.to_string())),
        );
        words
    })?;
    let client = root(&server, json!({}), Vec::new());
    let mut control = client.control();
    for statement in [
        "CREATE DATABASE d",
        "CREATE USER u@'127.0.0.1' IDENTIFIED BY 'secret word'",
        "GRANT ALL ON d.* TO u@'127.0.0.1'",
    ] {
        control.statement(statement, LIMIT).expect(statement);
    }
    Some(server)
}

fn at(server: &TestServer) -> String {
    format!("mysql://u:secret%20word@127.0.0.1:{}/d", server.port)
}

fn root(server: &TestServer, table: Value, own: Vec<Option<CustomOperation>>) -> Client<Mysql> {
    let endpoint = format!(
        "mysql://root@localhost/?socket={}",
        server.socket().display()
    );
    Client::open(&[endpoint], options(table), own).expect("the driver opens")
}

macro_rules! harness {
    ($name:ident, $options:expr) => {
        pub struct $name(TestServer);

        impl Harness for $name {
            type Driver = Mysql;

            fn start() -> Option<Self> {
                mariadb(&[]).map($name)
            }

            fn endpoint(&self) -> Option<String> {
                Some(at(&self.0))
            }

            fn options() -> Map<String, Value> {
                options($options)
            }
        }
    };
}

harness!(Tcp, json!({}));
harness!(Pooled, json!({ "pool": 4 }));

fn own(table: Value) -> Vec<Option<CustomOperation>> {
    vec![Some(CustomOperation {
        name: "own".to_owned(),
        table: table.as_object().expect("a table").clone(),
    })]
}

fn open(server: &TestServer, table: Value, operation: Value) -> Client<Mysql> {
    Client::open(&[at(server)], options(table), own(operation)).expect("the driver opens")
}

fn custom() -> Operation {
    operation(Verb::Custom(0), b"k", b"v")
}

fn statement(text: &str) -> Operation {
    operation(Verb::Statement, b"", text.as_bytes())
}

fn failed(client: &Client<Mysql>, operation: &Operation) -> Failure {
    let mut session = client.session();
    failure(client.execute(&mut session, operation).0)
}

#[test]
fn own_operations_are_prepared_or_text_and_transactions_are_whole() {
    let Some(server) = mariadb(&[]) else { return };
    let client = open(&server, json!({}), json!({ "statements": ["SELECT 1"] }));
    let mut session = client.session();
    for text in [
        "CREATE TABLE incr (number int) ENGINE=InnoDB",
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
        let client = open(&server, json!({}), table);
        let mut session = client.session();
        assert_eq!(client.execute(&mut session, &custom()).0, Outcome::Found);
    }
    let undone = json!({ "transaction": true, "statements": ["UPDATE incr SET number = 100", "SELECT * FROM nowhere"] });
    let failure = failed(&open(&server, json!({}), undone), &custom());
    assert_eq!(
        (failure.class, failure.code.as_str()),
        (ErrorClass::Server, "1146")
    );
    assert!(!failure.broken);
    let wrong = json!({ "statements": ["SELECT number FROM incr"], "expect": "^8$" });
    let failure = failed(&open(&server, json!({}), wrong), &custom());
    assert_eq!(failure.class, ErrorClass::UnexpectedReply);
    assert!(failure.message.contains("`7`"), "{failure}");
    let bound = json!({ "statements": ["SELECT $key, $value, $index"], "expect": "^k$" });
    for prepared in [true, false] {
        let mut table = bound.clone();
        table["prepared"] = json!(prepared);
        let client = open(&server, json!({}), table);
        let mut session = client.session();
        assert_eq!(client.execute(&mut session, &custom()).0, Outcome::Found);
    }
}

#[test]
fn warnings_are_counted_and_every_result_is_read() {
    let Some(server) = mariadb(&[]) else { return };
    let client = open(
        &server,
        json!({}),
        json!({ "statements": ["SELECT CAST('x' AS SIGNED)"] }),
    );
    let mut session = client.session();
    let (outcome, reply) = client.execute(&mut session, &custom());
    assert_eq!((outcome, reply.warnings), (Outcome::Found, 1));
    let rows = statement("SELECT seq, REPEAT('x', 1000) FROM seq_1_to_5000");
    let (outcome, reply) = client.execute(&mut session, &rows);
    assert_eq!(outcome, Outcome::Found);
    assert!(reply.bytes_received > 5_000_000, "{reply:?}");
    let failure = failure(client.execute(&mut session, &statement("SELEC nonsense")).0);
    assert_eq!(
        (failure.class, failure.code.as_str()),
        (ErrorClass::Server, "1064")
    );
    assert_eq!(
        client.execute(&mut session, &statement("SELECT 1")).0,
        Outcome::Found
    );
}

#[test]
fn a_wrong_password_is_a_failure_to_connect_and_never_shown() {
    let Some(server) = mariadb(&[]) else { return };
    let endpoint = format!("mysql://u:wrong%20word@127.0.0.1:{}/d", server.port);
    let client: Client<Mysql> = Client::open(&[endpoint], Map::new(), Vec::new()).expect("open");
    let failure = client.try_session().err().expect("it is not let in");
    assert_eq!(
        (failure.class, failure.code.as_str()),
        (ErrorClass::Connect, "1045")
    );
    assert!(!format!("{failure:?}").contains("wrong"), "{failure:?}");
}

#[test]
fn too_many_connections_are_told_with_the_fix() {
    let Some(server) = mariadb(&["--max-connections=10"]) else {
        return;
    };
    let client = open(&server, json!({}), json!({ "statements": ["SELECT 1"] }));
    let mut sessions = Vec::new();
    let failure = loop {
        match client.try_session() {
            Ok(session) => sessions.push(session),
            Err(failure) => break failure,
        }
        assert!(sessions.len() < 20, "there is a limit of 10");
    };
    assert_eq!(
        (failure.class, failure.code.as_str()),
        (ErrorClass::Connect, "1040")
    );
    assert!(
        failure.message.contains("Too many connections"),
        "{failure}"
    );
    assert!(
        failure.message.contains("raise max_connections"),
        "{failure}"
    );
}

#[test]
fn a_table_of_somebody_elses_is_left_alone() {
    let Some(server) = mariadb(&[]) else { return };
    let client = open(&server, json!({}), json!({ "statements": ["SELECT 1"] }));
    let mut session = client.session();
    for text in [
        "CREATE TABLE dbbench (a int)",
        "INSERT INTO dbbench VALUES (7)",
    ] {
        client.execute(&mut session, &statement(text));
    }
    let refused = failure(client.execute(&mut session, &set("k", b"v")).0);
    assert_eq!(refused.class, ErrorClass::Rejected);
    assert!(refused.message.contains("left alone"), "{refused}");
    let mut control = client.control();
    assert!(control.reset(LIMIT).is_err());
    assert_eq!(
        control.statement("SELECT a FROM dbbench", LIMIT),
        Ok("7".to_owned())
    );
}

#[test]
fn a_server_killed_or_gone_is_a_lost_connection() {
    let Some(server) = mariadb(&[]) else { return };
    let client = open(
        &server,
        json!({}),
        json!({ "statements": ["SELECT SLEEP(10)"] }),
    );
    let mut session = client.session();
    let killer = std::thread::spawn({
        let pid = server.pid();
        move || {
            std::thread::sleep(std::time::Duration::from_millis(200));
            nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).expect("killed");
        }
    });
    let lost = failure(client.execute(&mut session, &custom()).0);
    killer.join().expect("joined");
    assert_eq!(lost.class, ErrorClass::Reset, "{lost}");
    assert!(lost.broken && lost.unanswered);
    let refused = client.try_session().err().expect("nobody is there");
    assert_eq!(refused.class, ErrorClass::Connect, "{refused}");
}

#[test]
fn reconnecting_each_time_costs_a_connection_each() {
    let Some(server) = mariadb(&[]) else { return };
    let client = open(
        &server,
        json!({ "reconnect": "each" }),
        json!({ "statements": ["SELECT CONNECTION_ID()"] }),
    );
    let mut session = client.session();
    let mut control = client.control();
    let connections = |control: &mut Box<dyn dbbench::driver::Control>| {
        let statement = "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'CONNECTIONS'";
        let said = control.statement(statement, LIMIT).expect("a count");
        said.parse::<u64>().expect("a number")
    };
    let before = connections(&mut control);
    for _ in 0..5 {
        let (outcome, reply) = client.execute(&mut session, &custom());
        assert_eq!(outcome, Outcome::Found);
        assert!(!reply.connect_time.is_zero());
    }
    assert_eq!(connections(&mut control) - before, 5);
}

#[test]
fn tls_is_used_where_the_endpoint_says_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let signed = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("signed");
    let (key, certificate) = (
        directory.path().join("key.pem"),
        directory.path().join("cert.pem"),
    );
    std::fs::write(&key, signed.signing_key.serialize_pem()).expect("written");
    std::fs::write(&certificate, signed.cert.pem()).expect("written");
    let (key, certificate) = (key.display().to_string(), certificate.display().to_string());
    let words = [
        format!("--ssl-key={key}"),
        format!("--ssl-cert={certificate}"),
    ];
    let Some(server) = mariadb(&[&words[0], &words[1]]) else {
        return;
    };
    let endpoint = format!("{}?tls=true", at(&server));
    let cipher = json!({ "statements": ["SELECT variable_value FROM information_schema.session_status WHERE variable_name = 'SSL_CIPHER'"], "expect": "^TLS" });
    for table in [
        json!({ "tls_ca": certificate }),
        json!({ "tls_insecure": true }),
    ] {
        let endpoints = std::slice::from_ref(&endpoint);
        let client: Client<Mysql> =
            Client::open(endpoints, options(table.clone()), own(cipher.clone())).expect("open");
        let mut session = client.session();
        assert_eq!(
            client.execute(&mut session, &custom()).0,
            Outcome::Found,
            "{table}"
        );
    }
    let client: Client<Mysql> = Client::open(&[endpoint], Map::new(), Vec::new()).expect("open");
    let failure = client.try_session().err().expect("it is not trusted");
    assert_eq!(failure.class, ErrorClass::Connect);
}

#[test]
fn the_cold_side_tells_version_settings_and_durability() {
    let Some(server) = mariadb(&["--innodb-flush-log-at-trx-commit=1"]) else {
        return;
    };
    let client = open(&server, json!({}), json!({ "statements": ["SELECT 1"] }));
    let mut control = client.control();
    assert!(
        control
            .version(LIMIT)
            .expect("a version")
            .starts_with("MariaDB 1")
    );
    let settings = control.settings(LIMIT).expect("settings");
    let flush = settings
        .iter()
        .find(|(name, _)| name == "innodb_flush_log_at_trx_commit");
    assert_eq!(flush.map(|(_, value)| value.as_str()), Some("1"));
    assert!(settings.iter().any(|(name, _)| name == "sync_binlog"));
    assert_eq!(control.durability(LIMIT), Ok(Some(Durability::Fsync)));
    let client = open(
        &server,
        json!({ "engine": "MyISAM" }),
        json!({ "statements": ["SELECT 1"] }),
    );
    assert_eq!(client.control().durability(LIMIT), Ok(Some(Durability::Os)));
}
