//! Real nodes of Apache Cassandra for tests, run by the script that a scenario's fragment copies; the jars come from the
//! script's cache. A node is half a gigabyte and ten seconds: tests that only read and write share one.
#![allow(dead_code)]

use crate::support::{TestServer, free_port, installed};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

/// A cluster on addresses of its own, the same ports on all.
pub struct Cluster {
    pub nodes: Vec<TestServer>,
    addresses: Vec<String>,
    port: u16,
    storage_port: u16,
}

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios/servers/cassandra");

/// A node says so when it has seen another; with garbage collections of seconds beside other tests it may take long.
const READY: Duration = Duration::from_secs(180);

impl Cluster {
    /// Starts so many nodes, ready for clients. None where Java or Maven is not installed.
    pub fn start(nodes: usize) -> Option<Cluster> {
        if !["java", "mvn", "sh"]
            .iter()
            .all(|program| installed(program))
        {
            return None;
        }
        let mut cluster = Cluster::spawn(nodes);
        cluster.wait_ready();
        Some(cluster)
    }

    fn spawn(count: usize) -> Cluster {
        let port = free_port();
        // A net of its own for every cluster: the first address of one node is that of every other server's.
        let net = match count {
            1 => "127.0.0".to_owned(),
            _ => format!("127.{}.{}", 1 + port / 250 % 250, port % 250),
        };
        let mut cluster = Cluster {
            nodes: Vec::new(),
            addresses: (1..=count)
                .map(|number| format!("{net}.{number}"))
                .collect(),
            port,
            storage_port: free_port(),
        };
        for number in 0..count {
            let directory = tempfile::tempdir().expect("a private directory");
            copy_folder(&directory.path().join("app"));
            let node = TestServer::spawn(cluster.command(number), port, directory);
            cluster.nodes.push(node);
        }
        cluster
    }

    fn command(&self, number: usize) -> Command {
        let seeds: Vec<String> = self
            .addresses
            .iter()
            .map(|address| format!("{address}:{}", self.storage_port))
            .collect();
        let mut command = Command::new("sh");
        command
            .args(["app/node.sh", &(number + 1).to_string()])
            .args([&self.addresses.len().to_string(), &self.addresses[number]])
            .args([&self.port.to_string(), &self.storage_port.to_string()])
            .arg(seeds.join(","));
        command
    }

    /// Waits until every node has started and has seen all others.
    pub fn wait_ready(&mut self) {
        let deadline = Instant::now() + READY;
        let others = self.nodes.len() - 1;
        for node in &mut self.nodes {
            loop {
                let log = node.directory().join("log");
                let log = std::fs::read_to_string(log).unwrap_or_default();
                let mut up: Vec<&str> = log.lines().filter_map(seen_up).collect();
                up.sort_unstable();
                up.dedup();
                if log.contains("Startup complete") && up.len() >= others {
                    break;
                }
                let tail: Vec<&str> = log.lines().rev().take(15).collect();
                assert!(!node.ended(), "a node ended: {tail:#?}");
                assert!(Instant::now() < deadline, "not ready: {tail:#?}");
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }

    /// Starts a node that was killed, on its own data, and waits until it is up.
    pub fn restart(&mut self, number: usize) {
        let command = self.command(number);
        self.nodes[number].start_again(command);
        self.wait_ready();
    }

    pub fn address(&self, number: usize) -> String {
        format!("{}:{}", self.addresses[number], self.port)
    }

    pub fn endpoint(&self, number: usize, keyspace: &str) -> String {
        format!("cassandra://{}/{keyspace}", self.address(number))
    }

    pub fn endpoints(&self, keyspace: &str) -> Vec<String> {
        let numbers = 0..self.nodes.len();
        numbers
            .map(|number| self.endpoint(number, keyspace))
            .collect()
    }
}

fn seen_up(line: &str) -> Option<&str> {
    let (before, _) = line.split_once(" is now UP")?;
    before
        .rsplit_once("InetAddress ")
        .map(|(_, address)| address)
}

fn copy_folder(to: &Path) {
    std::fs::create_dir(to).expect("a folder");
    for entry in std::fs::read_dir(FOLDER).expect("the fragment's folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name");
        std::fs::copy(&path, to.join(name)).expect("a copy");
    }
}

/// Runs a test on the one cluster of this process, started by the first that wants it, one test at a time. It must leave
/// the cluster whole. Does nothing where there can be none.
///
/// All run on one thread: a node ends with the thread that started it.
pub fn on<T: Send + 'static>(
    nodes: usize,
    test: impl FnOnce(&mut Cluster) -> T + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = channel();
    let job: Job = Box::new(move |kept| {
        let cluster = match kept {
            Some(cluster) => cluster,
            None => match Cluster::start(nodes) {
                Some(cluster) => kept.insert(cluster),
                None => return drop(sender.send(Ok(None))),
            },
        };
        let result = catch_unwind(AssertUnwindSafe(|| test(cluster)));
        let _ = sender.send(result.map(Some));
    });
    keeper().send(job).expect("the keeper stays");
    match receiver.recv() {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => resume_unwind(panic),
        Err(_) => panic!("the cluster did not start"),
    }
}

/// The address of one node for all tests that only read and write.
pub fn one() -> Option<String> {
    on(1, |cluster| cluster.address(0))
}

type Job = Box<dyn FnOnce(&mut Option<Cluster>) + Send>;

fn keeper() -> Sender<Job> {
    static JOBS: OnceLock<Sender<Job>> = OnceLock::new();
    let jobs = JOBS.get_or_init(|| {
        let (sender, jobs) = channel::<Job>();
        std::thread::spawn(move || {
            for job in jobs {
                let mut kept = kept();
                let _ = catch_unwind(AssertUnwindSafe(|| job(&mut kept)));
            }
        });
        // SAFETY: the handler is a plain function without arguments.
        unsafe { libc::atexit(end) };
        sender
    });
    jobs.clone()
}

fn kept() -> MutexGuard<'static, Option<Cluster>> {
    static KEPT: Mutex<Option<Cluster>> = Mutex::new(None);
    KEPT.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Ends the cluster, and its directories with it, when the process ends.
extern "C" fn end() {
    drop(kept().take());
}
