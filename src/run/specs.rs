//! From a server's plan to the plain specification that the server module starts: every string rendered, every path known.

use super::context::{Context, Place, address};
use crate::plan::{FileContent, FilePlan, Ready, ServerPlan};
use crate::server::{self, FileSpec, MissingProgram, ReadySpec, ServerSpec, StopSignal};
use crate::template::{RunContext, Text};
use crate::units::parse_cpus;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// One instance of a server; its log goes into the folder `logs`. Errors are sentences that name the server.
pub fn server_spec(
    plan: &ServerPlan,
    instance: u32,
    place: &Place,
    context: &mut Context<'_>,
    logs: &Path,
) -> Result<ServerSpec, String> {
    context.enter(&plan.name, instance);
    let directory = place.directory(instance);
    let context = &*context;
    let named = |fault: String| format!("server `{}`: {fault}", plan.name);
    Ok(ServerSpec {
        name: plan.name.clone(),
        instance,
        instances: plan.instances,
        command: texts(&plan.command, context).map_err(named)?,
        files: plan
            .files
            .iter()
            .map(|file| file_spec(file, context))
            .collect::<Result<_, _>>()
            .map_err(named)?,
        setup: plan
            .setup
            .iter()
            .map(|command| texts(command, context))
            .collect::<Result<_, _>>()
            .map_err(named)?,
        environment: environment(plan, directory, context).map_err(named)?,
        user: Some(plan.user.clone()).filter(|user| !user.is_empty()),
        cpus: cpus(plan).map_err(named)?,
        working_directory: plan
            .working_directory
            .as_ref()
            .map(|text| text.render(context).map(|path| directory.join(path)))
            .transpose()
            .map_err(named)?,
        directory: directory.to_owned(),
        log: logs.join(log_name(plan, instance)),
        ready: ready(&plan.ready, instance, place, context).map_err(named)?,
        ready_timeout: Duration::from_nanos(plan.ready_timeout_ns),
        setup_timeout: Duration::from_nanos(plan.setup_timeout_ns),
        stop_signal: StopSignal::parse(&plan.stop_signal).map_err(named)?,
        stop_timeout: Duration::from_nanos(plan.stop_timeout_ns),
        install: plan.install.clone(),
        requires: plan.requires.clone(),
    })
}

/// `redis.log`; `redis.2.log` where there are several. No server's name has a dot.
fn log_name(plan: &ServerPlan, instance: u32) -> String {
    match plan.instances {
        1 => format!("{}.log", plan.name),
        _ => format!("{}.{instance}.log", plan.name),
    }
}

/// The first program that a server of these needs and that is not installed; known before anything starts.
pub fn missing_program(servers: &[Arc<ServerPlan>]) -> Option<MissingProgram> {
    let places: BTreeMap<String, Place> = servers
        .iter()
        .map(|plan| (plan.name.clone(), nowhere(plan)))
        .collect();
    let mut context = Context::new(places, Path::new("/"));
    servers.iter().find_map(|plan| {
        // A template that cannot be rendered yet (a variable that is not set) is the run's own fault, not a missing program.
        let spec = server_spec(plan, 1, &nowhere(plan), &mut context, Path::new("/")).ok()?;
        server::missing_program(&spec)
    })
}

fn nowhere(plan: &ServerPlan) -> Place {
    Place {
        directories: vec![PathBuf::from("/nonexistent"); plan.instances.max(1) as usize],
        ports: plan
            .ports
            .iter()
            .map(|port| (port.name.clone(), port.fixed.unwrap_or(1)))
            .collect(),
    }
}

pub fn texts(texts: &[Text], context: &dyn RunContext) -> Result<Vec<String>, String> {
    texts.iter().map(|text| text.render(context)).collect()
}

/// What the scenario says, and a place for temporary files that is the server's own: that of dbbench may be closed to the
/// user that the server runs as.
fn environment(
    plan: &ServerPlan,
    directory: &Path,
    context: &dyn RunContext,
) -> Result<Vec<(String, String)>, String> {
    let rendered = |(name, value): (&String, &Text)| Ok((name.clone(), value.render(context)?));
    let said = plan.environment.iter().map(rendered);
    let mut all = said.collect::<Result<Vec<_>, String>>()?;
    if !plan.environment.contains_key("TMPDIR") {
        all.push(("TMPDIR".to_owned(), directory.display().to_string()));
    }
    Ok(all)
}

fn file_spec(file: &FilePlan, context: &dyn RunContext) -> Result<FileSpec, String> {
    let content = match &file.content {
        FileContent::Text(text) => server::FileContent::Text(text.render(context)?),
        FileContent::Copy { absolute, .. } => server::FileContent::Copy(absolute.clone()),
    };
    Ok(FileSpec {
        path: PathBuf::from(&file.path),
        content,
    })
}

fn ready(
    ready: &Ready,
    instance: u32,
    place: &Place,
    context: &dyn RunContext,
) -> Result<ReadySpec, String> {
    let at_port = |name: &str| {
        let port = place
            .ports
            .get(name)
            .ok_or_else(|| format!("`ready` names port `{name}`, which it has not"))?;
        Ok::<_, String>(SocketAddr::from((address(instance), *port)))
    };
    Ok(match ready {
        Ready::Tcp(port) => ReadySpec::Tcp(at_port(port)?),
        Ready::Http(path) => ReadySpec::Http {
            address: at_port("main")?,
            path: path.clone(),
        },
        Ready::Log(pattern) => {
            ReadySpec::Log(regex::Regex::new(pattern).map_err(|fault| format!("`ready`: {fault}"))?)
        }
        Ready::Command(command) => ReadySpec::Command(texts(command, context)?),
        Ready::Driver => ReadySpec::Driver,
    })
}

fn cpus(plan: &ServerPlan) -> Result<Vec<usize>, String> {
    let cpus = parse_cpus(&plan.cpus).map_err(|fault| format!("`cpus`: {fault}"))?;
    Ok(cpus.into_iter().map(|cpu| cpu as usize).collect())
}
