//! Scattered applications of equal weight are served together: ORDER selects among the requests of
//! all of them, without idling.
//!
//! A turn of its own and idling pay for an application whose next request lies where the head is.
//! The next request of a scattered one lies anywhere: while the disk waits for it nothing is
//! gained, and while it alone is served ORDER has one request to choose from where a drive's own
//! queue has all. So when every busy application is scattered, none has a raised weight and all
//! have one weight, there are no turns. (The kernel's BFQ does not idle then either: its "symmetric
//! scenario".) As soon as one is not like the others, turns resume.
//!
//! # What an application is charged, and what that guarantees
//!
//! A scattered application is served by time (section 3.5): where it would have been charged a
//! whole budget for a slice, it is charged for each request what passes at the peak rate in the
//! time that such a request takes: its sectors, and for positioning the mean of all. That is the
//! same for each of them, so that one whose part of the disk lies at its edge does not get less for
//! it.
//!
//! An application may be chosen only while what it was charged is at most [`AHEAD`] largest budgets
//! more than that of the one which is furthest behind of those that wait. The latter may always be
//! chosen. So of two applications that are backlogged all the while neither is ever further ahead
//! of the other than that and one request.
//!
//! # Applications with parts of the disk of their own
//!
//! Exports are parts of a disk. Then the next request of an application does lie near the head,
//! compared with those of the others, and an order by position favours the parts in the middle. A
//! bound alone makes it worse: those in the middle are at the bound all the time, and what is left
//! to choose from lies at both edges. So there are *rounds*: in each an application is served for
//! [`super::Rules::visit`] of the disk's time at most, and ORDER has all of those to choose from
//! that have some of it left. And before the next command is selected the one whose request was
//! sent last is waited for, if it usually asks again within [`super::Rules::idle_random`]: its next
//! request is then one of those that ORDER chooses from. On the drives of claim B16 four to ten
//! such applications get 5 to 14% more with it than from the drive's own queue, and 10 to 15% less
//! without.
//!
//! Parts are applications' own when the middles of what they ask for lie further apart than their
//! requests do.

use std::collections::{BTreeMap, BTreeSet};

use headtime_disk::time::{Dur, Time};

use super::Bfq;
use super::budget::Over;
use crate::admit::{ASYNCHRONOUS, Class};
use crate::request::Request;

/// More applications than this take turns: ORDER would look at each of them for every command.
const MOST: usize = 256;

/// Largest budgets by which an application may be ahead of the others: half a second of the disk's
/// time. Chosen from measurements of 1, 2 and 4: the slowest cell of claim B16 had 98.3, 98.8 and
/// 99.4% of the requests of the drive's own queue.
pub const AHEAD: u64 = 4;

/// How an application stands to the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Standing {
    /// It has no request and no turn.
    #[default]
    Absent,
    /// It is scattered, its weight is its own, and it is this.
    Alike(u32),
    /// It has to have turns.
    Unlike,
}

/// All applications that are busy.
#[derive(Clone, Debug, Default)]
pub(super) struct Together {
    /// Those that are alike, by weight.
    alike: BTreeMap<u32, u32>,
    /// How many are not.
    unlike: u32,
    /// Until when weights are raised.
    raised: BTreeSet<(Time, u32)>,
    /// Requests at the drive that were sent while there were no turns: whose, sectors, and since
    /// when.
    at_drive: Vec<(u32, u64, Time)>,
    /// When the drive answered last.
    pub(super) answered: Time,
    /// What positioning for a request takes in the mean, in sectors at the peak rate; `None`: not
    /// known yet.
    positioning: Option<u64>,
    /// Those that were busy lately.
    lately: BTreeSet<u32>,
    /// Whether they have parts of the disk of their own, and in how many arrivals that is looked at
    /// again.
    parts: bool,
    /// How many requests each has, in the mean.
    requests: u64,
    look_in: usize,
    /// The round.
    round: u64,
    /// Whose request was sent last.
    last: u32,
}

/// What an application was charged in a round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Visit {
    round: u64,
    charged: u64,
}

impl Together {
    fn count(&mut self, standing: Standing, more: bool) {
        match standing {
            Standing::Absent => {}
            Standing::Unlike if more => self.unlike += 1,
            Standing::Unlike => self.unlike -= 1,
            Standing::Alike(weight) if more => *self.alike.entry(weight).or_default() += 1,
            Standing::Alike(weight) => {
                let left = self.alike.get_mut(&weight).expect("it was counted");
                *left -= 1;
                if *left == 0 {
                    self.alike.remove(&weight);
                }
            }
        }
    }
}

impl Bfq {
    /// An application's requests, its turn, weight or class changed.
    pub(super) fn stands(&mut self, queue: u32, now: Time) {
        if !self.rules.together {
            return;
        }
        let active = self.active.is_some_and(|a| a.queue == queue);
        let Some(a) = self.applications.get_mut(&queue) else { return };
        let raised = self.rules.low_latency.and_then(|_| a.raised_until()).filter(|&until| now < until);
        let alike =
            raised.is_none() && queue != ASYNCHRONOUS && a.share.class == Class::BestEffort && a.pattern.is_scattered();
        let standing = match active || !a.is_idle() {
            false => Standing::Absent,
            true if alike => Standing::Alike(a.share.weight),
            true => Standing::Unlike,
        };
        let before = std::mem::replace(&mut a.standing, standing);
        if before != standing {
            self.together.count(before, false);
            self.together.count(standing, true);
        }
        if let (Standing::Unlike, Some(until)) = (standing, raised) {
            self.together.raised.insert((until, queue));
        }
    }

    /// What an application that only seemed to be idle has to its credit at most, in sectors. Where
    /// there are no turns it must be more than the others may be ahead of it: else they would never
    /// have to let it go first.
    pub(super) fn credit(&self, queue: u32) -> u64 {
        let alike = matches!(self.applications[&queue].standing, Standing::Alike(_));
        self.rate.most() * if alike { AHEAD + 1 } else { 1 }
    }

    /// Whether there are no turns now. The application that has one loses it.
    pub(super) fn is_together(&mut self, now: Time) -> bool {
        while let Some(&(until, queue)) = self.together.raised.first().filter(|r| r.0 <= now) {
            self.together.raised.remove(&(until, queue));
            self.stands(queue, now);
        }
        let t = &self.together;
        let together =
            t.unlike == 0 && t.alike.len() == 1 && self.rules.idle > Dur::ZERO && self.best_effort.backlogged() <= MOST;
        if together && self.active.is_some() {
            self.expire(Over::Displaced, now);
        }
        together
    }

    /// Looks at whether applications have parts of the disk of their own, once for as many arrivals
    /// as there are applications.
    pub(super) fn look_at_parts(&mut self, queue: u32, now: Time) {
        if !self.rules.together {
            return;
        }
        let (applications, t) = (&self.applications, &mut self.together);
        t.lately.insert(queue);
        if t.look_in > 0 {
            t.look_in -= 1;
            return;
        }
        let idle = self.rules.idle;
        let is_recent = |queue: &u32| {
            let a = applications.get(queue);
            a.is_some_and(|a| !a.is_idle() || now.saturating_since(a.idle_since) <= idle)
        };
        t.lately.retain(is_recent);
        t.look_in = t.lately.len();
        let patterns = || t.lately.iter().map(|queue| &applications[queue].pattern);
        let requests: u64 =
            t.lately.iter().map(|q| &applications[q]).map(|a| u64::from(a.queued + a.outstanding)).sum();
        t.requests = requests / (t.lately.len() as u64).max(1);
        let all: u128 = patterns().map(|p| u128::from(p.middle())).sum();
        let middle = (all / (t.lately.len() as u128).max(1)) as u64;
        let apart: u128 = patterns().map(|p| u128::from(p.middle().abs_diff(middle))).sum();
        t.parts = apart > patterns().map(|p| u128::from(p.spread())).sum();
    }

    /// What an application may be charged in a round: the more requests each has at a time the
    /// more, so that each request waits for as many visits as if it were an application's only one;
    /// and a slice's at most.
    fn quota(&self) -> u64 {
        let (most, slice) = (u128::from(self.rate.most()), self.rules.slice);
        let visit = Dur(self.rules.visit.0 * self.together.requests.max(1)).min(slice);
        (most * u128::from(visit.0) / u128::from(slice.0.max(1))) as u64
    }

    fn has_quota(&self, queue: u32) -> bool {
        let visit = self.applications[&queue].visit;
        visit.round < self.together.round || visit.charged < self.quota()
    }

    /// Those that may be chosen from.
    pub(super) fn eligible_together(&self, queues: &mut Vec<u32>) {
        let all = || self.best_effort.within(AHEAD * self.rate.most());
        if self.together.parts {
            let before = queues.len();
            queues.extend(all().filter(|&queue| self.has_quota(queue)));
            if queues.len() > before {
                return;
            }
        }
        queues.extend(all());
    }

    /// Until when the application whose request was sent last is waited for, of those that have
    /// parts of the disk of their own.
    pub(super) fn waits_for_last(&self, now: Time) -> Option<Time> {
        let t = &self.together;
        let a = self.applications.get(&t.last).filter(|a| t.parts && a.queued == 0)?;
        let most = self.rules.idle_random;
        if a.think > most || !matches!(a.share.class, Class::BestEffort) || !self.has_quota(t.last) {
            return None;
        }
        // It is decided anew when the drive has answered.
        let until = if a.outstanding > 0 { now + self.rules.slice } else { a.idle_since + most };
        (now < until).then_some(until)
    }

    /// A request was chosen while there are no turns.
    pub(super) fn sent_together(&mut self, queue: u32, request: &Request, now: Time) {
        let sectors = u64::from(request.count);
        let charge = sectors + self.together.positioning.unwrap_or(0);
        if !self.has_quota(queue) {
            self.together.round += 1;
        }
        let t = &mut self.together;
        t.at_drive.push((queue, sectors, now));
        t.last = queue;
        let a = self.applications.get_mut(&queue).expect("it was chosen from those that wait");
        let before = if a.visit.round == t.round { a.visit.charged } else { 0 };
        a.visit = Visit { round: t.round, charged: before + charge };
        a.sent(sectors);
        let a = &self.applications[&queue];
        let next = (a.queued > 0).then(|| (self.weight(a, now), a.budget));
        self.best_effort.choose_this(queue);
        self.best_effort.served(charge);
        self.best_effort.expire(charge, next);
    }

    /// The drive answered, whosever request it was.
    pub(super) fn answered(&mut self, queue: u32, now: Time) {
        let t = &mut self.together;
        if let Some(i) = t.at_drive.iter().position(|s| s.0 == queue) {
            let (_, sectors, sent) = t.at_drive.remove(i);
            let time = now.saturating_since(sent.max(t.answered));
            let passed = u128::from(self.rate.most()) * u128::from(time.0) / u128::from(self.rules.slice.0.max(1));
            let positioning = u64::try_from(passed).unwrap_or(u64::MAX).saturating_sub(sectors);
            t.positioning = Some(t.positioning.map_or(positioning, |mean| mean - mean / 8 + positioning / 8));
        }
        t.answered = now;
    }

    /// Until now the disk worked for streams.
    pub(super) fn others_until(&mut self, now: Time) {
        self.together.answered = now;
    }
}
