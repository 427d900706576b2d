//! `dbbench completions`.

use super::exit::Exit;

/// Print shell completions.
#[derive(clap::Args)]
pub struct Args {}

pub fn main(_: Args) -> Exit {
    Exit::CouldNotRun
}
