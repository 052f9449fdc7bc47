//! S16: a million random calls, with faults, and continuous checks.
//!
//! The calls are those of Thereska et al. (CMU-PDL-03-107), section 2.1.

use headtime_disk::profile::{self, Prefetch};
use headtime_sched::{Algorithm, FillConfig, Order, Policy};
use headtime_sim::storm::{Storm, Tally};

use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test, failed};

/// The experiment.
pub(crate) const S16: Experiment = Experiment { spec: &SPEC, steps: PARTS.len() as u64, run };

static SPEC: Spec = Spec {
    id: "S16",
    title: "A million random calls",
    source: "Thereska et al., Design and Implementation of a Freeblock Subsystem (CMU-PDL-03-107, 2003), section 2.1",
    drive: "cheetah36es",
    workload: "reads, writes and flushes, and all freeblock calls, in random order on the first 10 MB of the disk; the \
            drive has unreadable and slow sectors, others that go bad, and hangs; for half of the calls its cache is \
            not known to the scheduler, and it writes back",
    claims: &[Claim {
        id: "S16",
        claim: "open, read, write, abort, promote, suspend, resume, close under random use, 1,000,000 calls",
        paper: "-",
        rule: "every wanted block delivered exactly once or aborted; nothing leaks",
        checks: &[
            Check {
                what: "blocks that came twice or never, data that grew old, and other faults",
                unit: "cases",
                test: Test::Never,
            },
            Check { what: "wanted sectors that are not accounted for", unit: "sectors", test: Test::Never },
            Check { what: "bytes, requests, commands and sessions left over", unit: "", test: Test::Never },
            Check { what: "kinds of ends that did not occur", unit: "cases", test: Test::Never },
        ],
        quick: true,
        note: "Blocks end in other ways, too: in an error when they are unreadable, and superseded by newer data. \
               Quick runs make a tenth of the calls.",
    }],
    length: Length::Minutes,
    alone: false,
};

const AREA: u64 = 20_000;

/// The algorithm, and whether the scheduler models the drive's cache.
const PARTS: [(Algorithm, bool); 4] = [
    (Algorithm::AngleEpFrag, true),
    (Algorithm::Headtime, true),
    (Algorithm::AngleEpFrag, false),
    (Algorithm::Headtime, false),
];

fn run(run: &Run) -> Result<Findings, RunError> {
    let truth = profile::builtin("cheetah36es").map_err(|e| failed(&SPEC, e))?;
    let mut cached = truth.clone();
    cached.electronics.cache.write_back = true;
    let mut simple = truth.clone();
    simple.electronics.cache.segments = 0;
    simple.electronics.cache.prefetch = Prefetch::None;
    let mut tallies = vec![];
    for (algorithm, known) in PARTS {
        let fill = FillConfig { seed: run.seed, ..FillConfig::new(algorithm) };
        let storm = Storm {
            profile: if known { &truth } else { &cached },
            belief: if known { &truth } else { &simple },
            fill,
            admit: Policy::None,
            promises: None,
            owners: 5,
            capacity: 12,
            order: Order::Sptf,
            area: AREA,
            calls: run.length(250_000, 25_000),
            faults: true,
            seed: run.seed,
        };
        tallies.push(storm.run().map_err(|e| failed(&SPEC, e))?);
        run.progress.advance(1);
    }
    let sum = |of: fn(&Tally) -> u64| tallies.iter().map(of).sum::<u64>() as f64;
    let left = |t: &Tally| t.left_over as u64 + t.bytes.1.saturating_sub(t.bytes.0) as u64;
    let ends: [fn(&Tally) -> u64; 9] = [
        |t| t.delivered,
        |t| t.written,
        |t| t.superseded,
        |t| t.unreadable,
        |t| t.aborted,
        |t| t.merged,
        |t| t.alone,
        |t| t.idle,
        |t| t.failed,
    ];
    let missing = ends.iter().filter(|of| sum(**of) == 0.0).count();
    let mut f = Findings::default();
    f.figure("S16", &[sum(|t| t.wrong), sum(Tally::unaccounted), sum(left), missing as f64]);
    if let Some(complaint) = tallies.iter().flat_map(|t| &t.complaints).next() {
        f.notes.push(("S16", format!("Seed {}: {complaint}.", run.seed)));
    }
    f.tables.push(table(&tallies));
    Ok(f)
}

fn table(tallies: &[Tally]) -> Table {
    let row = |((algorithm, known), t): (&(Algorithm, bool), &Tally)| {
        let figures = [
            t.calls,
            t.refused,
            t.commands,
            t.finished,
            t.failed,
            t.wanted,
            t.delivered,
            t.written,
            t.superseded,
            t.unreadable,
            t.aborted,
            t.merged,
            t.alone,
            t.idle,
            t.wrong,
        ];
        let names = [Cell::from(algorithm.name()), Cell::from(if *known { "known" } else { "not known" })];
        names.into_iter().chain(figures.map(|n| Cell::from(n as f64))).collect()
    };
    Table {
        name: "calls",
        columns: &[
            "algorithm",
            "cache",
            "calls",
            "refused",
            "commands",
            "requests",
            "failed_requests",
            "wanted_sectors",
            "delivered_sectors",
            "written_sectors",
            "superseded_sectors",
            "unreadable_sectors",
            "aborted_sectors",
            "merged",
            "in_gaps",
            "in_idle_time",
            "wrong",
        ],
        rows: PARTS.iter().zip(tallies).map(row).collect(),
    }
}
