//! The demo's picture: the same time window without a scan, with a rate-limited scan and with one
//! that fills gaps; below, the duration of each scan.

use headtime_disk::{Dur, Kind, Time};
use headtime_plot::{Axis, Lane, Panel, Span, Timeline};

use super::runs::{Row, Rows};
use super::table;
use super::window::{FROM, Work};

/// Length of the window, and how much of it precedes the limited reader's first read.
const STRETCH: Dur = Dur::from_ms(120);
const LEAD_TIME: Dur = Dur::from_ms(15);

/// Kinds of spans; indices into [`kinds`].
const SEEK: usize = 0;
const ROTATE: usize = 1;
const TRANSFER: usize = 2;
const SCAN: usize = 3;

/// The time window that the picture shows.
struct Stretch {
    from: Time,
    to: Time,
}

impl Stretch {
    /// A random window might hold no read of a reader with about twenty reads a second, so the
    /// window is taken around the first read after [`FROM`], the same for every run.
    fn around_first_read(limited: &Row) -> Stretch {
        let first = limited.window.work.iter().filter(|w| w.scanned > 0).map(|w| w.media.start).min();
        let from = first.map_or(FROM, |at| Time(at.0 - LEAD_TIME.0).max(FROM));
        Stretch { from, to: from + STRETCH }
    }

    fn shows(&self, t: Time) -> bool {
        self.from <= t && t < self.to
    }

    /// Milliseconds since the start of the window, negative before it.
    fn ms(&self, t: Time) -> f64 {
        (t.0 as f64 - self.from.0 as f64) / 1e6
    }
}

/// Draws the picture.
pub fn draw(rows: &Rows) -> Timeline {
    let Rows { bare, idle, limited, free, .. } = rows;
    let stretch = Stretch::around_first_read(limited);
    // The idle class reads once in 200 ms: its window would look like the one without a scan.
    let shown = [bare, limited, free];
    let heads = Panel {
        title: format!("What the head does in the same {:.0} milliseconds", STRETCH.as_ms_f64()),
        axis: Axis::range("ms", 0.0, STRETCH.as_ms_f64()),
        lane_height: 44.0,
        lanes: shown.iter().map(|r| head_lane(r, &stretch)).collect(),
    };
    let scans = Panel {
        title: "How long it takes to read the whole disk, and what it costs the programs".into(),
        axis: Axis::from_zero("minutes"),
        lane_height: 24.0,
        lanes: [idle, limited, free].iter().map(|r| scan_lane(r, bare)).collect(),
    };
    let mut subtitle = String::from(
        "A Quantum Atlas 10K (1999, 10,025 turns a minute), kept busy by ten programs that ask for random blocks. A \
         scan that takes its turn adds seeks and waits of its own. headtime reads what passes under the head while it \
         has to wait for the programs' blocks anyway.",
    );
    if shown.iter().any(|r| r.window.cached.iter().any(|t| stretch.shows(*t))) {
        subtitle += " Where a track is blank, the drive answers from its cache.";
    }
    Timeline {
        title: "A busy disk is read from end to end".into(),
        subtitle,
        kinds: kinds(),
        panels: vec![heads, scans],
    }
}

fn kinds() -> Vec<(String, bool)> {
    ["seek: the arm moves", "rotate: the platter comes round", "data for the programs", "data for the scan"]
        .map(|name| (name.to_string(), false))
        .to_vec()
}

/// The head's work for all clients.
fn head_lane(row: &Row, stretch: &Stretch) -> Lane {
    let mut spans = Vec::new();
    for w in &row.window.work {
        if w.media.end > stretch.from && w.media.start < stretch.to {
            draw_work(&mut spans, w, stretch);
        }
    }
    let done = row.window.done.iter().filter(|t| stretch.shows(**t)).count();
    Lane { label: row.name.clone(), note: format!("{done} requests"), spans }
}

fn scan_lane(row: &Row, bare: &Row) -> Lane {
    let mut spans = Vec::new();
    let minutes = row.scan_seconds().map_or(f64::INFINITY, |s| s / 60.0);
    if minutes.is_finite() {
        let hint = format!("{:.2} MB/s", row.scan_mb_s());
        spans.push(Span { from: 0.0, to: minutes, kind: SCAN, hint });
    }
    let cost = table::change(row.per_second(), bare.per_second());
    Lane { label: row.name.clone(), note: format!("{}, requests/s {cost}", table::duration(row)), spans }
}

/// Draws a command: seek, rotational latency, transfer for the scan, transfer for a program.
fn draw_work(spans: &mut Vec<Span>, w: &Work, stretch: &Stretch) {
    let transfer = w.media.transfer();
    let for_scan = Dur((u128::from(transfer.0) * u128::from(w.scanned) / u128::from(w.command.count.max(1))) as u64);
    let parts = [
        (w.media.seek(), SEEK),
        (w.media.rotate(), ROTATE),
        (for_scan, SCAN),
        (transfer.saturating_sub(for_scan), TRANSFER),
    ];
    let hint = describe(w);
    let mut from = w.media.start;
    for (takes, kind) in parts {
        let to = from + takes;
        if to > from && to > stretch.from {
            spans.push(Span { from: stretch.ms(from), to: stretch.ms(to), kind, hint: hint.clone() });
        }
        from = to;
    }
}

fn describe(w: &Work) -> String {
    let what = match w.command.kind {
        Kind::Read => "read",
        Kind::Write => "write",
        Kind::Flush => "flush",
    };
    let whole = format!("{what} of {} sectors at {}", w.command.count, w.command.lbn);
    match w.scanned {
        0 => whole,
        n if n == w.command.count => format!("{whole}, for the scan"),
        n => format!("{whole}, the first {n} for the scan"),
    }
}
