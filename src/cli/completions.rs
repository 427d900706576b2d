//! `dbbench completions`: scripts that let a shell complete commands and options.

use super::exit::Exit;
use clap::CommandFactory;
use clap_complete::Shell;

const EXAMPLES: &str = "\
Examples:
  dbbench completions bash > ~/.local/share/bash-completion/completions/dbbench
  dbbench completions zsh > ~/.zfunc/_dbbench
  dbbench completions fish > ~/.config/fish/completions/dbbench.fish";

/// Print a completion script for a shell.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Which shell
    shell: Shell,
}

pub fn main(args: Args) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut super::Cli::command(),
        "dbbench",
        &mut script,
    );
    super::print(&String::from_utf8_lossy(&script))
}
