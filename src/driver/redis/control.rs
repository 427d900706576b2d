//! The cold side: readiness, version, settings, durability, reset. Opens a connection of its own and keeps it.

use super::Settings;
use super::custom::first_text;
use super::session::{Session, Shared};
use crate::driver::Control;
use crate::driver::net::blocking::Blocking;
use crate::driver::spec::{Durability, Endpoint};
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
        self.query(&redis::cmd("PING"), limit).map(|_| ())
    }

    fn version(&mut self, limit: Duration) -> Result<String, Failure> {
        let answer = self.query(redis::cmd("INFO").arg("server"), limit)?;
        version_of(&first_text(&answer)).ok_or_else(|| {
            Failure::new(ErrorClass::UnexpectedReply, "INFO server names no version")
        })
    }

    fn settings(&mut self, limit: Duration) -> Result<Vec<(String, String)>, Failure> {
        let deadline = Instant::now() + limit;
        SETTINGS
            .iter()
            .map(|name| {
                let left = deadline.saturating_duration_since(Instant::now());
                Ok(((*name).to_owned(), self.setting(name, left)?))
            })
            .collect()
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

    /// Empties the database of the endpoint and no other.
    fn reset(&mut self, limit: Duration) -> Result<(), Failure> {
        self.query(&redis::cmd("FLUSHDB"), limit).map(|_| ())
    }

    /// The statement is a command with its arguments, set apart by blanks.
    fn statement(&mut self, statement: &str, limit: Duration) -> Result<String, Failure> {
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
        self.ready(limit)?;
        let left = deadline.saturating_duration_since(Instant::now());
        let start = Instant::now();
        self.ready(left)?;
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
