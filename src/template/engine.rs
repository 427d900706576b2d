//! Evaluates templates with given names.
//!
//! Knows minijinja: undefined values are errors everywhere (also where minijinja is silent: the whole result of an
//! expression), and a division by zero is one. Who may read which name at which stage is the caller's to decide.

use super::scan::{find_word, scan, whole_expression};
use crate::diag::did_you_mean;
use minijinja::value::{Serde, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Expression, UndefinedBehavior};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::LazyLock;

/// Values for the names of a template.
pub type Names = BTreeMap<String, Value>;

/// Why a template has no value: a sentence, what to write instead (may be empty), where in the template.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub message: String,
    pub help: String,
    pub range: Option<Range<usize>>,
}

/// An environment without names.
pub(super) fn bare_environment<'a>() -> Environment<'a> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_debug(true);
    let syntax = minijinja::syntax::SyntaxConfig::builder()
        .keep_trailing_newline(true)
        .build()
        .expect("the default syntax is valid");
    environment.set_syntax(syntax);
    environment.add_function("kib", |count: f64| multiply(count, 1024.0));
    environment.add_function("mib", |count: f64| multiply(count, 1024.0 * 1024.0));
    environment
}

fn multiply(count: f64, factor: f64) -> Result<Value, Error> {
    let bytes = count * factor;
    if bytes.fract() != 0.0 || !(0.0..9e15).contains(&bytes) {
        return Err(invalid("this is no whole number of bytes"));
    }
    Ok(Value::from(bytes as i64))
}

pub(super) fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

/// The environment without names, made once: filling it costs more than most templates.
static BARE: LazyLock<Environment<'static>> = LazyLock::new(bare_environment);

pub(super) fn bare() -> &'static Environment<'static> {
    &BARE
}

/// Evaluates templates of the stages before a run; a whole expression is compiled once, however many runs evaluate it.
pub struct Engine {
    compiled: RefCell<HashMap<String, Expression<'static, 'static>>>,
}

impl Default for Engine {
    fn default() -> Self {
        Engine::new()
    }
}

impl Engine {
    pub fn new() -> Engine {
        Engine {
            compiled: RefCell::default(),
        }
    }

    /// The value of a template: typed where it is one whole expression, else a string. `directory` is what `file(..)`
    /// is relative to.
    pub fn evaluate(
        &self,
        text: &str,
        mut names: Names,
        directory: Option<PathBuf>,
    ) -> Result<Value, Fault> {
        if let Some(directory) = directory {
            names.insert("file".to_owned(), file_function(directory));
        }
        let Some(range) = whole_expression(text) else {
            return evaluate_in(bare(), text, names);
        };
        let expression = &text[range.clone()];
        let known = self.compiled.borrow().contains_key(expression);
        if !known {
            let compiled = bare()
                .compile_expression_owned(expression.to_owned())
                .map_err(|error| fault_of(&error, range.start, text))?;
            self.compiled
                .borrow_mut()
                .insert(expression.to_owned(), compiled);
        }
        let compiled = self.compiled.borrow();
        finish(
            compiled[expression].eval(Value::from_pairs(names)),
            range,
            text,
        )
    }
}

/// Evaluates in an environment that may have further functions.
pub(super) fn evaluate_in(
    environment: &Environment<'_>,
    text: &str,
    names: Names,
) -> Result<Value, Fault> {
    let context = Value::from_pairs(names);
    let Some(range) = whole_expression(text) else {
        return environment
            .render_str(text, context)
            .map(Value::from)
            .map_err(|error| fault_of(&error, 0, text));
    };
    let value = environment
        .compile_expression(&text[range.clone()])
        .and_then(|expression| expression.eval(context));
    finish(value, range, text)
}

fn finish(value: Result<Value, Error>, range: Range<usize>, text: &str) -> Result<Value, Fault> {
    let value = value.map_err(|error| fault_of(&error, range.start, text))?;
    defined(value, &text[range.clone()]).map_err(|message| Fault {
        message,
        help: String::new(),
        range: Some(range),
    })
}

/// minijinja gives undefined for an unknown name or field even where it is strict, and infinity where numbers end.
fn defined(value: Value, expression: &str) -> Result<Value, String> {
    if value.is_undefined() {
        return Err(format!("`{expression}` has no value"));
    }
    if value.kind() == ValueKind::Number
        && f64::try_from(value.clone()).is_ok_and(|f| !f.is_finite())
    {
        return Err(format!("`{expression}` is no finite number"));
    }
    Ok(value)
}

fn file_function(directory: PathBuf) -> Value {
    Value::from_function(move |path: String| {
        std::fs::read_to_string(directory.join(&path))
            .map(Value::from)
            .map_err(|error| invalid(format!("cannot read the file \"{path}\": {error}")))
    })
}

/// A sentence about a minijinja error, with its place in the whole template.
pub(super) fn fault_of(error: &Error, offset: usize, text: &str) -> Fault {
    let detail = error.detail().unwrap_or_default().to_owned();
    let place = error
        .range()
        .map(|range| range.start + offset..range.end + offset)
        .filter(|range| range.start < range.end && text.get(range.clone()).is_some());
    let what = place.clone().map(|range| text[range].to_owned());
    let (message, help) = sentence(error.kind(), &detail, what.as_deref());
    Fault {
        message,
        help,
        range: place,
    }
}

fn sentence(kind: ErrorKind, detail: &str, what: Option<&str>) -> (String, String) {
    let quoted = what.map_or_else(|| "this".to_owned(), |what| format!("`{what}`"));
    match kind {
        ErrorKind::SyntaxError => (
            format!(
                "this is no valid template: {}",
                detail.trim_start_matches("syntax error: ")
            ),
            "write `{{ expression }}`; braces that mean themselves stand in {% raw %}".to_owned(),
        ),
        ErrorKind::UndefinedError => (format!("{quoted} has no value"), String::new()),
        ErrorKind::UnknownFilter => (format!("unknown filter: {detail}"), String::new()),
        ErrorKind::UnknownFunction => (format!("unknown function: {detail}"), String::new()),
        ErrorKind::UnknownTest => (format!("unknown test: {detail}"), String::new()),
        ErrorKind::InvalidOperation if detail.starts_with("unable to calculate") => {
            let zero = ["/ 0", "// 0", "% 0", "/ 0.0", "// 0.0", "% 0.0"];
            let sum = detail.trim_start_matches("unable to calculate ");
            match zero.iter().any(|end| sum.ends_with(end)) {
                true => (format!("division by zero: {sum}"), String::new()),
                false => (format!("cannot calculate {sum}"), String::new()),
            }
        }
        _ if detail.is_empty() => (format!("cannot evaluate {quoted}: {kind}"), String::new()),
        _ => (detail.to_owned(), String::new()),
    }
}

/// The fault of a template that reads a name that is not there, with the one meant.
pub(super) fn unknown_name<'a>(
    name: &str,
    text: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Fault {
    Fault {
        message: format!("unknown name `{name}`"),
        help: did_you_mean(name, known)
            .map(|meant| format!("did you mean `{meant}`?"))
            .unwrap_or_default(),
        range: find_word(text, name),
    }
}

impl Engine {
    /// The fault of a template that reads a name which is not among `known`, if there is one.
    pub fn check_names<'a>(
        text: &str,
        known: impl IntoIterator<Item = &'a str> + Clone,
    ) -> Result<(), Fault> {
        for name in scan(text)?.names {
            if !known.clone().into_iter().any(|other| other == name) {
                return Err(unknown_name(&name, text, known));
            }
        }
        Ok(())
    }
}

/// A template value as JSON; a value that JSON does not know (a function, bytes) is an error.
pub fn to_json(value: &Value) -> Result<serde_json::Value, String> {
    serde_json::to_value(value).map_err(|error| format!("this value cannot be kept: {error}"))
}

/// A JSON value as templates see it.
pub fn from_json(value: &serde_json::Value) -> Value {
    Value::from(Serde(value))
}
