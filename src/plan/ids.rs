//! Names of runs: ids made of axis values.
//!
//! An id does not depend on the position of the run, so it stays when the sweep grows.

use super::{Axis, Plan, RunPlan};
use serde_json::Value;

impl Plan {
    /// `target=redis,threads=4#2`; without a sweep `#2`. A value with other characters than `[A-Za-z0-9._-]` is quoted.
    pub fn run_id(&self, run: &RunPlan) -> String {
        run_id(&self.axes, &run.point, run.repeat)
    }

    /// The value of an axis in a run.
    pub fn axis_value(&self, run: &RunPlan, axis: &str) -> Option<&Value> {
        let position = self.axes.iter().position(|other| other.name == axis)?;
        self.axes[position].values.get(run.point[position] as usize)
    }
}

/// See `Plan::run_id`.
pub fn run_id(axes: &[Axis], point: &[u32], repeat: u32) -> String {
    match axes.is_empty() {
        true => format!("#{repeat}"),
        false => format!("{}#{repeat}", point_text(axes, point, u64::MAX)),
    }
}

/// `target=redis,threads=4`, of the axes in `mask` (bit i for axis i).
pub fn point_text(axes: &[Axis], point: &[u32], mask: u64) -> String {
    let parts = axes.iter().zip(point).enumerate();
    parts
        .filter(|(position, _)| mask & (1 << position) != 0)
        .map(|(_, (axis, index))| {
            format!(
                "{}={}",
                axis.name,
                quoted(&value_text(&axis.values[*index as usize]))
            )
        })
        .collect::<Vec<_>>()
        .join(",")
}

/// An axis value as ids, CSV cells and `--only` write it, unquoted.
pub fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn quoted(text: &str) -> String {
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn axes() -> Vec<Axis> {
        let axis = |name: &str, values: Value| Axis {
            name: name.to_owned(),
            values: values.as_array().expect("a list").clone(),
        };
        vec![
            axis("target", json!(["redis", "a b", "a,b", "say \"x\""])),
            axis("threads", json!([4, 1.5, true])),
        ]
    }

    #[test]
    fn an_id_is_made_of_axis_values_and_quotes_what_is_not_plain() {
        assert_eq!(run_id(&axes(), &[0, 0], 2), "target=redis,threads=4#2");
        assert_eq!(run_id(&axes(), &[1, 1], 1), "target=\"a b\",threads=1.5#1");
        assert_eq!(
            run_id(&axes(), &[3, 2], 1),
            "target=\"say \\\"x\\\"\",threads=true#1"
        );
        assert_eq!(run_id(&[], &[], 3), "#3");
        assert_eq!(point_text(&axes(), &[0, 0], 0b10), "threads=4");
    }
}
