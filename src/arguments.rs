//! Argument templates: the `$key`, `$value`, `$random(1, 100)` and their like in the strings of `[operations]`, parsed
//! once and filled in per operation without the template engine.
//!
//! Drivers write them into commands and paths, or split them off as bound parameters. Every random part is a function of
//! the operation's random word and the placeholder's position. Knows nothing of any store's language but, for
//! `split_placeholders`, how SQL quotes.

use crate::op::Operation;
use crate::random;
use std::borrow::Cow;

/// Bytes that `$text(n)` makes at most.
const LONGEST_TEXT: u64 = 64 * 1024 * 1024;

/// A string of an operation, parsed.
#[derive(Clone, Debug)]
pub struct ArgumentTemplate {
    parts: Vec<Part>,
    /// Position of the first placeholder among all of its operation.
    first: u32,
}

#[derive(Clone, Debug)]
enum Part {
    Constant(String),
    Placeholder {
        what: Placeholder,
        start: usize,
        end: usize,
    },
}

#[derive(Clone, Debug)]
enum Placeholder {
    Key,
    Value,
    Index,
    /// Both ends in.
    Random {
        from: i64,
        to: i64,
    },
    /// `from` is the likeliest.
    Zipf {
        from: i64,
        ranks: random::Ranks,
    },
    /// `$index` modulo this, >= 1.
    Mod(u64),
    /// Bytes of it.
    Text(usize),
}

/// What is wrong with a template: byte range in its text, a sentence, and what to write instead.
#[derive(Clone, Debug, PartialEq)]
pub struct ArgumentFault {
    pub start: usize,
    pub end: usize,
    pub message: String,
    pub help: String,
}

/// An argument as a parameter to bind.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument<'a> {
    Integer(i64),
    Bytes(Cow<'a, [u8]>),
}

/// What a template's arguments are, for drivers that bind typed parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    Integer,
    /// Always UTF-8.
    Text,
    /// `$value` is in it.
    Bytes,
}

impl ArgumentTemplate {
    /// Parses one string; its placeholders count from 0.
    pub fn parse(text: &str) -> Result<ArgumentTemplate, ArgumentFault> {
        let mut template = ArgumentTemplate {
            parts: Vec::new(),
            first: 0,
        };
        let mut at = 0;
        while let Some(found) = text[at..].find('$') {
            let dollar = at + found;
            template.push_text(&text[at..dollar]);
            at = match placeholder(text, dollar)? {
                Some((what, end)) => {
                    template.parts.push(Part::Placeholder {
                        what,
                        start: dollar,
                        end,
                    });
                    end
                }
                None => {
                    template.push_text("$");
                    let doubled = text[dollar + 1..].starts_with('$');
                    dollar + if doubled { 2 } else { 1 }
                }
            };
        }
        template.push_text(&text[at..]);
        Ok(template)
    }

    /// Parses the strings of one operation, so that no two random placeholders of it are alike. A fault comes with the
    /// position of its string.
    pub fn parse_all<'t>(
        texts: impl IntoIterator<Item = &'t str>,
    ) -> Result<Vec<ArgumentTemplate>, (usize, ArgumentFault)> {
        let mut position = 0;
        let mut templates = Vec::new();
        for (number, text) in texts.into_iter().enumerate() {
            let parsed = ArgumentTemplate::parse(text).map_err(|fault| (number, fault))?;
            let template = parsed.counted_from(position);
            position += template.placeholders();
            templates.push(template);
        }
        Ok(templates)
    }

    /// The same template as one whose first placeholder is the `first` of its operation.
    pub fn counted_from(mut self, first: u32) -> ArgumentTemplate {
        self.first = first;
        self
    }

    pub fn placeholders(&self) -> u32 {
        let placeholders = self.parts.iter();
        placeholders
            .filter(|part| matches!(part, Part::Placeholder { .. }))
            .count() as u32
    }

    /// Whether all operations get the same text.
    pub fn is_constant(&self) -> bool {
        self.placeholders() == 0
    }

    pub fn uses_value(&self) -> bool {
        self.parts.iter().any(|part| {
            matches!(
                part,
                Part::Placeholder {
                    what: Placeholder::Value,
                    ..
                }
            )
        })
    }

    pub fn uses_key(&self) -> bool {
        self.parts.iter().any(|part| {
            matches!(
                part,
                Part::Placeholder {
                    what: Placeholder::Key,
                    ..
                }
            )
        })
    }

    /// What `evaluate` gives.
    pub fn kind(&self) -> ArgumentKind {
        match self.only_placeholder() {
            Some(Placeholder::Key | Placeholder::Text(_)) => ArgumentKind::Text,
            Some(Placeholder::Value) => ArgumentKind::Bytes,
            Some(_) => ArgumentKind::Integer,
            None if self.uses_value() => ArgumentKind::Bytes,
            None => ArgumentKind::Text,
        }
    }

    /// Appends the text for one operation.
    pub fn write(&self, operation: &Operation, out: &mut Vec<u8>) {
        let mut position = self.first;
        for part in &self.parts {
            match part {
                Part::Constant(text) => out.extend_from_slice(text.as_bytes()),
                Part::Placeholder { what, .. } => {
                    what.write(operation, position, out);
                    position += 1;
                }
            }
        }
    }

    /// The argument for one operation: an integer where the template is one numeric placeholder and nothing else; key and
    /// value are borrowed.
    pub fn evaluate<'a>(&'a self, operation: &'a Operation) -> Argument<'a> {
        match (self.parts.as_slice(), self.only_placeholder()) {
            ([], _) => Argument::Bytes(Cow::Borrowed(b"")),
            ([Part::Constant(text)], _) => Argument::Bytes(Cow::Borrowed(text.as_bytes())),
            (_, Some(Placeholder::Key)) => Argument::Bytes(Cow::Borrowed(&operation.key)),
            (_, Some(Placeholder::Value)) => Argument::Bytes(Cow::Borrowed(&operation.value)),
            (_, Some(what)) if self.kind() == ArgumentKind::Integer => {
                Argument::Integer(what.integer(operation, self.first))
            }
            _ => {
                let mut bytes = Vec::new();
                self.write(operation, &mut bytes);
                Argument::Bytes(Cow::Owned(bytes))
            }
        }
    }

    /// For stores with prepared statements: the text with every placeholder replaced by `?`, and the placeholders in
    /// order. A placeholder inside quotes is a fault, since a statement has no parameters there.
    pub fn split_placeholders(&self) -> Result<(String, Vec<ArgumentTemplate>), ArgumentFault> {
        self.split_placeholders_as(|_| "?".to_owned())
    }

    /// `split_placeholders` with another marker, made from the parameter's number, from 0.
    pub fn split_placeholders_as(
        &self,
        mut marker: impl FnMut(usize) -> String,
    ) -> Result<(String, Vec<ArgumentTemplate>), ArgumentFault> {
        let mut statement = String::new();
        let mut arguments = Vec::new();
        let mut quote = None;
        for part in &self.parts {
            match part {
                Part::Constant(text) => {
                    quote = quote_after(text, quote);
                    statement.push_str(text);
                }
                Part::Placeholder { start, end, .. } => {
                    if let Some(quote) = quote {
                        return Err(quoted(*start, *end, quote));
                    }
                    statement.push_str(&marker(arguments.len()));
                    arguments.push(ArgumentTemplate {
                        parts: vec![part.clone()],
                        first: self.first + arguments.len() as u32,
                    });
                }
            }
        }
        Ok((statement, arguments))
    }

    fn only_placeholder(&self) -> Option<&Placeholder> {
        match self.parts.as_slice() {
            [Part::Placeholder { what, .. }] => Some(what),
            _ => None,
        }
    }

    fn push_text(&mut self, text: &str) {
        match self.parts.last_mut() {
            _ if text.is_empty() => {}
            Some(Part::Constant(last)) => last.push_str(text),
            _ => self.parts.push(Part::Constant(text.to_owned())),
        }
    }
}

impl Placeholder {
    fn write(&self, operation: &Operation, position: u32, out: &mut Vec<u8>) {
        match self {
            Placeholder::Key => out.extend_from_slice(&operation.key),
            Placeholder::Value => out.extend_from_slice(&operation.value),
            Placeholder::Text(length) => {
                let start = out.len();
                out.resize(start + length, 0);
                let base = random::word(operation.random, u64::from(position));
                random::fill_text(base, &mut out[start..]);
            }
            number => write_integer(number.integer(operation, position), out),
        }
    }

    /// The number of a numeric placeholder; 0 for the others.
    fn integer(&self, operation: &Operation, position: u32) -> i64 {
        let random = || random::word(operation.random, u64::from(position));
        match self {
            Placeholder::Index => operation.index as i64,
            Placeholder::Mod(divisor) => (operation.index % divisor) as i64,
            Placeholder::Random { from, to } => random::between(random(), *from, *to),
            Placeholder::Zipf { from, ranks } => from.wrapping_add(ranks.rank(random()) as i64),
            Placeholder::Key | Placeholder::Value | Placeholder::Text(_) => 0,
        }
    }
}

fn write_integer(number: i64, out: &mut Vec<u8>) {
    use std::io::Write;
    // Writing to a Vec cannot fail.
    let _ = write!(out, "{number}");
}

/// The placeholder whose dollar is at `dollar`, and where it ends; None where the dollar is itself.
fn placeholder(text: &str, dollar: usize) -> Result<Option<(Placeholder, usize)>, ArgumentFault> {
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

fn fault(start: usize, end: usize, message: String, help: String) -> ArgumentFault {
    ArgumentFault {
        start,
        end,
        message,
        help,
    }
}

fn quoted(start: usize, end: usize, quote: char) -> ArgumentFault {
    fault(
        start,
        end,
        format!("a placeholder inside {quote} quotes cannot be bound as a parameter"),
        "take the quotes away: the value is bound with its type".to_owned(),
    )
}

/// The quote that is open after `text`, where `open` was before it. A doubled quote closes and opens again.
fn quote_after(text: &str, open: Option<char>) -> Option<char> {
    text.chars().fold(open, |open, c| match (open, c) {
        (None, '\'' | '"' | '`') => Some(c),
        (Some(quote), c) if quote == c => None,
        _ => open,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation() -> Operation {
        Operation {
            index: 1234,
            random: 99,
            key: b"user7".to_vec(),
            value: b"\x00\xffv".to_vec(),
            ..Operation::default()
        }
    }

    fn parse(text: &str) -> ArgumentTemplate {
        ArgumentTemplate::parse(text).unwrap()
    }

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        parse(text).write(&operation(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn placeholders_are_filled_and_every_other_dollar_is_itself() {
        assert_eq!(written("a:$key:b"), "a:user7:b");
        assert_eq!(written("$index/$mod(1000)"), "1234/234");
        assert_eq!(
            written("{$inc: {n: 1}} $keys $1 $"),
            "{$inc: {n: 1}} $keys $1 $"
        );
        assert_eq!(written("{$mod: [4, 0]}, $text"), "{$mod: [4, 0]}, $text");
        assert_eq!(written("$$key costs 5$$"), "$key costs 5$");
        assert_eq!(written("ключ=$key…"), "ключ=user7…");
        assert_eq!(written("$text(40)").len(), 40);
    }

    #[test]
    fn random_numbers_keep_to_their_range_and_differ_by_operation_and_position() {
        let template = parse("$random(-5, 5) $random(-5, 5)");
        let (mut seen, mut unequal) = (std::collections::BTreeSet::new(), 0);
        for random in 0..200 {
            let mut out = Vec::new();
            let operation = Operation {
                random,
                ..operation()
            };
            template.write(&operation, &mut out);
            let text = String::from_utf8(out).unwrap();
            let pair: Vec<i64> = text.split(' ').map(|n| n.parse().unwrap()).collect();
            unequal += usize::from(pair[0] != pair[1]);
            seen.extend(pair);
        }
        assert_eq!(seen, (-5..=5).collect());
        assert!(unequal > 150, "{unequal}");
    }

    #[test]
    fn the_strings_of_one_operation_do_not_share_their_random_numbers() {
        let texts = ["$random(1, 1000000000)"; 2];
        let templates = ArgumentTemplate::parse_all(texts).unwrap();
        let operation = operation();
        assert_ne!(
            templates[0].evaluate(&operation),
            templates[1].evaluate(&operation)
        );
        let again = parse(texts[0]);
        assert_eq!(
            again.evaluate(&operation),
            templates[0].evaluate(&operation)
        );
    }

    #[test]
    fn zipf_prefers_its_lower_end() {
        let template = parse("$zipf(10, 109)");
        let mut lowest = 0;
        for random in 0..1000 {
            let operation = Operation {
                random,
                ..operation()
            };
            match template.evaluate(&operation) {
                Argument::Integer(number) => {
                    assert!((10..=109).contains(&number));
                    lowest += u32::from(number == 10);
                }
                other => panic!("{other:?}"),
            }
        }
        // 1 / (sum of r^-0.99 for r from 1 to 100) = 0.189.
        assert!((150..230).contains(&lowest), "{lowest}");
    }

    #[test]
    fn a_single_placeholder_keeps_its_type() {
        let operation = operation();
        let bytes = |text: &'static [u8]| Argument::Bytes(Cow::Borrowed(text));
        assert_eq!(
            parse("$index").evaluate(&operation),
            Argument::Integer(1234)
        );
        assert_eq!(parse("$value").evaluate(&operation), bytes(b"\x00\xffv"));
        assert_eq!(parse("$key").evaluate(&operation), bytes(b"user7"));
        assert_eq!(parse("7").evaluate(&operation), bytes(b"7"));
        assert_eq!(parse("").evaluate(&operation), bytes(b""));
        assert_eq!(parse("n$index").evaluate(&operation), bytes(b"n1234"));
        assert_eq!(parse("$random(1, 2)").kind(), ArgumentKind::Integer);
        assert_eq!(parse("k$random(1, 2)").kind(), ArgumentKind::Text);
        assert_eq!(parse("$key").kind(), ArgumentKind::Text);
        assert_eq!(parse("v=$value").kind(), ArgumentKind::Bytes);
    }

    #[test]
    fn a_template_says_what_it_needs() {
        assert!(parse("SELECT 1").is_constant());
        assert!(!parse("$index").is_constant());
        assert!(parse("x$value").uses_value() && !parse("$$value").uses_value());
        assert!(parse("$key").uses_key() && !parse("$index").uses_key());
    }

    #[test]
    fn statements_are_split_into_markers_and_arguments() {
        let text = "UPDATE t SET v = $value, n = $random(1, 9) WHERE k = $key AND c = '$$'";
        let (statement, arguments) = parse(text).split_placeholders().unwrap();
        assert_eq!(
            statement,
            "UPDATE t SET v = ?, n = ? WHERE k = ? AND c = '$'"
        );
        let kinds: Vec<_> = arguments.iter().map(ArgumentTemplate::kind).collect();
        let expected = [
            ArgumentKind::Bytes,
            ArgumentKind::Integer,
            ArgumentKind::Text,
        ];
        assert_eq!(kinds, expected);
        let (numbered, _) = parse(text)
            .split_placeholders_as(|n| format!("${}", n + 1))
            .unwrap();
        assert!(numbered.contains("v = $1, n = $2 WHERE k = $3"));
        // A split placeholder draws the number that it draws unsplit.
        let mut whole = Vec::new();
        parse("$value$random(1, 999999)").write(&operation(), &mut whole);
        let (_, parts) = parse("$value$random(1, 999999)")
            .split_placeholders()
            .unwrap();
        let mut joined = Vec::new();
        parts
            .iter()
            .for_each(|p| p.write(&operation(), &mut joined));
        assert_eq!(joined, whole);
    }

    #[test]
    fn a_placeholder_inside_quotes_cannot_be_bound() {
        let text = "SELECT 'it''s $key'";
        let fault = parse(text).split_placeholders().unwrap_err();
        assert_eq!(&text[fault.start..fault.end], "$key");
        assert!(fault.message.contains("quotes"));
    }

    #[test]
    fn wrong_calls_are_faults_at_their_place_with_a_correction() {
        let cases = [
            ("a $random(1) b", "$random(1)", "two numbers, not 1"),
            ("$random(9, 1)", "$random(9, 1)", "empty"),
            ("$mod(0)", "$mod(0)", "from 1 to"),
            ("$mod()", "$mod()", "one number, not 0"),
            ("$text(x)", "$text(x)", "`x` is no whole number"),
            ("$text(99999999999)", "$text(99999999999)", "from 1 to"),
            ("é$zipf(1, 2", "$zipf(1, 2", "closing parenthesis"),
            ("$zipf(1, 2.5)", "$zipf(1, 2.5)", "`2.5` is no whole number"),
        ];
        for (text, place, message) in cases {
            let fault = ArgumentTemplate::parse(text).unwrap_err();
            assert_eq!(&text[fault.start..fault.end], place);
            assert!(fault.message.contains(message), "{text}: {}", fault.message);
            assert!(fault.help.contains('$'), "{text}: {}", fault.help);
        }
        let fault = ArgumentTemplate::parse("$random(9, 1)").unwrap_err();
        assert_eq!(fault.help, "write `$random(1, 9)`");
        let (number, _) = ArgumentTemplate::parse_all(["$key", "$mod(0)"]).unwrap_err();
        assert_eq!(number, 1);
    }
}
