//! The memcached driver's harnesses, and what only it must do.

use crate::client::*;
use crate::support::TestServer;
use dbbench::driver::Session;
use dbbench::driver::memcached::Memcached;
use dbbench::driver::scripted::{Framing, ScriptedServer, Step};
use dbbench::driver::spec::Durability;
use dbbench::op::{ErrorClass, Operation, Outcome, Verb};
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};

fn options(value: Value) -> Map<String, Value> {
    value.as_object().expect("a table").clone()
}

fn text_value(key: &str, value: &[u8]) -> Vec<u8> {
    let mut answer = format!("VALUE {key} 0 {}\r\n", value.len()).into_bytes();
    answer.extend_from_slice(value);
    answer.extend_from_slice(b"\r\nEND\r\n");
    answer
}

fn meta_value(_: &str, value: &[u8]) -> Vec<u8> {
    let mut answer = format!("VA {}\r\n", value.len()).into_bytes();
    answer.extend_from_slice(value);
    answer.extend_from_slice(b"\r\n");
    answer
}

const TEXT_MALFORMED: &[&[u8]] = &[
    b"HTTP/1.1 400 Bad Request\r\n",
    b"\r\n",
    b"STORED\r\n",
    b"VALUE k\r\n",
    b"VALUE k 0 -1\r\n",
    b"VALUE k 0 99999999999\r\n",
    b"VALUE k 0 3\r\nabcde\r\nEND\r\n",
    b"VALUE k 0 1\r\na\r\nSTORED\r\n",
    b"VA 1\r\na\r\n",
    b"\x81\x00\x00\x00",
];

const META_MALFORMED: &[&[u8]] = &[
    b"HTTP/1.1 400 Bad Request\r\n",
    b"HD\r\n",
    b"VA\r\n",
    b"VA x\r\n",
    b"VA 3\r\nabcde\r\n",
    b"VALUE k 0 1\r\na\r\nEND\r\n",
];

macro_rules! harness {
    ($name:ident, $start:expr, $options:expr, $endpoint:expr, $value:expr, $malformed:expr) => {
        pub struct $name(TestServer);

        impl Harness for $name {
            type Driver = Memcached;

            const BINARY_KEYS: bool = false;

            fn start() -> Option<Self> {
                let start: fn() -> Option<TestServer> = $start;
                start().map($name)
            }

            fn endpoint(&self) -> Option<String> {
                let endpoint: fn(&TestServer) -> String = $endpoint;
                Some(endpoint(&self.0))
            }

            fn options() -> Map<String, Value> {
                options($options)
            }
        }

        impl ServerHarness for $name {
            const FRAMING: Framing = Framing::Memcached;

            fn server(&self) -> &dyn Hurt {
                &self.0
            }

            fn endpoint_at(port: u16) -> String {
                format!("memcached://127.0.0.1:{port}")
            }

            /// A new connection says nothing.
            fn greet(_: &[u8]) -> Option<Vec<u8>> {
                None
            }

            fn value(key: &str, content: &[u8]) -> Vec<u8> {
                $value(key, content)
            }

            fn malformed() -> Vec<&'static [u8]> {
                $malformed.to_vec()
            }
        }
    };
}

/// Values of 1 MiB need a little more than the default limit.
fn large() -> Option<TestServer> {
    TestServer::memcached(&["-I", "2m"])
}

fn by_port(server: &TestServer) -> String {
    format!("memcached://127.0.0.1:{}", server.port)
}

fn by_socket(server: &TestServer) -> String {
    format!("memcached+unix://{}", server.socket().display())
}

harness!(Text, large, json!({}), by_port, text_value, TEXT_MALFORMED);
harness!(
    Multi,
    large,
    json!({ "multi_get": true }),
    by_port,
    text_value,
    TEXT_MALFORMED
);
harness!(
    Meta,
    large,
    json!({ "protocol": "meta" }),
    by_port,
    meta_value,
    META_MALFORMED
);
harness!(
    Unix,
    TestServer::memcached_socket,
    json!({}),
    by_socket,
    text_value,
    TEXT_MALFORMED
);

fn open(endpoints: &[String], table: Value) -> Client<Memcached> {
    Client::open(endpoints, options(table), Vec::new()).expect("the driver opens")
}

#[test]
fn a_value_over_the_servers_limit_is_rejected_and_the_connection_kept() {
    let Some(server) = TestServer::memcached(&[]) else {
        return;
    };
    for protocol in ["text", "meta"] {
        let client = open(&[by_port(&server)], json!({ "protocol": protocol }));
        let mut session = client.session();
        client.execute(&mut session, &set("k", b"small"));
        let large = set("big", &vec![b'x'; 2 << 20]);
        let refusal = failure(client.execute(&mut session, &large).0);
        assert_eq!(
            (refusal.class, refusal.broken),
            (ErrorClass::Rejected, false)
        );
        assert_eq!(refusal.code, "SERVER_ERROR");
        let read = verify(b"k", b"small");
        assert_eq!(client.execute(&mut session, &read).0, Outcome::Found);
        let (outcomes, _) = client.execute_batch(&mut session, &[large, read]);
        assert!(!outcomes[0].succeeded());
        assert_eq!(outcomes[1], Outcome::Found);
    }
}

#[test]
fn a_key_that_would_break_its_line_is_not_sent() {
    let Some(server) = TestServer::memcached(&[]) else {
        return;
    };
    for table in [
        json!({}),
        json!({ "multi_get": true }),
        json!({ "protocol": "meta" }),
    ] {
        let client = open(&[by_port(&server)], table);
        let mut session = client.session();
        let long = "k".repeat(250);
        assert_eq!(
            client.execute(&mut session, &set(&long, b"v")).0,
            Outcome::Done
        );
        for key in ["", "a b", "a\r\nflush_all", "\x7f", &"k".repeat(251)] {
            let refusal = failure(client.execute(&mut session, &set(key, b"v")).0);
            assert_eq!(
                (refusal.class, refusal.broken),
                (ErrorClass::Rejected, false)
            );
        }
        let batch = [get(&long), get("a b"), verify(long.as_bytes(), b"v")];
        let (outcomes, replies) = client.execute_batch(&mut session, &batch);
        assert_eq!(
            (&outcomes[0], &outcomes[2]),
            (&Outcome::Found, &Outcome::Found)
        );
        assert!(!outcomes[1].succeeded());
        assert_eq!(replies[1].bytes_sent, 0);
    }
}

#[test]
fn gets_that_follow_one_another_share_a_request_and_keep_their_order() {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    let server = ScriptedServer::start(Framing::Memcached, move |_, request| {
        seen.lock()
            .unwrap()
            .push(String::from_utf8_lossy(request).into_owned());
        match request {
            b"get a b c b\r\n" => {
                vec![Step::send(
                    "VALUE b 0 1\r\nB\r\nVALUE b 0 1\r\nB\r\nEND\r\n",
                )]
            }
            b"get a\r\n" => vec![Step::send("VALUE a 0 1\r\nA\r\nEND\r\n")],
            _ => vec![Step::send("STORED\r\n")],
        }
    })
    .unwrap();
    let endpoint = format!("memcached://127.0.0.1:{}", server.port());
    let client = open(&[endpoint], json!({ "multi_get": true }));
    let batch = [
        get("a"),
        verify(b"b", b"B"),
        get("c"),
        verify(b"b", b"X"),
        set("a", b"A"),
        verify(b"a", b"A"),
    ];
    let (outcomes, _) = client.execute_batch(&mut client.session(), &batch);
    use Outcome::*;
    assert_eq!(outcomes, [Missing, Found, Missing, WrongValue, Done, Found]);
    let expected = ["get a b c b\r\n", "set a 0 0 1\r\nA\r\n", "get a\r\n"];
    assert_eq!(*requests.lock().unwrap(), expected);
}

#[test]
fn a_long_run_of_gets_is_cut_to_lines_that_any_server_takes() {
    let Some(server) = TestServer::memcached(&[]) else {
        return;
    };
    let client = open(&[by_port(&server)], json!({ "multi_get": true }));
    let mut session = client.session();
    let name = |number: usize| format!("{number:0240}");
    let load: Vec<Operation> = (0..500).map(|n| set(&name(n), &vec![b'v'; n])).collect();
    client.execute_batch(&mut session, &load);
    let batch: Vec<Operation> = (0..1000)
        .map(|n| verify(name(n).as_bytes(), &vec![b'v'; n]))
        .collect();
    let (outcomes, replies) = client.execute_batch(&mut session, &batch);
    for (number, outcome) in outcomes.iter().enumerate() {
        let expected = if number < 500 {
            Outcome::Found
        } else {
            Outcome::Missing
        };
        assert_eq!(*outcome, expected, "key {number}");
    }
    assert_eq!(replies[499].value_length, Some(499));
}

#[test]
fn keys_are_spread_over_several_servers_and_found_again() {
    let servers: Vec<TestServer> = (0..3).map_while(|_| TestServer::memcached(&[])).collect();
    if servers.len() < 3 {
        return;
    }
    let endpoints: Vec<String> = servers.iter().map(by_port).collect();
    for table in [
        json!({}),
        json!({ "multi_get": true }),
        json!({ "protocol": "meta" }),
    ] {
        let client = open(&endpoints, table);
        let mut session = client.session();
        assert_eq!(session.connections(), 3);
        let load: Vec<Operation> = (0..90)
            .map(|n| set(&format!("key-{n}"), &[b'v'; 9_000]))
            .collect();
        client.execute_batch(&mut session, &load);
        let batch: Vec<Operation> = (0..90)
            .map(|n| verify(format!("key-{n}").as_bytes(), &[b'v'; 9_000]))
            .chain([get("missing")])
            .collect();
        let (outcomes, _) = client.execute_batch(&mut session, &batch);
        assert!(outcomes[..90].iter().all(|one| *one == Outcome::Found));
        assert_eq!(outcomes[90], Outcome::Missing);
        for operation in &batch[..90] {
            assert_eq!(client.execute(&mut session, operation).0, Outcome::Found);
        }
    }
    let mut shares = Vec::new();
    for endpoint in &endpoints {
        let one = open(std::slice::from_ref(endpoint), json!({}));
        let count = one.control().statement("stats curr_items", LIMIT).unwrap();
        shares.push(count.parse::<u32>().unwrap());
    }
    assert_eq!(shares.iter().sum::<u32>(), 90);
    assert!(shares.iter().all(|share| *share > 10), "{shares:?}");
}

#[test]
fn a_counter_that_another_makes_first_is_counted_up() {
    let server = ScriptedServer::start(Framing::Memcached, |_, request| {
        vec![Step::send(match request {
            b"incr n 1\r\n" => "NOT_FOUND\r\n",
            b"add n 0 0 1\r\n1\r\n" => "NOT_STORED\r\n",
            _ => "ERROR\r\n",
        })]
    })
    .unwrap();
    let endpoint = format!("memcached://127.0.0.1:{}", server.port());
    let client = open(&[endpoint], json!({}));
    let increment = operation(Verb::Increment, b"n", b"");
    let refusal = failure(client.execute(&mut client.session(), &increment).0);
    assert_eq!(refusal.class, ErrorClass::Server);
    // It tried again, and not for ever.
    assert_eq!(server.requests(), 16);
}

#[test]
fn what_is_no_number_is_not_counted_and_the_connection_kept() {
    let Some(server) = TestServer::memcached(&[]) else {
        return;
    };
    for protocol in ["text", "meta"] {
        let client = open(&[by_port(&server)], json!({ "protocol": protocol }));
        let mut session = client.session();
        client.execute(&mut session, &set("k", b"abc"));
        let increment = operation(Verb::Increment, b"k", b"");
        let refusal = failure(client.execute(&mut session, &increment).0);
        assert_eq!((refusal.class, refusal.broken), (ErrorClass::Server, false));
        assert_eq!(refusal.code, "CLIENT_ERROR");
        let read = verify(b"k", b"abc");
        assert_eq!(client.execute(&mut session, &read).0, Outcome::Found);
    }
}

#[test]
fn the_server_tells_its_version_and_settings() {
    let Some(server) = TestServer::memcached(&["-m", "100"]) else {
        return;
    };
    let client = open(&[by_port(&server)], json!({}));
    let mut control = client.control();
    let version = control.version(LIMIT).unwrap();
    assert!(version.starts_with("memcached 1."), "{version}");
    let settings = control.settings(LIMIT).unwrap();
    assert_eq!(
        settings[0],
        ("maxbytes".to_owned(), (100 << 20).to_string())
    );
    assert_eq!(control.durability(LIMIT).unwrap(), Some(Durability::Memory));
    client.execute(&mut client.session(), &set("k", b"v"));
    assert_eq!(control.statement("stats curr_items", LIMIT).unwrap(), "1");
    assert_eq!(control.statement("get k", LIMIT).unwrap(), "v");
    assert_eq!(control.statement("delete k", LIMIT).unwrap(), "DELETED");
    let wrong = control.statement("nosuch", LIMIT).unwrap_err();
    assert_eq!(
        (wrong.class, wrong.code.as_str()),
        (ErrorClass::Server, "ERROR")
    );
    control.ready(LIMIT).unwrap();
}

/// Kyoto Tycoon's memcached plug-in, as its page in the reference says it: an own name, no statistics of settings.
#[test]
fn a_server_of_another_make_is_driven_by_the_text_protocol() {
    let server = ScriptedServer::start(Framing::Memcached, |_, request| {
        vec![Step::send(match request {
            b"version\r\n" => "VERSION KyotoTycoon/0.9.56b\r\n",
            b"stats settings\r\n" => "STAT version KyotoTycoon/0.9.56b\r\nEND\r\n",
            b"flush_all\r\n" => "OK\r\n",
            b"get k\r\n" => "VALUE k 0 3\r\nabc\r\nEND\r\n",
            _ => "SERVER_ERROR DB::set failed\r\n",
        })]
    })
    .unwrap();
    let client = open(
        &[format!("memcached://127.0.0.1:{}", server.port())],
        json!({}),
    );
    let mut control = client.control();
    assert_eq!(control.version(LIMIT).unwrap(), "KyotoTycoon/0.9.56b");
    assert_eq!(control.settings(LIMIT).unwrap(), []);
    assert_eq!(control.durability(LIMIT).unwrap(), None);
    control.reset(LIMIT).unwrap();
    let mut session = client.session();
    let read = verify(b"k", b"abc");
    assert_eq!(client.execute(&mut session, &read).0, Outcome::Found);
    let refusal = failure(client.execute(&mut session, &set("k", b"v")).0);
    assert_eq!((refusal.class, refusal.broken), (ErrorClass::Server, false));
}
