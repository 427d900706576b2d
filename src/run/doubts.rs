//! What makes a run questionable without making it invalid.

use crate::driver::spec::{Durability, Store};
use crate::measure::record::PhaseRecord;

/// From this share of its time on, a worker that spends it on CPU is taken for the limit.
pub const BUSY: f64 = 0.9;

/// `client_limited`: in a measured phase a worker of the client was on CPU for 90 % of the time or more. Embedded stores run
/// inside the client: there it is no doubt.
pub fn client_limited(store: &Store, phase: &PhaseRecord) -> bool {
    let apart = matches!(store, Store::Server { .. });
    apart && phase.measured && phase.worker_busy.iter().any(|busy| *busy >= BUSY)
}

/// `durability_weaker`: the store says that it keeps less than the scenario claims.
pub fn durability_weaker(claimed: Option<Durability>, found: Option<Durability>) -> bool {
    matches!((claimed, found), (Some(claimed), Some(found)) if found < claimed)
}

/// Adds a doubt once.
pub fn add(doubts: &mut Vec<String>, doubt: &str) {
    if !doubts.iter().any(|known| known == doubt) {
        doubts.push(doubt.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_keeps_less_than_claimed_is_doubted() {
        assert!(durability_weaker(
            Some(Durability::Fsync),
            Some(Durability::Os)
        ));
        assert!(!durability_weaker(
            Some(Durability::Os),
            Some(Durability::Fsync)
        ));
        assert!(!durability_weaker(Some(Durability::Os), None));
    }
}
