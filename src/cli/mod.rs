//! The command line: one file per command; exit codes stand in `exit`.

pub mod drivers;
pub mod exit;
pub mod init;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

mod check;
mod completions;
mod defaults;
mod export;
pub mod overrides;
mod plan;
mod progress;
mod querylog;
mod scenario;
pub mod schema;
mod tables;

#[derive(Parser)]
#[command(name = "dbbench", version, about, max_term_width = 110, after_help = exit::HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Scenario(scenario::Args),
    Check(check::Args),
    Plan(plan::Args),
    Tables(tables::Args),
    Querylog(querylog::Args),
    Export(export::Args),
    Drivers(drivers::Args),
    Defaults(defaults::Args),
    Schema(schema::Args),
    Init(init::Args),
    Completions(completions::Args),
}

/// Parses the command line and runs its command.
pub fn main() -> ExitCode {
    let code = match Cli::parse().command {
        Command::Scenario(args) => scenario::main(args),
        Command::Check(args) => check::main(args),
        Command::Plan(args) => plan::main(args),
        Command::Tables(args) => tables::main(args),
        Command::Querylog(args) => querylog::main(args),
        Command::Export(args) => export::main(args),
        Command::Drivers(args) => drivers::main(args),
        Command::Defaults(args) => defaults::main(args),
        Command::Schema(args) => schema::main(args),
        Command::Init(args) => init::main(args),
        Command::Completions(args) => completions::main(args),
    };
    code.into()
}

/// A line on standard error. Where nobody can read it (a full disk, a closed pipe) the work goes on all the same.
fn tell(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Writes text to standard output; a reader that went away (`| head`) is no fault.
fn print(text: &str) -> exit::Exit {
    use std::io::Write;
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => exit::Exit::Done,
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => exit::Exit::Done,
        Err(error) => {
            eprintln!("error: cannot write to standard output: {error}");
            exit::Exit::CouldNotRun
        }
    }
}
