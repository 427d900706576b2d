//! The stand-in's protocol-buffers interface. Reads messages with a decoder of its own, so that what the driver writes is
//! held against the page of the protocol and not against the driver.

use super::store::{Name, Object, Store, clock_of};
use super::{Answer, Mood};
use std::collections::BTreeMap;

/// The length of the first whole frame; None where it is not whole yet.
pub fn request_length(bytes: &[u8]) -> Option<usize> {
    let length = u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    // One of no bytes has no code: the connection ends.
    (bytes.len() >= 4 + length).then_some(4 + length)
}

pub fn answer(frame: &[u8], mood: Mood, store: &mut Store, node: usize) -> Answer {
    let Some((&code, body)) = frame[4..].split_first() else {
        return Answer::Last(Vec::new());
    };
    let Some(fields) = Fields::of(body) else {
        return Answer::Last(error(
            "{error,{badmatch,<<>>},[{riak_kv_pb_object,decode,2,[{file,\"src/riak_kv_pb_object.erl\"}]}]}",
        ));
    };
    match code {
        1 => Answer::Send(framed(2, &[])),
        7 => {
            let mut body = Vec::new();
            push_bytes(
                &mut body,
                1,
                format!("riak{}@127.0.0.1", node + 1).as_bytes(),
            );
            push_bytes(&mut body, 2, b"25");
            Answer::Send(framed(8, &body))
        }
        9 => get(&fields, mood, store),
        11 => put(&fields, mood, store),
        13 => delete(&fields, mood, store),
        17 => list(&fields, mood, store),
        19 => {
            let bucket = store.bucket(&name(&fields, 2)).properties.clone();
            let mut props = Vec::new();
            push_number(&mut props, 1, u64::from(bucket.n_val));
            push_number(&mut props, 2, u64::from(bucket.allow_mult));
            for number in [14, 17] {
                push_number(&mut props, number, 0);
            }
            for number in [15, 16, 18] {
                push_number(&mut props, number, 4_294_967_293);
            }
            let mut body = Vec::new();
            push_bytes(&mut body, 1, &props);
            Answer::Send(framed(20, &body))
        }
        21 => {
            let name = name(&fields, 3);
            let props = fields.bytes(2).and_then(|props| Fields::of(&props));
            let props = props.expect("properties");
            let bucket = store.bucket(&name);
            if let Some(copies) = props.number(1) {
                bucket.properties.n_val = copies as u32;
            }
            if let Some(allow) = props.number(2) {
                bucket.properties.allow_mult = allow != 0;
            }
            Answer::Send(framed(22, &[]))
        }
        other => Answer::Send(error(&format!("Unknown message code: {other}"))),
    }
}

/// What keeps a node from doing it.
fn refusal(mood: Mood, writes: bool, quorums: &[Option<u64>], copies: u32) -> Option<Vec<u8>> {
    let words = 4_294_967_291..=4_294_967_294;
    for wanted in quorums.iter().flatten() {
        if !words.contains(wanted) && *wanted > u64::from(copies) {
            return Some(error(&format!("{{n_val_violation,{copies}}}")));
        }
    }
    match mood {
        Mood::Young | Mood::WithoutPages if writes => Some(error("all_nodes_down")),
        Mood::Young | Mood::WithoutPages => Some(error("{insufficient_vnodes,0,need,2}")),
        Mood::GivesUp(_) => Some(error("timeout")),
        Mood::PrimariesDown if writes => Some(error("{pw_val_unsatisfied,3,2}")),
        Mood::PrimariesDown => Some(error("{pr_val_unsatisfied,3,2}")),
        Mood::Well | Mood::Slow(_) => None,
    }
}

fn get(fields: &Fields, mood: Mood, store: &mut Store) -> Answer {
    let name = name(fields, 13);
    if !store.has_type(&name.0) {
        return Answer::Send(error("no_type"));
    }
    let key = fields.bytes(2).unwrap_or_default();
    if key.is_empty() {
        return Answer::Send(error("Key cannot be zero-length"));
    }
    let copies = store.bucket(&name).properties.n_val;
    let quorums = [fields.number(3), fields.number(4)];
    if let Some(refusal) = refusal(mood, false, &quorums, copies) {
        return Answer::Send(refusal);
    }
    let mut body = Vec::new();
    match store.object(&name, &key) {
        None => {}
        // Nothing of it but its clock, where that is wanted.
        Some(object) if object.is_deleted() => {
            let clock = (fields.number(9) == Some(1)).then(|| object.vclock());
            clock
                .into_iter()
                .for_each(|clock| push_bytes(&mut body, 2, &clock));
        }
        Some(object) => push_object(&mut body, &object, fields.number(8) == Some(1)),
    }
    Answer::Send(framed(10, &body))
}

fn put(fields: &Fields, mood: Mood, store: &mut Store) -> Answer {
    let name = name(fields, 16);
    if !store.has_type(&name.0) {
        return Answer::Send(error("no_type"));
    }
    let key = fields.bytes(2).unwrap_or_default();
    if key.is_empty() {
        return Answer::Send(error("Key cannot be zero-length"));
    }
    let seen = match fields.bytes(3) {
        None => 0,
        Some(vclock) => match clock_of(&vclock) {
            Some(seen) => seen,
            None => {
                return Answer::Last(error("{error,badarg,[{erlang,binary_to_term,2,[]}]}"));
            }
        },
    };
    let content = fields.bytes(4).and_then(|content| Fields::of(&content));
    let content = content.expect("a content");
    let value = content.bytes(1).expect("a value");
    let content_type = content.bytes(2).unwrap_or_default();
    let content_type = String::from_utf8(content_type).expect("a type");
    let copies = store.bucket(&name).properties.n_val;
    let quorums = [fields.number(5), fields.number(6), fields.number(8)];
    let there = store.object(&name, &key);
    if fields.number(10) == Some(1) && there.is_some_and(|object| !object.is_deleted()) {
        return Answer::Send(error("match_found"));
    }
    if let Some(refusal) = refusal(mood, true, &quorums, copies) {
        // One that was given up is done all the same.
        if matches!(mood, Mood::GivesUp(_)) {
            store.put(&name, &key, &value, &content_type, seen);
        }
        return Answer::Send(refusal);
    }
    let object = store.put(&name, &key, &value, &content_type, seen);
    let mut body = Vec::new();
    if fields.number(7) == Some(1) {
        push_object(&mut body, &object, false);
    }
    Answer::Send(framed(12, &body))
}

fn delete(fields: &Fields, mood: Mood, store: &mut Store) -> Answer {
    let name = name(fields, 13);
    let key = fields.bytes(2).unwrap_or_default();
    let copies = store.bucket(&name).properties.n_val;
    let quorums = [5, 6, 7, 8, 9].map(|number| fields.number(number));
    if let Some(refusal) = refusal(mood, false, &quorums, copies) {
        return Answer::Send(refusal);
    }
    store.delete(&name, &key);
    Answer::Send(framed(14, &[]))
}

/// In several answers, the last of which is done.
fn list(fields: &Fields, mood: Mood, store: &mut Store) -> Answer {
    if let Some(refusal) = refusal(mood, false, &[], 3) {
        return Answer::Send(refusal);
    }
    let keys = store.keys(&name(fields, 3));
    let mut all = Vec::new();
    for keys in keys.chunks(10) {
        let mut body = Vec::new();
        for key in keys {
            push_bytes(&mut body, 1, key);
        }
        all.extend(framed(18, &body));
    }
    let mut done = Vec::new();
    push_number(&mut done, 2, 1);
    all.extend(framed(18, &done));
    Answer::Send(all)
}

fn name(fields: &Fields, type_number: u64) -> Name {
    let bucket_type = fields.bytes(type_number).map(String::from_utf8);
    let bucket_type = bucket_type.map_or("default".to_owned(), |name| name.expect("a name"));
    (bucket_type, fields.bytes(1).expect("a bucket"))
}

fn push_object(body: &mut Vec<u8>, object: &Object, head: bool) {
    for content in &object.contents {
        let mut fields = Vec::new();
        let value = if head { b"" } else { content.value.as_slice() };
        push_bytes(&mut fields, 1, value);
        push_bytes(&mut fields, 2, content.content_type.as_bytes());
        push_bytes(&mut fields, 5, content.vtag().as_bytes());
        push_number(&mut fields, 7, 1_795_000_000);
        push_number(&mut fields, 8, 123_456);
        if content.deleted.is_some() {
            push_number(&mut fields, 11, 1);
        }
        push_bytes(body, 1, &fields);
    }
    push_bytes(body, 2, &object.vclock());
}

fn error(message: &str) -> Vec<u8> {
    let mut body = Vec::new();
    push_bytes(&mut body, 1, message.as_bytes());
    push_number(&mut body, 2, 0);
    framed(0, &body)
}

pub fn framed(code: u8, body: &[u8]) -> Vec<u8> {
    let mut frame = (body.len() as u32 + 1).to_be_bytes().to_vec();
    frame.push(code);
    frame.extend_from_slice(body);
    frame
}

pub fn push_bytes(out: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    push_varint(out, number << 3 | 2);
    push_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

pub fn push_number(out: &mut Vec<u8>, number: u64, value: u64) {
    push_varint(out, number << 3);
    push_varint(out, value);
}

fn push_varint(out: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The fields of a message; of one that comes twice the last.
struct Fields(BTreeMap<u64, Field>);

enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

impl Fields {
    fn of(mut body: &[u8]) -> Option<Fields> {
        let mut fields = BTreeMap::new();
        while !body.is_empty() {
            let key = varint(&mut body)?;
            let field = match key & 7 {
                0 => Field::Number(varint(&mut body)?),
                2 => {
                    let length = varint(&mut body)? as usize;
                    let (bytes, rest) = body.split_at_checked(length)?;
                    body = rest;
                    Field::Bytes(bytes.to_vec())
                }
                _ => return None,
            };
            fields.insert(key >> 3, field);
        }
        Some(Fields(fields))
    }

    fn number(&self, number: u64) -> Option<u64> {
        match self.0.get(&number) {
            Some(Field::Number(value)) => Some(*value),
            _ => None,
        }
    }

    fn bytes(&self, number: u64) -> Option<Vec<u8>> {
        match self.0.get(&number) {
            Some(Field::Bytes(bytes)) => Some(bytes.clone()),
            _ => None,
        }
    }
}

fn varint(body: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for position in 0..10 {
        let (byte, rest) = body.split_first()?;
        *body = rest;
        number |= u64::from(byte & 0x7f) << (7 * position);
        if *byte < 0x80 {
            return Some(number);
        }
    }
    None
}
