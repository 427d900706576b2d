//! Which statements of a log are wanted.

use super::Logged;
use super::safety::may_write;
use super::statement::Kind;
use regex::bytes::Regex;

/// All that a statement must be; what is empty does not matter.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub only: Vec<Kind>,
    pub user: Vec<u8>,
    pub database: Vec<u8>,
    pub matching: Option<Regex>,
    pub from: Option<From>,
    pub allow_writes: bool,
}

/// From when on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum From {
    /// Microseconds since 1970, in the log's own time zone.
    At(i64),
    /// Microseconds after the log's first time.
    After(i64),
}

/// What a filter says of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Wanted,
    NotWanted,
    /// It may write, and that is not allowed.
    Refused,
}

impl Filter {
    /// Reads the kinds of `only`; the error is the word that is none.
    pub fn kinds(names: &[String]) -> Result<Vec<Kind>, String> {
        const ALL: [Kind; 11] = [
            Kind::Select,
            Kind::Insert,
            Kind::Update,
            Kind::Delete,
            Kind::Replace,
            Kind::Ddl,
            Kind::Set,
            Kind::Transaction,
            Kind::Show,
            Kind::Call,
            Kind::Other,
        ];
        let kind = |name: &String| {
            let found = ALL.into_iter().find(|kind| kind.name() == name);
            found.ok_or_else(|| name.clone())
        };
        names.iter().map(kind).collect()
    }

    /// `first_us`: the first time of the log.
    pub fn judge(&self, logged: &Logged<'_>, kind: Kind, first_us: Option<i64>) -> Verdict {
        let is = |wanted: &[u8], said: &[u8]| wanted.is_empty() || wanted == said;
        let late = match (self.from, logged.at_us, first_us) {
            (None, ..) => true,
            (Some(From::At(from)), Some(at), _) => at >= from,
            (Some(From::After(from)), Some(at), Some(first)) => at - first >= from,
            _ => false,
        };
        let wanted = late
            && (self.only.is_empty() || self.only.contains(&kind))
            && is(&self.user, logged.user)
            && is(&self.database, logged.database)
            && self
                .matching
                .as_ref()
                .is_none_or(|regex| regex.is_match(logged.text));
        match wanted {
            false => Verdict::NotWanted,
            true if !self.allow_writes && may_write(logged.text) => Verdict::Refused,
            true => Verdict::Wanted,
        }
    }
}

/// `2026-11-30 20:41:15` or `+10min`.
pub fn parse_from(text: &str) -> Option<From> {
    if let Some(after) = text.strip_prefix('+') {
        let after = crate::units::parse_duration(after).ok()?;
        return i64::try_from(after.as_micros()).ok().map(From::After);
    }
    super::iso(text.as_bytes())
        .filter(|(_, rest)| rest.is_empty())
        .map(|(at, _)| From::At(at))
}
