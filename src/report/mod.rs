//! What is made of a finished run directory for people: files of other tools, and pictures.
//!
//! Works on run directories alone, on another machine if need be. `chart` draws and knows nothing of results; `basho` writes
//! the files and the picture of Basho Bench.

pub mod basho;
pub mod chart;
