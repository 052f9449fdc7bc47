//! Arm and platter: how long a media access takes from where the head is.
//!
//! One access (seed 001 section 2.1): T_access = T_seek + T_rotate + T_transfer. Moving to another track takes
//! max(seek(d), head switch if the surface changes), plus the write settle before a write when it moved at all.
//! Then the head waits for the first sector, and reads along the track; at a track's end it moves to the next one.

use crate::angle::Angle;
use crate::command::Kind;
use crate::rotation::Rotation;
use crate::seek::SeekCurve;
use crate::time::{Dur, Time};

/// Where the head is: on which track, and which angle is under it at which instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Cylinder (radial track number).
    pub cylinder: u32,
    /// Surface.
    pub surface: u16,
    /// The platter's angle under the head at `at`.
    pub angle: Angle,
    /// The instant that `angle` belongs to.
    pub at: Time,
}

impl Head {
    /// The angle under the head at `t`, not before `self.at`.
    #[inline]
    pub fn angle_at(&self, t: Time, rotation: &Rotation) -> Angle {
        self.angle + rotation.angle_after(t.since(self.at))
    }
}

/// The moving parts of a drive, as known: no noise in here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mechanics {
    /// The platter's speed.
    pub rotation: Rotation,
    /// Seek times for reads.
    pub seek: SeekCurve,
    /// Seek times for writes where they were measured separately; they include settling.
    pub write_seek: Option<SeekCurve>,
    /// Time to select and settle on another surface.
    pub head_switch: Dur,
    /// Added before a write whenever the head moved; may be negative in measured files. Ignored when
    /// `write_seek` is given.
    pub write_settle_ns: i64,
    /// The drive starts with whatever wanted sector comes first (zero-latency access) on a track.
    pub read_on_arrival: bool,
}

impl Mechanics {
    /// Time to get from one track to another for an access of `kind`; zero when it is the same track.
    #[inline]
    pub fn reposition(&self, from: (u32, u16), to: (u32, u16), kind: Kind) -> Dur {
        let distance = from.0.abs_diff(to.0);
        let curve = match (&self.write_seek, kind) {
            (Some(w), Kind::Write) => w,
            _ => &self.seek,
        };
        let mut t = curve.time(distance);
        if from.1 != to.1 {
            t = t.max(self.head_switch);
        }
        if t > Dur::ZERO && kind == Kind::Write && self.write_seek.is_none() {
            t = t.saturating_add_signed(self.write_settle_ns);
        }
        t
    }

    /// A lower bound of [`Mechanics::reposition`] for every track at `distance` cylinders or further, any kind.
    /// Monotone in `distance`; for pruning.
    #[inline]
    pub fn reposition_floor(&self, distance: u32) -> Dur {
        let mut t = self.seek.floor(distance);
        if let Some(w) = &self.write_seek {
            t = t.min(w.floor(distance));
        } else if self.write_settle_ns < 0 {
            t = t.saturating_add_signed(self.write_settle_ns);
        }
        t
    }

    /// Bytes the tables take.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Mechanics>()
            + self.seek.memory_bytes()
            + self.write_seek.as_ref().map_or(0, SeekCurve::memory_bytes)
    }
}
