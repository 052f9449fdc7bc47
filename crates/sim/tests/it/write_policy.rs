//! The state of the drive's write cache is detected from its response times, whatever its profile
//! says.

use headtime_disk::profile::{self, Profile};
use headtime_disk::{Dur, Fault, Time};
use headtime_sched::{Algorithm, FillConfig, Order};
use headtime_sim::background::{Background, Jobs, Nothing};
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Setup, Simulation};
use headtime_sim::stats::Stats;
use headtime_sim::workload::{Arrivals, GroupSpec, Population, freeblock_micro, oltp, open};

fn drive(name: &str, write_back: bool) -> Profile {
    let mut profile = profile::builtin(name).expect("a built-in drive");
    profile.electronics.cache.write_back = write_back;
    profile
}

fn run(truth: &Profile, belief: &Profile, load: &GroupSpec, scan: bool, seconds: u64, faults: Vec<Fault>) -> Stats {
    let setup = Setup { belief: Some(belief), ..Setup::new(truth, Order::SptfAhead, 1) };
    let mut setup = setup.filled(FillConfig { seed: 1, ..FillConfig::new(Algorithm::Headtime) });
    setup.drive.faults = faults;
    let simulation = Simulation::new(&setup).expect("a drive that works");
    let mut load = Population::of(load, simulation.target(), 1).expect("a load");
    let mut jobs = Jobs::scan(simulation.target().capacity, 32);
    let background: &mut dyn Background = if scan { &mut jobs } else { &mut Nothing };
    let limits = Limits { until: Some(Time::ZERO + Dur::from_secs(seconds)), ..Limits::default() };
    simulation.run_with(&mut load, background, limits, None, &mut ()).expect("nothing fails")
}

const DRIVES: [&str; 3] = ["cheetah36es", "hitachi-7k1000c", "nearline-20tb"];

#[test]
fn a_cache_that_is_said_to_be_off_is_found_and_scheduled_for() {
    for name in DRIVES {
        let (on, off) = (drive(name, true), drive(name, false));
        for load in [freeblock_micro(2), freeblock_micro(8), oltp()] {
            let known = run(&on, &on, &load, true, 300, vec![]);
            let hidden = run(&on, &off, &load, true, 300, vec![]);
            let requests = hidden.requests as f64 / known.requests as f64;
            println!("{name}, {}: {requests:.3} of the requests", load.name);
            assert_eq!((known.drive_write_cache, hidden.drive_write_cache), (None, Some(true)), "{name} {}", load.name);
            assert!(requests > 0.99, "{name} {}: {requests}", load.name);
        }
    }
}

#[test]
fn a_cache_that_is_said_to_be_on_and_is_off_is_found_and_gaps_are_filled() {
    for name in DRIVES {
        let (on, off) = (drive(name, true), drive(name, false));
        for load in [freeblock_micro(1), freeblock_micro(2)] {
            let known = run(&off, &off, &load, true, 120, vec![]);
            let wrong = run(&off, &on, &load, true, 120, vec![]);
            let read = wrong.background.sectors as f64 / known.background.sectors as f64;
            println!("{name}, {}: {read:.3} of the sectors", load.name);
            assert_eq!((known.drive_write_cache, wrong.drive_write_cache), (None, Some(false)), "{name} {}", load.name);
            assert!(read > 0.95, "{name} {}: {read}", load.name);
        }
    }
}

#[test]
fn a_cache_that_is_switched_on_is_found() {
    let off = drive("hitachi-7k1000c", false);
    let switched = vec![Fault::WriteCache { at: Time::ZERO + Dur::from_secs(30), on: true }];
    let stats = run(&off, &off, &freeblock_micro(2), true, 60, switched);
    assert_eq!(stats.drive_write_cache, Some(true));
}

#[test]
fn nothing_is_found_where_the_cache_is_as_said() {
    let one = GroupSpec { arrivals: Arrivals::Closed { tasks: 1, think: closed_think() }, ..oltp() };
    for name in DRIVES {
        for write_back in [false, true] {
            let as_said = drive(name, write_back);
            for load in [
                freeblock_micro(1),
                freeblock_micro(16),
                one.clone(),
                open(40.0).expect("a rate"),
                open(400.0).expect("a rate"),
            ] {
                for scan in [false, true] {
                    let stats = run(&as_said, &as_said, &load, scan, 60, vec![]);
                    assert_eq!(stats.drive_write_cache, None, "{name}, write_back {write_back}, {}, {scan}", load.name);
                }
            }
        }
    }
}

fn closed_think() -> headtime_sim::workload::Think {
    match oltp().arrivals {
        Arrivals::Closed { think, .. } => think,
        _ => panic!("oltp is closed"),
    }
}
