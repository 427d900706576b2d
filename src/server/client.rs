//! dbbench's side of the guard: starts it, asks it, hears it; and ends what the guard leaves when it is killed itself.
//!
//! One thread reads the guard's events into a shared state; every call waits on that state with a limit. dbbench is a child
//! subreaper as well: what the guard leaves at its death becomes a child of dbbench, known by its foreign session.

use super::fault::{CommandFault, GuardFault};
use super::files;
use super::guard::ARGUMENT;
use super::messages::{Event, Request, Scope, Spawn, receive, send};
use super::private::{self, PrivateRoot};
use super::spec::account;
use super::tree::{Snapshot, kill_round};
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getsid};
use std::collections::{HashMap, HashSet};
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Limit of what the guard does at once: starting, answering.
const ANSWER: Duration = Duration::from_secs(10);
/// Limit of its end; its own is shorter.
const FAREWELL: Duration = Duration::from_secs(6);
/// How often a waiting call looks whether it was interrupted.
const LOOK: Duration = Duration::from_millis(50);

/// Guards of this process that live, so that what one leaves is not mistaken for another. Held while one is started.
static GUARDS: LazyLock<Mutex<HashSet<i32>>> = LazyLock::new(Mutex::default);

/// The supervisor of all servers of this process. Dropping it ends them all and removes the private root.
pub struct Guard {
    link: Arc<Link>,
    root: PrivateRoot,
    reader: Option<JoinHandle<()>>,
    pid: i32,
}

/// A command to run to its end through the guard.
#[derive(Clone, Debug)]
pub struct CommandSpec<'a> {
    pub argv: &'a [String],
    pub environment: &'a [(String, String)],
    /// Its working directory.
    pub directory: &'a Path,
    /// Counts where dbbench is root.
    pub user: Option<&'a str>,
    pub limit: Duration,
}

impl Guard {
    /// Starts a guard, which makes the private root. This program must call `guard::main` when its first argument is
    /// `guard::ARGUMENT`.
    pub fn start(root: PrivateRoot) -> Result<Guard, GuardFault> {
        Guard::start_with(Path::new("/proc/self/exe"), root)
    }

    /// The same with the guard of another program; for tests, whose own program is a test harness.
    pub fn start_with(program: &Path, root: PrivateRoot) -> Result<Guard, GuardFault> {
        let failed = |error: io::Error| GuardFault::Start(error.to_string());
        prctl::set_child_subreaper(true).map_err(|error| failed(error.into()))?;
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let reading = ours.try_clone().map_err(failed)?;
        let child = launch(program, root.path(), theirs).map_err(failed)?;
        let pid = child.id() as i32;
        let link = Arc::new(Link {
            writer: Mutex::new(ours),
            state: Mutex::default(),
            changed: Condvar::new(),
            next_id: AtomicU64::new(1),
        });
        let reader = std::thread::Builder::new()
            .name("guard-events".to_owned())
            .spawn({
                let link = Arc::clone(&link);
                move || link.read_events(&reading, child)
            })
            .map_err(failed)?;
        let guard = Guard {
            link,
            root,
            reader: Some(reader),
            pid,
        };
        match guard.link.wait(ANSWER, |state| state.up.clone())? {
            Some(Ok(())) => Ok(guard),
            Some(Err(reason)) => Err(GuardFault::Start(reason)),
            None => Err(GuardFault::Silent),
        }
    }

    pub fn private_root(&self) -> &PrivateRoot {
        &self.root
    }

    /// The guard's own process.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Whether the guard lives; once it does not, no server does.
    pub fn alive(&self) -> Result<(), GuardFault> {
        match &self.link.state().lost {
            Some(reason) => Err(GuardFault::Lost(reason.clone())),
            None => Ok(()),
        }
    }

    /// Runs a command to its end, without a shell; its standard output. What it leaves running is killed. `interrupted` is
    /// looked at every 50 ms.
    pub fn run_command(
        &self,
        spec: &CommandSpec,
        interrupted: &AtomicBool,
    ) -> Result<String, CommandFault> {
        let number = self.link.next_id();
        let stdout = self.root.path().join(format!(".{number}.out"));
        let stderr = self.root.path().join(format!(".{number}.err"));
        let output = self
            .run_logged(spec, &stdout, Some(&stderr), interrupted)
            .and_then(|()| {
                std::fs::read(&stdout).map_err(|source| CommandFault::Output {
                    command: shown(spec.argv),
                    source,
                })
            });
        for file in [&stdout, &stderr] {
            let _ = std::fs::remove_file(file);
        }
        output.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The same with its output appended to files (`stderr` None = both to one).
    pub(super) fn run_logged(
        &self,
        spec: &CommandSpec,
        stdout: &Path,
        stderr: Option<&Path>,
        interrupted: &AtomicBool,
    ) -> Result<(), CommandFault> {
        let command = shown(spec.argv);
        let log = stderr.unwrap_or(stdout);
        let log_start = files::length(log);
        let refused = |reason| CommandFault::Spawn {
            command: command.clone(),
            reason,
        };
        let process = self.spawn(Spawn {
            argv: spec.argv.to_vec(),
            environment: spec.environment.to_vec(),
            directory: spec.directory.to_owned(),
            account: account(spec.user).map_err(refused)?,
            cpus: Vec::new(),
            stdout: stdout.to_owned(),
            stderr: stderr.map(Path::to_owned),
        })?;
        let process = process.map_err(refused)?;
        let status = process.wait_exit(spec.limit, interrupted)?;
        process.end(ANSWER)?;
        let last_lines = || match files::last_lines(log, log_start) {
            lines if lines.is_empty() && stderr.is_some() => files::last_lines(stdout, 0),
            lines => lines,
        };
        match status {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(CommandFault::Failed {
                command,
                status,
                last_lines: last_lines(),
            }),
            None if interrupted.load(Ordering::Relaxed) => Err(CommandFault::Interrupted),
            None => Err(CommandFault::TooLong {
                command,
                within: spec.limit,
                last_lines: last_lines(),
            }),
        }
    }

    /// Starts a process under a keeper of its own; the inner error is a sentence why it did not start.
    pub(super) fn spawn(&self, spawn: Spawn) -> Result<Result<Process, String>, GuardFault> {
        let id = self.link.next_id();
        self.link.state().processes.insert(id, Known::default());
        let mut process = Process {
            link: Arc::clone(&self.link),
            id,
            pid: 0,
            keeper: 0,
        };
        self.link.ask(&Request::Spawn { id, spawn })?;
        let begun = self.link.wait(ANSWER, |state| state.begun(id))?;
        Ok(match begun {
            Some(Ok((keeper, pid))) => {
                (process.keeper, process.pid) = (keeper, pid);
                Ok(process)
            }
            Some(Err(reason)) => Err(reason),
            None => return Err(GuardFault::Silent),
        })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // The end of the stream is the order to end everything.
        self.link.state().leaving = true;
        let _ = self.link.writer().shutdown(Shutdown::Both);
        let gone = self
            .link
            .wait_for(FAREWELL, |state| state.gone.then_some(()));
        if gone.is_none() {
            let _ = kill(Pid::from_raw(self.pid), Signal::SIGKILL);
        }
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
        // Unless it never was ours: the name was taken.
        if matches!(self.link.state().up, Some(Ok(()))) {
            private::remove(self.root.path());
        }
    }
}

/// Runs the guard in a session of its own, its standard input the socket. Not through a shell, no descriptor but the
/// standard ones goes over.
fn launch(program: &Path, root: &Path, socket: UnixStream) -> io::Result<Child> {
    let mut command = Command::new(program);
    command
        .arg(ARGUMENT)
        .arg(root)
        .stdin(OwnedFd::from(socket))
        .stdout(Stdio::null());
    // SAFETY: setsid is a system call and nothing else.
    unsafe {
        command.pre_exec(|| {
            nix::unistd::setsid()?;
            Ok(())
        });
    }
    let mut guards = GUARDS.lock().unwrap_or_else(PoisonError::into_inner);
    let child = command.spawn()?;
    guards.insert(child.id() as i32);
    Ok(child)
}

fn shown(argv: &[String]) -> String {
    argv.join(" ")
}

/// One command that the guard runs. Dropping it has its tree killed.
pub(super) struct Process {
    link: Arc<Link>,
    id: u64,
    pub pid: i32,
    pub keeper: i32,
}

impl Process {
    /// How its main process ended, if it has.
    pub fn exited(&self) -> Result<Option<ExitStatus>, GuardFault> {
        self.link.wait(Duration::ZERO, |state| state.exit(self.id))
    }

    /// Waits for the end of its main process; None when the limit was over first, or on interruption.
    pub fn wait_exit(
        &self,
        limit: Duration,
        interrupted: &AtomicBool,
    ) -> Result<Option<ExitStatus>, GuardFault> {
        let since = Instant::now();
        loop {
            let left = limit.saturating_sub(since.elapsed());
            let status = self
                .link
                .wait(left.min(LOOK), |state| state.exit(self.id))?;
            if status.is_some() || left.is_zero() || interrupted.load(Ordering::Relaxed) {
                return Ok(status);
            }
        }
    }

    /// Waits until nothing of its tree is left; false when the limit was over first.
    pub fn wait_end(&self, limit: Duration) -> Result<bool, GuardFault> {
        let ended = self.link.wait(limit, |state| state.ended(self.id))?;
        Ok(ended.is_some())
    }

    pub fn signal(&self, signal: Signal, scope: Scope) -> Result<(), GuardFault> {
        self.link.ask(&Request::Signal {
            id: self.id,
            signal: signal as i32,
            scope,
        })
    }

    /// Kills what is left of its tree; false when something survived the limit.
    pub fn end(&self, limit: Duration) -> Result<bool, GuardFault> {
        self.link.ask(&Request::End { id: self.id })?;
        self.wait_end(limit)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let known = self.link.state().ended(self.id).is_some();
        if !known && self.link.ask(&Request::End { id: self.id }).is_ok() {
            let _ = self.wait_end(Duration::from_secs(2));
        }
        self.link.state().processes.remove(&self.id);
    }
}

/// The connection to the guard and what it has said so far.
struct Link {
    writer: Mutex<UnixStream>,
    state: Mutex<State>,
    changed: Condvar,
    next_id: AtomicU64,
}

#[derive(Default)]
struct State {
    up: Option<Result<(), String>>,
    /// Why the guard ended before it was told to.
    lost: Option<String>,
    /// It is told to end.
    leaving: bool,
    /// It has ended, and what it left as well.
    gone: bool,
    processes: HashMap<u64, Known>,
}

/// What is known of one command.
#[derive(Default)]
struct Known {
    /// (keeper, pid), or why not.
    begun: Option<Result<(i32, i32), String>>,
    exit: Option<ExitStatus>,
    ended: bool,
}

impl State {
    fn exit(&self, id: u64) -> Option<ExitStatus> {
        self.processes.get(&id)?.exit
    }

    fn begun(&self, id: u64) -> Option<Result<(i32, i32), String>> {
        let known = self.processes.get(&id)?;
        let vanished = || known.ended.then(|| Err("its keeper was killed".to_owned()));
        known.begun.clone().or_else(vanished)
    }

    fn ended(&self, id: u64) -> Option<()> {
        self.processes.get(&id)?.ended.then_some(())
    }

    fn hear(&mut self, event: Event) {
        match event {
            Event::Up => self.up = Some(Ok(())),
            Event::CannotGuard { reason } => self.up = Some(Err(reason)),
            Event::Spawned { id, keeper, pid } => {
                self.change(id, |known| known.begun = Some(Ok((keeper, pid))));
            }
            Event::Refused { id, reason } => {
                self.change(id, |known| known.begun = Some(Err(reason)));
            }
            Event::Exited { id, status } => {
                self.change(id, |known| known.exit = Some(ExitStatus::from_raw(status)));
            }
            Event::Ended { id } => self.change(id, |known| known.ended = true),
        }
    }

    /// One that was dropped meanwhile is of no interest.
    fn change(&mut self, id: u64, change: impl FnOnce(&mut Known)) {
        if let Some(known) = self.processes.get_mut(&id) {
            change(known);
        }
    }
}

impl Link {
    fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writer(&self) -> MutexGuard<'_, UnixStream> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, request: &Request) -> Result<(), GuardFault> {
        if send(&*self.writer(), request).is_ok() {
            return Ok(());
        }
        // The reader learns the reason within moments.
        self.wait(ANSWER, |_| None::<()>)?;
        Err(GuardFault::Silent)
    }

    /// Waits until `what` is there; None when the limit was over first, an error when the guard is lost.
    fn wait<T>(
        &self,
        limit: Duration,
        what: impl Fn(&State) -> Option<T>,
    ) -> Result<Option<T>, GuardFault> {
        let lost = |state: &State| match (&state.lost, state.gone) {
            (Some(reason), _) => Some(Err(GuardFault::Lost(reason.clone()))),
            (None, true) => Some(Err(GuardFault::Lost("it was dismissed".to_owned()))),
            (None, false) => None,
        };
        let found = self.wait_for(limit, |state| what(state).map(Ok).or_else(|| lost(state)));
        found.transpose()
    }

    fn wait_for<T>(&self, limit: Duration, what: impl Fn(&State) -> Option<T>) -> Option<T> {
        let deadline = Instant::now() + limit;
        let mut state = self.state();
        loop {
            if let Some(found) = what(&state) {
                return Some(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The reader thread: until the guard is gone, then ends what it left.
    fn read_events(&self, stream: &UnixStream, mut guard: Child) {
        while let Ok(Some(event)) = receive::<Event>(stream) {
            self.state().hear(event);
            self.changed.notify_all();
        }
        let leaving = self.state().leaving;
        if !leaving {
            // A guard whose stream is broken is of no use; one that is dead does not mind.
            let _ = guard.kill();
        }
        let ending = guard.wait();
        end_orphans(guard.id() as i32);
        let mut state = self.state();
        if !leaving {
            let how = ending.map_or("no exit status".to_owned(), |status| status.to_string());
            state.lost = Some(how);
        }
        state.gone = true;
        drop(state);
        self.changed.notify_all();
    }
}

/// Kills all that a dead guard left to this process, and waits for it.
fn end_orphans(guard: i32) {
    let since = Instant::now();
    loop {
        // While the lock is held no other guard is between its fork and its place in the list.
        let mut guards = GUARDS.lock().unwrap_or_else(PoisonError::into_inner);
        guards.remove(&guard);
        let found = kill_round(|| orphans(&guards));
        reap_orphans(&guards);
        drop(guards);
        if found == 0 || since.elapsed() > Duration::from_secs(4) {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Children of this process that are of another session and no guard: nobody but a dead guard leaves such.
fn fallen<'a>(
    snapshot: &'a Snapshot,
    guards: &'a HashSet<i32>,
) -> impl Iterator<Item = &'a super::tree::Process> {
    let session = getsid(None).map_or(0, Pid::as_raw);
    let children = snapshot.children(std::process::id() as i32);
    children.filter(move |child| child.session != session && !guards.contains(&child.pid))
}

fn orphans(guards: &HashSet<i32>) -> Vec<i32> {
    let snapshot = Snapshot::take();
    let mut found = Vec::new();
    for child in fallen(&snapshot, guards) {
        found.push(child);
        found.extend(snapshot.descendants(child.pid));
    }
    found.retain(|process| !process.is_zombie());
    found.into_iter().map(|process| process.pid).collect()
}

fn reap_orphans(guards: &HashSet<i32>) {
    let snapshot = Snapshot::take();
    for child in fallen(&snapshot, guards) {
        let mut status = 0;
        // SAFETY: `status` outlives the call; only a child that nobody else waits for is taken.
        unsafe { libc::waitpid(child.pid, &mut status, libc::WNOHANG) };
    }
}

/// A path as the guard needs it: it has another working directory.
pub(super) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
