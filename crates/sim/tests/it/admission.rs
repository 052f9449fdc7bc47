//! Applications on one disk under ADMIT, from arrival to drive: behaviour of the whole system.

use headtime_disk::{Dur, Kind, Time, profile};
use headtime_sched::{Algorithm, FillConfig, IdleConfig, Order, Policy};
use headtime_sim::background::{Background, Job, Jobs, Nothing};
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Setup, Simulation};
use headtime_sim::stats::Stats;
use headtime_sim::workload::suite::code::{Tool, Work};
use headtime_sim::workload::suite::files::{FILES, FileActor, Load};
use headtime_sim::workload::suite::video::Player;
use headtime_sim::workload::suite::{Actor, Disk, Suite};

/// Runs actors for the given number of seconds, with or without a background scan.
fn run(
    disk: &str,
    policy: &str,
    fill: Option<FillConfig>,
    seconds: u64,
    actors: impl FnOnce(&Disk) -> Vec<Box<dyn Actor>>,
) -> (Suite, Stats) {
    run_seed(disk, policy, fill, seconds, 1, actors)
}

/// Does the same on a drive with this seed.
fn run_seed(
    disk: &str,
    policy: &str,
    fill: Option<FillConfig>,
    seconds: u64,
    seed: u64,
    actors: impl FnOnce(&Disk) -> Vec<Box<dyn Actor>>,
) -> (Suite, Stats) {
    let profile = profile::builtin(disk).expect("a built-in drive");
    let admit = Policy::named(policy).expect("a policy");
    let setup = Setup { admit, ..Setup::new(&profile, Order::Clook, seed) };
    let filled = fill.is_some();
    let setup = fill.map_or(setup.clone(), |f| setup.filled(f));
    let simulation = Simulation::new(&setup).expect("a drive that works");
    let target = simulation.target();
    let disk = Disk { capacity: target.capacity, sector_bytes: u64::from(target.sector_bytes) };
    let mut suite = Suite::new(target, actors(&disk));
    let mut scan: Box<dyn Background> = match filled {
        true => Box::new(Jobs::new(vec![Job { again: true, ..Job::scan(disk.capacity, 128) }])),
        false => Box::new(Nothing),
    };
    let limits = Limits { until: Some(Time::ZERO + Dur::from_secs(seconds)), ..Limits::default() };
    let stats = simulation.run_with(&mut suite, &mut *scan, limits, None, &mut ()).expect("it runs");
    (suite, stats)
}

#[test]
fn what_an_order_passes_over_goes_when_it_has_waited_too_long() {
    // Five sequential writers further on: C-LOOK never returns to a tool's writes at the start of
    // the disk.
    for policy in ["bfq+", "bfq", "cfq"] {
        let (suite, _) = run("maxtor-stm332061", policy, None, 120, |disk| {
            let mut actors = Load::Mixed5Seq.actors(disk, 1);
            actors.push(Box::new(Work::new(disk, Tool::CHECKOUT, Time::ZERO, 1)));
            actors
        });
        let steps = suite.account(10).steps;
        // The cache takes 256 of its writes; the tool makes no further steps unless some of them
        // are written.
        assert!(steps > 400, "{policy}: {steps} steps");
    }
}

#[test]
fn what_the_drive_answers_from_its_cache_is_not_made_a_media_access_by_filling() {
    // While BFQ idles in vain for a player, the drive reads ahead for it. Four of five requests are
    // served from that.
    let moved = |fill, seed| {
        let (suite, _) = run_seed("hitachi-7k1000c", "bfq+", fill, 40, seed, |disk| {
            let reader = |i| Box::new(FileActor::new(disk, Kind::Read, false, (i, FILES), 1)) as Box<dyn Actor>;
            let player = |i| Box::new(Player::new(disk, 1_000_000, 600, Time::ZERO, (i, FILES))) as Box<dyn Actor>;
            (0..5).map(reader).chain((5..10).map(player)).collect()
        });
        suite.rate(10, 38)
    };
    // The rate of a single run varies by 1% with any change of the reads in between.
    let (mut alone, mut filled) = (0.0, 0.0);
    for seed in 1..=8 {
        alone += moved(None, seed);
        filled += moved(Some(FillConfig::new(Algorithm::Headtime)), seed);
    }
    assert!(filled > 0.99 * alone, "{filled} bytes a second, {alone} alone");
}

#[test]
fn the_time_that_the_disk_waits_for_an_application_is_used_and_no_application_gets_less() {
    let moved = |leave_windows| {
        let idle = Some(IdleConfig { leave_windows, ..IdleConfig::default() });
        let fill = FillConfig { idle, ..FillConfig::new(Algorithm::Headtime) };
        let (suite, stats) = run("hitachi-7k1000c", "bfq+", Some(fill), 40, |disk| {
            let reader = |i| Box::new(FileActor::new(disk, Kind::Read, false, (i, FILES), 1)) as Box<dyn Actor>;
            let player = |i| Box::new(Player::new(disk, 1_000_000, 600, Time::ZERO, (i, FILES))) as Box<dyn Actor>;
            (0..5).map(reader).chain((5..10).map(player)).collect()
        });
        (suite.rate(10, 40), stats.background.sectors as f64)
    };
    let (left, used) = (moved(true), moved(false));
    assert!(used.1 > 1.05 * left.1, "free: {} used, {} left alone", used.1, left.1);
    assert!(used.0 > 0.95 * left.0, "foreground: {} used, {} left alone", used.0, left.0);
}
