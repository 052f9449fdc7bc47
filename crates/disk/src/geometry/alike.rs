//! Runs of uniform neighbouring tracks: each is located from the first by a multiplication.
//!
//! Where LBNs run along one surface, a search visits one track after another. The tracks of a
//! [sweep](super::order::Sweep) that lie within a single extent have as many LBNs as sectors,
//! follow each other in LBN order and differ by a constant skew, so one lookup suffices for all of
//! them.

use super::order::{Sweep, TrackSpot};
use super::{Geometry, Track, track};
use crate::angle::Angle;

/// A run of uniform tracks of one surface in LBN order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlikeTracks {
    /// The first in LBN order.
    first: Track,
    /// Cylinder step to the next: 1, or -1 (wrapped).
    step: u32,
    count: u32,
    /// Angle of each track's sector 0 relative to the previous track's.
    skew: Angle,
}

impl AlikeTracks {
    /// Returns the number of tracks.
    #[inline]
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Returns the index of the track at a cylinder.
    #[inline]
    fn index(&self, cylinder: u32) -> Option<u64> {
        let index = cylinder.wrapping_sub(self.first.cylinder).wrapping_mul(self.step);
        (index < self.count).then_some(index.into())
    }

    /// Returns the track at a cylinder and surface, if it is in the run.
    #[inline]
    pub fn at(&self, cylinder: u32, surface: u16) -> Option<Track> {
        let index = self.index(cylinder).filter(|_| surface == self.first.surface)?;
        let Track { first_lbn, lbns, angle, .. } = self.first;
        let first_lbn = first_lbn + index * u64::from(lbns);
        Some(Track { cylinder, first_lbn, angle: angle + self.skew * index, ..self.first })
    }

    /// Returns the cylinder of the next track in LBN order and its relative angle; `None` after the
    /// last one.
    #[inline]
    pub fn next(&self, cylinder: u32) -> Option<(u32, Angle)> {
        let next = cylinder.wrapping_add(self.step);
        self.index(next).map(|_| (next, self.skew))
    }
}

impl Geometry {
    /// Returns the track at a cylinder and surface with its uniform neighbours; the track alone if
    /// its sectors do not all hold consecutive LBNs, or if units of tracks or cylinders have their
    /// own spares. `None` when there is no track or it holds no data.
    pub fn alike(&self, cylinder: u32, surface: u16) -> Option<AlikeTracks> {
        let spot = self.order.track(cylinder, surface)?;
        let here = self.track_on(&spot)?;
        let Sweep { step, start, tracks, .. } = *spot.sweep;
        let skew = spot.shape.track_skew;
        let alone = AlikeTracks { first: here, step, count: 1, skew };
        let has_units = spot.section.unit.is_some() || spot.shape.unit.is_some();
        if tracks == 1 || !here.plain || has_units {
            return Some(alone);
        }
        let extents = self.extents.starting_with(here.first_lbn);
        let (extent, next) = (&extents[0], &extents[1]);
        // Slots of this section include no spares.
        let sweep_starts = spot.period * spot.section.period.get() + start;
        let spt = spot.shape.spt.get();
        let first = extent.slot.saturating_sub(sweep_starts).div_ceil(spt);
        let end = ((extent.slot + (next.lbn - extent.lbn)).saturating_sub(sweep_starts) / spt).min(u64::from(tracks));
        if !(first..end).contains(&spot.track) {
            return Some(alone);
        }
        let first_spot = TrackSpot { track: first, ..spot };
        let first_lbn = extent.lbn + (sweep_starts + first * spt - extent.slot);
        let first = track(&first_spot, first_lbn, here.lbns, (extent, next));
        Some(AlikeTracks { first, step, count: (end - first_spot.track) as u32, skew })
    }
}
