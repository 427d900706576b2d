//! `dbbench scenario`: plan, run, write, make the tables, say how it went.

use super::exit::Exit;
use super::overrides::{OverrideArgs, Planned};
use super::progress::Progress;
use crate::plan::{Plan, estimate};
use crate::registry::DRIVERS;
use crate::results::manifest::SourceFile;
use crate::results::read::Results;
use crate::results::{Manifest, ResultsWriter, RunDirectory};
use crate::run::{self, Summary};
use crate::tables;
use jiff::Timestamp;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Run scenarios: start the servers, drive them, write CSV, histograms and tables.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  dbbench scenario scenarios/quickstart.toml            embedded stores only, half a minute
  dbbench scenario --quick scenarios/kvs-40k.toml       a try: fewer operations, fewer runs
  dbbench scenario scenarios/kvs-40k.toml --only 'target=redis,threads=1|16'
  dbbench scenario scenarios/kvs-40k.toml --set operations=1000 --label kernel=6.12
  dbbench scenario scenarios/kvs-40k.toml --resume results/kvs-40k/20261130T201500Z

Ctrl-C once stops the current run cleanly and keeps the finished ones; twice ends at once.
Progress goes to standard error, the tables to standard output.")]
pub struct Args {
    /// Scenario files, run one after another
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    overrides: OverrideArgs,
    /// Put the run directory here (new or empty) instead of results/<scenario>/<time>
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with an interrupted run directory; the plan must be the same
    #[arg(long, value_name = "DIR", conflicts_with = "out")]
    resume: Option<PathBuf>,
}

pub fn main(args: Args) -> Exit {
    if args.files.len() > 1 && (args.out.is_some() || args.resume.is_some()) {
        super::tell("error: --out and --resume go with one scenario file");
        return Exit::WrongScenario;
    }
    let specs = crate::registry::specs();
    let mut planned = Vec::new();
    // All files are planned before the first runs: a fault in the last one should not come after an hour.
    for file in &args.files {
        match args.overrides.plan(file, &specs) {
            Ok(plan) => planned.push(plan),
            Err(faults) => super::tell(faults.trim_end()),
        }
    }
    if planned.len() < args.files.len() {
        return Exit::WrongScenario;
    }
    let interrupted = match watch_signals() {
        Ok(interrupted) => interrupted,
        Err(error) => {
            super::tell(&format!("error: cannot watch for ctrl-C: {error}"));
            return Exit::CouldNotRun;
        }
    };
    let mut worst = Exit::Done;
    for plan in &planned {
        let exit = one(&args, plan, &interrupted);
        // What one scenario lacks, the next may not.
        worst = worst.max(exit);
        if exit == Exit::Interrupted {
            break;
        }
    }
    worst
}

/// The first SIGINT or SIGTERM sets the flag, the second ends the process; the guard then ends the servers.
fn watch_signals() -> std::io::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        let code = Exit::Interrupted as i32;
        signal_hook::flag::register_conditional_shutdown(signal, code, Arc::clone(&interrupted))?;
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    Ok(interrupted)
}

fn one(args: &Args, planned: &Planned, interrupted: &Arc<AtomicBool>) -> Exit {
    if !planned.warnings.is_empty() {
        super::tell(planned.warnings.trim_end());
    }
    match campaign(args, planned, interrupted) {
        Ok(exit) => exit,
        Err(fault) => {
            super::tell(&format!("error: {fault}"));
            Exit::CouldNotRun
        }
    }
}

/// Err: it could not run, as a sentence.
fn campaign(args: &Args, planned: &Planned, interrupted: &Arc<AtomicBool>) -> Result<Exit, String> {
    let (plan, stand_ins) = run::with_stand_ins(&planned.made.plan);
    let plan = &plan;
    check_machine(args, plan)?;
    let (mut results, done) = open_results(args, planned, plan)?;
    for note in stand_ins {
        super::tell(&format!("note: {note}"));
        results.manifest().note(note);
    }
    let directory = results.directory().path().to_owned();
    let mut progress = Progress::new();
    let summary = run::campaign(
        plan,
        DRIVERS,
        &mut results,
        &done,
        interrupted,
        &mut progress,
    );
    progress.finish();
    let before = match &args.resume {
        Some(_) => before(&directory, &done)?,
        None => Summary::default(),
    };
    let exit = exit_of(&summary, &before, args.overrides.strict);
    let finished = results
        .finish(Timestamp::now(), exit as i32)
        .map_err(|fault| fault.to_string());
    if let Some(fault) = &summary.fault {
        super::tell(&format!("error: {fault}"));
    }
    finished?;
    if planned.made.plan.outputs.basho_bench {
        write_basho(&directory);
    }
    show_tables(&directory);
    super::tell(&closing_line(&summary, before.all(), &directory));
    if summary.interrupted {
        let file = args
            .files
            .first()
            .map_or(String::new(), |file| file.display().to_string());
        super::tell(&format!(
            "go on with: dbbench scenario {file} {}--resume {}",
            args.overrides.for_shell(),
            directory.display()
        ));
    }
    Ok(exit)
}

/// What this machine cannot hold, or has not, is said before anything starts.
fn check_machine(args: &Args, plan: &Plan) -> Result<(), String> {
    let (memory, disk) = available();
    estimate::fits(plan, memory, disk).map_err(|refusal| refusal.to_string())?;
    run::limits::raise(plan, DRIVERS)?;
    let must_exist = |target: &str| {
        let target = plan.shapes.iter().find(|shape| shape.target.name == target);
        args.overrides.strict || target.is_some_and(|shape| shape.target.must_exist)
    };
    match run::unavailable(plan)
        .iter()
        .find(|(target, _)| must_exist(target))
    {
        Some((target, reason)) => Err(format!("target `{target}` cannot run: {reason}")),
        None => Ok(()),
    }
}

/// Bytes of memory and of disk (of the directory for temporary files) that are free.
fn available() -> (u64, u64) {
    use procfs::Current;
    let memory = procfs::Meminfo::current()
        .ok()
        .and_then(|info| info.mem_available)
        .unwrap_or(u64::MAX);
    let disk = nix::sys::statvfs::statvfs(&std::env::temp_dir());
    let disk = disk.map_or(u64::MAX, |disk| {
        disk.blocks_available() * disk.fragment_size()
    });
    (memory, disk)
}

fn open_results<'p>(
    args: &Args,
    planned: &Planned,
    plan: &'p Plan,
) -> Result<(ResultsWriter<'p>, HashSet<usize>), String> {
    let now = Timestamp::now();
    let sentence = |fault: crate::results::ResultsError| fault.to_string();
    if let Some(path) = &args.resume {
        let directory = RunDirectory::open(path).map_err(sentence)?;
        let (results, done) = ResultsWriter::resume(directory, plan, now).map_err(sentence)?;
        return Ok((results, done.into_iter().collect()));
    }
    let directory = match &args.out {
        Some(path) => RunDirectory::create_at(path),
        None => RunDirectory::create(
            Path::new(crate::results::layout::ROOT),
            &plan.scenario.name,
            now,
        ),
    };
    let mut manifest = Manifest::new(plan, source_files(planned), now);
    manifest.overrides = args.overrides.as_given();
    planned
        .made
        .warnings
        .iter()
        .for_each(|warning| manifest.note(warning.message.clone()));
    let results =
        ResultsWriter::open(directory.map_err(sentence)?, plan, manifest).map_err(sentence)?;
    Ok((results, HashSet::new()))
}

/// The files that the scenario was read from, each once: a fragment that two files extend is read twice.
fn source_files(planned: &Planned) -> Vec<SourceFile> {
    let mut files: Vec<SourceFile> = Vec::new();
    for source in &planned.sources.sources {
        let file = SourceFile::new(&*source.name, &*source.text);
        if !files.contains(&file) {
            files.push(file);
        }
    }
    files
}

/// Makes the tables and prints them. A table that cannot be made costs the others nothing.
fn show_tables(directory: &Path) {
    let made = tables::make(&[directory.to_owned()], None).map_err(|fault| fault.to_string());
    let written = made.and_then(|tables| {
        let folder = directory.join(crate::results::layout::TABLES);
        tables::write(&tables, &folder)
            .map(|_| tables)
            .map_err(|fault| fault.to_string())
    });
    match written {
        Ok(tables) => {
            let texts: Vec<String> = tables.iter().map(tables::print).collect();
            super::print(&texts.join("\n"));
        }
        Err(fault) => super::tell(&format!("error: cannot make the tables: {fault}")),
    }
}

/// `[outputs] basho_bench`: the files of all finished runs, those of earlier invocations too.
fn write_basho(directory: &Path) {
    let request = crate::report::basho::Request {
        replace: true,
        ..Default::default()
    };
    let out = directory.join(crate::results::layout::BASHO);
    match crate::report::basho::export(directory, &out, &request) {
        Ok(_) => {}
        // Nothing ran: that was said already.
        Err(crate::report::basho::ExportError::Request(why)) => {
            super::tell(&format!("note: no files of Basho Bench: {why}"));
        }
        Err(fault) => super::tell(&format!("error: cannot make Basho Bench's files: {fault}")),
    }
}

/// How the runs ended that an earlier invocation had done: they count for the exit code as those of this one do.
fn before(directory: &Path, done: &HashSet<usize>) -> Result<Summary, String> {
    let results = Results::open(directory).map_err(|fault| fault.to_string())?;
    let mut before = Summary::default();
    for (_, run) in results
        .runs
        .iter()
        .filter(|(position, _)| done.contains(position))
    {
        before.count_named(&run.status);
    }
    Ok(before)
}

fn exit_of(summary: &Summary, before: &Summary, strict: bool) -> Exit {
    let bad = |summary: &Summary| summary.failed + summary.invalid;
    let bad = bad(summary) + bad(before);
    match summary {
        Summary { fault: Some(_), .. } => Exit::CouldNotRun,
        Summary {
            interrupted: true, ..
        } => Exit::Interrupted,
        _ if bad > 0 => Exit::SomeFailed,
        _ if strict && summary.skipped + before.skipped > 0 => Exit::SomeFailed,
        _ if summary.valid + before.valid == 0 => Exit::CouldNotRun,
        _ => Exit::Done,
    }
}

fn closing_line(summary: &Summary, done: usize, directory: &Path) -> String {
    let counts = [
        (done, "done before"),
        (summary.valid, "valid"),
        (summary.invalid, "invalid"),
        (summary.failed, "failed"),
        (summary.skipped, "skipped"),
    ];
    let told = counts.iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> = told
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let told = if told.is_empty() {
        "no runs".to_owned()
    } else {
        told.join(", ")
    };
    let interrupted = if summary.interrupted {
        "; interrupted"
    } else {
        ""
    };
    format!("{told}{interrupted}; results in {}", directory.display())
}
