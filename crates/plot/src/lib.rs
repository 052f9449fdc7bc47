//! A small chart writer: lines, distributions, bars, pairs and timelines as SVG text.
//!
//! Charts need few shapes and no fonts, must be the same bytes on every machine, and must be
//! readable on light and on dark pages, which SVG supports with a media query: hence no external
//! library. Text is laid out with an upper estimate of its width ([`text_width`]), so that labels
//! never overlap in any font.

#![warn(unreachable_pub)]

mod axis;
mod bars;
mod canvas;
mod pairs;
mod timeline;
mod xy;

pub use axis::{Axis, Scale};
pub use bars::{BarChart, BarSeries, bar_figure};
pub use canvas::text_width;
pub use pairs::{Extent, Pair, PairChart, PairGroup};
pub use timeline::{Lane, Panel, Span, Timeline};
pub use xy::{Series, Style, XyChart};

/// One chart of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub enum Chart {
    /// Lines, points or a distribution over two axes.
    Xy(XyChart),
    /// Bars, grouped or stacked.
    Bars(BarChart),
    /// Measured figures, each with the published ones below it.
    Pairs(PairChart),
    /// Activities over time.
    Timeline(Timeline),
}

impl Chart {
    /// Returns the chart as a complete SVG document.
    pub fn to_svg(&self) -> String {
        match self {
            Chart::Xy(c) => c.to_svg(),
            Chart::Bars(c) => c.to_svg(),
            Chart::Pairs(c) => c.to_svg(),
            Chart::Timeline(c) => c.to_svg(),
        }
    }

    /// The chart's heading.
    pub fn title(&self) -> &str {
        match self {
            Chart::Xy(c) => &c.title,
            Chart::Bars(c) => &c.title,
            Chart::Pairs(c) => &c.title,
            Chart::Timeline(c) => &c.title,
        }
    }
}
