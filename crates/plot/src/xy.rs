//! Lines, points and distributions over two axes.

use crate::axis::{Axis, Fitted};
use crate::canvas::{Anchor, Canvas, MARGIN, PALETTE, Sample, TEXT, WIDTH};

/// Height of the plot itself.
const PLOT: f64 = 320.0;

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A line through the points, each point marked.
    Marked,
    /// A line through the points.
    Line,
    /// The value holds until the next point: distributions.
    Step,
    /// A bar from zero at each point: histograms with many classes.
    Sticks,
}

/// One series.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// How it is drawn.
    pub style: Style,
    /// Its points, x ascending; points that an axis cannot show are left out.
    pub points: Vec<(f64, f64)>,
}

/// A chart over two axes.
#[derive(Clone, Debug, PartialEq)]
pub struct XyChart {
    /// Heading.
    pub title: String,
    /// The main observation; may be empty.
    pub subtitle: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The series.
    pub series: Vec<Series>,
}

/// Dash patterns by series, so that lines differ without colour too.
const DASHES: [&str; 4] = ["", "7 3", "2 3", "9 3 2 3"];

impl XyChart {
    /// The cumulative distribution of each named set of values.
    pub fn cdf(title: &str, subtitle: &str, x: Axis, sets: &[(&str, &[f64])]) -> XyChart {
        let series = sets
            .iter()
            .map(|(name, values)| {
                let mut v: Vec<f64> = values.iter().copied().filter(|v| x.shows(*v)).collect();
                v.sort_by(f64::total_cmp);
                // A few hundred points draw the same line as millions.
                let n = v.len();
                let every = n.div_ceil(600).max(1);
                let points = (0..n)
                    .filter(|i| i % every == 0 || i + 1 == n)
                    .map(|i| (v[i], (i + 1) as f64 / n as f64))
                    .collect();
                Series { name: (*name).to_string(), style: Style::Step, points }
            })
            .collect();
        XyChart {
            title: title.into(),
            subtitle: subtitle.into(),
            x,
            y: Axis::range("share of requests", 0.0, 1.0),
            series,
        }
    }

    /// Returns the chart as a complete SVG document.
    pub fn to_svg(&self) -> String {
        self.draw().finish(&self.title)
    }

    pub(crate) fn draw(&self) -> Canvas {
        let mut c = Canvas::new();
        let mut y = c.heading(&self.title, &self.subtitle) + 8.0;
        let entries: Vec<(&str, Sample)> = self
            .series
            .iter()
            .enumerate()
            .map(|(i, s)| {
                let sample = match s.style {
                    Style::Sticks => Sample::Patch(colour(i)),
                    Style::Marked => Sample::Line { stroke: colour(i), dash: dash(i), shape: Some(i) },
                    Style::Line | Style::Step => Sample::Line { stroke: colour(i), dash: dash(i), shape: None },
                };
                (s.name.as_str(), sample)
            })
            .collect();
        if entries.len() > 1 {
            y = c.legend(y, &entries);
        }
        let top = y + 14.0;
        let bottom = top + PLOT;
        let points = || {
            self.series
                .iter()
                .flat_map(|s| s.points.iter().copied())
                .filter(|(x, y)| self.x.shows(*x) && self.y.shows(*y))
        };
        let up = self.y.fit(points().map(|p| p.1), PLOT, Some(24.0));
        let left = MARGIN + TEXT + 20.0 + up.label_width();
        // The last label of the horizontal axis extends half its width beyond the plot.
        let right = WIDTH - MARGIN - 30.0;
        let along = self.x.fit(points().map(|p| p.0), right - left, None);
        along.draw_below(&mut c, left, bottom, top, &self.x.label);
        up.draw_left(&mut c, left, bottom, right, &self.y.label);
        if points().next().is_none() {
            c.text((left + right) / 2.0, (top + bottom) / 2.0, Anchor::Middle, TEXT, "dim", "no data");
        }
        for (i, s) in self.series.iter().enumerate() {
            self.draw_series(&mut c, i, s, (left, bottom), (&along, &up));
        }
        c.reach(bottom + 42.0);
        c
    }

    fn draw_series(&self, c: &mut Canvas, i: usize, s: &Series, corner: (f64, f64), axes: (&Fitted, &Fitted)) {
        let (along, up) = axes;
        let at: Vec<(f64, f64)> = s
            .points
            .iter()
            .filter(|(x, y)| self.x.shows(*x) && self.y.shows(*y))
            .map(|&(x, y)| (corner.0 + along.at(x), corner.1 - up.at(y)))
            .collect();
        match s.style {
            Style::Line => c.polyline(&at, colour(i), dash(i)),
            Style::Marked => {
                c.polyline(&at, colour(i), dash(i));
                for &(x, y) in &at {
                    c.marker(i, x, y, colour(i));
                }
            }
            Style::Step => {
                let mut stairs = Vec::with_capacity(at.len() * 2);
                for &(x, y) in &at {
                    if let Some(&(_, before)) = stairs.last() {
                        stairs.push((x, before));
                    }
                    stairs.push((x, y));
                }
                c.polyline(&stairs, colour(i), dash(i));
            }
            Style::Sticks => {
                let zero = corner.1 - up.at(up.low.max(0.0));
                let gap = at.windows(2).map(|w| w[1].0 - w[0].0).fold(f64::INFINITY, f64::min);
                let width = (gap * 0.9).clamp(1.0, 14.0);
                for &(x, y) in &at {
                    let (high, low) = (y.min(zero), y.max(zero));
                    c.rect(x - width / 2.0, high, width, low - high, colour(i), "");
                }
            }
        }
    }
}

fn colour(i: usize) -> &'static str {
    PALETTE[i % PALETTE.len()]
}

fn dash(i: usize) -> &'static str {
    DASHES[i % DASHES.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canvas::assert_legible;

    fn chart(series: Vec<Series>) -> XyChart {
        XyChart {
            title: "Requests per second by queue depth, external scheduler against the drive's own".into(),
            subtitle: "Higher is better. The two SPTF lines should lie on each other.".into(),
            x: Axis::linear("requests outstanding"),
            y: Axis::from_zero("requests per second"),
            series,
        }
    }

    fn line(name: &str, n: usize) -> Series {
        Series {
            name: name.into(),
            style: Style::Marked,
            points: (1..=n).map(|i| (i as f64, 100.0 + 7.5 * i as f64)).collect(),
        }
    }

    #[test]
    fn text_never_overlaps() {
        let many = (0..12).map(|i| line(&format!("external scheduler, variant {i}"), 20)).collect();
        assert_legible(&chart(many).draw());
        assert_legible(&chart(vec![]).draw());
        let mut wide = chart(vec![Series {
            name: "a".into(),
            style: Style::Sticks,
            points: vec![(-123456.0, 1e-7), (9876543.0, 3e-7)],
        }]);
        assert_legible(&wide.draw());
        wide.x = Axis::log("ms");
        wide.series[0].points = vec![(1e-4, 1.0), (1e7, 2.0)];
        assert_legible(&wide.draw());
    }

    #[test]
    fn a_distribution_rises_to_one() {
        let values: Vec<f64> = (0..5000).map(|i| ((i * 37) % 5000) as f64).collect();
        let c = XyChart::cdf("t", "", Axis::linear("ms"), &[("model", &values)]);
        let p = &c.series[0].points;
        assert!(p.len() < 700);
        assert!(p.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 < w[1].1));
        assert_eq!(p.last().unwrap(), &(4999.0, 1.0));
    }

    #[test]
    fn values_that_no_axis_can_show_are_left_out() {
        let svg = chart(vec![Series {
            name: "a".into(),
            style: Style::Line,
            points: vec![(1.0, f64::NAN), (f64::INFINITY, 2.0), (2.0, 3.0)],
        }])
        .to_svg();
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }

    #[test]
    fn a_name_with_markup_stays_text() {
        let svg = chart(vec![line("<b>&", 3), line("x", 2)]).to_svg();
        assert!(svg.contains("&lt;b&gt;&amp;"));
        assert!(!svg.contains("<b>"));
    }
}
