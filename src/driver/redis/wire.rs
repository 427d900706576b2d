//! RESP, as far as the operation loop needs it: requests written without a copy of the value, and the ends of answers
//! found without reading what is in them.
//!
//! The redis crate's encoder takes a copy of every argument before it writes, and its parser one of every value: with
//! values of 42 KB each costs as much as the system call. They do everything that is not a built-in operation.

use crate::driver::net::{push_decimal, read_decimal};

/// No answer's value is larger: a server's own limit is 512 MiB.
const LARGEST: u64 = 1 << 30;

/// Lines that say something, and headers, are short.
pub const LONGEST_LINE: usize = 64 * 1024;

/// Appends one argument.
#[inline]
pub fn push_argument(out: &mut Vec<u8>, argument: &[u8]) {
    push_length(out, argument.len());
    out.extend_from_slice(argument);
    out.extend_from_slice(b"\r\n");
}

/// Appends what stands before an argument of `length` bytes.
#[inline]
pub fn push_length(out: &mut Vec<u8>, length: usize) {
    out.push(b'$');
    push_decimal(out, length as u64);
    out.extend_from_slice(b"\r\n");
}

/// Whether an answer may begin with this byte.
#[inline]
pub fn is_type(byte: u8) -> bool {
    matches!(
        byte,
        b'+' | b'-'
            | b':'
            | b'$'
            | b'*'
            | b'_'
            | b'#'
            | b','
            | b'('
            | b'!'
            | b'='
            | b'%'
            | b'~'
            | b'>'
            | b'|'
    )
}

/// What a line that begins with `$` announces: a length, or None for a value that is not there (`$-1`).
/// `line` ends with CR LF. Err where it is none of both.
#[inline]
pub fn bulk_length(line: &[u8]) -> Result<Option<usize>, ()> {
    let digits = line.strip_suffix(b"\r\n").ok_or(())?.get(1..).ok_or(())?;
    match read_decimal(digits) {
        Some(length) if length <= LARGEST => Ok(Some(length as usize)),
        Some(_) => Err(()),
        None if digits == b"-1" => Ok(None),
        None => Err(()),
    }
}

/// Finds the end of an answer of any kind while it arrives; goes on where it stopped, so an answer is seen once.
#[derive(Debug)]
pub struct Frame {
    position: usize,
    /// Elements still to come.
    pending: u64,
}

/// How far an answer is.
#[derive(Debug, PartialEq)]
pub enum Progress {
    /// Whole, with its length in bytes.
    Whole(usize),
    /// At least so many bytes are needed in all.
    Needs(usize),
}

impl Frame {
    pub fn new() -> Frame {
        Frame {
            position: 0,
            pending: 1,
        }
    }

    /// Looks at all bytes received of this answer so far. Err where they are not of the protocol.
    pub fn advance(&mut self, bytes: &[u8]) -> Result<Progress, ()> {
        while self.pending > 0 {
            let rest = &bytes[self.position.min(bytes.len())..];
            let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                if rest.len() > LONGEST_LINE || rest.first().is_some_and(|byte| !is_type(*byte)) {
                    return Err(());
                }
                return Ok(Progress::Needs(self.position.max(bytes.len()) + 1));
            };
            let line = &rest[..=end];
            let (more, skipped) = announced(line)?;
            let after = self.position + line.len() + skipped;
            if after > bytes.len() {
                return Ok(Progress::Needs(after));
            }
            self.position = after;
            self.pending = self.pending - 1 + more;
        }
        Ok(Progress::Whole(self.position))
    }
}

/// What follows a line: how many elements, and how many bytes of its own.
fn announced(line: &[u8]) -> Result<(u64, usize), ()> {
    let body = line.strip_suffix(b"\r\n").ok_or(())?;
    let (kind, rest) = body.split_first().ok_or(())?;
    let count = || match read_decimal(rest) {
        Some(count) if count <= LARGEST => Ok(count),
        None if rest == b"-1" => Ok(0),
        _ => Err(()),
    };
    match kind {
        b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(' => Ok((0, 0)),
        b'$' | b'!' | b'=' => Ok((0, bulk_length(line)?.map_or(0, |length| length + 2))),
        b'*' | b'~' | b'>' => Ok((count()?, 0)),
        b'%' => Ok((count()? * 2, 0)),
        // Attributes stand before the answer that they belong to.
        b'|' => Ok((count()? * 2 + 1, 0)),
        _ => Err(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(bytes: &[u8]) -> Option<usize> {
        match Frame::new().advance(bytes) {
            Ok(Progress::Whole(length)) => Some(length),
            _ => None,
        }
    }

    #[test]
    fn arguments_are_written_as_the_crate_writes_them() {
        let value = vec![7_u8; 300];
        let mut out = b"*3\r\n".to_vec();
        for argument in [b"SET".as_slice(), b"", &value] {
            push_argument(&mut out, argument);
        }
        let expected = redis::cmd("SET").arg(b"").arg(&value).get_packed_command();
        assert_eq!(out, expected);
    }

    #[test]
    fn the_end_of_every_kind_of_answer_is_found() {
        let answers: [&[u8]; 14] = [
            b"+OK\r\n",
            b"-ERR no\r\n",
            b":-5\r\n",
            b"$0\r\n\r\n",
            b"$-1\r\n",
            b"$5\r\na\r\nbc\r\n",
            b"*-1\r\n",
            b"*0\r\n",
            b"*2\r\n$1\r\n0\r\n*2\r\n$1\r\na\r\n:3\r\n",
            b"%1\r\n+a\r\n*1\r\n_\r\n",
            b"~1\r\n#t\r\n",
            b"=7\r\ntxt:abc\r\n",
            b"|1\r\n+a\r\n+b\r\n,1.5\r\n",
            b"(123456789012345678901234567890\r\n",
        ];
        for answer in answers {
            let mut long = answer.to_vec();
            long.extend_from_slice(b"+NEXT\r\n");
            assert_eq!(
                whole(&long),
                Some(answer.len()),
                "{}",
                answer.escape_ascii()
            );
            for cut in 0..answer.len() {
                assert_eq!(whole(&answer[..cut]), None, "{}", answer.escape_ascii());
            }
        }
    }

    #[test]
    fn an_answer_that_comes_byte_by_byte_is_whole_at_its_last() {
        let answer = b"*2\r\n$3\r\nabc\r\n*1\r\n:1\r\n";
        let mut frame = Frame::new();
        for end in 0..answer.len() {
            let Ok(Progress::Needs(total)) = frame.advance(&answer[..end]) else {
                panic!("not whole at {end}")
            };
            assert!(total > end && total <= answer.len());
        }
        assert_eq!(frame.advance(answer), Ok(Progress::Whole(answer.len())));
    }

    #[test]
    fn what_is_not_of_the_protocol_is_refused_at_once() {
        let wrong: [&[u8]; 6] = [
            b"HTTP/1.1 400",
            b"$x\r\n",
            b"$-2\r\n",
            b"*1x\r\n",
            b"+OK\n",
            b"$99999999999\r\n",
        ];
        for bytes in wrong {
            let answer = Frame::new().advance(bytes);
            assert_eq!(answer, Err(()), "{}", bytes.escape_ascii());
        }
    }
}
