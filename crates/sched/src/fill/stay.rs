//! How long the head can stay somewhere in a gap: upper bounds by which searches pass over
//! cylinders, that of the papers' algorithms ([`super::walk`]) and that of headtime's planner
//! (`headtime/walk.rs`).

use headtime_disk::{Dur, Geometry, Kind, Mechanics, Model, Time};

use super::conservatism::{CLASSES, class_of};
use super::gap::Gap;
use crate::overheads::between;

/// Kinds of commands that fill gaps.
pub(super) const KINDS: [Kind; 2] = [Kind::Read, Kind::Write];

/// The time of a gap from which moves are subtracted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stay {
    /// The tracks of source and destination.
    ends: [(u32, u16); 2],
    /// From the earliest start of a background move to the latest start of the move to the request.
    time: Dur,
    /// The minimum margin of a move of each class of distance or of any longer one.
    margins: [Dur; CLASSES],
    /// The same if the head may stay on its track.
    staying: Dur,
}

impl Default for Stay {
    fn default() -> Stay {
        Stay { ends: [(0, 0); 2], time: Dur::ZERO, margins: [Dur::ZERO; CLASSES], staying: Dur::ZERO }
    }
}

impl Stay {
    /// Returns the bounds of a gap, for commands of these kinds (read, write).
    pub(super) fn of(model: &Model, gap: &Gap, kinds: [bool; 2]) -> Stay {
        // A plan's first command and its last may be of different kinds.
        let of = |kind: &Kind| kinds[usize::from(*kind == Kind::Write)];
        let begins = KINDS.iter().filter(|k| of(k)).map(|k| gap.head(*k).at).min();
        let leaves = KINDS
            .iter()
            .filter(|k| of(k))
            .map(|k| gap.starts.0.saturating_sub(between(model, *k, gap.dest_kind).0))
            .max();
        let time = begins.zip(leaves).map_or(Dur::ZERO, |(begin, leave)| Time(leave).saturating_since(begin));
        let mut margins = [Dur::ZERO; CLASSES];
        let mut least = Dur(u64::MAX);
        for class in (0..CLASSES).rev() {
            least = least.min(gap.margins.of_class(class));
            margins[class] = least;
        }
        let staying = gap.margins.of_move((0, 0), (0, 0)).min(least);
        Stay { ends: [gap.source(), gap.destination()], time, margins, staying }
    }

    /// Returns the time without any move.
    #[inline]
    pub(super) fn time(&self) -> Dur {
        self.time
    }

    /// Returns the longest stay on a surface (or any) of the cylinders `low..=high`; zero: they are
    /// out of reach.
    #[inline]
    pub(super) fn on(&self, m: &Mechanics, (low, high): (u32, u32), surface: Option<u16>) -> Dur {
        // A negative write settle may shorten even a head switch.
        let switch = m.head_switch.saturating_add_signed(m.write_settle_ns.min(0));
        let away = |end: (u32, u16)| {
            let distance = if end.0 < low { low - end.0 } else { end.0.saturating_sub(high) };
            let t = m.reposition_floor(distance);
            match surface {
                Some(s) if s != end.1 => t.max(switch) + self.margins[class_of(distance)],
                _ if distance == 0 => t + self.staying,
                _ => t + self.margins[class_of(distance)],
            }
        };
        self.time.saturating_sub(away(self.ends[0]) + away(self.ends[1]))
    }
}

/// Sectors that pass on the tracks of a drive.
#[derive(Clone, Copy, Debug)]
pub(super) struct Densities {
    /// Sectors of the sparsest and of the densest track.
    sectors: (u32, u32),
    /// Revolutions in a nanosecond, times 2^64.
    turns_per_ns: u64,
    /// Cylinders from one track to the one on which its LBNs continue, at most: what a command
    /// reads there is part of the same stay.
    pub(super) step: u32,
}

impl Densities {
    /// Difference between two ways of computing one instant in integer nanoseconds, and sectors
    /// that count as passing by rounding.
    const ROUNDING: Dur = Dur(100);

    /// Returns those of a drive.
    pub(super) fn of(geometry: &Geometry, mechanics: &Mechanics) -> Densities {
        Densities {
            sectors: geometry.track_sectors(),
            turns_per_ns: u64::MAX / mechanics.rotation.period().0.max(1) + 1,
            step: geometry.group_tracks().unwrap_or(1),
        }
    }

    /// Returns an upper bound of the wanted sectors that pass in this time, and of their angle in
    /// 2^-32 revolutions, where only whole multiples of `grain` sectors are wanted.
    #[inline]
    pub(super) fn passing(&self, time: Dur, grain: u32) -> (u32, u64) {
        let time = time + Densities::ROUNDING;
        let turn = ((u128::from(time.0) * u128::from(self.turns_per_ns)) >> 32) as u64 + 1;
        let sectors = ((u128::from(turn) * u128::from(self.sectors.1)) >> 32) as u32 + 1;
        let whole = sectors / grain * grain;
        (whole, turn.min((u64::from(whole) << 32) / u64::from(self.sectors.0.max(1)) + 1))
    }

    /// Returns the longest time in which fewer than `sectors` pass on any track.
    pub(super) fn too_short_for(&self, sectors: u32) -> Dur {
        let turn = (u64::from(sectors) << 32) / u64::from(self.sectors.1.max(1));
        Dur(((u128::from(turn) << 32) / u128::from(self.turns_per_ns)) as u64).saturating_sub(Densities::ROUNDING)
    }
}
