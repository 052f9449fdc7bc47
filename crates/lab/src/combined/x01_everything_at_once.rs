//! X1: guarantees, shares, quick starts and background work, all at once on one drive.
//!
//! Not from a paper. Streams follow Reuther and Pohlack (2003), best effort below them Valente
//! (2014), and the use of gaps Lumb (2002): ADMIT selects the eligible requests, ORDER the next
//! one, FILL the background work before it.

use std::cell::RefCell;
use std::rc::Rc;

use headtime_disk::profile::Profile;
use headtime_disk::{Dur, Kind, Model, Time};
use headtime_sched::streams::{Exhausted, GuaranteeConfig as Promises};
use headtime_sched::{Algorithm, BfqRules, FillConfig, Order, Policy, Share};
use headtime_sim::background::{Background, Job, Jobs, Nothing};
use headtime_sim::observe::Observer;
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Setup, Simulation};
use headtime_sim::stats::streams::StreamAccount;
use headtime_sim::stats::{Done, Stats};
use headtime_sim::workload::suite::files::{FILES, FileActor};
use headtime_sim::workload::suite::startup::{Program, Starts};
use headtime_sim::workload::suite::{Actor, Disk, Suite, actor_of};
use headtime_sim::workload::{Ask, Streams, Workload, WorkloadError, das, stream_of};

use crate::common::guarantee_check::margin;
use crate::common::stream_run::{drive, known};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test, failed};

const DRIVE: &str = "ultrastar36z15";

/// The experiment.
pub(crate) const X1: Experiment = Experiment { spec: &SPEC, steps: 4, run };

static SPEC: Spec = Spec {
    id: "X1",
    title: "Promises, shares, quick starts and a free scan at once",
    source: "Reuther and Pohlack 2003, Valente 2014, Lumb, Schindler and Ganger 2002, and headtime's own",
    drive: DRIVE,
    workload: "two mandatory streams and three optional ones of random 64 KiB reads, four readers of files with \
            weights 1 to 4 under BFQ+, bash started again and again, and a scan of the whole disk in gaps and idle \
            time",
    claims: &[
        Claim {
            id: "X1a",
            claim: "every guarantee of D9 and D10",
            paper: "-",
            rule: "no mandatory request late, each optional stream within 0.5 points of what was asked or above, by \
                   its reservation alone, too; without guarantees not so",
            checks: &[
                Check { what: "mandatory requests late", unit: "requests", test: Test::Never },
                Check { what: "commands that took longer than their worst case", unit: "commands", test: Test::Never },
                Check {
                    what: "quality achieved less that asked for, of the stream with the least",
                    unit: "points",
                    test: Test::AtLeast(-0.5),
                },
                Check {
                    what: "mandatory requests late where streams have their reservations alone",
                    unit: "requests",
                    test: Test::Never,
                },
                Check {
                    what: "quality achieved less that asked for, there",
                    unit: "points",
                    test: Test::AtLeast(-0.5),
                },
                Check {
                    what: "the same without guarantees, of the stream with the least",
                    unit: "points",
                    test: Test::Below(-0.5),
                },
            ],
            quick: true,
            note: "A stream that has used up its reservation goes with best effort, and what that brings is counted \
                   in the first figures. So the same is run with what exceeds a reservation given up, and with the \
                   streams as applications of BFQ+ of which nothing is guaranteed.",
        },
        Claim {
            id: "X1b",
            claim: "shares of B11 among the four readers",
            paper: "-",
            rule: "within 3% over any 100 s",
            checks: &[Check {
                what: "largest difference of an application's sectors from what is due, in any 100 s",
                unit: "% of what is due",
                test: Test::AtMost(3.0),
            }],
            quick: true,
            note: "Streams leave the readers a part of each second. A reader has the disk for a whole budget at a \
                   time: the largest, what the fastest zone gives in a slice, is some 3% of what is due in 100 s to \
                   the one with the least. A window begins within one and ends within another.",
        },
        Claim {
            id: "X1c",
            claim: "start-up of B5b: bash, against an idle disk",
            paper: "-",
            rule: "at most 1.5 times",
            checks: &[Check { what: "start beside all the others over idle", unit: "times", test: Test::AtMost(1.5) }],
            quick: true,
            note: "Who starts goes before streams that can wait, and is waited for; where they cannot, mandatory \
                   requests make room. What is left is the end of each period, where nothing may be begun for some 30 \
                   ms. Each start is a process of its own; one program that comes again and again is raised less and \
                   takes longer.",
        },
        Claim {
            id: "X1d",
            claim: "the scan progresses at half or more of F9a",
            paper: "-",
            rule: "at least 1.55 MB/s",
            checks: &[
                Check { what: "progress, over the whole scan", unit: "MB/s", test: Test::AtLeast(1.55) },
                Check { what: "without what others read anyway", unit: "MB/s", test: Test::AtLeast(1.55) },
            ],
            quick: false,
            note: "F9a is 3.1 MB/s, beside requests at random one at a time. Here half of all requests go on where \
                   the one before ended, and have no gap; the others are chosen from up to 50 that wait, the nearest \
                   by position, and the gaps before those are short. The drive is read once, from nothing to its \
                   last block. A shortened run sees 6% of it, most of which the readers bring, and shows nothing.",
        },
    ],
    length: Length::Seconds,
    alone: false,
};

/// Requests in 500 ms and quality in parts per million: the paper's table 2, with two of its five
/// streams mandatory.
const STREAMS: [(u32, u32); 5] = [(5, 1_000_000), (20, 950_000), (10, 900_000), (5, 1_000_000), (10, 600_000)];
const READERS: usize = 4;
/// Seconds over which shares must be right.
const WINDOW: usize = 100;
/// Seconds after which the starts begin and no other application is raised any more.
const LEAD_S: u64 = 10;
/// Unit of the scan, sectors.
const SCAN_UNIT_SECTORS: u32 = 128;
/// Duration in seconds of a run that does not read the whole drive: 300 periods of each stream.
const SHORT_RUN_S: u64 = 150;

fn run(run: &Run) -> Result<Findings, RunError> {
    let profile = drive(&SPEC, DRIVE)?;
    let [idle, all, reserved, without] = [Scene::Idle, Scene::All, Scene::Reserved, Scene::Without].map(|scene| {
        let ran = one(run, &profile, scene);
        run.progress.advance(1);
        ran
    });
    let (idle, all, reserved, without) = (idle?, all?, reserved?, without?);
    let guaranteed = [all.late() as f64, all.stats.overdue_commands as f64, all.margin()];
    let checked = [reserved.late() as f64, reserved.margin(), without.margin()];
    let mut f = Findings::default();
    f.figure("X1a", &[guaranteed, checked].concat());
    f.figure("X1b", &[all.watch.apart()]);
    f.figure("X1c", &[all.start() / idle.start()]);
    f.figure("X1d", &[scanned(&all.stats), free(&all.stats)]);
    f.tables.push(had(&all));
    f.tables.push(figures(&idle, &all, [&reserved, &without]));
    Ok(f)
}

/// Results of one run.
struct Ran {
    stats: Stats,
    watch: Watch,
    starts: Vec<Dur>,
}

impl Ran {
    /// Mandatory requests that were not completed in their period.
    fn late(&self) -> u64 {
        self.stats.streams.iter().filter(|s| s.stream.is_mandatory()).map(|s| s.missed()).sum()
    }

    /// The least achieved minus requested quality of any optional stream, in percentage points.
    fn margin(&self) -> f64 {
        let optional = self.stats.streams.iter().filter(|s| !s.stream.is_mandatory());
        optional.filter_map(margin).reduce(f64::min).unwrap_or(f64::NAN)
    }

    /// Mean duration of a start in seconds; infinite without a completed start.
    fn start(&self) -> f64 {
        match self.starts.len() {
            0 => f64::INFINITY,
            n => self.starts.iter().map(|d| d.as_secs_f64()).sum::<f64>() / n as f64,
        }
    }
}

/// The load during the starts of bash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scene {
    /// None.
    Idle,
    /// Streams, readers and the scan.
    All,
    /// The same, with streams limited to their reservations.
    Reserved,
    /// The same, without a guarantee for the streams.
    Without,
}

fn one(run: &Run, profile: &Profile, scene: Scene) -> Result<Ran, RunError> {
    let beside = scene != Scene::Idle;
    let exhausted = if scene == Scene::Reserved { Exhausted::Skip } else { Exhausted::AsBestEffort };
    let model = Model::new(profile).map_err(|e| failed(&SPEC, e))?;
    let guarantees = Promises::of(known(&SPEC, profile)?, profile, &model, exhausted);
    let guarantees = guarantees.map_err(|e| failed(&SPEC, e))?;
    let guarantees = Promises { compensates: scene != Scene::Reserved, ..guarantees };
    let share = |i: usize| (i as u32, Share { weight: 100 * (i as u32 + 1), ..Share::default() });
    let setup = Setup {
        admit: Policy::Bfq(BfqRules::plus()),
        shares: (0..READERS).map(share).collect(),
        guarantees: matches!(scene, Scene::All | Scene::Reserved).then_some(guarantees),
        ..Setup::new(profile, Order::Sptf, run.seed)
    };
    let setup = if beside { setup.filled(FillConfig::new(Algorithm::Headtime)) } else { setup };
    let simulation = Simulation::new(&setup).map_err(|e| failed(&SPEC, e))?;
    let target = simulation.target();
    let disk = Disk { capacity: target.capacity, sector_bytes: u64::from(target.sector_bytes) };
    let reader = |i| Box::new(FileActor::new(&disk, Kind::Read, false, (i, FILES), run.seed)) as Box<dyn Actor>;
    let mut actors: Vec<Box<dyn Actor>> = (0..READERS as u64).filter(|_| beside).map(reader).collect();
    let (who, first) = (actors.len(), Time::ZERO + Dur::from_secs(LEAD_S));
    actors.push(Box::new(Starts::new(&disk, Program::BASH, first, Dur::from_secs(1), usize::MAX, run.seed)));
    let suite = Kept(Rc::new(RefCell::new(Suite::new(target, actors))));
    let mut load: Box<dyn Workload> = Box::new(suite.clone());
    let mut scan: Box<dyn Background> = Box::new(Nothing);
    if beside {
        let promised = das::streams(&STREAMS).map_err(|e| failed(&SPEC, e))?;
        let all = Streams::new(&promised, Some(load), target, run.seed).map_err(|e| failed(&SPEC, e))?;
        load = Box::new(all);
        scan = Box::new(Jobs::new(vec![Job::scan(disk.capacity, SCAN_UNIT_SECTORS)]));
    }
    // Until the drive has been read, or the time limit; without the scan as long as is needed for a
    // mean of starts.
    let longest = if scene == Scene::All { run.length(20_000, SHORT_RUN_S) } else { SHORT_RUN_S };
    let until = Some(Time::ZERO + Dur::from_secs(longest));
    let limits = Limits { until, until_scanned: scene == Scene::All, ..Limits::default() };
    let mut watch = (Watch::default(), run.stop_within());
    let stats = simulation.run_with(&mut *load, &mut *scan, limits, None, &mut watch);
    let stats = stats.map_err(|e| failed(&SPEC, e))?;
    let starts = suite.0.borrow().account(who).starts;
    Ok(Ran { stats, watch: watch.0, starts })
}

/// A suite whose accounts are read after the run that owns it.
#[derive(Clone)]
struct Kept(Rc<RefCell<Suite>>);

impl Workload for Kept {
    fn next_due(&self) -> Option<Time> {
        self.0.borrow().next_due()
    }

    fn take(&mut self) -> Result<Ask, WorkloadError> {
        self.0.borrow_mut().take()
    }

    fn finished(&mut self, owner: u32, now: Time) {
        self.0.borrow_mut().finished(owner, now);
    }

    fn endless(&self) -> bool {
        self.0.borrow().endless()
    }
}

/// Sectors of each reader in each second, after weight raising has ended.
#[derive(Debug, Default)]
struct Watch {
    seconds: Vec<[f64; READERS]>,
}

impl Observer for Watch {
    fn finished(&mut self, done: &Done) {
        let reader = Some(done.owner).filter(|o| stream_of(*o).is_none()).map(actor_of);
        let second = (done.done.0 / 1_000_000_000).checked_sub(LEAD_S);
        let (Some(reader), Some(second)) = (reader.filter(|r| *r < READERS), second) else { return };
        let second = second as usize;
        if self.seconds.len() <= second {
            self.seconds.resize(second + 1, [0.0; READERS]);
        }
        self.seconds[second][reader] += f64::from(done.count);
    }
}

impl Watch {
    /// In any [`WINDOW`]: the largest relative deviation of any reader from its share, in percent.
    fn apart(&self) -> f64 {
        let off = |w: &[[f64; READERS]]| {
            let had = |i: usize| w.iter().map(|s| s[i]).sum::<f64>();
            let all: f64 = (0..READERS).map(had).sum();
            // Without any service, no reader had its share.
            let part = |i: usize| if all > 0.0 { had(i) / all } else { 0.0 };
            (0..READERS).map(|i| 100.0 * (part(i) - due(i)).abs() / due(i)).fold(0.0, f64::max)
        };
        self.seconds.windows(WINDOW).map(off).fold(f64::NAN, f64::max)
    }

    fn mean(&self, i: usize) -> f64 {
        self.seconds.iter().map(|s| s[i]).sum::<f64>() / self.seconds.len().max(1) as f64
    }
}

/// The share of reader `i`.
fn due(i: usize) -> f64 {
    (i + 1) as f64 / (READERS * (READERS + 1) / 2) as f64
}

/// Progress of the scan in MB/s.
fn scanned(stats: &Stats) -> f64 {
    stats.background.sectors as f64 * 512.0 / 1e6 / stats.ended_at.as_secs_f64()
}

/// The part of it in MB/s that no foreground request delivered.
fn free(stats: &Stats) -> f64 {
    let paid = stats.freeblock.as_ref().map_or(0, |r| r.by_foreground);
    stats.background.sectors.saturating_sub(paid) as f64 * 512.0 / 1e6 / stats.ended_at.as_secs_f64()
}

fn had(all: &Ran) -> Table {
    let seconds = all.stats.ended_at.as_secs_f64();
    let stream = |s: &StreamAccount| {
        let mb_s = s.sectors as f64 * 512.0 / 1e6 / seconds;
        let asked = f64::from(s.stream.quality.ppm()) / 1e4;
        let had = s.quality().map_or(f64::NAN, |q| 100.0 * q);
        let figures = [asked, had, s.missed() as f64, mb_s];
        [Cell::from(&*s.name)].into_iter().chain(figures.map(Cell::from)).collect()
    };
    let readers: f64 = (0..READERS).map(|i| all.watch.mean(i)).sum();
    let reader = |i: usize| {
        let mean = all.watch.mean(i);
        let figures = [100.0 * due(i), 100.0 * mean / readers, f64::NAN, mean * 512.0 / 1e6];
        [Cell::from(&*format!("reader of weight {}", i + 1))].into_iter().chain(figures.map(Cell::from)).collect()
    };
    let rows = all.stats.streams.iter().map(stream).chain((0..READERS).map(reader));
    Table { name: "had", columns: &["who", "due_percent", "had_percent", "missed", "mb_s"], rows: rows.collect() }
}

fn figures(idle: &Ran, all: &Ran, [reserved, without]: [&Ran; 2]) -> Table {
    let subset = all.stats.subset.unwrap_or_default();
    let alone = 100.0 * subset.streams_only as f64 / subset.made.max(1) as f64;
    let rows = [
        ("start on an idle disk, s", idle.start()),
        ("start beside all the others, s", all.start()),
        ("starts", all.starts.len() as f64),
        ("scan, MB/s", scanned(&all.stats)),
        ("of it free, MB/s", free(&all.stats)),
        ("part of the drive that was read, %", 100.0 * all.stats.background.fraction),
        ("seconds", all.stats.ended_at.as_secs_f64()),
        ("subsets of streams alone, %", alone),
        ("commands that took longer than their worst case", all.stats.overdue_commands as f64),
        ("mandatory requests late without guarantees", without.late() as f64),
        ("least margin by reservations alone, points", reserved.margin()),
        ("least margin without guarantees, points", without.margin()),
    ];
    let rows = rows.into_iter().map(|(what, value)| vec![Cell::from(what), Cell::from(value)]).collect();
    Table { name: "figures", columns: &["what", "value"], rows }
}
