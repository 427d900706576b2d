//! Datasets: loaded once, a copy for each run or one for all, kept for the next invocation; what a load that fails does.

use crate::kit::{Place, Row};
use crate::support::installed;

/// 100 keys, which every run finds and of which it deletes the first half. `threads` makes two runs.
fn scenario(target: &str, dataset: &str) -> String {
    format!(
        r#"schema = 1
name = "datasets"
[sweep]
threads = [1, 2]
{target}
dataset = "keys"
[workload.keys]
count = 100
distribution = "sequential"
[workload.values]
size = 100
[datasets.keys]
{dataset}
[[datasets.keys.phases]]
name = "load"
operation = "set"
threads = 2
operations = 100
[[phases]]
name = "look"
operation = "get"
threads = "{{{{ threads }}}}"
operations = 100
[[phases]]
name = "take"
operation = "delete"
threads = "{{{{ threads }}}}"
operations = 50
"#
    )
}

const SQLITE: &str = "[targets.store]\ndriver = \"sqlite\"";

/// Writes its data when it is stopped.
const REDIS: &str = r#"[servers.redis]
command = ["redis-server", "--port", "{{ port('redis') }}", "--bind", "127.0.0.1", "--save", "900 1", "--dir", "{{ dir('redis') }}"]
[targets.store]
driver = "redis"
servers = ["redis"]
endpoints = ["redis://127.0.0.1:{{ port('redis') }}"]"#;

/// What each run found, in the order of the runs.
fn found(place: &Place) -> Vec<String> {
    let rows = place.rows("operations.csv");
    let looks = rows.iter().filter(|row| row["phase"] == "look");
    looks.map(|row: &Row| row["found"].clone()).collect()
}

#[test]
fn each_run_has_a_copy_of_its_own_or_all_share_one() {
    for target in [SQLITE, REDIS] {
        if target == REDIS && !installed("redis-server") {
            continue;
        }
        for (dataset, expected) in [
            ("restore = \"copy\"", ["100", "100"]),
            ("restore = \"in_place\"", ["100", "50"]),
        ] {
            let place = Place::with(&scenario(target, dataset));
            let ended = place.scenario(&[]).expect(0);
            assert_eq!(found(&place), expected, "{target} {dataset}");
            // Loaded once for both, and not measured.
            let loads = ended.stderr.matches("loading dataset keys").count();
            assert!(loads <= 1, "{}", ended.stderr);
            assert!(
                place
                    .rows("operations.csv")
                    .iter()
                    .all(|row| row["phase"] != "load")
            );
            place.assert_nothing_left();
        }
    }
}

#[test]
fn a_kept_dataset_is_found_by_the_next_invocation_until_it_changes() {
    let text = scenario(SQLITE, "keep = true");
    let place = Place::with(&text);
    let kept = || {
        let all = std::fs::read_dir(place.path().join("results/datasets"));
        let mut names: Vec<String> = all
            .map(|all| {
                all.map(|entry| entry.unwrap().file_name().into_string().unwrap())
                    .collect()
            })
            .unwrap_or_default();
        names.sort();
        names
    };
    place.scenario(&[]).expect(0);
    let first = kept();
    assert_eq!(first.len(), 1, "{first:?}");
    let written = || {
        let path = place.path().join("results/datasets").join(&first[0]);
        std::fs::metadata(path).unwrap().modified().unwrap()
    };
    let before = written();
    place
        .run(&["scenario", "s.toml", "--out", "second"])
        .expect(0);
    assert_eq!((kept(), written()), (first.clone(), before));
    let rows = crate::kit::rows(&place.path().join("second/operations.csv"));
    assert!(
        rows.iter()
            .filter(|row| row["phase"] == "look")
            .all(|row| row["found"] == "100")
    );
    // Another dataset has another name, so nobody reads a stale one.
    place.write("s.toml", &text.replace("size = 100", "size = 101"));
    place
        .run(&["scenario", "s.toml", "--out", "third"])
        .expect(0);
    assert_eq!(kept().len(), 2);
}

#[test]
fn a_dataset_that_cannot_be_loaded_fails_the_runs_that_use_it_and_is_tried_once() {
    let text = scenario(SQLITE, "restore = \"copy\"").replace(
        "operation = \"set\"",
        "prepare = [\"broken\"]\noperation = \"set\"",
    );
    let place = Place::with(&format!(
        "{text}[operations.broken]\nsqlite = {{ statements = [\"INSERT INTO nosuch VALUES (1)\"] }}\n"
    ));
    place.scenario(&[]).expect(3);
    let rows = place.rows("runs.csv");
    assert_eq!(rows.len(), 2);
    for row in rows {
        assert_eq!(row["status"], "failed");
        let reason = &row["reason"];
        assert!(
            reason.contains("dataset `keys`") && reason.contains("no such table: nosuch"),
            "{reason}"
        );
    }
    place.assert_nothing_left();
}

/// A log that the dataset produced is replayed by its runs.
#[test]
fn an_artifact_of_a_dataset_is_replayed() {
    let place = Place::with(
        r#"schema = 1
name = "artifact"
[targets.store]
driver = "sqlite"
dataset = "made"
[datasets.made]
artifacts = { "queries.sql" = "{{ run_dir }}/../made.sql" }
[[datasets.made.phases]]
name = "load"
operation = "make"
threads = 1
operations = 1
[operations.make]
sqlite = { statements = ["CREATE TABLE t AS SELECT 1 AS a"] }
[[phases]]
name = "queries"
replay = { file = "{{ dataset_file('made', 'queries.sql') }}", format = "sql" }
threads = 2
"#,
    );
    place.write(
        "made.sql",
        "SELECT * FROM t;\nSELECT a FROM t;\nSELECT nosuch FROM t;\n",
    );
    place.scenario(&[]).expect(0);
    let row = &place.rows("operations.csv")[0];
    assert_eq!(
        (row["operations"].as_str(), row["succeeded"].as_str()),
        ("6", "4")
    );
    let errors = place.rows("errors.csv");
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0]["count"], "2");
}
