//! Redis with two replicas in a scenario: writes that wait for them, reads from them, and how far they are behind.

use crate::kit::Place;
use crate::number;
use crate::support::installed;

const SCENARIO: &str = r#"schema = 1
name = "replicas"
[servers.primary]
command = ["redis-server", "--port", "{{ port('primary') }}", "--bind", "127.0.0.1", "--save", "", "--repl-diskless-sync-delay", "1"]
ready = { driver = true }
[servers.replica]
instances = 2
after = ["primary"]
command = [
  "redis-server", "--port", "{{ port('replica') }}", "--bind", "{{ address('replica', instance) }}", "--save", "",
  "--replicaof", "127.0.0.1 {{ port('primary') }}",
]
ready = { driver = true }
[targets.redis]
driver = "redis"
servers = ["primary", "replica"]
options = { wait = 2 }
durability = "memory"
[targets.redis.endpoints]
write = ["redis://127.0.0.1:{{ port('primary') }}"]
read = ["redis://{{ address('replica', 1) }}:{{ port('replica') }}", "redis://{{ address('replica', 2) }}:{{ port('replica') }}"]
[workload.keys]
count = 500
[workload.values]
size = 1_000
[operations.lag]
redis = { replication_lag = true }
[[phases]]
name = "load"
operation = "set"
endpoints = "write"
threads = 4
operations = 500
keys = { distribution = "sequential" }
[[phases]]
name = "check"
operation = "get"
endpoints = "read"
threads = 4
operations = 500
verify = true
keys = { distribution = "sequential" }
[[phases]]
name = "refused"
operation = "set"
endpoints = "read"
threads = 2
operations = 20
[[probes]]
name = "lag"
after = "load"
operation = "lag"
[[probes]]
name = "lag_as_stated"
after = "load"
driver = "redis"
endpoint = "redis://127.0.0.1:{{ port('primary') }}"
statement = "replication_lag"
unit = "bytes"
"#;

#[test]
fn what_replicas_acknowledged_is_read_from_them_at_once() {
    if !installed("redis-server") {
        return;
    }
    let place = Place::with(SCENARIO);
    place.scenario(&[]).expect(0);
    let rows = place.rows("operations.csv");
    let of = |phase: &str| rows.iter().find(|row| row["phase"] == phase).unwrap();
    assert_eq!(of("load")["succeeded"], "500");
    let check = of("check");
    assert_eq!(
        (check["found"].as_str(), check["failed"].as_str()),
        ("500", "0")
    );
    let endpoints: Vec<&str> = check["endpoints"].split(' ').collect();
    assert_eq!(endpoints.len(), 2, "{endpoints:?}");
    assert!(
        endpoints.iter().all(|one| one.ends_with("=250")),
        "{endpoints:?}"
    );
    assert_eq!(of("refused")["failed"], "20");
    let errors = place.rows("errors.csv");
    let refused = errors.iter().find(|row| row["phase"] == "refused").unwrap();
    assert_eq!(
        (refused["class"].as_str(), refused["code"].as_str()),
        ("server", "READONLY")
    );
    // All is acknowledged; what comes after is the asking itself.
    let probes = place.rows("probes.csv");
    assert_eq!(probes.len(), 2);
    for probe in &probes {
        assert!(number(probe, "value") < 1_000.0, "{probe:?}");
    }
    place.assert_nothing_left();
}
