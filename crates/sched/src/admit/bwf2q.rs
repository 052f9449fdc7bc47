//! B-WF²Q+: selects the budget served next (Valente 2014, seed 003, section 3.1; the timestamps are
//! those of WF²Q+, Bennett and Zhang 1997, with budgets in the place of packets).
//!
//! # The ideal system
//!
//! The ideal system serves all backlogged applications at the same time, each at a rate
//! proportional to its weight and each with a budget in sectors. Virtual time `V` measures service
//! in that system: while `s` sectors are served it grows by `s / W`, with `W` the sum of the
//! weights of all applications backlogged there. An application of weight `w` that stays backlogged
//! is due `w` sectors per unit of `V`. An application whose whole backlog was served in one go is
//! idle in the real system but still in service in the ideal one until `V` reaches the end of its
//! last budget; its weight counts until then. (Otherwise `V` would run ahead of the service it
//! stands for.)
//!
//! A budget of `b` sectors starts in the ideal system at a virtual time `S` and finishes at `F =
//! S + b / w`:
//!
//! * An application becomes backlogged: `S = max(V, F')`, with `F'` the finish of its previous
//!   service. If it is early, it resumes where it was; service that it did not use while idle is
//!   lost.
//! * An application's budget expires and it stays backlogged: `S = F'`.
//! * `F'`, when a budget expires, is `S + c / w`, with `c` the sectors charged for it: the sectors
//!   served, or more.
//!
//! # Selection
//!
//! Of the *eligible* budgets, those started in the ideal system (`S <= V`), the one with the
//! smallest `F` is served. If none is eligible, `V` jumps to the smallest `S`, so that the disk is
//! never idle while an application is backlogged.
//!
//! # Back-shifting
//!
//! An application with synchronous requests, each issued only after the previous one completed, is
//! briefly idle after each completion. If the disk idled for it during that gap, or would have, the
//! idleness is deceptive: `S = F'` regardless of `V` ([`Since::Deceptively`]). With `max(V, F')` it
//! would lose a little of its share at each request. An application that always asks for less than
//! its share would fall further behind `V` each time and could claim the whole arrears at once;
//! therefore `S` is at least `V - m / w`, with `m` the maximum credit in sectors.
//!
//! During its absence `V` grew only for the other applications, and so faster than if its weight
//! had counted: by `d` since its weight last counted, limited to the part that `S` makes good. Its
//! service now comes on top of that. `V` therefore stands still for the next `w d` sectors and then
//! has the value it would have if the weight had always counted. Otherwise `V` would gain a little
//! on every application with each such request until all were `m / w` behind it, and a new
//! application, which starts at `V`, would wait until all had caught up.
//!
//! # Guarantees and proof
//!
//! The reference is the worst case of the ideal system: all applications are always backlogged
//! there, and an application receives the fraction `f = w / W` of the service
//! ([`super::fluid::Fluid::guaranteed`]; `W`: all weights). The bounds compare with a dedicated
//! ideal server of that rate. Time is counted in total sectors served, `B` is the largest budget,
//! `b` the application's own largest, and `E` the sum of `r + 2 m` over all applications, where `r`
//! is the maximum overrun of a budget and `m` the credit:
//!
//! * *Bounded lead*: a budget is served only after its start, so `w (F' - V)` is at most `(b +
//!   r)(1 - f)` when it expires, since `V` has grown by `1 / W` per sector served.
//! * *Bounded delay*: a request completes at most `B + E + u (1/f - 1)` sectors later than in the
//!   ideal system, with `u` the sectors from its end to the furthest finish of a budget that its
//!   application had since it became backlogged, or 0. For the last request of a budget that is
//!   used up the bound is `B + E`; for a budget that was too large the unused part counts in
//!   inverse proportion to the share.
//! * *Bounded lag*: at most `b + (B + E - b) f` sectors behind the ideal system. Over any interval
//!   in which the application is backlogged, which may have begun while it was ahead, at most that
//!   plus `(b + r)(1 - f) + m f`.
//! * *Errors do not accumulate*: all bounds follow from timestamps that `V` sets anew, not from
//!   differences that are carried along.
//!
//! Without overruns and credit `E` is 0, and no bound depends on the number of applications. With
//! them the bounds do: each application may overrun before another's budget finishes, and each may
//! return with its credit at the same moment.
//!
//! The proof, at first with `E = 0`. Take a budget of `b` sectors from `S` to `F` of application
//! `j`, and `t0`, the start of service of the last preceding budget that finishes after `F` (or the
//! time at which `V` jumped). That budget was selected, so every other eligible budget finished
//! later than `F`; all the rest had not started, `S_i > V(t0)`, or arrive later, with `S_i >= V` at
//! that time. From `t0` until the budget of `j` is selected, the service consists of: that one
//! budget, at most `B`; of each other `i` the part between its position then and `F`; of `j` the
//! part before `S`. The sum is at most `B + W (F - V(t0)) - b`. A budget that was cut off is no
//! exception: what its application is served before `F`, including that budget's sectors, is less
//! than the whole budget. From any later moment `t` at which `j` is still backlogged, `B + W (F -
//! V(t)) - b` (or `B - b`, if `V(t) > F`) are left: in `t - t0` sectors `V` has grown by one over
//! the weights that count, which are those of all applications still to be served. Before `t0`, `V`
//! grows by at least `1 / W` per sector. In the ideal system a request that ends at `x` completes
//! `W (x - V(t))` after the `t` at which `j` became backlogged, or later; the difference is `B` and
//! `(W - w)(F - x)`. If an earlier budget of `j` that finished after `F` was cut off, `j` had
//! waited with that one, and its `F` counts.
//!
//! Each overrun adds its `r` to what is served before `F`. A credit adds `m` where `i` arrives:
//! `S_i >= V - m / w`. The sum of `w_i (S_i - V)` over the applications that count is constant
//! while they are served, falls by a credit when an application returns, and rises by an
//! application's arrears when it becomes idle. It is therefore reduced only by what arose during
//! absences, and that is what `V` stands still for. At no time is this more than `m` for each
//! application, because `V` must advance before the arrears grow.
//!
//! All bounds concern the worst case, as in the paper (Valente 2014 section 3.1). An ideal system
//! with the same work at the same time also redistributes the service of idle applications at once;
//! B-WF²Q+ does so in the long run, without a bound on when.
//!
//! `tests/it/admit_fluid.rs` checks these bounds for every request, for random arrivals, weights
//! and budgets, used up or not.
//!
//! # Cost
//!
//! Eligible budgets are ordered by `F`, the others by `S`. The `S` of a waiting budget is constant
//! and `V` never decreases, so each budget moves from the second order to the first once: O(log N)
//! per budget over any sequence of decisions.

mod virtual_time;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use virtual_time::Virtual;

use super::by_queue::ByQueue;

/// How long an application had no request before it became backlogged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// Longer than the disk would idle for it, or it is new.
    Idle,
    /// Deceptive idleness: too short to count. The application resumes where it was, or with a
    /// bounded credit: an application that always asks for less than its share accumulates at most
    /// this.
    Deceptively {
        /// The maximum credit, in sectors.
        most: u64,
    },
}

/// A budget in the ideal system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamps {
    /// Virtual start time.
    pub start: Virtual,
    /// Virtual finish time.
    pub finish: Virtual,
    /// Weight of the application for this budget.
    pub weight: u64,
}

/// Timestamps of an application that became idle.
#[derive(Clone, Copy, Debug)]
struct Left {
    /// Finish of its previous service.
    finish: Virtual,
    /// Until when its weight counts: until `finish`, or until it became idle if that is later.
    counted: Virtual,
}

/// The queue of budgets. Applications are identified by numbers.
#[derive(Clone, Debug, Default)]
pub struct Bwf2q {
    now: Virtual,
    /// Sum of the weights of the applications backlogged in the ideal system.
    weights: u64,
    waiting: BTreeMap<u32, Stamps>,
    /// The waiting budgets that have started, by finish; the others, by start.
    eligible: BTreeSet<(Virtual, u32)>,
    early: BTreeSet<(Virtual, u32)>,
    active: Option<(u32, Stamps)>,
    /// Idle applications.
    last: ByQueue<Left>,
    /// Applications idle here and still served in the ideal system, by finish there, with their
    /// weights.
    leaving: BTreeMap<(Virtual, u32), u64>,
    /// Number of sectors, in units of 2^-32, for which virtual time stands still (back-shifting).
    too_far: u128,
}

impl Bwf2q {
    /// Creates an empty queue.
    pub fn new() -> Bwf2q {
        Bwf2q::default()
    }

    /// Returns virtual time.
    pub fn now(&self) -> Virtual {
        self.now
    }

    /// Returns the number of backlogged applications, including the one in service.
    pub fn backlogged(&self) -> usize {
        self.waiting.len() + usize::from(self.active.is_some())
    }

    /// Returns the application in service.
    pub fn active(&self) -> Option<u32> {
        self.active.map(|a| a.0)
    }

    /// Returns the budget with which an application waits or is served.
    pub fn stamps(&self, application: u32) -> Option<Stamps> {
        let active = self.active.filter(|a| a.0 == application).map(|a| a.1);
        active.or_else(|| self.waiting.get(&application).copied())
    }

    /// Makes an application backlogged with this weight and budget. Panics if it already is.
    pub fn activate(&mut self, application: u32, weight: u64, budget: u64, since: Since) {
        assert!(self.stamps(application).is_none(), "application {application} is backlogged already");
        let last = self.last.remove(application);
        if let Some(weight) = last.and_then(|last| self.leaving.remove(&(last.finish, application))) {
            self.weights -= weight;
        }
        let start = match (last, since) {
            (None, _) => self.now,
            (Some(last), Since::Deceptively { most }) => {
                let start = last.finish.max(Virtual(self.now.0.saturating_sub(Virtual::of(most, weight).0)));
                // Virtual time grew by this amount without the application's weight.
                let uncounted = self.now.0.saturating_sub(start.max(last.counted).0);
                self.too_far += uncounted * u128::from(weight.max(1));
                start
            }
            (Some(last), Since::Idle) => last.finish.max(self.now),
        };
        self.weights += weight.max(1);
        self.wait(application, Stamps { start, finish: start.after(budget, weight), weight: weight.max(1) });
    }

    fn wait(&mut self, application: u32, stamps: Stamps) {
        let new = match stamps.start <= self.now {
            true => self.eligible.insert((stamps.finish, application)),
            false => self.early.insert((stamps.start, application)),
        };
        assert!(new && self.waiting.insert(application, stamps).is_none());
    }

    /// Selects the budget served next and makes its application the active one. Returns `None` if
    /// none waits. Panics if one is active.
    pub fn choose(&mut self) -> Option<u32> {
        assert!(self.active.is_none(), "an application is being served");
        if self.eligible.is_empty() {
            let first = self.early.first()?.0;
            if first > self.now {
                // No application is behind virtual time any more.
                (self.now, self.too_far) = (first, 0);
            }
            while self.leave() {}
        }
        self.become_eligible();
        let (_, application) = self.eligible.pop_first().expect("one was there, or has become eligible");
        let stamps = self.waiting.remove(&application).expect("who is eligible waits");
        self.active = Some((application, stamps));
        Some(application)
    }

    /// Moves the waiting budgets that have started to the eligible ones.
    fn become_eligible(&mut self) {
        while let Some(&(start, application)) = self.early.first().filter(|e| e.0 <= self.now) {
            self.early.remove(&(start, application));
            self.eligible.insert((self.waiting[&application].finish, application));
        }
    }

    /// Returns the finish of the eligible budget that finishes first, and its application. `None`:
    /// none of the waiting budgets has started.
    pub fn first_eligible(&mut self) -> Option<(Virtual, u32)> {
        self.become_eligible();
        self.eligible.first().copied()
    }

    /// Returns the waiting applications that are at most `sectors` ahead of the waiting application
    /// furthest behind.
    pub fn within(&self, sectors: u64) -> impl Iterator<Item = u32> {
        let first = self.waiting.values().map(|s| s.start).min().unwrap_or_default();
        self.waiting.iter().filter(move |(_, s)| s.start <= first.after(sectors, s.weight)).map(|(&a, _)| a)
    }

    /// Makes this application the active one in place of the one that the order of budgets selects.
    /// Panics if one is active, or if this one does not wait.
    pub fn choose_this(&mut self, application: u32) {
        assert!(self.active.is_none(), "an application is being served");
        let first = self.waiting.values().map(|s| s.start).min().expect("it waits");
        if first > self.now {
            // No application is behind virtual time any more.
            (self.now, self.too_far) = (first, 0);
            while self.leave() {}
        }
        let stamps = self.waiting.remove(&application).expect("who is chosen waits");
        let there =
            self.eligible.remove(&(stamps.finish, application)) || self.early.remove(&(stamps.start, application));
        assert!(there);
        self.active = Some((application, stamps));
    }

    /// Advances virtual time by the service of this number of sectors.
    pub fn served(&mut self, sectors: u64) {
        // Sectors in units of 2^-32, as virtual time.
        let mut left = u128::from(sectors) << 32;
        let still = left.min(self.too_far);
        (left, self.too_far) = (left - still, self.too_far - still);
        while self.weights > 0 {
            let weights = u128::from(self.weights);
            let first = self.leaving.first_key_value().map(|(&(end, _), _)| end);
            match first.map(|end| (end, (end.0 - self.now.0) * weights)) {
                // An application finishes in the ideal system before all of this is served; the
                // rest is divided among fewer weights.
                Some((end, takes)) if takes <= left => {
                    (self.now, left) = (end, left - takes);
                    self.leave();
                }
                _ => {
                    self.now.0 += left / weights;
                    return;
                }
            }
        }
    }

    /// Removes the first idle application from the ideal system, if its finish is reached.
    fn leave(&mut self) -> bool {
        let first = self.leaving.first_entry().filter(|e| e.key().0 <= self.now);
        let weight = first.map(|e| e.remove());
        weight.map(|weight| self.count_no_longer(weight)).is_some()
    }

    /// Ends the active application's budget and charges this number of sectors. With `next` it
    /// waits again with that weight and budget; with `None` it is idle. Panics if none is active.
    pub fn expire(&mut self, charged: u64, next: Option<(u64, u64)>) {
        let (application, stamps) = self.active.take().expect("an application is being served");
        let finish = stamps.start.after(charged, stamps.weight);
        match next {
            Some((weight, budget)) => {
                self.weights = self.weights - stamps.weight + weight.max(1);
                let new = Stamps { start: finish, finish: finish.after(budget, weight), weight: weight.max(1) };
                self.wait(application, new);
            }
            None => self.idle(application, finish, stamps.weight),
        }
    }

    /// Removes a waiting application, whose requests were cancelled. Panics if it does not wait.
    pub fn withdraw(&mut self, application: u32) {
        let stamps = self.waiting.remove(&application).expect("who is withdrawn waits");
        let there =
            self.eligible.remove(&(stamps.finish, application)) || self.early.remove(&(stamps.start, application));
        assert!(there);
        self.idle(application, stamps.start, stamps.weight);
    }

    /// Marks the application idle; in the ideal system it is served until `finish`.
    fn idle(&mut self, application: u32, finish: Virtual, weight: u64) {
        self.last.insert(application, Left { finish, counted: finish.max(self.now) });
        match finish > self.now {
            true => _ = self.leaving.insert((finish, application), weight),
            false => self.count_no_longer(weight),
        }
    }

    fn count_no_longer(&mut self, weight: u64) {
        self.weights -= weight;
        if self.weights == 0 {
            // No application is behind virtual time any more.
            self.too_far = 0;
        }
    }

    /// Removes an idle application's state. Panics if it is backlogged.
    pub fn forget(&mut self, application: u32) {
        assert!(self.stamps(application).is_none(), "application {application} is backlogged");
        if let Some(last) = self.last.remove(application)
            && let Some(weight) = self.leaving.remove(&(last.finish, application))
        {
            self.count_no_longer(weight);
        }
    }
}

#[cfg(test)]
mod tests;
