//! One CSV file that grows by whole rows and can be cut back to where the last run ended.
//!
//! Knows bytes and rows; which rows, and when they are synced, is `writer`'s.

use super::ResultsError;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Rows are gathered up to this many bytes before they are written.
const BUFFER_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub struct CsvFile {
    path: PathBuf,
    file: File,
    pending: Vec<u8>,
    /// Bytes of the header and of the rows of finished runs.
    committed: u64,
    /// Bytes written beyond that, or written in part.
    dirty: bool,
}

impl CsvFile {
    /// Opens the file, keeps its first `keep` bytes, and writes the header where nothing is kept.
    pub fn open(path: &Path, keep: u64, header: &[String]) -> Result<CsvFile, ResultsError> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .map_err(ResultsError::write(path))?;
        file.set_len(keep).map_err(ResultsError::write(path))?;
        let mut csv = CsvFile {
            path: path.to_owned(),
            file,
            pending: Vec::new(),
            committed: keep,
            // The length that was set must be on disk, too.
            dirty: true,
        };
        if keep == 0 {
            csv.append(header)?;
        }
        csv.sync()?;
        csv.commit()?;
        Ok(csv)
    }

    /// Adds a row; it may stay in memory until `sync`.
    pub fn append(&mut self, row: &[String]) -> Result<(), ResultsError> {
        self.dirty = true;
        encode(row, &mut self.pending);
        if self.pending.len() >= BUFFER_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ResultsError> {
        let written = self.file.write_all(&self.pending);
        self.pending.clear();
        written.map_err(ResultsError::write(&self.path))
    }

    /// Writes what is in memory and waits until it is on disk; nothing to do without a new row.
    pub fn sync(&mut self) -> Result<(), ResultsError> {
        if !self.dirty {
            return Ok(());
        }
        self.flush()?;
        self.file
            .sync_data()
            .map_err(ResultsError::write(&self.path))
    }

    /// All that was written so far stays, whatever happens to later rows.
    pub fn commit(&mut self) -> Result<(), ResultsError> {
        if !self.dirty {
            return Ok(());
        }
        let metadata = self.file.metadata();
        self.committed = metadata.map_err(ResultsError::read(&self.path))?.len();
        self.dirty = false;
        Ok(())
    }

    /// Forgets every row since the last commit, half-written ones too.
    pub fn cut_back(&mut self) -> Result<(), ResultsError> {
        self.pending.clear();
        if self.dirty {
            self.file
                .set_len(self.committed)
                .map_err(ResultsError::write(&self.path))?;
            self.dirty = false;
        }
        Ok(())
    }
}

/// One row as RFC 4180 has it, with `\n`.
pub fn encode(row: &[String], into: &mut Vec<u8>) {
    let mut writer = csv::WriterBuilder::new()
        .terminator(csv::Terminator::Any(b'\n'))
        .from_writer(into);
    writer
        .write_record(row)
        .and_then(|()| Ok(writer.flush()?))
        .expect("writing to memory does not fail");
}

/// Ends of the whole rows in `bytes`: a `\n` outside of quotes ends one. What follows the last end is half-written.
pub fn row_ends(bytes: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let mut quoted = false;
    bytes.iter().enumerate().filter_map(move |(at, &byte)| {
        quoted ^= byte == b'"';
        (byte == b'\n' && !quoted).then_some(at + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_break_inside_quotes_ends_no_row() {
        let mut bytes = Vec::new();
        encode(&["a".into(), "x\ny \"z\"".into()], &mut bytes);
        encode(&["b,".into(), String::new()], &mut bytes);
        assert_eq!(
            String::from_utf8_lossy(&bytes),
            "a,\"x\ny \"\"z\"\"\"\n\"b,\",\n"
        );
        let ends: Vec<usize> = row_ends(&bytes).collect();
        assert_eq!(ends, [14, bytes.len()]);
        assert_eq!(row_ends(&bytes[..13]).count(), 0);
    }

    #[test]
    fn rows_since_the_last_commit_are_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.csv");
        let mut csv = CsvFile::open(&path, 0, &["h".into()]).unwrap();
        csv.append(&["1".into()]).unwrap();
        csv.sync().unwrap();
        csv.commit().unwrap();
        csv.append(&["2".into()]).unwrap();
        csv.sync().unwrap();
        csv.append(&["3".into()]).unwrap();
        csv.cut_back().unwrap();
        csv.append(&["4".into()]).unwrap();
        csv.sync().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "h\n1\n4\n");
    }
}
