//! B17: what today's kernel has beyond the report, each with a case that shows its gain.
//!
//! Not in the report: `bfq_bfqq_softrt_next_start`, `bfq_handle_burst` and `bfq_setup_cooperator`
//! of the kernel's BFQ.

use headtime_disk::{Dur, Kind, Time};
use headtime_sched::{BfqRules, Bursts, Policy, SoftRealTime};
use headtime_sim::workload::suite::files::{FILE, FILES, Load};
use headtime_sim::workload::suite::startup::{Program, Starts};
use headtime_sim::workload::suite::video::Player;
use headtime_sim::workload::suite::{Actor, Disk, Piece};

use crate::common::policy_run::{DRIVE_1, DRIVE_3, PolicyRun, Runs, STATISTICS};
use crate::experiment::{Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const B17: Experiment = Experiment { spec: &SPEC, steps: 6, run };

static SPEC: Spec = Spec {
    id: "B17",
    title: "Soft real-time applications, bursts and merged queues",
    source: "the kernel's BFQ; not in the report",
    drive: "maxtor-6l080l0 and maxtor-stm332061",
    workload: "a clip of 30 s and 1 MB/s beside 10r-seq; 16 services that start together beside 5 readers in order; a \
               file that four processes read together beside two readers in order",
    claims: &[Claim {
        id: "B17",
        claim: "each switch of bfq+ on, one at a time",
        paper: "not in it",
        rule: "at most 50% of the dropped frames (soft-rt), at least 110% of the MB/s (bursts), at least 150% of the \
               shared file's bytes (merging)",
        checks: &[
            Check { what: "soft-rt: dropped frames, on over off", unit: "%", test: Test::AtMost(50.0) },
            Check { what: "bursts: MB/s while services start, on over off", unit: "%", test: Test::AtLeast(110.0) },
            Check { what: "merging: bytes of the shared file, on over off", unit: "%", test: Test::AtLeast(150.0) },
        ],
        quick: true,
        note: "",
    }],
    length: Length::Minutes,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let plus = BfqRules::plus;
    let mut rows = Vec::new();
    let mut compare = |name: &str, drive, on: BfqRules, measure: &dyn Fn(&PolicyRun) -> Result<f64, RunError>| {
        let mut of = |rules: BfqRules, which: &str| {
            let policy = Policy::Bfq(rules);
            let runs = Runs::of(run, |seed| measure(&PolicyRun::new(drive, policy.clone(), SECONDS, seed)))?;
            rows.push(runs.row(&[name, which]));
            Ok::<f64, RunError>(runs.mean())
        };
        let (off, on) = (of(plus(), "off")?, of(on, "on")?);
        Ok::<f64, RunError>(100.0 * on / off)
    };
    let soft = BfqRules { soft_real_time: Some(SoftRealTime::default()), ..plus() };
    let dropped = compare("soft-rt: dropped frames", DRIVE_1, soft, &dropped_frames)?;
    let bursts = BfqRules { bursts: Some(Bursts::default()), ..plus() };
    let started = compare("bursts: MB/s while services start", DRIVE_3, bursts, &rate_while_services_start)?;
    let merging = BfqRules { merging: true, ..plus() };
    let shared = compare("merging: MB of the shared file", DRIVE_3, merging, &megabytes_shared)?;
    let mut f = Findings::default();
    f.figure("B17", &[dropped, started, shared]);
    f.tables.push(Table { name: "on_and_off", columns: STATISTICS, rows });
    Ok(f)
}

/// Duration of each run.
const SECONDS: u64 = 60;
/// Seconds of load before the clip or the services begin: until raised weights are over.
const LOAD_FIRST: Time = Time(10_000_000_000);

/// Frames that a player drops beside ten readers in order. It plays as in B9.
fn dropped_frames(bench: &PolicyRun) -> Result<f64, RunError> {
    let mut who = 0;
    let (suite, _) = bench.run(&SPEC, |disk| {
        let mut actors: Vec<Box<dyn Actor>> = Load::Readers10Seq.actors(disk, bench.seed);
        who = actors.len();
        actors.push(Box::new(Player::new(disk, 1_000_000, 30, LOAD_FIRST, (10, FILES))));
        actors
    })?;
    Ok(suite.account(who).dropped as f64)
}

/// Services that start together, and the seconds in which throughput is measured.
const SERVICES: usize = 16;
const BURST_SECONDS: usize = 10;

/// MB/s of all from the start of sixteen services on, beside five readers in order. Their raised
/// weights would cost the readers' throughput, and each waits for fifteen others with the same.
fn rate_while_services_start(bench: &PolicyRun) -> Result<f64, RunError> {
    let (suite, _) = bench.run(&SPEC, |disk| {
        let readers = Load::Readers10Seq.actors(disk, bench.seed).into_iter().take(5);
        let service = |i: usize| {
            let first = LOAD_FIRST + Dur::from_ms(20 * i as u64);
            let seed = bench.seed * 1000 + i as u64;
            Box::new(Starts::new(disk, Program::XTERM, first, Dur::ZERO, 1, seed)) as Box<dyn Actor>
        };
        readers.chain((0..SERVICES).map(service)).collect()
    })?;
    let from = (LOAD_FIRST.0 / 1_000_000_000) as usize;
    Ok(suite.rate(from, from + BURST_SECONDS) / 1e6)
}

/// Megabytes of a file that four processes read together, beside two readers in order.
fn megabytes_shared(bench: &PolicyRun) -> Result<f64, RunError> {
    let (suite, _) = bench.run(&SPEC, |disk| {
        let mut actors: Vec<Box<dyn Actor>> = Load::Readers10Seq.actors(disk, bench.seed).into_iter().take(2).collect();
        actors.push(Box::new(SharedFile::new(disk)));
        actors
    })?;
    Ok(suite.seconds(2).iter().sum::<u64>() as f64 / 1e6)
}

/// Processes that read a file together, as the kernel's author describes `dump`: each takes every
/// fourth piece.
#[derive(Debug)]
struct SharedFile {
    first: u64,
    pieces: u64,
    piece: u64,
    /// Each process's next piece, and since when it can read it; `None`: it waits for its read.
    next: [(u64, Option<Time>); 4],
}

impl SharedFile {
    fn new(disk: &Disk) -> SharedFile {
        let (first, sectors) = disk.file(10, FILES, FILE);
        let piece = disk.sectors(64 << 10);
        let next = [0, 1, 2, 3].map(|i| (i, Some(LOAD_FIRST)));
        SharedFile { first, pieces: sectors / piece, piece, next }
    }

    fn soonest(&self) -> Option<(Time, usize)> {
        let ready = self.next.iter().enumerate().filter_map(|(i, n)| Some((n.1?, i)));
        ready.min()
    }
}

impl Actor for SharedFile {
    fn next_due(&self) -> Option<Time> {
        self.soonest().map(|s| s.0)
    }

    fn take(&mut self) -> Piece {
        let (_, process) = self.soonest().expect("one is due");
        let (next, due) = &mut self.next[process];
        let lbn = self.first + *next % self.pieces * self.piece;
        (*next, *due) = (*next + 4, None);
        Piece { kind: Kind::Read, lbn, count: self.piece as u32, sync: true, process: process as u32 }
    }

    fn finished(&mut self, process: u32, now: Time) {
        self.next[process as usize].1 = Some(now);
    }
}
