//! Drives drawn at random: what is found is right, or is not called good.

use headtime_probe::Options;
use headtime_probe::characterize;
use headtime_probe::watch::Unwatched;
use headtime_testkit::drives::drive;
use headtime_testkit::drives::observable::{Differs, differences};

use crate::common::device;

/// Whether the found profile is called good, and what a host could tell from the truth.
fn found(seed: u64) -> (bool, Vec<Differs>) {
    let drawn = drive(seed);
    let options = Options { seed, ..Options::default() };
    let found = characterize(&mut device(&drawn.profile, seed), &mut Unwatched, &options).expect("a disk");
    println!("{seed} {:?}: {:?}", drawn.classes, found.findings);
    (found.good, differences(&drawn.profile, &found.profile, seed).expect("two models"))
}

#[test]
fn two_heads_of_different_skews_and_uneven_heads_there_and_back_and_sweeps_of_equal_skews_are_found() {
    for seed in [1_000, 1_002, 1_004] {
        let (good, apart) = found(seed);
        assert!(good && apart.is_empty(), "{seed}: {good} {apart:?}");
    }
}

#[test]
fn a_profile_that_a_host_could_tell_from_the_truth_is_not_called_good() {
    // Serpentines whose layout is not found, though random reads are as predicted.
    for seed in [1_013, 1_017] {
        let (good, apart) = found(seed);
        assert!(!good || apart.is_empty(), "{seed}: {apart:?}");
    }
}
