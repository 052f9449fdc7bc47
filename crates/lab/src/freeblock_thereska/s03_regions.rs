//! S3: regions have no benefit for one task, and a large one for a hundred thousand.
//!
//! Thereska et al. (CMU-PDL-03-107), section 4.3, figure 4(b). The runs, and the meaning of
//! efficiency: [`super::memory_tradeoffs`].

use super::memory_tradeoffs::{self, Choice, Outcome, REGIONS};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const S3: Experiment = Experiment { spec: &SPEC, steps: 3 * REGIONS.len() as u64, run };

static SPEC: Spec = Spec {
    id: "S3",
    title: "Regions with one task and with 100,000",
    source: "Thereska et al., Design and Implementation of a Freeblock Subsystem (CMU-PDL-03-107), section 4.3, figure \
            4(b)",
    drive: "cheetah36es",
    workload: "4 or 8 KiB at random, 2 reads to 1 write, 2 always outstanding; a scan as one task and as 100,000",
    claims: &[
        Claim {
            id: "S3a",
            claim: "regions with one task",
            paper: "no effect",
            rule: "holds: over all numbers of regions at most 5% from 8 regions",
            checks: &[Check { what: "largest difference from 8 regions", unit: "%", test: Test::AtMost(5.0) }],
            quick: true,
            note: "Quick runs scan a sixteenth of the cylinders, on the same stroke, for 60 s instead of all of them \
                   for 1,200.",
        },
        Claim {
            id: "S3b",
            claim: "regions with 100,000 tasks",
            paper: "strong effect; 4 regions lose 15% of 8",
            rule: "one region costs at least 2 times the search of 8 for the same free bandwidth (within 2%)",
            checks: &[
                Check { what: "cost of a search, one region over 8", unit: "times", test: Test::AtLeast(2.0) },
                Check { what: "free bandwidth of one region, difference from 8", unit: "%", test: Test::AtMost(2.0) },
            ],
            quick: true,
            note: "The paper's measure, free bandwidth, shows nothing here: regions save its search from looking \
                   through lists of tasks whose blocks do not pass in time, but here tasks are found by their block \
                   ranges, and a track costs a search as much with 100,000 tasks as with one. The cost counts each \
                   cell entered, each track examined and each query of the task layer. It hardly falls either, from \
                   144 to 143: where a search looks, the head can stay for so long that on average 4.3 of 8 regions \
                   pass, and as long as 30% of the disk is wanted, 4.5 of a cell's 8 have something. Late in a scan \
                   (the last eighth) it is 5%. Where a thousandth of the disk is wanted, in 10,000 single blocks, and \
                   32 requests wait, so that gaps are short, one region costs 92 and eight 85 (table), with 0.43 and \
                   0.47 MB/s: a search with one region ends with its budget before it has found as much. In quick \
                   runs, on a sixteenth of the cylinders, it is 49 and 28, for the same MB/s.",
        },
    ],
    length: Length::Minutes,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let by = |many: bool| -> Result<Vec<Outcome>, RunError> {
        REGIONS.iter().map(|r| memory_tradeoffs::outcome(&SPEC, run, Choice::regions(*r, many))).collect()
    };
    let (one, many) = (by(false)?, by(true)?);
    let eight = REGIONS.iter().position(|r| *r == 8).expect("it is one of them");
    let apart = |o: &Outcome| 100.0 * (o.mb_s / one[eight].mb_s - 1.0).abs();
    let mut f = Findings::default();
    f.figure("S3a", &[one.iter().map(apart).fold(0.0, f64::max)]);
    let lost = 100.0 * (1.0 - many[0].mb_s / many[eight].mb_s);
    f.figure("S3b", &[many[0].cost / many[eight].cost, lost.abs()]);
    let scattered = |r: &u32| memory_tradeoffs::scattered(&SPEC, run, *r).map(|(mb_s, cost)| (*r, mb_s, cost));
    let scattered = REGIONS.iter().map(scattered).collect::<Result<Vec<_>, _>>()?;
    f.tables.push(Table {
        name: "little_wanted_and_short_gaps",
        columns: &["regions", "mb_s", "search_cost"],
        rows: scattered.iter().map(|&(r, mb_s, cost)| [f64::from(r), mb_s, cost].map(Cell::from).to_vec()).collect(),
    });
    let rows = REGIONS.iter().zip(one.iter().zip(&many));
    f.tables.push(Table {
        name: "efficiency",
        columns: &["regions", "one_task_mb_s", "100000_tasks_mb_s", "one_task_search_cost", "100000_tasks_search_cost"],
        rows: rows
            .map(|(r, (a, b))| [f64::from(*r), a.mb_s, b.mb_s, a.cost, b.cost].map(Cell::from).to_vec())
            .collect(),
    });
    Ok(f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Unwatched;

    const QUICK: Run = Run { seed: 1, quick: true, progress: &Unwatched };

    /// On a sixteenth of the cylinders, where a search does not end with its budget. With one
    /// region everywhere the cost is the same. With two requests waiting instead of 32 it
    /// is 1.2 times, and with a tenth more wanted 1.1 times: as S3b finds.
    #[test]
    fn regions_pay_where_little_is_wanted_and_gaps_are_short() {
        let [one, eight] = [1, 8].map(|regions| memory_tradeoffs::scattered(&SPEC, &QUICK, regions).unwrap());
        println!("MB/s and cost of a search: {one:?} with one region, {eight:?} with eight");
        assert!(one.1 > 1.5 * eight.1, "{} with one region, {} with eight", one.1, eight.1);
        assert!((one.0 / eight.0 - 1.0).abs() < 0.05, "{} and {} MB/s", one.0, eight.0);
    }

    /// What the check of S3b finds is not made by regions: with one everywhere, the cost is as
    /// high.
    #[test]
    fn with_a_third_of_the_disk_wanted_a_search_costs_the_same_with_one_region() {
        let cost = |regions| memory_tradeoffs::outcome(&SPEC, &QUICK, Choice::regions(regions, true)).unwrap().cost;
        let (one, eight) = (cost(1), cost(8));
        println!("{one} with one region, {eight} with eight");
        assert!((one / eight - 1.0).abs() < 0.02, "{one} {eight}");
    }
}
