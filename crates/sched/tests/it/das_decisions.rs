//! The dynamic active subset against a walk over all requests, decision by decision.

use std::collections::BTreeSet;

use headtime_disk::{Dur, Time};
use headtime_sched::internals::subset::{Member, Rules, Sent, Subset};
use headtime_sched::streams::{Distribution, Exhausted, Quality, Service, Stream};
use headtime_testkit::das::Walk;
use headtime_testkit::profiles::{between, rng};

/// Periods whose ratios to worst cases are exact in 2^-32, so that both round the same.
const UNIT: u64 = 1 << 25;

#[test]
fn every_decision_is_that_of_walking_all_requests() {
    let (mut decisions, mut partial, mut alone) = (0u64, 0u64, 0u64);
    let (mut inherited, mut for_optional, mut flips, mut raised) = ([0u64; 2], 0, 0, [0u64; 2]);
    for seed in 0..800 {
        let rng = &mut rng(seed);
        let policy = [Exhausted::Skip, Exhausted::AsBestEffort, Exhausted::BeforeBestEffort][(seed % 3) as usize];
        let rules = Rules {
            outstanding: between(rng, 1, 3) as u32,
            best_effort: Dur(UNIT * between(rng, 1, 3)),
            blocker: Dur(UNIT * between(rng, 1, 2)),
            exhausted: policy,
            compensates: seed % 4 > 0,
            crossing: Dur(UNIT * between(rng, 1, 3)),
            crossing_likely: Dur(UNIT * between(rng, 0, 2)),
            moves_on: Dur(between(rng, 0, 1) * between(rng, 0, UNIT)),
        };
        let (mut subset, mut walk) = (Subset::new(rules), Walk::new(rules));
        walk.crossing = between(rng, 0, 3) as u32;
        subset.set_crossing(walk.crossing);
        let mut now = Time(between(rng, 0, UNIT));
        let mut streams = 0u32;
        // Which of them are served as mandatory ones, and which are mandatory by declaration, one
        // bit each.
        let (mut mandatory, mut asked) = (0u32, 0u32);
        let mut all: Vec<Member> = Vec::new();
        let mut blocked: Vec<usize> = Vec::new();
        let mut waiting: BTreeSet<usize> = BTreeSet::new();
        let mut drive: Vec<(u64, Time)> = Vec::new();
        let mut held = false;
        let one_period = between(rng, 0, 1) == 0;
        let period = 4u64 << between(rng, 0, 3);
        for step in 0..250u64 {
            now += Dur(between(rng, 0, 3) * between(rng, 0, UNIT));
            // Occasionally at the very beginning of periods.
            if between(rng, 0, 7) == 0 {
                now = Time(now.0.next_multiple_of(4 * UNIT));
            }
            if streams < 5 && between(rng, 0, 9) == 0 {
                let worst = between(rng, 1, 3);
                let samples = [(); 3].map(|()| Dur(UNIT * between(rng, 1, worst)));
                let times = Distribution::from_samples(&samples, Dur(UNIT), Dur(UNIT * worst)).expect("a sample");
                let service = Service::new(128, Dur(UNIT * worst), times);
                let period = Dur(UNIT * if one_period { period } else { 4 << between(rng, 0, 3) });
                let hard = between(rng, 0, 1) == 0;
                let q = Quality::from_ppm(if hard { 1_000_000 } else { 900_000 }).expect("a quality");
                let stream = Stream::new(between(rng, 1, 5) as u32, period, q, 128).expect("a stream");
                // Some are initially served as mandatory ones.
                let reservation = (!hard && between(rng, 0, 2) > 0).then(|| Dur(between(rng, 1, period.0 / 2)));
                let older = between(rng, 0, 2) as u32;
                let stream = stream.blocked_by(older).expect("a stream");
                if let Ok(begins) = subset.open(streams, stream, &service, reservation, now) {
                    walk.open(stream, (service.worst, service.likely(), service.times.most()), reservation, begins);
                    mandatory |= u32::from(reservation.is_none()) << streams;
                    asked |= u32::from(hard) << streams;
                    streams += 1;
                }
            }
            // One of those no longer is.
            if let Some(number) = (0..streams).find(|n| (mandatory & !asked) >> n & 1 == 1 && between(rng, 0, 19) == 0)
            {
                let reservation = Dur(between(rng, 1, UNIT * 4));
                subset.set_reservations([(number, reservation)]);
                walk.set_reservation(number as usize, reservation);
                mandatory &= !(1 << number);
                flips += 1;
            }
            // One that has a reservation is served as a mandatory one, if that harms no other.
            if let Some(number) = (0..streams).find(|n| mandatory >> n & 1 == 0 && between(rng, 0, 19) == 0) {
                let may = subset.serve_as_mandatory(number, now);
                assert_eq!(may, walk.serve_as_mandatory(number as usize, now), "seed {seed}, step {step}: {subset:#?}");
                mandatory |= u32::from(may) << number;
                raised[usize::from(may)] += 1;
            }
            if streams > 0 && between(rng, 0, 1) == 0 {
                for _ in 0..between(rng, 1, 3) {
                    let stream = between(rng, 0, u64::from(streams) - 1);
                    let waits = between(rng, 0, 7) == 0;
                    let member = subset.submit(stream as u32, now);
                    let period = walk.submit(stream as usize, waits, now);
                    assert_eq!(member.period, period, "seed {seed}, step {step}");
                    if waits {
                        subset.blocked(member);
                        blocked.push(all.len());
                    } else {
                        subset.ready(member);
                        waiting.insert(all.len());
                    }
                    all.push(member);
                }
            }
            if !blocked.is_empty() && between(rng, 0, 3) == 0 {
                let request = blocked.remove(0);
                subset.unblocked(all[request], now);
                walk.ready(request, now);
                waiting.insert(request);
            }
            while let Some(&(command, _)) = drive.first().filter(|c| c.1 <= now) {
                drive.remove(0);
                subset.completed(command, now);
                walk.completed(command, now);
            }
            let number = |drive: &Vec<(u64, Time)>| step * 10 + drive.len() as u64;
            // Occasionally a drive is slower than it can be.
            let goes = |drive: &mut Vec<(u64, Time)>, rng: &mut _| {
                let takes = Dur(between(rng, 1, UNIT * 3));
                let begins = drive.last().map_or(now, |c| c.1.max(now));
                drive.push((number(drive), begins + takes));
            };
            if held && drive.len() < rules.outstanding as usize {
                if between(rng, 0, 2) == 0 {
                    let worst = Dur(between(rng, 1, UNIT * 2));
                    subset.sent(number(&drive), Sent::Fill, worst, now);
                    walk.sent(number(&drive), None, worst, now);
                } else {
                    subset.sends(9, number(&drive), Dur::ZERO, now);
                    walk.send_held(number(&drive), now);
                    held = false;
                }
                goes(&mut drive, rng);
            }
            // The older request of the request that has waited longest is dispatched, or might be.
            let first = blocked.first().copied();
            if let Some(waits) = first.filter(|_| drive.len() < rules.outstanding as usize && !held) {
                let of_stream = waiting.first().copied().filter(|_| between(rng, 0, 1) == 0);
                let what = of_stream.map_or(Sent::BestEffort, |r| Sent::Stream(all[r]));
                let worst = Dur(between(rng, 1, rules.best_effort.0));
                let may = subset.inherits(all[waits], what, worst, now);
                assert_eq!(may, walk.inherits(waits, of_stream, worst, now), "seed {seed}, step {step}: {subset:#?}");
                inherited[usize::from(may)] += 1;
                for_optional += u64::from(may && mandatory >> all[waits].stream & 1 == 0);
                match between(rng, 0, 7) {
                    // Not yet, after all; other requests may arrive before the next decision.
                    0 => continue,
                    _ if !may => {}
                    1..=4 => {
                        subset.chosen(9, what, worst);
                        walk.hold(of_stream, worst, now);
                        held = of_stream.is_some() || between(rng, 0, 3) == 0;
                        of_stream.iter().for_each(|r| _ = waiting.remove(r));
                        if !held {
                            subset.withdrawn(9);
                            walk.withdraw();
                        }
                    }
                    _ => {
                        subset.sent(number(&drive), what, worst, now);
                        walk.sent(number(&drive), of_stream, worst, now);
                        goes(&mut drive, rng);
                        of_stream.iter().for_each(|r| _ = waiting.remove(r));
                    }
                }
            }
            while drive.len() < rules.outstanding as usize && !held {
                let best_effort = Dur(between(rng, 1, rules.best_effort.0));
                let active = subset.decide_for(best_effort, now).clone();
                let members: BTreeSet<Member> = active.members.iter().copied().collect();
                let chosen: Vec<usize> = waiting.iter().copied().filter(|&r| members.contains(&all[r])).collect();
                let expected = walk.decide(best_effort, now);
                assert_eq!(
                    (chosen.clone(), active.best_effort),
                    expected,
                    "seed {seed}, step {step}, {now}: {subset:#?}"
                );
                decisions += 1;
                partial += u64::from(chosen.len() < waiting.len());
                alone += u64::from(!active.best_effort);
                let n = chosen.len() as u64 + u64::from(active.best_effort);
                if n == 0 || between(rng, 0, 2) == 0 {
                    break;
                }
                let request = chosen.get(between(rng, 0, n - 1) as usize).copied();
                let (what, worst) = match request {
                    Some(r) => (Sent::Stream(all[r]), Dur::ZERO),
                    None => (Sent::BestEffort, Dur(between(rng, 1, best_effort.0))),
                };
                if let Some(r) = request {
                    waiting.remove(&r);
                }
                // It is dispatched at once, or something is put before it.
                held = between(rng, 0, 4) == 0;
                if held {
                    subset.chosen(9, what, worst);
                    walk.hold(request, worst, now);
                    break;
                }
                subset.sent(number(&drive), what, worst, now);
                walk.sent(number(&drive), request, worst, now);
                goes(&mut drive, rng);
            }
        }
    }
    println!("{decisions} decisions, {partial} without some of what waits, {alone} without best effort");
    println!(
        "{} times something was to inherit a deadline and might not, {} times it might",
        inherited[0], inherited[1]
    );
    assert!(decisions > 20_000 && partial > 2_000 && alone > 2_000 && inherited.iter().all(|&n| n > 100));
    assert!(raised.iter().all(|&n| n > 50), "{raised:?}");
    assert!(for_optional > 100 && flips > 50, "{for_optional} and {flips}");
}
