//! Going on with a run directory: what a killed dbbench left behind is found here, and cut off.
//!
//! runs.csv says which runs are done. All other files were on disk before its row was, so in each of them the rows of done
//! runs come first, whole; what follows belongs to a run that is not done, and may end in the middle of a row.

use super::csv_file::row_ends;
use super::layout::{self, RunDirectory};
use super::manifest::Manifest;
use super::{ResultsError, cells, columns};
use crate::plan::Plan;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

/// How many bytes of each file stay, and which runs (positions in the plan) are done.
#[derive(Debug, Default)]
pub struct Kept {
    pub runs: u64,
    pub operations: u64,
    pub windows: u64,
    pub errors: u64,
    pub servers: u64,
    pub probes: u64,
    pub done: Vec<usize>,
}

/// Reads a directory that is to be resumed; changes nothing.
pub fn check(directory: &RunDirectory, plan: &Plan) -> Result<(Manifest, Kept), ResultsError> {
    let manifest = Manifest::read(&directory.file(layout::MANIFEST))?;
    if manifest.plan_hash != plan.hash {
        return Err(ResultsError::refused(
            directory.path(),
            "holds the runs of another plan: the scenario, its files or its overrides were changed since; \
             undo the change to go on, or leave out --resume to start anew",
        ));
    }
    if manifest.labels != plan.labels {
        return Err(ResultsError::refused(
            directory.path(),
            "was started with other labels; give the same --label arguments to go on",
        ));
    }
    let positions: HashMap<String, usize> = (0..plan.runs.len())
        .map(|run| (cells::text(&layout::run_id(plan, run)), run))
        .collect();
    let mut kept = Kept::default();
    let path = directory.file(layout::RUNS);
    let mut done = HashMap::new();
    kept.runs = whole_rows(&path, &columns::runs_header(plan), |row| {
        let (Some(id), Some(status)) = (row.get(0), status_of(row, plan)) else {
            return false;
        };
        if let Some(&run) = positions.get(id) {
            done.insert(id.to_owned(), status);
            kept.done.push(run);
        }
        true
    })?;
    let mut seen = HashSet::new();
    let path = directory.file(layout::OPERATIONS);
    kept.operations = whole_rows(&path, &columns::operations_header(plan), |row| {
        let id = row.get(0).unwrap_or_default();
        seen.insert(id.to_owned());
        done.contains_key(id)
    })?;
    let has_phases = |id: &String| {
        let run = positions.get(id).map(|&run| &plan.runs[run]);
        run.is_some_and(|run| !plan.shapes[run.shape as usize].phases.is_empty())
    };
    let lost = done
        .iter()
        .find(|(id, status)| *status == "valid" && !seen.contains(*id) && has_phases(id));
    if let Some((id, _)) = lost {
        return Err(ResultsError::refused(
            &path,
            format!(
                "has no rows of run {id}, though runs.csv says that it is done; \
                 the directory was damaged and cannot be resumed"
            ),
        ));
    }
    let of_done_runs = |name: &str, header: Vec<String>| {
        whole_rows(&directory.file(name), &header, |row| {
            row.get(0).is_some_and(|id| done.contains_key(id))
        })
    };
    kept.windows = of_done_runs(layout::WINDOWS, columns::windows_header())?;
    kept.errors = of_done_runs(layout::ERRORS, columns::errors_header())?;
    kept.servers = of_done_runs(layout::SERVERS, columns::servers_header())?;
    kept.probes = of_done_runs(layout::PROBES, columns::probes_header(plan))?;
    Ok((manifest, kept))
}

fn status_of(row: &csv::StringRecord, plan: &Plan) -> Option<String> {
    row.get(columns::run_header(plan).len()).map(str::to_owned)
}

/// Bytes of the header and of the rows after it up to the first that `keep` refuses or that is half-written; 0 where not even
/// the header is whole.
fn whole_rows(
    path: &Path,
    header: &[String],
    mut keep: impl FnMut(&csv::StringRecord) -> bool,
) -> Result<u64, ResultsError> {
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(0),
        bytes => bytes.map_err(ResultsError::read(path))?,
    };
    let mut start = 0;
    for end in row_ends(&bytes) {
        let Some(row) = parse(&bytes[start..end]) else {
            break;
        };
        if start == 0 && row.iter().ne(header.iter().map(String::as_str)) {
            return Err(ResultsError::refused(
                path,
                "has other columns: it was written by another version of dbbench, which has to finish it",
            ));
        }
        if start > 0 && (row.len() != header.len() || !keep(&row)) {
            break;
        }
        start = end;
    }
    Ok(start as u64)
}

/// One row; None where its bytes are no text.
fn parse(bytes: &[u8]) -> Option<csv::StringRecord> {
    let mut row = csv::StringRecord::new();
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(bytes);
    matches!(reader.read_record(&mut row), Ok(true)).then_some(row)
}

/// Removes histograms and server logs of runs that are not done.
pub fn remove_leftovers(
    directory: &RunDirectory,
    plan: &Plan,
    done: &[usize],
) -> Result<(), ResultsError> {
    let done: HashSet<String> = done
        .iter()
        .map(|&run| layout::slug(&layout::run_id(plan, run)))
        .collect();
    for entry in entries(directory.path())? {
        let name = entry.file_name();
        if name.to_string_lossy().starts_with(layout::UNFINISHED) {
            fs::remove_file(entry.path()).map_err(ResultsError::write(&entry.path()))?;
        }
    }
    for entry in entries(&directory.file(layout::HLOG))? {
        let name = entry.file_name().to_string_lossy().into_owned();
        let slug = name.strip_suffix(".hlog").unwrap_or(&name);
        if !done.contains(slug) {
            fs::remove_file(entry.path()).map_err(ResultsError::write(&entry.path()))?;
        }
    }
    for entry in entries(&directory.file(layout::SERVER_LOGS))? {
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_directory && !done.contains(&*entry.file_name().to_string_lossy()) {
            fs::remove_dir_all(entry.path()).map_err(ResultsError::write(&entry.path()))?;
        }
    }
    Ok(())
}

fn entries(path: &Path) -> Result<Vec<fs::DirEntry>, ResultsError> {
    fs::create_dir_all(path).map_err(ResultsError::write(path))?;
    let entries = fs::read_dir(path).map_err(ResultsError::read(path))?;
    entries
        .collect::<Result<_, _>>()
        .map_err(ResultsError::read(path))
}
