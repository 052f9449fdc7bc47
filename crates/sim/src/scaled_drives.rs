//! Hypothetical drives: a built-in one with denser tracks, more cylinders or more surfaces
//! (Thereska 2003 section 4.7, figure 12), or fewer cylinders for short runs.
//!
//! | what | how it scales |
//! |---|---|
//! | [`denser`]: linear density | sectors per track and spares times n; angles of skews unchanged |
//! | [`cylinders`]: track density | zone boundaries and spares times n; the arm's stroke unchanged, so that d cylinders of the new drive take as long as d / n of the old one, but no move takes less than the old one's shortest |
//! | [`surfaces`] | surfaces and spares times n; nothing else |
//! | [`narrowed`]: fewer cylinders | all radial figures divided; a share of the stroke takes the same time |
//!
//! Electronics and noise are unchanged.

use headtime_disk::profile::{Layout, Profile, Skew, SpareUnit};
use headtime_disk::{Dur, SeekCurve, SeekError};

/// Returns a drive with `n` times the sectors per track.
pub fn denser(profile: &Profile, n: u32) -> Profile {
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
pub fn cylinders(profile: &Profile, n: u32, of: u32) -> Profile {
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
pub fn surfaces(profile: &Profile, n: u16) -> Profile {
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

/// Returns the drive with its cylinders divided by `by`.
///
/// All radial figures are divided: the cylinders of each zone, the spares of a zone, the width of a
/// serpentine group. A share of the stroke takes the same time as before, so a full stroke is
/// unchanged and random requests of the small drive are as far apart, in time, as those of the
/// large one; a step to the very next cylinder keeps its time. Everything along a track and in the
/// electronics is unchanged: sectors per track, skews, rotation, head switch, overheads, cache,
/// noise. Defects are left out, because they refer to cylinders.
pub fn narrowed(profile: &Profile, by: u32) -> Result<Profile, SeekError> {
    let by = by.max(1);
    let mut p = profile.clone();
    p.name = format!("{}-narrowed-{by}", profile.name);
    p.title = format!("{}, one cylinder of {by}", profile.title);
    p.synthesised = Some(format!("{}: one cylinder of {by}, seeks by share of the stroke", profile.name));
    p.stated_sectors = None;
    p.service_times.clear();
    let g = &mut p.geometry;
    g.cylinders /= by;
    g.remaps.clear();
    if let Layout::SeekFirst { group_tracks, .. } = &mut g.layout {
        *group_tracks = (*group_tracks / by).max(1);
    }
    for z in &mut g.zones {
        z.first_cylinder /= by;
        // A zone narrower than one of the new cylinders is empty: its last cylinder is one less
        // than its first.
        z.last_cylinder = ((z.last_cylinder + 1) / by).wrapping_sub(1);
        z.reserved_sectors /= u64::from(by);
        z.sparing.spares /= u64::from(by);
        z.slips.clear();
        z.defects.clear();
    }
    g.zones.retain(|z| z.last_cylinder != u32::MAX && z.first_cylinder <= z.last_cylinder);
    let (before, after) = (profile.geometry.cylinders - 1, g.cylinders - 1);
    p.mechanics.seek = by_share(&profile.mechanics.seek, by, before, after)?;
    p.mechanics.write_seek =
        profile.mechanics.write_seek.as_ref().map(|table| by_share(table, by, before, after)).transpose()?;
    Ok(p)
}

/// A seek table for `by` times fewer cylinders; `before` and `after` are the full strokes.
fn by_share(table: &[(u32, Dur)], by: u32, before: u32, after: u32) -> Result<Vec<(u32, Dur)>, SeekError> {
    let curve = SeekCurve::from_points(table, before)?;
    // At the points of the old table, and as densely at short distances as the old one.
    let mut distances: Vec<u32> =
        table.iter().flat_map(|&(d, _)| [d, d / by]).filter(|&d| 1 < d && d < after).collect();
    distances.sort_unstable();
    distances.dedup();
    let mut new = vec![(1, curve.time(1))];
    new.extend(distances.into_iter().map(|d| (d, curve.time(d * by))));
    if after > 1 {
        new.push((after, curve.time(before)));
    }
    Ok(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_disk::profile::{builtin, builtin_names, check};
    use headtime_disk::{Mechanics, Model};

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

    #[test]
    fn every_drive_can_be_made_narrower_and_is_still_a_drive() {
        for name in builtin_names() {
            let full = builtin(name).unwrap();
            for by in [1, 5, 20] {
                let small = narrowed(&full, by).unwrap();
                check(&small).unwrap_or_else(|e| panic!("{name} by {by}: {e}"));
                let model = Model::new(&small).unwrap_or_else(|e| panic!("{name} by {by}: {e}"));
                let share = model.geometry.capacity() as f64 * f64::from(by)
                    / Model::new(&full).unwrap().geometry.capacity() as f64;
                assert!((0.98..1.02).contains(&share), "{name} by {by}: {share}");
            }
        }
    }

    #[test]
    fn a_share_of_the_stroke_takes_as_long_as_before() {
        for name in ["atlas10k", "hitachi-7k1000c"] {
            let full = builtin(name).unwrap();
            let small = narrowed(&full, 20).unwrap();
            let (a, b) = (
                Mechanics::new(&full.mechanics, full.geometry.cylinders).unwrap(),
                Mechanics::new(&small.mechanics, small.geometry.cylinders).unwrap(),
            );
            let (strokes_a, strokes_b) = (full.geometry.cylinders - 1, small.geometry.cylinders - 1);
            assert_eq!(a.seek.time(1), b.seek.time(1), "{name}");
            assert_eq!(a.seek.time(strokes_a), b.seek.time(strokes_b), "{name}");
            let mut apart = 0;
            for d in 2..strokes_b {
                apart += a.seek.time(d * 20).0.abs_diff(b.seek.time(d).0);
            }
            assert!(apart / u64::from(strokes_b) < 20_000, "{name}: {apart} ns in all");
        }
    }
}
