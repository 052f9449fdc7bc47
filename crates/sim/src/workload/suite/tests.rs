use headtime_disk::command::Kind;
use headtime_disk::time::{Dur, Time};

use super::code::{Tool, Work};
use super::files::{FILES, FileActor, Load};
use super::startup::{Program, Starts};
use super::video::{FRAMES, Player};
use super::*;

const DISK: Disk = Disk { capacity: 100_000_000, sector_bytes: 512 };

fn target() -> Target {
    Target { capacity: DISK.capacity, sector_bytes: 512, geometry: None }
}

/// Runs a suite on a disk that takes so long for every request, one after the other, for so many seconds.
fn run(suite: &mut Suite, each: Dur, seconds: u64) {
    let (mut now, end) = (Time::ZERO, Time::ZERO + Dur::from_secs(seconds));
    let mut waiting = std::collections::VecDeque::new();
    let mut free_at: Option<Time> = None;
    while now < end {
        while suite.next_due().is_some_and(|due| due <= now) {
            let ask = suite.take().unwrap();
            assert!(ask.lbn + u64::from(ask.count) <= DISK.capacity && ask.count > 0, "{ask:?}");
            waiting.push_back(ask.owner);
        }
        if free_at.is_none() && !waiting.is_empty() {
            free_at = Some(now + each);
        }
        let Some(next) = [free_at, suite.next_due()].into_iter().flatten().min() else { return };
        now = now.max(next);
        if free_at.is_some_and(|t| t <= now) {
            free_at = None;
            suite.finished(waiting.pop_front().unwrap(), now);
        }
    }
}

#[test]
fn files_lie_apart_and_behind_the_programs() {
    let files: Vec<(u64, u64)> = (0..FILES).map(|i| DISK.file(i, FILES, 5_000_000_000)).collect();
    assert!(files.windows(2).all(|f| f[0].0 + f[0].1 <= f[1].0));
    let (first, programs) = DISK.programs();
    assert!(first + programs <= files[0].0 && files[11].0 + files[11].1 <= DISK.capacity);
}

#[test]
fn readers_have_one_request_under_way_and_writers_as_many_as_a_cache() {
    let count = |kind, random| {
        let mut a = FileActor::new(&DISK, kind, random, (3, FILES), 1);
        let (first, sectors) = DISK.file(3, FILES, files::FILE);
        let mut n = 0;
        while a.next_due().is_some() {
            let p = a.take();
            assert!(first <= p.lbn && p.lbn + u64::from(p.count) <= first + sectors);
            assert_eq!(p.sync, kind == Kind::Read);
            n += 1;
        }
        n
    };
    let counts = [(Kind::Read, false), (Kind::Read, true), (Kind::Write, false), (Kind::Write, true)];
    assert_eq!(counts.map(|(kind, random)| count(kind, random)), [1, 1, 8, 32]);
    for load in Load::ALL {
        assert_eq!(load.actors(&DISK, 1).len(), 10);
    }
}

#[test]
fn a_start_takes_its_reads_and_its_thoughts_and_the_next_comes_after_the_pause() {
    let starts = Starts::new(&DISK, Program::XTERM, Time::ZERO, Dur::from_secs(1), 3, 7);
    let mut suite = Suite::new(&target(), vec![Box::new(starts)]);
    run(&mut suite, Dur::from_ms(5), 12);
    let starts = suite.account(0).starts;
    assert_eq!(starts.len(), 3);
    for took in starts {
        // 179 reads of 5 ms and 178 thoughts of 1 ms in the mean.
        assert!((Dur::from_ms(1_000)..Dur::from_ms(1_200)).contains(&took), "{took}");
    }
    // Each was a process of its own, and all of it came to an end.
    assert_eq!(suite.next_due(), None);
}

#[test]
fn frames_are_dropped_when_the_disk_is_too_slow_for_them() {
    let dropped = |ms| {
        let player = Player::new(&DISK, 1_000_000, 20, Time::ZERO, (0, FILES));
        let mut suite = Suite::new(&target(), vec![Box::new(player), Box::new(Ticks(Time::ZERO))]);
        run(&mut suite, Dur::from_ms(ms), 25);
        suite.account(0)
    };
    // 128 KiB are 131 ms of the clip; the ticks take half of the disk's time.
    let fine = dropped(20);
    // Counted up to the last answer, which comes two windows before the end.
    assert_eq!(fine.dropped, 0);
    assert!((20 * FRAMES - 10..=20 * FRAMES).contains(&fine.shown), "{fine:?}");
    let bad = dropped(200);
    assert!(bad.dropped > 20 * FRAMES / 3 && bad.shown > 0, "{bad:?}");
}

/// Asks for something all the time.
#[derive(Debug)]
struct Ticks(Time);

impl Actor for Ticks {
    fn next_due(&self) -> Option<Time> {
        (self.0 != Time::NEVER).then_some(self.0)
    }
    fn take(&mut self) -> Piece {
        self.0 = Time::NEVER;
        Piece { kind: Kind::Read, lbn: 0, count: 8, sync: true, process: 0 }
    }
    fn finished(&mut self, _: u32, now: Time) {
        self.0 = now;
    }
}

#[test]
fn a_tool_goes_on_while_the_cache_writes_and_waits_when_that_is_full() {
    let suite = |ms| {
        let work = Work::new(&DISK, Tool::CHECKOUT, Time::ZERO, 3);
        let mut suite = Suite::new(&target(), vec![Box::new(work)]);
        run(&mut suite, Dur::from_ms(ms), 60);
        suite.account(0).steps
    };
    // A read and a write a step, 10 ms each, one after the other on this disk.
    let steps = suite(10);
    assert!((2_700..3_400).contains(&steps), "{steps}");
    assert!(suite(20) < steps);
}

#[test]
fn what_was_moved_is_counted_by_second() {
    let reader = FileActor::new(&DISK, Kind::Read, false, (0, FILES), 1);
    let mut suite = Suite::new(&target(), vec![Box::new(reader)]);
    run(&mut suite, Dur::from_ms(10), 5);
    assert_eq!(suite.second(2), 100 * (128 << 10));
    assert_eq!(suite.seconds(0)[2], suite.second(2));
    assert!((suite.rate(1, 4) - f64::from(100 * (128 << 10))).abs() < 1.0);
}
