//! A reader that reads in order, with one command at the drive and with two: SATF keeps to the order of its requests.

use headtime_disk::profile;
use headtime_disk::time::{Dur, Time};
use headtime_sched::core::Order;
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Setup, Simulation};
use headtime_sim::workload::{GroupSpec, PatternSpec, PlaceSpec, Population, closed};

/// Requests in two seconds.
fn requests(name: &str, order: Order, depth: u32, waiting: u32) -> u64 {
    let profile = profile::builtin(name).expect("a built-in drive");
    let setup = Setup { depth: Some(depth), ..Setup::new(&profile, order, 2) };
    let simulation = Simulation::new(&setup).expect("a drive that works");
    let pattern = PatternSpec { place: PlaceSpec::SharedSequential, ..PatternSpec::random_reads(64 << 10) };
    let group = GroupSpec { pattern, ..closed(waiting) };
    let mut load = Population::of(&group, simulation.target(), 2).expect("a load");
    let limits = Limits { until: Some(Time::ZERO + Dur::from_secs(2)), ..Limits::default() };
    simulation.run(&mut load, limits, None, &mut ()).expect("it runs").requests
}

/// With one command at the drive each read arrives while the drive already reads ahead for it, by as much as the drive takes to
/// decode a command. While the predictor did not see that the read-ahead had brought the read, SATF took every second read out of
/// order on the Barracuda.
#[test]
fn satf_reads_in_order_as_fast_as_first_come_first_served() {
    for name in ["ultrastar36z15", "barracuda36es2"] {
        for (depth, waiting) in [(1, 8), (1, 67), (2, 8), (2, 67)] {
            let [fcfs, satf] = [Order::Fcfs, Order::Sptf].map(|order| requests(name, order, depth, waiting));
            let what =
                format!("{name}, depth {depth}, {waiting} waiting: {fcfs} first come, first served, {satf} SATF");
            assert!(satf as f64 >= 0.99 * fcfs as f64, "{what}");
        }
    }
}
