//! The cold side: readiness, version, settings, reset, single questions. Opens a link of its own to its one node and keeps it.

use super::Shared;
use super::link::Link;
use super::messages::{Part, Put};
use crate::driver::Control;
use crate::driver::net::blocking::Blocking;
use crate::driver::spec::{Durability, Endpoint};
use crate::op::{ErrorClass, Failure, Operation, Reply};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The key that readiness writes and deletes again.
const PROBE: &[u8] = b"dbbench-ready";

/// What of a node's statistics a reader of the results wants to know; HTTP only.
const STATISTICS: [&str; 3] = ["nodename", "ring_num_partitions", "storage_backend"];

pub struct RiakControl {
    endpoint: Endpoint,
    shared: Arc<Shared>,
    link: Option<Link>,
    blocking: Blocking,
}

impl RiakControl {
    pub fn new(endpoint: Endpoint, shared: Arc<Shared>) -> Result<RiakControl, Failure> {
        Ok(RiakControl {
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
        work: impl AsyncFnOnce(&mut Link) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let what = format!("a question to {}", self.endpoint.label);
        let open = self.link.take();
        let (answer, link) = self.blocking.run(limit, &what, async {
            let mut link = match open {
                Some(link) => link,
                None => Link::open(&self.shared, &self.endpoint).await?,
            };
            Ok((work(&mut link).await, link))
        })?;
        if !answer.as_ref().is_err_and(|failure| failure.broken) {
            self.link = Some(link);
        }
        answer
    }
}

impl Control for RiakControl {
    /// The node answers, has as many others in its ring as the target has endpoints, and takes a write: in the first second
    /// after its start it answers, and does none.
    fn ready(&mut self, limit: Duration) -> Result<(), Failure> {
        let wanted = self.shared.settings.nodes;
        let label = self.endpoint.label.clone();
        self.with(limit, async |link| {
            link.ping().await?;
            if let Link::Http(http) = link
                && wanted > 1
            {
                let nodes = ring_members(&http.statistics().await?);
                if nodes < wanted {
                    let message = format!("{label} knows {nodes} of {wanted} nodes");
                    return Err(Failure::new(ErrorClass::Server, message));
                }
            }
            let probe = Operation {
                key: PROBE.to_vec(),
                ..Operation::default()
            };
            let reply = &mut Reply::default();
            link.put(&probe, Put::Plain, reply).await?;
            link.delete(&probe, reply).await.map(drop)
        })
    }

    /// `Riak KV 3.2.3`; by protocol buffers what the node calls its version.
    fn version(&mut self, limit: Duration) -> Result<String, Failure> {
        self.with(limit, async |link| {
            let version = match link {
                Link::Http(http) => text_of(&http.statistics().await?, "riak_kv_version"),
                Link::Pb(pb) => pb.version().await?,
            };
            Ok(format!("Riak KV {version}").trim_end().to_owned())
        })
    }

    /// The bucket's properties as the node has them, what the node is, and how it is asked.
    fn settings(&mut self, limit: Duration) -> Result<Vec<(String, String)>, Failure> {
        let shared = Arc::clone(&self.shared);
        self.with(limit, async |link| {
            let client = &shared.settings;
            let mut settings = vec![(
                "interface".to_owned(),
                match client.protocol_buffers {
                    true => "pb".to_owned(),
                    false => "http".to_owned(),
                },
            )];
            let bucket_type = client.bucket_type.as_deref().unwrap_or("default");
            settings.push(("bucket_type".to_owned(), bucket_type.to_owned()));
            settings.push(("bucket".to_owned(), client.bucket.clone()));
            for (name, value) in link.properties().await?.listed() {
                settings.push((format!("bucket_{name}"), value));
            }
            for (name, quorum) in client.quorums() {
                settings.push((format!("asked_{name}"), quorum.word()));
            }
            if let Link::Http(http) = link {
                let statistics = http.statistics().await?;
                for name in STATISTICS {
                    settings.push((name.to_owned(), text_of(&statistics, name)));
                }
                let nodes = ring_members(&statistics).to_string();
                settings.push(("ring_members".to_owned(), nodes));
            }
            Ok(settings)
        })
    }

    /// A node does not tell when its backend forces writes to disk.
    fn durability(&mut self, _: Duration) -> Result<Option<Durability>, Failure> {
        Ok(None)
    }

    /// Deletes every key of the bucket and of no other.
    fn reset(&mut self, limit: Duration) -> Result<(), Failure> {
        self.with(limit, async |link| {
            let keys = link.keys(limit).await?;
            link.delete_all(&keys).await
        })
    }

    /// `keys`: how many the bucket has, deleted ones among them for some seconds; `get KEY`; by HTTP `stats NAME` and
    /// `GET /path` too.
    fn statement(&mut self, statement: &str, limit: Duration) -> Result<String, Failure> {
        let words: Vec<&str> = statement.split_whitespace().collect();
        self.with(limit, async |link| match (words.as_slice(), link) {
            (["keys"], link) => Ok(link.keys(limit).await?.len().to_string()),
            (["get", key], link) => {
                let operation = Operation {
                    key: key.as_bytes().to_vec(),
                    ..Operation::default()
                };
                let mut reply = Reply {
                    wants_text: true,
                    ..Reply::default()
                };
                link.get(&operation, Part::Value, &mut reply).await?;
                Ok(reply.text.map(String::from).unwrap_or_default())
            }
            (["stats", name], Link::Http(http)) => Ok(text_of(&http.statistics().await?, name)),
            (["GET", path], Link::Http(http)) => Ok(http.page(path).await?.trim().to_owned()),
            _ => Err(Failure::new(
                ErrorClass::Client,
                "a question to Riak is `keys` or `get KEY`, and by HTTP `stats NAME` or `GET /path`",
            )),
        })
    }

    fn round_trip(&mut self, limit: Duration) -> Result<Duration, Failure> {
        self.with(limit, async |link| {
            link.ping().await?;
            let start = Instant::now();
            link.ping().await?;
            Ok(start.elapsed())
        })
    }
}

fn ring_members(statistics: &Map<String, Value>) -> usize {
    let members = statistics.get("ring_members").and_then(Value::as_array);
    members.map_or(0, Vec::len)
}

/// A statistic as text; empty where the node has none of the name.
fn text_of(statistics: &Map<String, Value>, name: &str) -> String {
    match statistics.get(name) {
        None => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}
