//! Collects the faults of a plan: one per place, however many runs have it, with the axis values of the first where not
//! all runs do.

use super::Axis;
use super::expand::Point;
use super::scope::{At, Key, Mask, REPEAT, run_text};
use crate::diag::{Diagnostic, Diagnostics, Span};
use std::collections::{HashMap, HashSet};

#[derive(Default)]
pub struct Faults {
    list: Vec<Pending>,
    known: HashMap<(&'static str, Span), usize>,
}

struct Pending {
    diagnostic: Diagnostic,
    mask: Mask,
    /// Combinations of the axes in the mask that have it.
    keys: HashSet<Key>,
    point: Point,
    repeat: u32,
}

impl Faults {
    /// A fault that does not depend on the run.
    pub fn add_plain(&mut self, diagnostic: Diagnostic) {
        self.add(
            diagnostic,
            0,
            At {
                point: &[],
                repeat: 1,
            },
        );
    }

    /// A fault in a run; `mask` are the axes that it depends on.
    pub fn add(&mut self, diagnostic: Diagnostic, mask: Mask, at: At<'_>) {
        let key = at.key(mask);
        let place = (diagnostic.code, diagnostic.span);
        // Faults without a place are told apart by what they say.
        let known = match diagnostic.span.is_none() {
            true => self
                .list
                .iter()
                .position(|p| p.diagnostic.message == diagnostic.message),
            false => self.known.get(&place).copied(),
        };
        match known {
            Some(position) => {
                let pending = &mut self.list[position];
                if pending.mask == mask {
                    pending.keys.insert(key);
                }
            }
            None => {
                self.known.insert(place, self.list.len());
                self.list.push(Pending {
                    diagnostic,
                    mask,
                    keys: HashSet::from([key]),
                    point: at.point.into(),
                    repeat: at.repeat,
                });
            }
        }
    }

    pub fn any(&self) -> bool {
        !self.list.is_empty()
    }

    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// All faults, those of some runs only with the axis values of the first.
    pub fn finish(self, axes: &[Axis], points: &[Point], repeats: u32) -> Diagnostics {
        let mut diagnostics = Diagnostics::default();
        for pending in self.list {
            let run = pending.run(axes, points, repeats);
            diagnostics.push(pending.diagnostic.run(run));
        }
        diagnostics
    }
}

impl Pending {
    fn run(&self, axes: &[Axis], points: &[Point], repeats: u32) -> String {
        if self.mask == 0 || self.keys.len() >= self.combinations(points, repeats) {
            return String::new();
        }
        let first = run_text(axes, self.mask, &self.point, self.repeat);
        match self.keys.len() - 1 {
            0 => first,
            1 => format!("{first} and 1 other combination"),
            others => format!("{first} and {others} other combinations"),
        }
    }

    fn combinations(&self, points: &[Point], repeats: u32) -> usize {
        let axes = self.mask & !REPEAT;
        let keys: HashSet<Key> = points
            .iter()
            .map(|point| At { point, repeat: 1 }.key(axes))
            .collect();
        match self.mask & REPEAT != 0 {
            true => keys.len() * repeats as usize,
            false => keys.len(),
        }
    }
}
