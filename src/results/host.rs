//! Facts of this machine that matter to a reader of the results. Its name and its users do not.
//!
//! Reads /proc and /sys; what they do not say stays empty.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Host {
    pub cpu_model: String,
    /// Logical CPUs of the machine.
    pub cpus: u32,
    /// Those that this process may use (its affinity and its control group).
    pub usable_cpus: u32,
    pub memory_bytes: u64,
    pub architecture: String,
    /// Kernel and its release.
    pub kernel: String,
    /// As /etc/os-release says it.
    pub operating_system: String,
    /// Frequency governor of the first CPU; empty where there is none to see.
    pub governor: String,
    /// `always`, `madvise` or `never`.
    pub transparent_huge_pages: String,
}

impl Host {
    pub fn detect() -> Host {
        let cpu_info = read("/proc/cpuinfo");
        let release = read("/etc/os-release");
        Host {
            cpu_model: field(&cpu_info, "model name", ':'),
            cpus: cpu_info
                .lines()
                .filter(|line| line.starts_with("processor"))
                .count() as u32,
            usable_cpus: std::thread::available_parallelism().map_or(0, |n| n.get() as u32),
            memory_bytes: memory_bytes(&read("/proc/meminfo")),
            architecture: std::env::consts::ARCH.to_owned(),
            kernel: format!(
                "{} {}",
                read("/proc/sys/kernel/ostype").trim(),
                read("/proc/sys/kernel/osrelease").trim()
            )
            .trim()
            .to_owned(),
            operating_system: field(&release, "PRETTY_NAME", '=')
                .trim_matches('"')
                .to_owned(),
            governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
                .trim()
                .to_owned(),
            transparent_huge_pages: chosen(&read("/sys/kernel/mm/transparent_hugepage/enabled")),
        }
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The value of the first line `name <separator> value`.
fn field(text: &str, name: &str, separator: char) -> String {
    text.lines()
        .filter_map(|line| line.split_once(separator))
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim().to_owned())
        .unwrap_or_default()
}

fn memory_bytes(text: &str) -> u64 {
    let total = field(text, "MemTotal", ':');
    let kibibytes: u64 = total
        .trim_end_matches("kB")
        .trim()
        .parse()
        .unwrap_or_default();
    kibibytes * 1024
}

/// `madvise` of `always [madvise] never`.
fn chosen(text: &str) -> String {
    let start = text.find('[').map_or(0, |at| at + 1);
    let end = text.find(']').unwrap_or(start);
    text.get(start..end).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_cpus_memory_and_a_kernel() {
        let host = Host::detect();
        assert!(host.cpus >= 1 && host.usable_cpus >= 1);
        assert!(host.memory_bytes > 1 << 20);
        assert!(host.kernel.starts_with("Linux "));
    }

    #[test]
    fn proc_files_are_read_as_they_are_written() {
        assert_eq!(memory_bytes("MemTotal:       16 kB\nMemFree: 1 kB"), 16_384);
        assert_eq!(chosen("always [madvise] never\n"), "madvise");
        assert_eq!(chosen(""), "");
        assert_eq!(field("a : b\nc: d: e", "c", ':'), "d: e");
    }
}
