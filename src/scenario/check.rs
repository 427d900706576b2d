//! Reading a tree through rows: every fault of type, unit, range, name and key, with its place and its correction.
//!
//! Knows rows and nothing of what keys mean; `validate` finds what one value alone cannot show. Collects, never stops.
//! `words` has the sentences and corrections.

#[cfg(test)]
mod tests;
mod words;

pub use words::{expected, name_fault, unknown_key};

use super::tree::{Node, Table, Value, is_whole_expression};
use super::units_help;
use crate::diag::{Diagnostic, Diagnostics, Span, did_you_mean, list_of};
use crate::rows::{Kind, NameKind, Row};
use crate::units;
use words::{bare, called, integer_range, number_range, retyped};

/// Whether a template may stand for a value: before the plan it may, after evaluation there is none left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Templates {
    Allowed,
    None,
}

/// Where a table stands: `[workload.keys]`, `[[phases]]`.
#[derive(Clone, Copy, Debug)]
pub struct Place<'p> {
    parent: Option<&'p Place<'p>>,
    name: &'p str,
    list: bool,
}

impl<'p> Place<'p> {
    pub const TOP: Place<'static> = Place {
        parent: None,
        name: "",
        list: false,
    };

    pub fn table(&'p self, name: &'p str) -> Place<'p> {
        Place {
            parent: Some(self),
            name,
            list: false,
        }
    }

    pub fn list(&'p self, name: &'p str) -> Place<'p> {
        Place {
            list: true,
            ..self.table(name)
        }
    }

    fn path(&self) -> String {
        match self.parent.map(Place::path) {
            None => String::new(),
            Some(path) if path.is_empty() => quoted(self.name),
            Some(path) => format!("{path}.{}", quoted(self.name)),
        }
    }
}

/// A key as TOML wants it in a header.
fn quoted(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    match !key.is_empty() && key.chars().all(bare) {
        true => key.to_owned(),
        false => format!("{key:?}"),
    }
}

impl std::fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.path();
        match self.list {
            _ if path.is_empty() => write!(f, "the top level"),
            true => write!(f, "`[[{path}]]`"),
            false => write!(f, "`[{path}]`"),
        }
    }
}

/// Checks a value of any kind; for a whole scenario give `Kind::Table(model::TOP)`.
pub fn check(node: &Node, kind: &Kind, templates: Templates, diagnostics: &mut Diagnostics) {
    check_at(&Place::TOP, "", node, kind, templates, diagnostics);
}

/// As `check`, for the value of `key` at `place`, which messages then name.
pub fn check_at(
    place: &Place,
    key: &str,
    node: &Node,
    kind: &Kind,
    templates: Templates,
    diagnostics: &mut Diagnostics,
) {
    Checker {
        templates,
        diagnostics,
    }
    .value(place, key, node, kind);
}

/// Checks a table against rows; `span` is what stands for the whole table where a key is missing.
pub fn check_table(
    place: &Place,
    table: &Table,
    span: Span,
    rows: &[Row],
    templates: Templates,
    diagnostics: &mut Diagnostics,
) {
    Checker {
        templates,
        diagnostics,
    }
    .table(place, table, span, rows);
}

struct Checker<'d> {
    templates: Templates,
    diagnostics: &'d mut Diagnostics,
}

impl Checker<'_> {
    fn value(&mut self, place: &Place, key: &str, node: &Node, kind: &Kind) {
        if self.may_be_template(node, kind) {
            return;
        }
        match kind {
            Kind::Any => {}
            Kind::Bool => self.bool(key, node),
            Kind::Integer { min, max } => self.integer(key, node, *min, *max),
            Kind::Number { min, max } => self.number(key, node, *min, *max),
            Kind::Text | Kind::Path => self.text(key, node, kind),
            Kind::Duration { zero } => self.duration(key, node, *zero),
            Kind::Size { zero } => self.size(key, node, *zero),
            Kind::Rate => self.rate(key, node),
            Kind::Choice(choices) => self.choice(key, node, choices),
            Kind::Name(names) => self.name(key, node, *names),
            Kind::Regex => self.regex(key, node),
            Kind::Expression => self.expression(key, node),
            Kind::List(element) => self.list(place, key, node, element),
            Kind::Table(rows) => match node.table() {
                Some(table) => self.table(&below(place, key), table, node.span, rows),
                None => self.wrong_type(key, node, kind),
            },
            Kind::Map(names, other) => self.map(place, key, node, &[], *names, other, kind),
            Kind::Open { rows, names, other } => {
                self.map(place, key, node, rows, *names, other, kind)
            }
            Kind::OneOf(kinds) => self.one_of(place, key, node, kinds, kind),
        }
    }

    fn may_be_template(&self, node: &Node, kind: &Kind) -> bool {
        let Some(text) = node.string() else {
            return false;
        };
        if self.templates == Templates::None || !node.is_template() {
            return false;
        }
        takes_templates(kind) && (is_whole_expression(text) || !wants_whole_expression(kind))
    }

    fn push(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    fn wrong_type(&mut self, key: &str, node: &Node, kind: &Kind) {
        let message = format!(
            "{} must be {}, not {}",
            called(key),
            expected(kind),
            node.kind()
        );
        let mut fault = Diagnostic::error("wrong-type", node.span, message);
        if let Some((help, replacement)) = retyped(node, kind) {
            fault = fault.help(help).fix(node.span, replacement);
        }
        if matches!(kind, Kind::Integer { .. }) && matches!(node.value, Value::Float(_)) {
            fault = fault.help("counts are integers; in a template, `//` divides without a rest");
        }
        self.push(fault);
    }

    fn out_of_range(&mut self, key: &str, node: &Node, range: String) {
        let message = format!("{} must be {range}", called(key));
        self.push(Diagnostic::error("out-of-range", node.span, message));
    }

    fn bool(&mut self, key: &str, node: &Node) {
        if node.bool().is_none() {
            self.wrong_type(key, node, &Kind::Bool);
        }
    }

    fn integer(&mut self, key: &str, node: &Node, min: i64, max: i64) {
        match node.integer() {
            None => self.wrong_type(key, node, &Kind::Integer { min, max }),
            Some(number) if (min..=max).contains(&number) => {}
            Some(_) => self.out_of_range(key, node, integer_range(min, max)),
        }
    }

    fn number(&mut self, key: &str, node: &Node, min: f64, max: f64) {
        match node.number() {
            None => self.wrong_type(key, node, &Kind::Number { min, max }),
            Some(number) if (min..=max).contains(&number) => {}
            Some(_) => self.out_of_range(key, node, number_range(min, max)),
        }
    }

    fn text(&mut self, key: &str, node: &Node, kind: &Kind) {
        match node.string() {
            None => self.wrong_type(key, node, kind),
            Some("") if matches!(kind, Kind::Path) => {
                let message = format!("{} must name a file", called(key));
                self.push(Diagnostic::error("empty", node.span, message));
            }
            Some(_) => {}
        }
    }

    fn duration(&mut self, key: &str, node: &Node, zero: bool) {
        let kind = Kind::Duration { zero };
        let Some(text) = self.text_with_unit(key, node, &kind) else {
            return;
        };
        match units::parse_duration(text) {
            Err(error) => self.bad_unit(key, node, text, error, units_help::duration(text)),
            Ok(duration) if duration.is_zero() && !zero => self.zero(key, node),
            Ok(_) => {}
        }
    }

    fn size(&mut self, key: &str, node: &Node, zero: bool) {
        if let Some(bytes) = node.integer() {
            match bytes {
                0 if !zero => self.zero(key, node),
                _ if bytes < 0 => self.out_of_range(key, node, "at least 0 bytes".to_owned()),
                _ => {}
            }
            return;
        }
        let Some(text) = node.string() else {
            return self.wrong_type(key, node, &Kind::Size { zero });
        };
        match units::parse_size(text) {
            Err(error) => self.bad_unit(key, node, text, error, units_help::size(text)),
            Ok(0) if !zero => self.zero(key, node),
            Ok(_) => {}
        }
    }

    fn rate(&mut self, key: &str, node: &Node) {
        let Some(text) = self.text_with_unit(key, node, &Kind::Rate) else {
            return;
        };
        match units::parse_rate(text) {
            Err(error) => self.bad_unit(key, node, text, error, units_help::rate(text)),
            Ok(0.0) => self.zero(key, node),
            Ok(_) => {}
        }
    }

    /// The string of a duration or rate; a bare number is one whose unit is missing.
    fn text_with_unit<'n>(&mut self, key: &str, node: &'n Node, kind: &Kind) -> Option<&'n str> {
        if let Some(number) = node.number() {
            let (unit, what) = match kind {
                Kind::Rate => ("/s", "a rate"),
                _ => ("s", "a duration"),
            };
            let message = format!("{} is {what} and needs its unit", called(key));
            let right = format!("\"{number}{unit}\"");
            let fault = Diagnostic::error("missing-unit", node.span, message);
            self.push(
                fault
                    .help(format!("for instance {right}"))
                    .fix(node.span, right),
            );
            return None;
        }
        if node.string().is_none() {
            self.wrong_type(key, node, kind);
        }
        node.string()
    }

    fn bad_unit(
        &mut self,
        key: &str,
        node: &Node,
        text: &str,
        error: String,
        right: Option<String>,
    ) {
        let code = match text
            .trim()
            .trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '_')
        {
            "" => "missing-unit",
            _ => "bad-unit",
        };
        let message = format!("{}: {error}", called(key));
        let mut fault = Diagnostic::error(code, node.span, message);
        if let Some(right) = right {
            fault = fault
                .help(format!("did you mean `{right}`?"))
                .fix(node.span, format!("\"{right}\""));
        }
        self.push(fault);
    }

    fn zero(&mut self, key: &str, node: &Node) {
        self.out_of_range(
            key,
            node,
            "more than zero, else nothing would happen".to_owned(),
        );
    }

    fn choice(&mut self, key: &str, node: &Node, choices: &[&'static str]) {
        let Some(text) = node.string() else {
            let message = format!(
                "{} must be one of {}, not {}",
                called(key),
                list_of(choices.iter().copied()),
                node.kind()
            );
            return self.push(Diagnostic::error("wrong-type", node.span, message));
        };
        if choices.contains(&text) {
            return;
        }
        let message = format!(
            "`{text}` is no {}; it is one of {}",
            bare(key),
            list_of(choices.iter().copied())
        );
        let mut fault = Diagnostic::error("unknown-choice", node.span, message);
        if let Some(near) = did_you_mean(text, choices.iter().copied()) {
            fault = fault
                .help(format!("did you mean `{near}`?"))
                .fix(node.span, format!("\"{near}\""));
        }
        self.push(fault);
    }

    fn name(&mut self, key: &str, node: &Node, names: NameKind) {
        let Some(text) = node.string() else {
            return self.wrong_type(key, node, &Kind::Name(names));
        };
        if node.is_template() {
            let message = format!("{} is a name, which cannot be a template", called(key));
            return self.push(Diagnostic::error("bad-name", node.span, message));
        }
        if let Some(fault) = name_fault(text, node.span, names, true) {
            self.push(fault);
        }
    }

    fn regex(&mut self, key: &str, node: &Node) {
        let Some(text) = node.string() else {
            return self.wrong_type(key, node, &Kind::Text);
        };
        if let Err(error) = regex::Regex::new(text) {
            let reason = error.to_string();
            let reason = reason.lines().last().unwrap_or("").trim();
            let reason = reason.strip_prefix("error: ").unwrap_or(reason);
            let message = format!("{} is no regular expression: {reason}", called(key));
            self.push(Diagnostic::error("bad-regex", node.span, message));
        }
    }

    fn expression(&mut self, key: &str, node: &Node) {
        let Some(text) = node.string() else {
            return self.wrong_type(key, node, &Kind::Expression);
        };
        if is_whole_expression(text) {
            return;
        }
        let message = format!("{} must be one whole `{{{{ expression }}}}`", called(key));
        let mut fault = Diagnostic::error("not-an-expression", node.span, message);
        if !node.is_template() && !text.trim().is_empty() {
            let right = format!("\"{{{{ {} }}}}\"", text.trim());
            fault = fault.help("put it into braces").fix(node.span, right);
        }
        self.push(fault);
    }

    fn list(&mut self, place: &Place, key: &str, node: &Node, element: &Kind) {
        let Some(items) = node.array() else {
            return self.no_list(place, key, node, element);
        };
        for item in items {
            match (element, item.table()) {
                (Kind::Table(rows), Some(table)) => {
                    self.table(&place.list(key), table, item.span, rows);
                }
                _ => self.value(place, key, item, element),
            }
        }
    }

    fn no_list(&mut self, place: &Place, key: &str, node: &Node, element: &Kind) {
        if !matches!(element, Kind::Table(_)) || node.table().is_none() {
            return self.wrong_type(key, node, &Kind::List(&Kind::Any));
        }
        let message = format!("{} must be an array of tables, not one table", called(key));
        let help = format!("write {} above each of them", place.list(key));
        self.push(Diagnostic::error("wrong-type", node.span, message).help(help));
    }

    #[allow(clippy::too_many_arguments)]
    fn map(
        &mut self,
        place: &Place,
        key: &str,
        node: &Node,
        rows: &[Row],
        names: NameKind,
        other: &Kind,
        kind: &Kind,
    ) {
        let Some(table) = node.table() else {
            return self.wrong_type(key, node, kind);
        };
        let place = below(place, key);
        for entry in &table.entries {
            if let Some(row) = rows.iter().find(|row| row.name == entry.key) {
                self.value(&place, &entry.key, &entry.node, &row.kind);
                continue;
            }
            if let Some(fault) = name_fault(&entry.key, entry.key_span, names, false) {
                self.push(fault);
            }
            self.value(&place, &entry.key, &entry.node, other);
        }
    }

    fn table(&mut self, place: &Place, table: &Table, span: Span, rows: &[Row]) {
        let known: Vec<&str> = rows.iter().map(|row| row.name).collect();
        for entry in &table.entries {
            match rows.iter().find(|row| row.name == entry.key) {
                Some(row) => self.value(place, &entry.key, &entry.node, &row.kind),
                None => self.push(unknown_key(place, &entry.key, entry.key_span, &known)),
            }
        }
        for row in rows.iter().filter(|row| row.required) {
            // A misspelt key was told already, with the right one.
            let misspelt = |key: &str| {
                !known.contains(&key) && did_you_mean(key, known.iter().copied()) == Some(row.name)
            };
            if table.get(row.name).is_none() && !table.keys().any(misspelt) {
                let message = format!("{place} needs `{}`", row.name);
                let fault = Diagnostic::error("missing-key", span, message);
                self.push(fault.help(format!("{}: {}", row.name, row.doc)));
            }
        }
    }

    fn one_of(&mut self, place: &Place, key: &str, node: &Node, kinds: &[Kind], whole: &Kind) {
        let fitting: Vec<&Kind> = kinds.iter().filter(|kind| fits(kind, node)).collect();
        if fitting.is_empty() {
            return self.wrong_type(key, node, whole);
        }
        let mut first: Option<Diagnostics> = None;
        for kind in order_by_keys(&fitting, node) {
            let mut faults = Diagnostics::default();
            let mut checker = Checker {
                templates: self.templates,
                diagnostics: &mut faults,
            };
            checker.value(place, key, node, kind);
            if faults.is_empty() {
                return;
            }
            first.get_or_insert(faults);
        }
        if let (Some(text), [Kind::Choice([only])]) = (node.string(), fitting.as_slice()) {
            let message = format!(
                "{} must be `{only}` or {}, not `{text}`",
                called(key),
                expected(&kinds[kinds.len() - 1])
            );
            return self.push(Diagnostic::error("unknown-choice", node.span, message));
        }
        if let Some(fault) = no_key_fits(place, key, &fitting, node) {
            return self.push(fault);
        }
        self.diagnostics.extend(first.unwrap_or_default());
    }
}

/// Whether a template may stand for a value of this kind. Names and tables of fixed keys are read before anything is
/// evaluated, so they are written out.
pub fn takes_templates(kind: &Kind) -> bool {
    match kind {
        Kind::Name(_) | Kind::Expression | Kind::Table(_) | Kind::Open { .. } => false,
        Kind::List(element) => !matches!(element, Kind::Table(_) | Kind::Name(_)),
        Kind::Map(_, other) => matches!(other, Kind::Number { .. } | Kind::Text),
        Kind::OneOf(kinds) => kinds.iter().any(takes_templates),
        _ => true,
    }
}

/// Whether a template for this kind must give a list or table, which only one whole expression does.
fn wants_whole_expression(kind: &Kind) -> bool {
    match kind {
        Kind::List(_) | Kind::Map(..) => true,
        Kind::OneOf(kinds) => kinds
            .iter()
            .filter(|kind| takes_templates(kind))
            .all(wants_whole_expression),
        _ => false,
    }
}

/// The place of a table that is the value of `key`.
fn below<'p>(place: &'p Place<'p>, key: &'p str) -> Place<'p> {
    match key {
        "" => *place,
        _ => place.table(key),
    }
}

/// Alternatives with more of the table's keys first.
fn order_by_keys<'k>(kinds: &[&'k Kind], node: &Node) -> Vec<&'k Kind> {
    let mut kinds = kinds.to_vec();
    kinds.sort_by_key(|kind| std::cmp::Reverse(matching_keys(kind, node)));
    kinds
}

fn matching_keys(kind: &Kind, node: &Node) -> usize {
    let (Kind::Table(rows), Some(table)) = (kind, node.table()) else {
        return 0;
    };
    rows.iter()
        .filter(|row| table.get(row.name).is_some())
        .count()
}

/// A table that has no key of any of several alternatives: the first key is the fault, all of theirs are meant.
fn no_key_fits(place: &Place, key: &str, kinds: &[&Kind], node: &Node) -> Option<Diagnostic> {
    let first = node.table()?.entries.first()?;
    if kinds.len() < 2 || kinds.iter().any(|kind| matching_keys(kind, node) > 0) {
        return None;
    }
    let mut known = Vec::new();
    for kind in kinds {
        if let Kind::Table(rows) = kind {
            known.extend(rows.iter().map(|row| row.name));
        }
    }
    known.dedup();
    Some(unknown_key(
        &below(place, key),
        &first.key,
        first.key_span,
        &known,
    ))
}

/// Whether a value is of the TOML type that the kind wants.
fn fits(kind: &Kind, node: &Node) -> bool {
    match kind {
        Kind::Any => true,
        Kind::Bool => node.bool().is_some(),
        Kind::Integer { .. } => node.integer().is_some(),
        Kind::Number { .. } => node.number().is_some(),
        Kind::Size { .. } => node.string().is_some() || node.integer().is_some(),
        Kind::List(_) => node.array().is_some(),
        Kind::Table(_) | Kind::Map(..) | Kind::Open { .. } => node.table().is_some(),
        Kind::OneOf(kinds) => kinds.iter().any(|kind| fits(kind, node)),
        _ => node.string().is_some(),
    }
}
