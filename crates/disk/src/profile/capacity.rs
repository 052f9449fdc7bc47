//! Number of usable sectors of a zone, computed from its figures alone.
//!
//! The compiled mapping ([`crate::geometry::Geometry`]) computes it independently; tests compare
//! the two.

use std::collections::{BTreeMap, BTreeSet};

use super::{GeometrySpec, Slip, SpareUnit, ZoneSpec};

impl GeometrySpec {
    /// Returns the usable sectors of all zones. Remaps do not change it: a remapped sector's data
    /// is on a spare.
    pub fn usable_sectors(&self) -> u64 {
        self.zones.iter().map(|z| z.usable_sectors(self.surfaces)).sum()
    }
}

impl ZoneSpec {
    /// Returns the number of cylinders; 0 when first and last are swapped.
    pub fn cylinders(&self) -> u64 {
        (u64::from(self.last_cylinder) + 1).saturating_sub(self.first_cylinder.into())
    }

    /// Returns the sectors per track on `surface`; 0 where the zone does not extend to.
    pub fn spt(&self, surface: u16) -> u32 {
        if self.surface.is_some_and(|s| s != surface) {
            return 0;
        }
        match self.sectors_per_track.as_slice() {
            [one] => *one,
            many => many.get(usize::from(surface)).copied().unwrap_or(0),
        }
    }

    /// Returns the physical sectors per cylinder.
    pub fn cylinder_sectors(&self, surfaces: u16) -> u64 {
        (0..surfaces).map(|s| u64::from(self.spt(s))).sum()
    }

    /// Returns the number of physical sectors.
    pub fn physical_sectors(&self, surfaces: u16) -> u64 {
        self.cylinders() * self.cylinder_sectors(surfaces)
    }

    /// Returns the tracks per cylinder.
    pub fn tracks_per_cylinder(&self, surfaces: u16) -> u64 {
        if self.surface.is_some() { 1 } else { surfaces.into() }
    }

    /// Returns the number of sectors with data: all but the reserved front, the slips, and the
    /// spares not used up by slips.
    pub fn usable_sectors(&self, surfaces: u16) -> u64 {
        let total = self.physical_sectors(surfaces);
        let cylinder = self.cylinder_sectors(surfaces).max(1);
        // Only zones with one figure for all surfaces have spares per track or slips by index.
        let track = (cylinder / self.tracks_per_cylinder(surfaces).max(1)).max(1);
        let unit = match self.sparing.unit {
            SpareUnit::Zone => total.max(1),
            SpareUnit::Cylinders(n) => cylinder * u64::from(n.max(1)),
            SpareUnit::Track => track,
        };
        // Slips of each unit: all of them, and those after the reserved front.
        let mut slipped: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for slip in &self.slips {
            let (index, sectors) = match *slip {
                Slip::Index(i) => (i, 1),
                Slip::TrackIndex(i) => (i * track, track),
                Slip::Sector(at) => (self.index_of(at.cylinder, cylinder), 1),
                Slip::Track { cylinder: c, surface } => (self.index_of(c, cylinder), self.spt(surface).into()),
            };
            // A repeated slip is one defect.
            if !seen.insert(slip) {
                continue;
            }
            let entry = slipped.entry(index / unit).or_default();
            entry.0 += sectors;
            entry.1 += if index >= self.reserved_sectors { sectors } else { 0 };
        }
        // A short unit at the zone's end has no spares; a completely reserved unit needs none.
        let first = self.reserved_sectors / unit;
        let whole = total / unit;
        let plain = whole.saturating_sub(first) * self.sparing.spares;
        let mut usable = total.saturating_sub(self.reserved_sectors).saturating_sub(plain);
        for (&u, &(all, behind)) in slipped.range(first..) {
            let spares = if u < whole { self.sparing.spares } else { 0 };
            let used = if self.sparing.slips_are_extra { 0 } else { all.min(spares) };
            usable = (usable + used).saturating_sub(behind);
        }
        usable
    }

    fn index_of(&self, cylinder: u32, cylinder_sectors: u64) -> u64 {
        u64::from(cylinder.saturating_sub(self.first_cylinder)) * cylinder_sectors
    }
}
