//! `dbbench plan`.

use super::exit::Exit;

/// Show what a scenario would run.
#[derive(clap::Args)]
pub struct Args {}

pub fn main(_: Args) -> Exit {
    Exit::CouldNotRun
}
