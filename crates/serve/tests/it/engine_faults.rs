//! Faults of the device in the engine: every request gets the right answer, and no invalid data.

use crate::rig;

use std::time::{Duration, Instant};

use crate::rig::{Rig, drive, sectors};
use headtime_disk::{DriveConfig, Dur, Fault as OnDrive, Kind};
use headtime_sched::Order;
use headtime_serve::device::Fault;
use headtime_serve::engine::End;
use headtime_serve::internals::device::faulty::{Faulty, Planted};

fn faulty(plan: impl IntoIterator<Item = (u64, Planted)>) -> Rig {
    let (device, file) = drive(DriveConfig::default());
    Rig::over(Faulty::new(device, plan), file)
}

#[test]
fn what_was_written_is_read_back_and_is_on_the_disk() {
    let mut rig = Rig::new();
    rig.write(1000, sectors(1000, 16, 1)).unwrap();
    assert_eq!(rig.read(1004, 4).unwrap(), sectors(1004, 4, 1));
    assert_eq!(rig.on_disk(1000, 16), sectors(1000, 16, 1));
    assert!(rig.ask(Kind::Flush, 0, 0, vec![]) > 0 && rig.answer().1.is_ok());
    assert_eq!(rig.end(), End::Drained);
}

#[test]
fn each_fault_comes_back_as_what_it_is_and_the_next_request_is_served() {
    for fault in [Fault::Io, Fault::NoSpace] {
        let mut rig = faulty([(1, Planted::Fails(fault))]);
        rig.write(0, sectors(0, 8, 1)).unwrap();
        assert_eq!(rig.write(0, sectors(0, 8, 2)), Err(fault));
        assert_eq!(rig.read(0, 8).unwrap(), sectors(0, 8, 1));
        assert_eq!(rig.end(), End::Drained);
    }
}

/// Adjacent pending writes are merged into one command: each keeps its own data, and if the command
/// fails, each is retried by itself.
#[test]
fn writes_that_go_as_one_command_are_all_on_the_disk() {
    let place = |i: u64| 1_000 + 8 * (i * 13 % 40);
    // With the n-th command failing: the number of commands, and of failed requests.
    let run = |fails: Option<u64>| {
        let (device, file) = rig::drive_of("barracuda36es2", DriveConfig::default());
        let core = rig::core_of("barracuda36es2", Order::SptfAhead, 2000);
        let plan = fails.map(|n| (n, Planted::Fails(Fault::Io)));
        let mut rig = Rig::under(core, Faulty::new(device, plan), file);
        // The first ones keep the drive busy while the others arrive in random order.
        let first = [0, 9_000_000].map(|lbn| rig.ask(Kind::Write, lbn, 8, sectors(lbn, 8, 1)));
        let ask = |i: u64| rig.ask(Kind::Write, place(i), 8, sectors(place(i), 8, i as u8));
        let asked: Vec<u64> = (0..40).map(ask).collect();
        let mut failed = vec![];
        for _ in 0..first.len() + asked.len() {
            let (id, answer) = rig.answer();
            failed.extend(answer.is_err().then_some(id));
        }
        for (i, id) in (0..).zip(&asked).filter(|(_, id)| !failed.contains(id)) {
            assert_eq!(rig.on_disk(place(i), 8), sectors(place(i), 8, i as u8), "{id}, {fails:?}");
        }
        let issued = rig.snapshot().commands;
        assert_eq!(rig.end(), End::Drained);
        (issued, failed.len())
    };
    let (whole, none) = run(None);
    assert!(whole < 30 && none == 0, "{whole} commands");
    // A request with its own command fails with it; a merged one is retried.
    let each: Vec<(u64, usize)> = (0..6).map(|n| run(Some(n))).collect();
    assert!(each.iter().all(|e| e.1 <= 1), "{each:?}");
    assert!(each.iter().any(|e| e.1 == 0 && e.0 > 8), "{each:?}");
}

#[test]
fn a_short_read_is_an_error_not_short_data() {
    let mut rig = faulty([(1, Planted::Short(1000))]);
    rig.write(0, sectors(0, 8, 1)).unwrap();
    assert_eq!(rig.read(0, 8), Err(Fault::Io));
    assert_eq!(rig.read(0, 8).unwrap().len(), 4096);
}

#[test]
fn a_command_that_hangs_is_waited_for_and_others_continue_at_the_same_time() {
    let mut rig = faulty([(0, Planted::Hangs(Dur::from_ms(400)))]);
    let began = Instant::now();
    let slow = rig.ask(Kind::Read, 0, 8, vec![]);
    std::thread::sleep(Duration::from_millis(20));
    let quick = rig.ask(Kind::Read, 5_000_000, 8, vec![]);
    let (first, second) = (rig.answer(), rig.answer());
    assert_eq!((first.0, second.0), (quick, slow));
    assert!(first.1.is_ok() && second.1.is_ok() && began.elapsed() >= Duration::from_millis(400));
}

#[test]
fn a_device_that_is_gone_fails_everything_at_once() {
    let (device, file) = drive(DriveConfig::default());
    let mut rig = Rig::over(Faulty::new(device, []).gone_from(2), file);
    assert!(rig.read(0, 8).is_ok() && rig.read(100, 8).is_ok());
    for i in 0..20 {
        assert_eq!(rig.read(i * 1000, 8), Err(Fault::Gone));
    }
    assert_eq!(rig.end(), End::Drained);
}

#[test]
fn a_command_that_is_never_answered_does_not_keep_the_end_waiting_for_ever() {
    let mut rig = faulty([(1, Planted::Lost)]);
    rig.read(0, 8).unwrap();
    rig.ask(Kind::Read, 0, 8, vec![]);
    std::thread::sleep(Duration::from_millis(20));
    let began = Instant::now();
    let engine = rig.engine.clone();
    engine.send(headtime_serve::engine::messages::EngineMessage::End).unwrap();
    assert_eq!(rig.answer().1, Err(Fault::Gone), "and the waiting client is answered");
    assert!((4..8).contains(&began.elapsed().as_secs()));
}

#[test]
fn an_unreadable_sector_fails_the_requests_that_touch_it_and_no_others() {
    let faults = vec![OnDrive::Unreadable { lbn: 2000, count: 3 }];
    let (device, file) = drive(DriveConfig::default().with_faults(faults));
    let mut rig = Rig::over(device, file);
    assert_eq!(rig.read(1996, 8), Err(Fault::Io));
    assert!(rig.read(1992, 8).is_ok() && rig.read(2003, 8).is_ok());
    // A drive repairs a bad sector when it is written.
    rig.write(2000, sectors(2000, 3, 9)).unwrap();
    assert_eq!(rig.read(2000, 3).unwrap(), sectors(2000, 3, 9));
}
