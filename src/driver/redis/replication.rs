//! What a server says of its replication (`INFO replication`): its role, its replicas or its primary, and how far the
//! replicas are behind.

use crate::op::{ErrorClass, Failure};

/// The answer, read.
#[derive(Debug, Default, PartialEq)]
pub struct Replication {
    /// `master` or `slave`; empty where the server does not say.
    pub role: String,
    /// Host and port of the primary, of a replica.
    pub primary: Option<(String, u16)>,
    link: String,
    syncing: bool,
    /// Bytes of its stream of writes: of a replica those that it has applied.
    pub offset: u64,
    pub replicas: Vec<Replica>,
}

/// A replica as its primary sees it.
#[derive(Debug, PartialEq)]
pub struct Replica {
    /// `127.0.0.1:7001`.
    pub label: String,
    /// `online` when it takes the stream of writes.
    pub state: String,
    /// What it has acknowledged.
    pub offset: u64,
}

impl Replication {
    pub fn read(information: &str) -> Replication {
        let mut read = Replication::default();
        let (mut host, mut port) = (None, None);
        let mut own = 0;
        let mut applied = None;
        for line in information.lines() {
            let Some((name, value)) = line.trim_end().split_once(':') else {
                continue;
            };
            match name {
                "role" => value.clone_into(&mut read.role),
                "master_host" => host = Some(value.to_owned()),
                "master_port" => port = value.parse().ok(),
                "master_link_status" => value.clone_into(&mut read.link),
                "master_sync_in_progress" => read.syncing = value != "0",
                "master_repl_offset" => own = value.parse().unwrap_or_default(),
                "slave_repl_offset" => applied = value.parse().ok(),
                _ => read.replicas.extend(replica(name, value)),
            }
        }
        read.offset = applied.unwrap_or(own);
        read.primary = host.zip(port);
        read
    }

    pub fn is_replica(&self) -> bool {
        self.role == "slave"
    }

    /// A replica that does not follow its primary, as a sentence.
    pub fn behind(&self) -> Result<(), Failure> {
        let why = match (self.is_replica(), self.link.as_str(), self.syncing) {
            (false, ..) | (true, "up", false) => return Ok(()),
            (true, _, true) => "is still being copied (master_sync_in_progress:1)".to_owned(),
            (true, link, false) => {
                format!("is not connected to it (master_link_status:{link})")
            }
        };
        let primary = match &self.primary {
            Some((host, port)) => format!("{host}:{port}"),
            None => "?".to_owned(),
        };
        let message = format!("the replica of {primary} {why}");
        Err(Failure::new(ErrorClass::Connect, message))
    }

    /// Bytes of writes that the replica furthest behind has not acknowledged. Only the primary can tell.
    pub fn lag(&self) -> Result<u64, Failure> {
        let untold = |message: &str| Failure::new(ErrorClass::UnexpectedReply, message);
        if self.is_replica() {
            let message = "replication_lag is asked of the primary, and this server is a replica";
            return Err(untold(message));
        }
        let slowest = self.replicas.iter().map(|replica| replica.offset).min();
        let slowest = slowest.ok_or_else(|| untold("the server has no replica connected"))?;
        Ok(self.offset.saturating_sub(slowest))
    }

    /// For the results: what it is, and with whom.
    pub fn settings(&self) -> Vec<(String, String)> {
        let role = match self.role.as_str() {
            "master" => "primary",
            "slave" => "replica",
            other => other,
        };
        let mut settings = vec![("role".to_owned(), role.to_owned())];
        if let Some((host, port)) = &self.primary {
            settings.push(("primary".to_owned(), format!("{host}:{port}")));
        }
        let mut replicas: Vec<String> = self
            .replicas
            .iter()
            .map(|replica| format!("{} {}", replica.label, replica.state))
            .collect();
        replicas.sort();
        settings.push(("replicas".to_owned(), replicas.join(", ")));
        settings
    }
}

/// `slave0:ip=127.0.0.1,port=7001,state=online,offset=98,lag=0`.
fn replica(name: &str, value: &str) -> Option<Replica> {
    let number = name.strip_prefix("slave")?;
    number.parse::<u32>().ok()?;
    let part = |wanted: &str| {
        let mut parts = value.split(',').filter_map(|part| part.split_once('='));
        parts
            .find(|(name, _)| *name == wanted)
            .map(|(_, value)| value)
    };
    Some(Replica {
        label: format!("{}:{}", part("ip")?, part("port")?),
        state: part("state")?.to_owned(),
        offset: part("offset")?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRIMARY: &str = "# Replication\r\nrole:master\r\nconnected_slaves:2\r\n\
        slave0:ip=127.0.0.1,port=7002,state=online,offset=98,lag=0\r\n\
        slave1:ip=127.0.0.1,port=7001,state=wait_bgsave,offset=40,lag=0\r\n\
        master_failover_state:no-failover\r\nmaster_repl_offset:126\r\n";

    fn replica(link: &str, syncing: u8) -> Replication {
        Replication::read(&format!(
            "role:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6379\r\nmaster_link_status:{link}\r\n\
             master_sync_in_progress:{syncing}\r\nslave_repl_offset:90\r\nconnected_slaves:0\r\n\
             master_repl_offset:100\r\n"
        ))
    }

    #[test]
    fn the_lag_is_that_of_the_replica_furthest_behind() {
        assert_eq!(Replication::read(PRIMARY).lag(), Ok(86));
        let alone = Replication::read("role:master\r\nmaster_repl_offset:5\r\n");
        assert!(alone.lag().unwrap_err().message.contains("no replica"));
        let message = replica("up", 0).lag().unwrap_err().message;
        assert!(message.contains("asked of the primary"), "{message}");
    }

    #[test]
    fn a_replica_is_behind_until_it_is_linked_and_copied() {
        assert_eq!(replica("up", 0).behind(), Ok(()));
        assert_eq!(Replication::read(PRIMARY).behind(), Ok(()));
        let said = |link, syncing| replica(link, syncing).behind().unwrap_err().message;
        assert!(said("down", 0).contains("10.0.0.1:6379 is not connected"));
        assert!(said("up", 1).contains("still being copied"));
        assert_eq!(replica("up", 0).offset, 90);
    }

    #[test]
    fn the_results_show_role_and_replicas() {
        let shown = |read: Replication| {
            let settings = read.settings().into_iter();
            settings
                .map(|(name, value)| format!("{name}={value}"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(
            shown(Replication::read(PRIMARY)),
            "role=primary replicas=127.0.0.1:7001 wait_bgsave, 127.0.0.1:7002 online"
        );
        assert_eq!(
            shown(replica("up", 0)),
            "role=replica primary=10.0.0.1:6379 replicas="
        );
    }
}
