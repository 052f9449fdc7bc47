//! Axes: scales, round tick values, and labels that do not overlap.

use crate::canvas::{Anchor, Canvas, TEXT, num, text_width};

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// Logarithmic; values of zero or less are left out.
    Log,
}

/// One axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it shows, with the unit.
    pub label: String,
    /// The scale.
    pub scale: Scale,
    /// Upper limit of its start; `None`: the minimum of the data.
    pub from: Option<f64>,
    /// Lower limit of its end; `None`: the maximum of the data.
    pub to: Option<f64>,
}

impl Axis {
    /// A linear axis that ends with the data.
    pub fn linear(label: &str) -> Axis {
        Axis { label: label.into(), scale: Scale::Linear, from: None, to: None }
    }

    /// A linear axis that includes zero.
    pub fn from_zero(label: &str) -> Axis {
        Axis { from: Some(0.0), ..Axis::linear(label) }
    }

    /// A linear axis over a given range.
    pub fn range(label: &str, from: f64, to: f64) -> Axis {
        Axis { from: Some(from), to: Some(to), ..Axis::linear(label) }
    }

    /// A logarithmic axis that ends with the data.
    pub fn log(label: &str) -> Axis {
        Axis { scale: Scale::Log, ..Axis::linear(label) }
    }

    /// Returns whether a value can be shown on this axis.
    pub(crate) fn shows(&self, v: f64) -> bool {
        v.is_finite() && (self.scale == Scale::Linear || v > 0.0)
    }

    /// Lays the axis out over `length` units for these values. `room` is the space a label needs
    /// along the axis: its height for a vertical axis; `None` takes each label's width.
    pub(crate) fn fit(&self, values: impl Iterator<Item = f64>, length: f64, room: Option<f64>) -> Fitted {
        let mut low = f64::INFINITY;
        let mut high = f64::NEG_INFINITY;
        for v in values.chain(self.from).chain(self.to).filter(|v| self.shows(*v)) {
            low = low.min(v);
            high = high.max(v);
        }
        if low > high {
            (low, high) = if self.scale == Scale::Log { (1.0, 10.0) } else { (0.0, 1.0) };
        }
        match self.scale {
            Scale::Linear => self.fit_linear(low, high, length, room),
            Scale::Log => fit_log(low, high, length, room),
        }
    }

    fn fit_linear(&self, low: f64, high: f64, length: f64, room: Option<f64>) -> Fitted {
        let (mut low, mut high) = (low, high);
        if high - low <= f64::EPSILON * high.abs().max(1.0) {
            let pad = if low == 0.0 { 1.0 } else { low.abs() * 0.1 };
            (low, high) = (low - pad, high + pad);
        }
        for want in (2..=10).rev() {
            let step = round_step((high - low) / want as f64);
            // Ends fixed by the caller stay; the others extend to the next tick.
            let start = if self.from == Some(low) { low } else { (low / step + 1e-9).floor() * step };
            let end = if self.to == Some(high) { high } else { (high / step - 1e-9).ceil() * step };
            let first = (start / step - 1e-9).ceil() as i64;
            let last = (end / step + 1e-9).floor() as i64;
            let ticks: Vec<f64> = (first..=last).map(|k| k as f64 * step).collect();
            let fitted = Fitted {
                scale: Scale::Linear,
                low: start,
                high: end,
                length,
                labels: ticks.iter().map(|t| label(*t, step)).collect(),
                ticks,
            };
            if want == 2 || fitted.labels_fit(room) {
                return fitted;
            }
        }
        unreachable!("the loop returns at two ticks")
    }
}

fn fit_log(low: f64, high: f64, length: f64, room: Option<f64>) -> Fitted {
    let start = 10f64.powf((low.log10() + 1e-9).floor());
    let mut end = 10f64.powf((high.log10() - 1e-9).ceil());
    if end <= start {
        end = start * 10.0;
    }
    let decades = (end / start).log10().round() as i32;
    let first = start.log10().round() as i32;
    for (mantissas, every) in
        [(&[1.0, 2.0, 5.0][..], 1), (&[1.0][..], 1), (&[1.0][..], 2), (&[1.0][..], 3), (&[1.0][..], 6)]
    {
        let ticks: Vec<f64> = (0..=decades)
            .filter(|d| d % every == 0)
            .flat_map(|d| mantissas.iter().map(move |m| m * 10f64.powi(first + d)))
            .filter(|t| *t <= end * 1.000_001)
            .collect();
        let fitted = Fitted {
            scale: Scale::Log,
            low: start,
            high: end,
            length,
            labels: ticks.iter().map(|t| label(*t, *t)).collect(),
            ticks,
        };
        if every == 6 || fitted.labels_fit(room) {
            return fitted;
        }
    }
    unreachable!("the loop returns at every sixth decade")
}

/// An axis in its place on the sheet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fitted {
    scale: Scale,
    pub low: f64,
    pub high: f64,
    length: f64,
    pub ticks: Vec<f64>,
    pub labels: Vec<String>,
}

impl Fitted {
    /// Position of a value along the axis, from 0 to its length; values outside are clamped.
    pub(crate) fn at(&self, v: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (v - self.low) / (self.high - self.low),
            Scale::Log => (v / self.low).log10() / (self.high / self.low).log10(),
        };
        share.clamp(0.0, 1.0) * self.length
    }

    /// The widest label.
    pub(crate) fn label_width(&self) -> f64 {
        self.labels.iter().map(|l| text_width(l, TEXT)).fold(0.0, f64::max)
    }

    fn labels_fit(&self, room: Option<f64>) -> bool {
        let need = |i: usize| room.unwrap_or_else(|| text_width(&self.labels[i], TEXT) + 14.0);
        (1..self.ticks.len())
            .all(|i| self.at(self.ticks[i]) - self.at(self.ticks[i - 1]) >= (need(i - 1) + need(i)) / 2.0)
    }

    /// Draws the axis below a plot whose left lower corner is `(x, y)`, with lines up to `top`.
    pub(crate) fn draw_below(&self, c: &mut Canvas, x: f64, y: f64, top: f64, label: &str) {
        for (t, l) in self.ticks.iter().zip(&self.labels) {
            let at = x + self.at(*t);
            c.line((at, top), (at, y + 4.0), "grid");
            c.text(at, y + 18.0, Anchor::Middle, TEXT, "dim", l);
        }
        c.line((x, y), (x + self.length, y), "axis");
        c.text(x + self.length / 2.0, y + 37.0, Anchor::Middle, TEXT, "fg", label);
    }

    /// Draws the axis left of a plot whose left lower corner is `(x, y)`, with lines to `right`.
    pub(crate) fn draw_left(&self, c: &mut Canvas, x: f64, y: f64, right: f64, label: &str) {
        for (t, l) in self.ticks.iter().zip(&self.labels) {
            let at = y - self.at(*t);
            c.line((x - 4.0, at), (right, at), "grid");
            c.text(x - 8.0, at + 4.0, Anchor::End, TEXT, "dim", l);
        }
        c.line((x, y), (x, y - self.length), "axis");
        c.text_up(x - 8.0 - self.label_width() - 12.0, y - self.length / 2.0, TEXT, "fg", label);
    }
}

/// The smallest of 1, 2, 5 times a power of ten that is not below `raw`.
fn round_step(raw: f64) -> f64 {
    let power = 10f64.powf(raw.log10().floor());
    let m = raw / power;
    let round = [1.0, 2.0, 5.0, 10.0].into_iter().find(|r| m <= r * 1.000_001).unwrap_or(10.0);
    round * power
}

/// A tick's value with as many decimals as the step needs.
fn label(v: f64, step: f64) -> String {
    let decimals = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
    let v = if v.abs() < step * 1e-9 { 0.0 } else { v };
    if v.abs() >= 1e6 {
        // 1.5 million is easier to read than 1500000 under an axis.
        return format!("{} M", num(v / 1e6));
    }
    format!("{v:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn linear(low: f64, high: f64, length: f64) -> Fitted {
        Axis::linear("x").fit([low, high].into_iter(), length, None)
    }

    #[test]
    fn ticks_are_round_and_cover_the_data() {
        for (low, high) in [(0.0, 7.3), (-3.2, 11.0), (1e-4, 9e-4), (95.1, 99.9), (0.0, 3e7)] {
            let f = linear(low, high, 700.0);
            assert!(f.low <= low && f.high >= high, "{low} {high} {f:?}");
            assert!(f.ticks.len() >= 3, "{f:?}");
            let step = f.ticks[1] - f.ticks[0];
            let mantissa = step / 10f64.powf(step.log10().floor() + 1e-12);
            let mantissa = if mantissa > 9.999 { mantissa / 10.0 } else { mantissa };
            assert!([1.0, 2.0, 5.0].iter().any(|m| (m - mantissa).abs() < 1e-6), "{f:?}");
        }
    }

    #[test]
    fn each_label_says_its_tick() {
        let f = linear(0.0, 0.35, 700.0);
        for (t, l) in f.ticks.iter().zip(&f.labels) {
            assert!((l.parse::<f64>().unwrap() - t).abs() < 1e-9, "{f:?}");
        }
    }

    #[test]
    fn a_short_axis_has_fewer_ticks() {
        assert!(linear(0.0, 1e5, 120.0).ticks.len() < linear(0.0, 1e5, 700.0).ticks.len());
    }

    #[test]
    fn a_logarithmic_axis_spaces_decades_evenly() {
        let f = Axis::log("x").fit([0.1, 90.0].into_iter(), 300.0, None);
        assert_eq!((f.low, f.high), (0.1, 100.0));
        assert!((f.at(1.0) - 100.0).abs() < 1e-6);
        assert!((f.at(10.0) - 200.0).abs() < 1e-6);
    }

    #[test]
    fn no_data_or_one_value_still_gives_an_axis() {
        let none = Axis::linear("x").fit(std::iter::empty(), 100.0, None);
        assert!(none.high > none.low);
        let one = Axis::linear("x").fit([5.0, 5.0].into_iter(), 100.0, None);
        assert!(one.low < 5.0 && one.high > 5.0);
        let log = Axis::log("x").fit([0.0, f64::NAN].into_iter(), 100.0, None);
        assert!(log.high > log.low);
    }

    #[test]
    fn a_fixed_range_is_kept() {
        let f = Axis::range("share", 0.0, 1.0).fit([0.2, 0.4].into_iter(), 300.0, Some(20.0));
        assert_eq!((f.low, f.high), (0.0, 1.0));
    }
}
