//! Hypothetical drives: a built-in one with denser tracks, more cylinders or more surfaces
//! (Thereska 2003 section 4.7, figure 12), or fewer cylinders for short runs.
//!
//! | what | how it scales |
//! |---|---|
//! | [`denser`]: linear density | sectors per track and spares times n; angles of skews unchanged |
//! | [`cylinders`]: track density | zone boundaries and spares times n; the arm's stroke unchanged, so that d cylinders of the new drive take as long as d / n of the old one, but no move takes less than the old one's shortest |
//! | [`surfaces`] | surfaces and spares times n; nothing else |
//!
//! Electronics and noise are unchanged.

use headtime_disk::profile::{Profile, Skew, SpareUnit};
use headtime_disk::time::Dur;

/// Returns a drive with `n` times the sectors per track.
pub(crate) fn denser(profile: &Profile, n: u32) -> Profile {
    let mut p = named(profile, &format!("{n}x linear density"));
    for zone in &mut p.geometry.zones {
        zone.sectors_per_track.iter_mut().for_each(|s| *s *= n);
        for skew in [&mut zone.track_skew, &mut zone.cylinder_skew].into_iter().chain(&mut zone.offset) {
            if let Skew::Sectors(s) = skew {
                *s *= n;
            }
        }
        zone.reserved_sectors *= u64::from(n);
        zone.sparing.spares *= u64::from(n);
    }
    p
}

/// A drive with `n / of` times the cylinders on the same stroke.
pub(crate) fn cylinders(profile: &Profile, n: u32, of: u32) -> Profile {
    let mut p = named(profile, &format!("{n}/{of} of the cylinders"));
    let scaled = |c: u32| (u64::from(c) * u64::from(n) / u64::from(of)) as u32;
    p.geometry.cylinders = scaled(profile.geometry.cylinders);
    for zone in &mut p.geometry.zones {
        (zone.first_cylinder, zone.last_cylinder) = (scaled(zone.first_cylinder), scaled(zone.last_cylinder + 1) - 1);
        if zone.sparing.unit == SpareUnit::Zone {
            zone.sparing.spares = zone.sparing.spares * u64::from(n) / u64::from(of);
        }
    }
    let m = &mut p.mechanics;
    m.seek = stretched(&profile.mechanics.seek, n, of, p.geometry.cylinders);
    m.write_seek = profile.mechanics.write_seek.as_ref().map(|s| stretched(s, n, of, p.geometry.cylinders));
    p
}

/// A drive with `n` times the surfaces.
pub(crate) fn surfaces(profile: &Profile, n: u16) -> Profile {
    let mut p = named(profile, &format!("{n}x surfaces"));
    p.geometry.surfaces *= n;
    for zone in &mut p.geometry.zones {
        if zone.sectors_per_track.len() > 1 {
            zone.sectors_per_track = zone.sectors_per_track.repeat(usize::from(n));
        }
        zone.reserved_sectors *= u64::from(n);
        if zone.sparing.unit == SpareUnit::Zone {
            zone.sparing.spares *= u64::from(n);
        }
    }
    p
}

fn named(profile: &Profile, what: &str) -> Profile {
    let synthesised = Some(format!("{} with {what}", profile.name));
    // Defects would keep their positions; the drives scaled here have none.
    let plain = profile.geometry.remaps.is_empty()
        && profile.geometry.zones.iter().all(|z| z.slips.is_empty() && z.defects.is_empty() && z.surface.is_none());
    assert!(plain, "{}: defects and zones of one surface are not scaled", profile.name);
    // Measurements of the original do not apply to this drive.
    Profile { stated_sectors: None, synthesised, rig: None, service_times: Vec::new(), ..profile.clone() }
}

/// A seek table with distances times `n / of`, for a drive of `cylinders` cylinders.
fn stretched(table: &[(u32, Dur)], n: u32, of: u32, cylinders: u32) -> Vec<(u32, Dur)> {
    let Some(&(_, shortest)) = table.first() else { return Vec::new() };
    let mut new: Vec<(u32, Dur)> = vec![(1, shortest.max(at(table, 1, n, of)))];
    for &(d, _) in table {
        let d = (u64::from(d) * u64::from(n) / u64::from(of)) as u32;
        if d > new[new.len() - 1].0 && d < cylinders {
            new.push((d, at(table, d, n, of).max(shortest)));
        }
    }
    let last = cylinders.saturating_sub(1);
    if last > new[new.len() - 1].0 {
        new.push((last, table[table.len() - 1].1));
    }
    new
}

/// The time of a new distance `d`: that of `d * of / n` in the old table, interpolated between two
/// of its entries.
fn at(table: &[(u32, Dur)], d: u32, n: u32, of: u32) -> Dur {
    // In units of 1 / n cylinders, so that nothing is rounded before the end.
    let d = u128::from(d) * u128::from(of);
    let place = |entry: &(u32, Dur)| u128::from(entry.0) * u128::from(n);
    let above = table.partition_point(|e| place(e) < d);
    match (above.checked_sub(1).map(|i| table[i]), table.get(above)) {
        (_, Some(e)) if place(e) == d => e.1,
        (Some(a), Some(b)) => {
            let (from, to) = (place(&a), place(b));
            let rise = u128::from(b.1.0.saturating_sub(a.1.0)) * (d - from) / (to - from);
            Dur(a.1.0 + rise as u64)
        }
        (None, Some(e)) => e.1,
        (Some(a), None) => a.1,
        (None, None) => Dur::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_disk::model::Model;
    use headtime_disk::profile::{builtin, check};

    fn cheetah() -> Profile {
        builtin("cheetah36es").unwrap()
    }

    fn capacity(p: &Profile) -> f64 {
        Model::new(p).unwrap().geometry.capacity() as f64
    }

    #[test]
    fn each_doubling_doubles_the_capacity_and_an_eighth_is_an_eighth() {
        let one = cheetah();
        for (p, times) in [
            (denser(&one, 2), 2.0),
            (cylinders(&one, 2, 1), 2.0),
            (surfaces(&one, 2), 2.0),
            (cylinders(&one, 1, 8), 0.125),
        ] {
            assert!(check(&p).is_ok(), "{:?}", p.synthesised);
            let ratio = capacity(&p) / capacity(&one);
            assert!((ratio / times - 1.0).abs() < 0.002, "{:?}: {ratio}", p.synthesised);
        }
    }

    #[test]
    fn a_denser_track_passes_in_the_same_time_at_the_same_angles() {
        let (one, two) = (cheetah(), denser(&cheetah(), 2));
        let (a, b) = (Model::new(&one).unwrap(), Model::new(&two).unwrap());
        for c in [0, 1, 5_000, 26_000] {
            let (x, y) = (a.geometry.track(c, 1).unwrap(), b.geometry.track(c, 1).unwrap());
            assert_eq!((2 * x.spt, x.angle), (y.spt, y.angle));
        }
    }

    #[test]
    fn the_stroke_stays_so_twice_the_cylinders_take_as_long() {
        let (one, two) = (cheetah(), cylinders(&cheetah(), 2, 1));
        let (a, b) = (Model::new(&one).unwrap().mechanics, Model::new(&two).unwrap().mechanics);
        for d in [1, 2, 10, 24, 100, 1_000, 8_500, 26_301] {
            let (x, y) = (a.reposition_floor(d), b.reposition_floor(2 * d));
            assert!(x.0.abs_diff(y.0) < 2_000, "{d}: {x:?}, {y:?}");
        }
        // No move is shorter than the shortest of the original.
        assert!(b.reposition_floor(1) >= a.reposition_floor(1));
    }

    #[test]
    fn the_stroke_stays_with_fewer_cylinders_too() {
        let few = cylinders(&cheetah(), 1, 8);
        let (a, b) = (Model::new(&cheetah()).unwrap().mechanics, Model::new(&few).unwrap().mechanics);
        for d in [1, 5, 100, 1_000, 3_000] {
            let (x, y) = (a.reposition_floor(8 * d), b.reposition_floor(d));
            assert!(x.0.abs_diff(y.0) < 10_000, "{d}: {x:?}, {y:?}");
        }
    }

    #[test]
    fn zones_stay_next_to_each_other() {
        for p in [cylinders(&cheetah(), 2, 1), cylinders(&cheetah(), 1, 8)] {
            for pair in p.geometry.zones.windows(2) {
                assert_eq!(pair[0].last_cylinder + 1, pair[1].first_cylinder);
            }
            assert_eq!(p.geometry.zones.last().unwrap().last_cylinder + 1, p.geometry.cylinders);
        }
    }
}
