//! The redis driver's harnesses, and what only it must do.

use crate::client::*;
use crate::support::TestServer;
use dbbench::driver::CustomOperation;
use dbbench::driver::redis::Redis;
use dbbench::driver::scripted::Framing;
use dbbench::driver::spec::Durability;
use dbbench::op::{ErrorClass, Failure, Operation, Outcome, Verb};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::time::Duration;

fn options(value: Value) -> Map<String, Value> {
    value.as_object().expect("a table").clone()
}

/// What a server says while a connection is new, to a driver that names itself.
fn greet(request: &[u8]) -> Option<Vec<u8>> {
    let contains = |word: &[u8]| request.windows(word.len()).any(|window| window == word);
    if contains(b"HELLO") {
        return Some(b"%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n".to_vec());
    }
    (contains(b"SETNAME") || contains(b"PING")).then(|| b"+OK\r\n".to_vec())
}

fn value(value: &[u8]) -> Vec<u8> {
    let mut answer = format!("${}\r\n", value.len()).into_bytes();
    answer.extend_from_slice(value);
    answer.extend_from_slice(b"\r\n");
    answer
}

fn malformed() -> Vec<&'static [u8]> {
    vec![
        b"HTTP/1.1 400 Bad Request\r\n",
        b"\r\n",
        b"$x\r\n",
        b"$-7\r\n",
        b"$99999999999999\r\n",
        b"$3\r\nabcde\r\n",
        b"+OK\r\n",
        b":1\r\n",
        b"$3\n",
        b"\x00\x01\x02",
    ]
}

macro_rules! harness {
    ($name:ident, $options:expr, $endpoint:expr) => {
        pub struct $name(TestServer);

        impl Harness for $name {
            type Driver = Redis;

            fn start() -> Option<Self> {
                TestServer::redis(&[]).map($name)
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
            const FRAMING: Framing = Framing::Resp;

            fn server(&self) -> &dyn Hurt {
                &self.0
            }

            fn endpoint_at(port: u16) -> String {
                format!("redis://127.0.0.1:{port}")
            }

            fn greet(request: &[u8]) -> Option<Vec<u8>> {
                greet(request)
            }

            fn value(_: &str, content: &[u8]) -> Vec<u8> {
                value(content)
            }

            fn malformed() -> Vec<&'static [u8]> {
                malformed()
            }
        }
    };
}

harness!(Resp2, json!({}), |server| format!(
    "redis://127.0.0.1:{}",
    server.port
));
harness!(Resp3, json!({ "protocol": 3 }), |server| format!(
    "redis://127.0.0.1:{}/2",
    server.port
));
harness!(Unix, json!({}), |server| format!(
    "redis+unix://{}",
    server.socket().display()
));

fn open(endpoint: String, table: Value) -> Result<Client<Redis>, Failure> {
    Client::open(&[endpoint], options(table), Vec::new())
}

fn at(server: &TestServer) -> String {
    format!("redis://127.0.0.1:{}", server.port)
}

fn refused(client: &Client<Redis>) -> Failure {
    client.try_session().err().expect("it is not let in")
}

/// The redis crate's own client, as a second opinion.
fn reference(url: String) -> redis::Connection {
    let client = redis::Client::open(url).expect("an address");
    client.get_connection().expect("a connection")
}

#[test]
fn the_crates_own_client_reads_what_was_written() {
    let Some(server) = TestServer::redis(&[]) else {
        return;
    };
    let client = open(at(&server), json!({})).unwrap();
    let mut session = client.session();
    let mut other = reference(at(&server));
    for length in [0, 3, 2_560, 41_960, 1 << 20] {
        let content: Vec<u8> = (0..length).map(|number| (number % 251) as u8).collect();
        client.execute(&mut session, &set("ours", &content));
        let read: Vec<u8> = redis::cmd("GET").arg("ours").query(&mut other).unwrap();
        assert!(read == content, "{length} bytes");
        let written = redis::cmd("SET")
            .arg("theirs")
            .arg(&content)
            .exec(&mut other);
        written.unwrap();
        let read = verify(b"theirs", &content);
        assert_eq!(client.execute(&mut session, &read).0, Outcome::Found);
    }
}

#[test]
fn a_wrong_password_is_a_failure_to_connect_with_its_code() {
    let Some(server) = TestServer::redis(&["--requirepass", "right"]) else {
        return;
    };
    for protocol in [2, 3] {
        let options = |password| json!({ "protocol": protocol, "password": password });
        let failure = refused(&open(at(&server), options("wrong")).unwrap());
        assert_eq!(failure.class, ErrorClass::Connect);
        assert_eq!(failure.code, "WRONGPASS");
        assert!(!failure.message.contains("wrong"), "{failure}");
        let failure = refused(&open(at(&server), json!({ "protocol": protocol })).unwrap());
        assert_eq!(failure.code, "NOAUTH");
        let client = open(at(&server), options("right")).unwrap();
        let read = client.execute(&mut client.session(), &get("k")).0;
        assert_eq!(read, Outcome::Missing);
        let endpoint = format!("redis://:right@127.0.0.1:{}", server.port);
        let client = open(endpoint, json!({ "protocol": protocol })).unwrap();
        client.session();
        client.control().ready(LIMIT).unwrap();
    }
}

#[test]
fn a_user_may_do_what_the_server_lets_it() {
    let Some(server) = TestServer::redis(&[]) else {
        return;
    };
    let mut other = reference(at(&server));
    let rights = [
        "SETUSER", "reader", "on", ">secret", "~*", "+get", "+client", "+hello",
    ];
    redis::cmd("ACL").arg(&rights).exec(&mut other).unwrap();
    for protocol in [2, 3] {
        let endpoint = format!("redis://reader:secret@127.0.0.1:{}", server.port);
        let client = open(endpoint, json!({ "protocol": protocol })).unwrap();
        let mut session = client.session();
        let failure = failure(client.execute(&mut session, &set("k", b"v")).0);
        assert_eq!((failure.class, failure.broken), (ErrorClass::Server, false));
        assert_eq!(failure.code, "NOPERM");
        assert_eq!(client.execute(&mut session, &get("k")).0, Outcome::Missing);
    }
}

#[test]
fn databases_are_apart_and_a_reset_empties_only_one() {
    let Some(server) = TestServer::redis(&[]) else {
        return;
    };
    let first = open(at(&server), json!({})).unwrap();
    let third = open(at(&server), json!({ "database": 3 })).unwrap();
    let endpoint = format!("{}/4", at(&server));
    let fourth = open(endpoint, json!({ "database": 3 })).unwrap();
    for client in [&first, &third, &fourth] {
        let mut session = client.session();
        assert_eq!(client.execute(&mut session, &get("k")).0, Outcome::Missing);
        client.execute(&mut session, &set("k", b"v"));
    }
    third.control().reset(LIMIT).unwrap();
    let read = |client: &Client<Redis>| client.execute(&mut client.session(), &get("k")).0;
    assert_eq!(read(&first), Outcome::Found);
    assert_eq!(read(&third), Outcome::Missing);
    assert_eq!(read(&fourth), Outcome::Found);
    let refusal = refused(&open(at(&server), json!({ "database": 99 })).unwrap());
    assert_eq!(refusal.class, ErrorClass::Connect);
}

/// Writes a certificate for 127.0.0.1, signed by an authority of its own.
fn certificates(directory: &Path) {
    use rcgen::{CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let server = server.signed_by(&key, &authority).unwrap();
    std::fs::write(directory.join("ca.pem"), authority.pem()).unwrap();
    std::fs::write(directory.join("cert.pem"), server.pem()).unwrap();
    std::fs::write(directory.join("key.pem"), key.serialize_pem()).unwrap();
}

#[test]
fn tls_carries_values_of_any_size_and_trusts_nobody_unasked() {
    let keys = tempfile::tempdir().unwrap();
    certificates(keys.path());
    let file = |name: &str| keys.path().join(name).display().to_string();
    let (cert, key, ca) = (file("cert.pem"), file("key.pem"), file("ca.pem"));
    let Some(server) = TestServer::redis(&[
        "--port",
        "0",
        "--tls-port",
        "{port}",
        "--tls-auth-clients",
        "no",
        "--tls-cert-file",
        &cert,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &ca,
    ]) else {
        return;
    };
    let endpoint = || format!("rediss://127.0.0.1:{}", server.port);
    for table in [json!({ "tls_ca": ca }), json!({ "tls_insecure": true })] {
        let client = open(endpoint(), table).unwrap();
        let mut session = client.session();
        for length in [0, 41_960, 3_000_000] {
            let content = vec![b'x'; length];
            client.execute(&mut session, &set("k", &content));
            let read = verify(b"k", &content);
            assert_eq!(client.execute(&mut session, &read).0, Outcome::Found);
        }
        let batch: Vec<Operation> = (0..50).map(|_| set("k", &[7; 41_960])).collect();
        let (outcomes, _) = client.execute_batch(&mut session, &batch);
        assert_eq!(outcomes, vec![Outcome::Done; 50]);
        client.control().ready(LIMIT).unwrap();
    }
    let refusal = refused(&open(endpoint(), json!({})).unwrap());
    assert_eq!(refusal.class, ErrorClass::Connect);
    let missing = open(endpoint(), json!({ "tls_ca": "/nowhere/ca.pem" }));
    assert_eq!(missing.err().unwrap().class, ErrorClass::Client);
    // A client that speaks plainly is no client of this server.
    let plain = open(at(&server), json!({})).unwrap();
    let answer = plain.run(async {
        tokio::time::timeout(Duration::from_secs(1), async {
            plain.open_session().await.err()
        })
        .await
    });
    assert!(!matches!(answer, Ok(None)), "a plain session was opened");
}

fn custom(tables: &[Value]) -> Vec<Option<CustomOperation>> {
    let operations = tables.iter().enumerate().map(|(number, table)| {
        Some(CustomOperation {
            name: format!("operation-{number}"),
            table: options(table.clone()),
        })
    });
    operations.collect()
}

#[test]
fn operations_of_the_users_own_are_filled_in_and_held_against_their_pattern() {
    let Some(server) = TestServer::redis(&[]) else {
        return;
    };
    for protocol in [2, 3] {
        let operations = custom(&[
            json!({ "command": ["HSET", "hash-$key", "field", "$value"] }),
            json!({ "command": ["HGET", "hash-$key", "field"], "expect": "^v+$" }),
            json!({ "command": ["HGETALL", "hash-$key"], "expect": "^field\nv+$" }),
            json!({ "command": ["INCRBY", "count", "5"], "expect": "^(5|10)$" }),
            json!({ "command": ["HGET", "no-$key", "field"] }),
            json!({ "command": ["LPUSH", "hash-$key", "x"] }),
            json!({ "command": ["SET", "a", "b"], "expect": "^OK$" }),
        ]);
        let table = options(json!({ "protocol": protocol, "database": protocol }));
        let client = Client::<Redis>::open(&[at(&server)], table, operations).unwrap();
        let mut session = client.session();
        let mut run = |number, value: &[u8]| {
            let wanted = operation(Verb::Custom(number), b"k", value);
            client.execute(&mut session, &wanted)
        };
        assert_eq!(run(0, &[b'v'; 5_000]).0, Outcome::Done);
        let (outcome, reply) = run(1, b"");
        assert_eq!((outcome, reply.value_length), (Outcome::Found, Some(5_000)));
        assert_eq!(run(2, b"").0, Outcome::Done);
        assert_eq!(run(3, b"").0, Outcome::Done);
        assert_eq!(run(3, b"").0, Outcome::Done);
        let unexpected = failure(run(3, b"").0);
        assert_eq!(unexpected.class, ErrorClass::UnexpectedReply);
        assert!(!unexpected.broken);
        assert_eq!(run(4, b"").0, Outcome::Missing);
        let wrong = failure(run(5, b"").0);
        assert_eq!(
            (wrong.class, wrong.code.as_str()),
            (ErrorClass::Server, "WRONGTYPE")
        );
        run(0, b"other");
        assert_eq!(failure(run(1, b"").0).class, ErrorClass::UnexpectedReply);
        assert_eq!(failure(run(2, b"").0).class, ErrorClass::UnexpectedReply);
        assert_eq!(run(6, b"").0, Outcome::Done);
        let batch = [
            operation(Verb::Custom(0), b"k", b"vv"),
            operation(Verb::Custom(5), b"k", b""),
            operation(Verb::Custom(1), b"k", b""),
        ];
        let (outcomes, _) = client.execute_batch(&mut session, &batch);
        assert_eq!(
            (&outcomes[0], &outcomes[2]),
            (&Outcome::Done, &Outcome::Found)
        );
        assert!(!outcomes[1].succeeded() && !outcomes[1].breaks_session());
    }
}

#[test]
fn a_scan_goes_on_where_the_last_one_ended() {
    let Some(server) = TestServer::redis(&[]) else {
        return;
    };
    let client = open(at(&server), json!({ "scan_count": 50 })).unwrap();
    let mut session = client.session();
    let load: Vec<Operation> = (0..1000).map(|n| set(&format!("key-{n}"), b"")).collect();
    client.execute_batch(&mut session, &load);
    let scan = operation(Verb::Scan, b"", b"");
    let mut received = 0;
    for _ in 0..25 {
        let (outcome, reply) = client.execute(&mut session, &scan);
        assert_eq!(outcome, Outcome::Done);
        received += reply.bytes_received;
    }
    // All keys came at least once: each is `$7\r\nkey-123\r\n`, 13 bytes, or one more or less.
    assert!(received > 12_000, "{received}");
}

#[test]
fn the_server_tells_its_version_settings_and_durability() {
    let cases = [
        (vec![], Durability::Memory),
        (
            vec!["--appendonly", "yes", "--appendfsync", "no"],
            Durability::Os,
        ),
        (
            vec!["--appendonly", "yes", "--appendfsync", "everysec"],
            Durability::Group,
        ),
        (
            vec!["--appendonly", "yes", "--appendfsync", "always"],
            Durability::Fsync,
        ),
    ];
    for (arguments, expected) in cases {
        let Some(server) = TestServer::redis(&arguments) else {
            return;
        };
        let client = open(at(&server), json!({ "protocol": 3 })).unwrap();
        let mut control = client.control();
        assert_eq!(control.durability(LIMIT).unwrap(), Some(expected));
        let version = control.version(LIMIT).unwrap();
        assert!(version.starts_with("Redis "), "{version}");
        assert!(version[6..].starts_with(|first: char| first.is_ascii_digit()));
        let settings = control.settings(LIMIT).unwrap();
        let value = |name: &str| {
            settings
                .iter()
                .find(|(known, _)| known == name)
                .unwrap()
                .1
                .clone()
        };
        assert_eq!(value("save"), "");
        assert_eq!(
            value("appendonly"),
            if arguments.is_empty() { "no" } else { "yes" }
        );
        assert_eq!(settings[0].0, "save");
        assert_eq!(control.statement("SET a 5", LIMIT).unwrap(), "OK");
        assert_eq!(control.statement(" INCR  a ", LIMIT).unwrap(), "6");
        assert_eq!(control.statement("KEYS *", LIMIT).unwrap(), "a");
        let wrong = control.statement("NOSUCH", LIMIT).unwrap_err();
        assert_eq!(
            (wrong.class, wrong.code.as_str()),
            (ErrorClass::Server, "ERR")
        );
        assert!(control.ready(LIMIT).is_ok());
    }
}

#[test]
fn a_server_without_room_for_another_client_is_a_failure_to_connect() {
    let Some(server) = TestServer::redis(&["--maxclients", "2"]) else {
        return;
    };
    let client = open(at(&server), json!({})).unwrap();
    let _sessions = [client.session(), client.session()];
    let failure = refused(&client);
    assert_eq!(failure.class, ErrorClass::Connect);
    assert!(failure.broken);
}

/// The known truth that the engine's tests stand on: what is scripted is what a session sees.
#[test]
fn a_scripted_store_takes_its_time_and_no_more() {
    use dbbench::driver::scripted::{ScriptedServer, stores};
    let value = |key: &[u8]| Some([key, &[b'v'; 41_960]].concat());
    for delay in [200, 1_000, 5_000].map(Duration::from_micros) {
        let server = ScriptedServer::start(Framing::Resp, stores::redis(delay, value)).unwrap();
        let client = open(format!("redis://127.0.0.1:{}", server.port()), json!({})).unwrap();
        let mut session = client.session();
        let mut times = Vec::new();
        for number in 0..40 {
            let key = format!("key-{number}");
            let read = verify(key.as_bytes(), &value(key.as_bytes()).unwrap());
            let start = std::time::Instant::now();
            let outcome = client.execute(&mut session, &read).0;
            times.push(start.elapsed());
            assert_eq!(outcome, Outcome::Found);
        }
        times.sort();
        assert!(times[0] >= delay, "{:?} is less than {delay:?}", times[0]);
        // The quickest of many is not disturbed by whatever else this machine does.
        assert!(
            times[0] < delay + Duration::from_millis(1),
            "{:?}",
            times[0]
        );
    }
}
