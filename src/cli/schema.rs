//! `dbbench schema`: JSON Schemas of the files that dbbench reads and writes.

use super::exit::Exit;
use clap::ValueEnum;
use schemars::generate::SchemaSettings;

const EXAMPLES: &str = "\
Examples:
  dbbench schema > scenario.schema.json
      then `#:schema scenario.schema.json` as the first line of a scenario beside it
  dbbench schema plan > plan.schema.json
  dbbench schema manifest > manifest.schema.json";

/// Print a JSON Schema (draft-07), for editors and for programs that read results.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The kind of file that it describes
    #[arg(value_enum, default_value_t = What::Scenario)]
    what: What,
}

#[derive(Clone, Copy, ValueEnum)]
enum What {
    /// Scenario files, with the options of this build's drivers
    Scenario,
    /// plan.json of a run directory
    Plan,
    /// manifest.json of a run directory
    Manifest,
}

pub fn main(args: Args) -> Exit {
    match args.what {
        What::Scenario => super::print(&crate::scenario::schema::schema_text(
            &crate::registry::specs(),
        )),
        What::Plan => super::print(&text_of::<crate::plan::Plan>()),
        What::Manifest => super::print(&text_of::<crate::results::Manifest>()),
    }
}

/// The schema of a type that is written, as it is printed and stored.
pub fn text_of<T: schemars::JsonSchema>() -> String {
    let schema = SchemaSettings::draft07()
        .into_generator()
        .into_root_schema_for::<T>();
    let text = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
    format!("{text}\n")
}
