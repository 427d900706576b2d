//! The fragment of a Redis Cluster: six instances made one cluster, one of which is killed while it is used.

use crate::kit::{Place, Row};
use crate::support::installed;
use crate::{number, unsuccessful, windows};
use std::collections::BTreeMap;

/// The fragment's own target; `phases` follow.
fn scenario(phases: &str) -> String {
    let fragments = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/servers");
    format!(
        r#"schema = 1
name = "cluster"
extends = ["{fragments}/redis-cluster.toml"]
[vars]
redis_cluster_settings = "cluster-require-full-coverage no"
[targets.redis]
driver = "redis"
servers = ["redis-cluster"]
endpoints = ["redis://{{{{ address('redis-cluster', 1) }}}}:{{{{ port('redis-cluster') }}}}", "redis://{{{{ address('redis-cluster', 2) }}}}:{{{{ port('redis-cluster') }}}}"]
options = {{ cluster = true, wait = 1 }}
durability = "memory"
[workload.keys]
count = 3_000
[workload.values]
size = 100
[[phases]]
name = "load"
operation = "set"
threads = 8
operations = 3_000
keys = {{ distribution = "sequential" }}
{phases}"#
    )
}

/// Operations by node, as the column `endpoints` has them.
fn by_node(row: &Row) -> BTreeMap<String, u64> {
    let counts = row["endpoints"].split(' ').map(|entry| {
        let (node, count) = entry.rsplit_once('=').expect("a count");
        (node.to_owned(), count.parse().expect("a number"))
    });
    counts.collect()
}

#[test]
fn a_cluster_loses_a_primary_under_load_and_no_value() {
    if !installed("redis-server") || !installed("redis-cli") {
        return;
    }
    let phases = r#"
[[phases]]
name = "steady"
operation = "get"
threads = 4
duration = "12s"
timeout = "200ms"
verify = true
faults = [{ at = "2s", server = "redis-cluster", instance = 1, action = "kill" }]
[[phases]]
name = "after"
operation = "get"
threads = 4
operations = 3_000
verify = true
keys = { distribution = "sequential" }
"#;
    let place = Place::with(&scenario(phases));
    place.scenario(&[]).expect(0);
    let rows = place.rows("operations.csv");
    let of = |phase: &str| rows.iter().find(|row| row["phase"] == phase).unwrap();
    let load = of("load");
    assert_eq!(load["succeeded"], "3000");
    let nodes = by_node(load);
    assert_eq!(nodes.len(), 3, "each primary has its share: {nodes:?}");
    assert!(nodes.values().all(|count| *count > 500), "{nodes:?}");
    let windows: Vec<Row> = windows(&place)
        .into_iter()
        .filter(|row| row["phase"] == "steady")
        .collect();
    assert_eq!(windows[2]["faults"], "kill redis-cluster/1");
    assert_eq!(unsuccessful(&windows[1]), 0.0);
    assert!(unsuccessful(&windows[2]) > 0.0, "{:?}", windows[2]);
    // The others' slots are served all the while, and all are when its replica has taken over.
    for window in &windows[2..] {
        assert!(number(window, "succeeded") > 0.0, "{window:?}");
    }
    assert_eq!(unsuccessful(&windows[11]), 0.0, "{:?}", windows[11]);
    assert_eq!(of("steady")["wrong_value"], "0");
    // Every value that was acknowledged is there, and no longer with the node that died.
    let after = of("after");
    assert_eq!(
        (after["found"].as_str(), after["failed"].as_str()),
        ("3000", "0")
    );
    let nodes = by_node(after);
    assert_eq!(nodes.len(), 3, "{nodes:?}");
    assert!(
        !nodes.keys().any(|node| node.starts_with("127.0.0.1:")),
        "{nodes:?}"
    );
    place.assert_nothing_left();
}
