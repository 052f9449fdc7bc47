//! Complete profiles of virtual drives, found by timing alone.

use crate::common::device;
use headtime_disk::Dur;
use headtime_disk::profile::builtin;
use headtime_probe::device::Device;
use headtime_probe::error::ProbeError;
use headtime_probe::watch::{Unwatched, Watch};
use headtime_probe::{Options, characterize, recheck};

#[test]
fn an_undescribed_drive_is_predicted_by_the_profile_that_was_found() {
    for name in ["atlas10k", "cheetah36es", "ultrastar36z15", "maxtor-7l250s0"] {
        let mut profile = builtin(name).expect("a built-in drive");
        profile.noise.speed_error_ppb = 41_000;
        profile.noise.speed_drift_ppb = 2_000;
        let mut drive = device(&profile, 3);
        let found = characterize(&mut drive, &mut Unwatched, &Options::default()).expect("a disk");
        println!("{name}: {:.1} min of the drive's time", drive.now().0 as f64 / 60e9);
        found.findings.iter().for_each(|f| println!("  {}: {} ({})", f.what, f.value, f.sure));
        assert!(found.good, "{name}");
        // Verified against another drive of the same geometry: the profile predicts, not the last
        // answer.
        let again = recheck(&mut device(&profile, 77), &mut Unwatched, &Options::default(), &found.profile);
        let again = again.expect("the same drive");
        assert!(again.good, "{name}: {:?}", again.findings);
    }
}

#[test]
fn figures_of_writes_and_rare_events_are_in_the_profile() {
    let mut profile = builtin("atlas10k").expect("a built-in drive");
    profile.noise.settle_retry_ppm = 400;
    profile.noise.recalibrate_every = Dur::from_secs(15);
    let mut drive = device(&profile, 5);
    let sectors = drive.sectors();
    // As on the command line.
    let options = Options { writable: Some((0, sectors / 50)), settling: 40_000, ..Options::default() };
    let found = characterize(&mut drive, &mut Unwatched, &options).expect("a disk");
    found.findings.iter().for_each(|f| println!("  {}: {} ({})", f.what, f.value, f.sure));
    let (of, is) = (&found.profile, &profile);
    let apart = of.mechanics.write_settle_ns.abs_diff(is.mechanics.write_settle_ns);
    assert!(is.mechanics.write_settle_ns > 300_000 && apart < 30_000, "{}", of.mechanics.write_settle_ns);
    assert_eq!(of.noise.settle_retry_turns, is.noise.settle_retry_turns);
    assert!((100..1_000).contains(&of.noise.settle_retry_ppm), "{:?}", of.noise);
    assert!((8..30).contains(&(of.noise.recalibrate_every.as_secs_f64() as u64)), "{:?}", of.noise);
    // w depends on the variation of single seeks.
    assert!(
        (8..60).contains(&(of.noise.seek_sd.0 / 1_000)) && of.noise.seek_max >= is.noise.seek_max,
        "{:?}",
        of.noise
    );
    for (table, word) in [("mechanics", "writes"), ("noise", "recalibrations")] {
        assert!(of.sources[table].contains(word), "{:?}", of.sources);
    }
    let without = characterize(&mut device(&profile, 5), &mut Unwatched, &Options::default()).expect("a disk");
    assert_eq!((without.profile.noise.settle_retry_turns, without.profile.mechanics.write_settle_ns), (0, 0));
}

#[test]
fn a_profile_of_another_drive_is_no_good() {
    let truth = builtin("cheetah36es").expect("a built-in drive");
    let mut other = truth.clone();
    other.mechanics.seek.iter_mut().for_each(|s| s.1 = Dur(s.1.0 * 12 / 10));
    let found = recheck(&mut device(&truth, 1), &mut Unwatched, &Options::default(), &other).expect("as large");
    assert!(!found.good && found.findings[0].sure.contains("seeks"), "{:?}", found.findings);
    let smaller = builtin("atlas10k").expect("a built-in drive");
    let e = recheck(&mut device(&truth, 1), &mut Unwatched, &Options::default(), &smaller).expect_err("another size");
    assert!(matches!(e, ProbeError::NoDisk { .. }), "{e}");
}

/// A watcher that stops the run after some stages.
struct Impatient(u32);

impl Watch for Impatient {
    fn progress(&mut self, _: &'static str, _: f64) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }
}

#[test]
fn it_ends_on_request_and_when_its_time_is_over() {
    let profile = builtin("cheetah36es").expect("a built-in drive");
    let e = characterize(&mut device(&profile, 1), &mut Impatient(3_000), &Options::default());
    assert_eq!(e.expect_err("stopped"), ProbeError::Stopped);
    let options = Options { budget_minutes: Some(1), ..Options::default() };
    let mut drive = device(&profile, 1);
    let e = characterize(&mut drive, &mut Unwatched, &options).expect_err("a minute is too little");
    assert!(matches!(e, ProbeError::Budget { minutes: 1, .. }), "{e}");
    assert!(drive.now().0 < 62_000_000_000);
}
