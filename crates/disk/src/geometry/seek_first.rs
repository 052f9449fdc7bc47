//! Seek-first (serpentine) layouts: a group of neighbouring tracks on one surface, then the same
//! group on the next surface; after the last surface, the next group. A period is one group.
//!
//! Groups are counted from cylinder 0. The first surface of a group runs outside in; with
//! alternating tracks the second runs inside out, and so on.

use super::divide::Divisor;
use super::error::GeometryError;
use super::order::{Order, Section, Shape, Sweep};
use super::zones::{self, Period};
use crate::angle::Angle;
use crate::profile::{GeometrySpec, SpareUnit};

/// Parameters of a seek-first layout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Serpentine {
    pub(super) group_tracks: u32,
    pub(super) surfaces_alternate: bool,
}

/// A zone's cylinders on one surface.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    first: u32,
    last: u32,
    zone: usize,
    shape: u32,
}

/// Compilation state.
struct Compiler<'a> {
    spec: &'a GeometrySpec,
    how: Serpentine,
    /// By surface, outside in.
    stretches: Vec<Vec<Stretch>>,
    shapes: Vec<Shape>,
    sweeps: Vec<Sweep>,
    sections: Vec<Section>,
    /// Zones whose first track has been placed.
    begun: Vec<bool>,
    /// Angle of the next track if it continues from the previous one.
    follow_on: Angle,
}

/// Compiles the order of a drive's tracks. The zones have passed [`zones::check`].
pub(super) fn compile(spec: &GeometrySpec, how: Serpentine) -> Result<Order, GeometryError> {
    if how.group_tracks == 0 {
        return Err(GeometryError::NoGroupTracks);
    }
    let (stretches, shapes) = stretches(spec, how.group_tracks)?;
    let mut c = Compiler {
        spec,
        how,
        stretches,
        shapes,
        sweeps: Vec::new(),
        sections: Vec::new(),
        begun: vec![false; spec.zones.len()],
        follow_on: Angle::ZERO,
    };
    for pair in c.cuts().windows(2) {
        let mut from = pair[0];
        if c.restarts_in(from) {
            // The group in which a zone's offset applies differs from those after it.
            c.section(from, from + 1)?;
            from += 1;
        }
        if from < pair[1] {
            c.section(from, pair[1])?;
        }
    }
    Order::new(c.sections, c.sweeps, c.shapes)
}

/// Returns each surface's zones outside in, checked, and the shapes of their tracks.
fn stretches(spec: &GeometrySpec, group_tracks: u32) -> Result<(Vec<Vec<Stretch>>, Vec<Shape>), GeometryError> {
    let mut by_surface = vec![Vec::new(); usize::from(spec.surfaces)];
    let mut shapes = Vec::new();
    for (zone, z) in spec.zones.iter().enumerate() {
        if z.sparing.slips_push_skew {
            return Err(GeometryError::PushedSkew { zone });
        }
        let unit_tracks = match z.sparing.unit {
            SpareUnit::Track => Some(1),
            _ => zones::unit_cylinders(zone, z, group_tracks)?,
        };
        let first_shape = shapes.len() as u32;
        for spt in &z.sectors_per_track {
            shapes.push(zones::shape(zone, z, *spt, unit_tracks)?);
        }
        let surfaces = match z.surface {
            Some(s) => s..s + 1,
            None => 0..spec.surfaces,
        };
        for surface in surfaces {
            let shape = match z.sectors_per_track.len() {
                1 => first_shape,
                _ => first_shape + u32::from(surface),
            };
            by_surface[usize::from(surface)].push(Stretch {
                first: z.first_cylinder,
                last: z.last_cylinder,
                zone,
                shape,
            });
        }
    }
    for (surface, list) in by_surface.iter_mut().enumerate() {
        let surface = surface as u16;
        if list.is_empty() {
            return Err(GeometryError::SurfaceWithoutZone { surface });
        }
        list.sort_by_key(|s| s.first);
        for pair in list.windows(2) {
            let (before, s) = (pair[0], pair[1]);
            if s.first <= before.last {
                return Err(GeometryError::ZonesOverlap {
                    zone: before.zone.max(s.zone),
                    other: before.zone.min(s.zone),
                    cylinder: s.first,
                    surface,
                });
            }
            if s.first > before.last + 1 {
                return Err(GeometryError::ZoneGap {
                    zone: s.zone,
                    surface,
                    expected: before.last + 1,
                    found: s.first,
                });
            }
        }
    }
    Ok((by_surface, shapes))
}

/// A sweep before placement: surface, first track's cylinder in the group, direction, number of
/// tracks, zone and shape.
#[derive(Clone, Copy, Debug)]
struct Draft {
    surface: u16,
    cylinder: u32,
    backward: bool,
    tracks: u32,
    zone: usize,
    shape: u32,
}

impl Compiler<'_> {
    /// Returns the groups at which sections begin, so that all groups of a section are identical.
    fn cuts(&self) -> Vec<u32> {
        let g = self.how.group_tracks;
        let mut cuts = Vec::new();
        for s in self.stretches.iter().flatten() {
            // A boundary inside a group makes that group a section of its own.
            for boundary in [u64::from(s.first), u64::from(s.last) + 1] {
                let group = boundary / u64::from(g);
                cuts.push(group as u32);
                if boundary % u64::from(g) != 0 {
                    cuts.push(group as u32 + 1);
                }
            }
        }
        cuts.sort_unstable();
        cuts.dedup();
        cuts
    }

    /// Whether a zone with its own offset begins in this group.
    fn restarts_in(&self, group: u32) -> bool {
        let g = self.how.group_tracks;
        self.spec.zones.iter().any(|z| z.offset.is_some() && z.first_cylinder / g == group)
    }

    /// Returns the sweeps of a group in LBN order.
    fn drafts(&self, group: u32) -> Vec<Draft> {
        let surfaces = self.spec.surfaces;
        let low = u64::from(group) * u64::from(self.how.group_tracks);
        let high = low + u64::from(self.how.group_tracks) - 1;
        let mut found = Vec::new();
        for visit in 0..surfaces {
            let (surface, backward) = self.spec.layout.sweep(surfaces, group, visit);
            let list = &self.stretches[usize::from(surface)];
            let from = list.partition_point(|s| u64::from(s.last) < low);
            let inside = list[from..].iter().take_while(|s| u64::from(s.first) <= high);
            let begin = found.len();
            for s in inside {
                let first = u64::from(s.first).max(low);
                let last = u64::from(s.last).min(high);
                let cylinder = if backward { last } else { first } - low;
                found.push(Draft {
                    surface,
                    cylinder: cylinder as u32,
                    backward,
                    tracks: (last - first + 1) as u32,
                    zone: s.zone,
                    shape: s.shape,
                });
            }
            if backward {
                found[begin..].reverse();
            }
        }
        found
    }

    /// Adds the groups `from..to`, which are identical.
    fn section(&mut self, from: u32, to: u32) -> Result<(), GeometryError> {
        let drafts = self.drafts(from);
        if drafts.is_empty() {
            return Ok(());
        }
        let start = self.restart(&drafts[0]).unwrap_or(self.follow_on);
        let (first, places, sectors, end) = self.pattern(&drafts, start, true)?;
        let second = if to - from > 1 && self.how.surfaces_alternate {
            let other = self.drafts(from + 1);
            let (second, other_places, other_sectors, _) = self.pattern(&other, start, false)?;
            assert!(
                (places, sectors) == (other_places, other_sectors),
                "groups {from} and {} differ in size",
                from + 1
            );
            second
        } else {
            first
        };
        let g = u64::from(self.how.group_tracks);
        let width = if to - from == 1 {
            // The last group may be truncated by the end of the drive; its contents count from its
            // start anyway.
            g.min(u64::from(self.spec.cylinders) - u64::from(from) * g)
        } else {
            g
        };
        let period_angle = end - start;
        self.sections.push(Section {
            cylinder: (u64::from(from) * g) as u32,
            cylinders: (u64::from(to - from) * width) as u32,
            width: Divisor::new(width),
            first_sector: 0,
            period_sectors: sectors,
            period: Divisor::new(places),
            guess: 0,
            slots: 0,
            unit: None,
            angle: start,
            period_angle,
            patterns: [first, second],
        });
        self.follow_on = start + period_angle * u64::from(to - from);
        Ok(())
    }

    /// Returns the offset of a sweep's zone if this is the zone's first track.
    fn restart(&self, draft: &Draft) -> Option<Angle> {
        if self.begun[draft.zone] {
            return None;
        }
        let z = &self.spec.zones[draft.zone];
        z.offset.map(|o| zones::skew_angle(z, o))
    }

    /// Places the sweeps of one group whose first track lies at `start`; returns the pattern, its
    /// slots and sectors, and the angle at which the next group begins.
    fn pattern(
        &mut self,
        drafts: &[Draft],
        start: Angle,
        may_restart: bool,
    ) -> Result<(super::order::Pattern, u64, u64, Angle), GeometryError> {
        let mut angles = Vec::with_capacity(drafts.len());
        let mut next = start;
        for (i, d) in drafts.iter().enumerate() {
            let z = &self.spec.zones[d.zone];
            let at = match self.restart(d) {
                Some(offset) if may_restart => offset,
                _ => next,
            };
            self.begun[d.zone] = true;
            angles.push(at);
            let track_skew = zones::skew_angle(z, z.track_skew);
            let same_surface = drafts.get(i + 1).is_some_and(|n| n.surface == d.surface);
            let step = if same_surface { track_skew } else { zones::skew_angle(z, z.cylinder_skew) };
            next = at + track_skew * u64::from(d.tracks - 1) + step;
        }
        let mut period = Period::new(&self.shapes);
        for (d, at) in drafts.iter().zip(angles) {
            period.push(d.surface, d.shape, d.cylinder, d.backward, d.tracks, at - start)?;
        }
        let (pattern, places, sectors) = period.finish(&mut self.sweeps);
        Ok((pattern, places, sectors, next))
    }
}
