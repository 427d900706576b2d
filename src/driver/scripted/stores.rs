//! Ready-made scripts: stores that keep nothing, answer every get with the value that its key should have, and take a
//! known time for each operation. What the engine measures on them can be told beforehand.

use super::Step;
use std::time::Duration;

/// Speaks RESP2. GET and SET take `delay`; what a client says on a new connection is answered at once.
/// `value` is called with the key; None is a key that is not there.
pub fn redis(
    delay: Duration,
    value: impl Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync,
) -> impl Fn(usize, &[u8]) -> Vec<Step> + Send + Sync {
    move |_, request| {
        let mut arguments = arguments(request).into_iter();
        match (arguments.next(), arguments.next()) {
            (Some(b"GET"), Some(key)) => {
                let answer = match value(key) {
                    Some(value) => {
                        let header = format!("${}\r\n", value.len());
                        [header.as_bytes(), &value, b"\r\n"].concat()
                    }
                    None => b"$-1\r\n".to_vec(),
                };
                vec![Step::Wait(delay), Step::Send(answer)]
            }
            (Some(b"SET"), _) => vec![Step::Wait(delay), Step::send("+OK\r\n")],
            (Some(b"CLIENT" | b"SELECT" | b"AUTH" | b"PING"), _) => vec![Step::send("+OK\r\n")],
            _ => vec![Step::send("-ERR unknown command\r\n")],
        }
    }
}

/// Speaks memcached's text protocol, gets of one key. `value` as above.
pub fn memcached(
    delay: Duration,
    value: impl Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync,
) -> impl Fn(usize, &[u8]) -> Vec<Step> + Send + Sync {
    move |_, request| {
        let line = request
            .split(|byte| *byte == b'\r')
            .next()
            .unwrap_or(request);
        let mut words = line.split(|byte| *byte == b' ');
        match (words.next(), words.next()) {
            (Some(b"get"), Some(key)) => {
                let answer = match value(key) {
                    Some(value) => {
                        let length = format!(" 0 {}\r\n", value.len());
                        let (start, end) = (b"VALUE ".as_slice(), b"\r\nEND\r\n".as_slice());
                        [start, key, length.as_bytes(), &value, end].concat()
                    }
                    None => b"END\r\n".to_vec(),
                };
                vec![Step::Wait(delay), Step::Send(answer)]
            }
            (Some(b"set"), _) => vec![Step::Wait(delay), Step::send("STORED\r\n")],
            (Some(b"version"), _) => vec![Step::send("VERSION scripted\r\n")],
            _ => vec![Step::send("ERROR\r\n")],
        }
    }
}

/// The arguments of a whole request in RESP.
fn arguments(request: &[u8]) -> Vec<&[u8]> {
    let mut arguments = Vec::new();
    let mut rest = skip_line(request);
    while let Some(digits) = rest.strip_prefix(b"$") {
        let after = skip_line(digits);
        let digits = &digits[..digits.len() - after.len()];
        let length = std::str::from_utf8(digits)
            .ok()
            .and_then(|digits| digits.trim_end().parse::<usize>().ok())
            .unwrap_or(0)
            .min(after.len());
        arguments.push(&after[..length]);
        rest = after.get(length + 2..).unwrap_or_default();
    }
    arguments
}

fn skip_line(bytes: &[u8]) -> &[u8] {
    let newline = bytes.iter().position(|byte| *byte == b'\n');
    newline.map_or(&[], |newline| &bytes[newline + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY: Duration = Duration::from_millis(5);

    fn value(key: &[u8]) -> Option<Vec<u8>> {
        (key != b"none").then(|| [b"of ", key].concat())
    }

    #[test]
    fn a_redis_store_answers_gets_and_sets_after_its_time_and_greetings_at_once() {
        let store = redis(DELAY, value);
        let wait = Step::Wait(DELAY);
        let get = store(0, b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n");
        assert_eq!(get, [wait.clone(), Step::send("$4\r\nof k\r\n")]);
        let missing = store(0, b"*2\r\n$3\r\nGET\r\n$4\r\nnone\r\n");
        assert_eq!(missing, [wait.clone(), Step::send("$-1\r\n")]);
        let set = store(0, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\n\r\n\r\n");
        assert_eq!(set, [wait, Step::send("+OK\r\n")]);
        let ping = store(0, b"*1\r\n$4\r\nPING\r\n");
        assert_eq!(ping, [Step::send("+OK\r\n")]);
    }

    #[test]
    fn a_memcached_store_answers_gets_and_sets_after_its_time() {
        let store = memcached(DELAY, value);
        let wait = Step::Wait(DELAY);
        let get = store(0, b"get k\r\n");
        let answer = Step::send("VALUE k 0 4\r\nof k\r\nEND\r\n");
        assert_eq!(get, [wait.clone(), answer]);
        assert_eq!(
            store(0, b"get none\r\n"),
            [wait.clone(), Step::send("END\r\n")]
        );
        let set = store(0, b"set k 0 0 1\r\nx\r\n");
        assert_eq!(set, [wait, Step::send("STORED\r\n")]);
    }
}
