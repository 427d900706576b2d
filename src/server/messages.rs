//! What dbbench and its guard say to each other: JSON, each message after its length in four bytes, little end first.
//!
//! Knows the words, not who acts on them. The same framing serves between the guard and its keepers; it could go over a wire.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::io::{self, Read, Write};
use std::path::PathBuf;

/// Longer than any message: a length above it means that the stream is broken.
const LONGEST_MESSAGE: usize = 16 << 20;

/// From dbbench to the guard. `id` is dbbench's number for one spawned command.
#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    Spawn {
        id: u64,
        spawn: Spawn,
    },
    Signal {
        id: u64,
        signal: i32,
        scope: Scope,
    },
    /// KILL to all that is left of it; answered by `Ended`.
    End {
        id: u64,
    },
}

/// Who gets a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scope {
    /// The process that was started.
    Main,
    /// It and all its descendants.
    Tree,
}

/// From the guard to dbbench.
#[derive(Debug, Serialize, Deserialize)]
pub enum Event {
    /// The guard is up and the private root exists.
    Up,
    /// The guard cannot work.
    CannotGuard {
        reason: String,
    },
    Spawned {
        id: u64,
        keeper: i32,
        pid: i32,
    },
    /// It could not be started; `Ended` follows.
    Refused {
        id: u64,
        reason: String,
    },
    /// The main process ended; `status` is as waitpid gives it. Descendants may live on.
    Exited {
        id: u64,
        status: i32,
    },
    /// Neither the main process nor any descendant is left.
    Ended {
        id: u64,
    },
}

/// From a keeper to the guard.
#[derive(Debug, Serialize, Deserialize)]
pub enum Report {
    Spawned { pid: i32 },
    Refused { reason: String },
    Exited { status: i32 },
}

/// One command to run, complete: names are resolved, paths absolute.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Spawn {
    /// Program and arguments, at least the program.
    pub argv: Vec<String>,
    /// Added to the environment of dbbench.
    pub environment: Vec<(String, String)>,
    pub directory: PathBuf,
    /// None = as dbbench itself.
    pub account: Option<Account>,
    /// Empty = not pinned.
    pub cpus: Vec<usize>,
    /// Appended to.
    pub stdout: PathBuf,
    /// Appended to; None = where stdout goes.
    pub stderr: Option<PathBuf>,
}

/// Whom a command runs as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    pub uid: u32,
    pub gid: u32,
    pub groups: Vec<u32>,
}

/// Writes one message, whole.
pub fn send<T: Serialize>(mut stream: impl Write, message: &T) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    let mut frame = Vec::with_capacity(4 + body.len());
    frame.extend_from_slice(&(body.len() as u32).to_le_bytes());
    frame.extend_from_slice(&body);
    stream.write_all(&frame)
}

/// Reads one message; None at the end of the stream, also in the middle of a message (the sender died).
pub fn receive<T: DeserializeOwned>(mut stream: impl Read) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    if !filled(&mut stream, &mut length)? {
        return Ok(None);
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > LONGEST_MESSAGE {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "a message is too long",
        ));
    }
    let mut body = vec![0; length];
    if !filled(&mut stream, &mut body)? {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&body)?))
}

fn filled(stream: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match stream.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) => match error.kind() {
            // A peer that died with unread messages resets the stream.
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => Ok(false),
            _ => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_arrives_as_it_was_sent_and_a_cut_one_is_an_end() {
        let mut bytes = Vec::new();
        send(
            &mut bytes,
            &Event::Refused {
                id: 7,
                reason: "no\nsuch \"file\"".to_owned(),
            },
        )
        .unwrap();
        match receive::<Event>(&bytes[..]).unwrap() {
            Some(Event::Refused { id: 7, reason }) => assert_eq!(reason, "no\nsuch \"file\""),
            other => panic!("{other:?}"),
        }
        assert!(
            receive::<Event>(&bytes[..bytes.len() - 1])
                .unwrap()
                .is_none()
        );
        assert!(receive::<Event>(&bytes[..2]).unwrap().is_none());
    }

    #[test]
    fn a_broken_length_is_refused() {
        assert!(receive::<Event>(&[255u8, 255, 255, 255, 0][..]).is_err());
    }
}
