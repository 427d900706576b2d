//! The keeper: one small process per server, forked by the guard, between it and the server.
//!
//! It starts the server, reports how that went and how the server ended, and stays until no descendant is left: as child
//! subreaper it is the parent of all that the server leaves behind, so what belongs to which server is never a guess.
//! When the guard is gone (end of the socket) it ends its tree by itself. It takes no orders; signals come from the guard.

use super::messages::{Account, Report, Spawn, send};
use super::private;
use super::tree::{kill_round, living_descendants, signal_all};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a tree may take to end on TERM when the guard or dbbench is gone, before KILL.
pub const GRACE: Duration = Duration::from_millis(1500);

/// Runs in the forked child until the tree is empty. `guard` is the stream to the guard; `root` is the private root, removed
/// when the guard is gone: dbbench may be gone as well, and then nobody else would.
pub fn run(spawn: &Spawn, guard: &UnixStream, root: &Path) -> io::Result<()> {
    prctl::set_child_subreaper(true)?;
    let _ = prctl::set_name(c"dbbench-keeper");
    let exits = SignalFd::with_flags(
        &child_signal(),
        SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK,
    )?;
    child_signal().thread_block()?;
    let main = match start(spawn) {
        Ok(pid) => pid,
        Err(reason) => return send(guard, &Report::Refused { reason }),
    };
    // When the guard is gone nobody reads this; the poll below sees that.
    let _ = send(guard, &Report::Spawned { pid: main });
    if attend(main, guard, &exits)? == End::Deserted {
        private::remove(root);
    }
    Ok(())
}

#[derive(PartialEq)]
enum End {
    /// The tree ended while the guard lived.
    Empty,
    Deserted,
}

fn child_signal() -> SigSet {
    let mut set = SigSet::empty();
    set.add(Signal::SIGCHLD);
    set
}

/// Waits for whatever happens first, an exit or the end of the guard, until no child is left.
fn attend(main: i32, guard: &UnixStream, exits: &SignalFd) -> io::Result<End> {
    let mut deserted: Option<Instant> = None;
    loop {
        while let Ok(Some(_)) = exits.read_signal() {}
        if !reap(main, guard)? {
            return Ok(match deserted {
                None => End::Empty,
                Some(_) => End::Deserted,
            });
        }
        match deserted {
            None => {
                let mut sources = [
                    PollFd::new(guard.as_fd(), PollFlags::POLLIN),
                    PollFd::new(exits.as_fd(), PollFlags::POLLIN),
                ];
                match poll(&mut sources, PollTimeout::NONE) {
                    Ok(_) | Err(Errno::EINTR) => {}
                    Err(error) => return Err(error.into()),
                }
                // The guard never writes, so anything on its stream is its end.
                if sources[0].any() == Some(true) {
                    deserted = Some(Instant::now());
                    ask_to_end(me());
                }
            }
            Some(since) => {
                let mut sources = [PollFd::new(exits.as_fd(), PollFlags::POLLIN)];
                let _ = poll(&mut sources, PollTimeout::from(20u8));
                if since.elapsed() > GRACE {
                    kill_round(|| living_descendants(me()));
                }
            }
        }
    }
}

fn me() -> i32 {
    std::process::id() as i32
}

/// TERM to all below `root`, and CONT, since a stopped process does not see TERM.
fn ask_to_end(root: i32) {
    let tree = living_descendants(root);
    signal_all(&tree, Signal::SIGTERM);
    signal_all(&tree, Signal::SIGCONT);
}

/// Waits for all that have ended, the server's own orphans too; false when no child is left.
fn reap(main: i32, guard: &UnixStream) -> io::Result<bool> {
    loop {
        let mut status = 0;
        // SAFETY: `status` outlives the call.
        let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
        match pid {
            0 => return Ok(true),
            -1 => match Errno::last() {
                Errno::ECHILD => return Ok(false),
                Errno::EINTR => {}
                error => return Err(error.into()),
            },
            pid if pid == main => {
                let _ = send(guard, &Report::Exited { status });
            }
            _ => {}
        }
    }
}

/// Starts the command in a session of its own; its pid, or a sentence why not.
fn start(spawn: &Spawn) -> Result<i32, String> {
    let program = spawn.argv.first().ok_or("the command is empty")?;
    if !spawn.directory.is_dir() {
        return Err(format!(
            "its working directory {} does not exist",
            spawn.directory.display()
        ));
    }
    pin(&spawn.cpus)?;
    let stdout = open_log(&spawn.stdout, spawn.account.as_ref())?;
    let stderr = match &spawn.stderr {
        Some(path) => open_log(path, spawn.account.as_ref())?,
        None => stdout
            .try_clone()
            .map_err(|error| format!("cannot share its log: {error}"))?,
    };
    let account = spawn.account.clone();
    let mut command = Command::new(program);
    command
        .args(&spawn.argv[1..])
        .envs(spawn.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(&spawn.directory)
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(stderr);
    // SAFETY: `become_server` makes system calls only, and this process has one thread.
    unsafe { command.pre_exec(move || become_server(account.as_ref())) };
    let child = command.spawn().map_err(|error| {
        let whom = spawn
            .account
            .as_ref()
            .map_or(String::new(), |account| format!(" as uid {}", account.uid));
        format!("cannot execute `{program}`{whom}: {error}")
    })?;
    Ok(child.id() as i32)
}

/// Between fork and exec: own session, plain signals, the account, and a belt for the day when nobody is left to end it.
fn become_server(account: Option<&Account>) -> io::Result<()> {
    nix::unistd::setsid()?;
    // Ignored and blocked signals are inherited through exec: the guard ignores TERM, a server must not.
    for signal in 1..=64 {
        // SAFETY: restores a default; KILL, STOP and the C library's own are refused, which does not matter.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    SigSet::empty().thread_set_mask()?;
    if let Some(account) = account {
        // SAFETY: pointer and length are of one vector.
        let refused = unsafe { libc::setgroups(account.groups.len(), account.groups.as_ptr()) };
        Errno::result(refused)?;
        nix::unistd::setgid(account.gid.into())?;
        nix::unistd::setuid(account.uid.into())?;
    }
    // After setuid, which clears it. The keeper has one thread, so the signal comes when the keeper dies and not before.
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    Ok(())
}

/// Pins this keeper, and with it all that it starts.
fn pin(cpus: &[usize]) -> Result<(), String> {
    if cpus.is_empty() {
        return Ok(());
    }
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu).map_err(|_| format!("there is no CPU {cpu}"))?;
    }
    sched_setaffinity(Pid::from_raw(0), &set)
        .map_err(|error| format!("cannot pin it to the CPUs {cpus:?}: {error}"))
}

/// Opened here, so that a server of any user can write it; given to that user, so that it can also open it anew as
/// /dev/stderr, as Apache does.
fn open_log(path: &Path, account: Option<&Account>) -> Result<File, String> {
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .map_err(|error| format!("cannot write its log {}: {error}", path.display()))?;
    if let Some(account) = account {
        let _ = std::os::unix::fs::fchown(&file, Some(account.uid), Some(account.gid));
    }
    Ok(file)
}

/// Whether this process has any child left, dead or alive; leaves the dead ones to be waited for.
pub fn has_children() -> bool {
    let peek = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    waitid(Id::All, peek) != Err(Errno::ECHILD)
}
