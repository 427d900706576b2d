//! Looks at a string without evaluating it: whether it is a template, whether it is one whole expression, which names
//! it reads.
//!
//! Knows minijinja's syntax, no values.

use super::engine::{Fault, bare, fault_of};
use std::collections::BTreeSet;
use std::ops::Range;

/// A template, looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Scan {
    /// Where the expression stands, if the string is one whole `{{ expression }}`.
    pub whole: Option<Range<usize>>,
    /// Top-level names it reads, functions too; not those it sets itself.
    pub names: BTreeSet<String>,
}

/// Whether a string holds `{{ }}` or `{% %}`.
pub fn is_template(text: &str) -> bool {
    text.contains("{{") || text.contains("{%")
}

/// Parses a template and says what it reads; a fault of its syntax is the error.
pub fn scan(text: &str) -> Result<Scan, Fault> {
    if let Some(range) = nested(text) {
        return Err(Fault {
            message: "a template cannot stand inside another".to_owned(),
            help: "inside `{{ }}` write the name alone, and join texts with `~`".to_owned(),
            range: Some(range),
        });
    }
    let environment = bare();
    let whole = whole_expression(text);
    let names = match &whole {
        Some(range) => environment
            .compile_expression(&text[range.clone()])
            .map_err(|error| fault_of(&error, range.start, text))?
            .undeclared_variables(false),
        None => environment
            .template_from_str(text)
            .map_err(|error| fault_of(&error, 0, text))?
            .undeclared_variables(false),
    };
    Ok(Scan {
        whole,
        names: names.into_iter().collect(),
    })
}

/// Top-level names that a bare expression (without its braces) reads.
pub fn names_of_expression(expression: &str) -> Result<BTreeSet<String>, Fault> {
    names_at(expression, false)
}

/// Paths that a bare expression reads: `set.elapsed_seconds`.
pub fn nested_names(expression: &str) -> Result<BTreeSet<String>, Fault> {
    names_at(expression, true)
}

fn names_at(expression: &str, nested: bool) -> Result<BTreeSet<String>, Fault> {
    let environment = bare();
    let compiled = environment
        .compile_expression(expression)
        .map_err(|error| fault_of(&error, 0, expression))?;
    Ok(compiled.undeclared_variables(nested).into_iter().collect())
}

/// Where the expression of a string that is one whole `{{ expression }}` stands, trimmed; None for any other.
pub fn whole_expression(text: &str) -> Option<Range<usize>> {
    let start = text.len() - text.trim_start().len();
    let end = text.trim_end().len();
    if !text[start..end].starts_with("{{") {
        return None;
    }
    let close = closing_braces(text, start + 2)?;
    if close + 2 != end {
        return None;
    }
    let inner = &text[start + 2..close];
    let inner = inner.strip_prefix('-').unwrap_or(inner);
    let inner = inner.strip_suffix('-').unwrap_or(inner);
    let inner = inner.trim();
    if inner.is_empty() {
        return None;
    }
    let from = inner.as_ptr() as usize - text.as_ptr() as usize;
    Some(from..from + inner.len())
}

/// Where the `}}` that closes an expression stands; strings and braces inside it are skipped.
fn closing_braces(text: &str, from: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0usize;
    let mut quote = None;
    let mut at = from;
    while at < bytes.len() {
        match (quote, bytes[at]) {
            (Some(_), b'\\') => at += 1,
            (Some(open), byte) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, byte @ (b'"' | b'\'')) => quote = Some(byte),
            (None, b'{') => depth += 1,
            (None, b'}') if depth > 0 => depth -= 1,
            (None, b'}') if bytes.get(at + 1) == Some(&b'}') => return Some(at),
            (None, _) => {}
        }
        at += 1;
    }
    None
}

/// Where a `{{` opens inside an open `{{`, if anywhere.
fn nested(text: &str) -> Option<Range<usize>> {
    let mut rest = 0;
    while let Some(open) = text[rest..].find("{{").map(|at| rest + at) {
        if text[..open].contains("{% raw") {
            return None;
        }
        let inner = text[open + 2..].trim_start();
        if inner.starts_with("{{") {
            let at = text.len() - inner.len();
            return Some(at..at + 2);
        }
        rest = open + 2;
    }
    None
}

/// Where a name stands in a text as a word of its own.
pub fn find_word(text: &str, word: &str) -> Option<Range<usize>> {
    let boundary = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    text.match_indices(word).find_map(|(at, _)| {
        let end = at + word.len();
        let alone =
            boundary(text[..at].chars().next_back()) && boundary(text[end..].chars().next());
        alone.then_some(at..end)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Option<&str> {
        whole_expression(text).map(|range| &text[range])
    }

    #[test]
    fn one_whole_expression_is_told_from_a_text_with_expressions() {
        assert_eq!(whole("{{ threads }}"), Some("threads"));
        assert_eq!(whole(" {{- a + 1 -}} "), Some("a + 1"));
        assert_eq!(whole("{{ a }}{{ b }}"), None);
        assert_eq!(whole("{{ timeout }}ms"), None);
        assert_eq!(whole("{{ '}}' ~ a }}"), Some("'}}' ~ a"));
        assert_eq!(whole("{{ {'a': {'b': 1}} }}"), Some("{'a': {'b': 1}}"));
        assert_eq!(whole("{{ }}"), None);
    }

    #[test]
    fn names_read_are_found_and_names_set_are_not() {
        let names = |text| Vec::from_iter(scan(text).expect("a template").names);
        assert_eq!(names("{{ threads * factor }}"), ["factor", "threads"]);
        assert_eq!(
            names("{% for i in range(n) %}{{ i }}{% endfor %}"),
            ["n", "range"]
        );
        assert_eq!(names("x{{ port('redis') }}"), ["port"]);
        assert!(names("{% raw %}{{ threads }}{% endraw %}").is_empty());
    }

    #[test]
    fn a_template_inside_another_is_refused_at_its_braces() {
        let fault = scan("{{ {{ threads }} }}").unwrap_err();
        assert!(fault.message.contains("inside another"));
        assert_eq!(fault.range, Some(3..5));
    }

    #[test]
    fn a_word_is_found_only_as_a_whole() {
        assert_eq!(find_word("threads_max + threads", "threads"), Some(14..21));
        assert_eq!(find_word("threads_max", "threads"), None);
    }
}
