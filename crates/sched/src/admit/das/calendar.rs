//! Processor demand of mandatory streams in future periods, by deadline (Baruah, Rosier and Howell
//! 1990).
//!
//! All requests of a period may be submitted when it begins, and are due when it ends. So the
//! demand of streams of one period grows in steps, and at each end of a period there must be time
//! for all steps up to there. It is bounded by a line from the end of the current period that grows
//! by the same amount per period and touches the steps from above: where the line leaves time, so
//! do the steps.
//!
//! Up to [`EXACT`] steps of one stream are evaluated; beyond, its line is. Steps are whole numbers
//! of nanoseconds, and so at most the value of the line, rounded down.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use headtime_disk::{Dur, Time};

/// Number of periods of one stream that are evaluated one by one. The longest period has 10,000 of
/// the shortest, and a decision at the end of a period cannot evaluate that number of deadlines.
pub(super) const EXACT: u64 = 256;

/// Mandatory streams with one period, whose periods end together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Periodic {
    /// End of the current period and start of the next.
    pub end: Time,
    /// t.
    pub period: Dur,
    /// Worst-case demand of their requests of one period, including blocking time, in ns.
    pub work: u64,
    /// Whether their deadlines count.
    pub counts: bool,
}

impl Periodic {
    /// Returns the demand due by `d` of the periods that begin when this one ends, or later, under
    /// linear growth; in ns.
    fn evenly(&self, d: Time) -> u64 {
        let all = u128::from(self.work) * u128::from(d.saturating_since(self.end).0);
        u64::try_from(all / u128::from(self.period.0)).unwrap_or(u64::MAX)
    }
}

/// Returns the demand due by `d` of all future periods under linear growth; in ns.
pub(super) fn evenly(all: &[Periodic], d: Time) -> u64 {
    all.iter().map(|p| p.evenly(d)).fold(0, u64::saturating_add)
}

/// A deadline of future periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deadline {
    pub at: Time,
    /// Demand of all future periods due by then, in ns.
    pub due: u64,
    /// Whether it counts.
    pub counts: bool,
}

/// Iterator over the deadlines of future periods, in order. Once all streams are beyond [`EXACT`]
/// it ends: slack only grows.
pub(super) struct Deadlines<'a> {
    all: &'a [Periodic],
    next: BinaryHeap<Reverse<(Time, usize)>>,
    /// Demand of streams still in steps, and of the others up to their last step.
    due: u64,
    /// Streams beyond their last step.
    behind: Vec<usize>,
}

impl<'a> Deadlines<'a> {
    pub(super) fn of(all: &'a [Periodic]) -> Deadlines<'a> {
        let next = all.iter().enumerate().filter(|(_, p)| p.work > 0);
        let next = next.map(|(i, p)| Reverse((p.end + p.period, i))).collect();
        Deadlines { all, next, due: 0, behind: Vec::new() }
    }

    /// Returns the next deadline if it is before `until`.
    pub(super) fn next_before(&mut self, until: Time) -> Option<Deadline> {
        let at = self.next.peek().map(|first| first.0.0).filter(|at| *at < until)?;
        let mut counts = false;
        while let Some(mut first) = self.next.peek_mut().filter(|first| first.0.0 == at) {
            let Reverse((_, i)) = *first;
            let periodic = &self.all[i];
            self.due = self.due.saturating_add(periodic.work);
            counts |= periodic.counts;
            if at.since(periodic.end).0 / periodic.period.0 < EXACT {
                *first = Reverse((at + periodic.period, i));
            } else {
                PeekMut::pop(first);
                self.behind.push(i);
            }
        }
        Some(Deadline { at, due: self.due_by(at), counts })
    }

    /// Returns the demand due by `d`, which must lie between the last returned deadline and the
    /// next.
    pub(super) fn due_by(&self, d: Time) -> u64 {
        let more = |&i: &usize| self.all[i].evenly(d).saturating_sub(self.all[i].work * EXACT);
        self.behind.iter().map(more).fold(self.due, u64::saturating_add)
    }
}
