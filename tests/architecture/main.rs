//! Holds the plan of the house: who may import whom, that every file opens by saying what it knows, that files stay short
//! and that library code does not unwrap. Read `scan` for how a source is read; the tables here are the rules.
//!
//! A fault names the file, the line's text and the rule, so that the rule is argued with and not worked around.

mod scan;

use scan::Source;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Modules that everybody may use; they use each other alone.
const BASE: &[&str] = &[
    "arguments",
    "clock",
    "diag",
    "op",
    "random",
    "rows",
    "template",
    "units",
];

/// What each module may import beside the base modules and itself. A path allows all below it; `*` allows everything.
const TABLE: &[(&str, &[&str])] = &[
    ("workload", &[]),
    ("measure", &[]),
    ("driver", &[]),
    // The sampler hands over the records of measurement.
    ("server", &["driver::Control", "measure"]),
    // The names that a replay takes are those of the log's readers.
    ("scenario", &["driver::spec", "workload::querylog"]),
    ("plan", &["scenario", "workload", "driver::spec"]),
    ("engine", &["workload", "driver", "measure", "plan"]),
    ("results", &["plan", "measure"]),
    // Tables are defined in the plan and filled from results.
    ("tables", &["results", "plan"]),
    ("report", &["results"]),
    ("compare", &["results"]),
    ("import", &["scenario"]),
    ("registry", &["engine::entry", "driver"]),
    // A run is a script over all the rooms, but drivers are handed to it.
    (
        "run",
        &[
            "driver", "engine", "measure", "plan", "results", "scenario", "server", "tables",
            "workload",
        ],
    ),
    ("cli", &["*"]),
    // The entry hands over to the command line, or to the guard when it is one.
    ("main", &["cli", "server::guard"]),
    ("lib", &[]),
];

/// Lines a file may have, tests included.
const LONGEST_FILE: usize = 600;

/// Files that may be longer, each with its reason in a comment.
const LONG_FILES: &[&str] = &[];

/// Every source of the library and the binary, in the order of their paths.
fn sources() -> Vec<Source> {
    let root = root().join("src");
    let mut paths = Vec::new();
    collect(&root, &mut paths);
    paths.sort();
    assert!(paths.len() > 20, "the sources were not found in {root:?}");
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).expect("sources are readable UTF-8");
        let name = path.strip_prefix(&root).expect("it was found there");
        Source::new(name, text)
    };
    let mut sources: Vec<Source> = paths.into_iter().map(read).collect();
    scan::mark_tests(&mut sources);
    sources
}

/// Asked of the environment first, so that the compiled test can look at another checkout.
fn root() -> PathBuf {
    let set = std::env::var_os("CARGO_MANIFEST_DIR");
    set.map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from)
}

fn collect(directory: &Path, paths: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("the directory is readable") {
        let path = entry.expect("the entry is readable").path();
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|end| end == "rs") {
            paths.push(path);
        }
    }
}

/// Drivers are the folders of `driver/` that have rows; what else lies there is shared by them.
fn drivers(sources: &[Source]) -> BTreeSet<String> {
    let folder = |source: &Source| match source.module.as_slice() {
        [driver, name, spec] if driver == "driver" && spec == "spec" => Some(name.clone()),
        _ => None,
    };
    sources.iter().filter_map(folder).collect()
}

/// Why `module` may not import `path`, if it may not.
fn fault(module: &[String], path: &[String], drivers: &BTreeSet<String>) -> Option<String> {
    let own = &module[0];
    let other = path.first()?;
    if own == other {
        return driver_fault(module, path, drivers);
    }
    if BASE.contains(&other.as_str()) {
        return None;
    }
    if BASE.contains(&own.as_str()) {
        return Some(format!("base module `{own}` may import base modules only"));
    }
    let Some((_, allowed)) = TABLE.iter().find(|(name, _)| name == own) else {
        return Some(format!("module `{own}` is not in the table"));
    };
    let path = path.join("::");
    let allows = |prefix: &str| {
        let rest = path.strip_prefix(prefix);
        prefix == "*" || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    if !allowed.iter().any(|prefix| allows(prefix)) {
        return Some(format!("`{own}` may import {allowed:?} and base modules"));
    }
    None
}

/// Within `driver`: no driver sees another, and what they share sees none of them.
fn driver_fault(module: &[String], path: &[String], drivers: &BTreeSet<String>) -> Option<String> {
    let seen = path.get(1).filter(|name| drivers.contains(*name))?;
    let foreign = module[0] == "driver" && module.get(1) != Some(seen);
    foreign.then(|| format!("only the registry may name the driver `{seen}`"))
}

#[test]
fn modules_import_only_what_the_table_allows() {
    let sources = sources();
    let drivers = drivers(&sources);
    let mut faults = Vec::new();
    for source in sources.iter().filter(|source| !source.is_test) {
        for path in source.imports() {
            if let Some(why) = fault(&source.module, &path, &drivers) {
                faults.push(format!("{}: {}: {why}", source.name, path.join("::")));
            }
        }
    }
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn only_the_registry_names_a_driver() {
    let sources = sources();
    let drivers = drivers(&sources);
    let foreign = |source: &&Source| source.module[0] != "driver" && !source.is_test;
    for source in sources.iter().filter(foreign) {
        for path in source.imports() {
            let named = path.get(1).is_some_and(|name| drivers.contains(name));
            let driver = path[0] == "driver" && named;
            let registry = source.module[0] == "registry";
            assert!(registry || !driver, "{}: {}", source.name, path.join("::"));
        }
    }
}

#[test]
fn only_the_command_line_reads_the_registry() {
    for source in sources().iter().filter(|source| !source.is_test) {
        let reads = source.imports().iter().any(|path| path[0] == "registry");
        let may = source.module[0] == "cli" || source.module[0] == "registry";
        assert!(may || !reads, "{} reads the registry", source.name);
    }
}

#[test]
fn every_file_opens_with_what_it_knows() {
    let mut faults = Vec::new();
    // A file without code has nothing to say.
    for source in sources().iter().filter(|s| !s.code.trim().is_empty()) {
        let first = source.text.lines().next().unwrap_or_default();
        let says = first
            .strip_prefix("//! ")
            .is_some_and(|text| text.len() > 10);
        if !says {
            faults.push(format!("{} opens with \"{first}\"", source.name));
        }
    }
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn files_are_short_enough_to_be_read() {
    let mut faults = Vec::new();
    for source in sources() {
        let lines = source.text.lines().count();
        if (lines > LONGEST_FILE) != LONG_FILES.contains(&source.name.as_str()) {
            faults.push(format!("{}: {lines} lines", source.name));
        }
    }
    let rule = format!("more than {LONGEST_FILE} lines, or listed as long and not so");
    assert!(faults.is_empty(), "{rule}:\n{}\n", faults.join("\n"));
}

#[test]
fn nothing_unwraps_outside_tests() {
    let mut faults = Vec::new();
    for source in sources().iter().filter(|source| !source.is_test) {
        let lines = source
            .code
            .lines()
            .filter(|line| line.contains(".unwrap()"));
        faults.extend(lines.map(|line| format!("{}: {}", source.name, line.trim())));
    }
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn the_rules_refuse_what_they_are_for() {
    let path = |text: &str| text.split("::").map(str::to_owned).collect::<Vec<_>>();
    let drivers = BTreeSet::from(["redis".to_owned(), "redb".to_owned()]);
    let refused =
        |module: &str, other: &str| fault(&path(module), &path(other), &drivers).is_some();
    assert!(refused("workload::keys", "measure::record"));
    assert!(refused("op", "workload"));
    assert!(refused("scenario::check", "driver::Target"));
    assert!(refused("scenario::check", "driver"));
    assert!(refused("plan", "driver::special"));
    assert!(refused("driver::redis::wire", "driver::redb"));
    assert!(refused("driver::net", "driver::redis"));
    assert!(refused("engine", "registry::DRIVERS"));
    assert!(refused("novelty", "plan"));
    assert!(!refused("scenario::check", "driver::spec::DriverSpec"));
    assert!(!refused("driver::redis::wire", "driver::net::tls"));
    assert!(!refused("driver::redis::wire", "driver::redis::spec"));
    assert!(!refused("workload::keys", "op::Verb"));
    assert!(!refused("cli::check", "registry::DRIVERS"));
}
