//! Arm and platter: the time of a media access from the head's current position.
//!
//! One access (Lumb 2002 section 2.1): T_access = T_seek + T_rotate + T_transfer. Moving to another
//! track takes max(seek(d), head switch if the surface changes), plus the write settle time before
//! a write if the head moved. Then the head waits for the first sector, and reads along the track;
//! at a track's end it moves to the next one.

use crate::angle::Angle;
use crate::command::Kind;
use crate::error::ModelError;
use crate::geometry::TrackRun;
use crate::profile::MechanicsSpec;
use crate::rotation::Rotation;
use crate::seek::SeekCurve;
use crate::time::{Dur, Time};

/// Position of the head: its track, and the angle under it at an instant.
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
    /// Returns the angle under the head at `t`, not before `self.at`.
    #[inline]
    pub fn angle_at(&self, t: Time, rotation: &Rotation) -> Angle {
        self.angle + rotation.angle_after(t.since(self.at))
    }
}

/// The moving parts of a drive as known, without noise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mechanics {
    /// The platter's speed.
    pub rotation: Rotation,
    /// Seek times for reads.
    pub seek: SeekCurve,
    /// Seek times for writes, including settling, where measured separately.
    pub write_seek: Option<SeekCurve>,
    /// Time to select and settle on another surface.
    pub head_switch: Dur,
    /// Added before a write whenever the head moved; may be negative in measured files. Ignored
    /// when `write_seek` is given.
    pub write_settle_ns: i64,
    /// Zero-latency access: the drive starts with the first wanted sector that passes.
    pub read_on_arrival: bool,
    /// The same for writes whose data is in the buffer.
    pub write_on_arrival: bool,
}

/// Access of a zero-latency drive whose head lands inside the wanted run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Landing {
    /// The first sector that passes completely, counted from the run's first.
    pub sector: u32,
    /// Time until that sector begins.
    pub latency: Dur,
    /// Time from there until the last missed sector has passed: one revolution.
    pub transfer: Dur,
    /// Angle under the head then: that sector's left edge again.
    pub end_angle: Angle,
}

impl Mechanics {
    /// Compiles a profile's mechanics for a drive with `cylinders` cylinders.
    ///
    /// # Errors
    /// The speed is out of range, or the seek table has no points, or distances that do not ascend,
    /// or times out of range.
    pub fn new(spec: &MechanicsSpec, cylinders: u32) -> Result<Mechanics, ModelError> {
        let (num, den) = spec.rpm;
        let rotation = Rotation::from_rpm(num, den).ok_or(ModelError::Rotation { num, den })?;
        let longest = cylinders.saturating_sub(1).max(1);
        let write_seek = match &spec.write_seek {
            Some(points) => Some(SeekCurve::from_points(points, longest)?),
            None => None,
        };
        Ok(Mechanics {
            rotation,
            seek: SeekCurve::from_points(&spec.seek, longest)?,
            write_seek,
            head_switch: spec.head_switch,
            write_settle_ns: spec.write_settle_ns,
            read_on_arrival: spec.read_on_arrival,
            write_on_arrival: spec.write_on_arrival,
        })
    }

    /// Whether an access of `kind` starts with the first wanted sector that passes.
    #[inline]
    pub fn on_arrival(&self, kind: Kind) -> bool {
        match kind {
            Kind::Read => self.read_on_arrival,
            _ => self.write_on_arrival,
        }
    }

    /// Returns where a zero-latency drive starts when angle `arrived` is under the head: `None`
    /// when that lies outside the run, or when no complete sector of it is left to pass (then it
    /// waits for the run's first sector like any drive).
    pub fn land(&self, arrived: Angle, run: &TrackRun) -> Option<Landing> {
        let past = arrived - run.start.angle;
        // The usual case, without a division: the sector under the head is outside the run.
        if (past.0 as u128 * run.start.spt as u128) >> 64 > run.span as u128 {
            return None;
        }
        let step = Angle::fraction(1, run.start.spt as u64);
        if past.0 >= step.0.saturating_mul(run.span as u64) || past.0 <= crate::rotation::JUST_PASSED.0 {
            return None;
        }
        let sector = past.0.div_ceil(step.0) as u32;
        if sector >= run.span {
            return None;
        }
        let edge = run.start.angle + step * sector as u64;
        Some(Landing {
            sector,
            latency: self.rotation.wait(arrived, edge),
            transfer: self.rotation.period(),
            end_angle: edge,
        })
    }

    /// Returns the time from one track to another for an access of `kind`; zero for the same track.
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

    /// Returns a lower bound of [`Mechanics::reposition`] for every track at `distance` cylinders
    /// or more, of any kind. Monotone in `distance`; for pruning.
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

    /// Returns the size of the tables in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Mechanics>() + self.seek.memory_bytes() + self.write_seek.as_ref().map_or(0, SeekCurve::memory_bytes)
    }
}
