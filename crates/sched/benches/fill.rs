//! What one freeblock search costs: a drive full of work, half done, nearly done.

use std::cell::Cell;

use divan::Bencher;
use headtime_disk::angle::Angle;
use headtime_disk::command::Kind;
use headtime_disk::mechanics::Head;
use headtime_disk::model::Model;
use headtime_disk::profile;
use headtime_disk::time::{Dur, Time};
use headtime_sched::fill::Algorithm;
use headtime_sched::fill::candidate::Look;
use headtime_sched::fill::conservatism::Margins;
use headtime_sched::fill::gap::Gap;
use headtime_sched::fill::headtime::Planner;
use headtime_sched::fill::headtime::habit::Habit;
use headtime_sched::fill::headtime::prices::Prices;
use headtime_sched::fill::headtime::visit::Asked;
use headtime_sched::fill::placement::Placement;
use headtime_sched::fill::regions::Regions;
use headtime_sched::fill::search::{Scene, Search};
use headtime_sched::fill::subsystem::FillConfig;
use headtime_sched::tasks::wanted::Wanted;
use headtime_sched::tasks::{Range, SessionId, Wants, Who};
use headtime_testkit::profiles::{between, rng};

fn main() {
    divan::main();
}

/// What a search may cost: quick pass and refinement, as FILL is set up by default.
fn budget(algorithm: Algorithm) -> u64 {
    let (quick, more) = FillConfig::new(algorithm).budget;
    u64::from(quick) + u64::from(more)
}

/// Gaps that are searched in turn.
const GAPS: usize = 512;

/// Each gap several times: searches differ by two orders of magnitude, so that a hundred say little of their mean.
const SAMPLES: u32 = 4 * GAPS as u32;

/// Of all units of a drive, those wanted that a mixing of their number picks: no memory, so that drives of any size do.
/// Sixty-four units at a time, as the task manager finds them. A half that is left lies in stretches of eight units and more,
/// a last hundredth (here 1 of 128) unit by unit, which is about how scans leave them.
struct Mixed {
    unit: u64,
    units: u64,
    permille: u64,
}

impl Mixed {
    /// Units `64 * i..64 * (i + 1)`.
    fn word(&self, i: u64) -> u64 {
        let mixed = |salt: u64| {
            let z = (i ^ salt << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (z ^ z >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ z >> 32
        };
        match self.permille {
            1_000 => u64::MAX,
            // Every eighth bit of a number stands for the seven above it, too.
            500 => (mixed(0) >> 24 & 0x0101_0101_0101_0101) * 0xff,
            _ => (0..7).fold(u64::MAX, |word, salt| word & mixed(salt)),
        }
    }
}

impl Wants for Mixed {
    fn wanted(&self, _: Who, kind: Kind, out: &mut Wanted) {
        if !kind.is_read() {
            return;
        }
        let (from, to) = (out.from().div_ceil(self.unit), (out.end() / self.unit).min(self.units));
        for i in from / 64..to.div_ceil(64) {
            let (first, last) = (from.max(64 * i) - 64 * i, to.min(64 * (i + 1)) - 64 * i);
            let mut word = self.word(i) & u64::MAX << first & u64::MAX >> (64 - last);
            while word != 0 {
                let skip = u64::from(word.trailing_zeros());
                let run = u64::from((!(word >> skip)).trailing_zeros());
                out.set((64 * i + skip) * self.unit, (64 * i + skip + run) * self.unit);
                word &= (u64::MAX << skip).checked_shl(run as u32).unwrap_or(0);
            }
        }
    }

    fn any(&self, _: Who, kind: Kind) -> bool {
        kind.is_read()
    }
}

/// A drive, what is wanted of it and gaps between random requests.
struct Case {
    model: Model,
    wants: Mixed,
    regions: Regions,
    gaps: Vec<(Gap, Option<(u32, u16)>)>,
}

/// Drive, bytes of a unit, thousandths of the units that are wanted.
const CASES: [(&str, u64, u64); 18] = [
    ("atlas10k", 4_096, 1_000),
    ("atlas10k", 4_096, 500),
    ("atlas10k", 4_096, 10),
    ("atlas10k", 65_536, 1_000),
    ("atlas10k", 65_536, 500),
    ("atlas10k", 65_536, 10),
    ("hitachi-7k1000c", 4_096, 1_000),
    ("hitachi-7k1000c", 4_096, 500),
    ("hitachi-7k1000c", 4_096, 10),
    ("hitachi-7k1000c", 65_536, 1_000),
    ("hitachi-7k1000c", 65_536, 500),
    ("hitachi-7k1000c", 65_536, 10),
    ("nearline-20tb", 4_096, 1_000),
    ("nearline-20tb", 4_096, 500),
    ("nearline-20tb", 4_096, 10),
    ("nearline-20tb", 65_536, 1_000),
    ("nearline-20tb", 65_536, 500),
    ("nearline-20tb", 65_536, 10),
];

impl Case {
    fn new((disk, bytes, permille): (&str, u64, u64)) -> Case {
        let model = Model::new(&profile::builtin(disk).expect("a built-in drive")).expect("a drive that works");
        let unit = bytes / u64::from(model.sector_bytes);
        let capacity = model.geometry.capacity();
        let wants = Mixed { unit, units: capacity / unit, permille };
        // The bits of a scan that has not been rechecked: every search asks the task layer, the dear case.
        let mut regions = Regions::new(&model.geometry, 8);
        let range = Range { lbn: 0, count: wants.units * unit };
        regions.has_units(unit as u32, &[range]);
        regions.add(SessionId(0), &model.geometry, range);
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
        Case { model, wants, regions, gaps }
    }
}

#[divan::bench(args = CASES, sample_count = SAMPLES)]
fn headtime(bencher: Bencher, case: (&str, u64, u64)) {
    let Case { model, wants, regions, gaps } = Case::new(case);
    let (mut planner, mut prices, next) = (Planner::default(), Prices::new(&model), Cell::new(0));
    // As after a scan that has come so far: the rest is wanted, about the same everywhere.
    let capacity = model.geometry.capacity();
    prices.grain.set(wants.unit as u32);
    prices.bands.wanted(Range { lbn: 0, count: capacity });
    for lbn in (0..capacity).step_by(1 << 14) {
        prices.bands.gone(Range { lbn, count: ((1 << 14) * (1_000 - wants.permille) / 1_000).min(capacity - lbn) });
    }
    (0..256).for_each(|i| prices.bands.gap(capacity / 256 * i));
    let budget = budget(Algorithm::Headtime);
    bencher.bench_local(|| {
        let (gap, last_read) = &gaps[next.get() % GAPS];
        next.set(next.get() + 1);
        let habit = Habit::before(&model, Placement::Host, *last_read);
        let (wants, who) = (&wants, Who::Anyone);
        let widest = wants.unit as u32;
        let asked = Asked { model: &model, gap, habit, wants, who, exclude: &[], widest, prices: &prices };
        planner.search(&asked, &regions, budget)
    });
}

fn papers(bencher: Bencher, case: (&str, u64, u64), algorithm: Algorithm) {
    let Case { model, wants, regions, gaps } = Case::new(case);
    let policy = algorithm.policy().expect("one of the papers' algorithms");
    let (next, budget) = (Cell::new(0), budget(algorithm));
    bencher.bench_local(|| {
        let (gap, _) = &gaps[next.get() % GAPS];
        next.set(next.get() + 1);
        let rules = Placement::Host.rules();
        let (model, wants) = (&model, &wants);
        let look = Look { model, wants, gap, exclude: &[], rules, by_angle: false };
        let scene = Scene { look, regions: &regions, winner: Who::Anyone };
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
