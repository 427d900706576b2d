//! The run directory: files and columns are a contract.
