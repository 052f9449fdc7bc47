//! What mandatory streams can ask for in the periods to come, and when it is due: their processor
//! demand (Baruah, Rosier and Howell 1990).
//!
//! All requests of a period may be asked for when it begins, and are due when it ends. So what
//! streams of one period ask for is due in steps, and at each end of a period there must be time
//! for all steps up to there. It is no more than a line from the end of the period under way that
//! grows evenly by as much in each period, and touches the steps from above: where that leaves
//! time, so do they.
//!
//! Each step is looked at, up to [`EXACT`] of one stream's; behind them its line is. Steps are
//! whole numbers of nanoseconds, and so no more than what the line comes to, rounded down.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use headtime_disk::time::{Dur, Time};

/// Periods of one stream that are looked at one by one. The shortest period there is goes into the
/// longest 10,000 times, and a decision at the end of a period cannot look at as many deadlines.
pub(super) const EXACT: u64 = 256;

/// Mandatory streams with one period, whose periods end together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Periodic {
    /// When the period under way ends and the next begins.
    pub end: Time,
    /// t.
    pub period: Dur,
    /// What their requests of one period take at their worst, with what these may have to wait for,
    /// in ns.
    pub work: u64,
    /// Whether it matters that they are in time.
    pub counts: bool,
}

impl Periodic {
    /// What is due by `d` of the periods that begin when this one ends, or later, as if it grew
    /// evenly; in ns.
    fn evenly(&self, d: Time) -> u64 {
        let all = u128::from(self.work) * u128::from(d.saturating_since(self.end).0);
        u64::try_from(all / u128::from(self.period.0)).unwrap_or(u64::MAX)
    }
}

/// What is due by `d` of all periods to come, as if it grew evenly; in ns.
pub(super) fn evenly(all: &[Periodic], d: Time) -> u64 {
    all.iter().map(|p| p.evenly(d)).fold(0, u64::saturating_add)
}

/// A deadline of periods to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deadline {
    pub at: Time,
    /// What is due by then of all periods to come, in ns.
    pub due: u64,
    /// Whether it matters that it is kept.
    pub counts: bool,
}

/// All deadlines of periods to come, in order. Where all streams are beyond [`EXACT`], there are no
/// more: what is left only grows.
pub(super) struct Deadlines<'a> {
    all: &'a [Periodic],
    next: BinaryHeap<Reverse<(Time, usize)>>,
    /// What is due of those in steps, and of the others up to their last step.
    due: u64,
    /// Those beyond their last step.
    behind: Vec<usize>,
}

impl<'a> Deadlines<'a> {
    pub fn of(all: &'a [Periodic]) -> Deadlines<'a> {
        let next = all.iter().enumerate().filter(|(_, p)| p.work > 0);
        let next = next.map(|(i, p)| Reverse((p.end + p.period, i))).collect();
        Deadlines { all, next, due: 0, behind: Vec::new() }
    }

    /// The next one, if it is before `until`.
    pub fn next_before(&mut self, until: Time) -> Option<Deadline> {
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

    /// What is due by `d`, which is not before the last deadline that was told, nor behind the
    /// next.
    pub fn due_by(&self, d: Time) -> u64 {
        let more = |&i: &usize| self.all[i].evenly(d).saturating_sub(self.all[i].work * EXACT);
        self.behind.iter().map(more).fold(self.due, u64::saturating_add)
    }
}
