//! `dbbench check`: every fault of scenario files, without running anything.

use super::exit::Exit;
use super::overrides::OverrideArgs;
use std::path::PathBuf;

/// Check scenario files, report every fault.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  dbbench check scenarios/kvs-40k.toml
  dbbench check --strict scenarios/*.toml
  dbbench check --quick --set operations=100 scenarios/kvs-40k.toml")]
pub struct Args {
    /// Scenario files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    overrides: OverrideArgs,
}

pub fn main(args: Args) -> Exit {
    let drivers = crate::registry::specs();
    let mut exit = Exit::Done;
    for file in &args.files {
        match args.overrides.plan(file, &drivers) {
            Ok(planned) => {
                eprint!("{}", planned.warnings);
                println!(
                    "ok {}: {}",
                    file.display(),
                    runs(planned.made.plan.runs.len())
                );
            }
            Err(faults) => {
                eprint!("{faults}");
                exit = Exit::WrongScenario;
            }
        }
    }
    exit
}

fn runs(count: usize) -> String {
    match count {
        1 => "1 run".to_owned(),
        count => format!("{count} runs"),
    }
}
