//! Common parts of F2, F3, F4 and D4: runs of random requests, and the errors of predicted head
//! times.

use headtime_plot::{Axis, Chart, Series, Style, XyChart};
use headtime_sched::{Order, PredictionStats};
use headtime_sim::workload::GroupSpec;

use super::load_run::{self, Choice, Setup};
use crate::experiment::{Cell, Run, RunError, Spec, Table};

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

/// One run of random requests.
pub(crate) fn chosen(
    spec: &Spec,
    run: &Run,
    drive: &'static str,
    load: GroupSpec,
    choice: Choice,
) -> Result<PredictionStats, RunError> {
    let setup = Setup { drive, load, seed: run.seed, requests: run.length(100_000, 20_000), choice };
    let m = load_run::measure(spec, &setup)?;
    run.progress.advance(1);
    Ok(m.prediction)
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
