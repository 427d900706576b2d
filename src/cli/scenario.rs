//! `dbbench scenario`.

use super::exit::Exit;

/// Run a scenario and write its results.
#[derive(clap::Args)]
pub struct Args {}

pub fn main(_: Args) -> Exit {
    Exit::CouldNotRun
}
