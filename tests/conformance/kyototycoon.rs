//! The kyototycoon driver's harnesses, one for each protocol, on a real server where there is one and else on the stand-in;
//! and what only it must do.

use crate::client::*;
use crate::kyototycoon_server::server;
use crate::support::TestServer;
use dbbench::driver::kyototycoon::KyotoTycoon;
use dbbench::driver::scripted::{Framing, ScriptedServer, Step};
use dbbench::driver::spec::Durability;
use dbbench::op::{ErrorClass, Operation, Outcome, Verb};
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PROTOCOLS: [&str; 3] = ["rpc", "rest", "binary"];

fn options(value: Value) -> Map<String, Value> {
    value.as_object().expect("a table").clone()
}

fn at(port: u16) -> String {
    format!("kyototycoon://127.0.0.1:{port}")
}

fn open(port: u16, table: Value) -> Client<KyotoTycoon> {
    Client::open(&[at(port)], options(table), Vec::new()).expect("the driver opens")
}

fn by_http(more: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{more}\r\n");
    [head.as_bytes(), body].concat()
}

fn rpc_value(_: &str, content: &[u8]) -> Vec<u8> {
    let mut body = b"value\t".to_vec();
    for byte in content {
        match byte.is_ascii_alphanumeric() {
            true => body.push(*byte),
            false => body.extend(format!("%{byte:02x}").into_bytes()),
        }
    }
    body.push(b'\n');
    let kind = "Content-Type: text/tab-separated-values; colenc=U\r\n";
    by_http(kind, &body)
}

fn rest_value(_: &str, content: &[u8]) -> Vec<u8> {
    by_http("", content)
}

fn binary_value(key: &str, content: &[u8]) -> Vec<u8> {
    let mut answer = b"\xba\0\0\0\x01\0\0".to_vec();
    answer.extend((key.len() as u32).to_be_bytes());
    answer.extend((content.len() as u32).to_be_bytes());
    answer.extend(0xff_ffff_ffff_u64.to_be_bytes());
    answer.extend(key.as_bytes());
    answer.extend(content);
    answer
}

const RPC_MALFORMED: &[&[u8]] = &[
    b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nvalue\tv\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 8\r\n\r\nvalue\tv\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: text/tab-separated-values\r\nContent-Length: 6\r\n\r\nnum\t1\n",
    b"HTTP/1.1 200 OK\r\nContent-Type: text/tab-separated-values; colenc=B\r\nContent-Length: 14\r\n\r\ndmFsdWU=\tA!BC\n",
    b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n",
    b"\xba\0\0\0\0",
];

const REST_MALFORMED: &[&[u8]] = &[
    b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    b"HTTP/1.1 2x0 OK\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"HTTP/1.1 200 OK\r\nBad Header\r\n\r\n",
    b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n",
    b"\xba\0\0\0\0",
];

const BINARY_MALFORMED: &[&[u8]] = &[
    b"HTTP/1.1 400 Bad Request\r\n",
    b"\xb8\0\0\0\x01",
    // More than was asked for.
    b"\xba\0\0\0\x02",
    // Of another database, of another key, too long.
    b"\xba\0\0\0\x01\0\x01\0\0\0\x01\0\0\0\x01\0\0\0\xff\xff\xff\xff\xffkv",
    b"\xba\0\0\0\x01\0\0\0\0\0\x01\0\0\0\x01\0\0\0\xff\xff\xff\xff\xffxv",
    b"\xba\0\0\0\x01\0\0\0\0\0\x02\0\0\0\x01\0\0\0\xff\xff\xff\xff\xffk",
    b"\xba\0\0\0\x01\0\0\0\0\0\x01\xff\xff\xff\xff\0\0\0\xff\xff\xff\xff\xffk",
];

macro_rules! harness {
    ($name:ident, $protocol:expr, $framing:expr, $value:expr, $malformed:expr) => {
        pub struct $name(TestServer);

        impl Harness for $name {
            type Driver = KyotoTycoon;

            fn start() -> Option<Self> {
                Some($name(server(1)))
            }

            fn endpoint(&self) -> Option<String> {
                Some(at(self.0.port))
            }

            fn options() -> Map<String, Value> {
                options(json!({ "protocol": $protocol }))
            }

            /// Eight bytes, the highest first.
            fn counter(number: i64) -> Vec<u8> {
                number.to_be_bytes().to_vec()
            }
        }

        impl ServerHarness for $name {
            const FRAMING: Framing = $framing;

            fn server(&self) -> &dyn Hurt {
                &self.0
            }

            fn endpoint_at(port: u16) -> String {
                at(port)
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

harness!(Rpc, "rpc", Framing::Http, rpc_value, RPC_MALFORMED);
harness!(Rest, "rest", Framing::Http, rest_value, REST_MALFORMED);
harness!(
    Binary,
    "binary",
    Framing::Raw,
    binary_value,
    BINARY_MALFORMED
);

#[test]
fn what_one_protocol_writes_all_of_them_read() {
    let server = server(1);
    let all: Vec<u8> = (0..=255).collect();
    let records: [(&[u8], &[u8]); 5] = [
        (b"tab\tand\nline", b"a\tb\nc\r\n"),
        (b"a/b c%", b"%41=41+ "),
        (&all, &all),
        (b"text", &[b'x'; 41_960]),
        (b"nothing", b""),
    ];
    let mut writers = vec![
        json!({ "protocol": "rest" }),
        json!({ "protocol": "binary" }),
    ];
    for encoding in ["auto", "base64", "url", "quoted"] {
        writers.push(json!({ "encoding": encoding }));
    }
    for table in writers {
        let writer = open(server.port, table.clone());
        writer.control().reset(LIMIT).expect("a reset");
        let mut session = writer.session();
        for (key, value) in records {
            let written = operation(Verb::Set, key, value);
            assert_eq!(writer.execute(&mut session, &written).0, Outcome::Done);
        }
        for protocol in PROTOCOLS {
            let reader = open(server.port, json!({ "protocol": protocol }));
            let mut session = reader.session();
            for (key, value) in records {
                let read = reader.execute(&mut session, &verify(key, value)).0;
                let shown = key.escape_ascii();
                assert_eq!(read, Outcome::Found, "{table} then {protocol}: {shown}");
            }
        }
    }
}

#[test]
fn databases_are_kept_apart_and_emptied_one_by_one() {
    let server = server(2);
    for protocol in PROTOCOLS {
        let of = |number: u16| {
            open(
                server.port,
                json!({ "protocol": protocol, "database": number }),
            )
        };
        let clients = [of(0), of(1)];
        for (client, value) in clients.iter().zip(["zero", "one"]) {
            let mut session = client.session();
            let written = client.execute(&mut session, &set("k", value.as_bytes())).0;
            assert_eq!(written, Outcome::Done);
            let increment = operation(Verb::Increment, b"n", b"");
            assert_eq!(client.execute(&mut session, &increment).0, Outcome::Done);
            let insert = operation(Verb::Insert, b"i", b"");
            assert_eq!(client.execute(&mut session, &insert).0, Outcome::Done);
            assert_eq!(
                client.control().statement("status count", LIMIT).unwrap(),
                "3"
            );
        }
        for (client, value) in clients.iter().zip(["zero", "one"]) {
            let read = verify(b"k", value.as_bytes());
            assert_eq!(
                client.execute(&mut client.session(), &read).0,
                Outcome::Found
            );
        }
        clients[1].control().reset(LIMIT).expect("a reset");
        let counts = [0, 1].map(|number| of(number).control().statement("status count", LIMIT));
        assert_eq!(counts.map(Result::unwrap), ["3", "0"]);
        clients[0].control().reset(LIMIT).expect("a reset");
    }
}

#[test]
fn a_database_that_is_not_there_is_told_and_the_connection_kept() {
    let server = server(1);
    for (protocol, code) in PROTOCOLS.into_iter().zip(["400", "400", "set_bulk"]) {
        let client = open(server.port, json!({ "protocol": protocol, "database": 7 }));
        let not_ready = client.control().ready(LIMIT).expect_err("no such database");
        assert_eq!(
            (not_ready.class, not_ready.code.as_str()),
            (ErrorClass::Server, "400")
        );
        let mut session = client.session();
        for _ in 0..2 {
            let refusal = failure(client.execute(&mut session, &set("k", b"v")).0);
            assert_eq!((refusal.class, refusal.broken), (ErrorClass::Server, false));
            assert_eq!(refusal.code, code, "{protocol}: {refusal}");
        }
        let (outcomes, _) = client.execute_batch(&mut session, &[set("a", b"1"), set("b", b"2")]);
        assert!(outcomes.iter().all(|outcome| !outcome.succeeded()));
    }
}

#[test]
fn errors_have_the_servers_code() {
    let server = server(1);
    for protocol in PROTOCOLS {
        let client = open(server.port, json!({ "protocol": protocol }));
        let mut session = client.session();
        client.execute(&mut session, &set("k", b"text"));
        let increment = operation(Verb::Increment, b"k", b"");
        let refusal = failure(client.execute(&mut session, &increment).0);
        assert_eq!(
            (refusal.class, refusal.code.as_str()),
            (ErrorClass::Server, "DB 8")
        );
        let wrong = client.control().statement("nosuch", LIMIT).unwrap_err();
        assert_eq!(
            (wrong.class, wrong.code.as_str()),
            (ErrorClass::Server, "501")
        );
        let wrong = client.control().statement("get", LIMIT).unwrap_err();
        assert_eq!(
            (wrong.class, wrong.code.as_str()),
            (ErrorClass::Server, "400")
        );
    }
}

#[test]
fn a_key_too_long_for_a_path_is_not_sent() {
    let server = server(1);
    let client = open(server.port, json!({ "protocol": "rest" }));
    let mut session = client.session();
    let longest = "k".repeat(8192 - 1 - "DELETE / HTTP/1.1\r\n".len());
    let written = client.execute(&mut session, &set(&longest, b"v")).0;
    assert_eq!(written, Outcome::Done);
    let spelled = "/".repeat(longest.len() / 3 + 1);
    for key in [format!("{longest}k"), spelled] {
        let (outcome, reply) = client.execute(&mut session, &set(&key, b"v"));
        let refusal = failure(outcome);
        assert_eq!(
            (refusal.class, refusal.broken),
            (ErrorClass::Rejected, false)
        );
        assert_eq!(reply.bytes_sent, 0);
    }
    let batch = [
        get("k".repeat(9_000).as_str()),
        verify(longest.as_bytes(), b"v"),
    ];
    let (outcomes, _) = client.execute_batch(&mut session, &batch);
    assert!(!outcomes[0].succeeded());
    assert_eq!(outcomes[1], Outcome::Found);
    for protocol in ["rpc", "binary"] {
        let client = open(server.port, json!({ "protocol": protocol }));
        let key = "k".repeat(20_000);
        let mut session = client.session();
        assert_eq!(
            client.execute(&mut session, &set(&key, b"v")).0,
            Outcome::Done
        );
        let read = verify(key.as_bytes(), b"v");
        assert_eq!(client.execute(&mut session, &read).0, Outcome::Found);
    }
}

#[test]
fn records_that_follow_one_another_share_a_binary_request() {
    let requests = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    let record = b"\0\0\0\0\0\x01\0\0\0\x01\0\0\0\xff\xff\xff\xff\xff";
    let mut answer = b"\xba\0\0\0\x02".to_vec();
    for pair in [b"bB", b"bB"] {
        answer.extend(record);
        answer.extend(pair);
    }
    answer.extend(b"\xb8\0\0\0\x02\xb9\0\0\0\x00\xb9\0\0\0\x01");
    let server = ScriptedServer::start(Framing::Raw, move |_, request| {
        seen.lock().unwrap().extend_from_slice(request);
        vec![Step::Send(answer.clone())]
    })
    .unwrap();
    let client = open(server.port(), json!({ "protocol": "binary" }));
    let delete = |key: &[u8]| operation(Verb::Delete, key, b"");
    let batch = [
        get("a"),
        verify(b"b", b"B"),
        get("c"),
        verify(b"b", b"X"),
        set("d", b"1"),
        set("e", b"2"),
        delete(b"a"),
        delete(b"b"),
    ];
    let (outcomes, replies) = client.execute_batch(&mut client.session(), &batch);
    use Outcome::*;
    let expected = [
        Missing, Found, Missing, WrongValue, Done, Done, Missing, Done,
    ];
    assert_eq!(outcomes, expected);
    let mut sent = b"\xba\0\0\0\0\0\0\0\x04".to_vec();
    for key in [b"a", b"b", b"c", b"b"] {
        sent.extend(b"\0\0\0\0\0\x01");
        sent.extend(key);
    }
    sent.extend(b"\xb8\0\0\0\0\0\0\0\x02");
    for pair in [b"d1", b"e2"] {
        sent.extend(b"\0\0\0\0\0\x01\0\0\0\x01\x7f\xff\xff\xff\xff\xff\xff\xff");
        sent.extend(pair);
    }
    for key in [b"a", b"b"] {
        sent.extend(b"\xb9\0\0\0\0\0\0\0\x01\0\0\0\0\0\x01");
        sent.extend(key);
    }
    let received = requests.lock().unwrap().clone();
    assert_eq!(
        received.escape_ascii().to_string(),
        sent.escape_ascii().to_string()
    );
    let bytes: u64 = replies.iter().map(|reply| reply.bytes_sent).sum();
    assert_eq!(bytes, sent.len() as u64);
}

#[test]
fn writes_that_a_shared_request_lost_are_all_doubted() {
    let server =
        ScriptedServer::start(Framing::Raw, |_, _| vec![Step::send(b"\xb8\0\0\0\x01")]).unwrap();
    let client = open(server.port(), json!({ "protocol": "binary" }));
    let mut session = client.session();
    let (outcomes, _) = client.execute_batch(&mut session, &[set("a", b"1"), set("b", b"2")]);
    for outcome in outcomes {
        let refusal = failure(outcome);
        assert_eq!((refusal.class, refusal.broken), (ErrorClass::Server, false));
        assert!(refusal.message.contains("1 of 2"), "{refusal}");
    }
    assert_eq!(
        client.execute(&mut session, &set("a", b"1")).0,
        Outcome::Done
    );
}

#[test]
fn a_large_batch_is_cut_to_requests_that_keep_their_order() {
    let server = server(1);
    let client = open(server.port, json!({ "protocol": "binary" }));
    let mut session = client.session();
    let name = |number: usize| format!("key-{number}");
    let load: Vec<Operation> = (0..1_500).map(|n| set(&name(n), &vec![b'v'; n])).collect();
    let (outcomes, _) = client.execute_batch(&mut session, &load);
    assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Done));
    let batch: Vec<Operation> = (0..3_000)
        .map(|n| verify(name(n).as_bytes(), &vec![b'v'; n]))
        .collect();
    let (outcomes, replies) = client.execute_batch(&mut session, &batch);
    for (number, outcome) in outcomes.iter().enumerate() {
        let expected = match number < 1_500 {
            true => Outcome::Found,
            false => Outcome::Missing,
        };
        assert_eq!(*outcome, expected, "key {number}");
    }
    assert_eq!(replies[1_499].value_length, Some(1_499));
}

#[test]
fn a_connection_that_the_server_ends_in_its_answer_is_replaced_once() {
    let server = ScriptedServer::start(Framing::Http, |_, _| {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\nv";
        vec![Step::send(answer), Step::Close]
    })
    .unwrap();
    let client = open(server.port(), json!({ "protocol": "rest" }));
    let mut session = client.session();
    for _ in 0..3 {
        assert_eq!(
            client.execute(&mut session, &verify(b"k", b"v")).0,
            Outcome::Found
        );
    }
    assert_eq!((server.accepted(), server.requests()), (3, 3));
    // What a batch sent behind such an answer is lost, and told so; it is not sent again.
    let (outcomes, _) = client.execute_batch(&mut session, &[get("k"), get("k")]);
    assert_eq!(outcomes[0], Outcome::Found);
    assert_eq!(failure(outcomes[1].clone()).class, ErrorClass::Reset);
    assert_eq!(server.accepted(), 4);
}

#[test]
fn an_error_of_the_binary_protocol_ends_its_connection() {
    let server = ScriptedServer::start(Framing::Raw, |_, _| vec![Step::send(b"\xbf")]).unwrap();
    let client = open(server.port(), json!({ "protocol": "binary" }));
    let refusal = failure(client.execute(&mut client.session(), &set("k", b"v")).0);
    assert_eq!((refusal.class, refusal.broken), (ErrorClass::Server, true));
    assert_eq!(refusal.code, "0xBF");
    assert_eq!(server.accepted(), 1);
}

#[test]
fn bytes_by_http_are_counted_with_their_heads() {
    let server = server(1);
    for (protocol, sent) in [
        ("rest", "GET /k HTTP/1.1\r\nHost: \r\n\r\n".len()),
        (
            "rpc",
            "POST /rpc/get HTTP/1.1\r\nHost: \r\nContent-Type: text/tab-separated-values\r\n\
             Content-Length: 6\r\n\r\nkey\tk\n"
                .len(),
        ),
    ] {
        let client = open(server.port, json!({ "protocol": protocol }));
        let mut session = client.session();
        let content = vec![b'v'; 41_960];
        let (_, written) = client.execute(&mut session, &set("k", &content));
        let (_, read) = client.execute(&mut session, &get("k"));
        let host = format!("127.0.0.1:{}", server.port).len();
        assert_eq!(read.bytes_sent, (sent + host) as u64, "{protocol}");
        let framed = 42_000..42_300;
        assert!(framed.contains(&written.bytes_sent), "{written:?}");
        assert!(framed.contains(&read.bytes_received), "{read:?}");
        assert!((80..300).contains(&written.bytes_received), "{written:?}");
        let (_, replies) = client.execute_batch(&mut session, &[get("k"), get("k")]);
        assert!(
            replies
                .iter()
                .all(|reply| framed.contains(&reply.bytes_received))
        );
    }
}

#[test]
fn the_server_tells_its_version_and_settings() {
    let server = server(1);
    let client = open(server.port, json!({}));
    let mut control = client.control();
    let version = control.version(LIMIT).unwrap();
    assert!(version.starts_with("Kyoto Tycoon 0.9."), "{version}");
    let settings = control.settings(LIMIT).unwrap();
    let of = |name: &str| settings.iter().find(|(known, _)| known == name);
    assert_eq!(of("serv_thread_count").expect("threads").1, "4");
    assert_eq!(of("path").expect("the database").1, "%");
    assert_eq!(control.durability(LIMIT).unwrap(), Some(Durability::Memory));
    assert_eq!(control.statement("set key=k value=v", LIMIT).unwrap(), "");
    assert_eq!(control.statement("get key=k", LIMIT).unwrap(), "v");
    assert_eq!(
        control.statement("increment key=n num=5", LIMIT).unwrap(),
        "5"
    );
    assert_eq!(control.statement("status count", LIMIT).unwrap(), "2");
    let wrong = control.statement("status nosuch", LIMIT).unwrap_err();
    assert_eq!(wrong.class, ErrorClass::UnexpectedReply);
    let wrong = control.statement("get?key=k HTTP/1.1", LIMIT).unwrap_err();
    assert_eq!(wrong.class, ErrorClass::Client);
    let read = verify(b"k", b"v");
    assert_eq!(
        client.execute(&mut client.session(), &read).0,
        Outcome::Found
    );
}

/// A file may hold back what it was told; only what is in memory alone can be named.
#[test]
fn the_durability_of_a_file_is_not_claimed() {
    for (path, expected) in [
        ("*#capsiz=64m", Some(Durability::Memory)),
        ("casket.kct", None),
    ] {
        let server = ScriptedServer::start(Framing::Http, move |_, _| {
            let body = format!("count\t0\npath\t{path}\n");
            let kind = "Content-Type: text/tab-separated-values\r\n";
            vec![Step::Send(by_http(kind, body.as_bytes()))]
        })
        .unwrap();
        let client = open(server.port(), json!({}));
        assert_eq!(client.control().durability(LIMIT).unwrap(), expected);
    }
}

/// The key that a request asks for; the server of the test below is told no other.
fn asked(protocol: &str, request: &[u8]) -> String {
    let text = String::from_utf8_lossy(request);
    let key = match protocol {
        "rest" => text
            .strip_prefix("GET /")
            .and_then(|rest| rest.split(' ').next()),
        "rpc" => text.trim_end().rsplit('\t').next(),
        _ => text.get(text.len() - 5..),
    };
    key.expect("a key").to_owned()
}

#[test]
fn answers_late_at_random_are_nobodys_and_sessions_connect_once() {
    for protocol in PROTOCOLS {
        let framing = match protocol {
            "binary" => Framing::Raw,
            _ => Framing::Http,
        };
        let server = ScriptedServer::start(framing, move |_, request| {
            let key = asked(protocol, request);
            let content = format!("value of {key}");
            let answer = match protocol {
                "rest" => rest_value(&key, content.as_bytes()),
                "rpc" => rpc_value(&key, content.as_bytes()),
                _ => binary_value(&key, content.as_bytes()),
            };
            let number: u64 = key[1..].parse().expect("a number");
            let late = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61 == 0;
            let delay = Duration::from_millis(if late { 12 } else { 0 });
            vec![Step::Wait(delay), Step::Send(answer)]
        })
        .unwrap();
        let client = open(server.port(), json!({ "protocol": protocol }));
        let mut session = client.session();
        let mut given_up = 0;
        for number in 0..400 {
            let key = format!("k{number:04}");
            let read = verify(key.as_bytes(), format!("value of {key}").as_bytes());
            match client.execute_within(&mut session, &read, Duration::from_millis(6)) {
                Some(outcome) => assert_eq!(outcome, Outcome::Found, "{protocol}: {key}"),
                None => {
                    given_up += 1;
                    session = client.session();
                }
            }
        }
        assert!(given_up >= 30, "{protocol}: {given_up} were late");
        assert_eq!(server.accepted(), given_up + 1, "{protocol}");
    }
}
