//! Logs of statements: what a server was asked, read back one statement at a time in constant memory.
//!
//! `general` and `slow` read MySQL's and MariaDB's logs, `postgres` and `postgres_csv` PostgreSQL's, `script` plain SQL;
//! `statement` says what kind a statement is, `safety` whether it may write; `filter` chooses; `spool` makes what a phase
//! replays; `summary` is what `dbbench querylog` shows. Logs are bytes: nothing here takes them for UTF-8.

pub mod filter;
mod general;
mod lines;
mod postgres;
mod postgres_csv;
pub mod safety;
mod script;
mod slow;
pub mod spool;
pub mod statement;
pub mod summary;
#[cfg(test)]
mod tests;
mod words;

use lines::Lines;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read, Seek};
use std::ops::ControlFlow;
use std::path::Path;

/// How a log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Told by its first lines.
    Auto,
    MysqlGeneral,
    MysqlSlow,
    PostgresLog,
    PostgresCsv,
    /// Statements ended by `;`.
    Sql,
    /// A statement per line.
    Lines,
}

impl Format {
    pub const NAMES: [&str; 7] = [
        "auto",
        "mysql-general",
        "mysql-slow",
        "postgres-log",
        "postgres-csv",
        "sql",
        "lines",
    ];

    pub fn parse(name: &str) -> Option<Format> {
        let all = [
            Format::Auto,
            Format::MysqlGeneral,
            Format::MysqlSlow,
            Format::PostgresLog,
            Format::PostgresCsv,
            Format::Sql,
            Format::Lines,
        ];
        let named = Format::NAMES.iter().zip(all);
        named
            .into_iter()
            .find(|(known, _)| **known == name)
            .map(|(_, format)| format)
    }

    pub fn name(self) -> &'static str {
        Format::NAMES[self as usize]
    }
}

/// A statement of a log, borrowed while it is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Logged<'l> {
    /// The server's number of the connection; 0 where the log tells none.
    pub connection: u64,
    /// Empty where it is not known.
    pub user: &'l [u8],
    pub database: &'l [u8],
    /// Microseconds since 1970 in the log's own time zone; None where the log tells no time.
    pub at_us: Option<i64>,
    pub text: &'l [u8],
    /// The line on which it begins, from 1.
    pub line: u64,
}

/// A place that was not understood.
#[derive(Clone, Debug, PartialEq)]
pub struct NotUnderstood {
    pub line: u64,
    pub why: &'static str,
}

/// Hears a log, statement by statement.
pub trait Listener {
    fn statement(&mut self, logged: &Logged<'_>) -> ControlFlow<()>;
    fn not_understood(&mut self, place: NotUnderstood);
}

/// A statement longer than this is no statement.
pub const LONGEST: usize = 64 << 20;

/// Reads a log to its end, or until the listener breaks off. Returns its format.
pub fn read(path: &Path, format: Format, listener: &mut dyn Listener) -> io::Result<Format> {
    let mut file = File::open(path)?;
    let format = match format {
        Format::Auto => {
            let mut head = vec![0; 64 * 1024];
            let mut length = 0;
            while length < head.len() {
                match file.read(&mut head[length..])? {
                    0 => break,
                    count => length += count,
                }
            }
            file.rewind()?;
            guess(&head[..length])
        }
        said => said,
    };
    match format {
        Format::MysqlGeneral | Format::Auto => general::read(Lines::new(file), listener)?,
        Format::MysqlSlow => slow::read(Lines::new(file), listener)?,
        Format::PostgresLog => postgres::read(Lines::new(file), listener)?,
        Format::PostgresCsv => postgres_csv::read(Lines::new(file), listener)?,
        Format::Sql => script::read(Lines::new(file), listener)?,
        Format::Lines => script::read_lines(Lines::new(file), listener)?,
    }
    Ok(format)
}

/// The format, by the first bytes of a log.
fn guess(head: &[u8]) -> Format {
    let lines: Vec<&[u8]> = head.split(|byte| *byte == b'\n').take(200).collect();
    let any = |is: &dyn Fn(&[u8]) -> bool| lines.iter().any(|line| is(line));
    if any(&|line| line.starts_with(b"# User@Host:")) {
        return Format::MysqlSlow;
    }
    if any(&|line| general::is_entry(line)) {
        return Format::MysqlGeneral;
    }
    if any(&|line| postgres_csv::is_record(line)) {
        return Format::PostgresCsv;
    }
    if any(&|line| postgres::is_entry(line)) {
        return Format::PostgresLog;
    }
    // A script whose statements end with their lines says so by its semicolons.
    match any(&|line| line.trim_ascii_end().ends_with(b";")) {
        true => Format::Sql,
        false => Format::Lines,
    }
}

/// Microseconds since 1970 of a civil time, as if it were UTC.
fn microseconds(year: i64, month: i64, day: i64, second_of_day: i64, us: i64) -> Option<i64> {
    let date = jiff::civil::Date::new(
        i16::try_from(year).ok()?,
        i8::try_from(month).ok()?,
        i8::try_from(day).ok()?,
    )
    .ok()?;
    let days = (date - jiff::civil::date(1970, 1, 1)).get_days();
    Some((i64::from(days) * 86_400 + second_of_day) * 1_000_000 + us)
}

/// `20:41:15` and ` 5:47:12`, in seconds; what follows is left.
fn time_of_day(text: &[u8]) -> Option<(i64, &[u8])> {
    let [h1, h2, b':', m1, m2, b':', s1, s2, rest @ ..] = text else {
        return None;
    };
    let digit = |byte: &u8| byte.is_ascii_digit().then(|| i64::from(byte - b'0'));
    let hour = match h1 {
        b' ' => digit(h2)?,
        _ => digit(h1)? * 10 + digit(h2)?,
    };
    let minute = digit(m1)? * 10 + digit(m2)?;
    let second = digit(s1)? * 10 + digit(s2)?;
    Some((hour * 3600 + minute * 60 + second, rest))
}

/// Digits at the beginning, as a number; what follows is left.
fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit());
    let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    let value = digits
        .iter()
        .fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
    Some((value, rest))
}

/// `2026-11-30` followed by ` ` or `T` and a time, with a fraction of a second if there is one.
fn iso(text: &[u8]) -> Option<(i64, &[u8])> {
    let (year, rest) = number(text)?;
    let (month, rest) = number(rest.strip_prefix(b"-")?)?;
    let (day, rest) = number(rest.strip_prefix(b"-")?)?;
    let rest = rest
        .strip_prefix(b" ")
        .or_else(|| rest.strip_prefix(b"T"))?;
    let (seconds, rest) = time_of_day(rest)?;
    let (us, rest) = match rest.strip_prefix(b".") {
        None => (0, rest),
        Some(fraction) => {
            let end = fraction.iter().position(|byte| !byte.is_ascii_digit());
            let (digits, rest) = fraction.split_at(end.unwrap_or(fraction.len()));
            let mut us = 0;
            for position in 0..6 {
                let digit = digits.get(position).map_or(0, |byte| byte - b'0');
                us = us * 10 + i64::from(digit);
            }
            (us, rest)
        }
    };
    let at = microseconds(year as i64, month as i64, day as i64, seconds, us)?;
    Some((at, rest))
}
