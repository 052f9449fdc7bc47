//! Figure 9 of seed 001: foreground and free bandwidth over conservatism, for three orders.
//!
//! Experiments F7, F8 and F9 rest on it. What the paper plots is taken as measured while most of the disk was still wanted: at 0.4 ms
//! its SPTF-SW60% uses "6 times" the disk bandwidth that the foreground uses alone, and a foreground of 8 KB requests at the rate of ten tasks is
//! above 1 MB/s, so more than 5 MB/s were free; over whole scans the paper has 3.1 MB/s (its sections 1 and 7), which is "steady-state
//! progress". So the figure is the first minutes of a scan, and F9a is whole scans.

use headtime_sched::core::Order;
use headtime_sched::fill::Algorithm;

use crate::experiment::{Cell, Run, RunError, Spec, Table};
use crate::scans::{Fill, Scan, Scanned, Window};
use crate::svg::{Axis, Chart, Series, Style, XyChart};

/// Virtual seconds of a point of the figure.
const SECONDS: (u64, u64) = (600, 100);
/// Conservatism, us.
const US: [u64; 9] = [0, 100, 200, 300, 400, 500, 600, 800, 1_000];
/// The same of a shortened run.
const FEW_US: [u64; 4] = [0, 300, 400, 1_000];
/// 4 KiB: the unit of the background read.
pub(crate) const UNIT: u32 = 8;

/// The paper's orders.
pub(crate) const ORDERS: [(&str, Order); 3] =
    [("SSTF", Order::Sstf), ("SPTF-SW60%", Order::SptfSw(60)), ("SPTF", Order::Sptf)];

/// Runs that [`lines`] takes, at most; and those of one line.
pub(crate) const STEPS: u64 = 3 * LINE_STEPS;
pub(crate) const LINE_STEPS: u64 = 1 + US.len() as u64;

/// One order's lines.
pub(crate) struct Lines {
    /// The order's name.
    pub name: &'static str,
    /// Without FILL.
    pub without: Scanned,
    /// By conservatism, us.
    pub points: Vec<(u64, Scanned)>,
}

impl Lines {
    /// The point of this conservatism, which is one of the figure's.
    pub(crate) fn at(&self, us: u64) -> &Scanned {
        let point = self.points.iter().find(|(c, _)| *c == us);
        &point.expect("no such point in the figure").1
    }

    /// Free bandwidth given up at this conservatism, % of what there is at none.
    pub(crate) fn given_up(&self, us: u64) -> f64 {
        100.0 * (1.0 - self.at(us).free_mb_s / self.at(0).free_mb_s)
    }
}

/// A point of the figure, without FILL.
pub(crate) fn point(run: &Run, order: Order) -> Scan {
    Scan::new("atlas10k", UNIT, order, Window::First(run.length(SECONDS.0, SECONDS.1)))
}

/// The conservatisms of the figure, us.
pub(crate) fn sweep(run: &Run) -> &'static [u64] {
    if run.quick { &FEW_US } else { &US }
}

/// One order's lines of the figure, with the papers' default algorithm; `scan` is without FILL.
pub(crate) fn line(spec: &Spec, run: &Run, name: &'static str, scan: Scan, sweep: &[u64]) -> Result<Lines, RunError> {
    let without = scan.measure(spec, run)?;
    let points = sweep.iter().map(|&us| {
        let fill = Fill::host(Algorithm::AngleEpFrag, us);
        Ok((us, scan.with(fill).measure(spec, run)?))
    });
    Ok(Lines { name, without, points: points.collect::<Result<_, RunError>>()? })
}

/// The figure.
pub(crate) fn lines(spec: &Spec, run: &Run) -> Result<Vec<Lines>, RunError> {
    let lines = ORDERS.iter().map(|&(name, order)| line(spec, run, name, point(run, order), sweep(run)));
    let lines = lines.collect::<Result<Vec<_>, RunError>>()?;
    // Points that a shortened run leaves out.
    run.progress.advance(3 * (US.len() - sweep(run).len()) as u64);
    Ok(lines)
}

/// The figure as rows.
pub(crate) fn table(name: &'static str, lines: &[Lines]) -> Table {
    let mut rows = Vec::new();
    for l in lines {
        rows.push(row(l, Cell::from("none"), &l.without));
        rows.extend(l.points.iter().map(|(us, p)| row(l, Cell::from(*us as f64), p)));
    }
    Table {
        name,
        columns: &[
            "order",
            "conservatism_us",
            "requests_per_second",
            "foreground_mb_s",
            "foreground_loss_percent",
            "response_ms",
            "free_mb_s",
            "share_of_disk_read",
            "a_turn_late_percent",
        ],
        rows,
    }
}

fn row(line: &Lines, conservatism: Cell, p: &Scanned) -> Vec<Cell> {
    vec![
        line.name.into(),
        conservatism,
        p.per_second.into(),
        p.foreground_mb_s.into(),
        p.loss(&line.without).into(),
        p.response_ms.into(),
        p.free_mb_s.into(),
        p.share.into(),
        (100.0 * p.extra_turns).into(),
    ]
}

/// The figure's two halves.
pub(crate) fn charts(lines: &[Lines]) -> Vec<Chart> {
    let ms = |us: u64| us as f64 / 1e3;
    let series = |value: fn(&Scanned) -> f64| -> Vec<Series> {
        let points = |l: &Lines| l.points.iter().map(|(us, p)| (ms(*us), value(p))).collect();
        lines.iter().map(|l| Series { name: l.name.into(), style: Style::Marked, points: points(l) }).collect()
    };
    let mut foreground = series(|p| p.foreground_mb_s);
    foreground.extend(lines.iter().map(|l| Series {
        name: format!("{} alone", l.name),
        style: Style::Line,
        points: [0.0, 1.0].map(|x| (x, l.without.foreground_mb_s)).to_vec(),
    }));
    let chart = |title: &str, subtitle: &str, y: Axis, series| {
        let x = Axis::linear("conservatism (ms)");
        Chart::Xy(XyChart { title: title.into(), subtitle: subtitle.into(), x, y, series })
    };
    vec![
        chart(
            "Foreground bandwidth over conservatism, Atlas 10K",
            "Too little conservatism costs the foreground turns; with enough it runs as without background work.",
            Axis::linear("foreground MB/s"),
            foreground,
        ),
        chart(
            "Free bandwidth over conservatism, Atlas 10K",
            "What conservatism costs the background, while most of the disk is still wanted.",
            Axis::from_zero("free MB/s"),
            series(|p| p.free_mb_s),
        ),
    ]
}
