//! Runs with background work: their end, and the account of the head time.

use headtime_disk::{Dur, Kind, Time, profile};
use headtime_sched::{Algorithm, FillConfig, Order};
use headtime_sim::background::{Job, Jobs};
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Scheduling, Setup, SimError, Simulation};
use headtime_sim::stats::{End, Stats};
use headtime_sim::workload::{
    Arrivals, Ask, GroupSpec, PatternSpec, Population, Workload, WorkloadError, closed, oltp,
};

/// A finite number of reads, one per tenth of a second.
struct Few {
    left: u32,
    next: Time,
}

impl Workload for Few {
    fn next_due(&self) -> Option<Time> {
        (self.left > 0).then_some(self.next)
    }

    fn take(&mut self) -> Result<Ask, WorkloadError> {
        let due = self.next;
        self.left -= 1;
        self.next = due + Dur::from_ms(100);
        Ok(Ask {
            due,
            kind: Kind::Read,
            lbn: 8 * u64::from(self.left),
            count: 8,
            fua: false,
            sync: true,
            owner: 0,
            class: 0,
        })
    }

    fn finished(&mut self, _: u32, _: Time) {}

    fn endless(&self) -> bool {
        false
    }
}

fn run(reads: u32, limits: Limits) -> Stats {
    let profile = profile::builtin("hitachi-7k1000c").expect("a built-in drive");
    let setup = Setup::new(&profile, Order::Sptf, 1).filled(FillConfig::new(Algorithm::Headtime));
    let simulation = Simulation::new(&setup).expect("a drive that works");
    let mut jobs = Jobs::scan(simulation.target().capacity, 64);
    let mut few = Few { left: reads, next: Time::ZERO };
    simulation.run_with(&mut few, &mut jobs, limits, None, &mut ()).expect("nothing fails")
}

#[test]
fn a_run_ends_with_its_last_request_whatever_is_still_wanted() {
    let stats = run(20, Limits::default());
    assert_eq!((stats.end, stats.requests), (End::Workload, 20));
    assert!(stats.ended_at < Time::ZERO + Dur::from_ms(2_000), "{}", stats.ended_at);
    assert!(stats.background.sectors > 0 && stats.background.fraction < 0.1);
}

#[test]
fn what_the_drive_reads_ahead_for_the_background_is_the_backgrounds_time() {
    let stats = run(1, Limits { until: Some(Time::ZERO + Dur::from_secs(20)), ..Limits::default() });
    let shares = stats.head.shares(stats.ended_at);
    assert!(shares.free > 0.5 && shares.transfer < 0.01, "{shares:?}");
    // 20 s of a drive that reads some 100 MB/s.
    assert!(stats.background.sectors > 20 * 100_000, "{}", stats.background.sectors);
}

/// The number of wanted sectors is not a multiple of a thousand: with points at multiples of their
/// thousandth, rounded down, points were up to one thousandth late, and the time to 99.9% equalled
/// that to the end.
#[test]
fn a_progress_curve_has_a_point_where_each_thousandth_is_reached() {
    const WANTED: u64 = 20_000_999;
    let profile = profile::builtin("hitachi-7k1000c").expect("a built-in drive");
    let setup = Setup::new(&profile, Order::Sptf, 1).filled(FillConfig::new(Algorithm::Headtime));
    let simulation = Simulation::new(&setup).expect("a drive that works");
    let mut jobs = Jobs::new(vec![Job::scan(WANTED, 64)]);
    let mut one = Few { left: 1, next: Time::ZERO };
    let limits = Limits { until: Some(Time::ZERO + Dur::from_secs(200)), ..Limits::default() };
    let stats = simulation.run_with(&mut one, &mut jobs, limits, None, &mut ()).expect("nothing fails");
    assert_eq!(stats.background.sectors, WANTED);
    for permille in 1..=1000 {
        let reached = (WANTED * permille).div_ceil(1000);
        let point = jobs.curve().iter().find(|p| p.1 >= reached).expect("all of it was read").1;
        assert!(point - reached < 4_096, "{permille} thousandths: the point is {} sectors late", point - reached);
    }
}

#[test]
fn filling_gaps_needs_two_commands_at_the_drive() {
    let profile = profile::builtin("atlas10k").expect("a built-in drive");
    let filled = || Setup::new(&profile, Order::Sptf, 1).filled(FillConfig::new(Algorithm::Headtime));
    for depth in [1, 3, 8] {
        let refused = Simulation::new(&Setup { depth: Some(depth), ..filled() });
        assert!(matches!(refused, Err(SimError::FillDepth { depth: d }) if d == depth));
    }
    assert!(Simulation::new(&Setup { depth: Some(2), ..filled() }).is_ok());
}

/// A zero-latency drive lands inside a large request when the head arrives just too late, and its
/// front crosses the bus last. Mistaken for a slow seek, that would corrupt the next predictions,
/// and seeks would appear shorter than they are.
#[test]
fn a_late_landing_inside_a_request_is_recognised() {
    let profile = profile::builtin("atlas10k").expect("a built-in drive");
    let setup = Setup::new(&profile, Order::SptfAhead, 1).filled(FillConfig::new(Algorithm::Headtime));
    let simulation = Simulation::new(&setup).expect("a drive that works");
    let group = GroupSpec { pattern: PatternSpec::random_reads(64 << 10), ..closed(32) };
    let mut load = Population::of(&group, simulation.target(), 1).expect("a load");
    let mut jobs = Jobs::scan(simulation.target().capacity, 16);
    let limits = Limits { requests: Some(6_000), ..Limits::default() };
    let stats = simulation.run_with(&mut load, &mut jobs, limits, None, &mut ()).expect("nothing fails");
    // 94% when such landings were not distinguished from slow seeks.
    let right = stats.prediction.within_150us as f64 / stats.prediction.samples as f64;
    assert!(right > 0.96, "{right}");
}

/// A single program that reads and writes, on a drive with its write cache on. The drive's
/// write-backs move its head: an idle command dispatched during them, or assumed to be near, keeps
/// the next request waiting for a seek and a revolution (p99 7 to 15% longer), or causes
/// mispredictions until filling stops (a scan of 0.1 MB/s).
#[test]
fn idle_work_behind_cached_writes_costs_the_foreground_nothing_and_goes_on() {
    let profile = profile::builtin("hitachi-7k1000c").expect("a built-in drive");
    let Arrivals::Closed { think, .. } = oltp().arrivals else { panic!("oltp is closed") };
    let group = GroupSpec { arrivals: Arrivals::Closed { tasks: 1, think }, ..oltp() };
    let limits = Limits { requests: Some(20_000), ..Limits::default() };
    let run = |setup: Setup, scan: bool| {
        let simulation = Simulation::new(&setup).expect("a drive that works");
        let mut load = Population::of(&group, simulation.target(), 2).expect("a load");
        let mut jobs = Jobs::scan(simulation.target().capacity, 32);
        let stats = match scan {
            true => simulation.run_with(&mut load, &mut jobs, limits, None, &mut ()),
            false => simulation.run(&mut load, limits, None, &mut ()),
        };
        stats.expect("nothing fails")
    };
    let bare = run(Setup { scheduling: Scheduling::Drive, ..Setup::new(&profile, Order::SptfAhead, 2) }, false);
    let filled = run(Setup::new(&profile, Order::SptfAhead, 2).filled(FillConfig::new(Algorithm::Headtime)), true);
    let p99 = |s: &Stats| s.responses().quantile(990).expect("requests ended").as_ms_f64();
    let scanned = filled.background.sectors as f64 * 512.0 / 1e6 / filled.ended_at.as_secs_f64();
    assert!(p99(&filled) < 1.03 * p99(&bare), "{} with a scan, {} without", p99(&filled), p99(&bare));
    assert!(scanned > 10.0, "{scanned} MB/s");
}
