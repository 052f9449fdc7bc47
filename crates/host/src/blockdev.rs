//! Inspecting a block device, detecting its users, and opening it exclusively.
//!
//! A device is inspected through sysfs, by its numbers, so no privileges are needed until it is
//! opened. A partition has no queue of its own: queue properties are its disk's.

use std::fs::{self, Metadata};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::sys::{self, Sys, SysError};
use crate::usage::{self, DeviceNumber, Use, number_of};

mod errors;

pub use errors::{InspectError, UseError};

/// How long to wait for a device to be released: the kernel tears down a killed server's io_uring
/// asynchronously, and closes the file then.
const LET_GO: Duration = Duration::from_secs(1);

/// The target of a path.
#[derive(Clone, Debug)]
pub enum Target {
    /// A block device.
    Device(BlockDevice),
    /// A regular file.
    File(RegularFile),
}

/// A regular file as the backing of a drive.
#[derive(Clone, Debug)]
pub struct RegularFile {
    /// Absolute path, symbolic links resolved.
    pub path: PathBuf,
    /// Size in bytes.
    pub size: u64,
    sys: Sys,
}

/// A block device, as it was when inspected.
#[derive(Clone, Debug)]
pub struct BlockDevice {
    /// Absolute path, symbolic links resolved.
    pub path: PathBuf,
    /// Kernel name: `sda`, `nvme0n1p2`, `loop3`.
    pub name: String,
    /// Device number.
    pub number: DeviceNumber,
    /// Whole disk or partition.
    pub part: Part,
    /// Size in bytes.
    pub size: u64,
    /// Logical sector size in bytes.
    pub logical_sector: u32,
    /// Whether the kernel treats it as rotational.
    pub rotational: bool,
    /// Mode of its write cache.
    pub write_cache: WriteCache,
    /// Whether it has zones that must be written sequentially.
    pub zoned: Zoned,
    /// Whether it refuses writes.
    pub read_only: bool,
    /// Sequence number among all disks since boot, renewed on a medium change; kernels before 5.15
    /// have none.
    pub diskseq: Option<u64>,
    sys: Sys,
}

/// Whole disk or partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// The whole disk.
    Whole {
        /// Kernel names of its partitions.
        partitions: Vec<String>,
    },
    /// A partition.
    Partition {
        /// Partition number, from 1.
        number: u32,
        /// The disk's kernel name.
        disk: String,
        /// First byte on the disk.
        start: u64,
    },
}

/// Mode of a drive's write cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteCache {
    /// Writes complete before they are on the medium; flushes are needed.
    Back,
    /// Completed writes are on the medium.
    Through,
}

/// Whether zones of a device must be written sequentially.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zoned {
    /// There are no zones.
    No,
    /// Any block can be written; the drive hides the cost.
    HostAware,
    /// Writes out of sequence fail.
    HostManaged,
}

impl Target {
    /// Inspects the target of `path`.
    ///
    /// # Errors
    /// [`InspectError`].
    pub fn inspect(sys: &Sys, path: &Path) -> Result<Target, InspectError> {
        let failed = |source| InspectError::Look { path: path.to_path_buf(), source };
        let real = fs::canonicalize(path).map_err(failed)?;
        let meta = fs::metadata(&real).map_err(failed)?;
        if meta.file_type().is_block_device() {
            let number = DeviceNumber::of(meta.rdev());
            return BlockDevice::with_number(sys, &real, number).map(Target::Device);
        }
        if meta.is_file() {
            return Ok(Target::File(RegularFile { path: real, size: meta.len(), sys: sys.clone() }));
        }
        Err(InspectError::NeitherDeviceNorFile { path: path.to_path_buf(), found: kind(&meta) })
    }

    /// Returns the size in bytes.
    pub fn size(&self) -> u64 {
        match self {
            Target::Device(device) => device.size,
            Target::File(file) => file.size,
        }
    }

    /// Opens the target as [`BlockDevice::open`] or [`RegularFile::open`] does.
    ///
    /// # Errors
    /// [`UseError`].
    pub fn open(&self, read_only: bool) -> Result<OwnedFd, UseError> {
        match self {
            Target::Device(device) => device.open(read_only),
            Target::File(file) => file.open(read_only),
        }
    }
}

fn kind(meta: &Metadata) -> &'static str {
    let kind = meta.file_type();
    match () {
        () if kind.is_dir() => "a directory",
        () if kind.is_char_device() => "a character device",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () => "something else",
    }
}

impl RegularFile {
    /// Refuses a file that is swapped to or backs a loop device.
    ///
    /// # Errors
    /// [`UseError`].
    pub fn refuse_if_in_use(&self) -> Result<(), UseError> {
        let part = || self.path.display().to_string();
        if usage::is_swap_file(&self.sys, &self.path)? {
            return Err(UseError::Swap { path: self.path.clone(), part: part() });
        }
        match usage::loops_upon(&self.sys, &self.path)?.into_iter().next() {
            Some(by) => Err(UseError::Held { path: self.path.clone(), part: part(), by }),
            None => Ok(()),
        }
    }

    /// Opens the file with direct I/O and locks it (`flock`), so that of all programs that lock
    /// this way only one has it open. Waits up to a second for the lock, because the kernel
    /// releases that of a killed program with a delay.
    ///
    /// # Errors
    /// [`UseError`].
    pub fn open(&self, read_only: bool) -> Result<OwnedFd, UseError> {
        self.refuse_if_in_use()?;
        if self.size == 0 {
            return Err(UseError::Empty { path: self.path.clone() });
        }
        let fd = open(&self.path, access(read_only) | OFlags::DIRECT).map_err(|e| match e {
            Errno::INVAL => UseError::NoDirect { path: self.path.clone() },
            e => refused(&self.path, e),
        })?;
        let patience = Instant::now() + LET_GO;
        loop {
            match rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::WOULDBLOCK) if Instant::now() < patience => std::thread::sleep(LET_GO / 50),
                Err(Errno::WOULDBLOCK) => return Err(UseError::Busy { path: self.path.clone() }),
                Err(e) => return Err(refused(&self.path, e)),
            }
        }
        let size = rustix::fs::fstat(&fd).map_err(|e| refused(&self.path, e))?.st_size.cast_unsigned();
        if size != self.size {
            let (expected, found) = (format!("{} bytes", self.size), format!("{size} bytes"));
            return Err(UseError::Exchanged { path: self.path.clone(), expected, found });
        }
        Ok(fd)
    }
}

impl BlockDevice {
    /// Inspects the block device at `path`.
    ///
    /// # Errors
    /// [`InspectError`].
    pub fn inspect(sys: &Sys, path: &Path) -> Result<BlockDevice, InspectError> {
        match Target::inspect(sys, path)? {
            Target::Device(device) => Ok(device),
            Target::File(_) => Err(InspectError::NotADevice { path: path.to_path_buf() }),
        }
    }

    /// Inspects the device with this number. `path` is used only to open it and in messages.
    ///
    /// # Errors
    /// [`InspectError::NoDevice`], [`InspectError::Sys`].
    pub fn with_number(sys: &Sys, path: &Path, number: DeviceNumber) -> Result<BlockDevice, InspectError> {
        let place = sys.sys.join("dev/block").join(number.to_string());
        let no_device = || InspectError::NoDevice { path: path.to_path_buf(), number, place: place.clone() };
        let own = fs::canonicalize(&place).map_err(|_| no_device())?;
        let name = own.file_name().ok_or_else(no_device)?.to_string_lossy().into_owned();
        let (part, disk) = match sys::number_if_there(&own.join("partition"))? {
            None => (Part::Whole { partitions: partitions(&own)? }, own.clone()),
            Some(number) => {
                let disk = own.parent().ok_or_else(no_device)?.to_path_buf();
                let disk_name = disk.file_name().ok_or_else(no_device)?.to_string_lossy().into_owned();
                let start = sectors(&own.join("start"))?;
                (Part::Partition { number, disk: disk_name, start }, disk)
            }
        };
        let queue = disk.join("queue");
        let read_only = flag(&own.join("ro"))? || flag(&disk.join("ro"))?;
        Ok(BlockDevice {
            path: path.to_path_buf(),
            number,
            part,
            size: sectors(&own.join("size"))?,
            logical_sector: sys::number(&queue.join("logical_block_size"))?,
            rotational: flag(&queue.join("rotational"))?,
            write_cache: write_cache(&queue.join("write_cache"))?,
            zoned: zoned(&queue.join("zoned"))?,
            read_only,
            diskseq: sys::number_if_there(&disk.join("diskseq"))?,
            name,
            sys: sys.clone(),
        })
    }

    /// Returns the kernel name of its disk.
    pub fn disk(&self) -> &str {
        match &self.part {
            Part::Whole { .. } => &self.name,
            Part::Partition { disk, .. } => disk,
        }
    }

    /// Returns the disk's sysfs directory.
    pub fn disk_directory(&self) -> PathBuf {
        self.sys.block(self.disk())
    }

    /// Returns the disk's world-wide name or serial number, which is unique and permanent, if it
    /// has one.
    ///
    /// # Errors
    /// [`SysError`].
    pub fn serial(&self) -> Result<Option<String>, SysError> {
        sys::serial(&self.disk_directory())
    }

    /// Refuses a device that is mounted, swapped to or held: the device itself, any of its
    /// partitions, or the disk that it is a partition of. Other partitions of the same disk do not
    /// matter.
    ///
    /// # Errors
    /// [`UseError`].
    pub fn refuse_if_used(&self) -> Result<(), UseError> {
        let mut parts = vec![self.name.clone()];
        match &self.part {
            Part::Whole { partitions } => parts.extend(partitions.iter().cloned()),
            Part::Partition { disk, .. } => parts.push(disk.clone()),
        }
        for part in parts {
            let number = if part == self.name { self.number } else { number_of(&self.sys, &part)? };
            let path = self.path.clone();
            return Err(match usage::uses(&self.sys, &part, number)?.into_iter().next() {
                None => continue,
                Some(Use::Mounted { at }) if part == self.name => UseError::Mounted { path, at },
                Some(Use::Mounted { at }) => UseError::PartMounted { path, part, at },
                Some(Use::Swap) => UseError::Swap { path, part },
                Some(Use::Held { by }) => UseError::Held { path, part, by },
            });
        }
        Ok(())
    }

    /// Does what [`BlockDevice::refuse_if_used`] does, and also opens the device exclusively for a
    /// moment, which detects mounts in other namespaces and programs with exclusive access. Waits
    /// up to a second for a killed program, whose access the kernel ends with a delay.
    ///
    /// # Errors
    /// [`UseError`].
    pub fn refuse_if_in_use(&self) -> Result<(), UseError> {
        self.claim().map(drop)
    }

    /// Does what [`BlockDevice::refuse_if_in_use`] does, and keeps other exclusive users away while
    /// the descriptor is open.
    ///
    /// # Errors
    /// [`UseError`].
    pub fn claim(&self) -> Result<OwnedFd, UseError> {
        self.refuse_if_used()?;
        // Read-only: closing a descriptor that was open for writing makes udev probe the device
        // again.
        self.open_exclusively(OFlags::RDONLY)
    }

    /// Opens the device with direct I/O and exclusively: while the descriptor is open, neither the
    /// device nor any of its partitions can be mounted, and no other process can open it
    /// exclusively. Waits as [`BlockDevice::refuse_if_in_use`] does.
    ///
    /// # Errors
    /// [`UseError`].
    pub fn open(&self, read_only: bool) -> Result<OwnedFd, UseError> {
        self.refuse_if_used()?;
        if self.size == 0 {
            return Err(UseError::Empty { path: self.path.clone() });
        }
        if self.read_only && !read_only {
            return Err(UseError::ReadOnly { path: self.path.clone() });
        }
        self.open_exclusively(access(read_only) | OFlags::DIRECT)
    }

    fn open_exclusively(&self, how: OFlags) -> Result<OwnedFd, UseError> {
        let patience = Instant::now() + LET_GO;
        let fd = loop {
            match open(&self.path, how | OFlags::EXCL) {
                Err(Errno::BUSY) if Instant::now() < patience => std::thread::sleep(LET_GO / 50),
                opened => break opened.map_err(|e| refused(&self.path, e))?,
            }
        };
        // The path may have another target by now, and the medium may have been changed.
        let opened = DeviceNumber::of(rustix::fs::fstat(&fd).map_err(|e| refused(&self.path, e))?.st_rdev);
        if opened != self.number {
            let (expected, found) = (format!("device {}", self.number), format!("device {opened}"));
            return Err(UseError::Exchanged { path: self.path.clone(), expected, found });
        }
        let diskseq: Option<u64> = sys::number_if_there(&self.disk_directory().join("diskseq"))?;
        if diskseq != self.diskseq {
            let say = |seq: Option<u64>| seq.map_or("no disk number".into(), |seq| format!("disk number {seq}"));
            let (expected, found) = (say(self.diskseq), say(diskseq));
            return Err(UseError::Exchanged { path: self.path.clone(), expected, found });
        }
        Ok(fd)
    }
}

fn access(read_only: bool) -> OFlags {
    if read_only { OFlags::RDONLY } else { OFlags::RDWR }
}

fn open(path: &Path, how: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, how | OFlags::CLOEXEC, Mode::empty())
}

fn refused(path: &Path, e: Errno) -> UseError {
    let path = path.to_path_buf();
    match e {
        Errno::BUSY => UseError::Busy { path },
        Errno::ROFS => UseError::ReadOnly { path },
        Errno::NOMEDIUM => UseError::Empty { path },
        e => UseError::Open { path, source: e.into() },
    }
}

/// Returns the kernel names of a disk's partitions: the subdirectories with a `partition` file.
fn partitions(disk: &Path) -> Result<Vec<String>, SysError> {
    let mut names = sys::names(disk)?;
    names.retain(|name| disk.join(name).join("partition").is_file());
    Ok(names)
}

/// Returns a size in bytes. Sysfs counts units of 512 bytes whatever the sector size.
fn sectors(path: &Path) -> Result<u64, SysError> {
    let sectors: u64 = sys::number(path)?;
    sectors.checked_mul(512).ok_or_else(|| SysError::Unexpected {
        path: path.to_path_buf(),
        expected: "a number of 512-byte units that fits in 64 bits as bytes",
        found: sectors.to_string(),
    })
}

fn flag(path: &Path) -> Result<bool, SysError> {
    match sys::text(path)?.as_str() {
        "0" => Ok(false),
        "1" => Ok(true),
        found => Err(unexpected(path, "0 or 1", found)),
    }
}

fn write_cache(path: &Path) -> Result<WriteCache, SysError> {
    match sys::text(path)?.as_str() {
        "write back" => Ok(WriteCache::Back),
        "write through" => Ok(WriteCache::Through),
        found => Err(unexpected(path, "\"write back\" or \"write through\"", found)),
    }
}

fn zoned(path: &Path) -> Result<Zoned, SysError> {
    match sys::text_if_there(path)?.as_deref() {
        None | Some("none") => Ok(Zoned::No),
        Some("host-aware") => Ok(Zoned::HostAware),
        Some("host-managed") => Ok(Zoned::HostManaged),
        Some(found) => Err(unexpected(path, "\"none\", \"host-aware\" or \"host-managed\"", found)),
    }
}

fn unexpected(path: &Path, expected: &'static str, found: &str) -> SysError {
    SysError::Unexpected { path: path.to_path_buf(), expected, found: found.to_string() }
}

#[cfg(test)]
mod tests;
