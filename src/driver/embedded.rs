//! What embedded stores have in common: errors told apart, counters kept as decimal text, and the test kit for what
//! happens to their files.
//!
//! Knows no store and no driver; read a driver's folder (`redb` is the shortest) for how it is used.

use crate::op::{ErrorClass, Failure};
use crate::rows::{Kind, Row};
use std::path::Path;

#[cfg(test)]
pub mod kit;

/// The option of all stores with ordered keys.
pub const SCAN_LIMIT: Row = Row::new(
    "scan_limit",
    Kind::Integer {
        min: 1,
        max: 1_000_000,
    },
    "How many entries a `scan` reads at most, in the order of the keys, from its own key on.",
)
.default("100");

/// Makes the private directory of a store.
pub fn make_directory(path: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(path).map_err(|error| {
        io_failure(
            &error,
            &format!("cannot make the directory {}", path.display()),
        )
    })
}

/// A failed read or write of the store's files. A full disk has the code `ENOSPC` whatever the store.
pub fn io_failure(error: &std::io::Error, what: &str) -> Failure {
    let failure = Failure::new(ErrorClass::Client, format!("{what}: {error}"));
    match error.raw_os_error() {
        Some(libc::ENOSPC) => failure.with_code("ENOSPC"),
        Some(libc::EDQUOT) => failure.with_code("EDQUOT"),
        Some(libc::EMFILE) => failure.with_code("EMFILE"),
        Some(libc::EIO) => failure.with_code("EIO"),
        _ => failure,
    }
}

/// `insert` of a key that is there.
pub fn key_exists() -> Failure {
    Failure::new(ErrorClass::Rejected, "the key exists already").with_code("KEY_EXISTS")
}

/// `increment` of a value that is no decimal integer of 64 bits, or is the largest one.
pub fn not_an_integer() -> Failure {
    Failure::new(
        ErrorClass::Rejected,
        "the value is no integer that can be incremented",
    )
    .with_code("NOT_AN_INTEGER")
}

/// The next value of a counter, which is kept as decimal text as Redis and memcached keep theirs; one that is not there
/// begins at 0. Only the plain form counts: no `+`, no leading zeros.
pub fn incremented(value: Option<&[u8]>) -> Result<String, Failure> {
    let Some(value) = value else {
        return Ok("1".to_owned());
    };
    let number: i64 = std::str::from_utf8(value)
        .ok()
        .and_then(|text| text.parse().ok())
        .filter(|number: &i64| number.to_string().as_bytes() == value)
        .ok_or_else(not_an_integer)?;
    let next = number.checked_add(1).ok_or_else(not_an_integer)?;
    Ok(next.to_string())
}

/// For stores without a language of their own: the one statement that they understand is `count`.
pub fn only_count(statement: &str, store: &str) -> Result<(), Failure> {
    match statement.trim() {
        "count" => Ok(()),
        other => Err(Failure::new(
            ErrorClass::Client,
            format!(
                "{store} has no statement `{other}`; `count` gives the number of keys and is the only one"
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_is_decimal_text_and_begins_at_one() {
        assert_eq!(incremented(None), Ok("1".to_owned()));
        assert_eq!(incremented(Some(b"41")), Ok("42".to_owned()));
        assert_eq!(incremented(Some(b"-1")), Ok("0".to_owned()));
    }

    #[test]
    fn what_is_no_plain_integer_is_rejected() {
        for value in [
            "",
            "abc",
            "+1",
            "007",
            "1.5",
            "9223372036854775807",
            "\u{1}",
        ] {
            let failure = incremented(Some(value.as_bytes())).expect_err(value);
            assert_eq!(failure.class, ErrorClass::Rejected, "{value}");
            assert_eq!(failure.code, "NOT_AN_INTEGER");
        }
    }

    #[test]
    fn a_full_disk_is_told_by_its_code() {
        let full = std::io::Error::from_raw_os_error(libc::ENOSPC);
        let failure = io_failure(&full, "commit failed");
        assert_eq!(failure.code, "ENOSPC");
        assert_eq!(failure.class, ErrorClass::Client);
        assert!(!failure.broken);
    }
}
