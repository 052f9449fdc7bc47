//! Admitted guarantees hold: mandatory requests are in their periods if the drive takes its worst
//! case repeatedly, and optional streams have their quality if it takes the measured times, for any
//! choice among the active subset.

use headtime_disk::{Dur, Time};
use headtime_sched::internals::subset::Rules;
use headtime_sched::streams::{
    Admitted, Disk, Distribution, Exhausted, Ledger, Quality, Service, Stream, Tally, admit,
};
use headtime_testkit::das_rig::{Choice, Rig, made_up_times};
use headtime_testkit::profiles::{between, rng};
use rand_core::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

const BIN: Dur = Dur::from_us(100);
const CHOICES: [Choice; 2] = [Choice::Spiteful, Choice::Random];

fn service(rng: &mut Xoshiro256PlusPlus, sectors: u32, mean: u64, worst: u64) -> (Service, Vec<Dur>) {
    let samples = made_up_times(rng, 1_000, BIN, (mean / 3, mean), worst);
    let times = Distribution::from_samples(&samples, BIN, Dur(worst * BIN.0)).expect("samples");
    (Service::new(sectors, Dur(worst * BIN.0), times), samples)
}

/// Returns the rules of a drive whose largest requests are these.
fn rules(largest: &Service, outstanding: u32, exhausted: Exhausted, compensates: bool) -> Rules {
    Rules {
        outstanding,
        best_effort: largest.worst,
        blocker: largest.worst,
        exhausted,
        compensates,
        crossing: largest.worst,
        crossing_likely: largest.likely(),
        moves_on: Dur::ZERO,
    }
}

/// Adds streams one after another, as many as are admitted.
fn admitted(
    rng: &mut Xoshiro256PlusPlus,
    disk: &Disk,
    periods: &[u64],
    blocked_by: u32,
    quality: impl Fn(&mut Xoshiro256PlusPlus) -> u32,
) -> Vec<Stream> {
    let mut all = Vec::new();
    for _ in 0..6 {
        let period = Dur::from_ms(periods[between(rng, 0, periods.len() as u64 - 1) as usize]);
        let q = Quality::from_ppm(quality(rng)).expect("a quality");
        let sectors = [16, 128][between(rng, 0, 1) as usize];
        let requests = between(rng, 1, period.0 / 12_000_000) as u32;
        let wanted = Stream::new(requests, period, q, sectors).expect("a stream");
        let wanted = wanted.blocked_by(blocked_by).expect("a stream");
        let mut with = all.clone();
        with.push(wanted);
        match admit(disk, &with) {
            Ok(_) => all = with,
            Err(refused) => {
                if let Some(requests) = refused.nearest.requests {
                    all.push(Stream { requests, ..wanted });
                }
            }
        }
    }
    all
}

/// Opens the admitted streams; each submits `after` its periods begin.
fn open(rig: &mut Rig, disk: &Disk, all: &[Stream], found: Admitted, after: &[Dur]) {
    rig.subset.set_crossing(found.crossing);
    for (number, (stream, reservation)) in all.iter().zip(found.reservations).enumerate() {
        let service = disk.service(stream.sectors).expect("it is known");
        rig.open(number as u32, *stream, service, reservation, after[number % after.len()]);
    }
}

/// Random sets of streams with periods that divide each other and that do not, on a drive that
/// takes its worst case in long intervals.
#[test]
fn no_mandatory_request_is_late_whatever_the_drive_does_within_its_worst_case() {
    let Kept { requests, late, tight } = mandatory(0);
    println!("{requests} mandatory requests, {late} late; {tight} of 20 sets above 90% by their worst cases");
    assert!(late == 0 && requests > 20_000 && tight > 10);
}

/// The same where each request may have to wait for up to two older ones, which admission counts.
#[test]
fn no_mandatory_request_is_late_by_older_ones_that_admission_counts() {
    let Kept { requests, late, tight } = mandatory(2);
    println!("{requests} mandatory requests, {late} late; {tight} of 20 sets above 90% by their worst cases");
    assert!(late == 0 && requests > 7_000 && tight > 8, "{late} of {requests} late, {tight} sets above 90%");
}

/// Results for mandatory requests.
struct Kept {
    requests: u64,
    late: u64,
    /// Sets that take more than nine tenths of the time by their worst cases.
    tight: u64,
}

fn mandatory(blocked_by: u32) -> Kept {
    let mut kept = Kept { requests: 0, late: 0, tight: 0 };
    for seed in 0..20 {
        let rng = &mut rng(seed);
        let (small, _) = service(rng, 16, 50, 200);
        let (large, _) = service(rng, 128, 70, 300);
        let outstanding = between(rng, 1, 2) as u32;
        let rules = rules(&large, outstanding, Exhausted::BeforeBestEffort, true);
        let disk = Disk::new(vec![small, large], outstanding).expect("a drive");
        let periods: &[u64] = if seed % 2 == 0 { &[200, 400] } else { &[150, 200, 350, 1_000] };
        let all =
            admitted(rng, &disk, periods, blocked_by, |rng| [1_000_000, 900_000][usize::from(between(rng, 0, 3) == 0)]);
        let found = admit(&disk, &all).expect("they were admitted");
        kept.tight += u64::from(found.load.worst_ppm > 900_000);
        let choice = CHOICES[(seed / 2 % 2) as usize];
        let mut mood = headtime_testkit::profiles::rng(seed + 1);
        let mut kind = false;
        let takes = move |_, worst: Dur| {
            // For a while everything takes its worst case, then any time.
            kind ^= mood.next_u64().is_multiple_of(50);
            if kind { Dur(mood.next_u64() % worst.0 + 1) } else { worst }
        };
        let mut rig = Rig::new(rules, choice, headtime_testkit::profiles::rng(seed + 2), takes);
        // Some submit at once when a period begins, some later in it.
        let after = [Dur::ZERO, Dur::ZERO, Dur::from_ms(between(rng, 1, 140))];
        open(&mut rig, &disk, &all, found, &after);
        rig.run(Time(40_000_000_000));
        for (number, stream) in all.iter().enumerate().filter(|s| s.1.is_mandatory()) {
            let tally = rig.subset.tally(number as u32).expect("it is at work");
            if tally.late > 0 {
                println!("seed {seed}: {stream:?} of {all:?}: {tally:?}");
            }
            kept.late += tally.late;
            if after[number % after.len()] == Dur::ZERO {
                assert_eq!(tally.deferred, 0, "seed {seed}: {stream:?} of {all:?}: {tally:?}");
            }
            kept.requests += tally.asked;
        }
    }
    kept
}

/// Streams of a third of the time each, which no power of two divides: the rates, rounded up, add
/// up to more than all. Each request may wait for one older, and one stream submits `after` its
/// period began.
fn thirds(after: Dur, choice: Choice, seed: u64) -> Vec<Tally> {
    let (own, older) = (Dur(1_111_111_111), Dur(2_222_222_222));
    let times = Distribution::from_samples(&[own], BIN, own).expect("a sample");
    let disk = Disk::new(vec![Service::new(16, own, times)], 1).expect("a drive").with_others(older);
    let stream = Stream::new(1, Dur(9_999_999_999), Quality::MANDATORY, 16).and_then(|s| s.blocked_by(1));
    let all = vec![stream.expect("a stream"); 3];
    let found = admit(&disk, &all).expect("all of the time");
    assert_eq!(found.load.worst_ppm, 1_000_000 + 2, "each share is rounded up");
    let rules = Rules {
        outstanding: 1,
        best_effort: older,
        blocker: older,
        exhausted: Exhausted::Skip,
        compensates: true,
        crossing: older,
        crossing_likely: older,
        moves_on: Dur::ZERO,
    };
    let mut rig = Rig::new(rules, choice, rng(seed), |_, worst| worst);
    open(&mut rig, &disk, &all, found, &[Dur::ZERO, Dur::ZERO, after]);
    rig.run(Time(1_000_000_000_000));
    (0..3).map(|number| rig.subset.tally(number).expect("it is at work")).collect()
}

#[test]
fn worst_cases_that_fill_a_period_to_the_nanosecond_are_in_time() {
    // One submits when its period has begun and is served a period later, so that slack is
    // considered beyond this one.
    for after in [Dur::ZERO, Dur::from_ms(10)] {
        let tallies = thirds(after, Choice::Spiteful, 1);
        assert!(tallies.iter().all(|t| t.late == 0 && t.in_time > 90), "{tallies:?}");
    }
}

/// After the others have had two thirds of the period in their worst case, a third is just enough.
/// A stream whose request is deferred once stays a period behind, so the first period counts.
#[test]
fn what_comes_a_few_nanoseconds_too_late_for_its_period_belongs_to_the_next() {
    for (seed, too_late) in (0..32).flat_map(|seed| [0, 1, 10, 20].map(|too_late| (seed, too_late))) {
        let tallies = thirds(Dur(6_666_666_666 + too_late), Choice::Streams, seed);
        assert!(tallies.iter().all(|t| t.late == 0 && t.in_time > 90), "seed {seed}, {too_late} ns: {tallies:?}");
    }
}

/// Such sets with measured times, on a disk that is never idle: each stream's quality relative to
/// the declared one.
#[test]
fn every_optional_stream_has_its_quality_beside_any_other_load() {
    let had = optional(0, 0);
    assert!(had.below.is_empty() && had.mean > 0.0 && had.streams > 40 && had.busiest > 0.85, "{had:?}");
}

/// The same where each request waits for up to two older ones: with that number counted by
/// admission, and with none.
#[test]
fn every_optional_stream_has_its_quality_behind_older_requests_that_admission_counts() {
    let had = optional(2, 2);
    assert!(had.below.is_empty() && had.mean > 0.0 && had.streams > 20 && had.busiest > 0.3, "{had:?}");
    let had = optional(0, 2);
    assert!(had.below.len() > 20 && had.mean < -0.1, "{had:?}");
}

/// Results for optional streams.
#[derive(Debug)]
struct Had {
    streams: u32,
    /// Mean of the quality less the declared one.
    mean: f64,
    least: f64,
    /// Those below their declared quality by more than chance explains.
    below: Vec<String>,
    /// The largest expected part of the time of a set, without older requests.
    busiest: f64,
}

/// Admission counts `counted` older requests for each, and it waits for up to `waits_for`.
fn optional(counted: u32, waits_for: u32) -> Had {
    let mut had = Had { streams: 0, mean: 0.0, least: 1.0, below: Vec::new(), busiest: 0.0 };
    for seed in 0..16 {
        let rng = &mut rng(seed + 1000);
        let (small, small_times) = service(rng, 16, 50, 200);
        let (large, large_times) = service(rng, 128, 70, 300);
        let outstanding = between(rng, 1, 2) as u32;
        // Nothing compensates a stream whose reservation is exhausted.
        let rules = rules(&large, outstanding, Exhausted::Skip, false);
        let disk = Disk::new(vec![small, large], outstanding).expect("a drive");
        let periods = [&[500][..], &[200, 400], &[500], &[150, 220, 350]][(seed % 4) as usize];
        let all = admitted(rng, &disk, periods, counted, |rng| {
            if between(rng, 0, 4) == 0 { 1_000_000 } else { between(rng, 500_000, 995_000) as u32 }
        });
        let found = admit(&disk, &all).expect("they were admitted");
        let load = found.load.expected_ppm;
        had.busiest = had.busiest.max(load as f64 / 1e6);
        let sizes: Vec<u32> = all.iter().map(|s| s.sectors).collect();
        let mut mood = headtime_testkit::profiles::rng(seed + 1);
        let takes = move |number: Option<u32>, _| {
            let times = if number.is_some_and(|n| sizes[n as usize] == 16) { &small_times } else { &large_times };
            times[(mood.next_u64() % times.len() as u64) as usize]
        };
        let choice = CHOICES[(seed / 2 % 2) as usize];
        let mut rig = Rig::new(rules, choice, headtime_testkit::profiles::rng(seed + 2), takes);
        let waiting = all.iter().zip(&found.reservations).map(|(stream, reservation)| {
            // One that is served as a mandatory one would not have been admitted.
            let older = if reservation.is_some() { waits_for } else { counted };
            stream.blocked_by(older).expect("a stream")
        });
        let waiting: Vec<Stream> = waiting.collect();
        open(&mut rig, &disk, &waiting, found, &[Dur::ZERO]);
        rig.run(Time(300_000_000_000));
        for (number, stream) in all.iter().enumerate() {
            let tally = rig.subset.tally(number as u32).expect("it is at work");
            let quality = tally.in_time as f64 / (tally.in_time + tally.late) as f64;
            let margin = quality - f64::from(stream.quality.ppm()) / 1e6;
            // Reservations are the smallest sufficient ones, so in half of all runs the quality is
            // slightly below the declared one. If all requests of a period had the same outcome,
            // this would be four deviations.
            let (q, periods) = (f64::from(stream.quality.ppm()) / 1e6, tally.asked as f64 / f64::from(stream.requests));
            let chance = 4.0 * (q * (1.0 - q) / periods).sqrt();
            if margin < -chance {
                had.below.push(format!("seed {seed}, {choice:?}: {stream:?} had {quality:.4} of {all:?}, load {load}"));
            }
            had.least = had.least.min(margin);
            if !stream.is_mandatory() {
                (had.mean, had.streams) = (had.mean + margin, had.streams + 1);
            }
        }
        assert!(rig.seen.best_effort > 0 || load > 900_000, "seed {seed}: {:?}", rig.seen);
    }
    // Over all of them chance is a tenth of what it is for one.
    had.mean /= f64::from(had.streams);
    println!(
        "{counted} counted, up to {waits_for} waited for: {} streams had {:+.4} more than they asked for in the \
              mean, {:+.4} the least; busiest set {:.3}",
        had.streams, had.mean, had.least, had.busiest
    );
    had
}

/// Each request of a stream of low quality waits for one of its own, beside a stream that leaves no
/// time but what is reserved: if the older requests were dispatched first for all of them, that
/// would exhaust the reservation.
#[test]
fn requests_that_wait_go_one_behind_what_each_waits_for() {
    for seed in 0..4 {
        let rng = &mut rng(seed + 2000);
        let (service, times) = service(rng, 128, 70, 300);
        let rules = rules(&service, 2, Exhausted::Skip, true);
        let disk = Disk::new(vec![service], 2).expect("a drive");
        let quality = |ppm| Quality::from_ppm(ppm).expect("a quality");
        let stream = |requests, ppm| Stream::new(requests, Dur::from_secs(1), quality(ppm), 128).expect("a stream");
        let waits = stream(20, 300_000).blocked_by(1).expect("a stream");
        let with = |requests| {
            let mut ledger = Ledger::new(disk.clone());
            ledger.extend(&[waits, stream(requests, 900_000)]).ok().map(|()| ledger)
        };
        let ledger = (1..200).rev().find_map(with).expect("room for one");
        let mut mood = headtime_testkit::profiles::rng(seed + 1);
        let takes = move |_, _| times[(mood.next_u64() % times.len() as u64) as usize];
        let mut rig = Rig::new(rules, Choice::Spiteful, headtime_testkit::profiles::rng(seed + 2), takes);
        open(&mut rig, &disk, ledger.streams(), ledger.admitted(), &[Dur::ZERO]);
        rig.run(Time(200_000_000_000));
        for (number, stream) in ledger.streams().iter().enumerate() {
            let tally = rig.subset.tally(number as u32).expect("it is at work");
            let had = tally.in_time as f64 / (tally.asked - u64::from(stream.requests)) as f64;
            assert!(had >= f64::from(stream.quality.ppm()) / 1e6 - 0.01, "seed {seed}: {stream:?} had {had:.3}");
        }
    }
}
