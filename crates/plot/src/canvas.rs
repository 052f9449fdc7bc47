//! The sheet that charts draw on: shapes, text, the legend, and the record of text positions.

use std::fmt::Write;

/// Colours for series and kinds, distinguishable with the common colour blindnesses (Okabe and
/// Ito's set), and legible on white and on near black.
pub(crate) const PALETTE: [&str; 8] =
    ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c8c", "#9467bd"];

/// Width of every chart, in SVG units.
pub(crate) const WIDTH: f64 = 860.0;
/// Free space at the sheet's edges.
pub(crate) const MARGIN: f64 = 16.0;
/// Size of ordinary text.
pub(crate) const TEXT: f64 = 12.0;
/// Size of headings.
pub(crate) const HEADING: f64 = 16.0;

/// An upper estimate of the width of `text` in a sans-serif font of `size`.
pub fn text_width(text: &str, size: f64) -> f64 {
    let em: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' => 0.36,
            ' ' | 'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '/' | '-' => 0.44,
            'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.96,
            'A'..='Z' => 0.74,
            c if c.is_ascii() => 0.62,
            _ => 1.0,
        })
        .sum();
    em * size
}

/// The position of a text's anchor point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    /// At its left end.
    Start,
    /// In its middle.
    Middle,
    /// At its right end.
    End,
}

/// The estimated box of a text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TextBox {
    pub text: String,
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

/// A sheet that grows downwards.
pub(crate) struct Canvas {
    body: String,
    height: f64,
    texts: Vec<TextBox>,
}

impl Canvas {
    pub(crate) fn new() -> Canvas {
        Canvas { body: String::new(), height: 0.0, texts: Vec::new() }
    }

    /// Makes the sheet at least this high.
    pub(crate) fn reach(&mut self, y: f64) {
        self.height = self.height.max(y);
    }

    /// Text whose baseline is at `y`.
    pub(crate) fn text(&mut self, x: f64, y: f64, anchor: Anchor, size: f64, class: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        let w = text_width(text, size);
        let (left, name) = match anchor {
            Anchor::Start => (x, "start"),
            Anchor::Middle => (x - w / 2.0, "middle"),
            Anchor::End => (x - w, "end"),
        };
        self.texts.push(TextBox {
            text: text.to_string(),
            left,
            top: y - size * 0.8,
            right: left + w,
            bottom: y + size * 0.22,
        });
        let _ = writeln!(
            self.body,
            r#"<text x="{}" y="{}" text-anchor="{name}" font-size="{size}" class="{class}">{}</text>"#,
            num(x),
            num(y),
            escape(text)
        );
        self.reach(y + size * 0.3);
    }

    /// Text rotated upwards, centred on `(x, y)`.
    pub(crate) fn text_up(&mut self, x: f64, y: f64, size: f64, class: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        let w = text_width(text, size);
        self.texts.push(TextBox {
            text: text.to_string(),
            left: x - size * 0.8,
            top: y - w / 2.0,
            right: x + size * 0.22,
            bottom: y + w / 2.0,
        });
        let _ = writeln!(
            self.body,
            concat!(
                r#"<text transform="translate({} {}) rotate(-90)" text-anchor="middle" "#,
                r#"font-size="{size}" class="{class}">{}</text>"#
            ),
            num(x),
            num(y),
            escape(text),
            size = size,
            class = class
        );
    }

    /// A text wrapped at spaces to `width`; returns the `y` below its last line.
    pub(crate) fn paragraph(&mut self, x: f64, y: f64, width: f64, size: f64, class: &str, text: &str) -> f64 {
        let mut y = y;
        for line in wrap(text, width, size) {
            y += size * 1.3;
            self.text(x, y - size * 0.3, Anchor::Start, size, class, &line);
        }
        y
    }

    /// A straight line.
    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str) {
        let _ = writeln!(
            self.body,
            r#"<line x1="{}" y1="{}" x2="{}" y2="{}" class="{class}"/>"#,
            num(from.0),
            num(from.1),
            num(to.0),
            num(to.1)
        );
        self.reach(from.1.max(to.1));
    }

    /// A filled rectangle; `hint` is its tooltip.
    pub(crate) fn rect(&mut self, x: f64, y: f64, w: f64, h: f64, fill: &str, hint: &str) {
        let title = if hint.is_empty() { String::new() } else { format!("<title>{}</title>", escape(hint)) };
        let _ = writeln!(
            self.body,
            r#"<rect x="{}" y="{}" width="{}" height="{}" fill="{fill}">{title}</rect>"#,
            num(x),
            num(y),
            num(w.max(0.0)),
            num(h.max(0.0))
        );
        self.reach(y + h);
    }

    /// A line through points.
    pub(crate) fn polyline(&mut self, points: &[(f64, f64)], stroke: &str, dash: &str) {
        let mut path = String::with_capacity(points.len() * 14);
        for (i, (x, y)) in points.iter().enumerate() {
            let _ = write!(path, "{}{} {}", if i == 0 { "M" } else { "L" }, num(*x), num(*y));
        }
        let dash = if dash.is_empty() { String::new() } else { format!(r#" stroke-dasharray="{dash}""#) };
        let _ = writeln!(
            self.body,
            r#"<path d="{path}" fill="none" stroke="{stroke}" stroke-width="1.8" stroke-linejoin="round"{dash}/>"#
        );
    }

    /// One point, in the shape of its series.
    pub(crate) fn marker(&mut self, shape: usize, x: f64, y: f64, fill: &str) {
        let s = 3.4;
        let d = match shape % 4 {
            0 => format!("M{} {}a{s} {s} 0 1 0 {} 0a{s} {s} 0 1 0 -{} 0", num(x - s), num(y), 2.0 * s, 2.0 * s),
            1 => format!("M{} {}h{}v{}h-{}z", num(x - s), num(y - s), 2.0 * s, 2.0 * s, 2.0 * s),
            2 => format!(
                "M{} {}L{} {}L{} {}z",
                num(x),
                num(y - s * 1.2),
                num(x + s * 1.2),
                num(y + s),
                num(x - s * 1.2),
                num(y + s)
            ),
            _ => format!(
                "M{} {}L{} {}L{} {}L{} {}z",
                num(x),
                num(y - s * 1.3),
                num(x + s * 1.3),
                num(y),
                num(x),
                num(y + s * 1.3),
                num(x - s * 1.3),
                num(y)
            ),
        };
        let _ = writeln!(self.body, r#"<path d="{d}" fill="{fill}"/>"#);
    }

    /// Names and their samples in rows that wrap; returns the `y` below the last row.
    pub(crate) fn legend(&mut self, top: f64, entries: &[(&str, Sample)]) -> f64 {
        const SAMPLE: f64 = 22.0;
        const ROW: f64 = 19.0;
        let mut x = MARGIN;
        let mut y = top;
        for (name, sample) in entries {
            let w = SAMPLE + 6.0 + text_width(name, TEXT) + 18.0;
            if x > MARGIN && x + w > WIDTH - MARGIN {
                x = MARGIN;
                y += ROW;
            }
            let middle = y + ROW / 2.0;
            match sample {
                Sample::Patch(fill) => self.rect(x, middle - 6.0, SAMPLE, 12.0, fill, ""),
                Sample::Line { stroke, dash, shape } => {
                    self.polyline(&[(x, middle), (x + SAMPLE, middle)], stroke, dash);
                    if let Some(shape) = shape {
                        self.marker(*shape, x + SAMPLE / 2.0, middle, stroke);
                    }
                }
            }
            self.text(x + SAMPLE + 6.0, middle + 4.0, Anchor::Start, TEXT, "fg", name);
            x += w;
        }
        if entries.is_empty() { top } else { y + ROW }
    }

    /// Heading and explanation; returns the `y` below them.
    pub(crate) fn heading(&mut self, title: &str, subtitle: &str) -> f64 {
        let width = WIDTH - 2.0 * MARGIN;
        let y = self.paragraph(MARGIN, MARGIN - 4.0, width, HEADING, "fg strong", title);
        if subtitle.is_empty() { y } else { self.paragraph(MARGIN, y + 2.0, width, TEXT, "dim", subtitle) }
    }

    /// Positions of texts, for the check for overlaps.
    #[cfg(test)]
    pub(crate) fn texts(&self) -> &[TextBox] {
        &self.texts
    }

    /// The finished document.
    pub(crate) fn finish(self, title: &str) -> String {
        let h = num((self.height + MARGIN).ceil());
        let w = num(WIDTH);
        format!(
            concat!(
                r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" "#,
                r#"height="{h}" font-family="system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif" role="img">"#,
                "\n",
                r#"<title>{}</title>"#,
                "\n",
                r#"<style>"#,
                "\n",
                r#".bg{{fill:#ffffff}}.fg{{fill:#1f2328}}.dim{{fill:#59636e}}.strong{{font-weight:600}}"#,
                "\n",
                r#".grid{{stroke:#e2e6ea;stroke-width:1}}.axis{{stroke:#818b98;stroke-width:1}}"#,
                r#".bar{{fill:#0b0b0b}}"#,
                "\n",
                r#"@media (prefers-color-scheme: dark){{.bg{{fill:#0d1117}}.fg{{fill:#e6edf3}}"#,
                r#".dim{{fill:#9198a1}}.grid{{stroke:#262c34}}.axis{{stroke:#656c76}}}}"#,
                "\n",
                r#"</style>"#,
                "\n",
                r#"<rect class="bg" width="{w}" height="{h}"/>"#,
                "\n",
                r#"{}</svg>"#,
                "\n"
            ),
            escape(title),
            self.body,
            w = w,
            h = h
        )
    }
}

/// The sample in front of a name in the legend.
pub(crate) enum Sample<'a> {
    /// A filled patch.
    Patch(&'a str),
    /// A piece of line, with its marker.
    Line {
        /// Colour.
        stroke: &'a str,
        /// Dash pattern, empty for none.
        dash: &'a str,
        /// Shape of the marker.
        shape: Option<usize>,
    },
}

/// Lines of at most `width`, broken at spaces; a single word may be longer.
fn wrap(text: &str, width: f64, size: f64) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        let longer = if line.is_empty() { word.to_string() } else { format!("{line} {word}") };
        if !line.is_empty() && text_width(&longer, size) > width {
            lines.push(std::mem::replace(&mut line, word.to_string()));
        } else {
            line = longer;
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// A coordinate with two decimals at most: smaller files, and the same bytes everywhere.
pub(crate) fn num(v: f64) -> String {
    let s = format!("{v:.2}");
    let s = s.trim_end_matches('0').trim_end_matches('.');
    if s == "-0" { "0".into() } else { s.to_string() }
}

/// Escapes text for XML. Control characters, which XML cannot hold, become spaces.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Fails if two texts overlap, or one leaves the sheet.
#[cfg(test)]
pub(crate) fn assert_legible(canvas: &Canvas) {
    let t = canvas.texts();
    for (i, a) in t.iter().enumerate() {
        assert!(a.left >= 0.0 && a.right <= WIDTH, "{a:?} leaves the sheet");
        for b in &t[i + 1..] {
            let apart = a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
            assert!(apart, "{a:?} lies over {b:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_broken_at_spaces_and_stays_within_its_width() {
        let text = "where each millisecond of head time went in a few dozen requests";
        let lines = wrap(text, 120.0, TEXT);
        assert!(lines.len() > 2);
        assert!(lines.iter().all(|l| text_width(l, TEXT) <= 120.0));
        assert_eq!(lines.join(" "), text);
    }

    #[test]
    fn text_is_escaped_and_control_characters_do_not_reach_the_file() {
        assert_eq!(escape("a<b>&\"c\"\u{7}"), "a&lt;b&gt;&amp;&quot;c&quot; ");
    }

    #[test]
    fn a_legend_with_many_entries_wraps() {
        let mut c = Canvas::new();
        let names: Vec<String> = (0..20).map(|i| format!("a rather long name {i}")).collect();
        let entries: Vec<(&str, Sample)> = names.iter().map(|n| (n.as_str(), Sample::Patch(PALETTE[0]))).collect();
        assert!(c.legend(0.0, &entries) > 60.0);
        assert_legible(&c);
    }

    #[test]
    fn coordinates_are_short() {
        assert_eq!(num(1.0), "1");
        assert_eq!(num(-0.001), "0");
        assert_eq!(num(1.256), "1.26");
        assert_eq!(num(100.0), "100");
    }
}
