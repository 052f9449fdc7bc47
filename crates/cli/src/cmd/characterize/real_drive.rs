//! A real disk, a loop device or a file as the drive under test: looked at before it is opened, and opened for reading alone
//! unless it may be written to.

use std::os::fd::OwnedFd;
use std::path::Path;

use headtime_disk::command::{Command, Kind};
use headtime_disk::time::Time;
use headtime_host::blockdev::{BlockDevice, Part, Target, WriteCache, Zoned};
use headtime_host::state;
use headtime_host::sys::{self, Sys};
use headtime_host::tuning::Tuning;
use headtime_probe::device::{Answer, Ask, Device, DeviceError};
use headtime_serve::buffer::Aligned;
use headtime_serve::device::Device as _;
use headtime_serve::device::file::FileDevice;
use headtime_serve::timed::Timed;

use crate::failure::Failure;
use crate::{screen, words};

/// Less is no hard disk that one would schedule, and seeks over it say little.
const LEAST: u64 = 1 << 30;
/// Commands at a time at most: as many as a SATA disk takes.
const DEEPEST: u32 = 32;

/// An open drive.
pub struct RealDrive {
    timed: Timed<FileDevice>,
    writable: bool,
    tuning: Option<Tuning>,
    /// What it is called in a profile.
    pub title: String,
}

impl RealDrive {
    /// Opens what `path` leads to.
    ///
    /// # Errors
    /// It is no whole disk, too small, in use, does not turn, or may not be opened.
    pub fn open(path: &Path, writable: bool) -> Result<RealDrive, Failure> {
        let sys = Sys::default();
        let target = Target::inspect(&sys, path).map_err(Failure::input)?;
        let name = path.display();
        match &target {
            Target::Device(device) => suits(device, writable)?,
            Target::File(_) => screen::note(&format!(
                "{name}: a file; what is measured is whatever lies beneath it, and whether that turns cannot be known beforehand"
            )),
        }
        if target.size() < LEAST {
            return Err(Failure::Input(format!(
                "{name}: expected {} or more, found {}",
                words::bytes(LEAST),
                words::bytes(target.size())
            )));
        }
        let file = target.open(!writable).map_err(Failure::input)?;
        let (sector_bytes, depth) = match &target {
            Target::Device(d) => (d.logical_sector, depth(d)),
            Target::File(_) => (least_read(&file, path)?, DEEPEST),
        };
        let sectors = target.size() / u64::from(sector_bytes);
        let device = FileDevice::new(file, sectors, sector_bytes, depth, true)
            .map_err(|e| Failure::Input(format!("{name}: io_uring: {e}")))?;
        let (tuning, title) = match &target {
            Target::Device(d) => (tuned(&sys, d), title(d)),
            Target::File(_) => (None, format!("file {name}")),
        };
        let timed = match &target {
            // Who answers may be a program on this machine, which must not wait for us.
            Target::Device(d) if is_handed_on(d) => Timed::new(device).asleep(),
            _ => Timed::new(device),
        };
        Ok(RealDrive { timed, writable, tuning, title })
    }

    /// Its queue is as it was.
    pub fn put_back(self) {
        let Some(tuning) = self.tuning else { return };
        match tuning.restore() {
            Ok(back) => back.left.iter().for_each(|l| screen::note(&format!("left as somebody else set it: {l}"))),
            Err(e) => screen::note(&format!("warning: its queue is not as it was: {e}")),
        }
    }
}

/// The names that a device goes by, for whoever must type one.
pub fn names(path: &Path) -> Result<Vec<String>, Failure> {
    let mut names = vec![path.display().to_string()];
    if let Target::Device(d) = Target::inspect(&Sys::default(), path).map_err(Failure::input)? {
        names.push(d.name);
    }
    Ok(names)
}

/// Drivers that hand on what others store: the kernel cannot know what turns beneath them.
fn is_handed_on(device: &BlockDevice) -> bool {
    ["loop", "nbd"].iter().any(|driver| device.name.starts_with(driver))
}

fn suits(device: &BlockDevice, writable: bool) -> Result<(), Failure> {
    let name = device.path.display();
    if let Part::Partition { number, disk, .. } = &device.part {
        return Err(Failure::Input(format!("{name}: expected a whole disk, found partition {number} of {disk}")));
    }
    if !matches!(device.logical_sector, 512 | 4096) {
        let found = device.logical_sector;
        return Err(Failure::Input(format!("{name}: expected sectors of 512 or 4096 bytes, found {found}")));
    }
    // Somebody else's reads would spoil every figure, so this is not only about writes.
    device.refuse_if_in_use().map_err(Failure::input)?;
    if !device.rotational && !is_handed_on(device) {
        return Err(Failure::Input(format!(
            "{name}: expected a disk that turns, found one that does not, as far as the kernel knows (if it is wrong: echo 1 > \
             /sys/block/{}/queue/rotational)",
            device.name
        )));
    }
    if is_handed_on(device) {
        screen::note(&format!("{name}: whether a disk turns beneath it cannot be known beforehand"));
    }
    if device.zoned != Zoned::No {
        screen::note(&format!("warning: {name}: a shingled drive; a profile says nothing of what it does with writes"));
    }
    if writable && device.write_cache == WriteCache::Back {
        screen::note(&format!(
            "{name}: its write cache is on: what writes take on the medium is not seen (hdparm -W0)"
        ));
    }
    Ok(())
}

/// The kernel's scheduler and merging would change what is measured. Where it cannot be set, depth 1 is measured all the same.
fn tuned(sys: &Sys, device: &BlockDevice) -> Option<Tuning> {
    match Tuning::apply(sys, device, &state::default_directory()) {
        Ok(tuning) => {
            for s in tuning.settings() {
                screen::note(&format!("{}: {} was {}, is {} meanwhile", device.name, s.name, s.before, s.ours));
            }
            Some(tuning)
        }
        Err(e) => {
            screen::note(&format!("warning: its queue stays as it is: {e}"));
            None
        }
    }
}

/// Commands that the drive takes at a time, where its driver says.
fn depth(device: &BlockDevice) -> u32 {
    let said: Option<u32> = sys::number_if_there(&device.disk_directory().join("device/queue_depth")).ok().flatten();
    said.unwrap_or(DEEPEST).clamp(1, DEEPEST)
}

/// Model, where the driver says, and the kernel's name.
fn title(device: &BlockDevice) -> String {
    match sys::text_if_there(&device.disk_directory().join("device/model")).ok().flatten() {
        Some(model) if !model.trim().is_empty() => model.trim().to_string(),
        _ => device.name.clone(),
    }
}

/// The least that can be read past the page cache from a file: its file system knows, and says so only by refusing.
fn least_read(file: &OwnedFd, path: &Path) -> Result<u32, Failure> {
    for bytes in [512u32, 4096] {
        let mut buffer = Aligned::new(bytes as usize);
        match rustix::io::pread(file, buffer.as_mut(), u64::from(bytes)) {
            Ok(_) => return Ok(bytes),
            Err(rustix::io::Errno::INVAL) => {}
            // One place that cannot be read is not the end of it.
            Err(rustix::io::Errno::IO) => return Ok(bytes),
            Err(e) => return Err(Failure::Input(format!("{}: cannot be read: {e}", path.display()))),
        }
    }
    Err(Failure::Input(format!("{}: expected direct reads of 512 or 4096 bytes, found neither", path.display())))
}

impl Device for RealDrive {
    fn sectors(&self) -> u64 {
        self.timed.device().sectors()
    }

    fn sector_bytes(&self) -> u32 {
        self.timed.device().sector_bytes()
    }

    fn depth(&self) -> u32 {
        self.timed.device().depth()
    }

    fn now(&self) -> Time {
        self.timed.now()
    }

    fn run(&mut self, asks: &[Ask], outstanding: u32) -> Result<Vec<Answer>, DeviceError> {
        let end = self.sectors();
        let mut commands = Vec::with_capacity(asks.len());
        for ask in asks {
            // It is open for reading alone then; this says which command was not meant to be.
            if ask.kind != Kind::Read && !self.writable {
                return Err(DeviceError(format!("a write to sector {}: expected reads alone", ask.lbn)));
            }
            if ask.lbn.checked_add(u64::from(ask.count)).is_none_or(|to| to > end) {
                return Err(DeviceError(format!(
                    "expected sectors below {end}, found {} from {} on",
                    ask.count, ask.lbn
                )));
            }
            let command =
                Command { id: 0, kind: ask.kind, lbn: ask.lbn, count: ask.count, fua: ask.kind == Kind::Write };
            commands.push((command, ask.not_before));
        }
        let stamped = self.timed.run(&commands, outstanding).map_err(|e| DeviceError(e.to_string()))?;
        Ok(stamped.into_iter().map(|s| Answer { sent: s.sent, done: s.done, outcome: s.outcome }).collect())
    }
}
