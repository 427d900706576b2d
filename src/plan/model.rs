//! The plan as data: what `execute` needs and nothing else. Durations are nanoseconds (`_ns`), sizes bytes (`_bytes`).
//!
//! Read `expand` for how runs are made of axes. plan.json is this, printed.

use crate::driver::spec::{Durability, HeldIn};
use crate::template::Text;
use crate::workload::querylog::Format;
use crate::workload::querylog::spool::PerThread;
use crate::workload::spec::{KeySpec, MixEntry, ValueSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Raised whenever the same scenario would be planned otherwise than before; part of the hash.
pub const PLAN_FORMAT: u32 = 2;

/// Written and read as `file::PlanFile`, which says shared parts once.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(into = "super::file::PlanFile", try_from = "super::file::PlanFile")]
#[schemars(with = "super::file::PlanFile")]
pub struct Plan {
    pub format: u32,
    /// SHA-256, hex, over all of the plan but titles, hardware notes, labels and tables.
    pub hash: String,
    pub scenario: ScenarioInfo,
    pub axes: Vec<Axis>,
    pub repeats: u32,
    pub seed: u64,
    pub pause_ns: u64,
    /// Of one whole run; 0 = none.
    pub run_timeout_ns: u64,
    pub stop_on_failure: bool,
    pub client: ClientPlan,
    pub outputs: Outputs,
    /// What runs do: interned, each different one once.
    pub shapes: Vec<Shape>,
    /// In the order in which they run.
    pub runs: Vec<RunPlan>,
    pub labels: BTreeMap<String, serde_json::Value>,
    pub tables: Vec<TablePlan>,
    pub conditions: Vec<ConditionPlan>,
    /// Vars that no axis changes, for tables; those that do are in `shapes[].vars`.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioInfo {
    pub name: String,
    pub title: String,
    pub description: String,
    pub source: String,
    /// Free notes: string, number or list.
    pub hardware: BTreeMap<String, serde_json::Value>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Axis {
    pub name: String,
    /// In the order of the sweep; string, number, bool (a table or list is a value, too).
    pub values: Vec<serde_json::Value>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ClientPlan {
    /// None = auto.
    pub workers: Option<u32>,
    /// CPUs the workers are pinned to, in turn; empty = not pinned.
    pub cpus: Vec<u32>,
    pub window_ns: u64,
    /// Connections per second that a phase opens at most; 0 = no limit.
    pub connect_rate_per_second: f64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Outputs {
    pub basho_bench: bool,
}

/// One run: a point of the sweep and a repeat.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunPlan {
    /// Index into each axis's values.
    pub point: Box<[u32]>,
    /// From 1.
    pub repeat: u32,
    /// Index into `Plan::shapes`.
    pub shape: u32,
}

/// What a run does.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Shape {
    pub target: Arc<TargetPlan>,
    /// In the order in which they are started.
    pub servers: Vec<Arc<ServerPlan>>,
    pub phases: Vec<Arc<PhasePlan>>,
    /// What the run finds loaded.
    pub dataset: Option<Arc<DatasetPlan>>,
    /// In the order in which they are said.
    pub probes: Vec<Arc<ProbePlan>>,
    /// Phases, and probes as `probe.NAME`, that `when` left out: their cells are empty.
    pub left_out: Vec<String>,
    /// Vars as tables may read them.
    pub vars: Arc<BTreeMap<String, serde_json::Value>>,
    pub estimate: Estimate,
    /// Index into `Plan::shapes`: what runs instead where a program of `servers` is missing.
    pub stand_in: Option<u32>,
}

/// What a run will need, as far as the plan can know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Different keys stored.
    pub keys: u64,
    /// Keys and values of them, once.
    pub data_bytes: u64,
    /// With all copies, in memory.
    pub memory_bytes: u64,
    /// With all copies, on disk.
    pub disk_bytes: u64,
    /// Operations by count, of one pass.
    pub operations: u64,
    /// Of phases by duration and `at_least`: a lower bound.
    pub seconds: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetPlan {
    pub name: String,
    /// Shown instead of the name where not empty.
    pub label: String,
    pub driver: String,
    /// All endpoints; groups name subsets.
    pub endpoints: Vec<EndpointGroup>,
    pub options: BTreeMap<String, serde_json::Value>,
    /// The scenario's own operations in the order of `Verb::Custom(n)`, those of this driver.
    pub operations: Vec<OperationPlan>,
    pub stand_in_for: String,
    pub copies: u32,
    pub held_in: Option<HeldIn>,
    /// `unavailable = "fail"`.
    pub must_exist: bool,
    pub allow_reset: bool,
    pub connect_timeout_ns: u64,
    /// The author's claim.
    pub durability: Option<Durability>,
}

/// Endpoints under a name; unnamed ones have the empty name and every group of threads uses them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EndpointGroup {
    pub name: String,
    pub endpoints: Vec<Text>,
}

/// One operation of the user's own for the run's driver. Strings inside `table` may be `Deferred`, kept as the object
/// `{"template": .., "values": ..}`; `template::render_json` makes them plain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperationPlan {
    pub name: String,
    pub table: serde_json::Value,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerPlan {
    pub name: String,
    /// How many of it run; counted from 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub instances: u32,
    pub command: Vec<Text>,
    pub files: Vec<FilePlan>,
    pub setup: Vec<Vec<Text>>,
    pub after_ready: Option<AfterReady>,
    pub environment: BTreeMap<String, Text>,
    pub user: String,
    /// As taskset takes it: `0-1,3`; empty = not pinned.
    pub cpus: String,
    /// Relative to the server's directory; empty = that.
    pub working_directory: Option<Text>,
    pub ports: Vec<PortPlan>,
    /// Servers that must be ready first.
    pub after: Vec<String>,
    pub ready: Ready,
    pub ready_timeout_ns: u64,
    pub stop_signal: String,
    pub stop_timeout_ns: u64,
    pub restart: Restart,
    pub keep_data: bool,
    /// Of each instance, beside the data; 0 = not said.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub memory_bytes: u64,
    /// Programs and files it needs beside its command.
    pub requires: Vec<String>,
    /// The hint shown when one is missing.
    pub install: String,
    /// Limits of `setup` and `after_ready`.
    pub setup_timeout_ns: u64,
}

fn one() -> u32 {
    1
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_one(number: &u32) -> bool {
    *number == 1
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FilePlan {
    /// Relative to the server's directory.
    pub path: String,
    pub content: FileContent,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileContent {
    Text(Text),
    /// A file or folder copied as it is; `sha256` is over names and contents. `from` is as the scenario says it (hashed);
    /// `absolute` is where it was found (not hashed, not printed).
    Copy {
        from: String,
        sha256: String,
        #[serde(skip)]
        absolute: std::path::PathBuf,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PortPlan {
    pub name: String,
    /// That one, locked; else a free one.
    pub fixed: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AfterReady {
    Command(Vec<Text>),
    Statements {
        driver: String,
        endpoint: Text,
        statements: Vec<Text>,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ready {
    /// Port name.
    Tcp(String),
    /// Path on the port `main`: any status below 400.
    Http(String),
    /// Regular expression over the lines of the server's output.
    Log(String),
    Command(Vec<Text>),
    /// The target's driver says so.
    Driver,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Restart {
    Run,
    Target,
    Never,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhasePlan {
    pub name: String,
    /// Position in the scenario, from 0, phases left out by `when` counted: enters the seed of every operation.
    pub ordinal: u32,
    pub measured: bool,
    /// By duration; None = by the groups' counts.
    pub duration_ns: Option<u64>,
    pub warmup_ns: u64,
    /// Whole passes until then; 0 = one pass.
    pub at_least_ns: u64,
    /// A phase without `groups` has one with an empty name.
    pub groups: Vec<GroupPlan>,
    /// Operations executed once before, and once after.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prepare: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cleanup: Vec<String>,
    /// Of each of them.
    pub prepare_timeout_ns: u64,
    /// Servers that are started again before the phase, on their data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restart_servers: Vec<String>,
    /// In the order of their time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultPlan>,
}

/// What is done to an instance of a server while a phase is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FaultPlan {
    /// After the start of the measured time.
    pub at_ns: u64,
    pub server: String,
    /// None = the only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<u32>,
    pub action: FaultAction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FaultAction {
    /// KILL to it and all its descendants.
    Kill,
    /// Frozen, until it is told to go on or the run ends.
    Stop,
    Continue,
    /// Stopped as it asks to be, where it runs, and started again on its data.
    Restart,
}

impl FaultAction {
    pub fn parse(name: &str) -> Option<FaultAction> {
        use FaultAction::{Continue, Kill, Restart, Stop};
        let all = [Kill, Stop, Continue, Restart];
        all.into_iter().find(|action| action.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            FaultAction::Kill => "kill",
            FaultAction::Stop => "stop",
            FaultAction::Continue => "continue",
            FaultAction::Restart => "restart",
        }
    }
}

impl FaultPlan {
    /// `kill redis/2`.
    pub fn text(&self) -> String {
        let (action, server) = (self.action.name(), &self.server);
        match self.instance {
            Some(instance) => format!("{action} {server}/{instance}"),
            None => format!("{action} {server}"),
        }
    }
}

/// `[datasets.NAME]` as the runs of one target use it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DatasetPlan {
    pub name: String,
    /// Hex; runs with the same one share it.
    pub identity: String,
    /// Those of the run's servers that hold it, in the order of their start.
    pub servers: Vec<String>,
    pub phases: Vec<Arc<PhasePlan>>,
    /// Where filling it leaves files that are kept, by name.
    pub artifacts: BTreeMap<String, Text>,
    pub restore: Restore,
    pub keep: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Restore {
    Copy,
    InPlace,
}

/// `[[probes]]`: a single value that is read on the way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbePlan {
    pub name: String,
    pub moment: Moment,
    pub reading: Reading,
    pub unit: String,
    pub timeout_ns: u64,
}

/// When a probe is read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Moment {
    /// After this phase.
    After(String),
    /// Before and after this phase: the value is the difference.
    Across(String),
    /// When the run's servers have ended.
    Stop,
}

/// How a probe is read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// An operation on the run's target.
    Operation(String),
    FileSize(Text),
    Command(Vec<Text>),
    Statement {
        driver: String,
        endpoint: Text,
        statement: Text,
    },
}

/// `[[conditions]]`: what must hold of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConditionPlan {
    /// Expression without its braces.
    pub require: String,
    /// Template over the run's results; may be empty.
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GroupPlan {
    /// Empty where the phase has no groups of its own.
    pub name: String,
    /// At least one; a single `operation` is a mix of one.
    pub mix: Vec<MixEntry>,
    /// The statements of a log; the mix is then the one entry `statement`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayPlan>,
    pub threads: u32,
    /// Operations of one pass, of all threads; None = by the phase's duration.
    pub operations: Option<u64>,
    pub share: Share,
    pub timeout_ns: u64,
    /// Operations in a batch; 1 = none.
    pub pipeline: u32,
    pub verify: bool,
    /// Names an `EndpointGroup`; empty = the unnamed one.
    pub endpoints: String,
    pub keys: KeySpec,
    pub values: ValueSpec,
}

/// `replay`: a log, and which of its statements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayPlan {
    pub file: Text,
    /// Of the scenario file that says it; not hashed, not printed.
    #[serde(skip)]
    pub beside: std::path::PathBuf,
    pub format: Format,
    pub per_thread: PerThread,
    /// At the recorded times, so much faster; None: each when the one before has ended.
    pub speed: Option<f64>,
    pub only: Vec<String>,
    pub user: String,
    pub database: String,
    /// Regular expression; empty = all.
    #[serde(rename = "match")]
    pub matching: String,
    pub first: Option<u64>,
    /// A time, or `+` and a duration; empty = from the beginning.
    pub from: String,
    pub allow_writes: bool,
}

/// How a count is dealt to threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Share {
    /// floor(N/T) in a row, the first N mod T threads one more.
    Blocks,
    /// Every T-th.
    Interleaved,
}

/// `[[tables]]`, for `tables/`; not in the hash.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TablePlan {
    pub name: String,
    /// Expression without its braces; empty = all runs.
    pub where_: String,
    /// Axes, labels, or `window`.
    pub rows: Vec<String>,
    /// An axis, or empty.
    pub columns: String,
    /// (column, expression without its braces), in order.
    pub values: Vec<(String, String)>,
    pub repeats: RepeatRule,
    pub ratio_to: BTreeMap<String, serde_json::Value>,
    pub ratio_name: String,
    pub headers: BTreeMap<String, String>,
    pub show_invalid: bool,
    /// Width of a row of `window`; 0 = as recorded.
    pub every_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RepeatRule {
    Median,
    Mean,
    Min,
    Max,
    Merged,
    All,
}
