//! What the http driver is, as data: options, operations, endpoints.

use super::request;
use crate::driver::net::endpoint::{Parts, decode};
use crate::driver::spec::{
    DriverSpec, Endpoint, EndpointFault, HeldIn, OptionFault, Options, Store, Transport,
};
use crate::op::Verb;
use crate::rows::{Kind, NameKind, Row};

const EXAMPLE: &str = "http://127.0.0.1:8080";

pub static SPEC: DriverSpec = DriverSpec {
    name: "http",
    summary: "Web servers and stores behind HTTP/1.0, 1.1 or 2, by TCP, TLS or unix socket",
    options: OPTIONS,
    check_options,
    verbs: &[Verb::Get, Verb::Set, Verb::Delete],
    operation: OPERATION,
    check_operation: request::check,
    pipeline: false,
    replay: false,
    store: Store::Server {
        parse: parse_endpoint,
        example: EXAMPLE,
        takes_all: false,
    },
    sessions: "one connection per session with keep_alive, one per request without",
    durability: |_| None,
    held_in: HeldIn::Disk,
    library: "httparse 1.10, hyper 1.12",
};

const OPTIONS: &[Row] = &[
    Row::new(
        "http",
        Kind::Choice(&["1.0", "1.1", "2"]),
        "Version of the protocol.",
    )
    .default("\"1.1\""),
    Row::new(
        "keep_alive",
        Kind::Bool,
        "Whether a connection carries more than one request. Without it opening one is part of every operation, and the \
         server's end of it is awaited before the next, so that its ports wait in TIME_WAIT at the server's side.",
    )
    .default("true"),
    Row::new(
        "headers",
        Kind::Map(NameKind::Free, &Kind::Text),
        "Sent with every request.",
    ),
    Row::new("user_agent", Kind::Text, "The header `User-Agent`.").default("\"dbbench\""),
    Row::new(
        "redirects",
        Kind::Integer { min: 0, max: 20 },
        "How often a redirected GET is followed, on the same server; all of it is one operation.",
    )
    .default("0"),
    Row::new(
        "max_body",
        Kind::Size { zero: false },
        "Largest body that is taken; a longer one is a failure of class `protocol`.",
    )
    .default("\"1GiB\""),
    Row::new(
        "quiet",
        Kind::Bool,
        "Send nothing but the operations: the server is not asked for its version, and no line of its access log is ours \
         but theirs.",
    )
    .default("false"),
    Row::new(
        "tls_ca",
        Kind::Path,
        "PEM file of the authorities to trust on `https://`; the system's without one.",
    ),
    Row::new(
        "tls_insecure",
        Kind::Bool,
        "Trust any certificate on `https://`.",
    )
    .default("false"),
];

const OPERATION: &[Row] = &[
    Row::new(
        "method",
        Kind::Choice(&["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]),
        "GET where it is not said.",
    ),
    Row::new(
        "path",
        Kind::Text,
        "From the slash on, with its query; `$key`, `$random(1, 100)` and their like are filled in, percent-encoded.",
    )
    .required(),
    Row::new(
        "headers",
        Kind::Map(NameKind::Free, &Kind::Text),
        "Further headers; may use `$key` and its like.",
    ),
    Row::new("body", Kind::Text, "May use `$key`, `$value` and their like."),
    Row::new(
        "expect",
        Kind::Table(EXPECT),
        "What the answer must be; another one is a failure (`unexpected_reply`), whatever its status. Without it a \
         status from 400 on is a failure (`server`).",
    ),
];

const STATUS: Kind = Kind::Integer { min: 100, max: 599 };

const EXPECT: &[Row] = &[
    Row::new(
        "status",
        Kind::OneOf(&[STATUS, Kind::List(&STATUS)]),
        "One status, or a list of them.",
    ),
    Row::new(
        "body",
        Kind::Regex,
        "Regular expression that the body must match.",
    ),
];

fn check_options(options: &Options) -> Result<(), OptionFault> {
    let fault = |key: &str, message: &str, help: &str| Err(OptionFault::new(key, message, help));
    if options.text("http").as_deref() == Some("2") && !options.bool("keep_alive") {
        return fault(
            "keep_alive",
            "HTTP/2 keeps its connection",
            "http = \"1.1\", or leave `keep_alive` out",
        );
    }
    if options.is_set("tls_ca") && options.bool("tls_insecure") {
        return fault(
            "tls_ca",
            "with `tls_insecure` no authority is asked",
            "tls_insecure = false",
        );
    }
    request::check_headers(&options.value("headers"))
}

/// Reads `http://`, `https://` and `http+unix://`; what follows the address is put before every path.
pub fn parse_endpoint(text: &str) -> Result<Endpoint, EndpointFault> {
    let parts = Parts::of(text, EXAMPLE)?;
    if let Some(user) = parts.user {
        let help = "options = { headers = { authorization = \"Basic {{ secret('TOKEN') }}\" } }";
        return Err(parts.fault(user, "an http endpoint takes no login", help));
    }
    if let Some((name, _)) = parts.query.first() {
        let help = "a query belongs into the path of an operation";
        return Err(parts.fault(name, "an http endpoint takes no query", help));
    }
    match parts.scheme {
        "http" => parts.tcp(80),
        "https" => parts.tcp(443),
        "http+unix" => parts.unix(),
        other => {
            let message = format!("`{other}` is no scheme of the http driver");
            Err(parts.fault(parts.scheme, message, "http://, https:// or http+unix://"))
        }
    }
}

/// What is put before every path of requests to this endpoint, without a slash at its end.
pub fn base_path(endpoint: &Endpoint) -> String {
    let path = match (&endpoint.transport, Parts::of(&endpoint.text, EXAMPLE)) {
        (Transport::Tcp { .. }, Ok(parts)) => decode(parts.path).unwrap_or_default(),
        _ => String::new(),
    };
    path.trim_end_matches('/').to_owned()
}

/// The header `Host`.
pub fn host(endpoint: &Endpoint) -> String {
    match endpoint.transport {
        Transport::Tcp { .. } => endpoint.label.clone(),
        _ => "localhost".to_owned(),
    }
}
