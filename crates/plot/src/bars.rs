//! Bars: one group per category, series side by side or stacked.

use crate::axis::Axis;
use crate::canvas::{Anchor, Canvas, MARGIN, PALETTE, Sample, TEXT, WIDTH, num, text_width};

/// Height of one bar.
const BAR: f64 = 20.0;
/// Colour of the mark across bars; no chart of up to three series uses it.
const MARK: &str = PALETTE[5];

/// One series: a value for each category.
#[derive(Clone, Debug, PartialEq)]
pub struct BarSeries {
    /// Its name in the legend.
    pub name: String,
    /// One value per category, in their order.
    pub values: Vec<f64>,
}

/// Horizontal bars, so that category names of any length have room.
#[derive(Clone, Debug, PartialEq)]
pub struct BarChart {
    /// Heading.
    pub title: String,
    /// The main observation; may be empty.
    pub subtitle: String,
    /// The axis of the bars' length, with the unit.
    pub axis: Axis,
    /// The categories, from the top.
    pub categories: Vec<String>,
    /// The series.
    pub series: Vec<BarSeries>,
    /// Whether the series of a category are stacked in one bar.
    pub stacked: bool,
    /// For each category, a mark across its bars (the paper's figure); none if `None` or if the
    /// list is empty.
    pub marks: Vec<Option<f64>>,
    /// The marks' name in the legend.
    pub mark_name: String,
}

impl BarChart {
    /// Returns the chart as a complete SVG document.
    pub fn to_svg(&self) -> String {
        self.draw().finish(&self.title)
    }

    pub(crate) fn draw(&self) -> Canvas {
        let mut c = Canvas::new();
        let mut y = c.heading(&self.title, &self.subtitle) + 8.0;
        let mut entries: Vec<(&str, Sample)> =
            self.series.iter().enumerate().map(|(i, s)| (s.name.as_str(), Sample::Patch(colour(i)))).collect();
        let marked = self.marks.iter().any(Option::is_some);
        if marked {
            entries.push((&self.mark_name, Sample::Line { stroke: MARK, dash: "3 2", shape: None }));
        }
        if entries.len() > 1 {
            y = c.legend(y, &entries);
        }
        let top = y + 8.0;
        let names = self.categories.iter().map(|n| text_width(n, TEXT)).fold(0.0, f64::max).min(WIDTH * 0.4);
        let left = MARGIN + names + 10.0;
        // Room for its figure after the longest bar.
        let right = WIDTH - MARGIN - 64.0;
        let lengths = self.lengths().into_iter().chain(self.marks.iter().flatten().copied());
        let axis = self.axis.fit(lengths.chain([0.0]), right - left, None);
        let rows = if self.stacked { 1 } else { self.series.len().max(1) };
        let group = rows as f64 * BAR + 12.0;
        let bottom = top + group * self.categories.len().max(1) as f64;
        axis.draw_below(&mut c, left, bottom, top, &self.axis.label);
        if self.categories.is_empty() || self.series.is_empty() {
            let middle = ((left + right) / 2.0, (top + bottom) / 2.0);
            c.text(middle.0, middle.1, Anchor::Middle, TEXT, "dim", "no data");
        }
        let zero = left + axis.at(0.0);
        for (g, name) in self.categories.iter().enumerate() {
            let top = top + group * g as f64 + 6.0;
            let middle = top + rows as f64 * BAR / 2.0;
            let name = shorten(name, names);
            c.text(left - 8.0, middle + 4.0, Anchor::End, TEXT, "fg", &name);
            let mut base = 0.0;
            for (i, s) in self.series.iter().enumerate() {
                let v = s.values.get(g).copied().filter(|v| v.is_finite());
                let Some(v) = v else { continue };
                let row = if self.stacked { 0 } else { i };
                let y = top + row as f64 * BAR;
                let (from, to) = (left + axis.at(base), left + axis.at(base + v));
                let hint = format!("{}: {}", s.name, num(v));
                c.rect(from.min(to), y + 2.0, (to - from).abs(), BAR - 4.0, colour(i), &hint);
                if self.stacked {
                    base += v;
                    let label = num((v * 10.0).round() / 10.0);
                    if to - from > text_width(&label, TEXT) + 6.0 {
                        c.text((from + to) / 2.0, y + 14.0, Anchor::Middle, TEXT, "bar", &label);
                    }
                } else {
                    let end = to.max(zero) + 6.0;
                    c.text(end, y + 14.0, Anchor::Start, TEXT, "dim", &bar_figure(v));
                }
            }
            if let Some(Some(m)) = self.marks.get(g) {
                let x = left + axis.at(*m);
                let reach = [(x, top - 3.0), (x, top + rows as f64 * BAR + 3.0)];
                c.polyline(&reach, MARK, "3 2");
            }
        }
        c.reach(bottom + 42.0);
        c
    }

    /// Lengths of the bars: sums if stacked.
    fn lengths(&self) -> Vec<f64> {
        let at = |g: usize| self.series.iter().filter_map(move |s| s.values.get(g)).copied().filter(|v| v.is_finite());
        let groups = 0..self.categories.len();
        if self.stacked { groups.map(|g| at(g).sum()).collect() } else { groups.flat_map(at).collect() }
    }
}

/// A bar's figure as text, short enough for the room beside it: two decimals at most.
pub fn bar_figure(v: f64) -> String {
    match v.abs() {
        a if a >= 1e6 => format!("{} M", num((v / 1e5).round() / 10.0)),
        a if a >= 1000.0 => format!("{v:.0}"),
        a if a >= 10.0 => num((v * 10.0).round() / 10.0),
        _ => num(v),
    }
}

/// Truncates a name to `width`, with an ellipsis.
pub(crate) fn shorten(name: &str, width: f64) -> String {
    if text_width(name, TEXT) <= width + 0.1 {
        return name.to_string();
    }
    let mut s: String = name.to_string();
    while !s.is_empty() && text_width(&s, TEXT) + TEXT > width {
        s.pop();
    }
    s + "…"
}

fn colour(i: usize) -> &'static str {
    PALETTE[i % PALETTE.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canvas::assert_legible;

    fn chart(stacked: bool, values: &[f64]) -> BarChart {
        BarChart {
            title: "Where the head time goes".into(),
            subtitle: String::new(),
            axis: Axis::from_zero("share of head time, %"),
            categories: values.iter().map(|v| format!("a case called {v}")).collect(),
            series: ["seek", "rotate", "transfer"]
                .iter()
                .map(|n| BarSeries { name: (*n).into(), values: values.to_vec() })
                .collect(),
            stacked,
            marks: vec![Some(12.0)],
            mark_name: "paper".into(),
        }
    }

    #[test]
    fn text_never_overlaps() {
        for values in [&[1.0, 2.0, 33.3][..], &[], &[0.0], &[1e9, 1e-9], &[5.0; 30]] {
            assert_legible(&chart(true, values).draw());
            assert_legible(&chart(false, values).draw());
        }
        let mut long = chart(false, &[1.0]);
        long.categories[0] = "a name that is much longer than any name should be ".repeat(4);
        assert_legible(&long.draw());
    }

    #[test]
    fn stacked_bars_reach_their_sum() {
        let c = chart(true, &[10.0]);
        assert_eq!(c.lengths().into_iter().fold(0.0, f64::max), 30.0);
        assert_eq!(chart(false, &[10.0]).lengths().into_iter().fold(0.0, f64::max), 10.0);
    }
}
