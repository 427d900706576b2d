//! What the kyototycoon driver is, as data: options, operations, endpoints.

use crate::driver::net::endpoint::Parts;
use crate::driver::spec::{
    DriverSpec, Endpoint, EndpointFault, HeldIn, NO_ROWS, OptionFault, Options, Store,
    no_operation_fault,
};
use crate::op::Verb;
use crate::rows::{Kind, Row};

const DEFAULT_PORT: u16 = 1978;
const EXAMPLE: &str = "kyototycoon://127.0.0.1:1978";

pub static SPEC: DriverSpec = DriverSpec {
    name: "kyototycoon",
    summary: "Kyoto Tycoon through its own protocols, all on one port: procedures in tab-separated values, REST, binary",
    options: OPTIONS,
    check_options,
    verbs: &[
        Verb::Get,
        Verb::Set,
        Verb::Insert,
        Verb::Update,
        Verb::Delete,
        Verb::Increment,
        Verb::ReadModifyWrite,
    ],
    operation: NO_ROWS,
    check_operation: no_operation_fault,
    pipeline: true,
    replay: false,
    store: Store::Server {
        parse: parse_endpoint,
        example: EXAMPLE,
        takes_all: false,
    },
    sessions: "one connection per session",
    durability: |_| None,
    held_in: HeldIn::Memory,
    library: "",
};

const OPTIONS: &[Row] = &[
    Row::new(
        "protocol",
        Kind::Choice(&["rpc", "rest", "binary"]),
        "`rpc` calls procedures by HTTP, `rest` reads and writes `/key` by HTTP, `binary` is the bulk protocol. What one of \
         them has no request for goes by `rpc` on the same connection: `increment` in both others, `insert` and `update` in \
         `binary`.",
    )
    .default("\"rpc\""),
    Row::new(
        "database",
        Kind::OneOf(&[
            Kind::Integer {
                min: 0,
                max: u16::MAX as i64,
            },
            Kind::Text,
        ]),
        "Which of the server's databases: its number in the order they were named at its start, or its name. The binary \
         protocol knows numbers alone.",
    )
    .default("0"),
    Row::new(
        "encoding",
        Kind::Choice(&["auto", "base64", "url", "quoted"]),
        "How keys and values are spelled in a procedure's tab-separated values. `auto` leaves them as they are, and takes \
         base64 where one holds a control character. Answers are spelled as the server chooses.",
    )
    .default("\"auto\""),
];

fn check_options(options: &Options) -> Result<(), OptionFault> {
    let fault = |key: &str, message: String, help: &str| Err(OptionFault::new(key, message, help));
    let protocol = options.text("protocol").unwrap_or_default();
    let database = options.text("database");
    let named = |name: &String| name.parse::<u16>().is_err();
    if protocol == "binary" && database.as_ref().is_some_and(named) {
        let message = "the binary protocol names a database by its number".to_owned();
        return fault("database", message, "database = 0");
    }
    if database.is_some_and(|name| name.is_empty()) {
        let message = "the name of the database is empty".to_owned();
        return fault("database", message, "database = 0");
    }
    if protocol != "rpc" && options.is_set("encoding") {
        let message = format!("the protocol `{protocol}` carries values as they are");
        return fault("encoding", message, "protocol = \"rpc\"");
    }
    Ok(())
}

/// Reads `kyototycoon://host:port`.
pub fn parse_endpoint(text: &str) -> Result<Endpoint, EndpointFault> {
    let parts = Parts::of(text, EXAMPLE)?;
    if let Some(login) = parts.user.or(parts.password) {
        return Err(parts.fault(login, "Kyoto Tycoon has no login", EXAMPLE));
    }
    if let Some((name, _)) = parts.query.first() {
        return Err(parts.meaningless(name, EXAMPLE));
    }
    if !parts.path.trim_start_matches('/').is_empty() {
        let message = "the database is an option, and no part of the endpoint";
        let help = "options = { database = 1 }";
        return Err(parts.fault(parts.path, message, help));
    }
    match parts.scheme {
        "kyototycoon" => parts.tcp(DEFAULT_PORT),
        other => {
            let message = format!("`{other}` is no scheme of the kyototycoon driver");
            Err(parts.fault(parts.scheme, message, "kyototycoon://"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn options(said: Value) -> Options {
        Options::new(OPTIONS, said.as_object().expect("a table").clone())
    }

    fn fault(said: Value) -> String {
        check_options(&options(said)).expect_err("a fault").key
    }

    #[test]
    fn endpoints_are_hosts_with_a_port_of_their_own() {
        let label = |text| parse_endpoint(text).map(|endpoint| endpoint.label);
        assert_eq!(label("kyototycoon://h").as_deref(), Ok("h:1978"));
        assert_eq!(label("kyototycoon://h:20001/").as_deref(), Ok("h:20001"));
    }

    #[test]
    fn faults_point_at_the_wrong_part() {
        let fault = |text: &str| {
            let fault = parse_endpoint(text).expect_err("a fault");
            text[fault.start..fault.end].to_owned()
        };
        assert_eq!(fault("http://h"), "http");
        assert_eq!(fault("kyototycoon://h/1"), "/1");
        assert_eq!(fault("kyototycoon://me@h"), "me");
        assert_eq!(fault("kyototycoon://h?a=1"), "a");
    }

    #[test]
    fn every_option_can_be_read() {
        let options = options(json!({}));
        assert_eq!(options.text("protocol").as_deref(), Some("rpc"));
        assert_eq!(options.integer("database"), Some(0));
        assert_eq!(options.text("encoding").as_deref(), Some("auto"));
        assert_eq!(check_options(&options), Ok(()));
    }

    #[test]
    fn options_that_a_protocol_cannot_mean_are_refused() {
        assert_eq!(
            fault(json!({ "protocol": "binary", "database": "a" })),
            "database"
        );
        assert_eq!(fault(json!({ "database": "" })), "database");
        assert_eq!(
            fault(json!({ "protocol": "rest", "encoding": "url" })),
            "encoding"
        );
        let named = options(json!({ "protocol": "rest", "database": "a.kct" }));
        assert_eq!(check_options(&named), Ok(()));
        // A template gives its number as text.
        for number in [json!(2), json!("2")] {
            let numbered = options(json!({ "protocol": "binary", "database": number }));
            assert_eq!(check_options(&numbered), Ok(()));
        }
    }
}
