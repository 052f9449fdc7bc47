//! The order in which physical tracks follow each other, in closed form.
//!
//! Every layout repeats itself: head-first ones with each cylinder, seek-first ones with each
//! group. So the tracks of a drive, in LBN order, are a few *sections* (between zone boundaries),
//! each of which repeats a *period* (a cylinder or a group). A period is a list of *legs*:
//! neighbouring tracks of one surface, followed in one direction, all alike. With alternating
//! layouts odd periods have a list of their own. Nothing is kept per track or per group, so a drive
//! of 10^7 tracks takes no more room than one of 10^4.
//!
//! Holes are not this file's matter, but one: where spares are kept on each track, or each so many
//! tracks of a leg, they come so regularly that they are part of the arithmetic. A section is
//! therefore counted in *slots*: sectors less such spares.

use super::divide::{Divisor, high_product};
use super::error::GeometryError;
use super::steps::StepIndex;
use crate::angle::Angle;

/// Largest number of physical sectors a drive may have: 2^48, 128 PiB of 512-byte sectors.
pub(super) const MAX_SECTORS: u64 = 1 << 48;

/// Largest number of tracks a drive may have: 2^27, ten times as many as the largest drive of 2025.
pub(super) const MAX_TRACKS: u64 = 1 << 27;

/// How the tracks of one zone look on one surface.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// The zone, as it stands in the profile.
    pub(super) zone: u32,
    /// Sectors a track.
    pub(super) spt: Divisor,
    /// Angle of one sector: floor(2^64 / sectors per track).
    pub(super) sector_angle: Angle,
    /// From one track of a leg to the next.
    pub(super) track_skew: Angle,
    /// Spares kept for each so many tracks of a leg.
    pub(super) unit: Option<TrackUnit>,
}

/// A stretch of tracks of one leg that has its own spares.
#[derive(Clone, Debug)]
pub(super) struct TrackUnit {
    /// Tracks it is wide.
    pub(super) tracks: Divisor,
    /// Its physical sectors.
    pub(super) sectors: u64,
    /// Its sectors less its spares.
    pub(super) slots: Divisor,
    /// Spares at its front.
    pub(super) front: u64,
}

/// A stretch of cylinders of one section that has its own spares.
#[derive(Clone, Debug)]
pub(super) struct CylinderUnit {
    /// Its physical sectors.
    pub(super) sectors: Divisor,
    /// Its sectors less its spares.
    pub(super) slots: Divisor,
    /// Spares at its front.
    pub(super) front: u64,
}

/// Neighbouring tracks of one surface, followed in one direction.
#[derive(Clone, Debug)]
pub(super) struct Leg {
    /// Where it starts in its period: in slots when spares are kept for units of tracks, else in
    /// sectors.
    pub(super) start: u64,
    /// Where it starts in its period, in physical sectors.
    pub(super) sector: u64,
    /// Angle of its first track's sector 0, from the period's.
    pub(super) angle: Angle,
    /// Cylinder of its first track, from the period's lowest.
    pub(super) cylinder: u32,
    /// 1 outside in, -1 (wrapped) inside out.
    pub(super) step: u32,
    /// Tracks.
    pub(super) tracks: u32,
    /// Whole units of tracks in it, when its shape has them.
    pub(super) units: u32,
    /// Which of the shapes its tracks have.
    pub(super) shape: u32,
    /// Surface.
    pub(super) surface: u16,
}

/// A list of legs: how one period is followed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pattern {
    /// Its first leg.
    pub(super) first: u32,
    /// Its legs.
    pub(super) legs: u32,
}

/// A run of periods that are all alike.
#[derive(Clone, Debug)]
pub(super) struct Section {
    /// Lowest cylinder.
    pub(super) cylinder: u32,
    /// Cylinders it covers.
    pub(super) cylinders: u32,
    /// Cylinders a period is wide.
    pub(super) width: Divisor,
    /// Physical sectors before it in LBN order.
    pub(super) first_sector: u64,
    /// Physical sectors a period.
    pub(super) period_sectors: u64,
    /// A period in the unit of [`Leg::start`].
    pub(super) period: Divisor,
    /// 2^64 * legs / period: multiplied with a place in the period, a good guess at the leg.
    pub(super) guess: u64,
    /// Slots in all.
    pub(super) slots: u64,
    /// Spares kept for each so many cylinders (head-first only).
    pub(super) unit: Option<CylinderUnit>,
    /// Angle of the first track's sector 0.
    pub(super) angle: Angle,
    /// From one period's first track to the next one's.
    pub(super) period_angle: Angle,
    /// How even and odd periods are followed.
    pub(super) patterns: [Pattern; 2],
}

/// All sections, with what is needed to find them.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) sections: Vec<Section>,
    pub(super) legs: Vec<Leg>,
    pub(super) shapes: Vec<Shape>,
    pub(super) sectors: u64,
    /// Cylinders from here on belong to no section.
    cylinders_end: u64,
    cylinder_index: StepIndex,
}

/// A track, found.
#[derive(Clone, Copy, Debug)]
pub(super) struct TrackSpot<'a> {
    pub(super) section: &'a Section,
    pub(super) leg: &'a Leg,
    pub(super) shape: &'a Shape,
    /// Which section.
    pub(super) index: usize,
    /// Which period of the section.
    pub(super) period: u64,
    /// Which track of the leg.
    pub(super) track: u64,
}

impl TrackSpot<'_> {
    #[inline]
    pub(super) fn cylinder(&self) -> u32 {
        let lowest = self.section.cylinder + (self.period * self.section.width.get()) as u32;
        (lowest + self.leg.cylinder).wrapping_add((self.track as u32).wrapping_mul(self.leg.step))
    }

    /// Angle of its sector 0, pushed skew not counted.
    #[inline]
    pub(super) fn angle(&self) -> Angle {
        self.section.angle
            + self.section.period_angle * self.period
            + self.leg.angle
            + self.shape.track_skew * self.track
    }

    #[inline]
    pub(super) fn spt(&self) -> u32 {
        self.shape.spt.get() as u32
    }

    /// Physical sectors before it on the whole drive, in LBN order.
    #[inline]
    pub(super) fn first_sector(&self) -> u64 {
        self.section.first_sector
            + self.period * self.section.period_sectors
            + self.leg.sector
            + self.track * self.shape.spt.get()
    }

    /// The slot of the section that lies at `sector` of this track, in a unit whose sectors are
    /// displaced by `shift`; `Err` with the next slot when there is none, because a spare lies
    /// there. `sector` may be the number of sectors a track: then it is the track's end that is
    /// meant.
    #[inline]
    pub(super) fn slot(&self, sector: u64, shift: i64) -> Result<u64, u64> {
        let spt = self.shape.spt.get();
        let before = self.period * self.section.period.get() + self.leg.start;
        if let Some(unit) = &self.shape.unit {
            let (k, tracks) = unit.tracks.div_rem(self.track);
            let whole = u64::from(self.leg.units);
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

/// The slot at `inside` of a unit, or else the next slot.
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
    /// Puts sections together. They must cover rising cylinders.
    pub(super) fn new(mut sections: Vec<Section>, legs: Vec<Leg>, shapes: Vec<Shape>) -> Result<Order, GeometryError> {
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
            s.guess =
                ((u128::from(s.patterns[0].legs) << 64) / u128::from(s.period.get())).min(u128::from(u64::MAX)) as u64;
        }
        let cylinders_end = sections.last().map_or(1, |s| u64::from(s.cylinder) + u64::from(s.cylinders));
        let starts = sections.iter().map(|s| u64::from(s.cylinder));
        let cylinder_index = StepIndex::new(starts, cylinders_end);
        Ok(Order { sections, legs, shapes, sectors: sectors as u64, cylinders_end, cylinder_index })
    }

    /// The legs of a section's period.
    #[inline]
    pub(super) fn legs_of(&self, section: &Section, period: u64) -> &[Leg] {
        let p = section.patterns[(period & 1) as usize];
        &self.legs[p.first as usize..(p.first + p.legs) as usize]
    }

    /// The track and sector of a slot of a section, in a unit whose sectors are displaced by
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
        let legs = self.legs_of(section, period);
        let mut j = (high_product(r, section.guess) as usize).min(legs.len() - 1);
        while legs[j].start > r {
            j -= 1;
        }
        while j + 1 < legs.len() && legs[j + 1].start <= r {
            j += 1;
        }
        let leg = &legs[j];
        let shape = &self.shapes[leg.shape as usize];
        let r = r - leg.start;
        let sector_in_leg = match &shape.unit {
            None => r,
            Some(unit) => {
                let (k, inside) = unit.slots.div_rem(r);
                let whole = u64::from(leg.units);
                if k < whole {
                    (k * unit.sectors + inside + unit.front).wrapping_add_signed(shift)
                } else {
                    whole * unit.sectors + (r - whole * unit.slots.get())
                }
            }
        };
        let (track, sector) = shape.spt.div_rem(sector_in_leg);
        let spot = TrackSpot { section, leg, shape, index, period, track };
        (spot, sector)
    }

    /// The track at a cylinder and surface, if the drive has one there.
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
        let legs = self.legs_of(section, period);
        let holds = |leg: &&Leg| leg.surface == surface && leg.track_at(from_period as u32) < leg.tracks;
        // Where each surface has one leg, surfaces stand in rising or falling order.
        let forward = usize::from(surface);
        let leg = legs
            .get(forward)
            .filter(holds)
            .or_else(|| legs.get(legs.len().wrapping_sub(forward + 1)).filter(holds))
            .or_else(|| legs.iter().find(holds))?;
        Some(TrackSpot {
            section,
            leg,
            shape: &self.shapes[leg.shape as usize],
            index,
            period,
            track: u64::from(leg.track_at(from_period as u32)),
        })
    }

    /// The track and sector that so many physical sectors come before, in LBN order. Slower than
    /// [`Order::at_slot`]; for compiling only.
    pub(super) fn at_sector(&self, sector: u64) -> (TrackSpot<'_>, u64) {
        assert!(sector < self.sectors, "sector {sector} of {}", self.sectors);
        let index = self.sections.partition_point(|s| s.first_sector <= sector) - 1;
        let section = &self.sections[index];
        let r = sector - section.first_sector;
        let (period, r) = (r / section.period_sectors, r % section.period_sectors);
        let legs = self.legs_of(section, period);
        let leg = &legs[legs.partition_point(|l| l.sector <= r) - 1];
        let shape = &self.shapes[leg.shape as usize];
        let (track, sector) = shape.spt.div_rem(r - leg.sector);
        let spot = TrackSpot { section, leg, shape, index, period, track };
        (spot, sector)
    }

    /// Bytes the tables take.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.sections)
            + size_of_val(&*self.legs)
            + size_of_val(&*self.shapes)
            + self.cylinder_index.memory_bytes()
    }
}

impl Leg {
    /// Which of the leg's tracks lies at this cylinder of the period; not below `tracks` when none
    /// does.
    #[inline]
    fn track_at(&self, cylinder: u32) -> u32 {
        cylinder.wrapping_sub(self.cylinder).wrapping_mul(self.step)
    }
}
