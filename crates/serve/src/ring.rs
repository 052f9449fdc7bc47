//! Reads and writes of one file or device, or of several files that hold one drive, through io_uring.
//!
//! The only unsafe code of the project: the kernel is given addresses of buffers and reads or fills them later. What makes
//! that sound is that a buffer is owned by the ring from the moment its address is handed over until the kernel says that
//! it is done with it, and that a ring with unfinished operations never frees anything ([`Drop`]).
#![allow(unsafe_code)]

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
    /// Bytes moved so far: the kernel may move fewer than asked for, and what lies in several files is moved file by
    /// file. Of a flush: files done.
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

/// A ring over one open file or device, or the files of one drive.
pub struct Ring {
    ring: IoUring,
    backing: Arc<Backing>,
    operations: Vec<Option<Operation>>,
    free: Vec<u32>,
    /// Filled in, and not yet handed to the kernel.
    queued: usize,
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("backing", &self.backing).field("outstanding", &self.outstanding()).finish()
    }
}

impl Ring {
    /// A ring for at most `depth` operations at a time. Fails where the kernel has no io_uring or does not allow it.
    pub fn new(file: OwnedFd, depth: u32) -> io::Result<Ring> {
        Ring::over(Arc::new(File::from(file).into()), depth)
    }

    /// The same over what may be several files. Offsets are the drive's.
    pub fn over(backing: Arc<Backing>, depth: u32) -> io::Result<Ring> {
        let ring = IoUring::new(depth.max(1).next_power_of_two())?;
        let operations = (0..depth).map(|_| None).collect();
        Ok(Ring { ring, backing, operations, free: (0..depth).rev().collect(), queued: 0 })
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

    /// Fills in a submission for what is left of an operation, to the end of the file in which that begins. So an
    /// operation is with the kernel once at a time, however many files it is in, and ends with the first error.
    fn queue(&mut self, slot: u32) {
        let op = self.operations[slot as usize].as_mut().expect("an operation was begun in this slot");
        let Place { file, offset, room } = self.backing.place(op.offset + op.moved as u64);
        let fd = |file| types::Fd(self.backing.file(file).as_raw_fd());
        // One operation moves less than 4 GiB: a request's length in bytes is checked where it comes in.
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

    /// Segments of 1,000 bytes, the last one shorter.
    fn over_segments(files: Vec<File>, depth: u32) -> Ring {
        Ring::over(Arc::new(Backing::of_segments(files, 1000)), depth).unwrap()
    }

    #[test]
    fn data_in_several_files_is_what_it_would_be_in_memory() {
        const BYTES: usize = 12_345;
        let files: Vec<File> = (0..13).map(|_| file()).collect();
        files.iter().enumerate().for_each(|(n, f)| f.set_len(if n < 12 { 1000 } else { 345 }).unwrap());
        let lengths = files.iter().map(|f| f.try_clone().unwrap()).collect::<Vec<_>>();
        let mut ring = over_segments(files, 3);
        let (mut memory, mut seed) = (vec![0; BYTES], 1u64);
        let mut chance = |of: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % of
        };
        for n in 0..3000 {
            let at = chance(BYTES);
            // Mostly about as long as a segment, some over many of them.
            let len = 1 + chance(if n % 10 == 0 { BYTES } else { 1500 }).min(BYTES - at - 1);
            if chance(2) == 0 {
                let data = vec![1 + chance(255) as u8; len];
                memory[at..at + len].copy_from_slice(&data);
                ring.write(n, at as u64, data.into(), n % 7 == 0).unwrap();
                assert!(next(&mut ring).result.unwrap().is_empty());
            } else {
                ring.read(n, at as u64, len).unwrap();
                let f = next(&mut ring);
                assert!(f.token == n && f.result.unwrap() == memory[at..at + len], "{len} bytes at {at}");
            }
        }
        assert_eq!(ring.outstanding(), 0);
        let lengths: Vec<u64> = lengths.iter().map(|f| f.metadata().unwrap().len()).collect();
        assert_eq!(lengths, [vec![1000; 12], vec![345]].concat(), "no file has grown");
    }

    #[test]
    fn an_error_in_any_of_several_files_is_the_answer() {
        let full = || File::options().read(true).write(true).open("/dev/full").unwrap();
        let data = || Bytes::from(vec![1; 200]);
        for files in [vec![file(), full(), file()], vec![file(), file(), full()]] {
            let mut ring = over_segments(files, 2);
            ring.write(1, 900, data(), false).unwrap();
            ring.write(2, 1900, data(), false).unwrap();
            let mut results =
                [next(&mut ring), next(&mut ring)].map(|f| (f.token, f.result.err().and_then(|e| e.raw_os_error())));
            results.sort();
            assert!(results.iter().any(|r| r.1 == Some(28)), "no space: {results:?}");
        }
        // Of a segment that is shorter than the others nothing is taken from the next one.
        let files: Vec<File> = [1000, 500, 1000]
            .map(|len| {
                let f = file();
                f.set_len(len).unwrap();
                f
            })
            .into();
        let mut ring = over_segments(files, 1);
        ring.read(3, 900, 1500).unwrap();
        assert_eq!(next(&mut ring).result.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_flush_is_one_of_every_file() {
        // A pipe cannot be flushed.
        for (pipe_at, expected) in [(0, Some(22)), (2, Some(22)), (3, None)] {
            let mut files: Vec<File> = (0..3).map(|_| file()).collect();
            let (reader, _writer) = std::io::pipe().unwrap();
            files.insert(pipe_at, OwnedFd::from(reader).into());
            files.truncate(3);
            let mut ring = over_segments(files, 1);
            ring.flush(1).unwrap();
            assert_eq!(next(&mut ring).result.err().and_then(|e| e.raw_os_error()), expected);
        }
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
