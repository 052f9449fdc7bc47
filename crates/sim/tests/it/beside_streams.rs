//! Throughput of best effort and background work beside streams, on a complete simulated drive.
//! Each limit lies between the value reached with and without the mechanism under test; the latter
//! is given.

use headtime_disk::profile::{self, Profile};
use headtime_disk::{Dur, Model, Time};
use headtime_sched::streams::{Disk, Exhausted, GuaranteeConfig as Promises, Quality};
use headtime_sched::{Algorithm, FillConfig, Order};
use headtime_sim::background::{Job, Jobs};
use headtime_sim::run::Limits;
use headtime_sim::service::{self, Load};
use headtime_sim::simulate::{Setup, Simulation};
use headtime_sim::stats::Stats;
use headtime_sim::workload::variates::Share;
use headtime_sim::workload::{PlaceSpec, Population, StreamSpec, Streams, das};

/// Returns a drive with X of 64 KiB. With few requests, measured times are rounded up so much that
/// six streams fit, not seven.
fn measured(name: &str) -> Profile {
    let profile = profile::builtin(name).expect("a built-in drive");
    let load = Load { requests: 50_000, ..Load::reads(service::BYTES, 1) };
    let all = service::families(&profile, &load).expect("measured");
    Profile { service_times: all.into_iter().map(|m| m.times).collect(), ..profile }
}

/// Runs streams beside `others` best-effort requests that are always outstanding, optionally with a
/// scan in units of `scan` sectors.
fn run(profile: &Profile, streams: &[StreamSpec], others: u32, scan: Option<u32>, seconds: u64) -> Stats {
    let model = Model::new(profile).expect("a drive that works");
    let disk = Disk::of(profile, &model, 2).expect("measured");
    let promises = Promises::of(disk, profile, &model, Exhausted::Skip).expect("it writes through");
    let mut setup = Setup { guarantees: Some(promises), ..Setup::new(profile, Order::Sptf, 1) };
    if scan.is_some() {
        setup = setup.filled(FillConfig { seed: 1, ..FillConfig::new(Algorithm::Headtime) });
    }
    let simulation = Simulation::new(&setup).expect("a drive");
    let target = simulation.target();
    let beside = (others > 0).then(|| Population::of(&das::best_effort(others), target, 1).expect("a load"));
    let beside = beside.map(|beside| Box::new(beside) as _);
    let mut all = Streams::new(streams, beside, target, 1).expect("streams");
    let limits = Limits { until: Some(Time::ZERO + Dur::from_secs(seconds)), ..Limits::default() };
    let stats = match scan {
        Some(unit) => {
            let mut scan = Jobs::new(vec![Job::scan(target.capacity, unit)]);
            simulation.run_with(&mut all, &mut scan, limits, None, &mut ())
        }
        None => simulation.run(&mut all, limits, None, &mut ()),
    };
    stats.expect("it runs")
}

fn quality(ppm: u32) -> Quality {
    Quality::from_ppm(ppm).expect("a quality")
}

/// The streams' periods leave no room for a request that crosses the start of a period. If best
/// effort must end before it in the worst case, it has 0.02 requests per second; beside six
/// streams 104.
#[test]
fn one_stream_more_does_not_stop_best_effort() {
    let profile = measured("ultrastar36z15");
    let stream = |n| StreamSpec::new(format!("{n}"), 1, Dur::from_ms(60), quality(950_000));
    let stats = run(&profile, &(0..7).map(stream).collect::<Vec<_>>(), 8, None, 60);
    let of_streams: u64 = stats.streams.iter().map(|s| s.asked - s.missed()).sum();
    let best_effort = (stats.requests - of_streams) / 60;
    assert!(best_effort > 50, "{best_effort} a second");
    assert!(stats.streams.iter().all(|s| s.quality().expect("it asked") >= 0.945));
}

/// When the seventh stream ends, the others immediately have room again for requests that cross the
/// start of a period: best effort has the same rate as beside six streams. Otherwise it would have
/// the 63 per second that it had beside seven.
#[test]
fn what_a_stream_took_from_best_effort_is_given_back_when_it_ends() {
    let profile = measured("ultrastar36z15");
    let stream = |n| StreamSpec::new(format!("{n}"), 1, Dur::from_ms(60), quality(950_000));
    let best_effort = |streams: &[StreamSpec]| {
        let stats = run(&profile, streams, 8, None, 60);
        let of_streams: u64 = stats.streams.iter().map(|s| s.asked - s.missed()).sum();
        assert!(stats.streams.iter().all(|s| s.quality().expect("it asked") >= 0.945));
        (stats.requests - of_streams) / 60
    };
    let mut streams: Vec<StreamSpec> = (0..7).map(stream).collect();
    streams[6].stop = Some(Time::ZERO + Dur::from_secs(1));
    let (six, ended) = (best_effort(&streams[..6]), best_effort(&streams));
    assert!(six > 95 && ended * 100 > six * 95, "{ended} beside six of seven, {six} beside six");
}

/// If background reads in idle time must leave room for all reservations in the worst case, there
/// are none beside a stream whose period is shorter than a worst case: the scan has 0.01 MB/s,
/// although the drive is idle most of the time; and 35% of the writes wait too long for a read of
/// the same sectors that cannot be dispatched.
#[test]
fn a_scan_has_idle_time_beside_a_stream_with_a_short_period_and_does_not_keep_it_waiting() {
    let profile = measured("cheetah18lp");
    let mut stream = StreamSpec::new("writes", 3, Dur::from_ms(60), quality(900_000));
    stream.pattern.place = PlaceSpec::Part { from: 0.0, to: 0.001 };
    stream.pattern.reads = Share::NONE;
    let stats = run(&profile, &[stream], 0, Some(256), 120);
    let had = stats.streams[0].quality().expect("it asked");
    assert!(had >= 0.895, "{had}");
    let mb_s = stats.background.sectors as f64 * 512.0 / 1e6 / stats.ended_at.as_secs_f64();
    assert!(mb_s > 1.0, "{mb_s} MB/s");
}
