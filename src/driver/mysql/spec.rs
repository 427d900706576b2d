//! What the mysql driver is, as data: options, operations, endpoints.

use crate::driver::net::endpoint::Parts;
use crate::driver::spec::{
    DriverSpec, Endpoint, EndpointFault, HeldIn, OptionFault, Options, Store, Transport,
};
use crate::driver::sql::{self, Dialect};
use crate::op::Verb;
use crate::rows::{Kind, Row};
use serde_json::{Map, Value};

const DEFAULT_PORT: u16 = 3306;
const EXAMPLE: &str = "mysql://user:password@127.0.0.1:3306/database";

pub const DIALECT: Dialect = Dialect {
    marker: |_| "?".to_owned(),
    literal: Some(literal),
};

/// Bytes as a quoted string, whatever the server's sql_mode: in hex where a plain string would need escapes.
fn literal(bytes: &[u8], out: &mut Vec<u8>) {
    let plain = |byte: &u8| (b' '..0x7f).contains(byte) && !b"'\\".contains(byte);
    if bytes.iter().all(plain) {
        out.push(b'\'');
        out.extend_from_slice(bytes);
        out.push(b'\'');
        return;
    }
    out.extend_from_slice(b"x'");
    for byte in bytes {
        out.extend_from_slice(format!("{byte:02x}").as_bytes());
    }
    out.push(b'\'');
}

pub static SPEC: DriverSpec = DriverSpec {
    name: "mysql",
    summary: "MySQL, MariaDB and what speaks their protocol, by TCP, TLS or unix socket: keys and values in one table, and \
              SQL of the user's own",
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
    sessions: "one connection per session; a pool per worker with the option `pool`; one per operation with \
               `reconnect = \"each\"`",
    durability: |_| None,
    held_in: HeldIn::Disk,
    library: "mysql_async 0.37",
};

const OPTIONS: &[Row] = &[
    Row::new(
        "pool",
        Kind::Integer {
            min: 0,
            max: 100_000,
        },
        "Connections that the sessions of one worker share; 0: each session has its own.",
    )
    .default("0"),
    Row::new(
        "reconnect",
        Kind::Choice(&["never", "each"]),
        "`each`: every operation opens a connection of its own, inside its time; `never`: only where one broke.",
    )
    .default("\"never\""),
    Row::new(
        "init",
        Kind::List(&Kind::Text),
        "Statements that every new connection executes: `SET SESSION sql_mode = ''`.",
    ),
    Row::new(
        "statement_cache",
        Kind::Integer {
            min: 0,
            max: 10_000,
        },
        "Prepared statements that a connection keeps; 0: each is prepared anew every time.",
    )
    .default("32"),
    Row::new(
        "engine",
        Kind::Text,
        "Engine of the table `dbbench` of the built-in operations; the server's default without one.",
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
        "tls_ca",
        Kind::Path,
        "PEM file of the authorities to trust where an endpoint says `?tls=true`; the usual ones without it.",
    ),
    Row::new(
        "tls_insecure",
        Kind::Bool,
        "Trust any certificate.",
    )
    .default("false"),
];

fn check_options(options: &Options) -> Result<(), OptionFault> {
    let fault = |key: &str, message: String, help: &str| Err(OptionFault::new(key, message, help));
    let each = options.text("reconnect").as_deref() == Some("each");
    if each && options.integer("pool").unwrap_or(0) > 0 {
        let message = "a pool keeps connections, and `reconnect = \"each\"` keeps none".to_owned();
        return fault("pool", message, "leave one of them out");
    }
    let engine = options.text("engine").unwrap_or_default();
    if !engine
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || c == '_')
    {
        let message = format!("`{engine}` is no name of an engine");
        return fault("engine", message, "engine = \"InnoDB\"");
    }
    Ok(())
}

fn check_operation(table: &Map<String, Value>) -> Result<(), OptionFault> {
    sql::compile("", table, &DIALECT).map(drop)
}

pub fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts = list.iter().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
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

/// Reads `mysql://user:password@host:port/database?socket=/path&tls=true`; with a socket the host does not count.
pub fn parse(text: &str) -> Result<(Endpoint, Login), EndpointFault> {
    let parts = Parts::of(text, EXAMPLE)?;
    if !matches!(parts.scheme, "mysql" | "mariadb") {
        let message = format!("`{}` is no scheme of the mysql driver", parts.scheme);
        return Err(parts.fault(parts.scheme, message, "mysql:// or mariadb://"));
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
    let mut socket = None;
    for (name, value) in &parts.query {
        match (*name, *value) {
            ("socket", _) => socket = parts.decoded(Some(value))?,
            ("tls", "true") => login.tls = true,
            ("tls", "false") => login.tls = false,
            ("tls", other) => {
                return Err(parts.fault(other, "`tls` is true or false", "?tls=true"));
            }
            (other, _) => {
                return Err(parts.meaningless(other, "socket or tls"));
            }
        }
    }
    let endpoint = match socket {
        None => parts.tcp(DEFAULT_PORT)?,
        Some(path) => {
            if !path.starts_with('/') || login.tls {
                let message = "a socket is an absolute path, and carries no TLS";
                let help = "mysql://user@localhost/database?socket=/run/mysqld/mysqld.sock";
                return Err(parts.fault(parts.query[0].1, message, help));
            }
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
        let (endpoint, login) = parse("mysql://me:p%40w@10.0.0.1:3307/shop?tls=true").unwrap();
        assert_eq!(endpoint.label, "10.0.0.1:3307");
        assert_eq!(login.user.as_deref(), Some("me"));
        assert_eq!(login.password.as_deref(), Some("p@w"));
        assert_eq!(login.database.as_deref(), Some("shop"));
        assert!(login.tls);
        let (endpoint, login) = parse("mysql://root@localhost/d?socket=/run/my.sock").unwrap();
        assert_eq!(endpoint.label, "/run/my.sock");
        assert!(matches!(endpoint.transport, Transport::Unix { .. }));
        assert_eq!(login.password, None);
    }

    #[test]
    fn what_an_endpoint_cannot_say_is_a_fault_at_its_place() {
        for (text, part) in [
            ("postgres://h/d", "postgres"),
            ("mysql://h/d?x=1", "x"),
            ("mysql://h/d?tls=maybe", "maybe"),
            ("mysql://h/a/b", "a/b"),
        ] {
            let fault = parse(text).expect_err(text);
            assert_eq!(&text[fault.start..fault.end], part, "{text}");
        }
    }

    #[test]
    fn a_literal_never_ends_early() {
        let text = |bytes: &[u8]| {
            let mut out = Vec::new();
            literal(bytes, &mut out);
            String::from_utf8(out).expect("ASCII")
        };
        assert_eq!(text(b"abc 1"), "'abc 1'");
        assert_eq!(text(b"a'b"), "x'612762'");
        assert_eq!(text(b"\\"), "x'5c'");
        assert_eq!(text(b"\0\xff"), "x'00ff'");
        assert_eq!(text(b""), "''");
    }
}
