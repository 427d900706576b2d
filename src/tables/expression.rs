//! Expressions of tables: evaluated over a tree of names, with every way to fail made a sentence.
//!
//! Knows minijinja; nothing of runs.

use minijinja::{Environment, UndefinedBehavior};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// The value of `expression` (without its braces). A name that is not there, a division by zero and a value that is no
/// number where one is needed are errors.
pub fn evaluate(expression: &str, names: &Value) -> Result<Value, String> {
    let compiled = ENVIRONMENT
        .compile_expression(expression)
        .map_err(|error| sentence(&error))?;
    let value = compiled
        .eval(minijinja::value::Serde(names))
        .map_err(|error| sentence(&error))?;
    if value.is_undefined() {
        return Err("it names something that is not there".to_owned());
    }
    if f64::try_from(value.clone()).is_ok_and(|number| !number.is_finite()) {
        return Err("it divides by zero".to_owned());
    }
    serde_json::to_value(&value).map_err(|error| error.to_string())
}

/// A text with expressions in double braces, each replaced by its value.
pub fn render(text: &str, names: &Value) -> Result<String, String> {
    let names = minijinja::value::Serde(names);
    let rendered = ENVIRONMENT.render_str(text, names);
    rendered.map_err(|error| sentence(&error))
}

/// The names that an expression reads, with what follows their dots: `set.elapsed_seconds`.
pub fn paths(expression: &str) -> BTreeSet<String> {
    let compiled = ENVIRONMENT.compile_expression(expression);
    compiled
        .map(|expression| expression.undeclared_variables(true).into_iter().collect())
        .unwrap_or_default()
}

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment
});

fn sentence(error: &minijinja::Error) -> String {
    match error.detail() {
        Some(detail) if divides_by_zero(detail) => "it divides by zero".to_owned(),
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}

/// `unable to calculate 40 / 0`, as minijinja says it of integers.
fn divides_by_zero(detail: &str) -> bool {
    detail.contains("by zero")
        || detail.starts_with("unable to calculate")
            && [" / 0", " // 0", " % 0"]
                .iter()
                .any(|end| detail.trim_end_matches(".0").ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn integers_stay_integers_and_division_gives_numbers() {
        let names = json!({ "set": { "operations": 30, "passes": 4, "rate": 0.1 } });
        assert_eq!(
            evaluate("set.operations // set.passes", &names),
            Ok(json!(7))
        );
        assert_eq!(
            evaluate("set.operations / set.passes", &names),
            Ok(json!(7.5))
        );
        assert_eq!(evaluate("set.operations + 1", &names), Ok(json!(31)));
        assert_eq!(evaluate("[3 - 5, 0] | max", &names), Ok(json!(0)));
    }

    #[test]
    fn what_cannot_be_computed_is_an_error() {
        let names = json!({ "set": { "succeeded": 1, "zero": 0, "float": 0.0, "unknown": null } });
        for wrong in [
            "set.succeeded / set.zero",
            "set.succeeded / set.float",
            "set.succeeded // set.zero",
            "set.succeeded % set.zero",
        ] {
            let error = evaluate(wrong, &names).unwrap_err();
            assert!(error.contains("zero"), "{wrong}: {error}");
        }
        assert!(evaluate("get.succeeded", &names).is_err());
        assert!(evaluate("set.nothing", &names).is_err());
        assert!(evaluate("set.unknown + 1", &names).is_err());
        assert_eq!(evaluate("set.unknown", &names), Ok(Value::Null));
    }

    #[test]
    fn the_paths_of_an_expression_are_known() {
        let found = paths("(set.succeeded + steady.read.failed) / size");
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            ["set.succeeded", "size", "steady.read.failed"]
        );
    }
}
