//! The cold side: readiness, version, settings, reset, single procedures. Calls procedures, whatever the sessions speak, on
//! a connection of its own that it keeps.

use super::rpc::{self, Answer};
use super::tsv::{self, Encoding};
use super::{Database, line_end};
use crate::driver::Control;
use crate::driver::net::blocking::Blocking;
use crate::driver::net::http::{Framing, read_body, read_head};
use crate::driver::net::{self, Connection, lost, malformed};
use crate::driver::spec::{Durability, Endpoint};
use crate::op::{ErrorClass, Failure};
use std::time::{Duration, Instant};

/// What a reader of the results wants to know of the server, in this order.
const OF_SERVER: [&str; 4] = [
    "conf_kt_features",
    "conf_kc_version",
    "conf_kc_features",
    "serv_thread_count",
];

/// And of its database; databases of other kinds know some of it.
const OF_DATABASE: [&str; 7] = [
    "path", "realtype", "opts", "bnum", "capcnt", "capsiz", "ktcapsiz",
];

/// Names of databases that are in the server's memory alone; parameters follow a `#`.
const IN_MEMORY: [&str; 5] = ["-", "+", ":", "*", "%"];

/// Bytes of an answer's body at most.
const LONGEST_BODY: usize = 1 << 30;

pub struct KyotoTycoonControl {
    endpoint: Endpoint,
    database: Database,
    line_end: Vec<u8>,
    blocking: Blocking,
    connection: Option<Connection>,
}

type Columns = Vec<(String, String)>;

impl KyotoTycoonControl {
    pub fn new(endpoint: Endpoint, database: Database) -> Result<KyotoTycoonControl, Failure> {
        Ok(KyotoTycoonControl {
            line_end: line_end(&endpoint),
            endpoint,
            database,
            blocking: Blocking::new()?,
            connection: None,
        })
    }

    /// Calls a procedure on the target's database; returns the columns of its answer. An error is a failure.
    fn call(
        &mut self,
        procedure: &str,
        columns: &[(&str, &str)],
        limit: Duration,
    ) -> Result<Columns, Failure> {
        let request = self.request(procedure, columns);
        let what = format!("`{procedure}` by {}", self.endpoint.label);
        let open = self.connection.take();
        let result = self.blocking.run(limit, &what, async {
            let mut connection = match open {
                Some(connection) => connection,
                None => net::connect(&self.endpoint).await?,
            };
            let (answer, stays_open) = exchange(&mut connection, procedure, &request).await?;
            Ok((answer, stays_open.then_some(connection)))
        });
        let (answer, connection) = result?;
        self.connection = connection;
        answer
    }

    fn request(&self, procedure: &str, columns: &[(&str, &str)]) -> Vec<u8> {
        let encoding = Encoding::Url;
        let mut body = Vec::new();
        if let Some(name) = &self.database.name {
            tsv::push_line(encoding, tsv::DATABASE, name.as_bytes(), &mut body);
        }
        for (name, value) in columns {
            encoding.push(name.as_bytes(), &mut body);
            body.push(b'\t');
            encoding.push(value.as_bytes(), &mut body);
            body.push(b'\n');
        }
        let mut request = Vec::new();
        let (end, length) = (&self.line_end, body.len());
        rpc::push_head(end, procedure, encoding, length, &mut request);
        request.extend_from_slice(&body);
        request
    }
}

/// Sends a request and reads its answer: its columns or the server's error, and whether the connection goes on.
async fn exchange(
    connection: &mut Connection,
    procedure: &str,
    request: &[u8],
) -> Result<(Result<Columns, Failure>, bool), Failure> {
    let sent = connection.send(request, b"", b"").await;
    sent.map_err(|error| lost(&error))?;
    let mut encoding = None;
    let hear = |name: &str, value: &[u8]| {
        if name.eq_ignore_ascii_case("content-type") {
            encoding = Encoding::of_content_type(value);
        }
    };
    let (mut pieces, mut bytes) = (Vec::new(), 0);
    let head = read_head(connection, false, hear, &mut bytes).await?;
    let length = read_body(connection, &head, LONGEST_BODY, &mut pieces, &mut bytes).await?;
    let body = match head.framing {
        Framing::Chunked => pieces.as_slice(),
        _ => &connection.received()[..length],
    };
    let answer = Answer {
        status: head.status,
        encoding,
        body,
    };
    let answer = match (head.status, encoding) {
        (200, Some(encoding)) => Ok(tsv::all(body, encoding)),
        (400.., _) => Err(rpc::failure(procedure, answer)),
        _ => return Err(malformed("no procedure answers so", body)),
    };
    connection.consume(length);
    Ok((answer, head.stays_open))
}

fn column<'c>(columns: &'c Columns, name: &str) -> Option<&'c str> {
    let (_, value) = columns.iter().find(|(known, _)| known == name)?;
    Some(value)
}

/// The columns of these names, in their order; those that are not there are left out.
fn wanted(columns: &Columns, names: &[&str]) -> Vec<(String, String)> {
    let known = names
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), column(columns, name)?.to_owned())));
    known.collect()
}

impl Control for KyotoTycoonControl {
    /// It answers, and the database is there.
    fn ready(&mut self, limit: Duration) -> Result<(), Failure> {
        self.call("status", &[], limit).map(drop)
    }

    /// `Kyoto Tycoon 0.9.56b (2.19)`
    fn version(&mut self, limit: Duration) -> Result<String, Failure> {
        let report = self.call("report", &[], limit)?;
        match column(&report, "conf_kt_version") {
            Some(version) => Ok(format!("Kyoto Tycoon {version}")),
            None => Err(Failure::new(
                ErrorClass::UnexpectedReply,
                "the server's report names no version",
            )),
        }
    }

    fn settings(&mut self, limit: Duration) -> Result<Vec<(String, String)>, Failure> {
        let deadline = Instant::now() + limit;
        let report = self.call("report", &[], limit)?;
        let left = deadline.saturating_duration_since(Instant::now());
        let status = self.call("status", &[], left)?;
        let mut settings = wanted(&report, &OF_SERVER);
        settings.extend(wanted(&status, &OF_DATABASE));
        Ok(settings)
    }

    /// Memory for a database that is there alone. How much of a file is only in the process is not to be asked.
    fn durability(&mut self, limit: Duration) -> Result<Option<Durability>, Failure> {
        let status = self.call("status", &[], limit)?;
        let path = column(&status, "path").unwrap_or_default();
        let name = path.split('#').next().unwrap_or_default();
        Ok(IN_MEMORY.contains(&name).then_some(Durability::Memory))
    }

    /// Empties the target's database and no other.
    fn reset(&mut self, limit: Duration) -> Result<(), Failure> {
        self.call("clear", &[], limit).map(drop)
    }

    /// A procedure with its columns, `get key=k` or `increment key=n num=5`; a word without `=` says which column of the
    /// answer is wanted, `status count`. Else it is the first one.
    fn statement(&mut self, statement: &str, limit: Duration) -> Result<String, Failure> {
        let mut words = statement.split_whitespace();
        let procedure = words.next().ok_or_else(|| {
            Failure::new(ErrorClass::Client, "an empty statement asks for nothing")
        })?;
        if !procedure
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        {
            let message = format!("`{procedure}` is no name of a procedure");
            return Err(Failure::new(ErrorClass::Client, message));
        }
        let (columns, names): (Vec<&str>, Vec<&str>) = words.partition(|word| word.contains('='));
        let columns: Vec<_> = columns
            .iter()
            .filter_map(|word| word.split_once('='))
            .collect();
        let answer = self.call(procedure, &columns, limit)?;
        match names.first() {
            Some(name) => column(&answer, name).map(str::to_owned).ok_or_else(|| {
                let message = format!("`{procedure}` answers without a column `{name}`");
                Failure::new(ErrorClass::UnexpectedReply, message)
            }),
            None => Ok(answer
                .into_iter()
                .next()
                .map(|(_, value)| value)
                .unwrap_or_default()),
        }
    }

    fn round_trip(&mut self, limit: Duration) -> Result<Duration, Failure> {
        let deadline = Instant::now() + limit;
        self.call("void", &[], limit)?;
        let left = deadline.saturating_duration_since(Instant::now());
        let start = Instant::now();
        self.call("void", &[], left)?;
        Ok(start.elapsed())
    }
}
