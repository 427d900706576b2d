//! Reads one placeholder of an argument template: its name, its numbers, and what is wrong with them.
//!
//! What stands between placeholders, and what they are filled with, is the parent's.

use super::{ArgumentFault, Placeholder};
use crate::random;

/// Bytes that `$text(n)` makes at most.
const LONGEST_TEXT: u64 = 64 * 1024 * 1024;

/// The placeholder whose dollar is at `dollar`, and where it ends; None where the dollar is itself.
pub(super) fn placeholder(
    text: &str,
    dollar: usize,
) -> Result<Option<(Placeholder, usize)>, ArgumentFault> {
    let rest = &text[dollar + 1..];
    let length = rest
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(rest.len());
    let name = &rest[..length];
    let end = dollar + 1 + length;
    match name {
        "key" => return Ok(Some((Placeholder::Key, end))),
        "value" => return Ok(Some((Placeholder::Value, end))),
        "index" => return Ok(Some((Placeholder::Index, end))),
        "random" | "zipf" | "mod" | "text" if text[end..].starts_with('(') => {}
        // `$mod` without a parenthesis is another language's word.
        _ => return Ok(None),
    }
    let Some(close) = text[end..].find(')') else {
        return Err(fault(
            dollar,
            text.len(),
            format!("`${name}(` has no closing parenthesis"),
            example(name),
        ));
    };
    let call = Call {
        name,
        arguments: &text[end + 1..end + close],
        start: dollar,
        end: end + close + 1,
    };
    Ok(Some((call.read()?, call.end)))
}

/// A placeholder with parentheses, as it stands in the text.
struct Call<'t> {
    name: &'t str,
    arguments: &'t str,
    start: usize,
    end: usize,
}

impl Call<'_> {
    fn read(&self) -> Result<Placeholder, ArgumentFault> {
        match self.name {
            "random" => {
                let (from, to) = self.range()?;
                Ok(Placeholder::Random { from, to })
            }
            "zipf" => self.zipf(),
            "mod" => Ok(Placeholder::Mod(self.count(i64::MAX as u64)?)),
            _ => Ok(Placeholder::Text(self.count(LONGEST_TEXT)? as usize)),
        }
    }

    fn zipf(&self) -> Result<Placeholder, ArgumentFault> {
        let (from, to) = self.range()?;
        let count = (to.wrapping_sub(from) as u64).saturating_add(1);
        let ranks = random::Ranks::new(count, random::CUSTOMARY_THETA)
            .map_err(|message| self.fault(message))?;
        Ok(Placeholder::Zipf { from, ranks })
    }

    fn range(&self) -> Result<(i64, i64), ArgumentFault> {
        match self.numbers()?.as_slice() {
            [from, to] if from <= to => Ok((*from, *to)),
            [from, to] => Err(fault(
                self.start,
                self.end,
                format!(
                    "the range of `${}` is empty: {from} is above {to}",
                    self.name
                ),
                format!("write `${}({to}, {from})`", self.name),
            )),
            other => Err(self.fault(format!(
                "`${}` takes two numbers, not {}",
                self.name,
                other.len()
            ))),
        }
    }

    fn count(&self, most: u64) -> Result<u64, ArgumentFault> {
        match self.numbers()?.as_slice() {
            [n] if *n >= 1 && *n as u64 <= most => Ok(*n as u64),
            [n] => Err(self.fault(format!(
                "`${}` takes a number from 1 to {most}, not {n}",
                self.name
            ))),
            other => Err(self.fault(format!(
                "`${}` takes one number, not {}",
                self.name,
                other.len()
            ))),
        }
    }

    fn numbers(&self) -> Result<Vec<i64>, ArgumentFault> {
        if self.arguments.trim().is_empty() {
            return Ok(Vec::new());
        }
        self.arguments.split(',').map(|n| self.number(n)).collect()
    }

    fn number(&self, text: &str) -> Result<i64, ArgumentFault> {
        let text = text.trim();
        text.replace('_', "")
            .parse()
            .map_err(|_| self.fault(format!("`{text}` is no whole number")))
    }

    fn fault(&self, message: String) -> ArgumentFault {
        fault(self.start, self.end, message, example(self.name))
    }
}

fn example(name: &str) -> String {
    let call = match name {
        "random" | "zipf" => format!("${name}(1, 1000)"),
        _ => format!("${name}(100)"),
    };
    format!("write `{call}`, or `$${name}` for the text itself")
}

pub(super) fn fault(start: usize, end: usize, message: String, help: String) -> ArgumentFault {
    ArgumentFault {
        start,
        end,
        message,
        help,
    }
}
