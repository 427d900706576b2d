//! What all extractions from an evaluated section share: checking it through rows, reporting a fault with its run,
//! texts that may wait for the run, hashes of files.

use super::coerce;
use super::scope::{At, Evaluation, Scope};
use crate::diag::{Diagnostic, Diagnostics, Span, did_you_mean};
use crate::driver::spec::DriverSpec;
use crate::rows::Row;
use crate::scenario::check::{Place, Templates, check_table};
use crate::scenario::read::{Reader, to_json};
use crate::scenario::tree::{Node, Value as TreeValue};
use crate::template::{Deferred, Text};
use sha2::{Digest, Sha256};
use std::cell::RefCell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// An evaluated section on its way into the plan.
pub struct Extract<'a, 's> {
    pub scope: &'a mut Scope<'s>,
    pub evaluation: &'a Evaluation,
    pub at: At<'a>,
    pub drivers: &'a [&'static DriverSpec],
    /// Strings of the run stage that the plan keeps as such.
    used: RefCell<HashSet<Span>>,
}

impl<'a, 's> Extract<'a, 's> {
    pub fn new(
        scope: &'a mut Scope<'s>,
        evaluation: &'a Evaluation,
        at: At<'a>,
        drivers: &'a [&'static DriverSpec],
    ) -> Extract<'a, 's> {
        Extract {
            scope,
            evaluation,
            at,
            drivers,
            used: RefCell::default(),
        }
    }

    /// Reports strings of the run stage where only plain ones can stand: the plan would hold placeholders. To be called
    /// when all that may wait for the run was taken out.
    pub fn all_used(&mut self) -> bool {
        let used = self.used.borrow();
        let deferred = self.evaluation.deferred.keys();
        let mut rest: Vec<Span> = deferred
            .filter(|span| !used.contains(span))
            .copied()
            .collect();
        drop(used);
        rest.sort();
        for span in &rest {
            let message =
                "this must be known before the run, and it asks for what only the run knows";
            self.report(Diagnostic::error("template-stage", *span, message));
        }
        rest.is_empty()
    }

    fn deferred(&self, span: Span) -> Option<&Deferred> {
        let found = self.evaluation.deferred.get(&span)?;
        self.used.borrow_mut().insert(span);
        Some(found)
    }

    /// The section as its rows want it, now that no template is left in it; None where it does not fit.
    pub fn fit(&mut self, place: &Place, node: &Node, rows: &[Row]) -> Option<Node> {
        let node = coerce::to_text(node, rows, &|span| self.scope.is_template(span));
        let mut diagnostics = Diagnostics::default();
        check_table(
            place,
            node.table()?,
            node.span,
            rows,
            Templates::None,
            &mut diagnostics,
        );
        let fits = !diagnostics.has_errors();
        for diagnostic in diagnostics.list {
            self.scope.report_here(diagnostic, self.at);
        }
        fits.then_some(node)
    }

    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.scope.report_here(diagnostic, self.at);
    }

    /// Reports, and gives None, so that it can end an extraction.
    pub fn refuse<T>(&mut self, diagnostic: Diagnostic) -> Option<T> {
        self.report(diagnostic);
        None
    }

    /// The text of a string, as the plan keeps it.
    pub fn text(&self, node: &Node) -> Text {
        match self.deferred(node.span) {
            Some(deferred) => Text::Deferred(deferred.clone()),
            None => Text::Plain(plain(node)),
        }
    }

    pub fn text_of(&self, reader: &Reader<'_>, key: &str) -> Option<Text> {
        reader.node(key).map(|node| self.text(node))
    }

    pub fn texts(&self, nodes: &[Node]) -> Vec<Text> {
        nodes.iter().map(|node| self.text(node)).collect()
    }

    pub fn texts_of(&self, reader: &Reader<'_>, key: &str) -> Vec<Text> {
        self.texts(reader.list(key).unwrap_or(&[]))
    }

    /// JSON in which strings of the run stage are `{"template", "values"}`.
    pub fn json(&self, node: &Node) -> serde_json::Value {
        if let Some(deferred) = self.deferred(node.span) {
            return serde_json::to_value(deferred).unwrap_or_default();
        }
        match &node.value {
            TreeValue::Array(items) => items.iter().map(|item| self.json(item)).collect(),
            TreeValue::Table(table) => {
                let entries = table.entries.iter();
                let entries = entries.map(|entry| (entry.key.clone(), self.json(&entry.node)));
                serde_json::Value::Object(entries.collect())
            }
            _ => to_json(node),
        }
    }

    pub fn driver(&mut self, name: &str, span: Span) -> Option<&'static DriverSpec> {
        if let Some(driver) = self.drivers.iter().find(|driver| driver.name == name) {
            return Some(driver);
        }
        let names: Vec<&str> = self.drivers.iter().map(|driver| driver.name).collect();
        let help = match did_you_mean(name, names.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("this build has: {}", names.join(", ")),
        };
        self.refuse(
            Diagnostic::error(
                "unknown-driver",
                span,
                format!("there is no driver `{name}`"),
            )
            .help(help),
        )
    }

    /// Where a path that the scenario says at `span` leads.
    pub fn resolve(&self, path: &str, span: Span) -> PathBuf {
        match self.scope.sources.find(span) {
            Some(source) => source.directory.join(path),
            None => PathBuf::from(path),
        }
    }

    /// SHA-256 of a file or folder that the scenario names.
    pub fn hash_of(&mut self, path: &str, span: Span) -> Option<(PathBuf, String)> {
        let absolute = self.resolve(path, span);
        match hash_path(&absolute) {
            Ok(hash) => Some((absolute, hash)),
            Err(error) => {
                let message = format!("cannot read \"{path}\": {error}");
                let help = "a path is relative to the file that says it";
                self.refuse(Diagnostic::error("cannot-read", span, message).help(help))
            }
        }
    }
}

/// A scalar as text.
pub fn plain(node: &Node) -> String {
    match &node.value {
        TreeValue::String(text) => text.clone(),
        _ => to_json(node).to_string(),
    }
}

/// Over the content of a file; over names and contents, sorted, of a folder.
pub fn hash_path(path: &Path) -> std::io::Result<String> {
    let mut hash = Sha256::new();
    match path.is_dir() {
        true => hash_folder(path, "", &mut hash)?,
        false => hash.update(std::fs::read(path)?),
    }
    Ok(hex(&hash.finalize()))
}

fn hash_folder(folder: &Path, below: &str, hash: &mut Sha256) -> std::io::Result<()> {
    let mut names: Vec<_> = std::fs::read_dir(folder)?
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect::<Result<_, _>>()?;
    names.sort();
    for name in names {
        let path = folder.join(&name);
        let shown = format!("{below}/{}", name.to_string_lossy());
        if path.is_dir() {
            hash_folder(&path, &shown, hash)?;
            continue;
        }
        let content = std::fs::read(&path)?;
        // Lengths keep names and contents apart.
        hash.update((shown.len() as u64).to_le_bytes());
        hash.update(shown.as_bytes());
        hash.update((content.len() as u64).to_le_bytes());
        hash.update(&content);
    }
    Ok(())
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
