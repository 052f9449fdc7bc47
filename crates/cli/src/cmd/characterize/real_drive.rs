//! A real disk, a loop device or a file as the drive under test: inspected before it is opened, and
//! opened read-only unless writes are allowed.

use std::os::fd::OwnedFd;
use std::path::Path;

use headtime_disk::{Command, Kind, Time};
use headtime_host::awake::Awake;
use headtime_host::blockdev::{BlockDevice, Part, Target, WriteCache, Zoned};
use headtime_host::state;
use headtime_host::sys::{self, Sys};
use headtime_host::tuning::Tuning;
use headtime_probe::device::{Answer, Ask, Device, DeviceError};
use headtime_serve::buffer::Aligned;
use headtime_serve::device::Device as _;
use headtime_serve::device::file::FileDevice;
use headtime_serve::timed::Timed;

use crate::cmd::serve::put_back_leftovers;
use crate::failure::Failure;
use crate::{screen, words};

/// Smallest device, bytes. A smaller one is no relevant hard disk, and its seeks are too short.
const MIN_DEVICE_BYTES: u64 = 1 << 30;
/// Largest queue depth: that of a SATA disk.
const MAX_QUEUE_DEPTH: u32 = 32;

/// An open drive.
pub struct RealDrive {
    timed: Timed<FileDevice>,
    writable: bool,
    tuning: Option<Tuning>,
    /// Keeps idle processors awake while the drive is open.
    _awake: Option<Awake>,
    /// The title in the profile.
    pub title: String,
    /// The title with the serial number, if known.
    pub identity: String,
}

impl RealDrive {
    /// Opens the device or file at `path`.
    ///
    /// # Errors
    /// It is not a whole disk, too small, in use, does not rotate, or may not be opened.
    pub fn open(path: &Path, writable: bool) -> Result<RealDrive, Failure> {
        let sys = Sys::default();
        let target = Target::inspect(&sys, path).map_err(Failure::input)?;
        let name = path.display();
        large_enough(&name.to_string(), target.size())?;
        match &target {
            Target::Device(device) => {
                suits(device)?;
                // Another process's reads would spoil every figure, so this check is not only about
                // writes.
                device.refuse_if_in_use().map_err(Failure::input)?;
                note(device, writable);
            }
            Target::File(_) => screen::note(&format!(
                "{name}: a file; what is measured is whatever lies beneath it, and whether that turns cannot be known \
                 beforehand"
            )),
        }
        let file = target.open(!writable).map_err(Failure::input)?;
        let (sector_bytes, depth) = match &target {
            Target::Device(d) => (d.logical_sector, depth(d)),
            Target::File(_) => (least_read(&file, path)?, MAX_QUEUE_DEPTH),
        };
        let sectors = target.size() / u64::from(sector_bytes);
        let device = FileDevice::new(file, sectors, sector_bytes, depth, true)
            .map_err(|e| Failure::Input(format!("{name}: io_uring: {e}")))?;
        let (tuning, title) = match &target {
            Target::Device(d) => (tuned(&sys, d), title(d)),
            Target::File(_) => (None, format!("file {name}")),
        };
        let serial = match &target {
            Target::Device(d) => d.serial().ok().flatten(),
            Target::File(_) => None,
        };
        let identity = serial.map_or(title.clone(), |serial| format!("{title} {}", serial.trim()));
        let timed = match &target {
            // The server of such a device may be a process on this machine; a spinning wait would
            // starve it.
            Target::Device(d) if is_handed_on(d) => Timed::new(device).asleep(),
            _ => Timed::new(device),
        };
        Ok(RealDrive { timed, writable, tuning, _awake: awake(&sys), title, identity })
    }

    /// Restores the queue settings.
    pub fn put_back(self) {
        let Some(tuning) = self.tuning else { return };
        match tuning.restore() {
            Ok(back) => back.left.iter().for_each(|l| screen::note(&format!("left as another program set it: {l}"))),
            Err(e) => screen::warn(&format!("its queue is not as it was: {e}")),
        }
    }
}

/// Returns the names of a device that --destructive accepts.
pub fn names(path: &Path) -> Result<Vec<String>, Failure> {
    let mut names = vec![path.display().to_string()];
    if let Target::Device(d) = Target::inspect(&Sys::default(), path).map_err(Failure::input)? {
        names.push(d.name);
    }
    Ok(names)
}

/// Returns whether the driver forwards to another store: the kernel cannot know whether a disk
/// rotates below it.
fn is_handed_on(device: &BlockDevice) -> bool {
    ["loop", "nbd"].iter().any(|driver| device.name.starts_with(driver))
}

fn large_enough(name: &str, size: u64) -> Result<(), Failure> {
    match size {
        MIN_DEVICE_BYTES.. => Ok(()),
        _ => Err(Failure::Input(format!(
            "{name}: expected {} or more, found {}",
            words::bytes(MIN_DEVICE_BYTES),
            words::bytes(size)
        ))),
    }
}

/// Checks from the kernel's data that a device can be measured.
fn suits(device: &BlockDevice) -> Result<(), Failure> {
    let name = device.path.display();
    if let Part::Partition { number, disk, .. } = &device.part {
        return Err(Failure::Input(format!("{name}: expected a whole disk, found partition {number} of {disk}")));
    }
    if !matches!(device.logical_sector, 512 | 4096) {
        let found = device.logical_sector;
        return Err(Failure::Input(format!("{name}: expected sectors of 512 or 4096 bytes, found {found}")));
    }
    if !device.rotational && !is_handed_on(device) {
        return Err(Failure::Input(format!(
            "{name}: expected a disk that turns, found one that does not, as far as the kernel knows (if it is wrong: \
             echo 1 > /sys/block/{}/queue/rotational)",
            device.name
        )));
    }
    Ok(())
}

/// Notes unusual properties of a device.
fn note(device: &BlockDevice, writable: bool) {
    let name = device.path.display();
    if is_handed_on(device) {
        screen::note(&format!("{name}: whether a disk turns beneath it cannot be known beforehand"));
    }
    if device.zoned != Zoned::No {
        screen::warn(&format!("{name}: a shingled drive; a profile says nothing of what it does with writes"));
    }
    if writable && device.write_cache == WriteCache::Back {
        screen::note(&format!(
            "{name}: its write cache is on: what writes take on the medium is not seen (hdparm -W0)"
        ));
    }
}

/// Disables the kernel's scheduler and merging, which would change the measurement. If that is not
/// possible, only depth 1 is measured.
fn tuned(sys: &Sys, device: &BlockDevice) -> Option<Tuning> {
    // If this fails, applying settings fails too, and that is reported below.
    let _ = put_back_leftovers();
    match Tuning::apply(sys, device, &state::default_directory()) {
        Ok(tuning) => {
            for s in tuning.settings() {
                screen::note(&format!(
                    "{}: {} was {}, is {} during the measurement",
                    device.name, s.name, s.before, s.ours
                ));
            }
            Some(tuning)
        }
        Err(e) => {
            screen::warn(&format!("its queue stays as it is: {e}"));
            None
        }
    }
}

/// Keeps processors awake: from idle states they receive completions late, by varying times.
fn awake(sys: &Sys) -> Option<Awake> {
    match Awake::hold(sys) {
        Ok(awake) => {
            screen::note("idle processors are kept awake during the measurement");
            Some(awake)
        }
        Err(e) => {
            screen::warn(&format!("idle processors may sleep, so that times are less exact: {e}"));
            None
        }
    }
}

/// The drive's queue depth as its driver reports it.
fn depth(device: &BlockDevice) -> u32 {
    let said: Option<u32> = sys::number_if_there(&device.disk_directory().join("device/queue_depth")).ok().flatten();
    said.unwrap_or(MAX_QUEUE_DEPTH).clamp(1, MAX_QUEUE_DEPTH)
}

/// The model, if the driver reports it, otherwise the kernel's name.
fn title(device: &BlockDevice) -> String {
    match sys::text_if_there(&device.disk_directory().join("device/model")).ok().flatten() {
        Some(model) if !model.trim().is_empty() => model.trim().to_string(),
        _ => device.name.clone(),
    }
}

/// The smallest direct read of a file. The file system reveals it only by refusing smaller ones.
fn least_read(file: &OwnedFd, path: &Path) -> Result<u32, Failure> {
    for bytes in [512u32, 4096] {
        let mut buffer = Aligned::new(bytes as usize);
        match rustix::io::pread(file, buffer.as_mut(), u64::from(bytes)) {
            Ok(_) => return Ok(bytes),
            Err(rustix::io::Errno::INVAL) => {}
            // An unreadable sector is no reason to stop.
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
            // The file is open read-only in this case; this error names the command at fault.
            if ask.kind != Kind::Read && !self.writable {
                return Err(DeviceError(format!("a write to sector {}: expected reads alone", ask.lbn)));
            }
            if ask.lbn.checked_add(u64::from(ask.count)).is_none_or(|to| to > end) {
                return Err(DeviceError(format!(
                    "expected sectors below {end}, found {} from {} on",
                    ask.count, ask.lbn
                )));
            }
            // Without FUA: whether the drive answers writes from its cache is one of the questions.
            let command = Command { id: 0, kind: ask.kind, lbn: ask.lbn, count: ask.count, fua: false };
            commands.push((command, ask.not_before));
        }
        let stamped = self.timed.run(&commands, outstanding).map_err(|e| DeviceError(e.to_string()))?;
        Ok(stamped.into_iter().map(|s| Answer { sent: s.sent, done: s.done, outcome: s.outcome }).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use headtime_host::usage::DeviceNumber;

    use super::*;

    /// A disk as sysfs describes it.
    fn disk() -> BlockDevice {
        let root = std::env::temp_dir().join(format!(
            "headtime-real-drive-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        let place = root.join("sys/devices/sda");
        fs::create_dir_all(place.join("queue")).unwrap();
        fs::create_dir_all(root.join("sys/dev/block")).unwrap();
        for (name, value) in [
            ("size", "7814037168"),
            ("ro", "0"),
            ("queue/logical_block_size", "512"),
            ("queue/rotational", "1"),
            ("queue/write_cache", "write back"),
            ("queue/zoned", "none"),
        ] {
            fs::write(place.join(name), value).unwrap();
        }
        symlink(&place, root.join("sys/dev/block/8:0")).unwrap();
        let number = DeviceNumber { major: 8, minor: 0 };
        let device = BlockDevice::with_number(&Sys::below(&root), Path::new("/dev/sda"), number).unwrap();
        fs::remove_dir_all(root).unwrap();
        device
    }

    fn refusal(device: &BlockDevice) -> String {
        match suits(device) {
            Ok(()) => String::new(),
            Err(Failure::Input(why)) => why,
            Err(e) => panic!("{e:?}"),
        }
    }

    #[test]
    fn a_disk_that_turns_can_be_measured_and_part_of_one_cannot() {
        let mut device = disk();
        assert_eq!(refusal(&device), "");
        device.part = Part::Partition { number: 2, disk: "sda".into(), start: 2048 };
        assert_eq!(refusal(&device), "/dev/sda: expected a whole disk, found partition 2 of sda");
        let mut odd = disk();
        odd.logical_sector = 520;
        assert!(refusal(&odd).ends_with("expected sectors of 512 or 4096 bytes, found 520"));
    }

    #[test]
    fn what_does_not_turn_is_refused_unless_the_kernel_cannot_know() {
        let mut device = disk();
        device.rotational = false;
        assert!(refusal(&device).contains("/sys/block/sda/queue/rotational"));
        for name in ["loop3", "nbd0"] {
            device.name = name.into();
            assert_eq!(refusal(&device), "");
        }
    }

    #[test]
    fn a_gibibyte_is_the_least() {
        assert!(large_enough("x", MIN_DEVICE_BYTES).is_ok());
        assert!(large_enough("x", MIN_DEVICE_BYTES - 1).is_err() && large_enough("x", 0).is_err());
    }
}
