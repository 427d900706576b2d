//! Pieces of scenarios.

/// redis-server as a managed server, and a target on it.
pub const REDIS: &str = r#"
[servers.redis]
command = ["redis-server", "--port", "{{ port('redis') }}", "--bind", "127.0.0.1", "--save", "", "--dir", "{{ dir('redis') }}"]
install = "apt-get install redis-server"

[targets.redis]
driver = "redis"
servers = ["redis"]
endpoints = ["redis://127.0.0.1:{{ port('redis') }}"]
"#;

pub const DATA: &str = r#"
[workload.keys]
count = 100
[workload.values]
size = 100
"#;

/// A phase of sets by count.
pub const SET: &str = r#"
[[phases]]
name = "set"
operation = "set"
threads = 2
operations = 200
"#;

/// A phase of sets that goes on for longer than any test.
pub const LONG: &str = r#"
[[phases]]
name = "set"
operation = "set"
threads = 2
duration = "10min"
"#;

/// Counts, which every run of the same scenario shares to the byte.
pub const COUNTS: &str = r#"
[[tables]]
name = "counts"
rows = ["target", "threads"]
repeats = "all"
values = { operations = "{{ set.operations }}", succeeded = "{{ set.succeeded }}" }
"#;

/// Redis and an embedded store, four points, two repeats: eight runs of some milliseconds.
pub fn small() -> String {
    let head = r#"
schema = 1
name = "small"
[sweep]
target = ["redis", "redb"]
threads = [1, 2]
[runs]
repeats = 2
[targets.redb]
driver = "redb"
"#;
    let phase = SET.replace("threads = 2", "threads = \"{{ threads }}\"");
    [head, REDIS, DATA, &phase, COUNTS].concat()
}

/// One run on Redis alone.
pub fn on_redis(phases: &str) -> String {
    let head = "schema = 1\nname = \"one\"\n";
    [head, REDIS, DATA, phases].concat()
}

/// On Redis alone, one run per value of `n`, each in the given phases.
pub fn swept(n: &str, more: &str, phases: &str) -> String {
    let head = format!("schema = 1\nname = \"swept\"\n[sweep]\nn = {n}\n{more}\n");
    [&head, REDIS, DATA, phases].concat()
}

/// One run on an embedded store.
pub fn on_redb(phases: &str) -> String {
    let head = "schema = 1\nname = \"one\"\n[targets.redb]\ndriver = \"redb\"\n";
    [head, DATA, phases].concat()
}
