//! When the next command is dispatched: late commitment.
//!
//! A drive with a queue of its own selects its next command when the head becomes available, from
//! everything that is queued by then. A scheduler that gives a command to the drive as soon as
//! there is room selects one command earlier: just before the client whose request completes next
//! submits another one. So, while one command is at the drive, the next one is dispatched as late
//! as it can be without the head waiting for it, and every request that arrives until then takes
//! part in the selection.
//!
//! The latest instant follows from the model: the command must have passed the drive's electronics
//! when the previous command ends. Two learned quantities form a guard time before it:
//!
//! * the host's lateness after a requested wake-up (zero in the simulator, microseconds to
//!   milliseconds in real time)
//! * the prediction error of command ends
//!
//! A late dispatch costs more than its delay. The request was selected because its first sector
//! passes soon after the head arrives; a head that arrives too late waits a whole revolution. With
//! many requests waiting, the remaining rotational latency is about a sixth of a revolution, so a
//! delay costs six times its length on average. An early dispatch costs only a worse selection if a
//! better request arrives in between: about a tenth of the time by which it is early. The guard is
//! therefore large: the largest of the last [`WINDOW`] observations of each quantity.

use headtime_disk::{Dur, Kind, Time};

use super::{Core, Order};
use crate::overheads::{between, lead_in, to_drive};
use crate::request::{Prediction, Request, Surprise};

/// When the next command is dispatched while one is in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Commitment {
    /// As soon as there is room.
    Early,
    /// As late as it can be without the head waiting for it.
    #[default]
    Late,
}

/// Number of observations that a guard covers.
const WINDOW: usize = 64;
/// Number of observations after which a guard is recomputed.
const AFRESH: u32 = 16;
/// Assumed lateness of the host before the first observation.
const UNKNOWN_HOST: Dur = Dur::from_us(300);

/// Maximum of the latest observations of a duration.
#[derive(Clone, Debug)]
struct Learned {
    seen: [u32; WINDOW],
    count: u32,
    guard: Dur,
}

impl Learned {
    fn new(guard: Dur) -> Learned {
        Learned { seen: [guard.0 as u32; WINDOW], count: 0, guard }
    }

    fn add(&mut self, time: Dur) {
        self.seen[self.count as usize % WINDOW] = u32::try_from(time.0).unwrap_or(u32::MAX);
        self.count = self.count.wrapping_add(1);
        if self.count.is_multiple_of(AFRESH) {
            self.guard = Dur(u64::from(self.seen.into_iter().max().unwrap_or(0)));
        }
    }
}

/// The state of late commitment.
#[derive(Clone, Debug)]
pub(super) struct Commit {
    late: bool,
    host: Learned,
    error: Learned,
    /// When the driver must call `tick`, to dispatch or only to observe its lateness.
    asked: Option<Time>,
    /// Nothing is dispatched before `asked`.
    waits: bool,
}

impl Commit {
    /// Creates the state. Late commitment needs two outstanding commands: with more, the drive
    /// selects among them; with one, it is idle whenever the next command is dispatched.
    pub(super) fn new(max_outstanding: u32) -> Commit {
        Commit {
            late: max_outstanding == 2,
            host: Learned::new(UNKNOWN_HOST),
            error: Learned::new(Dur::ZERO),
            asked: None,
            waits: false,
        }
    }

    pub(super) fn set(&mut self, commitment: Commitment) {
        self.late &= commitment == Commitment::Late;
    }

    /// Returns until when nothing is dispatched.
    #[inline]
    pub(super) fn waits_until(&self) -> Option<Time> {
        self.asked.filter(|_| self.waits)
    }

    /// Returns when the driver must call `tick` only to show its lateness.
    #[inline]
    pub(super) fn probes_at(&self) -> Option<Time> {
        self.asked.filter(|_| !self.waits)
    }

    /// Learns the wake-up latency from a call of the driver after the requested wake-up. The tick
    /// shows the latency. Any other call shows a lower bound only, because the tick is still to
    /// come: a bound above the guard is recorded twofold, others not at all.
    #[inline]
    pub(super) fn observe_call(&mut self, now: Time, is_tick: bool) {
        if let Some(asked) = self.asked.filter(|&at| now >= at) {
            let late = now.since(asked);
            match is_tick {
                true => self.host.add(late),
                false if late > self.host.guard => self.host.add(Dur(late.0 * 2)),
                false => {}
            }
            self.asked = None;
        }
        self.waits = false;
    }

    /// Learns the prediction error of a completion, early or late: after a completion that is
    /// reported late, the next command seems to begin late.
    #[inline]
    pub(super) fn completed(&mut self, p: &Prediction) {
        if self.late && p.surprise == Surprise::None {
            self.error.add(Dur(p.predicted.0.abs_diff(p.observed.0)));
        }
    }

    /// Returns the maximum of the host's recent wake-up latencies.
    #[inline]
    pub(super) fn lateness(&self) -> Dur {
        self.host.guard
    }

    /// Returns the maximum of the recent prediction errors.
    #[inline]
    pub(super) fn error(&self) -> Dur {
        self.error.guard
    }

    /// Returns whether a command that must be sent at `latest` is to be sent now.
    fn is_time(&mut self, latest: Time, now: Time) -> bool {
        let latest = Time(latest.0.saturating_sub(self.error.guard.0));
        let at = Time(latest.0.saturating_sub(self.host.guard.0));
        if now < at {
            (self.asked, self.waits) = (Some(at), true);
            return false;
        }
        // If the guard exceeds the remaining time, the command is dispatched at once and needs no
        // wake-up. While the guard is large one is requested anyway: without new observations it
        // could never shrink.
        self.asked = (now < latest && self.host.guard > UNKNOWN_HOST).then_some(latest);
        true
    }
}

impl Core {
    /// Returns whether to select and dispatch the next command now:
    ///
    /// * at once, if there is nothing to select from, if the drive is idle and does not read ahead,
    ///   if the time at which the head becomes free is unknown, or if the command in flight is a
    ///   cache hit;
    /// * while the drive reads a stream, only if the stream's next request is waiting;
    /// * otherwise from shortly before the head becomes free.
    pub(super) fn is_time_to_commit(&mut self) -> bool {
        let selects = self.config.order != Order::Fcfs || self.admit.is_some() || self.fill.is_some();
        let nothing_to_select = self.pool.eligible() == 0 || self.next_request.is_some();
        if !self.commit.late || !selects || nothing_to_select || self.hands_over() {
            return true;
        }
        if self.stays_with_stream() {
            return false;
        }
        let Some(free_at) = self.predictor.head_free_at().or_else(|| self.reads_on_until()) else { return true };
        // All reads have the same lead time, except one that continues the command at the drive. A
        // write first transfers its data over the bus. Only in these two cases must the selection
        // be known here.
        let next = match self.pool.waits_to_write() || self.pool.begins_at(self.dispatch.lbn()) {
            true => self.choose().map(|slot| self.pool.get(slot).request),
            false => None,
        };
        let kind = next.map_or(Kind::Read, |r| r.kind);
        // A write that continues the command at the drive is not dispatched early if writes are
        // merged: more writes may arrive and join its command.
        let merges = self.merges();
        if next.is_some_and(|r| r.kind == Kind::Flush || self.continues(&r) && !(r.kind == Kind::Write && merges)) {
            return true;
        }
        let last = self.predictor.last_kind();
        let data = next.filter(|r| r.kind == Kind::Write).map_or(Dur::ZERO, |r| to_drive(&self.model, r.count));
        let ahead = (lead_in(&self.model, last, kind) + data).saturating_sub(between(&self.model, last, kind));
        self.commit.is_time(Time(free_at.0.saturating_sub(ahead.0)), self.now)
    }

    /// Returns whether it is time to choose among requests that wait outside the core
    /// ([`crate::Custom`]): shortly before the head becomes free for a read.
    pub(super) fn is_time_to_choose(&mut self) -> bool {
        let Some(free_at) = self.predictor.head_free_at().filter(|_| self.commit.late) else { return true };
        let last = self.predictor.last_kind();
        let ahead = lead_in(&self.model, last, Kind::Read).saturating_sub(between(&self.model, last, Kind::Read));
        self.commit.is_time(Time(free_at.0.saturating_sub(ahead.0)), self.now)
    }

    /// Returns until when an idle drive reads ahead, if ORDER's choice does not benefit from it.
    /// `None` with streams: they count a drive without commands as free.
    fn reads_on_until(&mut self) -> Option<Time> {
        if self.streams.is_some() || self.predictor.outstanding() > 0 {
            return None;
        }
        let until = self.predictor.reads_on_until(self.now)?;
        let slot = self.choose()?;
        (!self.may_be_read_ahead(slot) && !self.is_cached(slot)).then_some(until)
    }

    /// Returns the eligible request for which the drive would continue reading without a break.
    pub(super) fn continuation(&mut self) -> Option<u32> {
        let slot = self.pool.read_at(self.predictor.read_end()?)?;
        if !self.predictor.continues(&self.model, self.now) {
            return None;
        }
        self.may_go(slot).then_some(slot)
    }

    /// Returns whether a request continues the command in flight. The drive then continues without
    /// moving, if the request arrives in time.
    fn continues(&self, request: &Request) -> bool {
        let last = self.dispatch.at_drive().last();
        last.is_some_and(|s| s.command.kind == request.kind && s.end == request.lbn)
    }
}
