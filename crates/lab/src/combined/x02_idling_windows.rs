//! X2: the gain of background work from BFQ's idling windows.
//!
//! Not from a paper: a scheduler that deliberately idles (Valente 2014 section 3.4) combined with
//! one that fills the idle time.

use headtime_disk::{Dur, Kind, Time};
use headtime_sched::{Algorithm, FillConfig, IdleConfig};
use headtime_sim::workload::suite::Actor;
use headtime_sim::workload::suite::files::{FILES, FileActor};
use headtime_sim::workload::suite::video::Player;

use crate::common::policy_run::{PolicyRun, Runs, STATISTICS, named};
use crate::common::scan_run::free_mb_s;
use crate::experiment::{Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// A drive with a command queue: without one there are no gaps to fill.
const DRIVE: &str = "hitachi-7k1000c";

/// Sector size, bytes.
const SECTOR: u32 = 512;

/// The experiment.
pub(crate) const X2: Experiment = Experiment { spec: &SPEC, steps: 3, run };

static SPEC: Spec = Spec {
    id: "X2",
    title: "Free work while BFQ+ idles for an application",
    source: "Valente, New version of BFQ, benchmark suite and experimental results (2014), section 3.4, and headtime's \
            own",
    drive: DRIVE,
    workload: "five greedy readers and five players of a clip of 1 MB/s, under BFQ+; a scan of the whole disk, again \
            and again, in gaps and idle time",
    claims: &[Claim {
        id: "X2",
        claim: "free bandwidth taken from BFQ's idling windows",
        paper: "-",
        rule: "foreground loss under 1% against no filling at all, free bandwidth up",
        checks: &[
            Check { what: "foreground throughput lost to filling gaps and windows", unit: "%", test: Test::Below(1.0) },
            Check { what: "the same to filling gaps alone", unit: "%", test: Test::Below(1.0) },
            Check { what: "free bandwidth is not up with the windows", unit: "cases", test: Test::Never },
        ],
        quick: false,
        note: "Free is what was read without the foreground: blocks that the readers read anyway are not counted. Most \
               gaps are gone with the reads that the drive answers from its cache, which have none: it reads ahead for \
               each player while BFQ waits for that.",
    }],
    length: Length::Minutes,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let seconds = run.length(120, 40) as usize;
    let windows = |leave_windows| {
        let idle = Some(IdleConfig { leave_windows, ..IdleConfig::default() });
        Some(FillConfig { idle, ..FillConfig::new(Algorithm::Headtime) })
    };
    let mut rows = Vec::new();
    let mut of = |name: &str, fill: Option<FillConfig>| {
        let mut free = Vec::new();
        let foreground = Runs::of(run, |seed| {
            let bench = PolicyRun { fill: fill.clone(), ..PolicyRun::new(DRIVE, named("bfq+"), seconds as u64, seed) };
            let (suite, stats) = bench.run(&SPEC, |disk| {
                let reader = |i| Box::new(FileActor::new(disk, Kind::Read, false, (i, FILES), seed)) as Box<dyn Actor>;
                let begun = Time::ZERO + Dur::from_secs(1);
                let player = |i| Box::new(Player::new(disk, 1_000_000, 600, begun, (i, FILES))) as Box<dyn Actor>;
                (0..5).map(reader).chain((5..10).map(player)).collect()
            })?;
            free.push(free_mb_s(&stats, SECTOR));
            Ok(suite.rate(20, seconds) / 1e6)
        })?;
        let free = Runs { values: free };
        rows.push(foreground.row(&["foreground", name]));
        rows.push(free.row(&["free", name]));
        Ok::<(f64, f64), RunError>((foreground.mean(), free.mean()))
    };
    let alone = of("no filling", None)?;
    let without = of("gaps", windows(true))?;
    let with = of("gaps and windows", windows(false))?;
    let lost = |run: (f64, f64)| 100.0 * (1.0 - run.0 / alone.0);
    let mut f = Findings::default();
    f.figure("X2", &[lost(with), lost(without), f64::from(with.1 <= without.1)]);
    f.tables.push(Table { name: "mb_per_second", columns: STATISTICS, rows });
    Ok(f)
}
