//! S2: the benefit of memory: pick-up size, and regions per cylinder.
//!
//! Thereska et al. (CMU-PDL-03-107), section 4.3, figure 4. The runs, and the meaning of efficiency
//! and memory: [`super::memory_tradeoffs`].

use headtime_plot::{Axis, Chart, Series, Style, XyChart};

use super::memory_tradeoffs::{self, Choice, Outcome, REGIONS};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const S2: Experiment = Experiment { spec: &SPEC, steps: (SIZES.len() + 2 * REGIONS.len()) as u64, run };

static SPEC: Spec = Spec {
    id: "S2",
    title: "Memory and efficiency, by pick-up size and by regions",
    source: "Thereska et al., Design and Implementation of a Freeblock Subsystem (CMU-PDL-03-107), section 4.3, figure \
            4",
    drive: "cheetah36es",
    workload: "4 or 8 KiB at random, 2 reads to 1 write, 2 always outstanding; a scan as one task and as 100,000",
    claims: &[Claim {
        id: "S2",
        claim: "memory and efficiency over MIN_PICKUP_SIZE; over regions per cylinder",
        paper: "figure 4: both fall with the pick-up size; both rise with the regions, 4 lose 15% of 8",
        rule: "same shapes (a larger pick-up size never brings more or takes more memory, more regions never take less \
               memory or lose over 2% with 100,000 tasks); 4 regions lose at most 20% of 8",
        checks: &[
            Check { what: "with 100,000 tasks, lost by 4 regions against 8", unit: "%", test: Test::AtMost(20.0) },
            Check {
                what: "pick-up sizes that take no less memory than the one before",
                unit: "cases",
                test: Test::Never,
            },
            Check { what: "pick-up sizes that bring no less than the one before", unit: "cases", test: Test::Never },
            Check {
                what: "numbers of regions that take no more memory than the one before",
                unit: "cases",
                test: Test::Never,
            },
            Check {
                what: "gained by half as many regions with 100,000 tasks, at most",
                unit: "%",
                test: Test::AtMost(2.0),
            },
        ],
        quick: true,
        note: "With 100,000 tasks fewer regions lose next to nothing here, less than the paper's 15%: see S3b. Quick \
               runs scan a sixteenth of the cylinders, on the same stroke, for 60 s instead of all of them for 1,200.",
    }],
    length: Length::Minutes,
    alone: false,
};

/// Pick-up sizes, KB. Below 32 the block has the same size.
const SIZES: [u32; 6] = [16, 32, 64, 128, 256, 512];

fn run(run: &Run) -> Result<Findings, RunError> {
    let by = |choices: Vec<Choice>| -> Result<Vec<Outcome>, RunError> {
        choices.into_iter().map(|c| memory_tradeoffs::outcome(&SPEC, run, c)).collect()
    };
    let sizes = by(SIZES.map(|kb| Choice { min_pickup: kb * 2, ..Choice::regions(8, false) }).to_vec())?;
    let one = by(REGIONS.map(|r| Choice::regions(r, false)).to_vec())?;
    let many = by(REGIONS.map(|r| Choice::regions(r, true)).to_vec())?;
    let of = |regions: u32| many[REGIONS.iter().position(|r| *r == regions).expect("it is one of them")].mb_s;
    let mut f = Findings::default();
    f.figure(
        "S2",
        &[
            100.0 * (1.0 - of(4) / of(8)),
            no_smaller(&sizes),
            no_slower(&sizes),
            no_larger(&one) + no_larger(&many),
            many.windows(2).map(|w| 100.0 * (w[0].mb_s / w[1].mb_s - 1.0)).fold(0.0, f64::max),
        ],
    );
    let kb = |i: usize| f64::from(SIZES[i]);
    let regions = |i: usize| f64::from(REGIONS[i]);
    f.tables.push(table("by_pickup_size", &COLUMNS_A, &[("one", &sizes)], kb));
    f.tables.push(table("by_regions", &COLUMNS_B, &[("one", &one), ("100,000", &many)], regions));
    f.charts.extend(charts("MIN_PICKUP_SIZE", "KB", &[("one task", &sizes)], kb));
    f.charts.extend(charts("regions a cylinder", "regions", &[("one task", &one), ("100,000 tasks", &many)], regions));
    Ok(f)
}

const COLUMNS_A: [&str; 5] = ["tasks", "min_pickup_kb", "memory_mb", "free_mb_s", "read_percent"];
const COLUMNS_B: [&str; 5] = ["tasks", "regions", "memory_mb", "free_mb_s", "read_percent"];

/// Pick-up sizes that take no less memory than the one before.
fn no_smaller(sizes: &[Outcome]) -> f64 {
    pairs(sizes, |a, b| b.bytes >= a.bytes)
}

/// Pick-up sizes that bring no less than the one before. A rate of zero cannot decrease.
fn no_slower(sizes: &[Outcome]) -> f64 {
    pairs(sizes, |a, b| b.mb_s > a.mb_s || (b.mb_s == a.mb_s && a.mb_s > 0.0))
}

/// Numbers of regions that take no more memory than the one before.
fn no_larger(regions: &[Outcome]) -> f64 {
    pairs(regions, |a, b| b.bytes <= a.bytes)
}

/// Number of neighbours with a property.
fn pairs(outcomes: &[Outcome], of: impl Fn(&Outcome, &Outcome) -> bool) -> f64 {
    outcomes.windows(2).filter(|w| of(&w[0], &w[1])).count() as f64
}

type Line<'a> = (&'a str, &'a Vec<Outcome>);

fn table(name: &'static str, columns: &'static [&'static str], lines: &[Line], x: impl Fn(usize) -> f64) -> Table {
    let mut rows = Vec::new();
    for (tasks, outcomes) in lines {
        for (i, o) in outcomes.iter().enumerate() {
            let figures = [x(i), o.bytes / 1e6, o.mb_s, o.percent].map(Cell::from);
            rows.push([Cell::from(*tasks)].into_iter().chain(figures).collect());
        }
    }
    Table { name, columns, rows }
}

fn charts(over: &str, unit: &str, lines: &[Line], x: impl Fn(usize) -> f64) -> Vec<Chart> {
    let chart = |title: String, axis: &str, y: fn(&Outcome) -> f64| {
        let series = lines.iter().map(|(name, outcomes)| Series {
            name: (*name).into(),
            style: Style::Marked,
            points: outcomes.iter().enumerate().map(|(i, o)| (x(i), y(o))).collect(),
        });
        Chart::Xy(XyChart {
            title,
            subtitle: String::new(),
            x: Axis::log(unit),
            y: Axis::from_zero(axis),
            series: series.collect(),
        })
    };
    vec![
        chart(format!("Free bandwidth by {over}"), "MB/s", |o| o.mb_s),
        chart(format!("Memory by {over}"), "MB", |o| o.bytes / 1e6),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Unwatched;

    fn quick(choices: &[Choice]) -> Vec<Outcome> {
        let run = Run { seed: 1, quick: true, progress: &Unwatched };
        choices.iter().map(|c| memory_tradeoffs::outcome(&SPEC, &run, *c).unwrap()).collect()
    }

    /// Units are picked up whole: a larger one needs fewer bits, and fits into fewer gaps. With the
    /// size ignored, neither falls.
    #[test]
    fn memory_and_free_bandwidth_fall_with_the_pick_up_size() {
        let by = |kb: [u32; 3]| quick(&kb.map(|kb| Choice { min_pickup: kb * 2, ..Choice::regions(8, false) }));
        let sizes = by([32, 128, 512]);
        println!("{sizes:?}");
        assert_eq!((no_smaller(&sizes), no_slower(&sizes)), (0.0, 0.0));
        let ignored = by([32, 32, 32]);
        assert_eq!((no_smaller(&ignored), no_slower(&ignored)), (2.0, 2.0));
    }

    /// Each region is a bit. With one region everywhere, whatever is asked for, the check fails.
    #[test]
    fn more_regions_take_more_memory() {
        let by = |regions: [u32; 2]| quick(&regions.map(|regions| Choice::regions(regions, true)));
        let regions = by([1, 8]);
        println!("{regions:?}");
        assert_eq!(no_larger(&regions), 0.0);
        assert_eq!(no_larger(&by([1, 1])), 1.0);
    }

    #[test]
    fn neighbours_are_counted_in_their_order() {
        let o = |mb_s| Outcome { mb_s, bytes: 0.0, percent: 0.0, cost: 0.0 };
        let all = [o(3.0), o(2.0), o(2.5), o(0.0), o(0.0)];
        assert_eq!(pairs(&all, |a, b| b.mb_s > a.mb_s), 1.0);
        assert_eq!(pairs(&all, |a, b| b.mb_s == a.mb_s), 1.0);
    }
}
