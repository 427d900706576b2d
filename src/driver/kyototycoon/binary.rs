//! The binary protocol: many records in one request, numbers big-endian. Requests written, beginnings of answers read.

use crate::driver::net::malformed;
use crate::op::{ErrorClass, Failure};

pub const SET: u8 = 0xb8;
pub const REMOVE: u8 = 0xb9;
pub const GET: u8 = 0xba;
const ERROR: u8 = 0xbf;

/// Bytes in front of an answer's records: which request it answers, how many records.
pub const HEAD: usize = 5;

/// Bytes in front of a record's key and value: database, two lengths, expiry.
pub const RECORD_HEAD: usize = 18;

/// An expiry that never comes.
const NEVER: i64 = i64::MAX;

/// Appends what stands before `count` records. No flags: an answer is wanted.
pub fn push_head(magic: u8, count: usize, out: &mut Vec<u8>) {
    out.push(magic);
    out.extend_from_slice(&0_u32.to_be_bytes());
    out.extend_from_slice(&length_of(count));
}

/// Appends a record to be stored, up to its value.
pub fn push_record(database: u16, key: &[u8], value: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(&database.to_be_bytes());
    out.extend_from_slice(&length_of(key.len()));
    out.extend_from_slice(&length_of(value));
    out.extend_from_slice(&NEVER.to_be_bytes());
    out.extend_from_slice(key);
}

/// Appends the name of a record.
pub fn push_name(database: u16, key: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&database.to_be_bytes());
    out.extend_from_slice(&length_of(key.len()));
    out.extend_from_slice(key);
}

/// Nothing longer than the server's limit is sent.
fn length_of(count: usize) -> [u8; 4] {
    u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes()
}

/// Whether an answer can begin with this byte: what cannot is told at once.
pub fn check_first(magic: u8, received: &[u8]) -> Result<(), Failure> {
    match received.first() {
        Some(first) if *first == magic => Ok(()),
        Some(&ERROR) => {
            let mut failure = Failure::new(ErrorClass::Server, "the server refused the request");
            // It ends the connection where it does not read on.
            failure.broken = true;
            Err(failure.with_code("0xBF"))
        }
        _ => Err(malformed("it is no answer to this request", received)),
    }
}

/// How many of `asked` records were stored, removed or found.
pub fn hits(received: &[u8], asked: usize) -> Result<usize, Failure> {
    let number = word(received, 1).ok_or_else(|| malformed("a head cut off", received))?;
    match number <= asked {
        true => Ok(number),
        false => Err(malformed("more records than were asked for", received)),
    }
}

/// What stands in front of a record of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHead {
    pub database: u16,
    pub key: usize,
    pub value: usize,
}

/// Reads the head of a record; None where bytes are missing.
pub fn record_head(received: &[u8]) -> Option<RecordHead> {
    let database = received.first_chunk::<2>()?;
    let head = RecordHead {
        database: u16::from_be_bytes(*database),
        key: word(received, 2)?,
        value: word(received, 6)?,
    };
    (received.len() >= RECORD_HEAD).then_some(head)
}

fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let word = bytes.get(at..)?.first_chunk::<4>()?;
    usize::try_from(u32::from_be_bytes(*word)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_the_recorded_bytes() {
        let mut set = Vec::new();
        push_head(SET, 1, &mut set);
        push_record(0, b"key", 2, &mut set);
        set.extend_from_slice(b"ab");
        let expected =
            b"\xb8\0\0\0\0\0\0\0\x01\0\0\0\0\0\x03\0\0\0\x02\x7f\xff\xff\xff\xff\xff\xff\xffkeyab";
        assert_eq!(set, expected);
        let mut get = Vec::new();
        push_head(GET, 2, &mut get);
        push_name(0, b"a", &mut get);
        push_name(7, b"bc", &mut get);
        let expected = b"\xba\0\0\0\0\0\0\0\x02\0\0\0\0\0\x01a\0\x07\0\0\0\x02bc";
        assert_eq!(get, expected);
    }

    #[test]
    fn recorded_answers_are_read() {
        assert_eq!(hits(b"\xb8\0\0\0\x02", 2).ok(), Some(2));
        assert_eq!(hits(b"\xba\0\0\0\x01", 2).ok(), Some(1));
        // Never is 40 bits of ones when it is read back.
        let record = b"\0\0\0\0\0\x03\0\0\0\x02\0\0\0\xff\xff\xff\xff\xffkeyab";
        let head = RecordHead {
            database: 0,
            key: 3,
            value: 2,
        };
        assert_eq!(record_head(record), Some(head));
        assert_eq!(record_head(&record[..17]), None);
    }

    #[test]
    fn answers_to_another_request_and_errors_are_told_apart() {
        let refusal = check_first(SET, b"\xbf").expect_err("an error");
        assert_eq!(
            (refusal.class, refusal.code.as_str(), refusal.broken),
            (ErrorClass::Server, "0xBF", true)
        );
        let other = check_first(SET, b"\xba\0\0\0\0").expect_err("another request's");
        assert_eq!(other.class, ErrorClass::Protocol);
        let more = hits(b"\xba\0\0\0\x03", 2).expect_err("too many");
        assert_eq!(more.class, ErrorClass::Protocol);
    }
}
