//! B4: how soon BFQ+ reaches full throughput when many readers begin at once.
//!
//! Valente (2014), section 7.2.1, the short benchmark.

use headtime_sim::workload::suite::files::Load;

use super::beside;
use super::paper::{SHORT_RAMP, SHORT_RATE};
use crate::common::policy_run::{DRIVE_3, PolicyRun, Runs, STATISTICS, compared, named};
use crate::experiment::{Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const B4: Experiment = Experiment { spec: &SPEC, steps: 3, run };

static SPEC: Spec = Spec {
    id: "B4",
    title: "Full throughput soon after the start",
    source: "Valente, New version of BFQ, benchmark suite and experimental results (2014), section 7.2.1",
    drive: DRIVE_3,
    workload: "ten greedy readers in order that begin at once, 15 seconds",
    claims: &[Claim {
        id: "B4",
        claim: "when BFQ+ reaches full throughput",
        paper: "1 to 2 s",
        rule: "at most 2 s",
        checks: &[Check {
            what: "end of the first of two seconds with 95% of the throughput from the fifth second on",
            unit: "s",
            test: Test::AtMost(2.0),
        }],
        quick: true,
        note: "",
    }],
    length: Length::Seconds,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let of = |policy: &str| {
        let mut rates = Vec::new();
        let full = Runs::of(run, |seed| {
            let suite = PolicyRun::new(DRIVE_3, named(policy), SECONDS as u64, seed).load(&SPEC, Load::Readers10Seq)?;
            rates.push(suite.rate(0, SECONDS) / 1e6);
            let full = suite.rate(5, SECONDS);
            let is_full = |s: usize| suite.second(s) as f64 >= 0.95 * full;
            // The end of the first of two consecutive seconds at full throughput.
            let first = (0..SECONDS - 1).find(|&s| is_full(s) && is_full(s + 1));
            Ok(first.map_or(SECONDS, |s| s + 1) as f64)
        })?;
        Ok::<_, RunError>((full, Runs { values: rates }))
    };
    let mut f = Findings::default();
    let (mut seconds, mut rates) = (Vec::new(), Vec::new());
    for policy in compared() {
        let (full, rate) = of(policy.name())?;
        if policy.name() == "bfq+" {
            f.figure("B4", &[full.mean()]);
        }
        seconds.push(full.row(&["10r-seq", policy.name()]));
        rates.push(rate.row(&["10r-seq", policy.name()]));
    }
    let about = "The end of the first of two seconds with 95% of the later throughput, mean of the runs.";
    f.charts.push(beside::chart(&SHORT_RAMP, about, &beside::means(&seconds)));
    f.charts.push(beside::chart(&SHORT_RATE, "Mean of the runs.", &beside::means(&rates)));
    f.tables.push(Table { name: "seconds", columns: STATISTICS, rows: seconds });
    f.tables.push(Table { name: "throughput", columns: STATISTICS, rows: rates });
    Ok(f)
}

const SECONDS: usize = 15;

#[cfg(test)]
mod tests {
    use super::super::beside::tests::bars;
    use super::*;
    use crate::experiment::{Cell, Unwatched};

    #[test]
    fn the_charts_have_the_means_of_the_tables() {
        let f = run(&Run { seed: 1, quick: true, progress: &Unwatched }).unwrap();
        assert_eq!((f.charts.len(), f.tables.len()), (2, 2));
        for (chart, table) in f.charts.iter().zip(&f.tables) {
            let bars = bars(chart);
            assert_eq!((bars.len(), table.rows.len()), (3, 3));
            for (bar, row) in bars.iter().zip(&table.rows) {
                let [load, policy, _, mean, ..] = &row[..] else { panic!("{row:?}") };
                assert_eq!((&Cell::from(bar.0.as_str()), &Cell::from(bar.1.as_str())), (load, policy));
                assert_eq!(&Cell::from(bar.2), mean, "{}, {row:?}", table.name);
            }
        }
    }
}
