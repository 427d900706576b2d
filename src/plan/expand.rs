//! From the sweep to its points, and from points to the runs in their order.
//!
//! Pure and about numbers only: a point is an index into each axis's values. `sweep` reads the axes from the scenario,
//! `resolve` says what a run at a point does.

use super::{Axis, ids};

/// The axes, and which combinations of those that `cases` names there are.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    /// Axes of the product first, then those of the cases.
    pub axes: Vec<Axis>,
    /// How many of the axes are of the product.
    pub crossed: usize,
    /// Values (indices) of the axes of the cases, a case each; empty where there are none.
    pub cases: Vec<Vec<u32>>,
}

/// In which order the runs of a point's repeats come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Each repeat is one pass over all points.
    Interleaved,
    /// All repeats of a point one after another.
    Sequential,
    /// Interleaved, each pass shuffled by the seed.
    Shuffled,
}

impl Order {
    /// As the scenario says it.
    pub fn name(self) -> &'static str {
        match self {
            Order::Interleaved => "interleaved",
            Order::Sequential => "sequential",
            Order::Shuffled => "shuffled",
        }
    }
}

pub type Point = Box<[u32]>;

impl Sweep {
    /// How many points there are; None where that is beyond all bounds.
    pub fn size(&self) -> Option<usize> {
        self.axes[..self.crossed]
            .iter()
            .map(|axis| axis.values.len())
            .chain([self.cases.len().max(1)])
            .try_fold(1usize, usize::checked_mul)
    }

    /// All points, in the order of the sweep, the last axis fastest.
    pub fn points(&self) -> Vec<Point> {
        let no_case = [Vec::new()];
        let cases = match self.cases.is_empty() {
            true => &no_case[..],
            false => &self.cases[..],
        };
        let mut points = Vec::with_capacity(self.size().unwrap_or(0));
        let mut counter = vec![0u32; self.crossed];
        if self.axes[..self.crossed]
            .iter()
            .any(|axis| axis.values.is_empty())
        {
            return points;
        }
        loop {
            for case in cases {
                points.push(counter.iter().chain(case).copied().collect());
            }
            if !self.advance(&mut counter) {
                return points;
            }
        }
    }

    fn advance(&self, counter: &mut [u32]) -> bool {
        for position in (0..counter.len()).rev() {
            counter[position] += 1;
            if (counter[position] as usize) < self.axes[position].values.len() {
                return true;
            }
            counter[position] = 0;
        }
        false
    }
}

/// The runs as (position of the point, repeat from 1), in their order. `keep_together` are axes whose equal values stay
/// together; the order holds inside.
pub fn order_runs(
    points: &[Point],
    repeats: u32,
    order: Order,
    keep_together: &[usize],
    seed: u64,
) -> Vec<(u32, u32)> {
    let mut runs = Vec::with_capacity(points.len() * repeats as usize);
    for group in group_points(points, keep_together) {
        match order {
            Order::Sequential => {
                for point in group {
                    runs.extend((1..=repeats).map(|repeat| (point, repeat)));
                }
            }
            Order::Interleaved => {
                for repeat in 1..=repeats {
                    runs.extend(group.iter().map(|point| (*point, repeat)));
                }
            }
            Order::Shuffled => {
                for repeat in 1..=repeats {
                    let mut pass = group.clone();
                    let first = u64::from(group.first().copied().unwrap_or(0));
                    shuffle(&mut pass, seed ^ (u64::from(repeat) << 32) ^ first);
                    runs.extend(pass.into_iter().map(|point| (point, repeat)));
                }
            }
        }
    }
    runs
}

/// Positions of points with equal values of some axes, in the order in which each group first comes.
fn group_points(points: &[Point], axes: &[usize]) -> Vec<Vec<u32>> {
    let mut groups: Vec<Vec<u32>> = Vec::new();
    let mut known = std::collections::HashMap::new();
    for (position, point) in points.iter().enumerate() {
        let key: Vec<u32> = axes.iter().map(|axis| point[*axis]).collect();
        let group = *known.entry(key).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[group].push(position as u32);
    }
    groups
}

/// Fisher and Yates's, over SplitMix64: our own, so that the order stays the same whatever a crate's next version does.
fn shuffle(items: &mut [u32], seed: u64) {
    let mut state = seed;
    for last in (1..items.len()).rev() {
        let random = split_mix(&mut state);
        let other = ((u128::from(random) * (last as u128 + 1)) >> 64) as usize;
        items.swap(last, other);
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A value that stands twice in an axis, if any: the ids of its runs would be the same.
pub fn double_value(axis: &Axis) -> Option<usize> {
    let mut seen = std::collections::HashSet::new();
    axis.values
        .iter()
        .position(|value| !seen.insert(ids::value_text(value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sweep(sizes: &[usize], cases: Vec<Vec<u32>>) -> Sweep {
        let crossed = sizes.len();
        let case_axes = cases.first().map_or(0, Vec::len);
        let axes = (0..crossed + case_axes).map(|position| Axis {
            name: format!("axis{position}"),
            values: (0..sizes.get(position).copied().unwrap_or(9))
                .map(|value| json!(value))
                .collect(),
        });
        Sweep {
            axes: axes.collect(),
            crossed,
            cases,
        }
    }

    fn points(sweep: &Sweep) -> Vec<Vec<u32>> {
        sweep.points().iter().map(|point| point.to_vec()).collect()
    }

    #[test]
    fn the_last_axis_runs_fastest() {
        let all = points(&sweep(&[2, 3], Vec::new()));
        assert_eq!(all, [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]);
        assert_eq!(points(&sweep(&[], Vec::new())), [[0u32; 0]]);
    }

    #[test]
    fn cases_are_crossed_with_axes_but_not_with_each_other() {
        let all = points(&sweep(&[2], vec![vec![0, 1], vec![1, 0]]));
        assert_eq!(all, [[0, 0, 1], [0, 1, 0], [1, 0, 1], [1, 1, 0]]);
    }

    #[test]
    fn interleaved_passes_over_all_points_and_sequential_stays_at_one() {
        let points = sweep(&[2], Vec::new()).points();
        let runs = |order| order_runs(&points, 2, order, &[], 1);
        assert_eq!(runs(Order::Interleaved), [(0, 1), (1, 1), (0, 2), (1, 2)]);
        assert_eq!(runs(Order::Sequential), [(0, 1), (0, 2), (1, 1), (1, 2)]);
    }

    #[test]
    fn kept_together_are_equal_values_and_their_repeats() {
        let points = sweep(&[2, 2], Vec::new()).points();
        let runs = order_runs(&points, 2, Order::Interleaved, &[1], 1);
        let second: Vec<u32> = runs.iter().map(|(p, _)| points[*p as usize][1]).collect();
        assert_eq!(second, [0, 0, 0, 0, 1, 1, 1, 1]);
        assert_eq!(runs[..4], [(0, 1), (2, 1), (0, 2), (2, 2)]);
    }

    #[test]
    fn shuffled_passes_hold_every_point_once_and_depend_on_the_seed_alone() {
        let points = sweep(&[50], Vec::new()).points();
        let runs = order_runs(&points, 2, Order::Shuffled, &[], 42);
        assert_eq!(runs, order_runs(&points, 2, Order::Shuffled, &[], 42));
        assert_ne!(runs, order_runs(&points, 2, Order::Shuffled, &[], 43));
        let mut first: Vec<u32> = runs[..50].iter().map(|(point, _)| *point).collect();
        assert_ne!(first, (0..50).collect::<Vec<_>>());
        first.sort_unstable();
        assert_eq!(first, (0..50).collect::<Vec<_>>());
    }
}
