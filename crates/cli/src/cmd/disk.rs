//! `headtime disk`: a virtual drive without a scheduler, in real time.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use headtime_disk::{DriveConfig, Model, Time};
use headtime_sched::Firmware;
use headtime_serve::backing;
use headtime_serve::device::Device;
use headtime_serve::device::test_disk::TestDisk;
use headtime_serve::device::virtual_drive::VirtualDrive;
use headtime_serve::faults::control::Control;
use headtime_serve::faults::plan::{Fault, What};
use headtime_serve::faults::table::{self, DriveSize};
use headtime_serve::net::address::Address;
use headtime_serve::net::budget::MAX_REQUESTS;
use headtime_serve::net::exports::{ExportSpec, Exports};
use headtime_serve::server::Service;

use crate::failure::Failure;
use crate::log::{self, Logging};
use crate::running::Hooks;
use crate::{drive, figures, running};

/// Serve a virtual drive in real time over NBD, without a scheduler
///
/// Commands take the time that the real drive would need. Written data is kept in a sparse file, or
/// in a directory of sparse files if the drive is larger than the largest file. Commands go to the
/// drive in order of arrival, up to its queue depth; nothing is scheduled outside it. Any scheduler
/// can be put in front of it.
///
/// It is also a disk for tests of storage software: with faults and power failures, at their time
/// (--fault) or on command (--control, `headtime fault`). docs/test-disk.md describes them.
#[derive(Debug, Args)]
pub struct Disk {
    /// A built-in drive (`headtime profiles`), a TOML profile or a DiskSim .parv file
    #[arg(value_name = "NAME|FILE")]
    drive: String,
    /// Storage of its data: a sparse file of the drive's size, or a directory of sparse files of 1
    /// TiB, or as long as the file system supports; created if it does not exist, as a directory if
    /// the path ends in /
    #[arg(long, value_name = "FILE|DIR/", value_parser = figures::output())]
    backing: PathBuf,
    /// Address to listen on: unix:PATH or tcp:HOST:PORT; may be given several times
    #[arg(long, value_name = "ADDRESS", required = true, value_parser = figures::address)]
    nbd: Vec<Address>,
    /// Seed of its noise
    #[arg(long, value_name = "N", default_value = "1", value_parser = figures::seed)]
    seed: u64,
    /// What happens to the drive, and when: a TOML file of [[fault]] tables
    #[arg(long, value_name = "FILE")]
    fault: Option<PathBuf>,
    /// Unix socket for `headtime fault`
    #[arg(long, value_name = "PATH", value_parser = figures::output())]
    control: Option<PathBuf>,
    /// Volatile write cache: on, off, or hold (on, and only flushes and FUA bring data to the
    /// media) [default: as the drive's profile has it]
    #[arg(long, value_name = "MODE")]
    write_cache: Option<WriteCache>,
    /// Times as fast as the real drive, from 1 to 1000; the times of faults stay the same
    #[arg(long, value_name = "N", default_value = "1", value_parser = figures::speed)]
    speed: u64,
    /// At exit, status 1 if a completion was later than this, such as 5ms: the machine was too slow
    /// for the run to be valid
    #[arg(long, value_name = "TIME", value_parser = figures::time)]
    max_lateness: Option<Duration>,
    /// Print one JSON object on stdout at exit
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub log: Logging,
}

// The variants have no doc comments, so that help lists them on one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WriteCache {
    On,
    Off,
    Hold,
}

/// The largest file of faults: several times as many as a drive can have.
const MAX_FAULT_BYTES: u64 = 1 << 20;

/// Reads a file of faults.
fn faults(file: &Path, size: DriveSize) -> Result<Vec<Fault>, Failure> {
    let failed = |why: String| Failure::Input(format!("{}: {why}", file.display()));
    let text = headtime_sim::input::text(file, MAX_FAULT_BYTES).map_err(failed)?;
    table::read(&text, file, size).map_err(Failure::input)
}

/// Serves until a signal.
pub fn run(args: &Disk) -> Result<(), Failure> {
    let profile = drive::find(&args.drive)?;
    let config = DriveConfig::default().with_seed(args.seed);
    let sectors = Model::new(&profile).map_err(Failure::input)?.geometry.capacity();
    let backing = backing::open(&args.backing, sectors * u64::from(profile.sector_bytes)).map_err(Failure::input)?;
    let size = DriveSize { sectors, sector_bytes: profile.sector_bytes };
    let planned = args.fault.as_deref().map_or(Ok(Vec::new()), |file| faults(file, size))?;
    let mut drive = VirtualDrive::new(&profile, config, backing).map_err(Failure::input)?;
    if let Some(mode) = args.write_cache {
        let on = mode != WriteCache::Off;
        drive.switch_write_cache(on, Time::ZERO);
        if drive.has_write_cache() != on {
            return Err(Failure::Input("--write-cache: expected off for this drive, which has no cache".into()));
        }
    }
    // Only where the power can fail are the former contents of sectors read before each write.
    if args.control.is_some() || planned.iter().any(|f| matches!(f.what, What::PowerOff { .. })) {
        drive = drive.losing_unwritten(args.write_cache == Some(WriteCache::Hold));
    }
    let device = TestDisk::new(drive, args.speed, args.seed).with_faults(planned).map_err(Failure::input)?;
    let calls = device.calls();
    let whole = ExportSpec {
        name: String::new(),
        description: profile.title.clone(),
        first: 0,
        sectors: device.sectors(),
        read_only: false,
        weight: 100,
    };
    let exports = Exports::new(vec![whole], device.sectors(), device.sector_bytes()).map_err(Failure::input)?;
    let scheduler = Firmware::new(device.depth(), MAX_REQUESTS);
    let service = Service::new(args.nbd.clone(), exports, log::note());
    let mut hooks = Hooks { max_lateness: args.max_lateness, ..Hooks::default() };
    if let Some(socket) = args.control.clone() {
        hooks.beside = Some(Box::new(move |engine| {
            let control = Control::start(&socket, calls, engine).map_err(Failure::input)?;
            Ok(Box::new(control))
        }));
    }
    let title = match args.speed {
        1 => format!("{}: a virtual drive", profile.title),
        n => format!("{}: a virtual drive, {n} times as fast", profile.title),
    };
    running::serve(scheduler, device, service, hooks, &title, args.json)
}
