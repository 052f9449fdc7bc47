//! What a scheduler believes of a drive: its geometry and mechanics, without noise, cache or faults.

use crate::angle::Angle;
use crate::command::Kind;
use crate::geometry::Geometry;
use crate::mechanics::{Head, Mechanics};
use crate::profile::{Overheads, Profile};
use crate::time::Dur;

/// A range of blocks, translated once: where it starts, where it ends, how long its transfer takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// First LBN.
    pub lbn: u64,
    /// Sectors.
    pub count: u32,
    /// Cylinder of the first sector.
    pub cylinder: u32,
    /// Surface of the first sector.
    pub surface: u16,
    /// Tracks it touches.
    pub tracks: u16,
    /// Angle of the first sector's left edge.
    pub angle: Angle,
    /// From the first sector's left edge to the last sector's right edge, moves between tracks included.
    pub transfer: Dur,
    /// Of `transfer`, the time in which sectors pass (the rest is moving and waiting at track ends).
    pub media: Dur,
    /// Cylinder of the last sector.
    pub end_cylinder: u32,
    /// Surface of the last sector.
    pub end_surface: u16,
    /// Angle of the last sector's right edge.
    pub end_angle: Angle,
}

/// One access, term by term; `end - start = seek + latency + transfer`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Moving to the first track.
    pub seek: Dur,
    /// Waiting for the first sector.
    pub latency: Dur,
    /// Reading or writing, track ends included.
    pub transfer: Dur,
    /// Where the head is afterwards.
    pub end: Head,
}

impl Access {
    /// Seek, rotational latency and transfer: the time the head is given to this request (seed 001 section 4.2).
    #[inline]
    pub fn head_time(&self) -> Dur {
        self.seek + self.latency + self.transfer
    }

    /// Seek and rotational latency.
    #[inline]
    pub fn positioning(&self) -> Dur {
        self.seek + self.latency
    }
}

/// The scheduler's model of one drive.
#[derive(Clone, Debug)]
pub struct Model {
    /// Where the sectors lie.
    pub geometry: Geometry,
    /// How arm and platter move.
    pub mechanics: Mechanics,
    /// Command overheads.
    pub overheads: Overheads,
    /// Bytes a sector holds.
    pub sector_bytes: u32,
}

/// Why a profile gives no model.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// The geometry does not work.
    #[error("geometry: {0}")]
    Geometry(#[from] crate::geometry::GeometryError),
    /// A seek table does not work.
    #[error("seek table: {0}")]
    Seek(#[from] crate::seek::SeekError),
    /// The speed of rotation is outside 60 to 60,000 rpm.
    #[error("rotation of {num}/{den} rpm: expected 60 to 60000 rpm")]
    Rotation {
        /// Numerator.
        num: u64,
        /// Denominator.
        den: u64,
    },
}

impl Model {
    /// Compiles a profile.
    pub fn new(_profile: &Profile) -> Result<Model, ModelError> {
        unimplemented!()
    }

    /// Translates a range once; `None` when it is empty or reaches beyond the last sector.
    pub fn place(&self, _lbn: u64, _count: u32, _kind: Kind) -> Option<Place> {
        unimplemented!()
    }

    /// The access to `place` when the head starts to move at `head.at` from where it is. The hot path of SPTF.
    #[inline]
    pub fn access(&self, _head: &Head, _place: &Place, _kind: Kind) -> Access {
        unimplemented!()
    }
}
