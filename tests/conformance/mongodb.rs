//! The mongodb driver's harnesses, on FerretDB and on mongo-java-server, both built by the scripts of the scenarios'
//! fragments; and what only it must do.

use crate::client::*;
use crate::support::{Ready, TestServer, installed};
use dbbench::driver::mongodb::MongoDb;
use dbbench::driver::scripted::Framing;
use dbbench::driver::{CustomOperation, Driver, Session};
use dbbench::op::{ErrorClass, Failure, Outcome, Reply, Verb};
use mongodb::bson::{Document, RawDocumentBuf, doc};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::process::Command;

/// Builds what a fragment builds, or finds it in the cache: the path of what `build.sh` links as `product`.
fn built(fragment: &str, product: &str, tools: &[&str]) -> Option<PathBuf> {
    if !tools.iter().all(|tool| installed(tool)) {
        return None;
    }
    let directory = tempfile::tempdir().expect("a private directory");
    let from = format!(
        "{}/scenarios/servers/{fragment}",
        env!("CARGO_MANIFEST_DIR")
    );
    for entry in std::fs::read_dir(from).expect("the fragment's folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name");
        std::fs::copy(&path, directory.path().join(name)).expect("a copy");
    }
    let output = Command::new("sh")
        .arg(directory.path().join("build.sh"))
        .output()
        .expect("a shell");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{fragment}: {told}");
    let product = directory.path().join(product);
    Some(product.canonicalize().expect("what was built"))
}

fn ferret() -> Option<TestServer> {
    let program = built("ferretdb", "ferretdb-server", &["go"])?;
    let program = program.to_str().expect("a path in UTF-8");
    TestServer::start(program, Ready::Port, |port, directory| {
        let data = directory.display().to_string();
        // Tests write at the same time, and SQLite lets nobody queue: ten seconds may not be enough.
        let patient = "_pragma=busy_timeout(60000)".to_owned();
        vec![format!("127.0.0.1:{port}"), data, patient]
    })
}

fn mongo_java() -> Option<TestServer> {
    let lib = built("mongo-java", "lib", &["java", "javac", "mvn"])?;
    let path = format!("{0}/*:{0}", lib.display());
    TestServer::start("java", Ready::Port, |port, _| {
        let port = port.to_string();
        let fixed = [
            "-Xmx256m",
            "-XX:+UseSerialGC",
            "-cp",
            &path,
            "Srv",
            "127.0.0.1",
            &port,
        ];
        fixed.map(str::to_owned).to_vec()
    })
}

/// A message as a server sends it: header, no flags, one document.
fn message(document: &Document) -> Vec<u8> {
    let body = RawDocumentBuf::try_from(document)
        .expect("a document")
        .into_bytes();
    let length = i32::try_from(body.len() + 21).expect("a short message");
    let mut bytes = Vec::new();
    for number in [length, 1, 1, 2013, 0] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.push(0);
    bytes.extend(body);
    bytes
}

fn greet(request: &[u8]) -> Option<Vec<u8>> {
    let contains = |word: &[u8]| request.windows(word.len()).any(|window| window == word);
    if contains(b"isMaster") || contains(b"ismaster") || contains(b"hello\0") {
        return Some(message(&doc! {
            "ismaster": true,
            "isWritablePrimary": true,
            "helloOk": true,
            "minWireVersion": 0,
            "maxWireVersion": 21,
            "maxBsonObjectSize": 16_777_216,
            "maxMessageSizeBytes": 48_000_000,
            "maxWriteBatchSize": 100_000,
            "ok": 1.0,
        }));
    }
    contains(b"ping\0").then(|| message(&doc! { "ok": 1.0 }))
}

fn found(key: &str, content: &[u8]) -> Vec<u8> {
    let value = mongodb::bson::Binary {
        subtype: mongodb::bson::spec::BinarySubtype::Generic,
        bytes: content.to_vec(),
    };
    let batch =
        doc! { "firstBatch": [{ "_id": key, "v": value }], "id": 0_i64, "ns": "dbbench.dbbench" };
    message(&doc! { "cursor": batch, "ok": 1.0 })
}

macro_rules! harness {
    ($name:ident, $start:expr, $options:expr, $loses:expr) => {
        pub struct $name(TestServer);

        impl Harness for $name {
            type Driver = MongoDb;

            const LOSES_INCREMENTS: Option<&'static str> = $loses;

            fn start() -> Option<Self> {
                $start().map($name)
            }

            fn endpoint(&self) -> Option<String> {
                Some(at(&self.0))
            }

            fn options() -> Map<String, Value> {
                $options.as_object().expect("a table").clone()
            }
        }

        impl ServerHarness for $name {
            const FRAMING: Framing = Framing::Raw;

            fn server(&self) -> &dyn Hurt {
                &self.0
            }

            fn endpoint_at(port: u16) -> String {
                format!("mongodb://127.0.0.1:{port}/dbbench")
            }

            fn greet(request: &[u8]) -> Option<Vec<u8>> {
                greet(request)
            }

            fn value(key: &str, content: &[u8]) -> Vec<u8> {
                found(key, content)
            }

            fn malformed() -> Vec<&'static [u8]> {
                vec![
                    b"HTTP/1.1 400 Bad Request\r\n",
                    // A length that no message has; another kind of message; a document that ends too early.
                    b"\xff\xff\xff\x7f\x01\0\0\0\x01\0\0\0\xdd\x07\0\0\0\0\0\0\0",
                    b"\x1a\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0\0\x05\0\0\0\0",
                    b"\x1a\0\0\0\x01\0\0\0\x01\0\0\0\xdd\x07\0\0\0\0\0\0\0\x05\0\0\0\0",
                ]
            }
        }
    };
}

harness!(
    Ferret,
    ferret,
    json!({}),
    Some(
        "FerretDB 1.24 reads, adds and writes without a lock: concurrent $inc's overwrite each other"
    )
);
harness!(MongoJava, mongo_java, json!({}), None);
harness!(
    Pooled,
    mongo_java,
    json!({ "clients": "per_worker", "pool_size": 8 }),
    None
);

fn at(server: &TestServer) -> String {
    format!("mongodb://127.0.0.1:{}/dbbench", server.port)
}

fn open(server: &TestServer, options: Value, commands: &[&str]) -> Client<MongoDb> {
    let operations = commands.iter().enumerate().map(|(number, command)| {
        let table = json!({ "command": command });
        Some(CustomOperation {
            name: format!("own-{number}"),
            table: table.as_object().expect("a table").clone(),
        })
    });
    let options = options.as_object().expect("a table").clone();
    Client::open(&[at(server)], options, operations.collect()).expect("the driver opens")
}

const SESSIONS: usize = 20;
const EACH: usize = 60;

/// What 20 sessions were told that they had added, and what is there.
fn counted(server: &TestServer) -> (usize, usize) {
    let client = open(server, json!({}), &[]);
    // Many who make the counter at the same time would be another matter: all but one may be refused.
    let first = operation(Verb::Increment, b"counter", b"");
    let made = client.execute(&mut client.session(), &first).0;
    assert_eq!(made, Outcome::Done);
    client.at_the_same_time(SESSIONS, |mut session, _| async move {
        for _ in 0..EACH {
            let increment = operation(Verb::Increment, b"counter", b"");
            let counted = session.execute(&increment, &mut Reply::default()).await;
            assert_eq!(counted, Outcome::Done);
        }
    });
    let statement = r#"{ "find": "dbbench", "projection": { "_id": 0, "v": 1 } }"#;
    let text = client
        .control()
        .statement(statement, LIMIT)
        .expect("a counter");
    (SESSIONS * EACH + 1, text.parse().expect("a number"))
}

#[test]
fn ferretdb_loses_acknowledged_increments_and_mongo_java_loses_none() {
    if let Some(server) = ferret() {
        let (acknowledged, counted) = counted(&server);
        assert!(
            (1..acknowledged).contains(&counted),
            "{counted} of {acknowledged}"
        );
    }
    if let Some(server) = mongo_java() {
        let (acknowledged, counted) = counted(&server);
        assert_eq!(counted, acknowledged);
    }
}

#[test]
fn own_commands_are_executed_and_their_cursors_read_to_the_end() {
    for server in [ferret(), mongo_java()].into_iter().flatten() {
        let commands = [
            r#"{ "insert": "own", "documents": [{ "_id": "$index", "k": "$key", "v": "$value" }] }"#,
            r#"{ "find": "own", "sort": { "_id": 1 }, "batchSize": 7 }"#,
            r#"{ "findAndModify": "own", "query": { "_id": 3 }, "update": { "$set": { "seen": true } }, "new": true }"#,
            r#"{ "findAndModify": "own", "query": { "_id": -1 }, "update": { "$set": { "seen": true } } }"#,
            r#"{ "noSuchCommand": 1 }"#,
        ];
        let client = open(&server, json!({}), &commands);
        let mut session = client.session();
        let own = |number: u16, index: u64| dbbench::op::Operation {
            index,
            ..operation(Verb::Custom(number), b"key", &[9; 400])
        };
        for index in 0..50 {
            let written = client.execute(&mut session, &own(0, index)).0;
            assert_eq!(written, Outcome::Done);
        }
        let twice = failure(client.execute(&mut session, &own(0, 7)).0);
        assert_eq!(
            (twice.class, twice.code.as_str()),
            (ErrorClass::Server, "11000")
        );
        assert!(!twice.broken);
        let (outcome, reply) = client.execute(&mut session, &own(1, 0));
        assert_eq!(outcome, Outcome::Found);
        assert!(reply.bytes_received > 50 * 400, "{reply:?}");
        assert_eq!(client.execute(&mut session, &own(2, 0)).0, Outcome::Found);
        assert_eq!(client.execute(&mut session, &own(3, 0)).0, Outcome::Missing);
        let unknown = failure(client.execute(&mut session, &own(4, 0)).0);
        assert_eq!(
            (unknown.class, unknown.code.as_str()),
            (ErrorClass::Server, "59")
        );
    }
}

#[test]
fn the_cold_side_names_the_server_and_leaves_other_collections_alone() {
    for (server, name) in [(ferret(), "FerretDB"), (mongo_java(), "MongoDB 5.0.0")] {
        let Some(server) = server else { continue };
        let client = open(&server, json!({ "collection": "ours" }), &[]);
        let mut control = client.control();
        let version = control.version(LIMIT).expect("a version");
        assert!(version.starts_with(name), "{version}");
        control.reset(LIMIT).expect("nothing to drop");
        let insert = r#"{ "insert": "theirs", "documents": [{ "_id": 1 }] }"#;
        assert_eq!(control.statement(insert, LIMIT), Ok("1".to_owned()));
        client.execute(&mut client.session(), &set("k", b"v"));
        control.reset(LIMIT).expect("a collection dropped");
        let gone = client.execute(&mut client.session(), &get("k")).0;
        assert_eq!(gone, Outcome::Missing);
        let find = r#"{ "find": "theirs" }"#;
        assert_eq!(control.statement(find, LIMIT), Ok("1".to_owned()));
        let wrong: Result<String, Failure> = control.statement("SELECT 1", LIMIT);
        assert_eq!(wrong.expect_err("no JSON").class, ErrorClass::Client);
    }
}

#[test]
fn a_scan_reads_so_many_documents_from_its_key_on() {
    for server in [ferret(), mongo_java()].into_iter().flatten() {
        let client = open(&server, json!({ "scan_count": 5 }), &[]);
        let mut session = client.session();
        for number in 0..20 {
            client.execute(&mut session, &set(&format!("k{number:02}"), &[1; 1000]));
        }
        for (from, documents) in [("k03", 5), ("k18", 2), ("z", 0)] {
            let scan = operation(Verb::Scan, from.as_bytes(), b"");
            let (outcome, reply) = client.execute(&mut session, &scan);
            assert_eq!(outcome, Outcome::Done);
            assert_eq!(reply.bytes_received / 1000, documents, "{from}");
        }
    }
}

#[test]
fn a_write_without_acknowledgement_is_done_and_said_to_be_one() {
    let Some(server) = mongo_java() else { return };
    let client = open(&server, json!({ "write_concern": 0 }), &[]);
    let mut session = client.session();
    let written = client.execute(&mut session, &set("k", b"v")).0;
    assert_eq!(written, Outcome::Done);
    let read = client.execute(&mut session, &verify(b"k", b"v")).0;
    assert_eq!(read, Outcome::Found);
    let durability = client.control().durability(LIMIT).expect("an answer");
    let unacknowledged = dbbench::driver::spec::Durability::Unacknowledged;
    assert_eq!(durability, Some(unacknowledged));
    assert_eq!(MongoDb::spec().name, "mongodb");
}
