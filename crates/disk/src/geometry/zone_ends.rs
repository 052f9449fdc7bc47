//! Reserved sectors at the two ends of a zone: its reserved front, and the spares of the zone as a
//! whole.
//!
//! A zone of a serpentine drive may be spread over a hundred thousand groups. Its ends are found by
//! walking inwards, so that the cost depends on the number of reserved sectors, not on the size of
//! the zone.

use super::error::GeometryError;
use super::order::{Order, Section, Sweep, TrackSpot};
use super::slots::{Extent, Place, SlipSpan, too_many_slips, zone_size};
use crate::profile::{SpareUnit, ZoneSpec};

/// A contiguous run of a zone's tracks.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    section: u32,
    /// Its slots: start and end.
    slots: (u64, u64),
    /// Its physical sectors on the drive, in LBN order: start and end.
    sectors: (u64, u64),
}

/// Data of a zone: `count` slots of one extent from `place` on, displaced by `shift` in their spare
/// unit.
#[derive(Clone, Copy, Debug)]
struct Data {
    place: Place,
    count: u64,
    shift: i32,
}

/// A zone with reserved ends.
pub(super) struct ZoneEnds<'a> {
    pub(super) order: &'a Order,
    pub(super) zone: usize,
    pub(super) spec: &'a ZoneSpec,
    pub(super) surfaces: u16,
    /// The zone's slips in LBN order.
    pub(super) slips: &'a [SlipSpan],
    /// The drive's extents before anything is reserved.
    pub(super) extents: &'a [Extent],
}

impl ZoneEnds<'_> {
    /// Finds the reserved slots and adds them to `lost`.
    pub(super) fn keep_free(&self, lost: &mut Vec<(Place, u64)>) -> Result<(), GeometryError> {
        let sparing = &self.spec.sparing;
        let for_whole_zone = sparing.unit == SpareUnit::Zone;
        let from_spares = for_whole_zone && !sparing.slips_are_extra;
        let spares = if for_whole_zone { sparing.spares } else { 0 };
        if self.spec.reserved_sectors == 0 && spares == 0 && (self.slips.is_empty() || !from_spares) {
            return Ok(());
        }
        let begin = self.data_begins()?;
        let boundary = (begin < self.order.sectors).then(|| self.order.at_sector(begin));
        // Data after the reserved front; of a run that contains the front's end, the remainder.
        let unreserved = |d: &Data| {
            let reserved = reserved_of(d, &boundary);
            Data { place: (d.place.0, d.place.1 + reserved), count: d.count - reserved, ..*d }
        };
        let mut unused = spares;
        if from_spares {
            // Slips inside the reserved front cost no data sectors.
            let beyond = |s: &SlipSpan| (s.sector + s.count).saturating_sub(s.sector.max(begin));
            let slipped = self.slips.iter().map(beyond).sum();
            unused = match (spares.checked_sub(slipped), self.slips.iter().find(|s| beyond(s) > 0)) {
                (Some(unused), _) => unused,
                (None, Some(first)) => return Err(too_many_slips(self.order, first, spares, slipped)),
                (None, None) => unreachable!("no slips outnumber spares"),
            };
        }
        let expected = unused;
        let mut keep = |place, count: u64| {
            if count > 0 {
                lost.push((place, count));
            }
        };
        for d in self.data() {
            let reserved = reserved_of(&d, &boundary);
            keep(d.place, reserved);
            if reserved < d.count {
                break;
            }
        }
        if sparing.at_front {
            for d in self.data().map(|d| unreserved(&d)) {
                let taken = unused.min(d.count);
                keep(d.place, taken);
                unused -= taken;
                if unused == 0 {
                    break;
                }
            }
        } else {
            for d in self.data().rev().map(|d| unreserved(&d)) {
                let taken = unused.min(d.count);
                keep((d.place.0, d.place.1 + d.count - taken), taken);
                unused -= taken;
                if unused == 0 {
                    break;
                }
            }
        }
        if unused > 0 {
            return Err(GeometryError::ZoneTooSmall { zone: self.zone, expected, found: expected - unused });
        }
        Ok(())
    }

    /// Returns the number of physical sectors on the drive before the zone's first one that is not
    /// reserved.
    fn data_begins(&self) -> Result<u64, GeometryError> {
        let expected = self.spec.reserved_sectors;
        let mut left = expected;
        for s in self.stretches() {
            let sectors = s.sectors.1 - s.sectors.0;
            if left < sectors {
                return Ok(s.sectors.0 + left);
            }
            left -= sectors;
        }
        if left > 0 {
            let found = zone_size(self.spec, self.surfaces).1;
            return Err(GeometryError::ZoneTooSmall { zone: self.zone, expected, found });
        }
        Ok(u64::MAX)
    }

    /// Iterates over the zone's data in LBN order.
    fn data(&self) -> impl DoubleEndedIterator<Item = Data> + '_ {
        self.stretches().flat_map(move |s| {
            let (low, high) = s.slots;
            let from = self.extents.partition_point(|e| (e.section, e.slot + e.count) <= (s.section, low));
            let inside = self.extents[from..].partition_point(|e| (e.section, e.slot) < (s.section, high));
            self.extents[from..from + inside].iter().map(move |e| {
                let first = e.slot.max(low);
                let end = (e.slot + e.count).min(high);
                Data { place: (s.section, first), count: end - first, shift: e.shift }
            })
        })
    }

    /// Iterates over the zone's tracks in LBN order.
    fn stretches(&self) -> impl DoubleEndedIterator<Item = Stretch> + '_ {
        self.order.sections.iter().enumerate().flat_map(move |(index, section)| {
            let index = index as u32;
            let sweeps = self.order.sweeps_of(section, 0);
            let periods = u64::from(section.cylinders).div_ceil(section.width.get());
            let all_ours = sweeps.iter().all(|l| self.is_ours(l));
            let whole = all_ours.then(|| {
                let end = section.first_sector + periods * section.period_sectors;
                Stretch { section: index, slots: (0, section.slots), sectors: (section.first_sector, end) }
            });
            let periods = if all_ours || !sweeps.iter().any(|l| self.is_ours(l)) { 0 } else { periods };
            let pieces = (0..periods).flat_map(move |period| self.pieces(index, section, period));
            whole.into_iter().chain(pieces)
        })
    }

    /// Iterates over the zone's sweeps in one period of a section that it shares with other zones.
    fn pieces<'s>(
        &'s self,
        index: u32,
        section: &'s Section,
        period: u64,
    ) -> impl DoubleEndedIterator<Item = Stretch> + 's {
        let sweeps = self.order.sweeps_of(section, period);
        let slot = period * section.period.get();
        let sector = section.first_sector + period * section.period_sectors;
        (0..sweeps.len()).filter(|i| self.is_ours(&sweeps[*i])).map(move |i| {
            let sweep = &sweeps[i];
            let end = match sweeps.get(i + 1) {
                Some(next) => (next.start, next.sector),
                None => (section.period.get(), section.period_sectors),
            };
            Stretch {
                section: index,
                slots: (slot + sweep.start, slot + end.0),
                sectors: (sector + sweep.sector, sector + end.1),
            }
        })
    }

    fn is_ours(&self, sweep: &Sweep) -> bool {
        self.order.shapes[sweep.shape as usize].zone as usize == self.zone
    }
}

/// Returns the number of sectors of `d` before the first unreserved sector; all when there is none.
fn reserved_of(d: &Data, boundary: &Option<(TrackSpot<'_>, u64)>) -> u64 {
    let Some((spot, sector)) = boundary else {
        return d.count;
    };
    match (d.place.0 as usize).cmp(&spot.index) {
        std::cmp::Ordering::Less => d.count,
        std::cmp::Ordering::Greater => 0,
        std::cmp::Ordering::Equal => match spot.slot(*sector, i64::from(d.shift)) {
            Ok(end) | Err(end) => end.saturating_sub(d.place.1).min(d.count),
        },
    }
}
