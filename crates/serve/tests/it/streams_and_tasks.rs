//! A mandatory request that waits for background reads or writes of the same sectors: it meets its
//! deadline, since admission counted that wait (`blocked-by`), although two hundred readers came
//! before.

use crate::rig::{EXPORT_SECTORS, MEASURED_DRIVE, Rig, drive_of, exports, next, promising, sectors};
use headtime_disk::{DriveConfig, Dur, Kind};
use headtime_sched::streams::{Quality, Stream};
use headtime_sched::{Algorithm, Config, FillConfig, Order, TaskEvent, TaskRange};
use headtime_serve::engine::messages::SessionCall;
use headtime_serve::engine::session_event::SessionEvent;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The export of the stream, and that of the readers.
const STREAM: u32 = 0;
const READERS: u32 = 1;
/// The range of the background work, in units of one of the stream's requests.
const ALL: TaskRange = TaskRange { lbn: 10_000, count: REQUESTS * UNIT };
const UNIT: u64 = 64;
/// Readers. In order of arrival a request behind all of them would wait for several periods.
const READER_COUNT: u64 = 200;
const PERIOD: Dur = Dur::from_ms(250);
/// Requests of the stream.
const REQUESTS: u64 = 16;

/// Starts an engine that serves in order of arrival, with a stream of one request per period, which
/// may have to wait for one older request.
fn rig() -> Rig {
    let stream = Stream::new(1, PERIOD, Quality::MANDATORY, UNIT as u32).and_then(|s| s.blocked_by(1)).unwrap();
    let fill = Some(FillConfig { seed: 1, ..FillConfig::new(Algorithm::Headtime) });
    let config = Config::new(Order::Fcfs).with_capacity(2_000).with_fill(fill);
    let (core, _) = promising(config, &exports(), &[(STREAM, stream)]);
    let (device, file) = drive_of(MEASURED_DRIVE, DriveConfig::default());
    Rig::under(core, device, file)
}

/// Readers read all the time, then `begin` is called, and the stream's requests follow one at a
/// time, each for other sectors.
fn beside_readers(rig: &mut Rig, kind: Kind, begin: impl FnOnce(&mut Rig)) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut read =
        |rig: &mut Rig| rig.read_as(READERS, EXPORT_SECTORS + random.next_u64() % (EXPORT_SECTORS - UNIT), UNIT as u32);
    (0..READER_COUNT).for_each(|_| _ = read(rig));
    begin(rig);
    for n in 0..REQUESTS {
        // From the end, since background work starts at the beginning.
        let lbn = ALL.end() - (n + 1) * UNIT;
        let data = if kind == Kind::Write { sectors(lbn, UNIT, 2) } else { vec![] };
        let asked = rig.ask_as(STREAM, kind, lbn, UNIT as u32, data);
        loop {
            let (answered, answer) = rig.answer();
            answer.unwrap();
            if answered == asked {
                break;
            }
            read(rig);
        }
    }
    let tally = rig.snapshot().streams[0].tally;
    assert_eq!((tally.asked, tally.in_time, tally.late), (REQUESTS, REQUESTS, 0), "{tally:?}");
}

#[test]
fn a_mandatory_write_that_a_backup_must_read_for_first_is_in_time() {
    let mut rig = rig();
    rig.plant(ALL.lbn, &sectors(ALL.lbn, ALL.count, 1));
    let (session, mut told) = rig.open(1 << 20);
    // The blocks that are written have not been read for the backup before.
    rig.call(|reply| SessionCall::Suspend { session, reply });
    rig.register(session, Kind::Read, ALL, UNIT as u32, true);
    beside_readers(&mut rig, Kind::Write, |_| ());
    let mut preserved = 0;
    while preserved < ALL.count {
        if let SessionEvent::Task(TaskEvent::Delivered { range, .. }, Ok(data)) = next(&mut told) {
            assert!(data == sectors(range.lbn, range.count, 1), "the backup is of before");
            preserved += range.count;
        }
    }
    assert!(rig.on_disk(ALL.lbn, ALL.count as usize) == sectors(ALL.lbn, ALL.count, 2));
    rig.end();
}

#[test]
fn a_mandatory_read_of_what_a_promoted_task_writes_is_in_time() {
    let mut rig = rig();
    let (session, mut told) = rig.open(1 << 20);
    rig.call(|reply| SessionCall::Suspend { session, reply });
    let task = rig.register(session, Kind::Write, ALL, UNIT as u32, false);
    rig.data(session, task, ALL.lbn, sectors(ALL.lbn, ALL.count, 3));
    beside_readers(&mut rig, Kind::Read, |rig| {
        rig.call(|reply| SessionCall::Resume { session, reply });
        rig.call(|reply| SessionCall::Promote { session, task, reply });
    });
    while !matches!(next(&mut told), SessionEvent::Task(TaskEvent::Done { .. }, _)) {}
    assert!(rig.on_disk(ALL.lbn, ALL.count as usize) == sectors(ALL.lbn, ALL.count, 3));
    rig.end();
}
