//! The least that a client on one thread can do: an epoll loop over non-blocking sockets that sends a prepared request,
//! reads the whole answer, checks its first line and its length, and sends the next one.
//!
//! It makes no keys or values, measures no latencies and knows no timeout; what any client pays per operation beyond
//! this is that client's own. Nothing of dbbench is in it, so that it can be the measure of dbbench.

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::time::{ClockId, clock_gettime};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

/// What a run of the loop took, connecting not counted.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    pub operations: u64,
    pub seconds: f64,
    /// User and system time of the thread.
    pub cpu_seconds: f64,
}

impl Report {
    pub fn per_second(&self) -> f64 {
        self.operations as f64 / self.seconds
    }

    /// Microseconds of CPU per operation.
    pub fn cpu_us(&self) -> f64 {
        self.cpu_seconds * 1e6 / self.operations as f64
    }
}

/// Does `operations` SETs, or GETs of values that it wrote before the clock ran, of `value_size` bytes on a Redis server
/// at 127.0.0.1, over `connections` connections with one operation in flight each. Each connection has a key of its own,
/// of 32 bytes. Fails where the server's answer is another than the right one.
pub fn bare(
    port: u16,
    connections: usize,
    operations: u64,
    value_size: usize,
    set: bool,
) -> Result<Report> {
    let value = vec![b'x'; value_size];
    let mut peers = (0..connections)
        .map(|number| Peer::connect(port, number, &value, set))
        .collect::<Result<Vec<_>>>()?;
    let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    for (number, peer) in peers.iter().enumerate() {
        // Edge-triggered and for both directions from the start: no system call changes it later.
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
        epoll.add(&peer.stream, EpollEvent::new(flags, number as u64))?;
    }
    let (started, cpu) = (Instant::now(), thread_cpu()?);
    drive(&epoll, &mut peers, operations)?;
    Ok(Report {
        operations,
        seconds: started.elapsed().as_secs_f64(),
        cpu_seconds: (thread_cpu()? - cpu).as_secs_f64(),
    })
}

fn drive(epoll: &Epoll, peers: &mut [Peer], operations: u64) -> Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    let mut events = vec![EpollEvent::empty(); peers.len().max(1)];
    let (mut begun, mut ended) = (0, 0);
    for peer in peers.iter_mut() {
        if begun < operations {
            begun += 1;
            peer.begin()?;
        }
    }
    while ended < operations {
        let ready = match epoll.wait(&mut events, EpollTimeout::NONE) {
            Err(nix::errno::Errno::EINTR) => continue,
            other => other?,
        };
        for event in &events[..ready] {
            let peer = &mut peers[event.data() as usize];
            if !peer.busy {
                continue;
            }
            if event.events().contains(EpollFlags::EPOLLOUT) {
                peer.send()?;
            }
            if event.events().contains(EpollFlags::EPOLLIN) && peer.receive(&mut buffer)? {
                ended += 1;
                if begun < operations {
                    begun += 1;
                    peer.begin()?;
                }
            }
        }
    }
    Ok(())
}

/// One connection and where its operation stands.
struct Peer {
    stream: TcpStream,
    request: Vec<u8>,
    sent: usize,
    /// The first line of the right answer, and the length of all of it.
    first_line: Vec<u8>,
    length: usize,
    received: usize,
    busy: bool,
}

impl Peer {
    fn connect(port: u16, number: usize, value: &[u8], set: bool) -> Result<Peer> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        let key = format!("{number:032}");
        let write = command(&[b"SET", key.as_bytes(), value]);
        let (request, first_line, length) = if set {
            (write, b"+OK\r\n".to_vec(), 5)
        } else {
            stream.write_all(&write)?;
            let mut answer = [0; 5];
            stream.read_exact(&mut answer)?;
            expect(&answer, b"+OK\r\n")?;
            let first_line = format!("${}\r\n", value.len()).into_bytes();
            let length = first_line.len() + value.len() + 2;
            (command(&[b"GET", key.as_bytes()]), first_line, length)
        };
        stream.set_nonblocking(true)?;
        Ok(Peer {
            stream,
            request,
            sent: 0,
            first_line,
            length,
            received: 0,
            busy: false,
        })
    }

    fn begin(&mut self) -> Result<()> {
        (self.sent, self.received, self.busy) = (0, 0, true);
        self.send()
    }

    fn send(&mut self) -> Result<()> {
        while self.sent < self.request.len() {
            match self.stream.write(&self.request[self.sent..]) {
                Ok(bytes) => self.sent += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads what is there; true when the answer is complete.
    fn receive(&mut self, buffer: &mut [u8]) -> Result<bool> {
        loop {
            let bytes = match self.stream.read(buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.check(&buffer[..bytes])?;
            self.received += bytes;
            if self.received == self.length {
                self.busy = false;
                return Ok(true);
            }
            // A read that did not fill the buffer has emptied the socket; the next edge comes with more.
            if bytes < buffer.len() {
                return Ok(false);
            }
        }
    }

    fn check(&self, bytes: &[u8]) -> Result<()> {
        if let Some(due) = self.first_line.get(self.received..) {
            let overlap = due.len().min(bytes.len());
            expect(&bytes[..overlap], &due[..overlap])?;
        }
        match self.received + bytes.len() > self.length {
            true => Err(Error::new(ErrorKind::InvalidData, "an answer is too long")),
            false => Ok(()),
        }
    }
}

fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
    out
}

fn expect(answer: &[u8], right: &[u8]) -> Result<()> {
    if answer == right {
        return Ok(());
    }
    let answer = String::from_utf8_lossy(answer);
    Err(Error::new(
        ErrorKind::InvalidData,
        format!("the server answered {answer:?}"),
    ))
}

fn thread_cpu() -> Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?.into())
}
