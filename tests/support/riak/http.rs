//! The stand-in's HTTP interface: paths, parameters, statuses, headers and bodies as a real node's were seen.

use super::store::{Name, Object, Store, clock_of};
use super::{Answer, Mood};
use base64_simd::STANDARD as BASE64;
use serde_json::{Value, json};

/// The length of the first whole request; None where it is not whole yet.
pub fn request_length(bytes: &[u8]) -> Option<usize> {
    let head = find(bytes, b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&bytes[..head]).to_ascii_lowercase();
    let length = text.split("\r\n").find_map(|line| {
        let value = line.strip_prefix("content-length:")?;
        value.trim().parse::<usize>().ok()
    });
    let whole = head + length.unwrap_or(0);
    (bytes.len() >= whole).then_some(whole)
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}

struct Request<'a> {
    method: &'a str,
    /// Decoded.
    segments: Vec<Vec<u8>>,
    query: Vec<(&'a str, &'a str)>,
    headers: Vec<(&'a str, &'a str)>,
    body: &'a [u8],
}

impl<'a> Request<'a> {
    fn of(bytes: &'a [u8]) -> Option<Request<'a>> {
        let head = find(bytes, b"\r\n\r\n")?;
        let body = &bytes[head + 4..];
        let text = std::str::from_utf8(&bytes[..head]).ok()?;
        let mut lines = text.split("\r\n");
        let mut words = lines.next()?.split(' ');
        let (method, target) = (words.next()?, words.next()?);
        if words.next() != Some("HTTP/1.1") {
            return None;
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        Some(Request {
            method,
            segments: path[1..].split('/').map(decoded).collect(),
            query: pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .collect(),
            headers: lines.filter_map(|line| line.split_once(": ")).collect(),
            body,
        })
    }

    fn header(&self, name: &str) -> Option<&'a str> {
        let mut headers = self.headers.iter();
        let found = headers.find(|(said, _)| said.eq_ignore_ascii_case(name));
        found.map(|(_, value)| *value)
    }

    fn parameter(&self, name: &str) -> Option<&'a str> {
        let found = self.query.iter().find(|(said, _)| *said == name);
        found.map(|(_, value)| *value)
    }
}

fn decoded(segment: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut bytes = segment.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let digits = [
                    bytes.next().expect("a digit"),
                    bytes.next().expect("a digit"),
                ];
                let digits = std::str::from_utf8(&digits).expect("digits");
                out.push(u8::from_str_radix(digits, 16).expect("digits"));
            }
            byte => out.push(byte),
        }
    }
    out
}

pub fn answer(bytes: &[u8], mood: Mood, store: &mut Store, node: usize, of: usize) -> Answer {
    // What is no request of HTTP is not answered.
    let Some(request) = Request::of(bytes) else {
        return Answer::Last(Vec::new());
    };
    if mood == Mood::WithoutPages {
        return page(
            404,
            "Object Not Found",
            "<HTML><HEAD><TITLE>404 Not Found</TITLE></HEAD></HTML>",
        );
    }
    let segments: Vec<&[u8]> = request.segments.iter().map(Vec::as_slice).collect();
    let (kind, rest) = match segments.as_slice() {
        [b"types", kind, rest @ ..] => (String::from_utf8_lossy(kind).into_owned(), rest),
        rest => ("default".to_owned(), rest),
    };
    let name = |bucket: &[u8]| (kind.clone(), bucket.to_vec());
    match rest {
        [b"ping"] => match request.method {
            "GET" | "HEAD" => plain(200, "OK", "text/html", b"OK"),
            _ => plain(405, "Method Not Allowed", "text/html", b""),
        },
        [b"stats"] => {
            let members: Vec<String> = (1..=of).map(|n| format!("riak{n}@127.0.0.1")).collect();
            json_answer(&json!({
                "nodename": members[node], "ring_members": members, "ring_num_partitions": 16,
                "riak_kv_version": "3.2.3", "storage_backend": "riak_kv_bitcask_backend",
                "node_get_fsm_time_mean": "undefined",
            }))
        }
        _ if !store.has_type(&kind) => {
            let body = format!("Unknown bucket type: {kind}");
            plain(404, "Object Not Found", "text/plain", body.as_bytes())
        }
        [b"buckets", bucket, b"props"] => properties(&request, &name(bucket), store),
        [b"buckets", bucket, b"keys"] => keys(&request, mood, &name(bucket), store),
        [b"buckets", bucket, b"keys", key] | [b"riak", bucket, key] => {
            object(&request, mood, &name(bucket), key, store)
        }
        _ => page(
            404,
            "Object Not Found",
            "<HTML><HEAD><TITLE>404 Not Found</TITLE></HEAD></HTML>",
        ),
    }
}

fn properties(request: &Request, name: &Name, store: &mut Store) -> Answer {
    let bucket = store.bucket(name);
    if request.method == "GET" {
        let said = &bucket.properties;
        return json_answer(&json!({ "props": {
            "name": String::from_utf8_lossy(&name.1), "n_val": said.n_val, "allow_mult": said.allow_mult,
            "r": "quorum", "w": "quorum", "dw": "quorum", "pr": 0, "pw": 0,
        } }));
    }
    let wanted: Result<Value, _> = serde_json::from_slice(request.body);
    let wanted = wanted.ok().and_then(|table| table.get("props").cloned());
    let Some(Value::Object(wanted)) = wanted else {
        return plain(400, "Bad Request", "text/plain", b"props not JSON");
    };
    for (name, value) in wanted {
        match (name.as_str(), value) {
            ("n_val", Value::Number(copies)) => {
                bucket.properties.n_val = copies.as_u64().expect("a number") as u32;
            }
            ("n_val", _) => {
                let body = b"{\"n_val\":\"not_integer\"}";
                return plain(400, "Bad Request", "text/plain", body);
            }
            ("allow_mult", Value::Bool(allow)) => bucket.properties.allow_mult = allow,
            (other, _) => panic!("no test sets the property {other}"),
        }
    }
    plain(204, "No Content", "application/json", b"")
}

fn keys(request: &Request, mood: Mood, name: &Name, store: &mut Store) -> Answer {
    if request.parameter("keys") != Some("true") {
        return json_answer(&json!({}));
    }
    match mood {
        // Not an error by its status.
        Mood::GivesUp(_) => json_answer(&json!({ "error": "timeout" })),
        Mood::Young => error_500("{insufficient_vnodes,0,need,2}"),
        _ => {
            let keys = store.keys(name);
            let keys: Vec<_> = keys
                .iter()
                .map(|key| String::from_utf8_lossy(key))
                .collect();
            json_answer(&json!({ "keys": keys }))
        }
    }
}

fn object(request: &Request, mood: Mood, name: &Name, key: &[u8], store: &mut Store) -> Answer {
    if let Some(fault) = wrong_parameter(request, store.bucket(name).properties.n_val) {
        return plain(400, "Bad Request", "text/plain", fault.as_bytes());
    }
    let writes = request.method == "PUT";
    match mood {
        Mood::Young if writes => return error_500("all_nodes_down"),
        Mood::Young => return error_500("{insufficient_vnodes,0,need,2}"),
        Mood::GivesUp(_) => {
            // One that was given up is done all the same.
            if writes {
                put(request, name, key, store);
            }
            let body = b"request timed out\n";
            return plain(503, "Service Unavailable", "text/plain", body);
        }
        Mood::PrimariesDown => {
            let which = if writes { "PW" } else { "PR" };
            let body = format!("{which}-value unsatisfied: 2/3\n");
            return plain(503, "Service Unavailable", "text/plain", body.as_bytes());
        }
        Mood::Well | Mood::Slow(_) | Mood::WithoutPages => {}
    }
    match request.method {
        "GET" | "HEAD" => match store.object(name, key) {
            Some(object) if !object.is_deleted() => found(request, &object),
            tombstone => not_found(tombstone.as_ref(), request.method == "HEAD"),
        },
        "PUT" | "POST" => put(request, name, key, store),
        "DELETE" => {
            let before = store.object(name, key);
            match store.delete(name, key) {
                true => plain(204, "No Content", "text/html", b""),
                false => not_found(before.as_ref(), false),
            }
        }
        _ => plain(501, "Not Implemented", "text/html", b""),
    }
}

fn put(request: &Request, name: &Name, key: &[u8], store: &mut Store) -> Answer {
    let Some(content_type) = request.header("Content-Type") else {
        let body = b"Missing Content-Type request header\n";
        return plain(400, "Bad Request", "text/plain", body);
    };
    let there = store.object(name, key);
    let there = there.is_some_and(|object| !object.is_deleted());
    if there && request.header("If-None-Match") == Some("*") {
        return plain(412, "Precondition Failed", "text/plain", b"");
    }
    let seen = match request.header("X-Riak-Vclock") {
        None => Some(0),
        Some(text) => BASE64
            .decode_to_vec(text)
            .ok()
            .and_then(|clock| clock_of(&clock)),
    };
    let Some(seen) = seen else {
        return page(
            500,
            "Internal Server Error",
            "<html><head><title>500 Internal Server Error</title></head></html>",
        );
    };
    let object = store.put(name, key, request.body, content_type, seen);
    match request.parameter("returnbody") {
        Some("true") => found(request, &object),
        _ => plain(204, "No Content", content_type, b""),
    }
}

fn wrong_parameter(request: &Request, copies: u32) -> Option<String> {
    for (name, value) in &request.query {
        match *name {
            "r" | "w" | "dw" | "rw" | "pr" | "pw" => match value.parse::<u32>() {
                Ok(number) if number > copies && *name == "r" => {
                    return Some(format!(
                        "Specified r/pr values invalid for bucket n value of {copies}\n"
                    ));
                }
                Ok(number) if number > copies => {
                    return Some(format!(
                        "Specified w/dw/pw/node_confirms values invalid for bucket n value of {copies}\n"
                    ));
                }
                Err(_) if !["one", "quorum", "all", "default"].contains(value) => {
                    return Some(format!("{name} query parameter must be an integer\n"));
                }
                _ => {}
            },
            "timeout" if value.parse::<u32>().is_err() => {
                return Some(format!("Bad timeout value \"{value}\"\n"));
            }
            _ => {}
        }
    }
    None
}

fn found(request: &Request, object: &Object) -> Answer {
    let to_head = request.method == "HEAD";
    let clock = format!(
        "X-Riak-Vclock: {}\r\n",
        BASE64.encode_to_string(object.vclock())
    );
    let common = format!("{clock}Vary: Accept, Accept-Encoding\r\n");
    if let [content] = object.contents.as_slice() {
        let head = format!(
            "{common}Link: </buckets/B>; rel=\"up\"\r\nLast-Modified: Tue, 01 Dec 2026 00:00:00 GMT\r\nETag: \"{}\"\r\n",
            content.vtag()
        );
        return whole(
            200,
            "OK",
            &head,
            &content.content_type,
            &content.value,
            to_head,
        );
    }
    if !request
        .header("Accept")
        .unwrap_or("")
        .contains("multipart/mixed")
    {
        let mut body = "Siblings:\n".to_owned();
        for content in &object.contents {
            body.push_str(&content.vtag());
            body.push('\n');
        }
        return whole(
            300,
            "Multiple Choices",
            &common,
            "text/plain",
            body.as_bytes(),
            to_head,
        );
    }
    let mut body = Vec::new();
    for content in &object.contents {
        body.extend_from_slice(b"\r\n--StandInBoundary\r\n");
        let mut head = format!(
            "Content-Type: {}\r\nLink: </buckets/B>; rel=\"up\"\r\nEtag: {}\r\nLast-Modified: Tue, 01 Dec 2026 00:00:00 GMT\r\n",
            content.content_type,
            content.vtag()
        );
        if content.deleted.is_some() {
            head.push_str("X-Riak-Deleted: true\r\n");
        }
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(b"\r\n");
        body.extend_from_slice(&content.value);
    }
    body.extend_from_slice(b"\r\n--StandInBoundary--\r\n");
    let kind = "multipart/mixed; boundary=StandInBoundary";
    whole(300, "Multiple Choices", &common, kind, &body, to_head)
}

fn not_found(tombstone: Option<&Object>, to_head: bool) -> Answer {
    let head = tombstone.map_or_else(String::new, |object| {
        let clock = BASE64.encode_to_string(object.vclock());
        format!("X-Riak-Vclock: {clock}\r\nX-Riak-Deleted: true\r\n")
    });
    whole(
        404,
        "Object Not Found",
        &head,
        "text/plain",
        b"not found\n",
        to_head,
    )
}

fn error_500(term: &str) -> Answer {
    let body = format!("Error:\n{term}\n");
    plain(500, "Internal Server Error", "text/plain", body.as_bytes())
}

fn json_answer(value: &Value) -> Answer {
    plain(200, "OK", "application/json", value.to_string().as_bytes())
}

fn page(status: u16, reason: &str, html: &str) -> Answer {
    plain(status, reason, "text/html", html.as_bytes())
}

fn plain(status: u16, reason: &str, content_type: &str, body: &[u8]) -> Answer {
    whole(status, reason, "", content_type, body, false)
}

fn whole(
    status: u16,
    reason: &str,
    headers: &str,
    content_type: &str,
    body: &[u8],
    to_head: bool,
) -> Answer {
    let length = match status {
        204 => String::new(),
        _ => format!("Content-Length: {}\r\n", body.len()),
    };
    let head = format!(
        "HTTP/1.1 {status} {reason}\r\n{headers}Server: MochiWeb/3.0.0 WebMachine/3.2.3 (stand-in)\r\n\
         Date: Tue, 01 Dec 2026 00:00:00 GMT\r\nContent-Type: {content_type}\r\n{length}\r\n"
    );
    let mut answer = head.into_bytes();
    if !to_head {
        answer.extend_from_slice(body);
    }
    Answer::Send(answer)
}
