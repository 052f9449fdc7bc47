//! What a driver needs of a scheduler, in virtual time or in real time, and the scheduler that does
//! nothing.

use std::collections::VecDeque;

use headtime_disk::command::{Command, Outcome};
use headtime_disk::time::Time;

use crate::admit::das::streams::Standing;
use crate::core::{Core, Refused};
use crate::fill::report::Report;
use crate::request::{Action, Finished, Request};
use crate::stats::PredictionStats;

/// The core's contract as a trait: told things, asked things.
pub trait Scheduler {
    /// Tells it of a new request.
    fn submit(&mut self, request: Request, now: Time) -> Result<(), Refused>;
    /// Tells it that the drive finished a command.
    fn complete(&mut self, command: u64, outcome: Outcome, now: Time);
    /// Tells it the time.
    fn tick(&mut self, now: Time);
    /// What it wants done; to be called until `None` after every telling.
    fn poll(&mut self) -> Option<Action>;
    /// When it wants to be told the time, if nothing else happens before.
    fn next_wakeup(&self) -> Option<Time>;
    /// How good its predictions were so far; `None` where it makes none.
    fn prediction(&self) -> Option<&PredictionStats> {
        None
    }
    /// Whether the drive's write cache is on, where its answers contradict what was said of it;
    /// `None`: they do not.
    fn write_cache(&self) -> Option<bool> {
        None
    }
    /// Sectors at the front of a command at the drive that are moved for free; all of them when
    /// nothing else is.
    fn free_sectors(&self, _command: u64) -> u32 {
        0
    }
    /// The foreground request that a command at the drive is for; `None` when all of it is
    /// background work.
    fn request_of(&self, command: u64) -> Option<u64>;
    /// The foreground requests behind it in the same command, in the order of their LBNs: a write
    /// carries the data of all.
    fn requests_behind(&self, command: u64) -> Vec<u64>;
    /// Searches for freeblock work so far.
    fn searches(&self) -> u64 {
        0
    }
    /// What the freeblock subsystem says of itself; `None` where there is none.
    fn freeblock(&self) -> Option<Report> {
        None
    }
    /// The streams at work, and how they fare; none where there are no promises.
    fn standings(&self) -> Vec<Standing> {
        Vec::new()
    }
    /// The core, for background work; `None` where there is none.
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
    fn freeblock(&self) -> Option<Report> {
        Core::freeblock(self)
    }
    fn standings(&self) -> Vec<Standing> {
        Core::standings(self)
    }
    fn core(&mut self) -> Option<&mut Core> {
        Some(self)
    }
}

/// Gives the drive as many commands as it may have, in the order they came, and leaves the choice
/// to its firmware.
///
/// This is what most systems do with a drive that has a queue; experiment F6 compares it with
/// scheduling outside.
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
    /// At most `depth` commands at the drive, at most `capacity` requests waiting.
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

    /// Commands have their requests' names.
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
    use headtime_disk::command::Kind;

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
