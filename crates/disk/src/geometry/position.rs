//! The place of an LBN on the platter.

use super::order::TrackSpot;
use crate::angle::Angle;
use crate::profile::SectorAddress;

/// Physical position of a logical block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Cylinder.
    pub cylinder: u32,
    /// Surface.
    pub surface: u16,
    /// Physical index on its track, from 0, holes included.
    pub sector: u32,
    /// Physical sectors on its track.
    pub spt: u32,
    /// Angle of its left edge.
    pub angle: Angle,
}

impl Position {
    /// The sector's address.
    pub fn address(&self) -> SectorAddress {
        SectorAddress { cylinder: self.cylinder, surface: self.surface, sector: self.sector }
    }
}

/// Returns the position of a sector of a track.
#[inline]
pub(super) fn position(spot: &TrackSpot<'_>, sector: u32, push: Angle) -> Position {
    Position {
        cylinder: spot.cylinder(),
        surface: spot.sweep.surface,
        sector,
        spt: spot.spt(),
        angle: spot.angle() + push + spot.shape.sector_angle * u64::from(sector),
    }
}
