//! What the foreground has of the drive's cache, and what background work may take of it.
//!
//! A read of the media takes a segment of the drive's cache, the one that was used longest ago, for any reader. A
//! program that goes through files of a file system comes back to what the drive read ahead some requests before:
//! directory, inodes, the next file. If background reads have taken those segments meanwhile, each of its hits becomes
//! a read of the media: a positioning time, as long as a request.
//!
//! So it is learned how old the segments are that foreground reads hit, or would hit without background work: how many
//! others the foreground has used since (the predictor keeps in mind what the drive gave up for background work). Those up
//! to the oldest age of the last reads are left to it, in whatever order it comes back to them; background work has the
//! others. Without one a gap is filled with what can be read with the request's own command, from the arrival of
//! the head on: that takes no segment.

/// Reads that are looked at.
const WINDOW: usize = 256;
/// Ages that are told apart; of a cache with more segments the oldest count as one.
const AGES: usize = 64;

/// How old the segments are that the foreground comes back to.
#[derive(Clone, Debug)]
pub struct Reuse {
    /// The age that each of the last reads hit; [`AGES`]: it hit none.
    ages: [u8; WINDOW],
    next: usize,
    /// How many of them have each age.
    counts: [u32; AGES + 1],
}

impl Default for Reuse {
    fn default() -> Reuse {
        let mut counts = [0; AGES + 1];
        counts[AGES] = WINDOW as u32;
        Reuse { ages: [AGES as u8; WINDOW], next: 0, counts }
    }
}

impl Reuse {
    /// A foreground read is sent: how many segments the foreground has used since the one that it hits, or would hit without
    /// background work; `None` when it hits none.
    #[inline]
    pub fn read(&mut self, newer: Option<u32>) {
        let age = newer.map_or(AGES, |n| (n as usize).min(AGES - 1));
        let before = std::mem::replace(&mut self.ages[self.next], age as u8);
        self.counts[before as usize] -= 1;
        self.counts[age] += 1;
        self.next = (self.next + 1) % WINDOW;
    }

    /// The oldest age that the last reads hit; `None` when they hit nothing, and nothing is lost.
    pub fn oldest(&self) -> Option<u32> {
        (0..AGES).rev().find(|&age| self.counts[age] > 0).map(|age| age as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_age_hit_counts_until_it_is_forgotten() {
        let mut r = Reuse::default();
        assert_eq!(r.oldest(), None);
        for age in [Some(3), None, Some(31), Some(200)] {
            r.read(age);
        }
        assert_eq!(r.oldest(), Some(AGES as u32 - 1));
        for _ in 0..WINDOW - 1 {
            r.read(Some(7));
        }
        assert_eq!(r.oldest(), Some(AGES as u32 - 1));
        r.read(Some(7));
        assert_eq!(r.oldest(), Some(7));
        (0..WINDOW).for_each(|_| r.read(None));
        assert_eq!(r.oldest(), None);
    }
}
