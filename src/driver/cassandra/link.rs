//! Links: the crate's sessions, set up so that nothing of theirs disturbs a measurement, each shared by the sessions of
//! one thread on one endpoint.
//!
//! The crate multiplexes: a request has a stream id of its own on the connection, and an id whose request was given up is
//! not used again until its late answer came and was thrown away. So a timeout needs no other connection.

use super::fault::{failure, keyspace, not_connected, prepared, refused};
use super::policy::{Pinned, Repeat, plain};
use super::table::{self, DELETE, GET, SET, STATEMENTS};
use super::{Shared, custom, spec};
use crate::driver::Target;
use crate::driver::net::resolve;
use crate::driver::spec::{Endpoint, Transport};
use crate::op::{ErrorClass, Failure};
use crate::units::format_duration;
use scylla::client::PoolSize;
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::policies::retry::FallthroughRetryPolicy;
use scylla::policies::speculative_execution::SimpleSpeculativeExecutionPolicy;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, OnceCell};

/// Longer than any run: nothing is asked of the cluster while operations are timed.
const SILENCE: Duration = Duration::from_secs(365 * 24 * 3600);

/// Time for further connections of a pool to open before operations are timed.
const OTHERS: Duration = Duration::from_millis(100);

/// How links are made.
pub struct Settings {
    pub read: Consistency,
    pub write: Consistency,
    /// Whether an operation goes to the endpoint dealt to its session, and to no other.
    pub pinned: bool,
    pub retries: u32,
    pub speculative: Option<Duration>,
    pub connections: u32,
    keyspace: String,
    connect_timeout: Duration,
    /// All of the target: where the cluster is found when an operation may go to any node.
    contacts: Vec<Endpoint>,
}

impl Settings {
    pub fn of(target: &Target) -> Result<Settings, Failure> {
        let options = &target.options;
        let consistency = |name: &str| {
            let own = options.text(name);
            let text = own.or_else(|| options.text("consistency"));
            text.and_then(|text| consistency_of(&text))
                .unwrap_or(Consistency::One)
        };
        let count = |name: &str| {
            let number = options.integer(name).unwrap_or_default();
            u32::try_from(number).unwrap_or_default()
        };
        Ok(Settings {
            read: consistency("read_consistency"),
            write: consistency("write_consistency"),
            pinned: options.text("routing").as_deref() != Some("token"),
            retries: count("retries"),
            speculative: options.duration("speculative"),
            connections: count("connections").max(1),
            keyspace: options.text("keyspace").unwrap_or_default(),
            connect_timeout: target.connect_timeout,
            contacts: target.endpoints.clone(),
        })
    }

    /// Distinct nodes among the target's endpoints.
    pub fn nodes(&self) -> usize {
        let mut labels: Vec<&str> = self.contacts.iter().map(|e| e.label.as_str()).collect();
        labels.sort_unstable();
        labels.dedup();
        labels.len()
    }

    /// What tells the links of a thread apart.
    pub fn key(&self, endpoint: &Endpoint) -> String {
        match self.pinned {
            true => endpoint.text.clone(),
            false => String::new(),
        }
    }

    /// The endpoint's own keyspace, else that of the options.
    pub fn keyspace(&self, endpoint: &Endpoint) -> Result<String, Failure> {
        let own = login(endpoint)?.keyspace;
        Ok(own.unwrap_or_else(|| self.keyspace.clone()))
    }

    /// Whether attempts are counted: none is made twice otherwise.
    pub fn repeats(&self) -> bool {
        self.retries > 0 || self.speculative.is_some()
    }

    fn profile(&self, pinned: Option<&Pinned>) -> ExecutionProfile {
        let mut profile = ExecutionProfile::builder()
            // Timeouts are the engine's.
            .request_timeout(None)
            .consistency(Consistency::One);
        if let Some(pinned) = pinned {
            profile = profile.load_balancing_policy(Arc::new(pinned.clone()));
        }
        profile = match self.retries {
            0 => profile.retry_policy(Arc::new(FallthroughRetryPolicy::new())),
            times => profile.retry_policy(Arc::new(Repeat {
                times,
                same_node: self.pinned,
            })),
        };
        if let Some(retry_interval) = self.speculative {
            let policy = SimpleSpeculativeExecutionPolicy {
                max_retry_count: 1,
                retry_interval,
            };
            profile = profile.speculative_execution_policy(Some(Arc::new(policy)));
        }
        profile.build()
    }

    fn builder(
        &self,
        endpoint: &Endpoint,
        pinned: Option<&Pinned>,
    ) -> Result<SessionBuilder, Failure> {
        let login = login(endpoint)?;
        let connections = NonZeroUsize::new(self.connections as usize);
        let mut builder = SessionBuilder::new()
            .default_execution_profile_handle(self.profile(pinned).into_handle())
            .pool_size(PoolSize::PerHost(connections.unwrap_or(NonZeroUsize::MIN)))
            .connection_timeout(self.connect_timeout)
            .cluster_metadata_refresh_interval(SILENCE)
            // Whoever owns a key is asked for only where it decides whom to send to.
            .fetch_schema_metadata(!self.pinned)
            .fetch_full_schema_metadata(false)
            .driver_config_reporting(false);
        builder = match pinned {
            Some(pinned) => builder
                .known_nodes_addr(addresses(endpoint)?)
                .host_filter(Arc::new(pinned.clone())),
            None => builder.known_nodes(self.contacts.iter().map(|contact| &contact.label)),
        };
        if let Some(name) = login.username {
            builder = builder.user(name, login.password.unwrap_or_default());
        }
        Ok(builder)
    }
}

fn login(endpoint: &Endpoint) -> Result<spec::Login, Failure> {
    let parsed = spec::parse(&endpoint.text);
    parsed
        .map(|(_, login)| login)
        .map_err(|fault| Failure::new(ErrorClass::Client, fault.message))
}

fn addresses(endpoint: &Endpoint) -> Result<Vec<SocketAddr>, Failure> {
    match &endpoint.transport {
        Transport::Tcp {
            host,
            port,
            addresses,
        } if addresses.is_empty() => resolve(host, *port),
        Transport::Tcp { addresses, .. } => Ok(addresses.clone()),
        _ => Err(Failure::new(
            ErrorClass::Client,
            format!("{} is no address", endpoint.label),
        )),
    }
}

/// As the options name them.
const CONSISTENCIES: [(&str, Consistency); 9] = [
    ("any", Consistency::Any),
    ("one", Consistency::One),
    ("two", Consistency::Two),
    ("three", Consistency::Three),
    ("quorum", Consistency::Quorum),
    ("all", Consistency::All),
    ("local_quorum", Consistency::LocalQuorum),
    ("each_quorum", Consistency::EachQuorum),
    ("local_one", Consistency::LocalOne),
];

fn consistency_of(text: &str) -> Option<Consistency> {
    let found = CONSISTENCIES.iter().find(|(name, _)| *name == text);
    found.map(|(_, consistency)| *consistency)
}

/// The option's word for it.
pub fn consistency_name(consistency: Consistency) -> &'static str {
    let found = CONSISTENCIES.iter().find(|(_, one)| *one == consistency);
    found.map_or("", |(name, _)| name)
}

/// One of the crate's sessions, and what was prepared on it.
pub struct Link {
    pub cql: Session,
    pub label: String,
    pub keyspace: String,
    /// The node's address, where there is only one.
    pub peer: Option<SocketAddr>,
    pinned: Option<Pinned>,
    shared: Arc<Shared>,
    built_in: OnceCell<[PreparedStatement; STATEMENTS]>,
    /// By operation and position in it.
    own: Mutex<HashMap<(u16, usize), PreparedStatement>>,
    /// The keyspace is that of unqualified names.
    entered: AtomicBool,
    /// Connections that no session has been told of.
    untold: AtomicU32,
}

impl Link {
    /// Connects, and makes sure that a node to send operations to is connected. Errors: `connect` and its like.
    pub async fn open(shared: Arc<Shared>, endpoint: Endpoint) -> Result<Link, Failure> {
        let limit = shared.settings.connect_timeout;
        let label = endpoint.label.clone();
        let opening = tokio::time::timeout(limit, Link::connect(shared, endpoint));
        opening.await.unwrap_or_else(|_| {
            let reason = format!("not within {}", format_duration(limit));
            Err(not_connected(&reason, &label))
        })
    }

    async fn connect(shared: Arc<Shared>, endpoint: Endpoint) -> Result<Link, Failure> {
        let settings = &shared.settings;
        let pinned = match settings.pinned {
            true => Some(Pinned::to(&addresses(&endpoint)?)),
            false => None,
        };
        let builder = settings.builder(&endpoint, pinned.as_ref())?;
        let cql = builder.build().await;
        let cql = cql.map_err(|error| refused(&error, &endpoint.label))?;
        let cluster = cql.get_cluster_state();
        let nodes = cluster.get_nodes_info().iter();
        let nodes = nodes.filter(|node| node.is_connected()).count() as u32;
        let peer = pinned.as_ref().and_then(|pinned| pinned.node(&cluster));
        let peer = peer.map(|node| plain(node.address));
        let link = Link {
            keyspace: settings.keyspace(&endpoint)?,
            untold: AtomicU32::new(nodes * settings.connections),
            label: endpoint.label,
            cql,
            peer,
            pinned,
            shared,
            built_in: OnceCell::new(),
            own: Mutex::default(),
            entered: AtomicBool::new(false),
        };
        match link.is_connected() {
            true => Ok(link),
            false => Err(link.disconnected().await),
        }
    }

    /// Opens a link that sessions can work on: table, keyspace and prepared statements are there before anything is timed.
    pub async fn for_sessions(shared: Arc<Shared>, endpoint: Endpoint) -> Result<Link, Failure> {
        let link = Link::open(shared, endpoint).await?;
        if link.shared.settings.connections > 1 {
            // The crate tells of the first connection only, and opens the others at once then.
            tokio::time::sleep(OTHERS).await;
        }
        match link.shared.operations.iter().any(Option::is_some) {
            // Whether the built-in operations are wanted at all shows when one comes.
            true => link.enter_keyspace().await?,
            false => link.built_in().await.map(drop)?,
        }
        Ok(link)
    }

    /// Whether a node that operations may go to is connected.
    pub fn is_connected(&self) -> bool {
        let cluster = self.cql.get_cluster_state();
        match &self.pinned {
            Some(pinned) => pinned
                .node(&cluster)
                .is_some_and(|node| node.is_connected()),
            None => {
                let mut nodes = cluster.get_nodes_info().iter();
                nodes.any(|node| node.is_connected())
            }
        }
    }

    /// Why no node is connected, as the crate tells it.
    pub async fn disconnected(&self) -> Failure {
        let answer = self
            .cql
            .query_unpaged("SELECT key FROM system.local", ())
            .await;
        let reason = match answer {
            Ok(_) => "the connection was lost".to_owned(),
            Err(error) => failure(&error).message,
        };
        not_connected(&reason, &self.label)
    }

    /// The prepared statements of the built-in operations; their table is made where there is none.
    pub async fn built_in(&self) -> Result<&[PreparedStatement; STATEMENTS], Failure> {
        let preparing = self.built_in.get_or_try_init(async || {
            self.shared.table.make(&self.cql, &self.keyspace).await?;
            let texts = table::statements(&self.keyspace);
            let mut statements = Vec::with_capacity(STATEMENTS);
            for (position, text) in texts.iter().enumerate() {
                let mut statement = self.prepare(text).await?;
                statement.set_is_idempotent([GET, SET, DELETE].contains(&position));
                // The table is ours: its columns stay what they are.
                statement.set_use_cached_result_metadata(position == GET);
                statements.push(statement);
            }
            let statements = <[PreparedStatement; STATEMENTS]>::try_from(statements);
            Ok(statements.unwrap_or_else(|_| unreachable!("one for each text")))
        });
        preparing.await
    }

    /// A prepared statement of an operation of the scenario's own.
    pub async fn own(
        &self,
        operation: u16,
        position: usize,
        cql: &str,
        idempotent: bool,
    ) -> Result<PreparedStatement, Failure> {
        let mut own = self.own.lock().await;
        if let Some(statement) = own.get(&(operation, position)) {
            return Ok(statement.clone());
        }
        let mut statement = self.prepare(cql).await?;
        statement.set_is_idempotent(idempotent || custom::reads(cql));
        own.insert((operation, position), statement.clone());
        Ok(statement)
    }

    async fn prepare(&self, text: &str) -> Result<PreparedStatement, Failure> {
        let statement = self.cql.prepare(text).await;
        let mut statement = statement.map_err(|error| prepared(&error))?;
        statement.set_consistency(match custom::reads(text) {
            true => self.shared.settings.read,
            false => self.shared.settings.write,
        });
        Ok(statement)
    }

    /// Makes the keyspace, where it is there, the one of unqualified names.
    pub async fn enter_keyspace(&self) -> Result<(), Failure> {
        if self.entered.load(Ordering::Relaxed)
            || table::replication(&self.cql, &self.keyspace)
                .await?
                .is_none()
        {
            return Ok(());
        }
        let entering = self.cql.use_keyspace(self.keyspace.as_str(), true).await;
        entering.map_err(|error| keyspace(&error))?;
        self.entered.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Connections that are counted with the session that asks: all of them with the first.
    pub fn take_connections(&self) -> u32 {
        self.untold.swap(0, Ordering::Relaxed)
    }
}
