//! A write cache in the host's memory, in front of the simulated scheduler.

use headtime_disk::profile::{self, Profile};
use headtime_disk::{Dur, Time};
use headtime_sched::write_cache::{Counts, Limits as Memory};
use headtime_sched::{Algorithm, FillConfig, Order, Policy};
use headtime_sim::background::{Background, Jobs, Nothing, scan_unit};
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Scheduling, Setup, Simulation};
use headtime_sim::stats::Stats;
use headtime_sim::workload::variates::Share;
use headtime_sim::workload::{GroupSpec, PatternSpec, PlaceSpec, Population, oltp, open};

/// Returns a drive with its own cache on, as shipped.
fn nearline() -> Profile {
    let profile = profile::builtin("nearline-20tb").unwrap();
    assert!(profile.electronics.cache.write_back);
    profile
}

struct Case {
    scheduling: Scheduling,
    fills: bool,
    memory: Option<u64>,
    seconds: u64,
}

const FILLED: Case =
    Case { scheduling: Scheduling::Host(Order::SptfSw(100)), fills: true, memory: Some(64 << 20), seconds: 60 };

fn run(case: &Case, load: &GroupSpec, seed: u64) -> Stats {
    let profile = nearline();
    let write_cache = case.memory.map(|memory| Memory { memory });
    let mut setup = Setup { scheduling: case.scheduling, write_cache, ..Setup::new(&profile, Order::Sptf, seed) };
    if case.fills {
        setup = setup.filled(FillConfig { seed, ..FillConfig::new(Algorithm::Headtime) });
    }
    let simulation = Simulation::new(&setup).unwrap();
    let mut load = Population::of(load, simulation.target(), seed).unwrap();
    let target = simulation.target();
    let mut scan = Jobs::scan(target.capacity, scan_unit(target.capacity, target.sector_bytes));
    let background: &mut dyn Background = if case.fills { &mut scan } else { &mut Nothing };
    let limits = Limits { until: Some(Time::ZERO + Dur::from_secs(case.seconds)), ..Limits::default() };
    simulation.run_with(&mut load, background, limits, None, &mut ()).unwrap()
}

fn counts(stats: &Stats) -> Counts {
    stats.write_cache.expect("there is a cache").1
}

fn mean_ms(d: Option<Dur>) -> f64 {
    d.map_or(0.0, |d| d.as_ms_f64())
}

fn scanned_mb_s(stats: &Stats) -> f64 {
    stats.background.sectors as f64 * 4096.0 / 1e6 / stats.ended_at.as_secs_f64()
}

#[test]
fn gaps_are_filled_and_writes_answered_at_once_where_the_drives_cache_gives_one_of_both() {
    let shipped = run(&Case { memory: None, ..FILLED }, &oltp(), 1);
    let ours = run(&FILLED, &oltp(), 1);
    assert!(scanned_mb_s(&shipped) < 1.0 && scanned_mb_s(&ours) > 40.0, "{}", scanned_mb_s(&ours));
    assert!(ours.per_second() > shipped.per_second(), "{} {}", ours.per_second(), shipped.per_second());
    assert_eq!(ours.writes.max(), Some(Dur::ZERO));
    let c = counts(&ours);
    assert!(c.free > 0 && c.through == 0, "{c:?}");
    // Accepted data is written, or dirty; the disk is so large that hardly anything is overwritten.
    assert!(c.free + c.dirty <= c.accepted && c.free + c.dirty > c.accepted / 100 * 99, "{c:?}");
}

#[test]
fn a_full_cache_writes_in_the_foreground_and_keeps_to_its_memory() {
    let c = counts(&run(&Case { fills: false, memory: Some(1 << 20), ..FILLED }, &oltp(), 1));
    assert!(c.through > 10 << 20 && c.free == 0 && c.dirty <= 1 << 20, "{c:?}");
}

#[test]
fn without_fill_old_blocks_are_written_in_idle_time() {
    let light = open(2.0).unwrap();
    let c = counts(&run(&Case { fills: false, seconds: 120, ..FILLED }, &light, 1));
    assert!(c.through > c.accepted / 2 && c.free == 0, "{c:?}");
    // The same with the drive's order, without a core.
    let drive = Case { scheduling: Scheduling::Drive, fills: false, seconds: 120, ..FILLED };
    let c = counts(&run(&drive, &light, 1));
    assert!(c.through > c.accepted / 2, "{c:?}");
    // At first no data is old.
    let c = counts(&run(&Case { fills: false, seconds: 20, ..FILLED }, &light, 1));
    assert!(c.accepted > 0 && c.through == 0, "{c:?}");
}

#[test]
fn a_write_that_must_be_on_the_media_waits_for_it() {
    let load = open(20.0).unwrap();
    let pattern = PatternSpec { fua: true, reads: Share::new(1, 2).unwrap(), ..load.pattern.clone() };
    let stats = run(&FILLED, &GroupSpec { pattern, ..load }, 1);
    assert!(mean_ms(stats.writes.mean()) > 4.0, "{:?}", stats.writes.mean());
    let c = counts(&stats);
    assert!(c.through > 0 && c.free == 0, "{c:?}");
}

#[test]
fn what_was_written_lately_is_read_from_memory() {
    // A megabyte of the disk.
    let load = oltp();
    let pattern = PatternSpec { place: PlaceSpec::Part { from: 0.5, to: 0.500_000_05 }, ..load.pattern.clone() };
    let stats = run(&Case { fills: false, seconds: 30, ..FILLED }, &GroupSpec { pattern, ..load }, 1);
    let c = counts(&stats);
    assert!(c.hits > 4 * c.misses && c.misses > 0, "{c:?}");
    assert_eq!(stats.reads.quantile(500), Some(Dur::ZERO));
    // Blocks that are overwritten repeatedly are not written to the disk each time.
    assert!(c.dirty < 2 << 20 && c.through + c.free < c.accepted / 2, "{c:?}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let figures = |seed| {
        let stats = run(&Case { seconds: 20, ..FILLED }, &oltp(), seed);
        (stats.requests, stats.background.sectors, counts(&stats))
    };
    assert_eq!(figures(3), figures(3));
    assert_ne!(figures(3), figures(4));
}

#[test]
fn under_bfq_what_goes_for_want_of_memory_does_not_break_the_others_up_into_turns() {
    let profile = nearline();
    let write_cache = Some(Memory { memory: 1 << 20 });
    let admit = Policy::named("bfq+").unwrap();
    let rate = |write_cache| {
        let setup = Setup { admit: admit.clone(), write_cache, ..Setup::new(&profile, Order::SptfAhead, 1) };
        let simulation = Simulation::new(&setup).unwrap();
        let mut load = Population::of(&oltp(), simulation.target(), 1).unwrap();
        let limits = Limits { until: Some(Time::ZERO + Dur::from_secs(60)), ..Limits::default() };
        simulation.run(&mut load, limits, None, &mut ()).unwrap().per_second()
    };
    let (ours, shipped) = (rate(write_cache), rate(None));
    assert!(ours > 0.9 * shipped, "{ours} {shipped}");
}
