//! What the command line changes about a scenario: the same options for `scenario`, `check` and `plan`.

use crate::diag::{self, Diagnostics, SourceMap};
use crate::driver::spec::DriverSpec;
use crate::plan::{self, Made};
use crate::scenario::{self, Overrides, Scenario};
use std::io::IsTerminal;
use std::path::Path;

/// Flattened into the arguments of commands that read scenarios.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct OverrideArgs {
    /// Replace a var, or any key by its path: `operations=1000`, `runs.repeats=5`; may be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    pub set: Vec<String>,
    /// Only these runs: `target=redis,threads=1|4`, or a run's id as `plan --runs` prints it; may be given several times
    #[arg(long, value_name = "AXIS=VALUE,...")]
    pub only: Vec<String>,
    /// Merge the scenario's [quick] over it, to try it in seconds
    #[arg(long)]
    pub quick: bool,
    /// Add or replace a label: `kernel=6.12`
    #[arg(long, value_name = "NAME=VALUE")]
    pub label: Vec<String>,
    /// Take warnings, and programs of servers that are missing, for errors
    #[arg(long)]
    pub strict: bool,
}

/// A scenario with its plan.
pub struct Planned {
    pub scenario: Scenario,
    pub sources: SourceMap,
    pub made: Made,
    /// Warnings as drawn for people; empty where there are none.
    pub warnings: String,
}

impl OverrideArgs {
    pub fn overrides(&self) -> Overrides {
        Overrides {
            set: self.set.clone(),
            labels: self.label.clone(),
            quick: self.quick,
        }
    }

    /// As the command line said it, for the manifest.
    pub fn as_given(&self) -> Vec<String> {
        self.said(str::to_owned)
    }

    /// The same for a shell, to be said once more; empty, or it ends with a space.
    pub fn for_shell(&self) -> String {
        self.said(quoted)
            .iter()
            .map(|said| format!("{said} "))
            .collect()
    }

    fn said(&self, value: impl Fn(&str) -> String) -> Vec<String> {
        let each = |flag: &str, values: &[String]| {
            let said = values.iter().map(|text| format!("{flag} {}", value(text)));
            said.collect::<Vec<_>>()
        };
        let mut given = [
            each("--set", &self.set),
            each("--only", &self.only),
            each("--label", &self.label),
        ]
        .concat();
        given.extend(self.quick.then(|| "--quick".to_owned()));
        given.extend(self.strict.then(|| "--strict".to_owned()));
        given
    }

    /// Loads and plans a scenario. The error is every fault, drawn for people.
    pub fn plan(&self, path: &Path, drivers: &[&'static DriverSpec]) -> Result<Planned, String> {
        let color = std::io::stderr().is_terminal();
        let loaded = scenario::load(path, &self.overrides(), drivers);
        let mut diagnostics = loaded.diagnostics;
        let Some(scenario) = loaded.scenario else {
            return Err(diag::render(&loaded.sources, &diagnostics, color));
        };
        let made = match plan::make(&scenario.root, &loaded.sources, drivers, &self.only) {
            Ok(made) => made,
            Err(faults) => {
                diagnostics.extend(faults);
                return Err(diag::render(&loaded.sources, &diagnostics, color));
            }
        };
        diagnostics.extend(Diagnostics {
            list: made.warnings.clone(),
        });
        let drawn = match diagnostics.is_empty() {
            true => String::new(),
            false => diag::render(&loaded.sources, &diagnostics, color),
        };
        if self.strict && !diagnostics.is_empty() {
            return Err(format!("{drawn}warnings are errors under --strict\n"));
        }
        Ok(Planned {
            scenario,
            sources: loaded.sources,
            made,
            warnings: drawn,
        })
    }
}

/// As a shell reads it back.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "=._-/,".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_can_be_given_again() {
        let given = OverrideArgs {
            set: vec!["keys=100".into(), "note=it's".into()],
            only: vec!["target=a|b".into()],
            quick: true,
            ..OverrideArgs::default()
        };
        assert_eq!(
            given.for_shell(),
            "--set keys=100 --set 'note=it'\\''s' --only 'target=a|b' --quick "
        );
        assert_eq!(given.as_given()[2], "--only target=a|b");
        assert_eq!(OverrideArgs::default().for_shell(), "");
    }
}
