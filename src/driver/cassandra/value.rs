//! What goes into a statement and comes out of it: arguments as values of the column's type, cells as text.

use crate::arguments::Argument;
use crate::op::{ErrorClass, Failure};
use scylla::deserialize::row::ColumnIterator;
use scylla::frame::response::result::{ColumnType, NativeType};
use scylla::response::query_result::QueryResult;
use scylla::serialize::SerializationError;
use scylla::serialize::value::SerializeValue;
use scylla::serialize::writers::{CellWriter, WrittenCellProof};
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

/// An argument that becomes a value of whatever type its column has.
#[derive(Debug)]
pub struct Bound<'a>(pub Argument<'a>);

impl Bound<'_> {
    pub fn length(&self) -> usize {
        match &self.0 {
            Argument::Bytes(bytes) => bytes.len(),
            Argument::Integer(_) => 8,
        }
    }
}

/// An argument that is no value of its column's type.
#[derive(Debug)]
struct NoValue(String);

impl fmt::Display for NoValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoValue {}

impl SerializeValue for Bound<'_> {
    fn serialize<'b>(
        &self,
        of: &ColumnType,
        writer: CellWriter<'b>,
    ) -> Result<WrittenCellProof<'b>, SerializationError> {
        let bytes = encoded(&self.0, of).ok_or_else(|| {
            let message = format!("an argument is no value of type {of:?}");
            SerializationError::new(NoValue(message))
        })?;
        writer.set_value(&bytes).map_err(SerializationError::new)
    }
}

/// The bytes of the value; None where the argument has no value of that type.
fn encoded<'a>(argument: &'a Argument<'_>, of: &ColumnType) -> Option<Cow<'a, [u8]>> {
    let ColumnType::Native(of) = of else {
        return None;
    };
    if let (NativeType::Text | NativeType::Ascii | NativeType::Blob, Argument::Bytes(bytes)) =
        (of, argument)
    {
        return Some(Cow::Borrowed(bytes));
    }
    let text = match argument {
        Argument::Integer(number) => number.to_string(),
        Argument::Bytes(bytes) => std::str::from_utf8(bytes).ok()?.trim().to_owned(),
    };
    let bytes = match of {
        NativeType::Text | NativeType::Ascii | NativeType::Blob => text.into_bytes(),
        NativeType::TinyInt => text.parse::<i8>().ok()?.to_be_bytes().to_vec(),
        NativeType::SmallInt => text.parse::<i16>().ok()?.to_be_bytes().to_vec(),
        NativeType::Int => text.parse::<i32>().ok()?.to_be_bytes().to_vec(),
        NativeType::BigInt
        | NativeType::Counter
        | NativeType::Timestamp
        | NativeType::Time
        | NativeType::Varint => text.parse::<i64>().ok()?.to_be_bytes().to_vec(),
        NativeType::Float => text.parse::<f32>().ok()?.to_be_bytes().to_vec(),
        NativeType::Double => text.parse::<f64>().ok()?.to_be_bytes().to_vec(),
        NativeType::Boolean => match text.as_str() {
            "true" | "1" => vec![1],
            "false" | "0" => vec![0],
            _ => return None,
        },
        NativeType::Uuid | NativeType::Timeuuid => uuid(&text)?,
        NativeType::Inet => match text.parse().ok()? {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets().to_vec(),
        },
        _ => return None,
    };
    Some(Cow::Owned(bytes))
}

fn uuid(text: &str) -> Option<Vec<u8>> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let number = u128::from_str_radix(&digits, 16).ok()?;
    (digits.len() == 32).then(|| number.to_be_bytes().to_vec())
}

/// A cell as text; of types that are not known here, its bytes.
pub fn text_of(of: &ColumnType, raw: &[u8]) -> Vec<u8> {
    let ColumnType::Native(of) = of else {
        return raw.to_vec();
    };
    let text = match of {
        NativeType::Boolean => raw.first().map(|byte| (*byte != 0).to_string()),
        NativeType::TinyInt => number(raw, i8::from_be_bytes),
        NativeType::SmallInt => number(raw, i16::from_be_bytes),
        NativeType::Int => number(raw, i32::from_be_bytes),
        NativeType::BigInt | NativeType::Counter | NativeType::Timestamp | NativeType::Time => {
            number(raw, i64::from_be_bytes)
        }
        NativeType::Varint => varint(raw),
        NativeType::Float => number(raw, f32::from_be_bytes),
        NativeType::Double => number(raw, f64::from_be_bytes),
        NativeType::Uuid | NativeType::Timeuuid => number(raw, |bytes: [u8; 16]| {
            let hex = format!("{:032x}", u128::from_be_bytes(bytes));
            format!(
                "{}-{}-{}-{}-{}",
                &hex[..8],
                &hex[8..12],
                &hex[12..16],
                &hex[16..20],
                &hex[20..]
            )
        }),
        NativeType::Inet => match raw.len() {
            4 => number(raw, |bytes: [u8; 4]| IpAddr::from(bytes)),
            _ => number(raw, |bytes: [u8; 16]| IpAddr::from(bytes)),
        },
        _ => None,
    };
    text.map_or_else(|| raw.to_vec(), String::into_bytes)
}

/// None where the bytes are not as many as the type has.
fn number<const N: usize, T: ToString>(raw: &[u8], read: impl Fn([u8; N]) -> T) -> Option<String> {
    let bytes = raw.try_into().ok()?;
    Some(read(bytes).to_string())
}

/// Integers of up to 16 bytes; longer ones stay bytes.
fn varint(raw: &[u8]) -> Option<String> {
    let negative = raw.first()? & 0x80 != 0;
    let mut bytes = [if negative { 0xff } else { 0 }; 16];
    let start = bytes.len().checked_sub(raw.len())?;
    bytes[start..].copy_from_slice(raw);
    Some(i128::from_be_bytes(bytes).to_string())
}

/// The rows of an answer, by their first columns.
#[derive(Default)]
pub struct Rows {
    pub has_columns: bool,
    pub count: usize,
    /// As text, of no more rows than were wanted; None for null.
    pub cells: Vec<Option<Vec<u8>>>,
    /// Length of the first row's.
    pub length: Option<u64>,
    /// All rows as they came.
    pub bytes: u64,
}

/// Reads the first columns of an answer's rows, as many as are wanted.
pub fn first_of(answer: QueryResult, wanted: usize) -> Result<Rows, Failure> {
    if !answer.is_rows() {
        return Ok(Rows::default());
    }
    let answer = answer.into_rows_result().map_err(unreadable)?;
    let mut read = Rows {
        has_columns: true,
        count: answer.rows_num(),
        bytes: answer.rows_bytes_size() as u64,
        ..Rows::default()
    };
    let rows = answer.rows::<ColumnIterator>().map_err(unreadable)?;
    for (position, row) in rows.take(wanted.max(1)).enumerate() {
        let Some(cell) = row
            .map_err(unreadable)?
            .next()
            .transpose()
            .map_err(unreadable)?
        else {
            continue;
        };
        let raw = cell.slice.map(|slice| slice.as_slice());
        if position == 0 {
            read.length = raw.map(|raw| raw.len() as u64);
        }
        if position < wanted {
            read.cells
                .push(raw.map(|raw| text_of(cell.spec.typ(), raw)));
        }
    }
    Ok(read)
}

/// An answer whose rows make no sense. Its frame came whole, so that the connection is still good.
pub fn unreadable(error: impl fmt::Display) -> Failure {
    Failure {
        broken: false,
        ..Failure::new(ErrorClass::Protocol, format!("malformed answer: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &'static str) -> Argument<'static> {
        Argument::Bytes(Cow::Borrowed(text.as_bytes()))
    }

    fn round(argument: &Argument<'_>, of: NativeType) -> Option<String> {
        let of = ColumnType::Native(of);
        let raw = encoded(argument, &of)?;
        Some(String::from_utf8(text_of(&of, &raw)).expect("UTF-8"))
    }

    #[test]
    fn arguments_become_values_of_the_columns_type_and_cells_text() {
        let same =
            |text: &'static str, of| assert_eq!(round(&bytes(text), of).as_deref(), Some(text));
        same("-7", NativeType::TinyInt);
        same("-300", NativeType::SmallInt);
        same("70000", NativeType::Int);
        same("-5000000000", NativeType::Counter);
        same("-129", NativeType::Varint);
        same("0.5", NativeType::Double);
        same("true", NativeType::Boolean);
        same("::1", NativeType::Inet);
        same("127.0.0.1", NativeType::Inet);
        same("8a7cda2f-0001-4000-8000-00000000000f", NativeType::Uuid);
        same("k", NativeType::Text);
        assert_eq!(
            round(&Argument::Integer(12), NativeType::Text).as_deref(),
            Some("12")
        );
        assert_eq!(
            round(&Argument::Integer(12), NativeType::Int).as_deref(),
            Some("12")
        );
    }

    #[test]
    fn what_is_no_value_of_the_type_is_not_sent() {
        assert_eq!(round(&bytes("x"), NativeType::Int), None);
        assert_eq!(round(&bytes("300"), NativeType::TinyInt), None);
        assert_eq!(round(&bytes("8a7cda2f"), NativeType::Uuid), None);
        assert_eq!(round(&bytes("maybe"), NativeType::Boolean), None);
    }
}
