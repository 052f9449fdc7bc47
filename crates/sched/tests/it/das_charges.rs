//! Charges of requests to the reservation of an optional stream.

use headtime_disk::{Dur, Time};
use headtime_sched::internals::subset::{Rules, Sent, Subset};
use headtime_sched::streams::{Distribution, Exhausted, Quality, Service, Stream};

fn ms(ms: u64) -> Time {
    Time(ms * 1_000_000)
}

fn span(ms: u64) -> Dur {
    Dur::from_ms(ms)
}

/// Requests take 8 ms, and 30 at most.
fn with(streams: &[(u32, u64)]) -> Subset {
    let longest = span(30);
    let rules = Rules {
        outstanding: 2,
        best_effort: longest,
        blocker: longest,
        exhausted: Exhausted::Skip,
        compensates: true,
        crossing: Dur::ZERO,
        crossing_likely: Dur::ZERO,
        moves_on: Dur::ZERO,
    };
    let times = Distribution::from_samples(&[span(8)], span(1), longest).expect("a sample");
    let service = Service::new(128, longest, times);
    let mut subset = Subset::new(rules);
    let quality = Quality::from_ppm(900_000).expect("a quality");
    for (number, &(requests, reserved)) in (1..).zip(streams) {
        let stream = Stream::new(requests, span(500), quality, 128).expect("a stream");
        subset.open(number, stream, &service, Some(span(reserved)), ms(0)).expect("room");
        for _ in 0..requests {
            let member = subset.submit(number, ms(0));
            subset.ready(member);
        }
    }
    subset
}

/// Returns the streams with eligible requests, by number, and whether best effort is eligible.
fn active(subset: &mut Subset, now: Time) -> (Vec<u32>, bool) {
    let active = subset.decide(now);
    (active.members.iter().map(|m| m.stream).collect(), active.best_effort)
}

/// Serves a request of the first stream, of the given duration, after what fills the gap before it.
fn serve(subset: &mut Subset, gap: u64, takes: u64, now: &mut Time) {
    let member = subset.decide(*now).members[0];
    subset.chosen(1, Sent::Stream(member), Dur::ZERO);
    if gap > 0 {
        subset.fills(1, span(30), *now);
    }
    subset.sends(1, 2, Dur::ZERO, *now);
    if gap > 0 {
        *now += span(gap);
        assert_eq!(subset.completed(1, *now), None);
    }
    *now += span(takes);
    assert_eq!(subset.completed(2, *now), Some(span(takes)));
}

#[test]
fn what_fills_the_gap_before_a_request_takes_its_streams_time() {
    // 12 ms are reserved: enough for the second, and not for a third, whether 8 ms pass before a
    // request or in it.
    for (gap, takes) in [(0, 8), (5, 3), (8, 0)] {
        let (mut subset, mut now) = (with(&[(3, 12)]), ms(0));
        serve(&mut subset, gap, takes, &mut now);
        assert_eq!(active(&mut subset, now), (vec![1], true));
        serve(&mut subset, gap, takes, &mut now);
        assert_eq!(active(&mut subset, now), (vec![], true), "{gap} ms before a request of {takes}");
    }
}

#[test]
fn what_filled_the_gap_before_a_request_that_was_withdrawn_costs_no_reservation_anything() {
    for comes_back_first in [true, false] {
        let (mut subset, mut now) = (with(&[(3, 12)]), ms(0));
        serve(&mut subset, 0, 3, &mut now);
        // In the next period time is reserved only for pending requests: best effort is eligible.
        assert!(subset.decide(now).best_effort);
        subset.chosen(7, Sent::BestEffort, span(30));
        subset.fills(8, span(30), now);
        if comes_back_first {
            subset.completed(8, now + span(8));
        }
        subset.withdrawn(7);
        if !comes_back_first {
            subset.completed(8, now + span(8));
        }
        now += span(8);
        serve(&mut subset, 0, 3, &mut now);
        assert_eq!(active(&mut subset, now), (vec![1], true), "6 of 12 ms are used");
    }
}

#[test]
fn a_stream_whose_requests_take_longer_than_usual_has_as_many_before_best_effort() {
    let (mut subset, mut now) = (with(&[(3, 12)]), ms(0));
    serve(&mut subset, 0, 20, &mut now);
    assert_eq!(active(&mut subset, now), (vec![1], false));
    serve(&mut subset, 0, 20, &mut now);
    assert_eq!(active(&mut subset, now), (vec![], true));
}

#[test]
fn it_has_no_time_that_another_has_reserved() {
    // After the first, which takes 20 ms, and another like it 472 ms remain: the other's last
    // request is carried through.
    for (reserved, may) in [(464, true), (465, false)] {
        let (mut subset, mut now) = (with(&[(3, 12), (100, reserved)]), ms(0));
        serve(&mut subset, 0, 20, &mut now);
        let expected = if may { vec![1, 2] } else { vec![2] };
        assert_eq!(active(&mut subset, now).0, expected, "{reserved} ms reserved");
    }
}
