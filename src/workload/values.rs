//! Values: their size and bytes as functions of (seed, key number), so that any phase can verify what another wrote.
//!
//! Knows nothing of operations or of how keys are chosen. A value is written into a reused buffer.

use super::keys::decimal;
use super::mix::Mix;
use super::spec::{Content, SizeSpec, ValueSpec};
use crate::random::{self, Words};
use rand::Rng;
use sha2::{Digest, Sha256};

/// Random and text values are made of pieces of this many bytes, each as compressible as the whole.
const PIECE: usize = 1024;

/// What a compressor saves of random text: its symbols carry 5.6 of 8 bits, of which entropy coders reach the better part.
const SAVED_OF_TEXT: f64 = 0.28;

/// Makes values. Shared by all sessions of a group; the seed is handed in.
#[derive(Debug)]
pub struct ValueMaker {
    sizes: Sizes,
    bytes: Bytes,
}

#[derive(Debug)]
enum Sizes {
    Fixed(u64),
    /// Both ends in.
    Uniform(i64, i64),
    Choices(Vec<u64>, Mix),
}

#[derive(Debug)]
enum Bytes {
    RepeatIndex,
    /// The share, in (0, 1], of each piece that is random; the rest is zeros.
    Random {
        fresh: f64,
    },
    /// Likewise, the rest is spaces.
    Text {
        fresh: f64,
    },
    File(Vec<u8>),
}

impl ValueMaker {
    /// Errors are sentences: a range that is empty, a file that cannot be read or is not the one that was planned.
    pub fn new(spec: &ValueSpec) -> Result<ValueMaker, String> {
        Ok(ValueMaker {
            sizes: Sizes::new(&spec.size)?,
            bytes: Bytes::new(&spec.content, spec.compressible)?,
        })
    }

    /// Where the values of a scenario's seed start: to be made once and handed to `write` and `size`.
    pub fn base(seed: u64) -> u64 {
        random::base(&[seed, 0x7661_6c75_6573])
    }

    /// Bytes of the value of a key.
    pub fn size(&self, base: u64, key: u64) -> usize {
        let random = random::word(random::word(base, key), 0);
        match &self.sizes {
            Sizes::Fixed(bytes) => *bytes as usize,
            Sizes::Uniform(from, to) => random::between(random, *from, *to) as usize,
            Sizes::Choices(sizes, mix) => sizes[usize::from(mix.slot(random))] as usize,
        }
    }

    /// Replaces what is in `value` by the value of a key.
    pub fn write(&self, base: u64, key: u64, value: &mut Vec<u8>) {
        let size = self.size(base, key);
        let stream = random::word(random::word(base, key), 1);
        value.clear();
        value.reserve(size);
        match &self.bytes {
            Bytes::RepeatIndex => repeat_index(key, size, value),
            Bytes::Random { fresh } => in_pieces(*fresh, 0, size, value, {
                let mut words = Words::new(stream);
                move |bytes| words.fill_bytes(bytes)
            }),
            Bytes::Text { fresh } => in_pieces(*fresh, b' ', size, value, {
                let mut words = Words::new(stream);
                move |bytes| random::fill_text(words.next_word(), bytes)
            }),
            Bytes::File(content) => {
                let mut from = random::below(stream, content.len() as u64) as usize;
                while value.len() < size {
                    let length = (size - value.len()).min(content.len() - from);
                    value.extend_from_slice(&content[from..from + length]);
                    from = 0;
                }
            }
        }
    }
}

impl Sizes {
    fn new(spec: &SizeSpec) -> Result<Sizes, String> {
        match spec {
            SizeSpec::Fixed { bytes } => Ok(Sizes::Fixed(*bytes)),
            SizeSpec::Uniform {
                from_bytes,
                to_bytes,
            } if from_bytes <= to_bytes => Ok(Sizes::Uniform(*from_bytes as i64, *to_bytes as i64)),
            SizeSpec::Uniform {
                from_bytes,
                to_bytes,
            } => Err(format!(
                "no size is from {from_bytes} to {to_bytes} bytes: `from` is above `to`"
            )),
            SizeSpec::Choices { choices } => {
                let weights: Vec<f64> = choices.iter().map(|choice| choice.weight).collect();
                let sizes = choices.iter().map(|choice| choice.bytes).collect();
                Ok(Sizes::Choices(sizes, Mix::new(&weights)?))
            }
        }
    }
}

impl Bytes {
    fn new(content: &Content, compressible: f64) -> Result<Bytes, String> {
        if !(0.0..1.0).contains(&compressible) {
            return Err(format!(
                "`compressible` must be a share from 0 to below 1, not {compressible}"
            ));
        }
        let kept = 1.0 - compressible;
        match content {
            Content::RepeatIndex => Ok(Bytes::RepeatIndex),
            Content::Random => Ok(Bytes::Random { fresh: kept }),
            Content::Text => Ok(Bytes::Text {
                fresh: (kept / (1.0 - SAVED_OF_TEXT)).min(1.0),
            }),
            Content::File { path, sha256 } => Ok(Bytes::File(read_content(path, sha256)?)),
        }
    }
}

/// `%010d` of the key's number, repeated and cut.
fn repeat_index(key: u64, size: usize, value: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let digits = decimal(key, &mut digits);
    value.resize(10usize.saturating_sub(digits.len()), b'0');
    value.extend_from_slice(digits);
    // Doubling copies large runs; every length is a multiple of the pattern's, so the pattern goes on.
    while value.len() < size {
        let length = value.len().min(size - value.len());
        value.extend_from_within(..length);
    }
    value.truncate(size);
}

/// Makes a value of pieces whose first part is `fill`ed and whose rest is `filler`.
fn in_pieces(
    fresh: f64,
    filler: u8,
    size: usize,
    value: &mut Vec<u8>,
    mut fill: impl FnMut(&mut [u8]),
) {
    let mut piece = [filler; PIECE];
    while value.len() < size {
        let length = PIECE.min(size - value.len());
        let filled = (length as f64 * fresh).round() as usize;
        fill(&mut piece[..filled]);
        piece[filled..length].fill(filler);
        value.extend_from_slice(&piece[..length]);
    }
}

/// The content of a file, which must be the one that was hashed into the plan (an empty hash is none).
fn read_content(path: &str, sha256: &str) -> Result<Vec<u8>, String> {
    let content = std::fs::read(path)
        .map_err(|error| format!("cannot read the values' content from {path}: {error}"))?;
    if content.is_empty() {
        return Err(format!("{path} is empty, so no value can be cut from it"));
    }
    let found: String = Sha256::digest(&content)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    if !sha256.is_empty() && found != sha256 {
        return Err(format!("{path} has changed since the plan was made"));
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::spec::SizeChoice;
    use std::io::Write;

    fn maker(size: SizeSpec, content: Content, compressible: f64) -> ValueMaker {
        let spec = ValueSpec {
            size,
            content,
            compressible,
        };
        ValueMaker::new(&spec).unwrap()
    }

    fn value(maker: &ValueMaker, seed: u64, key: u64) -> Vec<u8> {
        let mut value = b"left over".to_vec();
        maker.write(ValueMaker::base(seed), key, &mut value);
        value
    }

    fn fixed(bytes: u64) -> SizeSpec {
        SizeSpec::Fixed { bytes }
    }

    /// Share that deflate saves of some hundred values.
    fn saved(maker: &ValueMaker) -> f64 {
        let mut encoder =
            flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
        let mut total = 0;
        for key in 0..100 {
            let value = value(maker, 1, key);
            total += value.len();
            encoder.write_all(&value).unwrap();
        }
        1.0 - encoder.finish().unwrap().len() as f64 / total as f64
    }

    #[test]
    fn values_of_the_first_experiment_are_the_padded_index_repeated() {
        let small = maker(fixed(2_560), Content::RepeatIndex, 0.0);
        assert_eq!(value(&small, 42, 999), b"0000000999".repeat(256));
        let large = maker(fixed(41_960), Content::RepeatIndex, 0.0);
        assert_eq!(value(&large, 42, 7), b"0000000007".repeat(4_196));
        let cut = maker(fixed(13), Content::RepeatIndex, 0.0);
        assert_eq!(value(&cut, 1, 12), b"0000000012000");
        assert_eq!(value(&cut, 1, 123_456_789_012), b"1234567890121");
        let shorter = maker(fixed(3), Content::RepeatIndex, 0.0);
        assert_eq!(value(&shorter, 1, 12), b"000");
    }

    #[test]
    fn values_differ_by_key_and_seed_and_by_nothing_else() {
        for content in [Content::Random, Content::Text] {
            let maker = maker(fixed(5_000), content, 0.3);
            assert_eq!(value(&maker, 1, 2), value(&maker, 1, 2));
            assert_ne!(value(&maker, 1, 2), value(&maker, 1, 3));
            assert_ne!(value(&maker, 1, 2), value(&maker, 2, 2));
        }
    }

    #[test]
    fn random_bytes_are_all_equally_likely() {
        let value = value(&maker(fixed(256_000), Content::Random, 0.0), 3, 4);
        let mut counts = [0.0; 256];
        value
            .iter()
            .for_each(|byte| counts[usize::from(*byte)] += 1.0);
        let chi: f64 = counts
            .iter()
            .map(|n: &f64| (n - 1000.0).powi(2) / 1000.0)
            .sum();
        // 255 degrees of freedom: 330 is exceeded once in a thousand.
        assert!(chi < 330.0, "{chi}");
    }

    #[test]
    fn a_compressor_saves_the_share_that_was_asked_for() {
        for share in [0.0, 0.25, 0.5, 0.9] {
            let random = saved(&maker(fixed(4_000), Content::Random, share));
            assert!((random - share).abs() < 0.02, "{share}: {random}");
        }
        for share in [0.3, 0.5, 0.9] {
            let text = saved(&maker(fixed(4_000), Content::Text, share));
            assert!((text - share).abs() < 0.03, "{share}: {text}");
        }
        assert!(saved(&maker(fixed(4_000), Content::Text, 0.0)) < 0.32);
    }

    #[test]
    fn sizes_follow_their_law_and_keep_to_the_key() {
        let range = SizeSpec::Uniform {
            from_bytes: 10,
            to_bytes: 19,
        };
        let range = maker(range, Content::Random, 0.0);
        let mut counts = [0u32; 10];
        for key in 0..10_000 {
            let length = value(&range, 5, key).len();
            assert_eq!(length, range.size(ValueMaker::base(5), key));
            counts[length - 10] += 1;
        }
        assert!(counts.iter().all(|n| (850..1150).contains(n)), "{counts:?}");

        let choices = [(100, 3.0), (0, 1.0)].map(|(bytes, weight)| SizeChoice { bytes, weight });
        let choices = SizeSpec::Choices {
            choices: choices.to_vec(),
        };
        let choices = maker(choices, Content::Text, 0.0);
        let full = (0..10_000).filter(|key| value(&choices, 5, *key).len() == 100);
        assert!((7_300..7_700).contains(&full.count()));
    }

    #[test]
    fn file_content_is_cut_at_a_place_of_the_key_and_goes_round() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"abcdefghij").unwrap();
        let content = |sha256: &str| Content::File {
            path: file.path().to_str().unwrap().to_owned(),
            sha256: sha256.to_owned(),
        };
        // printf abcdefghij | sha256sum
        let sha256 = "72399361da6a7754fec986dca5b7cbaf1c810a28ded4abaf56b2106d06cb78b0";
        let maker = maker(fixed(25), content(sha256), 0.0);
        let mut places = std::collections::BTreeSet::new();
        for key in 0..100 {
            let value = value(&maker, 1, key);
            assert_eq!(value.len(), 25);
            let round = b"abcdefghij".repeat(4);
            let place = usize::from(value[0] - b'a');
            assert_eq!(value, &round[place..place + 25]);
            places.insert(place);
        }
        assert_eq!(places.len(), 10);
        let spec = ValueSpec {
            size: fixed(1),
            content: content(&sha256.replace('7', "8")),
            compressible: 0.0,
        };
        assert!(ValueMaker::new(&spec).unwrap_err().contains("changed"));
    }

    #[test]
    fn values_that_cannot_be_made_are_refused() {
        let refused = |size, content, compressible| {
            let spec = ValueSpec {
                size,
                content,
                compressible,
            };
            ValueMaker::new(&spec).unwrap_err()
        };
        let empty = SizeSpec::Uniform {
            from_bytes: 2,
            to_bytes: 1,
        };
        assert!(refused(empty, Content::Random, 0.0).contains("above `to`"));
        let none = SizeSpec::Choices { choices: vec![] };
        assert!(!refused(none, Content::Random, 0.0).is_empty());
        assert!(refused(fixed(1), Content::Random, 1.0).contains("compressible"));
        let missing = Content::File {
            path: "no/such/file".to_owned(),
            sha256: String::new(),
        };
        assert!(refused(fixed(1), missing, 0.0).contains("no/such/file"));
    }
}
