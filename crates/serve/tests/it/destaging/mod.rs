//! A server over a virtual drive and a cache in front of it, in one process, with clients of both.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use headtime_disk::{Command, DriveConfig, Dur, Kind, Time, profile};
use headtime_serve::destage::driver::{Left, Upstream};
use headtime_serve::destage::server::{Destage, Setup};
use headtime_serve::destage::{Counts, Limits};
use headtime_serve::device::virtual_drive::VirtualDrive;
use headtime_serve::device::{Device, Done, Fault};
use headtime_serve::net::address::Address;
use headtime_serve::net::exports::{ExportSpec, Exports};
use headtime_serve::note::Note;
use headtime_serve::server::{CAPACITY, ControlAt, Server, Service};
use tempfile::TempDir;

use crate::rig::{SECTOR, core};

/// First sector of the export, which is not at the start of the disk.
pub const FIRST: u64 = 40_960;
/// Sectors of the export: few, so that requests overlap.
pub const SECTORS: u64 = 1 << 16;

/// How a drive handles flushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushing {
    Flushes,
    /// Delays them while this is set.
    Waits,
    Fails,
}

/// A drive that fails writes of some sectors on request, and handles flushes as set.
pub struct Stubborn {
    drive: VirtualDrive,
    /// The first of eight sectors that cannot be written; `u64::MAX` for none.
    pub bad: Arc<AtomicU64>,
    failed: Vec<Done>,
    /// How flushes are handled, and the number received.
    flushes: Arc<Mutex<(Flushing, usize)>>,
    waiting: Vec<Command>,
    now: Time,
}

impl Device for Stubborn {
    fn sectors(&self) -> u64 {
        self.drive.sectors()
    }
    fn sector_bytes(&self) -> u32 {
        self.drive.sector_bytes()
    }
    fn depth(&self) -> u32 {
        self.drive.depth()
    }
    fn submit(&mut self, command: &Command, data: Bytes, now: Time) {
        let (bad, end) = (self.bad.load(Ordering::SeqCst), command.lbn + u64::from(command.count));
        if command.kind == Kind::Write && bad != u64::MAX && command.lbn < bad + 8 && bad < end {
            self.failed.push(Done::failed(command, Fault::Io));
            return;
        }
        if command.kind == Kind::Flush {
            let mut flushes = self.flushes.lock().unwrap();
            flushes.1 += 1;
            match flushes.0 {
                Flushing::Flushes => {}
                Flushing::Waits => return self.waiting.push(*command),
                Flushing::Fails => return self.failed.push(Done::failed(command, Fault::Io)),
            }
        }
        self.drive.submit(command, data, now);
    }
    fn poll(&mut self, now: Time) -> Option<Done> {
        self.now = now;
        if !self.waiting.is_empty() && self.flushes.lock().unwrap().0 != Flushing::Waits {
            std::mem::take(&mut self.waiting).iter().for_each(|c| self.drive.submit(c, Bytes::new(), now));
        }
        self.failed.pop().or_else(|| self.drive.poll(now))
    }
    fn next_event(&self) -> Option<Time> {
        match (self.failed.is_empty(), self.waiting.is_empty()) {
            (false, _) => Some(Time(0)),
            // The end of the delay is not known.
            (true, false) => Some(self.now + Dur::from_ms(5)),
            (true, true) => self.drive.next_event(),
        }
    }
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.drive.fd()
    }
}

/// The server and the cache with their files.
pub struct Bench {
    pub dir: TempDir,
    /// The disk of the next server, and its identifier.
    pub file: File,
    pub disk_id: String,
    pub server: Option<Server>,
    pub destage: Option<Destage>,
    pub bad: Arc<AtomicU64>,
    /// How flushes are handled, and the number received.
    pub flushes: Arc<Mutex<(Flushing, usize)>>,
}

fn silent() -> Note {
    Arc::new(|_, line| eprintln!("note: {line}"))
}

impl Bench {
    /// Creates a cache of this number of bytes.
    pub fn new(memory: u64) -> Bench {
        let file = tempfile::tempfile().unwrap();
        file.set_len(10 << 30).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let bad = Arc::new(AtomicU64::new(u64::MAX));
        let flushes = Arc::new(Mutex::new((Flushing::Flushes, 0)));
        let mut bench = Bench { dir, file, disk_id: "the first".into(), server: None, destage: None, bad, flushes };
        bench.start_server(false);
        bench.destage = Some(Destage::start(bench.setup("data", memory)).unwrap());
        bench
    }

    pub fn setup(&self, export: &str, memory: u64) -> Setup {
        Setup {
            upstream: Upstream { control: self.path("control").into(), export: export.into(), priority: 100 },
            listen: vec![Address::Unix(self.path("cached"))],
            limits: Limits { memory },
            note: silent(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn start_server(&mut self, read_only: bool) {
        let config = DriveConfig::default();
        let drive =
            VirtualDrive::new(&profile::builtin("atlas10k").unwrap(), config, self.file.try_clone().unwrap().into());
        let device = Stubborn {
            drive: drive.unwrap(),
            bad: Arc::clone(&self.bad),
            failed: vec![],
            flushes: Arc::clone(&self.flushes),
            waiting: vec![],
            now: Time(0),
        };
        let spec = ExportSpec {
            name: "data".into(),
            description: String::new(),
            first: FIRST,
            sectors: SECTORS,
            read_only,
            weight: 100,
        };
        let exports = Exports::new(vec![spec], device.sectors(), 512).unwrap();
        let mut service = Service::new(vec![Address::Unix(self.path("straight"))], exports, silent());
        service.control = Some(ControlAt {
            path: self.path("control"),
            disk: "atlas10k".into(),
            disk_id: self.disk_id.clone(),
            sectors: device.sectors(),
            fills: true,
        });
        self.server = Some(Server::start(core(CAPACITY), device, service).unwrap());
    }

    pub fn stop_server(&mut self) {
        self.server.take().unwrap().stop().unwrap();
    }

    /// Connects a client to the cache.
    pub fn client(&self) -> Client {
        Client::new(&self.path("cached"))
    }

    pub fn counts(&self) -> Counts {
        self.destage.as_ref().unwrap().counts()
    }

    /// Writes everything out and ends the cache.
    pub fn finish(&mut self) -> Left {
        self.destage.take().unwrap().stop().unwrap()
    }

    /// Returns data on the disk, by sector of the export.
    pub fn on_disk(&self, sector: u64, count: usize) -> Vec<u8> {
        let mut data = vec![0; count * SECTOR];
        self.file.read_exact_at(&mut data, (FIRST + sector) * SECTOR as u64).unwrap();
        data
    }
}

/// An NBD client with one request at a time.
pub struct Client {
    stream: UnixStream,
    cookie: u64,
}

impl Client {
    pub fn new(path: &Path) -> Client {
        let mut stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting).unwrap();
        assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
        let mut hello = 3u32.to_be_bytes().to_vec();
        hello.extend_from_slice(b"IHAVEOPT");
        hello.extend_from_slice(&1u32.to_be_bytes());
        hello.extend_from_slice(&4u32.to_be_bytes());
        hello.extend_from_slice(b"data");
        stream.write_all(&hello).unwrap();
        let mut export = [0; 10];
        stream.read_exact(&mut export).unwrap();
        assert_eq!(u64::from_be_bytes(export[..8].try_into().unwrap()), SECTORS * SECTOR as u64);
        Client { stream, cookie: 0 }
    }

    /// Sends a request; `Err` is the error number of the answer.
    fn ask(&mut self, kind: u16, fua: bool, sector: u64, length: u32, data: &[u8]) -> Result<Vec<u8>, u32> {
        self.cookie += 1;
        let mut request = 0x2560_9513u32.to_be_bytes().to_vec();
        request.extend_from_slice(&u16::from(fua).to_be_bytes());
        request.extend_from_slice(&kind.to_be_bytes());
        request.extend_from_slice(&self.cookie.to_be_bytes());
        request.extend_from_slice(&(sector * SECTOR as u64).to_be_bytes());
        request.extend_from_slice(&length.to_be_bytes());
        request.extend_from_slice(data);
        self.stream.write_all(&request).unwrap();
        let mut reply = [0; 16];
        self.stream.read_exact(&mut reply).unwrap();
        assert_eq!(&reply[..4], &0x6744_6698u32.to_be_bytes());
        assert_eq!(&reply[8..], &self.cookie.to_be_bytes());
        match u32::from_be_bytes(reply[4..8].try_into().unwrap()) {
            0 => {
                let mut data = vec![0; if kind == 0 { length as usize } else { 0 }];
                self.stream.read_exact(&mut data).unwrap();
                Ok(data)
            }
            error => Err(error),
        }
    }

    pub fn read(&mut self, sector: u64, count: u32) -> Result<Vec<u8>, u32> {
        self.ask(0, false, sector, count * SECTOR as u32, &[])
    }

    pub fn write(&mut self, sector: u64, data: &[u8], fua: bool) -> Result<(), u32> {
        self.ask(1, fua, sector, data.len() as u32, data).map(|_| ())
    }

    pub fn flush(&mut self) -> Result<(), u32> {
        self.ask(3, false, 0, 0, &[]).map(|_| ())
    }
}
