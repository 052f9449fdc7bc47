//! Characterises drives drawn at random, in virtual time, and compares what is found with the
//! truth.
//!
//! `drives N SEED [--each] [--truth]`: the drives of seeds SEED * 1000 to SEED * 1000 + N - 1. With
//! `--each` a line for each as it ends; then how many were right, rejected and wrong, by class.
//! With `--truth` the true profiles are only verified, and each must be good.

// A program beside the pure crate: it has arguments and threads.
#![allow(clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use headtime_disk::profile::Profile;
use headtime_disk::{DriveConfig, Dur};
use headtime_probe::virtual_drive::VirtualDrive;
use headtime_probe::watch::Unwatched;
use headtime_probe::{Found, Options, characterize, recheck};
use headtime_testkit::drives::observable::differences;
use headtime_testkit::drives::{Drawn, drive};

/// What came of a drive.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Result {
    /// No host could tell the profile from the truth, and it is called good.
    Right,
    /// Right, but not called good.
    Modest,
    /// Wrong, and not called good, or no profile at all.
    Rejected,
    /// Wrong, and called good.
    Wrong,
}

const RESULTS: [(Result, &str); 4] = [
    (Result::Right, "right"),
    (Result::Modest, "right, not good"),
    (Result::Rejected, "rejected"),
    (Result::Wrong, "wrong"),
];

/// Limit of a drive's own time: ten times what the largest built-in drives take.
const BUDGET_MINUTES: u64 = 300;

struct Row {
    seed: u64,
    drawn: Drawn,
    result: Result,
    /// Why: the error, or the differences.
    why: String,
    /// The drive's own time, minutes.
    minutes: f64,
}

fn characterised(seed: u64, truth: bool) -> Row {
    let drawn = drive(seed);
    let config = DriveConfig::default().with_seed(seed);
    let mut device = VirtualDrive::new(&drawn.profile, config, Dur::from_us(20)).expect("the generator checked it");
    let options = Options { seed, budget_minutes: Some(BUDGET_MINUTES), ..Options::default() };
    let found = match truth {
        true => recheck(&mut device, &mut Unwatched, &options, &actual(&drawn.profile)),
        false => characterize(&mut device, &mut Unwatched, &options),
    };
    let minutes = headtime_probe::device::Device::now(&device).0 as f64 / 60e9;
    let (result, why) = match found {
        Err(e) => (Result::Rejected, e.to_string()),
        Ok(found) => match differences(&drawn.profile, &found.profile, seed) {
            Err(e) => (Result::Rejected, e.to_string()),
            Ok(all) => {
                let result = match (all.is_empty(), found.good) {
                    (true, true) => Result::Right,
                    (true, false) => Result::Modest,
                    (false, false) => Result::Rejected,
                    (false, true) => Result::Wrong,
                };
                let mut why: Vec<String> = all.iter().map(|d| format!("{}: {:.1}", d.what, d.by)).collect();
                if !found.good {
                    why.push(verdict(&found));
                }
                (result, why.join("; "))
            }
        },
    };
    Row { seed, drawn, result, why, minutes }
}

/// The true profile with the drive's own speed instead of the nominal one.
fn actual(truth: &Profile) -> Profile {
    let mut actual = truth.clone();
    let (n, d) = truth.mechanics.rpm;
    let billion = 1_000_000_000u64;
    actual.mechanics.rpm = (n * billion, d * billion.saturating_add_signed(truth.noise.speed_error_ppb));
    actual.noise.speed_error_ppb = 0;
    actual
}

/// What the verification says of a profile.
fn verdict(found: &Found) -> String {
    let of = |what: &str| found.findings.iter().filter(|f| f.what == what).map(|f| f.sure.clone()).collect::<String>();
    format!("[{}; {}; {}]", of("layout"), of("verified"), of("moves and angles"))
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize| args.get(i).and_then(|a| a.parse::<u64>().ok());
    let (Some(n), Some(seed)) = (number(0), number(1)) else {
        eprintln!("usage: drives N SEED [--each]: expected two numbers, found {args:?}");
        return ExitCode::from(2);
    };
    let given = |what: &str| args.iter().any(|a| a == what);
    let (each, truth) = (given("--each"), given("--truth"));
    let (next, rows) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= n {
                        break;
                    }
                    let row = characterised(seed * 1_000 + i, truth);
                    if each {
                        println!("{}", line(&row));
                    }
                    rows.lock().unwrap_or_else(PoisonError::into_inner).push(row);
                }
            });
        }
    });
    let mut rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    rows.sort_by_key(|r| r.seed);
    table(&rows);
    let wrong = rows.iter().filter(|r| r.result == Result::Wrong).count();
    ExitCode::from(u8::from(wrong > 0))
}

fn line(row: &Row) -> String {
    let name = RESULTS.iter().find(|r| r.0 == row.result).map_or("", |r| r.1);
    format!("{} {name} ({}; {:.0} min) {}", row.seed, row.drawn.classes.join(", "), row.minutes, row.why)
}

/// Prints how many drives of each class had each result.
fn table(rows: &[Row]) {
    let mut classes: BTreeMap<&str, BTreeMap<Result, u32>> = BTreeMap::new();
    for row in rows {
        for class in row.drawn.classes.iter().copied().chain(["all"]) {
            *classes.entry(class).or_default().entry(row.result).or_default() += 1;
        }
    }
    print!("{:<32}", "class");
    RESULTS.iter().for_each(|r| print!("{:>16}", r.1));
    println!();
    for (class, counts) in classes {
        print!("{class:<32}");
        RESULTS.iter().for_each(|r| print!("{:>16}", counts.get(&r.0).copied().unwrap_or(0)));
        println!();
    }
}
