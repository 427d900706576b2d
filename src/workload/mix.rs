//! The mix: which of a group's operations comes next, by weight, as a function of a random word.

/// Weights turned into thresholds on a 64-bit word.
#[derive(Clone, Debug)]
pub struct Mix {
    /// Where the words of each slot but the last end (not in); sorted.
    ends: Vec<u64>,
}

impl Mix {
    /// Weights are relative to their sum, each above 0 and finite; the error is a sentence.
    pub fn new(weights: &[f64]) -> Result<Mix, String> {
        if weights.is_empty() {
            return Err("a mix needs at least one operation".to_owned());
        }
        if let Some(wrong) = weights.iter().find(|w| !(**w > 0.0 && w.is_finite())) {
            return Err(format!("a weight must be a number above 0, not {wrong}"));
        }
        let total: f64 = weights.iter().sum();
        let mut sum = 0.0;
        let mut ends = Vec::with_capacity(weights.len() - 1);
        for weight in &weights[..weights.len() - 1] {
            sum += weight;
            // 2^64 as a float; the cast back saturates.
            ends.push((sum / total * 18_446_744_073_709_551_616.0) as u64);
        }
        Ok(Mix { ends })
    }

    /// Whether there is nothing to choose, so that no random word is needed.
    pub fn is_single(&self) -> bool {
        self.ends.is_empty()
    }

    /// The slot of a random word: the position of its weight.
    #[inline]
    pub fn slot(&self, random: u64) -> u16 {
        let below = self.ends.iter().take_while(|end| random >= **end);
        below.count() as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::word;

    #[test]
    fn slots_come_as_often_as_their_weights_say() {
        let weights = [95.0, 4.0, 1.0];
        let mix = Mix::new(&weights).unwrap();
        let mut counts = [0u32; 3];
        let total = 100_000;
        for index in 0..total {
            counts[usize::from(mix.slot(word(8, index)))] += 1;
        }
        // Chi-square with 2 degrees of freedom: above 13.8 with probability 0.001.
        let chi: f64 = counts
            .iter()
            .zip(weights)
            .map(|(count, weight)| {
                let expected = weight / 100.0 * total as f64;
                (f64::from(*count) - expected).powi(2) / expected
            })
            .sum();
        assert!(chi < 13.8, "{counts:?}: {chi}");
    }

    #[test]
    fn every_word_has_a_slot() {
        let mix = Mix::new(&[1.0, 1.0]).unwrap();
        assert_eq!(mix.slot(0), 0);
        assert_eq!(mix.slot((1 << 63) - 1), 0);
        assert_eq!(mix.slot(1 << 63), 1);
        assert_eq!(mix.slot(u64::MAX), 1);
        let single = Mix::new(&[3.0]).unwrap();
        assert!(single.is_single() && single.slot(u64::MAX) == 0);
    }

    #[test]
    fn weights_that_choose_nothing_are_refused() {
        for weights in [&[][..], &[0.0], &[1.0, -1.0], &[f64::NAN], &[f64::INFINITY]] {
            assert!(Mix::new(weights).is_err(), "{weights:?}");
        }
    }
}
