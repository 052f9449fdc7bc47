//! Resuming an interrupted characterisation.

use headtime_disk::profile::{GeometrySpec, builtin};
use headtime_disk::{Geometry, Time};
use headtime_probe::device::{Ask, Device, DeviceError};
use headtime_probe::error::ProbeError;
use headtime_probe::journal::{Entry, Journaled};
use headtime_probe::watch::{Unwatched, Watch};
use headtime_probe::{Found, Options, characterize};
use headtime_testkit::profiles::cut;

use crate::common::{Through, device, wrong};

/// A watcher that stops after this number of commands.
struct Impatient(u32);

impl Watch for Impatient {
    fn progress(&mut self, _: &'static str, _: f64) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 > 0
    }
}

/// Runs once with an earlier run's journal, and returns the new journal, old and new entries.
fn run(
    device: &mut dyn Device,
    past: Vec<Entry>,
    watch: &mut dyn Watch,
    seed: u64,
) -> (Result<Found, ProbeError>, Vec<Entry>) {
    let mut kept = past.clone();
    let mut tell = |new: &[Entry]| kept.extend_from_slice(new);
    let options = Options { seed, ..Options::default() };
    let found = characterize(&mut Journaled::new(device, past, &mut tell), watch, &options);
    (found, kept)
}

/// Tracks of one geometry with another start, other sectors, or another surface in the other. The
/// distance between cylinders of two zones is measured, with a slightly different result each time.
fn elsewhere(one: &GeometrySpec, other: &GeometrySpec) -> u64 {
    let built = |spec| Geometry::new(spec).expect("a geometry");
    wrong(&built(one), &built(other))
}

#[test]
fn a_run_that_was_cut_off_anywhere_ends_as_one_that_was_not() {
    let profile = builtin("cheetah36es").expect("a built-in drive");
    let mut drive = device(&profile, 1);
    let (whole, all) = run(&mut drive, Vec::new(), &mut Unwatched, 1);
    let took = drive.now().0;
    let whole = whole.expect("a disk").profile;
    let commands = all.iter().filter(|e| matches!(e, Entry::Ran(..))).count() as u32;
    // With a whole run's answers no command reaches the drive.
    let mut unused = device(&profile, 9);
    let (again, _) = run(&mut unused, all, &mut Unwatched, 1);
    assert_eq!(again.expect("the same").profile, whole);
    assert_eq!(unused.now().0, 0);
    for part in [1, 4, 6, 9] {
        let mut early = device(&profile, 1);
        let (stopped, first) = run(&mut early, Vec::new(), &mut Impatient(commands / 10 * part), 1);
        assert_eq!(stopped.expect_err("stopped"), ProbeError::Stopped);
        // Twice; each time after a pause, with the platter elsewhere.
        let mut later = device(&profile, 40 + u64::from(part));
        let (stopped, second) = run(&mut later, first.clone(), &mut Impatient(commands / 10 * part + 500), 1);
        assert_eq!(stopped.expect_err("stopped"), ProbeError::Stopped);
        assert!(second.len() > first.len() && second[..first.len()] == first[..]);
        let mut last = device(&profile, 70 + u64::from(part));
        let found = run(&mut last, second, &mut Unwatched, 1).0.expect("a disk");
        println!("{part}/10: {:.1} s more; {:?}", last.now().0 as f64 / 1e9, found.findings.last());
        assert!(found.good);
        assert_eq!(elsewhere(&found.profile.geometry, &whole.geometry), 0);
        // Earlier work is not repeated, apart from about a second per resume.
        let rest = took - early.now().0 - later.now().0 + 20_000_000_000;
        assert!(last.now().0 < rest, "{part}: {} of {rest}", last.now().0);
    }
}

#[test]
fn wherever_it_stopped_the_platter_is_found_again_before_anything_is_believed() {
    let profile = cut(builtin("cheetah36es").expect("a built-in drive"), 6_000);
    let (whole, _) = run(&mut device(&profile, 1), Vec::new(), &mut Unwatched, 1);
    let whole = whole.expect("a disk").profile.geometry;
    // During the rotation stage, and all over the map.
    for stop in (20..1_400).step_by(61) {
        let (stopped, kept) = run(&mut device(&profile, 1), Vec::new(), &mut Impatient(stop), 1);
        assert_eq!(stopped.expect_err("stopped"), ProbeError::Stopped);
        let found = run(&mut device(&profile, 90 + u64::from(stop)), kept, &mut Unwatched, 1).0;
        let found = found.unwrap_or_else(|e| panic!("{stop}: {e}")).profile.geometry;
        assert_eq!(elsewhere(&found, &whole), 0, "stopped at {stop}");
    }
}

#[test]
fn runs_that_ended_before_their_first_answer_spoil_nothing() {
    let profile = builtin("cheetah36es").expect("a built-in drive");
    let (_, mut kept) = run(&mut device(&profile, 1), Vec::new(), &mut Impatient(2_000), 1);
    for seed in 2..5 {
        let gone = |_: &mut dyn Device, _: &mut Time, _: &[Ask], _| Err(DeviceError("gone".into()));
        let mut drive = device(&profile, seed);
        let mut drive = Through { drive: &mut drive, now: Time::ZERO, run: gone };
        let e = run(&mut drive, kept.clone(), &mut Unwatched, 1);
        assert!(e.0.expect_err("gone").to_string().contains("gone"));
        kept = e.1;
    }
    assert!(run(&mut device(&profile, 7), kept, &mut Unwatched, 1).0.expect("a disk").good);
}

#[test]
fn answers_to_other_questions_are_refused() {
    let profile = builtin("cheetah36es").expect("a built-in drive");
    let (_, kept) = run(&mut device(&profile, 1), Vec::new(), &mut Impatient(2_000), 1);
    let e = run(&mut device(&profile, 1), kept, &mut Unwatched, 2).0.expect_err("another seed asks for other sectors");
    assert!(e.to_string().contains("another run"), "{e}");
}
