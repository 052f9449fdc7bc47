//! Reference models of fair service: B-WF²Q+ by looking at everybody, and how far one is behind
//! one's share. The ideal system that serves everybody at once is [`headtime_sched::admit::fluid`],
//! because an experiment uses it, too.

use headtime_sched::admit::bwf2q::Since;

/// Where an application is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Is {
    /// Without work.
    Idle,
    /// With a budget that begins and ends then in the ideal system.
    Waiting { start: u128, end: u128 },
    /// It is being served, since `start` in the ideal system.
    Served { start: u128 },
}

#[derive(Clone, Copy, Debug)]
struct Application {
    number: u32,
    weight: u64,
    is: Is,
    /// Where it was served to in the ideal system, and when it became idle; of use when it is.
    finish: u128,
    idle_since: u128,
}

/// [`headtime_sched::admit::bwf2q::Bwf2q`] without its orders: a list of applications, and every
/// question looks at all of them. Times are virtual, in 2^-32 sectors for each unit of weight.
#[derive(Clone, Debug, Default)]
pub struct Naive {
    now: u128,
    /// Sectors, in 2^-32, that time stands still for.
    stands_still: u128,
    all: Vec<Application>,
}

fn span(sectors: u64, weight: u64) -> u128 {
    (u128::from(sectors) << 32) / u128::from(weight)
}

impl Naive {
    /// As [`headtime_sched::admit::bwf2q::Bwf2q::activate`].
    pub fn activate(&mut self, number: u32, weight: u64, budget: u64, since: Since) {
        let now = self.now;
        let at = self.all.iter().position(|a| a.number == number);
        let start = match (at.map(|at| self.all[at].finish), since) {
            (None, _) => now,
            (Some(finish), Since::Idle) => finish.max(now),
            (Some(finish), Since::Deceptively { most }) => finish.max(now.saturating_sub(span(most, weight))),
        };
        if let (Some(at), Since::Deceptively { .. }) = (at, since) {
            // Time went on without it from when it became idle, or from when its work ended in the
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

    /// Who counts in the ideal system: who has work here, and who has none but is still being
    /// served there.
    fn weights(&self) -> u128 {
        let counts = |a: &&Application| a.is != Is::Idle || a.finish > self.now;
        self.all.iter().filter(counts).map(|a| u128::from(a.weight)).sum()
    }

    /// Whose budget is served next.
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

    /// This application is served next, in place of the one that the order of budgets selects.
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

    /// Those that wait and are at most `sectors` ahead of the one that is furthest behind of them.
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

    /// So many sectors were served.
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
            // Who has no work here is served there until then, and the rest goes to fewer.
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
        self.anybody();
    }

    /// When nobody counts, nobody is behind.
    fn anybody(&mut self) {
        if self.weights() == 0 {
            self.stands_still = 0;
        }
    }

    /// A waiting application has nothing to be served any more.
    pub fn withdraw(&mut self, number: u32) {
        let a = self.all.iter_mut().find(|a| a.number == number).expect("who is withdrawn waits");
        let Is::Waiting { start, .. } = a.is else { panic!("who is withdrawn waits") };
        (a.is, a.finish, a.idle_since) = (Is::Idle, start, self.now);
        self.anybody();
    }

    /// An idle application has gone for good.
    pub fn forget(&mut self, number: u32) {
        self.all.retain(|a| a.number != number);
        self.anybody();
    }

    /// Virtual time.
    pub fn now(&self) -> u128 {
        self.now
    }
}

/// How far an application has been behind its share, over the worst stretch of time in which it was
/// backlogged. A server in the ideal system tells how far it is behind since it began; a stretch
/// may begin where it was far ahead.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lag {
    /// What it was due less what it got, since it became backlogged; and the least of that so far.
    behind: f64,
    least: f64,
    /// The largest rise of it.
    pub worst: f64,
}

impl Lag {
    /// It has just become backlogged.
    pub fn begin(&mut self) {
        (self.behind, self.least) = (0.0, 0.0);
    }

    /// While it was backlogged it was due so many sectors, and got so many.
    pub fn served(&mut self, due: f64, got: u64) {
        self.behind += due - got as f64;
        self.least = self.least.min(self.behind);
        self.worst = self.worst.max(self.behind - self.least);
    }
}
