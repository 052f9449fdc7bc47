//! Tests of the plan.

use super::*;

const SECOND: Dur = Dur(1_000_000_000);

fn plan() -> Plan {
    Plan::new(DriveSize { sectors: 1 << 20, sector_bytes: 512 })
}

fn unreadable(lbn: u64, count: u64, when: When) -> Fault {
    Fault { what: What::Unreadable(Range { lbn, count }), when }
}

fn planted(lbn: u64, count: u64) -> Planted {
    Planted::Unreadable { lbn, count }
}

fn states(plan: &Plan, drive: &[Planted]) -> Vec<(u32, String, Option<u64>)> {
    plan.list(drive).into_iter().map(|l| (l.number, l.state, l.unreadable_sectors)).collect()
}

#[test]
fn faults_happen_at_their_time_or_their_command_and_in_order() {
    let (mut p, start) = (plan(), Time(7));
    p.add(unreadable(1, 1, When::After(Dur(2 * SECOND.0))), start).unwrap();
    p.add(unreadable(2, 1, When::After(SECOND)), start).unwrap();
    p.add(unreadable(3, 1, When::AfterCommands(2)), start).unwrap();
    assert_eq!((p.due(start + Dur(SECOND.0 - 1)), p.next_time()), (None, Some(start + SECOND)));
    let late = start + Dur(3 * SECOND.0);
    let both = [p.due(late), p.due(late), p.due(late)];
    assert_eq!(both, [Some(Action::Plant(vec![planted(2, 1)])), Some(Action::Plant(vec![planted(1, 1)])), None]);
    // The first two commands are not affected.
    for _ in 0..2 {
        p.count_command();
        assert_eq!(p.due(late), None);
    }
    p.count_command();
    assert_eq!((p.due(late), p.next_time()), (Some(Action::Plant(vec![planted(3, 1)])), None));
    // Commands and time count from when a fault is added.
    p.add(unreadable(4, 1, When::AfterCommands(1)), late).unwrap();
    p.count_command();
    assert_eq!(p.due(late), None);
    p.count_command();
    assert!(p.due(late).is_some());
}

#[test]
fn what_was_written_is_no_longer_listed_as_unreadable() {
    let mut p = plan();
    p.add(unreadable(10, 10, When::Now), Time::ZERO).unwrap();
    p.add(Fault { what: What::Hang { lasts: SECOND }, when: When::Now }, Time::ZERO).unwrap();
    p.add(Fault { what: What::WriteCache { on: true }, when: When::After(SECOND) }, Time::ZERO).unwrap();
    assert!(states(&p, &[]).iter().all(|s| s.1 == "waiting"));
    while p.due(Time::ZERO).is_some() {}
    let hang = Planted::Hang { at: Time::ZERO, takes: SECOND };
    let (active, waiting, over) = ("active".to_string(), "waiting".to_string(), "over".to_string());
    let now = states(&p, &[planted(10, 3), planted(15, 5), hang]);
    assert_eq!(now, [(1, active.clone(), Some(8)), (2, active.clone(), None), (3, waiting, None)]);
    while p.due(Time::ZERO + SECOND).is_some() {}
    assert_eq!(states(&p, &[]), [(1, active, Some(0)), (2, over.clone(), None), (3, over, None)]);
}

#[test]
fn clearing_one_fault_leaves_the_others() {
    let mut p = plan();
    for lbn in [10, 20] {
        p.add(unreadable(lbn, 8, When::Now), Time::ZERO).unwrap();
    }
    p.add(Fault { what: What::PowerOff { lasts: None, lost: Lost::All }, when: When::After(SECOND) }, Time::ZERO)
        .unwrap();
    while p.due(Time::ZERO).is_some() {}
    assert_eq!(p.clear(Some(9)), Err(PlanError::Number(9)));
    let cleared = p.clear(Some(1)).unwrap();
    assert_eq!(cleared, Cleared { faults: 1, planted: vec![planted(10, 8)], ..Cleared::default() });
    // The power has not failed yet, and will not.
    let all = p.clear(None).unwrap();
    assert_eq!((all.faults, all.power, all.planted), (2, false, vec![planted(20, 8)]));
    assert_eq!((p.due(Time::ZERO + SECOND), p.list(&[])), (None, vec![]));
    // Numbers are not used again.
    assert_eq!(p.add(unreadable(1, 1, When::Now), Time::ZERO), Ok(4));
}

#[test]
fn a_drives_faults_without_some_are_the_rest() {
    let slow = Planted::Slow { lbn: 5, count: 1, turns: 3 };
    let drive = [planted(0, 10), slow.clone(), slow.clone(), planted(20, 5), Planted::Death { at: Time::ZERO }];
    let left = without(&drive, &[planted(3, 2), planted(8, 15), slow.clone(), Planted::Death { at: Time::ZERO }]);
    assert_eq!(left, [planted(0, 3), planted(5, 3), slow, planted(23, 2)]);
    assert_eq!(without(&drive, &[]), drive);
    assert_eq!(merged(&[planted(5, 5), planted(0, 5), planted(2, 1), planted(20, 1)]), [(0, 10), (20, 21)].into());
}

#[test]
fn the_numbers_of_faults_and_of_ranges_are_limited() {
    let mut p = plan();
    let worn =
        |unreadable| Fault { what: What::Worn { unreadable, slow: 1, revolutions: 1, seed: 1 }, when: When::Now };
    p.add(worn(MAX_RANGES - 1), Time::ZERO).unwrap();
    assert_eq!(p.add(worn(0), Time::ZERO), Err(PlanError::Ranges(MAX_RANGES + 1)));
    assert_eq!(p.add(worn(u64::MAX), Time::ZERO), Err(PlanError::Ranges(u64::MAX)));
    for _ in 1..MAX_FAULTS {
        p.add(Fault { what: What::Failure, when: When::Now }, Time::ZERO).unwrap();
    }
    assert_eq!(p.add(Fault { what: What::Failure, when: When::Now }, Time::ZERO), Err(PlanError::Faults));
}
