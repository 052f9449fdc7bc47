//! Sets of sectors, stored as separate ranges.

use std::collections::BTreeMap;

use headtime_sched::TaskRange;

/// A set of sectors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    /// First sector, and one past the last.
    stretches: BTreeMap<u64, u64>,
}

impl Ranges {
    /// Adds a range and merges adjacent ones.
    pub fn insert(&mut self, range: TaskRange) {
        let (mut first, mut end) = (range.lbn, range.end());
        while let Some((&f, &e)) = self.stretches.range(..=end).next_back().filter(|&(_, &e)| e >= first) {
            (first, end) = (first.min(f), end.max(e));
            self.stretches.remove(&f);
        }
        self.stretches.insert(first, end);
    }

    /// Returns the ranges in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = TaskRange> + '_ {
        self.stretches.iter().map(|(&lbn, &end)| TaskRange { lbn, count: end - lbn })
    }

    /// Returns the number of ranges.
    pub fn len(&self) -> usize {
        self.stretches.len()
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.stretches.is_empty()
    }

    /// Returns the number of sectors.
    pub fn sectors(&self) -> u64 {
        self.iter().map(|r| r.count).sum()
    }
}

impl FromIterator<TaskRange> for Ranges {
    fn from_iter<I: IntoIterator<Item = TaskRange>>(all: I) -> Ranges {
        let mut ranges = Ranges::default();
        all.into_iter().for_each(|r| ranges.insert(r));
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(all: &[(u64, u64)]) -> Ranges {
        all.iter().map(|&(lbn, count)| TaskRange { lbn, count }).collect()
    }

    #[test]
    fn stretches_that_touch_or_overlap_become_one() {
        let s = set(&[(10, 5), (30, 1), (15, 5), (12, 1)]);
        assert_eq!(s.iter().map(|r| (r.lbn, r.count)).collect::<Vec<_>>(), [(10, 10), (30, 1)]);
        let s = set(&[(10, 5), (30, 5), (50, 5), (0, 100)]);
        assert_eq!((s.len(), s.sectors()), (1, 100));
    }

    #[test]
    fn the_order_of_insertion_does_not_matter() {
        let all = [(7, 2), (1, 3), (4, 3), (20, 1), (9, 1)];
        let mut turned = all;
        for _ in 0..all.len() {
            turned.rotate_left(1);
            assert_eq!(set(&turned), set(&all));
        }
    }
}
