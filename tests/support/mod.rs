//! Real servers for tests: started on a free port in a private directory, ready before they are handed out, ended by
//! their process id when dropped.
//!
//! A program that is not installed is a visible skip for a user, and a failure where `CI` or `DBBENCH_REQUIRE_SERVERS`
//! is set.
#![allow(dead_code)]

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What accepts connections once a server is ready.
#[derive(Clone, Copy, PartialEq)]
pub enum Ready {
    Port,
    /// The unix socket `server.sock` in the private directory.
    Socket,
    Both,
}

/// A server of a test's own.
pub struct TestServer {
    child: Child,
    pub port: u16,
    directory: TempDir,
}

impl TestServer {
    /// Starts `program`; `arguments` is told the port and the private directory. None where the program is
    /// not installed.
    pub fn start(
        program: &str,
        ready: Ready,
        arguments: impl Fn(u16, &Path) -> Vec<String>,
    ) -> Option<TestServer> {
        if !installed(program) {
            return None;
        }
        // Another process may take the port between its choice and its use.
        for _ in 0..5 {
            if let Some(server) = TestServer::attempt(program, ready, &arguments) {
                return Some(server);
            }
        }
        panic!("{program} does not get ready");
    }

    fn attempt(
        program: &str,
        ready: Ready,
        arguments: &impl Fn(u16, &Path) -> Vec<String>,
    ) -> Option<TestServer> {
        let port = free_port();
        let directory = tempfile::tempdir().expect("a private directory");
        let mut command = Command::new(program);
        command.args(arguments(port, directory.path()));
        let mut server = TestServer::spawn(command, port, directory);
        let deadline = Instant::now() + Duration::from_secs(15);
        while Instant::now() < deadline {
            if server.child.try_wait().expect("a child's state").is_some() {
                return None;
            }
            let by_port = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
            let by_socket = || UnixStream::connect(server.socket()).is_ok();
            if (ready == Ready::Socket || by_port()) && (ready == Ready::Port || by_socket()) {
                return Some(server);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }

    /// Starts what the caller waits for himself, in the directory, its words in `log` there.
    pub fn spawn(command: Command, port: u16, directory: TempDir) -> TestServer {
        TestServer {
            child: launch(command, directory.path()),
            port,
            directory,
        }
    }

    /// Starts a killed server anew, on what it left behind.
    pub fn start_again(&mut self, command: Command) {
        let _ = self.child.wait();
        self.child = launch(command, self.directory.path());
    }

    /// Whether it has ended by itself.
    pub fn ended(&mut self) -> bool {
        self.child.try_wait().expect("a child's state").is_some()
    }

    pub fn redis(more: &[&str]) -> Option<TestServer> {
        TestServer::start("redis-server", Ready::Both, |port, directory| {
            let fixed = ["--save", "", "--bind", "127.0.0.1", "--dir"];
            let mut arguments: Vec<String> = fixed.iter().map(|text| (*text).to_owned()).collect();
            arguments.push(directory.display().to_string());
            arguments.extend(["--unixsocket".to_owned(), "server.sock".to_owned()]);
            if !more.contains(&"--port") {
                arguments.extend(["--port".to_owned(), port.to_string()]);
            }
            let own = directory.display().to_string();
            for argument in more {
                let argument = argument.replace("{port}", &port.to_string());
                arguments.push(argument.replace("{dir}", &own));
            }
            arguments
        })
    }

    pub fn memcached(more: &[&str]) -> Option<TestServer> {
        TestServer::start("memcached", Ready::Port, |port, _| {
            let port = port.to_string();
            let fixed = ["-u", "nobody", "-l", "127.0.0.1", "-U", "0", "-p", &port];
            let all = fixed.iter().chain(more);
            all.map(|text| (*text).to_owned()).collect()
        })
    }

    /// memcached on a unix socket only.
    pub fn memcached_socket() -> Option<TestServer> {
        TestServer::start("memcached", Ready::Socket, |_, directory| {
            let socket = directory.join("server.sock").display().to_string();
            // As the user who owns the directory: another could not make its socket there.
            ["-u", "root", "-s", &socket, "-a", "0777", "-I", "2m"]
                .iter()
                .map(|text| (*text).to_owned())
                .collect()
        })
    }

    /// Path of the unix socket, where the server has one.
    pub fn socket(&self) -> PathBuf {
        self.directory.path().join("server.sock")
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("a process id"))
    }

    /// Stops it where it stands, as a hung server does. A signal stops threads one after another: waits for the last.
    pub fn hang(&self) {
        kill(self.pid(), Signal::SIGSTOP).expect("the server is there");
        while !self.stopped() {
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    fn stopped(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.pid())).expect("its threads");
        tasks.flatten().all(|task| {
            let state = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            // The state stands behind the name, which is in parentheses.
            state
                .rsplit(") ")
                .next()
                .is_some_and(|rest| rest.starts_with('T'))
        })
    }

    pub fn go_on(&self) {
        kill(self.pid(), Signal::SIGCONT).expect("the server is there");
    }

    pub fn kill(&self) {
        kill(self.pid(), Signal::SIGKILL).expect("the server is there");
    }

    /// Waits until a killed server is gone, and its port with it.
    pub fn wait_ended(&self) {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        waitid(Id::Pid(self.pid()), flags).expect("the server ends");
    }
}

/// Ends with the thread that calls this.
fn launch(mut command: Command, directory: &Path) -> Child {
    let log = std::fs::File::create(directory.join("log")).expect("a log file");
    let errors = log.try_clone().expect("a second handle of the log");
    command
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors);
    // SAFETY: only an async-signal-safe system call is made between fork and exec.
    unsafe {
        command.pre_exec(|| Ok(set_pdeathsig(Signal::SIGKILL)?));
    }
    command.spawn().expect("the server starts")
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a program can be found; says aloud where it cannot.
pub fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|folder| folder.join(program).is_file()) {
        return true;
    }
    let required = ["CI", "DBBENCH_REQUIRE_SERVERS"]
        .iter()
        .any(|name| std::env::var_os(name).is_some());
    assert!(!required, "{program} is not installed");
    eprintln!("SKIPPED: {program} is not installed");
    false
}

/// A port that is free now, in the range that no outgoing connection takes one from.
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let number = std::process::id()
            .wrapping_mul(7919)
            .wrapping_add(step * 13);
        let port = 20_000 + u16::try_from(number % 12_000).expect("a number below 12000");
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}
