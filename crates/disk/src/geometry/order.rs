//! The order of physical tracks, in closed form.
//!
//! Every layout is periodic: head-first ones repeat with each cylinder, seek-first ones with each
//! group. So the tracks of a drive, in LBN order, are a few *sections* (between zone boundaries),
//! each of which repeats a *period* (a cylinder or a group). A period is a list of *sweeps*:
//! uniform neighbouring tracks of one surface, in one direction. In alternating layouts odd periods
//! have a separate list. No state is kept per track or group, so a drive of 10^7 tracks takes no
//! more memory than one of 10^4.
//!
//! Holes are handled elsewhere, except for spares kept on each track, or on every fixed number of
//! tracks of a sweep: these are regular enough to be part of the arithmetic. A section is therefore
//! counted in *slots*: all sectors but such spares.

use super::divide::{Divisor, high_product};
use super::error::GeometryError;
use super::steps::StepIndex;
use crate::angle::Angle;

/// Maximum number of physical sectors of a drive: 2^48, 128 PiB of 512-byte sectors.
pub(super) const MAX_SECTORS: u64 = 1 << 48;

/// Maximum number of tracks of a drive: 2^27, ten times that of the largest drive of 2025.
pub(super) const MAX_TRACKS: u64 = 1 << 27;

/// Shape of a zone's tracks on one surface.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// The zone's index in the profile.
    pub(super) zone: u32,
    /// Sectors per track.
    pub(super) spt: Divisor,
    /// Angle of one sector: floor(2^64 / sectors per track).
    pub(super) sector_angle: Angle,
    /// Skew from one track of a sweep to the next.
    pub(super) track_skew: Angle,
    /// The spare unit, if spares are kept per group of a sweep's tracks.
    pub(super) unit: Option<TrackUnit>,
}

/// A unit of tracks of one sweep with its own spares.
#[derive(Clone, Debug)]
pub(super) struct TrackUnit {
    /// Number of tracks.
    pub(super) tracks: Divisor,
    /// Physical sectors.
    pub(super) sectors: u64,
    /// Sectors without the spares.
    pub(super) slots: Divisor,
    /// Spares at its front.
    pub(super) front: u64,
}

/// A unit of cylinders of one section with its own spares.
#[derive(Clone, Debug)]
pub(super) struct CylinderUnit {
    /// Physical sectors.
    pub(super) sectors: Divisor,
    /// Sectors without the spares.
    pub(super) slots: Divisor,
    /// Spares at its front.
    pub(super) front: u64,
}

/// Neighbouring tracks of one surface, followed in one direction.
#[derive(Clone, Debug)]
pub(super) struct Sweep {
    /// Start in its period: in slots when spares are kept per unit of tracks, otherwise in sectors.
    pub(super) start: u64,
    /// Start in its period, in physical sectors.
    pub(super) sector: u64,
    /// Angle of its first track's sector 0, relative to the period's.
    pub(super) angle: Angle,
    /// Cylinder of its first track, relative to the period's lowest.
    pub(super) cylinder: u32,
    /// Direction: 1 outside in, -1 (wrapped) inside out.
    pub(super) step: u32,
    /// Number of tracks.
    pub(super) tracks: u32,
    /// Number of whole units of tracks, if its shape has them.
    pub(super) units: u32,
    /// Index of its tracks' shape.
    pub(super) shape: u32,
    /// Surface.
    pub(super) surface: u16,
}

/// A list of sweeps: the track order of one period.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pattern {
    /// Index of its first sweep.
    pub(super) first: u32,
    /// Number of its sweeps.
    pub(super) sweeps: u32,
}

/// A run of identical periods.
#[derive(Clone, Debug)]
pub(super) struct Section {
    /// Lowest cylinder.
    pub(super) cylinder: u32,
    /// Number of cylinders.
    pub(super) cylinders: u32,
    /// Cylinders per period.
    pub(super) width: Divisor,
    /// Physical sectors before it in LBN order.
    pub(super) first_sector: u64,
    /// Physical sectors per period.
    pub(super) period_sectors: u64,
    /// Length of a period, in the unit of [`Sweep::start`].
    pub(super) period: Divisor,
    /// 2^64 * sweeps / period: multiplied by a place in the period, it estimates the sweep.
    pub(super) guess: u64,
    /// Number of slots.
    pub(super) slots: u64,
    /// The spare unit, if spares are kept per group of cylinders (head-first only).
    pub(super) unit: Option<CylinderUnit>,
    /// Angle of the first track's sector 0.
    pub(super) angle: Angle,
    /// Angle from one period's first track to the next one's.
    pub(super) period_angle: Angle,
    /// Track order of even and odd periods.
    pub(super) patterns: [Pattern; 2],
}

/// All sections, with their indexes.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) sections: Vec<Section>,
    pub(super) sweeps: Vec<Sweep>,
    pub(super) shapes: Vec<Shape>,
    pub(super) sectors: u64,
    /// Cylinders from here on belong to no section.
    cylinders_end: u64,
    cylinder_index: StepIndex,
}

/// A located track.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrackSpot<'a> {
    pub(super) section: &'a Section,
    pub(super) sweep: &'a Sweep,
    pub(super) shape: &'a Shape,
    /// Index of the section.
    pub(super) index: usize,
    /// Number of the period in the section.
    pub(super) period: u64,
    /// Number of the track in the sweep.
    pub(super) track: u64,
}

impl TrackSpot<'_> {
    #[inline]
    pub(super) fn cylinder(&self) -> u32 {
        let lowest = self.section.cylinder + (self.period * self.section.width.get()) as u32;
        (lowest + self.sweep.cylinder).wrapping_add((self.track as u32).wrapping_mul(self.sweep.step))
    }

    /// Returns the angle of its sector 0, without pushed skew.
    #[inline]
    pub(super) fn angle(&self) -> Angle {
        self.section.angle
            + self.section.period_angle * self.period
            + self.sweep.angle
            + self.shape.track_skew * self.track
    }

    #[inline]
    pub(super) fn spt(&self) -> u32 {
        self.shape.spt.get() as u32
    }

    /// Returns the number of physical sectors before it on the drive, in LBN order.
    #[inline]
    pub(super) fn first_sector(&self) -> u64 {
        self.section.first_sector
            + self.period * self.section.period_sectors
            + self.sweep.sector
            + self.track * self.shape.spt.get()
    }

    /// Returns the section's slot at `sector` of this track, in a unit whose sectors are displaced
    /// by `shift`; `Err` with the next slot when a spare lies there. `sector` may equal the number
    /// of sectors per track, which means the track's end.
    #[inline]
    pub(super) fn slot(&self, sector: u64, shift: i64) -> Result<u64, u64> {
        let spt = self.shape.spt.get();
        let before = self.period * self.section.period.get() + self.sweep.start;
        if let Some(unit) = &self.shape.unit {
            let (k, tracks) = unit.tracks.div_rem(self.track);
            let whole = u64::from(self.sweep.units);
            if k >= whole {
                let rest = (self.track * spt + sector) - whole * unit.sectors;
                return Ok(before + whole * unit.slots.get() + rest);
            }
            let inside = tracks * spt + sector;
            return slot_in_unit(inside, unit.front, shift, unit.slots.get())
                .map(|r| before + k * unit.slots.get() + r)
                .map_err(|r| before + k * unit.slots.get() + r);
        }
        let place = before + self.track * spt;
        match &self.section.unit {
            None => Ok(place + sector),
            Some(unit) => {
                let (k, inside) = unit.sectors.div_rem(place);
                slot_in_unit(inside + sector, unit.front, shift, unit.slots.get())
                    .map(|r| k * unit.slots.get() + r)
                    .map_err(|r| k * unit.slots.get() + r)
            }
        }
    }
}

/// Returns the slot at `inside` of a unit, or `Err` with the next slot.
#[inline]
fn slot_in_unit(inside: u64, front: u64, shift: i64, slots: u64) -> Result<u64, u64> {
    let r = inside as i64 - front as i64 - shift;
    if r < 0 {
        Err(0)
    } else if r as u64 >= slots {
        Err(slots)
    } else {
        Ok(r as u64)
    }
}

impl Order {
    /// Assembles sections, which must cover ascending cylinders.
    pub(super) fn new(
        mut sections: Vec<Section>,
        sweeps: Vec<Sweep>,
        shapes: Vec<Shape>,
    ) -> Result<Order, GeometryError> {
        let mut sectors = 0u128;
        for s in &mut sections {
            s.first_sector = sectors as u64;
            let periods = u64::from(s.cylinders).div_ceil(s.width.get());
            sectors += u128::from(periods) * u128::from(s.period_sectors);
            if sectors > u128::from(MAX_SECTORS) {
                return Err(GeometryError::TooLarge { what: "physical sectors", found: sectors, limit: MAX_SECTORS });
            }
            let places = periods * s.period.get();
            s.slots = match &s.unit {
                None => places,
                Some(unit) => {
                    let (units, rest) = unit.sectors.div_rem(places);
                    assert!(rest == 0, "a section that is not a whole number of units");
                    units * unit.slots.get()
                }
            };
            s.guess = ((u128::from(s.patterns[0].sweeps) << 64) / u128::from(s.period.get())).min(u128::from(u64::MAX))
                as u64;
        }
        let cylinders_end = sections.last().map_or(1, |s| u64::from(s.cylinder) + u64::from(s.cylinders));
        let starts = sections.iter().map(|s| u64::from(s.cylinder));
        let cylinder_index = StepIndex::new(starts, cylinders_end);
        Ok(Order { sections, sweeps, shapes, sectors: sectors as u64, cylinders_end, cylinder_index })
    }

    /// Returns the sweeps of a section's period.
    #[inline]
    pub(super) fn sweeps_of(&self, section: &Section, period: u64) -> &[Sweep] {
        let p = section.patterns[(period & 1) as usize];
        &self.sweeps[p.first as usize..(p.first + p.sweeps) as usize]
    }

    /// Returns the track and sector of a section's slot, in a unit whose sectors are displaced by
    /// `shift`.
    #[inline]
    pub(super) fn at_slot(&self, index: usize, slot: u64, shift: i64) -> (TrackSpot<'_>, u64) {
        let section = &self.sections[index];
        let place = match &section.unit {
            None => slot,
            Some(unit) => {
                let (k, r) = unit.slots.div_rem(slot);
                (k * unit.sectors.get() + r + unit.front).wrapping_add_signed(shift)
            }
        };
        let (period, r) = section.period.div_rem(place);
        let sweeps = self.sweeps_of(section, period);
        let mut j = (high_product(r, section.guess) as usize).min(sweeps.len() - 1);
        while sweeps[j].start > r {
            j -= 1;
        }
        while j + 1 < sweeps.len() && sweeps[j + 1].start <= r {
            j += 1;
        }
        let sweep = &sweeps[j];
        let shape = &self.shapes[sweep.shape as usize];
        let r = r - sweep.start;
        let sector_in_sweep = match &shape.unit {
            None => r,
            Some(unit) => {
                let (k, inside) = unit.slots.div_rem(r);
                let whole = u64::from(sweep.units);
                if k < whole {
                    (k * unit.sectors + inside + unit.front).wrapping_add_signed(shift)
                } else {
                    whole * unit.sectors + (r - whole * unit.slots.get())
                }
            }
        };
        let (track, sector) = shape.spt.div_rem(sector_in_sweep);
        let spot = TrackSpot { section, sweep, shape, index, period, track };
        (spot, sector)
    }

    /// Returns the track at a cylinder and surface, if there is one.
    #[inline]
    pub(super) fn track(&self, cylinder: u32, surface: u16) -> Option<TrackSpot<'_>> {
        if u64::from(cylinder) >= self.cylinders_end {
            return None;
        }
        let found = self.cylinder_index.count(u64::from(cylinder), |i| u64::from(self.sections[i].cylinder));
        let index = found.checked_sub(1)?;
        let section = &self.sections[index];
        let from_section = cylinder - section.cylinder;
        if from_section >= section.cylinders {
            return None;
        }
        let (period, from_period) = section.width.div_rem(u64::from(from_section));
        let sweeps = self.sweeps_of(section, period);
        let holds = |sweep: &&Sweep| sweep.surface == surface && sweep.track_at(from_period as u32) < sweep.tracks;
        // With one sweep per surface, surfaces are in ascending or descending order.
        let forward = usize::from(surface);
        let sweep = sweeps
            .get(forward)
            .filter(holds)
            .or_else(|| sweeps.get(sweeps.len().wrapping_sub(forward + 1)).filter(holds))
            .or_else(|| sweeps.iter().find(holds))?;
        Some(TrackSpot {
            section,
            sweep,
            shape: &self.shapes[sweep.shape as usize],
            index,
            period,
            track: u64::from(sweep.track_at(from_period as u32)),
        })
    }

    /// Returns the track and sector with the given number of physical sectors before it, in LBN
    /// order. Slower than [`Order::at_slot`]; for compilation only.
    pub(super) fn at_sector(&self, sector: u64) -> (TrackSpot<'_>, u64) {
        assert!(sector < self.sectors, "sector {sector} of {}", self.sectors);
        let index = self.sections.partition_point(|s| s.first_sector <= sector) - 1;
        let section = &self.sections[index];
        let r = sector - section.first_sector;
        let (period, r) = (r / section.period_sectors, r % section.period_sectors);
        let sweeps = self.sweeps_of(section, period);
        let sweep = &sweeps[sweeps.partition_point(|l| l.sector <= r) - 1];
        let shape = &self.shapes[sweep.shape as usize];
        let (track, sector) = shape.spt.div_rem(r - sweep.sector);
        let spot = TrackSpot { section, sweep, shape, index, period, track };
        (spot, sector)
    }

    /// Returns the size of the tables in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.sections)
            + size_of_val(&*self.sweeps)
            + size_of_val(&*self.shapes)
            + self.cylinder_index.memory_bytes()
    }
}

impl Sweep {
    /// Returns the number of the sweep's track at this cylinder of the period; `tracks` or more
    /// when there is none.
    #[inline]
    fn track_at(&self, cylinder: u32) -> u32 {
        cylinder.wrapping_sub(self.cylinder).wrapping_mul(self.step)
    }
}
