//! Keys: a key's number formatted and, where wanted, digested, written into a reused buffer.
//!
//! Knows formats and digests; which number an operation uses is `distribution`'s to say.

use super::spec::{Digest, KeySpec};
use fnv::FnvHasher;
use md5::{Digest as _, Md5};
use std::hash::Hasher;

/// A number's width at most: no store takes longer keys.
const WIDEST: usize = 255;

/// Makes keys of numbers, without allocating once its buffers have grown.
#[derive(Clone, Debug)]
pub struct KeyFormatter {
    format: Format,
    digest: Digest,
    /// The formatted key, where it is digested.
    plain: Vec<u8>,
    /// The number that `plain` holds; none while it is empty.
    plain_number: u64,
}

/// A format, split at its number.
#[derive(Clone, Debug)]
struct Format {
    before: Vec<u8>,
    after: Vec<u8>,
    width: usize,
    /// What fills the width: `0` or a space.
    padding: u8,
}

impl KeyFormatter {
    /// The error is `check_format`'s.
    pub fn new(spec: &KeySpec) -> Result<KeyFormatter, String> {
        Ok(KeyFormatter {
            format: Format::parse(&spec.format)?,
            digest: spec.digest,
            plain: Vec::new(),
            plain_number: 0,
        })
    }

    /// Replaces what is in `key` by the key of `number`. `key` is empty or holds that of `held`: the next number's key is
    /// made of it by counting up, which costs a third of making it anew.
    pub fn write(&mut self, number: u64, held: u64, key: &mut Vec<u8>) {
        match self.digest {
            Digest::None => self.format.write(number, held, key),
            Digest::Md5 => {
                let digest = Md5::digest(self.plain(number));
                write_hex(&digest, key);
            }
            Digest::Fnv1a => {
                let mut hasher = FnvHasher::default();
                hasher.write(self.plain(number));
                write_hex(&hasher.finish().to_be_bytes(), key);
            }
        }
    }

    fn plain(&mut self, number: u64) -> &[u8] {
        self.format
            .write(number, self.plain_number, &mut self.plain);
        self.plain_number = number;
        &self.plain
    }
}

/// Whether a format has its one number: `%d`, `%Nd` or `%0Nd`; `%%` is a percent sign. The error is a sentence that says
/// what is wrong and what would be right.
pub fn check_format(format: &str) -> Result<(), String> {
    Format::parse(format).map(|_| ())
}

impl Format {
    fn parse(text: &str) -> Result<Format, String> {
        let mut texts = vec![Vec::new()];
        let mut number = None;
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('%') {
            let literal = texts.last_mut().expect("there is always one text");
            literal.extend_from_slice(before.as_bytes());
            if let Some(after) = after.strip_prefix('%') {
                literal.push(b'%');
                rest = after;
                continue;
            }
            let (width, padding, after) = conversion(after)?;
            if number.replace((width, padding)).is_some() {
                return Err(format!(
                    "the key format \"{text}\" has more than one number; keep one of them"
                ));
            }
            texts.push(Vec::new());
            rest = after;
        }
        let literal = texts.last_mut().expect("there is always one text");
        literal.extend_from_slice(rest.as_bytes());
        match (number, texts.as_mut_slice()) {
            (Some((width, padding)), [before, after]) => Ok(Format {
                before: std::mem::take(before),
                after: std::mem::take(after),
                width,
                padding,
            }),
            _ => Err(format!(
                "the key format \"{text}\" has no number; write \"{text}%d\" or \"{text}%010d\""
            )),
        }
    }

    fn write(&self, number: u64, held: u64, key: &mut Vec<u8>) {
        if held.wrapping_add(1) == number && self.count_up(key) {
            return;
        }
        let mut digits = [0; 20];
        let digits = decimal(number, &mut digits);
        let padding = self.width.saturating_sub(digits.len());
        key.clear();
        key.extend_from_slice(&self.before);
        key.resize(key.len() + padding, self.padding);
        key.extend_from_slice(digits);
        key.extend_from_slice(&self.after);
    }

    /// Makes the next number's key of a key, unless the number gets longer; then the key is spoilt.
    fn count_up(&self, key: &mut [u8]) -> bool {
        let end = key.len().saturating_sub(self.after.len());
        let Some(number) = key.get_mut(self.before.len()..end) else {
            return false;
        };
        for digit in number.iter_mut().rev() {
            match digit {
                b'0'..=b'8' => {
                    *digit += 1;
                    return true;
                }
                b'9' => *digit = b'0',
                // A space of the padding.
                _ => return false,
            }
        }
        false
    }
}

/// Width, padding and what follows of the text after a `%`.
fn conversion(text: &str) -> Result<(usize, u8, &str), String> {
    let length = text.find(|c: char| !c.is_ascii_digit());
    let (digits, rest) = text.split_at(length.unwrap_or(text.len()));
    let Some(rest) = rest.strip_prefix('d') else {
        let shown: String = rest.chars().take(1).collect();
        return Err(format!(
            "`%{digits}{shown}` is no number of a key format; use `%d` or `%010d`, and `%%` for a percent sign"
        ));
    };
    let padding = if digits.starts_with('0') { b'0' } else { b' ' };
    let width = match digits {
        "" => 0,
        digits => digits.parse().unwrap_or(usize::MAX),
    };
    if width > WIDEST {
        return Err(format!(
            "`%{digits}d` is wider than a key may be; the width is at most {WIDEST}"
        ));
    }
    Ok((width, padding, rest))
}

/// The decimal digits of a number, at the end of `buffer`.
pub(super) fn decimal(mut number: u64, buffer: &mut [u8; 20]) -> &[u8] {
    let mut start = buffer.len();
    loop {
        start -= 1;
        buffer[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &buffer[start..];
        }
    }
}

fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.resize(bytes.len() * 2, 0);
    for (pair, byte) in out.chunks_exact_mut(2).zip(bytes) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::spec::KeyDistribution;

    fn formatter(format: &str, digest: Digest) -> KeyFormatter {
        let spec = KeySpec {
            format: format.to_owned(),
            digest,
            count: None,
            uses_per_key: 1,
            distribution: KeyDistribution::Sequential,
        };
        KeyFormatter::new(&spec).unwrap()
    }

    fn key(format: &str, digest: Digest, number: u64) -> String {
        let mut formatter = formatter(format, digest);
        let mut key = Vec::new();
        formatter.write(7, 0, &mut key);
        formatter.write(number, 7, &mut key);
        String::from_utf8(key).unwrap()
    }

    #[test]
    fn counting_up_gives_the_same_keys_as_formatting() {
        for format in ["user%04d", "9%d9", "%6d|", "%d", "%02d-9"] {
            for digest in [Digest::None, Digest::Md5, Digest::Fnv1a] {
                let mut counting = formatter(format, digest);
                let mut counted = Vec::new();
                counting.write(0, u64::MAX, &mut counted);
                for number in 1..12_000 {
                    counting.write(number, number - 1, &mut counted);
                    let mut made = Vec::new();
                    formatter(format, digest).write(number, 0, &mut made);
                    assert_eq!(counted, made, "{format} of {number}");
                }
            }
        }
    }

    #[test]
    fn numbers_are_formatted_as_printf_does() {
        assert_eq!(key("user%d", Digest::None, 7), "user7");
        assert_eq!(key("user%010d:x", Digest::None, 42), "user0000000042:x");
        assert_eq!(key("%5d|", Digest::None, 42), "   42|");
        assert_eq!(key("100%%-%03d-%%", Digest::None, 12345), "100%-12345-%");
        assert_eq!(key("%d", Digest::None, u64::MAX), "18446744073709551615");
    }

    #[test]
    fn keys_of_the_first_experiment_are_lower_hex_md5() {
        // Made with md5sum of coreutils.
        let format = "stress-test-%010d";
        assert_eq!(
            key(format, Digest::Md5, 0),
            "239cf7540ba91cc136a54bdda1447630"
        );
        assert_eq!(
            key(format, Digest::Md5, 999),
            "1ba97c5d9c739e2956f756cf5f1a5ef1"
        );
    }

    #[test]
    fn fnv1a_is_the_64_bit_one() {
        // Made with another implementation that gives the published values of "a" and "foobar".
        assert_eq!(key("%d", Digest::Fnv1a, 0), "af63ad4c86019caf");
        assert_eq!(key("user%010d", Digest::Fnv1a, 12), "e10f60696a470911");
    }

    #[test]
    fn a_format_without_exactly_one_number_is_refused_with_what_would_do() {
        let cases = [
            ("user", "write \"user%d\""),
            ("%d-%d", "more than one number"),
            ("user%s", "`%s` is no number"),
            ("user%", "`%` is no number"),
            ("user%08x", "`%08x` is no number"),
            ("%0256d", "at most 255"),
            ("%099999999999999999999d", "at most 255"),
            ("", "has no number"),
        ];
        for (format, expected) in cases {
            let error = check_format(format).unwrap_err();
            assert!(error.contains(expected), "{format}: {error}");
        }
        assert_eq!(check_format("%%%d"), Ok(()));
    }

    proptest::proptest! {
        #[test]
        fn any_format_is_refused_or_makes_a_key(format in "[a-z%0-9d é]{0,12}", number: u64) {
            if check_format(&format).is_ok() {
                let key = key(&format, Digest::None, number);
                proptest::prop_assert!(key.contains(&number.to_string()));
            }
        }
    }
}
