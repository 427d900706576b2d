//! The redis driver's harnesses, and what only it must do.

use crate::client::{Harness, ServerHarness};
use crate::support::TestServer;
use dbbench::driver::redis::Redis;
use dbbench::driver::scripted::Framing;
use serde_json::{Map, Value, json};

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

            fn server(&self) -> &TestServer {
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
