//! Keys as paths: `GET`, `PUT` and `DELETE /key`, values as they are. Requests written, answers judged.

use super::rpc::{exists, is_storage, not_due, refused};
use super::tsv::{push_escaped, unreserved};
use super::{Database, Settings};
use crate::driver::net::push_decimal;
use crate::op::{Failure, Operation, Outcome, Reply, Verb};

/// Bytes of a request's first line, its end included; a server closes the connection at a longer one without a word.
pub const LONGEST_LINE: usize = 8192;

fn method(verb: Verb) -> &'static str {
    match verb {
        Verb::Get => "GET",
        Verb::Delete => "DELETE",
        _ => "PUT",
    }
}

/// Whether the server takes a first line with this key.
pub fn fits(database: &Database, key: &[u8]) -> bool {
    let name = database.name.as_deref().unwrap_or_default();
    // What no spelling makes too long is not spelled.
    if (name.len() + key.len()) * 3 + 64 < LONGEST_LINE {
        return true;
    }
    let mut path = Vec::new();
    push_path(database, key, &mut path);
    "DELETE  HTTP/1.1\r\n".len() + path.len() < LONGEST_LINE
}

fn push_path(database: &Database, key: &[u8], out: &mut Vec<u8>) {
    out.push(b'/');
    if let Some(name) = &database.name {
        push_escaped(name.as_bytes(), b'%', unreserved, out);
        out.push(b'/');
    }
    push_escaped(key, b'%', unreserved, out);
}

/// Appends a request. With `gather` its value is left to be gathered where it lies: it is returned.
pub fn push<'o>(
    settings: &Settings,
    line_end: &[u8],
    verb: Verb,
    operation: &'o Operation,
    gather: bool,
    out: &mut Vec<u8>,
) -> &'o [u8] {
    out.extend_from_slice(method(verb).as_bytes());
    out.push(b' ');
    push_path(&settings.database, &operation.key, out);
    out.extend_from_slice(line_end);
    if !is_storage(verb) {
        out.extend_from_slice(b"\r\n");
        return b"";
    }
    match verb {
        Verb::Insert => out.extend_from_slice(b"X-Kt-Mode: add\r\n"),
        Verb::Update => out.extend_from_slice(b"X-Kt-Mode: replace\r\n"),
        _ => {}
    }
    out.extend_from_slice(b"Content-Length: ");
    push_decimal(out, operation.value.len() as u64);
    out.extend_from_slice(b"\r\n\r\n");
    if gather {
        return &operation.value;
    }
    out.extend_from_slice(&operation.value);
    b""
}

/// What came of the operation; `error` is the header `X-Kt-Error`, empty where there is none.
pub fn judge(
    status: u16,
    error: &[u8],
    body: &[u8],
    verb: Verb,
    operation: &Operation,
    reply: &mut Reply,
) -> Result<Outcome, Failure> {
    match (status, verb) {
        (200, Verb::Get) => Ok(reply.found(operation, body)),
        (404, Verb::Get | Verb::Delete) => Ok(Outcome::Missing),
        (201, _) if is_storage(verb) => Ok(Outcome::Done),
        (204, Verb::Delete) => Ok(Outcome::Done),
        // The condition of `X-Kt-Mode` does not hold.
        (450, Verb::Insert) => Err(exists()),
        (450, Verb::Update) => Ok(Outcome::Missing),
        (400.., _) => {
            let said = if error.is_empty() { body } else { error };
            Err(refused(
                method(verb),
                status,
                &String::from_utf8_lossy(said),
            ))
        }
        _ => Err(not_due(body)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Protocol;
    use super::*;
    use crate::op::ErrorClass;

    const END: &[u8] = b" HTTP/1.1\r\nHost: h:1\r\n";

    fn request(database: Database, verb: Verb, key: &[u8], value: &[u8], gather: bool) -> String {
        let settings = Settings {
            protocol: Protocol::Rest,
            database,
            encoding: None,
        };
        let operation = Operation {
            key: key.to_vec(),
            value: value.to_vec(),
            ..Operation::default()
        };
        let mut out = Vec::new();
        let body = push(&settings, END, verb, &operation, gather, &mut out);
        out.extend_from_slice(body);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn requests_are_the_recorded_bytes() {
        let put = |verb, gather| request(Database::numbered(0), verb, b"key 2560", b"abcd", gather);
        let expected = "PUT /key%202560 HTTP/1.1\r\nHost: h:1\r\nContent-Length: 4\r\n\r\nabcd";
        assert_eq!(put(Verb::Set, false), expected);
        assert_eq!(put(Verb::Set, true), expected);
        assert!(put(Verb::Insert, false).contains("X-Kt-Mode: add\r\n"));
        assert!(put(Verb::Update, false).contains("X-Kt-Mode: replace\r\n"));
        let get = request(Database::numbered(0), Verb::Get, b"e/f", b"", false);
        assert_eq!(get, "GET /e%2Ff HTTP/1.1\r\nHost: h:1\r\n\r\n");
        let delete = request(Database::numbered(1), Verb::Delete, b"k", b"", false);
        assert_eq!(delete, "DELETE /1/k HTTP/1.1\r\nHost: h:1\r\n\r\n");
        let named = Database::named("a/b.kct");
        let get = request(named, Verb::Get, b"\0\xff", b"", false);
        assert!(get.starts_with("GET /a%2Fb.kct/%00%FF HTTP/1.1\r\n"));
    }

    fn judged(status: u16, error: &str, body: &str, verb: Verb) -> Result<Outcome, Failure> {
        let (error, body) = (error.as_bytes(), body.as_bytes());
        let mut reply = Reply::default();
        judge(status, error, body, verb, &Operation::default(), &mut reply)
    }

    #[test]
    fn recorded_answers_are_told_apart() {
        let no_record = "DB: 7: no record: no record";
        assert_eq!(judged(200, "", "abcd", Verb::Get), Ok(Outcome::Found));
        assert_eq!(judged(404, no_record, "", Verb::Get), Ok(Outcome::Missing));
        assert_eq!(judged(201, "", "", Verb::Set), Ok(Outcome::Done));
        assert_eq!(judged(204, "", "", Verb::Delete), Ok(Outcome::Done));
        assert_eq!(judged(404, "", "", Verb::Delete), Ok(Outcome::Missing));
        assert_eq!(judged(450, "", "", Verb::Update), Ok(Outcome::Missing));
        let refusal = judged(450, "", "", Verb::Insert).expect_err("it exists");
        assert_eq!(refusal.class, ErrorClass::Rejected);
        let refusal = judged(400, "", "no such database\n", Verb::Get).expect_err("refused");
        assert_eq!(
            (refusal.class, refusal.code.as_str()),
            (ErrorClass::Server, "400")
        );
        assert_eq!(refusal.message, "GET: no such database");
        let refusal = judged(413, "", "", Verb::Set).expect_err("refused");
        assert_eq!(refusal.class, ErrorClass::Rejected);
        let wrong = judged(200, "", "", Verb::Set).expect_err("no answer to PUT");
        assert_eq!(wrong.class, ErrorClass::Protocol);
    }
}
