//! Sessions that can receive nothing now, and sessions that are closed, do not keep others from
//! receiving theirs.

use crate::filling_rig::{Rig, Says, cheetah, gaps_only};
use headtime_disk::{Dur, Fault, Kind, Outcome, Time};
use headtime_sched::{Algorithm, FillConfig, Rate, SessionId, TaskError, TaskEvent, TaskLimits, TaskRange, TaskSpec};

fn with_idle_time() -> FillConfig {
    FillConfig::new(Algorithm::AngleEpFrag)
}

/// Returns the sectors brought to a session.
fn brought(rig: &Rig, session: SessionId) -> u64 {
    let of = |e: &TaskEvent| e.brought().filter(|_| e.session() == session).map_or(0, |r| r.count);
    rig.events.iter().map(|(_, e)| of(e)).sum()
}

#[test]
fn a_client_that_takes_nothing_does_not_keep_an_idle_drive_from_others() {
    let mut rig = Rig::new(&cheetah(), Some(with_idle_time()), vec![]);
    let (lazy, other) = (rig.session(1), rig.session(1));
    rig.core.set_window(lazy, 5_000, rig.now).expect("it is open");
    rig.drain();
    rig.task(lazy, Kind::Read, &[(0, 20_000_000)], 64);
    rig.run(Dur::from_secs(5));
    assert!((5_000..6_000).contains(&brought(&rig, lazy)), "{}", brought(&rig, lazy));
    let far = rig.capacity() - 10_000;
    let task = rig.task(other, Kind::Read, &[(far, 6_400)], 64);
    rig.run(Dur::from_secs(3));
    assert!(rig.is_done(task), "{} of 6400", brought(&rig, other));
    // Once it takes its sectors it receives more.
    let before = brought(&rig, lazy);
    rig.core.taken(lazy, 5_000, rig.now).expect("it is open");
    rig.drain();
    rig.run(Dur::from_secs(3));
    assert!(brought(&rig, lazy) > before + 4_000);
}

#[test]
fn a_session_gets_its_rate_and_no_more_and_what_it_leaves_goes_to_others() {
    let mut rig = Rig::new(&cheetah(), Some(with_idle_time()), vec![]);
    let (slow, other) = (rig.session(1), rig.session(1));
    let all = rig.capacity();
    rig.task(slow, Kind::Read, &[(0, all / 2)], 64);
    rig.task(other, Kind::Read, &[(all / 2, all / 4)], 64);
    let a_second = |rig: &mut Rig| {
        let before = [slow, other].map(|s| brought(rig, s));
        rig.run(Dur::from_secs(60));
        [0, 1].map(|i| (brought(rig, [slow, other][i]) - before[i]) / 60)
    };
    let [free, _] = a_second(&mut rig);
    assert!(free > 6_000, "{free} sectors a second without a limit");
    for sectors in [2_000, 100] {
        rig.core.set_rate(slow, Rate::per_second(512.0 * sectors as f64), rig.now).expect("it is open");
        rig.drain();
        let [limited, rest] = a_second(&mut rig);
        let most = sectors * 63 / 60 + 8;
        assert!((sectors * 9 / 10..=most).contains(&limited), "{limited} sectors a second, limited to {sectors}");
        assert!(rest > 6_000, "{rest} for the other");
    }
    rig.core.set_rate(slow, None, rig.now).expect("it is open");
    rig.drain();
    assert!(a_second(&mut rig)[0] > 6_000);
    // A session that waits for its limit does not starve: nothing is fetched for it as foreground.
    rig.core.set_rate(slow, Rate::per_second(256.0), rig.now).expect("it is open");
    rig.drain();
    let before = brought(&rig, slow);
    rig.run(Dur::from_secs(400));
    assert!(brought(&rig, slow) - before < 1_000, "{}", brought(&rig, slow) - before);
}

#[test]
fn writes_count_against_a_rate_too() {
    let mut rig = Rig::new(&cheetah(), Some(with_idle_time()), vec![]);
    let session = rig.session(1);
    rig.core.set_rate(session, Rate::per_second(512_000.0), rig.now).expect("it is open");
    rig.drain();
    rig.task(session, Kind::Write, &[(0, 1_000_000)], 64);
    rig.run(Dur::from_secs(10));
    let written = brought(&rig, session);
    assert!((9_000..11_000).contains(&written), "{written} sectors in 10 s");
}

#[test]
fn promoted_work_does_not_wait_for_a_rate_and_delays_what_is_not_promoted() {
    for kind in [Kind::Read, Kind::Write] {
        let mut rig = Rig::new(&cheetah(), Some(with_idle_time()), vec![]);
        let session = rig.session(1);
        // A hundred sectors a second.
        rig.core.set_rate(session, Rate::per_second(51_200.0), rig.now).expect("it is open");
        rig.drain();
        rig.task(session, kind, &[(1_000_000, 1_000_000)], 64);
        rig.run(Dur::from_secs(1));
        let task = rig.task(session, kind, &[(0, 6_400)], 64);
        rig.core.promote(task, rig.now).expect("it exists");
        rig.drain();
        rig.run(Dur::from_secs(2));
        assert!(rig.is_done(task), "{kind:?}: {} of 6400", brought(&rig, session));
        let at_once = brought(&rig, session);
        rig.run(Dur::from_secs(60));
        assert_eq!(brought(&rig, session), at_once, "{kind:?}: it counts as 64 s");
        rig.run(Dur::from_secs(40));
        assert!((500..5_000).contains(&(brought(&rig, session) - at_once)), "{kind:?}: {}", brought(&rig, session));
    }
}

#[test]
fn a_session_suspended_before_it_had_a_task_does_not_keep_an_idle_drive_from_others() {
    let mut rig = Rig::new(&cheetah(), Some(with_idle_time()), vec![]);
    let (asleep, other) = (rig.session(1), rig.session(1));
    rig.core.suspend(asleep, rig.now).expect("it is open");
    rig.drain();
    let all = rig.capacity();
    rig.task(asleep, Kind::Read, &[(0, all)], 64);
    let task = rig.task(other, Kind::Read, &[(all - 10_000, 6_400)], 64);
    rig.run(Dur::from_secs(3));
    assert!(rig.is_done(task), "{} of 6400", brought(&rig, other));
    rig.core.resume(asleep, rig.now).expect("it is open");
    rig.drain();
    rig.run(Dur::from_secs(3));
    assert!(brought(&rig, asleep) > 10_000);
}

#[test]
fn an_aborted_promoted_write_is_not_sent_any_more() {
    let mut rig = Rig::new(&cheetah(), Some(gaps_only()), vec![]);
    let session = rig.session(1);
    // Enough requests that a promoted piece has to wait.
    for n in 0..30 {
        rig.submit(Kind::Read, 1_000_000 * n, 8);
    }
    let task = rig.task(session, Kind::Write, &[(30_000_000, 64)], 64);
    rig.core.promote(task, rig.now).expect("it is there");
    rig.drain();
    // It is handed out when the drive has room, and there are nearer ones.
    while !rig.events.iter().any(|(_, e)| matches!(e, TaskEvent::GetBuffer { .. })) {
        assert!(rig.step(Time::NEVER));
    }
    // With its data available it joins the requests when the drive has room again.
    let finished = rig.finished.len();
    while rig.finished.len() < finished + 2 {
        assert!(rig.step(Time::NEVER));
    }
    assert!(!rig.sent.iter().any(|s| s.1.kind == Kind::Write), "the piece waits among the requests");
    rig.core.abort(task, rig.now).expect("it is there");
    rig.drain();
    rig.finish();
    rig.run(Dur::from_secs(1));
    let written = rig.sent.iter().any(|s| s.1.kind == Kind::Write);
    assert!(!written, "the application has been told that its task is gone");
    assert_eq!(rig.finished.len(), 30);
    // The place is not blocked: a request for it is served.
    rig.submit(Kind::Write, 30_000_000, 64);
    rig.finish();
}

#[test]
fn a_promoted_read_already_delivered_by_another_request_is_not_sent_again() {
    let mut rig = Rig::new(&cheetah(), Some(gaps_only()), vec![]);
    let session = rig.session(1);
    // Two are at the drive when the task is promoted, the second with the very sectors that it
    // wants.
    rig.submit(Kind::Read, 1_000_000, 8);
    rig.submit(Kind::Read, 30_000_000, 64);
    let task = rig.task(session, Kind::Read, &[(30_000_000, 64)], 64);
    rig.core.promote(task, rig.now).expect("it is there");
    rig.drain();
    for n in 0..30 {
        rig.submit(Kind::Read, 29_000_000 + 70_000 * n, 8);
    }
    rig.finish();
    rig.run(Dur::from_secs(1));
    assert!(rig.is_done(task));
    let reads = rig.sent.iter().filter(|s| s.1.lbn == 30_000_000).count();
    assert_eq!(reads, 1);
}

#[test]
fn promoted_pieces_take_no_room_from_requests() {
    let mut rig = Rig::with_capacity(&cheetah(), Some(gaps_only()), vec![], 4);
    let session = rig.session(1);
    let all = rig.capacity();
    let task = rig.task(session, Kind::Read, &[(0, all)], 64);
    rig.core.promote(task, rig.now).expect("it is there");
    rig.drain();
    // Two at the drive may be pieces, too: four wait.
    for n in 0..4 {
        rig.submit(Kind::Read, 5_000_000 * n, 8);
    }
    rig.busy(100);
}

#[test]
fn writing_is_allowed_where_reading_failed() {
    let lbn = 30_000_000;
    let mut rig = Rig::new(&cheetah(), Some(with_idle_time()), vec![Fault::Unreadable { lbn, count: 1 }]);
    rig.submit(Kind::Read, lbn, 8);
    rig.finish();
    assert!(matches!(rig.finished[0].outcome, Outcome::MediaError { .. }));
    let session = rig.session(1);
    let task = rig.task(session, Kind::Write, &[(lbn - 64, 128)], 64);
    // Long before a straggler would be fetched.
    rig.run(Dur::from_secs(1));
    assert!(rig.is_done(task));
    assert!(!rig.events.iter().any(|(_, e)| matches!(e, TaskEvent::Failed { .. })));
}

#[test]
fn a_scratch_of_many_bad_sectors_does_not_stop_idle_work() {
    let scratch: Vec<Fault> = (0..60).map(|n| Fault::Unreadable { lbn: 1_000_000 + 8 * n, count: 1 }).collect();
    let mut rig = Rig::new(&cheetah(), Some(with_idle_time()), scratch);
    let session = rig.session(1);
    let range = [(999_000, 3_000)];
    let first = rig.task(session, Kind::Read, &range, 8);
    rig.run(Dur::from_secs(600));
    assert!(rig.is_done(first));
    // Now all of them are known. The good sectors of a second scan do not wait for the stragglers.
    let (before, task) = (brought(&rig, session), rig.task(session, Kind::Read, &range, 8));
    rig.run(Dur::from_secs(2));
    let got = brought(&rig, session) - before;
    assert!(got >= 3_000 - 60 * 8, "{got}");
    rig.run(Dur::from_secs(600));
    assert!(rig.is_done(task));
    let failed = rig.events.iter().filter(|(_, e)| matches!(e, TaskEvent::Failed { .. })).count();
    assert_eq!(failed, 2 * 60);
}

#[test]
fn a_task_ends_beside_one_that_always_has_something_to_do() {
    // A unit with a bad sector, which only a straggler reads, beside a scan that never ends.
    let lbn = 30_000_000;
    let mut rig = Rig::new(&cheetah(), Some(gaps_only()), vec![Fault::Unreadable { lbn, count: 1 }]);
    rig.submit(Kind::Read, lbn, 8);
    rig.finish();
    let (busy, other) = (rig.session(10), rig.session(1));
    let all = rig.capacity();
    rig.task(busy, Kind::Read, &[(0, all)], 64);
    let task = rig.task(other, Kind::Read, &[(lbn, 8)], 8);
    rig.busy(12_000);
    assert!(rig.is_done(task), "after {}", rig.now);
}

#[test]
fn a_writer_without_data_does_not_keep_a_task_from_its_end() {
    // The first wanted sectors on the disk can never be had.
    let mut rig = Rig::new(&cheetah(), Some(gaps_only()), vec![Fault::Unreadable { lbn: 30_000_000, count: 1 }]);
    rig.submit(Kind::Read, 30_000_000, 8);
    rig.finish();
    rig.says = Says::NotNow;
    let (writer, reader) = (rig.session(100), rig.session(1));
    rig.task(writer, Kind::Write, &[(0, 640)], 64);
    let task = rig.task(reader, Kind::Read, &[(30_000_000, 8)], 8);
    rig.busy(6_000);
    assert!(rig.is_done(task), "after {}", rig.now);
}

#[test]
fn gaps_go_to_reads_when_applications_have_no_data() {
    let run = |says| {
        let mut rig = Rig::new(&cheetah(), Some(gaps_only()), vec![]);
        let (writer, reader) = (rig.session(100), rig.session(1));
        let all = rig.capacity();
        rig.says = says;
        rig.task(writer, Kind::Write, &[(0, all)], 64);
        rig.task(reader, Kind::Read, &[(0, all)], 64);
        rig.busy(600);
        brought(&rig, reader)
    };
    // The reader wins one gap in a hundred; the others are its own when the writer has no data.
    let (beside, instead) = (run(Says::Yes), run(Says::NotNow));
    assert!(instead > 5 * beside.max(1_000), "{instead} sectors, and {beside} beside a writer with data");
}

#[test]
fn what_tasks_get_from_requests_is_not_counted_as_free() {
    let mut rig = Rig::new(&cheetah(), Some(gaps_only()), vec![]);
    let session = rig.session(1);
    // Exactly what the requests read is wanted, and nothing fits before the first.
    for n in 0..50u64 {
        rig.task(session, Kind::Read, &[(n * 700_000, 8)], 8);
    }
    for n in 0..50u64 {
        rig.submit(Kind::Read, n * 700_000, 8);
        rig.finish();
    }
    let report = rig.core.freeblock().expect("FILL is on");
    assert_eq!(brought(&rig, session), 50 * 8);
    assert!(report.by_foreground > 0 && report.by_foreground + report.sectors >= 50 * 8, "{report:?}");
    assert!(report.by_foreground <= 50 * 8);
}

#[test]
fn after_a_long_abort_the_regions_come_to_what_is_still_wanted() {
    let mut rig = Rig::new(&cheetah(), Some(gaps_only()), vec![]);
    let session = rig.session(1);
    let all = rig.capacity();
    // One over half of the disk, and one of a few units that stays, since its data is never
    // available.
    rig.says = Says::NotNow;
    let gone = rig.task(session, Kind::Read, &[(0, all / 2)], 64);
    let stays = rig.task(session, Kind::Write, &[(all - 640, 640)], 64);
    let before = rig.core.freeblock().expect("FILL is on").regions.total();
    rig.core.abort(gone, rig.now).expect("it is there");
    rig.drain();
    rig.busy(1_000);
    let after = rig.core.freeblock().expect("FILL is on").regions.total();
    assert!(after < before / 4, "{after} of {before} bytes");
    rig.says = Says::Yes;
    rig.busy(1_000);
    assert!(rig.is_done(stays));
}

#[test]
fn sessions_whose_regions_would_take_too_much_are_refused_and_others_are_not() {
    let limits = TaskLimits { region_bytes: 100_000, ..TaskLimits::default() };
    let mut rig = Rig::new(&cheetah(), Some(FillConfig { limits, ..gaps_only() }), vec![]);
    let all = rig.capacity();
    let spec =
        |count| TaskSpec { kind: Kind::Read, ranges: vec![TaskRange { lbn: 0, count }], blksize: 64, min_pickup: 64 };
    let mut refused = None;
    for n in 0..10 {
        let session = rig.session(1);
        if let Err(e) = rig.core.register(session, &spec(all), rig.now) {
            refused = Some((n, session, e));
            break;
        }
        rig.drain();
        assert!(rig.core.freeblock().expect("FILL is on").regions.total() <= 110_000);
    }
    let (n, session, e) = refused.expect("ten sessions that want all of the disk are too many");
    assert!(n >= 2, "{n}");
    assert_eq!(e, TaskError::Full { what: "bytes of regions", limit: 100_000 });
    rig.drain();
    assert!(rig.core.register(session, &spec(6_400), rig.now).is_ok(), "a little is possible");
    rig.drain();
}

#[test]
fn sessions_share_idle_time_by_their_priorities() {
    let mut rig = Rig::new(&cheetah(), Some(with_idle_time()), vec![]);
    let (much, little) = (rig.session(3), rig.session(1));
    // Neighbouring stripes, so that both have tracks of the same length.
    let stripes = |first: u64| (0..15).map(|n| ((2 * n + first) * 1_000_000, 1_000_000)).collect::<Vec<_>>();
    rig.task(much, Kind::Read, &stripes(0), 64);
    rig.task(little, Kind::Read, &stripes(1), 64);
    rig.run(Dur::from_secs(120));
    let ratio = brought(&rig, much) as f64 / brought(&rig, little) as f64;
    assert!((2.4..3.6).contains(&ratio), "{ratio}");
}

#[test]
fn a_session_that_gets_nothing_goes_first_in_idle_time() {
    let mut rig = Rig::new(&cheetah(), Some(with_idle_time()), vec![]);
    let (greedy, small) = (rig.session(1_000_000), rig.session(1));
    let all = rig.capacity();
    rig.task(greedy, Kind::Read, &[(0, all - 10_000)], 64);
    let task = rig.task(small, Kind::Read, &[(all - 6_400, 640)], 64);
    rig.run(Dur::from_secs(8));
    assert!(rig.is_done(task), "{} of 640", brought(&rig, small));
}

#[test]
fn a_task_in_large_units_does_not_make_others_commands_long() {
    let mut rig = Rig::new(&cheetah(), Some(with_idle_time()), vec![]);
    let session = rig.session(1);
    let large = rig.task(session, Kind::Read, &[(30_000_000, 32_768)], 32_768);
    rig.run(Dur::from_secs(5));
    assert!(rig.is_done(large));
    let from = rig.sent.len();
    rig.task(session, Kind::Read, &[(0, 2_000_000)], 64);
    rig.run(Dur::from_secs(5));
    let longest = rig.sent[from..].iter().map(|s| s.1.count).max().expect("idle time is used");
    assert!(longest <= 738, "{longest} sectors, more than a track");
}

/// A unit that only a straggler brings comes within ten seconds of a busy disk beside a session
/// that wants all of the disk and may receive nothing, because of `hold_off`.
fn a_straggler_comes_beside(hold_off: fn(&mut Rig, SessionId)) {
    let lbn = 30_000_000;
    let mut rig = Rig::new(&cheetah(), Some(gaps_only()), vec![Fault::Unreadable { lbn, count: 1 }]);
    rig.submit(Kind::Read, lbn, 8);
    rig.finish();
    let (nothing, other) = (rig.session(1), rig.session(1));
    hold_off(&mut rig, nothing);
    rig.drain();
    let all = rig.capacity();
    rig.task(nothing, Kind::Read, &[(0, all)], 64);
    // Until the window is exhausted.
    rig.busy(100);
    let (task, from) = (rig.task(other, Kind::Read, &[(lbn, 8)], 8), rig.now);
    while !rig.is_done(task) {
        rig.busy(10);
        assert!(rig.now.since(from) < Dur::from_secs(10), "it waits although nothing else is to be had");
    }
}

#[test]
fn stragglers_come_beside_a_client_that_takes_nothing() {
    a_straggler_comes_beside(|rig, session| rig.core.set_window(session, 640, rig.now).expect("it is open"));
}

#[test]
fn stragglers_come_beside_a_session_suspended_before_it_had_a_task() {
    a_straggler_comes_beside(|rig, session| rig.core.suspend(session, rig.now).expect("it is open"));
}

/// The wait counts from when something is wanted, however long nothing was.
#[test]
fn a_straggler_is_fetched_after_two_seconds_or_half_a_second_beside_a_queue() {
    let lbn = 30_000_000;
    for (outstanding, soonest, latest) in [(2, 2_000, 2_300), (6, 500, 800)] {
        let mut rig = Rig::new(&cheetah(), Some(gaps_only()), vec![Fault::Unreadable { lbn, count: 1 }]);
        rig.submit(Kind::Read, lbn, 8);
        rig.finish();
        let session = rig.session(1);
        for _ in 0..2 {
            let quiet = rig.now;
            while rig.now.since(quiet) < Dur::from_secs(5) {
                rig.busy_with(outstanding, 10);
            }
            let (task, from, sent) = (rig.task(session, Kind::Read, &[(lbn, 8)], 8), rig.now, rig.sent.len());
            while !rig.is_done(task) {
                rig.busy_with(outstanding, 1);
            }
            let straggler = rig.sent[sent..].iter().find(|s| s.1.lbn == lbn).expect("its task is done");
            let waited = straggler.0.since(from);
            let expected = Dur::from_ms(soonest)..Dur::from_ms(latest);
            assert!(expected.contains(&waited), "{outstanding} outstanding: after {waited}");
        }
    }
}
