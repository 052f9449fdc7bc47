//! Background work that goes as foreground: promoted tasks, and stragglers.
//!
//! What is left of a promoted task no longer waits for gaps; it joins the foreground a few pieces
//! at a time (Thereska 2003 section 2.1, `fb_promote`). A *straggler* is a unit that nothing else
//! would ever bring: it lies on two tracks of which one passes just before the other, so that no
//! gap is long enough, or it holds a sector known to be bad, which gaps and idle time leave alone.
//! One is fetched when nothing at all has been brought for [`PATIENCE`], or nothing for one of the
//! sessions for [`STARVED`], whatever the others get. Beside a foreground to which the head has to
//! return it is one for all sessions in each [`STARVED`].

use headtime_disk::command::Kind;
use headtime_disk::model::Model;
use headtime_disk::time::{Dur, Time};

use super::idling::Turn;
use super::subsystem::Freeblock;
use crate::tasks::wanted::Wanted;
use crate::tasks::{Range, SessionId, Wants, Who};

/// Pieces of promoted tasks in the foreground at most: two at the drive, and the next two to choose
/// from.
pub const MOST_PROMOTED: usize = 4;
/// Sectors of one piece at most, unless one unit is more: 128 KiB, what block layers send at once.
const PROMOTED_SECTORS: u64 = 256;

/// When nothing has been brought for so long, a straggler is fetched. It costs a foreground that
/// moves the head anyway a turn each time: 0.3% of the time at 10,000 rpm.
pub const PATIENCE: Dur = Dur::from_secs(2);
/// When a session has got nothing for so long while others have, a straggler is fetched for it:
/// 0.01% of the time. Where the head has to return to the foreground, because that reads or writes
/// in order or the drive's cache holds its writes, one costs two moves and two turns, 30 to 45 ms
/// on the built-in drives of 7,200 rpm, and delays all requests that wait meanwhile. One in a
/// minute is 0.07% of the time. With one in 10 s, 48 of 60,000 sequential writes (20 TB, 16
/// outstanding, 46 s) were delayed: a twelfth of those that make the p99, which it put 33% higher.
pub const STARVED: Dur = Dur::from_secs(60);
/// A session that has got nothing for so long goes first in idle time. Gaps may give it nothing for
/// as long when its priority is low.
const OVERDUE: Dur = Dur::from_secs(5);
/// How often the sessions are looked through for such a one.
const LOOK_AGAIN: Dur = Dur::from_secs(1);
/// Cells looked at for one straggler.
const TRIES: usize = 16;

/// A foreground is taken to go on in order for so long after a request that continues the one
/// before.
const IN_ORDER: Dur = Dur::from_secs(1);

/// The search for stragglers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Starving {
    /// The last straggler was sent then.
    last: Option<Time>,
    /// None is looked for before: nothing was found lately.
    not_before: Time,
    /// When the sessions are looked through next.
    look_at: Time,
    /// The cell from which the next search goes on: one that has nothing to give now does not keep
    /// others from being found.
    from: u32,
    /// One past the last LBN of the foreground request that arrived last.
    arrived_to: u64,
    /// Until when the foreground is taken to go on in order.
    in_order_until: Time,
}

impl Starving {
    /// A foreground request has arrived.
    pub(super) fn arrived(&mut self, lbn: u64, count: u32, now: Time) {
        self.in_order_until = if lbn == self.arrived_to { now + IN_ORDER } else { Time::ZERO };
        self.arrived_to = lbn + u64::from(count);
    }

    /// How long nothing was brought when a straggler is due. `cached`: the drive's cache holds
    /// writes.
    fn patience(&self, cached: bool, now: Time) -> Dur {
        if cached || now < self.in_order_until { STARVED } else { PATIENCE }
    }

    /// When a straggler is due if nothing has been brought since `brought`.
    pub(super) fn due(&self, brought: Time, now: Time) -> Time {
        let since = self.last.map_or(brought, |last| last.max(brought));
        let due = match now < self.in_order_until {
            // The foreground may go on in order until then, or longer.
            true => (since + STARVED).min(self.in_order_until.max(since + PATIENCE)),
            false => since + PATIENCE,
        };
        self.not_before.max(due)
    }
}

impl Freeblock {
    /// The next piece that is ready to be sent. `idle`: no foreground request waits or is at the
    /// drive. `cached`: the drive's cache holds writes.
    pub fn next_promoted(&mut self, model: &Model, idle: bool, cached: bool, now: Time) -> Option<(Kind, Range)> {
        if let Some(range) = self.promoted_pending.take() {
            if self.tasks.granted(range) {
                self.tasks.picked(range);
                return Some((Kind::Write, range));
            }
            self.tasks.release(Kind::Write, range, now);
            return None;
        }
        if self.promoted.len() >= MOST_PROMOTED || self.dead {
            return None;
        }
        let promoted = self.tasks.next_promoted(PROMOTED_SECTORS).map(|(_, kind, range)| (kind, range));
        let (kind, range) = promoted.or_else(|| self.straggler(model, idle, cached, now))?;
        if kind == Kind::Read {
            return Some((kind, range));
        }
        match self.tasks.ask(range) {
            true => self.promoted_pending = Some(range),
            false => self.tasks.release(kind, range, now),
        }
        None
    }

    /// The piece just handed out is the request in this slot.
    pub fn promoted_is(&mut self, slot: u32, kind: Kind, range: Range) {
        self.promoted.push((slot, kind, range));
        if let Some(idling) = &mut self.idling {
            idling.detector().promoted();
        }
    }

    /// Whether the request in this slot, which has finished, was such a piece.
    pub fn is_promoted(&mut self, slot: u32) -> bool {
        let at = self.promoted.iter().position(|p| p.0 == slot);
        at.map(|i| self.promoted.swap_remove(i)).is_some()
    }

    /// Whether some of these sectors are a piece whose turn has not come.
    pub fn awaits_turn(&self, range: &Range) -> bool {
        let picked = self.promoted.iter().map(|p| &p.2);
        picked.chain(&self.promoted_pending).any(|piece| piece.overlaps(range))
    }

    /// Such pieces that are foreground requests now.
    pub fn pieces(&self) -> usize {
        self.promoted.len()
    }

    /// Whether the request in this slot is such a piece.
    pub fn is_piece(&self, slot: u32) -> bool {
        self.promoted.iter().any(|p| p.0 == slot)
    }

    /// Such a piece is to be sent next. When it is good for nothing any more, for its task was
    /// aborted or has it already, it is withdrawn instead, and is no request any more.
    pub fn withdraws(&mut self, slot: u32, now: Time) -> bool {
        let Some(&(_, kind, range)) = self.promoted.iter().find(|p| p.0 == slot) else {
            return false;
        };
        if self.tasks.is_needed(kind, range) {
            return false;
        }
        self.tasks.release(kind, range, now);
        self.promoted_failed(slot, now)
    }

    /// The same for a piece that has not been tried. It is no request any more then.
    pub fn promoted_failed(&mut self, slot: u32, now: Time) -> bool {
        let promoted = self.is_promoted(slot);
        if promoted {
            self.finished(now);
        }
        promoted
    }

    /// A unit that nothing else brings, if it is time for one. While the drive surprises only an
    /// idle one is asked: nothing has to be predicted for that.
    fn straggler(&mut self, model: &Model, idle: bool, cached: bool, now: Time) -> Option<(Kind, Range)> {
        if !(self.may_fill() || idle && self.wants_something()) {
            return None;
        }
        let patience = self.starving.patience(cached, now);
        let lately = self.starving.last.is_some_and(|last| now < last + patience);
        if lately || now < self.starving.not_before {
            return None;
        }
        let who = match self.starving(now) {
            Some(session) => Who::Session(session),
            None if now.saturating_since(self.brought) >= patience => Who::Anyone,
            None => return None,
        };
        let found = self.unit_for(model, who);
        match (&found, who) {
            (Some(_), _) => self.starving.last = Some(now),
            // The next cells are looked at, but not at once.
            (None, _) => self.starving.not_before = now + PATIENCE,
        }
        if let (Some(_), Who::Session(session)) = (&found, who) {
            self.brought_for.iter_mut().filter(|b| b.0 == session).for_each(|b| b.1 = now);
        }
        found
    }

    /// A unit that these want, in the next cells.
    fn unit_for(&mut self, model: &Model, who: Who) -> Option<(Kind, Range)> {
        let unit = u64::from(self.regions.widest_unit());
        let mut wanted = Wanted::new();
        for _ in 0..TRIES {
            let next = |from| self.regions.next_up(who, from, self.regions.all());
            let cell = next(self.starving.from).or_else(|| next(0))?;
            self.starving.from = cell + 1;
            let all = self.regions.cells().lbns(&model.geometry, cell)?;
            let (low, high) = (all.lbn.saturating_sub(unit), (all.end() + unit).min(model.geometry.capacity()));
            for kind in [Kind::Read, Kind::Write] {
                wanted.reset(low, (high - low) as u32);
                self.tasks.wanted(who, kind, &mut wanted);
                if let Some(first) = wanted.next(low) {
                    // Only units that end in time: what is cut off would not be delivered, and
                    // could not be written. No more than one of them when it is a large one.
                    let mut most = PROMOTED_SECTORS;
                    while most < 2 * unit.max(PROMOTED_SECTORS) {
                        wanted.reset(first, most.min(high - first) as u32);
                        self.tasks.wanted(who, kind, &mut wanted);
                        let end = wanted.next_unwanted(first);
                        if end > first {
                            return Some((kind, Range { lbn: first, count: end - first }));
                        }
                        most *= 2;
                    }
                }
            }
        }
        None
    }

    /// Whose turn it is in idle time: that of a session that has got nothing for too long, or of
    /// the lottery's winner.
    pub(super) fn turn(&mut self, now: Time) -> Turn {
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

    /// A session that wants something and has got nothing for too long.
    fn starving(&mut self, now: Time) -> Option<SessionId> {
        if now < self.starving.look_at {
            return None;
        }
        self.starving.look_at = now + LOOK_AGAIN;
        // Who may have nothing, or wants nothing, does not wait.
        let tasks = &self.tasks;
        self.brought_for.iter_mut().filter(|b| !tasks.may_be_given(b.0)).for_each(|b| b.1 = now);
        let longest = self.brought_for.iter().min_by_key(|b| b.1)?;
        (now.saturating_since(longest.1) >= STARVED).then_some(longest.0)
    }
}
