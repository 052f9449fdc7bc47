//! S1: the memory of freeblock tasks, in both layers.
//!
//! Thereska et al. (CMU-PDL-03-107), section 4.3, tables 1 and 2: ten tasks for the whole disk
//! each, a thousand for 0.1% and ten thousand for 0.01% of it, read or write, with blksize and
//! MIN_PICKUP_SIZE of 32 KB and eight regions.
//!
//! # Placement of the tasks
//!
//! * Sessions: twelve. Each large task is a separate application (a backup, a virus scanner), the
//!   medium ones are one (reorganisation), the small ones another (write-back). The paper does not
//!   state its number; its cylinder session maps, 0.42 MB at two bytes for each of 26,302
//!   cylinders, are eight.
//! * Places: medium and small tasks each cover the disk once, so that every region has every
//!   session's bit. They are registered in random order.
//! * Half of them write, so that no sector is written by two tasks: of two writes, the later one
//!   supersedes the earlier.
//!
//! # Counted memory
//!
//! Allocated bytes. The bits of a task are counted at their maximum, because a task of which
//! nothing has been read yet takes almost nothing here. The regions' bitmaps only shrink once
//! everything is registered. Each layer includes all of its own data: the scheduling layer also the
//! model of the drive (the paper's disk parameters) and the state of adaptive conservatism. Use of
//! idle time is off: its state is a few figures for each of 32 bands of the disk, whatever is
//! registered.

use headtime_disk::{Dur, Kind, Model, Time, profile};
use headtime_plot::{Axis, BarChart, BarSeries, Chart};
use headtime_sched::internals::adaptive::Adaptive;
use headtime_sched::{Algorithm, Config, Core, FillConfig, FillReport, Order, SessionId, TaskRange, TaskSpec};

use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test, failed};

/// The experiment.
pub(crate) const S1: Experiment = Experiment { spec: &SPEC, steps: PAPER.len() as u64 + 1, run };

static SPEC: Spec = Spec {
    id: "S1",
    title: "Memory for 11,010 freeblock tasks",
    source: "Thereska et al., Design and Implementation of a Freeblock Subsystem (CMU-PDL-03-107), section 4.3, tables \
            1 and 2",
    drive: "atlas3, ultrastar18lzx, cheetah36es, atlas10k3, cheetah73lp; nearline-20tb",
    workload: "none: 10 tasks of the whole disk, 1,000 of 0.1%, 10,000 of 0.01% are registered, in units of 32 KB",
    claims: &[
        Claim {
            id: "S1a",
            claim: "memory for 10 + 1,000 + 10,000 tasks, five drives, task manager and scheduling layer",
            paper: "table 1: 2.7, 3.1, 3.1, 3.9, 5.7 MB and 1.3, 1.6, 3.2, 3.8, 3.9 MB (in all 4.0 to 9.6)",
            rule: "no more than the paper, each drive: each layer at most 1 times the paper's",
            checks: &[
                Check {
                    what: "task manager over the paper's, the worst drive",
                    unit: "times",
                    test: Test::AtMost(1.0),
                },
                Check {
                    what: "scheduling layer over the paper's, the worst drive",
                    unit: "times",
                    test: Test::AtMost(1.0),
                },
            ],
            quick: true,
            note: "Bits are taken at the most they can come to, not as they are when nothing has been read yet. A \
                   megabyte is taken as 10^6 bytes, the smaller of its two meanings. Twelve sessions (ten scans, one \
                   for the medium and one for the small tasks); the paper's session maps are of eight. The scheduling \
                   layer is small because it keeps no map of tasks for each region (2.53 of the paper's 3.16 MB): \
                   tasks are found by their block ranges.",
        },
        Claim {
            id: "S1b",
            claim: "the same tasks on a drive of 20 TB, in units of 256 KiB",
            paper: "-",
            rule: "under 128 MiB in both layers together",
            checks: &[Check { what: "both layers", unit: "MiB", test: Test::Below(128.0) }],
            quick: false,
            note: "Left out of a short run: to register 10,000 tasks of 2 GB takes most of a minute, 5 ms for each.",
        },
    ],
    length: Length::Minutes,
    alone: false,
};

/// Thereska 2003 table 1: drive, task manager and scheduling layer in MB.
const PAPER: [(&str, f64, f64); 5] = [
    ("atlas3", 2.7, 1.3),
    ("ultrastar18lzx", 3.1, 1.6),
    ("cheetah36es", 3.1, 3.2),
    ("atlas10k3", 3.9, 3.8),
    ("cheetah73lp", 5.7, 3.9),
];
/// The modern drive, and its unit.
const MODERN_DRIVE: (&str, u64) = ("nearline-20tb", 256 << 10);
/// The paper's unit, bytes.
const UNIT: u64 = 32 << 10;

const LARGE_TASKS: u64 = 10;
const MEDIUM_TASKS: u64 = 1_000;
const SMALL_TASKS: u64 = 10_000;

/// Memory on one drive, bytes.
#[derive(Clone, Debug)]
struct Taken {
    report: FillReport,
    model: usize,
    adaptive: usize,
}

impl Taken {
    fn task_manager(&self) -> f64 {
        (self.report.tasks.held() + self.report.tasks.queues) as f64
    }

    fn scheduling(&self) -> f64 {
        (self.report.regions.total() + self.model + self.adaptive) as f64
    }
}

fn run(run: &Run) -> Result<Findings, RunError> {
    let mut taken = Vec::new();
    for (name, ..) in PAPER {
        taken.push(measure(name, UNIT, run.seed)?);
        run.progress.advance(1);
    }
    let modern = if run.quick { None } else { Some(measure(MODERN_DRIVE.0, MODERN_DRIVE.1, run.seed)?) };
    run.progress.advance(1);
    let worst = |of: fn(&Taken) -> f64, paper: fn(&(&str, f64, f64)) -> f64| {
        taken.iter().zip(&PAPER).map(|(t, p)| of(t) / (paper(p) * 1e6)).fold(0.0, f64::max)
    };
    let mut f = Findings::default();
    f.figure("S1a", &[worst(Taken::task_manager, |p| p.1), worst(Taken::scheduling, |p| p.2)]);
    if let Some(m) = &modern {
        f.figure("S1b", &[(m.task_manager() + m.scheduling()) / f64::from(1 << 20)]);
    }
    f.tables.push(by_drive(&taken, modern.as_ref()));
    f.tables.push(by_structure(&taken, modern.as_ref()));
    f.charts.push(chart(&taken));
    Ok(f)
}

fn measure(drive: &str, unit_bytes: u64, seed: u64) -> Result<Taken, RunError> {
    let fail = |e: &dyn std::fmt::Display| failed(&SPEC, format!("{drive}: {e}"));
    let profile = profile::builtin(drive).map_err(|e| fail(&e))?;
    let model = Model::new(&profile).map_err(|e| fail(&e))?;
    let (capacity, unit) = (model.geometry.capacity(), (unit_bytes / u64::from(profile.sector_bytes)) as u32);
    let bytes = model.geometry.memory_bytes() + model.mechanics.memory_bytes();
    let adaptive = Adaptive::new(&model, Dur::ZERO).memory_bytes();
    let fill = Some(FillConfig { idle: None, ..FillConfig::new(Algorithm::AngleEpFrag) });
    let mut core = Core::new(Config::new(Order::Sptf).with_capacity(16).with_fill(fill), model);
    register(&mut core, capacity, unit, seed).map_err(|e| fail(&e))?;
    let report = core.freeblock().ok_or_else(|| fail(&"nothing fills gaps"))?;
    let open: u32 = report.sessions.iter().map(|s| s.tasks).sum();
    if u64::from(open) != LARGE_TASKS + MEDIUM_TASKS + SMALL_TASKS {
        return Err(fail(&format!("only {open} tasks are open")));
    }
    Ok(Taken { report, model: bytes, adaptive })
}

fn register(core: &mut Core, capacity: u64, unit: u32, seed: u64) -> Result<(), headtime_sched::TaskError> {
    let add = |core: &mut Core, session: SessionId, kind, n: u64, of: u64| {
        let at = |n: u64| (u128::from(capacity) * u128::from(n) / u128::from(of)) as u64;
        let range = TaskRange { lbn: at(n), count: at(n + 1) - at(n) };
        let spec = TaskSpec { kind, ranges: vec![range], blksize: unit, min_pickup: unit };
        core.register(session, &spec, Time::ZERO)?;
        while core.poll().is_some() {}
        Ok(())
    };
    for _ in 0..LARGE_TASKS {
        let session = core.open(1, Time::ZERO)?;
        add(core, session, Kind::Read, 0, 1)?;
    }
    let either = |writes: bool| if writes { Kind::Write } else { Kind::Read };
    // Medium tasks write where the small ones read, and vice versa.
    let session = core.open(1, Time::ZERO)?;
    for n in shuffled(MEDIUM_TASKS, seed) {
        add(core, session, either(n % 2 == 1), n, MEDIUM_TASKS)?;
    }
    let session = core.open(1, Time::ZERO)?;
    for n in shuffled(SMALL_TASKS, seed ^ 1 << 32) {
        add(core, session, either((n / (SMALL_TASKS / MEDIUM_TASKS)).is_multiple_of(2)), n, SMALL_TASKS)?;
    }
    Ok(())
}

/// The numbers below `n` in an order that depends on the seed.
fn shuffled(n: u64, seed: u64) -> Vec<u64> {
    let key = |i: u64| {
        // The output of a splitmix64 generator for its i-th state.
        let z = seed.wrapping_add((i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    let mut all: Vec<u64> = (0..n).collect();
    all.sort_by_key(|i| (key(*i), *i));
    all
}

fn mb(bytes: f64) -> Cell {
    Cell::from(bytes / 1e6)
}

/// In the form of table 1.
fn by_drive(taken: &[Taken], modern: Option<&Taken>) -> Table {
    let mut rows: Vec<Vec<Cell>> = taken
        .iter()
        .zip(&PAPER)
        .map(|(t, (name, tasks, scheduling))| {
            vec![
                Cell::from(*name),
                Cell::from(*tasks),
                mb(t.task_manager()),
                Cell::from(*scheduling),
                mb(t.scheduling()),
                Cell::from(tasks + scheduling),
                mb(t.task_manager() + t.scheduling()),
            ]
        })
        .collect();
    let none = || Cell::from("");
    rows.extend(modern.map(|m| {
        let (tasks, scheduling) = (m.task_manager(), m.scheduling());
        vec![Cell::from(MODERN_DRIVE.0), none(), mb(tasks), none(), mb(scheduling), none(), mb(tasks + scheduling)]
    }));
    Table {
        name: "by_drive",
        columns: &[
            "drive",
            "paper_task_manager_mb",
            "task_manager_mb",
            "paper_scheduling_mb",
            "scheduling_mb",
            "paper_both_mb",
            "both_mb",
        ],
        rows,
    }
}

/// In the form of table 2: the Cheetah 36ES, and the modern drive next to it.
fn by_structure(taken: &[Taken], modern: Option<&Taken>) -> Table {
    let at = PAPER.iter().position(|p| p.0 == "cheetah36es").expect("it is one of the paper's drives");
    let c = &taken[at];
    let row = |layer: &str, name: &str, paper: &str, of: fn(&Taken) -> usize| {
        vec![
            Cell::from(layer),
            Cell::from(name),
            Cell::from(paper),
            mb(of(c) as f64),
            modern.map_or(Cell::from(""), |m| mb(of(m) as f64)),
        ]
    };
    Table {
        name: "by_structure",
        columns: &["layer", "structure", "paper_cheetah36es", "cheetah36es_mb", "nearline_20tb_mb"],
        rows: vec![
            row("task manager", "session list", "1.06 with callbacks and lists of tasks", |t| t.report.tasks.sessions),
            row("task manager", "task table", "1.99 with bits", |t| t.report.tasks.tasks),
            row("task manager", "ranges", "", |t| t.report.tasks.ranges),
            row("task manager", "bits, at most", "", |t| t.report.tasks.bits_at_most),
            row("task manager", "bits, nothing read yet (not counted)", "", |t| t.report.tasks.bits),
            row("task manager", "index by place", "", |t| t.report.tasks.index),
            row("task manager", "queues", "", |t| t.report.tasks.queues),
            row("scheduling", "regions: maps of tasks", "2.53", |_| 0),
            row("scheduling", "region bitmap: of all", "0.026", |t| t.report.regions.union_bitmap),
            row("scheduling", "region bitmaps: one a session", "0.42 (cylinder session maps)", |t| {
                t.report.regions.session_bitmaps
            }),
            row("scheduling", "track fragments", "0.10", |_| 0),
            row("scheduling", "disk parameters", "0.08", |t| t.model),
            row("scheduling", "adaptive conservatism", "", |t| t.adaptive),
            row("scheduling", "rest", "", |t| t.report.regions.rest),
        ],
    }
}

fn chart(taken: &[Taken]) -> Chart {
    let series = |name: &str, of: fn(&Taken) -> f64| BarSeries {
        name: name.into(),
        values: taken.iter().map(|t| of(t) / 1e6).collect(),
    };
    Chart::Bars(BarChart {
        title: "Memory for 11,010 freeblock tasks by drive".into(),
        subtitle: "Both layers, bits at the most they can come to; the marks are the paper's sum of both.".into(),
        axis: Axis::from_zero("MB"),
        categories: PAPER.iter().map(|p| p.0.into()).collect(),
        series: vec![series("task manager", Taken::task_manager), series("scheduling layer", Taken::scheduling)],
        stacked: true,
        marks: PAPER.iter().map(|p| Some(p.1 + p.2)).collect(),
        mark_name: "paper, both".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_has_every_number_once_and_is_another_for_another_seed() {
        let (a, b) = (shuffled(1_000, 1), shuffled(1_000, 2));
        assert_ne!(a, b);
        let mut sorted = a.clone();
        sorted.sort_unstable();
        assert!(sorted.iter().copied().eq(0..1_000));
        assert_ne!(a, sorted);
    }

    #[test]
    fn tasks_that_write_never_overlap() {
        let per = SMALL_TASKS / MEDIUM_TASKS;
        let both = (0..MEDIUM_TASKS)
            .filter(|n| n % 2 == 1)
            .any(|n| (n * per..(n + 1) * per).any(|s| (s / per).is_multiple_of(2)));
        assert!(!both);
    }
}
