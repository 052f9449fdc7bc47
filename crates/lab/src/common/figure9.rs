//! Figure 9 of Lumb 2002: foreground and free bandwidth over conservatism, for three orders.
//!
//! The basis of experiments F7, F8, F9 and F10. The paper does not say which part of a scan it
//! plots; it mentions one read of the whole disk (section 5.1) and steady-state progress (section
//! 1). So every point is a whole scan, including the slow end. In a shortened run the drive has one
//! cylinder in twenty ([`headtime_sim::scaled_drives`]), so that a whole scan takes minutes.

use headtime_disk::DriveNoise;
use headtime_plot::{Axis, Chart, Series, Style, XyChart};
use headtime_sched::{Algorithm, Order};

use super::scans::{Fill, Load, Scan, Scanned, Window};
use crate::experiment::{Cell, Run, RunError, Spec, Table};

/// Time limit of a whole scan, and duration of a run without one, virtual seconds.
pub(crate) const MOST_SECONDS: u64 = 20_000;
const ALONE_SECONDS: (u64, u64) = (3_000, 600);
/// Reduction of the drive's cylinders in a shortened run.
const CYLINDER_REDUCTION: u32 = 20;
/// Conservatism of a shortened run, us.
pub(crate) const US: [u64; 6] = [0, 100, 200, 300, 400, 1_000];
/// For scans of the whole drive: those of the claims, and the figure's end.
const FEW_US: [u64; 4] = [0, 300, 400, 1_000];
/// 4 KiB: the unit of the background read.
pub(crate) const UNIT: u32 = 8;

/// The paper's orders.
pub(crate) const ORDERS: [(&str, Order); 3] =
    [("SSTF", Order::Sstf), ("SPTF-SW60%", Order::SptfSw(60)), ("SPTF", Order::Sptf)];

/// Upper bound of the runs of [`lines`], and that of one line.
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
    /// The point of this conservatism, which must be in the figure.
    pub(crate) fn at(&self, us: u64) -> &Scanned {
        let point = self.points.iter().find(|(c, _)| *c == us);
        &point.expect("no such point in the figure").1
    }

    /// Free bandwidth lost at this conservatism, % of that of the best point.
    pub(crate) fn given_up(&self, us: u64) -> f64 {
        let best = self.points.iter().map(|(_, scanned)| scanned.free_mb_s).fold(0.0, f64::max);
        100.0 * (1.0 - self.at(us).free_mb_s / best)
    }
}

/// A point of the figure; without FILL it must be run with [`alone`].
pub(crate) fn point(run: &Run, order: Order) -> Scan {
    let narrowed = run.length(1, u64::from(CYLINDER_REDUCTION)) as u32;
    Scan { narrowed, ..Scan::new("atlas10k", UNIT, order, Window::Whole(MOST_SECONDS)) }
}

/// The same on the shortened drive in every run, for explanations of a figure.
pub(crate) fn beside(order: Order) -> Scan {
    Scan { narrowed: CYLINDER_REDUCTION, ..Scan::new("atlas10k", UNIT, order, Window::Whole(MOST_SECONDS)) }
}

/// The conservatisms of the figure, us.
pub(crate) fn sweep(run: &Run) -> &'static [u64] {
    if run.quick { &US } else { &FEW_US }
}

/// The foreground without FILL.
pub(crate) fn alone(spec: &Spec, run: &Run, scan: Scan) -> Result<Scanned, RunError> {
    let window = Window::First(run.length(ALONE_SECONDS.0, ALONE_SECONDS.1));
    Scan { window, fill: None, ..scan }.measure(spec, run)
}

/// One order's lines of the figure, with the papers' default algorithm; `scan` is without FILL.
pub(crate) fn line(spec: &Spec, run: &Run, name: &'static str, scan: Scan, sweep: &[u64]) -> Result<Lines, RunError> {
    let without = alone(spec, run, scan)?;
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
    // Points that a scan of the whole drive leaves out.
    run.progress.advance(3 * (US.len() - sweep(run).len()) as u64);
    Ok(lines)
}

/// The three orders' lines with ten requests always outstanding.
pub(crate) fn ten_active(spec: &Spec, run: &Run, noise: DriveNoise, sweep: &[u64]) -> Result<Vec<Lines>, RunError> {
    let line = |&(name, order): &(&'static str, _)| {
        line(spec, run, name, Scan { noise, load: Load::TenActive, ..point(run, order) }, sweep)
    };
    ORDERS.iter().map(line).collect()
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
            "response_p99_ms",
            "free_mb_s",
            "progress_mb_s",
            "whole_scan_s",
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
        p.p99_ms.into(),
        p.free_mb_s.into(),
        p.progress_mb_s.into(),
        p.seconds().into(),
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
            "What conservatism costs the background. Whole scans.",
            Axis::from_zero("free MB/s"),
            series(|p| p.free_mb_s),
        ),
    ]
}
