//! A scenario from its file, or all that is wrong with it: reading, merging, checking, in one call.
//!
//! Gives the scenario or the diagnostics, never both (warnings stand beside a scenario). `plan` goes on with the tree.

use super::check::{Place, Templates, check, unknown_key};
use super::overrides::{self, Overrides};
use super::read::Reader;
use super::tree::Node;
use super::validate::validate;
use super::{merge, model};
use crate::diag::{Diagnostic, Diagnostics, SourceMap};
use crate::driver::spec::DriverSpec;
use crate::rows::Kind;
use std::path::Path;

/// What came of loading: the texts are there in any case, for `diag::render`.
#[derive(Debug)]
pub struct Loaded {
    pub sources: SourceMap,
    pub diagnostics: Diagnostics,
    /// None where there are errors.
    pub scenario: Option<Scenario>,
}

/// A scenario whose tree was checked: merged, overridden, filled with the defaults; `extends` and `quick` are gone.
/// Templates are as they stand, so `plan` checks again what it evaluates, with `Templates::None`.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// A table.
    pub root: Node,
    pub overrides: Overrides,
}

impl Scenario {
    /// The whole table.
    pub fn top(&self) -> Reader<'_> {
        Reader::new(&self.root).expect("the root of a document is a table")
    }

    /// A table of the top level, if it is there.
    pub fn section(&self, name: &str) -> Option<Reader<'_>> {
        self.top().table(name)
    }

    pub fn name(&self) -> &str {
        self.top().text("name").unwrap_or_default()
    }
}

/// Loads the scenario in a file, as the command line changes it. `drivers` are those of this build.
pub fn load(path: &Path, overrides: &Overrides, drivers: &[&'static DriverSpec]) -> Loaded {
    let mut sources = SourceMap::default();
    let mut diagnostics = Diagnostics::default();
    let raw = merge::read_with_extends(path, &mut sources, &mut diagnostics);
    let scenario = match raw {
        // With a file missing or unreadable, most of the rest would be its consequence.
        Some(raw) if !diagnostics.has_errors() => {
            finish(raw, overrides, drivers, &mut sources, &mut diagnostics)
        }
        _ => None,
    };
    Loaded {
        sources,
        diagnostics,
        scenario,
    }
}

fn finish(
    raw: Node,
    overrides: &Overrides,
    drivers: &[&'static DriverSpec],
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Option<Scenario> {
    check_quick(&raw, diagnostics);
    let other = merge::apply_quick(raw.clone(), !overrides.quick);
    let mut root = merge::apply_quick(raw, overrides.quick);
    overrides::apply(&mut root, overrides, sources, diagnostics);
    merge::fill_defaults(&mut root, sources);
    judge(&root, sources, drivers, diagnostics);
    // What is wrong with or without `--quick` is told in any case, once.
    if !diagnostics.has_errors() {
        let mut other = other;
        merge::fill_defaults(&mut other, sources);
        judge(&other, sources, drivers, diagnostics);
    }
    let overrides = overrides.clone();
    (!diagnostics.has_errors()).then_some(Scenario { root, overrides })
}

fn judge(
    root: &Node,
    sources: &SourceMap,
    drivers: &[&'static DriverSpec],
    diagnostics: &mut Diagnostics,
) {
    check(
        root,
        &Kind::Table(model::TOP),
        Templates::Allowed,
        diagnostics,
    );
    validate(root, sources, drivers, diagnostics);
}

/// Keys of `[quick]` itself; what they hold is checked merged.
fn check_quick(raw: &Node, diagnostics: &mut Diagnostics) {
    let Some(node) = raw.table().and_then(|table| table.get("quick")) else {
        return;
    };
    let Some(quick) = node.table() else {
        let message = format!("`quick` must be a table, not {}", node.kind());
        diagnostics.push(Diagnostic::error("wrong-type", node.span, message));
        return;
    };
    let known: Vec<&str> = model::TOP.iter().map(|row| row.name).collect();
    let known: Vec<&str> = known
        .into_iter()
        .filter(|key| !model::NOT_IN_QUICK.contains(key))
        .collect();
    for entry in &quick.entries {
        if !known.contains(&entry.key.as_str()) {
            let place = Place::TOP.table("quick");
            diagnostics.push(unknown_key(&place, &entry.key, entry.key_span, &known));
        }
    }
}
