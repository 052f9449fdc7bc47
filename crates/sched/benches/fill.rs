//! Cost of a freeblock search: on a drive that is fully wanted, half done, nearly done, and at the
//! end.

use std::cell::Cell;
use std::sync::OnceLock;

use divan::Bencher;
use headtime_disk::{Angle, Dur, Head, Kind, Model, Outcome, Time, profile};
use headtime_sched::internals::candidate::Look;
use headtime_sched::internals::conservatism::Margins;
use headtime_sched::internals::gap::Gap;
use headtime_sched::internals::habit::Habit;
use headtime_sched::internals::headtime::Planner;
use headtime_sched::internals::manager::TaskManager;
use headtime_sched::internals::prices::Prices;
use headtime_sched::internals::regions::Regions;
use headtime_sched::internals::scene::Scene;
use headtime_sched::internals::search::Search;
use headtime_sched::internals::tasks::Who;
use headtime_sched::internals::visit::PlanContext;
use headtime_sched::{Algorithm, FillConfig, Placement, TaskLimits, TaskRange, TaskSpec};
use headtime_testkit::profiles::{between, rng};
use rand_core::Rng;

fn main() {
    divan::main();
}

/// The cost limit of a search: quick pass and refinement, by FILL's defaults.
fn budget(algorithm: Algorithm) -> u64 {
    let (quick, more) = FillConfig::new(algorithm).budget;
    u64::from(quick) + u64::from(more)
}

/// Gaps that are searched in turn.
const GAPS: usize = 512;

/// Each gap several times: searches differ by two orders of magnitude, so that the mean of a
/// hundred is unreliable.
const SAMPLES: u32 = 4 * GAPS as u32;

/// A reader of a whole drive of which this many thousandths of the units are left. A remaining half
/// lies in runs of eight units and more, a last hundredth (here 1 of 128) unit by unit, and the
/// last five thousandths at both edges of the disk, which the fewest gaps can reach: about as scans
/// leave them.
fn reader(unit: u32, capacity: u64, permille: u64) -> TaskManager {
    let mut tasks = TaskManager::new(TaskLimits::default(), capacity);
    let session = tasks.open(1).expect("one session");
    let units = capacity / u64::from(unit);
    let all = TaskRange { lbn: 0, count: units * u64::from(unit) };
    let spec = TaskSpec { kind: Kind::Read, ranges: vec![all], blksize: unit, min_pickup: unit };
    tasks.register(session, &spec).expect("a task of the whole drive");
    // Units from here on have been read, up to the next one that is left.
    let (mut rng, mut read) = (rng(3), 0);
    for at in 0..units.div_ceil(64) {
        let at_edge = 64 * at.min(units / 64 - at.min(units / 64)) < units / 400;
        let mut left = if permille == 5 { u64::MAX * u64::from(at_edge) } else { left(&mut rng, permille) };
        while left != 0 {
            let next = 64 * at + u64::from(left.trailing_zeros());
            let run = u64::from((!(left >> left.trailing_zeros())).trailing_zeros());
            deliver(&mut tasks, unit, read..next.min(units));
            read = next + run;
            left &= u64::MAX.checked_shl((next - 64 * at + run) as u32).unwrap_or(0);
        }
    }
    deliver(&mut tasks, unit, read..units);
    let left = tasks.sessions().map(|s| s.left_read_sectors).sum::<u64>() as f64 / all.count as f64;
    let meant = if permille == 10 { 1.0 / 128.0 } else { permille as f64 / 1e3 };
    assert!((0.9..1.1).contains(&(left / meant)), "{left} of the units are left, not {meant}");
    tasks
}

/// Returns which of 64 consecutive units are left.
fn left(rng: &mut impl Rng, permille: u64) -> u64 {
    match permille {
        1_000 => u64::MAX,
        // Every eighth bit of a number stands for the seven above it, too.
        500 => (rng.next_u64() & 0x0101_0101_0101_0101) * 0xff,
        _ => (0..7).fold(u64::MAX, |left, _| left & rng.next_u64()),
    }
}

/// Marks these units as read.
fn deliver(tasks: &mut TaskManager, unit: u32, units: std::ops::Range<u64>) {
    // A command's sectors are a 32-bit number.
    const AT_ONCE: usize = 1 << 16;
    for from in units.clone().step_by(AT_ONCE) {
        let count = (units.end - from).min(AT_ONCE as u64) as u32 * unit;
        tasks.completed(Kind::Read, from * u64::from(unit), count, Outcome::Ok, Time::ZERO);
        while tasks.next_event().is_some() {}
    }
}

/// A drive, its wanted sectors, and gaps between random requests.
struct Case {
    model: Model,
    tasks: TaskManager,
    unit: u32,
    regions: Regions,
    gaps: Vec<(Gap, Option<(u32, u16)>)>,
}

/// Drive, bytes of a unit, thousandths of the units that are wanted. Units of 4 KiB on the largest
/// drive exceed a task manager's limits.
const CASES: [(&str, u64, u64); 18] = [
    ("atlas10k", 4_096, 1_000),
    ("atlas10k", 4_096, 500),
    ("atlas10k", 4_096, 10),
    ("atlas10k", 65_536, 1_000),
    ("atlas10k", 65_536, 500),
    ("atlas10k", 65_536, 10),
    ("atlas10k", 65_536, 5),
    ("hitachi-7k1000c", 4_096, 1_000),
    ("hitachi-7k1000c", 4_096, 500),
    ("hitachi-7k1000c", 4_096, 10),
    ("hitachi-7k1000c", 65_536, 1_000),
    ("hitachi-7k1000c", 65_536, 500),
    ("hitachi-7k1000c", 65_536, 10),
    ("hitachi-7k1000c", 65_536, 5),
    ("nearline-20tb", 65_536, 1_000),
    ("nearline-20tb", 65_536, 500),
    ("nearline-20tb", 65_536, 10),
    ("nearline-20tb", 65_536, 5),
];

impl Case {
    /// Each is created once, for all algorithms.
    fn of(case: (&str, u64, u64)) -> &'static Case {
        static MADE: [OnceLock<Case>; CASES.len()] = [const { OnceLock::new() }; CASES.len()];
        let at = CASES.iter().position(|c| *c == case).expect("one of the cases");
        MADE[at].get_or_init(|| Case::new(case))
    }

    fn new((disk, bytes, permille): (&str, u64, u64)) -> Case {
        let model = Model::new(&profile::builtin(disk).expect("a built-in drive")).expect("a drive that works");
        let unit = (bytes / u64::from(model.sector_bytes)) as u32;
        let capacity = model.geometry.capacity();
        let tasks = reader(unit, capacity, permille);
        let mut regions = Regions::new(&model.geometry, 8);
        let range = TaskRange { lbn: 0, count: capacity / u64::from(unit) * u64::from(unit) };
        regions.has_units(unit, &[range]);
        let session = tasks.sessions().next().expect("one session").id;
        regions.add(session, &model.geometry, range);
        // Regions where nothing is left are found as the blocks come.
        if permille < 1_000 {
            regions.recheck(session, &model.geometry, &tasks, range);
        }
        let mut rng = rng(7);
        let mut gaps = Vec::new();
        while gaps.len() < GAPS {
            let kind = if between(&mut rng, 0, 2) == 0 { Kind::Write } else { Kind::Read };
            let from = model.place(between(&mut rng, 0, capacity - 65), 8, Kind::Read).expect("it is on the drive");
            let dest = model.place(between(&mut rng, 0, capacity - 65), 8, kind).expect("it is on the drive");
            let (cylinder, surface) = (from.end_cylinder, from.end_surface);
            let at = Time(1_000_000_000);
            let head = Head { cylinder, surface, angle: Angle(between(&mut rng, 0, u64::MAX - 1)), at };
            let margins = Margins::fixed(Dur::from_us(100));
            if let Some(gap) = Gap::before(&model, (head, head), &dest, kind, Time::ZERO, &margins) {
                gaps.push((gap, Some((cylinder, surface))));
            }
        }
        Case { model, tasks, unit, regions, gaps }
    }
}

#[divan::bench(args = CASES, sample_count = SAMPLES)]
fn headtime(bencher: Bencher, case: (&str, u64, u64)) {
    let Case { model, tasks, unit, regions, gaps } = Case::of(case);
    let (mut planner, mut prices, next) = (Planner::default(), Prices::new(model), Cell::new(0));
    // As after a scan of this progress: the rest is wanted, about the same everywhere.
    let capacity = model.geometry.capacity();
    prices.grain.set(*unit);
    prices.bands.wanted(TaskRange { lbn: 0, count: capacity });
    for lbn in (0..capacity).step_by(1 << 14) {
        prices.bands.gone(TaskRange { lbn, count: ((1 << 14) * (1_000 - case.2) / 1_000).min(capacity - lbn) });
    }
    (0..256).for_each(|i| prices.bands.gap(capacity / 256 * i));
    let budget = budget(Algorithm::Headtime);
    bencher.bench_local(|| {
        let (gap, last_read) = &gaps[next.get() % GAPS];
        next.set(next.get() + 1);
        let habit = Habit::before(model, Placement::Host, *last_read);
        let (who, widest) = (Who::Anyone, *unit);
        let asked = PlanContext { model, gap, habit, wants: tasks, who, exclude: &[], widest, prices: &prices };
        planner.search(&asked, regions, budget)
    });
}

fn papers(bencher: Bencher, case: (&str, u64, u64), algorithm: Algorithm) {
    let Case { model, tasks, regions, gaps, .. } = Case::of(case);
    let policy = algorithm.policy().expect("one of the papers' algorithms");
    let (next, budget) = (Cell::new(0), budget(algorithm));
    bencher.bench_local(|| {
        let (gap, _) = &gaps[next.get() % GAPS];
        next.set(next.get() + 1);
        let rules = Placement::Host.rules();
        let look = Look { model, wants: tasks, gap, exclude: &[], rules, by_angle: false, grain: regions.grain() };
        let scene = Scene { look, regions, winner: Who::Anyone };
        let mut search = Search::begin(policy, &scene);
        search.step(&scene, budget);
        search.best()
    });
}

#[divan::bench(args = CASES, sample_count = SAMPLES)]
fn bw_greedy(bencher: Bencher, case: (&str, u64, u64)) {
    papers(bencher, case, Algorithm::BwGreedy);
}

#[divan::bench(args = CASES, sample_count = SAMPLES)]
fn bw_ep_greedy(bencher: Bencher, case: (&str, u64, u64)) {
    papers(bencher, case, Algorithm::BwEpGreedy);
}

#[divan::bench(args = CASES, sample_count = SAMPLES)]
fn angle_ep_greedy(bencher: Bencher, case: (&str, u64, u64)) {
    papers(bencher, case, Algorithm::AngleEpGreedy);
}

#[divan::bench(args = CASES, sample_count = SAMPLES)]
fn angle_ep_frag(bencher: Bencher, case: (&str, u64, u64)) {
    papers(bencher, case, Algorithm::AngleEpFrag);
}
