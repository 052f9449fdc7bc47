//! Requests that wait for the rate limit of their export, above the core.
//!
//! An export above its limit delays only its own requests, which keep their order of arrival: a
//! flush stays behind the writes before it. They hold their shares of the budget of requests in
//! flight ([`crate::net::budget`]), which bounds their number. Reads that preserve old data, and
//! everything that the server does itself, have no limit.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use headtime_disk::{Kind, Time};
use headtime_sched::{RateLimit, Throttle};

use super::messages::Submission;

/// The requests of one export.
#[derive(Debug, Default)]
struct Line {
    throttle: Throttle,
    /// In order of arrival, each with that time.
    waiting: VecDeque<(Submission, Time)>,
    /// The line's entry in [`Limited::due`], while a request waits.
    due: Option<Time>,
}

/// The requests of all exports that have a limit, or had one when they arrived.
#[derive(Debug)]
pub(crate) struct Limited {
    sector_bytes: u32,
    lines: BTreeMap<u32, Line>,
    /// When the first request of each line may pass.
    due: BTreeSet<(Time, u32)>,
    waiting: usize,
}

impl Limited {
    /// Creates the lines of a disk with sectors of this size.
    pub(crate) fn new(sector_bytes: u32) -> Limited {
        Limited { sector_bytes, lines: BTreeMap::new(), due: BTreeSet::new(), waiting: 0 }
    }

    /// Sets the limits of owners, from owner 0 on. They apply to waiting requests at once.
    pub(crate) fn set(&mut self, limits: impl Iterator<Item = RateLimit>, now: Time) {
        for (owner, limit) in (0..).zip(limits) {
            if limit.is_none() && !self.lines.contains_key(&owner) {
                continue;
            }
            self.lines.entry(owner).or_default().throttle.set(limit, now);
            self.settle(owner);
        }
    }

    /// Removes all limits: the server ends.
    pub(crate) fn lift(&mut self, now: Time) {
        let owners = self.lines.last_key_value().map_or(0, |(&owner, _)| owner as usize + 1);
        self.set(std::iter::repeat_n(RateLimit::default(), owners), now);
    }

    /// Returns the request if it may pass at once; otherwise it waits.
    pub(crate) fn arrived(&mut self, submission: Submission, now: Time) -> Option<Submission> {
        let owner = submission.owner;
        let Some(line) = self.lines.get_mut(&owner) else { return Some(submission) };
        if line.waiting.is_empty() && line.throttle.pass(submission.bytes(self.sector_bytes), now).is_ok() {
            return Some(submission);
        }
        line.waiting.push_back((submission, now));
        self.waiting += 1;
        self.settle(owner);
        None
    }

    /// Returns the next request that may pass, with the time of its arrival. The one that could
    /// have passed first comes first, so that no line is delayed by another.
    pub(crate) fn next(&mut self, now: Time) -> Option<(Submission, Time)> {
        loop {
            let &(_, owner) = self.due.first().filter(|(due, _)| *due <= now)?;
            // A client may have gone since the line was settled.
            self.settle(owner);
            let Some(line) = self.lines.get_mut(&owner).filter(|line| line.due.is_some_and(|due| due <= now)) else {
                continue;
            };
            let bytes = line.waiting.front()?.0.bytes(self.sector_bytes);
            let passed = line.throttle.pass(bytes, now).ok().and_then(|()| line.waiting.pop_front());
            self.waiting -= usize::from(passed.is_some());
            self.settle(owner);
            return passed;
        }
    }

    /// Returns when the next request may pass.
    pub(crate) fn next_wakeup(&self) -> Option<Time> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Returns the number of waiting requests.
    pub(crate) fn len(&self) -> usize {
        self.waiting
    }

    /// Returns whether this owner has a limit, or requests that arrived when it had one.
    pub(crate) fn has_line(&self, owner: u32) -> bool {
        self.lines.contains_key(&owner)
    }

    /// Returns whether a request of this owner waits.
    pub(crate) fn holds_back(&self, owner: u32) -> bool {
        self.lines.get(&owner).is_some_and(|line| !line.waiting.is_empty())
    }

    /// Returns the number of waiting requests of each owner that has some.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (u32, usize)> {
        self.lines.iter().filter(|(_, line)| !line.waiting.is_empty()).map(|(&owner, line)| (owner, line.waiting.len()))
    }

    /// Updates when the first request of a line may pass, and drops a line that is not needed.
    fn settle(&mut self, owner: u32) {
        let Some(line) = self.lines.get_mut(&owner) else { return };
        // The reads of a client that has gone have no reader. Its writes are carried out.
        while line.waiting.front().is_some_and(|(first, _)| first.kind == Kind::Read && first.is_abandoned()) {
            line.waiting.pop_front();
            self.waiting -= 1;
        }
        let first = line.waiting.front().map(|(first, _)| first.bytes(self.sector_bytes));
        let due = first.map(|bytes| line.throttle.ready_at(bytes));
        if line.due != due {
            line.due.map(|before| self.due.remove(&(before, owner)));
            line.due = due;
            due.map(|due| self.due.insert((due, owner)));
        }
        if due.is_none() && line.throttle.limit().is_none() {
            self.lines.remove(&owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_sched::Rate;
    use tokio::sync::mpsc::unbounded_channel;

    const SECOND: u64 = 1_000_000_000;

    fn limits(mb_s: [Option<f64>; 2]) -> impl Iterator<Item = RateLimit> {
        mb_s.into_iter().map(|mb| RateLimit { bytes: mb.and_then(|mb| Rate::per_second(mb * 1e6)), requests: None })
    }

    fn ask(owner: u32, kind: Kind, lbn: u64) -> Submission {
        // 500,000 bytes.
        let count = if kind == Kind::Flush { 0 } else { 1_000 };
        Submission { kind, lbn, count, owner, ..Submission::flush() }
    }

    /// Returns the owners and sectors of the requests that pass at `now`.
    fn passing(all: &mut Limited, now: u64) -> Vec<(u32, u64)> {
        std::iter::from_fn(|| all.next(Time(now))).map(|(s, _)| (s.owner, s.lbn)).collect()
    }

    #[test]
    fn requests_pass_in_order_at_their_exports_rate_and_others_at_once() {
        let mut all = Limited::new(500);
        all.set(limits([Some(1.0), None]), Time::ZERO);
        for lbn in 0..4 {
            assert_eq!(all.arrived(ask(0, Kind::Write, lbn), Time::ZERO).is_some(), lbn == 0);
            assert!(all.arrived(ask(1, Kind::Write, lbn), Time::ZERO).is_some());
        }
        assert!(all.arrived(ask(0, Kind::Flush, 0), Time::ZERO).is_none(), "it stays behind the writes");
        assert!(all.arrived(ask(0, Kind::Read, 9), Time(5)).is_none());
        assert_eq!((all.len(), all.next_wakeup()), (5, Some(Time(SECOND / 2))));
        assert_eq!([0, 1].map(|owner| all.holds_back(owner)), [true, false]);
        assert_eq!(passing(&mut all, SECOND / 2 - 1), []);
        assert_eq!(passing(&mut all, SECOND / 2), [(0, 1)]);
        assert_eq!(passing(&mut all, SECOND), [(0, 2)]);
        // The flush, which has no bytes, passes with the write before it.
        assert_eq!(passing(&mut all, 3 * SECOND / 2), [(0, 3), (0, 0)]);
        let (last, arrived) = all.next(Time(2 * SECOND)).expect("it may pass");
        assert_eq!((last.lbn, arrived, all.len(), all.next_wakeup()), (9, Time(5), 0, None));
        assert!(!all.holds_back(0));
        assert!(all.arrived(ask(0, Kind::Flush, 0), Time(2 * SECOND)).is_some(), "none waits before it");
    }

    #[test]
    fn reads_of_a_client_that_has_gone_hold_up_no_other() {
        let mut all = Limited::new(500);
        all.set(limits([Some(1.0), None]), Time::ZERO);
        let (here, _answers) = unbounded_channel();
        let (gone, answers) = unbounded_channel();
        let of = |to: &_, kind, lbn| Submission { reply: Some((Clone::clone(to), lbn)), ..ask(0, kind, lbn) };
        assert!(all.arrived(of(&here, Kind::Read, 0), Time::ZERO).is_some());
        for lbn in 1..=60 {
            all.arrived(of(&gone, Kind::Read, lbn), Time::ZERO);
        }
        all.arrived(of(&gone, Kind::Write, 61), Time::ZERO);
        all.arrived(of(&here, Kind::Read, 62), Time::ZERO);
        drop(answers);
        assert_eq!(passing(&mut all, SECOND / 2), [(0, 61)]);
        assert_eq!(passing(&mut all, SECOND), [(0, 62)]);
        assert_eq!((all.len(), all.next_wakeup()), (0, None));
    }

    #[test]
    fn the_line_that_was_due_first_comes_first() {
        let mut all = Limited::new(500);
        all.set(limits([Some(1.0), Some(2.0)]), Time::ZERO);
        for lbn in 0..3 {
            (0..2).for_each(|owner| _ = all.arrived(ask(owner, Kind::Read, lbn), Time::ZERO));
        }
        // A late wake-up: what may pass within the burst, the one due first first.
        assert_eq!(passing(&mut all, SECOND), [(1, 1), (0, 1)]);
        assert_eq!(all.waiting().collect::<Vec<_>>(), [(0, 1), (1, 1)]);
    }

    #[test]
    fn a_changed_limit_counts_for_requests_that_wait_and_none_lets_them_all_pass() {
        let mut all = Limited::new(500);
        all.set(limits([Some(0.001), None]), Time::ZERO);
        for lbn in 0..5 {
            all.arrived(ask(0, Kind::Read, lbn), Time::ZERO);
        }
        assert_eq!(all.next_wakeup(), Some(Time(500 * SECOND)));
        all.set(limits([Some(10.0), Some(1.0)]), Time(SECOND));
        assert_eq!(all.next_wakeup(), Some(Time(SECOND + 49_900_000)));
        assert_eq!(passing(&mut all, 2 * SECOND), [(0, 1), (0, 2), (0, 3)]);
        all.set(limits([None, None]), Time(2 * SECOND));
        // A later request does not overtake the waiting one.
        assert!(all.arrived(ask(0, Kind::Read, 5), Time(2 * SECOND)).is_none());
        assert_eq!(passing(&mut all, 2 * SECOND), [(0, 4), (0, 5)]);
        assert!(all.lines.is_empty() && all.due.is_empty() && all.len() == 0);
        all.set(limits([None, Some(0.001)]), Time(3 * SECOND));
        (0..2).for_each(|lbn| _ = all.arrived(ask(1, Kind::Read, lbn), Time(3 * SECOND)));
        all.lift(Time(3 * SECOND));
        assert_eq!(passing(&mut all, 3 * SECOND), [(1, 1)]);
        assert!(all.lines.is_empty());
    }
}
