//! Every scenario of the repository is right, with `--quick` and without.

#[path = "support/specs.rs"]
mod specs;

use dbbench::diag;
use dbbench::driver::spec::DriverSpec;
use dbbench::scenario::{self, Overrides, Scenario};
use std::path::{Path, PathBuf};

fn drivers() -> Vec<&'static DriverSpec> {
    let built = dbbench::registry::specs();
    match built.is_empty() {
        true => [specs::ALL, specs::MORE].concat(),
        false => built,
    }
}

fn load(path: &Path, quick: bool) -> Scenario {
    let overrides = Overrides {
        quick,
        ..Overrides::default()
    };
    let loaded = scenario::load(path, &overrides, &drivers());
    let text = diag::render(&loaded.sources, &loaded.diagnostics, false);
    assert_eq!(text, "", "{}", path.display());
    loaded.scenario.expect("no fault")
}

fn scenarios() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("scenarios").expect("scenarios");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let mut scenarios: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    scenarios.sort();
    scenarios
}

#[test]
fn every_scenario_is_right_and_named_as_its_file() {
    let scenarios = scenarios();
    assert!(scenarios.len() >= 4, "{scenarios:?}");
    for path in scenarios {
        let scenario = load(&path, false);
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        assert_eq!(Some(scenario.name()), stem);
    }
}

#[test]
fn every_scenario_can_be_tried_in_seconds() {
    for path in scenarios() {
        let scenario = load(&path, true);
        let repeats = scenario
            .section("runs")
            .and_then(|runs| runs.integer("repeats"));
        assert_eq!(repeats, Some(1), "{}", path.display());
    }
}

#[test]
fn kvs_40k_is_kvs_2_5k_with_larger_values_and_fewer_operations() {
    let scenario = load(Path::new("scenarios/kvs-40k.toml"), false);
    let vars = scenario.section("vars").expect("there");
    assert_eq!(vars.integer("value_size"), Some(41_960));
    assert_eq!(vars.integer("operations"), Some(10_000));
    let sweep = scenario.section("sweep").expect("there");
    assert_eq!(
        sweep.texts("target"),
        [
            "memcached",
            "redis",
            "mdcached",
            "kyototycoon",
            "redb",
            "sqlite",
            "fjall"
        ]
    );
    // The order of the axes is the file's.
    assert_eq!(
        sweep.table.keys().collect::<Vec<_>>(),
        ["target", "threads", "exclude"]
    );
    let redis = scenario
        .section("servers")
        .and_then(|servers| servers.table("redis"));
    assert_eq!(redis.and_then(|redis| redis.text("restart")), Some("run"));
    let set = scenario.top().tables("phases")[0];
    assert_eq!(
        set.duration("timeout"),
        Some(std::time::Duration::from_secs(10))
    );
}
