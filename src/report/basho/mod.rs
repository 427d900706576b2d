//! Basho Bench's files and picture, made from any run directory: a directory per run and phase.
//!
//! ```text
//! OUT/<run>/<phase>/  summary.csv  <operation>_latencies.csv ..  errors.csv  README.txt  summary.svg  summary.png
//! ```
//!
//! `gather` adds our windows up to those of Basho Bench, `text` prints them in its columns, `picture` draws them. Here it is
//! decided which runs and phases are exported, and whether a directory may be written.

mod gather;
mod picture;
mod text;

use super::chart;
use crate::results::ResultsError;
use crate::results::layout::slug;
use crate::results::read::Results;
use gather::Gathered;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The window of Basho Bench unless it is told otherwise.
pub const WINDOW: Duration = Duration::from_secs(10);

/// What is wanted of a run directory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Request<'a> {
    /// The id of one run; None = all finished ones.
    pub run: Option<&'a str>,
    /// The name of one phase; None = all.
    pub phase: Option<&'a str>,
    /// None = 10 s, or the next multiple of the run's own windows.
    pub window: Option<Duration>,
    /// Whether directories that are there already are replaced.
    pub replace: bool,
}

/// What was written.
#[derive(Debug, Default)]
pub struct Exported {
    /// One per run and phase.
    pub directories: Vec<PathBuf>,
    /// What was left out, and why, as sentences.
    pub notes: Vec<String>,
}

/// Why nothing, or no more, could be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Results(#[from] ResultsError),
    /// The request does not fit the run directory; the sentence says what would.
    #[error("{0}")]
    Request(String),
    #[error("cannot draw {}: {reason}", path.display())]
    Drawing { path: PathBuf, reason: String },
}

/// Writes the files of every finished run and phase asked for below `out`. Fails where the directory is none, is damaged,
/// holds nothing of what was asked for, or where `out` cannot be written; what was written before stays.
pub fn export(
    directory: &Path,
    out: &Path,
    request: &Request<'_>,
) -> Result<Exported, ExportError> {
    let results = Results::open(directory)?;
    let window = window(&results, request.window)?;
    let runs = runs(&results, request.run)?;
    known_phase(&results, request.phase)?;
    let sources = gather::Sources::read(&results)?;
    let mut exported = Exported::default();
    for run in runs {
        let id = results.run_id(run);
        if results.runs[&run].status == "skipped" {
            exported.notes.push(format!("run {id} was skipped"));
            continue;
        }
        let shape = &results.plan.shapes[results.plan.runs[run].shape as usize];
        for phase in &shape.phases {
            if request.phase.is_some_and(|name| name != phase.name) {
                continue;
            }
            match sources.gather(run, phase, window)? {
                Some(gathered) => {
                    let to = out.join(slug(&id)).join(folder(&phase.name));
                    write(&to, &results, &gathered, request.replace)?;
                    exported.directories.push(to);
                }
                None => exported.notes.push(format!(
                    "phase {} of run {id} has no measured window, or did not end",
                    phase.name
                )),
            }
        }
    }
    match exported.directories.is_empty() {
        true => Err(nothing(directory, &exported.notes)),
        false => Ok(exported),
    }
}

fn nothing(directory: &Path, notes: &[String]) -> ExportError {
    let why = notes.join("; ");
    ExportError::Request(format!(
        "{} has nothing to export: {why}",
        directory.display()
    ))
}

/// The length of the windows to be written. The run's own are added, so it is a multiple of theirs.
fn window(results: &Results, asked: Option<Duration>) -> Result<Duration, ExportError> {
    let own = results.plan.client.window_ns.max(1);
    let up = |ns: u64| Duration::from_nanos(ns.div_ceil(own).saturating_mul(own));
    let Some(asked) = asked else {
        return Ok(up(WINDOW.as_nanos() as u64));
    };
    let ns = u64::try_from(asked.as_nanos()).unwrap_or(u64::MAX);
    if ns > 0 && ns.is_multiple_of(own) {
        return Ok(asked);
    }
    let say = crate::units::format_duration;
    Err(ExportError::Request(format!(
        "--window {} is no multiple of this run directory's windows of {}; say {}",
        say(asked),
        say(Duration::from_nanos(own)),
        say(up(ns.max(1))),
    )))
}

/// The finished runs, in the order of the plan.
fn runs(results: &Results, asked: Option<&str>) -> Result<Vec<usize>, ExportError> {
    let path = results.directory.path().display();
    if results.runs.is_empty() {
        return Err(ExportError::Request(format!(
            "{path} has no finished run; `dbbench scenario FILE --resume {path}` goes on with it"
        )));
    }
    let Some(id) = asked else {
        return Ok(results.runs.keys().copied().collect());
    };
    let planned = (0..results.plan.runs.len()).find(|&run| results.run_id(run) == id);
    match planned {
        Some(run) if results.runs.contains_key(&run) => Ok(vec![run]),
        Some(_) => Err(ExportError::Request(format!(
            "run {id} of {path} is not finished; `dbbench scenario FILE --resume {path}` goes on with it"
        ))),
        None => {
            let first = results.run_id(results.runs.keys().copied().next().unwrap_or(0));
            Err(ExportError::Request(format!(
                "{path} has no run {id}; runs are named as in runs.csv, such as '{first}'"
            )))
        }
    }
}

fn known_phase(results: &Results, asked: Option<&str>) -> Result<(), ExportError> {
    let Some(asked) = asked else { return Ok(()) };
    let shapes = results.plan.shapes.iter();
    let mut names: Vec<&str> = Vec::new();
    for phase in shapes.flat_map(|shape| &shape.phases) {
        if !names.contains(&phase.name.as_str()) {
            names.push(&phase.name);
        }
    }
    match names.contains(&asked) {
        true => Ok(()),
        false => Err(ExportError::Request(format!(
            "{} has no phase {asked}; it has {}",
            results.directory.path().display(),
            names.join(", ")
        ))),
    }
}

/// A phase's name as a directory's: a name of the plan never leads elsewhere.
fn folder(phase: &str) -> String {
    let plain = |c: char| match c {
        c if c.is_alphanumeric() || "-_.".contains(c) => c,
        _ => '_',
    };
    let name: String = phase.chars().map(plain).collect();
    match name.starts_with('.') {
        true => format!("_{name}"),
        false => name,
    }
}

/// Writes all files beside `to` and moves them there together: a directory is whole or not there. A file of an older
/// export would be read as one operation more.
fn write(
    to: &Path,
    results: &Results,
    gathered: &Gathered,
    replace: bool,
) -> Result<(), ExportError> {
    if to.exists() && !replace {
        return Err(ExportError::Request(format!(
            "{} exists already; remove it, or name another place with -o",
            to.display()
        )));
    }
    let parent = to.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(ResultsError::write(parent))?;
    let unfinished = tempfile::Builder::new()
        .prefix(crate::results::layout::UNFINISHED)
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .tempdir_in(parent)
        .map_err(ResultsError::write(parent))?;
    for (name, content) in text::files(gathered) {
        put(&unfinished.path().join(name), content.as_bytes())?;
    }
    let picture = picture::picture(&results.plan.scenario.name, gathered);
    let drawing = |reason: chart::DrawingError| ExportError::Drawing {
        path: to.to_owned(),
        reason: reason.to_string(),
    };
    let svg = chart::svg(&picture).map_err(drawing)?;
    put(&unfinished.path().join("summary.svg"), svg.as_bytes())?;
    let png = chart::png(&picture).map_err(drawing)?;
    put(&unfinished.path().join("summary.png"), &png)?;
    if to.exists() {
        fs::remove_dir_all(to).map_err(ResultsError::write(to))?;
    }
    fs::rename(unfinished.path(), to).map_err(ResultsError::write(to))?;
    // Moved: there is nothing left to remove.
    let _ = unfinished.keep();
    Ok(())
}

fn put(path: &Path, content: &[u8]) -> Result<(), ResultsError> {
    fs::write(path, content).map_err(ResultsError::write(path))
}

#[cfg(test)]
mod tests;
