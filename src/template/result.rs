//! The result stage: one expression of a table over the results of a run.
//!
//! Knows that a result may be unknown (null): what reads one has no value, and the reason is a sentence for `notes`.

use super::engine::{bare, evaluate_in, from_json, to_json};
use super::scan::nested_names;
use crate::diag::did_you_mean;
use serde_json::Value;

/// Evaluates an expression (without its braces) over names that may be nested objects (`set.elapsed_seconds`).
/// An unknown name, an unknown (null) result, a division by zero and a result without a value are errors: sentences.
pub fn evaluate(expression: &str, names: Value) -> Result<Value, String> {
    let environment = bare();
    let paths = nested_names(expression).map_err(|fault| fault.message)?;
    if !chooses(expression) {
        refuse_unknown(&paths, &names)?;
    }
    let entries = match &names {
        Value::Object(entries) => entries.iter(),
        _ => return Err("the names of an expression are an object".to_owned()),
    };
    let context = entries.map(|(name, value)| (name.clone(), from_json(value)));
    let text = format!("{{{{ {expression} }}}}");
    let value = match evaluate_in(environment, &text, context.collect()) {
        Ok(value) => to_json(&value)?,
        Err(fault) => {
            refuse_unknown(&paths, &names)?;
            return Err(fault.message);
        }
    };
    match value {
        Value::Null => {
            refuse_unknown(&paths, &names)?;
            Err(format!("`{expression}` has no value"))
        }
        value => Ok(value),
    }
}

/// Whether an expression may leave a name unread.
fn chooses(expression: &str) -> bool {
    [" if ", " is ", "default", " or ", " and "]
        .iter()
        .any(|word| expression.contains(word))
}

fn refuse_unknown<'a>(
    paths: impl IntoIterator<Item = &'a String>,
    names: &Value,
) -> Result<(), String> {
    for path in paths {
        let mut value = names;
        for part in path.split('.') {
            match value {
                Value::Object(entries) => match entries.get(part) {
                    Some(inner) => value = inner,
                    None if is_function(part) => break,
                    None => return Err(no_such(path, part, entries.keys())),
                },
                // A method or field of a plain value is minijinja's to judge.
                _ => break,
            }
        }
        if value.is_null() {
            return Err(format!("`{path}` is not known"));
        }
    }
    Ok(())
}

fn is_function(name: &str) -> bool {
    super::FUNCTIONS.contains(&name) || ["dict", "debug", "namespace"].contains(&name)
}

fn no_such<'a>(path: &str, part: &str, known: impl Iterator<Item = &'a String>) -> String {
    match did_you_mean(part, known.map(String::as_str)) {
        Some(meant) => format!("there is no `{path}`; did you mean `{meant}`?"),
        None => format!("there is no `{path}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn names() -> Value {
        json!({
            "set": {"elapsed_seconds": 2.5, "operations": 30, "passes": 3, "p99": null},
            "threads": 4, "zero": 0, "target": "redis",
        })
    }

    #[test]
    fn numbers_are_calculated_from_nested_results() {
        assert_eq!(evaluate("set.elapsed_seconds * 2", names()), Ok(json!(5.0)));
        assert_eq!(
            evaluate("set.operations // set.passes", names()),
            Ok(json!(10))
        );
        assert_eq!(
            evaluate("threads <= 4 and target == 'redis'", names()),
            Ok(json!(true))
        );
    }

    #[test]
    fn an_unknown_name_or_column_is_named_with_the_one_meant() {
        let error = evaluate("set.elapsed_second", names()).unwrap_err();
        assert_eq!(
            error,
            "there is no `set.elapsed_second`; did you mean `elapsed_seconds`?"
        );
        assert!(
            evaluate("thread + 1", names())
                .unwrap_err()
                .contains("`threads`")
        );
    }

    #[test]
    fn a_result_that_is_not_known_gives_no_number() {
        let error = evaluate("set.p99 / 2", names()).unwrap_err();
        assert_eq!(error, "`set.p99` is not known");
        assert_eq!(evaluate("set.p99", names()).unwrap_err(), error);
        assert_eq!(
            evaluate("0 if set.p99 is none else set.p99", names()),
            Ok(json!(0))
        );
    }

    #[test]
    fn a_division_by_zero_is_said() {
        for expression in ["threads / zero", "threads // zero", "threads % zero"] {
            let error = evaluate(expression, names()).unwrap_err();
            assert!(error.starts_with("division by zero"), "{error}");
        }
    }

    #[test]
    fn a_fault_of_syntax_is_an_error() {
        assert!(evaluate("threads +", names()).is_err());
    }
}
