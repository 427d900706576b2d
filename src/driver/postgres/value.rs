//! What goes into a statement and comes out of it: parameters of any type, and the first value of an answer as text.

use crate::arguments::Argument;
use bytes::BytesMut;
use std::error::Error;
use tokio_postgres::types::{Format, FromSql, IsNull, ToSql, Type};

/// A parameter, whatever type the statement gives it: bytes for `bytea`, text for all others.
#[derive(Debug)]
pub enum Parameter<'a> {
    Bytes(&'a [u8]),
    Owned(Vec<u8>),
    Integer(i64),
}

impl<'a> From<Argument<'a>> for Parameter<'a> {
    fn from(argument: Argument<'a>) -> Parameter<'a> {
        match argument {
            Argument::Integer(number) => Parameter::Integer(number),
            Argument::Bytes(bytes) => match bytes {
                std::borrow::Cow::Borrowed(bytes) => Parameter::Bytes(bytes),
                std::borrow::Cow::Owned(bytes) => Parameter::Owned(bytes),
            },
        }
    }
}

impl Parameter<'_> {
    pub fn length(&self) -> usize {
        match self {
            Parameter::Bytes(bytes) => bytes.len(),
            Parameter::Owned(bytes) => bytes.len(),
            Parameter::Integer(_) => 8,
        }
    }
}

impl ToSql for Parameter<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Parameter::Bytes(bytes) => out.extend_from_slice(bytes),
            Parameter::Owned(bytes) => out.extend_from_slice(bytes),
            Parameter::Integer(number) => out.extend_from_slice(number.to_string().as_bytes()),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, to: &Type) -> Format {
        match self {
            Parameter::Bytes(_) | Parameter::Owned(_) if *to == Type::BYTEA => Format::Binary,
            _ => Format::Text,
        }
    }

    fn to_sql_checked(
        &self,
        to: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.to_sql(to, out)
    }
}

/// A value as it came, of any type.
pub struct Raw<'a>(pub &'a [u8]);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Raw<'a>, Box<dyn Error + Sync + Send>> {
        Ok(Raw(raw))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// A value as the text protocol would have it; of types that are not known here, its bytes.
pub fn text_of(of: &Type, raw: &[u8]) -> Vec<u8> {
    let number = match (of, raw.len()) {
        (&Type::BOOL, 1) => Some(if raw[0] == 0 { "f" } else { "t" }.to_owned()),
        (&Type::INT2, 2) => raw.try_into().map(i16::from_be_bytes).ok().map(text),
        (&Type::INT4, 4) => raw.try_into().map(i32::from_be_bytes).ok().map(text),
        (&Type::INT8, 8) => raw.try_into().map(i64::from_be_bytes).ok().map(text),
        (&Type::OID, 4) => raw.try_into().map(u32::from_be_bytes).ok().map(text),
        (&Type::FLOAT4, 4) => raw.try_into().map(f32::from_be_bytes).ok().map(text),
        (&Type::FLOAT8, 8) => raw.try_into().map(f64::from_be_bytes).ok().map(text),
        (&Type::NUMERIC, _) => numeric(raw),
        _ => None,
    };
    number.map_or_else(|| raw.to_vec(), String::into_bytes)
}

fn text(number: impl ToString) -> String {
    number.to_string()
}

/// `numeric`: count of digit groups, weight of the first, sign, digits after the point; then groups of base 10,000.
fn numeric(raw: &[u8]) -> Option<String> {
    let word = |at: usize| {
        let bytes = raw.get(2 * at..2 * at + 2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    };
    let (count, weight) = (i32::from(word(0)?), i32::from(word(1)? as i16));
    let (sign, scale) = (word(2)?, usize::from(word(3)?));
    if !matches!(sign, 0 | 0x4000) {
        return Some("NaN".to_owned());
    }
    let group = |position: i32| match (0..count).contains(&position) {
        true => word(4 + position as usize),
        false => Some(0),
    };
    let mut whole = String::new();
    for position in 0..=weight {
        whole.push_str(&format!("{:04}", group(position)?));
    }
    let mut fraction = String::new();
    let mut position = weight + 1;
    while fraction.len() < scale {
        fraction.push_str(&format!("{:04}", group(position)?));
        position += 1;
    }
    fraction.truncate(scale);
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let minus = if sign == 0x4000 { "-" } else { "" };
    Some(match scale {
        0 => format!("{minus}{whole}"),
        _ => format!("{minus}{whole}.{fraction}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u16]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn numbers_come_as_the_text_protocol_has_them() {
        let text = |of: &Type, raw: &[u8]| String::from_utf8(text_of(of, raw)).expect("text");
        assert_eq!(text(&Type::INT4, &(-5_i32).to_be_bytes()), "-5");
        assert_eq!(text(&Type::INT8, &7_i64.to_be_bytes()), "7");
        assert_eq!(text(&Type::BOOL, &[1]), "t");
        assert_eq!(text(&Type::TEXT, b"abc"), "abc");
        // 12345.678: groups 1, 2345, 6780
        assert_eq!(
            text(&Type::NUMERIC, &words(&[3, 1, 0, 3, 1, 2345, 6780])),
            "12345.678"
        );
        assert_eq!(
            text(&Type::NUMERIC, &words(&[1, 1, 0x4000, 0, 3])),
            "-30000"
        );
        assert_eq!(text(&Type::NUMERIC, &words(&[0, 0, 0, 2])), "0.00");
        assert_eq!(
            text(&Type::NUMERIC, &words(&[1, 0xFFFF, 0, 4, 25])),
            "0.0025"
        );
    }
}
