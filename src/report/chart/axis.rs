//! Axes: their ends, their ticks and how a tick is printed.
//!
//! Ends are ticks, so that nothing is drawn beyond the last label; a logarithmic axis has ticks at 1, 2 and 5 of each decade
//! while these fit, else at powers of ten.

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

/// An axis has about as many ticks, or fewer.
const MOST_TICKS: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// From 0.
    Linear,
    /// Values that are not above 0 are not drawn.
    Logarithmic,
}

#[derive(Clone, Debug)]
pub struct Axis {
    low: f64,
    high: f64,
    scale: Scale,
    ticks: Vec<f64>,
}

impl Axis {
    /// One that holds these values, and ends with a tick.
    pub fn around(values: impl Iterator<Item = f64>, scale: Scale) -> Axis {
        let shown = |value: &f64| value.is_finite() && *value > 0.0;
        let (low, high) = values
            .filter(shown)
            .fold((f64::INFINITY, 0.0_f64), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        match scale {
            Scale::Linear if high > 0.0 => Axis::linear(high),
            Scale::Linear => Axis::linear(1.0),
            Scale::Logarithmic if high > 0.0 => Axis::logarithmic(low, high),
            Scale::Logarithmic => Axis::logarithmic(1.0, 10.0),
        }
    }

    /// From 0 to exactly `high`: time.
    pub fn until(high: f64) -> Axis {
        let mut axis = Axis::around(std::iter::once(high), Scale::Linear);
        if high > 0.0 {
            axis.high = high;
            axis.ticks.retain(|tick| *tick <= high);
        }
        axis
    }

    fn linear(high: f64) -> Axis {
        let step = nice_step(high / (MOST_TICKS - 2) as f64);
        let count = (high / step - 1e-9).ceil().max(1.0);
        let ticks: Vec<f64> = (0..=count as u32).map(|at| f64::from(at) * step).collect();
        Axis {
            low: 0.0,
            high: count * step,
            scale: Scale::Linear,
            ticks,
        }
    }

    fn logarithmic(low: f64, high: f64) -> Axis {
        let of = |decade: i32| [1.0, 2.0, 5.0].map(|digit| digit * 10_f64.powi(decade));
        let decades = low.log10().floor() as i32..=high.log10().floor() as i32 + 1;
        let all: Vec<f64> = decades.clone().flat_map(of).collect();
        // What is a tick up to rounding is that tick.
        let below = all.iter().rposition(|tick| *tick <= low * (1.0 + 1e-9));
        let above = all.iter().position(|tick| *tick >= high * (1.0 - 1e-9));
        let first = below.unwrap_or(0);
        let last = above.unwrap_or(all.len() - 1).max(first + 1);
        let mut ticks = all[first..=last.min(all.len() - 1)].to_vec();
        if ticks.len() > MOST_TICKS {
            ticks = decades.map(|decade| 10_f64.powi(decade)).collect();
            let every = ticks.len().div_ceil(MOST_TICKS);
            ticks = ticks.into_iter().step_by(every).collect();
            let reach = 10_f64.powi(every as i32);
            while ticks.last().is_some_and(|last| *last < high * (1.0 - 1e-9)) {
                ticks.push(ticks[ticks.len() - 1] * reach);
            }
            while ticks.len() > 2 && ticks[ticks.len() - 2] >= high {
                ticks.pop();
            }
        }
        Axis {
            low: ticks[0],
            high: ticks[ticks.len() - 1],
            scale: Scale::Logarithmic,
            ticks,
        }
    }

    /// Where a value lies between the ends, in [0, 1].
    fn share(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic => {
                (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
            }
        };
        match share.is_finite() {
            true => share.clamp(0.0, 1.0),
            false => 0.0,
        }
    }

    pub fn low(&self) -> f64 {
        self.low
    }
}

/// 1, 2 or 5 times a power of ten, at least `least`.
fn nice_step(least: f64) -> f64 {
    let decade = 10_f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * decade);
    let found = steps.into_iter().find(|step| *step >= least * (1.0 - 1e-9));
    found.unwrap_or(10.0 * decade)
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let reach = f64::from(limit.1 - limit.0);
        limit.0 + (self.share(*value) * reach).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format(value: &f64) -> String {
        number(*value)
    }

    fn format_ext(&self, value: &f64) -> String {
        match self.scale {
            Scale::Linear => number_beside(*value, self.high),
            Scale::Logarithmic => number(*value),
        }
    }
}

/// `0.02`, `150`, `20k`, `1.5M`.
pub fn number(value: f64) -> String {
    number_beside(value, value)
}

/// In the unit that suits the largest value of its axis: `5k` beside `10k`.
fn number_beside(value: f64, largest: f64) -> String {
    let (scaled, unit) = match largest.abs() {
        size if size >= 1e15 => return format!("{value:.0e}"),
        size if size >= 1e9 => (value / 1e9, "G"),
        size if size >= 1e6 => (value / 1e6, "M"),
        size if size >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    // As many digits as a tick has, without what adding up steps leaves over.
    let digits = match scaled.abs() {
        0.0 => 0,
        size => (2 - size.log10().floor() as i32).clamp(0, 12) as usize,
    };
    let text = format!("{scaled:.digits$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    match value == 0.0 {
        true => text.to_owned(),
        false => format!("{text}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(values: &[f64], scale: Scale) -> Vec<String> {
        let axis = Axis::around(values.iter().copied(), scale);
        axis.ticks
            .iter()
            .map(|tick| axis.format_ext(tick))
            .collect()
    }

    #[test]
    fn ticks_are_round_and_hold_every_value() {
        assert_eq!(ticks(&[7.0], Scale::Linear), ["0", "2", "4", "6", "8"]);
        assert_eq!(
            ticks(&[118_000.0], Scale::Linear),
            ["0", "20k", "40k", "60k", "80k", "100k", "120k"]
        );
        assert_eq!(ticks(&[14_000.0], Scale::Linear), ["0", "5k", "10k", "15k"]);
        assert_eq!(
            ticks(&[0.03, 0.9], Scale::Logarithmic),
            ["0.02", "0.05", "0.1", "0.2", "0.5", "1"]
        );
        let wide = ticks(&[0.0003, 4000.0], Scale::Logarithmic);
        assert_eq!(wide[0], "0.0001");
        assert_eq!(wide[wide.len() - 1], "10k");
    }

    #[test]
    fn every_axis_has_an_extent_and_few_ticks() {
        let odd = [0.0, 1e-12, 1.0, 3.0, 10.0, 1e14, f64::NAN, f64::INFINITY];
        for scale in [Scale::Linear, Scale::Logarithmic] {
            for low in odd {
                for high in odd {
                    let axis = Axis::around([low, high].into_iter(), scale);
                    assert!(axis.high > axis.low, "{axis:?}");
                    assert!((2..=MOST_TICKS + 2).contains(&axis.ticks.len()), "{axis:?}");
                    for value in [low, high].into_iter().filter(|v| v.is_finite()) {
                        assert!(value <= axis.high * (1.0 + 1e-6), "{value} {axis:?}");
                        assert!((0.0..=1.0).contains(&axis.share(value)));
                    }
                }
            }
        }
    }

    #[test]
    fn the_time_axis_ends_where_the_time_does() {
        let axis = Axis::until(61.2);
        assert_eq!(axis.range(), 0.0..61.2);
        assert_eq!(axis.map(&61.2, (0, 1000)), 1000);
        assert!(axis.ticks.iter().all(|tick| *tick <= 61.2));
    }
}
