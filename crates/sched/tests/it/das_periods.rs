//! Mandatory streams with several periods: a set is admitted if there is time for it, in the
//! pattern in which requests are really due.

use headtime_disk::{Dur, Time};
use headtime_sched::internals::subset::Rules;
use headtime_sched::streams::{
    Admitted, Disk, Distribution, Exhausted, Quality, Refusal, RefusalReason, Service, Stream, admit,
};
use headtime_testkit::das_demand::{Asks, is_kept};
use headtime_testkit::das_rig::{Choice, Rig};
use headtime_testkit::profiles::{between, rng};
use rand_core::Rng;

/// 1 ms and more, so that periods may be short.
const BIN: Dur = Dur(1 << 20);

fn bins(n: u64) -> Dur {
    Dur(n * BIN.0)
}

/// Small, medium and large requests.
const SECTORS: [u32; 3] = [8, 64, 512];

/// Requests in a period, its length, and their size, of [`SECTORS`].
type Ask = (u32, u64, usize);

fn drive(worst: [u64; 3]) -> Disk {
    let service = |(sectors, worst)| {
        let times = Distribution::from_samples(&[BIN], BIN, bins(worst)).expect("a sample");
        Service::new(sectors, bins(worst), times)
    };
    Disk::new(SECTORS.into_iter().zip(worst).map(service).collect(), 2).expect("a drive")
}

fn streams(all: &[Ask]) -> Vec<Stream> {
    let stream = |&(requests, period, size): &Ask| {
        Stream::new(requests, bins(period), Quality::MANDATORY, SECTORS[size]).expect("a stream")
    };
    all.iter().map(stream).collect()
}

fn admitted(worst: [u64; 3], all: &[Ask]) -> Result<Admitted, Refusal> {
    admit(&drive(worst), &streams(all))
}

fn asks(worst: [u64; 3], all: &[Ask]) -> Vec<Asks> {
    let one = |&(requests, period, size): &Ask| {
        let longest = worst[size];
        Asks { period, work: u64::from(requests) * longest, longest }
    };
    all.iter().map(one).collect()
}

/// Returns streams that demand about as much as there is.
fn some(seed: u64, periods: &[u64]) -> ([u64; 3], Vec<Ask>) {
    let rng = &mut rng(seed);
    let small = between(rng, 1, 3);
    let medium = between(rng, small, 6);
    let worst = [small, medium, between(rng, medium, 12)];
    let (mut all, mut taken) = (Vec::new(), 0.0);
    for _ in 0..between(rng, 2, 4) {
        let (period, size) = (periods[between(rng, 0, periods.len() as u64 - 1) as usize], between(rng, 0, 2) as usize);
        let most = ((1.05 - taken) * period as f64 / worst[size] as f64).floor() as u64;
        if most > 0 {
            let requests = between(rng, 1, most);
            taken += (requests * worst[size]) as f64 / period as f64;
            all.push((requests as u32, period, size));
        }
    }
    (worst, all)
}

#[test]
fn mandatory_streams_are_admitted_where_enumeration_finds_time_for_all() {
    let (mut admitted_sets, mut refused, mut between) = (0, 0, 0);
    for seed in 0..4_000 {
        let (worst, all) = some(seed, &[4, 6, 8, 12, 16, 24, 30, 40]);
        let found = admitted(worst, &all);
        // All periods begin together after 240.
        let kept = is_kept(&asks(worst, &all), 240);
        assert_eq!(found.is_ok(), kept, "seed {seed}: {all:?} at {worst:?}: {found:?}");
        admitted_sets += u64::from(kept && all.len() > 1);
        refused += u64::from(!kept);
        between += u64::from(matches!(found, Err(Refusal { why: RefusalReason::Between { .. }, .. })));
    }
    println!("{admitted_sets} sets of streams admitted, {refused} refused, {between} of them for want of room");
    assert!(admitted_sets > 1_000 && between > 200, "{admitted_sets}, {refused}, {between}");
}

/// Returns whether a line above the steps leaves room for the longest command: the test before
/// deadlines were checked one by one.
fn a_line_leaves_room(all: &[Asks]) -> bool {
    let upto = |period: u64| all.iter().filter(move |a| a.period <= period);
    all.iter().all(|short| {
        let used: f64 = upto(short.period).map(|a| a.work as f64 / a.period as f64).sum();
        let longer = all.iter().filter(|a| a.period > short.period).map(|a| a.longest).max();
        longer.is_none_or(|longest| (1.0 - used) * short.period as f64 >= longest as f64)
    })
}

/// A period that divides another a thousand times: its demand counts up to the end of the long one,
/// not only of the next 256.
#[test]
fn a_long_period_beside_a_very_short_one_is_in_time() {
    let worst = [1, 1, 1];
    let all = [(6, 8, 0), (2_200, 9_000, 0)];
    assert!(admitted(worst, &all).expect("98%").load.worst_ppm > 970_000);
    let rules = Rules {
        outstanding: 1,
        best_effort: bins(1),
        blocker: bins(1),
        exhausted: Exhausted::Skip,
        compensates: true,
        crossing: bins(1),
        crossing_likely: bins(1),
        moves_on: Dur::ZERO,
    };
    let (disk, mut rig) = (drive(worst), Rig::new(rules, Choice::Spiteful, rng(1), |_, worst| worst));
    for (number, stream) in streams(&all).into_iter().enumerate() {
        rig.open(number as u32, stream, disk.service(8).expect("it is known"), None, Dur::ZERO);
    }
    rig.run(Time(bins(40_000).0));
    for (number, _) in all.iter().enumerate() {
        let tally = rig.subset.tally(number as u32).expect("it is at work");
        assert!(tally.late == 0 && tally.deferred == 0 && tally.in_time > 6_600, "{tally:?}");
    }
}

/// On a drive that takes the worst case each time, or nearly, in any order of the eligible
/// requests.
#[test]
fn what_deadlines_one_by_one_leave_room_for_is_in_time() {
    let (mut sets, mut steps, mut requests) = (0, 0, 0);
    for seed in 0..4_000 {
        let (worst, all) = some(seed, &[8, 12, 16, 24, 30, 40, 50]);
        let Ok(found) = admitted(worst, &all) else { continue };
        let by_steps = !a_line_leaves_room(&asks(worst, &all));
        if !by_steps && seed % 16 > 0 {
            continue;
        }
        (sets, steps) = (sets + 1, steps + u64::from(by_steps));
        let disk = drive(worst);
        let longest = bins(worst[2]);
        let rules = Rules {
            outstanding: 1 + (seed % 2) as u32,
            best_effort: longest,
            blocker: longest,
            exhausted: Exhausted::BeforeBestEffort,
            compensates: true,
            crossing: longest,
            crossing_likely: longest,
            moves_on: Dur::ZERO,
        };
        let mut mood = rng(seed + 1);
        let exact = seed % 3 == 0;
        let takes = move |_, worst: Dur| if exact { worst } else { Dur(worst.0 - mood.next_u64() % (worst.0 / 2)) };
        let choice = if seed % 4 < 2 { Choice::Spiteful } else { Choice::Random };
        let mut rig = Rig::new(rules, choice, rng(seed + 2), takes);
        rig.subset.set_crossing(found.crossing);
        for (number, stream) in streams(&all).into_iter().enumerate() {
            let service = disk.service(stream.sectors).expect("it is known");
            rig.open(number as u32, stream, service, None, Dur::ZERO);
        }
        rig.run(Time(bins(6_000).0));
        for (number, ask) in all.iter().enumerate() {
            let tally = rig.subset.tally(number as u32).expect("it is at work");
            assert_eq!((tally.late, tally.deferred), (0, 0), "seed {seed}: {ask:?} of {all:?} at {worst:?}: {tally:?}");
            requests += tally.asked;
        }
    }
    println!("{sets} sets, {steps} of them only by steps; {requests} requests, none late");
    assert!(sets > 200 && steps > 100 && requests > 300_000, "{sets}, {steps}, {requests}");
}

/// Where checking each deadline takes too long: these periods begin together after some hundred
/// years.
#[test]
fn with_periods_that_hardly_ever_begin_together_no_more_is_admitted_than_there_is_time_for() {
    let (mut admitted_sets, mut refused) = (0, 0);
    for seed in 0..60 {
        let (worst, all) = some(seed, &[67, 71, 73, 79, 83, 89, 97]);
        let mut all = all;
        all.extend([(1, 401, 0), (1, 409, 0)]);
        match admitted(worst, &all) {
            Ok(_) => {
                assert!(is_kept(&asks(worst, &all), 1_000), "seed {seed}: {all:?} at {worst:?}");
                admitted_sets += 1;
            }
            Err(_) => refused += 1,
        }
    }
    assert!(admitted_sets > 10 && refused > 10, "{admitted_sets}, {refused}");
}

#[test]
fn room_is_looked_for_where_deadlines_are_and_not_below_a_line_above_them() {
    // 96% in the worst case. By 200 bins 124 are due, by 300 217, by 400 341, by 600 558: at least
    // 42 always remain. If all grew linearly there were 21 at 300.
    let worst = [31, 31, 42];
    let streams = [(4, 200, 0), (3, 300, 0), (1, 1_000, 0)];
    assert!(admitted(worst, &streams).is_ok());
    let large = |size| [(4, 200, 0), (3, 300, 0), (1, 2_000, size)];
    assert!(admitted(worst, &large(2)).is_ok());
    let refused = admitted([31, 31, 43], &large(2)).expect_err("no room");
    assert_eq!(refused.why, RefusalReason::Between { stream: 2, worst: bins(43), free: bins(42) });
    // Periods of 100 end where those of 200 do, so that no request of the longer one blocks a whole
    // shorter one.
    assert!(admitted([51, 98, 98], &[(1, 100, 0), (1, 200, 1)]).is_ok());
    let refused = admitted([51, 99, 99], &[(1, 100, 0), (1, 200, 1)]).expect_err("more than there is");
    assert_eq!(refused.why, RefusalReason::Worst { needed_ppm: 1_005_000 });
    // They do not with 210.
    let refused = admitted([51, 98, 98], &[(1, 100, 0), (1, 210, 1)]).expect_err("no room");
    assert_eq!(refused.why, RefusalReason::Between { stream: 1, worst: bins(98), free: bins(49) });
}
