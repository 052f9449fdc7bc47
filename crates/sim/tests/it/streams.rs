//! Streams on a complete simulated drive, from the start of a period to its result.

use headtime_disk::profile::{self, Profile};
use headtime_disk::{Dur, Model, Time};
use headtime_sched::streams::{
    Disk, Distribution, Exhausted, GuaranteeConfig as Promises, Quality, Service, WorstCase,
};
use headtime_sched::{Order, Policy};
use headtime_sim::result::{About, SimResult};
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Setup, SimError, Simulation};
use headtime_sim::stats::Stats;
use headtime_sim::workload::{
    Arrivals, Gaps, GroupSpec, PatternSpec, PlaceSpec, Population, StreamSpec, Streams, closed, das,
};

const PERIOD: Dur = Dur::from_ms(500);

fn ultrastar() -> Profile {
    profile::builtin("ultrastar36z15").expect("a built-in drive")
}

/// The drive's times for 64 KiB: synthetic, around the paper's mean of 4.25 ms, with its worst
/// case.
fn promises(profile: &Profile, exhausted: Exhausted) -> Promises {
    let model = Model::new(profile).expect("a drive that works");
    let worst = WorstCase::of(profile, &model, 128).expect("it writes through").total();
    let samples: Vec<Dur> = (0..100).map(|i| Dur::from_us(2_000 + 45 * i)).collect();
    let times = Distribution::from_samples(&samples, Dur::from_us(100), worst).expect("samples");
    let disk = Disk::new(vec![Service::new(128, worst, times)], 2).expect("a drive");
    Promises::of(disk, profile, &model, exhausted).expect("it writes through")
}

fn stream(name: &str, requests: u32, ppm: u32) -> StreamSpec {
    StreamSpec::new(name, requests, PERIOD, Quality::from_ppm(ppm).expect("a quality"))
}

fn run(setup: &Setup, streams: &[StreamSpec], beside: &GroupSpec, seconds: u64) -> Result<Stats, SimError> {
    run_all(setup, streams, std::slice::from_ref(beside), seconds)
}

fn run_all(setup: &Setup, streams: &[StreamSpec], beside: &[GroupSpec], seconds: u64) -> Result<Stats, SimError> {
    let simulation = Simulation::new(setup)?;
    let beside = Population::new(beside, simulation.target(), 1).expect("a load");
    let mut all = Streams::new(streams, Some(Box::new(beside)), simulation.target(), 1).expect("streams");
    let limits = Limits { until: Some(Time::ZERO + Dur::from_secs(seconds)), ..Limits::default() };
    simulation.run(&mut all, limits, None, &mut ())
}

#[test]
fn a_mandatory_stream_that_takes_all_there_is_at_its_worst_misses_nothing() {
    // 16 requests of 30 ms and more in 500 ms: there is never time for another one. Those of a
    // period must be present before any decision in it, or one of best effort is dispatched first.
    let profile = ultrastar();
    for waiting in [1, 8, 100] {
        let guarantees = Some(promises(&profile, Exhausted::Skip));
        let setup = Setup { guarantees, ..Setup::new(&profile, Order::Sptf, 1) };
        let stats = run(&setup, &[stream("all", 16, 1_000_000)], &das::best_effort(waiting), 60).expect("it runs");
        let all = &stats.streams[0];
        assert_eq!((all.whole(), all.periods(), all.late), (120, 120, 0), "{waiting}: {all:?}");
        let least = if waiting == 1 { 1_000 } else { 8_000 };
        assert!(
            stats.requests - all.asked > least && stats.overdue.is_none(),
            "{waiting}: {} requests",
            stats.requests
        );
    }
    // A scheduler without guarantees, and a hundred other requests waiting.
    let stats = run(&Setup::new(&profile, Order::Sptf, 1), &[stream("all", 16, 1_000_000)], &das::best_effort(100), 60);
    let all = &stats.expect("it runs").streams[0];
    assert!(all.missed() > 100, "{all:?}");
}

#[test]
fn an_optional_stream_has_its_quality_and_what_is_more_depends_on_what_becomes_of_the_rest() {
    let profile = ultrastar();
    let mut had = Vec::new();
    for exhausted in [Exhausted::Skip, Exhausted::AsBestEffort, Exhausted::BeforeBestEffort] {
        let guarantees = Some(promises(&profile, exhausted));
        let setup = Setup { guarantees, ..Setup::new(&profile, Order::Sptf, 1) };
        let stats = run(&setup, &[stream("film", 20, 500_000)], &das::best_effort(8), 60).expect("it runs");
        let film = &stats.streams[0];
        let reservation = film.reservation.expect("it is optional").as_ms_f64();
        // Ten requests of 4.23 ms on average, one of which starts within the reservation and
        // completes after it.
        assert!((36.0..43.0).contains(&reservation), "{reservation}");
        assert!(film.quality().expect("periods") >= 0.5, "{film:?}");
        assert_eq!(film.dropped > 0, exhausted == Exhausted::Skip, "{film:?}");
        assert_eq!(stats.given_up, film.dropped);
        had.push(film.quality());
    }
    assert!(had[0] < had[1] && had[1] <= had[2], "{had:?}");
}

#[test]
fn best_effort_is_ordered_by_any_policy_below() {
    let profile = ultrastar();
    for name in Policy::NAMES {
        let admit = Policy::named(name).expect("a policy");
        let guarantees = Some(promises(&profile, Exhausted::Skip));
        let setup = Setup { guarantees, admit, ..Setup::new(&profile, Order::Sptf, 1) };
        let stats = run(&setup, &[stream("all", 16, 1_000_000)], &das::best_effort(8), 30).expect("it runs");
        assert_eq!((stats.streams[0].whole(), stats.streams[0].periods()), (60, 60), "{name}");
        assert!(stats.requests - stats.streams[0].asked > 1_000, "{name}: {}", stats.requests);
    }
}

/// Best effort beside a stream: local readers, and one far away, which waits for up to 2.9 s with
/// ages alone.
#[test]
fn no_best_effort_request_beside_a_stream_waits_for_more_than_some_two_seconds() {
    let profile = profile::builtin("barracuda36es2").expect("a built-in drive");
    let guarantees = Some(promises(&profile, Exhausted::Skip));
    let setup = Setup { guarantees, ..Setup::new(&profile, Order::SptfAhead, 1) };
    let part = |tasks, from, to| {
        let pattern = PatternSpec { place: PlaceSpec::Part { from, to }, ..PatternSpec::random_reads(4096) };
        GroupSpec { pattern, ..closed(tasks) }
    };
    let beside = [part(28, 0.0, 0.001), part(1, 0.9, 1.0)];
    let stats = run_all(&setup, &[stream("film", 1, 1_000_000)], &beside, 300).expect("it runs");
    let longest = stats.responses().max().expect("requests");
    println!("{} requests, the longest took {longest:?}", stats.requests);
    assert_eq!(stats.streams[0].late, 0);
    assert!(longest < Dur::from_ms(2_200), "{longest:?}");
}

#[test]
fn what_cannot_be_had_is_refused_with_what_is_nearest() {
    let profile = ultrastar();
    let guarantees = Some(promises(&profile, Exhausted::Skip));
    let setup = Setup { guarantees, ..Setup::new(&profile, Order::Sptf, 1) };
    let streams = [stream("first", 10, 1_000_000), stream("second", 7, 1_000_000)];
    // 17 worst cases of 30 ms and more in 500 ms.
    let e = run(&setup, &streams, &das::best_effort(8), 1).expect_err("17 worst cases").to_string();
    assert!(
        e.starts_with("stream \"second\": it cannot be had beside those before it: mandatory streams would"),
        "{e}"
    );
    assert!(e.contains("possible: 6 requests in a period, or a quality of"), "{e}");
    // The guarantees are based on times with two commands at the drive.
    let e = run(&Setup { depth: Some(3), ..setup }, &streams, &das::best_effort(8), 1).expect_err("three commands");
    assert_eq!(
        e.to_string(),
        "depth: promises to streams are made from times with 2 commands at the drive at most, found 3"
    );
}

#[test]
fn a_stream_that_ends_leaves_its_time_to_others() {
    let profile = ultrastar();
    let guarantees = Some(promises(&profile, Exhausted::Skip));
    let setup = Setup { guarantees, ..Setup::new(&profile, Order::Sptf, 1) };
    let second = |at: u64| Time(at * 1_000_000_000);
    // Either could only be admitted without the other.
    let streams = [
        StreamSpec { stop: Some(second(10)), ..stream("first", 16, 1_000_000) },
        StreamSpec { start: second(12), ..stream("second", 16, 1_000_000) },
    ];
    let stats = run(&setup, &streams, &das::best_effort(8), 20).expect("it runs");
    let [first, second] = &stats.streams[..] else { panic!("{:?}", stats.streams) };
    assert_eq!((first.whole(), first.periods()), (20, 20));
    // Two best-effort requests are at the drive at 12 s, so not all of the stream's requests would
    // be in time: it begins one period later.
    assert_eq!((second.whole(), second.periods(), second.begins), (15, 15, Time(12_500_000_000)));
    let about = About {
        disk: profile.name.clone(),
        seed: 1,
        sector_bytes: 512,
        wall_seconds: None,
        depth: 2,
        model_bytes: 0,
        media_bytes_per_second: 40e6,
    };
    let json: serde_json::Value = serde_json::from_str(&SimResult::new(&about, &stats).to_json()).expect("JSON");
    assert_eq!(json["streams"]["second"]["quality"], 1.0);
    assert_eq!(json["guarantees"]["overdue"], 0);
    assert!(json["guarantees"]["worst_load"].as_f64().is_some_and(|l| (0.9..=1.0).contains(&l)), "{json}");
}

#[test]
fn streams_have_places_where_all_others_are_taken() {
    // 128 requests may wait. Of an optional stream's 40 per period a tenth is guaranteed and all
    // are submitted, and best-effort requests arrive faster than any disk could serve.
    let profile = ultrastar();
    let guarantees = Some(promises(&profile, Exhausted::AsBestEffort));
    let setup = Setup { guarantees, capacity: 128, ..Setup::new(&profile, Order::Sptf, 1) };
    let arrivals = Arrivals::Open { mean_gap: Dur::from_ms(1), gaps: Gaps::Exponential };
    let flood = GroupSpec { arrivals, ..das::best_effort(1) };
    let streams = [stream("kept", 5, 1_000_000), stream("greedy", 40, 100_000)];
    let stats = run(&setup, &streams, &flood, 60).expect("it runs");
    let [kept, greedy] = &stats.streams[..] else { panic!("{:?}", stats.streams) };
    assert_eq!((kept.whole(), kept.late), (120, 0), "{kept:?}");
    assert!(greedy.quality() >= Some(0.1) && greedy.late > 100, "{greedy:?}");
}
