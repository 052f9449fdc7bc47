//! headtime's own planner against an exhaustive search, and its plans on a drive.

use headtime_disk::profile::{Prefetch, Profile};
use headtime_disk::{Angle, Dur, Head, Kind, Model, Time};
use headtime_sched::internals::conservatism::Margins;
use headtime_sched::internals::front::Front;
use headtime_sched::internals::gap::{Gap, Leg, Plan};
use headtime_sched::internals::habit::{Habit, holds};
use headtime_sched::internals::headtime::{Planner, Settings};
use headtime_sched::internals::planner as fill_planner;
use headtime_sched::internals::prices::Prices;
use headtime_sched::internals::regions::Regions;
use headtime_sched::internals::tasks::Who;
use headtime_sched::internals::visit::{PlanContext, Point};
use headtime_sched::internals::wanted::Wanted;
use headtime_sched::{Algorithm, FillConfig, Placement, SessionId, TaskRange};
use headtime_testkit::gap::{Wish, Wishes, any_gap};
use headtime_testkit::gap_exhaustive::{UnitList, best_plan};
use headtime_testkit::gap_replay::Situation;
use headtime_testkit::profiles::{between, layouts, plain_cache, plain_profile, rng, small_geometry};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The cost limit of a search: quick pass and refinement, by FILL's defaults.
fn budget() -> u64 {
    let (quick, more) = FillConfig::new(Algorithm::Headtime).budget;
    u64::from(quick) + u64::from(more)
}

/// A small drive on a fast bus, with `same_track_prefetch_delays`.
fn drive(layout: usize, seed: u64) -> Profile {
    let mut rng = rng(seed);
    let geometry = small_geometry(layouts()[layout], 3, &mut rng);
    let mut p = plain_profile(geometry, &mut rng);
    p.mechanics.rpm = (10_000, 1);
    p.mechanics.write_settle_ns = p.mechanics.write_settle_ns.max(0);
    p.electronics.bus.read_block_ps = 3_200_000;
    p.electronics.bus.write_block_ps = 3_200_000;
    p.electronics.cache = plain_cache();
    p.electronics.cache.prefetch = Prefetch::None;
    p.electronics.cache.same_track_prefetch_delays = seed.is_multiple_of(2);
    p
}

fn regions(model: &Model, units: &UnitList, unit: u64) -> Regions {
    let mut regions = Regions::new(&model.geometry, 8);
    regions.has_units(unit as u32, &[TaskRange { lbn: 0, count: unit }]);
    for (_, u) in &units.units {
        regions.add(SessionId(0), &model.geometry, *u);
    }
    regions
}

fn units(rng: &mut Xoshiro256PlusPlus, model: &Model, unit: u64, kind: Kind) -> UnitList {
    let percent = [100, 50, 10, 3][between(rng, 0, 3) as usize];
    UnitList::of_disk(model.geometry.capacity(), unit, kind, |_| between(rng, 1, 100) <= percent)
}

fn asked(rng: &mut Xoshiro256PlusPlus, model: &Model) -> (Kind, u64, u32) {
    let count = between(rng, 1, 12);
    let lbn = between(rng, 0, model.geometry.capacity() - count);
    (if between(rng, 0, 2) == 0 { Kind::Write } else { Kind::Read }, lbn, count as u32)
}

/// Returns a gap between a read and a request at random places, the habit of the drive in it, and
/// the request; `None`: no gap.
fn gap_behind_a_read(rng: &mut Xoshiro256PlusPlus, model: &Model) -> Option<(Gap, Habit, (Kind, u64, u32))> {
    let (kind, lbn, count) = asked(rng, model);
    let head = Head {
        cylinder: between(rng, 0, 39) as u32,
        surface: between(rng, 0, 2) as u16,
        angle: Angle(between(rng, 0, u64::MAX - 1)),
        at: Time(1_000_000_000),
    };
    let dest = model.place(lbn, count, kind).unwrap();
    let margins = Margins::fixed(Dur::from_us(50));
    let gap = Gap::before(model, (head, head), &dest, kind, Time::ZERO, &margins)?;
    let habit = Habit::before(model, Placement::Host, Some((head.cylinder, head.surface)));
    Some((gap, habit, (kind, lbn, count)))
}

#[test]
fn no_plan_makes_the_request_or_the_one_behind_it_later() {
    let (mut plans, mut own, mut merged, mut several) = (0, 0, 0, 0);
    for layout in 0..layouts().len() {
        for seed in 0..6u64 {
            println!("layout {layout} seed {seed}");
            let profile = drive(layout, seed);
            let model = Model::new(&profile).unwrap();
            let mut rng = rng(1_000 + seed);
            let mut planner = Planner::default();
            let mut prices = Prices::new(&model);
            prices.grain.set(4);
            for _ in 0..60 {
                let s = Situation {
                    profile: &profile,
                    model: &model,
                    before: asked(&mut rng, &model),
                    last: asked(&mut rng, &model),
                    request: asked(&mut rng, &model),
                    next: asked(&mut rng, &model),
                    inside: false,
                };
                let units = units(&mut rng, &model, 4, Kind::Read);
                // What the foreground has read or is reading is in the drive's cache, and no longer
                // wanted.
                let at_drive = [s.before, s.last].map(|(_, lbn, count)| TaskRange { lbn, count: u64::from(count) });
                let Some((gap, last_read)) = s.gap(&Margins::fixed(Dur::from_us(20))) else { continue };
                let habit = Habit::before(&model, Placement::Host, last_read);
                let regions = regions(&model, &units, 4);
                let q = PlanContext {
                    model: &model,
                    gap: &gap,
                    habit,
                    wants: &units,
                    who: Who::Anyone,
                    exclude: &at_drive,
                    widest: 4,
                    prices: &prices,
                };
                let Some(found) = planner.search(&q, &regions, budget()) else { continue };
                let legs = found.plan.legs();
                let (with, without) = (s.replay(legs), s.replay(&[]));
                assert!(with.request <= without.request + Dur(2_000), "{legs:?} {with:?} {without:?}");
                assert!(with.next <= without.next + Dur(2_000), "{legs:?} {with:?} {without:?}");
                plans += 1;
                own += usize::from(!legs[0].merged);
                merged += usize::from(legs.iter().any(|l| l.merged));
                several += usize::from(legs.len() > 1);
            }
        }
    }
    println!("{plans} plans, {own} begin with a command of their own, {merged} merge, {several} of several legs");
    assert!(own > 100 && merged > 100 && several > 20);
}

#[test]
fn plans_are_worth_what_an_exhaustive_search_finds() {
    let (mut ours, mut quickly, mut best_of_all, mut gaps, mut worse) = (0u64, 0u64, 0u64, 0, 0);
    for layout in 0..layouts().len() {
        for seed in 0..24u64 {
            println!("layout {layout} seed {seed}");
            let model = Model::new(&drive(layout, seed)).unwrap();
            let mut rng = rng(2_000 + seed);
            let mut planner = Planner::default();
            planner.settings = Settings { beam: 4, second: 6, cuts: 4, patience: u64::MAX, ..Settings::default() };
            let mut quick = Planner::default();
            let mut prices = Prices { crossing: 0, fragment: Dur::ZERO, ..Prices::new(&model) };
            prices.grain.set(8);
            for _ in 0..12 {
                let unit = 8;
                let units =
                    UnitList::of_disk(model.geometry.capacity(), unit, Kind::Read, |_| between(&mut rng, 0, 3) == 0);
                let Some((gap, habit, (kind, lbn, count))) = gap_behind_a_read(&mut rng, &model) else { continue };
                let regions = regions(&model, &units, unit);
                let q = PlanContext {
                    model: &model,
                    gap: &gap,
                    habit,
                    wants: &units,
                    who: Who::Anyone,
                    exclude: &[],
                    widest: 8,
                    prices: &prices,
                };
                let value = |l: &Leg| {
                    let more = if l.merged && kind.is_read() { u64::from(count) } else { 0 };
                    let mut range = l.range();
                    range.count += more;
                    // Head time, as the planner counts it: that of the track where the leg is
                    // sought.
                    let at = if l.merged { lbn } else { l.lbn };
                    let spt = model.geometry.track_of(at).unwrap().spt;
                    model.mechanics.rotation.sectors(u64::from(units.within(l.kind, range)), spt).0
                };
                let (best_legs, best) = best_plan(&gap, &units, 2, 60, |legs| holds(&model, &gap, habit, legs), value);
                let plan = planner.search(&q, &regions, 1_000);
                let found = plan.map_or(0, |f| f.plan.legs().iter().map(value).sum());
                if found < best {
                    println!("{found} of {best}: {:?} instead of {best_legs:?}", plan.map(|p| p.plan.legs().to_vec()));
                }
                assert!(found <= best, "{found} of {best}");
                for own in plan.iter().flat_map(|f| f.plan.legs()).filter(|l| !l.merged) {
                    let parts = [own.lbn, own.range().end()].map(|lbn| lbn % unit);
                    assert_eq!(parts, [0, 0], "{own:?} takes a part of a unit");
                }
                assert!(best == 0 || found > 0, "nothing found where {best_legs:?} fits");
                gaps += 1;
                worse += usize::from(found < best);
                ours += found;
                quickly +=
                    quick.search(&q, &regions, budget()).map_or(0, |f| f.plan.legs().iter().map(value).sum::<u64>());
                best_of_all += best;
            }
        }
    }
    println!("{gaps} gaps, {worse} worse than the best, {ours} of {best_of_all} ns");
    println!("as set by default: {quickly}");
    assert!(ours * 100 >= best_of_all * 99, "{ours} of {best_of_all} ns");
    assert!(quickly * 100 >= best_of_all * 99, "as set by default: {quickly} of {best_of_all} ns");
}

/// Returns the prices of a drive of which `percent` of the sectors are wanted, evenly distributed.
fn prices_at(model: &Model, percent: u64, unit: u64) -> Prices {
    let capacity = model.geometry.capacity();
    let mut prices = Prices::new(model);
    prices.grain.set(unit as u32);
    for lbn in (0..capacity).step_by(100) {
        prices.bands.wanted(TaskRange { lbn, count: percent.min(capacity - lbn) });
    }
    (0..256).for_each(|i| prices.bands.gap(capacity / 256 * i));
    prices
}

/// A search does not query the neighbours of a leg where it knows them, nor merging where too
/// little can be had. Both only save queries.
#[test]
fn what_a_search_does_not_ask_for_changes_nothing() {
    let (mut legs, mut fronts) = (0, 0);
    for layout in 0..layouts().len() {
        for seed in 0..8u64 {
            let model = Model::new(&drive(layout, seed)).unwrap();
            let mut rng = rng(3_000 + seed);
            // With an exclusion, wherever it is, every neighbour is queried.
            let beyond = [TaskRange { lbn: model.geometry.capacity() + 1_000, count: 1 }];
            for (unit, percent) in [(1, 40), (4, 10), (8, 3), (8, 60), (32, 30)] {
                let prices = prices_at(&model, percent, unit);
                let wanted = |_: u64| between(&mut rng, 1, 100) <= percent;
                let units = UnitList::of_disk(model.geometry.capacity(), unit, Kind::Read, wanted);
                let regions = regions(&model, &units, unit);
                for _ in 0..8 {
                    let Some((gap, habit, (_, lbn, _))) = gap_behind_a_read(&mut rng, &model) else { continue };
                    let q = PlanContext {
                        model: &model,
                        gap: &gap,
                        habit,
                        wants: &units,
                        who: Who::Anyone,
                        exclude: &[],
                        widest: unit as u32,
                        prices: &prices,
                    };
                    let found = Planner::default().search(&q, &regions, budget());
                    let asking = Planner::default().search(&PlanContext { exclude: &beyond, ..q }, &regions, budget());
                    assert_eq!(found, asking, "layout {layout} seed {seed} unit {unit}");
                    legs += usize::from(found.is_some_and(|f| !f.plan.legs()[0].merged));
                    // The earlier the request's command may begin, the more merging is worth,
                    // except for one fragment.
                    let Some(front) = Front::new(&q) else { continue };
                    let merged = |lo| front.merged(&q, lo, &mut Wanted::new(), &mut Wanted::new());
                    let Some(first) = front.reaches(&q, &Point::start(&q)) else { continue };
                    let most = merged(first).map_or(0, |m| m.value + prices.fragment_on(gap.dest.cylinder));
                    for lo in first..lbn {
                        assert!(merged(lo).is_none_or(|m| m.value <= most), "{lo}, from {first} on {most}");
                    }
                    fronts += 1;
                }
            }
        }
    }
    println!("{legs} plans with a command of their own, {fronts} fronts");
    assert!(legs > 400 && fronts > 200);
}

/// Two reads that end on one track, of which the second does not end with the track, delay what
/// follows.
#[test]
fn a_read_on_the_track_of_the_last_read_is_late_on_the_drive_and_does_not_hold() {
    let (mut late, mut seen) = (0, 0);
    for seed in (0..40u64).step_by(2) {
        println!("seed {seed}");
        let profile = drive(0, seed);
        let model = Model::new(&profile).unwrap();
        let mut rng = rng(3_000 + seed);
        for _ in 0..40 {
            let (_, lbn, count) = asked(&mut rng, &model);
            let last = (Kind::Read, lbn, count);
            let s = Situation {
                profile: &profile,
                model: &model,
                before: asked(&mut rng, &model),
                last,
                request: asked(&mut rng, &model),
                next: asked(&mut rng, &model),
                inside: false,
            };
            let leg = Leg { kind: Kind::Read, lbn: lbn + u64::from(count) + 1, count: 2, merged: false };
            if leg.range().end() > model.geometry.capacity() {
                continue;
            }
            let Some((gap, last_read)) = s.gap(&Margins::fixed(Dur::ZERO)) else { continue };
            // Without the habit it would be in time.
            if !holds(&model, &gap, Habit::NONE, &[leg]) {
                continue;
            }
            seen += 1;
            if s.replay(&[leg]).request > s.replay(&[]).request + Dur(2_000) {
                late += 1;
                let habit = Habit::before(&model, Placement::Host, last_read);
                assert!(!holds(&model, &gap, habit, &[leg]), "{leg:?} behind {last:?}");
                assert_eq!(Habit::before(&model, Placement::Firmware, last_read), Habit::NONE);
            }
        }
    }
    println!("{late} of {seen} would have been late");
    assert!(late > 10, "{late} of {seen}");
}

/// Thereska 2003 section 4.5: what the lottery's winner cannot use is available to the others.
#[test]
fn a_gap_that_the_winner_cannot_use_serves_others() {
    let (mut others, mut own) = (0, 0);
    for seed in 0..40u64 {
        println!("seed {seed}");
        let model = Model::new(&drive(seed as usize % layouts().len(), seed)).unwrap();
        let mut rng = rng(5_000 + seed);
        let gap = any_gap(&model, &mut rng);
        let units = (model.geometry.capacity() / 8) as u32;
        // The winner wants one unit somewhere, the other session everything.
        let lbn = between(&mut rng, 0, u64::from(units) - 1) * 8;
        let list = vec![Wish::new(0, Kind::Read, lbn, 1, 8), Wish::new(1, Kind::Read, 0, units, 8)];
        let wishes = Wishes { list };
        let mut regions = Regions::new(&model.geometry, 8);
        wishes.list.iter().for_each(|w| regions.has_units(8, &[w.range]));
        wishes.list.iter().for_each(|w| regions.add(w.session, &model.geometry, w.range));
        let config = FillConfig::new(Algorithm::Headtime);
        let task = |winner| fill_planner::Task {
            model: &model,
            gap: &gap,
            wants: &wishes,
            regions: &regions,
            winner: SessionId(winner),
            exclude: &[],
            last_read: None,
            legs_before: 0,
            front_only: false,
        };
        let plan = |winner| fill_planner::Planner::new(&config, &model).plan(&task(winner));
        let (first, second) = (plan(0), plan(1));
        let brings = |p: &Plan| p.legs().iter().any(|l| l.lbn <= lbn && l.range().end() >= lbn + 8);
        match first {
            // Few gaps reach the one unit that the winner wants; those that do bring it.
            Some(p) if brings(&p) => own += 1,
            Some(p) => {
                others += 1;
                assert!(second.is_some_and(|s| s.sectors >= p.sectors), "{p:?} {second:?}");
            }
            None => assert!(second.is_none(), "{second:?}"),
        }
    }
    println!("{own} for the winner, {others} for others");
    assert!(others > 10, "{others}");
}

/// Bounds may exclude what cannot be better, but not everything: a scan would never end with a unit
/// that no search can find.
#[test]
fn a_gap_into_which_a_unit_fits_is_never_left_empty() {
    let mut cases: Vec<(Model, TaskRange, u64)> = Vec::new();
    for layout in 0..layouts().len() {
        for seed in 0..12 {
            let model = Model::new(&drive(layout, seed)).unwrap();
            let all = TaskRange { lbn: 0, count: model.geometry.capacity() };
            cases.push((model, all, 24));
        }
    }
    // Short seeks are quicker than a head switch on this one, so the surfaces of a cylinder are not
    // equally near.
    let model = Model::new(&headtime_disk::profile::builtin("ultrastar36z15").unwrap()).unwrap();
    let middle = model.geometry.capacity() / 2;
    cases.extend([64, 128, 256].map(|unit| (model.clone(), TaskRange { lbn: middle, count: 60_000 }, unit)));
    let (mut fits, mut gaps) = (0, 0);
    for (i, (model, range, unit)) in cases.iter().enumerate() {
        println!("case {i}");
        let mut rng = rng(7_000 + i as u64);
        let count = range.count / unit;
        let all = UnitList::of_disk(count * unit, *unit, Kind::Read, |_| between(&mut rng, 1, 100) <= 30);
        let shifted =
            all.units.iter().map(|(k, u)| (*k, TaskRange { lbn: u.lbn + range.lbn, count: u.count })).collect();
        let units = UnitList { units: shifted };
        let regions = regions(model, &units, *unit);
        let mut prices = Prices::new(model);
        prices.grain.set(*unit as u32);
        for n in 0..if i < 84 { 24 } else { 150 } {
            // Requests in one half only: units in the other may be in another zone, where they pass
            // in a different time.
            let half = n % 2 * (range.count / 2 - 4);
            let place = |rng: &mut Xoshiro256PlusPlus| range.lbn + half + between(rng, 0, range.count / 2);
            let from = model.place(place(&mut rng), 1, Kind::Read).unwrap();
            let dest = model.place(place(&mut rng), 4, Kind::Read).unwrap();
            let head = Head {
                cylinder: from.end_cylinder,
                surface: from.end_surface,
                angle: Angle(between(&mut rng, 0, u64::MAX - 1)),
                at: Time(1_000_000_000),
            };
            let margins = Margins::fixed(Dur::from_us(50));
            let Some(gap) = Gap::before(model, (head, head), &dest, Kind::Read, Time::ZERO, &margins) else { continue };
            gaps += 1;
            let leg = |u: &TaskRange| Leg { kind: Kind::Read, lbn: u.lbn, count: u.count as u32, merged: false };
            let fitting = units.units.iter().map(|(_, u)| leg(u)).find(|l| holds(model, &gap, Habit::NONE, &[*l]));
            let Some(fitting) = fitting else { continue };
            fits += 1;
            let mut planner = Planner::default();
            planner.settings.patience = u64::MAX;
            let (habit, who, widest) = (Habit::NONE, Who::Anyone, *unit as u32);
            let q = PlanContext { model, gap: &gap, habit, wants: &units, who, exclude: &[], widest, prices: &prices };
            let found = planner.search(&q, &regions, 100_000);
            assert!(found.is_some(), "case {i}, gap {gaps}: nothing found, but {fitting:?} fits");
        }
    }
    println!("a unit fits into {fits} of {gaps} gaps");
    assert!(fits > 200 && gaps > fits + 200);
}
