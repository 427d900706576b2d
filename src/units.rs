//! Durations, sizes and rates: parsed and printed here and nowhere else.
//!
//! Durations and rates are strings with their unit (`1.5s`, `20k/s`), sizes too (`40KiB`) or bare integers of bytes.

use std::time::Duration;

/// `1.5s`, `10min`, `500ms`, `20us`, `100ns`, `2h`. Errors are sentences that say what is allowed.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let nanoseconds = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "min" => 60e9,
        "h" => 3_600e9,
        "" => {
            return Err(format!(
                "a duration needs its unit: \"{number}s\" or \"{number}ms\""
            ));
        }
        _ => {
            return Err(format!(
                "`{unit}` is no unit of time; use ns, us, ms, s, min or h"
            ));
        }
    };
    let total = parse_number(number)? * nanoseconds;
    if total > u64::MAX as f64 {
        return Err("this duration is too long".to_owned());
    }
    Ok(Duration::from_nanos(total.round() as u64))
}

/// Bytes of `40KiB`, `1.5MiB`, `2GiB`, `64KB`, `512B`.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let bytes = match unit {
        "B" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1024f64.powi(2),
        "GiB" => 1024f64.powi(3),
        "TiB" => 1024f64.powi(4),
        "KB" | "kB" => 1e3,
        "MB" => 1e6,
        "GB" => 1e9,
        "TB" => 1e12,
        "" => {
            return Err(format!(
                "a size in a string needs its unit: \"{number}B\" or \"{number}KiB\""
            ));
        }
        _ => {
            return Err(format!(
                "`{unit}` is no unit of size; use B, KiB, MiB, GiB, TiB, KB, MB, GB or TB"
            ));
        }
    };
    let total = parse_number(number)? * bytes;
    if total.fract() != 0.0 {
        return Err(format!("\"{text}\" is no whole number of bytes"));
    }
    if total >= i64::MAX as f64 {
        return Err("this size is too large".to_owned());
    }
    Ok(total as u64)
}

/// Operations per second of `20k/s`, `1.5M/s`, `100/min`, `5/h`.
pub fn parse_rate(text: &str) -> Result<f64, String> {
    let Some((amount, per)) = text.split_once('/') else {
        return Err(format!("a rate needs its time: \"{text}/s\""));
    };
    let seconds = match per.trim() {
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        other => return Err(format!("`{other}` is no time of a rate; use s, min or h")),
    };
    let (number, unit) = split(amount.trim());
    let factor = match unit {
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        _ => return Err(format!("`{unit}` is no factor of a rate; use k, M or G")),
    };
    Ok(parse_number(number)? * factor / seconds)
}

/// CPU numbers of a list as taskset takes it, in its order: `0-1,3`; empty for an empty text.
pub fn parse_cpus(text: &str) -> Result<Vec<u32>, String> {
    /// What the kernel's masks hold.
    const MOST: u32 = 1024;
    let mut cpus = Vec::new();
    let parts = text.split(',').map(str::trim);
    for part in parts.filter(|part| !part.is_empty()) {
        let number = |text: &str| {
            let parsed = text.trim().parse::<u32>().ok().filter(|cpu| *cpu < MOST);
            parsed.ok_or_else(|| format!("`{part}` is no CPU; write `0`, `1-3` or `0,2`"))
        };
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(format!("`{part}` ends before it begins"));
        }
        cpus.extend(first..=last);
    }
    match cpus.is_empty() && !text.trim().is_empty() {
        true => Err(format!("`{text}` names no CPU")),
        false => Ok(cpus),
    }
}

/// Number and unit of `40KiB`, as they stand.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .unwrap_or(text.len());
    (text[..end].trim(), text[end..].trim())
}

fn parse_number(text: &str) -> Result<f64, String> {
    let plain = text.replace('_', "");
    match plain.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        _ => Err(format!("`{text}` is no number")),
    }
}

/// `1.5s`, `250ms`, `3min 20s`: for people, three significant digits.
pub fn format_duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if duration.is_zero() {
        return "0s".to_owned();
    }
    match seconds {
        s if s < 1e-6 => format!("{}ns", duration.as_nanos()),
        s if s < 1e-3 => format!("{}us", three_digits(s * 1e6)),
        s if s < 1.0 => format!("{}ms", three_digits(s * 1e3)),
        s if s < 60.0 => format!("{}s", three_digits(s)),
        s if s < 3600.0 => two_units(duration.as_secs(), 60, "min", "s"),
        _ => two_units(duration.as_secs() / 60, 60, "h", "min"),
    }
}

fn two_units(total: u64, per: u64, large: &str, small: &str) -> String {
    match total % per {
        0 => format!("{}{large}", total / per),
        rest => format!("{}{large} {rest}{small}", total / per),
    }
}

/// `41.0KiB`, `1.50GiB`, `512B`: for people, three significant digits.
pub fn format_size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{}{}", three_digits(value), UNITS[unit])
}

/// `94.3k/s`: for people, three significant digits.
pub fn format_rate(per_second: f64) -> String {
    match per_second {
        r if r >= 1e6 => format!("{}M/s", three_digits(r / 1e6)),
        r if r >= 1e3 => format!("{}k/s", three_digits(r / 1e3)),
        r => format!("{}/s", three_digits(r)),
    }
}

fn three_digits(value: f64) -> String {
    let text = match value {
        v if v >= 99.95 => return format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_as_written() {
        assert_eq!(parse_duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse_duration("10min"), Ok(Duration::from_secs(600)));
        assert_eq!(parse_size("40KiB"), Ok(40_960));
        assert_eq!(parse_size("1.5KB"), Ok(1_500));
        assert_eq!(parse_rate("20k/s"), Ok(20_000.0));
        assert_eq!(parse_rate("120/min"), Ok(2.0));
    }

    #[test]
    fn a_missing_or_foreign_unit_is_refused_with_the_right_one() {
        assert!(parse_duration("10").unwrap_err().contains("10s"));
        assert!(parse_duration("10m").unwrap_err().contains("min"));
        assert!(parse_size("10").unwrap_err().contains("10B"));
        assert!(parse_size("1.5B").is_err());
        assert!(parse_rate("20k").unwrap_err().contains("/s"));
    }

    #[test]
    fn cpus_are_read_as_taskset_takes_them() {
        assert_eq!(parse_cpus("0-1,3"), Ok(vec![0, 1, 3]));
        assert_eq!(parse_cpus(" 3, 1 - 2"), Ok(vec![3, 1, 2]));
        assert_eq!(parse_cpus(""), Ok(Vec::new()));
        for wrong in ["a", "1-", "-1", "2-1", "1024", "0-99999", ","] {
            assert!(parse_cpus(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn people_read_three_digits() {
        assert_eq!(format_duration(Duration::from_micros(1500)), "1.5ms");
        assert_eq!(format_duration(Duration::from_secs(200)), "3min 20s");
        assert_eq!(format_size(41_960), "41KiB");
        assert_eq!(format_rate(94_321.0), "94.3k/s");
    }
}
