//! Exit codes: the one table.

use std::process::ExitCode;

/// How dbbench ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// All runs done and valid (a target skipped because its program is not installed does not change that, unless
    /// `--strict`, or nothing ran at all).
    Done = 0,
    /// Could not run: nothing to run on, nowhere to write.
    CouldNotRun = 1,
    /// The scenario or the command line is wrong.
    WrongScenario = 2,
    /// Some runs failed or are invalid.
    SomeFailed = 3,
    /// A gate was crossed. Kept for gates, which are not built yet.
    GateCrossed = 4,
    /// Ctrl-C or SIGTERM.
    Interrupted = 130,
}

pub const HELP: &str = "\
Exit codes:
  0    all runs done and valid (skipped targets count only with --strict, or when nothing ran)
  1    could not run
  2    the scenario or the command line is wrong
  3    some runs failed or are invalid
  4    (kept for gates, which are not built yet)
  130  interrupted";

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}
