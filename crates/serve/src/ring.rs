//! Reads and writes of one file or device, or of several files that hold one drive, through
//! io_uring.
//!
//! The only unsafe code of the project: the kernel is given addresses of buffers and reads or fills
//! them later. What makes that sound is that a buffer is owned by the ring from the moment its
//! address is handed over until the kernel says that it is done with it, and that a ring with
//! unfinished operations never frees anything ([`Drop`]).
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use bytes::Bytes;
use io_uring::{IoUring, opcode, squeue, types};

use crate::backing::{Backing, Place};
use crate::buffer::Aligned;

/// A write is on the device, not only in its cache, when it completes.
const RWF_DSYNC: i32 = 0x2;
/// How often an operation is tried again that the kernel interrupted, or could not do at that
/// moment.
const AGAIN: u32 = 64;

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
    /// Bytes moved so far: the kernel may move fewer than asked for, and what lies in several files
    /// is moved file by file. Of a flush: files done.
    moved: usize,
    fua: bool,
    /// How often it was tried again since it moved something.
    again: u32,
}

impl Operation {
    fn new(token: u64, held: Held, offset: u64, fua: bool) -> Operation {
        Operation { token, held, offset, moved: 0, fua, again: 0 }
    }
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
    /// What it came to. A read's bytes; nothing for others. A read that meets the end of the file
    /// is an error.
    pub result: io::Result<Bytes>,
}

/// A ring over one open file or device, or the files of one drive.
pub struct Ring {
    ring: IoUring,
    backing: Arc<Backing>,
    operations: Vec<Option<Operation>>,
    free: Vec<u32>,
    /// Filled in, and not yet handed to the kernel, in order.
    queued: VecDeque<u32>,
    /// The kernel takes nothing of this ring any more. What was filled in and not taken has failed,
    /// and must never be handed over: its caller was answered that it was not done.
    broken: bool,
    failed: VecDeque<Finished>,
    #[cfg(test)]
    refuses: Option<i32>,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("backing", &self.backing).field("outstanding", &self.outstanding()).finish()
    }
}

impl Ring {
    /// A ring for at most `depth` operations at a time. Fails where the kernel has no io_uring or
    /// does not allow it.
    pub fn new(file: OwnedFd, depth: u32) -> io::Result<Ring> {
        Ring::over(Arc::new(File::from(file).into()), depth)
    }

    /// The same over what may be several files. Offsets are the drive's.
    pub fn over(backing: Arc<Backing>, depth: u32) -> io::Result<Ring> {
        let operations = (0..depth).map(|_| None).collect();
        Ok(Ring {
            ring: Ring::made(depth)?,
            backing,
            operations,
            free: (0..depth).rev().collect(),
            queued: VecDeque::new(),
            broken: false,
            failed: VecDeque::new(),
            #[cfg(test)]
            refuses: None,
        })
    }

    fn made(depth: u32) -> io::Result<IoUring> {
        IoUring::new(depth.max(1).next_power_of_two())
    }

    /// Operations that have not been reported as finished.
    pub fn outstanding(&self) -> usize {
        self.operations.len() - self.free.len() + self.failed.len()
    }

    /// Whether there is something for [`Ring::poll`] that its descriptor does not signal:
    /// operations that the kernel did not take yet, which it offers again, or that failed.
    pub fn is_held_up(&self) -> bool {
        !self.queued.is_empty() || !self.failed.is_empty()
    }

    /// Begins to read `len` bytes. Fails where the kernel takes nothing, and then nothing was
    /// begun. Panics when more operations are outstanding than it was made for.
    pub fn read(&mut self, token: u64, offset: u64, len: usize) -> io::Result<()> {
        self.begin(Operation::new(token, Held::Read(Aligned::new(len)), offset, false))
    }

    /// Begins to write; `fua`: it completes only when it is on the device. The same panic.
    pub fn write(&mut self, token: u64, offset: u64, data: Bytes, fua: bool) -> io::Result<()> {
        self.begin(Operation::new(token, Held::Write(data), offset, fua))
    }

    /// Begins to put everything that was written before on the device. The same panic.
    pub fn flush(&mut self, token: u64) -> io::Result<()> {
        self.begin(Operation::new(token, Held::Nothing, 0, false))
    }

    fn begin(&mut self, operation: Operation) -> io::Result<()> {
        if self.broken {
            if self.free.len() < self.operations.len() {
                return Err(io::Error::other("the kernel takes nothing until it has finished what it has"));
            }
            // With the old one what was never handed over is gone.
            self.ring = Ring::made(self.operations.len() as u32)?;
            self.broken = false;
        }
        self.put(operation);
        self.hand_over();
        Ok(())
    }

    /// Takes an operation in, and does not hand it over yet.
    fn put(&mut self, operation: Operation) {
        let slot = self.free.pop().expect("more operations than the ring was made for");
        self.operations[slot as usize] = Some(operation);
        self.queue(slot);
    }

    /// Fills in a submission for what is left of an operation, to the end of the file in which that
    /// begins. So an operation is with the kernel once at a time, however many files it is in, and
    /// ends with the first error.
    fn queue(&mut self, slot: u32) {
        let op = self.operations[slot as usize].as_mut().expect("an operation was begun in this slot");
        let Place { file, offset, room } = self.backing.place(op.offset + op.moved as u64);
        let fd = |file| types::Fd(self.backing.file(file).as_raw_fd());
        // One operation moves less than 4 GiB: a request's length in bytes is checked where it
        // comes in.
        let here = |rest: usize| rest.min(usize::try_from(room).unwrap_or(usize::MAX)) as u32;
        let entry: squeue::Entry = match &mut op.held {
            Held::Read(buffer) => {
                let rest = &mut buffer.as_mut()[op.moved..];
                opcode::Read::new(fd(file), rest.as_mut_ptr(), here(rest.len())).offset(offset).build()
            }
            Held::Write(data) => {
                let rest = &data[op.moved..];
                let flags = if op.fua { RWF_DSYNC } else { 0 };
                opcode::Write::new(fd(file), rest.as_ptr(), here(rest.len())).offset(offset).rw_flags(flags).build()
            }
            Held::Nothing => opcode::Fsync::new(fd(op.moved)).flags(types::FsyncFlags::DATASYNC).build(),
        };
        let entry = entry.user_data(u64::from(slot));
        // SAFETY: the buffer is owned by `self.operations[slot]`; it neither moves (its memory is
        // on the heap) nor is it freed or touched before the completion of this slot has been
        // taken, and `Drop` leaks it when that never comes.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        assert!(pushed.is_ok(), "the ring has room for every operation");
        self.queued.push_back(slot);
    }

    fn submit(&self) -> io::Result<usize> {
        #[cfg(test)]
        if let Some(errno) = self.refuses {
            return Err(io::Error::from_raw_os_error(errno));
        }
        self.ring.submit()
    }

    fn hand_over(&mut self) {
        while !self.queued.is_empty() {
            match self.submit() {
                Ok(n) => _ = self.queued.drain(..n.min(self.queued.len())),
                Err(e) => match Refused::by(&e) {
                    Refused::Again => {}
                    Refused::Later => return,
                    Refused::ForGood => self.fail(&e),
                },
            }
        }
    }

    /// The kernel refused what was filled in, for good.
    fn fail(&mut self, why: &io::Error) {
        self.broken = true;
        for slot in self.queued.drain(..) {
            let op = self.operations[slot as usize].take().expect("an operation was begun in this slot");
            self.free.push(slot);
            let result = Err(why.raw_os_error().map_or(io::ErrorKind::Other.into(), io::Error::from_raw_os_error));
            self.failed.push_back(Finished { token: op.token, result });
        }
    }

    /// One operation that has finished; never waits.
    pub fn poll(&mut self) -> Option<Finished> {
        loop {
            self.hand_over();
            if let Some(failed) = self.failed.pop_front() {
                return Some(failed);
            }
            let entry = self.ring.completion().next()?;
            let slot = entry.user_data() as u32;
            let op = self.operations[slot as usize].as_mut().expect("the kernel completed an operation that was begun");
            let result = match entry.result() {
                // A flush moves nothing: one more file is done.
                n if n >= 0 => Ok(if matches!(op.held, Held::Nothing) { 1 } else { n as usize }),
                n => Err(io::Error::from_raw_os_error(-n)),
            };
            let wanted = match &op.held {
                Held::Read(b) => b.len(),
                Held::Write(d) => d.len(),
                Held::Nothing => self.backing.files(),
            };
            match &result {
                Ok(n) => (op.moved, op.again) = (op.moved + n, 0),
                // A device that always says so must not keep the engine here for ever.
                Err(e) if is_interrupted(e) && op.again < AGAIN && !self.broken => {
                    op.again += 1;
                    self.queue(slot);
                    continue;
                }
                Err(_) => {}
            }
            if matches!(result, Ok(n) if n > 0) && op.moved < wanted && !self.broken {
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
                // A flush that did not come to all files of the drive.
                (Ok(_), Held::Nothing) if short => Err(io::ErrorKind::Interrupted.into()),
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
        self.put(Operation::new(token, Held::Read(Aligned::new(len)), offset, false));
    }
}

impl Drop for Ring {
    /// The kernel may still write into the buffers of unfinished operations: a device that hangs
    /// keeps them for ever, and nobody can wait for it, so they are never freed.
    fn drop(&mut self) {
        while self.outstanding() > 0 && self.poll().is_some() {}
        for op in self.operations.iter_mut().filter_map(Option::take) {
            std::mem::forget(op);
        }
    }
}

#[cfg(test)]
mod tests;
