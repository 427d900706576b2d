//! What a server's answer says: refusals inside an answer that calls itself well, how many documents there were, and its
//! first value.

use crate::op::{ErrorClass, Failure};
use mongodb::bson::{Bson, Document, RawBsonRef, RawDocument};
use std::borrow::Cow;

/// A write that the server refused, in an answer with `ok: 1`; or one that it did and could not vouch for.
pub fn refusal(answer: &Document) -> Option<Failure> {
    let errors = answer.get_array("writeErrors").ok();
    let first = errors.and_then(|errors| errors.first()?.as_document());
    let error = first.or_else(|| answer.get_document("writeConcernError").ok())?;
    let message = error.get_str("errmsg").unwrap_or("the server says no more");
    let code = error.get("code").map(text_of).unwrap_or_default();
    Some(Failure::new(ErrorClass::Server, message).with_code(code))
}

/// Documents that were met; None where the server does not say (`w: 0`).
pub fn count(answer: &Document) -> Option<i64> {
    integer(answer.get("n")?)
}

fn integer(value: &Bson) -> Option<i64> {
    match value {
        Bson::Int32(number) => Some(i64::from(*number)),
        Bson::Int64(number) => Some(*number),
        Bson::Double(number) => Some(*number as i64),
        _ => None,
    }
}

/// The first document of a cursor's first batch.
pub fn first_document(answer: &Document) -> Result<Option<&Document>, Failure> {
    let batch = answer
        .get_document("cursor")
        .and_then(|cursor| cursor.get_array("firstBatch"));
    match batch {
        Ok(batch) => Ok(batch.first().and_then(Bson::as_document)),
        Err(_) => Err(unexpected("an answer to find without a batch of documents")),
    }
}

pub fn unexpected(what: &str) -> Failure {
    Failure::new(ErrorClass::Protocol, format!("malformed answer: {what}"))
}

/// The value of a document that `set` or `increment` wrote.
pub fn stored(document: &Document) -> Result<Cow<'_, [u8]>, Failure> {
    match document.get("v") {
        Some(Bson::Binary(binary)) => Ok(Cow::Borrowed(&binary.bytes)),
        Some(Bson::String(text)) => Ok(Cow::Borrowed(text.as_bytes())),
        Some(other) => Ok(Cow::Owned(text_of(other).into_bytes())),
        None => Err(unexpected("a document without a value")),
    }
}

/// The first value of a command's answer that is no cursor's; None where there is none: findAndModify of nothing.
pub fn first_value<'a>(command: &str, answer: &'a Document) -> Option<&'a Bson> {
    if command.eq_ignore_ascii_case("findAndModify") {
        return match answer.get("value") {
            Some(Bson::Document(document)) => document.values().next(),
            _ => None,
        };
    }
    answer.get("n").or_else(|| {
        let mut fields = answer.iter().filter(|(name, _)| name.as_str() != "ok");
        let scalar = fields.find(|(_, value)| !matches!(value, Bson::Document(_) | Bson::Array(_)));
        scalar.map(|(_, value)| value)
    })
}

/// A value as bytes: those of a text or binary one, else its text.
pub fn bytes_of(value: &Bson) -> Cow<'_, [u8]> {
    match value {
        Bson::Binary(binary) => Cow::Borrowed(&binary.bytes),
        Bson::String(text) => Cow::Borrowed(text.as_bytes()),
        other => Cow::Owned(text_of(other).into_bytes()),
    }
}

/// The first field of a document of a cursor.
pub fn first_field(document: &RawDocument) -> Option<Bson> {
    let (_, value) = document.iter().next()?.ok()?;
    match value {
        RawBsonRef::Binary(binary) => Some(Bson::Binary(mongodb::bson::Binary {
            subtype: binary.subtype,
            bytes: binary.bytes.to_vec(),
        })),
        other => Bson::try_from(mongodb::bson::RawBson::from(other)).ok(),
    }
}

/// A value as text; nothing for null, extended JSON for what has no plain text.
pub fn text_of(value: &Bson) -> String {
    match value {
        Bson::String(text) => text.clone(),
        Bson::Int32(number) => number.to_string(),
        Bson::Int64(number) => number.to_string(),
        Bson::Double(number) => number.to_string(),
        Bson::Boolean(yes) => yes.to_string(),
        Bson::ObjectId(id) => id.to_hex(),
        Bson::Binary(binary) => String::from_utf8_lossy(&binary.bytes).into_owned(),
        Bson::Null | Bson::Undefined => String::new(),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mongodb::bson::doc;

    #[test]
    fn a_refusal_inside_a_good_answer_is_seen() {
        let answer = doc! { "n": 0, "ok": 1.0, "writeErrors": [{ "index": 0, "code": 11000, "errmsg": "twice" }] };
        let failure = refusal(&answer).unwrap();
        assert_eq!(
            (failure.class, failure.code.as_str()),
            (ErrorClass::Server, "11000")
        );
        assert_eq!(failure.message, "twice");
        let late =
            doc! { "n": 1, "ok": 1.0, "writeConcernError": { "code": 64, "errmsg": "timeout" } };
        assert_eq!(refusal(&late).unwrap().code, "64");
        assert_eq!(refusal(&doc! { "n": 1, "ok": 1.0 }), None);
    }

    #[test]
    fn the_first_value_is_the_one_that_matters() {
        let text = |command, answer: Document| first_value(command, &answer).map(text_of);
        let written = doc! { "ok": 1.0, "nModified": 3, "n": 4_i64 };
        assert_eq!(text("update", written).as_deref(), Some("4"));
        let found = doc! { "value": { "_id": "k", "v": 1 }, "ok": 1.0 };
        assert_eq!(text("findAndModify", found).as_deref(), Some("k"));
        assert_eq!(
            text("findandmodify", doc! { "value": null, "ok": 1.0 }),
            None
        );
        let other = doc! { "ok": 1.0, "list": [], "version": "7.0" };
        assert_eq!(text("buildInfo", other).as_deref(), Some("7.0"));
        assert_eq!(text("ping", doc! { "ok": 1.0 }), None);
    }

    #[test]
    fn numbers_are_read_as_decimal_text() {
        let read = |document: Document| stored(&document).map(Cow::into_owned);
        assert_eq!(read(doc! { "v": 15_i64 }), Ok(b"15".to_vec()));
        assert_eq!(read(doc! { "v": 15.0 }), Ok(b"15".to_vec()));
        assert!(read(doc! { "w": 1 }).is_err());
    }
}
