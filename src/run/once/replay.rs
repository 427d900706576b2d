//! Logs that phases replay: read before the phase, through their filters, into files of the run's own.

use super::Once;
use crate::plan::{PhasePlan, ReplayPlan};
use crate::results::manifest::LogFacts;
use crate::run::context::Context;
use crate::run::doubts;
use crate::workload::querylog::Format;
use crate::workload::querylog::filter::{Filter, parse_from};
use crate::workload::querylog::spool::{PerThread, Report, Spool, Wanted};
use regex::bytes::Regex;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

impl Once<'_, '_, '_> {
    /// The statements of a log for so many threads; one that was read before in this run is not read again.
    pub(super) fn spool(
        &mut self,
        phase: &PhasePlan,
        replay: &ReplayPlan,
        threads: u32,
        context: &Context<'_>,
    ) -> Result<Spool, String> {
        let named = |fault: String| format!("phase `{}`: replay: {fault}", phase.name);
        let file = replay.file.render(context).map_err(named)?;
        let path = place_of(&replay.beside, &file);
        let threads_count = match replay.per_thread {
            PerThread::Whole => 1,
            _ => threads,
        };
        let key = format!("{} {threads_count} {replay:?}", path.display());
        if let Some(known) = self.spools.get(&key) {
            return Ok(known.clone());
        }
        self.watcher.step(&format!("reading {file}"));
        let wanted = Wanted {
            path: &path,
            format: replay.format,
            filter: filter(replay).map_err(named)?,
            first: replay.first,
            per_thread: replay.per_thread,
            threads,
        };
        let directory = self.fleet.directory("replay").map_err(named)?;
        let interrupted = self.surroundings.interrupted;
        let watcher = &mut *self.watcher;
        let mut heartbeat = |seen: u64| {
            watcher.step(&format!("reading {file}: {seen} statements"));
            !interrupted.load(Ordering::Relaxed)
        };
        let spool = Spool::make(&wanted, &directory, &mut heartbeat)
            .map_err(|error| named(format!("cannot read {}: {error}", path.display())))?;
        self.tell(&file, &spool.report);
        let (bytes, sha256) = content(&path, interrupted)
            .map_err(|error| named(format!("cannot read {}: {error}", path.display())))?;
        let report = &spool.report;
        self.writer.manifest().add_log(LogFacts {
            file: file.clone(),
            bytes,
            sha256,
            format: report.format.map_or("", Format::name).to_owned(),
            statements: report.statements,
            not_wanted: report.not_wanted,
            refused: report.refused,
            not_understood: report.not_understood,
        });
        if spool.report.statements == 0 {
            return Err(named(nothing_left(&file, &spool.report)));
        }
        if replay.speed.is_some() && !spool.report.timed {
            let fault = format!("{file} tells no times, so it cannot be replayed at its own");
            return Err(named(fault));
        }
        self.spools.insert(key, spool.clone());
        Ok(spool)
    }

    /// What was left out is said, and makes the run doubtful where nobody wanted it.
    fn tell(&mut self, file: &str, report: &Report) {
        if report.refused > 0 {
            self.watcher.note(&format!(
                "{file}: {} statements may write and are not replayed (allow_writes = true replays them)",
                report.refused
            ));
        }
        if let Some(place) = &report.first_not_understood {
            self.watcher.note(&format!(
                "{file}: {} places are not understood, the first in line {}: {}",
                report.not_understood, place.line, place.why
            ));
            doubts::add(&mut self.doubts, "log_not_understood");
        }
        if report.databases.len() > 1 {
            self.watcher.note(&format!(
                "{file}: the statements are of several databases, and all are replayed in the endpoint's \
                 (`database = ...` chooses one)"
            ));
        }
    }
}

/// Length and SHA-256 of a file; an error where it is interrupted.
fn content(path: &Path, interrupted: &AtomicBool) -> io::Result<(u64, String)> {
    let mut file = File::open(path)?;
    let mut buffer = vec![0; 1 << 20];
    let (mut bytes, mut digest) = (0, Sha256::new());
    loop {
        let length = file.read(&mut buffer)?;
        if length == 0 {
            break;
        }
        if interrupted.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        bytes += length as u64;
        digest.update(&buffer[..length]);
    }
    let sha256 = digest
        .finalize()
        .into_iter()
        .map(|byte| format!("{byte:02x}"));
    Ok((bytes, sha256.collect()))
}

fn nothing_left(file: &str, report: &Report) -> String {
    format!(
        "{file} has no statement to replay: {} are not wanted, {} may write, {} places are not understood; \
         `dbbench querylog` shows what it holds",
        report.not_wanted, report.refused, report.not_understood
    )
}

/// Beside the scenario, or else where dbbench was started.
fn place_of(beside: &Path, file: &str) -> PathBuf {
    let first = beside.join(file);
    match first.exists() {
        true => first,
        false => PathBuf::from(file),
    }
}

fn filter(replay: &ReplayPlan) -> Result<Filter, String> {
    let matching = match replay.matching.as_str() {
        "" => None,
        pattern => Some(Regex::new(pattern).map_err(|error| error.to_string())?),
    };
    Ok(Filter {
        only: Filter::kinds(&replay.only).map_err(|name| format!("`{name}` is no kind"))?,
        user: replay.user.clone().into_bytes(),
        database: replay.database.clone().into_bytes(),
        matching,
        from: parse_from(&replay.from),
        allow_writes: replay.allow_writes,
    })
}
