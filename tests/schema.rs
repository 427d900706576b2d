//! The schema of scenarios: it is the one in `schemas/`, and every scenario of the repository is valid by it.
//!
//! `UPDATE=1 cargo test --test schema` writes the file anew.

#[path = "support/specs.rs"]
mod specs;

use dbbench::scenario::schema::{schema, schema_text};
use serde_json::Value;
use std::path::{Path, PathBuf};

const STORED: &str = "schemas/scenario.schema.json";

fn scenarios() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![PathBuf::from("scenarios")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).expect("scenarios") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
            } else if path
                .extension()
                .is_some_and(|extension| extension == "toml")
            {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn json_of(text: &str) -> Value {
    let table: toml::Table = text.parse().expect("valid TOML");
    serde_json::to_value(table).expect("no dates")
}

/// Faults by the schema, with their places.
fn faults(schema: &Value, text: &str) -> Vec<String> {
    let validator = jsonschema::draft7::new(schema).expect("a valid schema");
    let instance = json_of(text);
    let faults = validator.iter_errors(&instance);
    faults
        .map(|fault| format!("{}: {fault}", fault.instance_path()))
        .collect()
}

#[test]
fn the_stored_schema_is_the_one_that_is_printed() {
    let printed = schema_text(&dbbench::registry::specs());
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(STORED, &printed).expect("a writable file");
    }
    let stored = std::fs::read_to_string(STORED).unwrap_or_default();
    assert!(
        stored == printed,
        "{STORED} is not what `dbbench schema` prints; UPDATE=1 writes it anew"
    );
}

#[test]
fn every_scenario_and_fragment_is_valid_by_the_schema() {
    let schema = schema(&dbbench::registry::specs());
    let scenarios = scenarios();
    assert!(scenarios.len() >= 8, "{scenarios:?}");
    for path in scenarios {
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        let faults = faults(&schema, &text);
        assert!(faults.is_empty(), "{}: {faults:?}", path.display());
    }
}

#[test]
fn the_schema_takes_templates_and_refuses_what_the_check_refuses() {
    let schema = schema(specs::ALL);
    let right = [
        "[[phases]]\nname = 'a'\nthreads = '{{ threads }}'\nduration = '{{ t }}ms'\nverify = '{{ v }}'\nmix = '{{ mixes[m] }}'",
        "[workload.values]\nsize = { choices = [{ size = '1KiB', weight = 0.5 }] }",
        "[workload.keys]\ndistribution = { name = 'zipfian', theta = '{{ theta }}' }",
        "[sweep]\ntarget = ['redis']\nthreads = { from = 1, to = 16 }\nexclude = ['{{ threads > 3 }}']",
        "[targets.redis]\ndriver = 'redis'\noptions = { protocol = 'resp3' }",
        "[operations.append]\nredis = { command = ['APPEND', '$key', 'x'] }",
        "[quick.vars]\nn = 1\n[quick.runs]\nrepeats = 1",
    ];
    for text in right {
        assert_eq!(faults(&schema, text), Vec::<String>::new(), "{text}");
    }
    let wrong = [
        "schema = 2",
        "name = 'My Scenario'",
        "[[phases]]\nname = 'a'\nthreads = 0",
        "[[phases]]\nname = 'a'\nthreads = 'four'",
        "[[phases]]\nthreads = 4",
        "[[phases]]\nname = 'a'\nduration = '10'",
        "[runs]\nrepeat = 3",
        "[runs]\norder = 'random'",
        "[client]\nconnect_rate = '1000'",
        "[workload.values]\nsize = '64k'",
        "[sweep]\nthreads = 4",
        "[sweep]\nTarget = ['redis']",
        "[targets.redis]\ndriver = 'oracle'",
        "[targets.redis]\ndriver = 'redis'\noptions = { protocol = 'resp4' }",
        "[targets.redis]\ndriver = 'redis'\noptions = { tls = true }",
        "[operations.append]\nredis = { comand = ['APPEND'] }",
        "[quick]\nname = 'x'",
        "[[tables]]\nname = 'a'\nrows = []\nvalues = { x = 'load.operations' }",
    ];
    for text in wrong {
        assert!(!faults(&schema, text).is_empty(), "taken: {text}");
    }
}

#[test]
fn every_key_has_a_description_and_defaults_stand_beside_theirs() {
    let schema = schema(specs::ALL);
    for (key, property) in schema["properties"].as_object().expect("properties") {
        assert!(property["description"].is_string(), "{key}");
    }
    let at = |pointer: &str| schema.pointer(pointer).unwrap_or(&Value::Null);
    assert_eq!(at("/properties/runs/properties/repeats/default"), 1);
    assert_eq!(
        at("/properties/phases/items/properties/timeout/default"),
        "10s"
    );
    let servers = &schema["properties"]["servers"]["patternProperties"]["^[a-z][a-z0-9_-]*$"];
    assert_eq!(servers["properties"]["restart"]["default"], "run");
}

#[test]
fn every_scenario_names_the_schema_in_its_first_line() {
    for path in scenarios() {
        if path.starts_with("scenarios/servers") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("UTF-8");
        let line = text
            .lines()
            .next()
            .and_then(|line| line.strip_prefix("#:schema "))
            .expect("a schema line");
        let schema = path.parent().unwrap_or(Path::new("")).join(line);
        assert!(schema.is_file(), "{}: {line}", path.display());
    }
}
