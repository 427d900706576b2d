//! Descriptions of drivers for tests of the language: the shapes that real ones have, but fixed, so that the expected
//! texts do not change with every driver's options.

use dbbench::driver::spec::{
    DriverSpec, Durability, Endpoint, EndpointFault, HeldIn, NO_ROWS, OptionFault, Options, Store,
    Transport, no_fault, no_operation_fault,
};
use dbbench::op::Verb;
use dbbench::rows::{Kind, Row};

pub const ALL: &[&DriverSpec] = &[&NULL, &REDIS, &MEMCACHED, &REDB];

static NULL: DriverSpec = DriverSpec {
    name: "null",
    summary: "Does nothing: measures dbbench itself.",
    options: NO_ROWS,
    check_options: no_fault,
    verbs: &Verb::BUILT_IN,
    operation: NO_ROWS,
    check_operation: no_operation_fault,
    pipeline: true,
    replay: false,
    store: Store::Nothing,
    sessions: "none",
    durability: |_| None,
    held_in: HeldIn::Memory,
    library: "",
};

static REDIS: DriverSpec = DriverSpec {
    name: "redis",
    summary: "Redis and what speaks its protocol.",
    options: &[
        Row::new(
            "protocol",
            Kind::Choice(&["resp2", "resp3"]),
            "Version of the protocol.",
        )
        .default("\"resp2\""),
        Row::new(
            "database",
            Kind::Integer {
                min: 0,
                max: 1_000_000,
            },
            "Number of the database.",
        ),
        Row::new("username", Kind::Text, "Name to log in with."),
        Row::new("password", Kind::Text, "Password to log in with."),
    ],
    check_options: name_needs_password,
    verbs: &[Verb::Get, Verb::Set, Verb::Delete, Verb::Increment],
    operation: &[Row::new(
        "command",
        Kind::List(&Kind::Text),
        "The command and its arguments.",
    )
    .required()],
    check_operation: no_operation_fault,
    pipeline: true,
    replay: false,
    store: Store::Server {
        parse: parse_redis,
        example: "redis://127.0.0.1:6379",
        takes_all: false,
    },
    sessions: "one connection per session",
    durability: |_| None,
    held_in: HeldIn::Memory,
    library: "",
};

static MEMCACHED: DriverSpec = DriverSpec {
    name: "memcached",
    summary: "memcached and what speaks its text protocol.",
    options: &[Row::new(
        "expiry",
        Kind::Duration { zero: true },
        "Time until a value is dropped.",
    )
    .default("\"0s\"")],
    check_options: no_fault,
    verbs: &[Verb::Get, Verb::Set, Verb::Delete],
    operation: NO_ROWS,
    check_operation: no_operation_fault,
    pipeline: true,
    replay: false,
    store: Store::Server {
        parse: |text| parse("memcached://", text),
        example: "memcached://127.0.0.1:11211",
        takes_all: true,
    },
    sessions: "one connection per session and server",
    durability: |_| None,
    held_in: HeldIn::Memory,
    library: "",
};

static REDB: DriverSpec = EMBEDDED;

/// Further embedded stores, for the scenarios of the repository.
#[allow(dead_code)]
pub const MORE: &[&DriverSpec] = &[
    &DriverSpec {
        name: "sqlite",
        ..EMBEDDED
    },
    &DriverSpec {
        name: "fjall",
        ..EMBEDDED
    },
];

const EMBEDDED: DriverSpec = DriverSpec {
    name: "redb",
    summary: "redb, embedded.",
    options: &[
        Row::new("cache", Kind::Size { zero: false }, "Bytes of its cache.").default("\"64MiB\""),
    ],
    check_options: no_fault,
    verbs: &[Verb::Get, Verb::Set, Verb::Delete, Verb::Scan],
    operation: NO_ROWS,
    check_operation: no_operation_fault,
    pipeline: false,
    replay: false,
    store: Store::Embedded,
    sessions: "one handle for all",
    durability: |_| Some(Durability::Os),
    held_in: HeldIn::Disk,
    library: "",
};

fn name_needs_password(options: &Options) -> Result<(), OptionFault> {
    match options.is_set("username") && !options.is_set("password") {
        true => Err(OptionFault {
            key: "username".to_owned(),
            message: "`username` is nothing without `password`".to_owned(),
            help: "password = \"{{ secret('REDIS_PASSWORD') }}\"".to_owned(),
        }),
        false => Ok(()),
    }
}

fn parse_redis(text: &str) -> Result<Endpoint, EndpointFault> {
    parse("redis://", text)
}

fn parse(scheme: &str, text: &str) -> Result<Endpoint, EndpointFault> {
    let fault = |start: usize, end: usize, message: String, help: String| EndpointFault {
        start,
        end,
        message,
        help,
    };
    let Some(rest) = text.strip_prefix(scheme) else {
        let end = text.find("://").map_or(text.len(), |at| at + 3);
        return Err(fault(
            0,
            end,
            format!("an endpoint of this driver begins with `{scheme}`"),
            String::new(),
        ));
    };
    let (host, port) = rest.rsplit_once(':').unwrap_or((rest, "6379"));
    let start = text.len() - port.len();
    let Ok(port) = port.parse() else {
        let message = format!("`{port}` is no port");
        return Err(fault(
            start,
            text.len(),
            message,
            "a port is a number from 1 to 65535".to_owned(),
        ));
    };
    Ok(Endpoint {
        text: text.to_owned(),
        label: rest.to_owned(),
        transport: Transport::Tcp {
            host: host.to_owned(),
            port,
            addresses: Vec::new(),
        },
    })
}
