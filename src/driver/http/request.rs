//! Operations as requests, compiled once, and answers held against what is expected.

use super::Version;
use crate::arguments::ArgumentTemplate;
use crate::driver::net::push_decimal;
use crate::driver::spec::OptionFault;
use crate::driver::{CustomOperation, Target};
use crate::op::{ErrorClass, Failure, Operation, Outcome, Reply, Verb, no_statements};
use regex::bytes::Regex;
use serde_json::{Map, Value};

/// All requests that a target's operations make.
pub struct Requests {
    /// By `Verb::Custom(n)`.
    own: Vec<Option<Request>>,
    get: Request,
    set: Request,
    delete: Request,
}

/// One compiled operation.
pub struct Request {
    name: String,
    pub method: &'static str,
    path: Path,
    /// Headers that are the same for all operations, each with its line's end; that of `Host` comes by the session.
    fixed: Vec<u8>,
    /// Those that are not.
    headers: Vec<(String, ArgumentTemplate)>,
    body: Body,
    expect: Expect,
}

enum Path {
    /// The operation's key.
    Key,
    Template(ArgumentTemplate),
}

enum Body {
    None,
    /// The operation's value.
    Value,
    Template(ArgumentTemplate),
}

#[derive(Debug, Default)]
struct Expect {
    statuses: Vec<u16>,
    body: Option<Regex>,
}

const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"];

/// Headers that the driver itself sends.
const OURS: [&str; 5] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "user-agent",
];

impl Requests {
    pub fn compile(
        target: &Target,
        version: Version,
        keep_alive: bool,
    ) -> Result<Requests, Failure> {
        let mut fixed = Vec::new();
        let agent = target.options.text("user_agent").unwrap_or_default();
        if !agent.is_empty() {
            push_header(&mut fixed, "User-Agent", agent.as_bytes());
        }
        push_header(&mut fixed, "Accept", b"*/*");
        match (version, keep_alive) {
            (Version::Http10, true) => push_header(&mut fixed, "Connection", b"Keep-Alive"),
            (Version::Http11, false) => push_header(&mut fixed, "Connection", b"close"),
            _ => {}
        }
        for (name, value) in texts_of(&target.options.value("headers")) {
            push_header(&mut fixed, &name, value.as_bytes());
        }
        let own = target.operations.iter().map(|operation| match operation {
            None => Ok(None),
            Some(operation) => Request::own(operation, &fixed).map(Some),
        });
        let built_in = |name: &str, method: &'static str, body: Body| Request {
            name: name.to_owned(),
            method,
            path: Path::Key,
            fixed: fixed.clone(),
            headers: Vec::new(),
            body,
            expect: Expect::default(),
        };
        Ok(Requests {
            own: own.collect::<Result<_, _>>()?,
            get: built_in("get", "GET", Body::None),
            set: built_in("set", "PUT", Body::Value),
            delete: built_in("delete", "DELETE", Body::None),
        })
    }

    pub fn of(&self, verb: Verb) -> Result<&Request, Failure> {
        match verb {
            Verb::Get => Ok(&self.get),
            Verb::Set => Ok(&self.set),
            Verb::Delete => Ok(&self.delete),
            Verb::Custom(number) => {
                let own = self.own.get(usize::from(number)).and_then(Option::as_ref);
                let missing = "this operation has no entry for http";
                own.ok_or_else(|| Failure::new(ErrorClass::Client, missing))
            }
            Verb::Statement => Err(no_statements("http")),
            other => Err(Failure::new(
                ErrorClass::Client,
                format!("http cannot do `{}`", other.name()),
            )),
        }
    }

    /// A request of the cold side: the headers of all, and nothing expected.
    pub fn plain(&self, method: &str, path: &str) -> Result<Request, Failure> {
        let known = METHODS.into_iter().find(|known| *known == method);
        let unknown = || Failure::new(ErrorClass::Client, format!("`{method}` is no method"));
        Ok(Request {
            name: method.to_owned(),
            method: known.ok_or_else(unknown)?,
            path: Path::Template(
                template("path", path)
                    .map_err(|fault| Failure::new(ErrorClass::Client, fault.message))?,
            ),
            fixed: self.get.fixed.clone(),
            headers: Vec::new(),
            body: Body::None,
            expect: Expect::default(),
        })
    }
}

impl Request {
    fn own(operation: &CustomOperation, fixed: &[u8]) -> Result<Request, Failure> {
        let mut request = compile(&operation.table).map_err(|fault| {
            let message = format!("operation {}: {}", operation.name, fault.message);
            Failure::new(ErrorClass::Client, message)
        })?;
        request.name.clone_from(&operation.name);
        request.fixed = [fixed, &request.fixed].concat();
        Ok(request)
    }

    /// Appends the path, every byte that a request line cannot hold percent-encoded. `scratch` is reused.
    pub fn write_path(&self, operation: &Operation, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
        match &self.path {
            Path::Key => {
                out.push(b'/');
                encode(&operation.key, unreserved, out);
            }
            Path::Template(template) => {
                scratch.clear();
                template.write(operation, scratch);
                encode(scratch, |byte| byte > b' ' && byte < 0x7f, out);
            }
        }
    }

    /// Appends all headers but `Host`, and the length of the body.
    pub fn write_headers(&self, operation: &Operation, body: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.fixed);
        for (name, value) in &self.headers {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b": ");
            value.write(operation, out);
            out.extend_from_slice(b"\r\n");
        }
        if !matches!(self.body, Body::None) {
            out.extend_from_slice(b"Content-Length: ");
            push_decimal(out, body as u64);
            out.extend_from_slice(b"\r\n");
        }
    }

    /// The body, in `scratch` where it is not the operation's value itself.
    pub fn body<'b>(&self, operation: &'b Operation, scratch: &'b mut Vec<u8>) -> &'b [u8] {
        scratch.clear();
        match &self.body {
            Body::None => &[],
            Body::Value => &operation.value,
            Body::Template(template) => {
                template.write(operation, scratch);
                scratch
            }
        }
    }

    /// What came of the operation, by the whole answer.
    pub fn judge(
        &self,
        status: u16,
        body: &[u8],
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let missing = status == 404 && matches!(operation.verb, Verb::Get | Verb::Delete);
        if missing {
            return Ok(Outcome::Missing);
        }
        let statuses = &self.expect.statuses;
        let as_expected = statuses.is_empty() || statuses.contains(&status);
        let matches = |expect: &Regex| expect.is_match(body);
        if !as_expected || !self.expect.body.as_ref().is_none_or(matches) {
            return Err(self.unexpected(status, body));
        }
        // A status that is expected is none of a failure.
        if status >= 400 && statuses.is_empty() {
            let message = format!("{}: status {status}: {}", self.name, shown(body));
            return Err(Failure::new(ErrorClass::Server, message).with_code(status.to_string()));
        }
        Ok(match operation.verb {
            Verb::Set | Verb::Delete => Outcome::Done,
            _ => reply.found(operation, body),
        })
    }

    fn unexpected(&self, status: u16, body: &[u8]) -> Failure {
        let message = format!(
            "{}: the answer is not what is expected: status {status}, {}",
            self.name,
            shown(body)
        );
        Failure::new(ErrorClass::UnexpectedReply, message).with_code(status.to_string())
    }
}

/// The beginning of a body, for people.
fn shown(body: &[u8]) -> String {
    match body.len() {
        0 => "no body".to_owned(),
        length => format!("`{}`", body[..length.min(100)].escape_ascii()),
    }
}

fn unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

fn encode(bytes: &[u8], stays: impl Fn(u8) -> bool, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for byte in bytes {
        match stays(*byte) {
            true => out.push(*byte),
            false => out.extend_from_slice(&[
                b'%',
                HEX[usize::from(byte >> 4)],
                HEX[usize::from(byte & 15)],
            ]),
        }
    }
}

fn push_header(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Faults of an operation's table that its rows cannot show.
pub fn check(table: &Map<String, Value>) -> Result<(), OptionFault> {
    compile(table).map(drop)
}

/// A header must be one line with a name, and none that the driver sends.
pub fn check_headers(headers: &Value) -> Result<(), OptionFault> {
    for (name, value) in texts_of(headers) {
        let is_name = |byte: u8| unreserved(byte) || b"!#$%&'*+^`|".contains(&byte);
        let message = if name.is_empty() || !name.bytes().all(is_name) {
            format!("`{name}` cannot be the name of a header")
        } else if OURS.contains(&name.to_ascii_lowercase().as_str()) {
            format!("`{name}` is sent by the driver itself")
        } else if value.bytes().any(|byte| byte < b' ' && byte != b'\t') {
            format!("the header `{name}` has more than one line")
        } else {
            continue;
        };
        return Err(OptionFault::new(
            "headers",
            message,
            "headers = { accept-language = \"en\" }",
        ));
    }
    Ok(())
}

fn texts_of(table: &Value) -> Vec<(String, String)> {
    let table = table.as_object().into_iter().flatten();
    table
        .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
        .collect()
}

fn template(key: &str, text: &str) -> Result<ArgumentTemplate, OptionFault> {
    ArgumentTemplate::parse(text).map_err(|fault| OptionFault::new(key, fault.message, fault.help))
}

fn compile(table: &Map<String, Value>) -> Result<Request, OptionFault> {
    let text = |key: &str| table.get(key).and_then(Value::as_str);
    let path = text("path").unwrap_or_default();
    if !path.starts_with('/') {
        return Err(OptionFault::new(
            "path",
            "a path begins with a slash",
            format!("path = \"/{path}\""),
        ));
    }
    let method = text("method").unwrap_or("GET");
    let method = METHODS.into_iter().find(|known| *known == method);
    let headers = table.get("headers").cloned().unwrap_or_default();
    check_headers(&headers)?;
    // Numbered through, so that no two random placeholders of the operation are alike.
    let path = template("path", path)?;
    let mut position = path.placeholders();
    let mut next = |template: ArgumentTemplate| {
        let counted = template.counted_from(position);
        position += counted.placeholders();
        counted
    };
    let mut fixed = Vec::new();
    let mut varying = Vec::new();
    for (name, value) in texts_of(&headers) {
        let value = next(template("headers", &value)?);
        match value.is_constant() {
            true => {
                let mut text = Vec::new();
                value.write(&Operation::default(), &mut text);
                push_header(&mut fixed, &name, &text);
            }
            false => varying.push((name, value)),
        }
    }
    let body = match text("body") {
        None => Body::None,
        Some(text) => Body::Template(next(template("body", text)?)),
    };
    Ok(Request {
        name: String::new(),
        method: method.unwrap_or("GET"),
        path: Path::Template(path),
        fixed,
        headers: varying,
        body,
        expect: expect(table.get("expect"))?,
    })
}

fn expect(said: Option<&Value>) -> Result<Expect, OptionFault> {
    let Some(said) = said.and_then(Value::as_object) else {
        return Ok(Expect::default());
    };
    let statuses = match said.get("status") {
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_u64).collect(),
        Some(one) => one.as_u64().into_iter().collect(),
        None => Vec::new(),
    };
    let body = said.get("body").and_then(Value::as_str).map(Regex::new);
    let body = body.transpose().map_err(|error| {
        OptionFault::new(
            "expect",
            format!("`body` is no regular expression: {error}"),
            "expect = { body = '^ok$' }",
        )
    })?;
    Ok(Expect {
        statuses: statuses
            .into_iter()
            .map(|status: u64| status as u16)
            .collect(),
        body,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn compiled(table: Value) -> Result<Request, OptionFault> {
        compile(table.as_object().expect("a table"))
    }

    fn judged(table: Value, status: u16, body: &str) -> Result<Outcome, Failure> {
        let operation = Operation {
            verb: Verb::Custom(0),
            ..Operation::default()
        };
        let request = compiled(table).expect("right");
        request.judge(status, body.as_bytes(), &operation, &mut Reply::default())
    }

    #[test]
    fn an_answer_that_is_not_as_expected_is_a_failure_whatever_its_status() {
        let page = json!({ "path": "/c", "expect": { "status": 200, "body": "^counter: \\d+$" } });
        assert_eq!(judged(page.clone(), 200, "counter: 5"), Ok(Outcome::Found));
        let failure = judged(page.clone(), 200, "MySQL failed").expect_err("another body");
        assert_eq!(failure.class, ErrorClass::UnexpectedReply);
        assert!(failure.message.contains("MySQL failed"));
        let failure = judged(page, 500, "counter: 5").expect_err("another status");
        assert_eq!(failure.class, ErrorClass::UnexpectedReply);
    }

    #[test]
    fn without_expectations_a_status_from_400_on_is_the_servers_failure() {
        let failure = judged(json!({ "path": "/" }), 503, "busy").expect_err("a failure");
        assert_eq!(
            (failure.class, failure.code.as_str()),
            (ErrorClass::Server, "503")
        );
        assert_eq!(judged(json!({ "path": "/" }), 302, ""), Ok(Outcome::Found));
        let gone = json!({ "path": "/", "expect": { "status": [200, 404] } });
        assert_eq!(judged(gone, 404, "no"), Ok(Outcome::Found));
    }

    #[test]
    fn bytes_that_a_request_line_cannot_hold_are_encoded() {
        let request = compiled(json!({ "path": "/a b?k=$key&n=$index" })).expect("right");
        let operation = Operation {
            key: b"\xc3\xa4 x".to_vec(),
            index: 7,
            ..Operation::default()
        };
        let (mut scratch, mut out) = (Vec::new(), Vec::new());
        request.write_path(&operation, &mut scratch, &mut out);
        assert_eq!(out, b"/a%20b?k=%C3%A4%20x&n=7");
    }

    #[test]
    fn a_header_of_our_own_and_one_of_two_lines_are_faults() {
        for headers in [
            json!({ "Host": "x" }),
            json!({ "x": "a\r\nSet-Cookie: b" }),
            json!({ "a b": "c" }),
        ] {
            let fault = compiled(json!({ "path": "/", "headers": headers })).err();
            assert_eq!(fault.expect("a fault").key, "headers");
        }
        assert_eq!(
            compiled(json!({ "path": "x" }))
                .err()
                .expect("no slash")
                .key,
            "path"
        );
    }
}
