//! Redis with replicas: writes that wait for them, readiness that means replicated, and how far they are behind.

use crate::client::*;
use crate::support::TestServer;
use dbbench::driver::redis::Redis;
use dbbench::op::{ErrorClass, Outcome, Reply, Verb};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn at(server: &TestServer) -> String {
    format!("redis://127.0.0.1:{}", server.port)
}

fn open(servers: &[&TestServer], table: Value, operations: &[Value]) -> Client<Redis> {
    let endpoints: Vec<String> = servers.iter().map(|server| at(server)).collect();
    let options = table.as_object().expect("a table").clone();
    let operations = operations.iter().map(|table| {
        Some(dbbench::driver::CustomOperation {
            name: "own".to_owned(),
            table: table.as_object().expect("a table").clone(),
        })
    });
    Client::open(&endpoints, options, operations.collect()).expect("the driver opens")
}

/// Its copies go over the network at once, without a disk, which is when a link that is up says least.
fn primary() -> Option<TestServer> {
    TestServer::redis(&[
        "--repl-diskless-sync",
        "yes",
        "--repl-diskless-sync-delay",
        "1",
    ])
}

fn replica(primary: &TestServer) -> TestServer {
    let of = format!("127.0.0.1 {}", primary.port);
    TestServer::redis(&["--replicaof", &of]).expect("a replica starts where its primary did")
}

/// Asks until it is ready; how often it was not.
fn await_ready(client: &Client<Redis>) -> usize {
    let began = Instant::now();
    let mut control = client.control();
    let mut not_yet = 0;
    while let Err(failure) = control.ready(Duration::from_millis(500)) {
        assert!(began.elapsed() < LIMIT, "{failure}");
        not_yet += 1;
        std::thread::sleep(Duration::from_millis(5));
    }
    not_yet
}

fn within(limit: Duration, mut what: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while !what() {
        if began.elapsed() > limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    true
}

#[test]
fn a_replica_is_ready_when_it_serves_what_its_primary_was_given() {
    let Some(primary) = primary() else { return };
    let writer = open(&[&primary], json!({}), &[]);
    writer.execute(&mut writer.session(), &set("before", b"v"));
    let replica = replica(&primary);
    let reader = open(&[&replica], json!({}), &[]);
    assert!(
        await_ready(&reader) > 0,
        "it cannot have had a copy at once"
    );
    let mut session = reader.session();
    let read = |session: &mut _| reader.execute(session, &verify(b"before", b"v")).0;
    assert_eq!(read(&mut session), Outcome::Found);
    writer.execute(&mut writer.session(), &set("after", b"v"));
    let arrived = within(Duration::from_millis(500), || {
        reader.execute(&mut session, &get("after")).0 == Outcome::Found
    });
    assert!(arrived, "it is ready, and a write did not come to it");
    // The marker of the question is gone, on both.
    let mut control = reader.control();
    let gone = within(Duration::from_secs(2), || {
        control.statement("DBSIZE", LIMIT).unwrap() == "2"
    });
    assert!(gone, "{}", control.statement("KEYS *", LIMIT).unwrap());
    primary.kill();
    let down = within(Duration::from_secs(5), || {
        let failure = control.ready(Duration::from_millis(500)).err();
        failure.is_some_and(|failure| failure.message.contains("master_link_status:down"))
    });
    assert!(down, "a replica without its primary is not ready");
}

#[test]
fn a_write_to_a_replica_says_that_it_is_read_only() {
    let Some(primary) = primary() else { return };
    let replica = replica(&primary);
    let client = open(&[&replica], json!({}), &[]);
    await_ready(&client);
    let mut session = client.session();
    for protocol_operation in [Verb::Set, Verb::Insert, Verb::Delete, Verb::Increment] {
        let wanted = operation(protocol_operation, b"k", b"v");
        let failure = failure(client.execute(&mut session, &wanted).0);
        assert_eq!(
            (failure.class, failure.code.as_str()),
            (ErrorClass::Server, "READONLY")
        );
        assert!(!failure.broken);
        assert!(failure.message.contains("read only replica"), "{failure}");
    }
    assert_eq!(client.execute(&mut session, &get("k")).0, Outcome::Missing);
}

#[test]
fn a_write_waits_for_its_replicas_and_fails_where_they_are_too_few() {
    let Some(primary) = primary() else { return };
    let replicas = [replica(&primary), replica(&primary)];
    for replica in &replicas {
        await_ready(&open(&[replica], json!({}), &[]));
    }
    for protocol in [2, 3] {
        let table = json!({ "protocol": protocol, "wait": 2, "wait_timeout": "300ms" });
        let client = open(&[&primary, &replicas[0], &replicas[1]], table, &[]);
        let mut session = client.session();
        client.control().reset(LIMIT).unwrap();
        // Small values are sent in one piece, large ones gathered.
        for length in [3, 100_000] {
            let value = vec![b'v'; length];
            let key = format!("k{length}");
            assert_eq!(
                client.execute(&mut session, &set(&key, &value)).0,
                Outcome::Done
            );
            // It is there at once.
            for replica in &replicas {
                let reader = open(&[replica], json!({}), &[]);
                let read = reader.execute(&mut reader.session(), &verify(key.as_bytes(), &value));
                assert_eq!(read.0, Outcome::Found, "{length} bytes");
            }
        }
        let mut run =
            |verb, key: &[u8]| client.execute(&mut session, &operation(verb, key, b"v")).0;
        assert_eq!(run(Verb::Insert, b"new"), Outcome::Done);
        assert_eq!(
            failure(run(Verb::Insert, b"new")).class,
            ErrorClass::Rejected
        );
        assert_eq!(run(Verb::Update, b"new"), Outcome::Done);
        assert_eq!(run(Verb::Update, b"none"), Outcome::Missing);
        assert_eq!(run(Verb::ReadModifyWrite, b"new"), Outcome::Found);
        assert_eq!(run(Verb::Increment, b"count"), Outcome::Done);
        assert_eq!(failure(run(Verb::Increment, b"new")).code, "ERR");
        assert_eq!(run(Verb::Delete, b"new"), Outcome::Done);
        assert_eq!(run(Verb::Get, b"new"), Outcome::Missing);
    }
    let table = json!({ "wait": 2, "wait_timeout": "50ms" });
    let client = open(&[&primary], table, &[]);
    let mut session = client.session();
    replicas[1].hang();
    let began = Instant::now();
    let few = failure(client.execute(&mut session, &set("few", b"v")).0);
    assert!(began.elapsed() >= Duration::from_millis(50));
    assert_eq!(
        (few.class, few.code.as_str(), few.broken),
        (ErrorClass::Server, "WAIT", false)
    );
    assert!(few.message.contains("1 of 2 replicas within 50ms"), "{few}");
    let batch = [
        set("a", b"1"),
        get("few"),
        operation(Verb::ReadModifyWrite, b"few", b"w"),
        verify(b"few", b"w"),
    ];
    let (outcomes, _) = client.execute_batch(&mut session, &batch);
    let codes: Vec<&str> = outcomes
        .iter()
        .map(|outcome| match outcome {
            Outcome::Failed(failure) => failure.code.as_str(),
            Outcome::Found => "found",
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(codes, ["WAIT", "found", "WAIT", "found"]);
    replicas[1].go_on();
    let (outcome, _) = client.execute(&mut session, &verify(b"few", b"w"));
    assert_eq!(outcome, Outcome::Found);
}

#[test]
fn the_lag_is_what_a_replica_has_not_acknowledged() {
    let Some(primary) = primary() else { return };
    let replica = replica(&primary);
    await_ready(&open(&[&replica], json!({}), &[]));
    let client = open(
        &[&primary],
        json!({}),
        &[json!({ "replication_lag": true })],
    );
    let mut session = client.session();
    let mut control = client.control();
    let lag = operation(Verb::Custom(0), b"", b"");
    let mut asked = || {
        let mut reply = Reply {
            wants_text: true,
            ..Reply::default()
        };
        let outcome = client.run(dbbench::driver::Session::execute(
            &mut session,
            &lag,
            &mut reply,
        ));
        assert_eq!(outcome, Outcome::Done);
        reply
            .text
            .expect("a value")
            .parse::<u64>()
            .expect("a number")
    };
    assert!(
        within(Duration::from_secs(5), || asked() == 0),
        "it never comes to nothing"
    );
    replica.hang();
    let mut writer = client.session();
    for number in 0..100 {
        client.execute(&mut writer, &set(&format!("k{number}"), &[7; 1_000]));
    }
    let behind = asked();
    assert!((100_000..120_000).contains(&behind), "{behind}");
    assert_eq!(
        control.statement(" replication_lag ", LIMIT).unwrap(),
        behind.to_string()
    );
    replica.go_on();
    assert!(
        within(Duration::from_secs(5), || asked() == 0),
        "it does not catch up"
    );
    let reader = open(&[&replica], json!({}), &[]);
    let failure = reader
        .control()
        .statement("replication_lag", LIMIT)
        .unwrap_err();
    assert!(
        failure.message.contains("asked of the primary"),
        "{failure}"
    );
}

#[test]
fn settings_tell_the_role_and_the_other_side() {
    let Some(primary) = primary() else { return };
    let replica = replica(&primary);
    let value = |client: &Client<Redis>, name: &str| {
        let settings = client.control().settings(LIMIT).unwrap();
        let found = settings.into_iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value)
    };
    let of_replica = open(&[&replica], json!({}), &[]);
    await_ready(&of_replica);
    assert_eq!(value(&of_replica, "role").as_deref(), Some("replica"));
    let address = format!("127.0.0.1:{}", primary.port);
    assert_eq!(value(&of_replica, "primary"), Some(address));
    let of_primary = open(&[&primary], json!({}), &[]);
    assert_eq!(value(&of_primary, "role").as_deref(), Some("primary"));
    let online = format!("127.0.0.1:{} online", replica.port);
    assert_eq!(value(&of_primary, "replicas"), Some(online));
}
