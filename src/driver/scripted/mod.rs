//! Test equipment, and no driver: a TCP server that answers as a script says. After a known time, cut off, with garbage,
//! late, or never.
//!
//! Tests of drivers and of the engine's known truths use it where a real server cannot be made to misbehave on purpose,
//! or is not exact enough. A thread per connection, since 50 connections that sleep are all it ever has.

pub mod framing;
pub mod stores;

pub use framing::Framing;

use nix::sys::prctl::set_timerslack;
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// What the server does about one request, one after another.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Wait(Duration),
    Send(Vec<u8>),
    /// Closes the connection; what was sent before still arrives.
    Close,
    /// Reads and answers nothing more on this connection, and keeps it open until the server is dropped.
    Hang,
}

impl Step {
    pub fn send(bytes: impl AsRef<[u8]>) -> Step {
        Step::Send(bytes.as_ref().to_vec())
    }
}

/// Called with the connection's number (from 0, in the order they were accepted) and one whole request.
pub type Script = dyn Fn(usize, &[u8]) -> Vec<Step> + Send + Sync;

/// Stops when dropped: all its connections are closed and its threads have ended.
pub struct ScriptedServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    script: Box<Script>,
    framing: Framing,
    stopping: AtomicBool,
    requests: AtomicUsize,
    connections: Mutex<Connections>,
    /// Waited on by hanging and sleeping connections.
    stop: Condvar,
}

#[derive(Default)]
struct Connections {
    accepted: usize,
    open: HashMap<usize, TcpStream>,
}

impl ScriptedServer {
    /// Listens on a free port of 127.0.0.1.
    pub fn start(
        framing: Framing,
        script: impl Fn(usize, &[u8]) -> Vec<Step> + Send + Sync + 'static,
    ) -> io::Result<ScriptedServer> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            script: Box::new(script),
            framing,
            stopping: AtomicBool::new(false),
            requests: AtomicUsize::new(0),
            connections: Mutex::default(),
            stop: Condvar::new(),
        });
        let of_acceptor = Arc::clone(&shared);
        let acceptor = std::thread::Builder::new()
            .name("scripted".to_owned())
            .spawn(move || accept(&listener, &of_acceptor))?;
        Ok(ScriptedServer {
            address,
            shared,
            acceptor: Some(acceptor),
        })
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Connections accepted so far.
    pub fn accepted(&self) -> usize {
        self.shared.connections().accepted
    }

    /// Requests received so far.
    pub fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::SeqCst)
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        {
            let connections = self.shared.connections();
            self.shared.stopping.store(true, Ordering::SeqCst);
            for stream in connections.open.values() {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        self.shared.stop.notify_all();
        // Wakes the acceptor, which sees that it is to stop.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

impl Shared {
    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Sleeps until the time is over or the server stops.
    fn wait(&self, time: Duration) {
        // A condition variable wakes within the thread's timer slack, like a sleep.
        let connections = self.connections();
        let _ = self
            .stop
            .wait_timeout_while(connections, time, |_| !self.stopping());
    }

    fn hang(&self) {
        let mut connections = self.connections();
        while !self.stopping() {
            connections = self
                .stop
                .wait(connections)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut threads = Vec::new();
    while let Ok((stream, _)) = listener.accept() {
        let Ok(handle) = stream.try_clone() else {
            continue;
        };
        let number = {
            let mut connections = shared.connections();
            // Under the lock, so that no connection comes in behind the one who closes them all.
            if shared.stopping() {
                break;
            }
            let number = connections.accepted;
            connections.accepted += 1;
            connections.open.insert(number, handle);
            number
        };
        let shared = Arc::clone(shared);
        let thread = std::thread::Builder::new()
            .name(format!("scripted-{number}"))
            .stack_size(256 * 1024)
            .spawn(move || {
                // The end of a connection is the script's or the client's doing: no fault of the server.
                let _ = serve(&stream, number, &shared);
                shared.connections().open.remove(&number);
                let _ = stream.shutdown(Shutdown::Both);
            });
        // One that has ended keeps its stack until somebody looks: there may be a hundred thousand in turn.
        threads.retain(|thread: &JoinHandle<()>| !thread.is_finished());
        threads.extend(thread);
    }
    for thread in threads {
        let _ = thread.join();
    }
}

fn serve(mut stream: &TcpStream, number: usize, shared: &Shared) -> io::Result<()> {
    // The kernel's slack of 50 us would be added to every known time.
    let _ = set_timerslack(1);
    stream.set_nodelay(true)?;
    let mut received = Vec::new();
    let mut chunk = vec![0; 64 * 1024];
    loop {
        while let Some(length) = shared.framing.request_length(&received) {
            shared.requests.fetch_add(1, Ordering::SeqCst);
            let steps = (shared.script)(number, &received[..length]);
            received.drain(..length);
            for step in steps {
                match step {
                    Step::Wait(time) => shared.wait(time),
                    Step::Send(bytes) => stream.write_all(&bytes)?,
                    Step::Close => return Ok(()),
                    Step::Hang => {
                        shared.hang();
                        return Ok(());
                    }
                }
            }
        }
        match stream.read(&mut chunk)? {
            0 => return Ok(()),
            count => received.extend_from_slice(&chunk[..count]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn client(server: &ScriptedServer) -> TcpStream {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, server.port())).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        stream
    }

    #[test]
    fn an_answer_comes_after_its_time() {
        let server = ScriptedServer::start(Framing::Memcached, |_, _| {
            vec![Step::Wait(Duration::from_millis(20)), Step::send("END\r\n")]
        })
        .unwrap();
        let mut client = client(&server);
        let mut answer = [0; 5];
        let start = Instant::now();
        client.write_all(b"get a\r\n").unwrap();
        client.read_exact(&mut answer).unwrap();
        let elapsed = start.elapsed();
        assert_eq!(&answer, b"END\r\n");
        assert!(elapsed >= Duration::from_millis(20), "{elapsed:?}");
        assert!(elapsed < Duration::from_millis(120), "{elapsed:?}");
    }

    #[test]
    fn a_connection_is_cut_off_after_what_was_sent() {
        let server = ScriptedServer::start(Framing::Resp, |_, _| {
            vec![Step::send("$5\r\nab"), Step::Close]
        })
        .unwrap();
        let mut client = client(&server);
        client.write_all(b"*1\r\n$4\r\nPING\r\n").unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        assert_eq!(answer, b"$5\r\nab");
    }

    #[test]
    fn connections_are_numbered_and_requests_counted() {
        let server = ScriptedServer::start(Framing::Raw, |number, request| {
            vec![Step::Send(
                format!("{number}:{}", request.len()).into_bytes(),
            )]
        })
        .unwrap();
        for expected in [b"0:3", b"1:3"] {
            let mut client = client(&server);
            client.write_all(b"abc").unwrap();
            let mut answer = [0; 3];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, expected);
        }
        assert_eq!((server.accepted(), server.requests()), (2, 2));
    }

    #[test]
    fn a_hanging_or_sleeping_server_stops_at_once() {
        let server = ScriptedServer::start(Framing::Raw, |number, _| match number {
            0 => vec![Step::Hang],
            _ => vec![Step::Wait(Duration::from_secs(60))],
        })
        .unwrap();
        let mut clients = [client(&server), client(&server)];
        for client in &mut clients {
            client.write_all(b"x").unwrap();
        }
        while server.requests() < 2 {
            std::thread::yield_now();
        }
        let start = Instant::now();
        drop(server);
        assert!(start.elapsed() < Duration::from_secs(2));
    }
}
