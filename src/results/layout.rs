//! Names: of the files in a run directory, of runs, and of the directory itself.
//!
//! Makes and opens directories; what is written into them is `writer`'s.

use super::ResultsError;
use crate::clock;
use crate::plan::Plan;
use jiff::Timestamp;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub const MANIFEST: &str = "manifest.json";
pub const PLAN: &str = "plan.json";
pub const RUNS: &str = "runs.csv";
pub const OPERATIONS: &str = "operations.csv";
pub const WINDOWS: &str = "windows.csv";
pub const ERRORS: &str = "errors.csv";
pub const SERVERS: &str = "servers.csv";
pub const PROBES: &str = "probes.csv";
/// Histograms, a file per run.
pub const HLOG: &str = "hlog";
/// Files as Basho Bench writes them, a directory per run; only where the scenario asks for them.
pub const BASHO: &str = "basho";
/// The tables the scenario asks for.
pub const TABLES: &str = "tables";
/// Logs of managed servers, a directory per run.
pub const SERVER_LOGS: &str = "servers";
/// How files begin that are not whole yet.
pub const UNFINISHED: &str = ".writing-";
/// Where run directories are made unless `--out` says otherwise.
pub const ROOT: &str = "results";

/// A directory for the results of one invocation (and of those that resume it).
#[derive(Clone, Debug, PartialEq)]
pub struct RunDirectory {
    path: PathBuf,
}

impl RunDirectory {
    /// Makes `<root>/<scenario>/<UTC start>/`, with a suffix where two started in the same second, and points `latest` to
    /// it. Fails where the directory cannot be written.
    pub fn create(
        root: &Path,
        scenario: &str,
        started: Timestamp,
    ) -> Result<RunDirectory, ResultsError> {
        let parent = root.join(scenario);
        fs::create_dir_all(&parent).map_err(ResultsError::write(&parent))?;
        let start = clock::compact(started);
        for attempt in 1_u32.. {
            let name = match attempt {
                1 => start.clone(),
                n => format!("{start}-{n}"),
            };
            let path = parent.join(&name);
            match fs::create_dir(&path) {
                Ok(()) => {
                    point_latest(&parent, &name);
                    return RunDirectory { path }.with_folders();
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(ResultsError::write(&path)(error)),
            }
        }
        Err(ResultsError::refused(&parent, "holds too many runs"))
    }

    /// `--out DIR`: makes the run directory at `path`, which must be empty or not be there yet.
    pub fn create_at(path: &Path) -> Result<RunDirectory, ResultsError> {
        fs::create_dir_all(path).map_err(ResultsError::write(path))?;
        let mut entries = fs::read_dir(path).map_err(ResultsError::read(path))?;
        if entries.next().is_some() {
            return Err(ResultsError::refused(
                path,
                "is not empty; name a new directory, or go on with the runs in it by --resume",
            ));
        }
        RunDirectory {
            path: path.to_owned(),
        }
        .with_folders()
    }

    /// One that exists: it holds a plan and a manifest.
    pub fn open(path: &Path) -> Result<RunDirectory, ResultsError> {
        for name in [PLAN, MANIFEST] {
            if !path.join(name).is_file() {
                return Err(ResultsError::refused(
                    path,
                    format!("is no run directory (it has no {name})"),
                ));
            }
        }
        Ok(RunDirectory {
            path: path.to_owned(),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The histograms of the run with this slug.
    pub fn hlog(&self, slug: &str) -> PathBuf {
        self.path.join(HLOG).join(format!("{slug}.hlog"))
    }

    /// Where the logs of the servers of the run with this slug belong.
    pub fn server_logs(&self, slug: &str) -> PathBuf {
        self.path.join(SERVER_LOGS).join(slug)
    }

    /// Holds the directory against another dbbench for as long as the file returned is open, at most until this process
    /// ends. Its plan must be there.
    pub fn lock(&self) -> Result<fs::File, ResultsError> {
        let path = self.file(PLAN);
        let file = fs::File::open(&path).map_err(ResultsError::read(&path))?;
        // A process that is being started holds all files of its parent for a moment, and with them the lock.
        let patience = Instant::now() + Duration::from_millis(500);
        loop {
            match file.try_lock() {
                Err(fs::TryLockError::WouldBlock) if Instant::now() < patience => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(fs::TryLockError::WouldBlock) => {
                    return Err(ResultsError::refused(
                        &self.path,
                        "another dbbench is writing to it",
                    ));
                }
                // A file system without locks: the lock is a courtesy.
                Ok(()) | Err(fs::TryLockError::Error(_)) => return Ok(file),
            }
        }
    }

    fn with_folders(self) -> Result<RunDirectory, ResultsError> {
        for name in [HLOG, TABLES, SERVER_LOGS] {
            let path = self.path.join(name);
            fs::create_dir_all(&path).map_err(ResultsError::write(&path))?;
        }
        Ok(self)
    }
}

/// A convenience only: a file system without symbolic links, or a `latest` of the user's own, is no fault.
fn point_latest(parent: &Path, name: &str) {
    let temporary = parent.join(format!(".latest-{}", std::process::id()));
    if std::os::unix::fs::symlink(name, &temporary).is_ok()
        && fs::rename(&temporary, parent.join("latest")).is_err()
    {
        let _ = fs::remove_file(&temporary);
    }
}

/// The id of the run at a position of the plan; `Plan::run_id` says how it is made.
pub fn run_id(plan: &Plan, run: usize) -> String {
    plan.run_id(&plan.runs[run])
}

/// The name of a run's files: `target-redis_threads-4_2`. A hash follows where characters had to be replaced or the
/// name cut, so that two runs never share a file.
pub fn slug(run_id: &str) -> String {
    const LONGEST: usize = 120;
    let mut faithful = true;
    let mut slug: String = run_id
        .trim_start_matches('#')
        .chars()
        .map(|c| match c {
            '=' => '-',
            ',' | '#' => '_',
            c if c.is_ascii_alphanumeric() || c == '.' => c,
            // These stand for `=` and `,`.
            '-' | '_' => {
                faithful = false;
                c
            }
            _ => {
                faithful = false;
                '_'
            }
        })
        .collect();
    if slug.len() > LONGEST {
        slug.truncate(LONGEST);
        faithful = false;
    }
    if !faithful {
        let hash = xxhash_rust::xxh3::xxh3_64(run_id.as_bytes());
        slug.push_str(&format!("-{:08x}", hash as u32));
    }
    slug
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn a_run_is_named_by_its_axis_values_and_repeat() {
        let plan = fixture::plan();
        assert_eq!(run_id(&plan, 0), "target=redis,threads=1#1");
        let mut plan = fixture::plan();
        plan.axes[0].values[0] = "7-current, ULE".into();
        assert_eq!(run_id(&plan, 0), "target=\"7-current, ULE\",threads=1#1");
    }

    #[test]
    fn different_runs_never_share_a_file() {
        assert_eq!(slug("target=redis,threads=4#2"), "target-redis_threads-4_2");
        let awkward = ["a=x_b#1", "a=x-b#1", "a=\"x,b\"#1", "a=\"x/b\"#1"];
        let slugs: std::collections::BTreeSet<String> = awkward.iter().map(|id| slug(id)).collect();
        assert_eq!(slugs.len(), awkward.len());
        assert!(slugs.iter().all(|slug| !slug.contains(['/', '"', ' '])));
        assert!(slug(&"x".repeat(5000)).len() < 200);
    }

    #[test]
    fn two_invocations_in_one_second_get_a_directory_each_and_latest_is_the_newer() {
        let root = tempfile::tempdir().unwrap();
        let started = fixture::started();
        let first = RunDirectory::create(root.path(), "kvs", started).unwrap();
        let second = RunDirectory::create(root.path(), "kvs", started).unwrap();
        assert!(first.path().ends_with("kvs/20261130T201500Z"));
        assert!(second.path().ends_with("kvs/20261130T201500Z-2"));
        let latest = fs::canonicalize(root.path().join("kvs/latest")).unwrap();
        assert_eq!(latest, fs::canonicalize(second.path()).unwrap());
    }

    #[test]
    fn a_directory_with_something_in_it_is_refused_for_out() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("new/deeper");
        assert!(RunDirectory::create_at(&path).is_ok());
        let error = RunDirectory::create_at(&path).unwrap_err().to_string();
        assert!(
            error.contains("deeper") && error.contains("--resume"),
            "{error}"
        );
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        let error = RunDirectory::create(&file, "kvs", fixture::started()).unwrap_err();
        assert!(error.to_string().contains("file/kvs"), "{error}");
    }
}
