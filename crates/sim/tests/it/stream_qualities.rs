//! Guarantees on a complete simulated drive that hold regardless of the load under which X was
//! measured, and of other requests in a stream's region.

use headtime_disk::profile::{self, Profile};
use headtime_disk::{Dur, Model, Time};
use headtime_sched::Order;
use headtime_sched::streams::{Disk, Exhausted, GuaranteeConfig as Promises, Quality, Service, Stream, admit};
use headtime_sim::run::Limits;
use headtime_sim::service::{self, Load};
use headtime_sim::simulate::{Setup, Simulation};
use headtime_sim::stats::Stats;
use headtime_sim::workload::variates::Share;
use headtime_sim::workload::{GroupSpec, PlaceSpec, Population, StreamSpec, Streams, das};

/// Returns a drive with X of 64 KiB, measured with `waiting` in the system at all times.
fn measured(name: &str, waiting: u32) -> Profile {
    let profile = profile::builtin(name).expect("a built-in drive");
    let load = Load { waiting, requests: 10_000, ..Load::reads(service::BYTES, 1) };
    let all = service::families(&profile, &load).expect("measured");
    Profile { service_times: all.into_iter().map(|m| m.times).collect(), ..profile }
}

fn run(profile: &Profile, disk: Disk, streams: &[StreamSpec], beside: &GroupSpec, seconds: u64) -> Stats {
    let model = Model::new(profile).expect("a drive that works");
    let promises = Promises::of(disk, profile, &model, Exhausted::Skip).expect("it writes through");
    let setup = Setup { guarantees: Some(promises), ..Setup::new(profile, Order::Sptf, 1) };
    let simulation = Simulation::new(&setup).expect("a drive");
    let beside = Population::of(beside, simulation.target(), 1).expect("a load");
    let mut all = Streams::new(streams, Some(Box::new(beside)), simulation.target(), 1).expect("streams");
    let limits = Limits { until: Some(Time::ZERO + Dur::from_secs(seconds)), ..Limits::default() };
    simulation.run(&mut all, limits, None, &mut ()).expect("it runs")
}

fn of(spec: &StreamSpec) -> Stream {
    Stream::new(spec.requests, spec.period, spec.quality, 128).expect("a stream").only(spec.kinds())
}

fn quality(ppm: u32) -> Quality {
    Quality::from_ppm(ppm).expect("a quality")
}

/// Returns the minimum of quality minus required quality over all streams, in percentage points.
fn least(stats: &Stats) -> f64 {
    let margins = stats.streams.iter().map(|s| {
        let asked = f64::from(s.stream.quality.ppm()) / 1e4;
        100.0 * s.quality().expect("it asked for something") - asked
    });
    margins.fold(f64::INFINITY, f64::min)
}

#[test]
fn streams_have_their_qualities_although_x_was_measured_with_a_hundred_waiting() {
    for name in ["ultrastar36z15", "barracuda36es2"] {
        let profile = measured(name, 100);
        let model = Model::new(&profile).expect("a drive that works");
        let disk = Disk::of(&profile, &model, 2).expect("measured");
        let streams = das::streams(&das::TABLE_2).expect("streams");
        let kept = least(&run(&profile, disk.clone(), &streams, &das::best_effort(100), 60));
        assert!(kept >= -0.5, "{name}: {kept} points");
        // A single X for all requests, that of a hundred waiting, underestimates these. The
        // reservations derived from it are too small, and a stream gets more of the available time;
        // but more is admitted than there is time for.
        let service = disk.service(128).expect("64 KiB");
        let steady = service.steady.as_ref().expect("measured while all wait").most().clone();
        let one_x = Disk::new(vec![Service::new(128, service.worst, steady)], 2).expect("a drive");
        let too_short = least(&run(&profile, one_x.clone(), &streams, &das::best_effort(100), 60));
        assert!(too_short >= -0.5, "{name}: {too_short} points");
        let each = |n| StreamSpec::new(format!("{n}"), 2, Dur::from_ms(50), quality(900_000));
        let asked = |n| (0..n).map(each).collect::<Vec<_>>();
        let fit = |disk: &Disk| {
            (1..20).take_while(|&n| admit(disk, &asked(n).iter().map(of).collect::<Vec<_>>()).is_ok()).count()
        };
        let (most, by_family) = (fit(&one_x), fit(&disk));
        assert!(most > by_family, "{name}: {most} streams, {by_family}");
        let without = least(&run(&profile, one_x, &asked(most), &das::best_effort(100), 60));
        assert!(without < -0.5, "{name}: {without} points");
        println!("{name}: {kept:.2} points at least; {most} streams by one X, not {by_family}, have {without:.2}");
    }
}

/// Runs 5 minutes of a stream beside writers in the part of the Ultrastar in which it reads, which
/// begins at `from`.
fn beside_writers(requests: u32, quality: Quality, writers: u32, from: f64) -> Stats {
    let profile = profile::builtin("ultrastar36z15").expect("a built-in drive");
    let model = Model::new(&profile).expect("a drive that works");
    let disk = Disk::of(&profile, &model, 2).expect("measured");
    let region = PlaceSpec::Part { from, to: from + 0.0005 };
    let mut stream = StreamSpec::new("reader", requests, Dur::from_ms(500), quality);
    stream.pattern.place = region.clone();
    let mut writers = das::best_effort(writers);
    (writers.pattern.place, writers.pattern.reads) = (region, Share::NONE);
    let stats = run(&profile, disk, &[stream], &writers, 300);
    // The writers use the rest of the time.
    assert!(stats.requests > 20_000, "{} requests", stats.requests);
    stats
}

#[test]
fn a_mandatory_request_is_in_time_although_best_effort_writes_where_it_reads() {
    let stats = beside_writers(3, Quality::MANDATORY, 50, 0.5);
    let reader = &stats.streams[0];
    assert!(reader.asked >= 1_800 && reader.missed() == 0 && reader.late == 0, "{reader:?}");
}

/// The time that an optional request waits for another is charged to its own reservation. Found by
/// an external tester: it had 90%.
#[test]
fn an_optional_stream_has_its_quality_although_best_effort_writes_where_it_reads() {
    let stats = beside_writers(5, quality(990_000), 100, 0.0);
    assert!(least(&stats) >= -0.5, "{} points", least(&stats));
}

/// Shortly before a mandatory request is released no other may be started, and after a quick read
/// the drive counts as busy for as long as its arm may move. Found by an external tester: 69% were
/// guaranteed where there was no time.
#[test]
fn an_optional_stream_has_what_it_is_promised_beside_a_mandatory_one_with_a_period_near_its_worst_case() {
    let profile = profile::builtin("ultrastar36z15").expect("a built-in drive");
    let model = Model::new(&profile).expect("a drive that works");
    let disk = Disk::of(&profile, &model, 2).expect("measured");
    let mut promised = Vec::new();
    for us in (33_000..44_000).step_by(400) {
        let period = Dur::from_us(us);
        let hard = StreamSpec::new("hard", 1, period, Quality::MANDATORY);
        let asked = |quality| [hard.clone(), StreamSpec::new("soft", 1, period, quality)];
        let most = match admit(&disk, &asked(quality(999_000)).each_ref().map(of)) {
            Ok(_) => Some(quality(999_000)),
            Err(refused) => refused.nearest.quality,
        };
        let Some(most) = most else { continue };
        let stats = run(&profile, disk.clone(), &asked(most), &das::best_effort(1), 60);
        assert!(least(&stats) >= -0.5 && stats.streams[0].late == 0, "{us} us, {most:?}: {} points", least(&stats));
        promised.push(most.ppm());
    }
    println!("{promised:?}");
    let partly = promised.iter().filter(|&&ppm| (100_000..990_000).contains(&ppm)).count();
    assert!(partly > 3 && promised.len() > 10, "{promised:?}");
}

/// The seek from best effort's position of the arm is longer than any with which X was measured.
/// Found by an external tester.
#[test]
fn a_small_stream_has_its_quality_although_best_effort_has_the_other_end_of_the_drive() {
    let profile = profile::builtin("ultrastar36z15").expect("a built-in drive");
    let model = Model::new(&profile).expect("a drive that works");
    let disk = Disk::of(&profile, &model, 2).expect("measured");
    for (requests, ppm) in [(2, 950_000), (3, 600_000), (10, 900_000)] {
        let quality = Quality::from_ppm(ppm).expect("a quality");
        let mut stream = StreamSpec::new("near", requests, Dur::from_ms(500), quality);
        stream.pattern.place = PlaceSpec::Part { from: 0.0, to: 0.1 };
        let mut readers = das::best_effort(8);
        readers.pattern.place = PlaceSpec::Part { from: 0.9, to: 1.0 };
        let kept = least(&run(&profile, disk.clone(), &[stream], &readers, 120));
        assert!(kept >= -0.5, "{requests} at {quality:?}: {kept} points");
    }
}

/// The mandatory stream's likely times plus the reservation exceed the period.
#[test]
fn a_stream_that_takes_all_that_is_left_is_served_in_its_period() {
    let profile = profile::builtin("barracuda36es2").expect("a built-in drive");
    let model = Model::new(&profile).expect("a drive that works");
    let disk = Disk::of(&profile, &model, 2).expect("measured");
    let quality = Quality::from_ppm(990_000).expect("a quality");
    let hard = StreamSpec::new("hard", 7, Dur::from_ms(500), Quality::MANDATORY);
    let asked = |requests| [hard.clone(), StreamSpec::new("soft", requests, Dur::from_ms(500), quality)];
    let refused = admit(&disk, &asked(1_000).each_ref().map(of)).expect_err("more than there is");
    let streams = asked(refused.nearest.requests.expect("some fit"));
    let stats = run(&profile, disk, &streams, &das::best_effort(8), 60);
    assert!(least(&stats) >= -0.5 && stats.streams[0].late == 0, "{} points", least(&stats));
}
