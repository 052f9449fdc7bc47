//! Finding the step of a staircase that a number lies on, in a few nanoseconds.

/// An index into a sorted list of numbers. The list itself stays with its owner.
///
/// The range of numbers is cut into equal buckets, a power of two wide, a few for each entry of the
/// list. A bucket knows how many entries lie at or below its left edge, so that a lookup reads two
/// neighbouring buckets and searches what is left between them: seldom more than one entry, a
/// logarithm where entries crowd.
#[derive(Clone, Debug, Default)]
pub(super) struct StepIndex {
    shift: u32,
    counts: Box<[u32]>,
}

impl StepIndex {
    /// Indexes `starts`, which must rise and lie below `end`. At most about four buckets are made
    /// for each entry.
    pub(super) fn new(starts: impl ExactSizeIterator<Item = u64>, end: u64) -> StepIndex {
        let wanted = (starts.len() as u64 * 4).max(64);
        let mut shift = 0;
        while end >> shift > wanted {
            shift += 1;
        }
        let buckets = (end >> shift) + 2;
        let mut counts = Vec::with_capacity(buckets as usize);
        let mut entries = 0u32;
        let mut last = None;
        for start in starts {
            assert!(start < end && last.is_none_or(|l| l < start), "steps must rise below {end}");
            last = Some(start);
            // Every bucket whose left edge lies below this entry has been counted in full.
            while ((counts.len() as u64) << shift) < start {
                counts.push(entries);
            }
            entries += 1;
        }
        counts.resize(buckets as usize, entries);
        StepIndex { shift, counts: counts.into_boxed_slice() }
    }

    /// How many entries are at or below `at`, which must be below the `end` given before.
    /// `entry(i)` is the i-th.
    #[inline]
    pub(super) fn count(&self, at: u64, entry: impl Fn(usize) -> u64) -> usize {
        let bucket = (at >> self.shift) as usize;
        let mut low = self.counts[bucket] as usize;
        let mut high = self.counts[bucket + 1] as usize;
        while low < high {
            let middle = low + (high - low) / 2;
            if entry(middle) <= at {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Bytes the buckets take.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_agree_with_a_plain_scan() {
        let lists: [&[u64]; 5] = [&[], &[0], &[5, 6, 7, 8, 900], &[0, 1, 2, 64, 128, 129, 255, 256, 999], &[999]];
        for list in lists {
            let index = StepIndex::new(list.iter().copied(), 1000);
            for at in 0..1000 {
                let plain = list.iter().filter(|s| **s <= at).count();
                assert_eq!(index.count(at, |i| list[i]), plain, "{at} in {list:?}");
            }
        }
    }

    #[test]
    fn buckets_stay_few_over_a_large_range() {
        let starts: Vec<u64> = (0..1000).map(|i| i * 60_000_000).collect();
        let index = StepIndex::new(starts.iter().copied(), 60_000_000_000);
        assert!(index.memory_bytes() <= 4 * 4100, "{} bytes", index.memory_bytes());
        assert_eq!(index.count(59_999_999_999, |i| starts[i]), 1000);
        assert_eq!(index.count(59_999_999, |i| starts[i]), 1);
    }
}
