//! Records of a task and of its ranges.

use headtime_disk::Kind;

use super::bits::Bits;
use super::{TaskId, TaskRange};
use crate::list::NONE;

/// Bits of a task's ID that are its slot in the table; the rest counts registrations.
pub(crate) const SLOT_BITS: u32 = 20;

/// Registrations after which the IDs are exhausted: 200 days at a million a second.
pub(crate) const MAX_SERIAL: u64 = 1 << (64 - SLOT_BITS);

/// Returns the index of a kind in pairs; `None` for a flush.
#[inline]
pub(crate) fn side(kind: Kind) -> Option<usize> {
    match kind {
        Kind::Read => Some(READ),
        Kind::Write => Some(WRITE),
        Kind::Flush => None,
    }
}

/// Index of reads in pairs.
pub(crate) const READ: usize = 0;
/// Index of writes in pairs.
pub(crate) const WRITE: usize = 1;

/// A registered task.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    /// Registration number and slot.
    pub id: TaskId,
    /// Sectors at registration.
    pub total: u64,
    /// Sectors still wanted.
    pub left: u64,
    /// Sectors of a block.
    pub blksize: u32,
    /// Sectors of a unit.
    pub unit: u32,
    /// Its range with the lowest LBN; the others follow by `sibling`.
    pub first: u32,
    /// The preceding task of its session, in order of registration.
    pub before: u32,
    /// The following one.
    pub after: u32,
    /// The preceding promoted task, in order of promotion.
    pub promoted_before: u32,
    /// The following one.
    pub promoted_after: u32,
    /// Its session's slot.
    pub session: u16,
    /// Reads or writes.
    pub kind: Kind,
    /// Whether it has been promoted.
    pub promoted: bool,
}

impl Default for Task {
    fn default() -> Task {
        Task {
            id: TaskId(u64::MAX),
            total: 0,
            left: 0,
            blksize: 0,
            unit: 0,
            first: NONE,
            before: NONE,
            after: NONE,
            promoted_before: NONE,
            promoted_after: NONE,
            session: 0,
            kind: Kind::Read,
            promoted: false,
        }
    }
}

/// Returns the slot of a task with this ID.
#[inline]
pub(crate) fn slot(id: TaskId) -> u32 {
    (id.0 & ((1 << SLOT_BITS) - 1)) as u32
}

/// One range of a task.
#[derive(Clone, Debug)]
pub(crate) struct Extent {
    /// First LBN.
    pub lbn: u64,
    /// Sectors.
    pub count: u64,
    /// Units still wanted.
    pub left: u64,
    /// The bits of its units.
    pub bits: Bits,
    /// Next in its chain of the index.
    pub next: u32,
    /// Previous in that chain.
    pub prev: u32,
    /// The task's next range.
    pub sibling: u32,
    /// Its task.
    pub task: u32,
    /// Sectors of a unit.
    pub unit: u32,
    /// Its session's slot.
    pub session: u16,
    /// [`READ`] or [`WRITE`].
    pub side: u8,
    /// Its level in the index; [`u8::MAX`] when it is not in the index, because nothing of it is
    /// wanted any more.
    pub level: u8,
}

impl Default for Extent {
    fn default() -> Extent {
        Extent {
            lbn: 0,
            count: 0,
            left: 0,
            bits: Bits::default(),
            next: NONE,
            prev: NONE,
            sibling: NONE,
            task: NONE,
            unit: 1,
            session: 0,
            side: 0,
            level: u8::MAX,
        }
    }
}

/// Returns `sectors / unit`. Units are usually powers of two, and a division takes as long as the
/// rest of a query.
#[inline]
fn div(sectors: u64, unit: u32) -> u64 {
    if unit.is_power_of_two() { sectors >> unit.trailing_zeros() } else { sectors / u64::from(unit) }
}

/// Returns the quotient rounded up.
#[inline]
fn div_up(sectors: u64, unit: u32) -> u64 {
    div(sectors + u64::from(unit - 1), unit)
}

impl Extent {
    /// Returns one past its last LBN.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.lbn + self.count
    }

    /// Returns its number of units.
    #[inline]
    pub(crate) fn units(&self) -> u64 {
        div_up(self.count, self.unit)
    }

    /// Returns the units that lie entirely in `lo..hi`: first, one past the last. Empty when the
    /// second is not above the first.
    #[inline]
    pub(crate) fn within(&self, lo: u64, hi: u64) -> (u64, u64) {
        let a = if lo <= self.lbn { 0 } else { div_up(lo - self.lbn, self.unit) };
        let b = if hi >= self.end() { self.units() } else { div(hi.saturating_sub(self.lbn), self.unit) };
        (a, b)
    }

    /// Returns the units that have a sector in `lo..hi`: first, one past the last.
    #[inline]
    pub(crate) fn touching(&self, lo: u64, hi: u64) -> (u64, u64) {
        let a = div(lo.saturating_sub(self.lbn), self.unit);
        let b = if hi >= self.end() { self.units() } else { div_up(hi.saturating_sub(self.lbn), self.unit) };
        (a, b)
    }

    /// Returns the first LBN of a unit, or one past the range.
    #[inline]
    pub(crate) fn at(&self, unit: u64) -> u64 {
        (self.lbn + unit * u64::from(self.unit)).min(self.end())
    }

    /// Returns the sectors of the units `a..b`.
    #[inline]
    pub(crate) fn span(&self, a: u64, b: u64) -> TaskRange {
        let lbn = self.at(a);
        TaskRange { lbn, count: self.at(b) - lbn }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_and_its_bits_fill_one_cache_line() {
        assert_eq!(size_of::<Extent>(), 64);
        assert!(size_of::<Task>() <= 64);
    }

    #[test]
    fn units_count_from_the_first_sector_and_the_last_may_be_short() {
        let e = Extent { lbn: 100, count: 25, unit: 8, ..Extent::default() };
        assert_eq!(e.units(), 4);
        assert_eq!(e.span(3, 4), TaskRange { lbn: 124, count: 1 });
        assert_eq!(e.within(101, 125), (1, 4));
        assert_eq!(e.within(100, 124), (0, 3));
        assert_eq!(e.within(0, 107), (0, 0));
        assert_eq!(e.touching(107, 109), (0, 2));
        assert_eq!(e.touching(124, 300), (3, 4));
    }
}
