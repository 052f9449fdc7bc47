//! An engine on its own thread over a virtual drive, for tests.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use headtime_disk::{DriveConfig, Kind, Model, profile};
use headtime_sched::streams::{Disk, Exhausted, GuaranteeConfig, Stream};
use headtime_sched::{Algorithm, Config, Core, FillConfig, Order, Scheduler, SessionId, TaskId, TaskRange, TaskSpec};
use headtime_serve::clock::Clock;
use headtime_serve::device::Device;
use headtime_serve::device::virtual_drive::VirtualDrive;
use headtime_serve::engine::inbox::{Outbox, inbox};
use headtime_serve::engine::messages::{Answer, EngineMessage, SessionCall, Submission};
use headtime_serve::engine::session_event::SessionEvent;
use headtime_serve::engine::snapshot::Snapshot;
use headtime_serve::engine::{End, Engine};
use headtime_serve::net::exports::{ExportSpec, Exports};
use headtime_serve::streams;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, UnboundedSender, channel, unbounded_channel};
use tokio::sync::oneshot;

/// Bytes per sector.
pub const SECTOR: usize = 512;

/// A running engine and handles to it.
pub struct Rig {
    pub engine: Outbox<EngineMessage>,
    pub file: File,
    thread: JoinHandle<std::io::Result<End>>,
    reply: UnboundedSender<(u64, Answer)>,
    answers: UnboundedReceiver<(u64, Answer)>,
    next: u64,
}

/// Returns a scheduler as in `headtime serve`, for the drive of [`drive`].
pub fn core(capacity: usize) -> Core {
    core_of("atlas10k", Order::Sptf, capacity)
}

/// Returns a scheduler for another drive, with another order.
pub fn core_of(drive: &str, order: Order, capacity: usize) -> Core {
    let model = Model::new(&profile::builtin(drive).unwrap()).unwrap();
    let fill = Some(FillConfig { seed: 1, ..FillConfig::new(Algorithm::Headtime) });
    Core::new(Config::new(order).with_capacity(capacity).with_fill(fill), model)
}

/// Returns an Atlas 10K over a sparse file.
pub fn drive(config: DriveConfig) -> (VirtualDrive, File) {
    drive_of("atlas10k", config)
}

/// Returns a built-in drive over a sparse file.
pub fn drive_of(name: &str, config: DriveConfig) -> (VirtualDrive, File) {
    let file = tempfile::tempfile().unwrap();
    file.set_len(40 << 30).unwrap();
    let drive = VirtualDrive::new(&profile::builtin(name).unwrap(), config, file.try_clone().unwrap().into());
    (drive.unwrap(), file)
}

/// A built-in drive with measured times, for streams.
pub const MEASURED_DRIVE: &str = "ultrastar36z15";

/// Sectors of each of [`exports`].
pub const EXPORT_SECTORS: u64 = 1 << 21;

/// Returns two exports.
pub fn exports() -> Exports {
    let spec = |name: &str, first| ExportSpec {
        name: name.into(),
        description: String::new(),
        first,
        sectors: EXPORT_SECTORS,
        read_only: false,
        weight: 100,
    };
    let all = Exports::new(vec![spec("a", 0), spec("b", EXPORT_SECTORS)], 2 * EXPORT_SECTORS, 512).unwrap();
    all.with_requests_up_to(1 << 20)
}

/// Returns a scheduler of [`MEASURED_DRIVE`] with streams of these exports, and the drive's
/// figures.
pub fn promising(config: Config, exports: &Exports, wanted: &[(u32, Stream)]) -> (Core, Disk) {
    let profile = profile::builtin(MEASURED_DRIVE).unwrap();
    let model = Model::new(&profile).unwrap();
    let disk = Disk::of(&profile, &model, 2).unwrap();
    let setup = GuaranteeConfig::of(disk.clone(), &profile, &model, Exhausted::Skip).unwrap();
    let mut core = Core::new(config, model).guaranteeing(&setup);
    streams::begin(&mut core, exports, wanted).unwrap();
    (core, disk)
}

impl Rig {
    /// Starts an engine over a drive without faults.
    pub fn new() -> Rig {
        let (device, file) = drive(DriveConfig::default());
        Rig::over(device, file)
    }

    /// Starts an engine over a device whose data is in `file`.
    pub fn over(device: impl Device + Send + 'static, file: File) -> Rig {
        Rig::under(core(2000), device, file)
    }

    /// Starts an engine with another scheduler.
    pub fn under(core: impl Scheduler + Send + 'static, device: impl Device + Send + 'static, file: File) -> Rig {
        let (engine, inbox) = inbox(4096, 16).unwrap();
        let thread = std::thread::spawn(move || Engine::new(Clock::start(), core, device, inbox).run());
        let (reply, answers) = unbounded_channel();
        Rig { engine, file, thread, reply, answers, next: 0 }
    }

    /// Sends a read of an application; returns its number.
    pub fn read_as(&mut self, owner: u32, lbn: u64, count: u32) -> u64 {
        self.next += 1;
        let reply = Some((self.reply.clone(), self.next));
        let ask = Submission { kind: Kind::Read, lbn, count, owner, reply, ..Submission::flush() };
        self.engine.send(EngineMessage::Submit(ask)).unwrap();
        self.next
    }

    /// Sends a request; returns its number.
    pub fn ask(&mut self, kind: Kind, lbn: u64, count: u32, data: Vec<u8>) -> u64 {
        self.ask_as(0, kind, lbn, count, data)
    }

    /// Sends a request of an application; returns its number.
    pub fn ask_as(&mut self, owner: u32, kind: Kind, lbn: u64, count: u32, data: Vec<u8>) -> u64 {
        self.next += 1;
        let reply = Some((self.reply.clone(), self.next));
        let ask = Submission { kind, lbn, count, owner, data: data.into(), reply, ..Submission::flush() };
        self.engine.send(EngineMessage::Submit(ask)).unwrap();
        self.next
    }

    /// Returns the next answer.
    pub fn answer(&mut self) -> (u64, Answer) {
        self.answers.blocking_recv().expect("the engine answers")
    }

    /// Returns an answer, if one is available.
    pub fn engine_answer(&mut self) -> Result<(u64, Answer), tokio::sync::mpsc::error::TryRecvError> {
        self.answers.try_recv()
    }

    /// Reads, and waits.
    pub fn read(&mut self, lbn: u64, count: u32) -> Answer {
        self.ask(Kind::Read, lbn, count, vec![]);
        self.answer().1
    }

    /// Writes, and waits.
    pub fn write(&mut self, lbn: u64, data: Vec<u8>) -> Answer {
        self.ask(Kind::Write, lbn, (data.len() / SECTOR) as u32, data);
        self.answer().1
    }

    /// Sends a call, and waits.
    pub fn call<T>(&self, call: impl FnOnce(headtime_serve::engine::messages::Reply<T>) -> SessionCall) -> T {
        let (reply, answer) = oneshot::channel();
        self.engine.send(EngineMessage::Session(call(reply))).unwrap();
        answer.blocking_recv().unwrap().unwrap()
    }

    /// Opens a session.
    pub fn open(&self, window: u64) -> (SessionId, Receiver<SessionEvent>) {
        let (events, told) = channel(1 << 16);
        (self.call(|reply| SessionCall::Open { priority: 1, window, events, reply }), told)
    }

    /// Registers a task of one range.
    pub fn register(&self, session: SessionId, kind: Kind, range: TaskRange, unit: u32, point_in_time: bool) -> TaskId {
        let spec = TaskSpec { kind, ranges: vec![range], blksize: unit, min_pickup: unit };
        self.call(|reply| SessionCall::Register { session, spec, point_in_time, reply })
    }

    /// Acknowledges delivered sectors.
    pub fn taken(&self, session: SessionId, sectors: u64) {
        self.engine.send(EngineMessage::Session(SessionCall::Taken { session, sectors })).unwrap();
    }

    /// Sends data of a write task.
    pub fn data(&self, session: SessionId, task: TaskId, lbn: u64, data: Vec<u8>) {
        let range = TaskRange { lbn, count: (data.len() / SECTOR) as u64 };
        self.engine
            .send(EngineMessage::Session(SessionCall::Data { session, task, range, data: Bytes::from(data) }))
            .unwrap();
    }

    /// Returns the engine's counters.
    pub fn snapshot(&self) -> Snapshot {
        let (reply, answer) = oneshot::channel();
        self.engine.send(EngineMessage::Snapshot(reply)).unwrap();
        answer.blocking_recv().unwrap()
    }

    /// Returns data in the file.
    pub fn on_disk(&self, lbn: u64, count: usize) -> Vec<u8> {
        let mut data = vec![0; count * SECTOR];
        self.file.read_exact_at(&mut data, lbn * SECTOR as u64).unwrap();
        data
    }

    /// Writes data into the file, bypassing the engine.
    pub fn plant(&self, lbn: u64, data: &[u8]) {
        self.file.write_all_at(data, lbn * SECTOR as u64).unwrap();
    }

    /// Ends the engine, if it has not ended yet.
    pub fn end(self) -> End {
        let _ = self.engine.send(EngineMessage::End);
        self.thread.join().expect("no panic").unwrap()
    }
}

/// Returns the next event, with a time limit of seconds.
pub fn next(told: &mut Receiver<SessionEvent>) -> SessionEvent {
    for _ in 0..20_000 {
        if let Ok(t) = told.try_recv() {
            return t;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("no event in 20 s");
}

/// Returns `count` sectors, each filled with its number and a generation.
pub fn sectors(lbn: u64, count: u64, generation: u8) -> Vec<u8> {
    (lbn..lbn + count)
        .flat_map(|l| {
            let mut s = vec![generation; SECTOR];
            s[..8].copy_from_slice(&l.to_le_bytes());
            s
        })
        .collect()
}
