//! Checks of zones common to all layouts, and the shapes of their tracks.

use super::divide::Divisor;
use super::error::GeometryError;
use super::order::{MAX_SECTORS, MAX_TRACKS, Pattern, Shape, Sweep, TrackUnit};
use crate::angle::Angle;
use crate::profile::{GeometrySpec, Skew, SpareUnit, ZoneSpec};

/// Checks each zone by itself.
pub(super) fn check(spec: &GeometrySpec) -> Result<(), GeometryError> {
    if spec.surfaces == 0 {
        return Err(GeometryError::NoSurfaces);
    }
    if spec.zones.is_empty() {
        return Err(GeometryError::NoZones);
    }
    let tracks = u64::from(spec.cylinders) * u64::from(spec.surfaces);
    if tracks > MAX_TRACKS {
        return Err(GeometryError::TooLarge { what: "tracks", found: tracks.into(), limit: MAX_TRACKS });
    }
    for (zone, z) in spec.zones.iter().enumerate() {
        if z.first_cylinder > z.last_cylinder || z.last_cylinder >= spec.cylinders {
            return Err(GeometryError::ZoneRange {
                zone,
                first: z.first_cylinder,
                last: z.last_cylinder,
                cylinders: spec.cylinders,
            });
        }
        if let Some(surface) = z.surface
            && surface >= spec.surfaces
        {
            return Err(GeometryError::ZoneSurface { zone, surface, surfaces: spec.surfaces });
        }
        let expected = if z.surface.is_some() { 1 } else { usize::from(spec.surfaces) };
        let found = z.sectors_per_track.len();
        if found != 1 && found != expected {
            return Err(GeometryError::SectorsPerTrackCount { zone, expected, found });
        }
        if z.sectors_per_track.contains(&0) {
            return Err(GeometryError::NoSectors { zone });
        }
    }
    Ok(())
}

/// Converts a skew of a zone to an angle. Whole sectors are those of the zone's first figure, so
/// that a skew is the same angle on every surface.
pub(super) fn skew_angle(z: &ZoneSpec, skew: Skew) -> Angle {
    skew.angle(z.sectors_per_track[0])
}

/// Returns the shape of a zone's tracks of `spt` sectors; with `unit_tracks`, spares are kept for
/// each group of that number of tracks.
pub(super) fn shape(zone: usize, z: &ZoneSpec, spt: u32, unit_tracks: Option<u32>) -> Result<Shape, GeometryError> {
    let unit = match unit_tracks {
        None => None,
        Some(tracks) => {
            let sectors = u64::from(tracks) * u64::from(spt);
            Some(TrackUnit {
                tracks: Divisor::new(u64::from(tracks)),
                sectors,
                slots: Divisor::new(data_slots(zone, z, sectors)?),
                front: if z.sparing.at_front { z.sparing.spares } else { 0 },
            })
        }
    };
    Ok(Shape {
        zone: zone as u32,
        spt: Divisor::new(u64::from(spt)),
        sector_angle: Angle::fraction(1, u64::from(spt)),
        track_skew: skew_angle(z, z.track_skew),
        unit,
    })
}

/// Returns the sectors of a unit without the zone's spares per unit.
pub(super) fn data_slots(zone: usize, z: &ZoneSpec, sectors: u64) -> Result<u64, GeometryError> {
    // Displacements inside a unit are stored in 32 bits.
    if sectors > 1 << 31 {
        return Err(GeometryError::TooLarge {
            what: "sectors in a unit with spares of its own",
            found: u128::from(sectors),
            limit: 1 << 31,
        });
    }
    if z.sparing.spares >= sectors {
        return Err(GeometryError::SparesFillUnit { zone, sectors, found: z.sparing.spares });
    }
    Ok(sectors - z.sparing.spares)
}

/// Returns the width of a zone's spare unit in cylinders, checked against the largest possible.
pub(super) fn unit_cylinders(zone: usize, z: &ZoneSpec, widest: u32) -> Result<Option<u32>, GeometryError> {
    match z.sparing.unit {
        SpareUnit::Cylinders(found) if found == 0 || found > widest => {
            Err(GeometryError::UnitWidth { zone, expected: widest, found })
        }
        SpareUnit::Cylinders(n) => Ok(Some(n)),
        SpareUnit::Zone | SpareUnit::Track => Ok(None),
    }
}

/// Builder of one period's sweeps.
pub(super) struct Period<'a> {
    shapes: &'a [Shape],
    sweeps: Vec<Sweep>,
    places: u64,
    sectors: u64,
}

impl<'a> Period<'a> {
    pub(super) fn new(shapes: &'a [Shape]) -> Period<'a> {
        Period { shapes, sweeps: Vec::new(), places: 0, sectors: 0 }
    }

    /// Appends a sweep with its surface, its first track's cylinder in the period, its direction
    /// and length, and its angle relative to the period's.
    pub(super) fn push(
        &mut self,
        surface: u16,
        shape: u32,
        cylinder: u32,
        backward: bool,
        tracks: u32,
        angle: Angle,
    ) -> Result<(), GeometryError> {
        let s = &self.shapes[shape as usize];
        let sectors = u128::from(tracks) * u128::from(s.spt.get()) + u128::from(self.sectors);
        if sectors > u128::from(MAX_SECTORS) {
            return Err(GeometryError::TooLarge { what: "physical sectors", found: sectors, limit: MAX_SECTORS });
        }
        let (units, places) = match &s.unit {
            None => (0, u64::from(tracks) * s.spt.get()),
            Some(unit) => {
                let (units, rest) = unit.tracks.div_rem(u64::from(tracks));
                (units, units * unit.slots.get() + rest * s.spt.get())
            }
        };
        self.sweeps.push(Sweep {
            start: self.places,
            sector: self.sectors,
            angle,
            cylinder,
            step: if backward { u32::MAX } else { 1 },
            tracks,
            units: units as u32,
            shape,
            surface,
        });
        self.places += places;
        self.sectors = sectors as u64;
        Ok(())
    }

    /// Appends the sweeps to the drive's; returns their pattern, and the period's length in slots
    /// and in sectors.
    pub(super) fn finish(self, all: &mut Vec<Sweep>) -> (Pattern, u64, u64) {
        let pattern = Pattern { first: all.len() as u32, sweeps: self.sweeps.len() as u32 };
        all.extend(self.sweeps);
        (pattern, self.places, self.sectors)
    }
}
