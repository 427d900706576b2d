//! The bytes of the text and of the meta protocol: requests written, first lines of answers read.
//!
//! Both protocols are small. The crates that speak them either need OpenSSL or copy large values once more.

use crate::driver::net::{push_decimal, read_decimal};
use crate::op::{ErrorClass, Failure, Operation, Verb};

/// Bytes of a key at most; the server's own limit.
pub const LONGEST_KEY: usize = 250;

/// Bytes of a line at most that is no value.
pub const LONGEST_LINE: usize = 8 * 1024;

/// No value is larger: a server's own limit is 1 GiB.
const LARGEST: u64 = 1 << 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Text,
    Meta,
}

/// Why an operation is not sent at all.
pub fn refusal(operation: &Operation) -> Option<Failure> {
    if matches!(operation.verb, Verb::Scan | Verb::Custom(_)) {
        let message = format!("memcached cannot {}", operation.verb.name());
        return Some(Failure::new(ErrorClass::Client, message));
    }
    let key = operation.key.as_slice();
    if key.is_empty() || key.len() > LONGEST_KEY {
        let message = format!("a key has 1 to {LONGEST_KEY} bytes, this one {}", key.len());
        return Some(Failure::new(ErrorClass::Rejected, message));
    }
    if key.iter().any(|byte| *byte <= b' ' || *byte == 0x7f) {
        let message = "a key holds neither blanks nor control characters";
        return Some(Failure::new(ErrorClass::Rejected, message));
    }
    None
}

/// Appends a request that has no value.
pub fn push_command(out: &mut Vec<u8>, protocol: Protocol, verb: Verb, key: &[u8]) {
    let (before, after): (&[u8], &[u8]) = match (protocol, verb) {
        (Protocol::Text, Verb::Delete) => (b"delete ", b"\r\n"),
        (Protocol::Text, Verb::Increment) => (b"incr ", b" 1\r\n"),
        (Protocol::Text, _) => (b"get ", b"\r\n"),
        (Protocol::Meta, Verb::Delete) => (b"md ", b"\r\n"),
        // A missing counter is made, without expiry (N0), as 1 (J1).
        (Protocol::Meta, Verb::Increment) => (b"ma ", b" N0 J1\r\n"),
        (Protocol::Meta, _) => (b"mg ", b" v\r\n"),
    };
    out.extend_from_slice(before);
    out.extend_from_slice(key);
    out.extend_from_slice(after);
}

/// Appends the line that stands before a value of `length` bytes.
pub fn push_storage(out: &mut Vec<u8>, protocol: Protocol, verb: Verb, key: &[u8], length: usize) {
    if protocol == Protocol::Text {
        let command: &[u8] = match verb {
            Verb::Insert => b"add ",
            Verb::Update => b"replace ",
            _ => b"set ",
        };
        out.extend_from_slice(command);
        out.extend_from_slice(key);
        // No flags, no expiry.
        out.extend_from_slice(b" 0 0 ");
        push_decimal(out, length as u64);
    } else {
        out.extend_from_slice(b"ms ");
        out.extend_from_slice(key);
        out.push(b' ');
        push_decimal(out, length as u64);
        match verb {
            Verb::Insert => out.extend_from_slice(b" ME"),
            Verb::Update => out.extend_from_slice(b" MR"),
            _ => {}
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// The first line of an answer.
#[derive(Debug, PartialEq)]
pub enum Line<'a> {
    /// A value of so many bytes follows; the key where the answer names it.
    Value {
        key: Option<&'a [u8]>,
        length: usize,
    },
    /// No (more) values.
    End,
    Stored,
    NotStored,
    Deleted,
    NotFound,
    Number,
    Error {
        code: &'a str,
        message: &'a str,
    },
}

/// Reads a whole line, its end included. None where no answer begins with such a line.
#[inline]
pub fn read_line(protocol: Protocol, line: &[u8]) -> Option<Line<'_>> {
    let text = line.strip_suffix(b"\r\n")?;
    match (protocol, text) {
        (Protocol::Text, b"STORED") => Some(Line::Stored),
        (Protocol::Text, b"END") | (Protocol::Meta, b"EN") => Some(Line::End),
        (Protocol::Text, b"NOT_STORED") | (Protocol::Meta, b"NS") => Some(Line::NotStored),
        (Protocol::Text, b"DELETED") => Some(Line::Deleted),
        (Protocol::Text, b"NOT_FOUND") | (Protocol::Meta, b"NF") => Some(Line::NotFound),
        // One word for whatever was done; who asked knows what.
        (Protocol::Meta, b"HD") => Some(Line::Stored),
        (Protocol::Text, _) if text.starts_with(b"VALUE ") => text_value(&text[6..]),
        (Protocol::Meta, _) if text.starts_with(b"VA ") => meta_value(&text[3..]),
        (Protocol::Text, [b'0'..=b'9', ..]) => {
            // Counters that got shorter are padded with blanks.
            read_decimal_or_more(text.trim_ascii_end()).then_some(Line::Number)
        }
        _ => error_line(text),
    }
}

/// Counters have 64 bits, one digit more than lengths may have.
fn read_decimal_or_more(text: &[u8]) -> bool {
    text.len() <= 20 && text.iter().all(u8::is_ascii_digit)
}

/// `key flags length [cas]`
fn text_value(text: &[u8]) -> Option<Line<'_>> {
    let mut words = text.split(|byte| *byte == b' ');
    let key = words.next()?;
    read_decimal(words.next()?)?;
    let length = value_length(words.next()?)?;
    Some(Line::Value {
        key: Some(key),
        length,
    })
}

/// `length flags*`
fn meta_value(text: &[u8]) -> Option<Line<'_>> {
    let length = value_length(text.split(|byte| *byte == b' ').next()?)?;
    Some(Line::Value { key: None, length })
}

fn value_length(digits: &[u8]) -> Option<usize> {
    let length = read_decimal(digits).filter(|length| *length <= LARGEST)?;
    usize::try_from(length).ok()
}

fn error_line(text: &[u8]) -> Option<Line<'_>> {
    let text = std::str::from_utf8(text).ok()?;
    let (code, message) = text.split_once(' ').unwrap_or((text, ""));
    matches!(code, "ERROR" | "CLIENT_ERROR" | "SERVER_ERROR")
        .then_some(Line::Error { code, message })
}

/// The failure that an error line means. `with_value`: the request carried a value, which a server that does not know
/// the command takes for the next one, so the connection is of no more use.
pub fn failure_of(code: &str, message: &str, with_value: bool) -> Failure {
    let class = if message.contains("too large") {
        ErrorClass::Rejected
    } else {
        ErrorClass::Server
    };
    let text = format!("{code} {message}");
    let mut failure = Failure::new(class, text.trim_end()).with_code(code);
    failure.broken = with_value && code != "SERVER_ERROR";
    failure
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: &[u8]) -> Option<Line<'_>> {
        read_line(Protocol::Text, line)
    }

    #[test]
    fn values_say_their_key_and_length() {
        let value = Line::Value {
            key: Some(b"key"),
            length: 41_960,
        };
        assert_eq!(text(b"VALUE key 0 41960\r\n"), Some(value));
        let with_cas = text(b"VALUE k 4294967295 1 77\r\n");
        assert!(matches!(with_cas, Some(Line::Value { length: 1, .. })));
        let meta = read_line(Protocol::Meta, b"VA 5 s5\r\n");
        assert_eq!(
            meta,
            Some(Line::Value {
                key: None,
                length: 5
            })
        );
    }

    #[test]
    fn lines_of_no_answer_are_refused() {
        let wrong: [&[u8]; 8] = [
            b"VALUE key 0\r\n",
            b"VALUE key 0 x\r\n",
            b"VALUE key 0 99999999999\r\n",
            b"STORED\n",
            b"HD\r\n",
            b"12a\r\n",
            b"HTTP/1.1 200 OK\r\n",
            b"\r\n",
        ];
        for line in wrong {
            assert_eq!(text(line), None, "{}", line.escape_ascii());
        }
    }

    #[test]
    fn counters_may_be_padded_and_have_64_bits() {
        assert_eq!(text(b"9  \r\n"), Some(Line::Number));
        assert_eq!(text(b"18446744073709551615\r\n"), Some(Line::Number));
    }

    #[test]
    fn too_large_a_value_is_rejected_and_the_connection_kept() {
        let Some(Line::Error { code, message }) =
            text(b"SERVER_ERROR object too large for cache\r\n")
        else {
            panic!("an error line")
        };
        let failure = failure_of(code, message, true);
        assert_eq!(
            (failure.class, failure.broken),
            (ErrorClass::Rejected, false)
        );
        assert_eq!(failure.code, "SERVER_ERROR");
    }

    #[test]
    fn an_unknown_storage_command_breaks_the_connection() {
        assert!(failure_of("ERROR", "", true).broken);
        assert!(!failure_of("CLIENT_ERROR", "cannot increment", false).broken);
    }

    #[test]
    fn keys_that_would_break_a_line_are_refused() {
        let of = |key: &[u8]| {
            refusal(&Operation {
                key: key.to_vec(),
                ..Operation::default()
            })
        };
        for key in [b"".as_slice(), b"a b", b"a\r\n", b"\0", &[b'k'; 251]] {
            assert_eq!(of(key).map(|no| no.class), Some(ErrorClass::Rejected));
        }
        assert_eq!(of(&[b'k'; 250]), None);
        assert_eq!(of("schlüssel".as_bytes()), None);
    }
}
