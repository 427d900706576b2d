//! Drawing diagnostics: the sentence, the user's line with carets, the corrected line, sorted by file and place.
//!
//! The drawing is annotate-snippets'; here is what it is given. Only the lines at fault are handed to it, since a source
//! may be large.

use super::{Diagnostic, Diagnostics, Fix, Severity, Source, SourceMap, Span};
use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Patch, Renderer, Snippet};
use std::ops::Range;

/// Columns of a drawing; longer lines are cut around the caret.
const WIDTH: usize = 120;

/// Diagnostics drawn at most: what follows a hundred faults helps nobody.
const SHOWN: usize = 100;

/// All diagnostics, then how many there were; empty where there are none.
pub fn render(sources: &SourceMap, diagnostics: &Diagnostics, color: bool) -> String {
    let mut list: Vec<&Diagnostic> = diagnostics.list.iter().collect();
    // Stable, and sources have their bases in the order of reading, so this is by file and place; what has no place is last.
    list.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.span.end));
    let renderer = match color {
        true => Renderer::styled(),
        false => Renderer::plain(),
    };
    let renderer = renderer.term_width(WIDTH).decor_style(DecorStyle::Ascii);
    let mut text = String::new();
    for diagnostic in list.iter().take(SHOWN) {
        text.push_str(&one(sources, diagnostic, &renderer));
        text.push_str("\n\n");
    }
    if list.len() > SHOWN {
        text.push_str(&format!("and {} more, not shown; ", list.len() - SHOWN));
    }
    if !list.is_empty() {
        text.push_str(&summary(&list));
        text.push('\n');
    }
    text
}

/// `3 errors, 1 warning`.
fn summary(list: &[&Diagnostic]) -> String {
    let count = |severity| list.iter().filter(|d| d.severity == severity).count();
    let words = [
        plural(count(Severity::Error), "error"),
        plural(count(Severity::Warning), "warning"),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn plural(count: usize, word: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 {word}")),
        _ => Some(format!("{count} {word}s")),
    }
}

fn one(sources: &SourceMap, diagnostic: &Diagnostic, renderer: &Renderer) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let title = level
        .primary_title(&*diagnostic.message)
        .id(diagnostic.code);
    let mut group = Group::with_title(title);
    if let Some(excerpt) = Excerpt::of(sources, diagnostic.span) {
        let mut annotation = AnnotationKind::Primary.span(excerpt.span.clone());
        if !diagnostic.label.is_empty() {
            annotation = annotation.label(&*diagnostic.label);
        }
        group = group.element(excerpt.snippet().annotation(annotation));
    }
    for (span, what) in &diagnostic.related {
        if let Some(excerpt) = Excerpt::of(sources, *span) {
            let annotation = AnnotationKind::Context
                .span(excerpt.span.clone())
                .label(&**what);
            group = group.element(excerpt.snippet().annotation(annotation));
        }
    }
    if !diagnostic.run.is_empty() {
        group = group.element(Level::NOTE.message(format!("in run {}", diagnostic.run)));
    }
    let fix = diagnostic
        .fix
        .as_ref()
        .and_then(|fix| Correction::of(sources, fix));
    let mut report = Vec::new();
    match (&fix, diagnostic.help.as_str()) {
        (None, "") => report.push(group),
        (None, help) => report.push(group.element(Level::HELP.message(help))),
        (Some(correction), help) => {
            report.push(group);
            report.push(correction.group(help));
        }
    }
    renderer.render(&report)
}

/// The line of a source that a span begins in.
struct Excerpt<'s> {
    source: &'s Source,
    text: &'s str,
    line: usize,
    /// Of the span, within `text`; never beyond the line.
    span: Range<usize>,
}

impl<'s> Excerpt<'s> {
    fn of(sources: &'s SourceMap, span: Span) -> Option<Excerpt<'s>> {
        let source = sources.find(span)?;
        let whole = source.text.as_str();
        let start = boundary(whole, (span.start - source.base) as usize);
        let end = boundary(whole, (span.end.saturating_sub(source.base)) as usize).max(start);
        // An end of file after the last line break belongs to that last line.
        let begin = match whole[..start].rfind('\n') {
            Some(position) if start == whole.len() && position + 1 == start => whole[..position]
                .rfind('\n')
                .map_or(0, |position| position + 1),
            Some(position) => position + 1,
            None => 0,
        };
        let length = whole[begin..].find('\n').unwrap_or(whole.len() - begin);
        let text = whole[begin..begin + length].trim_end_matches('\r');
        let within = |position: usize| (position - begin).min(text.len());
        Some(Excerpt {
            source,
            text,
            line: whole[..begin].matches('\n').count() + 1,
            span: within(start)..within(end),
        })
    }

    fn snippet<T: Clone>(&self) -> Snippet<'s, T> {
        Snippet::source(self.text)
            .path(self.source.name.as_str())
            .line_start(self.line)
    }
}

fn boundary(text: &str, position: usize) -> usize {
    let mut position = position.min(text.len());
    while !text.is_char_boundary(position) {
        position -= 1;
    }
    position
}

/// A fix, with its line.
struct Correction<'s> {
    excerpt: Excerpt<'s>,
    replacement: &'s str,
}

impl<'s> Correction<'s> {
    /// None where the bytes go over several lines: such a correction cannot be drawn in one.
    fn of(sources: &'s SourceMap, fix: &'s Fix) -> Option<Correction<'s>> {
        let excerpt = Excerpt::of(sources, fix.span)?;
        let whole = excerpt.span.len() == (fix.span.end - fix.span.start) as usize;
        (whole && excerpt.text.len() <= WIDTH).then_some(Correction {
            excerpt,
            replacement: &fix.replacement,
        })
    }

    fn group(&self, help: &'s str) -> Group<'s> {
        let help = if help.is_empty() { "write" } else { help };
        let patch = Patch::new(self.excerpt.span.clone(), self.replacement);
        Level::HELP
            .secondary_title(help)
            .element(self.excerpt.snippet().patch(patch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn sources(text: &str) -> SourceMap {
        let mut sources = SourceMap::default();
        sources.add("first.toml", Path::new(""), "a = 1\n".to_owned());
        sources.add("second.toml", Path::new(""), text.to_owned());
        sources
    }

    fn drawn(sources: &SourceMap, list: Vec<Diagnostic>) -> String {
        render(sources, &Diagnostics { list }, false)
    }

    #[test]
    fn the_caret_stands_under_the_bytes_of_the_right_file() {
        let sources = sources("x = 1\ntiemout = 5\n");
        let base = sources.sources[1].base as usize;
        let span = Span::new(base + 6, base + 13);
        let fault = Diagnostic::error("unknown-key", span, "unknown key `tiemout`")
            .help("did you mean `timeout`?")
            .fix(span, "timeout")
            .run("threads=4");
        let expected = "\
error[unknown-key]: unknown key `tiemout`
 --> second.toml:2:1
  |
2 | tiemout = 5
  | ^^^^^^^
  |
  = note: in run threads=4
help: did you mean `timeout`?
  |
2 - tiemout = 5
2 + timeout = 5
  |

1 error
";
        assert_eq!(drawn(&sources, vec![fault]), expected);
    }

    #[test]
    fn faults_are_sorted_by_file_and_place_and_counted() {
        let sources = sources("x = 1\n");
        let base = sources.sources[1].base as usize;
        let text = drawn(
            &sources,
            vec![
                Diagnostic::error("c", Span::NONE, "third"),
                Diagnostic::warning("b", Span::new(base, base + 1), "second"),
                Diagnostic::error("a", Span::new(0, 1), "first"),
            ],
        );
        let at = |word: &str| text.find(word).expect("there");
        assert!(at("error[a]") < at("warning[b]"));
        assert!(at("warning[b]") < at("third"));
        assert!(text.ends_with("2 errors, 1 warning\n"));
    }

    #[test]
    fn a_very_long_line_is_cut_around_the_caret() {
        let long = format!("x = \"{}\" bad {}", "y".repeat(5_000), "z".repeat(5_000));
        let sources = sources(&long);
        let start = sources.sources[1].base as usize + long.find("bad").expect("there");
        let text = drawn(
            &sources,
            vec![Diagnostic::error("a", Span::new(start, start + 3), "m")],
        );
        assert!(text.contains("bad"));
        assert!(text.lines().all(|line| line.len() < 200), "{text}");
    }

    #[test]
    fn what_follows_a_hundred_faults_is_only_counted() {
        let sources = sources("x = 1\n");
        let fault = |number| Diagnostic::error("a", Span::new(0, 1), format!("fault {number}"));
        let text = drawn(&sources, (0..250).map(fault).collect());
        assert!(text.contains("fault 99") && !text.contains("fault 100"));
        assert!(text.ends_with("and 150 more, not shown; 250 errors\n"));
    }

    #[test]
    fn a_place_at_the_end_of_the_file_or_inside_a_character_is_no_harm() {
        let sources = sources("x = \"é\"\n");
        let base = sources.sources[1].base as usize;
        let end = base + sources.sources[1].text.len();
        for span in [Span::new(end, end), Span::new(base + 6, base + 6)] {
            let text = drawn(&sources, vec![Diagnostic::error("a", span, "m")]);
            assert!(text.contains("second.toml:1:"), "{text}");
        }
    }
}
