//! S12: larger disks: denser tracks cost nothing, more tracks less than their capacity.
//!
//! Thereska et al. (CMU-PDL-03-107), section 4.7, figure 12: the Cheetah 36ES with twice the linear
//! density, twice the cylinders or twice the surfaces ([`crate::doubled`] states what scales),
//! scanned with Angle-EP-Frag. The scans are described in [`crate::four`].

use headtime_disk::profile::Profile;
use headtime_sched::Algorithm;

use crate::doubled;
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Run, RunError, Spec, Table, Test};
use crate::filled::failed;
use crate::four::{self, AT_8_PERCENT, FEWER, Key, UNIT};
use crate::svg::{Axis, BarChart, BarSeries, Chart};
use crate::zone_scan::Cut;

/// The experiment.
pub struct S12;

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
        rule: "0.85 to 1.15; 1.3 to 1.7",
        checks: &[
            Check { what: "twice the linear density", unit: "times", test: Test::Between(0.85, 1.15) },
            Check { what: "twice the cylinders", unit: "times", test: Test::Between(1.3, 1.7) },
            Check { what: "twice the surfaces", unit: "times", test: Test::Between(1.3, 1.7) },
        ],
        quick: true,
        note: "Twice the cylinders lie on the same stroke: the arm takes as long over it, and no single step is \
               shorter than before. The gaps of this drive are filled nearly as well as those of the larger ones: half \
               of it is read in 30% of the time, 15 MB a second, with a search that has the paper's budget. So twice \
               the blocks take twice the time. To take 1.5 times as long the larger drives would have to bring a third \
               more a second. Quick runs begin with a sixteenth of the cylinders on the same stroke.",
    }],
    alone: false,
};

const NAMES: [&str; 4] = ["as it is", "twice the linear density", "twice the cylinders", "twice the surfaces"];

impl Experiment for S12 {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn steps(&self) -> u64 {
        NAMES.len() as u64
    }

    fn run(&self, run: &Run) -> Result<Findings, RunError> {
        let fewer = run.length(1, 2 * FEWER) as u32;
        let key = Key { fewer, ..Key::new(run, Algorithm::AngleEpFrag, AT_8_PERCENT) };
        let one = four::profile_of(&SPEC, key.fewer)?;
        let mut seconds = vec![four::scan(&SPEC, key)?.seconds()];
        run.progress.advance(1);
        for profile in [doubled::denser(&one, 2), doubled::cylinders(&one, 2, 1), doubled::surfaces(&one, 2)] {
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
}

fn scan_seconds(run: &Run, profile: Profile) -> Result<f64, RunError> {
    let how = four::filled(four::micro(&SPEC, profile, run.seed)?, Algorithm::AngleEpFrag, AT_8_PERCENT);
    let (stats, _) = four::run(&SPEC, &how.until_scanned(four::MOST_SECONDS), Cut::whole(UNIT))?;
    stats
        .background
        .done_at
        .map(headtime_disk::time::Time::as_secs_f64)
        .ok_or_else(|| failed(&SPEC, format!("a scan did not end within {} s", four::MOST_SECONDS)))
}
