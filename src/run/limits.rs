//! Limits of this process that a plan may need raised: how many files, and so connections, it may have open.

use crate::driver::spec::Store;
use crate::engine::entry::DriverEntry;
use crate::plan::{PhasePlan, Plan, Shape};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Open files beside the sessions: logs, results, event loops, the guard, sockets of readiness.
const BESIDE: u64 = 200;

/// Raises the limit of open files as far as this process may, for itself and for the servers that it starts, and refuses
/// a plan whose sessions need more. The error is a sentence.
pub fn raise(plan: &Plan, drivers: &[DriverEntry]) -> Result<(), String> {
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return Ok(());
    };
    let limit = match setrlimit(Resource::RLIMIT_NOFILE, hard, hard) {
        Ok(()) => hard,
        Err(_) => soft,
    };
    match too_many(plan, drivers, limit) {
        None => Ok(()),
        Some((phase, sessions)) => Err(format!(
            "phase `{phase}` opens {sessions} connections, and this process may have {limit} files open, {BESIDE} of which \
             it needs for itself; raise the limit (as root: `ulimit -n {}`) or use fewer threads",
            sessions + BESIDE
        )),
    }
}

/// The first phase whose sessions do not fit, and how many they are.
fn too_many(plan: &Plan, drivers: &[DriverEntry], limit: u64) -> Option<(String, u64)> {
    let connects = |shape: &&Shape| {
        let specs = drivers.iter().map(|entry| (entry.spec)());
        let mut of_target = specs.filter(|spec| spec.name == shape.target.driver);
        of_target.any(|spec| matches!(spec.store, Store::Server { .. }))
    };
    let shapes = plan.shapes.iter().filter(connects);
    let phases = shapes.flat_map(|shape| &shape.phases);
    phases
        .map(|phase| (phase, sessions(phase)))
        .find(|(_, sessions)| sessions + BESIDE > limit)
        .map(|(phase, sessions)| (phase.name.clone(), sessions))
}

/// A session has one connection at least.
fn sessions(phase: &PhasePlan) -> u64 {
    let threads = phase.groups.iter().map(|group| u64::from(group.threads));
    threads.sum()
}
