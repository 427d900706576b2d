//! `dbbench defaults`: what holds where a scenario says nothing.

use super::exit::Exit;
use crate::scenario::merge::DEFAULTS;

const EXAMPLES: &str = "\
Examples:
  dbbench defaults                 what is merged underneath every scenario
  dbbench defaults | grep timeout";

/// Print the built-in defaults: commented TOML, merged underneath every scenario.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {}

pub fn main(_: Args) -> Exit {
    super::print(DEFAULTS)
}
