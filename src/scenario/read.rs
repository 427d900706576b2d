//! Typed values out of a checked table: what `check` has let pass with `Templates::None` is read here without fail.
//!
//! Everything is optional: whether a key must be there is the row's to say. A value of another type reads as not said.

use super::tree::{Node, Table};
use crate::diag::Span;
use crate::units;
use std::time::Duration;

/// A table to read from, and where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'t> {
    pub table: &'t Table,
    pub span: Span,
}

impl<'t> Reader<'t> {
    /// None where the node is no table.
    pub fn new(node: &'t Node) -> Option<Reader<'t>> {
        let table = node.table()?;
        let span = node.span;
        Some(Reader { table, span })
    }

    pub fn of(table: &'t Table, span: Span) -> Reader<'t> {
        Reader { table, span }
    }

    pub fn node(&self, key: &str) -> Option<&'t Node> {
        self.table.get(key)
    }

    pub fn has(&self, key: &str) -> bool {
        self.table.get(key).is_some()
    }

    /// Of the value, else of the table.
    pub fn span_of(&self, key: &str) -> Span {
        self.table.get(key).map_or(self.span, |node| node.span)
    }

    /// Of the key, else of the table.
    pub fn key_span_of(&self, key: &str) -> Span {
        self.table
            .entry(key)
            .map_or(self.span, |entry| entry.key_span)
    }

    pub fn text(&self, key: &str) -> Option<&'t str> {
        self.node(key)?.string()
    }

    pub fn integer(&self, key: &str) -> Option<i64> {
        self.node(key)?.integer()
    }

    /// A count that fits; rows keep out negative ones.
    pub fn count(&self, key: &str) -> Option<u64> {
        self.integer(key)
            .and_then(|number| u64::try_from(number).ok())
    }

    pub fn number(&self, key: &str) -> Option<f64> {
        self.node(key)?.number()
    }

    pub fn bool(&self, key: &str) -> Option<bool> {
        self.node(key)?.bool()
    }

    pub fn duration(&self, key: &str) -> Option<Duration> {
        duration(self.node(key)?)
    }

    /// Nanoseconds of a duration.
    pub fn nanoseconds(&self, key: &str) -> Option<u64> {
        Some(self.duration(key)?.as_nanos() as u64)
    }

    /// Bytes.
    pub fn size(&self, key: &str) -> Option<u64> {
        size(self.node(key)?)
    }

    /// Per second.
    pub fn rate(&self, key: &str) -> Option<f64> {
        units::parse_rate(self.text(key)?).ok()
    }

    pub fn list(&self, key: &str) -> Option<&'t [Node]> {
        self.node(key)?.array()
    }

    /// Strings of a list; empty where it is not said.
    pub fn texts(&self, key: &str) -> Vec<&'t str> {
        let items = self.list(key).unwrap_or(&[]);
        items.iter().filter_map(Node::string).collect()
    }

    pub fn table(&self, key: &str) -> Option<Reader<'t>> {
        Reader::new(self.node(key)?)
    }

    /// Tables of a list of tables; empty where it is not said.
    pub fn tables(&self, key: &str) -> Vec<Reader<'t>> {
        let items = self.list(key).unwrap_or(&[]);
        items.iter().filter_map(Reader::new).collect()
    }
}

pub fn duration(node: &Node) -> Option<Duration> {
    units::parse_duration(node.string()?).ok()
}

/// Bytes, of a string with its unit or of an integer.
pub fn size(node: &Node) -> Option<u64> {
    match node.string() {
        Some(text) => units::parse_size(text).ok(),
        None => u64::try_from(node.integer()?).ok(),
    }
}

/// The node as JSON, for axis values, options and labels. Dates become strings.
pub fn to_json(node: &Node) -> serde_json::Value {
    use super::tree::Value;
    match &node.value {
        Value::String(text) | Value::Datetime(text) => text.as_str().into(),
        Value::Integer(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::Bool(value) => (*value).into(),
        Value::Array(items) => items.iter().map(to_json).collect(),
        Value::Table(table) => {
            let pairs = table.entries.iter();
            serde_json::Value::Object(pairs.map(|e| (e.key.clone(), to_json(&e.node))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Diagnostics;

    #[test]
    fn values_are_read_in_their_units() {
        let text = "timeout = '1.5s'\nsize = '2KiB'\nbytes = 7\nrate = '3k/s'\nnames = ['a', 'b']\nn = 3\n";
        let node = crate::scenario::parse::document(text, 0, &mut Diagnostics::default());
        let node = node.expect("valid");
        let reader = Reader::new(&node).expect("a table");
        assert_eq!(
            reader.duration("timeout"),
            Some(Duration::from_millis(1500))
        );
        assert_eq!(reader.nanoseconds("timeout"), Some(1_500_000_000));
        assert_eq!(reader.size("size"), Some(2048));
        assert_eq!(reader.size("bytes"), Some(7));
        assert_eq!(reader.rate("rate"), Some(3000.0));
        assert_eq!(reader.texts("names"), ["a", "b"]);
        assert_eq!(reader.number("n"), Some(3.0));
        assert_eq!(reader.text("absent"), None);
        assert_eq!(
            reader.span_of("n"),
            Span::new(text.len() - 2, text.len() - 1)
        );
        assert_eq!(to_json(&node)["names"][1], "b");
    }
}
