//! Sequential reads with one command at the drive and with two: SATF preserves the order of the
//! requests, alone and beside a stream that reads sequentially elsewhere.

use headtime_disk::{Command, Dur, Model, Time, profile};
use headtime_sched::Order;
use headtime_sched::streams::{Disk, Exhausted, GuaranteeConfig as Promises, Quality};
use headtime_sim::observe::Observer;
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Setup, Simulation};
use headtime_sim::workload::{GroupSpec, PatternSpec, PlaceSpec, Population, StreamSpec, Streams, closed};

/// A reader with this number of requests always outstanding.
fn reader(waiting: u32) -> GroupSpec {
    let pattern = PatternSpec { place: PlaceSpec::SharedSequential, ..PatternSpec::random_reads(64 << 10) };
    GroupSpec { pattern, ..closed(waiting) }
}

/// Returns the number of requests in two seconds.
fn requests(name: &str, order: Order, depth: u32, waiting: u32) -> u64 {
    let profile = profile::builtin(name).expect("a built-in drive");
    let setup = Setup { depth: Some(depth), ..Setup::new(&profile, order, 2) };
    let simulation = Simulation::new(&setup).expect("a drive that works");
    let mut load = Population::of(&reader(waiting), simulation.target(), 2).expect("a load");
    let limits = Limits { until: Some(Time::ZERO + Dur::from_secs(2)), ..Limits::default() };
    simulation.run(&mut load, limits, None, &mut ()).expect("it runs").requests
}

/// With one command at the drive each read arrives while the drive already reads ahead for it, or
/// is about to: the drive must not lose a revolution there, nor the scheduler the order of the
/// reads.
#[test]
fn satf_reads_in_order_as_fast_as_first_come_first_served_and_with_one_command_as_with_two() {
    for name in profile::builtin_names() {
        let queue = profile::builtin(name).expect("a built-in drive").electronics.queue.depth;
        for waiting in [8, 67] {
            let two = requests(name, Order::Fcfs, queue.min(2), waiting);
            for (order, depth) in [(Order::Fcfs, 1), (Order::Sptf, 1), (Order::Sptf, queue.min(2))] {
                let had = requests(name, order, depth, waiting);
                let what = format!("{name}, {waiting} waiting: {had} under {order:?} at depth {depth}, {two} in order");
                assert!(had as f64 >= 0.99 * two as f64, "{what}");
            }
        }
    }
}

/// Counter of commands that do not begin where the previous one ended.
#[derive(Default)]
struct Changes {
    end: u64,
    count: u64,
}

impl Observer for Changes {
    fn issued(&mut self, command: &Command, _now: Time) {
        self.count += u64::from(command.lbn != self.end);
        self.end = command.lbn + u64::from(command.count);
    }
}

/// A period's requests arrive at its start and are due at its end, so the head moves there and back
/// once per period.
#[test]
fn the_head_goes_to_a_stream_that_is_read_in_order_once_in_a_period() {
    const PERIODS: u64 = 40;
    let period = Dur::from_ms(500);
    for name in ["ultrastar36z15", "barracuda36es2"] {
        let profile = profile::builtin(name).expect("a built-in drive");
        let model = Model::new(&profile).expect("a drive that works");
        let streams = [(1, 13, 1_000_000), (2, 13, 1_000_000), (1, 40, 950_000), (2, 40, 950_000)];
        for (depth, requests, quality) in streams {
            let disk = Disk::of(&profile, &model, 2).expect("times are in the profile");
            let promises = Promises::of(disk, &profile, &model, Exhausted::Skip).expect("it writes through");
            let setup =
                Setup { depth: Some(depth), guarantees: Some(promises), ..Setup::new(&profile, Order::Sptf, 1) };
            let simulation = Simulation::new(&setup).expect("a drive that works");
            let quality = Quality::from_ppm(quality).expect("a quality");
            let mut stream = StreamSpec::new("stream", requests, period, quality);
            stream.pattern.place = PlaceSpec::Sequential;
            let beside = Population::of(&reader(8), simulation.target(), 1).expect("a load");
            let all = Streams::new(&[stream], Some(Box::new(beside)), simulation.target(), 1);
            let until = Time::ZERO + Dur(PERIODS * period.0);
            let limits = Limits { until: Some(until), ..Limits::default() };
            let mut changes = Changes::default();
            let stats = simulation.run(&mut all.expect("streams"), limits, None, &mut changes).expect("it runs");
            let what = format!("{name}, depth {depth}, {requests} requests: {} changes", changes.count);
            assert!(stats.streams[0].quality() == Some(1.0), "{what}");
            // The start may count as a change, too.
            assert!(changes.count <= 2 * PERIODS + 1, "{what} in {PERIODS} periods");
        }
    }
}
