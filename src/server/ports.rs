//! TCP ports for servers, each used by one dbbench process at a time.
//!
//! From 20000 to 32000: below the kernel's ephemeral range, so that no outgoing connection takes one. The lock between
//! processes is an abstract unix socket whose name has the port number: it leaves nothing behind, however its holder ends.

use super::private::random_number;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use thiserror::Error;

const FIRST: u16 = 20_000;
const LAST: u16 = 32_000;

/// A port that is ours until this is dropped. Nothing listens on it but the server that gets it.
#[derive(Debug)]
pub struct PortLease {
    port: u16,
    _lock: UnixListener,
}

impl PortLease {
    pub fn port(&self) -> u16 {
        self.port
    }
}

#[derive(Debug, Error)]
pub enum PortFault {
    /// `holder` is ` by pid 123 (memcached)`, or empty where /proc cannot tell.
    #[error("port {port} is taken{holder}")]
    Taken { port: u16, holder: String },
    #[error("port {port} is reserved by another run of dbbench")]
    Reserved { port: u16 },
    #[error("no port from {FIRST} to {LAST} is free")]
    NoneFree,
    #[error("cannot use port {port}: {source}")]
    Unusable { port: u16, source: io::Error },
}

/// Reserves the port asked for, at as many addresses from 127.0.0.1 on; or, where None, one that is free at all of them.
fn reserve(fixed: Option<u16>, addresses: u32) -> Result<PortLease, PortFault> {
    match fixed {
        Some(port) => reserve_this(port, addresses),
        None => reserve_any(),
    }
}

impl PortLease {
    /// For one instance, at 127.0.0.1; see `reserve`.
    pub fn reserve(fixed: Option<u16>) -> Result<PortLease, PortFault> {
        reserve(fixed, 1)
    }

    /// For as many instances; see `reserve`.
    pub fn reserve_for(fixed: Option<u16>, instances: u32) -> Result<PortLease, PortFault> {
        reserve(fixed, instances)
    }
}

fn reserve_this(port: u16, addresses: u32) -> Result<PortLease, PortFault> {
    let lease = lock(port)?;
    for last in 1..=u8::try_from(addresses).unwrap_or(u8::MAX) {
        match TcpListener::bind((Ipv4Addr::new(127, 0, 0, last), port)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                return Err(PortFault::Taken {
                    port,
                    holder: holder(port).unwrap_or_default(),
                });
            }
            Err(source) => return Err(PortFault::Unusable { port, source }),
        }
    }
    Ok(lease)
}

/// Begins at a random place, so that processes that start together seldom meet.
fn reserve_any() -> Result<PortLease, PortFault> {
    let count = LAST - FIRST + 1;
    let start = random_number() as u16;
    for step in 0..count {
        let port = FIRST + ((u32::from(start) + u32::from(step)) % u32::from(count)) as u16;
        // All local addresses, since several instances have an address each.
        if let Ok(lease) = lock(port)
            && TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).is_ok()
        {
            return Ok(lease);
        }
    }
    Err(PortFault::NoneFree)
}

fn lock(port: u16) -> Result<PortLease, PortFault> {
    let unusable = |source| PortFault::Unusable { port, source };
    let name = SocketAddr::from_abstract_name(format!("dbbench-port-{port}")).map_err(unusable)?;
    match UnixListener::bind_addr(&name) {
        Ok(lock) => Ok(PortLease { port, _lock: lock }),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(PortFault::Reserved { port }),
        Err(source) => Err(unusable(source)),
    }
}

/// ` by pid 123 (memcached)`: who listens on the port, where /proc lets us see it.
fn holder(port: u16) -> Option<String> {
    let inodes: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .flat_map(|table| listening_inodes(&table, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        // `self` is there as well, under its number.
        let Some(pid) = entry.file_name().to_str()?.parse::<u32>().ok() else {
            continue;
        };
        let files = std::fs::read_dir(entry.path().join("fd"));
        let mut links = files.into_iter().flatten().flatten();
        let holds = links.any(|file| {
            std::fs::read_link(file.path()).is_ok_and(|link| {
                inodes
                    .iter()
                    .any(|inode| link.as_os_str() == inode.as_str())
            })
        });
        if holds {
            let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            return Some(format!(" by pid {pid} ({})", name.trim_end()));
        }
    }
    None
}

/// Inodes of the sockets that listen on the port, of the text of /proc/net/tcp.
fn listening_inodes(table: &str, port: u16) -> Vec<String> {
    const LISTEN: &str = "0A";
    let suffix = format!(":{port:04X}");
    let rows = table.lines().skip(1);
    let fields = rows.map(|row| row.split_ascii_whitespace().collect::<Vec<_>>());
    fields
        .filter(|row| row.len() > 9 && row[1].ends_with(&suffix) && row[3] == LISTEN)
        .map(|row| row[9].to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_leases_never_have_the_same_port_and_a_dropped_one_is_free_again() {
        let leases: Vec<PortLease> = (0..50).map(|_| reserve(None, 1).unwrap()).collect();
        let mut ports: Vec<u16> = leases.iter().map(PortLease::port).collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 50);
        assert!(ports.iter().all(|port| (FIRST..=LAST).contains(port)));
        let again = leases[0].port();
        assert!(matches!(
            reserve(Some(again), 1),
            Err(PortFault::Reserved { port }) if port == again
        ));
        drop(leases);
        assert_eq!(reserve(Some(again), 1).unwrap().port(), again);
    }

    #[test]
    fn a_taken_port_is_refused_with_the_name_of_its_holder() {
        let lease = reserve(None, 1).unwrap();
        let port = lease.port();
        drop(lease);
        let _holder = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        let fault = reserve(Some(port), 1).unwrap_err().to_string();
        let me = std::process::id();
        assert!(
            fault.starts_with(&format!("port {port} is taken by pid {me} (")),
            "{fault}"
        );
    }

    #[test]
    fn a_port_taken_at_a_later_address_is_refused_for_several_instances_alone() {
        let lease = reserve(None, 3).unwrap();
        let port = lease.port();
        drop(lease);
        let _holder = TcpListener::bind((Ipv4Addr::new(127, 0, 0, 3), port)).unwrap();
        assert!(reserve(Some(port), 2).is_ok());
        assert!(matches!(
            reserve(Some(port), 3),
            Err(PortFault::Taken { .. })
        ));
    }
}
