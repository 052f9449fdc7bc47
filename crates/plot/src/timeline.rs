//! Timelines: lanes of coloured spans, in panels that share a legend.

use crate::axis::Axis;
use crate::canvas::{Anchor, Canvas, MARGIN, PALETTE, Sample, TEXT, WIDTH, text_width};

/// An interval in a lane.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// When it begins.
    pub from: f64,
    /// When it ends.
    pub to: f64,
    /// Its kind: index among the timeline's kinds.
    pub kind: usize,
    /// Its tooltip; may be empty.
    pub hint: String,
}

/// One line of a panel.
#[derive(Clone, Debug, PartialEq)]
pub struct Lane {
    /// Its name, left of it.
    pub label: String,
    /// A figure at its right end; may be empty.
    pub note: String,
    /// Its intervals.
    pub spans: Vec<Span>,
}

/// Lanes over one time axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Its heading.
    pub title: String,
    /// Its axis.
    pub axis: Axis,
    /// Height of one lane.
    pub lane_height: f64,
    /// Its lanes, from the top.
    pub lanes: Vec<Lane>,
}

/// A timeline.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    /// Heading.
    pub title: String,
    /// The main observation; may be empty.
    pub subtitle: String,
    /// The kinds of spans: name in the legend, and whether it is drawn thin and grey (waiting) or
    /// full (work).
    pub kinds: Vec<(String, bool)>,
    /// The panels, from the top.
    pub panels: Vec<Panel>,
}

impl Timeline {
    /// Returns the chart as a complete SVG document.
    pub fn to_svg(&self) -> String {
        self.draw().finish(&self.title)
    }

    pub(crate) fn draw(&self) -> Canvas {
        let mut c = Canvas::new();
        let y = c.heading(&self.title, &self.subtitle) + 8.0;
        let colours = self.colours();
        let entries: Vec<(&str, Sample)> = self
            .kinds
            .iter()
            .zip(&colours)
            .map(|((name, thin), colour)| {
                let sample =
                    if *thin { Sample::Line { stroke: colour, dash: "", shape: None } } else { Sample::Patch(colour) };
                (name.as_str(), sample)
            })
            .collect();
        let mut y = c.legend(y, &entries) + 6.0;
        for panel in &self.panels {
            y = self.draw_panel(&mut c, panel, y, &colours);
        }
        c.reach(y);
        c
    }

    /// Thin kinds are grey; the others use the palette's colours in order.
    fn colours(&self) -> Vec<&'static str> {
        let mut next = 0;
        self.kinds
            .iter()
            .map(|(_, thin)| {
                if *thin {
                    "#9aa4af"
                } else {
                    next += 1;
                    PALETTE[(next - 1) % PALETTE.len()]
                }
            })
            .collect()
    }

    fn draw_panel(&self, c: &mut Canvas, panel: &Panel, y: f64, colours: &[&str]) -> f64 {
        let width = WIDTH - 2.0 * MARGIN;
        let top = c.paragraph(MARGIN, y + 4.0, width, TEXT + 1.0, "fg strong", &panel.title) + 6.0;
        let widest =
            |f: fn(&Lane) -> &str, size: f64| panel.lanes.iter().map(|l| text_width(f(l), size)).fold(0.0, f64::max);
        // A lane lower than a line of text uses smaller text.
        let size = TEXT.min(panel.lane_height - 2.0).max(7.0);
        let left = MARGIN + widest(|l| &l.label, size) + 8.0;
        let notes = widest(|l| &l.note, size);
        let right = WIDTH - MARGIN - if notes > 0.0 { notes + 8.0 } else { 12.0 };
        let height = panel.lane_height.max(9.0);
        let bottom = top + height * panel.lanes.len() as f64 + 3.0;
        // An axis with fixed ends is a window: values outside do not extend it.
        let window = (panel.axis.from.unwrap_or(f64::NEG_INFINITY), panel.axis.to.unwrap_or(f64::INFINITY));
        let times = panel
            .lanes
            .iter()
            .flat_map(|l| l.spans.iter().flat_map(|s| [s.from, s.to]))
            .map(|t| t.max(window.0).min(window.1));
        let axis = panel.axis.fit(times, right - left, None);
        axis.draw_below(c, left, bottom, top, &panel.axis.label);
        for (i, lane) in panel.lanes.iter().enumerate() {
            let y = top + height * i as f64;
            let base = y + height / 2.0 + size * 0.32;
            c.text(left - 6.0, base, Anchor::End, size, "fg", &lane.label);
            c.text(right + 6.0, base, Anchor::Start, size, "dim", &lane.note);
            for s in &lane.spans {
                if s.to < axis.low || s.from > axis.high {
                    continue;
                }
                let (from, to) = (left + axis.at(s.from), left + axis.at(s.to));
                let thin = self.kinds[s.kind].1;
                let h = if thin { 2.0 } else { height - 3.0 };
                c.rect(from, y + (height - h) / 2.0, to - from, h, colours[s.kind], &s.hint);
            }
        }
        c.reach(bottom + 42.0);
        bottom + 48.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canvas::assert_legible;

    fn lane(i: usize) -> Lane {
        let t = i as f64 * 3.0;
        let span = |a: f64, b: f64, kind| Span { from: t + a, to: t + b, kind, hint: String::new() };
        Lane {
            label: format!("request {i}, write, 8 KiB"),
            note: format!("{:.1} ms", t + 5.0),
            spans: vec![span(0.0, 2.0, 0), span(2.0, 4.0, 1), span(4.0, 5.0, 2)],
        }
    }

    fn timeline(lanes: usize, lane_height: f64) -> Timeline {
        Timeline {
            title: "Where each millisecond went".into(),
            subtitle: "One line a request.".into(),
            kinds: vec![("waiting".into(), true), ("seek".into(), false), ("rotate".into(), false)],
            panels: (0..2)
                .map(|p| Panel {
                    title: format!("panel {p}"),
                    axis: Axis::from_zero("ms"),
                    lane_height,
                    lanes: (0..lanes).map(lane).collect(),
                })
                .collect(),
        }
    }

    #[test]
    fn text_never_overlaps() {
        for lanes in [0, 1, 4, 40] {
            for height in [4.0, 12.0, 30.0] {
                assert_legible(&timeline(lanes, height).draw());
            }
        }
    }

    #[test]
    fn waiting_is_grey_and_work_has_the_palettes_colours() {
        assert_eq!(timeline(1, 12.0).colours(), ["#9aa4af", PALETTE[0], PALETTE[1]]);
    }

    #[test]
    fn what_lies_outside_a_fixed_axis_is_not_drawn() {
        let mut t = timeline(3, 12.0);
        let all = t.to_svg().matches("<rect").count();
        for p in &mut t.panels {
            p.axis = Axis::range("ms", 0.0, 4.5);
        }
        assert!(t.to_svg().matches("<rect").count() < all);
    }
}
