//! Reads and writes of one file or device through io_uring.
//!
//! The only unsafe code of the project: the kernel is given addresses of buffers and reads or fills them later. What makes
//! that sound is that a buffer is owned by the ring from the moment its address is handed over until the kernel says that
//! it is done with it, and that a ring with unfinished operations never frees anything ([`Drop`]).
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use bytes::Bytes;
use io_uring::{IoUring, opcode, squeue, types};

use crate::buffer::Aligned;

/// A write is on the device, not only in its cache, when it completes.
const RWF_DSYNC: i32 = 0x2;

/// What an operation moves.
#[derive(Debug)]
enum Held {
    Read(Aligned),
    Write(Bytes),
    Nothing,
}

#[derive(Debug)]
struct Operation {
    token: u64,
    held: Held,
    offset: u64,
    /// Bytes moved so far: the kernel may move fewer than asked for.
    moved: usize,
    fua: bool,
}

/// What follows from a refusal of the kernel's to take what was filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    /// A signal came in between: it is asked again at once.
    Again,
    /// It is short of something for a moment: it is asked again at the next poll.
    Later,
    /// It will not take it.
    ForGood,
}

impl Refused {
    fn by(e: &io::Error) -> Refused {
        // EINTR; EAGAIN, EBUSY.
        match e.raw_os_error() {
            Some(4) => Refused::Again,
            Some(11 | 16) => Refused::Later,
            _ => Refused::ForGood,
        }
    }
}

/// Whether an operation that the kernel took and that ended so is to be tried once more.
fn is_interrupted(e: &io::Error) -> bool {
    // EINTR, EAGAIN.
    matches!(e.raw_os_error(), Some(4 | 11))
}

/// How an operation ended.
#[derive(Debug)]
pub struct Finished {
    /// The caller's name for it.
    pub token: u64,
    /// What it came to. A read's bytes; nothing for others. A read that meets the end of the file is an error.
    pub result: io::Result<Bytes>,
}

/// A ring over one open file or device.
pub struct Ring {
    ring: IoUring,
    file: OwnedFd,
    operations: Vec<Option<Operation>>,
    free: Vec<u32>,
    /// Filled in, and not yet handed to the kernel.
    queued: usize,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("file", &self.file).field("outstanding", &self.outstanding()).finish()
    }
}

impl Ring {
    /// A ring for at most `depth` operations at a time. Fails where the kernel has no io_uring or does not allow it.
    pub fn new(file: OwnedFd, depth: u32) -> io::Result<Ring> {
        let ring = IoUring::new(depth.max(1).next_power_of_two())?;
        let operations = (0..depth).map(|_| None).collect();
        Ok(Ring { ring, file, operations, free: (0..depth).rev().collect(), queued: 0 })
    }

    /// Operations that have not been reported as finished.
    pub fn outstanding(&self) -> usize {
        self.operations.len() - self.free.len()
    }

    /// Whether operations wait that the kernel did not take yet: [`Ring::poll`] offers them again, and its descriptor does not
    /// say when.
    pub fn is_held_up(&self) -> bool {
        self.queued > 0
    }

    /// Begins to read `len` bytes. Panics when more operations are outstanding than it was made for.
    pub fn read(&mut self, token: u64, offset: u64, len: usize) -> io::Result<()> {
        self.begin(Operation { token, held: Held::Read(Aligned::new(len)), offset, moved: 0, fua: false })
    }

    /// Begins to write; `fua`: it completes only when it is on the device. The same panic.
    pub fn write(&mut self, token: u64, offset: u64, data: Bytes, fua: bool) -> io::Result<()> {
        self.begin(Operation { token, held: Held::Write(data), offset, moved: 0, fua })
    }

    /// Begins to put everything that was written before on the device. The same panic.
    pub fn flush(&mut self, token: u64) -> io::Result<()> {
        self.begin(Operation { token, held: Held::Nothing, offset: 0, moved: 0, fua: false })
    }

    fn begin(&mut self, operation: Operation) -> io::Result<()> {
        self.put(operation);
        self.hand_over()
    }

    /// Takes an operation in, and does not hand it over yet.
    fn put(&mut self, operation: Operation) {
        let slot = self.free.pop().expect("more operations than the ring was made for");
        self.operations[slot as usize] = Some(operation);
        self.queue(slot);
    }

    /// Fills in a submission for what is left of an operation.
    fn queue(&mut self, slot: u32) {
        let op = self.operations[slot as usize].as_mut().expect("an operation was begun in this slot");
        let fd = types::Fd(self.file.as_raw_fd());
        let at = op.offset + op.moved as u64;
        // One operation moves less than 4 GiB: a request's length in bytes is checked where it comes in.
        let entry: squeue::Entry = match &mut op.held {
            Held::Read(buffer) => {
                let rest = &mut buffer.as_mut()[op.moved..];
                opcode::Read::new(fd, rest.as_mut_ptr(), rest.len() as u32).offset(at).build()
            }
            Held::Write(data) => {
                let rest = &data[op.moved..];
                let flags = if op.fua { RWF_DSYNC } else { 0 };
                opcode::Write::new(fd, rest.as_ptr(), rest.len() as u32).offset(at).rw_flags(flags).build()
            }
            Held::Nothing => opcode::Fsync::new(fd).flags(types::FsyncFlags::DATASYNC).build(),
        };
        let entry = entry.user_data(u64::from(slot));
        // SAFETY: the buffer is owned by `self.operations[slot]`; it neither moves (its memory is on the heap) nor is it
        // freed or touched before the completion of this slot has been taken, and `Drop` leaks it when that never comes.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        assert!(pushed.is_ok(), "the ring has room for every operation");
        self.queued += 1;
    }

    fn hand_over(&mut self) -> io::Result<()> {
        while self.queued > 0 {
            match self.ring.submit() {
                Ok(n) => self.queued -= n.min(self.queued),
                Err(e) => match Refused::by(&e) {
                    Refused::Again => {}
                    Refused::Later => return Ok(()),
                    Refused::ForGood => return Err(e),
                },
            }
        }
        Ok(())
    }

    /// One operation that has finished; never waits.
    pub fn poll(&mut self) -> Option<Finished> {
        loop {
            if self.queued > 0 && self.hand_over().is_err() {
                // Nothing that was queued will ever complete; the next submission reports why.
                return None;
            }
            let entry = self.ring.completion().next()?;
            let slot = entry.user_data() as u32;
            let op = self.operations[slot as usize].as_mut().expect("the kernel completed an operation that was begun");
            let result = match entry.result() {
                n if n >= 0 => Ok(n as usize),
                n => Err(io::Error::from_raw_os_error(-n)),
            };
            let wanted = match &op.held {
                Held::Read(b) => b.len(),
                Held::Write(d) => d.len(),
                Held::Nothing => 0,
            };
            match &result {
                Ok(n) => op.moved += n,
                Err(e) if is_interrupted(e) => {
                    self.queue(slot);
                    continue;
                }
                Err(_) => {}
            }
            if matches!(result, Ok(n) if n > 0) && op.moved < wanted {
                self.queue(slot);
                continue;
            }
            let op = self.operations[slot as usize].take().expect("looked at above");
            self.free.push(slot);
            let short = op.moved < wanted;
            let result = match (result, op.held) {
                (Err(e), _) => Err(e),
                (Ok(_), Held::Read(_)) if short => Err(io::ErrorKind::UnexpectedEof.into()),
                (Ok(_), Held::Write(_)) if short => Err(io::ErrorKind::WriteZero.into()),
                (Ok(_), Held::Read(buffer)) => Ok(buffer.into()),
                (Ok(_), _) => Ok(Bytes::new()),
            };
            return Some(Finished { token: op.token, result });
        }
    }

    /// Readable when something has finished.
    pub fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is the ring's own, which lives as long as what is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) }
    }

    /// Begins to read as if the kernel took nothing for a moment.
    #[cfg(test)]
    pub(crate) fn read_held_up(&mut self, token: u64, offset: u64, len: usize) {
        self.put(Operation { token, held: Held::Read(Aligned::new(len)), offset, moved: 0, fua: false });
    }
}

impl Drop for Ring {
    /// The kernel may still write into the buffers of unfinished operations: a device that hangs keeps them for ever, and
    /// nobody can wait for it, so they are never freed.
    fn drop(&mut self) {
        while self.outstanding() > 0 && self.poll().is_some() {}
        for op in self.operations.iter_mut().filter_map(Option::take) {
            std::mem::forget(op);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Write};

    fn file() -> File {
        tempfile::tempfile().unwrap()
    }

    fn next(ring: &mut Ring) -> Finished {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        loop {
            match ring.poll() {
                Some(f) => return f,
                None => std::thread::sleep(std::time::Duration::from_micros(50)),
            }
            assert!(std::time::Instant::now() < until, "nothing finishes");
        }
    }

    #[test]
    fn what_was_written_is_read_back() {
        let mut ring = Ring::new(file().into(), 2).unwrap();
        ring.write(1, 4096, Bytes::from(vec![5; 8192]), true).unwrap();
        assert!(next(&mut ring).result.is_ok());
        ring.flush(2).unwrap();
        assert_eq!(next(&mut ring).token, 2);
        ring.read(3, 0, 12288).unwrap();
        let read = next(&mut ring).result.unwrap();
        assert!(read[..4096].iter().all(|&b| b == 0) && read[4096..].iter().all(|&b| b == 5));
        assert_eq!(ring.outstanding(), 0);
    }

    #[test]
    fn what_the_kernel_did_not_take_for_a_moment_is_handed_over_at_the_next_poll() {
        let mut f = file();
        f.write_all(&[7; 1024]).unwrap();
        let mut ring = Ring::new(f.into(), 3).unwrap();
        ring.read_held_up(1, 0, 512);
        ring.read_held_up(2, 512, 512);
        assert!(ring.is_held_up() && ring.outstanding() == 2);
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(ring.ring.completion().is_empty(), "the kernel has not seen them");
        let mut tokens = [next(&mut ring), next(&mut ring)].map(|f| {
            assert!(f.result.unwrap().iter().all(|&b| b == 7));
            f.token
        });
        tokens.sort();
        assert!(tokens == [1, 2] && !ring.is_held_up() && ring.outstanding() == 0);
        // The next operation takes them along, too.
        ring.read_held_up(3, 0, 512);
        ring.read(4, 0, 512).unwrap();
        assert!(!ring.is_held_up());
        assert_eq!(next(&mut ring).token + next(&mut ring).token, 7);
    }

    #[test]
    fn refusals_that_pass_are_told_from_those_that_do_not() {
        let by = |errno| Refused::by(&io::Error::from_raw_os_error(errno));
        assert_eq!(by(rustix::io::Errno::INTR.raw_os_error()), Refused::Again);
        for errno in [rustix::io::Errno::AGAIN, rustix::io::Errno::BUSY] {
            assert_eq!(by(errno.raw_os_error()), Refused::Later, "{errno}");
        }
        for errno in [rustix::io::Errno::BADF, rustix::io::Errno::INVAL, rustix::io::Errno::NOMEM] {
            assert_eq!(by(errno.raw_os_error()), Refused::ForGood, "{errno}");
        }
        assert_eq!(Refused::by(&io::ErrorKind::Interrupted.into()), Refused::ForGood, "no answer of the kernel's");
    }

    #[test]
    fn a_read_beyond_the_end_is_an_error_not_zeros() {
        let mut f = file();
        f.write_all(&[1; 100]).unwrap();
        let mut ring = Ring::new(f.into(), 1).unwrap();
        ring.read(9, 0, 512).unwrap();
        let e = next(&mut ring).result.unwrap_err();
        assert_eq!(e.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn an_error_of_the_kernel_comes_back_with_its_operation() {
        let read_only = File::open("/dev/null").unwrap();
        let mut ring = Ring::new(read_only.into(), 1).unwrap();
        ring.write(4, 0, Bytes::from_static(&[0; 512]), false).unwrap();
        let f = next(&mut ring);
        assert_eq!((f.token, f.result.unwrap_err().raw_os_error()), (4, Some(9)));
    }

    #[test]
    fn a_ring_that_is_dropped_with_operations_under_way_lets_them_end() {
        let (mut reader, writer) = std::io::pipe().unwrap();
        let file: OwnedFd = reader.try_clone().unwrap().into();
        let mut ring = Ring::new(file, 1).unwrap();
        // Nothing is in the pipe: this read does not end.
        ring.read(1, u64::MAX, 16).unwrap();
        assert!(ring.poll().is_none());
        drop(ring);
        drop(writer);
        let mut rest = vec![];
        reader.read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty());
    }
}
