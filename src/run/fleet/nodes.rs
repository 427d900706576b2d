//! One instance of a server: whether it runs, and whether it is meant to. Shared with whoever carries out the faults of a
//! phase while the fleet looks on; which instances there are is the fleet's.

use crate::server::Running;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub struct Node {
    /// `redis`, or `redis/2` where there are several.
    label: String,
    state: Mutex<State>,
    /// A fault has ended a process of it.
    ended: AtomicBool,
}

enum State {
    /// Not started yet, or stopped.
    Idle,
    Up(Running),
    /// A fault has frozen it.
    Frozen(Running),
    /// A fault has killed it.
    Killed,
    /// A fault starts it again at this moment.
    Restarting,
    /// It could not be started again; why.
    Lost(String),
}

impl State {
    fn take(&mut self, instead: State) -> Option<Running> {
        match std::mem::replace(self, instead) {
            State::Up(running) | State::Frozen(running) => Some(running),
            _ => None,
        }
    }
}

impl Node {
    pub fn new(label: String) -> Node {
        Node {
            label,
            state: Mutex::new(State::Idle),
            ended: AtomicBool::new(false),
        }
    }

    /// A fault has ended a process of it: what it held in memory alone is gone.
    pub fn was_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    pub fn label(&self) -> &str {
        &self.label
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It was started, and is to run from now on.
    pub fn is_up(&self, running: Running) {
        *self.state() = State::Up(running);
    }

    /// It has a process, alive or not.
    pub fn is_started(&self) -> bool {
        matches!(*self.state(), State::Up(_) | State::Frozen(_))
    }

    /// What ran in it, to be stopped; it is idle from now on, whatever a fault has done to it.
    pub fn take(&self) -> Option<Running> {
        self.state().take(State::Idle)
    }

    pub fn with<T>(&self, look: impl FnOnce(&Running) -> T) -> Option<T> {
        match &*self.state() {
            State::Up(running) | State::Frozen(running) => Some(look(running)),
            _ => None,
        }
    }

    /// Why it does not run although it should. What a fault has killed should not.
    pub fn fault(&self) -> Option<String> {
        match &*self.state() {
            State::Up(running) | State::Frozen(running) => {
                running.alive().err().map(|fault| fault.to_string())
            }
            State::Lost(fault) => Some(fault.clone()),
            State::Idle | State::Killed | State::Restarting => None,
        }
    }

    /// What a fault has made of it, where that lasts.
    pub fn suffers(&self) -> Option<&'static str> {
        match &*self.state() {
            State::Frozen(_) => Some("was stopped by a fault"),
            State::Killed => Some("was killed by a fault"),
            _ => None,
        }
    }

    /// Kills it, if it runs.
    pub fn kill(&self) {
        let taken = {
            let mut state = self.state();
            match *state {
                State::Up(_) | State::Frozen(_) => state.take(State::Killed),
                _ => None,
            }
        };
        self.ended.store(true, Ordering::Relaxed);
        // A guard that is gone has ended it already.
        if let Some(running) = taken {
            let _ = running.kill();
        }
    }

    /// Freezes it, if it runs.
    pub fn freeze(&self) {
        let mut state = self.state();
        if let State::Up(_) = *state
            && let Some(running) = state.take(State::Idle)
        {
            let _ = running.pause();
            *state = State::Frozen(running);
        }
    }

    /// Lets it go on, if a fault has frozen it.
    pub fn thaw(&self) {
        let mut state = self.state();
        if let State::Frozen(_) = *state
            && let Some(running) = state.take(State::Idle)
        {
            let _ = running.resume();
            *state = State::Up(running);
        }
    }

    /// Stops it as it is asked to, and starts it again by `start`. While that lasts it need not run. What goes wrong is
    /// kept and is its fault from then on; None when it was being started again already.
    pub fn restart(&self, start: impl FnOnce() -> Result<Running, String>) -> Option<()> {
        let taken = {
            let mut state = self.state();
            if let State::Restarting = *state {
                return None;
            }
            state.take(State::Restarting)
        };
        self.ended.store(true, Ordering::Relaxed);
        if let Some(running) = taken {
            let _ = running.stop();
        }
        let state = match start() {
            Ok(running) => State::Up(running),
            Err(fault) => State::Lost(fault),
        };
        *self.state() = state;
        Some(())
    }

    /// Undoes what lasts of a run's faults: what was frozen goes on, what was killed may be started again.
    pub fn recover(&self) {
        self.thaw();
        let mut state = self.state();
        if let State::Killed = *state {
            *state = State::Idle;
        }
    }
}

/// What is wrong with the nodes of one server, as a sentence; None where all that should run do.
pub fn fault<'n>(server: &str, nodes: impl IntoIterator<Item = &'n Node>) -> Option<String> {
    let nodes: Vec<&Node> = nodes.into_iter().collect();
    let faults: Vec<String> = nodes.iter().filter_map(|node| node.fault()).collect();
    let all = nodes.len();
    match faults.len() {
        0 => None,
        1 if all == 1 => faults.into_iter().next(),
        gone => Some(
            Gone {
                server,
                gone,
                all,
                faults,
            }
            .to_string(),
        ),
    }
}

struct Gone<'a> {
    server: &'a str,
    gone: usize,
    all: usize,
    faults: Vec<String>,
}

impl fmt::Display for Gone<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Gone {
            server, gone, all, ..
        } = self;
        match gone == all {
            true => write!(f, "all {all} instances of {server} are gone: ")?,
            false => write!(f, "{gone} of the {all} instances of {server} gone: ")?,
        }
        f.write_str(&self.faults.join("\n"))
    }
}

/// Stops all at once, each as it asks to be; one that does not stop as asked was killed, and one whose guard is gone has
/// ended already.
pub fn stop_all(running: Vec<Running>) {
    std::thread::scope(|scope| {
        for one in running {
            scope.spawn(move || {
                let _ = one.stop();
            });
        }
    });
}
