//! S13: a drive with a write-back cache cannot be predicted, and the subsystem leaves it alone.
//!
//! Thereska et al. (CMU-PDL-03-107), section 4.8, figure 13: the drive reports a write when its cache has it, and moves its
//! arm to write it out when it sees fit. "If the mispredictions persist, the freeblock subsystem does not attempt to schedule
//! background tasks."

use headtime_sim::background::{Jobs, Nothing};
use headtime_sim::observe::Observer;
use headtime_sim::stats::{Done, Stats};
use headtime_sim::workload::{MICRO_OUTSTANDING, freeblock_micro};

use crate::beside::{Beside, UNIT};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Run, RunError, Spec, Table, Test};
use crate::filled::free_mb_s;
use crate::svg::{Axis, Chart, XyChart};

/// The experiment.
pub struct S13;

static SPEC: Spec = Spec {
    id: "S13",
    title: "Predictions for a drive with a write-back cache",
    source: "Thereska et al., Design and Implementation of a Freeblock Subsystem (CMU-PDL-03-107, 2003), section 4.8, figure 13",
    drive: "cheetah36es",
    workload: "reads and writes 2:1 of 4 to 8 KB, two always outstanding; one read of the whole disk in the background",
    claims: &[Claim {
        id: "S13",
        claim: "predictions with a write-back cache in the drive",
        paper: "deteriorate",
        rule: "under half within 150 us; the subsystem notices and stops filling",
        checks: &[
            Check { what: "requests predicted within 150 us", unit: "%", test: Test::Below(HALF) },
            Check {
                what: "times without write-back that it stopped, or with it that it did not",
                unit: "cases",
                test: Test::Never,
            },
        ],
        quick: true,
        note: "A request that no prediction was made for, because nobody knew where the head was, is not one that was predicted.",
    }],
    alone: false,
};

const HALF: f64 = 50.0;

impl Experiment for S13 {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn steps(&self) -> u64 {
        5
    }

    fn run(&self, run: &Run) -> Result<Findings, RunError> {
        let (alone_through, alone_back) = (alone_ms(run, false)?, alone_ms(run, true)?);
        let through = measure(run, false, false, alone_through)?;
        let unknown = measure(run, true, false, alone_back)?;
        let known = measure(run, true, true, alone_back)?;
        // What the scheduler is told of the cache must not matter: of the two the better predicted one counts.
        let best = unknown.close().max(known.close());
        let wrong =
            u32::from(through.times_shut > 0 || through.shut) + u32::from(!unknown.shut) + u32::from(!known.shut);
        let mut f = Findings::default();
        f.figure("S13", &[best, f64::from(wrong)]);
        let all =
            [("write-through", &through), ("write-back", &unknown), ("write-back, and the profile says so", &known)];
        f.tables.push(table(&all));
        let sets: Vec<(&str, &[f64])> = all.iter().map(|(name, m)| (*name, &m.watch.errors[..])).collect();
        f.charts.push(Chart::Xy(XyChart::cdf(
            "Prediction error by write policy, Cheetah 36ES",
            "Observed less predicted head time of foreground requests: near zero when every write goes to the media first.",
            Axis::range("error, ms", -15.0, 15.0),
            &sets,
        )));
        Ok(f)
    }
}

/// One run.
struct Measured {
    watch: Errors,
    times_shut: u64,
    shut: bool,
    free_mb_s: f64,
    response_ms: f64,
    alone_ms: f64,
}

impl Measured {
    /// Requests predicted within 150 us, percent.
    fn close(&self) -> f64 {
        let close = self.watch.errors.iter().filter(|e| e.abs() <= 0.15).count();
        100.0 * close as f64 / self.watch.requests.max(1) as f64
    }
}

/// Errors in ms of the requests that were predicted.
#[derive(Default)]
struct Errors {
    requests: u64,
    errors: Vec<f64>,
}

impl Observer for Errors {
    fn finished(&mut self, done: &Done) {
        self.requests += 1;
        self.errors.extend(done.prediction.map(|p| p.error_ns() as f64 / 1e6));
    }
}

/// What runs, and with which load.
fn setup(run: &Run, write_back: bool) -> Result<Beside, RunError> {
    let mut setup = Beside::new(&SPEC, run.seed)?.seconds(run.length(300, 60));
    setup.profile.electronics.cache.write_back = write_back;
    Ok(setup)
}

fn mean_ms(stats: &Stats) -> f64 {
    stats.responses().mean().map_or(0.0, |d| d.as_ms_f64())
}

/// Mean response without background work, of a scheduler that knows the drive.
fn alone_ms(run: &Run, write_back: bool) -> Result<f64, RunError> {
    let load = freeblock_micro(MICRO_OUTSTANDING);
    let stats = setup(run, write_back)?.alone().run(&SPEC, &load, &mut Nothing, &mut ())?;
    run.progress.advance(1);
    Ok(mean_ms(&stats))
}

fn measure(run: &Run, write_back: bool, known: bool, alone_ms: f64) -> Result<Measured, RunError> {
    let mut setup = setup(run, write_back)?;
    if write_back && !known {
        setup.belief = Some(self::setup(run, false)?.profile);
    }
    let load = freeblock_micro(MICRO_OUTSTANDING);
    let mut watch = Errors::default();
    let mut jobs = Jobs::scan(setup.target(&SPEC)?.capacity, UNIT);
    let stats = setup.run(&SPEC, &load, &mut jobs, &mut watch)?;
    run.progress.advance(1);
    let report = stats.freeblock.clone().unwrap_or_default();
    Ok(Measured {
        watch,
        times_shut: report.times_shut,
        shut: report.shut,
        free_mb_s: free_mb_s(&stats, setup.profile.sector_bytes),
        response_ms: mean_ms(&stats),
        alone_ms,
    })
}

fn table(all: &[(&str, &Measured)]) -> Table {
    let row = |(name, m): &(&str, &Measured)| {
        let figures = [
            m.close(),
            100.0 * m.watch.errors.len() as f64 / m.watch.requests.max(1) as f64,
            m.times_shut as f64,
            f64::from(u8::from(m.shut)),
            m.free_mb_s,
            m.response_ms,
            m.alone_ms,
        ];
        std::iter::once(Cell::from(*name)).chain(figures.map(Cell::from)).collect()
    };
    Table {
        name: "write_policies",
        columns: &[
            "drive",
            "within_150us_percent",
            "predicted_percent",
            "times_stopped",
            "stopped_at_the_end",
            "free_mb_s",
            "response_ms",
            "response_alone_ms",
        ],
        rows: all.iter().map(row).collect(),
    }
}
