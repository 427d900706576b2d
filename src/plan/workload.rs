//! `keys` and `values` of a group, merged, into the plan.

use super::extract::Extract;
use crate::diag::{Diagnostic, Span};
use crate::scenario::read::{Reader, size};
use crate::scenario::tree::Value as TreeValue;
use crate::workload::spec::{
    Content, Digest, KeyDistribution, KeySpec, SizeChoice, SizeSpec, ValueSpec,
};

/// Parameters of the distributions, and whose they are.
const PARAMETERS: [(&str, &[&str]); 5] = [
    ("theta", &["zipfian", "latest"]),
    ("scrambled", &["zipfian"]),
    ("hot_keys", &["hotspot"]),
    ("hot_operations", &["hotspot"]),
    ("share", &["exponential"]),
];

pub fn keys(ex: &mut Extract<'_, '_>, said: Option<Reader<'_>>, span: Span) -> Option<KeySpec> {
    let Some(reader) = said else {
        return Some(KeySpec {
            format: "user%010d".to_owned(),
            digest: Digest::None,
            count: None,
            uses_per_key: 1,
            distribution: KeyDistribution::Sequential,
        });
    };
    let format = reader.text("format").unwrap_or("user%010d").to_owned();
    if let Err(message) = key_width(&format) {
        return ex.refuse(
            Diagnostic::error("bad-key-format", reader.span_of("format"), message)
                .help("write `user%010d`"),
        );
    }
    let (distribution, name) = distribution(ex, &reader)?;
    let count = reader.count("count");
    if count.is_none() && distribution != KeyDistribution::Sequential {
        let message =
            format!("how many keys there are is not said, and `{name}` chooses among them");
        let at = match reader.has("distribution") {
            true => reader.span_of("distribution"),
            false => span,
        };
        return ex.refuse(
            Diagnostic::error("no-key-count", at, message)
                .help("add `count = 100_000` to the keys"),
        );
    }
    Some(KeySpec {
        format,
        digest: match reader.text("digest") {
            Some("md5") => Digest::Md5,
            Some("fnv1a") => Digest::Fnv1a,
            _ => Digest::None,
        },
        count,
        uses_per_key: reader.count("uses_per_key").unwrap_or(1).max(1),
        distribution,
    })
}

/// Width that the number of a format has at least: 10 of `user%010d`. Errors are sentences.
pub fn key_width(format: &str) -> Result<usize, String> {
    let Some((_, rest)) = format.split_once('%') else {
        return Err(format!("\"{format}\" has no place for the key's number"));
    };
    let Some((width, after)) = rest.split_once('d') else {
        return Err(format!("\"{format}\" has a `%` that is no `%d`"));
    };
    if after.contains('%') {
        return Err(format!("\"{format}\" has more than one `%`"));
    }
    let digits = width.strip_prefix('0').unwrap_or(width);
    match digits {
        "" => Ok(0),
        _ => digits
            .parse::<usize>()
            .ok()
            .filter(|width| *width <= 200)
            .ok_or_else(|| format!("`%{width}d` is no number's format")),
    }
}

fn distribution<'t>(
    ex: &mut Extract<'_, '_>,
    keys: &Reader<'t>,
) -> Option<(KeyDistribution, &'t str)> {
    let table = keys.table("distribution");
    let name = match &table {
        Some(table) => table.text("name")?,
        None => keys.text("distribution").unwrap_or("sequential"),
    };
    for (parameter, owners) in PARAMETERS {
        let said = table.as_ref().filter(|table| table.has(parameter));
        if let Some(table) = said.filter(|_| !owners.contains(&name)) {
            let message = format!(
                "`{parameter}` is of `{}`, and `{name}` does not use it",
                owners.join("` and `")
            );
            return ex.refuse(
                Diagnostic::error("wrong-parameter", table.key_span_of(parameter), message)
                    .help("leave it out"),
            );
        }
    }
    let number = |key: &str, default: f64| {
        table
            .as_ref()
            .and_then(|table| table.number(key))
            .unwrap_or(default)
    };
    let distribution = match name {
        "uniform" => KeyDistribution::Uniform,
        "zipfian" => KeyDistribution::Zipfian {
            theta: number("theta", 0.99),
            scrambled: table
                .as_ref()
                .and_then(|table| table.bool("scrambled"))
                .unwrap_or(true),
        },
        "hotspot" => KeyDistribution::Hotspot {
            hot_keys: number("hot_keys", 0.2),
            hot_operations: number("hot_operations", 0.8),
        },
        "latest" => KeyDistribution::Latest {
            theta: number("theta", 0.99),
        },
        "exponential" => KeyDistribution::Exponential {
            share: number("share", 0.857_142_857_1),
        },
        _ => KeyDistribution::Sequential,
    };
    Some((distribution, name))
}

pub fn values(
    ex: &mut Extract<'_, '_>,
    said: Option<Reader<'_>>,
    needed: bool,
    span: Span,
) -> Option<ValueSpec> {
    let Some(reader) = said.filter(|reader| reader.has("size")) else {
        if needed {
            let message = "values are written here, and their size is not said";
            let help = "add `size = \"1KiB\"` to [workload.values] or to the phase's `values`";
            return ex.refuse(Diagnostic::error("no-value-size", span, message).help(help));
        }
        return Some(ValueSpec {
            size: SizeSpec::Fixed { bytes: 0 },
            content: Content::Random,
            compressible: 0.0,
        });
    };
    Some(ValueSpec {
        size: value_size(ex, &reader)?,
        content: content(ex, &reader)?,
        compressible: reader.number("compressible").unwrap_or(0.0),
    })
}

fn value_size(ex: &mut Extract<'_, '_>, values: &Reader<'_>) -> Option<SizeSpec> {
    let node = values.node("size")?;
    if !matches!(node.value, TreeValue::Table(_)) {
        return size(node).map(|bytes| SizeSpec::Fixed { bytes });
    }
    let table = Reader::new(node)?;
    if table.has("choices") {
        let choices = table.tables("choices").into_iter();
        let choices: Vec<SizeChoice> = choices
            .filter_map(|choice| {
                Some(SizeChoice {
                    bytes: choice.size("size")?,
                    weight: choice.number("weight")?,
                })
            })
            .collect();
        if choices.is_empty() {
            return ex.refuse(Diagnostic::error(
                "empty",
                node.span,
                "a choice of sizes has at least one",
            ));
        }
        return Some(SizeSpec::Choices { choices });
    }
    let (from_bytes, to_bytes) = (table.size("from")?, table.size("to")?);
    if from_bytes > to_bytes {
        let message = "the largest size is smaller than the smallest";
        return ex.refuse(Diagnostic::error(
            "empty-range",
            table.span_of("to"),
            message,
        ));
    }
    Some(SizeSpec::Uniform {
        from_bytes,
        to_bytes,
    })
}

fn content(ex: &mut Extract<'_, '_>, values: &Reader<'_>) -> Option<Content> {
    let content = match values.text("content") {
        Some("repeat-index") => Content::RepeatIndex,
        Some("text") => Content::Text,
        Some("file") => {
            let Some(path) = values.text("file") else {
                let message = "which file the values are cut from is not said";
                return ex.refuse(
                    Diagnostic::error("missing-key", values.span_of("content"), message)
                        .help("add `file = \"corpus.txt\"`"),
                );
            };
            let (found, sha256) = ex.hash_of(path, values.span_of("file"))?;
            // Where it was found; the plan's hash leaves that out and takes the content's hash.
            Content::File {
                path: found.display().to_string(),
                sha256,
            }
        }
        _ => Content::Random,
    };
    let is_file = matches!(content, Content::File { .. });
    if values.has("file") && !is_file {
        let message = "`file` is used by `content = \"file\"` only";
        return ex.refuse(Diagnostic::error(
            "conflicting-keys",
            values.key_span_of("file"),
            message,
        ));
    }
    Some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_format_has_exactly_one_number() {
        assert_eq!(key_width("user%010d"), Ok(10));
        assert_eq!(key_width("%d"), Ok(0));
        assert_eq!(key_width("k%5d!"), Ok(5));
        assert!(key_width("user").is_err());
        assert!(key_width("%d%d").is_err());
        assert!(key_width("%s").is_err());
    }
}
