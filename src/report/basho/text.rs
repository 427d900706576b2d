//! The files of a phase in the columns of Basho Bench: what its scripts read, and a note of what it is.

use super::gather::{Cell, Gathered, Operation};
use crate::units::format_duration;
use std::fmt::Write;
use std::time::Duration;

const SUMMARY: &str = "elapsed, window, total, successful, failed\n";
const LATENCIES: &str = "elapsed, window, n, min, mean, median, 95th, 99th, 99_9th, max, errors\n";
const ERRORS: &str = "\"error\",\"count\"\n";

/// Names and contents.
pub fn files(gathered: &Gathered) -> Vec<(String, String)> {
    let mut files = vec![
        ("summary.csv".to_owned(), summary(gathered)),
        ("errors.csv".to_owned(), errors(gathered)),
        ("README.txt".to_owned(), note(gathered)),
    ];
    for operation in &gathered.operations {
        let name = format!("{}_latencies.csv", operation.label);
        files.push((name, latencies(gathered, operation)));
    }
    files
}

fn times(gathered: &Gathered, at: usize) -> String {
    let seconds = |duration: Duration| format!("{:.6}", duration.as_secs_f64());
    format!(
        "{}, {}",
        seconds(gathered.ends[at]),
        seconds(gathered.length(at))
    )
}

fn summary(gathered: &Gathered) -> String {
    let mut text = SUMMARY.to_owned();
    for at in 0..gathered.ends.len() {
        let (succeeded, failed) = gathered.counts(at);
        let total = succeeded + failed;
        let times = times(gathered, at);
        text.push_str(&format!("{times}, {total}, {succeeded}, {failed}\n"));
    }
    text
}

fn latencies(gathered: &Gathered, operation: &Operation) -> String {
    let mut text = LATENCIES.to_owned();
    for (at, cell) in operation.windows.iter().enumerate() {
        let times = times(gathered, at);
        text.push_str(&format!("{times}, {}, {}\n", figures(cell), cell.failed));
    }
    text
}

/// From `n` to `max`: eight zeros where nothing succeeded. Microseconds.
fn figures(cell: &Cell) -> String {
    let Some(of) = &cell.figures else {
        return ["0"; 8].join(", ");
    };
    let figures = [of.min, of.mean, of.median, of.p95, of.p99, of.p99_9, of.max];
    let mut text = cell.succeeded.to_string();
    for ns in figures {
        let _ = write!(text, ", {:.3}", ns / 1000.0);
    }
    text
}

/// `{{Label,Operation},Reason}` as Erlang prints terms.
fn errors(gathered: &Gathered) -> String {
    let mut text = ERRORS.to_owned();
    for error in &gathered.errors {
        let class = atom(&error.class);
        let reason = match error.code.as_str() {
            "" => class,
            code if whole(code) => format!("{{{class},{code}}}"),
            code => format!("{{{class},{}}}", atom(code)),
        };
        let term = format!(
            "{{{{{},{}}},{reason}}}",
            atom(&error.label),
            atom(&error.operation)
        );
        let term = term.replace('"', "\"\"");
        text.push_str(&format!("\"{term}\",\"{}\"\n", error.count));
    }
    text
}

fn whole(code: &str) -> bool {
    let digits = code.strip_prefix('-').unwrap_or(code);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// An Erlang atom: in quotes unless it begins with a small letter and goes on with letters, digits, `_` and `@`.
fn atom(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '@';
    if text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(plain) {
        return text.to_owned();
    }
    let mut quoted = String::from("'");
    for c in text.chars() {
        match c {
            '\'' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            c if c.is_control() => quoted.push(' '),
            c => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}

fn note(gathered: &Gathered) -> String {
    let mut operations = String::new();
    for operation in &gathered.operations {
        let group = match operation.group.as_str() {
            "" => String::new(),
            group => format!(" of the group {group}"),
        };
        let _ = writeln!(
            operations,
            "  {}_latencies.csv: {}{group}",
            operation.label, operation.name
        );
    }
    format!(
        "Phase {} of run {}, in the files of Basho Bench; written by dbbench.\n\
         \n\
         - Latencies are microseconds, and of successful operations only, as that tool has them: under a store that\n  \
           fails they look better than what its clients see. dbbench's own windows.csv and operations.csv have the\n  \
           percentiles over all operations.\n\
         - elapsed and window are seconds of the measured time, in windows of {}; the last may be shorter. Warm-up and\n  \
           drain are left out. A window without a success has eight zeros.\n\
         - Percentiles are of all successes of a window, however few they are; min, mean and max are exact.\n\
         - failed and errors count failed, timed out and wrong answers.\n\
         - The picture leaves out a last window that is shorter than a tenth of the others.\n\
         - errors.csv has a row for each kind of error, over the whole phase without its warm-up.\n\
         \n\
         {operations}",
        gathered.phase,
        gathered.run,
        format_duration(gathered.window),
    )
}
