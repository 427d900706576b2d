//! Every wrong scenario gives exactly the text beside it: `NAME.toml`, or `NAME/main.toml` with its fragments, and `NAME.txt`.
//!
//! A first line `# dbbench: --quick --set x=1` gives the command line's part. `UPDATE=1 cargo test --test scenario_errors`
//! writes the texts anew; read the difference with a user's eye before it is committed.

#[path = "support/specs.rs"]
mod specs;

use dbbench::scenario::{self, Overrides};
use dbbench::{diag, plan};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const DIRECTORY: &str = "tests/scenario_errors";

/// (scenario, expected text), sorted; relative to the package, as messages show them.
fn cases() -> Vec<(PathBuf, PathBuf)> {
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(DIRECTORY).expect("the directory of wrong files") {
        let path = entry.expect("an entry").path();
        let main = path.join("main.toml");
        if path.is_dir() {
            cases.push((main, path.with_extension("txt")));
        } else if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            cases.push((path.clone(), path.with_extension("txt")));
        }
    }
    cases.sort();
    cases
}

/// What the first line of a scenario says, and its `--only`.
fn overrides(scenario: &Path) -> (Overrides, Vec<String>) {
    let bytes = std::fs::read(scenario).expect("a readable file");
    let text = String::from_utf8_lossy(&bytes);
    let mut overrides = Overrides::default();
    let mut only = Vec::new();
    let Some(arguments) = text
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("# dbbench: "))
    else {
        return (overrides, only);
    };
    let mut words = arguments.split_whitespace().map(str::to_owned);
    while let Some(word) = words.next() {
        let mut value = || words.next().expect("a value behind the option");
        match word.as_str() {
            "--quick" => overrides.quick = true,
            "--set" => overrides.set.push(value()),
            "--label" => overrides.labels.push(value()),
            "--only" => only.push(value()),
            _ => panic!("{}: no option {word}", scenario.display()),
        }
    }
    (overrides, only)
}

/// The text that `dbbench check` prints, and the codes in it.
fn faults_of(scenario: &Path) -> (String, Vec<&'static str>) {
    let (overrides, only) = overrides(scenario);
    let loaded = scenario::load(scenario, &overrides, specs::ALL);
    let mut diagnostics = loaded.diagnostics;
    if let Some(scenario) = &loaded.scenario {
        match plan::make(&scenario.root, &loaded.sources, specs::ALL, &only) {
            Ok(made) => made
                .warnings
                .into_iter()
                .for_each(|warning| diagnostics.push(warning)),
            Err(faults) => diagnostics.extend(faults),
        }
    }
    let codes = diagnostics.list.iter().map(|fault| fault.code).collect();
    let text = diag::render(&loaded.sources, &diagnostics, false);
    (text, codes)
}

#[test]
fn every_wrong_file_gives_exactly_its_text() {
    let update = std::env::var_os("UPDATE").is_some();
    let cases = cases();
    assert!(cases.len() >= 45, "only {} wrong files", cases.len());
    let mut wrong = Vec::new();
    for (scenario, expected) in cases {
        let (text, _) = faults_of(&scenario);
        assert!(!text.is_empty(), "{} has no fault", scenario.display());
        if update {
            std::fs::write(&expected, &text).expect("a writable file");
        }
        let known = std::fs::read_to_string(&expected).unwrap_or_default();
        if known != text {
            wrong.push(format!(
                "{}\n--- expected\n{known}--- found\n{text}",
                scenario.display()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_expected_text_has_its_scenario() {
    let known: BTreeSet<PathBuf> = cases().into_iter().map(|(_, expected)| expected).collect();
    for entry in std::fs::read_dir(DIRECTORY).expect("the directory of wrong files") {
        let path = entry.expect("an entry").path();
        let text = path.extension().is_some_and(|extension| extension == "txt");
        assert!(
            !text || known.contains(&path),
            "{} has no scenario",
            path.display()
        );
    }
}

/// Codes that the sources of the front end give. A code is a string literal behind one of these calls.
fn codes_in_sources() -> BTreeSet<String> {
    let mut codes = BTreeSet::new();
    let mut directories = vec![PathBuf::from("src/scenario"), PathBuf::from("src/plan")];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).expect("sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            if path.ends_with("tests.rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("UTF-8");
            let text = text
                .split("#[cfg(test)]\nmod tests {")
                .next()
                .unwrap_or_default();
            for call in [
                "Diagnostic::error(",
                "Diagnostic::warning(",
                "fault(",
                "unknown(",
            ] {
                for rest in text.split(call).skip(1) {
                    let literal = rest
                        .trim_start()
                        .strip_prefix('"')
                        .and_then(|rest| rest.split_once('"'));
                    codes.extend(literal.map(|(code, _)| code.to_owned()));
                }
            }
        }
    }
    codes
}

#[test]
fn every_code_is_shown_by_a_wrong_file() {
    // Needs a file larger than what belongs into a repository; a unit test of `source` shows it.
    let elsewhere = ["file-too-large", "too-many-files"];
    let shown: BTreeSet<&str> = cases()
        .iter()
        .flat_map(|(scenario, _)| faults_of(scenario).1)
        .collect();
    let codes = codes_in_sources();
    assert!(
        codes.len() > 40,
        "the search for codes finds only {codes:?}"
    );
    let missing: Vec<&String> = codes
        .iter()
        .filter(|code| !shown.contains(code.as_str()) && !elsewhere.contains(&code.as_str()))
        .collect();
    assert!(missing.is_empty(), "no wrong file shows {missing:?}");
}

#[test]
fn a_right_file_has_no_fault() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("right.toml");
    std::fs::write(&path, RIGHT).expect("written");
    let loaded = scenario::load(&path, &Overrides::default(), specs::ALL);
    let text = diag::render(&loaded.sources, &loaded.diagnostics, false);
    assert_eq!(text, "");
    let scenario = loaded.scenario.expect("no fault");
    assert_eq!(scenario.name(), "right");
    assert!(scenario.section("quick").is_none());
}

const RIGHT: &str = r#"
schema = 1
name = "right"
[vars]
n = 10
[sweep]
target = ["redis", "redb"]
threads = { from = 1, to = 4 }
size = [100, "1KiB"]
exclude = ["{{ target == 'redb' and threads > 2 }}"]
[servers.redis]
command = ["redis-server", "--port", "{{ port('redis') }}"]
ready = { tcp = "main" }
[targets.redis]
driver = "redis"
servers = ["redis"]
endpoints = ["redis://127.0.0.1:{{ port('redis') }}"]
options = { protocol = "resp3" }
[targets.redb]
driver = "redb"
[workload.keys]
count = "{{ n }}"
distribution = { name = "zipfian", theta = 0.9 }
[workload.values]
size = "{{ size }}"
[[phases]]
name = "load"
operation = "set"
operations = "{{ n }}"
threads = "{{ threads }}"
keys = { distribution = "sequential" }
[[phases]]
name = "steady"
duration = "{{ n }}s"
[[phases.groups]]
name = "readers"
operation = "get"
threads = 2
[[phases.groups]]
name = "writers"
mix = { set = 1, delete = 2.5 }
timeout = "{{ n }}ms"
[[tables]]
name = "all"
rows = ["target", "threads", "size"]
values = { load = "{{ load.elapsed_seconds }}" }
[quick.vars]
n = 1
[quick.sweep]
threads = [1]
"#;
