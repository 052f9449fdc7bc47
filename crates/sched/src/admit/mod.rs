//! ADMIT: of all applications, who may go?
//!
//! Every application has a queue of its own, and what nobody waits for is together in one more
//! ([`ASYNCHRONOUS`]). A policy says whose queue the next command is taken from, or that the disk
//! waits for one; ORDER chooses within that queue, and FILL puts free work before what was chosen.
//! Without a policy all requests are one queue, and nothing here is asked.
//!
//! * [`bfq`]: budgets in sectors, fair by weight ([`bwf2q`] has the order of budgets, [`fluid`] the
//!   ideal that it is held against)
//! * [`cfq`]: slices of time, for comparison
//! * [`das`]: streams with guarantees: admission, and who may go at each decision

pub mod bfq;
pub mod bwf2q;
pub mod cfq;
pub mod das;
pub mod fluid;

use headtime_disk::time::{Dur, Time};

use crate::request::Request;

/// The queue of what nobody waits for (Valente 2014 section 7.2.2: writes are system-wide).
pub const ASYNCHRONOUS: u32 = u32::MAX - 1;

/// The queue of background work that was promoted to the foreground.
pub const BACKGROUND: u32 = u32::MAX;

/// Who has not asked for anything for so long is forgotten; what he is to have is not.
const FORGOTTEN: Dur = Dur::from_secs(60);
/// Looked for whenever so many have become known, and then when their number has doubled: a sweep
/// looks at everybody.
const SWEEP: usize = 1024;

/// When to look for who has gone.
#[derive(Clone, Copy, Debug)]
struct Sweep {
    at: usize,
}

impl Sweep {
    fn new() -> Sweep {
        Sweep { at: SWEEP }
    }

    /// Whether to look, when so many are known.
    fn is_due(self, known: usize) -> bool {
        known >= self.at
    }

    /// So many are left.
    fn done(&mut self, left: usize) {
        self.at = (2 * left).max(SWEEP);
    }

    /// Whether somebody who has had no request since `idle_since` has gone.
    fn has_gone(idle_since: Time, now: Time) -> bool {
        now.saturating_since(idle_since) > FORGOTTEN
    }
}

/// Whose queue a request belongs in.
#[inline]
pub fn queue_of(request: &Request) -> u32 {
    if request.sync { request.owner } else { ASYNCHRONOUS }
}

/// How urgent an application is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// It has its share.
    #[default]
    BestEffort,
    /// It is served when nobody else has something to do, and once in a long while.
    Idle,
}

/// What an application is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Its part of what is served, by proportion to the others': 1 to [`MOST_WEIGHT`].
    pub weight: u32,
    /// Its class.
    pub class: Class,
}

/// Weights go up to this.
pub const MOST_WEIGHT: u32 = 1000;

impl Default for Share {
    fn default() -> Share {
        Share { weight: 100, class: Class::BestEffort }
    }
}

/// A share that cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("weight: expected 1 to {MOST_WEIGHT}, found {found}")]
pub struct BadWeight {
    /// What was asked for.
    pub found: u32,
}

impl Share {
    /// This weight in the usual class.
    pub fn weighing(weight: u32) -> Result<Share, BadWeight> {
        match weight {
            1..=MOST_WEIGHT => Ok(Share { weight, ..Share::default() }),
            found => Err(BadWeight { found }),
        }
    }
}

/// A queue's oldest request goes first in a turn, when it has waited for so long
/// (`fifo_expire_sync` and `_async` of the kernel's CFQ and BFQ).
const PATIENCE: (Dur, Dur) = (Dur::from_ms(125), Dur::from_ms(250));

/// A turn of a queue; `first`: nothing of it was sent in this turn.
fn turn_of(queue: u32, first: bool) -> Turn {
    let patience = if queue == ASYNCHRONOUS { PATIENCE.1 } else { PATIENCE.0 };
    Turn::Queue(queue, if first { patience } else { Dur(u64::MAX) })
}

/// Who goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// A request of this queue, which has one: ORDER's choice, or the oldest, if that has waited
    /// for longer than this. An order by position may pass over a request for as long as others
    /// come that lie better.
    Queue(u32, Dur),
    /// A request of any of the queues that [`Admission::together`] names: ORDER's choice among all
    /// of them.
    Together,
    /// Nobody, until something is told or this instant comes: the disk waits for somebody.
    Wait(Time),
    /// Nobody: nothing waits.
    Nobody,
}

/// A policy: told of every request, asked for every command.
pub trait Admission: std::fmt::Debug + Send {
    /// A request may go from now on: it has arrived, or what it had to wait for is finished.
    fn arrived(&mut self, queue: u32, request: &Request, now: Time);
    /// Who goes next.
    fn turn(&mut self, now: Time) -> Turn;
    /// Whether whoever has the turn, or is waited for, has just begun to work and is to have
    /// answers as from an idle disk.
    fn hurries(&self, _now: Time) -> bool {
        false
    }
    /// Adds the queues that may be chosen from; of use when the turn is [`Turn::Together`].
    fn together(&self, _queues: &mut Vec<u32>) {}
    /// A request of the queue that had its turn, or of one of those, was chosen, and goes to the
    /// drive.
    fn sent(&mut self, queue: u32, request: &Request, now: Time);
    /// A waiting request goes to the drive out of turn, because a stream's request waits for it.
    /// Its application is not charged, and the turn of the active application goes on.
    fn sent_out_of_turn(&mut self, queue: u32, request: &Request, now: Time);
    /// A request that was sent is finished.
    fn completed(&mut self, queue: u32, request: &Request, now: Time);
    /// Until now the disk worked for so long for streams, of which the policy knows nothing:
    /// nobody's slice runs meanwhile.
    fn others_had(&mut self, time: Dur, now: Time);
    /// What an application is to have from now on.
    fn set_share(&mut self, queue: u32, share: Share);
    /// What it takes the disk's peak rate to be, in sectors a second, where it has measured one.
    fn peak_rate(&self) -> Option<f64> {
        None
    }
    /// When it wants to be asked again, if nothing happens before.
    fn next_wakeup(&self) -> Option<Time>;
}

/// Which policy, and its rules.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Policy {
    /// All requests are one queue.
    #[default]
    None,
    /// Completely fair queueing.
    Cfq(cfq::Rules),
    /// Budget fair queueing, with or without the heuristics.
    Bfq(bfq::Rules),
}

impl Policy {
    /// The policies' names.
    pub const NAMES: [&'static str; 4] = ["none", "cfq", "bfq", "bfq+"];

    /// The policy of this name with its usual rules.
    pub fn named(name: &str) -> Option<Policy> {
        match name {
            "none" => Some(Policy::None),
            "cfq" => Some(Policy::Cfq(cfq::Rules::default())),
            "bfq" => Some(Policy::Bfq(bfq::Rules::original())),
            "bfq+" => Some(Policy::Bfq(bfq::Rules::plus())),
            _ => None,
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Policy::None => "none",
            Policy::Cfq(_) => "cfq",
            Policy::Bfq(rules) if *rules == bfq::Rules::original() => "bfq",
            Policy::Bfq(_) => "bfq+",
        }
    }

    /// The same for a drive that is given many commands at a time and has its own order: nobody is
    /// waited for then (Valente 2014 section 5.3).
    #[must_use]
    pub fn without_idling(mut self) -> Policy {
        match &mut self {
            Policy::None => {}
            Policy::Cfq(rules) => rules.slice_idle = Dur::ZERO,
            Policy::Bfq(rules) => rules.idle = Dur::ZERO,
        }
        self
    }

    /// The policy at work on a disk with sectors of so many bytes.
    pub(crate) fn admission(&self, sector_bytes: u32) -> Option<Box<dyn Admission>> {
        match self {
            Policy::None => None,
            Policy::Cfq(rules) => Some(Box::new(cfq::Cfq::new(rules.clone(), sector_bytes))),
            Policy::Bfq(rules) => Some(Box::new(bfq::Bfq::new(rules.clone(), sector_bytes))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_disk::command::Kind;

    #[test]
    fn who_has_the_turn_for_what_went_out_of_turn_gives_it_to_the_next() {
        for name in ["cfq", "bfq", "bfq+"] {
            let mut policy = Policy::named(name).and_then(|p| p.admission(512)).expect("a policy");
            let request = |owner: u32| Request {
                id: u64::from(owner),
                kind: Kind::Read,
                lbn: 1_000_000 * u64::from(owner),
                count: 8,
                fua: false,
                sync: true,
                owner,
            };
            let requests = [request(1), request(2)];
            let queues = requests.map(|r| queue_of(&r));
            (0..2).for_each(|i| policy.arrived(queues[i], &requests[i], Time::ZERO));
            let first = match policy.turn(Time::ZERO) {
                Turn::Queue(queue, _) => queues.iter().position(|q| *q == queue).expect("one of them"),
                turn => panic!("{name}: {turn:?}"),
            };
            policy.sent_out_of_turn(queues[first], &requests[first], Time::ZERO);
            let second = policy.turn(Time::ZERO);
            assert!(matches!(second, Turn::Queue(queue, _) if queue == queues[1 - first]), "{name}: {second:?}");
            policy.completed(queues[first], &requests[first], Time(1_000_000));
            policy.sent(queues[1 - first], &requests[1 - first], Time(1_000_000));
            policy.completed(queues[1 - first], &requests[1 - first], Time(2_000_000));
        }
    }
}
