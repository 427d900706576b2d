//! Answers of HTTP/1.0 and 1.1, read to their last byte: for the drivers of stores that are behind it.
//!
//! Knows heads, framings and chunks. What is asked, what a status means and when a connection is given up is the drivers'.

use super::{Connection, lost, malformed, read_decimal};
use crate::op::{ErrorClass, Failure};
use httparse::Header;
use std::io;

/// Longest head of an answer, in bytes.
const LONGEST_HEAD: usize = 64 * 1024;

/// What an answer's head says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub status: u16,
    /// Bytes of it, the empty line included.
    pub length: usize,
    pub framing: Framing,
    /// The server goes on with this connection.
    pub stays_open: bool,
}

/// How the end of the body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    None,
    Length(u64),
    Chunked,
    /// The server closes the connection.
    Close,
}

/// Reads a head, of the answer to a HEAD where `to_head`; `other` hears the headers that the framing does not need.
/// Ok(None): more bytes are needed. Errors are what is malformed.
pub fn head(
    received: &[u8],
    to_head: bool,
    mut other: impl FnMut(&str, &[u8]),
) -> Result<Option<Head>, String> {
    let mut headers = [httparse::EMPTY_HEADER; 96];
    let mut response = httparse::Response::new(&mut headers);
    let length = match response.parse(received) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let status = response.code.unwrap_or_default();
    let is_http11 = response.version == Some(1);
    let mut framing = Framing::Close;
    let mut stays_open = is_http11;
    let mut head = Head {
        status,
        length,
        framing,
        stays_open,
    };
    for Header { name, value } in response.headers.iter() {
        // By length first: most headers are none of these.
        match name.len() {
            14 if name.eq_ignore_ascii_case("content-length") => {
                let said = read_decimal(value.trim_ascii()).ok_or("Content-Length is no number")?;
                if !matches!(framing, Framing::Chunked) {
                    if matches!(framing, Framing::Length(other) if other != said) {
                        return Err("two lengths of one body".to_owned());
                    }
                    framing = Framing::Length(said);
                }
            }
            17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                match value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                    true => framing = Framing::Chunked,
                    false => return Err("a transfer encoding that is not chunked".to_owned()),
                }
            }
            10 if name.eq_ignore_ascii_case("connection") => {
                let says = |word: &[u8]| {
                    let mut words = value.split(|byte| *byte == b',');
                    words.any(|said| said.trim_ascii().eq_ignore_ascii_case(word))
                };
                if says(b"close") {
                    stays_open = false;
                } else if says(b"keep-alive") {
                    stays_open = true;
                }
            }
            _ => other(name, value),
        }
    }
    if to_head || status < 200 || status == 204 || status == 304 {
        framing = Framing::None;
    }
    head.framing = framing;
    head.stays_open = stays_open && framing != Framing::Close;
    Ok(Some(head))
}

/// Where a chunked body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// More bytes are needed.
    Partial,
    /// A chunk of `size` bytes begins after `line` bytes.
    Data { line: usize, size: u64 },
    /// The last chunk: the trailers begin after `line` bytes.
    Last { line: usize },
}

/// Reads the line that begins a chunk.
pub fn chunk(received: &[u8]) -> Result<Chunk, String> {
    match httparse::parse_chunk_size(received) {
        Ok(httparse::Status::Partial) if received.len() > 1024 => {
            Err("the size of a chunk has no end".to_owned())
        }
        Ok(httparse::Status::Partial) => Ok(Chunk::Partial),
        Ok(httparse::Status::Complete((line, 0))) => Ok(Chunk::Last { line }),
        Ok(httparse::Status::Complete((line, size))) => Ok(Chunk::Data { line, size }),
        Err(_) => Err("the size of a chunk".to_owned()),
    }
}

/// Bytes of the trailers with the empty line that ends them; None where more are needed.
pub fn trailers(received: &[u8]) -> Option<usize> {
    if received.starts_with(b"\r\n") {
        return Some(2);
    }
    let end = received.windows(4).position(|window| window == b"\r\n\r\n");
    end.map(|end| end + 4)
}

/// Receives a head and takes it off; provisional answers (1xx) are passed over. `bytes` grows by what was taken off.
pub async fn read_head(
    connection: &mut Connection,
    to_head: bool,
    mut other: impl FnMut(&str, &[u8]),
    bytes: &mut u64,
) -> Result<Head, Failure> {
    loop {
        let received = connection.received();
        if !received.is_empty() {
            match head(received, to_head, &mut other) {
                Err(what) => return Err(malformed(&what, received)),
                Ok(Some(head)) => {
                    *bytes += head.length as u64;
                    connection.consume(head.length);
                    if head.status >= 200 {
                        return Ok(head);
                    }
                    continue;
                }
                Ok(None) if received.len() > LONGEST_HEAD => {
                    return Err(malformed("a head without an end", received));
                }
                Ok(None) => {}
            }
        }
        let received = connection.receive().await;
        received.map_err(|error| lost(&error))?;
    }
}

/// Receives a body of at most `limit` bytes. Returns how many received bytes are it, to be consumed by the caller; one that
/// comes in chunks is put into `pieces` and taken off.
pub async fn read_body(
    connection: &mut Connection,
    head: &Head,
    limit: usize,
    pieces: &mut Vec<u8>,
    bytes: &mut u64,
) -> Result<usize, Failure> {
    let length = match head.framing {
        Framing::None => 0,
        Framing::Length(length) => {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            if length > limit {
                return Err(too_long());
            }
            let received = connection.receive_total(length).await;
            received.map_err(|error| lost(&error))?;
            length
        }
        Framing::Close => loop {
            if connection.received().len() > limit {
                return Err(too_long());
            }
            match connection.receive().await {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    break connection.received().len();
                }
                Err(error) => return Err(lost(&error)),
            }
        },
        Framing::Chunked => {
            pieces.clear();
            read_chunks(connection, pieces, limit, bytes).await?;
            0
        }
    };
    *bytes += length as u64;
    Ok(length)
}

fn too_long() -> Failure {
    Failure::new(ErrorClass::Protocol, "the body is longer than `max_body`")
}

async fn read_chunks(
    connection: &mut Connection,
    body: &mut Vec<u8>,
    limit: usize,
    bytes: &mut u64,
) -> Result<(), Failure> {
    let wait = async |connection: &mut Connection| {
        let received = connection.receive().await;
        received.map_err(|error| lost(&error))
    };
    loop {
        match chunk(connection.received()) {
            Err(what) => return Err(malformed(&what, connection.received())),
            Ok(Chunk::Partial) => wait(connection).await?,
            Ok(Chunk::Data { line, size }) => {
                let size = usize::try_from(size).unwrap_or(usize::MAX);
                if body.len().saturating_add(size) > limit {
                    return Err(too_long());
                }
                let total = line + size + 2;
                let received = connection.receive_total(total).await;
                received.map_err(|error| lost(&error))?;
                let (data, end) = connection.received()[line..total].split_at(size);
                if end != b"\r\n" {
                    return Err(malformed("a chunk without its end", end));
                }
                body.extend_from_slice(data);
                *bytes += total as u64;
                connection.consume(total);
            }
            Ok(Chunk::Last { line }) => {
                connection.consume(line);
                let end = loop {
                    if let Some(end) = trailers(connection.received()) {
                        break end;
                    }
                    if connection.received().len() > LONGEST_HEAD {
                        let received = connection.received();
                        return Err(malformed("trailers without an end", received));
                    }
                    wait(connection).await?;
                };
                *bytes += (line + end) as u64;
                connection.consume(end);
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Head {
        head(text.as_bytes(), false, |_, _| ())
            .expect("well formed")
            .expect("whole")
    }

    #[test]
    fn the_end_of_a_body_is_known_by_its_head() {
        let said = read("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n");
        assert_eq!((said.framing, said.stays_open), (Framing::Length(12), true));
        let said =
            read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n");
        assert_eq!(said.framing, Framing::Chunked);
        let said = read("HTTP/1.0 200 OK\r\n\r\n");
        assert_eq!((said.framing, said.stays_open), (Framing::Close, false));
        let said = read("HTTP/1.1 304 Not Modified\r\nContent-Length: 12\r\n\r\n");
        assert_eq!(said.framing, Framing::None);
        let said = read("HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n");
        assert!(said.stays_open);
        let said = read("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
        assert!(!said.stays_open);
    }

    #[test]
    fn half_a_head_needs_more_and_nonsense_is_refused() {
        assert_eq!(
            head(b"HTTP/1.1 200 OK\r\nContent-", false, |_, _| ()),
            Ok(None)
        );
        for wrong in [
            "SSH-2.0-OpenSSH\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        ] {
            assert!(head(wrong.as_bytes(), false, |_, _| ()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn chunks_are_told_from_the_last_one() {
        assert_eq!(
            chunk(b"1a;x=y\r\nabc"),
            Ok(Chunk::Data { line: 8, size: 26 })
        );
        assert_eq!(chunk(b"0\r\n\r\n"), Ok(Chunk::Last { line: 3 }));
        assert_eq!(chunk(b"1"), Ok(Chunk::Partial));
        assert!(chunk(b"zz\r\n").is_err());
        assert_eq!(trailers(b"\r\n"), Some(2));
        assert_eq!(trailers(b"a: b\r\n\r\nrest"), Some(8));
        assert_eq!(trailers(b"a: b\r\n"), None);
    }
}
