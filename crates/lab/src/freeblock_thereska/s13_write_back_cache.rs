//! S13: a drive with a write-back cache is unpredictable, and the subsystem does not fill its gaps
//! while the cache is on.
//!
//! Thereska et al. (CMU-PDL-03-107), section 4.8, figure 13: the drive acknowledges a write when it
//! is in its cache, and destages it at a time of its own choice. "If the mispredictions persist,
//! the freeblock subsystem does not attempt to schedule background tasks." Here the cache is on at
//! the beginning and is switched off for the last third. The scheduler is not notified of the
//! switch; in one run its profile says from the beginning that the cache is off.

use headtime_disk::{Command, Completion, Dur, Fault, Time};
use headtime_plot::{Axis, Chart, XyChart};
use headtime_sim::background::{Background, Jobs, Nothing};
use headtime_sim::observe::Observer;
use headtime_sim::stats::{Done, Stats};
use headtime_sim::workload::{MICRO_OUTSTANDING, freeblock_micro};

use super::background_run::{BackgroundRun, UNIT};
use crate::common::scan_run::{free_mb_s, p99_ms};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const S13: Experiment = Experiment { spec: &SPEC, steps: 5, run };

static SPEC: Spec = Spec {
    id: "S13",
    title: "Predictions for a drive with a write-back cache",
    source: "Thereska et al., Design and Implementation of a Freeblock Subsystem (CMU-PDL-03-107, 2003), section 4.8, \
            figure 13",
    drive: "cheetah36es",
    workload: "reads and writes 2:1 of 4 to 8 KB, two always outstanding; one read of the whole disk in the background",
    claims: &[Claim {
        id: "S13",
        claim: "predictions with a write-back cache in the drive",
        paper: "deteriorate",
        rule: "under half of the requests within 150 us while it is on (the share predicted, and right of those, in \
               the table); filling stops within 5 s, starts again within 10 s once it is off; foreground loss under 1%",
        checks: &[
            Check { what: "requests predicted within 150 us", unit: "%", test: Test::Below(50.0) },
            Check { what: "until filling stops", unit: "s", test: Test::AtMost(5.0) },
            Check { what: "until it starts again once the cache is off", unit: "s", test: Test::AtMost(10.0) },
            Check { what: "fewer requests than without background work", unit: "%", test: Test::Below(1.0) },
            Check {
                what: "times that filling stopped without a cache, or that a cache was reported that is not there",
                unit: "cases",
                test: Test::Never,
            },
        ],
        quick: true,
        note: "The worse of two runs: the profile says at the beginning that the cache is on, and that it is off. A \
               request without a prediction, because the position of the head was unknown, was not predicted. Of those \
               that were, about 60% are right (table).",
    }],
    length: Length::Minutes,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let through = measure(run, false, false)?;
    let alone_through = alone(run, false)?;
    let hidden = measure(run, true, false)?;
    let known = measure(run, true, true)?;
    let alone_back = alone(run, true)?;
    let worse = |figure: fn(&Measured) -> f64| figure(&hidden).max(figure(&known));
    let loss = |m: &Measured, alone: &Stats| 100.0 * (1.0 - m.stats.requests as f64 / alone.requests as f64);
    let shut = through.stats.freeblock.as_ref().map_or(0, |f| f.times_shut);
    let wrong = shut + u64::from(through.stats.drive_write_cache.is_some());
    let mut f = Findings::default();
    f.figure(
        "S13",
        &[
            worse(|m| m.watch.close()),
            worse(|m| m.stops()),
            worse(|m| m.starts()),
            loss(&hidden, &alone_back).max(loss(&known, &alone_back)).max(loss(&through, &alone_through)),
            wrong as f64,
        ],
    );
    let all = [
        ("off from the beginning", &through, &alone_through),
        ("on, and said to be off", &hidden, &alone_back),
        ("on, as said", &known, &alone_back),
    ];
    let row = |(name, m, alone): &(&str, &Measured, &Stats)| row(name, m, alone, loss(m, alone));
    f.tables.push(Table { name: "write_policies", columns: COLUMNS, rows: all.iter().map(row).collect() });
    let sets: Vec<(&str, &[f64])> = all.iter().map(|(name, m, _)| (*name, &m.watch.errors[..])).collect();
    f.charts.push(Chart::Xy(XyChart::cdf(
        "Prediction error by write policy, Cheetah 36ES",
        "Observed less predicted head time of foreground requests while the cache is on: near zero when every \
         write goes to the media first.",
        Axis::range("error, ms", -15.0, 15.0),
        &sets,
    )));
    Ok(f)
}

/// One run.
struct Measured {
    watch: Watch,
    stats: Stats,
    free_mb_s: f64,
}

impl Measured {
    /// Seconds from the beginning to the last free sector while the cache was on.
    fn stops(&self) -> f64 {
        self.watch.last_free.as_secs_f64()
    }

    /// Seconds from the switch to the first free sector after it; NaN without any.
    fn starts(&self) -> f64 {
        self.watch.first_free.map_or(f64::NAN, |at| at.since(self.watch.off_at).as_secs_f64())
    }
}

/// Observations before and after the switch.
struct Watch {
    off_at: Time,
    /// Requests before it, and the errors in ms of predicted ones.
    requests: u64,
    errors: Vec<f64>,
    /// The last completion of free work before, and the first after.
    last_free: Time,
    first_free: Option<Time>,
}

impl Watch {
    /// Requests predicted within 150 us, percent of all.
    fn close(&self) -> f64 {
        100.0 * self.right() as f64 / self.requests.max(1) as f64
    }

    fn right(&self) -> usize {
        self.errors.iter().filter(|e| e.abs() <= 0.15).count()
    }
}

impl Observer for Watch {
    fn completed(&mut self, _: &Command, free: u32, completion: &Completion) {
        match free > 0 {
            true if completion.at < self.off_at => self.last_free = completion.at,
            true => self.first_free = self.first_free.or(Some(completion.at)),
            false => {}
        }
    }

    fn finished(&mut self, done: &Done) {
        if done.done < self.off_at {
            self.requests += 1;
            self.errors.extend(done.prediction.map(|p| p.error_ns() as f64 / 1e6));
        }
    }
}

/// Duration of a run in seconds, and the time of the switch.
fn times(run: &Run) -> (u64, Time) {
    let seconds = run.length(300, 60);
    (seconds, Time::ZERO + Dur::from_secs(seconds * 2 / 3))
}

fn setup(run: &Run, write_back: bool) -> Result<BackgroundRun, RunError> {
    let (seconds, off_at) = times(run);
    let mut setup = BackgroundRun::new(&SPEC, run.seed)?.seconds(seconds);
    setup.profile.electronics.cache.write_back = write_back;
    setup.faults = vec![Fault::WriteCache { at: off_at, on: false }];
    Ok(setup)
}

/// Without background work, by a scheduler whose profile is true at the beginning.
fn alone(run: &Run, write_back: bool) -> Result<Stats, RunError> {
    go(run, &setup(run, write_back)?.alone(), &mut Nothing, &mut ())
}

fn go<O: Observer>(
    run: &Run,
    b: &BackgroundRun,
    background: &mut dyn Background,
    watch: &mut O,
) -> Result<Stats, RunError> {
    let stats = b.run(&SPEC, &freeblock_micro(MICRO_OUTSTANDING), background, watch)?;
    run.progress.advance(1);
    Ok(stats)
}

fn measure(run: &Run, write_back: bool, known: bool) -> Result<Measured, RunError> {
    let mut setup = setup(run, write_back)?;
    if write_back && !known {
        setup.belief = Some(self::setup(run, false)?.profile);
    }
    let (_, off_at) = times(run);
    let mut watch = Watch { off_at, requests: 0, errors: Vec::new(), last_free: Time::ZERO, first_free: None };
    let mut jobs = Jobs::scan(setup.target(&SPEC)?.capacity, UNIT);
    let stats = go(run, &setup, &mut jobs, &mut watch)?;
    let free_mb_s = free_mb_s(&stats, setup.profile.sector_bytes);
    Ok(Measured { watch, stats, free_mb_s })
}

const COLUMNS: &[&str] = &[
    "write_cache",
    "predicted_percent",
    "right_of_those_percent",
    "seconds_until_filling_stops",
    "seconds_until_it_starts_again",
    "times_stopped",
    "free_mb_s",
    "response_ms",
    "response_p99_ms",
    "response_p99_without_ms",
    "loss_percent",
];

fn row(name: &str, m: &Measured, alone: &Stats, loss: f64) -> Vec<Cell> {
    let predicted = m.watch.errors.len();
    let figures = [
        100.0 * predicted as f64 / m.watch.requests.max(1) as f64,
        100.0 * m.watch.right() as f64 / predicted.max(1) as f64,
        m.stops(),
        m.starts(),
        m.stats.freeblock.as_ref().map_or(0, |f| f.times_shut) as f64,
        m.free_mb_s,
        m.stats.responses().mean().map_or(0.0, |d| d.as_ms_f64()),
        p99_ms(&m.stats),
        p99_ms(alone),
        loss,
    ];
    std::iter::once(Cell::from(name)).chain(figures.map(Cell::from)).collect()
}

#[cfg(test)]
mod tests {
    use headtime_sched::FillConfig;

    use super::*;
    use crate::experiment::Unwatched;

    #[test]
    fn the_claim_does_not_hold_when_filling_goes_on() {
        let run = Run { seed: 1, quick: true, progress: &Unwatched };
        let stops = |stops: bool| {
            let mut b = setup(&run, true).unwrap();
            b.belief = Some(setup(&run, false).unwrap().profile);
            b.fill = b.fill.map(|fill| FillConfig { stops, ..fill });
            let (seconds, off_at) = times(&run);
            let mut watch = Watch { off_at, requests: 0, errors: Vec::new(), last_free: Time::ZERO, first_free: None };
            let mut jobs = Jobs::scan(b.target(&SPEC).unwrap().capacity, UNIT);
            go(&run, &b, &mut jobs, &mut watch).unwrap();
            (watch.last_free.as_secs_f64(), seconds as f64)
        };
        let ((stopped, _), (went_on, seconds)) = (stops(true), stops(false));
        println!("filling stops after {stopped:.1} s; without the mechanism {went_on:.1} s of {seconds}");
        assert!(stopped <= 5.0 && went_on > 5.0, "{stopped} {went_on}");
    }
}
