//! What the postgres driver is, as data: options, operations, endpoints.

use crate::driver::net::endpoint::Parts;
use crate::driver::spec::{
    DriverSpec, Endpoint, EndpointFault, HeldIn, OptionFault, Options, Store, Transport,
};
use crate::driver::sql::{self, Dialect};
use crate::op::Verb;
use crate::rows::{Kind, Row};
use serde_json::{Map, Value};

const DEFAULT_PORT: u16 = 5432;
const EXAMPLE: &str = "postgres://user:password@127.0.0.1:5432/database";

pub const DIALECT: Dialect = Dialect {
    marker: |number| format!("${}", number + 1),
    literal: Some(literal),
};

/// Text as a quoted string, whatever `standard_conforming_strings` says; bytes that are none as `bytea`.
fn literal(bytes: &[u8], out: &mut Vec<u8>) {
    let plain = |byte: &u8| *byte >= b' ' && *byte != b'\\' && *byte != b'\'';
    if std::str::from_utf8(bytes).is_ok() && bytes.iter().all(plain) {
        out.push(b'\'');
        out.extend_from_slice(bytes);
        out.push(b'\'');
        return;
    }
    out.extend_from_slice(b"decode('");
    for byte in bytes {
        out.extend_from_slice(format!("{byte:02x}").as_bytes());
    }
    out.extend_from_slice(b"', 'hex')");
}

pub static SPEC: DriverSpec = DriverSpec {
    name: "postgres",
    summary: "PostgreSQL and what speaks its protocol, by TCP, TLS or unix socket: keys and values in one table, and SQL \
              of the user's own",
    options: OPTIONS,
    check_options,
    verbs: &Verb::BUILT_IN,
    operation: sql::OPERATION,
    check_operation,
    pipeline: false,
    replay: true,
    store: Store::Server {
        parse: parse_endpoint,
        example: EXAMPLE,
        takes_all: false,
    },
    sessions: "one connection per session",
    durability: |_| None,
    held_in: HeldIn::Disk,
    library: "tokio-postgres 0.7",
};

const OPTIONS: &[Row] = &[
    Row::new(
        "init",
        Kind::List(&Kind::Text),
        "Statements that every new connection executes: `SET synchronous_commit = off`.",
    ),
    Row::new(
        "scan_limit",
        Kind::Integer {
            min: 1,
            max: 1_000_000,
        },
        "Rows that a scan reads at most.",
    )
    .default("100"),
    Row::new(
        "table_options",
        Kind::Text,
        "Put behind CREATE TABLE of the table `dbbench` of the built-in operations: `WITH (fillfactor = 70)`.",
    ),
    Row::new(
        "tls_ca",
        Kind::Path,
        "PEM file of the authorities to trust where an endpoint says `?sslmode=require`; the system's without it.",
    ),
    Row::new("tls_insecure", Kind::Bool, "Trust any certificate.").default("false"),
];

fn check_options(options: &Options) -> Result<(), OptionFault> {
    let table = options.text("table_options").unwrap_or_default();
    match table.contains(';') {
        true => Err(OptionFault::new(
            "table_options",
            "this is more than one statement",
            "table_options = \"WITH (fillfactor = 70)\"",
        )),
        false => Ok(()),
    }
}

fn check_operation(table: &Map<String, Value>) -> Result<(), OptionFault> {
    sql::compile("", table, &DIALECT).map(drop)
}

/// What an endpoint says beside its address.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Login {
    pub user: Option<String>,
    pub password: Option<String>,
    pub database: Option<String>,
    pub tls: bool,
}

pub fn parse_endpoint(text: &str) -> Result<Endpoint, EndpointFault> {
    parse(text).map(|(endpoint, _)| endpoint)
}

/// Reads `postgres://user:password@host:port/database?host=/directory&sslmode=require`; with a directory of sockets the
/// host does not count.
pub fn parse(text: &str) -> Result<(Endpoint, Login), EndpointFault> {
    let parts = Parts::of(text, EXAMPLE)?;
    if !matches!(parts.scheme, "postgres" | "postgresql") {
        let message = format!("`{}` is no scheme of the postgres driver", parts.scheme);
        let help = "postgres:// or postgresql://";
        return Err(parts.fault(parts.scheme, message, help));
    }
    let database = parts.path.trim_start_matches('/');
    if database.contains('/') {
        return Err(parts.fault(database, "a database is one name", EXAMPLE));
    }
    let mut login = Login {
        user: parts.decoded(parts.user)?,
        password: parts.decoded(parts.password)?,
        database: parts.decoded(Some(database))?,
        tls: false,
    };
    let mut directory = None;
    for (name, value) in &parts.query {
        match (*name, *value) {
            ("host", _) => directory = parts.decoded(Some(value))?,
            ("sslmode", "require") => login.tls = true,
            ("sslmode", "disable") => login.tls = false,
            ("sslmode", other) => {
                let message = "`sslmode` is `require` or `disable`: whether a figure is one of TLS is no matter of luck";
                return Err(parts.fault(other, message, "?sslmode=require"));
            }
            (other, _) => {
                return Err(parts.meaningless(other, "host or sslmode"));
            }
        }
    }
    let endpoint = match directory {
        None => parts.tcp(DEFAULT_PORT)?,
        Some(directory) => {
            if !directory.starts_with('/') {
                let message = "the directory of the socket is an absolute path";
                let help = "postgres://user@localhost/database?host=/run/postgresql";
                return Err(parts.fault(parts.query[0].1, message, help));
            }
            let port = parts.port.unwrap_or(DEFAULT_PORT);
            let path = format!("{}/.s.PGSQL.{port}", directory.trim_end_matches('/'));
            Endpoint {
                text: text.to_owned(),
                label: path.clone(),
                transport: Transport::Unix { path: path.into() },
            }
        }
    };
    Ok((endpoint, login))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_says_address_login_and_database() {
        let (endpoint, login) =
            parse("postgres://me:p@10.0.0.1:5433/shop?sslmode=require").unwrap();
        assert_eq!(endpoint.label, "10.0.0.1:5433");
        assert_eq!(login.user.as_deref(), Some("me"));
        assert_eq!(login.database.as_deref(), Some("shop"));
        assert!(login.tls);
        let (endpoint, _) = parse("postgres://me@localhost:5433/d?host=/run/pg").unwrap();
        assert_eq!(endpoint.label, "/run/pg/.s.PGSQL.5433");
    }

    #[test]
    fn a_literal_never_ends_early() {
        let text = |bytes: &[u8]| {
            let mut out = Vec::new();
            literal(bytes, &mut out);
            String::from_utf8(out).expect("text")
        };
        assert_eq!(text("ä b".as_bytes()), "'ä b'");
        assert_eq!(text(b"a'b"), "decode('612762', 'hex')");
        assert_eq!(text(b"\\"), "decode('5c', 'hex')");
        assert_eq!(text(b"\xff"), "decode('ff', 'hex')");
    }
}
