//! What the mongodb driver is, as data: options, operations, endpoints.

use crate::driver::net::endpoint::{Parts, decode};
use crate::driver::spec::{
    DriverSpec, Durability, Endpoint, EndpointFault, HeldIn, OptionFault, Options, Store,
};
use crate::op::Verb;
use crate::rows::{Kind, Row};
use mongodb::options::ConnectionString;

const DEFAULT_PORT: u16 = 27_017;
const EXAMPLE: &str = "mongodb://127.0.0.1:27017/dbbench";

pub static SPEC: DriverSpec = DriverSpec {
    name: "mongodb",
    summary: "MongoDB and servers that speak its protocol (FerretDB), through the mongodb crate",
    options: OPTIONS,
    check_options,
    verbs: &Verb::BUILT_IN,
    operation: OPERATION,
    check_operation: super::custom::check,
    pipeline: false,
    replay: false,
    store: Store::Server {
        parse: parse_endpoint,
        example: EXAMPLE,
        takes_all: false,
    },
    sessions: "one client per session with one connection (clients = per_session), or one client per worker with at most pool_size (per_worker); each client's monitor keeps one more, which is silent",
    durability,
    held_in: HeldIn::Disk,
    library: "mongodb 3.9",
};

const OPTIONS: &[Row] = &[
    Row::new(
        "collection",
        Kind::Text,
        "Collection of the built-in operations; `reset` drops it and no other.",
    )
    .default("\"dbbench\""),
    Row::new(
        "write_concern",
        Kind::OneOf(&[Kind::Integer { min: 0, max: 50 }, Kind::Text]),
        "`w` of every write: \"majority\", a number of members, or 0 for an answer that does not say what came of it; the server's own without one.",
    ),
    Row::new(
        "journal",
        Kind::Bool,
        "`j` of every write: acknowledged when it stands in the journal; the server's own without one.",
    ),
    Row::new(
        "read_concern",
        Kind::Choice(&["local", "available", "majority", "linearizable", "snapshot"]),
        "Level of every read; the server's own without one.",
    ),
    Row::new(
        "read_preference",
        Kind::Choice(&[
            "primary",
            "primaryPreferred",
            "secondary",
            "secondaryPreferred",
            "nearest",
        ]),
        "Sent with reads to a member of a replica set, so that a secondary answers.",
    ),
    Row::new(
        "clients",
        Kind::Choice(&["per_session", "per_worker"]),
        "A client with one connection for each session, or one with a pool that the sessions of an OS thread share, as applications have it.",
    )
    .default("\"per_session\""),
    Row::new(
        "pool_size",
        Kind::Integer {
            min: 1,
            max: 100_000,
        },
        "Connections of a client at most, where `clients = \"per_worker\"`; more sessions wait for one.",
    )
    .default("10"),
    Row::new(
        "scan_count",
        Kind::Integer {
            min: 1,
            max: 1_000_000,
        },
        "Documents that one `scan` reads, in the order of their keys.",
    )
    .default("10"),
];

const OPERATION: &[Row] = &[
    Row::new(
        "command",
        Kind::Text,
        "A command as JSON, extended JSON included: `'{ \"find\": \"c\", \"filter\": { \"_id\": \"$key\" } }'`. A string that is one placeholder becomes a value of its type.",
    )
    .required(),
    Row::new(
        "expect",
        Kind::Regex,
        "What the answer's first value must match: the first field of the first document found, `n` of a write, else the first plain value.",
    ),
];

fn check_options(options: &Options) -> Result<(), OptionFault> {
    let fault = |key: &str, message: &str, help: &str| Err(OptionFault::new(key, message, help));
    let pooled = options.text("clients").as_deref() == Some("per_worker");
    if options.is_set("pool_size") && !pooled {
        let message = "a client of one session has one connection";
        return fault("pool_size", message, "clients = \"per_worker\"");
    }
    let unacknowledged = options.integer("write_concern") == Some(0);
    if unacknowledged && options.bool("journal") {
        let message = "a write that is not acknowledged cannot wait for the journal";
        return fault("journal", message, "write_concern = 1");
    }
    let collection = options.text("collection").unwrap_or_default();
    let reserved = collection.starts_with("system.") || collection.contains(['$', '\0']);
    if collection.is_empty() || reserved {
        let message = format!("`{collection}` cannot be the name of a collection");
        return fault("collection", &message, "collection = \"dbbench\"");
    }
    Ok(())
}

fn durability(options: &Options) -> Option<Durability> {
    (options.integer("write_concern") == Some(0)).then_some(Durability::Unacknowledged)
}

/// Reads `mongodb://user:password@host:port/database?options`, one server per endpoint, and lets the crate check the
/// options.
pub fn parse_endpoint(text: &str) -> Result<Endpoint, EndpointFault> {
    let parts = Parts::of(text, EXAMPLE)?;
    if parts.scheme != "mongodb" {
        let message = format!("`{}` is no scheme of the mongodb driver", parts.scheme);
        let help = "mongodb://host:port/database; where `mongodb+srv` names several servers, one endpoint for each";
        return Err(parts.fault(parts.scheme, message, help));
    }
    if parts.host.contains(',') {
        let message = "an endpoint is one server";
        let help = "one endpoint for each server of the replica set";
        return Err(parts.fault(parts.host, message, help));
    }
    for part in [parts.user, parts.password].into_iter().flatten() {
        if decode(part).is_none() {
            return Err(parts.fault(part, "a wrong percent code", ""));
        }
    }
    let endpoint = match parts.host {
        host if host.ends_with(".sock") => unix(&parts, host)?,
        _ => parts.tcp(DEFAULT_PORT)?,
    };
    ConnectionString::parse(text).map_err(|error| {
        let message = match parts.password.filter(|password| !password.is_empty()) {
            // Whatever the crate shows, it must not be that.
            Some(password) if error.to_string().contains(password) => {
                "the mongodb crate cannot read it".to_owned()
            }
            _ => error.to_string(),
        };
        let place = match text.split_once('?') {
            Some((_, query)) => query,
            None => text,
        };
        parts.fault(place, message, EXAMPLE)
    })?;
    Ok(endpoint)
}

fn unix(parts: &Parts<'_>, host: &str) -> Result<Endpoint, EndpointFault> {
    let path = decode(host).filter(|path| path.starts_with('/'));
    let path = path.ok_or_else(|| {
        let message = "a unix socket is given by its absolute path, slashes written as %2F";
        parts.fault(host, message, "mongodb://%2Frun%2Fmongodb.sock/dbbench")
    })?;
    Ok(Endpoint {
        label: path.clone(),
        transport: crate::driver::spec::Transport::Unix { path: path.into() },
        ..parts.tcp(DEFAULT_PORT)?
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn options(value: Value) -> Options {
        Options::new(OPTIONS, value.as_object().expect("a table").clone())
    }

    #[test]
    fn an_endpoint_says_address_login_and_database() {
        let endpoint = parse_endpoint("mongodb://me:p%20w@10.0.0.1:7000/db?tls=true").unwrap();
        assert_eq!(endpoint.label, "10.0.0.1:7000");
        let endpoint = parse_endpoint("mongodb://10.0.0.1").unwrap();
        assert_eq!(endpoint.label, "10.0.0.1:27017");
        let endpoint = parse_endpoint("mongodb://%2Frun%2Fm.sock/db").unwrap();
        assert_eq!(endpoint.label, "/run/m.sock");
    }

    #[test]
    fn faults_point_at_the_wrong_part_and_show_no_password() {
        let fault = parse_endpoint("redis://host:1").unwrap_err();
        assert_eq!((fault.start, fault.end), (0, 5));
        let text = "mongodb://me:secret@host:1/db?w=-5";
        let fault = parse_endpoint(text).unwrap_err();
        assert_eq!(&text[fault.start..fault.end], "w=-5");
        assert!(!fault.message.contains("secret"), "{}", fault.message);
        assert!(parse_endpoint("mongodb+srv://host/db").is_err());
        assert!(parse_endpoint("mongodb://a:1,b:2/db").is_err());
    }

    #[test]
    fn every_option_can_be_read() {
        let options = options(json!({}));
        assert_eq!(options.text("collection").as_deref(), Some("dbbench"));
        assert_eq!(options.text("clients").as_deref(), Some("per_session"));
        assert_eq!(options.integer("pool_size"), Some(10));
        assert_eq!(options.integer("scan_count"), Some(10));
        assert!(!options.bool("journal"));
        for name in ["write_concern", "read_concern", "read_preference"] {
            assert_eq!(options.text(name), None);
        }
        assert_eq!(check_options(&options), Ok(()));
    }

    #[test]
    fn options_that_contradict_each_other_are_refused() {
        let key = |value| check_options(&options(value)).unwrap_err().key;
        assert_eq!(key(json!({ "pool_size": 5 })), "pool_size");
        assert_eq!(
            key(json!({ "write_concern": 0, "journal": true })),
            "journal"
        );
        assert_eq!(key(json!({ "collection": "system.users" })), "collection");
    }

    #[test]
    fn only_a_write_without_acknowledgement_has_a_known_durability() {
        let known = |value| durability(&options(value));
        assert_eq!(
            known(json!({ "write_concern": 0 })),
            Some(Durability::Unacknowledged)
        );
        assert_eq!(known(json!({ "write_concern": "majority" })), None);
        assert_eq!(known(json!({})), None);
    }
}
