//! Scenarios: from text to a checked tree. No network, no clock.
//!
//! `source` reads files, `merge` joins them (extends, defaults, quick, overrides), `model` holds the rows of the language,
//! `check` reads a tree through rows and collects every fault, `read` takes typed values out of a checked tree, `validate`
//! finds what rows cannot show, `schema` prints the rows as JSON Schema, `load` does all of it. `plan` goes on from here.

pub mod check;
pub mod load;
pub mod merge;
pub mod model;
pub mod overrides;
pub mod parse;
pub mod read;
pub mod schema;
pub mod source;
pub mod tree;
mod units_help;
pub mod validate;

pub use load::{Loaded, Scenario, load};
pub use overrides::Overrides;
