//! The bare epoll loop of the benches on a real redis-server: it does what it says, and fails where the answer is wrong.

#[path = "../benches/bare/mod.rs"]
mod bare;

use bare::bare;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A redis-server in a private directory, stopped when this goes.
struct Redis {
    child: Child,
    port: u16,
    _directory: tempfile::TempDir,
}

impl Redis {
    fn start() -> Redis {
        let first = 20_000 + (std::process::id() % 10_000) as u16;
        (first..first + 100)
            .filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
            .find_map(Redis::on)
            .expect("a redis-server can be started on one of a hundred ports")
    }

    /// None where another server has taken the port meanwhile.
    fn on(port: u16) -> Option<Redis> {
        let directory = tempfile::tempdir().expect("a private directory");
        let child = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(directory.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is installed");
        let mut redis = Redis {
            child,
            port,
            _directory: directory,
        };
        redis.becomes_ready().then_some(redis)
    }

    /// This very process answers at the port, not another that was faster.
    fn becomes_ready(&mut self) -> bool {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(10) {
            if self.child.try_wait().expect("the child's state").is_some() {
                return false;
            }
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                let own = format!("process_id:{}\r\n", self.child.id());
                return self.say("INFO server").contains(&own);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }

    /// The answer to one inline command, as it comes.
    fn say(&self, command: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        write!(stream, "{command}\r\n").expect("a request");
        stream
            .shutdown(std::net::Shutdown::Write)
            .expect("the end of it");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    /// How often the server has executed a command.
    fn calls(&self, command: &str) -> u64 {
        let stats = self.say("INFO commandstats");
        let prefix = format!("cmdstat_{command}:calls=");
        stats
            .lines()
            .find_map(|line| line.strip_prefix(&prefix))
            .and_then(|rest| rest.split(',').next())
            .map_or(0, |count| count.parse().expect("a count"))
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_server_executes_every_operation_that_is_reported() {
    let redis = Redis::start();
    for (size, operations) in [(0, 100), (2_560, 5_000), (41_960, 2_000), (1 << 20, 60)] {
        let before = (redis.calls("set"), redis.calls("get"));
        let set = bare(redis.port, 50, operations, size, true).expect("sets");
        assert_eq!(redis.calls("set") - before.0, operations, "{size} bytes");
        let length = redis.say(&format!("STRLEN {:032}", 49));
        assert_eq!(length, format!(":{size}\r\n"));
        let get = bare(redis.port, 50, operations, size, false).expect("gets");
        assert_eq!(redis.calls("get") - before.1, operations, "{size} bytes");
        for report in [set, get] {
            assert_eq!(report.operations, operations);
            assert!(report.cpu_seconds > 0.0 && report.cpu_seconds <= report.seconds);
            assert!(report.per_second() > 0.0 && report.cpu_us() > 0.0);
        }
    }
}

#[test]
fn fewer_operations_than_connections_end_too() {
    let redis = Redis::start();
    let report = bare(redis.port, 10, 3, 100, true).expect("sets");
    assert_eq!(report.operations, 3);
    assert_eq!(redis.calls("set"), 3);
}

#[test]
fn a_wrong_answer_is_an_error() {
    let redis = Redis::start();
    redis.say("CONFIG SET requirepass secret");
    let refused = bare(redis.port, 1, 10, 100, true).expect_err("no password was given");
    assert!(refused.to_string().contains("-NOAU"), "{refused}");
}
