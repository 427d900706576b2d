//! A Redis Cluster of real nodes: slots that move, nodes that die or hang, and the driver that follows.

use crate::client::*;
use crate::support::{TestServer, free_port};
use dbbench::driver::redis::Redis;
use dbbench::driver::{CustomOperation, Session};
use dbbench::op::{ErrorClass, Operation, Outcome, Verb};
use redis::Connection;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub struct Cluster {
    nodes: Vec<TestServer>,
}

const PRIMARIES: usize = 3;

impl Cluster {
    /// Three primaries with a third of the slots each, and a replica for each where they are wanted.
    fn new(replicas: bool) -> Option<Cluster> {
        let count = if replicas { 2 * PRIMARIES } else { PRIMARIES };
        let node = |_| {
            let bus = free_port().to_string();
            TestServer::redis(&[
                "--cluster-enabled",
                "yes",
                "--cluster-port",
                &bus,
                "--cluster-node-timeout",
                "1000",
                "--cluster-replica-validity-factor",
                "0",
                "--repl-diskless-sync",
                "no",
            ])
        };
        let nodes: Vec<TestServer> = (0..count).map(node).collect::<Option<_>>()?;
        let cluster = Cluster { nodes };
        for primary in 0..PRIMARIES {
            let (first, last) = slots_of(primary);
            cluster.tell(primary, &format!("CLUSTER ADDSLOTSRANGE {first} {last}"));
        }
        for number in 0..count {
            cluster.tell(number, &format!("CLUSTER SET-CONFIG-EPOCH {}", number + 1));
        }
        let bus: String = cluster.ask(0, "CLUSTER NODES");
        let bus = bus
            .split('@')
            .nth(1)
            .and_then(|rest| rest.split([',', ' ']).next());
        let bus = bus.expect("its bus has a port").to_owned();
        let first = cluster.nodes[0].port;
        for number in 1..count {
            cluster.tell(number, &format!("CLUSTER MEET 127.0.0.1 {first} {bus}"));
        }
        let known = format!("cluster_known_nodes:{count}\r");
        cluster.until(|number| {
            cluster
                .ask::<String>(number, "CLUSTER INFO")
                .contains(&known)
        });
        for replica in PRIMARIES..count {
            let primary = cluster.id(replica - PRIMARIES);
            cluster.tell(replica, &format!("CLUSTER REPLICATE {primary}"));
        }
        for number in 0..count {
            let endpoint = cluster.endpoint_of(number);
            let client = cluster.client_at(&[endpoint], json!({}), &[]);
            let began = Instant::now();
            while let Err(failure) = client.control().ready(Duration::from_secs(1)) {
                assert!(began.elapsed() < Duration::from_secs(30), "{failure}");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Some(cluster)
    }

    fn until(&self, what: impl Fn(usize) -> bool) {
        let began = Instant::now();
        for number in 0..self.nodes.len() {
            while !what(number) {
                assert!(began.elapsed() < Duration::from_secs(30), "node {number}");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }

    fn endpoint_of(&self, node: usize) -> String {
        format!("redis://127.0.0.1:{}", self.nodes[node].port)
    }

    /// The redis crate's own connection to one node.
    fn connection(&self, node: usize) -> Connection {
        let client = redis::Client::open(self.endpoint_of(node)).expect("an address");
        client.get_connection().expect("a connection")
    }

    fn ask<T: redis::FromRedisValue>(&self, node: usize, command: &str) -> T {
        let mut words = command.split(' ');
        let mut command = redis::cmd(words.next().expect("a name"));
        words.for_each(|word| {
            command.arg(word);
        });
        command
            .query(&mut self.connection(node))
            .expect("an answer")
    }

    fn tell(&self, node: usize, command: &str) {
        self.ask::<redis::Value>(node, command);
    }

    fn id(&self, node: usize) -> String {
        self.ask(node, "CLUSTER MYID")
    }

    fn client(&self, table: Value, operations: &[Value]) -> Client<Redis> {
        let endpoints: Vec<String> = (0..self.nodes.len())
            .map(|node| self.endpoint_of(node))
            .collect();
        self.client_at(&endpoints, table, operations)
    }

    fn client_at(&self, endpoints: &[String], table: Value, operations: &[Value]) -> Client<Redis> {
        let mut options = table.as_object().expect("a table").clone();
        options.insert("cluster".to_owned(), true.into());
        let operations = operations.iter().map(|table| {
            Some(CustomOperation {
                name: "own".to_owned(),
                table: table.as_object().expect("a table").clone(),
            })
        });
        Client::open(endpoints, options, operations.collect()).expect("the driver opens")
    }

    /// A key in a slot of this primary's, as the server says.
    fn key_at(&self, primary: usize, number: usize) -> String {
        let (first, last) = slots_of(primary);
        let keys = (0..).map(|tried| format!("key-{number}-{tried}"));
        let mut here = keys.filter(|key| {
            let slot: u16 = self.ask(0, &format!("CLUSTER KEYSLOT {key}"));
            (first..=last).contains(&slot)
        });
        here.next().expect("there are many keys")
    }

    /// Gives a slot to another primary, without the keys in it.
    fn give(&self, slot: u16, to: usize) {
        let id = self.id(to);
        for node in [to]
            .into_iter()
            .chain((0..PRIMARIES).filter(|node| *node != to))
        {
            self.tell(node, &format!("CLUSTER SETSLOT {slot} NODE {id}"));
        }
    }

    fn slot(&self, key: &str) -> u16 {
        self.ask(0, &format!("CLUSTER KEYSLOT {key}"))
    }
}

fn slots_of(primary: usize) -> (u16, u16) {
    [(0, 5460), (5461, 10922), (10923, 16383)][primary]
}

impl Harness for Cluster {
    type Driver = Redis;

    fn start() -> Option<Self> {
        Cluster::new(false)
    }

    fn endpoint(&self) -> Option<String> {
        Some(self.endpoint_of(0))
    }

    fn options() -> Map<String, Value> {
        json!({ "cluster": true })
            .as_object()
            .expect("a table")
            .clone()
    }
}

fn value(number: usize) -> Vec<u8> {
    format!("value {number} ")
        .into_bytes()
        .repeat(1 + number % 300)
}

#[test]
fn each_key_goes_to_its_slots_owner_and_operations_are_counted_by_node() {
    let Some(cluster) = Cluster::new(false) else {
        return;
    };
    // Only one node is named: it tells of the others.
    let client = cluster.client_at(&[cluster.endpoint_of(1)], json!({ "protocol": 3 }), &[]);
    let mut session = client.session();
    assert_eq!(session.connections(), 3);
    for number in 0..1_000 {
        let key = format!("user:{number}:{{tag-{}}}", number % 100);
        let (outcome, reply) = client.execute(&mut session, &set(&key, &value(number)));
        assert_eq!((outcome, reply.warnings), (Outcome::Done, 0), "{key}");
    }
    let sizes: Vec<u64> = (0..3).map(|node| cluster.ask(node, "DBSIZE")).collect();
    assert_eq!(sizes.iter().sum::<u64>(), 1_000);
    let ports: BTreeMap<u16, u64> = (cluster.nodes.iter().map(|node| node.port))
        .zip(sizes)
        .collect();
    let answered = session.take_answered();
    let answered: BTreeMap<u16, u64> = (answered.iter())
        .map(|(at, count)| (at.port(), *count))
        .collect();
    assert_eq!(answered, ports);
    assert!(session.take_answered().is_empty());
    // A batch is dealt over the nodes, and answered in its order.
    let batch: Vec<Operation> = (0..300)
        .map(|number| {
            let key = format!("user:{number}:{{tag-{}}}", number % 100);
            match number % 7 {
                3 => set(&key, &value(number)),
                _ => verify(key.as_bytes(), &value(number)),
            }
        })
        .collect();
    let (outcomes, _) = client.execute_batch(&mut session, &batch);
    for (number, outcome) in outcomes.iter().enumerate() {
        let expected = if number % 7 == 3 {
            Outcome::Done
        } else {
            Outcome::Found
        };
        assert_eq!(*outcome, expected, "{number}");
    }
    let answered: u64 = session.take_answered().iter().map(|(_, count)| count).sum();
    assert_eq!(answered, 300);
    let settings = client.control().settings(LIMIT).unwrap();
    let told = settings.iter().find(|(name, _)| name == "cluster").unwrap();
    assert_eq!(told.1, "3 primaries, 0 replicas, 16384 slots");
    client.control().reset(LIMIT).unwrap();
    assert!((0..3).all(|node| cluster.ask::<u64>(node, "DBSIZE") == 0));
}

#[test]
fn a_scan_goes_on_from_node_to_node() {
    let Some(cluster) = Cluster::new(false) else {
        return;
    };
    let client = cluster.client(json!({ "scan_count": 100 }), &[]);
    let mut session = client.session();
    for number in 0..600 {
        client.execute(&mut session, &set(&format!("key-{number}"), b""));
    }
    session.take_answered();
    for _ in 0..12 {
        let (outcome, _) = client.execute(&mut session, &operation(Verb::Scan, b"", b""));
        assert_eq!(outcome, Outcome::Done);
    }
    assert_eq!(session.take_answered().len(), 3);
}

#[test]
fn a_slot_that_has_moved_costs_one_redirection() {
    let Some(cluster) = Cluster::new(false) else {
        return;
    };
    let client = cluster.client(json!({}), &[]);
    let mut sessions = [client.session(), client.session()];
    let key = cluster.key_at(0, 1);
    cluster.give(cluster.slot(&key), 2);
    let (outcome, reply) = client.execute(&mut sessions[0], &set(&key, b"v"));
    assert_eq!((outcome, reply.warnings), (Outcome::Done, 1));
    // The other session of this thread knows it now, too.
    for session in &mut sessions {
        let (outcome, reply) = client.execute(session, &verify(key.as_bytes(), b"v"));
        assert_eq!((outcome, reply.warnings), (Outcome::Found, 0));
    }
    // In the middle of a batch. A node gives no slot away that holds keys.
    cluster.tell(2, &format!("DEL {key}"));
    cluster.give(cluster.slot(&key), 1);
    let others = [
        cluster.key_at(0, 2),
        cluster.key_at(1, 2),
        cluster.key_at(2, 2),
    ];
    let batch: Vec<Operation> = [&others[0], &others[1], &key, &others[2]]
        .map(|key| set(key, key.as_bytes()))
        .to_vec();
    let (outcomes, replies) = client.execute_batch(&mut sessions[0], &batch);
    assert_eq!(outcomes, vec![Outcome::Done; 4]);
    assert_eq!(
        replies
            .iter()
            .map(|reply| reply.warnings)
            .collect::<Vec<_>>(),
        [0, 0, 1, 0]
    );
    let read = verify(key.as_bytes(), key.as_bytes());
    assert_eq!(client.execute(&mut sessions[1], &read).0, Outcome::Found);
}

#[test]
fn a_slot_on_its_way_is_asked_where_the_key_is() {
    let Some(cluster) = Cluster::new(false) else {
        return;
    };
    let both = json!({ "command": ["MGET", "$key", "{$key}-other"] });
    let client = cluster.client(json!({ "wait": 1, "wait_timeout": "1ms" }), &[]);
    let plain = cluster.client(json!({}), &[both]);
    let mut session = plain.session();
    let key = cluster.key_at(0, 1);
    let other = format!("{{{key}}}-other");
    let third = format!("{{{key}}}-third");
    for key in [&key, &other] {
        plain.execute(&mut session, &set(key, key.as_bytes()));
    }
    let (slot, to) = (cluster.slot(&key), cluster.nodes[1].port);
    cluster.tell(
        1,
        &format!("CLUSTER SETSLOT {slot} IMPORTING {}", cluster.id(0)),
    );
    cluster.tell(
        0,
        &format!("CLUSTER SETSLOT {slot} MIGRATING {}", cluster.id(1)),
    );
    let migrate = |key: &str| cluster.tell(0, &format!("MIGRATE 127.0.0.1 {to} {key} 0 5000"));
    migrate(&key);
    // Moved already: by ASK, each time anew, since the slot is not the other's yet.
    for _ in 0..2 {
        let (outcome, reply) = plain.execute(&mut session, &verify(key.as_bytes(), key.as_bytes()));
        assert_eq!((outcome, reply.warnings), (Outcome::Found, 1));
    }
    let change = operation(Verb::ReadModifyWrite, key.as_bytes(), b"changed");
    assert_eq!(plain.execute(&mut session, &change).0, Outcome::Found);
    let large = vec![b'x'; 100_000];
    let (outcome, reply) = plain.execute(&mut session, &set(&third, &large));
    assert_eq!((outcome, reply.warnings), (Outcome::Done, 1));
    // Not moved yet.
    let (outcome, reply) = plain.execute(&mut session, &verify(other.as_bytes(), other.as_bytes()));
    assert_eq!((outcome, reply.warnings), (Outcome::Found, 0));
    // Here and there: until its time is over.
    let asked = operation(Verb::Custom(0), key.as_bytes(), b"");
    let limit = Duration::from_millis(100);
    assert_eq!(plain.execute_within(&mut session, &asked, limit), None);
    migrate(&other);
    assert_eq!(plain.execute(&mut session, &asked).0, Outcome::Done);
    // The wait behind a write is redirected with it.
    let mut waiting = client.session();
    let few = failure(client.execute(&mut waiting, &set(&third, &large)).0);
    assert_eq!(few.code, "WAIT");
    cluster.give(slot, 1);
    let read = verify(third.as_bytes(), &large);
    assert_eq!(plain.execute(&mut session, &read).0, Outcome::Found);
    let (outcome, reply) = plain.execute(&mut session, &verify(key.as_bytes(), b"changed"));
    assert_eq!((outcome, reply.warnings), (Outcome::Found, 0));
}

/// Every write that was acknowledged, by a replica too, is read back after the replica has taken over; on the way an
/// operation fails or is right.
#[test]
fn after_a_failover_every_value_is_what_was_written() {
    let Some(cluster) = Cluster::new(true) else {
        return;
    };
    let client = cluster.client(json!({ "wait": 1, "wait_timeout": "1s" }), &[]);
    let mut session = client.session();
    for number in 0..600 {
        let (outcome, _) =
            client.execute(&mut session, &set(&format!("k{number}"), &value(number)));
        assert_eq!(outcome, Outcome::Done);
    }
    cluster.nodes[1].kill();
    let (mut failed, mut read, mut round_failed) = (0_u64, 0_u64, 1_u64);
    let began = Instant::now();
    // Until a whole round over all keys went well.
    while round_failed > 0 {
        assert!(
            began.elapsed() < LIMIT,
            "nobody took over: {failed} failures"
        );
        round_failed = 0;
        for number in 0..600 {
            let key = format!("k{number}");
            match client
                .execute(&mut session, &verify(key.as_bytes(), &value(number)))
                .0
            {
                Outcome::Found => read += 1,
                Outcome::Failed(failure) => {
                    assert!(!failure.broken, "the session lives on: {failure}");
                    round_failed += 1;
                }
                other => panic!("{key}: {other:?} after {read} good answers"),
            }
        }
        failed += round_failed;
    }
    assert!(failed > 0, "its primary was killed, and nobody noticed");
    // Pauses keep a dead node from being asked a million times.
    assert!(
        failed < 20_000,
        "{failed} failures in {:?}",
        began.elapsed()
    );
    let plain = cluster.client(json!({}), &[]);
    let mut session = plain.session();
    let (outcome, reply) = plain.execute(&mut session, &set("k0", b"new"));
    assert_eq!((outcome, reply.warnings), (Outcome::Done, 0));
    let ports: Vec<u16> = session
        .take_answered()
        .iter()
        .map(|(at, _)| at.port())
        .collect();
    assert!(!ports.contains(&cluster.nodes[1].port));
}

#[test]
fn a_node_that_hangs_costs_its_own_operations_only() {
    let Some(cluster) = Cluster::new(false) else {
        return;
    };
    let client = cluster.client(json!({}), &[]);
    let mut session = client.session();
    assert!(session.survives_timeout());
    let keys: Vec<String> = (0..3).map(|primary| cluster.key_at(primary, 7)).collect();
    for key in &keys {
        client.execute(&mut session, &set(key, key.as_bytes()));
    }
    let limit = Duration::from_millis(20);
    for _ in 0..5 {
        cluster.nodes[2].hang();
        let lost = client.execute_within(&mut session, &get(&keys[2]), limit);
        assert_eq!(lost, None);
        for key in &keys[..2] {
            let read = verify(key.as_bytes(), key.as_bytes());
            assert_eq!(client.execute(&mut session, &read).0, Outcome::Found);
        }
        cluster.nodes[2].go_on();
        let other = format!("{{{}}}", keys[2]);
        let began = Instant::now();
        loop {
            let written = client.execute_within(&mut session, &set(&other, b"other"), limit * 5);
            if written == Some(Outcome::Done) {
                break;
            }
            assert!(began.elapsed() < LIMIT, "{written:?}");
        }
        let read = verify(other.as_bytes(), b"other");
        assert_eq!(client.execute(&mut session, &read).0, Outcome::Found);
    }
}

#[test]
fn a_dead_seed_is_passed_over_and_a_lone_server_is_no_cluster() {
    let Some(cluster) = Cluster::new(false) else {
        return;
    };
    let nobody = format!("redis://127.0.0.1:{}", free_port());
    let client = cluster.client_at(&[nobody.clone(), cluster.endpoint_of(2)], json!({}), &[]);
    assert_eq!(client.session().connections(), 3);
    let client = cluster.client_at(&[nobody], json!({}), &[]);
    let refused = client.try_session().err().expect("there is nobody");
    assert_eq!((refused.class, refused.broken), (ErrorClass::Connect, true));
    let alone = TestServer::redis(&[]).expect("a server");
    let endpoint = format!("redis://127.0.0.1:{}", alone.port);
    let client = cluster.client_at(&[endpoint], json!({}), &[]);
    let refused = client.try_session().err().expect("it is no cluster");
    assert_eq!(refused.class, ErrorClass::Connect);
    assert!(
        refused.message.contains("is no node of a cluster"),
        "{refused}"
    );
    assert!(client.control().ready(LIMIT).is_err());
}
