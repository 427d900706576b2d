//! The `cassandra` driver, so far its specification: options and endpoints, without sessions. Not in the registry yet.

pub mod spec;
