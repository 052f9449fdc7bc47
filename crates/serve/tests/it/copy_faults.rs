//! Copies whose destination fails or loses its power, or is another one when they continue; and
//! crashes between the writes of a copy's files.

use std::os::unix::fs::FileExt;
use std::path::Path;

use headtime_disk::Kind;
use headtime_serve::apps::copy::{self, Outcome, Plan, Step};
use headtime_serve::apps::error::AppError;
use headtime_serve::apps::journal::Journal;
use headtime_serve::apps::progress::JournalError;
use headtime_serve::device::Fault;
use tokio::sync::watch;
use xxhash_rust::xxh3::xxh3_64;

use crate::applying::{SECTOR, TEST_TIMEOUT, World};
use crate::copy::{complete, empty, plan, run, worlds};

/// The unit of these disks in bytes, and where its checksums begin.
const UNIT_BYTES: usize = 8192;
const SUMS_HEAD: usize = 4096;
const SUM_BYTES: usize = 16;

/// A live copy of some seconds, whose journal is written four times a second.
pub fn slow(from: &World, to: &World) -> Plan {
    let mut plan = Plan { live: true, ..plan(from, to) };
    plan.job.max_mb_s = Some(from.sectors as f64 * SECTOR as f64 / 8e6);
    plan.job.save_every = std::time::Duration::ZERO;
    plan
}

/// Copies until this number of quarters is done, and stops in good order.
pub fn stop_after(quarters: u64, from: &World, plan: &Plan) {
    let (tell, stop) = watch::channel(false);
    let mut see = |step: Step| {
        if matches!(step, Step::Copying(s) if s.done > s.total / 4 * quarters) {
            let _ = tell.send(true);
        }
    };
    let copying = copy::run(plan, &mut see, stop);
    let stopped = from.runtime.block_on(async { tokio::time::timeout(TEST_TIMEOUT, copying).await });
    assert!(matches!(stopped, Ok(Ok(Outcome::Stopped(Some(_))))), "{stopped:?}");
}

/// Continues without a limit; returns the bytes that were done when it began, and the report.
fn go_on(from: &World, plan: &Plan) -> (u64, copy::Report) {
    let (mut began, mut plan) = (0, plan.clone());
    plan.job.max_mb_s = None;
    let report = complete(run(from, &plan, &mut |step| {
        if let Step::Begins(_, done) = step {
            began = done;
        }
    }));
    (began, report)
}

/// Returns the units that a journal has: its third part, after two lines, is one bit for each.
fn units_of(journal: &Path) -> Vec<usize> {
    let text = std::fs::read(journal).unwrap();
    let lines: Vec<usize> = (0..text.len()).filter(|&i| text[i] == b'\n').take(2).collect();
    let bits = &text[lines[1] + 1..text.len() - 8];
    (0..bits.len() * 8).filter(|i| bits[i / 8] >> (i % 8) & 1 == 1).collect()
}

#[test]
fn a_copy_continues_only_to_the_destination_that_it_began_with() {
    // With room for the copy to be moved.
    let (from, mut to) = (World::new(2, vec![]), empty(3, vec![]));
    let live = slow(&from, &to);
    stop_after(1, &from, &live);
    let (journal, there) = (std::fs::read(from.path("copied")).unwrap(), to.disk());
    let refused = |plan: &Plan, how: &str| {
        for overwrite in [false, true] {
            let refused = run(&from, &Plan { overwrite, ..plan.clone() }, &mut |_| {}).unwrap_err();
            let is_other =
                matches!(&refused, AppError::Journal(JournalError::Foreign { how: h, .. }) if h.contains(how));
            assert!(is_other, "{how}: {refused}");
            assert_eq!(std::fs::read(from.path("copied")).unwrap(), journal, "{how}");
        }
    };
    // Its name is another one.
    refused(&Plan { to_export: None, ..live.clone() }, "found export \"data\", to export \"data\"");

    // It was moved on its disk.
    let begin = |to: &mut World, first| {
        to.stop();
        to.first = first;
        to.start();
    };
    begin(&mut to, 16);
    refused(&live, "from sector 16");
    begin(&mut to, 0);

    // Its disk was replaced by a copy of it: nothing tells it apart but its identity.
    to.stop();
    std::fs::rename(to.path("disk"), to.path("first")).unwrap();
    std::fs::copy(to.path("first"), to.path("disk")).unwrap();
    to.start();
    refused(&live, "found export \"data\", to export \"data\"");
    assert!(to.disk() == there, "nothing was written to it");
    // With a journal of the default name, each destination has its own: there is none of this one,
    // whose data is not overwritten.
    let disk = std::fs::OpenOptions::new().write(true).open(to.path("disk")).unwrap();
    disk.write_all_at(&[0x55], 0).unwrap();
    let named = Plan { journal: Journal::In(from.path("state")), ..live.clone() };
    assert!(matches!(run(&from, &named, &mut |_| {}), Err(AppError::DestinationData(_))));

    // The first one comes back.
    to.stop();
    std::fs::rename(to.path("first"), to.path("disk")).unwrap();
    to.start();
    let (began, report) = go_on(&from, &live);
    assert!(began > report.bytes / 8 && report.is_good() && report.wrong_bytes == Some(0), "{began} {report:?}");
    let copied = (from.sectors * SECTOR) as usize;
    assert!(to.disk()[..copied] == from.disk() && to.disk()[copied..].iter().all(|&b| b == 0));
}

#[test]
fn a_destination_that_fails_to_write_ends_the_copy_which_continues_when_it_can() {
    for (kind, fault) in [(Kind::Write, Fault::NoSpace), (Kind::Write, Fault::Io), (Kind::Flush, Fault::Io)] {
        let (from, to) = worlds(2);
        let (live, source) = (slow(&from, &to), from.disk());
        let mut done = 0;
        let failed = run(&from, &live, &mut |step| {
            if let Step::Copying(s) = step {
                done = s.done;
                if s.done > s.total / 4 {
                    to.frailty.lock().unwrap().fails = Some((kind, fault));
                }
            }
        });
        let total = from.sectors * SECTOR;
        match (&failed, kind) {
            (Err(AppError::DestinationWrite { what, offset, bytes, why }), Kind::Write) => {
                assert_eq!((what.as_str(), why.as_str()), ("export \"data\"", fault.words()));
                assert!(*bytes > 0 && offset + bytes <= total && offset % SECTOR == 0, "{bytes} at {offset}");
            }
            (Err(AppError::DestinationFlush { what, why }), Kind::Flush) => {
                assert_eq!((what.as_str(), why.as_str()), ("export \"data\"", fault.words()));
            }
            _ => panic!("{kind:?} {fault}: {failed:?}"),
        }
        assert!(from.disk() == source && done > total / 4);
        let recorded = units_of(&from.path("copied"));
        assert!(recorded.len() * UNIT_BYTES >= done as usize, "{} {done}", recorded.len());
        let (copied, sectors) =
            (to.disk(), |unit: usize| unit * UNIT_BYTES..((unit + 1) * UNIT_BYTES).min(source.len()));
        assert!(recorded.iter().all(|&unit| copied[sectors(unit)] == source[sectors(unit)]));

        to.frailty.lock().unwrap().fails = None;
        let (began, report) = go_on(&from, &live);
        assert!(began >= done && report.is_good() && report.wrong_bytes == Some(0), "{began} {done} {report:?}");
        assert!(to.disk() == source && from.disk() == source);
    }
}

/// It cannot continue, so it leaves nothing behind.
#[test]
fn a_copy_of_one_point_in_time_ends_with_the_place_that_could_not_be_written() {
    let (from, to) = worlds(2);
    to.frailty.lock().unwrap().fails = Some((Kind::Write, Fault::NoSpace));
    let failed = run(&from, &plan(&from, &to), &mut |_| {}).unwrap_err();
    assert!(matches!(failed, AppError::DestinationWrite { .. }), "{failed}");
    assert!(!from.path("copied").exists() && !from.path("copied.sums").exists());
}

/// The journal has what was flushed at the destination, and a checksum of each of its units.
#[test]
fn a_power_failure_at_the_destination_loses_nothing_that_the_journal_has() {
    let (from, mut to) = worlds(2);
    let file = std::fs::OpenOptions::new().read(true).write(true).open(to.path("disk")).unwrap();
    to.frailty.lock().unwrap().volatile = Some(file);
    let live = slow(&from, &to);
    let source = from.disk();
    from.runtime.block_on(async {
        let (tell, mut seen) = watch::channel(None);
        let mut see = |step: Step| _ = tell.send(if let Step::Copying(s) = step { Some(*s) } else { None });
        let crash = async {
            seen.wait_for(|s| s.is_some_and(|s| s.done > s.total / 4)).await.unwrap();
            // From here on the destination only seems to be written.
            to.frailty.lock().unwrap().holds_flushes = true;
            let mut ticks = 0;
            while ticks < 8 {
                seen.changed().await.unwrap();
                ticks += u32::from(to.frailty.lock().unwrap().unflushed() > 0);
            }
        };
        // Dropped there, as if it were killed.
        tokio::select! {
            biased;
            crashed = tokio::time::timeout(TEST_TIMEOUT, crash) => crashed.expect("something is unflushed"),
            ended = copy::run(&live, &mut see, from.stop.clone()) => panic!("it should not have ended: {ended:?}"),
        }
    });
    let mut frailty = to.frailty.lock().unwrap();
    (frailty.dark, frailty.holds_flushes) = (true, false);
    drop(frailty);
    to.stop();
    let lost = to.frailty.lock().unwrap().lose();
    let (recorded, sums) = (units_of(&from.path("copied")), std::fs::read(from.path("copied.sums")).unwrap());
    assert!(lost > 0 && !recorded.is_empty(), "{lost} {}", recorded.len());
    let copied = to.disk();
    for &unit in &recorded {
        let data = unit * UNIT_BYTES..((unit + 1) * UNIT_BYTES).min(source.len());
        assert!(copied[data.clone()] == source[data.clone()], "unit {unit} is in the journal, and not on the disk");
        let sum = SUMS_HEAD + unit * SUM_BYTES;
        assert_eq!(sums[sum..sum + 8], xxh3_64(&source[data]).to_le_bytes(), "unit {unit} has no checksum");
    }
    to.start();
    let (began, report) = go_on(&from, &live);
    assert_eq!(began, recorded.iter().map(|&u| UNIT_BYTES.min(source.len() - u * UNIT_BYTES) as u64).sum::<u64>());
    assert!(report.is_good() && report.wrong_bytes == Some(0), "{report:?}");
    assert!(to.disk() == source);
}

/// The files after a crash between two of their writes: checksums that are newer than the journal
/// belong to units that are copied again, and a unit of the journal without a checksum is wrong.
#[test]
fn a_crash_between_checksums_and_journal_neither_loses_a_block_nor_accepts_a_wrong_one() {
    let (mut from, to) = worlds(2);
    let live = slow(&from, &to);
    stop_after(1, &from, &live);
    let earlier = std::fs::read(from.path("copied")).unwrap();
    let before = units_of(&from.path("copied"));
    stop_after(2, &from, &live);
    let later = units_of(&from.path("copied"));
    std::fs::write(from.path("copied"), earlier).unwrap();
    let again = *later.iter().find(|unit| !before.contains(unit)).unwrap();

    // The source changes where the later checksums are, and one of the earlier ones is lost.
    from.stop();
    let disk = std::fs::OpenOptions::new().write(true).open(from.path("disk")).unwrap();
    disk.write_all_at(&[0xee; 512], (again * UNIT_BYTES) as u64).unwrap();
    from.start();
    // Without its checksums it does not continue, however often it is tried.
    std::fs::rename(from.path("copied.sums"), from.path("away")).unwrap();
    for _ in 0..2 {
        assert!(matches!(run(&from, &live, &mut |_| {}), Err(AppError::Leftover { .. })));
    }
    std::fs::rename(from.path("away"), from.path("copied.sums")).unwrap();
    let sums = std::fs::OpenOptions::new().write(true).open(from.path("copied.sums")).unwrap();
    sums.write_all_at(&[0; SUM_BYTES], (SUMS_HEAD + before[0] * SUM_BYTES) as u64).unwrap();
    let (began, report) = go_on(&from, &live);
    assert_eq!(began, (before.len() * UNIT_BYTES) as u64);
    assert!(from.disk() == to.disk(), "what the earlier journal has not was copied again");
    assert_eq!((report.wrong_bytes, report.is_good()), (Some(UNIT_BYTES as u64), false), "{report:?}");
}
