//! The machine tested against a simple model: clients, a scheduler that carries its calls out in
//! every permitted order, a drive whose cache may lose data, faults, lost sessions, and a power
//! failure at any point.

mod plain;

use std::collections::{BTreeMap, VecDeque};

use headtime_disk::Kind;

use super::{Ask, Call, Event, Limits, MIN_MEMORY, Machine};
use crate::tasks::TaskRange;
pub(super) use plain::Plain;
use plain::{Chance, data, stamp};

/// Bytes of a sector: large, so that the smallest cache is soon full.
const SECTOR: u32 = 8192;
/// Sectors of the disk: few, so that requests overlap.
const SECTORS: u64 = 192;

#[derive(Clone, Copy, Debug)]
struct Sector {
    /// What is on the media, and what a read returns.
    media: u64,
    there: u64,
    /// The write guaranteed to be safe, the newest acknowledged one, the newest requested one.
    floor: u64,
    acknowledged: u64,
    asked: u64,
    /// The task that has data for it, and that data.
    task: Option<(u64, Option<u64>)>,
}

/// The pending request of a client.
#[derive(Debug)]
enum Waits {
    Read { range: TaskRange, least: Vec<u64> },
    Write { range: TaskRange, stamp: u64, fua: bool },
    Flush { floors: Vec<u64> },
}

struct World {
    machine: Machine<Plain>,
    chance: Chance,
    sectors: Vec<Sector>,
    /// Foreground requests in the order of arrival.
    foreground: VecDeque<Call<Plain>>,
    /// Remaining sectors of each task.
    tasks: BTreeMap<u64, u64>,
    free: bool,
    waits: BTreeMap<u64, Waits>,
    next: u64,
    /// Counters: answers of each kind, free and foreground sectors, faults.
    seen: [u64; 6],
}

const READS: usize = 0;
const FLUSHES: usize = 1;
const FUAS: usize = 2;
const FREE: usize = 3;
const THROUGH: usize = 4;
const FAULTS: usize = 5;

impl World {
    fn new(seed: u64, fills: bool) -> World {
        let mut machine = Machine::new(SECTOR, Limits { memory: MIN_MEMORY }, fills);
        machine.connected();
        let none = Sector { media: 0, there: 0, floor: 0, acknowledged: 0, asked: 0, task: None };
        World {
            machine,
            chance: Chance::seeded(seed),
            sectors: vec![none; SECTORS as usize],
            foreground: VecDeque::new(),
            tasks: BTreeMap::new(),
            free: true,
            waits: BTreeMap::new(),
            next: 0,
            seen: [0; 6],
        }
    }

    fn of(&mut self, range: &TaskRange) -> &mut [Sector] {
        &mut self.sectors[range.lbn as usize..range.end() as usize]
    }

    /// Submits a client's request.
    fn client(&mut self) {
        self.next += 1;
        let (ticket, chance) = (self.next, &mut self.chance);
        // Most are near each other, so that neighbours and overlaps are common.
        let lbn = chance.below(SECTORS);
        let count = (1 + chance.below(12)).min(SECTORS - lbn);
        let range = TaskRange { lbn, count };
        let (kind, fua) = match chance.below(20) {
            0..=7 => (Kind::Read, false),
            8 => (Kind::Flush, false),
            n => (Kind::Write, n == 9),
        };
        let mut bytes = Vec::new();
        let waits = match kind {
            // Overlapping requests are carried out in order: acknowledged or not, what was
            // requested before is read.
            Kind::Read => Waits::Read { range, least: self.of(&range).iter().map(|s| s.asked).collect() },
            Kind::Flush => Waits::Flush { floors: self.sectors.iter().map(|s| s.acknowledged).collect() },
            Kind::Write => {
                bytes = data(ticket, count);
                self.of(&range).iter_mut().for_each(|s| s.asked = ticket);
                Waits::Write { range, stamp: ticket, fua }
            }
        };
        self.waits.insert(ticket, waits);
        let (lbn, count) = if kind == Kind::Flush { (0, 0) } else { (lbn, count as u32) };
        self.machine.ask(Ask { kind, lbn, count, fua, owner: 0, data: bytes, ticket });
    }

    /// Fetches the machine's answers and calls; sometimes not all of them.
    fn listen(&mut self) {
        while let Some((ticket, answer)) = self.machine.next_answer() {
            let waits = self.waits.remove(&ticket).expect("it is answered once");
            match (waits, answer) {
                (Waits::Read { range, least }, Ok(found)) => {
                    let stamps: Vec<u64> = found.chunks(SECTOR as usize).map(stamp).collect();
                    assert_eq!(stamps.len() as u64, range.count);
                    for ((s, least), found) in self.of(&range).iter().zip(least).zip(stamps) {
                        assert!(least <= found && found <= s.asked, "{least} <= {found} <= {}", s.asked);
                    }
                    self.seen[READS] += 1;
                }
                (Waits::Write { range, stamp, fua }, Ok(_)) => {
                    for s in self.of(&range) {
                        s.acknowledged = s.acknowledged.max(stamp);
                        if fua {
                            s.floor = s.floor.max(stamp);
                        }
                    }
                    self.seen[FUAS] += u64::from(fua);
                }
                (Waits::Flush { floors }, Ok(_)) => {
                    self.sectors.iter_mut().zip(floors).for_each(|(s, f)| s.floor = s.floor.max(f));
                    self.seen[FLUSHES] += 1;
                }
                // Nothing was guaranteed.
                (_, Err(_)) => self.seen[FAULTS] += 1,
            }
        }
        while !self.chance.one_in(8)
            && let Some(call) = self.machine.next_call()
        {
            self.hear(call);
        }
    }

    fn hear(&mut self, call: Call<Plain>) {
        match call {
            Call::Register { task, ranges, .. } => {
                for range in &ranges {
                    self.supersede(range);
                    self.of(range).iter_mut().for_each(|s| s.task = Some((task, None)));
                }
                self.tasks.insert(task, ranges.iter().map(|r| r.count).sum());
            }
            Call::Data { task, lbn, data } => {
                for (s, d) in self.sectors[lbn as usize..].iter_mut().zip(data.chunks(SECTOR as usize)) {
                    if let Some((_, promised)) = s.task.as_mut().filter(|t| t.0 == task) {
                        *promised = Some(stamp(d));
                    }
                }
            }
            Call::Free(free) => self.free = free,
            Call::Write { range, .. } => {
                self.supersede(&range);
                self.foreground.push_back(call);
            }
            Call::Read { .. } | Call::Flush { .. } => self.foreground.push_back(call),
        }
    }

    /// Removes these sectors from older tasks.
    fn supersede(&mut self, range: &TaskRange) {
        for lbn in range.lbn..range.end() {
            if let Some((task, _)) = self.sectors[lbn as usize].task.take() {
                self.machine.event(Event::NotWritten { task, range: TaskRange { lbn, count: 1 } });
                self.dealt_with(task);
            }
        }
    }

    fn dealt_with(&mut self, task: u64) {
        let left = self.tasks.get_mut(&task).expect("a task that is registered");
        *left -= 1;
        if *left == 0 {
            self.tasks.remove(&task);
            self.machine.event(Event::Done { task });
        }
    }

    /// A gap: writes some sector of a task, into the drive's cache.
    fn gap(&mut self) {
        let lbn = self.chance.below(SECTORS);
        let Some((task, Some(stamp))) = self.sectors[lbn as usize].task.filter(|_| self.free) else { return };
        let range = TaskRange { lbn, count: 1 };
        self.sectors[lbn as usize].task = None;
        if self.chance.one_in(20) {
            self.machine.event(Event::Failed { task, range });
        } else {
            self.sectors[lbn as usize].there = stamp;
            self.seen[FREE] += 1;
            self.machine.event(Event::Written { task, range });
        }
        self.dealt_with(task);
    }

    /// Carries out one of the foreground requests: any that overlaps none before it. `answers`:
    /// whether it is answered.
    fn serve(&mut self, answers: bool) {
        let at = self.chance.below(self.foreground.len() as u64 + 1) as usize;
        let range = |c: &Call<Plain>| match c {
            Call::Read { range, .. } | Call::Write { range, .. } => *range,
            _ => TaskRange { lbn: 0, count: 0 },
        };
        let Some(call) = self.foreground.get(at) else { return };
        if self.foreground.iter().take(at).any(|before| range(before).overlaps(&range(call))) {
            return;
        }
        let call = self.foreground.remove(at).expect("seen just now");
        let fails = self.chance.one_in(30);
        let (token, answer) = match call {
            Call::Read { token, range, .. } => {
                let found = self.of(&range).iter().flat_map(|s| data(s.there, 1)).collect();
                (token, Ok(found))
            }
            Call::Write { token, range, data, .. } if !fails => {
                for (s, d) in self.of(&range).iter_mut().zip(data.chunks(SECTOR as usize)) {
                    (s.there, s.media) = (stamp(d), stamp(d));
                }
                self.seen[THROUGH] += range.count;
                (token, Ok(Vec::new()))
            }
            Call::Flush { token } if !fails => {
                self.sectors.iter_mut().for_each(|s| s.media = s.there);
                (token, Ok(Vec::new()))
            }
            Call::Write { token, .. } | Call::Flush { token } => (token, Err(("no", "a test".into()))),
            _ => unreachable!("no foreground request"),
        };
        if answers {
            self.machine.event(Event::Answered { token, answer });
        }
    }

    /// Loses the session: foreground requests may still be carried out, in their order.
    fn lose(&mut self) {
        self.machine.disconnected();
        while !self.foreground.is_empty() && !self.chance.one_in(4) {
            self.serve(false);
        }
        self.foreground.clear();
        self.tasks.clear();
        self.sectors.iter_mut().for_each(|s| s.task = None);
        self.free = true;
        if self.chance.one_in(2) {
            self.client();
        }
        self.machine.connected();
    }

    fn step(&mut self) {
        match self.chance.below(40) {
            0..=8 => self.client(),
            9..=20 => self.serve(true),
            21..=35 => self.gap(),
            36..=38 => (0..self.chance.below(300)).for_each(|_| self.machine.tick()),
            _ if self.chance.one_in(10) => self.lose(),
            _ => self.machine.retry(),
        }
        self.listen();
        self.power_fails();
    }

    /// Checks each sector after a power failure: it is as on the media, or as in the drive's cache.
    fn power_fails(&self) {
        for (lbn, s) in self.sectors.iter().enumerate() {
            for left in [s.media, s.there] {
                assert!(s.floor <= left && left <= s.asked, "sector {lbn}: {} <= {left} <= {}", s.floor, s.asked);
            }
        }
    }
}

fn run(seed: u64, fills: bool) -> [u64; 6] {
    let mut w = World::new(seed, fills);
    (0..1500).for_each(|_| w.step());
    w.machine.drain();
    let mut steps = 0;
    while !w.machine.is_flushed() {
        w.serve(true);
        w.gap();
        w.machine.retry();
        w.listen();
        // The last flush failed.
        if w.machine.is_idle() && !w.machine.is_flushed() {
            w.machine.drain();
        }
        steps += 1;
        assert!(steps < 200_000, "seed {seed}: it does not end: {:?}", w.machine.left());
    }
    w.power_fails();
    for s in &w.sectors {
        assert_eq!(s.there, s.asked, "the end writes everything");
    }
    w.seen
}

#[test]
fn flushed_data_survives_a_power_failure_at_any_point_and_reads_are_current() {
    for fills in [true, false] {
        let mut seen = [0; 6];
        for seed in 0..60 {
            let one = run(seed, fills);
            seen.iter_mut().zip(one).for_each(|(all, one)| *all += one);
        }
        let free = if fills { seen[FREE] > 1000 } else { seen[FREE] == 0 };
        let all = seen[READS] > 1000 && seen[FLUSHES] > 100 && seen[FUAS] > 100 && seen[THROUGH] > 1000;
        assert!(all && free && seen[FAULTS] > 10, "too little of something happened: {seen:?}");
    }
}

#[test]
fn a_cache_that_nothing_presses_writes_nothing_until_a_block_is_old() {
    let mut w = World::new(1, true);
    w.machine.ask(Ask { kind: Kind::Write, lbn: 5, count: 1, fua: false, owner: 0, data: data(1, 1), ticket: 1 });
    assert!(matches!(w.machine.next_answer(), Some((1, Ok(_)))));
    let mut calls = |ticks: u64| {
        (0..ticks).for_each(|_| w.machine.tick());
        std::iter::from_fn(|| w.machine.next_call()).collect::<Vec<_>>()
    };
    let first = calls(super::policy::OLD / 2);
    assert!(matches!(first[..], [Call::Free(false), Call::Register { .. }, Call::Data { .. }]), "{first:?}");
    let then = calls(super::policy::OLD);
    assert!(matches!(then[..], [Call::Free(true)]), "{then:?}");
}

#[test]
fn what_goes_for_want_of_memory_lies_in_the_order_of_the_disk() {
    let mut w = World::new(1, false);
    let places: Vec<u64> = (0..100).map(|i| i * 37 % 101).collect();
    for (i, &lbn) in places.iter().enumerate() {
        let ask = Ask { kind: Kind::Write, lbn, count: 1, fua: false, owner: 0, data: data(1, 1), ticket: i as u64 };
        w.machine.ask(ask);
    }
    let sent = std::iter::from_fn(|| w.machine.next_call());
    let sent: Vec<TaskRange> =
        sent.map(|c| if let Call::Write { range, .. } = c { range } else { panic!("{c:?}") }).collect();
    let sectors: u64 = sent.iter().map(|r| r.count).sum();
    assert!(sectors >= 4 && sent.is_sorted_by_key(|r| r.lbn), "{sent:?}");
    // Neighbours, not the ones written first, which lie all over the disk.
    assert!(sent.iter().all(|r| r.end() < 30), "{sent:?}");
}

/// Returns a write of one sector, with its number as ticket.
fn write(lbn: u64) -> Ask<Plain> {
    Ask { kind: Kind::Write, lbn, count: 1, fua: false, owner: 0, data: data(1, 1), ticket: lbn }
}

fn answers(machine: &mut Machine<Plain>) -> Vec<(u64, bool)> {
    std::iter::from_fn(|| machine.next_answer()).map(|(ticket, answer)| (ticket, answer.is_ok())).collect()
}

/// Answers all writes of the machine with `answer`.
fn answer_writes(machine: &mut Machine<Plain>, answer: Result<(), &'static str>) {
    while let Some(call) = machine.next_call() {
        let Call::Write { token, .. } = call else { continue };
        let answer = answer.map(|()| Vec::new()).map_err(|fault| (fault, String::new()));
        machine.event(Event::Answered { token, answer });
    }
}

#[test]
fn a_write_fails_when_nothing_in_a_full_cache_can_be_written() {
    let mut m = World::new(1, false).machine;
    (0..150).for_each(|i| m.ask(write(2 * i)));
    let taken = answers(&mut m).len();
    assert!((100..150).contains(&taken), "{taken} writes fit");
    // Each fails with its neighbours, and then alone.
    for _ in 0..50 {
        answer_writes(&mut m, Err("full"));
        m.retry();
    }
    answer_writes(&mut m, Err("full"));
    let failed = answers(&mut m);
    assert_eq!(failed.len(), 150 - taken);
    assert!(failed.iter().all(|&(_, is_ok)| !is_ok), "{failed:?}");
    assert!(m.has_failed());
    // The data is kept, and written when possible; then there is room again.
    m.retry();
    answer_writes(&mut m, Ok(()));
    assert!(!m.has_failed(), "a disk that could be written again is not given up early at the end");
    m.ask(write(1));
    assert_eq!(answers(&mut m), [(1, true)]);
}

#[test]
fn everything_that_waits_fails_when_the_device_is_gone_for_good() {
    let mut m = World::new(1, true).machine;
    m.ask(write(3));
    m.ask(Ask { kind: Kind::Flush, ticket: 100, ..write(0) });
    m.ask(Ask { kind: Kind::Read, lbn: 50, ticket: 101, ..write(0) });
    m.ask(Ask { fua: true, lbn: 60, ticket: 102, ..write(0) });
    assert_eq!(answers(&mut m), [(3, true)]);
    m.abandon("gone");
    m.ask(write(7));
    let mut failed = answers(&mut m);
    failed.sort_unstable();
    assert_eq!(failed, [(7, false), (100, false), (101, false), (102, false)]);
    assert!(m.is_idle() && !m.is_flushed() && m.left().0 > 0);
}

#[test]
fn a_read_waits_for_an_earlier_write_that_waits_for_room_and_no_other_does() {
    let mut m = World::new(1, false).machine;
    (0..150).for_each(|i| m.ask(write(2 * i)));
    let taken = answers(&mut m).len() as u64;
    assert!((100..150).contains(&taken), "{taken} writes fit");
    let waits = 2 * taken;
    let sent: Vec<_> = std::iter::from_fn(|| m.next_call()).collect();
    let read = |lbn, ticket| Ask { kind: Kind::Read, lbn, ticket, data: vec![], ..write(lbn) };
    m.ask(read(waits, 1_001));
    // A later write of the same sector must not overtake the read either.
    m.ask(Ask { data: data(2, 1), ticket: 1_002, ..write(waits) });
    m.ask(read(0, 1_003));
    m.ask(read(1, 1_004));
    assert_eq!(answers(&mut m), [(1_003, true)], "what is in the cache is answered at once");
    let reads = std::iter::from_fn(|| m.next_call());
    let asked: Vec<u64> = reads.map(|c| if let Call::Read { range, .. } = c { range.lbn } else { 0 }).collect();
    assert_eq!(asked, [1], "and what neither is nor will be there is asked for");
    for call in sent {
        let Call::Write { token, .. } = call else { panic!("{call:?}") };
        m.event(Event::Answered { token, answer: Ok(vec![]) });
    }
    answer_writes(&mut m, Ok(()));
    let found = std::iter::from_fn(|| m.next_answer()).find(|a| a.0 == 1_001).expect("it is answered");
    assert_eq!(found.1.map(|data| stamp(&data)), Ok(1), "by the write before it, not by the one after it");
}
