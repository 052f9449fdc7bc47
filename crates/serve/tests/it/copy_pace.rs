//! The pace of copies: the deadline of both steps, blocks that gaps do not bring, and a destination
//! that is slower than the source.

use std::time::{Duration, Instant};

use headtime_serve::apps::copy::{self, Outcome, Plan, Step};
use headtime_serve::apps::job::State;
use headtime_serve::apps::pace::Floor;
use tokio::sync::watch;

use crate::applying::{SECTOR, TEST_TIMEOUT, World};
use crate::copy::{complete, plan, run, worlds};
use crate::copy_faults::{slow, stop_after};

/// Restarts a server, which then does background work in gaps alone. Without foreground there are
/// none: apart from a unit in each two seconds, which would take minutes, what arrives is promoted.
fn take_idle_time(w: &mut World) {
    w.stop();
    w.idle = false;
    w.start();
}

fn without_idle_time(cylinders: u32) -> (World, World) {
    let (mut from, mut to) = worlds(cylinders);
    [&mut from, &mut to].into_iter().for_each(take_idle_time);
    (from, to)
}

#[test]
fn blocks_for_which_no_gap_comes_are_written_as_foreground_work() {
    let (from, to) = without_idle_time(2);
    let mut plan = plan(&from, &to);
    plan.job.floor = Floor { bytes_s: Some(from.sectors as f64 * SECTOR as f64 / 3.0), within: None };
    let mut slow = 0;
    let report = complete(run(&from, &plan, &mut |step| {
        slow += u32::from(matches!(step, Step::Copying(s) if s.state == State::AwaitsDestination));
    }));
    assert!(report.is_good() && report.wrong_bytes == Some(0), "{report:?}");
    assert!(from.disk() == to.disk());
    assert!(report.promoted_bytes > report.bytes / 10 * 9, "{report:?}");
    // The last ones waited at the destination, with everything read.
    assert!(slow > 0 && report.destination_seconds > 0.0, "{slow} {report:?}");
    assert!((1..=report.bytes).contains(&report.destination_promoted_bytes), "{report:?}");
}

/// It ran in idle time, and is promoted near its end.
#[test]
fn the_last_blocks_of_a_copy_are_promoted_when_idle_time_ends() {
    let (from, mut to) = worlds(2);
    let mut live = slow(&from, &to);
    stop_after(3, &from, &live);
    take_idle_time(&mut to);
    live.job.max_mb_s = None;
    live.job.floor = Floor { bytes_s: Some(from.sectors as f64 * SECTOR as f64 / 3.0), within: None };
    let mut began = 0;
    let report = complete(run(&from, &live, &mut |step| {
        if let Step::Begins(_, done) = step {
            began = done;
        }
    }));
    assert!(began > report.bytes / 4 * 3 && report.bytes - began > 20 * 8192, "{began} {report:?}");
    assert!(report.is_good() && report.wrong_bytes == Some(0) && from.disk() == to.disk(), "{report:?}");
}

/// The server of the source keeps no more than a window, so without room at the destination a copy
/// of one point in time would be lost. It has no floor: only what the room needs is promoted.
#[test]
fn a_copy_of_one_point_in_time_makes_room_at_a_destination_without_gaps() {
    let (from, mut to) = worlds(80);
    take_idle_time(&mut to);
    let window = 64 << 20;
    assert!(from.sectors * SECTOR > window + (8 << 20), "it is larger than what may be on its way");
    let plan = plan(&from, &to);
    let (tell, stop) = watch::channel(false);
    let mut reached = 0;
    let mut see = |step: Step| {
        if let Step::Copying(s) = step {
            reached = s.done;
            let _ = tell.send(s.done + window / 4 * 3 >= s.total);
        }
    };
    let copying = copy::run(&plan, &mut see, stop);
    let stopped = from.runtime.block_on(async { tokio::time::timeout(TEST_TIMEOUT, copying).await });
    let stopped = stopped.expect("all but three quarters of the window is written").unwrap();
    assert!(matches!(stopped, Outcome::Stopped(None)), "{reached} {stopped:?}");
}

#[test]
fn a_deadline_holds_for_copying_and_verifying_together() {
    let (from, to) = without_idle_time(1);
    let mut plan = plan(&from, &to);
    let within = Duration::from_secs(24);
    plan.job.floor = Floor { bytes_s: None, within: Some(within) };
    let (began, mut copied) = (Instant::now(), None);
    let report = complete(run(&from, &plan, &mut |step| {
        if matches!(step, Step::Verifying(_)) {
            copied.get_or_insert_with(|| began.elapsed());
        }
    }));
    let (copied, all) = (copied.unwrap(), began.elapsed());
    assert!(report.is_good() && report.wrong_bytes == Some(0), "{report:?}");
    // With the whole time for each step, copying would take all of it, and both twice as long.
    assert!(copied < within * 3 / 4 && all < within * 3 / 2, "{copied:?} of {all:?}");
    // They use the time: nothing is promoted before it must be.
    assert!(all > within / 2, "{all:?}");
}

/// Copying is not faster than the deadline demands if nothing is verified.
#[test]
fn without_verifying_the_deadline_is_that_of_copying() {
    let (from, to) = without_idle_time(1);
    let mut plan = Plan { verify: false, ..plan(&from, &to) };
    plan.job.floor = Floor { bytes_s: None, within: Some(Duration::from_secs(20)) };
    let began = Instant::now();
    assert!(complete(run(&from, &plan, &mut |_| {})).is_good());
    // Half of the time would be kept for verifying. Stragglers bring a part sooner.
    assert!(began.elapsed() > Duration::from_secs(12), "{:?}", began.elapsed());
}
