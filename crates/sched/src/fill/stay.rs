//! How long the head can stay somewhere in a gap: an upper bound that needs two look-ups, by which
//! a search passes over cylinders ([`super::walk`]).
//!
//! Between leaving the source and the start of the request the arm makes two moves, and each takes
//! at least its margin; the rest is the longest stay. What the drive reads on the next track, where
//! LBNs continue there, is part of the same stay: it may leave from a track that is nearer to the
//! request.

use headtime_disk::{Dur, Kind, Model};

use super::gap::Gap;
use crate::overheads::between;

/// Difference between two ways of computing one instant in integer nanoseconds, and sectors that
/// count as passing by rounding.
const ROUNDING: Dur = Dur(100);

/// Upper bounds of stays in one gap.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stay {
    /// The cylinders of source and destination.
    source: u32,
    dest: u32,
    /// From the earliest start to the request's, less margins and the drive's pause between two
    /// commands.
    time: Dur,
    /// Cylinders from one track to the one on which its LBNs continue, at most.
    step: u32,
    /// Sectors of the sparsest and of the densest track, and revolutions in a nanosecond, times
    /// 2^64.
    spt: (u32, u32),
    turns_per_ns: u64,
}

impl Stay {
    /// Returns the bounds of a gap.
    pub(super) fn of(model: &Model, gap: &Gap) -> Stay {
        let pause = [Kind::Read, Kind::Write].map(|kind| between(model, kind, gap.dest_kind));
        let moves = gap.margins.least() + gap.margins.least();
        let all = gap.starts.saturating_since(gap.read.at.min(gap.write.at));
        Stay {
            source: gap.source().0,
            dest: gap.destination().0,
            time: all.saturating_sub(moves + pause[0].min(pause[1])) + ROUNDING,
            step: model.geometry.group_tracks().unwrap_or(1),
            spt: model.geometry.track_sectors(),
            turns_per_ns: u64::MAX / model.mechanics.rotation.period().0.max(1) + 1,
        }
    }

    /// Returns the longest stay anywhere.
    pub(super) fn longest(&self) -> Dur {
        self.time
    }

    /// Returns the longest stay on the cylinders `low..=high`; zero: they are out of reach.
    #[inline]
    pub(super) fn on(&self, model: &Model, low: u32, high: u32) -> Dur {
        let away = |to: u32| low.saturating_sub(to).max(to.saturating_sub(high));
        let floor = |distance| model.mechanics.reposition_floor(distance);
        let moves = floor(away(self.source)) + floor(away(self.dest).saturating_sub(self.step));
        self.time.saturating_sub(moves)
    }

    /// Returns an upper bound of the wanted sectors that pass during a stay, and of their angle in
    /// 2^-32 revolutions, where only whole multiples of `grain` sectors are wanted.
    #[inline]
    pub(super) fn passing(&self, stay: Dur, grain: u32) -> (u32, u64) {
        let turn = ((u128::from(stay.0) * u128::from(self.turns_per_ns)) >> 32) as u64 + 1;
        let sectors = ((u128::from(turn) * u128::from(self.spt.1)) >> 32) as u32 + 1;
        let whole = sectors / grain * grain;
        (whole, turn.min((u64::from(whole) << 32) / u64::from(self.spt.0.max(1)) + 1))
    }

    /// Returns the longest stay in which fewer than `sectors` pass on any track.
    pub(super) fn too_short_for(&self, sectors: u32) -> Dur {
        let turn = (u64::from(sectors) << 32) / u64::from(self.spt.1.max(1));
        Dur(((u128::from(turn) << 32) / u128::from(self.turns_per_ns)) as u64).saturating_sub(ROUNDING)
    }
}
