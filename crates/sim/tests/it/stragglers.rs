//! What units cost that no gap holds: they are fetched like foreground requests.

use headtime_disk::profile::{self, Profile};
use headtime_disk::{Dur, Time};
use headtime_sched::{Algorithm, FillConfig, Order};
use headtime_sim::background::Jobs;
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Setup, Simulation};
use headtime_sim::stats::Stats;
use headtime_sim::workload::{GroupSpec, Population, freeblock_micro, oltp};

/// Runs a load for a number of seconds, alone or beside a scan in units of `unit` sectors.
fn run(drive: &Profile, belief: &Profile, load: &GroupSpec, unit: Option<u32>, seconds: u64) -> Stats {
    let mut setup = Setup { belief: Some(belief), ..Setup::new(drive, Order::SptfJoint, 1) };
    if unit.is_some() {
        setup = setup.filled(FillConfig { seed: 1, ..FillConfig::new(Algorithm::Headtime) });
    }
    let simulation = Simulation::new(&setup).expect("a drive that works");
    let mut load = Population::of(load, simulation.target(), 1).expect("a load");
    let limits = Limits { until: Some(Time::ZERO + Dur::from_secs(seconds)), ..Limits::default() };
    let stats = match unit {
        Some(unit) => {
            let mut jobs = Jobs::scan(simulation.target().capacity, unit);
            simulation.run_with(&mut load, &mut jobs, limits, None, &mut ())
        }
        None => simulation.run(&mut load, limits, None, &mut ()),
    };
    stats.expect("nothing fails")
}

/// A unit of 1 MiB is ten tracks of this drive. One each half second would take 13% of the
/// foreground's requests.
#[test]
fn units_larger_than_any_gap_cost_the_foreground_half_a_percent() {
    let drive = profile::builtin("atlas3").expect("a built-in drive");
    let alone = run(&drive, &drive, &oltp(), None, 120);
    for unit in [256, 1_024, 2_048] {
        let beside = run(&drive, &drive, &oltp(), Some(unit), 120);
        let loss = 100.0 * (1.0 - beside.requests as f64 / alone.requests as f64);
        println!("units of {unit} sectors: {loss:.2}% lost, {} sectors brought", beside.background.sectors);
        assert!(loss < 0.7 && beside.background.sectors > 0, "{unit}: {loss}%");
    }
}

/// The drive's write cache is on, which its profile does not say, so filling stops; and the load
/// never pauses: of sixteen requests some always wait for the media.
#[test]
fn a_scan_goes_on_while_filling_has_stopped_though_slowly() {
    let belief = profile::builtin("cheetah36es").expect("a built-in drive");
    let mut drive = belief.clone();
    drive.electronics.cache.write_back = true;
    let brought = [100, 400].map(|seconds| {
        let stats = run(&drive, &belief, &freeblock_micro(16), Some(64), seconds);
        (stats.background.sectors, stats.freeblock.expect("FILL is on").times_shut)
    });
    let more = brought[1].0 - brought[0].0;
    println!("sectors after 100 and 400 s, and how often filling stopped: {brought:?}");
    assert!(brought.iter().all(|b| b.1 > 0), "{brought:?}");
    // One each minute, of at most 128 KiB.
    assert!((4 * 64..=6 * 256).contains(&more), "{more}");
}
