//! The guard: dbbench re-executed as a small single-threaded supervisor, the ancestor of all that dbbench starts.
//!
//! It does what dbbench asks over a socket (`messages`) and forks a keeper per command. When the socket ends, because
//! dbbench has finished or was killed, it ends everything below it and removes the private root. It is in a session of its
//! own and ignores the signals of terminals and service managers. dbbench's side is `client`.

use super::keeper;
use super::messages::{Event, Report, Request, Scope, Spawn, receive, send};
use super::private;
use super::tree::{Snapshot, kill_round, living_descendants, signal_all};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigHandler, Signal, signal};
use nix::unistd::{ForkResult, fork};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// First argument of a process that is to be a guard; the second is the private root.
pub const ARGUMENT: &str = "__guard";

/// When keepers have not ended their trees by then, the guard does; within 4 s of the end of dbbench.
const LAST_RESORT: Duration = Duration::from_millis(2800);
const GIVE_UP: Duration = Duration::from_millis(3600);

/// Pause between two looks while something is being ended, in milliseconds.
const TICK_MS: u8 = 10;

/// The whole life of a guard. Standard input is the socket to dbbench, which has called setsid on its behalf.
pub fn main() -> ExitCode {
    let Some(root) = std::env::args_os().nth(2).map(PathBuf::from) else {
        return ExitCode::from(2);
    };
    match Guard::set_up(root) {
        Ok(mut guard) => {
            guard.serve();
            guard.finish();
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::FAILURE,
    }
}

struct Guard {
    root: PathBuf,
    dbbench: UnixStream,
    kept: BTreeMap<u64, Kept>,
    /// A keeper is gone: if it was killed, what it kept has fallen to the guard and must be ended.
    strays: bool,
}

/// One command with its keeper.
struct Kept {
    keeper: i32,
    /// The keeper's end of it closes when its tree is empty; ours tells the keeper that we live.
    stream: UnixStream,
    /// The server itself, once started; None again once it has ended, since its pid may be reused.
    main: Option<i32>,
    /// Its tree is to be killed until nothing is left.
    ending: bool,
    exited: bool,
}

impl Guard {
    fn set_up(root: PathBuf) -> io::Result<Guard> {
        for ignored in [
            Signal::SIGHUP,
            Signal::SIGINT,
            Signal::SIGQUIT,
            Signal::SIGTERM,
            Signal::SIGPIPE,
            Signal::SIGUSR1,
            Signal::SIGUSR2,
        ] {
            // SAFETY: ignoring a signal runs no code.
            unsafe { signal(ignored, SigHandler::SigIgn) }?;
        }
        prctl::set_child_subreaper(true)?;
        let _ = prctl::set_name(c"dbbench-guard");
        // Cloned descriptors close on exec, so that no server holds the socket open.
        let dbbench = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
        let null = std::fs::File::open("/dev/null")?;
        // SAFETY: both descriptors are open; 0 stays owned by nobody, as standard input always is.
        Errno::result(unsafe { libc::dup2(null.as_raw_fd(), 0) })?;
        std::env::set_current_dir("/")?;
        let made = private::make(&root);
        let event = match &made {
            Ok(()) => Event::Up,
            Err(error) => Event::CannotGuard {
                reason: format!("cannot make {}: {error}", root.display()),
            },
        };
        let _ = send(&dbbench, &event);
        made.map(|()| Guard {
            root,
            dbbench,
            kept: BTreeMap::new(),
            strays: false,
        })
    }

    /// Until dbbench is gone.
    fn serve(&mut self) {
        loop {
            let (asked, heard) = self.wait();
            for id in heard {
                self.hear(id);
            }
            self.reap();
            self.end_what_is_to_end();
            if asked {
                match receive(&self.dbbench) {
                    Ok(Some(request)) => self.obey(request),
                    // A broken stream is as good as none.
                    Ok(None) | Err(_) => return,
                }
            }
        }
    }

    /// Sleeps until dbbench or a keeper says something, or it is time to look again.
    fn wait(&self) -> (bool, Vec<u64>) {
        let busy = self.strays || self.kept.values().any(|kept| kept.ending);
        let limit = match busy {
            true => PollTimeout::from(TICK_MS),
            false => PollTimeout::NONE,
        };
        let streams = std::iter::once(&self.dbbench).chain(self.kept.values().map(|k| &k.stream));
        let mut sources: Vec<PollFd> = streams
            .map(|stream| PollFd::new(stream.as_fd(), PollFlags::POLLIN))
            .collect();
        if poll(&mut sources, limit).is_err() {
            return (false, Vec::new());
        }
        let ready = |source: &PollFd| source.any() == Some(true);
        let heard = self.kept.keys().zip(&sources[1..]);
        let heard = heard.filter(|(_, source)| ready(source)).map(|(id, _)| *id);
        (ready(&sources[0]), heard.collect())
    }

    /// Passes on what a keeper says.
    fn hear(&mut self, id: u64) {
        let Some(kept) = self.kept.get_mut(&id) else {
            return;
        };
        let event = match receive(&kept.stream) {
            Ok(Some(Report::Spawned { pid })) => {
                kept.main = Some(pid);
                Event::Spawned {
                    id,
                    keeper: kept.keeper,
                    pid,
                }
            }
            Ok(Some(Report::Refused { reason })) => {
                kept.exited = true;
                Event::Refused { id, reason }
            }
            Ok(Some(Report::Exited { status })) => {
                kept.main = None;
                kept.exited = true;
                Event::Exited { id, status }
            }
            Ok(None) | Err(_) => return self.lose(id),
        };
        self.tell(&event);
    }

    /// A keeper is gone: its tree is empty, or it was killed and left one to us.
    fn lose(&mut self, id: u64) {
        let Some(kept) = self.kept.remove(&id) else {
            return;
        };
        self.strays = true;
        self.end_what_is_to_end();
        if !kept.exited {
            self.tell(&Event::Exited {
                id,
                status: Signal::SIGKILL as i32,
            });
        }
        self.tell(&Event::Ended { id });
    }

    fn tell(&self, event: &Event) {
        // When dbbench is gone the next read says so.
        let _ = send(&self.dbbench, event);
    }

    fn obey(&mut self, request: Request) {
        match request {
            Request::Spawn { id, spawn } => self.spawn(id, &spawn),
            Request::Signal { id, signal, scope } => self.signal(id, signal, scope),
            Request::End { id } => match self.kept.get_mut(&id) {
                Some(kept) => kept.ending = true,
                None => self.tell(&Event::Ended { id }),
            },
        }
    }

    fn spawn(&mut self, id: u64, spawn: &Spawn) {
        match self.fork_keeper(spawn) {
            Ok(kept) => {
                self.kept.insert(id, kept);
            }
            Err(error) => {
                let reason = format!("cannot start a keeper: {error}");
                self.tell(&Event::Refused { id, reason });
                self.tell(&Event::Ended { id });
            }
        }
    }

    fn fork_keeper(&mut self, spawn: &Spawn) -> io::Result<Kept> {
        let (ours, theirs) = UnixStream::pair()?;
        // SAFETY: this process has one thread, so the child may do anything.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => Ok(Kept {
                keeper: child.as_raw(),
                stream: ours,
                main: None,
                ending: false,
                exited: false,
            }),
            ForkResult::Child => {
                // The child must hold no end of any other stream, or nobody would see that we are gone.
                drop(ours);
                self.kept.clear();
                // SAFETY: the descriptor is this process's own copy; `self` is never used again here.
                unsafe { libc::close(self.dbbench.as_raw_fd()) };
                // A panic must not unwind into the guard's loop, which would make this a second guard.
                let run = AssertUnwindSafe(|| keeper::run(spawn, &theirs, &self.root));
                let code = match std::panic::catch_unwind(run) {
                    Ok(Ok(())) => 0,
                    _ => 1,
                };
                // SAFETY: ends a forked child without running what its parent would run at its own end.
                unsafe { libc::_exit(code) }
            }
        }
    }

    fn signal(&self, id: u64, number: i32, scope: Scope) {
        let (Some(kept), Ok(signal)) = (self.kept.get(&id), Signal::try_from(number)) else {
            return;
        };
        match scope {
            Scope::Main => signal_all(&Vec::from_iter(kept.main), signal),
            Scope::Tree => signal_tree(kept.keeper, signal),
        }
    }

    /// Keepers that have ended, and strays.
    fn reap(&self) {
        let mut status = 0;
        // SAFETY: `status` outlives the call.
        while unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) } > 0 {}
    }

    fn end_what_is_to_end(&mut self) {
        for kept in self.kept.values().filter(|kept| kept.ending) {
            kill_round(|| living_descendants(kept.keeper));
        }
        if self.strays {
            let keepers: Vec<i32> = self.kept.values().map(|kept| kept.keeper).collect();
            self.strays = kill_round(|| strays(&keepers)) > 0;
        }
    }

    /// dbbench is gone: keepers learn it by the end of their streams and end their trees; then the private root goes.
    fn finish(&mut self) {
        let since = Instant::now();
        self.kept.clear();
        if self.strays {
            kill_round(|| living_descendants(me()));
        }
        while keeper::has_children() && since.elapsed() < GIVE_UP {
            self.reap();
            if since.elapsed() > LAST_RESORT {
                kill_round(|| living_descendants(me()));
            }
            std::thread::sleep(Duration::from_millis(u64::from(TICK_MS)));
        }
        private::remove(&self.root);
    }
}

/// Once to each process; looked again for those forked meanwhile, so that a tree can be frozen as a whole.
fn signal_tree(keeper: i32, signal: Signal) {
    let mut told = Vec::new();
    for _ in 0..5 {
        let tree = living_descendants(keeper);
        let new: Vec<i32> = tree.into_iter().filter(|pid| !told.contains(pid)).collect();
        if new.is_empty() {
            return;
        }
        signal_all(&new, signal);
        told.extend(new);
    }
}

fn me() -> i32 {
    std::process::id() as i32
}

/// What lives below the guard and below no keeper.
fn strays(keepers: &[i32]) -> Vec<i32> {
    let snapshot = Snapshot::take();
    let fallen = snapshot
        .children(me())
        .filter(|child| !keepers.contains(&child.pid));
    let all = fallen.flat_map(|child| {
        let mut tree = snapshot.descendants(child.pid);
        tree.push(child);
        tree
    });
    all.filter(|process| !process.is_zombie())
        .map(|process| process.pid)
        .collect()
}
