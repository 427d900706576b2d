//! The cold side: readiness, version, settings, durability, reset, single statements. Opens a link of its own to its one
//! endpoint and keeps it.

use super::Shared;
use super::fault::failure;
use super::link::{Link, consistency_name};
use super::table::{self, ask, first_cells, schema_versions};
use super::value::first_of;
use crate::driver::Control;
use crate::driver::net::blocking::Blocking;
use crate::driver::spec::{Durability, Endpoint};
use crate::op::{ErrorClass, Failure};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub struct CassandraControl {
    endpoint: Endpoint,
    shared: Arc<Shared>,
    link: Option<Link>,
    // After the link, whose tasks run in it.
    blocking: Blocking,
}

impl CassandraControl {
    pub fn new(endpoint: Endpoint, shared: Arc<Shared>) -> Result<CassandraControl, Failure> {
        Ok(CassandraControl {
            endpoint,
            shared,
            link: None,
            blocking: Blocking::new()?,
        })
    }

    /// Runs `work` on the link; it is opened where there is none, and kept unless it broke.
    fn with<T>(
        &mut self,
        limit: Duration,
        work: impl AsyncFnOnce(&Link) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let what = format!("a question to {}", self.endpoint.label);
        let open = self.link.take();
        let (answer, link) = self.blocking.run(limit, &what, async {
            let link = match open {
                Some(link) => link,
                None => Link::open(Arc::clone(&self.shared), self.endpoint.clone()).await?,
            };
            Ok((work(&link).await, link))
        })?;
        if !answer.as_ref().is_err_and(|failure| failure.broken) {
            self.link = Some(link);
        }
        answer
    }
}

impl Control for CassandraControl {
    /// The node answers, lists as many others with their tokens as the target has endpoints, and all of them have one
    /// schema.
    fn ready(&mut self, limit: Duration) -> Result<(), Failure> {
        let wanted = self.shared.settings.nodes();
        self.with(limit, async |link| {
            first_cells(&link.cql, "SELECT release_version FROM system.local").await?;
            let tokens = first_cells(&link.cql, "SELECT tokens FROM system.peers").await?;
            let nodes = tokens.len() + 1;
            let not_yet = |message: String| Err(Failure::new(ErrorClass::Server, message));
            if nodes < wanted {
                return not_yet(format!("{} knows {nodes} of {wanted} nodes", link.label));
            }
            match schema_versions(&link.cql).await? {
                0 | 1 => Ok(()),
                several => not_yet(format!("the nodes have {several} different schemas")),
            }
        })
    }

    /// `Cassandra 5.0.9` or `ScyllaDB 6.2.0`.
    fn version(&mut self, limit: Duration) -> Result<String, Failure> {
        self.with(limit, async |link| {
            let question = "SELECT version FROM system.versions WHERE key = 'local'";
            if let Some(version) = optional(link, question).await? {
                return Ok(format!("ScyllaDB {version}"));
            }
            let question = "SELECT release_version FROM system.local";
            match optional(link, question).await? {
                Some(version) => Ok(format!("Cassandra {version}")),
                None => Err(Failure::new(
                    ErrorClass::UnexpectedReply,
                    "system.local names no version",
                )),
            }
        })
    }

    /// What the cluster is, how it keeps the table, and how it is asked.
    fn settings(&mut self, limit: Duration) -> Result<Vec<(String, String)>, Failure> {
        let shared = Arc::clone(&self.shared);
        self.with(limit, async |link| {
            let mut settings = of_cluster(link).await?;
            settings.extend(of_table(link).await?);
            settings.extend(of_client(&shared));
            Ok(settings)
        })
    }

    /// What a node's commit log gives an acknowledged write. How many nodes have it is the consistency's.
    fn durability(&mut self, limit: Duration) -> Result<Option<Durability>, Failure> {
        self.with(limit, async |link| {
            Ok(match setting(link, "commitlog_sync").await?.as_deref() {
                // Forced now and then; what came since is in the operating system's cache.
                Some("periodic") => Some(Durability::Group),
                // Acknowledged when it was forced, alone or together with others.
                Some("batch" | "group") => Some(Durability::Fsync),
                _ => None,
            })
        })
    }

    /// Empties the table of the built-in operations and no other.
    fn reset(&mut self, limit: Duration) -> Result<(), Failure> {
        let shared = Arc::clone(&self.shared);
        self.with(limit, async |link| {
            shared.table.renew(&link.cql, &link.keyspace).await
        })
    }

    fn statement(&mut self, statement: &str, limit: Duration) -> Result<String, Failure> {
        self.with(limit, async |link| {
            link.enter_keyspace().await?;
            let answer = link.cql.query_unpaged(statement, ()).await;
            let rows = first_of(answer.map_err(|error| failure(&error))?, 1)?;
            let first = rows.cells.into_iter().next().flatten().unwrap_or_default();
            Ok(String::from_utf8_lossy(&first).into_owned())
        })
    }

    fn round_trip(&mut self, limit: Duration) -> Result<Duration, Failure> {
        self.with(limit, async |link| {
            let question = "SELECT key FROM system.local WHERE key = 'local'";
            first_cells(&link.cql, question).await?;
            let start = Instant::now();
            first_cells(&link.cql, question).await?;
            Ok(start.elapsed())
        })
    }
}

/// The first value of an answer; None where there is none, or where the server has no such table.
async fn optional(link: &Link, question: &str) -> Result<Option<String>, Failure> {
    match first_cells(&link.cql, question).await {
        Ok(cells) => {
            let first = cells.into_iter().next();
            Ok(first.map(|cell| String::from_utf8_lossy(&cell).into_owned()))
        }
        Err(failure) if failure.class == ErrorClass::Server => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// A setting of the node, where Cassandra or ScyllaDB lists it.
async fn setting(link: &Link, name: &str) -> Result<Option<String>, Failure> {
    for table in ["system_views.settings", "system.config"] {
        let question = format!("SELECT value FROM {table} WHERE name = '{name}'");
        if let Some(value) = optional(link, &question).await? {
            return Ok(Some(value.trim_matches('"').to_owned()));
        }
    }
    Ok(None)
}

async fn of_cluster(link: &Link) -> Result<Vec<(String, String)>, Failure> {
    let mut settings = Vec::new();
    for name in ["cluster_name", "partitioner", "data_center"] {
        let question = format!("SELECT {name} FROM system.local");
        let value = optional(link, &question).await?.unwrap_or_default();
        settings.push((name.to_owned(), value));
    }
    let peers = first_cells(&link.cql, "SELECT peer FROM system.peers").await?;
    settings.push(("cluster_size".to_owned(), (peers.len() + 1).to_string()));
    for name in ["commitlog_sync", "commitlog_sync_period"] {
        let value = setting(link, name).await?.unwrap_or_default();
        settings.push((name.to_owned(), value));
    }
    Ok(settings)
}

/// Empty where there is no table yet.
async fn of_table(link: &Link) -> Result<Vec<(String, String)>, Failure> {
    let replication = table::replication(&link.cql, &link.keyspace).await?;
    let question = "SELECT compaction, compression FROM system_schema.tables \
        WHERE keyspace_name = ? AND table_name = 'kv'";
    type Options = BTreeMap<String, String>;
    let tables: Vec<(Options, Options)> =
        ask(&link.cql, question, (link.keyspace.as_str(),)).await?;
    let (compaction, compression) = tables.into_iter().next().unwrap_or_default();
    Ok([
        ("keyspace", link.keyspace.clone()),
        ("replication", listed(&replication.unwrap_or_default())),
        ("compaction", listed(&compaction)),
        ("compression", listed(&compression)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec())
}

fn of_client(shared: &Shared) -> Vec<(String, String)> {
    let settings = &shared.settings;
    let routing = match settings.pinned {
        true => "endpoints",
        false => "token",
    };
    let speculative = settings.speculative.map(crate::units::format_duration);
    [
        (
            "read_consistency",
            consistency_name(settings.read).to_owned(),
        ),
        (
            "write_consistency",
            consistency_name(settings.write).to_owned(),
        ),
        ("routing", routing.to_owned()),
        ("connections", settings.connections.to_string()),
        ("retries", settings.retries.to_string()),
        (
            "speculative",
            speculative.unwrap_or_else(|| "off".to_owned()),
        ),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

/// `class=SimpleStrategy replication_factor=2`; packages of classes left out.
fn listed(map: &BTreeMap<String, String>) -> String {
    let parts = map.iter().map(|(name, value)| {
        let value = match name.as_str() {
            "class" => value.rsplit('.').next().unwrap_or(value),
            _ => value,
        };
        format!("{name}={value}")
    });
    parts.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_a_table_are_listed_in_order() {
        let map = [
            ("class", "org.apache.cassandra.locator.SimpleStrategy"),
            ("replication_factor", "2"),
        ];
        let map = map.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(
            listed(&map.into()),
            "class=SimpleStrategy replication_factor=2"
        );
    }
}
