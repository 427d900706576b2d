//! A place for one test: the real program in a private directory, its results as rows, and a look at what it left behind.

#![allow(dead_code, reason = "known_truth uses a part of it")]

use crate::guarded::{living_with, roots, within};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Nothing that dbbench started is alive this long after its end.
pub const SOON: Duration = Duration::from_secs(5);

/// A row by its columns' names.
pub type Row = BTreeMap<String, String>;

/// A private directory, in which dbbench runs and makes its private directories.
pub struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Place {
        let directory = crate::guarded::scratch();
        std::fs::create_dir(directory.path().join("tmp")).unwrap();
        Place { directory }
    }

    /// One with this scenario in it, as `s.toml`.
    pub fn with(scenario: &str) -> Place {
        let place = Place::new();
        place.write("s.toml", scenario);
        place
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dbbench"));
        command
            .args(arguments)
            .current_dir(self.path())
            .env("TMPDIR", self.path().join("tmp"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs dbbench to its end.
    pub fn run(&self, arguments: &[&str]) -> Ended {
        Ended::of(self.command(arguments).output().unwrap())
    }

    /// `dbbench scenario s.toml --out out ...`.
    pub fn scenario(&self, more: &[&str]) -> Ended {
        self.run(&[&["scenario", "s.toml", "--out", "out"], more].concat())
    }

    /// The same, not waited for.
    pub fn start(&self, more: &[&str]) -> Going {
        let all = [&["scenario", "s.toml", "--out", "out"], more].concat();
        Going::of(self.command(&all))
    }

    pub fn out(&self) -> PathBuf {
        self.path().join("out")
    }

    pub fn text(&self, name: &str) -> String {
        let path = self.out().join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// A CSV file of the run directory.
    pub fn rows(&self, name: &str) -> Vec<Row> {
        rows(&self.out().join(name))
    }

    /// Rows of runs.csv as they are while dbbench runs; none where there is no file yet.
    pub fn runs_so_far(&self) -> usize {
        let text = std::fs::read_to_string(self.out().join("runs.csv")).unwrap_or_default();
        text.lines().count().saturating_sub(1)
    }

    /// Run id -> status, as runs.csv has it.
    pub fn statuses(&self) -> BTreeMap<String, String> {
        let rows = self.rows("runs.csv");
        let all = rows.len();
        let statuses: BTreeMap<_, _> = rows
            .into_iter()
            .map(|row| (row["run"].clone(), row["status"].clone()))
            .collect();
        assert_eq!(statuses.len(), all, "a run is there twice");
        statuses
    }

    /// The one reason in runs.csv that is not empty.
    pub fn reason(&self) -> String {
        let rows = self.rows("runs.csv");
        let mut reasons = rows.iter().map(|row| row["reason"].clone());
        reasons.find(|reason| !reason.is_empty()).expect("a reason")
    }

    /// Processes that run in this place or know it, but not dbbench itself.
    pub fn servers(&self) -> Vec<i32> {
        let root = self.path().join("tmp").display().to_string();
        let mine = |pid: &i32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.starts_with(b"redis-server") || line.starts_with(b"sleep")
        };
        living_with(&root).into_iter().filter(mine).collect()
    }

    /// No process and no private directory is left, at the latest soon.
    pub fn assert_nothing_left(&self) {
        let root = self.path().join("tmp");
        let mark = root.display().to_string();
        let clean = within(SOON, || {
            living_with(&mark).is_empty() && roots(&root).is_empty()
        });
        let (alive, left) = (living_with(&mark), roots(&root));
        assert!(clean, "alive: {alive:?}, left: {left:?}");
    }

    /// Files of the run directory that hold this text.
    pub fn files_with(&self, text: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        search(&self.out(), text.as_bytes(), &mut found);
        found
    }
}

fn search(path: &Path, text: &[u8], found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(path).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            search(&path, text, found);
        } else {
            let bytes = std::fs::read(&path).unwrap();
            if bytes.windows(text.len()).any(|window| window == text) {
                found.push(path);
            }
        }
    }
}

/// Any CSV file, read by the csv crate, which refuses rows of unequal length.
pub fn rows(path: &Path) -> Vec<Row> {
    let mut reader =
        csv::Reader::from_path(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let rows = reader.deserialize().collect::<Result<Vec<Row>, _>>();
    rows.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What a run of the program came to.
#[derive(Debug)]
pub struct Ended {
    /// None: ended by a signal.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    fn of(output: Output) -> Ended {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
        Ended {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// It ended with this code; else the test fails with all that it said.
    #[track_caller]
    pub fn expect(self, code: i32) -> Ended {
        assert_eq!(self.code, Some(code), "\n{}\n{}", self.stdout, self.stderr);
        self
    }

    #[track_caller]
    pub fn says(self, text: &str) -> Ended {
        assert!(
            self.stderr.contains(text),
            "`{text}` is not in:\n{}",
            self.stderr
        );
        self
    }
}

/// A dbbench that runs; killed where the test forgets it.
pub struct Going(Option<Child>);

impl Going {
    pub fn of(mut command: Command) -> Going {
        Going(Some(command.spawn().unwrap()))
    }

    pub fn pid(&self) -> i32 {
        self.0.as_ref().expect("it was not waited for").id() as i32
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).unwrap();
    }

    pub fn is_over(&mut self) -> bool {
        let child = self.0.as_mut().expect("it was not waited for");
        child.try_wait().unwrap().is_some()
    }

    pub fn wait(mut self) -> Ended {
        let child = self.0.take().expect("it was not waited for");
        Ended::of(child.wait_with_output().unwrap())
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
