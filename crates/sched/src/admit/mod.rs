//! ADMIT: selects the application whose requests may be dispatched.
//!
//! Every application has its own queue; asynchronous requests of all applications share one more
//! ([`ASYNCHRONOUS`]). A policy selects the queue from which the next command is taken, or lets the
//! disk idle for one. ORDER chooses within that queue, and FILL places freeblock work before the
//! chosen request. Without a policy all requests form one queue, and this module is not used.
//!
//! * [`bfq`]: budgets in sectors, fair by weight ([`bwf2q`]: order of budgets; [`fluid`]: the ideal
//!   reference system)
//! * [`cfq`]: slices of time, for comparison
//! * [`merging`]: processes that read one file together, as one application
//! * [`das`]: streams with guarantees: admission control, and eligibility at each decision

pub(crate) mod bfq;
pub(crate) mod bwf2q;
mod by_queue;
pub(crate) mod cfq;
pub(crate) mod das;
pub(crate) mod fluid;
pub(crate) mod merging;

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use headtime_disk::{Dur, Time};

use crate::names::NameError;
use crate::request::Request;

/// The queue of asynchronous requests (Valente 2014 section 7.2.2: writes are system-wide).
pub const ASYNCHRONOUS: u32 = u32::MAX - 1;

/// The queue of background work that was promoted to the foreground.
pub(crate) const BACKGROUND: u32 = u32::MAX;

/// State of an application without requests for this long is dropped; its share is kept.
const FORGOTTEN: Dur = Dur::from_secs(60);
/// Number of known applications at which the first sweep runs; later sweeps run when the number has
/// doubled, because a sweep visits all of them.
const SWEEP: usize = 1024;

/// When the next sweep for departed applications runs.
#[derive(Clone, Copy, Debug)]
struct Sweep {
    at: usize,
}

impl Sweep {
    fn new() -> Sweep {
        Sweep { at: SWEEP }
    }

    /// Returns whether a sweep is due at this number of known applications.
    fn is_due(self, known: usize) -> bool {
        known >= self.at
    }

    /// Sets the next sweep after one that left this number of applications.
    fn done(&mut self, left: usize) {
        self.at = (2 * left).max(SWEEP);
    }

    /// Returns whether an application without requests since `idle_since` counts as departed.
    fn has_gone(idle_since: Time, now: Time) -> bool {
        now.saturating_since(idle_since) > FORGOTTEN
    }
}

/// Adds a queue to a set or removes it; returns whether that changed the set.
fn set_membership(set: &mut BTreeSet<u32>, queue: u32, is: bool) -> bool {
    if is { set.insert(queue) } else { set.remove(&queue) }
}

/// Returns the queue of a request.
#[inline]
pub fn queue_of(request: &Request) -> u32 {
    if request.sync { request.owner } else { ASYNCHRONOUS }
}

/// Service class of an application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// Served in proportion to its weight.
    #[default]
    BestEffort,
    /// Served when no best-effort application is backlogged, and otherwise once per a long
    /// interval.
    Idle,
}

/// Weight and class of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Fraction of the service, relative to the other weights: 1 to [`MAX_WEIGHT`].
    pub weight: u32,
    /// Service class.
    pub class: Class,
}

/// The largest weight.
pub const MAX_WEIGHT: u32 = 1000;

impl Default for Share {
    fn default() -> Share {
        Share { weight: 100, class: Class::BestEffort }
    }
}

/// An invalid weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("weight: expected 1 to {MAX_WEIGHT}, found {found}")]
pub struct BadWeight {
    /// The requested weight.
    pub found: u32,
}

impl Share {
    /// Returns a share of this weight in the best-effort class.
    pub fn weighing(weight: u32) -> Result<Share, BadWeight> {
        match weight {
            1..=MAX_WEIGHT => Ok(Share { weight, ..Share::default() }),
            found => Err(BadWeight { found }),
        }
    }
}

/// Wait after which a queue's oldest request is served first in a turn, synchronous and
/// asynchronous (`fifo_expire_sync` and `_async` of the kernel's CFQ and BFQ).
const PATIENCE: (Dur, Dur) = (Dur::from_ms(125), Dur::from_ms(250));

/// Returns a turn of a queue; `first`: none of its requests was dispatched in this turn.
fn turn_of(queue: u32, first: bool) -> Turn {
    let patience = if queue == ASYNCHRONOUS { PATIENCE.1 } else { PATIENCE.0 };
    Turn::Queue(queue, if first { patience } else { Dur(u64::MAX) })
}

/// The decision on the next dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Dispatch a request of this backlogged queue: ORDER's choice, or the oldest request if it has
    /// waited for longer than this duration. An order by position may pass over a request
    /// indefinitely while better-placed ones arrive.
    Queue(u32, Dur),
    /// Dispatch ORDER's choice among the requests of all queues that [`Admission::together`] names.
    Together,
    /// Dispatch nothing until the next event or this instant: the disk idles for an application.
    Wait(Time),
    /// Dispatch nothing: no request is pending.
    Idle,
}

/// An admission policy: notified of every request, consulted for every command.
pub trait Admission: std::fmt::Debug + Send {
    /// Notifies of a request that became eligible: it arrived, or a request it depended on
    /// completed.
    fn arrived(&mut self, queue: u32, request: &Request, now: Time);
    /// Returns which queue is dispatched next.
    fn turn(&mut self, now: Time) -> Turn;
    /// Returns whether the active application has just started and needs an idle disk's latency.
    fn is_boosted(&self, _now: Time) -> bool {
        false
    }
    /// Adds the queues that ORDER may choose from while the turn is [`Turn::Together`].
    fn together(&self, _queues: &mut Vec<u32>) {}
    /// Notifies of the dispatch of a request of the queue that had the turn, or of one of those.
    fn sent(&mut self, queue: u32, request: &Request, now: Time);
    /// Notifies that a waiting request is dispatched out of turn because a stream's request depends
    /// on it. Its application is not charged, and the active application keeps its turn.
    fn sent_out_of_turn(&mut self, queue: u32, request: &Request, now: Time);
    /// Notifies of a completion.
    fn completed(&mut self, queue: u32, request: &Request, now: Time);
    /// Notifies that the disk served streams, which the policy does not see, for this long until
    /// now. No slice runs during that time.
    fn charge_external(&mut self, time: Dur, now: Time);
    /// Sets an application's share.
    fn set_share(&mut self, queue: u32, share: Share);
    /// Sets an application's latency target, or removes it. Only BFQ has them.
    fn set_latency_target(&mut self, _queue: u32, _target: Option<Dur>) {}
    /// Notifies that the application's next request is held back above the scheduler, by a limit
    /// of its rate, or that none is any more. Meanwhile the disk does not idle for it.
    fn set_held_back(&mut self, _queue: u32, _is: bool, _now: Time) {}
    /// Returns the disk's estimated peak rate in sectors per second, if the policy measures it.
    fn peak_rate(&self) -> Option<f64> {
        None
    }
    /// Returns the time at which the policy must be consulted again if no event occurs before.
    fn next_wakeup(&self) -> Option<Time>;
}

/// The policy and its rules.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Policy {
    /// All requests are one queue.
    #[default]
    None,
    /// Completely fair queueing.
    Cfq(cfq::CfqRules),
    /// Budget fair queueing, with or without the heuristics.
    Bfq(bfq::BfqRules),
}

impl Policy {
    /// The policy names.
    pub const NAMES: [&'static str; 4] = ["none", "cfq", "bfq", "bfq+"];
    /// The switches of `bfq+`.
    pub const SWITCHES: [&'static str; 3] = ["soft-rt", "bursts", "merging"];

    /// Returns the policy of this name with its default rules.
    pub fn named(name: &str) -> Option<Policy> {
        name.parse().ok()
    }

    /// Returns its name.
    pub fn name(&self) -> &'static str {
        match self {
            Policy::None => "none",
            Policy::Cfq(_) => "cfq",
            // Also for a drive with a command queue.
            Policy::Bfq(rules) => match (bfq::BfqRules { ncq: false, ..rules.clone() }) == bfq::BfqRules::original() {
                true => "bfq",
                false => "bfq+",
            },
        }
    }

    /// Returns the policy for a drive with a command queue and its own scheduling
    /// ([`bfq::BfqRules::ncq`]). CFQ is the same with one: since Linux 2.6.33 it idles for
    /// sequential queues on each disk that rotates.
    #[must_use]
    pub fn with_ncq(mut self) -> Policy {
        if let Policy::Bfq(rules) = &mut self {
            rules.ncq = true;
        }
        self
    }

    /// Creates the policy's state for a disk with this sector size in bytes.
    pub(crate) fn admission(&self, sector_bytes: u32) -> Option<Box<dyn Admission>> {
        match self {
            Policy::None => None,
            Policy::Cfq(rules) => Some(Box::new(cfq::Cfq::new(rules.clone(), sector_bytes))),
            Policy::Bfq(rules) => {
                let bfq = Box::new(bfq::Bfq::new(rules.clone(), sector_bytes));
                let merging = |bfq| Box::new(merging::Merging::new(bfq, rules.random_beyond, sector_bytes));
                Some(if rules.merging { merging(bfq) } else { bfq })
            }
        }
    }
}

/// A switch of `bfq+`: its name, how it is set, and whether it is.
type Switch = (&'static str, fn(&mut bfq::BfqRules), fn(&bfq::BfqRules) -> bool);

/// What today's kernel has beyond the paper, off by default.
const SWITCHES: [Switch; 3] = [
    (Policy::SWITCHES[0], |r| r.soft_real_time = Some(bfq::SoftRealTime::default()), |r| r.soft_real_time.is_some()),
    (Policy::SWITCHES[1], |r| r.bursts = Some(bfq::Bursts::default()), |r| r.bursts.is_some()),
    (Policy::SWITCHES[2], |r| r.merging = true, |r| r.merging),
];

impl FromStr for Policy {
    type Err = NameError;

    /// Parses a name; `bfq+` may be followed by switches, as in `bfq+:soft-rt,merging`.
    fn from_str(name: &str) -> Result<Policy, NameError> {
        let unknown = || NameError::unknown("admit", name, &Policy::NAMES);
        Ok(match name {
            "none" => Policy::None,
            "cfq" => Policy::Cfq(cfq::CfqRules::default()),
            "bfq" => Policy::Bfq(bfq::BfqRules::original()),
            "bfq+" => Policy::Bfq(bfq::BfqRules::plus()),
            _ => {
                let switches = name.strip_prefix("bfq+:").ok_or_else(unknown)?;
                let mut rules = bfq::BfqRules::plus();
                for switch in switches.split(',') {
                    let unknown = || NameError::unknown("switch of bfq+", switch, &Policy::SWITCHES);
                    let (_, set, is_on) = SWITCHES.iter().find(|s| s.0 == switch).ok_or_else(unknown)?;
                    if is_on(&rules) {
                        return Err(NameError::out_of_range("switches of bfq+", switch, "each at most once"));
                    }
                    set(&mut rules);
                }
                Policy::Bfq(rules)
            }
        })
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())?;
        let Policy::Bfq(rules) = self else { return Ok(()) };
        let mut on = SWITCHES.iter().filter(|(_, _, is_on)| is_on(rules)).enumerate();
        on.try_for_each(|(i, s)| write!(f, "{}{}", if i == 0 { ':' } else { ',' }, s.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_disk::Kind;

    #[test]
    fn a_turn_used_up_by_requests_out_of_turn_passes_to_the_next() {
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
