//! The core with FILL in front of a virtual drive: what is inserted before requests, and the
//! results of both.

use crate::filling_rig::{Rig, Says, cheetah, gaps_only};
use headtime_disk::{Command, Dur, Fault, Kind, Outcome, Time};
use headtime_sched::{Algorithm, FillConfig, Placement, TaskEvent, TaskRange};

/// Submits requests, each with a wanted range in front of it, until one has been merged.
fn merged(rig: &mut Rig, kind: Kind) -> (u64, u32, u64) {
    let session = rig.session(1);
    for n in 0..200 {
        let lbn = 1_000_000 + n * 150_000;
        rig.task(session, kind, &[(lbn - 128, 128)], 16);
        let id = rig.submit(kind, lbn, 8);
        // Another, so that the head comes from elsewhere.
        rig.submit(Kind::Read, 30_000_000 - n * 100_000, 8);
        if let Some(&(_, c, free)) = rig.sent.iter().find(|s| s.2 > 0 && s.2 < s.1.count) {
            assert_eq!((c.kind, c.lbn + u64::from(c.count)), (kind, lbn + 8));
            return (id, free, lbn);
        }
        rig.finish();
    }
    panic!("nothing was merged");
}

#[test]
fn a_merged_read_is_split_back_exactly() {
    let mut rig = Rig::new(&cheetah(), Some(gaps_only()), vec![]);
    let (id, free, lbn) = merged(&mut rig, Kind::Read);
    let before = rig.events.len();
    rig.finish();
    let of: Vec<_> = rig.finished.iter().filter(|f| f.request == id).collect();
    assert_eq!((of.len(), of[0].outcome), (1, Outcome::Ok));
    let own = |e: &TaskEvent| match *e {
        TaskEvent::Delivered { range, .. } if range.end() == lbn => Some(range),
        _ => None,
    };
    let delivered: Vec<_> = rig.events[before..].iter().filter_map(|(_, e)| own(e)).collect();
    // Whole units, up to the request's first sector and no further.
    assert_eq!(delivered.len(), 1);
    assert_eq!((delivered[0].count, delivered[0].lbn), (u64::from(free), lbn - u64::from(free)));
    assert!(free.is_multiple_of(16));
}

#[test]
fn a_merged_write_is_written_with_both_data() {
    let mut rig = Rig::new(&cheetah(), Some(gaps_only()), vec![]);
    let (id, free, lbn) = merged(&mut rig, Kind::Write);
    let asked = rig.events.iter().any(|(_, e)| matches!(e, TaskEvent::GetBuffer { range, .. } if range.end() == lbn));
    assert!(asked);
    rig.finish();
    assert!(rig.finished.iter().any(|f| f.request == id && f.outcome == Outcome::Ok));
    let front = TaskRange { lbn: lbn - u64::from(free), count: u64::from(free) };
    let written = |e: &TaskEvent| matches!(e, TaskEvent::Written { range, .. } if *range == front);
    assert_eq!(rig.events.iter().filter(|(_, e)| written(e)).count(), 1);
}

/// The same merged read with one unreadable sector `before` its request's first.
fn with_a_bad_sector(before: i64) -> (Rig, u64, u64, u64) {
    let mut rig = Rig::new(&cheetah(), Some(gaps_only()), vec![]);
    let (_, _, lbn) = merged(&mut rig, Kind::Read);
    let bad = lbn.saturating_add_signed(-before);
    let mut rig = Rig::new(&cheetah(), Some(gaps_only()), vec![Fault::Unreadable { lbn: bad, count: 1 }]);
    let (id, _, same) = merged(&mut rig, Kind::Read);
    assert_eq!(same, lbn);
    rig.finish();
    (rig, id, lbn, bad)
}

#[test]
fn an_unreadable_sector_in_the_free_front_does_not_fail_the_request() {
    let (rig, id, lbn, bad) = with_a_bad_sector(1);
    let of: Vec<_> = rig.finished.iter().filter(|f| f.request == id).collect();
    assert_eq!((of.len(), of[0].outcome), (1, Outcome::Ok));
    // It is sent again, alone.
    let tries: Vec<_> = rig.sent.iter().filter(|s| s.1.lbn + u64::from(s.1.count) == lbn + 8).collect();
    assert_eq!((tries.len(), tries[1].1.lbn, tries[1].2), (2, lbn, 0));
    let failed: Vec<_> = rig.events.iter().filter(|(_, e)| matches!(e, TaskEvent::Failed { .. })).collect();
    let TaskEvent::Failed { range, .. } = failed[0].1 else { unreachable!() };
    assert_eq!((failed.len(), range.count), (1, 16));
    assert!((range.lbn..range.end()).contains(&bad));
}

#[test]
fn an_unreadable_sector_in_the_requests_own_part_fails_it() {
    let (rig, id, lbn, bad) = with_a_bad_sector(-3);
    let of: Vec<_> = rig.finished.iter().filter(|f| f.request == id).collect();
    assert_eq!((of.len(), of[0].outcome), (1, Outcome::MediaError { lbn: bad }));
    assert_eq!(bad, lbn + 3);
    assert_eq!(rig.sent.iter().filter(|s| s.1.lbn + u64::from(s.1.count) == lbn + 8).count(), 1);
    assert!(!rig.events.iter().any(|(_, e)| matches!(e, TaskEvent::Failed { .. })));
}

#[test]
fn a_write_that_was_refused_on_an_idle_disk_is_offered_again_without_anything_else_happening() {
    let mut rig = Rig::new(&cheetah(), Some(FillConfig::new(Algorithm::Headtime)), vec![]);
    let session = rig.session(1);
    rig.says = Says::NotNow;
    let task = rig.task(session, Kind::Write, &[(100_000, 64)], 64);
    // The head's position and the idle periods are unknown: a command is assumed to last for a move
    // and a revolution, and waits forty times as long.
    rig.run(Dur::from_secs(1));
    assert!(rig.events.iter().filter(|(_, e)| matches!(e, TaskEvent::GetBuffer { .. })).count() >= 2);
    rig.says = Says::Yes;
    rig.run(Dur::from_ms(300));
    assert!(rig.is_done(task));
}

#[test]
fn a_driver_learns_which_request_a_command_carries_behind_its_free_front() {
    let mut rig = Rig::new(&cheetah(), Some(gaps_only()), vec![]);
    rig.scan();
    let (mut merged, mut alone) = (0, 0);
    for _ in 0..600 {
        while rig.ids < rig.finished.len() as u64 + 2 {
            rig.submit_random();
        }
        // Commands still at the drive can be queried; only reads are wanted, so commands without a
        // request are all free.
        for (_, c, free) in rig.sent.clone().iter().rev().take(2) {
            let ended = rig.ended.iter().any(|e| e.1.id == c.id);
            match rig.core.request_of(c.id) {
                _ if ended => assert_eq!(rig.core.request_of(c.id), None),
                None => assert_eq!(*free, c.count),
                Some(_) if *free > 0 => merged += 1,
                Some(_) => alone += 1,
            }
        }
        assert!(rig.step(Time::NEVER));
    }
    assert!(merged > 20 && alone > 20, "{merged} merged, {alone} alone");
}

#[test]
fn units_that_were_refused_are_left_alone_for_a_while() {
    for says in [Says::NotNow, Says::Nothing] {
        let mut rig = Rig::new(&cheetah(), Some(gaps_only()), vec![]);
        let session = rig.session(1);
        let all = rig.capacity();
        rig.says = says;
        rig.task(session, Kind::Write, &[(0, all)], 64);
        rig.busy(300);
        let asked: Vec<_> = rig
            .events
            .iter()
            .filter_map(|(t, e)| if let TaskEvent::GetBuffer { range, .. } = e { Some((*t, *range)) } else { None })
            .collect();
        assert!(asked.len() > 100, "{}", asked.len());
        for (i, (t, range)) in asked.iter().enumerate() {
            // Not again within the back-off of 20 ms, and only a few at one instant.
            let again = asked[i + 1..].iter().take_while(|(u, _)| u.since(*t) < Dur::from_ms(20));
            assert!(again.clone().all(|(_, r)| !r.overlaps(range)), "{range:?} at {t}");
            // Four for a gap, and one straggler.
            assert!(again.filter(|(u, _)| u == t).count() <= 4);
        }
        assert_eq!(rig.free_commands(0), 0);
        // Once it is ready the work is done.
        rig.says = Says::Yes;
        rig.busy(300);
        assert!(rig.free_commands(0) > 50);
    }
}

#[test]
fn a_suspended_session_gets_nothing_and_continues_when_resumed() {
    let mut rig = Rig::new(&cheetah(), Some(FillConfig::new(Algorithm::AngleEpFrag)), vec![]);
    let session = rig.session(1);
    let all = rig.capacity();
    rig.task(session, Kind::Read, &[(0, all)], 64);
    rig.busy(100);
    let before = rig.delivered();
    assert!(before > 0);
    rig.core.suspend(session, rig.now).expect("it is open");
    rig.drain();
    rig.finish();
    let (before, sent) = (rig.delivered(), rig.sent.len());
    rig.busy(100);
    rig.finish();
    rig.run(Dur::from_secs(5));
    assert_eq!((rig.delivered(), rig.free_commands(sent)), (before, 0));
    rig.core.resume(session, rig.now).expect("it is open");
    rig.drain();
    rig.busy(100);
    assert!(rig.delivered() > before);
}

#[test]
fn a_client_that_never_takes_its_blocks_is_bounded_by_its_window() {
    let mut rig = Rig::new(&cheetah(), Some(FillConfig::new(Algorithm::AngleEpFrag)), vec![]);
    let session = rig.session(1);
    let all = rig.capacity();
    rig.core.set_window(session, 5_000, rig.now).expect("it is open");
    rig.drain();
    rig.task(session, Kind::Read, &[(0, all)], 64);
    rig.busy(500);
    rig.finish();
    rig.run(Dur::from_secs(2));
    assert!((5_000..5_064).contains(&rig.delivered()), "{}", rig.delivered());
    let sent = rig.sent.len();
    rig.busy(100);
    assert_eq!(rig.free_commands(sent), 0);
    rig.core.taken(session, 5_000, rig.now).expect("it is open");
    rig.drain();
    rig.busy(500);
    assert!(rig.delivered() > 9_000);
}

#[test]
fn a_promoted_task_is_done_on_a_busy_disk_and_without_idle_time() {
    for kind in [Kind::Read, Kind::Write] {
        let mut rig = Rig::new(&cheetah(), Some(gaps_only()), vec![]);
        let session = rig.session(1);
        let task = rig.task(session, kind, &[(1_000, 10_000), (20_000_000, 3_000)], 8);
        rig.core.promote(task, rig.now).expect("it exists");
        rig.drain();
        rig.busy(300);
        assert!(rig.is_done(task), "{kind:?}");
        // On an idle disk, and with an application that is not ready at first.
        let task = rig.task(session, kind, &[(5_000_000, 4_000)], 8);
        rig.finish();
        rig.says = Says::NotNow;
        rig.core.promote(task, rig.now).expect("it exists");
        rig.drain();
        rig.run(Dur::from_ms(500));
        assert_eq!(rig.is_done(task), kind == Kind::Read);
        rig.says = Says::Yes;
        rig.run(Dur::from_secs(5));
        assert!(rig.is_done(task), "{kind:?}");
    }
}

#[test]
fn a_hung_command_stops_filling_until_it_answers() {
    let hang = Fault::Hang { at: Time::ZERO + Dur::from_secs(1), takes: Dur::from_secs(3) };
    let mut rig = Rig::new(&cheetah(), Some(gaps_only()), vec![hang]);
    rig.scan();
    rig.busy(600);
    let gap = rig.ended.windows(2).find(|w| w[1].0.since(w[0].0) > Dur::from_secs(2)).expect("it hung");
    let (from, to) = (gap[0].0 + Dur::from_ms(300), gap[1].0);
    // One command was queued after the hung one before that was detected; nothing is sent until it
    // completes, and free work is not sent first.
    assert!(rig.sent.iter().all(|s| s.0 < from || s.0 >= to));
    assert!(rig.sent.iter().any(|s| s.0 > to && s.2 > 0), "it goes on afterwards");
}

#[test]
fn the_same_tellings_give_the_same_actions() {
    let run = |algorithm| {
        let mut rig = Rig::new(&cheetah(), Some(FillConfig::new(algorithm)), vec![]);
        rig.scan();
        rig.busy(400);
        rig.finish();
        rig.run(Dur::from_ms(300));
        (rig.sent, rig.events)
    };
    for algorithm in Algorithm::ALL {
        assert_eq!(run(algorithm), run(algorithm), "{}", algorithm.name());
    }
}

#[test]
fn on_an_exact_drive_filling_takes_no_time_from_the_requests() {
    // The same requests one after the other, each sent while the preceding one is at the drive, so
    // that ORDER has no choice.
    let run = |fill: Option<FillConfig>| {
        let filled = fill.is_some();
        let mut rig = Rig::new(&cheetah(), fill, vec![]);
        if filled {
            rig.scan();
        }
        rig.busy(2_000);
        (rig.now, rig.delivered())
    };
    let (alone, _) = run(None);
    for algorithm in Algorithm::ALL {
        let (beside, delivered) = run(Some(FillConfig { algorithm, ..gaps_only() }));
        let lost = beside.since(Time::ZERO).0 as i64 - alone.since(Time::ZERO).0 as i64;
        println!("{}: {lost} ns later in {alone}, {delivered} sectors", algorithm.name());
        assert!(delivered > 300_000);
        // An additional command at the drive can delay a completion by its overheads; none of 2,000
        // gaps may cost a revolution.
        assert!(lost * 1_000 < alone.since(Time::ZERO).0 as i64, "{lost} of {alone}");
    }
}

/// "One or more" requests are put into a gap (Thereska 2003 section 3.1): where a tenth is wanted,
/// one rarely fills it.
#[test]
fn every_algorithm_puts_several_commands_into_a_gap() {
    for algorithm in Algorithm::ALL {
        let mut rig = Rig::new(&cheetah(), Some(FillConfig { algorithm, ..gaps_only() }), vec![]);
        let session = rig.session(1);
        let tenth: Vec<_> = (0..rig.capacity() / 640).map(|i| (i * 640, 64)).collect();
        rig.task(session, Kind::Read, &tenth, 64);
        rig.busy(1_000);
        let own = |(_, c, free): &(Time, Command, u32)| *free == c.count;
        let several = rig.sent.windows(2).filter(|w| w.iter().all(own)).count();
        let name = algorithm.name();
        println!("{name}: {several} commands behind another in a gap, {} sectors", rig.delivered());
        assert!(several > 50, "{name}: {several}");
    }
}

#[test]
fn idle_work_begins_after_the_threshold_and_ends_when_a_request_comes() {
    let mut rig = Rig::new(&cheetah(), Some(FillConfig::new(Algorithm::AngleEpFrag)), vec![]);
    let session = rig.session(1);
    rig.submit(Kind::Write, 20_000_000, 8);
    rig.finish();
    let quiet = rig.now;
    rig.task(session, Kind::Read, &[(0, 2_000_000)], 64);
    rig.run(Dur::from_ms(100));
    let first = rig.sent.iter().find(|s| s.2 > 0).expect("idle time is used").0;
    assert_eq!(first.since(quiet), Dur::from_ms(20));
    let sent = rig.sent.len();
    rig.submit(Kind::Read, 25_000_000, 8);
    // The request follows what is at the drive, which is one command, and short.
    assert!(rig.sent.len() <= sent + 2);
    rig.finish();
    let wait = rig.finished[1].done.since(rig.finished[1].submitted);
    assert!(wait < Dur::from_ms(18), "{wait:?}");
    let (sent, quiet) = (rig.sent.len(), rig.now);
    rig.run(Dur::from_ms(100));
    // Short idle time precedes long; in it no task wants what was read ahead.
    let next = rig.sent[sent..].iter().find(|s| s.2 > 0).expect("idle time is used again").0;
    assert_eq!(next.since(quiet), Dur::from_ms(20));
}

#[test]
fn what_an_idle_drive_is_wanted_for_is_done_whatever_it_is() {
    // Units across tracks and zones, the last sector, a unit longer than a track, bad sectors, a
    // known bad one.
    let bad = [5_000_700, 10_000_000, 10_000_007];
    let faults = bad.iter().map(|&lbn| Fault::Unreadable { lbn, count: 1 }).collect();
    let mut rig = Rig::new(&cheetah(), Some(FillConfig::new(Algorithm::AngleEpFrag)), faults);
    rig.submit(Kind::Read, 10_000_000, 8);
    rig.finish();
    assert_eq!(rig.finished[0].outcome, Outcome::MediaError { lbn: 10_000_000 });
    let (session, all) = (rig.session(1), rig.capacity());
    let tasks = [
        rig.task(session, Kind::Read, &[(730, 20), (1_470, 10), (all - 5, 5)], 20),
        rig.task(session, Kind::Read, &[(5_000_000, 4_000)], 2_000),
        rig.task(session, Kind::Read, &[(9_999_990, 64)], 16),
        rig.task(session, Kind::Write, &[(3_000_000, 5_000), (all - 100, 90)], 7),
        rig.task(session, Kind::Write, &[(8_000_000, 3_000)], 3_000),
    ];
    rig.run(Dur::from_secs(60));
    for (i, task) in tasks.into_iter().enumerate() {
        assert!(rig.is_done(task), "task {i}");
    }
    let failed = rig.events.iter().filter(|(_, e)| matches!(e, TaskEvent::Failed { .. })).count();
    assert_eq!(failed, 3, "one unit of the one read task, two of the other");
    assert_eq!(rig.core.next_wakeup(), None);
}

#[test]
fn a_sector_that_was_put_right_is_read_for_free_again() {
    let lbn = 12_000_000;
    let mut rig =
        Rig::new(&cheetah(), Some(FillConfig::new(Algorithm::AngleEpFrag)), vec![Fault::Unreadable { lbn, count: 1 }]);
    rig.submit(Kind::Read, lbn, 8);
    rig.finish();
    rig.submit(Kind::Write, lbn, 8);
    rig.finish();
    let session = rig.session(1);
    let task = rig.task(session, Kind::Read, &[(lbn - 64, 128)], 64);
    // In the first idle time, not only as a straggler after seconds.
    rig.run(Dur::from_ms(200));
    assert!(rig.is_done(task));
    assert!(rig.finished[0].outcome != Outcome::Ok && rig.finished[1].outcome == Outcome::Ok);
}

#[test]
fn the_more_a_search_may_look_at_the_more_it_finds_and_requests_end_when_they_would() {
    let run = |algorithm, budget| {
        let mut rig = Rig::new(&cheetah(), Some(FillConfig { algorithm, budget, ..gaps_only() }), vec![]);
        rig.scan();
        rig.busy(1_000);
        (rig.now, rig.delivered(), rig.free_commands(0))
    };
    for algorithm in Algorithm::ALL {
        let name = algorithm.name();
        let (few, many) = (run(algorithm, (4, 0)), run(algorithm, (64, 400)));
        println!("{name}: {few:?}, {many:?}");
        assert!(few.1 > 0 && few.1 < many.1, "{name}");
        assert!(few.0.0.abs_diff(many.0.0) < 1_000_000, "{name}");
    }
}

#[test]
fn on_an_idle_drive_nothing_is_planned_for_the_time_that_searching_takes() {
    // Each request arrives at an empty queue; what passes under the head during the search is out
    // of reach.
    let run = |us| {
        let fill = FillConfig { search_time: Dur::from_us(us), ..gaps_only() };
        let mut rig = Rig::new(&cheetah(), Some(fill), vec![]);
        rig.scan();
        for _ in 0..400 {
            rig.submit_random();
            rig.finish();
        }
        (rig.now, rig.free_commands(0), rig.delivered())
    };
    let (none, some, much) = (run(0), run(1_000), run(4_000));
    println!("{none:?}, {some:?}, {much:?}");
    assert!(none.2 > some.2 * 11 / 10 && some.2 > 2 * much.2, "{none:?} {some:?} {much:?}");
    // Whatever is planned, the requests end when they would.
    assert!(none.0.since(much.0.min(none.0)) < Dur::from_ms(1) && much.0.since(none.0.min(much.0)) < Dur::from_ms(1));
}

#[test]
fn inside_the_drive_but_for_requests_tracks_means_that_for_every_algorithm() {
    let run = |algorithm, placement| {
        let fill = FillConfig { algorithm, placement, ..gaps_only() };
        let mut rig = Rig::new(&cheetah(), Some(fill), vec![]);
        rig.scan();
        rig.busy(300);
        rig
    };
    let track = |rig: &Rig, lbn| rig.core.model().geometry.track_of(lbn).map(|t| (t.cylinder, t.surface));
    for algorithm in Algorithm::ALL {
        // Commands of freeblock work alone on the track of the request before or after them.
        let on_requests_tracks = |rig: &Rig| {
            let own = |(_, c, free): &(Time, Command, u32)| *free == c.count;
            let last = |c: &Command| c.lbn + u64::from(c.count) - 1;
            let side_by_side = |w: &[(Time, Command, u32)]| {
                own(&w[0]) != own(&w[1]) && track(rig, last(&w[0].1)) == track(rig, w[1].1.lbn)
            };
            rig.sent.windows(2).filter(|w| side_by_side(w)).count()
        };
        let name = algorithm.name();
        let (inside, no_track) = (run(algorithm, Placement::Firmware), run(algorithm, Placement::FirmwareNoTrack));
        println!("{name}: {} and {}", on_requests_tracks(&inside), on_requests_tracks(&no_track));
        assert_eq!(on_requests_tracks(&no_track), 0, "{name}");
        assert!(on_requests_tracks(&inside) > 10, "{name}");
    }
}
