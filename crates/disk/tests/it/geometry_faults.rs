//! Invalid geometries are refused with the zone, the expected and the actual figure; odd ones give
//! warnings.

use headtime_disk::internals::warnings;
use headtime_disk::profile::{
    GeometrySpec, HeadOrder, Layout, SectorAddress, Skew, Slip, SpareUnit, Sparing, ZoneSpec,
};
use headtime_disk::{Angle, Geometry, GeometryError, GeometryWarning, NotASpare};

fn zone(first_cylinder: u32, last_cylinder: u32) -> ZoneSpec {
    ZoneSpec {
        first_cylinder,
        last_cylinder,
        surface: None,
        sectors_per_track: vec![10],
        offset: None,
        track_skew: Skew::Sectors(2),
        cylinder_skew: Skew::Sectors(3),
        reserved_sectors: 0,
        sparing: Sparing::NONE,
        slips: Vec::new(),
        defects: Vec::new(),
    }
}

const SERPENTINE: Layout = Layout::SeekFirst { group_tracks: 3, tracks_alternate: true, surfaces_alternate: false };

/// Two zones of five cylinders, two surfaces.
fn spec(layout: Layout) -> GeometrySpec {
    GeometrySpec { surfaces: 2, cylinders: 10, layout, zones: vec![zone(0, 4), zone(5, 9)], remaps: Vec::new() }
}

fn head_first() -> GeometrySpec {
    spec(Layout::HeadFirst(HeadOrder::Forward))
}

fn refused(mut spec: GeometrySpec, change: impl FnOnce(&mut GeometrySpec)) -> GeometryError {
    Geometry::new(&spec).expect("works before the change");
    change(&mut spec);
    Geometry::new(&spec).expect_err("does not work after it")
}

fn spares(unit: SpareUnit, spares: u64) -> Sparing {
    Sparing { unit, spares, slips_are_extra: false, ..Sparing::NONE }
}

#[test]
fn drives_without_surfaces_zones_or_groups_are_refused() {
    assert_eq!(refused(head_first(), |s| s.surfaces = 0), GeometryError::NoSurfaces);
    assert_eq!(refused(head_first(), |s| s.zones.clear()), GeometryError::NoZones);
    let none = Layout::SeekFirst { group_tracks: 0, tracks_alternate: false, surfaces_alternate: false };
    assert_eq!(refused(spec(SERPENTINE), |s| s.layout = none), GeometryError::NoGroupTracks);
}

#[test]
fn zones_must_lie_on_cylinders_and_surfaces_that_exist() {
    let e = refused(head_first(), |s| s.zones[1].last_cylinder = 10);
    assert_eq!(e, GeometryError::ZoneRange { zone: 1, first: 5, last: 10, cylinders: 10 });
    assert_eq!(e.to_string(), "zone 1: cylinders 5 to 10: expected a rising range within 0 to 9");
    let e = refused(head_first(), |s| s.zones[1] = zone(9, 5));
    assert_eq!(e, GeometryError::ZoneRange { zone: 1, first: 9, last: 5, cylinders: 10 });
    let e = refused(head_first(), |s| s.cylinders = 0);
    assert_eq!(e, GeometryError::ZoneRange { zone: 0, first: 0, last: 4, cylinders: 0 });
}

#[test]
fn a_zone_needs_one_figure_or_one_a_surface() {
    let e = refused(head_first(), |s| s.zones[1].sectors_per_track = vec![10, 9, 8]);
    assert_eq!(e, GeometryError::SectorsPerTrackCount { zone: 1, expected: 2, found: 3 });
    let e = refused(head_first(), |s| s.zones[1].sectors_per_track = Vec::new());
    assert_eq!(e, GeometryError::SectorsPerTrackCount { zone: 1, expected: 2, found: 0 });
    let e = refused(head_first(), |s| s.zones[0].sectors_per_track = vec![10, 0]);
    assert_eq!(e, GeometryError::NoSectors { zone: 0 });
}

#[test]
fn zones_that_overlap_are_refused_in_every_layout() {
    let overlap = GeometryError::ZonesOverlap { zone: 1, other: 0, cylinder: 4, surface: 0 };
    for layout in [Layout::HeadFirst(HeadOrder::Forward), SERPENTINE] {
        assert_eq!(refused(spec(layout), |s| s.zones[1].first_cylinder = 4), overlap);
    }
    let e = refused(head_first(), |s| s.zones.swap(0, 1));
    assert_eq!(e, GeometryError::ZonesOutOfOrder { zone: 1, expected: 10, found: 0 });
    let inside = refused(head_first(), |s| s.zones[1] = zone(1, 2));
    assert_eq!(inside, GeometryError::ZonesOverlap { zone: 1, other: 0, cylinder: 1, surface: 0 });
}

#[test]
fn only_a_head_first_drive_may_leave_cylinders_out() {
    let mut gap = head_first();
    gap.zones[1].first_cylinder = 7;
    let geometry = Geometry::new(&gap).expect("cylinders may be left out");
    assert_eq!(geometry.capacity(), 5 * 20 + 3 * 20);
    let e = refused(spec(SERPENTINE), |s| s.zones[1].first_cylinder = 7);
    assert_eq!(e, GeometryError::ZoneGap { zone: 1, surface: 0, expected: 5, found: 7 });
    let e = refused(spec(SERPENTINE), |s| s.zones.iter_mut().for_each(|z| z.surface = Some(1)));
    assert_eq!(e, GeometryError::SurfaceWithoutZone { surface: 0 });
    let e = refused(head_first(), |s| s.zones[1].surface = Some(1));
    assert_eq!(e, GeometryError::ZoneOfOneSurface { zone: 1, surface: 1 });
    let e = refused(head_first(), |s| s.zones[1].surface = Some(2));
    assert_eq!(e, GeometryError::ZoneSurface { zone: 1, surface: 2, surfaces: 2 });
}

#[test]
fn spares_must_leave_room_for_data() {
    let e = refused(head_first(), |s| s.zones[1].sparing = spares(SpareUnit::Track, 10));
    assert_eq!(e, GeometryError::SparesFillUnit { zone: 1, sectors: 10, found: 10 });
    let e = refused(head_first(), |s| s.zones[1].sparing = spares(SpareUnit::Cylinders(2), 40));
    assert_eq!(e, GeometryError::SparesFillUnit { zone: 1, sectors: 40, found: 40 });
    let e = refused(head_first(), |s| s.zones[1].sparing = spares(SpareUnit::Cylinders(0), 1));
    assert_eq!(e, GeometryError::UnitWidth { zone: 1, expected: u32::MAX, found: 0 });
    let e = refused(spec(SERPENTINE), |s| s.zones[1].sparing = spares(SpareUnit::Cylinders(4), 1));
    assert_eq!(e, GeometryError::UnitWidth { zone: 1, expected: 3, found: 4 });
    let e = refused(head_first(), |s| s.zones[1].sparing = spares(SpareUnit::Zone, 101));
    assert_eq!(e, GeometryError::ZoneTooSmall { zone: 1, expected: 101, found: 100 });
    let e = refused(head_first(), |s| s.zones[0].reserved_sectors = 101);
    assert_eq!(e, GeometryError::ZoneTooSmall { zone: 0, expected: 101, found: 100 });
    let e = refused(head_first(), |s| s.zones.iter_mut().for_each(|z| z.reserved_sectors = 100));
    assert_eq!(e, GeometryError::NoCapacity);
    let e = refused(spec(SERPENTINE), |s| s.zones[1].sparing.slips_push_skew = true);
    assert_eq!(e, GeometryError::PushedSkew { zone: 1 });
}

#[test]
fn slips_must_lie_in_their_zone() {
    let outside = |slip| GeometryError::SlipOutsideZone { zone: 1, slip, tracks: 10, sectors: 100 };
    let sector = |cylinder, surface, sector| Slip::Sector(SectorAddress { cylinder, surface, sector });
    let slips = [
        Slip::Index(100),
        Slip::Index(u64::MAX),
        Slip::TrackIndex(10),
        Slip::TrackIndex(u64::MAX),
        Slip::Track { cylinder: 4, surface: 0 },
        Slip::Track { cylinder: 5, surface: 2 },
        sector(10, 0, 0),
        sector(5, 0, 10),
    ];
    for slip in slips {
        assert_eq!(refused(head_first(), |s| s.zones[1].slips.push(slip)), outside(slip));
    }
    for slip in [Slip::Index(0), Slip::TrackIndex(0)] {
        let e = refused(spec(SERPENTINE), |s| s.zones[1].slips.push(slip));
        assert_eq!(e, GeometryError::IndexInSeekFirst { zone: 1 });
    }
}

#[test]
fn slips_may_not_outnumber_the_spares_they_are_taken_from() {
    let units = [SpareUnit::Zone, SpareUnit::Cylinders(2), SpareUnit::Track];
    for unit in units {
        let mut works = head_first();
        works.zones[1].sparing = spares(unit, 2);
        works.zones[1].slips = vec![Slip::Index(22), Slip::Index(25)];
        let e = refused(works, |s| s.zones[1].slips.push(Slip::Index(27)));
        let expected = GeometryError::TooManySlips { zone: 1, cylinder: 6, surface: 0, spares: 2, found: 3 };
        assert_eq!(e, expected, "{unit:?}");
    }
    let e = GeometryError::TooManySlips { zone: 1, cylinder: 6, surface: 0, spares: 2, found: 3 };
    let text = "zone 1: 3 sectors slipped, the first of them at cylinder 6, surface 0, where there are spares for 2";
    assert_eq!(e.to_string(), text);
}

#[test]
fn a_remap_needs_a_spare_of_its_own() {
    let mut works = head_first();
    works.zones[1].sparing = spares(SpareUnit::Zone, 3);
    works.zones[1].slips = vec![Slip::Index(99)];
    let at = |sector| SectorAddress { cylinder: 9, surface: 1, sector };
    works.remaps = vec![(7, at(8))];
    let remap = |lbn, to| refused(works.clone(), |s| s.remaps.push((lbn, to)));
    let target = |lbn, to, why| GeometryError::RemapTarget { lbn, to, why };
    assert_eq!(remap(200, at(7)), GeometryError::RemapBeyondCapacity { lbn: 200, capacity: 197 });
    assert_eq!(remap(7, at(7)), GeometryError::RemappedTwice { lbn: 7 });
    assert_eq!(remap(1, at(6)), target(1, at(6), NotASpare::HoldsData(196)));
    assert_eq!(remap(1, at(8)), target(1, at(8), NotASpare::Taken(7)));
    assert_eq!(remap(1, at(9)), target(1, at(9), NotASpare::Slipped));
    assert_eq!(remap(1, at(10)), target(1, at(10), NotASpare::Missing));
    let text = "remap of LBN 1 to cylinder 9, surface 1, sector 6: it holds LBN 196: expected a spare";
    assert_eq!(remap(1, at(6)).to_string(), text);
}

#[test]
fn a_defect_needs_a_spare_of_its_own() {
    let mut works = head_first();
    works.zones[1].sparing = spares(SpareUnit::Zone, 3);
    // A defect replaced by itself changes nothing, as in DiskSim; nor does a defect without data.
    works.zones[1].defects = vec![(5, 5), (99, 3)];
    assert_eq!(Geometry::new(&works).map(|g| g.runs(100, 20).count()), Ok(2));
    let defect = |bad, replacement| refused(works.clone(), |s| s.zones[1].defects.push((bad, replacement)));
    assert_eq!(defect(1, 100), GeometryError::DefectOutsideZone { zone: 1, bad: 1, replacement: 100, sectors: 100 });
    let why = NotASpare::HoldsData(102);
    assert_eq!(defect(1, 2), GeometryError::Replacement { zone: 1, bad: 1, replacement: 2, why });
    let e = refused(spec(SERPENTINE), |s| s.zones[0].defects.push((1, 2)));
    assert_eq!(e, GeometryError::IndexInSeekFirst { zone: 0 });
}

#[test]
fn more_sectors_than_can_be_counted_are_refused() {
    for layout in [Layout::HeadFirst(HeadOrder::Forward), SERPENTINE] {
        let e = refused(spec(layout), |s| s.cylinders = u32::MAX);
        assert_eq!(e, GeometryError::TooLarge { what: "tracks", found: (1 << 33) - 2, limit: 1 << 27 });
        let e = refused(spec(layout), |s| {
            s.cylinders = 1 << 26;
            s.zones = vec![ZoneSpec { sectors_per_track: vec![u32::MAX], ..zone(0, (1 << 26) - 1) }];
        });
        assert!(matches!(e, GeometryError::TooLarge { what: "physical sectors", .. }), "{e}");
    }
    let e = refused(head_first(), |s| {
        s.zones[0].sectors_per_track = vec![1 << 30];
        s.zones[0].sparing = spares(SpareUnit::Cylinders(3), 1);
    });
    assert!(matches!(e, GeometryError::TooLarge { found, .. } if found == 6 << 30), "{e}");
}

#[test]
fn odd_figures_are_remarked_and_still_work() {
    let mut odd = head_first();
    odd.zones[0].offset = Some(Skew::Sectors(10));
    odd.zones[0].slips = vec![Slip::Index(9), Slip::Index(4)];
    odd.zones[1].track_skew = Skew::Sectors(25);
    odd.zones[1].cylinder_skew = Skew::Turn(Angle(u64::MAX));
    odd.zones[1].first_cylinder = 7;
    let beyond = |zone, what, found| GeometryWarning::SkewBeyondTurn { zone, what, sectors_per_track: 10, found };
    assert_eq!(
        warnings(&odd),
        [
            beyond(0, "offset", 10),
            GeometryWarning::UnsortedSlips { zone: 0, slip: Slip::Index(4) },
            beyond(1, "track skew", 25),
            GeometryWarning::CylindersLeftOut { zone: 1, from: 5, to: 6 },
        ]
    );
    let geometry = Geometry::new(&odd).expect("odd figures work");
    let angle = |c, s| geometry.track(c, s).map(|t| t.angle);
    assert_eq!(angle(0, 0), Some(Angle::ZERO));
    assert_eq!(angle(7, 1).zip(angle(7, 0)).map(|(b, a)| b - a), Some(Angle::fraction(5, 10)));
    assert_eq!(warnings(&head_first()), []);
    assert_eq!(warnings(&spec(SERPENTINE)), []);
}
