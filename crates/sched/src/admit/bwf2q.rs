//! B-WF²Q+: whose budget is served next (Valente 2014, seed 003, section 3.1; the timestamps are
//! those of WF²Q+, Bennett and Zhang 1997, with budgets in the place of packets).
//!
//! # The system that is followed
//!
//! In an ideal system all backlogged applications are served at the same time, each at a rate in
//! proportion to its weight. Each has a budget of so many sectors. Virtual time `V` measures the
//! service in that system: while `s` sectors are served it grows by `s / W`, with `W` the sum of
//! the weights of all applications that are backlogged there, so that an application of weight `w`
//! that is backlogged all the while is due `w` sectors for each unit of `V`. One that was served
//! its whole backlog in one go is idle here, and is still being served there, until `V` has come to
//! the end of its last budget: its weight counts for so long. (If it did not, `V` would run ahead
//! of the service that it stands for.)
//!
//! A budget of `b` sectors begins there at a virtual time `S` and ends at `F = S + b / w`:
//!
//! * an application that becomes backlogged: `S = max(V, F')`, with `F'` the end of what it was
//!   served last. It takes up where it was when it is early, and what it did not use while it was
//!   idle is lost to it.
//! * one whose budget is over, and that goes on: `S = F'`.
//! * `F'`, when a budget is over: `S + c / w`, with `c` the sectors that are charged for it: those
//!   that were served, or more.
//!
//! # Who is served
//!
//! Of the budgets that have begun in the ideal system (`S <= V`, *eligible*) the one that ends
//! first there. When none has begun, `V` goes on to the first `S`: the disk does not wait while
//! somebody has something to do.
//!
//! # Back-shifting
//!
//! Who asks for the next sectors only when he has got the last is idle for a moment after each
//! answer. Was it so short that the disk waited for him, or would have waited, then he was never
//! idle in earnest: `S = F'`, whatever `V` is by then ([`Since::Deceptively`]). With `max(V, F')`
//! he would lose a little of his share at each request. Who never asks for all of his share would
//! be further behind `V` each time, and could take it all at once one day: `S` is never before `V -
//! m / w`, with `m` the sectors that he may have to his credit.
//!
//! While he was away `V` grew for the others alone, too fast for somebody who was never away: by
//! `d` since his weight counted last, where at most what `S` makes good is of interest. What he
//! takes now is on top of that. So `V` stands still for the next `w d` sectors, and has then come
//! as far as if his weight had counted all the while. If it did not, it would gain on everybody by
//! a little with each of his requests, until all were `m / w` behind it; somebody new, who begins
//! at `V`, would wait until all of them had caught up.
//!
//! # What is guaranteed, and why
//!
//! Against the worst case of the ideal system: all are backlogged there all the while, and an
//! application has the part `f = w / W` of what is served ([`super::fluid::Fluid::guaranteed`];
//! `W`: all weights). With a perfect server of its own of that rate as the ideal, time counted in
//! sectors served in all, budgets up to `B`, an application's own up to `b`, and `E` the sum of
//! `r + 2 m` over all applications, where `r` is what it overruns a budget by and `m` its credit:
//!
//! * *Nobody is far ahead*: a budget is served only when it has begun, so `w (F' - V)` is `(b +
//!   r)(1 - f)` at most when it is over, since `V` has grown by `1 / W` a sector meanwhile.
//! * *Nobody is late*: a request is done `B + E + u (1/f - 1)` sectors later than in the ideal
//!   system at most, with `u` the sectors from its end to the furthest end of a budget that its
//!   application had since it became backlogged, or 0. For the last request of a budget that is
//!   used up that is `B + E`; of one that was too large, what was not used of it counts in
//!   proportion to the share.
//! * *Nobody is far behind*: `b + (B + E - b) f` sectors behind the ideal system at most; and over
//!   any stretch of time in which it is backlogged, which may have begun where it was ahead, by
//!   that and `(b + r)(1 - f) + m f`.
//! * *It does not add up*: all of it follows from timestamps that are set anew by `V`, not from
//!   differences that are carried along.
//!
//! Without overruns and credit `E` is 0, and nothing of this depends on how many applications there
//! are. With them it does: each may take an overrun before somebody else's budget ends, and each
//! may come back with its credit at the same moment.
//!
//! The proof, at first with `E = 0`. Take a budget from `S` to `F` of application `j`, of `b`
//! sectors, and `t0`, when the last budget before it was begun that ends after `F` (or when `V`
//! jumped). It was chosen, so what could be served then ended later than `F`; everything else had
//! not begun, `S_i > V(t0)`, or comes later, `S_i >= V` by then. From `t0` until the budget of `j`
//! begins there are served: that one budget, `B` at most; of each other `i` what lies between its
//! place then and `F`; of `j` what lies before `S`. That is no more than `B + W (F - V(t0)) - b`. A
//! budget that was cut off is no exception: what its application is served before `F`, that
//! budget's sectors with it, is less than the whole of it. And from any later moment `t`, as long
//! as `j` is backlogged, `B + W (F - V(t)) - b` (or `B - b`, if `V(t) > F`) are left: in `t - t0`
//! sectors `V` has grown by one part in the weights that count, and these are those of all that
//! were to be served. Before `t0`, `V` grows by `1 / W` a sector at least. In the ideal system a
//! request that ends at `x` is done `W (x - V(t))` after the `t` at which `j` became backlogged, or
//! later; in between lie `B`, and `(W - w)(F - x)`. When an earlier budget of `j` that had ended
//! after `F` was cut off, `j` had waited by that one, and `F` of that one counts.
//!
//! Each overrun adds its `r` to what is served before `F`. A credit adds `m` where `i` comes in:
//! `S_i >= V - m / w`. And since the sum of `w_i (S_i - V)` over those that count stays the same
//! while they are served, falls by a credit when somebody comes back, and rises by what somebody is
//! behind when he becomes idle, it is down by what came about in his absence alone: that is what
//! `V` stands still for. At no time are these more than `m` of each, because `V` has to go on
//! before they grow.
//!
//! All this is about the worst case, as it is in the paper (Valente 2014 section 3.1). An ideal
//! system with the same work at the same time also hands out at once what those leave who have
//! nothing to do; B-WF²Q+ does so in the long run, and promises nothing about when.
//!
//! `tests/admit_fluid.rs` checks all of it for every request, for random arrivals, weights and
//! budgets, used up or not.
//!
//! # What it costs
//!
//! Eligible budgets are kept in the order of `F`, the others in the order of `S`. `S` of a waiting
//! budget does not change and `V` never goes back, so each budget moves from the one to the other
//! once: O(log N) for each budget, over any row of decisions.

use std::collections::{BTreeMap, BTreeSet};

/// Virtual time: sectors for each unit of weight, in 2^-32. In 128 bits it lasts for longer than
/// any disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Virtual(pub u128);

impl Virtual {
    /// What so many sectors are for a weight. A weight of 0 has no share; it counts as 1.
    fn of(sectors: u64, weight: u64) -> Virtual {
        Virtual((u128::from(sectors) << 32) / u128::from(weight.max(1)))
    }

    fn after(self, sectors: u64, weight: u64) -> Virtual {
        Virtual(self.0 + Virtual::of(sectors, weight).0)
    }
}

/// How long an application has been without a request before it became backlogged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// Longer than anybody would wait for it, or for ever.
    Idle,
    /// So short that it only seemed to be idle. It takes up where it was, or where it would be had
    /// it got all but so many sectors of its share: who asks for less than its share all the time
    /// has no more than this to its credit.
    Deceptively {
        /// These sectors.
        most: u64,
    },
}

/// A budget in the ideal system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamps {
    /// When it begins.
    pub start: Virtual,
    /// When it ends.
    pub finish: Virtual,
    /// At this weight.
    pub weight: u64,
}

/// Where an application was when it became idle.
#[derive(Clone, Copy, Debug)]
struct Left {
    /// The end of what it was served.
    finish: Virtual,
    /// Until when its weight counts: until that end, or until it became idle if that is later.
    counted: Virtual,
}

/// The order of budgets. Applications are known by numbers.
#[derive(Clone, Debug, Default)]
pub struct Bwf2q {
    now: Virtual,
    /// Sum of the weights of those that are backlogged in the ideal system: here, too, or not any
    /// more.
    weights: u64,
    waiting: BTreeMap<u32, Stamps>,
    /// Those of them that have begun, by their ends; the others, by their beginnings.
    eligible: BTreeSet<(Virtual, u32)>,
    early: BTreeSet<(Virtual, u32)>,
    active: Option<(u32, Stamps)>,
    /// Those that are idle.
    last: BTreeMap<u32, Left>,
    /// Those that are idle here and not there yet, by the end of that, with their weights.
    leaving: BTreeMap<(Virtual, u32), u64>,
    /// Virtual time stands still for so many sectors, in 2^-32: so much too far it has come.
    too_far: u128,
}

impl Bwf2q {
    /// Nobody is there.
    pub fn new() -> Bwf2q {
        Bwf2q::default()
    }

    /// Virtual time.
    pub fn now(&self) -> Virtual {
        self.now
    }

    /// How many are backlogged, the one that is served included.
    pub fn backlogged(&self) -> usize {
        self.waiting.len() + usize::from(self.active.is_some())
    }

    /// Who is being served.
    pub fn active(&self) -> Option<u32> {
        self.active.map(|a| a.0)
    }

    /// The budget that an application waits with, or is served with.
    pub fn stamps(&self, application: u32) -> Option<Stamps> {
        let active = self.active.filter(|a| a.0 == application).map(|a| a.1);
        active.or_else(|| self.waiting.get(&application).copied())
    }

    /// An application has become backlogged, and is to be served with this weight and budget.
    /// Panics when it was backlogged.
    pub fn activate(&mut self, application: u32, weight: u64, budget: u64, since: Since) {
        assert!(self.stamps(application).is_none(), "application {application} is backlogged already");
        let last = self.last.remove(&application);
        if let Some(weight) = last.and_then(|last| self.leaving.remove(&(last.finish, application))) {
            self.weights -= weight;
        }
        let start = match (last, since) {
            (None, _) => self.now,
            (Some(last), Since::Deceptively { most }) => {
                let start = last.finish.max(Virtual(self.now.0.saturating_sub(Virtual::of(most, weight).0)));
                // It has grown by so much without its weight.
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

    /// Whose budget is served next: from now on that is the active application. `None` when nobody
    /// waits. Panics when one is active.
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
        while let Some(&(start, application)) = self.early.first().filter(|e| e.0 <= self.now) {
            self.early.remove(&(start, application));
            self.eligible.insert((self.waiting[&application].finish, application));
        }
        let (_, application) = self.eligible.pop_first().expect("one was there, or has become eligible");
        let stamps = self.waiting.remove(&application).expect("who is eligible waits");
        self.active = Some((application, stamps));
        Some(application)
    }

    /// The applications that wait and are at most `sectors` ahead of the one that is furthest
    /// behind of them.
    pub fn within(&self, sectors: u64) -> impl Iterator<Item = u32> {
        let first = self.waiting.values().map(|s| s.start).min().unwrap_or_default();
        self.waiting.iter().filter(move |(_, s)| s.start <= first.after(sectors, s.weight)).map(|(&a, _)| a)
    }

    /// This application is served next, in place of the one that the order of budgets selects.
    /// Panics when one is active, or when it does not wait.
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

    /// So many sectors were served: time goes on for all that are backlogged.
    pub fn served(&mut self, sectors: u64) {
        // Sectors in 2^-32, as virtual time is.
        let mut left = u128::from(sectors) << 32;
        let still = left.min(self.too_far);
        (left, self.too_far) = (left - still, self.too_far - still);
        while self.weights > 0 {
            let weights = u128::from(self.weights);
            let first = self.leaving.first_key_value().map(|(&(end, _), _)| end);
            match first.map(|end| (end, (end.0 - self.now.0) * weights)) {
                // Somebody ends in the ideal system before all of this is served there; the rest
                // goes to fewer.
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

    /// The first of those that are idle here ends in the ideal system, too, if it is time.
    fn leave(&mut self) -> bool {
        let first = self.leaving.first_entry().filter(|e| e.key().0 <= self.now);
        let weight = first.map(|e| e.remove());
        weight.map(|weight| self.count_no_longer(weight)).is_some()
    }

    /// The active application's budget is over: this much is charged for it, and it goes on waiting
    /// with another weight and budget, or is idle (`None`). Panics when none is active.
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

    /// A waiting application has nothing to be served any more: its requests were taken back.
    /// Panics when it does not wait.
    pub fn withdraw(&mut self, application: u32) {
        let stamps = self.waiting.remove(&application).expect("who is withdrawn waits");
        let there =
            self.eligible.remove(&(stamps.finish, application)) || self.early.remove(&(stamps.start, application));
        assert!(there);
        self.idle(application, stamps.start, stamps.weight);
    }

    /// It is idle here; in the ideal system until `finish`.
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

    /// An application has gone for good. Panics when it is backlogged.
    pub fn forget(&mut self, application: u32) {
        assert!(self.stamps(application).is_none(), "application {application} is backlogged");
        if let Some(last) = self.last.remove(&application)
            && let Some(weight) = self.leaving.remove(&(last.finish, application))
        {
            self.count_no_longer(weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves whole budgets for a while; sectors that each application got.
    fn serve(q: &mut Bwf2q, applications: &[(u64, u64)], budgets: usize) -> Vec<u64> {
        let mut got = vec![0; applications.len()];
        for _ in 0..budgets {
            let a = q.choose().unwrap() as usize;
            let (weight, budget) = applications[a];
            q.served(budget);
            got[a] += budget;
            q.expire(budget, Some((weight, budget)));
        }
        got
    }

    #[test]
    fn service_is_in_proportion_to_weights_whatever_the_budgets() {
        let mut q = Bwf2q::new();
        let applications = [(1, 64), (2, 1024), (3, 8), (4, 256), (10, 100)];
        for (a, &(weight, budget)) in applications.iter().enumerate() {
            q.activate(a as u32, weight, budget, Since::Idle);
        }
        let got = serve(&mut q, &applications, 20_000);
        let all: u64 = got.iter().sum();
        for (a, &(weight, _)) in applications.iter().enumerate() {
            let due = all as f64 * weight as f64 / 20.0;
            // One budget of its own ahead, or one of the largest behind.
            assert!((got[a] as f64 - due).abs() <= 1024.0 + 64.0, "{a}: {} of {due}", got[a]);
        }
    }

    #[test]
    fn of_those_that_have_begun_the_first_to_end_goes_and_small_budgets_go_first() {
        let mut q = Bwf2q::new();
        q.activate(1, 100, 1_000, Since::Idle);
        q.activate(2, 100, 10, Since::Idle);
        q.activate(3, 300, 1_500, Since::Idle);
        assert_eq!(q.choose(), Some(2));
        q.served(10);
        q.expire(10, Some((100, 10)));
        // Its next budget has not begun yet in the ideal system: it got more than it would have
        // there.
        assert_eq!(q.choose(), Some(3));
    }

    /// Of two of one weight the first was served its 10 sectors and is idle; the second's turn
    /// begins.
    fn one_has_gone() -> Bwf2q {
        let mut q = Bwf2q::new();
        q.activate(1, 1, 10, Since::Idle);
        q.activate(2, 1, 1_000, Since::Idle);
        assert_eq!(q.choose(), Some(1));
        q.served(10);
        q.expire(10, None);
        assert_eq!(q.choose(), Some(2));
        q
    }

    #[test]
    fn who_was_idle_has_lost_its_time_and_who_only_seemed_so_has_not() {
        let start = |since| {
            let mut q = one_has_gone();
            q.served(1_000);
            q.activate(1, 1, 10, since);
            (q.stamps(1).unwrap().start, q.now())
        };
        let (idle, now) = start(Since::Idle);
        assert_eq!(idle, now);
        let (deceptive, now) = start(Since::Deceptively { most: 10_000 });
        assert_eq!(deceptive, Virtual(10 << 32));
        assert!(deceptive < now);
        let (bounded, now) = start(Since::Deceptively { most: 100 });
        assert_eq!(bounded.0 + (100 << 32), now.0);
    }

    #[test]
    fn virtual_time_waits_for_who_only_seemed_to_be_idle() {
        let mut q = one_has_gone();
        assert_eq!(q.now(), Virtual(5 << 32));
        // The first counts until 10, which takes 10 sectors, and not from there to 40.
        q.served(40);
        assert_eq!(q.now(), Virtual(40 << 32));
        q.activate(1, 1, 50, Since::Deceptively { most: 100 });
        q.served(30);
        assert_eq!(q.now(), Virtual(40 << 32));
        // As far as if both had been served all the while.
        q.served(20);
        assert_eq!(q.now(), Virtual(50 << 32));
    }

    #[test]
    fn virtual_time_does_not_wait_for_what_is_lost() {
        let mut q = one_has_gone();
        q.served(40);
        q.activate(1, 1, 50, Since::Deceptively { most: 8 });
        q.served(10);
        assert_eq!(q.now(), Virtual(41 << 32));
    }

    #[test]
    fn who_is_charged_more_comes_later() {
        let mut q = Bwf2q::new();
        for a in [1, 2] {
            q.activate(a, 1, 100, Since::Idle);
        }
        assert_eq!(q.choose(), Some(1));
        q.served(20);
        q.expire(100, Some((1, 100)));
        assert_eq!(q.choose(), Some(2));
        q.served(20);
        q.expire(20, Some((1, 100)));
        assert_eq!((q.choose(), q.stamps(1).unwrap().start), (Some(2), Virtual(100 << 32)));
    }

    #[test]
    fn nobody_waits_while_somebody_has_something_to_do() {
        let mut q = Bwf2q::new();
        assert_eq!(q.choose(), None);
        q.activate(1, 1, 10, Since::Idle);
        assert_eq!(q.choose(), Some(1));
        q.served(10);
        // Charged far more than was served: it begins far in the future, and there is nobody else.
        q.expire(1_000, Some((1, 10)));
        assert!(q.stamps(1).unwrap().start > q.now());
        assert_eq!(q.choose(), Some(1));
        assert_eq!(q.now(), Virtual(1_000 << 32));
    }

    #[test]
    fn who_withdraws_takes_its_weight_along() {
        let mut q = Bwf2q::new();
        q.activate(1, 3, 10, Since::Idle);
        q.activate(2, 1, 10, Since::Idle);
        q.withdraw(1);
        assert_eq!((q.backlogged(), q.choose()), (1, Some(2)));
        q.served(8);
        assert_eq!(q.now(), Virtual(8 << 32));
        q.expire(8, None);
        q.forget(2);
        q.forget(1);
        assert_eq!((q.backlogged(), q.choose()), (0, None));
    }
}
