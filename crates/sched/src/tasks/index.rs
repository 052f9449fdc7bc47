//! Index of the ranges that may want something in a part of the disk.
//!
//! A grid with several widths of cells: a range is stored once, in the cell of its first sector, at
//! the narrowest level whose cells are no narrower than the range. So any range with a sector in a
//! query begins in one of the cells that the query covers or in the cell before them, at each
//! level. Ten tasks over the whole disk are one cell of ten; a hundred thousand small ranges are
//! spread over their level. The cost of inserting and removing a range does not depend on the
//! contents, and no range is stored twice, as in a segment tree.
//!
//! Cells are hashed to a table of chains with a fixed multiplier; the cell of a range in a chain
//! follows from the range itself.

use super::slab::Slab;
use super::table::Extent;
use crate::list::NONE;

/// Width of the narrowest cells, as a power of two in sectors: about a track.
const NARROWEST: u32 = 9;
/// The cells of each level are four times as wide as those of the level before: a range covers more
/// than a quarter of its cell.
const STEP: u32 = 2;
/// Number of levels: the last holds 2^39 sectors, and anything longer.
const LEVELS: usize = 16;
/// Minimum number of chains of a non-empty index.
const FEWEST: usize = 64;

/// Ranges with wanted sectors, by LBN.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    heads: Vec<u32>,
    items: usize,
    in_level: [u32; LEVELS],
    /// One bit per level that is not empty.
    levels: u32,
}

#[inline]
fn width(level: usize) -> u32 {
    if level + 1 == LEVELS { 63 } else { NARROWEST + STEP * level as u32 }
}

#[inline]
fn level_of(count: u64) -> usize {
    let bits = u64::BITS - (count - 1).leading_zeros();
    (bits.saturating_sub(NARROWEST).div_ceil(STEP) as usize).min(LEVELS - 1)
}

impl Index {
    #[inline]
    fn chain(&self, level: usize, cell: u64) -> usize {
        // The multiplier 2^64 / golden ratio spreads neighbouring cells over the whole table.
        let mixed = (cell ^ (level as u64) << 56).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed >> (64 - self.heads.len().trailing_zeros())) as usize
    }

    /// Returns the number of ranges.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.items
    }

    /// Returns whether it is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Returns the bytes allocated.
    pub(crate) fn bytes(&self) -> usize {
        self.heads.capacity() * 4
    }

    /// Returns an upper bound of the bytes that `more` ranges would add.
    pub(crate) fn bytes_for(&self, more: usize) -> usize {
        let chains = (self.items + more).next_power_of_two().max(FEWEST);
        (chains * 4).saturating_sub(self.bytes())
    }

    /// Reserves memory for `more` ranges, so that the cost per insertion is constant.
    pub(crate) fn reserve(&mut self, more: usize, extents: &mut Slab<Extent>) {
        let needed = (self.items + more).next_power_of_two().max(FEWEST);
        if needed > self.heads.len() {
            self.rebuild(needed, extents);
        }
    }

    fn rebuild(&mut self, chains: usize, extents: &mut Slab<Extent>) {
        self.heads = vec![NONE; chains];
        let here: Vec<u32> = extents.iter().filter(|(_, e)| e.level != u8::MAX).map(|(at, _)| at).collect();
        assert!(here.len() == self.items, "{} ranges in the index, {} counted", here.len(), self.items);
        here.into_iter().for_each(|at| self.hang(at, extents));
    }

    fn hang(&mut self, at: u32, extents: &mut Slab<Extent>) {
        let e = &extents[at];
        let chain = self.chain(e.level as usize, e.lbn >> width(e.level as usize));
        let first = std::mem::replace(&mut self.heads[chain], at);
        if first != NONE {
            extents[first].prev = at;
        }
        let e = &mut extents[at];
        e.prev = NONE;
        e.next = first;
    }

    /// Inserts a range.
    pub(crate) fn insert(&mut self, at: u32, extents: &mut Slab<Extent>) {
        self.reserve(1, extents);
        let e = &mut extents[at];
        assert!(e.level == u8::MAX && e.count > 0, "range {at} is in the index already");
        let level = level_of(e.count);
        e.level = level as u8;
        self.items += 1;
        self.in_level[level] += 1;
        self.levels |= 1 << level;
        self.hang(at, extents);
    }

    /// Removes a range.
    pub(crate) fn remove(&mut self, at: u32, extents: &mut Slab<Extent>) {
        let e = &mut extents[at];
        let level = e.level as usize;
        assert!(level < LEVELS, "range {at} is not in the index");
        let (prev, next, lbn) = (e.prev, e.next, e.lbn);
        (e.level, e.prev, e.next) = (u8::MAX, NONE, NONE);
        match prev {
            NONE => {
                let chain = self.chain(level, lbn >> width(level));
                assert!(self.heads[chain] == at, "range {at} is not in its chain");
                self.heads[chain] = next;
            }
            _ => extents[prev].next = next,
        }
        if next != NONE {
            extents[next].prev = prev;
        }
        self.items -= 1;
        self.in_level[level] -= 1;
        if self.in_level[level] == 0 {
            self.levels &= !(1 << level);
        }
        if self.items == 0 {
            self.heads = vec![];
        } else if self.items * 8 < self.heads.len() && self.heads.len() > FEWEST {
            self.rebuild((self.items * 2).next_power_of_two().max(FEWEST), extents);
        }
    }

    /// Calls `f` once with each range that has a sector in `lo..hi`, in no particular order.
    #[inline]
    pub(crate) fn visit<'a>(&self, extents: &'a Slab<Extent>, lo: u64, hi: u64, mut f: impl FnMut(u32, &'a Extent)) {
        if lo >= hi || self.levels == 0 {
            return;
        }
        let cells = |level: usize| ((lo >> width(level)).saturating_sub(1), (hi - 1) >> width(level));
        let (first, last) = cells(self.levels.trailing_zeros() as usize);
        if last - first >= 4 * self.items as u64 + 16 {
            // Visiting the narrowest cells of such a long query costs more than visiting every
            // range.
            return self.all(extents, lo, hi, &mut f);
        }
        let mut levels = self.levels;
        while levels != 0 {
            let level = levels.trailing_zeros() as usize;
            levels &= levels - 1;
            let (first, last) = cells(level);
            for cell in first..=last {
                let mut at = self.heads[self.chain(level, cell)];
                while at != NONE {
                    let e = &extents[at];
                    if e.lbn < hi && lo < e.end() && e.level as usize == level && e.lbn >> width(level) == cell {
                        f(at, e);
                    }
                    at = e.next;
                }
            }
        }
    }

    /// Does the same by visiting every range.
    #[cold]
    fn all<'a>(&self, extents: &'a Slab<Extent>, lo: u64, hi: u64, f: &mut dyn FnMut(u32, &'a Extent)) {
        for (at, e) in extents.iter() {
            if e.level != u8::MAX && e.lbn < hi && lo < e.end() {
                f(at, e);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand_core::{Rng, SeedableRng};
    use rand_xoshiro::SplitMix64;

    use super::*;

    const DISK: u64 = 39_000_000_000;

    /// Inserts and removes ranges, and compares the index with a linear search.
    fn agrees(seed: u64, longest: u64, most: usize, rounds: usize) {
        let mut rng = SplitMix64::seed_from_u64(seed);
        let mut next = |n: u64| rng.next_u64() % n;
        let mut extents: Slab<Extent> = Slab::default();
        let mut index = Index::default();
        let mut here: Vec<u32> = vec![];
        for round in 0..rounds {
            let grow = round < rounds * 2 / 3;
            if here.is_empty() || (here.len() < most && (next(3) > 0) == grow) {
                // All magnitudes equally likely, and crowded occasionally.
                let top = 1 << next(64 - u64::from(longest.leading_zeros()));
                let count = (1 + next(top)).min(DISK);
                let places = DISK - count + 1;
                let places = if next(2) == 0 { places } else { places.min(100_000) };
                let lbn = next(places);
                let at = extents.insert(Extent { lbn, count, ..Extent::default() });
                index.insert(at, &mut extents);
                here.push(at);
            } else {
                let at = here.swap_remove(next(here.len() as u64) as usize);
                index.remove(at, &mut extents);
                extents.remove(at);
            }
            let places = if next(2) == 0 { DISK } else { 110_000 };
            let length = 1 << next(36);
            let lo = next(places);
            let hi = lo + 1 + next(length);
            let mut found = vec![];
            index.visit(&extents, lo, hi, |at, _| found.push(at));
            found.sort_unstable();
            let touches = |at: &&u32| extents[**at].lbn < hi && lo < extents[**at].end();
            let mut expected: Vec<u32> = here.iter().filter(touches).copied().collect();
            expected.sort_unstable();
            assert_eq!(found, expected, "{lo}..{hi}, {} ranges", here.len());
        }
        for at in here {
            index.remove(at, &mut extents);
        }
        assert_eq!((index.bytes(), index.len()), (0, 0));
    }

    #[test]
    fn what_a_stretch_touches_is_found_whatever_the_ranges_lengths() {
        for seed in 0..4 {
            agrees(seed, 1 << 36, 500, 3_000);
            agrees(seed, 1 << 12, 2_000, 6_000);
            agrees(seed, 8, 300, 2_000);
        }
    }

    #[test]
    fn a_level_holds_what_is_no_longer_than_its_cells() {
        assert_eq!([1, 512, 513, 2_048, 2_049].map(level_of), [0, 0, 1, 1, 2]);
        assert_eq!(level_of(u64::MAX), LEVELS - 1);
        for level in 0..LEVELS - 1 {
            assert_eq!(level_of(1 << width(level)), level);
        }
    }
}
