//! The `redis` driver: one connection per session, by TCP, TLS or unix socket, RESP2 or RESP3.
//!
//! `session` is the operation loop's side of one node, `cluster` that of several whose slots it follows (`slots`, `links`),
//! `control` the cold one, `replication` what servers say of their replicas, `wait` the writes that wait for them,
//! `custom` the user's own commands, `wire` the bytes of all, `spec` the rows. What no built-in operation needs is the
//! redis crate's.

mod cluster;
mod control;
mod custom;
mod links;
mod replication;
mod session;
mod slots;
mod spec;
mod wait;
mod wire;

use super::net::{self, tls};
use super::spec::{DriverSpec, Endpoint, Transport};
use super::{Control, Driver, Target, Worker};
use crate::op::{ErrorClass, Failure, Operation, Outcome, Reply};
use cluster::ClusterSession;
use custom::Custom;
use links::Map;
use redis::Cmd;
use session::{Session, Shared};
use spec::Login;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use wait::Wait;

pub struct Redis {
    settings: Arc<Settings>,
    shared: Arc<Shared>,
}

/// How a connection is made.
pub struct Settings {
    /// All endpoints of the target: nodes to ask for the others, or a primary and its replicas.
    endpoints: Vec<Endpoint>,
    cluster: bool,
    protocol: i64,
    client_name: String,
    /// Where the endpoint says nothing.
    login: Login,
    /// Made only where an endpoint asks for it: the system's certificates take a while to read.
    tls: Option<Arc<rustls::ClientConfig>>,
}

impl Driver for Redis {
    type Worker = RedisWorker;

    fn spec() -> &'static DriverSpec {
        &spec::SPEC
    }

    fn open(target: Target) -> Result<Redis, Failure> {
        let operations = target
            .operations
            .iter()
            .map(|operation| operation.as_ref().map(Custom::compile).transpose())
            .collect::<Result<_, _>>()?;
        let scan_count = target.options.integer("scan_count").unwrap_or(10);
        Ok(Redis {
            settings: Arc::new(Settings::of(&target)?),
            shared: Arc::new(Shared {
                operations,
                scan_count: scan_count.unsigned_abs(),
                wait: Wait::of(&target.options),
            }),
        })
    }

    fn worker(&self) -> Result<RedisWorker, Failure> {
        let settings = Arc::clone(&self.settings);
        let shared = Arc::clone(&self.shared);
        let map = Rc::new(Map::new(settings.endpoints.clone()));
        Ok(RedisWorker {
            settings,
            shared,
            map,
        })
    }

    fn control(&self, endpoint: &Endpoint) -> Result<Box<dyn Control>, Failure> {
        let control = control::RedisControl::new(
            endpoint.clone(),
            Arc::clone(&self.settings),
            Arc::clone(&self.shared),
        )?;
        Ok(Box::new(control))
    }
}

/// Sessions of one thread share what all share, and of a cluster what is known of its slots.
pub struct RedisWorker {
    settings: Arc<Settings>,
    shared: Arc<Shared>,
    map: Rc<Map>,
}

impl Worker for RedisWorker {
    type Session = Route;

    async fn session(&self, endpoints: &[Endpoint]) -> Result<Route, Failure> {
        let endpoint = endpoints.first().ok_or_else(|| {
            Failure::new(ErrorClass::Connect, "there is no endpoint to connect to")
        })?;
        if !self.settings.cluster {
            let session = self.settings.session(endpoint, &self.shared).await?;
            return Ok(Route::One(session));
        }
        let (settings, shared) = (Arc::clone(&self.settings), Arc::clone(&self.shared));
        let opening = ClusterSession::open(endpoint, settings, shared, Rc::clone(&self.map));
        Ok(Route::Cluster(Box::new(Box::pin(opening).await?)))
    }
}

/// Where the operations of a session go.
#[expect(
    clippy::large_enum_variant,
    reason = "a target's sessions are all of one kind, and that of one node is met without a pointer"
)]
pub enum Route {
    One(Session),
    Cluster(Box<ClusterSession>),
}

impl super::Session for Route {
    #[inline]
    async fn execute(&mut self, operation: &Operation, reply: &mut Reply) -> Outcome {
        match self {
            Route::One(session) => session.execute(operation, reply).await,
            Route::Cluster(cluster) => cluster.execute(operation, reply).await,
        }
    }

    async fn execute_batch(
        &mut self,
        operations: &[Operation],
        replies: &mut [Reply],
        outcomes: &mut Vec<Outcome>,
    ) {
        match self {
            Route::One(session) => session.execute_batch(operations, replies, outcomes).await,
            Route::Cluster(cluster) => cluster.execute_batch(operations, replies, outcomes).await,
        }
    }

    fn peer(&self) -> Option<SocketAddr> {
        match self {
            Route::One(session) => session.peer(),
            Route::Cluster(_) => None,
        }
    }

    fn take_answered(&mut self) -> Vec<(SocketAddr, u64)> {
        match self {
            Route::One(_) => Vec::new(),
            Route::Cluster(cluster) => cluster.take_answered(),
        }
    }

    fn take_replaced(&mut self) -> u64 {
        match self {
            Route::One(_) => 0,
            Route::Cluster(cluster) => cluster.take_replaced(),
        }
    }

    /// Of a cluster only the connection with the answer due is replaced, when the session is next used.
    fn survives_timeout(&self) -> bool {
        matches!(self, Route::Cluster(_))
    }

    fn connections(&self) -> u32 {
        match self {
            Route::One(_) => 1,
            Route::Cluster(cluster) => cluster.connections(),
        }
    }
}

impl Settings {
    fn of(target: &Target) -> Result<Settings, Failure> {
        let options = &target.options;
        let authority = options.text("tls_ca").map(PathBuf::from);
        Ok(Settings {
            endpoints: target.endpoints.clone(),
            cluster: options.bool("cluster"),
            protocol: options.integer("protocol").unwrap_or(2),
            client_name: options.text("client_name").unwrap_or_default(),
            login: Login {
                tls: false,
                username: options.text("username"),
                password: options.text("password"),
                database: options.integer("database"),
            },
            tls: match target.endpoints.iter().any(wants_tls) {
                true => Some(tls::client(
                    authority.as_deref(),
                    options.bool("tls_insecure"),
                )?),
                false => None,
            },
        })
    }

    /// Connects, logs in and makes sure of an answer.
    async fn session(&self, endpoint: &Endpoint, shared: &Arc<Shared>) -> Result<Session, Failure> {
        let (_, login) = spec::parse(&endpoint.text).map_err(|fault| {
            Failure::new(
                ErrorClass::Connect,
                format!("{}: {}", endpoint.label, fault.message),
            )
        })?;
        self.session_as(endpoint, &login, shared).await
    }

    /// As `session`, with what another endpoint says of the login: that of the node which told of this one.
    async fn session_as(
        &self,
        endpoint: &Endpoint,
        login: &Login,
        shared: &Arc<Shared>,
    ) -> Result<Session, Failure> {
        let mut connection = net::connect(endpoint).await?;
        if let (true, Transport::Tcp { host, .. }) = (login.tls, &endpoint.transport) {
            let config = match &self.tls {
                Some(config) => Arc::clone(config),
                None => tls::client(None, false)?,
            };
            connection = tls::handshake(connection, config, host).await?;
        }
        let mut session = Session::new(connection, Arc::clone(shared));
        for command in self.greeting(login) {
            session
                .query(&command)
                .await
                .map_err(|failure| refused(failure, &endpoint.label))?;
        }
        Ok(session)
    }

    /// What a new connection is told, in order; each must be answered well.
    fn greeting(&self, login: &Login) -> Vec<Cmd> {
        let password = login.password.as_ref().or(self.login.password.as_ref());
        let username = login.username.as_ref().or(self.login.username.as_ref());
        let database = login.database.or(self.login.database).unwrap_or(0);
        let mut commands = Vec::new();
        if self.protocol == 3 {
            let mut hello = redis::cmd("HELLO");
            hello.arg("3");
            if let Some(password) = password {
                let user = username.map_or("default", String::as_str);
                hello.arg("AUTH").arg(user).arg(password);
            }
            commands.push(hello);
        } else if let Some(password) = password {
            let mut auth = redis::cmd("AUTH");
            if let Some(username) = username {
                auth.arg(username);
            }
            commands.push(auth.arg(password).take());
        }
        if !self.client_name.is_empty() {
            let mut name = redis::cmd("CLIENT");
            commands.push(name.arg("SETNAME").arg(&self.client_name).take());
        }
        if database != 0 {
            commands.push(redis::cmd("SELECT").arg(database).take());
        }
        if commands.is_empty() {
            commands.push(redis::cmd("PING"));
        }
        commands
    }
}

fn wants_tls(endpoint: &Endpoint) -> bool {
    spec::parse(&endpoint.text).is_ok_and(|(_, login)| login.tls)
}

/// A connection that is not let in was not made.
fn refused(failure: Failure, label: &str) -> Failure {
    let message = format!("cannot connect to {label}: {}", failure.message);
    Failure::new(ErrorClass::Connect, message).with_code(failure.code)
}
