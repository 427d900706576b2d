//! The http driver's harnesses, on nginx with PUT and DELETE; and what only it must do.

use crate::client::*;
use crate::support::{Ready, TestServer};
use dbbench::driver::http::Http;
use dbbench::driver::scripted::{Framing, ScriptedServer, Step};
use dbbench::driver::{CustomOperation, Driver};
use dbbench::op::{ErrorClass, Failure, Outcome, Verb};
use serde_json::{Map, Value, json};
use std::path::Path;

fn options(value: Value) -> Map<String, Value> {
    value.as_object().expect("a table").clone()
}

/// nginx that keeps what is PUT; `more` are further directives of its server.
fn nginx(more: &str) -> Option<TestServer> {
    let more = more.to_owned();
    TestServer::start("nginx", Ready::Port, move |port, directory| {
        let place = directory.display();
        for folder in ["root", "tmp"] {
            std::fs::create_dir_all(directory.join(folder)).expect("a folder");
        }
        std::fs::write(directory.join("root/page"), "a page\n").expect("a page");
        let user = match nix::unistd::Uid::effective().is_root() {
            true => "user root;",
            false => "",
        };
        let more = more.replace("DIRECTORY", &place.to_string());
        let configuration = format!(
            "daemon off; master_process off; {user} pid {place}/pid; error_log {place}/errors;\n\
             events {{ worker_connections 1024; }}\n\
             http {{ access_log off; client_max_body_size 64m; client_body_temp_path {place}/tmp/b;\n\
             proxy_temp_path {place}/tmp/p; fastcgi_temp_path {place}/tmp/f; uwsgi_temp_path {place}/tmp/u;\n\
             scgi_temp_path {place}/tmp/s; keepalive_requests 1000000;\n\
             server {{ listen 127.0.0.1:{port} backlog=1024; root {place}/root;\n\
             location / {{ dav_methods PUT DELETE; }}\n\
             location /empty {{ return 204; }} location /busy {{ return 503 'too busy'; }}\n\
             location /away {{ return 302 /page; }} {more} }} }}"
        );
        let file = directory.join("nginx.conf");
        std::fs::write(&file, configuration).expect("the configuration");
        let words =
            ["-c", &file.display().to_string(), "-p", &place.to_string()].map(str::to_owned);
        words.to_vec()
    })
}

fn at(server: &TestServer) -> String {
    format!("http://127.0.0.1:{}", server.port)
}

macro_rules! harness {
    ($name:ident, $options:expr) => {
        pub struct $name(TestServer);

        impl Harness for $name {
            type Driver = Http;

            fn start() -> Option<Self> {
                nginx("").map($name)
            }

            fn endpoint(&self) -> Option<String> {
                Some(at(&self.0))
            }

            fn options() -> Map<String, Value> {
                options($options)
            }
        }

        impl ServerHarness for $name {
            const FRAMING: Framing = Framing::Http;

            fn server(&self) -> &dyn Hurt {
                &self.0
            }

            fn endpoint_at(port: u16) -> String {
                format!("http://127.0.0.1:{port}")
            }

            fn greet(_: &[u8]) -> Option<Vec<u8>> {
                None
            }

            fn value(_: &str, content: &[u8]) -> Vec<u8> {
                let length = content.len();
                let mut answer =
                    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").into_bytes();
                answer.extend_from_slice(content);
                answer
            }

            fn malformed() -> Vec<&'static [u8]> {
                vec![
                    b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
                    b"HTTP/1.1 2x0 OK\r\n\r\n",
                    b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
                    b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
                    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabcd",
                    b"HTTP/1.1 200 OK\r\nBad Header\r\n\r\n",
                    b"\x00\x01\x02\x03",
                ]
            }
        }
    };
}

harness!(KeepAlive, json!({}));
harness!(Each, json!({ "keep_alive": false }));

fn own(table: Value) -> Vec<Option<CustomOperation>> {
    vec![Some(CustomOperation {
        name: "page".to_owned(),
        table: table.as_object().expect("a table").clone(),
    })]
}

fn open(endpoint: String, table: Value, operation: Value) -> Client<Http> {
    Client::open(&[endpoint], options(table), own(operation)).expect("the driver opens")
}

fn page() -> dbbench::op::Operation {
    operation(Verb::Custom(0), b"", b"")
}

fn fails(client: &Client<Http>) -> Failure {
    let mut session = client.session();
    failure(client.execute(&mut session, &page()).0)
}

#[test]
fn answers_are_held_against_what_is_expected() {
    let Some(server) = nginx("") else { return };
    let expect = json!({ "path": "/page", "expect": { "status": 200, "body": "^a page\\n$" } });
    for version in ["1.0", "1.1"] {
        for keep_alive in [true, false] {
            let table = json!({ "http": version, "keep_alive": keep_alive });
            let client = open(at(&server), table, expect.clone());
            let mut session = client.session();
            for _ in 0..3 {
                let (outcome, reply) = client.execute(&mut session, &page());
                assert_eq!(outcome, Outcome::Found, "{version} {keep_alive}");
                assert_eq!(reply.value_length, Some(7));
                assert!(
                    reply.bytes_received > 100 && reply.bytes_sent > 50,
                    "{reply:?}"
                );
                assert_eq!(reply.connect_time.is_zero(), keep_alive);
                assert!(reply.first_byte_time >= reply.connect_time);
            }
        }
    }
    let client = open(
        at(&server),
        json!({}),
        json!({ "path": "/page", "expect": { "body": "^b" } }),
    );
    let failure = fails(&client);
    assert_eq!(failure.class, ErrorClass::UnexpectedReply);
    assert!(failure.message.contains("a page"), "{failure}");
    let busy = fails(&open(at(&server), json!({}), json!({ "path": "/busy" })));
    assert_eq!(
        (busy.class, busy.code.as_str()),
        (ErrorClass::Server, "503")
    );
    assert!(!busy.broken && !busy.unanswered);
}

#[test]
fn bodies_of_every_framing_are_read_to_their_end() {
    let answers: [(&[u8], &[u8]); 5] = [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4;x=y\r\nsome\r\n6\r\n value\r\n0\r\nTrailer: t\r\n\r\n", b"some value"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nsome", b"some"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b""),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", b"until the end"),
    ];
    for (answer, body) in answers {
        let server = ScriptedServer::start(Framing::Http, move |_, _| {
            let mut steps = vec![Step::send(answer)];
            if answer.starts_with(b"HTTP/1.0") {
                steps.push(Step::Close);
            }
            steps
        })
        .expect("a server");
        let endpoint = format!("http://127.0.0.1:{}", server.port());
        let client = open(endpoint, json!({}), json!({ "path": "/" }));
        let mut session = client.session();
        for _ in 0..2 {
            let (outcome, reply) = client.execute(&mut session, &page());
            assert_eq!(outcome, Outcome::Found, "{}", answer.escape_ascii());
            assert_eq!(reply.value_length, Some(body.len() as u64));
            assert_eq!(reply.bytes_received, answer.len() as u64);
        }
    }
}

/// A page of errors, half a body, half a head, nothing at all, something that is no HTTP: none is a success, each says
/// what came, and the next request has a connection that works.
#[test]
fn a_broken_answer_is_a_failure_that_says_what_came() {
    let wrong: [(&[u8], ErrorClass); 6] = [
        (
            b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 5\r\n\r\nsorry",
            ErrorClass::Server,
        ),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nfour",
            ErrorClass::Reset,
        ),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nso",
            ErrorClass::Reset,
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Le", ErrorClass::Reset),
        (b"", ErrorClass::Reset),
        (b"SSH-2.0-OpenSSH_9.2\r\n", ErrorClass::Protocol),
    ];
    for (answer, class) in wrong {
        let server = ScriptedServer::start(Framing::Http, move |number, _| match number {
            0 => vec![Step::send(answer), Step::Close],
            _ => vec![Step::send(
                b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood",
            )],
        })
        .expect("a server");
        let endpoint = format!("http://127.0.0.1:{}", server.port());
        let client = open(endpoint, json!({}), json!({ "path": "/" }));
        let shown = answer.escape_ascii();
        let failure = fails(&client);
        assert_eq!(failure.class, class, "{shown}: {failure}");
        let mut session = client.session();
        let again = client.execute(&mut session, &page()).0;
        assert_eq!(again, Outcome::Found, "{shown}");
    }
}

#[test]
fn redirects_are_followed_only_as_often_as_said() {
    let Some(server) = nginx("") else { return };
    let away = json!({ "path": "/away", "expect": { "body": "^a page" } });
    let failure = fails(&open(at(&server), json!({}), away.clone()));
    assert_eq!(failure.class, ErrorClass::UnexpectedReply);
    let client = open(at(&server), json!({ "redirects": 1 }), away);
    let mut session = client.session();
    assert_eq!(client.execute(&mut session, &page()).0, Outcome::Found);
}

fn certificate(directory: &Path) -> std::path::PathBuf {
    let signed = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("signed");
    std::fs::write(
        directory.join("key.pem"),
        signed.signing_key.serialize_pem(),
    )
    .expect("written");
    let path = directory.join("cert.pem");
    std::fs::write(&path, signed.cert.pem()).expect("written");
    path
}

#[test]
fn tls_http2_and_unix_sockets_carry_the_same_page() {
    let directory = tempfile::tempdir().expect("a directory");
    let certificate = certificate(directory.path());
    let port = crate::support::free_port();
    let folder = directory.path().display();
    let more = format!(
        "listen 127.0.0.1:{port} ssl http2; listen unix:DIRECTORY/web.sock; \
         ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;"
    );
    let Some(server) = nginx(&more) else { return };
    let page_of = json!({ "path": "/page", "headers": { "x-own": "$index" }, "expect": { "status": 200, "body": "^a page" } });
    let secure = format!("https://127.0.0.1:{port}");
    let authority = certificate.display().to_string();
    for table in [
        json!({ "tls_ca": authority }),
        json!({ "tls_insecure": true }),
        json!({ "tls_ca": authority, "http": "2" }),
    ] {
        let client = open(secure.clone(), table.clone(), page_of.clone());
        let mut session = client.session();
        for _ in 0..3 {
            let (outcome, reply) = client.execute(&mut session, &page());
            assert_eq!(outcome, Outcome::Found, "{table}");
            assert_eq!(reply.value_length, Some(7));
        }
    }
    let client = open(secure, json!({}), page_of.clone());
    let refused = client.try_session().err().expect("it is not trusted");
    assert_eq!(refused.class, ErrorClass::Connect);
    let socket = format!("http+unix://{}/web.sock", server.directory().display());
    let client = open(socket, json!({}), page_of);
    let mut session = client.session();
    assert_eq!(client.execute(&mut session, &page()).0, Outcome::Found);
}

#[test]
fn the_cold_side_tells_the_server_and_asks_for_pages() {
    let Some(server) = nginx("") else { return };
    let client = open(at(&server), json!({}), json!({ "path": "/page" }));
    let mut control = client.control();
    control.ready(LIMIT).expect("ready");
    assert!(
        control
            .version(LIMIT)
            .expect("a version")
            .starts_with("nginx/")
    );
    assert_eq!(
        control.statement("GET /page", LIMIT),
        Ok("a page".to_owned())
    );
    assert!(control.statement("/nothing", LIMIT).is_err());
    assert!(control.round_trip(LIMIT).expect("a time") < LIMIT);
    assert_eq!(Http::spec().name, "http");
}
