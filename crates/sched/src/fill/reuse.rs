//! The foreground's reuse of the drive's cache, and the segments that background work may use.
//!
//! Any read of the media takes the least recently used segment of the drive's cache. A program that
//! traverses files of a file system returns to what the drive read ahead some requests before:
//! directory, inodes, the next file. If background reads have evicted those segments in between,
//! each of its hits becomes a read of the media: a positioning time, as long as a request.
//!
//! So FILL learns the age of each segment that a foreground read hits, or would hit without
//! background work: how many other segments the foreground has used since. (The predictor remembers
//! the segments that were evicted for background work.) Segments up to the largest age among the
//! last requests are left to the foreground, in whatever order it returns to them; background work
//! uses the others. Where none remains, a gap is filled with what the request's own command can
//! read from the arrival of the head: that takes no segment. Idle work is exempt: it reads
//! sequentially, which takes a segment for each place where it begins, and continues whatever the
//! last requests were.

/// Requests considered.
const WINDOW: usize = 256;

/// Ages of the segments to which the foreground returns.
#[derive(Clone, Debug)]
pub(crate) struct Reuse {
    /// One plus the age of the segment that each of the last requests hit; 0: a miss.
    ages: [u32; WINDOW],
    next: usize,
    /// Requests seen, up to the window.
    seen: usize,
}

/// Threshold of [`Reuse::may_return`]: this many of the last [`WINDOW`] requests hit a segment
/// other than the one used last. A front that makes the drive read further ahead brings about 2 ms
/// of free reading. It costs about 6 ms, a move and a part of a revolution, at each return to that
/// segment. With one return in three misses, that is one in four requests, they are equal.
const RETURNS: usize = WINDOW / 4;

impl Default for Reuse {
    fn default() -> Reuse {
        Reuse { ages: [0; WINDOW], next: 0, seen: 0 }
    }
}

impl Reuse {
    /// Records a foreground request being sent. `age`: how many segments the foreground has used
    /// since the one that it hits, or would hit without background work; `None` when it misses or
    /// writes.
    #[inline]
    pub(crate) fn request(&mut self, age: Option<u32>) {
        self.ages[self.next] = age.map_or(0, |age| age.saturating_add(1));
        self.next = (self.next + 1) % WINDOW;
        self.seen = (self.seen + 1).min(WINDOW);
    }

    /// Returns whether the foreground returns to segments other than the one used last, or whether
    /// that is not yet known.
    pub(crate) fn may_return(&self) -> bool {
        self.seen < WINDOW || self.ages.iter().filter(|&&age| age > 1).count() >= RETURNS
    }

    /// Returns the largest age that the last requests hit; `None` when all missed, so that nothing
    /// can be lost.
    pub(crate) fn oldest(&self) -> Option<u32> {
        self.ages.iter().max().and_then(|most| most.checked_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_age_hit_counts_until_it_is_forgotten() {
        let mut r = Reuse::default();
        assert_eq!(r.oldest(), None);
        [Some(3), None, Some(31), Some(200)].into_iter().for_each(|age| r.request(age));
        assert_eq!(r.oldest(), Some(200));
        (0..WINDOW - 1).for_each(|_| r.request(Some(7)));
        assert_eq!(r.oldest(), Some(200));
        r.request(Some(0));
        assert_eq!(r.oldest(), Some(7));
        (0..WINDOW).for_each(|_| r.request(None));
        assert_eq!(r.oldest(), None);
    }

    #[test]
    fn returns_are_expected_until_few_are_seen() {
        let mut r = Reuse::default();
        (0..WINDOW - 1).for_each(|_| r.request(Some(0)));
        assert!(r.may_return());
        r.request(None);
        assert!(!r.may_return());
        (0..RETURNS - 1).for_each(|_| r.request(Some(5)));
        assert!(!r.may_return());
        r.request(Some(1));
        assert!(r.may_return());
    }
}
