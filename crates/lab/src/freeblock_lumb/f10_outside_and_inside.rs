//! F10: the cost of scheduling outside the drive.
//!
//! Lumb, Schindler and Ganger (FAST 2002), section 5.3 and figure 10: free bandwidth of the
//! external scheduler, of a simulated one inside the drive, and of the latter without additional
//! commands on tracks of foreground requests.

use headtime_disk::{DriveNoise, Dur};
use headtime_plot::{Axis, Chart, Series, Style, XyChart};
use headtime_sched::{Algorithm, Conservatism, Order, Placement};
use headtime_sim::stats::Stats;
use headtime_sim::workload::oltp;

use crate::common::figure9;
use crate::common::scan_run::{DriveBehaviour, ScanRun};
use crate::common::scans::{Fill, Scan, Scanned};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const F10: Experiment = Experiment { spec: &SPEC, steps: STEPS, run };

static SPEC: Spec = Spec {
    id: "F10",
    title: "Free bandwidth outside and inside the drive",
    source: "Lumb, Schindler, Ganger, Freeblock Scheduling Outside of Disk Firmware (FAST 2002), section 5.3, figure \
            10",
    drive: "atlas10k",
    workload: "oltp under SPTF-SW60%; one read of the whole disk in the background in units of 4 KiB with \
            Angle-EP-Frag, to its end",
    claims: &[
        Claim {
            id: "F10a",
            claim: "host against firmware placement, at 0.3 to 0.4 ms conservatism",
            paper: "65%",
            rule: "papers' algorithms: 55 to 80%",
            checks: &[
                Check { what: "host at 0.3 ms, share of firmware at none", unit: "%", test: Test::Between(55.0, 80.0) },
                Check { what: "host at 0.4 ms, share of firmware at none", unit: "%", test: Test::Between(55.0, 80.0) },
            ],
            quick: true,
            note: "The scheduler inside the drive knows the truth and needs no conservatism: the paper counts \
                   conservatism as one of the two sources of the penalty.",
        },
        Claim {
            id: "F10b",
            claim: "firmware placement with the no-track rule against host, beyond 0.3 ms",
            paper: "within 2 to 3%",
            rule: "within 4%; outside the drive, the rule switched off costs the foreground at least 2%",
            checks: &[
                Check { what: "largest difference from 0.3 ms on", unit: "%", test: Test::AtMost(4.0) },
                Check { what: "foreground lost outside, the rule switched off", unit: "%", test: Test::AtLeast(2.0) },
            ],
            // A scan of one cylinder in twenty takes minutes, and such scans differ by 3 to 5% by
            // chance.
            quick: false,
            note: "At the same conservatism. The drive takes two reads on one track for a sequential pattern and reads \
                   the track to its end, which is what the rule avoids.",
        },
    ],
    length: Length::Minutes,
    alone: false,
};

/// The figure's lines.
const LINES: [(&str, Placement); 3] = [
    ("simulation: inside the drive", Placement::Firmware),
    ("simulation no track: inside, the host's rules", Placement::FirmwareNoTrack),
    ("outside the drive", Placement::Host),
];

/// Steps of a full run: the points of the lines.
const STEPS: u64 = (LINES.len() * figure9::US.len()) as u64 + 2 + JUDGED_US.len() as u64;
/// Conservatisms of F10a, us.
const JUDGED_US: [u64; 2] = [300, 400];

type Line = Vec<(u64, Scanned)>;

fn run(run: &Run) -> Result<Findings, RunError> {
    let scan = figure9::point(run, Order::SptfSw(60));
    let line = |placement| {
        let at = |&us: &u64| {
            let conservatism = Conservatism::Fixed(Dur::from_us(us));
            let fill = Fill { algorithm: Algorithm::AngleEpFrag, placement, conservatism };
            Ok((us, scan.with(fill).measure(&SPEC, run)?))
        };
        figure9::sweep(run).iter().map(at).collect::<Result<Line, RunError>>()
    };
    let lines = LINES.map(|(_, placement)| line(placement));
    let [inside, no_track, outside] = lines;
    let (inside, no_track, outside) = (inside?, no_track?, outside?);
    run.progress.advance(STEPS - 2 - JUDGED_US.len() as u64 - (LINES.len() * figure9::sweep(run).len()) as u64);
    let alone = beside_the_host(run, None)?.per_second();
    let lost = |placement| Ok(100.0 * (1.0 - beside_the_host(run, Some(placement))?.per_second() / alone));
    let (with_rule, without_rule) = (lost(Placement::Host)?, lost(Placement::Firmware)?);
    run.progress.advance(2);
    let mut f = Findings::default();
    f.figure("F10a", &JUDGED_US.map(|us| 100.0 * at(&outside, us) / at(&inside, 0)));
    let errs = Scan { noise: DriveNoise::Measured, ..scan };
    let [near, far] = JUDGED_US.map(|us| errs.with(Fill::host(Algorithm::AngleEpFrag, us)).measure(&SPEC, run));
    let [near, far] = [near?, far?].map(|s| 100.0 * s.free_mb_s / at(&inside, 0));
    let text = format!("Seed {}: {near:.1}% at 0.3 ms and {far:.1}% at 0.4 ms on a drive that errs.", run.seed);
    f.notes.push(("F10a", text));
    f.figure("F10b", &[apart(&no_track, &outside, 300), without_rule]);
    let lost = format!("Seed {}: the foreground loses {with_rule:.2}% with the rule.", run.seed);
    f.notes.push(("F10b", lost));
    f.tables.push(table([&inside, &no_track, &outside]));
    f.charts.push(chart([&inside, &no_track, &outside]));
    Ok(f)
}

/// A part of a scan outside the drive, by these rules, at 0.3 ms; `None`: nothing is filled.
fn beside_the_host(run: &Run, rules: Option<Placement>) -> Result<Stats, RunError> {
    let mut scan = ScanRun::new(&SPEC, "atlas10k", Order::SptfSw(60), oltp(), run.seed)?.seconds(run.length(600, 200));
    if let Some(rules) = rules {
        scan = scan.with(Algorithm::AngleEpFrag, rules, Conservatism::Fixed(Dur::from_us(300)));
    }
    scan.towards = Some(DriveBehaviour { noise: DriveNoise::Profile, inside: false, at_once: false });
    Ok(scan.scan(&SPEC, 8, &mut ())?.0)
}

/// The line's free bandwidth at a conservatism.
fn at(line: &Line, us: u64) -> f64 {
    line.iter().find(|(c, _)| *c == us).map_or(f64::NAN, |(_, s)| s.free_mb_s)
}

/// The largest difference between two lines from a conservatism on, in % of the second.
fn apart(one: &Line, other: &Line, from_us: u64) -> f64 {
    let beyond = one.iter().zip(other).filter(|((us, _), _)| *us >= from_us);
    let apart = beyond.map(|((_, a), (_, b))| 100.0 * (a.free_mb_s / b.free_mb_s - 1.0).abs());
    apart.fold(0.0, f64::max)
}

fn table(lines: [&Line; 3]) -> Table {
    let [inside, no_track, outside] = lines;
    let rows = inside.iter().zip(no_track).zip(outside).map(|(((us, a), (_, b)), (_, c))| {
        let mut row = vec![Cell::from(*us as f64)];
        row.extend([a, b, c].map(|s| Cell::from(s.free_mb_s)));
        row.push((100.0 * c.free_mb_s / inside[0].1.free_mb_s).into());
        row.push((100.0 * (b.free_mb_s / c.free_mb_s - 1.0)).into());
        row.extend([a, b, c].map(|s| Cell::from(s.per_second)));
        row.extend([a, b, c].map(|s| Cell::from(s.p99_ms)));
        row
    });
    Table {
        name: "figure_10",
        columns: &[
            "conservatism_us",
            "inside_mb_s",
            "inside_no_track_mb_s",
            "outside_mb_s",
            "outside_share_of_inside_at_0_percent",
            "no_track_above_outside_percent",
            "inside_requests_per_second",
            "inside_no_track_requests_per_second",
            "outside_requests_per_second",
            "inside_p99_ms",
            "inside_no_track_p99_ms",
            "outside_p99_ms",
        ],
        rows: rows.collect(),
    }
}

fn chart(lines: [&Line; 3]) -> Chart {
    let series = LINES.iter().zip(lines).map(|((name, _), line)| Series {
        name: (*name).into(),
        style: Style::Marked,
        points: line.iter().map(|(us, s)| (*us as f64 / 1e3, s.free_mb_s)).collect(),
    });
    Chart::Xy(XyChart {
        title: "Free bandwidth inside and outside the drive, Atlas 10K".into(),
        subtitle: "From 0.3 ms on the lower two should lie on each other: what is lost beside conservatism is lost to \
                the rule of one command a track."
            .into(),
        x: Axis::linear("conservatism (ms)"),
        y: Axis::from_zero("free MB/s"),
        series: series.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::scan_run::free_mb_s;

    /// Returns free MB/s and foreground requests per second, at 0.3 ms if gaps are filled.
    fn run(placement: Option<Placement>, towards: Option<DriveBehaviour>) -> (f64, f64) {
        let mut run = ScanRun::new(&SPEC, "atlas10k", Order::SptfSw(60), oltp(), 1).unwrap().seconds(200);
        if let Some(placement) = placement {
            run = run.with(Algorithm::AngleEpFrag, placement, Conservatism::Fixed(Dur::from_us(300)));
        }
        run.towards = towards;
        let (stats, _) = run.scan(&SPEC, 8, &mut ()).unwrap();
        (free_mb_s(&stats, run.profile.sector_bytes), stats.per_second())
    }

    /// F10b, and what the rule is for: outside the drive, a scheduler without it is not free.
    #[test]
    fn without_the_no_track_rule_there_is_more_inside_the_drive_and_a_loss_outside() {
        let [inside, no_track, host] =
            [Placement::Firmware, Placement::FirmwareNoTrack, Placement::Host].map(|p| run(Some(p), None).0);
        let apart = |mb_s: f64| 100.0 * (mb_s / host - 1.0).abs();
        println!("F10b: {:.1}% from the host's rate, without the rule {:.1}%", apart(no_track), apart(inside));
        let outside = Some(DriveBehaviour { noise: DriveNoise::Profile, inside: false, at_once: false });
        let alone = run(None, outside).1;
        let loss = |placement| 100.0 * (1.0 - run(Some(placement), outside).1 / alone);
        let (with, without) = (loss(Placement::Host), loss(Placement::Firmware));
        println!("outside: the foreground loses {with:.2}%, without the rule {without:.2}%");
        assert!(apart(no_track) <= 4.0 && apart(inside) > 4.0, "{no_track} {inside} {host}");
        assert!(with < 1.0 && without >= 2.0, "{with} {without}");
    }
}
