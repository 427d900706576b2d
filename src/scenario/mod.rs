//! Scenarios: from text to a checked tree. No network, no clock.
//!
//! `source` reads files, `merge` joins them (extends, defaults, quick, overrides), `model` holds the rows of the language,
//! `check` reads a tree through rows and collects every fault, `schema` prints the rows as JSON Schema. `plan` goes on from here.

pub mod tree;
