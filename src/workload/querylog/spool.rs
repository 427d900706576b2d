//! What a phase replays: a log, read once through its filter into files of plain records, so that the operation loop only
//! copies bytes and a log of any length streams in constant memory.
//!
//! A record is the length of a statement (4 bytes), its time after the first one's in microseconds (8 bytes), how many
//! stand before it with the same time (4 bytes), all little-endian, and its bytes. One file for all threads, or one each.

use super::filter::{Filter, Verdict};
use super::statement::Kind;
use super::{Format, Listener, Logged, NotUnderstood, read};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What each client thread replays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PerThread {
    /// All of it.
    Whole,
    /// Statement i goes to thread i modulo their number.
    Share,
    /// Logged connections are dealt to the threads in the order in which they appear.
    Connection,
}

/// A log ready to be replayed. Its files lie in a directory of the caller's.
#[derive(Clone, Debug)]
pub struct Spool {
    files: Vec<PathBuf>,
    /// How many statements have the same time, where the log tells whole seconds only.
    crowds: Arc<HashMap<u64, u32>>,
    /// From the first statement until the log would be begun again, in microseconds.
    lap_us: u64,
    pub report: Report,
}

/// What came of a log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    pub format: Option<Format>,
    /// Statements that are replayed.
    pub statements: u64,
    /// Those that the filter did not want.
    pub not_wanted: u64,
    /// Those that may write, which was not allowed.
    pub refused: u64,
    pub not_understood: u64,
    pub first_not_understood: Option<NotUnderstood>,
    /// Whether any of them has a time.
    pub timed: bool,
    /// Different databases of the statements that are replayed, up to two.
    pub databases: Vec<Vec<u8>>,
}

/// How a log is replayed.
#[derive(Clone, Debug)]
pub struct Wanted<'w> {
    pub path: &'w Path,
    pub format: Format,
    pub filter: Filter,
    /// Statements at most.
    pub first: Option<u64>,
    pub per_thread: PerThread,
    pub threads: u32,
}

struct Writing<'w> {
    wanted: &'w Wanted<'w>,
    writers: Vec<BufWriter<File>>,
    dealt: HashMap<u64, usize>,
    first_us: Option<i64>,
    report: Report,
    fault: Option<io::Error>,
    heartbeat: &'w mut dyn FnMut(u64) -> bool,
    seen: u64,
    /// Time of the first statement that is replayed.
    begin_us: Option<i64>,
    /// The latest after it.
    last_us: u64,
    crowds: HashMap<u64, u32>,
}

impl Spool {
    /// Reads the log. `heartbeat` is told how many statements were seen, now and then; false stops.
    pub fn make(
        wanted: &Wanted<'_>,
        directory: &Path,
        heartbeat: &mut dyn FnMut(u64) -> bool,
    ) -> io::Result<Spool> {
        let count = match wanted.per_thread {
            PerThread::Whole => 1,
            _ => wanted.threads.max(1),
        };
        let files: Vec<PathBuf> = (0..count)
            .map(|number| directory.join(format!("{number}.spool")))
            .collect();
        let writers = files.iter().map(File::create);
        let writers = writers.map(|file| file.map(|file| BufWriter::with_capacity(64 << 10, file)));
        let mut writing = Writing {
            wanted,
            writers: writers.collect::<io::Result<_>>()?,
            dealt: HashMap::new(),
            first_us: None,
            report: Report::default(),
            fault: None,
            heartbeat,
            seen: 0,
            begin_us: None,
            last_us: 0,
            crowds: HashMap::new(),
        };
        let format = match wanted.first {
            Some(0) => wanted.format,
            _ => read(wanted.path, wanted.format, &mut writing)?,
        };
        if let Some(fault) = writing.fault {
            return Err(fault);
        }
        for mut writer in writing.writers {
            writer.flush()?;
        }
        writing.report.format = Some(format);
        Ok(Spool {
            files,
            lap_us: lap(writing.last_us, writing.report.statements),
            crowds: Arc::new(writing.crowds),
            report: writing.report,
        })
    }

    /// What a thread replays, from its beginning.
    pub fn cursor(&self, thread: u32) -> io::Result<Cursor> {
        let path = &self.files[thread as usize % self.files.len()];
        Ok(Cursor {
            reader: BufReader::with_capacity(64 << 10, File::open(path)?),
            path: path.clone(),
            crowds: Arc::clone(&self.crowds),
            offset_us: 0,
            lap_us: self.lap_us,
            begun_us: 0,
        })
    }
}

/// A second more where the log tells whole seconds, which its last statements fill; else as long as a statement follows
/// another on average.
fn lap(last_us: u64, statements: u64) -> u64 {
    match last_us % 1_000_000 {
        0 => last_us + 1_000_000,
        _ => last_us + last_us / statements.saturating_sub(1).max(1),
    }
}

impl Listener for Writing<'_> {
    fn statement(&mut self, logged: &Logged<'_>) -> ControlFlow<()> {
        self.seen += 1;
        if self.seen.is_multiple_of(50_000) && !(self.heartbeat)(self.seen) {
            self.fault = Some(io::ErrorKind::Interrupted.into());
            return ControlFlow::Break(());
        }
        self.first_us = self.first_us.or(logged.at_us);
        let kind = Kind::of(logged.text);
        match self.wanted.filter.judge(logged, kind, self.first_us) {
            Verdict::NotWanted => self.report.not_wanted += 1,
            Verdict::Refused => self.report.refused += 1,
            Verdict::Wanted => {
                if let Err(fault) = self.write(logged) {
                    self.fault = Some(fault);
                    return ControlFlow::Break(());
                }
                if self.wanted.first == Some(self.report.statements) {
                    return ControlFlow::Break(());
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn not_understood(&mut self, place: NotUnderstood) {
        self.report.not_understood += 1;
        self.report.first_not_understood.get_or_insert(place);
    }
}

impl Writing<'_> {
    fn write(&mut self, logged: &Logged<'_>) -> io::Result<()> {
        let count = self.writers.len();
        let position = match self.wanted.per_thread {
            PerThread::Whole => 0,
            PerThread::Share => (self.report.statements % count as u64) as usize,
            PerThread::Connection => {
                let next = self.dealt.len() % count;
                *self.dealt.entry(logged.connection).or_insert(next)
            }
        };
        let offset = match logged.at_us {
            None => 0,
            Some(at) => {
                let begin = *self.begin_us.get_or_insert(at);
                u64::try_from(at - begin).unwrap_or(0)
            }
        };
        self.last_us = self.last_us.max(offset);
        self.report.timed |= logged.at_us.is_some();
        let before = match offset % 1_000_000 {
            0 => {
                let crowd = self.crowds.entry(offset).or_default();
                *crowd += 1;
                *crowd - 1
            }
            _ => 0,
        };
        let writer = &mut self.writers[position];
        let length = (logged.text.len() as u32).to_le_bytes();
        writer.write_all(&length)?;
        writer.write_all(&offset.to_le_bytes())?;
        writer.write_all(&before.to_le_bytes())?;
        writer.write_all(logged.text)?;
        self.report.statements += 1;
        let databases = &mut self.report.databases;
        if databases.len() < 2 && !databases.iter().any(|known| known == logged.database) {
            databases.push(logged.database.to_vec());
        }
        Ok(())
    }
}

/// Statements one after another.
#[derive(Debug)]
pub struct Cursor {
    reader: BufReader<File>,
    path: PathBuf,
    crowds: Arc<HashMap<u64, u32>>,
    offset_us: u64,
    lap_us: u64,
    /// When the log was begun the last time, after it was the first time.
    begun_us: u64,
}

impl Cursor {
    /// Puts the next statement into `text`; false at the end.
    #[inline]
    pub fn next(&mut self, text: &mut Vec<u8>) -> io::Result<bool> {
        let mut head = [0; 16];
        match self.reader.read_exact(&mut head) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            other => other?,
        }
        let [
            l0,
            l1,
            l2,
            l3,
            o0,
            o1,
            o2,
            o3,
            o4,
            o5,
            o6,
            o7,
            b0,
            b1,
            b2,
            b3,
        ] = head;
        self.offset_us = u64::from_le_bytes([o0, o1, o2, o3, o4, o5, o6, o7]);
        let before = u32::from_le_bytes([b0, b1, b2, b3]);
        if before > 0 {
            // Statements of one second are spread over it.
            let crowd = self.crowds.get(&self.offset_us).copied().unwrap_or(1);
            self.offset_us += u64::from(before) * 1_000_000 / u64::from(crowd.max(1));
        }
        text.resize(u32::from_le_bytes([l0, l1, l2, l3]) as usize, 0);
        self.reader.read_exact(text)?;
        Ok(true)
    }

    /// When the statement was asked, in microseconds after the first one; later laps follow the earlier ones.
    pub fn offset_us(&self) -> u64 {
        self.begun_us + self.offset_us
    }

    /// Back to the beginning.
    pub fn rewind(&mut self) -> io::Result<()> {
        self.begun_us += self.lap_us;
        self.reader = BufReader::with_capacity(64 << 10, File::open(&self.path)?);
        Ok(())
    }
}
