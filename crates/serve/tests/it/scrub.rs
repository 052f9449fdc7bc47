//! Scrubs against a server in real time: their findings and reports.

use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use headtime_disk::Fault;
use headtime_sched::TaskRange;
use headtime_serve::apps::error::AppError;
use headtime_serve::apps::job::{End, Job};
use headtime_serve::apps::journal::Journal;
use headtime_serve::apps::link::look;
use headtime_serve::apps::pace::Floor;
use headtime_serve::apps::scrub::{self, Catalogue, Report, Scrub};
use headtime_serve::internals::apps::sums::Sums;

use crate::applying::{Keep, SECTOR, UNIT, World};

#[test]
fn planted_unreadable_sectors_are_reported_exactly() {
    let planted = [TaskRange { lbn: 100, count: 1 }, TaskRange { lbn: 1003, count: 20 }];
    let faults = planted.map(|r| Fault::Unreadable { lbn: r.lbn, count: r.count }).to_vec();
    let w = World::new(1, faults);
    let (mut progress, mut sink) = (w.progress(), Scrub::default());
    assert_eq!(w.run(&w.job(), &mut progress, &mut sink).unwrap(), End::Complete);
    assert_eq!(progress.unreadable_ranges().iter().collect::<Vec<_>>(), planted);
    let (_, info) = w.runtime.block_on(look(&w.path("control"))).unwrap();
    let report = Report::new(&info, &progress, &sink);
    assert!(!report.is_clean());
    assert_eq!(
        (report.read.unreadable[0].export.as_deref(), report.read.unreadable[0].offset),
        (Some("data"), 100 * SECTOR)
    );
}

#[test]
fn an_image_of_one_moment_gives_up_whole_units_and_reads_nothing_a_second_time() {
    let w = World::new(1, vec![Fault::Unreadable { lbn: 100, count: 1 }]);
    let job = Job { point_in_time: true, journal: None, ..w.job() };
    let (mut progress, mut sink) = (w.progress(), Scrub::default());
    assert_eq!(w.run(&job, &mut progress, &mut sink).unwrap(), End::Complete);
    let unit = u64::from(UNIT);
    let given_up: Vec<TaskRange> = progress.unreadable_ranges().iter().collect();
    // The unit of the sector, and units read together with it, all of them whole.
    assert!(given_up.iter().any(|r| r.lbn <= 100 && 100 < r.end()), "{given_up:?}");
    assert!(given_up.iter().all(|r| r.lbn % unit == 0 && r.count >= unit), "{given_up:?}");
}

#[test]
fn a_byte_that_changed_is_found_with_the_catalogue_until_it_is_mended() {
    let w = World::new(1, vec![]);
    let scrub = |expect_unchanged| {
        let mut progress = w.progress();
        let (sums, _) = Sums::open(&w.path("sums"), progress.identity(), progress.units().len()).unwrap();
        let mut sink = Scrub { catalogue: Some(Catalogue { sums, expect_unchanged }) };
        let job = Job { journal: None, ..w.job() };
        w.run(&job, &mut progress, &mut sink).unwrap();
        progress.notes.changed
    };
    assert!(scrub(true).is_empty());
    let file = std::fs::File::options().write(true).open(w.path("disk")).unwrap();
    let old = w.disk()[70_001];
    file.write_all_at(&[old ^ 1], 70_001).unwrap();
    let unit = (70_001 / SECTOR / 16 * 16, 16);
    assert_eq!(scrub(true), [unit]);
    assert_eq!(scrub(true), [unit], "it is found again");
    assert_eq!(scrub(false), [unit], "without that flag it is reported, and from now on expected");
    assert!(scrub(true).is_empty());
}

#[test]
fn what_is_no_file_is_neither_waited_for_nor_replaced() {
    let w = World::new(1, vec![]);
    w.put_odd_files();
    let scrub = |journal: &str, catalogue: Option<&str>| {
        let plan = scrub::Plan {
            job: w.job(),
            export: None,
            unit: None,
            catalogue: catalogue.map(|name| w.path(name)),
            expect_unchanged: false,
            journal: Journal::At(w.path(journal)),
            restart: true,
        };
        w.runtime.block_on(scrub::run(&plan, &mut |_| {}, w.stop.clone())).unwrap_err()
    };
    for odd in ["pipe", "folder"] {
        assert!(matches!(scrub(odd, None), AppError::NoPlainFile(_)));
        assert!(matches!(scrub("j", Some(odd)), AppError::NoPlainFile(_)));
    }
}

#[test]
fn a_complete_scrub_is_reported_though_its_journal_cannot_be_written() {
    let w = World::new(1, vec![]);
    // A directory at the journal's temporary name makes writing fail, like a full disk.
    std::fs::create_dir(w.path(".journal.new")).unwrap();
    let plan = scrub::Plan {
        job: w.job(),
        export: None,
        unit: None,
        catalogue: None,
        expect_unchanged: false,
        journal: Journal::At(w.path("journal")),
        restart: false,
    };
    let (report, end, _) = w.runtime.block_on(scrub::run(&plan, &mut |_| {}, w.stop.clone())).unwrap();
    assert!(end == End::Complete && report.read.complete && report.is_clean());
    // An incomplete job must be continued later, so it fails.
    let (mut progress, mut keep) = (w.progress(), Keep::new(&w));
    let job = Job { save_every: Duration::ZERO, ..w.job() };
    assert!(matches!(w.run(&job, &mut progress, &mut keep), Err(AppError::File { .. })));
}

/// What is promoted counts against the highest rate once, although two tasks of the job receive it,
/// and does not wait for it.
#[test]
fn a_least_rate_is_kept_with_a_highest_one_that_is_no_higher() {
    for idle in [false, true] {
        let mut w = World::new(2, vec![]);
        w.stop();
        w.idle = idle;
        w.start();
        let rate = w.sectors as f64 * SECTOR as f64 / 5.0;
        let floor = Floor { bytes_s: Some(rate), within: None };
        let job = Job { floor, max_mb_s: Some(rate / 1e6), ..w.job() };
        let (mut progress, began) = (w.progress(), Instant::now());
        assert_eq!(w.run(&job, &mut progress, &mut Scrub::default()).unwrap(), End::Complete);
        let (took, (bytes, promoted)) = (began.elapsed(), (progress.bytes().1, progress.notes.promoted_bytes));
        assert!((4..8).contains(&took.as_secs()), "idle {idle}: {took:?}, {promoted} of {bytes}");
        // Idle time brings all of it.
        assert!(!idle || promoted < bytes / 4, "{promoted} of {bytes}");
    }
}
