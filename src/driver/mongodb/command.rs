//! The commands of the built-in operations, as the crate sends them: documents of bytes, made in one go.
//!
//! A document is `{ _id: key, v: value }`: the key a string where it is UTF-8, else binary, the value binary, or an
//! integer once it was incremented.

use crate::driver::spec::Options;
use crate::op::Operation;
use mongodb::bson::raw::cstr;
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{RawArrayBuf, RawBinaryRef, RawBson, RawBsonRef, RawDocumentBuf, rawdoc};
use mongodb::options::{ReadPreference, SelectionCriteria};
use serde_json::Value;

/// What is asked for beside the operation itself.
#[derive(Clone, Debug)]
pub struct Concerns {
    /// As a command says it; None for the server's own.
    pub write: Option<RawDocumentBuf>,
    pub read: Option<RawDocumentBuf>,
    pub preference: Option<SelectionCriteria>,
}

impl Concerns {
    pub fn of(options: &Options) -> Concerns {
        let mut write = RawDocumentBuf::new();
        match options.value("write_concern") {
            Value::Number(number) => {
                write.append(cstr!("w"), number.as_i64().unwrap_or(1) as i32);
            }
            Value::String(text) => write.append(cstr!("w"), text.as_str()),
            _ => {}
        }
        if options.is_set("journal") {
            write.append(cstr!("j"), options.bool("journal"));
        }
        let read = options.text("read_concern");
        Concerns {
            write: (!write.is_empty()).then_some(write),
            read: read.map(|level| rawdoc! { "level": level }),
            preference: options
                .text("read_preference")
                .and_then(|name| preference(&name)),
        }
    }
}

fn preference(name: &str) -> Option<SelectionCriteria> {
    let options = None;
    let preference = match name {
        "primary" => ReadPreference::Primary,
        "primaryPreferred" => ReadPreference::PrimaryPreferred { options },
        "secondary" => ReadPreference::Secondary { options },
        "secondaryPreferred" => ReadPreference::SecondaryPreferred { options },
        "nearest" => ReadPreference::Nearest { options },
        _ => return None,
    };
    Some(SelectionCriteria::ReadPreference(preference))
}

/// Makes the commands of one collection.
#[derive(Debug)]
pub struct Commands {
    pub collection: String,
    pub concerns: Concerns,
    pub scan_count: i64,
}

impl Commands {
    pub fn find(&self, operation: &Operation) -> RawDocumentBuf {
        let mut filter = RawDocumentBuf::new();
        filter.append(cstr!("_id"), key(operation));
        let mut command = RawDocumentBuf::new();
        command.append(cstr!("find"), self.collection.as_str());
        command.append(cstr!("filter"), filter);
        command.append(cstr!("limit"), 1_i64);
        command.append(cstr!("singleBatch"), true);
        self.reading(command)
    }

    /// In the order of the keys, from the operation's on.
    pub fn scan(&self, operation: &Operation) -> RawDocumentBuf {
        let mut from = RawDocumentBuf::new();
        from.append(cstr!("$gte"), key(operation));
        let mut command = RawDocumentBuf::new();
        command.append(cstr!("find"), self.collection.as_str());
        command.append(cstr!("filter"), rawdoc! { "_id": from });
        command.append(cstr!("sort"), rawdoc! { "_id": 1 });
        command.append(cstr!("limit"), self.scan_count);
        self.reading(command)
    }

    pub fn insert(&self, operation: &Operation) -> RawDocumentBuf {
        let mut documents = RawArrayBuf::new();
        documents.push(document(operation));
        let mut command = RawDocumentBuf::new();
        command.append(cstr!("insert"), self.collection.as_str());
        command.append(cstr!("documents"), documents);
        self.writing(command)
    }

    /// Writes the whole document, whether there is one or not.
    pub fn replace(&self, operation: &Operation) -> RawDocumentBuf {
        self.update_with(operation, document(operation), true)
    }

    pub fn update(&self, operation: &Operation) -> RawDocumentBuf {
        let mut set = RawDocumentBuf::new();
        set.append(cstr!("v"), binary(&operation.value));
        self.update_with(operation, rawdoc! { "$set": set }, false)
    }

    pub fn increment(&self, operation: &Operation) -> RawDocumentBuf {
        self.update_with(operation, rawdoc! { "$inc": { "v": 1_i64 } }, true)
    }

    pub fn delete(&self, operation: &Operation) -> RawDocumentBuf {
        let mut delete = RawDocumentBuf::new();
        delete.append(cstr!("q"), filter(operation));
        delete.append(cstr!("limit"), 1);
        let mut deletes = RawArrayBuf::new();
        deletes.push(delete);
        let mut command = RawDocumentBuf::new();
        command.append(cstr!("delete"), self.collection.as_str());
        command.append(cstr!("deletes"), deletes);
        self.writing(command)
    }

    fn update_with(
        &self,
        operation: &Operation,
        change: RawDocumentBuf,
        upsert: bool,
    ) -> RawDocumentBuf {
        let mut update = RawDocumentBuf::new();
        update.append(cstr!("q"), filter(operation));
        update.append(cstr!("u"), change);
        if upsert {
            update.append(cstr!("upsert"), true);
        }
        let mut updates = RawArrayBuf::new();
        updates.push(update);
        let mut command = RawDocumentBuf::new();
        command.append(cstr!("update"), self.collection.as_str());
        command.append(cstr!("updates"), updates);
        self.writing(command)
    }

    fn writing(&self, mut command: RawDocumentBuf) -> RawDocumentBuf {
        if let Some(concern) = &self.concerns.write {
            command.append(cstr!("writeConcern"), concern);
        }
        command
    }

    fn reading(&self, mut command: RawDocumentBuf) -> RawDocumentBuf {
        if let Some(concern) = &self.concerns.read {
            command.append(cstr!("readConcern"), concern);
        }
        command
    }
}

fn filter(operation: &Operation) -> RawDocumentBuf {
    let mut filter = RawDocumentBuf::new();
    filter.append(cstr!("_id"), key(operation));
    filter
}

fn document(operation: &Operation) -> RawDocumentBuf {
    let mut document = RawDocumentBuf::new();
    document.append(cstr!("_id"), key(operation));
    document.append(cstr!("v"), binary(&operation.value));
    document
}

fn key(operation: &Operation) -> RawBsonRef<'_> {
    match std::str::from_utf8(&operation.key) {
        Ok(text) => RawBsonRef::String(text),
        Err(_) => RawBsonRef::Binary(binary(&operation.key)),
    }
}

pub fn binary(bytes: &[u8]) -> RawBinaryRef<'_> {
    RawBinaryRef {
        subtype: BinarySubtype::Generic,
        bytes,
    }
}

/// Key or other text of the user's commands.
pub fn text_or_binary(bytes: &[u8]) -> RawBson {
    match std::str::from_utf8(bytes) {
        Ok(text) => RawBson::String(text.to_owned()),
        Err(_) => RawBson::from(RawBsonRef::Binary(binary(bytes))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mongodb::bson::{Document, doc};

    fn commands(concerns: Concerns) -> Commands {
        Commands {
            collection: "c".to_owned(),
            concerns,
            scan_count: 7,
        }
    }

    fn plain() -> Commands {
        commands(Concerns {
            write: None,
            read: None,
            preference: None,
        })
    }

    fn operation(key: &[u8], value: &[u8]) -> Operation {
        Operation {
            key: key.to_vec(),
            value: value.to_vec(),
            ..Operation::default()
        }
    }

    fn read(command: RawDocumentBuf) -> Document {
        Document::try_from(&command).expect("BSON")
    }

    #[test]
    fn a_key_is_text_where_it_can_be() {
        let found = read(plain().find(&operation(b"k", b"")));
        let expected =
            doc! { "find": "c", "filter": { "_id": "k" }, "limit": 1_i64, "singleBatch": true };
        assert_eq!(found, expected);
        let found = read(plain().find(&operation(b"\xff", b"")));
        let filter = found.get_document("filter").unwrap();
        assert_eq!(filter.get_binary_generic("_id").unwrap(), b"\xff");
    }

    #[test]
    fn only_what_may_make_a_document_says_upsert() {
        let one = operation(b"k", b"v");
        let upserts = |command| {
            let command = read(command);
            let update = command.get_array("updates").unwrap()[0]
                .as_document()
                .unwrap()
                .clone();
            update.get_bool("upsert").unwrap_or(false)
        };
        assert!(upserts(plain().replace(&one)));
        assert!(upserts(plain().increment(&one)));
        assert!(!upserts(plain().update(&one)));
    }

    #[test]
    fn concerns_stand_where_they_mean_something() {
        let with = commands(Concerns {
            write: Some(rawdoc! { "w": "majority" }),
            read: Some(rawdoc! { "level": "local" }),
            preference: None,
        });
        let one = operation(b"k", b"v");
        for command in [with.insert(&one), with.delete(&one), with.increment(&one)] {
            let command = read(command);
            let concern = command.get_document("writeConcern").unwrap();
            assert_eq!(concern, &doc! { "w": "majority" });
            assert!(!command.contains_key("readConcern"));
        }
        let command = read(with.scan(&one));
        assert_eq!(
            command.get_document("readConcern").unwrap(),
            &doc! { "level": "local" }
        );
        assert_eq!(command.get_i64("limit").unwrap(), 7);
        assert!(!command.contains_key("writeConcern"));
    }
}
