//! File states after a power failure at any moment: programs run on a file system that logs their
//! operations, from which thousands of possible disk states are built.
//!
//! `HEADTIME_POWER_FAILURES=N` sets the number of failures per test.

mod applications;
mod crash;
mod drive;
mod outputs;
mod recorder;

use std::path::PathBuf;

use super::{next, scratch};
use crate::support::{self, Scratch};
use crash::{Disk, Failures};
use recorder::{Op, Recorder};

/// A test's directory, and a recorded directory in it.
struct Place {
    /// Dropped before the directory.
    recorder: Recorder,
    recorded: PathBuf,
    dir: Scratch,
}

/// Returns `None`, with a note, if FUSE is not available.
fn place(test: &str) -> Option<Place> {
    let dir = scratch(test);
    let recorded = dir.directory("recorded");
    match Recorder::mount(&recorded) {
        Ok(recorder) => Some(Place { recorder, recorded, dir }),
        Err(e) => {
            support::skipped(test, &format!("no file system of its own can be mounted: {e}"));
            None
        }
    }
}

/// Number of power failures, `usual` unless the environment sets it.
fn number_of_failures(usual: u64) -> u64 {
    let asked = std::env::var("HEADTIME_POWER_FAILURES").ok();
    asked.map_or(usual, |n| n.parse().expect("HEADTIME_POWER_FAILURES: expected a number"))
}

/// Calls `check` for each of `failures` power failures, with the number of operations before it and
/// a possible disk state. Half of the moments are spread over the log; half are next to operations
/// other than data writes (names, lengths, syncs), which are rare; the last is the end of the log.
fn each_failure(log: &[Op], failures: u64, mut check: impl FnMut(usize, &Disk)) {
    assert!(!log.is_empty(), "nothing was asked of the file system");
    let special: Vec<usize> =
        (0..log.len()).filter(|&n| !matches!(log[n], Op::Write { .. } | Op::Hole { .. })).collect();
    let mut seed = 1;
    let mut chance = |of: usize| {
        seed = next(seed);
        (seed % of as u64) as usize
    };
    let mut moments: Vec<usize> = (1..failures)
        .map(|n| match special.is_empty() || n % 2 == 0 {
            true => chance(log.len() + 1),
            false => (special[chance(special.len())] + chance(3)).min(log.len()),
        })
        .collect();
    moments.push(log.len());
    moments.sort_unstable();
    let mut power = Failures::of(log, 2);
    for at in moments {
        power.go_to(at);
        check(at, &power.disk());
    }
}
