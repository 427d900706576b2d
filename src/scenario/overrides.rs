//! What the command line changes of a scenario: `--set`, `--label`, `--quick`.
//!
//! Each argument becomes a source of its own, so that a message about its value points into it. A value is TOML if it
//! reads as such, else a string.

use super::parse;
use super::tree::{Entry, Node, Table, Value};
use crate::diag::{Diagnostic, Diagnostics, SourceMap, Span, did_you_mean, list_of, there_are};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// As given; stands in the manifest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Overrides {
    /// `name=value` or `path.to.key=value`.
    pub set: Vec<String>,
    /// `name=value`.
    pub labels: Vec<String>,
    pub quick: bool,
}

/// Applies `--set` and `--label`, in their order, after `[quick]`.
pub fn apply(
    root: &mut Node,
    overrides: &Overrides,
    sources: &mut SourceMap,
    diagnostics: &mut Diagnostics,
) {
    for argument in &overrides.set {
        let base = sources.add("--set", Path::new(""), argument.clone());
        if let Err(fault) = set(root, argument, base) {
            diagnostics.push(*fault);
        }
    }
    for argument in &overrides.labels {
        let base = sources.add("--label", Path::new(""), argument.clone());
        if let Err(fault) = label(root, argument, base) {
            diagnostics.push(*fault);
        }
    }
}

type Fault = Box<Diagnostic>;

fn fault(code: &'static str, span: Span, message: String) -> Diagnostic {
    Diagnostic::error(code, span, message)
}

/// One argument in its parts.
struct Argument<'a> {
    key: &'a str,
    key_span: Span,
    value: &'a str,
    value_base: u32,
}

fn split(argument: &str, base: u32) -> Result<Argument<'_>, Fault> {
    let at = |start: usize, end: usize| Span::new(base as usize + start, base as usize + end);
    match argument.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok(Argument {
            key: key.trim(),
            key_span: at(0, key.trim_end().len()),
            value,
            value_base: base + key.len() as u32 + 1,
        }),
        _ => Err(Box::new(
            fault(
                "bad-override",
                at(0, argument.len()),
                format!("`{argument}` has no `=`"),
            )
            .help("write `name=value`"),
        )),
    }
}

fn label(root: &mut Node, argument: &str, base: u32) -> Result<(), Fault> {
    let argument = split(argument, base)?;
    let value = Value::String(argument.value.to_owned());
    let labels = table_below(root, "labels", argument.key_span);
    if let Some(labels) = labels {
        labels.set(entry(
            argument.key,
            argument.key_span,
            node(&argument, value),
        ));
    }
    Ok(())
}

fn set(root: &mut Node, argument: &str, base: u32) -> Result<(), Fault> {
    let argument = split(argument, base)?;
    let value = match parse::value(argument.value.trim(), leading(&argument)) {
        Some(node) => node,
        None => node(&argument, Value::String(argument.value.to_owned())),
    };
    if !argument.key.contains('.') {
        return set_var(root, &argument, value);
    }
    set_path(root, &argument, value)
}

/// Where the value begins, blanks left out.
fn leading(argument: &Argument) -> u32 {
    let blanks = argument.value.len() - argument.value.trim_start().len();
    argument.value_base + blanks as u32
}

fn node(argument: &Argument, value: Value) -> Node {
    let start = argument.value_base as usize;
    Node {
        span: Span::new(start, start + argument.value.len()),
        value,
    }
}

fn entry(key: &str, key_span: Span, node: Node) -> Entry {
    Entry {
        key: key.to_owned(),
        key_span,
        node,
    }
}

fn set_var(root: &mut Node, argument: &Argument, value: Node) -> Result<(), Fault> {
    let vars = root
        .table()
        .and_then(|table| table.get("vars"))
        .and_then(Node::table);
    if vars.and_then(|vars| vars.get(argument.key)).is_none() {
        return Err(Box::new(unknown_var(root, argument)));
    }
    if let Some(vars) = table_below(root, "vars", argument.key_span) {
        vars.set(entry(argument.key, argument.key_span, value));
    }
    Ok(())
}

fn unknown_var(root: &Node, argument: &Argument) -> Diagnostic {
    let key = argument.key;
    let names = |section: &str| -> Vec<&str> {
        let table = root
            .table()
            .and_then(|table| table.get(section))
            .and_then(Node::table);
        table
            .map(|table| table.keys().collect())
            .unwrap_or_default()
    };
    let unknown = fault(
        "unknown-override",
        argument.key_span,
        format!("there is no var `{key}` to set"),
    );
    if names("sweep").contains(&key) {
        let help = format!(
            "`{key}` is an axis: `--set 'sweep.{key}=[{}]'`, or `--only {key}={0}`",
            argument.value
        );
        return unknown.help(help);
    }
    let vars = names("vars");
    match did_you_mean(key, vars.iter().copied()) {
        Some(near) => unknown
            .help(format!("did you mean `{near}`?"))
            .fix(argument.key_span, near),
        None if vars.is_empty() => {
            unknown.help("this scenario has no [vars]; `--set path.to.key=value` sets any key")
        }
        None => unknown.help(format!(
            "its vars are {}; `--set path.to.key=value` sets any key",
            list_of(vars)
        )),
    }
}

/// Sections where a name that is not there is a slip: nothing else would use it.
const NAMED: &[&str] = &["vars", "sweep", "servers", "targets", "operations"];

fn set_path(root: &mut Node, argument: &Argument, value: Node) -> Result<(), Fault> {
    let keys: Vec<&str> = argument.key.split('.').map(str::trim).collect();
    let mut here = root;
    let mut offset = 0;
    for (depth, key) in keys.iter().enumerate() {
        let start = argument.key_span.start as usize + offset;
        let span = Span::new(start, start + key.len());
        offset += key.len() + 1;
        let named = depth == 1 && NAMED.contains(&keys[0]);
        if depth + 1 == keys.len() {
            let table = here
                .table_mut()
                .ok_or_else(|| no_table(&keys[..depth], span))?;
            if named && table.get(key).is_none() {
                return Err(Box::new(unknown_name(table.keys(), key, span)));
            }
            table.set(entry(key, span, value));
            return Ok(());
        }
        here = descend(here, key, span, named, &keys[..depth])?;
    }
    Ok(())
}

fn descend<'n>(
    here: &'n mut Node,
    key: &str,
    span: Span,
    named: bool,
    path: &[&str],
) -> Result<&'n mut Node, Fault> {
    if here.array().is_some() {
        return element(here, key, span);
    }
    let table = here.table_mut().ok_or_else(|| no_table(path, span))?;
    if table.get(key).is_none() {
        if named {
            return Err(Box::new(unknown_name(table.keys(), key, span)));
        }
        let empty = Value::Table(Table::default());
        table.set(entry(key, span, Node { span, value: empty }));
    }
    Ok(table.get_mut(key).expect("there, or just added"))
}

/// An element of `[[phases]]` and its like, by its name.
fn element<'n>(here: &'n mut Node, name: &str, span: Span) -> Result<&'n mut Node, Fault> {
    let name_of = |node: &Node| {
        let name = node.table().and_then(|table| table.get("name"));
        name.and_then(Node::string).map(str::to_owned)
    };
    let items = here.array_mut().map(Vec::as_mut_slice).unwrap_or(&mut []);
    let names: Vec<String> = items.iter().filter_map(name_of).collect();
    match items
        .iter_mut()
        .find(|item| name_of(item).as_deref() == Some(name))
    {
        Some(item) => Ok(item),
        None => Err(Box::new(unknown_name(
            names.iter().map(String::as_str),
            name,
            span,
        ))),
    }
}

fn no_table(path: &[&str], span: Span) -> Fault {
    let message = format!(
        "`{}` is no table, so nothing below it can be set",
        path.join(".")
    );
    Box::new(fault("unknown-override", span, message))
}

fn unknown_name<'k>(known: impl Iterator<Item = &'k str>, key: &str, span: Span) -> Diagnostic {
    let known: Vec<&str> = known.collect();
    let unknown = fault(
        "unknown-override",
        span,
        format!("there is no `{key}` to set"),
    );
    match did_you_mean(key, known.iter().copied()) {
        Some(near) => unknown
            .help(format!("did you mean `{near}`?"))
            .fix(span, near),
        None => unknown.help(there_are(known)),
    }
}

/// A table of the top level, added where there is none; None where something else stands there.
fn table_below<'n>(root: &'n mut Node, key: &str, span: Span) -> Option<&'n mut Table> {
    let table = root.table_mut()?;
    if table.get(key).is_none() {
        let value = Value::Table(Table::default());
        table.set(entry(key, span, Node { span, value }));
    }
    table.get_mut(key)?.table_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[vars]\nn = 1\nname = 'x'\n[sweep]\nthreads = [1]\n[[phases]]\nname = 'load'\ntimeout = '1s'\n";

    fn applied(set: &[&str]) -> (Node, SourceMap, Diagnostics) {
        let mut sources = SourceMap::default();
        let base = sources.add("a.toml", Path::new(""), TEXT.to_owned());
        let mut diagnostics = Diagnostics::default();
        let mut root = parse::document(TEXT, base, &mut diagnostics).expect("valid");
        let overrides = Overrides {
            set: set.iter().map(|s| s.to_string()).collect(),
            ..Overrides::default()
        };
        apply(&mut root, &overrides, &mut sources, &mut diagnostics);
        (root, sources, diagnostics)
    }

    fn at<'n>(root: &'n Node, path: &[&str]) -> &'n Node {
        path.iter().fold(root, |node, key| match node.array() {
            Some(items) => &items[key.parse::<usize>().expect("a position")],
            None => node
                .table()
                .and_then(|table| table.get(key))
                .expect("there"),
        })
    }

    #[test]
    fn a_var_is_replaced_and_its_span_is_in_the_argument() {
        let (root, sources, diagnostics) = applied(&["n= 20_000", "name=plain words"]);
        assert!(diagnostics.is_empty());
        let n = at(&root, &["vars", "n"]);
        assert_eq!(n.integer(), Some(20_000));
        assert_eq!(sources.text(n.span), "20_000");
        assert_eq!(sources.find(n.span).map(|s| s.name.as_str()), Some("--set"));
        assert_eq!(at(&root, &["vars", "name"]).string(), Some("plain words"));
    }

    #[test]
    fn a_path_reaches_new_tables_and_phases_by_name() {
        let (root, _, diagnostics) = applied(&["runs.repeats=3", "phases.load.timeout=5s"]);
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        assert_eq!(at(&root, &["runs", "repeats"]).integer(), Some(3));
        assert_eq!(at(&root, &["phases", "0", "timeout"]).string(), Some("5s"));
    }

    #[test]
    fn what_is_not_there_is_refused_with_the_nearest() {
        let (_, sources, diagnostics) = applied(&[
            "nam=1",
            "threads=4",
            "phases.lood.timeout=1",
            "sweep.thread=[1]",
        ]);
        let found: Vec<_> = diagnostics
            .list
            .iter()
            .map(|d| (sources.text(d.span), d.help.as_str()))
            .collect();
        assert_eq!(found[0], ("nam", "did you mean `name`?"));
        assert!(found[1].1.contains("is an axis"));
        assert_eq!(found[2], ("lood", "did you mean `load`?"));
        assert_eq!(found[3], ("thread", "did you mean `threads`?"));
    }
}
