//! Heads that do not settle, and recalibrations.

use headtime_disk::Dur;
use headtime_disk::profile::{NoiseSpec, builtin};
use headtime_probe::seeks::{distances, longest, measure};
use headtime_probe::settling::{Lost, provoke};

use crate::common::Lab;

/// Searches a drive with this noise with the given number of requests.
fn lost(name: &str, noise: impl FnOnce(&mut NoiseSpec), requests: u64) -> Lost {
    let mut profile = builtin(name).expect("a built-in drive");
    noise(&mut profile.noise);
    let mut lab = Lab::new(profile);
    let geometry = lab.truth.geometry.clone();
    lab.probe(|sampler, spindle| {
        let far: Vec<u32> = distances(longest(&geometry)).into_iter().rev().take(2).rev().collect();
        let seeks = measure(sampler, spindle, &geometry, &far).expect("it answers");
        let found = provoke(sampler, spindle, &seeks, Dur::from_us(300), requests).expect("it answers");
        println!("{name}: {found:?}");
        found
    })
}

#[test]
fn settling_revolutions_are_counted_and_distinguished_from_recalibrations() {
    // Each additional revolution has the same probability again: three need a drive that fails
    // often.
    for (name, turns) in [("atlas10k", 1), ("atlas10k", 3), ("ultrastar36z15", 2), ("hitachi-7k1000c", 2)] {
        let ppm = if turns == 1 { 500 } else { 100_000 };
        let found = lost(
            name,
            |n| {
                (n.settle_retry_ppm, n.settle_retry_turns) = (ppm, turns);
                (n.recalibrate_every, n.recalibrate_takes) = (Dur::ZERO, Dur::ZERO);
            },
            20_000,
        );
        assert_eq!((found.turns, found.recalibrations), (turns, None), "{name}");
        // Some have too little rotational latency to show.
        let all = found.requests * u64::from(ppm) / 1_000_000;
        assert!((all / 6..2 * all).contains(&found.retries), "{name}: {found:?}");
    }
    let found = lost(
        "atlas10k",
        |n| {
            (n.settle_retry_ppm, n.settle_retry_turns) = (300, 1);
            (n.recalibrate_every, n.recalibrate_takes) = (Dur::from_secs(20), Dur::from_ms(30));
        },
        30_000,
    );
    assert_eq!(found.turns, 1);
    let (every, takes) = found.recalibrations.expect("some twenty of them");
    assert!((12..30).contains(&(every.as_secs_f64() as u64)), "{every:?}");
    assert!((20..40).contains(&(takes.0 / 1_000_000)), "{takes:?}");
    // The worst case includes at least its true duration, and at most two revolutions of 6 ms more.
    assert!((30..43).contains(&(found.longest.0 / 1_000_000)), "{:?}", found.longest);
}

#[test]
fn a_drive_that_always_settles_lost_nothing() {
    let found = lost("cheetah36es", |n| (n.settle_retry_ppm, n.settle_retry_turns) = (0, 0), 20_000);
    assert!(found.requests >= 20_000);
    assert_eq!((found.retries, found.turns, found.recalibrations), (0, 0, None));
}
