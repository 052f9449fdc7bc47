//! S10: free bandwidth at every utilisation of the disk, from idle to always busy.
//!
//! Thereska, Schindler, Lumb, Bucy, Salmon and Ganger (CMU-PDL-03-107), section 4.6, figure 10:
//! each block is registered again as soon as it is read, so that the demand is constant. "The
//! amount of free bandwidth is lowest when the system is 30-60% utilized": there is little long
//! idle time left then, and little rotational latency yet.

use headtime_disk::Dur;
use headtime_plot::{Axis, Chart, Series, Style, XyChart};
use headtime_sim::background::{Job, Jobs, Nothing};
use headtime_sim::stats::Stats;
use headtime_sim::workload::{GroupSpec, MICRO_OUTSTANDING, freeblock_micro, freeblock_micro_open};

use super::background_run::{BackgroundRun, UNIT};
use crate::common::scan_run::free_mb_s;
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const S10: Experiment = Experiment { spec: &SPEC, steps: GAPS_MS.len() as u64 + 2, run };

static SPEC: Spec = Spec {
    id: "S10",
    title: "Free bandwidth by utilisation of the disk",
    source: "Thereska et al., Design and Implementation of a Freeblock Subsystem (CMU-PDL-03-107, 2003), section 4.6, \
            figure 10",
    drive: "cheetah36es",
    workload: "reads and writes 2:1 of 4 to 8 KB, even gaps between arrivals; at 100% two always outstanding; each \
            block of the disk is wanted again as soon as it has been read",
    claims: &[Claim {
        id: "S10",
        claim: "free bandwidth over disk utilisation 0 to 100%",
        paper: "most when idle, least at 30 to 60%",
        rule: "same shape, minimum in 25 to 65%",
        checks: &[
            Check { what: "utilisation with the least free bandwidth", unit: "%", test: Test::Between(25.0, 65.0) },
            Check { what: "loads with more free bandwidth than an idle disk", unit: "cases", test: Test::Never },
        ],
        quick: true,
        note: "Utilisation is the share of time in which requests wait or are served, measured without background \
               work.",
    }],
    length: Length::Minutes,
    alone: false,
};

/// Mean inter-arrival times in ms. A request takes about 8 ms, so these are utilisations of about 5
/// to 95%.
const GAPS_MS: [f64; 14] = [160.0, 80.0, 53.0, 40.0, 32.0, 27.0, 23.0, 20.0, 17.5, 16.0, 13.0, 11.0, 9.5, 8.5];

/// One load.
struct Point {
    utilised: f64,
    free_mb_s: f64,
    response_ms: f64,
    response_alone_ms: f64,
    idle_commands: f64,
    gap_commands: f64,
}

fn run(run: &Run) -> Result<Findings, RunError> {
    // No request arrives within the run.
    let mut loads: Vec<GroupSpec> = vec![GroupSpec {
        start: headtime_disk::Time::ZERO + Dur::from_secs(1_000_000),
        ..freeblock_micro_open(Dur::from_secs(1))
    }];
    loads.extend(GAPS_MS.iter().map(|ms| freeblock_micro_open(Dur::from_us((ms * 1_000.0) as u64))));
    loads.push(freeblock_micro(MICRO_OUTSTANDING));
    let points = loads
        .iter()
        .map(|load| {
            let point = measure(run, load)?;
            run.progress.advance(1);
            Ok(point)
        })
        .collect::<Result<Vec<Point>, RunError>>()?;
    let least = points.iter().min_by(|a, b| a.free_mb_s.total_cmp(&b.free_mb_s)).expect("there are loads");
    let more = points.iter().skip(1).filter(|p| p.free_mb_s >= points[0].free_mb_s).count();
    let mut f = Findings::default();
    f.figure("S10", &[least.utilised, more as f64]);
    f.tables.push(table(&points));
    f.charts.push(chart(&points));
    Ok(f)
}

fn measure(run: &Run, load: &GroupSpec) -> Result<Point, RunError> {
    let setup = BackgroundRun::new(&SPEC, run.seed)?.seconds(run.length(300, 60));
    let capacity = setup.target(&SPEC)?.capacity;
    let mut busy = Busy::default();
    let alone = setup.alone().run(&SPEC, load, &mut Nothing, &mut busy)?;
    let mut jobs = Jobs::new(vec![Job { again: true, ..Job::scan(capacity, UNIT) }]);
    let stats = setup.run(&SPEC, load, &mut jobs, &mut ())?;
    let report = stats.freeblock.clone().unwrap_or_default();
    let mean = |s: &Stats| s.responses().mean().map_or(0.0, |d| d.as_ms_f64());
    Ok(Point {
        utilised: 100.0 * busy.time.as_secs_f64() / alone.ended_at.as_secs_f64(),
        free_mb_s: free_mb_s(&stats, setup.profile.sector_bytes),
        response_ms: mean(&stats),
        response_alone_ms: mean(&alone),
        idle_commands: report.idle as f64,
        gap_commands: (report.commands + report.merged) as f64,
    })
}

/// The time in which requests are pending or in service.
#[derive(Default)]
struct Busy {
    time: Dur,
    until: headtime_disk::Time,
}

impl headtime_sim::observe::Observer for Busy {
    fn finished(&mut self, done: &headtime_sim::stats::Done) {
        // Requests finish in chronological order, so only the part after all earlier ones is new.
        self.time += done.done.saturating_since(done.due.max(self.until));
        self.until = self.until.max(done.done);
    }
}

fn table(points: &[Point]) -> Table {
    let row = |p: &Point| {
        [p.utilised, p.free_mb_s, p.response_ms, p.response_alone_ms, p.idle_commands, p.gap_commands]
            .map(Cell::from)
            .to_vec()
    };
    Table {
        name: "utilisation",
        columns: &[
            "utilised_percent",
            "free_mb_s",
            "response_ms",
            "response_alone_ms",
            "commands_in_idle_time",
            "commands_in_gaps",
        ],
        rows: points.iter().map(row).collect(),
    }
}

fn chart(points: &[Point]) -> Chart {
    Chart::Xy(XyChart {
        title: "Free bandwidth by utilisation, Cheetah 36ES".into(),
        subtitle:
            "Idle time brings most when there is little else to do, gaps when there always is; least comes in between."
                .into(),
        x: Axis::linear("time in which requests wait or are served, %"),
        y: Axis::from_zero("free bandwidth, MB/s"),
        series: vec![Series {
            name: "Angle-EP-Frag".into(),
            style: Style::Marked,
            points: points.iter().map(|p| (p.utilised, p.free_mb_s)).collect(),
        }],
    })
}
