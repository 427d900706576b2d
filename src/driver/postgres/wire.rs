//! Connections: opened on sockets of the house, and driven by whoever waits for an answer. The crate would have each
//! driven by a task of its own; here the session polls it, which saves two switches between tasks per operation.

use super::{failure, refused, spec};
use crate::driver::Target;
use crate::driver::net::{self, Stream, tls};
use crate::driver::spec::{Endpoint, Transport};
use crate::op::{ErrorClass, Failure};
use rustls::pki_types::ServerName;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, NoTls, TlsConnect, TlsStream};
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Error};

/// How a connection is made.
pub struct Settings {
    init: Vec<String>,
    tls: Option<Arc<rustls::ClientConfig>>,
}

impl Settings {
    pub fn of(target: &Target) -> Result<Settings, Failure> {
        let options = &target.options;
        let wants_tls =
            |endpoint: &Endpoint| spec::parse(&endpoint.text).is_ok_and(|(_, login)| login.tls);
        let authority = options.text("tls_ca").map(PathBuf::from);
        let init = options.value("init");
        let init = init.as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(Settings {
            init: init
                .iter()
                .filter_map(|text| text.as_str().map(str::to_owned))
                .collect(),
            tls: match target.endpoints.iter().any(wants_tls) {
                true => Some(tls::client(
                    authority.as_deref(),
                    options.bool("tls_insecure"),
                )?),
                false => None,
            },
        })
    }

    pub async fn connect(&self, endpoint: &Endpoint) -> Result<Wire, Failure> {
        let (_, login) = spec::parse(&endpoint.text).map_err(|fault| {
            let message = format!("{}: {}", endpoint.label, fault.message);
            Failure::new(ErrorClass::Connect, message)
        })?;
        let mut config = Config::new();
        config.application_name("dbbench");
        config.user(login.user.as_deref().unwrap_or("postgres"));
        if let Some(password) = &login.password {
            config.password(password);
        }
        if let Some(database) = &login.database {
            config.dbname(database);
        }
        let connection = net::connect(endpoint).await?;
        let peer = connection.peer();
        let stream: Socket = match connection.into_stream() {
            Stream::Tcp(stream) => Box::new(stream),
            Stream::Unix(stream) => Box::new(stream),
            Stream::Tls(stream) => stream,
        };
        let refused = |error: Error| refused(&error, &endpoint.label);
        let mut wire = match (&endpoint.transport, login.tls) {
            (Transport::Tcp { host, .. }, true) => {
                config.ssl_mode(tokio_postgres::config::SslMode::Require);
                let tls = Tls {
                    config: match &self.tls {
                        Some(tls) => Arc::clone(tls),
                        None => tls::client(None, false)?,
                    },
                    host: host.clone(),
                };
                let (client, connection) =
                    config.connect_raw(stream, tls).await.map_err(refused)?;
                Wire::new(client, Box::new(connection), peer)
            }
            _ => {
                config.ssl_mode(tokio_postgres::config::SslMode::Disable);
                let (client, connection) =
                    config.connect_raw(stream, NoTls).await.map_err(refused)?;
                Wire::new(client, Box::new(connection), peer)
            }
        };
        for statement in &self.init {
            wire.plain(statement).await?;
        }
        Ok(wire)
    }
}

pub trait Both: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Both for T {}
type Socket = Box<dyn Both>;

/// The side of a connection that moves bytes.
trait Mover: Send {
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<AsyncMessage, Error>>>;
}

impl<T: TlsStream + Unpin + Send> Mover for Connection<Socket, T> {
    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<AsyncMessage, Error>>> {
        Connection::poll_message(self, cx)
    }
}

/// An open connection.
pub struct Wire {
    pub client: Client,
    mover: Box<dyn Mover>,
    pub peer: Option<SocketAddr>,
    /// Warnings that the server has sent since they were last asked for.
    warnings: u32,
}

impl Wire {
    fn new(client: Client, mover: Box<dyn Mover>, peer: Option<SocketAddr>) -> Wire {
        Wire {
            client,
            mover,
            peer,
            warnings: 0,
        }
    }

    pub fn take_warnings(&mut self) -> u32 {
        std::mem::take(&mut self.warnings)
    }

    /// Waits for what a client's future gives, and moves bytes meanwhile.
    pub async fn wait<'c, T, F>(
        &'c mut self,
        start: impl FnOnce(&'c Client) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Error>> + 'c,
    {
        let Wire {
            client,
            mover,
            warnings,
            ..
        } = self;
        let mut future = pin!(start(client));
        poll_fn(|cx| {
            loop {
                if let Poll::Ready(result) = future.as_mut().poll(cx) {
                    return Poll::Ready(result.map_err(|error| failure(&error)));
                }
                match mover.poll_message(cx) {
                    Poll::Ready(Some(Ok(AsyncMessage::Notice(notice)))) => {
                        *warnings += u32::from(notice.severity() == "WARNING");
                    }
                    Poll::Ready(Some(Ok(_))) => {}
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(failure(&error))),
                    Poll::Ready(None) => {
                        // The answer may have come with the end.
                        return match future.as_mut().poll(cx) {
                            Poll::Ready(result) => {
                                Poll::Ready(result.map_err(|error| failure(&error)))
                            }
                            Poll::Pending => Poll::Ready(Err(Failure::new(
                                ErrorClass::Reset,
                                "connection lost: the server closed the connection",
                            ))),
                        };
                    }
                    // What was moved may be the answer.
                    Poll::Pending => {
                        return future
                            .as_mut()
                            .poll(cx)
                            .map(|result| result.map_err(|error| failure(&error)));
                    }
                }
            }
        })
        .await
    }

    /// Statements without an answer that anybody reads.
    pub async fn plain(&mut self, statements: &str) -> Result<(), Failure> {
        self.wait(|client| client.batch_execute(statements)).await
    }
}

/// TLS as the crate wants it: after the server has agreed to it.
struct Tls {
    config: Arc<rustls::ClientConfig>,
    host: String,
}

impl TlsConnect<Socket> for Tls {
    type Stream = Secured;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = std::io::Result<Secured>> + Send>>;

    fn connect(self, stream: Socket) -> Self::Future {
        Box::pin(async move {
            let name = ServerName::try_from(self.host).map_err(std::io::Error::other)?;
            let connector = tokio_rustls::TlsConnector::from(self.config);
            connector.connect(name, stream).await.map(Secured)
        })
    }
}

struct Secured(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for Secured {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Secured {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Secured {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
