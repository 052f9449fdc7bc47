//! Mapping from slots to LBNs, without slips, spares and reserved sectors.
//!
//! The result is a list of *extents* in LBN order: runs of consecutive LBNs in consecutive slots of
//! one section. Regular spares are handled arithmetically (see [`super::order`]), so an extent
//! begins only at an irregularity: at the start of a section, at a slipped sector, or at the
//! reserved front or end of a zone.

use super::error::GeometryError;
use super::order::{Order, TrackSpot};
use super::slots::{Extent, Place, SlipSpan, too_many_slips, zone_size};
use super::zone_ends::ZoneEnds;
use crate::angle::Angle;
use crate::profile::{GeometrySpec, Layout, SectorAddress, Slip};

/// The sector from which the skew of a zone's tracks is pushed by an angle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Push {
    /// Physical sectors before it on the drive, in LBN order.
    pub(super) sector: u64,
    pub(super) zone: u32,
    pub(super) angle: Angle,
}

/// All holes of a drive with the resulting extents, each list in LBN order.
#[derive(Debug)]
pub(super) struct Holes {
    pub(super) extents: Vec<Extent>,
    pub(super) slips: Vec<SlipSpan>,
    pub(super) pushes: Vec<Push>,
}

impl Holes {
    /// Whether a physical sector is slipped.
    pub(super) fn is_slipped(&self, sector: u64) -> bool {
        let before = self.slips.partition_point(|s| s.sector <= sector);
        self.slips[..before].last().is_some_and(|s| sector < s.sector + s.count)
    }

    /// Returns the angle by which slips push the skew of the track that holds a physical sector of
    /// a zone.
    pub(super) fn push_at(&self, zone: u32, sector: u64) -> Angle {
        let before = self.pushes.partition_point(|p| p.sector <= sector);
        self.pushes[..before].last().filter(|p| p.zone == zone).map_or(Angle::ZERO, |p| p.angle)
    }
}

/// Compiles all holes.
pub(super) fn compile(spec: &GeometrySpec, order: &Order) -> Result<Holes, GeometryError> {
    let slips = slip_spans(spec, order)?;
    let mut walk = HoleWalk { spec, order, extents: Vec::new(), pushes: Vec::new(), at: (0, 0) };
    let mut rest = slips.as_slice();
    while let Some(first) = rest.first() {
        let unit = walk.unit_of(first);
        let n = rest.iter().take_while(|s| s.sector < unit.first_sector + unit.sectors).count();
        walk.slipped_unit(&unit, &rest[..n])?;
        rest = &rest[n..];
    }
    walk.regular_to((order.sections.len() as u32, 0));
    let HoleWalk { mut extents, pushes, .. } = walk;

    let mut lost: Vec<(Place, u64)> = Vec::new();
    let mut by_zone = vec![Vec::new(); spec.zones.len()];
    for s in &slips {
        by_zone[s.zone].push(*s);
    }
    for (zone, slips) in by_zone.iter().enumerate() {
        let z = &spec.zones[zone];
        let ends = ZoneEnds { order, zone, spec: z, surfaces: spec.surfaces, slips, extents: &extents };
        ends.keep_free(&mut lost)?;
    }
    if !lost.is_empty() {
        lost.sort_unstable();
        extents = without(&extents, &lost);
    }
    Ok(Holes { extents, slips, pushes })
}

/// Returns all slips as runs of physical sectors, sorted, each sector once.
fn slip_spans(spec: &GeometrySpec, order: &Order) -> Result<Vec<SlipSpan>, GeometryError> {
    let mut found = Vec::new();
    for (zone, z) in spec.zones.iter().enumerate() {
        for slip in &z.slips {
            found.push(slip_span(spec, order, zone, *slip)?);
        }
    }
    // Sorted by position, longer runs first, so that a slip on a track that is slipped as a whole
    // is merged with it.
    found.sort_unstable_by_key(|s| (s.sector, u64::MAX - s.count));
    let mut spans: Vec<SlipSpan> = Vec::with_capacity(found.len());
    for s in found {
        if spans.last().is_none_or(|l| s.sector >= l.sector + l.count) {
            spans.push(s);
        }
    }
    Ok(spans)
}

fn slip_span(spec: &GeometrySpec, order: &Order, zone: usize, slip: Slip) -> Result<SlipSpan, GeometryError> {
    let outside = || {
        let (tracks, sectors) = zone_size(&spec.zones[zone], spec.surfaces);
        GeometryError::SlipOutsideZone { zone, slip, tracks, sectors }
    };
    let on_track = |cylinder, surface| {
        order.track(cylinder, surface).filter(|t| t.shape.zone as usize == zone).ok_or_else(outside)
    };
    let whole = |t: TrackSpot<'_>| SlipSpan { sector: t.first_sector(), count: u64::from(t.spt()), zone };
    match slip {
        Slip::Index(i) => {
            Ok(SlipSpan { sector: sector_by_index(spec, order, zone, i)?.ok_or_else(outside)?, count: 1, zone })
        }
        Slip::TrackIndex(i) => {
            let Layout::HeadFirst(heads) = spec.layout else {
                return Err(GeometryError::IndexInSeekFirst { zone });
            };
            let z = &spec.zones[zone];
            let surfaces = u64::from(spec.surfaces);
            let cylinder = u64::from(z.first_cylinder).saturating_add(i / surfaces);
            let cylinder = u32::try_from(cylinder).map_err(|_| outside())?;
            if cylinder > z.last_cylinder {
                return Err(outside());
            }
            let h = (i % surfaces) as u16;
            let surface = if heads.is_turned(z.first_cylinder, cylinder) { spec.surfaces - 1 - h } else { h };
            Ok(whole(on_track(cylinder, surface)?))
        }
        Slip::Track { cylinder, surface } => Ok(whole(on_track(cylinder, surface)?)),
        Slip::Sector(SectorAddress { cylinder, surface, sector }) => {
            let track = on_track(cylinder, surface)?;
            if sector >= track.spt() {
                return Err(outside());
            }
            Ok(SlipSpan { sector: track.first_sector() + u64::from(sector), count: 1, zone })
        }
    }
}

/// Returns the number of physical sectors before the one with this index in its zone; `None` beyond
/// the zone.
pub(super) fn sector_by_index(
    spec: &GeometrySpec,
    order: &Order,
    zone: usize,
    index: u64,
) -> Result<Option<u64>, GeometryError> {
    if !matches!(spec.layout, Layout::HeadFirst(_)) {
        return Err(GeometryError::IndexInSeekFirst { zone });
    }
    if index >= zone_size(&spec.zones[zone], spec.surfaces).1 {
        return Ok(None);
    }
    let first = spec.zones[zone].first_cylinder;
    let at = order.sections.partition_point(|s| s.cylinder < first);
    Ok(Some(order.sections[at].first_sector + index))
}

/// A range of physical sectors within which slips shift data.
struct Unit {
    zone: usize,
    /// Physical sectors before it on the drive.
    first_sector: u64,
    sectors: u64,
    /// First slot.
    place: Place,
    /// Number of slots if it has its own spares; `None`: slips are simply lost.
    slots: Option<u64>,
}

/// A pass over the drive in LBN order that makes the extents.
struct HoleWalk<'a> {
    spec: &'a GeometrySpec,
    order: &'a Order,
    extents: Vec<Extent>,
    pushes: Vec<Push>,
    at: Place,
}

impl HoleWalk<'_> {
    /// Returns the unit of a slip. In a zone without units, the slip is a unit by itself.
    fn unit_of(&self, slip: &SlipSpan) -> Unit {
        let (spot, sector) = self.order.at_sector(slip.sector);
        let section = spot.section;
        let index = spot.index as u32;
        if let Some(unit) = &section.unit {
            let in_section = slip.sector - section.first_sector;
            let (k, inside) = unit.sectors.div_rem(in_section);
            return Unit {
                zone: slip.zone,
                first_sector: slip.sector - inside,
                sectors: unit.sectors.get(),
                place: (index, k * unit.slots.get()),
                slots: Some(unit.slots.get()),
            };
        }
        if let Some(unit) = &spot.shape.unit {
            let (k, tracks) = unit.tracks.div_rem(spot.track);
            if k < u64::from(spot.sweep.units) {
                let inside = tracks * u64::from(spot.spt()) + sector;
                let sweep = spot.period * section.period.get() + spot.sweep.start;
                return Unit {
                    zone: slip.zone,
                    first_sector: slip.sector - inside,
                    sectors: unit.sectors,
                    place: (index, sweep + k * unit.slots.get()),
                    slots: Some(unit.slots.get()),
                };
            }
        }
        let slot = match spot.slot(sector, 0) {
            Ok(slot) => slot,
            Err(_) => unreachable!("a place outside all units has no spares"),
        };
        Unit { zone: slip.zone, first_sector: slip.sector, sectors: slip.count, place: (index, slot), slots: None }
    }

    /// Returns the angle by which the skew is currently pushed in a section.
    fn push_in(&self, section: u32) -> Angle {
        let Some(push) = self.pushes.last() else {
            return Angle::ZERO;
        };
        let sweeps = self.order.sweeps_of(&self.order.sections[section as usize], 0);
        if self.order.shapes[sweeps[0].shape as usize].zone == push.zone { push.angle } else { Angle::ZERO }
    }

    /// Adds an extent of `count` slots at the current position and advances past it.
    fn add(&mut self, count: u64, shift: i32) {
        if count == 0 {
            return;
        }
        let (section, slot) = self.at;
        let push = self.push_in(section);
        self.at.1 += count;
        if let Some(last) = self.extents.last_mut()
            && (last.section, last.slot + last.count, last.shift, last.push) == (section, slot, shift, push)
        {
            last.count += count;
            return;
        }
        self.extents.push(Extent { section, slot, count, shift, push });
    }

    /// Adds regular extents up to `to`.
    fn regular_to(&mut self, to: Place) {
        while self.at.0 < to.0 {
            let left = self.order.sections[self.at.0 as usize].slots - self.at.1;
            self.add(left, 0);
            self.at = (self.at.0 + 1, 0);
        }
        if self.at.1 < to.1 {
            self.add(to.1 - self.at.1, 0);
        }
    }

    /// Adds the extents of a unit that contains slips: `spans` are those in the unit, in order.
    fn slipped_unit(&mut self, unit: &Unit, spans: &[SlipSpan]) -> Result<(), GeometryError> {
        self.regular_to(unit.place);
        let Some(slots) = unit.slots else {
            self.at.1 += unit.sectors;
            return Ok(());
        };
        let sparing = self.spec.zones[unit.zone].sparing;
        let slipped: u64 = spans.iter().map(|s| s.count).sum();
        // A unit that is defective as a whole holds no data and needs no spares.
        let all_bad = slipped == unit.sectors;
        if slipped > sparing.spares && !sparing.slips_are_extra && !all_bad {
            return Err(too_many_slips(self.order, &spans[0], sparing.spares, slipped));
        }
        // Of the unit's good sectors, in order, `data` hold LBNs, after `unused` spares at the
        // front.
        let data = if all_bad {
            0
        } else if sparing.slips_are_extra {
            slots.saturating_sub(slipped)
        } else {
            slots
        };
        let (front, unused) = match (sparing.at_front, sparing.slips_are_extra) {
            (false, _) => (0, 0),
            (true, true) => (sparing.spares, sparing.spares),
            (true, false) => (sparing.spares, sparing.spares.saturating_sub(slipped)),
        };
        let mut good = 0;
        let mut from = 0;
        let mut before = 0;
        let ends = spans.iter().map(|s| (s.sector - unit.first_sector, s.count)).chain([(unit.sectors, 0)]);
        for (to, count) in ends {
            // Good sectors `good..good + (to - from)`, after `before` slipped ones.
            let next = good + (to - from);
            let low = good.max(unused);
            let high = next.min(unused + data);
            if low < high {
                let shift = before as i64 + unused as i64 - front as i64;
                self.add(high - low, shift as i32);
            }
            good = next;
            from = to + count;
            before += count;
        }
        self.at = (unit.place.0, unit.place.1 + slots);
        if sparing.slips_push_skew {
            let zone = unit.zone as u32;
            let pushed = self.pushes.last().filter(|p| p.zone == zone).map_or(Angle::ZERO, |p| p.angle);
            let spt = self.spec.zones[unit.zone].sectors_per_track[0];
            self.pushes.push(Push {
                sector: unit.first_sector + unit.sectors,
                zone,
                angle: pushed + Angle::fraction(1, u64::from(spt)) * slipped,
            });
        }
        Ok(())
    }
}

/// Removes the lost slots from the extents; both are in LBN order.
fn without(extents: &[Extent], lost: &[(Place, u64)]) -> Vec<Extent> {
    let mut kept = Vec::with_capacity(extents.len());
    let mut lost = lost.iter().peekable();
    for e in extents {
        let mut rest = *e;
        while let Some(&&((section, slot), count)) = lost.peek() {
            if (section, slot) >= (rest.section, rest.slot + rest.count) {
                break;
            }
            let end = slot + count;
            if section == rest.section && end > rest.slot {
                if slot > rest.slot {
                    kept.push(Extent { count: slot - rest.slot, ..rest });
                }
                let rest_end = rest.slot + rest.count;
                if end >= rest_end {
                    rest.count = 0;
                    if end > rest_end {
                        break;
                    }
                } else {
                    rest.count = rest_end - end;
                    rest.slot = end;
                }
            }
            lost.next();
            if rest.count == 0 {
                break;
            }
        }
        if rest.count > 0 {
            kept.push(rest);
        }
    }
    kept
}
