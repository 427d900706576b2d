//! Reads back.
