//! Slots, runs of them, and slipped sectors: what the passes over a zone's holes share.

use super::error::GeometryError;
use super::order::Order;
use crate::angle::Angle;
use crate::profile::ZoneSpec;

/// A slot: its section and its number there.
pub(super) type Place = (u32, u64);

/// Consecutive LBNs in consecutive slots of one section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) section: u32,
    /// First slot.
    pub(super) slot: u64,
    /// LBNs.
    pub(super) count: u64,
    /// Sectors by which slips displace it inside its spare unit.
    pub(super) shift: i32,
    /// Angle by which slips push the skew of its tracks.
    pub(super) push: Angle,
}

/// Slipped sectors of one track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SlipSpan {
    /// Physical sectors before it on the drive, in LBN order.
    pub(super) sector: u64,
    pub(super) count: u64,
    pub(super) zone: usize,
}

/// Returns the number of a zone's physical tracks and sectors. The drive's size was checked before.
pub(super) fn zone_size(z: &ZoneSpec, surfaces: u16) -> (u64, u64) {
    let cylinders = u64::from(z.last_cylinder - z.first_cylinder) + 1;
    let surfaces = match z.surface {
        Some(_) => 1,
        None => u64::from(surfaces),
    };
    let per_cylinder: u64 = match z.sectors_per_track.as_slice() {
        [one] => u64::from(*one) * surfaces,
        several => several.iter().map(|n| u64::from(*n)).sum(),
    };
    (cylinders * surfaces, cylinders * per_cylinder)
}

pub(super) fn too_many_slips(order: &Order, first: &SlipSpan, spares: u64, found: u64) -> GeometryError {
    let (spot, _) = order.at_sector(first.sector);
    GeometryError::TooManySlips {
        zone: first.zone,
        cylinder: spot.cylinder(),
        surface: spot.sweep.surface,
        spares,
        found,
    }
}
