//! Which key an operation uses: the laws of `[workload.keys]`, each a function of the operation's index and the stream's
//! random words.
//!
//! Every law is set up in the same short time whatever the number of keys, and keeps no table of them. Knows numbers only;
//! `keys` makes bytes of them.

use super::spec::{KeyDistribution, KeySpec};
use crate::random::{self, Ranks};

/// Share of the operations that `exponential` sends to its first keys.
const EXPONENTIAL_SHARE: f64 = 0.95;

/// Chooses key numbers in [0, count).
#[derive(Clone, Debug)]
pub struct KeySampler {
    count: u64,
    uses_per_key: u64,
    law: Law,
}

#[derive(Clone, Debug)]
enum Law {
    Sequential,
    Uniform,
    Zipfian(Ranks),
    /// The ranks of Zipf's law dealt over all keys by a permutation.
    Scrambled(Ranks, Permutation),
    Latest(Ranks),
    Hotspot {
        /// In [1, count).
        hot_keys: u64,
        hot_operations: f64,
    },
    /// Density proportional to exp(-rate * x) over the keys' positions x in [0, 1).
    Exponential {
        rate: f64,
    },
}

impl KeySampler {
    /// `count` >= 1 keys. Errors are sentences.
    pub fn new(spec: &KeySpec, count: u64) -> Result<KeySampler, String> {
        if count == 0 {
            return Err("a workload needs at least one key".to_owned());
        }
        if spec.uses_per_key == 0 {
            return Err("`uses_per_key` must be at least 1".to_owned());
        }
        Ok(KeySampler {
            count,
            uses_per_key: spec.uses_per_key,
            law: Law::new(&spec.distribution, count)?,
        })
    }

    /// The same law with the permutation of a seed: which keys are hot is then the same in all phases and repeats.
    pub fn seeded(&self, seed: u64) -> KeySampler {
        let mut seeded = self.clone();
        if let Law::Scrambled(_, permutation) = &mut seeded.law {
            *permutation = Permutation::new(self.count, seed);
        }
        seeded
    }

    /// The key number of operation `index`, where `base` starts the stream's words. `uses_per_key` operations in a row
    /// share one key, whatever the law.
    #[inline]
    pub fn number(&self, index: u64, base: u64) -> u64 {
        let turn = match self.uses_per_key {
            1 => index,
            uses => index / uses,
        };
        match &self.law {
            Law::Sequential if turn < self.count => turn,
            Law::Sequential => turn % self.count,
            law => law.sample(self.count, random::word(base, turn)),
        }
    }
}

impl Law {
    fn new(distribution: &KeyDistribution, count: u64) -> Result<Law, String> {
        match *distribution {
            KeyDistribution::Sequential => Ok(Law::Sequential),
            KeyDistribution::Uniform => Ok(Law::Uniform),
            KeyDistribution::Zipfian { theta, scrambled } => {
                let ranks = Ranks::new(count, theta)?;
                Ok(match scrambled {
                    true => Law::Scrambled(ranks, Permutation::new(count, 0)),
                    false => Law::Zipfian(ranks),
                })
            }
            KeyDistribution::Latest { theta } => Ok(Law::Latest(Ranks::new(count, theta)?)),
            KeyDistribution::Hotspot {
                hot_keys,
                hot_operations,
            } => Law::hotspot(hot_keys, hot_operations, count),
            KeyDistribution::Exponential { share } => Law::exponential(share),
        }
    }

    /// The hot keys are rounded to a whole number of at least one; where that is all keys there is nothing hot.
    fn hotspot(hot_keys: f64, hot_operations: f64, count: u64) -> Result<Law, String> {
        for (name, share) in [("hot_keys", hot_keys), ("hot_operations", hot_operations)] {
            if !(0.0..=1.0).contains(&share) {
                return Err(format!("`{name}` must be a share from 0 to 1, not {share}"));
            }
        }
        let hot_keys = ((hot_keys * count as f64).round() as u64).max(1);
        if hot_keys >= count {
            return Ok(Law::Uniform);
        }
        Ok(Law::Hotspot {
            hot_keys,
            hot_operations,
        })
    }

    /// A share that needs no preference for the first keys gives the uniform law.
    fn exponential(share: f64) -> Result<Law, String> {
        if !(share > 0.0 && share <= 1.0) {
            return Err(format!(
                "`share` must be above 0 and at most 1, not {share}"
            ));
        }
        if share >= EXPONENTIAL_SHARE {
            return Ok(Law::Uniform);
        }
        Ok(Law::Exponential {
            rate: exponential_rate(share),
        })
    }

    /// `random` is the one word of this operation; what needs a second takes it from the word's own stream.
    fn sample(&self, count: u64, random: u64) -> u64 {
        match self {
            Law::Sequential | Law::Uniform => random::below(random, count),
            Law::Zipfian(ranks) => ranks.rank(random),
            Law::Scrambled(ranks, permutation) => permutation.apply(ranks.rank(random)),
            Law::Latest(ranks) => count - 1 - ranks.rank(random),
            Law::Hotspot {
                hot_keys,
                hot_operations,
            } => {
                let place = random::word(random, 0);
                match random::unit(random) < *hot_operations {
                    true => random::below(place, *hot_keys),
                    false => hot_keys + random::below(place, count - hot_keys),
                }
            }
            Law::Exponential { rate } => {
                let mass = -(-rate).exp_m1();
                let position = -(-random::unit(random) * mass).ln_1p() / rate;
                ((position * count as f64) as u64).min(count - 1)
            }
        }
    }
}

/// The rate at which an exponential law, cut off at 1, has 95 % of its mass below `share` (in (0, 0.95)).
fn exponential_rate(share: f64) -> f64 {
    let excess = |rate: f64| {
        let below = -(-rate * share).exp_m1();
        let all = -(-rate).exp_m1();
        below - EXPONENTIAL_SHARE * all
    };
    // Not enough below the share at the low end, and 98 % at the high one: the root is between.
    let (mut low, mut high) = (1e-9, 4.0 / share);
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        match excess(middle) < 0.0 {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

/// A permutation of [0, count), for which a seed is all that is kept: a bijection of the next power of two, applied
/// until it falls into the range, which takes two rounds at most on average.
#[derive(Clone, Debug)]
struct Permutation {
    count: u64,
    mask: u64,
    shift: u32,
    /// Multiplier (odd) and addend of each round.
    rounds: [(u64, u64); 3],
}

impl Permutation {
    fn new(count: u64, seed: u64) -> Permutation {
        let bits = (64 - (count - 1).leading_zeros()).max(2);
        let base = random::base(&[seed, count, 0x7065_726d]);
        let round = |n: u64| (random::word(base, 2 * n) | 1, random::word(base, 2 * n + 1));
        Permutation {
            count,
            mask: u64::MAX >> (64 - bits),
            shift: bits / 2,
            rounds: [round(0), round(1), round(2)],
        }
    }

    fn apply(&self, number: u64) -> u64 {
        let mut x = number;
        loop {
            for (multiplier, addend) in self.rounds {
                x = x.wrapping_mul(multiplier).wrapping_add(addend) & self.mask;
                x ^= x >> self.shift;
            }
            if x < self.count {
                return x;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::spec::Digest;

    const SAMPLES: u64 = 200_000;

    fn sampler(distribution: KeyDistribution, count: u64, uses_per_key: u64) -> KeySampler {
        let spec = KeySpec {
            format: "%d".to_owned(),
            digest: Digest::None,
            count: Some(count),
            uses_per_key,
            distribution,
        };
        KeySampler::new(&spec, count).unwrap().seeded(11)
    }

    fn counts(sampler: &KeySampler, base: u64) -> Vec<u64> {
        let mut counts = vec![0; sampler.count as usize];
        (0..SAMPLES).for_each(|index| counts[sampler.number(index, base) as usize] += 1);
        counts
    }

    /// Pearson's chi-square of counts against probabilities; keys of fewer than 5 expected samples are joined. Four
    /// standard deviations above the mean are reached by chance once in ten thousand tests.
    fn assert_follows(counts: &[u64], probabilities: &[f64]) {
        let total: f64 = probabilities.iter().sum();
        assert!((total - 1.0).abs() < 1e-9, "probabilities sum to {total}");
        let (mut chi, mut bins, mut seen, mut expected) = (0.0, 0.0, 0.0, 0.0);
        for (count, probability) in counts.iter().zip(probabilities) {
            seen += *count as f64;
            expected += probability * SAMPLES as f64;
            if expected >= 5.0 {
                chi += (seen - expected) * (seen - expected) / expected;
                bins += 1.0;
                (seen, expected) = (0.0, 0.0);
            }
        }
        let freedom: f64 = bins - 1.0;
        let limit = freedom + 4.0 * (2.0 * freedom).sqrt() + 10.0;
        assert!(chi < limit, "chi-square {chi} with {freedom} degrees");
    }

    fn zipf(count: usize, theta: f64) -> Vec<f64> {
        let weights: Vec<f64> = (1..=count).map(|r| (r as f64).powf(-theta)).collect();
        let total: f64 = weights.iter().sum();
        weights.into_iter().map(|w| w / total).collect()
    }

    #[test]
    fn sequential_keys_come_in_order_and_begin_again() {
        let sampler = sampler(KeyDistribution::Sequential, 3, 2);
        let numbers: Vec<u64> = (0..8).map(|i| sampler.number(i, 77)).collect();
        assert_eq!(numbers, [0, 0, 1, 1, 2, 2, 0, 0]);
    }

    #[test]
    fn uniform_keys_are_equally_likely() {
        let sampler = sampler(KeyDistribution::Uniform, 1000, 1);
        assert_follows(&counts(&sampler, 1), &vec![1.0 / 1000.0; 1000]);
    }

    #[test]
    fn zipfian_keys_follow_the_law_below_at_and_above_theta_one() {
        for theta in [0.2, 0.5, 0.99, 1.0, 1.0 + 1e-12, 1.3, 3.0] {
            let scrambled = false;
            let sampler = sampler(KeyDistribution::Zipfian { theta, scrambled }, 1000, 1);
            assert_follows(&counts(&sampler, 2), &zipf(1000, theta));
        }
    }

    #[test]
    fn scrambled_keys_keep_the_law_and_lie_apart() {
        let law = |scrambled| KeyDistribution::Zipfian {
            theta: 0.99,
            scrambled,
        };
        let plain = counts(&sampler(law(false), 1000, 1), 3);
        let scrambled = counts(&sampler(law(true), 1000, 1), 3);
        let hottest = |counts: &[u64]| {
            let mut keys: Vec<usize> = (0..1000).collect();
            keys.sort_by_key(|key| std::cmp::Reverse(counts[*key]));
            keys.truncate(20);
            keys
        };
        assert!(hottest(&plain).iter().all(|key| *key < 25));
        let spread = hottest(&scrambled);
        assert!(spread.iter().filter(|key| **key < 500).count() > 3);
        assert!(spread.iter().filter(|key| **key >= 500).count() > 3);
        let sorted = |mut counts: Vec<u64>| {
            counts.sort_unstable();
            counts
        };
        assert_eq!(sorted(plain), sorted(scrambled));
    }

    #[test]
    fn scrambling_is_one_to_one_and_differs_by_seed() {
        for count in [1, 2, 3, 10, 64, 65, 1000, 4097] {
            let permutation = Permutation::new(count, 9);
            let mut image: Vec<u64> = (0..count).map(|x| permutation.apply(x)).collect();
            image.sort_unstable();
            assert_eq!(image, (0..count).collect::<Vec<_>>());
        }
        let (one, other) = (Permutation::new(1000, 1), Permutation::new(1000, 2));
        let equal = (0..1000).filter(|x| one.apply(*x) == other.apply(*x));
        assert!(equal.count() < 10);
    }

    #[test]
    fn latest_keys_are_the_highest() {
        let sampler = sampler(KeyDistribution::Latest { theta: 0.99 }, 500, 1);
        let mut expected = zipf(500, 0.99);
        expected.reverse();
        let mut seen = counts(&sampler, 4);
        assert_follows(&seen, &expected);
        seen.reverse();
        assert_eq!(seen.iter().max(), seen.first());
    }

    #[test]
    fn hot_keys_get_their_share_and_the_others_the_rest() {
        let law = KeyDistribution::Hotspot {
            hot_keys: 0.2,
            hot_operations: 0.8,
        };
        let mut expected = vec![0.8 / 200.0; 200];
        expected.extend(vec![0.2 / 800.0; 800]);
        assert_follows(&counts(&sampler(law, 1000, 1), 5), &expected);
    }

    #[test]
    fn exponential_keys_follow_the_law_and_the_first_get_95_percent() {
        for share in [0.01, 0.1, 0.8571428, 0.94] {
            let sampler = sampler(KeyDistribution::Exponential { share }, 700, 1);
            let rate = exponential_rate(share);
            let mass = |x: f64| (-rate * x).exp_m1() / (-rate).exp_m1();
            assert!(
                (mass(share) - 0.95).abs() < 1e-6,
                "{share}: {}",
                mass(share)
            );
            let key = |k: i32| mass(f64::from(k + 1) / 700.0) - mass(f64::from(k) / 700.0);
            let expected: Vec<f64> = (0..700).map(key).collect();
            assert_follows(&counts(&sampler, 6), &expected);
        }
    }

    #[test]
    fn a_hundred_million_keys_are_set_up_at_once_and_keep_the_law() {
        let start = std::time::Instant::now();
        let count = 100_000_000;
        let law = KeyDistribution::Zipfian {
            theta: 0.99,
            scrambled: false,
        };
        let sampler = sampler(law, count, 1);
        assert!(start.elapsed() < std::time::Duration::from_millis(10));
        let numbers: Vec<u64> = (0..SAMPLES).map(|i| sampler.number(i, 7)).collect();
        assert!(numbers.iter().all(|number| *number < count));
        // The sum of r^-0.99, by terms up to a thousand and by its integral from there.
        let head: f64 = (1..1000).map(|r| f64::from(r).powf(-0.99)).sum();
        let tail = ((count as f64 + 0.5).powf(0.01) - 999.5f64.powf(0.01)) / 0.01;
        let share = |keys: u64| {
            let below = numbers.iter().filter(|number| **number < keys);
            below.count() as f64 / SAMPLES as f64
        };
        // Five standard deviations of a share of 200,000 samples are at most 0.0056.
        assert!((share(1) - 1.0 / (head + tail)).abs() < 0.0056);
        assert!((share(999) - head / (head + tail)).abs() < 0.0056);
    }

    #[test]
    fn sampled_keys_are_used_in_a_row_too() {
        let ten = sampler(KeyDistribution::Uniform, 1_000_000, 10);
        let one = sampler(KeyDistribution::Uniform, 1_000_000, 1);
        for index in 0..1000 {
            assert_eq!(ten.number(index, 8), one.number(index / 10, 8));
        }
        assert_ne!(ten.number(9, 8), ten.number(10, 8));
    }

    #[test]
    fn laws_that_are_none_are_refused() {
        let refused = |distribution: KeyDistribution, count: u64, uses_per_key: u64| {
            let spec = KeySpec {
                format: "%d".to_owned(),
                digest: Digest::None,
                count: None,
                uses_per_key,
                distribution,
            };
            KeySampler::new(&spec, count).unwrap_err()
        };
        assert!(refused(KeyDistribution::Uniform, 0, 1).contains("one key"));
        assert!(refused(KeyDistribution::Uniform, 1, 0).contains("uses_per_key"));
        let theta = KeyDistribution::Latest { theta: 0.0 };
        assert!(refused(theta, 10, 1).contains("theta"));
        let exponential = KeyDistribution::Exponential { share: 0.0 };
        assert!(refused(exponential, 10, 1).contains("share"));
        let hotspot = KeyDistribution::Hotspot {
            hot_keys: 0.1,
            hot_operations: 1.1,
        };
        assert!(refused(hotspot, 10, 1).contains("hot_operations"));
    }
}
