//! How the stand-in for Kyoto Tycoon spells what it says and reads what it is told: forms, base64, URL codes, quoted text.
//! Written apart from the driver's, so that neither hides the other's mistakes.

use std::collections::BTreeMap;

/// Names and values, in the order of the names.
pub type Columns = BTreeMap<Vec<u8>, Vec<u8>>;

pub fn form(text: &[u8]) -> Columns {
    let pairs = text.split(|byte| *byte == b'&').filter_map(|pair| {
        let equals = pair.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (&pair[..equals], &pair[equals + 1..]);
        Some((decode(name, Some('U')), decode(value, Some('U'))))
    });
    pairs.collect()
}

/// As a running server chose: nothing for short texts, URL codes for what is mostly text, base64 for the rest.
pub fn best_encoding(columns: &Columns) -> Option<char> {
    let cells = || columns.iter().flat_map(|(name, value)| [name, value]);
    let is_plain =
        |cell: &Vec<u8>| cell.len() < 256 && !cell.iter().any(|byte| *byte < b' ' || *byte == 0x7f);
    if cells().all(is_plain) {
        return None;
    }
    let begins = || cells().flat_map(|cell| cell.iter().take(255));
    let kept = begins().filter(|byte| byte.is_ascii_alphanumeric()).count();
    let all = begins().count();
    Some(if all * 6 / 4 < kept + (all - kept) * 3 {
        'B'
    } else {
        'U'
    })
}

pub fn encode(bytes: &[u8], encoding: Option<char>) -> Vec<u8> {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    match encoding {
        Some('B') => {
            let mut out = Vec::with_capacity(bytes.len() / 3 * 4 + 4);
            for three in bytes.chunks(3) {
                let all = [
                    three[0],
                    *three.get(1).unwrap_or(&0),
                    *three.get(2).unwrap_or(&0),
                ];
                let word = u32::from_be_bytes([0, all[0], all[1], all[2]]);
                for place in 0..4 {
                    let sign = SIGNS[(word >> (18 - 6 * place)) as usize & 63];
                    out.push(if place <= three.len() { sign } else { b'=' });
                }
            }
            out
        }
        Some('U') => {
            let mut out = Vec::with_capacity(bytes.len());
            for byte in bytes {
                match byte.is_ascii_alphanumeric() || b"_-.!~*'()".contains(byte) {
                    true => out.push(*byte),
                    false => out.extend(format!("%{byte:02x}").into_bytes()),
                }
            }
            out
        }
        _ => bytes.to_vec(),
    }
}

pub fn decode(text: &[u8], encoding: Option<char>) -> Vec<u8> {
    let escape = match encoding {
        Some('B') => return decode_base64(text),
        Some('U') => b'%',
        Some('Q') => b'=',
        _ => return text.to_vec(),
    };
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.iter();
    while let Some(byte) = rest.next() {
        if *byte != escape {
            out.push(*byte);
            continue;
        }
        let digits = [rest.next(), rest.next()].map(|digit| digit.copied().unwrap_or(b'0'));
        let digits = digits.map(|digit| char::from(digit).to_digit(16).unwrap_or(0));
        out.push((digits[0] * 16 + digits[1]) as u8);
    }
    out
}

fn decode_base64(text: &[u8]) -> Vec<u8> {
    let (mut out, mut word, mut bits) = (Vec::with_capacity(text.len()), 0_u32, 0);
    for sign in text {
        let value = match sign {
            b'A'..=b'Z' => sign - b'A',
            b'a'..=b'z' => sign - b'a' + 26,
            b'0'..=b'9' => sign - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => break,
        };
        word = word << 6 | u32::from(value);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            out.push((word >> bits) as u8);
        }
    }
    out
}
