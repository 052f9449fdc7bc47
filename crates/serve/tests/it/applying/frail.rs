//! A virtual drive that fails as a destination can: it refuses writes or flushes, and loses what
//! was not flushed.

use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use headtime_disk::{Command, Kind, Time};
use headtime_serve::device::virtual_drive::VirtualDrive;
use headtime_serve::device::{Device, Done, Fault};

use super::SECTOR;

/// What fails, shared with the test. By default nothing does.
#[derive(Debug, Default)]
pub struct Frailty {
    /// The fault of every command of this kind.
    pub fails: Option<(Kind, Fault)>,
    /// The number of commands that failed.
    pub failed: u64,
    /// The drive's backing file, if the drive has a volatile cache.
    pub volatile: Option<File>,
    /// Flushes do not complete.
    pub holds_flushes: bool,
    /// The power has failed: no flush helps any more.
    pub dark: bool,
    /// Contents before the writes that were not flushed, with their offsets, the oldest first.
    unflushed: VecDeque<(u64, Vec<u8>)>,
    /// Writes that were flushed.
    flushed: u64,
}

impl Frailty {
    /// Returns the number of writes that a power failure would lose.
    pub fn unflushed(&self) -> usize {
        self.unflushed.len()
    }

    /// Restores the contents of the medium: what was written and not flushed is lost. Returns the
    /// number of writes that are lost.
    pub fn lose(&mut self) -> usize {
        let (file, lost) = (self.volatile.as_ref().unwrap(), std::mem::take(&mut self.unflushed));
        lost.iter().rev().for_each(|(at, before)| file.write_all_at(before, *at).unwrap());
        self.dark = false;
        lost.len()
    }
}

/// The drive.
pub struct Frail {
    inner: VirtualDrive,
    frailty: Arc<Mutex<Frailty>>,
    failed: Vec<Done>,
    /// Identifiers of flushes that do not complete.
    held: Vec<u64>,
    /// Flushes in progress, and the number of all writes before each.
    flushes: Vec<(u64, u64)>,
}

impl Frail {
    pub fn new(inner: VirtualDrive, frailty: Arc<Mutex<Frailty>>) -> Frail {
        Frail { inner, frailty, failed: Vec::new(), held: Vec::new(), flushes: Vec::new() }
    }
}

impl Device for Frail {
    fn sectors(&self) -> u64 {
        self.inner.sectors()
    }
    fn sector_bytes(&self) -> u32 {
        self.inner.sector_bytes()
    }
    fn depth(&self) -> u32 {
        self.inner.depth()
    }

    fn submit(&mut self, command: &Command, data: Bytes, now: Time) {
        let mut frailty = self.frailty.lock().unwrap();
        if let Some((_, fault)) = frailty.fails.filter(|(kind, _)| *kind == command.kind) {
            frailty.failed += 1;
            return self.failed.push(Done::failed(command, fault));
        }
        if frailty.holds_flushes && command.kind == Kind::Flush {
            return self.held.push(command.id);
        }
        if let Some(file) = &frailty.volatile {
            match command.kind {
                Kind::Write if !command.fua => {
                    let (at, mut before) = (command.lbn * SECTOR, vec![0; data.len()]);
                    file.read_exact_at(&mut before, at).unwrap();
                    frailty.unflushed.push_back((at, before));
                }
                Kind::Flush => self.flushes.push((command.id, frailty.flushed + frailty.unflushed.len() as u64)),
                Kind::Read | Kind::Write => {}
            }
        }
        drop(frailty);
        self.inner.submit(command, data, now);
    }

    fn poll(&mut self, now: Time) -> Option<Done> {
        if !self.held.is_empty() && !self.frailty.lock().unwrap().holds_flushes {
            return self.held.pop().map(|id| Done::ok(id, Bytes::new()));
        }
        let done = self.failed.pop().or_else(|| self.inner.poll(now))?;
        if let Some(i) = self.flushes.iter().position(|(id, _)| *id == done.id) {
            let (_, writes) = self.flushes.swap_remove(i);
            let mut frailty = self.frailty.lock().unwrap();
            if done.fault.is_none() && !frailty.dark {
                let now_flushed = writes.saturating_sub(frailty.flushed);
                frailty.unflushed.drain(..now_flushed as usize);
                frailty.flushed += now_flushed;
            }
        }
        Some(done)
    }

    fn next_event(&self) -> Option<Time> {
        let released = !self.held.is_empty() && !self.frailty.lock().unwrap().holds_flushes;
        if released || !self.failed.is_empty() { Some(Time::ZERO) } else { self.inner.next_event() }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.fd()
    }
}
