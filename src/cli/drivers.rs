//! `dbbench drivers`: what this build can measure, and each driver's options, printed from the rows that check them.

use super::exit::Exit;
use crate::diag::{did_you_mean, there_are};
use crate::driver::spec::{DriverSpec, HeldIn, Options, Store};
use crate::rows::{Kind, Row};
use comfy_table::{ContentArrangement, Table, presets};
use std::fmt::Write;

const EXAMPLES: &str = "\
Examples:
  dbbench drivers                  all drivers of this build and what they can do
  dbbench drivers redis            options, operations, endpoints and durability of one";

/// List the drivers, or describe one.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Driver to describe
    name: Option<String>,
}

pub fn main(args: Args) -> Exit {
    let drivers = crate::registry::specs();
    let Some(name) = args.name else {
        return super::print(&list(&drivers));
    };
    match drivers.iter().find(|spec| spec.name == name) {
        Some(spec) => super::print(&describe(spec)),
        None => {
            let known = || drivers.iter().map(|spec| spec.name);
            match did_you_mean(&name, known()) {
                Some(near) => {
                    eprintln!("error: there is no driver `{name}`; did you mean `{near}`?")
                }
                None => eprintln!("error: there is no driver `{name}`; {}", there_are(known())),
            }
            Exit::WrongScenario
        }
    }
}

/// Name, what it is, operations.
pub fn list(drivers: &[&'static DriverSpec]) -> String {
    let mut table = table(&["driver", "what it is", "operations"]);
    for spec in drivers {
        table.add_row([spec.name, spec.summary, &operations(spec)]);
    }
    format!(
        "{}\n\n`dbbench drivers NAME` prints the options of one.\n",
        table.trim_fmt()
    )
}

/// All that there is to know of one driver, for people.
pub fn describe(spec: &DriverSpec) -> String {
    let mut text = format!("{}: {}\n\n", spec.name, spec.summary);
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            writeln!(text, "  {name:<12} {value}").expect("a string takes all");
        }
    };
    line("operations", &operations(spec));
    line("endpoints", &endpoints(spec));
    line("sessions", spec.sessions);
    line("pipeline", if spec.pipeline { "yes" } else { "no" });
    line("held in", held_in(spec));
    line("durability", &durability(spec));
    line("library", spec.library);
    section(
        &mut text,
        &format!(
            "Options, in [targets.NAME.options] of a target with driver = \"{}\"",
            spec.name
        ),
        spec.options,
    );
    section(
        &mut text,
        &format!(
            "An operation of your own, in [operations.NAME.{}]",
            spec.name
        ),
        spec.operation,
    );
    text
}

fn section(text: &mut String, title: &str, rows: &[Row]) {
    if !rows.is_empty() {
        writeln!(text, "\n{title}:\n{}", rows_table(rows).trim_fmt()).expect("a string takes all");
    }
}

fn rows_table(rows: &[Row]) -> Table {
    let mut table = table(&["name", "type", "unit or range", "default", "meaning"]);
    for row in rows {
        let default = match (row.required, row.default) {
            (true, _) => "(required)",
            (false, "") => "-",
            (false, default) => default,
        };
        table.add_row([
            row.name,
            &type_of(&row.kind),
            &range_of(&row.kind),
            default,
            row.doc,
        ]);
    }
    table
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header(header.to_vec());
    if table.width().is_none() {
        table.set_width(110);
    }
    table
}

fn operations(spec: &DriverSpec) -> String {
    let mut names: Vec<&str> = spec.verbs.iter().map(|verb| verb.name()).collect();
    if !spec.operation.is_empty() {
        names.push("your own");
    }
    names.join(", ")
}

fn endpoints(spec: &DriverSpec) -> String {
    match spec.store {
        Store::Server {
            example, takes_all, ..
        } => match takes_all {
            true => format!("such as \"{example}\"; a session uses all of them"),
            false => format!("such as \"{example}\"; sessions are dealt over them in turn"),
        },
        Store::Embedded => "none: it runs inside the client, in a private directory".to_owned(),
        Store::Nothing => "none: there is no store behind it".to_owned(),
    }
}

fn held_in(spec: &DriverSpec) -> &'static str {
    match spec.held_in {
        HeldIn::Memory => "memory",
        HeldIn::Disk => "disk",
    }
}

fn durability(spec: &DriverSpec) -> String {
    let defaults = Options::new(spec.options, serde_json::Map::new());
    match ((spec.durability)(&defaults), spec.store) {
        (Some(durability), Store::Embedded) => {
            format!("{} with the options' defaults", durability.name())
        }
        (Some(durability), _) => durability.name().to_owned(),
        (None, Store::Server { .. }) => "as the server is configured; it is asked".to_owned(),
        (None, _) => String::new(),
    }
}

/// The type in a word or two.
pub fn type_of(kind: &Kind) -> String {
    match kind {
        Kind::Bool => "boolean".to_owned(),
        Kind::Integer { .. } => "integer".to_owned(),
        Kind::Number { .. } => "number".to_owned(),
        Kind::Text | Kind::Name(_) => "text".to_owned(),
        Kind::Duration { .. } => "duration".to_owned(),
        Kind::Size { .. } => "size".to_owned(),
        Kind::Rate => "rate".to_owned(),
        Kind::Choice(_) => "choice".to_owned(),
        Kind::Regex => "regular expression".to_owned(),
        Kind::Path => "path".to_owned(),
        Kind::Expression => "expression".to_owned(),
        Kind::List(element) => format!("list of {}", type_of(element)),
        Kind::Table(_) | Kind::Map(..) | Kind::Open { .. } => "table".to_owned(),
        Kind::OneOf(kinds) => {
            let mut words: Vec<String> = kinds.iter().map(type_of).collect();
            words.dedup();
            words.join(" or ")
        }
        Kind::Any => "any".to_owned(),
    }
}

fn range_of(kind: &Kind) -> String {
    const LARGE: i64 = 1_000_000_000_000_000;
    match kind {
        Kind::Integer { min, max } if *max >= LARGE && *min <= -LARGE => String::new(),
        Kind::Integer { min, max } if *max >= LARGE => format!("at least {min}"),
        Kind::Integer { min, max } => format!("{min} to {max}"),
        Kind::Number { min, max } if *max >= LARGE as f64 && *min <= -LARGE as f64 => String::new(),
        Kind::Number { min, max } if *max >= LARGE as f64 => format!("at least {min}"),
        Kind::Number { min, max } => format!("{min} to {max}"),
        Kind::Duration { .. } => "ns, us, ms, s, min, h".to_owned(),
        Kind::Size { .. } => "bytes, or B, KiB, MiB, GiB, KB, MB, GB".to_owned(),
        Kind::Rate => "/s, /min, /h; k, M, G".to_owned(),
        Kind::Choice(choices) => choices.join(", "),
        Kind::OneOf(kinds) => {
            let words: Vec<String> = kinds
                .iter()
                .map(range_of)
                .filter(|word| !word.is_empty())
                .collect();
            words.join("; ")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::spec::{Durability, Endpoint, Transport, no_fault, no_operation_fault};
    use crate::op::Verb;

    static SPEC: DriverSpec = DriverSpec {
        name: "some",
        summary: "A store.",
        options: &[
            Row::new("cache", Kind::Size { zero: false }, "Bytes of its cache.")
                .default("\"64MiB\""),
            Row::new("mode", Kind::Choice(&["fast", "safe"]), "What it favours.").required(),
            Row::new(
                "level",
                Kind::Integer { min: 0, max: 9 },
                "How hard it tries.",
            ),
        ],
        check_options: no_fault,
        verbs: &[Verb::Get, Verb::Set],
        operation: &[Row::new(
            "command",
            Kind::List(&Kind::Text),
            "What is sent.",
        )],
        check_operation: no_operation_fault,
        pipeline: false,
        replay: false,
        store: Store::Server {
            parse: |text| {
                Ok(Endpoint {
                    text: text.to_owned(),
                    label: text.to_owned(),
                    transport: Transport::Nothing,
                })
            },
            example: "some://127.0.0.1:1",
            takes_all: false,
        },
        sessions: "one connection per session",
        durability: |_| Some(Durability::Group),
        held_in: HeldIn::Disk,
        library: "some 1.0",
    };

    #[test]
    fn a_driver_is_described_with_all_its_options() {
        let text = describe(&SPEC);
        for words in [
            "get, set, your own",
            "some://127.0.0.1:1",
            "one connection per session",
            "durability   group",
            "64MiB",
            "(required)",
            "fast, safe",
            "0 to 9",
            "[operations.NAME.some]",
            "list of text",
        ] {
            assert!(text.contains(words), "no `{words}` in\n{text}");
        }
    }

    #[test]
    fn the_list_names_every_driver_and_its_operations() {
        let text = list(&[&SPEC]);
        assert!(
            text.contains("some")
                && text.contains("A store.")
                && text.contains("get, set, your own"),
            "{text}"
        );
    }
}
