//! The `redis` driver: one connection per session, by TCP, TLS or unix socket, RESP2 or RESP3.
//!
//! `session` is the operation loop's side, `control` the cold one, `custom` the user's own commands, `wire` the bytes
//! of both, `spec` the rows. What no built-in operation needs is the redis crate's.

mod control;
mod custom;
mod session;
mod spec;
mod wire;

use super::net::{self, tls};
use super::spec::{DriverSpec, Endpoint, Transport};
use super::{Control, Driver, Target, Worker};
use crate::op::{ErrorClass, Failure};
use custom::Custom;
use redis::Cmd;
use session::{Session, Shared};
use spec::Login;
use std::path::PathBuf;
use std::sync::Arc;

pub struct Redis {
    settings: Arc<Settings>,
    shared: Arc<Shared>,
}

/// How a connection is made.
pub struct Settings {
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
            }),
        })
    }

    fn worker(&self) -> Result<RedisWorker, Failure> {
        Ok(RedisWorker {
            settings: Arc::clone(&self.settings),
            shared: Arc::clone(&self.shared),
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

/// Sessions of one thread share nothing but what all share.
pub struct RedisWorker {
    settings: Arc<Settings>,
    shared: Arc<Shared>,
}

impl Worker for RedisWorker {
    type Session = Session;

    async fn session(&self, endpoints: &[Endpoint]) -> Result<Session, Failure> {
        let endpoint = endpoints.first().ok_or_else(|| {
            Failure::new(ErrorClass::Connect, "there is no endpoint to connect to")
        })?;
        self.settings.session(endpoint, &self.shared).await
    }
}

impl Settings {
    fn of(target: &Target) -> Result<Settings, Failure> {
        let options = &target.options;
        let authority = options.text("tls_ca").map(PathBuf::from);
        Ok(Settings {
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
        let mut connection = net::connect(endpoint).await?;
        if let (true, Transport::Tcp { host, .. }) = (login.tls, &endpoint.transport) {
            let config = match &self.tls {
                Some(config) => Arc::clone(config),
                None => tls::client(None, false)?,
            };
            connection = tls::handshake(connection, config, host).await?;
        }
        let mut session = Session::new(connection, Arc::clone(shared));
        for command in self.greeting(&login) {
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
