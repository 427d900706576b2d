//! From TOML text to the tree: every key and value with its span in the joined numbering of the source map.
//!
//! Knows TOML, by the toml crate; nothing of files or of what keys mean.

use super::tree::{Entry, Node, Table, Value};
use crate::diag::{Diagnostic, Diagnostics, Span};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

/// Faults of syntax shown at most; what follows them is mostly their consequence.
const SHOWN_FAULTS: usize = 3;

/// Parses a whole document whose text begins at `base`. None where it is no TOML; the faults are in `diagnostics`.
pub fn document(text: &str, base: u32, diagnostics: &mut Diagnostics) -> Option<Node> {
    let (parsed, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        report(text, base, &errors, diagnostics);
        return None;
    }
    let mut builder = Builder { base, diagnostics };
    let table = builder.table(parsed.get_ref());
    Some(Node {
        span: Span::new(base as usize, base as usize),
        value: Value::Table(table),
    })
}

/// Parses one value, as `--set` has it at its right side. None where it is no TOML value.
pub fn value(text: &str, base: u32) -> Option<Node> {
    let parsed = DeValue::parse(text).ok()?;
    let mut diagnostics = Diagnostics::default();
    let node = Builder {
        base,
        diagnostics: &mut diagnostics,
    }
    .node(&parsed);
    diagnostics.is_empty().then_some(node)
}

fn report(text: &str, base: u32, errors: &[toml::de::Error], diagnostics: &mut Diagnostics) {
    let mut lines = Vec::new();
    for error in errors {
        let range = error.span().unwrap_or(0..0);
        let line = text[..range.start.min(text.len())].matches('\n').count();
        if lines.contains(&line) || lines.len() == SHOWN_FAULTS {
            continue;
        }
        lines.push(line);
        diagnostics.push(syntax_fault(text, base, error.message(), range));
    }
}

fn syntax_fault(text: &str, base: u32, message: &str, range: Range<usize>) -> Diagnostic {
    let span = shift(base, range.clone());
    if message == "duplicate key" {
        let key = text.get(range).unwrap_or("");
        return Diagnostic::error("duplicate-key", span, format!("`{key}` stands twice"))
            .label("the second one")
            .help("a key may stand once in a table; remove one of the two");
    }
    // toml takes a bare word that begins with n or i for a misspelt `nan` or `inf`.
    let bare = [
        "string values must be quoted",
        "invalid float, expected `nan`",
        "invalid float, expected `inf`",
    ];
    if bare.iter().any(|fault| message.starts_with(fault)) {
        let word = text.get(range).unwrap_or("");
        return Diagnostic::error("syntax", span, "not valid TOML: a string needs its quotes")
            .help("with quotes")
            .fix(span, format!("{word:?}"));
    }
    let message = match message.split_once(", expected ") {
        Some((found, expected)) => format!("not valid TOML: {found}; expected {expected}"),
        None => format!("not valid TOML: {message}"),
    };
    Diagnostic::error("syntax", span, message.replace('\n', " "))
}

fn shift(base: u32, range: Range<usize>) -> Span {
    Span::new(base as usize + range.start, base as usize + range.end)
}

struct Builder<'d> {
    base: u32,
    diagnostics: &'d mut Diagnostics,
}

impl Builder<'_> {
    fn table(&mut self, table: &DeTable) -> Table {
        let entries = table
            .iter()
            .map(|(key, value)| Entry {
                key: key.get_ref().to_string(),
                key_span: shift(self.base, key.span()),
                node: self.node(value),
            })
            .collect();
        Table { entries }
    }

    fn node(&mut self, value: &Spanned<DeValue>) -> Node {
        let span = shift(self.base, value.span());
        let value = match value.get_ref() {
            DeValue::String(text) => Value::String(text.to_string()),
            DeValue::Integer(integer) => self.integer(integer, span),
            DeValue::Float(float) => Value::Float(float.as_str().parse().unwrap_or(f64::NAN)),
            DeValue::Boolean(value) => Value::Bool(*value),
            DeValue::Datetime(datetime) => Value::Datetime(datetime.to_string()),
            DeValue::Array(items) => {
                Value::Array(items.iter().map(|item| self.node(item)).collect())
            }
            DeValue::Table(table) => Value::Table(self.table(table)),
        };
        Node { span, value }
    }

    fn integer(&mut self, integer: &DeInteger, span: Span) -> Value {
        match i64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(number) => Value::Integer(number),
            Err(_) => {
                let message = "this integer does not fit into 64 bits";
                self.diagnostics
                    .push(Diagnostic::error("number-too-large", span, message));
                Value::Integer(0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (Option<Node>, Diagnostics) {
        let mut diagnostics = Diagnostics::default();
        let node = document(text, 100, &mut diagnostics);
        (node, diagnostics)
    }

    #[test]
    fn keys_keep_the_order_of_the_file_and_spans_are_shifted() {
        let (node, diagnostics) = parse("z = 1\na = 0x1F\n[t]\nb = true\n");
        let node = node.expect("valid");
        let table = node.table().expect("a table");
        assert_eq!(table.keys().collect::<Vec<_>>(), ["z", "a", "t"]);
        assert_eq!(table.get("a").and_then(Node::integer), Some(31));
        assert_eq!(
            table.entry("z").map(|e| e.key_span),
            Some(Span::new(100, 101))
        );
        assert_eq!(table.get("z").map(|n| n.span), Some(Span::new(104, 105)));
        assert!(diagnostics.is_empty());
    }

    #[test]
    fn faults_of_several_lines_are_all_reported() {
        let (node, diagnostics) = parse("a = tru\nb = 1\nb = 2\n");
        assert!(node.is_none());
        let codes: Vec<_> = diagnostics.list.iter().map(|d| d.code).collect();
        assert_eq!(codes, ["syntax", "duplicate-key"]);
    }

    #[test]
    fn an_integer_beyond_64_bits_is_refused_where_it_stands() {
        let (_, diagnostics) = parse("a = 99999999999999999999\n");
        assert_eq!(diagnostics.list[0].code, "number-too-large");
        assert_eq!(diagnostics.list[0].span, Span::new(104, 124));
    }
}
