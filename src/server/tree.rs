//! Process trees as /proc shows them: one snapshot of all processes, who descends from whom, and ending whole trees.
//!
//! Knows nothing of servers. A tree is walked again and again until nothing is left, since a process may fork between
//! the look and the signal; subreapers above see to it that nothing escapes the tree meanwhile.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::HashMap;

/// One process, of /proc/PID/stat.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    pub pid: i32,
    pub parent: i32,
    pub session: i32,
    /// `Z` is a zombie: dead, not yet waited for.
    pub state: char,
    /// User and system time of its own, in clock ticks.
    pub own_ticks: u64,
    /// The same of children that it has waited for, and of theirs.
    pub waited_ticks: u64,
    pub threads: u64,
    pub rss_pages: u64,
}

impl Process {
    /// None where the line is not one of /proc/PID/stat.
    fn parse(line: &str) -> Option<Process> {
        // The name stands in parentheses and may hold spaces and parentheses itself.
        let (pid, rest) = line.split_once(" (")?;
        let (_, rest) = rest.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<i64>().ok();
        Some(Process {
            pid: pid.parse().ok()?,
            parent: number(1)? as i32,
            session: number(3)? as i32,
            state: fields.first()?.chars().next()?,
            own_ticks: (number(11)? + number(12)?) as u64,
            waited_ticks: (number(13)? + number(14)?) as u64,
            threads: number(17)? as u64,
            rss_pages: number(21)?.max(0) as u64,
        })
    }

    /// One process now; None when it is gone.
    pub fn read(pid: i32) -> Option<Process> {
        Process::parse(&read_lossy(&format!("/proc/{pid}/stat"))?)
    }

    pub fn is_zombie(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

/// A process may name itself anything, so its stat line need not be UTF-8.
fn read_lossy(path: &str) -> Option<String> {
    let bytes = std::fs::read(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// All processes of this moment, as good as /proc allows: those that vanish while it is read are left out.
pub struct Snapshot {
    processes: HashMap<i32, Process>,
    children: HashMap<i32, Vec<i32>>,
}

impl Snapshot {
    pub fn take() -> Snapshot {
        let mut processes = HashMap::new();
        let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
                continue;
            };
            if let Some(process) = Process::read(pid) {
                children.entry(process.parent).or_default().push(pid);
                processes.insert(pid, process);
            }
        }
        Snapshot {
            processes,
            children,
        }
    }

    pub fn get(&self, pid: i32) -> Option<&Process> {
        self.processes.get(&pid)
    }

    pub fn children(&self, pid: i32) -> impl Iterator<Item = &Process> {
        self.children
            .get(&pid)
            .into_iter()
            .flatten()
            .filter_map(|child| self.processes.get(child))
    }

    /// All below `pid`, itself not among them.
    pub fn descendants(&self, pid: i32) -> Vec<&Process> {
        let mut found: Vec<&Process> = self.children(pid).collect();
        let mut next = 0;
        while next < found.len() {
            let parent = found[next].pid;
            // A snapshot is no single moment: a reused pid could close a circle in it.
            let more: Vec<&Process> = self
                .children(parent)
                .filter(|child| child.pid != pid && !found.iter().any(|p| p.pid == child.pid))
                .collect();
            found.extend(more);
            next += 1;
        }
        found
    }
}

/// The living among the descendants of `root`.
pub fn living_descendants(root: i32) -> Vec<i32> {
    Snapshot::take()
        .descendants(root)
        .into_iter()
        .filter(|process| !process.is_zombie())
        .map(|process| process.pid)
        .collect()
}

/// Sends a signal to each; those that are gone already do not matter.
pub fn signal_all(pids: &[i32], signal: Signal) {
    for &pid in pids {
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

/// One round of ending what `list` finds: frozen first, so that a fork storm does not outrun the walk, then killed.
/// Returns how many were found alive; to be repeated until that is 0.
pub fn kill_round(list: impl Fn() -> Vec<i32>) -> usize {
    let mut frozen = list();
    if frozen.is_empty() {
        return 0;
    }
    signal_all(&frozen, Signal::SIGSTOP);
    for _ in 0..3 {
        let new: Vec<i32> = list()
            .into_iter()
            .filter(|pid| !frozen.contains(pid))
            .collect();
        if new.is_empty() {
            break;
        }
        signal_all(&new, Signal::SIGSTOP);
        frozen.extend(new);
    }
    signal_all(&frozen, Signal::SIGKILL);
    frozen.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let line = "42 (a) (b c) S 7 42 41 0 -1 4194304 10 0 0 0 3 4 5 6 20 0 9 0 100 2048 33 1844";
        let process = Process::parse(line).unwrap();
        assert_eq!((process.pid, process.parent, process.session), (42, 7, 41));
        assert_eq!((process.own_ticks, process.waited_ticks), (7, 11));
        assert_eq!((process.threads, process.rss_pages), (9, 33));
    }

    #[test]
    fn a_child_of_this_process_is_found_below_it() {
        let mut child = std::process::Command::new("sleep")
            .arg("30")
            .spawn()
            .unwrap();
        let pid = child.id() as i32;
        let me = std::process::id() as i32;
        assert!(living_descendants(me).contains(&pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!living_descendants(me).contains(&pid));
    }
}
