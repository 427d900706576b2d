//! The cassandra driver's harness, on one real node with a keyspace for each fact; and what only it must do.

use crate::cassandra_nodes::one;
use crate::client::*;
use crate::gate::Gate;
use dbbench::driver::cassandra::Cassandra;
use dbbench::driver::spec::Durability;
use dbbench::driver::{CustomOperation, Session};
use dbbench::op::{ErrorClass, Operation, Outcome, Reply, Verb};
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub struct Node {
    address: String,
    keyspace: String,
}

impl Harness for Node {
    type Driver = Cassandra;

    const TELLS_DELETED: bool = false;

    fn start() -> Option<Self> {
        one().map(|address| Node {
            address,
            keyspace: fresh_keyspace(),
        })
    }

    fn endpoint(&self) -> Option<String> {
        Some(format!("cassandra://{}/{}", self.address, self.keyspace))
    }
}

fn fresh_keyspace() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("ks_{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

impl Node {
    fn open(&self, options: Value, operations: &[Value]) -> Client<Cassandra> {
        open(&self.endpoint().expect("it has one"), options, operations)
    }

    fn gate(&self) -> (Gate, String) {
        let gate = Gate::before(self.address.parse().expect("an address"));
        let endpoint = format!("cassandra://127.0.0.1:{}/{}", gate.port, self.keyspace);
        (gate, endpoint)
    }
}

fn open(endpoint: &str, options: Value, operations: &[Value]) -> Client<Cassandra> {
    let table = |value: &Value| value.as_object().expect("a table").clone();
    let own = operations.iter().enumerate().map(|(number, operation)| {
        Some(CustomOperation {
            name: format!("own-{number}"),
            table: table(operation),
        })
    });
    let endpoints = [endpoint.to_owned()];
    Client::open(&endpoints, table(&options), own.collect()).expect("the driver opens")
}

fn custom(number: u16, key: &str) -> Operation {
    operation(Verb::Custom(number), key.as_bytes(), b"v")
}

fn counted_connections(options: Map<String, Value>, endpoint: &str) -> u32 {
    let client: Client<Cassandra> =
        Client::open(&[endpoint.to_owned()], options, Vec::new()).expect("the driver opens");
    let sessions: Vec<_> = (0..5).map(|_| client.session()).collect();
    sessions.iter().map(Session::connections).sum()
}

#[test]
fn sessions_of_a_thread_share_as_many_connections_as_are_said() {
    let Some(node) = Node::start() else { return };
    for connections in [1, 3] {
        let (gate, endpoint) = node.gate();
        let options = json!({ "connections": connections });
        let options = options.as_object().expect("a table").clone();
        assert_eq!(counted_connections(options, &endpoint), connections);
        // And one for news of the cluster.
        assert_eq!(gate.accepted(), connections as usize + 1);
    }
}

#[test]
fn own_statements_are_prepared_and_their_arguments_have_the_columns_types() {
    let Some(node) = Node::start() else { return };
    node.open(json!({}), &[]).session();
    let mut control = node.open(json!({}), &[]).control();
    for statement in [
        "CREATE TABLE own (k text PRIMARY KEY, n int, v blob, big bigint)",
        "CREATE TABLE counts (k text PRIMARY KEY, n counter)",
    ] {
        control.statement(statement, LIMIT).expect("a statement");
    }
    let client = node.open(
        json!({}),
        &[
            json!({ "cql": ["INSERT INTO own (k, n, v, big) VALUES ($key, $index, $value, $random(5, 5))"] }),
            json!({ "cql": ["SELECT n, k FROM own WHERE k = $key"], "expect": "^7$" }),
            json!({ "cql": ["SELECT n FROM own WHERE k = $key"], "expect": "^8$" }),
            json!({ "cql": [
                "UPDATE counts SET n = n + 1 WHERE k = $key",
                "SELECT n FROM counts WHERE k = $key",
            ], "expect": "^[12]$" }),
            json!({ "cql": ["SELECT nothing FROM own"] }),
            json!({ "cql": ["SELEC n FROM own"] }),
        ],
    );
    let mut session = client.session();
    let insert = Operation {
        index: 7,
        ..custom(0, "k")
    };
    assert_eq!(client.execute(&mut session, &insert).0, Outcome::Done);
    let (outcome, reply) = client.execute(&mut session, &custom(1, "k"));
    assert_eq!((outcome, reply.value_length), (Outcome::Found, Some(4)));
    let other = failure(client.execute(&mut session, &custom(2, "k")).0);
    assert_eq!(other.class, ErrorClass::UnexpectedReply);
    let missing = failure(client.execute(&mut session, &custom(1, "none")).0);
    assert_eq!(missing.class, ErrorClass::UnexpectedReply);
    for _ in 0..2 {
        let counted = client.execute(&mut session, &custom(3, "k")).0;
        assert_eq!(counted, Outcome::Found);
    }
    for (number, code) in [(4, "invalid"), (5, "syntax_error")] {
        let refused = failure(client.execute(&mut session, &custom(number, "k")).0);
        assert_eq!(
            (refused.class, refused.code.as_str()),
            (ErrorClass::Server, code)
        );
        assert!(!refused.broken && !refused.unanswered);
    }
    let mut reply = Reply {
        wants_text: true,
        ..Reply::default()
    };
    client.run(session.execute(&custom(1, "k"), &mut reply));
    assert_eq!(reply.text.as_deref(), Some("7"));
    // Built-in operations go beside them, their table made when the first one comes.
    let written = client.execute(&mut session, &set("k", b"v")).0;
    assert_eq!(written, Outcome::Done);
    let read = client.execute(&mut session, &verify(b"k", b"v")).0;
    assert_eq!(read, Outcome::Found);
}

#[test]
fn a_table_of_somebody_elses_is_left_alone() {
    let Some(address) = one() else { return };
    for table in [
        "(key blob PRIMARY KEY, value text) WITH comment = 'made by dbbench'",
        "(key blob PRIMARY KEY, value blob, more int) WITH comment = 'made by dbbench'",
        "(key blob PRIMARY KEY, value blob) WITH comment = 'mine'",
    ] {
        let node = Node {
            address: address.clone(),
            keyspace: fresh_keyspace(),
        };
        let client = node.open(json!({}), &[]);
        let mut control = client.control();
        let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
        for statement in [
            format!(
                "CREATE KEYSPACE {} WITH replication = {replication}",
                node.keyspace
            ),
            format!("CREATE TABLE kv {table}"),
        ] {
            control.statement(&statement, LIMIT).expect("a statement");
        }
        let refused = client.try_session().err().expect("it is not ours");
        assert_eq!(refused.class, ErrorClass::Rejected, "{refused}");
        assert!(
            refused.message.contains(&format!("{}.kv", node.keyspace)),
            "{refused}"
        );
        let refused = control.reset(LIMIT).expect_err("it is not ours");
        assert_eq!(refused.class, ErrorClass::Rejected, "{refused}");
        let there = control.statement("SELECT count(*) FROM kv", LIMIT);
        assert_eq!(there.expect("it stays"), "0");
    }
}

#[test]
fn a_keyspace_with_other_copies_than_said_is_refused() {
    let Some(node) = Node::start() else { return };
    node.open(json!({}), &[]).session();
    let other = node.open(json!({ "replication_factor": 2 }), &[]);
    let refused = other.try_session().err().expect("there is one copy");
    assert_eq!(refused.class, ErrorClass::Rejected);
    assert!(
        refused.message.contains("1 copies (datacenter1), not 2"),
        "{refused}"
    );
    node.open(json!({ "replication_factor": 1 }), &[]).session();
}

#[test]
fn the_cold_side_tells_what_the_server_is_and_how_it_is_asked() {
    let Some(node) = Node::start() else { return };
    let options = json!({
        "compaction": "LeveledCompactionStrategy", "compression": "none", "write_consistency": "quorum",
    });
    let client = node.open(options, &[]);
    let mut control = client.control();
    control.ready(LIMIT).expect("it is ready");
    assert_eq!(
        control.version(LIMIT).expect("a version"),
        "Cassandra 5.0.9"
    );
    let durability = control.durability(LIMIT).expect("it can be asked");
    assert_eq!(durability, Some(Durability::Group));
    assert!(control.round_trip(LIMIT).expect("a round trip") < Duration::from_secs(1));
    client.session();
    let settings = control.settings(LIMIT).expect("settings");
    let value = |name: &str| {
        let found = settings.iter().find(|(of, _)| of == name);
        found.map_or("", |(_, value)| value.as_str())
    };
    assert_eq!(
        value("partitioner"),
        "org.apache.cassandra.dht.Murmur3Partitioner"
    );
    assert_eq!(value("cluster_size"), "1");
    assert_eq!(
        value("replication"),
        "class=NetworkTopologyStrategy datacenter1=1"
    );
    assert!(value("compaction").contains("class=LeveledCompactionStrategy"));
    assert_eq!(value("compression"), "enabled=false");
    assert_eq!(value("commitlog_sync"), "periodic");
    assert_eq!(
        (value("read_consistency"), value("write_consistency")),
        ("one", "quorum")
    );
    assert_eq!((value("retries"), value("speculative")), ("0", "off"));
}

#[test]
fn the_cold_side_keeps_to_its_limit_behind_a_gate_that_shuts() {
    let Some(node) = Node::start() else { return };
    let (gate, endpoint) = node.gate();
    let mut control = open(&endpoint, json!({}), &[]).control();
    control.ready(LIMIT).expect("it is ready");
    gate.shut(true);
    let start = Instant::now();
    let limit = Duration::from_millis(100);
    let late = control.ready(limit).expect_err("nothing passes");
    assert!(start.elapsed() < Duration::from_secs(1));
    assert_eq!(late.class, ErrorClass::Timeout);
    gate.shut(false);
    control.ready(LIMIT).expect("it goes on");
}

#[test]
fn what_a_server_refuses_is_repeated_only_where_said_and_then_counted() {
    let Some(node) = Node::start() else { return };
    for retries in [0, 3] {
        let options = json!({ "write_consistency": "two", "retries": retries });
        let client = node.open(options, &[]);
        let mut session = client.session();
        let (outcome, reply) = client.execute(&mut session, &set("k", b"v"));
        let refused = failure(outcome);
        assert_eq!(refused.class, ErrorClass::Server);
        assert_eq!(refused.code, "unavailable");
        assert!(!refused.broken);
        assert_eq!(reply.warnings, retries);
        let read = client.execute(&mut session, &get("k")).0;
        assert_eq!(read, Outcome::Missing);
    }
}

#[test]
fn a_refused_connection_is_a_failure_to_connect() {
    let port = crate::support::free_port();
    let client = open(
        &format!("cassandra://me:secret@127.0.0.1:{port}"),
        json!({}),
        &[],
    );
    let refused = client.try_session().err().expect("nobody is there");
    assert_eq!(refused.class, ErrorClass::Connect, "{refused}");
    assert!(
        refused.broken && !refused.message.contains("secret"),
        "{refused}"
    );
    let limit = Duration::from_secs(2);
    let refused = client.control().ready(limit).expect_err("nobody is there");
    assert_eq!(refused.class, ErrorClass::Connect, "{refused}");
}

const LATE_SESSIONS: usize = 20;
const LATE_ROUNDS: usize = 400;

/// Every key has a value of its own, so that an answer that reaches the wrong one shows.
#[test]
fn a_late_answer_is_never_anothers() {
    let Some(node) = Node::start() else { return };
    let (gate, endpoint) = node.gate();
    let client = open(&endpoint, json!({}), &[]);
    let content = |key: usize| crate::facts::value(key, 50 + 37 * (key % 100));
    let key = |number: usize| format!("late-{number}");
    let mut session = client.session();
    for number in 0..200 {
        let written = client.execute(&mut session, &set(&key(number), &content(number)));
        assert_eq!(written.0, Outcome::Done);
    }
    let before = gate.accepted();
    gate.delay(Duration::from_millis(6));
    let late = AtomicU32::new(0);
    let read = AtomicU32::new(0);
    client.run(async {
        let mut sessions = Vec::new();
        for _ in 0..LATE_SESSIONS {
            sessions.push(client.open_session().await.expect("a session"));
        }
        let all = sessions
            .into_iter()
            .enumerate()
            .map(|(place, mut session)| {
                let (late, read) = (&late, &read);
                async move {
                    for round in 0..LATE_ROUNDS {
                        let number = (place * 31 + round * 7) % 200;
                        let wanted = verify(key(number).as_bytes(), &content(number));
                        let mut reply = Reply::default();
                        let limit = Duration::from_millis(1 + (place + round * 5) as u64 % 12);
                        let answer = session.execute(&wanted, &mut reply);
                        match tokio::time::timeout(limit, answer).await {
                            // As the engine does it with a session that survives: it is used again at once.
                            Err(_) => late.fetch_add(1, Ordering::Relaxed),
                            Ok(Outcome::Found) => read.fetch_add(1, Ordering::Relaxed),
                            Ok(other) => panic!("{other:?}"),
                        };
                    }
                }
            });
        join_all(all.collect()).await;
    });
    let (late, read) = (late.into_inner(), read.into_inner());
    eprintln!("{late} late, {read} read");
    assert!(late > 500 && read > 500, "{late} late, {read} read");
    assert_eq!(gate.accepted(), before, "a timeout needs no connection");
}

#[test]
fn a_server_that_hangs_is_not_stormed_with_connections() {
    let Some(node) = Node::start() else { return };
    let (gate, endpoint) = node.gate();
    let client = open(&endpoint, json!({}), &[]);
    let mut session = client.session();
    client.execute(&mut session, &set("k", b"v"));
    let before = gate.accepted();
    gate.shut(true);
    for _ in 0..500 {
        let limit = Duration::from_millis(1);
        assert_eq!(client.execute_within(&mut session, &get("k"), limit), None);
        assert!(session.survives_timeout());
    }
    let start = Instant::now();
    let limit = Duration::from_millis(20);
    assert_eq!(client.execute_within(&mut session, &get("k"), limit), None);
    assert!(start.elapsed() < Duration::from_millis(22 + 20));
    gate.shut(false);
    let read = client.execute(&mut session, &verify(b"k", b"v")).0;
    assert_eq!(read, Outcome::Found);
    assert_eq!(gate.accepted(), before);
}

#[test]
fn a_server_that_dies_is_told_at_once_and_found_again_soon() {
    let Some(node) = Node::start() else { return };
    let (gate, endpoint) = node.gate();
    let client = open(&endpoint, json!({}), &[]);
    let mut session = client.session();
    client.execute(&mut session, &set("k", b"v"));
    gate.shut(true);
    let wanted = get("k");
    let mut reply = Reply::default();
    let outcome = client.run(async {
        let mut running = std::pin::pin!(session.execute(&wanted, &mut reply));
        let early = tokio::time::timeout(Duration::from_millis(50), &mut running).await;
        assert!(early.is_err(), "a hung server answered");
        gate.kill();
        running.await
    });
    let lost = failure(outcome);
    assert_eq!(lost.class, ErrorClass::Reset, "{lost}");
    assert!(lost.broken && lost.unanswered);
    let before = gate.accepted();
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(1) {
        let refused = client.try_session().err().expect("nobody is there");
        assert_eq!(refused.class, ErrorClass::Connect, "{refused}");
        client.run(async { tokio::time::sleep(Duration::from_millis(1)).await });
    }
    let tried = gate.accepted() - before;
    assert!((1..60).contains(&tried), "{tried} connections in a second");
    gate.shut(false);
    gate.revive();
    let start = Instant::now();
    let mut session = loop {
        match client.try_session() {
            Ok(session) => break session,
            Err(_) => client.run(async { tokio::time::sleep(Duration::from_millis(5)).await }),
        }
    };
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
    let read = client.execute(&mut session, &verify(b"k", b"v")).0;
    assert_eq!(read, Outcome::Found);
}
