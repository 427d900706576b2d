//! The riak driver's harnesses, one for each interface, and what only it must do. On a stand-in: no package has a Riak.

use crate::client::*;
use crate::riak_stand_in::{Mood, Node, StandIn};
use dbbench::driver::Session;
use dbbench::driver::riak::Riak;
use dbbench::driver::scripted::{Framing, ScriptedServer, Step};
use dbbench::op::{ErrorClass, Operation, Outcome, Reply, Verb};
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const INTERFACES: [&str; 2] = ["http", "pb"];

fn options(value: Value) -> Map<String, Value> {
    value.as_object().expect("a table").clone()
}

impl Hurt for Node {
    fn hang(&self) {
        self.hang();
    }

    fn go_on(&self) {
        self.go_on();
    }

    fn kill(&self) {
        self.kill();
    }

    /// It is gone once `kill` returns.
    fn wait_ended(&self) {}
}

/// Field of bytes of a message, by its key and below 128 bytes.
fn field(key: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).expect("a short field");
    assert!(length < 128);
    [&[key, length], bytes].concat()
}

fn frame(code: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 1).expect("a short frame");
    [&length.to_be_bytes(), &[code][..], body].concat()
}

macro_rules! harness {
    ($name:ident, $interface:literal, $port:ident, $tells:literal, $framing:expr, $value:expr, $malformed:expr) => {
        pub struct $name(StandIn);

        impl Harness for $name {
            type Driver = Riak;

            const TELLS_DELETED: bool = $tells;

            fn start() -> Option<Self> {
                Some($name(StandIn::start()))
            }

            fn endpoint(&self) -> Option<String> {
                Some(format!("riak://127.0.0.1:{}", self.0.node(0).$port))
            }

            fn options() -> Map<String, Value> {
                options(json!({ "interface": $interface }))
            }
        }

        impl ServerHarness for $name {
            const FRAMING: Framing = $framing;

            fn server(&self) -> &dyn Hurt {
                self.0.node(0)
            }

            fn endpoint_at(port: u16) -> String {
                format!("127.0.0.1:{port}")
            }

            /// A new connection says nothing.
            fn greet(_: &[u8]) -> Option<Vec<u8>> {
                None
            }

            fn value(_: &str, content: &[u8]) -> Vec<u8> {
                $value(content)
            }

            fn malformed() -> Vec<&'static [u8]> {
                $malformed.to_vec()
            }
        }
    };
}

fn http_value(content: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nX-Riak-Vclock: a85hYGBg\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n",
        content.len()
    );
    [head.as_bytes(), content].concat()
}

fn pb_value(content: &[u8]) -> Vec<u8> {
    let content = [field(0x0a, content), field(0x12, b"text/plain")].concat();
    frame(10, &[field(0x0a, &content), field(0x12, b"clock")].concat())
}

const HTTP_MALFORMED: &[&[u8]] = &[
    b"RIAK\r\n",
    b"\0\0\0\x01\x0a",
    b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
];

const PB_MALFORMED: &[&[u8]] = &[
    b"HTTP/1.1 400 Bad Request\r\n",
    // No code at all; the answer to a put; a length that no answer has.
    b"\0\0\0\0",
    b"\0\0\0\x01\x0c",
    b"\xff\xff\xff\xff\x0a",
    // A content that is longer than its message, and one without a value; a value that is a number.
    b"\0\0\0\x04\x0a\x0a\x05a",
    b"\0\0\0\x05\x0a\x0a\x02\x12\0",
    b"\0\0\0\x05\x0a\x0a\x02\x08\x01",
    // An error whose message is cut off.
    b"\0\0\0\x03\0\x0a\x05",
];

harness!(
    ByHttp,
    "http",
    http_port,
    true,
    Framing::Http,
    http_value,
    HTTP_MALFORMED
);
// The answer to a deletion says nothing.
harness!(
    ByPb,
    "pb",
    pb_port,
    false,
    Framing::Length32,
    pb_value,
    PB_MALFORMED
);

fn endpoint(node: &Node, interface: &str) -> String {
    let port = match interface {
        "pb" => node.pb_port,
        _ => node.http_port,
    };
    format!("127.0.0.1:{port}")
}

fn open_at(endpoints: &[String], interface: &str, more: Value) -> Client<Riak> {
    let mut table = options(more);
    table.insert("interface".to_owned(), interface.into());
    Client::open(endpoints, table, Vec::new()).expect("the driver opens")
}

fn open(store: &StandIn, interface: &str, more: Value) -> Client<Riak> {
    open_at(&[endpoint(store.node(0), interface)], interface, more)
}

fn change(key: &str, value: &[u8]) -> Operation {
    operation(Verb::ReadModifyWrite, key.as_bytes(), value)
}

#[test]
fn siblings_are_found_and_counted_until_a_write_that_knows_them() {
    for interface in INTERFACES {
        let store = StandIn::start();
        let siblings = json!({ "bucket_type": "siblings" });
        let client = open(&store, interface, siblings);
        let mut session = client.session();
        client.execute(&mut session, &set("k", b"one"));
        let (outcome, reply) = client.execute(&mut session, &verify(b"k", b"one"));
        assert_eq!((outcome, reply.warnings), (Outcome::Found, 0));
        client.execute(&mut session, &set("k", b"the other"));
        for value in [b"one".as_slice(), b"the other"] {
            let (outcome, reply) = client.execute(&mut session, &verify(b"k", value));
            assert_eq!(
                (outcome, reply.warnings),
                (Outcome::Found, 1),
                "{interface}"
            );
            assert_eq!(reply.value_length, Some(value.len() as u64));
        }
        let wrong = client.execute(&mut session, &verify(b"k", b"a third"));
        assert_eq!(wrong.0, Outcome::WrongValue);
        let (outcome, reply) = client.execute(&mut session, &change("k", b"merged"));
        assert_eq!((outcome, reply.warnings), (Outcome::Found, 1));
        let (outcome, reply) = client.execute(&mut session, &verify(b"k", b"merged"));
        assert_eq!(
            (outcome, reply.warnings),
            (Outcome::Found, 0),
            "{interface}"
        );
    }
}

#[test]
fn the_option_says_which_writes_carry_a_clock() {
    for interface in INTERFACES {
        // (vclock, warnings of a read after three sets, after three changes)
        for (vclock, sets, changes) in [("update", 1, 0), ("always", 0, 0), ("never", 1, 1)] {
            let store = StandIn::start();
            let table = json!({ "bucket_type": "siblings", "vclock": vclock });
            let client = open(&store, interface, table);
            let mut session = client.session();
            for value in [b"1", b"2", b"3"] {
                client.execute(&mut session, &set("set", value));
                client.execute(&mut session, &change("changed", value));
                let update = operation(Verb::Update, b"updated", value);
                client.execute(&mut session, &update);
                client.execute(&mut session, &operation(Verb::Insert, b"updated", value));
            }
            let warnings = ["set", "changed", "updated"]
                .map(|key| client.execute(&mut session, &get(key)).1.warnings);
            assert_eq!(warnings, [sets, changes, changes], "{interface} {vclock}");
        }
    }
}

#[test]
fn a_deleted_key_is_missing_and_may_be_written_again() {
    for interface in INTERFACES {
        let store = StandIn::start();
        for table in [json!({}), json!({ "bucket_type": "siblings" })] {
            let client = open(&store, interface, table);
            let mut session = client.session();
            client.execute(&mut session, &set("k", b"first"));
            let delete = operation(Verb::Delete, b"k", b"");
            assert_eq!(client.execute(&mut session, &delete).0, Outcome::Done);
            // Its tombstone is still there.
            for verb in [Verb::Get, Verb::Update] {
                let outcome = client.execute(&mut session, &operation(verb, b"k", b"x")).0;
                assert_eq!(outcome, Outcome::Missing, "{interface} {verb:?}");
            }
            let (outcome, _) = client.execute(&mut session, &change("k", b"second"));
            assert_eq!(outcome, Outcome::Missing);
            let (outcome, reply) = client.execute(&mut session, &verify(b"k", b"second"));
            assert_eq!(
                (outcome, reply.warnings),
                (Outcome::Found, 0),
                "{interface}"
            );
        }
    }
}

/// A write that knows nothing of a tombstone has it as a sibling, which is no value.
#[test]
fn the_tombstone_beside_a_value_is_not_read() {
    for interface in INTERFACES {
        let store = StandIn::start();
        let client = open(&store, interface, json!({ "bucket_type": "siblings" }));
        let mut session = client.session();
        client.execute(&mut session, &set("k", b"first"));
        client.execute(&mut session, &operation(Verb::Delete, b"k", b""));
        client.execute(&mut session, &set("k", b"second"));
        let (outcome, reply) = client.execute(&mut session, &verify(b"k", b"second"));
        assert_eq!(
            (outcome, reply.warnings),
            (Outcome::Found, 1),
            "{interface}"
        );
    }
}

#[test]
fn refusals_have_the_servers_code_and_the_connection_is_kept() {
    let moods = [
        (
            Mood::Young,
            ["500 insufficient_vnodes", "500 all_nodes_down"],
            ["insufficient_vnodes", "all_nodes_down"],
        ),
        (
            Mood::PrimariesDown,
            ["503 PR-value unsatisfied", "503 PW-value unsatisfied"],
            ["pr_val_unsatisfied", "pw_val_unsatisfied"],
        ),
        (
            Mood::GivesUp(Duration::from_millis(5)),
            ["503 request timed out"; 2],
            ["timeout"; 2],
        ),
    ];
    let store = StandIn::start();
    for interface in INTERFACES {
        let client = open(&store, interface, json!({ "timeout": "5ms" }));
        let mut session = client.session();
        for (mood, by_http, by_pb) in moods {
            store.node(0).set_mood(mood);
            let codes = if interface == "http" { by_http } else { by_pb };
            let operations = [get("k"), set("k", b"v")];
            for (operation, code) in operations.iter().zip(codes) {
                let refusal = failure(client.execute(&mut session, operation).0);
                assert_eq!(refusal.class, ErrorClass::Server);
                assert_eq!(refusal.code, code);
                assert!(!refusal.broken);
                // The nodes go on with a write that one of them has given up.
                let writes = operation.verb == Verb::Set && mood != Mood::Young;
                assert_eq!(refusal.unanswered, writes, "{interface} {code}");
            }
        }
        store.node(0).set_mood(Mood::Well);
        assert_eq!(client.execute(&mut session, &get("k")).0, Outcome::Found);
    }
    assert_eq!(store.node(0).accepted(), 2);
}

#[test]
fn a_put_that_the_node_gave_up_may_be_stored() {
    for interface in INTERFACES {
        let store = StandIn::start();
        let client = open(&store, interface, json!({}));
        let mut session = client.session();
        store.node(0).set_mood(Mood::GivesUp(Duration::ZERO));
        let refusal = failure(client.execute(&mut session, &set("k", b"v")).0);
        assert!(refusal.unanswered, "{refusal}");
        assert_eq!(store.store().values("k"), [b"v"]);
    }
}

#[test]
fn what_a_bucket_does_not_take_is_told() {
    let store = StandIn::start();
    for (interface, quorum, no_type) in [
        ("http", "400", "404 Unknown bucket type"),
        ("pb", "n_val_violation", "no_type"),
    ] {
        let code = |more: Value| {
            let client = open(&store, interface, more);
            let refusal = failure(client.execute(&mut client.session(), &get("k")).0);
            assert_eq!((refusal.class, refusal.broken), (ErrorClass::Server, false));
            refusal.code
        };
        assert_eq!(code(json!({ "r": 4 })), quorum);
        assert_eq!(code(json!({ "bucket_type": "unknown" })), no_type);
        let client = open(&store, interface, json!({}));
        let mut session = client.session();
        let refusal = client.execute(&mut session, &set("", b"v")).0;
        assert!(!failure(refusal).broken);
        assert_eq!(
            client.execute(&mut session, &set("k", b"v")).0,
            Outcome::Done
        );
    }
}

#[test]
fn properties_are_set_before_the_first_operation_and_read_back() {
    for interface in INTERFACES {
        let store = StandIn::cluster(2);
        let nodes = [0, 1].map(|number| endpoint(store.node(number), interface));
        let table = json!({ "n_val": 2, "allow_mult": true, "r": "one", "pw": 1 });
        let client = open_at(&nodes, interface, table);
        let mut session = client.session();
        for value in [b"one", b"two"] {
            client.execute(&mut session, &set("k", value));
        }
        assert_eq!(client.execute(&mut session, &get("k")).1.warnings, 1);
        let settings = client.control().settings(LIMIT).expect("settings");
        let setting = |wanted: &str| {
            let found = settings.iter().find(|(name, _)| name == wanted);
            found.map(|(_, value)| value.as_str())
        };
        assert_eq!(setting("bucket_n_val"), Some("2"));
        assert_eq!(setting("bucket_allow_mult"), Some("true"));
        assert_eq!(setting("bucket_r"), Some("quorum"));
        assert_eq!(
            (setting("bucket_pr"), setting("asked_pw")),
            (Some("0"), Some("1"))
        );
        assert_eq!(
            (setting("asked_r"), setting("asked_w")),
            (Some("one"), None)
        );
        if interface == "http" {
            assert_eq!(setting("storage_backend"), Some("riak_kv_bitcask_backend"));
            assert_eq!(setting("ring_members"), Some("2"));
        }
        // Once for all sessions.
        let asked = store.node(0).requests();
        client.session();
        assert_eq!(store.node(0).requests(), asked);
    }
}

#[test]
fn a_node_is_ready_once_it_takes_writes_and_knows_the_others() {
    for interface in INTERFACES {
        let store = StandIn::start();
        let node = store.node(0);
        let client = open(&store, interface, json!({}));
        let mut control = client.control();
        for mood in [Mood::WithoutPages, Mood::Young] {
            node.set_mood(mood);
            let failure = control.ready(LIMIT).expect_err("it is not ready");
            assert_eq!(failure.class, ErrorClass::Server, "{interface} {mood:?}");
        }
        node.set_mood(Mood::Well);
        control.ready(LIMIT).expect("it is ready");
        assert_eq!(
            client
                .execute(&mut client.session(), &get("dbbench-ready"))
                .0,
            Outcome::Missing
        );
    }
    let apart = [StandIn::start(), StandIn::start()];
    let nodes: Vec<String> = apart
        .iter()
        .map(|one| endpoint(one.node(0), "http"))
        .collect();
    let client = open_at(&nodes, "http", json!({}));
    let failure = client.control().ready(LIMIT).expect_err("they are apart");
    assert!(failure.message.ends_with("knows 1 of 2 nodes"), "{failure}");
}

/// By HTTP with status 200.
#[test]
fn a_listing_that_is_not_done_in_time_is_no_empty_bucket() {
    for interface in INTERFACES {
        let store = StandIn::start();
        let client = open(&store, interface, json!({}));
        let mut session = client.session();
        for number in 0..150 {
            client.execute(&mut session, &set(&format!("k {number}"), b"v"));
        }
        let mut control = client.control();
        assert_eq!(control.statement("keys", LIMIT).expect("a number"), "150");
        assert_eq!(
            control.statement("get missing", LIMIT).expect("nothing"),
            ""
        );
        store.node(0).set_mood(Mood::GivesUp(Duration::ZERO));
        let failure = control.reset(LIMIT).expect_err("it is not done");
        assert_eq!(
            (failure.class, failure.code.as_str()),
            (ErrorClass::Server, "timeout")
        );
        store.node(0).set_mood(Mood::Well);
        assert_eq!(client.execute(&mut session, &get("k 7")).0, Outcome::Found);
        control.reset(LIMIT).expect("it is done");
        assert_eq!(
            client.execute(&mut session, &get("k 149")).0,
            Outcome::Missing
        );
        assert!(
            control
                .version(LIMIT)
                .expect("a version")
                .starts_with("Riak KV ")
        );
        let unknown = control
            .statement("select 1", LIMIT)
            .expect_err("no question");
        assert_eq!(unknown.class, ErrorClass::Client);
    }
}

/// The engine gives the operation up, drops the session and opens another. No answer of the old one is read by the new one,
/// and there is one connection for each operation that was given up, not more.
#[test]
fn limits_of_a_millisecond_on_a_hung_node_mix_up_nothing() {
    for interface in INTERFACES {
        let store = StandIn::start();
        let client = open(&store, interface, json!({}));
        let mut session = client.session();
        let name = |number: usize| format!("k{number}");
        for number in 0..50 {
            let value = format!("value {number}");
            client.execute(&mut session, &set(&name(number), value.as_bytes()));
        }
        let node = store.node(0);
        let mut given_up = 0;
        for number in 0..200 {
            let key = number % 50;
            let read = verify(name(key).as_bytes(), format!("value {key}").as_bytes());
            match number % 4 {
                0 => node.hang(),
                2 => node.go_on(),
                _ => {}
            }
            let started = Instant::now();
            match client.execute_within(&mut session, &read, Duration::from_millis(1)) {
                Some(outcome) => assert_eq!(outcome, Outcome::Found, "{interface} {number}"),
                None => {
                    given_up += 1;
                    assert!(started.elapsed() < Duration::from_millis(500));
                    session = client.session();
                }
            }
        }
        assert!(given_up >= 100, "{given_up}");
        assert_eq!(node.accepted(), given_up + 1);
    }
}

#[test]
fn an_answer_later_than_its_limit_is_never_that_of_another_operation() {
    for interface in INTERFACES {
        let store = StandIn::start();
        let node = store.node(0);
        let client = open(&store, interface, json!({}));
        let mut session = client.session();
        for number in 0..20 {
            let value = format!("value {number}").repeat(100);
            client.execute(&mut session, &set(&format!("k{number}"), value.as_bytes()));
        }
        let mut late = 0;
        for number in 0..400_usize {
            // Around the limit, so that some come just in time.
            let delay = Duration::from_micros(number as u64 * 7919 % 4000);
            node.set_mood(Mood::Slow(delay));
            let key = number * 7 % 20;
            let value = format!("value {key}").repeat(100);
            let read = verify(format!("k{key}").as_bytes(), value.as_bytes());
            match client.execute_within(&mut session, &read, Duration::from_millis(2)) {
                Some(outcome) => assert_eq!(outcome, Outcome::Found, "{interface} {number}"),
                None => {
                    late += 1;
                    session = client.session();
                }
            }
        }
        assert!((50..400).contains(&late), "{late}");
    }
}

#[test]
fn a_connection_that_the_node_ends_is_replaced_within_the_next_operation() {
    let server = ScriptedServer::start(Framing::Http, |_, _| {
        vec![
            Step::send("HTTP/1.1 404 Object Not Found\r\nConnection: close\r\nContent-Length: 10\r\n\r\nnot found\n"),
            Step::Close,
        ]
    })
    .expect("a server");
    let client = open_at(&[format!("127.0.0.1:{}", server.port())], "http", json!({}));
    let mut session = client.session();
    for _ in 0..3 {
        assert_eq!(client.execute(&mut session, &get("k")).0, Outcome::Missing);
    }
    assert_eq!(server.accepted(), 3);
    assert!(session.peer().is_some());
}

/// What the driver sends to a server that notes it down, that server's port, and what the driver says of it.
fn sent(interface: &str, more: Value, operations: &[Operation]) -> (Vec<Vec<u8>>, u16, Vec<Reply>) {
    let noted = Arc::new(Mutex::new(Vec::new()));
    let requests = Arc::clone(&noted);
    let done = b"HTTP/1.1 204 No Content\r\n\r\n".to_vec();
    let (framing, answers) = match interface {
        "pb" => {
            let answers = [pb_value(b"v"), frame(12, b""), frame(14, b"")];
            (Framing::Length32, answers)
        }
        _ => (Framing::Http, [http_value(b"v"), done.clone(), done]),
    };
    let server = ScriptedServer::start(framing, move |_, request| {
        noted.lock().expect("no panic").push(request.to_vec());
        let answer = match (request[0], request[4]) {
            (b'G', _) | (0, 9) => &answers[0],
            (b'P', _) | (0, 11) => &answers[1],
            _ => &answers[2],
        };
        vec![Step::Send(answer.clone())]
    })
    .expect("a server");
    let client = open_at(&[format!("127.0.0.1:{}", server.port())], interface, more);
    let mut session = client.session();
    let replies = operations.iter().map(|operation| {
        let (outcome, reply) = client.execute(&mut session, operation);
        assert!(outcome.succeeded(), "{outcome:?}");
        reply
    });
    let replies = replies.collect();
    let requests = requests.lock().expect("no panic").clone();
    (requests, server.port(), replies)
}

fn everything_said() -> Value {
    json!({
        "bucket": "a b", "bucket_type": "siblings", "r": 1, "pr": "quorum", "w": "all", "dw": 0, "pw": "one",
        "return_body": true, "timeout": "250ms",
    })
}

fn one_of_each() -> [Operation; 4] {
    [
        get("k/1"),
        change("k/1", b"v"),
        operation(Verb::Insert, b"k/1", b"v"),
        operation(Verb::Delete, b"k/1", b""),
    ]
}

#[test]
fn requests_of_http_are_as_its_page_says() {
    let (requests, port, _) = sent("http", everything_said(), &one_of_each());
    let path = "/types/siblings/buckets/a%20b/keys/k%2F1";
    let host =
        format!(" HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: multipart/mixed, */*;q=0.9\r\n");
    let put = format!(
        "PUT {path}?w=all&dw=0&pw=one&returnbody=true&timeout=250{host}Content-Type: application/octet-stream\r\n"
    );
    let expected = [
        format!("GET {path}?r=1&pr=quorum&timeout=250{host}\r\n"),
        format!("GET {path}?r=1&pr=quorum&timeout=250{host}\r\n"),
        format!("{put}X-Riak-Vclock: a85hYGBg\r\nContent-Length: 1\r\n\r\nv"),
        format!("{put}If-None-Match: *\r\nContent-Length: 1\r\n\r\nv"),
        format!("DELETE {path}?r=1&w=all&dw=0&pr=quorum&pw=one&timeout=250{host}\r\n"),
    ];
    let requests: Vec<_> = requests.into_iter().map(String::from_utf8).collect();
    assert_eq!(requests, expected.map(Ok));
    let (requests, port, _) = sent("http", json!({}), &[get("k")]);
    let plain = format!(
        "GET /buckets/dbbench/keys/k HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: multipart/mixed, */*;q=0.9\r\n\r\n"
    );
    assert_eq!(requests, [plain.into_bytes()]);
}

#[test]
fn requests_of_protocol_buffers_are_as_their_page_says() {
    let (requests, _, _) = sent("pb", everything_said(), &one_of_each());
    let object = [field(0x0a, b"a b"), field(0x12, b"k/1")].concat();
    let kind = field(0x6a, b"siblings");
    let read = |keeping: &[u8]| {
        // r = 1, pr = quorum, timeout = 250
        let quorums = b"\x18\x01\x20\xfd\xff\xff\xff\x0f";
        frame(
            9,
            &[&object, &quorums[..], keeping, b"\x50\xfa\x01", &kind].concat(),
        )
    };
    let content = [field(0x0a, b"v"), field(0x12, b"application/octet-stream")].concat();
    let write = |vclock: &[u8], if_none_match: &[u8]| {
        // w = all, dw = 0, return_body, pw = one; timeout = 250 and the type behind the condition
        let quorums = b"\x28\xfc\xff\xff\xff\x0f\x30\0\x38\x01\x40\xfe\xff\xff\xff\x0f";
        let parts: [&[u8]; 7] = [
            &object,
            vclock,
            &field(0x22, &content),
            quorums,
            if_none_match,
            b"\x60\xfa\x01\x82\x01\x08",
            b"siblings",
        ];
        frame(11, &parts.concat())
    };
    // r = 1, w = all, pr = quorum, pw = one, dw = 0, timeout = 250
    let quorums = b"\x28\x01\x30\xfc\xff\xff\xff\x0f\x38\xfd\xff\xff\xff\x0f\x40\xfe\xff\xff\xff\x0f\x48\0\x50\xfa\x01";
    let expected = [
        read(b""),
        // deletedvclock
        read(b"\x48\x01"),
        write(&field(0x1a, b"clock"), b""),
        write(b"", b"\x50\x01"),
        frame(13, &[&object, &quorums[..], &kind].concat()),
    ];
    assert_eq!(requests, expected);
    // head and deletedvclock of the read before an update.
    let (requests, _, _) = sent("pb", json!({}), &[operation(Verb::Update, b"k", b"v")]);
    let object = [field(0x0a, b"dbbench"), field(0x12, b"k")].concat();
    assert_eq!(
        requests[0],
        frame(9, &[&object, &b"\x40\x01\x48\x01"[..]].concat())
    );
}

#[test]
fn a_large_value_is_sent_as_a_small_one_and_its_bytes_are_counted() {
    for interface in INTERFACES {
        for length in [10, 127, 128, 12_287, 12_288, 80_000] {
            let value: Vec<u8> = (0..length).map(|n| n as u8).collect();
            let operations = [set("k", &value), get("k")];
            let (requests, _, replies) = sent(interface, json!({}), &operations);
            let bytes: Vec<u64> = replies.iter().map(|reply| reply.bytes_sent).collect();
            let expected: Vec<u64> = requests.iter().map(|one| one.len() as u64).collect();
            assert_eq!(bytes, expected, "{interface} {length}");
            let place = requests[0]
                .windows(length)
                .position(|window| window == value);
            assert!(place.is_some(), "{interface} {length}");
            let answer = match interface {
                "pb" => pb_value(b"v"),
                _ => http_value(b"v"),
            };
            assert_eq!(replies[1].bytes_received, answer.len() as u64);
        }
    }
}

#[test]
fn the_answer_with_the_stored_object_is_read_and_its_siblings_counted() {
    for interface in INTERFACES {
        let store = StandIn::start();
        let table = json!({ "bucket_type": "siblings", "return_body": true });
        let client = open(&store, interface, table);
        let mut session = client.session();
        let value = vec![b'v'; 80_000];
        let (outcome, first) = client.execute(&mut session, &set("k", &value));
        assert_eq!((outcome, first.warnings), (Outcome::Done, 0));
        assert!(first.bytes_received > 80_000);
        let (outcome, second) = client.execute(&mut session, &set("k", b"other"));
        assert_eq!(
            (outcome, second.warnings),
            (Outcome::Done, 1),
            "{interface}"
        );
        assert_eq!(
            client.execute(&mut session, &get("none")).0,
            Outcome::Missing
        );
    }
}

#[test]
fn sessions_talk_to_their_own_node_and_tell_which() {
    for interface in INTERFACES {
        let store = StandIn::cluster(3);
        for number in 0..3 {
            let node = store.node(number);
            let client = open_at(&[endpoint(node, interface)], interface, json!({}));
            let mut session = client.session();
            let before = node.requests();
            client.execute(&mut session, &set("k", b"v"));
            assert_eq!(node.requests(), before + 1);
            let peer = session.peer().expect("an address").to_string();
            assert_eq!(peer, endpoint(node, interface));
        }
    }
}
