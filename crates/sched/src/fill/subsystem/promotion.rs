//! Background work in the foreground: promoted tasks, and stragglers.
//!
//! The remainder of a promoted task no longer waits for gaps; it joins the foreground a few pieces
//! at a time (Thereska 2003 section 2.1, `fb_promote`). A *straggler* is a unit that would
//! otherwise never be brought: it lies on two tracks of which one passes just before the other, so
//! that no gap is long enough, or it holds a sector known to be bad, which gaps and idle time skip.
//! One is fetched when nothing at all has been brought for [`PATIENCE`] (or [`PATIENCE_QUEUED`]),
//! or nothing for one of the sessions for [`STARVED`], regardless of other sessions. If the head
//! has to return to the foreground, or predictions fail, one is fetched for all sessions in each
//! [`STARVED`]. All of them together take at most one part in [`SHARE`] of the disk's time: where
//! units are so large that no gap holds one, all are stragglers.

use headtime_disk::{Dur, Kind, Model, Time};

use super::super::idling::Turn;
use super::Freeblock;
use crate::tasks::wanted::Wanted;
use crate::tasks::{SessionId, TaskRange, Wants, Who};

/// Maximum number of pieces of promoted tasks in the foreground: two at the drive, and the next two
/// to choose from.
pub(crate) const MAX_PROMOTED: usize = 4;
/// Maximum sectors of one piece, unless one unit is more: 128 KiB of 512-byte sectors, what block
/// layers send at once.
const PROMOTED_SECTORS: u64 = 256;

/// A straggler is fetched when nothing has been brought for this time. With a foreground that moves
/// the head anyway it costs a revolution each time: 0.3% of the time at 10,000 rpm. It delays the
/// requests of that time, fewer than those that determine the p99.
pub const PATIENCE: Dur = Dur::from_secs(2);
/// The same while `QUEUED` requests are in the queue or at the drive: a request then waits for
/// others anyway, for longer than a straggler takes. Of a whole scan that costs less than 0.1% of
/// the foreground's rate, and with 2 s the scan takes 1 to 4% longer. With 0.1 s it takes another 1
/// to 3% less, but the foreground loses up to 0.5% under SPTF (docs/freeblock.md).
pub(crate) const PATIENCE_QUEUED: Dur = Dur::from_ms(500);
/// Requests for which a straggler is only one more.
pub(crate) const QUEUED: usize = 4;
/// A straggler is fetched for a session that has received nothing for this time while others have:
/// 0.01% of the time. If the head has to return to the foreground, because that reads or writes
/// sequentially or the drive's cache holds its writes, one costs two moves and two revolutions, 30
/// to 45 ms on the built-in drives of 7,200 rpm, and delays all requests that arrive in that time.
/// One in a minute is 0.07% of the time. With one in 10 s, 48 of 60,000 sequential writes (20 TB,
/// 16 outstanding, 46 s) were delayed: a twelfth of those that determine the p99, which increased
/// by 33%.
pub(crate) const STARVED: Dur = Dur::from_secs(60);
/// A session that has received nothing for this time has precedence in idle time. With a low
/// priority it may receive nothing in gaps for as long. Not tuned: a session of any priority is to
/// receive something every few seconds.
const OVERDUE: Dur = Dur::from_secs(5);
/// Interval between checks for a session that has received nothing for [`STARVED`]. Not tuned: a
/// sixtieth of that time.
const LOOK_AGAIN: Dur = Dur::from_secs(1);
/// Stragglers take one part in this many of the disk's time, beyond what was [`SAVED`]: they delay
/// as many of the requests, fewer than those that determine the p99.
const SHARE: u64 = 500;
/// The share that is kept while no straggler is fetched: some 100 units on two tracks, more than
/// are left at the end of a scan (docs/freeblock.md).
const SAVED: Dur = Dur::from_secs(1);
/// What there is of it at the beginning, for scans that are short.
const SAVED_FIRST: Dur = Dur::from_ms(100);
/// Cells examined for one straggler.
const TRIES: usize = 16;

/// The foreground is assumed to be sequential for this time after a request that continues the one
/// before. Not tuned: shorter than [`PATIENCE`], so that one such request does not prolong it much.
const IN_ORDER: Dur = Dur::from_secs(1);

/// The time that stragglers may take.
#[derive(Clone, Copy, Debug)]
struct Allowance {
    /// What there was, in ns, at a time; negative after a straggler that took more.
    saved_ns: i64,
    at: Time,
}

impl Default for Allowance {
    fn default() -> Allowance {
        Allowance { saved_ns: SAVED_FIRST.0 as i64, at: Time::ZERO }
    }
}

impl Allowance {
    /// Returns what there is at `now`, ns.
    fn now_ns(&self, now: Time) -> i64 {
        let earned = now.saturating_since(self.at).0 / SHARE;
        self.saved_ns.saturating_add(earned.min(i64::MAX as u64) as i64).min(SAVED.0 as i64)
    }

    fn take(&mut self, cost: Dur, now: Time) {
        *self = Allowance { saved_ns: self.now_ns(now) - cost.0 as i64, at: now };
    }

    /// Returns when the next straggler can be paid, however much it takes.
    fn due(&self) -> Time {
        self.at + Dur(self.saved_ns.min(0).unsigned_abs().saturating_mul(SHARE))
    }
}

/// State of the search for stragglers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stragglers {
    allowance: Allowance,
    /// When the last straggler was sent.
    last: Option<Time>,
    /// No search before this time: nothing was found lately.
    not_before: Time,
    /// When the sessions are checked next.
    look_at: Time,
    /// The cell at which the next search resumes: one that has nothing to offer now does not hide
    /// others.
    from: u32,
    /// One past the last LBN of the foreground request that arrived last.
    arrived_to: u64,
    /// Until when the foreground is assumed to be sequential.
    in_order_until: Time,
}

impl Stragglers {
    /// Notes the arrival of a foreground request.
    pub(in crate::fill) fn arrived(&mut self, lbn: u64, count: u32, now: Time) {
        self.in_order_until = if lbn == self.arrived_to { now + IN_ORDER } else { Time::ZERO };
        self.arrived_to = lbn + u64::from(count);
    }

    /// Returns the time without progress after which a straggler is due.
    fn patience(&self, load: Load, now: Time) -> Dur {
        if load.cached || now < self.in_order_until {
            STARVED
        } else if load.requests >= QUEUED {
            PATIENCE_QUEUED
        } else {
            PATIENCE
        }
    }

    /// Returns when a straggler is due, at the earliest, if nothing has been brought since
    /// `brought`.
    pub(in crate::fill) fn due(&self, brought: Time, now: Time) -> Time {
        let since = self.last.map_or(brought, |last| last.max(brought));
        let due = match now < self.in_order_until {
            // The foreground may be sequential until then, or longer.
            true => (since + STARVED).min(self.in_order_until.max(since + PATIENCE_QUEUED)),
            false => since + PATIENCE_QUEUED,
        };
        self.not_before.max(due).max(self.allowance.due())
    }
}

/// Returns what fetching a straggler takes from the foreground: a revolution, and its transfer.
fn cost(model: &Model, kind: Kind, range: TaskRange) -> Dur {
    let place = model.place(range.lbn, range.count as u32, kind);
    model.mechanics.rotation.period() + place.map_or(Dur::ZERO, |place| place.transfer)
}

/// The foreground, as stragglers have to regard it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Requests pending or at the drive.
    pub requests: usize,
    /// The drive's cache holds writes, or all its segments are in use.
    pub cached: bool,
}

impl Freeblock {
    /// Returns the next piece that is ready to be sent.
    pub(crate) fn next_promoted(&mut self, model: &Model, load: Load, now: Time) -> Option<(Kind, TaskRange)> {
        if let Some(range) = self.promoted_pending.take() {
            if self.tasks.granted(range) {
                self.tasks.picked(range);
                return Some((Kind::Write, range));
            }
            self.tasks.release(Kind::Write, range, now);
            return None;
        }
        if self.promoted.len() >= MAX_PROMOTED || self.dead {
            return None;
        }
        let promoted = self.tasks.next_promoted(PROMOTED_SECTORS).map(|(_, kind, range)| (kind, range));
        let (kind, range) = promoted.or_else(|| self.straggler(model, load, now))?;
        if kind == Kind::Read {
            return Some((kind, range));
        }
        match self.tasks.ask(range) {
            true => self.promoted_pending = Some(range),
            false => self.tasks.release(kind, range, now),
        }
        None
    }

    /// Records that the piece just returned is the request in this slot.
    pub(crate) fn piece_is(&mut self, slot: u32, kind: Kind, range: TaskRange) {
        self.promoted.push((slot, kind, range));
        if let Some(idling) = &mut self.idling {
            idling.detector().promoted();
        }
    }

    /// Returns whether the request in this slot, which has finished, was such a piece, and forgets
    /// it.
    pub(crate) fn take_piece(&mut self, slot: u32) -> bool {
        let at = self.promoted.iter().position(|p| p.0 == slot);
        at.map(|i| self.promoted.swap_remove(i)).is_some()
    }

    /// Returns whether some of these sectors are in a piece that has not completed.
    pub(crate) fn awaits_turn(&self, range: &TaskRange) -> bool {
        let picked = self.promoted.iter().map(|p| &p.2);
        picked.chain(&self.promoted_pending).any(|piece| piece.overlaps(range))
    }

    /// Returns the number of such pieces that are foreground requests now.
    pub(crate) fn pieces(&self) -> usize {
        self.promoted.len()
    }

    /// Returns whether the request in this slot is such a piece.
    pub(crate) fn is_piece(&self, slot: u32) -> bool {
        self.promoted.iter().any(|p| p.0 == slot)
    }

    /// Called when such a piece is to be sent next. If it is no longer needed, because its task was
    /// aborted or already has it, withdraws it instead; it is then no longer a request.
    pub(crate) fn withdraw_if_unneeded(&mut self, slot: u32, now: Time) -> bool {
        let Some(&(_, kind, range)) = self.promoted.iter().find(|p| p.0 == slot) else {
            return false;
        };
        if self.tasks.is_needed(kind, range) {
            return false;
        }
        self.tasks.release(kind, range, now);
        self.withdraw_piece(slot, now)
    }

    /// Withdraws a piece that has not been tried: it is then no longer a request. Returns whether
    /// the request in this slot is such a piece.
    pub(crate) fn withdraw_piece(&mut self, slot: u32, now: Time) -> bool {
        let promoted = self.take_piece(slot);
        if promoted {
            self.finished(now);
        }
        promoted
    }

    /// Returns a straggler if one is due.
    fn straggler(&mut self, model: &Model, load: Load, now: Time) -> Option<(Kind, TaskRange)> {
        if !self.wants_something() || now < self.stragglers.allowance.due() {
            return None;
        }
        // Where predictions fail nothing is brought in gaps, perhaps for good. An idle drive needs
        // no predictions.
        let patience = match load.requests > 0 && !self.may_fill() {
            true if self.gate.is_overdue() || !self.tasks.has_room() => return None,
            true => STARVED,
            false => self.stragglers.patience(load, now),
        };
        let lately = self.stragglers.last.is_some_and(|last| now < last + patience);
        if lately || now < self.stragglers.not_before {
            return None;
        }
        let who = match self.next_starving_session(now) {
            Some(session) => Who::Session(session),
            None if now.saturating_since(self.brought) >= patience => Who::Anyone,
            None => return None,
        };
        let found = self.unit_for(model, who);
        let Some((kind, range)) = found else {
            // The next cells are examined later.
            self.stragglers.not_before = now + PATIENCE_QUEUED;
            return None;
        };
        self.stragglers.last = Some(now);
        self.stragglers.allowance.take(cost(model, kind, range), now);
        if let Who::Session(session) = who {
            self.brought_for.iter_mut().filter(|b| b.0 == session).for_each(|b| b.1 = now);
        }
        found
    }

    /// Returns a unit that `who` wants, from the next cells.
    fn unit_for(&mut self, model: &Model, who: Who) -> Option<(Kind, TaskRange)> {
        let unit = u64::from(self.regions.widest_unit());
        let mut wanted = Wanted::new();
        for _ in 0..TRIES {
            let next = |from| self.regions.next_up(who, from, self.regions.all());
            let cell = next(self.stragglers.from).or_else(|| next(0))?;
            self.stragglers.from = cell + 1;
            let all = self.regions.cells().lbns(&model.geometry, cell)?;
            let (low, high) = (all.lbn.saturating_sub(unit), (all.end() + unit).min(model.geometry.capacity()));
            for kind in [Kind::Read, Kind::Write] {
                wanted.reset(low, (high - low) as u32);
                self.tasks.wanted(who, kind, &mut wanted);
                if let Some(first) = wanted.next(low) {
                    // Only whole units: a cut-off unit would not be delivered, and could not be
                    // written. At most one of them when it is large.
                    let mut most = PROMOTED_SECTORS;
                    while most < 2 * unit.max(PROMOTED_SECTORS) {
                        wanted.reset(first, most.min(high - first) as u32);
                        self.tasks.wanted(who, kind, &mut wanted);
                        let end = wanted.next_unwanted(first);
                        if end > first {
                            return Some((kind, TaskRange { lbn: first, count: end - first }));
                        }
                        most *= 2;
                    }
                }
            }
        }
        None
    }

    /// Returns the session to serve in idle time: one that has received nothing for too long, or
    /// the lottery's winner.
    pub(in crate::fill) fn turn(&mut self, now: Time) -> Turn {
        if !self.regions.is_shared() {
            return Turn::Anyone;
        }
        let late = self.brought_for.iter().filter(|b| now.saturating_since(b.1) >= OVERDUE);
        let mut late = late.filter(|b| self.tasks.may_be_given(b.0));
        match late.next() {
            Some(&(session, _)) => Turn::Overdue(session),
            None => self.draw().map_or(Turn::Anyone, Turn::Of),
        }
    }

    /// Returns the session that wants something and has received nothing for the longest time, if
    /// that is too long. Resets the clocks of sessions that may receive nothing, or want nothing.
    fn next_starving_session(&mut self, now: Time) -> Option<SessionId> {
        if now < self.stragglers.look_at {
            return None;
        }
        self.stragglers.look_at = now + LOOK_AGAIN;
        // A session that may receive nothing, or wants nothing, is not starving.
        let tasks = &self.tasks;
        self.brought_for.iter_mut().filter(|b| !tasks.may_be_given(b.0)).for_each(|b| b.1 = now);
        let longest = self.brought_for.iter().min_by_key(|b| b.1)?;
        (now.saturating_since(longest.1) >= STARVED).then_some(longest.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stragglers_took_is_earned_again_and_no_more_is_saved_than_some() {
        let (mut a, second) = (Allowance::default(), Dur::from_secs(1));
        assert_eq!((a.due(), a.now_ns(Time::ZERO)), (Time::ZERO, SAVED_FIRST.0 as i64));
        // A hundred seconds later there are 0.3 s. One that takes 0.5 s is paid within 100 s.
        let now = Time::ZERO + Dur::from_secs(100);
        a.take(Dur(second.0 / 2), now);
        assert_eq!((a.saved_ns, a.due()), (-200_000_000, now + Dur::from_secs(100)));
        assert_eq!(a.now_ns(now + Dur::from_secs(100)), 0);
        assert_eq!(a.now_ns(now + Dur::from_secs(1_000_000)), SAVED.0 as i64);
        a.take(Dur::ZERO, now + Dur::from_secs(1_000_000));
        assert!(a.due() <= now + Dur::from_secs(1_000_000));
    }
}
