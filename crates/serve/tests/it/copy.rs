//! Copies from one server to another in real time: the destination, its journal, and its end.

use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::time::Duration;

use headtime_disk::Fault;
use headtime_serve::apps::backup::Moment;
use headtime_serve::apps::copy::{self, Outcome, Plan, Report, Step};
use headtime_serve::apps::error::AppError;
use headtime_serve::apps::journal::Journal;
use headtime_serve::apps::link::look;
use headtime_serve::control::client::Session;
use headtime_serve::control::v1::change_request::Change;
use headtime_serve::control::v1::session_call::Call;
use headtime_serve::control::v1::session_event::Event;
use headtime_serve::control::v1::{ChangeRequest, Foreground, Kind, StatisticsRequest};
use tokio::sync::watch;

use crate::applying::{MANY_CYLINDERS, SECTOR, TEST_TIMEOUT, World};

/// A source, and a destination of the same size that has only zeros.
pub fn worlds(cylinders: u32) -> (World, World) {
    (World::new(cylinders, vec![]), empty(cylinders, vec![]))
}

pub fn empty(cylinders: u32, faults: Vec<Fault>) -> World {
    let w = World::new(cylinders, faults);
    let file = std::fs::OpenOptions::new().write(true).open(w.path("disk")).unwrap();
    file.write_all_at(&vec![0; (w.sectors * SECTOR) as usize], 0).unwrap();
    w
}

pub fn plan(from: &World, to: &World) -> Plan {
    Plan {
        job: from.job(),
        export: Some("data".into()),
        to: to.path("control").into(),
        to_export: Some("data".into()),
        live: false,
        unit: None,
        overwrite: false,
        journal: Journal::At(from.path("copied")),
        restart: false,
        verify: true,
    }
}

pub fn run(w: &World, plan: &Plan, see: &mut (dyn FnMut(Step) + Send)) -> Result<Outcome, AppError> {
    let run = copy::run(plan, see, w.stop.clone());
    w.runtime.block_on(async { tokio::time::timeout(TEST_TIMEOUT, run).await.expect("it comes to an end") })
}

pub fn complete(outcome: Result<Outcome, AppError>) -> Report {
    match outcome {
        Ok(Outcome::Complete(report)) => *report,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_copy_is_the_source_and_leaves_nothing_else_behind() {
    let (from, to) = worlds(2);
    let report = complete(run(&from, &plan(&from, &to), &mut |_| {}));
    assert!(report.is_good() && report.moment == Moment::PointInTime && report.wrong_bytes == Some(0), "{report:?}");
    assert_eq!(report.bytes, from.sectors * SECTOR);
    assert!(from.disk() == to.disk());
    assert!(!from.path("copied").exists() && !from.path("copied.sums").exists());
    // Now there is data, which only --overwrite replaces.
    let again = run(&from, &plan(&from, &to), &mut |_| {});
    assert!(matches!(again, Err(AppError::DestinationData(_))), "{again:?}");
    assert!(complete(run(&from, &Plan { overwrite: true, ..plan(&from, &to) }, &mut |_| {})).is_good());
}

#[test]
fn a_destination_that_cannot_take_the_copy_is_refused_before_it_is_written() {
    let (from, small) = (World::new(3, vec![]), empty(2, vec![]));
    let refused = run(&from, &plan(&from, &small), &mut |_| {}).unwrap_err();
    assert!(matches!(refused, AppError::DestinationSize { .. }), "{refused}");
    assert!(small.disk().iter().all(|&b| b == 0));
    let itself = run(&from, &Plan { overwrite: true, ..plan(&from, &from) }, &mut |_| {}).unwrap_err();
    assert!(matches!(itself, AppError::Destination { .. }), "{itself}");
}

#[test]
fn a_copy_is_of_the_moment_at_which_it_began_whatever_is_written_meanwhile() {
    let (from, to) = worlds(MANY_CYLINDERS);
    let before = from.disk();
    let (begun, seen) = watch::channel(false);
    let handle = from.runtime.handle().clone();
    let mut plan = plan(&from, &to);
    // So that there is something left to overwrite: three seconds' worth come at once.
    plan.job.max_mb_s = Some(from.sectors as f64 * SECTOR as f64 / 8e6);
    let report = std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let mut tell = |step: Step| {
                if matches!(step, Step::Copying(s) if s.done > 0) {
                    let _ = begun.send(true);
                }
            };
            complete(handle.block_on(copy::run(&plan, &mut tell, from.stop.clone())))
        });
        while !*seen.borrow() && !running.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!running.is_finished(), "there is something left to overwrite");
        // Its last quarter, from the end on.
        from.runtime.block_on(async {
            let (mut control, info) = look(from.path("control")).await.unwrap();
            let mut session = Session::open(&mut control, &info, "writer", 1, 1).await.unwrap();
            for i in 0..16 {
                let lbn = from.sectors - (i + 1) * from.sectors / 64;
                let data = vec![0xee; 8 * SECTOR as usize].into();
                let write = Foreground { token: i, kind: Kind::Write.into(), lbn, count: 8, fua: false, data };
                session.say(Call::Foreground(write)).await.unwrap();
                while !matches!(session.next().await.unwrap(), Event::Answered(a) if a.why_not.is_empty()) {}
            }
        });
        running.join().unwrap()
    });
    assert!(report.is_good(), "{report:?}");
    assert!(from.disk() != before && to.disk() == before);
}

#[test]
fn a_live_copy_continues_where_it_was_stopped_and_where_the_destination_ended() {
    let (from, mut to) = worlds(MANY_CYLINDERS);
    let live = Plan { live: true, ..plan(&from, &to) };
    // Stopped at a quarter, and interrupted by the end of the destination's server at a half.
    let (tell, stop) = watch::channel(false);
    let mut see = |step: Step| {
        if matches!(step, Step::Copying(s) if s.done > s.total / 4) {
            let _ = tell.send(true);
        }
    };
    let stopped = from.runtime.block_on(copy::run(&live, &mut see, stop)).unwrap();
    assert!(matches!(stopped, Outcome::Stopped(Some(_))), "{stopped:?}");
    let point_in_time = run(&from, &plan(&from, &to), &mut |_| {}).unwrap_err();
    assert!(matches!(point_in_time, AppError::Leftover { .. }), "{point_in_time}");
    let at = Mutex::new((u64::MAX, 0));
    let handle = from.runtime.handle().clone();
    let ended = std::thread::scope(|scope| {
        let (half, seen) = watch::channel(false);
        let (at, live, stop) = (&at, &live, from.stop.clone());
        let running = scope.spawn(move || {
            let mut see = |step: Step| match step {
                Step::Begins(_, done) => *at.lock().unwrap() = (done, done),
                Step::Copying(s) => {
                    at.lock().unwrap().1 = s.done;
                    _ = half.send(s.done > s.total / 2);
                }
                _ => {}
            };
            handle.block_on(copy::run(live, &mut see, stop))
        });
        while !*seen.borrow() && !running.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
        }
        to.stop();
        running.join().unwrap()
    });
    assert!(matches!(ended, Err(AppError::DestinationLost(_) | AppError::Gone)), "{ended:?}");
    let (first, second) = *at.lock().unwrap();
    let total = from.sectors * SECTOR;
    assert!(first > total / 8 && second > total / 2, "it went on: {first} {second} of {total}");
    to.start();
    let mut began = 0;
    let report = complete(run(&from, &live, &mut |step| {
        if let Step::Begins(_, done) = step {
            began = done;
        }
    }));
    assert!(began >= second, "what was done is not done again: {began} {second}");
    assert!(report.is_good() && report.wrong_bytes == Some(0), "{report:?}");
    assert!(from.disk() == to.disk());
}

#[test]
fn what_cannot_be_read_or_written_is_reported() {
    let from = World::new(2, vec![Fault::Unreadable { lbn: 1_000, count: 2 }]);
    let to = empty(2, vec![]);
    let live = Plan { live: true, ..plan(&from, &to) };
    let report = complete(run(&from, &live, &mut |_| {}));
    assert!(!report.is_good() && report.unreadable.iter().map(|p| p.count).sum::<u64>() == 2, "{report:?}");
    let (mut expected, range) = (from.disk(), 1_000 * SECTOR as usize..1_002 * SECTOR as usize);
    expected[range].fill(0);
    assert!(to.disk() == expected);
}

/// Blocks wait at the destination while its session is suspended, and another client writes there.
#[test]
fn what_another_client_wrote_stays_and_is_counted_also_after_a_stop() {
    let (from, to) = worlds(2);
    let mut live = Plan { live: true, verify: false, ..plan(&from, &to) };
    // Five seconds, but for what comes at once.
    live.job.max_mb_s = Some(from.sectors as f64 * SECTOR as f64 / 8e6);
    let (tell, stop) = watch::channel(false);
    let handle = from.runtime.handle().clone();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| handle.block_on(copy::run(&live, &mut |_| {}, stop)));
        from.runtime.block_on(async {
            let (mut control, info) = look(to.path("control")).await.unwrap();
            let session = loop {
                let asked = StatisticsRequest { every_ms: 0 };
                let snapshot = control.statistics(asked).await.unwrap().into_inner().message().await.unwrap().unwrap();
                if let Some(s) = snapshot.sessions.first() {
                    break s.session;
                }
                assert!(!running.is_finished(), "it has a session at the destination");
            };
            let suspended = |on| ChangeRequest { session, change: Some(Change::Suspended(on)) };
            control.change(suspended(true)).await.unwrap();
            loop {
                let asked = StatisticsRequest { every_ms: 0 };
                let snapshot = control.statistics(asked).await.unwrap().into_inner().message().await.unwrap().unwrap();
                if snapshot.sessions.iter().any(|s| s.wanted_bytes > 0) {
                    break;
                }
                assert!(!running.is_finished(), "something waits at the destination");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let mut other = Session::open(&mut control, &info, "other", 1, 1).await.unwrap();
            for lbn in (0..to.sectors).step_by(2048) {
                let count = (to.sectors - lbn).min(2048) as u32;
                let data = vec![0xee; count as usize * SECTOR as usize].into();
                let write = Foreground { token: lbn, kind: Kind::Write.into(), lbn, count, fua: false, data };
                other.say(Call::Foreground(write)).await.unwrap();
                while !matches!(other.next().await.unwrap(), Event::Answered(a) if a.why_not.is_empty()) {}
            }
            control.change(suspended(false)).await.unwrap();
        });
        // Some of what was lost is recorded now, and the rest when it goes on.
        tell.send(true).unwrap();
        running.join().unwrap().unwrap();
    });
    let report = complete(run(&from, &live, &mut |_| {}));
    let kept = to.disk().iter().filter(|&&b| b == 0xee).count();
    assert!(!report.is_good() && report.superseded_bytes > 0 && kept > 0, "{report:?}");
}
