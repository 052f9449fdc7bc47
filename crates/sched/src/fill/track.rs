//! One track: which of its sectors pass in a given time, and which LBNs those are.
//!
//! Most tracks are *plain*: their LBNs lie in neighbouring sectors, so that LBN and sector differ
//! by a constant. Tracks with slips, spares in the middle or remapped sectors are not, and query
//! the geometry each time.

use headtime_disk::internals::{JUST_PASSED, sectors_time};
use headtime_disk::{Angle, Dur, Geometry, Rotation, Time, Track};

use super::gap::Window;

/// A track with the data to convert LBNs to sectors and back without the geometry.
#[derive(Clone, Copy, Debug)]
pub struct TrackMap {
    /// The track.
    pub track: Track,
    /// The angle of one sector.
    pub step: Angle,
    /// The sector of its first LBN, when `plain`.
    first: u32,
    /// LBNs lie in neighbouring sectors. Remapped sectors count at their original place.
    plain: bool,
}

/// The sectors of a track that pass whole in a window, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passing {
    /// The first of them.
    pub first: u32,
    /// When its left edge passes.
    pub at: Time,
    /// Their number, which includes wrap-arounds in a long window.
    pub count: u64,
    /// Time of one sector, as in [`Rotation::sector_fx`].
    pub fx: u64,
}

impl Passing {
    /// Returns when the left edge of the sector passes that comes `sectors` after the first.
    #[inline]
    pub fn edge(&self, sectors: u64) -> Time {
        self.at + sectors_time(self.fx, sectors)
    }
}

impl TrackMap {
    /// Returns the track at a cylinder and surface; `None` where the drive has none or it holds no
    /// data.
    #[inline]
    pub fn at(geometry: &Geometry, (cylinder, surface): (u32, u16)) -> Option<TrackMap> {
        Some(TrackMap::new(geometry, geometry.track(cylinder, surface)?))
    }

    /// Returns the track that `lbn` would lie on, remaps ignored.
    #[inline]
    pub fn of(geometry: &Geometry, lbn: u64) -> Option<TrackMap> {
        Some(TrackMap::new(geometry, geometry.track_of(lbn)?))
    }

    /// Creates the map of a track of the geometry.
    #[inline]
    pub fn new(geometry: &Geometry, track: Track) -> TrackMap {
        // floor(2^64 / spt), as in the geometry: one more than floor((2^64 - 1) / spt) for powers
        // of two.
        let spt = u64::from(track.spt);
        let step = u64::MAX / spt;
        let step = Angle(step.saturating_add(u64::from(u64::MAX - step * spt + 1 == spt)));
        let (mut first, mut plain) = (0, true);
        if track.lbns != track.spt {
            (first, plain) = match geometry.run_at(track.first_lbn, track.lbns) {
                Some(run) if run.count == track.lbns && run.span == run.count => (run.start.sector, true),
                _ => (0, false),
            };
        }
        TrackMap { track, step, first, plain }
    }

    /// Returns its cylinder and surface.
    #[inline]
    pub fn place(&self) -> (u32, u16) {
        (self.track.cylinder, self.track.surface)
    }

    /// Returns one past its last LBN.
    #[inline]
    pub fn end(&self) -> u64 {
        self.track.first_lbn + u64::from(self.track.lbns)
    }

    /// Returns the same track with remapped sectors taken into account: they are then in no range.
    #[inline]
    pub fn careful(self) -> TrackMap {
        TrackMap { plain: false, ..self }
    }

    /// Returns whether remapped sectors are taken into account.
    #[inline]
    pub fn is_careful(&self) -> bool {
        !self.plain
    }

    /// Returns the angle of a sector's left edge.
    #[inline]
    pub fn edge(&self, sector: u32) -> Angle {
        self.track.angle + self.step * u64::from(sector)
    }

    /// Returns the sector of an LBN of this track; `None` when it was remapped and the track is
    /// careful.
    #[inline]
    pub fn sector_of(&self, geometry: &Geometry, lbn: u64) -> Option<u32> {
        if self.plain {
            return Some(self.first + (lbn - self.track.first_lbn) as u32);
        }
        if geometry.is_remapped(lbn) {
            return None;
        }
        geometry.locate(lbn).map(|p| p.sector)
    }

    /// Returns the sectors that pass whole in a window, from the first whose left edge has not
    /// passed. Rounding errors are resolved in favour of passing, so that nothing is missed that
    /// `Gap::holds` accepts.
    #[inline]
    pub fn passing(&self, rotation: &Rotation, window: &Window) -> Passing {
        let past = (window.angle - self.track.angle).0.saturating_sub(JUST_PASSED.0);
        let first = past.div_ceil(self.step.0) as u32;
        let first = if first >= self.track.spt { 0 } else { first };
        let at = window.arrive + rotation.wait(window.angle, self.edge(first));
        let fx = rotation.sector_fx(self.track.spt);
        Passing { first, at, count: fitting(fx, window.leave.saturating_since(at)), fx }
    }

    /// Returns how many sectors pass in `time`, rounded in favour of passing.
    #[inline]
    pub fn fitting(&self, rotation: &Rotation, time: Dur) -> u64 {
        fitting(rotation.sector_fx(self.track.spt), time)
    }

    /// Calls `found` with the ranges of consecutive LBNs in the sectors `from..to`, ascending:
    /// first LBN, one past the last.
    #[inline]
    pub fn stretches(&self, geometry: &Geometry, from: u32, to: u32, mut found: impl FnMut(u64, u64)) {
        if !self.plain {
            return self.stretches_with_holes(geometry, from, to, found);
        }
        let low = from.max(self.first);
        let high = to.min(self.first + self.track.lbns);
        if low < high {
            let lbn = |sector: u32| self.track.first_lbn + u64::from(sector - self.first);
            found(lbn(low), lbn(high));
        }
    }

    #[cold]
    fn stretches_with_holes(&self, geometry: &Geometry, from: u32, to: u32, mut found: impl FnMut(u64, u64)) {
        for run in geometry.runs(self.track.first_lbn, u64::from(self.track.lbns)) {
            if geometry.is_remapped(run.lbn) {
                continue;
            }
            // Within a run sectors ascend with LBNs: the first at or after a given sector is found
            // by binary search.
            let not_before = |sector: u32| {
                let (mut low, mut high) = (0, run.count);
                while low < high {
                    let middle = low + (high - low) / 2;
                    let there = geometry.locate(run.lbn + u64::from(middle)).map_or(u32::MAX, |p| p.sector);
                    if there < sector { low = middle + 1 } else { high = middle }
                }
                run.lbn + u64::from(low)
            };
            let (low, high) = (not_before(from), not_before(to));
            if low < high {
                found(low, high);
            }
        }
    }

    /// Calls `found` with the arcs that the LBNs `low..high` of this track cover: angle of the
    /// first edge, and length, below a revolution by at most the rounding error. Remapped sectors
    /// are in no arc where the track is not plain.
    #[inline]
    pub fn arcs(&self, geometry: &Geometry, low: u64, high: u64, mut found: impl FnMut(Angle, u64)) {
        let (low, high) = (low.max(self.track.first_lbn), high.min(self.end()));
        if low >= high {
            return;
        }
        if self.plain {
            let sector = self.first + (low - self.track.first_lbn) as u32;
            return found(self.edge(sector), self.step.0.saturating_mul(high - low));
        }
        self.arcs_with_holes(geometry, low, high, found);
    }

    #[cold]
    fn arcs_with_holes(&self, geometry: &Geometry, low: u64, high: u64, mut found: impl FnMut(Angle, u64)) {
        for run in geometry.runs(low, high - low).filter(|r| !geometry.is_remapped(r.lbn)) {
            if run.span == run.count {
                found(self.edge(run.start.sector), self.step.0.saturating_mul(u64::from(run.count)));
                continue;
            }
            for lbn in run.lbn..run.lbn + u64::from(run.count) {
                if let Some(at) = geometry.locate(lbn) {
                    found(self.edge(at.sector), self.step.0);
                }
            }
        }
    }
}

/// Maximum rounding error at the end of a transfer: see `crates/disk/src/rotation.rs`.
const ROUNDING_NS: u64 = 20;

/// Returns how many sectors of `fx` each pass in `time`, rounded in favour of passing.
#[inline]
fn fitting(fx: u64, time: Dur) -> u64 {
    if time == Dur::ZERO {
        return 0;
    }
    // Below 2^31 ns, two seconds, the product fits.
    let ns = (time.0 + ROUNDING_NS).min((1 << 31) - 1);
    (ns << 32) / fx
}
