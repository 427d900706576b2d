//! The run directory: files and columns are a contract.
//!
//! `layout` names the files, `columns` says what stands in the CSV ones, `writer` appends them run by run so that a kill
//! loses at most the run it was in, `resume` cuts off what such a kill left behind, `hlog` keeps the histograms, `manifest`
//! what a reader needs to believe the numbers, and `read` reads it all back. Knows the plan and the records; nothing of
//! engines, servers or tables.

pub mod cells;
pub mod columns;
pub mod csv_file;
pub mod hlog;
pub mod host;
pub mod layout;
pub mod manifest;
pub mod read;
pub mod resume;
pub mod writer;

#[cfg(test)]
pub mod fixture;

pub use layout::RunDirectory;
pub use manifest::Manifest;
pub use writer::{ResultsWriter, RunWriter};

use std::io;
use std::path::{Path, PathBuf};

/// What can go wrong with a run directory, as a sentence that names the path.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    #[error("cannot write {}: {}", path.display(), cause(source))]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot read {}: {}", path.display(), cause(source))]
    Read { path: PathBuf, source: io::Error },
    /// The directory is not what was asked for; the sentence says what to do instead.
    #[error("{}: {reason}", path.display())]
    Refused { path: PathBuf, reason: String },
}

impl ResultsError {
    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> ResultsError + '_ {
        move |source| ResultsError::Write {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> ResultsError + '_ {
        move |source| ResultsError::Read {
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn refused(path: &Path, reason: impl Into<String>) -> ResultsError {
        ResultsError::Refused {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }
}

/// The usual causes in words; the operating system's own for the rest.
fn cause(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        io::ErrorKind::QuotaExceeded => "the disk quota is used up".to_owned(),
        io::ErrorKind::FileTooLarge => "the limit on the size of a file is reached".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only".to_owned(),
        io::ErrorKind::NotFound => "no such file or directory".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod writer_tests;
