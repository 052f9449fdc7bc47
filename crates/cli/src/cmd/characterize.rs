//! `headtime characterize`: times a drive and writes its profile.

mod checkpoint;
mod guarantees;
mod pictures;
mod real_drive;
mod report;
mod watcher;

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;
use headtime_disk::profile::{self, Profile};
use headtime_disk::{DriveConfig, Dur};
use headtime_host::whole_file::WholeFile;
use headtime_probe::device::Device;
use headtime_probe::error::ProbeError;
use headtime_probe::journal::{Entry, Journaled};
use headtime_probe::virtual_drive::VirtualDrive;
use headtime_probe::{Found, Options, THOROUGH_REQUESTS, characterize, recheck};

use crate::failure::Failure;
use crate::{drive, figures, screen};
use checkpoint::{Checkpoint, Head};
use real_drive::RealDrive;
use report::Report;
use watcher::Watcher;

/// Characterise a drive by timing reads, and write its profile
///
/// DEVICE is a disk, a loop device or a file of 1 GiB or more that no other process uses during the
/// run. Nothing is written to it. A disk of 1 TB takes about twenty minutes. At the end the profile
/// is verified against 2,000 random reads: exit status 1 when it does not predict 95% of them
/// within 150 us. disk:NAME is a virtual drive of that profile, in virtual time. Ctrl-C ends the
/// run and keeps all answers in PROFILE.toml.unfinished, from which --resume continues.
#[derive(Debug, Args)]
pub struct Characterize {
    /// A block device or a file; or disk:NAME (a built-in drive, or a profile's file), timed in
    /// virtual time
    #[arg(value_name = "DEVICE")]
    device: String,
    /// Path of the profile to write
    #[arg(short, long, value_name = "PROFILE.toml", required = true, value_parser = figures::output())]
    output: Option<PathBuf>,
    /// DEVICE is the name or file of a profile: time a virtual drive, in virtual time
    #[arg(long = "virtual")]
    is_virtual: bool,
    /// Time limit in minutes, 1 to 44640
    #[arg(long, value_name = "MINUTES", value_parser = figures::minutes)]
    budget: Option<u64>,
    /// Time writes too: DATA ON THE DEVICE IS LOST. The device's name must be typed
    #[arg(long)]
    destructive: bool,
    /// The name that --destructive asks for, for scripts
    #[arg(long, value_name = "NAME", requires = "destructive")]
    yes_overwrite: Option<String>,
    /// Continue an earlier run with the same output and seed
    #[arg(long, conflicts_with = "update")]
    resume: bool,
    /// Also look for rare events: heads that do not settle, recalibrations. Takes hours more
    #[arg(long)]
    thorough: bool,
    /// Write the findings and their confidence into this directory: findings.json, report.md and
    /// pictures
    #[arg(long, value_name = "DIR", value_parser = figures::output())]
    report: Option<PathBuf>,
    /// Verify an older profile of the same drive, in about a minute; keep it if it is good
    #[arg(long, value_name = "OLD.toml")]
    update: Option<String>,
    /// Replace an existing profile
    #[arg(long)]
    force: bool,
    /// Seed of random requests, and of a virtual drive's noise
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = figures::seed, allow_negative_numbers = true)]
    seed: u64,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// Time from a virtual drive's completion to the next command.
const HOST: Dur = Dur::from_us(10);

/// The drive under test.
enum Drive {
    Virtual(Box<VirtualDrive>, String),
    Real(Box<RealDrive>),
}

impl Drive {
    fn title(&self) -> &str {
        match self {
            Drive::Virtual(_, title) => title,
            Drive::Real(d) => &d.title,
        }
    }

    /// The string that identifies the drive.
    fn identity(&self) -> &str {
        match self {
            Drive::Virtual(_, title) => title,
            Drive::Real(d) => &d.identity,
        }
    }

    fn device(&mut self) -> &mut dyn Device {
        match self {
            Drive::Virtual(d, _) => &mut **d,
            Drive::Real(d) => &mut **d,
        }
    }
}

/// Runs the command.
pub fn run(args: &Characterize) -> Result<(), Failure> {
    let path = args.output.as_deref().expect("required");
    let unfinished = checkpoint::of(path);
    let file = begin(args, path, &unfinished)?;
    let old = args.update.as_deref().map(drive::find).transpose()?;
    if args.destructive && virtual_name(args).is_none() {
        confirm(args)?;
    }
    // Set up before anything is opened, so that a signal from here on ends in good order.
    let mut watcher = Watcher::new();
    let mut drive = open(args)?;
    if let Some(old) = &old {
        is_of_the_same(args, old, drive.device())?;
    }
    let head = head(args, &mut drive);
    let (past, mut kept) = match args.resume {
        true => Checkpoint::resume(&unfinished, &head)?,
        // No checkpoint is made next to a device or a pipe.
        false if path.exists() && !path.is_file() => (Vec::new(), Checkpoint::none(&unfinished)),
        false => (Vec::new(), Checkpoint::begin(&unfinished, &head)?),
    };
    let began = drive.device().now();
    let measured = measure(args, drive.device(), &mut watcher, (past, &mut kept), old.as_ref());
    watcher.end();
    let seconds = drive.device().now().saturating_since(began).as_secs_f64();
    let title = drive.title().to_string();
    if let Drive::Real(real) = drive {
        real.put_back();
    }
    let Measured { mut found, renewed } = match measured {
        Ok(measured) => measured,
        Err(e) => {
            drop(file);
            match e {
                ProbeError::Stopped | ProbeError::Budget { .. } | ProbeError::Device(_) => {
                    kept.keep(&e.to_string(), &watcher.lines());
                }
                // A resumed run would reach the same result; keep the answers of several runs all
                // the same.
                _ if args.resume => kept.keep(&e.to_string(), &watcher.lines()),
                _ => kept.discard(),
            }
            return Err(failure(&args.device, e));
        }
    };
    if renewed {
        found.profile.name = name_for(path);
        found.profile.title = title.clone();
        if !found.good {
            found.profile.title += " (not good enough: reads are not predicted)";
        }
        guarantees::add(&mut found, args.seed);
    }
    let written = write(file, &found.profile).or_else(|_| {
        // On a full disk the checkpoint may be what fills it; all of its data is in memory.
        kept.give_room();
        write(WholeFile::create(path)?, &found.profile)
    });
    let report = Report {
        device: &args.device,
        title: &title,
        profile: path,
        sectors: head.sectors,
        sector_bytes: head.sector_bytes,
        seconds,
        found: &found,
    };
    // The findings are printed even if the profile cannot be written.
    if args.json {
        report.print_json()?
    } else {
        screen::print(&report.text())?
    }
    written?;
    kept.discard();
    if let Some(directory) = &args.report {
        report.write(directory)?;
    }
    match found.good {
        true => Ok(()),
        false => Err(Failure::Check),
    }
}

/// Checks before the run that the profile can be written, and returns its output file.
fn begin(args: &Characterize, path: &Path, unfinished: &Path) -> Result<WholeFile, Failure> {
    if !args.force && path.exists() {
        return Err(Failure::Input(format!(
            "{}: expected a new file, found one (--force replaces it)",
            path.display()
        )));
    }
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(Failure::Input(format!("{}: expected a file's name, found a directory's", path.display())));
    }
    let file = WholeFile::create(path)?;
    args.report.as_deref().map(headtime_host::whole_file::make_directory).transpose()?;
    if unfinished.exists() && !args.resume && !args.force {
        return Err(Failure::Input(format!(
            "{}: an earlier run ended there (--resume goes on with it, --force begins anew)",
            unfinished.display()
        )));
    }
    Ok(file)
}

/// The header of a checkpoint of this run.
fn head(args: &Characterize, drive: &mut Drive) -> Head {
    Head {
        headtime: env!("CARGO_PKG_VERSION").into(),
        drive: drive.identity().to_string(),
        sectors: drive.device().sectors(),
        sector_bytes: drive.device().sector_bytes(),
        depth: drive.device().depth(),
        seed: args.seed,
        destructive: args.destructive,
        thorough: args.thorough,
    }
}

/// The result of a measurement.
struct Measured {
    found: Found,
    /// Whether the profile is a new one.
    renewed: bool,
}

/// Verifies the older profile, if there is one. Characterises the drive if there is none or it no
/// longer holds.
fn measure(
    args: &Characterize,
    device: &mut dyn Device,
    watcher: &mut Watcher,
    (past, kept): (Vec<Entry>, &mut Checkpoint),
    old: Option<&Profile>,
) -> Result<Measured, ProbeError> {
    let options = Options {
        seed: args.seed,
        budget_minutes: args.budget,
        // Enough tracks for every angle.
        writable: args.destructive.then_some((0, device.sectors() / 50)),
        settling: if args.thorough { THOROUGH_REQUESTS } else { 0 },
        ..Options::default()
    };
    if let Some(old) = old {
        let found = recheck(device, watcher, &options, old)?;
        if found.good {
            return Ok(Measured { found, renewed: false });
        }
        screen::note("the older profile no longer predicts the drive: it is characterised anew");
    }
    let mut tell = |entries: &[Entry]| kept.tell(entries);
    let mut device = Journaled::new(device, past, &mut tell);
    Ok(Measured { found: characterize(&mut device, watcher, &options)?, renewed: true })
}

/// The profile of the virtual drive, if one is to be timed.
fn virtual_name(args: &Characterize) -> Option<&str> {
    args.device.strip_prefix("disk:").or(args.is_virtual.then_some(args.device.as_str()))
}

fn open(args: &Characterize) -> Result<Drive, Failure> {
    if let Some(name) = virtual_name(args) {
        let profile = drive::find(name)?;
        let config = DriveConfig::default().with_seed(args.seed);
        let made = VirtualDrive::new(&profile, config, HOST);
        let drive = made.map_err(|e| Failure::input(format!("{name}: {e}")))?;
        return Ok(Drive::Virtual(Box::new(drive), format!("{}, a virtual drive", profile.title)));
    }
    let path = Path::new(&args.device);
    if !path.exists() && profile::builtin_names().any(|known| known == args.device) {
        return Err(Failure::Input(format!(
            "{0}: expected a device or a file, found a built-in drive's name (disk:{0} times a virtual drive)",
            args.device
        )));
    }
    Ok(Drive::Real(Box::new(RealDrive::open(path, args.destructive)?)))
}

/// Asks the user for the name of the device to be overwritten.
fn confirm(args: &Characterize) -> Result<(), Failure> {
    let names = real_drive::names(Path::new(&args.device))?;
    let typed = match &args.yes_overwrite {
        Some(name) => name.clone(),
        None if !std::io::stdin().is_terminal() => {
            return Err(Failure::Input(format!(
                "--destructive: all data on {} would be lost, and there is no terminal to ask at; expected \
                 --yes-overwrite {}",
                args.device, args.device
            )));
        }
        None => {
            screen::note(&format!("ALL DATA on {} will be lost. Type its name to go on:", args.device));
            let mut line = String::new();
            std::io::stdin().lock().read_line(&mut line).map_err(Failure::input)?;
            line.trim().to_string()
        }
    };
    match names.contains(&typed) {
        true => Ok(()),
        false => Err(Failure::Input(format!(
            "--destructive: expected the name {}, found \"{}\"; nothing was touched",
            names.join(" or "),
            typed.escape_default()
        ))),
    }
}

fn is_of_the_same(args: &Characterize, old: &Profile, device: &dyn Device) -> Result<(), Failure> {
    let model = headtime_disk::Model::new(old).map_err(Failure::input)?;
    let (expected, found) = ((model.geometry.capacity(), old.sector_bytes), (device.sectors(), device.sector_bytes()));
    match expected == found {
        true => Ok(()),
        false => Err(Failure::Input(format!(
            "--update {}: it is of a drive of {} sectors of {} bytes, and {} has {} of {}: it is another drive's",
            args.update.as_deref().unwrap_or_default(),
            expected.0,
            expected.1,
            args.device,
            found.0,
            found.1
        ))),
    }
}

/// Longest name of a profile, characters.
const LONGEST_NAME: usize = 64;

/// Derives the profile's name on command lines from its file name.
fn name_for(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
    let word = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    let name: String = word.take(LONGEST_NAME).collect();
    match name.trim_matches('-') {
        "" => "drive".into(),
        name => name.into(),
    }
}

fn write(mut file: WholeFile, profile: &Profile) -> Result<(), Failure> {
    use std::io::Write;
    file.write_all(profile::write(profile).as_bytes()).map_err(Failure::input)?;
    Ok(file.finish()?)
}

/// An expired time limit is a failed check; any other error is a fault.
fn failure(device: &str, e: ProbeError) -> Failure {
    match e {
        ProbeError::Stopped => {
            screen::note("stopped");
            Failure::Stopped
        }
        ProbeError::Budget { .. } => {
            screen::note(&e.to_string());
            Failure::Check
        }
        e => Failure::Input(format!("{device}: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_called_as_its_file() {
        for (path, name) in [("a/My Drive.toml", "my-drive"), ("x.y.toml", "x-y"), ("...", "drive"), ("WD40", "wd40")] {
            assert_eq!(name_for(Path::new(path)), name);
        }
    }
}
