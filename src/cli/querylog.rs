//! `dbbench querylog`: what a log of statements holds, without showing any literal.

use super::exit::Exit;
use crate::workload::querylog::Format;
use crate::workload::querylog::filter::{Filter, parse_from};
use crate::workload::querylog::summary::Summary;
use regex::bytes::Regex;
use std::fmt::Write;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  dbbench querylog general.log
      statements, kinds, tables, connections, time span, and what was not understood
  dbbench querylog postgresql.csv --only select --database shop --from +10min
      what a replay with these filters would be given
  dbbench querylog queries.sql --literals
      with an example of each statement, as it stands in the log

Exit codes: 0 done; 1 the log cannot be read; 2 the command line is wrong.";

/// Show what a query log holds.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A general or slow log of MySQL or MariaDB, PostgreSQL's log (stderr or csvlog), or plain SQL
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// How it is written
    #[arg(long, value_name = "FORMAT", default_value = "auto", value_parser = Format::NAMES)]
    format: String,
    /// Only these kinds of statements: select, insert, update, delete, replace, ddl, set, transaction, show, call, other
    #[arg(long, value_name = "KINDS", value_delimiter = ',')]
    only: Vec<String>,
    /// Only statements of this user
    #[arg(long, value_name = "NAME", default_value = "")]
    user: String,
    /// Only statements in this database
    #[arg(long, value_name = "NAME", default_value = "")]
    database: String,
    /// Only statements that this regular expression matches
    #[arg(long = "match", value_name = "REGEX")]
    matching: Option<String>,
    /// Only as many statements, from the first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    first: Option<u64>,
    /// Only from a time on: "2026-11-30 20:41:15", or "+10min" after the log's first
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    from: Option<String>,
    /// Statements shown, the commonest first
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Show an example of each statement with its literals, which may be somebody's data
    #[arg(long)]
    literals: bool,
}

pub fn main(args: Args) -> Exit {
    let (format, filter) = match filter(&args) {
        Ok(wanted) => wanted,
        Err(message) => {
            eprintln!("error: {message}");
            return Exit::WrongScenario;
        }
    };
    match Summary::of(&args.file, format, filter, args.first) {
        Ok(summary) => super::print(&text(&summary, &args)),
        Err(error) => {
            eprintln!("error: cannot read {}: {error}", args.file.display());
            Exit::CouldNotRun
        }
    }
}

fn filter(args: &Args) -> Result<(Format, Filter), String> {
    let format = Format::parse(&args.format).unwrap_or(Format::Auto);
    let only = Filter::kinds(&args.only)
        .map_err(|name| format!("--only: `{name}` is no kind of statement; see --help"))?;
    let matching = args.matching.as_deref().map(Regex::new).transpose();
    let matching = matching.map_err(|error| format!("--match: {error}"))?;
    let from = match &args.from {
        None => None,
        Some(text) => {
            let from = parse_from(text);
            Some(from.ok_or_else(|| {
                format!("--from: `{text}` is no time: 2026-11-30 20:41:15, or +10min")
            })?)
        }
    };
    let filter = Filter {
        only,
        user: args.user.clone().into_bytes(),
        database: args.database.clone().into_bytes(),
        matching,
        from,
        allow_writes: true,
    };
    Ok((format, filter))
}

fn text(summary: &Summary, args: &Args) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<16}{value}");
    };
    line("format", summary.format.map_or("", Format::name).to_owned());
    let statements = summary.statements;
    line(
        "statements",
        format!("{statements} ({} bytes)", summary.bytes),
    );
    if summary.not_wanted > 0 {
        line("not wanted", summary.not_wanted.to_string());
    }
    line(
        "may write",
        format!("{} (replayed only with allow_writes)", summary.may_write),
    );
    line("kinds", counts(summary.kinds.iter()));
    line("connections", summary.connections.len().to_string());
    line("users", counts(summary.users.iter()));
    line("databases", counts(summary.databases.iter()));
    line("tables", counts(summary.tables.iter()));
    if let (Some(first), Some(last)) = (summary.first_us, summary.last_us) {
        let seconds = (last - first) as f64 / 1e6;
        line(
            "time",
            format!("{} to {}: {seconds} s", time(first), time(last)),
        );
    }
    let shapes = summary.shapes(args.top);
    if !shapes.is_empty() {
        let different = summary.different_shapes();
        let more = match summary.other_shapes {
            0 => String::new(),
            _ => " and more".to_owned(),
        };
        line("different", format!("{different}{more}"));
    }
    for (count, shape, example) in shapes {
        let _ = writeln!(text, "{count:>12}  {shape}");
        if args.literals {
            let example = String::from_utf8_lossy(example);
            let example: Vec<&str> = example.split_whitespace().collect();
            let _ = writeln!(text, "{:>12}  {}", "", example.join(" "));
        }
    }
    if summary.not_understood > 0 {
        let _ = writeln!(text, "not understood  {}", summary.not_understood);
        for place in &summary.places {
            let _ = writeln!(
                text,
                "{:>12}  {}",
                format!("line {}", place.line),
                place.why
            );
        }
        if summary.not_understood > summary.places.len() as u64 {
            let more = summary.not_understood - summary.places.len() as u64;
            let _ = writeln!(text, "{:>12}  and {more} more", "");
        }
    }
    text
}

/// The commonest of named counts; the empty name is one that the log does not tell.
fn counts<'n, N: AsRef<str> + 'n>(named: impl Iterator<Item = (N, &'n u64)>) -> String {
    const MOST: usize = 20;
    let mut all: Vec<(String, u64)> = named
        .map(|(name, count)| (name.as_ref().to_owned(), *count))
        .collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
    let rest = all.len().saturating_sub(MOST);
    let shown = all
        .iter()
        .take(MOST)
        .map(|(name, count)| match name.as_str() {
            "" => format!("(not known) {count}"),
            name => format!("{name} {count}"),
        });
    let mut text = Vec::from_iter(shown).join(", ");
    if rest > 0 {
        let _ = write!(text, ", and {rest} more");
    }
    text
}

/// In the log's own time zone, which it does not tell.
fn time(us: i64) -> String {
    let time = jiff::Timestamp::from_microsecond(us).unwrap_or_default();
    jiff::tz::TimeZone::UTC
        .to_datetime(time)
        .strftime("%Y-%m-%d %H:%M:%S")
        .to_string()
}
