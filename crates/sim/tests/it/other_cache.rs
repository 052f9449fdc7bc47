//! Filling on a drive whose cache is not as its profile says. Headtime's planner uses the profile's
//! habits of the drive to the sector (what it reads ahead before it begins another command), so the
//! foreground would pay for a wrong one.

use headtime_disk::profile::{self, CacheSpec, Prefetch, Profile};
use headtime_disk::{Dur, Time};
use headtime_sched::{Algorithm, FillConfig, Order};
use headtime_sim::background::Jobs;
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Setup, Simulation};
use headtime_sim::stats::Stats;
use headtime_sim::workload::{GroupSpec, PatternSpec, PlaceSpec, Population, closed, freeblock_micro, oltp};

/// Runs a load for 100 s, without FILL or beside a scan of the whole disk.
fn run((drive, belief): (&Profile, &Profile), (order, load): (Order, &GroupSpec), filled: bool) -> Stats {
    let mut setup = Setup { belief: Some(belief), ..Setup::new(drive, order, 1) };
    if filled {
        setup = setup.filled(FillConfig { seed: 1, ..FillConfig::new(Algorithm::Headtime) });
    }
    let simulation = Simulation::new(&setup).expect("a drive that works");
    let mut load = Population::of(load, simulation.target(), 1).expect("a load");
    let limits = Limits { until: Some(Time::ZERO + Dur::from_secs(100)), ..Limits::default() };
    let mut jobs = Jobs::scan(simulation.target().capacity, 64);
    let stats = match filled {
        true => simulation.run_with(&mut load, &mut jobs, limits, None, &mut ()),
        false => simulation.run(&mut load, limits, None, &mut ()),
    };
    stats.expect("nothing fails")
}

fn p99(s: &Stats) -> f64 {
    s.responses().quantile(990).expect("requests ended").as_ms_f64()
}

/// What the foreground loses to filling, and how much longer its 99th percentile is, both in
/// percent against the better of two schedulers that fill nothing: with the profile's belief, and
/// with the truth. And the share of the sectors read that a scheduler with the truth reads.
fn losses(drive: &Profile, belief: &Profile, load: (Order, &GroupSpec)) -> (f64, f64, f64) {
    let alone = [belief, drive].map(|b| run((drive, b), load, false));
    let requests = alone.iter().map(|s| s.requests).max().unwrap_or(0) as f64;
    let tail = alone.iter().map(p99).fold(f64::INFINITY, f64::min);
    let [filled, knows] = [belief, drive].map(|b| run((drive, b), load, true));
    let share = filled.background.sectors as f64 / knows.background.sectors as f64;
    (100.0 * (1.0 - filled.requests as f64 / requests), 100.0 * (p99(&filled) / tail - 1.0), share)
}

/// Asserts, for a drive and a profile that differ in this, either way round, that filling loses
/// less than `most` percent of the requests, and reads more than the share `least`.
fn costs_little(what: &str, change: fn(&mut CacheSpec), loads: &[(&str, Order, GroupSpec)], (most, least): (f64, f64)) {
    for name in ["atlas10k", "cheetah36es"] {
        let given = profile::builtin(name).expect("a built-in drive");
        let mut other = given.clone();
        change(&mut other.electronics.cache);
        for (drive, belief, whose) in [(&other, &given, "drive"), (&given, &other, "profile")] {
            for (load, order, group) in loads {
                let (loss, tail, share) = losses(drive, belief, (*order, group));
                let case = format!("{name}, {load}, the {whose}: {what}");
                println!("{case}: {loss:.2}% lost, p99 {tail:+.2}%, {share:.3} of the scan");
                assert!(loss < most && tail < 3.0, "{case}: {loss:.2}%, {tail:.2}%");
                assert!(share > least, "{case}: {share}");
            }
        }
    }
}

/// Both drives have the habit, so the second case of each is the dangerous one: the profile lacks
/// it. Unless it is learned, the foreground loses 2 to 7% and the scan two thirds of its rate.
#[test]
fn a_habit_of_the_drive_that_its_profile_lacks_is_learned_and_one_it_has_not_costs_nothing() {
    let loads = [("two waiting", freeblock_micro(2)), ("oltp", oltp()), ("four reads", closed(4))];
    let loads = loads.map(|(name, load)| (name, Order::Sptf, load));
    costs_little("other same-track habit", |c| c.same_track_prefetch_delays ^= true, &loads, (1.0, 0.9));
}

/// Tasks that read files in order are served from what the drive read ahead. Of the drive that
/// reads nothing ahead much cannot be filled, since its requests are taken for hits. In the order
/// of arrival: under SPTF the p99 of such tasks is chance (41% less to 62% more with four seeds).
#[test]
fn a_drive_that_reads_nothing_ahead_or_of_which_the_profile_says_so_costs_nothing() {
    let pattern = PatternSpec { place: PlaceSpec::Sequential, ..PatternSpec::random_reads(8_192) };
    let in_order = GroupSpec { pattern, ..oltp() };
    let loads = [("in order", Order::Fcfs, in_order), ("oltp", Order::Sptf, oltp())];
    costs_little("no prefetch", |c| c.prefetch = Prefetch::None, &loads, (2.0, 0.4));
}
