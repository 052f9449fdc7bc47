//! S15: sessions share free bandwidth by lottery, in proportion to their priorities.
//!
//! Thereska et al. (CMU-PDL-03-107), section 4.5.

use headtime_disk::Kind;
use headtime_sched::{Algorithm, FillConfig, TaskRange, TaskSpec};
use headtime_sim::background::{Job, Jobs};
use headtime_sim::workload::{MICRO_OUTSTANDING, freeblock_micro};

use super::background_run::{BackgroundRun, UNIT};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const S15: Experiment = Experiment { spec: &SPEC, steps: 2 * PRIORITIES.len() as u64, run };

static SPEC: Spec = Spec {
    id: "S15",
    title: "Two sessions of different priority",
    source: "Thereska et al., Design and Implementation of a Freeblock Subsystem (CMU-PDL-03-107, 2003), section 4.5",
    drive: "cheetah36es",
    workload: "reads and writes 2:1 of 4 to 8 KB, two always outstanding; two sessions want every other MiB of the \
            disk each, and each block again as soon as they have it",
    claims: &[Claim {
        id: "S15",
        claim: "two sessions, priorities 3 to 1",
        paper: "proportional",
        rule: "2.6 to 3.4 to 1 in blocks delivered",
        checks: &[Check {
            what: "blocks of the one to blocks of the other",
            unit: "to 1",
            test: Test::Between(2.6, 3.4),
        }],
        quick: true,
        note: "Each session wants every other MiB of the disk, and wants each block again as soon as it has it. Blocks \
               are counted over all of the run. The table of the full form has other priorities and headtime's own \
               planner, too.",
    }],
    length: Length::Minutes,
    alone: false,
};

/// Sectors per stripe: 1 MiB.
const STRIPE: u64 = 2_048;

fn run(run: &Run) -> Result<Findings, RunError> {
    let mut f = Findings::default();
    let mut rows = vec![];
    for algorithm in [Algorithm::AngleEpFrag, Algorithm::Headtime] {
        for priorities in PRIORITIES {
            let claimed = (algorithm, priorities) == (Algorithm::AngleEpFrag, (3, 1));
            if run.quick && !claimed {
                run.progress.advance(1);
                continue;
            }
            let (one, other) = shares(run, algorithm, priorities)?;
            run.progress.advance(1);
            let ratio = one / other;
            if claimed {
                f.figure("S15", &[ratio]);
            }
            let name = Cell::from(algorithm.name());
            let figures = [f64::from(priorities.0), f64::from(priorities.1), one, other, ratio];
            rows.push(std::iter::once(name).chain(figures.map(Cell::from)).collect());
        }
    }
    let columns = &["algorithm", "priority_a", "priority_b", "blocks_a", "blocks_b", "a_to_b"];
    f.tables.push(Table { name: "shares", columns, rows });
    Ok(f)
}

const PRIORITIES: [(u32, u32); 3] = [(1, 1), (3, 1), (9, 1)];

/// Blocks of two sessions with these priorities.
fn shares(run: &Run, algorithm: Algorithm, priorities: (u32, u32)) -> Result<(f64, f64), RunError> {
    let mut setup = BackgroundRun::new(&SPEC, run.seed)?.seconds(run.length(600, 90));
    setup.fill = Some(FillConfig { seed: run.seed, ..FillConfig::new(algorithm) });
    let capacity = setup.target(&SPEC)?.capacity;
    let job = |name: &str, priority, first: u64| Job {
        name: name.into(),
        priority,
        tasks: vec![TaskSpec { kind: Kind::Read, ranges: stripes(capacity, first), blksize: UNIT, min_pickup: UNIT }],
        again: true,
    };
    let mut jobs = Jobs::new(vec![job("a", priorities.0, 0), job("b", priorities.1, 1)]);
    let stats = setup.run(&SPEC, &freeblock_micro(MICRO_OUTSTANDING), &mut jobs, &mut ())?;
    let blocks = |name: &str| {
        let found = stats.background.by_session.iter().find(|s| s.name == name);
        found.map_or(0.0, |s| s.sectors as f64 / f64::from(UNIT))
    };
    Ok((blocks("a"), blocks("b")))
}

/// Every other stripe, from the one with this number on.
fn stripes(capacity: u64, first: u64) -> Vec<TaskRange> {
    let from = (first..capacity.div_ceil(STRIPE)).step_by(2).map(|s| s * STRIPE);
    from.map(|lbn| TaskRange { lbn, count: STRIPE.min(capacity - lbn) }).collect()
}
