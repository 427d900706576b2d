//! What was measured: counts, histograms, windows, samples. DESIGN: "What is measured, exactly" defines each number.
//!
//! `record` is the frozen result that `results` writes; `recorder` is what a worker fills; `latency` turns histograms into
//! percentiles under the rule that failures rank above every success. Knows no files, no drivers, no threads.

pub mod latency;
pub mod record;
pub mod recorder;
