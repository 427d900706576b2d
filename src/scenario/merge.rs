//! Joining what a scenario is made of: the files that it extends, `[quick]`, `--set` and `--label`, the built-in defaults.
//!
//! Tables merge, the base's keys first and in their order; everything else replaces, and so does as a whole what would
//! make no sense mixed: a `mix`, a `size`, a `distribution`, a server's `ready` and `after_ready`. Knows no meaning beyond
//! that; `check` and `validate` judge what comes out. `overrides` has `--set` and `--label`.

use super::tree::{Entry, Node, Table, Value};
use super::{parse, source};
use crate::diag::{Diagnostic, Diagnostics, SourceMap, Span};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The text of `dbbench defaults`.
pub const DEFAULTS: &str = include_str!("defaults.toml");

/// Stands for every name in the defaults' `[servers]` and `[targets]`.
const EVERY: &str = "*";
/// Files that one scenario may be made of, through all its `extends`.
const FILES: usize = 256;

/// Replaced as a whole, never mixed.
const WHOLE: &[&str] = &["mix", "size", "distribution", "ready", "after_ready"];
/// Where names are the user's own, so that `size` may be an axis.
const FREE_NAMES: &[&str] = &["vars", "sweep", "labels", "hardware", "operations"];

/// Merges `over` over `base`, both at the same place of a scenario (`path`: the keys that lead there; empty for a table
/// of a phase, too, whose keys have the same names).
pub fn overlay(base: Node, over: Node, path: &[&str]) -> Node {
    let whole =
        path.last().is_some_and(|key| WHOLE.contains(key)) && !FREE_NAMES.contains(&path[0]);
    match (base.value, over.value) {
        (Value::Table(base), Value::Table(over_table)) if !whole => Node {
            span: over.span,
            value: Value::Table(overlay_table(base, over_table, path)),
        },
        (_, value) => Node {
            span: over.span,
            value,
        },
    }
}

fn overlay_table(mut base: Table, over: Table, path: &[&str]) -> Table {
    for entry in over.entries {
        let Some(position) = base.entries.iter().position(|old| old.key == entry.key) else {
            base.entries.push(entry);
            continue;
        };
        let old = base.entries[position].clone();
        let mut deeper = path.to_vec();
        deeper.push(&old.key);
        base.entries[position] = Entry {
            key: entry.key,
            key_span: entry.key_span,
            node: overlay(old.node, entry.node, &deeper),
        };
    }
    base
}

/// Adds what `defaults` says and `node` does not.
fn fill(node: &mut Node, defaults: &Node, key: &str) {
    if WHOLE.contains(&key) {
        return;
    }
    let (Some(table), Some(defaults)) = (node.table_mut(), defaults.table()) else {
        return;
    };
    for entry in &defaults.entries {
        match table.get_mut(&entry.key) {
            Some(said) => fill(said, &entry.node, &entry.key),
            None => table.entries.push(entry.clone()),
        }
    }
}

/// Fills a whole scenario; its defaults' text becomes a source of its own.
pub fn fill_defaults(root: &mut Node, sources: &mut SourceMap) {
    let defaults = defaults(sources);
    let (Some(table), Some(defaults)) = (root.table_mut(), defaults.table()) else {
        return;
    };
    for entry in &defaults.entries {
        if entry.key == "phases" {
            fill_phases_of_datasets(table, entry);
        }
        match table.get_mut(&entry.key) {
            Some(said) => fill_section(said, entry),
            None if is_pattern(&entry.node) => {}
            None => table.entries.push(entry.clone()),
        }
    }
}

/// Phases of datasets are filled as those of the top level are.
fn fill_phases_of_datasets(root: &mut Table, phases: &Entry) {
    let datasets = root.get_mut("datasets").and_then(Node::table_mut);
    let entries = datasets.map(|table| &mut table.entries);
    for entry in entries.into_iter().flatten() {
        let said = entry.node.table_mut();
        if let Some(said) = said.and_then(|table| table.get_mut("phases")) {
            fill_section(said, phases);
        }
    }
}

/// The embedded defaults as a tree.
pub fn defaults(sources: &mut SourceMap) -> Node {
    let base = sources.add("<defaults>", Path::new(""), DEFAULTS.to_owned());
    parse::document(DEFAULTS, base, &mut Diagnostics::default())
        .expect("the embedded defaults are valid, as a test shows")
}

/// Whether a section of the defaults speaks of each entry of the user's section.
fn is_pattern(node: &Node) -> bool {
    node.array().is_some() || node.table().is_some_and(|table| table.get(EVERY).is_some())
}

fn fill_section(said: &mut Node, defaults: &Entry) {
    match &defaults.node.value {
        Value::Array(patterns) => {
            let items = said.array_mut().map(Vec::as_mut_slice).unwrap_or(&mut []);
            for (item, pattern) in items.iter_mut().zip(patterns.iter().cycle()) {
                fill(item, pattern, "");
            }
        }
        Value::Table(table) if table.get(EVERY).is_some() => {
            let every = table.get(EVERY).expect("seen in the guard");
            let entries = said.table_mut().map(|table| &mut table.entries);
            for entry in entries.into_iter().flatten() {
                fill(&mut entry.node, every, "");
            }
        }
        _ => fill(said, &defaults.node, &defaults.key),
    }
}

/// Reads a scenario with all that it extends, merged. What could not be read is left out and reported.
pub fn read_with_extends(
    path: &Path,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) -> Option<Node> {
    let mut reading = Reading {
        sources,
        diagnostics,
        open: Vec::new(),
        done: HashMap::new(),
    };
    reading.file(path, &shown(path), Span::NONE)
}

struct Reading<'r> {
    sources: &'r mut SourceMap,
    diagnostics: &'r mut Diagnostics,
    /// Files whose `extends` are being read, outermost first: (identity, as shown).
    open: Vec<(PathBuf, String)>,
    /// What each file gave, so that one named by several is read once.
    done: HashMap<PathBuf, Option<Node>>,
}

impl Reading<'_> {
    fn file(&mut self, path: &Path, shown: &str, said_at: Span) -> Option<Node> {
        let identity = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if let Some(circle) = self.circle(&identity, shown, said_at) {
            self.diagnostics.push(circle);
            return None;
        }
        if let Some(node) = self.done.get(&identity) {
            return node.clone();
        }
        if self.done.len() == FILES {
            let message = format!("a scenario of more than {FILES} files");
            self.diagnostics
                .push(Diagnostic::error("too-many-files", said_at, message));
            return None;
        }
        self.open.push((identity.clone(), shown.to_owned()));
        let node = self.read(path, shown, said_at);
        self.open.pop();
        self.done.insert(identity, node.clone());
        node
    }

    fn circle(&self, identity: &Path, shown: &str, said_at: Span) -> Option<Diagnostic> {
        let start = self.open.iter().position(|(open, _)| open == identity)?;
        let mut names: Vec<&str> = self.open[start..]
            .iter()
            .map(|(_, name)| name.as_str())
            .collect();
        names.push(shown);
        let message = format!("`extends` goes in a circle: {}", names.join(" -> "));
        Some(
            Diagnostic::error("circular-extends", said_at, message)
                .label("this one is already being read"),
        )
    }

    fn read(&mut self, path: &Path, shown: &str, said_at: Span) -> Option<Node> {
        let base = match source::read(path, shown, said_at, self.sources) {
            Ok(base) => base,
            Err(fault) => {
                self.diagnostics.push(*fault);
                return None;
            }
        };
        let text = self
            .sources
            .sources
            .last()
            .map(|source| source.text.clone());
        let mut node = parse::document(&text.unwrap_or_default(), base, self.diagnostics)?;
        let extends = node.table_mut().and_then(|table| table.remove("extends"));
        let Some(extends) = extends else {
            return Some(node);
        };
        let directory = path.parent().unwrap_or(Path::new(""));
        let mut merged: Option<Node> = None;
        for file in self.extended(&extends) {
            let said = file.string().unwrap_or_default();
            let below = directory.join(said);
            let name = clean(
                &Path::new(shown)
                    .parent()
                    .unwrap_or(Path::new(""))
                    .join(said),
            );
            let Some(base) = self.file(&below, &name, file.span) else {
                continue;
            };
            merged = Some(match merged {
                Some(before) => overlay(before, base, &[]),
                None => base,
            });
        }
        Some(match merged {
            Some(base) => overlay(base, node, &[]),
            None => node,
        })
    }

    /// The file names of an `extends`; what is none is reported.
    fn extended<'e>(&mut self, extends: &'e Entry) -> Vec<&'e Node> {
        let Some(files) = extends.node.array() else {
            let span = extends.node.span;
            let message = format!("`extends` is a list of files, not {}", extends.node.kind());
            let mut fault = Diagnostic::error("wrong-type", span, message);
            if let Some(file) = extends.node.string() {
                fault = fault
                    .help("put it into brackets")
                    .fix(span, format!("[\"{file}\"]"));
            }
            self.diagnostics.push(fault);
            return Vec::new();
        };
        let mut names = Vec::new();
        for file in files {
            match file.string() {
                Some(_) if file.is_template() => {
                    let message = "`extends` is read before templates are, so it holds none";
                    self.diagnostics.push(Diagnostic::error(
                        "template-in-extends",
                        file.span,
                        message,
                    ));
                }
                Some("") | None => {
                    let message = format!("`extends` lists files, not {}", file.kind());
                    self.diagnostics
                        .push(Diagnostic::error("wrong-type", file.span, message));
                }
                Some(_) => names.push(file),
            }
        }
        names
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// `a/../b` as `b`, by the text alone.
fn clean(path: &Path) -> String {
    use std::path::Component;
    let mut parts: Vec<Component> = Vec::new();
    for part in path.components() {
        match (part, parts.last()) {
            (Component::CurDir, _) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    shown(&parts.iter().collect::<PathBuf>())
}

/// Merges `[quick]` over the scenario, or only takes it away.
pub fn apply_quick(mut root: Node, quick: bool) -> Node {
    let entry = root.table_mut().and_then(|table| table.remove("quick"));
    match entry {
        Some(entry) if quick && entry.node.table().is_some() => {
            let span = root.span;
            let merged = overlay(root, entry.node, &[]);
            Node { span, ..merged }
        }
        _ => root,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Node {
        parse::document(text, 0, &mut Diagnostics::default()).expect("valid TOML")
    }

    fn keys(node: &Node) -> Vec<&str> {
        node.table().expect("a table").keys().collect()
    }

    #[test]
    fn tables_merge_with_the_keys_of_the_base_first() {
        let merged = overlay(
            parse("b = 1\na = { x = 1, y = 2 }"),
            parse("c = 3\na = { y = 5 }"),
            &[],
        );
        assert_eq!(keys(&merged), ["b", "a", "c"]);
        let a = merged
            .table()
            .and_then(|t| t.get("a"))
            .and_then(Node::table)
            .expect("a");
        assert_eq!(a.get("x").and_then(Node::integer), Some(1));
        assert_eq!(a.get("y").and_then(Node::integer), Some(5));
    }

    #[test]
    fn a_size_is_replaced_as_a_whole_but_an_axis_of_that_name_merges() {
        let base = parse(
            "[workload.values]\nsize = { from = 1, to = 2 }\n[sweep]\nsize = { from = 1, to = 2 }",
        );
        let over = parse("[workload.values]\nsize = { choices = [] }\n[sweep]\nsize = { to = 9 }");
        let merged = overlay(base, over, &[]);
        let at = |path: &[&str]| {
            let mut node = &merged;
            for key in path {
                node = node
                    .table()
                    .and_then(|table| table.get(key))
                    .expect("there");
            }
            keys(node).join(" ")
        };
        assert_eq!(at(&["workload", "values", "size"]), "choices");
        assert_eq!(at(&["sweep", "size"]), "from to");
    }

    #[test]
    fn defaults_fill_every_server_and_phase_but_never_replace() {
        let mut root = parse(
            "[servers.a]\nstop = { signal = 'INT' }\n[[phases]]\ntimeout = '1s'\n[[phases]]\n",
        );
        fill_defaults(&mut root, &mut SourceMap::default());
        let table = root.table().expect("a table");
        let server = table
            .get("servers")
            .and_then(Node::table)
            .and_then(|t| t.get("a"));
        let stop = server
            .and_then(Node::table)
            .and_then(|t| t.get("stop"))
            .and_then(Node::table);
        let stop = stop.expect("there");
        assert_eq!(stop.get("signal").and_then(Node::string), Some("INT"));
        assert_eq!(stop.get("timeout").and_then(Node::string), Some("10s"));
        let phases = table.get("phases").and_then(Node::array).expect("there");
        let timeout = |i: usize| {
            phases[i]
                .table()
                .and_then(|t| t.get("timeout"))
                .and_then(Node::string)
        };
        assert_eq!((timeout(0), timeout(1)), (Some("1s"), Some("10s")));
        assert!(table.get("targets").is_none());
    }

    #[test]
    fn files_are_merged_left_to_right_and_read_once() {
        let directory = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| {
            std::fs::write(directory.path().join(name), text).expect("written")
        };
        write("low.toml", "x = 1\ny = 1\nz = 1\n");
        write("left.toml", "extends = ['low.toml']\ny = 2\nz = 2\n");
        write("right.toml", "extends = ['low.toml']\nz = 3\n");
        write(
            "main.toml",
            "extends = ['left.toml', 'right.toml']\nw = 4\n",
        );
        let (mut sources, mut diagnostics) = (SourceMap::default(), Diagnostics::default());
        let node = read_with_extends(
            &directory.path().join("main.toml"),
            &mut sources,
            &mut diagnostics,
        );
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        let node = node.expect("read");
        let value = |key: &str| {
            node.table()
                .and_then(|t| t.get(key))
                .and_then(Node::integer)
        };
        // `right` says y = 1 through `low`, and stands to the right.
        assert_eq!(
            [value("x"), value("y"), value("z"), value("w")],
            [Some(1), Some(1), Some(3), Some(4)]
        );
        assert_eq!(sources.sources.len(), 4);
    }

    #[test]
    fn a_path_is_cleaned_by_its_text() {
        assert_eq!(clean(Path::new("a/b/../c.toml")), "a/c.toml");
        assert_eq!(clean(Path::new("../c.toml")), "../c.toml");
    }
}
