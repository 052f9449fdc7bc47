//! A block device, a loop device or a file.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use bytes::Bytes;
use headtime_disk::{Command, Kind, Time};

use super::{Device, Done, Fault, bytes_of};
use crate::buffer::{self, Aligned};
use crate::ring::Ring;

/// A device over a file or block device.
#[derive(Debug)]
pub struct FileDevice {
    ring: Ring,
    sectors: u64,
    sector_bytes: u32,
    depth: u32,
    /// The file is open for direct I/O: addresses must be aligned.
    direct: bool,
    commands: BTreeMap<u64, Command>,
    /// Commands that could not be started.
    failed: Vec<Done>,
}

impl FileDevice {
    /// Creates a device over `file`, open for reading and writing; `direct`: with O_DIRECT. Fails
    /// without io_uring.
    pub fn new(file: OwnedFd, sectors: u64, sector_bytes: u32, depth: u32, direct: bool) -> io::Result<FileDevice> {
        let ring = Ring::new(file, depth)?;
        Ok(FileDevice { ring, sectors, sector_bytes, depth, direct, commands: BTreeMap::new(), failed: Vec::new() })
    }
}

impl Device for FileDevice {
    fn sectors(&self) -> u64 {
        self.sectors
    }
    fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }
    fn depth(&self) -> u32 {
        self.depth
    }

    fn submit(&mut self, command: &Command, data: Bytes, _: Time) {
        let len = bytes_of(command, self.sector_bytes);
        let offset = command.lbn * u64::from(self.sector_bytes);
        let begun = match command.kind {
            Kind::Read => self.ring.read(command.id, offset, len),
            Kind::Write => {
                assert_eq!(data.len(), len, "a write brings exactly its data");
                let data = match self.direct && !buffer::is_aligned(&data) {
                    true => Aligned::copy_of(&data).into(),
                    false => data,
                };
                self.ring.write(command.id, offset, data, command.fua)
            }
            Kind::Flush => self.ring.flush(command.id),
        };
        match begun {
            Ok(()) => _ = self.commands.insert(command.id, *command),
            Err(e) => self.failed.push(Done::failed(command, Fault::of(&e))),
        }
    }

    fn poll(&mut self, _: Time) -> Option<Done> {
        if let Some(done) = self.failed.pop() {
            return Some(done);
        }
        let finished = self.ring.poll()?;
        let command = self.commands.remove(&finished.token).expect("what has finished was begun, once");
        Some(match finished.result {
            Ok(data) => Done::ok(command.id, data),
            Err(e) => Done::failed(&command, Fault::of(&e)),
        })
    }

    fn next_event(&self) -> Option<Time> {
        (!self.failed.is_empty() || self.ring.is_held_up()).then_some(Time::ZERO)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.ring.fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(device: &mut FileDevice) -> Done {
        loop {
            match device.poll(Time::ZERO) {
                Some(d) => return d,
                None => std::thread::sleep(std::time::Duration::from_micros(50)),
            }
        }
    }

    fn command(id: u64, kind: Kind, lbn: u64, count: u32) -> Command {
        Command { id, kind, lbn, count, fua: false }
    }

    #[test]
    fn sectors_come_back_as_they_were_written() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(1 << 20).unwrap();
        let mut device = FileDevice::new(file.into(), 2048, 512, 2, false).unwrap();
        device.submit(&command(1, Kind::Write, 5, 2), Bytes::from(vec![9; 1024]), Time::ZERO);
        assert_eq!(next(&mut device).fault, None);
        device.submit(&command(2, Kind::Read, 4, 4), Bytes::new(), Time::ZERO);
        let read = next(&mut device).data;
        assert_eq!((read.len(), read[511], read[512], read[1535], read[1536]), (2048, 0, 9, 9, 0));
    }

    #[test]
    fn a_command_that_the_kernel_did_not_take_is_no_reason_to_sleep() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        let mut device = FileDevice::new(file.into(), 8, 512, 2, false).unwrap();
        assert_eq!(device.next_event(), None);
        device.ring.read_held_up(1, 0, 512);
        device.commands.insert(1, command(1, Kind::Read, 0, 1));
        assert_eq!(device.next_event(), Some(Time::ZERO));
        assert_eq!((next(&mut device).fault, device.next_event()), (None, None));
    }

    #[test]
    fn a_device_that_is_shorter_than_it_said_fails_reads_and_returns_no_zeros() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        let mut device = FileDevice::new(file.into(), 2048, 512, 2, false).unwrap();
        device.submit(&command(1, Kind::Read, 100, 8), Bytes::new(), Time::ZERO);
        let done = next(&mut device);
        assert_eq!((done.fault, done.data.len()), (Some(Fault::Io), 0));
    }

    #[test]
    fn direct_io_takes_data_from_any_address() {
        use std::os::unix::fs::OpenOptionsExt;
        let dir = tempfile::tempdir_in(std::env::current_dir().unwrap()).unwrap();
        let path = dir.path().join("f");
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .custom_flags(rustix::fs::OFlags::DIRECT.bits() as i32)
            .open(path)
            .unwrap();
        file.set_len(1 << 20).unwrap();
        let mut device = FileDevice::new(file.into(), 256, 4096, 2, true).unwrap();
        let data = Bytes::from(vec![3; 4097]).slice(1..);
        device.submit(&command(1, Kind::Write, 1, 1), data.clone(), Time::ZERO);
        assert_eq!(next(&mut device).fault, None);
        device.submit(&command(2, Kind::Read, 1, 1), Bytes::new(), Time::ZERO);
        assert_eq!(next(&mut device).data, data);
    }
}
