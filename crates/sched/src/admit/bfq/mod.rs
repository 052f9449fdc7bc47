//! BFQ, budget fair queueing, and BFQ+ (Valente 2014, seed 003).
//!
//! One application is *active* at a time. Its requests are dispatched until its budget is used up,
//! its slice ends, or its queue is empty; then [`super::bwf2q`] selects the next application. An
//! application with synchronous requests has an empty queue while the drive serves its request. The
//! disk idles for it until the completion and a little longer (section 3.4).
//!
//! * [`rules`]: constants and switches
//! * [`active`]: the turn of the application in service
//! * [`charge`]: what a turn is charged
//! * [`limits`]: what the active application may dispatch
//! * [`budget`]: size of the next budget
//! * [`rate`]: size of the largest budget
//! * [`application`]: access patterns and weight raising
//! * [`beginning`], [`burst`], [`soft_real_time`]: whose weight is raised
//! * [`target`]: latency targets
//! * [`together`]: service without turns

mod active;
pub(crate) mod application;
mod beginning;
pub(crate) mod budget;
mod burst;
mod charge;
mod limits;
pub(crate) mod rate;
pub(crate) mod rules;
pub(crate) mod soft_real_time;
mod target;
pub(crate) mod together;

use std::collections::{BTreeMap, BTreeSet};

use headtime_disk::{Dur, Kind, Time};

use super::bwf2q::{Bwf2q, Since};
use super::by_queue::ByQueue;
use super::{ASYNCHRONOUS, Admission, Class, Share, Sweep, Turn, set_membership, turn_of};
use crate::request::Request;
use active::Active;
use application::{Application, Pattern};
use budget::Over;
use burst::Burst;
use rate::{PeakRate, Service};
pub use rules::{AsynchronousLimits, BfqRules, Bursts, LowLatency, SoftRealTime};
use target::Targets;
use together::Together;

/// Pause after which an application begins anew (`T_idle`, section 4.1).
const NEW_AFTER: Dur = Dur::from_secs(2);

/// The BFQ policy.
#[derive(Debug)]
pub struct Bfq {
    rules: BfqRules,
    sector_bytes: u32,
    /// `B_rais` in sectors, and the distance in sectors beyond which an application is random.
    raised_sectors: u64,
    random_beyond: u64,
    rate: PeakRate,
    best_effort: Bwf2q,
    idle_class: Bwf2q,
    idle_class_served: Time,
    applications: ByQueue<Application>,
    shares: BTreeMap<u32, Share>,
    active: Option<Active>,
    /// Synchronous requests at the drive.
    synchronous: u32,
    burst: Burst,
    targets: Targets,
    /// Applications whose next request is held back above the scheduler.
    held_back: BTreeSet<u32>,
    sweep: Sweep,
    together: Together,
    wakeup: Option<Time>,
}

impl Bfq {
    /// Creates the policy without applications.
    pub fn new(rules: BfqRules, sector_bytes: u32) -> Bfq {
        let sectors = |bytes: u64| (bytes / u64::from(sector_bytes)).max(1);
        Bfq {
            raised_sectors: rules.low_latency.map_or(1, |l| sectors(l.bytes)),
            random_beyond: sectors(rules.random_beyond),
            rate: PeakRate::new(rules.peak_rate, rules.slice, sectors(rules.first_budget)),
            best_effort: Bwf2q::new(),
            idle_class: Bwf2q::new(),
            idle_class_served: Time::ZERO,
            applications: ByQueue::default(),
            shares: BTreeMap::new(),
            active: None,
            synchronous: 0,
            burst: Burst::default(),
            targets: Targets::default(),
            held_back: BTreeSet::new(),
            sweep: Sweep::new(),
            together: Together::default(),
            wakeup: None,
            sector_bytes,
            rules,
        }
    }

    /// Returns the number of known applications: backlogged ones and those that were recently.
    pub fn known_applications(&self) -> usize {
        self.applications.len()
    }

    fn fair(&mut self, class: Class) -> &mut Bwf2q {
        match class {
            Class::BestEffort => &mut self.best_effort,
            Class::Idle => &mut self.idle_class,
        }
    }

    /// Returns the application, after adding it if it is unknown.
    fn known(&mut self, queue: u32, now: Time) -> &mut Application {
        if self.applications.get(queue).is_none() {
            self.sweep(now);
            let share = self.shares.get(&queue).copied().unwrap_or_default();
            let new = Application::new(share, budget::first(self.rules.throughput, self.rate.most()), now);
            self.applications.insert(queue, new);
        }
        self.applications.get_mut(queue).expect("it is known now")
    }

    /// Drops the state of departed applications.
    fn sweep(&mut self, now: Time) {
        if !self.sweep.is_due(self.applications.len()) {
            return;
        }
        let (best_effort, idle_class) = (&mut self.best_effort, &mut self.idle_class);
        // The application served last may still be the active one if no other has arrived since.
        let active = self.active.map(|a| a.queue);
        self.applications.retain(|queue, a| {
            let gone = Some(queue) != active && a.is_idle() && Sweep::has_gone(a.idle_since, now);
            if gone {
                best_effort.forget(queue);
                idle_class.forget(queue);
            }
            !gone
        });
        self.sweep.done(self.applications.len());
    }

    /// Returns the application's current weight, raised or its own.
    fn weight(&self, a: &Application, now: Time) -> u64 {
        a.weight(self.raised_sectors, now)
    }

    fn is_random(&self, a: &Application) -> bool {
        a.pattern.is_random(self.random_beyond)
    }

    /// Ends the active application's turn.
    fn expire(&mut self, over: Over, now: Time) {
        let active = self.active.take().expect("a queue is in service");
        let most = self.rate.most();
        let a = &self.applications[active.queue];
        let until = if a.is_idle() { a.idle_since + active.others } else { now };
        let time = active.since.map_or(Dur::ZERO, |since| until.saturating_since(since));
        let charged = self.charge(&active, over, time, most);
        let timed_out = over == Over::Timeout;
        if active.queue != ASYNCHRONOUS {
            let random = self.is_random(a);
            self.rate.sample(&Service { sectors: active.sectors, time, timed_out, random });
        }
        let most = self.rate.most();
        let budget = budget::next(self.rules.throughput, over, active.budget, active.charged, most);
        let budget = self.budget_of(active.queue, budget);
        // The share may have changed, including the class.
        let class = a.share.class;
        let next = (a.queued > 0).then(|| (self.weight(a, now), budget));
        let a = self.applications.get_mut(active.queue).expect("the active application is known");
        a.budget = budget;
        if timed_out {
            a.timed_out();
        }
        let fair = self.fair(active.class);
        fair.served(charged - active.charged);
        if class == active.class {
            fair.expire(charged, next);
        } else {
            fair.expire(charged, None);
            if let Some((weight, budget)) = next {
                self.fair(class).activate(active.queue, weight, budget, Since::Idle);
            }
        }
        self.stands(active.queue, now);
    }

    /// Returns the maximum service time of a turn.
    fn slice(&self, a: &Application, now: Time) -> Dur {
        // A soft real-time application needs little of a slice.
        let raised = self.rules.low_latency.filter(|l| l.longer_slices && a.is_raised(now) && !a.is_soft(now));
        match raised {
            None => self.rules.slice,
            Some(_) => {
                let weight = self.weight(a, now);
                let own = a.own_weight().max(1);
                Dur((u128::from(self.rules.slice.0) * u128::from(weight) / u128::from(own)) as u64)
            }
        }
    }

    /// Returns whether the next turn is one of the idle class: nothing else waits, or it has waited
    /// for long, also behind an application that is always overdue.
    fn is_idle_class_first(&self, now: Time) -> bool {
        let starved = now.saturating_since(self.idle_class_served) >= self.rules.idle_class_turn;
        self.idle_class.backlogged() > 0 && (starved || self.best_effort.backlogged() == 0)
    }

    /// Selects the next application: the overdue one, or the next by their shares.
    fn next(&mut self, now: Time) -> Option<()> {
        let idle_first = self.is_idle_class_first(now);
        let overdue = self.overdue(now).filter(|_| !idle_first);
        let class = if idle_first { Class::Idle } else { Class::BestEffort };
        let queue = match overdue {
            Some(queue) => {
                self.best_effort.choose_this(queue);
                queue
            }
            None => self.fair(class).choose()?,
        };
        if class == Class::Idle || self.idle_class.backlogged() == 0 {
            self.idle_class_served = now;
        }
        let a = &self.applications[queue];
        let limits = self.rules.asynchronous.filter(|_| queue == ASYNCHRONOUS);
        let slice = limits.map_or_else(|| self.slice(a, now), |l| l.slice);
        self.active = Some(Active::new(queue, class, self.budget_of(queue, a.budget), slice));
        Some(())
    }
}

impl Admission for Bfq {
    fn arrived(&mut self, queue: u32, request: &Request, now: Time) {
        self.look_at_parts(queue, now);
        let (idle, far) = (self.rules.idle, self.random_beyond);
        // An application stays active until another arrives. If it returns after the idling period,
        // it starts a new turn.
        let left = self.active.filter(|a| a.queue == queue && a.since.is_some() && now >= a.waits_until);
        if left.is_some() && self.applications[queue].is_idle() {
            self.expire(Over::NoMore { outstanding: false }, now);
        }
        let active = self.active.is_some_and(|a| a.queue == queue);
        self.targets.arrived(queue, request.id, now);
        let is_new = self.applications.get(queue).is_none();
        let a = self.known(queue, now);
        let was_idle = a.is_idle();
        if was_idle && a.pattern != Pattern::default() {
            // Longer pauses are all equivalent: the disk does not idle that long.
            let think = now.saturating_since(a.idle_since).min(idle);
            a.think = Dur(a.think.0 - a.think.0 / 8 + think.0 / 8);
        }
        if request.kind != Kind::Flush {
            a.pattern.add(request, far);
        }
        a.queued += 1;
        if a.queued > 1 || active {
            return self.stands(queue, now);
        }
        // The application has become backlogged.
        let idle_for = if was_idle { now.saturating_since(a.idle_since) } else { Dur::ZERO };
        // One that its limit held back has not paused.
        let paused_for = idle_for.min(now.saturating_since(a.held_until));
        self.becomes_backlogged(queue, (!is_new).then_some(paused_for), now);
        self.stands(queue, now);
        let a = &self.applications[queue];
        let (weight, budget, class) = (self.weight(a, now), self.budget_of(queue, a.budget), a.share.class);
        let since = match queue != ASYNCHRONOUS && idle_for <= idle {
            true => Since::Deceptively { most: self.credit(queue) },
            false => Since::Idle,
        };
        self.fair(class).activate(queue, weight, budget, since);
    }

    fn turn(&mut self, now: Time) -> Turn {
        self.wakeup = None;
        let is_together = self.is_together(now);
        let overdue = self.overdue(now);
        if is_together {
            if let Some(queue) = overdue {
                return Turn::Queue(queue, Dur::ZERO);
            }
            let waits = self.waits_for_last(now).filter(|_| self.best_effort.backlogged() > 0);
            let waits = waits.map(|until| until.min(self.next_overdue(now)));
            self.wakeup = waits;
            return match waits {
                Some(until) => Turn::Wait(until),
                None if self.best_effort.backlogged() > 0 => Turn::Together,
                None => Turn::Idle,
            };
        }
        match overdue {
            Some(queue) => self.displace_for(queue),
            None => self.displace_for_raised(now),
        }
        loop {
            let Some(active) = self.active else {
                match self.next(now) {
                    Some(()) => continue,
                    None => return Turn::Idle,
                }
            };
            let a = &self.applications[active.queue];
            match self.look(&active, a, now) {
                Ok(None) if self.has_enough_at_drive(&active, a.outstanding) => {
                    let until = self.next_overdue(now);
                    self.wakeup = Some(until).filter(|until| *until < Time::NEVER);
                    return Turn::Wait(until);
                }
                Ok(None) if self.overdue(now) == Some(active.queue) => return Turn::Queue(active.queue, Dur::ZERO),
                Ok(None) => return turn_of(active.queue, active.since.is_none()),
                Ok(Some(until)) => {
                    let until = until.min(self.next_overdue(now));
                    self.wakeup = Some(until);
                    return Turn::Wait(until);
                }
                Err(over) => self.expire(over, now),
            }
        }
    }

    fn together(&self, queues: &mut Vec<u32>) {
        self.eligible_together(queues);
    }

    fn is_boosted(&self, now: Time) -> bool {
        let raised = |a: &Active| self.applications[a.queue].is_raised(now);
        self.rules.low_latency.is_some() && self.active.as_ref().is_some_and(raised)
    }

    fn sent(&mut self, queue: u32, request: &Request, now: Time) {
        self.targets.sent(queue, request.id);
        self.synchronous += u32::from(queue != ASYNCHRONOUS);
        let Some(active) = self.active.as_mut() else {
            self.sent_together(queue, request, now);
            return self.stands(queue, now);
        };
        assert_eq!(active.queue, queue, "the active application's request is sent");
        let sectors = u64::from(request.count);
        let throttled = queue == ASYNCHRONOUS && request.kind == Kind::Write;
        let charge = if throttled { sectors * self.rules.write_charge } else { sectors };
        active.since.get_or_insert(now);
        active.sectors += sectors;
        active.charged += charge;
        active.requests += 1;
        let class = active.class;
        let a = self.applications.get_mut(queue).expect("the active application is known");
        a.sent(sectors);
        self.fair(class).served(charge);
        self.stands(queue, now);
    }

    fn sent_out_of_turn(&mut self, queue: u32, request: &Request, now: Time) {
        self.targets.sent(queue, request.id);
        self.synchronous += u32::from(queue != ASYNCHRONOUS);
        let a = self.applications.get_mut(queue).expect("whose request waits is known");
        a.sent(u64::from(request.count));
        if a.queued == 0 {
            let class = a.share.class;
            match self.active.filter(|active| active.queue == queue) {
                None => self.fair(class).withdraw(queue),
                // Its turn was for a request that has left the queue.
                Some(active) if active.since.is_none() => self.expire(Over::NoMore { outstanding: true }, now),
                Some(_) => {}
            }
        }
        self.stands(queue, now);
    }

    fn completed(&mut self, queue: u32, _: &Request, now: Time) {
        self.synchronous -= u32::from(queue != ASYNCHRONOUS);
        let a = self.applications.get_mut(queue).expect("whose request was sent is known");
        a.outstanding -= 1;
        if a.is_idle() {
            self.becomes_idle(queue, now);
        }
        let a = &self.applications[queue];
        if let Some(active) = self.active.filter(|active| active.queue == queue && a.outstanding == 0) {
            let waits_until = now + self.waits(&active, a, now);
            self.active = Some(Active { waits_until, others: Dur::ZERO, ..active });
        }
        self.answered(queue, now);
        self.stands(queue, now);
    }

    fn charge_external(&mut self, time: Dur, now: Time) {
        self.others_until(now);
        let Some(active) = &mut self.active else { return };
        if let Some(since) = &mut active.since {
            *since = (*since + time).min(now);
        }
        if self.applications[active.queue].is_idle() {
            active.others += time;
        }
    }

    fn set_share(&mut self, queue: u32, share: Share) {
        self.shares.insert(queue, share);
        let active = self.active.is_some_and(|a| a.queue == queue);
        let Some(a) = self.applications.get_mut(queue) else { return };
        let before = std::mem::replace(&mut a.share, share);
        if before.class != share.class && a.queued > 0 && !active {
            // Without raising, which is for applications that have just started.
            let (weight, budget) = (a.own_weight(), a.budget);
            self.fair(before.class).withdraw(queue);
            self.fair(share.class).activate(queue, weight, budget, Since::Idle);
        }
        self.stands(queue, self.together.answered);
    }

    fn set_latency_target(&mut self, queue: u32, target: Option<Dur>) {
        self.targets.set(queue, target);
    }

    fn set_held_back(&mut self, queue: u32, is: bool, now: Time) {
        let is_changed = set_membership(&mut self.held_back, queue, is);
        if let Some(a) = self.applications.get_mut(queue).filter(|_| is_changed && !is) {
            a.held_until = now;
        }
    }

    fn peak_rate(&self) -> Option<f64> {
        self.rate.estimate()
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.wakeup
    }
}
