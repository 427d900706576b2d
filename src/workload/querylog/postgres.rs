//! PostgreSQL's log, as it goes to stderr; `postgres_csv` reads its other form. Statements stand as `statement: ...` and `execute NAME: ...`, also
//! behind a duration; the parameters of the latter come in a DETAIL line and are filled in. Lines that go on begin with a
//! tab.

use super::lines::{Growing, Lines};
use super::{Listener, Logged, NotUnderstood, iso, number};
use std::io;
use std::ops::ControlFlow;

pub fn is_entry(line: &[u8]) -> bool {
    !line.starts_with(b"\t") && severity(line).is_some_and(|(at, word)| at > 0 && word == b"LOG:  ")
}

const SEVERITIES: [&[u8]; 18] = [
    b"LOG:  ",
    b"DETAIL:  ",
    b"ERROR:  ",
    b"STATEMENT:  ",
    b"HINT:  ",
    b"CONTEXT:  ",
    b"FATAL:  ",
    b"PANIC:  ",
    b"WARNING:  ",
    b"NOTICE:  ",
    b"INFO:  ",
    b"QUERY:  ",
    b"LOCATION:  ",
    b"DEBUG1:  ",
    b"DEBUG2:  ",
    b"DEBUG3:  ",
    b"DEBUG4:  ",
    b"DEBUG5:  ",
];

/// Where the severity stands, and the word with its blanks.
fn severity(line: &[u8]) -> Option<(usize, &'static [u8])> {
    let colon = memchr::memmem::find(line, b":  ")?;
    SEVERITIES.into_iter().find_map(|word| {
        let at = (colon + 3).checked_sub(word.len())?;
        (line[at..colon + 3] == *word).then_some((at, word))
    })
}

/// What stands before the severity, as far as it is understood.
#[derive(Clone, Default, PartialEq)]
struct Prefix {
    at_us: Option<i64>,
    process: u64,
    user: Vec<u8>,
    database: Vec<u8>,
}

fn prefix(text: &[u8]) -> Prefix {
    let mut prefix = Prefix::default();
    let mut rest = text;
    if let Some((at, after)) = iso(text) {
        prefix.at_us = Some(at);
        rest = after;
    }
    if let Some(open) = memchr::memchr(b'[', rest)
        && let Some((process, _)) = number(&rest[open + 1..])
    {
        prefix.process = process;
    }
    prefix.user = after(rest, b"user=").to_vec();
    prefix.database = after(rest, b"db=").to_vec();
    if prefix.database.is_empty() {
        prefix.database = after(rest, b"database=").to_vec();
    }
    // `%u@%d`
    if prefix.user.is_empty()
        && let Some(word) = rest
            .split(|byte| *byte == b' ')
            .find(|word| word.contains(&b'@'))
    {
        let at = word.iter().position(|byte| *byte == b'@').unwrap_or(0);
        prefix.user = word[..at].to_vec();
        prefix.database = word[at + 1..].to_vec();
    }
    prefix
}

fn after<'l>(text: &'l [u8], word: &[u8]) -> &'l [u8] {
    let Some(at) = memchr::memmem::find(text, word) else {
        return &[];
    };
    let value = &text[at + word.len()..];
    let end = value
        .iter()
        .position(|byte| matches!(byte, b',' | b' ' | b']'));
    &value[..end.unwrap_or(value.len())]
}

/// The statement of a message, and whether it is one with parameters.
pub(super) fn statement(message: &[u8]) -> Option<(&[u8], bool)> {
    let message = match message.strip_prefix(b"duration: ") {
        Some(rest) => &rest[memchr::memmem::find(rest, b"ms  ")? + 4..],
        None => message,
    };
    if let Some(text) = message.strip_prefix(b"statement: ") {
        return Some((text, false));
    }
    let named = message.strip_prefix(b"execute ")?;
    // More rows of a statement that stands there already.
    if named.starts_with(b"fetch from ") {
        return None;
    }
    // A name has no colon and a blank follows it: `execute <unnamed>: SELECT`, `execute s/c: SELECT`.
    let colon = memchr::memmem::find(named, b": ")?;
    Some((&named[colon + 2..], true))
}

pub fn read(mut lines: Lines, listener: &mut dyn Listener) -> io::Result<()> {
    // (who, line, whether it takes parameters)
    let mut open: Option<(Prefix, u64, bool)> = None;
    let mut growing = Growing::default();
    let mut detail: Option<Vec<u8>> = None;
    let mut seen = false;
    while let Some((line_number, line)) = lines.next()? {
        if let Some(more) = line.strip_prefix(b"\t") {
            match &mut detail {
                Some(detail) => {
                    detail.push(b'\n');
                    detail.extend_from_slice(more);
                }
                None if open.is_some() => growing.add_line(more),
                // It goes on with a message that is no statement.
                None if seen => {}
                None => {
                    let why = "it goes on with an entry that is not there";
                    let line = line_number;
                    listener.not_understood(NotUnderstood { line, why });
                    seen = true;
                }
            }
            continue;
        }
        let Some((at, word)) = severity(line) else {
            if !line.is_empty() {
                let why = "a line that tells no severity";
                let line = line_number;
                listener.not_understood(NotUnderstood { line, why });
            }
            continue;
        };
        seen = true;
        let message = &line[at + word.len()..];
        if word == b"DETAIL:  " && open.as_ref().is_some_and(|(_, _, takes)| *takes) {
            let parameters = ["parameters: ", "Parameters: "]
                .iter()
                .find_map(|word| message.strip_prefix(word.as_bytes()));
            if let Some(parameters) = parameters {
                detail = Some(parameters.to_vec());
                continue;
            }
        }
        let next = match word {
            b"LOG:  " => statement(message).map(|(text, takes)| {
                let who = prefix(&line[..at]);
                ((who, line_number, takes), text.to_vec())
            }),
            _ => None,
        };
        let who = open.take();
        if tell(who, &mut growing, detail.take(), listener).is_break() {
            return Ok(());
        }
        if let Some((who, text)) = next {
            growing.begin(&text);
            open = Some(who);
        }
    }
    if lines.is_cut()
        && let Some((_, line, _)) = open
    {
        let why = "the log is cut off in this statement";
        listener.not_understood(NotUnderstood { line, why });
        return Ok(());
    }
    let _ = tell(open, &mut growing, detail, listener);
    Ok(())
}

fn tell(
    open: Option<(Prefix, u64, bool)>,
    growing: &mut Growing,
    detail: Option<Vec<u8>>,
    listener: &mut dyn Listener,
) -> ControlFlow<()> {
    let Some((who, line, _)) = open else {
        return ControlFlow::Continue(());
    };
    if growing.too_long {
        let why = "a statement of more than 64 MiB";
        listener.not_understood(NotUnderstood { line, why });
        return ControlFlow::Continue(());
    }
    let filled = match detail {
        None => std::borrow::Cow::Borrowed(growing.text.as_slice()),
        Some(detail) => match fill(&growing.text, &detail) {
            Some(text) => std::borrow::Cow::Owned(text),
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
        connection: who.process,
        user: &who.user,
        database: &who.database,
        at_us: who.at_us,
        text,
        line,
    })
}

/// Puts parameters (`$1 = 'a', $2 = NULL`) into a statement; None where one is missing.
pub(super) fn fill(statement: &[u8], detail: &[u8]) -> Option<Vec<u8>> {
    let parameters = parameters(detail)?;
    let mut out = Vec::with_capacity(statement.len() + detail.len());
    let mut quoted = false;
    let mut at = 0;
    while at < statement.len() {
        let rest = &statement[at..];
        quoted ^= rest[0] == b'\'';
        if rest[0] == b'$'
            && !quoted
            && let Some((wanted, after)) = number(&rest[1..])
        {
            let value = parameters.iter().find(|(name, _)| *name == wanted);
            out.extend_from_slice(&value?.1);
            at = statement.len() - after.len();
            continue;
        }
        out.push(rest[0]);
        at += 1;
    }
    Some(out)
}

fn parameters(detail: &[u8]) -> Option<Vec<(u64, Vec<u8>)>> {
    let mut parameters = Vec::new();
    let mut rest = detail;
    while let Some(after) = rest.strip_prefix(b"$") {
        let (name, after) = number(after)?;
        let value = after.strip_prefix(b" = ")?;
        let end = value_end(value);
        parameters.push((name, value[..end].to_vec()));
        rest = &value[end..];
        rest = rest.strip_prefix(b", ").unwrap_or(rest);
    }
    rest.trim_ascii().is_empty().then_some(parameters)
}

/// Where a quoted value or a word ends.
fn value_end(value: &[u8]) -> usize {
    if value.first() != Some(&b'\'') {
        let end = value.iter().position(|byte| *byte == b',');
        return end.unwrap_or(value.len());
    }
    let mut at = 1;
    while at < value.len() {
        match (value[at], value.get(at + 1)) {
            (b'\'', Some(b'\'')) => at += 2,
            (b'\'', _) => return at + 1,
            _ => at += 1,
        }
    }
    value.len()
}
