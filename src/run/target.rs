//! From a target's plan to what its driver is opened on: options and operations rendered, endpoints read.

use crate::driver::spec::{DriverSpec, Endpoint, Options, Store, Transport};
use crate::driver::{CustomOperation, Target};
use crate::plan::{GroupPlan, OperationPlan, TargetPlan};
use crate::template::{RunContext, render_json};
use std::path::Path;
use std::time::Duration;

/// A target as one run uses it.
#[derive(Debug)]
pub struct Resolved {
    pub target: Target,
    /// (name, endpoints): the unnamed group has the empty name.
    groups: Vec<(String, Vec<Endpoint>)>,
}

/// Errors are sentences.
pub fn resolve(
    plan: &TargetPlan,
    spec: &'static DriverSpec,
    directory: &Path,
    context: &dyn RunContext,
) -> Result<Resolved, String> {
    let groups = endpoint_groups(plan, spec, directory, context)?;
    let target = Target {
        name: plan.name.clone(),
        endpoints: groups
            .iter()
            .flat_map(|(_, endpoints)| endpoints.clone())
            .collect(),
        options: options(plan, spec, context)?,
        operations: plan
            .operations
            .iter()
            .map(|operation| custom(operation, context))
            .collect::<Result<_, _>>()?,
        directory: directory.to_owned(),
        connect_timeout: Duration::from_nanos(plan.connect_timeout_ns),
    };
    Ok(Resolved { target, groups })
}

impl Resolved {
    /// The endpoints that a group of threads uses: those it names, else the unnamed ones, else all.
    pub fn endpoints_of(&self, group: &GroupPlan) -> Vec<Endpoint> {
        let named = self
            .groups
            .iter()
            .find(|(name, _)| *name == group.endpoints);
        match named {
            Some((_, endpoints)) => endpoints.clone(),
            None => self.target.endpoints.clone(),
        }
    }
}

fn options(
    plan: &TargetPlan,
    spec: &DriverSpec,
    context: &dyn RunContext,
) -> Result<Options, String> {
    let rendered = |(name, value): (&String, &serde_json::Value)| {
        let value =
            render_json(value, context).map_err(|fault| format!("option `{name}`: {fault}"))?;
        Ok((name.clone(), value))
    };
    let values = plan
        .options
        .iter()
        .map(rendered)
        .collect::<Result<_, String>>()?;
    Ok(Options::new(spec.options, values))
}

fn custom(
    plan: &OperationPlan,
    context: &dyn RunContext,
) -> Result<Option<CustomOperation>, String> {
    let rendered = render_json(&plan.table, context)
        .map_err(|fault| format!("operation `{}`: {fault}", plan.name))?;
    match rendered {
        serde_json::Value::Object(table) => Ok(Some(CustomOperation {
            name: plan.name.clone(),
            table,
        })),
        _ => Ok(None),
    }
}

fn endpoint_groups(
    plan: &TargetPlan,
    spec: &DriverSpec,
    directory: &Path,
    context: &dyn RunContext,
) -> Result<Vec<(String, Vec<Endpoint>)>, String> {
    let parse = match spec.store {
        Store::Server { parse, .. } => parse,
        Store::Embedded => return Ok(vec![(String::new(), vec![in_directory(directory)])]),
        Store::Nothing => return Ok(vec![(String::new(), vec![nothing()])]),
    };
    let read = |text: &crate::template::Text| {
        let rendered = text.render(context)?;
        parse(&rendered).map_err(|fault| format!("endpoint `{}`: {}", text.source(), fault.message))
    };
    let of_group = |group: &crate::plan::EndpointGroup| {
        let endpoints = group
            .endpoints
            .iter()
            .map(read)
            .collect::<Result<Vec<_>, String>>()?;
        Ok((group.name.clone(), endpoints))
    };
    plan.endpoints.iter().map(of_group).collect()
}

fn in_directory(directory: &Path) -> Endpoint {
    Endpoint {
        text: String::new(),
        label: "embedded".to_owned(),
        transport: Transport::Directory {
            path: directory.to_owned(),
        },
    }
}

fn nothing() -> Endpoint {
    Endpoint {
        text: String::new(),
        label: "none".to_owned(),
        transport: Transport::Nothing,
    }
}
