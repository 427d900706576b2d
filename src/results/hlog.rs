//! Histograms as HdrHistogram interval logs V2: one file per run, one line per window, group and operation, tagged
//! `phase.group.operation.kind` (without a group `phase.operation.kind`). Nanoseconds.
//!
//! Kinds: `service` (all operations, with the time they took), `succeeded_service`; windows of the warm-up have
//! `warmup_service` and `warmup_succeeded_service`, so that the others add up to the phase's figures. While a phase runs,
//! its histograms only wait in an unnamed file; encoding costs CPU that belongs to the client being measured.

use super::ResultsError;
use super::columns::counts_in_figures;
use crate::measure::record::{Latencies, WindowRecord};
use crate::plan::PhasePlan;
use base64_simd::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriterBuilder, IntervalLogWriterError, LogEntry, Tag,
};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Nanoseconds in a unit of the log's column for people, `Interval_Max`: milliseconds, as other tools print it.
const MAX_VALUE_DIVISOR: f64 = 1e6;

/// A run's log while the run goes on.
pub struct HistogramLog {
    path: PathBuf,
    /// Made with the first window: a run that is skipped has no log.
    files: Option<Files>,
    /// The phase whose windows are in the spool.
    spooled: String,
    /// The start of the first phase, to the millisecond, as the log can hold it.
    base: Option<Timestamp>,
}

struct Files {
    log: BufWriter<File>,
    /// Unnamed, so that a kill leaves nothing of it.
    spool: BufWriter<File>,
}

impl Files {
    fn create(path: &Path) -> io::Result<Files> {
        let directory = path.parent().unwrap_or(Path::new("."));
        Ok(Files {
            log: BufWriter::new(File::create(path)?),
            spool: BufWriter::new(tempfile::tempfile_in(directory)?),
        })
    }

    fn empty_spool(&mut self) -> io::Result<()> {
        self.spool.rewind()?;
        self.spool.get_mut().set_len(0)
    }
}

impl std::fmt::Debug for HistogramLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HistogramLog({})", self.path.display())
    }
}

impl HistogramLog {
    /// For the run whose log is to be at `path`; an older one there is removed.
    pub fn create(path: &Path) -> Result<HistogramLog, ResultsError> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(ResultsError::write(path)(error));
            }
            _ => {}
        }
        Ok(HistogramLog {
            path: path.to_owned(),
            files: None,
            spooled: String::new(),
            base: None,
        })
    }

    /// Puts a window's histograms aside, as they are.
    pub fn spool(&mut self, phase: &PhasePlan, window: &WindowRecord) -> Result<(), ResultsError> {
        self.spool_window(&phase.name, window)
            .map_err(ResultsError::write(&self.path))
    }

    fn spool_window(&mut self, phase: &str, window: &WindowRecord) -> io::Result<()> {
        let files = match &mut self.files {
            Some(files) => files,
            none => none.insert(Files::create(&self.path)?),
        };
        // Windows of a phase that never ended are dropped.
        if self.spooled != phase {
            files.empty_spool()?;
            self.spooled = phase.to_owned();
        }
        for operation in &window.operations {
            let interval = Interval {
                group: operation.group as u64,
                slot: operation.slot as u64,
                figures: counts_in_figures(window.stage),
                start: window.start,
                length: window.length,
                succeeded: recorded(&operation.succeeded.histogram),
                unsuccessful: recorded(&operation.unsuccessful.histogram),
            };
            interval.write(&mut files.spool)?;
        }
        Ok(())
    }

    /// Encodes the windows of a phase that has ended.
    pub fn encode(&mut self, phase: &PhasePlan, started: Timestamp) -> Result<(), ResultsError> {
        if self.spooled != phase.name {
            return Ok(());
        }
        self.encode_spool(phase, started)
            .map_err(ResultsError::write(&self.path))
    }

    fn encode_spool(&mut self, phase: &PhasePlan, started: Timestamp) -> io::Result<()> {
        let mut header = IntervalLogWriterBuilder::new();
        header.with_max_value_divisor(MAX_VALUE_DIVISOR);
        let base = match self.base {
            Some(base) => base,
            None => {
                let base = Timestamp::from_millisecond(started.as_millisecond())
                    .map_err(io::Error::other)?;
                header.add_comment("[Histogram log format version 1.3]");
                header.add_comment("[dbbench: values are nanoseconds, Interval_Max milliseconds]");
                let since = Duration::from_millis(base.as_millisecond().unsigned_abs());
                header.with_start_time(SystemTime::UNIX_EPOCH + since);
                header.with_base_time(SystemTime::UNIX_EPOCH + since);
                self.base = Some(base);
                base
            }
        };
        // A clock that was set back in the middle of a run must not make a negative offset.
        let offset = Duration::try_from(started.duration_since(base)).unwrap_or_default();

        let Some(files) = &mut self.files else {
            return Ok(());
        };
        files.spool.rewind()?;
        let mut spool = BufReader::new(files.spool.get_mut());
        let mut serializer = V2DeflateSerializer::new();
        let mut log = header.begin_log_with(&mut files.log, &mut serializer)?;
        while let Some(interval) = Interval::read(&mut spool)? {
            let name = tag(phase, &interval);
            let stage = if interval.figures { "" } else { "warmup_" };
            let succeeded = histogram(&[&interval.succeeded]);
            let all = histogram(&[&interval.succeeded, &interval.unsuccessful]);
            for (kind, histogram) in [("service", all), ("succeeded_service", succeeded)] {
                if histogram.is_empty() {
                    continue;
                }
                let tag = format!("{name}.{stage}{kind}");
                let start = offset + interval.start;
                log.write_histogram(&histogram, start, interval.length, Tag::new(&tag))
                    .map_err(into_io)?;
            }
        }
        self.spooled.clear();
        files.empty_spool()
    }

    /// Waits until the log is on disk.
    pub fn finish(mut self) -> Result<(), ResultsError> {
        let Some(files) = &mut self.files else {
            return Ok(());
        };
        files
            .log
            .flush()
            .and_then(|()| files.log.get_ref().sync_data())
            .map_err(ResultsError::write(&self.path))
    }
}

/// Keeps the cause, so that a full disk is named as such.
fn into_io<E: std::fmt::Display>(error: IntervalLogWriterError<E>) -> io::Error {
    match error {
        IntervalLogWriterError::IoError(error) => error,
        IntervalLogWriterError::SerializeError(error) => io::Error::other(error.to_string()),
    }
}

/// `phase.group.operation`, or `phase.operation`.
pub fn tag_of(phase: &str, group: &str, operation: &str) -> String {
    let parts = [phase, group, operation].map(|part| part.replace([',', ' ', '\r', '\n'], "_"));
    match group {
        "" => format!("{}.{}", parts[0], parts[2]),
        _ => parts.join("."),
    }
}

fn tag(phase: &PhasePlan, interval: &Interval) -> String {
    let group = phase.groups.get(interval.group as usize);
    let entry = group.and_then(|group| group.mix.get(interval.slot as usize));
    let operation = entry.map_or("", |entry| entry.operation.as_str());
    tag_of(
        &phase.name,
        group.map_or("", |group| group.name.as_str()),
        operation,
    )
}

/// A line of the spool: plain numbers, so that it costs the running phase as little as it can.
struct Interval {
    group: u64,
    slot: u64,
    /// Counts in the phase's figures: not of the warm-up.
    figures: bool,
    start: Duration,
    length: Duration,
    /// (value in nanoseconds, count).
    succeeded: Vec<(u64, u64)>,
    unsuccessful: Vec<(u64, u64)>,
}

impl Interval {
    fn write(&self, into: &mut impl Write) -> io::Result<()> {
        let head = [
            self.group,
            self.slot,
            u64::from(self.figures),
            self.start.as_nanos() as u64,
            self.length.as_nanos() as u64,
            self.succeeded.len() as u64,
            self.unsuccessful.len() as u64,
        ];
        let pairs = self.succeeded.iter().chain(&self.unsuccessful);
        let pairs = pairs.flat_map(|&(value, count)| [value, count]);
        for number in head.into_iter().chain(pairs) {
            into.write_all(&number.to_le_bytes())?;
        }
        Ok(())
    }

    /// None at the end.
    fn read(from: &mut impl Read) -> io::Result<Option<Interval>> {
        let group = match number(from) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            group => group?,
        };
        let slot = number(from)?;
        let figures = number(from)? != 0;
        let start = Duration::from_nanos(number(from)?);
        let length = Duration::from_nanos(number(from)?);
        let (succeeded, unsuccessful) = (number(from)?, number(from)?);
        Ok(Some(Interval {
            group,
            slot,
            figures,
            start,
            length,
            succeeded: pairs(from, succeeded)?,
            unsuccessful: pairs(from, unsuccessful)?,
        }))
    }
}

fn number(from: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn pairs(from: &mut impl Read, count: u64) -> io::Result<Vec<(u64, u64)>> {
    (0..count)
        .map(|_| Ok((number(from)?, number(from)?)))
        .collect()
}

fn recorded(histogram: &Histogram<u64>) -> Vec<(u64, u64)> {
    histogram
        .iter_recorded()
        .map(|step| (step.value_iterated_to(), step.count_since_last_iteration()))
        .collect()
}

fn histogram(parts: &[&[(u64, u64)]]) -> Histogram<u64> {
    let mut histogram = Latencies::new().histogram;
    for &(value, count) in parts.iter().copied().flatten() {
        histogram
            .record_n(value, count)
            .expect("the histogram grows as it needs");
    }
    histogram
}

/// A line of a log.
#[derive(Clone, Debug)]
pub struct LogInterval {
    /// Empty where it has none.
    pub tag: String,
    /// Wall clock where the log says a base or start time, else as the line has it.
    pub start: Duration,
    pub length: Duration,
    /// (nanoseconds, count), as far apart as the histogram's buckets.
    pub recorded: Vec<(u64, u64)>,
}

/// Reads a log line by line, for each line whose tag `wanted` accepts. Any HdrHistogram interval log will do.
pub fn read_intervals(
    path: &Path,
    wanted: impl Fn(&str) -> bool,
    mut each: impl FnMut(LogInterval),
) -> Result<(), ResultsError> {
    let bytes = std::fs::read(path).map_err(ResultsError::read(path))?;
    let damaged = |what: String| ResultsError::refused(path, format!("is damaged: {what}"));
    let mut deserializer = Deserializer::new();
    let mut base = Duration::ZERO;
    for entry in IntervalLogIterator::new(&bytes) {
        let line = match entry.map_err(|error| damaged(format!("{error:?}")))? {
            LogEntry::BaseTime(time) => {
                base = time;
                continue;
            }
            LogEntry::StartTime(_) => continue,
            LogEntry::Interval(line) => line,
        };
        let tag = line.tag().map_or("", |tag| tag.as_str());
        if !wanted(tag) {
            continue;
        }
        let encoded = STANDARD
            .decode_to_vec(line.encoded_histogram())
            .map_err(|error| damaged(error.to_string()))?;
        let histogram: Histogram<u64> = deserializer
            .deserialize(&mut encoded.as_slice())
            .map_err(|error| damaged(format!("{error:?}")))?;
        each(LogInterval {
            tag: tag.to_owned(),
            start: base + line.start_timestamp(),
            length: line.duration(),
            recorded: recorded(&histogram),
        });
    }
    Ok(())
}

/// All lines of each tag added up.
pub fn read(path: &Path) -> Result<BTreeMap<String, Latencies>, ResultsError> {
    let mut merged: BTreeMap<String, Latencies> = BTreeMap::new();
    let add = |line: LogInterval| add(merged.entry(line.tag).or_default(), &line.recorded);
    read_intervals(path, |_| true, add)?;
    Ok(merged)
}

/// Adds what a line recorded. Ends and sum are then those of the histogram: exact ones stand in operations.csv.
pub fn add(latencies: &mut Latencies, recorded: &[(u64, u64)]) {
    for &(value, count) in recorded {
        latencies
            .histogram
            .record_n(value, count)
            .expect("the histogram grows as it needs");
        latencies.min_ns = latencies.min_ns.min(value);
        latencies.max_ns = latencies.max_ns.max(value);
        latencies.sum_ns += u128::from(value) * u128::from(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two lines as YCSB and latte write them: with a legend and without tags, and with tags, base and start time.
    const YCSB: &str = "#[Logging for: READ]\n#[Histogram log format version 1.3]\n\
        #[StartTime: 1796071096.474 (seconds since epoch), Mon Nov 30 20:38:16 UTC 2026]\n\
        \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n\
        1.013,0.863,0.000,HISTFAAAABx42pNpmSzMwMDAyAABzFAaxmey/wBlAQA8yQJ9\n";
    const LATTE: &str = "#[Logged with Latte 0.29.0]\n#[StartTime: 1796072330.225 (seconds since epoch)]\n\
        #[BaseTime: 1796072330.225 (seconds since epoch)]\n#[MaxValueDivisor: 1000000.000]\n\
        Tag=cycles,0.000,1.000,178.258,HISTFAAAAPV4nC2Pr0tDURTH3/fjhjzHQ2RJ1CBieIhBRMQgIgaRIWJYMhpEDCL+C4IYDLLw0sNgMFgsC2MYRPwzxLg0tqWx9Pa9bPfAOefec74/7vJDoxpFiqPJmZlWhTT3WhQH/clD61OcwwIpx8TUOGGdhKbIxBWndERbHDp+RSGeYNeDD3k/DeVFtGCLbpmLsNAu8Q+5zDnPElmJJjyLfJZbeqIr6gG0z7ustcc1Q/FVZiB+ZA8j8QYGb/AndljlkqqvqXOFBrZYI8cm4sBbYZsbtwlHpmPRm99yH1s8cZxZ4s7gFaLwhUexZsR9sFpnkwxPLDkGMvwy0Q==\n";

    fn read_text(text: &str) -> BTreeMap<String, Latencies> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        read(file.path()).unwrap()
    }

    #[test]
    fn logs_of_other_tools_are_read() {
        let latte = read_text(LATTE);
        // The log's own third column: 178.258 ms.
        assert_eq!(latte["cycles"].max_ns / 1000, 178_257);
        assert!(latte["cycles"].len() > 10);
        assert!(read_text(YCSB)[""].is_empty());
    }

    #[test]
    fn a_damaged_log_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "Tag=a,0.0,1.0,2.0,HISTFxyz\n").unwrap();
        let error = read(file.path()).unwrap_err().to_string();
        assert!(error.contains("is damaged"), "{error}");
    }
}
