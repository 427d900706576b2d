//! What the redis driver is, as data: options, operations, endpoints.

use crate::driver::net::endpoint::Parts;
use crate::driver::spec::{
    DriverSpec, Endpoint, EndpointFault, HeldIn, OptionFault, Options, Store, Transport,
};
use crate::op::Verb;
use crate::rows::{Kind, Row};
use serde_json::{Map, Value};

const DEFAULT_PORT: u16 = 6379;
const EXAMPLE: &str = "redis://127.0.0.1:6379/0";

/// Databases a server may have at most; 16 unless it is configured otherwise.
const LAST_DATABASE: i64 = 1_000_000;

pub static SPEC: DriverSpec = DriverSpec {
    name: "redis",
    summary: "Redis and servers that speak its protocol (Valkey, KeyDB, Dragonfly), by TCP, TLS or unix socket",
    options: OPTIONS,
    check_options,
    verbs: &Verb::BUILT_IN,
    operation: OPERATION,
    check_operation: super::custom::check,
    pipeline: true,
    replay: false,
    store: Store::Server {
        parse: parse_endpoint,
        example: EXAMPLE,
        takes_all: false,
    },
    sessions: "one connection per session; of a cluster one per session and primary",
    durability: |_| None,
    held_in: HeldIn::Memory,
    library: "redis 1.8",
};

const OPTIONS: &[Row] = &[
    Row::new(
        "protocol",
        Kind::Integer { min: 2, max: 3 },
        "Version of the protocol, RESP2 or RESP3; the latter since Redis 6.",
    )
    .default("2"),
    Row::new(
        "database",
        Kind::Integer {
            min: 0,
            max: LAST_DATABASE,
        },
        "Number of the database, where the endpoint names none.",
    )
    .default("0"),
    Row::new(
        "username",
        Kind::Text,
        "User to log in as, where the endpoint names none; needs Redis 6.",
    ),
    Row::new(
        "password",
        Kind::Text,
        "Password, where the endpoint has none; best `{{ secret('NAME') }}`.",
    ),
    Row::new(
        "client_name",
        Kind::Text,
        "Name that `CLIENT LIST` shows for each connection.",
    )
    .default("\"dbbench\""),
    Row::new(
        "scan_count",
        Kind::Integer {
            min: 1,
            max: 1_000_000,
        },
        "Keys that one `scan` asks for (COUNT); each scan goes on where the session's last one ended.",
    )
    .default("10"),
    Row::new(
        "wait",
        Kind::Integer { min: 1, max: 1_000 },
        "Replicas that must acknowledge each built-in write (`WAIT`, sent with it); fewer are a failure of code `WAIT`.",
    ),
    Row::new(
        "wait_timeout",
        Kind::Duration { zero: false },
        "How long the server waits for them; whole milliseconds.",
    )
    .default("\"1s\""),
    Row::new(
        "cluster",
        Kind::Bool,
        "The endpoints are nodes of a Redis Cluster, one of which is asked for the others: each session follows the slots, with a connection to every primary.",
    )
    .default("false"),
    Row::new(
        "tls_ca",
        Kind::Path,
        "PEM file of the authorities to trust on `rediss://`; the system's without one.",
    ),
    Row::new(
        "tls_insecure",
        Kind::Bool,
        "Trust any certificate on `rediss://`.",
    )
    .default("false"),
];

const OPERATION: &[Row] = &[
    Row::new(
        "command",
        Kind::List(&Kind::Text),
        "The command and its arguments, each a string: `[\"LPUSH\", \"list-$mod(10)\", \"$value\"]`.",
    ),
    Row::new(
        "expect",
        Kind::Regex,
        "What the answer's text must match; a list's elements stand on lines of their own.",
    ),
    Row::new(
        "replication_lag",
        Kind::Bool,
        "In place of a command: bytes of writes that the replica furthest behind has not acknowledged; asked of the primary.",
    ),
];

fn check_options(options: &Options) -> Result<(), OptionFault> {
    if options.is_set("username") && !options.is_set("password") {
        return Err(OptionFault::new(
            "username",
            "a user name without a password logs in nobody",
            "password = \"{{ secret('REDIS_PASSWORD') }}\"",
        ));
    }
    if options.is_set("tls_ca") && options.bool("tls_insecure") {
        return Err(OptionFault::new(
            "tls_ca",
            "with `tls_insecure` no authority is asked",
            "tls_insecure = false",
        ));
    }
    if options.is_set("wait_timeout") && !options.is_set("wait") {
        return Err(OptionFault::new(
            "wait_timeout",
            "no write waits for a replica",
            "wait = 1",
        ));
    }
    let whole = |limit: std::time::Duration| {
        limit.as_millis() > 0 && limit.subsec_nanos().is_multiple_of(1_000_000)
    };
    if !options.duration("wait_timeout").is_some_and(whole) {
        return Err(OptionFault::new(
            "wait_timeout",
            "a server waits whole milliseconds, at least one",
            "wait_timeout = \"1s\"",
        ));
    }
    if options.bool("cluster") && options.integer("database") != Some(0) {
        return Err(OptionFault::new(
            "database",
            "a cluster has one database, number 0",
            "database = 0",
        ));
    }
    Ok(())
}

/// What an endpoint says beside its address.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Login {
    pub tls: bool,
    pub username: Option<String>,
    pub password: Option<String>,
    pub database: Option<i64>,
}

pub fn parse_endpoint(text: &str) -> Result<Endpoint, EndpointFault> {
    parse(text).map(|(endpoint, _)| endpoint)
}

/// Reads `redis://`, `rediss://` (TLS), `redis+unix://` and `unix://`.
pub fn parse(text: &str) -> Result<(Endpoint, Login), EndpointFault> {
    let parts = Parts::of(text, EXAMPLE)?;
    let endpoint = match parts.scheme {
        "redis" | "rediss" => parts.tcp(DEFAULT_PORT)?,
        "redis+unix" | "unix" => parts.unix()?,
        other => {
            let message = format!("`{other}` is no scheme of the redis driver");
            let help = "redis://, rediss://, redis+unix:// or unix://";
            return Err(parts.fault(parts.scheme, message, help));
        }
    };
    let login = login(&parts, matches!(endpoint.transport, Transport::Unix { .. }))?;
    Ok((endpoint, login))
}

fn login(parts: &Parts<'_>, unix: bool) -> Result<Login, EndpointFault> {
    let mut login = Login {
        tls: parts.scheme == "rediss",
        username: parts.decoded(parts.user)?,
        password: parts.decoded(parts.password)?,
        database: None,
    };
    let path = parts.path.trim_start_matches('/');
    if !unix && !path.is_empty() {
        login.database = Some(database(parts, path)?);
    }
    for (name, value) in &parts.query {
        match *name {
            "db" => login.database = Some(database(parts, value)?),
            "user" => login.username = parts.decoded(Some(value))?,
            "pass" | "password" => login.password = parts.decoded(Some(value))?,
            other => {
                return Err(parts.meaningless(other, "db, user or password"));
            }
        }
    }
    Ok(login)
}

fn database(parts: &Parts<'_>, text: &str) -> Result<i64, EndpointFault> {
    match text.parse() {
        Ok(number) if (0..=LAST_DATABASE).contains(&number) => Ok(number),
        _ => {
            let message = format!("`{text}` is no database: a number from 0");
            Err(parts.fault(text, message, EXAMPLE))
        }
    }
}

/// Reads the table of one of the user's operations: the command's parts and the pattern.
pub fn command_of(table: &Map<String, Value>) -> (Vec<String>, Option<String>) {
    let command = table
        .get("command")
        .and_then(Value::as_array)
        .map(|parts| {
            parts
                .iter()
                .map(|part| match part {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                })
                .collect()
        })
        .unwrap_or_default();
    let expect = table
        .get("expect")
        .and_then(Value::as_str)
        .map(str::to_owned);
    (command, expect)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_says_address_login_and_database() {
        let (endpoint, login) = parse("redis://me:p%20w@10.0.0.1:7000/3").unwrap();
        assert_eq!(endpoint.label, "10.0.0.1:7000");
        assert_eq!(login.username.as_deref(), Some("me"));
        assert_eq!(login.password.as_deref(), Some("p w"));
        assert_eq!(login.database, Some(3));
        assert!(!login.tls);
        assert!(parse("rediss://host").unwrap().1.tls);
    }

    #[test]
    fn a_password_may_stand_without_a_user() {
        let (_, login) = parse("redis://:pw@host").unwrap();
        assert_eq!((login.username, login.password), (None, Some("pw".into())));
    }

    #[test]
    fn a_unix_socket_takes_its_database_from_the_query() {
        let (endpoint, login) = parse("redis+unix:///run/redis.sock?db=1").unwrap();
        assert_eq!(endpoint.label, "/run/redis.sock");
        assert_eq!(login.database, Some(1));
    }

    #[test]
    fn faults_point_at_the_wrong_part() {
        let fault = parse("http://host:1").unwrap_err();
        assert_eq!((fault.start, fault.end), (0, 4));
        let fault = parse("redis://host:1/one").unwrap_err();
        assert_eq!((fault.start, fault.end), (15, 18));
        let fault = parse("redis://host:1?nodelay=1").unwrap_err();
        assert_eq!((fault.start, fault.end), (15, 22));
    }

    #[test]
    fn every_option_can_be_read() {
        let options = Options::new(OPTIONS, Map::new());
        assert_eq!(options.integer("protocol"), Some(2));
        assert_eq!(options.integer("database"), Some(0));
        assert_eq!(options.integer("scan_count"), Some(10));
        assert_eq!(options.text("client_name").as_deref(), Some("dbbench"));
        assert!(!options.bool("tls_insecure"));
        for name in ["username", "password", "tls_ca"] {
            assert_eq!(options.text(name), None);
        }
        assert_eq!(check_options(&options), Ok(()));
    }

    #[test]
    fn a_user_without_password_is_refused() {
        let mut values = Map::new();
        values.insert("username".into(), "me".into());
        let fault = check_options(&Options::new(OPTIONS, values)).unwrap_err();
        assert_eq!(fault.key, "username");
    }

    #[test]
    fn options_that_cannot_be_together_are_refused() {
        let refused = |values: serde_json::Value| {
            let values = values.as_object().cloned().unwrap();
            let fault = check_options(&Options::new(OPTIONS, values)).unwrap_err();
            (fault.key, fault.message)
        };
        let (key, message) = refused(serde_json::json!({ "wait_timeout": "2s" }));
        assert_eq!(
            (key.as_str(), message.as_str()),
            ("wait_timeout", "no write waits for a replica")
        );
        for odd in ["500us", "1500us"] {
            let (key, message) = refused(serde_json::json!({ "wait": 1, "wait_timeout": odd }));
            assert_eq!(key, "wait_timeout");
            assert!(message.contains("whole milliseconds"), "{message}");
        }
        let (key, message) = refused(serde_json::json!({ "cluster": true, "database": 3 }));
        assert_eq!(key, "database");
        assert!(message.contains("number 0"), "{message}");
        let right = serde_json::json!({ "cluster": true, "wait": 1, "wait_timeout": "20ms" });
        let right = Options::new(OPTIONS, right.as_object().cloned().unwrap());
        assert_eq!(check_options(&right), Ok(()));
    }
}
