//! A disk, and a server over it that can be started and stopped, for tests of background
//! applications.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use headtime_disk::profile::{self, Profile};
use headtime_disk::{DriveConfig, Fault, Model};
use headtime_sched::{Algorithm, Config, Core, FillConfig, Order, TaskRange};
use headtime_serve::apps::error::AppError;
use headtime_serve::apps::job::{End, Job, Sink, Status};
use headtime_serve::apps::progress::{Notes, Progress};
use headtime_serve::apps::runner;
use headtime_serve::apps::units::Units;
use headtime_serve::backing;
use headtime_serve::device::virtual_drive::VirtualDrive;
use headtime_serve::net::exports::{ExportSpec, Exports};
use headtime_serve::server::{ControlAt, Server, Service};
use headtime_testkit::profiles::cut;
use tokio::runtime::Runtime;
use tokio::sync::watch;

pub const SECTOR: u64 = 512;
pub const UNIT: u32 = 16;

/// A disk, and a server over it that can be started and stopped.
pub struct World {
    pub dir: tempfile::TempDir,
    profile: Profile,
    pub sectors: u64,
    faults: Vec<Fault>,
    server: Option<Server>,
    pub runtime: Runtime,
    _stop: watch::Sender<bool>,
    pub stop: watch::Receiver<bool>,
}

impl World {
    pub fn new(cylinders: u32, faults: Vec<Fault>) -> World {
        let mut profile = cut(profile::builtin("atlas10k").unwrap(), cylinders);
        if !faults.is_empty() {
            // Data that the drive has read ahead is not read again and would hide a fault.
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

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn start(&mut self) {
        self.server = Some(start(&self.profile, self.sectors, &self.faults, self.path("disk"), self.path("control")));
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

fn start(profile: &Profile, sectors: u64, faults: &[Fault], disk: PathBuf, control: PathBuf) -> Server {
    let model = Model::new(profile).unwrap();
    let file = backing::open(&disk, sectors * SECTOR).unwrap();
    let config = DriveConfig::default().with_faults(faults.to_vec());
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
    let core = Core::new(Config::new(Order::Sptf).with_capacity(1024).with_fill(fill), model);
    let mut service = Service::new(Vec::new(), exports, Arc::new(|_, _| {}));
    let disk_id = backing::id(&disk).unwrap();
    service.control = Some(ControlAt { path: control, disk: profile.title.clone(), disk_id, sectors, fills: true });
    Server::start(core, drive, service).unwrap()
}

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
