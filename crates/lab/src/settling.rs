//! How many turns the head waits at most for a sector: parameter n of equation 5 (Reuther and Pohlack 2003).
//!
//! Now and then the head does not settle and comes round again. To meet that, the arm is sent from one edge of the disk to the other and back,
//! 100,000 times or more (section 4.1), each time for a request that is known to take no longer, but for its rotational delay,
//! than the terms of equation 5 say. What it takes beyond them is turns.
//!
//! Requests are single sectors, which end on the track on which they begin: what is lost at the ends of tracks is another matter. And a
//! drive that reads ahead must not come to it, for it may be on its way to another track when the next request turns up, and
//! finishes that first. So two requests are at the drive, of which one waits, and they keep away from what it may have in
//! its cache: behind a hit some drives set out to read ahead although another request waits.

use headtime_disk::time::Dur;
use headtime_sched::admit::das::worst::WorstCase;

/// Says what to read, and collects what that took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settling {
    /// All terms but the turns.
    rest: Dur,
    turn: Dur,
    capacity: u64,
    asked: u64,
    counts: Vec<u64>,
}

/// A region is this part of the disk: wide enough that what a drive keeps is little of it, narrow enough that nearly the whole stroke
/// lies between the two.
const REGIONS: u64 = 200;

/// Requests that took more turns than this are counted as having taken this many: a drive that hangs is no matter of settling.
const MOST: u64 = 64;

impl Settling {
    /// For a drive of `capacity` sectors, with the terms of equation 5 for requests of one sector, each at least what it may come to; its
    /// `turns` are what is looked for and are not used. Terms that are too long by some part of a turn hide that part of the requests,
    /// no more: their delays lie anywhere in a turn, and n is that of the longest.
    pub fn new(terms: &WorstCase, capacity: u64) -> Settling {
        // No read-ahead is met.
        let rest = WorstCase { turns: 0, stop: Dur::ZERO, ..*terms }.total();
        Settling { rest, turn: Dur(terms.turn.0.max(1)), capacity, asked: 0, counts: Vec::new() }
    }

    /// The sector to ask for next, in the first region and in the last in turn.
    ///
    /// Within a region they go on by the golden section, which comes back near to where it was as late as any sequence can: by then
    /// the drive has used its cache for others.
    pub fn ask(&mut self) -> u64 {
        let region = (self.capacity / REGIONS).max(1);
        let step = (self.asked / 2).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let within = ((u128::from(step) * u128::from(region)) >> 64) as u64;
        let innermost = self.asked % 2 == 1;
        self.asked += 1;
        if innermost { self.capacity.saturating_sub(region) + within } else { within }
    }

    /// A request took so long, from when the host heard of the end of the one before until it heard of its own.
    pub fn took(&mut self, time: Dur) {
        let turns = time.saturating_sub(self.rest).0.div_ceil(self.turn.0).min(MOST) as usize;
        if self.counts.len() <= turns {
            self.counts.resize(turns + 1, 0);
        }
        self.counts[turns] += 1;
    }

    /// n: the most turns that a request waited; 0 before the first.
    pub fn turns(&self) -> u32 {
        self.counts.len().saturating_sub(1) as u32
    }

    /// How many requests there were.
    pub fn requests(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How many of them waited for so many turns, rounded up, from 0 on.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 1 of the paper, Ultrastar 36Z15, with requests of 8 sectors.
    fn terms() -> WorstCase {
        let us = Dur::from_us;
        WorstCase {
            seek: us(7_180),
            turns: 5,
            turn: us(4_020),
            sectors: 8,
            sector: us(10),
            overhead: us(70),
            skews: 1,
            skew: us(1_060),
            stop: Dur::ZERO,
            detours: Dur::ZERO,
            away: Dur::ZERO,
        }
    }

    #[test]
    fn what_the_other_terms_do_not_explain_is_turns() {
        let mut s = Settling::new(&terms(), 1_000_000);
        assert_eq!((s.turns(), s.requests()), (0, 0));
        // 7.18 + 0.08 + 0.07 + 1.06 ms without a turn.
        let rest = Dur::from_us(8_390);
        for (more, n) in [(0, 0), (1, 1), (4_020, 1), (4_021, 2), (3 * 4_020, 3), (4 * 4_020 + 1, 5)] {
            s.took(rest + Dur::from_us(more));
            assert_eq!(s.turns(), n, "{more}");
        }
        assert_eq!(s.counts(), [1, 2, 1, 1, 0, 1]);
        assert_eq!(s.requests(), 6);
        // The whole of equation 5 is five turns and not six.
        let mut s = Settling::new(&terms(), 1_000_000);
        s.took(terms().total());
        assert_eq!(s.turns(), 5);
    }

    #[test]
    fn a_request_that_is_quicker_than_thought_or_hangs_breaks_nothing() {
        let mut s = Settling::new(&WorstCase { turn: Dur::ZERO, ..terms() }, 0);
        assert_eq!([s.ask(), s.ask()], [0, 0]);
        s.took(Dur::ZERO);
        s.took(Dur(u64::MAX));
        assert_eq!((s.turns(), s.requests()), (64, 2));
    }

    #[test]
    fn requests_go_to_both_edges_in_turn_and_keep_away_from_those_before_them() {
        let mut s = Settling::new(&terms(), 36_000_000);
        let all: Vec<u64> = (0..2_000).map(|_| s.ask()).collect();
        assert!(all.iter().step_by(2).all(|lbn| *lbn < 180_000));
        assert!(all.iter().skip(1).step_by(2).all(|lbn| (35_820_000..36_000_000).contains(lbn)));
        // Of the sixty before it in the same region none is within a track of the widest zone.
        let outer: Vec<u64> = all.iter().copied().step_by(2).collect();
        for (i, lbn) in outer.iter().enumerate() {
            let before = &outer[i.saturating_sub(60)..i];
            assert!(before.iter().all(|b| b.abs_diff(*lbn) > 1_100), "{i}");
        }
    }
}
