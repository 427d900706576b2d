//! manifest.json: what a reader needs to believe the numbers and to repeat them. Secrets never stand in it.
//!
//! Only data, and how it is read; `run` fills in what it learns from servers, `host` what this machine is.

use super::host::Host;
use super::{ResultsError, layout};
use crate::clock;
use crate::plan::Plan;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;

/// Raised when a reader of the format before could not read it any more.
pub const MANIFEST_FORMAT: u32 = 1;

/// What a secret is replaced by.
const HIDDEN: &str = "***";

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Manifest {
    pub format: u32,
    pub scenario: ScenarioFacts,
    /// SHA-256, hex; `--resume` asks for the same.
    pub plan_hash: String,
    pub dbbench: Program,
    pub drivers: Vec<DriverFacts>,
    /// What the stores said of themselves, once per target.
    pub targets: Vec<TargetFacts>,
    /// Logs that were replayed, each different one once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub logs: Vec<LogFacts>,
    pub host: Host,
    /// The author's own notes.
    pub hardware: BTreeMap<String, Value>,
    pub labels: BTreeMap<String, Value>,
    /// `--set`, `--only`, `--quick` and their like, as given.
    pub overrides: Vec<String>,
    /// Variables of the environment that templates asked for by `env`, with their values.
    pub environment: BTreeMap<String, String>,
    /// Warnings and remarks.
    pub notes: Vec<String>,
    /// RFC 3339, UTC.
    pub started_at: String,
    pub resumed_at: Vec<String>,
    /// Empty while it runs, and for ever after a kill.
    pub ended_at: String,
    pub exit_code: Option<i32>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ScenarioFacts {
    pub name: String,
    pub title: String,
    pub description: String,
    pub source: String,
    /// The file as it was, and those it extends, in the order of merging.
    pub files: Vec<SourceFile>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SourceFile {
    /// As the command line or `extends` says it.
    pub path: String,
    /// Of `text`, hex.
    pub sha256: String,
    pub text: String,
}

impl SourceFile {
    pub fn new(path: impl Into<String>, text: impl Into<String>) -> SourceFile {
        let text = text.into();
        let digest = Sha256::digest(text.as_bytes());
        SourceFile {
            path: path.into(),
            sha256: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
            text,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Program {
    pub version: String,
    /// Empty where the build did not say it.
    pub commit: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DriverFacts {
    pub name: String,
    /// The client crate and its version; empty where there is none.
    pub library: String,
    /// How sessions map to connections.
    pub sessions: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TargetFacts {
    pub target: String,
    pub driver: String,
    /// As the server reports it.
    pub server_version: String,
    /// Effective settings as the server reports them, in its order.
    pub settings: Vec<Setting>,
    /// The author's claim (`memory`, `os`, ...); empty where there is none.
    pub durability_claimed: String,
    /// What was found; empty where it could not be asked.
    pub durability_found: String,
    pub round_trips: Vec<RoundTrip>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Setting {
    pub name: String,
    pub value: String,
}

/// A log that phases replayed, and what its filter made of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LogFacts {
    /// As the scenario says it.
    pub file: String,
    pub bytes: u64,
    /// Of the whole file, hex.
    pub sha256: String,
    /// As told by its first lines, or said.
    pub format: String,
    /// Statements that are replayed.
    pub statements: u64,
    /// Those that the filter did not want.
    pub not_wanted: u64,
    /// Those that may write, which was not allowed.
    pub refused: u64,
    /// Places that were not understood.
    pub not_understood: u64,
}

/// One minimal request and its answer, the best of several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RoundTrip {
    pub endpoint: String,
    pub round_trip_us: f64,
}

impl Manifest {
    /// A log that many runs replay stands once.
    pub fn add_log(&mut self, log: LogFacts) {
        if !self.logs.contains(&log) {
            self.logs.push(log);
        }
    }

    /// What is known before anything runs.
    pub fn new(plan: &Plan, files: Vec<SourceFile>, started: Timestamp) -> Manifest {
        Manifest {
            format: MANIFEST_FORMAT,
            scenario: ScenarioFacts {
                name: plan.scenario.name.clone(),
                title: plan.scenario.title.clone(),
                description: plan.scenario.description.clone(),
                source: plan.scenario.source.clone(),
                files,
            },
            plan_hash: plan.hash.clone(),
            dbbench: Program {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                commit: option_env!("DBBENCH_COMMIT").unwrap_or_default().to_owned(),
            },
            host: Host::detect(),
            hardware: plan.scenario.hardware.clone(),
            labels: plan.labels.clone(),
            notes: plan.notes.clone(),
            started_at: clock::rfc3339_milliseconds(started),
            ..Manifest::default()
        }
    }

    pub fn read(path: &Path) -> Result<Manifest, ResultsError> {
        let text = std::fs::read(path).map_err(ResultsError::read(path))?;
        let manifest: Manifest = serde_json::from_slice(&text).map_err(|error| {
            ResultsError::refused(path, format!("is no {}: {error}", layout::MANIFEST))
        })?;
        if manifest.format > MANIFEST_FORMAT {
            return Err(ResultsError::refused(
                path,
                "was written by a newer dbbench, which has to read it",
            ));
        }
        Ok(manifest)
    }

    /// Adds what is known of a target, or replaces what was known before.
    pub fn set_target(&mut self, facts: TargetFacts) {
        match self.targets.iter_mut().find(|t| t.target == facts.target) {
            Some(known) => *known = facts,
            None => self.targets.push(facts),
        }
    }

    /// A warning or remark, once.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    pub(super) fn resumed(&mut self, now: Timestamp) {
        self.resumed_at.push(clock::rfc3339_milliseconds(now));
        self.ended_at.clear();
        self.exit_code = None;
    }

    pub(super) fn ended(&mut self, now: Timestamp, exit_code: i32) {
        self.ended_at = clock::rfc3339_milliseconds(now);
        self.exit_code = Some(exit_code);
    }

    /// The manifest with every secret replaced, wherever it got in.
    pub(super) fn without(&self, secrets: &[String]) -> Value {
        let mut value = serde_json::to_value(self).expect("a manifest is plain data");
        if !secrets.is_empty() {
            hide_in(&mut value, secrets);
        }
        value
    }
}

pub(super) fn hide(text: &str, secrets: &[String]) -> String {
    let hide_one = |text: String, secret: &String| text.replace(secret.as_str(), HIDDEN);
    secrets.iter().fold(text.to_owned(), hide_one)
}

fn hide_in(value: &mut Value, secrets: &[String]) {
    match value {
        Value::String(text) => *text = hide(text, secrets),
        Value::Array(items) => items.iter_mut().for_each(|item| hide_in(item, secrets)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|field| hide_in(field, secrets)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn the_schema_in_the_repository_is_that_of_the_code_and_accepts_a_manifest() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/manifest.schema.json");
        let text = crate::cli::schema::text_of::<Manifest>();
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let stored = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            stored == text,
            "{} differs; UPDATE=1 cargo test --lib manifest writes it anew",
            path.display()
        );
        let schema = serde_json::from_str(&text).unwrap();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let mut manifest = fixture::manifest(&fixture::plan());
        manifest.set_target(TargetFacts {
            durability_found: "os".into(),
            ..TargetFacts::default()
        });
        assert!(validator.is_valid(&serde_json::to_value(&manifest).unwrap()));
    }

    #[test]
    fn a_secret_is_hidden_wherever_it_got_in() {
        let mut manifest = fixture::manifest(&fixture::plan());
        manifest.note("login as root:hunter2 failed");
        manifest.environment.insert("X".into(), "hunter2".into());
        let text = manifest.without(&["hunter2".to_owned()]).to_string();
        assert!(!text.contains("hunter2"));
        assert!(text.contains("root:*** failed"));
    }

    #[test]
    fn a_manifest_of_an_older_version_that_lacks_fields_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("manifest.json");
        std::fs::write(&path, r#"{"format": 1, "plan_hash": "abc"}"#).unwrap();
        assert_eq!(Manifest::read(&path).unwrap().plan_hash, "abc");
        std::fs::write(&path, r#"{"format": 99}"#).unwrap();
        assert!(Manifest::read(&path).is_err());
    }
}
