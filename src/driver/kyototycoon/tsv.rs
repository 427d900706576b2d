//! Tab-separated values as Kyoto Tycoon's procedures take and give them: lines of a name and a value, both columns spelled
//! as they are or in one of three encodings, which the content type says.
//!
//! Knows bytes only. A value that needs no decoding is lent out where it lies.

use base64_simd::STANDARD;
use memchr::memchr;

/// How both columns of every line are spelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Plain,
    Base64,
    Url,
    Quoted,
}

/// A column's name in all its spellings: letters and digits are the same in all but one.
#[derive(Clone, Copy, Debug)]
pub struct Name {
    plain: &'static str,
    base64: &'static str,
}

pub const KEY: Name = Name {
    plain: "key",
    base64: "a2V5",
};
pub const VALUE: Name = Name {
    plain: "value",
    base64: "dmFsdWU=",
};
pub const DATABASE: Name = Name {
    plain: "DB",
    base64: "REI=",
};
pub const NUMBER: Name = Name {
    plain: "num",
    base64: "bnVt",
};
pub const ERROR: Name = Name {
    plain: "ERROR",
    base64: "RVJST1I=",
};

const HEX: &[u8; 16] = b"0123456789ABCDEF";

impl Name {
    pub fn spelled(self, encoding: Encoding) -> &'static [u8] {
        match encoding {
            Encoding::Base64 => self.base64.as_bytes(),
            _ => self.plain.as_bytes(),
        }
    }
}

impl Encoding {
    /// The content type that says it.
    pub fn content_type(self) -> &'static str {
        match self {
            Encoding::Plain => "text/tab-separated-values",
            Encoding::Base64 => "text/tab-separated-values; colenc=B",
            Encoding::Url => "text/tab-separated-values; colenc=U",
            Encoding::Quoted => "text/tab-separated-values; colenc=Q",
        }
    }

    /// What a content type says; None where it is none of ours.
    pub fn of_content_type(text: &[u8]) -> Option<Encoding> {
        let mut parts = text.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let media = parts.next()?;
        if !media.eq_ignore_ascii_case(b"text/tab-separated-values") {
            return None;
        }
        let mut encoding = Encoding::Plain;
        for part in parts {
            if part.len() < 8 || !part[..7].eq_ignore_ascii_case(b"colenc=") {
                continue;
            }
            encoding = match part[7..].trim_ascii() {
                b"B" | b"b" => Encoding::Base64,
                b"U" | b"u" => Encoding::Url,
                b"Q" | b"q" => Encoding::Quoted,
                _ => return None,
            };
        }
        Some(encoding)
    }

    /// Bytes that `bytes` take when spelled so.
    pub fn length(self, bytes: &[u8]) -> usize {
        let escaped = |stays: fn(u8) -> bool| {
            let kept = bytes.iter().filter(|byte| stays(**byte)).count();
            kept + (bytes.len() - kept) * 3
        };
        match self {
            Encoding::Plain => bytes.len(),
            Encoding::Base64 => bytes.len().div_ceil(3) * 4,
            Encoding::Url => escaped(unreserved),
            Encoding::Quoted => escaped(quotable),
        }
    }

    pub fn push(self, bytes: &[u8], out: &mut Vec<u8>) {
        match self {
            Encoding::Plain => out.extend_from_slice(bytes),
            Encoding::Base64 => STANDARD.encode_append(bytes, out),
            Encoding::Url => push_escaped(bytes, b'%', unreserved, out),
            Encoding::Quoted => push_escaped(bytes, b'=', quotable, out),
        }
    }

    /// The bytes that are spelled so: where they lie, or in `scratch`. None where no bytes are.
    pub fn decode<'b>(self, spelled: &'b [u8], scratch: &'b mut Vec<u8>) -> Option<&'b [u8]> {
        scratch.clear();
        let escape = match self {
            Encoding::Plain => return Some(spelled),
            Encoding::Base64 => {
                STANDARD.decode_append(spelled, scratch).ok()?;
                return Some(scratch);
            }
            Encoding::Url => b'%',
            Encoding::Quoted => b'=',
        };
        let mut rest = spelled;
        while let Some(position) = memchr(escape, rest) {
            let high = char::from(*rest.get(position + 1)?).to_digit(16)?;
            let low = char::from(*rest.get(position + 2)?).to_digit(16)?;
            scratch.extend_from_slice(&rest[..position]);
            scratch.push((high * 16 + low) as u8);
            rest = &rest[position + 3..];
        }
        if rest.len() == spelled.len() {
            return Some(spelled);
        }
        scratch.extend_from_slice(rest);
        Some(scratch)
    }
}

/// Whether it can stand in a column as it is: control characters may end the column, the line or the text.
#[inline]
pub fn is_plain(bytes: &[u8]) -> bool {
    // Whole blocks without a branch, so that they are looked at many bytes at a time.
    bytes.chunks(256).all(|block| {
        let controls = block
            .iter()
            .fold(0_u8, |seen, byte| seen | u8::from(*byte < b' '));
        controls == 0
    })
}

/// Appends a line.
pub fn push_line(encoding: Encoding, name: Name, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name.spelled(encoding));
    out.push(b'\t');
    encoding.push(value, out);
    out.push(b'\n');
}

/// The value of a column, spelled as it came; None where there is none of this name.
#[inline]
pub fn find(body: &[u8], encoding: Encoding, name: Name) -> Option<&[u8]> {
    let name = name.spelled(encoding);
    let mut rest = body;
    while !rest.is_empty() {
        let end = memchr(b'\n', rest).unwrap_or(rest.len());
        let line = &rest[..end];
        if line.len() > name.len() && line[name.len()] == b'\t' && line.starts_with(name) {
            return Some(&line[name.len() + 1..]);
        }
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    None
}

/// All lines, decoded; for people. A line that is none is left out.
pub fn all(body: &[u8], encoding: Encoding) -> Vec<(String, String)> {
    let mut scratch = Vec::new();
    let mut text = |spelled: &[u8]| {
        let decoded = encoding.decode(spelled, &mut scratch)?;
        Some(String::from_utf8_lossy(decoded).into_owned())
    };
    let lines = body.split(|byte| *byte == b'\n');
    let pairs = lines.filter_map(|line| {
        let tab = memchr(b'\t', line)?;
        Some((text(&line[..tab])?, text(&line[tab + 1..])?))
    });
    pairs.collect()
}

pub fn push_escaped(bytes: &[u8], escape: u8, stays: impl Fn(u8) -> bool, out: &mut Vec<u8>) {
    for byte in bytes {
        match stays(*byte) {
            true => out.push(*byte),
            false => out.extend_from_slice(&[
                escape,
                HEX[usize::from(byte >> 4)],
                HEX[usize::from(byte & 15)],
            ]),
        }
    }
}

/// Bytes that an URL holds as they are.
pub fn unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Bytes that quoted-printable text holds as they are.
fn quotable(byte: u8) -> bool {
    byte.is_ascii_graphic() && byte != b'='
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Encoding; 3] = [Encoding::Base64, Encoding::Url, Encoding::Quoted];

    #[test]
    fn any_bytes_come_back_from_every_encoding() {
        let every: Vec<u8> = (0..=255).collect();
        let texts: [&[u8]; 6] = [b"", b"plain", b"tab\there", b"a\nb\r\n\0", b"%=+ ", &every];
        for encoding in ALL {
            for bytes in texts {
                let mut spelled = Vec::new();
                encoding.push(bytes, &mut spelled);
                assert_eq!(spelled.len(), encoding.length(bytes), "{encoding:?}");
                assert!(is_plain(&spelled), "{encoding:?}");
                let mut scratch = Vec::new();
                let back = encoding.decode(&spelled, &mut scratch);
                assert_eq!(back, Some(bytes), "{encoding:?}");
            }
        }
    }

    #[test]
    fn what_is_spelled_as_it_is_is_lent_and_not_copied() {
        let spelled = vec![b'a'; 2_560];
        for encoding in [Encoding::Plain, Encoding::Url, Encoding::Quoted] {
            let mut scratch = Vec::new();
            let value = encoding.decode(&spelled, &mut scratch).expect("bytes");
            assert_eq!(value.as_ptr(), spelled.as_ptr());
        }
    }

    #[test]
    fn recorded_spellings_are_read() {
        let mut scratch = Vec::new();
        let body = b"dmFsdWU=\tAAAAAAAAAAw=\n";
        let column = find(body, Encoding::Base64, VALUE).expect("a column");
        let value = Encoding::Base64.decode(column, &mut scratch);
        assert_eq!(value, Some(12_i64.to_be_bytes().as_slice()));
        let column = find(b"value\tv%0a1\n", Encoding::Url, VALUE).expect("a column");
        let value = Encoding::Url.decode(column, &mut scratch);
        assert_eq!(value, Some(b"v\n1".as_slice()));
        let body = b"value\t1\nxt\t1796070990\n";
        assert_eq!(find(body, Encoding::Plain, VALUE), Some(b"1".as_slice()));
        let missing = find(b"valuer\t1\nxvalue\t2\n", Encoding::Plain, VALUE);
        assert_eq!(missing, None);
    }

    #[test]
    fn broken_spellings_are_no_bytes() {
        let mut scratch = Vec::new();
        for (encoding, wrong) in [
            (Encoding::Base64, b"AAA".as_slice()),
            (Encoding::Base64, b"A\tAA"),
            (Encoding::Url, b"a%0"),
            (Encoding::Url, b"a%zz"),
            (Encoding::Quoted, b"="),
        ] {
            assert_eq!(encoding.decode(wrong, &mut scratch), None);
        }
    }

    #[test]
    fn the_content_type_says_the_encoding() {
        let of = |text: &str| Encoding::of_content_type(text.as_bytes());
        for encoding in ALL.into_iter().chain([Encoding::Plain]) {
            assert_eq!(of(encoding.content_type()), Some(encoding));
        }
        assert_eq!(of("text/html"), None);
        assert_eq!(of("text/tab-separated-values; colenc=X"), None);
    }

    #[test]
    fn names_are_spelled_as_their_encoding_spells_them() {
        for name in [KEY, VALUE, DATABASE, NUMBER, ERROR] {
            for encoding in ALL {
                let mut spelled = Vec::new();
                encoding.push(name.plain.as_bytes(), &mut spelled);
                assert_eq!(spelled, name.spelled(encoding));
            }
        }
    }

    #[test]
    fn control_characters_are_found_wherever_they_stand() {
        assert!(is_plain(&[0xff; 1_000]));
        for position in [0, 255, 256, 999] {
            for control in [0, b'\t', b'\n', b'\r', 0x1f] {
                let mut bytes = vec![b'a'; 1_000];
                bytes[position] = control;
                assert!(!is_plain(&bytes));
            }
        }
    }
}
