//! `dbbench export`: makes other tools' files of a run directory.

use super::exit::Exit;
use crate::report::basho::{self, ExportError, Request};
use crate::units::parse_duration;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  dbbench export basho results/nosql-timeouts/latest -o basho
      all finished runs and phases: basho/<run>/<phase>/summary.csv, summary.png, ...
  dbbench export basho results/kvs-40k/latest -o one --run 'target=redis,threads=4#1' --phase get
      one phase of one run, named as in runs.csv
  dbbench export basho results/kvs-40k/latest -o fine --window 1s
      in windows of a second";

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 a run directory cannot be read or the files cannot be written; 2 it holds nothing of what was asked for.";

/// Make other tools' files of a run directory.
#[derive(clap::Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
pub struct Args {
    /// The tool whose files are made.
    #[arg(value_enum, value_name = "TOOL")]
    tool: Tool,
    /// A run directory.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Where to write: a directory per run and phase is made in it.
    #[arg(short, long, value_name = "OUT")]
    out: PathBuf,
    /// Length of the windows, a multiple of those that were measured [default: 10s, or the next multiple].
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    window: Option<Duration>,
    /// One run only, by its id in runs.csv.
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// One phase only.
    #[arg(long, value_name = "NAME")]
    phase: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Tool {
    /// Basho Bench: summary.csv, <operation>_latencies.csv, errors.csv, and the picture as summary.png and summary.svg.
    Basho,
}

pub fn main(args: Args) -> Exit {
    let Tool::Basho = args.tool;
    let request = Request {
        run: args.run.as_deref(),
        phase: args.phase.as_deref(),
        window: args.window,
        replace: false,
    };
    match basho::export(&args.directory, &args.out, &request) {
        Ok(exported) => {
            for note in exported.notes {
                super::tell(&format!("note: {note}"));
            }
            let lines = exported.directories.iter();
            let lines: String = lines.map(|path| format!("{}\n", path.display())).collect();
            super::print(&lines)
        }
        Err(error) => {
            super::tell(&format!("error: {error}"));
            match error {
                ExportError::Request(_) => Exit::WrongScenario,
                ExportError::Results(_) | ExportError::Drawing { .. } => Exit::CouldNotRun,
            }
        }
    }
}
