//! The sweeps of a serpentine whose head switch takes no longer than a short seek.
//!
//! There a host cannot see whether two neighbouring sweeps are on one surface, but it sees how far
//! apart they are: from a sweep's last track the next sweep's first one is either near, or a whole
//! group away. Where it is the other way round than usual, a group ends; so the number of surfaces
//! and the directions of the sweeps follow from distances alone.

use super::serpentine::Groups;
use super::{Ways, is_less};
use crate::border::{Border, SHOTS};
use crate::error::ProbeError;
use crate::layout::units::MOST_SURFACES;
use crate::sampler::Sampler;

/// Fewest sweeps that show a group's end.
const FEWEST_SWEEPS: usize = 3;
/// Tracks from a sweep's end that are as good as its last one.
const LAST: u64 = 2;

/// A track at a sweep's end (`true`) or start.
type Place = (usize, bool);

impl Ways<'_, '_, '_> {
    /// Finds surfaces and directions of sweeps, given by the number of each one's first track and
    /// its number of tracks. `None`: distances do not decide.
    pub(super) fn groups_by_distance(
        &mut self,
        sweeps: &[(u64, u64)],
        tracks: u64,
    ) -> Result<Option<(Groups, String)>, ProbeError> {
        if sweeps.len() < FEWEST_SWEEPS {
            return Ok(None);
        }
        let margin = (tracks / 64).max(1);
        let place = |s: &mut Sampler, (sweep, end): Place, margin: u64| {
            let (begin, tracks) = sweeps[sweep];
            let by = s.below(margin.min(tracks));
            begin + if end { tracks - 1 - by } else { by }
        };
        let half = tracks / 2;
        let far = self.time(SHOTS, |s| {
            let (begin, tracks) = sweeps[s.below(sweeps.len() as u64 - 1) as usize];
            let at = begin + s.below(tracks.checked_sub(half)?.max(1));
            Some((at, at + half))
        })?;
        let mut near: Vec<Border> = Vec::new();
        near.extend(self.time(SHOTS, |s| {
            let (begin, tracks) = sweeps[s.below(sweeps.len() as u64 - 1) as usize];
            let at = begin + s.below(tracks.checked_sub(2 * margin)?.max(1));
            Some((at, at + 2 * margin))
        })?);
        // The first two sweeps have the same cylinders, if there are several surfaces.
        let mut switches: Vec<Border> = Vec::new();
        for end in [false, true] {
            switches.extend(self.time(SHOTS, |s| Some((place(s, (0, true), margin), place(s, (1, end), margin))))?);
        }
        near.extend(switches.into_iter().min_by(|a, b| a.at.total_cmp(&b.at)));
        let slow = near.into_iter().max_by(|a, b| a.at.total_cmp(&b.at));
        let (Some(slow), Some(far)) = (slow, far) else { return Ok(None) };
        if !is_less(&slow, &far) {
            return Ok(None);
        }
        let limit = (slow.at + far.at) / 2.0;
        let mut seen: Vec<(Place, Place, bool)> = Vec::new();
        for k in 0..sweeps.len() - 1 {
            for (a, b) in [((k, true), (k + 1, false)), ((k, false), (k + 1, true))] {
                let near = self.is_within(limit, |s| Some((place(s, a, margin), place(s, b, margin))))?;
                seen.extend(near.map(|near| (a, b, near)));
            }
        }
        let Some(mut found) = only(&seen, tracks, margin) else { return Ok(None) };
        let mut sure = format!("{} distances between sweeps are as it says", seen.len());
        if let Some((alternate, us)) = self.alternates(found, sweeps)? {
            found.surfaces_alternate = alternate;
            sure += &format!(", and next tracks of one surface are reached {us:.0} us sooner");
        }
        Ok(Some((found, sure)))
    }

    /// Returns whether surfaces alternate, and by how many us a move to the next track of a surface
    /// is shorter than to that of another. `None`: it makes no difference.
    fn alternates(&mut self, found: Groups, sweeps: &[(u64, u64)]) -> Result<Option<(bool, f64)>, ProbeError> {
        let mut times = Vec::new();
        for alternate in [false, true] {
            let how = Groups { surfaces_alternate: alternate, ..found };
            let other = Groups { surfaces_alternate: !alternate, ..found };
            let pairs = adjacent(how, other, sweeps.len());
            if pairs.is_empty() {
                return Ok(None);
            }
            times.extend(self.time(2 * SHOTS, |s| {
                let (a, b) = pairs[s.below(pairs.len() as u64) as usize];
                let track = |s: &mut Sampler, (sweep, end): Place| {
                    let (begin, tracks) = sweeps[sweep];
                    let by = s.below(LAST.min(tracks));
                    begin + if end { tracks - 1 - by } else { by }
                };
                Some((track(s, a), track(s, b)))
            })?);
        }
        let [same, turned] = times[..] else { return Ok(None) };
        Ok(if is_less(&same, &turned) {
            Some((false, (turned.at - same.at) / 1e3))
        } else if is_less(&turned, &same) {
            Some((true, (same.at - turned.at) / 1e3))
        } else {
            None
        })
    }
}

/// The only groups with these distances between sweeps; `None`: none, or several.
fn only(seen: &[(Place, Place, bool)], tracks: u64, margin: u64) -> Option<Groups> {
    let all = (1..=MOST_SURFACES as u16).flat_map(|surfaces| {
        [false, true].map(|tracks_alternate| Groups {
            tracks: tracks as u32,
            surfaces,
            tracks_alternate,
            surfaces_alternate: false,
        })
    });
    // A head that does not settle may lose a vote or two.
    let wrong = |how: &Groups| {
        let is_wrong = |(a, b, near): &&(Place, Place, bool)| {
            let distance = cylinder(how, *a).abs_diff(cylinder(how, *b));
            *near != (distance <= 2 * margin) && (distance <= 2 * margin || 2 * distance >= tracks)
        };
        seen.iter().filter(is_wrong).count()
    };
    let mut fits = all.filter(|how| 40 * wrong(how) <= seen.len() && (how.surfaces > 1 || !how.tracks_alternate));
    let found = fits.next()?;
    fits.next().is_none().then_some(found)
}

/// The cylinder of a sweep's first or last track.
fn cylinder(how: &Groups, (sweep, end): Place) -> u64 {
    let full = u64::from(how.tracks);
    let group = (sweep / usize::from(how.surfaces)) as u64;
    group * full + if how.is_outwards(sweep) == end { 0 } else { full - 1 }
}

/// Places on neighbouring cylinders of two groups that are on one surface if surfaces are as in
/// `how`, and not if they are as in `other`.
fn adjacent(how: Groups, other: Groups, sweeps: usize) -> Vec<(Place, Place)> {
    let places = |sweep: usize| [(sweep, false), (sweep, true)];
    let mut all = Vec::new();
    for a in (0..sweeps).flat_map(places) {
        let next = (a.0 + 1..sweeps.min(a.0 + 2 * usize::from(how.surfaces))).flat_map(places);
        let is_next = |b: &Place| cylinder(&how, *b) == cylinder(&how, a) + 1;
        let shows = |b: &Place| how.surface(a.0) == how.surface(b.0) && other.surface(a.0) != other.surface(b.0);
        all.extend(next.filter(|b| is_next(b) && shows(b)).map(|b| (a, b)));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_have_one_explanation_or_none() {
        for surfaces in [1, 2, 3, 4, 5, 8] {
            for tracks_alternate in [false, true] {
                let how = Groups { tracks: 100, surfaces, tracks_alternate, surfaces_alternate: false };
                if surfaces == 1 && tracks_alternate {
                    continue;
                }
                let seen = |sweeps: usize| -> Vec<(Place, Place, bool)> {
                    let pairs =
                        (0..sweeps - 1).flat_map(|k| [((k, true), (k + 1, false)), ((k, false), (k + 1, true))]);
                    pairs.map(|(a, b)| (a, b, cylinder(&how, a).abs_diff(cylinder(&how, b)) <= 2)).collect()
                };
                assert_eq!(only(&seen(17), 100, 1), Some(how), "{how:?}");
                // No group ends within so few sweeps.
                let few = only(&seen(usize::from(surfaces)), 100, 1);
                assert!(surfaces == 1 || few.is_none(), "{how:?}: {few:?}");
            }
        }
        assert_eq!(only(&[((0, true), (1, false), true), ((0, false), (1, true), true)], 100, 1), None);
    }
}
