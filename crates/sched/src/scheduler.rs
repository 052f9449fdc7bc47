//! The scheduler interface of drivers, in virtual time or in real time, and a pass-through
//! scheduler.

use std::collections::VecDeque;

use headtime_disk::{Command, Dur, Outcome, Time};

use crate::admit::das::streams::StreamStatus;
use crate::core::{Core, Refused};
use crate::fill::report::FillReport;
use crate::request::{Action, Finished, Request};
use crate::stats::PredictionStats;

/// The core's contract as a trait: inputs and actions.
pub trait Scheduler {
    /// Submits a request.
    fn submit(&mut self, request: Request, now: Time) -> Result<(), Refused>;
    /// Reports a completion.
    fn complete(&mut self, command: u64, outcome: Outcome, now: Time);
    /// Advances the time.
    fn tick(&mut self, now: Time);
    /// Returns the next action; must be called until `None` after every input.
    fn poll(&mut self) -> Option<Action>;
    /// Returns when [`Scheduler::tick`] must be called if no other input occurs before.
    fn next_wakeup(&self) -> Option<Time>;
    /// Returns the prediction statistics so far; `None` if it makes no predictions.
    fn prediction(&self) -> Option<&PredictionStats> {
        None
    }
    /// Returns whether the drive's write cache is on, if completions contradict its stated setting;
    /// `None` if they do not.
    fn write_cache(&self) -> Option<bool> {
        None
    }
    /// Returns the number of free sectors at the front of a command in flight; all of them if it is
    /// background work alone.
    fn free_sectors(&self, _command: u64) -> u32 {
        0
    }
    /// Returns the foreground request of a command in flight; `None` if all of it is background
    /// work.
    fn request_of(&self, command: u64) -> Option<u64>;
    /// Returns the foreground requests merged behind it, in order of LBN: a write carries all data.
    fn requests_behind(&self, command: u64) -> Vec<u64>;
    /// Returns the number of searches for freeblock work so far.
    fn searches(&self) -> u64 {
        0
    }
    /// Returns the report of the freeblock subsystem; `None` without one.
    fn freeblock(&self) -> Option<FillReport> {
        None
    }
    /// Returns for how long the disk had no command while requests waited ([`Core::idled`]).
    fn idled(&self, _now: Time) -> Dur {
        Dur::ZERO
    }
    /// Returns the open streams and their statistics; empty without streams.
    fn standings(&self) -> Vec<StreamStatus> {
        Vec::new()
    }
    /// Returns the core, for background work; `None` without one.
    fn core(&mut self) -> Option<&mut Core> {
        None
    }
}

impl Scheduler for Core {
    #[inline]
    fn submit(&mut self, request: Request, now: Time) -> Result<(), Refused> {
        Core::submit(self, request, now)
    }
    #[inline]
    fn complete(&mut self, command: u64, outcome: Outcome, now: Time) {
        Core::complete(self, command, outcome, now);
    }
    #[inline]
    fn tick(&mut self, now: Time) {
        Core::tick(self, now);
    }
    #[inline]
    fn poll(&mut self) -> Option<Action> {
        Core::poll(self)
    }
    #[inline]
    fn next_wakeup(&self) -> Option<Time> {
        Core::next_wakeup(self)
    }
    fn prediction(&self) -> Option<&PredictionStats> {
        Some(&self.stats().prediction)
    }
    fn write_cache(&self) -> Option<bool> {
        self.stats().write_cache
    }
    #[inline]
    fn free_sectors(&self, command: u64) -> u32 {
        Core::free_sectors(self, command)
    }
    fn request_of(&self, command: u64) -> Option<u64> {
        Core::request_of(self, command)
    }
    fn requests_behind(&self, command: u64) -> Vec<u64> {
        Core::requests_behind(self, command).collect()
    }
    fn searches(&self) -> u64 {
        self.stats().cost.fill_searches
    }
    fn freeblock(&self) -> Option<FillReport> {
        Core::freeblock(self)
    }
    fn idled(&self, now: Time) -> Dur {
        Core::idled(self, now)
    }
    fn standings(&self) -> Vec<StreamStatus> {
        Core::standings(self)
    }
    fn core(&mut self) -> Option<&mut Core> {
        Some(self)
    }
}

/// Pass-through scheduler: gives the drive as many commands as its queue depth allows, in order of
/// arrival, and leaves the order to its firmware.
///
/// This is what most systems do with a drive that has a queue; experiment F6 compares it with
/// scheduling outside the drive.
#[derive(Debug)]
pub struct Firmware {
    depth: usize,
    capacity: usize,
    waiting: VecDeque<(Request, Time)>,
    at_drive: Vec<Sent>,
    finished: VecDeque<Finished>,
    now: Time,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    request: u64,
    submitted: Time,
    dispatched: Time,
}

impl Firmware {
    /// Creates a scheduler with at most `depth` commands in flight and at most `capacity` waiting
    /// requests.
    pub fn new(depth: u32, capacity: usize) -> Firmware {
        Firmware {
            depth: depth.max(1) as usize,
            capacity,
            waiting: VecDeque::with_capacity(capacity.min(4096)),
            at_drive: Vec::with_capacity(depth as usize),
            finished: VecDeque::with_capacity(depth as usize),
            now: Time::ZERO,
        }
    }
}

impl Scheduler for Firmware {
    fn submit(&mut self, request: Request, now: Time) -> Result<(), Refused> {
        self.now = now;
        if self.waiting.len() >= self.capacity {
            return Err(Refused::Full { capacity: self.capacity });
        }
        self.waiting.push_back((request, now));
        Ok(())
    }

    fn complete(&mut self, command: u64, outcome: Outcome, now: Time) {
        self.now = now;
        let at = self
            .at_drive
            .iter()
            .position(|s| s.request == command)
            .expect("the drive completed a command it was never given");
        let sent = self.at_drive.swap_remove(at);
        self.finished.push_back(Finished {
            request: sent.request,
            outcome,
            submitted: sent.submitted,
            dispatched: sent.dispatched,
            done: now,
            due: None,
            prediction: None,
        });
    }

    fn tick(&mut self, now: Time) {
        self.now = now;
    }

    fn poll(&mut self) -> Option<Action> {
        if let Some(f) = self.finished.pop_front() {
            return Some(Action::Finish(f));
        }
        if self.at_drive.len() == self.depth {
            return None;
        }
        let (r, submitted) = self.waiting.pop_front()?;
        self.at_drive.push(Sent { request: r.id, submitted, dispatched: self.now });
        Some(Action::Issue(Command { id: r.id, kind: r.kind, lbn: r.lbn, count: r.count, fua: r.fua }))
    }

    fn next_wakeup(&self) -> Option<Time> {
        None
    }

    /// Commands have the ids of their requests.
    fn request_of(&self, command: u64) -> Option<u64> {
        self.at_drive.iter().find(|s| s.request == command).map(|s| s.request)
    }
    fn requests_behind(&self, _command: u64) -> Vec<u64> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_disk::Kind;

    fn request(id: u64) -> Request {
        Request { id, kind: Kind::Read, lbn: id * 8, count: 8, fua: false, sync: true, owner: 0 }
    }

    #[test]
    fn commands_go_out_in_order_up_to_the_depth() {
        let mut f = Firmware::new(2, 3);
        for id in 0..3 {
            f.submit(request(id), Time(id)).unwrap();
        }
        assert_eq!(f.submit(request(3), Time(3)), Err(Refused::Full { capacity: 3 }));
        let issued = |a| match a {
            Some(Action::Issue(c)) => c.id,
            other => panic!("{other:?}"),
        };
        assert_eq!(issued(f.poll()), 0);
        assert_eq!(issued(f.poll()), 1);
        assert_eq!(f.poll(), None);
        // The drive may answer in any order.
        f.complete(1, Outcome::Ok, Time(9));
        match f.poll() {
            Some(Action::Finish(d)) => {
                assert_eq!((d.request, d.submitted, d.done), (1, Time(1), Time(9)));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(issued(f.poll()), 2);
        assert_eq!(f.poll(), None);
    }
}
