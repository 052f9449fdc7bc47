//! Cost of filling a gap: examining one track, a quick pass, and the upkeep of the regions.
//!
//! Run with `cargo bench -p headtime-sched --bench fill`; under `cargo test` every benchmark runs
//! once.

use divan::Bencher;
use headtime_disk::{Kind, Model};
use headtime_sched::internals::candidate::{Look, Scratch};
use headtime_sched::internals::gap::Gap;
use headtime_sched::internals::regions::Regions;
use headtime_sched::internals::scene::Scene;
use headtime_sched::internals::search::Search;
use headtime_sched::internals::tasks::{Wants, Who};
use headtime_sched::internals::track::TrackMap;
use headtime_sched::internals::wanted::Wanted;
use headtime_sched::{Algorithm, Placement, SessionId, TaskRange};
use headtime_testkit::gap::any_gap;
use headtime_testkit::profiles::{between, rng};

fn main() {
    divan::main();
}

const UNIT: u64 = 64;

/// One task that wants the whole disk, with units of 32 KiB; each unit is still wanted with the
/// given percentage.
struct Scan(Vec<bool>);

impl Wants for Scan {
    fn wanted(&self, _: Who, kind: Kind, out: &mut Wanted) {
        if kind == Kind::Write {
            return;
        }
        let (first, end) = (out.from().div_ceil(UNIT), out.end() / UNIT);
        for unit in first..end {
            if self.0[unit as usize] {
                out.set(unit * UNIT, (unit + 1) * UNIT);
            }
        }
    }

    fn any(&self, _: Who, kind: Kind) -> bool {
        kind == Kind::Read
    }
}

struct Bed {
    model: Model,
    scan: Scan,
    regions: Regions,
    gaps: Vec<Gap>,
}

fn bed(profile: &str, percent: u64) -> Bed {
    let model = Model::new(&headtime_disk::profile::builtin(profile).unwrap()).unwrap();
    let mut rng = rng(7);
    let units = model.geometry.capacity() / UNIT;
    let scan = Scan((0..units).map(|_| between(&mut rng, 0, 99) < percent).collect());
    let mut regions = Regions::new(&model.geometry, 8);
    regions.has_units(UNIT as u32, &[TaskRange { lbn: 0, count: units * UNIT }]);
    for (unit, _) in (0..).zip(&scan.0).filter(|u| *u.1) {
        regions.add(SessionId(1), &model.geometry, TaskRange { lbn: unit * UNIT, count: UNIT });
    }
    let gaps = (0..256).map(|_| any_gap(&model, &mut rng)).collect();
    Bed { model, scan, regions, gaps }
}

fn look<'a>(bed: &'a Bed, gap: &'a Gap) -> Look<'a, Scan> {
    Look {
        model: &bed.model,
        wants: &bed.scan,
        gap,
        exclude: &[],
        rules: Placement::Host.rules(),
        by_angle: false,
        grain: bed.regions.grain(),
    }
}

#[divan::bench(args = [100, 30, 2], sample_count = 200, sample_size = 500)]
fn one_track(bencher: Bencher, percent: u64) {
    let bed = bed("cheetah36es", percent);
    let mut scratch = Scratch::default();
    let mut i = 0usize;
    bencher.bench_local(|| {
        i += 1;
        let gap = &bed.gaps[i % bed.gaps.len()];
        let look = look(&bed, gap);
        let (a, b) = (gap.source().0, gap.destination().0);
        let track = (a.min(b) + (i as u32 * 7) % (a.abs_diff(b) + 1), (i % 2) as u16);
        let window = look.window(track, Kind::Read)?;
        let map = TrackMap::at(&bed.model.geometry, track)?;
        look.on_track(&map, &window, (Who::Anyone, Kind::Read), &mut scratch, |_, _| true)
    });
}

/// A quick pass that costs 128: 64 tracks, each queried once.
#[divan::bench(args = [
    (Algorithm::BwGreedy, 100), (Algorithm::BwGreedy, 30), (Algorithm::BwGreedy, 2),
    (Algorithm::AngleEpFrag, 100), (Algorithm::AngleEpFrag, 30), (Algorithm::AngleEpFrag, 2),
], sample_count = 200, sample_size = 20)]
fn quick_pass(bencher: Bencher, (algorithm, percent): (Algorithm, u64)) {
    let bed = bed("cheetah36es", percent);
    let mut i = 0usize;
    bencher.bench_local(|| {
        i += 1;
        let gap = &bed.gaps[i % bed.gaps.len()];
        let scene = Scene { look: look(&bed, gap), regions: &bed.regions, winner: Who::Anyone };
        let mut search = Search::begin(algorithm.policy().unwrap(), &scene);
        search.step(&scene, 128);
        search.best()
    });
}

#[divan::bench(args = ["cheetah36es", "nearline-20tb"], sample_count = 10)]
fn add_a_whole_disk(bencher: Bencher, profile: &str) {
    let model = Model::new(&headtime_disk::profile::builtin(profile).unwrap()).unwrap();
    bencher.bench_local(|| {
        let mut regions = Regions::new(&model.geometry, 8);
        regions.add(SessionId(1), &model.geometry, TaskRange { lbn: 0, count: model.geometry.capacity() });
        regions
    });
}

#[divan::bench(args = [100, 30, 2], sample_count = 200, sample_size = 500)]
fn recheck_a_unit(bencher: Bencher, percent: u64) {
    let mut bed = bed("cheetah36es", percent);
    let units = bed.scan.0.len() as u64;
    let mut i = 0u64;
    bencher.bench_local(|| {
        i = (i + 7_919) % units;
        let range = TaskRange { lbn: i * UNIT, count: UNIT };
        bed.regions.recheck(SessionId(1), &bed.model.geometry, &bed.scan, range);
    });
}
