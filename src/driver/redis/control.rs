//! The cold side: readiness, version, settings, durability, reset. Opens a connection of its own and keeps it.
//!
//! A replica is ready when a write to its primary has come to it, a node of a cluster when all slots are served.

use super::Settings;
use super::custom::first_text;
use super::replication::Replication;
use super::session::{Session, Shared};
use super::slots::Ranges;
use super::spec::{self, Login};
use crate::driver::Control;
use crate::driver::net::blocking::Blocking;
use crate::driver::spec::{Durability, Endpoint, Transport};
use crate::op::{ErrorClass, Failure};
use redis::{Cmd, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a reader of the results wants to know, in this order.
const SETTINGS: [&str; 7] = [
    "save",
    "appendonly",
    "appendfsync",
    "maxmemory",
    "maxmemory-policy",
    "io-threads",
    "databases",
];

/// Written to a primary, to see that its replicas get it, and deleted at once. It ends by itself, too.
const MARKER: &str = "dbbench:ready";

/// The pseudo-statement of a probe, which no server knows.
const LAG: &str = "replication_lag";

pub struct RedisControl {
    endpoint: Endpoint,
    settings: Arc<Settings>,
    shared: Arc<Shared>,
    blocking: Blocking,
    session: Option<Session>,
}

impl RedisControl {
    pub fn new(
        endpoint: Endpoint,
        settings: Arc<Settings>,
        shared: Arc<Shared>,
    ) -> Result<RedisControl, Failure> {
        Ok(RedisControl {
            endpoint,
            settings,
            shared,
            blocking: Blocking::new()?,
            session: None,
        })
    }

    /// Sends one command. The connection is made where there is none, and kept unless it broke.
    fn query(&mut self, command: &Cmd, limit: Duration) -> Result<Value, Failure> {
        let what = format!("a command to {}", self.endpoint.label);
        let open = self.session.take();
        let result = self.blocking.run(limit, &what, async {
            let mut session = match open {
                Some(session) => session,
                None => self.settings.session(&self.endpoint, &self.shared).await?,
            };
            let answer = session.query(command).await;
            Ok((answer, session))
        });
        let (answer, session) = result?;
        if !answer.as_ref().is_err_and(|failure| failure.broken) {
            self.session = Some(session);
        }
        answer
    }

    /// Sends commands to another server, with what this endpoint says of the login; the answer to the last one.
    fn ask(
        &self,
        host: &str,
        port: u16,
        commands: &[Cmd],
        limit: Duration,
    ) -> Result<Value, Failure> {
        let login = self.login()?;
        let endpoint = Endpoint {
            text: String::new(),
            label: format!("{host}:{port}"),
            transport: Transport::Tcp {
                host: host.to_owned(),
                port,
                addresses: Vec::new(),
            },
        };
        let what = format!("a command to {}", endpoint.label);
        self.blocking.run(limit, &what, async {
            let settings = &self.settings;
            let mut session = settings.session_as(&endpoint, &login, &self.shared).await?;
            let mut answer = Value::Nil;
            for command in commands {
                answer = session.query(command).await?;
            }
            Ok(answer)
        })
    }

    fn login(&self) -> Result<Login, Failure> {
        let parsed = spec::parse(&self.endpoint.text);
        let unread = |fault: crate::driver::spec::EndpointFault| {
            Failure::new(ErrorClass::Connect, fault.message)
        };
        parsed.map(|(_, login)| login).map_err(unread)
    }

    /// What the server says of its replication; nothing where its user may not ask.
    fn replication(&mut self, limit: Duration) -> Result<Replication, Failure> {
        match self.query(redis::cmd("INFO").arg("replication"), limit) {
            Ok(answer) => Ok(Replication::read(&first_text(&answer))),
            Err(failure) if failure.class == ErrorClass::Server && failure.code != "LOADING" => {
                Ok(Replication::default())
            }
            Err(failure) => Err(failure),
        }
    }

    /// A link that is up says little: with a copy made without disk, a replica serves nothing for a second after. So a
    /// write must come to it.
    fn replicated(&mut self, known: &Replication, limit: Duration) -> Result<(), Failure> {
        let Some((host, port)) = &known.primary else {
            return Ok(());
        };
        let deadline = Instant::now() + limit;
        let wait = limit.as_millis().clamp(1, 500) as u64;
        let mut mark = redis::cmd("SET");
        mark.arg(MARKER).arg("1").arg("PX").arg(60_000);
        let acknowledged = redis::cmd("WAIT").arg(1).arg(wait).take();
        let delete = redis::cmd("DEL").arg(MARKER).take();
        let information = redis::cmd("INFO").arg("replication").take();
        let commands = [mark, acknowledged, delete, information];
        let primary = match self.ask(host, *port, &commands, limit) {
            // One who may only read, or a replica of a replica: its link must do.
            Err(failure) if matches!(failure.code.as_str(), "NOPERM" | "READONLY") => return Ok(()),
            answer => answer?,
        };
        let written = Replication::read(&first_text(&primary)).offset;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let own = self.replication(left)?;
            own.behind()?;
            if own.offset >= written {
                return Ok(());
            }
            if left < Duration::from_millis(20) {
                let missing = written - own.offset;
                let message = format!(
                    "the replica of {host}:{port} has not got what was written there: {missing} bytes are missing"
                );
                return Err(Failure::new(ErrorClass::Timeout, message));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// All slots are served, as this node sees it.
    fn cluster_ready(&mut self, limit: Duration) -> Result<(), Failure> {
        let answer = self.query(redis::cmd("CLUSTER").arg("INFO"), limit)?;
        let text = first_text(&answer);
        let value = |name: &str| {
            let mut lines = text
                .lines()
                .filter_map(|line| line.trim_end().split_once(':'));
            let found = lines.find(|(known, _)| *known == name);
            found.map_or("", |(_, value)| value).to_owned()
        };
        let (state, slots) = (value("cluster_state"), value("cluster_slots_ok"));
        match state == "ok" && slots == "16384" {
            true => Ok(()),
            false => Err(Failure::new(
                ErrorClass::Server,
                format!("the cluster serves {slots} of 16384 slots (cluster_state:{state})"),
            )),
        }
    }

    fn ranges(&mut self, limit: Duration) -> Result<Ranges, Failure> {
        let answer = self.query(redis::cmd("CLUSTER").arg("SLOTS"), limit)?;
        let host = match &self.endpoint.transport {
            Transport::Tcp { host, .. } => host.as_str(),
            _ => "127.0.0.1",
        };
        Ranges::read(&answer, host)
    }

    /// One setting; empty where the server does not know it.
    fn setting(&mut self, name: &str, limit: Duration) -> Result<String, Failure> {
        let answer = self.query(redis::cmd("CONFIG").arg("GET").arg(name), limit)?;
        let value = match &answer {
            Value::Array(parts) => parts.get(1).map(first_text),
            Value::Map(pairs) => pairs.first().map(|(_, value)| first_text(value)),
            _ => None,
        };
        Ok(value.unwrap_or_default())
    }
}

impl Control for RedisControl {
    fn ready(&mut self, limit: Duration) -> Result<(), Failure> {
        let deadline = Instant::now() + limit;
        let left = || deadline.saturating_duration_since(Instant::now());
        self.query(&redis::cmd("PING"), limit)?;
        let known = self.replication(left())?;
        known.behind()?;
        if self.settings.cluster {
            return self.cluster_ready(left());
        }
        match known.is_replica() {
            true => self.replicated(&known, left()),
            false => Ok(()),
        }
    }

    fn version(&mut self, limit: Duration) -> Result<String, Failure> {
        let answer = self.query(redis::cmd("INFO").arg("server"), limit)?;
        version_of(&first_text(&answer)).ok_or_else(|| {
            Failure::new(ErrorClass::UnexpectedReply, "INFO server names no version")
        })
    }

    fn settings(&mut self, limit: Duration) -> Result<Vec<(String, String)>, Failure> {
        let deadline = Instant::now() + limit;
        let left = || deadline.saturating_duration_since(Instant::now());
        let mut settings = Vec::new();
        for name in SETTINGS {
            settings.push((name.to_owned(), self.setting(name, left())?));
        }
        settings.extend(self.replication(left())?.settings());
        if self.settings.cluster {
            let ranges = self.ranges(left())?;
            settings.push(("cluster".to_owned(), ranges.to_string()));
        }
        Ok(settings)
    }

    fn durability(&mut self, limit: Duration) -> Result<Option<Durability>, Failure> {
        let deadline = Instant::now() + limit;
        if self.setting("appendonly", limit)? != "yes" {
            // Snapshots are taken now and then; what came since the last one ends with the process.
            return Ok(Some(Durability::Memory));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        Ok(match self.setting("appendfsync", left)?.as_str() {
            "always" => Some(Durability::Fsync),
            "everysec" => Some(Durability::Group),
            "no" => Some(Durability::Os),
            _ => None,
        })
    }

    /// Empties the database of the endpoint and no other; of a cluster, all its primaries.
    fn reset(&mut self, limit: Duration) -> Result<(), Failure> {
        if self.settings.cluster {
            let deadline = Instant::now() + limit;
            for (host, port) in self.ranges(limit)?.primaries() {
                let left = deadline.saturating_duration_since(Instant::now());
                self.ask(&host, port, &[redis::cmd("FLUSHDB")], left)?;
            }
            return Ok(());
        }
        self.query(&redis::cmd("FLUSHDB"), limit).map(|_| ())
    }

    /// The statement is a command with its arguments, set apart by blanks; or `replication_lag`: bytes of writes that the
    /// replica furthest behind has not acknowledged, of which only the primary knows.
    fn statement(&mut self, statement: &str, limit: Duration) -> Result<String, Failure> {
        if statement.trim() == LAG {
            let answer = self.query(redis::cmd("INFO").arg("replication"), limit)?;
            let lag = Replication::read(&first_text(&answer)).lag()?;
            return Ok(lag.to_string());
        }
        let mut words = statement.split_whitespace();
        let name = words.next().ok_or_else(|| {
            Failure::new(ErrorClass::Client, "an empty statement asks for nothing")
        })?;
        let mut command = redis::cmd(name);
        for word in words {
            command.arg(word);
        }
        self.query(&command, limit)
            .map(|answer| first_text(&answer))
    }

    fn round_trip(&mut self, limit: Duration) -> Result<Duration, Failure> {
        let deadline = Instant::now() + limit;
        let ping = redis::cmd("PING");
        self.query(&ping, limit)?;
        let left = deadline.saturating_duration_since(Instant::now());
        let start = Instant::now();
        self.query(&ping, left)?;
        Ok(start.elapsed())
    }
}

/// `Redis 7.0.15`, or `Valkey 8.1.0` where it says that it is one.
fn version_of(information: &str) -> Option<String> {
    let value = |name: &str| {
        information.lines().find_map(|line| {
            let (left, right) = line.trim_end().split_once(':')?;
            (left == name).then(|| right.to_owned())
        })
    };
    if let Some(version) = value("valkey_version") {
        return Some(format!("Valkey {version}"));
    }
    value("redis_version").map(|version| format!("Redis {version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_the_server_section() {
        let redis = "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n";
        assert_eq!(version_of(redis).as_deref(), Some("Redis 7.0.15"));
        let valkey = "redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.0\r\n";
        assert_eq!(version_of(valkey).as_deref(), Some("Valkey 8.1.0"));
        assert_eq!(version_of("# Server\r\n"), None);
    }
}
