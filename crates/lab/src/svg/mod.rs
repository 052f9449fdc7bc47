//! A small chart writer: lines, distributions, bars and timelines as SVG text.
//!
//! Why our own: the pictures need few shapes and no fonts, they must be the same bytes on every
//! machine, and they must be readable on light and on dark pages, which an SVG can do by itself
//! with a media query. Text is laid out with a cautious estimate of its width ([`text_width`]), so
//! that labels never run into each other whatever font the reader has.

mod axis;
mod bars;
mod canvas;
mod timeline;
mod xy;

pub use axis::{Axis, Scale};
pub use bars::{BarChart, BarSeries};
pub use canvas::text_width;
pub use timeline::{Lane, Panel, Span, Timeline};
pub use xy::{Series, Style, XyChart};

/// One picture of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub enum Chart {
    /// Lines, points or a distribution over two axes.
    Xy(XyChart),
    /// Bars, grouped or stacked.
    Bars(BarChart),
    /// Who did what when.
    Timeline(Timeline),
}

impl Chart {
    /// The picture as a complete SVG document.
    pub fn to_svg(&self) -> String {
        match self {
            Chart::Xy(c) => c.to_svg(),
            Chart::Bars(c) => c.to_svg(),
            Chart::Timeline(c) => c.to_svg(),
        }
    }

    /// The picture's heading.
    pub fn title(&self) -> &str {
        match self {
            Chart::Xy(c) => &c.title,
            Chart::Bars(c) => &c.title,
            Chart::Timeline(c) => &c.title,
        }
    }
}
