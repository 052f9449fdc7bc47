//! Where sectors lie: logical block number to physical position and back.

use crate::angle::Angle;

/// Where one logical block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Cylinder.
    pub cylinder: u32,
    /// Surface.
    pub surface: u16,
    /// Physical index on its track, from 0, holes counted.
    pub sector: u32,
    /// Physical sectors on its track.
    pub spt: u32,
    /// Angle of its left edge.
    pub angle: Angle,
}

/// One track as the mapping sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track {
    /// Cylinder.
    pub cylinder: u32,
    /// Surface.
    pub surface: u16,
    /// Physical sectors.
    pub spt: u32,
    /// Lowest LBN on it (remaps not counted).
    pub first_lbn: u64,
    /// Number of LBNs on it (remaps not counted); 0 when it holds no data.
    pub lbns: u32,
    /// Angle of its physical sector 0.
    pub angle: Angle,
}

/// A stretch of consecutive LBNs on one track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// First LBN.
    pub lbn: u64,
    /// LBNs in it.
    pub count: u32,
    /// Physical sectors from the first LBN's sector to the last's, both included: holes inside count.
    pub span: u32,
    /// Where its first LBN lies.
    pub start: Position,
}

/// The compiled mapping of one drive.
#[derive(Clone, Debug)]
pub struct Geometry {}

/// Why a geometry cannot be compiled.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum GeometryError {}

impl Geometry {
    /// Compiles a mapping.
    pub fn new(_spec: &crate::profile::GeometrySpec) -> Result<Geometry, GeometryError> {
        unimplemented!()
    }
    /// Usable sectors: LBNs run from 0 to this, excluded.
    pub fn capacity(&self) -> u64 {
        unimplemented!()
    }
    /// Where `lbn` lies; `None` beyond the capacity.
    pub fn locate(&self, _lbn: u64) -> Option<Position> {
        unimplemented!()
    }
    /// The LBN a physical sector holds; `None` for holes and for places that do not exist.
    pub fn lbn_at(&self, _at: crate::profile::SectorAddress) -> Option<u64> {
        unimplemented!()
    }
    /// The track `lbn` would lie on, remaps ignored.
    pub fn track_of(&self, _lbn: u64) -> Option<Track> {
        unimplemented!()
    }
    /// The track at a cylinder and surface; `None` where the drive has none or it holds no data.
    pub fn track(&self, _cylinder: u32, _surface: u16) -> Option<Track> {
        unimplemented!()
    }
    /// The longest stretch of consecutive LBNs from `lbn`, at most `max` of them, on one track.
    pub fn run_at(&self, _lbn: u64, _max: u32) -> Option<Run> {
        unimplemented!()
    }
    /// Data surfaces.
    pub fn surfaces(&self) -> u16 {
        unimplemented!()
    }
    /// Cylinders.
    pub fn cylinders(&self) -> u32 {
        unimplemented!()
    }
    /// Bytes the mapping takes.
    pub fn memory_bytes(&self) -> usize {
        unimplemented!()
    }
}
