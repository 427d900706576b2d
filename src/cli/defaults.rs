//! `dbbench defaults`.

use super::exit::Exit;

/// Print the built-in defaults.
#[derive(clap::Args)]
pub struct Args {}

pub fn main(_: Args) -> Exit {
    Exit::CouldNotRun
}
