//! MySQL's and MariaDB's slow log: a few lines that begin with `#`, then what the connection was asked, ended by `;`.

use super::general::used;
use super::lines::{Growing, Lines};
use super::{Listener, Logged, NotUnderstood, number};
use std::io;
use std::ops::ControlFlow;

#[derive(Default)]
struct Entry {
    user: Vec<u8>,
    connection: u64,
    schema: Vec<u8>,
    at_us: Option<i64>,
    /// The statement's first line; 0: none yet.
    line: u64,
}

pub fn read(mut lines: Lines, listener: &mut dyn Listener) -> io::Result<()> {
    let mut entry = Entry::default();
    let mut growing = Growing::default();
    let mut in_head = false;
    let mut seen = false;
    while let Some((line_number, line)) = lines.next()? {
        // In a head every such line belongs to it, whatever the server tells there; elsewhere it may be a comment.
        let is_head = line.starts_with(b"# ") && is_head(line)
            || in_head && line.starts_with(b"#") && !line.starts_with(b"# administrator command");
        if is_head || is_header(line) {
            if !in_head {
                if tell(&mut entry, &growing, listener).is_break() {
                    return Ok(());
                }
                growing.begin(b"");
                in_head = true;
            }
            if is_head {
                seen = true;
                head_line(line, &mut entry);
            }
            continue;
        }
        if !seen {
            if !line.is_empty() {
                let why = "a line before the first entry";
                listener.not_understood(NotUnderstood {
                    line: line_number,
                    why,
                });
                seen = true;
                entry.line = 0;
            }
            continue;
        }
        in_head = false;
        if entry.line == 0 {
            if let Some(database) = used(line) {
                entry.schema = database.to_vec();
                continue;
            }
            let timestamp = line.strip_prefix(b"SET timestamp=");
            if let Some((seconds, b";")) = timestamp.and_then(number) {
                entry.at_us = i64::try_from(seconds)
                    .ok()
                    .map(|seconds| seconds * 1_000_000);
                continue;
            }
            if line.is_empty() {
                continue;
            }
            growing.begin(line);
            entry.line = line_number;
        } else {
            growing.add_line(line);
        }
    }
    let ended = growing.text.trim_ascii_end().ends_with(b";");
    if entry.line > 0 && lines.is_cut() && !ended {
        let why = "the log is cut off in this statement";
        listener.not_understood(NotUnderstood {
            line: entry.line,
            why,
        });
        return Ok(());
    }
    let _ = tell(&mut entry, &growing, listener);
    Ok(())
}

fn is_head(line: &[u8]) -> bool {
    const WORDS: [&[u8]; 12] = [
        b"Time: ",
        b"User@Host: ",
        b"Thread_id: ",
        b"Query_time: ",
        b"Rows_affected: ",
        b"Rows_sent",
        b"Bytes_sent",
        b"Full_scan: ",
        b"Filesort: ",
        b"Pages_accessed: ",
        b"Pages_read_time: ",
        b"explain: ",
    ];
    let rest = &line[2..];
    WORDS.iter().any(|word| rest.starts_with(word)) || rest.starts_with(b"Tmp_")
}

fn is_header(line: &[u8]) -> bool {
    line.ends_with(b"started with:")
        || line.starts_with(b"Tcp port: ")
        || line.starts_with(b"Time") && line.ends_with(b"Argument")
}

fn head_line(line: &[u8], entry: &mut Entry) {
    if let Some(rest) = line.strip_prefix(b"# User@Host: ") {
        let end = rest.iter().position(|byte| matches!(byte, b'[' | b' '));
        entry.user = rest[..end.unwrap_or(rest.len())].to_vec();
        // MySQL tells the connection here.
        if let Some(at) = memchr::memmem::find(rest, b"Id:")
            && let Some((id, _)) = number(rest[at + 3..].trim_ascii_start())
        {
            entry.connection = id;
        }
    } else if let Some(rest) = line.strip_prefix(b"# Thread_id: ") {
        if let Some((id, _)) = number(rest.trim_ascii_start()) {
            entry.connection = id;
        }
        if let Some(at) = memchr::memmem::find(rest, b"Schema: ") {
            let schema = &rest[at + 8..];
            let end = schema.iter().position(|byte| *byte == b' ');
            entry.schema = schema[..end.unwrap_or(schema.len())].to_vec();
        }
    }
}

fn tell(entry: &mut Entry, growing: &Growing, listener: &mut dyn Listener) -> ControlFlow<()> {
    let line = std::mem::take(&mut entry.line);
    if line == 0 {
        return ControlFlow::Continue(());
    }
    if growing.too_long {
        let why = "a statement of more than 64 MiB";
        listener.not_understood(NotUnderstood { line, why });
        return ControlFlow::Continue(());
    }
    let text = growing.text.trim_ascii();
    let text = text.strip_suffix(b";").unwrap_or(text).trim_ascii_end();
    // `# administrator command: Quit;` and its like are no statements.
    if text.is_empty() || text.starts_with(b"# administrator command") {
        return ControlFlow::Continue(());
    }
    listener.statement(&Logged {
        connection: entry.connection,
        user: &entry.user,
        database: &entry.schema,
        at_us: entry.at_us,
        text,
        line,
    })
}
