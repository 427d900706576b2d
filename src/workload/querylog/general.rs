//! MySQL's and MariaDB's general log.
//!
//! An entry is a time or a tab, a tab, the connection's number, a command, a tab, its argument; anything else goes on with
//! the entry before. Lines of connections interleave by whole entries. Three header lines stand at each start of the
//! server, in the middle of the file too.

use super::lines::{Growing, Lines};
use super::statement::begins_with;
use super::{Listener, Logged, NotUnderstood, iso, microseconds, number, time_of_day};
use std::collections::HashMap;
use std::io;
use std::ops::ControlFlow;

/// What is known of a connection.
#[derive(Default)]
struct Session {
    user: Vec<u8>,
    database: Vec<u8>,
}

struct Entry<'l> {
    at_us: Option<i64>,
    connection: u64,
    command: &'l [u8],
    argument: &'l [u8],
}

const COMMANDS: [&[u8]; 27] = [
    b"Query",
    b"Execute",
    b"Prepare",
    b"Close stmt",
    b"Reset stmt",
    b"Connect",
    b"Quit",
    b"Init DB",
    b"Change user",
    b"Field List",
    b"Ping",
    b"Statistics",
    b"Long Data",
    b"Fetch",
    b"Set option",
    b"Refresh",
    b"Shutdown",
    b"Processlist",
    b"Kill",
    b"Debug",
    b"Create DB",
    b"Drop DB",
    b"Binlog Dump",
    b"Daemon",
    b"Sleep",
    b"Reset connection",
    b"Error",
];

pub fn is_entry(line: &[u8]) -> bool {
    entry(line).is_some()
}

fn entry(line: &[u8]) -> Option<Entry<'_>> {
    let (at_us, rest) = match line {
        [b'\t', b'\t', rest @ ..] => (None, rest),
        [b'0'..=b'9', ..] => {
            let (at, rest) = time(line)?;
            (Some(at), rest.strip_prefix(b"\t")?)
        }
        _ => return None,
    };
    let (connection, rest) = number(rest.trim_ascii_start())?;
    let rest = rest.strip_prefix(b" ")?;
    let end = memchr::memchr(b'\t', rest).unwrap_or(rest.len());
    let command = rest[..end].trim_ascii_end();
    COMMANDS.contains(&command).then(|| Entry {
        at_us,
        connection,
        command,
        argument: rest.get(end + 1..).unwrap_or_default(),
    })
}

/// `261130 20:41:15`, or `2026-11-30T20:41:15.123456Z`.
fn time(line: &[u8]) -> Option<(i64, &[u8])> {
    if line.get(4) == Some(&b'-') {
        let (at, rest) = iso(line)?;
        let zone = rest.iter().position(|byte| *byte == b'\t')?;
        return Some((at, &rest[zone..]));
    }
    let (date, rest) = number(line)?;
    let (seconds, rest) = time_of_day(rest.strip_prefix(b" ")?)?;
    let (year, month, day) = (date / 10_000, date / 100 % 100, date % 100);
    let at = microseconds(2000 + year as i64, month as i64, day as i64, seconds, 0)?;
    Some((at, rest))
}

fn is_header(line: &[u8]) -> bool {
    line.ends_with(b"started with:")
        || line.starts_with(b"Tcp port: ")
        || line.starts_with(b"Time") && line.trim_ascii_end().ends_with(b"Command\tArgument")
        || line.starts_with(b"Time") && line.trim_ascii_end().ends_with(b"Command    Argument")
}

pub fn read(mut lines: Lines, listener: &mut dyn Listener) -> io::Result<()> {
    let mut sessions: HashMap<u64, Session> = HashMap::new();
    let mut growing = Growing::default();
    // Connection and line of the statement that grows.
    let mut open: Option<(u64, u64)> = None;
    // Whether lines that are no entry go on with one that is no statement.
    let mut ignoring = false;
    let mut now = None;
    while let Some((line_number, line)) = lines.next()? {
        let Some(entry) = entry(line) else {
            if is_header(line) {
                if finish(&mut open, &growing, &mut sessions, now, listener).is_break() {
                    return Ok(());
                }
                ignoring = true;
            } else if open.is_some() {
                growing.add_line(line);
            } else if !ignoring && !line.is_empty() {
                let why = "it goes on with an entry that is not there";
                listener.not_understood(NotUnderstood {
                    line: line_number,
                    why,
                });
                ignoring = true;
            }
            continue;
        };
        let (connection, command, at) = (entry.connection, entry.command, entry.at_us);
        if command == b"Query" || command == b"Execute" {
            // The statement before ends here; this one is not parsed again.
            let argument = entry.argument.to_vec();
            if finish(&mut open, &growing, &mut sessions, now, listener).is_break() {
                return Ok(());
            }
            growing.begin(&argument);
            open = Some((connection, line_number));
            // One by the text protocol stands once more as Prepare or Execute.
            let again = command == b"Query"
                && (begins_with(&argument, b"prepare") || begins_with(&argument, b"execute"));
            if again {
                open = None;
            }
        } else {
            let (command, argument) = (command.to_vec(), entry.argument.to_vec());
            if finish(&mut open, &growing, &mut sessions, now, listener).is_break() {
                return Ok(());
            }
            session_changes(&mut sessions, connection, &command, &argument);
        }
        ignoring = true;
        now = at.or(now);
    }
    if lines.is_cut() && open.is_some() {
        let (_, line) = open.take().unwrap_or_default();
        let why = "the log is cut off in this statement";
        listener.not_understood(NotUnderstood { line, why });
    }
    let _ = finish(&mut open, &growing, &mut sessions, now, listener);
    Ok(())
}

/// Tells the statement that has grown until here.
fn finish(
    open: &mut Option<(u64, u64)>,
    growing: &Growing,
    sessions: &mut HashMap<u64, Session>,
    at_us: Option<i64>,
    listener: &mut dyn Listener,
) -> ControlFlow<()> {
    let Some((connection, line)) = open.take() else {
        return ControlFlow::Continue(());
    };
    if growing.too_long {
        let why = "a statement of more than 64 MiB";
        listener.not_understood(NotUnderstood { line, why });
        return ControlFlow::Continue(());
    }
    let text = growing.text.trim_ascii();
    if text.is_empty() {
        return ControlFlow::Continue(());
    }
    let session = sessions.entry(connection).or_default();
    let told = listener.statement(&Logged {
        connection,
        user: &session.user,
        database: &session.database,
        at_us,
        text,
        line,
    });
    if let Some(database) = used(text) {
        session.database = database.to_vec();
    }
    told
}

/// The database that a `USE` chooses.
pub fn used(text: &[u8]) -> Option<&[u8]> {
    if !begins_with(text, b"use") || text.len() > 200 {
        return None;
    }
    let name = text[3..].trim_ascii();
    let name = name.strip_suffix(b";").unwrap_or(name).trim_ascii();
    let bare = name
        .strip_prefix(b"`")
        .and_then(|name| name.strip_suffix(b"`"));
    Some(bare.unwrap_or(name))
}

fn session_changes(
    sessions: &mut HashMap<u64, Session>,
    connection: u64,
    command: &[u8],
    argument: &[u8],
) {
    match command {
        b"Connect" | b"Change user" => {
            // `Access denied` is no login; the line before was its attempt.
            if argument.starts_with(b"Access denied") {
                return;
            }
            let Some(at) = argument.iter().position(|byte| *byte == b'@') else {
                return;
            };
            let session = sessions.entry(connection).or_default();
            session.user = argument[..at].to_vec();
            session.database.clear();
            let on = find(argument, b" on ");
            if let Some(database) = on.map(|on| &argument[on + 4..]) {
                let end = find(database, b" using ").unwrap_or(database.len());
                session.database = database[..end].trim_ascii().to_vec();
            }
        }
        b"Init DB" => {
            sessions.entry(connection).or_default().database = argument.trim_ascii().to_vec();
        }
        b"Quit" => {
            sessions.remove(&connection);
        }
        _ => {}
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    memchr::memmem::find(text, what)
}
