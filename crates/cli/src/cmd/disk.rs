//! `headtime disk`: a virtual drive without a scheduler, in real time.

use std::path::PathBuf;

use clap::Args;
use headtime_disk::{DriveConfig, Model};
use headtime_sched::Firmware;
use headtime_serve::backing;
use headtime_serve::device::Device;
use headtime_serve::device::virtual_drive::VirtualDrive;
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
#[derive(Debug, Args)]
pub struct Disk {
    /// A built-in drive (`headtime profiles`), a TOML profile or a DiskSim .parv file
    #[arg(value_name = "NAME|FILE")]
    drive: String,
    /// Storage of its data: a sparse file of the drive's size, or a directory of sparse files of 1
    /// TiB; created if it does not exist, as a directory if the path ends in /
    #[arg(long, value_name = "FILE|DIR/", value_parser = figures::output())]
    backing: PathBuf,
    /// Address to listen on: unix:PATH or tcp:HOST:PORT; may be given several times
    #[arg(long, value_name = "ADDRESS", required = true, value_parser = figures::address)]
    nbd: Vec<Address>,
    /// Seed of its noise
    #[arg(long, value_name = "N", default_value = "1", value_parser = figures::seed)]
    seed: u64,
    /// Print one JSON object on stdout at exit
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub log: Logging,
}

/// Serves until a signal.
pub fn run(args: &Disk) -> Result<(), Failure> {
    let profile = drive::find(&args.drive)?;
    let config = DriveConfig::default().with_seed(args.seed);
    let sectors = Model::new(&profile).map_err(Failure::input)?.geometry.capacity();
    let backing = backing::open(&args.backing, sectors * u64::from(profile.sector_bytes)).map_err(Failure::input)?;
    let device = VirtualDrive::new(&profile, config, backing).map_err(Failure::input)?;
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
    running::serve(
        scheduler,
        device,
        service,
        Hooks::default(),
        &format!("{}: a virtual drive", profile.title),
        args.json,
    )
}
