//! The commands around the language, as a user runs them: init, defaults, schema, drivers, completions.

#[path = "support/specs.rs"]
mod specs;

use dbbench::scenario::{self, Overrides};
use std::path::Path;
use std::process::{Command, Output};

fn dbbench(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dbbench"))
        .args(arguments)
        .current_dir(directory)
        .output()
        .expect("dbbench starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn init_writes_a_scenario_that_is_right_and_never_overwrites() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = dbbench(
        directory.path(),
        &["init", "my-stores", "--title", "Mine: \"quoted\""],
    );
    assert_eq!(first.status.code(), Some(0), "{}", text(&first.stderr));
    assert!(text(&first.stdout).contains("dbbench scenario my-stores.toml --quick"));

    let path = directory.path().join("my-stores.toml");
    let drivers = [specs::ALL, specs::MORE].concat();
    let loaded = scenario::load(&path, &Overrides::default(), &drivers);
    let scenario = loaded.scenario.expect("a right scenario");
    assert_eq!(scenario.name(), "my-stores");
    assert_eq!(scenario.top().text("title"), Some("Mine: \"quoted\""));

    std::fs::write(&path, "mine").expect("written");
    let second = dbbench(directory.path(), &["init", "my-stores"]);
    assert_eq!(second.status.code(), Some(1));
    assert!(text(&second.stderr).contains("exists already"));
    assert_eq!(std::fs::read_to_string(&path).expect("there"), "mine");
}

#[test]
fn init_refuses_a_name_that_no_scenario_can_have() {
    let directory = tempfile::tempdir().expect("a directory");
    for name in ["My Stores", "../outside", ""] {
        let output = dbbench(directory.path(), &["init", name]);
        assert_eq!(output.status.code(), Some(2), "{name}");
    }
    assert_eq!(
        std::fs::read_dir(directory.path()).expect("there").count(),
        0
    );
}

#[test]
fn defaults_and_schema_are_printed_as_they_are_stored() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let defaults = dbbench(here, &["defaults"]);
    let stored = std::fs::read_to_string("src/scenario/defaults.toml").expect("there");
    assert_eq!(text(&defaults.stdout), stored);
    let schema = dbbench(here, &["schema"]);
    let stored = std::fs::read_to_string("schemas/scenario.schema.json").expect("there");
    assert!(text(&schema.stdout) == stored);
    let plan = dbbench(here, &["schema", "plan"]);
    let plan: serde_json::Value = serde_json::from_slice(&plan.stdout).expect("JSON");
    assert_eq!(plan["title"], "Plan");
}

#[test]
fn an_unknown_driver_is_refused_and_completions_name_the_commands() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let unknown = dbbench(here, &["drivers", "oracle"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("there is no driver `oracle`"));
    for shell in ["bash", "zsh", "fish"] {
        let script = dbbench(here, &["completions", shell]);
        assert_eq!(script.status.code(), Some(0));
        assert!(text(&script.stdout).contains("defaults"), "{shell}");
    }
    let help = dbbench(here, &["init", "--help"]);
    assert!(text(&help.stdout).contains("Examples:"));
}
