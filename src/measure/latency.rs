//! Percentiles, by the two rules of the house: a failure of any class ranks above every success, and a percentile that
//! too few operations support is not known. Nanoseconds in and out.

use super::record::Latencies;

/// The percentiles that every table of latencies has: (column's name, q in percent).
pub const PERCENTILES: [(&str, f64); 6] = [
    ("p50", 50.0),
    ("p90", 90.0),
    ("p95", 95.0),
    ("p99", 99.0),
    ("p99_9", 99.9),
    ("p99_99", 99.99),
];

/// Percentile `q` (in percent, below 100) over `succeeded` and `unsuccessful` further operations that rank above them.
/// None where it falls among those, or where fewer than 10 / (1 - q) operations support it.
pub fn percentile_ns(succeeded: &Latencies, unsuccessful: u64, q: f64) -> Option<u64> {
    let total = succeeded.len() + unsuccessful;
    // 10 / (1 - q), kept in integers of a hundredth of a percent: 1 - 0.999 is not 0.001 in binary.
    let above = ((100.0 - q) * 100.0).round() as u64;
    if total * above < 10 * 10_000 {
        return None;
    }
    let below = 10_000 - above;
    let rank = (total * below).div_ceil(10_000).max(1);
    if rank > succeeded.len() {
        return None;
    }
    // In the middle of the rank's step, so that rounding cannot move it to the next one.
    let quantile = (rank as f64 - 0.5) / succeeded.len() as f64;
    Some(
        succeeded
            .histogram
            .value_at_quantile(quantile)
            .min(succeeded.max_ns),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latencies(values: impl IntoIterator<Item = u64>) -> Latencies {
        let mut latencies = Latencies::new();
        values.into_iter().for_each(|ns| latencies.record(ns));
        latencies
    }

    #[test]
    fn failing_never_improves_a_percentile() {
        let succeeded = latencies(1..=990);
        assert_eq!(percentile_ns(&succeeded, 0, 99.0), None); // 990 operations do not support it
        let succeeded = latencies(1..=2000);
        assert_eq!(percentile_ns(&succeeded, 0, 50.0), Some(1000));
        // 10 failures push the median up, whatever they took.
        assert_eq!(percentile_ns(&succeeded, 10, 50.0), Some(1005));
        // More than 1 % failed: the 99th percentile falls among them.
        assert_eq!(percentile_ns(&succeeded, 30, 99.0), None);
    }

    #[test]
    fn a_percentile_needs_ten_operations_above_it() {
        assert_eq!(percentile_ns(&latencies(1..=19), 0, 50.0), None);
        assert!(percentile_ns(&latencies(1..=20), 0, 50.0).is_some());
        assert_eq!(percentile_ns(&latencies(1..=9_999), 0, 99.9), None);
        assert!(percentile_ns(&latencies(1..=10_000), 0, 99.9).is_some());
        assert!(percentile_ns(&latencies(1..=100_000), 0, 99.99).is_some());
    }
}
