//! A stand-in for Riak KV, since no package has one: nodes that speak both interfaces as a real one was seen to, and can
//! be hung, killed, made young, or made to give up. Threads and sockets of the standard library, nothing else.
//!
//! The nodes of one stand-in share their objects, so that what one node was told all have. What of a real Riak is not
//! here: replicas, mapreduce, indexes, data types.
#![allow(dead_code)]

#[path = "riak/http.rs"]
mod http;
#[path = "riak/pb.rs"]
mod pb;
#[path = "riak/store.rs"]
mod store;

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
pub use store::Store;

/// How a node is at the moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mood {
    Well,
    /// The first second after a start: reads answer 500 `insufficient_vnodes`, writes 500 `all_nodes_down`.
    Young,
    /// Before that: the web server is there, its pages are not.
    WithoutPages,
    /// Every operation is given up by the node itself after this; a put is done all the same.
    GivesUp(Duration),
    /// Fewer primary replicas than asked for.
    PrimariesDown,
    /// Answers each this late.
    Slow(Duration),
}

pub struct StandIn {
    nodes: Vec<Node>,
    shared: Arc<Shared>,
}

pub struct Node {
    pub http_port: u16,
    pub pb_port: u16,
    state: Arc<NodeState>,
    acceptors: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    store: Mutex<Store>,
}

struct NodeState {
    number: usize,
    of: usize,
    now: Mutex<Now>,
    changed: Condvar,
    addresses: Mutex<Vec<SocketAddr>>,
}

struct Now {
    mood: Mood,
    hung: bool,
    dead: bool,
    accepted: usize,
    requests: usize,
    open: HashMap<usize, TcpStream>,
}

impl StandIn {
    pub fn start() -> StandIn {
        StandIn::cluster(1)
    }

    pub fn cluster(size: usize) -> StandIn {
        let shared = Arc::new(Shared {
            store: Mutex::new(Store::default()),
        });
        let nodes = (0..size)
            .map(|number| Node::start(number, size, &shared))
            .collect();
        StandIn { nodes, shared }
    }

    pub fn node(&self, number: usize) -> &Node {
        &self.nodes[number]
    }

    pub fn store(&self) -> MutexGuard<'_, Store> {
        self.shared.store.lock().expect("no thread panics")
    }
}

impl Node {
    fn start(number: usize, of: usize, shared: &Arc<Shared>) -> Node {
        let state = Arc::new(NodeState {
            number,
            of,
            now: Mutex::new(Now {
                mood: Mood::Well,
                hung: false,
                dead: false,
                accepted: 0,
                requests: 0,
                open: HashMap::new(),
            }),
            changed: Condvar::new(),
            addresses: Mutex::default(),
        });
        let mut acceptors = Vec::new();
        let mut ports = [0; 2];
        for (interface, port) in [Interface::Http, Interface::Pb].into_iter().zip(&mut ports) {
            let listener = listen();
            let address = listener.local_addr().expect("its address");
            *port = address.port();
            state.addresses.lock().expect("no panic").push(address);
            let (state, shared) = (Arc::clone(&state), Arc::clone(shared));
            acceptors.push(std::thread::spawn(move || {
                accept(&listener, interface, &state, &shared);
            }));
        }
        Node {
            http_port: ports[0],
            pb_port: ports[1],
            state,
            acceptors: Mutex::new(acceptors),
        }
    }

    pub fn set_mood(&self, mood: Mood) {
        self.state.lock().mood = mood;
    }

    /// Connections are accepted, and nothing is answered.
    pub fn hang(&self) {
        self.state.lock().hung = true;
    }

    pub fn go_on(&self) {
        self.state.lock().hung = false;
        self.state.changed.notify_all();
    }

    /// Connections end, and new ones are refused once this returns.
    pub fn kill(&self) {
        {
            let mut now = self.state.lock();
            now.dead = true;
            for stream in now.open.values() {
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
        self.state.changed.notify_all();
        let addresses = self.state.addresses.lock().expect("no panic").clone();
        for address in addresses {
            // Wakes the acceptor, which sees that it is to end.
            let _ = TcpStream::connect(address);
        }
        for acceptor in self.acceptors.lock().expect("no panic").drain(..) {
            let _ = acceptor.join();
        }
    }

    pub fn accepted(&self) -> usize {
        self.state.lock().accepted
    }

    pub fn requests(&self) -> usize {
        self.state.lock().requests
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Interface {
    Http,
    Pb,
}

/// Below the range that outgoing connections take their ports from.
fn listen() -> TcpListener {
    for _ in 0..100 {
        let port = crate::support::free_port();
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            return listener;
        }
    }
    panic!("no port is free");
}

impl NodeState {
    fn lock(&self) -> MutexGuard<'_, Now> {
        self.now.lock().expect("no thread panics")
    }

    /// Waits while the node hangs. Returns its mood, or None where it is dead.
    fn pass(&self) -> Option<Mood> {
        let mut now = self.lock();
        while now.hung && !now.dead {
            now = self.changed.wait(now).expect("no thread panics");
        }
        (!now.dead).then_some(now.mood)
    }

    /// Sleeps unless the node dies meanwhile.
    fn sleep(&self, time: Duration) {
        let now = self.lock();
        let _ = self
            .changed
            .wait_timeout_while(now, time, |now| !now.dead)
            .expect("no thread panics");
    }
}

fn accept(
    listener: &TcpListener,
    interface: Interface,
    state: &Arc<NodeState>,
    shared: &Arc<Shared>,
) {
    let mut threads = Vec::new();
    while let Ok((stream, _)) = listener.accept() {
        let Ok(handle) = stream.try_clone() else {
            continue;
        };
        let number = {
            let mut now = state.lock();
            if now.dead {
                break;
            }
            now.accepted += 1;
            let number = now.accepted;
            now.open.insert(number, handle);
            number
        };
        let (state, shared) = (Arc::clone(state), Arc::clone(shared));
        threads.push(std::thread::spawn(move || {
            let _ = serve(&stream, interface, &state, &shared);
            state.lock().open.remove(&number);
            let _ = stream.shutdown(Shutdown::Both);
        }));
    }
    for thread in threads {
        let _ = thread.join();
    }
}

/// What becomes of a connection after a request.
enum Answer {
    Send(Vec<u8>),
    /// Sent, then the connection ends.
    Last(Vec<u8>),
}

fn serve(
    mut stream: &TcpStream,
    interface: Interface,
    state: &NodeState,
    shared: &Shared,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut received = Vec::new();
    let mut chunk = vec![0; 64 * 1024];
    loop {
        loop {
            let length = match interface {
                Interface::Http => http::request_length(&received),
                Interface::Pb => pb::request_length(&received),
            };
            let Some(length) = length else { break };
            let Some(mood) = state.pass() else {
                return Ok(());
            };
            state.lock().requests += 1;
            let answer = {
                let (number, of) = (state.number, state.of);
                let mut store = shared.store.lock().expect("no thread panics");
                let request = &received[..length];
                match interface {
                    Interface::Http => http::answer(request, mood, &mut store, number, of),
                    Interface::Pb => pb::answer(request, mood, &mut store, number),
                }
            };
            received.drain(..length);
            match mood {
                Mood::Slow(time) | Mood::GivesUp(time) => state.sleep(time),
                _ => {}
            }
            if state.pass().is_none() {
                return Ok(());
            }
            match answer {
                Answer::Send(bytes) => stream.write_all(&bytes)?,
                Answer::Last(bytes) => return stream.write_all(&bytes),
            }
        }
        match stream.read(&mut chunk)? {
            0 => return Ok(()),
            count => received.extend_from_slice(&chunk[..count]),
        }
    }
}

/// Waits for `condition`; for tests of what another thread does.
pub fn wait_for(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !condition() {
        assert!(Instant::now() < deadline, "it does not come");
        std::thread::sleep(Duration::from_millis(1));
    }
}
