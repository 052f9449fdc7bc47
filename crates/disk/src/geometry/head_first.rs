//! Head-first layouts: all surfaces of a cylinder, then the next cylinder. A period is one
//! cylinder.

use super::divide::Divisor;
use super::error::GeometryError;
use super::order::{CylinderUnit, Order, Section, Shape, Sweep};
use super::zones::{self, Period};
use crate::angle::Angle;
use crate::profile::{GeometrySpec, HeadOrder, SpareUnit, ZoneSpec};

/// Compiles the order of a drive's tracks. The zones have passed [`zones::check`].
pub(super) fn compile(spec: &GeometrySpec, order: HeadOrder) -> Result<Order, GeometryError> {
    let mut sections = Vec::new();
    let mut sweeps = Vec::new();
    let mut shapes: Vec<Shape> = Vec::new();
    let mut next_cylinder = 0;
    // Angle of the next zone's first track if it continues from the previous track.
    let mut follow_on = Angle::ZERO;
    for (zone, z) in spec.zones.iter().enumerate() {
        check_place(spec, zone, next_cylinder)?;
        next_cylinder = z.last_cylinder + 1;
        let per_track = (z.sparing.unit == SpareUnit::Track).then_some(1);
        let first_shape = shapes.len() as u32;
        for spt in &z.sectors_per_track {
            shapes.push(zones::shape(zone, z, *spt, per_track)?);
        }
        let track_skew = zones::skew_angle(z, z.track_skew);
        let to_next_cylinder = zones::skew_angle(z, z.cylinder_skew);
        let period_angle = track_skew * u64::from(spec.surfaces - 1) + to_next_cylinder;
        let angle = z.offset.map_or(follow_on, |o| zones::skew_angle(z, o));

        // Two patterns: the surface order of the zone's first cylinder, and its reverse.
        let mut patterns = [None, None];
        let mut size = (0, 0);
        for (turned, slot) in patterns.iter_mut().enumerate() {
            let mut period = Period::new(&shapes);
            for h in 0..spec.surfaces {
                let surface = if turned == 1 { spec.surfaces - 1 - h } else { h };
                let shape = match z.sectors_per_track.len() {
                    1 => first_shape,
                    _ => first_shape + u32::from(surface),
                };
                period.push(surface, shape, 0, false, 1, track_skew * u64::from(h))?;
            }
            let (pattern, places, sectors) = period.finish(&mut sweeps);
            *slot = Some(pattern);
            size = (places, sectors);
        }
        let [Some(forward), Some(backward)] = patterns else { unreachable!("both patterns have just been made") };
        let pattern_at = |cylinder: u32| {
            if order.is_turned(z.first_cylinder, cylinder) { backward } else { forward }
        };

        for (cylinder, cylinders, unit) in stretches(zone, z, size.1)? {
            let before = u64::from(cylinder - z.first_cylinder);
            sections.push(Section {
                cylinder,
                cylinders,
                width: Divisor::new(1),
                first_sector: 0,
                period_sectors: size.1,
                period: Divisor::new(size.0),
                guess: 0,
                slots: 0,
                unit,
                angle: angle + period_angle * before,
                period_angle,
                // A section of one cylinder has no odd period; its second pattern is never used.
                patterns: [pattern_at(cylinder), pattern_at(cylinder.wrapping_add(1))],
            });
        }
        let cylinders = u64::from(z.last_cylinder - z.first_cylinder) + 1;
        follow_on = angle + period_angle * cylinders;
    }
    drop_unused_sweeps(&mut sections, &mut sweeps);
    Order::new(sections, sweeps, shapes)
}

/// Checks that a zone lies after the previous one and covers all surfaces.
fn check_place(spec: &GeometrySpec, zone: usize, next: u32) -> Result<(), GeometryError> {
    let z = &spec.zones[zone];
    if let Some(surface) = z.surface {
        return Err(GeometryError::ZoneOfOneSurface { zone, surface });
    }
    if z.first_cylinder >= next {
        return Ok(());
    }
    let overlapped = spec.zones[..zone]
        .iter()
        .position(|o| o.first_cylinder <= z.last_cylinder && z.first_cylinder <= o.last_cylinder);
    Err(match overlapped {
        Some(other) => GeometryError::ZonesOverlap {
            zone,
            other,
            cylinder: z.first_cylinder.max(spec.zones[other].first_cylinder),
            surface: 0,
        },
        None => GeometryError::ZonesOutOfOrder { zone, expected: next, found: z.first_cylinder },
    })
}

/// Splits a zone at the end of its spare units: whole units, then the remaining cylinders, which
/// have no spares (DiskSim scheme 8: spares times floor(cylinders / range)).
fn stretches(
    zone: usize,
    z: &ZoneSpec,
    cylinder_sectors: u64,
) -> Result<Vec<(u32, u32, Option<CylinderUnit>)>, GeometryError> {
    let cylinders = z.last_cylinder - z.first_cylinder + 1;
    let Some(width) = zones::unit_cylinders(zone, z, u32::MAX)? else {
        return Ok(vec![(z.first_cylinder, cylinders, None)]);
    };
    let mut found = Vec::new();
    let whole = cylinders - cylinders % width;
    if whole > 0 {
        let sectors = cylinder_sectors.saturating_mul(u64::from(width));
        let unit = CylinderUnit {
            slots: Divisor::new(zones::data_slots(zone, z, sectors)?),
            sectors: Divisor::new(sectors),
            front: if z.sparing.at_front { z.sparing.spares } else { 0 },
        };
        found.push((z.first_cylinder, whole, Some(unit)));
    }
    if whole < cylinders {
        found.push((z.first_cylinder + whole, cylinders - whole, None));
    }
    Ok(found)
}

/// Removes the reversed sweeps where no section uses them.
fn drop_unused_sweeps(sections: &mut [Section], sweeps: &mut Vec<Sweep>) {
    let mut kept: Vec<Sweep> = Vec::new();
    let mut moved: Vec<(u32, u32)> = Vec::new();
    for section in sections {
        for pattern in &mut section.patterns {
            let to = match moved.iter().rev().find(|m| m.0 == pattern.first) {
                Some(m) => m.1,
                None => {
                    let to = kept.len() as u32;
                    let from = pattern.first as usize;
                    kept.extend_from_slice(&sweeps[from..from + pattern.sweeps as usize]);
                    moved.push((pattern.first, to));
                    to
                }
            };
            pattern.first = to;
        }
    }
    *sweeps = kept;
}
