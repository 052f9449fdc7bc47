//! A reorganised export in real time: its hot units, its clients' data, and moves that are killed.

use std::time::Duration;

use headtime_disk::Kind;
use headtime_sched::TaskRange;
use headtime_serve::apps::error::AppError;
use headtime_serve::apps::job::Status;
use headtime_serve::apps::link::{in_place, look};
use headtime_serve::apps::reorganise::{self, Plan, Report};
use headtime_serve::control::client::Session;
use headtime_serve::control::v1::session_call::Call;
use headtime_serve::control::v1::session_event::Event;
use headtime_serve::control::v1::{self, Moves, Register, UnitMove};

use crate::applying::{SECTOR, TEST_TIMEOUT, World};

/// Sectors of a unit of these worlds.
const UNIT: u64 = 128;

fn plan(w: &World, undo: bool) -> Plan {
    Plan {
        control: w.path("control").into(),
        export: "data".into(),
        priority: 100,
        max_mb_s: None,
        undo,
        dry_run: false,
    }
}

fn run(w: &World, plan: &Plan) -> Report {
    let mut quiet = |_: &Status| {};
    let run = reorganise::run(plan, &mut quiet, w.stop.clone());
    w.runtime.block_on(async { tokio::time::timeout(TEST_TIMEOUT, run).await.expect("it comes to an end") }).unwrap()
}

/// Reads parts of these units in turn, so that the server learns that they are hot.
fn heat(w: &World, units: &[u64]) {
    for (n, &unit) in (0..20).flat_map(|_| units).enumerate() {
        w.ask(Kind::Read, unit * UNIT + 5, 8, vec![]).unwrap();
        if units.len() < 10 {
            // Others in between, since a unit that was accessed just before is not counted again.
            let other = (n as u64 * 7 + 3) % (w.area().part.count / UNIT);
            w.ask(Kind::Read, other * UNIT, 1, vec![]).unwrap();
        }
    }
}

/// Returns what a client of the export sees.
fn seen(w: &World) -> Vec<u8> {
    let all = w.area().part.count;
    // Requests of several units, not aligned to them.
    let starts = (0..all).step_by(1_000);
    starts.flat_map(|lbn| w.ask(Kind::Read, lbn, 1_000.min(all - lbn) as u32, vec![]).unwrap()).collect()
}

/// Returns the export's sectors at their homes.
fn at_home(w: &World) -> Vec<u8> {
    let (area, mut disk) = (w.area(), w.disk());
    let bytes = |sectors: u64| (sectors * SECTOR) as usize;
    disk.truncate(bytes(area.span().end()));
    if area.is_within() {
        disk.drain(bytes(area.reserve.lbn)..bytes(area.reserve.end()));
    }
    disk
}

/// Writes through the server, and notes it in what is expected.
fn write(w: &World, expected: &mut [u8], lbn: u64, count: u64, byte: u8) {
    let data = vec![byte; (count * SECTOR) as usize];
    expected[(lbn * SECTOR) as usize..][..data.len()].copy_from_slice(&data);
    w.ask(Kind::Write, lbn, count as u32, data).unwrap();
}

#[test]
fn hot_units_are_moved_together_and_home_again_and_clients_see_no_difference() {
    moves_and_moves_home(World::reorganised(12));
}

#[test]
fn with_a_reserve_in_its_middle_an_export_is_the_same() {
    moves_and_moves_home(World::reorganised_around(12));
}

fn moves_and_moves_home(mut w: World) {
    let mut expected = at_home(&w);
    let hot = [3, 40, 41, 77, 100];
    heat(&w, &hot);
    let report = run(&w, &Plan { dry_run: true, ..plan(&w, false) });
    assert_eq!((report.planned, report.moved, report.in_reserve), (5, 0, 0));
    let report = run(&w, &plan(&w, false));
    assert_eq!((report.moved, report.left, report.in_reserve, report.complete), (5, 0, 5, true), "{report:?}");
    assert!(report.accesses_in_reserve * 5 > report.accesses * 2, "{report:?}");
    assert!(seen(&w) == expected);
    // Across the boundary of a unit that was moved, and within it.
    write(&w, &mut expected, 40 * UNIT - 3, 10, 0xa1);
    write(&w, &mut expected, 41 * UNIT + 120, 16, 0xa2);
    assert!(seen(&w) == expected);
    // The writes to moved units are in the reserve, and not where the export is.
    let home = &w.disk()[(40 * UNIT * SECTOR) as usize..][..512];
    assert!(home != &expected[(40 * UNIT * SECTOR) as usize..][..512]);
    // An application that reads the disk's sectors learns it from the server.
    let info = w.runtime.block_on(look(w.path("control"))).unwrap().1;
    assert_eq!(info.exports[0].moved_units, Some(5));
    let refused = in_place(&info, &TaskRange { lbn: 0, count: 1 });
    match w.area().is_within() {
        true => assert!(matches!(refused, Err(AppError::ReserveWithin { .. })), "{refused:?}"),
        false => assert!(matches!(refused, Err(AppError::Reorganised { moved: 5, .. })), "{refused:?}"),
    }
    // The map is on the disk.
    w.stop();
    w.start();
    assert!(seen(&w) == expected);
    let report = run(&w, &plan(&w, true));
    assert_eq!((report.moved, report.in_reserve), (5, 0), "{report:?}");
    assert!(seen(&w) == expected);
    assert!(at_home(&w) == expected);
    w.stop();
    w.start();
    assert!(seen(&w) == expected);
}

#[test]
fn nothing_is_lost_when_it_is_killed_in_the_middle_and_the_server_starts_again() {
    kills(World::reorganised(12));
}

#[test]
fn nothing_is_lost_either_with_a_reserve_in_the_middle() {
    kills(World::reorganised_around(12));
}

fn kills(mut w: World) {
    let mut expected = at_home(&w);
    let hot: Vec<u64> = (0..20).map(|i| i * 8 + 1).collect();
    for round in 0..10_u64 {
        heat(&w, &hot);
        // It moves units in, and all of them home every third time.
        let app = plan(&w, round % 3 == 2);
        let (stop, killed_after) = (w.stop.clone(), Duration::from_millis(300 + round * 311));
        let killed = w.runtime.spawn(async move {
            let run = async { reorganise::run(&app, &mut |_| {}, stop).await };
            tokio::time::timeout(killed_after, run).await.is_err()
        });
        // A client overwrites hot units meanwhile.
        let mut n = 0;
        while !killed.is_finished() {
            let unit = hot[(n * 7 % hot.len() as u64) as usize];
            write(&w, &mut expected, unit * UNIT + n % 100, 8, (round * 16 + n % 16) as u8);
            n += 1;
            // In the pauses the disk is idle, and batches come to their end.
            std::thread::sleep(Duration::from_millis(if n % 16 == 0 { 200 } else { 0 }));
        }
        w.runtime.block_on(killed).unwrap();
        if round % 2 == 1 {
            w.stop();
            w.start();
        }
        assert!(seen(&w) == expected, "round {round}");
    }
    let report = run(&w, &plan(&w, true));
    assert!(report.in_reserve == 0 && at_home(&w) == expected, "{report:?}");
}

#[test]
fn units_that_are_overwritten_all_the_time_are_moved() {
    let w = World::reorganised_around(12);
    let mut expected = at_home(&w);
    let hot: Vec<u64> = (0..12).map(|i| i * 8 + 1).collect();
    heat(&w, &hot);
    let (app, stop) = (plan(&w, false), w.stop.clone());
    let moves = w.runtime.spawn(async move { reorganise::run(&app, &mut |_| {}, stop).await });
    let deadline = std::time::Instant::now() + TEST_TIMEOUT;
    let mut n = 0;
    while !moves.is_finished() {
        assert!(std::time::Instant::now() < deadline);
        let unit = hot[(n % hot.len() as u64) as usize];
        write(&w, &mut expected, unit * UNIT + n % 100, 8, n as u8);
        n += 1;
        std::thread::sleep(Duration::from_millis(30));
    }
    let report = w.runtime.block_on(moves).unwrap().unwrap();
    // One may be written at the moment when it settles at the last attempt.
    assert!(report.moved >= 11, "{report:?} after {n} writes");
    assert!(n > 12, "{n} writes");
    assert!(seen(&w) == expected);
}

#[test]
fn only_a_session_that_moves_a_unit_may_write_to_its_new_place() {
    let w = World::reorganised(12);
    w.runtime.block_on(async {
        let (mut control, info) = look(w.path("control")).await.unwrap();
        let mut session = Session::open(&mut control, &info, "test", 100, 1_000).await.unwrap();
        let register = |task: u64, lbn: u64| {
            Call::Register(Register {
                task,
                kind: v1::Kind::Write.into(),
                ranges: vec![v1::Range { lbn, count: UNIT }],
                blksize: 8,
                min_pickup: 8,
                point_in_time: false,
            })
        };
        let slots = control.layout(v1::LayoutRequest { export: "data".into() }).await.unwrap().into_inner().slots;
        let first_slot = slots.unwrap().lbn;
        for (task, lbn) in [(1, 0), (2, first_slot), (3, w.area().reserve.lbn)] {
            session.say(register(task, lbn)).await.unwrap();
            let event = session.next().await.unwrap();
            assert!(matches!(&event, Event::Refused(r) if r.why.contains("is reorganised")), "{event:?}");
        }
        let moves = [(4, Some(0)), (5, Some(0)), (6, Some(u32::MAX)), (7, None)];
        let moves = moves.map(|(unit, slot)| UnitMove { unit, slot }).to_vec();
        session.say(Call::Moves(Moves { export: "data".into(), moves })).await.unwrap();
        let Event::Moving(moving) = session.next().await.unwrap() else { panic!("no answer") };
        let refused: Vec<bool> = moving.begun.iter().map(|b| !b.why_not.is_empty()).collect();
        assert_eq!(refused, [false, true, true, true], "{moving:?}");
        assert_eq!(moving.begun[0].to, Some(v1::Range { lbn: first_slot, count: UNIT }));
        session.say(register(8, first_slot)).await.unwrap();
        assert!(matches!(session.next().await.unwrap(), Event::Registered(_)));
        // Not while a task writes there still.
        let settle = v1::Settle { export: "data".into(), units: vec![4] };
        session.say(Call::Settle(settle)).await.unwrap();
        let event = loop {
            match session.next().await.unwrap() {
                Event::Wanted(_) => {}
                event => break event,
            }
        };
        assert!(matches!(&event, Event::Refused(r) if r.why.contains("write task")), "{event:?}");
    });
}
