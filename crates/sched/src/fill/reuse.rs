//! What the foreground has of the drive's cache, and how many background commands it can spare therefore.
//!
//! A read of the media takes a segment of the drive's cache, the one that was used longest ago, for any reader. A
//! program that goes through files of a file system comes back to what the drive read ahead some requests before:
//! directory, inodes, the next file. If background reads have taken those segments meanwhile, each of its hits becomes
//! a read of the media: a positioning time, as long as a request.
//!
//! So it is learned how old the segments are that foreground reads hit, or would hit without background work: how many others the foreground used since
//! (the predictor keeps in mind what the drive gave up for background reads). Of `n` segments the oldest `m` can be
//! spared that none of the last reads came back to. If FILL's own commands take `m` segments for each `n - m` that the
//! foreground takes, what the foreground reads stays as long as in a cache of `n - m` segments. Without a command to
//! spare a gap is filled with what can be read with the request's own command, from the arrival of the head on: that
//! takes no segment.

/// Reads that are looked at.
const WINDOW: usize = 256;
/// Segments that are told apart; of a cache with more the oldest count as one.
const SEGMENTS: usize = 64;
/// A command, in parts.
const ONE: u64 = 1 << 16;

/// How many commands of its own FILL may put into gaps.
#[derive(Clone, Debug)]
pub struct Reuse {
    /// For each of the last reads how many segments were newer than the one it hit; [`SEGMENTS`]: it hit none.
    ages: [u8; WINDOW],
    next: usize,
    /// How many of them have each age.
    counts: [u32; SEGMENTS + 1],
    segments: usize,
    /// Commands that may be sent, in parts of [`ONE`].
    spare: u64,
}

impl Reuse {
    /// Nothing was read yet, of a drive with this number of segments (0: without a cache).
    pub fn new(segments: u32) -> Reuse {
        let mut counts = [0; SEGMENTS + 1];
        counts[SEGMENTS] = WINDOW as u32;
        Reuse { ages: [SEGMENTS as u8; WINDOW], next: 0, counts, segments: (segments as usize).min(SEGMENTS), spare: 0 }
    }

    /// A foreground read was sent: how many segments the foreground had used since the one that it hits, or would hit without
    /// background work; `None` when it hits none and takes one.
    #[inline]
    pub fn read(&mut self, newer: Option<u32>) {
        let age = newer.map_or(SEGMENTS, |n| (n as usize).min(SEGMENTS - 1));
        let before = std::mem::replace(&mut self.ages[self.next], age as u8);
        self.counts[before as usize] -= 1;
        self.counts[age] += 1;
        self.next = (self.next + 1) % WINDOW;
        if newer.is_none() && self.segments > 0 {
            let m = self.spared();
            let kept = (self.segments - m).max(1) as u64;
            self.spare = (self.spare + m as u64 * ONE / kept).min(m as u64 * ONE);
        }
    }

    /// How many of the oldest segments the foreground has not come back to.
    fn spared(&self) -> usize {
        let oldest_first = (0..self.segments).rev();
        oldest_first.take_while(|&age| self.counts[age] == 0).count()
    }

    /// Whether FILL may send a command of its own.
    #[inline]
    pub fn has_room(&self) -> bool {
        // Where nothing is hit, nothing is lost.
        self.segments == 0 || self.spare >= ONE || self.spared() == self.segments
    }

    /// FILL sends a command of its own.
    #[inline]
    pub fn takes(&mut self) {
        self.spare = self.spare.saturating_sub(ONE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Commands in `misses` reads that hit nothing, between reads that hit.
    fn sent(r: &mut Reuse, misses: u32, hit: impl Fn(u32) -> Option<u32>) -> u32 {
        let mut sent = 0;
        for i in 0..misses {
            r.read(None);
            if let Some(age) = hit(i) {
                r.read(Some(age));
            }
            while r.has_room() && sent < 4 * misses {
                r.takes();
                sent += 1;
            }
        }
        sent
    }

    #[test]
    fn without_hits_every_gap_may_be_filled() {
        let mut r = Reuse::new(32);
        assert_eq!(sent(&mut r, 1_000, |_| None), 4_000);
        assert_eq!(sent(&mut Reuse::new(0), 1_000, |i| Some(i % 32)), 4_000, "a drive without a cache");
    }

    #[test]
    fn the_more_segments_are_spared_the_more_commands_there_are() {
        let share = |oldest: u32| {
            let mut r = Reuse::new(32);
            sent(&mut r, 1_000, |i| Some(i % (oldest + 1)));
            f64::from(sent(&mut r, 1_000, |i| Some(i % (oldest + 1)))) / 1e3
        };
        // m / (n - m), where the ages from 0 to `oldest` are all hit alike.
        assert!((share(15) - 1.0).abs() < 0.02, "{}", share(15));
        assert!((share(23) - 8.0 / 24.0).abs() < 0.02, "{}", share(23));
        assert_eq!(share(31), 0.0);
    }

    #[test]
    fn a_segment_that_was_hit_is_kept_until_the_hit_is_forgotten() {
        let mut r = Reuse::new(32);
        assert!(sent(&mut r, 1_000, |_| None) == 4_000);
        r.read(Some(31));
        assert_eq!(sent(&mut r, 250, |_| None), 0);
        sent(&mut r, 10, |_| None);
        assert!(r.has_room());
    }
}
