//! What the engine itself costs: the operation loop with the null driver against two clock reads and one histogram record
//! measured in the same run. Ratios only: the machine is shared.
//!
//! `cargo bench --bench engine`

#[path = "common/mod.rs"]
#[allow(dead_code, reason = "shared with the bench of peers")]
mod common;

use common::{Median, phase_of, run_null};
use dbbench::measure::record::Latencies;
use std::hint::black_box;
use std::time::Instant;

const OPERATIONS: u64 = 3_000_000;
const ROUNDS: usize = 7;

/// Nanoseconds per operation of the least that measuring takes.
fn bare() -> f64 {
    let mut latencies = Latencies::new();
    let began = Instant::now();
    for _ in 0..OPERATIONS {
        let started = Instant::now();
        let ended = Instant::now();
        latencies.record(black_box((ended - started).as_nanos() as u64));
    }
    black_box(&latencies);
    began.elapsed().as_nanos() as f64 / OPERATIONS as f64
}

/// Nanoseconds per operation of making the keys and values of the experiment kvs-*, nothing sent.
fn generation(bytes: u64) -> f64 {
    const MADE: u64 = 200_000;
    let mut generator = common::generator(&common::kvs_phase("set", 1, MADE, bytes));
    let mut operation = dbbench::op::Operation::default();
    let began = Instant::now();
    for index in 0..MADE {
        generator.fill(index, &mut operation);
        black_box(&operation);
    }
    began.elapsed().as_nanos() as f64 / MADE as f64
}

fn main() {
    let one = phase_of(1, OPERATIONS);
    let sixteen = phase_of(16, OPERATIONS);
    let mut ratios = Median::default();
    let mut threads = Median::default();
    let (mut bare_ns, mut one_ns) = (Median::default(), Median::default());
    for round in 0..ROUNDS {
        // The order alternates, so that a drift of the machine favours nobody.
        let (base, single) = match round % 2 {
            0 => (bare(), run_null(&one)),
            _ => {
                let single = run_null(&one);
                (bare(), single)
            }
        };
        let many = run_null(&sixteen);
        ratios.add(single / base);
        threads.add(many / single);
        bare_ns.add(base);
        one_ns.add(single);
    }
    println!(
        "two clock reads and one histogram record: {:.1} ns",
        bare_ns.value()
    );
    println!(
        "null operation, everything recorded:      {:.1} ns",
        one_ns.value()
    );
    println!(
        "ratio (at most 1.6):                      {:.2}",
        ratios.value()
    );
    println!(
        "16 threads on one worker against 1 (at most 1.10): {:.2}",
        threads.value()
    );
    for bytes in [2_560, 41_960] {
        println!(
            "keys and values of kvs-*, {bytes} B, apart: {:.1} ns",
            generation(bytes)
        );
    }
}
