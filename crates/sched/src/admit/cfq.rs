//! CFQ, completely fair queueing: slices of disk time in rounds. It is implemented for comparison
//! (Valente 2014 section 5.2) and follows the Linux kernel's `cfq-iosched.c` as of 2.6.34, without
//! groups and without merged queues.
//!
//! * There are three kinds of queues: sequential readers, for which the disk idles; scattered
//!   queues or queues with long think times, for which it does not; and the asynchronous queue. A
//!   kind has the disk for a fraction of the target latency proportional to its number of busy
//!   queues; then the kind whose first queue has waited longest is served.
//! * Within a kind queues are served round robin. A queue of the first kind has a slice of 100 ms.
//!   With `low_latency`, slices are scaled so that a round takes 300 ms, but none is shorter than
//!   twice the idling time.
//! * The disk idles for the last of the scattered queues, so that the kind as a whole keeps the
//!   disk.
//! * The asynchronous queue has no request at the drive beside a synchronous one, at most 16 in a
//!   slice, and fewer at a time after a synchronous request was delayed ([`limits`]).
//! * A synchronous queue preempts the asynchronous one, and every other queue preempts the idle
//!   class.
//!
//! Weights stand for priorities: a slice is scaled by `weight / 100`, and a queue of a larger
//! weight comes earlier in the round by the kernel's rule: the offset is the largest slice less its
//! own, for each other busy queue.

mod limits;
mod queue;
pub(crate) mod rules;

use std::collections::{BTreeMap, BTreeSet};

use headtime_disk::{Dur, Kind as Command, Time};

use super::{ASYNCHRONOUS, Admission, Class, Share, Sweep, Turn, set_membership, turn_of};
use crate::request::Request;
use limits::InFlight;
use queue::{Key, Queue};
pub use rules::CfqRules;

/// Distance in bytes from the previous request beyond which a request is scattered
/// (`CFQQ_SEEK_THR`: 8 times 100 sectors of 512 bytes).
const SEEKY_BEYOND: u64 = 8 * 100 * 512;
/// A queue is scattered if more than this number of its last 32 requests are (`CFQQ_SEEKY`).
const SEEKY_OF_32: u32 = 4;
/// Think times before their mean is used.
const MIN_THINK_TIMES: u32 = 80;
/// Slice of the highest priority, in hundredths of the default slice.
const LARGEST_SLICE: u64 = 180;

/// Kind of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    InOrder,
    Scattered,
    Asynchronous,
}

const KINDS: [Kind; 3] = [Kind::InOrder, Kind::Scattered, Kind::Asynchronous];

#[derive(Clone, Copy, Debug)]
struct Active {
    queue: u32,
    /// Length of its slice, and its end once its first request was dispatched.
    slice: Dur,
    ends: Option<Time>,
    waits_until: Time,
    /// Number of requests dispatched in it.
    requests: u32,
}

/// The CFQ policy.
#[derive(Debug)]
pub struct Cfq {
    rules: CfqRules,
    seeky_beyond: u64,
    queues: BTreeMap<u32, Queue>,
    shares: BTreeMap<u32, Share>,
    rounds: [BTreeSet<Key>; 3],
    idle_round: BTreeSet<Key>,
    active: Option<Active>,
    /// The kind that has the disk, and until when.
    kind: Kind,
    kind_until: Time,
    /// Last completion of a request outside the idle class.
    last_end: Time,
    in_flight: InFlight,
    /// Queues whose next request is held back above the scheduler.
    held_back: BTreeSet<u32>,
    sweep: Sweep,
    wakeup: Option<Time>,
}

impl Cfq {
    /// Creates the policy without queues.
    pub fn new(rules: CfqRules, sector_bytes: u32) -> Cfq {
        Cfq {
            seeky_beyond: SEEKY_BEYOND / u64::from(sector_bytes),
            queues: BTreeMap::new(),
            shares: BTreeMap::new(),
            rounds: [BTreeSet::new(), BTreeSet::new(), BTreeSet::new()],
            idle_round: BTreeSet::new(),
            active: None,
            kind: Kind::InOrder,
            kind_until: Time::ZERO,
            last_end: Time::ZERO,
            in_flight: InFlight::default(),
            held_back: BTreeSet::new(),
            sweep: Sweep::new(),
            wakeup: None,
            rules,
        }
    }

    /// Returns the number of known queues: busy ones and those that were recently.
    pub fn known_queues(&self) -> usize {
        self.queues.len()
    }

    /// Drops the state of departed queues.
    fn sweep(&mut self, now: Time) {
        if self.sweep.is_due(self.queues.len()) {
            // The queue served last may still be the active one if no other has arrived since.
            let active = self.active.map(|a| a.queue);
            self.queues.retain(|&queue, q| {
                let busy = q.queued + q.outstanding > 0 || Some(queue) == active;
                busy || !Sweep::has_gone(q.done_at, now)
            });
            self.sweep.done(self.queues.len());
        }
    }

    fn twice_idle(&self) -> Dur {
        part(self.rules.slice_idle, 2, 1)
    }

    fn kind_of(&self, queue: u32) -> Kind {
        let q = &self.queues[&queue];
        if queue == ASYNCHRONOUS {
            return Kind::Asynchronous;
        }
        let thinks_long = q.thinks > MIN_THINK_TIMES && q.think > self.rules.slice_idle;
        match q.seeks.count_ones() > SEEKY_OF_32 || thinks_long || self.rules.slice_idle == Dur::ZERO {
            true => Kind::Scattered,
            false => Kind::InOrder,
        }
    }

    fn round(&mut self, class: Class, kind: Kind) -> &mut BTreeSet<Key> {
        match class {
            Class::BestEffort => &mut self.rounds[kind as usize],
            Class::Idle => &mut self.idle_round,
        }
    }

    fn busy(&self) -> usize {
        let waiting: usize = self.rounds.iter().map(BTreeSet::len).sum();
        waiting + usize::from(self.active.is_some())
    }

    /// Returns a queue's slice before it is scaled to the target latency.
    fn base_slice(&self, queue: u32) -> Dur {
        let base = if queue == ASYNCHRONOUS { self.rules.slice_async } else { self.rules.slice_sync };
        part(base, u64::from(self.queues[&queue].share.weight), 100)
    }

    fn slice(&self, queue: u32) -> Dur {
        let slice = self.base_slice(queue);
        if !self.rules.low_latency {
            return slice;
        }
        // Synchronous slices for all queues, as in the kernel.
        let round = part(self.rules.slice_sync, self.busy().max(1) as u64, 1);
        if round <= self.rules.target_latency {
            return slice;
        }
        let shortest = part(slice, 2 * self.rules.slice_idle.0, self.rules.slice_sync.0);
        let scaled = part(slice, self.rules.target_latency.0, round.0);
        scaled.max(shortest.min(slice))
    }

    /// Inserts a queue into its round; `first`: before all others.
    fn join(&mut self, queue: u32, first: bool, from: i64) {
        let kind = self.kind_of(queue);
        let less = part(self.rules.slice_sync, LARGEST_SLICE, 100).saturating_sub(self.base_slice(queue));
        let offset = less.0 as i64 * self.busy().saturating_sub(1) as i64;
        let q = &self.queues[&queue];
        let class = q.share.class;
        let at = match first {
            true => self.round(class, kind).first().map_or(from, |k| k.0 - 1),
            false => from + offset - q.rest,
        };
        let key = (at, queue);
        self.round(class, kind).insert(key);
        let q = self.queues.get_mut(&queue).expect("looked at above");
        (q.place, q.from, q.rest) = (Some((kind, key)), at - offset, 0);
    }

    fn leave(&mut self, queue: u32) {
        let q = self.queues.get_mut(&queue).expect("who is in a round is known");
        if let Some((kind, key)) = q.place.take() {
            let class = q.share.class;
            assert!(self.round(class, kind).remove(&key));
        }
    }

    /// Ends the active queue's turn.
    fn expire(&mut self, now: Time) {
        let active = self.active.take().expect("a queue is served");
        let q = self.queues.get_mut(&active.queue).expect("it is known");
        q.rest = match active.ends {
            // Only a queue that was cut off has a remainder.
            Some(ends) if q.queued > 0 || now > ends => {
                // At most a slice: the slice of a departed queue may have ended long ago.
                let slice = active.slice.0 as i64;
                (ends.0 as i64 - now.0 as i64).clamp(-slice, slice)
            }
            _ => 0,
        };
        if q.queued > 0 {
            self.join(active.queue, false, now.0 as i64);
        }
    }

    /// Selects the next queue.
    fn next(&mut self, now: Time) -> Result<(), Turn> {
        let is_empty = self.rounds.iter().all(BTreeSet::is_empty);
        let first = if is_empty {
            let Some(&key) = self.idle_round.first() else { return Err(Turn::Idle) };
            let from = self.last_end + self.rules.idle_grace;
            if now < from {
                self.wakeup = Some(from);
                return Err(Turn::Wait(from));
            }
            key
        } else {
            if now >= self.kind_until || self.rounds[self.kind as usize].is_empty() {
                self.choose_kind(now);
            }
            *self.rounds[self.kind as usize].first().expect("a kind was chosen that has queues")
        };
        let queue = first.1;
        let slice = self.slice(queue);
        self.leave(queue);
        self.active = Some(Active { queue, slice, ends: None, waits_until: Time::ZERO, requests: 0 });
        Ok(())
    }

    /// Gives the disk to the kind whose first queue has waited longest.
    fn choose_kind(&mut self, now: Time) {
        let waiting = KINDS.into_iter().filter_map(|k| Some((self.rounds[k as usize].first()?.0, k)));
        self.kind = waiting.min().expect("a request waits").1;
        let (mine, all) = (self.rounds[self.kind as usize].len() as u64, self.busy() as u64);
        let mut slice = part(self.rules.target_latency, mine, all.max(1));
        if self.kind == Kind::Asynchronous {
            slice = part(slice, self.rules.slice_async.0, self.rules.slice_sync.0);
        }
        self.kind_until = now + slice.max(self.twice_idle());
    }

    /// Returns how long the disk idles for the active queue when it is empty.
    fn waits(&self, queue: u32) -> Dur {
        let idle_class = self.queues[&queue].share.class == Class::Idle;
        match self.kind_of(queue) {
            _ if idle_class || self.held_back.contains(&queue) => Dur::ZERO,
            Kind::InOrder => self.rules.slice_idle,
            Kind::Scattered if self.rounds[Kind::Scattered as usize].is_empty() => self.rules.slice_idle,
            Kind::Scattered | Kind::Asynchronous => Dur::ZERO,
        }
    }

    /// Returns until when the disk idles for the active queue, `Ok(None)` if it has a request, or
    /// an error if its turn is over.
    fn look(&self, active: &Active, now: Time) -> Result<Option<Time>, ()> {
        let q = &self.queues[&active.queue];
        let ends = active.ends.unwrap_or(Time::NEVER);
        if now >= ends || self.is_displaced(active) || self.has_sent_enough(active) {
            return Err(());
        }
        if q.queued > 0 {
            return Ok(None);
        }
        let waits = self.waits(active.queue);
        if waits == Dur::ZERO || (q.outstanding == 0 && now >= active.waits_until) {
            return Err(());
        }
        Ok(Some(if q.outstanding > 0 { ends } else { active.waits_until.min(ends) }))
    }

    fn is_displaced(&self, active: &Active) -> bool {
        let begun = active.ends.is_some();
        let idle_class = self.queues[&active.queue].share.class == Class::Idle;
        let others =
            !self.rounds[Kind::InOrder as usize].is_empty() || !self.rounds[Kind::Scattered as usize].is_empty();
        begun && idle_class && (others || !self.rounds[Kind::Asynchronous as usize].is_empty())
    }
}

/// Returns `by / of` of a time.
fn part(time: Dur, by: u64, of: u64) -> Dur {
    Dur(u64::try_from(u128::from(time.0) * u128::from(by) / u128::from(of.max(1))).unwrap_or(u64::MAX))
}

impl Admission for Cfq {
    fn arrived(&mut self, queue: u32, request: &Request, now: Time) {
        if !self.queues.contains_key(&queue) {
            self.sweep(now);
        }
        let (share, twice_idle) = (self.shares.get(&queue).copied().unwrap_or_default(), self.twice_idle());
        let q = self.queues.entry(queue).or_insert_with(|| Queue::new(share, now));
        if q.queued + q.outstanding == 0 && q.end.is_some() {
            let think = now.saturating_since(q.done_at).min(twice_idle);
            q.think = Dur(q.think.0 - q.think.0 / 8 + think.0 / 8);
            q.thinks = q.thinks.saturating_add(1);
        }
        if request.kind != Command::Flush {
            let scattered = q.end.is_some_and(|end| end.abs_diff(request.lbn) > self.seeky_beyond);
            q.seeks = q.seeks << 1 | u32::from(scattered);
            q.end = Some(request.lbn + u64::from(request.count));
        }
        q.queued += 1;
        q.arrivals.push_back(now);
        if q.queued > 1 || self.active.is_some_and(|a| a.queue == queue) {
            return;
        }
        // A synchronous queue preempts the asynchronous one.
        let displaces = self.active.is_some_and(|a| a.queue == ASYNCHRONOUS && a.ends.is_some())
            && share.class == Class::BestEffort;
        if displaces {
            self.expire(now);
        }
        self.join(queue, displaces, now.0 as i64);
        if displaces {
            (self.kind, self.kind_until) = (self.kind_of(queue), now + twice_idle);
        }
    }

    fn turn(&mut self, now: Time) -> Turn {
        self.wakeup = None;
        loop {
            let Some(active) = self.active else {
                match self.next(now) {
                    Ok(()) => continue,
                    Err(turn) => return turn,
                }
            };
            match self.look(&active, now) {
                Ok(None) if !self.may_dispatch(&active, now) => return Turn::Wait(Time::NEVER),
                Ok(None) => return turn_of(active.queue, active.ends.is_none()),
                Ok(Some(until)) => {
                    self.wakeup = Some(until);
                    return Turn::Wait(until);
                }
                Err(()) => self.expire(now),
            }
        }
    }

    fn sent(&mut self, queue: u32, _: &Request, now: Time) {
        let active = self.active.as_mut().filter(|a| a.queue == queue).expect("the active queue's request is sent");
        let slice = active.slice;
        active.ends.get_or_insert(now + slice);
        active.requests += 1;
        self.in_flight.sent(queue);
        let q = self.queues.get_mut(&queue).expect("whose turn it is, is known");
        q.queued -= 1;
        q.outstanding += 1;
    }

    fn sent_out_of_turn(&mut self, queue: u32, _: &Request, now: Time) {
        self.in_flight.sent(queue);
        let q = self.queues.get_mut(&queue).expect("whose request waits is known");
        q.queued -= 1;
        q.outstanding += 1;
        if q.queued > 0 {
            return;
        }
        match self.active.filter(|active| active.queue == queue) {
            None => self.leave(queue),
            // Its turn was for a request that has left the queue.
            Some(active) if active.ends.is_none() => self.expire(now),
            Some(_) => {}
        }
    }

    fn completed(&mut self, queue: u32, _: &Request, now: Time) {
        let q = self.queues.get_mut(&queue).expect("whose request was sent is known");
        q.outstanding -= 1;
        q.done_at = now;
        let since = q.arrivals.pop_front().expect("a finished request has arrived");
        let delayed = now.saturating_since(since) >= self.rules.fifo_expire_sync;
        self.in_flight.completed(queue, delayed, now);
        if q.share.class != Class::Idle {
            self.last_end = now;
        }
        let outstanding = q.outstanding;
        let waits = self.waits(queue);
        if let Some(active) = self.active.as_mut().filter(|a| a.queue == queue && outstanding == 0) {
            active.waits_until = now + waits;
        }
    }

    fn charge_external(&mut self, time: Dur, now: Time) {
        if let Some(active) = self.active.as_mut()
            && let Some(ends) = active.ends.as_mut()
        {
            // At most a full slice from now.
            *ends = (*ends + time).min((now + active.slice).max(*ends));
        }
    }

    fn set_share(&mut self, queue: u32, share: Share) {
        self.shares.insert(queue, share);
        let Some(q) = self.queues.get(&queue) else { return };
        // A queue that waits in a round moves to its place in the round of the new class now;
        // another one when it next joins a round.
        let waits = q.place.is_some();
        let from = q.from;
        if waits {
            self.leave(queue);
        }
        self.queues.get_mut(&queue).expect("looked at above").share = share;
        if waits {
            self.join(queue, false, from);
        }
    }

    fn set_held_back(&mut self, queue: u32, is: bool, _: Time) {
        set_membership(&mut self.held_back, queue, is);
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.wakeup
    }
}
