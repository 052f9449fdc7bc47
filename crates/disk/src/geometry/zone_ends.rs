//! What a zone keeps free at its two ends: the reserved front, and spares that are kept for the zone as a whole.

use super::error::GeometryError;
use super::holes::{Extent, Place, SlipSpan, too_many_slips, zone_size};
use super::order::Order;
use crate::profile::{GeometrySpec, SpareUnit};

/// A zone's tracks where they follow each other without a break.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    section: u32,
    /// Its slots: first and end.
    slots: (u64, u64),
    /// Its physical sectors among the drive's, in LBN order: first and end.
    sectors: (u64, u64),
}

/// Data of a zone: slots of one extent, `count` from `place` on, displaced by `shift` in their spare unit.
#[derive(Clone, Copy, Debug)]
struct Data {
    place: Place,
    count: u64,
    shift: i32,
}

/// Finds the slots that a zone keeps free at its front and end, and adds them to `lost`.
pub(super) fn keep_free(
    spec: &GeometrySpec,
    order: &Order,
    zone: usize,
    slips: &[SlipSpan],
    extents: &[Extent],
    lost: &mut Vec<(Place, u64)>,
) -> Result<(), GeometryError> {
    let z = &spec.zones[zone];
    let spares = if z.sparing.unit == SpareUnit::Zone { z.sparing.spares } else { 0 };
    let for_whole_zone = z.sparing.unit == SpareUnit::Zone && !z.sparing.slips_are_extra;
    if z.reserved_sectors == 0 && spares == 0 && !(for_whole_zone && slips.iter().any(|s| s.zone == zone)) {
        return Ok(());
    }
    let stretches = stretches(order, zone);
    let begin = data_begins(spec, zone, &stretches)?;
    let mut data = data(&stretches, extents);
    reserve(order, begin, &mut data, lost);

    let mut unused = spares;
    if for_whole_zone {
        // Slips inside the reserved front cost nothing that could hold data.
        let beyond = |s: &SlipSpan| (s.sector + s.count).saturating_sub(s.sector.max(begin));
        let mut ours = slips.iter().filter(|s| s.zone == zone && beyond(s) > 0).peekable();
        if let Some(first) = ours.peek().copied() {
            let slipped = ours.map(beyond).sum();
            unused = spares.checked_sub(slipped).ok_or_else(|| too_many_slips(order, first, spares, slipped))?;
        }
    }
    let found = data.iter().map(|d| d.count).sum();
    if unused > found {
        return Err(GeometryError::ZoneTooSmall { zone, expected: unused, found });
    }
    if z.sparing.at_front {
        for d in &data {
            let taken = unused.min(d.count);
            lost.push((d.place, taken));
            unused -= taken;
        }
    } else {
        for d in data.iter().rev() {
            let taken = unused.min(d.count);
            lost.push(((d.place.0, d.place.1 + d.count - taken), taken));
            unused -= taken;
        }
    }
    lost.retain(|l| l.1 > 0);
    Ok(())
}

/// Physical sectors of the drive before the first one of the zone that is not reserved.
fn data_begins(spec: &GeometrySpec, zone: usize, stretches: &[Stretch]) -> Result<u64, GeometryError> {
    let expected = spec.zones[zone].reserved_sectors;
    let mut left = expected;
    for s in stretches {
        let sectors = s.sectors.1 - s.sectors.0;
        if left < sectors {
            return Ok(s.sectors.0 + left);
        }
        left -= sectors;
    }
    if left > 0 {
        return Err(GeometryError::ZoneTooSmall { zone, expected, found: zone_size(spec, zone).1 });
    }
    Ok(u64::MAX)
}

/// Moves the data whose sectors lie before `begin` from `data` to `lost`.
fn reserve(order: &Order, begin: u64, data: &mut Vec<Data>, lost: &mut Vec<(Place, u64)>) {
    let boundary = (begin < order.sectors).then(|| order.at_sector(begin));
    for d in data.iter_mut() {
        let (section, slot) = d.place;
        let reserved = match boundary {
            None => d.count,
            Some((spot, sector)) => match (section as usize).cmp(&spot.index) {
                std::cmp::Ordering::Less => d.count,
                std::cmp::Ordering::Greater => 0,
                std::cmp::Ordering::Equal => match spot.slot(sector, i64::from(d.shift)) {
                    Ok(end) | Err(end) => end.saturating_sub(slot).min(d.count),
                },
            },
        };
        if reserved == 0 {
            break;
        }
        lost.push((d.place, reserved));
        d.place.1 += reserved;
        d.count -= reserved;
    }
    data.retain(|d| d.count > 0);
}

/// The data that lies in the stretches, in LBN order.
fn data(stretches: &[Stretch], extents: &[Extent]) -> Vec<Data> {
    let mut found = Vec::new();
    for s in stretches {
        let (low, high) = s.slots;
        let from = extents.partition_point(|e| (e.section, e.slot + e.count) <= (s.section, low));
        for e in &extents[from..] {
            if (e.section, e.slot) >= (s.section, high) {
                break;
            }
            let first = e.slot.max(low);
            let end = (e.slot + e.count).min(high);
            found.push(Data { place: (s.section, first), count: end - first, shift: e.shift });
        }
    }
    found
}

/// A zone's tracks in LBN order.
fn stretches(order: &Order, zone: usize) -> Vec<Stretch> {
    let mut found: Vec<Stretch> = Vec::new();
    let is_ours = |shape: u32| order.shapes[shape as usize].zone as usize == zone;
    for (index, section) in order.sections.iter().enumerate() {
        let index = index as u32;
        let periods = u64::from(section.cylinders).div_ceil(section.width.get());
        let legs = order.legs_of(section, 0);
        if legs.iter().all(|l| is_ours(l.shape)) {
            let end = section.first_sector + periods * section.period_sectors;
            found.push(Stretch { section: index, slots: (0, section.slots), sectors: (section.first_sector, end) });
            continue;
        }
        if !legs.iter().any(|l| is_ours(l.shape)) {
            continue;
        }
        let (slots, sectors) = (section.period.get(), section.period_sectors);
        for period in 0..periods {
            let legs = order.legs_of(section, period);
            let first_sector = section.first_sector + period * sectors;
            for (i, leg) in legs.iter().enumerate().filter(|(_, l)| is_ours(l.shape)) {
                let end = legs.get(i + 1).map_or((slots, sectors), |next| (next.start, next.sector));
                let here = Stretch {
                    section: index,
                    slots: (period * slots + leg.start, period * slots + end.0),
                    sectors: (first_sector + leg.sector, first_sector + end.1),
                };
                match found.last_mut() {
                    Some(last) if last.section == index && last.sectors.1 == here.sectors.0 => {
                        last.slots.1 = here.slots.1;
                        last.sectors.1 = here.sectors.1;
                    }
                    _ => found.push(here),
                }
            }
        }
    }
    found
}
