//! The procedures: `POST /rpc/NAME` with tab-separated values both ways. Requests written, answers judged.

use super::tsv::{self, Encoding};
use super::{Database, Settings};
use crate::driver::net::{malformed, push_decimal};
use crate::op::{ErrorClass, Failure, Operation, Outcome, Reply, Verb};

/// Numbers of the database's errors that mean something to an operation.
const DUPLICATE: &str = "6";
const NO_RECORD: &str = "7";

/// What an answer is, where it lies.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    pub status: u16,
    /// None where its content type is none of a procedure's.
    pub encoding: Option<Encoding>,
    pub body: &'a [u8],
}

/// The name of the procedure; empty for what is none.
pub fn procedure(verb: Verb) -> &'static str {
    match verb {
        Verb::Get => "get",
        Verb::Set => "set",
        Verb::Insert => "add",
        Verb::Update => "replace",
        Verb::Delete => "remove",
        Verb::Increment => "increment",
        _ => "",
    }
}

pub fn is_storage(verb: Verb) -> bool {
    matches!(verb, Verb::Set | Verb::Insert | Verb::Update)
}

/// The spelling of a request.
fn encoding_of(settings: &Settings, verb: Verb, operation: &Operation) -> Encoding {
    let plain =
        || tsv::is_plain(&operation.key) && (!is_storage(verb) || tsv::is_plain(&operation.value));
    match settings.encoding {
        Some(encoding) => encoding,
        None if plain() => Encoding::Plain,
        None => Encoding::Base64,
    }
}

/// Appends a request. A value that is sent as it is may be left to be gathered where it lies: then it is returned, with what
/// follows it. `columns` is scratch.
pub fn push<'o>(
    settings: &Settings,
    line_end: &[u8],
    verb: Verb,
    operation: &'o Operation,
    gather: bool,
    columns: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> (&'o [u8], &'static [u8]) {
    let encoding = encoding_of(settings, verb, operation);
    columns.clear();
    push_database(encoding, &settings.database, columns);
    tsv::push_line(encoding, tsv::KEY, &operation.key, columns);
    if verb == Verb::Increment {
        tsv::push_line(encoding, tsv::NUMBER, b"1", columns);
    }
    let mut length = columns.len();
    if is_storage(verb) {
        columns.extend_from_slice(tsv::VALUE.spelled(encoding));
        columns.push(b'\t');
        length = columns.len() + encoding.length(&operation.value) + 1;
    }
    push_head(line_end, procedure(verb), encoding, length, out);
    out.extend_from_slice(columns);
    if is_storage(verb) {
        if gather && encoding == Encoding::Plain {
            return (&operation.value, b"\n");
        }
        encoding.push(&operation.value, out);
        out.push(b'\n');
    }
    (b"", b"")
}

/// Bytes of the body of the request that stores the operation's value, or a little more.
pub fn body_length(settings: &Settings, operation: &Operation) -> usize {
    let encoding = encoding_of(settings, Verb::Set, operation);
    let name = settings.database.name.as_deref().unwrap_or_default();
    let columns = [name.as_bytes(), &operation.key, &operation.value];
    let lengths = columns.map(|column| encoding.length(column));
    64 + lengths.iter().sum::<usize>()
}

fn push_database(encoding: Encoding, database: &Database, out: &mut Vec<u8>) {
    if let Some(name) = &database.name {
        tsv::push_line(encoding, tsv::DATABASE, name.as_bytes(), out);
    }
}

/// Appends a request's head; `length` is that of its body.
pub fn push_head(
    line_end: &[u8],
    procedure: &str,
    encoding: Encoding,
    length: usize,
    out: &mut Vec<u8>,
) {
    out.extend_from_slice(b"POST /rpc/");
    out.extend_from_slice(procedure.as_bytes());
    out.extend_from_slice(line_end);
    out.extend_from_slice(b"Content-Type: ");
    out.extend_from_slice(encoding.content_type().as_bytes());
    out.extend_from_slice(b"\r\nContent-Length: ");
    push_decimal(out, length as u64);
    out.extend_from_slice(b"\r\n\r\n");
}

/// What came of the operation. `scratch` holds a value that has to be decoded.
pub fn judge(
    answer: Answer<'_>,
    verb: Verb,
    operation: &Operation,
    reply: &mut Reply,
    scratch: &mut Vec<u8>,
) -> Result<Outcome, Failure> {
    match (answer.status, answer.encoding) {
        (200, Some(encoding)) => success(answer.body, encoding, verb, operation, reply, scratch),
        (400.., _) => {
            let refusal = failure(procedure(verb), answer);
            match (verb, refusal.code.strip_prefix("DB ")) {
                (Verb::Get | Verb::Update | Verb::Delete, Some(NO_RECORD)) => Ok(Outcome::Missing),
                (Verb::Insert, Some(DUPLICATE)) => Err(exists()),
                _ => Err(refusal),
            }
        }
        _ => Err(not_due(answer.body)),
    }
}

fn success(
    body: &[u8],
    encoding: Encoding,
    verb: Verb,
    operation: &Operation,
    reply: &mut Reply,
    scratch: &mut Vec<u8>,
) -> Result<Outcome, Failure> {
    let name = match verb {
        Verb::Get => tsv::VALUE,
        Verb::Increment => tsv::NUMBER,
        _ => return Ok(Outcome::Done),
    };
    let column = tsv::find(body, encoding, name);
    let value = column.and_then(|column| encoding.decode(column, scratch));
    let value = value.ok_or_else(|| not_due(body))?;
    if verb == Verb::Get {
        return Ok(reply.found(operation, value));
    }
    let number = std::str::from_utf8(value).map(str::parse::<i64>);
    if !matches!(number, Ok(Ok(_))) {
        return Err(not_due(body));
    }
    reply.keep_text(value);
    Ok(Outcome::Done)
}

pub fn exists() -> Failure {
    Failure::new(ErrorClass::Rejected, "insert: the key exists already")
}

pub fn not_due(body: &[u8]) -> Failure {
    malformed("it is not of the kind that was due", body)
}

/// The failure that an error's answer means: the code is the database's own (`DB 8`) where it has one, else the status.
pub fn failure(what: &str, answer: Answer<'_>) -> Failure {
    let mut scratch = Vec::new();
    let encoding = answer.encoding.unwrap_or(Encoding::Plain);
    let column = tsv::find(answer.body, encoding, tsv::ERROR);
    let text = column.and_then(|column| encoding.decode(column, &mut scratch));
    let text = text.map(|text| String::from_utf8_lossy(text).into_owned());
    refused(what, answer.status, &text.unwrap_or_default())
}

/// `message` is the server's own, such as `DB: 7: no record: no record`.
pub fn refused(what: &str, status: u16, message: &str) -> Failure {
    let class = match status {
        413 => ErrorClass::Rejected,
        _ => ErrorClass::Server,
    };
    let number = message
        .strip_prefix("DB: ")
        .and_then(|rest| rest.split(':').next())
        .filter(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
    let code = match number {
        Some(number) => format!("DB {number}"),
        None => status.to_string(),
    };
    let text = match message.trim() {
        "" => format!("{what}: status {status}"),
        said => {
            let shown: String = said.chars().take(200).collect();
            format!("{what}: {shown}")
        }
    };
    Failure::new(class, text).with_code(code)
}

#[cfg(test)]
mod tests {
    use super::super::Protocol;
    use super::*;

    const END: &[u8] = b" HTTP/1.1\r\nHost: h:1\r\n";

    fn settings(database: Database, encoding: Option<Encoding>) -> Settings {
        Settings {
            protocol: Protocol::Rpc,
            database,
            encoding,
        }
    }

    fn operation(key: &[u8], value: &[u8]) -> Operation {
        Operation {
            key: key.to_vec(),
            value: value.to_vec(),
            ..Operation::default()
        }
    }

    fn request(settings: &Settings, verb: Verb, operation: &Operation, gather: bool) -> String {
        let mut out = Vec::new();
        let mut columns = Vec::new();
        let (body, tail) = push(
            settings,
            END,
            verb,
            operation,
            gather,
            &mut columns,
            &mut out,
        );
        out.extend_from_slice(body);
        out.extend_from_slice(tail);
        String::from_utf8(out).expect("text")
    }

    fn first() -> Settings {
        settings(Database::numbered(0), None)
    }

    #[test]
    fn requests_are_the_recorded_bytes() {
        let set = request(&first(), Verb::Set, &operation(b"k", b"v w"), false);
        let expected = "POST /rpc/set HTTP/1.1\r\nHost: h:1\r\nContent-Type: text/tab-separated-values\r\n\
                        Content-Length: 16\r\n\r\nkey\tk\nvalue\tv w\n";
        assert_eq!(set, expected);
        let increment = request(&first(), Verb::Increment, &operation(b"n", b""), false);
        let expected = "POST /rpc/increment HTTP/1.1\r\nHost: h:1\r\nContent-Type: text/tab-separated-values\r\n\
                        Content-Length: 12\r\n\r\nkey\tn\nnum\t1\n";
        assert_eq!(increment, expected);
        for (verb, name) in [
            (Verb::Get, "get"),
            (Verb::Insert, "add"),
            (Verb::Update, "replace"),
            (Verb::Delete, "remove"),
        ] {
            let text = request(&first(), verb, &operation(b"k", b""), false);
            assert!(text.starts_with(&format!("POST /rpc/{name} HTTP/1.1\r\n")));
        }
    }

    #[test]
    fn a_value_with_a_control_character_goes_in_base64() {
        let set = request(
            &first(),
            Verb::Set,
            &operation(b"k", b"\0\0\0\0\0\0\0\x0c"),
            true,
        );
        assert!(set.contains("text/tab-separated-values; colenc=B\r\nContent-Length: 32\r\n"));
        assert!(set.ends_with("\r\n\r\na2V5\taw==\ndmFsdWU=\tAAAAAAAAAAw=\n"));
        let key = request(&first(), Verb::Get, &operation(b"a\tb", b"\n"), false);
        assert!(key.ends_with("a2V5\tYQli\n"), "{key}");
    }

    #[test]
    fn every_encoding_spells_both_columns() {
        let record = operation(b"a b", b"=%\n");
        for (encoding, ends) in [
            (Encoding::Url, "key\ta%20b\nvalue\t%3D%25%0A\n"),
            (Encoding::Quoted, "key\ta=20b\nvalue\t=3D%=0A\n"),
            (Encoding::Base64, "a2V5\tYSBi\ndmFsdWU=\tPSUK\n"),
        ] {
            let settings = settings(Database::numbered(0), Some(encoding));
            let text = request(&settings, Verb::Set, &record, false);
            assert!(text.ends_with(ends), "{text}");
            let body = text.split("\r\n\r\n").nth(1).expect("a body");
            assert!(text.contains(&format!("Content-Length: {}\r\n", body.len())));
        }
    }

    #[test]
    fn a_gathered_request_is_the_same_and_leaves_its_value_where_it_is() {
        let record = operation(b"k", &[b'v'; 80_000]);
        let (mut out, mut columns) = (Vec::new(), Vec::new());
        let settings = first();
        let (body, tail) = push(
            &settings,
            END,
            Verb::Set,
            &record,
            true,
            &mut columns,
            &mut out,
        );
        assert_eq!((body.as_ptr(), tail), (record.value.as_ptr(), &b"\n"[..]));
        assert!(out.len() < 200);
        let whole = request(&settings, Verb::Set, &record, false);
        assert_eq!(request(&settings, Verb::Set, &record, true), whole);
    }

    #[test]
    fn another_database_is_named_in_a_column() {
        let record = operation(b"k", b"");
        let numbered = settings(Database::numbered(1), None);
        let text = request(&numbered, Verb::Get, &record, false);
        assert!(text.ends_with("\r\n\r\nDB\t1\nkey\tk\n"));
        let named = settings(Database::named("a.kct"), Some(Encoding::Base64));
        let text = request(&named, Verb::Get, &record, false);
        assert!(text.ends_with("\r\n\r\nREI=\tYS5rY3Q=\na2V5\taw==\n"));
    }

    fn judged(status: u16, kind: &str, body: &[u8], verb: Verb) -> Result<Outcome, Failure> {
        let answer = Answer {
            status,
            encoding: Encoding::of_content_type(kind.as_bytes()),
            body,
        };
        let wanted = Operation {
            verify: true,
            ..operation(b"k", b"v\n1")
        };
        let (mut reply, mut scratch) = (Reply::default(), Vec::new());
        judge(answer, verb, &wanted, &mut reply, &mut scratch)
    }

    const TSV: &str = "text/tab-separated-values";
    const URL: &str = "text/tab-separated-values; colenc=U";

    #[test]
    fn recorded_answers_are_read() {
        let found = judged(200, URL, b"value\tv%0a1\n", Verb::Get);
        assert_eq!(found, Ok(Outcome::Found));
        let other = judged(200, TSV, b"value\t1\nxt\t1796070990\n", Verb::Get);
        assert_eq!(other, Ok(Outcome::WrongValue));
        assert_eq!(judged(200, TSV, b"", Verb::Set), Ok(Outcome::Done));
        let counted = judged(200, TSV, b"num\t12\n", Verb::Increment);
        assert_eq!(counted, Ok(Outcome::Done));
    }

    #[test]
    fn recorded_errors_are_told_apart() {
        let no_record = b"ERROR\tDB: 7: no record: no record\n";
        for verb in [Verb::Get, Verb::Update, Verb::Delete] {
            assert_eq!(judged(450, TSV, no_record, verb), Ok(Outcome::Missing));
        }
        let duplicate = b"ERROR\tDB: 6: record duplication: record duplication\n";
        let refusal = judged(450, TSV, duplicate, Verb::Insert).expect_err("refused");
        assert_eq!(
            (refusal.class, refusal.broken),
            (ErrorClass::Rejected, false)
        );
        let illogical = b"ERROR\tDB: 8: logical inconsistency: logical inconsistency\n";
        let refusal = judged(450, TSV, illogical, Verb::Increment).expect_err("refused");
        assert_eq!(
            (refusal.class, refusal.code.as_str()),
            (ErrorClass::Server, "DB 8")
        );
        assert!(refusal.message.starts_with("increment: DB: 8: logical"));
        for (status, body) in [
            (400, "invalid parameters"),
            (501, "not implemented: nosuch"),
        ] {
            let text = format!("ERROR\t{body}\n");
            let refusal = judged(status, TSV, text.as_bytes(), Verb::Get).expect_err("refused");
            assert_eq!(
                (refusal.class, refusal.code),
                (ErrorClass::Server, status.to_string())
            );
        }
        let refusal = judged(450, TSV, b"", Verb::Get).expect_err("no word of a missing record");
        assert_eq!(refusal.code, "450");
    }

    #[test]
    fn answers_of_another_kind_are_malformed() {
        for (status, kind, body) in [
            (200, "text/html", "value\tv\n"),
            (200, TSV, "num\t1\n"),
            (200, URL, "value\t%zz\n"),
            (201, TSV, "value\tv\n"),
        ] {
            let wrong = judged(status, kind, body.as_bytes(), Verb::Get).expect_err("malformed");
            assert_eq!((wrong.class, wrong.broken), (ErrorClass::Protocol, true));
        }
        let wrong = judged(200, TSV, b"num\tmany\n", Verb::Increment).expect_err("malformed");
        assert_eq!(wrong.class, ErrorClass::Protocol);
    }
}
