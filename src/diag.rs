//! Diagnostics: what is wrong with a user's file, where, and how to mend it.
//!
//! Knows sources, spans and how a message is drawn; nothing of what a scenario means. All files of a scenario (fragments,
//! defaults, `--set` arguments) are joined into one `SourceMap`, so a span always points into the right one.

mod render;

pub use render::render;

use std::path::{Path, PathBuf};

/// Byte range in the joined text of a `SourceMap`; `Span::NONE` where there is no place to point at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    pub const NONE: Span = Span {
        start: u32::MAX,
        end: u32::MAX,
    };

    pub fn new(start: usize, end: usize) -> Span {
        Span {
            start: start as u32,
            end: end as u32,
        }
    }

    pub fn is_none(self) -> bool {
        self == Span::NONE
    }
}

/// One text that a scenario is made of.
#[derive(Clone, Debug)]
pub struct Source {
    /// As shown in messages: the path as the user wrote it, `<defaults>`, `--set` (whose text is its argument).
    pub name: String,
    /// What relative paths inside it are relative to.
    pub directory: PathBuf,
    pub text: String,
    /// Where its text begins in the joined numbering.
    pub base: u32,
}

#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    pub sources: Vec<Source>,
}

impl SourceMap {
    /// Adds a text; spans inside it are its byte offsets plus the returned base.
    pub fn add(&mut self, name: impl Into<String>, directory: &Path, text: String) -> u32 {
        let base = self
            .sources
            .last()
            .map_or(0, |last| last.base + last.text.len() as u32 + 1);
        self.sources.push(Source {
            name: name.into(),
            directory: directory.to_owned(),
            text,
            base,
        });
        base
    }

    pub fn find(&self, span: Span) -> Option<&Source> {
        if span.is_none() {
            return None;
        }
        self.sources
            .iter()
            .rev()
            .find(|source| source.base <= span.start)
    }

    /// The user's bytes at a span.
    pub fn text(&self, span: Span) -> &str {
        let Some(source) = self.find(span) else {
            return "";
        };
        let at = |position: u32| (position - source.base) as usize;
        source.text.get(at(span.start)..at(span.end)).unwrap_or("")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Error,
    Warning,
}

/// One fault: code, sentence, caret, help.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    pub severity: Severity,
    /// Stable and unique per kind of fault: `unknown-key`.
    pub code: &'static str,
    /// One sentence, lower case, no full stop.
    pub message: String,
    pub span: Span,
    /// What stands at the caret; may be empty.
    pub label: String,
    /// Other places that matter: (where, what).
    pub related: Vec<(Span, String)>,
    /// What to do, in the user's own words; may be empty.
    pub help: String,
    /// The correction of the user's own bytes: the line is drawn as it should be, under the help.
    pub fix: Option<Fix>,
    /// Axis values of the run in which it happens, where not all runs are at fault; may be empty.
    pub run: String,
}

/// These bytes of the user's should read otherwise; an empty span inserts.
#[derive(Clone, Debug, PartialEq)]
pub struct Fix {
    pub span: Span,
    pub replacement: String,
}

impl Diagnostic {
    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code,
            message: message.into(),
            span,
            label: String::new(),
            related: Vec::new(),
            help: String::new(),
            fix: None,
            run: String::new(),
        }
    }

    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(code, span, message)
        }
    }

    pub fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = label.into();
        self
    }

    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = help.into();
        self
    }

    /// What should stand at `span` instead.
    pub fn fix(mut self, span: Span, replacement: impl Into<String>) -> Diagnostic {
        let replacement = replacement.into();
        self.fix = Some(Fix { span, replacement });
        self
    }

    pub fn related(mut self, span: Span, what: impl Into<String>) -> Diagnostic {
        self.related.push((span, what.into()));
        self
    }

    pub fn run(mut self, run: impl Into<String>) -> Diagnostic {
        self.run = run.into();
        self
    }
}

/// Collects; never stops at the first. The same fault at the same place is kept once.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    pub list: Vec<Diagnostic>,
}

impl Diagnostics {
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let known = self.list.iter().any(|other| {
            other.span == diagnostic.span
                && other.code == diagnostic.code
                && other.message == diagnostic.message
        });
        if !known {
            self.list.push(diagnostic);
        }
    }

    pub fn extend(&mut self, others: Diagnostics) {
        for diagnostic in others.list {
            self.push(diagnostic);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn has_errors(&self) -> bool {
        self.list.iter().any(|d| d.severity == Severity::Error)
    }
}

/// The name among `known` that is meant by `wrong`, if one is near enough to be worth saying: few edits apart, or the only
/// one that goes on from it (`zipf`, `zipfian`).
pub fn did_you_mean<'k>(wrong: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let known: Vec<&str> = known.into_iter().collect();
    let wrong = wrong.to_lowercase();
    let length = wrong.chars().count();
    let allowed = (length / 3).max(1).min(length.saturating_sub(1));
    let near = known
        .iter()
        .map(|name| (distance(&wrong, &name.to_lowercase()), *name))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name);
    let mut longer = known
        .into_iter()
        .filter(|name| wrong.len() >= 3 && name.starts_with(&wrong));
    near.or_else(|| longer.next().filter(|_| longer.next().is_none()))
}

/// Edits apart; `max-keys` and `max_keys` count as the same.
fn distance(wrong: &str, name: &str) -> usize {
    let plain = |text: &str| text.replace('-', "_");
    strsim::damerau_levenshtein(&plain(wrong), &plain(name))
}

/// `a`, `b` and `c`, each in backquotes; long lists are cut.
pub fn list_of<'k>(names: impl IntoIterator<Item = &'k str>) -> String {
    const SHOWN: usize = 24;
    let mut quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    if quoted.len() > SHOWN {
        quoted.truncate(SHOWN);
        return format!("{}, ...", quoted.join(", "));
    }
    match quoted.len() {
        0 => "none".to_owned(),
        1 => quoted.remove(0),
        n => format!("{} and {}", quoted[..n - 1].join(", "), quoted[n - 1]),
    }
}

/// `there are ...`, as the end of a sentence on names.
pub fn there_are<'k>(names: impl IntoIterator<Item = &'k str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    match names.len() {
        0 => "there is none".to_owned(),
        1 => format!("there is only `{}`", names[0]),
        _ => format!("there are {}", list_of(names)),
    }
}
