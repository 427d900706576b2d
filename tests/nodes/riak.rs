//! The scenario of timeouts on Riak, in small: three nodes of a stand-in, one of which hangs for a while. No package has a
//! Riak.

use crate::kit::Place;
use crate::number;
use crate::riak_stand_in::{StandIn, wait_for};
use std::time::Duration;

fn scenario(store: &StandIn, interface: &str) -> String {
    let ports = [0, 1, 2].map(|number| match interface {
        "pb" => store.node(number).pb_port,
        _ => store.node(number).http_port,
    });
    let [one, two, three] = ports.map(|port| format!("\"127.0.0.1:{port}\""));
    format!(
        r#"schema = 1
name = "timeouts"
[targets.riak]
driver = "riak"
options = {{ interface = "{interface}", n_val = 2 }}
[targets.riak.endpoints]
write = [{one}]
read = [{one}, {two}, {three}]
[workload.keys]
count = 200
[workload.values]
size = 80_000
content = "random"
[[phases]]
name = "load"
operation = "set"
endpoints = "write"
threads = 4
operations = 200
keys = {{ distribution = "sequential" }}
[[phases]]
name = "steady"
duration = "3s"
timeout = "50ms"
[[phases.groups]]
name = "read"
operation = "get"
threads = 9
endpoints = "read"
verify = true
[[phases.groups]]
name = "write"
operation = "set"
threads = 2
endpoints = "write"
"#
    )
}

#[test]
fn a_riak_node_that_hangs_costs_its_own_operations_and_no_wrong_value() {
    for interface in ["http", "pb"] {
        let store = StandIn::cluster(3);
        let hung = store.node(2);
        let place = Place::with(&scenario(&store, interface));
        let going = place.start(&[]);
        // Its properties first, then operations.
        wait_for(|| hung.requests() > 50);
        let connections = hung.accepted();
        hung.hang();
        std::thread::sleep(Duration::from_millis(700));
        hung.go_on();
        going.wait().expect(0);
        let rows = place.rows("operations.csv");
        let row = |group: &str| {
            let found = rows
                .iter()
                .find(|row| row["phase"] == "steady" && row["group"] == group);
            found.expect("a row")
        };
        let (read, write) = (row("read"), row("write"));
        // Each of its three readers was answered again after at most so many limits.
        let given_up = number(read, "timed_out");
        assert!((3.0..200.0).contains(&given_up), "{interface}: {given_up}");
        assert!(number(read, "succeeded") > 100.0);
        assert_eq!(number(read, "missing"), 0.0);
        let errors = place.rows("errors.csv");
        let wrong = errors.iter().filter(|row| row["class"] == "wrong_value");
        assert_eq!(wrong.count(), 0, "{interface}");
        // A new connection for each operation that was given up, not more.
        let anew = hung.accepted() - connections;
        assert!(anew as f64 <= given_up + 2.0, "{anew} for {given_up}");
        let shares: Vec<&str> = read["endpoints"].split(' ').collect();
        assert_eq!(shares.len(), 3, "{shares:?}");
        assert_eq!(write["endpoints"].split(' ').count(), 1);
        let settings = place.text("manifest.json");
        assert!(settings.contains("bucket_n_val"), "{interface}");
    }
}
