//! What the cassandra driver is, as data: options and endpoints.

use crate::driver::net::endpoint::{Parts, decode};
use crate::driver::spec::{Endpoint, EndpointFault};
use crate::rows::{Kind, Row};

const DEFAULT_PORT: u16 = 9042;
pub const EXAMPLE: &str = "cassandra://127.0.0.1:9042/dbbench";

const CONSISTENCIES: &[&str] = &[
    "any",
    "one",
    "two",
    "three",
    "quorum",
    "all",
    "local_quorum",
    "each_quorum",
    "local_one",
];

pub const OPTIONS: &[Row] = &[
    Row::new("keyspace", Kind::Text, "Keyspace, where the endpoint names none.")
        .default("\"dbbench\""),
    Row::new(
        "replication_factor",
        Kind::Integer { min: 1, max: 1000 },
        "Copies of each row, where the keyspace is made by dbbench.",
    )
    .default("1"),
    Row::new(
        "compaction",
        Kind::Text,
        "Class of the compaction strategy of the table that dbbench makes; the server's default without one.",
    ),
    Row::new(
        "compression",
        Kind::Text,
        "Class of the compression of the table that dbbench makes, or `none`; the server's default without one.",
    ),
    Row::new(
        "consistency",
        Kind::Choice(CONSISTENCIES),
        "Consistency of reads and writes that have none of their own.",
    )
    .default("\"one\""),
    Row::new(
        "read_consistency",
        Kind::Choice(CONSISTENCIES),
        "Consistency of reads.",
    ),
    Row::new(
        "write_consistency",
        Kind::Choice(CONSISTENCIES),
        "Consistency of writes.",
    ),
    Row::new(
        "routing",
        Kind::Choice(&["token", "endpoints"]),
        "Whom an operation is sent to: a replica of its key, or the endpoint dealt to its session and no other.",
    )
    .default("\"endpoints\""),
    Row::new(
        "connections",
        Kind::Integer { min: 1, max: 1000 },
        "Connections of each OS thread to each node that it talks to.",
    )
    .default("1"),
    Row::new(
        "retries",
        Kind::Integer { min: 0, max: 100 },
        "Attempts after the first that failed.",
    )
    .default("0"),
];

/// What an endpoint says beside its address.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Login {
    pub tls: bool,
    pub username: Option<String>,
    pub password: Option<String>,
    pub keyspace: Option<String>,
}

pub fn parse_endpoint(text: &str) -> Result<Endpoint, EndpointFault> {
    parse(text).map(|(endpoint, _)| endpoint)
}

/// Reads `cassandra://` and `cassandras://` (TLS).
pub fn parse(text: &str) -> Result<(Endpoint, Login), EndpointFault> {
    let parts = Parts::of(text).map_err(|fault| EndpointFault {
        help: EXAMPLE.to_owned(),
        ..fault
    })?;
    if !matches!(parts.scheme, "cassandra" | "cassandras") {
        let message = format!("`{}` is no scheme of the cassandra driver", parts.scheme);
        return Err(parts.fault(parts.scheme, message, "cassandra:// or cassandras://"));
    }
    let decoded = |part: Option<&str>| match part {
        None | Some("") => Ok(None),
        Some(part) => match decode(part) {
            Some(text) => Ok(Some(text)),
            None => Err(parts.fault(part, "a wrong percent code", "")),
        },
    };
    if let Some((name, _)) = parts.query.first() {
        let message = format!("`{name}` means nothing in an endpoint");
        return Err(parts.fault(name, message, EXAMPLE));
    }
    let keyspace = parts.path.trim_start_matches('/');
    if !keyspace.is_empty() && !is_name(keyspace) {
        let message = format!("`{keyspace}` is no keyspace: at most 48 letters, digits and `_`");
        return Err(parts.fault(keyspace, message, EXAMPLE));
    }
    let login = Login {
        tls: parts.scheme == "cassandras",
        username: decoded(parts.user)?,
        password: decoded(parts.password)?,
        keyspace: (!keyspace.is_empty()).then(|| keyspace.to_owned()),
    };
    Ok((parts.tcp(DEFAULT_PORT)?, login))
}

/// What CQL takes as the name of a keyspace, quoted or not.
pub fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (1..=48).contains(&text.len()) && text.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_says_address_login_and_keyspace() {
        let (endpoint, login) = parse("cassandra://me:p%20w@10.0.0.1:9043/ks_1").unwrap();
        assert_eq!(endpoint.label, "10.0.0.1:9043");
        assert_eq!(login.username.as_deref(), Some("me"));
        assert_eq!(login.password.as_deref(), Some("p w"));
        assert_eq!(login.keyspace.as_deref(), Some("ks_1"));
        assert!(!login.tls);
        let (endpoint, login) = parse("cassandras://host").unwrap();
        assert_eq!((endpoint.label.as_str(), login.tls), ("host:9042", true));
    }

    #[test]
    fn faults_point_at_the_wrong_part() {
        let range = |text| parse(text).map_err(|fault| (fault.start, fault.end));
        assert_eq!(range("redis://host").unwrap_err(), (0, 5));
        assert_eq!(range("cassandra://host/a-b").unwrap_err(), (17, 20));
        assert_eq!(range("cassandra://host?rf=2").unwrap_err(), (17, 19));
    }
}
