//! Streams through the whole core, on a virtual drive: guarantees hold beside best effort of any
//! policy and a scan that fills gaps, on a drive that is worse than usual and within its worst
//! case.

use std::collections::BTreeSet;

use headtime_disk::{Command, Dur, Fault, Kind, Model, Outcome, Time, profile};
use headtime_sched::streams::{Exhausted, OpenStreamError, WorstCase};
use headtime_sched::{Finished, Order, Refused};
use headtime_testkit::profiles::between;

use crate::streams_rig::*;

#[test]
fn no_mandatory_request_is_late_beside_any_other_load() {
    let (belief, truth) = (ultrastar(), restless());
    let orders = [Order::Sptf, Order::Clook, Order::SptfSw(40), Order::SatfUf(Dur::from_ms(300)), Order::Fcfs];
    let (mut requests, mut streams_only, mut scanned) = (0, 0, 0);
    for (at, policy) in ["none", "bfq", "bfq+", "cfq", "none"].into_iter().enumerate() {
        let exhausted = [Exhausted::Skip, Exhausted::AsBestEffort, Exhausted::BeforeBestEffort][at % 3];
        let fill = at != 0;
        let order = orders[at];
        let mut rig = Rig::new(Setting { policy, order, fill, exhausted, ..setting(&belief, &truth) });
        // 450 of 500 ms in the worst case, and an optional stream beside them; one in periods of
        // its own.
        rig.stream(1, 10, PERIOD, 1_000_000).expect("room");
        rig.stream(2, 2, Dur::from_ms(250), 1_000_000).expect("room");
        assert_eq!(rig.stream(3, 5, PERIOD, 800_000).is_ok(), order.is_by_position(), "{order:?}");
        rig.best_effort = 10;
        if fill {
            rig.scan();
        }
        rig.run(Time::ZERO + Dur::from_secs(60));
        assert_eq!(rig.overdue, [], "{policy}: the drive is within its worst case");
        for owner in [1, 2] {
            let (all, in_time) = rig.had(owner);
            assert_eq!(all, in_time, "{policy}, {order:?}: stream {owner}");
            requests += all;
        }
        assert!(rig.others() > 500, "{policy}: {} best-effort requests in a minute", rig.others());
        streams_only += rig.core.stats().subset.streams_only;
        scanned += rig.scanned;
    }
    println!("{requests} mandatory requests; {streams_only} subsets of streams alone; {scanned} sectors scanned");
    assert!(requests > 5 * 60 * 25 && streams_only > 500 && scanned > 500_000);
}

#[test]
fn an_optional_stream_has_its_quality_and_best_effort_the_rest() {
    let drive = ultrastar();
    for (policy, exhausted) in
        [("none", Exhausted::Skip), ("bfq+", Exhausted::AsBestEffort), ("none", Exhausted::BeforeBestEffort)]
    {
        let mut rig = Rig::new(Setting { policy, exhausted, fill: true, ..setting(&drive, &drive) });
        rig.stream(1, 20, PERIOD, 950_000).expect("room");
        rig.stream(2, 10, PERIOD, 600_000).expect("room");
        rig.best_effort = 20;
        rig.scan();
        rig.run(Time::ZERO + Dur::from_secs(60));
        let standings = rig.core.standings();
        for (owner, asked) in [(1, 0.95), (2, 0.60)] {
            let (_, in_time) = rig.had(owner);
            let tally = standings.iter().find(|s| s.owner == owner).expect("it is at work").tally;
            // The current period is not over.
            let (quality, all) = (in_time as f64 / tally.asked as f64, tally.asked);
            println!("{policy}, {exhausted:?}: stream {owner} {quality:.3} of {all}, {tally:?}");
            assert!(quality >= asked - 0.01, "{policy}: stream {owner} has {quality}");
            assert_eq!(tally.in_time, in_time as u64);
            assert_eq!(tally.given_up > 0, exhausted == Exhausted::Skip && tally.late > 0);
        }
        assert!(rig.others() > 1_000, "{} best-effort requests", rig.others());
        let left: BTreeSet<u32> = rig.asked.values().copied().collect();
        assert!(rig.given_up.len() + rig.finished.len() + rig.asked.len() == rig.id as usize, "{left:?} unfinished");
    }
}

#[test]
fn an_optional_stream_has_its_quality_at_any_phase() {
    let drive = ultrastar();
    for eighth in 0..8 {
        let mut rig = Rig::new(Setting { exhausted: Exhausted::Skip, ..setting(&drive, &drive) });
        rig.stream(1, 10, PERIOD, 1_000_000).expect("room");
        rig.stream(2, 20, PERIOD, 950_000).expect("room");
        rig.streaming[1].next += Dur(PERIOD.0 * eighth / 8);
        rig.best_effort = 20;
        rig.run(Time::ZERO + Dur::from_secs(60));
        let (_, in_time) = rig.had(2);
        let quality = in_time as f64 / (rig.core.standings()[1].tally.asked - 40) as f64;
        println!("{eighth}/8 of a period behind the beginning: {quality:.3}");
        assert!(quality >= 0.94, "{eighth}: {quality}");
    }
}

#[test]
fn a_stream_that_asks_for_more_than_it_declared_gets_no_more_of_what_is_reserved() {
    let drive = ultrastar();
    let mut rig = Rig::new(setting(&drive, &drive));
    rig.stream(1, 5, PERIOD, 1_000_000).expect("room");
    rig.stream(2, 10, PERIOD, 1_000_000).expect("room");
    rig.streaming[0].more = 1;
    rig.best_effort = 10;
    rig.run(Time::ZERO + Dur::from_secs(20));
    let (all, in_time) = rig.had(2);
    assert_eq!(all, in_time);
    // It has five in each period, and excess requests are deferred to one that has room.
    let (had, in_time) = rig.had(1);
    let periods = all / 10;
    assert!(periods >= 38 && had == in_time && had <= 5 * (periods + 2), "{had} in {periods} periods");
    assert!(rig.asked.values().filter(|o| **o == 1).count() >= periods - 1);
}

#[test]
fn what_was_not_begun_in_its_period_is_given_up_if_that_is_the_policy_and_done_late_if_it_is_not() {
    let drive = ultrastar();
    // X states that requests take much less than they do: the reservation is too small for the
    // load.
    for (exhausted, given_up) in [(Exhausted::Skip, true), (Exhausted::AsBestEffort, false)] {
        let mean = Dur::from_ms(1);
        let mut rig = Rig::new(Setting { exhausted, mean, ..setting(&drive, &drive) });
        rig.stream(1, 200, PERIOD, 900_000).expect("room");
        rig.run(Time::ZERO + Dur::from_secs(10));
        let tally = rig.core.standings()[0].tally;
        assert!(tally.late > 100, "{tally:?}");
        assert_eq!(tally.given_up > 0, given_up, "{exhausted:?}: {tally:?}");
        assert_eq!(rig.given_up.len() as u64, tally.given_up);
        if !given_up {
            let (all, in_time) = rig.had(1);
            assert!(all > in_time, "some are done late");
        }
    }
}

/// The profile's times were measured under an order that selects by position.
#[test]
fn an_optional_stream_is_refused_under_an_order_that_does_not_select_by_position() {
    let drive = ultrastar();
    for (order, has_x) in [
        (Order::Fcfs, false),
        (Order::Clook, false),
        (Order::Sstf, false),
        (Order::SatfUf(Dur::from_ms(50)), false),
        (Order::SptfSw(20), false),
        (Order::SptfAhead, true),
        (Order::SptfJoint, true),
    ] {
        let mut rig = Rig::new(Setting { order, ..setting(&drive, &drive) });
        let optional = rig.stream(1, 2, PERIOD, 900_000);
        assert!(
            if has_x { optional.is_ok() } else { optional == Err(OpenStreamError::Order) },
            "{order:?}: {optional:?}"
        );
        rig.stream(2, 2, PERIOD, 1_000_000).expect("w holds under any order");
    }
}

#[test]
fn a_stream_that_ends_is_served_to_its_end_and_makes_room_for_another() {
    let drive = ultrastar();
    let mut rig = Rig::new(setting(&drive, &drive));
    rig.stream(1, 12, PERIOD, 1_000_000).expect("room");
    assert!(matches!(rig.stream(2, 12, PERIOD, 1_000_000), Err(OpenStreamError::Refused(_))));
    rig.run(Time::ZERO + Dur::from_ms(600));
    assert!(rig.core.close_stream(1, rig.now) && !rig.core.close_stream(1, rig.now));
    rig.drain();
    rig.streaming.clear();
    rig.run(Time::ZERO + Dur::from_secs(2));
    assert_eq!(rig.had(1), (24, 24));
    assert_eq!(rig.core.standings(), []);
    rig.stream(2, 12, PERIOD, 1_000_000).expect("there is room now");
    // The owner's requests are best effort from now on.
    let lbn = rig.somewhere();
    let late = rig.submit(1, Kind::Read, lbn, 8).expect("room");
    rig.run(Time::ZERO + Dur::from_secs(4));
    let f = rig.finished.iter().find(|(_, f)| f.request == late).expect("it is done");
    assert_eq!(f.1.due, None);
}

#[test]
fn what_is_larger_than_was_said_is_refused() {
    let drive = ultrastar();
    let mut rig = Rig::new(setting(&drive, &drive));
    rig.stream(1, 5, PERIOD, 1_000_000).expect("room");
    let refused = |count, most| Err(Refused::TooLarge { count, most });
    assert_eq!(rig.submit(1, Kind::Read, 0, SECTORS + 1), refused(SECTORS + 1, SECTORS));
    assert_eq!(rig.submit(OTHERS, Kind::Read, 0, 257), refused(257, 256));
    rig.submit(1, Kind::Read, 0, SECTORS).expect("room");
    rig.submit(OTHERS, Kind::Read, 0, 256).expect("room");
    rig.submit(1, Kind::Flush, 0, 0).expect("a flush belongs to no stream");
    rig.streaming.clear();
    rig.run(Time::ZERO + Dur::from_secs(1));
    assert_eq!(rig.finished.len(), 3);
}

#[test]
fn a_drive_that_takes_longer_than_its_worst_case_is_reported_with_the_command_that_showed_it() {
    let (belief, mut truth) = (ultrastar(), ultrastar());
    // Twice as many revolutions to settle as the profile states.
    (truth.noise.settle_retry_ppm, truth.noise.settle_retry_turns) = (700_000, 10);
    truth.noise.seek_max = Dur::from_ms(1);
    let mut rig = Rig::new(setting(&belief, &truth));
    rig.best_effort = 5;
    rig.stream(1, 5, PERIOD, 1_000_000).expect("room");
    rig.run(Time::ZERO + Dur::from_secs(60));
    let first = rig.overdue.first().expect("it shows");
    let Command { kind, lbn, count, .. } = first.command;
    assert!(first.took > first.worst && count == SECTORS && lbn < rig.drive.capacity());
    let said = first.to_string();
    let kind = if kind == Kind::Read { "read" } else { "write" };
    assert!(said.contains(&format!("for a {kind} of {SECTORS} sectors at {lbn}, expected ")), "{said}");
    // The core does not stop for it.
    assert!(rig.finished.len() > 3_000);
}

/// A stream's read waits for a best-effort write to the same place: it has no guarantee then, and
/// the disk does not stop.
#[test]
fn a_request_that_waits_for_an_older_one_does_not_stop_the_disk() {
    let drive = ultrastar();
    for exhausted in [Exhausted::Skip, Exhausted::AsBestEffort] {
        let mut rig = Rig::new(Setting { exhausted, ..setting(&drive, &drive) });
        // All of the time is reserved.
        rig.stream(1, 15, PERIOD, 1_000_000).expect("room");
        rig.stream(2, 1, PERIOD, 100_000).expect("room");
        rig.streaming.clear();
        rig.submit(OTHERS, Kind::Write, 5_000, 64).expect("room");
        rig.submit(OTHERS, Kind::Write, 5_000, 64).expect("room");
        for owner in [1, 2] {
            rig.submit(owner, Kind::Read, 5_000, 64).expect("room");
        }
        for _ in 0..13 {
            let lbn = rig.somewhere();
            rig.submit(1, Kind::Read, lbn, SECTORS).expect("room");
        }
        rig.run(Time::ZERO + Dur::from_secs(10));
        assert_eq!(rig.asked.len(), 0, "{exhausted:?}: {:?}", rig.asked);
        assert_eq!(rig.finished.len() + rig.given_up.len(), 17);
    }
}

/// After two reads on one track some drives read ahead before they begin a queued command, and
/// would begin one that arrives in that time instead.
#[test]
fn what_waits_at_the_drive_is_not_overtaken_by_what_comes_after_it() {
    for (name, order) in [("cheetah73lp", Order::Sptf), ("cheetah36es", Order::Clook)] {
        let mut drive = profile::builtin(name).expect("a built-in drive");
        assert!(drive.electronics.cache.same_track_prefetch_delays, "{name} has the habit");
        drive.noise.settle_retry_ppm = 300_000;
        let mut rig = Rig::new(Setting { order, ..setting(&drive, &drive) });
        let period = Dur::from_ms(90);
        rig.stream(1, 1, period, 1_000_000).expect("room");
        rig.streaming.clear();
        let (far, mut near, mut next) = (rig.drive.capacity() - 100_000, 0, Time::ZERO);
        while rig.now < Time::ZERO + Dur::from_secs(40) {
            if next <= rig.now {
                next += period;
                let lbn = far + between(&mut rig.rng, 0, 99_000);
                rig.submit(1, Kind::Read, lbn, SECTORS).expect("room");
            }
            // Twelve small reads go forward, two and more on a track.
            for _ in rig.asked.values().filter(|o| **o >= OTHERS).count()..12 {
                near = (near + 20) % (far / 2);
                rig.submit(OTHERS, Kind::Read, near, 8).expect("room");
            }
            let soonest = [rig.drive.next_event(), rig.core.next_wakeup(), Some(next)];
            rig.now = soonest.into_iter().flatten().min().expect("something happens").max(rig.now);
            while let Some(c) = rig.drive.advance(rig.now) {
                rig.core.complete(c.id, c.outcome, rig.now);
                if next > rig.now {
                    rig.drain();
                }
            }
            if next > rig.now {
                rig.core.tick(rig.now);
                rig.drain();
            }
        }
        let (all, in_time) = rig.had(1);
        let mine = rig.finished.iter().filter(|(owner, _)| *owner == 1);
        let longest = mine.map(|(_, f)| f.done.since(f.dispatched)).max().expect("some are done");
        let model = Model::new(&drive).expect("a drive that works");
        let w = |sectors| WorstCase::of(&drive, &model, sectors).expect("a worst case").total();
        println!("{name}: {in_time} of {all} in time, {longest} at the drive at most, {} others", rig.others());
        assert!(all > 400 && all == in_time && rig.overdue.is_empty());
        assert!(longest <= w(SECTORS) + w(8), "{longest} at the drive");
    }
}

/// A background front of a request fails: the request is sent again, and its stream is charged
/// correctly.
#[test]
fn a_stream_has_its_requests_although_what_was_put_before_them_fails() {
    let drive = ultrastar();
    let faults = (0..4_000).map(|i| Fault::Unreadable { lbn: i * 1_024 + 900, count: 1 }).collect();
    let mut rig = Rig::new(Setting { fill: true, faults, ..setting(&drive, &drive) });
    rig.stream(1, 5, PERIOD, 1_000_000).expect("room");
    rig.streaming.clear();
    rig.scan();
    // Reads after bad sectors, on tracks that the scan wants.
    for period in 1..60u64 {
        rig.run(Time(PERIOD.0 * period));
        for _ in 0..5 {
            let lbn = between(&mut rig.rng, 0, 3_900) * 1_024 + 910;
            rig.submit(1, Kind::Read, lbn, 64).expect("room");
        }
    }
    rig.run(Time(PERIOD.0 * 61));
    let (all, in_time) = rig.had(1);
    assert_eq!((all, in_time), (295, 295));
    assert!(rig.finished.iter().all(|(_, f)| f.outcome == Outcome::Ok), "no request reads a bad sector");
    let tally = rig.core.standings()[0].tally;
    assert_eq!((tally.in_time, tally.late), (295, 0));
}

/// Returns how many requests in a row an application has served, of two that read sequentially
/// without end.
fn in_a_row(policy: &str, streams: bool) -> f64 {
    let drive = ultrastar();
    let mut rig = Rig::new(Setting { policy, ..setting(&drive, &drive) });
    rig.stream(1, 5, PERIOD, 1_000_000).expect("room");
    rig.stream(2, 30, PERIOD, 600_000).expect("room");
    if !streams {
        rig.streaming.clear();
    }
    let mut next = [0, 20_000_000];
    while rig.now < Time::ZERO + Dur::from_secs(30) {
        for (at, lbn) in next.iter_mut().enumerate() {
            let owner = OTHERS + at as u32;
            for _ in rig.asked.values().filter(|o| **o == owner).count()..4 {
                rig.submit(owner, Kind::Read, *lbn, SECTORS).expect("there is room");
                *lbn += u64::from(SECTORS);
            }
        }
        step(&mut rig);
    }
    let owners: Vec<u32> = rig.finished.iter().map(|f| f.0).filter(|o| *o >= OTHERS).collect();
    let rows = owners.windows(2).filter(|w| w[0] != w[1]).count();
    owners.len() as f64 / rows.max(1) as f64
}

#[test]
fn a_slice_has_as_many_requests_beside_streams_as_without() {
    for policy in ["cfq", "bfq"] {
        let (alone, beside) = (in_a_row(policy, false), in_a_row(policy, true));
        assert!((0.8..1.2).contains(&(beside / alone)), "{policy}: {alone} alone, {beside} beside streams");
    }
}

#[test]
fn what_is_there_when_its_period_begins_is_not_put_off() {
    let drive = ultrastar();
    for requests in [20, 45] {
        let mut rig = Rig::new(Setting { exhausted: Exhausted::Skip, ..setting(&drive, &drive) });
        // 435 of 500 ms in the worst case, 100 at their real times: an optional stream is admitted
        // beside that.
        rig.stream(1, 14, PERIOD, 1_000_000).expect("room");
        rig.stream(2, requests, PERIOD, 950_000).expect("room");
        rig.best_effort = 5;
        rig.run(Time(40 * PERIOD.0));
        let its = |f: &Finished| f.submitted.0 / PERIOD.0;
        let kept = rig.finished.iter().filter(|(o, f)| *o == 2 && f.done.0 <= (its(f) + 1) * PERIOD.0).count();
        let standing = rig.core.standings()[1];
        println!("{kept} of {} in the period that they were there for, {standing:?}", 40 * requests);
        assert!(kept * 100 >= 94 * 40 * requests as usize);
    }
}
