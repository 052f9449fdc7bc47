//! A real disk: opened exclusively, its queue settings changed while it is served and restored
//! afterwards.

use std::path::Path;

use headtime_host::accounts::Account;
use headtime_host::blockdev::{BlockDevice, Target, WriteCache, Zoned};
use headtime_host::privileges::drop_to;
use headtime_host::state;
use headtime_host::sys::Sys;
use headtime_host::tuning::{Leftover, Tuning, restore_leftovers};
use headtime_serve::assembly::OpenedDisk;
use headtime_serve::backing;
use headtime_serve::device::file::FileDevice;

use crate::failure::Failure;
use crate::screen;

/// An open disk.
pub struct Real {
    /// The device that the engine drives.
    pub device: FileDevice,
    /// Its properties. Gaps can be filled on a rotating disk, not on a file.
    pub disk: OpenedDisk,
    /// The changed queue settings; dropping it restores the previous ones.
    pub tuning: Option<Tuning>,
}

/// Opens a device whose profile has `sectors` sectors. Must be called before any thread is started.
pub fn open(path: &Path, sectors: u64, sector_bytes: u32, depth: u32) -> Result<Real, Failure> {
    let sys = Sys::default();
    let state_dir = state::default_directory();
    let target = Target::inspect(&sys, path).map_err(Failure::input)?;
    let wanted = sectors * u64::from(sector_bytes);
    if target.size() != wanted {
        return Err(Failure::Input(format!(
            "{}: the profile is of a drive of {wanted} bytes, and the device has {}: it is another drive's",
            path.display(),
            target.size()
        )));
    }
    if let Target::Device(device) = &target {
        suits(device, sector_bytes)?;
        device.refuse_if_in_use().map_err(Failure::input)?;
    }
    let file = target.open(false).map_err(Failure::input)?;
    let device = FileDevice::new(file, sectors, sector_bytes, depth, true)
        .map_err(|e| Failure::Input(format!("{}: io_uring: {e}", path.display())))?;
    let Target::Device(found) = &target else {
        screen::note(&format!(
            "{}: a file; its medium is not the one of the profile, so nothing is filled",
            path.display()
        ));
        let id = backing::id(path).map_err(|e| Failure::Input(format!("{}: {e}", path.display())))?;
        return Ok(Real { device, disk: OpenedDisk { id, rotates: false, write_back: Some(true) }, tuning: None });
    };
    let tuning = Tuning::apply(&sys, found, &state_dir).map_err(Failure::input)?;
    for s in tuning.settings() {
        screen::note(&format!("{}: {} was {}, is {} while it is served", found.name, s.name, s.before, s.ours));
    }
    // Without a serial number (a loop device, a virtual machine's disk) the name is the best
    // identifier.
    let id = found.serial().map_err(Failure::input)?.unwrap_or_else(|| found.name.clone());
    let disk = OpenedDisk { id, rotates: rotates(found), write_back: Some(write_back(found)) };
    Ok(Real { device, disk, tuning: Some(tuning) })
}

/// Restores the queue settings of a disk that is no longer served. The server's own error, if any,
/// is reported after one of this.
pub fn put_back(tuning: Tuning) {
    match tuning.restore() {
        Ok(put_back) => {
            put_back.left.iter().for_each(|l| screen::note(&format!("left as another program set it: {l}")));
            if let Some(file) = put_back.file_left {
                screen::note(&format!("{}: the next start as root removes it", file.display()));
            }
        }
        Err(e) => screen::warn(&format!("its queue is not as it was: {e}")),
    }
}

/// Restores queue settings that a killed process left changed, on any disk.
pub fn put_back_leftovers() -> Result<(), Failure> {
    for left in restore_leftovers(&Sys::default(), &state::default_directory()).map_err(Failure::input)? {
        match left {
            Leftover::Restored { disk, .. } => {
                screen::note(&format!("{disk}: its queue was put back after a process that was killed"))
            }
            Leftover::Gone { .. } | Leftover::InUse { .. } => {}
            Leftover::Failed { path, error } => screen::warn(&format!("{}: {error}", path.display())),
        }
    }
    Ok(())
}

fn suits(device: &BlockDevice, sector_bytes: u32) -> Result<(), Failure> {
    let name = device.path.display();
    if !sector_bytes.is_multiple_of(device.logical_sector) {
        return Err(Failure::Input(format!(
            "{name}: expected sectors of at most {sector_bytes} bytes, as the profile has, found {}",
            device.logical_sector
        )));
    }
    match device.zoned {
        Zoned::No => {}
        Zoned::HostAware => {
            screen::warn(&format!("{name}: a shingled drive; what it does with writes cannot be predicted"))
        }
        Zoned::HostManaged => {
            return Err(Failure::Input(format!(
                "{name}: a shingled drive that takes writes only in sequence; it cannot be served"
            )));
        }
    }
    Ok(())
}

/// Returns whether gaps can be filled.
fn rotates(device: &BlockDevice) -> bool {
    if !device.rotational {
        screen::note(&format!(
            "{}: not a rotating disk, as far as the kernel knows; nothing is filled",
            device.path.display()
        ));
    }
    device.rotational
}

/// Returns whether the kernel reports the disk's write cache as enabled. Filling then pauses while
/// the cache may hold data.
fn write_back(device: &BlockDevice) -> bool {
    let on = device.write_cache == WriteCache::Back;
    if on && device.rotational {
        screen::note(&format!(
            "{}: its write cache is on: nothing is filled while it may hold data. With hdparm -W0, and `write-cache` \
             for the exports, more is read for free",
            device.path.display()
        ));
    }
    on
}

/// Drops privileges to an ordinary user permanently. Must be called before any thread is started.
pub fn become_user(account: Option<Account>) -> Result<(), Failure> {
    account.map_or(Ok(()), |account| drop_to(&Sys::default(), account).map_err(Failure::input))
}

/// Looks up the account of a configuration's `user`.
pub fn account(user: &str) -> Result<Account, Failure> {
    Account::lookup(&Sys::default(), user, None).map_err(Failure::input)
}
