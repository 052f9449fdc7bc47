//! Positions computed by hand: zones of real drives from DiskSim's files, the layouts of modern
//! drives, and each sparing scheme on a small zone.

use headtime_disk::profile::{
    GeometrySpec, HeadOrder, Layout, SectorAddress, Skew, Slip, SpareUnit, Sparing, ZoneSpec,
};
use headtime_disk::{Angle, Geometry};

fn zone(first_cylinder: u32, last_cylinder: u32, spt: u32, skews: (u32, u32)) -> ZoneSpec {
    ZoneSpec {
        first_cylinder,
        last_cylinder,
        surface: None,
        sectors_per_track: vec![spt],
        offset: Some(Skew::ZERO),
        track_skew: Skew::Sectors(skews.0),
        cylinder_skew: Skew::Sectors(skews.1),
        reserved_sectors: 0,
        sparing: Sparing::NONE,
        slips: Vec::new(),
        defects: Vec::new(),
    }
}

fn head_first(surfaces: u16, order: HeadOrder, zones: Vec<ZoneSpec>) -> GeometrySpec {
    let cylinders = zones.last().expect("a zone").last_cylinder + 1;
    GeometrySpec { surfaces, cylinders, layout: Layout::HeadFirst(order), zones, remaps: Vec::new() }
}

fn seek_first(surfaces: u16, group_tracks: u32, alternate: (bool, bool), zones: Vec<ZoneSpec>) -> GeometrySpec {
    let cylinders = zones.iter().map(|z| z.last_cylinder + 1).max().expect("a zone");
    let (tracks_alternate, surfaces_alternate) = alternate;
    let layout = Layout::SeekFirst { group_tracks, tracks_alternate, surfaces_alternate };
    GeometrySpec { surfaces, cylinders, layout, zones, remaps: Vec::new() }
}

/// `(lbn, cylinder, surface, sector, angle in sectors)`.
fn check(geometry: &Geometry, spt: u32, expected: &[(u64, u32, u16, u32, u64)]) {
    for &(lbn, cylinder, surface, sector, angle) in expected {
        let at = geometry.locate(lbn).unwrap_or_else(|| panic!("no LBN {lbn}"));
        assert_eq!((at.cylinder, at.surface, at.sector, at.spt), (cylinder, surface, sector, spt), "LBN {lbn}");
        let off = at.angle.distance(Angle::fraction(angle, u64::from(spt)));
        assert!(Angle(off).turns() < 1e-12, "LBN {lbn}: {:?}, expected {angle}/{spt}", at.angle);
        assert_eq!(geometry.lbn_at(at.address()), Some(lbn));
    }
}

fn compile(spec: &GeometrySpec) -> Geometry {
    Geometry::new(spec).unwrap_or_else(|e| panic!("{e}"))
}

/// DiskSim's Quantum Atlas 10K, zone 0: 6 surfaces in reverse order in odd cylinders, 89 spares at
/// the zone's end.
#[test]
fn a_zone_of_the_atlas_10k_runs_back_and_forth_over_its_surfaces() {
    let mut z = zone(0, 432, 334, (63, 113));
    z.sparing = Sparing { spares: 89, slips_are_extra: false, ..Sparing::NONE };
    z.slips = vec![Slip::Index(55_017)];
    let geometry = compile(&head_first(6, HeadOrder::AlternatingInZone, vec![z]));
    assert_eq!(geometry.capacity(), 433 * 6 * 334 - 89);
    let first = [
        (0, 0, 0, 0, 0),
        (333, 0, 0, 333, 333),
        (334, 0, 1, 0, 63),
        (2_003, 0, 5, 333, 314),
        (2_004, 1, 5, 0, 94),
        (55_016, 27, 3, 240, 232),
        (55_017, 27, 3, 242, 234),
    ];
    check(&geometry, 334, &first);
    let run = geometry.run_at(55_016, 4).expect("inside the drive");
    assert_eq!((run.count, run.span), (4, 5), "the slipped sector lies inside the run");
    let slipped = SectorAddress { cylinder: 27, surface: 3, sector: 241 };
    assert_eq!(geometry.lbn_at(slipped), None);
}

/// DiskSim's Seagate Cheetah 9LP, zones 0 and 1: cylinders between zones hold no data.
#[test]
fn a_head_first_drive_may_leave_cylinders_out_between_zones() {
    let mut outer = zone(0, 846, 254, (97, 97));
    outer.sparing = Sparing { spares: 847 * 12 * 254 - 2_580_386, slips_are_extra: false, ..Sparing::NONE };
    let inner = zone(848, 900, 245, (60, 70));
    let geometry = compile(&head_first(12, HeadOrder::Forward, vec![outer, inner]));
    check(&geometry, 254, &[(253, 0, 0, 253, 253), (254, 0, 1, 0, 97)]);
    check(&geometry, 245, &[(2_580_386, 848, 0, 0, 0), (2_580_505, 848, 0, 119, 119)]);
    assert_eq!(geometry.track(847, 0), None);
    assert_eq!(geometry.lbn_at(SectorAddress { cylinder: 847, surface: 0, sector: 0 }), None);
}

/// DiskSim's HP C2247A, zone 0: whole tracks are slipped, and 17 tracks at the front hold no data.
#[test]
fn a_zone_of_the_hp_c2247a_skips_whole_tracks() {
    let mut z = zone(0, 558, 96, (14, 32));
    z.reserved_sectors = 1_632;
    z.sparing = Sparing { spares: 325 * 96, slips_are_extra: false, ..Sparing::NONE };
    z.slips =
        [468, 526, 1_204, 1_861, 2_447, 2_680, 3_098, 3_683, 4_880, 4_919, 6_952, 7_095].map(Slip::TrackIndex).to_vec();
    let geometry = compile(&head_first(13, HeadOrder::Forward, vec![z]));
    assert_eq!(geometry.capacity(), 559 * 13 * 96 - 1_632 - 325 * 96);
    check(
        &geometry,
        96,
        &[
            (0, 1, 4, 0, 64),
            (96, 1, 5, 0, 78),
            (43_295, 35, 12, 95, 63),
            (43_296, 36, 1, 0, 14),
            (662_111, 532, 7, 95, 33),
        ],
    );
    assert_eq!(geometry.track(36, 0), None, "a skipped track holds no data");
}

/// Returns the tracks of a drive with one sector each, in LBN order.
fn tracks_in_order(geometry: &Geometry) -> Vec<(u32, u16)> {
    (0..geometry.capacity()).filter_map(|l| geometry.locate(l)).map(|p| (p.cylinder, p.surface)).collect()
}

#[test]
fn the_four_serpentines_visit_tracks_in_their_own_order() {
    let order = |alternate| tracks_in_order(&compile(&seek_first(2, 3, alternate, vec![zone(0, 5, 1, (0, 0))])));
    let tracks = |list: [[u32; 3]; 4], surfaces: [u16; 4]| -> Vec<(u32, u16)> {
        list.iter().zip(surfaces).flat_map(|(group, s)| group.map(|c| (c, s))).collect()
    };
    let straight = [[0, 1, 2], [0, 1, 2], [3, 4, 5], [3, 4, 5]];
    let turned = [[0, 1, 2], [2, 1, 0], [3, 4, 5], [5, 4, 3]];
    assert_eq!(order((false, false)), tracks(straight, [0, 1, 0, 1]), "FF");
    assert_eq!(order((false, true)), tracks(straight, [0, 1, 1, 0]), "FA");
    assert_eq!(order((true, false)), tracks(turned, [0, 1, 0, 1]), "AF");
    assert_eq!(order((true, true)), tracks(turned, [0, 1, 1, 0]), "AA");
}

#[test]
fn a_serpentine_adds_track_skew_in_a_group_and_cylinder_skew_between_groups_and_surfaces() {
    let mut z = zone(0, 5, 100, (10, 25));
    z.offset = None;
    let geometry = compile(&seek_first(2, 3, (true, false), vec![z]));
    check(
        &geometry,
        100,
        &[
            (0, 0, 0, 0, 0),
            (100, 1, 0, 0, 10),
            (200, 2, 0, 0, 20),
            (300, 2, 1, 0, 45),
            (400, 1, 1, 0, 55),
            (500, 0, 1, 0, 65),
            (600, 3, 0, 0, 90),
            (900, 5, 1, 0, 35),
        ],
    );
}

#[test]
fn zones_of_single_surfaces_change_where_each_surface_changes() {
    // Surface 0 changes from 4 to 3 sectors at cylinder 3, surface 1 from 5 to 2 at cylinder 4.
    let on = |surface, first, last, spt| ZoneSpec {
        surface: Some(surface),
        offset: None,
        track_skew: Skew::Turn(Angle::fraction(1, 16)),
        cylinder_skew: Skew::Turn(Angle::fraction(1, 8)),
        ..zone(first, last, spt, (0, 0))
    };
    let zones = vec![on(0, 0, 2, 4), on(0, 3, 5, 3), on(1, 0, 3, 5), on(1, 4, 5, 2)];
    let geometry = compile(&seek_first(2, 3, (false, false), zones));
    assert_eq!(geometry.capacity(), 3 * 4 + 3 * 5 + 3 * 3 + 5 + 2 * 2);
    let track = |c, s| geometry.track(c, s).map(|t| (t.first_lbn, t.lbns, t.angle));
    assert_eq!(track(0, 0), Some((0, 4, Angle::ZERO)));
    assert_eq!(track(0, 1), Some((12, 5, Angle::fraction(4, 16))));
    assert_eq!(track(3, 0), Some((27, 3, Angle::fraction(8, 16))));
    assert_eq!(track(3, 1), Some((36, 5, Angle::fraction(12, 16))));
    // The zone of surface 1 changes inside its group: the track skew continues.
    assert_eq!(track(4, 1), Some((41, 2, Angle::fraction(13, 16))));
}

#[test]
fn sectors_per_track_may_differ_by_surface_in_a_head_first_drive() {
    let mut z = zone(0, 2, 8, (2, 4));
    z.sectors_per_track = vec![8, 6, 3];
    let geometry = compile(&head_first(3, HeadOrder::AlternatingInZone, vec![z]));
    assert_eq!(geometry.capacity(), 3 * 17);
    let track = |c, s| geometry.track(c, s).map(|t| (t.first_lbn, t.spt, t.angle));
    assert_eq!(track(0, 1), Some((8, 6, Angle::fraction(2, 8))));
    assert_eq!(track(1, 2), Some((17, 3, Angle::ZERO)));
    assert_eq!(track(1, 0), Some((26, 8, Angle::fraction(4, 8))));
    assert_eq!(track(2, 0), Some((34, 8, Angle::ZERO)));
}

/// One surface, 4 cylinders of 5 sectors, sectors 1 and 7 slipped; returns each LBN's physical
/// sector, and the angle of the third cylinder's track in sectors (skews 0).
fn spared(unit: SpareUnit, spares: u64, at_front: bool, slips_are_extra: bool, push: bool) -> (Vec<u32>, u64) {
    let mut z = zone(0, 3, 5, (0, 0));
    z.sparing = Sparing { unit, spares, at_front, slips_are_extra, slips_push_skew: push };
    z.slips = vec![Slip::Index(7), Slip::Index(1)];
    let geometry = compile(&head_first(1, HeadOrder::Forward, vec![z]));
    let places = (0..geometry.capacity()).filter_map(|l| geometry.locate(l));
    let track = geometry.track(2, 0).expect("cylinder 2 holds data");
    let fifth = Angle::fraction(1, 5).0;
    (places.map(|p| p.cylinder * 5 + p.sector).collect(), (track.angle.0 + fifth / 2) / fifth)
}

#[test]
fn each_way_of_keeping_spares_leaves_its_own_holes() {
    let cylinder = SpareUnit::Cylinders(1);
    // DiskSim scheme 7: slips reduce their zone's end.
    let all = vec![0, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19];
    assert_eq!(spared(SpareUnit::Zone, 0, false, true, false), (all.clone(), 0));
    // Schemes 9 and 10: three spares at the zone's end, slips taken from them or not.
    assert_eq!(spared(SpareUnit::Zone, 3, false, false, false), (all[..17].to_vec(), 0));
    assert_eq!(spared(SpareUnit::Zone, 3, false, true, false), (all[..15].to_vec(), 0));
    // Spares at the zone's front, one of three left over, or all three kept.
    assert_eq!(spared(SpareUnit::Zone, 3, true, false, false), (all[1..].to_vec(), 0));
    assert_eq!(spared(SpareUnit::Zone, 3, true, true, false), (all[3..].to_vec(), 0));
    // Schemes 2 and 3, the same with one surface: one spare per cylinder, used up by the slip;
    // skews are pushed.
    let used_up = vec![0, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 15, 16, 17, 18];
    assert_eq!(spared(cylinder, 1, false, false, true), (used_up.clone(), 2));
    assert_eq!(spared(SpareUnit::Track, 1, false, false, true), (used_up.clone(), 2));
    assert_eq!(spared(SpareUnit::Track, 1, false, false, false), (used_up, 0));
    // Scheme 4: the slip is lost in addition.
    let besides = vec![0, 2, 3, 5, 6, 8, 10, 11, 12, 13, 15, 16, 17, 18];
    assert_eq!(spared(cylinder, 1, false, true, true), (besides, 2));
    // Schemes 5 and 6: the same with spares at the cylinder's front.
    let front = vec![0, 2, 3, 4, 5, 6, 8, 9, 11, 12, 13, 14, 16, 17, 18, 19];
    assert_eq!(spared(cylinder, 1, true, false, true), (front, 2));
    let front_besides = vec![2, 3, 4, 6, 8, 9, 11, 12, 13, 14, 16, 17, 18, 19];
    assert_eq!(spared(cylinder, 1, true, true, true), (front_besides, 2));
    // Scheme 8 with ranges of 3 cylinders: two spares per range, none in the remaining cylinder.
    let ranges = vec![0, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19];
    assert_eq!(spared(SpareUnit::Cylinders(3), 2, false, false, false), (ranges, 0));
}

#[test]
fn a_remapped_lbn_lies_on_its_spare_and_breaks_runs() {
    let mut z = zone(0, 1, 10, (0, 0));
    z.sparing = Sparing { spares: 4, slips_are_extra: false, ..Sparing::NONE };
    // Defect 3 is replaced by the last sector; LBN 5 is remapped to the one before it.
    z.defects = vec![(3, 19)];
    let mut spec = head_first(1, HeadOrder::Forward, vec![z]);
    spec.remaps = vec![(5, SectorAddress { cylinder: 1, surface: 0, sector: 8 })];
    let geometry = compile(&spec);
    let runs: Vec<(u64, u32)> = geometry.runs(0, u64::MAX).map(|r| (r.lbn, r.count)).collect();
    assert_eq!(runs, [(0, 3), (3, 1), (4, 1), (5, 1), (6, 4), (10, 6)]);
    let at = |lbn: u64| geometry.locate(lbn).map(|p| p.address());
    assert_eq!(at(3), Some(SectorAddress { cylinder: 1, surface: 0, sector: 9 }));
    assert_eq!(at(5), Some(SectorAddress { cylinder: 1, surface: 0, sector: 8 }));
    for bad in [3, 5] {
        assert_eq!(geometry.lbn_at(SectorAddress { cylinder: 0, surface: 0, sector: bad }), None);
    }
    let track = geometry.track_of(3).expect("inside the drive");
    assert_eq!((track.cylinder, track.first_lbn, track.lbns), (0, 0, 10), "bounds ignore remaps");
}
