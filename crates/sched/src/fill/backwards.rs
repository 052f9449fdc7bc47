//! Detection of foreground reads of what passed under the head before its last reads.
//!
//! Some drives keep the sectors that pass between the head's arrival on a track and the first one
//! requested. A program that reads a file from its end to its beginning finds its next request
//! among them. A background command in that gap lets the head arrive just in time: then nothing
//! passes, and each of those hits becomes a read of the media. Sectors that are read with the
//! request's own command, from the arrival on, pass either way and cost nothing.

use headtime_disk::Geometry;

use super::history::History;

/// Reads remembered: programs that read backwards at the same time.
const READS: usize = 16;
/// Threshold: this number of the last 256 reads lay before a remembered one on its track, one in
/// eight. The head arrives anywhere on the track, so half of them would hit, and each that does not
/// costs a positioning time.
const HABIT: u32 = 32;

/// The last foreground reads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backwards {
    /// First LBNs, in a ring.
    reads: [u64; READS],
    next: usize,
    /// Whether each of the last reads lay before another on its track.
    history: History,
}

impl Backwards {
    /// Records a foreground read from `lbn`.
    pub(crate) fn read(&mut self, geometry: &Geometry, lbn: u64) {
        let mut behind = self.reads.iter().copied().filter(|&read| lbn < read).min();
        let before = behind.take_if(|read| geometry.track_of(*read).is_some_and(|t| t.first_lbn <= lbn)).is_some();
        self.history.push(before);
        self.reads[self.next] = lbn;
        self.next = (self.next + 1) % READS;
    }

    /// Returns whether the last reads indicate that the foreground will read backwards again.
    pub(crate) fn is_habit(&self) -> bool {
        self.history.of_last_256() >= HABIT
    }
}

#[cfg(test)]
mod tests {
    use headtime_disk::profile::{HeadOrder, Layout};
    use headtime_testkit::profiles::{rng, small_geometry};

    use super::*;

    fn geometry() -> Geometry {
        let spec = small_geometry(Layout::HeadFirst(HeadOrder::Forward), 2, &mut rng(1));
        Geometry::new(&spec).expect("it works")
    }

    #[test]
    fn reading_backwards_is_a_habit_after_a_few_reads_and_until_as_many_forwards() {
        let (g, mut b) = (geometry(), Backwards::default());
        let (mut lbn, mut reads) = (g.capacity() - 8, 0);
        while !b.is_habit() {
            b.read(&g, lbn);
            (lbn, reads) = (lbn - 4, reads + 1);
        }
        assert!((HABIT..2 * HABIT).contains(&reads), "{reads}");
        (0..256).for_each(|n| b.read(&g, n));
        assert!(!b.is_habit());
    }

    #[test]
    fn a_read_on_another_track_is_not_among_what_passed() {
        let (g, mut b) = (geometry(), Backwards::default());
        let mut first = g.capacity() - 1;
        for _ in 0..256 {
            b.read(&g, first);
            first = g.track_of(first).expect("it is on the disk").first_lbn;
            first = first.checked_sub(1).unwrap_or(g.capacity() - 1);
        }
        assert!(!b.is_habit());
    }
}
