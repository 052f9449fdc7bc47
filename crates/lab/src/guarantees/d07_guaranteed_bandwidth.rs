//! D7: the share of a drive that can be guaranteed.
//!
//! Reuther and Pohlack (2003), section 4.4.1 and figure 9: the most bandwidth that admission gives
//! one optional stream, by its quality, compared with the bandwidth of a best-effort load. The
//! assignable bandwidth is computed (condition 3 with X by the number of candidates, as in
//! `headtime admit`; condition 2 for a mandatory stream); the best-effort bandwidth is measured,
//! under the usual load, with a different seed. The usable part of an optional stream is its
//! guarantee, q c of a period's c requests. One column has the same with one X for all requests, as
//! in the paper, that of the drive's profile.

use headtime_disk::{Dur, profile};
use headtime_plot::{Axis, Chart, Series, Style, XyChart};
use headtime_sched::streams::{Disk, Kinds, Quality};
use headtime_sim::service::{self, Load};

use crate::common::stream_run::{self, known, one_x};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const D7: Experiment = Experiment { spec: &SPEC, steps: (SUBJECTS.len() * (SWEEP.len() + 3)) as u64, run };

const fn share(what: &'static str, at_least: f64) -> Check {
    Check { what, unit: "% of best effort", test: Test::AtLeast(at_least) }
}

const fn mandatory(what: &'static str) -> Check {
    Check { what, unit: "MB/s", test: Test::Between(1.8, 2.2) }
}

static SPEC: Spec = Spec {
    id: "D7",
    title: "Bandwidth that can be promised to one stream",
    source: "Reuther and Pohlack, Rotational-Position-Aware Real-Time Disk Scheduling Using a Dynamic Active Subset \
            (2003), section 4.4.1, figure 9",
    drive: "ultrastar36z15, barracuda36es2",
    workload: "requests of 64 KiB, a period of 500 ms; best effort: random reads of 64 KiB, eight always in the \
            system, SPTF, two at the drive",
    claims: &[
        Claim {
            id: "D7a",
            claim: "bandwidth assignable to an optional stream at q = 99.9%",
            paper: "96%, 94% of best effort",
            rule: "at least 90%",
            checks: &[share("Ultrastar 36Z15", 90.0), share("Barracuda 36ES2", 90.0)],
            quick: true,
            note: "Best effort is measured with eight requests that always wait. A stream of more in a period has \
                   more to choose from than that, so that it can be promised more; the table says how much a hundred \
                   that wait would get, and what would be promised with one X for all requests, as in the paper.",
        },
        Claim {
            id: "D7b",
            claim: "... at about 95% (95.5% for the one drive, 94.7% for the other)",
            paper: "100%",
            rule: "at least 98%",
            checks: &[share("Ultrastar 36Z15, q = 95.5%", 98.0), share("Barracuda 36ES2, q = 94.7%", 98.0)],
            quick: true,
            note: "With one X for all requests, as in the paper, it is a little less (the table has it): admission \
                   reckons with the commands that are at the drive when a period begins, and with a request not being \
                   begun whose chance to be done in time is less than nine in ten.",
        },
        Claim {
            id: "D7c",
            claim: "... to a mandatory stream",
            paper: "2 MB/s",
            rule: "1.8 to 2.2 MB/s",
            checks: &[mandatory("Ultrastar 36Z15"), mandatory("Barracuda 36ES2")],
            quick: true,
            note: "",
        },
    ],
    length: Length::Seconds,
    alone: false,
};

const PERIOD: Dur = Dur::from_ms(500);
const SECTOR_BYTES: f64 = 512.0;
/// Parts per million.
const NEARLY_ALL: u32 = 999_000;
/// The best-effort load for which the paper states a size (section 4.2).
const MANY_REQUESTS: u32 = 100;

/// A drive, and the quality at which the paper assigns all of its bandwidth, in parts per million.
struct Subject {
    drive: &'static str,
    name: &'static str,
    whole_at: u32,
}

const SUBJECTS: [Subject; 2] = [
    Subject { drive: "ultrastar36z15", name: "Ultrastar 36Z15", whole_at: 955_000 },
    Subject { drive: "barracuda36es2", name: "Barracuda 36ES2", whole_at: 947_000 },
];

/// Qualities of the figure in addition to those of the claims, in parts per million; a shortened
/// run uses the first few.
const SWEEP: [u32; 10] = [900_000, 990_000, 999_600, 600_000, 800_000, 850_000, 930_000, 970_000, 980_000, 995_000];
const QUICK_SWEEP_POINTS: usize = 3;

fn run(run: &Run) -> Result<Findings, RunError> {
    let lines = SUBJECTS.iter().map(|s| line(s, run).map_err(|reason| RunError { id: SPEC.id, reason }));
    let lines = lines.collect::<Result<Vec<_>, _>>()?;
    let mut f = Findings::default();
    f.figure("D7a", &lines.iter().map(|l| l.share(NEARLY_ALL)).collect::<Vec<_>>());
    f.figure("D7b", &lines.iter().map(|l| l.share(l.subject.whole_at)).collect::<Vec<_>>());
    f.figure("D7c", &lines.iter().map(|l| l.mandatory).collect::<Vec<_>>());
    f.tables.push(assignable(&lines));
    f.tables.push(best_effort(&lines));
    f.charts.push(chart(&lines));
    Ok(f)
}

/// Results of one drive; bandwidths in MB/s.
struct Line {
    subject: &'static Subject,
    /// By quality in parts per million, ascending: the most requests in a period, and their usable
    /// part.
    points: Vec<(u32, u32, f64)>,
    /// Usable part at these qualities with one X for all requests.
    flat: Vec<f64>,
    mandatory: f64,
    best_effort: f64,
    /// With many more candidates.
    many: f64,
}

impl Line {
    /// The usable part at this quality, which is one of the points, in percent of best effort.
    fn share(&self, ppm: u32) -> f64 {
        let point = self.points.iter().find(|p| p.0 == ppm);
        point.map_or(f64::NAN, |p| 100.0 * p.2 / self.best_effort)
    }
}

fn line(subject: &'static Subject, run: &Run) -> Result<Line, String> {
    let profile = profile::builtin(subject.drive).map_err(|e| e.to_string())?;
    let disk = known(&SPEC, &profile).map_err(|e| e.to_string())?;
    let flat = one_x(&SPEC, &profile, service::WAITING).map_err(|e| e.to_string())?;
    let usable = |disk: &Disk, requests: u32, ppm: u32| mb_s(disk, f64::from(requests)) * f64::from(ppm) / 1e6;
    let measured = |waiting| {
        // Another seed than that of X, which is 1.
        let load =
            Load { waiting, requests: run.length(50_000, 10_000), ..Load::reads(service::BYTES, run.seed + 100) };
        service::measure(&profile, &load).map(|m| m.bytes_per_second(profile.sector_bytes) / 1e6)
    };
    let best_effort = measured(service::WAITING).map_err(|e| e.to_string())?;
    let many = measured(MANY_REQUESTS).map_err(|e| e.to_string())?;
    let sweep = if run.quick { &SWEEP[..QUICK_SWEEP_POINTS] } else { &SWEEP[..] };
    let mut qualities = [sweep, &[NEARLY_ALL, subject.whole_at]].concat();
    qualities.sort_unstable();
    let (mut points, mut with_one) = (Vec::new(), Vec::new());
    for ppm in qualities {
        let requests = most(&disk, ppm)?;
        points.push((ppm, requests, usable(&disk, requests, ppm)));
        with_one.push(usable(&flat, most(&flat, ppm)?, ppm));
        run.progress.advance(1);
    }
    let mandatory = mb_s(&disk, f64::from(most(&disk, Quality::MANDATORY.ppm())?));
    run.progress.advance(1 + (SWEEP.len() - sweep.len()) as u64);
    Ok(Line { subject, points, flat: with_one, mandatory, best_effort, many })
}

/// The most requests per period of a single stream of this quality: reads, as the best effort that
/// it is compared with.
fn most(disk: &Disk, ppm: u32) -> Result<u32, String> {
    let quality = Quality::from_ppm(ppm).map_err(|e| e.to_string())?;
    let most = stream_run::most(disk, quality, Kinds::Reads);
    most.map(|most| most.0).ok_or_else(|| "not one request can be had".into())
}

/// Converts requests per period to MB/s.
fn mb_s(disk: &Disk, requests: f64) -> f64 {
    requests * f64::from(disk.largest().sectors) * SECTOR_BYTES / PERIOD.as_secs_f64() / 1e6
}

fn assignable(lines: &[Line]) -> Table {
    let rows = lines.iter().flat_map(|l| {
        l.points.iter().zip(&l.flat).map(|(&(ppm, requests, usable), &flat)| {
            let share = |mb_s: f64| 100.0 * mb_s / l.best_effort;
            let figures = [f64::from(ppm) / 1e4, f64::from(requests), usable, share(usable), share(flat)];
            std::iter::once(Cell::from(l.subject.drive)).chain(figures.map(Cell::from)).collect()
        })
    });
    let columns = &[
        "drive",
        "quality_percent",
        "requests_in_500_ms",
        "usable_mb_s",
        "of_best_effort_percent",
        "of_best_effort_percent_with_one_x",
    ];
    Table { name: "assignable", columns, rows: rows.collect() }
}

fn best_effort(lines: &[Line]) -> Table {
    let row = |l: &Line| {
        let figures = [l.best_effort, l.many, l.mandatory];
        std::iter::once(Cell::from(l.subject.drive)).chain(figures.map(Cell::from)).collect()
    };
    let columns = &["drive", "best_effort_mb_s", "best_effort_of_100_waiting_mb_s", "mandatory_mb_s"];
    Table { name: "best_effort", columns, rows: lines.iter().map(row).collect() }
}

fn chart(lines: &[Line]) -> Chart {
    let mut series = Vec::new();
    for l in lines {
        let points: Vec<(f64, f64)> = l.points.iter().map(|p| (f64::from(p.0) / 1e4, p.2)).collect();
        let from = points.first().map_or(0.0, |p| p.0);
        series.push(Series { name: l.subject.name.into(), style: Style::Marked, points });
        let flat = vec![(from, l.best_effort), (100.0, l.best_effort)];
        series.push(Series { name: format!("{}, best effort", l.subject.name), style: Style::Line, points: flat });
    }
    let mandatory = lines.iter().map(|l| (100.0, l.mandatory));
    series.extend(mandatory.zip(lines).map(|(point, l)| Series {
        name: format!("{}, mandatory", l.subject.name),
        style: Style::Marked,
        points: vec![point],
    }));
    Chart::Xy(XyChart {
        title: "What can be promised to one stream, by quality".into(),
        subtitle:
            "Requests of 64 KiB in periods of 500 ms. A stream that may lose a thousandth is promised nearly all \
                of the drive, one that may lose none a small part."
                .into(),
        x: Axis::linear("quality asked for, %"),
        y: Axis::from_zero("usable bandwidth, MB/s"),
        series,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mandatory_stream_has_what_fits_by_its_worst_case_and_not_one_more() {
        for s in &SUBJECTS {
            let profile = profile::builtin(s.drive).unwrap();
            let disk = one_x(&SPEC, &profile, service::WAITING).unwrap();
            let fit = PERIOD.0 / disk.largest().worst.0;
            assert_eq!(most(&disk, 1_000_000), Ok(fit as u32), "{}", s.drive);
            assert!((mb_s(&disk, 1.0) - 0.131_072).abs() < 1e-9);
        }
    }
}
