//! Plain SQL: statements ended by `;` outside of quotes and comments (or by what `DELIMITER` says), or one per line.

use super::lines::Lines;
use super::{LONGEST, Listener, Logged, NotUnderstood};
use std::io;

/// Where in a statement the reader is.
#[derive(Clone, Copy, PartialEq)]
enum Inside {
    Nothing,
    Quote(u8),
    /// `/* ... */`
    Comment,
}

pub fn read(mut lines: Lines, listener: &mut dyn Listener) -> io::Result<()> {
    let mut statement = Vec::new();
    let mut begins = 0;
    let mut inside = Inside::Nothing;
    let mut delimiter: Vec<u8> = b";".to_vec();
    let mut too_long = false;
    while let Some((number, line)) = lines.next()? {
        if inside == Inside::Nothing
            && statement.iter().all(u8::is_ascii_whitespace)
            && super::statement::begins_with(line, b"delimiter")
        {
            let said = line[9..].trim_ascii();
            if !said.is_empty() {
                delimiter = said.to_vec();
            }
            statement.clear();
            continue;
        }
        if !statement.is_empty() {
            statement.push(b'\n');
        }
        let mut at = 0;
        while at < line.len() {
            let rest = &line[at..];
            match inside {
                Inside::Nothing if rest.starts_with(&delimiter) => {
                    at += delimiter.len();
                    let text = statement.trim_ascii();
                    if too_long {
                        let why = "a statement of more than 64 MiB";
                        listener.not_understood(NotUnderstood { line: begins, why });
                    } else if !text.is_empty()
                        && listener.statement(&logged(text, begins)).is_break()
                    {
                        return Ok(());
                    }
                    statement.clear();
                    too_long = false;
                    continue;
                }
                Inside::Nothing if rest[0] == b'#' || rest.starts_with(b"-- ") || rest == b"--" => {
                    break;
                }
                Inside::Nothing if rest.starts_with(b"/*") => inside = Inside::Comment,
                Inside::Nothing if matches!(rest[0], b'\'' | b'"' | b'`') => {
                    inside = Inside::Quote(rest[0]);
                }
                Inside::Quote(quote) if rest[0] == b'\\' && quote != b'`' && rest.len() > 1 => {
                    statement.push(rest[0]);
                    at += 1;
                }
                Inside::Quote(quote) if rest[0] == quote => inside = Inside::Nothing,
                Inside::Comment if rest.starts_with(b"*/") => {
                    statement.push(rest[0]);
                    at += 1;
                    inside = Inside::Nothing;
                }
                _ => {}
            }
            if statement.is_empty() {
                begins = number;
            }
            too_long |= statement.len() >= LONGEST;
            if !too_long {
                statement.push(line[at]);
            }
            at += 1;
        }
    }
    let text = statement.trim_ascii();
    if inside != Inside::Nothing {
        let why = "a quote or comment that has no end begins here or later";
        listener.not_understood(NotUnderstood { line: begins, why });
    } else if !text.is_empty() {
        let _ = listener.statement(&logged(text, begins));
    }
    Ok(())
}

pub fn read_lines(mut lines: Lines, listener: &mut dyn Listener) -> io::Result<()> {
    while let Some((number, line)) = lines.next()? {
        if line.len() > LONGEST {
            let why = "a statement of more than 64 MiB";
            listener.not_understood(NotUnderstood { line: number, why });
            continue;
        }
        let text = line.trim_ascii();
        let text = text.strip_suffix(b";").unwrap_or(text).trim_ascii_end();
        if !text.is_empty() && listener.statement(&logged(text, number)).is_break() {
            break;
        }
    }
    Ok(())
}

fn logged(text: &[u8], line: u64) -> Logged<'_> {
    Logged {
        connection: 0,
        user: b"",
        database: b"",
        at_us: None,
        text,
        line,
    }
}
