//! dbbench as its users run it: a scenario against a server that runs already, and its operations.csv read back.

use super::{CLIENT_CPU, Figure};
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs the measured phase of a scenario; `text` is all but its head and `[client]`. Figures of its one row.
pub fn run(text: &str) -> Figure {
    let place = tempfile::tempdir().expect("a directory for the scenario");
    let head =
        format!("schema = 1\nname = \"bench\"\n[client]\nworkers = 1\ncpus = \"{CLIENT_CPU}\"\n");
    let file = place.path().join("bench.toml");
    std::fs::write(&file, head + text).expect("the scenario is written");
    let out = place.path().join("out");
    let output = Command::new(env!("CARGO_BIN_EXE_dbbench"))
        .arg("scenario")
        .arg(&file)
        .arg("--out")
        .arg(&out)
        .stdin(Stdio::null())
        .output()
        .expect("dbbench runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    row_of(&out.join("operations.csv"))
}

fn row_of(path: &Path) -> Figure {
    let mut reader = csv::Reader::from_path(path).expect("operations.csv");
    let header = reader.headers().expect("a header").clone();
    let at = |name: &str| {
        let found = header.iter().position(|column| column == name);
        found.unwrap_or_else(|| panic!("a column {name}"))
    };
    let measured = |row: &csv::StringRecord| &row[at("measured")] == "true";
    let mut rows = reader.records().map(|row| row.expect("a row"));
    let row = rows.find(measured).expect("a measured phase");
    let number = |name: &str| row[at(name)].parse::<f64>().expect("a number");
    assert_eq!(number("success_percent"), 100.0, "all succeeds");
    Figure {
        per_second: number("throughput_per_second"),
        cpu_us: number("client_cpu_us_per_operation"),
    }
}
