//! Tests of a drive with faults, in virtual time: each command is sent when the last one has
//! completed.

use headtime_disk::profile::{self, Profile};
use headtime_disk::{DriveConfig, Kind, Outcome};

use super::*;
use crate::device::Fault as Failed;
use crate::faults::plan::{Lost, Range, What, When};
use crate::faults::table::FaultTable;

const SECOND: Dur = Dur(1_000_000_000);
const TURN: Dur = Dur(5_985_000);

/// A drive with a write cache, whose file is at `path`.
fn profile() -> Profile {
    let mut profile = profile::builtin("atlas10k").unwrap();
    profile.electronics.cache.write_back = true;
    profile.electronics.cache.dirty_segments = 4;
    profile.electronics.cache.destage_delay = SECOND;
    profile
}

struct Rig {
    disk: TestDisk,
    now: Time,
    id: u64,
}

impl Rig {
    fn new(change: impl Fn(VirtualDrive) -> VirtualDrive, speed: u64) -> Rig {
        let backing = tempfile::tempfile().unwrap();
        backing.set_len(10 << 30).unwrap();
        let config = DriveConfig::default().with_noise(false);
        let drive = VirtualDrive::new(&profile(), config, backing.into()).unwrap();
        Rig { disk: TestDisk::new(change(drive), speed, 1), now: Time::ZERO, id: 0 }
    }

    /// Advances virtual time as fast as the file allows.
    fn next(&mut self) -> Done {
        loop {
            if let Some(done) = self.disk.poll(self.now) {
                return done;
            }
            if let Some(t) = self.disk.next_event() {
                self.now = t.max(self.now);
            }
            std::thread::yield_now();
        }
    }

    fn send(&mut self, kind: Kind, lbn: u64, data: Bytes, fua: bool) {
        self.id += 1;
        let count = if kind == Kind::Write { data.len() as u32 / 512 } else { 8 };
        self.disk.submit(&Command { id: self.id, kind, lbn, count, fua }, data, self.now);
    }

    fn read(&mut self, lbn: u64) -> Done {
        self.send(Kind::Read, lbn, Bytes::new(), false);
        self.next()
    }

    /// Reads 8 sectors, all of which have the same contents.
    fn byte(&mut self, lbn: u64) -> u8 {
        let done = self.read(lbn);
        assert_eq!(done.fault, None);
        assert!(done.data.iter().all(|b| *b == done.data[0]), "sectors of different writes");
        done.data[0]
    }

    fn write(&mut self, lbn: u64, byte: u8, fua: bool) -> Option<Failed> {
        self.send(Kind::Write, lbn, vec![byte; 4096].into(), fua);
        self.next().fault
    }

    fn flush(&mut self) -> Option<Failed> {
        self.send(Kind::Flush, 0, Bytes::new(), false);
        self.next().fault
    }

    fn call(&mut self, call: Call) -> Answer {
        let mut answer = self.disk.calls().send(call).unwrap();
        assert_eq!(self.disk.next_event(), Some(Time::ZERO), "the engine must not sleep");
        loop {
            assert!(self.disk.poll(self.now).is_none());
            match answer.try_recv() {
                Ok(answer) => return answer,
                Err(oneshot::error::TryRecvError::Empty) => std::thread::yield_now(),
                Err(e) => panic!("{e}"),
            }
        }
    }

    fn add(&mut self, table: FaultTable) {
        let answer = self.call(Call::Add(Box::new(table)));
        assert!(matches!(answer, Answer::Added(_)), "{answer:?}");
    }

    fn status(&mut self) -> Status {
        match self.call(Call::List) {
            Answer::Status(status) => status,
            other => panic!("{other:?}"),
        }
    }
}

fn table(kind: &str) -> FaultTable {
    FaultTable { kind: kind.into(), ..FaultTable::default() }
}

fn power_off() -> FaultTable {
    FaultTable { lost: Some("all".into()), ..table("power-off") }
}

fn fault(what: What, when: When) -> Fault {
    Fault { what, when }
}

fn keeps_all(drive: VirtualDrive) -> VirtualDrive {
    drive.losing_unwritten(true)
}

#[test]
fn an_unreadable_sector_appears_at_its_time_and_is_mended_by_a_write() {
    let mut rig = Rig::new(|d| d, 1);
    let what = What::Unreadable(Range { lbn: 1002, count: 1 });
    rig.disk = rig.disk.with_faults(vec![fault(what, When::After(SECOND))]).unwrap();
    assert_eq!(rig.read(1000).fault, None);
    rig.now = Time::ZERO + SECOND;
    let done = rig.read(1000);
    assert_eq!((done.fault, done.outcome), (Some(Failed::Io), Outcome::MediaError { lbn: 1002 }));
    assert_eq!(rig.status().faults[0].unreadable_sectors, Some(1));
    assert_eq!(rig.write(1000, 7, false), None);
    assert_eq!((rig.byte(1000), rig.status().faults[0].unreadable_sectors), (7, Some(0)));
}

#[test]
fn slow_sectors_hangs_and_failures_begin_after_a_number_of_commands() {
    let mut rig = Rig::new(|d| d, 1);
    let slow = What::Slow { range: Range { lbn: 0, count: 2_000 }, revolutions: 5 };
    let faults = [(slow, 2), (What::Hang { lasts: SECOND }, 3), (What::Failure, 4)];
    let faults = faults.map(|(what, n)| fault(what, When::AfterCommands(n))).to_vec();
    rig.disk = rig.disk.with_faults(faults).unwrap();
    let mut took = |lbn| {
        let before = rig.now;
        let fault = rig.read(lbn).fault;
        (rig.now.since(before), fault)
    };
    let all = [took(0), took(10_000_000), took(1_000), took(11_000_000), took(2_000)];
    assert!(all[1].0 < Dur(4 * TURN.0) && all[2].0 > Dur(5 * TURN.0) && all[2].0 < Dur(9 * TURN.0), "{all:?}");
    assert!(all[3].0 > SECOND && all[3].0 < Dur(SECOND.0 + 10 * TURN.0), "{all:?}");
    assert_eq!(all.map(|a| a.1), [None, None, None, None, Some(Failed::Gone)]);
    assert_eq!(rig.call(Call::Clear(None)), Answer::Cleared(3));
    assert_eq!(rig.read(0).fault, None);
}

#[test]
fn a_fast_drive_takes_a_fraction_of_the_time_and_hangs_as_long_as_any() {
    let run = |speed| {
        let mut rig = Rig::new(|d| d, speed);
        let times: Vec<u64> = [5_000_000, 900, 12_000_000]
            .map(|lbn| {
                let before = rig.now;
                assert_eq!(rig.read(lbn).fault, None);
                rig.now.since(before).0
            })
            .to_vec();
        rig.add(FaultTable { lasts: Some("1s".into()), ..table("hang") });
        assert_eq!(rig.status().faults[0].state, "active");
        let before = rig.now;
        rig.read(0);
        let hung = rig.now.since(before);
        assert!(hung >= SECOND && hung < Dur(SECOND.0 + 5 * TURN.0), "{hung}");
        assert_eq!(rig.status().faults[0].state, "over");
        times
    };
    let (real, fast) = (run(1), run(10));
    // The platter is elsewhere when the second command comes, so only the first is exactly a tenth.
    assert_eq!(fast[0], real[0].div_ceil(10));
    assert!(fast.iter().sum::<u64>() < real.iter().sum::<u64>() / 4, "{real:?} {fast:?}");
}

#[test]
fn a_power_failure_loses_what_was_not_flushed_and_nothing_else() {
    let mut rig = Rig::new(keeps_all, 1);
    for (lbn, byte) in [(0, 1), (8, 2), (5_000, 3)] {
        assert_eq!(rig.write(lbn, byte, false), None);
    }
    assert_eq!(rig.flush(), None);
    assert_eq!((rig.status().volatile_sectors, rig.write(16, 4, true), rig.status().volatile_sectors), (0, None, 0));
    // Overwritten without a flush, and new.
    for (lbn, byte) in [(8, 5), (8, 6), (9_000, 7)] {
        assert_eq!(rig.write(lbn, byte, false), None);
    }
    assert_eq!((rig.byte(8), rig.byte(9_000), rig.status().volatile_sectors), (6, 7, 16));
    rig.add(power_off());
    let status = rig.status();
    assert_eq!((status.power, status.write_cache, status.volatile_sectors), (false, true, 0));
    assert_eq!([rig.read(0).fault, rig.write(0, 9, true), rig.flush()], [Some(Failed::Gone); 3]);
    rig.add(table("power-on"));
    let bytes = [0, 8, 16, 5_000, 9_000].map(|lbn| rig.byte(lbn));
    assert_eq!((bytes, rig.status().problem), ([1, 2, 4, 3, 0], None));
}

#[test]
fn commands_in_flight_fail_with_the_power_and_may_or_may_not_be_done() {
    let mut rig = Rig::new(keeps_all, 1);
    assert_eq!((rig.write(0, 1, false), rig.flush()), (None, None));
    rig.disk
        .plan
        .add(fault(What::PowerOff { lasts: Some(SECOND), lost: Lost::All }, When::AfterCommands(3)), rig.now)
        .unwrap();
    for (lbn, byte) in [(0, 2), (5_000_000, 3)] {
        rig.send(Kind::Write, lbn, vec![byte; 4096].into(), false);
    }
    rig.send(Kind::Flush, 0, Bytes::new(), false);
    rig.send(Kind::Read, 0, Bytes::new(), false);
    let mut failed = [(); 4].map(|()| rig.next()).map(|done| (done.id, done.fault));
    failed.sort_by_key(|f| f.0);
    assert_eq!(failed, [3, 4, 5, 6].map(|id| (id, Some(Failed::Gone))));
    rig.now += SECOND;
    assert_eq!((rig.byte(0), rig.byte(5_000_000)), (1, 0), "nothing was flushed");
}

#[test]
fn an_idle_drive_writes_its_cache_back_and_then_loses_nothing() {
    for (holds, expected) in [(false, 1), (true, 0)] {
        let mut rig = Rig::new(|d| d.losing_unwritten(holds), 1);
        assert_eq!(rig.write(800, 1, false), None);
        rig.now += Dur(3 * SECOND.0);
        assert!(rig.disk.poll(rig.now).is_none());
        rig.add(power_off());
        assert_eq!(rig.call(Call::Clear(None)), Answer::Cleared(1));
        assert_eq!((rig.status().power, rig.byte(800)), (true, expected));
    }
}

#[test]
fn without_its_write_cache_a_drive_loses_nothing_that_it_has_acknowledged() {
    let mut rig = Rig::new(|d| d.losing_unwritten(false), 1);
    rig.add(FaultTable { on: Some(false), ..table("write-cache") });
    assert!(!rig.status().write_cache);
    assert_eq!(rig.write(800, 1, false), None);
    rig.add(power_off());
    rig.add(table("power-on"));
    assert_eq!((rig.byte(800), rig.status().write_cache), (1, false), "and it stays off");
    assert_eq!(rig.call(Call::Clear(Some(1))), Answer::Cleared(1));
    assert!(rig.status().write_cache);
}

#[test]
fn clearing_all_faults_gives_the_power_back_only_if_it_is_off() {
    let mut rig = Rig::new(keeps_all, 1);
    rig.add(power_off());
    rig.add(table("power-on"));
    rig.add(FaultTable { start: Some(crate::faults::table::Size::Bytes(0)), ..table("unreadable") });
    assert_eq!(rig.read(0).fault, Some(Failed::Io));
    assert_eq!((rig.write(8, 3, true), rig.call(Call::Clear(None))), (None, Answer::Cleared(3)));
    assert_eq!((rig.read(0).fault, rig.byte(8)), (None, 3));
    let answer = rig.call(Call::Clear(Some(1)));
    assert_eq!(answer, Answer::Refused("expected the number of a fault, found 1".into()));
    let answer = rig.call(Call::Add(Box::new(table("unredable"))));
    assert_eq!(answer, Answer::Refused("kind: unknown kind `unredable`; the closest is `unreadable`".into()));
}
