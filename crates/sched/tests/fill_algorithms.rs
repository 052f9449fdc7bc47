//! The regions, and the papers' four algorithms over the common search, against slow and obvious counterparts.

use headtime_disk::command::Kind;
use headtime_disk::geometry::Geometry;
use headtime_disk::model::Model;
use headtime_disk::profile::{GeometrySpec, Layout, SectorAddress, Slip, SpareUnit, Sparing};
use headtime_disk::time::Time;
use headtime_sched::fill::Algorithm;
use headtime_sched::fill::candidate::Look;
use headtime_sched::fill::gap::{Gap, Leg};
use headtime_sched::fill::placement::{Placement, Rules};
use headtime_sched::fill::regions::Regions;
use headtime_sched::fill::search::{Scene, Search};
use headtime_sched::tasks::{Range, SessionId, Who};
use headtime_testkit::gap::{Feasible, Wishes, any_gap, any_wishes, every_leg};
use headtime_testkit::profiles::{between, layouts, plain_profile, rng, small_geometry, with_all_overheads};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A small drive; one in three has sectors that were slipped and remapped, and spares.
fn drive(layout: Layout, seed: u64) -> (Model, Xoshiro256PlusPlus) {
    let mut rng = rng(seed);
    let surfaces = between(&mut rng, 1, 4) as u16;
    let mut geometry = small_geometry(layout, surfaces, &mut rng);
    if between(&mut rng, 0, 2) == 0 {
        add_holes(&mut geometry, &mut rng);
    }
    let profile = plain_profile(geometry, &mut rng);
    let profile = if between(&mut rng, 0, 1) == 0 { profile } else { with_all_overheads(profile, &mut rng) };
    (Model::new(&profile).unwrap(), rng)
}

fn add_holes(geometry: &mut GeometrySpec, rng: &mut Xoshiro256PlusPlus) {
    for zone in &mut geometry.zones {
        zone.sparing = Sparing { spares: 3, unit: SpareUnit::Track, slips_are_extra: false, ..Sparing::NONE };
        let cylinder = between(rng, u64::from(zone.first_cylinder), u64::from(zone.last_cylinder)) as u32;
        zone.slips = (7..9).map(|sector| Slip::Sector(SectorAddress { cylinder, surface: 0, sector })).collect();
    }
    // To the last sector of a track on which nothing was slipped.
    let cylinder = (3..20).find(|c| !geometry.zones[0].slips.iter().any(|s| at_cylinder(s, *c))).unwrap();
    let sector = geometry.zones[0].sectors_per_track[0] - 1;
    geometry.remaps = vec![(between(rng, 5, 200), SectorAddress { cylinder, surface: 0, sector })];
}

fn at_cylinder(slip: &Slip, cylinder: u32) -> bool {
    matches!(slip, Slip::Sector(at) if at.cylinder == cylinder)
}

fn regions_of(model: &Model, wishes: &Wishes, per_cell: u32) -> Regions {
    let mut regions = Regions::new(&model.geometry, per_cell);
    for w in &wishes.list {
        regions.has_unit(w.unit);
        for (low, high) in w.units() {
            regions.add(w.session, &model.geometry, Range { lbn: low, count: high - low });
        }
    }
    regions
}

/// Regions in which a sector lies, from its place alone.
fn regions_of_sector(geometry: &Geometry, lbn: u64, per_cell: u32) -> (u32, u16, u64) {
    let at = geometry.locate(lbn).unwrap();
    let region = |turn: u64| (u128::from(turn) * u128::from(per_cell)) >> 64;
    let width = ((1u128 << 64) / u128::from(at.spt)) as u64;
    let mut mask = 0;
    // A sector is narrower than a region or not: a few points on it, its ends among them, meet every region it touches.
    for k in 0..=256u64 {
        let inside = ((u128::from(width - 1) * u128::from(k)) / 256) as u64;
        mask |= 1u64 << region(at.angle.0.wrapping_add(inside));
    }
    (at.cylinder, at.surface, mask)
}

/// By cell: the regions in which `who` has pending sectors that were not remapped.
fn expected_masks(regions: &Regions, geometry: &Geometry, wishes: &Wishes, who: Who) -> Vec<u64> {
    let mut masks = vec![0; regions.cells().count() as usize];
    for w in wishes.list.iter().filter(|w| who == Who::Anyone && !w.hidden || who == Who::Session(w.session)) {
        for lbn in w.units().flat_map(|(low, high)| low..high).filter(|l| !geometry.is_remapped(*l)) {
            let (cylinder, surface, mask) = regions_of_sector(geometry, lbn, regions.per_cell());
            masks[regions.cells().of(cylinder, surface) as usize] |= mask;
        }
    }
    masks
}

#[test]
fn regions_hide_nothing_and_forget_what_is_done() {
    let mut remapped = 0;
    for seed in 0..84u64 {
        println!("seed {seed}");
        let (model, mut rng) = drive(layouts()[seed as usize % 7], seed);
        let geometry = &model.geometry;
        let per_cell = 1 << between(&mut rng, 0, 6);
        let mut regions = Regions::new(geometry, per_cell);
        let sessions = 3;
        let mut wishes = any_wishes(geometry.capacity(), sessions, &mut rng);
        for w in &mut wishes.list {
            w.pending.fill(true);
            regions.has_unit(w.unit);
            regions.add(w.session, geometry, w.range);
        }
        let exact = (0..geometry.capacity()).all(|l| !geometry.is_remapped(l));
        remapped += u32::from(!exact);
        for round in 0..12 {
            for who in (0..sessions).map(|s| Who::Session(SessionId(s))).chain([Who::Anyone]) {
                let expected = expected_masks(&regions, geometry, &wishes, who);
                for (cell, expected) in (0..).zip(expected) {
                    let mask = regions.mask(who, cell);
                    assert_eq!(mask & expected, expected, "round {round}, {who:?}, cell {cell}: hidden");
                    assert!(!exact || mask == expected, "round {round}, {who:?}, cell {cell}: {mask:x} {expected:x}");
                }
            }
            match round {
                4 => {
                    // One session is suspended; what is done meanwhile is forgotten all the same.
                    regions.suspend(SessionId(1), true);
                    wishes.list.iter_mut().filter(|w| w.session.0 == 1).for_each(|w| w.hidden = true);
                }
                8 => {
                    regions.suspend(SessionId(1), false);
                    wishes.list.iter_mut().for_each(|w| w.hidden = false);
                }
                10 => {
                    regions.drop_session(SessionId(0));
                    wishes.list.retain(|w| w.session.0 != 0);
                }
                _ => {
                    for _ in 0..6 {
                        let lbn = between(&mut rng, 0, geometry.capacity() - 1);
                        let most = if between(&mut rng, 0, 3) == 0 { geometry.capacity() } else { 200 };
                        let count = between(&mut rng, 1, most).min(geometry.capacity() - lbn);
                        for kind in [Kind::Read, Kind::Write] {
                            for (session, done) in wishes.complete(kind, Range { lbn, count }) {
                                regions.recheck(session, geometry, &wishes, done);
                            }
                        }
                    }
                }
            }
        }
        for session in 0..sessions {
            regions.drop_session(SessionId(session));
        }
        assert_eq!(regions.memory().session_bitmaps + regions.memory().union_bitmap, 0);
        assert_eq!(regions.next_up(Who::Anyone, 0, regions.all()), None);
    }
    assert!(remapped > 10, "only {remapped} drives had a remapped sector");
}

#[test]
fn a_whole_disk_of_twenty_terabytes_takes_a_byte_a_cell() {
    let model = Model::new(&headtime_disk::profile::builtin("nearline-20tb").unwrap()).unwrap();
    let geometry = &model.geometry;
    let mut regions = Regions::new(geometry, 8);
    regions.add(SessionId(1), geometry, Range { lbn: 0, count: geometry.capacity() });
    regions.add(SessionId(2), geometry, Range { lbn: 123_456_789, count: 256 });
    let cells = regions.cells().count();
    assert!(cells >= geometry.cylinders() && cells < geometry.cylinders() + 20_000, "{cells}");
    let memory = regions.memory();
    assert!(memory.session_bitmaps < cells as usize * 11 / 10, "{memory:?}");
    assert!(memory.total() < cells as usize * 22 / 10, "{memory:?}");
    // Behind the end of a zone's data there are tracks of spares only.
    let mut cell = regions.next_up(Who::Session(SessionId(1)), 0, 0xff);
    let mut full = 0;
    for expected in (0..cells).filter(|c| regions.cells().lbns(geometry, *c).is_some()) {
        assert_eq!(cell, Some(expected));
        full += u32::from(regions.mask(Who::Session(SessionId(1)), expected) == 0xff);
        cell = regions.next_up(Who::Session(SessionId(1)), expected + 1, 0xff);
    }
    assert_eq!(cell, None);
    assert!(full > cells / 100 * 99, "{full} of {cells}");
    regions.drop_session(SessionId(1));
    let little = regions.memory();
    assert!(little.total() < 2_000, "{little:?}");
}

/// How an algorithm values a leg, by the words of seed 002 section 4.4.
fn score_of(algorithm: Algorithm, case: &Case, pending: &[[bool; 2]], f: &Feasible) -> [u64; 3] {
    let geometry = &case.model.geometry;
    let track = match f.leg.merged {
        true => geometry.track(case.gap.dest.cylinder, case.gap.dest.surface).unwrap(),
        false => geometry.track_of(f.leg.lbn).unwrap(),
    };
    match algorithm {
        Algorithm::BwGreedy | Algorithm::BwEpGreedy => [u64::from(f.sectors), 0, 0],
        Algorithm::AngleEpGreedy => [f.turn, 0, 0],
        _ => {
            let (low, high) = (track.first_lbn, track.first_lbn + u64::from(track.lbns));
            let all: u32 = pending[low as usize..high as usize].iter().flatten().map(|p| u32::from(*p)).sum();
            let taken = (f.leg.lbn..).zip(&f.wanted).filter(|(l, w)| **w && (low..high).contains(l)).count() as u32;
            [u64::from(all == taken), f.turn, u64::from(u32::MAX - (all - taken))]
        }
    }
}

struct Case {
    model: Model,
    gap: Gap,
    wishes: Wishes,
    regions: Regions,
    exclude: Vec<Range>,
}

impl Case {
    fn new(seed: u64, sessions: u32) -> Case {
        let (model, mut rng) = drive(layouts()[seed as usize % 7], 1_000 + seed);
        let gap = any_gap(&model, &mut rng);
        let wishes = any_wishes(model.geometry.capacity(), sessions, &mut rng);
        let regions = regions_of(&model, &wishes, 1 << between(&mut rng, 0, 6));
        let exclude = (0..between(&mut rng, 0, 2)).map(|_| {
            let near = if between(&mut rng, 0, 1) == 0 { gap.dest.lbn } else { model.geometry.capacity() / 2 };
            Range { lbn: (near + between(&mut rng, 0, 120)).saturating_sub(80), count: between(&mut rng, 1, 9) }
        });
        let exclude = exclude.filter(|e| !e.overlaps(&Range { lbn: gap.dest.lbn, count: 64 })).collect();
        Case { model, gap, wishes, regions, exclude }
    }

    fn scene(&self, rules: Rules, winner: Who) -> Scene<'_, Wishes> {
        let look = Look {
            model: &self.model,
            wants: &self.wishes,
            gap: &self.gap,
            exclude: &self.exclude,
            rules,
            by_angle: false,
            not_before: Time::ZERO,
        };
        Scene { look, regions: &self.regions, winner }
    }

    fn exhausted(&self, algorithm: Algorithm, rules: Rules, winner: Who) -> Search {
        let scene = self.scene(rules, winner);
        let mut search = Search::begin(algorithm.policy().unwrap(), &scene);
        search.step(&scene, u64::MAX);
        assert!(search.exhausted());
        search
    }

    /// By LBN: is a read, is a write pending?
    fn pending(&self, who: Who) -> Vec<[bool; 2]> {
        let mut flags = vec![[false; 2]; self.model.geometry.capacity() as usize];
        for (i, kind) in [Kind::Read, Kind::Write].into_iter().enumerate() {
            for (low, high) in self.wishes.units(who, kind) {
                (low..high).for_each(|l| flags[l as usize][i] = true);
            }
        }
        flags
    }

    fn every(&self, rules: Rules, who: Who) -> Vec<Feasible> {
        every_leg(&self.model, &self.gap, &self.wishes, who, rules, &self.exclude)
    }

    /// What a plan of one leg brings, counted slowly.
    fn value(&self, leg: Leg, who: Who) -> Feasible {
        Feasible::of(&self.model, &self.gap, &self.wishes.units(who, leg.kind), leg)
    }
}

const FOUR: [Algorithm; 4] =
    [Algorithm::BwGreedy, Algorithm::BwEpGreedy, Algorithm::AngleEpGreedy, Algorithm::AngleEpFrag];

#[test]
fn with_time_enough_each_algorithm_finds_what_an_exhaustive_search_finds() {
    let rules = Placement::Host.rules();
    let (mut found, mut merged, mut writes, mut straddling) = (0, 0, 0, 0);
    for seed in 0..420 {
        println!("seed {seed}");
        let case = Case::new(seed, 1);
        let every = case.every(rules, Who::Anyone);
        let pending = case.pending(Who::Anyone);
        for algorithm in FOUR {
            let score = |f: &Feasible| score_of(algorithm, &case, &pending, f);
            let best = every.iter().max_by_key(|f| score(f));
            let Some((candidate, _)) = case.exhausted(algorithm, rules, Who::Anyone).best_candidate() else {
                assert_eq!(best, None, "{algorithm:?} found nothing");
                continue;
            };
            let [leg] = candidate.plan.legs() else { panic!("{candidate:?}") };
            let mine = case.value(*leg, Who::Anyone);
            assert_eq!((candidate.plan.sectors, candidate.turn), (mine.sectors, mine.turn));
            assert!(every.contains(&mine), "{algorithm:?}: {mine:?} is no leg");
            assert_eq!(score(&mine), score(best.unwrap()), "{algorithm:?}: {leg:?} instead of {:?}", best.unwrap().leg);
            found += 1;
            merged += u32::from(leg.merged);
            writes += u32::from(leg.kind == Kind::Write);
            straddling += u32::from(case.model.place(leg.lbn, leg.count, leg.kind).unwrap().tracks > 1);
        }
    }
    println!("{found} plans: {merged} merged, {writes} of writes, {straddling} over a track's end");
    assert!(found > 800 && merged > 50 && writes > 100 && straddling > 30);
}
#[test]
fn debug_one() {
    let Ok(seed) = std::env::var("SEED") else { return };
    let case = Case::new(seed.parse().unwrap(), 1);
    let every = case.every(Placement::Host.rules(), Who::Anyone);
    let best = every.iter().max_by_key(|f| f.sectors).unwrap();
    let s = case.exhausted(Algorithm::BwGreedy, Placement::Host.rules(), Who::Anyone);
    let m = &case.model;
    println!("gap {:?}\nbest {best:?}\nmine {:?}", case.gap, s.best_candidate());
    println!(
        "on arrival {} {} exclude {:?} period {} head_switch {}",
        m.mechanics.read_on_arrival,
        m.mechanics.write_on_arrival,
        case.exclude,
        m.mechanics.rotation.period(),
        m.mechanics.head_switch
    );
    let l = best.leg;
    for r in m.geometry.runs(l.lbn, l.count as u64) {
        println!("{r:?} {:?}", m.geometry.track_of(r.lbn));
    }
    let t = (m.geometry.locate(l.lbn).unwrap().cylinder, m.geometry.locate(l.lbn).unwrap().surface);
    println!(
        "{:?} {:?}",
        case.gap.window(m, t, l.kind),
        case.gap.merge_window(m, case.gap.head(l.kind), case.gap.head(l.kind).at)
    );
    println!("ends {:?} {:?}", case.gap.end_of(m, &[l], false), case.gap.end_of(m, &[l], true));
    println!("gap dest place {:?}", m.place(l.lbn, l.count + case.gap.dest.count, l.kind));
}
