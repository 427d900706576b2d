//! `dbbench plan`: what a scenario would do, before anything starts.

use super::exit::Exit;
use super::overrides::OverrideArgs;
use crate::plan::describe;
use std::io::Write;
use std::path::PathBuf;

/// Show what a scenario would do, before anything starts.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  dbbench plan scenarios/kvs-40k.toml
  dbbench plan --runs --only target=redis scenarios/kvs-40k.toml
  dbbench plan --format json scenarios/kvs-40k.toml > plan.json")]
pub struct Args {
    /// Scenario file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// A table for people, or plan.json
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// List the id of every run, in order, and nothing else
    #[arg(long)]
    runs: bool,
    #[command(flatten)]
    overrides: OverrideArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

pub fn main(args: Args) -> Exit {
    let planned = match args.overrides.plan(&args.file, &crate::registry::specs()) {
        Ok(planned) => planned,
        Err(faults) => {
            eprint!("{faults}");
            return Exit::WrongScenario;
        }
    };
    eprint!("{}", planned.warnings);
    let made = &planned.made;
    let text = match (args.runs, args.format) {
        (true, _) => describe::run_ids(&made.plan),
        (false, Format::Text) => describe::describe(made),
        (false, Format::Json) => match serde_json::to_string_pretty(&made.plan) {
            Ok(json) => format!("{json}\n"),
            Err(error) => {
                eprintln!("cannot write the plan as JSON: {error}");
                return Exit::CouldNotRun;
            }
        },
    };
    // A reader that goes away early (`| head`) is no fault.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Exit::Done
}
