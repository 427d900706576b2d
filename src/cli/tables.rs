//! `dbbench tables`: makes the tables of finished runs again.

use super::exit::Exit;
use super::overrides::OverrideArgs;
use crate::results::read::TablePlan;
use crate::tables;
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  dbbench tables results/kvs-40k/latest
      make the tables of one run directory again
  dbbench tables results/counter/20261130T201500Z results/counter/20261201T090000Z --out both
      one set of tables from two machines or kernels, told apart by their labels
  dbbench tables results/kvs-40k/latest --scenario scenarios/kvs-40k.toml
      after the definition of a table was edited
  dbbench tables results/kvs-40k/latest --format text
      to read, not to write

Exit codes: 0 done; 1 a run directory cannot be read or written; 2 the definition of a table is wrong.";

/// Make the tables of run directories again.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Run directories; several are put into the same tables.
    #[arg(required = true, value_name = "DIR")]
    directories: Vec<PathBuf>,
    /// Take the definitions of the tables from this scenario, not from the first directory's plan.
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Where to write them [default: `tables` in the run directory; needed when there are several].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// csv writes a file for each table; text prints them and writes nothing.
    #[arg(long, value_enum, default_value = "csv")]
    format: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Csv,
    Text,
}

pub fn main(args: Args) -> Exit {
    match run(&args) {
        Ok(text) => super::print(&text),
        Err((exit, message)) => {
            eprint!("{message}");
            exit
        }
    }
}

/// What is to be printed; or how to end, with the message.
fn run(args: &Args) -> Result<String, (Exit, String)> {
    let definitions = match &args.scenario {
        Some(path) => Some(definitions_from(path).map_err(|drawn| (Exit::WrongScenario, drawn))?),
        None => None,
    };
    let fault = |exit: Exit, sentence: String| (exit, format!("error: {sentence}\n"));
    let out = match (&args.out, args.directories.as_slice()) {
        (Some(out), _) => Some(out.clone()),
        (None, [one]) => Some(tables::directory_of(one)),
        (None, _) => None,
    };
    if out.is_none() && args.format == Format::Csv {
        let message = "tables of several run directories need a place: --out DIR".to_owned();
        return Err(fault(Exit::WrongScenario, message));
    }
    let made = tables::make(&args.directories, definitions).map_err(|error| match error {
        tables::TablesError::Results(error) => fault(Exit::CouldNotRun, error.to_string()),
        error => fault(Exit::WrongScenario, error.to_string()),
    })?;
    if made.is_empty() {
        return Ok("the scenario asks for no tables\n".to_owned());
    }
    match out.filter(|_| args.format == Format::Csv) {
        Some(out) => {
            for note in made.iter().flat_map(|table| &table.notes) {
                eprintln!("note: {note}");
            }
            let written = tables::write(&made, &out)
                .map_err(|error| fault(Exit::CouldNotRun, error.to_string()))?;
            let lines = written.iter().map(|path| format!("{}\n", path.display()));
            Ok(lines.collect())
        }
        None => {
            let texts: Vec<String> = made.iter().map(tables::print).collect();
            Ok(texts.join("\n"))
        }
    }
}

/// The tables that a scenario file defines now. Only the definitions count: the runs are those of the directories. The
/// error is every fault of the file, drawn for people.
fn definitions_from(path: &Path) -> Result<Vec<TablePlan>, String> {
    let planned = OverrideArgs::default().plan(path, &crate::registry::specs())?;
    Ok(planned.made.plan.tables)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::fixture::{self, Load};
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn args(arguments: &[&str]) -> Args {
        Cli::parse_from(std::iter::once(&"tables").chain(arguments)).args
    }

    /// A run directory whose plan asks for one table.
    fn run_directory(path: &Path) {
        let mut plan = fixture::plan();
        let definition = serde_json::json!({
            "name": "operations", "where_": "repeat == 1", "rows": ["target", "threads"], "columns": "",
            "values": [["operations", "load.operations"]], "repeats": "median", "ratio_to": {},
            "ratio_name": "", "headers": {}, "show_invalid": false, "every_ns": 0,
        });
        plan.tables = vec![serde_json::from_value(definition).unwrap()];
        let mut results = fixture::open(path, &plan);
        let load = Load {
            succeeded: 20,
            timed_out: 0,
            first_ns: 1000,
        };
        (0..4).for_each(|run| fixture::write_run(&mut results, &plan, run, load));
    }

    #[test]
    fn tables_are_written_beside_the_results_or_printed() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("out");
        run_directory(&path);
        let directory = path.to_str().unwrap();
        let file = path.join("tables/operations.csv");

        let printed = run(&args(&[directory, "--format", "text"])).unwrap();
        assert!(
            printed.starts_with("operations\n  target  threads  operations\n"),
            "{printed}"
        );
        assert!(!file.exists());

        let printed = run(&args(&[directory])).unwrap();
        assert_eq!(printed, format!("{}\n", file.display()));
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(
            text.starts_with("target,threads,operations,stand_in_for,notes\nredis,1,20,,\n"),
            "{text}"
        );
    }

    #[test]
    fn a_definition_may_come_from_an_edited_scenario() {
        let temporary = tempfile::tempdir().unwrap();
        let path = temporary.path().join("out");
        run_directory(&path);
        let file = temporary.path().join("edited.toml");
        let text = "schema = 1\nname = \"edited\"\n[sweep]\ntarget = [\"redis\"]\n\
            threads = [1, 4]\n[targets.redis]\ndriver = \"null\"\n\
            [workload.values]\nsize = 1\n[[phases]]\nname = \"load\"\noperation = \"set\"\noperations = 10\n\
            threads = \"{{ threads }}\"\n[[tables]]\nname = \"twice\"\nrows = [\"threads\"]\n\
            where = \"{{ target == 'redis' and threads == 1 }}\"\n[tables.values]\ntwice = \"{{ load.operations * 2 }}\"\n";
        std::fs::write(&file, text).unwrap();
        let arguments = [path.to_str().unwrap(), "--scenario", file.to_str().unwrap()];
        let printed = run(&args(&[&arguments[..], &["--format", "text"]].concat())).unwrap();
        let row = "\n        1     40";
        assert!(
            printed.starts_with("twice\n") && printed.contains(row),
            "{printed}"
        );

        std::fs::write(&file, text.replace("load.operations", "load.operation")).unwrap();
        let (exit, drawn) = run(&args(&arguments)).unwrap_err();
        assert_eq!(exit, Exit::WrongScenario);
        assert!(drawn.contains("edited.toml:"), "{drawn}");
    }

    #[test]
    fn each_fault_has_its_exit_code() {
        let (exit, message) = run(&args(&["/nowhere/at/all"])).unwrap_err();
        assert_eq!(exit, Exit::CouldNotRun);
        assert!(message.contains("/nowhere/at/all"), "{message}");
        let (exit, message) = run(&args(&["/a", "/b"])).unwrap_err();
        assert_eq!(exit, Exit::WrongScenario);
        assert!(message.contains("--out"), "{message}");
    }
}
