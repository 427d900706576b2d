//! `--only`: which runs of a plan are wanted.
//!
//! `target=redis,threads=1|4` wants the runs in which every named axis has one of its values; `#2` at the end wants that
//! repeat. Several filters want the runs that any of them wants. A run id is a filter for that run alone.

use super::Axis;
use super::ids::value_text;
use crate::diag::did_you_mean;

/// One `--only`, read against the axes of the plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    /// (axis, allowed indices into its values).
    wanted: Vec<(usize, Vec<u32>)>,
    repeat: Option<u32>,
}

impl Filter {
    /// Errors are sentences that name the axis or value meant.
    pub fn parse(text: &str, axes: &[Axis], repeats: u32) -> Result<Filter, String> {
        let (points, repeat) = split_repeat(text, repeats)?;
        let mut wanted = Vec::new();
        for part in split_outside_quotes(points, ',') {
            let part = part.trim();
            if part.is_empty() {
                continue;
            }
            wanted.push(parse_part(part, axes)?);
        }
        if wanted.is_empty() && repeat.is_none() {
            return Err(format!("`{text}` names no axis; write `axis=value`"));
        }
        Ok(Filter { wanted, repeat })
    }

    pub fn wants(&self, point: &[u32], repeat: u32) -> bool {
        self.repeat.is_none_or(|only| only == repeat)
            && self
                .wanted
                .iter()
                .all(|(axis, values)| values.contains(&point[*axis]))
    }
}

fn split_repeat(text: &str, repeats: u32) -> Result<(&str, Option<u32>), String> {
    let Some((points, repeat)) = text.rsplit_once('#') else {
        return Ok((text, None));
    };
    if repeat.contains('"') {
        return Ok((text, None));
    }
    match repeat.trim().parse::<u32>() {
        Ok(number) if (1..=repeats).contains(&number) => Ok((points, Some(number))),
        _ => Err(format!(
            "there is no repeat `{repeat}`; there are 1 to {repeats}"
        )),
    }
}

fn parse_part(part: &str, axes: &[Axis]) -> Result<(usize, Vec<u32>), String> {
    let Some((name, values)) = part.split_once('=') else {
        return Err(format!("`{part}` is no filter; write `axis=value`"));
    };
    let name = name.trim();
    let Some(position) = axes.iter().position(|axis| axis.name == name) else {
        return Err(not_there(
            "axis",
            name,
            axes.iter().map(|axis| axis.name.clone()),
        ));
    };
    let axis = &axes[position];
    let mut wanted = Vec::new();
    for value in split_outside_quotes(values, '|') {
        let value = unquoted(value.trim());
        let index = axis
            .values
            .iter()
            .position(|other| value_text(other) == value);
        match index {
            Some(index) => wanted.push(index as u32),
            None => {
                let known = axis.values.iter().map(value_text);
                return Err(not_there(&format!("value of `{name}`"), &value, known));
            }
        }
    }
    Ok((position, wanted))
}

fn not_there(what: &str, wrong: &str, known: impl Iterator<Item = String>) -> String {
    let known: Vec<String> = known.collect();
    let meant = did_you_mean(wrong, known.iter().map(String::as_str));
    match (meant, known.len()) {
        (Some(meant), _) => format!("no {what} is `{wrong}`; did you mean `{meant}`?"),
        (None, 0) => format!("no {what} is `{wrong}`; the scenario has no sweep"),
        (None, 1..=12) => format!("no {what} is `{wrong}`; there are: {}", known.join(", ")),
        (None, count) => format!("no {what} is `{wrong}`; there are {count} others"),
    }
}

fn split_outside_quotes(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut inside, mut escaped) = (0, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if inside => escaped = true,
            '"' => inside = !inside,
            c if c == separator && !inside => {
                parts.push(&text[start..at]);
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn unquoted(text: &str) -> String {
    match text
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
    {
        Some(inner) => inner.replace("\\\"", "\"").replace("\\\\", "\\"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn axes() -> Vec<Axis> {
        let axis = |name: &str, values: serde_json::Value| Axis {
            name: name.to_owned(),
            values: values.as_array().expect("a list").clone(),
        };
        vec![
            axis("target", json!(["redis", "a,b", "x|y"])),
            axis("threads", json!([1, 4, 16])),
        ]
    }

    fn wanted(filter: &str) -> Vec<(u32, u32)> {
        let filter = Filter::parse(filter, &axes(), 2).expect("a filter");
        let all = (0..3).flat_map(|target| (0..3).map(move |threads| (target, threads)));
        all.filter(|(target, threads)| filter.wants(&[*target, *threads], 1))
            .collect()
    }

    #[test]
    fn every_named_axis_must_have_one_of_its_values() {
        assert_eq!(wanted("target=redis,threads=1|16"), [(0, 0), (0, 2)]);
        assert_eq!(wanted("threads=4"), [(0, 1), (1, 1), (2, 1)]);
        assert_eq!(wanted("target=\"a,b\"|\"x|y\",threads=1"), [(1, 0), (2, 0)]);
        assert_eq!(wanted("target=redis,threads=4#1"), [(0, 1)]);
        assert!(wanted("target=redis,threads=4#2").is_empty());
    }

    #[test]
    fn a_wrong_axis_or_value_is_named_with_the_one_meant() {
        let error = |text| Filter::parse(text, &axes(), 2).unwrap_err();
        assert!(error("thread=1").contains("did you mean `threads`?"));
        assert!(error("target=radis").contains("did you mean `redis`?"));
        assert!(
            error("threads=3").contains("there are: 1, 4, 16")
                || error("threads=3").contains("did you mean")
        );
        assert!(error("redis").contains("axis=value"));
        assert!(error("threads=1#3").contains("1 to 2"));
    }
}
