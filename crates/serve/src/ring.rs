//! Reads and writes through io_uring, on one file or device, or on several files that hold one
//! drive.
//!
//! This is the only unsafe code of the project: the kernel is given addresses of buffers and
//! accesses them later. It is sound because the ring owns a buffer from the submission until the
//! kernel reports completion, and a ring with unfinished operations never frees their buffers
//! ([`Drop`]).
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

/// The write completes only when its data is on the device and not only in its cache.
const RWF_DSYNC: i32 = 0x2;
/// How often an operation is retried that the kernel interrupted or temporarily could not do.
const MAX_RETRIES: u32 = 64;

/// The buffer of an operation.
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
    /// Bytes transferred so far: the kernel may transfer fewer than requested, and a range across
    /// several files is transferred file by file. For a flush: files done.
    moved: usize,
    fua: bool,
    /// Retries since the last progress.
    again: u32,
}

impl Operation {
    fn new(token: u64, held: Held, offset: u64, fua: bool) -> Operation {
        Operation { token, held, offset, moved: 0, fua, again: 0 }
    }
}

/// How to handle a failed submission to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refused {
    /// A signal interrupted it: retry at once.
    Again,
    /// A resource is temporarily short: retry at the next poll.
    Later,
    /// The kernel rejects it permanently.
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

/// Returns whether an operation that ended with this error is to be retried.
fn is_interrupted(e: &io::Error) -> bool {
    // EINTR, EAGAIN.
    matches!(e.raw_os_error(), Some(4 | 11))
}

/// A finished operation.
#[derive(Debug)]
pub(crate) struct Finished {
    /// The caller's token.
    pub token: u64,
    /// The result: the data of a read, empty for others. A read past the end of the file is an
    /// error.
    pub result: io::Result<Bytes>,
}

/// A ring over one open file or device, or over the files of one drive.
pub(crate) struct Ring {
    ring: IoUring,
    backing: Arc<Backing>,
    operations: Vec<Option<Operation>>,
    free: Vec<u32>,
    /// Prepared and not yet submitted to the kernel, in order.
    queued: VecDeque<u32>,
    /// The kernel accepts nothing more from this ring. Unsubmitted operations have been reported as
    /// failed and must never be submitted.
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
    /// Creates a ring for at most `depth` operations at a time. Fails if io_uring is missing or not
    /// permitted.
    pub(crate) fn new(file: OwnedFd, depth: u32) -> io::Result<Ring> {
        Ring::over(Arc::new(File::from(file).into()), depth)
    }

    /// Creates a ring over a drive's files. Offsets are the drive's.
    pub(crate) fn over(backing: Arc<Backing>, depth: u32) -> io::Result<Ring> {
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

    /// Returns the number of operations not yet reported as finished.
    pub(crate) fn outstanding(&self) -> usize {
        self.operations.len() - self.free.len() + self.failed.len()
    }

    /// Returns whether there is work for [`Ring::poll`] that the descriptor does not signal:
    /// operations that must be resubmitted, or that failed.
    pub(crate) fn is_held_up(&self) -> bool {
        !self.queued.is_empty() || !self.failed.is_empty()
    }

    /// Starts a read of `len` bytes. Fails if the kernel accepts nothing; then nothing was started.
    /// Panics if more operations are outstanding than the ring's depth.
    pub(crate) fn read(&mut self, token: u64, offset: u64, len: usize) -> io::Result<()> {
        self.begin(Operation::new(token, Held::Read(Aligned::new(len)), offset, false))
    }

    /// Starts a write; with `fua` it completes only when it is on the device. Panics like
    /// [`Ring::read`].
    pub(crate) fn write(&mut self, token: u64, offset: u64, data: Bytes, fua: bool) -> io::Result<()> {
        self.begin(Operation::new(token, Held::Write(data), offset, fua))
    }

    /// Starts a flush of all completed writes to the device. Panics like [`Ring::read`].
    pub(crate) fn flush(&mut self, token: u64) -> io::Result<()> {
        self.begin(Operation::new(token, Held::Nothing, 0, false))
    }

    fn begin(&mut self, operation: Operation) -> io::Result<()> {
        if self.broken {
            if self.free.len() < self.operations.len() {
                return Err(io::Error::other("the kernel takes nothing until it has finished what it has"));
            }
            // Dropping the old ring discards what was never submitted.
            self.ring = Ring::made(self.operations.len() as u32)?;
            self.broken = false;
        }
        self.put(operation);
        self.hand_over();
        Ok(())
    }

    /// Prepares an operation without submitting it.
    fn put(&mut self, operation: Operation) {
        let slot = self.free.pop().expect("more operations than the ring was made for");
        self.operations[slot as usize] = Some(operation);
        self.queue(slot);
    }

    /// Prepares the submission of an operation's next part, which ends with the file it begins in.
    /// So an operation has one submission at the kernel at a time, and ends with the first error.
    fn queue(&mut self, slot: u32) {
        let op = self.operations[slot as usize].as_mut().expect("an operation was begun in this slot");
        let Place { file, offset, room } = self.backing.place(op.offset + op.moved as u64);
        let fd = |file| types::Fd(self.backing.file(file).as_raw_fd());
        // One operation transfers less than 4 GiB: the length of a request is checked on arrival.
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
        // SAFETY: the buffer is owned by `self.operations[slot]`. Its memory is on the heap and
        // does not move, and it is neither freed nor accessed before the completion of this slot;
        // if that never arrives, `Drop` leaks it.
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

    /// Fails the unsubmitted operations after a permanent error.
    fn fail(&mut self, why: &io::Error) {
        self.broken = true;
        for slot in self.queued.drain(..) {
            let op = self.operations[slot as usize].take().expect("an operation was begun in this slot");
            self.free.push(slot);
            let result = Err(why.raw_os_error().map_or(io::ErrorKind::Other.into(), io::Error::from_raw_os_error));
            self.failed.push_back(Finished { token: op.token, result });
        }
    }

    /// Returns a finished operation, if any, without waiting.
    pub(crate) fn poll(&mut self) -> Option<Finished> {
        loop {
            self.hand_over();
            if let Some(failed) = self.failed.pop_front() {
                return Some(failed);
            }
            let entry = self.ring.completion().next()?;
            let slot = entry.user_data() as u32;
            let op = self.operations[slot as usize].as_mut().expect("the kernel completed an operation that was begun");
            let result = match entry.result() {
                // A flush transfers nothing: one more file is done.
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
                // The limit on retries keeps a faulty device from blocking the engine.
                Err(e) if is_interrupted(e) && op.again < MAX_RETRIES && !self.broken => {
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
                // A flush that did not reach all files of the drive.
                (Ok(_), Held::Nothing) if short => Err(io::ErrorKind::Interrupted.into()),
                (Ok(_), _) => Ok(Bytes::new()),
            };
            return Some(Finished { token: op.token, result });
        }
    }

    /// Returns a descriptor that is readable when an operation has finished.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is the ring's own, which outlives the borrow.
        unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) }
    }

    /// Prepares a read as if the kernel temporarily accepted nothing.
    #[cfg(test)]
    pub(crate) fn read_held_up(&mut self, token: u64, offset: u64, len: usize) {
        self.put(Operation::new(token, Held::Read(Aligned::new(len)), offset, false));
    }
}

impl Drop for Ring {
    /// Leaks the buffers of unfinished operations, since the kernel may still write to them: a hung
    /// device holds them indefinitely, and waiting for it is not possible.
    fn drop(&mut self) {
        while self.outstanding() > 0 && self.poll().is_some() {}
        for op in self.operations.iter_mut().filter_map(Option::take) {
            std::mem::forget(op);
        }
    }
}

#[cfg(test)]
mod tests;
