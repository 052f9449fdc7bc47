//! Loads that were once slower with a scan, and loads that were slower with headtime alone,
//! compared with the bare drive.
//!
//! Each limit lies between the value reached with and without the mechanism under test; the latter
//! is given.

use headtime_disk::profile::{self, Profile};
use headtime_disk::{Dur, Time};
use headtime_sched::{Algorithm, FillConfig, Order};
use headtime_sim::background::{Job, Jobs, scan_unit};
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Scheduling, Setup, Simulation};
use headtime_sim::stats::Stats;
use headtime_sim::workload::variates::Share;
use headtime_sim::workload::{GroupSpec, HostTime, PatternSpec, PlaceSpec, Population, SizeSpec, closed};

/// The scheduler in front of the drive.
#[derive(Clone, Copy, PartialEq)]
enum Front {
    Bare,
    Headtime,
    Scan,
}

/// Returns requests per second.
fn rate(drive: &str, front: Front, groups: &[GroupSpec], requests: u64) -> f64 {
    run(drive, front, groups, Limits { requests: Some(requests), ..Limits::default() }).per_second()
}

/// Returns the statistics of `seconds` seconds.
fn stats(drive: &str, front: Front, groups: &[GroupSpec], seconds: u64) -> Stats {
    run(drive, front, groups, Limits { until: Some(Time::ZERO + Dur::from_secs(seconds)), ..Limits::default() })
}

fn run(drive: &str, front: Front, groups: &[GroupSpec], limits: Limits) -> Stats {
    run_on(&profile::builtin(drive).expect("a built-in drive"), front, groups, limits)
}

fn run_on(profile: &Profile, front: Front, groups: &[GroupSpec], limits: Limits) -> Stats {
    let mut setup = Setup::new(profile, Order::SptfAhead, 1);
    match front {
        Front::Bare => setup.scheduling = Scheduling::Drive,
        Front::Scan => setup = setup.filled(FillConfig { seed: 1, ..FillConfig::new(Algorithm::Headtime) }),
        Front::Headtime => {}
    }
    let simulation = Simulation::new(&setup).expect("a drive that works");
    let capacity = simulation.target().capacity;
    let mut load = Population::new(groups, simulation.target(), 1).expect("a load");
    let scan = Job { again: true, ..Job::scan(capacity, scan_unit(capacity, profile.sector_bytes)) };
    let stats = match front {
        Front::Scan => simulation.run_with(&mut load, &mut Jobs::new(vec![scan]), limits, None, &mut ()),
        _ => simulation.run(&mut load, limits, None, &mut ()),
    };
    stats.expect("it runs")
}

/// Returns headtime's rate as a share of the bare drive's.
fn share(drive: &str, front: Front, groups: &[GroupSpec], requests: u64) -> f64 {
    let share = rate(drive, front, groups, requests) / rate(drive, Front::Bare, groups, requests);
    println!("{drive}: {share:.3}");
    share
}

/// Returns `n` tasks with requests of `kib` KiB each, and a host time of `host_us` microseconds
/// from a completion to the next request.
fn group(n: u32, kib: u64, place: PlaceSpec, host_us: u64) -> GroupSpec {
    let size = SizeSpec::Fixed { bytes: kib << 10 };
    let pattern = PatternSpec { place, size, ..PatternSpec::random_reads(4096) };
    GroupSpec { pattern, host: HostTime::Fixed(Dur::from_us(host_us)), ..closed(n) }
}

/// The next read of the stream arrives while the drive reads its last one. Without waiting for the
/// end of that read, the scheduler leaves the stream after every two reads: 0.05 of the requests.
#[test]
fn two_streams_are_not_left_after_every_two_reads() {
    let stream = || group(2, 64, PlaceSpec::SharedSequential, 100);
    assert!(share("nearline-20tb", Front::Headtime, &[stream(), stream()], 20_000) > 0.989);
}

/// Cache hits are at the drive together with a chain of short reads or writes. Otherwise the stream
/// waits while the drive serves them two at a time, and loses a revolution each time: 0.21, 0.20
/// and 0.12 of the requests.
#[test]
fn reads_from_the_cache_and_a_chain_stand_together_at_the_drive() {
    let hot = |n| group(n, 4, PlaceSpec::Part { from: 0.3, to: 0.300_001 }, 0);
    let reads = |n| group(n, 4, PlaceSpec::SharedSequential, 0);
    for load in [[hot(4), reads(8)], [hot(4), writes(8, 4, 0)], [hot(8), reads(4)]] {
        assert!(share("atlas10k", Front::Headtime, &load, 20_000) > 0.98);
    }
}

/// The same beside longer reads, two outstanding: 0.56 of the requests.
#[test]
fn reads_from_the_cache_stand_beside_longer_reads_in_order() {
    let hot = group(4, 4, PlaceSpec::Part { from: 0.3, to: 0.300_001 }, 100);
    assert!(share("atlas10k", Front::Headtime, &[hot, group(2, 64, PlaceSpec::SharedSequential, 100)], 10_000) > 0.98);
}

/// The same for writes, on a drive that continues from write to write: 0.06 of the requests.
#[test]
fn two_streams_of_writes_are_not_left_after_every_two_writes() {
    assert!(share("cheetah73lp", Front::Headtime, &[writes(2, 16, 100), writes(2, 16, 100)], 20_000) > 0.9);
}

/// The drive reads the track to its end after two reads on it. The scheduler selects among the
/// requests that arrive until then; otherwise they are dispatched one at a time, 0.45 of the
/// requests.
#[test]
fn what_arrives_while_the_drive_reads_on_is_selected_from() {
    let backward = group(2, 128, PlaceSpec::SharedBackward, 100);
    assert!(share("cheetah36es", Front::Headtime, &[backward], 5_000) > 0.98);
}

/// Reads that arrived in order from the end of a run to its start may begin with any of them.
/// Always beginning with the lowest address: 0.50 and 0.55 of the requests.
#[test]
fn a_run_that_is_read_backwards_begins_where_the_head_is_soonest() {
    let backward = || [group(4, 64, PlaceSpec::SharedBackward, 20)];
    assert!(share("maxtor-7l250s0", Front::Headtime, &backward(), 5_000) > 0.98);
    assert!(share("barracuda36es2", Front::Headtime, &backward(), 5_000) > 0.98);
}

/// Backward readers hit the sectors that passed before their last reads. With commands in those
/// gaps 0.94 of the requests.
#[test]
fn what_passes_before_a_read_is_kept_for_programs_that_read_backwards() {
    let backward = || group(1, 64, PlaceSpec::SharedBackward, 500);
    let three = [backward(), backward(), backward()];
    assert!(share("atlas10k", Front::Scan, &three, 12_000) > 0.98);
}

/// A request of the hot set may be in another segment than the one filled by read-ahead. When it
/// was treated as part of the read-ahead: 0.77 of the requests.
#[test]
fn a_set_that_fits_the_cache_is_read_as_fast_beside_a_scan() {
    let hot = group(1, 4, PlaceSpec::Part { from: 0.4, to: 0.400_054_35 }, 300);
    assert!(share("cheetah36es", Front::Scan, &[hot], 40_000) > 0.985);
}

/// A front that is in the cache makes the drive read the request from front to back: 0.989 of the
/// requests.
#[test]
fn no_front_is_taken_that_the_drives_cache_holds() {
    let stream = group(1, 64, PlaceSpec::SharedSequential, 500);
    let random = group(1, 4, PlaceSpec::Uniform, 500);
    assert!(share("barracuda36es2", Front::Scan, &[stream, random], 12_000) > 1.0);
}

/// The drive's queue serves cache hits before it moves the head. Without that in ORDER: 0.88 of the
/// requests.
#[test]
fn what_the_drives_cache_holds_goes_first() {
    let local = group(6, 4, PlaceSpec::Window { cylinders: 1 }, 20);
    assert!(share("cheetah73lp", Front::Headtime, &[local], 20_000) > 0.985);
}

/// Cache hits are dispatched first. But when all of them were, two readers of the whole disk had
/// 0.02 of their requests, because other clients submitted the next cache hit while one was served.
#[test]
fn reads_from_the_cache_do_not_keep_the_head_from_moving() {
    let named = |name: &str, group| GroupSpec { name: name.into(), ..group };
    let hot = group(28, 4, PlaceSpec::Part { from: 0.3, to: 0.300_000_5 }, 100);
    let groups = [named("hot", hot), named("all", group(2, 4, PlaceSpec::Uniform, 100))];
    let all = |front| stats("hitachi-7k1000c", front, &groups, 20).classes[1].1.samples();
    let (bare, headtime) = (all(Front::Bare), all(Front::Headtime));
    println!("{headtime} reads of the whole disk, {bare} with the bare drive");
    assert!(headtime * 10 > bare * 6, "{headtime} reads instead of {bare}");
}

/// The head moves for no cache hit. With two of them at the drive at a time: 0.7 of the requests.
#[test]
fn reads_from_the_cache_are_sent_as_many_as_the_drive_takes() {
    let local = group(6, 4, PlaceSpec::Part { from: 0.3, to: 0.300_083 }, 100);
    assert!(share("atlas10k", Front::Headtime, &[local], 100_000) > 0.95);
}

/// Returns `n` tasks that write a stream.
fn writes(n: u32, kib: u64, host_us: u64) -> GroupSpec {
    let mut group = group(n, kib, PlaceSpec::SharedSequential, host_us);
    group.pattern.reads = Share::NONE;
    group
}

/// A drive completes two writes of 4 KiB before it receives the third. With two at the drive at a
/// time 0.07 of the requests; the same with waiting writes merged into one command, because all
/// clients submit their next ones at its end.
#[test]
fn short_writes_in_order_do_not_run_dry() {
    for drive in ["atlas10k", "cheetah73lp"] {
        assert!(share(drive, Front::Headtime, &[writes(8, 4, 20)], 20_000) > 0.99);
    }
    assert!(share("cheetah73lp", Front::Headtime, &[writes(3, 4, 20)], 20_000) > 0.99);
}

/// A log: sequential writes that must be on the media, on drives with a write cache. With two at
/// the drive at a time 0.01 to 0.5 of the requests.
#[test]
fn short_writes_of_a_log_do_not_run_dry() {
    for drive in ["hitachi-7k1000c", "nearline-20tb", "maxtor-7l250s0"] {
        for tasks in [4, 16] {
            let mut log = writes(tasks, 4, 50);
            log.pattern.fua = true;
            assert!(share(drive, Front::Headtime, &[log], 20_000) > 0.99);
        }
    }
}

/// A stream of reads and writes, whose data share the bus. With two at the drive at a time 0.07 to
/// 0.57 of the requests.
#[test]
fn a_stream_of_reads_and_writes_does_not_run_dry() {
    for (drive, kib) in [("cheetah36es", 4), ("cheetah36es", 32), ("atlas10k", 4), ("atlas10k", 32)] {
        let mut mixed = writes(4, kib, 20);
        mixed.pattern.reads = Share::from_f64(0.5).expect("a share");
        assert!(share(drive, Front::Headtime, &[mixed], 20_000) > 0.99);
    }
}

/// Completions reach the host in another order than that of the media accesses. When each of those
/// ended a chain: 0.25, 0.42, 0.61 and (where only those of the other kind ended it) 0.32 of the
/// requests.
#[test]
fn completions_in_another_order_do_not_end_a_chain() {
    let reads = group(8, 4, PlaceSpec::SharedSequential, 20);
    let mut mixed = reads.clone();
    mixed.pattern.reads = Share::from_f64(0.5).expect("a share");
    let writes = writes(8, 4, 20);
    let cases = [("cheetah73lp", &writes), ("cheetah36es", &writes), ("cheetah36es", &reads), ("cheetah73lp", &mixed)];
    for (drive, group) in cases {
        let mut profile = profile::builtin(drive).expect("a built-in drive");
        profile.noise.completion_jitter = Dur::from_us(500);
        let limits = Limits { requests: Some(20_000), ..Limits::default() };
        let rate = |front| run_on(&profile, front, std::slice::from_ref(group), limits).per_second();
        let (bare, headtime) = (rate(Front::Bare), rate(Front::Headtime));
        assert!(headtime > 0.98 * bare, "{drive}: {headtime:.0} requests a second instead of {bare:.0}");
    }
}

/// The next write of the stream arrives before the last but one has ended. With waiting writes
/// merged into one command, which both clients wait for: 0.29 of the requests.
#[test]
fn a_stream_of_writes_is_not_left_for_every_read() {
    let random = group(2, 4, PlaceSpec::Uniform, 100);
    assert!(share("cheetah73lp", Front::Headtime, &[writes(2, 64, 100), random], 20_000) > 0.93);
}

/// A drive with a write cache and no queue reaches a write from the end of the previous one. When
/// ORDER assumed its position at the completion: 0.54 of the requests. Readers beside such a writer
/// have at least half of theirs.
#[test]
fn writes_that_a_drive_without_a_queue_caches_are_ordered_from_the_end_of_the_last() {
    let two = [writes(2, 64, 100), writes(2, 64, 100)];
    assert!(share("maxtor-6l080l0", Front::Headtime, &two, 5_000) > 1.4);
    let groups = [writes(2, 64, 100), group(4, 4, PlaceSpec::Uniform, 100)];
    let reads = |front| stats("maxtor-6l080l0", front, &groups, 60).reads.samples();
    let (bare, headtime) = (reads(Front::Bare), reads(Front::Headtime));
    assert!(headtime * 2 > bare, "{headtime} reads instead of {bare}");
}

/// Late requests on several tracks count for the margins. With only the successful ones the margins
/// shrink to the minimum, and one in seven is late: 0.95 of the requests.
#[test]
fn margins_learn_from_late_requests_on_several_tracks() {
    let large = group(32, 256, PlaceSpec::Uniform, 1_000);
    assert!(share("ultrastar36z15", Front::Scan, &[large], 20_000) > 0.975);
}
