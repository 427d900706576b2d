//! Samples of servers, client and host, once a second and when asked: the rows of servers.csv.
//!
//! A server's figures are those of its whole tree, its keeper's waited-for children included, so that CPU and bytes never
//! go back when a descendant ends. One look at /proc serves all servers of a sample.

use super::managed::Running;
use super::tree::{Process, Snapshot};
use crate::measure::record::Sample;
use nix::sys::resource::{UsageWho, getrusage};
use nix::unistd::{SysconfVar, sysconf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_secs(1);

/// The sampling thread; ends when dropped.
pub struct Sampler {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    /// `at` of every sample counts from it.
    origin: Instant,
    watched: Mutex<Watched>,
    ended: Condvar,
    ticks_per_second: u64,
    page_bytes: u64,
}

struct Watched {
    /// (label, keeper)
    servers: Vec<(String, i32)>,
    sender: Sender<Sample>,
    ended: bool,
}

impl Sampler {
    /// Samples client and host every second from `origin`, and the servers that are watched. A receiver that is gone does
    /// no harm.
    pub fn start(origin: Instant, sender: Sender<Sample>) -> std::io::Result<Sampler> {
        let shared = Arc::new(Shared {
            origin,
            watched: Mutex::new(Watched {
                servers: Vec::new(),
                sender,
                ended: false,
            }),
            ended: Condvar::new(),
            ticks_per_second: system_constant(SysconfVar::CLK_TCK, 100),
            page_bytes: system_constant(SysconfVar::PAGE_SIZE, 4096),
        });
        let thread = std::thread::Builder::new()
            .name("sampler".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || shared.run()
            })?;
        Ok(Sampler {
            shared,
            thread: Some(thread),
        })
    }

    /// From now on samples this server, instead of an earlier one of the same name.
    pub fn watch(&self, server: &Running) {
        self.shared.watch(server);
    }

    /// The same for another thread.
    pub fn watch_handle(&self) -> WatchHandle {
        WatchHandle(Arc::clone(&self.shared))
    }

    pub fn forget(&self, label: &str) {
        self.shared
            .watched()
            .servers
            .retain(|(watched, _)| watched != label);
    }

    /// One sample of all, at once, by the calling thread: at the start and the end of a phase.
    pub fn sample_now(&self) {
        self.shared.sample(&self.shared.watched());
    }
}

/// Tells a sampler of servers that are started while it samples.
pub struct WatchHandle(Arc<Shared>);

impl WatchHandle {
    /// See `Sampler::watch`.
    pub fn watch(&self, server: &Running) {
        self.0.watch(server);
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.shared.watched().ended = true;
        self.shared.ended.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn system_constant(name: SysconfVar, usual: u64) -> u64 {
    sysconf(name)
        .ok()
        .flatten()
        .map_or(usual, |value| value as u64)
}

impl Shared {
    fn watch(&self, server: &Running) {
        let mut watched = self.watched();
        watched.servers.retain(|(label, _)| label != server.label());
        let entry = (server.label().to_owned(), server.keeper());
        watched.servers.push(entry);
    }

    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// At whole seconds after the origin; one that was missed is left out.
    fn run(&self) {
        let mut watched = self.watched();
        loop {
            let elapsed = self.origin.elapsed();
            let next = INTERVAL * (elapsed.as_secs() as u32 + 1);
            let waited = self
                .ended
                .wait_timeout_while(watched, next - elapsed, |watched| !watched.ended);
            watched = waited.unwrap_or_else(PoisonError::into_inner).0;
            if watched.ended {
                return;
            }
            self.sample(&watched);
        }
    }

    fn sample(&self, watched: &Watched) {
        let at = self.origin.elapsed();
        let mut samples = Vec::with_capacity(watched.servers.len() + 2);
        if !watched.servers.is_empty() {
            let snapshot = Snapshot::take();
            let servers = watched.servers.iter();
            samples.extend(
                servers.filter_map(|(label, keeper)| self.server(label, *keeper, &snapshot, at)),
            );
        }
        samples.push(self.client(at));
        samples.push(host(at));
        for sample in samples {
            let _ = watched.sender.send(sample);
        }
    }

    /// None when it is gone.
    fn server(
        &self,
        label: &str,
        keeper: i32,
        snapshot: &Snapshot,
        at: Duration,
    ) -> Option<Sample> {
        let keeper = snapshot.get(keeper)?;
        let descendants = snapshot.descendants(keeper.pid);
        let sum = |value: fn(&Process) -> u64| descendants.iter().map(|p| value(p)).sum::<u64>();
        let ticks = keeper.waited_ticks + sum(|process| process.own_ticks + process.waited_ticks);
        let with_keeper = descendants.iter().copied().chain([keeper]);
        let io = with_keeper.filter_map(|process| Bytes::read(process.pid));
        let io = io.reduce(Bytes::plus);
        Some(Sample {
            cpu: Some(self.ticks(ticks)),
            rss_bytes: Some(sum(|process| process.rss_pages) * self.page_bytes),
            read_bytes: io.map(|io| io.read),
            written_bytes: io.map(|io| io.written),
            threads: Some(sum(|process| process.threads)),
            ..unknown(label, at)
        })
    }

    fn client(&self, at: Duration) -> Sample {
        let pid = std::process::id() as i32;
        let process = Process::read(pid);
        let io = Bytes::read(pid);
        Sample {
            cpu: client_cpu(),
            rss_bytes: process.as_ref().map(|p| p.rss_pages * self.page_bytes),
            read_bytes: io.map(|io| io.read),
            written_bytes: io.map(|io| io.written),
            threads: process.as_ref().map(|p| p.threads),
            ..unknown("client", at)
        }
    }

    fn ticks(&self, ticks: u64) -> Duration {
        Duration::from_secs_f64(ticks as f64 / self.ticks_per_second as f64)
    }
}

/// Of this process, in microseconds.
fn client_cpu() -> Option<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    let total = usage.user_time() + usage.system_time();
    let microseconds = total.tv_sec() * 1_000_000 + total.tv_usec();
    Some(Duration::from_micros(microseconds as u64))
}

fn host(at: Duration) -> Sample {
    let sockets = std::fs::read_to_string("/proc/net/sockstat").ok();
    let load = std::fs::read_to_string("/proc/loadavg").ok();
    Sample {
        time_wait_sockets: sockets.as_deref().and_then(time_wait),
        load: load.and_then(|text| text.split(' ').next()?.parse().ok()),
        ..unknown("host", at)
    }
}

/// Of the text of /proc/net/sockstat: `TCP: inuse 5 orphan 0 tw 12 alloc 7 mem 1`.
fn time_wait(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let mut words = line.split_ascii_whitespace();
    words.find(|word| *word == "tw")?;
    words.next()?.parse().ok()
}

fn unknown(process: &str, at: Duration) -> Sample {
    Sample {
        process: process.to_owned(),
        at,
        cpu: None,
        rss_bytes: None,
        read_bytes: None,
        written_bytes: None,
        threads: None,
        time_wait_sockets: None,
        load: None,
    }
}

/// What a process, and the children that it has waited for, moved from and to storage.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bytes {
    read: u64,
    written: u64,
}

impl Bytes {
    /// None when it is gone, or not ours to see.
    fn read(pid: i32) -> Option<Bytes> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.trim().parse().ok()
        };
        Some(Bytes {
            read: value("read_bytes:")?,
            written: value("write_bytes:")?,
        })
    }

    fn plus(self, other: Bytes) -> Bytes {
        Bytes {
            read: self.read + other.read,
            written: self.written + other.written,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn sockets_in_time_wait_are_read_from_the_tcp_line() {
        let text =
            "sockets: used 300\nTCP: inuse 5 orphan 0 tw 12 alloc 7 mem 1\nUDP: inuse 2 mem 0\n";
        assert_eq!(time_wait(text), Some(12));
    }

    #[test]
    fn client_and_host_are_sampled_each_second_and_when_asked() {
        let (sender, receiver) = channel();
        let sampler = Sampler::start(Instant::now(), sender).unwrap();
        sampler.sample_now();
        std::thread::sleep(Duration::from_millis(1300));
        drop(sampler);
        let samples: Vec<Sample> = receiver.into_iter().collect();
        let client: Vec<&Sample> = samples.iter().filter(|s| s.process == "client").collect();
        assert_eq!(client.len(), 2);
        assert!(client[1].at >= Duration::from_secs(1));
        assert!(client[1].cpu >= client[0].cpu && client[0].rss_bytes > Some(1 << 20));
        let host = samples.iter().find(|s| s.process == "host").unwrap();
        assert!(host.load.is_some() && host.time_wait_sockets.is_some() && host.cpu.is_none());
    }
}
