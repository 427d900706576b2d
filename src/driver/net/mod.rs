//! Sockets as all networked drivers want them: connect to the first address that answers, TCP without delay, one buffer
//! per connection that grows to the largest answer and is then reused.
//!
//! Knows bytes, not protocols. `connection` is the hot path, `endpoint` reads the text of an endpoint, `tls` makes the
//! client's side of TLS, `blocking` lends the same code to the cold side, which has no event loop.

pub mod blocking;
pub mod connection;
pub mod endpoint;
#[cfg(feature = "http-wire")]
pub mod http;
#[cfg(feature = "tls")]
pub mod tls;

pub use connection::{Connection, Stream};

use super::spec::{Endpoint, Transport};
use crate::op::{ErrorClass, Failure};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};

/// All addresses of a name, in the resolver's order. Blocks; called once, before a phase.
pub fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, Failure> {
    let unresolved = |reason: String| {
        Failure::new(
            ErrorClass::Connect,
            format!("cannot resolve {host}: {reason}"),
        )
    };
    let addresses: Vec<SocketAddr> = (host, port)
        .to_socket_addrs()
        .map_err(|error| unresolved(error.to_string()))?
        .collect();
    if addresses.is_empty() {
        return Err(unresolved("the name has no address".to_owned()));
    }
    Ok(addresses)
}

/// Opens a plain connection to the first address of the endpoint that answers. An endpoint whose name the engine has
/// not resolved is resolved here. Errors: `connect`, `no_local_port`, as the last address tried gave it.
pub async fn connect(endpoint: &Endpoint) -> Result<Connection, Failure> {
    match &endpoint.transport {
        Transport::Tcp {
            host,
            port,
            addresses,
        } => {
            let (stream, peer) = if addresses.is_empty() {
                connect_tcp(&resolve(host, *port)?, &endpoint.label).await?
            } else {
                connect_tcp(addresses, &endpoint.label).await?
            };
            Ok(Connection::new(Stream::Tcp(stream), Some(peer)))
        }
        Transport::Unix { path } => {
            let stream = UnixStream::connect(path)
                .await
                .map_err(|error| unconnected(&error, &endpoint.label))?;
            Ok(Connection::new(Stream::Unix(stream), None))
        }
        Transport::Directory { .. } | Transport::Nothing => Err(Failure::new(
            ErrorClass::Client,
            format!("{} is no address", endpoint.label),
        )),
    }
}

/// How long an address that does not answer keeps the next one waiting.
const PATIENCE: Duration = Duration::from_secs(1);

/// Tries the addresses in order; the connection has TCP_NODELAY set.
pub async fn connect_tcp(
    addresses: &[SocketAddr],
    label: &str,
) -> Result<(TcpStream, SocketAddr), Failure> {
    let mut last = io::Error::new(io::ErrorKind::InvalidInput, "no address");
    for (number, address) in addresses.iter().enumerate() {
        let connecting = TcpStream::connect(address);
        let result = if number + 1 < addresses.len() {
            let limited = tokio::time::timeout(PATIENCE, connecting).await;
            limited.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        } else {
            // The limit of the last one is the session's.
            connecting.await
        };
        match result.and_then(|stream| stream.set_nodelay(true).map(|()| stream)) {
            Ok(stream) => return Ok((stream, *address)),
            Err(error) => last = error,
        }
    }
    Err(unconnected(&last, label))
}

/// A failure to connect, told apart by its cause: `client` where this process or host has no file descriptor left.
fn unconnected(error: &io::Error, label: &str) -> Failure {
    let failure = Failure::connecting(error, label);
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => Failure {
            class: ErrorClass::Client,
            ..failure
        },
        _ => failure,
    }
}

/// A failure of an open connection while an answer was due: `protocol` where the bytes made no sense, else `reset`.
pub fn lost(error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::InvalidData => {
            Failure::new(ErrorClass::Protocol, format!("malformed answer: {error}"))
        }
        _ => Failure::io(error),
    }
}

/// A malformed answer, with its beginning made printable.
pub fn malformed(what: &str, received: &[u8]) -> Failure {
    let shown = &received[..received.len().min(40)];
    let message = format!("malformed answer: {what}: `{}`", shown.escape_ascii());
    Failure::new(ErrorClass::Protocol, message)
}

/// Appends a number in decimal, without the cost of formatting.
#[inline]
pub fn push_decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0_u8; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[first..]);
}

/// Reads a number in decimal; None where there is anything but digits, or more of them than a length can have.
#[inline]
pub fn read_decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, digit| {
        digit
            .is_ascii_digit()
            .then(|| number * 10 + u64::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::net::blocking::Blocking;
    use std::net::TcpListener;
    use std::time::Duration;

    fn tcp(addresses: Vec<SocketAddr>) -> Endpoint {
        Endpoint {
            text: String::new(),
            label: "here".to_owned(),
            transport: Transport::Tcp {
                host: "127.0.0.1".to_owned(),
                port: 1,
                addresses,
            },
        }
    }

    #[test]
    fn the_first_address_that_answers_is_used() {
        let dead = TcpListener::bind("127.0.0.1:0").unwrap();
        let dead_address = dead.local_addr().unwrap();
        drop(dead);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let peer = Blocking::new()
            .unwrap()
            .run(Duration::from_secs(5), "connect", async {
                let connection = connect(&tcp(vec![dead_address, address])).await?;
                Ok(connection.peer())
            })
            .unwrap();
        assert_eq!(peer, Some(address));
    }

    #[test]
    fn a_refused_connection_is_a_failure_to_connect() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let failure = Blocking::new()
            .unwrap()
            .run(Duration::from_secs(5), "connect", async {
                connect(&tcp(vec![address])).await.map(|_| ())
            })
            .unwrap_err();
        assert_eq!(failure.class, ErrorClass::Connect);
        assert!(failure.broken);
    }

    #[test]
    fn causes_of_a_connection_not_made_are_told_apart() {
        let class = |code| unconnected(&io::Error::from_raw_os_error(code), "here").class;
        assert_eq!(class(libc::EMFILE), ErrorClass::Client);
        assert_eq!(class(libc::EADDRNOTAVAIL), ErrorClass::NoLocalPort);
        assert_eq!(class(libc::ECONNREFUSED), ErrorClass::Connect);
        assert_eq!(class(libc::EHOSTUNREACH), ErrorClass::Connect);
    }

    #[test]
    fn decimals_are_written_and_read() {
        for number in [0, 7, 10, 41_960, 9_999_999_999_999_999_999] {
            let mut text = Vec::new();
            push_decimal(&mut text, number);
            assert_eq!(text, number.to_string().as_bytes());
            assert_eq!(read_decimal(&text), Some(number));
        }
        assert_eq!(read_decimal(b""), None);
        assert_eq!(read_decimal(b"-1"), None);
        assert_eq!(read_decimal(b"12345678901234567890"), None);
    }

    #[test]
    fn a_name_without_address_is_a_failure_to_connect() {
        let failure = resolve("no-such-host.invalid", 1).unwrap_err();
        assert_eq!(failure.class, ErrorClass::Connect);
    }
}
