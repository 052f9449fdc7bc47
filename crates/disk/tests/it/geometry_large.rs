//! Drives of 30 TB: the mapping stays small, exact and correct at every boundary, without a table
//! per track or group.

use headtime_disk::profile::{
    self, GeometrySpec, HeadOrder, Layout, SectorAddress, Skew, Slip, SpareUnit, Sparing, ZoneSpec,
};
use headtime_disk::{Angle, Geometry};
use headtime_testkit::profiles::rng;
use rand_core::Rng;

fn zone(first_cylinder: u32, last_cylinder: u32, surface: Option<u16>, spt: u32) -> ZoneSpec {
    ZoneSpec {
        first_cylinder,
        last_cylinder,
        surface,
        sectors_per_track: vec![spt],
        offset: None,
        track_skew: Skew::Turn(Angle::fraction(1, 7)),
        cylinder_skew: Skew::Turn(Angle::fraction(3, 11)),
        reserved_sectors: 0,
        sparing: Sparing::NONE,
        slips: Vec::new(),
        defects: Vec::new(),
    }
}

/// 30 TB of 512-byte sectors: 20 surfaces of 500,000 tracks, 20,000 groups, 25 zones, each surface
/// with its own figures; thousands of slips, spares on the tracks of every fifth zone.
fn thirty_terabytes() -> GeometrySpec {
    let (surfaces, cylinders, zones) = (20u16, 500_000u32, 25u32);
    let mut rng = rng(30);
    let mut all = Vec::new();
    for surface in 0..surfaces {
        let mut first = 0;
        for i in 0..zones {
            let seam = cylinders / zones * (i + 1) - 1;
            let last = if i + 1 == zones { cylinders - 1 } else { seam - (rng.next_u32() % 3_000) };
            let spt = 7_600 - 130 * i + rng.next_u32() % 40;
            let mut z = zone(first, last, Some(surface), spt);
            if i % 5 == 4 {
                z.sparing = Sparing { unit: SpareUnit::Track, spares: 3, ..Sparing::NONE };
            }
            for _ in 0..10 {
                let cylinder = first + rng.next_u32() % (last - first);
                z.slips.push(match rng.next_u32() % 4 {
                    0 => Slip::Track { cylinder, surface },
                    _ => Slip::Sector(SectorAddress { cylinder, surface, sector: rng.next_u32() % spt }),
                });
            }
            all.push(z);
            first = last + 1;
        }
    }
    let layout = Layout::SeekFirst { group_tracks: 25, tracks_alternate: true, surfaces_alternate: true };
    GeometrySpec { surfaces, cylinders, layout, zones: all, remaps: Vec::new() }
}

#[test]
fn thirty_terabytes_map_there_and_back_in_a_few_megabytes() {
    let spec = thirty_terabytes();
    let geometry = Geometry::new(&spec).expect("a drive that works");
    assert!(geometry.capacity() > 58_000_000_000, "{} LBNs", geometry.capacity());
    assert!(geometry.memory_bytes() < 4 << 20, "{} bytes", geometry.memory_bytes());
    let mut rng = rng(31);
    for _ in 0..200_000 {
        let lbn = ((u128::from(rng.next_u64()) * u128::from(geometry.capacity())) >> 64) as u64;
        let at = geometry.locate(lbn).expect("below the capacity");
        assert_eq!(geometry.lbn_at(at.address()), Some(lbn));
        let track = geometry.track_of(lbn).expect("below the capacity");
        assert_eq!(geometry.track(at.cylinder, at.surface), Some(track));
        assert!(track.first_lbn <= lbn && lbn < track.first_lbn + u64::from(track.lbns));
        let run = geometry.run_at(track.first_lbn, u32::MAX).expect("a track's first LBN");
        assert_eq!(run.count, track.lbns, "a run from a track's first LBN takes all of it");
    }
}

#[test]
fn lbns_follow_each_other_over_every_seam_of_thirty_terabytes() {
    let geometry = Geometry::new(&thirty_terabytes()).expect("a drive that works");
    let mut rng = rng(32);
    // Tracks near zone boundaries and slips are the likeliest to be wrong: check a hundred from
    // each of many.
    for _ in 0..1_000 {
        let mut lbn = ((u128::from(rng.next_u64()) * u128::from(geometry.capacity())) >> 64) as u64;
        let mut track = geometry.track_of(lbn).expect("below the capacity");
        for _ in 0..100 {
            lbn = track.first_lbn + u64::from(track.lbns);
            let Some(next) = geometry.track_of(lbn) else { break };
            assert_eq!(next.first_lbn, lbn, "{track:?} then {next:?}");
            assert!((next.cylinder, next.surface) != (track.cylinder, track.surface));
            track = next;
        }
    }
}

/// Returns the error of an angle given exactly as a fraction of a revolution: numerator over a
/// common denominator.
fn off_by(angle: Angle, numerator: u128, denominator: u128) -> f64 {
    // 2^64 * numerator / denominator, to the nearest; the numerator is below 2^60.
    let exact = ((numerator % denominator) << 64) / denominator;
    Angle(angle.distance(Angle(exact as u64))).turns()
}

#[test]
fn angles_are_exact_to_a_trillionth_of_a_turn_at_the_end_of_ten_million_tracks() {
    let spt = 3_001;
    let z = zone(0, 999_999, None, spt);
    let layout = Layout::SeekFirst { group_tracks: 100, tracks_alternate: true, surfaces_alternate: false };
    let spec = GeometrySpec { surfaces: 10, cylinders: 1_000_000, layout, zones: vec![z], remaps: Vec::new() };
    let geometry = Geometry::new(&spec).expect("a drive that works");
    let tracks = geometry.capacity() / u64::from(spt);
    assert_eq!(tracks, 10_000_000);
    for track in [1, 99, 100, 12_345, 5_000_000, tracks - 1] {
        for sector in [0, 1, 2_999, 3_000] {
            let at = geometry.locate(track * u64::from(spt) + sector).expect("below the capacity");
            // Every hundredth step is a cylinder skew of 3/11, the others are track skews of 1/7.
            let (long, n) = (u128::from(track / 100), u128::from(spt));
            let short = u128::from(track) - long;
            let numerator = long * 3 * 7 * n + short * 11 * n + u128::from(sector) * 77;
            let off = off_by(at.angle, numerator, 77 * n);
            assert!(off < 1e-12, "track {track} sector {sector}: off by {off} turns");
        }
    }
}

#[test]
fn a_serpentine_of_a_hundred_thousand_groups_needs_no_table_of_groups() {
    let zones = (0..20).map(|i| zone(i * 50_000, i * 50_000 + 49_999, None, 3_000 - 50 * i)).collect();
    let layout = Layout::SeekFirst { group_tracks: 10, tracks_alternate: true, surfaces_alternate: true };
    let spec = GeometrySpec { surfaces: 16, cylinders: 1_000_000, layout, zones, remaps: Vec::new() };
    let geometry = Geometry::new(&spec).expect("a drive that works");
    assert!(geometry.memory_bytes() < 100_000, "{} bytes", geometry.memory_bytes());
}

#[test]
fn sectors_of_either_size_differ_in_nothing_but_their_number() {
    // 30 TB in 512-byte and in 4096-byte sectors, head-first with a spare per thousand cylinders.
    let drive = |spt| {
        let mut z = zone(0, 499_999, None, spt);
        z.sparing = Sparing { unit: SpareUnit::Cylinders(1_000), spares: u64::from(spt), ..Sparing::NONE };
        let layout = Layout::HeadFirst(HeadOrder::AlternatingOnDisk);
        GeometrySpec { surfaces: 20, cylinders: 500_000, layout, zones: vec![z], remaps: Vec::new() }
    };
    let small = Geometry::new(&drive(6_000)).expect("a drive that works");
    let large = Geometry::new(&drive(750)).expect("a drive that works");
    assert_eq!(small.capacity(), 8 * large.capacity());
    assert_eq!(small.capacity(), 6_000 * (20 * 500_000 - 500));
    for lbn in (0..large.capacity()).step_by(7_654_321) {
        let (a, b) = (small.locate(8 * lbn).expect("inside"), large.locate(lbn).expect("inside"));
        assert_eq!((a.cylinder, a.surface, a.sector), (b.cylinder, b.surface, 8 * b.sector));
        assert!(Angle(a.angle.distance(b.angle)).turns() < 1e-12);
    }
}

#[test]
fn where_lbns_run_along_a_surface_one_lookup_finds_the_tracks_of_a_sweep() {
    let geometry = Geometry::new(&profile::builtin("nearline-20tb").unwrap().geometry).unwrap();
    let (mut looked_at, mut found) = (0u64, 0u64);
    for cylinder in (0..geometry.cylinders()).step_by(7_919) {
        for surface in (0..geometry.surfaces()).step_by(3) {
            let Some(alike) = geometry.alike(cylinder, surface) else { continue };
            let cylinders = cylinder.saturating_sub(1_000)..(cylinder + 1_000).min(geometry.cylinders());
            for track in cylinders.filter_map(|c| alike.at(c, surface)) {
                assert_eq!(Some(track), geometry.track(track.cylinder, surface));
                found += 1;
            }
            looked_at += 1;
        }
    }
    // Groups of 1,000 tracks; spares at the end of each zone and zones that begin within a group
    // shorten some.
    assert!(found > 900 * looked_at, "{found} tracks of {looked_at} sweeps");
}
