//! Repeats as one value, and how far apart they were.

use crate::results::read::RepeatRule;
use serde_json::{Value, json};

/// A value over the repeats of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Combined {
    pub value: Value,
    pub min: Value,
    pub max: Value,
    /// Repeats that gave a value.
    pub count: usize,
}

/// Combines what the repeats gave. Texts that differ have no median: null, and the error says so.
pub fn combine(values: &[Value], rule: RepeatRule) -> Result<Combined, String> {
    let known: Vec<&Value> = values.iter().filter(|value| !value.is_null()).collect();
    let Some(first) = known.first() else {
        return Ok(Combined::default());
    };
    let mut numbers: Vec<&Value> = known.iter().copied().filter(|v| v.is_number()).collect();
    if numbers.len() < known.len() {
        if known.iter().any(|value| value != first) {
            return Err("it differs between the repeats and is no number".to_owned());
        }
        return Ok(Combined {
            value: (*first).clone(),
            count: known.len(),
            ..Combined::default()
        });
    }
    numbers.sort_by(|a, b| float(a).total_cmp(&float(b)));
    let (min, max) = (numbers[0].clone(), numbers[numbers.len() - 1].clone());
    let value = match rule {
        RepeatRule::Min => min.clone(),
        RepeatRule::Max => max.clone(),
        RepeatRule::Mean => mean(&numbers),
        RepeatRule::Median | RepeatRule::Merged | RepeatRule::All => median(&numbers),
    };
    Ok(Combined {
        value,
        min,
        max,
        count: numbers.len(),
    })
}

fn float(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// `sorted` is not empty.
fn median(sorted: &[&Value]) -> Value {
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => sorted[middle].clone(),
        _ => mean(&sorted[middle - 1..=middle]),
    }
}

/// A whole number where all are the same whole number.
fn mean(values: &[&Value]) -> Value {
    if values.iter().all(|value| *value == values[0]) {
        return values[0].clone();
    }
    let sum: f64 = values.iter().map(|value| float(value)).sum();
    json!(sum / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[i64], rule: RepeatRule) -> Value {
        let values: Vec<Value> = values.iter().map(|value| json!(value)).collect();
        combine(&values, rule).unwrap().value
    }

    #[test]
    fn rules_are_what_they_say() {
        assert_eq!(of(&[5, 1, 3], RepeatRule::Median), json!(3));
        assert_eq!(of(&[5, 1, 3, 4], RepeatRule::Median), json!(3.5));
        assert_eq!(of(&[4, 4], RepeatRule::Median), json!(4));
        assert_eq!(of(&[5, 1, 3, 4], RepeatRule::Mean), json!(3.25));
        assert_eq!(of(&[5, 1, 3], RepeatRule::Min), json!(1));
        assert_eq!(of(&[5, 1, 3], RepeatRule::Max), json!(5));
    }

    #[test]
    fn what_is_not_known_is_not_counted() {
        let combined = combine(&[json!(2), Value::Null, json!(1)], RepeatRule::Max).unwrap();
        assert_eq!(
            (combined.value, combined.min, combined.count),
            (json!(2), json!(1), 2)
        );
        let none = combine(&[Value::Null], RepeatRule::Median).unwrap();
        assert_eq!((none.value, none.count), (Value::Null, 0));
    }

    #[test]
    fn texts_must_agree() {
        let same = combine(&[json!("a"), json!("a")], RepeatRule::Median).unwrap();
        assert_eq!(same.value, json!("a"));
        assert!(combine(&[json!("a"), json!("b")], RepeatRule::Median).is_err());
    }
}
