//! What the memcached driver is, as data: options, operations, endpoints.

use crate::driver::net::endpoint::Parts;
use crate::driver::spec::{
    DriverSpec, Durability, Endpoint, EndpointFault, HeldIn, NO_ROWS, OptionFault, Options, Store,
    no_operation_fault,
};
use crate::op::Verb;
use crate::rows::{Kind, Row};

const DEFAULT_PORT: u16 = 11211;
const EXAMPLE: &str = "memcached://127.0.0.1:11211";

pub static SPEC: DriverSpec = DriverSpec {
    name: "memcached",
    summary: "memcached and servers that speak its text protocol (Kyoto Tycoon, mdcached), by TCP or unix socket",
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
        takes_all: true,
    },
    sessions: "one connection per session and server",
    durability: |_| Some(Durability::Memory),
    held_in: HeldIn::Memory,
    library: "",
};

const OPTIONS: &[Row] = &[
    Row::new(
        "protocol",
        Kind::Choice(&["text", "meta"]),
        "`text` is the classic protocol that all servers of this kind speak; `meta` is memcached's own since 1.6.",
    )
    .default("\"text\""),
    Row::new(
        "multi_get",
        Kind::Bool,
        "In a batch (`pipeline`), send gets that follow one another as one `get` of many keys; text protocol only.",
    )
    .default("false"),
];

fn check_options(options: &Options) -> Result<(), OptionFault> {
    if options.bool("multi_get") && options.text("protocol").as_deref() == Some("meta") {
        return Err(OptionFault::new(
            "multi_get",
            "the meta protocol has no get of many keys",
            "multi_get = false",
        ));
    }
    Ok(())
}

/// Reads `memcached://host:port` and `memcached+unix:///path`.
pub fn parse_endpoint(text: &str) -> Result<Endpoint, EndpointFault> {
    let parts = Parts::of(text, EXAMPLE)?;
    if let Some(login) = parts.user.or(parts.password) {
        let message = "there is no login in the text protocol";
        return Err(parts.fault(login, message, EXAMPLE));
    }
    if let Some((name, _)) = parts.query.first() {
        return Err(parts.meaningless(name, EXAMPLE));
    }
    match parts.scheme {
        "memcached" if parts.path.trim_start_matches('/').is_empty() => parts.tcp(DEFAULT_PORT),
        "memcached" => {
            let message = "memcached has no databases to name";
            Err(parts.fault(parts.path, message, EXAMPLE))
        }
        "memcached+unix" => parts.unix(),
        other => {
            let message = format!("`{other}` is no scheme of the memcached driver");
            let help = "memcached:// or memcached+unix://";
            Err(parts.fault(parts.scheme, message, help))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};

    #[test]
    fn endpoints_are_hosts_or_sockets() {
        let label = |text| parse_endpoint(text).map(|endpoint| endpoint.label);
        assert_eq!(label("memcached://h").as_deref(), Ok("h:11211"));
        assert_eq!(label("memcached+unix:///a.sock").as_deref(), Ok("/a.sock"));
    }

    #[test]
    fn faults_point_at_the_wrong_part() {
        let fault = |text: &str| {
            let fault = parse_endpoint(text).unwrap_err();
            text[fault.start..fault.end].to_owned()
        };
        assert_eq!(fault("memcache://h"), "memcache");
        assert_eq!(fault("memcached://h/1"), "/1");
        assert_eq!(fault("memcached://me@h"), "me");
        assert_eq!(fault("memcached://h?a=1"), "a");
    }

    #[test]
    fn every_option_can_be_read() {
        let options = Options::new(OPTIONS, Map::new());
        assert_eq!(options.text("protocol").as_deref(), Some("text"));
        assert!(!options.bool("multi_get"));
        assert_eq!(check_options(&options), Ok(()));
    }

    #[test]
    fn the_meta_protocol_has_no_multi_get() {
        let values = json!({ "protocol": "meta", "multi_get": true });
        let options = Options::new(OPTIONS, values.as_object().unwrap().clone());
        assert_eq!(check_options(&options).unwrap_err().key, "multi_get");
    }
}
