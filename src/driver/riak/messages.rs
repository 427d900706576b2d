//! The messages of protocol buffers. Those of the cold side are prost's; those of the operation loop are written around
//! and read from bytes where they lie, which prost's owned fields would copy.
//!
//! Every message is a frame: its length in four bytes, a code in one, the body.

use super::settings::{Quorum, Settings};
use prost::Message;

/// Codes of messages, by their page.
pub mod code {
    pub const ERROR: u8 = 0;
    pub const PING: u8 = 1;
    pub const PING_ANSWER: u8 = 2;
    pub const SERVER_INFO: u8 = 7;
    pub const SERVER_INFO_ANSWER: u8 = 8;
    pub const GET: u8 = 9;
    pub const GET_ANSWER: u8 = 10;
    pub const PUT: u8 = 11;
    pub const PUT_ANSWER: u8 = 12;
    pub const DELETE: u8 = 13;
    pub const DELETE_ANSWER: u8 = 14;
    pub const LIST_KEYS: u8 = 17;
    pub const LIST_KEYS_ANSWER: u8 = 18;
    pub const GET_BUCKET: u8 = 19;
    pub const GET_BUCKET_ANSWER: u8 = 20;
    pub const SET_BUCKET: u8 = 21;
    pub const SET_BUCKET_ANSWER: u8 = 22;
}

/// Bytes of a frame without its body.
pub const HEAD: usize = 5;

/// Type of all values.
pub const CONTENT_TYPE: &[u8] = b"application/octet-stream";

#[derive(Clone, PartialEq, Message)]
pub struct RpbErrorResp {
    #[prost(bytes = "vec", tag = "1")]
    pub errmsg: Vec<u8>,
    #[prost(uint32, tag = "2")]
    pub errcode: u32,
}

#[derive(Clone, PartialEq, Message)]
pub struct RpbGetServerInfoResp {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub node: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub server_version: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct RpbGetReq {
    #[prost(bytes = "vec", required, tag = "1")]
    pub bucket: Vec<u8>,
    #[prost(bytes = "vec", required, tag = "2")]
    pub key: Vec<u8>,
    #[prost(uint32, optional, tag = "3")]
    pub r: Option<u32>,
    #[prost(uint32, optional, tag = "4")]
    pub pr: Option<u32>,
    #[prost(bool, optional, tag = "8")]
    pub head: Option<bool>,
    #[prost(bool, optional, tag = "9")]
    pub deletedvclock: Option<bool>,
    #[prost(uint32, optional, tag = "10")]
    pub timeout: Option<u32>,
    #[prost(bytes = "vec", optional, tag = "13")]
    pub r#type: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct RpbContent {
    #[prost(bytes = "vec", required, tag = "1")]
    pub value: Vec<u8>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub content_type: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "5")]
    pub vtag: Option<Vec<u8>>,
    #[prost(bool, optional, tag = "11")]
    pub deleted: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub struct RpbPutReq {
    #[prost(bytes = "vec", required, tag = "1")]
    pub bucket: Vec<u8>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub key: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub vclock: Option<Vec<u8>>,
    #[prost(message, optional, tag = "4")]
    pub content: Option<RpbContent>,
    #[prost(uint32, optional, tag = "5")]
    pub w: Option<u32>,
    #[prost(uint32, optional, tag = "6")]
    pub dw: Option<u32>,
    #[prost(bool, optional, tag = "7")]
    pub return_body: Option<bool>,
    #[prost(uint32, optional, tag = "8")]
    pub pw: Option<u32>,
    #[prost(bool, optional, tag = "10")]
    pub if_none_match: Option<bool>,
    #[prost(uint32, optional, tag = "12")]
    pub timeout: Option<u32>,
    #[prost(bytes = "vec", optional, tag = "16")]
    pub r#type: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct RpbDelReq {
    #[prost(bytes = "vec", required, tag = "1")]
    pub bucket: Vec<u8>,
    #[prost(bytes = "vec", required, tag = "2")]
    pub key: Vec<u8>,
    #[prost(uint32, optional, tag = "5")]
    pub r: Option<u32>,
    #[prost(uint32, optional, tag = "6")]
    pub w: Option<u32>,
    #[prost(uint32, optional, tag = "7")]
    pub pr: Option<u32>,
    #[prost(uint32, optional, tag = "8")]
    pub pw: Option<u32>,
    #[prost(uint32, optional, tag = "9")]
    pub dw: Option<u32>,
    #[prost(uint32, optional, tag = "10")]
    pub timeout: Option<u32>,
    #[prost(bytes = "vec", optional, tag = "13")]
    pub r#type: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct RpbListKeysReq {
    #[prost(bytes = "vec", required, tag = "1")]
    pub bucket: Vec<u8>,
    #[prost(uint32, optional, tag = "2")]
    pub timeout: Option<u32>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub r#type: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct RpbListKeysResp {
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub keys: Vec<Vec<u8>>,
    #[prost(bool, optional, tag = "2")]
    pub done: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub struct RpbGetBucketReq {
    #[prost(bytes = "vec", required, tag = "1")]
    pub bucket: Vec<u8>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub r#type: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct RpbGetBucketResp {
    #[prost(message, optional, tag = "1")]
    pub props: Option<RpbBucketProps>,
}

#[derive(Clone, PartialEq, Message)]
pub struct RpbSetBucketReq {
    #[prost(bytes = "vec", required, tag = "1")]
    pub bucket: Vec<u8>,
    #[prost(message, optional, tag = "2")]
    pub props: Option<RpbBucketProps>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub r#type: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct RpbBucketProps {
    #[prost(uint32, optional, tag = "1")]
    pub n_val: Option<u32>,
    #[prost(bool, optional, tag = "2")]
    pub allow_mult: Option<bool>,
    #[prost(uint32, optional, tag = "14")]
    pub pr: Option<u32>,
    #[prost(uint32, optional, tag = "15")]
    pub r: Option<u32>,
    #[prost(uint32, optional, tag = "16")]
    pub w: Option<u32>,
    #[prost(uint32, optional, tag = "17")]
    pub pw: Option<u32>,
    #[prost(uint32, optional, tag = "18")]
    pub dw: Option<u32>,
}

/// Appends a whole frame of the cold side.
pub fn push_message(out: &mut Vec<u8>, code: u8, message: &impl Message) {
    push_head(out, code, message.encoded_len());
    message
        .encode(out)
        .expect("a vector grows to what is put into it");
}

/// Appends the beginning of a frame whose body has `length` bytes.
#[inline]
pub fn push_head(out: &mut Vec<u8>, code: u8, length: usize) {
    let length = u32::try_from(length + 1).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.push(code);
}

/// What is the same in all requests of a kind: their bytes before and after those of an operation.
#[derive(Debug)]
pub struct Fixed {
    /// The field of the bucket, with which all begin.
    bucket: Vec<u8>,
    get: Vec<u8>,
    get_keeping: Vec<u8>,
    head: Vec<u8>,
    put: Vec<u8>,
    insert: Vec<u8>,
    delete: Vec<u8>,
}

/// What a read is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The value.
    Value,
    /// The value, and the vector clock for a write.
    ValueAndClock,
    /// That it is there, and the vector clock.
    Clock,
}

/// On what condition a write is done, and what it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    Plain,
    /// With the vector clock of the read before.
    Carrying,
    /// Only where there is no such key.
    Insert,
}

impl Fixed {
    pub fn of(settings: &Settings) -> Fixed {
        let number = |quorum: Option<Quorum>| quorum.map(Quorum::number);
        let r#type = || settings.bucket_type.clone().map(String::into_bytes);
        let timeout = settings.timeout_ms();
        // Of a message whose bucket and key are empty: two required fields of two bytes each go before the rest.
        let rest = |message: Vec<u8>| message[4..].to_vec();
        let get = |part: Part| {
            let keeps = (part != Part::Value).then_some(true);
            let message = RpbGetReq {
                r: number(settings.r),
                pr: number(settings.pr),
                head: (part == Part::Clock).then_some(true),
                deletedvclock: keeps,
                timeout,
                r#type: r#type(),
                ..RpbGetReq::default()
            };
            rest(message.encode_to_vec())
        };
        let put = |insert: bool| {
            let message = RpbPutReq {
                w: number(settings.w),
                dw: number(settings.dw),
                return_body: settings.return_body.then_some(true),
                pw: number(settings.pw),
                if_none_match: insert.then_some(true),
                timeout,
                r#type: r#type(),
                ..RpbPutReq::default()
            };
            // The bucket alone is required.
            message.encode_to_vec()[2..].to_vec()
        };
        let delete = RpbDelReq {
            r: number(settings.r),
            w: number(settings.w),
            pr: number(settings.pr),
            pw: number(settings.pw),
            dw: number(settings.dw),
            timeout,
            r#type: r#type(),
            ..RpbDelReq::default()
        };
        let mut bucket = Vec::new();
        push_bytes(&mut bucket, 1, settings.bucket.as_bytes());
        Fixed {
            bucket,
            get: get(Part::Value),
            get_keeping: get(Part::ValueAndClock),
            head: get(Part::Clock),
            put: put(false),
            insert: put(true),
            delete: rest(delete.encode_to_vec()),
        }
    }

    pub fn push_get(&self, out: &mut Vec<u8>, key: &[u8], part: Part) {
        let rest = match part {
            Part::Value => &self.get,
            Part::ValueAndClock => &self.get_keeping,
            Part::Clock => &self.head,
        };
        self.push_keyed(out, code::GET, key, rest);
    }

    pub fn push_delete(&self, out: &mut Vec<u8>, key: &[u8]) {
        self.push_keyed(out, code::DELETE, key, &self.delete);
    }

    fn push_keyed(&self, out: &mut Vec<u8>, code: u8, key: &[u8], rest: &[u8]) {
        push_head(
            out,
            code,
            self.bucket.len() + field_length(key.len()) + rest.len(),
        );
        out.extend_from_slice(&self.bucket);
        push_bytes(out, 2, key);
        out.extend_from_slice(rest);
    }

    /// Appends a put up to its value, of `length` bytes; what follows the value is appended by `push_put_end`.
    pub fn push_put(&self, out: &mut Vec<u8>, key: &[u8], vclock: &[u8], length: usize, put: Put) {
        let content = field_length(length) + field_length(CONTENT_TYPE.len());
        let clock = match vclock.is_empty() {
            true => 0,
            false => field_length(vclock.len()),
        };
        let fields = self.bucket.len() + field_length(key.len()) + clock + field_length(content);
        push_head(out, code::PUT, fields + self.put_rest(put).len());
        out.extend_from_slice(&self.bucket);
        push_bytes(out, 2, key);
        if !vclock.is_empty() {
            push_bytes(out, 3, vclock);
        }
        push_field(out, 4, content);
        push_field(out, 1, length);
    }

    pub fn push_put_end(&self, out: &mut Vec<u8>, put: Put) {
        push_bytes(out, 2, CONTENT_TYPE);
        out.extend_from_slice(self.put_rest(put));
    }

    fn put_rest(&self, put: Put) -> &[u8] {
        match put {
            Put::Plain | Put::Carrying => &self.put,
            Put::Insert => &self.insert,
        }
    }
}

/// Appends a field of bytes. Numbers of fields are below 16, so that each is one byte with its kind.
#[inline]
fn push_bytes(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    push_field(out, number, bytes.len());
    out.extend_from_slice(bytes);
}

#[inline]
fn push_field(out: &mut Vec<u8>, number: u8, length: usize) {
    debug_assert!(number < 16);
    out.push(number << 3 | LENGTH_DELIMITED as u8);
    let mut rest = length;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Bytes of a field of `length` bytes, with its key and its length.
#[inline]
fn field_length(length: usize) -> usize {
    1 + prost::length_delimiter_len(length) + length
}

const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;
const FIXED_32: u64 = 5;

/// One field of a message, borrowed.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Other,
}

/// Takes the first field off `rest`; None where it is cut off or of no known kind.
#[inline]
fn next_field<'a>(rest: &mut &'a [u8]) -> Option<(u64, Field<'a>)> {
    let key = next_number(rest)?;
    let field = match key & 7 {
        VARINT => Field::Number(next_number(rest)?),
        LENGTH_DELIMITED => {
            let length = usize::try_from(next_number(rest)?).ok()?;
            Field::Bytes(take(rest, length)?)
        }
        FIXED_64 => take(rest, 8).map(|_| Field::Other)?,
        FIXED_32 => take(rest, 4).map(|_| Field::Other)?,
        _ => return None,
    };
    Some((key >> 3, field))
}

#[inline]
fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

#[inline]
fn next_number(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for position in 0..10 {
        let (&byte, after) = rest.split_first()?;
        *rest = after;
        number |= u64::from(byte & 0x7f) << (7 * position);
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// What an answer to a get or put holds, borrowed.
#[derive(Debug, Default, PartialEq)]
pub struct Object<'a> {
    /// Of several values the one that is wanted, else the first; None where there is none but that of a deletion.
    pub value: Option<&'a [u8]>,
    /// Values and deletions.
    pub contents: usize,
    pub vclock: &'a [u8],
}

/// Reads the body of an answer to a get or put. None where it makes no sense.
pub fn object<'a>(mut body: &'a [u8], wanted: Option<&[u8]>) -> Option<Object<'a>> {
    let mut object = Object::default();
    while !body.is_empty() {
        match next_field(&mut body)? {
            (1, Field::Bytes(content)) => {
                object.contents += 1;
                let value = live_value(content)?;
                let is_wanted = || wanted.is_some() && value == wanted;
                if object.value.is_none() || object.contents > 1 && is_wanted() {
                    object.value = value;
                }
            }
            (2, Field::Bytes(vclock)) => object.vclock = vclock,
            (1 | 2, _) => return None,
            _ => {}
        }
    }
    Some(object)
}

/// The value of a content; Some(None) where it is that of a deletion.
fn live_value(mut content: &[u8]) -> Option<Option<&[u8]>> {
    // The field is required, and left out by nobody.
    let mut value = None;
    let mut deleted = false;
    while !content.is_empty() {
        match next_field(&mut content)? {
            (1, Field::Bytes(bytes)) => value = Some(bytes),
            (11, Field::Number(number)) => deleted = number != 0,
            (1 | 11, _) => return None,
            _ => {}
        }
    }
    value.map(|value| (!deleted).then_some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &[u8] = b"\x0a\x08\x0a\x03one\x12\x01t\x12\x02vc";

    #[test]
    fn a_value_is_read_where_it_lies() {
        let read = object(ONE, None).expect("an object");
        assert_eq!(read.value, Some(&ONE[4..7]));
        assert!(std::ptr::eq(read.value.expect("a value"), &ONE[4..7]));
        assert_eq!((read.contents, read.vclock), (1, &b"vc"[..]));
    }

    #[test]
    fn no_content_is_no_value() {
        assert_eq!(object(b"", None), Some(Object::default()));
        // What is left of a deletion.
        let read = object(b"\x12\x02vc", None).expect("an object");
        assert_eq!((read.value, read.vclock), (None, &b"vc"[..]));
    }

    #[test]
    fn of_siblings_the_wanted_one_is_read_and_no_deletion() {
        let body = b"\x0a\x05\x0a\x01x\x58\x01\x0a\x03\x0a\x01a\x0a\x03\x0a\x01b";
        let value = |wanted: Option<&[u8]>| object(body, wanted).expect("an object").value;
        assert_eq!(value(None), Some(&b"a"[..]));
        assert_eq!(value(Some(b"b")), Some(&b"b"[..]));
        assert_eq!(value(Some(b"x")), Some(&b"a"[..]));
        assert_eq!(object(body, None).map(|object| object.contents), Some(3));
    }

    #[test]
    fn what_is_cut_off_or_nonsense_is_told() {
        for cut in [1, 3, 6, 9, ONE.len() - 1] {
            assert_eq!(object(&ONE[..cut], None), None, "cut at {cut}");
        }
        // A group; a number of eleven bytes; a length beyond any.
        for wrong in [
            &b"\x0b"[..],
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        ] {
            assert_eq!(object(wrong, None), None);
        }
        // Fields of other kinds and numbers are passed over.
        let unknown = b"\x1d\x01\x02\x03\x04\x21\x01\x02\x03\x04\x05\x06\x07\x08\x18\x01";
        assert_eq!(object(unknown, None), Some(Object::default()));
    }

    /// What is written around a value is what prost writes of the whole message.
    #[test]
    fn a_put_in_pieces_is_the_message() {
        for length in [0, 1, 127, 128, 80_000] {
            let settings = Settings {
                protocol_buffers: true,
                bucket: "dbbench".to_owned(),
                bucket_type: Some("t".to_owned()),
                r: None,
                w: Some(Quorum::All),
                dw: Some(Quorum::Number(0)),
                pr: None,
                pw: None,
                n_val: None,
                allow_mult: None,
                return_body: true,
                vclock: crate::driver::riak::settings::Vclock::Update,
                timeout: Some(std::time::Duration::from_millis(500)),
                nodes: 1,
            };
            let value = vec![7; length];
            let fixed = Fixed::of(&settings);
            let mut written = Vec::new();
            fixed.push_put(&mut written, b"key", b"clock", length, Put::Carrying);
            written.extend_from_slice(&value);
            fixed.push_put_end(&mut written, Put::Carrying);
            let mut expected = Vec::new();
            let message = RpbPutReq {
                bucket: b"dbbench".to_vec(),
                key: Some(b"key".to_vec()),
                vclock: Some(b"clock".to_vec()),
                content: Some(RpbContent {
                    value,
                    content_type: Some(CONTENT_TYPE.to_vec()),
                    ..RpbContent::default()
                }),
                w: Some(u32::MAX - 3),
                dw: Some(0),
                return_body: Some(true),
                timeout: Some(500),
                r#type: Some(b"t".to_vec()),
                ..RpbPutReq::default()
            };
            push_message(&mut expected, code::PUT, &message);
            assert!(written == expected, "{length}");
        }
    }
}
