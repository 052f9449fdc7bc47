//! Index of the unfinished requests by the blocks they touch.
//!
//! Two requests that overlap, one of them a write, must be carried out in the order in which they
//! arrived, and never at the same time: a drive with two commands may serve either first. So a
//! request waits until every older request it conflicts with has finished. This index answers one
//! query: the youngest older conflict. Once that one has finished the query is repeated, so a
//! waiting request depends on one other at a time and nothing is allocated for pairs.
//!
//! The index is a grid: a request of at most `2^s` sectors lies in the cell of its first sector,
//! cells being `2^s` sectors wide, so what overlaps a range is found in the cells it covers and the
//! one before. Cells are hashed to a table of chains with a fixed multiplier; the result does not
//! depend on the hash.

use headtime_disk::Kind;

use crate::list::NONE;

/// Cell widths, as powers of two in sectors: 4 KiB, 64 KiB, 1 MiB, ... of 512-byte sectors.
const WIDTHS: [u32; 8] = [3, 7, 11, 15, 19, 23, 27, 32];

#[derive(Clone, Copy, Debug)]
struct Entry {
    first: u64,
    /// One past the last sector; 0 marks a slot that is not in the index.
    end: u64,
    /// Order of arrival.
    seq: u64,
    next: u32,
    class: u8,
    write: bool,
}

const ABSENT: Entry = Entry { first: 0, end: 0, seq: 0, next: NONE, class: 0, write: false };

/// Unfinished reads and writes by the blocks they touch.
#[derive(Clone, Debug)]
pub(crate) struct Overlaps {
    entries: Vec<Entry>,
    chains: Vec<u32>,
    shift: u32,
    in_class: [u32; WIDTHS.len()],
    reads: u32,
    writes: u32,
    /// Slots from this one on were never used.
    used: usize,
}

impl Overlaps {
    /// Creates an empty index for slots below `slots`.
    pub(crate) fn new(slots: usize) -> Overlaps {
        // More chains than this exceed the processor's nearest cache, and cost more than they save.
        let chains = (slots * 2).next_power_of_two().clamp(64, 1 << 13);
        Overlaps {
            entries: vec![ABSENT; slots],
            chains: vec![NONE; chains],
            shift: 64 - chains.trailing_zeros(),
            in_class: [0; WIDTHS.len()],
            reads: 0,
            writes: 0,
            used: 0,
        }
    }

    #[inline]
    fn chain(&self, class: usize, cell: u64) -> usize {
        // The multiplier 2^64 / golden ratio spreads neighbouring cells over the whole table.
        let mixed = (cell ^ (class as u64) << 56).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> self.shift) as usize
    }

    /// Adds the request in `slot`.
    #[inline]
    pub(crate) fn insert(&mut self, slot: u32, kind: Kind, lbn: u64, count: u32, seq: u64) {
        assert!(count > 0 && kind != Kind::Flush);
        assert!(self.entries[slot as usize].end == 0, "slot {slot} is taken");
        let class = WIDTHS.iter().position(|&w| count as u64 <= 1 << w).expect("2^32 holds every count");
        let write = kind == Kind::Write;
        let chain = self.chain(class, lbn >> WIDTHS[class]);
        self.entries[slot as usize] =
            Entry { first: lbn, end: lbn + count as u64, seq, next: self.chains[chain], class: class as u8, write };
        self.chains[chain] = slot;
        self.used = self.used.max(slot as usize + 1);
        self.in_class[class] += 1;
        match write {
            true => self.writes += 1,
            false => self.reads += 1,
        }
    }

    /// Removes the request in `slot`, which has finished.
    #[inline]
    pub(crate) fn remove(&mut self, slot: u32) {
        let gone = std::mem::replace(&mut self.entries[slot as usize], ABSENT);
        assert!(gone.end > 0, "slot {slot} is not in the index");
        let chain = self.chain(gone.class as usize, gone.first >> WIDTHS[gone.class as usize]);
        let mut at = self.chains[chain];
        if at == slot {
            self.chains[chain] = gone.next;
        } else {
            while self.entries[at as usize].next != slot {
                at = self.entries[at as usize].next;
            }
            self.entries[at as usize].next = gone.next;
        }
        self.in_class[gone.class as usize] -= 1;
        match gone.write {
            true => self.writes -= 1,
            false => self.reads -= 1,
        }
    }

    /// Returns the youngest request that arrived before `seq` and must finish before a request of
    /// `kind` for `count` sectors from `lbn` may be sent to the drive.
    #[inline]
    pub(crate) fn blocker(&self, kind: Kind, lbn: u64, count: u32, seq: u64) -> Option<u32> {
        // Reads do not conflict with each other, and most loads are mostly reads.
        if self.writes == 0 && (kind.is_read() || self.reads == 0) {
            return None;
        }
        self.search(kind, lbn, count, seq)
    }

    /// Returns the requests in the chain of a cell. Other cells may share it.
    fn in_cell(&self, class: usize, cell: u64) -> impl Iterator<Item = u32> + '_ {
        let first = self.chains[self.chain(class, cell)];
        let next = |&at: &u32| Some(self.entries[at as usize].next).filter(|&next| next != NONE);
        std::iter::successors(Some(first).filter(|&at| at != NONE), next)
    }

    /// Returns the requests whose last sector is the one before `lbn`.
    pub(crate) fn ends_at(&self, lbn: u64) -> impl Iterator<Item = u32> + '_ {
        let classes = WIDTHS.into_iter().enumerate().filter(|&(class, _)| self.in_class[class] > 0);
        let last = lbn.saturating_sub(1);
        classes.flat_map(move |(class, width)| {
            // It begins in the cell of its last sector, or in the one before. Both may be in one
            // chain.
            let cell = last >> width;
            let cells = [Some(cell), cell.checked_sub(1)].into_iter().flatten();
            cells.flat_map(move |cell| {
                self.in_cell(class, cell).filter(move |&at| {
                    let entry = &self.entries[at as usize];
                    entry.end == lbn && usize::from(entry.class) == class && entry.first >> width == cell
                })
            })
        })
    }

    /// Returns the requests whose first sector is `lbn`.
    pub(crate) fn begins_at(&self, lbn: u64) -> impl Iterator<Item = u32> + '_ {
        let classes = WIDTHS.into_iter().enumerate().filter(|&(class, _)| self.in_class[class] > 0);
        classes.flat_map(move |(class, width)| {
            self.in_cell(class, lbn >> width).filter(move |&at| self.entries[at as usize].first == lbn)
        })
    }

    fn search(&self, kind: Kind, lbn: u64, count: u32, seq: u64) -> Option<u32> {
        let end = lbn + count as u64;
        let mut best: Option<(u64, u32)> = None;
        let mut consider = |slot: u32, e: &Entry| {
            let overlaps = e.first < end && lbn < e.end;
            let conflict = overlaps && e.seq < seq && (e.write || !kind.is_read());
            if conflict && best.is_none_or(|(s, _)| e.seq > s) {
                best = Some((e.seq, slot));
            }
        };
        for (class, width) in WIDTHS.into_iter().enumerate() {
            if self.in_class[class] == 0 {
                continue;
            }
            let cells = (lbn >> width).saturating_sub(1)..=(end - 1) >> width;
            if cells.end() - cells.start() >= self.used as u64 {
                // Visiting the cells of such a long range costs more than visiting every slot.
                for (slot, e) in self.entries[..self.used].iter().enumerate() {
                    if e.end > 0 && e.class as usize == class {
                        consider(slot as u32, e);
                    }
                }
                continue;
            }
            for cell in cells {
                let mut at = self.chains[self.chain(class, cell)];
                while at != NONE {
                    let e = &self.entries[at as usize];
                    consider(at, e);
                    at = e.next;
                }
            }
        }
        best.map(|(_, slot)| slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_get_along_and_writes_do_not() {
        let mut o = Overlaps::new(8);
        o.insert(0, Kind::Read, 100, 8, 0);
        assert_eq!(o.blocker(Kind::Read, 104, 8, 1), None);
        assert_eq!(o.blocker(Kind::Write, 104, 8, 1), Some(0));
        assert_eq!(o.blocker(Kind::Write, 108, 8, 1), None);
        assert_eq!(o.blocker(Kind::Write, 92, 8, 1), None);
        assert_eq!(o.blocker(Kind::Write, 92, 9, 1), Some(0));
    }

    #[test]
    fn the_youngest_older_conflict_is_named() {
        let mut o = Overlaps::new(8);
        o.insert(3, Kind::Write, 100, 8, 10);
        o.insert(1, Kind::Write, 100, 8, 11);
        o.insert(2, Kind::Write, 100, 8, 13);
        assert_eq!(o.blocker(Kind::Read, 100, 1, 12), Some(1));
        o.remove(1);
        assert_eq!(o.blocker(Kind::Read, 100, 1, 12), Some(3));
        o.remove(3);
        assert_eq!(o.blocker(Kind::Read, 100, 1, 12), None);
    }

    #[test]
    fn a_long_range_is_found_from_far_inside_and_finds_short_ones() {
        let mut o = Overlaps::new(8);
        o.insert(0, Kind::Write, 5, u32::MAX, 0);
        assert_eq!(o.blocker(Kind::Read, 4_000_000_000, 1, 1), Some(0));
        assert_eq!(o.blocker(Kind::Read, 4, 1, 1), None);
        o.remove(0);
        o.insert(1, Kind::Read, 3_999_999_999, 1, 2);
        assert_eq!(o.blocker(Kind::Write, 0, u32::MAX, 3), Some(1));
    }
}
