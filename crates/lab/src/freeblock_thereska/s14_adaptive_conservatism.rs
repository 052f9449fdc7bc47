//! S14: adaptive conservatism, on drives whose seeks differ from their profile.
//!
//! Thereska et al. (CMU-PDL-03-107), section 4.8: "the scheduler uses dynamic conservative factors
//! when appropriate to increase the prediction accuracy when it detects that mispredictions have
//! been made", and keeps 90 to 99%.
//!
//! What the scheduler learns is a scale common to all seeks, and a correction for each class of
//! distances. A drive that is 5% slower needs just that. The claim is judged on a drive whose
//! errors are constant for each distance and surface, but independent of each other, so that
//! neither helps much.

use headtime_disk::profile::Profile;
use headtime_disk::{Dur, Time};
use headtime_plot::{Axis, Chart, Series, Style, XyChart};
use headtime_sched::{Conservatism, FillConfig};
use headtime_sim::background::{Jobs, Nothing};
use headtime_sim::observe::Observer;
use headtime_sim::stats::Done;
use headtime_sim::workload::{MICRO_OUTSTANDING, freeblock_micro};

use super::background_run::{BackgroundRun, UNIT};
use crate::common::scan_run::{free_mb_s, p99_ms};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const S14: Experiment = Experiment { spec: &SPEC, steps: 5 * DRIVES.len() as u64, run };

static SPEC: Spec = Spec {
    id: "S14",
    title: "Adaptive conservatism on drives that differ from their profile",
    source: "Thereska et al., Design and Implementation of a Freeblock Subsystem (CMU-PDL-03-107, 2003), section 4.8",
    drive: "cheetah36es",
    workload: "reads and writes 2:1 of 4 to 8 KB, two always outstanding; one read of the whole disk in the background",
    claims: &[Claim {
        id: "S14",
        claim: "adaptive conservatism on a drive whose seeks err by distance and surface, without order",
        paper: "keeps 90 to 99%",
        rule: "at least 95% predicted within 150 us after 10 s, where it is under 80% if nothing is learned; \
               foreground loss under 2%",
        checks: &[
            Check { what: "within 150 us, nothing learned or filled", unit: "%", test: Test::Below(80.0) },
            Check { what: "requests from 10 s on predicted within 150 us", unit: "%", test: Test::AtLeast(95.0) },
            Check { what: "foreground loss", unit: "%", test: Test::Below(2.0) },
        ],
        quick: true,
        note: "The loss is that of requests per second from 10 s on, against the better of two schedulers that fill \
               nothing: one that believes the same wrong profile, and one that knows its table. It is 8 to 9%, and 76 \
               to 77% are predicted; 79% if nothing is learned or filled. Whether a request comes a turn late or early \
               is all that shows a move's error, and an error below the latency does not show at all. So under 80% \
               needs errors of 1.5 ms (sd), a quarter of a turn. There are some 320 of them: distances with the same \
               whole root share one, on each of two surfaces. Ten seconds have 1,200 requests, four for each error, \
               and most show nothing: 95% cannot be learned in that time. In the ten minutes of the run there are 225 \
               for each, so a learner that kept an error for each root and surface could learn more than headtime's, \
               which keeps one for each class of distances and a scale of all; no drive is known that errs so. The \
               errors do not drift, as the rule would have it: the claim fails without that. The loss has a reason of \
               its own: where a sector is thought to be just missed, a fast move may catch it after all and save a \
               turn, which a filled gap forgoes (with a margin of 1.5 ms, and errors of 0.6 ms, 4.2% early turns fall \
               to none, and the loss is 3.1%). With a constant margin of 0.3 ms the gate shuts again and again, so \
               that the loss is under 1% and nearly nothing is filled. The table has drives with smaller errors: with \
               0.6 ms the loss is 3% instead of 15% with a constant margin. 5% slower, 99.7% are predicted and nothing \
               is lost (95.9% unlearned, and 6% lost with the constant margin); with the errors of a measured drive \
               (docs/validation.md) the foreground loses 0.2 to 0.6%.",
    }],
    length: Length::Minutes,
    alone: false,
};

/// How a drive differs from its profile.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Differs {
    /// All seeks take this much longer, in percent.
    Slower(u64),
    /// The errors of a measured drive.
    Measured,
    /// Constant errors of moves with this standard deviation, in us; none exceeds two of these.
    Without(u64),
}

/// The drives, that of the claim last.
const DRIVES: [(&str, Differs); 4] = [
    ("5% slower", Differs::Slower(5)),
    ("errs as measured", Differs::Measured),
    ("errs by 0.6 ms, without order", Differs::Without(600)),
    ("errs by 1.5 ms, without order", Differs::Without(1_500)),
];
/// Learning time, which is left out.
const LEARNING_TIME: Dur = Dur::from_secs(10);
/// Interval of the chart.
const PERIOD: Dur = Dur::from_secs(2);

fn run(run: &Run) -> Result<Findings, RunError> {
    let mut f = Findings::default();
    let mut rows = Vec::new();
    for (name, differs) in DRIVES {
        let all = schedulers(run, differs)?;
        let [adaptive, _, same, knows, _] = &all;
        if differs == DRIVES[DRIVES.len() - 1].1 {
            f.figure("S14", &[same.close(), adaptive.close(), loss(adaptive, [same, knows])]);
        }
        rows.extend(SCHEDULERS.iter().zip(&all).map(|(scheduler, m)| row(name, scheduler, m)));
        f.charts.push(chart(name, &all));
    }
    f.tables.push(Table {
        name: "beliefs",
        columns: &[
            "drive",
            "scheduler",
            "requests_per_second",
            "response_p99_ms",
            "within_150us_percent",
            "free_mb_s",
            "times_stopped",
        ],
        rows,
    });
    Ok(f)
}

/// The schedulers of each drive.
const SCHEDULERS: [&str; 5] = [
    "wrong profile, adaptive",
    "wrong profile, 0.3 ms",
    "wrong profile, nothing filled",
    "right profile, nothing filled",
    "right profile, adaptive",
];

/// Runs each of [`SCHEDULERS`].
fn schedulers(run: &Run, differs: Differs) -> Result<[Measured; 5], RunError> {
    let (adaptive, fixed) = (Conservatism::Adaptive, Conservatism::Fixed(Dur::from_us(300)));
    Ok([
        measure(run, differs, Some(adaptive), false)?,
        measure(run, differs, Some(fixed), false)?,
        measure(run, differs, None, false)?,
        measure(run, differs, None, true)?,
        measure(run, differs, Some(adaptive), true)?,
    ])
}

/// The foreground's loss against the better of these, in percent.
fn loss(filled: &Measured, without: [&Measured; 2]) -> f64 {
    let best = without.map(Measured::rate).into_iter().fold(0.0, f64::max);
    100.0 * (best - filled.rate()) / best
}

/// One run.
#[derive(Default)]
struct Measured {
    /// Requests, and those predicted within 150 us, by period.
    periods: Vec<(u64, u64)>,
    /// 99th percentile of the responses of the whole run.
    p99_ms: f64,
    free_mb_s: f64,
    times_shut: u64,
}

impl Observer for Measured {
    fn finished(&mut self, done: &Done) {
        let period = (done.done.since(Time::ZERO).0 / PERIOD.0) as usize;
        if self.periods.len() <= period {
            self.periods.resize(period + 1, (0, 0));
        }
        let close = done.prediction.is_some_and(|p| p.error_ns().abs() <= 150_000);
        self.periods[period].0 += 1;
        self.periods[period].1 += u64::from(close);
    }
}

impl Measured {
    fn late(&self) -> impl Iterator<Item = &(u64, u64)> {
        self.periods.iter().skip((LEARNING_TIME.0 / PERIOD.0) as usize)
    }

    /// Requests per second after learning.
    fn rate(&self) -> f64 {
        self.late().map(|p| p.0).sum::<u64>() as f64 / (self.late().count().max(1) as f64 * PERIOD.as_secs_f64())
    }

    /// Share of these predicted within 150 us, in percent.
    fn close(&self) -> f64 {
        let (all, close) = self.late().fold((0, 0), |s, p| (s.0 + p.0, s.1 + p.1));
        100.0 * close as f64 / all.max(1) as f64
    }
}

/// The drive that differs from this profile.
fn truth(said: &Profile, differs: Differs) -> Profile {
    let mut p = said.clone();
    match differs {
        Differs::Slower(percent) => {
            let longer = |d: Dur| Dur(d.0 * (100 + percent) / 100);
            p.mechanics.seek.iter_mut().for_each(|s| s.1 = longer(s.1));
            if let Some(writes) = &mut p.mechanics.write_seek {
                writes.iter_mut().for_each(|s| s.1 = longer(s.1));
            }
        }
        Differs::Measured => p.noise = p.noise.measured(),
        Differs::Without(us) => {
            (p.noise.move_error_sd, p.noise.move_error_max) = (Dur::from_us(us), Dur::from_us(2 * us));
        }
    }
    p
}

fn measure(run: &Run, differs: Differs, fill: Option<Conservatism>, knows: bool) -> Result<Measured, RunError> {
    let mut setup = BackgroundRun::new(&SPEC, run.seed)?.seconds(run.length(600, 120));
    let said = setup.profile.clone();
    setup.profile = truth(&said, differs);
    setup.belief = (!knows).then_some(said);
    setup.fill = setup.fill.and_then(|f| fill.map(|conservatism| FillConfig { conservatism, ..f }));
    let mut found = Measured::default();
    let load = freeblock_micro(MICRO_OUTSTANDING);
    let mut jobs = Jobs::scan(setup.target(&SPEC)?.capacity, UNIT);
    let stats = match setup.fill {
        Some(_) => setup.run(&SPEC, &load, &mut jobs, &mut found)?,
        None => setup.run(&SPEC, &load, &mut Nothing, &mut found)?,
    };
    run.progress.advance(1);
    found.p99_ms = p99_ms(&stats);
    found.free_mb_s = free_mb_s(&stats, setup.profile.sector_bytes);
    found.times_shut = stats.freeblock.map_or(0, |r| r.times_shut);
    Ok(found)
}

fn row(drive: &str, scheduler: &str, m: &Measured) -> Vec<Cell> {
    let figures = [m.rate(), m.p99_ms, m.close(), m.free_mb_s, m.times_shut as f64];
    [drive, scheduler].map(Cell::from).into_iter().chain(figures.map(Cell::from)).collect()
}

fn chart(drive: &str, all: &[Measured]) -> Chart {
    let line = |m: &Measured| {
        let share = |p: &(u64, u64)| 100.0 * p.1 as f64 / p.0.max(1) as f64;
        let whole = m.periods.len().saturating_sub(1);
        m.periods[..whole]
            .iter()
            .enumerate()
            .map(|(i, p)| (i as f64 * PERIOD.as_secs_f64(), share(p)))
            .take(60)
            .collect()
    };
    let series = |(name, m): (&&str, &Measured)| Series { name: (*name).into(), style: Style::Line, points: line(m) };
    Chart::Xy(XyChart {
        title: format!("Predictions, Cheetah 36ES, {drive}"),
        subtitle:
            "With adaptive conservatism a slower drive is learned in a few seconds; errors without order are not."
                .into(),
        x: Axis::linear("virtual time, s"),
        y: Axis::linear("requests predicted within 150 us, %"),
        series: SCHEDULERS.iter().zip(all).map(series).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Unwatched;

    /// On the drive that is 5% slower, where all that differs can be learned.
    #[test]
    fn nothing_is_learned_with_a_constant_margin() {
        let run = Run { seed: 1, quick: true, progress: &Unwatched };
        let [adaptive, fixed, same, knows, _] = schedulers(&run, Differs::Slower(5)).unwrap();
        let [adaptive, fixed] = [adaptive, fixed].map(|m| (m.close(), loss(&m, [&same, &knows])));
        println!("within 150 us and loss, percent: {adaptive:?}; with a constant margin {fixed:?}");
        let holds = |(close, loss): (f64, f64)| close >= 95.0 && loss < 2.0;
        assert!(holds(adaptive) && !holds(fixed), "{adaptive:?} {fixed:?}");
    }

    /// On drives that err as the claim's does. With errors of 0.6 ms a good part is learned after
    /// all, by class of distance. With the claim's 1.5 ms nothing helps: only learning keeps
    /// filling, at a loss, and with a constant margin the gate shuts again and again.
    #[test]
    fn a_constant_margin_loses_more_where_errors_have_no_order_or_fills_nothing() {
        let run = Run { seed: 1, quick: true, progress: &Unwatched };
        let of = |us| {
            let [adaptive, fixed, same, knows, _] = schedulers(&run, Differs::Without(us)).unwrap();
            let both = [adaptive, fixed].map(|m| (m.close(), loss(&m, [&same, &knows]), m.free_mb_s, m.times_shut));
            println!("{us} us: within 150 us and loss, percent, MB/s, times shut: {both:?}");
            both
        };
        let [adaptive, fixed] = of(600);
        assert!(fixed.1 > adaptive.1 + 8.0 && fixed.0 < adaptive.0 - 4.0, "{adaptive:?} {fixed:?}");
        let [adaptive, fixed] = of(1_500);
        assert!(fixed.2 < adaptive.2 / 5.0 && fixed.3 > adaptive.3, "{adaptive:?} {fixed:?}");
    }

    /// With the errors of a measured drive, filling costs the foreground nothing.
    #[test]
    fn a_drive_that_errs_as_measured_loses_nothing() {
        let run = Run { seed: 1, quick: true, progress: &Unwatched };
        let [adaptive, fixed, same, knows, _] = schedulers(&run, Differs::Measured).unwrap();
        let [adaptive, fixed] = [adaptive, fixed].map(|m| loss(&m, [&same, &knows]));
        println!("loss, percent: {adaptive:.2}; with a constant margin {fixed:.2}");
        assert!(adaptive < 1.0, "{adaptive}");
    }
}
