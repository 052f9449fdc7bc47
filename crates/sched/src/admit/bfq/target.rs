//! Latency targets.
//!
//! An application with a target is *overdue* when one of its requests has waited for half of it:
//! the other half is for the service of the request, and of the one at the drive. An overdue
//! application takes the turn from one that is not, and its oldest request is dispatched first. It
//! must be eligible: one that is ahead of its share waits for its turn as any other, so that a
//! target gives an application its share sooner, and not a larger share. (The kernel's
//! `io.latency` throttles the others instead.)

use std::collections::{BTreeMap, BTreeSet};

use headtime_disk::{Dur, Time};

use super::Bfq;
use crate::admit::Class;

#[derive(Clone, Debug)]
struct Target {
    target: Dur,
    /// Its waiting requests: when they arrived, and their identifiers, oldest first.
    waiting: Vec<(Time, u64)>,
}

impl Target {
    /// Returns when it is overdue; `None`: nothing of it waits.
    fn due(&self) -> Option<Time> {
        Some(self.waiting.first()?.0 + Dur(self.target.0 / 2))
    }
}

/// The targets, by queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Targets {
    by_queue: BTreeMap<u32, Target>,
    /// When each queue with waiting requests is overdue.
    due: BTreeSet<(Time, u32)>,
}

impl Targets {
    /// Sets, changes or removes a target. A changed one also holds for waiting requests, a first
    /// one only for those that arrive from now on.
    pub(super) fn set(&mut self, queue: u32, target: Option<Dur>) {
        match target {
            None => {
                self.change(queue, |t| t.waiting.clear());
                self.by_queue.remove(&queue);
            }
            Some(target) => {
                self.by_queue.entry(queue).or_insert(Target { target, waiting: Vec::new() });
                self.change(queue, |t| t.target = target);
            }
        }
    }

    pub(super) fn arrived(&mut self, queue: u32, request: u64, now: Time) {
        self.change(queue, |t| t.waiting.push((now, request)));
    }

    pub(super) fn sent(&mut self, queue: u32, request: u64) {
        self.change(queue, |t| {
            if let Some(at) = t.waiting.iter().position(|w| w.1 == request) {
                t.waiting.remove(at);
            }
        });
    }

    /// Changes a target, if the queue has one, and when it is overdue.
    fn change(&mut self, queue: u32, change: impl FnOnce(&mut Target)) {
        let Some(t) = self.by_queue.get_mut(&queue) else { return };
        let before = t.due();
        change(t);
        let after = t.due();
        if before == after {
            return;
        }
        if let Some(at) = before {
            assert!(self.due.remove(&(at, queue)), "a waiting request is overdue at some time");
        }
        if let Some(at) = after {
            self.due.insert((at, queue));
        }
    }

    fn is_overdue(&self, queue: u32, now: Time) -> bool {
        self.by_queue.get(&queue).and_then(Target::due).is_some_and(|at| at <= now)
    }
}

impl Bfq {
    /// Returns the overdue and eligible application whose oldest request is most overdue; the
    /// active one, if it is overdue itself.
    pub(super) fn overdue(&self, now: Time) -> Option<u32> {
        if self.targets.by_queue.is_empty() {
            return None;
        }
        let active = self.active.map(|a| a.queue).filter(|&queue| self.targets.is_overdue(queue, now));
        let virtual_now = self.best_effort.now();
        let is_eligible = |queue| self.best_effort.stamps(queue).is_some_and(|s| s.start <= virtual_now);
        active.or_else(|| {
            let mut due = self.targets.due.range(..=(now, u32::MAX)).map(|&(_, queue)| queue);
            due.find(|&queue| is_eligible(queue))
        })
    }

    /// Returns when an application will be overdue that is not yet.
    pub(super) fn next_overdue(&self, now: Time) -> Time {
        self.targets.due.range((now, u32::MAX)..).map(|&(at, _)| at).find(|at| *at > now).unwrap_or(Time::NEVER)
    }

    /// Ends the turn of an application that is not overdue, for one that is. One of the idle class
    /// dispatches a request first: its turn comes once in a long time.
    pub(super) fn displace_for(&mut self, overdue: u32) {
        if let Some(active) = &mut self.active {
            let stays = active.class == Class::Idle && active.since.is_none();
            active.displaced |= active.queue != overdue && !stays;
        }
    }
}
