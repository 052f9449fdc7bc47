//! A sequential foreground beside a background scan.

use headtime_disk::{Dur, Time, profile};
use headtime_sched::{Algorithm, FillConfig, Order, TaskRange};
use headtime_sim::background::{Background, Job, Jobs, Nothing};
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Setup, Simulation};
use headtime_sim::workload::{GroupSpec, PatternSpec, PlaceSpec, Population, closed};

#[test]
fn who_reads_in_order_is_not_slowed_by_what_is_read_for_free() {
    let second = Dur::from_secs(1);
    for name in ["hitachi-7k1000c", "toshiba-x300-5tb", "nearline-20tb", "cheetah36es"] {
        let profile = profile::builtin(name).expect("a built-in drive");
        let rate = |fill: bool| {
            let setup = Setup::new(&profile, Order::Sptf, 1);
            let setup = if fill { setup.filled(FillConfig::new(Algorithm::Headtime)) } else { setup };
            let simulation = Simulation::new(&setup).expect("a drive that works");
            let pattern = PatternSpec { place: PlaceSpec::Sequential, ..PatternSpec::random_reads(128 << 10) };
            let group = GroupSpec { pattern, ..closed(1) };
            let mut load = Population::of(&group, simulation.target(), 1).expect("a load");
            let capacity = simulation.target().capacity;
            // A scan of the other half of the disk, so that it does not include the reader's own
            // blocks.
            let mut job = Job::scan(capacity, 128);
            job.tasks[0].ranges = vec![TaskRange { lbn: capacity / 2, count: capacity / 2 }];
            let mut scan: Box<dyn Background> = if fill { Box::new(Jobs::new(vec![job])) } else { Box::new(Nothing) };
            let limits = Limits { until: Some(Time::ZERO + second + second), ..Limits::default() };
            let stats = simulation.run_with(&mut load, &mut *scan, limits, None, &mut ()).expect("it runs");
            stats.requests
        };
        let (alone, beside) = (rate(false), rate(true));
        println!("{name}: {alone} alone, {beside} beside a scan");
        assert!(beside as f64 >= 0.99 * alone as f64, "{name}: {alone} alone, {beside} beside a scan");
    }
}
