//! How many wanted sectors are left on each track, as far as it is known: what Angle-EP-Frag
//! compares, and by which it passes over tracks that one command cannot clear.
//!
//! "Each track has a structure that records the total number of freeblock fragments on that track"
//! (Thereska 2003 section 4.2). Here it is two bytes a track, for the algorithm that uses it. A
//! count that is kept up to date would become wrong when tasks overlap, or a foreground request
//! satisfies a part of one; so a count is taken from the task layer when it is first needed, and
//! forgotten when anything changes on its track. It is of one session's reads: where several
//! sessions share the free bandwidth, or writes are wanted (whose units come and go as data is
//! refused), nothing is remembered.

use headtime_disk::Geometry;

use crate::tasks::{TaskRange, Who};

/// Not known; longer tracks are never known.
const UNKNOWN: u16 = u16::MAX;
/// A longer change is taken as one of the whole disk: its tracks are not looked up one by one.
const LONG: u64 = 1 << 18;

/// The counts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Left {
    /// By cylinder and surface; empty until the first is known.
    by_track: Vec<u16>,
    /// Whose they are.
    who: Option<Who>,
}

impl Left {
    fn index(geometry: &Geometry, (cylinder, surface): (u32, u16)) -> usize {
        cylinder as usize * usize::from(geometry.surfaces()) + usize::from(surface)
    }

    /// Prepares for a search for this session's reads; counts of another are forgotten.
    pub(crate) fn of(&mut self, who: Who) {
        if self.who != Some(who) {
            self.by_track.fill(UNKNOWN);
            self.who = Some(who);
        }
    }

    /// Returns the wanted sectors left on a track; `None`: not known.
    #[inline]
    pub(crate) fn on(&self, geometry: &Geometry, track: (u32, u16)) -> Option<u32> {
        let left = self.by_track.get(Left::index(geometry, track)).copied()?;
        (left != UNKNOWN).then_some(u32::from(left))
    }

    /// Remembers the wanted sectors left on a track.
    pub(crate) fn set(&mut self, geometry: &Geometry, track: (u32, u16), left: u32) {
        if self.by_track.is_empty() {
            self.by_track = vec![UNKNOWN; geometry.cylinders() as usize * usize::from(geometry.surfaces())];
        }
        self.by_track[Left::index(geometry, track)] = u16::try_from(left).unwrap_or(UNKNOWN);
    }

    /// Forgets the counts of the tracks of a range in which something changed.
    pub(crate) fn forget(&mut self, geometry: &Geometry, range: TaskRange) {
        if self.by_track.is_empty() {
            return;
        }
        if range.count > LONG {
            return self.by_track.fill(UNKNOWN);
        }
        // Remapped sectors count at their original place, which their neighbours tell.
        let mut lbn = range.lbn;
        while lbn > 0 && geometry.is_remapped(lbn) {
            lbn -= 1;
        }
        while lbn < range.end() {
            if geometry.is_remapped(lbn) {
                lbn += 1;
                continue;
            }
            let Some(track) = geometry.track_of(lbn) else { return };
            self.by_track[Left::index(geometry, (track.cylinder, track.surface))] = UNKNOWN;
            lbn = track.first_lbn + u64::from(track.lbns);
        }
    }

    /// Returns the bytes it occupies.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.by_track.capacity() * size_of::<u16>()
    }
}
