//! A connection for one small request, which is sent before the event loop hears of the socket.
//!
//! A peer on the same machine or network segment has often answered by the time that `connect` returns; sending at once
//! then saves a round through the event loop for each connection. Where it has not, the loop waits as it does for any
//! other. Leaves to `connection` all that comes after.

use super::{Connection, Stream, connect, lost, unconnected};
use crate::driver::spec::{Endpoint, Transport};
use crate::op::Failure;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, SockaddrStorage, connect as begin, send, socket,
};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Instant;
use tokio::net::TcpStream;

/// Bytes that go out in one segment on any network, so that no later segment waits for an acknowledgement.
const ONE_SEGMENT: usize = 500;

/// Connects and sends `request`; returns when the connection was established. Errors: `connect`, `no_local_port`, `reset`.
pub async fn connect_sending(
    endpoint: &Endpoint,
    request: &[u8],
) -> Result<(Connection, Instant), Failure> {
    if let Transport::Tcp { addresses, .. } = &endpoint.transport
        && let [address] = addresses.as_slice()
        && request.len() <= ONE_SEGMENT
    {
        return at_once(*address, &endpoint.label, request).await;
    }
    let mut connection = connect(endpoint).await?;
    let connected = Instant::now();
    let sent = connection.send(request, &[], &[]).await;
    sent.map_err(|error| lost(&error))?;
    Ok((connection, connected))
}

async fn at_once(
    address: SocketAddr,
    label: &str,
    request: &[u8],
) -> Result<(Connection, Instant), Failure> {
    let unconnected = |error: io::Error| unconnected(&error, label);
    let socket = open(address).map_err(unconnected)?;
    let mut connected = Instant::now();
    let sent = match send(socket.as_raw_fd(), request, MsgFlags::MSG_NOSIGNAL) {
        Ok(count) => Some(count),
        Err(Errno::EAGAIN) => None,
        Err(error @ (Errno::EPIPE | Errno::ECONNRESET)) => return Err(lost(&error.into())),
        // What became of connecting shows here.
        Err(error) => return Err(unconnected(error.into())),
    };
    let stream = TcpStream::from_std(socket.into()).map_err(unconnected)?;
    if sent.is_none() {
        stream.writable().await.map_err(unconnected)?;
        let failed = stream.take_error().map_err(unconnected)?;
        failed.map_or(Ok(()), |error| Err(unconnected(error)))?;
        connected = Instant::now();
    }
    let mut connection = Connection::new(Stream::Tcp(stream), Some(address));
    let rest = &request[sent.unwrap_or(0)..];
    if !rest.is_empty() {
        let sent = connection.send(rest, &[], &[]).await;
        sent.map_err(|error| lost(&error))?;
    }
    Ok((connection, connected))
}

/// A socket that is connected or on its way.
fn open(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::Inet,
        SocketAddr::V6(_) => AddressFamily::Inet6,
    };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = socket(family, SockType::Stream, flags, None)?;
    match begin(socket.as_raw_fd(), &SockaddrStorage::from(address)) {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::ErrorClass;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    fn endpoint(address: SocketAddr) -> Endpoint {
        let transport = Transport::Tcp {
            host: address.ip().to_string(),
            port: address.port(),
            addresses: vec![address],
        };
        Endpoint {
            text: format!("http://{address}"),
            label: address.to_string(),
            transport,
        }
    }

    #[tokio::test]
    async fn a_request_arrives_whole_and_its_answer_is_read() {
        for length in [1, ONE_SEGMENT, ONE_SEGMENT + 1, 3_000_000] {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let address = listener.local_addr().expect("an address");
            let server = std::thread::spawn(move || {
                let (mut socket, _) = listener.accept().expect("a connection");
                let mut received = vec![0; length];
                socket.read_exact(&mut received).expect("the request");
                socket.write_all(b"read").expect("an answer");
                received
            });
            let request: Vec<u8> = (0..length).map(|at| at as u8).collect();
            let began = Instant::now();
            let endpoint = endpoint(address);
            let (mut connection, connected) =
                connect_sending(&endpoint, &request).await.expect("sent");
            assert!(connected >= began);
            assert_eq!(connection.peer(), Some(address));
            connection.receive_total(4).await.expect("an answer");
            assert_eq!(connection.received(), b"read");
            assert_eq!(server.join().expect("a server"), request);
        }
    }

    #[tokio::test]
    async fn a_port_where_nobody_listens_is_a_failure_to_connect() {
        let address = {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            listener.local_addr().expect("an address")
        };
        let failed = connect_sending(&endpoint(address), b"x").await;
        let failure = failed.expect_err("nobody listens");
        assert_eq!(failure.class, ErrorClass::Connect);
        assert!(
            failure.message.contains(&address.to_string()),
            "{failure:?}"
        );
    }
}
