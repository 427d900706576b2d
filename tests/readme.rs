//! README.md tells the truth: its scenarios pass `dbbench check`, its commands, options, columns and exit codes exist.

use std::path::Path;
use std::process::{Command, Output};

const README: &str = include_str!("../README.md");

/// The fenced blocks of a language, each with the second-level heading that it stands under.
fn blocks(language: &str) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let (mut heading, mut open, mut fence) = ("", None, false);
    for line in README.lines() {
        match (fence, line.strip_prefix("```")) {
            (false, Some(name)) => {
                fence = true;
                open = (name == language).then(String::new);
            }
            (true, Some(_)) => {
                fence = false;
                found.extend(open.take().map(|block| (heading, block)));
            }
            (true, None) => {
                if let Some(block) = &mut open {
                    *block += &format!("{line}\n");
                }
            }
            (false, None) => heading = line.strip_prefix("## ").unwrap_or(heading),
        }
    }
    found
}

fn dbbench(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dbbench"));
    command.args(arguments).current_dir(directory);
    command.output().expect("dbbench starts")
}

/// Asserts that a scenario is without fault and without warning, beside the fragments of this repository.
fn check(text: &str) {
    let directory = tempfile::tempdir().expect("a directory");
    let servers = directory.path().join("servers");
    std::fs::create_dir(&servers).expect("made");
    for entry in std::fs::read_dir("scenarios/servers").expect("fragments") {
        let path = entry.expect("an entry").path();
        // What a fragment copies is beside it, in a folder of its name.
        if path.is_dir() {
            continue;
        }
        let to = servers.join(path.file_name().expect("a name"));
        std::fs::copy(&path, to).expect("copied");
    }
    std::fs::write(directory.path().join("scenario.toml"), text).expect("written");
    let output = dbbench(directory.path(), &["check", "--strict", "scenario.toml"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let quick = ["check", "--strict", "--quick", "scenario.toml"];
    let output = dbbench(directory.path(), &quick);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
}

#[test]
fn the_example_is_a_right_scenario() {
    let blocks = blocks("toml");
    let example = blocks.iter().find(|(under, _)| *under == "An example");
    check(&example.expect("an example").1);
}

#[test]
fn the_snippets_of_the_language_are_one_right_scenario() {
    let blocks = blocks("toml").into_iter();
    let snippets = blocks.filter(|(under, _)| *under == "The language");
    let snippets: Vec<String> = snippets.map(|(_, block)| block).collect();
    assert!(snippets.len() > 8, "{}", snippets.len());
    check(&snippets.join("\n"));
}

#[test]
fn every_command_and_option_that_it_shows_exists() {
    let here = Path::new(".");
    let mut shown = 0;
    for (_, block) in blocks("sh") {
        for line in block
            .lines()
            .filter_map(|line| line.strip_prefix("dbbench "))
        {
            let mut words = line.split_whitespace();
            let command = words.next().expect("a command");
            let help = dbbench(here, &[command, "--help"]);
            assert!(help.status.success(), "{command}");
            let help = String::from_utf8_lossy(&help.stdout).into_owned();
            for option in words.filter(|word| word.starts_with("--")) {
                assert!(help.contains(option), "`{command}` has no {option}");
            }
            shown += 1;
        }
    }
    assert!(shown >= 5, "{shown}");
}

#[test]
fn it_lists_every_driver_with_every_option() {
    for spec in dbbench::registry::specs() {
        let row = format!("| `{}` |", spec.name);
        let row = README.lines().find(|line| line.starts_with(&row));
        let row = row.unwrap_or_else(|| panic!("no row of {}", spec.name));
        for option in spec.options {
            let name = format!("`{}`", option.name);
            assert!(row.contains(&name), "{}: no {name}", spec.name);
        }
    }
}

#[test]
fn its_exit_codes_are_those_of_the_help() {
    for line in dbbench::cli::exit::HELP.lines().skip(1) {
        let code = line.split_whitespace().next().expect("a code");
        assert!(README.contains(&format!("\n| {code} | ")), "{code}");
    }
}
