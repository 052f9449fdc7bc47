//! Uses of a block device: mounts, swap, and devices stacked upon it.
//!
//! Written by hand, because procfs (0.18) does not decode white space in the paths of mounts, and
//! does not read the table of swap.

use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{fmt, fs};

use serde::{Deserialize, Serialize};

use crate::sys::{self, Sys, SysError};

/// The kernel's number of a block device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DeviceNumber {
    /// Major number: usually the driver.
    pub major: u32,
    /// Minor number: the device among the driver's.
    pub minor: u32,
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

/// The error of a malformed device number.
#[derive(Debug, thiserror::Error)]
#[error("expected a device number such as 8:0, found {0:?}")]
pub struct NoDeviceNumber(String);

impl FromStr for DeviceNumber {
    type Err = NoDeviceNumber;

    fn from_str(text: &str) -> Result<DeviceNumber, NoDeviceNumber> {
        let parsed = text
            .split_once(':')
            .and_then(|(major, minor)| Some(DeviceNumber { major: major.parse().ok()?, minor: minor.parse().ok()? }));
        parsed.ok_or_else(|| NoDeviceNumber(text.to_string()))
    }
}

impl TryFrom<String> for DeviceNumber {
    type Error = NoDeviceNumber;

    fn try_from(text: String) -> Result<DeviceNumber, NoDeviceNumber> {
        text.parse()
    }
}

impl From<DeviceNumber> for String {
    fn from(number: DeviceNumber) -> String {
        number.to_string()
    }
}

impl DeviceNumber {
    /// Converts `st_rdev` as `stat` returns it.
    pub fn of(rdev: u64) -> DeviceNumber {
        DeviceNumber { major: rustix::fs::major(rdev), minor: rustix::fs::minor(rdev) }
    }
}

/// Returns the device number of the block device with this kernel name.
///
/// # Errors
/// [`SysError`] when sysfs has no such device.
pub fn number_of(sys: &Sys, name: &str) -> Result<DeviceNumber, SysError> {
    let path = sys.block(name).join("dev");
    let found = sys::text(&path)?;
    found.parse().map_err(|_| SysError::Unexpected { path, expected: "a device number such as 8:0", found })
}

/// A use of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Use {
    /// A file system on it is mounted.
    Mounted {
        /// The mount point.
        at: PathBuf,
    },
    /// It is swapped to.
    Swap,
    /// Another block device is stacked upon it (RAID, LVM, encryption).
    Held {
        /// That device's kernel name.
        by: String,
    },
}

/// Returns every use of the device with this kernel name and number, in the system's order.
///
/// Mounts are those of the current mount namespace. A file system on several devices names only one
/// of them. What this misses is detected when the device is opened exclusively.
///
/// # Errors
/// [`SysError`] when sysfs or `/proc` cannot be read.
pub fn uses(sys: &Sys, name: &str, number: DeviceNumber) -> Result<Vec<Use>, SysError> {
    let mut uses = Vec::new();
    let mounts = sys.proc.join("self/mountinfo");
    for line in sys::text(&mounts)?.lines() {
        let Some(mount) = Mount::parse(line) else {
            return Err(SysError::Unexpected {
                path: mounts,
                expected: "a line of mountinfo",
                found: line.to_string(),
            });
        };
        // Btrfs and others report device numbers of their own, so the source is compared, too.
        if mount.number == number || is_device(sys, &mount.source, number) {
            uses.push(Use::Mounted { at: mount.at });
        }
    }
    // The file is absent when the kernel has no swap support.
    let swaps = sys::text_if_there(&sys.proc.join("swaps"))?.unwrap_or_default();
    for line in swaps.lines().skip(1) {
        let source = line.split_ascii_whitespace().next().unwrap_or_default();
        if is_device(sys, &unescaped(source), number) {
            uses.push(Use::Swap);
        }
    }
    for by in sys::names(&sys.block(name).join("holders"))? {
        uses.push(Use::Held { by });
    }
    Ok(uses)
}

/// Whether a file is used as swap.
///
/// # Errors
/// [`SysError`] when `/proc` cannot be read.
pub fn is_swap_file(sys: &Sys, file: &Path) -> Result<bool, SysError> {
    let swaps = sys::text_if_there(&sys.proc.join("swaps"))?.unwrap_or_default();
    Ok(swaps.lines().skip(1).any(|line| unescaped(line.split_ascii_whitespace().next().unwrap_or_default()) == file))
}

/// Returns the kernel names of the loop devices backed by this file.
///
/// # Errors
/// [`SysError`] when sysfs cannot be read.
pub fn loops_upon(sys: &Sys, file: &Path) -> Result<Vec<String>, SysError> {
    let mut found = Vec::new();
    for name in sys::names(&sys.sys.join("class/block"))? {
        if name.starts_with("loop") {
            // The directory exists only while a file backs the device.
            let behind = sys::text_if_there(&sys.block(&name).join("loop/backing_file"))?;
            if behind.is_some_and(|behind| Path::new(&behind) == file) {
                found.push(name);
            }
        }
    }
    Ok(found)
}

/// Whether a file system is mounted at this absolute path.
///
/// # Errors
/// [`SysError`] when `/proc` cannot be read.
pub fn is_mount_point(sys: &Sys, at: &Path) -> Result<bool, SysError> {
    let mounts = sys::text(&sys.proc.join("self/mountinfo"))?;
    Ok(mounts.lines().filter_map(Mount::parse).any(|mount| mount.at == at))
}

/// The fields of a mountinfo line that are used here.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    number: DeviceNumber,
    at: PathBuf,
    source: PathBuf,
}

impl Mount {
    /// Parses a line such as `36 35 98:0 /root /at rw,noatime master:1 - ext3 /dev/root rw`, with
    /// any number of fields before the hyphen.
    fn parse(line: &str) -> Option<Mount> {
        let (place, kind) = line.split_once(" - ")?;
        let mut place = place.split(' ');
        let number = place.nth(2)?.parse().ok()?;
        let at = unescaped(place.nth(1)?);
        let source = unescaped(kind.split(' ').nth(1)?);
        Some(Mount { number, at, source })
    }
}

/// Decodes a name of the kernel's tables: white space and backslashes are three octal digits.
fn unescaped(name: &str) -> PathBuf {
    let bytes = name.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = bytes.get(at + 1..at + 4).filter(|digits| digits.iter().all(|d| (b'0'..=b'7').contains(d)));
        match digits {
            Some(digits) if bytes[at] == b'\\' => {
                let value = digits.iter().fold(0u32, |value, digit| value * 8 + u32::from(digit - b'0'));
                out.push((value & 0xff) as u8);
                at += 4;
            }
            _ => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(out))
}

/// Whether a path below `/dev` is the device with this number.
fn is_device(sys: &Sys, source: &Path, number: DeviceNumber) -> bool {
    let Ok(name) = source.strip_prefix("/dev") else { return false };
    // `/dev/mapper/home` is a symbolic link to `/dev/dm-0`.
    let real = fs::canonicalize(sys.dev.join(name)).ok();
    let name = real.as_deref().and_then(|real| real.strip_prefix(&sys.dev).ok()).unwrap_or(name);
    // In sysfs, the slash of a device in a subdirectory is written as `!`.
    let name = name.to_string_lossy().replace('/', "!");
    number_of(sys, &name).is_ok_and(|found| found == number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn a_line_of_mountinfo_is_understood_with_any_number_of_tags() {
        for tags in ["", " shared:1", " shared:1 master:2 propagate_from:3"] {
            let line = format!("36 35 98:0 / /a\\040b\\134c rw,noatime{tags} - ext3 /dev/sda1 rw,errors=continue");
            let mount = Mount::parse(&line).unwrap();
            assert_eq!(mount.number, DeviceNumber { major: 98, minor: 0 });
            assert_eq!((mount.at, mount.source), (PathBuf::from("/a b\\c"), PathBuf::from("/dev/sda1")));
        }
        assert_eq!(Mount::parse("36 35 98:0 / /a rw"), None);
        assert_eq!(Mount::parse(""), None);
    }

    #[test]
    fn a_device_number_is_two_numbers() {
        assert_eq!("259:12".parse::<DeviceNumber>().unwrap(), DeviceNumber { major: 259, minor: 12 });
        for bad in ["", "8", "8:", ":0", "8:0:0", "a:b", "-1:0"] {
            assert!(bad.parse::<DeviceNumber>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_file_behind_a_loop_device_is_found() {
        let dir = Scratch::new("usage-loop");
        let sys = Sys::below(dir.path());
        dir.file("sys/class/block/loop0/dev", "7:0\n");
        dir.file("sys/class/block/loop1/loop/backing_file", "/srv/disk.img\n");
        assert_eq!(loops_upon(&sys, Path::new("/srv/disk.img")).unwrap(), ["loop1"]);
        assert!(loops_upon(&sys, Path::new("/srv/other.img")).unwrap().is_empty());
    }

    #[test]
    fn swap_and_mounts_by_a_linked_name_count() {
        let dir = Scratch::new("usage-swap");
        let sys = Sys::below(dir.path());
        dir.file("sys/class/block/dm-0/dev", "253:0\n");
        dir.file("dev/dm-0", "");
        fs::create_dir_all(dir.path().join("dev/mapper")).unwrap();
        std::os::unix::fs::symlink("../dm-0", dir.path().join("dev/mapper/home")).unwrap();
        dir.file("proc/self/mountinfo", "36 35 0:52 / /home rw - btrfs /dev/mapper/home rw\n");
        dir.file(
            "proc/swaps",
            "Filename Type Size Used Priority\n/dev/dm-0 partition 1 0 -2\n/swap\\040file file 1 0 -3\n",
        );
        let number = number_of(&sys, "dm-0").unwrap();
        assert_eq!(uses(&sys, "dm-0", number).unwrap(), [Use::Mounted { at: "/home".into() }, Use::Swap]);
        assert!(is_swap_file(&sys, Path::new("/swap file")).unwrap());
        assert!(is_mount_point(&sys, Path::new("/home")).unwrap());
        assert!(!is_mount_point(&sys, Path::new("/hom")).unwrap());
    }
}
