//! The regions against a plain loop over the wanted sectors.

use crate::small_drive::drive;
use headtime_disk::{Geometry, Kind, Model};
use headtime_sched::internals::regions::Regions;
use headtime_sched::internals::tasks::Who;
use headtime_sched::{SessionId, TaskRange};
use headtime_testkit::gap::{Wish, Wishes, any_wishes};
use headtime_testkit::generate;
use headtime_testkit::profiles::{between, layouts};
use proptest::prelude::*;

/// Returns the regions in which a sector lies, from its place alone.
fn regions_of_sector(geometry: &Geometry, lbn: u64, per_cell: u32) -> (u32, u16, u64) {
    let at = geometry.locate(lbn).unwrap();
    let region = |turn: u64| (u128::from(turn) * u128::from(per_cell)) >> 64;
    let width = ((1u128 << 64) / u128::from(at.spt)).min(u128::from(u64::MAX)) as u64;
    let mut mask = 0;
    // A sector may be narrower than a region or not: a few points on it, its ends among them, hit
    // every region it touches.
    for k in 0..=256u64 {
        let inside = ((u128::from(width - 1) * u128::from(k)) / 256) as u64;
        mask |= 1u64 << region(at.angle.0.wrapping_add(inside));
    }
    (at.cylinder, at.surface, mask)
}

/// Returns by cell the regions in which `who` has pending sectors that were not remapped.
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
            regions.has_units(w.unit, &[w.range]);
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
                    // One session is suspended; work done in that time is cleared all the same.
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
                            for (session, done) in wishes.complete(kind, TaskRange { lbn, count }) {
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_range_added_at_once_is_what_its_sectors_are_one_by_one(
        spec in generate::geometry(), part in any::<(u64, u64)>(), shift in 0..7u32,
    ) {
        let Ok(geometry) = Geometry::new(&spec) else { return Ok(()) };
        let low = part.0 % geometry.capacity();
        // One in four reaches the end of the disk.
        let most = geometry.capacity() - low;
        let count = if part.1 % 4 == 0 { most } else { 1 + part.1 % most };
        let mut regions = Regions::new(&geometry, 1 << shift);
        regions.add(SessionId(1), &geometry, TaskRange { lbn: low, count });
        let mut one_by_one = Wishes::default();
        one_by_one.list.push(Wish::new(1, Kind::Read, low, count as u32, 1));
        let expected = expected_masks(&regions, &geometry, &one_by_one, Who::Anyone);
        let exact = (low..low + count).all(|l| !geometry.is_remapped(l));
        for (cell, expected) in (0..).zip(expected) {
            let mask = regions.mask(Who::Anyone, cell);
            prop_assert_eq!(mask & expected, expected, "cell {}: hidden", cell);
            prop_assert!(!exact || mask == expected, "cell {cell}: {mask:x}, expected {expected:x}");
        }
    }
}

#[test]
fn a_whole_disk_of_twenty_terabytes_takes_a_byte_a_cell() {
    let model = Model::new(&headtime_disk::profile::builtin("nearline-20tb").unwrap()).unwrap();
    let geometry = &model.geometry;
    let mut regions = Regions::new(geometry, 8);
    regions.add(SessionId(1), geometry, TaskRange { lbn: 0, count: geometry.capacity() });
    regions.add(SessionId(2), geometry, TaskRange { lbn: 123_456_789, count: 256 });
    let cells = regions.cells().count();
    assert!(cells >= geometry.cylinders() && cells < geometry.cylinders() + 20_000, "{cells}");
    let memory = regions.memory();
    assert!(memory.session_bitmaps < cells as usize * 11 / 10, "{memory:?}");
    assert!(memory.total() < cells as usize * 22 / 10, "{memory:?}");
    // After the end of a zone's data there are tracks of spares only.
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
