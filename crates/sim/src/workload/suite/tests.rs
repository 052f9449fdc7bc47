use headtime_disk::{Dur, Kind, Time};

use super::code::{Tool, Work};
use super::files::{FILES, FileActor, Load};
use super::rereader::Rereader;
use super::startup::{Program, Starts};
use super::video::{FRAMES, Player};
use super::*;

const DISK: Disk = Disk { capacity: 100_000_000, sector_bytes: 512 };

fn target() -> Target {
    Target { capacity: DISK.capacity, sector_bytes: 512, geometry: None }
}

/// Runs a suite for `seconds` on a disk that serves one request after another, in `each`.
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
fn the_partition_of_the_files_does_not_grow_with_the_disk() {
    let span = |capacity| {
        let disk = Disk { capacity, ..DISK };
        let (last, sectors) = disk.file(FILES - 1, FILES, files::FILE);
        (last + sectors - disk.file(0, FILES, files::FILE).0) * disk.sector_bytes
    };
    // Twelve files of 5 GB, each with as much behind it; less on a disk without that room.
    assert_eq!((span(1 << 30), span(1 << 34)), (115_000_000_000, 115_000_000_000));
    assert!(span(100_000_000) < 40_000_000_000);
}

#[test]
fn sequential_readers_have_two_windows_under_way_and_writers_as_many_as_a_cache() {
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
    assert_eq!(counts.map(|(kind, random)| count(kind, random)), [2, 1, 8, 32]);
    for load in Load::ALL {
        assert_eq!(load.actors(&DISK, 1).len(), 10);
    }
}

#[test]
fn a_start_takes_its_reads_and_its_thoughts_and_the_next_comes_after_the_pause() {
    let starts = Starts::new(&DISK, Program::XTERM, Time::ZERO, Dur::from_secs(1), 3, 7);
    let mut suite = Suite::new(&target(), vec![Box::new(starts)]);
    run(&mut suite, Dur::from_ms(5), 15);
    let starts = suite.account(0).starts;
    assert_eq!(starts.len(), 3);
    for took in starts {
        // 179 reads of 5 ms, 178 think times of 1 ms and 22 computations of 25 ms on average.
        assert!((Dur::from_ms(1_300)..Dur::from_ms(2_000)).contains(&took), "{took}");
    }
    // Each start-up had a process of its own, and all ended.
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
    // 128 KiB are 131 ms of the video; the ticks take half of the disk's time.
    let fine = dropped(20);
    // Counted up to the last completion, two windows before the end.
    assert_eq!(fine.dropped, 0);
    assert!((20 * FRAMES - 10..=20 * FRAMES).contains(&fine.shown), "{fine:?}");
    let bad = dropped(200);
    assert!(bad.dropped > 20 * FRAMES / 3 && bad.shown > 0, "{bad:?}");
}

/// An actor that submits continually.
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
    // A read and a write per step, 10 ms each, one after another on this disk.
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

/// Returns an actor's first requests with their times, when each is served in `each`.
fn pieces(actor: &mut dyn Actor, n: usize, each: Dur) -> Vec<(Time, Piece)> {
    let mut all = vec![];
    while all.len() < n {
        let Some(due) = actor.next_due() else { break };
        let piece = actor.take();
        all.push((due, piece));
        actor.finished(piece.process, due + each);
    }
    all
}

const READ_TIME: Dur = Dur::from_ms(10);

#[test]
fn the_task_due_first_asks_first_and_completions_go_to_the_task_that_asked() {
    /// Submits the given requests once, of given sizes and processes.
    #[derive(Debug)]
    struct Once(Vec<(Time, u32, u32)>, Vec<u32>);
    impl Actor for Once {
        fn next_due(&self) -> Option<Time> {
            self.0.first().map(|o| o.0)
        }
        fn take(&mut self) -> Piece {
            let (_, process, count) = self.0.remove(0);
            Piece { kind: Kind::Read, lbn: 0, count, sync: true, process }
        }
        fn finished(&mut self, process: u32, _: Time) {
            self.1.push(process);
        }
        fn account(&self) -> Account {
            Account { starts: self.1.iter().map(|p| Dur(u64::from(*p))).collect(), ..Account::default() }
        }
    }
    let ms = |ms| Time::ZERO + Dur::from_ms(ms);
    let one = Once(vec![(ms(1), 0, 8), (ms(3), 7, 16)], vec![]);
    let mut suite = Suite::new(&target(), vec![Box::new(one), Box::new(Once(vec![(ms(2), 0, 32)], vec![]))]);
    let mut owners = vec![];
    while suite.next_due().is_some() {
        let ask = suite.take().unwrap();
        owners.push((ask.due, ask.owner % STEP, ask.owner));
    }
    assert_eq!(owners.iter().map(|o| (o.0, o.1)).collect::<Vec<_>>(), [(ms(1), 0), (ms(2), 1), (ms(3), 0)]);
    suite.finished(owners[2].2, ms(500));
    suite.finished(owners[0].2, ms(1_500));
    assert_eq!((suite.seconds(0), suite.seconds(1).len()), ([16 * 512, 8 * 512].as_slice(), 0));
    assert_eq!(suite.account(0).starts, [Dur(7), Dur(0)]);
}

#[test]
fn in_order_one_piece_lies_behind_the_other_and_at_random_they_lie_all_over_the_file() {
    let (first, sectors) = DISK.file(3, FILES, files::FILE);
    for (kind, random, count) in
        [(Kind::Read, false, 256), (Kind::Read, true, 8), (Kind::Write, false, 1_024), (Kind::Write, true, 8)]
    {
        let mut a = FileActor::new(&DISK, kind, random, (3, FILES), 1);
        let all = pieces(&mut a, 200, READ_TIME);
        // A sequential reader's first windows are shorter.
        let shorter = match (kind, random) {
            (Kind::Read, false) => vec![32, 64, 128],
            _ => vec![],
        };
        assert!(all.iter().all(|p| p.1.kind == kind));
        let counts = shorter.iter().copied().chain(std::iter::repeat(count));
        assert!(all.iter().zip(counts).all(|(p, count)| p.1.count == count));
        let in_order = all.windows(2).filter(|w| w[1].1.lbn == w[0].1.lbn + u64::from(w[0].1.count)).count();
        let far = all.iter().filter(|p| p.1.lbn > first + sectors / 2).count();
        match random {
            false => assert_eq!((in_order, all[0].1.lbn), (199, first)),
            true => assert!(in_order < 3 && (70..130).contains(&far), "{in_order}, {far}"),
        }
        // An actor at its limit of requests in flight submits again after a completion.
        let mut a = FileActor::new(&DISK, kind, random, (3, FILES), 1);
        while a.next_due().is_some() {
            a.take();
        }
        a.finished(0, Time::ZERO + READ_TIME);
        assert_eq!(a.next_due(), Some(Time::ZERO + READ_TIME));
    }
    // Random readers of different files read at different offsets.
    let places = |i| {
        let mut a = FileActor::new(&DISK, Kind::Read, true, (i, FILES), 1);
        let first = DISK.file(i, FILES, files::FILE).0;
        pieces(&mut a, 20, READ_TIME).iter().map(|p| p.1.lbn - first).collect::<Vec<_>>()
    };
    assert_ne!(places(0), places(1));
}

#[test]
fn a_load_is_of_its_kinds_and_each_of_its_actors_has_a_file_of_its_own() {
    for load in Load::ALL {
        let first: Vec<Piece> = load.actors(&DISK, 1).iter_mut().map(|a| a.take()).collect();
        let writers = first.iter().filter(|p| p.kind == Kind::Write).count();
        let small = first.iter().filter(|p| p.count == 8).count();
        let (mixed, random) = (load.name().starts_with("5r5w"), load.name().ends_with("rand"));
        assert_eq!((writers, small), (if mixed { 5 } else { 0 }, if random { 10 } else { 0 }), "{load:?}");
        let room = DISK.file(1, FILES, 1).0 - DISK.file(0, FILES, 1).0;
        let mut files: Vec<u64> = first.iter().map(|p| (p.lbn - DISK.file(0, FILES, 1).0) / room).collect();
        files.sort_unstable();
        assert_eq!(files, (0..10).collect::<Vec<_>>(), "{load:?}");
    }
}

#[test]
fn half_of_a_starts_reads_are_pages_half_are_near_and_each_start_is_another_process() {
    let mut starts = Starts::new(&DISK, Program::KONSOLE, Time::ZERO, Dur::from_secs(1), 4, 7);
    let all = pieces(&mut starts, 1_200, READ_TIME);
    let pages = all.iter().filter(|p| p.1.count == 8).count();
    assert!((540..660).contains(&pages), "{pages}");
    // A few of the others are near, too: 100 MB are a hundredth of their range.
    let near = all.windows(2).filter(|w| w[0].1.lbn.abs_diff(w[1].1.lbn) <= 200_000).count();
    assert!((540..700).contains(&near), "{near}");
    let began = |process| all.iter().find(|p| p.1.process == process).unwrap().0;
    let took = starts.account().starts;
    for process in 1..4 {
        assert_eq!(began(process), began(process - 1) + took[process as usize - 1] + Dur::from_secs(1));
    }
    // Every period, however long a start-up takes, and at once after one that took longer.
    for (period, between) in [(60, Dur::from_secs(60)), (1, Dur::ZERO)] {
        let starts = Starts::new(&DISK, Program::BASH, Time::ZERO, Dur::ZERO, 3, 7);
        let mut starts = starts.every(Dur::from_secs(period));
        let all = pieces(&mut starts, 54, Dur::from_ms(100));
        let took = starts.account().starts;
        let began = |process| all.iter().find(|p| p.1.process == process).unwrap().0;
        assert!(took.iter().all(|t| *t > Dur::from_secs(1) && *t < Dur::from_secs(60)));
        assert_eq!(began(1), Time::ZERO + between.max(took[0]));
    }
}

#[test]
fn a_player_asks_for_a_window_when_it_touches_the_last_one_and_drops_the_frames_of_a_late_one() {
    let mut player = Player::new(&DISK, 1_000_000, 20, Time::ZERO, (0, FILES));
    let (first, window) = (DISK.file(0, FILES, 20_000_000).0, 256);
    // The second when the first is touched, whether that has arrived or not; no third.
    assert_eq!((player.next_due(), player.take().lbn), (Some(Time::ZERO), first));
    assert_eq!((player.next_due(), player.take().lbn), (Some(Time::ZERO), first + window));
    assert_eq!(player.next_due(), None);
    player.finished(0, Time::ZERO + READ_TIME);
    // The third when the first has been played, from the first second on.
    let played = Time::ZERO + Dur::from_secs(1) + Dur(u64::from(window as u32) * 512 * 1_000);
    assert_eq!((player.next_due(), player.take().lbn), (Some(played), first + 2 * window));
    // The second is five seconds late, and nothing is skipped.
    let late = Time::ZERO + Dur::from_secs(6);
    player.finished(0, late);
    assert_eq!((player.next_due(), player.take().lbn), (Some(late), first + 3 * window));
    // The frames of the first window were shown, 3 of them, and not those of the five seconds
    // after.
    let dropped = player.account().dropped;
    assert!((5 * FRAMES - 5..=5 * FRAMES).contains(&dropped), "{dropped}");
}

#[test]
fn a_player_that_starves_drops_what_it_does_not_get_and_a_start_that_is_cut_off_counts() {
    let mut player = Player::new(&DISK, 1_000_000, 20, Time::ZERO, (0, FILES));
    player.take();
    player.ended(Time::ZERO + Dur::from_secs(11));
    // Ten seconds of the clip, which begins after a second.
    assert_eq!((player.account().shown, player.account().dropped), (0, 10 * FRAMES));
    let mut starts = Starts::new(&DISK, Program::BASH, Time::ZERO, Dur::from_secs(1), 2, 7);
    let end = pieces(&mut starts, 19, READ_TIME)[18].0 + Dur::from_secs(60);
    starts.ended(end);
    let Account { starts: took, unfinished, .. } = starts.account();
    assert_eq!((took.len(), unfinished), (1, Some(end.since(Time::ZERO + took[0] + Dur::from_secs(1)))));
    // None is cut off between two of them.
    let mut starts = Starts::new(&DISK, Program::BASH, Time::ZERO, Dur::from_secs(1), 1, 7);
    pieces(&mut starts, 18, READ_TIME);
    starts.ended(end);
    assert_eq!(starts.account().unfinished, None);
}

#[test]
fn a_tools_step_is_its_reads_its_work_and_its_writes_of_their_sizes_at_the_end_of_the_programs() {
    for tool in [Tool::COMPILE, Tool::CHECKOUT, Tool::MERGE] {
        let mut work = Work::new(&DISK, tool, Time::ZERO, 3);
        let (first, programs) = DISK.programs();
        let tree = first + programs - DISK.sectors(600_000_000);
        let mut begun = Time::ZERO;
        for step in 0..20 {
            // Every second step of a compilation has a read.
            let reads = match tool.reads_permille {
                500 => step % 2,
                permille => permille / 1000,
            };
            let all = pieces(&mut work, (reads + tool.writes) as usize, READ_TIME);
            for (i, (_, p)) in (0..).zip(&all) {
                let (kind, bytes) = match i < reads {
                    true => (Kind::Read, tool.read_bytes),
                    false => (Kind::Write, tool.write_bytes),
                };
                assert_eq!((p.kind, u64::from(p.count), p.sync), (kind, bytes / 512, kind == Kind::Read));
                assert!(tree <= p.lbn && p.lbn + u64::from(p.count) <= first + programs);
            }
            let write = all[reads as usize].0;
            assert_eq!(write, begun + Dur(READ_TIME.0 * u64::from(reads)) + tool.work, "{tool:?}, step {step}");
            begun = write;
        }
        assert_eq!(work.account().steps, 20);
    }
}

#[test]
fn a_tool_waits_when_the_cache_has_256_of_its_writes_and_goes_on_when_one_is_done() {
    let mut work = Work::new(&DISK, Tool::CHECKOUT, Time::ZERO, 3);
    let (mut writes, mut now) = (0, Time::ZERO);
    while let Some(due) = work.next_due() {
        assert!(writes <= 256);
        now = due + READ_TIME;
        match work.take().kind {
            Kind::Read => work.finished(0, now),
            _ => writes += 1,
        }
    }
    assert_eq!(writes, 256);
    work.finished(1, now + READ_TIME);
    assert_eq!((work.next_due(), work.take().kind), (Some(now + READ_TIME), Kind::Write));
}

#[test]
fn who_reads_again_reads_the_same_pieces_one_after_the_other() {
    let mut again = Rereader::new(&DISK, 512 << 10);
    let lbns: Vec<u64> = pieces(&mut again, 9, READ_TIME).iter().map(|p| p.1.lbn - DISK.capacity / 2).collect();
    assert_eq!(lbns, [0, 256, 512, 768, 0, 256, 512, 768, 0]);
}
