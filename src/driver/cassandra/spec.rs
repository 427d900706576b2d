//! What the cassandra driver is, as data: options, operations, endpoints.

use crate::driver::net::endpoint::Parts;
use crate::driver::spec::{
    DriverSpec, Endpoint, EndpointFault, HeldIn, OptionFault, Options, Store,
};
use crate::op::Verb;
use crate::rows::{Kind, Row};

const DEFAULT_PORT: u16 = 9042;
const EXAMPLE: &str = "cassandra://127.0.0.1:9042/dbbench";

pub static SPEC: DriverSpec = DriverSpec {
    name: "cassandra",
    summary: "Apache Cassandra and ScyllaDB by CQL, through the scylla crate",
    options: OPTIONS,
    check_options,
    verbs: &[
        Verb::Get,
        Verb::Set,
        Verb::Insert,
        Verb::Update,
        Verb::Delete,
        Verb::ReadModifyWrite,
    ],
    operation: super::custom::OPERATION,
    check_operation: super::custom::check,
    pipeline: false,
    replay: false,
    store: Store::Server {
        parse: parse_endpoint,
        example: EXAMPLE,
        takes_all: false,
    },
    sessions: "the sessions of an OS thread share `connections` connections to each node that they talk to, one operation \
        of each in flight on streams of their own, and one more for news of the cluster; a timeout replaces no connection",
    durability: |_| None,
    held_in: HeldIn::Disk,
    library: "scylla 1.9",
};

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

const OPTIONS: &[Row] = &[
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
        "Attempts after the first that failed, as long as the operation may be repeated safely: on the same node where \
         `routing = \"endpoints\"`, else on the next. Each one more is counted in `warnings`.",
    )
    .default("0"),
    Row::new(
        "speculative",
        Kind::Duration { zero: false },
        "Time after which a read or write without an answer is sent to another node as well, counted in `warnings`; \
         never without it. Wants `routing = \"token\"`.",
    ),
];

fn check_options(options: &Options) -> Result<(), OptionFault> {
    let fault = |key: &str, message: String, help: &str| Err(OptionFault::new(key, message, help));
    let keyspace = options.text("keyspace").unwrap_or_default();
    if !is_name(&keyspace) {
        let message = format!("`{keyspace}` is no keyspace: at most 48 letters, digits and `_`");
        return fault("keyspace", message, "keyspace = \"dbbench\"");
    }
    for (key, example) in [
        ("compaction", "compaction = \"LeveledCompactionStrategy\""),
        ("compression", "compression = \"LZ4Compressor\""),
    ] {
        let class = options.text(key);
        if let Some(class) = class.filter(|class| !is_class(class)) {
            return fault(key, format!("`{class}` is no name of a class"), example);
        }
    }
    let reads = ["read_consistency", "consistency"];
    let reads = reads.into_iter().find(|name| options.is_set(name));
    if let Some(key) = reads.filter(|name| options.text(name).as_deref() == Some("any")) {
        let message = "no read has consistency `any`".to_owned();
        return fault(key, message, "write_consistency = \"any\"");
    }
    if options.is_set("speculative") && options.text("routing").as_deref() != Some("token") {
        let message = "there is no other node to send it to".to_owned();
        return fault("speculative", message, "routing = \"token\"");
    }
    Ok(())
}

/// What an endpoint says beside its address.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Login {
    pub username: Option<String>,
    pub password: Option<String>,
    pub keyspace: Option<String>,
}

pub fn parse_endpoint(text: &str) -> Result<Endpoint, EndpointFault> {
    parse(text).map(|(endpoint, _)| endpoint)
}

/// Reads `cassandra://`. No TLS: the crate's brings a second stack of it, with another provider than all other drivers.
pub fn parse(text: &str) -> Result<(Endpoint, Login), EndpointFault> {
    let parts = Parts::of(text, EXAMPLE)?;
    if parts.scheme != "cassandra" {
        let message = match parts.scheme {
            "cassandras" => "the cassandra driver has no TLS".to_owned(),
            scheme => format!("`{scheme}` is no scheme of the cassandra driver"),
        };
        return Err(parts.fault(parts.scheme, message, EXAMPLE));
    }
    if let Some((name, _)) = parts.query.first() {
        return Err(parts.meaningless(name, EXAMPLE));
    }
    let keyspace = parts.path.trim_start_matches('/');
    if !keyspace.is_empty() && !is_name(keyspace) {
        let message = format!("`{keyspace}` is no keyspace: at most 48 letters, digits and `_`");
        return Err(parts.fault(keyspace, message, EXAMPLE));
    }
    let login = Login {
        username: parts.decoded(parts.user)?,
        password: parts.decoded(parts.password)?,
        keyspace: (!keyspace.is_empty()).then(|| keyspace.to_owned()),
    };
    Ok((parts.tcp(DEFAULT_PORT)?, login))
}

/// What CQL takes as the name of a keyspace, quoted or not.
pub fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (1..=48).contains(&text.len()) && text.chars().all(allowed)
}

/// A Java class, with or without its package.
fn is_class(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    !text.is_empty() && text.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn options(value: Value) -> Options {
        Options::new(OPTIONS, value.as_object().expect("a table").clone())
    }

    #[test]
    fn every_option_can_be_read() {
        let options = options(json!({}));
        assert_eq!(options.text("keyspace").as_deref(), Some("dbbench"));
        assert_eq!(options.integer("replication_factor"), Some(1));
        assert_eq!(options.text("consistency").as_deref(), Some("one"));
        assert_eq!(options.text("routing").as_deref(), Some("endpoints"));
        assert_eq!(options.integer("connections"), Some(1));
        assert_eq!(options.integer("retries"), Some(0));
        assert_eq!(options.duration("speculative"), None);
        for name in [
            "compaction",
            "compression",
            "read_consistency",
            "write_consistency",
        ] {
            assert_eq!(options.text(name), None);
        }
        assert_eq!(check_options(&options), Ok(()));
    }

    #[test]
    fn options_that_cannot_be_are_refused() {
        let key = |value| check_options(&options(value)).unwrap_err().key;
        assert_eq!(key(json!({ "keyspace": "a-b" })), "keyspace");
        assert_eq!(key(json!({ "compaction": "X'}" })), "compaction");
        assert_eq!(key(json!({ "compression": "" })), "compression");
        assert_eq!(key(json!({ "consistency": "any" })), "consistency");
        assert_eq!(
            key(json!({ "read_consistency": "any" })),
            "read_consistency"
        );
        assert_eq!(key(json!({ "speculative": "5ms" })), "speculative");
        let right = json!({
            "write_consistency": "any", "routing": "token", "speculative": "5ms",
            "compaction": "org.apache.cassandra.db.compaction.UnifiedCompactionStrategy",
        });
        assert_eq!(check_options(&options(right)), Ok(()));
    }

    #[test]
    fn an_endpoint_says_address_login_and_keyspace() {
        let (endpoint, login) = parse("cassandra://me:p%20w@10.0.0.1:9043/ks_1").unwrap();
        assert_eq!(endpoint.label, "10.0.0.1:9043");
        assert_eq!(login.username.as_deref(), Some("me"));
        assert_eq!(login.password.as_deref(), Some("p w"));
        assert_eq!(login.keyspace.as_deref(), Some("ks_1"));
        let (endpoint, login) = parse("cassandra://host").unwrap();
        assert_eq!(
            (endpoint.label.as_str(), login),
            ("host:9042", Login::default())
        );
    }

    #[test]
    fn faults_point_at_the_wrong_part() {
        let range = |text| parse(text).map_err(|fault| (fault.start, fault.end));
        assert_eq!(range("redis://host").unwrap_err(), (0, 5));
        assert_eq!(range("cassandras://host").unwrap_err(), (0, 10));
        assert_eq!(range("cassandra://host/a-b").unwrap_err(), (17, 20));
        assert_eq!(range("cassandra://host?rf=2").unwrap_err(), (17, 19));
    }
}
