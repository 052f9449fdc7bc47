//! Angle-EP-Frag decides the same whether it remembers the counts of tracks or counts each time.

use std::cmp::Reverse;

use crate::small_drive::drive;
use headtime_disk::{Dur, Kind, Model};
use headtime_sched::internals::gap::{Gap, Plan};
use headtime_sched::internals::planner::{Planner, Task};
use headtime_sched::internals::regions::Regions;
use headtime_sched::internals::tasks::Who;
use headtime_sched::{Algorithm, Conservatism, FillConfig, SessionId, TaskRange};
use headtime_testkit::gap::{Wish, Wishes, any_gap};
use headtime_testkit::profiles::{between, layouts};

const SESSION: SessionId = SessionId(0);

/// Returns the value of a plan of one leg, by the definition of Angle-EP-Frag: whether it clears
/// the track, the angle in millionths of a revolution, and what it leaves there.
fn value(model: &Model, gap: &Gap, wishes: &Wishes, plan: &Plan) -> (bool, u64, Reverse<u64>) {
    let leg = plan.legs()[0];
    let track = (leg.lbn..)
        .find(|lbn| !model.geometry.is_remapped(*lbn))
        .and_then(|lbn| model.geometry.track_of(lbn))
        .expect("a leg is on the disk");
    let mut brought = vec![leg.range()];
    if gap.dest_kind == Kind::Read {
        brought.push(TaskRange { lbn: gap.dest.lbn, count: u64::from(gap.dest.count) });
    }
    let units = || wishes.list[0].units();
    let here = |lbn: &u64| (track.first_lbn..track.first_lbn + u64::from(track.lbns)).contains(lbn);
    let is_brought = |lbn: &u64| brought.iter().any(|r| (r.lbn..r.end()).contains(lbn));
    let left = units().flat_map(|(low, high)| low..high).filter(|lbn| here(lbn) && !is_brought(lbn)).count();
    let whole = |(low, high): &(u64, u64)| leg.lbn <= *low && *high <= leg.range().end();
    let sectors = units().filter(whole).flat_map(|(low, high)| low..high);
    let angle: f64 = sectors.map(|lbn| 1.0 / f64::from(model.geometry.track_of(lbn).expect("on the disk").spt)).sum();
    (left == 0, (angle * 1e6).round() as u64, Reverse(left as u64))
}

#[test]
fn a_search_that_remembers_counts_finds_what_one_without_memory_finds() {
    let (mut found, mut cleared) = (0, 0);
    for seed in 0..60 {
        let (model, mut rng) = drive(layouts()[seed as usize % 7], 3_000 + seed);
        let capacity = model.geometry.capacity();
        // One reader of most of the disk; its units cross tracks.
        let unit = between(&mut rng, 1, 12) as u32;
        let units = (capacity / u64::from(unit)) as u32;
        let mut wishes = Wishes { list: vec![Wish::new(0, Kind::Read, 0, units, unit)] };
        let all = TaskRange { lbn: 0, count: u64::from(units) * u64::from(unit) };
        let mut regions = Regions::new(&model.geometry, 8);
        regions.has_units(unit, &[all]);
        regions.add(SESSION, &model.geometry, all);
        let conservatism = Conservatism::Fixed(Dur::from_us(100));
        // Without a limit: a count that is remembered costs nothing, so that a bounded search would
        // come further.
        let budget = (u32::MAX, 0);
        let config = FillConfig { conservatism, budget, ..FillConfig::new(Algorithm::AngleEpFrag) };
        let mut remembers = Planner::new(&config, &model);
        remembers.wanted(&model.geometry, all);
        for _ in 0..120 {
            let gap = any_gap(&model, &mut rng);
            let task = Task {
                model: &model,
                gap: &gap,
                wants: &wishes,
                regions: &regions,
                winner: SESSION,
                exclude: &[],
                last_read: None,
                legs_before: 0,
                front_only: false,
            };
            let plan = remembers.plan(&task);
            let other = Planner::new(&config, &model).plan(&task);
            // Of equally good ones either may find another one first.
            let [one, other] = [&plan, &other].map(|plan| plan.as_ref().map(|p| value(&model, &gap, &wishes, p)));
            assert_eq!(one, other, "seed {seed}");
            let Some(plan) = plan else { continue };
            found += 1;
            // What was read is no longer wanted, and in some rounds other sectors are wanted again.
            let mut changed = vec![plan.legs()[0].range()];
            if between(&mut rng, 0, 4) == 0 {
                let lbn = between(&mut rng, 0, capacity - 50);
                changed.push(TaskRange { lbn, count: 50 });
            }
            for (nth, range) in changed.into_iter().enumerate() {
                let wish = &mut wishes.list[0];
                let inside = |i: &usize| {
                    let lbn = *i as u64 * u64::from(unit);
                    range.lbn <= lbn && lbn + u64::from(unit) <= range.end()
                };
                let these: Vec<usize> = (0..wish.pending.len()).filter(inside).collect();
                cleared += these.len();
                these.iter().for_each(|i| wish.pending[*i] = nth == 1);
                match nth {
                    0 => {
                        remembers.gone(&model.geometry, range);
                        regions.recheck(SESSION, &model.geometry, &wishes, range);
                    }
                    _ => {
                        remembers.wanted(&model.geometry, range);
                        regions.add(SESSION, &model.geometry, range);
                    }
                }
            }
        }
        assert!(regions.mask(Who::Session(SESSION), 0) <= 0xff);
    }
    println!("{found} plans, {cleared} units");
    assert!(found > 1_000 && cleared > 3_000, "{found} plans, {cleared} units");
}
