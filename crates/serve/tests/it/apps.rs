//! The common behaviour of background applications, against a server in real time over the first
//! cylinders of a drive.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use headtime_sched::TaskRange;
use headtime_serve::apps::error::AppError;
use headtime_serve::apps::hand::{self, Writing};
use headtime_serve::apps::job::{End, Job, State, Status};
use headtime_serve::apps::link::{Link, answer, look};
use headtime_serve::apps::pace::Floor;
use headtime_serve::apps::progress::{JournalError, Progress};
use headtime_serve::apps::runner;
use headtime_serve::control::client::{ClientError, Session};
use headtime_serve::control::v1::session_call::Call;
use headtime_serve::control::v1::session_event::Event;
use headtime_serve::control::v1::{ChangeRequest, Export, Foreground, Kind, change_request};
use headtime_serve::destage::driver::{Upstream, UpstreamError};
use tokio::sync::watch;

use crate::applying::{Keep, MANY_CYLINDERS, SECTOR, TEST_TIMEOUT, UNIT, World};

#[test]
fn every_block_comes_once_with_its_data() {
    let w = World::new(3, vec![]);
    let (mut progress, mut keep) = (w.progress(), Keep::new(&w));
    assert_eq!(w.run(&w.job(), &mut progress, &mut keep).unwrap(), End::Complete);
    assert!(keep.times.iter().all(|&t| t == 1));
    assert_eq!(keep.data, w.disk());
    assert_eq!(progress.notes.promoted_bytes, 0, "there was no floor");
}

#[test]
fn another_disk_of_the_same_model_and_an_export_that_changed_are_not_gone_on_with() {
    let (one, other) = (World::new(1, vec![]), World::new(1, vec![]));
    let refused =
        |job: &Job, mut progress: Progress| other.run(job, &mut progress, &mut Keep::new(&other)).unwrap_err();
    assert!(matches!(refused(&other.job(), one.progress()), AppError::OtherDisk { .. }));
    let export = |first| Some(Export { name: "data".into(), first, sectors: other.sectors, ..Export::default() });
    let moved = Job { export: export(8), ..other.job() };
    assert!(matches!(refused(&moved, other.progress()), AppError::OtherExport { .. }));
    let job = Job { export: export(0), ..other.job() };
    assert_eq!(other.run(&job, &mut other.progress(), &mut Keep::new(&other)).unwrap(), End::Complete);
}

#[test]
fn a_restart_of_the_server_is_survived_and_every_block_is_seen_once() {
    let mut w = World::new(6, vec![]);
    let (job, mut progress, mut keep) = (w.job(), w.progress(), Keep::new(&w));
    let (done, seen) = watch::channel(0);
    let stop = w.stop.clone();
    let handle = w.runtime.handle().clone();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let mut tell = |s: &Status| _ = done.send(s.done);
            let run = runner::run(&job, &mut progress, &mut keep, &mut tell, stop);
            handle.block_on(async { tokio::time::timeout(TEST_TIMEOUT, run).await.expect("it comes to an end") })
        });
        let began = Instant::now();
        while *seen.borrow() == 0 && began.elapsed() < TEST_TIMEOUT {
            std::thread::sleep(Duration::from_millis(10));
        }
        w.stop();
        std::thread::sleep(Duration::from_millis(300));
        w.start();
        assert_eq!(running.join().unwrap().unwrap(), End::Complete);
    });
    assert!(keep.times.iter().all(|&t| t == 1));
    assert_eq!(keep.data, w.disk());
}

/// Suspends or resumes a session, as an operator does.
async fn suspend(control: &Path, session: u32, suspended: bool) {
    let change = Some(change_request::Change::Suspended(suspended));
    look(control).await.unwrap().0.change(ChangeRequest { session, change }).await.unwrap();
}

#[test]
fn an_operator_suspends_a_session_at_once_and_it_continues_where_it_was() {
    let w = World::new(MANY_CYLINDERS, vec![]);
    let (job, mut progress, mut keep) = (w.job(), w.progress(), Keep::new(&w));
    let (seen, began) = (Arc::new(Mutex::new(Vec::<Status>::new())), Instant::now());
    let control = w.path("control");
    let saw = |what: fn(&Status) -> bool| {
        let seen = Arc::clone(&seen);
        async move {
            loop {
                if let Some(s) = seen.lock().unwrap().last().filter(|s| what(s)) {
                    return *s;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    };
    w.runtime.block_on(async {
        let mut tell = |s: &Status| seen.lock().unwrap().push(*s);
        let run = runner::run(&job, &mut progress, &mut keep, &mut tell, w.stop.clone());
        let operator = async {
            let session = saw(|s| s.session.is_some()).await.session.unwrap();
            suspend(&control, session, true).await;
            // Data in flight at the suspension still arrives.
            saw(|s| s.state == State::Paused).await;
            tokio::time::sleep(Duration::from_millis(600)).await;
            let paused = *seen.lock().unwrap().last().unwrap();
            tokio::time::sleep(Duration::from_millis(1_000)).await;
            let later = *seen.lock().unwrap().last().unwrap();
            assert_eq!((later.state, later.done, later.left), (State::Paused, paused.done, None));
            assert!(later.done < later.total, "there is nothing left to be suspended");
            suspend(&control, session, false).await;
        };
        let (end, ()) = tokio::time::timeout(TEST_TIMEOUT, async { tokio::join!(run, operator) }).await.unwrap();
        assert_eq!(end.unwrap(), End::Complete);
    });
    // Time in suspension does not count as working time.
    let worked = Duration::from_millis(progress.notes.milliseconds);
    assert!(worked + Duration::from_millis(1_500) <= began.elapsed(), "{worked:?} of {:?}", began.elapsed());
    assert!(keep.times.iter().all(|&t| t == 1));
    assert_eq!(keep.data, w.disk());
}

#[test]
fn what_the_journal_says_is_not_read_again_after_the_application_was_killed() {
    let w = World::new(MANY_CYLINDERS, vec![]);
    let job = Job { save_every: Duration::ZERO, ..w.job() };
    let (mut progress, mut keep) = (w.progress(), Keep::new(&w));
    w.runtime.block_on(async {
        let (tell_session, mut session) = watch::channel(None);
        let mut tell = |s: &Status| _ = tell_session.send(s.session.filter(|_| s.done > 0));
        let run = runner::run(&job, &mut progress, &mut keep, &mut tell, w.stop.clone());
        // The job is suspended in the middle, so that the journal is written before the end even on
        // a slow disk.
        let middle = async {
            let session = session.wait_for(Option::is_some).await.unwrap().unwrap();
            suspend(&w.path("control"), session, true).await;
            let mut written = w.progress();
            while !written.resume(&w.path("journal")).unwrap_or(false) || written.done() == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        // Dropped there, as if it were killed.
        tokio::select! {
            _ = run => panic!("it should not have come to its end yet"),
            done = tokio::time::timeout(TEST_TIMEOUT, middle) => done.expect("the journal is written in the middle"),
        }
    });
    let (mut again, mut rest) = (w.progress(), Keep::new(&w));
    assert!(again.resume(&w.path("journal")).unwrap());
    let remembered = again.done();
    assert!(remembered > 0);
    assert_eq!(w.run(&job, &mut again, &mut rest).unwrap(), End::Complete);
    let read = rest.times.iter().filter(|&&t| t > 0).count() as u64;
    assert!(
        read <= w.sectors - remembered * u64::from(UNIT) + u64::from(UNIT),
        "{read} sectors read, {remembered} units remembered"
    );
    assert!(keep.times.iter().zip(&rest.times).all(|(a, b)| a + b >= 1), "nothing is left out");
    let mut journal = std::fs::read(w.path("journal")).unwrap();
    *journal.last_mut().unwrap() ^= 1;
    std::fs::write(w.path("journal"), journal).unwrap();
    assert!(matches!(w.progress().resume(&w.path("journal")), Err(JournalError::Damaged { .. })));
}

#[test]
fn a_server_that_says_nothing_is_no_reason_to_be_deaf() {
    let dir = tempfile::tempdir().unwrap();
    let control = dir.path().join("control");
    // A socket that accepts connections and never answers.
    let _stopped = std::os::unix::net::UnixListener::bind(&control).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (tell, stop) = watch::channel(false);
    runtime.block_on(async {
        let asked = answer(&control, &stop, look(&control));
        let stops = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            tell.send(true).unwrap();
        };
        let (asked, ()) = tokio::time::timeout(TEST_TIMEOUT, async { tokio::join!(asked, stops) }).await.unwrap();
        assert!(matches!(asked, Err(AppError::Stopped)));
        let upstream = Upstream { control: (&control).into(), export: "data".into(), priority: 1 };
        let both = async { tokio::join!(look(&control), upstream.look()) };
        let (looked, destages) = tokio::time::timeout(TEST_TIMEOUT, both).await.unwrap();
        // The server may recover: a client that was connected keeps waiting.
        let e = looked.unwrap_err();
        assert!(matches!(&e, AppError::Client(why @ ClientError::Silent { .. }) if why.is_temporary()), "{e}");
        assert!(matches!(destages, Err(UpstreamError::Client(ClientError::Silent { .. }))));
    });
}

#[test]
fn what_is_written_by_hand_is_on_the_disk() {
    let w = World::new(2, vec![]);
    let data: Vec<u8> = (0..100 * SECTOR).map(|i| (i % 253) as u8 ^ 0x5a).collect();
    std::fs::write(w.path("input"), &data).unwrap();
    let mut writing = Writing {
        control: w.path("control").into(),
        priority: 100,
        ranges: vec![TaskRange { lbn: 1000, count: 60 }, TaskRange { lbn: 500, count: 40 }],
        unit: Some(UNIT),
        input: w.path("input"),
        promote: false,
    };
    let write = |w: &World, writing: &Writing| {
        let mut quiet = |_, _| {};
        let write = hand::write(writing, &mut quiet, w.stop.clone());
        w.runtime.block_on(async { tokio::time::timeout(TEST_TIMEOUT, write).await.expect("it comes to an end") })
    };
    let written = write(&w, &writing).unwrap();
    assert!(written.complete && written.written_bytes == 100 * SECTOR, "{written:?}");
    let (disk, at) = (w.disk(), |lbn: u64| (lbn * SECTOR) as usize);
    assert_eq!(disk[at(500)..at(540)], data[..at(40)]);
    assert_eq!(disk[at(1000)..at(1060)], data[at(40)..]);
    writing.ranges.pop();
    let input = std::mem::replace(&mut writing.input, w.dir.path().into());
    assert!(matches!(write(&w, &writing), Err(AppError::NoPlainFile(_))), "a directory");
    writing.input = input;
    assert!(matches!(write(&w, &writing), Err(AppError::Length { expected: 30_720, found: 51_200, .. })));
}

#[test]
fn a_floor_is_kept_while_the_foreground_is_busy() {
    let w = World::new(6, vec![]);
    let (control, sectors) = (w.path("control"), w.sectors);
    let busy = w.runtime.spawn(async move {
        let (mut control, info) = look(&control).await.unwrap();
        let session = Session::open(&mut control, &info, "foreground", 1, 1).await.unwrap();
        let mut link = Link::new(session, 1);
        let ask = |token: u64| {
            let lbn = token.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (sectors - 8);
            Call::Foreground(Foreground { token, kind: Kind::Read.into(), lbn, count: 8, ..Foreground::default() })
        };
        (0..4).for_each(|t| link.say(ask(t)));
        for token in 4.. {
            while !matches!(link.next().await.unwrap(), Event::Answered(_)) {}
            link.say(ask(token));
        }
    });
    // More than gaps yield here, and less than the disk can do.
    let job = Job { floor: Floor { bytes_s: Some(12e6), within: None }, ..w.job() };
    let (mut progress, mut keep) = (w.progress(), Keep::new(&w));
    let began = Instant::now();
    assert_eq!(w.run(&job, &mut progress, &mut keep).unwrap(), End::Complete);
    let (took, total) = (began.elapsed(), progress.bytes().1);
    busy.abort();
    assert!(keep.times.iter().all(|&t| t == 1), "what was promoted is not handed on twice");
    assert!(progress.notes.promoted_bytes > 0, "{total} bytes in {took:?}");
    // No debt arises in the first quarter of a second, and the last is promoted only when it is
    // due.
    let kept = total as f64 / took.saturating_sub(Duration::from_millis(500)).as_secs_f64();
    assert!(kept >= 0.9 * 12e6, "{kept} bytes a second, {total} bytes in {took:?}");
    assert!(progress.notes.promoted_bytes <= total);
}
