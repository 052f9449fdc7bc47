//! Measured figures, each with the published ones of the same thing below it.

use crate::axis::Axis;
use crate::bars::shorten;
use crate::canvas::{Anchor, Canvas, MARGIN, PALETTE, Sample, TEXT, WIDTH, text_width};

/// Height of one bar with its space.
const BAR: f64 = 17.0;
/// Space between the rows of a group, and between groups.
const ROW_GAP: f64 = 4.0;
const GROUP_GAP: f64 = 12.0;
/// A bar is at least this wide, so that the shortest range is visible.
const LEAST: f64 = 2.0;
/// Colours of measured and of published figures.
const COLOURS: [&str; 2] = [PALETTE[0], PALETTE[1]];

/// A figure or a range, as a horizontal bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Extent {
    /// Start of the bar; `None`: the start of the axis.
    pub from: Option<f64>,
    /// End of the bar. What is not a number has a label and no bar.
    pub to: f64,
    /// Text after the bar.
    pub label: String,
}

/// A measured figure, and what was published of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Name of the row.
    pub name: String,
    /// Measured figure.
    pub measured: Extent,
    /// Published figures, one below the other; may be empty.
    pub published: Vec<Extent>,
}

/// Rows under one heading.
#[derive(Clone, Debug, PartialEq)]
pub struct PairGroup {
    /// Name of the group.
    pub name: String,
    /// The rows, from the top.
    pub pairs: Vec<Pair>,
}

/// Horizontal bars in groups: each measured figure with the published ones below it. Unlike in
/// [`crate::BarChart`], what was not published takes no space, and a bar may begin anywhere and has
/// a text of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct PairChart {
    /// Heading.
    pub title: String,
    /// The main observation; may be empty.
    pub subtitle: String,
    /// The axis of the bars' length, with the unit.
    pub axis: Axis,
    /// Names in the legend: of the measured figures, and of the published ones.
    pub names: [String; 2],
    /// The groups, from the top.
    pub groups: Vec<PairGroup>,
}

impl PairChart {
    /// Returns the chart as a complete SVG document.
    pub fn to_svg(&self) -> String {
        self.draw().finish(&self.title)
    }

    pub(crate) fn draw(&self) -> Canvas {
        let mut c = Canvas::new();
        let y = c.heading(&self.title, &self.subtitle) + 8.0;
        // What has no bar has no entry in the legend.
        let kinds = if self.pairs().all(|p| p.published.is_empty()) { 1 } else { 2 };
        let entries = self.names.iter().zip(COLOURS).take(kinds);
        let entries: Vec<(&str, Sample)> = entries.map(|(name, fill)| (name.as_str(), Sample::Patch(fill))).collect();
        let top = c.legend(y, &entries) + 8.0;
        let widest = |texts: &mut dyn Iterator<Item = &str>, most: f64| {
            texts.map(|t| text_width(t, TEXT)).fold(0.0, f64::max).min(WIDTH * most)
        };
        let groups = widest(&mut self.groups.iter().map(|g| g.name.as_str()), 0.2);
        let rows = widest(&mut self.pairs().map(|p| p.name.as_str()), 0.2);
        let labels = widest(&mut self.extents().map(|e| e.label.as_str()), 0.3);
        let left = MARGIN + groups + 14.0 + rows + 10.0;
        let right = WIDTH - MARGIN - labels - 10.0;
        let bottom = top + self.groups.iter().map(height).sum::<f64>().max(BAR);
        let values = self.extents().flat_map(|e| e.from.into_iter().chain([e.to]));
        let axis = self.axis.fit(values, right - left, None);
        axis.draw_below(&mut c, left, bottom, top, &self.axis.label);
        if self.groups.is_empty() {
            c.text((left + right) / 2.0, (top + bottom) / 2.0 + 4.0, Anchor::Middle, TEXT, "dim", "no data");
        }
        let mut y = top;
        for group in &self.groups {
            let begun = y;
            y += GROUP_GAP / 2.0;
            c.text(MARGIN, y + 13.0, Anchor::Start, TEXT, "fg strong", &shorten(&group.name, groups));
            for pair in &group.pairs {
                c.text(left - 8.0, y + 13.0, Anchor::End, TEXT, "fg", &shorten(&pair.name, rows));
                let bars = std::iter::once((&pair.measured, 0)).chain(pair.published.iter().map(|e| (e, 1)));
                for (extent, kind) in bars {
                    let shown = |v: Option<f64>| v.filter(|v| self.axis.shows(*v)).map(|v| axis.at(v));
                    let from = shown(extent.from.or(self.axis.from)).unwrap_or(0.0);
                    let mut end = from;
                    if let Some(to) = shown(Some(extent.to)) {
                        let hint = format!("{}, {}: {}", group.name, pair.name, extent.label);
                        let width = (to - from).abs().max(LEAST);
                        c.rect(left + from.min(to), y + 2.0, width, BAR - 4.0, COLOURS[kind], &hint);
                        end = from.min(to) + width;
                    }
                    let label = shorten(&extent.label, labels);
                    c.text(left + end + 6.0, y + 13.0, Anchor::Start, TEXT, "dim", &label);
                    y += BAR;
                }
                y += ROW_GAP;
            }
            y = begun + height(group);
        }
        c.reach(bottom + 42.0);
        c
    }

    fn pairs(&self) -> impl Iterator<Item = &Pair> {
        self.groups.iter().flat_map(|g| &g.pairs)
    }

    fn extents(&self) -> impl Iterator<Item = &Extent> {
        self.pairs().flat_map(|p| std::iter::once(&p.measured).chain(&p.published))
    }
}

/// Height of a group.
fn height(group: &PairGroup) -> f64 {
    let rows = group.pairs.iter().map(|p| BAR * (1 + p.published.len()) as f64 + ROW_GAP);
    rows.sum::<f64>() + GROUP_GAP
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axis::Scale;
    use crate::canvas::assert_legible;

    fn extent(from: Option<f64>, to: f64, label: &str) -> Extent {
        Extent { from, to, label: label.into() }
    }

    fn chart(axis: Axis, values: &[f64]) -> PairChart {
        let pair = |v: f64| Pair {
            name: format!("policy {v}"),
            measured: extent(None, v, "measured"),
            published: match v > 1.0 {
                true => vec![extent(Some(v / 2.0), v, "a range"), extent(None, 2.0 * v, "at most")],
                false => Vec::new(),
            },
        };
        PairChart {
            title: "Start-up times".into(),
            subtitle: "Beside four loads.".into(),
            axis,
            names: ["measured".into(), "published".into()],
            groups: values
                .iter()
                .map(|v| PairGroup { name: format!("load {v}"), pairs: vec![pair(*v), pair(3.0 * v)] })
                .collect(),
        }
    }

    /// Left end and width of each bar of a colour, in the order of the document.
    fn bars(svg: &str, fill: &str) -> Vec<(f64, f64)> {
        let number = |line: &str, key: &str| -> f64 {
            let from = line.find(key).expect("a bar has it") + key.len();
            line[from..].split('"').next().and_then(|v| v.parse().ok()).expect("a number")
        };
        let is_bar = |line: &&str| line.contains(fill) && line.contains("<title>");
        svg.lines().filter(is_bar).map(|l| (number(l, " x=\""), number(l, " width=\""))).collect()
    }

    #[test]
    fn text_never_overlaps() {
        for values in [&[1.0, 2.0, 33.3][..], &[], &[0.0], &[1e9, 1e-9], &[5.0; 30], &[f64::INFINITY, f64::NAN]] {
            assert_legible(&chart(Axis::from_zero("s"), values).draw());
            assert_legible(&chart(Axis::log("s"), values).draw());
        }
        let mut long = chart(Axis::from_zero("s"), &[2.0]);
        let name = "a name that is much longer than any name should be ".repeat(4);
        long.groups[0].name.clone_from(&name);
        long.groups[0].pairs[0].name.clone_from(&name);
        long.groups[0].pairs[0].measured.label = name;
        assert_legible(&long.draw());
    }

    #[test]
    fn a_published_range_lies_below_its_measured_bar_at_its_place() {
        let svg = chart(Axis::from_zero("s"), &[10.0]).to_svg();
        let (measured, published) = (bars(&svg, COLOURS[0]), bars(&svg, COLOURS[1]));
        let [(zero, ten), (_, thirty)] = measured[..] else { panic!("{measured:?}") };
        let [(five, range), (from, twenty), ..] = published[..] else { panic!("{published:?}") };
        assert!((thirty - 3.0 * ten).abs() < 0.05, "{measured:?}");
        assert!((five - zero - ten / 2.0).abs() < 0.05 && (range - ten / 2.0).abs() < 0.05, "{published:?}");
        assert!(from == zero && (twenty - 2.0 * ten).abs() < 0.05, "{published:?}");
    }

    #[test]
    fn what_was_not_published_takes_no_space() {
        let (with, without) = (chart(Axis::from_zero("s"), &[2.0]), chart(Axis::from_zero("s"), &[0.2]));
        assert_eq!(height(&with.groups[0]) - height(&without.groups[0]), 4.0 * BAR);
        assert!(bars(&without.to_svg(), COLOURS[1]).is_empty());
        assert!(with.to_svg().contains(">published<") && !without.to_svg().contains(">published<"));
    }

    #[test]
    fn what_is_not_a_number_has_a_label_and_no_bar() {
        let svg = chart(Axis { scale: Scale::Log, ..Axis::linear("s") }, &[f64::INFINITY]).to_svg();
        assert!(bars(&svg, COLOURS[0]).is_empty());
        assert_eq!(svg.matches(">measured</text>").count(), 3, "two rows and the legend: {svg}");
    }
}
