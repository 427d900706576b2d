//! Faults that no single row can show: names that clash, references to what is not there, keys that exclude each other,
//! a driver that cannot do what is asked. On the tree before templates, so only for what is written out; `plan` says the
//! same of what templates give.
//!
//! `names`, `targets`, `servers`, `phases`, `workload` each judge their part. All collect; none stops.

mod names;
mod phases;
mod servers;
mod targets;
mod workload;

pub use workload::{distribution_parameters, key_format_is_valid};

use super::read::Reader;
use super::tree::{Entry, Node, Table, Value};
use crate::diag::{Diagnostic, Diagnostics, SourceMap, Span, did_you_mean, there_are};
use crate::driver::spec::DriverSpec;

/// Judges a merged tree that is filled with the defaults.
pub fn validate(
    root: &Node,
    sources: &SourceMap,
    drivers: &[&'static DriverSpec],
    diagnostics: &mut Diagnostics,
) {
    let Some(top) = Reader::new(root) else {
        return;
    };
    let scenario = Context {
        top,
        sources,
        drivers,
    };
    no_template_in_schema(&scenario, diagnostics);
    names::validate(&scenario, diagnostics);
    servers::validate(&scenario, diagnostics);
    targets::validate(&scenario, diagnostics);
    workload::validate(&scenario, diagnostics);
    phases::validate(&scenario, diagnostics);
}

/// What every part looks things up in.
struct Context<'c> {
    top: Reader<'c>,
    sources: &'c SourceMap,
    drivers: &'c [&'static DriverSpec],
}

impl<'c> Context<'c> {
    /// Entries of a table of the top level; none where there is no such table.
    fn entries(&self, section: &str) -> &'c [Entry] {
        let table = self.top.node(section).and_then(Node::table);
        table.map_or(&[], |table| &table.entries)
    }

    fn names(&self, section: &str) -> Vec<&'c str> {
        let entries = self.entries(section).iter();
        entries.map(|entry| entry.key.as_str()).collect()
    }

    fn phases(&self) -> Vec<Reader<'c>> {
        self.top.tables("phases")
    }

    /// The axes of the sweep and of its cases: (name, place of the name).
    fn axes(&self) -> Vec<(&'c str, Span)> {
        let mut axes = Vec::new();
        for entry in self.entries("sweep") {
            match entry.key.as_str() {
                "exclude" => {}
                "cases" => axes.extend(case_axes(&entry.node)),
                name => axes.push((name, entry.key_span)),
            }
        }
        axes
    }

    fn driver(&self, name: &str) -> Option<&'static DriverSpec> {
        self.drivers.iter().copied().find(|spec| spec.name == name)
    }

    fn driver_names(&self) -> Vec<&'static str> {
        self.drivers.iter().map(|spec| spec.name).collect()
    }

    /// Targets that runs may have: those of the axis where it is written out, else all.
    fn used_targets(&self) -> Vec<&'c Entry> {
        let axis = self
            .top
            .table("sweep")
            .and_then(|sweep| sweep.list("target"));
        let names: Option<Vec<&str>> = axis.map(|list| list.iter().filter_map(literal).collect());
        let used = |entry: &&Entry| match &names {
            Some(names) => names.contains(&entry.key.as_str()),
            None => true,
        };
        self.entries("targets").iter().filter(used).collect()
    }
}

fn case_axes(cases: &Node) -> Vec<(&str, Span)> {
    let mut axes: Vec<(&str, Span)> = Vec::new();
    for table in cases.array().unwrap_or(&[]).iter().filter_map(Node::table) {
        for entry in &table.entries {
            if !axes.iter().any(|(name, _)| *name == entry.key) {
                axes.push((&entry.key, entry.key_span));
            }
        }
    }
    axes
}

/// A string that is no template.
fn literal(node: &Node) -> Option<&str> {
    node.string().filter(|_| !node.is_template())
}

/// Whether a template stands anywhere in a value.
fn holds_template(node: &Node) -> bool {
    match &node.value {
        Value::String(_) => node.is_template(),
        Value::Array(items) => items.iter().any(holds_template),
        Value::Table(Table { entries }) => entries.iter().any(|entry| holds_template(&entry.node)),
        _ => false,
    }
}

/// A name that refers to nothing: what it should be, the nearest, or all there are.
fn unknown(code: &'static str, what: &str, node: &Node, known: &[&str]) -> Diagnostic {
    let name = node.string().unwrap_or_default();
    let fault = Diagnostic::error(code, node.span, format!("there is no {what} `{name}`"));
    match did_you_mean(name, known.iter().copied()) {
        Some(near) => fault
            .help(format!("did you mean `{near}`?"))
            .fix(node.span, format!("\"{near}\"")),
        None if known.is_empty() => fault.help(format!("the scenario has no {what}")),
        None => fault.help(there_are(known.iter().copied())),
    }
}

fn no_template_in_schema(scenario: &Context, diagnostics: &mut Diagnostics) {
    if let Some(node) = scenario
        .top
        .node("schema")
        .filter(|node| node.is_template())
    {
        let message = "`schema` is the version of the language, which cannot be a template";
        diagnostics.push(
            Diagnostic::error("wrong-type", node.span, message)
                .help("write")
                .fix(node.span, "1"),
        );
    }
}
