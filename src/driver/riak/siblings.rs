//! Several values of one key, as an answer of HTTP holds them: parts of `multipart/mixed`.

use memchr::memmem;

/// Of several values the one that is wanted, else the first; Some(None) where all are those of deletions. None where the
/// body is not in parts.
pub fn pick<'a>(body: &'a [u8], wanted: Option<&[u8]>) -> Option<Option<&'a [u8]>> {
    // `\r\n--B\r\n`, then each part; behind the last one `\r\n--B--`.
    let body_line = body.strip_prefix(b"\r\n")?;
    if !body_line.starts_with(b"--") {
        return None;
    }
    let end = memmem::find(body_line, b"\r\n")?;
    let border = memmem::Finder::new(&body[..end + 2]);
    let mut rest = &body_line[end..];
    let mut picked = None;
    while let Some(part) = rest.strip_prefix(b"\r\n") {
        let length = border.find(part)?;
        let value = live_value(&part[..length])?;
        if picked.is_none() || wanted.is_some() && value == wanted {
            picked = value.or(picked);
        }
        rest = &part[length + border.needle().len()..];
    }
    rest.starts_with(b"--").then_some(picked)
}

/// The value of a part; Some(None) where it is that of a deletion.
fn live_value(part: &[u8]) -> Option<Option<&[u8]>> {
    let head = match part.starts_with(b"\r\n") {
        true => 0,
        false => memmem::find(part, b"\r\n\r\n")? + 2,
    };
    let deleted = part[..head].split(|byte| *byte == b'\n').any(|line| {
        let name = line.split(|byte| *byte == b':').next();
        name.is_some_and(|name| name.eq_ignore_ascii_case(b"x-riak-deleted"))
    });
    Some((!deleted).then(|| &part[head + 2..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &[u8] =
        b"\r\n--Yx\r\nContent-Type: application/octet-stream\r\nEtag: a\r\n\r\none\r\n\
        \r\n--Yx\r\nContent-Type: text/plain\r\n\r\ntwo\r\n--Yx--\r\n";

    #[test]
    fn the_wanted_value_or_the_first_is_picked() {
        assert_eq!(pick(TWO, None), Some(Some(&b"one\r\n"[..])));
        assert_eq!(pick(TWO, Some(b"two")), Some(Some(&b"two"[..])));
        assert_eq!(pick(TWO, Some(b"three")), Some(Some(&b"one\r\n"[..])));
    }

    #[test]
    fn deletions_are_no_values() {
        let one =
            b"\r\n--B\r\nX-Riak-Deleted: true\r\n\r\n\r\n--B\r\nA: b\r\n\r\nlive\r\n--B--\r\n";
        assert_eq!(pick(one, None), Some(Some(&b"live"[..])));
        let none = b"\r\n--B\r\nX-Riak-Deleted: true\r\n\r\n\r\n--B--\r\n";
        assert_eq!(pick(none, Some(b"")), Some(None));
    }

    #[test]
    fn what_is_not_in_parts_is_told() {
        assert_eq!(pick(b"Siblings:\nabc\ndef\n", None), None);
        for cut in 0..TWO.len() - 4 {
            assert_eq!(pick(&TWO[..cut], None), None, "cut at {cut}");
        }
    }
}
