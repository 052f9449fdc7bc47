//! The shutdown of a busy engine: earlier requests are answered, no new work starts, and the last
//! command to the device is a flush.

use crate::rig;

use std::fs::File;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::rig::{Rig, drive, next, sectors};
use bytes::Bytes;
use headtime_disk::{Command, DriveConfig, Kind, Time};
use headtime_sched::{Rate, RateLimit, TaskEvent, TaskRange, TaskSpec};
use headtime_serve::device::virtual_drive::VirtualDrive;
use headtime_serve::device::{Device, Done};
use headtime_serve::engine::End;
use headtime_serve::engine::messages::{EngineMessage, SessionCall};
use headtime_serve::engine::session_event::SessionEvent;
use headtime_serve::net::exports::ExportSettings;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tokio::sync::mpsc::{Receiver, channel};
use tokio::sync::oneshot;

/// A submission to a device, or a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Sent(u64, Kind),
    Done(u64),
}

/// A drive, and a list of its commands and completions.
struct Watched {
    drive: VirtualDrive,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Device for Watched {
    fn sectors(&self) -> u64 {
        self.drive.sectors()
    }
    fn sector_bytes(&self) -> u32 {
        self.drive.sector_bytes()
    }
    fn depth(&self) -> u32 {
        self.drive.depth()
    }
    fn submit(&mut self, command: &Command, data: Bytes, now: Time) {
        self.seen.lock().unwrap().push(Seen::Sent(command.id, command.kind));
        self.drive.submit(command, data, now);
    }
    fn poll(&mut self, now: Time) -> Option<Done> {
        let done = self.drive.poll(now)?;
        self.seen.lock().unwrap().push(Seen::Done(done.id));
        Some(done)
    }
    fn next_event(&self) -> Option<Time> {
        self.drive.next_event()
    }
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.drive.fd()
    }
}

fn watched() -> (Rig, File, Arc<Mutex<Vec<Seen>>>) {
    let (drive, file) = drive(DriveConfig::default());
    let seen = Arc::default();
    let device = Watched { drive, seen: Arc::clone(&seen) };
    (Rig::over(device, file.try_clone().unwrap()), file, seen)
}

/// Checks that one flush comes last, after everything before it completed, and that it completed.
fn ends_with_a_flush(seen: &Mutex<Vec<Seen>>) {
    let seen = seen.lock().unwrap();
    let (before, last) = seen.split_at(seen.len() - 2);
    let [Seen::Sent(flush, Kind::Flush), Seen::Done(done)] = *last else { panic!("{last:?}") };
    assert_eq!(flush, done);
    for s in before {
        let &Seen::Sent(id, kind) = s else { continue };
        assert!(kind != Kind::Flush, "the only flush is the last");
        assert!(before.contains(&Seen::Done(id)), "{s:?} was not done before the flush");
    }
}

/// Returns the last event of a session.
fn last(told: &mut Receiver<SessionEvent>) -> Option<SessionEvent> {
    std::iter::from_fn(|| told.try_recv().ok()).last()
}

#[test]
fn the_end_in_the_middle_of_background_work_answers_everything_and_flushes_last() {
    const ASKED: usize = 24;
    for seed in 1..4 {
        let (mut rig, file, seen) = watched();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let (reader, mut read) = rig.open(1 << 16);
        rig.register(reader, Kind::Read, TaskRange { lbn: 0, count: 1 << 24 }, 64, false);
        let (writer, mut wrote) = rig.open(256);
        let all = TaskRange { lbn: 1 << 20, count: 1 << 14 };
        let task = rig.register(writer, Kind::Write, all, 64, false);
        rig.data(writer, task, all.lbn, sectors(all.lbn, all.count, 7));
        // Both are at work.
        while !matches!(next(&mut wrote), SessionEvent::Task(TaskEvent::Written { .. }, _)) {}
        while !matches!(next(&mut read), SessionEvent::Task(TaskEvent::Delivered { .. }, _)) {}
        let places: Vec<u64> = (0..ASKED).map(|_| rng.next_u64() % (1 << 21) * 8).collect();
        for &lbn in &places {
            rig.ask(Kind::Write, lbn, 8, sectors(lbn, 8, 9));
        }
        rig.engine.send(EngineMessage::End).unwrap();
        // From here on it is shutting down; the writes make sure that it still takes some time.
        let (reply, answer) = oneshot::channel();
        let _ = rig.engine.send(EngineMessage::Snapshot(reply));
        let _ = answer.blocking_recv();
        let known = seen.lock().unwrap().len();
        (0..ASKED).for_each(|_| _ = rig.answer().1.expect("what was asked for before the end is done"));
        places.iter().for_each(|&lbn| assert_eq!(rig.on_disk(lbn, 8), sectors(lbn, 8, 9)));
        assert_eq!(rig.end(), End::Drained, "seed {seed}");
        let mut told = vec![];
        told.extend(std::iter::from_fn(|| wrote.try_recv().ok()));
        assert_eq!((told.pop(), last(&mut read)), (Some(SessionEvent::ServerEnds), Some(SessionEvent::ServerEnds)));
        for t in told {
            let SessionEvent::Task(TaskEvent::Written { range, .. }, _) = t else { continue };
            let mut found = vec![0; range.count as usize * rig::SECTOR];
            file.read_exact_at(&mut found, range.lbn * rig::SECTOR as u64).unwrap();
            for (found, lbn) in found.chunks(rig::SECTOR).zip(range.lbn..) {
                // Its own data, or a client's newer data.
                assert!(
                    found == sectors(lbn, 1, 7) || found == sectors(lbn, 1, 9),
                    "sector {lbn} was said to be written"
                );
            }
        }
        ends_with_a_flush(&seen);
        let begun = seen.lock().unwrap()[known..].iter().filter(|s| matches!(s, Seen::Sent(_, Kind::Read))).count();
        assert_eq!(begun, 0, "free reads were begun after the end was asked for");
    }
}

#[test]
fn no_call_after_the_end_begins_anything() {
    let (mut rig, _, seen) = watched();
    let all = TaskRange { lbn: 0, count: 1 << 24 };
    let (session, mut told) = rig.open(1 << 16);
    let task = rig.register(session, Kind::Read, all, 64, false);
    while !matches!(next(&mut told), SessionEvent::Task(TaskEvent::Delivered { .. }, _)) {}
    // The shutdown takes as long as these.
    (0..24).for_each(|i| _ = rig.ask(Kind::Read, i * 700_000, 8, vec![]));
    rig.engine.send(EngineMessage::End).unwrap();
    let changes = [None, Some(task)].map(|promoted| {
        let (reply, answer) = oneshot::channel();
        let change = match promoted {
            Some(task) => SessionCall::Promote { session, task, reply },
            None => SessionCall::Resume { session, reply },
        };
        // On a very slow machine the engine may have ended already.
        let _ = rig.engine.send(EngineMessage::Session(change));
        answer
    });
    let (reply, opened) = oneshot::channel();
    let (events, _told) = channel(16);
    let _ = rig.engine.send(EngineMessage::Session(SessionCall::Open { priority: 1, window: 1 << 16, events, reply }));
    let (reply, registered) = oneshot::channel();
    let spec = TaskSpec { kind: Kind::Read, ranges: vec![all], blksize: 64, min_pickup: 64 };
    let _ =
        rig.engine.send(EngineMessage::Session(SessionCall::Register { session, spec, point_in_time: false, reply }));
    (0..24).for_each(|_| assert!(rig.answer().1.is_ok()));
    assert_eq!(rig.end(), End::Drained);
    changes.into_iter().for_each(|answer| assert!(answer.blocking_recv().is_err(), "a change was made"));
    assert!(opened.blocking_recv().is_err() && registered.blocking_recv().is_err(), "a session or task came to be");
    ends_with_a_flush(&seen);
}

#[test]
fn a_server_that_ends_has_no_limits() {
    let (mut rig, _, seen) = watched();
    let limit = RateLimit { requests: Rate::per_second(2.0), ..RateLimit::default() };
    let settings = vec![ExportSettings { limit, ..ExportSettings::weighing(1) }];
    rig.engine.send(EngineMessage::Settings(settings.clone())).unwrap();
    (0..24).for_each(|i| _ = rig.ask(Kind::Read, i * 700_000, 8, vec![]));
    // Some of them wait for the limit, which would take 12 s.
    assert!(rig.answer().1.is_ok());
    let began = Instant::now();
    rig.engine.send(EngineMessage::End).unwrap();
    rig.engine.send(EngineMessage::Settings(settings)).unwrap();
    (1..24).for_each(|_| assert!(rig.answer().1.is_ok()));
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert_eq!(rig.end(), End::Drained);
    ends_with_a_flush(&seen);
}
