//! plan.json: what runs share is written once, and runs and shapes name it by number.
//!
//! `Plan` holds shared parts by `Arc`; written out run by run they would make a plan of 100,000 runs unreadable.

use super::{
    Axis, ClientPlan, ConditionPlan, DatasetPlan, Estimate, Outputs, PhasePlan, Plan, ProbePlan,
    RunPlan, ScenarioInfo, ServerPlan, Shape, TablePlan, TargetPlan,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

type Vars = BTreeMap<String, serde_json::Value>;

/// A plan as it is written.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct PlanFile {
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
    pub targets: Vec<Arc<TargetPlan>>,
    pub servers: Vec<Arc<ServerPlan>>,
    pub phases: Vec<Arc<PhasePlan>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub datasets: Vec<Arc<DatasetPlan>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<Arc<ProbePlan>>,
    /// Vars that tables read.
    pub vars: Vec<Arc<Vars>>,
    pub shapes: Vec<ShapeFile>,
    pub runs: Vec<RunPlan>,
    pub labels: Vars,
    pub tables: Vec<TablePlan>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ConditionPlan>,
    pub notes: Vec<String>,
}

/// What a run does: positions in the lists of the plan.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct ShapeFile {
    pub target: u32,
    /// In the order in which they are started.
    pub servers: Vec<u32>,
    pub phases: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<u32>,
    /// Phases and probes that `when` left out.
    pub left_out: Vec<String>,
    pub vars: u32,
    pub estimate: Estimate,
}

/// Numbers what is shared; the same allocation gets the same number.
struct Numbers<T> {
    list: Vec<Arc<T>>,
    known: HashMap<*const T, u32>,
}

impl<T> Numbers<T> {
    fn new() -> Numbers<T> {
        Numbers {
            list: Vec::new(),
            known: HashMap::new(),
        }
    }

    fn of(&mut self, part: &Arc<T>) -> u32 {
        *self.known.entry(Arc::as_ptr(part)).or_insert_with(|| {
            self.list.push(part.clone());
            (self.list.len() - 1) as u32
        })
    }
}

impl From<Plan> for PlanFile {
    fn from(plan: Plan) -> PlanFile {
        let mut targets = Numbers::new();
        let mut servers = Numbers::new();
        let mut phases = Numbers::new();
        let mut datasets = Numbers::new();
        let mut probes = Numbers::new();
        let mut vars = Numbers::new();
        let shapes = plan.shapes.iter().map(|shape| ShapeFile {
            target: targets.of(&shape.target),
            servers: shape
                .servers
                .iter()
                .map(|server| servers.of(server))
                .collect(),
            phases: shape.phases.iter().map(|phase| phases.of(phase)).collect(),
            dataset: shape.dataset.as_ref().map(|dataset| datasets.of(dataset)),
            probes: shape.probes.iter().map(|probe| probes.of(probe)).collect(),
            left_out: shape.left_out.clone(),
            vars: vars.of(&shape.vars),
            estimate: shape.estimate,
        });
        let shapes = shapes.collect();
        PlanFile {
            format: plan.format,
            hash: plan.hash,
            scenario: plan.scenario,
            axes: plan.axes,
            repeats: plan.repeats,
            seed: plan.seed,
            pause_ns: plan.pause_ns,
            run_timeout_ns: plan.run_timeout_ns,
            stop_on_failure: plan.stop_on_failure,
            client: plan.client,
            outputs: plan.outputs,
            targets: targets.list,
            servers: servers.list,
            phases: phases.list,
            datasets: datasets.list,
            probes: probes.list,
            vars: vars.list,
            shapes,
            runs: plan.runs,
            labels: plan.labels,
            tables: plan.tables,
            conditions: plan.conditions,
            notes: plan.notes,
        }
    }
}

impl TryFrom<PlanFile> for Plan {
    type Error = String;

    fn try_from(file: PlanFile) -> Result<Plan, String> {
        let shapes = file.shapes.iter().map(|shape| {
            Ok(Shape {
                target: part(&file.targets, shape.target)?,
                servers: parts(&file.servers, &shape.servers)?,
                phases: parts(&file.phases, &shape.phases)?,
                dataset: shape
                    .dataset
                    .map(|number| part(&file.datasets, number))
                    .transpose()?,
                probes: parts(&file.probes, &shape.probes)?,
                left_out: shape.left_out.clone(),
                vars: part(&file.vars, shape.vars)?,
                estimate: shape.estimate,
            })
        });
        let shapes: Vec<Shape> = shapes.collect::<Result<_, String>>()?;
        if file
            .runs
            .iter()
            .any(|run| run.shape as usize >= shapes.len() || run.point.len() != file.axes.len())
        {
            return Err("a run of this plan names a shape or an axis that is not there".to_owned());
        }
        Ok(Plan {
            format: file.format,
            hash: file.hash,
            scenario: file.scenario,
            axes: file.axes,
            repeats: file.repeats,
            seed: file.seed,
            pause_ns: file.pause_ns,
            run_timeout_ns: file.run_timeout_ns,
            stop_on_failure: file.stop_on_failure,
            client: file.client,
            outputs: file.outputs,
            shapes,
            runs: file.runs,
            labels: file.labels,
            tables: file.tables,
            conditions: file.conditions,
            notes: file.notes,
        })
    }
}

fn part<T>(list: &[Arc<T>], number: u32) -> Result<Arc<T>, String> {
    let found = list.get(number as usize).cloned();
    found.ok_or_else(|| format!("this plan has no part {number} that a shape names"))
}

fn parts<T>(list: &[Arc<T>], numbers: &[u32]) -> Result<Vec<Arc<T>>, String> {
    numbers.iter().map(|number| part(list, *number)).collect()
}

/// The JSON Schema (draft-07) of plan.json, as it is printed and stored.
pub fn schema_text() -> String {
    let settings = schemars::generate::SchemaSettings::draft07();
    let schema = settings.into_generator().into_root_schema_for::<Plan>();
    let text = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
    format!("{text}\n")
}
