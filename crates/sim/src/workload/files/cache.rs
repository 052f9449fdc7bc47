//! The host's cache of disk blocks, with LRU eviction.

use std::collections::BTreeMap;

/// Cached blocks, by their first LBN. Each takes a whole block, like its pages.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    most: usize,
    /// Last use of each block.
    used: BTreeMap<u64, u64>,
    /// The reverse index, by last use.
    oldest: BTreeMap<u64, u64>,
    clock: u64,
}

impl Cache {
    /// Creates a cache of `most` blocks, which may be zero.
    pub(super) fn new(most: usize) -> Cache {
        Cache { most, used: BTreeMap::new(), oldest: BTreeMap::new(), clock: 0 }
    }

    /// Whether the block is cached. If not, it is added, because the caller reads it before the
    /// next access.
    pub(super) fn holds(&mut self, lbn: u64) -> bool {
        self.clock += 1;
        let before = self.used.insert(lbn, self.clock);
        if let Some(at) = before {
            self.oldest.remove(&at);
        }
        self.oldest.insert(self.clock, lbn);
        if self.used.len() > self.most
            && let Some((_, gone)) = self.oldest.pop_first()
        {
            self.used.remove(&gone);
        }
        before.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_used_longest_ago_gives_way() {
        let mut c = Cache::new(3);
        assert_eq!([1, 2, 3].map(|lbn| c.holds(lbn)), [false; 3]);
        assert!(c.holds(1));
        assert!(!c.holds(4));
        assert_eq!([1, 3, 4].map(|lbn| c.holds(lbn)), [true; 3]);
        assert!(!c.holds(2));
        assert!(!c.holds(1));
        assert_eq!((c.used.len(), c.oldest.len()), (3, 3));
    }

    #[test]
    fn without_room_nothing_is_ever_there() {
        let mut c = Cache::new(0);
        assert!((0..10).all(|_| !c.holds(7)));
        assert!(c.used.is_empty() && c.oldest.is_empty());
    }
}
