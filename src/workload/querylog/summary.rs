//! What a log holds, counted: for `dbbench querylog`.

use super::filter::{Filter, Verdict};
use super::safety::may_write;
use super::statement::{Kind, is_known, shape, tables};
use super::{Format, Listener, Logged, NotUnderstood, read};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

/// Different shapes that are told apart; more are counted together.
const MOST_SHAPES: usize = 10_000;
/// Places that are told.
const MOST_PLACES: usize = 20;

#[derive(Debug, Default)]
pub struct Summary {
    pub format: Option<Format>,
    pub statements: u64,
    pub bytes: u64,
    pub may_write: u64,
    pub not_wanted: u64,
    pub kinds: BTreeMap<&'static str, u64>,
    pub tables: BTreeMap<String, u64>,
    pub connections: HashSet<u64>,
    pub users: BTreeMap<String, u64>,
    pub databases: BTreeMap<String, u64>,
    pub first_us: Option<i64>,
    pub last_us: Option<i64>,
    pub not_understood: u64,
    pub places: Vec<NotUnderstood>,
    /// With an example of each.
    shapes: HashMap<String, (u64, Vec<u8>)>,
    pub other_shapes: u64,
    filter: Filter,
    first: Option<u64>,
}

impl Summary {
    /// Reads the log; only what the filter wants is counted (writes always).
    pub fn of(
        path: &Path,
        format: Format,
        filter: Filter,
        first: Option<u64>,
    ) -> io::Result<Summary> {
        let mut summary = Summary {
            filter: Filter {
                allow_writes: true,
                ..filter
            },
            first,
            ..Summary::default()
        };
        summary.format = Some(read(path, format, &mut summary)?);
        Ok(summary)
    }

    /// The commonest shapes, with their counts and an example each.
    pub fn shapes(&self, most: usize) -> Vec<(u64, &str, &[u8])> {
        let mut shapes: Vec<_> = self
            .shapes
            .iter()
            .map(|(shape, (count, example))| (*count, shape.as_str(), example.as_slice()))
            .collect();
        shapes.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
        shapes.truncate(most);
        shapes
    }

    pub fn different_shapes(&self) -> usize {
        self.shapes.len()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Listener for Summary {
    fn statement(&mut self, logged: &Logged<'_>) -> ControlFlow<()> {
        let kind = Kind::of(logged.text);
        let begun = self.first_us.or(logged.at_us);
        if self.filter.judge(logged, kind, begun) != Verdict::Wanted {
            self.not_wanted += 1;
            return ControlFlow::Continue(());
        }
        self.statements += 1;
        self.bytes += logged.text.len() as u64;
        self.may_write += u64::from(may_write(logged.text));
        *self.kinds.entry(kind.name()).or_default() += 1;
        let named = match is_known(logged.text) {
            true => tables(logged.text),
            false => Vec::new(),
        };
        for table in named {
            *self.tables.entry(text(&table)).or_default() += 1;
        }
        self.connections.insert(logged.connection);
        *self.users.entry(text(logged.user)).or_default() += 1;
        *self.databases.entry(text(logged.database)).or_default() += 1;
        self.first_us = begun;
        self.last_us = logged.at_us.or(self.last_us);
        let shape = match is_known(logged.text) {
            true => shape(logged.text),
            false => "(not recognized)".to_owned(),
        };
        let room = self.shapes.len() < MOST_SHAPES;
        match self.shapes.get_mut(&shape) {
            Some((count, _)) => *count += 1,
            None if room => {
                self.shapes.insert(shape, (1, logged.text.to_vec()));
            }
            None => self.other_shapes += 1,
        }
        match self.first == Some(self.statements) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    fn not_understood(&mut self, place: NotUnderstood) {
        self.not_understood += 1;
        if self.places.len() < MOST_PLACES {
            self.places.push(place);
        }
    }
}
