//! The `mysql` driver: MySQL, MariaDB and what speaks their protocol, by TCP, TLS or unix socket.
//!
//! `session` executes operations, `table` makes the key/value table and knows its statements, `control` is the cold side,
//! `spec` the rows. The protocol is mysql_async's.

mod control;
mod session;
mod spec;
mod table;

use super::spec::{DriverSpec, Endpoint, Transport};
use super::sql::{self, Custom};
use super::{Control, Driver, Target, Worker, net};
use crate::op::{ErrorClass, Failure};
use mysql_async::{Conn, DriverError, Error, IoError, Opts, OptsBuilder, Pool};
use mysql_async::{PoolConstraints, PoolOpts, SslOpts};
use session::MysqlSession;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use table::Table;

pub struct Mysql {
    shared: Arc<Shared>,
}

/// The same for all sessions.
pub struct Shared {
    settings: Settings,
    operations: Vec<Option<Custom>>,
    table: Table,
}

/// How a connection is made and used.
struct Settings {
    reconnect_each: bool,
    /// Connections that the sessions of a worker share; 0 = each has its own.
    pool: usize,
    init: Vec<String>,
    statement_cache: usize,
    tls_ca: Option<PathBuf>,
    tls_insecure: bool,
}

impl Driver for Mysql {
    type Worker = MysqlWorker;

    fn spec() -> &'static DriverSpec {
        &spec::SPEC
    }

    fn open(target: Target) -> Result<Mysql, Failure> {
        let options = &target.options;
        let settings = Settings {
            reconnect_each: options.text("reconnect").as_deref() == Some("each"),
            pool: options.integer("pool").unwrap_or(0) as usize,
            init: spec::texts(&options.value("init")),
            statement_cache: options.integer("statement_cache").unwrap_or(32) as usize,
            tls_ca: options.text("tls_ca").map(PathBuf::from),
            tls_insecure: options.bool("tls_insecure"),
        };
        Ok(Mysql {
            shared: Arc::new(Shared {
                settings,
                operations: sql::compile_all(&target.operations, &spec::DIALECT)?,
                table: Table::new(options),
            }),
        })
    }

    fn worker(&self) -> Result<MysqlWorker, Failure> {
        Ok(MysqlWorker {
            shared: Arc::clone(&self.shared),
            pools: RefCell::default(),
        })
    }

    fn control(&self, endpoint: &Endpoint) -> Result<Box<dyn Control>, Failure> {
        let control = control::MysqlControl::new(endpoint.clone(), Arc::clone(&self.shared))?;
        Ok(Box::new(control))
    }
}

/// Sessions of one thread share a pool of connections where the options say so.
pub struct MysqlWorker {
    shared: Arc<Shared>,
    /// By the endpoint's text.
    pools: RefCell<HashMap<String, Pool>>,
}

impl Worker for MysqlWorker {
    type Session = MysqlSession;

    async fn session(&self, endpoints: &[Endpoint]) -> Result<MysqlSession, Failure> {
        let endpoint = endpoints.first().ok_or_else(|| {
            Failure::new(ErrorClass::Connect, "there is no endpoint to connect to")
        })?;
        let shared = Arc::clone(&self.shared);
        match self.shared.settings.pool {
            0 => MysqlSession::open(shared, endpoint).await,
            size => {
                let known = self.pools.borrow().get(&endpoint.text).cloned();
                let pool = match known {
                    Some(pool) => pool,
                    None => {
                        let pool = self.shared.settings.pool(endpoint, size)?;
                        let mut pools = self.pools.borrow_mut();
                        pools.insert(endpoint.text.clone(), pool.clone());
                        pool
                    }
                };
                MysqlSession::pooled(shared, endpoint, pool).await
            }
        }
    }
}

impl Settings {
    /// The crate's options for an endpoint.
    fn options(&self, endpoint: &Endpoint) -> Result<OptsBuilder, Failure> {
        let (_, login) = spec::parse(&endpoint.text).map_err(|fault| {
            let message = format!("{}: {}", endpoint.label, fault.message);
            Failure::new(ErrorClass::Connect, message)
        })?;
        let mut builder = OptsBuilder::default()
            .user(login.user)
            .pass(login.password)
            .db_name(login.database)
            // The crate would connect by TCP first, and then ask the server for its socket.
            .prefer_socket(false)
            .tcp_nodelay(true)
            // Else two settings are asked of the server on every connection.
            .max_allowed_packet(Some(1 << 30))
            .wait_timeout(Some(28_800))
            // An update that changes nothing has found its row all the same.
            .client_found_rows(true)
            .stmt_cache_size(self.statement_cache)
            .init(self.init.clone());
        match &endpoint.transport {
            Transport::Tcp {
                host,
                port,
                addresses,
            } => {
                let addresses = match addresses.is_empty() {
                    true => net::resolve(host, *port)?,
                    false => addresses.clone(),
                };
                let ips: Vec<_> = addresses.iter().map(std::net::SocketAddr::ip).collect();
                builder = builder.ip_or_hostname(host).tcp_port(*port);
                builder = builder.resolved_ips(Some(ips));
            }
            Transport::Unix { path } => {
                builder = builder.socket(Some(path.display().to_string()));
                builder = builder.prefer_socket(true);
            }
            Transport::Directory { .. } | Transport::Nothing => {}
        }
        if login.tls {
            builder = builder.ssl_opts(Some(self.tls()));
        }
        Ok(builder)
    }

    fn tls(&self) -> SslOpts {
        let mut tls = SslOpts::default().with_danger_accept_invalid_certs(self.tls_insecure);
        if let Some(path) = &self.tls_ca {
            let roots = vec![path.clone().into()];
            tls = tls.with_root_certs(roots).with_disable_built_in_roots(true);
        }
        tls
    }

    async fn connect(&self, endpoint: &Endpoint) -> Result<Conn, Failure> {
        let connected = Conn::new(Opts::from(self.options(endpoint)?)).await;
        connected.map_err(|error| refused(&error, &endpoint.label))
    }

    fn pool(&self, endpoint: &Endpoint, size: usize) -> Result<Pool, Failure> {
        let constraints = PoolConstraints::new(size, size).ok_or_else(|| {
            Failure::new(ErrorClass::Client, "a pool has at least one connection")
        })?;
        let options = PoolOpts::default()
            .with_constraints(constraints)
            // Else every operation is followed by a reset of its connection.
            .with_reset_connection(false);
        Ok(Pool::new(self.options(endpoint)?.pool_opts(options)))
    }
}

/// Too many connections.
const TOO_MANY: [u16; 2] = [1040, 1203];

/// A connection that was not made, told apart by its cause. Never shows a password.
fn refused(error: &Error, label: &str) -> Failure {
    match error {
        Error::Io(IoError::Io(error)) => Failure::connecting(error, label),
        Error::Server(error) => {
            let fix = match TOO_MANY.contains(&error.code) {
                true => "; raise max_connections, or use fewer threads",
                false => "",
            };
            let message = format!("cannot connect to {label}: {}{fix}", error.message);
            Failure::new(ErrorClass::Connect, message).with_code(error.code.to_string())
        }
        other => Failure::new(
            ErrorClass::Connect,
            format!("cannot connect to {label}: {other}"),
        ),
    }
}

/// A failure of an operation on an open connection.
fn failure(error: &Error) -> Failure {
    match error {
        Error::Server(error) => Failure::new(ErrorClass::Server, error.message.clone())
            .with_code(error.code.to_string()),
        Error::Io(IoError::Io(error)) => net::lost(error),
        Error::Driver(DriverError::ConnectionClosed) => Failure::new(
            ErrorClass::Reset,
            "connection lost: the server closed the connection",
        ),
        Error::Driver(DriverError::StmtParamsMismatch { required, supplied }) => {
            let message = format!("the statement has {required} parameters, {supplied} are bound");
            Failure::new(ErrorClass::Client, message)
        }
        other => Failure::new(ErrorClass::Protocol, format!("malformed answer: {other}")),
    }
}
