//! headtime without background work against the bare drive, with a deep queue and with no queue in
//! the drive.

use headtime_disk::{Dur, Time, profile};
use headtime_sched::{BfqRules, Order, Policy};
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Scheduling, Setup, Simulation};
use headtime_sim::stats::Stats;
use headtime_sim::workload::variates::Share;
use headtime_sim::workload::{GroupSpec, PatternSpec, PlaceSpec, Population, SizeSpec, closed};

/// Returns requests per second and the p99 in ms, of the drive alone and with headtime in front of
/// it.
fn both(drive: &str, group: &GroupSpec, requests: u64) -> [(f64, f64); 2] {
    let profile = profile::builtin(drive).expect("a built-in drive");
    let of = |scheduling: Option<Scheduling>| {
        let mut setup = Setup::new(&profile, Order::SptfAhead, 1);
        setup.scheduling = scheduling.unwrap_or(setup.scheduling);
        let simulation = Simulation::new(&setup).expect("a drive that works");
        let mut load = Population::of(group, simulation.target(), 1).expect("a load");
        let limits = Limits { requests: Some(requests), ..Limits::default() };
        let stats: Stats = simulation.run(&mut load, limits, None, &mut ()).expect("it runs");
        (stats.per_second(), stats.responses().quantile(990).expect("requests").as_ms_f64())
    };
    [of(Some(Scheduling::Drive)), of(None)]
}

/// A drive with a write cache and no queue serves one write after another. In another order, each
/// costs it a revolution.
#[test]
fn sequential_writes_keep_their_order_on_a_drive_with_a_write_cache_and_no_queue() {
    for (tasks, kib) in [(4, 16), (4, 64), (8, 64), (64, 64)] {
        let pattern = PatternSpec {
            size: SizeSpec::Fixed { bytes: kib << 10 },
            place: PlaceSpec::SharedSequential,
            reads: Share::NONE,
            ..PatternSpec::random_reads(4096)
        };
        let group = GroupSpec { pattern, ..closed(tasks) };
        let [bare, ours] = both("maxtor-stm332061", &group, 10_000);
        println!("{tasks} outstanding, {kib} KiB: {bare:?} bare, {ours:?}");
        assert!(ours.0 > 0.99 * bare.0 && ours.1 < 1.03 * bare.1, "{tasks} x {kib} KiB: {bare:?} bare, {ours:?}");
    }
}

/// The drive's queue holds 32 of them. With a limit on the waiting time instead of ages, 256
/// outstanding requests reached 101 per second of the drive's 222: all were overdue, and were
/// dispatched in order of arrival.
#[test]
fn more_requests_than_the_drives_queue_holds_wait_no_longer_than_for_the_drive() {
    for drive in ["hitachi-7k1000c", "atlas10k"] {
        for outstanding in [48, 128, 512] {
            let [bare, ours] = both(drive, &closed(outstanding), 20_000);
            println!("{drive}, {outstanding} outstanding: {bare:?} bare, {ours:?}");
            assert!(ours.0 > bare.0 && ours.1 < 1.03 * bare.1, "{drive}, {outstanding}: {bare:?} bare, {ours:?}");
        }
    }
}

/// Ages count for all applications together: each of ten has its own part of the drive. With half
/// the weight for ages, as without ADMIT, the p99 is 1.01 to 1.03 times the drive's.
#[test]
fn seeky_applications_of_equal_weight_wait_no_longer_than_for_the_drive() {
    let share = |i: u32| f64::from(i) / 10.0;
    let application = |i| {
        let place = PlaceSpec::Part { from: share(i), to: share(i + 1) };
        GroupSpec { pattern: PatternSpec { place, ..PatternSpec::random_reads(4096) }, ..closed(1) }
    };
    let groups: Vec<GroupSpec> = (0..10).map(application).collect();
    let profile = profile::builtin("atlas10k").expect("a built-in drive");
    let p99 = |scheduling, admit, seed| {
        let setup = Setup { scheduling, admit, ..Setup::new(&profile, Order::SptfAhead, seed) };
        let simulation = Simulation::new(&setup).expect("a drive that works");
        let mut load = Population::new(&groups, simulation.target(), seed).expect("a load");
        let limits = Limits { until: Some(Time::ZERO + Dur::from_secs(1_000)), ..Limits::default() };
        let stats = simulation.run(&mut load, limits, None, &mut ()).expect("it runs");
        stats.responses().quantile(990).expect("requests").as_ms_f64()
    };
    for seed in 1..4 {
        let bare = p99(Scheduling::Drive, Policy::None, seed);
        let ours = p99(Scheduling::Host(Order::SptfAhead), Policy::Bfq(BfqRules::plus()), seed);
        println!("seed {seed}: {ours:.2} ms of {bare:.2}: {:.4}", ours / bare);
        assert!(ours < bare, "seed {seed}: {ours} ms, {bare} ms from the drive");
    }
}
