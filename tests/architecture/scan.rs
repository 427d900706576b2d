//! Reads a Rust source as far as the rules need: without comments, literals and test code, and as the paths it imports.
//!
//! Not a parser: it knows tokens and braces, which is enough for code that compiles and is formatted.

use std::path::Path;

/// One file of `src/`.
pub struct Source {
    /// Path below `src/`.
    pub name: String,
    /// `driver/redis/mod.rs` is `["driver", "redis"]`.
    pub module: Vec<String>,
    pub text: String,
    /// The text without comments, the insides of literals and items under `#[cfg(test)]`.
    pub code: String,
    /// Declared under `#[cfg(test)]`, or below such a module.
    pub is_test: bool,
    /// Modules of this one that are declared under `#[cfg(test)]`.
    test_modules: Vec<String>,
}

impl Source {
    pub fn new(path: &Path, text: String) -> Source {
        let (code, test_modules) = without_tests(&without_literals(&text));
        let parts = path.with_extension("");
        let mut module: Vec<String> = parts
            .iter()
            .map(|part| part.to_string_lossy().into_owned())
            .collect();
        if module.len() > 1 {
            module.pop_if(|last| last == "mod");
        }
        Source {
            name: path.to_string_lossy().into_owned(),
            module,
            text,
            code,
            is_test: false,
            test_modules,
        }
    }

    /// Paths into the crate, from its root, that the code names: `["op", "Verb"]`. Groups are taken apart.
    pub fn imports(&self) -> Vec<Vec<String>> {
        let mut paths = Vec::new();
        for (root, at) in roots(&self.code) {
            let rest = &self.code[at..];
            match root {
                "super" => {
                    let ups = 1 + rest.matches_leading("super::");
                    let inside = &rest["super::".len() * (ups - 1)..];
                    // More than there are is a module inside this file.
                    let kept = self.module.len().saturating_sub(ups);
                    let base = self.module[..kept].to_vec();
                    expand(inside, &base, &mut paths);
                }
                _ => {
                    expand(rest, &[], &mut paths);
                }
            }
        }
        paths.retain(|path| !path.is_empty());
        paths
    }
}

/// Marks files that are test code because of where they are declared.
pub fn mark_tests(sources: &mut [Source]) {
    let mut tests: Vec<Vec<String>> = Vec::new();
    for source in sources.iter() {
        for name in &source.test_modules {
            let mut module = source.module.clone();
            if module == ["lib"] {
                module.clear();
            }
            module.push(name.clone());
            tests.push(module);
        }
    }
    for source in sources {
        source.is_test = tests.iter().any(|test| source.module.starts_with(test));
    }
}

trait Leading {
    fn matches_leading(&self, what: &str) -> usize;
}

impl Leading for str {
    fn matches_leading(&self, what: &str) -> usize {
        let mut rest = self;
        let mut count = 0;
        while let Some(after) = rest.strip_prefix(what) {
            rest = after;
            count += 1;
        }
        count
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Where a path from the crate's root or from a parent begins: its first word, and the place after its `::`.
fn roots(code: &str) -> Vec<(&'static str, usize)> {
    let mut found = Vec::new();
    for (root, start) in [
        ("crate", "crate::"),
        ("super", "super::"),
        ("dbbench", "dbbench::"),
    ] {
        for (at, _) in code.match_indices(start) {
            let before = code[..at].chars().next_back();
            // `super::super::` is found once, at its beginning.
            if !before.is_some_and(|c| is_word(c) || c == ':' || c == '$') {
                found.push((root, at + start.len()));
            }
        }
    }
    found
}

/// The paths of a use tree or of one path, up to three words each.
fn expand(text: &str, base: &[String], paths: &mut Vec<Vec<String>>) -> usize {
    let mut path = base.to_vec();
    let mut at = 0;
    loop {
        let rest = &text[at..];
        if rest.starts_with('{') {
            return at + expand_group(rest, &path, paths);
        }
        let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        if length == 0 {
            break;
        }
        path.push(rest[..length].to_owned());
        at += length;
        match text[at..].strip_prefix("::") {
            Some(_) => at += 2,
            None => break,
        }
    }
    path.retain(|word| word != "self");
    path.truncate(3);
    paths.push(path);
    at
}

/// The paths of `{a, b::{c, d}}`, and its length.
fn expand_group(text: &str, base: &[String], paths: &mut Vec<Vec<String>>) -> usize {
    let mut at = 1;
    while let Some(next) = text[at..].chars().next() {
        match next {
            '}' => return at + 1,
            c if is_word(c) => at += expand(&text[at..], base, paths).max(1),
            c => at += c.len_utf8(),
        }
    }
    at
}

/// The text with every comment and the inside of every literal replaced by nothing; lines stay.
fn without_literals(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skipped = match c {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => comment_length(rest),
            '"' => string_length(rest),
            'r' if !out.ends_with(is_word) || out.ends_with('b') => raw_string_length(rest),
            '\'' => char_length(rest),
            _ => 0,
        };
        if skipped == 0 {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        } else {
            out.extend(rest[..skipped].chars().filter(|c| *c == '\n'));
            rest = &rest[skipped..];
        }
    }
    out
}

/// Block comments may hold others.
fn comment_length(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        at += match rest {
            [b'/', b'*', ..] => {
                depth += 1;
                2
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                2
            }
            _ => 1,
        };
        if depth == 0 {
            break;
        }
    }
    at
}

fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// 0 where it is no raw string (a name that begins with r, a raw identifier).
fn raw_string_length(text: &str) -> usize {
    let hashes = text[1..].matches_leading("#");
    if !text[1 + hashes..].starts_with('"') {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let start = 2 + hashes;
    let found = text[start..].find(&end);
    found.map_or(text.len(), |at| start + at + end.len())
}

/// 0 where it is a lifetime.
fn char_length(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, _))) => {
            let close = text[at + 1..].find('\'');
            close.map_or(0, |close| at + close + 2)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 0,
    }
}

/// The code without items under `#[cfg(test)]`, and the names of modules in files of their own among them.
fn without_tests(code: &str) -> (String, Vec<String>) {
    const MARK: &str = "#[cfg(test)]";
    let mut out = String::with_capacity(code.len());
    let mut modules = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find(MARK) {
        out.push_str(&rest[..at]);
        let item = &rest[at + MARK.len()..];
        let length = item_length(item);
        let declared = item[..length].trim().strip_suffix(';');
        if let Some((_, name)) = declared.and_then(|item| item.split_once("mod ")) {
            modules.push(name.trim().to_owned());
        }
        rest = &item[length..];
    }
    out.push_str(rest);
    (out, modules)
}

/// Up to the item's semicolon or the end of its braces.
fn item_length(item: &str) -> usize {
    let mut depth = 0;
    for (at, c) in item.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        let ends = (c == ';' || c == '}') && depth == 0;
        // The end of what encloses the item, where it was a field or a variant.
        if ends || depth < 0 {
            return at + usize::from(depth >= 0);
        }
    }
    item.len()
}

#[test]
fn comments_literals_and_tests_are_no_code() {
    let text = r##"
        // crate::engine::a
        /* crate::engine::b /* nested */ crate::engine::c */
        const A: &str = "crate::engine::d \" crate::engine::e";
        const B: &str = r#"crate::engine::f" crate::engine::g"#;
        const C: [char; 3] = ['"', '\'', '{'];
        fn keep<'a>(x: &'a str) -> crate::op::Verb {}
        #[cfg(test)]
        pub mod kit;
        #[cfg(test)]
        mod tests { use crate::engine::h; fn f() { if x {} } }
        use crate::op::Failure;
    "##;
    let source = Source::new(Path::new("driver/redis/mod.rs"), text.to_owned());
    assert_eq!(source.module, ["driver", "redis"]);
    assert_eq!(source.test_modules, ["kit"]);
    let expected = [["op", "Verb"], ["op", "Failure"]];
    assert_eq!(source.imports(), expected);
}

#[test]
fn groups_and_parents_are_taken_apart() {
    let text = "
        use crate::{op::{Verb, self}, driver::spec::Row};
        use super::super::engine;
        use super::redb::{Redb, control};
    ";
    let source = Source::new(Path::new("driver/redis/wire.rs"), text.to_owned());
    let found: Vec<String> = source.imports().iter().map(|p| p.join("::")).collect();
    let expected = [
        "op::Verb",
        "op",
        "driver::spec::Row",
        "driver::engine",
        "driver::redis::redb",
        "driver::redis::redb",
    ];
    assert_eq!(found, expected);
}

#[test]
fn files_below_a_test_module_are_test_code() {
    let make = |name: &str, text: &str| Source::new(Path::new(name), text.to_owned());
    let mut sources = [
        make("driver/embedded.rs", "#[cfg(test)]\npub mod kit;"),
        make("driver/embedded/kit.rs", ""),
        make("driver/embedded/other.rs", ""),
    ];
    mark_tests(&mut sources);
    let tests: Vec<bool> = sources.iter().map(|source| source.is_test).collect();
    assert_eq!(tests, [false, true, false]);
}
