//! When the next command is dispatched while one is at the drive, and when the drive receives all
//! of them.

use crate::common::{Rig, noiseless, profile};
use headtime_disk::profile::{CacheSpec, FirmwareOrder, Prefetch, Profile, QueueSpec};
use headtime_disk::{Dur, Kind, Time};
use headtime_sched::{Commitment, Order};

/// A core that dispatches late, or early, in front of a drive without noise.
fn rig(p: &Profile, commitment: Commitment) -> Rig {
    let mut rig = Rig::new(p, noiseless(), Order::Sptf, 2);
    rig.core = std::mem::replace(&mut rig.core, Rig::new(p, noiseless(), Order::Sptf, 2).core).committing(commitment);
    // The first command shows where the head is.
    rig.submit(Kind::Read, 0, 1);
    while rig.step().is_some() {}
    rig
}

/// Returns the last sector of the drive, the first one, and one close to the last.
fn far_and_near(rig: &Rig) -> (u64, u64, u64) {
    let last = rig.drive.capacity() - 1;
    (last, 0, last - 40)
}

/// Returns the order in which three reads finish, the third of which arrives while the first is in
/// service and lies close to it.
fn finished(commitment: Commitment) -> Vec<u64> {
    let p = profile(3);
    let mut rig = rig(&p, commitment);
    let (first, far, near) = far_and_near(&rig);
    rig.finished.clear();
    rig.submit(Kind::Read, first, 1);
    rig.submit(Kind::Read, far, 1);
    rig.now += Dur::from_us(1_500);
    rig.submit(Kind::Read, near, 1);
    while rig.step().is_some() {}
    rig.finished.iter().map(|f| f.request).collect()
}

#[test]
fn a_request_that_arrives_while_a_command_is_at_the_drive_takes_part_in_the_selection() {
    assert_eq!(finished(Commitment::Late), [2, 4, 3]);
    assert_eq!(finished(Commitment::Early), [2, 3, 4]);
}

#[test]
fn the_head_does_not_wait_for_the_command_that_is_dispatched_late() {
    // The same requests, arriving at the same times, end at the same times: the drive never has to
    // wait.
    let p = profile(5);
    let times = |commitment| {
        let mut rig = rig(&p, commitment);
        rig.rng = headtime_testkit::profiles::rng(7);
        (0..200).for_each(|_| {
            // Two requests leave no choice.
            rig.submit_random(30, 20);
            rig.submit_random(30, 20);
            while rig.step().is_some() {}
        });
        rig.finished.iter().map(|f| f.done).collect::<Vec<Time>>()
    };
    assert_eq!(times(Commitment::Late), times(Commitment::Early));
}

/// Returns how long after the first of two commands the second one is sent, when the driver calls
/// the core `late` after the requested time.
fn dispatch_delays(late: Dur, pairs: usize) -> Vec<Dur> {
    let p = profile(3);
    let mut rig = rig(&p, Commitment::Late);
    let (first, far, _) = far_and_near(&rig);
    let mut delays = vec![];
    for _ in 0..pairs {
        rig.finished.clear();
        let sent = rig.now;
        rig.submit(Kind::Read, first, 1);
        rig.submit(Kind::Read, far, 1);
        let wakeup = rig.core.next_wakeup().map(|at| at + late);
        // Earlier completions are delivered first.
        while let Some(event) = rig.drive.next_event().filter(|&event| wakeup.is_some_and(|at| event <= at)) {
            rig.now = event;
            while let Some(c) = rig.drive.advance(event) {
                rig.core.complete(c.id, c.outcome, event);
                rig.drain();
            }
        }
        if let Some(at) = wakeup {
            rig.now = rig.now.max(at);
            rig.core.tick(rig.now);
            rig.drain();
        }
        while rig.step().is_some() {}
        delays.push(rig.finished.iter().map(|f| f.dispatched).max().expect("both finished").since(sent));
    }
    delays
}

#[test]
fn a_host_that_wakes_up_late_is_given_the_time_that_it_needs() {
    let punctual = dispatch_delays(Dur::ZERO, 200);
    let late = dispatch_delays(Dur::from_ms(20), 200);
    // The punctual host waits for some milliseconds each time; the late one learns that it must not
    // wait at all.
    let mean = |d: &[Dur]| d.iter().map(|d| d.0).sum::<u64>() / d.len() as u64;
    assert!(mean(&punctual[100..]) > 2_000_000, "{punctual:?}");
    assert!(late[120..].iter().all(|&d| d == Dur::ZERO), "{late:?}");
}

#[test]
fn a_read_that_continues_the_one_at_the_drive_is_dispatched_at_once() {
    let mut rig = rig(&profile(3), Commitment::Late);
    rig.submit(Kind::Read, 3_000, 8);
    rig.submit(Kind::Read, 1_000, 8);
    assert_eq!((rig.core.outstanding(), rig.core.waiting()), (1, 1));
    let mut rig = self::rig(&profile(3), Commitment::Late);
    rig.submit(Kind::Read, 3_000, 8);
    rig.submit(Kind::Read, 3_008, 8);
    assert_eq!((rig.core.outstanding(), rig.core.waiting()), (2, 0));
}

#[test]
fn a_write_is_dispatched_early_enough_for_its_data_to_cross_the_bus() {
    let wakeup = |count| {
        let mut rig = rig(&profile(3), Commitment::Late);
        rig.submit(Kind::Read, rig.drive.capacity() - 1, 1);
        rig.submit(Kind::Write, 100, count);
        rig.core.next_wakeup().expect("it waits")
    };
    let (short, long) = (wakeup(1), wakeup(61));
    // 3.2 us a sector.
    assert_eq!(short.since(long), Dur::from_us(192));
}

/// A drive with a write cache that reorders commands.
fn caching() -> Profile {
    let mut p = profile(3);
    p.electronics.cache = CacheSpec {
        segments: 16,
        segment_sectors: 128,
        prefetch: Prefetch::None,
        write_back: true,
        dirty_segments: 8,
        ..p.electronics.cache
    };
    p.electronics.queue = QueueSpec { depth: 16, order: FirmwareOrder::Sptf, ..QueueSpec::default() };
    p
}

#[test]
fn a_drive_whose_cache_may_hold_writes_is_given_all_commands_until_a_flush_or_a_pause() {
    let p = caching();
    for flushes in [true, false] {
        let mut rig = rig(&p, Commitment::Late);
        rig.core = Rig::new(&p, noiseless(), Order::Sptf, 2).core.handing_over(16);
        rig.submit(Kind::Read, 0, 1);
        while rig.step().is_some() {}
        let read = |rig: &mut Rig| {
            (1..=9).for_each(|i| rig.submit(Kind::Read, i * 300, 1));
            let outstanding = rig.core.outstanding();
            while rig.step().is_some() {}
            outstanding
        };
        assert!(read(&mut rig) <= 2, "nothing was written");
        rig.submit(Kind::Write, 2_000, 8);
        while rig.step().is_some() {}
        assert_eq!(read(&mut rig), 9, "the cache holds a write");
        if flushes {
            rig.submit(Kind::Flush, 0, 0);
            while rig.step().is_some() {}
        } else {
            rig.now += Dur::from_secs(1);
        }
        assert!(read(&mut rig) <= 2, "the cache is empty");
    }
}

#[test]
fn a_drive_that_had_a_pause_has_written_back_what_fits_into_it_and_one_write_at_least() {
    let at_once = [(1, 0, 100, false), (2, 0, 100, true), (2, 0, 60_000, false), (4, 0, 3_000, true)];
    // It begins to write back 100 ms after its last command, as far as the core knows.
    let after_a_delay =
        [(1, 100, 60_000, true), (1, 100, 150_000, false), (2, 100, 60_000, true), (2, 100, 150_000, false)];
    for (writes, delay_ms, pause_us, holds) in [at_once, after_a_delay].concat() {
        let mut rig = rig(&caching(), Commitment::Late);
        let mut p = caching();
        p.electronics.cache.destage_delay = Dur::from_ms(delay_ms);
        rig.core = Rig::new(&p, noiseless(), Order::Sptf, 2).core.handing_over(16);
        (0..writes).for_each(|i| rig.submit(Kind::Write, 2_000 + i * 700, 8));
        while rig.step().is_some() {}
        rig.now += Dur::from_us(pause_us);
        (1..=9).for_each(|i| rig.submit(Kind::Read, i * 300, 1));
        let outstanding = rig.core.outstanding();
        while rig.step().is_some() {}
        assert_eq!(
            outstanding == 9,
            holds,
            "{writes} writes, {delay_ms} ms, {pause_us} us: {outstanding} at the drive"
        );
    }
}

#[test]
fn short_reads_that_continue_each_other_are_all_at_the_drive_and_others_wait() {
    let mut p = caching();
    (p.electronics.cache.write_back, p.electronics.cache.prefetch) = (false, Prefetch::TrackAhead);
    let outstanding = |depth: u32, order: Order, lbns: &[u64]| {
        let mut rig = Rig::new(&p, noiseless(), order, 2);
        rig.core = Rig::new(&p, noiseless(), order, 2).core.handing_over(depth);
        lbns.iter().for_each(|&lbn| rig.submit(Kind::Read, lbn, 4));
        let outstanding = rig.core.outstanding();
        while rig.step().is_some() {}
        assert_eq!(rig.finished.len(), lbns.len());
        (outstanding, rig.now)
    };
    let in_order: Vec<u64> = (0..20).map(|i| i * 4).collect();
    for order in [Order::Sptf, Order::SptfAhead, Order::Clook] {
        let (chained, soon) = outstanding(16, order, &in_order);
        let (two, late) = outstanding(2, order, &in_order);
        assert_eq!((chained, two), (16, 2), "{order:?}");
        assert!(soon <= late, "{order:?}: {soon} with a chain, {late} without");
        // One of them does not continue the preceding one.
        let gap: Vec<u64> = (0..20).map(|i| i * 4 + if i >= 6 { 400 } else { 0 }).collect();
        assert_eq!(outstanding(16, order, &gap).0, 6, "{order:?}");
        let apart: Vec<u64> = (0..20).map(|i| i * 50).collect();
        assert!(outstanding(16, order, &apart).0 <= 2, "{order:?}");
    }
}
