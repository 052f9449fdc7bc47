//! A disk, and a server over it that can be started and stopped, for tests of background
//! applications.

mod frail;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use headtime_disk::profile::{self, Profile};
use headtime_disk::{DriveConfig, Fault, Kind, Model};
use headtime_sched::{Algorithm, Config, Core, FillConfig, Order, TaskRange};
use headtime_serve::apps::error::AppError;
use headtime_serve::apps::job::{End, Job, Sink, Status};
use headtime_serve::apps::progress::{Notes, Progress};
use headtime_serve::apps::runner;
use headtime_serve::apps::units::Units;
use headtime_serve::backing;
use headtime_serve::device::virtual_drive::VirtualDrive;
use headtime_serve::engine::messages::{Answer, EngineMessage, Submission};
use headtime_serve::layout::Area;
use headtime_serve::net::exports::{ExportSpec, Exports};
use headtime_serve::server::{ControlAt, ServeError, Server, Service};
use headtime_testkit::profiles::cut;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use frail::{Frail, Frailty};

pub const SECTOR: u64 = 512;
pub const UNIT: u32 = 16;

/// A disk, and a server over it that can be started and stopped.
pub struct World {
    pub dir: tempfile::TempDir,
    profile: Profile,
    pub sectors: u64,
    faults: Vec<Fault>,
    area: Option<Area>,
    started: bool,
    server: Option<Server>,
    /// The first sector of its export, from the next start on.
    pub first: u64,
    /// Whether background work uses idle time, from the next start on. Otherwise it gets nothing
    /// beside foreground work, and without that only what is promoted.
    pub idle: bool,
    /// How its drive fails.
    pub frailty: Arc<Mutex<Frailty>>,
    pub runtime: Runtime,
    _stop: watch::Sender<bool>,
    pub stop: watch::Receiver<bool>,
}

impl World {
    pub fn new(cylinders: u32, faults: Vec<Fault>) -> World {
        World::with(cylinders, faults, |_| None)
    }

    /// Creates a world whose export is reorganised: the last eighth of the disk is the reserve.
    pub fn reorganised(cylinders: u32) -> World {
        World::with(cylinders, vec![], |sectors| {
            // Whole blocks of 4 KiB.
            let first = sectors / 8 * 7 / 8 * 8;
            let reserve = TaskRange { lbn: first, count: (sectors - first) / 8 * 8 };
            Some(Area { part: TaskRange { lbn: 0, count: first }, reserve, unit: 128, sector_bytes: 512 })
        })
    }

    /// Creates a world whose export is reorganised: the reserve is in its middle.
    pub fn reorganised_around(cylinders: u32) -> World {
        World::with(cylinders, vec![], |sectors| {
            let reserve = TaskRange { lbn: sectors / 2 / 128 * 128, count: sectors / 8 / 8 * 8 };
            let part = TaskRange { lbn: 0, count: sectors - reserve.count };
            Some(Area { part, reserve, unit: 128, sector_bytes: 512 })
        })
    }

    fn with(cylinders: u32, faults: Vec<Fault>, area: impl Fn(u64) -> Option<Area>) -> World {
        let mut profile = cut(profile::builtin("atlas10k").unwrap(), cylinders);
        if !faults.is_empty() {
            // Data that the drive has read ahead is not read again and would hide a fault.
            profile.electronics.cache.segments = 0;
        }
        let sectors = Model::new(&profile).unwrap().geometry.capacity();
        let (tell, stop) = watch::channel(false);
        let dir = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let area = area(sectors);
        let (started, server) = (false, None);
        let frailty = Arc::default();
        let (_stop, first, idle) = (tell, 0, true);
        let mut w =
            World { dir, profile, sectors, faults, area, started, server, first, idle, frailty, runtime, _stop, stop };
        let content: Vec<u8> = (0..sectors * SECTOR).map(|i| (i / 4096 * 7 + i % 251) as u8).collect();
        std::fs::write(w.path("disk"), content).unwrap();
        w.start();
        w
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn start(&mut self) {
        // The threads of a server that was stopped in this process may still have the socket.
        let deadline = Instant::now() + TEST_TIMEOUT;
        self.server = Some(loop {
            match self.server() {
                Err(ServeError::Listen(_)) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                started => break started.unwrap(),
            }
        });
        self.started = true;
    }

    fn server(&self) -> Result<Server, ServeError> {
        let model = Model::new(&self.profile).unwrap();
        let (disk, control) = (self.path("disk"), self.path("control"));
        let file = backing::open(&disk, self.sectors * SECTOR).unwrap();
        let config = DriveConfig::default().with_faults(self.faults.clone());
        let drive = VirtualDrive::new(&self.profile, config, file).unwrap();
        let drive = Frail::new(drive, Arc::clone(&self.frailty));
        let data = ExportSpec {
            name: "data".into(),
            description: String::new(),
            first: self.first,
            sectors: self.area.map_or(self.sectors, |area| area.part.count) - self.first,
            read_only: false,
            weight: 100,
        };
        let exports = Exports::new(vec![data], self.sectors, 512).unwrap();
        let fill = FillConfig::new(Algorithm::Headtime);
        let fill = FillConfig { idle: fill.idle.filter(|_| self.idle), ..fill };
        let core = Core::new(Config::new(Order::Sptf).with_capacity(1024).with_fill(Some(fill)), model);
        let mut service = Service::new(Vec::new(), exports, Arc::new(|_, _| {}));
        service.layouts = self.area.into_iter().map(|area| (0, area)).collect();
        service.new_maps = self.area.into_iter().filter(|_| !self.started).map(|_| 0).collect();
        let (disk, disk_id) = (self.profile.title.clone(), backing::id(&disk).unwrap());
        service.control = Some(ControlAt { path: control, disk, disk_id, sectors: self.sectors, fills: true });
        Server::start(core, drive, service)
    }

    /// Sends the server a request of a client of the export; returns a read's data.
    pub fn ask(&self, kind: Kind, lbn: u64, count: u32, data: Vec<u8>) -> Answer {
        let (reply, mut answers) = tokio::sync::mpsc::unbounded_channel();
        let reply = Some((reply, 0));
        let submission = Submission { kind, lbn, count, data: data.into(), reply, ..Submission::flush() };
        self.server.as_ref().unwrap().engine().send(EngineMessage::Submit(submission)).unwrap();
        answers.blocking_recv().expect("every request is answered").1
    }

    /// Returns what is reorganised.
    pub fn area(&self) -> Area {
        self.area.unwrap()
    }

    pub fn stop(&mut self) {
        self.server.take().unwrap().stop().unwrap();
    }

    pub fn job(&self) -> Job {
        Job { journal: Some(self.path("journal")), ..Job::new(self.path("control"), "test") }
    }

    pub fn progress(&self) -> Progress {
        let units = Units::new(vec![TaskRange { lbn: 0, count: self.sectors }], UNIT, self.sectors, 512).unwrap();
        let disk = format!("{} [{}]", self.profile.title, backing::id(&self.path("disk")).unwrap());
        Progress::new("scrub", &disk, self.sectors, 512, "the whole disk", units)
    }

    /// Runs a job until it ends, with a time limit.
    pub fn run(&self, job: &Job, progress: &mut Progress, sink: &mut (impl Sink + Send)) -> Result<End, AppError> {
        let mut quiet = |_: &Status| {};
        let run = runner::run(job, progress, sink, &mut quiet, self.stop.clone());
        self.runtime.block_on(async { tokio::time::timeout(TEST_TIMEOUT, run).await.expect("it comes to an end") })
    }

    /// Creates paths that are not files: `pipe` and `folder`.
    pub fn put_odd_files(&self) {
        let pipe = self.path("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        std::fs::create_dir(self.path("folder")).unwrap();
    }

    pub fn disk(&self) -> Vec<u8> {
        std::fs::read(self.path("disk")).unwrap()
    }
}

/// Far more time than any test needs, even on a busy machine.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Keeps the delivered data.
#[derive(Default)]
pub struct Keep {
    pub data: Vec<u8>,
    pub times: Vec<u8>,
}

impl Keep {
    pub fn new(w: &World) -> Keep {
        Keep { data: vec![0; (w.sectors * SECTOR) as usize], times: vec![0; w.sectors as usize] }
    }
}

impl Sink for Keep {
    fn unit(&mut self, _: u64, r: TaskRange, data: &[u8], _: &mut Notes) -> Result<(), AppError> {
        self.data[(r.lbn * SECTOR) as usize..(r.end() * SECTOR) as usize].copy_from_slice(data);
        self.times[r.lbn as usize..r.end() as usize].iter_mut().for_each(|t| *t += 1);
        Ok(())
    }

    fn damaged(&mut self, _: u64, _: TaskRange, _: &[u8], bad: &[TaskRange]) -> Result<(), AppError> {
        panic!("nothing is unreadable here: {bad:?}");
    }
}

/// A number of cylinders that takes the drive seconds to read, so that a test can act in the middle
/// of a run on a busy machine.
pub const MANY_CYLINDERS: u32 = 40;
