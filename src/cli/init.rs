//! `dbbench init`.

use super::exit::Exit;

/// Write a new scenario to start from.
#[derive(clap::Args)]
pub struct Args {}

pub fn main(_: Args) -> Exit {
    Exit::CouldNotRun
}
