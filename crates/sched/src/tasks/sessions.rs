//! The session list: open sessions, their priorities, and which of them may receive blocks now.

use std::collections::BTreeSet;

use headtime_disk::{Dur, Time};

use super::slab::Slab;
use super::table::{READ, WRITE};
use super::{SessionId, TaskError};
use crate::list::NONE;
use crate::throttle::{Rate, RateLimit, Throttle};

/// Maximum sessions, regardless of the limits: a range stores its session's slot in two bytes.
pub(crate) const MAX_SESSIONS: usize = 1 << 16;

/// Unused rate of a session is kept for this long. In idle time sessions take turns of about a
/// second: with a shorter time a session would lose rate while it is another's turn.
pub(crate) const BURST: Dur = Dur::from_secs(3);

/// An open session.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    /// Its ID.
    pub id: SessionId,
    /// Its priority: tickets in the lottery.
    pub priority: u32,
    /// Whether its application has suspended it.
    pub suspended: bool,
    /// Window: sectors that may be delivered and not yet taken.
    pub window: u64,
    /// Sectors delivered and not yet taken.
    pub untaken: u64,
    /// The limit of its rate; most sessions have none.
    limit: Option<Box<Limit>>,
    /// Until when it waits for its limit; `None`: it does not.
    held_back: Option<Time>,
    /// Sectors wanted, read and written.
    pub left: [u64; 2],
    /// Sectors delivered or written so far.
    pub delivered: u64,
    /// Open tasks.
    pub tasks: u32,
    /// The first of its tasks.
    pub first_task: u32,
    /// The last of its tasks.
    pub last_task: u32,
    /// The part of `left` included in the sums over all sessions.
    counted: [u64; 2],
    /// The part of `priority` included.
    tickets: u32,
    /// Whether it is in the list of turned sessions.
    turned: bool,
}

/// The limit of a session's rate.
#[derive(Clone, Debug)]
struct Limit {
    throttle: Throttle,
    sector_bytes: u32,
}

impl Default for Session {
    fn default() -> Session {
        Session {
            id: SessionId(u32::MAX),
            priority: 0,
            suspended: false,
            window: u64::MAX,
            untaken: 0,
            limit: None,
            held_back: None,
            left: [0; 2],
            delivered: 0,
            tasks: 0,
            first_task: NONE,
            last_task: NONE,
            counted: [0; 2],
            tickets: 0,
            turned: false,
        }
    }
}

impl Session {
    /// Returns the limit of its rate, bytes per second.
    pub(crate) fn rate(&self) -> Option<Rate> {
        self.limit.as_ref().and_then(|limit| limit.throttle.limit().bytes)
    }

    /// Returns whether it takes reads, and writes, apart from its rate. The window applies to
    /// delivered data only: a client that takes nothing can still write.
    #[inline]
    fn is_open(&self) -> [bool; 2] {
        [!self.suspended && self.untaken < self.window, !self.suspended]
    }

    /// Returns whether it may receive reads, and writes.
    #[inline]
    fn may(&self) -> [bool; 2] {
        self.is_open().map(|open| open && self.held_back.is_none())
    }
}

/// The open sessions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sessions {
    slab: Slab<Session>,
    /// ID and slot, by ID.
    by_id: Vec<(u32, u16)>,
    /// One bit per slot: whether it may receive reads, and writes.
    may: [Vec<u64>; 2],
    /// Sectors wanted by sessions that may receive them.
    left: [u64; 2],
    /// Sum of the priorities of sessions that may receive something.
    tickets: u64,
    /// Sessions that became able to receive something, or unable, since the list was last fetched.
    turned: Vec<SessionId>,
    /// Number of sessions with a limit.
    limited: usize,
    /// Those held back by their limit, by the time until which.
    held_back: BTreeSet<(Time, u16)>,
    next: u32,
}

impl Sessions {
    /// Bytes of a limit, with its entry in the list of those held back.
    pub(crate) const BYTES_OF_LIMIT: usize = size_of::<Limit>() + 2 * size_of::<(Time, u16)>();

    /// Returns the number of open sessions.
    pub(crate) fn len(&self) -> usize {
        self.slab.len()
    }

    /// Returns whether none is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.slab.is_empty()
    }

    /// Opens a session. `None` when all IDs are used.
    pub(crate) fn open(&mut self, priority: u32) -> Option<SessionId> {
        let id = SessionId(self.next);
        self.next = self.next.checked_add(1)?;
        let at = self.slab.insert(Session { id, priority, ..Session::default() });
        self.by_id.push((id.0, at as u16));
        for may in &mut self.may {
            may.resize(may.len().max(at as usize / 64 + 1), 0);
        }
        self.refresh(at as u16);
        Some(id)
    }

    /// Removes a session without tasks.
    pub(crate) fn close(&mut self, at: u16) {
        let s = &mut self.slab[u32::from(at)];
        assert!(s.tasks == 0 && s.left == [0; 2], "session {} is closed with tasks", s.id.0);
        s.suspended = true;
        if let Some(until) = s.held_back {
            self.held_back.remove(&(until, at));
        }
        self.refresh(at);
        let gone = self.slab.remove(u32::from(at));
        self.limited -= usize::from(gone.limit.is_some());
        let n = self.by_id.binary_search_by_key(&gone.id.0, |&(id, _)| id).expect("an open session is in the list");
        self.by_id.remove(n);
        if self.is_empty() {
            assert!(self.left == [0; 2] && self.tickets == 0, "without sessions something is wanted");
            *self = Sessions { next: self.next, ..Sessions::default() };
        }
    }

    /// Returns the slot of a session.
    #[inline]
    pub(crate) fn find(&self, id: SessionId) -> Option<u16> {
        let n = self.by_id.binary_search_by_key(&id.0, |&(id, _)| id).ok()?;
        Some(self.by_id[n].1)
    }

    /// Returns the slot, or the error.
    pub(crate) fn need(&self, id: SessionId) -> Result<u16, TaskError> {
        self.find(id).ok_or(TaskError::NoSession(id))
    }

    /// Returns the session in a slot.
    #[inline]
    pub(crate) fn get(&self, at: u16) -> &Session {
        &self.slab[u32::from(at)]
    }

    /// Changes the session in a slot, and updates what it may receive.
    #[inline]
    pub(crate) fn change<R>(&mut self, at: u16, f: impl FnOnce(&mut Session) -> R) -> R {
        let r = f(&mut self.slab[u32::from(at)]);
        self.refresh(at);
        r
    }

    /// Limits the rate of a session, in bytes per second.
    pub(crate) fn set_rate(&mut self, at: u16, rate: Option<Rate>, sector_bytes: u32, now: Time) {
        let s = &mut self.slab[u32::from(at)];
        self.limited -= usize::from(s.limit.is_some());
        let new = || Box::new(Limit { throttle: Throttle::keeping(BURST), sector_bytes });
        s.limit = rate.map(|_| s.limit.take().unwrap_or_else(new));
        self.limited += usize::from(s.limit.is_some());
        if let Some(limit) = &mut s.limit {
            limit.throttle.set(RateLimit { bytes: rate, requests: None }, now);
        }
        self.hold_back(at, now);
    }

    /// Charges sectors delivered or written to a session's limit.
    #[inline]
    pub(crate) fn charge(&mut self, at: u16, sectors: u64, now: Time) {
        if let Some(limit) = &mut self.slab[u32::from(at)].limit {
            limit.throttle.charge(sectors * u64::from(limit.sector_bytes), now);
            self.hold_back(at, now);
        }
    }

    /// Holds a session back, or no longer, as its limit says.
    fn hold_back(&mut self, at: u16, now: Time) {
        let s = self.get(at);
        let ready = s.limit.as_ref().map(|limit| limit.throttle.ready_at(1)).filter(|ready| *ready > now);
        if let Some(until) = s.held_back {
            self.held_back.remove(&(until, at));
        }
        self.held_back.extend(ready.map(|until| (until, at)));
        self.change(at, |s| s.held_back = ready);
    }

    /// Ends what is over of the times for which sessions are held back.
    pub(crate) fn advance(&mut self, now: Time) {
        while let Some(&(until, at)) = self.held_back.first()
            && until <= now
        {
            self.hold_back(at, now);
        }
    }

    /// Returns until when the first of the sessions that are held back is.
    pub(crate) fn held_back_until(&self) -> Option<Time> {
        self.held_back.first().map(|h| h.0)
    }

    fn refresh(&mut self, at: u16) {
        let s = &mut self.slab[u32::from(at)];
        let may = s.may();
        for side in [READ, WRITE] {
            let (word, bit) = (&mut self.may[side][usize::from(at) / 64], 1 << (at % 64));
            *word = if may[side] { *word | bit } else { *word & !bit };
            let counts = if may[side] { s.left[side] } else { 0 };
            self.left[side] = self.left[side] - s.counted[side] + counts;
            s.counted[side] = counts;
        }
        let tickets = if s.counted == [0; 2] { 0 } else { s.priority };
        if (tickets == 0) != (s.tickets == 0) && !s.turned {
            s.turned = true;
            self.turned.push(s.id);
        }
        self.tickets = self.tickets - u64::from(s.tickets) + u64::from(tickets);
        s.tickets = tickets;
    }

    /// Returns whether the session in a slot may receive reads, or writes.
    #[inline]
    pub(crate) fn may(&self, at: u16, side: usize) -> bool {
        self.may[side][usize::from(at) / 64] >> (at % 64) & 1 == 1
    }

    /// Returns whether the session in a slot may receive reads, or writes, of its promoted tasks:
    /// these do not wait for its rate.
    #[inline]
    pub(crate) fn is_open(&self, at: u16, side: usize) -> bool {
        self.get(at).is_open()[side]
    }

    /// Returns whether a session has a limit.
    #[inline]
    pub(crate) fn any_limited(&self) -> bool {
        self.limited > 0
    }

    /// Returns whether the session in a slot may receive something that it wants.
    #[inline]
    pub(crate) fn has_tickets(&self, at: u16) -> bool {
        self.get(at).tickets > 0
    }

    /// Calls `told` with the sessions for which that has changed since the last call, and its
    /// present value.
    pub(crate) fn take_turned(&mut self, mut told: impl FnMut(SessionId, bool)) {
        while let Some(id) = self.turned.pop() {
            if let Some(at) = self.find(id) {
                let s = &mut self.slab[u32::from(at)];
                s.turned = false;
                told(id, s.tickets > 0);
            }
        }
    }

    /// Returns the sectors wanted by all sessions that may receive them.
    #[inline]
    pub(crate) fn left(&self, side: usize) -> u64 {
        self.left[side]
    }

    /// Draws one of the sessions that may receive something that they want, with probabilities
    /// according to their priorities (Waldspurger and Weihl's lottery). `random` must be uniformly
    /// distributed.
    pub(crate) fn draw(&self, random: u64) -> Option<SessionId> {
        // The product's upper half is below the number of tickets, and as uniform as 64 bits allow.
        let mut winner = ((u128::from(random) * u128::from(self.tickets)) >> 64) as u64;
        for s in self.iter() {
            if winner < u64::from(s.tickets) {
                return Some(s.id);
            }
            winner -= u64::from(s.tickets);
        }
        None
    }

    /// Returns all sessions, in the order in which they were opened.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Session> + '_ {
        self.by_id.iter().map(|&(_, at)| self.get(at))
    }

    /// Returns the bytes allocated.
    pub(crate) fn bytes(&self) -> usize {
        let turned = self.turned.capacity() * size_of::<SessionId>();
        let limits = self.limited * Sessions::BYTES_OF_LIMIT;
        self.slab.bytes() + self.by_id.capacity() * size_of::<(u32, u16)>() + self.may_words() * 8 + turned + limits
    }

    /// Returns an upper bound of the bytes that one more session would add.
    pub(crate) fn bytes_for_one(&self) -> usize {
        // The lists double when they are full.
        let list = if self.by_id.len() == self.by_id.capacity() { self.by_id.len().max(8) } else { 0 };
        let each = size_of::<(u32, u16)>() + size_of::<SessionId>();
        self.slab.bytes_for(1) + list * each + (self.may_words().max(8)) * 8
    }

    fn may_words(&self) -> usize {
        self.may.iter().map(Vec::capacity).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lottery_draws_each_as_often_as_its_priority_says() {
        let mut all = Sessions::default();
        let ids: Vec<SessionId> = [1, 3, 6].map(|p| all.open(p).expect("a name")).to_vec();
        for id in &ids {
            all.change(all.find(*id).expect("it is open"), |s| s.left[WRITE] = 5);
        }
        let mut drawn = [0; 3];
        for n in 0..1_000u64 {
            let winner = all.draw(n * (u64::MAX / 1_000)).expect("a session wants something");
            drawn[ids.iter().position(|&id| id == winner).expect("one of the three")] += 1;
        }
        for (drawn, expected) in drawn.into_iter().zip([100i32, 300, 600]) {
            assert!((drawn - expected).abs() <= 1, "{drawn} of {expected}");
        }
        all.change(all.find(ids[2]).expect("it is open"), |s| s.suspended = true);
        assert!((0..100).all(|n| all.draw(n * (u64::MAX / 100)) != Some(ids[2])));
        all.change(all.find(ids[0]).expect("it is open"), |s| s.left[WRITE] = 0);
        assert_eq!(all.draw(0), Some(ids[1]));
    }
}
