//! Random numbers as functions of a position: the same words for the same (stream, index), whoever asks and when.
//!
//! Holds the word function, unbiased whole numbers, Zipf's law and random text, which keys, values and arguments share.
//! Knows nothing of operations. Not for secrets: the words are easy to predict.

use rand::TryRng;
use rand::distr::Distribution;
use rand_distr::Zipf;
use std::convert::Infallible;

/// The increment of SplitMix64: the odd number nearest to 2^64 over the golden ratio.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The exponent of `$zipf`, and what YCSB made customary.
pub const CUSTOMARY_THETA: f64 = 0.99;

/// Word `index` of the stream that starts at `base`: SplitMix64, entered anywhere.
#[inline]
pub fn word(base: u64, index: u64) -> u64 {
    let mut z = base.wrapping_add(index.wrapping_add(1).wrapping_mul(STEP));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The start of a stream: any two different lists of numbers give unrelated streams.
pub fn base(numbers: &[u64]) -> u64 {
    let mut bytes = Vec::with_capacity(numbers.len() * 8);
    for number in numbers {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    xxhash_rust::xxh3::xxh3_64(&bytes)
}

/// A number in [0, 1) of a word; 53 bits.
#[inline]
pub fn unit(word: u64) -> f64 {
    (word >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// A number in [0, n) of a word, each equally likely; n >= 1. A word that would favour some is replaced by the next
/// one of its own stream.
#[inline]
pub fn below(random: u64, n: u64) -> u64 {
    let mut product = u128::from(random) * u128::from(n);
    if (product as u64) < n {
        // Only here is the division needed: 2^64 mod n low parts must be refused.
        let refused = n.wrapping_neg() % n;
        let mut round = 0;
        while (product as u64) < refused {
            product = u128::from(word(random, round)) * u128::from(n);
            round += 1;
        }
    }
    (product >> 64) as u64
}

/// A number in [from, to], both ends in, each equally likely.
#[inline]
pub fn between(random: u64, from: i64, to: i64) -> i64 {
    match (to.wrapping_sub(from) as u64).checked_add(1) {
        Some(n) => from.wrapping_add(below(random, n) as i64),
        None => random as i64,
    }
}

/// A stream as the `rand` crates want one: words `0..` of a base.
#[derive(Clone, Debug)]
pub struct Words {
    base: u64,
    next: u64,
}

impl Words {
    pub fn new(base: u64) -> Words {
        Words { base, next: 0 }
    }

    #[inline]
    pub fn next_word(&mut self) -> u64 {
        let random = word(self.base, self.next);
        self.next += 1;
        random
    }
}

impl TryRng for Words {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok((self.next_word() >> 32) as u32)
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.next_word())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_word().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

/// Zipf's law over ranks: rank r in [0, count) with probability proportional to 1 / (r + 1)^theta. Its set-up takes the
/// same time for ten ranks and for a hundred million.
#[derive(Clone, Copy, Debug)]
pub struct Ranks {
    law: Zipf<f64>,
    last: u64,
}

impl Ranks {
    /// `count` >= 1, `theta` > 0 and finite; the error is a sentence.
    pub fn new(count: u64, theta: f64) -> Result<Ranks, String> {
        if !(theta > 0.0 && theta.is_finite()) {
            return Err(format!("`theta` must be a number above 0, not {theta}"));
        }
        // Next to 1 the closed form divides nothing by nothing; 1 itself has its own.
        let theta = if (theta - 1.0).abs() < 1e-9 {
            1.0
        } else {
            theta
        };
        let law = Zipf::new(count as f64, theta)
            .map_err(|_| "Zipf's law needs at least one key".to_owned())?;
        let last = count - 1;
        Ok(Ranks { law, last })
    }

    #[inline]
    pub fn rank(&self, random: u64) -> u64 {
        let rank = self.law.sample(&mut Words::new(random)) as u64;
        rank.saturating_sub(1).min(self.last)
    }
}

/// Symbols of random text, 7 bits each: letters, digits and, on average, a space among nine.
const SYMBOLS: &[u8; 128] = b"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz\
    abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789              ";

/// Symbols made of one word.
const SYMBOLS_PER_WORD: usize = 9;

/// Fills `text` with words of ASCII letters and digits: the stream that starts at `base`.
pub fn fill_text(base: u64, text: &mut [u8]) {
    let mut words = Words::new(base);
    for chunk in text.chunks_mut(SYMBOLS_PER_WORD) {
        let mut random = words.next_word();
        for symbol in chunk {
            *symbol = SYMBOLS[(random & 127) as usize];
            random >>= 7;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_splitmix64() {
        // The first outputs of SplitMix64 seeded with 1234567, as published with it.
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
        ];
        for (index, expected) in expected.into_iter().enumerate() {
            assert_eq!(word(1_234_567, index as u64), expected);
        }
    }

    #[test]
    fn numbers_below_n_are_unbiased_even_where_n_is_close_to_the_words_range() {
        // With n = 3/4 of 2^64 a plain multiplication would give a third of the numbers twice as often.
        let n = 3u64 << 62;
        let third = 1u64 << 62;
        let mut counts = [0u32; 3];
        for index in 0..30_000 {
            counts[(below(word(5, index), n) / third) as usize] += 1;
        }
        for count in counts {
            assert!((9_600..10_400).contains(&count), "{counts:?}");
        }
        assert_eq!(below(u64::MAX, 10), 9);
        assert_eq!(below(12345, 1), 0);
    }

    #[test]
    fn ranges_reach_both_ends_and_never_leave_them() {
        let drawn: Vec<i64> = (0..1000).map(|i| between(word(1, i), -2, 2)).collect();
        assert_eq!(drawn.iter().min(), Some(&-2));
        assert_eq!(drawn.iter().max(), Some(&2));
        assert_eq!(between(9, 7, 7), 7);
        assert_eq!(between(u64::MAX, i64::MIN, i64::MAX), -1);
    }

    #[test]
    fn a_theta_that_is_no_law_is_refused() {
        for theta in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(Ranks::new(10, theta).is_err(), "{theta}");
        }
        assert!(Ranks::new(0, 0.99).is_err());
    }

    #[test]
    fn text_holds_letters_digits_and_spaces_alone() {
        let mut text = [0; 5000];
        fill_text(3, &mut text);
        assert!(text.iter().all(|b| b.is_ascii_alphanumeric() || *b == b' '));
        let spaces = text.iter().filter(|b| **b == b' ').count();
        assert!((400..700).contains(&spaces), "{spaces}");
    }
}
