//! Admission against enumeration, and against the paper's figures.

use headtime_disk::Dur;
use headtime_sched::streams::{
    Disk, DiskError, Distribution, Family, Ledger, Nearest, Quality, RefusalReason, Service, Stream, admit,
};
use headtime_testkit::das_admission::Case;
use headtime_testkit::das_rig::made_up_times;
use headtime_testkit::profiles::{between, rng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A power of two, so that shares of a period are whole.
const BIN: Dur = Dur(1 << 20);

fn bins(n: u64) -> Dur {
    Dur(n * BIN.0)
}

fn ppm(ppm: u32) -> Quality {
    Quality::from_ppm(ppm).expect("a quality")
}

fn stream(requests: u32, period: Dur, quality: u32, sectors: u32) -> Stream {
    Stream::new(requests, period, ppm(quality), sectors).expect("a stream")
}

fn disk(case: &Case) -> Disk {
    let member = |times: &Vec<u64>| {
        let samples: Vec<Dur> = times.iter().map(|&t| bins(t)).collect();
        Distribution::from_samples(&samples, BIN, bins(case.worst)).expect("samples")
    };
    let times = Family::new((1..).zip(case.times.iter().map(member)).collect()).expect("a family");
    assert_eq!(times.fewest().quantile(900_000), bins(case.likely));
    Disk::new(vec![Service::new(128, bins(case.worst), times)], case.outstanding as u32).expect("a drive")
}

fn streams(case: &Case) -> Vec<Stream> {
    let mandatory = (case.mandatory > 0).then(|| stream(case.mandatory as u32, bins(case.period), 1_000_000, 128));
    let optional = case.optional.iter().map(|&(c, q)| {
        let stream = stream(c as u32, bins(case.period), q as u32, 128);
        stream.blocked_by(case.older as u32).expect("a stream")
    });
    mandatory.into_iter().chain(optional).collect()
}

/// Few requests, and two or four times that are equally likely, so that all probabilities are
/// multiples of an inverse power of two.
fn case(seed: u64) -> Case {
    let rng = &mut rng(seed);
    let kinds = if seed.is_multiple_of(8) { 16 } else { 1 << between(rng, 1, 2) };
    let mut times: Vec<u64> = (0..kinds).map(|_| between(rng, 1, 5)).collect();
    times.sort_unstable();
    if kinds == 16 {
        // One in sixteen takes longer than is likely.
        times[15] += between(rng, 1, 4);
    }
    let most: u64 = match kinds {
        16 => 4,
        4 => 7,
        _ => 12,
    };
    let outstanding = between(rng, 1, 2);
    let mandatory = between(rng, 0, most / 4);
    let mut left = most - outstanding - mandatory;
    let older = if seed % 3 == 2 { between(rng, 0, left - 1) } else { 0 };
    let mut optional = Vec::new();
    while left > older && optional.len() < 3 {
        let requests = between(rng, 1, (left / (1 + older)).min(5));
        left -= requests * (1 + older);
        optional.push((requests as usize, between(rng, 1, 999_999)));
    }
    Case {
        // The least that nine in ten do not exceed: of 16 the last but one.
        likely: times[if kinds == 16 { 14 } else { times.len() - 1 }],
        worst: times[times.len() - 1] + between(rng, 0, 4),
        times: fewer_take_longer(rng, times),
        outstanding: outstanding as usize,
        period: 1 << between(rng, 3, 5),
        mandatory: mandatory as usize,
        optional,
        older: older as usize,
    }
}

/// Times by the number of candidates, one of `alone`, each at most as long with one more to choose
/// from.
fn fewer_take_longer(rng: &mut Xoshiro256PlusPlus, alone: Vec<u64>) -> Vec<Vec<u64>> {
    let mut all = vec![alone];
    for _ in 0..between(rng, 0, 3) {
        let mut more: Vec<u64> = all[all.len() - 1].iter().map(|&t| between(rng, t.div_ceil(2), t)).collect();
        more.sort_unstable();
        all.push(more);
    }
    all
}

#[test]
fn reservations_are_those_of_enumerating_every_outcome() {
    let (mut yes, mut no) = (0, 0);
    for seed in 0..200 {
        let case = case(seed);
        let all = streams(&case);
        let mut found = Ledger::new(disk(&case));
        let found = found.extend(&all).map(|()| found.admitted());
        let expected = case.admit();
        match (&found, &expected) {
            (Ok(found), Some((expected, crossing))) => {
                assert_eq!(found.crossing, *crossing, "seed {seed}: {case:?}");
                let optional: Vec<Dur> = found.reservations.iter().flatten().copied().collect();
                let expected: Vec<Dur> = expected.iter().map(|&r| bins(r)).collect();
                assert_eq!(optional, expected, "seed {seed}: {case:?}");
                yes += 1;
            }
            (Err(_), None) => no += 1,
            _ => panic!("seed {seed}: {case:?}: {found:?}, expected {expected:?}"),
        }
    }
    println!("{yes} sets were admitted, {no} were not");
    assert!(yes > 80 && no > 50, "{yes} and {no}");
}

/// One after the other, an optional stream is served as mandatory if it cannot be admitted
/// otherwise, or if that leaves best effort more.
#[test]
fn sets_are_had_as_they_ask_or_with_optional_streams_served_as_mandatory() {
    let mut had = [0; 3];
    for seed in 0..600 {
        let case = case(seed);
        let (disk, all) = (disk(&case), streams(&case));
        let mut as_asked = Ledger::new(disk.clone());
        let as_asked = as_asked.extend(&all).map(|()| as_asked.admitted().crossing);
        let Ok(found) = admit(&disk, &all) else {
            assert!(as_asked.is_err(), "seed {seed}: {case:?}");
            continue;
        };
        let served = all.iter().zip(&found.reservations).map(|(&stream, reservation)| {
            let quality = if reservation.is_none() { Quality::MANDATORY } else { stream.quality };
            Stream { quality, ..stream }
        });
        let served: Vec<Stream> = served.collect();
        let mut so = Ledger::new(disk);
        assert_eq!(so.extend(&served), Ok(()), "seed {seed}: {case:?}");
        assert_eq!(so.admitted().crossing, found.crossing, "seed {seed}: {case:?}");
        match as_asked {
            Ok(crossing) if served == all => {
                assert_eq!(found.crossing, crossing, "seed {seed}: {case:?}");
                had[0] += 1;
            }
            Ok(_) => had[1] += 1,
            Err(_) => had[2] += 1,
        }
    }
    println!("{} as they asked; of {} more was left so, and {} were not had else", had[0], had[1], had[2]);
    assert!(had.iter().all(|&n| n > 4), "{had:?}");
}

#[test]
fn what_is_said_to_be_nearest_can_be_had_and_no_more() {
    let mut asked = 0;
    for seed in 0..150 {
        let case = case(seed);
        let (disk, mut all) = (disk(&case), streams(&case));
        let Err(refused) = admit(&disk, &all) else { continue };
        // The first that cannot be admitted beside those before it.
        all.truncate(refused.stream + 1);
        let last = all.pop().expect("one was refused");
        assert!(all.is_empty() || admit(&disk, &all).is_ok(), "seed {seed}: {refused}");
        let mut with = |s: Stream| {
            all.push(s);
            let found = admit(&disk, &all).is_ok();
            all.pop();
            found
        };
        let Nearest { requests, quality, .. } = refused.nearest;
        if let Some(requests) = requests {
            assert!(with(Stream { requests, ..last }), "seed {seed}: {refused}");
        }
        assert!(!with(Stream { requests: requests.unwrap_or(0) + 1, ..last }), "seed {seed}: {refused}");
        if let Some(quality) = quality {
            assert!(with(Stream { quality, ..last }), "seed {seed}: {refused}");
        }
        let better = ppm(quality.map_or(0, Quality::ppm) + 1);
        assert!(!with(Stream { quality: better, ..last }), "seed {seed}: {refused}");
        asked += 1;
    }
    assert!(asked > 30, "{asked}");
}

#[test]
fn where_neither_fewer_requests_nor_a_lower_quality_would_do_a_longer_period_is_said() {
    let times = Distribution::from_samples(&[Dur::from_ms(5)], Dur::from_us(100), Dur::from_ms(30)).expect("a sample");
    let disk = Disk::new(vec![Service::new(128, Dur::from_ms(30), times)], 2).expect("a drive");
    let stream = |n: u32, ms: u64, q: u32| Stream::new(n, Dur::from_ms(ms), ppm(q), 128).expect("a stream");
    for (hard, asks, q) in [(8, 35, 500_000), (12, 60, 990_000), (15, 31, 500_000)] {
        let with = |ms: u64| admit(&disk, &[stream(hard, 500, 1_000_000), stream(1, ms, q)]);
        let refused = with(asks).expect_err("no room");
        let Nearest { requests, quality, period } = refused.nearest;
        assert_eq!((requests, quality), (None, None), "{refused}");
        let period = period.unwrap_or_else(|| panic!("{hard}, {asks}: {refused}")).0 / 1_000_000;
        assert!(period > asks && with(period).is_ok() && with(period - 1).is_err(), "{refused}");
        assert!(refused.to_string().ends_with(&format!("; possible: a period of {period} ms")), "{refused}");
    }
}

#[test]
fn the_best_quality_that_can_be_had_is_that_of_enumerating_every_outcome() {
    let mut asked = 0;
    for seed in (0..800).step_by(8) {
        let mut case = case(seed);
        let most = if case.outstanding == 1 { 3 } else { 2 };
        (case.mandatory, case.optional, case.older) = (0, vec![(most, 999_999)], 0);
        case.period = case.times[0].iter().sum::<u64>() * most as u64 / 16 + case.likely;
        let Err(refused) = admit(&disk(&case), &streams(&case)) else { continue };
        let (done, outcomes) = case.done(&[case.period + 1], 0, 0);
        let best = done * 1_000_000 / (outcomes * most as u64);
        assert_eq!(refused.nearest.quality.map(|q| u64::from(q.ppm())), Some(best), "seed {seed}: {case:?}");
        asked += 1;
    }
    assert!(asked > 30, "{asked}");
}

/// Bell-shaped times like those of figure 4: a mean of `mean_us` and a deviation of `sd_us`.
fn bell(mean_us: f64, sd_us: f64, worst: Dur) -> Service {
    let samples: Vec<Dur> = (0..4000)
        .map(|i| {
            // Quantiles of the logistic distribution.
            let p = (f64::from(i) + 0.5) / 4000.0;
            let us = mean_us + sd_us * 3f64.sqrt() / std::f64::consts::PI * (p / (1.0 - p)).ln();
            Dur((us.clamp(500.0, worst.0 as f64 / 1e3) * 1e3) as u64)
        })
        .collect();
    let times = Distribution::from_samples(&samples, Dur::from_us(20), worst).expect("samples");
    Service::new(128, worst, times)
}

/// Table 2: requests in 500 ms, quality, and reservation times in ms for the two drives.
const TABLE_2: [(u32, u32, [f64; 2]); 5] = [
    (5, 990_000, [20.90, 36.90]),
    (20, 950_000, [77.50, 139.00]),
    (10, 900_000, [35.60, 63.50]),
    (5, 850_000, [15.80, 28.00]),
    (10, 600_000, [23.40, 41.00]),
];

#[test]
fn d9_reservations_are_near_those_of_table_2() {
    // Means that follow from the reservations themselves (docs/guarantees.md), and deviations of a
    // uniformly distributed revolution and some seek.
    let drives = [bell(4_250.0, 1_200.0, Dur::from_us(29_690)), bell(7_520.0, 2_400.0, Dur::from_us(31_110))];
    for (d, service) in drives.into_iter().enumerate() {
        let disk = Disk::new(vec![service], 2).expect("a drive");
        let all: Vec<Stream> = TABLE_2.iter().map(|s| stream(s.0, Dur::from_ms(500), s.1, 128)).collect();
        let found = admit(&disk, &all).expect("table 2 was admitted");
        for (row, r) in TABLE_2.iter().zip(&found.reservations) {
            let (ours, theirs) = (r.expect("optional").as_ms_f64(), row.2[d]);
            println!("drive {d}: {} requests at {}: {ours:.2} ms, the paper {theirs:.2} ms", row.0, row.1);
            assert!((ours / theirs - 1.0).abs() < 0.035, "{ours} ms, the paper {theirs} ms");
        }
        assert_eq!(found.load.worst_ppm, 0);
        println!("load {:?}", found.load);
    }
}

#[test]
fn d7_an_optional_stream_can_have_nearly_all_of_the_disk_and_a_mandatory_one_little() {
    for (service, name) in [
        (bell(4_250.0, 1_200.0, Dur::from_us(29_690)), "Ultrastar"),
        (bell(7_520.0, 2_400.0, Dur::from_us(31_110)), "Barracuda"),
    ] {
        let (mean, worst) = (service.times.most().mean(), service.worst);
        let disk = Disk::new(vec![service], 2).expect("a drive");
        let most = |quality| {
            let fits = |c: u32| admit(&disk, &[stream(c, Dur::from_ms(500), quality, 128)]);
            let refused = fits(500).expect_err("more than the disk can do");
            refused.nearest.requests.expect("some of it")
        };
        let best_effort = 500.0 / mean.as_ms_f64();
        let share = |quality: u32| f64::from(most(quality)) * f64::from(quality) / 1e6 / best_effort;
        let (tight, loose) = (share(999_000), share(950_000));
        println!("{name}: {:.1}% at 99.9%, {:.1}% at 95%", tight * 100.0, loose * 100.0);
        assert!(tight >= 0.88 && loose >= 0.95, "{tight} and {loose}");
        assert_eq!(u64::from(most(1_000_000)), Dur::from_ms(500).0 / worst.0);
    }
}

#[test]
fn several_periods_and_sizes_are_admitted_together() {
    let rng = &mut rng(3);
    let bin = Dur::from_us(100);
    let of = |sectors, mean, worst: u64, rng: &mut _| {
        let samples = made_up_times(rng, 2_000, bin, (20, mean), worst);
        let times = Distribution::from_samples(&samples, bin, Dur(worst * bin.0)).expect("samples");
        Service::new(sectors, Dur(worst * bin.0), times)
    };
    let services = vec![of(16, 50, 200, rng), of(128, 70, 300, rng)];
    let disk = Disk::new(services, 2).expect("a drive");
    let ms = Dur::from_ms;
    let set = [
        stream(2, ms(200), 1_000_000, 16),
        stream(3, ms(400), 1_000_000, 128),
        stream(6, ms(200), 950_000, 128),
        stream(4, ms(600), 900_000, 16),
    ];
    let found = admit(&disk, &set).expect("it fits");
    // 2 of 20 ms in 200, and 3 of 30 ms in 400.
    assert_eq!(found.load.worst_ppm, 425_000);
    assert_eq!(found.reservations.iter().map(Option::is_some).collect::<Vec<_>>(), [false, false, true, true]);
    // A stream is admitted for its own sizes: it needs less for smaller requests.
    let alone = |sectors| admit(&disk, &[stream(6, ms(200), 950_000, sectors)]).expect("it fits").reservations[0];
    assert!(alone(16) < alone(128) && alone(128) <= found.reservations[2]);
    let large = admit(&disk, &[stream(1, ms(200), 1_000_000, 129)]).expect_err("nothing is known of it");
    assert_eq!(large.why, RefusalReason::Size { stream: 0, most: 128, found: 129 });
    assert_eq!(large.to_string(), "stream 0: expected requests of at most 128 sectors, found 129");
    let full = admit(&disk, &[set[0], stream(9, ms(200), 1_000_000, 16)]).expect_err("11 of 20 ms in 200");
    assert_eq!(full.why, RefusalReason::Worst { needed_ppm: 1_100_000 });
    assert_eq!(full.nearest.requests, Some(8));
    println!("{full}");
}

/// The older request for which a request of a longer period waits must fit between those of the
/// shorter periods, as the request itself must.
#[test]
fn an_older_request_needs_room_between_those_of_shorter_periods() {
    let times = |worst| Distribution::from_samples(&[bins(worst)], BIN, bins(worst)).expect("a sample");
    let disk = |others| {
        let disk = Disk::new(vec![Service::new(16, bins(20), times(20))], 1).expect("a drive");
        disk.with_others(bins(others))
    };
    // They leave 60 of 120 bins free.
    let short = stream(3, bins(120), 1_000_000, 16);
    let long = stream(1, bins(1_000), 1_000_000, 16);
    let waits = long.blocked_by(1).expect("a stream");
    assert!(admit(&disk(61), &[short, long]).is_ok());
    assert!(admit(&disk(60), &[short, waits]).is_ok());
    let refused = admit(&disk(61), &[short, waits]).expect_err("no room");
    assert_eq!(refused.why, RefusalReason::Between { stream: 1, worst: bins(61), free: bins(60) });
}

/// The time of an older request larger than any measured one is longer by the difference of the
/// worst cases.
#[test]
fn larger_older_requests_leave_an_optional_stream_less() {
    let times = Distribution::from_samples(&[bins(10)], BIN, bins(20)).expect("a sample");
    let most = |others, blocked_by| {
        let disk = Disk::new(vec![Service::new(16, bins(20), times.clone())], 1).expect("a drive");
        let disk = disk.with_others(bins(others));
        let hard = stream(1, bins(1_000), 1_000_000, 16).blocked_by(blocked_by).expect("a stream");
        let asks = stream(200, bins(1_000), 999_000, 16);
        admit(&disk, &[hard, asks]).expect_err("twice what there is").nearest.requests.expect("some fit")
    };
    // An older one takes 10 bins; where its worst case is 100 longer, 110, which is 11 requests.
    assert_eq!(most(20, 0) - most(20, 1), 1);
    assert_eq!(most(20, 0) - most(120, 1), 11);
    assert_eq!(most(20, 0), most(120, 0));
}

/// Work that a period leaves at the beginning of another one counts there, too: with deterministic
/// times, no more is admitted than there is time for.
#[test]
fn streams_with_periods_that_do_not_divide_each_other_are_not_admitted_for_more_time_than_there_is() {
    let took = Dur::from_ms(5);
    let times = Distribution::from_samples(&[took], Dur::from_us(500), Dur::from_ms(6)).expect("a sample");
    let disk = Disk::new(vec![Service::new(128, Dur::from_ms(6), times)], 1).expect("a drive");
    let mut used = Vec::new();
    for (period, other) in [(300, 200), (380, 200), (500, 300)] {
        for requests in [10, 20] {
            let has = stream(requests, Dur::from_ms(other), 999_000, 128);
            let asks = stream(100, Dur::from_ms(period), 999_000, 128);
            let Nearest { requests: most, .. } = admit(&disk, &[has, asks]).expect_err("half a second of work").nearest;
            let share = |requests: u32, period: u64| f64::from(requests) * took.as_ms_f64() / period as f64;
            let all = share(requests, other) + share(most.expect("some fit"), period);
            assert!(all <= 1.0, "{requests} in {other} ms and {most:?} in {period} ms take {all:.3} of the time");
            used.push(all);
        }
    }
    println!("{used:.2?}");
    assert!(used.iter().all(|u| *u > 0.55), "{used:.2?}");
}

/// Beside a mandatory stream with another period, what remains is what that one leaves for any
/// phase of its periods: it may do its requests at the end of one period and at the beginning of
/// the next.
#[test]
fn beside_a_mandatory_stream_with_another_period_there_is_what_that_leaves_in_the_worst_place() {
    let took = 5;
    let times =
        Distribution::from_samples(&[Dur::from_ms(took)], Dur::from_us(500), Dur::from_ms(6)).expect("a sample");
    let disk = Disk::new(vec![Service::new(128, Dur::from_ms(6), times)], 1).expect("a drive");
    for (theirs, requests, ours) in [(500, 30, 501), (200, 10, 380), (300, 10, 100), (500, 30, 500), (250, 10, 500)] {
        let hard = stream(requests, Dur::from_ms(theirs), 1_000_000, 128);
        // As declared: served as a mandatory one it would not depend on the phase.
        let is_had = |requests: &u32| {
            let asks = stream(*requests, Dur::from_ms(ours), 999_000, 128);
            Ledger::new(disk.clone()).extend(&[hard, asks]).is_ok()
        };
        let most = (1..200).take_while(is_had).last().expect("some fit");
        // For every phase of our period the parts of theirs that lie in it, as far as they have
        // work for them.
        let work = u64::from(requests) * took;
        let busy = |period: u64| {
            let (from, until) = (period * ours, (period + 1) * ours);
            let part = |n: u64| until.min((n + 1) * theirs).saturating_sub(from.max(n * theirs)).min(work);
            (from / theirs..until.div_ceil(theirs)).map(part).sum::<u64>()
        };
        let left = ours - (0..theirs).map(busy).max().expect("a place");
        let had = u64::from(most) * took;
        println!("{requests} in {theirs} ms leave {left} of {ours} ms, of which {had} are promised");
        // The command at the drive when the period begins, and what is likely to be done after the
        // last.
        assert!(had <= left && had + 4 * took >= left.saturating_sub(took), "{had} of {left}");
    }
}

#[test]
fn optional_streams_are_admitted_although_mandatory_ones_fill_the_period_by_their_worst() {
    let service = bell(4_250.0, 1_200.0, Dur::from_ms(25));
    let disk = Disk::new(vec![service], 2).expect("a drive");
    let ms = Dur::from_ms;
    let full = stream(20, ms(500), 1_000_000, 128);
    let found = admit(&disk, &[full, stream(40, ms(500), 950_000, 128)]).expect("there is time");
    assert_eq!(found.load.worst_ppm, 1_000_000);
    println!("{found:?}");
    assert!(admit(&disk, &[full, stream(1, ms(500), 1_000_000, 128)]).is_err());
}

#[test]
fn a_drive_that_could_choose_among_commands_is_promised_from_with_none_of_them_waiting_behind_another() {
    let times = Distribution::from_samples(&[bins(1)], BIN, bins(3)).expect("a sample");
    let service = Service::new(128, bins(3), times);
    for found in [0, 3, 32] {
        let refused = Disk::new(vec![service.clone()], found).map(|_| ());
        assert_eq!(refused, Err(DiskError::Outstanding { found }));
    }
    assert!(Disk::new(vec![service], 2).is_ok());
}
