//! What the tests of managed servers share: a guard of the real program, specs of real servers, a look at /proc.

#![allow(dead_code, reason = "each test program uses a part of it")]

use dbbench::op::Failure;
use dbbench::server::{
    Guard, PortLease, PrivateRoot, ReadySpec, Running, ServerSpec, StartFault, StopSignal,
};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

pub static NEVER: AtomicBool = AtomicBool::new(false);

/// A short directory that every user may pass, removed at the end.
pub fn scratch() -> tempfile::TempDir {
    let directory = tempfile::Builder::new().prefix("t").tempdir().unwrap();
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
    directory
}

pub fn guard(scratch: &Path) -> Guard {
    let program = Path::new(env!("CARGO_BIN_EXE_dbbench"));
    Guard::start_with(program, PrivateRoot::in_directory(scratch)).unwrap()
}

pub fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// A server of that name, its directory in the guard's private root, its log in `scratch`.
pub fn spec(guard: &Guard, scratch: &Path, name: &str, command: Vec<String>) -> ServerSpec {
    ServerSpec {
        name: name.to_owned(),
        instance: 1,
        instances: 1,
        command,
        files: Vec::new(),
        setup: Vec::new(),
        environment: Vec::new(),
        user: None,
        cpus: Vec::new(),
        working_directory: None,
        directory: guard.private_root().path().join(name),
        log: scratch.join(format!("{name}.log")),
        ready: ReadySpec::Log(regex::Regex::new("^ready").unwrap()),
        ready_timeout: Duration::from_secs(20),
        setup_timeout: Duration::from_secs(20),
        stop_signal: StopSignal::TERM,
        stop_timeout: Duration::from_secs(10),
        install: String::new(),
        requires: Vec::new(),
    }
}

pub fn shell(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

pub fn memcached(guard: &Guard, scratch: &Path, port: &PortLease) -> ServerSpec {
    let port = port.port();
    let command = words(&format!(
        "memcached -t 2 -m 64 -l 127.0.0.1 -p {port} -U 0 -u nobody -v"
    ));
    ServerSpec {
        ready: ReadySpec::Tcp(([127, 0, 0, 1], port).into()),
        install: "apt-get install memcached".to_owned(),
        ..spec(guard, scratch, "memcached", command)
    }
}

pub fn redis(guard: &Guard, scratch: &Path, port: &PortLease) -> ServerSpec {
    let port = port.port();
    let mut command = words(&format!(
        "redis-server --port {port} --bind 127.0.0.1 --appendonly no --daemonize no --save"
    ));
    command.push(String::new());
    ServerSpec {
        ready: ReadySpec::Tcp(([127, 0, 0, 1], port).into()),
        ..spec(guard, scratch, "redis", command)
    }
}

/// Prefork: eight children as nobody; it leaves the group that it was started in.
pub fn apache(guard: &Guard, scratch: &Path, port: &PortLease) -> ServerSpec {
    let port = port.port();
    let base = spec(guard, scratch, "apache", Vec::new());
    let directory = base.directory.display().to_string();
    let modules = "/usr/lib/apache2/modules";
    let configuration = format!(
        "ServerRoot {directory}\nPidFile {directory}/httpd.pid\nDefaultRuntimeDir {directory}\n\
         Mutex file:{directory} default\nServerName localhost\nListen 127.0.0.1:{port}\n\
         User nobody\nGroup nogroup\nErrorLog /dev/stderr\nLogLevel warn\n\
         LoadModule mpm_prefork_module {modules}/mod_mpm_prefork.so\n\
         LoadModule authz_core_module {modules}/mod_authz_core.so\n\
         StartServers 8\nMinSpareServers 8\nMaxSpareServers 8\nDocumentRoot {directory}/www\n\
         <Directory />\n  Require all granted\n</Directory>\n"
    );
    let text = |path: &str, text: String| dbbench::server::FileSpec {
        path: path.into(),
        content: dbbench::server::FileContent::Text(text),
    };
    ServerSpec {
        command: words(&format!(
            "/usr/sbin/apache2 -DNO_DETACH -f {directory}/httpd.conf -d {directory}"
        )),
        files: vec![
            text("httpd.conf", configuration),
            text("www/ping", "pong\n".to_owned()),
        ],
        ready: ReadySpec::Http {
            address: ([127, 0, 0, 1], port).into(),
            path: "/ping".to_owned(),
        },
        ..base
    }
}

pub fn start(guard: &Guard, spec: &ServerSpec) -> Result<Running, StartFault> {
    let mut no_driver = |_: Duration| Err::<(), Failure>(unexpected());
    guard.start_server(spec, &mut no_driver, &NEVER)
}

fn unexpected() -> Failure {
    Failure::new(dbbench::op::ErrorClass::Client, "no driver here")
}

/// Pids of living processes whose command line or working directory mentions `mark` (a private path or a port).
pub fn living_with(mark: &str) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|&pid| pid != std::process::id() as i32 && lives(pid) && mentions(pid, mark))
        .collect()
}

fn mentions(pid: i32, mark: &str) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let directory = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
    String::from_utf8_lossy(&line).contains(mark) || directory.display().to_string().contains(mark)
}

/// A zombie does not.
pub fn lives(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Looks every 20 ms until it holds; whether it did within the limit.
pub fn within(limit: Duration, mut what: impl FnMut() -> bool) -> bool {
    let since = Instant::now();
    loop {
        if what() {
            return true;
        }
        if since.elapsed() > limit {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The private roots in a directory.
pub fn roots(scratch: &Path) -> Vec<PathBuf> {
    let entries = scratch.read_dir().unwrap().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| {
            path.file_name()
                .unwrap()
                .to_str()
                .unwrap()
                .starts_with("dbb-")
        })
        .collect()
}
