//! The cassandra driver on three real nodes: who coordinates, and what a node that hangs, dies and comes back does to the
//! operations that go to it and to those that do not. About 1.7 GB of memory.
#![cfg(feature = "cassandra")]

#[path = "../support/cassandra.rs"]
mod cassandra_nodes;
#[path = "../conformance/client.rs"]
mod client;
#[path = "../support/guarded.rs"]
mod guarded;
#[path = "../campaign/kit.rs"]
mod kit;
#[path = "../support/mod.rs"]
mod support;

use cassandra_nodes::{Cluster, on};
use client::*;
use dbbench::driver::cassandra::Cassandra;
use dbbench::driver::{Control, Session};
use dbbench::op::{ErrorClass, Outcome};
use kit::Place;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// A client of one endpoint, or of all.
fn open(endpoints: &[String], options: Value) -> Client<Cassandra> {
    let options = options.as_object().expect("a table").clone();
    Client::open(endpoints, options, Vec::new()).expect("the driver opens")
}

fn pinned(cluster: &Cluster, node: usize, keyspace: &str, options: Value) -> Client<Cassandra> {
    open(&[cluster.endpoint(node, keyspace)], options)
}

/// Runs a test on the cluster, all nodes of which know each other.
fn on_three(test: impl FnOnce(&mut Cluster) + Send + 'static) {
    on(3, |cluster| {
        let deadline = Instant::now() + Duration::from_secs(60);
        for node in 0..3 {
            let mut endpoints = cluster.endpoints("ready");
            endpoints.swap(0, node);
            let mut control = open(&endpoints, json!({})).control();
            while let Err(failure) = control.ready(LIMIT) {
                assert!(Instant::now() < deadline, "{failure}");
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        test(cluster);
    });
}

fn value(number: usize) -> Vec<u8> {
    let pattern = format!("{number:010}");
    pattern.bytes().cycle().take(80_000).collect()
}

/// Requests that a node has had from clients which are still connected.
fn requests(control: &mut dyn Control) -> u64 {
    let asked = control.statement("SELECT sum(request_count) FROM system_views.clients", LIMIT);
    asked.expect("an answer").parse().expect("a number")
}

#[test]
fn operations_go_to_the_node_of_their_endpoint_and_no_other() {
    on_three(|cluster| {
        let clients: Vec<_> = (0..3)
            .map(|node| pinned(cluster, node, "who", json!({ "replication_factor": 2 })))
            .collect();
        let mut controls: Vec<_> = clients.iter().map(Client::control).collect();
        let mut session = clients[1].session();
        assert_eq!(session.peer(), cluster.address(1).parse().ok());
        let mut before = Vec::new();
        for control in &mut controls {
            before.push(requests(control.as_mut()));
        }
        for number in 0..200 {
            let key = format!("k{number}");
            let written = clients[1].execute(&mut session, &set(&key, b"v")).0;
            assert_eq!(written, Outcome::Done);
        }
        for (node, control) in controls.iter_mut().enumerate() {
            let more = requests(control.as_mut()) - before[node];
            match node {
                1 => assert!(more >= 200, "node {node}: {more}"),
                _ => assert!(more < 20, "node {node}: {more}"),
            }
        }
    });
}

#[test]
fn a_cluster_is_ready_when_as_many_nodes_are_known_as_the_target_has() {
    on_three(|cluster| {
        let mut endpoints = cluster.endpoints("ready");
        open(&endpoints, json!({}))
            .control()
            .ready(LIMIT)
            .expect("three nodes");
        endpoints.push("cassandra://127.0.0.1:9".to_owned());
        let early = open(&endpoints, json!({})).control().ready(LIMIT);
        let early = early.expect_err("there are no four");
        assert!(early.message.contains("knows 3 of 4 nodes"), "{early}");
    });
}

/// The whole program: endpoints and their operations, as the results have them.
fn scenario(cluster: &Cluster, options: &str, timeout: &str) -> Place {
    let endpoints = cluster.endpoints("dbbench");
    let place = Place::with(&format!(
        r#"
schema = 1
name = "three-nodes"
[targets.cassandra]
driver = "cassandra"
options = {{ replication_factor = 2, {options} }}
[targets.cassandra.endpoints]
write = ["{0}"]
read = ["{0}", "{1}", "{2}"]
[workload.keys]
format = "key%010d"
count = 300
[workload.values]
size = 80_000
content = "random"
[[phases]]
name = "load"
operation = "set"
endpoints = "write"
threads = 4
operations = 300
keys = {{ distribution = "sequential" }}
timeout = "60s"
[[phases]]
name = "steady"
timeout = "{timeout}"
[[phases.groups]]
name = "read"
operation = "get"
threads = 6
operations = 900
verify = true
endpoints = "read"
[[phases.groups]]
name = "write"
operation = "set"
threads = 2
operations = 100
endpoints = "write"
"#,
        endpoints[0], endpoints[1], endpoints[2]
    ));
    place.scenario(&[]).expect(0);
    place
}

fn row<'a>(rows: &'a [kit::Row], phase: &str, group: &str) -> &'a kit::Row {
    let found = rows
        .iter()
        .find(|row| row["phase"] == phase && row["group"] == group);
    found.expect("the group's row")
}

fn by_endpoint(row: &kit::Row) -> BTreeMap<String, u64> {
    let each = row["endpoints"].split(' ').map(|part| {
        let (label, count) = part.rsplit_once('=').expect("label=count");
        (label.to_owned(), count.parse().expect("a count"))
    });
    each.collect()
}

#[test]
fn results_count_the_operations_of_each_endpoint_dealt_or_chosen() {
    on_three(|cluster| {
        let nodes: Vec<String> = (0..3).map(|node| cluster.address(node)).collect();
        let rows = scenario(cluster, "", "30s").rows("operations.csv");
        let write = row(&rows, "steady", "write");
        assert_eq!(write["endpoints"], format!("{}=100", nodes[0]));
        let read = row(&rows, "steady", "read");
        assert_eq!(read["succeeded"], "900");
        let counts = by_endpoint(read);
        assert_eq!(counts.keys().cloned().collect::<Vec<_>>(), nodes);
        assert!(counts.values().all(|count| *count == 300), "{counts:?}");

        let rows = scenario(cluster, "routing = \"token\"", "30s").rows("operations.csv");
        let read = row(&rows, "steady", "read");
        assert_eq!(read["succeeded"], "900");
        let counts = by_endpoint(read);
        assert_eq!(counts.keys().cloned().collect::<Vec<_>>(), nodes);
        assert_eq!(counts.values().sum::<u64>(), 900);
        // Writes, too, go to whoever has the key, wherever the target says to find the cluster.
        assert_eq!(by_endpoint(row(&rows, "steady", "write")).len(), 3);
    });
}

#[test]
fn limits_of_a_millisecond_time_out_without_any_reconnection() {
    on_three(|cluster| {
        let rows = scenario(cluster, "", "1ms").rows("operations.csv");
        for group in ["read", "write"] {
            let row = row(&rows, "steady", group);
            let count = |name: &str| row[name].parse::<u64>().expect("a count");
            assert_eq!(count("reconnections"), 0, "{group}");
            assert_eq!(count("failed"), 0, "{group}");
            assert!(
                count("timed_out") > count("operations") / 2,
                "{group}: {row:?}"
            );
        }
    });
}

#[test]
fn a_node_that_hangs_answers_nobody_and_goes_on_as_if_nothing_had_been() {
    on_three(|cluster| {
        let options = json!({ "replication_factor": 1 });
        let clients = [
            pinned(cluster, 0, "hung", options.clone()),
            pinned(cluster, 2, "hung", options),
        ];
        let mut sessions: Vec<_> = clients.iter().map(Client::session).collect();
        for number in 0..30 {
            let written = set(&format!("k{number}"), &value(number));
            assert_eq!(
                clients[0].execute(&mut sessions[0], &written).0,
                Outcome::Done
            );
        }
        cluster.nodes[2].hang();
        let limit = Duration::from_millis(20);
        let mut answered = 0;
        for number in 0..30 {
            let wanted = verify(format!("k{number}").as_bytes(), &value(number));
            let start = Instant::now();
            let hung = clients[1].execute_within(&mut sessions[1], &wanted, limit);
            assert_eq!(hung, None, "a node that hangs answered");
            assert!(start.elapsed() < limit * 3, "{:?}", start.elapsed());
            let limit = Duration::from_millis(500);
            match clients[0].execute_within(&mut sessions[0], &wanted, limit) {
                Some(Outcome::Found) => answered += 1,
                // The key is on the node that hangs.
                None => {}
                Some(other) => panic!("{other:?}"),
            }
        }
        cluster.nodes[2].go_on();
        assert!((5..30).contains(&answered), "{answered}");
        for number in (0..30).rev() {
            let wanted = verify(format!("k{number}").as_bytes(), &value(number));
            for (client, session) in clients.iter().zip(&mut sessions) {
                assert_eq!(client.execute(session, &wanted).0, Outcome::Found);
            }
        }
    });
}

/// Operations until one fails with this code; the codes before.
fn until(
    client: &Client<Cassandra>,
    session: &mut SessionOf<Cassandra>,
    code: &str,
) -> Vec<String> {
    let deadline = Instant::now() + Duration::from_secs(90);
    let mut before = Vec::new();
    loop {
        match client.execute(session, &set("all", b"v")).0 {
            Outcome::Failed(failure) if failure.code == code => return before,
            Outcome::Failed(failure) => {
                assert_eq!(failure.class, ErrorClass::Server, "{failure}");
                before.push(failure.code);
            }
            Outcome::Done => before.push("done".to_owned()),
            other => panic!("{other:?}"),
        }
        assert!(Instant::now() < deadline, "only {before:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_node_that_dies_is_told_by_its_codes_and_is_found_again() {
    on_three(|cluster| {
        let options = json!({ "replication_factor": 3, "write_consistency": "all" });
        let alive = pinned(cluster, 0, "died", options.clone());
        let died = pinned(cluster, 1, "died", options);
        let (mut one, mut two) = (alive.session(), died.session());
        for number in 0..20 {
            let written = set(&format!("k{number}"), &value(number));
            assert_eq!(alive.execute(&mut one, &written).0, Outcome::Done);
        }
        cluster.nodes[1].kill();
        cluster.nodes[1].wait_ended();
        let lost = failure(died.execute(&mut two, &get("k0")).0);
        assert!(
            matches!(lost.class, ErrorClass::Reset | ErrorClass::Connect),
            "{lost}"
        );
        assert!(lost.broken);
        let refused = died.try_session().err().expect("nobody is there");
        assert_eq!(refused.class, ErrorClass::Connect, "{refused}");
        // Those that are left do not know it at once.
        let before = until(&alive, &mut one, "unavailable");
        eprintln!("before `unavailable`: {before:?}");
        assert!(
            before
                .iter()
                .all(|code| code == "write_timeout" || code == "write_failure")
        );
        let read = verify(b"k7", &value(7));
        assert_eq!(alive.execute(&mut one, &read).0, Outcome::Found);
        cluster.restart(1);
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut two = loop {
            match died.try_session() {
                Ok(session) => break session,
                Err(failure) => assert!(Instant::now() < deadline, "{failure}"),
            }
            died.run(async { tokio::time::sleep(Duration::from_millis(10)).await });
        };
        for number in 0..20 {
            let read = verify(format!("k{number}").as_bytes(), &value(number));
            assert_eq!(died.execute(&mut two, &read).0, Outcome::Found);
        }
        // Once gossip is through, all copies can be written again.
        while alive.execute(&mut one, &set("all", b"v")).0 != Outcome::Done {
            assert!(
                Instant::now() < deadline + Duration::from_secs(60),
                "still unavailable"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    });
}
