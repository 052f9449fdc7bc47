//! The sweeps of a serpentine: which groups of tracks lie side by side on one surface.

use headtime_disk::profile::Layout;

use super::super::rows::Row;
use super::super::units::MOST_SURFACES;
use super::{Order, Ways, is_less};
use crate::border::SHOTS;
use crate::error::ProbeError;
use crate::sampler::Sampler;

/// Sweeps of a serpentine to examine: each surface twice, and one more.
const MAX_SWEEPS: usize = 2 * MOST_SURFACES as usize + 1;

/// A serpentine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    /// Tracks of a group on one surface.
    pub tracks: u32,
    /// Number of surfaces.
    pub surfaces: u16,
    /// Every second sweep goes outwards.
    pub tracks_alternate: bool,
    /// Every second group begins with the last surface.
    pub surfaces_alternate: bool,
}

impl Ways<'_, '_, '_> {
    /// Rows are sweeps: finds their surfaces and directions.
    pub(super) fn groups(&mut self, rows: &[Row], tracks: u64) -> Result<(Option<Order>, String), ProbeError> {
        let found = self.groups_by_surface(rows, tracks)?;
        if found.0.is_some() {
            return Ok(found);
        }
        let sweeps = first_sweeps(rows, &self.begins, tracks);
        Ok(self.groups_by_distance(&sweeps, tracks)?.map_or(found, |(g, sure)| (Some(Order::Groups(g)), sure)))
    }

    /// Finds which sweeps are adjacent on the same surface.
    fn groups_by_surface(&mut self, rows: &[Row], tracks: u64) -> Result<(Option<Order>, String), ProbeError> {
        let unknown = |why: &str| Ok((None, format!("tracks go in groups of {tracks}, but {why}")));
        // From the first sector on, where groups are counted from.
        let sweeps = first_sweeps(rows, &self.begins, tracks);
        if sweeps.len() < 4 {
            return unknown("the first is not a whole one, or zones are too narrow");
        }
        let margin = (tracks / 64).max(1);
        // A track near a sweep's end or start.
        let place = |s: &mut Sampler, sweep: usize, end: bool| {
            let by = s.below(margin);
            let (begin, tracks) = sweeps[sweep];
            begin + if end { tracks - 1 - by } else { by }
        };
        let some = |s: &mut Sampler| s.below(sweeps.len() as u64 - 1) as usize;
        let near = self.time(SHOTS, |s| {
            let sweep = some(s);
            let (begin, tracks) = sweeps[sweep];
            let at = begin + s.below(tracks - 2 * margin);
            Some((at, at + 2 * margin))
        })?;
        // The first two sweeps are on different surfaces, if there are several.
        let mut switches = Vec::new();
        for end in [false, true] {
            switches.extend(self.time(SHOTS, |s| Some((place(s, 0, true), place(s, 1, end))))?);
        }
        // One of the two moves is a seek over the whole group, if that takes longer than the
        // switch.
        let switch = switches.into_iter().min_by(|a, b| a.at.total_cmp(&b.at));
        let (Some(near), Some(switch)) = (near, switch) else { return unknown("ways between them are not clear") };
        if !is_less(&near, &switch) {
            return unknown("the way to the next sweep is no longer than within one");
        }
        let limit = (near.at + switch.at) / 2.0;
        // Whether a sweep and a later one are adjacent on one surface, for the given directions
        // (outwards is `true`).
        let side_by_side = |ways: &mut Self, from: usize, to: usize, outwards: (bool, bool)| {
            ways.is_within(limit, |s| Some((place(s, from, !outwards.0), place(s, to, outwards.1))))
        };
        // The next sweep on the surface of sweep 0, and of sweep 1.
        let next = |ways: &mut Self, from: usize, candidates: &[usize]| -> Result<Option<(usize, bool)>, ProbeError> {
            for &by in candidates.iter().filter(|&&by| from + by < sweeps.len()) {
                for outwards in [(false, false), (true, true), (false, true), (true, false)] {
                    if side_by_side(ways, from, from + by, outwards)? == Some(true) {
                        return Ok(Some((by, outwards.0)));
                    }
                }
            }
            Ok(None)
        };
        let all: Vec<usize> = (1..=2 * MOST_SURFACES as usize).collect();
        let Some((first, _)) = next(self, 0, &all)? else { return unknown("none lies beside the first") };
        let known = [first, first.saturating_sub(2).max(1)];
        let (surfaces, surfaces_alternate, tracks_alternate) = match first {
            1 => (1, false, false),
            _ => match next(self, 1, &known)? {
                Some((by, outwards)) if by == first => (first, false, outwards),
                Some((_, outwards)) => (first.div_ceil(2), true, outwards),
                None => return unknown("none lies beside the second"),
            },
        };
        let found = Groups { tracks: tracks as u32, surfaces: surfaces as u16, tracks_alternate, surfaces_alternate };
        // Check all sweeps of two groups.
        let (mut right, mut asked) = (0, 0);
        for sweep in 0..sweeps.len().min(2 * surfaces) {
            let beside = found.beside(sweep);
            if beside < sweeps.len() {
                asked += 1;
                let outwards = (found.is_outwards(sweep), found.is_outwards(beside));
                right += u32::from(side_by_side(self, sweep, beside, outwards)? == Some(true));
            }
        }
        let us = (switch.at - near.at) / 1e3;
        if right < asked {
            return unknown(&format!("only {right} of {asked} lie side by side as {surfaces} surfaces would have it"));
        }
        let sure = format!("{right} sweeps lie side by side as it says, reached {us:.0} us sooner than other surfaces");
        Ok((Some(Order::Groups(found)), sure))
    }
}

impl Groups {
    /// The layout in the profile's form.
    pub fn layout(&self) -> Layout {
        Layout::SeekFirst {
            group_tracks: self.tracks,
            tracks_alternate: self.tracks_alternate,
            surfaces_alternate: self.surfaces_alternate,
        }
    }

    /// The surface of a sweep, and whether its tracks go outwards.
    pub(super) fn sweep(&self, sweep: usize) -> (u16, bool) {
        let n = usize::from(self.surfaces);
        self.layout().sweep(self.surfaces, (sweep / n) as u32, (sweep % n) as u16)
    }

    /// The surface of a sweep.
    pub fn surface(&self, sweep: usize) -> u16 {
        self.sweep(sweep).0
    }

    /// Returns whether its tracks go outwards.
    pub fn is_outwards(&self, sweep: usize) -> bool {
        self.sweep(sweep).1
    }

    /// The next sweep on its surface.
    fn beside(&self, sweep: usize) -> usize {
        let n = usize::from(self.surfaces);
        if self.surfaces_alternate { sweep + 2 * (n - 1 - sweep % n) + 1 } else { sweep + n }
    }
}

/// The first sweeps: the number of each one's first track, and its number of tracks without skipped
/// ones.
fn first_sweeps(rows: &[Row], begins: &[u64], full: u64) -> Vec<(u64, u64)> {
    let mut sweeps: Vec<(u64, u64)> = Vec::new();
    let mut used = full;
    for (row, &begin) in rows.iter().zip(begins) {
        let behind = row.skipped.min(full.saturating_sub(used));
        used += behind;
        if used == full {
            if sweeps.len() == MAX_SWEEPS {
                return sweeps;
            }
            sweeps.push((begin, 0));
            used = row.skipped - behind;
        }
        used += row.tracks;
        if used > full {
            break;
        }
        sweeps.last_mut().expect("one was just begun").1 += row.tracks;
    }
    // A partial last sweep is dropped.
    sweeps.pop_if(|_| used != full);
    sweeps
}
