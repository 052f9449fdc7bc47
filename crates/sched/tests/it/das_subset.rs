//! The rules of the dynamic active subset, one by one.

use headtime_disk::{Dur, Time};
use headtime_sched::internals::subset::{Event, Member, Rules, Sent, Subset};
use headtime_sched::streams::{Distribution, Exhausted, OpenError, Quality, Service, Stream};

fn ms(ms: u64) -> Time {
    Time(ms * 1_000_000)
}

fn span(ms: u64) -> Dur {
    Dur::from_ms(ms)
}

/// Requests that are likely to take `likely` ms, and `worst` ms at most.
fn service(likely: u64, worst: u64) -> Service {
    let times = Distribution::from_samples(&[span(likely)], span(1), span(worst)).expect("a sample");
    Service::new(128, span(worst), times)
}

const RULES: Rules = Rules {
    outstanding: 1,
    best_effort: Dur::from_ms(30),
    blocker: Dur::from_ms(30),
    exhausted: Exhausted::Skip,
    compensates: true,
    crossing: Dur::ZERO,
    crossing_likely: Dur::ZERO,
    moves_on: Dur::ZERO,
};

fn mandatory(requests: u32, period: u64) -> Stream {
    Stream::new(requests, span(period), Quality::MANDATORY, 128).expect("a stream")
}

fn optional(requests: u32, period: u64) -> Stream {
    Stream::new(requests, span(period), Quality::from_ppm(900_000).expect("a quality"), 128).expect("a stream")
}

fn ask(subset: &mut Subset, stream: u32, requests: u32, now: Time) -> Vec<Member> {
    let one = |_| {
        let member = subset.submit(stream, now);
        subset.ready(member);
        member
    };
    (0..requests).map(one).collect()
}

/// Sends the first of the subset, with the given duration.
fn serve(subset: &mut Subset, what: Sent, takes: u64, now: &mut Time) {
    subset.decide(*now);
    subset.sent(now.0, what, span(30), *now);
    let command = now.0;
    *now += span(takes);
    subset.completed(command, *now);
}

#[test]
fn the_papers_example_of_three_mandatory_requests_with_100_ms_to_go() {
    let mut subset = Subset::new(RULES);
    subset.open(1, mandatory(3, 500), &service(8, 30), None, ms(0)).expect("alone");
    let asked = ask(&mut subset, 1, 3, ms(0));
    let active = subset.decide(ms(400)).clone();
    assert_eq!((active.members, active.best_effort), (vec![asked[0]], false));
    assert_eq!(subset.spare(ms(400)).mandatory, span(10));
    // One of them takes 8 ms: 92 ms are left for two.
    let mut now = ms(400);
    serve(&mut subset, Sent::Stream(asked[0]), 8, &mut now);
    assert!(subset.decide(now).best_effort);
    assert_eq!(subset.spare(now).mandatory, span(32));
}

#[test]
fn what_is_at_the_drive_may_take_its_worst_case() {
    let mut subset = Subset::new(Rules { outstanding: 2, ..RULES });
    subset.open(1, mandatory(3, 500), &service(8, 30), None, ms(0)).expect("alone");
    ask(&mut subset, 1, 3, ms(0));
    assert!(subset.decide(ms(370)).best_effort);
    subset.sent(1, Sent::BestEffort, span(30), ms(370));
    let spare = subset.spare(ms(371));
    assert_eq!((spare.from, spare.mandatory, spare.all), (ms(400), span(10), span(10)));
    assert!(!subset.decide(ms(371)).best_effort);
    subset.completed(1, ms(375));
    assert!(subset.decide(ms(375)).best_effort);
    // FILL's commands, too.
    subset.sent(2, Sent::Fill, span(20), ms(375));
    assert!(!subset.decide(ms(375)).best_effort);
}

#[test]
fn a_period_without_mandatory_requests_left_ends_without_the_disk_being_idle() {
    let mut subset = Subset::new(RULES);
    subset.open(1, mandatory(15, 500), &service(8, 30), None, ms(0)).expect("alone");
    // By the end of the next period 15 times 30 ms are needed.
    assert!(subset.decide(ms(499)).best_effort);
    let mut full = Subset::new(RULES);
    full.open(1, mandatory(16, 500), &service(8, 30), None, ms(0)).expect("alone");
    assert!(full.decide(ms(490)).best_effort);
    assert!(!full.decide(ms(491)).best_effort);
    assert_eq!(full.next_wakeup(), Some(ms(500)));
}

#[test]
fn an_optional_stream_goes_until_its_reservation_is_used_up() {
    for exhausted in [Exhausted::Skip, Exhausted::AsBestEffort, Exhausted::BeforeBestEffort] {
        let mut subset = Subset::new(Rules { exhausted, ..RULES });
        subset.open(1, optional(5, 500), &service(8, 30), Some(span(20)), ms(0)).expect("alone");
        let asked = ask(&mut subset, 1, 5, ms(0));
        let mut now = ms(0);
        for _ in 0..3 {
            let active = subset.decide(now).clone();
            assert_eq!((active.members, active.best_effort), (vec![asked[0]], true));
            serve(&mut subset, Sent::Stream(asked[0]), 8, &mut now);
        }
        let active = subset.decide(now).clone();
        let (among, others) = match exhausted {
            Exhausted::Skip => (false, true),
            Exhausted::AsBestEffort => (true, true),
            Exhausted::BeforeBestEffort => (true, false),
        };
        assert_eq!((!active.members.is_empty(), active.best_effort), (among, others), "{exhausted:?}");
        // In the next period it has a reservation again, and the remaining request is late: it is
        // dispatched with the best-effort requests.
        let again = ask(&mut subset, 1, 1, ms(510))[0];
        let active = subset.decide(ms(510)).clone();
        assert_eq!((active.members, active.best_effort), (vec![again, asked[0]], true));
        assert_eq!(subset.tally(1).expect("it is at work").late, 2);
    }
}

#[test]
fn best_effort_leaves_what_optional_streams_can_take() {
    let mut subset = Subset::new(RULES);
    subset.open(1, optional(5, 500), &service(8, 30), Some(span(40)), ms(0)).expect("alone");
    let asked = ask(&mut subset, 1, 5, ms(0));
    // 40 ms and the last one's overrun of 30 ms; 30 ms for best effort.
    assert!(subset.decide(ms(400)).best_effort);
    assert!(!subset.decide(ms(401)).best_effort);
    // Two requests take at most 60 ms.
    let mut now = ms(401);
    (0..3).for_each(|_| serve(&mut subset, Sent::Stream(asked[0]), 1, &mut now));
    assert!(subset.decide(ms(410)).best_effort && !subset.decide(ms(411)).best_effort);
    // Late in its period an optional request that is not likely to finish is not begun.
    assert!(!subset.decide(ms(492)).members.is_empty());
    assert!(subset.decide(ms(493)).members.is_empty());
}

#[test]
fn a_stream_that_asks_for_more_waits_for_its_next_period() {
    let mut subset = Subset::new(RULES);
    subset.open(1, mandatory(2, 500), &service(8, 30), None, ms(0)).expect("alone");
    let asked = ask(&mut subset, 1, 3, ms(10));
    assert_eq!(asked.iter().map(|m| m.period).collect::<Vec<_>>(), [0, 0, 1]);
    let mut now = ms(10);
    serve(&mut subset, Sent::Stream(asked[0]), 8, &mut now);
    serve(&mut subset, Sent::Stream(asked[1]), 8, &mut now);
    assert!(subset.decide(now).members.is_empty());
    assert_eq!(subset.decide(ms(500)).members, [asked[2]]);
}

#[test]
fn a_mandatory_request_that_comes_too_late_for_its_period_has_the_next() {
    let mut subset = Subset::new(RULES);
    subset.open(1, mandatory(2, 500), &service(8, 30), None, ms(0)).expect("alone");
    assert_eq!(ask(&mut subset, 1, 2, ms(441)).iter().map(|m| m.period).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(subset.tally(1).expect("it is at work").deferred, 1);
}

#[test]
fn an_optional_request_that_comes_when_what_is_reserved_no_longer_fits_has_the_next_period() {
    let mut subset = Subset::new(RULES);
    subset.open(1, optional(10, 500), &service(8, 30), Some(span(60)), ms(0)).expect("alone");
    // One takes up to 30 ms of the reservation, and ten no more than all of it.
    let periods = |asked: Vec<Member>| asked.iter().map(|m| m.period).collect::<Vec<_>>();
    assert_eq!(periods(ask(&mut subset, 1, 5, ms(440))), [0; 5]);
    assert_eq!(periods(ask(&mut subset, 1, 5, ms(441))), [1; 5]);
    // The first of them is deferred; the others follow it.
    assert_eq!(subset.tally(1).expect("it is at work").deferred, 1);
    // What others have of the rest counts, too: 10 ms of theirs are reserved, and a mandatory one
    // is likely to take 8.
    let mut subset = Subset::new(RULES);
    subset.open(1, optional(10, 500), &service(8, 30), Some(span(60)), ms(0)).expect("alone");
    subset.open(2, optional(1, 500), &service(8, 30), Some(span(10)), ms(0)).expect("room");
    subset.open(3, mandatory(1, 500), &service(8, 30), None, ms(0)).expect("room");
    ask(&mut subset, 2, 1, ms(0));
    ask(&mut subset, 3, 1, ms(0));
    assert_eq!(periods(ask(&mut subset, 1, 2, ms(422))), [0; 2]);
    assert_eq!(periods(ask(&mut subset, 1, 1, ms(423))), [1]);
}

#[test]
fn commands_beyond_the_worst_case_and_late_requests_are_reported() {
    let mut subset = Subset::new(RULES);
    subset.open(1, mandatory(2, 100), &service(8, 30), None, ms(0)).expect("alone");
    let asked = ask(&mut subset, 1, 2, ms(0));
    let mut now = ms(0);
    serve(&mut subset, Sent::Stream(asked[0]), 30, &mut now);
    assert_eq!(subset.events().count(), 0);
    serve(&mut subset, Sent::Stream(asked[1]), 71, &mut now);
    let events: Vec<Event> = subset.events().collect();
    let command = ms(30).0;
    let overdue = Event::Overdue { command, took: span(71), worst: span(30) };
    assert_eq!(events, [overdue, Event::Late { command, member: asked[1] }]);
    let tally = subset.tally(1).expect("it is at work");
    assert_eq!((tally.asked, tally.in_time, tally.late), (2, 1, 1));
}

#[test]
fn a_mandatory_stream_begins_when_it_makes_no_other_late() {
    // By 500, 240 ms are needed and 90 more from 200 on, for which there is time; with 270 not
    // before 400.
    for (requests, begins) in [(8, 200), (9, 400)] {
        let mut subset = Subset::new(RULES);
        let first = mandatory(requests, 500);
        assert_eq!(subset.open(1, first, &service(8, 30), None, ms(0)), Ok(ms(0)));
        ask(&mut subset, 1, requests, ms(0));
        let again = subset.open(1, mandatory(1, 500), &service(8, 30), None, ms(0));
        assert_eq!(again, Err(OpenError::Exists { number: 1 }));
        assert_eq!(subset.open(2, mandatory(3, 200), &service(8, 30), None, ms(150)), Ok(ms(begins)));
        let refused = subset.open(3, mandatory(1, 200), &service(8, 30), None, ms(150));
        assert_eq!(refused, Err(OpenError::NoRoom { number: 3 }));
        assert_eq!(subset.open(4, optional(9, 300), &service(8, 30), Some(span(50)), ms(150)), Ok(ms(300)));
    }
}

#[test]
fn a_mandatory_stream_does_not_begin_with_a_period_for_which_the_drive_is_too_busy() {
    for (busy, begins) in [(false, 500), (true, 1_000)] {
        let mut subset = Subset::new(RULES);
        assert!(subset.decide(ms(499)).best_effort);
        if busy {
            subset.sent(1, Sent::BestEffort, span(30), ms(499));
        }
        let opened = subset.open(1, mandatory(16, 500), &service(8, 30), None, ms(500));
        assert_eq!(opened, Ok(ms(begins)), "the drive is busy: {busy}");
        let all = ask(&mut subset, 1, 16, ms(500));
        assert!(all.iter().all(|m| m.period == begins / 500));
    }
}

/// Requests of periods that begin now may arrive after it, and need their time.
#[test]
fn an_optional_stream_is_not_served_as_a_mandatory_one_when_requests_to_come_would_be_late() {
    for filled in [false, true] {
        let mut subset = Subset::new(RULES);
        subset.open(1, mandatory(2, 100), &service(8, 30), None, ms(0)).expect("alone");
        subset.open(2, optional(1, 100), &service(8, 30), Some(span(10)), ms(0)).expect("room");
        if filled {
            subset.decide(ms(99));
            subset.sent(1, Sent::Fill, span(30), ms(99));
        }
        // 90 ms of the 100, or of 71.
        assert_eq!(subset.serve_as_mandatory(2, ms(100)), !filled);
        let asked = ask(&mut subset, 1, 2, ms(100));
        assert!(asked.iter().all(|member| member.period == 1), "{asked:?}");
    }
}

/// Its pending requests count with their worst case from then on.
#[test]
fn an_optional_stream_is_served_as_a_mandatory_one_while_its_requests_wait_if_there_is_time_for_them() {
    for (at, may) in [(40, true), (41, false)] {
        let mut subset = Subset::new(RULES);
        subset.open(1, optional(3, 100), &service(8, 30), Some(span(40)), ms(0)).expect("alone");
        let late = ask(&mut subset, 1, 1, ms(0))[0];
        subset.decide(ms(100));
        let ready = ask(&mut subset, 1, 2, ms(100))[0];
        assert_eq!(subset.serve_as_mandatory(1, ms(100 + at)), may, "at {at} ms");
        if may {
            // Both are due at 200 ms, and the late one is not.
            assert_eq!(subset.decide(ms(140)).members, [ready]);
            let mut now = ms(140);
            (0..2).for_each(|_| serve(&mut subset, Sent::Stream(ready), 30, &mut now));
            assert!(subset.decide(now).members.contains(&late));
            assert_eq!(subset.tally(1).expect("it is at work").in_time, 2);
        }
    }
    // How long it waits is not known.
    let mut subset = Subset::new(RULES);
    subset.open(1, optional(3, 100), &service(8, 30), Some(span(40)), ms(0)).expect("alone");
    let waits = subset.submit(1, ms(0));
    subset.blocked(waits);
    assert!(!subset.serve_as_mandatory(1, ms(0)));
    subset.unblocked(waits, ms(1));
    assert!(subset.serve_as_mandatory(1, ms(1)));
}

/// The older request for which the first stream's waits is not eligible, since the second would be
/// late by it; so the first will be.
#[test]
fn a_stream_that_waits_for_more_than_it_said_keeps_no_other_back() {
    let mut subset = Subset::new(Rules { outstanding: 2, ..RULES });
    subset.open(1, mandatory(1, 350), &service(8, 30), None, ms(0)).expect("alone");
    subset.open(2, mandatory(3, 120), &service(8, 30), None, ms(240)).expect("room");
    let asked = ask(&mut subset, 2, 3, ms(240));
    for command in 0..2 {
        subset.decide(ms(240));
        subset.sent(command, Sent::Stream(asked[0]), Dur::ZERO, ms(240));
    }
    let waits = subset.submit(1, ms(241));
    subset.blocked(waits);
    assert_eq!((waits.period, asked[2].period), (0, 2));
    subset.completed(0, ms(270));
    assert!(!subset.inherits(waits, Sent::BestEffort, span(30), ms(270)));
    assert_eq!(subset.decide(ms(270)).members, [asked[2]]);
}

#[test]
#[should_panic(expected = "was not in the subset")]
fn nothing_goes_that_the_last_decision_left_out() {
    let mut subset = Subset::new(RULES);
    subset.open(1, mandatory(1, 100), &service(8, 30), None, ms(0)).expect("alone");
    let asked = ask(&mut subset, 1, 1, ms(0));
    subset.sent(1, Sent::Stream(asked[0]), span(30), ms(0));
}

/// A set that takes all of its period to the nanosecond, whose rates are rounded up: an older
/// request is eligible although the others have had all of theirs.
#[test]
fn what_a_request_waits_for_may_go_to_the_last_nanosecond() {
    let mut subset = Subset::new(Rules { best_effort: span(25), blocker: span(25), ..RULES });
    let waits = mandatory(1, 100).blocked_by(2).expect("a stream");
    subset.open(1, waits, &service(8, 10), None, ms(0)).expect("alone");
    subset.open(2, mandatory(1, 100), &service(8, 40), None, ms(0)).expect("room to the nanosecond");
    let waits = subset.submit(1, ms(100));
    subset.blocked(waits);
    let other = ask(&mut subset, 2, 1, ms(100))[0];
    let older = |subset: &mut Subset, command, now: Time| {
        assert!(subset.inherits(waits, Sent::BestEffort, span(25), now), "{now}");
        subset.sent(command, Sent::BestEffort, span(25), now);
        subset.completed(command, now + span(25));
    };
    older(&mut subset, 1, ms(100));
    assert_eq!(subset.decide(ms(125)).members, [other]);
    subset.sent(2, Sent::Stream(other), span(40), ms(125));
    subset.completed(2, ms(165));
    older(&mut subset, 3, ms(165));
    subset.unblocked(waits, ms(190));
    assert_eq!(subset.decide(ms(190)).members, [waits]);
    subset.sent(4, Sent::Stream(waits), span(10), ms(190));
    subset.completed(4, ms(200));
    assert_eq!(subset.events().count(), 0);
}

/// A stream that does not declare that its requests wait for older ones: these are dispatched at
/// its own cost, never at another's.
#[test]
fn what_is_waited_for_unsaid_goes_where_no_other_stream_can_be_late() {
    let mut subset = Subset::new(RULES);
    subset.open(1, mandatory(2, 100), &service(8, 30), None, ms(0)).expect("alone");
    let waits = subset.submit(1, ms(0));
    subset.blocked(waits);
    let may_go = ask(&mut subset, 1, 1, ms(0))[0];
    // One that waits for nothing has its time first. Then there is not time for both, but no
    // alternative.
    assert!(!subset.inherits(waits, Sent::BestEffort, span(30), ms(40)));
    let mut now = ms(40);
    serve(&mut subset, Sent::Stream(may_go), 8, &mut now);
    assert!(subset.inherits(waits, Sent::BestEffort, span(30), ms(60)));
    let now = ms(60);
    // The same for another stream, at its own deadline: 20 ms are to spare at 200.
    subset.open(2, mandatory(1, 100), &service(8, 30), None, now).expect("room");
    assert!(subset.inherits(waits, Sent::BestEffort, span(20), now));
    assert!(!subset.inherits(waits, Sent::BestEffort, span(21), now));
    let other = ask(&mut subset, 2, 1, ms(100))[0];
    assert!(!subset.inherits(waits, Sent::BestEffort, span(30), ms(150)));
    let mut now = ms(150);
    serve(&mut subset, Sent::Stream(other), 8, &mut now);
    // Its period is over: the same holds as long as its stream has nothing else to do.
    assert!(subset.inherits(waits, Sent::BestEffort, span(30), now));
    subset.unblocked(waits, now);
    assert_eq!(subset.decide(now).members, [waits]);
    ask(&mut subset, 1, 1, ms(200));
    assert!(!subset.decide(ms(250)).members.contains(&waits));
}
