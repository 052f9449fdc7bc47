//! D14: optional streams keep their quality under any load, whatever the load under which X was
//! measured.
//!
//! Condition 3 of Reuther and Pohlack (2003) is tested with random sets of streams: optional ones
//! of two request sizes and several periods, reading, writing or both, and mandatory ones. Of eight
//! streams the admitted ones run with none to a hundred best-effort tasks. X is measured with 2, 8,
//! 32 and 100 pending requests, in turn. Requests of streams with exhausted reservations are
//! skipped.
//!
//! headtime gives a stream more than its reservation if its requests take longer than X predicts.
//! To exclude that as the cause of the result, a quarter as many further sets have only their
//! reservations.
//!
//! A quarter as many further random sets have the paper's reservations, from one X for all
//! requests, measured with a hundred pending. If these kept the guarantee as well, the test would
//! show nothing.

use headtime_disk::Dur;
use headtime_disk::profile::Profile;
use headtime_sched::streams::{Disk, Exhausted, Ledger, Quality, Stream};
use headtime_sim::workload::variates::{Share, Variates};
use headtime_sim::workload::{PatternSpec, StreamSpec, das};

use crate::common::guarantee_check::{self, GuaranteeCheck};
use crate::common::stream_run::{BestEffort, StreamRun, drive, known, measured, one_x};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test, failed};

/// The experiment.
pub(crate) const D14: Experiment = Experiment { spec: &SPEC, steps: 2_000, run };

static SPEC: Spec = Spec {
    id: "D14",
    title: "Quality of optional streams under any load",
    source: "Reuther, Pohlack, Rotational-Position-Aware Real-Time Disk Scheduling Using a Dynamic Active Subset \
             (2003), condition 3",
    drive: "ultrastar36z15, barracuda36es2, atlas10k3 and cheetah36es",
    workload: "500 random admitted sets on each (quick: 6) of streams of 8 and 64 KiB that read, write or do both, two \
               minutes each (quick: 40 s), beside 0 to 100 best-effort tasks; X measured with 2, 8, 32 and 100 waiting",
    claims: &[Claim {
        id: "D14",
        claim: "qualities kept whatever the load",
        paper: "each at least as asked",
        rule: "below what was asked by more than 0.5 points, beyond chance at 99%: at most 1% of them, and none by \
               more than 5 points; no mandatory request late; by reservations alone at most 1%, too; by these with \
               one X of a hundred waiting, 5% or more",
        checks: &[
            guarantee_check::CHECKS[0],
            Check {
                what: "optional streams more than 5 points below, beyond chance at 99%",
                unit: "streams",
                test: Test::Never,
            },
            guarantee_check::CHECKS[1],
            Check {
                what: "the first by reservations alone, beside 100 tasks",
                unit: "% of them",
                test: Test::AtMost(1.0),
            },
            Check {
                what: "the first by one X for all requests, measured with 100 waiting, beside 100 tasks, as the paper \
                       has it",
                unit: "% of them",
                test: Test::AtLeast(5.0),
            },
        ],
        quick: true,
        note: "As the paper has it, a reservation is all that a stream has. headtime gives it more where its requests \
               take longer than X says, so that it keeps most of what one X promises, too.",
    }],
    length: Length::Minutes,
    alone: false,
};

const DRIVES: [&str; 4] = ["ultrastar36z15", "barracuda36es2", "atlas10k3", "cheetah36es"];
/// Pending requests during the measurement of X, and best-effort tasks next to streams, of sets in
/// turn.
const WAITING: [u32; 4] = [2, 8, 32, MAX_PENDING];
const TASKS: [u32; 6] = [0, 1, 4, 16, 40, MAX_PENDING];
const MAX_PENDING: u32 = 100;
/// Request sizes in bytes.
const SIZES: [u64; 2] = [8 << 10, 64 << 10];
/// Number of bins of a family merged into one.
const MERGED_BINS: u32 = 2;
/// Periods of a set, ms: those of one row.
const PERIODS: [&[u64]; 4] = [&[500], &[250, 500, 1_000], &[200, 300, 700], &[500, 501]];
/// Streams tried per set.
const TRIED_STREAMS: usize = 8;

fn run(run: &Run) -> Result<Findings, RunError> {
    let sets = run.length(500, 6);
    let samples = (run.length(100_000, 10_000), run.seed);
    let (mut kept, mut alone, mut flat) = (GuaranteeCheck::none(), GuaranteeCheck::none(), GuaranteeCheck::none());
    let mut rows = Vec::new();
    for (at, name) in DRIVES.into_iter().enumerate() {
        let plain = drive(&SPEC, name)?;
        let measured = |waiting: u32| -> Result<(Profile, Disk), RunError> {
            let profile = measured(&SPEC, &plain, &SIZES, waiting, MERGED_BINS, samples)?;
            let disk = known(&SPEC, &profile)?;
            Ok((profile, disk))
        };
        let disks = WAITING.map(measured).into_iter().collect::<Result<Vec<_>, _>>()?;
        // The paper's reservations, and those of a family measured under the same load.
        let (hundred, family) = &disks[WAITING.len() - 1];
        let one_x = one_x(&SPEC, hundred, MAX_PENDING)?;
        for set in 0..sets {
            let seed = run.seed.wrapping_mul(1_000_003).wrapping_add(set * 4 + at as u64);
            let mut rng = Variates::new(run.seed, (1 << 53) + set * 4 + at as u64);
            let (profile, disk) = &disks[(set % 4) as usize];
            // A few sets cover all numbers of tasks, many all pairs of both.
            let tasks = TASKS[((if sets < 24 { set } else { set / 4 }) % 6) as usize];
            let own = Set { profile, disk, tasks, seed, length: run.length(120, 40), compensates: true };
            rows.push(own.row(name, WAITING[(set % 4) as usize], &mut rng, &mut kept)?);
            // One X gets as many sets as each of the others.
            if set % 4 == 0 {
                for (disk, tally) in [(&one_x, &mut flat), (family, &mut alone)] {
                    let reserved = Set { disk, tasks: MAX_PENDING, compensates: false, ..own };
                    reserved.row(name, MAX_PENDING, &mut rng.clone(), tally)?;
                }
            }
            run.progress.advance(500 * (set + 1) / sets - 500 * set / sets);
        }
    }
    let mut f = Findings::default();
    f.figure("D14", &[kept.percent(), kept.far as f64, kept.missed as f64, alone.percent(), flat.percent()]);
    let words = format!("{}; by reservations alone: {}; with one X: {}", kept.words(), alone.words(), flat.words());
    f.notes.push(("D14", words));
    f.tables.push(Table { name: "sets", columns: COLUMNS, rows });
    Ok(f)
}

/// The conditions of a set of streams.
#[derive(Clone, Copy)]
struct Set<'a> {
    profile: &'a Profile,
    disk: &'a Disk,
    tasks: u32,
    seed: u64,
    length: u64,
    compensates: bool,
}

impl Set<'_> {
    fn row(
        &self,
        name: &'static str,
        waiting: u32,
        rng: &mut Variates,
        tally: &mut GuaranteeCheck,
    ) -> Result<Vec<Cell>, RunError> {
        let (streams, expected_ppm) = admitted(self.disk, rng)?;
        let mut group = das::best_effort(self.tasks.max(1));
        group.pattern.reads = Share::new(rng.below(3) as u32, 2).unwrap_or(Share::NONE);
        if self.tasks == 0 {
            // One request per second is a negligible load.
            group.arrivals = headtime_sim::workload::Arrivals::Closed {
                tasks: 1,
                think: headtime_sim::workload::Think::Exponential(Dur::from_secs(1)),
            };
        }
        let bench = StreamRun {
            best_effort: BestEffort::Tasks(group),
            length: Dur::from_secs(self.length),
            compensates: self.compensates,
            seed: self.seed,
            ..StreamRun::new(self.profile, self.disk, streams, self.tasks)
        };
        let stats = bench.run(&SPEC, &mut ())?;
        let (below, least) = tally.count(&stats);
        let figures = [
            f64::from(waiting),
            f64::from(self.tasks),
            stats.streams.len() as f64,
            expected_ppm as f64 / 1e4,
            least,
            below as f64,
            stats.overdue_commands as f64,
        ];
        Ok([Cell::from(name)].into_iter().chain(figures.map(Cell::from)).collect())
    }
}

const COLUMNS: &[&str] = &[
    "drive",
    "waiting_for_x",
    "best_effort_tasks",
    "streams",
    "expected_load_percent",
    "least_margin_points",
    "below_beyond_chance",
    "overdue",
];

/// The admitted streams of those tried, and their expected share of the drive's time.
fn admitted(disk: &Disk, rng: &mut Variates) -> Result<(Vec<StreamSpec>, u64), RunError> {
    let periods = PERIODS[rng.below(PERIODS.len() as u64) as usize];
    let mut ledger = Ledger::new(disk.clone()).under(Exhausted::Skip);
    let mut specs = Vec::new();
    while specs.is_empty() {
        for _ in 0..TRIED_STREAMS {
            let ms = periods[rng.below(periods.len() as u64) as usize];
            let mandatory = rng.below(4) == 0;
            let ppm = if mandatory { 1_000_000 } else { 500_000 + rng.below(499_000) as u32 };
            let bytes = SIZES[rng.below(2) as usize];
            let most = if mandatory { ms / 150 } else { ms / 12 };
            let requests = 1 + rng.below(most.max(1)) as u32;
            let quality = Quality::from_ppm(ppm).map_err(|e| failed(&SPEC, e))?;
            let mut spec = StreamSpec::new(format!("stream {}", specs.len() + 1), requests, Dur::from_ms(ms), quality);
            spec.pattern = PatternSpec::random_reads(bytes);
            spec.pattern.reads = Share::new(rng.below(3) as u32, 2).unwrap_or(Share::NONE);
            let stream = Stream::new(requests, spec.period, quality, (bytes / 512) as u32);
            let stream = stream.map_err(|e| failed(&SPEC, e))?.only(spec.kinds());
            if ledger.try_add(stream).is_ok() {
                specs.push(spec);
            }
        }
    }
    Ok((specs, ledger.admitted().load.expected_ppm))
}
