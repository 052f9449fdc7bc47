//! The compiled extents, located by LBN or by physical sector in a few nanoseconds.

use super::order::{Order, TrackSpot};
use super::slots;
use super::steps::StepIndex;
use crate::angle::Angle;

/// Marks an extent whose single LBN is remapped, in the upper bit of its section.
const MOVED: u32 = 1 << 31;

/// Consecutive LBNs in consecutive slots of one section.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// First LBN.
    pub(super) lbn: u64,
    /// First slot.
    pub(super) slot: u64,
    /// Angle by which slips push the skew of its tracks.
    pub(super) push: Angle,
    /// Sectors by which slips displace it inside its spare unit.
    pub(super) shift: i32,
    marked_section: u32,
}

impl Extent {
    #[inline]
    pub(super) fn section(&self) -> usize {
        (self.marked_section & !MOVED) as usize
    }

    /// Whether its single LBN is remapped.
    #[inline]
    pub(super) fn is_moved(&self) -> bool {
        self.marked_section & MOVED != 0
    }
}

/// All extents of a drive.
#[derive(Clone, Debug)]
pub(super) struct Extents {
    /// In LBN order, which is physical order, too; terminated by an entry that begins at the
    /// capacity.
    list: Vec<Extent>,
    /// Physical sectors before each extent, in LBN order.
    sectors: Vec<u64>,
    by_lbn: StepIndex,
    by_sector: StepIndex,
    capacity: u64,
}

impl Extents {
    /// Compiles a list in LBN order; each LBN in `moved`, which is sorted, becomes an extent of its
    /// own.
    pub(super) fn new(order: &Order, found: &[slots::Extent], moved: &[u64]) -> Extents {
        let mut list = Vec::with_capacity(found.len() + 2 * moved.len() + 1);
        let mut moved = moved.iter().copied().peekable();
        let mut lbn = 0;
        for e in found {
            let mut rest = *e;
            let mut add = |rest: &mut slots::Extent, count: u64, mark: u32| {
                if count > 0 {
                    list.push(Extent {
                        lbn,
                        slot: rest.slot,
                        push: rest.push,
                        shift: rest.shift,
                        marked_section: rest.section | mark,
                    });
                    lbn += count;
                    rest.slot += count;
                    rest.count -= count;
                }
                lbn
            };
            let mut at = add(&mut rest, 0, 0);
            while let Some(m) = moved.next_if(|m| *m < at + rest.count) {
                add(&mut rest, m - at, 0);
                at = add(&mut rest, 1, MOVED);
            }
            let left = rest.count;
            add(&mut rest, left, 0);
        }
        let sectors: Vec<u64> = list
            .iter()
            .map(|e| {
                let (spot, sector) = order.at_slot(e.section(), e.slot, i64::from(e.shift));
                spot.first_sector() + sector
            })
            .collect();
        let by_lbn = StepIndex::new(list.iter().map(|e| e.lbn), lbn.max(1));
        let by_sector = StepIndex::new(sectors.iter().copied(), order.sectors.max(1));
        list.push(Extent { lbn, slot: 0, push: Angle::ZERO, shift: 0, marked_section: 0 });
        Extents { list, sectors, by_lbn, by_sector, capacity: lbn }
    }

    /// Returns the number of usable sectors.
    #[inline]
    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns the extents from the one that holds `lbn`, which must be below the capacity, to the
    /// terminating entry.
    #[inline]
    pub(super) fn starting_with(&self, lbn: u64) -> &[Extent] {
        let found = self.by_lbn.count(lbn, |i| self.list[i].lbn);
        &self.list[found - 1..]
    }

    /// Returns the last extent that begins at or before a physical sector, and the entry after it.
    #[inline]
    pub(super) fn at_sector(&self, sector: u64) -> Option<(&Extent, &Extent)> {
        let found = self.by_sector.count(sector, |i| self.sectors[i]);
        Some((self.list.get(found.checked_sub(1)?)?, &self.list[found]))
    }

    /// Returns the LBN at `sector` of a track, with remapped LBNs at their original place; `None`
    /// at holes.
    #[inline]
    pub(super) fn lbn_on(&self, track: &TrackSpot<'_>, sector: u32) -> Option<(u64, bool)> {
        let sector = u64::from(sector);
        let (extent, next) = self.at_sector(track.first_sector() + sector)?;
        if extent.section() != track.index {
            return None;
        }
        let slot = track.slot(sector, i64::from(extent.shift)).ok()?;
        let lbn = extent.lbn + slot.checked_sub(extent.slot)?;
        (lbn < next.lbn).then_some((lbn, extent.is_moved()))
    }

    /// Returns the first LBN of a track, or of what follows it, and the number of LBNs on it.
    /// `near` is an extent that may hold all of them, with the entry after it.
    #[inline]
    pub(super) fn lbns_on(&self, track: &TrackSpot<'_>, near: Option<(&Extent, &Extent)>) -> (u64, u32) {
        let spt = track.shape.spt.get();
        if let Some((extent, next)) = near.filter(|n| n.0.section() == track.index) {
            // An extent that covers all slots of the track under its own displacement leaves none
            // to other extents.
            let shift = i64::from(extent.shift);
            let (Ok(first) | Err(first), Ok(end) | Err(end)) = (track.slot(0, shift), track.slot(spt, shift));
            if first >= extent.slot && end > first && end - extent.slot <= next.lbn - extent.lbn {
                return (extent.lbn + (first - extent.slot), (end - first) as u32);
            }
        }
        let first_sector = track.first_sector();
        let first = self.lbns_before(track, 0, self.at_sector(first_sector));
        let end = self.lbns_before(track, spt, self.at_sector(first_sector + spt - 1));
        (first, (end - first) as u32)
    }

    /// Returns the last extent that begins at or before a track's first sector, and the entry after
    /// it.
    #[inline]
    pub(super) fn on_track(&self, track: &TrackSpot<'_>) -> Option<(&Extent, &Extent)> {
        self.at_sector(track.first_sector())
    }

    /// Returns the number of LBNs before `sector` of a track; `found` is the last extent that can
    /// hold some of them.
    #[inline]
    fn lbns_before(&self, track: &TrackSpot<'_>, sector: u64, found: Option<(&Extent, &Extent)>) -> u64 {
        let Some((extent, next)) = found else {
            return 0;
        };
        if extent.section() != track.index {
            return next.lbn;
        }
        let slot = match track.slot(sector, i64::from(extent.shift)) {
            Ok(slot) | Err(slot) => slot,
        };
        (extent.lbn + slot.saturating_sub(extent.slot)).min(next.lbn)
    }

    /// Returns the size of the tables in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.list)
            + size_of_val(&*self.sectors)
            + self.by_lbn.memory_bytes()
            + self.by_sector.memory_bytes()
    }
}
