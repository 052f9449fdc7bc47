//! The outcomes of the last 256 events, one bit each.

const WORDS: usize = 4;

/// The last 256 outcomes, the latest in the lowest bit of the first word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct History([u64; WORDS]);

impl History {
    /// Adds an outcome; drops the oldest.
    #[inline]
    pub(super) fn push(&mut self, outcome: bool) {
        let mut carry = u64::from(outcome);
        for word in &mut self.0 {
            (*word, carry) = (*word << 1 | carry, *word >> 63);
        }
    }

    /// Returns how many of the last 64 were true.
    #[inline]
    pub(super) fn of_last_64(&self) -> u32 {
        self.0[0].count_ones()
    }

    /// Returns how many of the last 256 were true.
    pub(super) fn of_last_256(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_64_and_256_are_counted_and_older_ones_forgotten() {
        let mut h = History::default();
        (0..100).for_each(|_| h.push(true));
        assert_eq!((h.of_last_64(), h.of_last_256()), (64, 100));
        (0..200).for_each(|i| h.push(i % 2 == 0));
        // 56 of the first hundred are left.
        assert_eq!((h.of_last_64(), h.of_last_256()), (32, 156));
    }
}
