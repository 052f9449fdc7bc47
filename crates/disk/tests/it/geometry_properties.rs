//! The compiled mapping agrees with a slow one that lists every sector, on random small drives with
//! all layouts, sparing schemes, slips, zones by surface, and remaps.

use std::collections::BTreeSet;

use headtime_disk::profile::{GeometrySpec, HeadOrder, Layout, SectorAddress, SpareUnit};
use headtime_disk::{Geometry, TrackRun};
use headtime_testkit::generate;
use headtime_testkit::geometry::Reference;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// Returns both mappings; `None` when both refuse the figures.
fn both(spec: &GeometrySpec) -> Result<Option<(Geometry, Reference)>, TestCaseError> {
    match (Geometry::new(spec), Reference::new(spec)) {
        (Ok(g), Ok(r)) => Ok(Some((g, r))),
        (Err(_), Err(_)) => Ok(None),
        (Ok(_), Err(e)) => Err(TestCaseError::fail(format!("compiled, though {e}"))),
        (Err(e), Ok(_)) => Err(TestCaseError::fail(format!("refused: {e}"))),
    }
}

/// Returns the shorter distance between two angles in revolutions.
fn apart(a: f64, b: f64) -> f64 {
    let d = (a - b).rem_euclid(1.0);
    d.min(1.0 - d)
}

fn every_address(spec: &GeometrySpec) -> impl Iterator<Item = SectorAddress> + '_ {
    let most = spec.zones.iter().flat_map(|z| &z.sectors_per_track).max().copied().unwrap_or(0);
    (0..spec.cylinders + 2).flat_map(move |cylinder| {
        (0..spec.surfaces + 1)
            .flat_map(move |surface| (0..most + 2).map(move |sector| SectorAddress { cylinder, surface, sector }))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_lbn_lies_where_the_slow_mapping_says(spec in generate::geometry()) {
        let Some((geometry, reference)) = both(&spec)? else { return Ok(()) };
        prop_assert_eq!(geometry.capacity(), reference.sectors.len() as u64);
        for (lbn, expected) in reference.sectors.iter().enumerate() {
            let found = geometry.locate(lbn as u64).expect("below the capacity");
            prop_assert_eq!((found.address(), found.spt), (expected.at, expected.spt), "LBN {}", lbn);
            let off = apart(found.angle.turns(), expected.turns);
            prop_assert!(off < 1e-12, "LBN {lbn}: {} turns, expected {}", found.angle.turns(), expected.turns);
        }
        prop_assert_eq!(geometry.locate(geometry.capacity()), None);
        prop_assert_eq!(geometry.locate(u64::MAX), None);
    }

    #[test]
    fn every_place_holds_its_lbn_or_none(spec in generate::geometry()) {
        let Some((geometry, reference)) = both(&spec)? else { return Ok(()) };
        let mut held = vec![0; reference.sectors.len()];
        for at in every_address(&spec) {
            if let Some(lbn) = geometry.lbn_at(at) {
                prop_assert_eq!(reference.sectors[lbn as usize].at, at, "LBN {}", lbn);
                held[lbn as usize] += 1;
            }
        }
        prop_assert!(held.iter().all(|n| *n == 1), "places that hold each LBN: {held:?}");
    }

    #[test]
    fn what_is_called_unbroken_has_no_hole_and_no_remap(spec in generate::geometry()) {
        let Some((geometry, reference)) = both(&spec)? else { return Ok(()) };
        for lbn in (0..geometry.capacity()).step_by(7) {
            prop_assert_eq!(geometry.is_remapped(lbn), reference.moved.contains(&lbn), "LBN {}", lbn);
            let until = geometry.unbroken_until(lbn);
            prop_assert!(until >= lbn && until <= geometry.capacity());
            prop_assert!(!reference.moved.iter().any(|m| (lbn..until).contains(m)), "a remap in {lbn}..{until}");
            for t in &reference.tracks {
                let lbns: Vec<u64> = t.lbns.iter().flatten().copied().collect();
                let (Some(first), Some(last)) = (lbns.first(), lbns.last()) else { continue };
                if *first > lbn && *last + 1 < until {
                    prop_assert_eq!(lbns.len(), t.spt as usize, "{}..{}, track of LBN {}", lbn, until, first);
                }
            }
        }
    }

    #[test]
    fn track_bounds_are_the_lowest_and_highest_lbn_on_it(spec in generate::geometry()) {
        let Some((geometry, reference)) = both(&spec)? else { return Ok(()) };
        for t in &reference.tracks {
            let lbns: Vec<u64> = t.lbns.iter().flatten().copied().collect();
            let found = geometry.track(t.cylinder, t.surface);
            let (Some(first), Some(found)) = (lbns.first(), found) else {
                prop_assert!(lbns.is_empty() && found.is_none(), "{t:?}: {found:?}");
                continue;
            };
            prop_assert_eq!((found.cylinder, found.surface, found.spt), (t.cylinder, t.surface, t.spt));
            prop_assert_eq!((found.first_lbn, found.lbns), (*first, lbns.len() as u32), "{:?}", t);
            prop_assert!(apart(found.angle.turns(), t.turns) < 1e-12, "{t:?}: {found:?}");
            let held = |k| {
                let at = SectorAddress { cylinder: t.cylinder, surface: t.surface, sector: k };
                geometry.lbn_at(at) == Some(first + u64::from(k))
            };
            // A spare may by chance hold the very LBN that would follow, which is not the track's
            // own.
            let own = t.lbns.iter().all(Option::is_some);
            prop_assert_eq!(found.plain, own && (0..t.spt).all(held), "{:?}", t);
            for lbn in lbns {
                prop_assert_eq!(geometry.track_of(lbn), Some(found), "LBN {}", lbn);
            }
        }
        let holds_data = |c: u32, s: u16| reference.track_at(c, s).is_some();
        for at in every_address(&spec).filter(|at| at.sector == 0 && !holds_data(at.cylinder, at.surface)) {
            prop_assert_eq!(geometry.track(at.cylinder, at.surface), None);
        }
        prop_assert_eq!(geometry.track_of(geometry.capacity()), None);
    }

    #[test]
    fn alike_tracks_are_the_tracks_that_are_there(spec in generate::geometry()) {
        let Some((geometry, _)) = both(&spec)? else { return Ok(()) };
        for (cylinder, surface) in (0..spec.cylinders + 1).flat_map(|c| (0..spec.surfaces + 1).map(move |s| (c, s))) {
            let alike = geometry.alike(cylinder, surface);
            prop_assert_eq!(alike.and_then(|a| a.at(cylinder, surface)), geometry.track(cylinder, surface));
            let Some(alike) = alike else { continue };
            let all = (0..spec.cylinders).filter_map(|c| alike.at(c, surface)).collect::<Vec<_>>();
            prop_assert_eq!(all.len(), alike.count() as usize);
            for t in all {
                prop_assert_eq!(Some(t), geometry.track(t.cylinder, surface));
                prop_assert!(t.plain || alike.count() == 1);
                let next = alike.next(t.cylinder).map(|(next, skew)| (alike.at(next, surface).unwrap(), skew));
                let behind = geometry.track_of(t.first_lbn + u64::from(t.lbns));
                if let Some((next, skew)) = next {
                    prop_assert_eq!(Some(next), behind);
                    prop_assert_eq!(t.angle + skew, next.angle);
                }
            }
            prop_assert!((0..spec.surfaces).all(|s| s == surface || alike.at(cylinder, s).is_none()));
        }
    }

    #[test]
    fn runs_are_as_long_as_a_track_and_a_limit_allow(spec in generate::geometry(), max in 1..9u32) {
        let Some((geometry, reference)) = both(&spec)? else { return Ok(()) };
        for lbn in 0..reference.sectors.len() {
            for max in [max, u32::MAX] {
                let expected = slow_run(&reference, lbn, max);
                let found = geometry.run_at(lbn as u64, max).expect("below the capacity");
                prop_assert_eq!((found.count, found.span), expected, "LBN {} max {}", lbn, max);
                prop_assert_eq!(Some(found.start), geometry.locate(lbn as u64));
            }
        }
        prop_assert_eq!(geometry.run_at(0, 0), None);
        prop_assert_eq!(geometry.run_at(geometry.capacity(), 1), None);
        let runs: Vec<TrackRun> = geometry.runs(0, u64::MAX).collect();
        let mut next = 0;
        for run in runs {
            prop_assert_eq!(run.lbn, next);
            next += u64::from(run.count);
        }
        prop_assert_eq!(next, geometry.capacity());
    }
}

/// Returns length and span of a run, found LBN by LBN.
fn slow_run(reference: &Reference, lbn: usize, max: u32) -> (u32, u32) {
    let first = reference.sectors[lbn].at;
    let moved = |lbn: usize| reference.moved.contains(&(lbn as u64));
    let mut last = first;
    let mut count = 1;
    for next in lbn + 1..reference.sectors.len() {
        let at = reference.sectors[next].at;
        let same_track = (at.cylinder, at.surface) == (first.cylinder, first.surface);
        if count == max || moved(lbn) || moved(next) || !same_track {
            break;
        }
        last = at;
        count += 1;
    }
    (count, last.sector - first.sector + 1)
}

/// Returns the features of a spec: layout, spare unit, sparing, and whether it has slips and
/// relocated LBNs.
fn kind(spec: &GeometrySpec, reference: &Reference) -> [u8; 5] {
    let layout = match spec.layout {
        Layout::HeadFirst(HeadOrder::Forward) => 0,
        Layout::HeadFirst(HeadOrder::AlternatingInZone) => 1,
        Layout::HeadFirst(HeadOrder::AlternatingOnDisk) => 2,
        Layout::SeekFirst { tracks_alternate, surfaces_alternate, .. } => {
            3 + u8::from(tracks_alternate) + 2 * u8::from(surfaces_alternate)
        }
    };
    let sparing = &spec.zones[0].sparing;
    let unit = match sparing.unit {
        SpareUnit::Zone => 0,
        SpareUnit::Cylinders(_) => 1,
        SpareUnit::Track => 2,
    };
    let at = u8::from(sparing.at_front) + 2 * u8::from(sparing.slips_are_extra);
    [layout, unit, at, u8::from(!spec.zones[0].slips.is_empty()), u8::from(!reference.moved.is_empty())]
}

#[test]
fn the_generator_makes_working_drives_of_every_kind() {
    let mut runner = TestRunner::deterministic();
    let mut works = 0;
    let mut kinds = BTreeSet::new();
    const CASES: usize = 20_000;
    for _ in 0..CASES {
        let spec = generate::geometry().new_tree(&mut runner).expect("nothing is filtered out").current();
        if let Ok(reference) = Reference::new(&spec) {
            works += 1;
            kinds.insert(kind(&spec, &reference));
        }
    }
    assert!(works * 10 > CASES * 4, "only {works} of {CASES} drives work");
    // 7 layouts, 3 spare units, 4 ways of keeping spares, with and without slips, with and without
    // relocated LBNs.
    assert_eq!(kinds.len(), 7 * 3 * 4 * 2 * 2);
}
