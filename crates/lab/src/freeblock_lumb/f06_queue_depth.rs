//! F6: the external scheduler's SPTF is as good as the drive's own, and better than orders by seek
//! alone.
//!
//! Lumb, Schindler and Ganger (FAST 2002), section 5.2 and figure 8: random small reads, 1 to 20
//! outstanding. "Drive" dispatches all of them at once and leaves the order to its firmware; the
//! others keep two at the drive.

use headtime_disk::DriveNoise;
use headtime_disk::profile::{FirmwareOrder, QueueSpec};
use headtime_plot::{Axis, Chart, Series, Style, XyChart};
use headtime_sched::Order;
use headtime_sim::workload::closed;

use crate::common::load_run::{self, Choice, Setup};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const F6: Experiment = Experiment { spec: &SPEC, steps: 6 * DEPTHS as u64, run };

static SPEC: Spec = Spec {
    id: "F6",
    title: "Throughput by queue depth: outside against inside the drive",
    source: "Lumb, Schindler, Ganger, Freeblock Scheduling Outside of Disk Firmware (FAST 2002), section 5.2, figure 8",
    drive: "atlas10k",
    workload: "random 4 KiB reads, 1 to 20 always in the system",
    claims: &[
        Claim {
            id: "F6a",
            claim: "throughput over queue depths 1 to 20, external SPTF against the drive's own scheduler",
            paper: "lines overlap",
            rule: "within 2% at every depth, on a drive that errs, too",
            checks: &[
                Check { what: "largest difference over the depths", unit: "%", test: Test::AtMost(2.0) },
                Check { what: "the same, drive that errs", unit: "%", test: Test::AtMost(2.0) },
            ],
            quick: true,
            note: "The drive that errs does not know its errors when it orders commands: both sides choose by the same \
                   table, and only the completions, which are late, are harder outside. A firmware that knew them \
                   would be 8 to 9% ahead at the largest difference (tried), and the paper's lines lie on each other: \
                   the real drive's firmware did not know its errors either, or they are not constant.",
        },
        Claim {
            id: "F6b",
            claim: "order of the three",
            paper: "SPTF > SPTF-SW60% > SSTF, gap grows with depth",
            rule: "holds from depth 3 on",
            checks: &[
                Check {
                    what: "depths from 3 on where SPTF > SPTF-SW60% > SSTF is wrong",
                    unit: "cases",
                    test: Test::Never,
                },
                Check { what: "gaps that do not grow from depth 3 to 5 to 10 to 20", unit: "cases", test: Test::Never },
            ],
            quick: true,
            note: "From one depth to the very next the gaps scatter by what chance leaves in runs of this length; that \
                   they grow is held to four depths, each about twice the one before.",
        },
    ],
    length: Length::Seconds,
    alone: false,
};

const DEPTHS: u32 = 20;

/// Depths between which both gaps must grow.
const MILESTONES: [usize; 4] = [3, 5, 10, 20];

/// Requests per second by depth, from depth 1.
type Curve = Vec<f64>;

fn run(run: &Run) -> Result<Findings, RunError> {
    let external = |order| curve(run, DriveNoise::Profile, |_| Choice::Outside(order));
    let sptf = external(Order::Sptf)?;
    let weighted = external(Order::SptfSw(60))?;
    let sstf = external(Order::Sstf)?;
    let own = |depth| Choice::Drive(QueueSpec { depth, order: FirmwareOrder::Sptf, ..QueueSpec::default() });
    let drive = curve(run, DriveNoise::Profile, own)?;
    let sptf_errs = curve(run, DriveNoise::Measured, |_| Choice::Outside(Order::Sptf))?;
    let drive_errs = curve(run, DriveNoise::Measured, own)?;
    let apart = |a: &Curve, b: &Curve| a.iter().zip(b).map(|(a, b)| 100.0 * (a - b).abs() / b).fold(0.0, f64::max);
    let mut f = Findings::default();
    f.figure("F6a", &[apart(&sptf, &drive), apart(&sptf_errs, &drive_errs)]);
    f.figure("F6b", &[out_of_order(&sptf, &weighted, &sstf), gaps_that_shrink(&sptf, &weighted, &sstf)]);
    let lines = [
        ("SPTF, external", &sptf),
        ("SPTF-SW60%, external", &weighted),
        ("SSTF, external", &sstf),
        ("drive's own", &drive),
        ("SPTF, external, drive errs", &sptf_errs),
        ("drive's own, drive errs", &drive_errs),
    ];
    f.tables.push(table(&lines));
    f.charts.push(chart(&lines));
    Ok(f)
}

fn curve(run: &Run, noise: DriveNoise, choice: impl Fn(u32) -> Choice) -> Result<Curve, RunError> {
    (1..=DEPTHS)
        .map(|depth| {
            let setup = Setup {
                drive: "atlas10k",
                load: closed(depth),
                seed: run.seed,
                requests: run.length(20_000, 10_000),
                choice: choice(depth),
                noise,
            };
            let m = load_run::measure(&SPEC, &setup)?;
            run.progress.advance(1);
            Ok(m.per_second())
        })
        .collect()
}

/// Depths from 3 on at which the three are not in the expected order.
fn out_of_order(best: &Curve, middle: &Curve, worst: &Curve) -> f64 {
    (2..best.len()).filter(|&i| !(best[i] > middle[i] && middle[i] > worst[i])).count() as f64
}

/// Number of gaps between neighbours that do not grow from one milestone to the next.
fn gaps_that_shrink(best: &Curve, middle: &Curve, worst: &Curve) -> f64 {
    let mut wrong = 0;
    for (above, below) in [(best, middle), (middle, worst)] {
        let gap = |depth: usize| above[depth - 1] - below[depth - 1];
        wrong += MILESTONES.windows(2).filter(|w| gap(w[1]) <= gap(w[0])).count();
    }
    wrong as f64
}

fn table(lines: &[(&'static str, &Curve)]) -> Table {
    let rows = (0..DEPTHS as usize).map(|i| {
        let mut row = vec![Cell::from((i + 1) as f64)];
        row.extend(lines.iter().map(|(_, c)| Cell::from(c[i])));
        row
    });
    Table {
        name: "throughput",
        columns: &[
            "depth",
            "sptf_per_second",
            "sptf_sw60_per_second",
            "sstf_per_second",
            "drive_per_second",
            "sptf_errs_per_second",
            "drive_errs_per_second",
        ],
        rows: rows.collect(),
    }
}

fn chart(lines: &[(&'static str, &Curve)]) -> Chart {
    let series = lines.iter().map(|(name, curve)| Series {
        name: (*name).into(),
        style: Style::Marked,
        points: curve.iter().enumerate().map(|(i, v)| ((i + 1) as f64, *v)).collect(),
    });
    Chart::Xy(XyChart {
        title: "Throughput by queue depth, Atlas 10K".into(),
        subtitle: "Two requests at the drive and the rest chosen outside, against all requests handed to the drive. \
                   The lines of SPTF and of the drive should lie on each other."
            .into(),
        x: Axis::linear("requests in the system"),
        y: Axis::from_zero("requests per second"),
        series: series.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(slope: f64) -> Curve {
        (1..=20).map(|d| 100.0 + slope * f64::from(d)).collect()
    }

    #[test]
    fn lines_that_fan_out_are_in_order_and_their_gaps_grow() {
        let (a, b, c) = (line(9.0), line(6.0), line(2.0));
        assert_eq!(out_of_order(&a, &b, &c), 0.0);
        assert_eq!(gaps_that_shrink(&a, &b, &c), 0.0);
    }

    #[test]
    fn one_depth_out_of_order_is_counted_but_not_below_three() {
        let (mut a, b, c) = (line(9.0), line(6.0), line(2.0));
        a[1] = 0.0;
        assert_eq!(out_of_order(&a, &b, &c), 0.0);
        a[7] = 0.0;
        assert_eq!(out_of_order(&a, &b, &c), 1.0);
    }

    #[test]
    fn a_gap_that_stays_the_same_does_not_grow() {
        let (a, b, c) = (line(9.0), line(9.0), line(2.0));
        assert_eq!(gaps_that_shrink(&a, &b, &c), 3.0);
    }
}
