//! Common parts of F2, F3, F4 and D4: runs of random requests, and the errors of predicted head
//! times.

use headtime_disk::{DriveNoise, Dur, Model, profile};
use headtime_plot::{Axis, Chart, Series, Style, XyChart};
use headtime_sched::{Order, PredictionStats, Surprise};
use headtime_sim::observe::Observer;
use headtime_sim::stats::Done;
use headtime_sim::workload::GroupSpec;

use super::load_run::{self, Choice, Setup};
use crate::experiment::{Cell, Run, RunError, Spec, Table, failed};

/// One run of random reads, two requests at the drive.
pub(crate) fn measure(
    spec: &Spec,
    run: &Run,
    drive: &'static str,
    load: GroupSpec,
    order: Order,
) -> Result<PredictionStats, RunError> {
    chosen(spec, run, drive, load, Choice::Outside(order))
}

/// The same on a drive that errs as measured.
pub(crate) fn erring(
    spec: &Spec,
    run: &Run,
    drive: &'static str,
    load: GroupSpec,
    order: Order,
) -> Result<(PredictionStats, Landings), RunError> {
    let setup = Setup { noise: DriveNoise::Measured, ..setup(run, drive, load, Choice::Outside(order)) };
    let profile = profile::builtin(drive).map_err(|e| failed(spec, e))?;
    let model = Model::new(&profile).map_err(|e| failed(spec, e))?;
    let mut landings = Landings { turn: model.mechanics.rotation.period(), ..Landings::default() };
    let m = load_run::watched(spec, &setup, &mut landings)?;
    run.progress.advance(1);
    Ok((m.prediction, landings))
}

/// Requests that the head is predicted to land inside. Such a request ends one revolution after the
/// head's arrival, so that an error of the move shows in full, whereas any other ends when its last
/// sector has passed. So their errors are counted apart, other than whole revolutions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Landings {
    turn: Dur,
    /// Such requests.
    pub all: u64,
    /// Of these, the ones off by more than 50 us, but not by a revolution.
    pub off: u64,
    /// Other requests off by more than 50 us, but not by a revolution.
    pub off_elsewhere: u64,
}

impl Observer for Landings {
    fn finished(&mut self, done: &Done) {
        let Some(p) = done.prediction.filter(|p| !p.cached) else { return };
        let turns = matches!(p.surprise, Surprise::ExtraTurn | Surprise::EarlyTurn);
        let off = u64::from(!turns && p.error_ns().unsigned_abs() > 50_000);
        // From the sector that it lands before, round to that sector: up to one sector less than a
        // revolution. No track has fewer than 200.
        if p.latency + p.transfer + Dur(self.turn.0 / 200) >= self.turn {
            self.all += 1;
            self.off += off;
        } else {
            self.off_elsewhere += off;
        }
    }
}

/// One run of random requests.
pub(crate) fn chosen(
    spec: &Spec,
    run: &Run,
    drive: &'static str,
    load: GroupSpec,
    choice: Choice,
) -> Result<PredictionStats, RunError> {
    let m = load_run::measure(spec, &setup(run, drive, load, choice))?;
    run.progress.advance(1);
    Ok(m.prediction)
}

fn setup(run: &Run, drive: &'static str, load: GroupSpec, choice: Choice) -> Setup {
    let requests = run.length(100_000, 20_000);
    Setup { drive, load, seed: run.seed, requests, choice, noise: DriveNoise::Profile }
}

/// Share of the samples, in percent.
pub(crate) fn percent(part: u64, of: u64) -> f64 {
    100.0 * part as f64 / of as f64
}

/// Rows of the errors' distribution.
pub(crate) fn table(runs: &[(&'static str, &PredictionStats)]) -> Table {
    let rows = runs.iter().flat_map(|(name, p)| {
        p.histogram().map(|(edge, n)| -> Vec<Cell> {
            vec![(*name).into(), (edge as f64 / 1e6).into(), percent(n, p.samples).into()]
        })
    });
    Table { name: "errors", columns: &["run", "observed_less_predicted_ms", "share_percent"], rows: rows.collect() }
}

/// A summary of the predictions of each run, one row each.
pub(crate) fn summary(runs: &[(&'static str, &PredictionStats)]) -> Table {
    let rows = runs.iter().map(|(name, p)| {
        let mut row: Vec<Cell> = vec![(*name).into(), (p.samples as f64).into()];
        row.extend(
            [p.within_50us, p.within_150us, p.extra_turn, p.early_turn, p.cache_hit, p.overlap, p.other]
                .map(|n| Cell::from(percent(n, p.samples))),
        );
        row
    });
    Table {
        name: "predictions",
        columns: &[
            "run",
            "samples",
            "within_50us_percent",
            "within_150us_percent",
            "extra_turn_percent",
            "early_turn_percent",
            "cache_hit_percent",
            "overlap_percent",
            "other_percent",
        ],
        rows: rows.collect(),
    }
}

/// The distribution of one run's errors, in the paper's form.
pub(crate) fn chart(title: &str, p: &PredictionStats) -> Chart {
    // Classes of 0.2 ms: narrower ones are invisible at this width.
    const CLASS: i64 = 200_000;
    let mut classes = std::collections::BTreeMap::new();
    for (edge, n) in p.histogram() {
        // Each class is centred on a multiple of its width, so that one of them is about zero.
        *classes.entry((edge + CLASS / 2).div_euclid(CLASS)).or_insert(0u64) += n;
    }
    let points = classes.into_iter().map(|(k, n)| ((k * CLASS) as f64 / 1e6, percent(n, p.samples))).collect();
    Chart::Xy(XyChart {
        title: title.into(),
        subtitle: format!(
            "Negative: quicker than predicted. Of {} requests, {:.2}% came within 50 us and {:.2}% within 150 us of \
             the prediction; {:.2}% took one turn more, {:.2}% one turn less.",
            p.samples,
            percent(p.within_50us, p.samples),
            percent(p.within_150us, p.samples),
            percent(p.extra_turn, p.samples),
            percent(p.early_turn, p.samples),
        ),
        x: Axis::range("observed less predicted head time, ms", -10.0, 10.0),
        y: Axis::log("share of requests, %"),
        series: vec![Series { name: "requests".into(), style: Style::Sticks, points }],
    })
}
