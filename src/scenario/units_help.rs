//! What somebody meant who wrote a unit that is none: `10m` is `10min`, `64k` is `64KiB`.
//!
//! Only for the corrected line of a message; nothing is ever read this way.

use crate::units;

const TIMES: &[(&str, &str)] = &[
    ("", "s"),
    ("sec", "s"),
    ("secs", "s"),
    ("second", "s"),
    ("seconds", "s"),
    ("m", "min"),
    ("mins", "min"),
    ("minute", "min"),
    ("minutes", "min"),
    ("hr", "h"),
    ("hour", "h"),
    ("hours", "h"),
    ("msec", "ms"),
    ("millis", "ms"),
    ("usec", "us"),
    ("micros", "us"),
];

const SIZES: &[(&str, &str)] = &[
    ("", "B"),
    ("b", "B"),
    ("byte", "B"),
    ("bytes", "B"),
    ("k", "KiB"),
    ("kib", "KiB"),
    ("kb", "KB"),
    ("m", "MiB"),
    ("mib", "MiB"),
    ("mb", "MB"),
    ("g", "GiB"),
    ("gib", "GiB"),
    ("gb", "GB"),
    ("t", "TiB"),
    ("tib", "TiB"),
    ("tb", "TB"),
];

/// The corrected duration, where one can be told.
pub fn duration(text: &str) -> Option<String> {
    corrected(text, TIMES).filter(|right| units::parse_duration(right).is_ok())
}

/// The corrected size, where one can be told.
pub fn size(text: &str) -> Option<String> {
    corrected(text, SIZES).filter(|right| units::parse_size(right).is_ok())
}

/// The corrected rate, where one can be told.
pub fn rate(text: &str) -> Option<String> {
    let (amount, per) = text.split_once('/').unwrap_or((text, "s"));
    let amount = amount.trim().replace(['K'], "k").replace('m', "M");
    let (_, per) = split(per);
    let per = TIMES
        .iter()
        .find(|(wrong, _)| *wrong == per)
        .map_or(per, |(_, right)| right);
    let right = format!("{amount}/{per}");
    units::parse_rate(&right).is_ok().then_some(right)
}

fn corrected(text: &str, table: &[(&str, &str)]) -> Option<String> {
    let (number, unit) = split(text.trim());
    let unit = unit.to_lowercase();
    let (_, right) = table.iter().find(|(wrong, _)| *wrong == unit)?;
    Some(format!("{number}{right}"))
}

fn split(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(text.len());
    (text[..end].trim(), text[end..].trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_slips_are_corrected() {
        assert_eq!(duration("10m").as_deref(), Some("10min"));
        assert_eq!(duration("1.5 sec").as_deref(), Some("1.5s"));
        assert_eq!(size("64k").as_deref(), Some("64KiB"));
        assert_eq!(size("10").as_deref(), Some("10B"));
        assert_eq!(rate("20k").as_deref(), Some("20k/s"));
        assert_eq!(rate("20K/sec").as_deref(), Some("20k/s"));
        assert_eq!(duration("soon"), None);
    }
}
