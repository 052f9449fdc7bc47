//! A scheduler whose order is a function of the caller's.

use headtime_disk::{Dur, Model, Outcome, Time};

use crate::core::{Config, Core, Refused};
use crate::order::Order;
use crate::request::{Action, Request};
use crate::scheduler::Scheduler;
use crate::stats::PredictionStats;

/// A waiting request, as an order of the caller's sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The request.
    pub request: Request,
    /// How long it has waited.
    pub waited: Dur,
    /// The predicted seek and rotational latency, if it is dispatched next; `None` for a flush.
    pub positioning: Option<Dur>,
}

/// An order of the caller's.
pub trait Choose {
    /// Returns the index of the request to dispatch next. `waiting` has one or more, in order of
    /// arrival. A larger index means the last one.
    fn choose(&mut self, waiting: &[Candidate], now: Time) -> usize;
}

impl<F: FnMut(&[Candidate], Time) -> usize> Choose for F {
    fn choose(&mut self, waiting: &[Candidate], now: Time) -> usize {
        self(waiting, now)
    }
}

/// The core with an order of the caller's. Requests wait here; the chosen one goes to the core,
/// which predicts where the head will be. There are no admission policies and no background work.
#[derive(Debug)]
pub struct Custom<C> {
    core: Core,
    choose: C,
    capacity: usize,
    waiting: Vec<(Request, Time)>,
    /// Chosen requests that are not finished, and when they arrived.
    chosen: Vec<(u64, Time)>,
    candidates: Vec<Candidate>,
    now: Time,
}

impl<C: Choose> Custom<C> {
    /// Creates a scheduler with at most `depth` commands in flight and `capacity` waiting requests,
    /// for a drive described by `model`. Panics if either is zero.
    pub fn new(depth: u32, capacity: usize, model: Model, choose: C) -> Custom<C> {
        let config = Config::new(Order::Fcfs).with_outstanding(depth).with_capacity(depth as usize + 1);
        assert!(capacity > 0, "no request could ever wait");
        Custom {
            core: Core::new(config, model),
            choose,
            capacity,
            waiting: Vec::new(),
            chosen: Vec::new(),
            candidates: Vec::new(),
            now: Time::ZERO,
        }
    }

    /// Passes the chosen request on to the core.
    fn pass_one(&mut self) {
        let Custom { core, choose, waiting, candidates, now, .. } = self;
        candidates.clear();
        candidates.extend(waiting.iter().map(|(request, since)| Candidate {
            request: *request,
            waited: now.saturating_since(*since),
            positioning: core.predicted_access(request).map(|a| a.positioning()),
        }));
        let at = choose.choose(candidates, *now).min(waiting.len() - 1);
        let (request, since) = waiting.remove(at);
        core.submit(request, *now).expect("checked on arrival, and the core has room");
        self.chosen.push((request.id, since));
    }
}

impl<C: Choose> Scheduler for Custom<C> {
    fn submit(&mut self, request: Request, now: Time) -> Result<(), Refused> {
        self.core.tick(now);
        self.now = now;
        if self.waiting.len() >= self.capacity {
            return Err(Refused::Full { capacity: self.capacity });
        }
        self.core.check(&request)?;
        self.waiting.push((request, now));
        Ok(())
    }

    fn complete(&mut self, command: u64, outcome: Outcome, now: Time) {
        self.now = now;
        self.core.complete(command, outcome, now);
    }

    fn tick(&mut self, now: Time) {
        self.now = now;
        self.core.tick(now);
    }

    fn poll(&mut self) -> Option<Action> {
        loop {
            match self.core.poll() {
                Some(Action::Finish(mut finished)) => {
                    let at = self.chosen.iter().position(|(id, _)| *id == finished.request);
                    let (_, since) = self.chosen.swap_remove(at.expect("a request that was passed on"));
                    finished.submitted = since;
                    return Some(Action::Finish(finished));
                }
                Some(action) => return Some(action),
                None if self.waiting.is_empty() || !self.core.wants_one() => return None,
                None => self.pass_one(),
            }
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.core.next_wakeup()
    }

    fn prediction(&self) -> Option<&PredictionStats> {
        Scheduler::prediction(&self.core)
    }

    fn write_cache(&self) -> Option<bool> {
        Scheduler::write_cache(&self.core)
    }

    fn request_of(&self, command: u64) -> Option<u64> {
        self.core.request_of(command)
    }

    fn requests_behind(&self, command: u64) -> Vec<u64> {
        self.core.requests_behind(command).collect()
    }
}
