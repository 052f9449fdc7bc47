//! Adaptive conservatism: against streams whose true errors are known, and before the virtual drive.

mod common;

use common::looped::{Loop, Pick};
use headtime_disk::command::Kind;
use headtime_disk::model::Model;
use headtime_disk::profile::{self, Profile};
use headtime_disk::time::Dur;
use headtime_sched::fill::adaptive::{Adaptive, CEILING, FLOOR, START};
use headtime_sched::fill::evidence::Seen;
use headtime_sched::request::Surprise;
use headtime_testkit::profiles::{between, rng};

/// The drive with every seek longer by so many percent; head switches and settling as they were.
fn slower(p: &Profile, percent: i64) -> Profile {
    let mut p = p.clone();
    let longer = |t: Dur| Dur((t.0 as i64 * (100 + percent) / 100) as u64);
    p.mechanics.seek.iter_mut().for_each(|s| s.1 = longer(s.1));
    p.mechanics.write_seek.iter_mut().flatten().for_each(|s| s.1 = longer(s.1));
    p
}

fn atlas() -> Profile {
    profile::builtin("atlas10k").expect("a built-in drive")
}

#[test]
fn seeks_5_percent_slower_are_known_after_ten_busy_seconds() {
    let mut failed = 0;
    for name in ["atlas10k", "cheetah36es", "cheetah18lp"] {
        let belief = profile::builtin(name).unwrap();
        let truth = slower(&belief, 5);
        for seed in 1..=3 {
            for (pick, waiting) in [(Pick::Sptf, 10), (Pick::Sptf, 20), (Pick::First, 4)] {
                let mut blind = Loop::new(&belief, &truth, seed, pick, waiting);
                blind.adaptive = None;
                let without = blind.run(Dur::from_secs(30), Dur::from_secs(10));
                let mut it = Loop::new(&belief, &truth, seed, pick, waiting);
                let with = it.run(Dur::from_secs(30), Dur::from_secs(10));
                let mut knowing = Loop::new(&truth, &truth, seed, pick, waiting);
                knowing.adaptive = None;
                let best = knowing.run(Dur::from_secs(30), Dur::from_secs(10));
                println!(
                    "{name} seed {seed} {pick:?} of {waiting}: per mille close {} blind, {} adaptive, {} knowing; \
                     requests {} {} {}; scale {} ppm, {:?}",
                    without.close_per_mille(),
                    with.close_per_mille(),
                    best.close_per_mille(),
                    without.requests,
                    with.requests,
                    best.requests,
                    it.adaptive.as_ref().unwrap().scale_ppm(),
                    it.adaptive.as_ref().unwrap().counts(),
                );
                let margins = it.adaptive.as_ref().unwrap().margins();
                println!("   margins {:?}", (0..28).map(|c| margins.of_class(c).0 / 1_000).collect::<Vec<_>>());
                failed += u32::from(with.close_per_mille() < 950 || with.requests * 100 < best.requests * 98);
            }
        }
    }
    assert_eq!(failed, 0);
}
