//! Output files and state: after a power failure each is complete or absent, and present once the
//! command has ended.

use std::ffi::OsStr;
use std::fs;
use std::process::Command;

use headtime_host::state;
use headtime_sched::TaskRange;
use headtime_serve::apps::progress::Progress;
use headtime_serve::apps::units::Units;
use headtime_serve::internals::apps::sums::{Known, Sums};

use super::{Op, each_failure, number_of_failures, place};
use crate::real::{SMALL, headtime, run};

/// Runs a command that writes a file in the recorded directory, and checks power failures.
fn is_whole_or_absent(test: &str, command: impl FnOnce(&OsStr) -> Command) {
    let Some(place) = place(test) else { return };
    let path = place.recorded.join("it");
    run(&mut command(path.as_os_str()));
    place.recorder.note(0);
    let whole = fs::read(&path).unwrap();
    let log = place.recorder.finish();
    let ended = log.iter().position(|op| matches!(op, Op::Note(_))).expect("the note is in the account");
    let (failures, mut there) = (number_of_failures(200), 0);
    each_failure(&log, failures, |at, disk| {
        let Some(found) = disk.file("it") else {
            assert!(at <= ended, "the command has ended, and its file is gone");
            return;
        };
        there += 1;
        assert!(found.bytes == whole.len() as u64, "{} of {} bytes after {at}", found.bytes, whole.len());
        for (n, sector) in whole.chunks(512).enumerate() {
            assert!(found.sector(n as u64)[..sector.len()] == *sector, "sector {n} after {at} of {}", log.len());
        }
    });
    println!("{failures} power failures in {} operations: {there} times there, each time whole", log.len());
    assert!(there > 0);
}

#[test]
fn what_a_simulation_exports_is_whole_or_absent_after_a_power_failure() {
    is_whole_or_absent("power-export", |path| {
        let mut command = headtime();
        command.args(["simulate", "--disk", SMALL, "--workload", "oltp", "--requests", "2000", "--perfetto"]).arg(path);
        command
    });
}

#[test]
fn state_is_the_old_or_the_new_after_a_power_failure() {
    let Some(place) = place("power-state") else { return };
    let path = place.recorded.join("it.json");
    let contents = |n: u64| vec![n; 400];
    state::write_new(&path, &contents(0)).unwrap();
    place.recorder.note(0);
    assert!(matches!(state::write_new(&path, &contents(9)), Err(state::StateError::Exists { .. })));
    for n in 1..20 {
        state::replace(&path, &contents(n)).unwrap();
        place.recorder.note(n);
    }
    let log = place.recorder.finish();
    each_failure(&log, number_of_failures(400), |at, disk| {
        let noted = log[..at].iter().filter_map(|op| if let Op::Note(n) = op { Some(*n) } else { None }).max();
        let left = tempfile::tempdir().unwrap();
        disk.save(left.path()).unwrap();
        let found: Option<Vec<u64>> = state::read(&left.path().join("it.json")).unwrap();
        let found = found.map(|words| words[0]);
        assert!(found >= noted && found <= Some(noted.map_or(0, |n| n + 1)), "{found:?} after {noted:?}");
    });
}

#[test]
fn a_profile_is_whole_and_its_checkpoint_can_be_gone_on_with_after_a_power_failure() {
    let Some(place) = place("power-profile") else { return };
    let characterize = |dir: &std::path::Path, more: &[&str]| {
        let mut command = headtime();
        command.current_dir(dir).args(["characterize", SMALL, "--virtual", "-o", "found.toml"]).args(more);
        run(&mut command)
    };
    characterize(&place.recorded, &[]);
    place.recorder.note(0);
    let whole = fs::read(place.recorded.join("found.toml")).unwrap();
    let log = place.recorder.finish();
    let (mut again, mut there) = (0, 0);
    each_failure(&log, number_of_failures(12), |at, disk| {
        let left = tempfile::tempdir().unwrap();
        disk.save(left.path()).unwrap();
        let found = left.path().join("found.toml");
        let resumed = !found.exists() && left.path().join("found.toml.unfinished").exists();
        if found.exists() {
            there += 1;
        } else {
            assert!(at < log.len(), "the command has ended, and its profile is gone");
            again += 1;
            characterize(left.path(), if resumed { &["--resume"] } else { &[] });
        }
        // A resumed run has other measurements, within their errors; it fails unless its profile
        // predicts 2,000 reads.
        let same = fs::read(&found).unwrap() == whole;
        assert!(same || resumed, "another profile after {at} of {}", log.len());
        run(headtime().args(["profiles", "show"]).arg(&found));
    });
    println!("{} operations: {again} times gone on with or begun anew, {there} times there and whole", log.len());
    assert!(again > 0 && there > 0);
}

#[test]
fn a_new_catalogue_is_whole_or_absent_after_a_power_failure() {
    const UNITS: u64 = 64;
    let Some(place) = place("power-catalogue") else { return };
    let units = Units::new(vec![TaskRange { lbn: 0, count: UNITS * 16 }], 16, UNITS * 16, 512).unwrap();
    let progress = Progress::new("scrub", "a disk", UNITS * 16, 512, "data", units);
    let (sums, there) = Sums::open(&place.recorded.join("it"), progress.identity(), UNITS).unwrap();
    assert!(!there);
    place.recorder.note(0);
    for unit in 0..UNITS {
        sums.set(unit, unit).unwrap();
    }
    sums.sync().unwrap();
    place.recorder.note(1);
    let log = place.recorder.finish();
    each_failure(&log, number_of_failures(400), |at, disk| {
        let noted = log[..at].iter().filter(|op| matches!(op, Op::Note(_))).count();
        let left = tempfile::tempdir().unwrap();
        disk.save(left.path()).unwrap();
        let (sums, there) = Sums::open(&left.path().join("it"), progress.identity(), UNITS).unwrap();
        assert!(there || noted == 0, "it was made, and is gone after {at} operations");
        for unit in 0..UNITS {
            let known = sums.get(unit).unwrap();
            let may_be_absent = known == Known::Nothing && noted < 2;
            assert!(known == Known::Sum(unit) || may_be_absent, "unit {unit} after {at}: {known:?}");
        }
    });
}
