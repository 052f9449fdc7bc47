//! When dirty blocks may be written in gaps and idle time.
//!
//! A gap in which a dirty block is written is lost for reads, so blocks are written only as far as
//! that is useful:
//!
//! * The cache fills: above [`Limits::low`] blocks are written in gaps, until it has been slightly
//!   below. Above [`Limits::high`] some are written in the foreground, in LBN order. Between the
//!   two marks there are thousands of blocks to choose from for each gap, so that one of them lies
//!   near the path of the head.
//! * A block is old: after [`OLD`] ticks it is written when there is a gap for it, so that a power
//!   failure loses little on a machine whose programs never flush.
//! * A client flushes occasionally: what is dirty at the next flush must be written then, while a
//!   program waits. So for [`FLUSHED`] ticks after a flush blocks are written as soon as there are
//!   gaps.
//!
//! Time is counted in ticks: [`super::machine::Machine::tick`] is called once per [`TICK`].

use std::collections::VecDeque;

use headtime_disk::Dur;

use super::Limits;

/// Time between two ticks.
pub const TICK: Dur = Dur::from_ms(50);
/// Ticks (30 s, the limit of Linux for dirty pages) after which a block is old.
pub(crate) const OLD: u64 = 600;
/// Ticks (60 s) for which a flush is expected to be followed by another.
pub(crate) const FLUSHED: u64 = 1_200;
/// Ticks without a client's request after which blocks are written on a disk without FILL: 0.1 s.
pub const QUIET: u32 = 2;
/// Ticks between two records of the last write.
const NOTE: u64 = 20;

/// State of the policy.
#[derive(Debug, Default)]
pub(super) struct Policy {
    /// Ticks so far.
    now: u64,
    /// Records: the last write at a tick.
    notes: VecDeque<(u64, u64)>,
    /// The last write that is old.
    old: u64,
    /// The tick of the last flush.
    flushed: Option<u64>,
    /// The cache was above its low mark, and has not been well below since.
    fills: bool,
    /// Blocks are never deferred.
    eager: bool,
}

impl Policy {
    /// From now on writes blocks as soon as possible.
    pub(super) fn set_eager(&mut self) {
        self.eager = true;
    }

    /// Handles a tick. `seq`: the last write so far.
    pub(super) fn tick(&mut self, seq: u64) {
        self.now += 1;
        if self.notes.back().is_none_or(|n| n.0 + NOTE <= self.now) {
            self.notes.push_back((self.now, seq));
        }
        while let Some(&(_, seq)) = self.notes.front().filter(|n| n.0 + OLD <= self.now) {
            self.old = seq;
            self.notes.pop_front();
        }
    }

    /// Records a client's flush.
    pub(super) fn flushed(&mut self) {
        self.flushed = Some(self.now);
    }

    /// Returns whether blocks may be written in gaps. `bytes`: memory that the cache occupies;
    /// `oldest`: its oldest write.
    pub(super) fn is_free(&mut self, limits: &Limits, bytes: u64, oldest: Option<u64>) -> bool {
        let well_below = limits.low() - limits.low() / 16;
        self.fills = bytes > if self.fills { well_below } else { limits.low() };
        let flushes = self.flushed.is_some_and(|at| self.now < at + FLUSHED);
        self.eager || self.fills || flushes || oldest.is_some_and(|o| o <= self.old)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { memory: 16 << 20 };

    #[test]
    fn a_cache_that_fills_is_emptied_until_it_is_well_below_the_mark() {
        let mut p = Policy::default();
        assert!(!p.is_free(&LIMITS, LIMITS.low(), Some(1)));
        assert!(p.is_free(&LIMITS, LIMITS.low() + 1, Some(1)));
        assert!(p.is_free(&LIMITS, LIMITS.low() - 1, Some(1)));
        assert!(!p.is_free(&LIMITS, LIMITS.low() / 16 * 15, Some(1)));
        assert!(!p.is_free(&LIMITS, LIMITS.low() - 1, Some(1)));
    }

    #[test]
    fn an_old_block_is_written_and_a_new_one_is_not() {
        let mut p = Policy::default();
        (0..100).for_each(|_| p.tick(7));
        (0..OLD - 100).for_each(|_| p.tick(9));
        assert!(!p.is_free(&LIMITS, 1, Some(7)));
        (0..NOTE).for_each(|_| p.tick(9));
        assert!(p.is_free(&LIMITS, 1, Some(7)) && !p.is_free(&LIMITS, 1, Some(8)));
        assert!(!p.is_free(&LIMITS, 0, None));
        (0..100).for_each(|_| p.tick(9));
        assert!(p.is_free(&LIMITS, 1, Some(9)));
    }

    #[test]
    fn behind_a_flush_another_one_is_expected_for_a_while() {
        let mut p = Policy::default();
        p.tick(1);
        p.flushed();
        assert!(p.is_free(&LIMITS, 1, Some(1)));
        (0..FLUSHED - 1).for_each(|_| p.tick(1_000_000));
        assert!(p.is_free(&LIMITS, 1, Some(2_000_000)));
        p.tick(1_000_000);
        assert!(!p.is_free(&LIMITS, 1, Some(2_000_000)));
    }
}
