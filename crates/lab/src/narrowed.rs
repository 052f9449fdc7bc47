//! A drive with fewer cylinders, so that a full scan takes minutes instead of days.

use headtime_disk::profile::{Layout, Profile};
use headtime_disk::seek::{SeekCurve, SeekError};
use headtime_disk::time::Dur;

/// Returns the drive with its cylinders divided by `by`.
///
/// All radial figures are divided: the cylinders of each zone, the spares of a zone, the width of a
/// serpentine group. A share of the stroke takes the same time as before, so a full stroke is
/// unchanged and random requests of the small drive are as far apart, in time, as those of the
/// large one; a step to the very next cylinder keeps its time. Everything along a track and in the
/// electronics is unchanged: sectors per track, skews, rotation, head switch, overheads, cache,
/// noise. Defects are left out, because they refer to cylinders.
pub(crate) fn narrowed(profile: &Profile, by: u32) -> Result<Profile, SeekError> {
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
    p.mechanics.seek = stretched(&profile.mechanics.seek, by, before, after)?;
    p.mechanics.write_seek =
        profile.mechanics.write_seek.as_ref().map(|table| stretched(table, by, before, after)).transpose()?;
    Ok(p)
}

/// A seek table for `by` times fewer cylinders; `before` and `after` are the full strokes.
fn stretched(table: &[(u32, Dur)], by: u32, before: u32, after: u32) -> Result<Vec<(u32, Dur)>, SeekError> {
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
    use headtime_disk::mechanics::Mechanics;
    use headtime_disk::model::Model;
    use headtime_disk::profile::{builtin, builtin_names, check};

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
