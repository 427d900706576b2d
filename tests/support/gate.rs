//! A gate before a real server: passes bytes on, holds answers back, closes, and counts who came.
#![allow(dead_code)]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

pub struct Gate {
    state: Arc<State>,
    pub port: u16,
}

struct State {
    server: SocketAddr,
    /// Answers are held back at random for up to so many milliseconds.
    delay: AtomicU64,
    /// Nothing passes.
    shut: AtomicBool,
    /// Connections are closed at once.
    refuses: AtomicBool,
    ended: AtomicBool,
    accepted: AtomicUsize,
    open: Mutex<Vec<TcpStream>>,
}

impl Gate {
    pub fn before(server: SocketAddr) -> Gate {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let state = Arc::new(State {
            server,
            delay: AtomicU64::new(0),
            shut: AtomicBool::new(false),
            refuses: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            accepted: AtomicUsize::new(0),
            open: Mutex::default(),
        });
        let of_gate = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if of_gate.ended.load(Ordering::SeqCst) {
                    return;
                }
                of_gate.accepted.fetch_add(1, Ordering::SeqCst);
                if !of_gate.refuses.load(Ordering::SeqCst) {
                    of_gate.pass(client);
                }
            }
        });
        Gate { state, port }
    }

    /// Holds each piece of an answer back at random, for up to so long.
    pub fn delay(&self, longest: Duration) {
        let longest = longest.as_millis() as u64;
        self.state.delay.store(longest, Ordering::SeqCst);
    }

    /// Lets nothing pass, or everything again, as a server that hangs and goes on.
    pub fn shut(&self, shut: bool) {
        self.state.shut.store(shut, Ordering::SeqCst);
    }

    /// Closes all connections, and each new one, as a server that died.
    pub fn kill(&self) {
        self.state.refuses.store(true, Ordering::SeqCst);
        self.close();
    }

    pub fn revive(&self) {
        self.state.refuses.store(false, Ordering::SeqCst);
    }

    /// Connections that came.
    pub fn accepted(&self) -> usize {
        self.state.accepted.load(Ordering::SeqCst)
    }

    fn close(&self) {
        for stream in self.state.open.lock().expect("no panic").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::SeqCst);
        self.close();
        // Wakes the one who waits for connections.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl State {
    fn pass(self: &Arc<State>, client: TcpStream) {
        let Ok(server) = TcpStream::connect(self.server) else {
            return;
        };
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let copy = |stream: &TcpStream| stream.try_clone().expect("a second handle");
        let mut open = self.open.lock().expect("no panic");
        open.extend([copy(&client), copy(&server)]);
        let (up, down) = ((copy(&client), copy(&server)), (server, client));
        for (from, to, answers) in [(up.0, up.1, false), (down.0, down.1, true)] {
            let state = Arc::clone(self);
            std::thread::spawn(move || state.copy(from, to, answers));
        }
    }

    fn copy(&self, mut from: TcpStream, mut to: TcpStream, answers: bool) {
        let mut piece = vec![0; 1 << 16];
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        while let Ok(length @ 1..) = from.read(&mut piece) {
            let longest = self.delay.load(Ordering::SeqCst);
            if answers && longest > 0 {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                sleep(Duration::from_millis((random >> 33) % (longest + 1)));
            }
            while self.shut.load(Ordering::SeqCst) && !self.ended.load(Ordering::SeqCst) {
                sleep(Duration::from_millis(1));
            }
            if to.write_all(&piece[..length]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    }
}
