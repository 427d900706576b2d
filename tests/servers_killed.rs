//! What is left when dbbench, its guard or a keeper is killed: nothing.
//!
//! A test starts this program again as a *holder*: a dbbench as far as servers go, which starts memcached as nobody, a forking
//! Apache and a script that escapes into another session, says so, and waits. The test then kills what it wants to see
//! killed, and looks for what is left by the ports and private paths that only this holder had.

#[path = "support/guarded.rs"]
mod support;

use dbbench::server::{PortLease, ServerSpec};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;
use support::*;

/// Tells this program that it is a holder, and where.
const HOLD: &str = "DBBENCH_TEST_HOLD";

/// No server may be alive longer after the death of dbbench.
const LIMIT: Duration = Duration::from_secs(5);

#[test]
#[ignore = "the holder: started by the other tests"]
fn holder() {
    let Ok(scratch) = std::env::var(HOLD) else {
        return;
    };
    let scratch = Path::new(&scratch);
    let guard = guard(scratch);
    println!("guard {}", guard.pid());
    println!("root {}", guard.private_root().path().display());
    let ports = [(); 2].map(|()| PortLease::reserve(None).unwrap());
    println!("ports {} {}", ports[0].port(), ports[1].port());
    let memcached = start(&guard, &memcached(&guard, scratch, &ports[0])).unwrap();
    println!("memcached {}", memcached.pid());
    let _apache = start(&guard, &apache(&guard, scratch, &ports[1])).unwrap();
    let script = "(trap '' TERM; setsid sh -c 'trap \"\" TERM; sleep 340 & sleep 340' &) ; echo ready; exec sleep 340";
    let escaping = spec(&guard, scratch, "escaping", shell(script));
    let _escaping = start(&guard, &escaping).unwrap();
    let storm = "echo ready; trap '' TERM; while :; do setsid sleep 341 & sleep 0.1; done";
    let _storm = start(&guard, &spec(&guard, scratch, "storm", shell(storm))).unwrap();
    println!("holding");
    while let Ok(()) = memcached.alive() {
        std::thread::sleep(Duration::from_millis(5));
    }
    println!("lost {}", memcached.alive().unwrap_err());
    let again = ServerSpec {
        directory: scratch.join("again"),
        ..spec(&guard, scratch, "again", shell("echo ready; sleep 340"))
    };
    match start(&guard, &again) {
        Ok(_) => println!("started again"),
        Err(fault) => println!("refused {fault}"),
    }
}

struct Holder {
    child: Child,
    output: BufReader<ChildStdout>,
    scratch: tempfile::TempDir,
}

impl Holder {
    fn start() -> Holder {
        let scratch = scratch();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "holder", "--ignored", "--nocapture"])
            .env(HOLD, scratch.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Holder {
            child,
            output,
            scratch,
        }
    }

    /// Reads until a line begins with this word; the rest of that line.
    fn until(&mut self, word: &str) -> String {
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).unwrap();
            assert!(read > 0, "the holder ended before it said `{word}`");
            // The test harness begins the line of a test without ending it.
            if let Some((_, rest)) = line.split_once(&format!("{word} ")) {
                return rest.trim_end().to_owned();
            }
            if line.trim_end().ends_with(word) {
                return String::new();
            }
        }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn left(&self) -> Vec<i32> {
        living_with(self.scratch.path().to_str().unwrap())
    }

    /// No process within the limit, and no private root.
    fn expect_nothing_left(&self) {
        let nothing = within(LIMIT, || self.left().is_empty());
        assert!(nothing, "still alive: {}", describe(&self.left()));
        assert_eq!(roots(self.scratch.path()), Vec::<std::path::PathBuf>::new());
    }
}

fn describe(pids: &[i32]) -> String {
    let lines = pids.iter().map(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        format!(
            "{pid} {}",
            String::from_utf8_lossy(&line).replace('\0', " ")
        )
    });
    lines.collect::<Vec<_>>().join("; ")
}

fn kill(pid: &str) {
    let pid = nix::unistd::Pid::from_raw(pid.parse().unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
}

/// A different moment for each round, from before the guard is up until after the last server is ready.
fn kill_at_moments(rounds: u64) {
    for round in 0..rounds {
        let mut holder = Holder::start();
        std::thread::sleep(Duration::from_millis((round * 37) % 400));
        holder.kill();
        holder.expect_nothing_left();
    }
}

#[test]
fn nothing_is_left_when_dbbench_is_killed_at_any_moment() {
    kill_at_moments(22);
}

#[test]
#[ignore = "minutes: more moments"]
fn nothing_is_left_when_dbbench_is_killed_at_many_moments() {
    kill_at_moments(200);
}

#[test]
fn nothing_is_left_when_dbbench_is_killed_while_all_servers_run() {
    let mut holder = Holder::start();
    holder.until("holding");
    assert!(holder.left().len() > 12, "{}", describe(&holder.left()));
    assert_eq!(roots(holder.scratch.path()).len(), 1);
    holder.kill();
    holder.expect_nothing_left();
}

#[test]
fn all_servers_end_when_the_guard_is_killed_and_dbbench_says_why() {
    let mut holder = Holder::start();
    let guard = holder.until("guard");
    holder.until("holding");
    kill(&guard);
    let why = holder.until("lost");
    assert!(
        why.starts_with("the guard of the servers is gone (signal: 9 (SIGKILL))"),
        "{why}"
    );
    // By then nothing lives, though dbbench does.
    let mine = holder.child.id() as i32;
    let left: Vec<i32> = holder
        .left()
        .into_iter()
        .filter(|&pid| pid != mine)
        .collect();
    assert!(left.is_empty(), "{}", describe(&left));
    assert!(
        holder
            .until("refused")
            .contains("the guard of the servers is gone")
    );
    holder.output.read_to_string(&mut String::new()).unwrap();
    assert!(holder.child.wait().unwrap().success());
    holder.expect_nothing_left();
}

#[test]
fn no_server_is_left_when_dbbench_and_guard_are_killed_together() {
    let mut holder = Holder::start();
    let guard = holder.until("guard");
    holder.until("holding");
    kill(&guard);
    holder.kill();
    holder.expect_nothing_left();
}

#[test]
fn a_keeper_that_is_killed_takes_its_server_with_it_and_dbbench_goes_on() {
    let mut holder = Holder::start();
    let memcached: i32 = {
        let pid = holder.until("memcached");
        pid.parse().unwrap()
    };
    holder.until("holding");
    let stat = std::fs::read_to_string(format!("/proc/{memcached}/stat")).unwrap();
    let keeper = stat.split(' ').nth(3).unwrap().to_owned();
    kill(&keeper);
    let why = holder.until("lost");
    assert!(why.contains("memcached was killed by SIGKILL"), "{why}");
    assert!(within(LIMIT, || !lives(memcached)));
    holder.until("started again");
    holder.output.read_to_string(&mut String::new()).unwrap();
    assert!(holder.child.wait().unwrap().success());
    holder.expect_nothing_left();
}

#[test]
fn signals_of_a_terminal_do_not_reach_the_guard() {
    let mut holder = Holder::start();
    let guard = holder.until("guard");
    holder.until("holding");
    let pid = nix::unistd::Pid::from_raw(guard.parse().unwrap());
    for signal in ["SIGINT", "SIGTERM", "SIGHUP"] {
        nix::sys::signal::kill(pid, signal.parse::<nix::sys::signal::Signal>().unwrap()).unwrap();
    }
    std::thread::sleep(Duration::from_millis(200));
    assert!(lives(pid.as_raw()));
    let session = nix::unistd::getsid(Some(pid)).unwrap();
    assert_eq!(session, pid, "it has a session of its own");
    holder.kill();
    holder.expect_nothing_left();
}

#[test]
fn two_processes_at_once_never_get_the_same_port() {
    let mut holders = [(); 2].map(|()| Holder::start());
    let mut ports: Vec<String> = Vec::new();
    for holder in &mut holders {
        let line = holder.until("ports");
        ports.extend(line.split(' ').map(str::to_owned));
    }
    for port in &ports {
        let fault = PortLease::reserve(Some(port.parse().unwrap())).unwrap_err();
        assert!(
            fault.to_string().contains("is reserved by another run"),
            "{fault}"
        );
    }
    ports.sort();
    ports.dedup();
    assert_eq!(ports.len(), 4);
    for holder in &mut holders {
        holder.until("holding");
        holder.kill();
        holder.expect_nothing_left();
    }
}
