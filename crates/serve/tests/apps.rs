//! Background applications against a server in real time, over the first cylinders of a drive.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use headtime_disk::drive::{DriveConfig, Fault};
use headtime_disk::model::Model;
use headtime_disk::profile::{self, Profile};
use headtime_sched::core::{Config, Core};
use headtime_sched::fill::Algorithm;
use headtime_sched::fill::subsystem::FillConfig;
use headtime_sched::order::Order;
use headtime_sched::tasks::Range;
use headtime_serve::apps::backup::{self, Backup, Moment};
use headtime_serve::apps::error::AppError;
use headtime_serve::apps::hand::{self, Writing};
use headtime_serve::apps::job::{End, Job, Sink, State, Status};
use headtime_serve::apps::link::{Link, answer, look};
use headtime_serve::apps::pace::Floor;
use headtime_serve::apps::progress::{JournalError, Notes, Progress};
use headtime_serve::apps::runner;
use headtime_serve::apps::scrub::{self, Catalogue, Report, Scrub};
use headtime_serve::apps::sums::Sums;
use headtime_serve::apps::units::Units;
use headtime_serve::backing;
use headtime_serve::control::client::ClientError;
use headtime_serve::control::v1::session_call::Call;
use headtime_serve::control::v1::session_event::Event;
use headtime_serve::control::v1::{ChangeRequest, Export, Foreground, Kind, change_request};
use headtime_serve::destage::driver::{Upstream, UpstreamError};
use headtime_serve::device::virtual_drive::VirtualDrive;
use headtime_serve::net::exports::{ExportSpec, Exports};
use headtime_serve::server::{ControlAt, Server, Service};
use headtime_testkit::profiles::cut;
use tokio::runtime::Runtime;
use tokio::sync::watch;

const SECTOR: u64 = 512;
const UNIT: u32 = 16;

/// A disk, and a server that can be started and stopped over it.
struct World {
    dir: tempfile::TempDir,
    profile: Profile,
    sectors: u64,
    faults: Vec<Fault>,
    server: Option<Server>,
    runtime: Runtime,
    _stop: watch::Sender<bool>,
    stop: watch::Receiver<bool>,
}

impl World {
    fn new(cylinders: u32, faults: Vec<Fault>) -> World {
        let mut profile = cut(profile::builtin("atlas10k").unwrap(), cylinders);
        if !faults.is_empty() {
            // What the drive has read ahead is not read again, so a fault there would not show.
            profile.electronics.cache.segments = 0;
        }
        let sectors = Model::new(&profile).unwrap().geometry.capacity();
        let (tell, stop) = watch::channel(false);
        let dir = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let mut w = World { dir, profile, sectors, faults, server: None, runtime, _stop: tell, stop };
        let content: Vec<u8> = (0..sectors * SECTOR).map(|i| (i / 4096 * 7 + i % 251) as u8).collect();
        std::fs::write(w.path("disk"), content).unwrap();
        w.start();
        w
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn start(&mut self) {
        self.server = Some(start(&self.profile, self.sectors, &self.faults, self.path("disk"), self.path("control")));
    }

    fn stop(&mut self) {
        self.server.take().unwrap().stop().unwrap();
    }

    fn job(&self) -> Job {
        Job { journal: Some(self.path("journal")), ..Job::new(self.path("control"), "test") }
    }

    fn progress(&self) -> Progress {
        let units = Units::new(vec![Range { lbn: 0, count: self.sectors }], UNIT, self.sectors, 512).unwrap();
        let disk = format!("{} [{}]", self.profile.title, backing::id(&self.path("disk")).unwrap());
        Progress::new("scrub", &disk, self.sectors, 512, "the whole disk", units)
    }

    /// Runs a job to its end, which must come within a time.
    fn run(&self, job: &Job, progress: &mut Progress, sink: &mut (impl Sink + Send)) -> Result<End, AppError> {
        let mut quiet = |_: &Status| {};
        let run = runner::run(job, progress, sink, &mut quiet, self.stop.clone());
        self.runtime.block_on(async { tokio::time::timeout(LONGEST, run).await.expect("it comes to an end") })
    }

    fn disk(&self) -> Vec<u8> {
        std::fs::read(self.path("disk")).unwrap()
    }
}

/// Far more than anything here takes; a machine may be busy.
const LONGEST: Duration = Duration::from_secs(60);

fn start(profile: &Profile, sectors: u64, faults: &[Fault], disk: PathBuf, control: PathBuf) -> Server {
    let model = Model::new(profile).unwrap();
    let file = backing::open(&disk, sectors * SECTOR).unwrap();
    let config = DriveConfig { faults: faults.to_vec(), ..DriveConfig::default() };
    let drive = VirtualDrive::new(profile, config, file).unwrap();
    let whole = ExportSpec {
        name: "data".into(),
        description: String::new(),
        first: 0,
        sectors,
        read_only: false,
        weight: 100,
    };
    let exports = Exports::new(vec![whole], sectors, 512).unwrap();
    let fill = Some(FillConfig::new(Algorithm::Headtime));
    let core = Core::new(Config { order: Order::Sptf, max_outstanding: 2, capacity: 1024, fill }, model);
    let mut service = Service::new(Vec::new(), exports, Arc::new(|_, _| {}));
    let disk_id = backing::id(&disk).unwrap();
    service.control = Some(ControlAt { path: control, disk: profile.title.clone(), disk_id, sectors, fills: true });
    Server::start(core, drive, service).unwrap()
}

/// Keeps what came.
#[derive(Default)]
struct Keep {
    data: Vec<u8>,
    times: Vec<u8>,
}

impl Keep {
    fn new(w: &World) -> Keep {
        Keep { data: vec![0; (w.sectors * SECTOR) as usize], times: vec![0; w.sectors as usize] }
    }
}

impl Sink for Keep {
    fn unit(&mut self, _: u64, r: Range, data: &[u8], _: &mut Notes) -> Result<(), AppError> {
        self.data[(r.lbn * SECTOR) as usize..(r.end() * SECTOR) as usize].copy_from_slice(data);
        self.times[r.lbn as usize..r.end() as usize].iter_mut().for_each(|t| *t += 1);
        Ok(())
    }

    fn damaged(&mut self, _: u64, _: Range, _: &[u8], bad: &[Range]) -> Result<(), AppError> {
        panic!("nothing is unreadable here: {bad:?}");
    }
}

#[test]
fn every_block_comes_once_with_its_data() {
    let w = World::new(3, vec![]);
    let (mut progress, mut keep) = (w.progress(), Keep::new(&w));
    assert_eq!(w.run(&w.job(), &mut progress, &mut keep).unwrap(), End::Complete);
    assert!(keep.times.iter().all(|&t| t == 1));
    assert_eq!(keep.data, w.disk());
    assert_eq!(progress.notes.promoted_bytes, 0, "there was no floor");
}

#[test]
fn planted_unreadable_sectors_are_reported_exactly() {
    let planted = [Range { lbn: 100, count: 1 }, Range { lbn: 1003, count: 20 }];
    let faults = planted.map(|r| Fault::Unreadable { lbn: r.lbn, count: r.count }).to_vec();
    let w = World::new(1, faults);
    let (mut progress, mut sink) = (w.progress(), Scrub::default());
    assert_eq!(w.run(&w.job(), &mut progress, &mut sink).unwrap(), End::Complete);
    assert_eq!(progress.unreadable_ranges().iter().collect::<Vec<_>>(), planted);
    let (_, info) = w.runtime.block_on(look(&w.path("control"))).unwrap();
    let report = Report::new(&info, &progress, &sink);
    assert!(!report.is_clean());
    assert_eq!((report.unreadable[0].export.as_deref(), report.unreadable[0].offset), (Some("data"), 100 * SECTOR));
}

#[test]
fn an_image_of_one_moment_gives_up_whole_units_and_reads_nothing_a_second_time() {
    let w = World::new(1, vec![Fault::Unreadable { lbn: 100, count: 1 }]);
    let job = Job { point_in_time: true, journal: None, ..w.job() };
    let (mut progress, mut sink) = (w.progress(), Scrub::default());
    assert_eq!(w.run(&job, &mut progress, &mut sink).unwrap(), End::Complete);
    let unit = u64::from(UNIT);
    let given_up: Vec<Range> = progress.unreadable_ranges().iter().collect();
    // The unit of the sector, and such as were read with it: all of them whole.
    assert!(given_up.iter().any(|r| r.lbn <= 100 && 100 < r.end()), "{given_up:?}");
    assert!(given_up.iter().all(|r| r.lbn % unit == 0 && r.count >= unit), "{given_up:?}");
}

#[test]
fn another_disk_of_the_same_model_and_an_export_that_changed_are_not_gone_on_with() {
    let (one, other) = (World::new(1, vec![]), World::new(1, vec![]));
    let refused =
        |job: &Job, mut progress: Progress| other.run(job, &mut progress, &mut Keep::new(&other)).unwrap_err();
    assert!(matches!(refused(&other.job(), one.progress()), AppError::OtherDisk { .. }));
    let export = |first| Some(Export { name: "data".into(), first, sectors: other.sectors, ..Export::default() });
    let moved = Job { export: export(8), ..other.job() };
    assert!(matches!(refused(&moved, other.progress()), AppError::OtherExport { .. }));
    let job = Job { export: export(0), ..other.job() };
    assert_eq!(other.run(&job, &mut other.progress(), &mut Keep::new(&other)).unwrap(), End::Complete);
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
    assert_eq!(scrub(false), [unit], "without that it is told, and from now on expected");
    assert!(scrub(true).is_empty());
}

#[test]
fn a_restart_of_the_server_is_survived_and_every_block_is_seen_once() {
    let mut w = World::new(6, vec![]);
    let (job, mut progress, mut keep) = (w.job(), w.progress(), Keep::new(&w));
    let (done, seen) = watch::channel(0);
    let stop = w.stop.clone();
    let handle = w.runtime.handle().clone();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let mut tell = |s: &Status| _ = done.send(s.done);
            let run = runner::run(&job, &mut progress, &mut keep, &mut tell, stop);
            handle.block_on(async { tokio::time::timeout(LONGEST, run).await.expect("it comes to an end") })
        });
        let began = Instant::now();
        while *seen.borrow() == 0 && began.elapsed() < LONGEST {
            std::thread::sleep(Duration::from_millis(10));
        }
        w.stop();
        std::thread::sleep(Duration::from_millis(300));
        w.start();
        assert_eq!(running.join().unwrap().unwrap(), End::Complete);
    });
    assert!(keep.times.iter().all(|&t| t == 1));
    assert_eq!(keep.data, w.disk());
}

/// Cylinders that take the drive seconds to read, so that the middle of a run is not missed, however busy this machine is.
const LONG: u32 = 40;

/// What an operator does.
async fn suspend(control: &Path, session: u32, suspended: bool) {
    let change = Some(change_request::Change::Suspended(suspended));
    look(control).await.unwrap().0.change(ChangeRequest { session, change }).await.unwrap();
}

#[test]
fn an_operator_who_suspends_a_session_stops_it_at_once_and_it_goes_on_where_it_was() {
    let w = World::new(LONG, vec![]);
    let (job, mut progress, mut keep) = (w.job(), w.progress(), Keep::new(&w));
    let (seen, began) = (Arc::new(Mutex::new(Vec::<Status>::new())), Instant::now());
    let control = w.path("control");
    let saw = |what: fn(&Status) -> bool| {
        let seen = Arc::clone(&seen);
        async move {
            loop {
                if let Some(s) = seen.lock().unwrap().last().filter(|s| what(s)) {
                    return *s;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    };
    w.runtime.block_on(async {
        let mut tell = |s: &Status| seen.lock().unwrap().push(*s);
        let run = runner::run(&job, &mut progress, &mut keep, &mut tell, w.stop.clone());
        let operator = async {
            let session = saw(|s| s.session.is_some()).await.session.unwrap();
            suspend(&control, session, true).await;
            // What was on its way when it was suspended still comes.
            saw(|s| s.state == State::Paused).await;
            tokio::time::sleep(Duration::from_millis(600)).await;
            let paused = *seen.lock().unwrap().last().unwrap();
            tokio::time::sleep(Duration::from_millis(1_000)).await;
            let later = *seen.lock().unwrap().last().unwrap();
            assert_eq!((later.state, later.done, later.left), (State::Paused, paused.done, None));
            assert!(later.done < later.total, "there is nothing left to be suspended");
            suspend(&control, session, false).await;
        };
        let (end, ()) = tokio::time::timeout(LONGEST, async { tokio::join!(run, operator) }).await.unwrap();
        assert_eq!(end.unwrap(), End::Complete);
    });
    // Time in suspension is no time at work.
    let worked = Duration::from_millis(progress.notes.milliseconds);
    assert!(worked + Duration::from_millis(1_500) <= began.elapsed(), "{worked:?} of {:?}", began.elapsed());
    assert!(keep.times.iter().all(|&t| t == 1));
    assert_eq!(keep.data, w.disk());
}

#[test]
fn what_the_journal_says_is_not_read_again_after_the_application_was_killed() {
    let w = World::new(LONG, vec![]);
    let job = Job { save_every: Duration::ZERO, ..w.job() };
    let (mut progress, mut keep) = (w.progress(), Keep::new(&w));
    w.runtime.block_on(async {
        let (tell_session, mut session) = watch::channel(None);
        let mut tell = |s: &Status| _ = tell_session.send(s.session.filter(|_| s.done > 0));
        let run = runner::run(&job, &mut progress, &mut keep, &mut tell, w.stop.clone());
        // Held in the middle, so that however slow this machine's own disk is, the journal is written before the end.
        let middle = async {
            let session = session.wait_for(Option::is_some).await.unwrap().unwrap();
            suspend(&w.path("control"), session, true).await;
            let mut written = w.progress();
            while !written.resume(&w.path("journal")).unwrap_or(false) || written.done() == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        // Dropped there, as when it is killed.
        tokio::select! {
            _ = run => panic!("it should not have come to its end yet"),
            done = tokio::time::timeout(LONGEST, middle) => done.expect("the journal is written in the middle"),
        }
    });
    let (mut again, mut rest) = (w.progress(), Keep::new(&w));
    assert!(again.resume(&w.path("journal")).unwrap());
    let remembered = again.done();
    assert!(remembered > 0);
    assert_eq!(w.run(&job, &mut again, &mut rest).unwrap(), End::Complete);
    let read = rest.times.iter().filter(|&&t| t > 0).count() as u64;
    assert!(
        read <= w.sectors - remembered * u64::from(UNIT) + u64::from(UNIT),
        "{read} sectors read, {remembered} units remembered"
    );
    assert!(keep.times.iter().zip(&rest.times).all(|(a, b)| a + b >= 1), "nothing is left out");
    let mut journal = std::fs::read(w.path("journal")).unwrap();
    *journal.last_mut().unwrap() ^= 1;
    std::fs::write(w.path("journal"), journal).unwrap();
    assert!(matches!(w.progress().resume(&w.path("journal")), Err(JournalError::Damaged { .. })));
}

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
    let mknod = |name: &str, kind| rustix::fs::mknodat(rustix::fs::CWD, w.path(name), kind, 0o600.into(), 0).unwrap();
    mknod("pipe", rustix::fs::FileType::Fifo);
    std::fs::create_dir(w.path("folder")).unwrap();
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
    let scrub = |journal: &str, catalogue: Option<&str>| {
        let plan = scrub::Plan {
            job: w.job(),
            export: None,
            unit: None,
            catalogue: catalogue.map(|name| w.path(name)),
            expect_unchanged: false,
            journal: scrub::Journal::At(w.path(journal)),
            restart: true,
        };
        w.runtime.block_on(scrub::run(&plan, &mut |_| {}, w.stop.clone())).unwrap_err()
    };
    for odd in ["pipe", "folder"] {
        assert!(matches!(scrub(odd, None), AppError::NoPlainFile(_)));
        assert!(matches!(scrub("j", Some(odd)), AppError::NoPlainFile(_)));
    }
    std::fs::rename(w.path("pipe"), w.path("image.journal")).unwrap();
    let live = Backup { live: true, ..plan(&w) };
    let made = w.runtime.block_on(backup::run(&live, &mut |_| {}, w.stop.clone()));
    assert!(matches!(made, Err(AppError::NoPlainFile(_))), "{made:?}");
}

#[test]
fn a_complete_scrub_is_told_though_its_journal_cannot_be_written() {
    let w = World::new(1, vec![]);
    // A folder in the place of the file that the journal is renamed from, as good as a full disk.
    std::fs::create_dir(w.path("journal.new")).unwrap();
    let plan = scrub::Plan {
        job: w.job(),
        export: None,
        unit: None,
        catalogue: None,
        expect_unchanged: false,
        journal: scrub::Journal::At(w.path("journal")),
        restart: false,
    };
    let (report, end, _) = w.runtime.block_on(scrub::run(&plan, &mut |_| {}, w.stop.clone())).unwrap();
    assert!(end == End::Complete && report.complete && report.is_clean());
    // One that is not complete has to be gone on with, and so it fails.
    let (mut progress, mut keep) = (w.progress(), Keep::new(&w));
    let job = Job { save_every: Duration::ZERO, ..w.job() };
    assert!(matches!(w.run(&job, &mut progress, &mut keep), Err(AppError::File { .. })));
}

#[test]
fn what_an_unfinished_image_lacks_is_named_and_how_to_begin_anew() {
    let w = World::new(LONG, vec![]);
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
}

#[test]
fn a_server_that_says_nothing_is_no_reason_to_be_deaf() {
    let dir = tempfile::tempdir().unwrap();
    let control = dir.path().join("control");
    // It takes connections, and never answers.
    let _stopped = std::os::unix::net::UnixListener::bind(&control).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (tell, stop) = watch::channel(false);
    runtime.block_on(async {
        let asked = answer(&control, &stop, look(&control));
        let stops = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            tell.send(true).unwrap();
        };
        let (asked, ()) = tokio::time::timeout(LONGEST, async { tokio::join!(asked, stops) }).await.unwrap();
        assert!(matches!(asked, Err(AppError::Stopped)));
        let upstream = Upstream { control: control.clone(), export: "data".into(), priority: 1 };
        let both = async { tokio::join!(look(&control), upstream.look()) };
        let (looked, destages) = tokio::time::timeout(LONGEST, both).await.unwrap();
        // It may come to its senses: who was connected goes on waiting.
        let e = looked.unwrap_err();
        assert!(matches!(&e, AppError::Client(why @ ClientError::Silent { .. }) if why.is_temporary()), "{e}");
        assert!(matches!(destages, Err(UpstreamError::Client(ClientError::Silent { .. }))));
    });
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
        while !*seen.borrow() && began.elapsed() < LONGEST {
            std::thread::sleep(Duration::from_millis(1));
        }
        w.stop();
        running.join().unwrap()
    });
    assert!(matches!(made, Err(AppError::Lost(_) | AppError::Client(_))), "{made:?}");
    assert!(!w.path("image").exists() && !w.path("image.part").exists());
}

#[test]
fn what_is_written_by_hand_is_on_the_disk() {
    let w = World::new(2, vec![]);
    let data: Vec<u8> = (0..100 * SECTOR).map(|i| (i % 253) as u8 ^ 0x5a).collect();
    std::fs::write(w.path("input"), &data).unwrap();
    let mut writing = Writing {
        control: w.path("control"),
        priority: 100,
        ranges: vec![Range { lbn: 1000, count: 60 }, Range { lbn: 500, count: 40 }],
        unit: Some(UNIT),
        input: w.path("input"),
        promote: false,
    };
    let write = |w: &World, writing: &Writing| {
        let mut quiet = |_, _| {};
        let write = hand::write(writing, &mut quiet, w.stop.clone());
        w.runtime.block_on(async { tokio::time::timeout(LONGEST, write).await.expect("it comes to an end") })
    };
    let written = write(&w, &writing).unwrap();
    assert!(written.complete && written.written_bytes == 100 * SECTOR, "{written:?}");
    let (disk, at) = (w.disk(), |lbn: u64| (lbn * SECTOR) as usize);
    assert_eq!(disk[at(500)..at(540)], data[..at(40)]);
    assert_eq!(disk[at(1000)..at(1060)], data[at(40)..]);
    writing.ranges.pop();
    let input = std::mem::replace(&mut writing.input, w.dir.path().into());
    assert!(matches!(write(&w, &writing), Err(AppError::NoPlainFile(_))), "a directory");
    writing.input = input;
    assert!(matches!(write(&w, &writing), Err(AppError::Length { expected: 30_720, found: 51_200, .. })));
}

#[test]
fn a_floor_is_kept_while_the_foreground_is_busy() {
    let w = World::new(6, vec![]);
    let (control, sectors) = (w.path("control"), w.sectors);
    let busy = w.runtime.spawn(async move {
        let (mut control, info) = look(&control).await.unwrap();
        let mut link = Link::open(&mut control, &info, "foreground", 1, 1).await.unwrap();
        let ask = |token: u64| {
            let lbn = token.wrapping_mul(0x9e37_79b9_7f4a_7c15) % (sectors - 8);
            Call::Foreground(Foreground { token, kind: Kind::Read.into(), lbn, count: 8, ..Foreground::default() })
        };
        (0..4).for_each(|t| link.say(ask(t)));
        for token in 4.. {
            while !matches!(link.next().await.unwrap(), Event::Answered(_)) {}
            link.say(ask(token));
        }
    });
    // More than gaps bring here, and less than the disk can do.
    let job = Job { floor: Floor { bytes_s: Some(12e6), within: None }, ..w.job() };
    let (mut progress, mut keep) = (w.progress(), Keep::new(&w));
    let began = Instant::now();
    assert_eq!(w.run(&job, &mut progress, &mut keep).unwrap(), End::Complete);
    let (took, total) = (began.elapsed(), progress.bytes().1);
    busy.abort();
    assert!(keep.times.iter().all(|&t| t == 1), "what was promoted is not handed on twice");
    assert!(progress.notes.promoted_bytes > 0, "{total} bytes in {took:?}");
    // The first quarter of a second passes before anything is owed, and the last is owed when it is due.
    let kept = total as f64 / took.saturating_sub(Duration::from_millis(500)).as_secs_f64();
    assert!(kept >= 0.9 * 12e6, "{kept} bytes a second, {total} bytes in {took:?}");
    assert!(progress.notes.promoted_bytes <= total);
}
