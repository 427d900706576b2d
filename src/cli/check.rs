//! `dbbench check`.

use super::exit::Exit;

/// Check scenario files, report every fault.
#[derive(clap::Args)]
pub struct Args {}

pub fn main(_: Args) -> Exit {
    Exit::CouldNotRun
}
