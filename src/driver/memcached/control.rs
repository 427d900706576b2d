//! The cold side: readiness, version, settings, reset. Speaks the text protocol, whatever the sessions speak, on a
//! connection of its own that it keeps.

use crate::driver::Control;
use crate::driver::net::blocking::Blocking;
use crate::driver::net::{self, Connection, lost};
use crate::driver::spec::{Durability, Endpoint};
use crate::op::{ErrorClass, Failure};
use std::time::{Duration, Instant};

/// What a reader of the results wants to know, in this order; servers of other makes know some or none of it.
const SETTINGS: [&str; 7] = [
    "maxbytes",
    "num_threads",
    "maxconns",
    "item_size_max",
    "evictions",
    "cas_enabled",
    "hash_algorithm",
];

/// Bytes of one line of statistics at most.
const LONGEST_LINE: usize = 64 * 1024;

pub struct MemcachedControl {
    endpoint: Endpoint,
    blocking: Blocking,
    connection: Option<Connection>,
}

impl MemcachedControl {
    pub fn new(endpoint: Endpoint) -> Result<MemcachedControl, Failure> {
        Ok(MemcachedControl {
            endpoint,
            blocking: Blocking::new()?,
            connection: None,
        })
    }

    /// Sends one line; returns the lines of the answer, without `END`. An error line is a failure.
    fn ask(&mut self, command: &str, limit: Duration) -> Result<Vec<String>, Failure> {
        let what = format!("`{command}` by {}", self.endpoint.label);
        let open = self.connection.take();
        let result = self.blocking.run(limit, &what, async {
            let mut connection = match open {
                Some(connection) => connection,
                None => net::connect(&self.endpoint).await?,
            };
            let lines = exchange(&mut connection, command).await;
            Ok((lines.map_err(|error| lost(&error))?, connection))
        });
        let (lines, connection) = result?;
        self.connection = Some(connection);
        match lines.first() {
            Some(line) if is_error(line) => {
                let code = line.split(' ').next().unwrap_or_default();
                Err(Failure::new(ErrorClass::Server, line.as_str()).with_code(code))
            }
            _ => Ok(lines),
        }
    }

    /// (name, value) of each line of statistics.
    fn statistics(
        &mut self,
        command: &str,
        limit: Duration,
    ) -> Result<Vec<(String, String)>, Failure> {
        let lines = self.ask(command, limit)?;
        let pairs = lines.iter().filter_map(|line| {
            let (name, value) = line.strip_prefix("STAT ")?.split_once(' ')?;
            Some((name.to_owned(), value.to_owned()))
        });
        Ok(pairs.collect())
    }
}

/// Answers of one line, or of several that end with `END`.
async fn exchange(connection: &mut Connection, command: &str) -> std::io::Result<Vec<String>> {
    connection
        .send(format!("{command}\r\n").as_bytes(), b"", b"")
        .await?;
    let mut lines = Vec::new();
    loop {
        let length = connection.receive_line(LONGEST_LINE).await?;
        let line = String::from_utf8_lossy(&connection.received()[..length])
            .trim_end()
            .to_owned();
        connection.consume(length);
        match line.as_str() {
            "END" => return Ok(lines),
            _ if line.starts_with("STAT ") || line.starts_with("VALUE ") => lines.push(line),
            // The block behind a `VALUE` line.
            _ if lines.last().is_some_and(|last| last.starts_with("VALUE ")) => lines.push(line),
            _ => return Ok(vec![line]),
        }
    }
}

fn is_error(line: &str) -> bool {
    ["ERROR", "CLIENT_ERROR", "SERVER_ERROR"].contains(&line.split(' ').next().unwrap_or_default())
}

impl Control for MemcachedControl {
    fn ready(&mut self, limit: Duration) -> Result<(), Failure> {
        self.ask("version", limit).map(|_| ())
    }

    /// `memcached 1.6.18`; other servers name themselves (`KyotoTycoon/0.9.56b`).
    fn version(&mut self, limit: Duration) -> Result<String, Failure> {
        let lines = self.ask("version", limit)?;
        let version = lines.first().and_then(|line| line.strip_prefix("VERSION "));
        match version {
            Some(number) if number.starts_with(|first: char| first.is_ascii_digit()) => {
                Ok(format!("memcached {number}"))
            }
            Some(other) => Ok(other.to_owned()),
            None => Err(Failure::new(
                ErrorClass::UnexpectedReply,
                "the answer to `version` names none",
            )),
        }
    }

    fn settings(&mut self, limit: Duration) -> Result<Vec<(String, String)>, Failure> {
        let known = match self.statistics("stats settings", limit) {
            // A server that has no such statistics.
            Err(failure) if failure.class == ErrorClass::Server => Vec::new(),
            other => other?,
        };
        let wanted = SETTINGS.iter().filter_map(|name| {
            let (name, value) = known.iter().find(|(known, _)| known == name)?;
            Some((name.clone(), value.clone()))
        });
        Ok(wanted.collect())
    }

    /// Memory for memcached itself; what other servers of its protocol keep cannot be asked.
    fn durability(&mut self, limit: Duration) -> Result<Option<Durability>, Failure> {
        let version = self.version(limit)?;
        Ok(version
            .starts_with("memcached ")
            .then_some(Durability::Memory))
    }

    fn reset(&mut self, limit: Duration) -> Result<(), Failure> {
        self.ask("flush_all", limit).map(|_| ())
    }

    /// One line of the text protocol. `stats NAME` where NAME is one of the general statistics gives its value; else
    /// the first line's last word of statistics, or the first line.
    fn statement(&mut self, statement: &str, limit: Duration) -> Result<String, Failure> {
        let words: Vec<&str> = statement.split_whitespace().collect();
        if let ["stats", name] = words.as_slice() {
            let all = self.statistics("stats", limit)?;
            if let Some((_, value)) = all.into_iter().find(|(known, _)| known == name) {
                return Ok(value);
            }
        }
        let lines = self.ask(&words.join(" "), limit)?;
        match lines.as_slice() {
            [] => Ok(String::new()),
            [value, data, ..] if value.starts_with("VALUE ") => Ok(data.clone()),
            [line, ..] => Ok(match line.strip_prefix("STAT ") {
                Some(pair) => pair.split_once(' ').map_or(pair, |(_, value)| value),
                None => line,
            }
            .to_owned()),
        }
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
