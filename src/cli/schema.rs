//! `dbbench schema`.

use super::exit::Exit;

/// Print a JSON Schema.
#[derive(clap::Args)]
pub struct Args {}

pub fn main(_: Args) -> Exit {
    Exit::CouldNotRun
}
