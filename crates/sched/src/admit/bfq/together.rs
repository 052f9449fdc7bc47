//! Joint service of scattered applications of equal weight: ORDER selects among the requests of all
//! of them, without idling.
//!
//! A separate turn and idling benefit an application whose next request is near the head. The next
//! request of a scattered application may be anywhere: idling for it gains nothing, and while it is
//! served alone ORDER has one request to choose from where a drive's own queue has all. Therefore,
//! if every busy application is scattered, none has a raised weight and all weights are equal,
//! there are no turns. (The kernel's BFQ does not idle then either: its "symmetric scenario".) As
//! soon as one application differs, turns resume.
//!
//! # Charges and guarantee
//!
//! A scattered application is served by time (section 3.5): instead of a whole budget per slice,
//! each request is charged the transfer at the peak rate in the time of such a request: its
//! sectors, plus the mean positioning of all. The positioning charge is the same for all
//! applications, so that one whose region is at an edge of the disk does not get less for it.
//!
//! An application is eligible only while its charge exceeds that of the waiting application
//! furthest behind by at most [`AHEAD`] largest budgets. The latter is always eligible. Of two
//! applications that stay backlogged, neither is ever further ahead of the other than that plus one
//! request.
//!
//! # Applications with disjoint regions of the disk
//!
//! Exports are regions of a disk. The next request of such an application is near the head compared
//! with those of the others, and an order by position favours the middle regions. A bound alone
//! makes it worse: applications in the middle are always at the bound, and the remaining candidates
//! are at both edges. Service is therefore divided into *rounds*: in each, an application is served
//! for at most [`super::BfqRules::visit`] of disk time, and ORDER chooses among all applications
//! with quota left. Before the next command is selected, the disk idles for the application whose
//! request was dispatched last, if its think time is usually within
//! [`super::BfqRules::idle_random`], so that its next request is a candidate, too. On the drives of
//! claim B16, four to ten such applications get 5 to 14% more than from the drive's own queue, and
//! 10 to 15% less without rounds and idling.
//!
//! Regions count as disjoint if the mean positions of the applications are further apart than the
//! requests of each.

use std::collections::{BTreeMap, BTreeSet};

use headtime_disk::{Dur, Time};

use super::Bfq;
use super::budget::Over;
use crate::admit::{ASYNCHRONOUS, Class};
use crate::request::Request;

/// Above this number applications take turns, because ORDER would visit each for every command.
const MAX_TOGETHER: usize = 256;

/// Largest budgets by which an application may be ahead of the others: half a second of disk time.
/// Chosen from measurements of 1, 2 and 4: the slowest cell of claim B16 had 98.3, 98.8 and 99.4%
/// of the requests of the drive's own queue.
pub const AHEAD: u64 = 4;

/// Whether an application can be served together with the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Grouping {
    /// It has no request and no turn.
    #[default]
    Absent,
    /// It is scattered and not raised; its weight is this.
    Alike(u32),
    /// It needs turns.
    Unlike,
}

/// State of joint service.
#[derive(Clone, Debug, Default)]
pub(super) struct Together {
    /// Number of alike applications by weight.
    alike: BTreeMap<u32, u32>,
    /// Number of unlike applications.
    unlike: u32,
    /// Ends of weight raising.
    raised: BTreeSet<(Time, u32)>,
    /// Requests in flight that were dispatched without turns: queue, sectors and dispatch time.
    at_drive: Vec<(u32, u64, Time)>,
    /// Time of the last completion.
    pub(super) answered: Time,
    /// Mean positioning per request, in sectors at the peak rate; `None`: not known yet.
    positioning: Option<u64>,
    /// Recently busy applications.
    lately: BTreeSet<u32>,
    /// Whether they have disjoint regions.
    parts: bool,
    /// In how many arrivals that is checked again.
    look_in: usize,
    /// Mean number of requests per application.
    requests: u64,
    /// Number of the current round.
    round: u64,
    /// Queue of the request dispatched last.
    last: u32,
}

/// Charge of an application in a round.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Visit {
    round: u64,
    charged: u64,
}

impl Together {
    fn count(&mut self, grouping: Grouping, more: bool) {
        match grouping {
            Grouping::Absent => {}
            Grouping::Unlike if more => self.unlike += 1,
            Grouping::Unlike => self.unlike -= 1,
            Grouping::Alike(weight) if more => *self.alike.entry(weight).or_default() += 1,
            Grouping::Alike(weight) => {
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
    /// Updates the grouping of an application whose requests, turn, weight or class changed.
    pub(super) fn stands(&mut self, queue: u32, now: Time) {
        if !self.rules.together {
            return;
        }
        let active = self.active.is_some_and(|a| a.queue == queue);
        let Some(a) = self.applications.get_mut(queue) else { return };
        let raised = self.rules.low_latency.and_then(|_| a.raised_until()).filter(|&until| now < until);
        let alike =
            raised.is_none() && queue != ASYNCHRONOUS && a.share.class == Class::BestEffort && a.pattern.is_scattered();
        let grouping = match active || !a.is_idle() {
            false => Grouping::Absent,
            true if alike => Grouping::Alike(a.share.weight),
            true => Grouping::Unlike,
        };
        let before = std::mem::replace(&mut a.grouping, grouping);
        if before != grouping {
            self.together.count(before, false);
            self.together.count(grouping, true);
        }
        if let (Grouping::Unlike, Some(until)) = (grouping, raised) {
            self.together.raised.insert((until, queue));
        }
    }

    /// Returns the maximum credit of a deceptively idle application, in sectors. Without turns it
    /// must exceed the lead that the others may have: otherwise they would never have to let it be
    /// dispatched first.
    pub(super) fn credit(&self, queue: u32) -> u64 {
        let alike = matches!(self.applications[queue].grouping, Grouping::Alike(_));
        self.rate.most() * if alike { AHEAD + 1 } else { 1 }
    }

    /// Returns whether there are no turns now. The active application loses its turn.
    pub(super) fn is_together(&mut self, now: Time) -> bool {
        while let Some(&(until, queue)) = self.together.raised.first().filter(|r| r.0 <= now) {
            self.together.raised.remove(&(until, queue));
            self.stands(queue, now);
        }
        let t = &self.together;
        let together = t.unlike == 0
            && t.alike.len() == 1
            && self.rules.idle > Dur::ZERO
            && self.best_effort.backlogged() <= MAX_TOGETHER;
        if together && self.active.is_some() {
            self.expire(Over::Displaced, now);
        }
        together
    }

    /// Checks whether applications have disjoint regions, once per as many arrivals as there are
    /// applications.
    pub(super) fn look_at_parts(&mut self, queue: u32, now: Time) {
        if !self.rules.together {
            return;
        }
        let (applications, t) = (&self.applications, &mut self.together);
        if self.best_effort.backlogged() > MAX_TOGETHER {
            // They take turns.
            t.lately.clear();
            (t.look_in, t.parts) = (0, false);
            return;
        }
        t.lately.insert(queue);
        if t.look_in > 0 {
            t.look_in -= 1;
            return;
        }
        let idle = self.rules.idle;
        let is_recent = |queue: &u32| {
            let a = applications.get(*queue);
            a.is_some_and(|a| !a.is_idle() || now.saturating_since(a.idle_since) <= idle)
        };
        t.lately.retain(is_recent);
        t.look_in = t.lately.len();
        let applications: Vec<_> = t.lately.iter().map(|&queue| &applications[queue]).collect();
        let requests: u64 = applications.iter().map(|a| u64::from(a.queued + a.outstanding)).sum();
        t.requests = requests / (applications.len() as u64).max(1);
        let patterns = || applications.iter().map(|a| &a.pattern);
        let all: u128 = patterns().map(|p| u128::from(p.middle())).sum();
        let middle = (all / (applications.len() as u128).max(1)) as u64;
        let apart: u128 = patterns().map(|p| u128::from(p.middle().abs_diff(middle))).sum();
        t.parts = apart > patterns().map(|p| u128::from(p.spread())).sum();
    }

    /// Returns the maximum charge of an application in a round: it grows with the mean number of
    /// requests per application, so that each request waits for as many visits as if it were its
    /// application's only one, up to the charge of a slice.
    fn quota(&self) -> u64 {
        let (most, slice) = (u128::from(self.rate.most()), self.rules.slice);
        let visit = Dur(self.rules.visit.0 * self.together.requests.max(1)).min(slice);
        (most * u128::from(visit.0) / u128::from(slice.0.max(1))) as u64
    }

    fn has_quota(&self, queue: u32) -> bool {
        let visit = self.applications[queue].visit;
        visit.round < self.together.round || visit.charged < self.quota()
    }

    /// Adds the eligible queues.
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

    /// Returns until when the disk idles for the application whose request was dispatched last, if
    /// regions are disjoint.
    pub(super) fn waits_for_last(&self, now: Time) -> Option<Time> {
        let t = &self.together;
        let a = self.applications.get(t.last).filter(|a| t.parts && a.queued == 0 && !self.rules.ncq)?;
        let most = self.rules.idle_random;
        if a.think > most || !matches!(a.share.class, Class::BestEffort) || !self.has_quota(t.last) {
            return None;
        }
        // Decided again at the completion.
        let until = if a.outstanding > 0 { now + self.rules.slice } else { a.idle_since + most };
        (now < until).then_some(until)
    }

    /// Accounts a request dispatched without turns.
    pub(super) fn sent_together(&mut self, queue: u32, request: &Request, now: Time) {
        let sectors = u64::from(request.count);
        let charge = sectors + self.together.positioning.unwrap_or(0);
        if !self.has_quota(queue) {
            self.together.round += 1;
        }
        let t = &mut self.together;
        t.at_drive.push((queue, sectors, now));
        t.last = queue;
        let a = self.applications.get_mut(queue).expect("it was chosen from those that wait");
        let before = if a.visit.round == t.round { a.visit.charged } else { 0 };
        a.visit = Visit { round: t.round, charged: before + charge };
        a.sent(sectors);
        let a = &self.applications[queue];
        let next = (a.queued > 0).then(|| (self.weight(a, now), a.budget));
        self.best_effort.choose_this(queue);
        self.best_effort.served(charge);
        self.best_effort.expire(charge, next);
    }

    /// Accounts a completion of any application.
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

    /// Excludes the time until now, in which the disk served streams.
    pub(super) fn others_until(&mut self, now: Time) {
        self.together.answered = now;
    }
}
