//! What BFQ knows of one application: its requests' pattern, and how far its weight is raised
//! (Valente 2014 sections 4 and 4.1).

use headtime_disk::time::{Dur, Time};

use super::rules::LowLatency;
use super::together::{Standing, Visit};
use crate::admit::Share;
use crate::request::Request;

/// Fractions of a sector that the mean distance is kept in.
const FINE: u64 = 256;
/// Weights are kept finer than they are given, so that a raised one falls smoothly.
const SCALE: u64 = 100;

/// How far apart the requests of an application lie: a low-pass filter over the distance from the
/// end of each to the beginning of the next, `mean = 7/8 mean + 1/8 distance`. And which of the
/// last 32 lay far from the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pattern {
    mean: u64,
    end: Option<u64>,
    far: u32,
    /// Where they lie, in the mean, and how far from there.
    middle: u64,
    spread: u64,
}

impl Pattern {
    /// A request came; `far`: sectors.
    pub fn add(&mut self, request: &Request, far: u64) {
        if let Some(end) = self.end {
            let distance = end.abs_diff(request.lbn);
            self.mean = self.mean - self.mean / 8 + distance.saturating_mul(FINE) / 8;
            self.far = self.far << 1 | u32::from(distance > far);
        }
        if self.end.is_none() {
            self.middle = request.lbn;
        }
        self.spread = self.spread - self.spread / 16 + self.middle.abs_diff(request.lbn) / 16;
        self.middle = self.middle - self.middle / 16 + request.lbn / 16;
        self.end = Some(request.lbn + u64::from(request.count));
    }

    /// Whether most requests are far from the one before: more than 19 of the last 32, as the
    /// kernel's `BFQQ_SEEKY` has it. The mean distance says that also of one that reads many files
    /// in order, each of which lies elsewhere.
    pub fn is_scattered(&self) -> bool {
        self.far.count_ones() > 19
    }

    /// Where requests lie in the mean: the sector.
    pub fn middle(&self) -> u64 {
        self.middle
    }

    /// The mean distance from there, in sectors.
    pub fn spread(&self) -> u64 {
        self.spread
    }

    /// The mean distance in sectors.
    pub fn mean(&self) -> u64 {
        self.mean / FINE
    }
}

/// A raised weight.
#[derive(Clone, Copy, Debug)]
struct Raised {
    /// Sectors until it is back at the application's own.
    left: u64,
    until: Time,
}

/// An application.
#[derive(Clone, Debug)]
pub struct Application {
    /// What it is to have.
    pub share: Share,
    /// Its next budget, in sectors.
    pub budget: u64,
    /// Requests that wait, and such as are at the drive.
    pub queued: u32,
    /// See `queued`.
    pub outstanding: u32,
    /// Since when it has had no request at all.
    pub idle_since: Time,
    /// Where its requests lie.
    pub pattern: Pattern,
    /// How it stands to the others.
    pub(super) standing: Standing,
    /// What it was charged in a round.
    pub(super) visit: Visit,
    /// How long it usually takes from an answer to its next request.
    pub think: Dur,
    raised: Option<Raised>,
}

impl Application {
    /// One that has just been seen for the first time.
    pub fn new(share: Share, budget: u64, now: Time) -> Application {
        Application {
            share,
            budget,
            queued: 0,
            outstanding: 0,
            idle_since: now,
            pattern: Pattern::default(),
            standing: Standing::default(),
            visit: Visit::default(),
            think: Dur::ZERO,
            raised: None,
        }
    }

    /// Whether it has no request at all.
    pub fn is_idle(&self) -> bool {
        self.queued + self.outstanding == 0
    }

    /// Its weight is raised from now on.
    pub fn raise(&mut self, rules: &LowLatency, sectors: u64, now: Time) {
        self.raised = Some(Raised { left: sectors, until: now + rules.longest });
    }

    /// Whether its weight is raised.
    pub fn is_raised(&self, now: Time) -> bool {
        self.raised.is_some_and(|r| now < r.until)
    }

    /// Until when its weight is raised at most.
    pub fn raised_until(&self) -> Option<Time> {
        self.raised.map(|r| r.until)
    }

    /// A request of it, of this many sectors, goes to the drive.
    pub fn sent(&mut self, sectors: u64) {
        self.queued -= 1;
        self.outstanding += 1;
        self.served(sectors);
    }

    /// It was served this many sectors.
    pub fn served(&mut self, sectors: u64) {
        if let Some(r) = &mut self.raised {
            r.left = r.left.saturating_sub(sectors);
            if r.left == 0 {
                self.raised = None;
            }
        }
    }

    /// Its weight now, in hundredths: `w (1 + (C_rais - 1) left / B_rais)`, which falls by
    /// `(C_rais - 1) w / B_rais` with every sector. `sectors`: `B_rais`.
    pub fn weight(&self, rules: Option<&LowLatency>, sectors: u64, now: Time) -> u64 {
        let own = u64::from(self.share.weight) * SCALE;
        match (self.raised, rules) {
            (Some(r), Some(rules)) if now < r.until => {
                own + own * u64::from(rules.factor.saturating_sub(1)) * r.left.min(sectors) / sectors.max(1)
            }
            _ => own,
        }
    }
}

#[cfg(test)]
mod tests {
    use headtime_disk::command::Kind;

    use super::*;

    fn at(lbn: u64) -> Request {
        Request { id: 0, kind: Kind::Read, lbn, count: 8, fua: false, sync: true, owner: 0 }
    }

    #[test]
    fn a_raised_weight_falls_with_service_and_ends_in_time() {
        let rules = LowLatency::default();
        let mut a = Application::new(Share::default(), 1_000, Time::ZERO);
        let weight = |a: &Application, s: u64| a.weight(Some(&rules), 10_000, Time::ZERO + Dur::from_secs(s));
        assert_eq!(weight(&a, 0), 10_000);
        a.raise(&rules, 10_000, Time::ZERO);
        assert_eq!(weight(&a, 0), 100_000);
        a.served(5_000);
        assert_eq!(weight(&a, 0), 55_000);
        assert_eq!((weight(&a, 5), weight(&a, 6)), (55_000, 10_000));
        a.served(4_999);
        assert_eq!(weight(&a, 0), 10_009);
        a.served(8);
        assert!(!a.is_raised(Time::ZERO));
        assert_eq!(weight(&a, 0), 10_000);
    }

    #[test]
    fn the_mean_distance_follows_what_comes() {
        let mut p = Pattern::default();
        (0..10).for_each(|i| p.add(&at(i * 8), 8192));
        assert_eq!(p.mean(), 0);
        p.add(&at(1_000_080), 8192);
        assert_eq!(p.mean(), 125_000);
        (0..40).for_each(|i| p.add(&at(1_000_088 + i * 8), 8192));
        assert!(p.mean() < 1_000);
    }
}
