//! What the riak driver is, as data: options, operations, endpoints.

use crate::driver::net::endpoint::Parts;
use crate::driver::spec::{
    DriverSpec, Endpoint, EndpointFault, HeldIn, NO_ROWS, OptionFault, Options, Store,
    no_operation_fault,
};
use crate::op::Verb;
use crate::rows::{Kind, Row};

const SCHEME: &str = "riak://";
const EXAMPLE: &str = "riak://127.0.0.1:8098";
/// Where a node listens that nobody has configured; only for messages, since it depends on the interface.
const USUAL_HTTP_PORT: u16 = 8098;

pub static SPEC: DriverSpec = DriverSpec {
    name: "riak",
    summary: "Riak KV by its HTTP or its protocol-buffers interface",
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
    operation: NO_ROWS,
    check_operation: no_operation_fault,
    pipeline: false,
    replay: false,
    store: Store::Server {
        parse: parse_endpoint,
        example: EXAMPLE,
        takes_all: false,
    },
    sessions: "one connection per session, to the node dealt to it",
    durability: |_| None,
    held_in: HeldIn::Disk,
    library: "",
};

/// Replicas that an operation waits for: a number, or a word that the bucket's copies give a meaning.
const QUORUM: Kind = Kind::OneOf(&[
    Kind::Integer { min: 0, max: 1000 },
    Kind::Choice(&["one", "quorum", "all", "default"]),
]);

/// The options that are quorums, in the order of the protocol's page.
pub const QUORUMS: [&str; 5] = ["r", "w", "dw", "pr", "pw"];

const OPTIONS: &[Row] = &[
    Row::new(
        "interface",
        Kind::Choice(&["http", "pb"]),
        "HTTP (a node's port 8098, unless it is configured otherwise) or protocol buffers (port 8087).",
    )
    .default("\"http\""),
    Row::new("bucket", Kind::Text, "Bucket of all keys.").default("\"dbbench\""),
    Row::new(
        "bucket_type",
        Kind::Text,
        "Type of the bucket, made and activated before; the default type without one.",
    ),
    Row::new(
        "r",
        QUORUM,
        "Replicas that a read waits for: a number, `one`, `quorum`, `all` or `default`; the bucket's without one.",
    ),
    Row::new("w", QUORUM, "Replicas that a write waits for, likewise."),
    Row::new(
        "dw",
        QUORUM,
        "Replicas whose backend must have taken a write, likewise.",
    ),
    Row::new(
        "pr",
        QUORUM,
        "Primary replicas, not stand-ins for them, that a read waits for, likewise.",
    ),
    Row::new("pw", QUORUM, "Primary replicas that a write waits for, likewise."),
    Row::new(
        "n_val",
        Kind::Integer { min: 1, max: 1000 },
        "Copies of each object: set on the bucket before the first operation, and read back.",
    ),
    Row::new(
        "allow_mult",
        Kind::Bool,
        "Whether the bucket keeps writes that did not know of each other as siblings: set like `n_val`.",
    ),
    Row::new(
        "return_body",
        Kind::Bool,
        "Writes are answered with the object as it is stored then.",
    )
    .default("false"),
    Row::new(
        "vclock",
        Kind::Choice(&["update", "always", "never"]),
        "Which writes carry the vector clock of a read before them: `update` and `read_modify_write`, which read anyway; \
         `always` those of `set` too, after a read of the object's head; or `never`.",
    )
    .default("\"update\""),
    Row::new(
        "timeout",
        Kind::Duration { zero: false },
        "Time after which a node gives an operation up and says so; its own 60 s without one.",
    ),
];

fn check_options(options: &Options) -> Result<(), OptionFault> {
    let fault =
        |key: &str, message: String, help: String| Err(OptionFault::new(key, message, help));
    for key in ["bucket", "bucket_type"] {
        if options.text(key).as_deref() == Some("") {
            let help = format!("{key} = \"dbbench\"");
            return fault(key, format!("a {key} has a name"), help);
        }
    }
    let Some(copies) = options.integer("n_val") else {
        return Ok(());
    };
    for key in QUORUMS {
        match options.integer(key) {
            Some(wanted) if wanted > copies => {
                let message = format!("of {copies} copies (`n_val`) none can wait for {wanted}");
                return fault(key, message, format!("{key} = {copies}"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Reads `riak://host:port`, and `host:port` alone. The port must be said, since each interface has its own.
pub fn parse_endpoint(text: &str) -> Result<Endpoint, EndpointFault> {
    if text.contains("://") {
        return parse(text);
    }
    // Places in the text with the scheme before it are moved to those in the user's own.
    let there = |position: usize| position.saturating_sub(SCHEME.len()).min(text.len());
    match parse(&format!("{SCHEME}{text}")) {
        Ok(endpoint) => Ok(Endpoint {
            text: text.to_owned(),
            ..endpoint
        }),
        Err(fault) => Err(EndpointFault {
            start: there(fault.start),
            end: there(fault.end),
            ..fault
        }),
    }
}

fn parse(text: &str) -> Result<Endpoint, EndpointFault> {
    let parts = Parts::of(text, EXAMPLE)?;
    if parts.scheme != "riak" {
        let message = format!("`{}` is no scheme of the riak driver", parts.scheme);
        return Err(parts.fault(parts.scheme, message, EXAMPLE));
    }
    if let Some(login) = parts.user.or(parts.password) {
        let message = "the riak driver logs in nobody";
        return Err(parts.fault(login, message, EXAMPLE));
    }
    if let Some((name, _)) = parts.query.first() {
        return Err(parts.meaningless(name, EXAMPLE));
    }
    if !parts.path.trim_start_matches('/').is_empty() {
        let message = "the bucket is an option, not part of an endpoint";
        return Err(parts.fault(parts.path, message, "bucket = \"dbbench\""));
    }
    if !parts.host.is_empty() && parts.port.is_none() {
        let message =
            "an endpoint of Riak says its port: usually 8098 for HTTP, 8087 for protocol buffers";
        return Err(parts.fault(parts.host, message, EXAMPLE));
    }
    parts.tcp(USUAL_HTTP_PORT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn options(value: Value) -> Options {
        Options::new(OPTIONS, value.as_object().expect("a table").clone())
    }

    #[test]
    fn an_endpoint_needs_no_scheme_but_a_port() {
        for text in ["riak://10.0.0.1:8087", "10.0.0.1:8087"] {
            let endpoint = parse_endpoint(text).unwrap();
            assert_eq!(
                (endpoint.text.as_str(), endpoint.label.as_str()),
                (text, "10.0.0.1:8087")
            );
        }
        assert_eq!(parse_endpoint("[::1]:1").unwrap().label, "[::1]:1");
    }

    #[test]
    fn faults_point_at_the_wrong_part() {
        let fault = |text: &str| {
            let fault = parse_endpoint(text).unwrap_err();
            text[fault.start..fault.end].to_owned()
        };
        assert_eq!(fault("http://h:1"), "http");
        assert_eq!(fault("riak://h"), "h");
        assert_eq!(fault("host"), "host");
        assert_eq!(fault("h:99999"), "99999");
        assert_eq!(fault("h:1/buckets"), "/buckets");
        assert_eq!(fault("riak://me@h:1"), "me");
        assert_eq!(fault("h:1?r=1"), "r");
    }

    #[test]
    fn no_more_replicas_are_waited_for_than_there_are_copies() {
        let fault = |value| check_options(&options(value)).map_err(|fault| fault.key);
        assert_eq!(fault(json!({ "n_val": 2, "r": 2, "w": "all" })), Ok(()));
        assert_eq!(fault(json!({ "n_val": 2, "pw": 3 })), Err("pw".to_owned()));
        assert_eq!(fault(json!({ "bucket": "" })), Err("bucket".to_owned()));
    }

    #[test]
    fn every_option_can_be_read() {
        let options = options(json!({}));
        assert_eq!(options.text("interface").as_deref(), Some("http"));
        assert_eq!(options.text("bucket").as_deref(), Some("dbbench"));
        assert_eq!(options.text("vclock").as_deref(), Some("update"));
        assert!(!options.bool("return_body"));
        assert_eq!(options.duration("timeout"), None);
        for name in QUORUMS
            .into_iter()
            .chain(["bucket_type", "n_val", "allow_mult"])
        {
            assert_eq!(options.value(name), Value::Null);
        }
        assert_eq!(check_options(&options), Ok(()));
    }
}
