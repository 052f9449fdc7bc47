//! B-WF²Q+ against the ideal system: the maximum delay and lag of any application, for every use of
//! budgets. The bounds are derived in `headtime_sched::internals::bwf2q::Bwf2q`; the names are
//! those used there.

use std::collections::VecDeque;

use headtime_sched::internals::bwf2q::{Bwf2q, Since};
use headtime_sched::internals::fluid::Fluid;
use headtime_testkit::fair::Lag;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Maximum budget.
const LARGEST: u64 = 2_000;

/// Behaviour of applications.
#[derive(Clone, Copy, Debug, Default)]
struct Manners {
    /// Budgets occasionally exceed the backlog.
    unused: bool,
    /// Budgets occasionally end before they are exhausted although the application is backlogged.
    cut: bool,
    /// Maximum sectors of a request: a request in service when a budget ends is finished. 0:
    /// requests are split at its end.
    overrun: u64,
    /// Maximum credit, in sectors, of an application that was idle only for a moment. 0: no
    /// application is treated as such.
    credit: u64,
}

struct Application {
    weight: u64,
    /// Maximum of its budgets.
    most: u64,
    budget: u64,
    /// Sectors served since it became backlogged, and the furthest end of a budget since then.
    place: u64,
    furthest: u64,
    /// Pending requests, and the rest of the first.
    waiting: VecDeque<u64>,
    /// The guarantee: this application, served alone at its share of the rate.
    ideal: Fluid,
    /// Sectors served in total when `ideal` was last updated, and sectors of its own.
    seen: u64,
    got: u64,
    lag: Lag,
    lag_seen: u64,
}

impl Application {
    fn catch_up(&mut self, now: u64) {
        self.ideal.serve(now - self.seen);
        self.seen = now;
    }
}

struct World {
    rng: Xoshiro256PlusPlus,
    q: Bwf2q,
    all: Vec<Application>,
    weights: u64,
    manners: Manners,
    /// Sectors served in total.
    now: u64,
    /// The worst lag against the ideal system, over any interval, and the worst delay: each
    /// relative to its bound.
    worst: [f64; 3],
    requests: u64,
}

impl World {
    fn new(seed: u64, count: u64, manners: Manners) -> World {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed << 16 | count);
        let mut draws: Vec<(u64, u64)> = vec![];
        for _ in 0..count {
            draws.push((1 + rng.next_u64() % 1_000, 8 + rng.next_u64() % (LARGEST - 7)));
        }
        let weights = draws.iter().map(|d| d.0).sum();
        let new = |(weight, most): (u64, u64)| Application {
            weight,
            most,
            budget: 0,
            place: 0,
            furthest: 0,
            waiting: VecDeque::new(),
            ideal: Fluid::guaranteed(weight, weights),
            seen: 0,
            got: 0,
            lag: Lag::default(),
            lag_seen: 0,
        };
        let all = draws.into_iter().map(new).collect();
        World { rng, q: Bwf2q::new(), all, weights, manners, now: 0, worst: [0.0; 3], requests: 0 }
    }

    fn below(&mut self, of: u64) -> u64 {
        self.rng.next_u64() % of
    }

    /// Returns the next budget of an application with its backlog.
    fn budget(&mut self, n: usize) -> u64 {
        let backlog: u64 = self.all[n].waiting.iter().sum();
        let most = self.all[n].most;
        match self.manners.unused && self.below(2) == 0 {
            true => 1 + self.below(most),
            false => most.min(backlog),
        }
    }

    /// Adds requests of an application that does not have the disk, or of the active one.
    fn arrive(&mut self, n: usize, active: bool) {
        let size = if self.manners.overrun > 0 { self.manners.overrun } else { 3 * LARGEST / 2 };
        let mut left = 1 + self.below(3 * LARGEST / 2);
        let idle = self.all[n].waiting.is_empty() && !active;
        let now = self.now;
        self.all[n].catch_up(now);
        while left > 0 {
            let request = (1 + self.below(size)).min(left);
            left -= request;
            self.all[n].waiting.push_back(request);
            self.all[n].ideal.arrive(0, request);
        }
        if idle {
            let budget = self.budget(n);
            let credit = self.manners.credit;
            let deceptive = credit > 0 && self.below(2) == 0;
            let since = if deceptive { Since::Deceptively { most: credit } } else { Since::Idle };
            let a = &mut self.all[n];
            (a.budget, a.place, a.furthest) = (budget, 0, budget);
            a.lag.begin();
            a.lag_seen = now;
            self.q.activate(n as u32, a.weight, budget, since);
        }
    }

    /// `E`: the excess of all beyond the one budget being served: an overrun each and twice the
    /// credit.
    fn extra(&self) -> f64 {
        let each = self.manners.overrun.saturating_sub(1) + 2 * self.manners.credit;
        (each * self.all.len() as u64) as f64
    }

    /// Serves a piece of an application's first request.
    fn piece(&mut self, n: usize, sectors: u64) {
        let (extra, weights) = (self.extra(), self.weights as f64);
        let overrun = self.manners.overrun.saturating_sub(1) as f64;
        let begins = self.now;
        let a = &mut self.all[n];
        let share = a.weight as f64 / weights;
        let b = a.most as f64;
        // Maximum lag at its beginning: b + (B + E - b) f.
        a.catch_up(begins);
        let allowed = b + (LARGEST as f64 + extra - b) * share + 1.0;
        let lag = a.ideal.served(0) - a.got as f64;
        assert!(lag <= allowed, "{n} of {}: {lag} behind the ideal system, {allowed} allowed", weights);
        a.lag.served((begins - a.lag_seen) as f64 * share, 0);
        a.lag.served(sectors as f64 * share, sectors);
        // At the beginning of the interval it may have been (b + r) (1 - f) + m f ahead.
        let stretch = allowed + (b + overrun) * (1.0 - share) + self.manners.credit as f64 * share;
        assert!(a.lag.worst <= stretch, "{n}: {} behind in a stretch, {stretch} allowed", a.lag.worst);
        self.q.served(sectors);
        self.now += sectors;
        let a = &mut self.all[n];
        a.catch_up(self.now);
        (a.lag_seen, a.got) = (self.now, a.got + sectors);
        a.waiting[0] -= sectors;
        a.place += sectors;
        let mut delayed = 0.0;
        if a.waiting[0] == 0 {
            a.waiting.pop_front();
            self.requests += 1;
            // A request that is not done in the ideal system is not late here.
            if let Some(done) = a.ideal.done(0) {
                // B + E + u (1/f - 1).
                let unused = a.furthest.saturating_sub(a.place) as f64;
                let allowed = LARGEST as f64 + extra + unused * (1.0 / share - 1.0) + 1.0;
                let delay = self.now as f64 - done;
                assert!(delay <= allowed, "{n}: {delay} late, {allowed} allowed");
                delayed = delay / allowed;
            }
        }
        let parts = [lag / allowed, self.all[n].lag.worst / stretch, delayed];
        for (worst, part) in self.worst.iter_mut().zip(parts) {
            *worst = worst.max(part);
        }
    }

    /// One turn, with arrivals.
    fn turn(&mut self) {
        let count = self.all.len() as u64;
        for _ in 0..2 {
            let n = self.below(count) as usize;
            self.arrive(n, false);
        }
        let n = self.q.choose().expect("something has just come") as usize;
        let mut used = 0;
        while used < self.all[n].budget && !self.all[n].waiting.is_empty() {
            if self.manners.cut && used > 0 && self.below(8) == 0 {
                break;
            }
            let request = self.all[n].waiting[0];
            let left = self.all[n].budget - used;
            let sectors = if self.manners.overrun > 0 { request } else { request.min(left) };
            used += sectors;
            self.piece(n, sectors);
            if self.below(4) == 0 {
                let m = self.below(count) as usize;
                self.arrive(m, m == n);
            }
        }
        let next = (!self.all[n].waiting.is_empty()).then(|| self.budget(n));
        let weight = self.all[n].weight;
        let a = &mut self.all[n];
        a.budget = next.unwrap_or(0);
        a.furthest = a.furthest.max(a.place + a.budget);
        self.q.expire(used, next.map(|budget| (weight, budget)));
    }
}

/// Returns the worst of each for this number of applications.
fn worst(count: u64, manners: Manners) -> [f64; 3] {
    let mut worst = [0.0_f64; 3];
    for seed in 1..=2 {
        let mut world = World::new(seed, count, manners);
        for _ in 0..(4_000 + 16 * count) {
            world.turn();
        }
        assert!(world.requests > 1_000);
        for (worst, part) in worst.iter_mut().zip(world.worst) {
            *worst = worst.max(part);
        }
    }
    println!("{count} applications, {manners:?}: {worst:.3?} of what is allowed");
    worst
}

const COUNTS: [u64; 4] = [2, 10, 100, 1_000];

#[test]
fn whole_budgets_are_within_the_bounds() {
    for count in COUNTS {
        let worst = worst(count, Manners::default());
        assert!(worst.iter().all(|w| *w > 0.3), "{count}: the bounds were never tried: {worst:?}");
    }
}

#[test]
fn budgets_that_are_not_used_up_are_within_the_bounds() {
    for count in COUNTS {
        worst(count, Manners { unused: true, ..Manners::default() });
        worst(count, Manners { unused: true, cut: true, ..Manners::default() });
    }
}

#[test]
fn budgets_that_are_overrun_are_within_the_bounds() {
    for count in COUNTS {
        worst(count, Manners { unused: true, cut: true, overrun: 256, ..Manners::default() });
    }
}

#[test]
fn a_deceptively_idle_application_is_within_the_bounds_and_so_are_the_others() {
    for count in COUNTS {
        worst(count, Manners { unused: true, cut: true, overrun: 0, credit: LARGEST });
        worst(count, Manners { unused: true, cut: true, overrun: 64, credit: 100 });
    }
}

/// Returns the delay of a new application beside `count` backlogged ones and one that repeatedly
/// has small requests, below its share, and was never really idle.
fn newcomer(count: u32, rounds: u32) -> u64 {
    let mut q = Bwf2q::new();
    let (asks, new) = (count, count + 1);
    let budget = |a: u32| if a == asks { 8 } else { BUDGET };
    (0..count).for_each(|a| q.activate(a, 1, BUDGET, Since::Idle));
    for _ in 0..rounds {
        if q.stamps(asks).is_none() {
            q.activate(asks, 1, 8, Since::Deceptively { most: CREDIT });
        }
        for _ in 0..=count {
            let a = q.choose().unwrap();
            q.served(budget(a));
            q.expire(budget(a), (a != asks).then_some((1, BUDGET)));
        }
    }
    q.activate(new, 1, BUDGET, Since::Idle);
    let mut waited = 0;
    loop {
        let a = q.choose().unwrap();
        q.served(budget(a));
        waited += budget(a);
        if a == new {
            return waited.saturating_sub(u64::from(count + 2) * BUDGET);
        }
        q.expire(budget(a), (a != asks).then_some((1, BUDGET)));
    }
}

const BUDGET: u64 = 100;
const CREDIT: u64 = 2_000;

#[test]
fn the_credit_of_one_application_delays_a_new_one_by_no_more_than_that_with_any_number_of_others() {
    for count in [2, 10, 100] {
        for rounds in [10, 100, 1_000, 10_000] {
            let late = newcomer(count, rounds);
            assert!(late <= BUDGET + 2 * CREDIT, "{count} others, {rounds} rounds: {late} late");
        }
    }
}
