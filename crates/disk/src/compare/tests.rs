use super::*;
use crate::angle::Angle;
use crate::profile::{Layout, Skew, ZoneSpec, builtin, builtin_names};
use crate::time::Dur;

fn broken(a: &Profile, b: &Profile) -> Vec<String> {
    let options = Options::default();
    compare(a, b, &options).unwrap().broken().map(|r| r.what.clone()).collect()
}

/// The small drives; the others are covered by the program's own tests, which are built optimized.
fn drives() -> impl Iterator<Item = Profile> {
    builtin_names().map(|n| builtin(n).unwrap()).filter(|p| p.geometry.cylinders < 20_000)
}

fn atlas() -> Profile {
    builtin("atlas10k").unwrap()
}

#[test]
fn a_drive_agrees_with_itself_in_everything() {
    for p in drives() {
        let c = compare(&p, &p, &Options::default()).unwrap();
        assert!(c.agrees(), "{}: {:#?}", p.name, c.broken().collect::<Vec<_>>());
        for row in &c.rows {
            assert!(row.difference.is_none_or(|d| d == 0.0), "{}: {row:?}", p.name);
        }
    }
}

#[test]
fn two_drives_agree_in_little() {
    let (a, b) = (atlas(), builtin("cheetah9lp").unwrap());
    let broken = broken(&a, &b);
    for what in ["sectors", "surfaces", "layout", "sectors per track", "angle of 1000 random sectors, largest"] {
        assert!(broken.iter().any(|b| b == what), "{what}: {broken:?}");
    }
}

#[test]
fn where_the_index_mark_is_and_where_a_zone_is_cut_makes_no_difference() {
    let a = atlas();
    let mut b = a.clone();
    // The first zone's offset shifts all zones that continue from it.
    for z in &mut b.geometry.zones {
        z.offset = z.offset.map(|o| Skew::Turn(o.angle(z.sectors_per_track[0]) + Angle::from_turns(0.3)));
    }
    b.geometry.zones[0].offset.get_or_insert(Skew::Turn(Angle::from_turns(0.3)));
    assert_eq!(broken(&a, &b), Vec::<String>::new());
    // The last zone has its own spares and no slips: split it in two, with spares only at its end.
    let mut b = a.clone();
    let last: ZoneSpec = b.geometry.zones.last().unwrap().clone();
    let cut = last.first_cylinder + 100;
    let surfaces = u64::from(b.geometry.surfaces);
    let spt = u64::from(last.sectors_per_track[0]);
    assert!(spt * surfaces > last.sparing.spares);
    b.geometry.zones.last_mut().unwrap().last_cylinder = cut - 1;
    b.geometry.zones.last_mut().unwrap().sparing.spares = 0;
    b.geometry.zones.push(ZoneSpec { first_cylinder: cut, offset: None, ..last });
    assert_eq!(broken(&a, &b), Vec::<String>::new());
}

#[test]
fn a_period_is_held_to_ten_parts_in_a_million() {
    let a = atlas();
    let mut b = a.clone();
    let (num, den) = a.mechanics.rpm;
    b.mechanics.rpm = (num * 1_000_000, den * 1_000_009);
    assert!(!broken(&a, &b).contains(&"period".to_string()));
    b.mechanics.rpm = (num * 1_000_000, den * 1_000_011);
    assert!(broken(&a, &b).contains(&"period".to_string()));
}

#[test]
fn a_skew_is_held_to_half_a_sector_in_every_zone() {
    let a = atlas();
    for (by, holds) in [(0.45, true), (0.6, false)] {
        for cylinder in [false, true] {
            let mut b = a.clone();
            let z = &mut b.geometry.zones[7];
            let spt = z.sectors_per_track[0];
            let skew = if cylinder { &mut z.cylinder_skew } else { &mut z.track_skew };
            *skew = Skew::Turn(skew.angle(spt) + Angle::from_turns(by / f64::from(spt)));
            let what = if cylinder { "cylinder skew" } else { "track skew" };
            let c = compare(&a, &b, &Options::default()).unwrap();
            let row = c.rows.iter().find(|r| r.what == what).unwrap();
            assert_eq!(row.holds, holds, "{row:?}");
            assert!((row.difference.unwrap() - by).abs() < 0.01, "{row:?}");
            // The error accumulates over the zone's tracks, which the angles show.
            assert!(!c.agrees());
        }
    }
}

#[test]
fn a_zone_of_another_density_and_a_boundary_that_moved_are_found() {
    let a = atlas();
    let mut b = a.clone();
    b.geometry.zones[5].sectors_per_track = vec![323];
    let found = broken(&a, &b);
    assert!(found.contains(&"sectors per track".to_string()), "{found:?}");
    let mut b = a.clone();
    // Zones 10 and 11 hold 324 and 306.
    b.geometry.zones[10].last_cylinder -= 1;
    b.geometry.zones[11].first_cylinder -= 1;
    let c = compare(&a, &b, &Options::default()).unwrap();
    let of = |what: &str| c.rows.iter().find(|r| r.what == what).unwrap();
    assert!(of("zones").holds && of("sectors per track").holds);
    assert!(!of("zone boundaries").holds && of("track boundaries").difference > Some(0.0));
}

#[test]
fn a_serpentine_layout_is_distinguished_from_similar_ones() {
    let mut a = atlas();
    a.geometry.zones.truncate(1);
    a.geometry.zones[0].slips.clear();
    a.geometry.cylinders = 433;
    a.stated_sectors = None;
    let with = |tracks_alternate: bool, surfaces_alternate: bool, group_tracks: u32| {
        let mut p = a.clone();
        p.geometry.layout = Layout::SeekFirst { group_tracks, tracks_alternate, surfaces_alternate };
        p
    };
    let af = with(true, false, 50);
    assert_eq!(broken(&af, &af), Vec::<String>::new());
    assert!(broken(&af, &with(false, false, 50)).contains(&"layout".to_string()));
    let other = broken(&af, &with(true, true, 50));
    assert!(other.contains(&"layout".to_string()) && other.contains(&"tracks on another surface".to_string()));
    assert!(broken(&af, &with(true, false, 49)).contains(&"layout".to_string()));
}

#[test]
fn seeks_are_held_to_thirty_microseconds_where_the_second_was_measured() {
    let a = atlas();
    let nudged = |by: i64| {
        let mut b = a.clone();
        let point = b.mechanics.seek.iter_mut().find(|p| p.0 == 500).unwrap();
        point.1 = point.1.saturating_add_signed(by);
        b
    };
    assert_eq!(broken(&a, &nudged(29_000)), Vec::<String>::new());
    let b = nudged(-31_000);
    assert_eq!(broken(&a, &b).len(), 2);
    let c = compare(&a, &b, &Options::default()).unwrap();
    let row = c.rows.iter().find(|r| r.what == "seek, distances that both have").unwrap();
    assert!(row.place.starts_with("over 500 cylinders") && (row.difference.unwrap() + 31.0).abs() < 0.01, "{row:?}");
    // A table with fewer points is correct at its points; between them the difference is for
    // information only.
    let mut sparse = a.clone();
    sparse.mechanics.seek.retain(|p| p.0 <= 10 || p.0 % 1000 == 0 || p.0 > 10_000);
    assert_eq!(broken(&a, &sparse), Vec::<String>::new());
    let c = compare(&a, &sparse, &Options::default()).unwrap();
    let told = c.rows.iter().find(|r| r.what.contains("the second interpolated")).unwrap();
    assert!(told.difference.unwrap().abs() > 30.0, "{told:?}");
    // In the opposite direction the dense table counts as the measured one.
    assert!(!broken(&sparse, &a).is_empty());
}

#[test]
fn an_overhead_may_stand_before_or_behind_the_media() {
    let a = builtin("cheetah9lp").unwrap();
    let mut b = a.clone();
    let o = &mut b.electronics.overheads;
    o.per_request += Dur::from_us(40);
    assert!(broken(&a, &b).contains(&"a read of one sector from the cache".to_string()));
    o_moved(&mut b);
    assert_eq!(broken(&a, &b), Vec::<String>::new());
    b.electronics.cache.segments += 1;
    assert_eq!(broken(&a, &b), ["cache segments"]);
}

/// Moves an overhead of every command from its arrival to its end.
fn o_moved(p: &mut Profile) {
    let o = &mut p.electronics.overheads;
    o.per_request = o.per_request.saturating_sub(Dur::from_us(40));
    let all = o.per_request;
    o.per_request = Dur::ZERO;
    o.read_completion += all;
    o.write_completion += all;
}

#[test]
fn what_is_of_writes_can_be_left_out() {
    let a = atlas();
    let mut b = a.clone();
    b.mechanics.write_settle_ns += 100_000;
    b.electronics.overheads.write_miss.after_read += Dur::from_us(100);
    b.electronics.overheads.queued.write_read += Dur::from_us(100);
    assert_eq!(broken(&a, &b).len(), 3);
    assert!(compare(&a, &b, &Options { reads_only: true, ..Options::default() }).unwrap().agrees());
}

#[test]
fn what_is_between_two_queued_commands_is_of_drives_that_have_a_queue() {
    let mut a = atlas();
    let mut b = a.clone();
    b.electronics.overheads.queued.read_read += Dur::from_us(100);
    assert_eq!(broken(&a, &b), ["between two queued reads"]);
    a.electronics.queue.depth = 1;
    assert_eq!(broken(&a, &b), ["between two queued reads"]);
    b.electronics.queue.depth = 1;
    assert_eq!(broken(&a, &b), Vec::<String>::new());
}
