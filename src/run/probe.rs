//! What happens once, outside of any phase's time: operations that prepare and clean up, and the reading of probes.

use super::context::Context;
use super::fleet::{Fleet, statements};
use super::once::{group_workload, prepared};
use super::specs::texts;
use super::target::Resolved;
use crate::engine::entry::{DriverEntry, OpenDriver};
use crate::op::Operation;
use crate::plan::{PhasePlan, ProbePlan, Reading, TargetPlan};
use crate::template::Text;
use crate::workload::generator::Generator;
use crate::workload::spec::Stream;
use serde_json::{Value, json};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What a single operation or a probe needs to know of its run.
pub struct Single<'a, 'c> {
    pub target: &'a TargetPlan,
    pub resolved: &'a Resolved,
    pub driver: &'a dyn OpenDriver,
    pub drivers: &'a [DriverEntry],
    pub context: &'a Context<'c>,
    pub fleet: &'a Fleet,
    pub interrupted: &'a AtomicBool,
    pub seed: u64,
    pub repeat: u32,
}

impl Single<'_, '_> {
    /// Executes an operation once, with the keys and values of the phase's first group. Returns the first value of its
    /// answer.
    pub fn operation(
        &self,
        name: &str,
        phase: &PhasePlan,
        limit: Duration,
    ) -> Result<Option<String>, String> {
        let mut group = phase
            .groups
            .first()
            .cloned()
            .ok_or_else(|| format!("phase `{}` has no group", phase.name))?;
        group.mix.truncate(1);
        for entry in &mut group.mix {
            name.clone_into(&mut entry.operation);
        }
        group.verify = false;
        let workload = group_workload(self.target, phase, &group)?;
        let mut operation = Operation::default();
        let stream = Stream {
            seed: self.seed,
            repeat: self.repeat,
            phase: phase.ordinal,
            group: 0,
            warmup: false,
        };
        Generator::of(&prepared(self.target, &workload)?, stream).fill(0, &mut operation);
        let endpoints = self.resolved.endpoints_of(&group);
        self.driver
            .once(&endpoints, &operation, limit)
            .map_err(|failure| failure.message)
    }

    /// The value of a probe now.
    pub fn read(&self, probe: &ProbePlan, phase: Option<&PhasePlan>) -> Result<Value, String> {
        let limit = Duration::from_nanos(probe.timeout_ns);
        let text = match &probe.reading {
            Reading::Operation(name) => {
                let phase = phase.ok_or("an operation is read after a phase")?;
                let value = self.operation(name, phase, limit)?;
                value.ok_or_else(|| format!("operation `{name}` gave no value"))?
            }
            Reading::FileSize(path) => return self.file_size(path),
            Reading::Command(command) => {
                let argv = texts(command, self.context)?;
                self.fleet.command(&argv, limit, self.interrupted)?
            }
            Reading::Statement {
                driver,
                endpoint,
                statement,
            } => {
                let endpoint = endpoint.render(self.context)?;
                let statement = statement.render(self.context)?;
                statements(self.drivers, driver, &endpoint, &[statement], limit)?
            }
        };
        Ok(value(text.trim()))
    }

    fn file_size(&self, path: &Text) -> Result<Value, String> {
        let path = path.render(self.context)?;
        let metadata = std::fs::metadata(&path);
        let length = metadata.map_err(|error| format!("cannot look at {path}: {error}"))?;
        Ok(json!(length.len()))
    }
}

/// A text that reads as a number is one.
fn value(text: &str) -> Value {
    if let Ok(integer) = text.parse::<i64>() {
        return json!(integer);
    }
    let is_number = text.starts_with(|first: char| first.is_ascii_digit() || first == '-');
    match text.parse::<f64>() {
        Ok(number) if is_number && number.is_finite() => json!(number),
        _ => json!(text),
    }
}

/// How much a probe's value has grown across its phase.
pub fn difference(before: &Value, after: &Value) -> Result<Value, String> {
    match (before.as_i64(), after.as_i64()) {
        (Some(before), Some(after)) => Ok(json!(after - before)),
        _ => match (before.as_f64(), after.as_f64()) {
            (Some(before), Some(after)) => Ok(json!(after - before)),
            _ => Err(format!(
                "its difference is wanted, and it was {before} before and {after} after"
            )),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reads_as_a_number_is_one_and_nothing_else() {
        assert_eq!(value("42"), json!(42));
        assert_eq!(value("-7"), json!(-7));
        assert_eq!(value("1.5e3"), json!(1500.0));
        for text in ["", "1,000", "inf", "nan", "12 rows", "0x1f"] {
            assert_eq!(value(text), json!(text));
        }
    }

    #[test]
    fn a_difference_is_exact_where_both_are_whole() {
        assert_eq!(difference(&json!(10), &json!(12)), Ok(json!(2)));
        assert_eq!(difference(&json!(0.5), &json!(2)), Ok(json!(1.5)));
        assert!(difference(&json!("x"), &json!(2)).is_err());
    }
}
