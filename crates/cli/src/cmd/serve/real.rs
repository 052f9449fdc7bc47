//! A real disk: nobody else's, its queue ours while we serve, and put back afterwards.

use std::path::Path;

use headtime_host::accounts::Account;
use headtime_host::blockdev::{BlockDevice, Target, WriteCache, Zoned};
use headtime_host::privileges::drop_to;
use headtime_host::state;
use headtime_host::sys::Sys;
use headtime_host::tuning::{Leftover, Tuning, restore_leftovers};
use headtime_serve::backing;
use headtime_serve::device::file::FileDevice;

use crate::failure::Failure;
use crate::screen;

/// A disk that is open.
pub struct Real {
    /// What the engine drives.
    pub device: FileDevice,
    /// Which disk it is, in a form that lasts.
    pub id: String,
    /// Its queue as we set it; what it was before comes back when this goes.
    pub tuning: Option<Tuning>,
    /// Whether the moment at which it answers says where its head is.
    pub predictable: bool,
}

/// Opens a device of which the profile says that it has so many sectors. Must be called before there are threads.
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
        return Ok(Real { device, id, tuning: None, predictable: false });
    };
    let tuning = Tuning::apply(&sys, found, &state_dir).map_err(Failure::input)?;
    for s in tuning.settings() {
        screen::note(&format!("{}: {} was {}, is {} while it is served", found.name, s.name, s.before, s.ours));
    }
    // Without a serial number the name is as good as it gets: a loop device's, or a virtual machine's disk.
    let id = found.serial().map_err(Failure::input)?.unwrap_or_else(|| found.name.clone());
    Ok(Real { device, id, tuning: Some(tuning), predictable: predictable(found) })
}

/// Puts back what an earlier process left that was killed, whatever is served or measured now.
pub fn put_back_leftovers() -> Result<(), Failure> {
    for left in restore_leftovers(&Sys::default(), &state::default_directory()).map_err(Failure::input)? {
        match left {
            Leftover::Restored { disk, .. } => {
                screen::note(&format!("{disk}: its queue was put back after a process that was killed"))
            }
            Leftover::Gone { .. } | Leftover::InUse { .. } => {}
            Leftover::Failed { path, error } => screen::note(&format!("warning: {}: {error}", path.display())),
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
            screen::note(&format!("warning: {name}: a shingled drive; what it does with writes cannot be predicted"))
        }
        Zoned::HostManaged => {
            return Err(Failure::Input(format!(
                "{name}: a shingled drive that takes writes only in sequence; it cannot be served"
            )));
        }
    }
    Ok(())
}

/// A write that is answered from a cache says nothing of the head; nor does a disk without one. On a virtual drive
/// filling pauses until the write cache is empty; on a real disk it is off while the cache is on.
fn predictable(device: &BlockDevice) -> bool {
    let name = device.path.display();
    if !device.rotational {
        screen::note(&format!("{name}: not a rotating disk, as far as the kernel knows; nothing is filled"));
        return false;
    }
    match device.write_cache {
        WriteCache::Through => true,
        WriteCache::Back => {
            screen::note(&format!(
                "{name}: its write cache is on, so the moment at which a write is answered says nothing of the head; nothing is filled until it is off (hdparm -W0)"
            ));
            false
        }
    }
}

/// Becomes an ordinary user for good. Must be called before there are threads.
pub fn become_user(account: Option<Account>) -> Result<(), Failure> {
    account.map_or(Ok(()), |account| drop_to(&Sys::default(), account).map_err(Failure::input))
}

/// Whom a configuration's `user` means.
pub fn account(user: &str) -> Result<Account, Failure> {
    Account::lookup(&Sys::default(), user, None).map_err(Failure::input)
}
