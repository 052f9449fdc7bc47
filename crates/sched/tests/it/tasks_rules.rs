//! The rules of the task manager, one by one, small enough to be checked by hand.

use headtime_disk::{Dur, Kind, Outcome, Time};
use headtime_sched::internals::manager::TaskManager;
use headtime_sched::internals::tasks::{Wants, Who};
use headtime_sched::internals::wanted::Wanted;
use headtime_sched::{Rate, SessionId, TaskError, TaskEvent, TaskId, TaskLimits, TaskRange, TaskSpec};

const NOW: Time = Time::ZERO;

fn range(lbn: u64, count: u64) -> TaskRange {
    TaskRange { lbn, count }
}

fn manager() -> (TaskManager, SessionId) {
    let mut tasks = TaskManager::new(TaskLimits::default(), 10_000);
    let session = tasks.open(100).expect("there is room");
    (tasks, session)
}

fn task(tasks: &mut TaskManager, session: SessionId, kind: Kind, ranges: &[TaskRange], unit: u32) -> TaskId {
    let spec = TaskSpec { kind, ranges: ranges.to_vec(), blksize: unit, min_pickup: unit };
    tasks.register(session, &spec).expect("there is room")
}

fn events(tasks: &mut TaskManager) -> Vec<TaskEvent> {
    std::iter::from_fn(|| tasks.next_event()).collect()
}

fn read(tasks: &mut TaskManager, lbn: u64, count: u32) -> Vec<TaskEvent> {
    tasks.completed(Kind::Read, lbn, count, Outcome::Ok, NOW);
    events(tasks)
}

fn wanted(tasks: &TaskManager, kind: Kind) -> Vec<(u64, u64)> {
    let mut out = Wanted::new();
    out.reset(0, 10_000);
    tasks.wanted(Who::Anyone, kind, &mut out);
    out.runs(0, 10_000).collect()
}

/// Requests a write's data, and grants it.
fn grant(tasks: &mut TaskManager, what: TaskRange) {
    assert!(tasks.ask(what));
    for event in events(tasks) {
        if let TaskEvent::GetBuffer { task, range, .. } = event {
            assert!(tasks.answer(task, range, true));
        }
    }
    assert!(tasks.granted(what));
}

#[test]
fn any_read_delivers_the_whole_units_inside_it_to_everyone_once() {
    let (mut tasks, session) = manager();
    let a = task(&mut tasks, session, Kind::Read, &[range(0, 100)], 10);
    let b = task(&mut tasks, session, Kind::Read, &[range(15, 10), range(40, 5)], 10);
    let delivered = |task, range| TaskEvent::Delivered { session, task, range };
    assert_eq!(read(&mut tasks, 5, 30), [delivered(a, range(10, 20)), delivered(b, range(15, 10))]);
    assert_eq!(read(&mut tasks, 5, 30), []);
    assert_eq!(wanted(&tasks, Kind::Read), [(0, 10), (30, 100)]);
    let done = TaskEvent::Done { session, task: b };
    assert_eq!(
        read(&mut tasks, 0, 45),
        [delivered(a, range(0, 10)), delivered(a, range(30, 10)), delivered(b, range(40, 5)), done]
    );
    assert_eq!(tasks.task(b), Err(TaskError::NoTask(b)));
    assert_eq!(tasks.task(a).expect("it goes on").left_sectors, 60);
}

#[test]
fn an_unreadable_block_is_reported_and_the_task_continues() {
    let (mut tasks, session) = manager();
    let a = task(&mut tasks, session, Kind::Read, &[range(0, 100)], 10);
    tasks.completed(Kind::Read, 0, 100, Outcome::MediaError { lbn: 57 }, NOW);
    assert_eq!(events(&mut tasks), [TaskEvent::Failed { session, task: a, range: range(50, 10) }]);
    assert_eq!(wanted(&tasks, Kind::Read), [(0, 50), (60, 100)]);
    assert_eq!(read(&mut tasks, 0, 100).last(), Some(&TaskEvent::Done { session, task: a }));
}

#[test]
fn a_client_that_takes_nothing_is_given_no_more_than_its_window() {
    let (mut tasks, session) = manager();
    let other = tasks.open(1).expect("there is room");
    let a = task(&mut tasks, session, Kind::Read, &[range(0, 1_000)], 8);
    let b = task(&mut tasks, other, Kind::Read, &[range(500, 8)], 8);
    tasks.set_window(session, 20).expect("it is open");
    assert_eq!(read(&mut tasks, 0, 100), [TaskEvent::Delivered { session, task: a, range: range(0, 24) }]);
    assert_eq!(wanted(&tasks, Kind::Read), [(500, 508)]);
    assert!(!tasks.any(Who::Session(session), Kind::Read));
    assert_eq!(tasks.draw(0), Some(other));
    // Other sessions are unaffected.
    assert_eq!(read(&mut tasks, 400, 200)[0].task(), b);
    tasks.taken(session, 5).expect("it is open");
    assert_eq!(read(&mut tasks, 400, 100), [TaskEvent::Delivered { session, task: a, range: range(400, 8) }]);
}

#[test]
fn a_suspended_session_gets_nothing_and_loses_nothing() {
    let (mut tasks, session) = manager();
    task(&mut tasks, session, Kind::Read, &[range(0, 16)], 8);
    tasks.suspend(session).expect("it is open");
    assert_eq!(read(&mut tasks, 0, 16), []);
    assert_eq!((wanted(&tasks, Kind::Read), tasks.draw(0)), (vec![], None));
    tasks.resume(session).expect("it is open");
    assert_eq!(read(&mut tasks, 0, 16).len(), 2);
}

#[test]
fn not_now_leaves_a_unit_alone_for_a_while_and_so_does_no_answer() {
    let (mut tasks, session) = manager();
    let a = task(&mut tasks, session, Kind::Write, &[range(0, 8)], 8);
    let b = task(&mut tasks, session, Kind::Write, &[range(8, 8)], 8);
    let c = task(&mut tasks, session, Kind::Write, &[range(16, 8)], 8);
    tasks.set_backoff(Dur::from_ms(20));
    assert!(tasks.ask(range(0, 24)));
    assert!(!tasks.ask(range(8, 8)), "it is being asked for already");
    assert_eq!(events(&mut tasks).len(), 3);
    assert!(tasks.answer(a, range(0, 8), true));
    assert!(tasks.answer(b, range(8, 8), false));
    assert!(!tasks.granted(range(0, 24)));
    assert_eq!(wanted(&tasks, Kind::Write), []);
    tasks.release(Kind::Write, range(0, 24), Time::ZERO + Dur::from_ms(1));
    assert_eq!(wanted(&tasks, Kind::Write), [(0, 8)], "what was granted is offered again");
    assert!(!tasks.answer(c, range(16, 8), true), "too late");
    let until = tasks.next_wakeup().expect("two wait");
    assert_eq!(until, Time::ZERO + Dur::from_ms(21));
    tasks.advance(until);
    assert_eq!(wanted(&tasks, Kind::Write), [(0, 24)]);
}

#[test]
fn old_data_is_never_put_over_new() {
    let (mut tasks, session) = manager();
    let old = task(&mut tasks, session, Kind::Write, &[range(0, 80)], 8);
    let new = task(&mut tasks, session, Kind::Write, &[range(20, 10)], 8);
    let superseded = |task, range| TaskEvent::Superseded { session, task, range };
    // All of each unit that is touched: half a unit cannot be written without the other half.
    assert_eq!(events(&mut tasks), [superseded(old, range(16, 16))]);
    assert_eq!(wanted(&tasks, Kind::Write), [(0, 16), (20, 30), (32, 80)]);
    assert!(tasks.ask(range(32, 16)));
    events(&mut tasks);
    tasks.answer(old, range(32, 16), true);
    tasks.foreground_write(29, 4);
    let done = TaskEvent::Superseded { session, task: new, range: range(28, 2) };
    assert_eq!(events(&mut tasks), [superseded(old, range(32, 8)), done]);
    assert!(!tasks.granted(range(32, 16)), "the data that was granted is old now");
    // A read of a sector is unaffected by writes to it.
    let reader = task(&mut tasks, session, Kind::Read, &[range(0, 8)], 8);
    tasks.completed(Kind::Write, 0, 100, Outcome::Ok, NOW);
    assert_eq!(events(&mut tasks), []);
    assert_eq!(tasks.task(reader).expect("it goes on").left_sectors, 8);
}

#[test]
fn what_is_in_flight_when_newer_data_comes_is_written_or_else_superseded() {
    for (outcome, written) in [(Outcome::Ok, true), (Outcome::Dead, false)] {
        let (mut tasks, session) = manager();
        let a = task(&mut tasks, session, Kind::Write, &[range(0, 24)], 8);
        grant(&mut tasks, range(0, 16));
        tasks.picked(range(0, 16));
        assert_eq!(wanted(&tasks, Kind::Write), [(16, 24)]);
        tasks.foreground_write(8, 1);
        assert_eq!(events(&mut tasks), []);
        tasks.completed(Kind::Write, 0, 16, outcome, NOW);
        let expected = match written {
            true => TaskEvent::Written { session, task: a, range: range(0, 16) },
            false => TaskEvent::Superseded { session, task: a, range: range(8, 8) },
        };
        assert_eq!(events(&mut tasks), [expected]);
        let rest = if written { vec![(16, 24)] } else { vec![(0, 8), (16, 24)] };
        assert_eq!(wanted(&tasks, Kind::Write), rest);
    }
}

#[test]
fn nothing_is_heard_of_an_aborted_task() {
    let (mut tasks, session) = manager();
    let a = task(&mut tasks, session, Kind::Write, &[range(0, 16)], 8);
    let b = task(&mut tasks, session, Kind::Read, &[range(0, 16)], 8);
    grant(&mut tasks, range(0, 16));
    tasks.picked(range(0, 16));
    tasks.abort(a).expect("it exists");
    tasks.completed(Kind::Write, 0, 16, Outcome::Ok, NOW);
    tasks.completed(Kind::Read, 0, 8, Outcome::Ok, NOW);
    tasks.abort(b).expect("it exists");
    assert_eq!(events(&mut tasks), []);
    assert_eq!(tasks.sessions().next().expect("it is open").untaken_sectors, 0);
}

#[test]
fn a_promoted_task_is_handed_out_a_few_sectors_at_a_time() {
    let (mut tasks, session) = manager();
    let a = task(&mut tasks, session, Kind::Read, &[range(100, 40), range(0, 10)], 8);
    tasks.promote(a).expect("it exists");
    let piece = |lbn, count| Some((a, Kind::Read, range(lbn, count)));
    assert_eq!(tasks.next_promoted(20), piece(0, 10));
    assert_eq!(tasks.next_promoted(20), piece(100, 16));
    // It stays wanted for free: whichever comes first.
    read(&mut tasks, 116, 8);
    assert_eq!(tasks.next_promoted(20), piece(124, 16));
    assert_eq!(tasks.next_promoted(20), None);
    read(&mut tasks, 100, 16);
    tasks.completed(Kind::Read, 124, 16, Outcome::Dead, NOW);
    assert_eq!(tasks.next_promoted(20), piece(124, 16), "it has to be done again");
    tasks.release(Kind::Read, range(0, 10), NOW);
    assert_eq!(tasks.next_promoted(1), piece(0, 8), "one unit is the least");
}

/// Ten sectors at a time, of a session that may receive one a second.
#[test]
fn promoted_tasks_do_not_wait_for_a_rate_and_what_they_receive_counts_once() {
    let (mut tasks, session) = manager();
    tasks.set_rate(session, Rate::per_second(512.0), 512, NOW).expect("it is open");
    let delivered = |task, range| TaskEvent::Delivered { session, task, range };
    let main = task(&mut tasks, session, Kind::Read, &[range(0, 100)], 10);
    assert_eq!(read(&mut tasks, 0, 10), [delivered(main, range(0, 10))]);
    assert_eq!(read(&mut tasks, 10, 10), []);

    let pushed = task(&mut tasks, session, Kind::Read, &[range(20, 20)], 10);
    tasks.promote(pushed).expect("it exists");
    assert_eq!(tasks.next_promoted(10), Some((pushed, Kind::Read, range(20, 10))));
    assert!(tasks.is_needed(Kind::Read, range(20, 10)) && !tasks.is_needed(Kind::Read, range(40, 10)));
    // The other task receives as much, not all of the command.
    let both = [main, pushed].map(|task| delivered(task, range(20, 10)));
    assert_eq!(read(&mut tasks, 10, 20), both);
    tasks.completed(Kind::Read, 30, 10, Outcome::MediaError { lbn: 35 }, NOW);
    let failed = |task| TaskEvent::Failed { session, task, range: range(30, 10) };
    assert_eq!(events(&mut tasks), [failed(main), failed(pushed), TaskEvent::Done { session, task: pushed }]);
    assert_eq!(tasks.next_wakeup(), Some(NOW + Dur::from_secs(20)));

    let write = task(&mut tasks, session, Kind::Write, &[range(200, 10)], 10);
    assert!(!tasks.ask(range(200, 10)));
    tasks.promote(write).expect("it exists");
    assert_eq!(tasks.next_promoted(10), Some((write, Kind::Write, range(200, 10))));
    grant(&mut tasks, range(200, 10));
    tasks.picked(range(200, 10));
    tasks.completed(Kind::Write, 200, 10, Outcome::Ok, NOW);
    let written = TaskEvent::Written { session, task: write, range: range(200, 10) };
    assert_eq!(events(&mut tasks), [written, TaskEvent::Done { session, task: write }]);

    assert_eq!(wanted(&tasks, Kind::Read), []);
    assert_eq!(tasks.next_wakeup(), Some(NOW + Dur::from_secs(30)));
    tasks.advance(NOW + Dur::from_secs(30));
    assert_eq!(wanted(&tasks, Kind::Read), [(10, 20), (40, 100)]);
    // A suspended session does not receive promoted work, either.
    let pushed = task(&mut tasks, session, Kind::Read, &[range(40, 10)], 10);
    tasks.promote(pushed).expect("it exists");
    tasks.suspend(session).expect("it is open");
    assert_eq!((tasks.next_promoted(10), read(&mut tasks, 40, 10)), (None, vec![]));
}

#[test]
fn a_spec_at_fault_is_refused_with_its_fault() {
    let (mut tasks, session) = manager();
    let mut refused = |kind, ranges: &[TaskRange], blksize, min_pickup| {
        let spec = TaskSpec { kind, ranges: ranges.to_vec(), blksize, min_pickup };
        tasks.register(session, &spec).expect_err("it is at fault").to_string()
    };
    let one = [range(0, 8)];
    assert_eq!(refused(Kind::Flush, &one, 8, 8), "a task reads or writes");
    assert_eq!(refused(Kind::Read, &[], 8, 8), "range 0 is empty, or there is none");
    assert_eq!(refused(Kind::Read, &[range(0, 8), range(9, 0)], 8, 8), "range 1 is empty, or there is none");
    assert_eq!(refused(Kind::Read, &[range(9_999, 2)], 8, 8), "range 0 ends at sector 10001, and the disk has 10000");
    assert_eq!(
        refused(Kind::Read, &[range(u64::MAX, 2)], 8, 8),
        format!("range 0 ends at sector {}, and the disk has 10000", u64::MAX)
    );
    assert_eq!(refused(Kind::Read, &[range(7, 8), range(0, 8)], 8, 8), "the ranges at sectors 0 and 7 overlap");
    for (blksize, min_pickup) in [(0, 8), (8, 0), (8, 12), (1, 65_537)] {
        assert!(refused(Kind::Read, &one, blksize, min_pickup).contains("expected blksize 1 or more"));
    }
    assert_eq!(tasks.open(0), Err(TaskError::Priority(0)));
    assert_eq!(tasks.open(1_000_001), Err(TaskError::Priority(1_000_001)));
    assert_eq!(tasks.suspend(SessionId(99)), Err(TaskError::NoSession(SessionId(99))));
    tasks.close(session).expect("it is open");
    assert_eq!(tasks.memory().total(), 0);
}
