//! PostgreSQL's csvlog: a record per message, which may hold line breaks. What messages say is as in `postgres`.

use super::lines::Lines;
use super::postgres::{fill, statement};
use super::{LONGEST, Listener, Logged, NotUnderstood, iso, number};
use std::borrow::Cow;
use std::io;
use std::ops::{ControlFlow, Range};

/// Columns of a record, from 0.
const TIME: usize = 0;
const USER: usize = 1;
const DATABASE: usize = 2;
const PROCESS: usize = 3;
const SEVERITY: usize = 11;
const MESSAGE: usize = 13;
const DETAIL: usize = 14;

/// A record begins with its time and tells its severity behind it.
pub fn is_record(line: &[u8]) -> bool {
    iso(line).is_some() && memchr::memmem::find(line, b",LOG,").is_some()
}

/// A record that grows line by line until its quotes are closed.
#[derive(Default)]
struct Record {
    bytes: Vec<u8>,
    /// Its first line.
    line: u64,
    /// Whether a quote is open at its end.
    open: bool,
    /// Where its fields stand, quotes included.
    fields: Vec<Range<usize>>,
}

pub fn read(mut lines: Lines, listener: &mut dyn Listener) -> io::Result<()> {
    let mut record = Record::default();
    // A quote that is never closed must not swallow the rest of the log.
    let mut lost = false;
    while let Some((line_number, line)) = lines.next()? {
        if lost && !is_record(line) {
            continue;
        }
        lost = false;
        record.add(line_number, line);
        if record.bytes.len() > LONGEST {
            let why = "a record of more than 64 MiB, or a quote that is not closed";
            listener.not_understood(NotUnderstood {
                line: record.line,
                why,
            });
            record.clear();
            lost = true;
        } else if !record.open {
            // The last one may be cut behind its statement.
            if lines.is_cut() && record.count() <= DETAIL + 1 {
                break;
            }
            if record.tell(listener).is_break() {
                return Ok(());
            }
            record.clear();
        }
    }
    if !record.bytes.is_empty() {
        let why = "the log is cut off in this record";
        listener.not_understood(NotUnderstood {
            line: record.line,
            why,
        });
    }
    Ok(())
}

impl Record {
    fn clear(&mut self) {
        self.bytes.clear();
        self.open = false;
    }

    fn add(&mut self, number: u64, line: &[u8]) {
        match self.bytes.is_empty() {
            true => self.line = number,
            false => self.bytes.push(b'\n'),
        }
        self.bytes.extend_from_slice(line);
        self.open ^= memchr::memchr_iter(b'"', line).count() % 2 == 1;
    }

    /// Finds the fields; how many there are.
    fn count(&mut self) -> usize {
        self.fields.clear();
        let (mut begin, mut quoted) = (0, false);
        for at in memchr::memchr2_iter(b'"', b',', &self.bytes) {
            match self.bytes[at] {
                b'"' => quoted = !quoted,
                _ if quoted => {}
                _ => {
                    self.fields.push(begin..at);
                    begin = at + 1;
                }
            }
        }
        self.fields.push(begin..self.bytes.len());
        self.fields.len()
    }

    /// A field without its quotes; empty where there is none.
    fn field(&self, position: usize) -> Cow<'_, [u8]> {
        let range = self.fields.get(position).cloned().unwrap_or_default();
        let field = &self.bytes[range];
        let bare = field
            .strip_prefix(b"\"")
            .and_then(|field| field.strip_suffix(b"\""));
        match bare {
            None => Cow::Borrowed(field),
            Some(bare) if !bare.contains(&b'"') => Cow::Borrowed(bare),
            Some(bare) => Cow::Owned(without_doubled_quotes(bare)),
        }
    }

    fn tell(&mut self, listener: &mut dyn Listener) -> ControlFlow<()> {
        let line = self.line;
        if self.bytes.is_empty() {
            return ControlFlow::Continue(());
        }
        if self.count() <= DETAIL {
            let why = "a record with too few fields";
            listener.not_understood(NotUnderstood { line, why });
            return ControlFlow::Continue(());
        }
        if *self.field(SEVERITY) != *b"LOG" {
            return ControlFlow::Continue(());
        }
        let (message, detail) = (self.field(MESSAGE), self.field(DETAIL));
        let Some((text, takes)) = statement(&message) else {
            return ControlFlow::Continue(());
        };
        let parameters = [&b"parameters: "[..], b"Parameters: "]
            .iter()
            .find_map(|word| detail.strip_prefix(*word));
        let filled = match parameters.filter(|_| takes) {
            None => Cow::Borrowed(text),
            Some(parameters) => match fill(text, parameters) {
                Some(text) => Cow::Owned(text),
                None => {
                    let why = "parameters that do not fit their statement";
                    listener.not_understood(NotUnderstood { line, why });
                    return ControlFlow::Continue(());
                }
            },
        };
        let text = filled.trim_ascii();
        if text.is_empty() {
            return ControlFlow::Continue(());
        }
        listener.statement(&Logged {
            connection: number(&self.field(PROCESS)).map_or(0, |(process, _)| process),
            user: &self.field(USER),
            database: &self.field(DATABASE),
            at_us: iso(&self.field(TIME)).map(|(at, _)| at),
            text,
            line,
        })
    }
}

fn without_doubled_quotes(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'"', rest) {
        out.extend_from_slice(&rest[..=at]);
        rest = &rest[at + 1..];
        rest = rest.strip_prefix(b"\"").unwrap_or(rest);
    }
    out.extend_from_slice(rest);
    out
}
