//! `dbbench drivers`.

use super::exit::Exit;

/// List the drivers, or one driver's options.
#[derive(clap::Args)]
pub struct Args {}

pub fn main(_: Args) -> Exit {
    Exit::CouldNotRun
}
