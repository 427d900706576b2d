//! Clients of the crate: how they are set up so that nothing of theirs disturbs a measurement, and when one is open.
//!
//! A client's monitor keeps one connection of its own to learn that the server is there; here it asks once and then
//! stays silent. The crate waits for a server that refuses until its time is over, so the monitor's first failure is
//! listened to, and ends the wait.

use super::command::Concerns;
use super::fault::refused;
use crate::driver::Target;
use crate::driver::spec::{Endpoint, Transport};
use crate::op::{ErrorClass, Failure};
use mongodb::bson::doc;
use mongodb::error::Error;
use mongodb::event::EventHandler;
use mongodb::event::sdam::SdamEvent;
use mongodb::options::{ClientOptions, ServerAddress, ServerMonitoringMode};
use mongodb::{Client, Database};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::sync::watch;

/// Longer than any run: the monitor asks again only when an operation found the server gone.
const SILENCE: Duration = Duration::from_secs(365 * 24 * 3600);

const DEFAULT_DATABASE: &str = "dbbench";

/// How clients are made.
pub struct Settings {
    /// Connections of a client that the sessions of a thread share; None where each session has its own client.
    pub pool_size: Option<u32>,
    pub concerns: Concerns,
    connect_timeout: Duration,
}

/// A client's database, and its monitor's last failure.
#[derive(Clone)]
pub struct Link {
    pub database: Database,
    failures: watch::Receiver<Option<Error>>,
}

impl Settings {
    pub fn of(target: &Target) -> Result<Settings, Failure> {
        let options = &target.options;
        let pooled = options.text("clients").as_deref() == Some("per_worker");
        let size = options.integer("pool_size").unwrap_or(10);
        Ok(Settings {
            pool_size: pooled.then(|| u32::try_from(size).unwrap_or(u32::MAX)),
            concerns: Concerns::of(options),
            connect_timeout: target.connect_timeout,
        })
    }

    /// A client of this endpoint, whose connections are not open yet.
    pub async fn link(&self, endpoint: &Endpoint, connections: u32) -> Result<Link, Failure> {
        let unusable = |error: &Error| refused(error, &endpoint.label);
        let parsed = ClientOptions::parse(endpoint.text.as_str()).await;
        let mut options = parsed.map_err(|error| unusable(&error))?;
        if let (Some(address), None) = (self.peer(endpoint), &options.tls) {
            options.hosts = vec![ServerAddress::from(address)];
        }
        options.app_name = options.app_name.or_else(|| Some("dbbench".to_owned()));
        options.direct_connection = Some(true);
        options.connect_timeout = Some(self.connect_timeout);
        options.server_selection_timeout = Some(self.connect_timeout);
        options.heartbeat_freq = Some(SILENCE);
        options.server_monitoring_mode = Some(ServerMonitoringMode::Poll);
        options.max_pool_size = Some(connections);
        options.min_pool_size = None;
        options.retry_reads = Some(false);
        options.retry_writes = Some(false);
        let (sender, failures) = watch::channel(None);
        options.sdam_event_handler = Some(EventHandler::callback(move |event| {
            if let SdamEvent::ServerHeartbeatFailed(event) = event {
                sender.send_replace(Some(event.failure));
            }
        }));
        let name = options.default_database.clone();
        let client = Client::with_options(options).map_err(|error| unusable(&error))?;
        let database = client.database(name.as_deref().unwrap_or(DEFAULT_DATABASE));
        Ok(Link { database, failures })
    }

    /// The address that is connected to, where there is only one that it can be.
    pub fn peer(&self, endpoint: &Endpoint) -> Option<SocketAddr> {
        match &endpoint.transport {
            Transport::Tcp {
                host,
                port,
                addresses,
            } => match addresses.as_slice() {
                [address] => Some(*address),
                [] => host.parse().ok().map(|ip| SocketAddr::new(ip, *port)),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Link {
    /// Makes sure that the server answers, and with it that a connection is open and let in.
    pub async fn ping(&self, label: &str) -> Result<(), Failure> {
        let mut failures = self.failures.clone();
        failures.mark_unchanged();
        let answer = self.database.run_command(doc! { "ping": 1 });
        tokio::select! {
            biased;
            answer = answer => answer.map(|_| ()).map_err(|error| refused(&error, label)),
            error = failed(&mut failures) => Err(match error {
                Some(error) => refused(&error, label),
                None => {
                    let message = format!("cannot connect to {label}: its client was closed");
                    Failure::new(ErrorClass::Connect, message)
                }
            }),
        }
    }
}

async fn failed(failures: &mut watch::Receiver<Option<Error>>) -> Option<Error> {
    failures.changed().await.ok()?;
    failures.borrow().clone()
}
