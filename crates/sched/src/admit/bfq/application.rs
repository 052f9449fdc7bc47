//! State of one application in BFQ: its access pattern and its weight raising (Valente 2014
//! sections 4 and 4.1).

use headtime_disk::{Dur, Time};

use super::rules::{LowLatency, SoftRealTime};
use super::soft_real_time::Batch;
use super::together::{Grouping, Visit};
use crate::admit::Share;
use crate::request::Request;

/// Weight of all distances together in the mean distance, when there have been many.
const FULL_WEIGHT: u64 = 256;
/// The mean is valid above this weight, which it has from the third request on (`bfq_sample_valid`
/// of the kernel).
const VALID_WEIGHT: u64 = 80;
/// A distance counts as at most the sum of four times the mean and this multiple of the distance
/// beyond which requests are random. So a single jump, as from one file to the next, does not make
/// an application random for long (`bfq_update_io_seektime` of BFQ for Linux 2.6.36).
const LONGEST: u64 = 16;
/// The same while the mean is not valid yet.
const LONGEST_OF_FIRST: u64 = 256;
/// Resolution of weights, so that a raised weight falls smoothly.
const SCALE: u64 = 100;

/// Access pattern of an application: a low-pass filter over the distance from the end of each
/// request to the start of the next, `mean = 7/8 mean + 1/8 distance`, and which of the last 32
/// requests were far from the previous one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// The mean distance, and its weight and weighted sum.
    mean: u64,
    weight: u64,
    total: u64,
    end: Option<u64>,
    far: u32,
    /// Mean position of the requests, and mean distance from it.
    middle: u64,
    spread: u64,
}

impl Pattern {
    /// Adds a request; a distance of more than `far` sectors counts as far.
    pub(crate) fn add(&mut self, request: &Request, far: u64) {
        let distance = self.end.map_or(0, |end| end.abs_diff(request.lbn));
        match self.end {
            Some(_) => self.far = self.far << 1 | u32::from(distance > far),
            None => self.middle = request.lbn,
        }
        let is_first = self.weight <= VALID_WEIGHT;
        let longest = if is_first { LONGEST_OF_FIRST } else { LONGEST };
        let counted = distance.min(self.mean.saturating_mul(4).saturating_add(longest.saturating_mul(far)));
        self.weight = (7 * self.weight + FULL_WEIGHT) / 8;
        self.total = (self.total.saturating_mul(7).saturating_add(counted.saturating_mul(FULL_WEIGHT))) / 8;
        self.mean = (self.total + self.weight / 2) / self.weight;
        self.spread = self.spread - self.spread / 16 + self.middle.abs_diff(request.lbn) / 16;
        self.middle = self.middle - self.middle / 16 + request.lbn / 16;
        self.end = Some(request.lbn + u64::from(request.count));
    }

    /// Returns whether most requests are far from the previous one: more than 19 of the last 32, as
    /// today's kernel's `BFQQ_SEEKY`. This decides who is served together: an application that
    /// reads many small files has a large mean distance, and still gains from a slice of its own.
    pub(crate) fn is_scattered(&self) -> bool {
        self.far.count_ones() > 19
    }

    /// Returns the mean position of the requests, as a sector.
    pub(crate) fn middle(&self) -> u64 {
        self.middle
    }

    /// Returns the mean distance from that position, in sectors.
    pub(crate) fn spread(&self) -> u64 {
        self.spread
    }

    /// Returns whether the mean distance between consecutive requests is known and more than `far`
    /// sectors (section 4).
    pub(crate) fn is_random(&self, far: u64) -> bool {
        self.weight > VALID_WEIGHT && self.mean > far
    }
}

/// A raised weight.
#[derive(Clone, Copy, Debug)]
struct Raised {
    /// Sectors until the weight is back at the application's own.
    left: u64,
    until: Time,
    factor: u32,
    /// Whether it falls with service; otherwise it ends when nothing is left.
    falls: bool,
    /// As a soft real-time application: service does not end it either.
    soft: bool,
}

/// An application.
#[derive(Clone, Debug)]
pub(crate) struct Application {
    /// Weight and class.
    pub share: Share,
    /// Next budget, in sectors.
    pub budget: u64,
    /// Pending requests and requests in flight.
    pub queued: u32,
    /// See `queued`.
    pub outstanding: u32,
    /// Since when it has had no request.
    pub idle_since: Time,
    /// Access pattern.
    pub pattern: Pattern,
    /// Whether it can be served together with the others.
    pub(super) grouping: Grouping,
    /// Charge in the current round.
    pub(super) visit: Visit,
    /// Typical think time from a completion to the next request.
    pub think: Dur,
    /// What it reads at a time, if it is a soft real-time application.
    pub(super) batch: Batch,
    /// Until when a request of it was held back above the scheduler.
    pub(super) held_until: Time,
    /// It began in a large burst.
    pub(super) in_burst: bool,
    raised: Option<Raised>,
    /// No slice of it has timed out since it began to issue requests.
    new: bool,
}

impl Application {
    /// Creates the state of a new application.
    pub(crate) fn new(share: Share, budget: u64, now: Time) -> Application {
        Application {
            share,
            budget,
            queued: 0,
            outstanding: 0,
            idle_since: now,
            pattern: Pattern::default(),
            grouping: Grouping::default(),
            visit: Visit::default(),
            think: Dur::ZERO,
            batch: Batch::default(),
            in_burst: false,
            held_until: Time::ZERO,
            raised: None,
            new: true,
        }
    }

    /// Notes that it begins to issue requests after a long pause.
    pub(crate) fn begin(&mut self) {
        self.new = true;
    }

    /// Notes that a slice of it timed out.
    pub(crate) fn timed_out(&mut self) {
        self.new = false;
    }

    /// Returns whether no slice of it has timed out since it began.
    pub(crate) fn is_new(&self) -> bool {
        self.new
    }

    /// Returns whether it has no request, pending or in flight.
    pub(crate) fn is_idle(&self) -> bool {
        self.queued + self.outstanding == 0
    }

    /// Raises its weight from now on.
    pub(crate) fn raise(&mut self, rules: &LowLatency, sectors: u64, now: Time) {
        let LowLatency { factor, longest, falls, .. } = *rules;
        self.raised = Some(Raised { left: sectors, until: now + longest, factor, falls, soft: false });
    }

    /// Raises its weight as that of a soft real-time application, unless it is raised as a new one.
    pub(crate) fn raise_soft(&mut self, rules: &SoftRealTime, now: Time) {
        if !self.is_raised(now) || self.is_soft(now) {
            let until = now + rules.longest;
            self.raised = Some(Raised { left: u64::MAX, until, factor: rules.factor, falls: false, soft: true });
        }
    }

    /// Returns whether its weight is raised as that of a soft real-time application.
    pub(crate) fn is_soft(&self, now: Time) -> bool {
        self.raised.is_some_and(|r| r.soft && now < r.until)
    }

    /// Ends the raising of its weight.
    pub(crate) fn lower(&mut self) {
        self.raised = None;
    }

    /// Returns whether its weight is raised.
    pub(crate) fn is_raised(&self, now: Time) -> bool {
        self.raised.is_some_and(|r| now < r.until)
    }

    /// Returns the latest end of weight raising.
    pub(crate) fn raised_until(&self) -> Option<Time> {
        self.raised.map(|r| r.until)
    }

    /// Moves a request of this number of sectors from the queue to the drive.
    pub(crate) fn sent(&mut self, sectors: u64) {
        self.queued -= 1;
        self.outstanding += 1;
        self.served(sectors);
    }

    /// Accounts this number of served sectors.
    pub(crate) fn served(&mut self, sectors: u64) {
        self.batch.served(sectors);
        if let Some(r) = self.raised.as_mut().filter(|r| !r.soft) {
            r.left = r.left.saturating_sub(sectors);
            if r.left == 0 {
                self.raised = None;
            }
        }
    }

    /// Returns its current weight, in hundredths: `w (1 + (C_rais - 1) left / B_rais)`, which falls
    /// by `(C_rais - 1) w / B_rais` with every sector, or `w C_rais` where it does not fall.
    /// `sectors`: `B_rais`.
    pub(crate) fn weight(&self, sectors: u64, now: Time) -> u64 {
        let own = self.own_weight();
        let Some(r) = self.raised.filter(|r| now < r.until) else { return own };
        let more = own * u64::from(r.factor.saturating_sub(1));
        if r.falls { own + more * r.left.min(sectors) / sectors.max(1) } else { own + more }
    }

    /// Returns its own weight, in hundredths.
    pub(crate) fn own_weight(&self) -> u64 {
        u64::from(self.share.weight) * SCALE
    }
}

#[cfg(test)]
mod tests {
    use headtime_disk::Kind;

    use super::*;

    fn at(lbn: u64) -> Request {
        Request { id: 0, kind: Kind::Read, lbn, count: 8, fua: false, sync: true, owner: 0 }
    }

    #[test]
    fn a_raised_weight_falls_with_service_and_ends_in_time() {
        let rules = LowLatency::published();
        let mut a = Application::new(Share::default(), 1_000, Time::ZERO);
        let weight = |a: &Application, s: u64| a.weight(10_000, Time::ZERO + Dur::from_secs(s));
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
        // Without falling.
        a.raise(&LowLatency { falls: false, ..rules }, 10_000, Time::ZERO);
        a.served(9_999);
        assert_eq!((weight(&a, 0), weight(&a, 6)), (100_000, 10_000));
        a.served(1);
        assert_eq!(weight(&a, 0), 10_000);
    }

    #[test]
    fn the_mean_distance_follows_what_comes() {
        let mut p = Pattern::default();
        (0..40).for_each(|i| p.add(&at(i * 8), 8192));
        assert_eq!(p.mean, 0);
        // One jump, however long, counts as 16 times the limit.
        p.add(&at(1_000_000_000), 8192);
        assert!(p.mean.abs_diff(16_384) < 500, "{}", p.mean);
        assert!(p.is_random(8192));
        let after = (1..40).find(|i| {
            p.add(&at(1_000_000_000 + i * 8), 8192);
            !p.is_random(8192)
        });
        assert_eq!(after, Some(6));
    }

    #[test]
    fn requests_far_apart_are_random_from_the_third_on() {
        let mut p = Pattern::default();
        let after: Vec<bool> = (0..20)
            .map(|i| {
                p.add(&at(i * 1_000_000), 8192);
                p.is_random(8192)
            })
            .collect();
        assert_eq!(after.iter().position(|random| *random), Some(2));
        assert!(after[2..].iter().all(|random| *random));
        assert!(p.mean.abs_diff(1_000_000) < 100_000, "{}", p.mean);
    }
}
