//! `dbbench tables`.

use super::exit::Exit;

/// Make the tables of run directories again.
#[derive(clap::Args)]
pub struct Args {}

pub fn main(_: Args) -> Exit {
    Exit::CouldNotRun
}
