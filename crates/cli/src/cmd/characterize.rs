//! `headtime characterize`: a drive is timed, and its profile written.

mod checkpoint;
mod guarantees;
mod pictures;
mod real_drive;
mod report;
mod watcher;

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;
use headtime_disk::drive::DriveConfig;
use headtime_disk::profile::{self, Profile};
use headtime_disk::time::Dur;
use headtime_lab::output::WholeFile;
use headtime_probe::device::Device;
use headtime_probe::journal::{Entry, Journaled};
use headtime_probe::sampler::ProbeError;
use headtime_probe::virtual_drive::VirtualDrive;
use headtime_probe::{Found, Options, THOROUGH, characterize, recheck};

use crate::failure::Failure;
use crate::{drive, figures, screen};
use checkpoint::{Checkpoint, Head};
use real_drive::RealDrive;
use report::Report;
use watcher::Watcher;

/// Find a drive's profile by timing reads, and write it
///
/// DEVICE is a disk, a loop device or a file of 1 GiB or more that nobody else uses meanwhile.
/// Nothing is written to it. A disk of 1 TB takes some twenty minutes. In the end the profile is
/// held against 2,000 random reads: status 1 when it does not foretell 95% of them within 150 us.
/// disk:NAME is a virtual drive of that profile, in virtual time. Ctrl-C ends it and leaves all
/// answers in PROFILE.toml.unfinished, from where --resume goes on.
#[derive(Debug, Args)]
pub struct Characterize {
    /// A block device or a file; or disk:NAME (a built-in drive, or a profile's file), timed in
    /// virtual time
    #[arg(value_name = "DEVICE")]
    device: String,
    /// The profile to write
    #[arg(short, long, value_name = "PROFILE.toml", required = true, value_parser = figures::output())]
    output: Option<PathBuf>,
    /// DEVICE is the name or file of a profile: a virtual drive is timed, in virtual time
    #[arg(long = "virtual")]
    is_virtual: bool,
    /// Minutes that it may take, 1 to 44640
    #[arg(long, value_name = "MINUTES", value_parser = figures::minutes)]
    budget: Option<u64>,
    /// Writes are timed, too: DATA ON IT IS LOST. Its name must be typed
    #[arg(long)]
    destructive: bool,
    /// The name that --destructive asks for, for scripts
    #[arg(long, value_name = "NAME", requires = "destructive")]
    yes_overwrite: Option<String>,
    /// Go on where an earlier run with the same output and seed ended
    #[arg(long, conflicts_with = "update")]
    resume: bool,
    /// Look for what is rare as well: heads that do not settle, recalibrations. Takes hours more
    #[arg(long)]
    thorough: bool,
    /// Write what was found and how sure it is into this directory: findings.json, report.md and
    /// pictures
    #[arg(long, value_name = "DIR", value_parser = figures::output())]
    report: Option<PathBuf>,
    /// An older profile of the same drive is held against it, in a minute; it is kept if it is good
    #[arg(long, value_name = "OLD.toml")]
    update: Option<String>,
    /// Replace a profile that is there
    #[arg(long)]
    force: bool,
    /// Seed of what is asked for at random, and of a virtual drive's noise
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = figures::seed, allow_negative_numbers = true)]
    seed: u64,
    /// Print one JSON object on stdout
    #[arg(long)]
    json: bool,
}

/// From a virtual drive's answer to the next command.
const HOST: Dur = Dur::from_us(10);

/// What is timed.
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

    /// What tells it from others.
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
    // Before anything is open: a signal leaves nothing half done from here on.
    let mut watcher = Watcher::new();
    let mut drive = open(args)?;
    if let Some(old) = &old {
        is_of_the_same(args, old, drive.device())?;
    }
    let head = head(args, &mut drive);
    let (past, mut kept) = match args.resume {
        true => Checkpoint::resume(&unfinished, &head)?,
        // Beside a device's or a pipe's name nothing is put.
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
                    kept.keep(&e.to_string(), &watcher.told());
                }
                // It would come to the same again; but what took several runs is not thrown away.
                _ if args.resume => kept.keep(&e.to_string(), &watcher.told()),
                _ => kept.discard(),
            }
            return Err(failure(&args.device, e));
        }
    };
    if renewed {
        found.profile.name = name_for(path);
        found.profile.title = title.clone();
        if !found.good {
            found.profile.title += " (not good enough: reads are not foretold)";
        }
        guarantees::add(&mut found, args.seed);
    }
    let written = write(file, &found.profile).or_else(|_| {
        // Where the disk is full, what was kept may be what fills it, and all of it is here.
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
    // What was found is said even where it cannot be written.
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

/// Whether what will be found can be written is better known now than in half an hour: the file
/// that it goes to.
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
    args.report.as_deref().map(headtime_lab::output::make_directory).transpose()?;
    if unfinished.exists() && !args.resume && !args.force {
        return Err(Failure::Input(format!(
            "{}: an earlier run ended there (--resume goes on with it, --force begins anew)",
            unfinished.display()
        )));
    }
    Ok(file)
}

/// What answers that are kept are of.
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

/// What came of it.
struct Measured {
    found: Found,
    /// Whether the profile is a new one.
    renewed: bool,
}

/// Holds an older profile against the drive, if there is one; finds a new one, if there is none or
/// it no longer holds.
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
        // Tracks enough for every angle.
        writable: args.destructive.then_some((0, device.sectors() / 50)),
        settling: if args.thorough { THOROUGH } else { 0 },
        ..Options::default()
    };
    if let Some(old) = old {
        let found = recheck(device, watcher, &options, old)?;
        if found.good {
            return Ok(Measured { found, renewed: false });
        }
        screen::note("the older profile no longer foretells the drive: it is characterised anew");
    }
    let mut tell = |entries: &[Entry]| kept.tell(entries);
    let mut device = Journaled::new(device, past, &mut tell);
    Ok(Measured { found: characterize(&mut device, watcher, &options)?, renewed: true })
}

/// The profile that a virtual drive is to be made of, if it is to be one.
fn virtual_name(args: &Characterize) -> Option<&str> {
    args.device.strip_prefix("disk:").or(args.is_virtual.then_some(args.device.as_str()))
}

fn open(args: &Characterize) -> Result<Drive, Failure> {
    if let Some(name) = virtual_name(args) {
        let profile = drive::find(name)?;
        let config = DriveConfig { seed: args.seed, ..DriveConfig::default() };
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

/// Asks for the name of what will be overwritten.
fn confirm(args: &Characterize) -> Result<(), Failure> {
    let names = real_drive::names(Path::new(&args.device))?;
    let typed = match &args.yes_overwrite {
        Some(name) => name.clone(),
        None if !std::io::stdin().is_terminal() => {
            return Err(Failure::Input(format!(
                "--destructive: all data on {} would be lost, and nobody can be asked; expected --yes-overwrite {}",
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
    let model = headtime_disk::model::Model::new(old).map_err(Failure::input)?;
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

/// Characters of a profile's name.
const LONGEST_NAME: usize = 64;

/// A name for command lines from the file's.
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

/// Time that is over is a result, and everything else a fault.
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
