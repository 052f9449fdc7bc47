//! Lookup in a sorted list of numbers, in a few nanoseconds.

/// An index of a sorted list of numbers, which stays with its owner.
///
/// The number range is divided into equal buckets whose width is a power of two, a few for each
/// list entry. A bucket stores the number of entries at or below its left edge, so a lookup reads
/// two neighbouring buckets and searches the entries between them: seldom more than one, with
/// logarithmic cost where entries are dense.
#[derive(Clone, Debug, Default)]
pub(super) struct StepIndex {
    shift: u32,
    counts: Box<[u32]>,
}

impl StepIndex {
    /// Indexes `starts`, which must ascend and lie below `end`. Makes at most about four buckets
    /// per entry.
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
            // Every bucket whose left edge lies below this entry has its final count.
            while ((counts.len() as u64) << shift) < start {
                counts.push(entries);
            }
            entries += 1;
        }
        counts.resize(buckets as usize, entries);
        StepIndex { shift, counts: counts.into_boxed_slice() }
    }

    /// Returns the number of entries at or below `at`, which must be below the `end` given to
    /// `new`. `entry(i)` is the i-th entry.
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

    /// Returns the size of the buckets in bytes.
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
