//! Background work in the engine: its data is right, old data never overwrites newer data, and a
//! point-in-time image is consistent.

use crate::rig;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::rig::{Rig, core, drive, next, sectors};
use bytes::Bytes;
use headtime_disk::{DriveConfig, Kind, Outcome, Time};
use headtime_sched::{Action, Core, Refused, Request, Scheduler, TaskEvent, TaskRange};
use headtime_serve::engine::End;
use headtime_serve::engine::messages::{EngineMessage, SessionCall};
use headtime_serve::engine::session_event::SessionEvent;
use headtime_serve::internals::engine::background::{MAX_WINDOW, MAX_WINDOWS};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Sectors of the part of the disk used here: small, so that a scan is short.
const PART: u64 = 8192;
const UNIT: u32 = 64;
const ALL: TaskRange = TaskRange { lbn: 50_000, count: PART };

fn random(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

#[test]
fn a_scan_beside_readers_brings_every_block_once_with_its_data() {
    let mut rig = Rig::new();
    rig.plant(ALL.lbn, &sectors(ALL.lbn, PART, 1));
    let (session, mut told) = rig.open(512);
    rig.register(session, Kind::Read, ALL, UNIT, false);
    let (mut rng, mut seen) = (random(1), BTreeMap::new());
    rig.ask(Kind::Read, 0, 8, vec![]);
    loop {
        match next(&mut told) {
            SessionEvent::Task(TaskEvent::Delivered { range, .. }, Ok(data)) => {
                assert_eq!(data, sectors(range.lbn, range.count, 1));
                assert!(seen.insert(range.lbn, range.count).is_none(), "a block came twice");
                rig.taken(session, range.count);
            }
            SessionEvent::Task(TaskEvent::Done { .. }, _) => break,
            other => panic!("{other:?}"),
        }
        // A reader with one request in flight, near the scanned range and far from it.
        if let Ok((_, answer)) = rig.engine_answer() {
            assert!(answer.is_ok());
            let lbn = if rng.next_u64().is_multiple_of(2) {
                ALL.lbn + rng.next_u64() % PART
            } else {
                rng.next_u64() % 17_000_000
            };
            rig.ask(Kind::Read, lbn, 8, vec![]);
        }
    }
    assert_eq!(seen.values().sum::<u64>(), PART);
    let s = rig.snapshot();
    assert!(s.free_sectors > 0 && s.failed == 0);
}

#[test]
fn an_image_is_of_one_point_in_time_whatever_is_written_during_it() {
    for seed in 1..4 {
        let mut rig = Rig::new();
        rig.plant(ALL.lbn, &sectors(ALL.lbn, PART, 1));
        let (session, mut told) = rig.open(256);
        rig.register(session, Kind::Read, ALL, UNIT, true);
        let (mut rng, mut image) = (random(seed), vec![0u8; PART as usize * rig::SECTOR]);
        let mut written = 0;
        let mut pending = 0;
        loop {
            while pending < 4 {
                let count = 1 + rng.next_u64() % 100;
                let lbn = ALL.lbn + rng.next_u64() % (PART - count);
                rig.ask(Kind::Write, lbn, count as u32, sectors(lbn, count, 2));
                (written, pending) = (written + 1, pending + 1);
            }
            while let Ok((_, answer)) = rig.engine_answer() {
                answer.unwrap();
                pending -= 1;
            }
            match next(&mut told) {
                SessionEvent::Task(TaskEvent::Delivered { range, .. }, Ok(data)) => {
                    let at = (range.lbn - ALL.lbn) as usize * rig::SECTOR;
                    let place = &mut image[at..at + data.len()];
                    assert!(place.iter().all(|&b| b == 0), "a block came twice");
                    place.copy_from_slice(&data);
                    rig.taken(session, range.count);
                }
                SessionEvent::Task(TaskEvent::Done { .. }, _) => break,
                other => panic!("{other:?}"),
            }
        }
        assert!(image == sectors(ALL.lbn, PART, 1), "seed {seed}: the image is not of the moment of its beginning");
        assert!(written > 10);
    }
}

#[test]
fn sessions_share_the_room_for_windows() {
    let rig = Rig::new();
    let largest = MAX_WINDOW / rig::SECTOR as u64;
    let mut open: Vec<_> = (0..MAX_WINDOWS / MAX_WINDOW).map(|_| rig.open(u64::MAX)).collect();
    let (reply, refused) = tokio::sync::oneshot::channel();
    let (events, _told) = tokio::sync::mpsc::channel(1);
    rig.engine.send(EngineMessage::Session(SessionCall::Open { priority: 1, window: 1, events, reply })).unwrap();
    let why = refused.blocking_recv().unwrap().unwrap_err().to_string();
    assert_eq!(why, "no room for more bytes of windows: 1073741824 at most");
    let (session, _) = open.pop().unwrap();
    rig.call(|reply| SessionCall::Close { session, reply });
    rig.open(largest);
}

#[test]
fn an_image_whose_client_takes_nothing_is_given_up_and_no_write_waits_for_it() {
    let mut rig = Rig::new();
    let big = TaskRange { lbn: 0, count: 400_000 };
    let (session, mut told) = rig.open(64);
    rig.register(session, Kind::Read, big, 2048, true);
    rig.call(|reply| SessionCall::Suspend { session, reply });
    let mut at = 0;
    let broken = loop {
        // 64 MiB may exceed the window; each of these writes delivers 1 MiB.
        rig.write(at, sectors(at, 8, 2)).unwrap();
        at += 2048;
        assert!(at < big.end(), "it was never given up");
        match told.try_recv() {
            Ok(SessionEvent::Lost { range, .. }) => break range,
            Ok(SessionEvent::Task(TaskEvent::Delivered { .. }, Ok(data))) => assert!(data.iter().all(|&b| b == 0)),
            _ => {}
        }
    };
    assert!(broken.lbn >= 60 * 2048, "{broken:?}");
    rig.write(at, sectors(at, 8, 2)).unwrap();
}

#[test]
fn background_writes_reach_the_disk_and_never_cover_newer_data() {
    for seed in 1..4 {
        let mut rig = Rig::new();
        let (session, mut told) = rig.open(256);
        let task = rig.register(session, Kind::Write, ALL, UNIT, false);
        rig.data(session, task, ALL.lbn, sectors(ALL.lbn, PART, 1));
        let (mut rng, mut newer, mut pending) = (random(seed), BTreeMap::new(), 0);
        loop {
            if pending < 2 {
                let lbn = ALL.lbn + rng.next_u64() % (PART - 8);
                rig.ask(Kind::Write, lbn, 8, sectors(lbn, 8, 2));
                (lbn..lbn + 8).for_each(|l| _ = newer.insert(l, 2));
                pending += 1;
            }
            while let Ok((_, answer)) = rig.engine_answer() {
                answer.unwrap();
                pending -= 1;
            }
            match next(&mut told) {
                SessionEvent::Task(TaskEvent::Written { .. }, _)
                | SessionEvent::Task(TaskEvent::GetBuffer { .. }, _) => {}
                SessionEvent::Task(TaskEvent::Superseded { range, .. }, _) => {
                    // Sectors not written for the task hold the previous data, or the newer data.
                    (range.lbn..range.end()).for_each(|l| _ = newer.entry(l).or_insert(0));
                }
                SessionEvent::Task(TaskEvent::Done { .. }, _) => break,
                other => panic!("{other:?}"),
            }
        }
        while pending > 0 {
            rig.answer().1.unwrap();
            pending -= 1;
        }
        for l in ALL.lbn..ALL.end() {
            let found = rig.on_disk(l, 1);
            match newer.get(&l) {
                None => assert_eq!(found, sectors(l, 1, 1), "sector {l}"),
                Some(0) => assert!(found == vec![0; 512] || found == sectors(l, 1, 1), "sector {l}"),
                Some(_) => assert_eq!(found, sectors(l, 1, 2), "sector {l}"),
            }
        }
    }
}

#[test]
fn data_of_another_tasks_sectors_is_never_written_for_it() {
    let rig = Rig::new();
    let (a, mut told_a) = rig.open(256);
    let (b, mut told_b) = rig.open(256);
    let mine = TaskRange { lbn: 1000, count: 64 };
    let yours = TaskRange { lbn: 2000, count: 64 };
    let task_a = rig.register(a, Kind::Write, mine, UNIT, false);
    let task_b = rig.register(b, Kind::Write, yours, UNIT, false);
    // A session sends data for sectors outside its task, and for another session's task.
    rig.data(a, task_a, 2000, sectors(2000, 64, 66));
    rig.data(a, task_b, 2000, sectors(2000, 64, 66));
    rig.data(b, task_b, 2000, sectors(2000, 64, 7));
    rig.data(a, task_a, 1000, sectors(1000, 64, 6));
    while !matches!(next(&mut told_a), SessionEvent::Task(TaskEvent::Done { .. }, _)) {}
    while !matches!(next(&mut told_b), SessionEvent::Task(TaskEvent::Done { .. }, _)) {}
    assert_eq!(rig.on_disk(2000, 64), sectors(2000, 64, 7));
    assert_eq!(rig.on_disk(1000, 64), sectors(1000, 64, 6));
}

#[test]
fn a_write_whose_data_comes_late_goes_out_on_an_idle_disk() {
    let rig = Rig::new();
    let (session, mut told) = rig.open(256);
    let range = TaskRange { lbn: 300_000, count: 64 };
    let task = rig.register(session, Kind::Write, range, UNIT, false);
    // The disk is idle, and data is requested but missing.
    assert_eq!(next(&mut told), SessionEvent::Task(TaskEvent::GetBuffer { session, task, range }, Ok(Bytes::new())));
    std::thread::sleep(std::time::Duration::from_millis(100));
    rig.data(session, task, range.lbn, sectors(range.lbn, 64, 5));
    loop {
        match next(&mut told) {
            SessionEvent::Task(TaskEvent::Done { .. }, _) => break,
            SessionEvent::Task(TaskEvent::GetBuffer { .. }, _) | SessionEvent::Task(TaskEvent::Written { .. }, _) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(rig.on_disk(range.lbn, 64), sectors(range.lbn, 64, 5));
}

#[test]
fn promoted_writes_reach_the_disk_whether_it_is_busy_or_not() {
    for busy in [false, true] {
        let mut rig = Rig::new();
        let (session, mut told) = rig.open(256);
        // More than may be queued among foreground requests at a time.
        let range = TaskRange { lbn: 1 << 20, count: 2048 };
        rig.call(|reply| SessionCall::Suspend { session, reply });
        let task = rig.register(session, Kind::Write, range, UNIT, false);
        rig.data(session, task, range.lbn, sectors(range.lbn, range.count, 3));
        let mut rng = random(11);
        rig.call(|reply| SessionCall::Resume { session, reply });
        rig.call(|reply| SessionCall::Promote { session, task, reply });
        let mut written = 0;
        loop {
            if busy {
                for _ in 0..4 {
                    rig.ask(Kind::Read, rng.next_u64() % (1 << 24), 8, vec![]);
                }
                (0..4).for_each(|_| assert!(rig.answer().1.is_ok()));
            }
            match if busy { told.try_recv().ok() } else { Some(next(&mut told)) } {
                Some(SessionEvent::Task(TaskEvent::Written { range, .. }, _)) => written += range.count,
                Some(SessionEvent::Task(TaskEvent::Done { .. }, _)) => break,
                Some(SessionEvent::Suspended(_)) | None => {}
                Some(other) => panic!("{other:?}"),
            }
        }
        assert_eq!(written, range.count);
        assert!(rig.on_disk(range.lbn, range.count as usize) == sectors(range.lbn, range.count, 3));
        assert_eq!(rig.end(), End::Drained);
    }
}

#[test]
fn a_device_that_is_gone_is_reported_at_once_and_to_sessions_that_open_later() {
    let faults = vec![headtime_disk::Fault::Death { at: Time(300_000_000) }];
    let (device, file) = drive(DriveConfig::default().with_faults(faults));
    let rig = Rig::over(device, file);
    let (session, mut told) = rig.open(1 << 16);
    rig.register(session, Kind::Read, TaskRange { lbn: 0, count: 1 << 24 }, UNIT, false);
    loop {
        match next(&mut told) {
            SessionEvent::Task(TaskEvent::Delivered { range, .. }, _) => rig.taken(session, range.count),
            SessionEvent::DeviceGone => break,
            _ => {}
        }
    }
    let (_, mut later) = rig.open(16);
    assert_eq!(next(&mut later), SessionEvent::DeviceGone);
    rig.end();
}

/// A core that records the requests submitted to it.
struct Noting {
    core: Core,
    told: Arc<Mutex<Vec<Request>>>,
}

impl Scheduler for Noting {
    fn submit(&mut self, request: Request, now: Time) -> Result<(), Refused> {
        self.told.lock().unwrap().push(request);
        self.core.submit(request, now)
    }
    fn complete(&mut self, command: u64, outcome: Outcome, now: Time) {
        self.core.complete(command, outcome, now);
    }
    fn tick(&mut self, now: Time) {
        self.core.tick(now);
    }
    fn poll(&mut self) -> Option<Action> {
        self.core.poll()
    }
    fn next_wakeup(&self) -> Option<Time> {
        self.core.next_wakeup()
    }
    fn free_sectors(&self, command: u64) -> u32 {
        self.core.free_sectors(command)
    }
    fn request_of(&self, command: u64) -> Option<u64> {
        self.core.request_of(command)
    }
    fn requests_behind(&self, command: u64) -> Vec<u64> {
        Scheduler::requests_behind(&self.core, command)
    }
    fn core(&mut self) -> Option<&mut Core> {
        Some(&mut self.core)
    }
}

#[test]
fn data_to_be_preserved_are_read_before_the_write_that_replaces_them() {
    let (device, file) = drive(DriveConfig::default());
    let told = Arc::new(Mutex::new(vec![]));
    let mut rig = Rig::under(Noting { core: core(100), told: told.clone() }, device, file);
    let (session, _told) = rig.open(256);
    rig.call(|reply| SessionCall::Suspend { session, reply });
    rig.register(session, Kind::Read, ALL, UNIT, true);
    for (owner, at) in [(3, 0), (7, 1_000), (5, 2_000)] {
        rig.ask_as(owner, Kind::Write, ALL.lbn + at, 8, sectors(ALL.lbn + at, 8, 2));
        rig.answer().1.unwrap();
    }
    let told = told.lock().unwrap();
    let of = |owner| told.iter().filter(|r| r.owner == owner).map(|r| r.kind).collect::<Vec<_>>();
    for owner in [3, 7, 5] {
        assert_eq!(of(owner), [Kind::Read, Kind::Write], "{owner}: {told:?}");
    }
    assert_eq!(told.len(), 6);
}
