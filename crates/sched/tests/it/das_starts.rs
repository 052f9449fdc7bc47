//! A starting program beside streams, under a policy that raises it: it is served before requests
//! that can wait, and no later than mandatory ones otherwise.

use headtime_disk::{Dur, Kind, Time};

use crate::streams_rig::*;

/// Returns the owners of the requests that finished, in order, from the first request of `who`.
fn order_from(rig: &mut Rig, who: u32, at: Time) -> Vec<u32> {
    rig.run(at);
    let before = rig.finished.len();
    let lbn = rig.somewhere();
    rig.submit(who, Kind::Read, lbn, 8).expect("there is room");
    while !rig.finished.iter().any(|(o, _)| *o == who) {
        rig.run(rig.now + Dur::from_ms(1));
    }
    rig.finished[before..].iter().map(|(o, _)| *o).collect()
}

#[test]
fn a_starting_application_goes_before_streams_with_slack() {
    let drive = ultrastar();
    let first = |policy| {
        let mut behind = 0;
        for seed in 0..8 {
            let mut rig = Rig::new(Setting { policy, seed, ..setting(&drive, &drive) });
            rig.stream(1, 5, PERIOD, 1_000_000).expect("room");
            rig.stream(2, 20, PERIOD, 600_000).expect("room");
            // The requests that were at the drive, and the new one.
            behind += order_from(&mut rig, OTHERS, Time(20 * PERIOD.0 + 10_000_000)).len() - 1;
        }
        behind
    };
    // Without a policy, and with one that raises no application, position decides.
    let (raised, others) = (first("bfq+"), [first("none"), first("bfq")]);
    println!("{raised} behind, others {others:?}");
    assert!(raised <= 2 * 8 && others.iter().all(|&o| o > 4 * raised));
}

#[test]
fn where_streams_have_no_slack_mandatory_requests_make_room_for_a_starting_application() {
    let drive = ultrastar();
    let optional_before = |policy| {
        let mut optional = 0;
        for seed in 0..8 {
            let mut rig = Rig::new(Setting { policy, seed, ..setting(&drive, &drive) });
            rig.stream(1, 14, PERIOD, 1_000_000).expect("room");
            rig.stream(2, 10, PERIOD, 600_000).expect("room");
            let order = order_from(&mut rig, OTHERS, Time(20 * PERIOD.0));
            // Two were at the drive when it arrived.
            optional += order[2..].iter().filter(|&&o| o == 2).count();
        }
        optional
    };
    let (raised, others) = (optional_before("bfq+"), optional_before("bfq"));
    assert!(raised == 0 && others > 2 * 8, "{raised} and {others} optional requests before it");
}

/// An application that submitted `before` is done and waited for at `at`, when a stream's requests
/// arrive. Returns the commands at the drive then; the second one would follow when the head is
/// nearly free.
fn at_the_drive(rig: &mut Rig, at: Time, before: Dur, requests: u32) -> usize {
    rig.streaming.clear();
    rig.run(Time(at.0 - before.0));
    let id = rig.submit(OTHERS, Kind::Read, 5_000, 8).expect("there is room");
    while rig.asked.contains_key(&id) {
        step(rig);
    }
    assert!(rig.now < at && rig.core.outstanding() == 0, "it is done");
    rig.run(at);
    for _ in 0..requests {
        let lbn = rig.somewhere();
        rig.submit(1, Kind::Read, lbn, SECTORS).expect("there is room");
    }
    rig.core.outstanding()
}

#[test]
fn while_a_starting_application_thinks_streams_with_slack_wait() {
    let drive = ultrastar();
    let of = |policy| {
        let mut rig = Rig::new(Setting { policy, ..setting(&drive, &drive) });
        rig.stream(1, 5, PERIOD, 1_000_000).expect("room");
        at_the_drive(&mut rig, Time(20 * PERIOD.0), Dur::from_ms(8), 5)
    };
    // An established application is waited for, too, but not by streams.
    assert_eq!((of("bfq+"), of("bfq")), (0, 1));
}

#[test]
fn optional_requests_without_slack_go_while_a_starting_application_thinks() {
    let drive = ultrastar();
    let mut rig = Rig::new(Setting { policy: "bfq+", ..setting(&drive, &drive) });
    rig.stream(1, 20, PERIOD, 950_000).expect("room");
    // 131 ms are reserved, of which the last requests may take 50 more.
    let late = Time(20 * PERIOD.0 - 184_000_000);
    assert_eq!(at_the_drive(&mut rig, late, Dur::from_ms(16), 20), 1);
    assert_eq!(rig.core.standings()[0].tally.deferred, 0);
}

/// A program that reads `reads` times, one after the other, from shortly after the beginning of a
/// period; returns how long that takes.
fn start(policy: &str, seed: u64, reads: u32) -> (Dur, usize) {
    let drive = ultrastar();
    let mut rig = Rig::new(Setting { policy, seed, ..setting(&drive, &drive) });
    rig.stream(1, 5, PERIOD, 1_000_000).expect("room");
    rig.stream(2, 20, PERIOD, 600_000).expect("room");
    rig.run(Time(20 * PERIOD.0 + 10_000_000));
    let (from, before) = (rig.now, rig.finished.len());
    for _ in 0..reads {
        let lbn = rig.somewhere();
        let id = rig.submit(OTHERS, Kind::Read, lbn, 8).expect("there is room");
        while rig.asked.contains_key(&id) {
            step(&mut rig);
        }
    }
    (rig.now.since(from), rig.finished.len() - before - reads as usize)
}

#[test]
fn each_request_of_a_starting_application_goes_before_streams_with_slack() {
    let of = |policy: &str| {
        let each: Vec<(Dur, usize)> = (0..8).map(|seed| start(policy, seed, 10)).collect();
        println!("{policy}: {each:?}");
        each.iter().map(|e| e.1).sum::<usize>()
    };
    let (raised, others) = (of("bfq+"), of("bfq"));
    assert!(
        raised * 5 < others,
        "{raised} of streams' with a raised application, {others} with a policy that raises none"
    );
}

#[test]
fn a_starting_application_that_is_blocked_by_a_streams_request_does_not_delay_it() {
    let drive = ultrastar();
    let mut rig = Rig::new(Setting { policy: "bfq+", ..setting(&drive, &drive) });
    rig.stream(1, 5, PERIOD, 1_000_000).expect("room");
    rig.streaming.clear();
    rig.run(Time(20 * PERIOD.0));
    let id = rig.submit(OTHERS, Kind::Read, 5_000, 8).expect("there is room");
    while rig.asked.contains_key(&id) {
        step(&mut rig);
    }
    rig.submit(1, Kind::Write, 900_000, 64).expect("there is room");
    rig.submit(OTHERS, Kind::Read, 900_000, 8).expect("there is room");
    assert_eq!(rig.core.outstanding(), 1);
}
