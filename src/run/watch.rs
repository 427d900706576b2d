//! Who watches a campaign: the command line's progress, or nobody (tests).

use crate::measure::record::{PhaseRecord, RunRecord, Stage, WindowRecord};
use crate::plan::PhasePlan;

/// Hears of everything in order, from one thread.
pub trait Watcher {
    /// `done` runs of `total` stand already (resumed).
    fn campaign(&mut self, _total: usize, _done: usize) {}
    fn run_started(&mut self, _id: &str) {}
    /// What happens between phases: `starting redis`, `opening redb`.
    fn step(&mut self, _what: &str) {}
    fn phase_started(&mut self, _phase: &PhasePlan, _stage: Stage) {}
    fn window(&mut self, _window: &WindowRecord) {}
    fn phase_ended(&mut self, _phase: &PhaseRecord) {}
    fn run_ended(&mut self, _id: &str, _record: &RunRecord) {}
    /// Several times a second while a phase runs.
    fn tick(&mut self) {}
    /// Something that the user should know and that stops nothing.
    fn note(&mut self, _text: &str) {}
}

/// Nobody watches.
pub struct Unwatched;

impl Watcher for Unwatched {}
