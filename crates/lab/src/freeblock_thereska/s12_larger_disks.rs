//! S12: larger disks: denser tracks cost nothing, more tracks less than their capacity.
//!
//! Thereska et al. (CMU-PDL-03-107), section 4.7, figure 12: the Cheetah 36ES with twice the linear
//! density, twice the cylinders or twice the surfaces ([`headtime_sim::scaled_drives`] states what
//! scales), scanned with Angle-EP-Frag. The scans are described in [`super::algorithm_comparison`].

use headtime_disk::profile::Profile;
use headtime_plot::{Axis, BarChart, BarSeries, Chart};
use headtime_sched::Algorithm;

use super::algorithm_comparison::{self, AT_8_PERCENT, CYLINDER_REDUCTION, Key, UNIT};
use super::zone_scan::Cut;
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test, failed};
use headtime_sim::scaled_drives;

/// The experiment.
pub(crate) const S12: Experiment = Experiment { spec: &SPEC, steps: NAMES.len() as u64, run };

static SPEC: Spec = Spec {
    id: "S12",
    title: "Scan time as disks grow",
    source: "Thereska et al., Design and Implementation of a Freeblock Subsystem (CMU-PDL-03-107), section 4.7, figure \
            12",
    drive: "cheetah36es, and three drives of twice its size made from it",
    workload: "4 or 8 KiB at random, 2 reads to 1 write, 2 always outstanding; one read of the whole disk in blocks of \
            32 KB",
    claims: &[Claim {
        id: "S12",
        claim: "twice the linear density; twice the tracks or surfaces: scan time",
        paper: "about 1.0; about 1.5 times",
        rule: "0.85 to 1.15; 1.3 to 2.0",
        checks: &[
            Check { what: "twice the linear density", unit: "times", test: Test::Between(0.85, 1.15) },
            Check { what: "twice the cylinders", unit: "times", test: Test::Between(1.3, 2.0) },
            Check { what: "twice the surfaces", unit: "times", test: Test::Between(1.3, 2.0) },
        ],
        quick: true,
        note: "Twice the cylinders lie on the same stroke: the arm takes as long over it, and no single step is \
               shorter than before. The gaps of this drive are filled nearly as well as those of the larger ones: half \
               of it is read in 30% of the time, 15 MB a second, with a search that has the paper's budget. So twice \
               the blocks take twice the time. To take 1.5 times as long the larger drives would have to bring a third \
               more a second. Quick runs begin with a sixteenth of the cylinders on the same stroke.",
    }],
    length: Length::Minutes,
    alone: false,
};

const NAMES: [&str; 4] = ["as it is", "twice the linear density", "twice the cylinders", "twice the surfaces"];

fn run(run: &Run) -> Result<Findings, RunError> {
    let fewer = run.length(1, 2 * CYLINDER_REDUCTION) as u32;
    let key = Key { fewer, ..Key::new(run, Algorithm::AngleEpFrag, AT_8_PERCENT) };
    let one = algorithm_comparison::profile_of(&SPEC, key.fewer)?;
    let mut seconds = vec![algorithm_comparison::scan(&SPEC, key)?.seconds()];
    run.progress.advance(1);
    for profile in
        [scaled_drives::denser(&one, 2), scaled_drives::cylinders(&one, 2, 1), scaled_drives::surfaces(&one, 2)]
    {
        seconds.push(scan_seconds(run, profile)?);
        run.progress.advance(1);
    }
    let times: Vec<f64> = seconds.iter().map(|s| s / seconds[0]).collect();
    let mut f = Findings::default();
    f.figure("S12", &times[1..]);
    f.tables.push(Table {
        name: "scan_time",
        columns: &["drive", "scan_s", "times"],
        rows: (0..NAMES.len())
            .map(|i| vec![Cell::from(NAMES[i]), Cell::from(seconds[i]), Cell::from(times[i])])
            .collect(),
    });
    f.charts.push(Chart::Bars(BarChart {
        title: "Time to scan the disk, by how it is twice as large".into(),
        subtitle: "Times of the Cheetah 36ES; the marks are the paper's figures.".into(),
        axis: Axis::from_zero("times"),
        categories: NAMES.map(Into::into).to_vec(),
        series: vec![BarSeries { name: "scan".into(), values: times }],
        stacked: false,
        marks: vec![None, Some(1.0), Some(1.5), Some(1.5)],
        mark_name: "paper, about".into(),
    }));
    Ok(f)
}

fn scan_seconds(run: &Run, profile: Profile) -> Result<f64, RunError> {
    let how = algorithm_comparison::filled(
        algorithm_comparison::micro(&SPEC, profile, run.seed)?,
        Algorithm::AngleEpFrag,
        AT_8_PERCENT,
    );
    let (stats, _) =
        algorithm_comparison::run(&SPEC, &how.until_scanned(algorithm_comparison::MOST_SECONDS), Cut::whole(UNIT))?;
    stats
        .background
        .done_at
        .map(headtime_disk::Time::as_secs_f64)
        .ok_or_else(|| failed(&SPEC, format!("a scan did not end within {} s", algorithm_comparison::MOST_SECONDS)))
}
