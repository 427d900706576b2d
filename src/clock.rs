//! Wall clock as the results print it: RFC 3339 UTC with milliseconds, and the compact form of directory names.
//!
//! Durations are measured with `std::time::Instant` where they arise; this is for dates only.

use jiff::Timestamp;

/// `2026-11-30T20:15:00.123Z`.
pub fn rfc3339_milliseconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// `20261130T201500Z`, for the name of a run directory.
pub fn compact(time: Timestamp) -> String {
    time.strftime("%Y%m%dT%H%M%SZ").to_string()
}
