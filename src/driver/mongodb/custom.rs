//! Operations of the user's own: any command as JSON, extended JSON included, its strings filled in per operation.
//!
//! A string that is one placeholder and nothing else becomes a value of its type: `$key` a string, `$index` and its like
//! a 64-bit integer, `$value` binary. Names of fields, and with them `$inc` and `$set`, are themselves.

use super::answer::bytes_of;
use super::command::{Concerns, binary, text_or_binary};
use crate::arguments::{Argument, ArgumentKind, ArgumentTemplate};
use crate::driver::CustomOperation;
use crate::driver::spec::OptionFault;
use crate::op::{ErrorClass, Failure, Operation, Outcome, Reply};
use mongodb::bson::raw::CString;
use mongodb::bson::{Bson, RawArrayBuf, RawBson, RawBsonRef, RawDocumentBuf};
use regex::bytes::Regex;
use serde_json::{Map, Value};

const EXAMPLE: &str = r#"command = '{ "update": "c", "updates": [{ "q": { "_id": "$key" }, "u": { "$inc": { "n": 1 } } }] }'"#;

/// Commands whose answer is a cursor.
const CURSORS: [&str; 4] = ["find", "aggregate", "listCollections", "listIndexes"];
const WRITES: [&str; 5] = [
    "insert",
    "update",
    "delete",
    "findAndModify",
    "findandmodify",
];
const READS: [&str; 4] = ["find", "aggregate", "count", "distinct"];

/// A compiled operation.
#[derive(Debug)]
pub struct Custom {
    fields: Vec<(CString, Node)>,
    expect: Option<Regex>,
}

#[derive(Debug)]
enum Node {
    Constant(RawBson),
    Text(ArgumentTemplate),
    Document(Vec<(CString, Node)>),
    Array(Vec<Node>),
}

impl Custom {
    pub fn compile(operation: &CustomOperation, concerns: &Concerns) -> Result<Custom, Failure> {
        let mut custom = compile(&operation.table).map_err(|fault| {
            let message = format!("operation {}: {}", operation.name, fault.message);
            Failure::new(ErrorClass::Client, message)
        })?;
        custom.ask_for(concerns);
        Ok(custom)
    }

    /// One command as a scenario's `statement` says it.
    pub fn statement(text: &str) -> Result<Custom, Failure> {
        let mut table = Map::new();
        table.insert("command".to_owned(), Value::String(text.to_owned()));
        compile(&table).map_err(|fault| Failure::new(ErrorClass::Client, fault.message))
    }

    /// Adds the target's concerns to a command that says none of its own.
    fn ask_for(&mut self, concerns: &Concerns) {
        let mut add = |commands: &[&str], name: &str, concern: &Option<RawDocumentBuf>| {
            let asked = self.fields.iter().any(|(field, _)| field.as_str() == name);
            let fits = commands.contains(&self.fields[0].0.as_str());
            if let (Some(concern), true, false) = (concern, fits, asked)
                && let Ok(field) = CString::try_from(name)
            {
                let constant = Node::Constant(RawBson::Document(concern.clone()));
                self.fields.push((field, constant));
            }
        };
        add(&WRITES, "writeConcern", &concerns.write);
        add(&READS, "readConcern", &concerns.read);
    }

    /// The command's name: its first field.
    pub fn name(&self) -> &str {
        self.fields[0].0.as_str()
    }

    pub fn gives_cursor(&self) -> bool {
        CURSORS.contains(&self.name())
    }

    /// Whether an answer without a value says that something is missing.
    pub fn finds(&self) -> bool {
        self.name().eq_ignore_ascii_case("findAndModify")
    }

    pub fn command(&self, operation: &Operation) -> RawDocumentBuf {
        document(&self.fields, operation)
    }

    /// What came of it, by the first value of its answer.
    pub fn judge(
        &self,
        first: Option<&Bson>,
        finds: bool,
        operation: &Operation,
        reply: &mut Reply,
    ) -> Result<Outcome, Failure> {
        let bytes = first.map(bytes_of);
        self.check(bytes.as_deref().unwrap_or_default())?;
        Ok(match bytes {
            Some(bytes) if finds => reply.found(operation, &bytes),
            Some(bytes) => {
                reply.keep_text(&bytes);
                Outcome::Done
            }
            None if finds => Outcome::Missing,
            None => Outcome::Done,
        })
    }

    fn check(&self, text: &[u8]) -> Result<(), Failure> {
        match &self.expect {
            Some(expect) if !expect.is_match(text) => {
                let shown = text[..text.len().min(60)].escape_ascii();
                let message = format!("the answer `{shown}` does not match `{expect}`");
                Err(Failure::new(ErrorClass::UnexpectedReply, message))
            }
            _ => Ok(()),
        }
    }
}

/// Faults of an operation's table that its rows cannot show.
pub fn check(table: &Map<String, Value>) -> Result<(), OptionFault> {
    compile(table).map(|_| ())
}

fn fault(key: &str, message: impl Into<String>, help: &str) -> OptionFault {
    OptionFault::new(key, message, help)
}

fn compile(table: &Map<String, Value>) -> Result<Custom, OptionFault> {
    let text = table.get("command").and_then(Value::as_str).unwrap_or("");
    let parsed: Value = serde_json::from_str(text)
        .map_err(|error| fault("command", format!("this is no JSON: {error}"), EXAMPLE))?;
    let Value::Object(fields) = parsed else {
        return Err(fault("command", "a command is a JSON object", EXAMPLE));
    };
    if fields.is_empty() {
        let message = "a command begins with its name";
        return Err(fault("command", message, EXAMPLE));
    }
    let fields = fields_of(fields, &mut 0)?;
    let expect = match table.get("expect").and_then(Value::as_str) {
        None => None,
        Some(pattern) => {
            Some(Regex::new(pattern).map_err(|error| fault("expect", error.to_string(), ""))?)
        }
    };
    Ok(Custom { fields, expect })
}

/// `position` counts the placeholders of the operation, so that no two random ones are alike.
fn fields_of(
    fields: Map<String, Value>,
    position: &mut u32,
) -> Result<Vec<(CString, Node)>, OptionFault> {
    let fields = fields.into_iter().map(|(name, value)| {
        let name = CString::try_from(name)
            .map_err(|_| fault("command", "a field's name holds a NUL byte", ""))?;
        Ok((name, node_of(value, position)?))
    });
    fields.collect()
}

fn node_of(value: Value, position: &mut u32) -> Result<Node, OptionFault> {
    Ok(match value {
        Value::Null => Node::Constant(RawBson::Null),
        Value::Bool(yes) => Node::Constant(RawBson::Boolean(yes)),
        Value::Number(number) => Node::Constant(number_of(&number)),
        Value::String(text) => {
            let template = ArgumentTemplate::parse(&text)
                .map_err(|wrong| fault("command", wrong.message, &wrong.help))?
                .counted_from(*position);
            *position += template.placeholders();
            Node::Text(template)
        }
        Value::Array(items) => {
            let nodes = items.into_iter().map(|item| node_of(item, position));
            Node::Array(nodes.collect::<Result<_, _>>()?)
        }
        Value::Object(fields) => match extended(&fields)? {
            Some(constant) => Node::Constant(constant),
            None => Node::Document(fields_of(fields, position)?),
        },
    })
}

fn number_of(number: &serde_json::Number) -> RawBson {
    match (number.as_i64(), number.as_f64()) {
        (Some(integer), _) => match i32::try_from(integer) {
            Ok(small) => RawBson::Int32(small),
            Err(_) => RawBson::Int64(integer),
        },
        (None, Some(real)) => RawBson::Double(real),
        (None, None) => RawBson::Null,
    }
}

/// A value that JSON has no word for, as extended JSON writes it: `{ "$oid": "..." }`.
fn extended(fields: &Map<String, Value>) -> Result<Option<RawBson>, OptionFault> {
    const TYPES: [&str; 13] = [
        "$oid",
        "$date",
        "$binary",
        "$uuid",
        "$numberInt",
        "$numberLong",
        "$numberDouble",
        "$numberDecimal",
        "$regularExpression",
        "$timestamp",
        "$minKey",
        "$maxKey",
        "$undefined",
    ];
    let first = fields.keys().next().map_or("", String::as_str);
    if !TYPES.contains(&first) {
        return Ok(None);
    }
    let wrong = |reason: String| {
        let message = format!("`{first}` is no value of extended JSON: {reason}");
        fault("command", message, "")
    };
    let value: Bson = serde_json::from_value(Value::Object(fields.clone()))
        .map_err(|error| wrong(error.to_string()))?;
    let raw = RawBson::try_from(value).map_err(|error| wrong(error.to_string()))?;
    Ok(Some(raw))
}

fn document(fields: &[(CString, Node)], operation: &Operation) -> RawDocumentBuf {
    let mut out = RawDocumentBuf::new();
    for (name, node) in fields {
        match node {
            Node::Constant(constant) => out.append(name, constant),
            node => out.append(name, value_of(node, operation)),
        }
    }
    out
}

fn value_of(node: &Node, operation: &Operation) -> RawBson {
    match node {
        Node::Constant(constant) => constant.clone(),
        Node::Document(fields) => RawBson::Document(document(fields, operation)),
        Node::Array(nodes) => {
            let mut array = RawArrayBuf::new();
            for node in nodes {
                array.push(value_of(node, operation));
            }
            RawBson::Array(array)
        }
        Node::Text(template) => match template.evaluate(operation) {
            Argument::Integer(number) => RawBson::Int64(number),
            Argument::Bytes(bytes) if template.kind() == ArgumentKind::Bytes => {
                RawBson::from(RawBsonRef::Binary(binary(&bytes)))
            }
            Argument::Bytes(bytes) => text_or_binary(&bytes),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mongodb::bson::{Document, doc, rawdoc};

    fn table(command: &str) -> Map<String, Value> {
        let mut table = Map::new();
        table.insert("command".to_owned(), command.into());
        table
    }

    fn filled(command: &str) -> Document {
        let operation = Operation {
            index: 1234,
            key: b"user7".to_vec(),
            value: b"\x00\xff".to_vec(),
            ..Operation::default()
        };
        let command = compile(&table(command)).unwrap().command(&operation);
        Document::try_from(&command).unwrap()
    }

    #[test]
    fn whole_strings_become_typed_values_and_operators_are_themselves() {
        let found = filled(
            r#"{ "update": "c", "updates": [{ "q": { "_id": "$key", "g": "g$mod(10)" },
                 "u": { "$inc": { "n": 1 }, "$set": { "i": "$index", "v": "$value" } } }] }"#,
        );
        let update = found.get_array("updates").unwrap()[0]
            .as_document()
            .unwrap();
        assert_eq!(
            update.get_document("q").unwrap(),
            &doc! { "_id": "user7", "g": "g4" }
        );
        let change = update.get_document("u").unwrap();
        assert_eq!(change.get_document("$inc").unwrap(), &doc! { "n": 1 });
        let set = change.get_document("$set").unwrap();
        assert_eq!(set.get_i64("i").unwrap(), 1234);
        assert_eq!(set.get_binary_generic("v").unwrap(), b"\x00\xff");
    }

    #[test]
    fn extended_json_keeps_its_types() {
        let found = filled(
            r#"{ "find": "c", "filter": { "_id": { "$oid": "0123456789abcdef01234567" },
                 "n": { "$gt": { "$numberLong": "5" } } }, "skip": 5000000000, "x": 1.5 }"#,
        );
        let filter = found.get_document("filter").unwrap();
        assert_eq!(
            filter.get_object_id("_id").unwrap().to_hex(),
            "0123456789abcdef01234567"
        );
        assert_eq!(filter.get_document("n").unwrap().get_i64("$gt").unwrap(), 5);
        assert_eq!(found.get_i64("skip").unwrap(), 5_000_000_000);
        assert_eq!(found.get_f64("x").unwrap(), 1.5);
    }

    #[test]
    fn concerns_are_added_to_commands_that_say_none() {
        let concerns = Concerns {
            write: Some(rawdoc! { "w": 1 }),
            read: Some(rawdoc! { "level": "local" }),
            preference: None,
        };
        let asked = |command: &str| {
            let operation = CustomOperation {
                name: "own".to_owned(),
                table: table(command),
            };
            let custom = Custom::compile(&operation, &concerns).unwrap();
            Document::try_from(&custom.command(&Operation::default())).unwrap()
        };
        let write = asked(r#"{ "insert": "c", "documents": [] }"#);
        assert_eq!(
            write.get_document("writeConcern").unwrap(),
            &doc! { "w": 1 }
        );
        let own = asked(r#"{ "delete": "c", "writeConcern": { "w": 0 } }"#);
        assert_eq!(own.get_document("writeConcern").unwrap(), &doc! { "w": 0 });
        assert!(asked(r#"{ "find": "c" }"#).contains_key("readConcern"));
        assert!(!asked(r#"{ "ping": 1 }"#).contains_key("readConcern"));
    }

    #[test]
    fn wrong_commands_are_faults_with_a_correction() {
        for (command, message) in [
            ("ping", "no JSON"),
            ("[1]", "a JSON object"),
            ("{}", "begins with its name"),
            (r#"{ "find": "c", "skip": "$mod(0)" }"#, "from 1 to"),
            (r#"{ "find": { "$oid": "short" } }"#, "extended JSON"),
        ] {
            let fault = check(&table(command)).unwrap_err();
            assert_eq!(fault.key, "command");
            assert!(fault.message.contains(message), "{}", fault.message);
        }
        let mut wrong = table(r#"{ "ping": 1 }"#);
        wrong.insert("expect".to_owned(), "(".into());
        assert_eq!(check(&wrong).unwrap_err().key, "expect");
    }

    #[test]
    fn an_answer_that_is_not_expected_is_a_failure() {
        let mut one = table(r#"{ "find": "c" }"#);
        one.insert("expect".to_owned(), "^1$".into());
        let custom = compile(&one).unwrap();
        let judge = |value: Option<Bson>| {
            let mut reply = Reply::default();
            custom.judge(value.as_ref(), true, &Operation::default(), &mut reply)
        };
        assert_eq!(judge(Some(Bson::Int32(1))), Ok(Outcome::Found));
        for value in [Some(Bson::Int32(2)), None] {
            assert_eq!(judge(value).unwrap_err().class, ErrorClass::UnexpectedReply);
        }
    }
}
