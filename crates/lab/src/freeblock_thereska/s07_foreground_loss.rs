//! S7: the foreground's loss by filling gaps.
//!
//! Thereska et al. (CMU-PDL-03-107), section 1: under 2%. Foreground requests per second over the
//! whole scan, and the 99th percentile of their response times, compared with a run of the same
//! length and seed without filling: the mean can hide what a few requests wait. The scans are
//! described in [`super::algorithm_comparison`].

use headtime_plot::{Axis, BarChart, BarSeries, Chart};
use headtime_sched::Algorithm;

use super::algorithm_comparison::{self, AT_8_PERCENT, Key};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const S7: Experiment = Experiment { spec: &SPEC, steps: Algorithm::ALL.len() as u64, run };

const fn under(what: &'static str) -> Check {
    Check { what, unit: "%", test: Test::Below(2.0) }
}

static SPEC: Spec = Spec {
    id: "S7",
    title: "Foreground loss while gaps are filled, by algorithm",
    source: "Thereska et al., Design and Implementation of a Freeblock Subsystem (CMU-PDL-03-107), sections 1 and 4.4",
    drive: "cheetah36es",
    workload: "4 or 8 KiB at random, 2 reads to 1 write, 2 always outstanding but for 20 us of host time; one read of \
            the whole disk in blocks of 32 KB",
    claims: &[Claim {
        id: "S7",
        claim: "foreground loss with fill, any algorithm",
        paper: "under 2%",
        rule: "under 2%, p99 less than 2% higher",
        checks: &[
            under("BW-Greedy"),
            under("BW-EP-Greedy"),
            under("Angle-EP-Greedy"),
            under("Angle-EP-Frag"),
            under("headtime"),
            under("BW-Greedy, p99 higher"),
            under("BW-EP-Greedy, p99 higher"),
            under("Angle-EP-Greedy, p99 higher"),
            under("Angle-EP-Frag, p99 higher"),
            under("headtime, p99 higher"),
        ],
        quick: true,
        note: "Over the whole scan, with the few blocks at its end that are fetched without a gap. A loss below zero: \
               a foreground request that comes from the track of the one before can be served sooner when something \
               was read in between, and two runs of one seed part ways with their first difference.",
    }],
    length: Length::Minutes,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let (mut losses, mut tails) = (Vec::new(), Vec::new());
    let mut rows = Vec::new();
    for algorithm in Algorithm::ALL {
        let scan = algorithm_comparison::scan(&SPEC, Key::new(run, algorithm, AT_8_PERCENT))?;
        losses.push(scan.loss());
        tails.push(scan.p99_rise());
        let (with, alone) = scan.per_second;
        let (p99, p99_alone) = scan.p99_ms;
        rows.push(vec![
            Cell::from(algorithm.name()),
            Cell::from(alone),
            Cell::from(with),
            Cell::from(scan.loss()),
            Cell::from(p99_alone),
            Cell::from(p99),
            Cell::from(scan.p99_rise()),
            Cell::from(scan.seconds()),
        ]);
        run.progress.advance(1);
    }
    let mut f = Findings::default();
    f.figure("S7", &[losses.clone(), tails].concat());
    f.charts.push(Chart::Bars(BarChart {
        title: "What the foreground loses while gaps are filled".into(),
        subtitle: "Over the whole scan; the marks are what the paper allows.".into(),
        axis: Axis::linear("%"),
        categories: Algorithm::ALL.iter().map(|a| a.name().into()).collect(),
        series: vec![BarSeries { name: "loss".into(), values: losses }],
        stacked: false,
        marks: vec![Some(2.0); Algorithm::ALL.len()],
        mark_name: "paper, at most".into(),
    }));
    f.tables.push(Table {
        name: "loss",
        columns: &[
            "algorithm",
            "alone_per_second",
            "with_fill_per_second",
            "loss_percent",
            "alone_p99_ms",
            "with_fill_p99_ms",
            "p99_higher_percent",
            "scan_s",
        ],
        rows,
    });
    Ok(f)
}
