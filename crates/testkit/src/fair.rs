//! Reference models of fair service: WF²Q+ by looking at everybody, and the ideal system that serves everybody at once.

use headtime_sched::admit::bwf2q::{Since, Stamps, Virtual};

/// [`headtime_sched::admit::bwf2q::Bwf2q`] without its orders: every decision looks at everybody.
#[derive(Clone, Debug, Default)]
pub struct Naive {
    now: u128,
    active: Option<(u32, Stamps)>,
    waiting: Vec<(u32, Stamps)>,
    last: Vec<(u32, Virtual)>,
    /// Idle here and not yet in the ideal system: application, end, weight.
    leaving: Vec<(u32, u128, u64)>,
}

fn span(sectors: u64, weight: u64) -> u128 {
    (u128::from(sectors) << 32) / u128::from(weight)
}

fn stamps(start: u128, weight: u64, budget: u64) -> Stamps {
    Stamps { start: Virtual(start), finish: Virtual(start + span(budget, weight)), weight }
}

impl Naive {
    /// As [`headtime_sched::admit::bwf2q::Bwf2q::activate`].
    pub fn activate(&mut self, application: u32, weight: u64, budget: u64, since: Since) {
        let last = self.last.iter().rfind(|l| l.0 == application).map(|l| l.1.0);
        let start = match (last, since) {
            (None, _) => self.now,
            (Some(last), Since::Deceptively { most }) => last.max(self.now.saturating_sub(span(most, weight))),
            (Some(last), Since::Idle) => last.max(self.now),
        };
        self.leaving.retain(|l| l.0 != application);
        self.waiting.push((application, stamps(start, weight, budget)));
    }

    /// Whose budget is served next.
    pub fn choose(&mut self) -> Option<u32> {
        let first = self.waiting.iter().map(|w| w.1.start.0).min()?;
        if first > self.now {
            self.now = first;
            self.leaving.retain(|l| l.1 > first);
        }
        let begun = self.waiting.iter().enumerate().filter(|(_, w)| w.1.start.0 <= self.now);
        let (at, _) = begun.min_by_key(|(_, w)| (w.1.finish, w.0))?;
        let (application, stamps) = self.waiting.remove(at);
        self.active = Some((application, stamps));
        Some(application)
    }

    /// So many sectors were served.
    pub fn served(&mut self, sectors: u64) {
        let mut left = u128::from(sectors) << 32;
        loop {
            let here = self.waiting.iter().chain(&self.active).map(|w| w.1.weight);
            let weights = u128::from(here.sum::<u64>() + self.leaving.iter().map(|l| l.2).sum::<u64>());
            let end = self.leaving.iter().map(|l| l.1).min().unwrap_or(u128::MAX);
            let takes = (end - self.now).saturating_mul(weights);
            if takes > left {
                self.now += left / weights;
                return;
            }
            (self.now, left) = (end, left - takes);
            self.leaving.retain(|l| l.1 > end);
        }
    }

    /// The active application's budget is over.
    pub fn expire(&mut self, charged: u64, next: Option<(u64, u64)>) {
        let (application, old) = self.active.take().expect("one is active");
        let finish = old.start.0 + span(charged, old.weight);
        match next {
            Some((weight, budget)) => self.waiting.push((application, stamps(finish, weight, budget))),
            None => {
                self.last.push((application, Virtual(finish)));
                if finish > self.now {
                    self.leaving.push((application, finish, old.weight));
                }
            }
        }
    }

    /// Virtual time.
    pub fn now(&self) -> Virtual {
        Virtual(self.now)
    }
}

/// How far an application has been behind its share, over the worst stretch of time in which it was backlogged.
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
