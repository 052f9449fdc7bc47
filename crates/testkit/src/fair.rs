//! Reference models of fair queueing: B-WF²Q+ by linear search over all applications, and the lag
//! of an application behind its share. The ideal system, which serves all applications at once, is
//! [`headtime_sched::internals::fluid::Fluid`], because an experiment uses it too.

use headtime_sched::internals::bwf2q::Since;

/// State of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    /// Without requests.
    Idle,
    /// With a budget of this virtual start and finish.
    Waiting { start: u128, end: u128 },
    /// In service, since the virtual time `start`.
    Served { start: u128 },
}

#[derive(Clone, Copy, Debug)]
struct Application {
    number: u32,
    weight: u64,
    is: Is,
    /// Virtual finish time, and virtual time at which it became idle; valid while idle.
    finish: u128,
    idle_since: u128,
}

/// [`headtime_sched::internals::bwf2q::Bwf2q`] without its sorted structures: a list of
/// applications, which every query searches. Times are virtual, in 2^-32 sectors per unit of
/// weight.
#[derive(Clone, Debug, Default)]
pub struct Naive {
    now: u128,
    /// Service in 2^-32 sectors during which virtual time stands still.
    stands_still: u128,
    all: Vec<Application>,
}

fn span(sectors: u64, weight: u64) -> u128 {
    (u128::from(sectors) << 32) / u128::from(weight)
}

impl Naive {
    /// As [`headtime_sched::internals::bwf2q::Bwf2q::activate`].
    pub fn activate(&mut self, number: u32, weight: u64, budget: u64, since: Since) {
        let now = self.now;
        let at = self.all.iter().position(|a| a.number == number);
        let start = match (at.map(|at| self.all[at].finish), since) {
            (None, _) => now,
            (Some(finish), Since::Idle) => finish.max(now),
            (Some(finish), Since::Deceptively { most }) => finish.max(now.saturating_sub(span(most, weight))),
        };
        if let (Some(at), Since::Deceptively { .. }) = (at, since) {
            // Virtual time advanced without it since it became idle, or since its work ended in the
            // ideal system, whichever was later.
            let without = self.all[at].idle_since.max(start);
            self.stands_still += now.saturating_sub(without) * u128::from(weight);
        }
        let is = Is::Waiting { start, end: start + span(budget, weight) };
        let new = Application { number, weight, is, finish: start, idle_since: now };
        match at {
            Some(at) => self.all[at] = new,
            None => self.all.push(new),
        }
    }

    /// Sum of the weights in the ideal system: backlogged applications, and idle ones that are
    /// still served there.
    fn weights(&self) -> u128 {
        let counts = |a: &&Application| a.is != Is::Idle || a.finish > self.now;
        self.all.iter().filter(counts).map(|a| u128::from(a.weight)).sum()
    }

    /// Chooses the next application.
    pub fn choose(&mut self) -> Option<u32> {
        let begins = |a: &Application| if let Is::Waiting { start, .. } = a.is { Some(start) } else { None };
        let first = self.all.iter().filter_map(begins).min()?;
        if first > self.now {
            (self.now, self.stands_still) = (first, 0);
        }
        let mut best: Option<(u128, u32, usize)> = None;
        for (at, a) in self.all.iter().enumerate() {
            if let Is::Waiting { start, end } = a.is
                && start <= self.now
                && best.is_none_or(|b| (end, a.number) < (b.0, b.1))
            {
                best = Some((end, a.number, at));
            }
        }
        let (_, number, at) = best?;
        let Is::Waiting { start, .. } = self.all[at].is else { return None };
        self.all[at].is = Is::Served { start };
        Some(number)
    }

    /// Chooses this application instead of the one with the smallest finish time.
    pub fn choose_this(&mut self, number: u32) {
        let begins = |a: &Application| if let Is::Waiting { start, .. } = a.is { Some(start) } else { None };
        let first = self.all.iter().filter_map(begins).min().expect("it waits");
        if first > self.now {
            (self.now, self.stands_still) = (first, 0);
        }
        let a = self.all.iter_mut().find(|a| a.number == number).expect("who is chosen waits");
        let Is::Waiting { start, .. } = a.is else { panic!("who is chosen waits") };
        a.is = Is::Served { start };
    }

    /// Waiting applications that are at most `sectors` ahead of the one furthest behind.
    pub fn within(&self, sectors: u64) -> Vec<u32> {
        let waits = |a: &Application| {
            if let Is::Waiting { start, .. } = a.is { Some((start, a.weight, a.number)) } else { None }
        };
        let waiting: Vec<_> = self.all.iter().filter_map(waits).collect();
        let first = waiting.iter().map(|w| w.0).min().unwrap_or(0);
        let mut within: Vec<u32> = waiting.iter().filter(|w| w.0 <= first + span(sectors, w.1)).map(|w| w.2).collect();
        within.sort_unstable();
        within
    }

    /// Advances virtual time by a service of `sectors`.
    pub fn served(&mut self, sectors: u64) {
        let mut left = u128::from(sectors) << 32;
        let both = left.min(self.stands_still);
        (left, self.stands_still) = (left - both, self.stands_still - both);
        loop {
            let weights = self.weights();
            if weights == 0 {
                self.stands_still = 0;
                return;
            }
            // An idle application is served there until its finish time; then fewer share the
            // service.
            let leave = self.all.iter().filter(|a| a.is == Is::Idle && a.finish > self.now).map(|a| a.finish).min();
            match leave {
                Some(end) if (end - self.now) * weights <= left => {
                    left -= (end - self.now) * weights;
                    self.now = end;
                }
                _ => {
                    self.now += left / weights;
                    return;
                }
            }
        }
    }

    /// The active application's budget is over.
    pub fn expire(&mut self, charged: u64, next: Option<(u64, u64)>) {
        let active = self.all.iter_mut().find_map(|a| match a.is {
            Is::Served { start } => Some((a, start)),
            _ => None,
        });
        let (a, start) = active.expect("one is active");
        a.finish = start + span(charged, a.weight);
        (a.is, a.idle_since) = (Is::Idle, self.now);
        if let Some((weight, budget)) = next {
            a.weight = weight;
            a.is = Is::Waiting { start: a.finish, end: a.finish + span(budget, weight) };
        }
        self.reset_debt();
    }

    /// Resets the clock's debt if no application has weight.
    fn reset_debt(&mut self) {
        if self.weights() == 0 {
            self.stands_still = 0;
        }
    }

    /// A waiting application has no requests any more.
    pub fn withdraw(&mut self, number: u32) {
        let a = self.all.iter_mut().find(|a| a.number == number).expect("who is withdrawn waits");
        let Is::Waiting { start, .. } = a.is else { panic!("who is withdrawn waits") };
        (a.is, a.finish, a.idle_since) = (Is::Idle, start, self.now);
        self.reset_debt();
    }

    /// Removes an idle application.
    pub fn forget(&mut self, number: u32) {
        self.all.retain(|a| a.number != number);
        self.reset_debt();
    }

    /// Virtual time.
    pub fn now(&self) -> u128 {
        self.now
    }
}

/// The lag of an application behind its share, over the worst interval within a backlogged period.
/// The ideal system gives the lag since the backlog began; an interval may begin when the
/// application was far ahead.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lag {
    /// Due less actual service since it became backlogged, and the minimum so far.
    behind: f64,
    least: f64,
    /// Its largest rise.
    pub worst: f64,
}

impl Lag {
    /// It has just become backlogged.
    pub fn begin(&mut self) {
        (self.behind, self.least) = (0.0, 0.0);
    }

    /// Adds due and actual service in sectors during a backlog.
    pub fn served(&mut self, due: f64, got: u64) {
        self.behind += due - got as f64;
        self.least = self.least.min(self.behind);
        self.worst = self.worst.max(self.behind - self.least);
    }
}
