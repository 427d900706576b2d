//! Readiness: one look at a server, of each kind. How often to look, and when to give up, is `managed`'s.
//!
//! An answer is Ok, or a sentence for "the last answer was ...".

use super::client::{CommandSpec, Guard};
use super::files;
use super::spec::{ReadySpec, ServerSpec};
use crate::op::Failure;
use regex::Regex;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Limit of one look over the network: a server that hangs is looked at again.
const ONE_LOOK: Duration = Duration::from_secs(1);
/// Limit of one readiness command.
const ONE_COMMAND: Duration = Duration::from_secs(10);

/// What a look needs beside the server.
pub struct Look<'a> {
    pub guard: &'a Guard,
    pub spec: &'a ServerSpec,
    /// Where this start's part of the log begins.
    pub log_start: u64,
    /// Time left until the server must be ready.
    pub left: Duration,
    pub interrupted: &'a AtomicBool,
}

/// Looks once.
pub fn look(
    look: &Look,
    driver_ready: &mut dyn FnMut(Duration) -> Result<(), Failure>,
) -> Result<(), String> {
    let limit = look.left.min(ONE_LOOK).max(Duration::from_millis(1));
    match &look.spec.ready {
        ReadySpec::Tcp(address) => connect(*address, limit).map(drop),
        ReadySpec::Http { address, path } => http(*address, path, limit),
        ReadySpec::Log(pattern) => log(&look.spec.log, look.log_start, pattern),
        ReadySpec::Command(argv) => command(look, argv),
        ReadySpec::Driver => driver_ready(limit).map_err(|failure| failure.message),
    }
}

fn connect(address: SocketAddr, limit: Duration) -> Result<TcpStream, String> {
    TcpStream::connect_timeout(&address, limit)
        .map_err(|error| format!("cannot connect to {address}: {error}"))
}

fn http(address: SocketAddr, path: &str, limit: Duration) -> Result<(), String> {
    let stream = connect(address, limit)?;
    let line = exchange(stream, address, path, limit)
        .map_err(|error| format!("no answer to GET {path}: {error}"))?;
    let status: Option<u16> = line
        .strip_prefix("HTTP/")
        .and_then(|line| line.split(' ').nth(1))
        .and_then(|status| status.parse().ok());
    match status {
        Some(status) if (200..400).contains(&status) => Ok(()),
        Some(status) => Err(format!("GET {path} was answered with status {status}")),
        None => Err(format!(
            "GET {path} was answered with {:?}",
            line.trim_end()
        )),
    }
}

/// Sends the request; the first line of the answer.
fn exchange(
    mut stream: TcpStream,
    address: SocketAddr,
    path: &str,
    limit: Duration,
) -> std::io::Result<String> {
    stream.set_read_timeout(Some(limit))?;
    stream.set_write_timeout(Some(limit))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut line = Vec::new();
    BufReader::new(stream.take(1024)).read_until(b'\n', &mut line)?;
    Ok(String::from_utf8_lossy(&line).into_owned())
}

fn log(path: &Path, from: u64, pattern: &Regex) -> Result<(), String> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        // A server that opens its log anew may cut it.
        let from = if from > file.metadata()?.len() {
            0
        } else {
            from
        };
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|error| format!("cannot read its log: {error}"))?;
    let text = String::from_utf8_lossy(&bytes);
    match text.lines().any(|line| pattern.is_match(line)) {
        true => Ok(()),
        false => Err(format!("no line of its log matches `{pattern}`")),
    }
}

fn command(look: &Look, argv: &[String]) -> Result<(), String> {
    let spec = CommandSpec {
        argv,
        environment: &look.spec.environment,
        directory: &look.spec.directory,
        user: look.spec.user.as_deref(),
        limit: look.left.min(ONE_COMMAND),
    };
    look.guard
        .run_command(&spec, look.interrupted)
        .map(drop)
        .map_err(|fault| fault.to_string())
}

/// The end of the log since this start.
pub fn last_lines(spec: &ServerSpec, log_start: u64) -> Vec<String> {
    files::last_lines(&spec.log, log_start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn answering(answer: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 256];
            let read = stream.read(&mut request).unwrap();
            assert!(request[..read].starts_with(b"GET /ping HTTP/1.1\r\n"));
            stream.write_all(answer.as_bytes()).unwrap();
        });
        address
    }

    #[test]
    fn http_is_ready_below_status_400_only() {
        let limit = Duration::from_secs(5);
        let ask = |answer| http(answering(answer), "/ping", limit);
        assert_eq!(ask("HTTP/1.1 204 No Content\r\n\r\n"), Ok(()));
        assert_eq!(ask("HTTP/1.0 302 Found\r\n\r\n"), Ok(()));
        assert!(
            ask("HTTP/1.1 503 Busy\r\n\r\n")
                .unwrap_err()
                .contains("503")
        );
        assert!(ask("-ERR what\r\n").unwrap_err().contains("-ERR what"));
    }

    #[test]
    fn a_line_of_an_earlier_start_does_not_make_a_log_ready() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "ready to accept\nstarting\n").unwrap();
        let pattern = Regex::new("^ready").unwrap();
        assert_eq!(log(file.path(), 0, &pattern), Ok(()));
        assert!(log(file.path(), 16, &pattern).is_err());
    }
}
