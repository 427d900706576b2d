//! Writes that wait for replicas: `WAIT` goes out with each built-in write, and its answer is part of the operation.

use crate::driver::net::{malformed, push_decimal, read_decimal};
use crate::driver::spec::Options;
use crate::op::{ErrorClass, Failure, Outcome, Verb};
use crate::units::format_duration;
use std::time::Duration;

/// What a write waits for.
#[derive(Debug)]
pub struct Wait {
    replicas: u64,
    timeout: Duration,
    /// The end of a value's line and the request.
    after_value: Vec<u8>,
}

/// Whether this operation is a write that waits. A read-modify-write waits with its write.
#[inline]
pub fn follows(verb: Verb) -> bool {
    matches!(
        verb,
        Verb::Set | Verb::Insert | Verb::Update | Verb::Delete | Verb::Increment
    )
}

/// How many replicas have it, as the answer's line says.
pub fn acknowledged(line: &[u8]) -> Result<u64, Failure> {
    line.strip_prefix(b":")
        .and_then(|rest| rest.strip_suffix(b"\r\n"))
        .and_then(read_decimal)
        .ok_or_else(|| malformed("it is no number of replicas", line))
}

impl Wait {
    pub fn of(options: &Options) -> Option<Wait> {
        let replicas = options.integer("wait")?.unsigned_abs();
        let timeout = options.duration("wait_timeout").unwrap_or_default();
        let mut after_value = b"\r\n*3\r\n$4\r\nWAIT\r\n".to_vec();
        for number in [replicas, timeout.as_millis() as u64] {
            let mut digits = Vec::new();
            push_decimal(&mut digits, number);
            super::wire::push_argument(&mut after_value, &digits);
        }
        Some(Wait {
            replicas,
            timeout,
            after_value,
        })
    }

    pub fn request(&self) -> &[u8] {
        &self.after_value[2..]
    }

    /// What follows a value that is gathered from where it lies.
    pub fn after_value(&self) -> &[u8] {
        &self.after_value
    }

    /// A write that too few replicas have is done on the primary, and a failure.
    pub fn judge(&self, acknowledged: u64) -> Result<Outcome, Failure> {
        if acknowledged >= self.replicas {
            return Ok(Outcome::Done);
        }
        let message = format!(
            "written, but acknowledged by {acknowledged} of {} replicas within {}",
            self.replicas,
            format_duration(self.timeout)
        );
        Err(Failure::new(ErrorClass::Server, message).with_code("WAIT"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::redis::spec::SPEC;

    #[test]
    fn the_request_is_what_the_crate_writes() {
        let mut values = serde_json::Map::new();
        values.insert("wait".into(), 2.into());
        values.insert("wait_timeout".into(), "1500ms".into());
        let wait = Wait::of(&Options::new(SPEC.options, values)).unwrap();
        let expected = redis::cmd("WAIT").arg(2).arg(1500).get_packed_command();
        assert_eq!(wait.request(), expected);
        assert_eq!(wait.after_value(), [b"\r\n", expected.as_slice()].concat());
        assert_eq!(wait.judge(2), Ok(Outcome::Done));
        let failure = wait.judge(1).unwrap_err();
        assert_eq!((failure.code.as_str(), failure.broken), ("WAIT", false));
        assert!(
            failure.message.contains("1 of 2 replicas within 1.5s"),
            "{failure}"
        );
    }

    #[test]
    fn only_a_number_counts_replicas() {
        assert_eq!(acknowledged(b":2\r\n"), Ok(2));
        for wrong in [b"+OK\r\n".as_slice(), b":-1\r\n", b":2"] {
            assert!(acknowledged(wrong).is_err());
        }
    }
}
