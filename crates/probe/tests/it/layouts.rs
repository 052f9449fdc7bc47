//! Drives of every layout, distinguished by timing alone.

use headtime_disk::profile::{
    HeadOrder, Layout, Profile, SectorAddress, Slip, SpareUnit, Sparing, ZoneSpec, builtin, load, write,
};
use headtime_disk::{Dur, Geometry};
use headtime_probe::layout::{Laid, lay_out};
use headtime_probe::map::Mapper;
use headtime_probe::tracks::Tracer;
use headtime_testkit::profiles::cut;

use crate::common::{Lab, angles, wrong};

/// Lays out a drive, and counts its tracks that are wrong or on another surface.
fn laid(profile: Profile) -> (Laid, u64) {
    let name = profile.name.clone();
    let mut lab = Lab::new(profile);
    let laid = lab.probe(|sampler, spindle| {
        let spans = Mapper::new(&mut Tracer { sampler, spindle }).map().expect("it is a disk");
        lay_out(sampler, spindle, &spans).expect("it answers")
    });
    let found = Geometry::new(&laid.spec).expect("a geometry");
    let wrong = wrong(&found, &lab.truth.geometry);
    let off = angles(&found, &lab.truth);
    println!("{name}: {:?}; {}; {wrong} tracks wrong; angles {:.1} us off at most", laid.order, laid.sure, off[999]);
    // In a zone of a few tracks only an occasional answer may be far off.
    assert!(off[500] < 4.0 && off[999] < 16.0, "{name}: {} us, {} us", off[500], off[999]);
    (laid, wrong)
}

/// A serpentine of `surfaces` that is cut off, with zones that end within groups.
fn serpentine(surfaces: u16, tracks_alternate: bool, surfaces_alternate: bool) -> Profile {
    let mut p = cut(builtin("maxtor-7l250s0").expect("a built-in drive"), 20_000);
    p.stated_sectors = None;
    p.geometry.surfaces = surfaces;
    p.geometry.layout = Layout::SeekFirst { group_tracks: 512, tracks_alternate, surfaces_alternate };
    p
}

#[test]
fn serpentines_of_all_letters_and_numbers_of_surfaces() {
    for surfaces in [1, 2, 3, 4, 5, 10] {
        for (tracks, all) in [(false, false), (true, false), (false, true), (true, true)] {
            let profile = serpentine(surfaces, tracks, all);
            let layout = profile.geometry.layout;
            let (found, wrong) = laid(profile);
            assert_eq!(found.spec.surfaces, surfaces);
            if surfaces > 1 {
                assert_eq!(found.spec.layout, layout, "{surfaces}");
            }
            assert_eq!(wrong, 0, "{surfaces} {layout:?}");
        }
    }
}

/// The outer zones of a built-in drive, with their spares.
fn outer_zones(name: &str, zones: usize) -> Profile {
    let mut p = builtin(name).expect("a built-in drive");
    p.geometry.zones.truncate(zones);
    p.geometry.cylinders = p.geometry.zones.last().expect("one at least").last_cylinder + 1;
    p.geometry.remaps.clear();
    p.stated_sectors = None;
    p.mechanics.seek.retain(|s| s.0 < p.geometry.cylinders);
    p
}

#[test]
fn what_is_kept_free_at_the_ends_of_zones_may_be_less_than_a_track_or_more_than_a_leg() {
    // On the first, some zones have one sector only on their last track; on the last, a zone's
    // spares are one leg and a half, or all of its last group.
    for name in ["cheetah73lp", "maxtor-stm332061", "hitachi-7k1000c", "toshiba-x300-5tb", "nearline-20tb"] {
        let zones = if name == "nearline-20tb" { 12 } else { 4 };
        let (found, wrong) = laid(outer_zones(name, zones));
        assert_eq!(wrong, 0, "{name}");
        // The result can be written and read.
        let profile = Profile { geometry: found.spec, ..outer_zones(name, zones) };
        let text = write(&profile);
        let read = load("it.toml", &|_: &str| Ok(text.clone())).expect("a profile");
        assert_eq!(read.profile.geometry.zones.len(), profile.geometry.zones.len(), "{name}");
    }
}

#[test]
fn a_serpentine_with_zones_of_each_surface() {
    let mut p = serpentine(4, true, false);
    let zones = std::mem::take(&mut p.geometry.zones);
    let surfaces = 4;
    // Each surface's zones end further in than those of the one before, and have fewer sectors.
    for surface in 0..surfaces {
        for (i, z) in zones.iter().enumerate() {
            let by = |edge: u32| if edge == 0 || edge + 1 >= 20_000 { edge } else { edge + 90 * u32::from(surface) };
            p.geometry.zones.push(ZoneSpec {
                first_cylinder: if i == 0 { 0 } else { by(z.first_cylinder - 1) + 1 },
                last_cylinder: by(z.last_cylinder),
                surface: Some(surface),
                sectors_per_track: vec![z.sectors_per_track[0] - 7 * u32::from(surface)],
                ..z.clone()
            });
        }
    }
    let (found, wrong) = laid(p);
    assert_eq!((found.spec.surfaces, wrong), (4, 0));
}

#[test]
fn heads_first_with_one_skew_for_all_and_there_and_back() {
    for (name, surfaces) in [("atlas10k3", 4), ("cheetah73lp", 8), ("barracuda36es2", 2), ("ultrastar18lzx", 10)] {
        for order in [HeadOrder::Forward, HeadOrder::AlternatingInZone] {
            let mut p = cut(builtin(name).expect("a built-in drive"), 3_000);
            p.geometry.layout = Layout::HeadFirst(order);
            let (found, wrong) = laid(p);
            assert_eq!((found.spec.surfaces, found.spec.layout), (surfaces, Layout::HeadFirst(order)), "{name}");
            assert_eq!(wrong, 0, "{name} {order:?}");
        }
    }
}

#[test]
fn heads_that_switch_sooner_than_any_seek_are_counted_by_skews_and_defects_are_found_where_they_are() {
    let mut p = cut(builtin("maxtor-6l080l0").expect("a built-in drive"), 4_000);
    p.geometry.zones[0].slips = (1..20).map(|i| Slip::Index(i * 98_765)).collect();
    p.geometry.zones[0].sparing.spares = 60_000;
    let truth = p.geometry.clone();
    let (found, wrong) = laid(p);
    assert_eq!((found.spec.surfaces, wrong), (4, 0));
    let geometry = |spec| Geometry::new(spec).expect("a geometry");
    let (a, b) = (geometry(&truth), geometry(&found.spec));
    let sector = |g: &Geometry, lbn| g.locate(lbn).map(|p| (p.surface, p.sector));
    let other = (0..a.capacity()).step_by(17).filter(|&lbn| sector(&a, lbn) != sector(&b, lbn)).count();
    println!("{other} of {} sectors elsewhere", a.capacity() / 17);
    assert!(found.slipped == 19 && other < 20, "{} {other}", found.slipped);
}

#[test]
fn surfaces_show_where_heads_switch_sooner_than_any_seek_and_skews_are_alike() {
    let mut p = cut(builtin("cheetah73lp").expect("a built-in drive"), 3_000);
    p.mechanics.head_switch = Dur::from_us(300);
    let (found, wrong) = laid(p);
    assert_eq!((found.spec.surfaces, wrong), (8, 0));
}

#[test]
fn serpentines_and_heads_of_one_skew_with_bad_sectors() {
    let serpentine = serpentine(4, true, false);
    let heads = cut(builtin("atlas10k3").expect("a built-in drive"), 3_000);
    let mut back = heads.clone();
    back.geometry.layout = Layout::HeadFirst(HeadOrder::AlternatingInZone);
    for mut p in [serpentine, heads, back] {
        let surfaces = p.geometry.surfaces;
        for z in &mut p.geometry.zones {
            let cylinders = z.last_cylinder - z.first_cylinder;
            z.sparing = Sparing::NONE;
            z.slips = (1..6u32)
                .map(|i| {
                    let cylinder = z.first_cylinder + cylinders / 7 * i;
                    Slip::Sector(SectorAddress { cylinder, surface: i as u16 % surfaces, sector: 37 * i })
                })
                .collect();
            z.slips.sort_unstable();
        }
        // The first leg, too.
        if let Layout::SeekFirst { .. } = p.geometry.layout {
            let first = SectorAddress { cylinder: 100, surface: 0, sector: 5 };
            p.geometry.zones[0].slips.insert(0, Slip::Sector(first));
        }
        let (layout, slips) = (p.geometry.layout, p.geometry.zones.iter().map(|z| z.slips.len()).sum::<usize>());
        let (found, wrong) = laid(p);
        assert_eq!((found.spec.surfaces, found.spec.layout), (surfaces, layout));
        assert_eq!((wrong, found.slipped), (0, slips));
    }
}

/// Skips whole tracks: in the middle of cylinders and legs and at both their ends, some two in a
/// row.
fn skip_tracks(p: &mut Profile) {
    let (surfaces, layout) = (u32::from(p.geometry.surfaces), p.geometry.layout);
    for z in &mut p.geometry.zones {
        let group = match layout {
            Layout::SeekFirst { group_tracks, .. } => group_tracks,
            Layout::HeadFirst(_) => 1,
        };
        // If all skews are equal, a zone's first tracks are not distinguishable.
        let begin = z.first_cylinder.next_multiple_of(group) + if group == 1 { 3 } else { 0 };
        let of = |n: u32, in_group: u32| begin + n * group + in_group;
        let middle = (z.last_cylinder - z.first_cylinder) / group / 5;
        let places =
            [(0, group - 1, 1), (1, group / 3, 1), (2, group / 3 + 1, 1), (3, group - 1, 2), (3, group / 2, 3)];
        for (n, in_group, surface) in places {
            let cylinder = of(n * middle, in_group);
            if cylinder < z.last_cylinder - 10 {
                z.slips.push(Slip::Track { cylinder, surface: (surface % surfaces) as u16 });
            }
        }
        if group > 1 {
            z.slips.push(Slip::Track { cylinder: of(middle, group / 3 + 1), surface: 1 % surfaces as u16 });
        }
        z.slips.sort_unstable();
        z.slips.dedup();
        z.sparing = Sparing::NONE;
    }
}

#[test]
fn tracks_that_are_skipped_whole_put_no_other_on_another_surface() {
    // A separate cylinder skew, one skew for all, alternating head order.
    let mut back = cut(builtin("cheetah73lp").expect("a built-in drive"), 3_000);
    back.geometry.layout = Layout::HeadFirst(HeadOrder::AlternatingInZone);
    let heads = ["maxtor-6l080l0", "cheetah36es"].map(|name| cut(builtin(name).expect("a built-in drive"), 4_000));
    let serpentines = [(2, true, false), (4, false, false), (3, true, true), (4, false, true)];
    let serpentines = serpentines.map(|(surfaces, tracks, all)| serpentine(surfaces, tracks, all));
    for mut p in heads.into_iter().chain([back]).chain(serpentines) {
        skip_tracks(&mut p);
        let (layout, surfaces) = (p.geometry.layout, p.geometry.surfaces);
        assert!(p.geometry.zones[0].slips.len() >= 4);
        let (found, wrong) = laid(p);
        assert_eq!((found.spec.layout, found.spec.surfaces, wrong), (layout, surfaces, 0));
    }
}

#[test]
fn what_is_kept_free_in_front_of_the_first_sector_and_between_zones_is_crossed() {
    let mut p = cut(builtin("maxtor-6l080l0").expect("a built-in drive"), 6_000);
    let surfaces = u64::from(p.geometry.surfaces);
    p.geometry.zones[0].reserved_sectors = (surfaces + 2) * u64::from(p.geometry.zones[0].sectors_per_track[0]);
    for z in &mut p.geometry.zones {
        z.sparing.spares = 30 * surfaces * u64::from(z.sectors_per_track[0]);
    }
    let (zones, cylinders) = (p.geometry.zones.len() as u32, p.geometry.cylinders);
    let (found, wrong) = laid(p);
    assert_eq!(wrong, 0);
    // Spares in front of the first cylinder and after the last are invisible.
    let seen = cylinders - 30 - 1;
    println!("{} of {seen} cylinders in {zones} zones", found.spec.cylinders);
    assert!(zones > 1 && found.spec.cylinders.abs_diff(seen) <= 3 * zones, "{}", found.spec.cylinders);
}

#[test]
fn heads_with_other_sectors_in_each_cylinder_and_what_tracks_and_cylinders_keep_free() {
    let base = || cut(builtin("cheetah36es").expect("a built-in drive"), 6_000);
    let mut all: Vec<Profile> = Vec::new();
    for order in [HeadOrder::Forward, HeadOrder::AlternatingInZone] {
        let mut p = base();
        (p.geometry.layout, p.geometry.surfaces) = (Layout::HeadFirst(order), 4);
        for z in &mut p.geometry.zones {
            let n = z.sectors_per_track[0];
            (z.sectors_per_track, z.sparing.spares) = (vec![n, n - 6, n + 4, n - 6], 5_000);
        }
        all.push(p);
    }
    for (unit, spares, surfaces) in
        [(SpareUnit::Track, 4, 2), (SpareUnit::Cylinders(1), 10, 2), (SpareUnit::Cylinders(1), 25, 5)]
    {
        let mut p = base();
        p.geometry.surfaces = surfaces;
        for z in &mut p.geometry.zones {
            z.sparing = Sparing { unit, spares, ..Sparing::NONE };
        }
        all.push(p);
    }
    for p in all {
        let (layout, surfaces, sparing) = (p.geometry.layout, p.geometry.surfaces, p.geometry.zones[0].sparing);
        let (found, wrong) = laid(p);
        assert_eq!((found.spec.layout, found.spec.surfaces, wrong), (layout, surfaces, 0));
        assert_eq!(found.spec.zones[0].sparing.unit, sparing.unit);
    }
}

#[test]
fn a_drive_whose_heads_cannot_be_distinguished_is_one_surface() {
    let mut p = cut(builtin("cheetah36es").expect("a built-in drive"), 3_000);
    let seek = p.mechanics.seek.iter().map(|s| s.1).min().expect("a table");
    p.mechanics.head_switch = seek;
    p.mechanics.seek.iter_mut().filter(|s| s.0 < 100).for_each(|s| s.1 = seek);
    let (found, _) = laid(p);
    assert_eq!(found.spec.surfaces, 1);
    assert!(found.sure.contains("surfaces do not show"), "{}", found.sure);
}

#[test]
fn skews_are_what_a_rule_has_them_where_all_zones_agree_with_it() {
    // Whole sectors, others in each zone; and one part of a revolution everywhere.
    let (found, _) = laid(builtin("cheetah36es").expect("a built-in drive"));
    for z in &found.spec.zones {
        let n = z.sectors_per_track[0];
        let sectors = z.track_skew.angle(n).turns() * f64::from(n);
        assert!((sectors - sectors.round()).abs() < 1e-6, "{sectors} of {n} sectors");
    }
    let (found, _) = laid(outer_zones("hitachi-7k1000c", 6));
    let skews: Vec<f64> = found.spec.zones.iter().map(|z| z.track_skew.angle(z.sectors_per_track[0]).turns()).collect();
    assert!(skews.len() >= 6 && skews.iter().all(|s| (s - skews[0]).abs() < 1e-9), "{skews:?}");
}
