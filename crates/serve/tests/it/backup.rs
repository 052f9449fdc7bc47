//! Backups against a server in real time: the image, its files, and its end.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use headtime_serve::apps::backup::{self, Backup, Moment};
use headtime_serve::apps::error::AppError;
use headtime_serve::apps::pace::Floor;
use tokio::sync::watch;

use crate::applying::{MANY_CYLINDERS, TEST_TIMEOUT, World};

fn plan(w: &World) -> Backup {
    Backup {
        job: w.job(),
        export: Some("data".into()),
        image: w.path("image"),
        live: false,
        unit: None,
        overwrite: false,
        restart: false,
        verify_disk: true,
    }
}

#[test]
fn a_backup_is_the_disk_and_leaves_nothing_else_behind() {
    let w = World::new(2, vec![]);
    let made = w.runtime.block_on(backup::run(&plan(&w), &mut |_| {}, w.stop.clone())).unwrap().unwrap();
    assert!(made.is_good() && made.moment == Moment::PointInTime && made.differ_from_disk_bytes == Some(0));
    assert_eq!(std::fs::read(w.path("image")).unwrap(), w.disk());
    let left: Vec<_> = std::fs::read_dir(w.dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "disk, control, image: {left:?}");
    let again = w.runtime.block_on(backup::run(&plan(&w), &mut |_| {}, w.stop.clone()));
    assert!(matches!(again, Err(AppError::Exists(_))));
}

#[test]
fn what_is_no_file_is_neither_waited_for_nor_replaced() {
    let w = World::new(1, vec![]);
    w.put_odd_files();
    let backup = |image: PathBuf| {
        let begun = Mutex::new(false);
        let plan = Backup { image, overwrite: true, ..plan(&w) };
        let made = w.runtime.block_on(backup::run(&plan, &mut |_| *begun.lock().unwrap() = true, w.stop.clone()));
        assert!(!*begun.lock().unwrap(), "what cannot have a name is found out before it is read");
        made.unwrap_err()
    };
    assert!(matches!(backup(w.path("pipe")), AppError::NoPlainFile(_)));
    assert!(matches!(backup(w.path("folder")), AppError::NoPlainFile(_)));
    assert!(matches!(backup(w.path("folder/..")), AppError::NoPlainFile(_)));
    assert!(matches!(backup(w.path("new/")), AppError::NoName(_)));
    std::fs::rename(w.path("pipe"), w.path("image.journal")).unwrap();
    let live = Backup { live: true, ..plan(&w) };
    let made = w.runtime.block_on(backup::run(&live, &mut |_| {}, w.stop.clone()));
    assert!(matches!(made, Err(AppError::NoPlainFile(_))), "{made:?}");
}

#[test]
fn what_an_unfinished_image_lacks_is_named_and_how_to_begin_anew() {
    let w = World::new(MANY_CYLINDERS, vec![]);
    let live = Backup { live: true, ..plan(&w) };
    let unfinished = || {
        let (tell, stop) = watch::channel(false);
        let restart = Backup { restart: true, ..live.clone() };
        let mut see = |step: backup::Step| {
            if matches!(step, backup::Step::Reading(s) if s.done > 0) {
                let _ = tell.send(true);
            }
        };
        assert!(w.runtime.block_on(backup::run(&restart, &mut see, stop)).unwrap().is_none(), "it was to be stopped");
    };
    let lacking = || {
        let made = w.runtime.block_on(backup::run(&live, &mut |_| {}, w.stop.clone()));
        let e = made.unwrap_err();
        assert!(matches!(e, AppError::Leftover { .. }) && e.to_string().ends_with("--restart begins anew"), "{e}");
        e.to_string()
    };
    unfinished();
    std::fs::remove_file(w.path("image.part")).unwrap();
    assert!(lacking().contains("image.part: expected the unfinished image"));
    unfinished();
    std::fs::write(w.path("image.sums"), "short").unwrap();
    assert!(lacking().contains("image.sums: expected checksums"));
    unfinished();
    std::fs::remove_file(w.path("image.sums")).unwrap();
    for _ in 0..2 {
        assert!(lacking().contains("image.sums: expected the checksums of the unfinished image"));
    }
}

/// Without foreground and idle time what arrives is promoted.
#[test]
fn a_deadline_holds_for_both_reads_of_the_disk_together() {
    let mut w = World::new(1, vec![]);
    w.stop();
    w.idle = false;
    w.start();
    let mut plan = plan(&w);
    let within = Duration::from_secs(20);
    plan.job.floor = Floor { bytes_s: None, within: Some(within) };
    let (began, mut read) = (Instant::now(), None);
    let mut see = |step: backup::Step| {
        if matches!(step, backup::Step::Comparing(_)) {
            read.get_or_insert_with(|| began.elapsed());
        }
    };
    let making = backup::run(&plan, &mut see, w.stop.clone());
    let made = w.runtime.block_on(async { tokio::time::timeout(TEST_TIMEOUT, making).await });
    let made = made.expect("it comes to an end").unwrap().unwrap();
    let (read, all) = (read.unwrap(), began.elapsed());
    assert!(made.is_good() && made.differ_from_disk_bytes == Some(0), "{made:?}");
    // With the whole time for each, the first would take all of it, and both twice as long.
    assert!(read < within / 5 * 4 && all < within * 3 / 2, "{read:?} of {all:?}");
    // They use the time: nothing is promoted before it must be.
    assert!(all > within / 2, "{all:?}");
}

#[test]
fn an_image_of_a_point_in_time_does_not_outlive_its_session() {
    let mut w = World::new(6, vec![]);
    let (plan, stop, handle) = (plan(&w), w.stop.clone(), w.runtime.handle().clone());
    let (done, seen) = watch::channel(false);
    let made = std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let mut tell = |_: backup::Step| _ = done.send(true);
            handle.block_on(backup::run(&plan, &mut tell, stop))
        });
        let began = Instant::now();
        while !*seen.borrow() && began.elapsed() < TEST_TIMEOUT {
            std::thread::sleep(Duration::from_millis(1));
        }
        w.stop();
        running.join().unwrap()
    });
    assert!(matches!(made, Err(AppError::Lost(_) | AppError::Client(_))), "{made:?}");
    assert!(!w.path("image").exists() && !w.path("image.part").exists());
}
