//! B-WF²Q+ against the same by looking at everybody, and against what is guaranteed.

use headtime_sched::admit::bwf2q::{Bwf2q, Since};
use headtime_testkit::fair::{Lag, Naive};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Below `of`.
fn below(rng: &mut Xoshiro256PlusPlus, of: u64) -> u64 {
    rng.next_u64() % of
}

#[test]
fn every_decision_is_that_of_looking_at_everybody() {
    for seed in 0..40 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (mut quick, mut naive) = (Bwf2q::new(), Naive::default());
        let applications = 2 + seed as u32;
        let mut idle: Vec<u32> = (0..applications).collect();
        let mut decisions = 0;
        for _ in 0..3_000 {
            while !idle.is_empty() && below(&mut rng, 3) == 0 {
                let a = idle.swap_remove(below(&mut rng, idle.len() as u64) as usize);
                let (weight, budget) = (1 + below(&mut rng, 1_000), 1 + below(&mut rng, 5_000));
                let since = match below(&mut rng, 2) {
                    0 => Since::Idle,
                    _ => Since::Deceptively { most: below(&mut rng, 20_000) },
                };
                quick.activate(a, weight, budget, since);
                naive.activate(a, weight, budget, since);
            }
            let next = quick.choose();
            assert_eq!(next, naive.choose(), "seed {seed}, decision {decisions}");
            let Some(a) = next else { continue };
            decisions += 1;
            let (served, more) = (below(&mut rng, 3_000), below(&mut rng, 2_000));
            quick.served(served);
            naive.served(served);
            let goes_on = (below(&mut rng, 3) > 0).then(|| (1 + below(&mut rng, 1_000), 1 + below(&mut rng, 5_000)));
            quick.expire(served + more, goes_on);
            naive.expire(served + more, goes_on);
            assert_eq!(quick.now(), naive.now());
            idle.extend(goes_on.is_none().then_some(a));
        }
        assert!(decisions > 1_000);
    }
}

/// An application of the test: random bursts of work.
struct Application {
    weight: u64,
    /// Its budgets are as large as its backlog, and this at most.
    most: u64,
    backlog: u64,
    lag: Lag,
}

#[test]
fn over_any_stretch_everybody_gets_its_share_less_what_is_allowed_however_many_there_are() {
    const LARGEST: u64 = 2_000;
    for (count, steps) in [(2, 20_000), (10, 20_000), (100, 40_000), (1_000, 60_000)] {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(count);
        let weight = |rng: &mut Xoshiro256PlusPlus| 1 + below(rng, 100);
        let mut all: Vec<Application> = (0..count)
            .map(|_| Application {
                weight: weight(&mut rng),
                most: 8 + below(&mut rng, LARGEST - 7),
                backlog: 0,
                lag: Lag::default(),
            })
            .collect();
        let weights: u64 = all.iter().map(|a| a.weight).sum();
        let mut q = Bwf2q::new();
        let mut exhausted = 0;
        for _ in 0..steps {
            // Enough comes to keep about half of them backlogged.
            for _ in 0..2 {
                let n = below(&mut rng, count) as usize;
                let a = &mut all[n];
                let came = 1 + below(&mut rng, 3 * LARGEST / 2);
                if a.backlog == 0 {
                    a.lag.begin();
                    q.activate(n as u32, a.weight, came.min(a.most), Since::Idle);
                }
                a.backlog += came;
            }
            let n = q.choose().expect("something has just come") as usize;
            let stamps = q.stamps(n as u32).unwrap();
            // The whole budget that was set when it began to wait.
            let budget = ((stamps.finish.0 - stamps.start.0) * u128::from(stamps.weight)).div_ceil(1 << 32) as u64;
            assert!(budget <= all[n].backlog && budget <= all[n].most);
            let mut left = budget;
            while left > 0 {
                let piece = left.min(64);
                q.served(piece);
                for (m, a) in all.iter_mut().enumerate().filter(|(_, a)| a.backlog > 0) {
                    let due = (piece * a.weight) as f64 / weights as f64;
                    a.lag.served(due, if m == n { piece } else { 0 });
                }
                left -= piece;
            }
            let a = &mut all[n];
            a.backlog -= budget;
            exhausted += u32::from(a.backlog > 0);
            q.expire(budget, (a.backlog > 0).then(|| (a.weight, a.backlog.min(a.most))));
        }
        assert!(exhausted > 100, "nobody was ever backlogged for longer than one budget");
        let mut nearest: f64 = 0.0;
        for a in &all {
            let share = a.weight as f64 / weights as f64;
            let (ahead, behind) = (a.most as f64 * (1.0 - share), a.most as f64 + (LARGEST - a.most) as f64 * share);
            let bound = ahead + behind;
            // One sector for what is lost in dividing.
            assert!(a.lag.worst <= bound + 1.0, "{count}: {} sectors behind, {bound} allowed", a.lag.worst);
            nearest = nearest.max(a.lag.worst / bound);
        }
        println!("{count} applications: at worst {:.0}% of what is allowed", nearest * 100.0);
        assert!(nearest > 0.3, "{count}: the bound was never tried: {nearest}");
    }
}
