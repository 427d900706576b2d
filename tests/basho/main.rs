//! `dbbench export basho` and `[outputs] basho_bench`: real runs, their files in the columns of Basho Bench, and the same
//! files read and drawn by R where it is installed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const SCENARIO: &str = r#"
schema = 1
name = "basho"
[sweep]
target = ["store"]
[targets.store]
driver = "sqlite"
[client]
window = "100ms"
[outputs]
basho_bench = true
[workload.keys]
count = 500
[workload.values]
size = 100
[[phases]]
name = "steady"
duration = "1500ms"
[[phases.groups]]
name = "read"
operation = "get"
threads = 2
[[phases.groups]]
name = "write"
mix = { set = 3, delete = 1 }
threads = 1
"#;

struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    /// One with a finished run in `out`.
    fn with_run() -> Place {
        let place = Place {
            directory: tempfile::tempdir().unwrap(),
        };
        std::fs::write(place.path("s.toml"), SCENARIO).unwrap();
        let ended = place.dbbench(&["scenario", "s.toml", "--out", "out"]);
        assert!(ended.status.success(), "{}", text(&ended.stderr));
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn dbbench(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dbbench"));
        command.args(arguments).current_dir(self.directory.path());
        command.output().unwrap()
    }

    /// What operations.csv says: (succeeded, longest success in ms, not succeeded) of each group and operation.
    fn operations(&self) -> BTreeMap<String, (u64, f64, u64)> {
        let mut reader = csv::Reader::from_path(self.path("out/operations.csv")).unwrap();
        let rows = reader.deserialize::<BTreeMap<String, String>>();
        let row = |row: BTreeMap<String, String>| {
            let number = |name: &str| row[name].parse::<u64>().unwrap();
            let longest: f64 = row["succeeded_service_time_max_us"].parse().unwrap();
            let failed = number("failed") + number("timed_out") + number("wrong_value");
            let label = format!("{}-{}", row["group"], row["operation"]);
            (label, (number("succeeded"), longest / 1000.0, failed))
        };
        rows.map(|found| row(found.unwrap())).collect()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

const FILES: [&str; 8] = [
    "README.txt",
    "errors.csv",
    "read-get_latencies.csv",
    "summary.csv",
    "summary.png",
    "summary.svg",
    "write-delete_latencies.csv",
    "write-set_latencies.csv",
];

#[test]
fn the_output_and_the_command_make_the_same_files() {
    let place = Place::with_run();
    let asked = place.path("out/basho/target-store_1/steady");
    assert_eq!(names(&asked), FILES);
    let ended = place.dbbench(&["export", "basho", "out", "-o", "files"]);
    assert!(ended.status.success(), "{}", text(&ended.stderr));
    assert_eq!(text(&ended.stdout), "files/target-store_1/steady\n");
    for name in FILES {
        let one = std::fs::read(asked.join(name)).unwrap();
        let other = std::fs::read(place.path("files/target-store_1/steady").join(name)).unwrap();
        assert!(one == other, "{name} differs");
    }
    let again = place.dbbench(&["export", "basho", "out", "-o", "files"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(text(&again.stderr).contains("exists already"));
}

#[test]
fn what_cannot_be_exported_has_its_exit_code() {
    let place = Place::with_run();
    let ended = |arguments: &[&str]| {
        let ended =
            place.dbbench(&[&["export", "basho", "out", "-o", "files"], arguments].concat());
        (ended.status.code(), text(&ended.stderr))
    };
    let (code, said) = ended(&["--window", "150ms"]);
    assert!(code == Some(2) && said.contains("say 200ms"), "{said}");
    let (code, said) = ended(&["--phase", "stedy"]);
    assert!(code == Some(2) && said.contains("it has steady"), "{said}");
    std::fs::remove_file(place.path("out/hlog/target-store_1.hlog")).unwrap();
    let (code, said) = ended(&[]);
    assert!(
        code == Some(1) && said.contains("target-store_1.hlog"),
        "{said}"
    );
}

#[test]
fn r_reads_and_draws_them_as_it_does_those_of_basho_bench() {
    let installed = Command::new("Rscript").arg("--version").output();
    if !installed.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: Rscript is not installed (apt-get install r-base-core)");
        return;
    }
    let place = Place::with_run();
    let arguments = ["export", "basho", "out", "-o", "files", "--window", "500ms"];
    assert!(place.dbbench(&arguments).status.success());
    let picture = place.path("picture.pdf");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/basho/read.R");
    let output = Command::new("Rscript")
        .arg("--vanilla")
        .arg(script)
        .arg(place.path("files/target-store_1/steady"))
        .arg(&picture)
        .output()
        .unwrap();
    let told = text(&output.stdout);
    assert!(output.status.success(), "{told}{}", text(&output.stderr));
    assert!(std::fs::metadata(&picture).unwrap().len() > 3000);
    let operations = place.operations();
    assert_eq!(operations.len(), 3);
    for (label, (succeeded, longest, failed)) in operations {
        let line = told
            .lines()
            .find(|line| line.starts_with(&format!("{label} ")));
        let line = line.unwrap_or_else(|| panic!("no {label}: {told}"));
        let read: Vec<f64> = line
            .split_whitespace()
            .skip(1)
            .map(|number| number.parse().unwrap())
            .collect();
        // operations.csv counts the drain too: what was in flight at the end, one for each thread.
        assert!(
            read[0] <= succeeded as f64 && read[0] + 3.0 >= succeeded as f64,
            "{line}"
        );
        assert!(
            read[1] <= longest + 1e-9 && read[1] > 0.0,
            "{line} {longest}"
        );
        assert!(read[2] <= failed as f64, "{line} {failed}");
    }
}
